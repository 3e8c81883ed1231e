"""One body that is cut, and the bodies that its parts have become.

Question: a blade goes on through a body that is bent and moves; which bodies does the simulation go on with?
Method:   the blade is led through the rest shape (`rest_map`), where `SimplicialComplex` opens the body, `CutSurface`
          keeps up its surface, and `ConnectedParts` tells what has come off. A part is a body: its vertices are those
          of the complex in their order, its surface has the walls half a kerf inside (`wall_inset`). What vertices
          carry, places and velocities, follows the blends of the complex.
Sound:    volume, elastic energy and momentum are kept as far as the complex keeps them; dofs that are not touched keep
          their bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tangere.shape.mesh import Mesh
from tangere.shape.tets import TetMesh
from tangere.soft.body import Body
from tangere.soft.contact.wall_inset import WallFacets, inset_carriers
from tangere.soft.cutting.connected_parts import ConnectedParts, FoundPart
from tangere.soft.cutting.cut_surface import CutSurface, SurfaceStore
from tangere.soft.cutting.simplicial_complex import ComplexChange, SimplicialComplex

#: Where points of the world are in the rest shape, from tetrahedra near them or None; and those that have them.
AtRest = Callable[[np.ndarray, np.ndarray | None], tuple[np.ndarray, np.ndarray | None]]
#: Segments of a blade are divided until they are at most this many edges long.
_SEGMENT = 1.0
#: By the number of corners of a simplex and a corner, the others.
_OTHERS = {size: np.array([[j for j in range(size) if j != k] for k in range(size)]) for size in (3, 4)}
#: Points of a blade, at most.
_MOST_POINTS = 200


class Places:
    """Where the rows of a complex are in the arrays of a simulation: range of the arrays or -1, place in it, and body.

    A range is called by the body that it was laid out for, of which parts may have come off.
    """

    def __init__(self, range: np.ndarray, place: np.ndarray, body: np.ndarray | None = None) -> None:
        self._columns = [range, place, range.copy() if body is None else body]
        self._labels: list[tuple[np.ndarray, int]] = []  # that nobody has asked for yet
        self.count = len(range)

    @property
    def range(self) -> np.ndarray:
        """(count,) number of the range, or -1."""
        return self._columns[0][: self.count]

    @property
    def place(self) -> np.ndarray:
        """(count,) place in it."""
        return self._columns[1][: self.count]

    @property
    def body(self) -> np.ndarray:
        """(count,) number of the body, or -1."""
        for rows, number in self._labels:
            self._columns[2][rows] = number
        self._labels = []
        return self._columns[2][: self.count]

    def snapshot(self) -> Places:
        """As they are now."""
        return Places(self.range, self.place, self.body.copy())

    def of(self, number: int) -> np.ndarray:
        """The rows of a body, rising."""
        return np.flatnonzero(self.body == number)

    def rows(self, base: np.ndarray) -> np.ndarray:
        """In the arrays, where each range begins at its base; -1 for none."""
        return np.where(self.range >= 0, base[self.range] + self.place, -1)

    def rows_of(self, number: int, base: np.ndarray) -> np.ndarray:
        """The same of one body, in order."""
        own = self.of(number)
        return base[self.range[own]] + self.place[own]

    def label(self, rows: np.ndarray, number: int) -> None:
        """These are of another body from now on."""
        self._labels.append((rows, number))

    def append(self, rows: np.ndarray, base: np.ndarray, bodies: np.ndarray) -> None:
        """Rows that come after these ones: where they are in the arrays, -1 for none; `bodies` by row of the arrays."""
        home = np.searchsorted(base, rows, side="right") - 1
        end = self.count + len(rows)
        if end > len(self._columns[0]):
            more = np.zeros(end + end // 2 - self.count, self.place.dtype)
            self._columns = [np.concatenate([column[: self.count], more]) for column in self._columns]
        new = home, np.where(home >= 0, rows - base[home], 0), np.where(home >= 0, bodies[rows], -1)
        for column, values in zip(self._columns, new, strict=True):
            column[self.count : end] = values
        self.count = end


@dataclass(frozen=True, eq=False)
class Division:
    """A polyline with more points: each segment in so many equal pieces."""

    segment: np.ndarray  #: (m - 1,) that each point but the last is in
    part: np.ndarray  #: (m - 1, 1) and where

    @classmethod
    def of(cls, pieces: np.ndarray) -> Division:
        """From the pieces of each segment (k - 1,)."""
        segment = np.repeat(np.arange(len(pieces)), pieces)
        part = (np.arange(len(segment)) - (np.cumsum(pieces) - pieces)[segment]) / pieces[segment]
        return cls(segment, part[:, None])

    def points(self, line: np.ndarray) -> np.ndarray:
        """(m, 3) of a polyline (k, 3)."""
        ends = line[self.segment + 1]
        return np.concatenate([line[self.segment] + self.part * (ends - line[self.segment]), line[-1:]])


@dataclass(frozen=True, eq=False)
class Stroke:
    """How far the blade has gone through a part."""

    world: np.ndarray  #: (k, 3) where it was [m]
    rest: np.ndarray  #: (m, 3) in the rest shape, divided [m]
    near: np.ndarray | None  #: (m,) tetrahedra near them, or None
    division: Division | None  #: of its segments, if they are divided


class CutBody:
    """A body of a simulation that can be cut.

    Args:
        number: of the body in the simulation.
        body: as it was given.
        kerf: width of a cut at rest [m].
    """

    def __init__(self, number: int, body: Body, kerf: float) -> None:
        shape = body.material or body.shape
        self.given, self.kerf = body, kerf
        simplices = shape.tets if isinstance(shape, TetMesh) else shape.faces
        self.complex = SimplicialComplex(shape.vertices, simplices, snap=body.snap)
        self.surface = CutSurface(self.complex) if body.is_solid else None
        self._no_store = SurfaceStore()
        self.parts = ConnectedParts(self.complex, self.surface)
        self.numbers = {0: number}  #: the body that each part is
        self._fixed, self._fixed_count = body.fixed, len(body.fixed)
        every = np.arange(len(shape.vertices))
        self.dofs = Places(np.full(len(every), number), every)
        at = self.surface_dofs
        place = np.searchsorted(shape.surface_vertices, at) if isinstance(shape, TetMesh) else at
        self.vertices = Places(np.full(len(at), number), place)
        self._strokes: dict[int, Stroke] = {}
        self._insets = np.zeros(len(at), np.int32)  # how surface vertices are inset, see `wall_inset`
        self._inset_otherwise = False  # whether one of them ever was not 0
        self._past_insets: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._looked_at: list[np.ndarray] = []

    # -- what is done to it ------------------------------------------------------------------------------------------

    def cut(self, part: int, start: np.ndarray, end: np.ndarray, at_rest: AtRest) -> list[ComplexChange]:
        """The blade goes on from a polyline to another, in the world (k, 3) [m].

        Where it starts just where it was, the stroke goes on from where it was in the material. Else one begins.

        Args:
            at_rest: where points of the world are in the rest shape: given points and tetrahedra near them, if known,
                it says both anew.
        """
        changes = []
        stroke = self._strokes.get(part)
        another = stroke is not None and not np.array_equal(stroke.world, start)
        if stroke is None or another:
            length = np.linalg.norm(np.diff(start, axis=0), axis=1)
            pieces = np.ceil(np.maximum(length, 1e-300) / (_SEGMENT * self.complex.edge)).astype(int)
            pieces = np.clip(pieces, 1, max(1, _MOST_POINTS // len(pieces)))
            division = None if (pieces == 1).all() else Division.of(pieces)
            stroke = Stroke(start, *at_rest(start if division is None else division.points(start), None), division)
        division = stroke.division
        reached, near = at_rest(end if division is None else division.points(end), stroke.near)
        if another:
            changes.append(self.end_stroke())
        if not self._strokes:
            self.complex.begin_stroke()
        changes.append(self.complex.cut(stroke.rest, reached, part=part))
        self._follow(changes[-1])
        self._strokes[part] = Stroke(end.copy(), reached, near, division)
        return [change for change in changes if change]

    def end_stroke(self) -> ComplexChange:
        """The blade has left all parts."""
        change = self.complex.end_stroke()
        self._follow(change)
        self._strokes = {}
        return change

    def abandon_stroke(self) -> None:
        """Nothing is known of the stroke any more: what it has not opened stays closed."""
        self._strokes = {}

    def sweep(self, part: int, start: np.ndarray, end: np.ndarray) -> ComplexChange:
        """The blade goes on from a polyline to another in the rest shape (k, 3) [m], in the stroke there is."""
        if not self._strokes:
            self.complex.begin_stroke()
        change = self.complex.cut(start, end, part=part)
        self._follow(change)
        self._strokes[part] = Stroke(end.copy(), end.copy(), None, None)
        return change

    def simplices_of(self, part: int) -> np.ndarray:
        """(m, 3 or 4) of one part."""
        return self.complex.corners[self._part == part]

    @property
    def stroking(self) -> bool:
        """Whether a stroke has begun that has not ended."""
        return bool(self._strokes)

    def separate(self, next_number: int, prepare: Callable[[FoundPart], None]) -> list[FoundPart]:
        """One slice of looking for parts: those found, which are bodies from this number on.

        Args:
            prepare: is told of each part before, as far as it is known.
        """
        found = self.parts.advance(prepare=prepare)
        for new in found:
            self.numbers[new.part] = next_number
            next_number += 1
            self.complex.name_part(new.part, new.of)
            if new.of in self._strokes:
                self._strokes[new.part] = self._strokes[new.of]
        return found

    def part_at(self, number: int) -> int:
        """The part that is the body of this number."""
        return next(part for part, body in self.numbers.items() if body == number)

    def name_of(self, part: int) -> str:
        """What the body is called that a part is."""
        return str(self.given.name) if part == 0 else f"{self.given.name} {part + 1}"

    def number_of(self, simplex: int) -> int:
        """The body that a simplex belongs to."""
        return self.numbers[int(self._part[simplex])]

    # -- what it is then ---------------------------------------------------------------------------------------------

    def blended(self, change: ComplexChange, values: np.ndarray) -> np.ndarray:
        """What the vertices carry (v, …) after a change: values at new places between old ones."""
        grown = np.zeros((change.vertices, *values.shape[1:]), values.dtype)
        grown[: len(values)] = values
        for (m, p, q), s in zip(change.blended.tolist(), change.blends.tolist(), strict=True):
            grown[m] = (1.0 - s) * grown[p] + s * grown[q]
        return grown

    def carried_over(self, changes: list[ComplexChange], *columns: np.ndarray) -> list[np.ndarray]:
        """What the dofs carry (n, …) after changes."""
        found = list(columns)
        for change in changes:
            found = [self.blended(change, values) for values in found]
        return found

    def world(self, values: np.ndarray) -> np.ndarray:
        """(v, …) what the vertices of the complex carry, from what dofs carry (n, …)."""
        return values

    @property
    def fixed(self) -> np.ndarray:
        """(v,) bool: which vertices are fixed."""
        return self._fixed[: self._fixed_count]

    def take_notes(self, changes: list[ComplexChange]) -> None:
        """Keep up which vertices are fixed: new ones between two that are."""
        for change in changes:
            count, end = self._fixed_count, change.vertices
            if end > len(self._fixed):
                self._fixed = np.concatenate([self.fixed, np.zeros(end + end // 2 - count, bool)])
            self._fixed[count:end] = False
            _blend_fixed(self._fixed, change, count)
            self._fixed_count = end

    def fixed_after(self, changes: list[ComplexChange]) -> np.ndarray:
        """(n,) bool: which dofs are fixed after changes."""
        fixed = self.fixed
        for change in changes:
            grown = np.concatenate([fixed, np.zeros(change.vertices - len(fixed), bool)])
            _blend_fixed(grown, change, len(fixed))
            fixed = grown
        return fixed

    def opened_area(self, change: ComplexChange) -> float:
        """Of the walls, one side of each, at rest [m^2]; of a sheet their length times its thickness."""
        return change.opened_area * (self.given.thickness if self.complex.size == 3 else 1.0)

    def opened_vertices(self, changes: list[ComplexChange]) -> np.ndarray:
        """(k,) surface vertices at facets that have just been opened, and on walls that are new."""
        triangles, facets, walls = self._triangles()
        opened = np.concatenate([change.opened.ravel() for change in changes] or [np.zeros(0, np.int32)])
        if self.surface is None:
            return np.unique(self.names_at(opened))
        new = (triangles >= len(self.vertices.place)).any(axis=1)
        return np.unique(triangles[walls & (new | np.isin(facets, opened))])

    def begin_change(self) -> None:
        """From here on `looked_at` counts."""
        self._looked_at = []

    def looked_at(self) -> np.ndarray:
        """(c,) places of surface triangles that may have changed since `begin_change`."""
        if len(self._looked_at) == 1:
            return self._looked_at[0]
        return np.unique(np.concatenate(self._looked_at or [np.zeros(0, np.int32)]))

    def set_insets(self, inset: int, *, everywhere: bool = False) -> None:
        """Walls that may have changed, or all, are inset like this, of `INSETS`."""
        if inset == 0 and not self._inset_otherwise:
            return
        self._inset_otherwise = True
        if everywhere:
            names = np.arange(len(self.surface_dofs))
        elif self.surface is None:
            names = np.unique(self.complex.arrays.corners.numpy()[self.looked_at(), :3])
        else:
            store, arrays = self.surface.store, self.surface.arrays
            names = store[(arrays.corners + 3 * self.looked_at())[:, None] + [0, 1, 2]].ravel()
            names = names[names >= 0]
        most = int(names.max(initial=0)) + 1
        insets = self.insets(most)
        self._past_insets.append((insets, names, insets[names]))
        insets[names] = inset

    def insets(self, count: int) -> np.ndarray:
        """At least so many: by surface vertex how it is inset, of `INSETS`.

        It is the same array as long as it is long enough.
        """
        if len(self._insets) < count:
            self._insets = np.concatenate([self._insets, np.zeros(count - len(self._insets), np.int32)])
        return self._insets

    def layout(self, fixed: np.ndarray) -> dict[int, Body]:
        """The bodies of all parts by numbers, and which vertices are fixed (v,); notes the places of their rows."""
        dof_body, dof_place = np.full(len(self.complex.rest), -1), np.zeros(len(self.complex.rest), np.int64)
        names = len(self.surface_dofs)
        vertex_body, vertex_place = np.full(names, -1), np.zeros(names, np.int64)
        bodies, corners, part = {}, self.complex.corners, self._part
        of_numbers = {number: own for own, number in self.numbers.items()}
        for number, body, seen, _ in self.shapes(fixed):
            used = _used(corners[part == of_numbers[number]], len(dof_body))
            dof_body[used], dof_place[used] = number, np.arange(len(used))
            vertex_body[seen], vertex_place[seen] = number, np.arange(len(seen))
            bodies[number] = body
        self.dofs, self.vertices = Places(dof_body, dof_place), Places(vertex_body, vertex_place)
        return bodies

    def renumber(self, places_of: dict[int, np.ndarray]) -> None:
        """Its parts were laid out anew: by number of a body, the place in its range that each surface vertex had."""
        body, place = self.vertices.body.copy(), self.vertices.place.copy()
        dof_place = self.dofs.place.copy()
        for number in self.numbers.values():
            before, ours = places_of[number], body == number
            new = np.full(max(before.max(), place[ours].max()) + 1, -1)
            new[before] = np.arange(len(before))
            place[ours] = new[place[ours]]
            ours = self.dofs.of(number)
            dof_place[ours] = np.arange(len(ours))
        body[place < 0] = -1
        self.vertices, self.dofs = Places(body, place), Places(self.dofs.body.copy(), dof_place)

    def shapes(self, fixed: np.ndarray) -> list[tuple[int, Body, np.ndarray, np.ndarray]]:
        """Of all parts: the number, the body, its surface vertices, and the places of its triangles."""
        corners, rest, part, name = self.complex.corners, self.complex.rest, self._part, str(self.given.name)
        triangles, owners, walls = self._triangles()
        places = np.flatnonzero(self.surface.triangles[:, 0] >= 0) if self.surface else np.arange(len(triangles))
        dofs, facets = self.surface_dofs, self._wall_facets(triangles, owners, walls)
        owners = owners >> 2
        insets = self.insets(len(dofs))[: len(dofs)]
        seen = _used(triangles, len(dofs))
        carriers, weights = inset_carriers(facets, seen, dofs, rest, corners, 0.5 * self.kerf, insets)
        at_wall = np.zeros(len(dofs), bool)
        at_wall[facets.corners] = True
        points = np.einsum("ij,ijk->ik", weights, rest[carriers])
        found = []
        dof_place, vertex_place = np.zeros(len(rest), np.int64), np.zeros(len(dofs), np.int64)
        for own, number in self.numbers.items():
            mine, ours = part == own, part[owners] == own
            used, seen = _used(corners[mine], len(rest)), _used(triangles[ours], len(dofs))
            dof_place[used], vertex_place[seen] = np.arange(len(used)), np.arange(len(seen))
            surface = Mesh(points[seen], vertex_place[triangles[ours]], name=name)
            shape = TetMesh(rest[used], dof_place[corners[mine]], name=name) if self.surface is not None else None
            body = self.given.piece(
                shape or Mesh(rest[used], dof_place[corners[mine]], name=name),
                surface,
                (dof_place[carriers[seen]].astype(np.int32), weights[seen]),
                fixed=fixed[used],
                walls=(at_wall[seen], walls[ours]),
                name=self.name_of(own),
            )
            found.append((number, body, seen, places[ours]))
        return found

    def state(self) -> tuple[Any, ...]:
        """All that later steps depend on (`restore`)."""
        surface = None if self.surface is None else self.surface.state()
        places = self.dofs.snapshot(), self.vertices.snapshot()
        notes = self.numbers.copy(), self.fixed.copy(), *places, self._strokes.copy(), self._insets.copy()
        return self.complex.state(), surface, self.parts.state(), notes

    def restore(self, state: tuple[Any, ...]) -> None:
        """As it was."""
        topology, surface, parts, notes = state
        self.complex.restore(topology)
        if self.surface is not None:
            self.surface.restore(surface)
        self.parts.restore(parts)
        numbers, self._fixed, self.dofs, self.vertices, strokes, self._insets = notes
        self._fixed_count = len(self._fixed)
        self.numbers, self._strokes = numbers.copy(), strokes.copy()

    def begin_history(self) -> tuple[Any, ...]:
        """From here on all can be taken back, by what was touched: by `undo_history`, which wants what this returns."""
        if self.surface is not None:
            self.surface.begin_history()
        self._past_insets = []
        places = self.dofs, self.dofs.count, self.vertices, self.vertices.count
        return (
            self.complex.begin_history(),
            self.parts.state(),
            self.numbers.copy(),
            self._fixed_count,
            places,
            self._strokes.copy(),
        )

    def undo_history(self, notes: tuple[Any, ...]) -> None:
        """As it was at `begin_history`."""
        last, parts, numbers, self._fixed_count, places, strokes = notes
        self.complex.undo_history(last)
        if self.surface is not None:
            self.surface.undo_history()
        self.parts.restore(parts)
        self.numbers, self._strokes = numbers.copy(), strokes.copy()
        self.dofs, self.dofs.count, self.vertices, self.vertices.count = places[0], places[1], places[2], places[3]
        while self._past_insets:
            array, names, before = self._past_insets.pop()
            array[names] = before
            self._insets = array

    # -- inside ------------------------------------------------------------------------------------------------------

    @property
    def _part(self) -> np.ndarray:
        """(n,) which part each simplex belongs to."""
        return self.complex.view("part")[: self.complex.counts[0]]

    def _follow(self, change: ComplexChange) -> None:
        if not change:
            return
        if self.surface is None:
            self._looked_at.append(change.changed)
        else:
            self.surface.follow()
            self._looked_at.append(self.surface.looked_at)
        self.parts.note(change)

    @property
    def surface_store(self) -> SurfaceStore:
        """What kernels know of the surface; nothing of a sheet, which is its own (`cut_surface.name_at`)."""
        return self._no_store if self.surface is None else self.surface.arrays

    @property
    def slot_room(self) -> int:
        """Surface triangles that there is room for."""
        return self.complex.arrays.simplex_room if self.surface is None else self.surface.arrays.triangle_room

    @property
    def name_room(self) -> int:
        """Surface vertices that there is room for."""
        return self.complex.arrays.vertex_room if self.surface is None else self.surface.arrays.vertex_room

    @property
    def triangles_by_slot(self) -> np.ndarray:
        """(f, 3) surface vertices of the triangle at each place; -1 where a place is free."""
        return self.complex.corners if self.surface is None else self.surface.triangles

    def names_at(self, facets: np.ndarray) -> np.ndarray:
        """Surface vertices at facets 4 t + k that are on the surface."""
        if self.surface is None:
            corners = self.complex.arrays.corners.numpy()[facets >> 2, :3]
            return corners[np.arange(3) != (facets & 3)[:, None]]
        store, arrays = self.surface.store, self.surface.arrays
        slot = store[arrays.slots + facets]
        return store[(arrays.corners + 3 * slot[slot >= 0])[:, None] + [0, 1, 2]].ravel()

    @property
    def surface_dofs(self) -> np.ndarray:
        """(s,) the vertex of the complex at each surface vertex; any where there is none."""
        if self.surface is None:
            return np.arange(len(self.complex.rest))
        return np.maximum(self.surface.dofs, 0)

    def _triangles(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Surface vertices (f, 3), facets 4 t + k (f,) and whether it is a wall (f,), of all triangles."""
        if self.surface is None:
            corners = self.complex.corners
            return corners, 4 * np.arange(len(corners)), np.zeros(len(corners), bool)
        triangles, facets, walls = self.surface.triangles, self.surface.owners, self.surface.walls
        alive = triangles[:, 0] >= 0
        return triangles[alive], facets[alive], walls[alive]

    def _wall_facets(self, triangles: np.ndarray, owners: np.ndarray, walls: np.ndarray) -> WallFacets:
        rest = self.complex.rest
        if self.surface is not None:
            order = np.flatnonzero(walls)[np.argsort(owners[walls])]
            corners, dofs = triangles[order], self.surface_dofs
            a, b, c = (rest[dofs[corners[:, k]]] for k in range(3))
            return WallFacets(corners, np.cross(b - a, c - a), owners[order] >> 2)
        flags = self.complex.view("wall")[: len(triangles)]
        owner, facet = np.nonzero((flags[:, None] >> np.arange(3)) & 1)
        ends = np.stack([triangles[owner, (facet + 1) % 3], triangles[owner, (facet + 2) % 3]], axis=1)
        a, b, across = rest[ends[:, 0]], rest[ends[:, 1]], rest[triangles[owner, facet]]
        along = (b - a) / np.linalg.norm(b - a, axis=1, keepdims=True)
        inward = (across - a) - np.einsum("ij,ij->i", across - a, along)[:, None] * along
        length = np.linalg.norm(b - a, axis=1, keepdims=True) / np.linalg.norm(inward, axis=1, keepdims=True)
        return WallFacets(ends, -inward * length, owner)


def _used(simplices: np.ndarray, count: int) -> np.ndarray:
    """Which of so many vertices some simplices have, rising."""
    mask = np.zeros(count, bool)
    mask[simplices] = True
    return np.flatnonzero(mask)


def _blend_fixed(fixed: np.ndarray, change: ComplexChange, count: int) -> None:
    """Of vertices from `count` on, which are not fixed yet, those are that a change has put between two that are."""
    new, one, other = change.blended.T
    if (fixed[one] & fixed[other] & (new >= count)).any():  # nearly never
        for m, p, q in change.blended.tolist():
            if m >= count:
                fixed[m] = fixed[p] and fixed[q]
