"""Robots of the wheel example-robot-data against coal: what samples find is found, and nothing else is told.

`make test-extras` installs what these tests need; on a generated arm `test_trajectories` checks the same.
"""

from __future__ import annotations

import sysconfig
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import tangere as tg
from oracles.robot_samples import SampledCell, within
from robot.cells import coal_shape, place
from tangere.query.contacts import Status

coal = pytest.importorskip("coal", reason="the wheel coal is not installed: make test-extras")

URDF = {
    "ur5": "ur_description/urdf/ur5_robot.urdf",
    "panda": "panda_description/urdf/panda.urdf",
    "talos": "talos_data/robots/talos_reduced.urdf",
    "pr2": "pr2_description/urdf/pr2.urdf",
    "baxter": "baxter_description/urdf/baxter.urdf",
    "tiago": "tiago_description/robots/tiago.urdf",
}


def robots_folder() -> Path:
    """Where the wheel has its robots: beside the package coal, which comes by the same installer."""
    below = Path("cmeel.prefix/share/example-robot-data/robots")
    places = [Path(sysconfig.get_paths()["purelib"]) / below, *(p / below for p in Path(coal.__file__).parents)]
    places += [p / "share/example-robot-data/robots" for p in Path(coal.__file__).parents]
    found = next((place for place in places if place.is_dir()), None)
    if found is None:
        pytest.skip("the wheel example-robot-data is not installed: make test-extras")
    return found


def load(name: str) -> tg.Robot:
    pytest.importorskip("yourdfpy", reason="reading URDF needs the extra [robot]")
    return tg.Robot.load(robots_folder() / URDF[name])


def cell() -> dict[str, tg.Mesh]:
    """A table, a box on it, a thin rod and a thinner plate."""
    return {
        "table": tg.generate.box((1.6, 1.6, 0.05)).at(place(z=-0.037)),
        "box": tg.generate.box((0.15, 0.25, 0.3)).at(place(0.45, 0.1, 0.14)),
        "rod": tg.generate.prism(12, radius=0.0015, height=0.6).at(place(0.35, -0.3, 0.35)),
        "plate": tg.generate.box((0.3, 0.0005, 0.3)).at(place(-0.4, 0.2, 0.5)),
    }


class CoalBodies:
    """Bodies as coal has them, asked whether they collide: its own boxes, cylinders and spheres, and meshes."""

    def __init__(self, robot: tg.Robot, world: dict[str, tg.Mesh] | None = None) -> None:
        parts = {name: robot.parts_of(k) for k, name in enumerate(robot.links)}
        parts |= {name: (mesh,) for name, mesh in (world or {}).items()}
        self.parts = {name: [coal_shape(part) for part in own] for name, own in parts.items()}

    def collide(self, pair, poses, k: int) -> bool:
        """By both of coal's answers: `collide` alone counts what is 1e-6 m apart, the tolerance of its GJK."""
        for one, two, at_one, at_two in self._placed(pair, poses, k):
            if (
                coal.collide(one, at_one, two, at_two, coal.CollisionRequest(), coal.CollisionResult())
                and self._apart(one, two, at_one, at_two) <= 0.0
            ):
                return True
        return False

    def distance(self, pair, poses, k: int) -> float:
        return min(self._apart(*given) for given in self._placed(pair, poses, k))

    def _placed(self, pair, poses, k: int):
        for (one, at_one), (two, at_two) in product(*(self.parts[name] for name in pair)):
            places = [poses[name][k] @ at for name, at in zip(pair, (at_one, at_two), strict=True)]
            yield (
                one,
                two,
                *(coal.Transform3s(np.ascontiguousarray(p[:3, :3]), np.ascontiguousarray(p[:3, 3])) for p in places),
            )

    def _apart(self, one, two, at_one, at_two) -> float:
        request = coal.DistanceRequest()
        request.gjk_tolerance = 1e-10  # of round shapes; 1e-6 unless told
        return coal.distance(one, at_one, two, at_two, request, coal.DistanceResult())


@pytest.mark.parametrize("name", URDF)
def test_what_coal_finds_in_samples_is_found_and_contacts_are_within_the_tolerance(name, rng, effort):
    robot, world = load(name), cell()
    low, high = np.clip(robot.limits, -2.5, 2.5).T
    arm = name in ("ur5", "panda")
    ends = rng.uniform(low, high, (effort(4, 1) if arm else 1, 2, len(low)))
    q = ends[:, :1] + np.linspace(0.0, 1.0, 9)[None, :, None] * (ends[:, 1:] - ends[:, :1])
    allowed = [tuple(robot.bodies[k] for k in pair) for pair in robot.linked_pairs()] if arm else None
    checks = robot.check(q, world, allowed, tolerance=1e-6, device="cpu")
    checker = robot._checker(world, allowed, None, "cpu", None)
    pairs = [tuple(checker.cell.names[k] for k in pair) for pair in checker.pairs]
    sampled = SampledCell(robot, world)
    peers, share, seen = CoalBodies(robot, world), (np.arange(8) + 0.5) / 8, 0
    for i, found in enumerate(checks):
        for k in range(8):
            at = (k + share) / 8
            poses = sampled.poses(within(q[i], k, share), at)
            hits = [s for s in range(8) if any(peers.collide(pair, poses, s) for pair in pairs)]
            seen += len(hits)
            if hits:
                assert found.segments.status[k] != Status.FREE
                assert found.segments.time[k] <= at[hits[0]]
            if found.segments.status[k] == Status.CONTACT:
                time = np.array([found.segments.time[k]])
                poses = sampled.poses(within(q[i], k, time * 8 - k), time)
                assert peers.distance(found.segments.pair[k], poses, 0) <= 1.001e-6
    assert seen > 0


def test_links_that_touch_at_rest_are_those_that_coal_finds():
    robot = load("panda")
    middle = robot.limits.mean(axis=1)
    poses = SampledCell(robot).poses(middle[None], np.zeros(1))
    peers = CoalBodies(robot)
    checker = robot._checker(None, [], None, "cpu", None)
    checker.check(middle[None, None])
    touching = checker.queries(1).hits()[0] <= 1.0
    for pair, touches in zip(checker.pairs, touching, strict=True):
        names = tuple(checker.cell.names[k] for k in pair)
        assert touches == peers.collide(names, poses, 0), names


@pytest.mark.slow
@pytest.mark.parametrize("name", ["talos", "baxter", "tiago"])
def test_large_robots_load_and_move(name):
    robot = load(name)
    low, high = np.where(np.isfinite(robot.limits), robot.limits, [-1.0, 1.0]).T
    start = np.clip(np.zeros(len(low)), low, high)
    found = robot.check([start, np.clip(start + 0.05, low, high)], device="cpu")
    assert found.compared > 100
    assert len(found.ignored) > 0


@pytest.mark.slow
def test_pairs_of_a_panda_are_decided_but_for_two_and_no_proved_one_touches():
    robot = load("panda")
    table = robot.touching(2000, prove=True, device="cpu")
    assert len(table) == 54
    assert table.counts().get("open", 0) <= 2
    assert table.counts()["never"] >= 20
    again = robot.touching(100_000, seed=1, device="cpu")
    for row in table:
        if row.verdict == "never":
            assert again[row.pair].count == 0, row.pair
