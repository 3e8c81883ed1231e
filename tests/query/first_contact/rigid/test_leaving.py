"""Parts that start in contact: what is shallower than a skin is ignored, what is deeper is told.

The oracle samples the motion: points of the obstacles, and how deep they get into the part (`signed_distance`).
"""

from __future__ import annotations

import numpy as np
import pytest
import trimesh
from scipy.spatial.transform import Rotation

import tangere as tg
from tangere.query.first_contact.skin import Skin, mesh_without_skin
from tangere.shape.mesh import chord_error, inset


def mesh_of(solid, name="part"):
    solid.merge_vertices()
    return tg.Mesh(solid.vertices, solid.faces, name=name)


def cylinder(radius, low, high, sections, turn=0.0):
    solid = trimesh.creation.cylinder(radius=radius, height=high - low, sections=sections)
    solid.apply_transform(trimesh.transformations.rotation_matrix(turn, (0, 0, 1)))
    solid.apply_translation((0.0, 0.0, 0.5 * (low + high)))
    return solid


def bored_plate(radius, sections, size=0.1, thickness=0.02):
    """A square plate with a bore of a regular polygon with corners at `radius`, from z = 0 to z = thickness."""
    angle = 2.0 * np.pi * np.arange(sections) / sections
    inner = radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    outer = inner / np.abs(inner).max(axis=1, keepdims=True) * 0.5 * size
    rings = [np.column_stack([ring, np.full(sections, z)]) for z in (0.0, thickness) for ring in (inner, outer)]
    i, j = np.arange(sections), (np.arange(sections) + 1) % sections
    low_in, low_out, high_in, high_out = (k * sections for k in range(4))
    quads = [
        (low_in + i, high_in + i, high_in + j, low_in + j),
        (low_out + j, high_out + j, high_out + i, low_out + i),
        (low_out + i, low_in + i, low_in + j, low_out + j),
        (high_in + i, high_out + i, high_out + j, high_in + j),
    ]
    faces = np.concatenate([np.stack(pick, axis=1) for a, b, c, d in quads for pick in ((a, b, c), (a, c, d))])
    mesh = tg.Mesh(np.concatenate(rings), faces, name="plate")
    assert mesh.topology.is_closed
    if mesh.mass_properties().volume < 0.0:
        mesh = tg.Mesh(mesh.vertices, faces[:, ::-1], name="plate")
    return mesh


def bolt():
    """A head on a plate and a shank with play: one closed surface of revolution."""
    profile = [(0.0, -0.01), (0.0098, -0.01), (0.0098, 0.02), (0.015, 0.02), (0.015, 0.028), (0.0, 0.028)]
    return mesh_of(trimesh.creation.revolve(np.array(profile), sections=32), "bolt")


def rails():
    """A plate that lies between two rails and on a floor, with no play at all."""
    block = [tg.generate.box((0.02, 0.2, 0.04)), tg.generate.box((0.2, 0.2, 0.02))]
    places = [(block[0], (-0.06, 0.0, 0.0)), (block[0], (0.06, 0.0, 0.0)), (block[1], (0.0, 0.0, -0.03))]
    return tg.generate.box((0.1, 0.1, 0.04)), [block_.replace(vertices=block_.vertices + at) for block_, at in places]


LID = tg.generate.box((0.1, 0.1, 0.005))
LID = LID.replace(vertices=LID.vertices + [0.0, 0.0, 0.0625])
CASES = {
    "box on a table": lambda: (mesh_of(trimesh.creation.box((0.04, 0.04, 0.04))), -0.02),
    "peg in its own hole": lambda: (mesh_of(cylinder(0.01, 0.0, 0.03, 32)), None),
    "peg of 24 sides in a hole of 48": lambda: (mesh_of(cylinder(0.01, 0.0, 0.03, 24)), None),
    "turned peg, press fit": lambda: (mesh_of(cylinder(0.01, 0.0, 0.03, 32, np.radians(3.0))), None),
    "bolt": lambda: (bolt(), None),
}
HOLES = {"peg of 24 sides in a hole of 48": 48}


