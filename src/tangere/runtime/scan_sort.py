"""Scan and sort over `warp.utils`, which wants its own shapes and scratch space."""

from __future__ import annotations

import warp as wp
import warp.utils


def offsets(counts: wp.array) -> tuple[wp.array, int]:
    """Where each item's share starts when `counts[i]` places go to item i, and how many places there are in all."""
    if len(counts) == 0:
        return wp.empty(0, dtype=wp.int32, device=counts.device), 0
    ends = wp.empty_like(counts)
    warp.utils.array_scan(counts, ends, inclusive=True)
    starts = wp.empty_like(counts)
    warp.utils.array_scan(counts, starts, inclusive=False)
    return starts, int(ends[-1:].numpy()[0])


def sort_pairs(keys: wp.array, values: wp.array, bits: int | None = None) -> tuple[wp.array, wp.array]:
    """`keys` in rising order and `values` moved along (stable); the arguments are left as they are.

    Args:
        keys: 32- or 64-bit integers or floats. values: 4 or 8 bytes each.
        bits: only the lowest `bits` bits of the keys count.
    """
    count = len(keys)
    if count == 0:
        return wp.clone(keys), wp.clone(values)
    sorted_keys = wp.empty(2 * count, dtype=keys.dtype, device=keys.device)
    sorted_values = wp.empty(2 * count, dtype=values.dtype, device=values.device)
    wp.copy(sorted_keys, keys, count=count)
    wp.copy(sorted_values, values, count=count)
    warp.utils.radix_sort_pairs(sorted_keys, sorted_values, count, 0, bits)
    return sorted_keys[:count], sorted_values[:count]
