"""Soundness: no contact is missed, no time is late, and what is called certain is true, on every family of queries."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from oracles import flint_ccd
from oracles.distances import distance_at, query_size
from oracles.families.feature_queries import FAMILIES, Queries
from oracles.families.worst_rounding import long_contacts
from tangere.query.contacts import Kind, Status
from tangere.query.first_contact import FirstContacts, edge_edge, vertex_face
from tangere.query.first_contact.primitives.narrow_phase.exact import ExactContacts, decide_many

QUERY = {Kind.VERTEX_FACE: vertex_face, Kind.EDGE_EDGE: edge_edge}
each_kind = pytest.mark.parametrize("kind", QUERY, ids=lambda kind: kind.name.lower())
each_family = pytest.mark.parametrize("family", FAMILIES)

#: At the reported time the distance is at most this part of the query's size.
TOLERANCE = 1e-6


def solve(kind: Kind, points: np.ndarray, device: str = "cpu", **options) -> FirstContacts:
    return QUERY[kind](points[:, :4], points[:, 4:], device=device, **{"details": False, **options})


def assert_planted_contacts_are_found(answer: FirstContacts, queries: Queries) -> None:
    assert queries.time is not None
    assert np.count_nonzero(answer.time > queries.time) == 0  # neither late nor, at infinity, missed
    assert np.all(answer.status != Status.FREE)


def assert_claims_are_true(answer: FirstContacts, rows: np.ndarray, exact: ExactContacts) -> None:
    """Times and statuses of some rows against the exact first contact of these queries."""
    time, upper, status = answer.time[rows], answer.time_upper[rows], answer.status[rows]
    assert np.all(status[exact.hit] != Status.FREE)
    assert np.all(time <= exact.time_below)
    assert np.all(exact.time_above <= upper)  # in particular a free query is never called certain
    assert np.all(np.isinf(time) == (status == Status.FREE))


def telling_rows(answer: FirstContacts, count: int, rng: np.random.Generator) -> np.ndarray:
    """A sample of the free, of the proved and of the other answers, a third each where there are enough."""
    groups = [answer.status == Status.FREE, np.isfinite(answer.time_upper)]
    groups.append(~groups[0] & ~groups[1])
    shuffled = [rng.permutation(np.flatnonzero(group)) for group in groups]
    return np.concatenate([rows[: count // 3] for rows in shuffled])


@pytest.mark.feature("F-T-19")
@each_kind
@each_family
def test_no_family_has_a_missed_or_late_contact_or_a_false_certainty(kind, family, effort, rng, device):
    queries = FAMILIES[family](kind, effort(2000), rng)
    answer = solve(kind, queries.points, device)
    if queries.time is not None:
        assert_planted_contacts_are_found(answer, queries)
    rows = telling_rows(answer, effort(36, least=9), rng)
    exact = decide_many(kind, queries.points[rows])
    assert_claims_are_true(answer, rows, exact)
    for row in rows[::12]:
        oracle = flint_ccd.decide(kind, queries.points[row])
        assert oracle.hit <= (answer.status[row] != Status.FREE)
        if oracle.time:
            assert answer.time[row] <= oracle.time.enclosing_floats()[0]
    # a contact whose crossing of the plane is proved is transversal: its time is known well
    proved = exact.hit & np.isfinite(answer.time_upper[rows])
    assert np.all(exact.time_below[proved] - answer.time[rows][proved] <= 1e-6)


@each_kind
@each_family
def test_at_the_reported_time_the_features_are_within_the_default_tolerance(kind, family, effort, rng):
    points = FAMILIES[family](kind, effort(1000), rng).points
    answer = solve(kind, points)
    reported = np.flatnonzero((answer.status == Status.CONTACT) | (answer.status == Status.START))
    scale = query_size(points[reported])
    near = points[reported] / np.where(scale > 0, scale, 1.0)[:, None, None]  # lengths near 1e-100 have no squares
    assert np.all(distance_at(kind, near, answer.time[reported]) <= TOLERANCE)


@pytest.mark.slow
@pytest.mark.feature("F-T-19")
@each_kind
@each_family
def test_ten_million_queries_have_no_missed_or_late_contact(kind, family):
    rng = np.random.default_rng(5)
    for count in chunks(10_000_000 // (2 * len(FAMILIES)) + 1, 20_000):
        queries = FAMILIES[family](kind, count, rng)
        answer = solve(kind, queries.points)
        if queries.time is not None:
            assert_planted_contacts_are_found(answer, queries)
        rows = telling_rows(answer, 300, rng)
        assert_claims_are_true(answer, rows, decide_many(kind, queries.points[rows]))


def chunks(total: int, size: int) -> Iterator[int]:
    for first in range(0, total, size):
        yield min(size, total - first)


@each_kind
def test_contacts_in_long_numbers_are_neither_missed_nor_late(kind, effort, rng):
    queries = long_contacts(kind, effort(100_000), rng)
    assert_planted_contacts_are_found(solve(kind, queries.points), queries)


@each_kind
def test_times_of_random_queries_are_within_a_millionth_of_the_true_root(kind, effort, rng):
    points = FAMILIES["random_half_colliding"](kind, effort(500, least=100), rng).points
    answer, exact = solve(kind, points), decide_many(kind, points)
    np.testing.assert_array_equal(answer.hit, exact.hit)
    early = exact.time_below[exact.hit] - answer.time[exact.hit]
    assert early.min() >= 0.0
    assert early.max() < 1e-6
    assert np.all(np.isfinite(answer.time_upper[exact.hit]))


@each_kind
def test_the_answer_does_not_depend_on_scale_by_powers_of_two(kind, effort, rng):
    points = FAMILIES["boundary_weights_offset"](kind, effort(2000), rng).points
    as_given = solve(kind, points)
    for exponent in (-60, -20, 20, 60):
        scaled = solve(kind, np.ldexp(points, exponent))
        np.testing.assert_array_equal(scaled.time, as_given.time)
        np.testing.assert_array_equal(scaled.status, as_given.status)


@each_kind
def test_far_from_the_origin_the_time_is_the_same_to_a_billionth(kind, effort, rng):
    points = np.round(FAMILIES["random_half_colliding"](kind, effort(2000), rng).points * 2**20) / 2**20
    near, far = solve(kind, points), solve(kind, points + 2.0**20)  # exact: the same motion
    np.testing.assert_array_equal(near.status, far.status)
    assert near.time[near.hit] == pytest.approx(far.time[near.hit], rel=1e-9, abs=1e-9)


def test_a_tiny_edge_at_the_end_of_a_huge_one_is_not_lost_to_underflow(effort, rng):
    """Products of 1e-162 lose their digits before the factor 1e96 makes them large: no relative bound covers that."""
    n, tiny, huge = effort(20_000, least=20_000), 2.0**-537, 2.0**320
    time = rng.integers(1, 16, n) / 16
    velocity = rng.integers(-64, 65, (n, 3)) / 8 * tiny * [0, 1, 1]
    at_contact = np.zeros((n, 4, 3))
    at_contact[:, 1, 0], at_contact[:, 2, 0] = tiny, tiny / 2
    at_contact[:, 3] = rng.integers(-64, 65, (n, 3)) / 64 * huge
    moves = np.zeros((n, 4, 3))
    moves[:, 2] = velocity
    t = time[:, None, None]
    points = np.concatenate([at_contact - t * moves, at_contact + (1 - t) * moves], axis=1)
    assert_planted_contacts_are_found(solve(Kind.EDGE_EDGE, points), Queries(points, time))


@each_kind
def test_the_smallest_doubles_are_not_missed(kind, effort, rng):
    queries = FAMILIES["boundary_weights"](kind, effort(2000), rng)
    tiny = Queries(np.ldexp(queries.points, -1064), queries.time)
    assert_planted_contacts_are_found(solve(kind, tiny.points), tiny)
