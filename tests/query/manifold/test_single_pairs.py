"""Manifolds of one pair in one call: bit by bit those of the same pair among many."""

from __future__ import annotations

import threading
from dataclasses import fields

import numpy as np
import pytest

import tangere as tg
from oracles.convex_families import KINDS, PAIRS, bodies, poses, sizes

#: Pairs whose kernels other tests of every run compile.
FEW = [
    ("sphere", "cone"),
    ("capsule", "capsule"),
    ("box", "box"),
    ("cylinder", "box"),
    ("cylinder", "cylinder"),
    ("cone", "hull"),
]
EVERY = FEW + [pytest.param(*pair, marks=pytest.mark.slow) for pair in PAIRS if {*pair} not in [{*few} for few in FEW]]


def assert_one_of_many(one: tg.Contacts, many: tg.Contacts, row: int) -> None:
    expected = many[many.query == row]
    for field in fields(tg.Contacts):
        if field.name != "query":
            got, wanted = getattr(one, field.name), getattr(expected, field.name)
            assert (got.dtype, got.tobytes()) == (wanted.dtype, wanted.tobytes()), field.name
    assert not one.query.any()


def ask_each(kind_a: str, kind_b: str, count: int, rng: np.random.Generator, distance: float | None = None) -> None:
    """Pairs apart, near and deep in each other, and coaxial ones: all at once, and one by one."""
    places = poses(count, rng, 0.6), poses(count, rng, 0.3)
    for place in places:
        place[: count // 4] = np.eye(4)
    places[0][: count // 4, 2, 3] = np.linspace(0.0, 1.0, count // 4)
    a, b = (bodies(kind, **sizes(kind, 1, rng)) for kind in (kind_a, kind_b))
    many = tg.manifold(a.at(places[0]), b.at(places[1]), distance=distance, device="cpu")
    assert len(many)
    for row, (here, there) in enumerate(zip(*places, strict=True)):
        one = tg.manifold(a.at(here), b.at(there), distance=distance, device="cpu")
        assert_one_of_many(one, many, row)


@pytest.mark.parametrize(("kind_a", "kind_b"), EVERY)
def test_a_pair_alone_has_the_bits_that_it_has_among_many(rng, effort, kind_a, kind_b):
    for distance in (None, 0.3, None):
        ask_each(kind_a, kind_b, effort(40, least=12), rng, distance)


def test_answers_stay_when_the_next_pair_is_asked():
    above = np.eye(4)
    above[:3, 3] = 0.8, 0.3, 1.49
    crate, floor = tg.Box([0.5, 0.5, 0.5]), tg.Box([1.0, 1.0, 1.0])
    first = tg.manifold(crate.at(above), floor, device="cpu")
    before = [getattr(first, field.name).copy() for field in fields(tg.Contacts)]
    above[2, 3] = 1.3
    assert tg.manifold(crate.at(above), floor, device="cpu").gap.min() == pytest.approx(-0.2)
    assert all(np.array_equal(getattr(first, f.name), old) for f, old in zip(fields(tg.Contacts), before, strict=True))


def test_bodies_of_one_kind_and_other_sizes_are_told_apart():
    above = np.eye(4)
    above[2, 3] = 1.0
    for half in (0.7, 0.5, 0.6, 0.5):
        found = tg.manifold(tg.Box([0.1, 0.1, half]).at(above), tg.Box([1.0, 1.0, 0.5]), device="cpu")
        assert found.gap == pytest.approx([0.5 - half] * 4)


def test_faces_with_many_sides_find_room():
    angle = np.linspace(0.0, 2.0 * np.pi, 90, endpoint=False)
    ring = np.stack([np.cos(angle), np.sin(angle), np.zeros(90)], axis=1)
    drum = tg.ConvexMesh(tg.Mesh(np.concatenate([ring, ring + [0.0, 0.0, 1.0]]), [[0, 1, 2]]))
    above = np.eye(4)
    above[2, 3] = 0.999
    turn = np.deg2rad(1.0)
    above[:2, :2] = [[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]
    one = tg.manifold(drum.at(above), drum, device="cpu")
    assert len(one) == 180
    assert_one_of_many(one, tg.manifold(drum.at(np.tile(above, (2, 1, 1))), drum, device="cpu"), 1)


def test_threads_do_not_share_what_is_kept():
    wrong = []

    def ask(seed: int) -> None:
        try:
            ask_each("cylinder", "box", 40, np.random.default_rng(seed))
        except AssertionError as error:
            wrong.append(error)

    askers = [threading.Thread(target=ask, args=(seed,)) for seed in range(4)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    assert not wrong


def test_every_kind_is_in_the_pairs_of_every_run():
    assert {kind for pair in FEW for kind in pair} == set(KINDS)
