"""The normal where meshes meet at corners or along edges: two features alone do not say it, the faces around them do.

Method: near the contact each body is a cone, of the edges at a vertex or of the faces at an edge. Vectors that have a's
        cone on their side and b's on the other push the bodies apart; of these the normal is the one most against the
        approach, the projection of the reversed velocity (across a face, across two edges, or without the part along an
        edge). At most two directions bind it: they are found one by
        one, the most violated first. Where the motion does not say, as at rest, the way from b's cone to a's does.
Limits: where nothing pushes the bodies apart (a corner in a dent, or after they met), the normal of the features stays.
Known as: the contact normal at a non-smooth point, from the normal cones of both bodies; the projection is that of a
          quadratic program with few constraints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import warp as wp

from tangere.broad_phase.deforming import MeshInStep, Step
from tangere.geometry.polynomials import at, real, vec
from tangere.query.contacts.record import Kind
from tangere.query.first_contact.primitives.details import NEGLIGIBLE, Touch
from tangere.query.first_contact.primitives.narrow_phase.time_bisection import unit
from tangere.runtime import SOUND, launch
from tangere.shape.mesh import Adjacency

if TYPE_CHECKING:
    from tangere.query.first_contact.deforming.details import Hits

wp.set_module_options(SOUND)

#: A direction less than this off the side it should be on [rad] is on it: a contact is found a little early, when faces
#: that come to lie on each other do not quite do so yet.
SLIGHT = wp.constant(wp.float64(1e-5))
#: Of directions tried; three or four do as a rule.
ROUNDS = wp.constant(32)
#: Contacts a thread describes.
GRAIN = 256

#: Which of the four vertices belong to the first feature, and which to the second.
FEATURES = {Kind.EDGE_EDGE: (np.s_[:2], np.s_[2:]), Kind.VERTEX_FACE: (np.s_[:1], np.s_[1:])}


def corner_normals(step: Step, found: Hits, touches: np.ndarray) -> np.ndarray:
    """Unit vectors (n, 3) that push the first feature of each contact away from the second.

    touches: of `describe_rows`; what bears each contact is neither a face nor two edges that cross.
    """
    offsets, ways = _all_ways(step, found, (touches[:, 13:].astype(int) >> np.arange(4)) & 1 > 0)
    device = step.device
    normals = wp.empty(len(touches), dtype=vec, device=device)
    inputs = [
        wp.array(found.quads, dtype=wp.vec4i, device=device),
        wp.array(found.time, dtype=real, device=device),
        wp.array((found.kind == Kind.VERTEX_FACE).astype(np.int32), dtype=int, device=device),
        wp.array(touches, dtype=Touch, device=device),
        wp.array(offsets, dtype=int, device=device),
        wp.array(ways, dtype=wp.vec2i, device=device),
        step.start,
        step.end,
    ]
    launch(_push_apart, len(touches), inputs, [normals], device=device, grain=GRAIN)
    return normals.numpy()


def _all_ways(step: Step, found: Hits, bearing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of vertices: no normal may go from the first to the second. And where those of each contact begin."""
    rows, ways = [], []
    for kind, vertex_on in ((Kind.EDGE_EDGE, 0), (Kind.VERTEX_FACE, 0), (Kind.VERTEX_FACE, 1)):
        chosen = np.flatnonzero((found.kind == kind) & (found.vertex_on == vertex_on))
        if not len(chosen):
            continue
        bodies = (step.bodies[-vertex_on], step.bodies[vertex_on - 1])
        for side, columns in enumerate(FEATURES[kind]):
            bears = bearing[chosen, columns]
            row, tail, head = _ways(bodies[side], found.quads[chosen, columns], bears, found.numbers[chosen, side])
            rows.append(chosen[row])
            ways.append(np.stack((tail, head) if side else (head, tail), axis=1))
    row = np.concatenate(rows)
    counts = np.bincount(row, minlength=len(bearing))
    return np.append(0, np.cumsum(counts)), np.concatenate(ways)[np.argsort(row, kind="stable")]


