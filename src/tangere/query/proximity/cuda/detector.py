"""A whole detection on CUDA as one captured graph: a step is its launch, and one read-back of a few counters.

When contacts outgrow their room the step is repeated with more.
Known as: CUDA graph capture.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import warp as wp
import warp.utils

from tangere.broad_phase.triangles import LARGEST, Surfaces
from tangere.query.proximity.contact_buffer import ContactBuffer
from tangere.query.proximity.cuda.placement import place_launch
from tangere.query.proximity.details import fill_one_by_one
from tangere.query.proximity.exclusion_table import ExclusionTable, exclusion_filter
from tangere.query.proximity.pair_keys import key_bits
from tangere.query.proximity.search_plan import EXPECTED, Branch, SearchPlan
from tangere.runtime import COUNTER_STRIDE, SOUND, CapacityError, beside, captured, launch, side_stream

wp.set_module_options(SOUND)

#: Room for this many times the contacts of the step that needed more.
GROWTH = 1.25
_LARGEST_ROOM = 2**31 - 1
_LARGEST = wp.constant(wp.float64(LARGEST))


class CudaDetector:
    """The searches of a plan for vertices at `positions` [m], wherever those are when contacts are looked for."""

    reads_in_place = False  #: the graph reads `positions`, nothing else

    def __init__(
        self,
        surfaces: Surfaces,
        plan: SearchPlan,
        positions: wp.array,
        distance: float,
        excluded: ExclusionTable | None,
    ) -> None:
        self._surfaces, self._plan, self._positions, self._distance = surfaces, plan, positions, distance
        self._excluded = None if excluded is None else excluded.inputs(surfaces.replaced(positions))
        self._lists = 1 if excluded is None else 2  # of keys: those found, and those that count
        self._flags = wp.zeros((1 + self._lists) * COUNTER_STRIDE, dtype=wp.int64, device=surfaces.device)
        self._aside = side_stream(self, surfaces.device)
        self._room: _Room | None = None
        self._graph = None

    def copy(self, points: wp.array, begin: int) -> None:
        """Let the vertices from `begin` on be at these points."""
        wp.copy(self._positions, points, dest_offset=begin, count=len(points))

    def find(self, source: wp.array, threads: int) -> ContactBuffer | int:
        """The contacts where `positions` are; or the number of a vertex that is not finite or too large.

        Args:
            source, threads: as on CPUs; here positions have been copied, and threads are those of the device.
        """
        device = self._surfaces.device
        while True:
            if self._room is None:
                self._room, self._graph = self._make_room(EXPECTED * 1024), None
            if self._graph is None:
                self._run(self._room)  # loads kernels, which a capture could not
                self._graph = captured(device, partial(self._run, self._room))
            wp.capture_launch(self._graph)
            flags = self._flags.numpy()
            if flags[0] > 0:
                return len(self._positions) - int(flags[0])
            found = flags[COUNTER_STRIDE::COUNTER_STRIDE]
            if int(found.max()) <= self._room.size:
                return replace(self._room.near, count=int(found[-1]))
            size = int(GROWTH * int(found.max())) + 1024
            if size > _LARGEST_ROOM:
                raise CapacityError(f"there are {int(found.max())} contacts, more than one array can hold")
            self._room, self._graph = self._make_room(size), None

    def _make_room(self, size: int) -> _Room:
        device = self._surfaces.device
        pair_keys = [wp.empty(2 * size, dtype=wp.int64, device=device) for _ in range(self._lists)]
        number = self._flags[-COUNTER_STRIDE:]
        near = ContactBuffer.empty(self._surfaces.layout, self._positions, pair_keys[-1][:size], number, 0)
        return _Room(size, pair_keys, wp.zeros(2 * size, dtype=wp.int32, device=device), near)

    def _run(self, room: _Room) -> None:
        """Everything a step does, without a word to the host. Edges, and vertices among faces, go side by side: a
        traversal waits for memory most of the time.
        """
        surfaces, device = self._surfaces, self._surfaces.device
        self._flags.zero_()
        counters = [self._flags[k * COUNTER_STRIDE :] for k in range(1, 1 + self._lists)]
        bits = key_bits(surfaces.layout)
        for pair_keys in room.pair_keys:
            pair_keys.fill_((1 << bits) - 1)  # beyond every key: what is not written sorts last
        pair_keys = room.pair_keys[0]
        for body in self._plan.bodies.values():
            kernel, dim, arguments = place_launch(*body, self._positions, self._distance, surfaces.frame)
            launch(kernel, dim, arguments, device=device)
        with beside(device, self._aside) as aside:
            launch(_find_unusable, len(self._positions), [self._positions], [self._flags], device=device, stream=aside)
            self._search(self._plan.vertices, [counters[0], room.size, pair_keys], aside)
            self._search(self._plan.edges, [counters[0], room.size, pair_keys])
        if self._excluded is not None:
            inputs = [0, counters[0], pair_keys, *self._excluded]
            pair_keys = room.pair_keys[1]
            launch(exclusion_filter, room.size, inputs, [counters[1], room.size, pair_keys], device=device)
        warp.utils.radix_sort_pairs(pair_keys, room.places, room.size, 0, bits)
        launch(fill_one_by_one, room.size, [room.near.table], device=device)

    def _search(self, branch: Branch, outputs: list, stream: wp.Stream | None = None) -> None:
        """Fit and search, as far as the room in `outputs` goes."""
        device = self._surfaces.device
        branch.fit(stream)
        for search in branch.searches:
            launch(search.kernel, search.dim, [0, *search.inputs], outputs, device=device, stream=stream)


@dataclass(frozen=True)
class _Room:
    """Arrays for so many contacts."""

    size: int
    pair_keys: list[wp.array]  #: (2 size,) int64: found, then those that count; sorting needs twice the room
    places: wp.array  #: (2 size,) int32: what sorting moves along
    near: ContactBuffer


@wp.kernel
def _find_unusable(first: int, positions: wp.array[wp.vec3d], flags: wp.array[wp.int64]):
    """How many vertices there are from the first one on whose coordinates are not finite or too large; else 0."""
    i = first + wp.tid()
    p = wp.abs(positions[i])
    if not (p[0] + p[1] + p[2] <= _LARGEST):
        wp.atomic_max(flags, 0, wp.int64(positions.shape[0] - i))
