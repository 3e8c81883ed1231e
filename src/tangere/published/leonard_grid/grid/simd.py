"""Entries of a cell as they are compared, and how a CPU does that: all codes of two boxes at once.

The codes of a box, crosswise, and those of another add up to nothing positive where the boxes overlap. Vector types are
those of Clang, which compiles kernels for every CPU; nothing here is for CUDA.
"""

from __future__ import annotations

import warp as wp

#: An entry: the six codes of its box, a bit for each axis on which its lowest cell is this one, its triangle.
CellEntry = wp.types.vector(length=8, dtype=wp.int32)


@wp.func_native("""
    typedef int Codes __attribute__((ext_vector_type(8), aligned(4)));
    typedef bool Bits __attribute__((ext_vector_type(8)));
    const Codes* rows = (const Codes*)placed.data;
    const Codes mine = rows[e];
    const Codes crossed = __builtin_shufflevector(mine, mine, 3, 4, 5, 0, 1, 2, 6, 7);
    const int begins = anywhere ? 7 : mine[6];
    int f = begin;
    for (; f < end; ++f) {
        const Codes other = rows[f];
        const int apart = __builtin_bit_cast(unsigned char, __builtin_convertvector(crossed + other > 0, Bits));
        if ((apart & 63) == 0 && (begins | ((const int*)&rows[f])[6]) == 7)
            break;
    }
    return f;
""")
def next_overlap_in_lanes(e: int, begin: int, end: int, anywhere: bool, placed: wp.array[CellEntry]) -> int:
    """The same on CPU, all codes of two boxes at once."""
    ...
