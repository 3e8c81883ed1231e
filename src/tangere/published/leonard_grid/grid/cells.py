"""The cells of a uniform or hierarchical grid over triangle boxes: stage 3 of the pipeline.

Cell size and region come from sums over chunks of triangles that stay on the device. With several levels each is twice
as coarse as the one below, for triangles of mixed sizes (Léonard 2021, section 3.4, has one). Any cell size is sound;
it only decides how many boxes share a cell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from tangere.broad_phase.triangles.triangle_aabbs import EMPTY, Box, TriangleAabbs, is_empty
from tangere.published.leonard_grid.box_corners import lower_corner, upper_corner
from tangere.runtime import SOUND, InputError, device_of, launch_in_turn

wp.set_module_options(SOUND)

#: Chunks of triangles that are summed up by one thread each, and how many triangles are worth one on a CPU.
CHUNKS = 256
CHUNK = 8192
#: Classes of size, by powers of two below the extent of the scene.
SIZES = wp.constant(32)
#: Of several levels the finest is made for this part of all triangles, the smallest ones.
SMALL_PART = wp.constant(wp.float64(0.75))
#: Cells are so many times the mean size; those of a uniform grid are never below this part of the largest.
MEAN_SIZES = wp.constant(wp.float64(1.5))
LARGEST_PART = wp.constant(wp.float64(0.125))
MOST_LEVELS = wp.constant(12)
#: Cells of all levels together, so that twice their number is an int32.
MOST_CELLS = wp.constant(wp.float64(2.0**29))
#: Cells are a little larger than the largest box that must fit.
ROOM = wp.constant(wp.float64(1.001))


@wp.struct
class Spec:
    """A grid: in the frame of the scene."""

    origin: wp.vec3d
    cell: wp.float64  # edge of the finest cells
    counts: wp.vec3i  # of the finest cells
    levels: int
    largest: wp.float64  # size of the largest box


@dataclass(frozen=True)
class Grid:
    """Stage 3: where the cells are."""

    spec: wp.array  #: (1,) `Spec`
    first_cell: wp.array  #: (levels + 1,) int32: number of the first cell of each level
    leveled: bool  #: whether there may be more than one level


def define_grid(aabbs: TriangleAabbs, *, levels: bool, cell: float | None = None) -> Grid:
    """The grid for the boxes of triangles.

    Args:
        levels: several, for mixed sizes; else one.
        cell: edge of the (finest) cells in the frame of the scene; None means by the sizes of the triangles.
    """
    if cell is not None and not cell > 0.0:
        raise InputError(f"cell must be a positive length, not {cell!r}")
    device, count = device_of(aabbs.boxes), len(aabbs.boxes)
    chunks = min(CHUNKS, count if device.is_cuda else -(-count // CHUNK))
    whole = wp.empty(chunks, dtype=Box, device=device)
    sizes = wp.empty(chunks, dtype=wp.vec3d, device=device)
    classes = wp.zeros((chunks if levels else 0, SIZES), dtype=wp.vec2d, device=device)
    spec = wp.empty(1, dtype=Spec, device=device)
    first_cell = wp.zeros(MOST_LEVELS + 1, dtype=wp.int32, device=device)
    sums = [aabbs.boxes, chunks, int(device.is_cpu), int(levels), whole, sizes, classes]
    definition = [whole, sizes, classes, int(levels), 0.0 if cell is None else cell, spec, first_cell]
    launch_in_turn([(_sum_up, chunks, sums), (_define, 1, definition)], device=device, grain=2)
    return Grid(spec, first_cell, levels)


def region_of(grid: Grid) -> np.ndarray:
    """The single row of a grid's `Spec`, in main memory."""
    return grid.spec.numpy()[0]


@wp.func
def size_of(box: Box) -> wp.float64:
    return wp.max(upper_corner(box) - lower_corner(box))


