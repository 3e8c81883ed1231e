"""First contact of moving convex bodies with a rigid mesh: depth first through its OBB tree; one thread a body.

Every box has its own time until which the body certainly stays clear of it: one step of conservative advancement of the
pair (body, box), from its parent's time. What comes after the earliest contact known is dropped; leaves are pairs
(body, triangle), solved as two bodies are. Ties go to an overlap, then to the smaller triangle.
Known as: conservative advancement over a bounding volume hierarchy (Tang, Kim and Manocha 2009, C2A).
"""

from __future__ import annotations

from functools import cache

import warp as wp

from tangere.bvh.obb import ObbNode, box_axes, box_centre
from tangere.query.contacts.record import Status
from tangere.query.distance.convex.mesh_leaf import gap_to_box_of, triangle_of
from tangere.query.distance.convex.mesh_search import NodeBounds, NodeIds
from tangere.query.distance.convex.result import FAR, Sought
from tangere.query.distance.convex.supports import ConvexKind, ConvexShape
from tangere.query.first_contact.convex.conservative_advancement import (
    ConvexPairState,
    ConvexReach,
    pair_state,
    reached_by,
    safe_step_of,
)
from tangere.query.first_contact.convex.search import ConvexContact, pair_tolerance, told_of
from tangere.query.first_contact.heightfield.motion_bounds import (
    MovingShapeBounds,
    MovingShapes,
    moving_shape_bounds_of,
    outline_at,
)
from tangere.query.first_contact.rigid.conservative_advancement import radius_about
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

real = wp.float64
vec = wp.vec3d

#: A box is asked to this part of its distance.
OF_GAP = wp.constant(real(0.2))
_ZERO = wp.constant(real(0.0))
_HALF = wp.constant(real(0.5))
_ONE = wp.constant(real(1.0))
FREE = wp.constant(int(Status.FREE))
START = wp.constant(int(Status.START))


@wp.func
def with_triangle(m: MovingShapeBounds, corners: wp.array[wp.vec3d], triangle: ConvexShape) -> MovingShapeBounds:
    """The bounds of a mesh's motion, for one of its triangles only."""
    far = radius_about(m.bounds, corners[triangle.first], _ZERO)
    far = wp.max(far, radius_about(m.bounds, corners[triangle.first + 1], _ZERO))
    far = wp.max(far, radius_about(m.bounds, corners[triangle.first + 2], _ZERO))
    m.bend = _HALF * (m.bounds.acceleration + m.bounds.turn * far)
    # How fast its points can be: as if its origin were on the axis and they were so far from it.
    m.rho = _ZERO
    m.reach = far
    m.fastest = wp.length(m.bounds.drift) + m.bounds.swing + m.bounds.spin * far
    return m


@wp.func
def comes_before(found: ConvexReach, triangle: int, best: ConvexReach, known: int) -> bool:
    """Whether a contact is to be reported instead of the one known."""
    if known < 0 or found.time != best.time:
        return known < 0 or found.time < best.time
    if (found.status == START) != (best.status == START):
        return found.status == START
    return triangle < known


@wp.struct
class MeshReach:
    """When a body first comes near a mesh."""

    reach: ConvexReach  #: of the earliest triangle; status FREE if there is none
    triangle: wp.int32  #: -1: none


@cache
def clear_until_of(kind: int) -> wp.Function:
    """`clear_until(m_a, m_b, a, points_a, node, state, keep, tau, until) -> float64` for bodies of a kind.

    Until when the body certainly stays farther than `keep` from a box; tau itself where nothing separates them now.
    """
    gap_to_box, safe_step = gap_to_box_of(kind), safe_step_of(kind, ConvexKind.BOX)

    @wp.func
    def clear_until(
        m_a: MovingShapeBounds,
        m_b: MovingShapeBounds,
        a: ConvexShape,
        points_a: wp.array[wp.vec3d],
        node: ObbNode,
        state: ConvexPairState,
        keep: real,
        tau: real,
        until: real,
    ) -> real:
        sought = Sought()
        sought.tolerance = keep
        sought.relative = OF_GAP
        sought.enough = FAR
        arm = state.rotation * box_centre(node)
        at = ConvexPairState()
        at.rotation = state.rotation * box_axes(node)
        at.offset = state.offset + arm
        at.velocity = state.velocity + wp.cross(state.turning_b, arm)
        at.turning_a = state.turning_a
        at.turning_b = state.turning_b
        found = gap_to_box(a, points_a, node, at.rotation, at.offset, sought)
        gap = found.lower - keep
        time = tau + _ZERO
        if not found.meet and gap > _ZERO:
            far = radius_about(m_b.bounds, box_centre(node), real(node.radius))
            bend = m_a.bend + _HALF * (m_b.bounds.acceleration + m_b.bounds.turn * far)
            box = ConvexShape()
            box.half = vec(real(node.half[0]), real(node.half[1]), real(node.half[2]))
            most = wp.max(until - tau, _ZERO)
            h = safe_step(a, points_a, box, points_a, at, found, gap, keep, bend, _ZERO, vec(), most)
            time = tau + h
            if h >= most:
                time = until + _ONE
        return time

    return clear_until


