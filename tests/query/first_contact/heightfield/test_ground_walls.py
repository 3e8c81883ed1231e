"""The walls of ground, at its border and around holes.

The oracles are formulas, a box in the place of flat ground, and points of bodies in the ground, cell by cell.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import tangere as tg
from oracles.solid_ground import points_below, solid_ground
from tangere.broad_phase.ground import GroundWalls
from tangere.query.contacts import Status

FLAT = tg.Heightfield(np.zeros((11, 15)), (1.0, 0.5), origin=(-3.0, 2.0, 1.0))
TILES = tg.TiledHeightfield(np.zeros((11, 15)), (1.0, 0.5), origin=(-3.0, 2.0, 1.0))
#: The same ground as a box: 14 by 5 metres, as deep as anything here gets.
DEPTH = 500.0
LOW, HIGH = np.array([-3.0, 2.0, 1.0 - DEPTH]), np.array([11.0, 7.0, 1.0])

HULL = tg.generate.icosphere(subdivisions=1)
MESH = tg.generate.box([1.0, 0.8, 0.6])
BODIES = {
    "sphere": tg.Sphere(0.5),
    "capsule": tg.Capsule(0.25, 0.5),
    "box": tg.Box([0.5, 0.4, 0.3]),
    "cylinder": tg.Cylinder(0.4, 0.8),
    "cone": tg.Cone(0.4, 0.8),
    "hull": tg.ConvexMesh(HULL.replace(vertices=0.5 * HULL.vertices)),
}


def at(x: float, y: float, z: float) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, 3] = x, y, z
    return pose


def flat_box() -> tg.Box:
    return tg.Box(0.5 * (HIGH - LOW)).at(at(*(0.5 * (HIGH + LOW))))


def flat_mesh() -> tg.Mesh:
    middle = 0.5 * (HIGH + LOW)
    return tg.generate.box(HIGH - LOW).at(at(*middle))


WALLS = {"left": (0, -1.0), "right": (0, 1.0), "front": (1, -1.0), "back": (1, 1.0)}


@pytest.mark.parametrize("ground", [FLAT, TILES], ids=["heightfield", "tiles"])
@pytest.mark.parametrize("wall", list(WALLS))
def test_a_ball_that_flies_against_a_wall_meets_it_when_its_radius_is_left(wall, ground, device):
    """However deep; alone, as a batch, along a path and in a list."""
    axis, side = WALLS[wall]
    edge, ball = (HIGH if side > 0.0 else LOW)[axis], tg.Sphere(0.5)
    for depth in (0.2, 3.0, 1e3, 1e6):
        start = at(4.0, 4.5, 1.0 - depth)
        start[axis, 3] = edge + side * 2.5
        way = np.zeros(3)
        way[axis] = -4.0 * side
        met, exact = 0.5, depth >= 1.0
        if not exact:  # the centre is within a radius of the rim's height, but the wall is met all the same
            met = (2.5 - 0.5) / 4.0
        end = start.copy()
        end[:3, 3] += way
        tolerance = max(1e-6, 1e-11 * depth)
        hits = [
            tg.first_contact(ball.moving(tg.Twist(start, way, [0, 0, 0])), ground, tolerance=tolerance, device=device),
            tg.first_contact(ball.moving(tg.Path(np.stack([start, end]))), ground, tolerance=tolerance, device=device),
            tg.first_contact(
                [ball.moving(tg.Twist(start, way, [0, 0, 9.0])), ground], tolerance=tolerance, device=device
            ),
        ]
        for hit in hits:
            assert hit.status == Status.CONTACT
            assert met - tolerance / 4.0 * (1.0 + 1e-6) <= hit.time <= met
            assert hit.time_upper >= met - 1e-9
            assert hit.contacts.normal[0][axis] == pytest.approx(side, abs=1e-4)
            assert hit.contacts.point_b[0][axis] == pytest.approx(edge, abs=1e-9)
        poses = np.stack([start, start + np.eye(4, k=3) * 0.0])
        poses[1, axis, 3] += 3.0 * side  # this one does not get there
        many = tg.first_contact(
            ball.moving(tg.Twist(poses, way, [0, 0, 0])), ground, tolerance=tolerance, device=device
        )
        assert many.status.tolist() == [Status.CONTACT, Status.FREE]
        assert many.time[0] == pytest.approx(met, abs=tolerance)
        near = tg.first_contact(
            ball.moving(tg.Twist(start, way, [0, 0, 0])), ground, separation=0.3, tolerance=tolerance, device=device
        )
        assert near.time == pytest.approx((2.5 - 0.8) / 4.0, abs=tolerance)


@pytest.mark.parametrize("ground", [FLAT, TILES], ids=["heightfield", "tiles"])
def test_a_ball_beside_a_wall_is_as_far_as_the_wall(ground, device):
    for depth, (axis, side) in product((0.7, 5.0, 1e4), WALLS.values()):
        place = at(4.0, 4.5, 1.0 - depth)
        place[axis, 3] = (HIGH if side > 0.0 else LOW)[axis] + side * 2.5
        found = tg.distance(tg.Sphere(0.5).at(place), ground, device=device)
        assert found.lower - 1e-8 <= 2.0 <= found.upper + 1e-8
        assert found.normal[axis] == pytest.approx(side)
        mesh = MESH.at(place)
        found = tg.distance(mesh, ground, device=device)
        assert found.lower - 1e-8 <= 2.5 - (0.5, 0.4)[axis] <= found.upper + 1e-8
        passing = np.zeros(3)
        passing[axis] = -1.5 * side
        clear = tg.least_clearance(tg.Sphere(0.5).moving(tg.Twist(place, passing, [0, 0, 0])), ground, device=device)
        assert clear.lower <= 0.5 + 1e-9
        assert clear.upper >= 0.5 - 1e-9
        assert clear.upper - clear.lower <= 0.1
        hitting = tg.Sphere(0.5).moving(tg.Twist(place, 2.0 * passing, [0, 0, 0]))
        assert tg.least_clearance(hitting, ground, device=device).lower == 0.0


def random_motions(rng: np.random.Generator, count: int) -> tg.Twist:
    """From beyond the border, or over it, mostly towards it."""
    start = np.tile(np.eye(4), (count, 1, 1))
    start[:, :3, :3] = Rotation.random(count, random_state=int(rng.integers(1 << 30))).as_matrix()
    start[:, :3, 3] = rng.uniform(LOW * [1, 1, 0] - [2.5, 2.5, 3.0], HIGH * [1, 1, 0] + [2.5, 2.5, 2.5], (count, 3))
    return tg.Twist(start, rng.uniform(-4.0, 4.0, (count, 3)), rng.normal(0.0, 1.5, (count, 3)))


@pytest.mark.parametrize("name", [*BODIES, "mesh"])
def test_flat_ground_is_met_when_a_box_in_its_place_is(name, rng, effort, device):
    check_flat(name, rng, effort(200, 20), device)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(BODIES))
def test_flat_ground_is_met_when_a_box_in_its_place_is_in_very_many_motions(name, rng, device):
    check_flat(name, rng, 100_000, device)


def check_flat(name: str, rng: np.random.Generator, count: int, device: str) -> None:
    """The engine of two bodies tells when the box is met: another one, without ground."""
    motion, tolerance = random_motions(rng, count), 1e-6
    body = BODIES.get(name, MESH)
    found = tg.first_contact(body.moving(motion), FLAT, tolerance=tolerance, device=device)
    if name == "mesh":
        solid, outside = tg.generate.box([1.0, 0.8, 0.6]), flat_mesh()
        exact = tg.first_contact(solid.moving(motion), outside, tolerance=tolerance, solid=True, device=device)
    else:
        exact = tg.first_contact(body.moving(motion), flat_box(), tolerance=tolerance, device=device)
    met = exact.status != Status.FREE
    assert met.any()
    assert (~met).any()
    # What one calls met and the other does not has come within the tolerance, and no nearer.
    for rows, other in ((met & (found.status == Status.FREE), exact), (~met & (found.status != Status.FREE), found)):
        assert rows.sum() <= 1 + count // 1000
        assert (other.time_upper[rows] == np.inf).all()
    both = met & (found.status != Status.FREE)
    np.testing.assert_array_equal(found.status[both] == Status.START, exact.status[both] == Status.START)
    late = np.flatnonzero(both & (found.time > exact.time_upper))
    assert len(late) == 0
    early = np.flatnonzero(both & (exact.time > found.time_upper))
    assert len(early) == 0
    for row in np.flatnonzero(both & (found.status == Status.CONTACT))[:20]:
        where = motion[int(row)].pose(found.time[row])
        apart = tg.distance(body.at(where), flat_mesh() if name == "mesh" else flat_box(), device="cpu")
        assert apart.lower <= tolerance * (1.0 + 1e-6) + 1e-9


def inner_points(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Points of each body, in its frame."""
    ball = rng.normal(size=(400, 3))
    ball /= np.linalg.norm(ball, axis=1, keepdims=True)
    along = rng.choice([-1.0, 1.0], 400)[:, None] * [0.0, 0.0, 1.0]
    turn = rng.uniform(0.0, 2.0 * np.pi, 400)
    rim = 0.4 * np.stack([np.cos(turn), np.sin(turn), 0.0 * turn], axis=1)
    cube = rng.choice([-1.0, 1.0], (400, 3))
    cube[:200, rng.integers(0, 3)] = rng.uniform(-1.0, 1.0, 200)
    return {
        "sphere": 0.5 * ball,
        "capsule": 0.25 * ball + 0.25 * along,
        "box": cube * (0.5, 0.4, 0.3),
        "cylinder": rim + 0.4 * along,
        "cone": np.concatenate([rim - (0.0, 0.0, 0.4), [[0.0, 0.0, 0.4]]]),
        "hull": 0.5 * HULL.vertices,
        "mesh": MESH.vertices,
    }


