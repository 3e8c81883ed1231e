"""trimesh's collision manager: its answers, without python-fcl."""

from __future__ import annotations

import numpy as np
import pytest
import trimesh
from scipy.spatial import ConvexHull
from trimesh import transformations

import tangere as tg
from oracles.rigid_distances import mesh_distances
from oracles.triangles_meet import exact_meet
from tangere.compat import CollisionManager, collision_manager, scene_to_collision
from tangere.compat.triangle_contacts import contact_depths, contact_points

BOX = trimesh.creation.box()
BALL = trimesh.creation.icosphere(subdivisions=2)
RING = trimesh.creation.torus(1.0, 0.3, 12, 8)
SHAPES = [
    BOX,
    BALL,
    RING,
    trimesh.creation.cylinder(0.4, 2.0, sections=16),
    trimesh.creation.annulus(0.5, 1.0, 0.5, sections=24),
    trimesh.creation.cone(0.7, 1.5, sections=12),
    trimesh.util.concatenate([BOX, trimesh.creation.icosphere(1).apply_translation([2, 0, 0])]),
]
SMALL = [BOX, trimesh.creation.icosphere(0), trimesh.creation.torus(1.0, 0.3, 6, 4)]


def at(x=0.0, y=0.0, z=0.0):
    pose = np.eye(4)
    pose[:3, 3] = x, y, z
    return pose


def random_scene(rng, most=12, shapes=SHAPES):
    """Up to so many shapes of various sizes, between far apart and deep in each other: name -> mesh, pose."""
    scene, spread = {}, rng.uniform(1.0, 6.0)
    for i in range(rng.integers(2, most)):
        pose = transformations.random_rotation_matrix(rng.random(3))
        pose[:3, 3] = rng.uniform(-spread, spread, 3)
        mesh = shapes[rng.integers(len(shapes))].copy()
        scene[f"part {i}"] = mesh.apply_scale(rng.uniform(0.1, 2.0)), pose
    return scene


def filled(manager, scene):
    for name, (mesh, pose) in scene.items():
        manager.add_object(name, mesh, pose)
        manager.set_transform(name, pose)  # add_object of trimesh rounds to single precision
    return manager


def true_distance(one, other):
    """Of the surfaces of two (mesh, pose), by brute force over all triangles."""
    meshes = [tg.Mesh(mesh.vertices, mesh.faces) for mesh, _ in (one, other)]
    return float(mesh_distances(*meshes, one[1][None], other[1][None])[0])


def nearest_by_brute_force(pairs):
    return min(true_distance(one, other) for one, other in pairs)


def same_distance(ours, theirs, pairs):
    """Ours is fcl's, or fcl's iteration stopped early and ours is the true one; below zero fcl's depends on order."""
    if ours > 0.0 and abs(ours - theirs) > 1e-5:
        return abs(ours - nearest_by_brute_force(pairs)) < 1e-9
    return (ours > 0.0) == (theirs > 0.0)


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_random_scenes_are_answered_as_by_trimesh_with_fcl(first):
    pytest.importorskip("fcl", reason="python-fcl is not installed")
    from trimesh.collision import CollisionManager as Peer

    collisions = 0
    for seed in range(first, first + 50):
        rng = np.random.default_rng(seed)
        scene, more = random_scene(rng), random_scene(rng)
        mesh, pose = more["part 0"]
        ours, theirs = filled(CollisionManager(), scene), filled(Peer(), scene)
        assert ours.in_collision_internal() == theirs.in_collision_internal(), seed
        found = ours.in_collision_internal(return_names=True)
        assert found == theirs.in_collision_internal(return_names=True), seed
        collisions += len(found[1])
        single = ours.in_collision_single(mesh, pose, return_names=True)
        assert single == theirs.in_collision_single(mesh, pose, return_names=True), seed
        our_others, their_others = (filled(manager(), more) for manager in (CollisionManager, Peer))
        both = ours.in_collision_other(our_others, return_names=True)
        assert both == theirs.in_collision_other(their_others, return_names=True), seed
        things, others = list(scene.values()), list(more.values())
        pairs = [(things[i], things[j]) for j in range(len(things)) for i in range(j)]
        assert same_distance(ours.min_distance_internal(), theirs.min_distance_internal(), pairs), seed
        near = ours.min_distance_single(mesh, pose), theirs.min_distance_single(mesh, pose)
        assert same_distance(*near, [(thing, (mesh, pose)) for thing in things]), seed
        near = ours.min_distance_other(our_others), theirs.min_distance_other(their_others)
        assert same_distance(*near, [(one, other) for one in things for other in others]), seed
    assert collisions > 50


