"""First contact of two rigid meshes by the interval engine (engine B of the thesis), with its counters.

Question: the earliest time in [0, 1] at which two meshes on rigid motions, or on links of chains, touch.
Method:   trees of oriented boxes under the continuous 15-axis test, interval bisection at the leaves
          (Redon 2002, sections 3.3, 3.5 and 4.2 to 4.4).
Sound:    with `membership="sound"` never late, and the gap at `time` is at most the tolerance. It is slower than the
          engine of `first_contact` and stands beside it as an oracle, and to reproduce the thesis.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import warp as wp

from tangere.bvh.obb.tree import ObbTree
from tangere.bvh.recession.cones import RecessionCones
from tangere.bvh.recession.initial_check import StartCheck, StartSide, Vertices
from tangere.motion.kinematics import RigidMotion
from tangere.motion.rigid_motion import evaluated, joined_records
from tangere.motion.twist import Rest
from tangere.published.redon_intervals.options import IntervalOptions
from tangere.published.redon_intervals.result import COLUMNS, IntervalContacts, IntervalCounters
from tangere.published.redon_intervals.traversal import (
    ELEMENTARY,
    HIERARCHICAL,
    OFF,
    IntervalBody,
    IntervalSearch,
    search_trees,
)
from tangere.query.contacts.record import Status
from tangere.query.first_contact.mixed.details import contacts_at
from tangere.query.first_contact.result import FirstContact, FirstContacts
from tangere.runtime.arrays import choose_device
from tangere.runtime.errors import CapacityError, InputError, UnsupportedError
from tangere.runtime.kernel_launch import launch
from tangere.runtime.threads import using_threads
from tangere.shape import Moving
from tangere.shape.mesh.mesh import Mesh


@dataclass(eq=False)
class IntervalFront:
    """Where the last search between two meshes ended, as pairs of boxes: the next one starts there (coherence tables).

    When the front has grown to `growth` times its size after a search from the roots, the next one starts there again.
    """

    growth: float = 4.0
    pairs: np.ndarray = field(default_factory=lambda: np.zeros((1, 2), np.int32))  #: (n, 2) node numbers
    fresh: int = 0  #: its size after the last search from the roots

    @property
    def nbytes(self) -> int:
        """Memory of the table."""
        return self.pairs.nbytes

    def replace(self, pairs: np.ndarray) -> None:
        """Take over where a search ended."""
        if len(self.pairs) == 1:
            self.fresh = len(pairs)
        if len(pairs) > self.growth * self.fresh:
            pairs = np.zeros((1, 2), np.int32)
        self.pairs = pairs


def first_contact(
    a: Mesh | Moving,
    b: Mesh | Moving,
    *,
    many: bool,
    separation: float,
    tolerance: float | None,
    device: str | wp.Device | None,
    threads: int | None,
) -> FirstContact | FirstContacts:
    """The engine as printed, with the arguments and answers of `tangere.first_contact(mode="published")`."""
    if separation:
        raise InputError("mode='published' of rigid meshes takes no separation; see `IntervalOptions`")
    options = IntervalOptions.printed(tolerance=tolerance)
    found = first_contacts_by_intervals(a, b, options, device=device, threads=threads)
    if many:
        return FirstContacts(found.time, np.full(len(found), np.inf), found.status)
    return FirstContact(float(found.time[0]), np.inf, Status(int(found.status[0])), found.contacts)


def first_contacts_by_intervals(
    a: Mesh | Moving,
    b: Mesh | Moving,
    options: IntervalOptions | None = None,
    *,
    front: IntervalFront | None = None,
    cones: tuple[RecessionCones, RecessionCones] | None = None,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> IntervalContacts:
    """First contact of two rigid meshes for each of n motions; motions pair off, n with n or n with 1.

    Args:
        a, b: meshes, at rest or `mesh.moving(motion)` with a rigid motion (or one link of a chain).
        options: settings of the engine.
        front: coherence table of these two meshes, read and renewed; for one query at a time.
        cones: recession vectors of the trees of a and b; None means those `RecessionCones.of` makes. What culling
            assumes: closed meshes that face outwards (others are never culled) and do not meet at the start. Nothing
            is culled where one of them starts inside of the other.
        device: where to compute; None means CUDA if present.
        threads: CPU threads; queries run side by side.
    """
    options = options or IntervalOptions()
    device = choose_device(device)
    sides = [_side(body, name) for body, name in ((a, "a"), (b, "b"))]
    count = max(len(rows) for _, _, rows in sides)
    for (_, _, rows), name in zip(sides, ("a", "b"), strict=True):
        if len(rows) not in (1, count):
            raise InputError(f"{name} has {len(rows)} motions, the other has {count}: as many, or one")
    if front is not None and count != 1:
        raise InputError(f"a front serves one query at a time, not {count}")
    # Cosines with a box at rest are single sinusoids: let that side be the first.
    swapped = _rests(sides[1]) and not _rests(sides[0])
    first, second = (sides[1], sides[0]) if swapped else sides
    trees = [ObbTree.of(mesh, device) for mesh, _, _ in (first, second)]
    bodies = [_body(tree, side, device) for tree, side in zip(trees, (first, second), strict=True)]
    outside = np.zeros(count, bool)
    if options.recession != "off":
        given = (None, None) if cones is None else cones[::-1] if swapped else cones
        known = [
            cones or RecessionCones.of(side[0], tree, device=device)
            for cones, side, tree in zip(given, (first, second), trees, strict=True)
        ]
        for body, vectors in zip(bodies, known, strict=True):
            _attach_cones(body, vectors, count, device)
        outside = _outside((first, second), trees, known, count, device)
    extent = sum(float(np.linalg.norm(mesh.bounds[1] - mesh.bounds[0])) for mesh, _, _ in sides)

    height = trees[0].depth + trees[1].depth + 3
    stack = wp.empty((count, height), dtype=wp.vec2i, device=device)
    stack_from = wp.empty((count, height), dtype=wp.float64, device=device)
    times = wp.empty(count, dtype=wp.float64, device=device)
    hits = wp.full(count, wp.vec3i(-1, -1, -1), dtype=wp.vec3i, device=device)
    pairs = np.zeros((1, 2), np.int32) if front is None else front.pairs[:, ::-1] if swapped else front.pairs
    starts = wp.array(np.ascontiguousarray(pairs), dtype=wp.vec2i, device=device)
    capacity = 0 if front is None else max(4096, 2 * len(pairs))
    began = time.perf_counter()
    while True:
        counters = wp.zeros((count, len(COLUMNS)), dtype=wp.int64, device=device)
        front_size = wp.zeros(1, dtype=wp.int32, device=device)
        kept = wp.empty(max(capacity, 1), dtype=wp.vec2i, device=device)
        outputs = [stack, stack_from, times, hits, counters, front_size, kept]
        with using_threads(threads):
            launch(
                search_trees,
                count,
                [*bodies, _search(options, extent), wp.array(outside, dtype=wp.bool, device=device), starts, capacity],
                outputs,
                device=device,
                grain=1,
            )
        needed = int(front_size.numpy()[0])
        if needed <= capacity:
            break
        if needed > 2**31 - 1:
            raise CapacityError(f"a front of {needed} pairs does not fit")
        capacity = needed
        hits.fill_(wp.vec3i(-1, -1, -1))
        for body in bodies:
            body.stamps.zero_()
    found = times.numpy().copy()
    seconds = time.perf_counter() - began
    if front is not None:
        ends = kept.numpy()[:needed]
        front.replace((ends[:, ::-1] if swapped else ends).copy())
    hit = hits.numpy().copy()
    if swapped:
        hit = _other_way_round(hit)
    query = np.flatnonzero(np.isfinite(found))
    corners = [_placed(side, query, found[query], hit[query, k]) for k, side in enumerate(sides)]
    contacts = contacts_at(sides[0][0], corners[0], sides[1][0], corners[1], query, found[query], hit[query])
    status = np.where(np.isinf(found), Status.FREE, np.where(found > 0.0, Status.CONTACT, Status.START))
    return IntervalContacts(
        found, status.astype(np.uint8), hit[:, :2], hit[:, 2], contacts, IntervalCounters.of(counters.numpy()), seconds
    )


_RECESSION = {"off": int(OFF), "elementary": int(ELEMENTARY), "hierarchical": int(HIERARCHICAL)}
Side = tuple[Mesh, np.ndarray, np.ndarray]  # mesh, motion records, and the row (first, last) of each query in them


def _side(body: Mesh | Moving, name: str) -> Side:
    mesh, motion = (body, Rest()) if isinstance(body, Mesh) else (body.shape, body.motion)
    if not hasattr(motion, "records"):
        raise UnsupportedError(f"{name} moves by {type(motion).__name__}: the interval engine takes rigid motions")
    records = np.ascontiguousarray(motion.records()).reshape(-1)
    # A link of a chain has the motions of all joints from the ground to it, one after the other.
    ends = np.arange(0, len(records) + 1, motion.links, dtype=np.int32)
    return mesh, records, np.stack([ends[:-1], ends[1:]], axis=1)


def _placed(side: Side, query: np.ndarray, time: np.ndarray, triangle: np.ndarray) -> np.ndarray:
    """Corners of one triangle of each query at its time, (n, 3, 3)."""
    mesh, records, rows = side
    first, last = rows[np.minimum(query, len(rows) - 1)].T
    points = mesh.vertices[mesh.faces[triangle]]
    for back in range(int((last - first).max(initial=0))):
        poses = evaluated(records[last - 1 - back], time)[0]
        points = np.einsum("nij,nkj->nki", poses[:, :3, :3], points) + poses[:, None, :3, 3]
    return points


def _rests(side: Side) -> bool:
    _, records, rows = side
    moves = (records["angle"] != 0.0) | (records["velocity"] != 0.0).any(axis=1) | (records["arc"] != 0.0).any(axis=1)
    return not moves.any() and bool((rows[:, 1] - rows[:, 0] == 1).all())


def _body(tree: ObbTree, side: Side, place: wp.Device) -> Any:
    body: Any = IntervalBody()
    body.nodes, body.corners = tree.nodes, tree.corners
    body.motions = wp.array(side[1], dtype=RigidMotion, device=place)
    body.rows = wp.array(np.ascontiguousarray(side[2]), dtype=wp.vec2i, device=place)
    body.cone_first = wp.empty(0, dtype=wp.int32, device=place)
    body.cone_vectors = wp.empty(0, dtype=wp.vec3d, device=place)
    body.stamps = wp.empty((0, 0), dtype=wp.uint8, device=place)
    return body


def _attach_cones(body: Any, cones: RecessionCones, count: int, place: wp.Device) -> None:
    body.cone_first, body.cone_vectors = cones.first, cones.vectors
    body.stamps = wp.zeros((count, len(body.nodes)), dtype=wp.uint8, device=place)


def _outside(
    sides: tuple[Side, Side], trees: list[ObbTree], cones: list[RecessionCones], count: int, place: wp.Device
) -> np.ndarray:
    """(count,) where cones may be used: neither body has anything inside of the other at the start."""
    motions = wp.array(joined_records([records for _, records, _ in sides]), dtype=RigidMotion, device=place)
    parts = (
        StartSide(tree.nodes, tree.corners, Vertices.of((mesh,), [vectors], place))
        for tree, (mesh, _, _), vectors in zip(trees, sides, cones, strict=True)
    )
    # Links of chains do not use cones: their first motions do for the question.
    columns = {"motion_a": sides[0][2][:, 0], "motion_b": len(sides[0][1]) + sides[1][2][:, 0]}
    columns |= dict.fromkeys(("node_a", "node_b", "triangle_a", "triangle_b"), 0)
    return StartCheck(*parts, motions, count).outside(columns)


def _search(options: IntervalOptions, extent: float) -> Any:
    search: Any = IntervalSearch()
    search.by_time = int(options.order == "time")
    search.final_test, search.initial_test = int(options.final_test), int(options.initial_test)
    search.discrete_edge_axes = int(options.discrete_axes == 15)
    search.pass_time = int(options.pass_time)
    search.recession, search.use_stamps = _RECESSION[options.recession], int(options.stamps)
    search.subdivision, search.precision = options.subdivision(), options.precision(extent)
    search.printed_membership = int(options.membership == "printed")
    return search


def _other_way_round(hit: np.ndarray) -> np.ndarray:
    """Triangles and features of (b, a) as those of (a, b)."""
    feature = hit[:, 2]
    edges = 3 * (feature % 3) + feature // 3
    swapped = np.where(feature < 9, edges, np.where(feature < 12, feature + 3, feature - 3))
    return np.stack([hit[:, 1], hit[:, 0], np.where(feature < 0, feature, swapped)], axis=1)
