"""The manifold of many bodies on CUDA, in rounds of equal work; the answers are those of `sweep`, bit for bit.

A thread that sweeps one body waits for its neighbours' bodies at every branch. So the work is cut where it differs:
1. `find_items`: one thread per body walks down the pyramid and lists the planar ground and the blocks of four cells it
   is near to, in the order in which the sweep meets them;
2. `look_closely`: one thread per item, or per cell of a block, if the body is near to that, lists the face of planar
   ground, the owners on its rim, and other cells;
3. `sift`: one thread per such cell lists its triangles, edges and vertex, but for those that the body cannot touch;
4. `ask_faces`, then `ask_points` of the body over them, `ask_vertices`, `ask_edges`: one thread for each of these. What
   touches goes to one list; the touches of a body are chained;
5. `put_in_order`: one thread per body gives its touches places side by side, in the order of the sweep;
6. `choose`: one thread per body does with them what the sweep does: walls, groups, the leaders of each group. Groups
   name touches by their numbers, so that little memory is moved;
7. `lift_unsure`, then `choose` again: cylinders without a touching point that may be in the ground all the same;
8. `reduce`: of the leaders, at most four stay. It is a kernel of its own because it holds many points at once;
9. `pick` and `tell`: every body's contacts, where a scan has made room for them.
The host reads once on the way: how many items, touches and contacts there are. Many bodies are told meanwhile, as if
they had as many contacts as the last time; if that was a bad guess, they are told again.
"""

from __future__ import annotations

import threading
from functools import cache, lru_cache
from typing import Any

import numpy as np
import warp as wp
import warp.utils

from tangere.query.manifold.contact_point import ContactPoint
from tangere.query.manifold.cuda.broad_phase import finding_of
from tangere.query.manifold.cuda.buffers import (
    COUNTERS,
    ITEM_COUNT,
    LANES,
    SEGMENTS,
    TOUCH_COUNT,
    WRONG,
    Batch,
    Item,
    Link,
    ManifoldBuffers,
    PackedBody,
)
from tangere.query.manifold.cuda.narrow_phase import asking_of
from tangere.query.manifold.cuda.reduction import ASKED, DONE, choosing_of, pick, reduce, tell
from tangere.query.manifold.cuda.sort import put_in_order
from tangere.query.manifold.details import empty_columns, first_of
from tangere.query.manifold.features.wall import empty_walls
from tangere.query.manifold.reduction import KEPT, KEPT_FOURS
from tangere.runtime import CapacityError, InputError, device_of, launch
from tangere.shape.analytic import CYLINDER

__all__ = ["manifold_cuda", "numbers"]

#: Bodies that are done at once at most, some 1 KB each, items, 150 bytes each, and touches, 160 bytes each.
BODIES, ITEMS, TOUCHES = 1 << 20, 1 << 24, 1 << 24
#: What there is room for at first, of a body.
FEW = {"items": 16.0, "touches": 4.0, "contacts": 2.0}
#: What a segment has room for besides, in fours: few bodies are not spread evenly.
SPARE = 16
#: So many bodies keep the device busy while the host makes arrays: room is made for that many times the contacts of the
#: last call before they are counted, and it is given up if less than this part of it is used.
MANY, GUESS, LEAST = 1 << 15, 1.0625, 0.8
#: Items and touches that an index can name, of items 32 features each.
MOST = 2**26


