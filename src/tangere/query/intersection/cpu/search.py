"""Which triangles of two posed meshes meet, on CPUs: the twin of `intersection.traversal`, eight at a time.

Method: the trees of eights are descended (`bvh.eights`); of up to eight pairs of triangles those that a gap parts are
        dropped at once, the others are decided one by one, as in `traversal`.
Sound:  boxes are compared in float32 with a slack for its rounding, gaps in float64 with one for theirs: at most more
        pairs are decided than there, so the answer is the same.
Range:  numbers have to be within float32; `fits_eights` says where they are.
"""

from __future__ import annotations

from typing import Any

import warp as wp

from tangere.bvh.eights import FIRST_LEAF, LANES, LEAVES, RADIUS, SCRATCH, ObbEights, begin_at, next_leaves
from tangere.bvh.obb import ObbTree
from tangere.geometry.triangles import APART, MEET, triangles_meet_or_not
from tangere.motion import RigidPose
from tangere.query.intersection.cpu.simd_gaps import gaps_below
from tangere.query.intersection.posed import Posed, placement_error, pose_of, relative_pose, world_corners, world_scale
from tangere.query.intersection.traversal import PreparedIntersection, prepared_descent
from tangere.runtime import SOUND, LaunchCache, reserve_slots
from tangere.shape.mesh import Mesh

wp.set_module_options(SOUND)

#: Largest coordinates in the world for which float32 has room for lengths, what it may be off by, and their squares.
_LEAST_SCALE, _LARGEST_SCALE = 1.0e-9, 1.0e15
#: Rounding of centres of boxes to float32, relative to the largest coordinate.
_CENTRES = wp.constant(wp.float64(2.0**-22))
#: Rounding of gaps of triangles, and of their corners in the world, relative to the largest coordinate.
_GAPS = wp.constant(wp.float64(2.0**-47))
#: Numbers that name a pair of triangles in scratch memory.
_PAIR = wp.constant(2)
_RADIUS = wp.constant(LANES * RADIUS)
_LANES = wp.constant(LANES)


def fits_eights(least_scale: float, largest_scale: float) -> bool:
    """Whether bodies whose largest coordinates in the world are within these bounds may be searched in eights."""
    return least_scale >= _LEAST_SCALE and largest_scale <= _LARGEST_SCALE


@wp.struct
class EightsPair:
    """Two meshes: their trees of eights, and their triangles; and what a thread needs to descend."""

    rows_a: wp.array[wp.float32]  # of `ObbEights`
    rows_b: wp.array[wp.float32]
    corners_a: wp.array[wp.vec3d]  # of `ObbTree`
    corners_b: wp.array[wp.vec3d]
    scratch: wp.array2d[int]  # a row for each thread
    gaps: wp.array[wp.float64]  # eight for each thread


def eights_pair(a: Mesh, b: Mesh, scratch: int = SCRATCH, threads: int = 1) -> Any:
    """`EightsPair` of two meshes, with rows of at least so many numbers for so many threads."""
    pair: Any = EightsPair()
    pair.rows_a, pair.rows_b = ObbEights.of(a).rows, ObbEights.of(b).rows
    pair.corners_a, pair.corners_b = ObbTree.of(a, "cpu").corners, ObbTree.of(b, "cpu").corners
    pair.scratch = wp.empty((threads, max(SCRATCH, scratch)), dtype=wp.int32, device="cpu")
    pair.gaps = wp.empty(LANES * threads, dtype=wp.float64, device="cpu")
    return pair


class PreparedEights(PreparedIntersection):
    """The descent of two trees of eights by one thread."""

    def _search_of(self, a: Mesh, b: Mesh) -> tuple[wp.Kernel, list[Any]]:
        return find_meeting_in_eights, [eights_pair(a, b), self.poses]


_in_eights = LaunchCache(PreparedEights)


def prepared_search(a: Posed, b: Posed) -> PreparedIntersection:
    """The launch that finds the triangles of two meshes that meet soonest: in eights where their numbers allow it."""
    scale = world_scale(a, b)
    return _in_eights.of(a.mesh, b.mesh) if fits_eights(scale, scale) else prepared_descent(a, b)


@wp.struct
class PlacedPair:
    """Where the bodies are, and what rounding may do to that."""

    a: RigidPose
    b: RigidPose
    relative: RigidPose  # of b in the frame of a
    slack: wp.float32  # of boxes in float32 [m]
    tiny: wp.float64  # of gaps of triangles in the world [m]


