"""Vector types of eight lanes, for CPUs: what Warp's own vectors leave to chance is said to the compiler here.

Types and builtins are those of Clang, which compiles Warp's kernels for every CPU; nothing here is for CUDA. A text
goes at the beginning of a `wp.func_native`, which has the arguments that the text names.
Known as: SIMD, structure of arrays.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import warp as wp

#: `Row`: an int32 of each of eight boxes; `bits`: what is true of which, as a mask.
ROWS = """
    typedef int Row __attribute__((ext_vector_type(8), aligned(4)));
    typedef bool Bits __attribute__((ext_vector_type(8)));
    typedef unsigned char Bytes __attribute__((ext_vector_type(8), aligned(8)));
    auto bits = [](Row truth) -> int {
        return __builtin_bit_cast(unsigned char, __builtin_convertvector(truth, Bits));
    };
"""
#: `Wide`: eight float64; `Vector`: eight points or directions; `bits_of`: what is true of which lane, as a mask;
#: `gathered`: eight points from their addresses, for which there is room in `corner`.
VECTORS = """
    typedef double Wide __attribute__((ext_vector_type(8)));
    typedef decltype(Wide() < Wide()) Whole;
    typedef bool Bits __attribute__((ext_vector_type(8)));
    struct Vector { Wide x, y, z; };
    const Wide zero = (Wide)0.0, unit = (Wide)1.0;
    auto minus = [](Vector a, Vector b) -> Vector { return {a.x - b.x, a.y - b.y, a.z - b.z}; };
    auto dot = [](Vector a, Vector b) -> Wide { return a.x * b.x + a.y * b.y + a.z * b.z; };
    auto clamped = [&](Wide x) -> Wide { x = x < zero ? zero : x; return x > unit ? unit : x; };
    auto bits_of = [](Whole truth) -> int {
        return __builtin_bit_cast(unsigned char, __builtin_convertvector(truth, Bits));
    };
    auto gathered = [](const double* const* at) -> Vector {
        return {
            Wide{at[0][0], at[1][0], at[2][0], at[3][0], at[4][0], at[5][0], at[6][0], at[7][0]},
            Wide{at[0][1], at[1][1], at[2][1], at[3][1], at[4][1], at[5][1], at[6][1], at[7][1]},
            Wide{at[0][2], at[1][2], at[2][2], at[3][2], at[4][2], at[5][2], at[6][2], at[7][2]}};
    };
    const double* corner[4][8];
"""


@cache
def lanes_by_mask() -> wp.array:
    """(256,) uint64: for every mask the lanes it names, a byte each, lowest first.

    Whether eight boxes meet is beyond any prediction, so nothing branches on a mask: the lanes it names are written to
    a list, all eight at once from this table, and the list grows by as many as count.
    """
    lanes = np.zeros((256, 8), np.uint8)
    for mask in range(256):
        named = [lane for lane in range(8) if mask >> lane & 1]
        lanes[mask, : len(named)] = named
    return wp.array(lanes.view(np.uint64).ravel(), dtype=wp.uint64, device="cpu")
