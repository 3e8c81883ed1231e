"""Bounces within a step: who meets whom when, and how fast they part.

Question: where is an island of bodies, and how fast, at the end of a step in which some of its contacts bounce?
Method:   the rows tell how gaps close. From one closing gap to the next the bodies of the island go along their
          parabolas; at each, impacts go pair by pair, the fastest first, all contacts of a pair at once with Coulomb
          friction, until nobody approaches. Approaches slower than `rest_speed` of the options do not bounce: no
          endless series of ever smaller bounces. What is left of the step is free motion; the solver then keeps to the
          rows what must be kept to them.
Sound:    a pair's impact never adds energy: impulses that would are made smaller by one factor. Nothing here decides
          whether bodies meet: the motion is walked like any other.
Known as: sequential impacts with Newton's restitution (Chatterjee and Ruina 1998), event-driven within a step. All
          contacts at once with one restitution (Redon 2002, equation 5.14) do not make Newton's cradle.
"""

from __future__ import annotations

import warp as wp

from tangere.dynamics.contact.rows import Distances, RowFacts
from tangere.dynamics.solver import ContactRowArrays, RigidBodyArrays, vec6d
from tangere.dynamics.solver.islands import IslandArrays
from tangere.dynamics.solver.local_law import contact_impulse
from tangere.dynamics.state import RigidState, at_point, joined
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: Events of an island in one step, impacts at one event and sweeps of one impact, at most.
EVENTS, IMPACTS, SWEEPS = wp.constant(32), wp.constant(256), wp.constant(100)
#: Security distances within which contacts take part in an impact.
NEAR = wp.constant(wp.float64(2.3))
#: Of the fastest approach: what counts as none.
SLOW = wp.constant(wp.float64(1.0e-9))
_ZERO = wp.constant(wp.float64(0.0))
_HALF = wp.constant(wp.float64(0.5))


@wp.struct
class FlightArrays:
    """Bodies while their island goes from impact to impact, one element each."""

    velocity: wp.array[vec6d]
    way: wp.array[vec6d]  # gone so far
    pushed: wp.array[vec6d]  # velocity before the impact of a pair


@wp.func
def normal_of(rows: ContactRowArrays, i: int) -> wp.vec3d:
    return wp.vec3d(rows.frame[i][0, 0], rows.frame[i][0, 1], rows.frame[i][0, 2])


@wp.func
def relative(rows: ContactRowArrays, i: int, motion: wp.array[vec6d]) -> wp.vec3d:
    """The relative motion at a row, in its frame."""
    way = at_point(motion[rows.body_a[i]], rows.arm_a[i]) - at_point(motion[rows.body_b[i]], rows.arm_b[i])
    return rows.frame[i] * way


@wp.func
def closing_time(room: wp.float64, speed: wp.float64, pull: wp.float64) -> wp.float64:
    """When room + speed t + pull t^2/2 is first 0 from above, t >= 0; below 0 if never."""
    if room <= _ZERO:
        if speed < _ZERO:
            return _ZERO
        return wp.float64(-1.0)
    root = speed * speed - wp.float64(2.0) * pull * room
    if root < _ZERO:
        return wp.float64(-1.0)
    q = -speed + wp.sqrt(root)  # of the two roots the one without cancellation, for approaches
    if q <= _ZERO:
        return wp.float64(-1.0)
    return wp.float64(2.0) * room / q


@wp.func
def delassus(bodies: RigidBodyArrays, body: int, arm: wp.vec3d, frame: wp.mat33d) -> wp.mat33d:
    """How a row's impulse moves its point of one body, in the row's frame."""
    turned = wp.skew(arm)
    one = wp.identity(n=3, dtype=wp.float64)
    world = bodies.inverse_mass[body] * one - turned * bodies.inverse_inertia[body] * turned
    return frame * world * wp.transpose(frame)


@wp.func
def pushed_by(bodies: RigidBodyArrays, body: int, arm: wp.vec3d, impulse: wp.vec3d) -> vec6d:
    """The change of a body's velocity by an impulse at an arm."""
    return joined(bodies.inverse_mass[body] * impulse, bodies.inverse_inertia[body] * wp.cross(arm, impulse))


