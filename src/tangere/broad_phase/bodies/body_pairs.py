"""Which of many rigidly moving bodies may meet, and when at the earliest?

Question: the pairs of bodies whose swept boxes overlap, each with a time before which the two are certainly apart.
Method:   the step is cut into `SLICES`; a body's box in each slice comes from the bounds of its motion (all links of
          a chain), and the box of the whole step encloses them. Pairs of whole boxes are found by sweep and prune or by
          a tree, which find the same pairs and so check each other; the slices then say when a pair can meet first and
          drop most pairs that never share a slice.
Sound:    boxes are rounded outward, to single precision as well; a pair is dropped only where two boxes are apart.
Known as: sweep and prune (Baraff 1992; Cohen et al. 1995) and a tree, on swept boxes. Several moving bodies: Redon
          2002, section 2.7.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, get_args

import numpy as np
import warp as wp

from tangere.motion import Chain, Rigid, RigidMotion, joined_records
from tangere.motion.bounds import box_bounds, point_box_bounds, span_of
from tangere.runtime import (
    SOUND,
    InputError,
    LaunchCache,
    PreparedLaunch,
    collect,
    launch,
    reserve_slots,
    sort_pairs,
)

wp.set_module_options(SOUND)

BodyBroadPhase = Literal["sweep", "tree"]

#: Slices of a step: each halves the air in the boxes of a body that turns or flies, and costs a microsecond a body.
SLICES = 16
#: Chains for which a launch is kept: longer ones are numbers of which Python has more than one.
MOST_LINKS = 256


class Bounded(Protocol):
    """A mesh, or whatever else has a box around it in its own frame."""

    @property
    def bounds(self) -> np.ndarray: ...


def swept_boxes(
    shapes: Sequence[Bounded], motions: Sequence[Rigid], margin: float = 0.0, *, device: wp.Device
) -> np.ndarray:
    """Boxes that hold each body during each slice of the step: (n, SLICES, 2, 3) float32, lower and upper corners [m].

    Args:
        shapes, motions: of the n bodies, one motion each.
        margin: boxes are grown by this [m].
    """
    count = len(shapes)
    if count == 1 and device.is_cpu and motions[0].links <= MOST_LINKS:
        exact = _prepared.of(motions[0].links).boxes(shapes[0].bounds, motions[0])
    else:
        links = np.array([motion.links for motion in motions], np.int32)
        last = np.cumsum(links).astype(np.int32)
        bounds = np.array([mesh.bounds for mesh in shapes]).reshape(-1, 3)
        boxes = wp.empty((count * SLICES, 2), dtype=wp.vec3d, device=device)
        inputs = [
            wp.array(joined_records([motion.records() for motion in motions]), dtype=RigidMotion, device=device),
            wp.array(last, dtype=wp.int32, device=device),
            wp.array(links, dtype=wp.int32, device=device),
            wp.array(bounds, dtype=wp.vec3d, device=device),
            SLICES,
        ]
        launch(_swept, count * SLICES, inputs, [boxes], device=device, grain=512)
        exact = boxes.numpy().reshape(count, SLICES, 2, 3)
    exact = exact + np.array([[-margin], [margin]])
    rounded = exact.astype(np.float32)
    rounded[:, :, 0] = np.nextafter(rounded[:, :, 0], np.float32(-np.inf))
    rounded[:, :, 1] = np.nextafter(rounded[:, :, 1], np.float32(np.inf))
    return rounded


class _PreparedSweep:
    """The slices of one body, whose box and motion are written from call to call (CPU)."""

    def __init__(self, links: int) -> None:
        cpu = wp.get_device("cpu")
        motions, bounds = wp.zeros(links, dtype=RigidMotion, device=cpu), wp.zeros(2, dtype=wp.vec3d, device=cpu)
        count = wp.full(1, links, dtype=wp.int32, device=cpu)
        boxes = wp.zeros((SLICES, 2), dtype=wp.vec3d, device=cpu)
        self._motions, self._bounds = motions.numpy(), bounds.numpy()
        self._boxes = boxes.numpy().reshape(1, SLICES, 2, 3)
        self._launch = PreparedLaunch(_swept, [motions, count, count, bounds, SLICES, boxes], cpu)

    def boxes(self, bounds: np.ndarray, motion: Rigid) -> np.ndarray:
        """(1, SLICES, 2, 3), valid until the next call."""
        self._motions[:], self._bounds[:] = motion.records(), bounds
        self._launch.launch(SLICES, 0)
        return self._boxes


_prepared = LaunchCache(_PreparedSweep)


def box_pairs(
    boxes: np.ndarray, *, still: np.ndarray | None = None, method: BodyBroadPhase = "sweep", device: wp.Device
) -> np.ndarray:
    """All pairs (i, j), i < j, of boxes that overlap, touching included, in rising order: (k, 2) int32.

    Args:
        boxes: (n, 2, 3) float32, lower and upper corners.
        still: (n,) bool: two of these are no pair.
    """
    count = len(boxes)
    if method not in get_args(BodyBroadPhase):
        raise InputError(f"the broad phase is 'sweep' or 'tree', not {method!r}")
    if count < 2:
        return np.zeros((0, 2), np.int32)
    rests = np.zeros(count, np.uint8) if still is None else still.astype(np.uint8)
    lower = wp.array(boxes[:, 0], dtype=wp.vec3f, device=device)
    upper = wp.array(boxes[:, 1], dtype=wp.vec3f, device=device)
    shared = [lower, upper, wp.array(rests, dtype=wp.uint8, device=device)]
    if method == "tree":
        tree = wp.Bvh(lower, upper)
        found = collect(_tree, count, [tree.id, *shared], wp.vec2i, device=device)
    else:
        axis = int(np.argmax(boxes[:, 1].max(axis=0) - boxes[:, 0].min(axis=0)))
        keys = wp.array(boxes[:, 0, axis].astype(np.float64), dtype=wp.float64, device=device)
        _, order = sort_pairs(keys, wp.array(np.arange(count, dtype=np.int32), dtype=wp.int32, device=device))
        found = collect(_sweep, count, [order, axis, *shared], wp.vec2i, device=device)
    pairs = found.numpy().reshape(-1, 2)
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def first_meetings(boxes: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """(k,) the time before which the two bodies of each pair are certainly apart; inf where their slices never overlap.

    Args:
        boxes: of the slices, as `swept_boxes` tells them.
        pairs: (k, 2) bodies.
    """
    a, b = boxes[pairs[:, 0]], boxes[pairs[:, 1]]
    apart = (a[:, :, 0] > b[:, :, 1]) | (b[:, :, 0] > a[:, :, 1])
    meet = ~apart.any(axis=2)
    return np.where(meet.any(axis=1), np.argmax(meet, axis=1) / boxes.shape[1], np.inf)


def rest_still(motions: Sequence[Rigid]) -> np.ndarray:
    """(n,) whether each motion is none."""
    resting = [
        not (motion.records()["angle"].any() or motion.records()["velocity"].any() or motion.records()["arc"].any())
        for motion in motions
    ]
    return np.array(resting, bool)


def linked_pairs(chain: Chain, first: int = 0) -> np.ndarray:
    """The pairs of links that hang on each other, which touch in their joints: (k, 2), the root link being `first`."""
    links = [(first + parent, first + link) for link, parent in enumerate(chain.parents) if parent >= 0]
    return np.sort(np.array(links, np.int32).reshape(-1, 2), axis=1)


@wp.kernel
def _swept(
    first: int,
    motions: wp.array[RigidMotion],
    last: wp.array[int],
    links: wp.array[int],
    bounds: wp.array[wp.vec3d],
    slices: int,
    boxes: wp.array2d[wp.vec3d],
):
    i = first + wp.tid()
    body = i / slices
    k = i % slices
    t0 = wp.float64(k) / wp.float64(slices)
    t1 = wp.float64(k + 1) / wp.float64(slices)
    half = wp.float64(0.5) * (bounds[2 * body + 1] - bounds[2 * body])
    # the centre is rounded: a little more than half on every side
    size = wp.length(bounds[2 * body]) + wp.length(bounds[2 * body + 1])
    grown = half + size * wp.float64(1.0e-15) * wp.vec3d(wp.float64(1.0), wp.float64(1.0), wp.float64(1.0))
    link = int(last[body] - 1)
    axes = wp.identity(3, dtype=wp.float64)
    held = box_bounds(span_of(motions[link], t0, t1), bounds[2 * body] + half, axes, grown)
    outermost = last[body] - links[body]
    while link > outermost:
        link -= 1
        held = point_box_bounds(span_of(motions[link], t0, t1), held)
    boxes[i, 0] = held.lower
    boxes[i, 1] = held.upper


@wp.func
def overlap(i: int, j: int, lower: wp.array[wp.vec3f], upper: wp.array[wp.vec3f], still: wp.array[wp.uint8]) -> bool:
    """Whether boxes i and j overlap and one of the bodies moves."""
    apart = bool(still[i] != wp.uint8(0) and still[j] != wp.uint8(0))
    for k in range(3):
        apart = apart or lower[i][k] > upper[j][k] or lower[j][k] > upper[i][k]
    return not apart


@wp.kernel
def _sweep(
    first: int,
    shard: int,
    order: wp.array[int],
    axis: int,
    lower: wp.array[wp.vec3f],
    upper: wp.array[wp.vec3f],
    still: wp.array[wp.uint8],
    counts: wp.array[wp.int64],
    capacity: int,
    out: wp.array[wp.vec2i],
):
    s = first + wp.tid()
    i = order[s]
    end = upper[i][axis]
    t = s + 1
    while t < order.shape[0]:
        j = order[t]
        if lower[j][axis] > end:
            t = order.shape[0]  # it begins behind the end, and so do all that follow
        else:
            if overlap(i, j, lower, upper, still):
                slot = reserve_slots(counts, shard, 1, capacity)
                if slot >= 0:
                    out[slot] = wp.vec2i(wp.min(i, j), wp.max(i, j))
            t += 1


@wp.kernel
def _tree(
    first: int,
    shard: int,
    tree: wp.uint64,
    lower: wp.array[wp.vec3f],
    upper: wp.array[wp.vec3f],
    still: wp.array[wp.uint8],
    counts: wp.array[wp.int64],
    capacity: int,
    out: wp.array[wp.vec2i],
):
    i = first + wp.tid()
    query = wp.bvh_query_aabb(tree, lower[i], upper[i])
    j = int(0)
    while wp.bvh_query_next(query, j):
        if i < j and overlap(i, j, lower, upper, still):
            slot = reserve_slots(counts, shard, 1, capacity)
            if slot >= 0:
                out[slot] = wp.vec2i(i, j)
