"""What must not change the answer: threads, order of the bodies, place, history of the trees, pickling, company."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from oracles.families.moving_meshes import FAMILIES, TWO_MESHES, grid, scene, tetrahedron
from oracles.mesh_contacts import names
from tangere.broad_phase.deforming.step import FITS_PER_ORDER
from tangere.motion import Linear
from tangere.query.contacts import Contacts, Kind
from tangere.query.first_contact import DeformingOptions, all_contacts, candidates, first_contact
from tangere.shape import Moving, generate
from tangere.shape.mesh import Mesh


def bits(contacts: Contacts) -> dict[str, bytes]:
    return {name: column.tobytes() for name, column in vars(contacts).items()}


def crumpling(seed: int, side: int = 24, amount: float = 0.8) -> Moving:
    """A sheet large enough for several clusters and shards, that goes through itself in many places."""
    rng = np.random.default_rng(seed)
    sheet = grid(side, side)
    start = sheet.vertices + rng.normal(size=sheet.vertices.shape) * 0.1
    return sheet.replace(vertices=start).moving(Linear(start + rng.normal(size=start.shape) * amount))


def fresh(thing: Mesh | Moving | None) -> Mesh | Moving | None:
    """The same thing, with nothing in any cache."""
    if isinstance(thing, Moving):
        return Mesh(thing.shape.vertices, thing.shape.faces).moving(thing.motion)
    return thing and Mesh(thing.vertices, thing.faces)


def test_any_number_of_threads_gives_the_same_bits():
    moving = crumpling(1)
    answers = [
        bits(all_contacts(moving, start="trusted", device="cpu", threads=threads))
        | bits(first_contact(moving, start="trusted", device="cpu", threads=threads).contacts)
        for threads in (1, 2, 7)
    ]
    assert answers[0] == answers[1] == answers[2]
    tables = [candidates(moving, device="cpu", threads=threads) for threads in (1, 7)]
    assert np.array_equal(tables[0].edge_edge, tables[1].edge_edge)
    assert np.array_equal(tables[0].vertex_face, tables[1].vertex_face)


def test_a_large_sheet_agrees_with_brute_force_broad_phase_bit_for_bit():
    moving = crumpling(2, side=12)
    tree = all_contacts(moving, start="trusted", device="cpu")
    assert bits(tree) == bits(all_contacts(moving, start="trusted", options=DeformingOptions("brute"), device="cpu"))
    assert len(tree) > 100


@pytest.mark.parametrize("family", TWO_MESHES)
def test_exchanging_the_bodies_mirrors_the_contacts(family):
    for seed in range(5):
        a, b = scene(family, seed)
        assert b is not None
        one, other = (all_contacts(*pair, start="trusted", device="cpu") for pair in ((a, b), (b, a)))
        assert len(one) == len(other)
        mirrored = {(k, int(k == Kind.VERTEX_FACE) - on, q, p): row for row, (k, on, p, q) in enumerate(names(other))}
        rows = [mirrored[name] for name in names(one)]
        assert np.allclose(one.time, other.time[rows], rtol=0.0, atol=1e-9)
        proper = (
            one.kind == Kind.VERTEX_FACE
        )  # the same query; edges come in the other order, and may differ in rounding
        rows = np.array(rows, dtype=int)[proper]
        assert np.array_equal(one.time[proper], other.time[rows])
        assert np.array_equal(one.point_a[proper], other.point_b[rows])
        assert np.array_equal(one.normal[proper], -other.normal[rows])
        assert np.array_equal(one.gap[proper], other.gap[rows])
        times = [first_contact(*pair, start="trusted", device="cpu").time for pair in ((a, b), (b, a))]
        assert times[0] == pytest.approx(times[1], abs=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("offset", [2.0**10, -(2.0**20)])
def test_a_scene_elsewhere_has_the_same_times(family, offset):
    """Coordinates are cut to 20 bits first, so that moving the scene is exact."""
    for seed in range(3):
        things = [cut(thing) for thing in scene(family, seed)]
        moved = [shifted(thing, offset) for thing in things]
        here, there = (all_contacts(*pair, start="trusted", device="cpu") for pair in (things, moved))
        assert sorted(names(here)) == sorted(names(there))
        assert np.allclose(here.time, there.time, rtol=0.0, atol=1e-9)
        times = [first_contact(*pair, start="trusted", device="cpu").time for pair in (things, moved)]
        assert times[0] == pytest.approx(times[1], abs=1e-9)


@pytest.mark.parametrize("exponent", [-100, 30, 100])
def test_a_scene_of_another_size_has_the_same_times_bit_for_bit(exponent):
    for family in FAMILIES:
        things = scene(family, 1)
        larger = [scaled(thing, 2.0**exponent) for thing in things]
        here, there = (all_contacts(*pair, start="trusted", device="cpu") for pair in (things, larger))
        assert names(here) == names(there)
        assert np.array_equal(here.time, there.time)


def mapped(thing: Mesh | Moving | None, change) -> Mesh | Moving | None:
    if thing is None or isinstance(thing, Mesh):
        return thing and Mesh(change(thing.vertices), thing.faces)
    return Mesh(change(thing.shape.vertices), thing.shape.faces).moving(Linear(change(np.asarray(thing.motion.end))))


def cut(thing):
    return mapped(thing, lambda x: np.round(x * 2.0**20) / 2.0**20)


def shifted(thing, offset):
    return mapped(thing, lambda x: x + offset * np.array([1.0, -0.5, 0.25]))


def scaled(thing, factor):
    return mapped(thing, lambda x: x * factor)


def test_the_answer_does_not_depend_on_how_often_the_trees_were_used():
    """Through several new orders: trees follow where the sheet was when they were made, answers follow where it is."""
    sheet = grid(10, 10)
    for k in range(FITS_PER_ORDER + 6):
        rng = np.random.default_rng(k)
        start = sheet.vertices * [1.0, 1.0 - 0.01 * k, 1.0] + rng.normal(size=sheet.vertices.shape) * 0.05
        moving = sheet.replace(vertices=start).moving(Linear(start + rng.normal(size=start.shape) * 0.5))
        new = fresh(moving)
        for start_check in ("trusted", "checked") if k % 8 == 0 else ("trusted",):
            used = all_contacts(moving, start=start_check, device="cpu")
            assert bits(used) == bits(all_contacts(new, start=start_check, device="cpu")), k
        if k % 3 == 0:
            assert first_contact(moving, start="trusted", device="cpu").time == used.time[0]


def test_copies_of_one_part_answer_like_separate_parts():
    part, rng = generate.icosphere(subdivisions=1), np.random.default_rng(5)
    for _ in range(10):
        pose = np.eye(4)
        pose[:3, :3] = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        pose[:3, :3] *= np.sign(np.linalg.det(pose[:3, :3]))
        pose[:3, 3] = [2.5, *rng.normal(size=2) * 0.3]
        other = part.at(pose)
        end = Linear(other.vertices - [3.0, 0.0, 0.0])
        shared = all_contacts(part, other.moving(end), device="cpu")
        apart = all_contacts(part, Mesh(other.vertices, other.faces).moving(end), device="cpu")
        assert bits(shared) == bits(apart)
        assert len(shared) > 10


def test_a_mesh_against_itself_twice_is_two_bodies():
    """The same object given as a and as b: one moves, the other stays."""
    part = tetrahedron()
    leaving = part.moving(Linear(part.vertices + [5.0, 0.0, 0.0]))
    assert first_contact(leaving, part, device="cpu").time == 0.0
    away = part.replace(vertices=part.vertices + [4.0, 0.0, 0.0])
    coming = away.moving(Linear(away.vertices - [4.0, 0.0, 0.0]))
    assert first_contact(coming, part, device="cpu").time == pytest.approx(0.5, abs=1e-9)


def test_a_pickled_scene_answers_the_same():
    for family in ("random sheet", "two bodies", "loose vertices"):
        a, b = scene(family, 1)
        first_contact(a, b, device="cpu")  # fills the caches
        again = pickle.loads(pickle.dumps((a, b)))
        one, other = (all_contacts(*pair, device="cpu") for pair in ((a, b), again))
        assert bits(one) == bits(other)


def test_queries_of_one_mesh_from_several_threads_at_once_are_right():
    sheet = grid(12, 12)
    scenes = []
    for k in range(24):
        rng = np.random.default_rng(k)
        start = sheet.vertices + rng.normal(size=sheet.vertices.shape) * 0.05
        scenes.append(sheet.replace(vertices=start).moving(Linear(start + rng.normal(size=start.shape) * 0.5)))
    expected = [bits(all_contacts(fresh(moving), start="trusted", device="cpu")) for moving in scenes]

    def ask(moving: Moving) -> list[dict[str, bytes]]:
        return [bits(all_contacts(moving, start="trusted", device="cpu", threads=1)) for _ in range(4)]

    with ThreadPoolExecutor(6) as pool:
        for answers, right in zip(pool.map(ask, scenes), expected, strict=True):
            assert all(answer == right for answer in answers)
