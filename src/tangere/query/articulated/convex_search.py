"""First contact and least distance of convex bodies, and of one and a mesh, that hang on chains of motions; kernels.

Question: of rows (pair of bodies, step): when do they first come near, and how near do they come at the least?
Method:   first contact as `first_contact.convex` has it. The least distance by the shrinking bound of `clearance`: what
          is moved on in time stays farther apart than (1 - accuracy) U, where U is the least distance seen so far; of a
          mesh, boxes of its tree are moved on, or opened.
Sound:    U only falls, so what was certified with an older one stays valid.
"""

from __future__ import annotations

from functools import cache

import warp as wp

from tangere.bvh.obb import ObbNode
from tangere.motion import RigidMotion
from tangere.motion.bounds import reparametrised_time
from tangere.query.distance.convex.mesh_leaf import triangle_of
from tangere.query.distance.convex.mesh_search import NodeBounds, NodeIds
from tangere.query.distance.convex.narrow_phase import closest_of, first_guess
from tangere.query.distance.convex.result import FAR, Sought
from tangere.query.distance.convex.supports import ConvexKind, ConvexShape
from tangere.query.first_contact.convex.conservative_advancement import (
    fastest_closing,
    pair_state,
    reached_by,
    safe_step_of,
)
from tangere.query.first_contact.convex.mesh_search import (
    clear_until_of,
    mesh_reach_of,
    mesh_told_of,
    with_triangle,
)
from tangere.query.first_contact.convex.search import ConvexContact, pair_tolerance, told_of
from tangere.query.first_contact.heightfield.motion_bounds import MovingShapeBounds, bounds_along_chain, outline_at
from tangere.query.first_contact.rigid.conservative_advancement import largest_safe_step
from tangere.runtime import SOUND
from tangere.shape.analytic import AnalyticShape

wp.set_module_options(SOUND)

real = wp.float64
vec = wp.vec3d

_ZERO = wp.constant(real(0.0))
_ONE = wp.constant(real(1.0))
#: Distances are asked to this part of the accuracy.
_OF_ACCURACY = wp.constant(real(0.1))
_OF_TOLERANCE = wp.constant(real(0.1))
#: Of two bodies in a step, as of two triangles (`clearance`): fine accuracies take many.
_MOST_STEPS = wp.constant(100_000)


@wp.struct
class ChainedBodies:
    """Bodies, (n,) each, and the motions that they hang on; a mesh has its place in the tables of trees."""

    motions: wp.array[RigidMotion]
    shapes: wp.array[ConvexShape]
    points: wp.array[wp.vec3d]  #: of all hulls
    records: wp.array[AnalyticShape]
    poses: wp.array[wp.mat44d]  #: in the frames that move
    reach: wp.array[wp.float64]
    tree: wp.array[wp.vec2i]  #: of a mesh: its root, and its first triangle
    nodes: wp.array[ObbNode]
    corners: wp.array[wp.vec3d]


@wp.struct
class ChainedPairs:
    """Pairs of bodies, (pairs,) each, the smaller kind first."""

    body: wp.array[wp.vec2i]
    motion: wp.array[wp.vec2i]  #: first record of each chain within a step
    links: wp.array[wp.vec2i]
    smooth: wp.array[wp.bool]  #: which clock, see `tangere.motion.bounds`
    width: wp.int32  #: records of a step


@wp.struct
class ConvexApproach:
    """How near two bodies come; before: as far as is asked."""

    upper: wp.float64  #: the least distance seen [m]
    time: wp.float64  #: of the clock when that was; -1: nothing below what was asked
    certified: wp.bool  #: nothing comes nearer than (1 - accuracy) upper


