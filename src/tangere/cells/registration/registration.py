"""Points, segments and triangles that know their cells, and cells that know who is present and who is near.

Question: who is in each cell and in its one-ring, while things move and cells split and merge?
Method:   every point keeps a dart and walks or marches from it. A segment is in every cell it crosses, a triangle in
          every cell its edges cross (with `fill`, its inside too). A segment whose ends stay in the one cell that holds
          it costs nothing; any other is marched again.
          Lists by a counting sort of all (form "sorted"), or only of what changed (form "incremental"); both agree.
          `near(c)` is not stored: it is who is present in the ring of c, less who is present in c.
Promise:  after every call each entity is present exactly in the cells it crosses and every dart is in the cell of its
          point. In mode "fast" a segment with both ends in one cell is said to be in that cell alone, which may miss
          neighbours where cells are not convex; they have it as near.
Spec: specs/pitiot-multiresolution-interactions 2.8 (loss of convexity), 2.11-2.15.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import warp as wp

from tangere.cells.maps.cell_map import CellMap
from tangere.cells.maps.refining import follow_heirs, merge, split
from tangere.cells.registration.advecting import carry
from tangere.cells.registration.filling import fill_triangles
from tangere.cells.registration.groups import Groups, group
from tangere.cells.registration.lists import CellLists
from tangere.cells.tracking.locate import darts_of, locate_darts, points_of
from tangere.cells.tracking.march import march_cells, move_darts
from tangere.runtime import Arrays, InputError, as_indices

__all__ = ["Registration"]

Kind = Literal["points", "segments", "triangles"]


class Registration:
    """Who is where in a map.

    Args:
        points: (n, 2) or (n, 3) [m], inside the map.
        segments, triangles: (m, 2) and (k, 3) numbers of points.
        darts: (n,) a dart of the cell of each point; None: they are looked for.
        form: how lists are kept: "sorted" anew at every change, or "incremental".
        mode: "exact" marches every segment that may have changed; "fast" trusts that cells are convex.
        fill: triangles are also present in cells that only their inside crosses.
    """

    def __init__(
        self,
        map: CellMap,
        points: Arrays,
        segments: Arrays | None = None,
        triangles: Arrays | None = None,
        *,
        darts: Arrays | None = None,
        form: Literal["sorted", "incremental"] = "sorted",
        mode: Literal["exact", "fast"] = "exact",
        fill: bool = False,
    ) -> None:
        if form not in ("sorted", "incremental") or mode not in ("exact", "fast"):
            raise InputError(f"form is 'sorted' or 'incremental', mode 'exact' or 'fast', not {form!r} and {mode!r}")
        self.map, self.form, self.mode, self.fill = map, form, mode, fill
        self._points = wp.clone(points_of(map, points, "points"))
        count = len(self._points)
        self.segments = _members(segments, "segments", 2, count)  #: (m, 2)
        self.triangles = _members(triangles, "triangles", 3, count)  #: (k, 3)
        start = None if darts is None else darts_of(map, darts, count)
        self._darts, status = locate_darts(map, self._points, start)
        outside = status.numpy() != 0
        if outside.any():
            raise InputError(f"points: point {int(np.argmax(outside))} is outside the map")
        self._edges, self._edge_of = _unique_edges(self.segments, self.triangles)
        self._rows = _Rows(len(self._edges))
        self.counters = {"points changed": 0, "edges marched": 0}  #: of the last move
        self._lists: dict[Kind, CellLists] = {}
        self._groups: dict[Kind, Groups] = {}
        self._cells = self.cells.copy()
        self._march(np.arange(len(self._edges)))
        self._refresh(None)

    def __repr__(self) -> str:
        sizes = len(self._points), len(self.segments), len(self.triangles)
        return "Registration({} points, {} segments, {} triangles; {})".format(*sizes, self.form)

    @property
    def points(self) -> np.ndarray:
        """(n, 3) where the points are [m]."""
        return self._points.numpy()

    @property
    def darts(self) -> np.ndarray:
        """(n,) the dart each point aims at; its simplex holds the point."""
        return self._darts.numpy()

    @property
    def cells(self) -> np.ndarray:
        """(n,) the cell of each point."""
        return self.map.arrays.cell.numpy()[self._darts.numpy()]

    def crossed(self, kind: Kind, number: int) -> np.ndarray:
        """The cells a segment or triangle is present in, sorted."""
        offsets, cells = self._crossing(kind, np.array([number]))
        return cells[offsets[0] : offsets[1]]

    def edge_cells(self, triangle: int) -> np.ndarray:
        """The cells that the edges of a triangle cross, sorted."""
        sides = self._edge_of[len(self.segments) :].reshape(-1, 3)[triangle]
        return np.unique(self._rows.get(sides)[1])

    def present(self, kind: Kind) -> Groups:
        """Who is in each cell."""
        if kind not in self._groups:
            self._groups[kind] = self._grouped(kind)
        return self._groups[kind]

    def near(self, kind: Kind, cell: int) -> np.ndarray:
        """Who is in the one-ring of a leaf cell but not in it, sorted."""
        groups = self.present(kind)
        start, order = groups.start.numpy(), groups.order.numpy()
        around = [order[start[b] : start[b + 1]] for b in self.map.rings.row(cell)]
        inside = order[start[cell] : start[cell + 1]]
        return np.setdiff1d(np.concatenate([np.empty(0, np.int32), *around]), inside)

    def move(self, targets: Arrays) -> np.ndarray:
        """Move all points straight to their targets; returns which were stopped by a border, wall or obstacle (n,)."""
        there = points_of(self.map, targets, "targets")
        if len(there) != len(self._points):
            raise InputError(f"targets: there are {len(there)} for {len(self._points)} points")
        darts, time, status = move_darts(self.map, self._points, there, self._darts)
        stopped = status.numpy() == 1
        place = there.numpy().copy()
        if stopped.any():
            part, before = time.numpy()[stopped, None], self.points[stopped]
            place[stopped] = before + part * (place[stopped] - before)
        self._points = wp.array(place, dtype=wp.vec3d, device=self.map.device)
        self._darts = darts
        self._after_points_moved()
        return stopped

    def split(self, cells: Arrays, *, balanced: bool = False) -> np.ndarray:
        """Split cells and keep everybody registered; returns the cells that were split."""
        before = self._soon_touched(np.asarray(cells, dtype=np.int64).reshape(-1))
        done = split(self.map, cells, balanced=balanced)
        self._after_cells_changed(np.union1d(before, done))
        return done

    def merge(self, cells: Arrays, *, balanced: bool = False) -> np.ndarray:
        """Merge the children of cells and keep everybody registered; returns the cells that were merged."""
        chosen = np.asarray(cells, dtype=np.int64).reshape(-1)
        leaves = self.map.leaves
        inside = leaves[np.isin(self.map.arrays.parent.numpy()[leaves], chosen)]
        touched = self._soon_touched(inside)
        done = merge(self.map, chosen, balanced=balanced)
        follow_heirs(self.map, self._darts)
        self._after_cells_changed(touched)
        return done

    def deform(self, vertices: Arrays, *, carried: bool = True) -> None:
        """Move the vertices of the map, (v, 3) as in `map.positions`.

        Args:
            carried: points keep their place in their simplex; otherwise they stay where they are and change cells.
        """
        if carried:
            self._points = carry(self.map, self._points, self._darts, vertices)
        else:
            self.map.move(vertices)
        self._darts = self._located()
        self._changed_everything()

    def add(self, points: Arrays, darts: Arrays | None = None) -> np.ndarray:
        """Register more points; returns their numbers."""
        more = points_of(self.map, points, "points")
        start = None if darts is None else darts_of(self.map, darts, len(more))
        aimed, status = locate_darts(self.map, more, start)
        if status.numpy().any():
            raise InputError(f"points: point {int(np.argmax(status.numpy()))} is outside the map")
        count = len(self._points)
        self._set_points(np.concatenate([self.points, more.numpy()]), np.concatenate([self.darts, aimed.numpy()]))
        return np.arange(count, count + len(more))

    def remove(self, numbers: Arrays) -> np.ndarray:
        """Unregister points that no segment or triangle uses; returns the old number of each point that is left."""
        gone = np.unique(np.asarray(numbers, dtype=np.int64))
        used = np.intersect1d(gone, np.concatenate([self.segments.ravel(), self.triangles.ravel()]))
        if len(used):
            raise InputError(f"numbers: point {used[0]} belongs to a segment or triangle")
        keep = np.setdiff1d(np.arange(len(self._points)), gone)
        renumbered = np.full(len(self._points), -1)
        renumbered[keep] = np.arange(len(keep))
        self.segments, self.triangles = renumbered[self.segments], renumbered[self.triangles]
        self._edges = renumbered[self._edges]
        self._set_points(self.points[keep], self.darts[keep])
        return keep

    def _grouped(self, kind: Kind) -> Groups:
        if self.form == "incremental":
            return self._lists[kind].groups()
        if kind == "points":
            cells = wp.array(self.cells, dtype=wp.int32, device=self.map.device)
            return group(cells, self.map.cell_capacity)
        offsets, cells = self._crossing(kind, np.arange(len(self._members(kind))))
        entity = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)).astype(np.int32)
        found = group(wp.array(cells, dtype=wp.int32, device=self.map.device), self.map.cell_capacity)
        order = wp.array(entity[found.order.numpy()], dtype=wp.int32, device=self.map.device)
        return Groups(found.start, order)

    def _set_points(self, places: np.ndarray, darts: np.ndarray) -> None:
        self._points = wp.array(places, dtype=wp.vec3d, device=self.map.device)
        self._darts = wp.array(darts, dtype=wp.int32, device=self.map.device)
        self._cells = self.cells.copy()
        self._lists.clear()
        self._refresh(None)

    def _located(self) -> wp.array:
        return locate_darts(self.map, self._points, self._darts)[0]

    def _soon_touched(self, cells: np.ndarray) -> np.ndarray:
        """Cells and their rings: on warped faces a split changes the owner of points next door too."""
        return np.union1d(cells, self.map.rings.rows(cells))

    def _after_cells_changed(self, touched: np.ndarray) -> None:
        self._darts = self._located()
        cells = self.cells
        points = np.flatnonzero(cells != self._cells)
        edges = self._rows.using(touched)
        self._cells = cells.copy()
        self._march(edges)
        self._refresh((points, edges))

    def _after_points_moved(self) -> None:
        cells = self.cells
        changed = cells != self._cells
        single = self._rows.sizes == 1
        if len(self._edges):
            quiet = single & ~changed[self._edges].any(axis=1)
            if self.mode == "exact" and not self.map.has_convex_cells:
                quiet[:] = False
            edges = np.flatnonzero(~quiet)
        else:
            edges = np.empty(0, np.int64)
        self._cells = cells.copy()
        self._march(edges)
        self.counters = {"points changed": int(changed.sum()), "edges marched": len(edges)}
        self._refresh((np.flatnonzero(changed), edges))

    def _changed_everything(self) -> None:
        self._cells = self.cells.copy()
        self._march(np.arange(len(self._edges)))
        self._refresh(None)

    def _march(self, edges: np.ndarray) -> None:
        """Find the cells that edges cross."""
        if len(edges) == 0:
            return
        ends = self._edges[edges]
        whole = np.ones(len(edges), bool)
        if self.mode == "fast" or self.map.has_convex_cells:
            whole = self._cells[ends[:, 0]] != self._cells[ends[:, 1]]
        rows = [np.empty((0, 2), np.int64)]
        inside = np.flatnonzero(~whole)
        rows.append(np.stack([inside, self._cells[ends[inside, 0]]], axis=1))
        far = np.flatnonzero(whole)
        if len(far):
            for a, b in ((0, 1), (1, 0)):
                start = [self.points[ends[far, k]] for k in (a, b)]
                first, last = (wp.array(x, dtype=wp.vec3d, device=self.map.device) for x in start)
                darts = wp.array(self.darts[ends[far, a]], dtype=wp.int32, device=self.map.device)
                pairs, status = march_cells(self.map, first, last, darts)
                rows.append(np.stack([far[pairs[:, 0]], pairs[:, 1]], axis=1))
                blocked = status.numpy() == 1
                if not blocked.any():
                    break
                far = far[blocked]  # a wall is in the way: the cells from the other end as well
        pairs = np.unique(np.concatenate(rows), axis=0)
        self._rows.set(edges, np.searchsorted(pairs[:, 0], np.arange(len(edges) + 1)), pairs[:, 1])

    def _members(self, kind: Kind) -> np.ndarray:
        return self.segments if kind == "segments" else self.triangles

    def _crossing(self, kind: Kind, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Offsets and cells of segments or triangles."""
        if kind == "points":
            return np.arange(len(numbers) + 1), self._cells[numbers]
        if kind == "segments":
            return self._rows.get(self._edge_of[: len(self.segments)][numbers])
        sides = self._edge_of[len(self.segments) :].reshape(-1, 3)[numbers]
        offsets, cells = self._rows.get(sides.reshape(-1))
        triangle = np.repeat(np.arange(len(numbers)), np.diff(offsets[::3]))
        pairs = np.unique(np.stack([triangle, cells], axis=1), axis=0)
        if self.fill:
            corners = self.points[self.triangles[numbers]]
            pairs = fill_triangles(self.map, corners, pairs)
        return np.searchsorted(pairs[:, 0], np.arange(len(numbers) + 1)), pairs[:, 1]

    def _refresh(self, changed: tuple[np.ndarray, np.ndarray] | None) -> None:
        """Bring incremental lists up to date: everything, or the points and edges that changed."""
        self._groups.clear()
        if self.form != "incremental":
            return
        counts = {"points": len(self._points), "segments": len(self.segments), "triangles": len(self.triangles)}
        for kind, count in counts.items():
            if kind not in self._lists or changed is None:
                self._lists[kind] = CellLists(count, self.map.cell_capacity, self.map.device)
                numbers = np.arange(count)
            elif kind == "points":
                numbers = changed[0]
            else:
                touched = np.isin(self._edge_of, changed[1])
                own = touched[: len(self.segments)]
                numbers = np.flatnonzero(
                    own if kind == "segments" else touched[len(self.segments) :].reshape(-1, 3).any(axis=1)
                )
            offsets, cells = self._crossing(kind, numbers)
            self._lists[kind].replace(numbers, offsets, cells, self.map.cell_capacity)


