"""What `SOUND` promises of floating-point numbers, and what it does not: products of matrices are fused."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import warp as wp

from tangere.runtime import SOUND, launch

wp.set_module_options(SOUND)

#: Half a unit in the last place of 1.
UNIT = 2.0**-53


@wp.kernel
def _products(
    first: int,
    a: wp.array[wp.mat33d],
    b: wp.array[wp.mat33d],
    scalars: wp.array[wp.mat33d],
    dots: wp.array[wp.mat33d],
    vectors: wp.array[wp.mat33d],
    rows: wp.array[wp.mat33d],
    matrices: wp.array[wp.mat33d],
    double_dots: wp.array[wp.float64],
):
    """a b in the ways there are of writing it."""
    n = first + wp.tid()
    p = a[n]
    q = b[n]
    one = wp.mat33d()
    two = wp.mat33d()
    three = wp.mat33d()
    four = wp.mat33d()
    for j in range(3):
        column = wp.vec3d(q[0, j], q[1, j], q[2, j])
        product = p * column
        for i in range(3):
            row = wp.vec3d(p[i, 0], p[i, 1], p[i, 2])
            one[i, j] = p[i, 0] * q[0, j] + p[i, 1] * q[1, j] + p[i, 2] * q[2, j]
            two[i, j] = wp.dot(row, column)
            three[i, j] = product[i]
            from_left = row * q
            four[i, j] = from_left[j]
    scalars[n] = one
    dots[n] = two
    vectors[n] = three
    rows[n] = four
    matrices[n] = p * q
    double_dots[n] = wp.ddot(p, q)


def fused(x: float, y: float, z: float) -> float:
    """x y + z, rounded once."""
    return float(Fraction(x) * Fraction(y) + Fraction(z))


def fused_sum(xs, ys) -> float:
    total = 0.0
    for x, y in zip(xs, ys, strict=True):
        total = fused(float(x), float(y), total)
    return total


@pytest.fixture
def asked(rng, device):
    """Random matrices and, as arrays, what `_products` makes of them."""
    a, b = rng.normal(size=(2, 200, 3, 3))
    a[0, 0], b[0, :, 0] = (-1.0, 1.0 + 4.0 * UNIT, 0.0), (1.0, 1.0 - 4.0 * UNIT, 0.0)
    outputs = [wp.empty(len(a), dtype=wp.mat33d, device=device) for _ in range(5)]
    outputs.append(wp.empty(len(a), dtype=wp.float64, device=device))
    inputs = [wp.array(x, dtype=wp.mat33d, device=device) for x in (a, b)]
    launch(_products, len(a), inputs, outputs, device=wp.get_device(device))
    return a, b, [each.numpy() for each in outputs]


def test_sums_of_products_are_rounded_after_each_operation(asked):
    a, b, (scalars, dots, vectors, rows, _, _) = asked
    apart = a[:, :, 0, None] * b[:, None, 0]
    for k in (1, 2):
        apart = apart + a[:, :, k, None] * b[:, None, k]
    for told in (scalars, dots, vectors, rows):
        assert np.array_equal(told, apart)
    assert scalars[0, 0, 0] == 0.0  # -1 + (1 + e) (1 - e), where e e is lost


def test_products_of_matrices_are_fused_on_every_device(asked):
    """As Warp writes them, whatever the options. Should this fail, they are not any more: see `SOUND`."""
    a, b, (*_, matrices, double_dots) = asked
    for n in range(len(a)):
        expected = [[fused_sum(a[n, i], b[n, :, j]) for j in range(3)] for i in range(3)]
        assert np.array_equal(matrices[n], expected)
        assert double_dots[n] == fused_sum(a[n].ravel(), b[n].ravel())
    assert matrices[0, 0, 0] != 0.0  # but here it is not


def test_products_of_matrices_keep_the_bound_of_those_that_are_not_fused(asked):
    """Bounds of rounding errors count three roundings of each product and sum: fused ones have fewer."""
    a, b, (*_, matrices, _) = asked
    exact = a.astype(object)
    for n in range(len(a)):
        for i in range(3):
            for j in range(3):
                terms = [Fraction(float(x)) * Fraction(float(y)) for x, y in zip(exact[n, i], b[n, :, j], strict=True)]
                error = abs(Fraction(float(matrices[n, i, j])) - sum(terms))
                assert error <= Fraction(3.0 * UNIT * (1.0 + 1e-12)) * sum(abs(term) for term in terms)
