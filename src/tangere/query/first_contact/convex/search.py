"""First contact of n pairs of moving convex bodies: one kernel a pair of kinds, one thread a pair."""

from __future__ import annotations

from functools import cache

import warp as wp

from tangere.motion.bounds import reparametrised_time
from tangere.query.contacts.record import Status
from tangere.query.distance.convex.narrow_phase import answer_of, followed_of
from tangere.query.distance.convex.result import sought_to
from tangere.query.distance.convex.supports import ConvexShape
from tangere.query.first_contact.convex.conservative_advancement import ConvexReach, pair_state, reached_by
from tangere.query.first_contact.heightfield.motion_bounds import (
    MovingShapeBounds,
    MovingShapes,
    Outline,
    moving_shape_bounds_of,
    outline_at,
)
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

real = wp.float64
vec = wp.vec3d

#: Attempts to prove that contact does happen, each twice as long after the first time.
PROOFS = wp.constant(5)
#: How well the distance is known there, relative to the tolerance.
_PROOF_TOLERANCE = wp.constant(real(0.01))
_ZERO = wp.constant(real(0.0))
_ONE = wp.constant(real(1.0))
_TWO = wp.constant(real(2.0))
_INFINITE = wp.constant(real(float("inf")))
CONTACT = wp.constant(int(Status.CONTACT))
START = wp.constant(int(Status.START))
FREE = wp.constant(int(Status.FREE))


@wp.struct
class ConvexContact:
    """What one pair finds; lengths in metres, world."""

    time: wp.float64
    time_upper: wp.float64
    status: wp.int32
    point_a: wp.vec3d
    point_b: wp.vec3d
    normal: wp.vec3d
    triangle: wp.int32  #: of a mesh on the second side, else -1
    tolerance: wp.float64  #: that was kept


@wp.func
def pair_tolerance(a: MovingShapeBounds, b: MovingShapeBounds) -> real:
    """The wanted tolerance, or the least that can be kept next to the rounding of both bodies."""
    return wp.max(a.tolerance, b.tolerance)


@cache
def told_of(kind_a: int, kind_b: int) -> wp.Function:
    """`told(m_a, m_b, a, points_a, b, points_b, separation, tolerance, slack, reach) -> ConvexContact`."""
    followed, answer_from = followed_of(kind_a, kind_b), answer_of(kind_a, kind_b)

    @wp.func
    def touches_after(
        m_a: MovingShapeBounds,
        m_b: MovingShapeBounds,
        a: ConvexShape,
        points_a: wp.array[wp.vec3d],
        b: ConvexShape,
        points_b: wp.array[wp.vec3d],
        separation: real,
        tolerance: real,
        slack: real,
        reach: ConvexReach,
        now_a: Outline,
        now_b: Outline,
    ) -> real:
        """A time not much after a contact when the bodies certainly touch; inf if none was found."""
        near = reach.closest
        n = now_a.core.rotation * near.normal
        on_a = now_a.velocity + wp.cross(now_a.turning, now_a.core.rotation * near.point_a)
        arm = now_a.centre + now_a.core.rotation * near.point_b - now_b.centre
        on_b = now_b.velocity + wp.cross(now_b.turning, arm)
        speed = wp.dot(n, on_b - on_a)
        if not speed > _ZERO:
            return _INFINITE
        wait = _TWO * (near.upper - separation + slack) / speed
        tries = int(0)
        while tries < PROOFS:
            tries += 1
            tau = wp.min(reach.time + wait, _ONE)
            state = pair_state(outline_at(m_a, tau), outline_at(m_b, tau))
            sought = sought_to(_PROOF_TOLERANCE * tolerance)
            later, _kept = followed(
                a, points_a, b, points_b, state.rotation, state.offset, near.normal, reach.kept, sought
            )
            if later.meet or later.upper <= separation - slack:
                return reparametrised_time(m_a.smooth, tau)
            wait = wait * _TWO
        return _INFINITE

    @wp.func
    def told(
        m_a: MovingShapeBounds,
        m_b: MovingShapeBounds,
        a: ConvexShape,
        points_a: wp.array[wp.vec3d],
        b: ConvexShape,
        points_b: wp.array[wp.vec3d],
        separation: real,
        tolerance: real,
        slack: real,
        reach: ConvexReach,
    ) -> ConvexContact:
        contact = ConvexContact()
        contact.time = _INFINITE
        contact.time_upper = _INFINITE
        contact.status = reach.status
        contact.triangle = -1
        contact.tolerance = tolerance
        if reach.status != FREE:
            contact.time = reparametrised_time(m_a.smooth, reach.time)
            now_a = outline_at(m_a, reach.time)
            now_b = outline_at(m_b, reach.time)
            near = answer_from(a, b, reach.closest)
            turned = now_a.core.rotation
            contact.point_a = now_a.centre + turned * near.point_a
            contact.point_b = now_a.centre + turned * near.point_b
            contact.normal = turned * near.normal
            if reach.status == START:
                contact.time_upper = _ZERO
            elif reach.status == CONTACT:
                contact.time_upper = touches_after(
                    m_a, m_b, a, points_a, b, points_b, separation, tolerance, slack, reach, now_a, now_b
                )
        return contact

    return told


@cache
def contact_kernel(kind_a: int, kind_b: int) -> wp.Kernel:
    """First contacts of n pairs of bodies of two kinds, the smaller kind first; one of either may serve all."""
    reached, told = reached_by(kind_a, kind_b), told_of(kind_a, kind_b)

    @wp.kernel(module="unique", module_options=SOUND)
    def convex_contacts(
        first: int,
        moving_a: MovingShapes,
        shapes_a: wp.array[ConvexShape],
        points_a: wp.array[wp.vec3d],
        moving_b: MovingShapes,
        shapes_b: wp.array[ConvexShape],
        points_b: wp.array[wp.vec3d],
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
        b = shapes_b[wp.min(i, shapes_b.shape[0] - 1)]
        tolerance = pair_tolerance(m_a, m_b)
        slack = m_a.slack + m_b.slack
        reach = reached(m_a, m_b, a, points_a, b, points_b, separation, tolerance, slack, _ZERO, _ONE)
        contacts[i] = told(m_a, m_b, a, points_a, b, points_b, separation, tolerance, slack, reach)

    return convex_contacts