class _Rows:
    """A row of cells for each edge, replaced row by row."""

    def __init__(self, count: int) -> None:
        self._offsets = np.zeros(count + 1, np.int64)
        self._cells = np.empty(0, np.int64)

    @property
    def sizes(self) -> np.ndarray:
        return np.diff(self._offsets)

    def get(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sizes = self.sizes[rows]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        place = np.arange(offsets[-1]) - np.repeat(offsets[:-1], sizes) + np.repeat(self._offsets[rows], sizes)
        return offsets, self._cells[place]

    def set(self, rows: np.ndarray, offsets: np.ndarray, cells: np.ndarray) -> None:
        sizes, old = self.sizes, self.sizes
        kept = np.ones(len(sizes), bool)
        kept[rows] = False
        sizes[rows] = np.diff(offsets)
        merged = np.concatenate([[0], np.cumsum(sizes)])
        result = np.empty(merged[-1], np.int64)
        result[np.repeat(kept, sizes)] = self._cells[np.repeat(kept, old)]
        order = np.argsort(rows, kind="stable")
        result[np.repeat(~kept, sizes)] = _Rows._of(offsets, cells).get(order)[1]
        self._offsets, self._cells = merged, result

    def using(self, cells: np.ndarray) -> np.ndarray:
        """The rows with one of these cells."""
        row = np.repeat(np.arange(len(self.sizes)), self.sizes)
        return np.unique(row[np.isin(self._cells, cells)])

    @classmethod
    def _of(cls, offsets: np.ndarray, cells: np.ndarray) -> _Rows:
        rows = cls(0)
        rows._offsets, rows._cells = np.asarray(offsets), np.asarray(cells)
        return rows


def _members(data: Arrays | None, name: str, width: int, points: int) -> np.ndarray:
    if data is None:
        return np.empty((0, width), np.int64)
    rows = as_indices(data, name, wp.get_device("cpu"), width).numpy().astype(np.int64)
    if rows.size and (rows.min() < 0 or rows.max() >= points):
        row = int(np.argwhere((rows < 0) | (rows >= points))[0, 0])
        raise InputError(f"{name}: number {row} uses points {rows[row].tolist()} but there are {points} points")
    return rows


def _unique_edges(segments: np.ndarray, triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Edges of segments and triangles, each once, and the edge of every segment and triangle side."""
    sides = triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)
    both = np.sort(np.concatenate([segments, sides]), axis=1)
    if len(both) == 0:
        return both, np.empty(0, np.int64)
    edges, number = np.unique(both, axis=0, return_inverse=True)
    return edges, number.reshape(-1)
