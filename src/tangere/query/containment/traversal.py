"""How often does a closed surface go round a point? The descent of an OBB tree along a ray; one thread a point.

Method: the ray goes along the x axis of the world. A triangle counts where the point, seen along the axis, lies in it:
        by the signs of three determinants, which are exact. A point on an edge is moved aside by less than any number,
        the same way for all triangles, so that every edge counts for one of its two sides. The triangle is ahead or
        behind by the sign of a fourth determinant.
Exact:  for the positions as rounded to double precision in the world, as `intersecting_pairs` is; boxes only drop what
        the ray certainly misses. The point must not be on the surface.
Known as: winding number by ray crossings; exact predicates with symbolic perturbation (Edelsbrunner and Mücke 1990).
"""

from __future__ import annotations

import warp as wp

from tangere.bvh.obb import DEPTH_LIMIT, ObbNode, box_axes, box_centre, box_half
from tangere.geometry.triangles import UNKNOWN, side_of, turn_of
from tangere.motion import RigidPose
from tangere.query.intersection.posed import pose_of, world_corners
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: Nodes that can wait in a depth-first descent.
WaitingNodes = wp.types.vector(length=DEPTH_LIMIT + 2, dtype=wp.int32)
#: A winding number that has to be found in rational arithmetic.
UNDECIDED = wp.constant(1 << 30)
#: More than rounding does to a ray in the frame of a box, relative to the numbers that go in.
_SLACK = wp.constant(wp.float64(2.0**-40))
_FAR = wp.constant(wp.float64(1.0e300))
_ZERO = wp.constant(wp.float64(0.0))


@wp.struct
class PointInBody:
    """A point of one body that may be in another."""

    point: wp.vec3d  #: in the frame of its own body
    pose: wp.int32  #: of that body
    other: wp.int32  #: pose of the other body
    node: wp.int32  #: root of the other's tree
    triangle: wp.int32  #: the other's first triangle


@wp.func
def turn_beside(u: wp.vec3d, v: wp.vec3d, p: wp.vec3d) -> int:
    """Which way u, v, p turn seen along x, p being moved by (e, e e) in y and z; 0 only if u and v look the same."""
    turn = turn_of(u, v, p, 0)
    if turn == 0:
        turn = int(wp.sign(u[2] - v[2]))
        if u[2] == v[2]:
            turn = int(wp.sign(v[1] - u[1]))
            if u[1] == v[1]:
                turn = 0
    return turn


@wp.func
def crossing(triangle: wp.mat33d, p: wp.vec3d) -> int:
    """1 where the ray from p along x leaves through the triangle, -1 where it enters, 0 beside it; or UNDECIDED."""
    a = triangle[0]
    b = triangle[1]
    c = triangle[2]
    if wp.max(wp.max(a[0], b[0]), c[0]) < p[0]:
        return 0
    one = turn_beside(a, b, p)
    two = turn_beside(b, c, p)
    three = turn_beside(c, a, p)
    if one == UNKNOWN or two == UNKNOWN or three == UNKNOWN:
        return UNDECIDED
    if one == 0 or one != two or two != three:
        return 0
    side = side_of(a, b, c, p)
    if side == UNKNOWN:
        return UNDECIDED
    if side == one:
        return one
    return 0


@wp.func
def ray_misses(node: ObbNode, origin: wp.vec3d, along: wp.vec3d, slack: wp.float64) -> bool:
    """Whether the ray, in the frame of the tree, certainly misses a box."""
    axes = wp.transpose(box_axes(node))
    half = box_half(node)
    begin = axes * (origin - box_centre(node))
    rate = axes * along
    earliest = wp.float64(0.0)
    latest = _FAR + wp.float64(0.0)
    for k in range(3):
        reach = half[k] + slack
        if wp.abs(rate[k]) > _SLACK:
            middle = -begin[k] / rate[k]
            around = reach / wp.abs(rate[k])
            room = _SLACK * (wp.abs(middle) + around)
            earliest = wp.max(earliest, middle - around - room)
            latest = wp.min(latest, middle + around + room)
        # Along an axis that the ray hardly moves on it drifts by less than a part of its way through the box.
        elif wp.abs(begin[k]) > reach + _SLACK * wp.float64(4.0) * (wp.length(begin) + wp.float64(node.radius)):
            return True
    return earliest > latest


@wp.func
def winding_about(
    nodes: wp.array[ObbNode],
    corners: wp.array[wp.vec3d],
    first_node: int,
    first_triangle: int,
    pose: RigidPose,
    p: wp.vec3d,
) -> int:
    """How often the surface of a body in a pose goes round the point p of the world; or UNDECIDED."""
    away = p - pose.translation
    origin = wp.transpose(pose.rotation) * away
    along = wp.vec3d(pose.rotation[0, 0], pose.rotation[0, 1], pose.rotation[0, 2])
    slack = _SLACK * (wp.length(away) + wp.length(p) + wp.length(pose.translation))
    waiting = WaitingNodes()
    count = int(1)
    winding = int(0)
    while count > 0:
        count -= 1
        i = waiting[count]
        node = nodes[first_node + i]
        if not ray_misses(node, origin, along, slack + _SLACK * wp.float64(node.radius)):
            if node.right < 0:
                crossed = crossing(world_corners(corners, first_triangle + node.triangle, pose), p)
                if crossed == UNDECIDED:
                    return UNDECIDED
                winding += crossed
            else:
                waiting[count] = node.right
                waiting[count + 1] = i + 1
                count += 2
    return winding


@wp.kernel
def find_windings(
    first: int,
    rows: wp.array[PointInBody],
    poses: wp.array[wp.mat44d],
    nodes: wp.array[ObbNode],
    corners: wp.array[wp.vec3d],
    windings: wp.array[int],
):
    """The winding number of each point in the other body."""
    i = first + wp.tid()
    row = rows[i]
    own = pose_of(poses[row.pose])
    p = own.rotation * row.point + own.translation
    windings[i] = winding_about(nodes, corners, row.node, row.triangle, pose_of(poses[row.other]), p)
