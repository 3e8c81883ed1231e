"""The manifold of many bodies on CUDA, a pipeline of kernels of equal work: the contacts of `traversal`, bit for bit.

Question: where do thousands of bodies rest on the ground?
Method:   a thread that does one body waits for its neighbours' bodies at every branch. So the work is cut where it
          differs, and each stage lists the work of the next in `ManifoldBuffers`:
  1. `find_candidates`: one thread per body walks down the pyramid and lists the planar ground and the blocks of four
     cells it is near to, in the order in which the traversal meets them;
  2. `refine_candidates`: one thread per candidate, or per cell of a block, if the body is near to that, lists the face
     of planar ground, the owners on its rim, and other cells;
  3. `cull_features`: one thread per such cell lists its triangles, edges and vertex, but for those that the body cannot
     contact;
  4. `test_faces`, then `test_points` of the body over them, `test_vertices`, `test_edges`: one thread for each of
     these. Contact points go to one list; those of a body are chained;
  5. `sort_contact_points`: one thread per body gives its points slots side by side, in the order of the traversal;
  6. `group_contact_points`: one thread per body does with them what the traversal does: walls, groups, the leaders of
     each group. Groups name points by their numbers, so that little memory is moved;
  7. `lift_undecided`, then 6 again: cylinders without a contact point that may be in the ground all the same;
  8. `reduce_groups`: of the leaders, at most four are retained. It is a kernel of its own because it holds many points
     at once;
  9. `list_contacts` and `write_contacts`: every body's contacts, where a scan has made room for them.
  The host reads once on the way: how many candidates, contact points and contacts there are. The contacts of many
  bodies are written meanwhile, as if there were as many as the last time; after a bad guess they are written again.
Sound:    a list that was too short is known from its counter: the chunk is computed again with more capacity.
Known as: a wavefront, or stream-compacted, pipeline (Laine, Karras and Aila 2013, of path tracing).
"""

from __future__ import annotations

import threading
from functools import cache, lru_cache
from typing import Any

import numpy as np
import warp as wp
import warp.utils

from tangere.query.contacts.record import empty_columns
from tangere.query.manifold.cuda.buffers import (
    CANDIDATES,
    CONTACT_POINTS,
    COUNTERS,
    LANES,
    NOT_FINITE,
    SEGMENTS,
    Batch,
    CandidateNode,
    Link,
    ManifoldBuffers,
    PackedBody,
)
from tangere.query.manifold.cuda.detection import broad_phase_kernels, narrow_phase_kernels
from tangere.query.manifold.cuda.reduction import (
    DONE,
    WITH_LIFT,
    list_contacts,
    reduce_groups,
    reduction_kernels,
    sort_contact_points,
    write_contacts,
)
from tangere.query.manifold.details import Columns, ContactPoint, first_of
from tangere.query.manifold.reduction import KEPT, KEPT_FOURS, empty_walls
from tangere.runtime import CapacityError, InputError, device_of, launch
from tangere.shape.analytic import CYLINDER

#: Most bodies of a chunk, some 1 KB each, candidates, 150 bytes each, and contact points, 160 bytes each.
MOST_BODIES, MOST_CANDIDATES, MOST_CONTACT_POINTS = 1 << 20, 1 << 24, 1 << 24
#: What there is room for at first, for each body.
INITIAL = {"candidates": 16.0, "contact points": 4.0, "contacts": 2.0}
#: What a segment has room for besides, in fours: few bodies are not spread evenly.
SPARE = 16
#: So many bodies keep the device busy while the host makes arrays: room is made for that many times the contacts of the
#: last call before they are counted, and it is given up if less than this part of it is used.
MANY, GUESS, LEAST = 1 << 15, 1.0625, 0.8
#: Candidates and contact points that an index can name, of candidates 32 features each.
MOST_INDEX = 2**26


