"""How long a moving convex body certainly stays clear of a triangle whose corners go along lines.

Question: when does the body first come within separation + tolerance of the triangle?
Method:   steps, as for two rigid bodies (`first_contact.convex`): along the direction n of the nearest points the gap
          after h is at least
              f(h) = -A(-(n + h n x wa)) - max_k (n.(x_k - ca) + h n.(d_k - va)) - margin - keep - bend h^2
          with the body's centre ca, its velocity va and angular velocity wa, corners x_k that move by d_k in the step,
          and the support A of its core. f is concave, so f(0) > 0 and f(h) >= 0 certify all between. A second direction
          turns with the body.
Sound:    corners are exact up to rounding, which is part of `slack`: nothing is assumed of how a triangle deforms.
Known as: conservative advancement (Mirtich 1996) for linear motion of vertices.
"""

from __future__ import annotations

from functools import cache

import warp as wp

from tangere.motion.bounds import reparametrised_time
from tangere.query.contacts.record import Status
from tangere.query.distance.convex.narrow_phase import answer_of, closest_of, first_guess
from tangere.query.distance.convex.result import FAR, Closest, Sought, sought_to
from tangere.query.distance.convex.supports import ConvexKind, ConvexShape, core_value_of, margin_of
from tangere.query.first_contact.convex.conservative_advancement import (
    CHORDS,
    MOST_STEPS,
    OF_GAP,
    OF_TOLERANCE,
    SHARP,
    ConvexReach,
)
from tangere.query.first_contact.convex.search import PROOFS, ConvexContact
from tangere.query.first_contact.heightfield.motion_bounds import MovingShapeBounds, Outline, outline_at
from tangere.query.first_contact.rigid.conservative_advancement import largest_safe_step
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

real = wp.float64
vec = wp.vec3d

_ZERO = wp.constant(real(0.0))
_HALF = wp.constant(real(0.5))
_ONE = wp.constant(real(1.0))
_TWO = wp.constant(real(2.0))
_INFINITE = wp.constant(real(float("inf")))
#: A zero of a chord is taken short of itself by more than its rounding.
_SHORT = wp.constant(real(1.0 - 1.0e-9))
#: The direction that turns with the body is tried where a step is below this part of what the nearest points allow.
_WORTH = wp.constant(real(0.5))
#: How well the distance is known where contact is proved, relative to the tolerance.
_PROOF_TOLERANCE = wp.constant(real(0.01))
CONTACT = wp.constant(int(Status.CONTACT))
START = wp.constant(int(Status.START))
UNRESOLVED = wp.constant(int(Status.UNRESOLVED))
FREE = wp.constant(int(Status.FREE))


@wp.struct
class LinearTriangle:
    """A triangle whose corners go along lines, in the world; lengths in metres."""

    start: wp.mat33d  #: corners at t = 0, by row
    way: wp.mat33d  #: where each goes in the step, by row


@wp.struct
class TriangleNow:
    """The triangle at one instant, in the frame of the body it may meet."""

    shape: ConvexShape
    rotation: wp.mat33d  #: of the frame its corners are in, which is the world's
    offset: wp.vec3d  #: of its first corner, which is the origin of that frame


@wp.func
def triangle_now(triangle: LinearTriangle, o: Outline, tau: real, row: int, corners: wp.array[wp.vec3d]) -> TriangleNow:
    """The triangle next to a body; its corners are written to the table, from 3 row on."""
    now = triangle.start + tau * triangle.way
    origin = now[0]
    corners[3 * row] = vec(_ZERO, _ZERO, _ZERO)
    corners[3 * row + 1] = now[1] - origin
    corners[3 * row + 2] = now[2] - origin
    found = TriangleNow()
    found.shape.first = 3 * row
    found.shape.count = 3
    found.shape.reach = wp.sqrt(wp.max(wp.length_sq(now[1] - origin), wp.length_sq(now[2] - origin)))
    found.rotation = wp.transpose(o.core.rotation)
    found.offset = found.rotation * (origin - o.centre)
    return found


