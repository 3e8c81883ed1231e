"""The sound and the exact mode on stored queries: the public sample set, the degenerate set and the spec's table."""

from __future__ import annotations

import numpy as np
import pytest

from data import make_degenerate
from oracles.distances import distance_at, query_size
from oracles.families.degenerate_situations import CASES, INVALID, Case
from oracles.families.feature_queries import FAMILIES
from oracles.families.sample_queries import SampleQueries, read_families
from tangere.query.contacts import Kind, Status
from tangere.query.first_contact import FirstContacts, edge_edge, triangle_triangle, vertex_face
from tangere.runtime import InputError

QUERY = {Kind.VERTEX_FACE: vertex_face, Kind.EDGE_EDGE: edge_edge, None: triangle_triangle}
each_kind = pytest.mark.parametrize("kind", [Kind.VERTEX_FACE, Kind.EDGE_EDGE], ids=lambda kind: kind.name.lower())
each_mode = pytest.mark.parametrize("mode", ["sound", "exact"])


def solve(kind: Kind, points: np.ndarray, mode="sound", device: str = "cpu") -> FirstContacts:
    return QUERY[kind](points[:, :4], points[:, 4:], mode=mode, device=device, details=False)


def assert_false_alarms_are_near_touches(
    kind: Kind, points: np.ndarray, answer: FirstContacts, truth: np.ndarray, within=1e-12
):
    """Where nothing touches, something was reported only because it comes within rounding."""
    rows = np.flatnonzero((answer.status != Status.FREE) & ~truth)
    assert np.all(np.isinf(answer.time_upper[rows]))
    gap = distance_at(kind, points[rows], answer.time[rows])
    assert np.all(gap < within * query_size(points[rows]))


# --- The public sample queries ----------------------------------------------------------------------------------------


def sample_queries(data_folder, kind: Kind) -> list[SampleQueries]:
    return [queries for queries in read_families(data_folder) if queries.kind == kind]


@pytest.mark.feature("F-T-8", "F-T-10", "F-T-19")
@each_kind
def test_no_public_sample_query_is_missed_and_false_alarms_are_near_touches(kind, data_folder, device):
    for queries in sample_queries(data_folder, kind):
        answer = solve(kind, queries.points, device=device)
        assert np.all(answer.status[queries.truth] != Status.FREE), queries.family
        assert_false_alarms_are_near_touches(kind, queries.points, answer, queries.truth)


@pytest.mark.feature("F-T-24")
@each_kind
def test_every_public_sample_query_is_decided_by_exact_mode(kind, data_folder):
    for queries in sample_queries(data_folder, kind):
        answer = solve(kind, queries.points, "exact")
        np.testing.assert_array_equal(answer.status != Status.FREE, queries.truth, err_msg=queries.family)
        assert np.all(np.isfinite(answer.time_upper) == queries.truth)


@pytest.mark.slow
@each_kind
def test_false_alarms_on_the_sample_queries_are_at_most_sixty_percent_of_the_best_peers(kind, data_folder):
    ipctk = pytest.importorskip("ipctk", reason="the peer is in the extra [bench]")
    points = np.concatenate([queries.points for queries in sample_queries(data_folder, kind)])
    truth = np.concatenate([queries.truth for queries in sample_queries(data_folder, kind)])
    peers = (ipctk.TightInclusionCCD(1e-6), ipctk.AdditiveCCD(conservative_rescaling=0.999))
    asked = "point_triangle_ccd" if kind == Kind.VERTEX_FACE else "edge_edge_ccd"
    alarms = [sum(getattr(peer, asked)(*query)[0] for query in points[~truth]) for peer in peers]
    ours = np.count_nonzero(solve(kind, points).status[~truth])
    assert 0 < ours <= 0.6 * min(alarms)


# --- The stored degenerate queries ------------------------------------------------------------------------------------


@pytest.mark.feature("F-T-19")
@each_kind
def test_no_stored_degenerate_query_is_missed_or_late_and_false_alarms_are_near_touches(kind, device):
    stored = make_degenerate.load(kind)
    answer = solve(kind, stored["points"], device=device)
    assert np.all(answer.status[stored["hit"]] != Status.FREE)
    assert np.all(answer.time <= stored["time_below"])
    assert np.all(stored["time_above"] <= answer.time_upper)
    assert_false_alarms_are_near_touches(kind, stored["points"], answer, stored["hit"], within=1e-8)


@each_kind
def test_exact_mode_finds_the_hits_and_encloses_the_times_of_every_stored_degenerate_query(kind, device):
    stored = make_degenerate.load(kind)
    answer = solve(kind, stored["points"], "exact", device)
    hit = stored["hit"]
    np.testing.assert_array_equal(answer.status != Status.FREE, hit)
    assert np.all(answer.time <= stored["time_below"])
    assert np.all(stored["time_above"] <= answer.time_upper)
    np.testing.assert_array_equal(answer.status == Status.START, stored["time_above"] == 0.0)
    proved = np.isfinite(solve(kind, stored["points"], device=device).time_upper)
    assert 0 < np.count_nonzero(proved) < np.count_nonzero(hit)
    settled = hit & ~proved
    np.testing.assert_array_equal(answer.time[settled], stored["time_below"][settled])
    np.testing.assert_array_equal(answer.time_upper[settled], stored["time_above"][settled])


@each_kind
def test_exact_mode_leaves_free_queries_and_proved_contacts_as_sound_mode_found_them(kind, effort, rng):
    for family in ("random_half_colliding", "boundary_weights_offset", "tiny_integer_grid_jittered"):
        points = FAMILIES[family](kind, effort(500), rng).points
        sound, exact = solve(kind, points), solve(kind, points, "exact")
        settled = (sound.status == Status.FREE) | np.isfinite(sound.time_upper)
        for column in ("time", "time_upper", "status"):
            np.testing.assert_array_equal(getattr(exact, column)[settled], getattr(sound, column)[settled])
        opened = ~settled & (exact.status != Status.FREE)
        assert np.all(sound.time[opened] <= exact.time[opened])
        assert np.all(np.nextafter(exact.time[opened], 2.0) >= exact.time_upper[opened])


# --- The table of degenerate situations -------------------------------------------------------------------------------


def answer_of(case: Case, mode: str, device: str) -> FirstContacts:
    return QUERY[case.kind](np.array([case.x0]), np.array([case.x1]), mode=mode, device=device)


@each_mode
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_degenerate_situations_of_the_specification_are_decided_as_required(case: Case, mode, device):
    answer = answer_of(case, mode, device)
    assert Status(answer.status[0]) == case.status
    early = 1e-6 if case.double_root and mode == "sound" else 1e-9
    assert answer.time[0] == pytest.approx(case.time, rel=early)
    assert answer.time[0] <= case.time
    assert answer.time_upper[0] >= case.time
    if mode == "exact":
        assert np.isfinite(answer.time_upper[0]) == np.isfinite(case.time)
    for column in (answer.normal, answer.point_a, answer.point_b):
        assert np.isfinite(column[0]).all() == np.isfinite(case.time)


@each_mode
@pytest.mark.parametrize("case", INVALID, ids=lambda case: case.name)
def test_coordinates_that_are_not_finite_are_refused(case: Case, mode):
    with pytest.raises(InputError, match="query 0"):
        answer_of(case, mode, "cpu")
