"""How long a moving body certainly stays on its side of a plane.

Method: bounds of `tangere.motion.bounds` for the body's origin, and for how its outline turns about that. The outline
        of a body with an axis of symmetry only turns as the axis does: the spin of a wheel about its own axle is free.
        With u the axis and w the angular velocity, the outline moves as if it turned with w' = w - (w.u) u; the
        acceleration of its points is below |w'| (|w'| + |w.u|) and the angular acceleration, each times their distance.
Known as: directional motion bounds of conservative advancement (Mirtich 1996; Zhang, Lee and Kim 2006).
"""

from __future__ import annotations

from functools import cache

import warp as wp

from tangere.motion import COSINE, RigidMotion
from tangere.motion.bounds import (
    MotionBounds,
    SteadyMotion,
    is_steady,
    motion_bounds_of,
    state_of,
    steady_of,
    steady_state,
    steady_within,
)
from tangere.query.first_contact.rigid.conservative_advancement import largest_safe_step
from tangere.runtime import SOUND
from tangere.shape.analytic import HULL, ROUND, AnalyticShape, Hulls, PlacedBody, support_of, support_value_of

wp.set_module_options(SOUND)

_ZERO = wp.constant(wp.float64(0.0))
_HALF = wp.constant(wp.float64(0.5))
_ONE = wp.constant(wp.float64(1.0))
_TWO = wp.constant(wp.float64(2.0))
#: Largest |w'| (|w'| + |w.u|) for |w| = 1: (1 + sqrt 2) / 2.
_MOST_BEND = wp.constant(wp.float64(1.21))
#: Chords tried for a step.
CHORDS = wp.constant(2)
#: Positions are exact to this part of the lengths involved: 64 roundings.
_ROUNDING = wp.constant(wp.float64(64.0 * 2.0**-53))
_LEAST_TOLERANCE = wp.constant(wp.float64(1.0e-12))
_DEFAULT_TOLERANCE = wp.constant(wp.float64(1.0e-6))


@wp.struct
class MovingShapes:
    """n moving bodies, and how near counts; motions, shapes, poses and reaches of each, or of one for all."""

    motions: wp.array[RigidMotion]  # `links` of them for each
    links: wp.int32  # records whose product is the motion
    shapes: wp.array[AnalyticShape]
    poses: wp.array[wp.mat44d]
    reach: wp.array[wp.float64]  # largest distance of a core's points from its origin
    hulls: Hulls
    separation: wp.float64
    tolerance: wp.float64  # negative means the default
    smooth: wp.bool  # take the clock of a COSINE motion, for the other body has one; see `tangere.motion.bounds`


@wp.struct
class MovingShapeBounds:
    """What is the same for the whole step."""

    motions: wp.array[RigidMotion]
    at: wp.int32  # where its motion is in these
    links: wp.int32  # records whose product is the motion
    hulls: Hulls
    origin: wp.vec3d  # of the terrain
    bounds: MotionBounds
    smooth: wp.bool  # which clock, see `tangere.motion.bounds`
    shape: AnalyticShape
    turned: wp.mat33d  # how the shape lies in the frame that moves
    arm: wp.vec3d  # from the pivot to the shape's origin, in the frame that moves
    rho: wp.float64  # distance of that from the axis
    radius: wp.float64  # around the core
    reach: wp.float64  # largest distance of the core's points from the origin
    outline_spin: wp.float64  # largest speed at which the outline turns
    fastest: wp.float64  # largest speed of the outline's points
    bend: wp.float64  # half of the largest acceleration of the outline's points
    separation: wp.float64
    tolerance: wp.float64
    slack: wp.float64  # rounding error of a gap
    is_steady: wp.bool  # at constant rates: then the shape's frame itself is a motion, whose state costs one sine
    steady: SteadyMotion  # … which is this one, relative to the terrain's origin


@wp.struct
class Outline:
    """The body at one instant, relative to the terrain's origin."""

    core: PlacedBody
    centre: wp.vec3d
    velocity: wp.vec3d  # of the centre
    turning: wp.vec3d  # the angular velocity the outline has
    axis: wp.vec3d  # of the turn, world


@wp.func
def moving_shape_bounds_of(
    queries: MovingShapes, i: int, ground_error: wp.float64, origin: wp.vec3d
) -> MovingShapeBounds:
    """Bounds of the motion of body i; a tolerance that would drown in rounding is made larger."""
    at = wp.min(i * queries.links, queries.motions.shape[0] - queries.links)
    m = bounds_along_chain(
        queries.motions,
        at,
        queries.links,
        queries.smooth,
        queries.shapes[wp.min(i, queries.shapes.shape[0] - 1)],
        queries.reach[wp.min(i, queries.reach.shape[0] - 1)],
        queries.poses[wp.min(i, queries.poses.shape[0] - 1)],
        wp.vec2d(queries.separation, queries.tolerance),
        ground_error,
        origin,
    )
    m.hulls = queries.hulls
    return m


