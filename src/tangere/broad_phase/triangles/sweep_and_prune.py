"""Broad phase by sweep and prune: boxes sorted along the longest axis, each against those it overlaps there.

One radix sort and one parallel sweep.
Known as: sweep and prune, sort and sweep (Baraff 1992; Cohen et al. 1995); Léonard 2021, section 2.2.
"""

from __future__ import annotations

import warp as wp

from tangere.broad_phase.triangles.triangle_aabbs import Box, TriangleAabbs, boxes_overlap, may_pair
from tangere.runtime import SOUND, collect, device_of, launch, reserve_slots, sort_pairs

wp.set_module_options(SOUND)


def sweep_pairs(aabbs: TriangleAabbs) -> wp.array:
    """All pairs (i, j), i < j, of triangles of compared bodies whose boxes overlap, in any order."""
    device, count = device_of(aabbs.boxes), len(aabbs.boxes)
    keys = wp.empty(count, dtype=wp.int32, device=device)
    order = wp.empty(count, dtype=wp.int32, device=device)
    launch(_begin, count, [aabbs.boxes, aabbs.longest_axis], [keys, order], device=device)
    _, order = sort_pairs(keys, order)
    placed = wp.empty(count, dtype=Box, device=device)
    launch(_place, count, [aabbs.boxes, order], [placed], device=device)
    inputs = [placed, order, aabbs.longest_axis, aabbs.body, aabbs.compared]
    return collect(_sweep, count, inputs, wp.vec2i, device=device)


@wp.kernel
def _begin(first: int, boxes: wp.array[Box], axis: int, keys: wp.array[int], order: wp.array[int]):
    i = first + wp.tid()
    keys[i] = boxes[i][axis]
    order[i] = i


@wp.kernel
def _place(first: int, boxes: wp.array[Box], order: wp.array[int], placed: wp.array[Box]):
    s = first + wp.tid()
    placed[s] = boxes[order[s]]


@wp.kernel
def _sweep(
    first: int,
    shard: int,
    placed: wp.array[Box],
    order: wp.array[int],
    axis: int,
    body: wp.array[int],
    compared: wp.array2d[wp.uint8],
    counts: wp.array[wp.int64],
    capacity: int,
    out: wp.array[wp.vec2i],
):
    s = first + wp.tid()
    box = placed[s]
    i = order[s]
    t = s + 1
    while t < placed.shape[0]:
        if placed[t][axis] + box[3 + axis] > 0:
            t = placed.shape[0]  # it begins behind the end, and so do all that follow
        else:
            if boxes_overlap(box, placed[t]):
                j = order[t]
                if may_pair(i, j, body, compared):
                    slot = reserve_slots(counts, shard, 1, capacity)
                    if slot >= 0:
                        out[slot] = wp.vec2i(wp.min(i, j), wp.max(i, j))
            t = t + 1
