"""The manifold of many bodies on CUDA, in rounds of equal work; the answers are those of `sweep`, bit for bit.

A thread that sweeps one body waits for its neighbours' bodies at every branch. So the work is cut where it differs:
1. `find_items`: one thread per body walks down the pyramid and lists the cells and planar blocks it is near to. The
   items of a body lie side by side in the order in which the sweep meets them: few are kept aside until they are
   counted, many are written on a second walk;
2. `ask_faces`, `ask_owners`: one thread per item asks its faces, one its vertex and its edges. What touches goes to one
   list; an item's touches are chained. Lists have as many segments as keep their counters apart;
3. `choose`: one thread per body goes over its touches in order and does what the sweep does with them. Groups name
   touches by their numbers, so that little memory is moved;
4. `lift_unsure`, then `choose` again: cylinders without a touching point that may be in the ground all the same;
5. `tell`: every body's contacts, where a scan has made room for them.
The host reads three numbers on the way: how many items, touches and contacts there are.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

import numpy as np
import warp as wp

from tangere.query.manifold.found import Row
from tangere.query.manifold.groups import Touch, empty_groups
from tangere.query.manifold.round_choice import ASKED, DONE, NO_ROOM, NOT_LIFTED, NOT_TRIED, choosing_of, tell
from tangere.query.manifold.round_items import COUNTERS, LACKING, SEGMENTS, WRONG, Batch, Item, Story, asking_of
from tangere.query.manifold.walls import empty_walls
from tangere.runtime import CapacityError, InputError, launch, offsets, where
from tangere.shape.analytic import CYLINDER

__all__ = ["numbers", "swept_in_rounds"]

#: Bodies that are done at once at most, some 2 KB each, and items, 44 bytes each.
BODIES, ITEMS = 1 << 20, 1 << 26
#: Groups of normals a body has room for at first, and how much more room is made where that does not suffice.
ROOM, MORE_ROOM = 8, 8
#: Items and touches of a body there is room for at first.
FEW_ITEMS, FEW_TOUCHES = 16.0, 4.0
#: What a segment has room for besides: few bodies are not spread evenly.
SPARE = 64


def swept_in_rounds(kind: int, chosen: wp.array, inputs: list[Any], device: wp.Device) -> list[wp.array]:
    """The rows of the chosen bodies, by rising place among the chosen, in one array or several.

    Args:
        inputs: terrains, shapes, poses, margins, hulls and worlds, on the device.
    """
    batch: Any = Batch()
    batch.chosen = chosen
    batch.terrains, batch.shapes, batch.poses, batch.margins, batch.hulls, batch.worlds = inputs
    items, touches = _Need.of("items", kind, device), _Need.of("touches", kind, device)
    parts, first = [], 0
    while first < len(chosen):
        bodies = min(len(chosen) - first, BODIES, max(int(ITEMS / items.of_a_body), 1))
        rows = _Part(kind, batch, first, bodies, device).rows(items, touches)
        if rows is not None:
            parts.append(rows)
            first += bodies
    return parts


@lru_cache(maxsize=4)
def numbers(count: int, device: str) -> wp.array:
    """0 … count - 1 on a device, by its alias; nobody writes to it."""
    return wp.array(np.arange(count, dtype=np.int32), dtype=wp.int32, device=device)


class _Need:
    """How long a list should be: what the last calls needed, for each body. One crowded call is soon forgotten."""

    def __init__(self, what: str, of_a_body: float) -> None:
        self.what, self.of_a_body = what, of_a_body

    @staticmethod
    @cache
    def _kept(what: str, kind: int, device: str) -> _Need:
        return _Need(what, FEW_ITEMS if what == "items" else FEW_TOUCHES)

    @staticmethod
    def of(what: str, kind: int, device: wp.Device) -> _Need:
        return _Need._kept(what, kind, device.alias)

    def capacity(self, bodies: int) -> int:
        """Of a segment."""
        capacity = int(1.125 * self.of_a_body * bodies) // SEGMENTS + SPARE
        if capacity * SEGMENTS >= 2**30:
            raise CapacityError(f"{bodies} bodies are near to more {self.what} of the ground than one array can hold")
        return capacity

    def suffices(self, capacity: int, filled: int, bodies: int) -> bool:
        """Whether the fullest segment did with that; it is remembered."""
        needed = filled * SEGMENTS / bodies
        self.of_a_body = max(needed, self.of_a_body if filled > capacity else 0.5 * self.of_a_body)
        return filled <= capacity


class _Part:
    """Some of the bodies of a batch, on the way to their rows."""

    def __init__(self, kind: int, batch: Any, first: int, bodies: int, device: wp.Device) -> None:
        self._asking, self._choosing = asking_of(kind), choosing_of(kind)
        self._kind, self._device = kind, device
        self._batch, self._first, self._bodies = batch, first, bodies
        self._number = wp.zeros(bodies, dtype=int, device=device)
        self._state = wp.zeros(bodies, dtype=wp.uint8, device=device)

    def rows(self, items: _Need, touches: _Need) -> wp.array | None:
        """The rows by rising body; None where a list was too short, which is then known."""
        story = self._story(items.capacity(self._bodies), touches.capacity(self._bodies))
        for again in (0, 1):
            self._launch(self._asking.find_items, self._bodies, [self._batch, self._first, story, again])
        self._launch(self._asking.ask_faces, len(story.items), [self._batch, story])
        self._launch(self._asking.ask_owners, len(story.items), [self._batch, story])
        settled = self._settled(story)
        starts, total = offsets(self._number)
        counts = story.counts.numpy()
        if counts[WRONG] > 0:
            raise InputError(f"body {int(self._batch.chosen.numpy()[-int(counts[WRONG])])}: its pose is not finite")
        enough = items.suffices(story.item_room, int(counts[: 8 * SEGMENTS].max()), self._bodies)
        enough &= touches.suffices(story.room, int(counts[8 * SEGMENTS : 16 * SEGMENTS].max()), self._bodies)
        if not enough:
            return None
        rows = wp.empty(total, dtype=Row, device=self._device)
        for which, groups in settled:
            self._launch(tell, len(which), [self._batch, self._first, which, starts, groups, rows])
        return rows

    def _story(self, item_room: int, room: int) -> Any:
        device, items, touches = self._device, item_room * SEGMENTS, room * SEGMENTS
        story: Any = Story()
        story.item_room, story.room = item_room, room
        story.items = wp.empty(items, dtype=Item, device=device)
        story.starts = wp.empty(self._bodies, dtype=int, device=device)
        story.ends = wp.empty(self._bodies, dtype=int, device=device)
        story.on_faces = wp.empty(items, dtype=int, device=device)
        story.on_ridges = wp.empty(items, dtype=int, device=device)
        story.touches = wp.empty(touches, dtype=Touch, device=device)
        story.after = wp.empty(touches, dtype=int, device=device)
        story.is_wall = wp.empty(touches, dtype=wp.uint8, device=device)
        story.counts = wp.zeros(COUNTERS, dtype=wp.int64, device=device)
        return story

    def _settled(self, story: Any) -> list[tuple[wp.array, Any]]:
        """The groups of all bodies: those for whom there was room, then the others with more room, and so on."""
        device, room, lacking = self._device, ROOM, 0
        unknown = NOT_TRIED if self._kind == CYLINDER else NOT_LIFTED
        lifted = wp.full(self._bodies, unknown, dtype=wp.int32, device=device)
        which = numbers(self._bodies, device.alias)
        settled = []
        while True:
            groups = empty_groups(len(which), room, device, story.touches)
            walls = empty_walls(len(which), device, listed=True)
            known = [self._batch, self._first, story, which, self._state, self._number, lifted]
            self._launch(self._choosing.choose, len(which), [*known, DONE, groups, walls])
            if self._kind == CYLINDER:
                self._launch(self._choosing.lift_unsure, len(which), known)
                self._launch(self._choosing.choose, len(which), [*known, ASKED, groups, walls])
            settled.append((which, groups))
            without_room = int(story.counts[LACKING : LACKING + 1].numpy()[0])
            if without_room == lacking:
                return settled
            lacking, room = without_room, room * MORE_ROOM
            which = where(self._state, NO_ROOM)
            self._state.zero_()

    def _launch(self, kernel: wp.Kernel, dim: int, arguments: list[Any]) -> None:
        launch(kernel, dim, arguments, device=self._device, threads=1)