@pytest.mark.parametrize("seed", range(6))
def test_the_depth_of_two_solids_is_that_of_fcl(seed):
    pytest.importorskip("fcl", reason="python-fcl is not installed")
    from trimesh.collision import CollisionManager as Peer

    rng = np.random.default_rng(seed)
    solids = [BOX, trimesh.creation.icosphere(1), trimesh.creation.cone(0.7, 1.5, sections=12)]
    scene = {name: (solids[rng.integers(3)], np.eye(4)) for name in "ab"}
    for name, (mesh, _) in scene.items():
        pose = transformations.random_rotation_matrix(rng.random(3))
        pose[:3, 3] = rng.uniform(-0.2, 0.2, 3)
        scene[name] = mesh, pose
    ours, theirs = (filled(manager(), scene).min_distance_internal() for manager in (CollisionManager, Peer))
    assert ours < 0.0
    assert ours == pytest.approx(theirs, rel=2e-2)  # fcl's depth is good to a part in a hundred or so
    assert ours >= theirs - 1e-6 * abs(theirs)  # the least depth is the smallest


@pytest.mark.parametrize("seed", range(12))
def test_collisions_are_those_of_rational_arithmetic_and_of_solids(seed):
    rng = np.random.default_rng(seed)
    scene = random_scene(rng, 6, SMALL)
    manager = filled(CollisionManager(), scene)
    names = list(scene)
    expected = {
        (names[i], names[j])
        for j in range(len(names))
        for i in range(j)
        if truly_collide(scene[names[i]], scene[names[j]])
    }
    assert manager.in_collision_internal(return_names=True) == (bool(expected), expected)
    contacts = manager.in_collision_internal(return_data=True)[1]
    assert {tuple(sorted(contact.names)) for contact in contacts} == expected
    mesh, pose = random_scene(rng, 3, SMALL)["part 0"]
    touched = {name for name in names if truly_collide(scene[name], (mesh, pose))}
    assert manager.in_collision_single(mesh, pose, return_names=True) == (bool(touched), touched)


def truly_collide(one, other):
    a, b = (world(mesh, pose)[mesh.faces] for mesh, pose in (one, other))
    for i, j in np.argwhere(((a.min(1)[:, None] <= b.max(1)) & (b.min(1) <= a.max(1)[:, None])).all(-1)):
        if exact_meet(a[i], b[j]):
            return True
    return holds(one, other) or holds(other, one)


def holds(one, other):
    """Whether a convex mesh has a vertex of the other inside, where their surfaces do not meet."""
    if not one[0].is_convex:
        return False
    planes = ConvexHull(world(*one)).equations
    return bool((world(*other) @ planes[:, :3].T + planes[:, 3] < 0.0).all(axis=1).any())


def world(mesh, pose):
    return mesh.vertices @ pose[:3, :3].T + pose[:3, 3]


@pytest.mark.parametrize("seed", range(8))
def test_distances_are_those_of_brute_force(seed):
    rng = np.random.default_rng(100 + seed)
    scene = {name: (mesh, pose @ at(4.0 * i)) for i, (name, (mesh, pose)) in enumerate(random_scene(rng).items())}
    manager = filled(CollisionManager(), scene)
    names = list(scene)
    table = {
        (names[i], names[j]): true_distance(scene[names[i]], scene[names[j]])
        for j in range(len(names))
        for i in range(j)
        if not truly_collide(scene[names[i]], scene[names[j]])
    }
    meeting = manager.in_collision_internal(return_names=True)[1]
    for pair in meeting:
        manager.allow(*pair)
    least, nearest, data = manager.min_distance_internal(return_names=True, return_data=True)
    assert least == pytest.approx(min(table.values()), abs=1e-9)
    assert nearest == tuple(sorted(min(table, key=table.get)))
    assert np.linalg.norm(data.point(nearest[0]) - data.point(nearest[1])) == pytest.approx(least, abs=1e-9)
    assert data.names == set(nearest)
    assert data.distance == least
    for name in nearest:
        mesh, pose = scene[name]
        local = np.linalg.inv(pose) @ [*data.point(name), 1.0]
        triangle = mesh.triangles[data.index(name)][None]
        on_triangle = trimesh.triangles.closest_point(triangle, local[None, :3])
        assert np.allclose(on_triangle, local[:3], atol=1e-9)
    one = names[0]
    of_one = [value for pair, value in table.items() if one in pair]
    if of_one:
        assert manager.min_distance_internal(one) == pytest.approx(min(of_one), abs=1e-9)