@pytest.mark.parametrize("tiled", [False, True], ids=["heightfield", "tiles"])
def test_no_point_of_a_body_gets_into_rough_ground_before_the_answer(rng, effort, device, tiled):
    """Points of the body, at many times before the answer: none is in the ground, whose cells are asked one by one."""
    heights, holes = rng.uniform(0.0, 1.5, (13, 11)), rng.random((12, 10)) < 0.25
    field = (tg.TiledHeightfield if tiled else tg.Heightfield)(heights, 1.0, (-5.0, -6.0, 0.0), holes)
    plain = tg.Heightfield(heights, 1.0, (-5.0, -6.0, 0.0), holes)
    surface, count, hits = solid_ground(plain, -30.0), effort(40, 8), []
    for name, points in inner_points(rng).items():
        start = np.tile(np.eye(4), (count, 1, 1))
        start[:, :3, :3] = Rotation.random(count, random_state=int(rng.integers(1 << 30))).as_matrix()
        start[:, :3, 3] = rng.uniform([-8.0, -9.0, -4.0], [8.0, 9.0, 3.0], (count, 3))
        motion = tg.Twist(start, rng.uniform(-5.0, 5.0, (count, 3)), rng.normal(0.0, 1.0, (count, 3)))
        body = BODIES.get(name, MESH)
        found = tg.first_contact(body.moving(motion), field, tolerance=1e-6, device=device)
        alone = tg.first_contact(body.moving(motion[0]), field, tolerance=1e-6, device=device)
        assert (alone.time, alone.status) == (found.time[0], found.status[0]) or name == "mesh"
        until = np.minimum(found.time, 1.0)
        for share in np.linspace(0.0, 1.0, 60):
            pose = motion.pose(share * until)
            world = np.einsum("nij,pj->npi", pose[:, :3, :3], points) + pose[:, None, :3, 3]
            inside = points_below(plain, world, deeper=1e-9).any(axis=1)
            assert not (inside & (found.status != Status.START)).any(), name
        hit = np.flatnonzero(found.status == Status.CONTACT)
        hits.append(len(hit))
        # At the answer the body is near the surface or a wall, as one mesh that a test makes.
        pose = motion.pose(until)
        if len(hit):
            apart = tg.distance(body.moving(tg.Rest(pose[hit])), surface, device="cpu")
            assert (apart.lower <= 1e-6 * (1.0 + 1e-6)).all()
        ends = tg.distance(body.moving(tg.Rest(pose)), field, device=device)
        near = tg.distance(body.moving(tg.Rest(pose)), surface, device="cpu")
        outside = found.status != Status.START
        np.testing.assert_allclose(ends.upper[outside], near.upper[outside], rtol=0, atol=1e-7)
        assert (ends.lower[outside] <= near.upper[outside]).all()
    assert max(hits) < count
    assert sum(hits) > len(hits) * count // 20