def scene(name):
    """The part, its seat, and where the top of the part is."""
    part, _ = CASES[name]()
    if name == "box on a table":
        table = tg.generate.box((0.2, 0.2, 0.02))
        return part, table.replace(vertices=table.vertices - [0.0, 0.0, 0.03]), float(part.vertices[:, 2].max())
    return part, bored_plate(0.01, HOLES.get(name, 32)), float(part.vertices[:, 2].max())


def points_on(mesh, rng, count):
    """Vertices, and points at random on edges and faces, (n, 3)."""
    corners = mesh.vertices[mesh.faces]
    area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    face = rng.choice(len(corners), count, p=area / area.sum())
    on_faces = np.einsum("ni,nij->nj", rng.dirichlet((1.0, 1.0, 1.0), count), corners[face])
    ends, share = mesh.vertices[mesh.edges[rng.integers(len(mesh.edges), size=count)]], rng.random((count, 1))
    return np.concatenate([mesh.vertices, on_faces, share * ends[:, 0] + (1.0 - share) * ends[:, 1]])


def depths(points, part, pose):
    """How deep points are in a part that is somewhere, at least -1, (n,)."""
    seen = (points - pose[:3, 3]) @ pose[:3, :3]
    near = np.flatnonzero(((seen > part.bounds[0]) & (seen < part.bounds[1])).all(axis=1))
    deep = np.full(len(points), -1.0)
    if len(near):
        deep[near] = -tg.signed_distance(seen[near], part, device="cpu").distance
    return deep


def lifted(part, height=0.1):
    return part.moving(tg.Twist(np.eye(4), (0.0, 0.0, height), (0.0, 0.0, 0.0)))


@pytest.mark.parametrize("name", CASES)
def test_mounted_parts_come_free_but_for_a_skin_and_meet_a_lid_when_they_do(name):
    part, seat, top = scene(name)
    plain = tg.first_contact(lifted(part), seat, device="cpu")
    assert plain.time == 0.0
    hit = tg.first_contact(lifted(part), seat, start="leaving", device="cpu")
    assert hit.status == tg.Status.FREE, name
    assert f"free but for {hit.skin.depth:.3g} m ({hit.skin.deepest:.3g} m at edges)" in repr(hit)
    true = (0.06 - top) / 0.1
    hit = tg.first_contact(lifted(part), LID, start="leaving", device="cpu")
    assert hit.status == tg.Status.CONTACT
    assert true <= hit.time + 1e-6 <= true + 1.01 * hit.skin.depth / 0.1 + 1e-5


def test_a_plate_comes_out_between_rails_and_a_stop_is_told():
    plate, guides = rails()
    path = tg.Path(np.stack([np.eye(4), np.eye(4) + np.pad([[0.3]], ((1, 2), (3, 0)))]))
    check = tg.check_path(plate, guides, path, start="leaving", device="cpu")
    assert not check
    assert "free but for" in repr(check)
    stop = tg.generate.box((0.02, 0.02, 0.02))
    stop = stop.replace(vertices=stop.vertices + [0.05, 0.2, 0.0])
    check = tg.check_path(plate, [*guides, stop], path, start="leaving", device="cpu")
    assert check.status == tg.Status.CONTACT
    assert check.time * 0.3 == pytest.approx(0.14, abs=2.0 * check.skin.depth)
    assert check.contacts.body_b[0] == 3