def _ways(body: MeshInStep, corners: np.ndarray, bears: np.ndarray, number: np.ndarray) -> tuple[np.ndarray, ...]:
    """The ways along the body from what bears each contact, a vertex or an edge: (contact, from vertex, to vertex).

    corners (n, 1 to 3): of the vertices, edges or faces with these numbers.
    """
    topology = body.mesh.topology
    one = np.flatnonzero(bears.sum(axis=1) == 1)
    vertex = corners[one][bears[one]] - body.base
    near, neighbour = _listed(topology.vertex_neighbours, vertex)
    two = np.flatnonzero(bears.sum(axis=1) == 2)
    edge = number[two]
    if corners.shape[1] == 3:
        edge = topology.face_edges[edge, (np.argmin(bears[two], axis=1) + 1) % 3]
    tail, head = topology.edges[edge].T
    beside, face = _listed(topology.edge_faces, edge)
    opposite = topology.faces[face].sum(axis=1) - (tail + head)[beside]
    return (
        np.concatenate([one[near], two, two, two[beside]]),
        np.concatenate([vertex[near], tail, head, tail[beside]]) + body.base,
        np.concatenate([neighbour, head, tail, opposite]) + body.base,
    )


def _listed(lists: Adjacency, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lists of the items one after the other: (which of the items, entry)."""
    counts = lists.offsets[items + 1] - lists.offsets[items]
    which = np.repeat(np.arange(len(items)), counts)
    place = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
    return which, lists.indices[lists.offsets[items][which] + place]


@wp.func
def direction(way: wp.vec2i, start: wp.array[vec], end: wp.array[vec], t: real) -> vec:
    return unit(at(start[way[1]] - start[way[0]], end[way[1]] - end[way[0]], t))


@wp.func
def off_cone(aim: vec, g: vec, h: vec):
    """What is left of aim off the cone of two unit vectors, and whether the first is a part of what is taken away."""
    on_g = wp.dot(aim, g)
    on_h = wp.dot(aim, h)
    both = wp.dot(g, h)
    if on_g > both * on_h and on_h > both * on_g:
        across = unit(wp.cross(g, h))
        return across * wp.dot(aim, across), True
    if on_g > on_h:
        return aim - g * on_g, True
    return aim - h * on_h, False


@wp.func
def within_cone(aim: vec, f: vec, g: vec, h: vec) -> bool:
    volume = wp.dot(f, wp.cross(g, h))
    return (
        wp.dot(aim, wp.cross(g, h)) * volume > real(0.0)
        and wp.dot(f, wp.cross(aim, h)) * volume > real(0.0)
        and wp.dot(f, wp.cross(g, aim)) * volume > real(0.0)
    )


@wp.func
def admissible_part(
    aim: vec, first: int, last: int, ways: wp.array[wp.vec2i], start: wp.array[vec], end: wp.array[vec], t: real
) -> vec:
    """The projection of the unit vector aim on the vectors that go along none of the ways; zero if there is none."""
    rest = aim
    g = vec()
    h = vec()
    rounds = int(0)
    while rounds < ROUNDS:
        rounds += 1
        worst = vec()
        for k in range(first, last):
            way = direction(ways[k], start, end, t)
            if wp.dot(rest, way) > wp.dot(rest, worst):
                worst = way
        if wp.dot(rest, worst) <= SLIGHT * wp.length(rest):
            if wp.length(rest) > NEGLIGIBLE:
                return unit(rest)
            return vec()
        if within_cone(aim, g, h, worst):
            return vec()
        rest_g, with_g = off_cone(aim, g, worst)
        rest_h, with_h = off_cone(aim, h, worst)
        if wp.length(rest_h) < wp.length(rest_g):
            g = h
            rest_g = rest_h
            with_g = with_h
        if not with_g:
            g = vec()
        rest = rest_g
        h = worst
    return vec()


@wp.kernel(enable_backward=False)
def _push_apart(
    first: int,
    quads: wp.array[wp.vec4i],
    time: wp.array[real],
    face: wp.array[int],
    touches: wp.array[Touch],
    offsets: wp.array[int],
    ways: wp.array[wp.vec2i],
    start: wp.array[vec],
    end: wp.array[vec],
    normals: wp.array[vec],
):
    i = first + wp.tid()
    t = time[i]
    split = 2 - face[i]
    velocity = vec()
    for k in range(4):
        moves = end[quads[i][k]] - start[quads[i][k]]
        velocity += moves * wp.where(k < split, touches[i][k], -touches[i][k])
    back = -unit(velocity)
    n = admissible_part(back, offsets[i], offsets[i + 1], ways, start, end, t)
    if wp.length_sq(n) == real(0.0):
        apart = vec()
        for k in range(offsets[i], offsets[i + 1]):
            apart -= direction(ways[k], start, end, t)
        n = admissible_part(unit(apart), offsets[i], offsets[i + 1], ways, start, end, t)
        if wp.length_sq(n) == real(0.0) or wp.dot(n, back) < -NEGLIGIBLE:
            n = vec(touches[i][10], touches[i][11], touches[i][12])
    normals[i] = n