def test_a_convex_mesh_is_a_solid_and_another_mesh_a_surface():
    manager = CollisionManager()
    manager.add_object("ring", RING)
    inside_the_tube = BALL.copy().apply_scale(0.05)
    assert not manager.in_collision_single(inside_the_tube, at(1.0))
    assert manager.min_distance_single(inside_the_tube, at(1.0)) > 0.0
    assert manager.in_collision_single(BALL.copy().apply_scale(3.0))  # the ring within a ball
    _, (contact,) = manager.in_collision_single(BALL.copy().apply_scale(3.0), return_data=True)
    assert (contact.index("ring"), contact.index("__external")) == (-1, -1)
    assert 0.0 < contact.depth < 3.0
    both = trimesh.util.concatenate([BOX.copy().apply_translation([9, 0, 0]), BOX.copy().apply_scale(0.1)])
    manager.add_object("block", BOX)
    assert manager.in_collision_single(both, return_names=True) == (True, {"block"})  # its second piece is inside


def test_touching_is_a_collision():
    manager = CollisionManager()
    manager.add_object("a", BOX)
    manager.add_object("b", BOX, at(1.0))
    assert manager.in_collision_internal()
    assert manager.min_distance_internal() == 0.0
    manager.set_transform("b", at(np.nextafter(1.0, 2.0)))
    assert not manager.in_collision_internal()


def test_boxes_overlap_as_deep_as_they_do():
    manager = CollisionManager()
    manager.add_object("a", BOX)
    manager.add_object("b", BOX, at(0.75, 0.1, 0.2))
    least, names, data = manager.min_distance_internal(return_names=True, return_data=True)
    assert least == pytest.approx(-0.25, abs=1e-12)
    assert names == ("a", "b")
    assert data.point("a") - data.point("b") == pytest.approx([0.25, 0.0, 0.0], abs=1e-12)
    manager.set_transform("b", at())
    assert manager.min_distance_internal() == pytest.approx(-1.0)


def test_contacts_of_triangles_are_common_points_and_depths_part_them():
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, 4000, 3, 3))
    meet = np.array([exact_meet(one, other) for one, other in zip(a, b, strict=True)])
    a, b = a[meet], b[meet]
    assert len(a) > 300
    points = contact_points(a, b)
    for triangles in (a, b):
        on_triangle = trimesh.triangles.closest_point(triangles, points)
        assert np.linalg.norm(on_triangle - points, axis=1).max() < 1e-9
    depths, normals = contact_depths(a, b)
    assert np.allclose(np.linalg.norm(normals, axis=1), 1.0)
    for share, parted in ((1.0 + 1e-6, True), (0.0, False)):
        moved = b + (share * depths[:, None] * normals)[:, None]
        assert all(exact_meet(one, other) != parted for one, other in zip(a, moved, strict=True))


def test_triangles_of_one_plane_have_a_common_point():
    a = np.array([[[0, 0, 0], [2, 0, 0], [0, 2, 0]]], float)
    for corners in ([[1, 1, 0], [2, 2, 0], [1, 2, 0]], [[0.2, 0.2, 0], [0.4, 0.2, 0], [0.2, 0.4, 0]]):
        b = np.array([corners], float)
        point = contact_points(a, b)
        for triangles in (a, b):
            assert np.linalg.norm(trimesh.triangles.closest_point(triangles, point) - point) < 1e-12
        assert contact_depths(a, b)[0] == 0.0


def test_pairs_that_may_touch_are_left_out_of_internal_answers():
    manager = CollisionManager()
    for i, name in enumerate("abc"):
        manager.add_object(name, BOX, at(0.9 * i))
    assert manager.in_collision_internal(return_names=True)[1] == {("a", "b"), ("b", "c")}
    manager.allow("b", "a")
    assert manager.in_collision_internal(return_names=True) == (True, {("b", "c")})
    manager.allow("b", "c")
    assert not manager.in_collision_internal()
    assert manager.min_distance_internal(return_names=True) == (pytest.approx(0.8), ("a", "c"))
    assert manager.in_collision_single(BOX, at(0.0))
    manager.remove_object("b")
    manager.add_object("b", BOX, at(0.9))
    assert len(manager.in_collision_internal(return_names=True)[1]) == 2


def test_answers_have_trimesh_s_form():
    manager, other = CollisionManager(), CollisionManager()
    assert manager.in_collision_internal(return_names=True, return_data=True) == (False, set(), [])
    assert manager.in_collision_single(BOX, return_names=True) == (False, set())
    assert manager.min_distance_internal() == np.inf
    assert manager.min_distance_single(BOX, return_name=True, return_data=True) == (np.inf, None, None)
    manager.add_object("z", BOX)
    other.add_object("a", BALL, at(0.5))
    assert manager.in_collision_other(other, return_names=True) == (True, {("z", "a")})
    hit, names, data = manager.in_collision_other(other, True, True)
    assert (hit, names) == (True, {("z", "a")})
    for contact in data:
        assert contact.names == {"z", "a"}
        assert 0 <= contact.index("z") < 12
        assert 0 <= contact.index("a") < len(BALL.faces)
        assert contact.point.shape == contact.normal.shape == (3,)
        assert contact.depth >= 0.0
    other.set_transform("a", at(3.0))
    assert manager.min_distance_other(other, return_names=True)[1] == ("z", "a")
    distance, name, data = manager.min_distance_single(BALL, at(3.0), return_name=True, return_data=True)
    assert (name, data.names) == ("z", {"z", "__external"})
    assert data.point("__external")[0] == pytest.approx(data.point("z")[0] + distance)


