"""Posed rigid proximity lists the constraints that brute force finds, each once, and the distance of `tg.distance`."""

from __future__ import annotations

import copy
import gc

import numpy as np
import pytest
import warp as wp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from oracles.posed_constraints import Surface, assert_lists_constraints, mesh_distance
from oracles.rigid_distances import mesh_distances
from tangere.motion import Rest
from tangere.query.distance import distance
from tangere.query.intersection import intersects
from tangere.query.proximity.posed import PosedProximity, reduce
from tangere.query.proximity.posed.api import TILT
from tangere.query.proximity.posed.cuda.engine import CudaSearch
from tangere.query.proximity.posed.shapes import shape_tables
from tangere.runtime import InputError, UnsupportedError
from tangere.shape import generate
from tangere.shape.mesh import Mesh

COLUMNS = ("query", "key", "gap", "point_a", "point_b", "normal", "weights", "kind", "feature_a", "feature_b")


def ell() -> Mesh:
    """A block with a step: it has a concave edge."""
    outline = np.array([[0, 0], [2, 0], [2, 1], [1, 1], [1, 2], [0, 2]], float)
    n = len(outline)
    vertices = np.concatenate([np.c_[outline, np.zeros(n)], np.c_[outline, np.ones(n)]])
    caps = np.array([[0, 1, 2], [0, 2, 3], [0, 3, 4], [0, 4, 5]])
    sides = [t for i in range(n) for j in [(i + 1) % n] for t in ([i, j, j + n], [i, j + n, i + n])]
    return Mesh(vertices, np.concatenate([caps[:, ::-1], caps + n, sides]), name="ell")


def shapes(rng: np.random.Generator) -> list[Mesh]:
    """Solids, a sheet with a flat middle, a roof, loose triangles, a non-manifold edge, degenerate and doubled ones."""
    box = generate.box((1, 1, 1))
    sheet = Mesh(
        [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0.5, 0.5, 0]], [[0, 1, 4], [1, 2, 4], [2, 3, 4], [3, 0, 4]]
    )
    roof = Mesh(
        [[0, 0, 0], [1, 0, 0], [1, 1, 0.3], [0, 1, 0.3], [0, 2, 0], [1, 2, 0]],
        [[0, 1, 2], [0, 2, 3], [3, 2, 5], [3, 5, 4]],
    )
    book = Mesh(
        [[0, 0, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0], [-1, -1, 0]], [[0, 1, 2], [0, 1, 3], [0, 1, 4]], name="book"
    )
    doubled = Mesh(box.vertices, np.concatenate([box.faces, box.faces[:, ::-1]]), name="doubled")
    slivers = Mesh(
        [[0, 0, 0], [1, 0, 0], [0.5, 1e-9, 0], [0.5, 0, 1], [0.2, 0.2, 0.2], [2, 2, 2]],
        [[0, 1, 2], [0, 1, 3], [2, 3, 1], [4, 4, 5], [0, 2, 3]],
        name="slivers",
    )
    return [
        box,
        generate.box((2, 0.5, 0.7)),
        generate.icosphere(subdivisions=1),
        sheet,
        roof,
        Mesh(rng.normal(size=(24, 3)), np.arange(24).reshape(-1, 3), name="loose"),
        book,
        ell(),
        doubled,
        slivers,
        Mesh(box.vertices, box.faces[:, ::-1], name="inside out"),
    ]


@pytest.fixture(scope="module")
def bodies() -> list[Mesh]:
    return shapes(np.random.default_rng(7))


@pytest.fixture(scope="module")
def near(bodies) -> PosedProximity:
    return PosedProximity(bodies, device="cpu", threads=1)


def every_pair(count: int) -> np.ndarray:
    return np.array([(i, j) for i in range(count) for j in range(count) if i != j], np.int32)