@wp.func
def impact_of_pair(
    islands: IslandArrays,
    begin: int,
    end: int,
    a: int,
    b: int,
    limit: wp.float64,
    rest: wp.float64,
    bodies: RigidBodyArrays,
    rows: ContactRowArrays,
    facts: RowFacts,
    flight: FlightArrays,
):
    """All near contacts of two bodies take their impulses at once; bodies of no island do not move by them."""
    moves_a = islands.number[a] >= 0
    moves_b = islands.number[b] >= 0
    if moves_a:
        flight.pushed[a] = flight.velocity[a]
    if moves_b:
        flight.pushed[b] = flight.velocity[b]
    for c in range(begin, end):
        i = islands.contact_order[c]
        if rows.body_a[i] == a and rows.body_b[i] == b:
            rows.impulse[i] = wp.vec3d()
    change = wp.float64(1.0)
    sweep = int(0)
    while sweep < SWEEPS and change > _ZERO:
        change = _ZERO
        largest = _ZERO
        for c in range(begin, end):
            i = islands.contact_order[c]
            if rows.body_a[i] == a and rows.body_b[i] == b:
                if facts.gap[i] + relative(rows, i, flight.way)[0] <= limit:
                    before = relative(rows, i, flight.pushed)
                    u = relative(rows, i, flight.velocity)
                    if before[0] < -rest:
                        u[0] = u[0] + facts.restitution[i] * before[0]
                    frame = rows.frame[i]
                    d = delassus(bodies, a, rows.arm_a[i], frame) + delassus(bodies, b, rows.arm_b[i], frame)
                    r = rows.impulse[i]
                    new = contact_impulse(u - d * r, r, d, wp.inverse(d), rows.friction[i])
                    push = wp.transpose(frame) * (new - r)
                    rows.impulse[i] = new
                    if moves_a:
                        flight.velocity[a] = flight.velocity[a] + pushed_by(bodies, a, rows.arm_a[i], push)
                    if moves_b:
                        flight.velocity[b] = flight.velocity[b] - pushed_by(bodies, b, rows.arm_b[i], push)
                    change = wp.max(change, wp.length(new - r))
                    largest = wp.max(largest, wp.length(new))
        if change <= wp.float64(1.0e-14) * largest:
            change = _ZERO
        sweep += 1
    # the work of the impulses: half of them times the velocities before and after
    first = _ZERO
    second = _ZERO
    for c in range(begin, end):
        i = islands.contact_order[c]
        if rows.body_a[i] == a and rows.body_b[i] == b:
            before = relative(rows, i, flight.pushed)
            first += wp.dot(rows.impulse[i], before)
            second += wp.dot(rows.impulse[i], relative(rows, i, flight.velocity) - before)
    scale = wp.float64(1.0)
    if first + _HALF * second > _ZERO and second > _ZERO:
        scale = wp.clamp(wp.float64(-2.0) * first / second, _ZERO, wp.float64(1.0))
        if moves_a:
            flight.velocity[a] = flight.pushed[a] + scale * (flight.velocity[a] - flight.pushed[a])
        if moves_b:
            flight.velocity[b] = flight.pushed[b] + scale * (flight.velocity[b] - flight.pushed[b])
    for c in range(begin, end):
        i = islands.contact_order[c]
        if rows.body_a[i] == a and rows.body_b[i] == b:
            facts.struck[i] = facts.struck[i] + scale * rows.impulse[i]


