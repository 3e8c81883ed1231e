"""Sums over threads that run side by side, for CUDA; on CPU each thread is alone.

Question: a hundred thousand threads add to a few numbers; how do they not wait for each other?
Method:   the lanes of a warp, or of a part of it, exchange what they have in halves until each has the sum, and one of
          them adds it: for the others it is as if they had added nothing.
Sound:    all lanes of a warp must come to these calls: a launch has a multiple of `WARP` indices (`whole_warps`), and
          nobody has returned before. Of a part of a warp its own lanes are enough.
Known as: warp shuffles, a butterfly reduction; warp-aggregated atomics.
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: Lanes of a warp.
WARP = 32


def whole_warps(count: int) -> int:
    """The least number of indices that is not below this one and fills warps."""
    return -(-count // WARP) * WARP


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return 32;
#else
    return 1;
#endif
""")
def warp_width() -> int:
    """How many lanes a warp has."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    const unsigned own = width == 32 ? 0xffffffffu : ((1u << width) - 1u) << (threadIdx.x & 31 & ~(width - 1));
    for (int way = width / 2; way > 0; way /= 2)
        value += __shfl_xor_sync(own, value, way);
#endif
    return value;
""")
def sum_of_lanes(value: wp.float64, width: int) -> wp.float64:
    """The sum over so many lanes side by side, a power of two up to 32; the same for each of them."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return __all_sync(0xffffffffu, key == __shfl_sync(0xffffffffu, key, 0)) != 0;
#else
    return true;
#endif
""")
def all_lanes_have(key: int) -> bool:
    """Whether a number is the same in all lanes of a warp."""
    ...