def random_poses(count: int, rng: np.random.Generator, kind: str) -> np.ndarray:
    """Anywhere; aligned with the axes on a coarse lattice, a hair apart; or nearly aligned."""
    poses = np.tile(np.eye(4), (count, 1, 1))
    if kind == "aligned":
        poses[:, :3, 3] = 0.5 * rng.integers(-2, 3, (count, 3)) + np.arange(count)[:, None] * [0.0, 0.0, 0.001]
        return poses
    turn = Rotation.random(count, random_state=int(rng.integers(2**31)))
    if kind == "nearly aligned":
        turn = Rotation.from_rotvec(0.05 * rng.normal(size=(count, 3)))
    poses[:, :3, :3], poses[:, :3, 3] = turn.as_matrix(), 1.5 * rng.normal(size=(count, 3))
    return poses


def pose(translation, rotation_vector=(0.0, 0.0, 0.0)) -> np.ndarray:
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = Rotation.from_rotvec(rotation_vector).as_matrix(), translation
    return matrix


def two(a: Mesh, b: Mesh, pose_a, pose_b, limit: float, **options):
    return PosedProximity([a, b], device="cpu", threads=1, **options).at([pose_a, pose_b], [[0, 1]], limit)


@pytest.mark.parametrize("kind", ["anywhere", "aligned", "nearly aligned"])
def test_what_is_listed_is_what_brute_force_finds(kind, bodies, near, rng, effort):
    pairs, needed = every_pair(len(bodies)), 0
    for _ in range(effort(3, 1)):
        poses, limit = random_poses(len(bodies), rng, kind), rng.uniform(0.05, 0.6)
        found = near.at(poses, pairs, limit)
        contacts = found.contacts
        for k, (i, j) in enumerate(pairs):
            some = contacts[contacts.query == k]
            needed += assert_lists_constraints(bodies[i], bodies[j], poses[i], poses[j], some, limit, TILT)
            assert (some.body_a == i).all()
            assert (some.body_b == j).all()
    assert needed > effort(100)


@pytest.mark.parametrize("kind", ["anywhere", "aligned", "nearly aligned"])
def test_the_least_gap_is_the_distance(kind, bodies, near, rng, effort):
    pairs = every_pair(len(bodies))
    for _ in range(effort(3, 1)):
        poses, limit = random_poses(len(bodies), rng, kind), rng.uniform(0.2, 2.0)
        found = near.at(poses, pairs, limit)
        for k, (i, j) in enumerate(pairs):
            a, b = bodies[i].moving(Rest(poses[i])), bodies[j].moving(Rest(poses[j]))
            exact = distance(a, b, device="cpu")
            scale = np.abs(poses[[i, j], :3, 3]).max() + bodies[i].extent + bodies[j].extent
            assert abs(found.least[k] - min(exact.upper, limit)) <= 1e-12 * scale
            assert found.least[k] <= exact.upper
            if exact.upper > 0.0:
                brute = mesh_distance(Surface.of(bodies[i], poses[i]), Surface.of(bodies[j], poses[j]))
                assert abs(found.least[k] - min(brute, limit)) <= 1e-12 * scale
                assert not found.overlapping[k]
            if found.overlapping[k]:
                assert intersects(a, b, device="cpu")


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), gap=st.floats(1e-6, 0.2), turn=st.floats(0.0, 0.3))
def test_the_nearest_features_of_convex_bodies_are_always_among_the_listed(seed, gap, turn):
    rng = np.random.default_rng(seed)
    a, b = _HULLS
    at = pose(rng.normal(size=3), turn * rng.normal(size=3))
    at[:3, 3] *= 3.0 / np.linalg.norm(at[:3, 3])
    apart = distance(a.moving(Rest(at)), b, device="cpu")
    at[:3, 3] -= (apart.upper - gap) * apart.normal
    exact = distance(a.moving(Rest(at)), b, device="cpu").upper
    found = _HULLS_NEAR.at([at, np.eye(4)], [[0, 1]], exact + 0.01)
    assert abs(found.contacts.gap.min() - exact) < 1e-11
    assert abs(found.least[0] - exact) < 1e-12 * 10


