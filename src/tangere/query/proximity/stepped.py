"""A whole detection on CPU, step after step, in arrays that are kept.

Describing half a million contacts takes 16 ms in memory that was used before, and 22 ms in new memory.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import warp as wp

from tangere.bound import LANES
from tangere.partition.pipeline_surfaces import LARGEST, Surfaces
from tangere.query.proximity.eights_run import EightsRun, Room
from tangere.query.proximity.excluded import Excluded
from tangere.query.proximity.kept import Kept, run_together
from tangere.query.proximity.names import bases_of
from tangere.query.proximity.near import FILL_GRAIN, Near, filling
from tangere.query.proximity.ordered import LEAST, Ordered
from tangere.query.proximity.plan import Plan

__all__ = ["Stepped"]


class Stepped:
    """The searches of a plan for vertices at `positions` [m], wherever those are when contacts are looked for."""

    def __init__(
        self, surfaces: Surfaces, plan: Plan, positions: wp.array, distance: float, excluded: Excluded | None
    ) -> None:
        self._surfaces, self._excluded = surfaces.replaced(positions), excluded
        self._rows = positions.numpy()
        self._searches = EightsRun(plan, distance)
        self._searches.look_at(positions, surfaces.frame)

    def find(self) -> Near | int:
        """The contacts; or the number of a vertex whose coordinates are not finite or too large."""
        rows = self._rows
        if not max(rows.max(initial=0.0), -rows.min(initial=0.0)) <= LARGEST / 3.0:  # NaN is not
            unusable = ~(np.abs(rows).sum(axis=1) <= LARGEST)
            if unusable.any():
                return int(np.argmax(unusable))
        _, count = self._searches.find(self._make_room)
        if self._excluded is not None:
            names = self._excluded.removed_from(self._surfaces, self._near.names[:count])
            count = len(names)
            wp.copy(self._near.names, names, count=count)
            self._near.number.numpy()[0] = count
            self._fill.dim = -(-count // LANES)
            run_together([self._fill])
        return replace(self._near, count=count)

    def _make_room(self, count: int) -> Room:
        """Columns for more contacts than that, as longer ones are known to be used again."""
        layout = self._surfaces.layout
        names = wp.empty(count + LEAST, dtype=wp.int64, device="cpu")
        number = wp.zeros(1, dtype=wp.int64, device="cpu")
        near = Near.empty(layout, self._surfaces.positions, names, number, 0)
        ordered = Ordered(layout, names, number)
        kernel, _, arguments = filling(near, bases_of(layout))
        fill = Kept(kernel, ordered.eights, arguments, grain=FILL_GRAIN)
        self._near, self._fill = near, fill
        return ordered, [] if self._excluded is not None else [fill]
