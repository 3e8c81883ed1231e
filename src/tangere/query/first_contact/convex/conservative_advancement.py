"""How long two moving convex bodies certainly stay apart, and when they first come within a tolerance.

Question: when does a moving convex body first come within separation + tolerance of another?
Method:   steps. The nearest points (`query.distance.convex`), known to a twentieth of the gap only, give a direction n,
          which is then kept while the bodies go on: after h the gap along it is at least
              f(h) = n.(ca - cb) + h n.(va - vb) - A(-(n + h n x wa)) - B(n + h n x wb) - margins - keep - bend h^2
          with centres c, their velocities v, angular velocities w of the outlines, and supports A, B of the cores about
          their centres: supports that turn with the bodies. f is concave, so f(0) > 0 and f(h) >= 0 certify all
          between; the nearest points' own rates give an h that is no shorter than its root, and zeros of chords are
          safe. The direction may turn on as it did in the step before: near a contact of two features it is theirs at
          both ends, so that what a step leaves shrinks with the square of its length. Each search for nearest points
          begins with the corners of the one before.
Sound:    nothing comes nearer than separation + tolerance / 2 before the answer; at the answer the distance is at most
          separation + tolerance, or the pair is undecided from there on. A ball around a core turns in place: margins
          are constant, and bodies of revolution turn only as their axes do (`heightfield.motion_bounds`).
Known as: conservative advancement (Mirtich 1996; Zhang, Lee and Kim 2006) with a bound of second order in time.
"""

from __future__ import annotations

from functools import cache

import warp as wp

from tangere.query.contacts.record import Status
from tangere.query.distance.convex.narrow_phase import first_guess, followed_of
from tangere.query.distance.convex.result import FAR, Closest, KeptCorners, Sought
from tangere.query.distance.convex.supports import ROUNDED, ConvexShape, core_value_of, margin_of
from tangere.query.first_contact.heightfield.motion_bounds import MovingShapeBounds, Outline, outline_at
from tangere.query.first_contact.rigid.conservative_advancement import largest_safe_step
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

real = wp.float64
vec = wp.vec3d

#: Steps after which a pair that neither touches nor ends is given up as undecided from there on.
MOST_STEPS = wp.constant(10_000)
#: Chords tried for a step.
CHORDS = wp.constant(2)
#: A step asks for the distance to this part of the tolerance and this part of the gap.
OF_TOLERANCE = wp.constant(real(0.1))
OF_GAP = wp.constant(real(0.05))
#: … and at the start, where they are within the tolerance, to this part of it.
SHARP = wp.constant(real(1.0e-5))
_ZERO = wp.constant(real(0.0))
_HALF = wp.constant(real(0.5))
_ONE = wp.constant(real(1.0))
_TWO = wp.constant(real(2.0))
#: A zero of a chord is taken short of itself by more than its rounding.
_SHORT = wp.constant(real(1.0 - 1.0e-9))
#: The rest of a gap along a direction that ends a search for a longer step, relative to the whole.
_LITTLE = wp.constant(real(0.1))
_GAIN = wp.constant(real(0.1))
#: Steps stay short of the nearest points' own way by so much: what is left to the next one saves a chord.
_AIM = wp.constant(real(0.9999))
#: Other directions are tried where a step is below this part of what the nearest points allow.
_WORTH = wp.constant(real(0.8))

CONTACT = wp.constant(int(Status.CONTACT))
START = wp.constant(int(Status.START))
UNRESOLVED = wp.constant(int(Status.UNRESOLVED))


@wp.struct
class ConvexPairState:
    """Two bodies at one instant in a's own frame, its origin in a's centre; velocities of b less those of a."""

    rotation: wp.mat33d  #: of b
    offset: wp.vec3d  #: of b's centre
    velocity: wp.vec3d
    turning_a: wp.vec3d
    turning_b: wp.vec3d


@wp.struct
class ConvexReach:
    """When two bodies come near each other."""

    time: wp.float64  #: of the clock; beyond `until` when they stay apart
    status: wp.int32
    steps: wp.int32
    closest: Closest  #: at `time`, in a's frame
    kept: KeptCorners  #: of the search that found it


