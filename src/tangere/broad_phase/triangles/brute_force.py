"""Broad phase by brute force: every triangle against every earlier one; the oracle of the others."""

from __future__ import annotations

import warp as wp

from tangere.broad_phase.triangles.triangle_aabbs import Box, TriangleAabbs, boxes_overlap, may_pair
from tangere.runtime import SOUND, collect, device_of, reserve_slots

wp.set_module_options(SOUND)


def brute_pairs(aabbs: TriangleAabbs) -> wp.array:
    """All pairs (i, j), i < j, of triangles of compared bodies whose boxes overlap, in any order."""
    inputs = [aabbs.boxes, aabbs.body, aabbs.compared]
    return collect(_every_earlier, len(aabbs.boxes), inputs, wp.vec2i, device=device_of(aabbs.boxes))


@wp.kernel
def _every_earlier(
    first: int,
    shard: int,
    boxes: wp.array[Box],
    body: wp.array[int],
    compared: wp.array2d[wp.uint8],
    counts: wp.array[wp.int64],
    capacity: int,
    out: wp.array[wp.vec2i],
):
    j = first + wp.tid()
    box = boxes[j]
    for i in range(j):
        if boxes_overlap(boxes[i], box):
            if may_pair(i, j, body, compared):
                slot = reserve_slots(counts, shard, 1, capacity)
                if slot >= 0:
                    out[slot] = wp.vec2i(i, j)