def test_the_clearance_of_a_part_without_its_skin_is_still_that_of_the_part():
    """A box glides 10 mm above a table; without its skin of 2 mm it would be 12 mm."""
    poses = np.tile(np.eye(4), (2, 1, 1))
    poses[:, :3, 3] = (-1.0, 0.0, 1.01), (1.0, 0.0, 1.01)
    box, table = tg.generate.box(), tg.generate.box((4.0, 4.0, 1.0))
    check = tg.check_path(
        box, table, tg.Path(poses), start="leaving", skin=2e-3, accuracy=1e-3, separation=0.009, device="cpu"
    )
    near = check.clearance
    assert not check
    assert 0.01 - check.skin.deepest < near.certain <= 0.01 <= near.least <= 0.012 + 1e-9
    assert (near.between <= 0.01).all()
    assert (near.lower <= 0.01).all()
    assert f"free but for {check.skin}" in check._repr_html_()
    shown = float(repr(check).split("clearance ")[1].split(" to")[0])
    assert near.certain - 1e-8 < shown <= near.certain  # rounded down: what is shown is certified too


def test_deeper_than_the_deepest_is_always_told_and_shallower_than_the_depth_never():
    """A part runs into balls at random places to random depths; the depth is measured by sampling."""
    rng = np.random.default_rng(2)
    part = tg.generate.bumpy_sphere(980, bumps=0.1)
    told = {True: 0, False: 0}
    for _ in range(60):
        skin = 10.0 ** rng.uniform(-3.0, -1.7)
        direction = rng.normal(size=3)
        direction /= np.linalg.norm(direction)
        pin = tg.generate.icosphere(subdivisions=1, radius=0.02)
        pin = pin.replace(vertices=pin.vertices + 3.0 * direction)
        way = -direction * rng.uniform(1.6, 2.3)
        move = tg.Twist(np.eye(4), -way, (0.0, 0.0, 0.0))
        found = tg.first_contact(part.moving(move), pin, start="leaving", skin=skin, device="cpu")
        depth = max(
            -tg.signed_distance(pin.vertices + time * way, part, device="cpu").distance.min()
            for time in np.linspace(0.0, 1.0, 60)
        )
        if depth > found.skin.deepest:
            assert found
            told[True] += 1
        if depth < skin - 4e-6:  # the pin may get as near as the tolerance
            assert not found
            told[False] += 1
    assert min(told.values()) > 5


MOUNTED = {name: lambda name=name: scene(name)[:2] for name in CASES}
MOUNTED["plate between rails"] = lambda: (rails()[0], tg.Mesh.join(rails()[1], name="rails"))


@pytest.mark.parametrize("name", MOUNTED)
def test_while_it_is_free_but_for_the_skin_nothing_gets_deeper_and_what_is_told_is_as_deep(name, rng, effort):
    """Mounted parts are pulled, pushed aside and tilted; points of the seat are followed through the part."""
    part, seat = MOUNTED[name]()
    points = points_on(seat, rng, 1000)
    out = np.array([0.0, 0.2, 0.0] if name == "plate between rails" else [0.0, 0.0, 0.1])
    told = 0
    for attempt in range(effort(12, least=3)):
        aside = 10.0 ** rng.uniform(-6.0, -1.5) if attempt else 0.0
        way = out if attempt != 1 else -out  # once against the seat, if it is below
        motion = tg.Twist(np.eye(4), way + rng.normal(0.0, aside, 3), rng.normal(0.0, 10.0 * aside, 3))
        hit = tg.first_contact(part.moving(motion), seat, start="leaving", device="cpu")
        assert hit.status != tg.Status.START
        for time in np.linspace(0.0, min(hit.time, 1.0), 40):
            assert depths(points, part, motion.pose(time)).max() <= hit.skin.deepest * (1.0 + 1e-6)
        assert attempt or not hit  # straight out
        if hit:
            told += 1
            tolerance = hit.skin.tolerance(None, max(part.extent, seat.extent))
            at = depths(hit.contacts.point_b, part, motion.pose(hit.time)).max()
            assert at >= hit.skin.depth - 2.0 * tolerance
    assert told > 0