_HULLS = generate.icosphere(subdivisions=2), generate.box((1.0, 0.8, 0.6))
_HULLS_NEAR = PosedProximity(_HULLS, device="cpu", threads=1)


@pytest.mark.parametrize("lift", [0.0, 0.02, 0.1])
def test_a_box_on_a_box_has_its_four_corners_also_when_it_rocks(lift):
    small, large = generate.box((0.4, 0.4, 0.4)), generate.box((1, 1, 1))
    angle = np.arcsin(lift)
    turned = pose((0.0, 0.0, 0.0), (0.0, angle, 0.0))
    turned[2, 3] = 0.501 - (small.vertices @ turned[:3, :3].T)[:, 2].min()
    found = two(small, large, turned, np.eye(4), 0.4 * lift + 0.01)
    lower = small.vertices[:, 2] < 0.0
    contacts = found.contacts
    assert set(contacts.feature_a) == set(np.flatnonzero(lower))
    assert len(contacts) == 4
    assert (contacts.kind == 1).all()
    assert (contacts.vertex_on == 0).all()
    assert np.allclose(contacts.normal, [0, 0, 1])


def test_a_box_that_leans_more_than_the_tilt_stands_on_its_edge():
    small, large = generate.box((0.4, 0.4, 0.4)), generate.box((1, 1, 1))
    turned = pose((0.0, 0.0, 0.0), (0.0, 0.3, 0.0))
    turned[2, 3] = 0.501 - (small.vertices @ turned[:3, :3].T)[:, 2].min()
    assert len(two(small, large, turned, np.eye(4), 0.2)) == 2
    assert len(two(small, large, turned, np.eye(4), 0.2, tilt=0.4)) == 4


def test_equal_boxes_on_each_other_have_four_corners_whether_they_touch_or_not():
    box = generate.box((1, 1, 1))
    for height in (1.0, 1.0 + 1e-13, 1.0 + 1e-6, 1.001):
        contacts = two(box, box, pose((0, 0, height)), np.eye(4), 0.01).contacts
        assert len(contacts) == 4
        assert np.allclose(contacts.normal, [0, 0, 1], atol=1e-9)
        assert np.allclose(np.abs(contacts.point_a[:, :2]), 0.5)
        assert np.allclose(contacts.gap, height - 1.0, atol=1e-15)


def test_a_vertex_over_the_diagonal_of_a_quad_is_on_its_face_once():
    tip = Mesh([[0, 0, 0], [1, 0, 1], [-1, 1, 1], [-1, -1, 1]], [[0, 1, 2], [0, 2, 3], [0, 3, 1], [1, 3, 2]])
    plate = generate.box((2, 2, 0.2))
    for x in (0.0, 1e-12, 0.1, 0.25):
        contacts = two(tip, plate, pose((x, x, 0.101)), np.eye(4), 0.01).contacts
        assert len(contacts) == 1
        assert contacts.kind[0] == 1
        assert contacts.feature_a[0] == 0
        other = two(tip, plate, pose((x, -x, 0.101)), np.eye(4), 0.01).contacts
        assert len(other) == 1
        assert other.key[0] == contacts.key[0]


def test_keys_stay_while_a_vertex_slides_from_triangle_to_triangle(rng):
    tip = Mesh([[0, 0, 0], [1, 0, 1], [-1, 1, 1], [-1, -1, 1]], [[0, 1, 2], [0, 2, 3], [0, 3, 1], [1, 3, 2]])
    cells = 8
    x, y = (v.ravel() for v in np.meshgrid(np.linspace(-1, 1, cells + 1), np.linspace(-1, 1, cells + 1)))
    corner = (np.arange(cells)[:, None] * (cells + 1) + np.arange(cells)).ravel()
    faces = np.concatenate(
        [
            np.stack([corner, corner + 1, corner + cells + 2], axis=1),
            np.stack([corner, corner + cells + 2, corner + cells + 1], axis=1),
        ]
    )
    plate = Mesh(np.stack([x, y, 0 * x], axis=1), faces)
    near = PosedProximity([tip, plate], device="cpu", threads=1)
    keys, triangles = set(), set()
    for step in np.linspace(-0.9, 0.9, 37):
        contacts = near.at([pose((step, 0.3 * step, 0.001)), np.eye(4)], [[0, 1]], 0.01).contacts
        assert len(contacts) == 1
        keys.add(int(contacts.key[0]))
        triangles.add(int(contacts.feature_b[0]))
    assert len(keys) == 1
    assert len(triangles) > 10


