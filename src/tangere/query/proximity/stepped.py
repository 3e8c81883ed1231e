"""A whole detection on CPU, step after step, in arrays that are kept.

Describing half a million contacts takes 16 ms in memory that was used before, and 22 ms in new memory.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import warp as wp

from tangere.bound import LANES
from tangere.partition.pipeline_surfaces import LARGEST, Surfaces
from tangere.query.proximity.eights_run import EightsRun
from tangere.query.proximity.exclusion import Exclusion, that_count
from tangere.query.proximity.kept import Kept, run_together
from tangere.query.proximity.names import bases_of
from tangere.query.proximity.near import FILL_GRAIN, Near, filling
from tangere.query.proximity.plan import Plan

__all__ = ["Stepped"]

#: Room for this many times the contacts of the step that needed more.
GROWTH = 1.25


class Stepped:
    """The searches of a plan for vertices at `positions` [m], wherever those are when contacts are looked for."""

    def __init__(
        self, surfaces: Surfaces, plan: Plan, positions: wp.array, distance: float, exclude: list[Exclusion]
    ) -> None:
        self._surfaces, self._exclude = surfaces.replaced(positions), exclude
        self._searches = EightsRun(plan, distance)
        self._searches.look_at(positions, surfaces.frame)
        self._make_room(0)

    def find(self) -> Near | int:
        """The contacts; or the number of a vertex whose coordinates are not finite or too large."""
        rows = self._surfaces.positions.numpy()
        if not max(rows.max(initial=0.0), -rows.min(initial=0.0)) <= LARGEST / 3.0:  # NaN is not
            unusable = ~(np.abs(rows).sum(axis=1) <= LARGEST)
            if unusable.any():
                return int(np.argmax(unusable))
        names = self._searches.names(self._near.names)
        if self._exclude:
            names = that_count(self._surfaces, names, self._exclude)
        if len(names) > len(self._near.names):
            self._make_room(len(names))
        if names.ptr != self._near.names.ptr:
            wp.copy(self._near.names, names, count=len(names))
        self._near.number.numpy()[0] = len(names)
        self._fill.dim = -(-len(names) // LANES)
        run_together([self._fill])
        return replace(self._near, count=len(names))

    def _make_room(self, count: int) -> None:
        """Columns for more contacts than that, as longer ones are known to be used again."""
        names = wp.empty(int(GROWTH * count) + 1024, dtype=wp.int64, device="cpu")
        number = wp.zeros(1, dtype=wp.int64, device="cpu")
        self._near = Near.empty(self._surfaces.layout, self._surfaces.positions, names, number, 0)
        self._fill = Kept(*filling(self._near, bases_of(self._surfaces.layout)), grain=FILL_GRAIN)
