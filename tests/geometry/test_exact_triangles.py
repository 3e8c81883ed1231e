"""Triangles that touch, decided without rounding, against rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import warp as wp

import tangere as tg
from oracles.triangles_meet import cross, exact_meet, minus
from tangere.geometry.triangles import MEET, UNSURE
from tangere.geometry.triangles.exact_intersection import triangles_meet_exactly
from tangere.query.distance import distance
from tangere.query.intersection import intersecting_pairs
from tangere.runtime import SOUND, choose_device, launch

wp.set_module_options(SOUND)


@wp.kernel
def _decide(first: int, a: wp.array[wp.mat33d], b: wp.array[wp.mat33d], codes: wp.array[int]):
    i = first + wp.tid()
    codes[i] = triangles_meet_exactly(a[i], b[i])


def decided(a: np.ndarray, b: np.ndarray, device: str) -> np.ndarray:
    device = choose_device(device)
    codes = wp.empty(len(a), dtype=wp.int32, device=device)
    arrays = [wp.array(t, dtype=wp.mat33d, device=device) for t in (a, b)]
    launch(_decide, len(a), arrays, [codes], device=device)
    return codes.numpy()


def has_area(triangle: np.ndarray) -> bool:
    a, b, c = ([Fraction(x) for x in corner] for corner in triangle.tolist())
    return any(cross(minus(b, a), minus(c, a)))


PLACES = {
    "a lattice": lambda rng, n: rng.integers(-1, 2, (n, 3, 3)).astype(float),
    "a lattice whose steps are rounded": lambda rng, n: rng.integers(-2, 3, (n, 3, 3)) * 0.1 + 0.7,
    "one plane": lambda rng, n: rng.integers(-2, 3, (n, 3, 3)) * [0.1, 0.3, 0.0] + 1.0 / 3.0,
    "a slanted plane": lambda rng, n: (rng.integers(-2, 3, (n, 3, 2)) @ [[3.0, 1.0, 2.0], [-1.0, 2.0, 7.0]]) * 0.1,
    "far away": lambda rng, n: rng.integers(-2, 3, (n, 3, 3)) / 3e5 + 1e3,
    "very small": lambda rng, n: rng.integers(-2, 3, (n, 3, 3)) * 0.1e-50,
    "very large": lambda rng, n: rng.integers(-2, 3, (n, 3, 3)) * 0.1e50,
}


@pytest.mark.parametrize("place", PLACES)
def test_touching_triangles_are_decided_as_in_rational_arithmetic(place, effort, rng, device):
    count = effort(1500, 250)
    a, b = PLACES[place](rng, count), PLACES[place](rng, count)
    shared = np.arange(count // 3)  # these have a corner in common
    a[shared, 0] = b[shared, rng.integers(0, 3, len(shared))]
    codes = decided(a, b, device)
    meeting = 0
    for one, other, code in zip(a, b, codes, strict=True):
        if has_area(one) and has_area(other):
            assert code == (MEET if exact_meet(one, other) else 0)
            meeting += code == MEET
        else:
            assert code == UNSURE
    assert count / 4 < meeting < count


@pytest.mark.parametrize("scale", [1e-90, 1e90])
def test_numbers_out_of_range_are_left_undecided_and_not_wrong(scale, rng):
    a, b = (rng.integers(-1, 2, (300, 3, 3)) * scale for _ in range(2))
    codes = decided(a, b, "cpu")
    assert (codes == UNSURE).any()
    for one, other, code in zip(a, b, codes, strict=True):
        if code != UNSURE:
            assert (code == MEET) == exact_meet(one, other)


def test_plates_on_each_other_touch_at_every_pair_that_does_and_at_distance_zero(device):
    plate = tg.generate.plate(180, size=(1.0, 1.0, 0.1))
    above = np.eye(4)
    above[:3, 3] = 0.4, 0.3, plate.bounds[1, 2] - plate.bounds[0, 2]
    top, bottom = plate.at(above), plate
    s, t = top.vertices[top.faces], bottom.vertices[bottom.faces]
    near = ((s.min(1)[:, None] <= t.max(1)) & (t.min(1) <= s.max(1)[:, None])).all(axis=2)
    expected = np.array([pair for pair in np.argwhere(near) if exact_meet(s[pair[0]], t[pair[1]])])
    assert len(expected) > 20
    assert np.array_equal(intersecting_pairs(top, bottom, device=device), expected)
    found = distance(top, bottom, device=device)
    assert found.upper == 0.0
    assert found.point_a == pytest.approx(found.point_b)
    assert found.point_a[2] == pytest.approx(plate.bounds[1, 2])
