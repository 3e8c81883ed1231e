"""Which triangles of two rigid meshes meet, at one instant?

Method: both OBB trees are descended together, the larger box first; pairs of boxes that one of 15 axes separates are
        dropped. Pairs of triangles are decided in double precision where rounding cannot matter, the others by sums
        without error (`geometry.triangles.exact_intersection`), and what has no area in rational arithmetic.
        Trees and box test: Gottschalk, Lin and Manocha 1996, as in Redon 2002, section 3.2.
Exact:  for the positions as rounded to double precision in the world. Closed sets: touching counts. One mesh wholly
        inside another does not meet it.
Known as: interference detection by OBB trees (Gottschalk, Lin and Manocha 1996, RAPID).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp

from tangere.bvh.obb import DEPTH_LIMIT, ObbNode, ObbTree, place_boxes
from tangere.geometry.obb import SKEW, boxes_apart
from tangere.geometry.triangles import APART, MEET, UNSURE, triangles_meet_or_not
from tangere.motion import RigidPose
from tangere.query.first_contact.primitives.edge_face import edges_meet_faces
from tangere.query.intersection.posed import (
    Posed,
    as_posed,
    paired,
    placement_error,
    pose_of,
    relative_pose,
    world_corners,
)
from tangere.query.intersection.prepared_pair import PosedPair
from tangere.runtime import (
    COUNTER_STRIDE,
    SOUND,
    InputError,
    LaunchCache,
    PreparedLaunch,
    choose_device,
    collect,
    launch,
    reserve_slots,
)
from tangere.shape import Moving
from tangere.shape.mesh import Mesh

wp.set_module_options(SOUND)

#: Pairs of nodes that can wait in a depth-first descent of two trees.
Waiting = wp.types.vector(length=2 * DEPTH_LIMIT + 2, dtype=wp.int32)

#: On CUDA the descent is spread over threads once there are this many pairs of boxes.
_FRONT = 4096
#: Pairs to allow for at first on CPU.
_START = 1024
#: Edges of two triangles with corners 0 1 2 and 3 4 5, and the face each of them may meet.
_EDGES = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3]], np.int32)
_FACES = np.array([[3, 4, 5]] * 3 + [[0, 1, 2]] * 3, np.int32)


def meshes_meet(
    a: Mesh | Moving,
    b: Mesh | Moving,
    *,
    time: float = 0.0,
    device: str | wp.Device | None = None,
    prepared: Callable[[Posed, Posed], PreparedIntersection] | None = None,
) -> bool:
    """Whether any triangles of two meshes meet at one instant; `prepared` as of `meeting_triangles`."""
    return len(meeting_triangles(a, b, time, device, every=False, prepared=prepared)) > 0


def meeting_triangles(
    a: Mesh | Moving,
    b: Mesh | Moving,
    time: float,
    device: str | wp.Device | None,
    every: bool,
    prepared: Callable[[Posed, Posed], PreparedIntersection] | None = None,
) -> np.ndarray:
    """The pairs of triangles that meet at one instant, (n, 2), in any order; only some of them unless `every`.

    Args:
        prepared: finds the launch to search with on CPU (`cpu.search.prepared_search`); None: the descent of two boxes
            at a time.
    """
    one, other = as_posed(a, time), as_posed(b, time)
    if not (one.single and other.single):
        raise InputError("triangles that meet are found for one pose of each mesh at a time")
    where = choose_device(device)
    trees = ObbTree.of(one.mesh, where), ObbTree.of(other.mesh, where)
    if where.is_cpu:
        search = prepared_descent(one, other) if prepared is None else prepared(one, other)
        search.rows[:, 0], search.rows[:, 1] = one.poses, other.poses
        found, poses = search.found(every), search.poses
    else:
        poses = paired(one, other, where)
        found = _found_by_many(trees, poses, every)
    codes = found[:, 2]
    sure = found[codes == MEET, :2]
    if len(sure) == len(found) or (len(sure) and not every):
        return sure
    unsure = found[codes == UNSURE, :2]
    meets, _ = decide_exactly(trees, poses, np.zeros(len(unsure), np.int32), unsure)
    return np.concatenate([sure, unsure[meets]])


class PreparedIntersection(PosedPair):
    """The depth-first descent of two trees by one thread."""

    def __init__(self, a: Mesh, b: Mesh) -> None:
        super().__init__(a, b)
        self._any = wp.zeros(1, dtype=wp.int32, device="cpu")
        self._counts = wp.zeros(COUNTER_STRIDE, dtype=wp.int64, device="cpu")
        self._host_any, self._host_counts = self._any.numpy(), self._counts.numpy()
        self._kernel, self._inputs = self._search_of(a, b)
        self._make_room(_START)

    def _search_of(self, a: Mesh, b: Mesh) -> tuple[wp.Kernel, list[Any]]:
        """The kernel, and all that it is told of the two trees."""
        one, other = self.trees
        front = wp.zeros(1, dtype=wp.vec2i, device="cpu")
        return _search, [front, one.nodes, other.nodes, self.poses, one.corners, other.corners]

    def found(self, every: bool) -> np.ndarray:
        """(n, 3): triangle, triangle, MEET or UNSURE, at the poses in `rows`; valid until the next call."""
        self._host_any[0] = not every
        while True:
            self._host_counts[0] = 0
            self._recorded.launch(1, 0, 0)
            count = int(self._host_counts[0])
            if count <= len(self._host_found):
                return self._host_found[:count]
            self._make_room(count + count // 8)

    def _make_room(self, capacity: int) -> None:
        found = wp.empty(capacity, dtype=wp.vec3i, device="cpu")
        self._host_found = found.numpy()
        arguments = [*self._inputs, self._any, self._counts, capacity, found]
        self._recorded = PreparedLaunch(self._kernel, arguments, wp.get_device("cpu"))


_descents = LaunchCache(PreparedIntersection)


def prepared_descent(a: Posed, b: Posed) -> PreparedIntersection:
    """The launch that descends the trees of two meshes, two boxes at a time."""
    return _descents.of(a.mesh, b.mesh)


def _found_by_many(trees: tuple[ObbTree, ObbTree], poses: wp.array, every: bool) -> np.ndarray:
    """What `PreparedIntersection.found` finds, by many threads on CUDA."""
    device = poses.device
    shared = [trees[0].nodes, trees[1].nodes, poses]
    front = wp.zeros(1, dtype=wp.vec2i, device=device)
    rounds = trees[0].depth + trees[1].depth
    while rounds > 0 and 0 < len(front) < _FRONT:
        front = collect(_open_pairs, len(front), [front, *shared], wp.vec2i, device=device)
        rounds -= 1
    any_will_do = wp.full(1, int(not every), dtype=wp.int32, device=device)
    inputs = [front, *shared, trees[0].corners, trees[1].corners, any_will_do]
    return collect(_search, len(front), inputs, wp.vec3i, device=device).numpy().reshape(-1, 3)


def decide_exactly(
    trees: tuple[ObbTree, ObbTree], poses: wp.array, queries: np.ndarray, pairs: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Whether pairs of triangles meet, decided in rational arithmetic, and a point (rounded) where each does.

    A millisecond a pair: for what nothing faster decides.

    Args:
        poses: (q, 2) mat44d.
        queries: which of the poses each pair is in, (n,).
        pairs: triangles, (n, 2).
    """
    count, device = len(pairs), poses.device
    points = wp.empty((count, 6), dtype=wp.vec3d, device=device)
    rows = wp.array(np.column_stack([queries, pairs]), dtype=wp.vec3i, device=device)
    launch(_write_corners, count, [rows, poses, trees[0].corners, trees[1].corners], [points], device=device)
    base = 6 * np.arange(count, dtype=np.int32)[:, None, None]
    edges = (base + _EDGES).reshape(-1, 2)
    faces = (base + _FACES).reshape(-1, 3)
    at = edges_meet_faces(
        points.flatten(), wp.array(edges, dtype=wp.int32, device=device), wp.array(faces, dtype=wp.int32, device=device)
    ).reshape(count, 6)
    chosen = np.argmin(at, axis=1)
    on_edge = np.where(np.isfinite(at), at, np.nan)[np.arange(count), chosen, None]
    corners = points.numpy().reshape(count, 6, 3)
    begin = corners[np.arange(count), _EDGES[chosen, 0]]
    return np.isfinite(at).any(axis=1), begin + on_edge * (corners[np.arange(count), _EDGES[chosen, 1]] - begin)