def test_a_fine_round_surface_is_not_flat():
    # Neighbouring triangles turn by less than a thousandth: the crown must not vanish.
    cells, radius = 40, 100.0
    x, y = (v.ravel() for v in np.meshgrid(*[np.linspace(-1, 1, cells + 1)] * 2))
    corner = (np.arange(cells)[:, None] * (cells + 1) + np.arange(cells)).ravel()
    faces = np.concatenate(
        [
            np.stack([corner, corner + 1, corner + cells + 2], axis=1),
            np.stack([corner, corner + cells + 2, corner + cells + 1], axis=1),
        ]
    )
    dome = Mesh(np.stack([x, y, -(x**2 + y**2) / (2 * radius)], axis=1), faces)
    found = two(generate.box((4, 4, 1)), dome, pose((0.013, 0.007, 0.501)), np.eye(4), 0.0012)
    assert abs(found.contacts.gap.min() - 0.001) < 1e-9
    assert abs(found.least[0] - 0.001) < 1e-12


def test_a_vertex_in_a_groove_rests_on_floor_and_wall():
    step, box = ell(), generate.box((0.5, 0.5, 0.5))
    contacts = two(box, step, pose((1.25, 1.25, 0.5)), np.eye(4), 0.01).contacts  # flush with both
    directions = {tuple(np.round(n, 6) + 0.0) for n in contacts.normal}
    assert directions == {(1.0, 0.0, 0.0), (0.0, 1.0, 0.0)}
    assert np.allclose(contacts.gap, 0.0)
    assert (contacts.normal[:, 0] > 0.5).sum() == 4
    assert (contacts.normal[:, 1] > 0.5).sum() == 4


def test_touching_in_a_corner_or_across_edges_has_a_direction_that_parts_them():
    box = generate.box((1, 1, 1))
    quarter = np.pi / 4
    cases = {
        "corner on corner": (pose((1, 1, 1)), np.eye(4)),
        "edge across edge": (pose((0, 0, np.sqrt(2.0)), (quarter, 0, 0)), pose((0, 0, 0), (0, quarter, 0))),
        "corner on edge": (
            pose((0, 0, 0.5 * np.sqrt(3) + 0.5), Rotation.align_vectors([[0, 0, -1]], [[1, 1, 1]])[0].as_rotvec()),
            pose((0, 0.5, 0)),
        ),
    }
    for name, (a, b) in cases.items():
        found = two(box, box, a, b, 0.01)
        assert len(found) >= 1, name
        for k in range(len(found)):
            moved = a.copy()
            moved[:3, 3] += 1e-3 * found.contacts.normal[k]
            assert not intersects(box.moving(Rest(moved)), box.moving(Rest(b)), device="cpu"), name
        assert found.least[0] < 1e-12


def test_contacts_do_not_depend_on_where_meshes_have_their_origin():
    ball, box = generate.icosphere(subdivisions=3), generate.box((1, 1, 1))
    for away in (0.0, 10.0, 1e4):
        shift = np.array([away, -0.7 * away, 0.3 * away])
        there = [ball.replace(vertices=ball.vertices + shift), box.replace(vertices=box.vertices - shift)]
        turn = pose((0, 0, 0), (0.3, 0.2, 0.1))
        poses = [turn.copy(), np.eye(4)]
        poses[0][:3, 3] = [0.1, 0.2, 1.501] - turn[:3, :3] @ shift
        poses[1][:3, 3] = shift
        found = two(*there, *poses, 0.02).contacts
        if away == 0.0:
            expected = found
        assert np.array_equal(found.key, expected.key)
        assert np.allclose(found.gap, expected.gap, atol=1e-15 * (1.0 + 100 * away))


