"""Dense Cholesky factors on one thread, eight numbers of a row at a time.

Question: how are the many small systems of active-set methods factored so that they do not hide what the methods do?
Method:   right-looking: of each column, its multiples are taken from the rows below. Rows are read as vectors of eight
          there, as single numbers elsewhere: two arrays over the same memory. What a row holds beyond the triangle is
          never read. Factors may also follow a system to which a row is added, or from which one is taken.
Known as: outer-product Cholesky (Golub and Van Loan 2013, section 4.2), and its updates (section 6.5.4).
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: Eight numbers of a row.
vec8d = wp.types.vector(length=8, dtype=wp.float64)
#: A pivot below this part of the diagonal it came from: the row depends on those before.
_DEPENDENT = wp.constant(wp.float64(1.0e-13))


@wp.struct
class LaneRows:
    """The same numbers as vectors of eight and one by one; a row begins with a vector."""

    eight: wp.array[vec8d]
    one: wp.array[wp.float64]


def lane_rows(vectors: int, device: wp.Device) -> LaneRows:
    """Room for so many vectors of eight."""
    rows = LaneRows()
    rows.eight = wp.zeros(vectors, dtype=vec8d, device=device)
    rows.one = wp.array(ptr=rows.eight.ptr, dtype=wp.float64, shape=(8 * vectors,), device=device)
    return rows


def lanes_of(count: int) -> int:
    """Vectors for a row of so many numbers."""
    return -(-count // 8)


@wp.func
def factor_lanes(a: LaneRows, at: int, wide: int, n: int, column: int) -> bool:
    """Factor in place of the leading n x n part, in rows of `wide` vectors from `at` on; False if a pivot is rounding.

    `column` is where there is room for one more row.
    """
    for k in range(n):
        row = 8 * (at + k * wide)
        pivot = a.one[row + k]
        whole = pivot  # with what was taken from it
        for c in range(k):
            whole += a.one[row + c] * a.one[row + c]
        if pivot <= _DEPENDENT * whole:
            return False
        root = wp.sqrt(pivot)
        a.one[row + k] = root
        inverse = wp.float64(1.0) / root
        for c in range(k - k % 8, k + 1):
            a.one[8 * column + c] = wp.float64(0.0)  # what is done stays
        for i in range(k + 1, n):
            l = a.one[8 * (at + i * wide) + k] * inverse
            a.one[8 * (at + i * wide) + k] = l
            a.one[8 * column + i] = l
        for i in range(k + 1, n):
            l = a.one[8 * column + i]
            below = at + i * wide
            for c in range((k + 1) / 8, i / 8 + 1):
                a.eight[below + c] = a.eight[below + c] - l * a.eight[column + c]
    return True


@wp.func
def append_lanes(a: LaneRows, at: int, wide: int, n: int) -> bool:
    """Row n of a system whose n rows before are factored is factored too; False if its pivot is rounding."""
    row = 8 * (at + n * wide)
    pivot = a.one[row + n]
    whole = pivot
    for c in range(n):
        above = 8 * (at + c * wide)
        s = a.one[row + c]
        for e in range(c):
            s -= a.one[row + e] * a.one[above + e]
        l = s / a.one[above + c]
        a.one[row + c] = l
        pivot -= l * l
    if pivot <= _DEPENDENT * whole:
        return False
    a.one[row + n] = wp.sqrt(pivot)
    return True


@wp.func
def drop_lanes(a: LaneRows, at: int, wide: int, n: int, which: int):
    """The factor of a system of n rows without one of them; rows after it move up."""
    for i in range(which, n - 1):
        above = 8 * (at + i * wide)
        below = above + 8 * wide
        for c in range(i + 2):
            a.one[above + c] = a.one[below + c]
    for i in range(which, n - 1):  # columns i and i + 1 are turned so that nothing is above the diagonal
        row = 8 * (at + i * wide)
        p = a.one[row + i]
        q = a.one[row + i + 1]
        r = wp.sqrt(p * p + q * q)
        cosine = p / r
        sine = q / r
        for j in range(i, n - 1):
            own = 8 * (at + j * wide) + i
            p = a.one[own]
            q = a.one[own + 1]
            a.one[own] = cosine * p + sine * q
            a.one[own + 1] = cosine * q - sine * p


@wp.func
def solve_lanes(a: LaneRows, at: int, wide: int, n: int, x: int):
    """The solution of the factored system, in place of the row that begins at x."""
    for i in range(n):
        row = 8 * (at + i * wide)
        s = a.one[8 * x + i]
        for c in range(i):
            s -= a.one[row + c] * a.one[8 * x + c]
        a.one[8 * x + i] = s / a.one[row + i]
    for q in range(n):
        i = n - 1 - q
        row = at + i * wide
        s = a.one[8 * x + i] / a.one[8 * row + i]
        a.one[8 * x + i] = s
        for c in range(i / 8):
            a.eight[x + c] = a.eight[x + c] - s * a.eight[row + c]
        for c in range(i - i % 8, i):
            a.one[8 * x + c] = a.one[8 * x + c] - s * a.one[8 * row + c]
