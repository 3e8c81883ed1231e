"""The exact decision against oracles by algebraic numbers and by rational linear programming."""

from __future__ import annotations

from fractions import Fraction
from math import inf

import numpy as np
import pytest
from flint import fmpz_poly
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from data import make_degenerate
from oracles import flint_ccd
from oracles.families.feature_queries import FAMILIES
from oracles.families.sample_queries import read_families
from oracles.fraction_ccd import hulls_meet, touching_at
from oracles.mesh_contacts import edge_pierces_face, triangles_intersect
from tangere.geometry.polynomials import roots_in_unit_interval
from tangere.query.contacts import Kind
from tangere.query.first_contact.primitives.narrow_phase.exact import (
    ExactContact,
    decide,
    decide_many,
)
from tangere.runtime import InputError

KINDS = (Kind.VERTEX_FACE, Kind.EDGE_EDGE)
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name.lower())
each_family = pytest.mark.parametrize("family", FAMILIES)

FACE = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]


def oracle_answer(kind: Kind, points: np.ndarray) -> ExactContact:
    answer = flint_ccd.decide(kind, points)
    return ExactContact(answer.hit, *(answer.time.enclosing_floats() if answer.time else (inf, inf)))


def assert_agrees_with_oracle(kind: Kind, family: str, count: int, rng: np.random.Generator) -> None:
    for points in FAMILIES[family](kind, count, rng).points:
        assert decide(kind, points) == oracle_answer(kind, points), points.tolist()


@each_kind
@each_family
def test_every_family_gets_the_oracles_answer_and_tightest_doubles(kind, family, effort, rng):
    assert_agrees_with_oracle(kind, family, effort(50), rng)


