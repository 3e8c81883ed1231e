"""Pairs of triangles that share a cell and whose bounds overlap: stage 6 of the grid pipeline.

Each entry of a cell meets the entries before it that live there. A pair may share several cells; it counts in one:
  sound:     the cell with the lower corner of the overlap of both boxes. Floor is monotone, so that is the larger of
             their lowest cells, in integers; for any cell size no pair is lost and none is doubled
             (specs/leonard-deformable-gpu C8). No lowest cell of an entry is above this one on any axis, so it is the
             one where on each axis one of the two is at it.
  published: the rule of eight types of cells and control bits as printed, which loses pairs (A3), with pairs that share
             a vertex left out (C9).
Triangles are numbered body after body, so the entries of a cell are, too: where a body is not compared with itself, its
own are passed over at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import warp as wp

from tangere.partition.broad_phase_boxes import GRAIN, Box, Crowd, may_pair
from tangere.partition.grid import Grid, Spec
from tangere.partition.grid_entries import Entries, Runs, cell_at
from tangere.partition.grid_lanes import Placed, next_overlap_in_lanes
from tangere.runtime import SOUND, collect, device_of, launch, take

wp.set_module_options(SOUND)

__all__ = ["TypeRule", "candidate_bound", "cell_pairs"]

#: Entries worth a thread: 60 ns each, and many times that in crowded cells.
ENTRIES_GRAIN = 2048


@dataclass(frozen=True)
class TypeRule:
    """What the published rule knows of each triangle."""

    home: wp.array  #: (n,) int32: type of the cell that holds the centre
    types: wp.array  #: (n,) int32: bit t where the bounds overlap a cell of type t
    faces: wp.array  #: (n, 3) int32: pairs that share a vertex are left out


def cell_pairs(
    crowd: Crowd,
    grid: Grid,
    entries: Entries,
    runs: Runs,
    *,
    spheres: wp.array | None = None,
    rule: TypeRule | None = None,
    patches: wp.array | None = None,
) -> wp.array:
    """All pairs (i, j), i < j, that share a cell and whose bounds overlap, each in one cell, in any order.

    Args:
        spheres: (n,) vec4d centre and radius [m]; pairs whose spheres are apart are left out.
        rule: the published one; None means the sound one.
        patches: (E,) int32 per entry: twice the number of a patch without contact within itself, plus 1 for entries
            that this holds of whatever their partner; -1 for none.
    """
    device, count = device_of(crowd.boxes), len(entries.keys)
    placed = wp.empty(count, dtype=Placed, device=device)
    inputs = [crowd.boxes, entries.keys, entries.triangles, grid.spec, grid.first_cell, entries.low]
    launch(_place, count, inputs, [placed], device=device, grain=GRAIN)
    nothing, no_faces, no_spheres = _nothing(device.alias)
    inputs = [entries.keys, placed, runs.start, runs.number, grid.spec]
    inputs += [crowd.body, crowd.compared]
    inputs += [no_spheres if spheres is None else spheres]
    inputs += [nothing if patches is None else patches]
    inputs += [nothing, nothing, no_faces] if rule is None else [rule.home, rule.types, rule.faces]
    return collect(_cell_pairs(device.is_cpu), count, inputs, wp.vec2i, device=device, grain=ENTRIES_GRAIN)


@cache
def _nothing(device: str) -> tuple[wp.array, wp.array, wp.array]:
    """Numbers, faces and spheres, none of each."""
    kinds = ((0, wp.int32), ((0, 3), wp.int32), (0, wp.vec4d))
    numbers, faces, spheres = (wp.empty(shape, dtype=dtype, device=device) for shape, dtype in kinds)
    return numbers, faces, spheres


def candidate_bound(entries: Entries, runs: Runs) -> np.ndarray:
    """(C,) int64: how many pairs each cell has to look at: n (n - 1) / 2 + n m, of n that live there and m others.

    Equation 5.1 of the document, for an even split of the work over threads.
    """
    number, guest = runs.number.numpy(), entries.keys.numpy() & 1
    cells = int(number[-1]) + 1 if len(number) else 0
    n = np.bincount(number[guest == 0], minlength=cells)
    m = np.bincount(number[guest == 1], minlength=cells)
    return n * (n - 1) // 2 + n * m


@wp.kernel
def _place(
    first: int,
    boxes: wp.array[Box],
    keys: wp.array[int],
    triangles: wp.array[int],
    spec: wp.array[Spec],
    first_cell: wp.array[int],
    low: wp.array[wp.vec3i],
    placed: wp.array[Placed],
):
    """Entries side by side as they are compared."""
    e = first + wp.tid()
    i = triangles[e]
    cell = keys[e] >> 1
    level = int(0)
    while level + 1 < spec[0].levels and first_cell[level + 1] <= cell:
        level += 1
    at = cell_at(cell - first_cell[level], level, spec[0].counts)
    begins = int(0)
    for k in range(3):
        if low[i][k] >> level == at[k]:
            begins = begins | (1 << k)
    box = boxes[i]
    placed[e] = Placed(box[0], box[1], box[2], box[3], box[4], box[5], begins, i)


@wp.func
def next_overlap(e: int, begin: int, end: int, anywhere: bool, placed: wp.array[Placed]) -> int:
    """The first of the entries from begin to end whose box overlaps that of e, and which counts here; or end."""
    mine = placed[e]
    f = int(begin)
    while f < end:
        other = placed[f]
        # No sum is positive: without a branch, which no processor can guess.
        x = (mine[0] + other[3] - 1) & (mine[3] + other[0] - 1)
        y = (mine[1] + other[4] - 1) & (mine[4] + other[1] - 1)
        z = (mine[2] + other[5] - 1) & (mine[5] + other[2] - 1)
        if (x & y & z) < 0 and (anywhere or (mine[6] | other[6]) == 7):
            return f
        f += 1
    return f


@wp.func
def first_from(wanted: int, begin: int, end: int, placed: wp.array[Placed], body: wp.array[int]) -> int:
    """The first of the entries from begin to end, which come body after body, whose body is not below the wanted."""
    low = int(begin)
    high = int(end)
    while low < high:
        middle = (low + high) / 2
        if body[placed[middle][7]] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@wp.func
def first_visitor(begin: int, end: int, keys: wp.array[int]) -> int:
    """The first of the entries of a cell, from begin to end, that does not live there."""
    low = int(begin)
    high = int(end)
    while low < high:
        middle = (low + high) / 2
        if (keys[middle] & 1) == 0:
            low = middle + 1
        else:
            high = middle
    return low


@wp.func
def type_of(cell: int, counts: wp.vec3i) -> int:
    """One of eight types, so that a cell differs from its 26 neighbours."""
    x = cell % counts[0]
    y = (cell / counts[0]) % counts[1]
    z = cell / (counts[0] * counts[1])
    return (x & 1) + 2 * (y & 1) + 4 * (z & 1)


@wp.func
def counts_here_by_type(i: int, j: int, here: int, home: wp.array[int], types: wp.array[int]) -> bool:
    """The published rule: one of the two is at home here, and neither is at home at a lower type both overlap."""
    if home[i] != here and home[j] != here:
        return False
    if home[i] < here and ((types[j] >> home[i]) & 1) == 1:
        return False
    return not (home[j] < here and ((types[i] >> home[j]) & 1) == 1)


@wp.func
def share_a_vertex(i: int, j: int, faces: wp.array2d[int]) -> bool:
    shared = False
    for c in range(3):
        for d in range(3):
            if faces[i, c] == faces[j, d]:
                shared = True
    return shared


@wp.func
def spheres_apart(a: wp.vec4d, b: wp.vec4d) -> bool:
    offset = wp.vec3d(a[0] - b[0], a[1] - b[1], a[2] - b[2])
    reach = a[3] + b[3]
    return wp.dot(offset, offset) > reach * reach


@cache
def _cell_pairs(in_lanes: bool) -> wp.Kernel:
    """Made for CPUs, or for CUDA."""
    next_pair = next_overlap_in_lanes if in_lanes else next_overlap

    @wp.kernel(module="unique", module_options=SOUND)
    def cell_pairs_of(
        first: int,
        shard: int,
        keys: wp.array[int],
        placed: wp.array[Placed],
        start: wp.array[int],
        number: wp.array[int],
        spec: wp.array[Spec],
        body: wp.array[int],
        compared: wp.array2d[wp.uint8],
        spheres: wp.array[wp.vec4d],
        patches: wp.array[int],
        home: wp.array[int],
        types: wp.array[int],
        faces: wp.array2d[int],
        counts: wp.array[wp.int64],
        capacity: int,
        out: wp.array[wp.vec2i],
    ):
        e = first + wp.tid()
        i = placed[e][7]
        own = body[i]
        published = home.shape[0] > 0
        here = int(0)
        turns = int(
            1
        )  # visitors do not meet each other, except in published mode, where they are not what they are here
        if published:
            here = type_of(keys[e] >> 1, spec[0].counts)
            turns = 2
        patch = int(-1)
        if patches.shape[0] > 0:
            patch = patches[e]
        begin = start[number[e]]
        end = first_visitor(begin, e, keys)
        for _turn in range(turns):
            left_out = int(end)
            resume = int(end)
            if compared[own, own] == wp.uint8(0):
                left_out = first_from(own, begin, end, placed, body)
                resume = first_from(own + 1, left_out, end, placed, body)
            for part in range(2):
                f = int(begin)
                stop = int(left_out)
                if part == 1:
                    f = resume + 0
                    stop = end + 0
                f = next_pair(e, f, stop, published, placed)
                while f < stop:
                    j = placed[f][7]
                    listed = may_pair(i, j, body, compared)
                    if listed and published:
                        listed = counts_here_by_type(i, j, here, home, types)
                        listed = listed and not (own == body[j] and share_a_vertex(i, j, faces))
                    if listed and spheres.shape[0] > 0:
                        listed = not spheres_apart(spheres[i], spheres[j])
                    if listed and patch >= 0:
                        joined = patches[f]
                        listed = not (joined >= 0 and patch >> 1 == joined >> 1 and ((patch | joined) & 1) == 1)
                    if listed:
                        place = take(counts, shard, 1, capacity)
                        if place >= 0:
                            out[place] = wp.vec2i(wp.min(i, j), wp.max(i, j))
                    f = next_pair(e, f + 1, stop, published, placed)
            begin = end + 0
            end = e + 0

    return cell_pairs_of
