"""Meshes and ground: the surface as one mesh, brute force over all its triangles, and heights below vertices tell."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import tangere as tg
from oracles.rigid_distances import closest_approach, mesh_distances
from oracles.solid_ground import solid_ground
from tangere.broad_phase.ground import GroundBlocks
from tangere.motion import Rest
from tangere.query.contacts import Kind, Status
from tangere.runtime import CapacityError, InputError, UnsupportedError

RING = tg.generate.torus(200, radius=0.8, tube=0.2)
#: More than one square of 32 by 32 cells along either side.
SIZE = (40, 70)
SPACING = (0.5, 0.25)


def ground(rng: np.random.Generator, holes: bool = False) -> tg.Heightfield:
    heights = 2.0 * rng.random((SIZE[0] + 1, SIZE[1] + 1))
    missing = rng.random(SIZE) < 0.3 if holes else None
    return tg.Heightfield(heights, SPACING, (-3.0, 2.0, 10.0), missing)


def placed(rng: np.random.Generator, low: float, high: float, beyond: float = 0.0) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, :3] = Rotation.random(random_state=int(rng.integers(1 << 30))).as_matrix()
    side = np.array([SIZE[1] * SPACING[0], SIZE[0] * SPACING[1]])
    pose[:2, 3] = rng.uniform(-beyond, side + beyond) + (-3.0, 2.0)
    pose[2, 3] = rng.uniform(10.0 + low, 10.0 + high)
    return pose


def motion(rng: np.random.Generator) -> tg.Twist:
    return tg.Twist(placed(rng, 3.0, 6.0, 2.0), rng.uniform([-6, -6, -7], [6, 6, 1]), rng.normal(size=3))


def is_below(mesh: tg.Mesh, field: tg.Heightfield) -> bool:
    heights = field.height_at(mesh.vertices)
    return bool((mesh.vertices[:, 2] < heights).any())


@pytest.mark.parametrize("holes", [False, True])
def test_a_rigid_part_is_never_late_and_near_the_surface_at_the_answer(rng, effort, device, holes):
    field, tolerance = ground(rng, holes), 1e-5
    surface, hits = field.to_mesh(), 0
    for _ in range(effort(24, 6)):
        way = motion(rng)
        hit = tg.first_contact(RING.moving(way), field, tolerance=tolerance, device=device)
        until = min(hit.time, 1.0)
        assert closest_approach(RING, surface, way, Rest(), until, samples=12, rounds=3) > 0.0
        if hit:
            hits += 1
            at = way.pose(np.array([hit.time]))
            assert mesh_distances(RING, surface, at, np.eye(4)[None])[0] <= tolerance * (1.0 + 1e-6)
    assert hits >= effort(4, 1)


def feature_points(field: tg.Heightfield, contacts: tg.Contacts) -> list[np.ndarray]:
    """Corners of the ground's feature of each contact, from its number."""
    rows, columns = SIZE
    vertices, found = field.vertices, []
    for k in range(len(contacts)):
        number, on = int(contacts.feature_b[k]), contacts.vertex_on[k] == 1
        edge = contacts.kind[k] == Kind.EDGE_EDGE or (contacts.kind[k] == Kind.OVERLAP and on)
        if edge:
            vertex, family = divmod(number, 3)
            i, j = divmod(vertex, columns + 1)
            ends = {0: [(i, j), (i, j + 1)], 1: [(i, j), (i + 1, j)], 2: [(i, j + 1), (i + 1, j)]}[family]
        elif on:
            ends = [divmod(number, columns + 1)]
        else:
            cell, part = divmod(number, 2)
            i, j = divmod(cell, columns)
            ends = [[(i, j), (i, j + 1), (i + 1, j)], [(i + 1, j + 1), (i + 1, j), (i, j + 1)]][part]
        found.append(np.array([vertices[place] for place in ends]))
    return found


def off_feature(point: np.ndarray, corners: np.ndarray) -> float:
    """Distance of a point and the hull of one to three corners."""
    if len(corners) == 1:
        return float(np.linalg.norm(point - corners[0]))
    edges = (corners[1:] - corners[0]).T
    weights = np.linalg.lstsq(edges, point - corners[0], rcond=None)[0]
    assert weights.min() > -1e-6
    assert weights.sum() < 1.0 + 1e-6
    return float(np.linalg.norm(edges @ weights - (point - corners[0])))


