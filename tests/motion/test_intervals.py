"""Interval arithmetic encloses what it should, rounding included, and bisection misses no root."""

from __future__ import annotations

from fractions import Fraction
from math import isinf, isnan

import numpy as np
import pytest
import warp as wp

from tangere.geometry.intervals import excludes_zero, minus, overlap, plus, times
from tangere.geometry.intervals.arithmetic import (
    cosine,
    hull,
    inverse,
    magnitude,
    over,
    point,
    sine,
    square,
)
from tangere.published.redon_intervals.root_isolation import isolate_roots
from tangere.published.redon_intervals.surfaces import square_root
from tangere.runtime import SOUND, InputError, launch

wp.set_module_options(SOUND)

wide = np.longdouble
OPERATIONS = {
    "plus": (0, lambda x, y: x + y),
    "minus": (1, lambda x, y: x - y),
    "times": (2, lambda x, y: x * y),
    "over": (3, lambda x, y: x / y),
    "inverse": (4, lambda x, y: 1 / x),
    "magnitude": (5, lambda x, y: abs(x)),
    "square": (6, lambda x, y: x * x),
    "square_root": (7, lambda x, y: np.sqrt(x)),
    "sine": (8, lambda x, y: np.sin(x)),
    "cosine": (9, lambda x, y: np.cos(x)),
    "hull": (10, lambda x, y: x),
}


@wp.kernel
def _apply(first: int, operation: int, a: wp.array[wp.vec2d], b: wp.array[wp.vec2d], out: wp.array[wp.vec2d]):
    i = first + wp.tid()
    if operation == 0:
        out[i] = plus(a[i], b[i])
    elif operation == 1:
        out[i] = minus(a[i], b[i])
    elif operation == 2:
        out[i] = times(a[i], b[i])
    elif operation == 3:
        out[i] = over(a[i], b[i])
    elif operation == 4:
        out[i] = inverse(a[i])
    elif operation == 5:
        out[i] = magnitude(a[i])
    elif operation == 6:
        out[i] = square(a[i])
    elif operation == 7:
        out[i] = square_root(a[i])
    elif operation == 8:
        out[i] = sine(a[i])
    elif operation == 9:
        out[i] = cosine(a[i])
    elif operation == 10:
        out[i] = hull(a[i], b[i])
    else:
        out[i] = overlap(a[i], b[i])


def apply(operation: int, a, b, device) -> np.ndarray:
    where = wp.get_device(device)
    a, b = (wp.array(np.asarray(rows, np.float64), dtype=wp.vec2d, device=where) for rows in (a, b))
    out = wp.empty(len(a), dtype=wp.vec2d, device=where)
    launch(_apply, len(a), [operation, a, b], [out], device=where)
    return out.numpy()


def random_intervals(rng, count: int, operation: str) -> tuple[np.ndarray, np.ndarray]:
    """Intervals of every size and scale (a fifth are single numbers) and a member of each."""
    scale = 10.0 ** rng.uniform(-9, 9, count) * rng.choice([-1.0, 1.0], count)
    if operation in ("sine", "cosine"):
        scale = rng.choice([1.0, 10.0, 1e3, 1e6], count) * rng.uniform(-1, 1, count)
    if operation == "square_root":
        scale = np.abs(scale)
    width = np.abs(scale) * 10.0 ** rng.uniform(-16, 1, count) * (rng.random(count) > 0.2)
    if operation in ("over", "inverse", "square_root"):
        width = np.minimum(width, 0.9 * np.abs(scale))  # a divisor interval that holds zero says nothing
    lower, upper = scale - width, scale + width
    member = np.clip(lower + (upper - lower) * rng.random(count), lower, upper)
    at_end = rng.random(count)
    member = np.where(at_end < 0.2, lower, np.where(at_end > 0.8, upper, member))
    return np.stack([lower, upper], axis=1), member


def check_inclusion(name: str, count: int, rng, device) -> None:
    operation, exact = OPERATIONS[name]
    a, x = random_intervals(rng, count, name)
    b, y = random_intervals(rng, count, name)
    lower, upper = apply(operation, a, b, device).T
    value = exact(x.astype(wide), y.astype(wide))
    assert (lower <= value).all()
    assert (value <= upper).all()


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_result_of_members_lies_in_the_interval_of_the_operation(name, rng, effort, device):
    check_inclusion(name, effort(100_000), rng, device)


