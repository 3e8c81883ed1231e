"""The vertical walls of ground: where it ends, at its border and around holes, it is solid all the way down.

Question: which walls may be near a box, as meshes for which queries keep trees?
Method:   a wall stands on each side of a cell with ground beyond which there is none; it begins at that side, and has
          no end. Walls of a square of 32 x 32 cells are a mesh from the surface, or from a height below it, down to a
          depth: whole steps that hold the heights asked about, so that a mesh serves many questions.
Sound:    a vertical wall is nearest at heights that a body has, or at its upper rim: what is cut off does not matter.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tangere.broad_phase.ground.blocks import KEPT_BLOCKS, GroundBlocks
from tangere.shape.heightfield import SQUARE, Heightfield, TiledHeightfield
from tangere.shape.mesh import Mesh

_SQUARE = int(SQUARE)
#: Part of a step of heights that a mesh reaches beyond the heights asked about, at least.
_BEYOND = 1e-3


@dataclass(frozen=True, eq=False)
class WallBlock:
    """Walls of a square of ground, and what they are called in the whole ground: by what they hang from."""

    mesh: Mesh
    sides: np.ndarray  #: (k, 2) vertices of the ground between which a wall stands
    faces: np.ndarray  #: (k,) the faces of the ground that end there
    vertices: np.ndarray  #: (v,) vertices of the ground over those of the mesh: the upper ones, then the lower ones
    columns: int  #: of vertices of the whole ground

    def face_numbers(self, faces: np.ndarray) -> np.ndarray:
        """Triangles of the mesh as the faces of the ground that end there."""
        return self.faces[np.asarray(faces, np.int64) % len(self.faces)]

    def vertex_numbers(self, vertices: np.ndarray) -> np.ndarray:
        """Vertices of the mesh as the vertices of the ground over them."""
        return self.vertices[np.asarray(vertices, np.int64)]

    def edge_numbers(self, edges: np.ndarray) -> np.ndarray:
        """Edges of the mesh as the edge of the ground over them; a vertical one as an edge that ends over it."""
        ends = self.vertices[self.mesh.topology.edges[edges]].astype(np.int64)
        ends = np.sort(np.where(ends[:, :1] == ends[:, 1:], self._side_at(ends[:, 0]), ends), axis=1)
        return 3 * ends[:, 0] + (ends[:, 1] - ends[:, 0] > 1)

    def _side_at(self, vertices: np.ndarray) -> np.ndarray:
        """(n, 2) of each vertex the first side that ends there."""
        at = (self.sides[None] == vertices[:, None, None]).any(axis=2)
        return self.sides[np.argmax(at, axis=1)]


@dataclass(frozen=True, eq=False)
class WalledSides:
    """The sides of cells of one square on which walls stand."""

    ends: np.ndarray  #: (k, 2) vertices of the ground, in the order in which the wall faces out
    faces: np.ndarray  #: (k,) the face of the ground that each belongs to
    tops: np.ndarray  #: (k, 2, 3) the ends [m]
    boxes: np.ndarray  #: (k, 2, 3) around the walls, which have no lower end [m]
    lowest: float  #: of the upper rims [m]
    highest: float

    @staticmethod
    def of(ends: np.ndarray, faces: np.ndarray, tops: np.ndarray) -> WalledSides:
        """The sides with these ends, faces and places."""
        boxes = np.stack([tops.min(axis=1), tops.max(axis=1)], axis=1)
        boxes[:, 0, 2] = -np.inf
        return WalledSides(ends, faces, tops, boxes, float(tops[..., 2].min()), float(tops[..., 2].max()))


class GroundWalls:
    """The walls of one ground: `GroundWalls.of(field)`."""

    def __init__(self, field: Heightfield | TiledHeightfield) -> None:
        self._field = field
        rows, columns = field.shape
        self._size = field.spacing[0] * _SQUARE, field.spacing[1] * _SQUARE
        self._first = float(field.origin[0]), float(field.origin[1])
        self._last = self._first[0] + columns * field.spacing[0], self._first[1] + rows * field.spacing[1]
        self._kept: OrderedDict[tuple[int, int, int], WallBlock] = OrderedDict()
        self._sides: dict[int, WalledSides | None] = {}
        self._keeping = threading.Lock()
        self._squares: np.ndarray | None = None
        self._boxes: tuple[np.ndarray, np.ndarray] | None = None

    @staticmethod
    def of(field: Heightfield | TiledHeightfield) -> GroundWalls:
        """The walls of `field`, kept in `field.cache`."""
        walls: Any = field.cache.get(GroundWalls)
        return walls or field.cache.setdefault(GroundWalls, GroundWalls(field))

    def may_meet_box(self, x: float, y: float, last_x: float, last_y: float) -> bool:
        """Whether a box, at any height, may reach a wall: quick, for one body that as a rule does not."""
        (x0, y0), (x1, y1) = self._first, self._last
        if last_x < x0 or last_y < y0 or x > x1 or y > y1:
            return False
        if not (x > x0 and y > y0 and last_x < x1 and last_y < y1):
            return True
        return self._field.holes is not None and bool(self._window(x, y, last_x, last_y).any())

    def near_ball(self, x: float, y: float, z: float, radius: float) -> list[int]:
        """The squares of which one ball meets a wall, by rising number; quick where it is far from any."""
        radius *= 1.0 + 1e-9
        if not self.may_meet_box(x - radius, y - radius, x + radius, y + radius):
            return []
        radius += 1e-9 * GroundBlocks.of(self._field).largest
        found, centre = [], np.array([x, y, z])
        corners = x - radius, y - radius, x + radius, y + radius
        for row, column in np.argwhere(self._window(*corners)).tolist():
            number = self._square_at(row, column, *corners)
            sides = self._sides_of(number)
            if sides is not None:
                apart = np.maximum(np.maximum(sides.boxes[:, 0] - centre, centre - sides.boxes[:, 1]), 0.0)
                if np.einsum("ij,ij->i", apart, apart).min() <= radius * radius:
                    found.append(number)
        return found

    def _first_square(self, x: float, y: float) -> tuple[int, int]:
        """The row and column of the square at a place, or the nearest one."""
        row, column = int((y - self._first[1]) // self._size[1]), int((x - self._first[0]) // self._size[0])
        return max(row, 0), max(column, 0)

    def _window(self, x: float, y: float, last_x: float, last_y: float) -> np.ndarray:
        """Which squares that a box overlaps may have walls."""
        (row, column), (last_row, last_column) = self._first_square(x, y), self._first_square(last_x, last_y)
        return self._with_walls[row : last_row + 1, column : last_column + 1]

    def _square_at(self, row: int, column: int, x: float, y: float, *_: float) -> int:
        """The number of a square of a window."""
        first_row, first_column = self._first_square(x, y)
        return (first_row + row) * self._with_walls.shape[1] + first_column + column

    def near_balls(self, centres: np.ndarray, radii: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which balls meet a wall of which squares: numbers of both, squares rising, then balls."""
        blocks = GroundBlocks.of(self._field)
        radii = radii * (1.0 + 1e-9) + 1e-9 * blocks.largest
        middle, last, around = centres[:, :2] - self._first, np.subtract(self._last, self._first), radii[:, None]
        rows = ((middle + around >= 0.0) & (middle - around <= last)).all(axis=1)
        if self._field.holes is None:
            rows &= ~((middle - around > 0.0) & (middle + around < last)).all(axis=1)
        rows = np.flatnonzero(rows)
        ball, square = blocks.near_balls(np.column_stack([centres[rows], radii[rows]]), 0.0, above=True)
        kept = self._with_walls.reshape(-1)[square]
        ball, square = rows[ball[kept]], square[kept]
        order = np.lexsort((ball, square))
        ball, square = ball[order], square[order]
        met = np.zeros(len(ball), bool)
        for number in np.unique(square).tolist():
            first, after = np.searchsorted(square, [number, number + 1])
            sides = self._sides_of(number)
            if sides is None:
                continue
            centre, some = centres[ball[first:after], None], slice(first, after)
            low, high = sides.boxes[:, 0], sides.boxes[:, 1]
            apart = np.maximum(np.maximum(low[:, :2] - centre[..., :2], centre[..., :2] - high[:, :2]), 0.0)
            above = np.maximum(centre[..., 2] - high[:, 2], 0.0)
            met[some] = (np.hypot(np.hypot(apart[..., 0], apart[..., 1]), above) <= radii[ball[some], None]).any(axis=1)
        return ball[met], square[met]

    def near(self, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        """Squares with a wall in one of the boxes, (…, 3) lower and upper corners [m], by rising number."""
        lower, upper = np.reshape(lower, (-1, 3)), np.reshape(upper, (-1, 3))
        blocks = GroundBlocks.of(self._field)
        grown = 1e-9 * blocks.largest
        lower, upper = lower - grown, upper + grown
        squares, boxes = self.boxes()
        met = (boxes[:, 0] <= upper.max(axis=0)).all(axis=1) & (boxes[:, 1] >= lower.min(axis=0)).all(axis=1)
        kept = [square for square in squares[met].tolist() if self._is_met(square, lower, upper)]
        return np.array(kept, np.int64)

    def boxes(self) -> tuple[np.ndarray, np.ndarray]:
        """Squares that may have walls, and (k, 2, 3) boxes around these: without a lower end [m]; kept."""
        if self._boxes is None:
            squares = np.flatnonzero(self._with_walls.reshape(-1))
            boxes = GroundBlocks.of(self._field).bounds[squares]
            boxes[:, 0, 2] = -np.inf
            self._boxes = squares, boxes
        return self._boxes

    def blocks(self, squares: np.ndarray, low: float, high: float) -> list[WallBlock]:
        """The walls of squares that have some, for bodies between two heights [m]."""
        return [block for square in squares.tolist() for block in self.block(square, low, high)]

    def block(self, square: int, low: float, high: float) -> Sequence[WallBlock]:
        """The walls of a square for bodies between two heights [m], one mesh; none where it has no walls."""
        sides = self._sides_of(square)
        if sides is None:
            return ()
        lowest = sides.lowest
        step = max(sides.highest - lowest, *self._size)
        below = max(math.ceil((lowest - low) / step + _BEYOND), 1)
        above = max(math.floor((lowest - high) / step - _BEYOND), 0)
        key = square, above, below
        with self._keeping:
            block = self._kept.get(key)
        if block is None:
            block = self._made(sides, lowest - step * above if above else math.inf, lowest - step * below)
        with self._keeping:
            block = self._kept.setdefault(key, block)  # another thread may have been quicker
            self._kept.move_to_end(key)
            if len(self._kept) > KEPT_BLOCKS:
                self._kept.popitem(last=False)
        return (block,)

    def _is_met(self, square: int, lower: np.ndarray, upper: np.ndarray) -> bool:
        """Whether a wall of a square is in one of the boxes."""
        sides = self._sides_of(square)
        if sides is None:
            return False
        first, last = sides.boxes[:, 0, None], sides.boxes[:, 1, None]
        return bool(((first[..., :2] <= upper[:, :2]).all(axis=2) & (last >= lower).all(axis=2)).any())

    @property
    def _with_walls(self) -> np.ndarray:
        """(r, c) bool: squares that may have walls, because they or their neighbours have a cell without ground."""
        if self._squares is None:
            blocks, field = GroundBlocks.of(self._field), self._field
            rows, columns = ((cells + _SQUARE - 1) // _SQUARE for cells in field.shape)
            gaps = np.zeros((rows + 2, columns + 2), bool)
            gaps[[0, -1]] = gaps[:, [0, -1]] = True
            gaps[1:-1, 1:-1] = blocks.with_gaps
            near = [gaps[i : i + rows, j : j + columns] for i in range(3) for j in range(3)]
            squares = np.logical_or.reduce(near) & np.isfinite(blocks.bounds[:, 1, 2]).reshape(rows, columns)
            self._squares = squares
        return self._squares

    def _sides_of(self, square: int) -> WalledSides | None:
        """Where walls stand in a square; kept."""
        if square not in self._sides:
            self._sides[square] = self._found_sides(square)
        return self._sides[square]

    def _found_sides(self, square: int) -> WalledSides | None:
        field = self._field
        row, column = (_SQUARE * place for place in divmod(square, (field.shape[1] + _SQUARE - 1) // _SQUARE))
        last_row, last_column = min(row + _SQUARE, field.shape[0]), min(column + _SQUARE, field.shape[1])
        ground = np.zeros((last_row - row + 2, last_column - column + 2), bool)  # and the cells around
        i0, j0 = max(row - 1, 0), max(column - 1, 0)
        i1, j1 = min(last_row + 1, field.shape[0]), min(last_column + 1, field.shape[1])
        inside = np.ones((i1 - i0, j1 - j0), bool)
        if field.holes is not None:
            inside = ~np.asarray(field.holes[i0:i1, j0:j1], bool)
        ground[i0 - row + 1 : i1 - row + 1, j0 - column + 1 : j1 - column + 1] = inside
        own, wide = ground[1:-1, 1:-1], field.shape[1] + 1
        parts = []
        # Beyond which side of a cell; the ends of that side from the cell's first vertex; its face.
        for beyond, first, last, part in (
            (ground[:-2, 1:-1], (0, 0), (0, 1), 0),
            (ground[1:-1, :-2], (1, 0), (0, 0), 0),
            (ground[2:, 1:-1], (1, 1), (1, 0), 1),
            (ground[1:-1, 2:], (0, 1), (1, 1), 1),
        ):
            i, j = np.nonzero(own & ~beyond)
            i, j = i + row, j + column
            ends = [(i + down) * wide + j + across for down, across in (first, last)]
            parts.append((np.stack(ends, axis=1), 2 * (i * field.shape[1] + j) + part))
        ends, faces = (np.concatenate([part[k] for part in parts]) for k in range(2))
        if not len(ends):
            return None
        i, j = np.divmod(ends, wide)
        window = np.asarray(field.heights[row : last_row + 1, column : last_column + 1], np.float64)
        places = np.stack([j * field.spacing[0], i * field.spacing[1], window[i - row, j - column]], axis=-1)
        return WalledSides.of(ends, faces, places + np.array(field.origin))

    def _made(self, sides: WalledSides, highest: float, lowest: float) -> WallBlock:
        """The walls between two heights, or from the surface on down."""
        own, first, which = np.unique(sides.ends, return_index=True, return_inverse=True)
        tops = sides.tops.reshape(-1, 3)[first]
        tops[:, 2] = np.minimum(tops[:, 2], highest)
        feet = tops.copy()
        feet[:, 2] = lowest
        a, b = which.reshape(-1, 2).T
        c, d = a + len(own), b + len(own)
        faces = np.concatenate([np.stack([a, c, b], axis=1), np.stack([d, b, c], axis=1)])
        mesh = Mesh(np.concatenate([tops, feet]), faces.astype(np.int32), name=self._field.name)
        return WallBlock(mesh, sides.ends, sides.faces, np.tile(own, 2), self._field.shape[1] + 1)