def test_features_have_the_numbers_of_the_whole_ground(rng, effort, device):
    field, seen = ground(rng), set()
    for _ in range(effort(30, 8)):
        hit = tg.first_contact(RING.moving(motion(rng)), field, device=device)
        for point, corners in zip(hit.contacts.point_b, feature_points(field, hit.contacts), strict=True):
            seen.add((len(corners), int(hit.contacts.vertex_on[0])))
            assert off_feature(point, corners) < 1e-9
    assert len(seen) >= 2


def test_many_motions_answer_as_one_after_the_other(rng, effort, device):
    field, count = ground(rng, holes=True), effort(16, 6)
    starts = np.stack([placed(rng, -3.0, 6.0, 2.0) for _ in range(count)])
    ends = starts.copy()
    ends[:, :3, 3] += rng.uniform(-5.0, 5.0, (count, 3))
    found = tg.first_contact(RING.moving(tg.Screw(starts, ends)), field, device=device)
    each = [
        tg.first_contact(RING.moving(tg.Screw(*pair)), field, device=device) for pair in zip(starts, ends, strict=True)
    ]
    assert found.status.tolist() == [one.status for one in each]
    np.testing.assert_allclose(found.time, [one.time for one in each], rtol=0, atol=1e-9)
    assert len(set(found.status.tolist())) >= 2
    for row, one in enumerate(each):
        if one and one.time > 0.0:  # of what overlaps at the start any place where it does may be told
            np.testing.assert_allclose(found.point_b[row], one.contacts.point_b[0], atol=1e-4)


@pytest.mark.parametrize("holes", [False, True])
def test_what_is_below_the_ground_at_the_start_is_told(rng, effort, device, holes):
    field, buried = ground(rng, holes), 0
    surface = solid_ground(field, 0.0)
    for _ in range(effort(30, 8)):
        pose = placed(rng, -5.0, 4.0, 1.0)
        mesh = RING.at(pose)
        meets = bool(tg.intersects(mesh, surface, device=device))
        expected = meets or is_below(mesh, field)
        away = np.array([0.0, 0.0, 1e-3])
        for moving in (
            RING.moving(tg.Twist(pose, away, np.zeros(3))),
            RING.moving(tg.Path(np.stack([pose, pose]))),
            mesh.moving(tg.Linear(mesh.vertices + away)),
            mesh,
        ):
            hit = tg.first_contact(moving, field, device=device)
            assert (hit.status == Status.START) == expected
            if expected and not meets:
                buried += 1
                point, over = hit.contacts.point_a[0], hit.contacts.point_b[0]
                assert hit.contacts.kind[0] == Kind.INSIDE
                assert np.allclose(over[:2], point[:2], atol=1e-4)
                assert hit.contacts.gap[0] == pytest.approx(point[2] - over[2], abs=1e-4)
        assert bool(tg.intersects(mesh, field, device=device)) == expected
        trusted = tg.first_contact(mesh, field, start="trusted", device=device)
        assert trusted.status != Status.START
    assert holes or buried > 0  # between holes whatever is below meets a wall


def test_a_plate_below_the_whole_ground_is_below_it_although_no_vertex_is(device):
    field = tg.Heightfield(np.zeros((3, 3)))
    plate = tg.Mesh([[-9.0, -9.0, -1.0], [9.0, -9.0, -1.0], [0.0, 9.0, -1.0]], [[0, 1, 2]])
    sliver = tg.Mesh([[-9.0, 0.5, -1.0], [9.0, 0.5, -1.0], [9.0, 0.51, -1.0]], [[0, 1, 2]])
    for mesh in (plate, sliver):
        assert tg.first_contact(mesh, field, device=device).status == Status.START
        assert tg.distance(mesh, field, device=device).upper == 0.0
        above = mesh.at(np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1.5], [0, 0, 0, 1.0]]))
        assert tg.first_contact(above, field, device=device).status == Status.FREE
        assert tg.distance(above, field, device=device).lower == pytest.approx(0.5)