@pytest.mark.slow
@pytest.mark.feature("F-R-25")
@pytest.mark.parametrize("name", OPERATIONS)
def test_ten_million_members_never_leave_the_interval_of_the_operation(name, rng, device):
    for _ in range(10):
        check_inclusion(name, 1_000_000, rng, device)


@pytest.mark.parametrize("name", ["plus", "minus", "times", "over", "square"])
def test_bounds_of_single_numbers_hold_exactly_and_are_a_few_ulps_apart(name, rng, effort, device):
    operation, exact = OPERATIONS[name]
    x, y = (10.0 ** rng.uniform(-3, 3, effort(1000)) * rng.choice([-1, 1], effort(1000)) for _ in range(2))
    bounds = apply(operation, np.stack([x, x], axis=1), np.stack([y, y], axis=1), device)
    for (lower, upper), u, v in zip(bounds, x, y, strict=True):
        value = exact(Fraction(u), Fraction(v))
        assert Fraction(lower) <= value <= Fraction(upper)
        assert upper - lower <= 16 * 2.0**-52 * float(abs(value))


@pytest.mark.parametrize("name", ["sine", "cosine"])
def test_sines_reach_one_exactly_where_the_interval_passes_an_extremum(name, rng, effort, device):
    lower = rng.uniform(-20, 20, effort(20_000))
    a = np.stack([lower, lower + rng.uniform(0, 7, len(lower))], axis=1)
    result = apply(OPERATIONS[name][0], a, a, device)
    samples = OPERATIONS[name][1](a[:, :1] + (a[:, 1:] - a[:, :1]) * np.linspace(0, 1, 2001), None)
    assert (result[:, 0] <= samples.min(axis=1)).all()
    assert (samples.max(axis=1) <= result[:, 1]).all()
    np.testing.assert_allclose(result[:, 0], samples.min(axis=1), atol=1e-5)
    np.testing.assert_allclose(result[:, 1], samples.max(axis=1), atol=1e-5)


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("bad", [(np.nan, 1e300), (1.0, np.nan), (np.nan, np.nan), (-np.inf, np.inf), (1.0, np.inf)])
def test_a_bound_that_is_unknown_shuts_out_no_value(name, bad, device):
    operation, exact = OPERATIONS[name]
    for member in (1.0, 2.5, 1e6):  # all in `bad`, as far as its bounds are known
        for a, b, x, y in ((bad, (2.0, 3.0), member, 2.5), ((2.0, 3.0), bad, 2.5, member)):
            lower, upper = apply(operation, [a], [b], device)[0]
            value = exact(wide(x), wide(y))
            assert not lower > value
            assert not upper < value


def test_an_overflow_is_not_taken_for_a_proof(device):
    lower, upper = apply(2, [(1e200, 1e200)], [(1e200, 1e200)], device)[0]
    assert not lower > 1e308 or isnan(lower)
    assert isinf(upper) or isnan(upper)


def test_dividing_by_an_interval_that_holds_zero_gives_the_whole_line(device):
    assert np.isinf(apply(3, [(1.0, 2.0)], [(-1.0, 1.0)], device)).all()
    assert np.isinf(apply(4, [(0.0, 1.0)], [(0.0, 0.0)], device)).all()


def test_overlap_keeps_what_both_enclosures_allow(device):
    np.testing.assert_array_equal(apply(11, [(0.0, 2.0)], [(1.0, 3.0)], device), [(1.0, 2.0)])
    np.testing.assert_array_equal(apply(11, [(np.nan, 2.0)], [(1.0, np.nan)], device), [(1.0, 2.0)])


# -- roots ------------------------------------------------------------------------------------------------------------


@wp.func
def _quartic(t: wp.vec2d, roots: wp.vec4d) -> wp.vec2d:
    product = point(wp.float64(1.0))
    for k in range(4):
        product = times(product, minus(t, point(roots[k])))
    return product


@wp.func
def _squared(t: wp.vec2d, roots: wp.vec4d) -> wp.vec2d:
    return times(square(minus(t, point(roots[0]))), square(minus(t, point(roots[1]))))


