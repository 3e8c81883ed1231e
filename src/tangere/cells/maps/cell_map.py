"""A partitioned plane, surface or volume: a combinatorial map whose cells split and merge.

Question: which cells are there, who is next to whom, and how fine is each?
Method:   an implicit multiresolution map (only the finest links are stored, labels find the coarser ones), in flat
          arrays that kernels share. Cells are numbered for life; a split cell keeps its record and gets children.
Sound:    topology that breaks a law is refused with the dart and the law; a merge undoes a split.
Walls:    an edge (2-maps) or face (3-maps) is a wall if it was blocked itself or if a cell beside it is an obstacle. A
          split hands both on to the parts. Cells merge only if no wall or obstacle would be lost: all are obstacles or
          none is, nothing blocked is between them, and the parts of each side are blocked or open together.
Known as: combinatorial maps (Damiand and Lienhardt 2014), implicit multiresolution maps (Pitiot 2015, sections 3.1 and
          3.2).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import warp as wp

from tangere.cells.index_checks import checked_index, checked_indices
from tangere.cells.maps import construction
from tangere.cells.maps.arrays import LEVEL_LIMIT, OWN_WALL, WALL, MapArrays, grown
from tangere.cells.maps.centres import compute_centres
from tangere.cells.maps.convexity import all_convex
from tangere.cells.maps.rings import Rings, compute_rings
from tangere.cells.maps.visibility import recentre_cells
from tangere.runtime import Arrays, InputError, choose_device, to_numpy

_DART_INTS = ("phi1", "phi_1", "phi2", "phi3", "origin", "cell", "tag", "link", "back", "free_darts")
_CELL_INTS = ("cell_level", "parent", "first_child", "sibling", "anchor", "obstacle", "inverted", "free_cells")
_RING_WIDTH = {2: 16, 3: 48}
_EMPTY = {"cell_level": -1, "tag": -1}
#: The least size of an edge, as a part of the largest coordinate: 4096 roundings.
_FINEST = 2.0**-40


class CellMap:
    """Cells and their neighbours; made by `from_polygons`, `from_polyhedra` or in `tangere.cells.generate`.

    Positions are always (n, 3); a planar map has z = 0.
    """

    def __init__(self, links: construction.Links, dimension: int, device: wp.Device) -> None:
        darts, vertices = len(links.phi1), len(links.positions)
        cells = int(links.cell.max()) + 1
        self.device = device
        self.dimension = dimension  #: 2: cells are faces, 3: cells are volumes
        self._planar = dimension == 2 and not np.any(links.positions[:, 2])
        self.flat = self._planar  #: a 2-map in the plane z = 0
        self.version = 0  #: counts splits, merges, moves and blocks
        #: The versions of the last merge, and of the last one that a split came after.
        self.merge_version = self.reuse_version = 0
        self.move_version = 0  #: the version that last moved vertices
        first = np.unique(links.cell, return_index=True)[1]
        if len(first) < cells:
            raise InputError(f"cells: cell {np.setdiff1d(np.arange(cells), links.cell)[0]} has no face")
        link, back = _chains(links.cell)
        columns = {
            **{name: getattr(links, name) for name in ("phi1", "phi_1", "phi2", "phi3", "origin", "cell")},
            **{"tag": np.zeros(darts, np.int32), "link": link, "back": back, "free_darts": np.zeros(darts, np.int32)},
            "cell_level": np.zeros(cells, np.int32),
            **{name: np.full(cells, -1, np.int32) for name in ("parent", "first_child", "sibling")},
            "anchor": first.astype(np.int32),
            **{name: np.zeros(cells, np.int32) for name in ("obstacle", "inverted", "free_cells")},
            "free_vertices": np.zeros(vertices, np.int32),
            "counts": np.array([darts, 0, vertices, 0, cells, 0], np.int32),
        }
        m = MapArrays()
        m.dimension = dimension
        for name, values in columns.items():
            setattr(m, name, wp.array(values, dtype=wp.int32, device=device))
        m.position = wp.array(links.positions, dtype=wp.vec3d, device=device)
        m.centre = wp.zeros(cells, dtype=wp.vec3d, device=device)
        m.face_centre = wp.zeros(darts if dimension == 3 else 1, dtype=wp.vec3d, device=device)
        self.arrays: MapArrays = m
        self._rings: Rings | None = None
        self.operations: object = None  #: what splits and merges keep from one to the next
        self._views: dict[str, tuple[wp.array, np.ndarray]] = {}
        self._convex: tuple[int, bool] = (-1, False)
        compute_centres(m, device)
        _refuse_not_star_shaped(recentre_cells(self), self)
        self.level_limit = self._finest_level()  #: cells of this level cannot be split

    @classmethod
    def from_polygons(cls, vertices: Arrays, polygons: object, *, device: str | wp.Device | None = None) -> CellMap:
        """The 2-map of polygons that run counter-clockwise (seen from the side that counts as above).

        Args:
            vertices: (n, 2) for a map of the plane, (n, 3) for a surface [m].
            polygons: (m, k) array of vertex numbers, or a sequence of polygons of any sizes.
        """
        positions = _positions(vertices, (2, 3))
        half = construction.half_faces_of_polygons(polygons)
        return cls(construction.link_polygons(half, positions), 2, choose_device(device))

    @classmethod
    def from_polyhedra(cls, vertices: Arrays, cells: object, *, device: str | wp.Device | None = None) -> CellMap:
        """The 3-map of polyhedra whose faces run counter-clockwise seen from outside.

        Args:
            vertices: (n, 3) [m].
            cells: (m, 4 | 5 | 6 | 8) array of tetrahedra, pyramids, wedges or hexahedra in VTK order, or a sequence of
                cells, each of them such a row or a sequence of faces.
        """
        positions = _positions(vertices, (3,))
        half = construction.half_faces_of_polyhedra(cells)
        return cls(construction.link_polyhedra(half, positions), 3, choose_device(device))

    def __repr__(self) -> str:
        kind = {2: "faces", 3: "volumes"}[self.dimension]
        return f"CellMap({len(self.leaves)} {kind}, {self.dart_count} darts, levels 0-{self.levels.max()})"

    @property
    def dart_count(self) -> int:
        """How many darts are alive."""
        counts = self.arrays.counts.numpy()
        return int(counts[0] - counts[1])

    @property
    def vertex_count(self) -> int:
        """How many vertices are alive."""
        counts = self.arrays.counts.numpy()
        return int(counts[2] - counts[3])

    @property
    def cell_capacity(self) -> int:
        """Cell numbers are below this."""
        return len(self.arrays.cell_level)

    @property
    def darts(self) -> np.ndarray:
        """The numbers of all live darts."""
        return np.flatnonzero(self.host("tag")[: self._used(0)] >= 0)

    @property
    def leaves(self) -> np.ndarray:
        """The numbers of all cells that are not split."""
        return np.flatnonzero((self.levels >= 0) & (self.host("first_child") < 0))

    @property
    def levels(self) -> np.ndarray:
        """The level of each cell number; -1 where there is no such cell."""
        return self.host("cell_level")

    @property
    def positions(self) -> np.ndarray:
        """(v, 3) where the vertices are [m]; rows of vertices that are gone are meaningless."""
        return self.host("position")[: self._used(2)]

    @property
    def rings(self) -> Rings:
        """The one-ring of every leaf."""
        if self._rings is None:
            self._rings = compute_rings(self.arrays, _RING_WIDTH[self.dimension], self.device)
        return self._rings

    @rings.setter
    def rings(self, rings: Rings) -> None:
        self._rings = rings

    @property
    def inverted_cells(self) -> np.ndarray:
        """The leaves that the last move bent so much that no point sees the whole of them, as where tissue is crushed.

        Where in such a cell a point is cannot be told from its place: points that are carried along stay with their
        simplex, and segments are followed up to it from both ends. It cannot be split.
        """
        return np.flatnonzero((self.host("inverted") == 1) & (self.levels >= 0) & (self.host("first_child") < 0))

    @property
    def is_surface(self) -> bool:
        """Whether the map is a surface in space that is not in the plane z = 0."""
        return self.dimension == 2 and not self.flat

    @property
    def has_convex_cells(self) -> bool:
        """Whether every leaf is convex."""
        if self._convex[0] != self.version:
            self._convex = self.version, all_convex(self)
        return self._convex[1]

    def update_convexity(self, changed: bool) -> None:
        """After one version more: if every leaf was convex before, they are if those are that changed."""
        if self._convex == (self.version - 1, True):
            self._convex = self.version, changed

    def host(self, name: str) -> np.ndarray:
        """One of the arrays in `arrays` in main memory, with its room: a view on CPU, a copy on CUDA."""
        array = getattr(self.arrays, name)
        if not self.device.is_cpu:
            return array.numpy()
        known = self._views.get(name)
        if known is None or known[0] is not array:
            known = self._views[name] = array, array.numpy()
        return known[1]

    def numpy(self, name: str) -> np.ndarray:
        """A copy of one of the arrays in `arrays`, as far as it is in use."""
        array = self.host(name)
        if name in _DART_INTS or name == "face_centre":
            return array[: self._used(0)].copy()
        return array[: self._used(2 if name in ("position", "free_vertices") else 4)].copy()

    def edge_ends(self, darts: np.ndarray) -> np.ndarray:
        """(2, n, 3) where the edges of darts begin and where they end [m]."""
        origin = self.numpy("origin")
        return self.positions[np.stack([origin[darts], origin[self.numpy("phi1")[darts]]])]

    def children(self, cell: int) -> list[int]:
        """The cells that `cell` was split into, in the order of its corners; empty for a leaf."""
        cell = checked_index(cell, "cell", self.cell_capacity, "cells")
        sibling, found = self.arrays.sibling.numpy(), []
        child = int(self.arrays.first_child.numpy()[cell])
        while child >= 0:
            found.append(child)
            child = int(sibling[child])
        return found

    def children_of(self, cells: np.ndarray) -> np.ndarray:
        """The cells that any of `cells` were split into, in no particular order."""
        sibling, found = self.host("sibling"), [np.empty(0, np.int64)]
        child = self.host("first_child")[cells]
        while len(child := child[child >= 0]):
            found.append(child)
            child = sibling[child]
        return np.concatenate(found)

    def move(self, vertices: Arrays) -> None:
        """Put every vertex at a new place, (v, 3) as in `positions`; the cells' centres follow.

        Cells that are bent so much that they are not star-shaped any more are marked, see `inverted_cells`, until a
        later move gets them right again. A map that was made in the plane is flat whenever all of it is at z = 0.
        """
        there = to_numpy(vertices, "vertices")
        if there.shape != (self._used(2), 3):
            raise InputError(f"vertices must have shape {(self._used(2), 3)}, not {there.shape}")
        if not np.isfinite(there).all():
            raise InputError(f"vertices: vertex {np.argwhere(~np.isfinite(there))[0, 0]} is not finite")
        place = self.arrays.position.numpy().copy()
        place[: len(there)] = there
        self._set_positions(place, self._planar and not np.any(there[np.unique(self.numpy("origin")[self.darts]), 2]))
        inverted = np.zeros(self.cell_capacity, np.int32)
        inverted[recentre_cells(self)] = 1
        self.arrays.inverted.assign(inverted)
        self.move_version = self.version
        self.level_limit = self._finest_level()

    def block(self, kind: Literal["cell", "dart"], numbers: Arrays, *, blocked: bool = True) -> None:
        """Mark cells as obstacles, or the edges (2-maps) or faces (3-maps) of darts as walls, from both sides.

        A cell that is split stands for all leaves below it. What stays a wall when something is freed: what was blocked
        itself, and the sides of cells that still are obstacles.
        """
        across = self.numpy("phi3" if self.dimension == 3 else "phi2")
        words, obstacle, cell = self.numpy("tag"), self.arrays.obstacle.numpy().copy(), self.numpy("cell")
        if kind == "cell":
            chosen = self.leaves_below(numbers, "numbers")
            obstacle[chosen] = int(blocked)
            self.arrays.obstacle.assign(obstacle)
            darts = self.darts
            darts = darts[np.isin(cell[darts], chosen)]
        elif kind == "dart":
            darts = checked_indices(numbers, "numbers", len(words), "darts")
            if (words[darts] < 0).any():
                raise InputError(f"numbers: dart {darts[words[darts] < 0][0]} is gone: its cell was merged")
            darts = self.face_darts(darts) if self.dimension == 3 else darts
        else:
            raise InputError(f"kind is 'cell' or 'dart', not {kind!r}")
        darts = np.unique(np.concatenate([darts, across[darts][across[darts] >= 0]]))
        if kind == "dart":
            words[darts] = words[darts] | OWN_WALL if blocked else words[darts] & ~OWN_WALL
        beside = (across[darts] >= 0) & (obstacle[cell[across[darts]]] != 0)
        closed = beside | (obstacle[cell[darts]] != 0) | (words[darts] & OWN_WALL != 0)
        words[darts] = np.where(closed, words[darts] | WALL, words[darts] & ~WALL)
        self.arrays.tag[: len(words)].assign(words)
        known, self.version = self._convex, self.version + 1
        if known[0] == self.version - 1:
            self._convex = self.version, known[1]

    def face_darts(self, darts: np.ndarray) -> np.ndarray:
        """All darts of the faces of `darts`, on their side."""
        phi1, found = self.numpy("phi1"), [np.asarray(darts)]
        turning = phi1[found[0]]
        while (turning != found[0]).any():
            found.append(turning)
            turning = np.where(turning != found[0], phi1[turning], turning)
        return np.unique(np.concatenate(found))

    def reserve(self, darts: int, vertices: int, cells: int) -> None:
        """Make room for so many more darts, vertices and cells."""
        m, counts = self.arrays, self.host("counts")
        wanted = {
            0: (darts, len(m.phi1), (*_DART_INTS, "face_centre")),
            2: (vertices, len(m.position), ("position", "free_vertices")),
            4: (cells, len(m.cell_level), (*_CELL_INTS, "centre")),
        }
        for place, (more, capacity, names) in wanted.items():
            if counts[place] + more <= capacity:
                continue
            room = max(int(counts[place]) + more, capacity + capacity // 2)
            for name in names:
                if name != "face_centre" or self.dimension == 3:
                    setattr(m, name, grown(getattr(m, name), room, _EMPTY.get(name, 0)))
            if place == 4 and self._rings is not None:
                table = self._rings.table
                table.size = grown(table.size, room, 0)
                table.cells = grown(table.cells, room * table.width, -1)

    @property
    def bytes(self) -> int:
        """How large its arrays are."""
        return sum(array.capacity for array in self._all_arrays().values())

    def to_device(self, device: str | wp.Device) -> None:
        """Move all arrays to a device, and compute there from now on; registrations made before are to be made anew."""
        there = choose_device(device)
        if there != self.device:
            self._move_to(there)
            self.version += 1

    @contextmanager
    def on_host(self) -> Iterator[None]:
        """Have all arrays in the host's memory for a while: what is done one by one is quicker there."""
        home = self.device
        self._move_to(wp.get_device("cpu"))
        try:
            yield
        finally:
            self._move_to(home)

    def _move_to(self, device: wp.Device) -> None:
        for name, array in self._all_arrays().items():
            setattr(self.arrays, name, array.to(device))
        if self._rings is not None:
            table = self._rings.table
            table.cells, table.size = table.cells.to(device), table.size.to(device)
        self.device = device

    def _all_arrays(self) -> dict[str, wp.array]:
        names = (*_DART_INTS, *_CELL_INTS, "face_centre", "position", "centre", "free_vertices", "counts")
        return {name: getattr(self.arrays, name) for name in names}

    def snapshot(self) -> dict[str, Any]:
        """All that a split or merge changes, to be given to `restore`."""
        return {name: wp.clone(array) for name, array in self._all_arrays().items()}

    def restore(self, before: dict[str, Any]) -> None:
        """Make the map what it was when it was copied; the version goes on."""
        for name, array in before.items():
            setattr(self.arrays, name, array)
        self._rings = None
        self.version += 1

    def leaves_below(self, cells: Arrays, name: str = "cells") -> np.ndarray:
        """The leaves among cells, and those below the others, sorted.

        Args:
            name: what to call the cells in an error.
        """
        chosen = checked_indices(cells, name, self.cell_capacity, "cells")
        levels, child, parent = self.levels, self.arrays.first_child.numpy(), self.arrays.parent.numpy()
        if (levels[chosen] < 0).any():
            raise InputError(f"{name}: there is no cell {chosen[levels[chosen] < 0][0]}")
        below, found = np.unique(chosen), []
        while len(below):
            found.append(below[child[below] < 0])
            below = np.flatnonzero(np.isin(parent, below[child[below] >= 0]) & (levels >= 0))
        return np.sort(np.concatenate([np.empty(0, np.int64), *found]))

    def _finest_level(self) -> int:
        """The finest level whose cells are still large enough for double precision where the map is."""
        darts, cell = self.darts, self.numpy("cell")
        ends = self.edge_ends(darts)
        # As if every edge were that of a level-0 cell.
        least = (np.linalg.norm(ends[1] - ends[0], axis=1) * 2.0 ** self.levels[cell[darts]]).min()
        with np.errstate(divide="ignore"):  # an edge of a surface may have no length
            return int(np.clip(np.floor(np.log2(least / (_FINEST * np.abs(ends).max()))), 0, LEVEL_LIMIT))

    def _set_positions(self, positions: np.ndarray, flat: bool) -> None:
        self.arrays.position.assign(positions)
        self.flat = flat
        compute_centres(self.arrays, self.device)
        self.version += 1

    def _used(self, counter: int) -> int:
        return int(self.host("counts")[counter])


