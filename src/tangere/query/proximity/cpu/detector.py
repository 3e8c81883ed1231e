"""A whole detection on CPU, step after step, in arrays that are kept.

Describing half a million contacts takes 16 ms in memory that was used before, and 22 ms in new memory.
"""

from __future__ import annotations

import ctypes

import numpy as np
import warp as wp

from tangere.broad_phase.triangles import LARGEST, Surfaces
from tangere.bvh.lbvh import LANES
from tangere.bvh.wide import FitFrame, vertex_at
from tangere.query.proximity.contact_buffer import FILL_GRAIN, ContactBuffer
from tangere.query.proximity.cpu.details import fill_in_lanes, sort_and_fill
from tangere.query.proximity.cpu.parallel_sort import LEAST, ParallelSort
from tangere.query.proximity.cpu.search_program import PLACE_GRAIN, SearchProgram
from tangere.query.proximity.exclusion_table import ExclusionTable
from tangere.query.proximity.search_plan import SearchPlan
from tangere.runtime import SOUND, PreparedLaunch, run_phases, using_threads

wp.set_module_options(SOUND)

#: Bytes of a point.
POINT = wp.types.type_size_in_bytes(wp.vec3d)
_LARGEST = wp.constant(wp.float64(LARGEST))


class CpuDetector:
    """The searches of a plan for vertices at `positions` [m], wherever those are when contacts are looked for."""

    reads_in_place = True  #: positions may be given as any array on CPU

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
        self._searches.placement.append(
            PreparedLaunch(_copy_positions, arguments, wp.get_device("cpu"), dim=len(positions), grain=PLACE_GRAIN)
        )
        self._searches.set_frame(positions, surfaces.frame)

    def copy(self, points: wp.array, begin: int) -> None:
        """Let the vertices from `begin` on be at these points, in a third of the time of `wp.copy`."""
        ctypes.memmove((self._positions.ptr or 0) + begin * POINT, points.ptr, len(points) * POINT)

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
                pair_keys = self._excluded.removed_from(self._surfaces, self._near.pair_keys[:count])
            count = len(pair_keys)
            wp.copy(self._near.pair_keys, pair_keys, count=count)
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
        pair_keys = wp.empty(count + LEAST + 1, dtype=wp.int64, device="cpu")
        number = wp.zeros(1, dtype=wp.int64, device="cpu")
        self._near = ContactBuffer.empty(layout, self._positions, pair_keys, number, 0)
        self._fill = PreparedLaunch(fill_in_lanes, [self._near.table], wp.get_device("cpu"), dim=0, grain=FILL_GRAIN)
        if self._excluded is not None:
            return ParallelSort(layout, pair_keys[:-1], number)
        return ParallelSort(layout, pair_keys[:-1], number, sort_and_fill, [self._near.table])


@wp.kernel
def _copy_positions(
    first: int, instant: wp.array[FitFrame], positions: wp.array[wp.vec3d], unusable: wp.array[wp.int64]
):
    """Copy a position, and say if it makes no sense."""
    i = first + wp.tid()
    p = vertex_at(instant, i)
    positions[i] = p
    if not (wp.abs(p[0]) + wp.abs(p[1]) + wp.abs(p[2]) <= _LARGEST):
        unusable[0] = wp.int64(1)