def manifold_cuda(kind: int, chosen: wp.array, inputs: list[Any], device: wp.Device) -> list[Any]:
    """The contacts of the chosen bodies, by rising place among the chosen, in one set of `Columns` or several.

    Args:
        inputs: terrains, shapes, poses, margins, hulls and worlds, on the device.
    """
    batch: Any = Batch()
    batch.chosen = chosen
    batch.terrains, batch.shapes, batch.poses, batch.margins, batch.hulls, batch.worlds = inputs
    candidates, points, contacts = (
        _Demand.of(what, kind, device) for what in ("candidates", "contact points", "contacts")
    )
    parts, first = [], 0
    while first < len(chosen):
        some = min(MOST_CANDIDATES / candidates.per_body, MOST_CONTACT_POINTS / points.per_body)
        bodies = min(len(chosen) - first, MOST_BODIES, max(int(some), 1))
        batch.first = first
        columns = _Chunk(kind, batch, bodies, device).contacts(candidates, points, contacts)
        if columns is not None:
            parts.append(columns)
            first += bodies
    return parts


@lru_cache(maxsize=4)
def index_range(count: int, device: str) -> wp.array:
    """0 … count - 1 on a device, by its alias; nobody writes to it."""
    return wp.array(np.arange(count, dtype=np.int32), dtype=wp.int32, device=device)