@wp.func
def pair_state(a: Outline, b: Outline) -> ConvexPairState:
    state = ConvexPairState()
    back = wp.transpose(a.core.rotation)
    state.rotation = back * b.core.rotation
    state.offset = back * (b.centre - a.centre)
    state.velocity = back * (b.velocity - a.velocity)
    state.turning_a = back * a.turning
    state.turning_b = back * b.turning
    return state


@wp.func
def fastest_closing(a: MovingShapeBounds, b: MovingShapeBounds, now_a: Outline, now_b: Outline, n: vec) -> real:
    """How fast a gap along n, in the world, can close at any time of the step."""
    rate = a.bounds.swing + b.bounds.swing - wp.dot(n, a.bounds.drift - b.bounds.drift)
    across = _ONE + _ZERO
    if a.bounds.fixed_axis:
        across = wp.length(wp.cross(n, now_a.axis))
    rate += across * a.bounds.spin * a.rho + wp.min(a.outline_spin, across * a.bounds.spin) * a.reach
    across = _ONE
    if b.bounds.fixed_axis:
        across = wp.length(wp.cross(n, now_b.axis))
    return rate + across * b.bounds.spin * b.rho + wp.min(b.outline_spin, across * b.bounds.spin) * b.reach


@cache
def safe_step_of(kind_a: int, kind_b: int) -> wp.Function:
    """`safe_step(a, points_a, b, points_b, state, found, gap, keep, bend, speed, turning, most) -> float64`.

    How long a gap that was `found` along its normal, of which `keep` is to be left, certainly stays open, up to `most`.
    `speed`: no two points of the bodies move faster relative to each other; 0 tries no direction but a fixed one.
    `turning`: a rate, across the normal, at which it may be turning; zero where none is known.
    """
    value_a, value_b = core_value_of(kind_a), core_value_of(kind_b)
    margin_a, margin_b = margin_of(kind_a), margin_of(kind_b)

    @wp.func
    def left(
        a: ConvexShape,
        points_a: wp.array[wp.vec3d],
        b: ConvexShape,
        points_b: wp.array[wp.vec3d],
        rotation: wp.mat33d,
        n: vec,
        line: vec,
        turn_a: vec,
        turn_b: vec,
        h: real,
    ) -> real:
        """f(h); `line` has its constant, its slope and the bend."""
        f = line[0] + h * line[1] - line[2] * h * h
        return f - value_a(a, points_a, -(n + h * turn_a)) - value_b(b, points_b, (n + h * turn_b) * rotation)

    @wp.func
    def step_along(
        a: ConvexShape,
        points_a: wp.array[wp.vec3d],
        b: ConvexShape,
        points_b: wp.array[wp.vec3d],
        rotation: wp.mat33d,
        n: vec,
        line: vec,
        turn_a: vec,
        turn_b: vec,
        gap: real,
        far: real,
    ) -> real:
        """A step no longer than `far` after which f is not negative."""
        there = left(a, points_a, b, points_b, rotation, n, line, turn_a, turn_b, far)
        if there >= _ZERO:
            return far
        h = _ZERO + _ZERO
        here = gap + _ZERO
        tries = int(0)
        while tries < CHORDS:
            tries += 1
            t = h + (far - h) * (here / (here - there)) * _SHORT
            f = left(a, points_a, b, points_b, rotation, n, line, turn_a, turn_b, t)
            if not f >= _ZERO:
                tries = CHORDS
            else:
                if f < _LITTLE * gap or t - h <= _GAIN * (far - h):
                    tries = CHORDS
                h = t
                here = f
        return h

    @wp.func
    def safe_step(
        a: ConvexShape,
        points_a: wp.array[wp.vec3d],
        b: ConvexShape,
        points_b: wp.array[wp.vec3d],
        state: ConvexPairState,
        found: Closest,
        gap: real,
        keep: real,
        bend: real,
        speed: real,
        turning: vec,
        most: real,
    ) -> real:
        n = found.normal
        along = -wp.dot(n, state.velocity)
        turn_a = wp.cross(n, state.turning_a)
        turn_b = wp.cross(n, state.turning_b)
        # The nearest points' own way: no step is longer than theirs, up to rounding, which costs a chord.
        rate = -(along + wp.dot(found.point_a, turn_a) - wp.dot(found.point_b - state.offset, turn_b))
        far = wp.min(largest_safe_step(gap, rate, bend), most)
        base = -wp.dot(n, state.offset) - margin_a(a) - margin_b(b) - keep
        h = _ZERO + _ZERO
        # A face that turns leaves a fixed direction at once: one that turns at the rate m, as n + h m, loses only in
        # second order, |m| speed + |m|^2 distance / 2 more. So first one that turns on as the normal did, then a fixed
        # one, then one with b, then one with a.
        known = wp.length_sq(turning) > _ZERO
        side = wp.where(known, 0, 1)
        first = side + 0
        while side < 4 and (side == first or (speed > _ZERO and h < _WORTH * far)):
            m = vec()
            if side == 0:
                m = turning
            elif side == 2:
                m = -turn_b
            elif side == 3:
                m = -turn_a
            spin = wp.length(m)
            if spin > _ZERO or side == 1:
                apart = wp.length(state.offset) + a.reach + b.reach + speed * far
                bent = bend + spin * speed + _HALF * spin * spin * apart
                line = vec(base, along - wp.dot(state.offset, m), bent)
                aim = wp.min(largest_safe_step(gap, rate, bent) * _AIM, far)
                reach = step_along(a, points_a, b, points_b, state.rotation, n, line, turn_a + m, turn_b + m, gap, aim)
                h = wp.max(h, reach)
            side += 1
        return h

    return safe_step