@cache
def mesh_reach_of(kind: int) -> wp.Function:
    """`search(m_a, m_b, a, points_a, nodes, corners, first, separation, tolerance, slack) -> MeshReach`.

    `first`: where the mesh begins in tables of several: its root, and its first triangle.
    """
    clear_until, reached = clear_until_of(kind), reached_by(kind, ConvexKind.TRIANGLE)

    @wp.func
    def search(
        m_a: MovingShapeBounds,
        m_b: MovingShapeBounds,
        a: ConvexShape,
        points_a: wp.array[wp.vec3d],
        nodes: wp.array[ObbNode],
        corners: wp.array[wp.vec3d],
        first: wp.vec2i,
        separation: real,
        tolerance: real,
        slack: real,
    ) -> MeshReach:
        keep = separation + _HALF * tolerance + slack
        waiting = NodeIds()
        times = NodeBounds()
        count = int(1)
        best = MeshReach()
        best.triangle = -1
        until = _ONE + _ZERO
        while count > 0:
            count -= 1
            number = waiting[count]
            tau = times[count]
            if tau <= until:
                node = nodes[first[0] + number]
                if node.right < 0:
                    triangle = triangle_of(corners, first[1] + node.triangle)
                    m_leaf = with_triangle(m_b, corners, triangle)
                    found = reached(
                        m_a, m_leaf, a, points_a, triangle, corners, separation, tolerance, slack, tau, until
                    )
                    if found.status != FREE and comes_before(found, node.triangle, best.reach, best.triangle):
                        best.reach = found
                        best.triangle = node.triangle
                        until = found.time
                else:
                    state = pair_state(outline_at(m_a, tau), outline_at(m_b, tau))
                    near = number + 1
                    far = node.right
                    near_time = clear_until(m_a, m_b, a, points_a, nodes[first[0] + near], state, keep, tau, until)
                    far_time = clear_until(m_a, m_b, a, points_a, nodes[first[0] + far], state, keep, tau, until)
                    if far_time < near_time:
                        near = node.right
                        far = number + 1
                        swapped = near_time
                        near_time = far_time
                        far_time = swapped
                    if far_time <= until:
                        waiting[count] = far
                        times[count] = far_time
                        count += 1
                    if near_time <= until:
                        waiting[count] = near
                        times[count] = near_time
                        count += 1
        return best

    return search


@cache
def mesh_told_of(kind: int) -> wp.Function:
    """`told(m_a, m_b, a, points_a, corners, first, separation, tolerance, slack, found) -> ConvexContact`."""
    told = told_of(kind, ConvexKind.TRIANGLE)

    @wp.func
    def mesh_told(
        m_a: MovingShapeBounds,
        m_b: MovingShapeBounds,
        a: ConvexShape,
        points_a: wp.array[wp.vec3d],
        corners: wp.array[wp.vec3d],
        first: int,
        separation: real,
        tolerance: real,
        slack: real,
        found: MeshReach,
    ) -> ConvexContact:
        triangle = triangle_of(corners, first + wp.max(found.triangle, 0))
        m_leaf = with_triangle(m_b, corners, triangle)
        contact = told(m_a, m_leaf, a, points_a, triangle, corners, separation, tolerance, slack, found.reach)
        contact.triangle = found.triangle
        return contact

    return mesh_told


@cache
def mesh_contact_kernel(kind: int) -> wp.Kernel:
    """First contacts of n bodies of a kind with a mesh; both may move, one of either may serve all."""
    search, told = mesh_reach_of(kind), mesh_told_of(kind)

    @wp.kernel(module="unique", module_options=SOUND)
    def mesh_contacts(
        first: int,
        moving_a: MovingShapes,
        shapes_a: wp.array[ConvexShape],
        points_a: wp.array[wp.vec3d],
        moving_b: MovingShapes,
        nodes: wp.array[ObbNode],
        corners: wp.array[wp.vec3d],
        lengths: wp.array[wp.float64],
        contacts: wp.array[ConvexContact],
    ):
        i = first + wp.tid()
        separation = lengths[0]
        moving_a.separation = separation
        moving_b.separation = separation
        moving_a.tolerance = lengths[1]
        moving_b.tolerance = lengths[1]
        m_a = moving_shape_bounds_of(moving_a, i, _ZERO, vec())
        m_b = moving_shape_bounds_of(moving_b, i, _ZERO, vec())
        a = shapes_a[wp.min(i, shapes_a.shape[0] - 1)]
        tolerance = pair_tolerance(m_a, m_b)
        slack = m_a.slack + m_b.slack
        found = search(m_a, m_b, a, points_a, nodes, corners, wp.vec2i(0, 0), separation, tolerance, slack)
        contacts[i] = told(m_a, m_b, a, points_a, corners, 0, separation, tolerance, slack, found)

    return mesh_contacts
