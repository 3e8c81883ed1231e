"""A needle that goes where it is told, through cells that are fine around its tip: nothing is pushed or bent by it.

Question: where is the tip, what has it left behind, and what is near, at a thousand moves a second?
Method:   the frame of the tip advances exactly (`tip_frame`), in pieces no longer than the lock length; each piece is
          one launch (`tip_search`). `refine`, at the rate of frames, splits and merges cells (`tip_refinement`).
          Everything is in material coordinates: a body that deforms carries map, needle and anatomy along.
Sound:    see `tip_search`. A needle that gets to the border of the map stops there.
Known as: the needle of Pitiot 2015, section 9.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tangere.cells.maps import CellMap
from tangere.cells.tracking import BLOCKED, as_map_points, locate_darts
from tangere.needle.anatomy import Anatomy, Membrane, Vessel
from tangere.needle.drawing import scene_of
from tangere.needle.instrument import Needle, part_of_a_cycle
from tangere.needle.nearness import contacts_of
from tangere.needle.tip_frame import TipFrame, duty_cycled
from tangere.needle.tip_refinement import Mode, RefinementReport, TipRefinement
from tangere.needle.tip_search import COUNT, STATUS, VISITED, TipSearch
from tangere.query.contacts import Contacts
from tangere.runtime import InputError, check_kind, number, positive, three_numbers, view_room, whole
from tangere.scene import Scene
from tangere.shape.mesh import Mesh


@dataclass(frozen=True)
class Tip:
    """Where the tip of a needle is."""

    position: np.ndarray  #: (3,) [m]
    direction: np.ndarray  #: (3,) forward
    cell: int
    level: int  #: of the cell


@dataclass(frozen=True)
class Particles:
    """What a needle has left behind, from the entry on; usable as constraints: each knows its cell and its place in it.

    The place is the weights of four points: the end and the origin of the dart, the centre of its face and the centre
    of its cell (`tangere.cells`).
    """

    position: np.ndarray  #: (n, 3) [m]
    cell: np.ndarray  #: (n,)
    dart: np.ndarray  #: (n,)
    weights: np.ndarray  #: (n, 4)

    def __len__(self) -> int:
        return len(self.position)


class KinematicSimulation:
    """A needle in a map of cells.

    Args:
        map: volumes on CPU; split and merged around the tip.
        entry: where the needle begins, inside the map [m].
        direction: where it looks there.
        vessels, membranes: what may be near; lines of points, meshes, `Vessel` and `Membrane` objects.
        lock_length: a particle is left behind every so much of the path [m].
        distance: what is nearer to a new piece of the needle is a contact [m]; None means the lock length.
        radius: cells within it around the tip are fine [m]; None means the lock length.
        level: of the cell of the tip; 0 leaves the map as it is.
        mode: "soft" or "hard", see `TipRefinement`; with it `budget` and `deadline` [s] of `refine`.
        roll: how the tip is turned about its direction at the start [rad].

    Example:
        >>> from tangere.cells.generate import hex_grid
        >>> from tangere.needle import Bevel, KinematicSimulation, Needle
        >>> needle = Needle(tip=Bevel(curvature=2.0))
        >>> block = hex_grid(4, 4, 4, size=0.05, device="cpu")
        >>> simulation = KinematicSimulation(block, needle, entry=[0.1, 0.1, 0.001], direction=[0, 0, 1], level=2)
        >>> for _ in range(100):
        ...     simulation.step(0.001)
        >>> len(simulation.particles) - 1, simulation.tip.level, f"{simulation.length:.3f} m"
        (33, 2, '0.100 m')
    """

    def __init__(
        self,
        map: CellMap,
        needle: Needle,
        *,
        entry: Any,
        direction: Any,
        vessels: Sequence[Vessel | Any] = (),
        membranes: Sequence[Membrane | Mesh] = (),
        lock_length: float = 3e-3,
        distance: float | None = None,
        radius: float | None = None,
        level: int = 4,
        mode: Mode = "soft",
        budget: int | None = None,
        deadline: float = 1.0 / 30.0,
        roll: float = 0.0,
    ) -> None:
        check_kind(map, CellMap, "map")
        check_kind(needle, Needle, "needle")
        if map.dimension != 3 or not map.device.is_cpu:
            raise InputError("map: a needle goes through volumes on CPU")
        if mode not in ("soft", "hard"):
            raise InputError(f"mode is 'soft' or 'hard', not {mode!r}")
        lock = positive(lock_length, "lock_length")
        distance = lock if distance is None else positive(distance, "distance")
        radius = lock if radius is None else positive(radius, "radius")
        level = whole(level, "level", 0)
        budget = None if budget is None else whole(budget, "budget", 0)
        start = three_numbers(entry, "entry")
        darts, status = locate_darts(map, as_map_points(map, start[None], "entry"), None)
        if status.numpy()[0] == BLOCKED:
            raise InputError(f"entry: {start.tolist()} is outside the map")
        self.needle, self.map = needle, map
        self.frame = TipFrame.looking(start, direction, number(roll, "roll"))  #: of the tip
        self.anatomy = Anatomy(map, vessels, membranes)
        self._lock, self.distance = lock, distance
        self._search = TipSearch(
            self.anatomy, start, int(darts.numpy()[0]), lock_length=lock, distance=distance, radius=needle.radius
        )
        self._refinement = TipRefinement(
            self._search, radius=radius, level=level, mode=mode, budget=budget, deadline=positive(deadline, "deadline")
        )
        self.stopped = False  #: whether the needle is at the border of the map
        if level:
            self.refine()

    def __repr__(self) -> str:
        return f"KinematicSimulation({self.length:.4f} m deep, {len(self.particles)} particles, {self.map!r})"

    def step(self, advance: float, *, spin: float = 0.0, refine: bool = True) -> None:
        """Push the needle on while it spins, and make cells fine where its tip is then.

        Args:
            advance: along the path [m]; not negative: a kinematic needle leaves its path only by `reset`.
            spin: [rad].
            refine: False leaves cells as they are: a haptic loop calls `refine` at another rate.
        """
        self.advance(advance, spin=spin)
        if refine:
            self.refine()

    def step_duty_cycled(self, advance: float, duty: float, *, refine: bool = True) -> None:
        """One cycle that spins for a part of the way: the mean curvature is that of the tip times 1 - duty."""
        for length, spin in duty_cycled(self.needle.curvature, part_of_a_cycle(duty, "duty"), advance):
            if length > 0.0:
                self.advance(length, spin=spin)
        if refine:
            self.refine()

    def advance(self, advance: float, *, spin: float = 0.0) -> None:
        """The tip goes on; contacts are those of what is new."""
        length, spin = number(advance, "advance"), number(spin, "spin")
        if not 0.0 <= length < np.inf:
            raise InputError(f"advance must be a length that is not negative, not {advance!r}")
        if not np.isfinite(spin):
            raise InputError(f"spin must be finite, not {spin!r}")
        # An arc is followed by chords of at most a lock length and an eighth of a turn.
        pieces = max(1, int(np.ceil(length / self._lock)), int(np.ceil(abs(spin) * (length > 0.0) / (0.25 * np.pi))))
        for _ in range(pieces):
            if self.stopped:
                break
            ahead = self.frame.advanced(length / pieces, curvature=self.needle.curvature, spin=spin / pieces)
            self._search.advance(ahead.position)
            if self._search.state[STATUS] == BLOCKED:
                self.stopped = True
                ahead = TipFrame(self._search.tip[0].copy(), ahead.rotation)
            self.frame = ahead

    def refine(self, *, deadline: float | None = None) -> None:
        """Split and merge cells for where the tip is.

        Args:
            deadline: that counts from now on [s], such as what a pacer has left; None keeps that of before.
        """
        if deadline is not None and np.isfinite(deadline):
            self._refinement.deadline = positive(deadline, "deadline")
        if self._refinement.level:
            self._refinement.step()

    @property
    def tip(self) -> Tip:
        """Where it is now."""
        cell = self._refinement.tip_cell
        return Tip(self._search.tip[0].copy(), self.frame.direction, cell, int(self.map.levels[cell]))

    @property
    def length(self) -> float:
        """Of the path so far [m]."""
        return float(self._search.travelled[1])

    @property
    def particles(self) -> Particles:
        """What was left behind, the entry first."""
        search, count = self._search, int(self._search.state[COUNT])
        darts = search.path_dart[:count].copy()
        return Particles(
            search.path[:count].copy(), self.map.host("cell")[darts], darts, search.path_weights[:count].copy()
        )

    @property
    def nodes(self) -> np.ndarray:
        """(n, 3) the needle from its entry to its tip [m]."""
        return np.concatenate([self._search.path[: self._search.state[COUNT]], self._search.tip[:1]])

    @property
    def anatomy_points(self) -> np.ndarray:
        """(n, 3) the points of vessels and membranes [m]."""
        return self.anatomy.points

    @property
    def measures(self) -> dict[str, float]:
        """How deep the tip is along its path [m]."""
        return {"travel": self.length, "depth": self.length}

    def scene(self, **options: Any) -> Scene:
        """Needle, what is near, and cells cut by the needle's plane; for pictures and files; see `Recording.scene`."""
        return scene_of(self, **options)

    def _repr_png_(self) -> bytes | None:
        """For notebooks: what there is now; None where it cannot be drawn."""
        return view_room().png(self.scene())

    @property
    def report(self) -> RefinementReport:
        """What cells cost so far: merges, splits, postponed wishes, overruns, leaves."""
        return self._refinement.report

    @property
    def visited(self) -> int:
        """Cells looked at in the last move."""
        return int(self._search.state[VISITED])

    @property
    def contacts(self) -> Contacts:
        """What is near the pieces of the needle that the last move made, the nearest first.

        Body 0 is the needle, 1 and on are vessels and then membranes; `feature_a` is the segment of the needle, from
        the entry on, `feature_b` the segment or triangle. Against body 0 it is the needle itself.
        """
        return contacts_of(self._search.found, self.anatomy)
