"""The course as printed: the same answers as a literal NumPy version, with the failures the specification counts."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from oracles import literal_course
from oracles.families.degenerate_situations import CASES
from oracles.families.feature_queries import random_half_colliding
from oracles.families.sample_queries import read_sample_queries
from tangere.published.course import Reading, solve, solve_triangles
from tangere.published.course.triangle_tests import TESTS, VERTEX_EDGE_PAIRS
from tangere.query.contacts import Kind, Status
from tangere.runtime import InputError, UnsupportedError

LITERAL = {Kind.VERTEX_FACE: literal_course.vertex_face, Kind.EDGE_EDGE: literal_course.edge_edge}
#: The six readings of `bench/course_table_8.py`.
READINGS = [
    Reading(vanishing="none"),
    Reading(),
    Reading(widen=1e-9),
    Reading(vanishing="none", zero=1e-12),
    Reading(zero=1e-12),
    Reading(zero=1e-12, widen=1e-9),
]


def published(kind, x0, x1, reading=None, device="cpu"):
    """Times of first contact by the library; `kind` None is triangles."""
    start, end = (wp.array(np.ascontiguousarray(x), dtype=wp.vec3d, device=device) for x in (x0, x1))
    reading = reading or Reading()
    time, status = solve_triangles(start, end, reading) if kind is None else solve(kind, start, end, reading)
    time, status = time.numpy(), status.numpy()
    assert np.array_equal(status == Status.FREE, np.isinf(time))
    assert np.array_equal(status == Status.START, time == 0)
    return time


def literal(kind, x0, x1, reading=None):
    reading = reading or Reading()
    return np.array([LITERAL[kind](r, s - r, reading) for r, s in zip(x0, x1, strict=True)])


def case(name):
    return next(case for case in CASES if case.name == name)


@pytest.mark.feature("F-T-16")
@pytest.mark.parametrize("kind", [Kind.VERTEX_FACE, Kind.EDGE_EDGE])
@pytest.mark.parametrize("reading", READINGS, ids=str)
def test_every_reading_gives_the_misses_and_false_alarms_of_the_literal_method(kind, reading, data_folder, device):
    x0, x1, collides = read_sample_queries(data_folder, kind)
    expected, found = literal(kind, x0, x1, reading), published(kind, x0, x1, reading, device)
    hit, literal_hit = np.isfinite(found), np.isfinite(expected)
    assert np.array_equal(collides & ~hit, collides & ~literal_hit)  # the same collisions are missed
    # a strict inside test on a touching query is decided by the last bit of the root, which the two do not share
    assert np.count_nonzero(hit != literal_hit) <= (0 if reading.widen else 0.01 * len(collides))
    both = hit & literal_hit
    assert found[both] == pytest.approx(expected[both], abs=1e-12)


@pytest.mark.feature("F-T-16")
def test_the_readings_fail_in_the_order_the_specification_reports(data_folder):
    missed, false_alarms = {}, {}
    for reading in READINGS:
        missed[reading], false_alarms[reading] = 0, 0
        for kind in LITERAL:
            x0, x1, collides = read_sample_queries(data_folder, kind)
            hit = np.isfinite(published(kind, x0, x1, reading))
            missed[reading] += np.count_nonzero(collides & ~hit)
            false_alarms[reading] += np.count_nonzero(hit & ~collides)
    none, charitable, widened, none_rounded, rounded, rounded_widened = READINGS
    assert missed[none] > missed[charitable] >= missed[widened]
    assert missed[none_rounded] > missed[none]
    assert missed[rounded] >= missed[rounded_widened] > missed[widened]
    assert false_alarms[widened] > 2 * false_alarms[charitable]


@pytest.mark.parametrize("kind", [Kind.VERTEX_FACE, Kind.EDGE_EDGE])
def test_ordinary_motion_gives_the_times_of_the_literal_method(kind, rng, effort, device):
    points = random_half_colliding(kind, effort(1000), rng).points
    x0, x1 = points[:, :4], points[:, 4:]
    expected, found = literal(kind, x0, x1), published(kind, x0, x1, device=device)
    assert 0.2 < np.isfinite(expected).mean() < 0.8
    assert np.array_equal(np.isfinite(found), np.isfinite(expected))
    hit = np.isfinite(expected)
    assert found[hit] == pytest.approx(expected[hit], abs=1e-12)


def test_triangles_touch_at_the_earliest_of_the_fifteen_literal_tests(rng, effort, device):
    count = effort(200)
    x0, x1 = rng.normal(size=(2, count, 6, 3)) * 0.5 + np.repeat([[-1.0, 0, 0], [1, 0, 0]], 3, axis=0)
    x1[:, :3] += [1, 0, 0]
    x1[:, 3:] -= [1, 0, 0]
    expected = np.min([literal(k, x0[:, list(v)], x1[:, list(v)]) for k, v in TESTS], axis=0)
    found = published(None, x0, x1, device=device)
    assert 0.2 < np.isfinite(expected).mean() < 1
    assert found == pytest.approx(expected, abs=1e-12)


def test_coplanar_triangles_of_the_xy_plane_are_all_found_or_none_as_the_vanishing_component_is_read(rng):
    a = rng.uniform(-1, 1, (300, 3, 2))
    x0 = np.zeros((300, 6, 3))
    x0[:, :3, :2] = a
    x0[:, 3:, :2] = rng.uniform(-1, 1, (300, 3, 2)) + [3, 0]
    x1 = x0.copy()
    x1[:, 3:, 0] -= 3  # the centres come to within each other's reach: most pairs touch on the way
    overlap = np.array([triangles_overlap(x[:3, :2], x[3:, :2]) for x in x1])
    assert np.count_nonzero(overlap) >= 90
    assert np.isfinite(published(None, x0, x1, Reading(vanishing="all")))[overlap].all()
    assert not np.isfinite(published(None, x0, x1, Reading(vanishing="none"))).any()


def triangles_overlap(a, b):
    """Separating axes in the plane."""
    for triangle in (a, b):
        for k in range(3):
            edge = triangle[(k + 1) % 3] - triangle[k]
            normal = np.array([-edge[1], edge[0]])
            if (a @ normal).max() < (b @ normal).min() or (b @ normal).max() < (a @ normal).min():
                return False
    return True


@pytest.mark.feature("F-T-12")
def test_planar_vertex_edge_hits_are_found_500_times_in_500_or_never(rng, device):
    time = rng.integers(1, 16, 500) / 16
    ends = np.stack([rng.integers(-32, 0, (500, 2)), rng.integers(1, 33, (500, 2))], axis=1) / 8.0
    vertex = ends[:, 0] + rng.integers(1, 8, (500, 1)) / 8 * (ends[:, 1] - ends[:, 0])
    now = np.concatenate([vertex[:, None], ends], axis=1)
    velocity = rng.integers(-32, 33, (500, 3, 2)) / 8.0
    velocity[:, 0] = velocity[:, 1] + [[9, -9]]  # across the edge, which points up and to the right
    velocity[:, 2] = velocity[:, 1]
    x0, x1 = np.zeros((2, 500, 3, 3))
    x0[:, :, :2] = now - velocity * time[:, None, None]
    x1[:, :, :2] = now + velocity * (1 - time[:, None, None])
    found = published(Kind.VERTEX_EDGE, x0, x1, device=device)
    assert found == pytest.approx(time, abs=1e-12)
    assert np.isinf(published(Kind.VERTEX_EDGE, x0, x1, Reading(vanishing="none"), device)).all()


def test_an_edge_that_collapses_is_touched_by_a_far_vertex_as_printed():
    x0 = np.array([[[5.0, 3, 0], [-1, 0, 0], [1, 0, 0]]])
    x1 = np.array([[[5.0, 3, 0], [1, 0, 0], [-1, 0, 0]]])
    assert published(Kind.VERTEX_EDGE, x0, x1) == [0.5]


@pytest.mark.feature("F-T-13")
def test_a_vertex_that_slides_along_an_edge_is_found_by_the_neighbouring_edge():
    sliding = case("triangle slides along the line of an edge")
    pairs = np.array(VERTEX_EDGE_PAIRS)
    time = published(Kind.VERTEX_EDGE, sliding.x0[pairs], sliding.x1[pairs])
    by_pair = dict(zip(VERTEX_EDGE_PAIRS, time, strict=True))
    assert np.isinf(by_pair[3, 0, 1])
    assert by_pair[3, 1, 2] == 1.0
    assert published(None, sliding.x0[None], sliding.x1[None]) == [1.0]


def test_grazing_contact_is_found_in_less_than_all_frames_and_in_all_with_a_looser_root_test(rng):
    grazing = case("vertex grazes a face")
    frames = np.linalg.qr(rng.normal(size=(2000, 3, 3)))[0]
    x0, x1 = grazing.x0 @ frames, grazing.x1 @ frames
    ours = np.isfinite(published(grazing.kind, x0, x1)).mean()
    numpys = np.isfinite(literal(grazing.kind, x0, x1)).mean()
    assert 0.2 < ours < 0.8
    assert ours == pytest.approx(numpys, abs=0.15)
    assert np.isfinite(published(grazing.kind, x0, x1, Reading(imaginary=1e-7))).all()


@pytest.mark.parametrize(
    "name",
    [
        "already interpenetrating, at relative rest",
        "edges parallel at impact",
        "face collapses to a segment when it is hit",
    ],
)
def test_what_the_printed_method_misses_is_missed(name):
    missed = case(name)
    assert np.isinf(published(missed.kind, missed.x0[None], missed.x1[None])).all()


def test_a_vertex_inside_a_coplanar_face_is_seen_only_when_it_leaves():
    inside = case("coplanar vertex inside at the start")
    assert published(inside.kind, inside.x0[None], inside.x1[None]) == [0.5]


def test_an_absolute_zero_threshold_takes_small_queries_for_coplanar_ones(rng):
    points = random_half_colliding(Kind.VERTEX_FACE, 500, rng).points * 1e-5
    x0, x1 = points[:, :4], points[:, 4:]
    strict, rounded = (published(Kind.VERTEX_FACE, x0, x1, reading) for reading in (Reading(), Reading(zero=1e-12)))
    assert np.count_nonzero(np.isfinite(strict)) > 100
    assert np.isinf(rounded).all()


def test_readings_are_checked():
    with pytest.raises(InputError, match="vanishing"):
        Reading(vanishing="some")  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="widen"):
        Reading(widen=-1.0)


def test_pairs_the_course_does_not_test_are_refused():
    x = wp.zeros((1, 2), dtype=wp.vec3d, device="cpu")
    with pytest.raises(UnsupportedError, match="VERTEX_VERTEX"):
        solve(Kind.VERTEX_VERTEX, x, x)