@wp.func
def opens_first(a: ObbNode, b: ObbNode) -> bool:
    """Whether a is the one of two nodes to replace by its children: the larger that has any."""
    return b.right < 0 or (a.right >= 0 and a.radius >= b.radius)


@wp.func
def any_meeting(
    nodes_a: wp.array[ObbNode],
    nodes_b: wp.array[ObbNode],
    corners_a: wp.array[wp.vec3d],
    corners_b: wp.array[wp.vec3d],
    pose_a: RigidPose,
    pose_b: RigidPose,
) -> wp.vec3i:
    """Triangle, triangle and MEET of any pair that meets; else UNSURE if there is one of those, else APART."""
    return any_meeting_below(nodes_a, nodes_b, corners_a, corners_b, wp.vec4i(0, 0, 0, 0), pose_a, pose_b)


@wp.func
def any_meeting_below(
    nodes_a: wp.array[ObbNode],
    nodes_b: wp.array[ObbNode],
    corners_a: wp.array[wp.vec3d],
    corners_b: wp.array[wp.vec3d],
    begin: wp.vec4i,
    pose_a: RigidPose,
    pose_b: RigidPose,
) -> wp.vec3i:
    """As `any_meeting`, of trees among others: `begin` has root and first triangle of a, then of b."""
    placed = relative_pose(pose_a, pose_b)
    uncertain = placement_error(pose_a, pose_b)
    waiting_a = Waiting()
    waiting_b = Waiting()
    count = int(1)
    found = wp.vec3i(0, 0, APART)
    while count > 0:
        count -= 1
        i = waiting_a[count]
        j = waiting_b[count]
        a = nodes_a[begin[0] + i]
        b = nodes_b[begin[2] + j]
        if not boxes_apart(place_boxes(a, b, placed.rotation, placed.translation, uncertain), 1, SKEW):
            if a.right < 0 and b.right < 0:
                code = triangles_meet_or_not(
                    world_corners(corners_a, begin[1] + a.triangle, pose_a),
                    world_corners(corners_b, begin[3] + b.triangle, pose_b),
                )
                if code != APART:
                    found = wp.vec3i(a.triangle, b.triangle, code)
                if code == MEET:
                    count = 0
            elif opens_first(a, b):
                waiting_a[count] = a.right
                waiting_b[count] = j
                waiting_a[count + 1] = i + 1
                waiting_b[count + 1] = j
                count += 2
            else:
                waiting_a[count] = i
                waiting_b[count] = b.right
                waiting_a[count + 1] = i
                waiting_b[count + 1] = j + 1
                count += 2
    return found


