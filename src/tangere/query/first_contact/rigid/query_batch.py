"""A batch of questions laid out for kernels, and the launches that answer it.

A desk holds all that a batch of a given size about given shapes needs, packed into recorded launches: asking again
costs little more than the search. On CPU each question is searched by one thread; a question that is alone is shared by
all (`sharing`), and on CUDA answered in rounds (`rounds`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from tangere.bvh.recession import StartCheck, StartSide
from tangere.motion import COSINE, RigidMotion
from tangere.query.contacts.record import Status
from tangere.query.first_contact.rigid.bodies import Forest, MovingBodies, no_cones
from tangere.query.first_contact.rigid.conservative_advancement import RigidQuery
from tangere.query.first_contact.rigid.cuda.frontier_search import search_frontier
from tangere.query.first_contact.rigid.culling import RecessionTable
from tangere.query.first_contact.rigid.details import ContactDetail, describe
from tangere.query.first_contact.rigid.traversal import COUNTERS, NO_HIT, Candidate, EarliestHit, Places, search
from tangere.runtime import InputError, PreparedLaunch, load, run_shards, shard_ranges

__all__ = ["PreparedSearch", "RigidQueryBatch"]

#: Candidates taken best-first: beyond, a heap costs more than it saves.
BEST_FIRST = 1000
#: Queries worth a thread.
GRAIN = 4
#: float64 numbers in a cache line: threads do not write into the same one.
LINE = 8
#: The default tolerance, in sizes of the larger body.
TOLERANCE = 1e-6

# As plain numbers: looking an enum up takes as long as a small search.
_FREE, _CONTACT, _START, _UNRESOLVED = (
    np.uint8(s) for s in (Status.FREE, Status.CONTACT, Status.START, Status.UNRESOLVED)
)

#: Comes after every triangle.
NO_TRIANGLE = 2**31 - 1


class RigidQueryBatch:
    """`count` questions about the bodies of two forests."""

    def __init__(
        self, a: Forest, b: Forest, count: int, motions: int, device: wp.Device, *, recession: bool = False
    ) -> None:
        self.a, self.b, self.count, self.device, self.recession = a, b, count, device, recession
        self.cones: Any = RecessionTable()
        self.cones.first_a, self.cones.vectors_a = a.cones if recession else no_cones(device)
        self.cones.first_b, self.cones.vectors_b = b.cones if recession else no_cones(device)
        self._culled: Any = False  #: which questions use the cones
        self.queries = wp.zeros(count, dtype=RigidQuery, device=device)
        self.motions = wp.zeros(motions, dtype=RigidMotion, device=device)
        self._start = None
        if recession:
            sides = (StartSide(forest.nodes, forest.corners, forest.vertices) for forest in (a, b))
            self._start = StartCheck(*sides, self.motions, count)
        self.bests = wp.zeros(count, dtype=EarliestHit, device=device)
        self.touches = wp.zeros(count, dtype=ContactDetail, device=device)
        self.counters = wp.zeros((count, COUNTERS), dtype=wp.int64, device=device)
        self.searches: dict[Any, PreparedSearch] = {}
        # What NumPy reads and writes: the arrays themselves on the CPU (a view takes Warp 20 us to make), else copies.
        self._host_queries = self._host(self.queries)
        self._host_motions = self._host(self.motions)
        self.host_bests = self._host(self.bests)
        self.host_touches = self._host(self.touches)
        self.host_counters = self._host(self.counters)
        load(describe, device)
        self._describe = PreparedLaunch(describe, [*self.inputs, self.bests, self.touches], device)

    @property
    def inputs(self) -> list[wp.array]:
        """What every kernel about these questions takes first."""
        return [self.queries, self.motions, self.a.nodes, self.a.corners, self.b.nodes, self.b.corners]

    def ask(self, a: MovingBodies, b: MovingBodies, separation: float, tolerance: float | None) -> None:
        """Write the questions down."""
        columns: dict[str, Any] = {}
        parts, base = [], 0
        smooth: Any = False
        for side, bodies in (("a", a), ("b", b)):
            records, links = bodies.motion.records(), bodies.motion.links
            columns[f"motion_{side}"] = base + links * np.arange(self.count) if bodies.motion.shape else base
            columns[f"links_{side}"] = links
            columns[f"shape_{side}"] = 0 if bodies.shape is None else bodies.shape
            smooth = smooth | (records["kind"].reshape(-1, links) == COSINE).any(axis=1)
            base += len(records)
            parts.append(records)
        columns["smooth"] = smooth
        columns["separation"] = separation
        columns["tolerance"] = TOLERANCE * np.maximum(a.extent, b.extent) if tolerance is None else tolerance
        self.write(parts, columns)

    def write(self, motions: Sequence[np.ndarray], columns: dict[str, Any]) -> None:
        """Write motions and queries down.

        Args:
            motions: records, one part after the other.
            columns: of `RigidQuery`, and `shape_a`, `shape_b`: which shapes of the forests; numbers or shape (count,).
        """
        place = 0
        for records in motions:
            self._host_motions[place : place + len(records)] = records
            place += len(records)
        queries = self._host_queries
        shapes = columns.pop("shape_a"), columns.pop("shape_b")
        for side, forest, shape in zip("ab", (self.a, self.b), shapes, strict=True):
            queries[f"node_{side}"] = forest.first_node[shape]
            queries[f"triangle_{side}"] = forest.first_triangle[shape]
        for name, column in columns.items():
            queries[name] = column
        self._upload(self.motions, self._host_motions)
        if self._start is not None:
            self._culled = self._start.outside(queries, shapes)
        self._set_recession(self._culled)

    def search_each(self, until: np.ndarray | None = None) -> None:
        """Every question by itself: by a thread of its own on the CPU, by all of them together on CUDA.

        Args:
            until: times of the clock, (count,): later contacts are not searched for, and not told either.
        """
        if self.device.is_cuda:
            search_frontier(self, until)
            return
        ranges = shard_ranges(self.count, GRAIN)
        search = self.searches.get(len(ranges))
        if search is None:
            search = self.searches[len(ranges)] = PreparedSearch(self, len(ranges), pops=BEST_FIRST)
        self.host_bests[:] = NO_HIT
        if until is not None:
            self.host_bests["time"] = until
            self.host_bests["a"] = self.host_bests["b"] = NO_TRIANGLE
        run_shards(lambda shard, first, count: search.launch(count, first, shard), ranges)
        if until is not None:
            self.host_bests[self.host_bests["a"] == NO_TRIANGLE] = NO_HIT

    def at_start(self) -> np.ndarray:
        """What touches or overlaps at t = 0, however it moves, as `EarliestHit` records: (count,)."""
        self._set_recession(False)
        self.search_each(np.zeros(self.count))
        self._set_recession(self._culled)
        return self.host_bests.copy()

    def put(self, found: np.ndarray) -> None:
        """Put what was found out about the start, as `EarliestHit` records, in the place of what a search found."""
        rows = found["time"] <= 1.0
        if rows.any():
            self.host_bests[rows] = found[rows]
            self._upload(self.bests, self.host_bests)

    def described(self) -> np.ndarray:
        """The contact of each question as `ContactDetail` records, shape (count,)."""
        self._describe.launch(self.count, 0)
        if self.device.is_cuda:
            self.host_touches = self.touches.numpy()
        return self.host_touches

    def status(self) -> np.ndarray:
        """(count,) `Status` of each question."""
        bests = self.host_bests
        found = np.where(bests["pierced"] >= 0, _START, np.where(bests["decided"], _CONTACT, _UNRESOLVED))
        return np.where(bests["time"] <= 1.0, found, _FREE)

    def refuse_small(self, tolerance: float | None) -> None:
        """Raise if a tolerance that was asked for could not be kept."""
        if tolerance is None:
            return
        kept = self.host_touches["tolerance"]
        worst = int(np.argmax(kept))
        if kept[worst] > tolerance:
            raise InputError(
                f"tolerance {tolerance!r} is below 1e-12 of the size of query {worst}, its motion included: rounding"
                f" would hide contacts; at least {kept[worst]:.3g} is possible"
            )

    def _set_recession(self, on: Any) -> None:
        self._host_queries["recession"] = on
        self._upload(self.queries, self._host_queries)

    def _host(self, array: wp.array) -> np.ndarray:
        return array.numpy() if self.device.is_cpu else array.numpy().copy()

    def _upload(self, array: wp.array, host: np.ndarray) -> None:
        if self.device.is_cuda:
            array.assign(host)


class PreparedSearch:
    """A recorded launch of `search`, with the room its slots need."""

    def __init__(
        self,
        desk: RigidQueryBatch,
        slots: int,
        *,
        pops: int,
        heap: int | None = None,
        stop: bool = False,
        sharing: bool = False,
    ) -> None:
        """`sharing`: every slot is a job of its own about the desk's only question."""
        device = desk.device
        heap = pops + 2 if heap is None else heap
        room = heap + desk.a.depth + desk.b.depth + 2  # depth-first never holds more than that many pairs
        places: Any = Places()
        places.heap, places.pops, places.stop = heap, pops, stop
        places.room, places.by_job = room, sharing
        jobs = slots if sharing else desk.count
        self.room = room
        self.candidates = wp.empty(slots * room, dtype=Candidate, device=device)
        self.loaded = wp.zeros(jobs, dtype=wp.int32, device=device)
        self.shared = wp.full(jobs * LINE, 2.0, dtype=wp.float64, device=device)
        self.queries = wp.zeros(jobs, dtype=RigidQuery, device=device) if sharing else desk.queries
        self.bests = wp.zeros(jobs, dtype=EarliestHit, device=device) if sharing else desk.bests
        self.counters = wp.zeros((jobs, COUNTERS), dtype=wp.int64, device=device) if sharing else desk.counters
        asked = [self.queries, *desk.inputs[1:], desk.cones]
        shared = [self.loaded, self.shared, jobs if sharing else 0, LINE]
        load(search, device)
        self._recorded = PreparedLaunch(
            search, [*asked, places, *shared, self.candidates, self.bests, self.counters], device
        )

    def launch(self, count: int, first: int, shard: int) -> None:
        """Search jobs first … first + count - 1 on the calling thread."""
        self._recorded.launch(count, first, shard)