@cache
def clear_step_of(kind: int) -> wp.Function:
    """`clear_step(m, o, a, points, triangle, tau, found, gap, keep, most) -> float64` for a kind of bodies.

    How long a gap that was `found` along its normal, of which `keep` is to be left, certainly stays open, up to `most`.
    """
    value, margin = core_value_of(kind), margin_of(kind)

    @wp.func
    def left(
        a: ConvexShape, points: wp.array[wp.vec3d], n: vec, turn: vec, p: vec, q: vec, line: wp.vec2d, h: real
    ) -> real:
        """f(h); `line` has its constant and the bend, p and q the corners' places and rates along n."""
        corner = p + h * q
        most = wp.max(corner[0], wp.max(corner[1], corner[2]))
        return line[0] - value(a, points, -(n + h * turn)) - most - line[1] * h * h

    @wp.func
    def step_along(
        a: ConvexShape, points: wp.array[wp.vec3d], n: vec, turn: vec, p: vec, q: vec, line: wp.vec2d, far: real
    ) -> real:
        """A step no longer than `far` after which f is not negative."""
        here = left(a, points, n, turn, p, q, line, _ZERO)
        there = left(a, points, n, turn, p, q, line, far)
        if there >= _ZERO:
            return far
        h = _ZERO + _ZERO
        tries = int(0)
        while tries < CHORDS and here > _ZERO:
            tries += 1
            t = h + (far - h) * (here / (here - there)) * _SHORT
            here = left(a, points, n, turn, p, q, line, t)
            if here >= _ZERO:
                h = t
        return h

    @wp.func
    def clear_step(
        m: MovingShapeBounds,
        o: Outline,
        a: ConvexShape,
        points: wp.array[wp.vec3d],
        triangle: LinearTriangle,
        tau: real,
        found: Closest,
        gap: real,
        keep: real,
        most: real,
    ) -> real:
        n = found.normal
        world = o.core.rotation * n
        now = triangle.start + tau * triangle.way
        arm0 = now[0] - o.centre
        arm1 = now[1] - o.centre
        arm2 = now[2] - o.centre
        p = vec(wp.dot(world, arm0), wp.dot(world, arm1), wp.dot(world, arm2))
        rates = vec(wp.dot(world, triangle.way[0]), wp.dot(world, triangle.way[1]), wp.dot(world, triangle.way[2]))
        along = wp.dot(world, o.velocity)
        q = rates - vec(along, along, along)
        spin = o.turning * o.core.rotation
        turn = wp.cross(n, spin)
        # No step is longer than that of the body's nearest point and the corner that is nearest along n.
        closing = q[0] + _ZERO
        if p[1] > p[0]:
            closing = q[1] + _ZERO
        if p[2] > wp.max(p[0], p[1]):
            closing = q[2] + _ZERO
        far = wp.min(largest_safe_step(gap, closing - wp.dot(found.point_a, turn), m.bend), most)
        line = wp.vec2d(-margin(a) - keep, m.bend)
        h = step_along(a, points, n, turn, p, q, line, far)
        speed = wp.length(spin)
        if speed > _ZERO and h < _WORTH * far:
            # A direction that turns with the body loses in second order only: |w| |d_k - va| + |w|^2 |x_k - ca| / 2.
            fastest = wp.max(
                wp.length(triangle.way[0]), wp.max(wp.length(triangle.way[1]), wp.length(triangle.way[2]))
            ) + wp.length(o.velocity)
            reach = wp.max(wp.length(arm0), wp.max(wp.length(arm1), wp.length(arm2))) + a.reach
            apart = reach + (fastest + m.fastest) * far
            own = wp.cross(o.turning, world)
            shifted = q + vec(wp.dot(own, arm0), wp.dot(own, arm1), wp.dot(own, arm2))
            bent = wp.vec2d(line[0], m.bend + speed * (fastest + m.fastest) + _HALF * speed * speed * apart)
            h = wp.max(h, step_along(a, points, n, vec(), p, shifted, bent, far))
        if h < most:
            # Whatever the body does in the rest of the step.
            lever = _ONE + _ZERO
            if m.bounds.fixed_axis:
                lever = wp.length(wp.cross(world, o.axis))
            outline = wp.min(m.outline_spin, lever * m.bounds.spin) * m.reach
            rate = m.bounds.swing - wp.dot(world, m.bounds.drift) + lever * m.bounds.spin * m.rho + outline
            rate += wp.max(rates[0], wp.max(rates[1], rates[2]))
            h = wp.max(h, largest_safe_step(gap, rate, _ZERO))
        return h

    return clear_step


