"""Every rounding bound and every certificate of the sound solver, against exact integers.

The observed error must stay well below its bound, and come close enough to it that a bound with a much smaller constant
would be caught. Certificates are asked about motions with an exactly known contact, in 48-bit coordinates so that
everything rounds: none may ever pass it, while the same certificate with its bounds cut down does.
"""

from __future__ import annotations

from inspect import getclosurevars

import numpy as np
import pytest
import warp as wp

from oracles.exact_frames import ONE, Frame, cross, dot, exact_frame, integers, ratios, thrice_bernstein
from oracles.families.worst_rounding import around, awkward_intervals, awkward_points, long_contacts
from tangere.geometry.polynomials import bernstein, real, vec
from tangere.query.contacts import Kind
from tangere.query.first_contact.primitives.narrow_phase import features
from tangere.query.first_contact.primitives.narrow_phase import root_isolation as decide
from tangere.query.first_contact.primitives.narrow_phase import time_bisection as march
from tangere.query.first_contact.primitives.narrow_phase.features import (
    EDGE_EDGE,
    INSIDE,
    OUTSIDE,
    VERTEX_FACE,
    FeaturePairKind,
)
from tangere.runtime import SOUND, choose_device, launch

wp.set_module_options(SOUND)

CPU = choose_device("cpu")
each_kind = pytest.mark.parametrize("shape", [VERTEX_FACE, EDGE_EDGE], ids=lambda shape: shape.kind.name.lower())


# --- Kernels that do what the solver does, and show what it sees ----------------------------------------------------


def vectors(points: np.ndarray) -> wp.array:
    return wp.array(np.ascontiguousarray(points), dtype=vec, device=CPU)


def reals(values: np.ndarray) -> wp.array:
    return wp.array(np.ascontiguousarray(values), dtype=real, device=CPU)


def run(kernel: wp.Kernel, points: np.ndarray, inputs: list, outputs: list) -> list[np.ndarray]:
    made = [wp.zeros(len(points), dtype=dtype, device=CPU) for dtype in outputs]
    launch(kernel, len(points), [vectors(points), *inputs], made, device=CPU)
    return [array.numpy() for array in made]


@wp.func
def sizes(a1: vec, a2: vec, a3: vec, b1: vec, b2: vec, b3: vec) -> vec:
    return vec(
        wp.max(bernstein.largest(a1), bernstein.largest(b1)),
        wp.max(bernstein.largest(a2), bernstein.largest(b2)),
        wp.max(bernstein.largest(a3), bernstein.largest(b3)),
    )


def cubic_kernel(shape: FeaturePairKind) -> wp.Kernel:
    frame = shape.frame

    @wp.kernel(module="unique", module_options=SOUND)
    def cubic(
        first: int,
        x: wp.array2d[vec],
        left: wp.array[real],
        right: wp.array[real],
        whole: wp.array[wp.vec4d],
        part: wp.array[wp.vec4d],
        until: wp.array[wp.vec4d],
        at_left: wp.array[real],
        by_sizes: wp.array[real],
        by_permanent: wp.array[real],
    ):
        i = first + wp.tid()
        a1, a2, a3 = frame(x[i, 0], x[i, 1], x[i, 2], x[i, 3])
        b1, b2, b3 = frame(x[i, 4], x[i, 5], x[i, 6], x[i, 7])
        c = bernstein.coplanarity(a1, a2, a3, b1, b2, b3)
        whole[i] = c
        part[i] = bernstein.restricted(c, left[i], right[i])
        until[i] = bernstein.restricted_from_zero(c, right[i])
        at_left[i] = bernstein.value(c, left[i])
        m = sizes(a1, a2, a3, b1, b2, b3)
        by_sizes[i] = bernstein.CUBIC_BOUND * m[0] * m[1] * m[2] + bernstein.UNDERFLOW
        by_permanent[i] = (
            bernstein.CUBIC_BOUND_PERMANENT * bernstein.permanent(a1, a2, a3, b1, b2, b3) + bernstein.UNDERFLOW
        )

    return cubic


