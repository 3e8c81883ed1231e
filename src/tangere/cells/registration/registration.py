"""Points, segments and triangles that know their cells, and cells that know who is present and who is near.

Question: who is in each cell and in its one-ring, while things move and cells split and merge?
Method:   every point keeps a dart and walks or marches from it. A segment is in every cell it crosses, a triangle in
          every cell its edges cross (with `fill`, its inside too). A segment whose ends stay in the one cell that holds
          it costs nothing; any other is marched again.
          Lists by a counting sort of all (form "sorted"), or only of what changed (form "incremental"); both agree.
          In form "incremental" on CPU, a split, a merge or a move of a few costs what it touches: only who is present
          in the cells that changed, or has a point that moved, is looked at (`local_update`).
          `near(c)` is not stored: it is who is present in the ring of c, less who is present in c.
          On a curved surface points are on its triangles, and the straight segment between two of them is not: it is
          present in the cells of its ends.
          A map that others split, merge, bend or block is noticed by its version, and everybody is looked for again.
Sound:    whatever is asked, each entity is present exactly in the cells it crosses and every dart is in the cell of its
          point. Two exceptions: a segment that a wall, an obstacle, a hole or a bay of the border stops is present up
          to there from both ends, and `stopped` tells; and where faces are warped, a split or merge bends the border a
          little, and a point that is then just outside stays with the cell it was in.
          In mode "fast" a segment with both ends in one cell is said to be in that cell alone, which may miss
          neighbours where cells are not convex; they have it as near.
          What is refused leaves map and registration as they were.
Known as: registration of particles, edges and surfaces (Pitiot 2015, chapters 5 and 6; modes: section 7.3).
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import warp as wp

from tangere.cells.counting_sort import CellGroups, group_by_cell
from tangere.cells.index_checks import checked_index, checked_indices
from tangere.cells.maps.arrays import MapArrays
from tangere.cells.maps.cell_map import CellMap
from tangere.cells.maps.neighbourhood import ancestors
from tangere.cells.maps.refinement.split_merge import merge, replace_merged_darts, split
from tangere.cells.registration.advection import advect
from tangere.cells.registration.cell_lists import CellListEntries, CellLists, has_row
from tangere.cells.registration.elements import edge_segments, element_points, unique_edges
from tangere.cells.registration.local_update import LocalUpdate, element_links
from tangere.cells.registration.triangle_fill import fill_triangles
from tangere.cells.tracking.crossings import (
    CELLS_OF_ENDS,
    MARCH_ALWAYS,
    MARCH_UNLESS_ONE_CELL,
    Crossings,
    cross_segments,
    union_of_rows,
)
from tangere.cells.tracking.locate import as_darts, as_map_points
from tangere.cells.tracking.march import check_not_lost
from tangere.cells.tracking.placement import move_in_map, place_in_map
from tangere.cells.tracking.simplex_sides import BLOCKED, LOST
from tangere.runtime import SOUND, Arrays, InputError, indices_at_least, launch, on_own_threads, using_threads

wp.set_module_options(SOUND)

Kind = Literal["points", "segments", "triangles"]
_KINDS: tuple[Kind, ...] = ("points", "segments", "triangles")


class Registration:
    """Who is where in a map.

    Args:
        points: (n, 2) or (n, 3) [m], inside the map, in obstacles too; z is left out in a flat map, and on a curved
            surface each is put on the nearest triangle.
        segments, triangles: (m, 2) and (k, 3) numbers of points.
        darts: (n,) a dart of the cell of each point; None: they are looked for.
        form: how lists are kept: "sorted" anew at every change, or "incremental", which suits few changes at a time.
        mode: "exact" marches every segment that may have changed; "fast" trusts that cells are convex.
        fill: triangles are also present in cells that only their inside crosses.
        threads: CPU threads; None means all, or TANGERE_THREADS. The device is that of the map.
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
        threads: int | None = None,
    ) -> None:
        if form not in ("sorted", "incremental") or mode not in ("exact", "fast"):
            raise InputError(f"form is 'sorted' or 'incremental', mode 'exact' or 'fast', not {form!r} and {mode!r}")
        self.map, self.form, self.mode, self.fill = map, form, mode, fill
        self.threads = threads
        with using_threads(threads):
            self._points = wp.clone(as_map_points(map, points, "points"))
            count = len(self._points)
            self.segments = element_points(segments, "segments", 2, count)  #: (m, 2)
            self.triangles = element_points(triangles, "triangles", 3, count)  #: (k, 3)
            start = None if darts is None else as_darts(map, darts, count)
            self._points, self._darts, status = place_in_map(map, self._points, start)
            _refuse_outside(status, "points")
            self._version = map.version
            self._marched = wp.empty(0, dtype=wp.uint8, device=map.device)
            self._changed = wp.empty(0, dtype=wp.uint8, device=map.device)
            self._lists: dict[str, CellLists] = {}
            self._groups: dict[Kind, CellGroups] = {}
            self._rows: dict[Kind, Crossings] = {}
            self._local: LocalUpdate | None = None
            self._last_was_local = self._carried = False
            self._upload_elements()
            self._register_all()

    def __repr__(self) -> str:
        sizes = len(self._points), len(self.segments), len(self.triangles)
        return "Registration({} points, {} segments, {} triangles; {})".format(*sizes, self.form)

    @property
    @on_own_threads
    def points(self) -> np.ndarray:
        """(n, 3) where the points are [m]."""
        self._synchronise()
        return self._points.numpy()

    @property
    @on_own_threads
    def darts(self) -> np.ndarray:
        """(n,) the dart each point aims at; its simplex holds the point."""
        self._synchronise()
        return self._darts.numpy()

    @property
    def cells(self) -> np.ndarray:
        """(n,) the cell of each point."""
        return self.map.arrays.cell.numpy()[self.darts]

    @on_own_threads
    def cell_of(self, point: int) -> int:
        """The cell of one point."""
        self._synchronise()
        i = checked_index(point, "point", len(self._points), "points")
        dart = int(self._darts[i : i + 1].numpy()[0])
        return int(self.map.arrays.cell[dart : dart + 1].numpy()[0])

    @property
    def counters(self) -> dict[str, int]:
        """Of the last change: points that changed cell, edges that were marched."""
        if self._local is not None and self._last_was_local:
            changed, marched = self._local.counters
        else:
            changed, marched = int(self._changed.numpy().sum()), int(np.count_nonzero(self._marched.numpy()))
        return {"points changed": changed, "edges marched": marched}

    @on_own_threads
    def crossed(self, kind: Kind, number: int, *, level: int | None = None) -> np.ndarray:
        """The cells a point, segment or triangle is present in, sorted.

        Args:
            level: cells of this level (and coarser leaves) instead of leaves: far fewer for a large thing.
        """
        self._synchronise()
        _refuse_kind(kind)
        count = {"points": len(self._points), "segments": len(self.segments), "triangles": len(self.triangles)}[kind]
        number = checked_index(number, "number", count, kind)
        leaves = self._lists[kind].cells_of(number) if self._lists else self._rows[kind].row(number)
        return leaves if level is None else np.unique(ancestors(self.map, level)[leaves])

    @on_own_threads
    def stopped(self, kind: Literal["segments", "triangles"]) -> np.ndarray:
        """Numbers of the segments, or triangles with an edge, whose cells are known only up to a wall or border."""
        self._synchronise()
        if kind not in ("segments", "triangles"):
            raise InputError(f"kind is 'segments' or 'triangles', not {kind!r}")
        edges = self._segment_edges if kind == "segments" else self._triangle_edges
        return np.flatnonzero((self._marched.numpy()[edges.numpy()] == 2).any(axis=1))

    @on_own_threads
    def edge_cells(self, triangle: int) -> np.ndarray:
        """The cells that the edges of a triangle cross, sorted."""
        self._synchronise()
        sides = self._triangle_edges.numpy()[checked_index(triangle, "triangle", len(self.triangles), "triangles")]
        row = self._lists["edges"].cells_of if self._lists else self._edge_rows.row
        return np.unique(np.concatenate([row(int(k)) for k in sides]))

    @on_own_threads
    def present(self, kind: Kind) -> CellGroups:
        """Who is in each cell."""
        self._synchronise()
        _refuse_kind(kind)
        if kind not in self._groups:
            self._groups[kind] = self._grouped(kind)
        return self._groups[kind]

    @on_own_threads
    def entries(self, kind: Kind) -> CellListEntries:
        """Who is in each cell as linked lists for kernels, up to date until the next change (form "incremental")."""
        self._synchronise()
        _refuse_kind(kind)
        if self.form != "incremental":
            raise InputError(f"entries: lists are linked in form 'incremental', not in form {self.form!r}")
        return self._lists[kind].entries

    @on_own_threads
    def near(self, kind: Kind, cell: int) -> np.ndarray:
        """Who is in the one-ring of a leaf cell but not in it, sorted."""
        groups = self.present(kind)
        cell = checked_index(cell, "cell", self.map.cell_capacity, "cells")
        if self.map.levels[cell] < 0 or self.map.arrays.first_child.numpy()[cell] >= 0:
            raise InputError(f"cell: cell {cell} is not a leaf")
        return np.setdiff1d(groups.rows(self.map.rings.row(cell)), groups.row(cell))

    @on_own_threads
    def move(self, targets: Arrays, *, points: Arrays | None = None) -> np.ndarray:
        """Move points straight to their targets; returns which were stopped by a border, wall or obstacle (n,).

        On a curved surface a target says how far and which way; the way there follows the surface.

        Args:
            points: (n,) the numbers of the points to move, each once; None: all.
        """
        self._synchronise()
        if points is not None:
            return self._move_some(targets, checked_indices(points, "points", len(self._points), "points"))
        there = as_map_points(self.map, targets, "targets", len(self._points))
        self._points, self._darts, status = move_in_map(self.map, self._points, there, self._darts)
        self._register_all()
        return status.numpy() == 1

    @on_own_threads
    def split(self, cells: Arrays, *, balanced: bool = False) -> np.ndarray:
        """Split cells and keep everybody registered; returns the cells that were split."""
        self._synchronise()
        done = split(self.map, cells, balanced=balanced)
        self._follow(done)
        return done

    @on_own_threads
    def merge(self, cells: Arrays, *, balanced: bool = False) -> np.ndarray:
        """Merge the children of cells and keep everybody registered; returns the cells that were merged.

        Cells whose children differ in walls or obstacles are left out.
        """
        self._synchronise()
        parents = checked_indices(cells, "cells", self.map.cell_capacity, "cells")
        children = self.map.children_of(parents)
        done = merge(self.map, cells, balanced=balanced)
        gone = children[self.map.levels[children] < 0]
        self._follow(np.concatenate([done, gone]))
        return done

    @on_own_threads
    def deform(self, vertices: Arrays, *, carried: bool = True) -> None:
        """Move the vertices of the map, (v, 3) as in `map.positions`; cells may be bent inside out (`inverted_cells`).

        Args:
            carried: points keep their place in their simplex; otherwise they stay where they are and change cells,
                which is refused if one would be outside.
        """
        self._synchronise()
        before = self.map.positions.copy()
        if carried:
            self._points = advect(self.map, self._points, self._darts, vertices)
            self._carried = len(self.map.inverted_cells) > 0
        else:
            self.map.move(vertices)
            status = place_in_map(self.map, self._points, self._darts)[2]
            if status.numpy().any():
                self.map.move(before)
                _refuse_outside(status, "vertices")
        try:
            self._synchronise()
        finally:
            self._carried = False

    @on_own_threads
    def add(self, points: Arrays, darts: Arrays | None = None) -> np.ndarray:
        """Register more points; returns their numbers."""
        self._synchronise()
        more = as_map_points(self.map, points, "points")
        start = None if darts is None else as_darts(self.map, darts, len(more))
        more, aimed, status = place_in_map(self.map, more, start)
        _refuse_outside(status, "points")
        count = len(self._points)
        self._set_points(np.concatenate([self.points, more.numpy()]), np.concatenate([self.darts, aimed.numpy()]))
        return np.arange(count, count + len(more))

    @on_own_threads
    def remove(self, numbers: Arrays) -> np.ndarray:
        """Unregister points that no segment or triangle uses; returns the old number of each point that is left."""
        gone = np.unique(checked_indices(numbers, "numbers", len(self._points), "points"))
        used = np.intersect1d(gone, np.concatenate([self.segments.ravel(), self.triangles.ravel()]))
        if len(used):
            raise InputError(f"numbers: point {used[0]} belongs to a segment or triangle")
        keep = np.setdiff1d(np.arange(len(self._points)), gone)
        renumbered = np.full(len(self._points), -1)
        renumbered[keep] = np.arange(len(keep))
        self.segments, self.triangles = renumbered[self.segments], renumbered[self.triangles]
        self._set_points(self.points[keep], self.darts[keep])
        return keep

    def _set_points(self, places: np.ndarray, darts: np.ndarray) -> None:
        self._points = wp.array(places, dtype=wp.vec3d, device=self.map.device)
        self._darts = wp.array(darts, dtype=wp.int32, device=self.map.device)
        self._lists, self._local = {}, None
        self._rows.clear()
        self._upload_elements()
        self._register_all()

    def _upload_elements(self) -> None:
        """What the device needs to know of segments and triangles: all their edges, each once, and whose they are."""
        edges, number = unique_edges(self.segments, self.triangles)
        count, device = len(self.segments), self.map.device
        self._edges = wp.array(edges.astype(np.int32), dtype=wp.vec2i, device=device)
        self._segment_edges, self._triangle_edges = (
            wp.array(part.astype(np.int32), dtype=wp.int32, device=device)
            for part in (number[:count].reshape(-1, 1), number[count:].reshape(-1, 3))
        )

    def _way(self) -> int:
        """How the cells of edges are found."""
        if self.map.is_surface:
            return int(CELLS_OF_ENDS)
        convex = self.mode == "fast" or self.map.has_convex_cells
        return int(MARCH_UNLESS_ONE_CELL if convex else MARCH_ALWAYS)

    def _follow(self, changed: np.ndarray) -> None:
        """After these cells were split, merged or taken away: look only at what they hold, where that will do."""
        map, local = self.map, self._local
        if local is None or map.is_surface or len(changed) == 0:
            self._synchronise()
            return
        arrays = self._points, self._darts, self._rows["points"].cells, self._marched
        if local.after_change(changed, map.has_convex_cells, *arrays, self._way()):
            self._version = map.version
            self._groups.clear()
            self._last_was_local = True
        else:
            self._synchronise()

    def _move_some(self, targets: Arrays, numbers: np.ndarray) -> np.ndarray:
        if len(np.unique(numbers)) < len(numbers):
            raise InputError("points: a point is there twice")
        there = as_map_points(self.map, targets, "targets", len(numbers))
        local = self._local
        if local is None or self.map.is_surface:
            chosen = wp.array(numbers.astype(np.int32), dtype=wp.int32, device=self.map.device)
            points, darts = (
                wp.empty(len(numbers), dtype=x.dtype, device=x.device) for x in (self._points, self._darts)
            )
            launch(_gather, len(numbers), [chosen, self._points, self._darts], [points, darts], device=self.map.device)
            points, darts, status = move_in_map(self.map, points, there, darts)
            launch(_scatter, len(numbers), [chosen, points, darts], [self._points, self._darts], device=self.map.device)
            self._register_all()
            return status.numpy() == 1
        status = wp.empty(len(numbers), dtype=wp.uint8, device=self.map.device)
        before = wp.clone(self._points), wp.clone(self._darts)
        cells = self._rows["points"].cells
        known = local.after_move(numbers, there, status, self._points, self._darts, cells, self._marched, self._way())
        if (status.numpy() == LOST).any():
            self._points, self._darts = before
            self._register_all()
            check_not_lost(status)
        self._groups.clear()
        self._last_was_local = known
        if not known:
            self._register_all()
        return status.numpy() == BLOCKED

    def _synchronise(self) -> None:
        """Look for everybody again if the map is not the one they were registered in."""
        map = self.map
        if self._version == map.version:
            return
        # Darts of merged cells have successors until new cells get them.
        known = self._version >= map.reuse_version
        if known:
            replace_merged_darts(map, self._darts)
        found = place_in_map(map, self._points, self._darts if known else None)
        if known and self._carried:
            # Their simplices carried them; a walk through cells that are inside out would lead anywhere.
            inputs = [map.arrays, self._darts, found[2]]
            launch(_stay_in_inverted, len(self._points), inputs, [found[1]], device=map.device)
        if self._version < map.move_version:
            _refuse_outside(found[2], "points")
        self._points, self._darts, _ = found
        self._version = map.version
        self._register_all()

    def _register_all(self) -> None:
        """Find everybody's cells again: darts are in them."""
        map, device, count = self.map, self.map.device, len(self._points)
        before = self._rows.get("points")
        cells, numbers = (wp.empty(n, dtype=wp.int32, device=device) for n in (count, count + 1))
        self._changed = wp.empty(count, dtype=wp.uint8, device=device)
        known = cells if before is None else before.cells
        inputs = [map.arrays, self._darts, known, int(before is not None)]
        launch(_write_cells, count + 1, inputs, [cells, numbers, self._changed], device=device)
        self._cross_edges()
        rows: dict[Kind, Crossings] = {"points": Crossings(numbers, cells)}
        rows["segments"] = union_of_rows(self._edge_rows, self._segment_edges)
        rows["triangles"] = self._filled(union_of_rows(self._edge_rows, self._triangle_edges))
        self._groups.clear()
        self._rows, self._last_was_local = rows, False
        if self.form == "incremental":
            for kind in _KINDS:
                self._replace(kind, rows[kind])
            self._replace("edges", self._edge_rows)
            self._rows = {"points": rows["points"]}  # lists know the others
            if self._local is None and map.device.is_cpu:
                links = element_links(
                    self._edges.numpy().reshape(-1, 2),
                    self._segment_edges.numpy(),
                    self._triangle_edges.numpy(),
                    self.triangles,
                    count,
                )
                self._local = LocalUpdate(map, self._lists, links, self.fill)

    def _cross_edges(self) -> None:
        map = self.map
        segments = edge_segments(self._edges, self._points, self._darts, self._way())
        self._edge_rows, self._marched = cross_segments(map, segments)

    def _filled(self, rows: Crossings) -> Crossings:
        """With `fill`, the rows of triangles and the cells that only their insides cross."""
        if not self.fill or len(self.triangles) == 0:
            return rows
        pairs = np.stack([rows.owner.numpy(), rows.cells.numpy()], axis=1).astype(np.int64)
        pairs = fill_triangles(self.map, self.points[self.triangles], pairs)
        first = np.searchsorted(pairs[:, 0], np.arange(len(self.triangles) + 1))
        return Crossings(
            *(wp.array(x.astype(np.int32), dtype=wp.int32, device=self.map.device) for x in (first, pairs[:, 1]))
        )

    def _grouped(self, kind: Kind) -> CellGroups:
        if self.form == "incremental":
            return self._lists[kind].groups()
        rows = self._rows[kind]
        found = group_by_cell(rows.cells, self.map.cell_capacity)
        if kind == "points":
            return found
        order, device = wp.empty_like(found.order), self.map.device
        launch(_gather_owners, len(order), [found.order, rows.owner], [order], device=device)
        return CellGroups(found.start, order)

    def _replace(self, kind: str, rows: Crossings) -> None:
        """Bring the lists of one kind up to date: only entities whose cells changed are taken out and put in."""
        count, capacity, device = len(rows.first) - 1, self.map.cell_capacity, self.map.device
        differ = wp.full(count, 1, dtype=wp.uint8, device=device)
        if kind in self._lists:
            inputs = [self._lists[kind].entries, rows.first, rows.cells]
            launch(_differ, count, inputs, [differ], device=device)
        else:
            self._lists[kind] = CellLists(count, capacity, device)
        self._lists[kind].replace(indices_at_least(differ, 1), rows.first, rows.cells, capacity)


