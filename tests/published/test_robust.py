"""The robust scheme: candidates, degenerate situations, coplanar motion, the public query set."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from oracles.families.degenerate_situations import CASES, INVALID, Case
from oracles.families.sample_queries import read_sample_queries
from tangere.published.course.cubic_candidates import candidate, extrema, rounding, vanishes
from tangere.published.course.polynomials import coplanarity
from tangere.published.course.robust import robust_filter, robust_triangles, vertex_edge_times
from tangere.query.contacts import Kind, Status
from tangere.query.first_contact.primitives.triangle_features import EDGE_EDGE_TESTS
from tangere.runtime import SOUND, InputError, UnsupportedError

wp.set_module_options(SOUND)


@wp.kernel
def _candidates(p: wp.array[wp.vec4d], tau: wp.array[wp.float64], found: wp.array2d[wp.float64]):
    i = wp.tid()
    breaks = extrema(p[i])
    for k in range(7):
        found[i, k] = candidate(p[i], breaks, k, tau[i])
    if vanishes(p[i], breaks, tau[i]):
        found[i, 0] = wp.float64(-1.0)


@wp.kernel
def _vanishing(
    x0: wp.array2d[wp.vec3d], x1: wp.array2d[wp.vec3d], relative: wp.array[wp.float64], zero: wp.array[wp.bool]
):
    i = wp.tid()
    r = wp.matrix_from_rows(x0[i, 1] - x0[i, 0], x0[i, 2] - x0[i, 0], x0[i, 3] - x0[i, 0])
    s = wp.matrix_from_rows(x1[i, 1] - x1[i, 0], x1[i, 2] - x1[i, 0], x1[i, 3] - x1[i, 0])
    p = coplanarity(r[0], r[1], r[2], s[0] - r[0], s[1] - r[1], s[2] - r[2])
    tau = rounding(r, s)
    relative[i] = wp.abs(p[0]) + wp.abs(p[1]) + wp.abs(p[2]) + wp.abs(p[3])
    zero[i] = vanishes(p, extrema(p), tau)


@wp.kernel
def _vertex_edge_times(x0: wp.array2d[wp.vec3d], x1: wp.array2d[wp.vec3d], times: wp.array[wp.vec4d]):
    i = wp.tid()
    times[i] = vertex_edge_times(x0[i, 1] - x0[i, 0], x0[i, 2] - x0[i, 0], x1[i, 1] - x1[i, 0], x1[i, 2] - x1[i, 0])


def candidates(p, tau):
    """Rows of candidate times without the missing ones; "all" for a cubic that is zero to rounding."""
    p = np.atleast_2d(np.array(p, dtype=float))
    found = wp.empty((len(p), 7), dtype=wp.float64, device="cpu")
    tolerances = wp.array(np.broadcast_to(tau, len(p)).copy(), dtype=wp.float64, device="cpu")
    wp.launch(_candidates, len(p), [wp.array(p, dtype=wp.vec4d, device="cpu"), tolerances], [found], device="cpu")
    return ["all" if row[0] == -1 else row[np.isfinite(row)] for row in found.numpy()]


def vertices(x, device):
    return wp.array(x, dtype=wp.vec3d, device=device)


@pytest.mark.feature("F-T-5")
@pytest.mark.parametrize("size", [1e-6, 1e-3, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("roots", [[], [0.3], [0.2, 0.7], [0.1, 0.45, 0.9]])
def test_candidates_are_the_roots_of_the_cubic_at_every_scale(roots, size):
    polynomial = np.poly(roots) if roots else np.array([1.0, 0.0, 1.0])
    p = np.concatenate([np.zeros(4 - len(polynomial)), polynomial]) * size**3
    (found,) = candidates(p, 1e-14 * size**3)
    assert found == pytest.approx(roots, abs=1e-13)


@pytest.mark.feature("F-T-5")
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_a_cubic_below_its_rounding_error_is_zero_at_all_times_and_no_other_is(size):
    noise = np.array([1.0, -1.0, 1.0, -1.0]) * size**3
    assert candidates(1e-16 * noise, 1e-14 * size**3) == ["all"]
    assert isinstance(candidates(1e-12 * noise, 1e-14 * size**3)[0], np.ndarray)


@pytest.mark.feature("F-T-5")
def test_double_and_triple_roots_are_found(rng):
    touch, other = rng.uniform(0.05, 0.95, (2, 500))
    doubles = np.array([np.poly([a, a, b]) for a, b in zip(touch, other, strict=True)])
    for found, a, b in zip(candidates(doubles, 1e-13), touch, other, strict=True):
        assert np.abs(found - a).min() < 1e-6
        assert np.abs(found - b).min() < 1e-6
    (found,) = candidates(np.poly([0.5, 0.5, 0.5]), 1e-13)
    assert np.abs(found - 0.5).min() < 1e-4


@pytest.mark.feature("F-T-11")
@pytest.mark.parametrize("plane", ["xy", "yz", "zx", "random"])
def test_the_time_of_collinearity_is_among_the_vertex_edge_times(plane, rng):
    x0, x1, time = planar_vertex_edge_hits(500, plane, rng)
    times = wp.empty(500, dtype=wp.vec4d, device="cpu")
    wp.launch(_vertex_edge_times, 500, [vertices(x0, "cpu"), vertices(x1, "cpu")], [times], device="cpu")
    assert np.abs(times.numpy() - time[:, None]).min(axis=1).max() < 1e-6


@pytest.mark.feature("F-T-12")
@pytest.mark.parametrize("plane", ["xy", "yz", "zx", "random"])
def test_a_vertex_that_hits_an_edge_in_a_plane_is_found_500_times_in_500(plane, rng, device):
    x0, x1, time = planar_vertex_edge_hits(500, plane, rng)
    order = [0, 0, 1, 2]  # the vertex as an edge without length
    answer = robust_filter(Kind.EDGE_EDGE, x0[:, order], x1[:, order], device=device)
    assert np.count_nonzero(answer.status == Status.CONTACT) == 500
    assert np.all(answer.time <= time + 1e-7)


@pytest.mark.feature("F-T-12")
def test_an_edge_that_collapses_far_from_the_vertex_is_no_contact(rng):
    away = rng.normal(size=(200, 3))
    away *= 4 / np.linalg.norm(away, axis=1, keepdims=True)
    end = rng.uniform(-1, 1, (200, 3))
    x0 = np.stack([away, away, end, -end], axis=1)
    x1 = np.stack([away, away, -end, end], axis=1)
    assert not robust_filter(Kind.EDGE_EDGE, x0, x1).hit.any()


@pytest.mark.feature("F-T-14")
@pytest.mark.parametrize("size", [1e-6, 1e-3, 1.0, 1e3, 1e6])
def test_parallel_edges_that_translate_are_coplanar_to_rounding_and_generic_ones_are_not(size, rng):
    edge, offset, move = rng.normal(size=(3, 500, 3)) * size
    parallel = np.stack([0 * edge, edge, offset, offset + edge * rng.uniform(0.5, 2, (500, 1))], axis=1)
    moved = parallel + np.concatenate([np.zeros((500, 2, 3)), np.repeat(move[:, None], 2, axis=1)], axis=1)
    assert zero_flags(parallel, moved)[1].all()
    generic = rng.normal(size=(2, 500, 4, 3)) * size
    largest, zero = zero_flags(*generic)
    assert not zero.any()
    if size <= 1e-3:
        assert largest.max() < 1e-6  # an absolute threshold would have called some of these zero


def zero_flags(x0, x1):
    largest = wp.empty(len(x0), dtype=wp.float64, device="cpu")
    zero = wp.empty(len(x0), dtype=wp.bool, device="cpu")
    wp.launch(_vanishing, len(x0), [vertices(x0, "cpu"), vertices(x1, "cpu")], [largest, zero], device="cpu")
    return largest.numpy(), zero.numpy()


@pytest.mark.feature("F-T-14")
def test_boxes_with_parallel_edges_are_found_by_their_other_features_and_never_when_they_pass(rng):
    corner = np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0)], dtype=float)
    offset = np.concatenate([rng.uniform(-1.5, 1.5, (400, 2)), np.ones((400, 1))], axis=1)
    x0 = np.concatenate([np.broadcast_to(corner, (400, 3, 3)), corner + offset[:, None]], axis=1)
    x1 = x0.copy()
    x1[:, 3:, 2] -= 2
    dx, dy = offset[:, 0], offset[:, 1]
    # two copies of the triangle x, y >= 0, x + y <= 1 overlap where the smallest common triangle is not empty
    overlapping = np.maximum(dx, 0) + np.maximum(dy, 0) <= 1 + np.minimum(dx + dy, 0)
    answer = robust_triangles(x0, x1)
    assert np.array_equal(answer.hit, overlapping)
    assert answer.time[overlapping] == pytest.approx(0.5)
    passing = robust_filter(Kind.EDGE_EDGE, *(x[:, EDGE_EDGE_TESTS[0]] + [0, 0, 0] for x in (x0, x1)))
    assert np.array_equal(passing.hit, (np.abs(dx) <= 1) & (dy == 0))


@pytest.mark.feature("F-T-14")
@pytest.mark.parametrize("plane", ["xy", "random"])
def test_coplanar_triangles_touch_when_their_shadows_on_every_edge_normal_do(plane, rng):
    x0, x1, time = coplanar_triangles(600, plane, rng)
    hit = np.isfinite(time)
    assert 150 < np.count_nonzero(hit) < 450
    answer = robust_triangles(x0, x1)
    assert np.array_equal(answer.hit, hit)
    assert answer.time[hit] == pytest.approx(time[hit], abs=1e-7)


def planar_vertex_edge_hits(count, plane, rng):
    """A vertex (row 0) and an edge (rows 1, 2), moving in a plane and meeting at a known time."""
    time = rng.integers(16, 240, count) / 256
    at_hit = rng.integers(-512, 513, (count, 2, 2)) / 256
    along = rng.integers(16, 241, (count, 1)) / 256
    now = np.concatenate([(at_hit[:, :1] + along[:, None] * (at_hit[:, 1:] - at_hit[:, :1])), at_hit], axis=1)
    velocity = rng.integers(-512, 513, (count, 3, 2)) / 256
    frame = plane_frame(plane, rng)
    return (now - velocity * time[:, None, None]) @ frame, (now + velocity * (1 - time[:, None, None])) @ frame, time


def plane_frame(plane, rng):
    """Two unit vectors of a plane, as rows."""
    axes = {"xy": [0, 1], "yz": [1, 2], "zx": [2, 0]}
    return np.eye(3)[axes[plane]] if plane in axes else np.linalg.qr(rng.normal(size=(3, 3)))[0][:2]


def coplanar_triangles(count, plane, rng):
    """Pairs of triangles that translate in a plane, apart at the start, and when they touch: by separating axes."""
    a = rng.uniform(-1, 1, (count, 3, 2))
    angle = rng.uniform(0, 2 * np.pi, count)
    towards = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    b = rng.uniform(-1, 1, (count, 3, 2)) - 3 * towards[:, None]
    move = 4 * towards + rng.normal(0, 1, (count, 2))
    enter, leave = np.zeros(count), np.full(count, np.inf)
    for triangle in (a, b):
        for k in range(3):
            edge = triangle[:, (k + 1) % 3] - triangle[:, k]
            normal = np.stack([-edge[:, 1], edge[:, 0]], axis=1)
            on_a, on_b = np.einsum("nvk,nk->nv", a, normal), np.einsum("nvk,nk->nv", b, normal)
            speed = np.einsum("nk,nk->n", move, normal)
            first = (on_a.min(axis=1) - on_b.max(axis=1)) / speed
            last = (on_a.max(axis=1) - on_b.min(axis=1)) / speed
            enter = np.maximum(enter, np.minimum(first, last))
            leave = np.minimum(leave, np.maximum(first, last))
    time = np.where((enter <= leave) & (enter <= 1), enter, np.inf)
    x0 = np.concatenate([a, b], axis=1)
    x1 = np.concatenate([a, b + move[:, None]], axis=1)
    frame = plane_frame(plane, rng)
    apart = enter > 0
    return x0[apart] @ frame, x1[apart] @ frame, time[apart]


def answer_of(case: Case, device=None):
    if case.kind is None:
        return robust_triangles(case.x0[None], case.x1[None], device=device)
    return robust_filter(case.kind, case.x0[None], case.x1[None], device=device)


@pytest.mark.feature("F-T-18")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_degenerate_situations_of_the_specification_are_decided_as_required(case: Case, device):
    answer = answer_of(case, device)
    assert Status(answer.status[0]) == case.status
    # a double root is known to half the digits (spec, section 6.4)
    assert answer.time[0] == pytest.approx(case.time, rel=1e-7 if case.double_root else 1e-9)


@pytest.mark.feature("F-T-18")
@pytest.mark.parametrize("case", INVALID, ids=lambda case: case.name)
def test_coordinates_that_are_not_finite_are_refused(case: Case):
    with pytest.raises(InputError, match="x1: query 0"):
        answer_of(case)


@pytest.mark.feature("F-T-18")
@pytest.mark.parametrize("kind", [Kind.VERTEX_FACE, Kind.EDGE_EDGE])
@pytest.mark.parametrize("delta", [None, 1e-6, 1e-8, 1e-10])
def test_no_collision_of_the_public_queries_is_missed_and_false_alarms_are_near_touches(
    kind, delta, data_folder, device
):
    x0, x1, collides = read_sample_queries(data_folder, kind)
    answer = robust_filter(kind, x0, x1, delta=delta, device=device)
    assert len(collides) > 0
    assert not np.any(collides & ~answer.hit)
    false_alarm = answer.hit & ~collides
    assert np.count_nonzero(false_alarm) < 0.15 * len(collides)
    t = answer.time[false_alarm, None, None]
    now = x0[false_alarm] * (1 - t) + x1[false_alarm] * t
    sign = np.array([1, -1, -1, -1] if kind == Kind.VERTEX_FACE else [1, 1, -1, -1])
    gap = np.einsum("nk,nkd->nd", answer.weights[false_alarm] * sign, now)
    assert np.linalg.norm(gap, axis=1).max() < (1e-8 if delta is None else delta) * 10


def test_grazing_contact_is_found_in_every_frame(rng):
    case = next(case for case in CASES if case.name == "vertex grazes a face")
    frames = np.linalg.qr(rng.normal(size=(2000, 3, 3)))[0]
    assert robust_filter(case.kind, case.x0 @ frames, case.x1 @ frames).hit.all()


def test_edges_parallel_at_impact_are_found_in_every_frame(rng):
    case = next(case for case in CASES if case.name == "edges parallel at impact")
    frames = np.linalg.qr(rng.normal(size=(2000, 3, 3)))[0]
    assert robust_filter(case.kind, case.x0 @ frames, case.x1 @ frames).hit.all()


def test_weights_are_those_of_the_meeting_point():
    x0 = np.array([[[0.25, 0.5, 1.0], [0, 0, 0], [1, 0, 0], [0, 1, 0]]])
    x1 = x0 - [[[0, 0, 2.0], [0, 0, 0], [0, 0, 0], [0, 0, 0]]]
    answer = robust_filter(Kind.VERTEX_FACE, x0, x1)
    assert answer.weights[0] == pytest.approx([1, 0.25, 0.25, 0.5])
    edges = np.array([[[-1.0, 0, 0], [1, 0, 0], [0.5, -1, 1], [0.5, 3, 1]]])
    moved = edges - [[[0, 0, 0], [0, 0, 0], [0, 0, 2], [0, 0, 2.0]]]
    assert robust_filter(Kind.EDGE_EDGE, edges, moved).weights[0] == pytest.approx([0.25, 0.75, 0.75, 0.25])


def test_an_empty_batch_gives_an_empty_answer():
    assert len(robust_filter(Kind.EDGE_EDGE, np.zeros((0, 4, 3)), np.zeros((0, 4, 3)))) == 0
    assert len(robust_triangles(np.zeros((0, 6, 3)), np.zeros((0, 6, 3)))) == 0


def test_only_vertex_face_and_edge_edge_queries_are_taken():
    with pytest.raises(UnsupportedError, match="VERTEX_FACE and EDGE_EDGE"):
        robust_filter(Kind.VERTEX_VERTEX, np.zeros((1, 4, 3)), np.zeros((1, 4, 3)))