def gap_kernel(shape: FeaturePairKind) -> wp.Kernel:
    frame, gap, gap_bound = shape.frame, shape.gap, shape.gap_bound

    @wp.kernel(module="unique", module_options=SOUND)
    def gaps(
        first: int,
        x: wp.array2d[vec],
        left: wp.array[real],
        right: wp.array[real],
        n: wp.array[vec],
        m: wp.array[vec],
        found: wp.array[vec],
        bound: wp.array[real],
    ):
        i = first + wp.tid()
        a1, a2, a3 = frame(x[i, 0], x[i, 1], x[i, 2], x[i, 3])
        b1, b2, b3 = frame(x[i, 4], x[i, 5], x[i, 6], x[i, 7])
        l1 = bernstein.at(a1, b1, left[i])
        l2 = bernstein.at(a2, b2, left[i])
        l3 = bernstein.at(a3, b3, left[i])
        r1 = bernstein.at(a1, b1, right[i])
        r2 = bernstein.at(a2, b2, right[i])
        r3 = bernstein.at(a3, b3, right[i])
        mixed1 = wp.dot(n[i], r1) + wp.dot(m[i], l1)
        mixed2 = wp.dot(n[i], r2) + wp.dot(m[i], l2)
        mixed3 = wp.dot(n[i], r3) + wp.dot(m[i], l3)
        found[i] = vec(
            gap(wp.dot(n[i], l1), wp.dot(n[i], l2), wp.dot(n[i], l3)),
            gap(mixed1, mixed2, mixed3) * real(0.5),
            gap(wp.dot(m[i], r1), wp.dot(m[i], r2), wp.dot(m[i], r3)),
        )
        size = sizes(a1, a2, a3, b1, b2, b3)
        bound[i] = gap_bound(size[0], size[1], size[2])

    return gaps


@wp.kernel
def _areas_over(
    first: int,
    x: wp.array2d[vec],
    left: wp.array[real],
    right: wp.array[real],
    axis: wp.array[int],
    q: wp.array[vec],
    bound: wp.array[real],
):
    i = first + wp.tid()
    a1, a2, a3 = features.vertex_face_frame(x[i, 0], x[i, 1], x[i, 2], x[i, 3])
    b1, b2, b3 = features.vertex_face_frame(x[i, 4], x[i, 5], x[i, 6], x[i, 7])
    q[i] = march.area_over(
        decide.dropped(bernstein.at(a1, b1, left[i]), axis[i]),
        decide.dropped(bernstein.at(a2, b2, left[i]), axis[i]),
        decide.dropped(bernstein.at(a1, b1, right[i]), axis[i]),
        decide.dropped(bernstein.at(a2, b2, right[i]), axis[i]),
    )
    m = sizes(a1, a2, a3, b1, b2, b3)
    bound[i] = features.ORIENTATION_BOUND * m[0] * m[1] + bernstein.UNDERFLOW


def inner_function(function: wp.Function, *names: str) -> wp.Function:
    """The certificate itself, which the solver keeps to itself: a function that a function uses."""
    for name in names:
        function = getclosurevars(function.func).nonlocals[name]
    return function


def inside_kernel(shape: FeaturePairKind) -> wp.Kernel:
    frame, normal = shape.frame, shape.normal
    inside_around = inner_function(decide.decide_function(shape), "inside_around")

    @wp.kernel(module="unique", module_options=SOUND)
    def inside(
        first: int,
        x: wp.array2d[vec],
        time: wp.array[real],
        radius: wp.array[real],
        cut: real,
        verdict: wp.array[int],
        axis: wp.array[int],
    ):
        i = first + wp.tid()
        a1, a2, a3 = frame(x[i, 0], x[i, 1], x[i, 2], x[i, 3])
        b1, b2, b3 = frame(x[i, 4], x[i, 5], x[i, 6], x[i, 7])
        m = sizes(a1, a2, a3, b1, b2, b3) * wp.sqrt(cut)  # bounds are products of two sizes
        e1 = bernstein.at(a1, b1, time[i])
        e2 = bernstein.at(a2, b2, time[i])
        e3 = bernstein.at(a3, b3, time[i])
        verdict[i] = inside_around(e1, e2, e3, radius[i], m[0], m[1], m[2])
        axis[i] = decide.main_axis(normal(e1, e2, e3))

    return inside


def passable_kernel(shape: FeaturePairKind) -> wp.Kernel:
    frame = shape.frame
    passable = inner_function(march.march_function(shape), "passable")

    @wp.kernel(module="unique", module_options=SOUND)
    def passes(
        first: int,
        x: wp.array2d[vec],
        left: wp.array[real],
        right: wp.array[real],
        cut_cubic: real,
        cut_sizes: real,
        passed: wp.array[wp.uint8],
    ):
        i = first + wp.tid()
        a1, a2, a3 = frame(x[i, 0], x[i, 1], x[i, 2], x[i, 3])
        b1, b2, b3 = frame(x[i, 4], x[i, 5], x[i, 6], x[i, 7])
        c = bernstein.coplanarity(a1, a2, a3, b1, b2, b3)
        bound = bernstein.CUBIC_BOUND_PERMANENT * bernstein.permanent(a1, a2, a3, b1, b2, b3) * cut_cubic
        m = sizes(a1, a2, a3, b1, b2, b3) * cut_sizes
        part = passable(c, bound, left[i], right[i], a1, a2, a3, b1, b2, b3, m[0], m[1], m[2])
        passed[i] = wp.uint8(wp.where(part > real(1.0), 1, 0))

    return passes