@wp.func
def placed_pair(pair: EightsPair, pose_a: wp.mat44d, pose_b: wp.mat44d) -> PlacedPair:
    """The bodies of a pair at two poses."""
    placed = PlacedPair()
    placed.a = pose_of(pose_a)
    placed.b = pose_of(pose_b)
    placed.relative = relative_pose(placed.a, placed.b)
    size = wp.float64(pair.rows_a[_RADIUS]) + wp.float64(pair.rows_b[_RADIUS])
    for k in range(3):
        size += wp.float64(wp.abs(pair.rows_a[_LANES * k])) + wp.float64(wp.abs(pair.rows_b[_LANES * k]))
    shift = wp.abs(placed.relative.translation)
    away = wp.abs(placed.a.translation) + wp.abs(placed.b.translation)
    uncertain = wp.float64(3.0) * placement_error(placed.a, placed.b)
    placed.slack = wp.float32(_CENTRES * (size + shift[0] + shift[1] + shift[2]) + uncertain)
    placed.tiny = _GAPS * (size + away[0] + away[1] + away[2])
    return placed


@wp.func
def any_meeting_in_eights(pair: EightsPair, placed: PlacedPair, row: int) -> wp.vec3i:
    """What `any_meeting` tells, perhaps of another pair of triangles."""
    found = wp.vec3i(0, 0, APART)
    begin_at(0, 0, row, pair.scratch)
    leaves = next_meeting_leaves(pair, placed, _LANES, row)
    begin = int(0)
    while begin < leaves:
        left = near_leaves(pair, placed, begin, leaves, row)
        while left != 0:
            lane = lowest_lane(left)
            left = left & (left - 1)
            triangles = leaf_triangles(pair, begin + lane, row)
            code = leaf_code(pair, placed, triangles)
            if code != APART:
                found = wp.vec3i(triangles[0], triangles[1], code)
            if code == MEET:
                return found
        begin += _LANES
        if begin >= leaves:
            begin = 0
            leaves = next_meeting_leaves(pair, placed, _LANES, row)
    return found


@wp.kernel
def find_meeting_in_eights(
    first: int,
    shard: int,
    pair: EightsPair,
    poses: wp.array2d[wp.mat44d],
    any_will_do: wp.array[int],
    counts: wp.array[wp.int64],
    capacity: int,
    out: wp.array[wp.vec3i],
):
    """Triangle, triangle, MEET or UNSURE of all pairs that may meet, or until one does; one query only."""
    k = first + wp.tid()
    placed = placed_pair(pair, poses[k, 0], poses[k, 1])
    most = wp.where(any_will_do[0] == 1, _LANES, LEAVES)
    begin_at(0, 0, k, pair.scratch)
    leaves = next_meeting_leaves(pair, placed, most, k)
    begin = int(0)
    while begin < leaves:
        left = near_leaves(pair, placed, begin, leaves, k)
        while left != 0:
            lane = lowest_lane(left)
            left = left & (left - 1)
            triangles = leaf_triangles(pair, begin + lane, k)
            code = leaf_code(pair, placed, triangles)
            if code != APART:
                slot = reserve_slots(counts, shard, 1, capacity)
                if slot >= 0:
                    out[slot] = wp.vec3i(triangles[0], triangles[1], code)
                if any_will_do[0] == 1 and code == MEET:
                    return
        begin += _LANES
        if begin >= leaves:
            begin = 0
            leaves = next_meeting_leaves(pair, placed, most, k)


@wp.func
def next_meeting_leaves(pair: EightsPair, placed: PlacedPair, most: int, row: int) -> int:
    """How many pairs of triangles whose boxes may meet come next in a row of scratch memory."""
    turn = placed.relative.rotation
    return next_leaves(
        pair.rows_a, pair.rows_b, turn, placed.relative.translation, placed.slack, most, row, pair.scratch
    )


@wp.func
def near_leaves(pair: EightsPair, placed: PlacedPair, begin: int, end: int, row: int) -> int:
    """Which of up to eight pairs of triangles no gap parts."""
    return gaps_below(
        pair.corners_a,
        pair.corners_b,
        placed.a.rotation,
        placed.a.translation,
        placed.b.rotation,
        placed.b.translation,
        wp.vec3d(),
        placed.tiny,
        FIRST_LEAF,
        _PAIR,
        begin,
        end,
        row,
        pair.scratch,
        pair.gaps,
    )


@wp.func
def leaf_triangles(pair: EightsPair, leaf: int, row: int) -> wp.vec2i:
    """The triangles of a listed pair."""
    at = FIRST_LEAF + _PAIR * leaf
    return wp.vec2i(pair.scratch[row, at], pair.scratch[row, at + 1])


@wp.func
def leaf_code(pair: EightsPair, placed: PlacedPair, triangles: wp.vec2i) -> int:
    """MEET, APART or UNSURE of two triangles."""
    return triangles_meet_or_not(
        world_corners(pair.corners_a, triangles[0], placed.a), world_corners(pair.corners_b, triangles[1], placed.b)
    )


@wp.func_native("return __builtin_ctz((unsigned)mask);")
def lowest_lane(mask: int) -> int:
    """The lowest of the lanes that a mask names, of at least one."""
    ...
