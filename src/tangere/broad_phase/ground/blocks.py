"""Ground in blocks: rectangles of cells as meshes, made where they are asked for and kept.

Question: which triangles of the ground may be near a box, as meshes for which queries keep trees?
Method:   squares of 32 x 32 cells, whose lowest and highest ground is known without their heights (`relief`), are cut
          out of the grid when they are first asked for. Corners are where `Heightfield.vertices` has them, to the bit.
Known as: terrain chunks.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import numpy as np

from tangere.shape.heightfield import SQUARE, Heightfield, Relief, TiledHeightfield
from tangere.shape.mesh import Mesh

#: Blocks of a ground that are kept: the last ones that were asked for, two thousand triangles each.
KEPT_BLOCKS = 512
_SQUARE = int(SQUARE)


@dataclass(frozen=True, eq=False)
class GroundBlock:
    """The triangles of a rectangle of cells, and what they are called in the whole ground."""

    mesh: Mesh
    row: int  #: of its first cell
    column: int
    columns: int  #: of cells of the whole ground
    cells: np.ndarray  #: (k,) cells that have ground, counted within the rectangle row by row
    width: int  #: columns of cells of the rectangle

    def face_numbers(self, faces: np.ndarray) -> np.ndarray:
        """Triangles of the mesh as numbers in the ground: 2 (i columns + j) for T0 of cell (i, j), one more for T1."""
        part, at = np.divmod(np.asarray(faces, np.int64), len(self.cells))
        i, j = np.divmod(self.cells[at], self.width)
        return 2 * ((i + self.row) * self.columns + j + self.column) + part

    def face_number(self, face: int) -> int:
        """The same of one triangle, in plain numbers."""
        part, at = divmod(face, len(self.cells))
        i, j = divmod(int(self.cells[at]), self.width)
        return 2 * ((i + self.row) * self.columns + j + self.column) + part

    def vertex_numbers(self, vertices: np.ndarray) -> np.ndarray:
        """Vertices of the mesh as numbers in the ground: i (columns + 1) + j."""
        i, j = np.divmod(np.asarray(vertices, np.int64), self.width + 1)
        return (i + self.row) * (self.columns + 1) + j + self.column

    def edge_numbers(self, edges: np.ndarray) -> np.ndarray:
        """Edges of the mesh as numbers in the ground: 3 v, 3 v + 1 for the edge along x, along y at vertex v, 3 v + 2
        for the diagonal of the cell that begins there."""
        first, last = self.mesh.topology.edges[edges].T.astype(np.int64)
        step = last - first
        family = np.where(step == 1, 0, np.where(step == self.width + 1, 1, 2))
        return 3 * self.vertex_numbers(np.where(family == 2, first - 1, first)) + family


class GroundBlocks:
    """The blocks of one ground: `GroundBlocks.of(field)`."""

    def __init__(self, field: Heightfield | TiledHeightfield) -> None:
        self._heights, self._holes = field.heights, field.holes
        self._shape, self._spacing, self._origin, self._name = field.shape, field.spacing, field.origin, field.name
        in_memory = isinstance(field, Heightfield)
        relief = Relief.of(field.heights, field.holes, field.flatness, field.name) if in_memory else field.relief
        rows, columns = ((cells + _SQUARE - 1) // _SQUARE for cells in field.shape)
        ground = relief.ground[:rows, :columns]
        #: (rows, columns) of squares: which have a cell without ground
        self.with_gaps = ~np.isfinite(relief.bend[:rows, :columns])
        first = np.stack(np.meshgrid(np.arange(columns), np.arange(rows)), axis=-1).reshape(-1, 2) * float(_SQUARE)
        last = np.minimum(first + _SQUARE, field.shape[::-1])
        #: (squares, 2, 3) boxes around the ground of each square, lower and upper corners [m]; inf to -inf without any
        self.bounds = np.empty((rows * columns, 2, 3))
        self.bounds[:, 0, :2], self.bounds[:, 1, :2] = first * field.spacing, last * field.spacing
        self.bounds[:, :, 2] = ground.reshape(-1, 2)
        self.bounds += np.asarray(field.origin)
        finite = np.isfinite(self.bounds)
        self.has_ground = bool(finite.all(axis=(1, 2)).any())  #: whether it is not all holes
        self.largest = float(np.abs(self.bounds[finite]).max(initial=0.0))  #: the largest coordinate [m]
        self.highest = float(self.bounds[:, 1, 2].max())  #: no ground is higher; -inf without any [m]
        self._squares, self._rows = columns, rows
        self._kept: OrderedDict[tuple[int, ...], GroundBlock] = OrderedDict()
        self._keeping = threading.Lock()

    @staticmethod
    def of(field: Heightfield | TiledHeightfield) -> GroundBlocks:
        """The blocks of `field`, kept in `field.cache`."""
        blocks: Any = field.cache.get(GroundBlocks)
        return blocks or field.cache.setdefault(GroundBlocks, GroundBlocks(field))

    def is_below(self, height: float) -> bool:
        """Whether all ground is certainly below a height [m]."""
        return height > self.highest + 1e-12 * self.largest

    def near(self, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        """Squares with ground in one of the boxes, (…, 3) lower and upper corners [m], by rising number."""
        lower, upper = np.reshape(lower, (-1, 3)), np.reshape(upper, (-1, 3))
        grown = 1e-9 * self.largest
        first, last = self.bounds[:, 0], self.bounds[:, 1]
        inside = (first <= upper.max(axis=0) + grown) & (last >= lower.min(axis=0) - grown)
        found = np.flatnonzero(inside.all(axis=1))
        if len(lower) == 1:
            return found
        met = (first[found, None] <= upper + grown) & (last[found, None] >= lower - grown)
        return found[met.all(axis=2).any(axis=1)]

    def near_balls(self, balls: np.ndarray, reach: float, *, above: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Which squares with ground may come within `reach` of which balls: numbers of both, balls rising.

        Args:
            balls: centres and radii, (n, 4) [m].
            above: also what is anywhere above the lowest point of a ball.
        """
        grown = 1e-9 * self.largest
        radius, size = balls[:, 3] + reach + grown, float(_SQUARE) * np.asarray(self._spacing)
        middle, most = balls[:, :2] - np.asarray(self._origin[:2]), np.array([self._squares, self._rows]) - 1
        first, last = (
            np.clip(np.floor((middle + side * radius[:, None]) / size), -1, most + 1).astype(np.int64)
            for side in (-1.0, 1.0)
        )
        first, last = np.maximum(first, 0), np.minimum(last, most)
        wide, deep = np.maximum(last - first + 1, 0).T
        many = wide * deep
        ball = np.repeat(np.arange(len(balls)), many)
        place = np.arange(len(ball)) - np.repeat(np.cumsum(many) - many, many)
        row, column = np.divmod(place, np.maximum(wide[ball], 1))
        square = (first[ball, 1] + row) * self._squares + first[ball, 0] + column
        low, high = self.bounds[square, 0, 2], self.bounds[square, 1, 2]
        kept = high >= (balls[:, 2] - radius)[ball]  # -inf of squares without ground
        if not above:
            kept &= low <= (balls[:, 2] + radius)[ball]
        return ball[kept], square[kept]

    def blocks(self, squares: np.ndarray) -> list[GroundBlock]:
        """Squares with ground, each by itself."""
        return [self.block(square) for square in squares.tolist()]

    def block(self, square: int) -> GroundBlock:
        """A square with ground."""
        row, column = divmod(square, self._squares)
        return self._rectangle(row, column, row + 1, column + 1)

    def around(self, squares: np.ndarray) -> GroundBlock:
        """The rectangle that holds some squares with ground, as one."""
        rows, columns = np.divmod(squares, self._squares)
        return self._rectangle(int(rows.min()), int(columns.min()), int(rows.max()) + 1, int(columns.max()) + 1)

    def _rectangle(self, *squares: int) -> GroundBlock:
        """The block between rows and columns of squares, first ones and those after the last."""
        with self._keeping:
            block = self._kept.get(squares)
        if block is None:
            block = self._made(*(_SQUARE * place for place in squares))
        with self._keeping:
            block = self._kept.setdefault(squares, block)  # another thread may have been quicker
            self._kept.move_to_end(squares)
            if len(self._kept) > KEPT_BLOCKS:
                self._kept.popitem(last=False)
        return block

    def _made(self, row: int, column: int, last_row: int, last_column: int) -> GroundBlock:
        last_row, last_column = min(last_row, self._shape[0]), min(last_column, self._shape[1])
        rows, columns = last_row - row, last_column - column
        ground = np.ones((rows, columns), bool)
        if self._holes is not None:
            ground = ~np.asarray(self._holes[row:last_row, column:last_column])
        i, j = np.meshgrid(np.arange(row, last_row + 1), np.arange(column, last_column + 1), indexing="ij")
        z = np.asarray(self._heights[row : last_row + 1, column : last_column + 1], np.float64)
        vertices = np.stack([j * self._spacing[0], i * self._spacing[1], z], axis=-1) + np.array(self._origin)
        number = np.arange(i.size, dtype=np.int32).reshape(i.shape)
        v0, v1, v2, v3 = number[:-1, :-1], number[:-1, 1:], number[1:, :-1], number[1:, 1:]
        faces = np.concatenate([np.stack(corners, axis=-1)[ground] for corners in ((v0, v1, v2), (v3, v2, v1))])
        mesh = Mesh(vertices.reshape(-1, 3), faces, name=self._name)
        return GroundBlock(mesh, row, column, self._shape[1], np.flatnonzero(ground), columns)
