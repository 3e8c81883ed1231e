"""First contact of two meshes whatever moves them: deforming against turning, or any two that offer bounds of a point.

Question: the earliest time in [0, 1] at which two moving meshes touch, one of them deforming.
Method:   the step is cut into intervals, left half first, until few triangles have swept boxes that meet. For each
          interval the boxes of all vertices are bounded anew and gathered up a tree that was built once for the
          topology; the pairs that are left run the elementary interval tests (Redon 2002, section 3.3.2).
          A motion is asked for nothing but bounds of points and edges over an interval, and positions.
Sound:    never late; the gap at the answer is at most the tolerance. The first interval with a contact holds the first.
Known as: interval bisection, continuous collision detection by interval arithmetic (Snyder et al. 1993; Redon,
          Kheddar and Coquillart 2002).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import warp as wp

from tangere.broad_phase.deforming import Step
from tangere.bvh.obb import ObbNode, ObbTree
from tangere.motion import Linear, Rest, RigidMotion
from tangere.motion.bounds import IntervalBox, boxes_apart, linear_bounds, union_of_boxes
from tangere.query.contacts.record import Contacts, Status
from tangere.query.first_contact.deforming.initial_overlap import first_overlap
from tangere.query.first_contact.mixed.details import contacts_at
from tangere.query.first_contact.mixed.motion_chain import MotionRow, last_span, point_bounds_over
from tangere.query.first_contact.mixed.narrow_phase import ALL_FEATURES, MovingCorners, Precision, first_touch
from tangere.query.first_contact.options import Start, check_start
from tangere.query.first_contact.result import FirstContact
from tangere.runtime import (
    SOUND,
    InputError,
    UnsupportedError,
    as_points,
    choose_device,
    collect,
    launch,
    positive,
    reserve_slots,
    using_threads,
)
from tangere.shape import Moving
from tangere.shape.mesh import Mesh

wp.set_module_options(SOUND | {"max_unroll": 1})

#: An interval is halved while more pairs of triangles than this, or than this part of all triangles, are left in it …
FEW_PAIRS = 256
FEW_PART = 0.25
#: … but no shorter than this.
SHORTEST_INTERVAL = 2.0**-12
#: The first contact of this many pairs, taken at regular distances, bounds the search of the others.
SAMPLE = 64
#: … at first of those that take no more intervals than this: faces that slide in their common plane take all there are,
#: most of them after the contact.
QUICK = 256
#: Beyond so many intervals a pair of triangles counts as touching.
MOST_INTERVALS = 100_000
ZERO = wp.constant(wp.float64(0.0))


def mixed_first_contact(
    a: Moving,
    b: Moving,
    *,
    start: Start = "checked",
    separation: float = 0.0,
    tolerance: float | None = None,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> FirstContact:
    """The earliest time in [0, 1] at which a deforming and a rigid mesh touch, one motion each, in either order.

    Args:
        start: "trusted" skips the search for overlap at t = 0.
        separation: must be 0: how near is not searched for, only contact.
        tolerance: at the returned time the distance is at most that [m]; None means 1e-6 of the size of both.
        device, threads: as for `first_contact_by_bounds`.
    """
    if separation:
        raise InputError("first contact of a deforming and a rigid mesh takes no separation")
    check_start(start)
    if start == "checked":
        overlap = first_overlap(Step.of([a.at(0.0), b.at(0.0)], device))
        if overlap is not None:
            return FirstContact(0.0, 0.0, Status.START, overlap)
    found = first_contact_by_bounds(a, b, tolerance=tolerance, device=device, threads=threads)
    if start == "checked" and found.status == Status.START:
        # Within tolerance at t = 0, but it was just decided that nothing meets there.
        return replace(found, status=Status.CONTACT)
    return found


def first_contact_by_bounds(
    a: Mesh | Moving,
    b: Mesh | Moving,
    *,
    tolerance: float | None = None,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> FirstContact:
    """First contact of two meshes, each at rest, in `Linear` motion, or in one rigid motion (or on a link of a chain).

    Args:
        a, b: the meshes.
        tolerance: how far points may go in the interval that is reported [m]; None means 1e-6 of the size of both.
        device: where to compute; None means CUDA if present.
        threads: CPU threads.
    """
    device = choose_device(device)
    with using_threads(threads):
        sides = [_Side.of(body, name, device) for body, name in ((a, "a"), (b, "b"))]
        extent = sum(side.mesh.extent for side in sides)
        space = 1e-6 * extent if tolerance is None else positive(tolerance, "tolerance")
        found, hit, _ = _search(sides, _precision(space, MOST_INTERVALS), device)
    contacts = Contacts()
    if np.isfinite(found):
        corners = [side.placed(found)[side.mesh.faces[hit[k]]][None] for k, side in enumerate(sides)]
        contacts = contacts_at(
            sides[0].mesh, corners[0], sides[1].mesh, corners[1], np.zeros(1, np.int32), np.array([found]), hit[None]
        )
    status = Status.FREE if np.isinf(found) else Status.CONTACT if found > 0.0 else Status.START
    return FirstContact(found, np.inf, status, contacts)


def _precision(space: float, most: int) -> Any:
    precision: Any = Precision()
    precision.space, precision.time, precision.most = space, 1.0, most
    return precision


@dataclass(frozen=True)
class _Side:
    """A mesh, its tree, and its motion on a device."""

    mesh: Mesh
    moving: Moving
    nodes: wp.array  #: `ObbNode` in preorder; only the shape of the tree is used
    skip: wp.array  #: node after the subtree of each
    leaves: wp.array  #: node of each triangle
    points: Any  #: `_Points`

    @staticmethod
    def of(body: Mesh | Moving, name: str, place: wp.Device) -> _Side:
        moving = body.moving(Rest()) if isinstance(body, Mesh) else body
        mesh, motion = moving.shape, moving.motion
        straight = isinstance(motion, Linear)
        if not straight and not hasattr(motion, "records"):
            raise UnsupportedError(
                f"{name} moves by {type(motion).__name__}: known are rest, Linear, and rigid motions"
            )
        points: Any = _Points()
        points.straight = int(straight)
        points.start = as_points(mesh.vertices, f"{name}: vertices", place)
        points.end = as_points(motion.end, f"{name}: end positions", place) if straight else points.start
        records = np.zeros(1, RigidMotion.numpy_dtype()) if straight else motion.records().reshape(-1)
        if not straight and len(records) != motion.links:
            raise InputError(f"{name} has {len(records) // motion.links} motions: one at a time")
        points.motions = wp.array(np.ascontiguousarray(records), dtype=RigidMotion, device=place)
        points.faces = wp.array(mesh.faces, dtype=wp.vec3i, device=place)
        nodes, skip, leaves = _tree(mesh, place)
        return _Side(mesh, moving, nodes, skip, leaves, points)

    def placed(self, at: float) -> np.ndarray:
        return self.moving.motion.positions(self.mesh.vertices, at).reshape(-1, 3)

    def boxes(self, t0: float, t1: float) -> wp.array:
        """Bounds of every node over [t0, t1]."""
        place = self.nodes.device
        vertices = wp.empty(len(self.points.start), dtype=IntervalBox, device=place)
        launch(_vertex_bounds, len(vertices), [self.points, t0, t1], [vertices], device=place, grain=2048)
        boxes = wp.empty(len(self.nodes), dtype=IntervalBox, device=place)
        launch(_gather_up, 1, [self.nodes, self.points.faces, vertices], [boxes], device=place)
        return boxes


def _tree(mesh: Mesh, place: wp.Device) -> tuple[wp.array, wp.array, wp.array]:
    """A tree made for the first positions this topology was seen with, and kept with it."""
    key = ("interval tree", place.alias)
    cache = mesh.topology.cache
    if key not in cache:
        nodes = ObbTree.of(mesh, place).nodes
        skip = wp.empty(len(nodes), dtype=wp.int32, device=place)
        leaves = wp.empty(len(mesh.faces), dtype=wp.int32, device=place)
        launch(_link, 1, [nodes], [skip, leaves], device=place)
        cache[key] = nodes, skip, leaves
    return cache[key]


def _search(sides: list[_Side], precision: Any, place: wp.Device) -> tuple[float, np.ndarray, int]:
    """When triangles first meet (inf: never), which two and with what feature, and how many intervals that took."""
    a, b = sides
    few = max(FEW_PAIRS, int(FEW_PART * (len(a.mesh.faces) + len(b.mesh.faces))))
    waiting, lower, intervals = [1.0], 0.0, 0
    while waiting:
        upper = waiting[-1]
        inputs = [a.leaves, a.boxes(lower, upper), b.nodes, b.skip, b.boxes(lower, upper)]
        pairs = collect(_meeting, len(a.leaves), inputs, wp.vec2i, device=place, grain=256)
        if len(pairs) > few and upper - lower > SHORTEST_INTERVAL:
            waiting.append(0.5 * (lower + upper))
            continue
        found, hit, used = _touch(a, b, pairs, lower, upper, precision, place)
        intervals += used
        if np.isfinite(found):
            return found, hit, intervals
        waiting.pop()
        lower = upper
    return np.inf, np.full(3, -1), intervals


def _touch(a: _Side, b: _Side, pairs: wp.array, t0: float, t1: float, precision: Any, place: wp.Device):
    """Earliest contact of the pairs, ties to the smallest triangles; which one, and how many intervals it took."""
    count = len(pairs)
    if not count:
        return np.inf, np.full(3, -1), 0
    times = wp.full(count, np.inf, dtype=wp.float64, device=place)
    features = wp.full(count, -1, dtype=wp.int32, device=place)
    used = wp.zeros(count, dtype=wp.int32, device=place)

    def search(stride: int, until: float, quick: bool = False) -> float:
        """Every so many pairs; the time of the first contact so far."""
        limits = _precision(precision.space, QUICK) if quick else precision
        inputs = [a.points, b.points, pairs, stride, t0, until, limits, int(quick)]
        launch(_touch_pairs, -(-count // stride), inputs, [times, features, used], device=place, grain=16)
        return min(t1, float(times.numpy().min()))

    sparse = max(count // SAMPLE, 1)
    until = search(sparse, t1, quick=True)
    if until == t1 and sparse > 1:  # no bound yet
        until = search(sparse, t1)
    search(1, until)
    time_of, pair = times.numpy(), pairs.numpy()
    best = int(np.lexsort((pair[:, 1], pair[:, 0], time_of))[0])
    hit = np.array([pair[best, 0], pair[best, 1], features.numpy()[best]])
    return float(time_of[best]), hit, int(used.numpy().sum())


@wp.struct
class _Points:
    """The vertices of a body: straight paths from start to end, or places in the frame the motions carry."""

    straight: int
    start: wp.array[wp.vec3d]
    end: wp.array[wp.vec3d]
    faces: wp.array[wp.vec3i]
    motions: wp.array[RigidMotion]


@wp.func
def _row_of(points: _Points) -> MotionRow:
    row = MotionRow()
    row.first = 0
    row.last = points.motions.shape[0]
    return row


@wp.kernel
def _link(first: int, nodes: wp.array[ObbNode], skip: wp.array[int], leaves: wp.array[int]):
    """Where to go on after each subtree, parents before children (one thread)."""
    skip[0] = nodes.shape[0]
    for k in range(nodes.shape[0]):
        if nodes[k].right < 0:
            leaves[nodes[k].triangle] = k
        else:
            skip[k + 1] = nodes[k].right
            skip[nodes[k].right] = skip[k]


@wp.kernel
def _vertex_bounds(first: int, points: _Points, t0: wp.float64, t1: wp.float64, bounds: wp.array[IntervalBox]):
    i = first + wp.tid()
    if points.straight == 1:
        bounds[i] = linear_bounds(points.start[i], points.end[i], t0, t1)
    else:
        row = _row_of(points)
        span = last_span(points.motions, row, t0, t1)
        bounds[i] = point_bounds_over(points.motions, row, span, t0, t1, points.start[i])


@wp.kernel
def _gather_up(
    first: int,
    nodes: wp.array[ObbNode],
    faces: wp.array[wp.vec3i],
    vertices: wp.array[IntervalBox],
    boxes: wp.array[IntervalBox],
):
    """Bounds of triangles and of the nodes above, children before parents (one thread)."""
    k = nodes.shape[0] - 1
    while k >= 0:
        if nodes[k].right < 0:
            face = faces[nodes[k].triangle]
            boxes[k] = union_of_boxes(vertices[face[0]], union_of_boxes(vertices[face[1]], vertices[face[2]]))
        else:
            boxes[k] = union_of_boxes(boxes[k + 1], boxes[nodes[k].right])
        k = k - 1


@wp.kernel
def _meeting(
    first: int,
    shard: int,
    leaves: wp.array[int],
    boxes_a: wp.array[IntervalBox],
    nodes: wp.array[ObbNode],
    skip: wp.array[int],
    boxes_b: wp.array[IntervalBox],
    counts: wp.array[wp.int64],
    capacity: int,
    out: wp.array[wp.vec2i],
):
    """The triangles of b whose swept boxes meet that of triangle i of a."""
    i = first + wp.tid()
    mine = boxes_a[leaves[i]]
    k = int(0)
    while k < nodes.shape[0]:
        if boxes_apart(mine, boxes_b[k], ZERO):
            k = skip[k]
        else:
            if nodes[k].right < 0:
                slot = reserve_slots(counts, shard, 1, capacity)
                if slot >= 0:
                    out[slot] = wp.vec2i(i, nodes[k].triangle)
            k += 1


@wp.func
def _corners(points: _Points, triangle: int) -> MovingCorners:
    face = points.faces[triangle]
    corners = MovingCorners()
    corners.motions = points.motions
    corners.row = _row_of(points)
    corners.straight = points.straight
    corners.start = wp.matrix_from_rows(points.start[face[0]], points.start[face[1]], points.start[face[2]])
    corners.end = wp.matrix_from_rows(points.end[face[0]], points.end[face[1]], points.end[face[2]])
    return corners


@wp.kernel
def _touch_pairs(
    first: int,
    a: _Points,
    b: _Points,
    pairs: wp.array[wp.vec2i],
    stride: int,
    t0: wp.float64,
    t1: wp.float64,
    precision: Precision,
    quick: int,
    times: wp.array[wp.float64],
    features: wp.array[int],
    used: wp.array[int],
):
    i = (first + wp.tid()) * stride
    pair = pairs[i]
    touch = first_touch(_corners(a, pair[0]), _corners(b, pair[1]), ALL_FEATURES, t0, t1, precision)
    # A contact that the sample found bounds the search, and may lie just beyond that bound when it comes up again.
    # One that the limit ended in a quick search is none yet.
    if touch.time < times[i] and (quick == 0 or touch.intervals < precision.most):
        times[i] = touch.time
        features[i] = touch.feature
    used[i] = used[i] + touch.intervals
