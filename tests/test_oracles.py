"""The oracles, the families and the stored queries, checked against each other and against the public ground truth."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from data import make_degenerate
from oracles import flint_ccd
from oracles.families.feature_queries import FAMILIES
from oracles.families.sample_queries import read_families
from oracles.fraction_ccd import hulls_meet, touching_at
from tangere.query.contacts import Kind

KINDS = (Kind.VERTEX_FACE, Kind.EDGE_EDGE)
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name.lower())
PLANTED = [
    name for name, family in FAMILIES.items() if family(Kind.EDGE_EDGE, 1, np.random.default_rng(0)).time is not None
]


@pytest.mark.feature("F-T-24")
def test_the_oracle_agrees_with_the_ground_truth_of_every_sample_query(data_folder):
    for queries in read_families(data_folder):
        hit = [flint_ccd.decide(queries.kind, points).hit for points in queries.points]
        np.testing.assert_array_equal(hit, queries.truth, err_msg=f"{queries.family} {queries.kind.name}")


@each_kind
@pytest.mark.parametrize("family", PLANTED)
def test_planted_times_are_exact_contacts_and_bound_the_first_one(kind, family, effort, rng):
    queries = FAMILIES[family](kind, effort(25), rng)
    assert queries.time is not None
    for points, planted in zip(queries.points, queries.time, strict=True):
        assert touching_at(kind, points, Fraction(planted))
        first = flint_ccd.decide(kind, points).time
        assert first is not None
        assert first.enclosing_floats()[0] <= planted


@each_kind
@pytest.mark.parametrize("family", ["random_half_colliding", "random_in_one_plane", "collapsed_offset"])
def test_no_sampled_time_before_the_oracles_is_a_contact(kind, family, rng):
    for points in FAMILIES[family](kind, 12, rng).points:
        answer = flint_ccd.decide(kind, points)
        end = Fraction(answer.time.enclosing_floats()[0]) if answer.time else Fraction(1)
        assert not any(touching_at(kind, points, end * k / 8) for k in range(8) if end)


@each_kind
@pytest.mark.parametrize("family", FAMILIES)
def test_a_seed_gives_the_same_finite_queries_again(kind, family):
    first, again = (FAMILIES[family](kind, 7, np.random.default_rng(3)).points for _ in range(2))
    assert first.shape == (7, 8, 3)
    assert np.isfinite(first).all()
    np.testing.assert_array_equal(first, again)


@each_kind
def test_about_half_of_the_random_queries_collide(kind, effort, rng):
    points = FAMILIES["random_half_colliding"](kind, effort(300, least=300), rng).points
    assert 0.4 < np.mean([flint_ccd.decide(kind, query).hit for query in points]) < 0.6


@each_kind
def test_the_stored_degenerate_queries_can_be_made_again_bit_for_bit(kind):
    stored = make_degenerate.load(kind)
    assert stored["points"].shape == (1000, 8, 3)
    assert 400 < stored["hit"].sum() < 600
    for family in make_degenerate.BLOCKS:
        rows = stored["family"] == family
        points = stored["points"][rows]
        assert make_degenerate.block(kind, family).tobytes() == points.tobytes(), family
        for name, column in zip(
            ("hit", "time_below", "time_above"), make_degenerate.truth(kind, points[:5]), strict=True
        ):
            np.testing.assert_array_equal(stored[name][rows][:5], column, err_msg=f"{family} {name}")


def test_an_irrational_time_is_known_as_an_algebraic_number():
    """The face tilts as z = t x - 1 while the vertex runs along x = 2 t: they meet where 2 t^2 = 1."""
    face_start = [[-9.0, -9.0, -1.0], [9.0, -9.0, -1.0], [0.0, 9.0, -1.0]]
    face_end = [[-9.0, -9.0, -10.0], [9.0, -9.0, 8.0], [0.0, 9.0, -1.0]]
    points = np.array([[0.0, 0.0, 0.0], *face_start, [2.0, 0.0, 0.0], *face_end])
    time = flint_ccd.decide(Kind.VERTEX_FACE, points).time
    assert time is not None
    assert (time.coefficients, time.index) == ((-1, 0, 2), 1)
    below, above = time.enclosing_floats()
    assert 2 * Fraction(below) ** 2 < 1 < 2 * Fraction(above) ** 2
    assert np.nextafter(below, 1.0) == above


@pytest.mark.parametrize(
    ("a", "b", "meet"),
    [
        ([[0, 0, 0]], [[0, 0, 0]], True),
        ([[0, 0, 0]], [[0, 0, 1]], False),
        ([[1, 1, 0]], [[0, 0, 0], [2, 2, 0]], True),
        ([[3, 3, 0]], [[0, 0, 0], [2, 2, 0]], False),
        ([[0, 0, -1], [0, 0, 1]], [[-1, -1, 0], [3, 0, 0], [0, 3, 0]], True),
        ([[0, 0, 1], [0, 0, 2]], [[-1, -1, 0], [3, 0, 0], [0, 3, 0]], False),
        ([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[-9, -9, 0], [9, -9, 0], [0, 9, 0]], True),
    ],
)
def test_hulls_meet_where_the_eye_says_so(a, b, meet):
    assert hulls_meet(np.array(a, dtype=float), np.array(b, dtype=float)) is meet
