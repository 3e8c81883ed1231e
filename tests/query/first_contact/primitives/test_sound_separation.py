"""Contact at a distance: `separation`, `tolerance` and UNRESOLVED, against distances sampled densely in plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.distances import distance_at, query_size
from oracles.families.feature_queries import FAMILIES
from tangere.query.contacts import Kind, Status
from tangere.query.first_contact import FirstContacts, edge_edge, vertex_face
from tangere.query.first_contact.primitives.narrow_phase.exact import decide_many

QUERY = {Kind.VERTEX_FACE: vertex_face, Kind.EDGE_EDGE: edge_edge}
each_kind = pytest.mark.parametrize("kind", QUERY, ids=lambda kind: kind.name.lower())
TIMES = np.linspace(0.0, 1.0, 129)
#: Rounding of the oracle, relative to the query's size.
ROUNDING = 1e-11


def solve(kind: Kind, points: np.ndarray, **options) -> FirstContacts:
    return QUERY[kind](points[:, :4], points[:, 4:], **{"details": False, "device": "cpu", **options})


def assert_never_late_and_close_enough(kind: Kind, points: np.ndarray, answer: FirstContacts, separation: float):
    size = query_size(points)
    sampled = distance_at(kind, points, np.broadcast_to(TIMES, (len(points), len(TIMES))))
    before = answer.time[:, None] > TIMES
    assert np.all(sampled[before] > separation - ROUNDING * np.broadcast_to(size[:, None], before.shape)[before])
    touching = (answer.status == Status.CONTACT) | (answer.status == Status.START)
    now = distance_at(kind, points[touching], answer.time[touching])
    assert np.all(now <= separation + 1e-6 * size[touching])
    np.testing.assert_array_equal(answer.status == Status.START, touching & (answer.time == 0.0))
    np.testing.assert_array_equal(answer.status == Status.FREE, np.isinf(answer.time))


@each_kind
@pytest.mark.parametrize("separation", [1e-12, 1e-3, 0.1, 1.0])
@pytest.mark.parametrize(
    "family",
    [
        "random_half_colliding",
        "random_short_motion",
        "tiny_integer_grid_moved",
        "coplanar_moved",
        "parallel_always_offset",
        "parallel_at_impact_jittered",
        "grazing_offset",
        "sliding_moved",
        "collapsed_jittered",
        "collapsed_offset",
        "needles_moved",
    ],
)
def test_no_sampled_time_before_contact_is_within_the_separation_and_contact_itself_is(
    kind, family, separation, effort, rng, device
):
    points = FAMILIES[family](kind, effort(300), rng).points
    answer = solve(kind, points, separation=separation, device=device)
    assert np.all(answer.status != Status.UNRESOLVED)
    assert_never_late_and_close_enough(kind, points, answer, separation)


@each_kind
def test_a_face_or_edge_that_is_nearly_collapsed_is_not_in_contact_from_afar(kind, effort, rng):
    """Closest points of a sliver are badly conditioned; the distance is not."""
    for family in ("collapsed_jittered", "collapsed_offset"):
        points = FAMILIES[family](kind, effort(20_000, least=20_000), rng).points
        answer = solve(kind, points, separation=1e-3)
        touching = answer.status != Status.FREE
        now = distance_at(kind, points[touching], answer.time[touching])
        assert np.all(now <= 1e-3 + 1e-6 * query_size(points[touching]))


@each_kind
def test_a_separation_larger_than_the_distance_at_the_start_is_contact_at_the_start(kind, effort, rng):
    points = FAMILIES["random_half_colliding"](kind, effort(500), rng).points
    start = distance_at(kind, points, np.zeros(len(points)))
    for separation in (0.3, 1e6, 1e150):
        answer = solve(kind, points, separation=separation)
        within = start <= separation
        assert np.all(answer.status[within] == Status.START)
        assert np.all(answer.time[within] == 0.0)
        assert np.all(answer.status[start > separation * (1 + 1e-9)] != Status.START)


@each_kind
def test_contact_comes_earlier_the_larger_the_separation(kind, effort, rng):
    points = FAMILIES["random_half_colliding"](kind, effort(500), rng).points
    later = solve(kind, points).time
    for separation in (1e-14, 1e-9, 1e-3, 0.05):
        earlier = solve(kind, points, separation=separation).time
        assert np.all(earlier <= later + 1e-9)
        later = earlier


@each_kind
def test_a_vanishing_separation_gives_the_times_of_plain_contact(kind, effort, rng):
    points = FAMILIES["random_half_colliding"](kind, effort(500), rng).points
    plain, nearly = solve(kind, points), solve(kind, points, separation=1e-13)
    np.testing.assert_array_equal(plain.status, nearly.status)
    assert nearly.time[plain.hit] == pytest.approx(plain.time[plain.hit], abs=1e-9)


@each_kind
@pytest.mark.parametrize("exponent", [-300, -60, 60, 300])
def test_separation_at_every_scale_is_the_same_question(kind, exponent, effort, rng):
    points = FAMILIES["random_half_colliding"](kind, effort(500), rng).points
    as_given = solve(kind, points, separation=0.01)
    scaled = solve(kind, np.ldexp(points, exponent), separation=float(np.ldexp(0.01, exponent)))
    np.testing.assert_array_equal(as_given.status, scaled.status)
    assert as_given.time[as_given.hit] == pytest.approx(scaled.time[as_given.hit], abs=1e-9)


def test_a_vertex_above_a_face_is_in_contact_when_its_height_is_the_separation():
    x0 = np.array([[[0.25, 0.25, 1.0], [0, 0, 0], [1, 0, 0], [0, 1, 0]]])
    x1 = x0 - [[[0, 0, 2.0], [0, 0, 0], [0, 0, 0], [0, 0, 0]]]
    for separation in (0.5, 0.125, 1e-3):
        answer = vertex_face(x0, x1, separation=separation, device="cpu")
        assert answer.time[0] == pytest.approx((1 - separation) / 2, abs=1e-9)
        assert answer.time[0] <= (1 - separation) / 2
        assert answer.point_a[0] - answer.point_b[0] == pytest.approx([0, 0, separation], abs=1e-9)


@each_kind
@pytest.mark.parametrize("tolerance", [1e-3, 1e-6, 1e-9])
def test_a_contact_is_reported_within_the_tolerance_that_was_asked_for(kind, tolerance, effort, rng):
    for family in (
        "random_half_colliding",
        "grazing_offset",
        "needles_moved",
        "coplanar_boundary",
        "parallel_at_impact",
    ):
        points = FAMILIES[family](kind, effort(500), rng).points
        for separation in (0.0, 0.05):
            answer = solve(kind, points, separation=separation, tolerance=tolerance)
            touching = (answer.status == Status.CONTACT) | (answer.status == Status.START)
            now = distance_at(kind, points[touching], answer.time[touching])
            assert np.all(now <= separation + tolerance + ROUNDING * query_size(points[touching]))


@each_kind
def test_what_takes_too_long_is_unresolved_from_a_time_that_is_not_late_and_exact_mode_decides_it(kind, effort, rng):
    """Without a tolerance, features that stay near each other for a while cannot be told from touching ones."""
    family = "collapsed_offset" if kind == Kind.VERTEX_FACE else "parallel_at_impact"
    points = FAMILIES[family](kind, effort(20_000, least=2_000), rng).points
    strict, usual = solve(kind, points, tolerance=0.0), solve(kind, points)
    rows = np.flatnonzero(strict.status == Status.UNRESOLVED)
    assert 0 < len(rows) < 0.2 * len(points)
    assert np.all(np.isinf(strict.time_upper[rows]))
    assert np.all(strict.hit[rows])
    truth = decide_many(kind, points[rows])
    assert np.all(strict.time[rows] <= truth.time_below)
    exact = solve(kind, points[rows], mode="exact")
    np.testing.assert_array_equal(exact.status != Status.FREE, truth.hit)
    np.testing.assert_array_equal(exact.time, truth.time_below)
    # with a tolerance the same time is a contact: the features are that close there
    assert np.all((usual.status[rows] == Status.CONTACT) | (usual.status[rows] == Status.START))
    np.testing.assert_array_equal(usual.time[rows], strict.time[rows])
