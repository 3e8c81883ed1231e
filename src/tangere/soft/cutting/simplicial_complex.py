"""A body that can be cut: its simplices at rest, on the host, and a blade that goes through them step by step.

Question: what are the tetrahedra, or triangles, of a body after the blade has gone on, and what has changed?
Method:   `cut_step`, over arrays with spare room; when some room is used up, the step is undone, the arrays grow, and
          it is done again.
Sound:    a step is done or undone as a whole. After each the complex is valid: neighbours are mutual, stars connected,
          volumes positive, the surface closed; the volume is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from tangere.runtime import Arrays, InputError, PreparedLaunch, fraction, number, to_numpy
from tangere.soft.cut_engine import altitudes
from tangere.soft.cutting import complex_arrays as layout
from tangere.soft.cutting.complex_arrays import ComplexArrays, CutOptions, undo
from tangere.soft.cutting.cut_step import cut, end_stroke
from tangere.soft.cutting.swept_blade import SweptBlade

#: Vertices nearer to the cut than this part of the median edge are snapped.
SNAP_HEIGHT = 0.02
#: Edges shorter than this part of the median edge are not bisected by the blade.
SHORT = 0.35
#: The least altitude of a child of a bisection, and where a vertex is moved, as parts of the least of the body.
LEAST_ALTITUDE, LEAST_MOVED = 0.1, 0.25
#: The box of a simplex may grow to this multiple of the largest of the body where a vertex is moved.
LARGEST = 1.05
#: Ancestors are searched in boxes that are larger by this part of the median edge: vertices are moved a little.
LOOSE = 0.25
#: Simplices that a cut may go on by guesses when its stroke ends, if it is closed then.
GUESSES = 4
#: Vertices beside the cut are on a side before the blade has passed there if they are this part of an edge away.
SURE_HEIGHT = 0.3
#: Points of a blade at first; more make the buffers grow.
_POINTS = 16
#: Marks are counted up to here before they are cleared.
_MOST_MARKS = 1 << 30
#: Lists of what a step touches have room for all simplices at first, or this many; after that they grow.
_MOST_LISTED = 1 << 16

_BY_SIMPLEX = ("corners", "neighbours", "opening", "wall", "label", "next", "part", "mark", "changed", "kept", "twin")
_BY_VERTEX = (
    "rest",
    "simplex_at",
    "on",
    "side",
    "seen_from",
    "normal",
    "height",
    "level",
    "near",
    "near_length",
    "vertex_mark",
)
_BY_VERTEX += ("vertex_kept",)
#: What a step counts up or writes before it reads; the last three are of vertices that it puts on the cut.
_SCRATCH = ("mark", "changed", "kept", "twin", "vertex_mark", "vertex_kept", "near", "near_length", "level")
_JOURNAL = ("journal", "journal_corners", "journal_neighbours", "journal_words")
_VERTEX_JOURNAL = ("vertex_journal", "vertex_journal_rest", "vertex_journal_normal", "vertex_journal_height")
_VERTEX_JOURNAL += ("vertex_journal_words",)
#: The lists of what is blended, which follow each other.
_BLENDED = slice(int(layout.BLENDED), int(layout.BLENDED_Q) + 1)


@dataclass(frozen=True, eq=False)
class ComplexChange:
    """What one step of the blade has changed; numbers are of simplices, vertices, and facets 4 t + k."""

    changed: np.ndarray  #: (c,) simplices with other corners, neighbours or places of vertices, new ones included
    opened: np.ndarray  #: (o, 2) facets that were one
    blended: np.ndarray  #: (b, 3) in order: vertex m is now at (1 - s) p + s q
    blends: np.ndarray  #: (b,) s
    simplices: int  #: of them now
    vertices: int
    new_simplices: int
    new_vertices: int
    crossed: int  #: edges the blade has passed
    bisected: int
    snapped: int
    moved: int
    guarded: int  #: snapped because a bisection would have left something too flat
    chords: int  #: bisected because they would have been pinched
    pending: int  #: facets between the sides that do not open yet
    crumbs: int
    dropped: int  #: crossings that contradict the sides given before
    split: int  #: copies of vertices
    opened_area: float  #: of the opened facets, one side of each, at rest [m^2]; of a sheet their length [m]

    def __bool__(self) -> bool:
        return len(self.changed) > 0


@dataclass(frozen=True, eq=False)
class ComplexState:
    """A `SimplicialComplex` at one instant."""

    simplices: int
    vertices: int
    stroke: int
    rows: dict[str, np.ndarray]  #: of its arrays
    lists: dict[int, np.ndarray]
    last: dict[int, tuple[np.ndarray, int]]  #: the polyline the blade has reached in each part, and its first number


class SimplicialComplex:
    """The simplices of one body at rest, and who is beyond their facets.

    Args:
        vertices: at rest, shape (v, 3) [m].
        simplices: shape (n, 4), tetrahedra with positive volumes, or (n, 3), triangles.
        snap: the part of an edge within which its end is put on the cut, 0 to 0.4.
        room: capacity as a multiple of the first number of simplices and vertices.
    """

    def __init__(self, vertices: Arrays, simplices: Arrays, *, snap: float = 0.2, room: float = 1.5) -> None:
        points = to_numpy(vertices, "cutting: vertices")
        corners = to_numpy(simplices, "cutting: simplices", dtype=np.int32)
        self.size = corners.shape[1]
        if fraction(snap, "snap") > 0.4:
            raise InputError(f"snap must be between 0 and 0.4, not {snap!r}: both ends would be snapped")
        if number(room, "room") < 1.0:
            raise InputError(f"room must be at least 1, not {room!r}")
        self.snap = float(snap)
        edges = np.linalg.norm(_edge_vectors(points, corners), axis=-1)
        self.edge = float(np.median(edges))  #: median length at rest [m]
        self.altitude = float(altitudes(points, corners).min())  #: the least, of a simplex at rest [m]
        if not self.altitude > 0.0:
            raise InputError("cutting: a simplex has no volume, or is inside out")
        self._device = wp.get_device("cpu")
        self._tree = self._ancestors(points, corners)
        self._options = CutOptions()
        self._options.snap = self.snap
        self._options.snap_height = SNAP_HEIGHT * self.edge if snap > 0.0 else 0.0
        self._options.short_edge = SHORT * self.edge if snap > 0.0 else 0.0
        self._options.least_altitude = LEAST_ALTITUDE * self.altitude if snap > 0.0 else 0.0
        self._options.least_moved = LEAST_MOVED * self.altitude
        self._options.longest = float(edges.max())
        self._options.largest = LARGEST * float(np.linalg.norm(np.ptp(points[corners], axis=1), axis=1).max())
        self._options.sure_height = SURE_HEIGHT * self.edge
        self.arrays = self._laid_out(points, corners, room)
        self._points = 0
        self._counter = 0
        self._last: dict[int, tuple[np.ndarray, int]] = {}
        self._history: list[Callable[[], None]] | None = None  # how to take back all since `begin_history`
        self._in_journal = False  # the last step is taken back by its journal, until there is another one
        self._give_points(_POINTS)
        self._prepare()

    # -- what it is --------------------------------------------------------------------------------------------------

    @property
    def corners(self) -> np.ndarray:
        """(n, 3 or 4) vertices of the simplices."""
        return self.view("corners")[: self._numbers[layout.SIMPLICES], : self.size].copy()

    @property
    def neighbours(self) -> np.ndarray:
        """(n, 3 or 4): 4 o + j beyond each facet, or -1."""
        return self.view("neighbours")[: self._numbers[layout.SIMPLICES], : self.size].copy()

    @property
    def counts(self) -> tuple[int, int]:
        """How many simplices and vertices there are."""
        return int(self._numbers[layout.SIMPLICES]), int(self._numbers[layout.VERTICES])

    @property
    def tree(self) -> wp.Bvh:
        """Over the first simplices, at rest; others are bisected from them (`ComplexArrays.next`)."""
        return self._tree

    @property
    def rest(self) -> np.ndarray:
        """(v, 3) vertices at rest [m]."""
        return self.view("rest")[: self._numbers[layout.VERTICES]].copy()

    # -- what is done to it ------------------------------------------------------------------------------------------

    def begin_stroke(self) -> None:
        """The blade starts anew: it knows no sides yet."""
        lists = {which: self._list(which) for which in (layout.ON, layout.WAITING)}

        def back() -> None:
            self._numbers[layout.STROKE] -= 1
            for which, items in lists.items():
                self.view("lists")[which, : len(items)] = items
                self.view("lengths")[which] = len(items)

        self._remember(back)
        self._numbers[layout.STROKE] += 1
        lengths = self.view("lengths")
        lengths[layout.ON] = lengths[layout.WAITING] = 0
        self._last = {}

    def cut(self, start: Arrays, end: Arrays, *, part: int = -1) -> ComplexChange:
        """The edge of the blade goes from one polyline to another in the rest shape, both (k, 3) [m].

        Where it starts just where the last step of the stroke ended, the two surfaces it sweeps share that polyline.
        Of a body in several parts, one may be cut alone; each has polylines of its own then.
        """
        start, end = to_numpy(start, "cut: start"), to_numpy(end, "cut: end")
        if start.ndim != 2 or start.shape[1:] != (3,) or len(start) < 2 or start.shape != end.shape:
            raise InputError(
                f"cut: start and end are polylines (k, 3), k at least 2, not {start.shape} and {end.shape}"
            )
        if not (np.isfinite(start).all() and np.isfinite(end).all()):
            raise InputError("cut: a point of the blade is not finite")
        count = len(start)
        if count > self._points:
            self._give_points(max(count, 2 * self._points))
            self._prepare()
        last, begin = self._last.get(part, (None, 0))
        if last is None or not np.array_equal(last, start):
            begin = self._counter
            self._counter += count
        points, numbers = self._blade_points, self._blade_numbers
        points[:count], points[count : 2 * count] = start, end
        numbers[:count] = np.arange(begin, begin + count)
        numbers[count : 2 * count] = np.arange(self._counter, self._counter + count)
        self._last[part] = end.copy(), self._counter
        self._counter += count
        self._count_view[0] = count
        self._numbers[layout.WANTED_PART] = part
        return self._run("_cut")

    def end_stroke(self) -> ComplexChange:
        """The blade has left the body: decide what is still open behind it.

        Where guesses of a few simplices close the cut everywhere, it went right through; else its front stays.
        """
        self._guesses_view[0] = GUESSES
        change = self._run("_end")
        if self._numbers[layout.UNDECIDED]:
            self.undo()
            self._guesses_view[0] = 0
            change = self._run("_end")
        return change

    def undo(self) -> None:
        """Take back the last step, once."""
        self._in_journal = False
        self._undo.run()

    def begin_history(self) -> dict[int, tuple[np.ndarray, int]]:
        """From here on remember what each step has changed, for `undo_history`, which wants what this returns."""
        self._history, self._in_journal = [], False
        return self._last.copy()

    def undo_history(self, last: dict[int, tuple[np.ndarray, int]]) -> None:
        """As it was at `begin_history`; forgets how it went."""
        if self._in_journal:
            self.undo()
        while self._history:
            self._history.pop()()
        self._last = last.copy()

    def _remember(self, back: Callable[[], None] | None = None) -> None:
        """The journal will be of another step; and this takes back what is about to be done."""
        if self._history is None:
            return
        if self._in_journal:
            self._history.append(self._journal())
            self._in_journal = False
        if back is not None:
            self._history.append(back)

    def _journal(self) -> Callable[[], None]:
        """How to take back the last step, whatever comes after it."""
        n, count = self._numbers, self.view("journal_lengths").copy()
        names = [(name, count[0]) for name in _JOURNAL] + [(name, count[1]) for name in _VERTEX_JOURNAL]
        rows = {name: self.view(name)[:size].copy() for name, size in names}
        places = [layout.SIMPLICES_BEFORE, layout.VERTICES_BEFORE, layout.ON_BEFORE]
        before, waiting = n[places].copy(), self._list(layout.WAITING_BEFORE)

        def back() -> None:
            for name, values in rows.items():
                self.view(name)[: len(values)] = values
            self.view("journal_lengths")[:] = count
            self._numbers[places] = before
            self.view("lists")[layout.WAITING_BEFORE, : len(waiting)] = waiting
            self.view("lengths")[layout.WAITING_BEFORE] = len(waiting)
            self._undo.run()

        return back

    def name_part(self, part: int, of: int) -> None:
        """A part has come off another one: the blade has gone as far in both."""

        def back() -> None:
            labels = self.view("part")
            labels[labels == part] = of

        self._remember(back)
        if of in self._last:
            self._last[part] = self._last[of]

    def state(self) -> ComplexState:
        """All that later steps depend on, to go back to after any number of them (`restore`)."""
        counts = {"simplices": int(self._numbers[layout.SIMPLICES]), "vertices": int(self._numbers[layout.VERTICES])}
        rows = {name: self.view(name)[: counts["simplices"]].copy() for name in _BY_SIMPLEX if name not in _SCRATCH}
        rows |= {name: self.view(name)[: counts["vertices"]].copy() for name in _BY_VERTEX if name not in _SCRATCH}
        lists = {int(which): self._list(which) for which in (layout.ON, layout.WAITING)}
        return ComplexState(
            **counts, stroke=int(self._numbers[layout.STROKE]), rows=rows, lists=lists, last=self._last.copy()
        )

    def restore(self, state: ComplexState) -> None:
        """As it was."""
        for name, rows in state.rows.items():
            self.view(name)[: len(rows)] = rows
        for which, items in state.lists.items():
            self.view("lists")[which, : len(items)] = items
            self.view("lengths")[which] = len(items)
        n = self._numbers
        n[layout.SIMPLICES], n[layout.VERTICES], n[layout.STROKE] = state.simplices, state.vertices, state.stroke
        self._last = state.last.copy()

    # -- inside ------------------------------------------------------------------------------------------------------

    @property
    def _numbers(self) -> np.ndarray:
        return self.view("numbers")

    def view(self, name: str) -> np.ndarray:
        """One of its arrays as NumPy sees it; looked up once, because that takes longer than most reads."""
        view = self._views.get(name)
        if view is None:
            view = self._views[name] = getattr(self.arrays, name).numpy()
        return view

    def _list(self, which: Any) -> np.ndarray:
        return self.view("lists")[which, : self.view("lengths")[which]].copy()

    def _run(self, which: str) -> ComplexChange:
        self._remember()
        if max(self._numbers[layout.MARK], self._numbers[layout.VERTEX_MARK]) > _MOST_MARKS:
            for name in ("mark", "edge_marks", "vertex_mark"):
                getattr(self.arrays, name).zero_()
            self._numbers[[layout.MARK, layout.VERTEX_MARK]] = 0
        getattr(self, which).run()
        while self._numbers[layout.STATUS] != layout.FINE:
            self._undo.run()
            self._grow()
            getattr(self, which).run()
        self._in_journal = self._history is not None
        n, blended = self._numbers.tolist(), int(self.view("lengths")[layout.BLENDED])
        return ComplexChange(
            changed=self._list(layout.CHANGED),
            opened=self._list(layout.OPENED).reshape(-1, 2),
            blended=self.view("lists")[_BLENDED, :blended].T.copy(),
            blends=self.view("blends")[:blended].copy(),
            simplices=n[layout.SIMPLICES],
            vertices=n[layout.VERTICES],
            new_simplices=n[layout.SIMPLICES] - n[layout.SIMPLICES_BEFORE],
            new_vertices=n[layout.VERTICES] - n[layout.VERTICES_BEFORE],
            crossed=n[layout.CROSSED],
            bisected=n[layout.BISECTED],
            snapped=n[layout.SNAPPED],
            moved=n[layout.MOVED],
            guarded=n[layout.GUARDED],
            chords=n[layout.CHORDS],
            pending=n[layout.PENDING],
            crumbs=n[layout.CRUMBS],
            dropped=n[layout.DROPPED],
            split=n[layout.SPLIT],
            opened_area=float(self.view("fractions")[0]),
        )

    def _prepare(self) -> None:
        device = self._device
        self._views: dict[str, np.ndarray] = {}
        self._blade_points, self._blade_numbers = self._blade.points.numpy(), self._blade.numbers.numpy()
        self._count_view, self._guesses_view = self._count.numpy(), self._guesses.numpy()
        tree = wp.uint64(self._tree.id)
        self._cut = PreparedLaunch(
            cut, [self.arrays, tree, self._blade, self._count, self._options], device, dim=1, serial=True
        )
        self._end = PreparedLaunch(end_stroke, [self.arrays, self._guesses, self._options], device, dim=1, serial=True)
        self._undo = PreparedLaunch(undo, [self.arrays], device, dim=1, serial=True)

    def _ancestors(self, points: np.ndarray, corners: np.ndarray) -> wp.Bvh:
        """A tree over the boxes of the first simplices."""
        lower, upper = points[corners].min(axis=1), points[corners].max(axis=1)
        loose = LOOSE * self.edge
        sides = (np.nextafter((lower - loose).astype(np.float32), np.float32(-np.inf)), lower)
        ends = (np.nextafter((upper + loose).astype(np.float32), np.float32(np.inf)), upper)
        return wp.Bvh(*(wp.array(a[0], dtype=wp.vec3, device=self._device) for a in (sides, ends)))

    def _laid_out(self, points: np.ndarray, corners: np.ndarray, room: float) -> ComplexArrays:
        simplices, vertices = len(corners), len(points)
        arrays = ComplexArrays()
        arrays.size = self.size
        arrays.simplex_room = int(room * simplices) + 256
        arrays.vertex_room = int(room * vertices) + 256
        arrays.list_room = max(1024, min(simplices, _MOST_LISTED))
        arrays.numbers = self._zeros("numbers", layout.NUMBERS)
        arrays.lengths = self._zeros("lengths", layout.LISTS)
        arrays.journal_lengths = self._zeros("journal_lengths", 2)
        for names, count in (
            (_BY_SIMPLEX + _JOURNAL, arrays.simplex_room),
            (_BY_VERTEX + _VERTEX_JOURNAL, arrays.vertex_room),
        ):
            for name in names:
                setattr(arrays, name, self._zeros(name, count))
        self._give_lists(arrays)
        whole = np.full((simplices, 4), -1, np.int32)
        whole[:, : self.size] = corners
        arrays.corners.numpy()[:simplices] = whole
        arrays.neighbours.numpy()[:simplices] = _neighbours(corners)
        arrays.next.numpy()[:] = -1
        arrays.rest.numpy()[:vertices] = points
        arrays.simplex_at.numpy()[corners.ravel()] = np.repeat(np.arange(simplices), self.size)
        numbers = arrays.numbers.numpy()
        numbers[layout.SIMPLICES], numbers[layout.VERTICES] = simplices, vertices
        return arrays

    def _zeros(self, name: str, shape: int | tuple[int, ...]) -> wp.array:
        return wp.zeros(shape, dtype=ComplexArrays.vars[name].type.dtype, device=self._device)

    def _give_lists(self, arrays: ComplexArrays) -> None:
        arrays.lists = self._zeros("lists", (layout.LISTS, arrays.list_room))
        arrays.fractions = self._zeros("fractions", arrays.list_room)
        arrays.blends = self._zeros("blends", arrays.list_room)
        table = 1 << int(np.ceil(np.log2(4 * arrays.list_room)))
        arrays.edge_keys, arrays.edge_marks = self._zeros("edge_keys", table), self._zeros("edge_marks", table)

    def _grow(self) -> None:
        """Half as much room again for everything; addresses change."""
        old, new = self.arrays, ComplexArrays()
        new.size = old.size
        new.numbers, new.lengths, new.journal_lengths = old.numbers, old.lengths, old.journal_lengths
        new.simplex_room, new.vertex_room = (int(1.5 * n) for n in (old.simplex_room, old.vertex_room))
        new.list_room = 2 * old.list_room
        for names, count in (
            (_BY_SIMPLEX + _JOURNAL, new.simplex_room),
            (_BY_VERTEX + _VERTEX_JOURNAL, new.vertex_room),
        ):
            for name in names:
                array = self._zeros(name, count)
                before = getattr(old, name).numpy()[:count]
                array.numpy()[: len(before)] = before
                setattr(new, name, array)
        self._give_lists(new)
        new.lists.numpy()[:, : old.list_room] = old.lists.numpy()
        self.arrays = new
        self._prepare()

    def _give_points(self, count: int) -> None:
        self._points = count
        self._count, self._guesses = (wp.zeros(1, dtype=wp.int32, device=self._device) for _ in range(2))
        self._blade = SweptBlade()
        for name, size in (
            ("points", 2 * count),
            ("numbers", 2 * count),
            ("triangles", 2 * count),
            ("normals", 2 * count),
            ("lower", 2 * count),
            ("upper", 2 * count),
        ):
            array = wp.zeros(size, dtype=SweptBlade.vars[name].type.dtype, device=self._device)
            setattr(self._blade, name, array)


def _edge_vectors(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """(n, e, 3) along the edges of simplices."""
    first, second = np.triu_indices(corners.shape[1], 1)
    return points[corners[:, second]] - points[corners[:, first]]


def _neighbours(corners: np.ndarray) -> np.ndarray:
    """(n, 4): 4 o + j beyond each facet, or -1; the fourth of a triangle is -1."""
    count, size = corners.shape
    others = np.array([[j for j in range(size) if j != k] for k in range(size)])
    facets = np.sort(corners[:, others], axis=2).reshape(-1, size - 1)
    order = np.lexsort(facets.T[::-1])
    same = (facets[order[1:]] == facets[order[:-1]]).all(axis=1)
    if (same[1:] & same[:-1]).any():
        raise InputError("cutting: more than two simplices share a facet")
    numbers = 4 * np.repeat(np.arange(count), size) + np.tile(np.arange(size), count)
    one, other = order[:-1][same], order[1:][same]
    beyond = np.full((count, 4), -1, np.int32)
    beyond[numbers[one] >> 2, numbers[one] & 3] = numbers[other]
    beyond[numbers[other] >> 2, numbers[other] & 3] = numbers[one]
    return beyond
