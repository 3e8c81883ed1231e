"""A whole detection on CPU, step after step, in arrays that are kept.

Describing half a million contacts takes 16 ms in memory that was used before, and 22 ms in new memory.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.bound import LANES
from tangere.partition.pipeline_surfaces import LARGEST, Surfaces
from tangere.query.proximity.eights_run import PLACE_GRAIN, EightsRun
from tangere.query.proximity.excluded import Excluded
from tangere.query.proximity.filling import settle_and_fill
from tangere.query.proximity.kept import Kept, run_together
from tangere.query.proximity.lanes_fit import vertex_at
from tangere.query.proximity.names import bases_of
from tangere.query.proximity.near import FILL_GRAIN, Near, filling
from tangere.query.proximity.ordered import LEAST, Ordered
from tangere.query.proximity.plan import Plan
from tangere.query.proximity.records import Instant
from tangere.runtime import SOUND, using_threads

wp.set_module_options(SOUND)

__all__ = ["Stepped"]

_LARGEST = wp.constant(wp.float64(LARGEST))


class Stepped:
    """The searches of a plan for vertices at `positions` [m], wherever those are when contacts are looked for."""

    def __init__(
        self, surfaces: Surfaces, plan: Plan, positions: wp.array, distance: float, excluded: Excluded | None
    ) -> None:
        self._surfaces, self._positions, self._excluded = surfaces.replaced(positions), positions, excluded
        self._searches = EightsRun(plan, surfaces.layout, distance)
        self._unusable = self._searches.unusable.numpy()
        arguments = [self._searches.instant, positions, self._searches.unusable]
        self._searches.placing.append(Kept(_take, len(positions), arguments, grain=PLACE_GRAIN))
        self._searches.look_at(positions, surfaces.frame)

    def find(self, source: wp.array, threads: int) -> Near | int:
        """The contacts; or the number of a vertex whose coordinates are not finite or too large.

        Args:
            source: (v,) vec3d on CPU [m], copied to `positions` on the way.
        """
        self._searches.read(source)
        self._unusable[0] = 0
        _, count = self._searches.find(self._make_room, threads)
        if self._unusable[0]:
            sizes = np.abs(self._positions.numpy()).sum(axis=1)
            return int(np.argmax(~(sizes <= LARGEST)))
        if self._excluded is not None:
            with using_threads(threads):
                names = self._excluded.removed_from(self._surfaces, self._near.names[:count])
            count = len(names)
            wp.copy(self._near.names, names, count=count)
            self._near.number.numpy()[0] = count
            self._fill.dim = -(-count // LANES)
            with using_threads(threads):
                run_together([self._fill])
        return self._near.with_count(count)

    def _make_room(self, count: int) -> Ordered:
        """Columns for more contacts than that, and one more than there is room for: columns that are longer than their
        contacts are known to be used again.
        """
        layout = self._surfaces.layout
        names = wp.empty(count + LEAST + 1, dtype=wp.int64, device="cpu")
        number = wp.zeros(1, dtype=wp.int64, device="cpu")
        self._near = Near.empty(layout, self._positions, names, number, 0)
        kernel, _, arguments = filling(self._near, bases_of(layout))
        self._fill = Kept(kernel, 0, arguments, grain=FILL_GRAIN)
        if self._excluded is not None:
            return Ordered(layout, names[:-1], number)
        return Ordered(layout, names[:-1], number, settle_and_fill, arguments[3:])


@wp.kernel
def _take(first: int, instant: wp.array[Instant], positions: wp.array[wp.vec3d], unusable: wp.array[wp.int64]):
    """Copy a position, and say if it makes no sense."""
    i = first + wp.tid()
    p = vertex_at(instant, i)
    positions[i] = p
    if not (wp.abs(p[0]) + wp.abs(p[1]) + wp.abs(p[2]) <= _LARGEST):
        unusable[0] = wp.int64(1)
