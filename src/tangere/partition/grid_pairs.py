"""Pairs of triangles that share a cell and whose bounds overlap: stage 6 of the grid pipeline.

Each entry of a cell meets the entries before it that live there. A pair may share several cells; it counts in one:
  sound:     the cell with the lower corner of the overlap of both boxes. Floor is monotone, so that is the larger of
             their lowest cells, in integers; for any cell size no pair is lost and none is doubled
             (specs/leonard-deformable-gpu C8).
  published: the rule of eight types of cells and control bits as printed, which loses pairs (A3), with pairs that share
             a vertex left out (C9).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from tangere.partition.broad_phase_boxes import Box, Crowd, boxes_overlap, may_pair
from tangere.partition.grid import Grid, Spec
from tangere.partition.grid_entries import Entries, Runs, cell_at
from tangere.runtime import SOUND, collect, device_of, launch, take

wp.set_module_options(SOUND)

__all__ = ["TypeRule", "candidate_bound", "cell_pairs"]


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
    placed, corner = (wp.empty(count, dtype=dtype, device=device) for dtype in (Box, wp.vec3i))
    inputs = [crowd.boxes, entries.keys, entries.triangles, grid.spec, grid.first_cell, entries.low]
    launch(_place, count, inputs, [placed, corner], device=device)
    nothing, no_faces = wp.empty(0, dtype=wp.int32, device=device), wp.empty((0, 3), dtype=wp.int32, device=device)
    inputs = [entries.keys, entries.triangles, placed, corner, runs.start, runs.number, grid.spec]
    inputs += [crowd.body, crowd.compared]
    inputs += [wp.empty(0, dtype=wp.vec4d, device=device) if spheres is None else spheres]
    inputs += [nothing if patches is None else patches]
    inputs += [nothing, nothing, no_faces] if rule is None else [rule.home, rule.types, rule.faces]
    return collect(_cell_pairs, count, inputs, wp.vec2i, device=device, grain=2048)


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
    placed: wp.array[Box],
    corner: wp.array[wp.vec3i],
):
    """Box and lowest cell, relative to this one and at its level, of each entry: side by side as they are compared."""
    e = first + wp.tid()
    i = triangles[e]
    cell = keys[e] >> 1
    level = int(0)
    while level + 1 < spec[0].levels and first_cell[level + 1] <= cell:
        level += 1
    lowest = low[i]
    placed[e] = boxes[i]
    corner[e] = wp.vec3i(lowest[0] >> level, lowest[1] >> level, lowest[2] >> level) - cell_at(
        cell - first_cell[level], level, spec[0].counts
    )


@wp.func
def counts_here(a: wp.vec3i, b: wp.vec3i) -> bool:
    """The sound rule: the larger of the lowest cells of both boxes is this one."""
    return wp.max(a[0], b[0]) == 0 and wp.max(a[1], b[1]) == 0 and wp.max(a[2], b[2]) == 0


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


@wp.kernel
def _cell_pairs(
    first: int,
    shard: int,
    keys: wp.array[int],
    triangles: wp.array[int],
    placed: wp.array[Box],
    corner: wp.array[wp.vec3i],
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
    published = home.shape[0] > 0
    here = int(0)
    if published:
        here = type_of(keys[e] >> 1, spec[0].counts)
    box = placed[e]
    lowest = corner[e]
    i = triangles[e]
    patch = int(-1)
    if patches.shape[0] > 0:
        patch = patches[e]
    f = start[number[e]]
    while f < e:
        if (keys[f] & 1) == 1 and not published:
            f = e  # from here on visitors only, who do not meet each other
        else:
            if boxes_overlap(box, placed[f]) and (published or counts_here(lowest, corner[f])):
                j = triangles[f]
                listed = may_pair(i, j, body, compared)
                if listed and published:
                    listed = counts_here_by_type(i, j, here, home, types)
                    listed = listed and not (body[i] == body[j] and share_a_vertex(i, j, faces))
                if listed and spheres.shape[0] > 0:
                    listed = not spheres_apart(spheres[i], spheres[j])
                if listed and patch >= 0:
                    other = patches[f]
                    listed = not (other >= 0 and patch >> 1 == other >> 1 and ((patch | other) & 1) == 1)
                if listed:
                    place = take(counts, shard, 1, capacity)
                    if place >= 0:
                        out[place] = wp.vec2i(wp.min(i, j), wp.max(i, j))
            f = f + 1
