"""The search for CUDA, run on the CPU: one thread a group or 32, however small its stack, the same certificates."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

import tangere as tg
from oracles.families.rigid_scenes import random_motion
from tangere.query.clearance import api
from tangere.query.clearance.cuda.block_search import STACK, search_blocks
from tangere.query.first_contact.rigid.cuda.block_search import RESERVE, THREADS

#: A stack that leaves no room for 32 threads once a few levels are open.
SMALL = RESERVE + THREADS + 8


@pytest.fixture(params=[(1, STACK), (THREADS, STACK), (THREADS, SMALL)], ids=["one thread", "32 threads", "no room"])
def by_blocks(request, monkeypatch) -> list[int]:
    """Makes the CPU search as CUDA does; how many groups were searched."""
    threads, room = request.param
    monkeypatch.setattr(wp.config, "enable_cpu_blocks", threads > 1)
    groups: list[int] = []

    def run(self, accuracy: float, *, stop: bool = False) -> np.ndarray:
        groups.append(self._count)
        search_blocks(self._batch.arrays, self._begin, accuracy, self._found, stop=stop, room=room)
        return self._found.numpy()

    monkeypatch.setattr(api._Search, "run", run)
    return groups


def meetings(rng, count: int) -> tuple[tg.Moving, tg.Mesh]:
    return tg.generate.torus(576).moving(random_motion("twist", rng, count)), tg.generate.icosphere(2, radius=0.8)


@pytest.mark.parametrize("accuracy", [0.5, 0.05])
def test_bounds_hold_at_every_sampled_instant_and_are_as_near_as_asked(rng, effort, by_blocks, accuracy):
    moving, ball = meetings(rng, effort(16, least=4))
    found = tg.least_clearance(moving, ball, accuracy=accuracy, device="cpu")
    assert by_blocks
    samples = np.array(
        [tg.distance(moving, ball, time=float(t), device="cpu").upper for t in np.linspace(0.0, 1.0, 60)]
    ).min(axis=0)
    assert (found.lower <= samples + 1e-12).all()
    hit = tg.first_contact(moving, ball, device="cpu").status != 0
    assert hit.any() or len(hit) < 16
    if accuracy < 0.1:
        assert (found.upper[~hit] <= 1.1 * samples[~hit] + 1e-6).all()
    assert (found.lower[hit] == 0.0).all()
    assert (found.upper[hit] < 1e-5).all()
    assert (found.lower[~hit] >= (1.0 - accuracy) * found.upper[~hit]).all()


def test_robots_are_told_what_the_search_for_cpus_tells_them(rng, effort, by_blocks, monkeypatch):
    arm = tg.robot.generate.arm()
    q = rng.uniform(-1.5, 1.5, (effort(12, least=2), 2, len(arm.joint_names)))
    q[:, 1] = q[:, 0] + rng.uniform(-0.3, 0.3, q[:, 1].shape)
    shelf = {"shelf": tg.generate.torus(800).at(np.diag([0.3, 0.3, 0.3, 1.0]))}
    ask = {"clearance": 0.4, "accuracy": 0.3, "device": "cpu"}
    blocks = arm.check(q, shelf, **ask).segments
    asked = len(by_blocks)
    assert asked
    monkeypatch.undo()
    serial = arm.check(q, shelf, **ask).segments
    assert len(by_blocks) == asked
    assert np.array_equal(blocks.status, serial.status)
    for one, other in ((blocks, serial), (serial, blocks)):
        assert (one.clearance_lower <= other.clearance_upper).all()
    free = blocks.status == 0
    kept = np.minimum(blocks.clearance_upper, 0.4)
    assert (blocks.clearance_lower[free] >= 0.7 * kept[free] - 1e-9).all()


def test_what_stays_beyond_a_length_is_told_so_and_what_comes_nearer_is_not(rng, effort, by_blocks):
    moving, ball = meetings(rng, effort(12, least=4))
    least = tg.least_clearance(moving, ball, accuracy=0.01, device="cpu")
    sides = api.bodies_of(moving, "a"), api.bodies_of(ball, "b")
    count = len(least.upper)
    for share, told in ((0.8, True), (1.05, False)):
        forests = (api.Forest.of(side.shapes, wp.get_device("cpu")) for side in sides)
        motions = sum(len(side.motion.records()) for side in sides)
        batch = api.RigidQueryBatch(*forests, count, motions, wp.get_device("cpu"))
        batch.set_queries(*sides, 0.0, None)
        clear = least.lower > 1e-3
        lengths = np.where(clear, share * least.upper, 1e-3)
        beyond = api.stay_beyond(batch, lengths)
        assert (beyond[clear] == told).all()
        assert not beyond[~clear].any()


def test_groups_that_are_certified_or_empty_are_left_alone(rng):
    moving, ball = meetings(rng, 3)
    sides = api.bodies_of(moving, "a"), api.bodies_of(ball, "b")
    forests = (api.Forest.of(side.shapes, wp.get_device("cpu")) for side in sides)
    batch = api.RigidQueryBatch(*forests, 3, 4, wp.get_device("cpu"))
    batch.set_queries(*sides, 0.0, None)
    # Three groups: one that is known, one without queries, and one of all three.
    found = np.zeros(3, api.NearestApproach.numpy_dtype())
    found["upper"], found["time"], found["certified"] = 5.0, -1.0, (True, False, False)
    begin = wp.array(np.array([0, 0, 0, 3], np.int32), dtype=wp.int32, device="cpu")
    records = wp.array(found, dtype=api.NearestApproach, device="cpu")
    search_blocks(batch.arrays, begin, 0.1, records)
    known, empty, all_three = records.numpy()
    assert known == found[0]
    assert (empty["upper"], empty["time"], bool(empty["certified"])) == (5.0, -1.0, True)
    least = tg.least_clearance(moving, ball, accuracy=0.1, device="cpu")
    assert 0.9 * least.lower.min() <= all_three["upper"] <= least.upper.min() / 0.9 + 1e-5
