"""From pair to pair of triangles that share a cell and whose bounds overlap: how kernels go through stage 6.

Each entry of a cell meets the entries before it that live there. A pair may share several cells; it counts in one:
  sound:     the cell with the lower corner of the overlap of both boxes. Floor is monotone, so that is the larger of
             their lowest cells, in integers; for any cell size no pair is lost and none is doubled
             (Léonard 2021, section 3.6.2). No lowest cell of an entry is above this one on any axis, so it is the
             one where on each axis one of the two is at it.
  published: the rule of eight types of cells and control bits as printed, which loses pairs, with pairs that share a
             vertex left out (section 3.6.3).
Triangles are numbered body after body, so the entries of a cell are, too: where a body is not compared with itself, its
own are passed over at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import warp as wp

from tangere.broad_phase.triangles.triangle_aabbs import GRAIN, Box, TriangleAabbs, may_pair
from tangere.published.leonard_grid.grid.cells import Grid, Spec, level_count
from tangere.published.leonard_grid.grid.entries import GridEntries, Runs, cell_number
from tangere.published.leonard_grid.grid.simd import CellEntry, next_overlap_in_lanes
from tangere.runtime import SOUND, device_of, launch

wp.set_module_options(SOUND)


@dataclass(frozen=True)
class TypeRule:
    """What the published rule knows of each triangle."""

    home: wp.array  #: (n,) int32: type of the cell that holds the centre
    types: wp.array  #: (n,) int32: bit t where the bounds overlap a cell of type t
    faces: wp.array  #: (n, 3) int32: pairs that share a vertex are left out


@wp.struct
class CellWalk:
    """What a kernel that goes through pairs reads; without a rule, spheres or patches, arrays of length 0."""

    keys: wp.array[int]
    placed: wp.array[CellEntry]
    start: wp.array[int]
    visits: wp.array[int]
    number: wp.array[int]
    spec: wp.array[Spec]
    body: wp.array[int]
    compared: wp.array2d[wp.uint8]
    spheres: wp.array[wp.vec4d]
    patches: wp.array[int]
    home: wp.array[int]
    types: wp.array[int]
    faces: wp.array2d[int]


def cell_walk(
    aabbs: TriangleAabbs,
    grid: Grid,
    entries: GridEntries,
    runs: Runs,
    *,
    spheres: wp.array | None = None,
    rule: TypeRule | None = None,
    patches: wp.array | None = None,
) -> CellWalk:
    """What a kernel that goes through pairs takes first, and hands on to `partners_of` and `next_partner`.

    Args:
        spheres: (n,) vec4d centre and radius [m]; pairs whose spheres are apart are left out.
        rule: the published one; None means the sound one.
        patches: (E,) int32 per entry: twice the number of a patch without contact within itself, plus 1 for entries
            that this holds of whatever their partner; -1 for none.
    """
    device, count = device_of(aabbs.boxes), len(entries.keys)
    walk = CellWalk()
    walk.placed = wp.empty(count, dtype=CellEntry, device=device)
    inputs = [aabbs.boxes, entries.keys, entries.triangles, grid.spec, grid.first_cell, entries.low]
    launch(_place, count, inputs, [walk.placed], device=device, grain=GRAIN)
    walk.keys, walk.spec = entries.keys, grid.spec
    walk.start, walk.visits, walk.number = runs.start, runs.visits, runs.number
    walk.body, walk.compared = aabbs.body, aabbs.compared
    nothing, no_faces, no_spheres = _nothing(device.alias)
    walk.spheres = no_spheres if spheres is None else spheres
    walk.patches = nothing if patches is None else patches
    walk.home, walk.types, walk.faces = (
        (nothing, nothing, no_faces) if rule is None else (rule.home, rule.types, rule.faces)
    )
    return walk


@cache
def _nothing(device: str) -> tuple[wp.array, wp.array, wp.array]:
    """Numbers, faces and spheres, none of each."""
    kinds = ((0, wp.int32), ((0, 3), wp.int32), (0, wp.vec4d))
    numbers, faces, spheres = (wp.empty(shape, dtype=dtype, device=device) for shape, dtype in kinds)
    return numbers, faces, spheres


@wp.func
def quotient(a: int, b: int) -> int:
    """a / b of numbers that are not negative, exactly, in a tenth of the time that a division of integers takes."""
    return int((wp.float64(a) + wp.float64(0.5)) / wp.float64(b))


@wp.kernel
def _place(
    first: int,
    boxes: wp.array[Box],
    keys: wp.array[int],
    triangles: wp.array[int],
    spec: wp.array[Spec],
    first_cell: wp.array[int],
    low: wp.array[wp.vec3i],
    placed: wp.array[CellEntry],
):
    """Entries side by side as they are compared."""
    e = first + wp.tid()
    i = triangles[e]
    cell = keys[e] >> 1
    level = int(0)
    while level + 1 < spec[0].levels and first_cell[level + 1] <= cell:
        level += 1
    # How many cells it is from the lowest cell of the triangle, along each axis.
    nx = level_count(spec[0].counts[0], level)
    plane = nx * level_count(spec[0].counts[1], level)
    lowest = low[i]
    way = cell - cell_number(
        lowest[0] >> level, lowest[1] >> level, lowest[2] >> level, level, spec[0].counts, first_cell
    )
    z = quotient(way, plane)
    y = quotient(way - z * plane, nx)
    x = way - z * plane - y * nx
    begins = wp.where(x == 0, 1, 0) | wp.where(y == 0, 2, 0) | wp.where(z == 0, 4, 0)
    box = boxes[i]
    placed[e] = CellEntry(box[0], box[1], box[2], box[3], box[4], box[5], begins, i)


@wp.func
def next_overlap(e: int, begin: int, end: int, anywhere: bool, placed: wp.array[CellEntry]) -> int:
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
def first_from(wanted: int, begin: int, end: int, placed: wp.array[CellEntry], body: wp.array[int]) -> int:
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
def pair_of(e: int, f: int, placed: wp.array[CellEntry]) -> wp.vec2i:
    """The triangles of two entries, the smaller number first."""
    return wp.vec2i(wp.min(placed[e][7], placed[f][7]), wp.max(placed[e][7], placed[f][7]))


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


@wp.func
def partners_of(e: int, walk: CellWalk) -> wp.vec4i:
    """The entries that e may pair with: from the first of these numbers to the second, and from the third to the last.

    Visitors do not meet each other, except in published mode, where they are not what they are here.
    """
    cell = walk.number[e]
    begin = walk.start[cell]
    own = walk.body[walk.placed[e][7]]
    # Whoever lives here comes after others that do, and after those of its own body: nothing is to be looked for.
    end = int(e)
    visitor = (walk.keys[e] & 1) == 1
    if visitor:
        end = walk.visits[cell]
    left_out = int(end)
    resume = int(end)
    if walk.compared[own, own] == wp.uint8(0):
        left_out = first_from(own, begin, end, walk.placed, walk.body)
        if visitor:
            resume = first_from(own + 1, left_out, end, walk.placed, walk.body)
    if walk.home.shape[0] > 0:
        end = e + 0
    return wp.vec4i(begin, left_out, resume, end)


@wp.func
def is_listed(e: int, f: int, walk: CellWalk) -> bool:
    """Whether two entries of a cell whose boxes overlap are a pair that counts there."""
    i = walk.placed[e][7]
    j = walk.placed[f][7]
    if not may_pair(i, j, walk.body, walk.compared):
        return False
    if walk.home.shape[0] > 0:
        here = type_of(walk.keys[e] >> 1, walk.spec[0].counts)
        if not counts_here_by_type(i, j, here, walk.home, walk.types):
            return False
        if walk.body[i] == walk.body[j] and share_a_vertex(i, j, walk.faces):
            return False
    if walk.spheres.shape[0] > 0 and spheres_apart(walk.spheres[i], walk.spheres[j]):
        return False
    if walk.patches.shape[0] > 0:
        mine = walk.patches[e]
        yours = walk.patches[f]
        return not (mine >= 0 and yours >= 0 and mine >> 1 == yours >> 1 and ((mine | yours) & 1) == 1)
    return True


@cache
def next_partner(in_lanes: bool) -> wp.Function:
    """The step from pair to pair, made for CPUs or for CUDA."""
    next_meeting = next_overlap_in_lanes if in_lanes else next_overlap

    @wp.func
    def next_partner_of(e: int, begin: int, partners: wp.vec4i, walk: CellWalk) -> int:
        """The first of the `partners` of e, from `begin` on, that is listed with it; or the end of them."""
        f = int(begin)
        while f < partners[3]:
            stop = partners[1]
            if f >= stop:
                f = wp.max(f, partners[2])
                stop = partners[3]
            f = next_meeting(e, f, stop, walk.home.shape[0] > 0, walk.placed)
            if f < stop:
                if is_listed(e, f, walk):
                    return f
                f += 1
        return f

    return next_partner_of