def test_bodies_that_pass_through_each_other_say_so_and_others_do_not():
    box = generate.box((1, 1, 1))
    near = PosedProximity([box, box, box], device="cpu", threads=1)
    found = near.at([np.eye(4), pose((0.5, 0.2, 0.3)), pose((5, 0, 0))], [[0, 1], [0, 2], [2, 1]], 0.1)
    assert found.overlapping.tolist() == [True, False, False]
    assert found.least.tolist() == [0.0, 0.1, 0.1]
    assert found.contacts.query.tolist() == [0] * len(found)


def test_answers_are_the_same_bits_for_any_number_of_threads(bodies, rng):
    poses, pairs = random_poses(len(bodies), rng, "nearly aligned"), np.tile(every_pair(len(bodies)), (20, 1))
    answers = [PosedProximity(bodies, device="cpu", threads=threads).at(poses, pairs, 0.7) for threads in (1, 2, 5)]
    assert len(answers[0]) > 2_000
    for other in answers[1:]:
        assert np.array_equal(answers[0].least, other.least)
        assert np.array_equal(answers[0].status, other.status)
        assert np.array_equal(answers[0].first.numpy()[: len(pairs) + 1], other.first.numpy()[: len(pairs) + 1])
        for column in COLUMNS:
            assert np.array_equal(getattr(answers[0].contacts, column), getattr(other.contacts, column)), column


def test_nothing_is_cut_off_and_room_that_grew_is_no_memory_of_the_call_before(rng):
    ball = generate.icosphere(subdivisions=4)
    near = PosedProximity([ball, ball], device="cpu", threads=1)
    counts = []
    for shift in (2.5, 0.001, 2.5, 1.99):
        found = near.at([np.eye(4), pose((shift, 0, 0), (0.3, 0.1, 0.2))], [[0, 1]], 0.05)
        fresh = PosedProximity([ball, ball], device="cpu", threads=1)
        again = fresh.at([np.eye(4), pose((shift, 0, 0), (0.3, 0.1, 0.2))], [[0, 1]], 0.05)
        for column in COLUMNS:
            assert np.array_equal(getattr(found.contacts, column), getattr(again.contacts, column)), column
        counts.append(len(found))
    assert counts[0] == counts[2] == 0
    assert counts[1] > 2000


def test_an_answer_that_is_held_stays_while_others_are_asked_for():
    box = generate.box((1, 1, 1))
    near = PosedProximity([box, box], device="cpu", threads=1)
    held = near.at([np.eye(4), pose((0.2, 0.1, 1.001))], [[0, 1]], 0.01)
    other = near.at([np.eye(4), pose((0.2, 0.1, 1.003))], [[0, 1]], 0.01)
    assert np.allclose(held.columns.gap.numpy()[: len(held)], 0.001)
    assert np.allclose(other.columns.gap.numpy()[: len(other)], 0.003)


def test_an_answer_that_is_part_of_a_cycle_is_taken_down_whole():
    # The collector finishes all objects of a cycle before it frees any: nothing of them may come back to life.
    box = generate.box((1, 1, 1))
    near = PosedProximity([box, box], device="cpu", threads=1)
    for step in range(4):
        cycle: list = [near.at([np.eye(4), pose((0.2, 0.1, 1.001 + 1e-5 * step))], [[0, 1]], 0.01)]
        cycle.append(cycle)
        del cycle
        gc.collect()
        filler = [bytes([65]) * 200 for _ in range(1000)]
        found = near.at([np.eye(4), pose((0.2, 0.1, 1.003))], [[0, 1]], 0.01)
        assert len(found) == 4
        assert np.allclose(found.contacts.gap, 0.003)
        assert filler[0][0] == 65
    assert len(near._workspaces) <= 2