class _Demand:
    """How long a list should be: what the last calls needed, for each body. One crowded call is soon forgotten."""

    def __init__(self, what: str, per_body: float) -> None:
        self.what, self.per_body = what, per_body

    @staticmethod
    @cache
    def _cached(what: str, kind: int, device: str) -> _Demand:
        return _Demand(what, INITIAL[what])

    @staticmethod
    def of(what: str, kind: int, device: wp.Device) -> _Demand:
        return _Demand._cached(what, kind, device.alias)

    def capacity(self, bodies: int) -> int:
        """Of a segment."""
        capacity = 4 * (int(1.125 * self.per_body * bodies) // (4 * SEGMENTS) + SPARE)
        if capacity * SEGMENTS >= MOST_INDEX:
            raise CapacityError(f"{bodies} bodies are near to more {self.what} of the ground than one array can hold")
        return capacity

    def suffices(self, capacity: int, filled: int, bodies: int) -> bool:
        """Whether the fullest segment did with that; it is remembered."""
        needed = filled * SEGMENTS / bodies
        self.per_body = max(needed, self.per_body if filled > capacity else 0.5 * self.per_body)
        return filled <= capacity


class _Chunk:
    """Some of the bodies of a batch, taken through all stages at once.

    Arrays are made while the device has something to do.
    """

    def __init__(self, kind: int, batch: Any, bodies: int, device: wp.Device) -> None:
        self._kind, self._device = kind, device
        self._batch, self._bodies = batch, bodies
        self._buffers: Any = ManifoldBuffers()

    def contacts(self, candidates: _Demand, points: _Demand, contacts: _Demand) -> Any | None:
        """Columns by rising body; None where a list was too short, which is then known."""
        buffers = self._buffers
        buffers.candidate_capacity = candidates.capacity(self._bodies)
        buffers.contact_capacity = points.capacity(self._bodies)
        self._broad_phase()
        self._narrow_phase()
        number = self._reduce()
        ends = self._empty(self._bodies, wp.int32)
        warp.utils.array_scan(number, ends, inclusive=True)
        most = wp.zeros(4, dtype=wp.int64, device=self._device)
        self._launch(_summarize, SEGMENTS, [buffers.counts, ends, most])
        read = _AsyncRead(most)
        guess = int(GUESS * contacts.per_body * self._bodies) if self._bodies >= MANY else 0
        columns = self._write(number, ends, guess) if guess else None
        total, most_candidates, most_points, not_finite = read.numbers()
        if not_finite > 0:
            raise InputError(f"body {int(self._batch.chosen.numpy()[-not_finite])}: its pose is not finite")
        enough = candidates.suffices(buffers.candidate_capacity, most_candidates, self._bodies)
        enough &= points.suffices(buffers.contact_capacity, most_points, self._bodies)
        if not enough:
            return None
        contacts.per_body = total / self._bodies
        if columns is None or not LEAST * guess <= total <= guess:
            return self._write(number, ends, total)
        return first_of(columns, total)

    def _write(self, number: wp.array, ends: wp.array, count: int) -> Any:
        """Columns with room for so many contacts; of no use where there are more."""
        listed = self._empty(count, wp.vec3i)
        self._launch(list_contacts, self._bodies, [self._buffers, number, ends, listed])
        columns = empty_columns(Columns, count, self._device)
        self._launch(write_contacts, count, [self._batch, self._buffers, listed, ends, columns])
        return columns

    def _broad_phase(self) -> None:
        buffers, bodies = self._buffers, self._bodies
        kernels = broad_phase_kernels(self._kind)
        buffers.counts = wp.zeros(COUNTERS, dtype=wp.int64, device=self._device)
        buffers.bodies = self._empty(bodies, PackedBody)
        buffers.heads = self._empty(bodies, wp.int32)
        buffers.candidates = self._empty(buffers.candidate_capacity * SEGMENTS, CandidateNode)
        buffers.by_kind = self._empty(buffers.candidate_capacity * SEGMENTS, wp.int32)
        self._launch(kernels.find_candidates, bodies, [self._batch, buffers])
        buffers.cells = self._empty(4 * buffers.candidate_capacity * SEGMENTS, wp.vec2i)
        buffers.features = self._empty(24 * buffers.candidate_capacity * SEGMENTS, wp.int32)
        self._launch(kernels.refine_candidates, SEGMENTS * LANES, [self._batch, buffers])
        self._launch(kernels.cull_features, SEGMENTS * LANES, [self._batch, buffers])

    def _narrow_phase(self) -> None:
        buffers, points = self._buffers, self._buffers.contact_capacity * SEGMENTS
        buffers.contact_points = self._empty(points, ContactPoint)
        buffers.links = self._empty(points, Link)
        for kernel in narrow_phase_kernels(self._kind):
            self._launch(kernel, SEGMENTS * LANES, [self._batch, buffers])

    def _reduce(self) -> wp.array:
        """How many contacts each body has."""
        buffers, bodies, device = self._buffers, self._bodies, self._device
        kernels = reduction_kernels(self._kind)
        buffers.begin, buffers.end = self._empty(bodies, wp.int32), self._empty(bodies, wp.int32)
        buffers.slot_capacity = buffers.contact_capacity + 32 * -(-bodies // (32 * SEGMENTS))  # one more for each body
        count = buffers.slot_capacity * SEGMENTS
        buffers.sorted_points = self._empty(count, wp.int32)
        self._launch(sort_contact_points, bodies, [buffers])
        buffers.groups = self._empty(bodies, wp.int32)
        buffers.next_in_group, buffers.last_in_group = self._empty(count, wp.int32), self._empty(count, wp.int32)
        buffers.next_group = self._empty(count, wp.int32)
        buffers.leaders, buffers.retained = self._empty(KEPT_FOURS * count, wp.vec4i), self._empty(count, wp.vec4i)
        state = wp.zeros(bodies, dtype=wp.uint8, device=device)
        walls = empty_walls(bodies, device, listed=True)
        self._launch(kernels.group_contact_points, bodies, [buffers, walls, DONE, state])
        if self._kind == CYLINDER:
            self._launch(kernels.lift_undecided, bodies, [self._batch, buffers, state])
            self._launch(kernels.group_contact_points, bodies, [buffers, walls, WITH_LIFT, state])
        number = self._empty(bodies, wp.int32)
        self._launch(reduce_groups, bodies, [buffers, KEPT, number])
        return number

    def _empty(self, count: int, dtype: Any) -> wp.array:
        return wp.empty(count, dtype=dtype, device=self._device)

    def _launch(self, kernel: wp.Kernel, dim: int, arguments: list[Any]) -> None:
        launch(kernel, dim, arguments, device=self._device, threads=1)


class _AsyncRead:
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
def _summarize(first: int, counts: wp.array[wp.int64], ends: wp.array[int], most: wp.array[wp.int64]):
    """All that the host reads: contacts, candidates and contact points of the fullest segment, a body not finite."""
    segment = first + wp.tid()
    wp.atomic_max(most, 1, counts[8 * (CANDIDATES + segment)])
    wp.atomic_max(most, 2, counts[8 * (CONTACT_POINTS + segment)])
    if segment == 0:
        most[0] = wp.int64(ends[ends.shape[0] - 1])
        most[3] = counts[NOT_FINITE]
