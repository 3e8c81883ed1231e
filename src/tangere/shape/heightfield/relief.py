"""What is known of large ground without its heights: for each square of 32 x 32 cells how low, high, flat and ridged.

Question: where can ground be in this square; is it one plane; can a body touch an edge or a vertex of it from above?
Method:   one pass over each square with a border of one vertex. Squares go one beyond the last row and column, so that
          every vertex is the first of a cell.
Known as: a tile summary, the coarse levels of a min-max mipmap (Tevs et al. 2008), with marks of convex edges.
A relief is a fiftieth of its ground, so it is kept beside it (`relief_file`). It is not the truth: whoever reads the
heights of a square compares.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from tangere.runtime import SOUND, InputError, launch
from tangere.shape.heightfield.heightfield import LARGEST_HEIGHT

wp.set_module_options(SOUND)

#: Cells along a side of a square, and its levels: squares of 1, 2, 4, … cells.
SQUARE = wp.constant(32)
LEVELS = wp.constant(6)
#: Squares that are looked at together, down and across: 17 MB of heights.
TOGETHER = 16, 128
#: Squares worth a thread.
GRAIN = 16

#: Marks of a square: an edge along x, along y, a diagonal or a vertex that a body can touch from above; a cell without
#: ground.
RIDGE_X = wp.constant(2)
RIDGE_Y = wp.constant(4)
RIDGE_DIAGONAL = wp.constant(8)
RIDGE_VERTEX = wp.constant(16)
GAP = wp.constant(32)

_HALF = wp.constant(wp.float64(0.5))
_INFINITE = wp.constant(wp.float64(float("inf")))

#: First and last row, first and last column of squares.
Block = tuple[int, int, int, int]


@dataclass(frozen=True, eq=False)
class Relief:
    """The squares of a grid of heights, (r, c) of them. All heights are relative to the origin [m]."""

    ground: np.ndarray  #: (r, c, 2) lowest and highest ground; inf and -inf where there is none
    heights: np.ndarray  #: (r, c, 2) lowest and highest height, whether there is ground or not
    corners: np.ndarray  #: (r, c, 4) heights of V0, V1, V2, V3
    bend: np.ndarray  #: (r, c) how far the corners of its parts are from one plane; inf where a cell has no ground
    marks: np.ndarray  #: (r, c) uint8: RIDGE_X, …, GAP

    @staticmethod
    def of(heights: Any, holes: Any, flatness: float, name: str) -> Relief:
        """From all heights.

        Args:
            heights, holes: an array or what takes slices like one; holes may be None.
            flatness: how far an edge must bend to be a ridge [m].
            name: of the terrain, for errors.
        """
        r, c = square_counts((heights.shape[0] - 1, heights.shape[1] - 1))
        relief = Relief.empty((r, c))
        blocks = [
            (i, min(i + TOGETHER[0], r) - 1, j, min(j + TOGETHER[1], c) - 1)
            for i in range(0, r, TOGETHER[0])
            for j in range(0, c, TOGETHER[1])
        ]
        relief.update(blocks, heights, holes, flatness, name)
        return relief

    @staticmethod
    def empty(counts: tuple[int, int]) -> Relief:
        """Room for so many squares along y and x."""
        return Relief(*(np.empty((*counts, n)) for n in (2, 2, 4)), np.empty(counts), np.empty(counts, np.uint8))

    def update(self, blocks: Iterable[Block], heights: Any, holes: Any, flatness: float, name: str) -> None:
        """Compute some squares anew from their heights."""
        device = wp.get_device("cpu")
        for block in blocks:
            r, c = block[1] - block[0] + 1, block[3] - block[2] + 1
            kinds = (wp.vec2d, wp.vec2d, wp.vec4d, wp.float64, wp.uint8)
            parts = [wp.empty((r, c), dtype=dtype, device=device) for dtype in kinds]
            window = _window(heights, holes, block)
            launch(summarise_square, r * c, [window, block[0], block[2], flatness], parts, device=device, grain=GRAIN)
            if not (np.abs(parts[1].numpy()) <= LARGEST_HEIGHT).all():  # NaN is not either
                rows = SQUARE * block[0], min(SQUARE * (block[1] + 1), heights.shape[0]) - 1
                raise InputError(f"Heightfield {name!r}: a height in rows {rows[0]} to {rows[1]} is not finite")
            for all_of, part in zip(
                (self.ground, self.heights, self.corners, self.bend, self.marks), parts, strict=True
            ):
                all_of[block[0] : block[1] + 1, block[2] : block[3] + 1] = part.numpy()


def square_counts(shape: tuple[int, int]) -> tuple[int, int]:
    """Squares along y and x of a field of rows and columns of cells."""
    return shape[0] // SQUARE + 1, shape[1] // SQUARE + 1


@wp.struct
class Window:
    """A part of a grid: vertices, and the holes of cells if there are any, from (row, column) on."""

    heights: wp.array2d[wp.float64]
    holes: wp.array2d[wp.uint8]
    row: int
    column: int
    rows: int  # of cells of the whole grid
    columns: int


def _window(heights: Any, holes: Any, block: Block) -> Any:
    """All that a block of squares depends on: its cells, one before them, and their vertices."""
    window: Any = Window()
    window.rows, window.columns = (n - 1 for n in heights.shape)
    first = [max(SQUARE * k - 1, 0) for k in (block[0], block[2])]
    window.row, window.column = first
    ends = [SQUARE * (k + 1) for k in (block[1], block[3])]
    i, j = (slice(a, end + 1) for a, end in zip(first, ends, strict=True))
    read = np.ascontiguousarray(heights[i, j], np.float64)
    window.heights = wp.array(read, dtype=wp.float64, device="cpu", copy=False)
    masks = np.zeros((0, 0), np.uint8)
    if holes is not None:
        masks = np.ascontiguousarray(holes[first[0] : ends[0], first[1] : ends[1]], np.uint8)
    window.holes = wp.array(masks, dtype=wp.uint8, device="cpu", copy=False)
    return window


@wp.func
def height_of(w: Window, i: int, j: int) -> wp.float64:
    """Of a vertex; what is beyond the border is as high as the border."""
    return w.heights[wp.clamp(i, 0, w.rows) - w.row, wp.clamp(j, 0, w.columns) - w.column]


@wp.func
def has_ground(w: Window, i: int, j: int) -> bool:
    if i < 0 or i >= w.rows or j < 0 or j >= w.columns:
        return False
    if w.holes.shape[0] == 0:
        return True
    return w.holes[i - w.row, j - w.column] == wp.uint8(0)


@wp.func
def ridge_x(w: Window, i: int, j: int, flatness: wp.float64) -> bool:
    """Whether a body can touch the edge from (i, j) along x: ground on one side only, or bent.

    It is bent by what its ends have together over the vertices opposite to it; so are the other edges.
    """
    solid = has_ground(w, i, j)
    if solid != has_ground(w, i - 1, j):
        return True
    bend = height_of(w, i, j) + height_of(w, i, j + 1) - height_of(w, i + 1, j) - height_of(w, i - 1, j + 1)
    return solid and bend > flatness


@wp.func
def ridge_y(w: Window, i: int, j: int, flatness: wp.float64) -> bool:
    solid = has_ground(w, i, j)
    if solid != has_ground(w, i, j - 1):
        return True
    bend = height_of(w, i, j) + height_of(w, i + 1, j) - height_of(w, i, j + 1) - height_of(w, i + 1, j - 1)
    return solid and bend > flatness


@wp.func
def ridge_diagonal(w: Window, i: int, j: int, flatness: wp.float64) -> bool:
    bend = height_of(w, i, j + 1) + height_of(w, i + 1, j) - height_of(w, i, j) - height_of(w, i + 1, j + 1)
    return has_ground(w, i, j) and bend > flatness


@wp.func
def marks_of(w: Window, i: int, j: int, flatness: wp.float64, known: int) -> int:
    """What a cell adds to the marks of a square; marks that are known are not looked for."""
    marks = known
    if (marks & RIDGE_X) == 0 and ridge_x(w, i, j, flatness):
        marks = marks | RIDGE_X | RIDGE_VERTEX
    if (marks & RIDGE_Y) == 0 and ridge_y(w, i, j, flatness):
        marks = marks | RIDGE_Y | RIDGE_VERTEX
    if (marks & RIDGE_DIAGONAL) == 0 and ridge_diagonal(w, i, j, flatness):
        marks = marks | RIDGE_DIAGONAL
    if (marks & RIDGE_VERTEX) == 0:  # of an edge that another cell owns
        beside = ridge_x(w, i, j - 1, flatness) or ridge_diagonal(w, i, j - 1, flatness)
        if beside or ridge_y(w, i - 1, j, flatness) or ridge_diagonal(w, i - 1, j, flatness):
            marks = marks | RIDGE_VERTEX
    return marks


@wp.func
def owned_ground(w: Window, i: int, j: int, low: wp.float64, high: wp.float64) -> wp.vec2d:
    """Low and high ground with that of a cell without: what it owns may border on ground."""
    left = has_ground(w, i, j - 1)
    below = has_ground(w, i - 1, j)
    ground = wp.vec2d(low, high)
    if left or below or has_ground(w, i - 1, j - 1):
        ground = with_height(ground, height_of(w, i, j))
    if below:
        ground = with_height(ground, height_of(w, i, j + 1))
    if left:
        ground = with_height(ground, height_of(w, i + 1, j))
    return ground


@wp.func
def with_height(ends: wp.vec2d, h: wp.float64) -> wp.vec2d:
    return wp.vec2d(wp.min(ends[0], h), wp.max(ends[1], h))


@wp.func
def off_plane(w: Window, i: int, j: int, half: int) -> wp.float64:
    """How far the corners of the quarters of a square of 2 `half` cells are from the plane of V0, V1, V2."""
    h0 = height_of(w, i, j)
    h1 = height_of(w, i, j + 2 * half)
    h2 = height_of(w, i + 2 * half, j)
    off = wp.abs(h0 - h1 - h2 + height_of(w, i + 2 * half, j + 2 * half))
    off = wp.max(off, wp.abs(height_of(w, i, j + half) - _HALF * (h0 + h1)))
    off = wp.max(off, wp.abs(height_of(w, i + half, j) - _HALF * (h0 + h2)))
    off = wp.max(off, wp.abs(height_of(w, i + half, j + half) - _HALF * (h1 + h2)))
    off = wp.max(off, wp.abs(height_of(w, i + half, j + 2 * half) - (h1 + _HALF * (h2 - h0))))
    return wp.max(off, wp.abs(height_of(w, i + 2 * half, j + half) - (h2 + _HALF * (h1 - h0))))


@wp.kernel
def summarise_square(
    first: int,
    w: Window,
    first_row: int,
    first_column: int,
    flatness: wp.float64,
    ground: wp.array2d[wp.vec2d],
    heights: wp.array2d[wp.vec2d],
    corners: wp.array2d[wp.vec4d],
    bend: wp.array2d[wp.float64],
    marks: wp.array2d[wp.uint8],
):
    k = first + wp.tid()
    row = k // marks.shape[1]
    column = k % marks.shape[1]
    top = (first_row + row) * SQUARE
    left = (first_column + column) * SQUARE
    solid = wp.vec2d(_INFINITE, -_INFINITE)
    ends = wp.vec2d(_INFINITE, -_INFINITE)
    bent = wp.float64(0.0)
    mark = int(0)
    wrong = wp.float64(0.0)
    for a in range(SQUARE):
        for b in range(SQUARE):
            i = top + a
            j = left + b
            h0 = height_of(w, i, j)
            h1 = height_of(w, i, j + 1)
            h2 = height_of(w, i + 1, j)
            h3 = height_of(w, i + 1, j + 1)
            low = wp.min(wp.min(h0, h1), wp.min(h2, h3))
            high = wp.max(wp.max(h0, h1), wp.max(h2, h3))
            wrong = wrong + wp.float64(0.0) * h0  # NaN if a height is, or is infinite
            ends = wp.vec2d(wp.min(ends[0], low), wp.max(ends[1], high))
            if has_ground(w, i, j):
                solid = wp.vec2d(wp.min(solid[0], low), wp.max(solid[1], high))
                bent = wp.max(bent, wp.abs(h0 - h1 - h2 + h3))
            else:
                mark = mark | GAP
                solid = owned_ground(w, i, j, solid[0], solid[1])
            mark = marks_of(w, i, j, flatness, mark)
    for level in range(1, LEVELS):
        size = 1 << level
        for a in range(SQUARE >> level):
            for b in range(SQUARE >> level):
                bent = wp.max(bent, off_plane(w, top + a * size, left + b * size, size >> 1))
    if (mark & GAP) != 0:
        bent = wp.float64(0.0) + _INFINITE
    h1 = height_of(w, top, left + SQUARE)
    h2 = height_of(w, top + SQUARE, left)
    ground[row, column] = solid
    heights[row, column] = ends + wp.vec2d(wrong, wrong)
    corners[row, column] = wp.vec4d(height_of(w, top, left), h1, h2, height_of(w, top + SQUARE, left + SQUARE))
    bend[row, column] = bent
    marks[row, column] = wp.uint8(mark)