def manifold_cuda(kind: int, chosen: wp.array, inputs: list[Any], device: wp.Device) -> list[Any]:
    """The contacts of the chosen bodies, by rising place among the chosen, in one set of `Columns` or several.

    Args:
        inputs: terrains, shapes, poses, margins, hulls and worlds, on the device.
    """
    batch: Any = Batch()
    batch.chosen = chosen
    batch.terrains, batch.shapes, batch.poses, batch.margins, batch.hulls, batch.worlds = inputs
    items, touches, contacts = (_Need.of(what, kind, device) for what in ("items", "touches", "contacts"))
    parts, first = [], 0
    while first < len(chosen):
        some = min(ITEMS / items.of_a_body, TOUCHES / touches.of_a_body)
        bodies = min(len(chosen) - first, BODIES, max(int(some), 1))
        batch.first = first
        columns = _Part(kind, batch, bodies, device).contacts(items, touches, contacts)
        if columns is not None:
            parts.append(columns)
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
        return _Need(what, FEW[what])

    @staticmethod
    def of(what: str, kind: int, device: wp.Device) -> _Need:
        return _Need._kept(what, kind, device.alias)

    def capacity(self, bodies: int) -> int:
        """Of a segment."""
        capacity = 4 * (int(1.125 * self.of_a_body * bodies) // (4 * SEGMENTS) + SPARE)
        if capacity * SEGMENTS >= MOST:
            raise CapacityError(f"{bodies} bodies are near to more {self.what} of the ground than one array can hold")
        return capacity

    def suffices(self, capacity: int, filled: int, bodies: int) -> bool:
        """Whether the fullest segment did with that; it is remembered."""
        needed = filled * SEGMENTS / bodies
        self.of_a_body = max(needed, self.of_a_body if filled > capacity else 0.5 * self.of_a_body)
        return filled <= capacity


class _Part:
    """Some of the bodies of a batch, on the way to their contacts.

    Arrays are made while the device has something to do.
    """

    def __init__(self, kind: int, batch: Any, bodies: int, device: wp.Device) -> None:
        self._kind, self._device = kind, device
        self._batch, self._bodies = batch, bodies
        self._story: Any = ManifoldBuffers()

    def contacts(self, items: _Need, touches: _Need, contacts: _Need) -> Any | None:
        """Columns by rising body; None where a list was too short, which is then known."""
        story = self._story
        story.item_room, story.room = items.capacity(self._bodies), touches.capacity(self._bodies)
        self._find()
        self._ask()
        number = self._choose()
        ends = self._empty(self._bodies, wp.int32)
        warp.utils.array_scan(number, ends, inclusive=True)
        most = wp.zeros(4, dtype=wp.int64, device=self._device)
        self._launch(_sum_up, SEGMENTS, [story.counts, ends, most])
        read = _Read(most)
        guess = int(GUESS * contacts.of_a_body * self._bodies) if self._bodies >= MANY else 0
        columns = self._tell(number, ends, guess) if guess else None
        total, most_items, most_touches, wrong = read.numbers()
        if wrong > 0:
            raise InputError(f"body {int(self._batch.chosen.numpy()[-wrong])}: its pose is not finite")
        enough = items.suffices(story.item_room, most_items, self._bodies)
        enough &= touches.suffices(story.room, most_touches, self._bodies)
        if not enough:
            return None
        contacts.of_a_body = total / self._bodies
        if columns is None or not LEAST * guess <= total <= guess:
            return self._tell(number, ends, total)
        return first_of(columns, total)

    def _tell(self, number: wp.array, ends: wp.array, count: int) -> Any:
        """Columns with room for so many contacts; of no use where there are more."""
        picks = self._empty(count, wp.vec3i)
        self._launch(pick, self._bodies, [self._story, number, ends, picks])
        columns = empty_columns(count, self._device)
        self._launch(tell, count, [self._batch, self._story, picks, ends, columns])
        return columns

    def _find(self) -> None:
        story, bodies = self._story, self._bodies
        kernels = finding_of(self._kind)
        story.counts = wp.zeros(COUNTERS, dtype=wp.int64, device=self._device)
        story.noted = self._empty(bodies, PackedBody)
        story.heads = self._empty(bodies, wp.int32)
        story.items = self._empty(story.item_room * SEGMENTS, Item)
        story.near = self._empty(story.item_room * SEGMENTS, wp.int32)
        self._launch(kernels.find_items, bodies, [self._batch, story])
        story.cells = self._empty(4 * story.item_room * SEGMENTS, wp.vec2i)
        story.features = self._empty(24 * story.item_room * SEGMENTS, wp.int32)
        self._launch(kernels.look_closely, SEGMENTS * LANES, [self._batch, story])
        self._launch(kernels.sift, SEGMENTS * LANES, [self._batch, story])

    def _ask(self) -> None:
        story, touches = self._story, self._story.room * SEGMENTS
        story.touches = self._empty(touches, ContactPoint)
        story.links = self._empty(touches, Link)
        for kernel in asking_of(self._kind):
            self._launch(kernel, SEGMENTS * LANES, [self._batch, story])

    def _choose(self) -> wp.array:
        """How many contacts each body has."""
        story, bodies, device = self._story, self._bodies, self._device
        kernels = choosing_of(self._kind)
        story.begin, story.end = self._empty(bodies, wp.int32), self._empty(bodies, wp.int32)
        story.place_room = story.room + 32 * -(-bodies // (32 * SEGMENTS))  # one more for each body
        count = story.place_room * SEGMENTS
        story.touch = self._empty(count, wp.int32)
        self._launch(put_in_order, bodies, [story])
        story.groups = self._empty(bodies, wp.int32)
        story.fellow, story.last = self._empty(count, wp.int32), self._empty(count, wp.int32)
        story.next_group = self._empty(count, wp.int32)
        story.kept, story.stay = self._empty(KEPT_FOURS * count, wp.vec4i), self._empty(count, wp.vec4i)
        state = wp.zeros(bodies, dtype=wp.uint8, device=device)
        walls = empty_walls(bodies, device, listed=True)
        self._launch(kernels.choose, bodies, [story, walls, DONE, state])
        if self._kind == CYLINDER:
            self._launch(kernels.lift_unsure, bodies, [self._batch, story, state])
            self._launch(kernels.choose, bodies, [story, walls, ASKED, state])
        number = self._empty(bodies, wp.int32)
        self._launch(reduce, bodies, [story, KEPT, number])
        return number

    def _empty(self, count: int, dtype: Any) -> wp.array:
        return wp.empty(count, dtype=dtype, device=self._device)

    def _launch(self, kernel: wp.Kernel, dim: int, arguments: list[Any]) -> None:
        launch(kernel, dim, arguments, device=self._device, threads=1)


class _Read:
    """A few numbers on their way to the host; what is launched in the meantime need not wait for them."""

    def __init__(self, numbers: wp.array) -> None:
        device = device_of(numbers)
        self._numbers, self._copied = numbers, None
        if device.is_cuda:
            self._numbers = _pinned(device.alias, threading.get_ident())
            wp.copy(self._numbers, numbers)
            self._copied = wp.get_stream(device).record_event()

    def numbers(self) -> list[int]:
        if self._copied is not None:
            wp.synchronize_event(self._copied)
        return self._numbers.numpy().tolist()


@lru_cache(maxsize=64)
def _pinned(device: str, thread: int) -> wp.array:
    """Room on the host for four numbers that one thread awaits from a device."""
    return wp.empty(4, dtype=wp.int64, device="cpu", pinned=True)


@wp.kernel(enable_backward=False)
def _sum_up(first: int, counts: wp.array[wp.int64], ends: wp.array[int], most: wp.array[wp.int64]):
    """All that the host reads: contacts, items and touches of the fullest segment, a body that is not finite."""
    segment = first + wp.tid()
    wp.atomic_max(most, 1, counts[8 * (ITEM_COUNT + segment)])
    wp.atomic_max(most, 2, counts[8 * (TOUCH_COUNT + segment)])
    if segment == 0:
        most[0] = wp.int64(ends[ends.shape[0] - 1])
        most[3] = counts[WRONG]