def test_deforming_meshes_meet_walls(device):
    for depth in (0.0, 40.0):
        down = (0.0, 0.0, 1.0 - depth)
        sheet = MESH.replace(vertices=MESH.vertices + (-5.0, 4.5, 0.0) + down)
        falling = sheet.moving(tg.Linear(sheet.vertices * (1.0, 0.9, 1.0) + (4.0, 0.0, 0.0)))
        hit = tg.first_contact(falling, FLAT, device=device)
        assert hit.status == Status.CONTACT
        assert hit.time == pytest.approx(1.5 / 4.0, abs=1e-5)
        assert hit.contacts.normal[0, 0] == pytest.approx(-1.0)
        near = tg.first_contact(falling, FLAT, separation=0.25, device=device)
        assert near.time == pytest.approx(1.25 / 4.0, abs=1e-5)


def test_bodies_over_the_ground_and_on_its_rim_are_told_what_they_were(rng, effort, device):
    """With ground that goes on beyond the border there is no wall to be met, and the answers are the same."""
    heights = rng.uniform(0.0, 0.5, (30, 30))
    field = tg.Heightfield(heights, 0.5)
    wide = np.pad(heights, 40, mode="edge")
    wider = tg.Heightfield(wide, 0.5, origin=(-20.0, -20.0, 0.0))
    count = effort(60, 10)
    start = np.tile(np.eye(4), (count, 1, 1))
    start[:, :3, :3] = Rotation.random(count, random_state=7).as_matrix()
    start[:, :3, 3] = rng.uniform([1.5, 1.5, 1.0], [13.0, 13.0, 4.0], (count, 3))
    motion = tg.Twist(start, rng.uniform([-0.5, -0.5, -4.0], [0.5, 0.5, -1.0], (count, 3)), rng.normal(size=(count, 3)))
    for body in BODIES.values():
        one, other = (
            tg.first_contact(body.moving(motion), each, tolerance=1e-6, device=device) for each in (field, wider)
        )
        np.testing.assert_array_equal(one.status, other.status)
        hit = one.status == Status.CONTACT
        np.testing.assert_allclose(one.time[hit], other.time[hit], rtol=0, atol=1e-6)
    # A box that stands on the rim, half beyond it, and slides: it is on the ground, not in a wall.
    half = tg.Box([0.5, 0.5, 0.5]).at(at(-3.0, 4.0, 1.5 + 1e-4))
    assert not tg.first_contact(half.moving(tg.Twist(np.eye(4), [2.0, 0.0, 0.0], [0, 0, 0])), FLAT, device=device)
    lower = tg.Box([0.5, 0.5, 0.5]).at(at(-3.6, 4.0, 1.5 - 1e-4))
    hit = tg.first_contact(lower.moving(tg.Twist(np.eye(4), [2.0, 0.0, 0.0], [0, 0, 0])), FLAT, device=device)
    assert hit.time == pytest.approx(0.05, abs=1e-5)
    assert hit.contacts.normal[0, 0] == pytest.approx(-1.0, abs=1e-3)