@pytest.mark.slow
@each_kind
@each_family
def test_a_hundred_thousand_queries_get_the_oracles_answer(kind, family):
    assert_agrees_with_oracle(kind, family, 100_000 // (2 * len(FAMILIES)) + 1, np.random.default_rng(1))


@each_kind
def test_all_stored_degenerate_queries_are_decided_as_the_oracle_did(kind):
    stored = make_degenerate.load(kind)
    answers = decide_many(kind, stored["points"])
    np.testing.assert_array_equal(answers.hit, stored["hit"])
    np.testing.assert_array_equal(answers.time_below, stored["time_below"])
    np.testing.assert_array_equal(answers.time_above, stored["time_above"])


@pytest.mark.feature("F-T-24")
def test_every_public_sample_query_is_decided_as_its_ground_truth_says(data_folder):
    for queries in read_families(data_folder):
        hit = decide_many(queries.kind, queries.points).hit
        np.testing.assert_array_equal(hit, queries.truth, err_msg=f"{queries.family} {queries.kind.name}")


@given(above=st.floats(2.0**-1074, 1e300), below=st.floats(0.0, 1e300))
@example(above=5e-324, below=1e300)
@example(above=1e300, below=5e-324)
@example(above=1.0, below=2.0)
@example(above=1.0, below=0.0)
def test_the_time_of_a_fall_is_enclosed_by_the_nearest_doubles(above, below):
    """A vertex falls from height `above` to `-below` over a resting face: the time is their ratio."""
    start, end = [0.25, 0.25, above], [0.25, 0.25, -below]
    time = Fraction(above) / (Fraction(above) + Fraction(below))
    expected = ExactContact(True, *flint_ccd.enclosing_floats(time))
    assert decide(Kind.VERTEX_FACE, np.array([start, *FACE, end, *FACE])) == expected


@each_kind
def test_subnormal_coordinates_are_decided_like_ordinary_ones(kind, rng):
    points = FAMILIES["boundary_weights"](kind, 40, rng).points
    tiny = np.ldexp(points, -1064)
    assert (np.abs(tiny) < np.finfo(np.float64).tiny).all()
    np.testing.assert_array_equal(np.ldexp(tiny, 1064), points)
    assert [decide(kind, query) for query in tiny] == [decide(kind, query) for query in points]


@each_kind
def test_coordinates_of_every_magnitude_within_one_query_are_decided_exactly(kind, rng):
    for _ in range(30):
        points = FAMILIES["generic"](kind, 1, rng).points[0] * 2.0 ** rng.integers(-500, 500, (1, 3))
        points *= 2.0 ** np.repeat(rng.integers(0, 60, (4, 1)), 2, axis=0)
        assert decide(kind, points) == oracle_answer(kind, points)


@each_kind
def test_contact_at_a_time_that_is_a_double_is_contact_by_linear_programming(kind, rng):
    checked = 0
    for points in FAMILIES["coplanar"](kind, 60, rng).points:
        answer = decide(kind, points)
        if answer.time_below == answer.time_above:
            assert touching_at(kind, points, Fraction(answer.time_below))
            checked += 1
    assert checked > 10


def test_a_vertex_resting_in_its_face_touches_at_the_start():
    points = np.array([[0.25, 0.25, 0.0], *FACE] * 2)
    assert decide(Kind.VERTEX_FACE, points) == ExactContact(True, 0.0, 0.0)


def test_a_face_that_shrinks_to_a_point_misses_a_far_vertex():
    far = [5.0, 3.0, 0.0]
    assert not decide(Kind.VERTEX_FACE, np.array([far, *FACE, far, *([[0.0] * 3] * 3)])).hit


def test_an_edge_that_shrinks_to_a_point_misses_a_far_point_edge():
    far, start = [5.0, 3.0, 0.0], [[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    assert not decide(Kind.EDGE_EDGE, np.array([far, far, *start, far, far, [0.0] * 3, [0.0] * 3])).hit


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_coordinate_that_is_not_finite_is_refused(bad):
    points = np.array([[9.0, 9.0, 9.0], *FACE] * 2)
    points[5, 1] = bad
    with pytest.raises(InputError, match="finite"):
        decide(Kind.VERTEX_FACE, points)


def test_wrong_shapes_and_kinds_are_refused():
    with pytest.raises(InputError, match=r"\(8, 3\)"):
        decide(Kind.VERTEX_FACE, np.zeros((4, 3)))
    with pytest.raises(InputError, match="VERTEX_FACE or EDGE_EDGE"):
        decide(Kind.VERTEX_EDGE, np.zeros((8, 3)))


@pytest.mark.parametrize("progress", [False, True])
def test_a_batch_is_the_single_decisions_in_order(progress, rng):
    points = FAMILIES["random_half_colliding"](Kind.EDGE_EDGE, 20, rng).points
    batch = decide_many(Kind.EDGE_EDGE, points, progress=progress)
    singles = [decide(Kind.EDGE_EDGE, query) for query in points]
    assert [*map(ExactContact, batch.hit, batch.time_below, batch.time_above)] == singles
    assert len(decide_many(Kind.EDGE_EDGE, points[:0])) == 0


small_triangle = arrays(np.float64, (3, 3), elements=st.sampled_from([-1.0, 0.0, 1.0, 2.0]))
flat_triangle = arrays(np.float64, (3, 3), elements=st.integers(0, 4).map(float)).map(lambda p: p * [1.0, 1.0, 0.0])
any_triangle = st.one_of(small_triangle, flat_triangle)


@given(a=any_triangle, b=any_triangle)
def test_static_tests_agree_with_linear_programming_on_small_grids(a, b):
    assert triangles_intersect(a, b) == hulls_meet(a, b)
    for i in range(3):
        assert edge_pierces_face(a[[i, i - 1]], b) == hulls_meet(a[[i, i - 1]], b)


def test_static_tests_agree_with_linear_programming_an_ulp_from_touching(effort, rng):
    answers = []
    for _ in range(effort(60)):
        a, b = rng.integers(-8, 9, (2, 3, 3)) / 8.0
        b += (a[0] + a[1]) / 2 - b[0]  # a corner of b on an edge of a
        b = np.nextafter(b, rng.choice([-9.0, 9.0], b.shape))
        answers.append(triangles_intersect(a, b))
        assert answers[-1] == hulls_meet(a, b)
    assert 0 < sum(answers) < len(answers)


factors = st.lists(st.lists(st.integers(-9, 9), min_size=2, max_size=4), min_size=1, max_size=3)


@given(factors=factors, other=st.lists(st.integers(-9, 9), min_size=1, max_size=3))
@example(factors=[[-1, 2], [-1, 2], [0, 1]], other=[-1, 2])
@example(factors=[[-1, 3], [-1, 3], [1, -1], [-1, 0, 2]], other=[-1, 0, 2])
def test_roots_and_signs_at_them_agree_with_algebraic_numbers(factors, other):
    """Products of small factors: multiple, dyadic, rational and irrational roots, also at both ends."""
    polynomial, also = fmpz_poly([1]), fmpz_poly(other)
    for factor in [*factors, other]:
        polynomial *= fmpz_poly(factor)
    roots = list(roots_in_unit_interval([int(c) for c in polynomial.coeffs()]))
    expected = flint_ccd.roots_in_step(polynomial)
    signs = [root.sign_of([int(c) for c in also.coeffs()]) for root in roots]
    assert signs == [number.sign_of(also) for number in expected]
    assert [root.enclosing_floats() for root in roots] == [number.enclosing_floats() for number in expected]