def test_each_pair_has_its_own_distance_and_pairs_may_be_none():
    box = generate.box((1, 1, 1))
    near = PosedProximity([box] * 3, device="cpu", threads=1)
    poses = [np.eye(4), pose((0.1, 0.2, 1.02)), pose((0.3, 0.1, -1.05))]
    found = near.at(poses, [[0, 1], [0, 2], [1, 2]], [0.03, 0.04, 0.5])
    assert np.allclose(found.least, [0.02, 0.04, 0.5])
    assert found.first.numpy()[:4].tolist() == [0, len(found), len(found), len(found)]
    nothing = near.at(poses, np.zeros((0, 2), int), 0.1)
    assert len(nothing) == 0
    assert len(nothing.contacts) == 0
    assert nothing.least.shape == (0,)


def test_warp_arrays_are_taken_as_they_are(bodies, near, rng):
    poses, pairs = random_poses(len(bodies), rng, "anywhere"), every_pair(len(bodies))
    rotation = wp.array(poses[:, :3, :3].copy(), dtype=wp.mat33d, device="cpu")
    origin = wp.array(poses[:, :3, 3].copy(), dtype=wp.vec3d, device="cpu")
    limit = wp.full(len(pairs), 0.5, dtype=wp.float64, device="cpu")
    found = near.find(wp.array(pairs, dtype=wp.vec2i, device="cpu"), rotation, origin, limit)
    expected = near.at(poses, pairs, 0.5)
    assert len(found) == len(expected) > 0
    for column in COLUMNS:
        assert np.array_equal(getattr(found.contacts, column), getattr(expected.contacts, column)), column


def test_reduction_takes_the_nearest_then_the_farthest_rows(rng):
    ball = generate.icosphere(subdivisions=3)
    near = PosedProximity([ball, ball, generate.box((1, 1, 1))], device="cpu", threads=1)
    poses = [np.eye(4), pose((1.98, 0.1, 0.05), (0.3, 0.1, 0.2)), pose((0, 0, 1.49), (0, 0.02, 0))]
    found = near.at(poses, [[0, 1], [0, 2], [1, 2]], 0.05)
    for most in (1, 4, 12):
        chosen = reduce(found, 2.0, most)
        rows = chosen.rows.numpy()[: chosen.count]
        begins = chosen.first.numpy()[:4]
        assert begins[0] == 0
        assert begins[3] == chosen.count == len(chosen.contacts)
        for k in range(3):
            expected = _farthest_rows(found.contacts, k, 2.0, most)
            assert rows[begins[k] : begins[k + 1]].tolist() == expected


def _farthest_rows(contacts, pair: int, size: float, most: int) -> list[int]:
    """The choice in NumPy."""
    some = np.flatnonzero(contacts.query == pair)
    if not len(some):
        return []
    taken = [some[np.argmin(contacts.gap[some])]]
    centre = contacts.point_a[taken[0]]
    turns = np.cross(contacts.point_a - centre, contacts.normal) / size
    rows = np.concatenate([contacts.normal, turns], axis=1)
    while len(taken) < most:
        far = ((rows[some][:, None] - rows[taken][None]) ** 2).sum(axis=2).min(axis=1)
        if far.max() <= 1e-4:
            break
        taken.append(some[np.argmax(far)])
    return sorted(int(k) for k in taken)