@wp.kernel
def _sum_up(
    first: int,
    boxes: wp.array[Box],
    chunks: int,
    contiguous: int,
    levels: int,
    whole: wp.array[Box],
    sizes: wp.array[wp.vec3d],
    classes: wp.array2d[wp.vec2d],
):
    """Of one chunk of triangles: hull, largest size, sum of sizes, number; with levels, number and sum by classes."""
    c = first + wp.tid()
    hull = Box(EMPTY)
    largest = wp.float64(0.0)
    total = wp.float64(0.0)
    number = wp.float64(0.0)
    i = c + 0
    end = boxes.shape[0]
    step = chunks
    if contiguous == 1:
        size_of_chunk = (end + chunks - 1) / chunks
        i = c * size_of_chunk
        end = wp.min(end, i + size_of_chunk)
        step = 1
    while i < end:
        box = boxes[i]
        if not is_empty(box):
            hull = wp.min(hull, box)
            size = size_of(box)
            largest = wp.max(largest, size)
            total += size
            number += wp.float64(1.0)
            if levels == 1:
                k = wp.clamp(int(wp.floor(wp.log2(wp.max(size, wp.float64(1.0e-9))))) + SIZES - 2, 0, SIZES - 1)
                classes[c, k] = classes[c, k] + wp.vec2d(wp.float64(1.0), size)
        i += step
    whole[c] = hull
    sizes[c] = wp.vec3d(largest, total, number)


@wp.kernel
def _define(
    first: int,
    whole: wp.array[Box],
    sizes: wp.array[wp.vec3d],
    classes: wp.array2d[wp.vec2d],
    levels: int,
    wanted: wp.float64,
    spec: wp.array[Spec],
    first_cell: wp.array[int],
):
    hull = Box(EMPTY)
    largest = wp.float64(0.0)
    total = wp.float64(0.0)
    number = wp.float64(0.0)
    for c in range(whole.shape[0]):
        hull = wp.min(hull, whole[c])
        largest = wp.max(largest, sizes[c][0])
        total += sizes[c][1]
        number += sizes[c][2]
    grid = Spec()
    grid.largest = largest
    grid.levels = 1
    if number == wp.float64(0.0):
        grid.cell = wp.float64(1.0)
        grid.counts = wp.vec3i(1, 1, 1)
        first_cell[1] = 1
        spec[0] = grid
        return
    grid.origin = lower_corner(hull)
    extent = upper_corner(hull) - grid.origin
    if wanted > wp.float64(0.0):
        grid.cell = wanted
    elif levels == 0:
        grid.cell = wp.max(MEAN_SIZES * total / number, LARGEST_PART * largest)
    else:
        small = wp.vec2d()
        k = int(0)
        while k < SIZES and small[0] <= SMALL_PART * number:
            for c in range(whole.shape[0]):
                small += classes[c, k]
            k += 1
        grid.cell = MEAN_SIZES * small[1] / small[0]
        grid.cell = wp.max(grid.cell, largest * wp.pow(wp.float64(2.0), wp.float64(1 - MOST_LEVELS)) * ROOM)
    grid.cell = wp.max(grid.cell, wp.float64(1.0e-9) * wp.max(extent))
    grid.cell = wp.max(grid.cell, wp.float64(1.0e-30))
    cells = MOST_CELLS * wp.float64(2.0)
    while cells > MOST_CELLS:
        nx = wp.floor(extent[0] / grid.cell) + wp.float64(2.0)
        ny = wp.floor(extent[1] / grid.cell) + wp.float64(2.0)
        nz = wp.floor(extent[2] / grid.cell) + wp.float64(2.0)
        cells = nx * ny * nz * wp.float64(2.0)  # the coarser levels add less than as many again
        if cells > MOST_CELLS:
            grid.cell = grid.cell * wp.float64(1.25)
    grid.counts = wp.vec3i(int(nx), int(ny), int(nz))
    if levels == 1:
        edge = grid.cell
        while edge < largest and grid.levels < MOST_LEVELS:
            edge = edge * wp.float64(2.0)
            grid.levels += 1
    at = int(0)
    for k in range(grid.levels):
        first_cell[k] = at
        at += level_count(grid.counts[0], k) * level_count(grid.counts[1], k) * level_count(grid.counts[2], k)
    first_cell[grid.levels] = at
    spec[0] = grid


@wp.func
def level_count(count: int, level: int) -> int:
    """Cells along an axis at a level."""
    return ((count - 1) >> level) + 1