def test_who_stays_over_the_ground_has_no_walls_made():
    field = tg.Heightfield(np.zeros((300, 300)), 0.5)
    walls = GroundWalls.of(field)
    for x in (10.0, 75.0, 140.0):
        fall = tg.Twist(at(x, 75.0, 3.0), [1.0, 1.0, -9.0], [0, 0, 5.0])
        assert tg.first_contact(tg.Cylinder(0.4, 0.3).moving(fall), field, device="cpu")
    assert not walls._sides
    assert not walls._kept


def test_the_walls_of_a_mesh_are_named_by_what_they_hang_from(device):
    """Faces, edges and vertices of ground, as `manifold` numbers them."""
    wide = FLAT.shape[1] + 1
    leaning = at(-5.0, 4.7, -1.0)
    leaning[:3, :3] = Rotation.from_euler("yz", [0.5, 0.4]).as_matrix()
    flying = MESH.moving(tg.Twist(leaning, [4.0, 0.0, 0.0], [0.0, 0.0, 0.0]))
    contacts = tg.first_contact(flying, FLAT, device=device).contacts
    assert contacts.kind[0] == tg.Kind.VERTEX_FACE
    assert contacts.feature_a[0] == np.argmax(MESH.vertices @ leaning[0, :3])
    row, column = divmod(int(contacts.feature_b[0]) // 2, wide - 1)
    assert column == 0
    assert 2.0 + 0.5 * row <= contacts.point_b[0, 1] <= 2.0 + 0.5 * (row + 1)
    found = tg.distance(MESH.at(at(-4.0, 4.7, -1.0)), FLAT, device=device)
    assert divmod(int(found.triangle_b) // 2, wide - 1)[1] == 0
    # A corner of the border from beyond both sides: its vertical edge is named by an edge that ends there.
    turned = at(-5.0, 0.0, -1.0)
    turned[:3, :3] = Rotation.from_euler("x", 0.6).as_matrix()
    hit = tg.first_contact(MESH.moving(tg.Twist(turned, [4.0, 4.0, 0.0], [0, 0, 0])), FLAT, device=device)
    assert hit.status == Status.CONTACT
    assert hit.contacts.point_b[0, :2] == pytest.approx([-3.0, 2.0])
    assert hit.contacts.feature_b[0] in (0, 1)