def test_what_hovers_over_the_ground_by_less_than_the_tolerance_does_not_begin_in_it(device):
    field = tg.Heightfield(np.zeros((3, 3)))
    for gap in (1e-5, 1e-7, 1e-9, 1e-13):
        mesh = tg.generate.box([1.0, 1.0, 1.0]).at(
            np.array([[1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 0.5 + gap], [0, 0, 0, 1]])
        )
        hit = tg.first_contact(mesh.moving(tg.Linear(mesh.vertices + (0.0, 0.0, 1.0))), field, device=device)
        assert hit.status != Status.START
        rising = mesh.moving(tg.Twist(np.eye(4), (0.0, 0.0, 1.0), np.zeros(3)))
        assert tg.first_contact(rising, field, device=device).status != Status.START
        assert not tg.intersects(mesh, field, device=device)
        assert tg.distance(mesh, field, device=device).upper == pytest.approx(gap, rel=1e-3, abs=1e-13)


def test_distances_are_those_of_the_whole_surface(rng, effort, device):
    field = ground(rng, holes=True)
    surface, count = solid_ground(field, 0.0), effort(20, 6)
    poses = np.stack([placed(rng, 1.0, 9.0, 12.0) for _ in range(count)])
    found, walls = tg.distance(RING.moving(Rest(poses)), field, device=device), 0
    for row, pose in enumerate(poses):
        if found.kind[row] == Kind.INSIDE:
            assert is_below(RING.at(pose), field)
            continue
        exact = mesh_distances(RING, surface, pose[None], np.eye(4)[None])[0]
        assert found.lower[row] <= exact * (1.0 + 1e-12)
        assert exact <= found.upper[row] * (1.0 + 1e-12)
        assert found.upper[row] - found.lower[row] <= 1e-12 * 100.0
        if found.upper[row] > 0.0:
            assert np.linalg.norm(found.point_a[row] - found.point_b[row]) == pytest.approx(exact, rel=1e-9)
            if np.isnan(found.weights_b[row]).all():  # a wall, below its rim
                walls += 1
                assert abs(found.normal[row, 2]) < 1.0
                continue
            cell, part = divmod(int(found.triangle_b[row]), 2)
            i, j = divmod(cell, SIZE[1])
            places = [[(i, j), (i, j + 1), (i + 1, j)], [(i + 1, j + 1), (i + 1, j), (i, j + 1)]][part]
            corners = np.array([field.vertices[place] for place in places])
            np.testing.assert_allclose(found.weights_b[row] @ corners, found.point_b[row], atol=1e-9)
    assert walls < count


def test_a_mesh_that_deforms_answers_as_with_the_whole_surface(rng, effort, device):
    field, seen = ground(rng), set()
    surface = field.to_mesh()
    for _ in range(effort(12, 4)):
        mesh = RING.at(placed(rng, 3.0, 4.0))
        end = mesh.vertices + rng.normal(size=mesh.vertices.shape) * 0.05 + (1.0, 0.5, rng.uniform(-4.0, 0.0))
        for mode in ("sound", "exact"):
            asked = {"mode": mode, "tolerance": 1e-6, "device": device}
            hit = tg.first_contact(mesh.moving(tg.Linear(end)), field, **asked)
            whole = tg.first_contact(mesh.moving(tg.Linear(end)), surface, **asked)
            assert hit.status == whole.status
            assert hit.time == pytest.approx(whole.time, abs=1e-6)
            seen.add(hit.status)
    assert len(seen) > 1


def test_ground_in_tiles_answers_as_ground_in_memory(rng, tmp_path, device):
    field = ground(rng, holes=True)
    tiles = tg.TiledHeightfield.create(tmp_path / "tiles", field.heights, SPACING, field.origin, field.holes, tile=16)
    for _ in range(6):
        way = motion(rng)
        one, other = (tg.first_contact(RING.moving(way), land, device=device) for land in (field, tiles))
        assert (one.time, one.status) == (other.time, other.status)
        assert one.contacts.feature_b.tolist() == other.contacts.feature_b.tolist()
        pose = placed(rng, 0.0, 8.0, 5.0)
        near, far = (tg.distance(RING.moving(Rest(pose)), land, device=device) for land in (field, tiles))
        assert (near.lower, near.upper) == (far.lower, far.upper)