@wp.kernel
def _open_pairs(
    first: int,
    shard: int,
    front: wp.array[wp.vec2i],
    nodes_a: wp.array[ObbNode],
    nodes_b: wp.array[ObbNode],
    poses: wp.array2d[wp.mat44d],
    counts: wp.array[wp.int64],
    capacity: int,
    out: wp.array[wp.vec2i],
):
    """Each pair of boxes replaced by those of its children that may meet; pairs of leaves stay."""
    k = first + wp.tid()
    pose_a = pose_of(poses[0, 0])
    pose_b = pose_of(poses[0, 1])
    placed = relative_pose(pose_a, pose_b)
    uncertain = placement_error(pose_a, pose_b)
    i = front[k][0]
    j = front[k][1]
    a = nodes_a[i]
    b = nodes_b[j]
    children = int(2)
    if a.right < 0 and b.right < 0:
        children = 1
    for child in range(children):
        i1 = i
        j1 = j
        if children == 2:
            if opens_first(a, b):
                i1 = wp.where(child == 0, i + 1, a.right)
            else:
                j1 = wp.where(child == 0, j + 1, b.right)
        if not boxes_apart(
            place_boxes(nodes_a[i1], nodes_b[j1], placed.rotation, placed.translation, uncertain), 1, SKEW
        ):
            slot = reserve_slots(counts, shard, 1, capacity)
            if slot >= 0:
                out[slot] = wp.vec2i(i1, j1)


@wp.kernel
def _search(
    first: int,
    shard: int,
    front: wp.array[wp.vec2i],
    nodes_a: wp.array[ObbNode],
    nodes_b: wp.array[ObbNode],
    poses: wp.array2d[wp.mat44d],
    corners_a: wp.array[wp.vec3d],
    corners_b: wp.array[wp.vec3d],
    any_will_do: wp.array[int],
    counts: wp.array[wp.int64],
    capacity: int,
    out: wp.array[wp.vec3i],
):
    """Depth first from one pair of boxes: triangle, triangle, MEET or UNSURE."""
    k = first + wp.tid()
    pose_a = pose_of(poses[0, 0])
    pose_b = pose_of(poses[0, 1])
    placed = relative_pose(pose_a, pose_b)
    uncertain = placement_error(pose_a, pose_b)
    waiting_a = Waiting()
    waiting_b = Waiting()
    waiting_a[0] = front[k][0]
    waiting_b[0] = front[k][1]
    count = int(1)
    while count > 0:
        count -= 1
        i = waiting_a[count]
        j = waiting_b[count]
        a = nodes_a[i]
        b = nodes_b[j]
        if not boxes_apart(place_boxes(a, b, placed.rotation, placed.translation, uncertain), 1, SKEW):
            if a.right < 0 and b.right < 0:
                code = triangles_meet_or_not(
                    world_corners(corners_a, a.triangle, pose_a), world_corners(corners_b, b.triangle, pose_b)
                )
                if code != APART:
                    slot = reserve_slots(counts, shard, 1, capacity)
                    if slot >= 0:
                        out[slot] = wp.vec3i(a.triangle, b.triangle, code)
                    if any_will_do[0] == 1 and code == MEET:
                        count = 0
            elif opens_first(a, b):
                waiting_a[count] = a.right
                waiting_b[count] = j
                waiting_a[count + 1] = i + 1
                waiting_b[count + 1] = j
                count += 2
            else:
                waiting_a[count] = i
                waiting_b[count] = b.right
                waiting_a[count + 1] = i
                waiting_b[count + 1] = j + 1
                count += 2


@wp.kernel
def _write_corners(
    first: int,
    rows: wp.array[wp.vec3i],
    poses: wp.array2d[wp.mat44d],
    corners_a: wp.array[wp.vec3d],
    corners_b: wp.array[wp.vec3d],
    points: wp.array2d[wp.vec3d],
):
    i = first + wp.tid()
    row = rows[i]
    a = world_corners(corners_a, row[1], pose_of(poses[row[0], 0]))
    b = world_corners(corners_b, row[2], pose_of(poses[row[0], 1]))
    for k in range(3):
        points[i, k] = a[k]
        points[i, 3 + k] = b[k]
