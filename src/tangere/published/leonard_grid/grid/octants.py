"""The grid as the document prints it: stages 3 and 4 with one cell size, home cells, octants and cell types.

Stage 3: cells of the largest bound plus 0.001 [m]; the region of interest, half a cell more on each side, in whole
         cells. That keeps the centres of bounds inside, not the bounds: cells outside are left out.
Stage 4: the cell of the centre, by equations 3.1 and 3.2, then those of its 7 neighbours on the side of the centre
         that the bound overlaps (Léonard 2021, sections 3.4 to 3.6).
For reproduction: the rule of cell types that goes with it (section 3.6.2) loses pairs.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.broad_phase.triangles.triangle_aabbs import Box, TriangleAabbs, is_empty
from tangere.published.leonard_grid.box_corners import lower_corner, upper_corner
from tangere.published.leonard_grid.grid.cells import Grid, Spec, define_grid, region_of
from tangere.published.leonard_grid.grid.entries import GridEntries
from tangere.published.leonard_grid.grid.walk import TypeRule
from tangere.runtime.arrays import device_of
from tangere.runtime.errors import CapacityError
from tangere.runtime.kernel_launch import launch
from tangere.runtime.scan_sort import offsets
from tangere.runtime.warp_setup import SOUND

wp.set_module_options(SOUND)

#: What the document adds to the largest bound, whatever the scale [m].
EPSILON = 0.001


def published_grid(aabbs: TriangleAabbs, region: np.ndarray, scale: float) -> Grid:
    """Stage 3 for a region of interest (2, 3), in the frame of the scene, whose scale is given."""
    grid = define_grid(aabbs, levels=False)
    row = region_of(grid).copy()
    row["cell"] = float(row["largest"]) + EPSILON * scale
    row["origin"] = region[0] - 0.5 * row["cell"]
    counts = np.ceil((region[1] - region[0]) / row["cell"] + 1.0)
    if counts.prod() >= 2.0**30:
        raise CapacityError(
            f"the published grid would have {counts.prod():.3g} cells: they are too small for the region"
        )
    row["counts"] = np.maximum(counts, 1).astype(np.int32)
    row["levels"] = 1
    device = grid.spec.device
    first_cell = np.zeros(len(grid.first_cell), np.int32)
    first_cell[1] = int(counts.prod())
    spec = wp.array(np.array([row]), dtype=Spec, device=device)
    return Grid(spec, wp.array(first_cell, dtype=wp.int32, device=device), leveled=False)


def published_entries(
    aabbs: TriangleAabbs, grid: Grid, faces: wp.array, spheres: wp.array | None = None, frame: tuple | None = None
) -> tuple[GridEntries, TypeRule]:
    """Stage 4: home cells and the neighbours by octant; and what the rule of types has to know.

    Args:
        spheres: (n,) vec4d [m]: test spheres against cells instead of boxes.
        frame: origin and scale of the scene, with spheres.
    """
    device, count = device_of(aabbs.boxes), len(aabbs.boxes)
    low = wp.zeros(count, dtype=wp.vec3i, device=device)
    level, counts, home, types = (wp.empty(count, dtype=wp.int32, device=device) for _ in range(4))
    origin, scale = ((0.0, 0.0, 0.0), 1.0) if frame is None else frame
    inputs = [aabbs.boxes, grid.spec, wp.empty(0, dtype=wp.vec4d, device=device) if spheres is None else spheres]
    inputs += [wp.vec3d(*origin), scale]
    nothing = wp.empty(0, dtype=wp.int32, device=device)
    launch(_octants, count, [*inputs, nothing], [counts, level, home, types, nothing, nothing], device=device)
    starts, total = offsets(counts)
    keys, triangles = (wp.empty(total, dtype=wp.int32, device=device) for _ in range(2))
    launch(_octants, count, [*inputs, starts], [counts, level, home, types, keys, triangles], device=device)
    return GridEntries(keys, triangles, low, level), TypeRule(home, types, faces)


@wp.func
def sphere_meets_cell(sphere: wp.vec3d, radius: wp.float64, low: wp.vec3d, edge: wp.float64) -> bool:
    nearest = wp.max(low, wp.min(sphere, low + wp.vec3d(edge, edge, edge)))
    offset = nearest - sphere
    return wp.dot(offset, offset) <= radius * radius


@wp.kernel
def _octants(
    first: int,
    boxes: wp.array[Box],
    spec: wp.array[Spec],
    spheres: wp.array[wp.vec4d],
    frame_origin: wp.vec3d,
    frame_scale: wp.float64,
    starts: wp.array[int],
    counts: wp.array[int],
    level: wp.array[int],
    home: wp.array[int],
    types: wp.array[int],
    keys: wp.array[int],
    triangles: wp.array[int],
):
    """Count the entries of each triangle; where they start is given, write them."""
    i = first + wp.tid()
    grid = spec[0]
    box = boxes[i]
    counts[i] = 0
    level[i] = -1
    home[i] = 0
    types[i] = 0
    if is_empty(box):
        return
    level[i] = 0
    low = lower_corner(box)
    high = upper_corner(box)
    centre = wp.float64(0.5) * (low + high)
    at = (centre - grid.origin) / grid.cell
    cell = wp.vec3i(int(wp.floor(at[0])), int(wp.floor(at[1])), int(wp.floor(at[2])))
    step = wp.vec3i()
    over = wp.vec3i()
    for a in range(3):
        edge = grid.origin[a] + wp.float64(cell[a]) * grid.cell
        if at[a] - wp.float64(cell[a]) >= wp.float64(0.5):
            step[a] = 1
            if high[a] >= edge + grid.cell:
                over[a] = 1
        else:
            step[a] = -1
            if low[a] < edge:
                over[a] = 1
    home[i] = (cell[0] & 1) + 2 * (cell[1] & 1) + 4 * (cell[2] & 1)
    mask = int(0)
    number = int(0)
    for m in range(8):
        other = cell
        overlaps = True
        for a in range(3):
            if ((m >> a) & 1) == 1:
                other[a] = cell[a] + step[a]
                overlaps = overlaps and over[a] == 1
        for a in range(3):
            overlaps = overlaps and other[a] >= 0 and other[a] < grid.counts[a]
        if overlaps and spheres.shape[0] > 0 and m > 0:
            ball = spheres[i]
            place = (wp.vec3d(ball[0], ball[1], ball[2]) - frame_origin) * frame_scale
            corner = grid.origin + grid.cell * wp.vec3d(
                wp.float64(other[0]), wp.float64(other[1]), wp.float64(other[2])
            )
            overlaps = sphere_meets_cell(place, ball[3] * frame_scale, corner, grid.cell)
        if overlaps:
            mask = mask | (1 << ((other[0] & 1) + 2 * (other[1] & 1) + 4 * (other[2] & 1)))
            if starts.shape[0] > 0:
                phantom = int(0)
                if m > 0:
                    phantom = 1
                linear = (other[2] * grid.counts[1] + other[1]) * grid.counts[0] + other[0]
                keys[starts[i] + number] = 2 * linear + phantom
                triangles[starts[i] + number] = i
            number += 1
    types[i] = mask
    counts[i] = number
