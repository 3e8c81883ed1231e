"""A batch of first-contact queries about rigid bodies, laid out for kernels, and the launches that answer it.

A batch holds all that so many queries about given shapes need, packed into prepared launches: the next queries of the
same size cost little more than their search. On CPU each query is searched by one thread, and a long one alone by all
(`cpu.lane_launch`); on CUDA by a block each (`cuda.block_search`), or in rounds over very many
(`cuda.frontier_search`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import warp as wp

from tangere.bvh.obb import ObbTree
from tangere.bvh.recession import StartCheck, StartSide
from tangere.motion import COSINE, RigidMotion
from tangere.query.contacts.record import Status
from tangere.query.distance.traversal import BOUNDS, NUMBERS, TRIANGLE_A, TRIANGLE_B, VECTORS, find_nearest
from tangere.query.first_contact.primitives.exact_distance import triangles_nearer
from tangere.query.first_contact.rigid.bodies import Forest, MovingBodies, no_cones
from tangere.query.first_contact.rigid.conservative_advancement import Pair, QueryArrays, RigidQuery, prepare_pairs
from tangere.query.first_contact.rigid.cpu.lane_launch import LaneSearch
from tangere.query.first_contact.rigid.culling import RecessionTable
from tangere.query.first_contact.rigid.details import ContactDetail, describe
from tangere.query.first_contact.rigid.traversal import COUNTERS, MEETS, NO_HIT, NO_TRIANGLE, EarliestHit
from tangere.query.intersection.posed import as_posed, paired
from tangere.query.intersection.traversal import meshes_meet
from tangere.runtime import InputError, PreparedLaunch, fetched, launch, load, thread_count
from tangere.shape import Moving

#: On CUDA so many queries at most are searched by a block each, more in rounds over all of them (decision 16).
IN_BLOCKS = 4096
#: A distance that differs from the separation by more than this part of the coordinates needs no exact arithmetic.
_CLEAR = 1e-9
#: The default tolerance, in sizes of the larger body.
TOLERANCE = 1e-6

# As plain numbers: looking an enum up takes as long as a small search.
_FREE, _CONTACT, _START, _UNRESOLVED = (
    np.uint8(s) for s in (Status.FREE, Status.CONTACT, Status.START, Status.UNRESOLVED)
)


class RigidQueryBatch:
    """Up to `room` queries about the bodies of two forests; the first `count` are asked, all unless said.

    Args:
        motions: how many motions the queries refer to, or the array they are in.
    """

    def __init__(
        self, a: Forest, b: Forest, room: int, motions: int | wp.array, device: wp.Device, *, recession: bool = False
    ) -> None:
        self.a, self.b, self.room, self.device, self.recession = a, b, room, device, recession
        self.counting = False  #: whether searches count what they do; on CPUs they always do
        self.cones: Any = RecessionTable()
        self.cones.first_a, self.cones.vectors_a = a.cones if recession else no_cones(device)
        self.cones.first_b, self.cones.vectors_b = b.cones if recession else no_cones(device)
        self._culled: Any = False  #: which queries use the cones
        self.queries = wp.zeros(room, dtype=RigidQuery, device=device)
        own = isinstance(motions, int)
        self.motions: Any = wp.zeros(motions, dtype=RigidMotion, device=device) if own else motions
        self._start = None
        if recession:
            sides = (StartSide(forest.nodes, forest.corners, forest.vertices) for forest in (a, b))
            self._start = StartCheck(*sides, self.motions, room)
        self.pairs = wp.zeros(room, dtype=Pair, device=device)
        self.hits = wp.zeros(room, dtype=EarliestHit, device=device)
        self.details = wp.zeros(room, dtype=ContactDetail, device=device)
        self.counters = wp.zeros((room, COUNTERS), dtype=wp.int64, device=device)
        self.searches: dict[Any, Any] = {}  #: prepared, by number of threads; of CUDA by name
        # What NumPy reads and writes: the arrays themselves on the CPU (a view takes Warp 20 us to make), else mirrors
        # of them in main memory, kept for the same reason.
        self._mirrors: dict[Any, wp.array] = {}
        self.host_motions = self._host(self.motions if own else self.motions[:0])
        self._in_rows = [self._host(array) for array in (self.queries, self.hits, self.details, self.counters)]
        self._kept_tolerances = self.pairs.numpy()["tolerance"] if device.is_cpu else None
        self.take(room)
        load(describe, device)
        self.arrays = self.arrays_of(self.queries, self.motions, self.pairs)
        self._prepare = PreparedLaunch(prepare_pairs, [self.arrays], device, serial=True)
        self._prepare_one = self._prepare.over(1)
        self._describe = PreparedLaunch(describe, [self.arrays, self.hits, self.details], device, serial=True)
        self._describe_one = self._describe.over(1)

    def take(self, count: int) -> None:
        """Ask `count` queries from now on, not more than there is room for."""
        self.count = count
        self.host_queries, self.host_hits, self.host_details, self.host_counters = (
            rows[:count] for rows in self._in_rows
        )

    def take_rows(self, other: RigidQueryBatch, rows: np.ndarray) -> None:
        """Ask again what another batch about the same motions asked in `rows`, and keep what it found there."""
        self.take(len(rows))
        for own, kept, given in (
            (self.queries, self.host_queries, other.queries),
            (self.hits, self.host_hits, other.hits),
        ):
            kept[:] = fetched(given, rows)
            self._to_device(own, kept)
        self.prepare()

    def arrays_of(self, queries: wp.array, motions: wp.array, pairs: wp.array) -> Any:
        """`QueryArrays` of queries about these bodies: what every kernel about them takes first."""
        arrays: Any = QueryArrays()
        arrays.queries, arrays.motions, arrays.pairs = queries, motions, pairs
        arrays.nodes_a, arrays.corners_a = self.a.nodes, self.a.corners
        arrays.nodes_b, arrays.corners_b = self.b.nodes, self.b.corners
        return arrays

    def set_queries(self, a: MovingBodies, b: MovingBodies, separation: float, tolerance: float | None) -> None:
        """Write down what to search for: the bodies, their motions and the lengths."""
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
        self.upload(parts, columns)

    @property
    def tolerances(self) -> np.ndarray:
        """(count,) of the queries [m]."""
        return self.host_queries["tolerance"]

    def upload(self, motions: Sequence[np.ndarray], columns: dict[str, Any]) -> None:
        """Write motions and queries where the kernels read them.

        Args:
            motions: records, one part after the other.
            columns: of `RigidQuery`, and `shape_a`, `shape_b`: which shapes of the forests; numbers or shape (count,).
        """
        place = 0
        for records in motions:
            self.host_motions[place : place + len(records)] = records
            place += len(records)
        self._to_device(self.motions, self.host_motions)
        self.write_queries(columns)
        if self._start is not None:
            self._culled = self._start.outside(self.host_queries, (columns["shape_a"], columns["shape_b"]))
        self._set_recession(self._culled)
        self.prepare()

    def write_queries(self, columns: dict[str, Any]) -> None:
        """Write columns of the queries in main memory; see `upload`."""
        queries = self.host_queries
        for side, forest in (("a", self.a), ("b", self.b)):
            shape = columns[f"shape_{side}"]
            queries[f"node_{side}"] = forest.first_node[shape]
            queries[f"triangle_{side}"] = forest.first_triangle[shape]
            if self.device.is_cpu:
                queries[f"wide_{side}"] = forest.first_wide[shape]
        for name, column in columns.items():
            if name not in ("shape_a", "shape_b"):
                queries[name] = column

    def prepare(self) -> None:
        """Compute what is the same for each whole query, from motions and queries where the kernels read them."""
        if self.count == 1:
            self._prepare_one.run()
        else:
            self._prepare.launch(self.count, 0)

    def search_each(self, until: np.ndarray | None = None) -> None:
        """Search every query by itself: by a thread of its own on the CPU, by all of them together on CUDA.

        Args:
            until: times of the clock, (count,): later contacts are neither searched for nor reported.
        """
        self.reset_hits(until)
        self.search()
        self.fetched_hits()

    def fetched_hits(self) -> np.ndarray:
        """What was found, in main memory: (count,) `EarliestHit` records."""
        return self._fetched(self.hits, self.host_hits)

    def reset_hits(self, until: np.ndarray | None = None) -> None:
        """Forget what was found; a limit stands where a contact will: see `search`."""
        hits = self.host_hits
        hits[:] = NO_HIT
        if until is not None:
            hits["time"] = until
            hits["a"] = hits["b"] = NO_TRIANGLE
        self._to_device(self.hits, hits)

    def search(self, threads: int | None = None) -> None:
        """Search every query for a contact not after the `time` that stands among the hits (NO_TRIANGLE if <= 1)."""
        if self.device.is_cuda:
            self._search_on_cuda()
            return
        threads = thread_count() if threads is None else threads
        search = self.searches.get(threads)
        if search is None:
            search = self.searches[threads] = LaneSearch(self, threads)
        search.run(self.count)

    def _search_on_cuda(self) -> None:
        # Where there is no such device they are not loaded.
        if self.count <= IN_BLOCKS:
            from tangere.query.first_contact.rigid.cuda.block_search import search_blocks as search
        else:
            from tangere.query.first_contact.rigid.cuda.frontier_search import search_frontier as search
        search(self)

    def initial_hits(self) -> np.ndarray:
        """What touches or overlaps at t = 0, however it moves, as `EarliestHit` records: (count,)."""
        self._set_recession(False)
        self.search_each(np.zeros(self.count))
        self._set_recession(self._culled)
        return self.host_hits.copy()

    def override_hits(self, found: np.ndarray) -> None:
        """Put `found`, (count,) `EarliestHit` records, in the place of what a search found where its time is <= 1."""
        rows = found["time"] <= 1.0
        if rows.any():
            self.host_hits[: self.count][rows] = found[rows]
            self._to_device(self.hits, self.host_hits)

    def classify_initial_overlap(self, pair: Callable[[int], tuple[Moving, Moving]]) -> None:
        """Find out which hits at t = 0 are of bodies that meet there: their status is START, not CONTACT.

        The search sees edges go through faces by more than rounding. What lies face on face, or crosses edge on edge as
        aligned boxes do, is decided by `meshes_meet`, which is exact; only where the first contact is at t = 0. With a
        separation, bodies that are nearer meet.

        Args:
            pair: the two bodies of a query.
        """
        hits = self.host_hits[: self.count]
        if hits["time"].all():  # as a rule, and all that most queries pay
            return
        unclear = (hits["time"] == 0.0) & (hits["pierced"] < 0)
        found = hits.copy()
        found["time"][~unclear] = 2.0
        if unclear.any():  # kernels may have written them
            self._fetched(self.queries, self.host_queries)
        for row in np.flatnonzero(unclear):
            bodies, separation = pair(int(row)), float(self.host_queries["separation"][row])
            if meshes_meet(*bodies, device=self.device) or (
                separation and starts_nearer(*bodies, separation, self.device)
            ):
                found["pierced"][row] = MEETS
        self.override_hits(found)

    def contact_details(self) -> np.ndarray:
        """The contact of each query as `ContactDetail` records, shape (count,)."""
        if self.count == 1:
            self._describe_one.run()
        else:
            self._describe.launch(self.count, 0)
        return self._fetched(self.details, self.host_details)

    def status(self) -> np.ndarray:
        """(count,) `Status` of each query."""
        hits = self.host_hits
        found = np.where(hits["pierced"] >= 0, _START, np.where(hits["decided"], _CONTACT, _UNRESOLVED))
        return np.where(hits["time"] <= 1.0, found, _FREE)

    def refuse_small_tolerance(self, tolerance: float | None) -> None:
        """Raise if the tolerance cannot be kept."""
        if tolerance is None:
            return
        kept = self.pairs.numpy()["tolerance"] if self._kept_tolerances is None else self._kept_tolerances
        kept = kept[: self.count]
        worst = int(np.argmax(kept)) if len(kept) > 1 else 0
        if kept[worst] > tolerance:
            raise InputError(
                f"tolerance {tolerance!r} is below 1e-12 of the size of query {worst}, its motion included: rounding"
                f" would hide contacts; at least {kept[worst]:.3g} is possible"
            )

    def _set_recession(self, on: Any) -> None:
        self.host_queries["recession"] = on
        self._to_device(self.queries, self.host_queries)

    def _host(self, array: wp.array) -> np.ndarray:
        if self.device.is_cpu:
            return array.numpy()
        mirror = self._mirrors[id(array)] = wp.clone(array, device="cpu")
        return mirror.numpy()

    def _to_device(self, array: wp.array, host: np.ndarray) -> None:
        """Copy what `_host` returned for an array."""
        if self.device.is_cuda:
            wp.copy(array, self._mirrors[id(array)])

    def _fetched(self, array: wp.array, host: np.ndarray) -> np.ndarray:
        """What `_host` returned for an array, with what is on the device now."""
        if self.device.is_cuda:
            wp.copy(self._mirrors[id(array)], array)
            wp.synchronize_stream(wp.get_stream(self.device))
        return host


def status_of(hits: np.ndarray) -> Status:
    """Of the only one of some hits."""
    if not hits["time"].item(0) <= 1.0:
        return Status.FREE
    if hits["pierced"].item(0) >= 0:
        return Status.START
    return Status.CONTACT if hits["decided"].item(0) else Status.UNRESOLVED


def starts_nearer(a: Moving, b: Moving, separation: float, device: wp.Device) -> bool:
    """Whether bodies that do not meet are nearer than the separation at t = 0.

    Exact for the nearest triangles, in their poses as they are given; which triangles these are is known to rounding.
    """
    trees = ObbTree.of(a.shape, device), ObbTree.of(b.shape, device)
    poses = paired(as_posed(a, 0.0), as_posed(b, 0.0), device)
    numbers = wp.zeros((1, NUMBERS), dtype=wp.int32, device=device)
    vectors = wp.zeros((1, VECTORS), dtype=wp.vec3d, device=device)
    inputs = [trees[0].nodes, trees[1].nodes, trees[0].corners, trees[1].corners, poses]
    launch(find_nearest, 1, inputs, [numbers, vectors], device=device)
    apart = vectors.numpy()[0, BOUNDS, 1]
    corners = [_corners(a, numbers.numpy()[0, TRIANGLE_A]), _corners(b, numbers.numpy()[0, TRIANGLE_B])]
    if abs(apart - separation) > _CLEAR * float(np.abs(corners).max()):
        return bool(apart < separation)
    return triangles_nearer(*corners, separation)


def _corners(body: Moving, triangle: int) -> np.ndarray:
    """(3, 3) fractions: where the corners of a triangle are at t = 0."""
    exact = np.vectorize(Fraction, otypes=[object])
    pose, corners = exact(body.motion.pose(0.0)), exact(body.shape.vertices[body.shape.faces[triangle]])
    return corners @ pose[:3, :3].T + pose[:3, 3]