@wp.func
def side_bounds(
    bodies: ChainedBodies, pairs: ChainedPairs, row: int, side: int, lengths: wp.vec2d
) -> MovingShapeBounds:
    """Bounds of the motion of one body of a row, step * pairs + pair."""
    count = pairs.body.shape[0]
    pair = row % count
    body = pairs.body[pair][side]
    return bounds_along_chain(
        bodies.motions,
        (row // count) * pairs.width + pairs.motion[pair][side],
        pairs.links[pair][side],
        pairs.smooth[pair],
        bodies.records[body],
        bodies.reach[body],
        bodies.poses[body],
        lengths,
        _ZERO,
        vec(),
    )


@cache
def step_contact_kernel(kind_a: int, kind_b: int) -> wp.Kernel:
    """First contacts of rows of pairs of two kinds; a mesh is of kind TRIANGLE.

    rows: of what each is (step * pairs + pair), and where its answer goes; lengths: separation and tolerance there.
    """
    if kind_b == ConvexKind.TRIANGLE:
        search, mesh_told = mesh_reach_of(kind_a), mesh_told_of(kind_a)

        @wp.kernel(module="unique", module_options=SOUND)
        def mesh_step_contacts(
            first: int,
            rows: wp.array[wp.vec2i],
            lengths: wp.array[wp.vec2d],
            bodies: ChainedBodies,
            pairs: ChainedPairs,
            contacts: wp.array[ConvexContact],
        ):
            i = first + wp.tid()
            row = rows[i][0]
            place = rows[i][1]
            both = pairs.body[row % pairs.body.shape[0]]
            wanted = lengths[place]
            m_a = side_bounds(bodies, pairs, row, 0, wanted)
            m_b = side_bounds(bodies, pairs, row, 1, wanted)
            a = bodies.shapes[both[0]]
            tree = bodies.tree[both[1]]
            tolerance = pair_tolerance(m_a, m_b)
            slack = m_a.slack + m_b.slack
            found = search(m_a, m_b, a, bodies.points, bodies.nodes, bodies.corners, tree, wanted[0], tolerance, slack)
            contacts[place] = mesh_told(
                m_a, m_b, a, bodies.points, bodies.corners, tree[1], wanted[0], tolerance, slack, found
            )

        return mesh_step_contacts

    reached, told = reached_by(kind_a, kind_b), told_of(kind_a, kind_b)

    @wp.kernel(module="unique", module_options=SOUND)
    def convex_step_contacts(
        first: int,
        rows: wp.array[wp.vec2i],
        lengths: wp.array[wp.vec2d],
        bodies: ChainedBodies,
        pairs: ChainedPairs,
        contacts: wp.array[ConvexContact],
    ):
        i = first + wp.tid()
        row = rows[i][0]
        place = rows[i][1]
        both = pairs.body[row % pairs.body.shape[0]]
        wanted = lengths[place]
        m_a = side_bounds(bodies, pairs, row, 0, wanted)
        m_b = side_bounds(bodies, pairs, row, 1, wanted)
        a = bodies.shapes[both[0]]
        b = bodies.shapes[both[1]]
        tolerance = pair_tolerance(m_a, m_b)
        slack = m_a.slack + m_b.slack
        found = reached(m_a, m_b, a, bodies.points, b, bodies.points, wanted[0], tolerance, slack, _ZERO, _ONE)
        contacts[place] = told(m_a, m_b, a, bodies.points, b, bodies.points, wanted[0], tolerance, slack, found)

    return convex_step_contacts


@cache
def approach_of(kind_a: int, kind_b: int) -> wp.Function:
    """`approach(m_a, m_b, a, points_a, b, points_b, tolerance, accuracy, tau, before) -> ConvexApproach`.

    `before`, lowered by two bodies between tau and the end.
    """
    closest, safe_step = closest_of(kind_a, kind_b), safe_step_of(kind_a, kind_b)

    @wp.func
    def approach(
        m_a: MovingShapeBounds,
        m_b: MovingShapeBounds,
        a: ConvexShape,
        points_a: wp.array[wp.vec3d],
        b: ConvexShape,
        points_b: wp.array[wp.vec3d],
        tolerance: real,
        accuracy: real,
        tau: real,
        before: ConvexApproach,
    ) -> ConvexApproach:
        best = before
        slack = m_a.slack + m_b.slack
        bend = m_a.bend + m_b.bend
        speed = m_a.fastest + m_b.fastest
        sought = Sought()
        sought.relative = _OF_ACCURACY * accuracy
        sought.enough = FAR
        time = tau
        guess = vec()
        steps = int(0)
        while best.certified and time <= _ONE:
            now_a = outline_at(m_a, time)
            now_b = outline_at(m_b, time)
            state = pair_state(now_a, now_b)
            if steps == 0:
                guess = first_guess(state.offset)
            steps += 1
            sought.tolerance = wp.min(_OF_TOLERANCE * tolerance, _OF_ACCURACY * accuracy * best.upper)
            found = closest(a, points_a, b, points_b, state.rotation, state.offset, guess, sought)
            apart = wp.max(found.upper, _ZERO) + slack
            if found.meet:
                apart = _ZERO + slack
            if apart < best.upper:
                best.upper = apart
                best.time = time
            keep = (_ONE - accuracy) * best.upper + slack
            gap = found.lower - keep
            if found.meet or not gap > _ZERO or best.upper <= tolerance or steps >= _MOST_STEPS:
                best.certified = False  # they touch, or rounding does not allow the accuracy
            else:
                guess = found.normal
                most = wp.max(_ONE - time, _ZERO)
                h = safe_step(a, points_a, b, points_b, state, found, gap, keep, bend, speed, vec(), most)
                if h < most:
                    n = now_a.core.rotation * found.normal
                    h = wp.max(h, largest_safe_step(gap, fastest_closing(m_a, m_b, now_a, now_b, n), _ZERO))
                later = time + h
                if h >= most:
                    later = _ONE + _ONE
                elif not later > time:
                    best.certified = False
                time = later
        return best

    return approach


@cache
def step_approach_kernel(kind_a: int, kind_b: int) -> wp.Kernel:
    """How near bodies of rows of pairs of two kinds come; arguments as for `step_contact_kernel`.

    lengths: 0 and the tolerance; approaches: before, as far as is asked.
    """
    approach = approach_of(kind_a, kind_b)

    if kind_b == ConvexKind.TRIANGLE:
        clear_until = clear_until_of(kind_a)

        @wp.kernel(module="unique", module_options=SOUND)
        def mesh_step_approaches(
            first: int,
            rows: wp.array[wp.vec2i],
            lengths: wp.array[wp.vec2d],
            bodies: ChainedBodies,
            pairs: ChainedPairs,
            accuracy: real,
            approaches: wp.array[ConvexApproach],
        ):
            i = first + wp.tid()
            row = rows[i][0]
            place = rows[i][1]
            pair = row % pairs.body.shape[0]
            both = pairs.body[pair]
            m_a = side_bounds(bodies, pairs, row, 0, lengths[place])
            m_b = side_bounds(bodies, pairs, row, 1, lengths[place])
            a = bodies.shapes[both[0]]
            tree = bodies.tree[both[1]]
            tolerance = pair_tolerance(m_a, m_b)
            slack = m_a.slack + m_b.slack
            best = approaches[place]
            waiting = NodeIds()
            times = NodeBounds()
            count = int(1)
            while count > 0 and best.certified:
                count -= 1
                number = waiting[count]
                tau = times[count]
                node = bodies.nodes[tree[0] + number]
                if node.right < 0:
                    triangle = triangle_of(bodies.corners, tree[1] + node.triangle)
                    m_leaf = with_triangle(m_b, bodies.corners, triangle)
                    best = approach(
                        m_a, m_leaf, a, bodies.points, triangle, bodies.corners, tolerance, accuracy, tau, best
                    )
                else:
                    keep = (_ONE - accuracy) * best.upper + slack
                    state = pair_state(outline_at(m_a, tau), outline_at(m_b, tau))
                    near = number + 1
                    far = node.right
                    near_time = clear_until(
                        m_a, m_b, a, bodies.points, bodies.nodes[tree[0] + near], state, keep, tau, _ONE
                    )
                    far_time = clear_until(
                        m_a, m_b, a, bodies.points, bodies.nodes[tree[0] + far], state, keep, tau, _ONE
                    )
                    if far_time < near_time:
                        near = node.right
                        far = number + 1
                        swapped = near_time
                        near_time = far_time
                        far_time = swapped
                    if far_time <= _ONE:
                        waiting[count] = far
                        times[count] = far_time
                        count += 1
                    if near_time <= _ONE:
                        waiting[count] = near
                        times[count] = near_time
                        count += 1
            if best.time >= _ZERO:
                best.time = reparametrised_time(pairs.smooth[pair], best.time)
            approaches[place] = best

        return mesh_step_approaches

    @wp.kernel(module="unique", module_options=SOUND)
    def convex_step_approaches(
        first: int,
        rows: wp.array[wp.vec2i],
        lengths: wp.array[wp.vec2d],
        bodies: ChainedBodies,
        pairs: ChainedPairs,
        accuracy: real,
        approaches: wp.array[ConvexApproach],
    ):
        i = first + wp.tid()
        row = rows[i][0]
        place = rows[i][1]
        pair = row % pairs.body.shape[0]
        both = pairs.body[pair]
        m_a = side_bounds(bodies, pairs, row, 0, lengths[place])
        m_b = side_bounds(bodies, pairs, row, 1, lengths[place])
        a = bodies.shapes[both[0]]
        b = bodies.shapes[both[1]]
        best = approach(
            m_a,
            m_b,
            a,
            bodies.points,
            b,
            bodies.points,
            pair_tolerance(m_a, m_b),
            accuracy,
            _ZERO,
            approaches[place],
        )
        if best.time >= _ZERO:
            best.time = reparametrised_time(pairs.smooth[pair], best.time)
        approaches[place] = best

    return convex_step_approaches