def _refuse_not_star_shaped(cells: np.ndarray, map: CellMap) -> None:
    if len(cells):
        dart = map.darts[map.numpy("cell")[map.darts] == cells[0]][0]
        reason = "a cell is star-shaped, its faces counter-clockwise: every simplex has a positive size"
        raise InputError(f"cell {cells[0]} (dart {dart}) breaks a law: {reason}")


def _positions(vertices: Arrays, widths: tuple[int, ...]) -> np.ndarray:
    array = to_numpy(vertices, "vertices")
    if array.ndim != 2 or array.shape[1] not in widths:
        raise InputError(f"vertices must have shape (n, {' or '.join(map(str, widths))}), not {array.shape}")
    if not np.isfinite(array).all():
        raise InputError(f"vertices: vertex {np.argwhere(~np.isfinite(array))[0, 0]} is not finite")
    return np.concatenate([array, np.zeros((len(array), 3 - array.shape[1]))], axis=1)


def _chains(cell: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Doubly linked lists of the darts of each cell, in rising order."""
    order = np.argsort(cell, kind="stable")
    same = cell[order][1:] == cell[order][:-1]
    link, back = np.full(len(cell), -1, np.int32), np.full(len(cell), -1, np.int32)
    link[order[:-1][same]], back[order[1:][same]] = order[1:][same], order[:-1][same]
    return link, back