def test_a_path_touches_where_its_stretches_do(rng, effort, device):
    field, hits = ground(rng), 0
    for _ in range(effort(6, 3)):
        poses = np.stack([placed(rng, 2.0, 7.0) for _ in range(6)])
        path = tg.Path(poses)
        hit = tg.first_contact(RING.moving(path), field, tolerance=1e-6, device=device)
        whole = tg.first_contact(RING.moving(path), field.to_mesh(), tolerance=1e-6, device=device)
        assert hit.status == whole.status or is_below(RING.at(poses[0]), field)
        if hit.status == Status.CONTACT:
            hits += 1
            assert hit.time == pytest.approx(whole.time, abs=1e-6)
    assert hits > 0


def test_far_over_the_ground_nothing_of_it_is_made_a_mesh(device):
    field = tg.Heightfield(np.zeros((200, 200)))
    pose = np.eye(4)
    pose[:3, 3] = 100.0, 100.0, 50.0
    assert not tg.first_contact(RING.moving(tg.Twist(pose, (90.0, 90.0, 0.0), np.zeros(3))), field, device=device)
    assert not GroundBlocks.of(field)._kept


@pytest.mark.parametrize("offset", [0.0, 1e6, -1e6])
@pytest.mark.parametrize("scale", [1e-2, 1.0, 1e2])
def test_far_from_the_origin_a_tolerance_that_nobody_gave_refuses_nothing(offset, scale, device):
    """A cube over a plane, in closed form, where coordinates have fewer digits than the cube wants."""
    plane = tg.Heightfield(np.full((12, 12), offset), 0.5 * scale, origin=(offset, offset, 0.0))
    cube, rounding = tg.generate.box((scale, scale, scale)), 1e-10 * abs(offset)
    for height in (0.9, 5.0, -0.75):
        pose = np.eye(4)
        pose[:3, 3] = offset + 2.5 * scale, offset + 2.5 * scale, offset + height * scale
        gap, below = (height - 0.5) * scale, height < 0.5
        falling = cube.moving(tg.Twist(pose, [0.0, 0.0, -scale], np.zeros(3)))
        found, near = tg.first_contact(falling, plane, device=device), tg.distance(falling, plane, device=device)
        if gap < scale:
            assert found.status == (Status.START if below else Status.CONTACT)
            assert found.time <= max(gap / scale, 0.0) + rounding / scale
            assert found.time >= max((gap - 2e-6 * scale - rounding) / scale, 0.0)
        else:
            assert found.status == Status.FREE
        assert near.lower <= max(gap, 0.0) + rounding
        assert near.upper >= max(gap, 0.0) - rounding
        assert near.upper - near.lower <= 1e-9 * scale + rounding
        still = tg.first_contact(cube.moving(tg.Rest(pose)), plane, device=device)
        assert still.status == (Status.START if below else Status.FREE)
        if below:
            with pytest.raises(UnsupportedError, match="below the ground"):
                tg.manifold(cube.moving(tg.Rest(pose)), plane, device=device)


def test_bad_questions_are_told_in_one_sentence(rng):
    field = ground(rng)
    with pytest.raises(UnsupportedError, match="ask with the Mesh"):
        tg.first_contact(field, RING)
    with pytest.raises(InputError, match="takes no options"):
        tg.first_contact(RING, field, options=tg.RigidOptions())
    with pytest.raises(InputError, match="knows the mode 'sound'"):
        tg.first_contact(RING, field, mode="exact")
    with pytest.raises(InputError, match="start must be"):
        tg.first_contact(RING, field, start="maybe")
    nothing = tg.Heightfield(np.zeros((3, 3)), holes=np.ones((2, 2), bool))
    with pytest.raises(InputError, match="holes only"):
        tg.distance(RING, nothing)
    assert not tg.first_contact(RING, nothing, device="cpu")
    wide = tg.TiledHeightfield(np.broadcast_to(np.zeros((1, 1)), (20_000, 20_000)), lowest=0.0, highest=0.0)
    with pytest.raises(CapacityError, match="more edges"):
        tg.first_contact(RING, wide)