@pytest.mark.parametrize("way", [(0.0, 0.0, 0.3), (-0.3, 0.0, 0.0)])
def test_the_window_lifter_pressed_flush_into_its_door_comes_out_as_it_did_with_play(way):
    """The part is set on a flat face of the door, half a skin deep; from there the way that was free is free still."""
    task = tg.generate.window_lifter()
    assert len(task.part.faces) + len(task.fixed.faces) >= 20_000
    pushed = task.part.moving(tg.Twist(task.start, way, (0, 0, 0)))
    stop = tg.first_contact(pushed, task.fixed, options=tg.RigidOptions(contacts="all"), device="cpu")
    assert len(stop.contacts) > 20
    skin = 2e-4
    flush = task.start.copy()
    flush[:3, 3] += np.array(way) * stop.time + 0.5 * skin * np.sign(way)
    points = points_on(task.fixed, np.random.default_rng(0), 100_000)

    def deepest(path, until=1.0):
        return max(depths(points, task.part, path.pose(time)).max() for time in np.linspace(0.0, until, 60))

    def checked(poses, **settings):
        path = tg.Path(np.concatenate([flush[None], poses]))
        return tg.check_path(task.part, task.fixed, path, instants=1, device="cpu", **settings)

    assert checked(task.free_path).status == tg.Status.START
    check = checked(task.free_path, start="leaving", skin=skin)
    assert not check, check
    assert 0.49 * skin < deepest(check.path) <= check.skin.deepest
    blocked = checked(task.touching_path, start="leaving", skin=skin)
    assert blocked.status == tg.Status.CONTACT
    assert deepest(blocked.path, blocked.time) <= blocked.skin.deepest
    # The motor is made of pieces: at a seam the face of another piece may be a little nearer than the one touched.
    assert depths(blocked.contacts.point_b, task.part, blocked.pose).max() > 0.9 * skin


def test_chord_errors_are_the_sagitta_of_round_surfaces_and_nothing_else():
    for sections in (12, 24, 64):
        peg = mesh_of(cylinder(0.01, 0.0, 0.05, sections))
        assert chord_error(peg) == pytest.approx(0.01 * (1.0 - np.cos(np.pi / sections)), rel=1e-6)
    assert chord_error(tg.generate.box()) == 0.0
    assert chord_error(mesh_of(cylinder(0.01, 0.0, 0.05, 6))) == 0.0  # a hexagon is meant
    turned = mesh_of(cylinder(0.01, 0.0, 0.05, 24))
    turned = turned.replace(vertices=turned.vertices @ Rotation.from_rotvec((0.3, 1.0, -0.4)).as_matrix().T + 7.0)
    assert chord_error(turned) == pytest.approx(0.01 * (1.0 - np.cos(np.pi / 24)), rel=1e-5)


def test_every_face_of_an_inset_mesh_lies_deeper_and_none_farther_than_is_said():
    for mesh in (tg.generate.box(), tg.generate.gear(), tg.generate.bumpy_sphere(980), tg.generate.comb()):
        depth = 1e-3 * mesh.extent
        taken = inset(mesh, depth)
        after = mesh.replace(vertices=taken.vertices)
        inwards = np.einsum("fi,fci->fc", mesh.face_normals, mesh.vertices[mesh.faces] - after.vertices[mesh.faces])
        assert inwards.min() >= depth * (1.0 - 1e-9)
        assert np.linalg.norm(after.vertices - mesh.vertices, axis=1).max() <= taken.farthest