def test_bad_input_is_refused_in_a_sentence(near, bodies):
    count = len(bodies)
    rotation, origin = np.tile(np.eye(3), (count, 1, 1)), np.zeros((count, 3))
    good = {"pairs": [[0, 1]], "rotation": rotation, "origin": origin, "distance": 0.1}
    nan, skewed = origin.copy(), rotation.copy()
    nan[1, 2], skewed[0] = np.nan, 2.0 * np.eye(3)
    wrong = {
        "pairs[0] is [0, 99] but there are": {"pairs": [[0, 99]]},
        "pairs[1] is a body with itself": {"pairs": [[0, 1], [2, 2]]},
        "pairs must be whole numbers": {"pairs": [[0.5, 1.0]]},
        "rotation must have shape": {"rotation": rotation[1:]},
        "origin must have shape": {"origin": origin[:, :2]},
        r"distance of pairs[0] must be finite": {"distance": -1.0},
        "distance must be one number": {"distance": [0.1, 0.2]},
        "is not placed by a finite rotation": {"origin": nan},
        "pairs[0]: body 0 or 1": {"rotation": skewed},
    }
    for sentence, change in wrong.items():
        with pytest.raises(InputError, match=sentence.replace("[", r"\[").replace("]", r"\]")):
            near.find(**(good | change))
    with pytest.raises(InputError, match="poses must have shape"):
        near.at(np.eye(4), [[0, 1]], 0.1)
    with pytest.raises(InputError, match="there are no meshes"):
        PosedProximity([])
    with pytest.raises(InputError, match="tilt"):
        PosedProximity(bodies, tilt=2.0)
    with pytest.raises(UnsupportedError, match="cannot be copied"):
        copy.copy(near)
    with pytest.raises(InputError, match="size must be positive"):
        reduce(near.find(**good), 0.0)
    assert len(near.find(**good)) >= 0  # as if nothing had happened


@pytest.mark.parametrize("budget", [5, 256])
def test_the_search_for_cuda_finds_the_same_on_a_cpu(budget, bodies, near, rng):
    shapes = shape_tables(bodies, wp.get_device("cpu"))
    pairs = every_pair(len(bodies))
    for kind in ("anywhere", "aligned"):
        poses = random_poses(len(bodies), rng, kind)
        expected = near.at(poses, pairs, 0.7)
        there = PosedProximity(bodies, device="cpu", threads=1)
        there._engine = CudaSearch(shapes, wp.get_device("cpu"), budget)
        there._engine._room = 16  # so that it has to grow
        found = there.at(poses, pairs, 0.7)
        assert np.allclose(found.least, expected.least, rtol=0.0, atol=1e-14)
        assert np.array_equal(found.status, expected.status)
        assert np.array_equal(found.first.numpy()[: len(pairs) + 1], expected.first.numpy()[: len(pairs) + 1])
        for column in COLUMNS:
            assert np.array_equal(getattr(found.contacts, column), getattr(expected.contacts, column)), column


def test_large_bodies_are_searched_alike_in_eights_and_one_by_one():
    part, body = generate.bumpy_torus(30, 20), generate.bumpy_torus(40, 24)
    at = pose((2.75, 0.0, 0.1), (0.4, 0.1, 0.2))
    near = PosedProximity([part, body], device="cpu", threads=1)
    expected = near.at([np.eye(4), at], [[0, 1]], 0.5)
    assert len(expected) > 10
    near._engine = CudaSearch(shape_tables([part, body], near.device), near.device)
    near._workspaces.clear()
    found = near.at([np.eye(4), at], [[0, 1]], 0.5)
    for column in COLUMNS:
        assert np.array_equal(getattr(found.contacts, column), getattr(expected.contacts, column)), column


@pytest.mark.parametrize("eights", [True, False], ids=["eights", "one by one"])
def test_triangles_that_are_lines_up_to_rounding_are_never_told_too_far(eights, rng):
    """Their normals are noise, along which one of their corners is not where another is."""
    count, rounds = 60, 20
    lines = rng.normal(size=(count, 8, 1, 3)) * rng.random((count, 8, 3, 1)) + 0.5 * rng.normal(size=(count, 8, 1, 3))
    needles = [Mesh(corners.reshape(-1, 3), np.arange(24).reshape(-1, 3)) for corners in lines]
    ball = generate.icosphere(subdivisions=1)
    near = PosedProximity([*needles, ball], device="cpu", threads=1)
    if not eights:
        near._engine = CudaSearch(shape_tables([*needles, ball], near.device), near.device)
    pairs = np.stack([np.arange(count), np.full(count, count)], axis=1)
    poses = np.stack([random_poses(count + 1, rng, "anywhere") for _ in range(rounds)])
    least = np.stack([near.at(each, pairs, 5.0).least for each in poses])
    for k, needle in enumerate(needles):
        true = mesh_distances(needle, ball, poses[:, k], poses[:, count])
        assert (least[:, k] <= true + 1e-13).all()
        assert (least[:, k] >= np.minimum(true, 5.0) - 1e-9).all()


