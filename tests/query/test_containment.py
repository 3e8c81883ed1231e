"""One solid inside another: against solid angles, rational arithmetic along another ray, and cases known by hand."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

import tangere as tg
from tangere.query.containment import contained_vertices
from tangere.runtime import InputError
from tangere.shape import generate
from tangere.shape.mesh import Mesh

BOX = generate.box([2.0, 2.0, 2.0])
HOLLOW = Mesh.join([generate.box([4.0, 4.0, 4.0]), Mesh(1.5 * BOX.vertices, BOX.faces[:, ::-1])], name="hollow")
SHAPES = {
    "box": BOX,
    "ball": generate.icosphere(subdivisions=2),
    "torus": generate.torus(160),
    "plate with a hole": generate.plate_with_hole(),
    "knot": generate.trefoil_knot(600),
    "hollow": HOLLOW,
    "overlapping pieces": Mesh.join([BOX, BOX.at([[1, 0, 0, 1.1], [0, 1, 0, 0.3], [0, 0, 1, 0.2], [0, 0, 0, 1]])]),
}


def pose(x: float = 0.0, y: float = 0.0, z: float = 0.0) -> np.ndarray:
    placed = np.eye(4)
    placed[:3, 3] = x, y, z
    return placed


def turned(rng: np.random.Generator, reach: float) -> np.ndarray:
    """A random pose with a shift of up to `reach`."""
    q, r = np.linalg.qr(rng.normal(size=(3, 3)))
    q *= np.sign(np.diag(r))
    if np.linalg.det(q) < 0.0:
        q[:, 0] *= -1.0
    placed = np.eye(4)
    placed[:3, :3], placed[:3, 3] = q, rng.uniform(-reach, reach, 3)
    return placed


def solid_angles(point: np.ndarray, triangles: np.ndarray) -> float:
    """The winding number about a point, by solid angles (van Oosterom and Strackee 1983)."""
    a, b, c = np.moveaxis(triangles - point, 1, 0)
    la, lb, lc = (np.linalg.norm(x, axis=1) for x in (a, b, c))
    top = np.einsum("fi,fi->f", a, np.cross(b, c))
    below = la * lb * lc + (a * b).sum(1) * lc + (b * c).sum(1) * la + (c * a).sum(1) * lb
    return float(np.arctan2(top, below).sum() / (2.0 * np.pi))


def rational_winding(point, triangles) -> int:
    """The winding number in rational arithmetic: crossings of a ray that goes askew and so meets no edge."""
    p, along = [Fraction(float(x)) for x in point], [Fraction(1), Fraction(10007, 31337), Fraction(-20011, 65537)]
    total = 0
    for rows in triangles:
        a, b, c = ([Fraction(float(x)) - q for x, q in zip(row, p, strict=True)] for row in rows)
        volumes = [determinant(along, u, v) for u, v in ((a, b), (b, c), (c, a))]
        whole, ahead = sum(volumes), determinant(a, b, c)
        if {v > 0 for v in volumes if v} == {whole > 0} and whole and ahead / whole > 0:
            assert all(volumes), "the ray meets an edge"
            total += 1 if whole > 0 else -1
    return total


def determinant(u, v, w):
    x = (v[1] * w[2] - v[2] * w[1], v[2] * w[0] - v[0] * w[2], v[0] * w[1] - v[1] * w[0])
    return sum(a * b for a, b in zip(u, x, strict=True))


@pytest.mark.parametrize("name", SHAPES)
def test_points_are_inside_where_solid_angles_say_so(name, rng, device, effort):
    solid, speck = SHAPES[name], Mesh(1e-6 * BOX.vertices, BOX.faces)
    reach = 0.6 * solid.extent
    count = effort(300, least=300)
    poses = np.stack([turned(rng, reach) for _ in range(count)] + [turned(rng, 0.1)])
    pairs = np.stack([np.arange(count), np.full(count, count)], axis=1)
    shape = np.array([0] * count + [1])
    found = contained_vertices((speck, solid), shape, poses, pairs, device) >= 0
    world = solid.at(poses[-1])
    points = (poses[:-1, :3, :3] @ speck.vertices[0])[:, :] + poses[:-1, :3, 3]
    expected = np.array([solid_angles(p, world.vertices[world.faces]) for p in points])
    clear = np.abs(expected - np.round(expected)) < 1e-6
    assert clear.mean() > 0.9
    assert (found == (np.round(expected) != 0))[clear].all()
    assert 0 < found.sum() < count


@given(st.integers(-8, 8), st.integers(-8, 8), st.integers(-8, 8), st.integers(-3, 3))
def test_points_in_line_with_corners_and_edges_are_decided_exactly(x, y, z, nudge):
    """The ray along x from such points runs into vertices, along edges and within faces."""
    point = np.array([np.nextafter(x / 4.0, np.inf) if nudge > 0 else x / 4.0, y / 4.0, z / 4.0 + nudge * 2.0**-52])
    on_surface = np.abs(point).max() == 1.0
    if on_surface:
        return
    corner = Mesh(2.0**-60 * (BOX.vertices - BOX.vertices[0]), BOX.faces)  # its first vertex is at its origin
    found = contained_vertices((corner, BOX), np.array([0, 1]), np.stack([pose(*point), np.eye(4)]), [[0, 1]], "cpu")
    assert (found[0] >= 0) == (rational_winding(point, BOX.vertices[BOX.faces]) != 0)
    assert (found[0] >= 0) == (np.abs(point).max() < 1.0)


def test_what_floating_point_cannot_decide_is_decided_in_fractions():
    """Numbers so small that products underflow; the point is in line with a vertex."""
    tiny = 1e-30
    solid = Mesh(tiny * BOX.vertices, BOX.faces)
    speck = Mesh(1e-5 * tiny * (BOX.vertices - BOX.vertices[0]), BOX.faces)
    for y, inside in ((0.0, True), (tiny, False), (-3.0 * tiny, False), (np.nextafter(tiny, 0.0), True)):
        poses = np.stack([pose(-0.5 * tiny, y, 0.25 * tiny), np.eye(4)])
        if y != tiny:
            assert (contained_vertices((speck, solid), np.array([0, 1]), poses, [[0, 1]], "cpu")[0] >= 0) == inside


def test_a_small_box_in_a_large_one_is_inside_only_when_they_are_solid(device):
    small, large = BOX, generate.box([6.0, 6.0, 6.0])
    assert not tg.intersects(small, large, device=device)
    assert tg.intersects(small, large, solid=True, device=device)
    assert tg.intersects(large, small, solid=True, device=device)
    assert tg.distance(small, large, device=device).upper == pytest.approx(2.0)
    found = tg.distance(small, large, solid=True, device=device)
    assert (found.lower, found.upper, found.kind) == (0.0, 0.0, tg.Kind.INSIDE)
    assert np.abs(found.point_a).max() == 1.0
    assert np.array_equal(found.point_a, found.point_b)
    assert found.triangle_a in small.topology.vertex_faces.of(0)


def test_a_box_in_the_hollow_of_another_is_free_and_one_in_its_wall_is_not():
    wall = Mesh(0.1 * BOX.vertices, BOX.faces)
    assert not tg.intersects(BOX, HOLLOW, solid=True, device="cpu")
    assert tg.intersects(wall.at(pose(1.75)), HOLLOW, solid=True, device="cpu")
    assert not tg.intersects(wall.at(pose(2.5)), HOLLOW, solid=True, device="cpu")


def test_one_of_two_pieces_inside_is_enough():
    both = Mesh.join([BOX.at(pose(20.0)), BOX])
    large = generate.box([6.0, 6.0, 6.0])
    assert tg.intersects(both, large, solid=True, device="cpu")
    assert tg.intersects(large, both, solid=True, device="cpu")
    assert not tg.intersects(both, large.at(pose(100.0)), solid=True, device="cpu")


def test_first_contact_of_a_part_that_begins_inside_is_start_and_inside():
    large = generate.box([6.0, 6.0, 6.0])
    leaving = BOX.moving(tg.Twist(pose(), [10.0, 0.0, 0.0], [0.0, 0.0, 0.0]))
    assert tg.first_contact(leaving, large, device="cpu").status == tg.Status.CONTACT
    hit = tg.first_contact(leaving, large, solid=True, device="cpu")
    assert (hit.status, hit.time, hit.time_upper) == (tg.Status.START, 0.0, 0.0)
    contacts = hit.contacts
    assert (len(contacts), contacts.kind[0], contacts.vertex_on[0]) == (1, tg.Kind.INSIDE, 0)
    assert contacts.gap[0] == pytest.approx(-2.0)
    assert np.linalg.norm(contacts.normal[0]) == pytest.approx(1.0)
    assert contacts.gap[0] == pytest.approx((contacts.point_a - contacts.point_b)[0] @ contacts.normal[0])
    other = tg.first_contact(large.moving(leaving.motion), BOX, solid=True, device="cpu").contacts
    assert (other.kind[0], other.vertex_on[0]) == (tg.Kind.INSIDE, 1)
    assert other.gap[0] == pytest.approx(-2.0)
    outside = tg.first_contact(BOX.moving(tg.Twist(pose(9.0), [1.0, 0, 0], [0, 0, 0])), large, solid=True, device="cpu")
    assert outside.status == tg.Status.FREE


def test_of_many_motions_those_that_begin_inside_are_start():
    large = generate.box([6.0, 6.0, 6.0])
    starts = np.stack([pose(x) for x in (0.0, 9.0, 1.5, 3.0, 9.0)])
    ways = np.array([[0.1, 0, 0], [1, 0, 0], [0.1, 0, 0], [1, 0, 0], [-9, 0, 0.0]])
    hits = tg.first_contact(BOX.moving(tg.Twist(starts, ways, np.zeros((5, 3)))), large, solid=True, device="cpu")
    named = [tg.Status(int(status)).name for status in hits.status]
    assert named == ["START", "FREE", "START", "START", "CONTACT"]
    assert [tg.Kind(int(kind)).name for kind in hits.kind[[0, 2]]] == ["INSIDE", "INSIDE"]
    assert hits.time[[0, 2]].tolist() == [0.0, 0.0]
    assert hits.kind[3] != tg.Kind.INSIDE


def test_a_deforming_mesh_that_begins_inside_is_start():
    large = generate.box([6.0, 6.0, 6.0])
    growing = BOX.moving(tg.Linear(1.2 * BOX.vertices))
    assert tg.first_contact(growing, large, device="cpu").status == tg.Status.FREE
    hit = tg.first_contact(growing, large, solid=True, device="cpu")
    assert (hit.status, hit.contacts.kind[0]) == (tg.Status.START, tg.Kind.INSIDE)


def test_of_a_list_the_pair_that_begins_inside_is_told():
    large, far = generate.box([6.0, 6.0, 6.0]), generate.box([1.0, 1.0, 1.0]).at(pose(50.0))
    moving = BOX.moving(tg.Twist(pose(), [0.5, 0.0, 0.0], [0.0, 0.0, 0.0]))
    assert tg.first_contact([far, large, moving], device="cpu").status == tg.Status.FREE
    hit = tg.first_contact([far, large, moving], solid=True, device="cpu")
    assert (hit.status, hit.contacts.kind[0]) == (tg.Status.START, tg.Kind.INSIDE)
    assert (hit.contacts.body_a[0], hit.contacts.body_b[0]) == (1, 2)
    allowed = tg.first_contact([far, large, moving], allowed=[(1, 2)], solid=True, device="cpu")
    assert allowed.status == tg.Status.FREE


def test_a_part_without_its_skin_still_counts_as_inside():
    large = generate.box([6.0, 6.0, 6.0])
    moving = BOX.moving(tg.Twist(pose(), [0.5, 0.0, 0.0], [0.0, 0.0, 0.0]))
    hit = tg.first_contact(moving, large, start="leaving", skin=0.01, solid=True, device="cpu")
    assert (hit.status, hit.contacts.kind[0]) == (tg.Status.START, tg.Kind.INSIDE)
    around = large.moving(moving.motion)  # the obstacle is inside the part
    assert tg.first_contact(around, BOX, start="leaving", skin=0.01, device="cpu").status == tg.Status.FREE
    assert tg.first_contact(around, BOX, start="leaving", skin=0.01, solid=True, device="cpu").status == tg.Status.START


def test_a_path_inside_an_obstacle_is_not_free_when_things_are_solid():
    large = generate.box([8.0, 8.0, 8.0])
    path = tg.Path(np.stack([pose(x) for x in (0.0, 1.0, 2.0, 9.0, 12.0)]))
    assert [int(s) for s in tg.check_path(BOX, large, path, device="cpu").segment_status] == [0, 0, 1, 0]
    check = tg.check_path(BOX, large, path, solid=True, device="cpu")
    assert [tg.Status(int(s)).name for s in check.segment_status] == ["START", "START", "START", "FREE"]
    assert (check.status, check.time, check.obstacle) == (tg.Status.START, 0.0, 0)
    assert check.contacts.kind[0] == tg.Kind.INSIDE
    assert (check.clearance.least, check.clearance.certain) == (0.0, 0.0)
    free = tg.check_path(BOX, large, tg.Path(np.stack([pose(9.0), pose(12.0)])), solid=True, device="cpu")
    assert free.status == tg.Status.FREE
    assert free.clearance.least == pytest.approx(4.0)


def test_distances_of_many_poses_are_zero_where_one_is_inside():
    large = generate.box([6.0, 6.0, 6.0])
    moved = BOX.moving(tg.Rest(np.stack([pose(x) for x in (0.0, 9.0, 3.0, 1.0)])))
    found = tg.distance(moved, large, solid=True, device="cpu")
    assert np.allclose(found.upper, [0.0, 5.0, 0.0, 0.0])
    assert [tg.Kind(int(kind)).name for kind in found.kind[[0, 2, 3]]] == ["INSIDE", "OVERLAP", "INSIDE"]


@pytest.mark.parametrize(
    ("mesh", "reason"),
    [
        (Mesh(BOX.vertices, BOX.faces[1:], name="open"), "3 edges with one triangle"),
        (Mesh(BOX.vertices, np.concatenate([BOX.faces[:1, ::-1], BOX.faces[1:]]), name="turned"), "opposite ways"),
        (Mesh(BOX.vertices, BOX.faces[:, ::-1], name="inside out"), "inside out"),
        (Mesh(BOX.vertices, np.concatenate([BOX.faces, BOX.faces]), name="double"), "more than two triangles"),
    ],
)
def test_meshes_without_an_inside_are_refused_with_the_reason(mesh, reason):
    poses = tg.Path(np.stack([pose(), pose(1.0)]))
    for ask in (
        lambda: tg.intersects(mesh, BOX, solid=True),
        lambda: tg.distance(BOX, mesh, solid=True),
        lambda: tg.first_contact(mesh, BOX, solid=True),
        lambda: tg.first_contact([BOX, mesh], solid=True),
        lambda: tg.check_path(BOX, [BOX, mesh], poses, solid=True),
    ):
        with pytest.raises(InputError, match=reason):
            ask()


def test_a_mesh_with_itself_is_refused():
    with pytest.raises(InputError, match="give b"):
        tg.intersects(BOX, solid=True)
    with pytest.raises(InputError, match="give b"):
        tg.first_contact(BOX.moving(tg.Linear(BOX.vertices)), solid=True)


@pytest.mark.slow
def test_generated_pairs_are_decided_as_by_solid_angles(rng):
    """500 pairs of turned shapes: surfaces apart, then any vertex of either."""
    names, seen = list(SHAPES), 0
    while seen < 500:
        a, b = (SHAPES[names[k]] for k in rng.integers(len(names), size=2))
        a = Mesh(rng.uniform(0.05, 0.5) * a.vertices, a.faces)
        at = turned(rng, 0.3 * b.extent)
        if tg.intersects(a.moving(tg.Rest(at)), b, device="cpu"):
            continue
        seen += 1
        world = a.at(at)
        expected = any(
            round(solid_angles(p, m.vertices[m.faces])) != 0 for x, m in ((world, b), (b, world)) for p in x.vertices
        )
        assert tg.intersects(a.moving(tg.Rest(at)), b, solid=True, device="cpu") == expected


# -- analytic bodies inside solid meshes -------------------------------------------------------------------------------

#: Their sizes, and a point of each other than the one that stands for it.
BODIES = {
    "sphere": (tg.Sphere(0.15), [0.0, 0.1, 0.0]),
    "capsule": (tg.Capsule(0.1, 0.3), [0.0, 0.0, 0.2]),
    "box": (tg.Box((0.1, 0.2, 0.05)), [0.1, -0.2, 0.05]),
    "cylinder": (tg.Cylinder(0.2, 0.1), [0.19, 0.0, 0.05]),
    "cone": (tg.Cone(0.2, 0.3), [0.0, 0.0, 0.15]),
    "hull": (tg.ConvexMesh(generate.box([0.2, 0.3, 0.1]).at(pose(5.0))), [5.1, 0.15, 0.05]),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_body_is_inside_a_solid_mesh_where_solid_angles_of_another_point_of_it_say_so(name, rng, device, effort):
    body, point = BODIES[name]
    solid, count = generate.torus(600, radius=1.0, tube=0.5), effort(200, 40)
    poses = np.tile(np.eye(4), (count, 1, 1))
    poses[:, :3, :3] = Rotation.random(count, random_state=rng).as_matrix()
    middle = rng.uniform(-1.6, 1.6, (count, 3)) * [1.0, 1.0, 0.4]
    inner = np.array(body.hull.corners.mean(axis=0) if name == "hull" else [0.0, 0.0, 0.0])
    poses[:, :3, 3] = middle - poses[:, :3, :3] @ inner
    surfaces = tg.distance(body.at(poses), solid, device=device)
    points = np.einsum("nij,j->ni", poses[:, :3, :3], point) + poses[:, :3, 3]
    triangles = solid.vertices[solid.faces]
    inside = np.array([abs(solid_angles(p, triangles)) > 0.5 for p in points]) & (surfaces.lower > 0.0)
    assert inside.sum() > 5
    assert (~inside & (surfaces.lower > 0.0)).sum() > 5
    for a, b, row in ((body.at(poses), solid, 0), (solid, body.at(poses), 1)):
        found = tg.distance(a, b, solid=True, device=device)
        assert np.array_equal(found.kind == tg.Kind.INSIDE, inside)
        assert np.array_equal(found.upper, np.where(inside, 0.0, surfaces.upper))
        assert np.array_equal(found.lower, np.where(inside, 0.0, surfaces.lower))
        mesh_side = (found.triangle_b, found.triangle_a)[row]
        assert ((mesh_side[inside] >= 0) & (mesh_side[inside] < len(solid.faces))).all()
    still = tg.Twist(poses, np.zeros((count, 3)), np.zeros((count, 3)))
    hits = tg.first_contact(body.moving(still), solid, solid=True, device=device)
    assert np.array_equal(hits.status == tg.Status.START, inside | (surfaces.upper <= 0.0))
    for k in (np.flatnonzero(inside)[0], np.flatnonzero(~inside & (surfaces.lower > 0.0))[0]):
        one = body.at(poses[k])
        assert tg.intersects(one, solid, solid=True, device=device) == inside[k]
        assert not tg.intersects(one, solid, device=device)
        assert (tg.distance(one, solid, solid=True, device=device).kind == tg.Kind.INSIDE) == inside[k]
        hit = tg.first_contact(one, solid.moving(tg.Twist(np.eye(4), [0.0] * 3, [0.0] * 3)), solid=True, device=device)
        assert (hit.status == tg.Status.START) == inside[k]
        assert [int(kind) for kind in hit.contacts.kind] == [int(tg.Kind.INSIDE)] * int(inside[k])


def test_a_mesh_inside_a_body_and_two_bodies_are_as_ever_when_things_are_solid():
    assert tg.intersects(BOX, tg.Sphere(9.0), solid=True, device="cpu")
    assert tg.distance(BOX, tg.Sphere(9.0), solid=True, device="cpu").kind == tg.Kind.OVERLAP
    assert tg.intersects(tg.Sphere(0.1), tg.Box((1.0, 1.0, 1.0)), solid=True, device="cpu")
    away = tg.Sphere(0.1).at(pose(9.0))
    assert tg.distance(away, tg.Box((1.0, 1.0, 1.0)), solid=True, device="cpu").upper == pytest.approx(7.9)
    leaving = tg.Box((1.0, 1.0, 1.0)).moving(tg.Twist(pose(), [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]))
    assert tg.first_contact(away, leaving, solid=True, device="cpu").status == tg.Status.FREE


def test_a_mesh_without_an_inside_beside_a_body_is_refused():
    sheet = Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
    for question in (tg.distance, tg.intersects, tg.first_contact):
        with pytest.raises(InputError, match="has no inside"):
            question(tg.Sphere(0.1), sheet, solid=True, device="cpu")


def test_lists_that_mix_kinds_know_who_begins_inside_a_solid_mesh(device):
    """A ball in a large box, a box in a large ball, ground far below, and a mesh along a path or deforming."""
    large = Mesh(5.0 * BOX.vertices, BOX.faces, name="large")
    ground = tg.Heightfield(np.full((3, 3), -50.0), spacing=50.0, origin=(-50.0, -50.0, 0.0))
    ball, far = tg.Sphere(0.1).at(pose(0.5)), tg.Capsule(0.1, 0.5).at(pose(40.0))
    going = tg.Twist(pose(), [0.0, 0.5, 0.0], [0.0, 0.0, 0.0])
    for hull in (large.moving(going), large.moving(tg.Linear(large.vertices + 0.1))):
        for things, pair in (([far, ball, ground, hull], (1, 3)), ([hull, ground, far, ball], (0, 3))):
            assert tg.first_contact(things, device=device).status == tg.Status.FREE
            hit = tg.first_contact(things, solid=True, device=device)
            assert (hit.status, hit.time, hit.time_upper) == (tg.Status.START, 0.0, 0.0)
            assert (int(hit.contacts.body_a[0]), int(hit.contacts.body_b[0])) == pair
            assert hit.contacts.kind[0] == tg.Kind.INSIDE
            assert hit.contacts.point_a[0] != pytest.approx(hit.contacts.point_b[0])
            parted = tg.first_contact(things, allowed=[pair], solid=True, device=device)
            assert parted.status == tg.Status.FREE
    two = tg.first_contact([far, ground, large], [ball], solid=True, device=device)
    assert (two.status, int(two.contacts.body_a[0]), int(two.contacts.body_b[0])) == (tg.Status.START, 2, 0)
    alone = tg.first_contact(ball, [far, large], solid=True, device=device)
    assert (alone.status, int(alone.contacts.body_a[0]), int(alone.contacts.body_b[0])) == (tg.Status.START, 0, 1)
    walk = tg.Path(np.stack([pose(0.5), pose(0.6)]))
    assert tg.first_contact([ball.moving(walk), large], solid=True, device=device).status == tg.Status.START
    around = tg.first_contact([BOX.moving(going), tg.Sphere(30.0)], solid=True, device=device)
    assert around.status == tg.Status.START
    with pytest.raises(InputError, match=r"body 1 of the list.*no inside"):
        tg.first_contact([ball, Mesh(BOX.vertices, BOX.faces[1:]), ground], solid=True)