def test_mistakes_raise_what_trimesh_raises():
    manager = CollisionManager()
    for call in (manager.remove_object, manager.min_distance_internal, lambda name: manager.set_transform(name, at())):
        with pytest.raises(ValueError, match="nobody not in collision manager!"):
            call("nobody")
    with pytest.raises(ValueError, match="nobody not in collision manager!"):
        manager.allow("nobody", "nobody")
    with pytest.raises(ValueError, match=r"transform must be \(4,4\)!"):
        manager.add_object("a", BOX, np.eye(3))
    with pytest.raises(ValueError, match="must be finite"):
        manager.add_object("a", BOX, at(np.nan))
    with pytest.raises(ValueError, match="str is no mesh"):
        manager.add_object("a", "part.stl")


def test_an_object_added_again_takes_the_place_of_the_first():
    manager = CollisionManager()
    manager.add_object("a", BOX)
    manager.add_object("a", BALL, at(5.0))
    assert not manager.in_collision_internal()
    assert manager.in_collision_single(BOX, return_names=True) == (False, set())


def test_our_meshes_and_trimesh_s_give_the_same_answers():
    rng = np.random.default_rng(11)
    scene = random_scene(rng)
    ours = {name: (tg.Mesh(mesh.vertices, mesh.faces), pose) for name, (mesh, pose) in scene.items()}
    first, second = filled(CollisionManager(), scene), filled(CollisionManager(), ours)
    assert first.in_collision_internal(return_names=True) == second.in_collision_internal(return_names=True)
    assert first.min_distance_internal() == second.min_distance_internal()


def test_a_mesh_that_was_changed_is_taken_as_it_is_now():
    manager, mesh = CollisionManager(), BOX.copy()
    manager.add_object("a", BOX)
    assert manager.in_collision_single(mesh)
    mesh.apply_translation([5.0, 0.0, 0.0])
    assert not manager.in_collision_single(mesh)


def test_transforms_that_scale_or_mirror_move_the_vertices():
    manager = CollisionManager()
    manager.add_object("a", BOX)
    assert not manager.in_collision_single(BOX, at(1.2))
    assert manager.in_collision_single(BOX, at(1.2) @ np.diag([2.0, 1.0, 1.0, 1.0]))
    assert not manager.in_collision_single(
        BOX.copy().apply_translation([0.6, 0, 0]), np.diag([-1.0, 1, 1, 1]) @ at(0.5)
    )
    assert manager.in_collision_single(BOX, np.diag([-1.0, 1, 1, 1]) @ at(0.9))
    turned = transformations.rotation_matrix(0.7, [1, 2, 3]).astype(np.float32)
    assert manager.min_distance_single(BOX, at(3.0) @ turned) == pytest.approx(
        manager.min_distance_single(BOX, at(3.0) @ transformations.rotation_matrix(0.7, [1, 2, 3])), abs=1e-6
    )


def test_many_objects_go_through_the_broad_phase(monkeypatch):
    rng = np.random.default_rng(5)
    manager = CollisionManager()
    for i in range(40):
        manager.add_object(i, SMALL[i % 3], at(*rng.uniform(-4.0, 4.0, 3)))
    expected = manager.in_collision_internal(return_names=True)
    for pair in expected[1]:
        manager.allow(*pair)
    least = manager.min_distance_internal(return_names=True)
    assert least[0] > 0.0
    monkeypatch.setattr(collision_manager, "_PAIRS", 50)
    assert manager.min_distance_internal(return_names=True) == least
    manager._allowed.clear()
    monkeypatch.setattr(collision_manager, "_FEW", 5)
    monkeypatch.setattr(collision_manager, "_ROWS", 7)
    assert manager.in_collision_internal(return_names=True) == expected
    assert len(expected[1]) > 3


def test_a_scene_of_trimesh_becomes_a_manager():
    scene = trimesh.Scene()
    scene.add_geometry(BOX, node_name="box", geom_name="box")
    scene.add_geometry(BALL, node_name="ball", geom_name="ball", transform=at(1.2))
    manager, objects = scene_to_collision(scene)
    assert set(objects) == {"box", "ball"}
    assert manager.in_collision_internal(return_names=True) == (True, {("ball", "box")})
    assert objects["ball"].transform[0, 3] == 1.2
