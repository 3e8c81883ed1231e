"""A whole detection on CPU, step after step, in arrays that are kept.

Describing half a million contacts takes 16 ms in memory that was used before, and 22 ms in new memory.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.broad_phase.triangles import LARGEST, Surfaces
from tangere.bvh.lbvh import LANES
from tangere.query.proximity.aabb_record import Instant
from tangere.query.proximity.contact_buffer import FILL_GRAIN, ContactBuffer, filling
from tangere.query.proximity.cpu.parallel_sort import LEAST, ParallelSort
from tangere.query.proximity.cpu.search_program import PLACE_GRAIN, SearchProgram
from tangere.query.proximity.cpu.simd_fit import vertex_at
from tangere.query.proximity.details import settle_and_fill
from tangere.query.proximity.exclusion_table import ExclusionTable
from tangere.query.proximity.pair_keys import bases_of
from tangere.query.proximity.search_plan import SearchPlan
from tangere.runtime import SOUND, PreparedLaunch, run_phases, using_threads

wp.set_module_options(SOUND)

__all__ = ["CpuDetector"]

_LARGEST = wp.constant(wp.float64(LARGEST))


class CpuDetector:
    """The searches of a plan for vertices at `positions` [m], wherever those are when contacts are looked for."""

    def __init__(
        self,
        surfaces: Surfaces,
        plan: SearchPlan,
        positions: wp.array,
        distance: float,
        excluded: ExclusionTable | None,
    ) -> None:
        self._surfaces, self._positions, self._excluded = surfaces.replaced(positions), positions, excluded
        self._searches = SearchProgram(plan, surfaces.layout, distance)
        self._unusable = self._searches.unusable.numpy()
        arguments = [self._searches.instant, positions, self._searches.unusable]
        self._searches.placing.append(
            PreparedLaunch(_take, arguments, wp.get_device("cpu"), dim=len(positions), grain=PLACE_GRAIN)
        )
        self._searches.look_at(positions, surfaces.frame)

    def find(self, source: wp.array, threads: int) -> ContactBuffer | int:
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
                run_phases([[self._fill]])
        return self._near.with_count(count)

    def _make_room(self, count: int) -> ParallelSort:
        """Columns for more contacts than that, and one more than there is room for: columns that are longer than their
        contacts are known to be used again.
        """
        layout = self._surfaces.layout
        names = wp.empty(count + LEAST + 1, dtype=wp.int64, device="cpu")
        number = wp.zeros(1, dtype=wp.int64, device="cpu")
        self._near = ContactBuffer.empty(layout, self._positions, names, number, 0)
        kernel, _, arguments = filling(self._near, bases_of(layout))
        self._fill = PreparedLaunch(kernel, arguments, wp.get_device("cpu"), dim=0, grain=FILL_GRAIN)
        if self._excluded is not None:
            return ParallelSort(layout, names[:-1], number)
        return ParallelSort(layout, names[:-1], number, settle_and_fill, arguments[3:])


@wp.kernel
def _take(first: int, instant: wp.array[Instant], positions: wp.array[wp.vec3d], unusable: wp.array[wp.int64]):
    """Copy a position, and say if it makes no sense."""
    i = first + wp.tid()
    p = vertex_at(instant, i)
    positions[i] = p
    if not (wp.abs(p[0]) + wp.abs(p[1]) + wp.abs(p[2]) <= _LARGEST):
        unusable[0] = wp.int64(1)
