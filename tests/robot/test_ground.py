"""Robots over ground: beside the ground's triangles, beside heights under vertices, beside `first_contact`."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import tangere as tg
from oracles.robot_samples import SampledCell, link_frames, within
from robot.cells import place, trajectories
from tangere.broad_phase.ground import GroundBlocks
from tangere.query.contacts import Kind, Status
from tangere.runtime import UnsupportedError
from tangere.shape.heightfield import TiledHeightfield
from tangere.shape.robot import Joint

ARM = tg.robot.generate.arm(gripper=True)
LINKS = [*combinations(ARM.bodies, 2)]


def hills(rng, *, holes: bool = False) -> tg.Heightfield:
    """Three by four squares of rough ground that the arm reaches, and beyond."""
    x, y = np.meshgrid(np.linspace(-1.2, 1.2, 121), np.linspace(-0.9, 0.9, 91))
    heights = 0.2 * np.sin(4.0 * x) * np.cos(3.0 * y) + 0.3 + 0.01 * rng.normal(size=x.shape)
    heights[np.hypot(x, y) < 0.3] = -0.1  # where the arm stands
    gaps = (np.hypot(x, y) > 0.6)[:-1, :-1] if holes else None
    return tg.Heightfield(heights, spacing=0.02, origin=(-1.2, -0.9, 0.0), holes=gaps)


def wholly_below(field: tg.Heightfield, robot, q: np.ndarray) -> bool:
    """Whether all vertices of a body are below the surface at a configuration: heights under them."""
    frames = link_frames(robot, q[None])
    for link, mesh in zip(robot.links, robot.shapes, strict=True):
        if mesh is None or link == robot.bodies[0]:
            continue
        points = mesh.vertices @ frames[link][0, :3, :3].T + frames[link][0, :3, 3]
        if (field.height_at(points) > points[:, 2]).all():
            return True
    return False


@pytest.mark.parametrize("holes", [False, True])
def test_ground_is_met_as_its_triangles_are_and_who_is_below_starts_in_contact(rng, effort, holes):
    field = hills(rng, holes=holes)
    q = trajectories(rng, ARM, effort(40, 8), 6)
    found, mesh = (ARM.check(q, {"ground": g}, LINKS, device="cpu") for g in (field, field.to_mesh()))
    status, other = found.segments.status, mesh.segments.status
    assert (np.bincount(status.ravel(), minlength=3)[:3] > 0).all(), "the sample has all of them"
    differ = status != other
    assert (status[differ] == Status.START).all()
    for i, k in np.argwhere(differ & (other == Status.FREE)):
        assert wholly_below(field, ARM, q[i, k])
    for i, k in np.argwhere(status == Status.FREE):
        assert not wholly_below(field, ARM, q[i, k])
    touching = (status == Status.CONTACT) & ~differ
    assert touching.any()
    assert np.abs(found.segments.time[touching] - mesh.segments.time[touching]).max() < 1e-4
    assert ((found.segments.time <= mesh.segments.time_upper) | differ).all()
    assert ((mesh.segments.time <= found.segments.time_upper) | differ).all()


def test_no_sample_is_nearer_to_ground_than_the_clearance_told(rng, effort):
    field = hills(rng)
    mesh = field.to_mesh()
    q = trajectories(rng, ARM, effort(6, 2), 4)
    found = ARM.check(q, {"ground": field}, LINKS, clearance=0.2, device="cpu")
    cell, share = SampledCell(ARM, {"ground": mesh}), np.linspace(0.0, 1.0, 30)
    seen = 0
    for i in range(len(q)):
        for k in range(3):
            low, high = found.segments.clearance_lower[i, k], found.segments.clearance_upper[i, k]
            if found.segments.status[i, k] == Status.START:
                assert low == high == 0.0
                continue
            apart = [cell.distances((name, "ground"), within(q[i], k, share), share) for name in ARM.bodies[1:]]
            assert low <= np.min(apart) + 1e-12
            assert low >= 0.5 * min(high, 0.2) - 1e-6
            seen += bool(high < 0.2)
    assert seen > 0


UP = np.array([0.0, 0.0, 1.0])
WAY = np.array([0.6, 0.0, -0.8])


def sled(tip) -> tg.Robot:
    """A robot of one joint that slides something."""
    slide = Joint("slide", "sliding", np.eye(4), WAY, "slide", limits=(0.0, 2.0))
    foot = Joint("foot", "fixed", np.eye(4), UP, "")
    return tg.Robot("sled", ("foot", "carriage"), (-1, 0), (foot, slide), (None, None)).attach("tip", tip, "carriage")


TIPS = {
    "sphere": tg.Sphere(0.05),
    "capsule": tg.Capsule(0.03, 0.2),
    "box": tg.Box((0.1, 0.05, 0.04)),
    "mesh": tg.generate.icosphere(subdivisions=2, radius=0.05),
}


@pytest.mark.parametrize("tip", TIPS)
def test_what_slides_down_touches_ground_as_first_contact_says(rng, tip):
    """Of an analytic body that asks the pyramid of heights, which shares no search with robots."""
    field, body = hills(rng), TIPS[tip]
    base = place(-0.7, 0.1, 1.0)
    found = sled(body).check([[0.0], [1.5]], {"ground": field}, [], base=base, tolerance=1e-7, device="cpu")
    way = tg.Twist(base, 1.5 * WAY, np.zeros(3))
    expected = tg.first_contact(body.moving(way), field, tolerance=1e-7, device="cpu")
    assert found.status == expected.status == Status.CONTACT
    assert found.time == pytest.approx(expected.time, abs=1e-6)
    assert found.pair == ("tip", "ground")
    assert found.contact.normal[0] == pytest.approx(expected.contacts.normal[0], abs=1e-3)
    if tip == "mesh":
        assert found.contact.feature_b.tolist() == expected.contacts.feature_b.tolist()
        assert found.contact.key.tolist() == expected.contacts.key.tolist()


@pytest.mark.parametrize("tip", TIPS)
def test_what_is_below_ground_starts_in_contact_and_what_hangs_in_a_hole_does_not(tip):
    heights = np.zeros((65, 65))
    gap = np.zeros((64, 64), bool)
    gap[20:44, 20:44] = True
    q, low = [[0.0], [0.2]], place(0.0, 0.0, -0.6)
    whole, open_ = (tg.Heightfield(heights, 0.05, origin=(-1.6, -1.6, 0.0), holes=holes) for holes in (None, gap))
    body = sled(TIPS[tip])
    below = body.check(q, {"ground": whole}, [], base=low, clearance=0.1, device="cpu")
    assert below.status == Status.START
    assert below.time == below.time_upper == 0.0
    assert below.contact.kind.tolist() == [Kind.INSIDE]
    assert below.clearance == (0.0, 0.0)
    assert below.last_valid is None
    if tip == "mesh":
        assert below.contact.gap[0] == pytest.approx(-0.55, abs=1e-5), "it has to go up by so much"
    hanging = body.check(q, {"ground": open_}, [], base=low, clearance=0.1, device="cpu")
    assert hanging.status == Status.FREE
    assert hanging.clearance[0] >= 0.05


def test_squares_that_come_near_later_are_asked_about_as_well(rng):
    """Two grounds, the one that is farther named first; a base that is carried over many squares."""
    land = tg.Heightfield(np.zeros((33, 641)), 0.05, origin=(-1.0, -0.8, 0.0))
    ramp = tg.Heightfield(np.tile(0.1 * np.arange(33.0), (33, 1)), 0.05, origin=(28.0, -0.8, -0.5))
    poses = np.stack([place(x, 0.0, 0.5) for x in (0.0, 14.0, 28.0)])
    carried = tg.Path(poses, [0.0, 0.5, 1.0])
    robot = sled(TIPS["mesh"])
    q = np.zeros((57, 1))
    world = {"ramp": ramp, "land": land}
    found = robot.check(q, world, [], base=carried, device="cpu")
    assert found.status == Status.FREE
    q[-1] = 0.75
    found = robot.check(q, world, [], base=carried, device="cpu")
    assert found.status == Status.CONTACT
    assert found.pair == ("tip", "land")
    mesh = robot.check(q, {name: ground.to_mesh() for name, ground in world.items()}, [], base=carried, device="cpu")
    assert found.time == pytest.approx(mesh.time, abs=1e-6)


def test_ground_in_tiles_is_met_as_ground_in_memory(rng, tmp_path):
    field = hills(rng)
    TiledHeightfield.create(tmp_path, field.heights, field.spacing, field.origin, tile=32)
    q = trajectories(rng, ARM, 3, 4)
    land = TiledHeightfield.load(tmp_path)
    tiled, held = (ARM.check(q, {"ground": g}, LINKS, clearance=0.1, device="cpu") for g in (land, field))
    with pytest.raises(UnsupportedError, match="'ground' is ground in tiles, of which there are no gradients"):
        ARM.distances(q[0, 0], {"ground": land}, device="cpu")
    assert (tiled.segments.status == held.segments.status).all()
    assert (tiled.segments.time == held.segments.time).all()
    assert (tiled.segments.clearance_lower == held.segments.clearance_lower).all()


def test_distances_from_ground_are_those_from_its_triangles(rng):
    field = hills(rng)
    q = trajectories(rng, ARM, 1, 2)[0]
    from_field, from_mesh = (ARM.distances(q, {"ground": g}, device="cpu") for g in (field, field.to_mesh()))
    assert (from_field.upper == from_mesh.upper).all()
    assert np.array_equal(from_field.gradient, from_mesh.gradient, equal_nan=True)


def test_squares_near_balls_are_those_near_the_boxes_of_balls(rng, effort):
    """The oracle: boxes one by one; `near_balls` may keep no more."""
    blocks = GroundBlocks.of(hills(rng, holes=True))
    balls = np.concatenate(
        [rng.uniform(-2.0, 2.0, (effort(300, 50), 3)), rng.exponential(0.3, (effort(300, 50), 1))], 1
    )
    balls[-1] = 0.0, 0.0, 0.0, 1e9
    for above in (False, True):
        ball, square = blocks.near_balls(balls, 0.1, above=above)
        for k, (x, y, z, radius) in enumerate(balls):
            reach, centre = radius + 0.1, np.array([x, y, z])
            high = np.array([x + reach, y + reach, np.inf if above else z + reach])
            assert square[ball == k].tolist() == blocks.near(centre - reach, high).tolist()


@pytest.mark.cuda
def test_the_gpu_agrees_with_the_cpu_about_ground(rng):
    field = hills(rng)
    q = trajectories(rng, ARM, 40, 6)
    cpu, gpu = (ARM.check(q, {"ground": field}, LINKS, clearance=0.1, device=device) for device in ("cpu", "cuda"))
    assert (cpu.segments.status == gpu.segments.status).all()
    hit = cpu.segments.status != Status.FREE
    assert np.abs(cpu.segments.time[hit] - gpu.segments.time[hit]).max() < 1e-4
    assert (gpu.segments.clearance_lower <= cpu.segments.clearance_upper + 1e-9).all()
    assert (cpu.segments.clearance_lower <= gpu.segments.clearance_upper + 1e-9).all()