@wp.kernel
def bounce_islands(
    first: int,
    islands: IslandArrays,
    bodies: RigidBodyArrays,
    rows: ContactRowArrays,
    facts: RowFacts,
    state: RigidState,
    free: wp.array[vec6d],
    distances: Distances,
    flight: FlightArrays,
    bounced: wp.array[int],
):
    """One island an index: from impact to impact. `bounced` counts the events of each island; impulses of rows of
    islands that bounce are lost.

    Args:
        flight: begins with the velocities now, and with no way.
    """
    k = first + wp.tid()
    begin = islands.contact_first[k]
    end = islands.contact_first[k + 1]
    dt = distances.dt[0]
    limit = distances.kept + NEAR * distances.security
    left = wp.float64(dt)
    for c in range(begin, end):
        facts.struck[islands.contact_order[c]] = wp.vec3d()
    events = int(0)
    more = bool(True)
    while more and events < EVENTS:
        soonest = wp.float64(2.0) * dt
        for c in range(begin, end):
            i = islands.contact_order[c]
            if facts.restitution[i] > _ZERO:
                a = rows.body_a[i]
                b = rows.body_b[i]
                normal = normal_of(rows, i)
                room = facts.gap[i] + relative(rows, i, flight.way)[0] - facts.target[i]
                speed = relative(rows, i, flight.velocity)[0]
                pull = (
                    wp.dot(
                        at_point(free[a] - state.velocity[a], rows.arm_a[i])
                        - at_point(free[b] - state.velocity[b], rows.arm_b[i]),
                        normal,
                    )
                    / dt
                )
                time = closing_time(room, speed, pull)
                if time >= _ZERO and time <= left and speed + time * pull < -distances.rest:
                    soonest = wp.min(soonest, time)
        more = soonest <= left
        if more:
            for c in range(islands.body_first[k], islands.body_first[k + 1]):
                body = islands.body_order[c]
                pull6 = (free[body] - state.velocity[body]) / dt
                flight.way[body] = (
                    flight.way[body] + soonest * flight.velocity[body] + _HALF * soonest * soonest * pull6
                )
                flight.velocity[body] = flight.velocity[body] + soonest * pull6
            left -= soonest
            events += 1
            impacts = int(0)
            approaching = bool(True)
            fastest = _ZERO
            while approaching and impacts < IMPACTS:
                worst = int(-1)
                speed = -SLOW * fastest
                for c in range(begin, end):
                    i = islands.contact_order[c]
                    if facts.gap[i] + relative(rows, i, flight.way)[0] <= limit:
                        u = relative(rows, i, flight.velocity)[0]
                        if u < speed:
                            speed = u
                            worst = i
                approaching = worst >= 0
                if approaching:
                    fastest = wp.max(fastest, -speed)
                    impact_of_pair(
                        islands, begin, end, rows.body_a[worst], rows.body_b[worst], limit, distances.rest,
                        bodies, rows, facts, flight,
                    )  # fmt: skip
                    impacts += 1
    bounced[k] = events
    if events > 0:
        for c in range(islands.body_first[k], islands.body_first[k + 1]):
            body = islands.body_order[c]
            pull6 = (free[body] - state.velocity[body]) / dt
            flight.way[body] = flight.way[body] + left * flight.velocity[body] + _HALF * left * left * pull6
            flight.velocity[body] = flight.velocity[body] + left * pull6
        for c in range(begin, end):
            rows.impulse[islands.contact_order[c]] = wp.vec3d()


@wp.kernel
def begin_flight(
    first: int,
    islands: IslandArrays,
    bounced: wp.array[int],
    flight: FlightArrays,
    dt: wp.array[wp.float64],
    velocity: wp.array[vec6d],
):
    """The mean velocities of bodies that bounced, for the solver to keep to the rows."""
    i = first + wp.tid()
    k = islands.number[i]
    if k >= 0:
        if bounced[k] > 0:
            velocity[i] = flight.way[i] / dt[0]


@wp.kernel
def end_flight(
    first: int,
    islands: IslandArrays,
    bounced: wp.array[int],
    flight: FlightArrays,
    solved: wp.array[vec6d],
    dt: wp.array[wp.float64],
    motion: wp.array[vec6d],
    end: wp.array[vec6d],
):
    """How bodies that bounced go, and their velocities at the end: those of the flight, and what the rows did."""
    i = first + wp.tid()
    k = islands.number[i]
    if k >= 0:
        if bounced[k] > 0:
            motion[i] = dt[0] * solved[i]
            end[i] = flight.velocity[i] + solved[i] - flight.way[i] / dt[0]
