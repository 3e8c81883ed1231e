"""Bodies keep their shape: each section is matched with its rest shape, and its particles go where the match says.

Question: where does each particle of a body go in a step?
Method:   match of a section in the plane of the ground: centroid c, rotation R by the angle
          atan2(sum q x p, sum q . p), linear map A = A_pq A_qq^-1 scaled to area one; goals
          g = c + (beta A + (1 - beta) R) q. Then v += alpha (g - x) / h + h f, x += h v. A particle of two sections (a
          hinge) takes the mean of its goals.
          A section wants to go to its target and to turn towards it; the head's target is the route, that of any other
          section the hinge with the one before. Pushes come from walls and from edges of other bodies, never from
          points. Plasticity: where S = R^T A is off by more than the yield, the rest shape follows at the creep rate.
Known as: meshless deformations based on shape matching (Müller, Heidelberger, Teschner, Gross 2005); that points push
          no bodies: Pitiot 2015, section 8.2.2.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import warp as wp

from tangere.cells.maps import MapArrays
from tangere.cells.tracking import points_per_index, triangle_normal
from tangere.crowd.agents.arrays import (
    BodyEdges,
    ball_may_be_near,
    is_first_cell_seen,
    squared_edge_reach,
)
from tangere.crowd.agents.locomotion import AgentPlace, move_over_surface, move_straight
from tangere.crowd.agents.neighbour_ranges import Neighbourhoods, nearest_wall_of_cell, squared_gap
from tangere.crowd.navigation.routes import Routes, preferred_velocity
from tangere.crowd.steering.bubbles import bubble_push, clamp_length, edge_field, elliptic_distance
from tangere.runtime import SOUND, PreparedLaunch

wp.set_module_options(SOUND)

_ZERO, _ONE, _HALF = (wp.constant(wp.float64(x)) for x in (0.0, 1.0, 0.5))
_TINY = wp.constant(wp.float64(1.0e-12))
#: Turning: rate per angle off the target [1/s], and at most [rad/s].
_TURN, _TURN_LIMIT = wp.constant(wp.float64(2.0)), wp.constant(wp.float64(1.5))
#: Time to take up the wanted velocity [s]; pushes and speed at most, in units of m/s^2 and of the wanted speed.
_TAU, _PUSH_LIMIT, _SPEED_LIMIT = (wp.constant(wp.float64(x)) for x in (0.5, 40.0, 2.0))


@wp.struct
class BodyArrays:
    """Particles, sections and bodies, flat. Members of section s: first[s] … first[s + 1] - 1."""

    position: wp.array[wp.vec3d]
    velocity: wp.array[wp.vec3d]
    dart: wp.array[int]
    owner: wp.array[int]  # body of each particle
    member_a: wp.array[int]  # places of a particle among the members; -1: none
    member_b: wp.array[int]
    first: wp.array[int]
    particle: wp.array[int]  # per member
    section: wp.array[int]
    rest: wp.array[wp.vec2d]
    shape: wp.array[wp.vec2d]  # rest, after plasticity
    body: wp.array[int]  # per section
    hinge: wp.array[int]  # particle shared with the section before
    plastic_map: wp.array[wp.mat22d]  # plastic deformation
    centre: wp.array[wp.vec3d]
    axis_x: wp.array[wp.vec3d]  # images of the rest axes
    axis_y: wp.array[wp.vec3d]
    forward: wp.array[wp.vec3d]
    normal: wp.array[wp.vec3d]
    section_velocity: wp.array[wp.vec3d]  # wanted velocity
    spin: wp.array[wp.float64]  # wanted turning rate
    head_section: wp.array[int]  # per body, like all below
    preferred: wp.array[wp.vec3d]
    speed: wp.array[wp.float64]
    alpha: wp.array[wp.float64]
    beta: wp.array[wp.float64]
    plastic: wp.array[wp.vec3d]  # yield, creep, most
    surface: int
    dt: wp.float64


def body_step_launches(
    b: BodyArrays, r: Routes, time: wp.array, inputs: list[Any], outputs: list[Any], device: wp.Device
) -> list[PreparedLaunch]:
    """What to run to find where each section is and what it wants, and to move all particles.

    Args:
        time: one number, float64 [s]. inputs: map, neighbourhoods, edges, push (k, z, R).
        outputs: room for position, velocity and dart of all particles.
    """
    move, chunk = _move_kernel(move_over_surface if b.surface else move_straight), points_per_index(device)
    indices = [-(-count // chunk) for count in (len(b.speed), len(b.body), len(b.position))]
    return [
        PreparedLaunch(_preferred_velocities, [b, r, time, chunk], device, dim=indices[0], grain=32),
        PreparedLaunch(_match_shapes, [b, inputs[0], chunk], device, dim=indices[1], grain=32),
        PreparedLaunch(move, [b, *inputs, chunk, *outputs], device, dim=indices[2], grain=16),
        PreparedLaunch(_store, [*outputs, b], device, dim=len(b.position)),
    ]


@wp.func
def _size(a: wp.mat22d) -> wp.float64:
    return wp.sqrt(a[0, 0] * a[0, 0] + a[0, 1] * a[0, 1] + a[1, 0] * a[1, 0] + a[1, 1] * a[1, 1])


@wp.func
def _plastic_deformation(before: wp.mat22d, stretch: wp.mat22d, plastic: wp.vec3d, dt: wp.float64) -> wp.mat22d:
    """Plastic deformation after a step under a stretch."""
    one = wp.mat22d(_ONE, _ZERO, _ZERO, _ONE)
    if _size(stretch - one) <= plastic[0]:
        return before
    after = (one + dt * plastic[1] * (stretch - one)) * before
    det = wp.determinant(after)
    if det <= _TINY:
        return before
    after = after / wp.sqrt(det)
    off = _size(after - one)
    if off > plastic[2]:
        after = one + (plastic[2] / off) * (after - one)
    return after


@wp.kernel
def _preferred_velocities(first: int, b: BodyArrays, r: Routes, time: wp.array[wp.float64], chunk: int):
    begin = (first + wp.tid()) * chunk
    for body in range(begin, wp.min(begin + chunk, b.speed.shape[0])):
        s = b.head_section[body]
        c = wp.vec3d()
        for k in range(b.first[s], b.first[s + 1]):
            c += b.position[b.particle[k]]
        b.preferred[body] = preferred_velocity(
            r, body, c / wp.float64(b.first[s + 1] - b.first[s]), b.speed[body], time[0]
        )


@wp.kernel
def _match_shapes(first: int, b: BodyArrays, m: MapArrays, chunk: int):
    begin = (first + wp.tid()) * chunk
    for s in range(begin, wp.min(begin + chunk, b.body.shape[0])):
        body = b.body[s]
        count = wp.float64(b.first[s + 1] - b.first[s])
        c = wp.vec3d()
        n = wp.vec3d(_ZERO, _ZERO, _ZERO)
        for k in range(b.first[s], b.first[s + 1]):
            c += b.position[b.particle[k]] / count
            if b.surface == 1:
                n += triangle_normal(m, b.dart[b.particle[k]])
        tx = wp.vec3d(_ONE, _ZERO, _ZERO)
        if b.surface == 1:
            n = wp.normalize(n)
            tx = b.position[b.particle[b.first[s]]] - c
            tx = wp.normalize(tx - wp.dot(tx, n) * n)
        else:
            n = wp.vec3d(_ZERO, _ZERO, _ONE)
        ty = wp.cross(n, tx)
        pq = wp.mat22d(_ZERO, _ZERO, _ZERO, _ZERO)
        qq = wp.mat22d(_ZERO, _ZERO, _ZERO, _ZERO)
        for k in range(b.first[s], b.first[s + 1]):
            w = b.position[b.particle[k]] - c
            p = wp.vec2d(wp.dot(w, tx), wp.dot(w, ty))
            q = b.shape[k]
            pq += wp.outer(p, q)
            qq += wp.outer(q, q)
        turn = wp.atan2(pq[1, 0] - pq[0, 1], pq[0, 0] + pq[1, 1])
        rotation = wp.mat22d(wp.cos(turn), -wp.sin(turn), wp.sin(turn), wp.cos(turn))
        linear = rotation
        if wp.determinant(qq) > _TINY:
            fit = pq * wp.inverse(qq)
            det = wp.determinant(fit)
            if det > wp.float64(1.0e-6):
                linear = fit / wp.sqrt(det)
        if b.plastic[body][1] > _ZERO:
            kept = _plastic_deformation(b.plastic_map[s], wp.transpose(rotation) * linear, b.plastic[body], b.dt)
            b.plastic_map[s] = kept
            for k in range(b.first[s], b.first[s + 1]):
                b.shape[k] = kept * b.rest[k]
        blend = b.beta[body] * linear + (_ONE - b.beta[body]) * rotation
        b.centre[s] = c
        b.normal[s] = n
        b.axis_x[s] = blend[0, 0] * tx + blend[1, 0] * ty
        b.axis_y[s] = blend[0, 1] * tx + blend[1, 1] * ty
        ahead = rotation[0, 0] * tx + rotation[1, 0] * ty
        b.forward[s] = ahead
        want = b.preferred[body]
        if b.head_section[body] != s:
            pull = b.position[b.hinge[s]] - c
            want = pull * (wp.length(want) / wp.max(wp.length(pull), _TINY))
        want = want - wp.dot(want, n) * n
        b.section_velocity[s] = want
        off = wp.float64(0.0)
        if wp.length_sq(want) > _ZERO:  # the direction of nothing would be behind whoever looks backwards, by its -0
            off = wp.atan2(wp.dot(wp.cross(ahead, want), n), wp.dot(ahead, want))
        b.spin[s] = wp.clamp(_TURN * off, -_TURN_LIMIT, _TURN_LIMIT)


@wp.func
def _member_goal(b: BodyArrays, k: int) -> wp.vec3d:
    s = b.section[k]
    return b.centre[s] + b.shape[k][0] * b.axis_x[s] + b.shape[k][1] * b.axis_y[s]


@wp.func
def _member_velocity(b: BodyArrays, k: int, x: wp.vec3d) -> wp.vec3d:
    s = b.section[k]
    return b.section_velocity[s] + b.spin[s] * wp.cross(b.normal[s], x - b.centre[s])


@cache
def _move_kernel(go: Any) -> wp.Kernel:
    @wp.kernel(module="unique", module_options=SOUND)
    def move(
        first: int,
        b: BodyArrays,
        m: MapArrays,
        s: Neighbourhoods,
        e: BodyEdges,
        push: wp.vec3d,
        chunk: int,
        position: wp.array[wp.vec3d],
        velocity: wp.array[wp.vec3d],
        dart: wp.array[int],
    ):
        begin = (first + wp.tid()) * chunk
        for i in range(begin, wp.min(begin + chunk, b.position.shape[0])):
            x = b.position[i]
            v = b.velocity[i]
            body = b.owner[i]
            cell = m.cell[b.dart[i]]
            normal = b.normal[b.section[b.member_a[i]]]
            goal = _member_goal(b, b.member_a[i])
            want = _member_velocity(b, b.member_a[i], x)
            if b.member_b[i] >= 0:
                goal = _HALF * (goal + _member_goal(b, b.member_b[i]))
                want = _HALF * (want + _member_velocity(b, b.member_b[i], x))
            force = wp.vec3d()
            within = squared_edge_reach(e, push[2])
            rounded = wp.vec3f(x)
            for k in range(s.cell[cell].run, s.cell[cell].run + s.cell[cell].runs):
                run = s.run[k]
                q = int(e.start[run.first])
                end = e.start[run.last + 1]
                if squared_gap(run, rounded) > within:
                    end = q
                while q < end:
                    if (
                        e.entry_owner[q] >= 0
                        and e.entry_owner[q] != body
                        and ball_may_be_near(e.entry_ball[q], x, push[2])
                    ):
                        place = e.entry[q]
                        g = e.edge[place]
                        if elliptic_distance(x, e.a[g], e.b[g]) < push[2]:
                            if is_first_cell_seen(e, s, cell, place, rounded, within):
                                f = edge_field(x, v, e.a[g], e.b[g], e.velocity_a[g], e.velocity_b[g], normal)
                                force += bubble_push(f.distance, f.rate, push[0], push[1], push[2], True) * f.away
                    q += 1
            wall = nearest_wall_of_cell(s, cell, x)
            if wall.distance < push[2]:
                w = (x - wall.point) / wp.max(wall.distance, _TINY)
                force += bubble_push(wall.distance, wp.dot(w, v), push[0], push[1], push[2], True) * w
            force = clamp_length(force, _PUSH_LIMIT) + (want - v) / _TAU
            free = clamp_length(v + b.dt * force, _SPEED_LIMIT * b.speed[body])
            u = free + (b.alpha[body] / b.dt) * (goal - x)
            if b.surface == 1:
                own = triangle_normal(m, b.dart[i])
                u = u - wp.dot(u, own) * own
            here = AgentPlace()
            here.position = x
            here.velocity = u
            here.dart = b.dart[i]
            here.cell = cell
            there = go(m, s, here, b.dt)
            position[i] = there.position
            # The correction moves a particle once; only as much of it as a body may be fast stays as velocity.
            velocity[i] = clamp_length(there.velocity, _SPEED_LIMIT * b.speed[body])
            dart[i] = there.dart

    return move


@wp.kernel
def _store(first: int, position: wp.array[wp.vec3d], velocity: wp.array[wp.vec3d], dart: wp.array[int], b: BodyArrays):
    i = first + wp.tid()
    b.position[i] = position[i]
    b.velocity[i] = velocity[i]
    b.dart[i] = int(dart[i])