@wp.func
def _plateau(t: wp.vec2d, ends: wp.vec4d) -> wp.vec2d:
    """max(0, ends[0] - t) + max(0, t - ends[1]): zero between the ends."""
    zero = wp.float64(0.0)
    before = minus(point(ends[0]), t)
    after = minus(t, point(ends[1]))
    return wp.vec2d(wp.max(before[0], zero) + wp.max(after[0], zero), wp.max(before[1], zero) + wp.max(after[1], zero))


@wp.func
def _wave(t: wp.vec2d, p: wp.vec4d) -> wp.vec2d:
    return sine(times(point(p[0]), t))


def isolated(inclusion, rows, width, device):
    which, found = isolate_roots(inclusion, rows, 0.0, 1.0, width, device=device)
    assert (found[:, 1] - found[:, 0] <= width).all()
    return which, found


def assert_each_root_is_bracketed(rows, which, found):
    for i, roots in enumerate(rows):
        mine = found[which == i]
        for root in roots:
            assert ((mine[:, 0] <= root) & (root <= mine[:, 1])).any(), (i, root)


@pytest.mark.feature("F-R-26")
def test_bisection_brackets_every_root_and_nothing_far_from_one(rng, effort, device):
    rows = rng.random((effort(300), 4))
    which, found = isolated(_quartic, rows, 1e-6, device)
    assert_each_root_is_bracketed(rows, which, found)
    distance = np.abs(rows[which][:, :, None] - found[:, None, :]).min(axis=(1, 2))
    assert distance.max() < 1e-2

    which, found = isolated(_squared, rows, 1e-6, device)
    assert_each_root_is_bracketed(rows[:, :2], which, found)  # double roots, where the sign does not change
    assert len(found) < 40 * len(rows)

    frequency = np.array([[40.0 * np.pi, 0, 0, 0]])
    which, found = isolated(_wave, frequency, 1e-4, device)
    assert_each_root_is_bracketed([np.arange(41) / 40], which, found)
    assert len(found) <= 3 * 41


@pytest.mark.feature("F-R-26")
def test_a_plateau_of_zeros_is_covered_by_finitely_many_intervals(device):
    which, found = isolated(_plateau, np.array([[0.25, 0.5, 0, 0], [0.7, 0.7, 0, 0]]), 1e-3, device)
    first = found[which == 0]
    assert first[0, 0] <= 0.25
    assert first[-1, 1] >= 0.5
    np.testing.assert_array_equal(first[1:, 0], first[:-1, 1])
    assert len(first) <= 260
    assert len(found[which == 1]) <= 4


def test_roots_at_the_very_ends_are_found(device):
    rows = np.array([[0.0, 1.0, 0.0, 1.0]])
    which, found = isolated(_quartic, rows, 1e-6, device)
    assert_each_root_is_bracketed(rows, which, found)


def test_intervals_come_in_the_order_of_time(device):
    which, found = isolated(_quartic, np.array([[0.9, 0.1, 0.5, 0.3], [0.2, 0.2, 0.2, 0.8]]), 1e-5, device)
    for i in (0, 1):
        assert (np.diff(found[which == i][:, 0]) > 0).all()


@pytest.mark.parametrize(
    ("start", "end", "width"), [(0, 1, 0), (0, 1, 1e-17), (1, 0, 0.1), (0, np.inf, 1), (0, 1, np.nan)]
)
def test_a_bisection_that_could_not_end_is_refused(start, end, width):
    with pytest.raises(InputError, match="cannot bisect"):
        isolate_roots(_quartic, np.zeros((1, 4)), start, end, width)


def test_excludes_zero_is_true_only_with_proof(device):
    @wp.kernel(module="unique")
    def ask(first: int, a: wp.array[wp.vec2d], out: wp.array[int]):
        i = first + wp.tid()
        out[i] = int(excludes_zero(a[i]))

    rows = [(1.0, 2.0), (-2.0, -1.0), (-1.0, 1.0), (0.0, 1.0), (np.nan, -1.0), (np.nan, 1.0), (np.nan, np.nan)]
    where = wp.get_device(device)
    out = wp.empty(len(rows), dtype=int, device=where)
    launch(ask, len(rows), [wp.array(rows, dtype=wp.vec2d, device=where)], [out], device=where)
    assert out.numpy().tolist() == [1, 1, 0, 0, 1, 0, 0]