def _refuse_kind(kind: str) -> None:
    if kind not in _KINDS:
        raise InputError(f"kind is one of {', '.join(map(repr, _KINDS))}, not {kind!r}")


def _refuse_outside(status: wp.array, name: str) -> None:
    outside = status.numpy() != 0
    if outside.any():
        raise InputError(f"{name}: point {int(np.argmax(outside))} is outside the map")


@wp.kernel
def _write_cells(
    first: int,
    m: MapArrays,
    darts: wp.array[int],
    before: wp.array[int],
    known: int,
    cells: wp.array[int],
    numbers: wp.array[int],
    changed: wp.array[wp.uint8],
):
    i = first + wp.tid()
    numbers[i] = i
    if i < darts.shape[0]:
        cell = m.cell[darts[i]]
        cells[i] = cell
        changed[i] = wp.uint8(0)
        if known == 0 or before[i] != cell:
            changed[i] = wp.uint8(1)


@wp.kernel
def _gather_owners(first: int, order: wp.array[int], owner: wp.array[int], out: wp.array[int]):
    i = first + wp.tid()
    out[i] = int(owner[order[i]])


@wp.kernel
def _stay_in_inverted(
    first: int, m: MapArrays, before: wp.array[int], status: wp.array[wp.uint8], darts: wp.array[int]
):
    """Points of cells that are inside out, and points that a walk lost, keep their darts."""
    i = first + wp.tid()
    if m.inverted[m.cell[before[i]]] == 1 or m.inverted[m.cell[darts[i]]] == 1 or status[i] != wp.uint8(0):
        darts[i] = int(before[i])
        status[i] = wp.uint8(0)


@wp.kernel
def _gather(
    first: int,
    numbers: wp.array[int],
    points: wp.array[wp.vec3d],
    darts: wp.array[int],
    some: wp.array[wp.vec3d],
    dart: wp.array[int],
):
    i = first + wp.tid()
    some[i] = points[numbers[i]]
    dart[i] = int(darts[numbers[i]])


@wp.kernel
def _scatter(
    first: int,
    numbers: wp.array[int],
    some: wp.array[wp.vec3d],
    dart: wp.array[int],
    points: wp.array[wp.vec3d],
    darts: wp.array[int],
):
    i = first + wp.tid()
    points[numbers[i]] = some[i]
    darts[numbers[i]] = int(dart[i])


@wp.kernel
def _differ(
    first: int, e: CellListEntries, new_rows: wp.array[int], new_cells: wp.array[int], differ: wp.array[wp.uint8]
):
    i = first + wp.tid()
    differ[i] = wp.uint8(1)
    if has_row(e, i, new_rows[i], new_rows[i + 1], new_cells):
        differ[i] = wp.uint8(0)