@cache
def reached_by(kind_a: int, kind_b: int) -> wp.Function:
    """`reached(m_a, m_b, a, points_a, b, points_b, separation, tolerance, slack, tau, until) -> ConvexReach`."""
    followed, safe_step = followed_of(kind_a, kind_b), safe_step_of(kind_a, kind_b)
    # Balls around both cores keep these apart, so that the normal of a contact hardly turns.
    sharp_cores = wp.constant(int(kind_a not in ROUNDED or kind_b not in ROUNDED))

    @wp.func
    def reached(
        m_a: MovingShapeBounds,
        m_b: MovingShapeBounds,
        a: ConvexShape,
        points_a: wp.array[wp.vec3d],
        b: ConvexShape,
        points_b: wp.array[wp.vec3d],
        separation: real,
        tolerance: real,
        slack: real,
        tau: real,
        until: real,
    ) -> ConvexReach:
        """When the bodies first come within tolerance; status FREE if not before `until`."""
        result = ConvexReach()
        result.time = tau
        keep = separation + _HALF * tolerance + slack
        bend = m_a.bend + m_b.bend
        speed = m_a.fastest + m_b.fastest
        sought = Sought()
        sought.tolerance = OF_TOLERANCE * tolerance
        sought.relative = OF_GAP
        sought.beyond = separation
        sought.enough = FAR
        guess = vec()
        before = vec()  # the normal of the step before, in the world, and how long that was
        went = _ZERO + _ZERO
        sharp = bool(False)
        going = bool(True)
        while going:
            now_a = outline_at(m_a, result.time)
            now_b = outline_at(m_b, result.time)
            state = pair_state(now_a, now_b)
            if result.steps == 0:
                guess = first_guess(state.offset)
            result.steps += 1
            found, kept = followed(a, points_a, b, points_b, state.rotation, state.offset, guess, result.kept, sought)
            result.closest = found
            result.kept = kept
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
                n = now_a.core.rotation * found.normal
                turning = vec()
                if went > _ZERO and sharp_cores != 0:
                    turning = (n - before) / went
                    turning = (turning - n * wp.dot(n, turning)) * now_a.core.rotation
                h = safe_step(a, points_a, b, points_b, state, found, gap, keep, bend, speed, turning, most)
                if h < most:
                    h = wp.max(h, largest_safe_step(gap, fastest_closing(m_a, m_b, now_a, now_b, n), _ZERO))
                before = n
                went = h
                now = result.time
                result.time += h
                if result.time >= until:
                    result.time = wp.max(result.time, until) + _ONE
                    going = False
                elif not result.time > now or result.steps >= MOST_STEPS:
                    result.status = UNRESOLVED
                    going = False
        return result

    return reached