@wp.func
def bounds_along_chain(
    motions: wp.array[RigidMotion],
    at: int,
    links: int,
    smooth: bool,
    shape: AnalyticShape,
    reach: wp.float64,
    pose: wp.mat44d,
    lengths: wp.vec2d,
    ground_error: wp.float64,
    origin: wp.vec3d,
) -> MovingShapeBounds:
    """The same of a body that is moved by the `links` records from `at` on; lengths: separation and tolerance."""
    separation = lengths[0]
    m = MovingShapeBounds()
    m.motions = motions
    m.at = at
    m.links = links
    m.origin = origin
    m.smooth = smooth
    for k in range(links):
        m.smooth = m.smooth or motions[at + k].kind == COSINE
    m.bounds = motion_bounds_of(motions, at, links, m.smooth)
    m.shape = shape
    m.turned = wp.mat33d(
        pose[0, 0], pose[0, 1], pose[0, 2], pose[1, 0], pose[1, 1], pose[1, 2], pose[2, 0], pose[2, 1], pose[2, 2]
    )
    m.arm = wp.vec3d(pose[0, 3], pose[1, 3], pose[2, 3]) - m.bounds.pivot
    m.reach = reach
    if shape.kind == ROUND:
        m.radius = shape.radius
    m.rho = wp.length(m.arm)
    spin = m.bounds.spin
    m.outline_spin = spin
    turn = m.bounds.turn
    if m.bounds.fixed_axis:
        m.rho = wp.length(wp.cross(m.arm, m.bounds.axis))
        if shape.kind != HULL:
            u = wp.vec3d(pose[0, 2], pose[1, 2], pose[2, 2])
            across = wp.length(wp.cross(u, m.bounds.axis))
            along = wp.abs(wp.dot(u, m.bounds.axis))
            m.outline_spin = across * spin
            turn = across * (spin * spin * (across + along) + wp.max(turn - spin * spin, _ZERO))
    elif shape.kind != HULL:
        turn = _MOST_BEND * turn
    m.bend = _HALF * (m.bounds.acceleration + m.bounds.turn * m.rho + turn * reach)
    way = wp.length(m.bounds.drift) + m.bounds.swing + spin * m.rho
    m.fastest = way + m.outline_spin * reach
    path = m.bounds.path
    if links > 1:  # the links before the last one turn its pivot
        path *= _ONE + spin
    size = path + wp.length(origin) + way + (_ONE + spin) * (wp.length(m.arm) + reach) + m.radius + separation
    m.separation = separation
    m.tolerance = lengths[1]
    if m.tolerance < _ZERO:
        m.tolerance = _DEFAULT_TOLERANCE * (_TWO * (reach + m.radius) + way)
    m.tolerance = wp.max(m.tolerance, wp.max(_LEAST_TOLERANCE * size, ground_error))
    m.slack = _ROUNDING * size
    m.is_steady = links == 1 and not m.smooth and is_steady(motions[at])
    if m.is_steady:
        m.steady = steady_within(steady_of(motions[at]), m.turned, m.arm, origin)
    return m


@wp.func
def outline_at(m: MovingShapeBounds, tau: wp.float64) -> Outline:
    """The body at tau."""
    o = Outline()
    if m.is_steady:
        state = steady_state(m.steady, tau)
        o.core.rotation = state.rotation
        o.centre = state.point
        o.velocity = state.linear
        o.turning = state.angular
        o.axis = m.steady.axis
    else:
        state = state_of(m.motions, m.at, m.links, m.smooth, tau)
        arm = state.rotation * m.arm
        o.core.rotation = state.rotation * m.turned
        o.centre = state.point + arm - m.origin
        o.velocity = state.linear + wp.cross(state.angular, arm)
        o.turning = state.angular
        o.axis = state.rotation * m.bounds.axis
    o.core.axis = wp.vec3d(o.core.rotation[0, 2], o.core.rotation[1, 2], o.core.rotation[2, 2])
    o.core.half = m.shape.half
    o.core.reach = m.shape.half[2]
    o.core.radius = m.shape.radius - m.radius
    if m.shape.kind != HULL:
        o.turning -= wp.dot(o.turning, o.core.axis) * o.core.axis
    return o


@cache
def safe_time_of(kind: int) -> wp.Function:
    """`safe_time(m, outline, n, gap, tau) -> float64`: until when a gap along n stays open."""
    support, reach = support_of(kind), support_value_of(kind)

    @wp.func
    def safe_time(m: MovingShapeBounds, o: Outline, n: wp.vec3d, gap: wp.float64, tau: wp.float64) -> wp.float64:
        # After h the gap is at least gap + h n.v + min r.(n + h q) - min r.n - bend h^2, over all points r of the
        # outline. That is concave in h: chords lie below it, and their zeros are safe.
        q = wp.cross(n, o.turning)
        lowest = support(o.core, m.hulls, -n)
        down = reach(o.core, m.hulls, -n)
        nearer = wp.dot(n, o.velocity)
        far = wp.min(largest_safe_step(gap, -nearer - wp.dot(lowest, q), m.bend), _TWO)
        h = _ZERO + _ZERO
        here = gap + _ZERO
        steps = int(0)
        while steps < CHORDS:
            u = n + far * q
            there = gap + far * nearer + down - reach(o.core, m.hulls, -u)
            there -= m.bend * far * far
            steps += 1
            if there >= -m.slack:
                h = far
                steps = CHORDS
            else:
                # The zero of the chord from h is safe; from there the next one is steeper and goes further.
                h += (far - h) * here / (here - there)
                far = h + (far - h) * _HALF
                u = n + h * q
                here = gap + h * nearer + down - reach(o.core, m.hulls, -u)
                here = wp.max(here - m.bend * h * h, _ZERO)
        lever = _ONE + _ZERO
        if m.bounds.fixed_axis:
            lever = wp.length(wp.cross(n, o.axis))
        outline = wp.min(m.outline_spin, lever * m.bounds.spin) * m.reach
        rate = m.bounds.swing - wp.dot(n, m.bounds.drift) + lever * m.bounds.spin * m.rho + outline
        return tau + wp.max(h, largest_safe_step(gap, rate, _ZERO))

    return safe_time