COARSE = mesh_of(cylinder(0.01, 0.0, 0.001, 10))


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: mesh_without_skin(tg.generate.box((1.0, 1.0, 0.01)), [], 0.006), "thinner than two skins"),
        (lambda: mesh_without_skin(tg.generate.sheet(50), [], 0.001), "has no inside"),
        (lambda: mesh_without_skin(tg.generate.box(), [], -1.0), "skin"),
        (lambda: tg.first_contact(tg.generate.box(), tg.generate.box(), skin=0.1, device="cpu"), "goes with start"),
        (
            lambda: tg.first_contact(
                tg.generate.box().moving(tg.Linear(tg.generate.box().vertices)), tg.generate.box(), start="leaving"
            ),
            "rigid mesh that comes off",
        ),
        (lambda: mesh_without_skin(COARSE, [COARSE], None), "so coarse"),
    ],
)
def test_what_has_no_skin_is_refused_with_a_reason(ask, message):
    with pytest.raises(tg.TangereError, match=message):
        ask()


def test_a_part_of_pieces_that_come_apart_is_refused():
    """Without its skin it would come apart: a sheet could pass between two drums that stand on each other."""
    drum = cylinder(0.5, 0.0, 1.0, 32)
    for height in (1.0, 0.98):
        other = cylinder(0.5, 0.0, 1.0, 32, turn=0.05)
        other.apply_translation((0.0, 0.0, height))
        stack = mesh_of(drum + other, "stack")
        with pytest.raises(tg.TangereError, match="they come apart"):
            mesh_without_skin(stack, [], 0.011)
    assert mesh_without_skin(stack, [], 0.005)[1].depth == 0.005  # they still overlap by 10 mm
    apart = drum.copy()
    apart.apply_translation((0.0, 0.0, 1.5))
    assert mesh_without_skin(mesh_of(drum + apart), [], 0.01)[1].thinner == 0


def test_where_a_skin_is_too_thick_for_an_edge_it_is_thinner_and_that_is_told():
    """A tiny step on a large block: the block loses its skin, the step keeps what it needs to stay a step."""
    block = trimesh.creation.box((1.0, 1.0, 1.0)).subdivide().subdivide()
    step = np.argmax(block.vertices @ (1.0, 1.0, 1.0))
    ring = np.flatnonzero(np.linalg.norm(block.vertices - block.vertices[step], axis=1) < 0.3)
    block.vertices[ring] = block.vertices[step] + 0.01 * (block.vertices[ring] - block.vertices[step])
    part = mesh_of(block, "block")
    taken = inset(part, 0.02)
    assert 0 < taken.thinner <= 0.5 * len(part.vertices)
    bend = part.replace(vertices=taken.vertices)
    before, after = (mesh.vertices[part.edges[:, 1]] - mesh.vertices[part.edges[:, 0]] for mesh in (part, bend))
    assert (np.einsum("ij,ij->i", before, after) > 0.0).mean() > 0.9
    assert np.linalg.norm(bend.vertices - part.vertices, axis=1).max() <= taken.farthest


def test_a_shell_thinner_than_two_skins_is_refused():
    """No edge of its inner or outer ball turns round: the two change places."""
    ball = tg.generate.icosphere(subdivisions=3)
    inner = tg.Mesh(0.995 * ball.vertices, ball.faces[:, ::-1])
    shell = tg.Mesh.join([ball, inner], name="shell")
    assert inset(shell, 2e-3).thinner == 0
    with pytest.raises(tg.TangereError, match="nothing is left"):
        inset(shell, 4e-3)


def test_a_mesh_that_is_inside_out_is_refused():
    box = tg.generate.box()
    with pytest.raises(tg.TangereError, match="inside out"):
        inset(tg.Mesh(box.vertices, box.faces[:, ::-1]), 0.01)


def test_a_mesh_keeps_a_few_skins_and_no_more():
    """Parts of many jobs are asked about with a skin each: their meshes must not pile up."""
    block = tg.generate.box()
    thinner = [mesh_without_skin(block, (), 1e-3 * (1 + k))[0] for k in range(20)]
    assert len(block.cache[Skin]) <= 4
    assert mesh_without_skin(block, (), 20e-3)[0] is thinner[-1]
    assert np.array_equal(mesh_without_skin(block, (), 1e-3)[0].vertices, thinner[0].vertices)