@cache
def triangle_reached_by(kind: int) -> wp.Function:
    """`reached(m, a, points, triangle, row, corners, separation, tolerance, slack, tau, until) -> ConvexReach`."""
    closest, clear_step = closest_of(kind, ConvexKind.TRIANGLE), clear_step_of(kind)

    @wp.func
    def reached(
        m: MovingShapeBounds,
        a: ConvexShape,
        points: wp.array[wp.vec3d],
        triangle: LinearTriangle,
        row: int,
        corners: wp.array[wp.vec3d],
        separation: real,
        tolerance: real,
        slack: real,
        tau: real,
        until: real,
    ) -> ConvexReach:
        """When they first come within tolerance; status FREE if not before `until`."""
        result = ConvexReach()
        result.time = tau
        keep = separation + _HALF * tolerance + slack
        sought = Sought()
        sought.tolerance = OF_TOLERANCE * tolerance
        sought.relative = OF_GAP
        sought.beyond = separation
        sought.enough = FAR
        guess = vec()
        sharp = bool(False)
        going = bool(True)
        while going:
            o = outline_at(m, result.time)
            now = triangle_now(triangle, o, result.time, row, corners)
            if result.steps == 0:
                guess = first_guess(now.offset)
            result.steps += 1
            found = closest(a, points, now.shape, corners, now.rotation, now.offset, guess, sought)
            result.closest = found
            gap = found.lower - keep
            touch = found.meet or found.upper <= separation
            if result.time == _ZERO and not touch and not sharp and found.upper <= separation + tolerance:
                # Whether they touch at the start is asked as sharply as can be.
                sharp = True
                guess = found.normal
                sought.tolerance = SHARP * tolerance
                sought.relative = _ZERO
            elif found.meet or found.upper <= separation + tolerance:
                result.status = CONTACT
                if result.time == _ZERO and touch:
                    result.status = START
                going = False
            elif not gap > _ZERO:
                result.status = UNRESOLVED
                going = False
            else:
                guess = found.normal
                most = wp.max(until - result.time, _ZERO)
                h = clear_step(m, o, a, points, triangle, result.time, found, gap, keep, most)
                before = result.time
                result.time += h
                if result.time >= until:
                    result.time = wp.max(result.time, until) + _ONE
                    going = False
                elif not result.time > before or result.steps >= MOST_STEPS:
                    result.status = UNRESOLVED
                    going = False
        return result

    return reached


@cache
def told_of_triangle(kind: int) -> wp.Function:
    """`told(m, a, points, triangle, row, corners, separation, tolerance, slack, reach) -> ConvexContact`."""
    closest, answer_from = closest_of(kind, ConvexKind.TRIANGLE), answer_of(kind, ConvexKind.TRIANGLE)

    @wp.func
    def told(
        m: MovingShapeBounds,
        a: ConvexShape,
        points: wp.array[wp.vec3d],
        triangle: LinearTriangle,
        row: int,
        corners: wp.array[wp.vec3d],
        separation: real,
        tolerance: real,
        slack: real,
        reach: ConvexReach,
    ) -> ConvexContact:
        contact = ConvexContact()
        contact.time = reparametrised_time(m.smooth, reach.time)
        contact.time_upper = _INFINITE
        contact.status = reach.status
        contact.tolerance = tolerance
        o = outline_at(m, reach.time)
        now = triangle_now(triangle, o, reach.time, row, corners)
        near = answer_from(a, now.shape, reach.closest)
        contact.point_a = o.centre + o.core.rotation * near.point_a
        contact.point_b = o.centre + o.core.rotation * near.point_b
        contact.normal = o.core.rotation * near.normal
        if reach.status == START:
            contact.time_upper = _ZERO
        elif reach.status == CONTACT:
            on_a = o.velocity + wp.cross(o.turning, o.core.rotation * reach.closest.point_a)
            fastest = -_INFINITE
            for k in range(3):
                fastest = wp.max(fastest, wp.dot(contact.normal, triangle.way[k] - on_a))
            wait = _TWO * (reach.closest.upper - separation + slack) / wp.max(fastest, real(1.0e-300))
            tries = int(0)
            while tries < PROOFS and fastest > _ZERO:
                tries += 1
                tau = wp.min(reach.time + wait, _ONE)
                there = outline_at(m, tau)
                later = triangle_now(triangle, there, tau, row, corners)
                sought = sought_to(_PROOF_TOLERANCE * tolerance)
                found = closest(
                    a, points, later.shape, corners, later.rotation, later.offset, reach.closest.normal, sought
                )
                if found.meet or found.upper <= separation - slack:
                    contact.time_upper = reparametrised_time(m.smooth, tau)
                    tries = PROOFS
                wait = wait * _TWO
        return contact

    return told