# --- The bounds -----------------------------------------------------------------------------------------------------


@each_kind
def test_coefficients_of_the_cubic_stay_within_a_third_of_both_bounds_and_come_near_them(shape, effort, rng):
    n = effort(3000, least=3000)
    points, (left, right) = awkward_points(n, rng), awkward_intervals(n, rng)
    outputs = [wp.vec4d, wp.vec4d, wp.vec4d, real, real, real]
    whole, part, until, at_left, by_sizes, by_permanent = run(
        cubic_kernel(shape), points, [reals(left), reals(right)], outputs
    )
    zero, one = np.zeros(n), np.ones(n)
    for computed, ends in ((whole, (zero, one)), (part, (left, right)), (until, (zero, right))):
        exact = thrice_bernstein(exact_frame(shape.kind, points, *ends))
        # the frame has 2 BITS binary digits, its determinant 6 BITS; one BITS is in the integer of `computed`
        for bound, floor in ((by_sizes, 0.02), (by_permanent, 0.06)):
            seen = ratios(computed, exact, 3 * ONE**6, bound)
            assert floor < seen.max() < 1 / 3
    exact = thrice_bernstein(exact_frame(shape.kind, points, left, left))[:, 0]
    assert 0.01 < ratios(at_left, exact, 3 * ONE**6, by_sizes).max() < 1 / 3


@each_kind
def test_gaps_along_a_moving_direction_stay_within_a_third_of_their_bound_and_come_near_it(shape, effort, rng):
    n = effort(6000, least=6000)
    points, (left, right) = awkward_points(n, rng), awkward_intervals(n, rng)
    directions = rng.choice([-1.0, 1.0], (2, n, 3)) * (1 - rng.random((2, n, 3)) * rng.choice([0.01, 1.0], (2, n, 1)))
    found, bound = run(gap_kernel(shape), points, [reals(left), reals(right), *map(vectors, directions)], [vec, real])
    exact = exact_gaps(shape.kind, exact_frame(shape.kind, points, left, right), *map(integers, directions))
    seen = ratios(found, exact, 2 * ONE**3, bound)
    assert 0.08 < seen.max() < 1 / 3


def exact_gaps(kind: Kind, f: Frame, n: np.ndarray, m: np.ndarray) -> np.ndarray:
    """Twice the gap along n at the left, of the mixed coefficient, and along m at the right, (n, 3)."""
    columns = []
    for terms in (((n, f.left), (n, f.left)), ((n, f.right), (m, f.left)), ((m, f.right), (m, f.right))):
        p1, p2, p3 = (sum(dot(direction, ends[k]) for direction, ends in terms) for k in range(3))
        zero = p1 * 0
        if kind == Kind.VERTEX_FACE:
            columns.append(p3 - np.maximum(np.maximum(zero, p1), p2))
        else:
            columns.append(np.minimum(zero, p1) - np.maximum(p2, p3))
    return np.stack(columns, axis=1)


def test_orientations_over_an_interval_stay_within_a_third_of_their_bound_and_come_near_it(effort, rng):
    n = effort(6000, least=6000)
    points, (left, right) = awkward_points(n, rng), awkward_intervals(n, rng)
    axis = rng.integers(0, 3, n).astype(np.int32)
    inputs = [reals(left), reals(right), wp.array(axis, device=CPU)]
    q, bound = run(_areas_over, points, inputs, [vec, real])
    f = exact_frame(Kind.VERTEX_FACE, points, left, right)
    rows = np.arange(n)
    ll, rr = cross(f.left[0], f.left[1])[rows, axis], cross(f.right[0], f.right[1])[rows, axis]
    mixed = (cross(f.left[0], f.right[1]) + cross(f.right[0], f.left[1]))[rows, axis]
    seen = ratios(q, np.stack([2 * ll, mixed, 2 * rr], axis=1), 2 * ONE**4, bound)
    assert 0.07 < seen.max() < 1 / 3