@pytest.mark.cuda
def test_cuda_finds_what_the_cpu_finds(bodies, near, rng):
    if not wp.is_cuda_available():
        pytest.skip("there is no CUDA device")
    there = PosedProximity(bodies, device="cuda:0")
    pairs = every_pair(len(bodies))
    for kind in ("anywhere", "aligned", "nearly aligned"):
        poses = random_poses(len(bodies), rng, kind)
        found, expected = there.at(poses, pairs, 0.5), near.at(poses, pairs, 0.5)
        assert np.allclose(found.least, expected.least, atol=1e-12)
        assert np.array_equal(found.status, expected.status)
        assert np.array_equal(found.contacts.query, expected.contacts.query)
        assert np.array_equal(found.contacts.key, expected.contacts.key)
        for column in ("gap", "point_a", "point_b", "normal"):
            assert np.allclose(getattr(found.contacts, column), getattr(expected.contacts, column), atol=1e-11)
        assert reduce(found, 1.0).rows.numpy().shape
        assert np.array_equal(reduce(found, 1.0).contacts.key, reduce(expected, 1.0).contacts.key)


@pytest.mark.parametrize("yaw", [0.0, 1e-6, 1e-4])
@pytest.mark.parametrize("ahead", [-1e-5, 1e-5])
def test_pushes_beside_a_rim_are_across_the_face_whichever_way_the_nearest_points_lean(ahead, yaw):
    """A cube with its front just ahead of the end of another one below, or just behind it."""
    gap, pose = 1e-4, np.eye(4)
    pose[:3, :3] = Rotation.from_euler("z", yaw).as_matrix()
    pose[:3, 3] = 0.5 + ahead - 0.5, 0.0, 1.0 + gap
    found = PosedProximity([generate.box((1, 1, 1)), generate.box((1, 3, 1))], device="cpu").at(
        np.stack([pose, np.eye(4)]), [[0, 1]], 1.5 * gap
    )
    contacts = found.contacts
    push = found.columns.push.numpy()[: found.count]
    beside = np.abs(contacts.normal[:, 0]) > 0.05
    assert (np.abs(contacts.point_b[:, 0] - 0.5) < 1e-3).any()
    if yaw == 0.0:
        assert beside.any()
    np.testing.assert_allclose(push[beside], np.tile([0.0, 0.0, 1.0], (beside.sum(), 1)), atol=1.1e-4)
    across = np.abs(contacts.normal[:, 2]) == 1.0
    np.testing.assert_array_equal(push[across], contacts.normal[across])


def test_a_push_is_the_normal_where_that_is_in_both_cones(rng):
    """Between corners and edges that stick out towards each other nothing is to be led anywhere."""
    box = generate.box((1, 1, 1))
    near, seen = PosedProximity([box, box], tilt=0.0, device="cpu"), 0
    for _ in range(200):
        pose = np.eye(4)
        pose[:3, :3] = Rotation.random(random_state=rng).as_matrix()
        pose[:3, 3] = rng.normal(size=3)
        pose[:3, 3] *= rng.uniform(1.0, 1.8) / np.linalg.norm(pose[:3, 3])
        found = near.at(np.stack([pose, np.eye(4)]), [[0, 1]], 0.5)
        if found.status[0] == 0 and found.count:
            seen += int(np.sum(found.contacts.kind == 2))
            np.testing.assert_allclose(found.columns.push.numpy()[: found.count], found.contacts.normal, atol=1e-8)
    assert seen > 20