def test_the_permanent_bounds_the_terms_of_the_determinant_at_every_time(rng):
    points = awkward_points(300, rng)
    permanents = run(_permanents, points, [], [real])[0]
    for t in (0.0, 0.25, 0.7, 1.0):
        e1, e2, e3 = (
            np.abs((points[:, k] - points[:, 1]) * (1 - t) + (points[:, k + 4] - points[:, 5]) * t) for k in (2, 3, 0)
        )
        crossed = np.stack([e1[:, i - 2] * e2[:, i - 1] + e1[:, i - 1] * e2[:, i - 2] for i in range(3)], axis=1)
        assert np.all(dot(crossed, e3) <= permanents * (1 + 1e-12))


@wp.kernel
def _permanents(first: int, x: wp.array2d[vec], found: wp.array[real]):
    i = first + wp.tid()
    a1, a2, a3 = features.vertex_face_frame(x[i, 0], x[i, 1], x[i, 2], x[i, 3])
    b1, b2, b3 = features.vertex_face_frame(x[i, 4], x[i, 5], x[i, 6], x[i, 7])
    found[i] = bernstein.permanent(a1, a2, a3, b1, b2, b3)


# --- The certificates -----------------------------------------------------------------------------------------------


@each_kind
@pytest.mark.parametrize("widest", [0.0, 2.5e-7], ids=["at the instant", "within a radius"])
def test_inside_and_outside_are_true_at_every_time_within_the_radius_and_weaker_bounds_would_lie(
    shape, widest, effort, rng
):
    """Points a few units of rounding beside the boundary of a feature, where the signs of the areas are in doubt."""
    n = effort(200_000, least=100_000)
    queries = long_contacts(shape.kind, n, rng)
    assert queries.time is not None
    points, radius = queries.points, widest * rng.random(n)
    points += rng.uniform(-1, 1, points.shape) * (2.0**-50 + widest) * 8.0 ** rng.integers(0, 3, (n, 1, 1))
    time = np.clip(queries.time + rng.uniform(-1, 1, n) * (radius + 2.0**-50), 0.0, 1.0)
    kernel = inside_kernel(shape)
    proper, axis = run(kernel, points, [reals(time), reals(radius), 1.0], [int, int])
    weaker, weakest = (
        run(kernel, points, [reals(time), reals(radius), cut], [int, int])[0] for cut in (1 / 20, 1 / 40)
    )
    sure, doubtful = np.flatnonzero(proper)[:2000], np.flatnonzero((weaker == 0) & (weakest != 0))[:5000]
    assert len(sure) > 500

    def lies(rows: np.ndarray, verdict: np.ndarray) -> int:
        ends = (np.maximum(0.0, time - radius), time, np.minimum(1.0, time + radius))
        return sum(
            int((exact_verdict(shape.kind, points[rows], t[rows], axis[rows]) != verdict[rows]).sum()) for t in ends
        )

    assert lies(sure, proper) == 0
    assert lies(doubtful, weakest) > 0


def exact_verdict(kind: Kind, points: np.ndarray, time: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """INSIDE, OUTSIDE or 0 (on the boundary) by the signs of the areas in the plane across `axis`."""
    e1, e2, e3 = exact_frame(kind, points, time, time).left
    rows = np.arange(len(points))
    areas = [cross(a, b)[rows, axis] for a, b in ((e1, e2), (e1, e3), (e2, e3))]
    areas.append(areas[0] - areas[1] + areas[2])
    q1, q2, q3, q4 = (np.sign(area).astype(int) for area in areas)
    if kind == Kind.VERTEX_FACE:
        signs = np.stack([q2, -q3, q4], axis=1)
        inside = abs(signs.sum(axis=1)) == 3
        outside = (signs.max(axis=1) > 0) & (signs.min(axis=1) < 0)
    else:
        inside, outside = (q1 * q2 < 0) & (q3 * q4 < 0), (q1 * q2 > 0) | (q3 * q4 > 0)
    return np.where(inside, int(INSIDE), np.where(outside, int(OUTSIDE), 0))


@each_kind
@pytest.mark.parametrize(("cut_cubic", "cut_sizes"), [(1 / 40, 1.0), (1.0, 1 / 40)], ids=["cubic", "planes and signs"])
def test_no_certificate_passes_an_interval_with_a_contact_and_weaker_ones_would(
    shape, cut_cubic, cut_sizes, effort, rng
):
    n = effort(200_000, least=100_000)
    queries = long_contacts(shape.kind, n, rng)
    assert queries.time is not None
    left, right = around(queries.time, rng)
    kernel = passable_kernel(shape)

    def passed(*cuts: float) -> int:
        return int(run(kernel, queries.points, [reals(left), reals(right), *cuts], [wp.uint8])[0].sum())

    assert passed(1.0, 1.0) == 0
    assert passed(cut_cubic, cut_sizes) > 0
