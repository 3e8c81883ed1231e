"""Which face, edge or vertex of a mesh does a body press?

Question: of a triangle near a body: does the direction between them belong to its plane, to an edge or to a vertex, and
          can that be pressed so?
Method:   the corners of a triangle that are farthest along the direction are what it presses with. Edges and vertices
          within a flat patch are none, and others only take directions of their normal cones: so no edge inside a
          surface gives a normal that the surface does not have.
Known as: Voronoi regions of mesh features; internal edge removal.
"""

from __future__ import annotations

import warp as wp

from tangere.query.distance.convex.narrow_phase import rotation_of, translation_of
from tangere.query.manifold.convex.features import Features, place_line, place_point, place_side
from tangere.query.manifold.mesh.near_triangles import NearTriangle
from tangere.query.manifold.narrow_phase.contact import FLAT_ANGLE
from tangere.query.proximity.posed.features import HAS_PLANE as _HAS_PLANE
from tangere.query.proximity.posed.features import IS_FEATURE as _IS_FEATURE
from tangere.query.proximity.posed.normal_cones import admits_at_edge, admits_at_vertex
from tangere.query.proximity.posed.shapes import ShapeTables
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

real = wp.float64
vec = wp.vec3d

#: What of a triangle meets a body: nothing, its plane, side k (from corner k on) at SIDE + k, corner k at CORNER + k.
NOTHING, PLANE, SIDE, CORNER = wp.constant(0), wp.constant(1), wp.constant(2), wp.constant(5)
HAS_PLANE, IS_FEATURE = wp.constant(_HAS_PLANE), wp.constant(_IS_FEATURE)
#: sin of how far a direction may be off a normal, or out of a normal cone: what a distance leaves open of it.
TILT = wp.constant(real(1.0e-3))
_ZERO = wp.constant(real(0.0))


@wp.func
def plane_normal(shapes: ShapeTables, triangle: int) -> vec:
    """The unit normal of a triangle by its winding; zero without area."""
    one = shapes.corners[3 * triangle]
    return wp.normalize(wp.cross(shapes.corners[3 * triangle + 1] - one, shapes.corners[3 * triangle + 2] - one))


@wp.func
def farthest_part(shapes: ShapeTables, triangle: int, n: vec, tilt: real) -> int:
    """The corner of a triangle farthest along n, or the side there that leans by less than `tilt` (sin)."""
    top = int(0)
    for k in range(1, 3):
        if wp.dot(n, shapes.corners[3 * triangle + k]) > wp.dot(n, shapes.corners[3 * triangle + top]):
            top = k
    best = CORNER + top
    least = tilt + _ZERO
    for k in range(1, 3):
        other = (top + k) % 3
        way = shapes.corners[3 * triangle + top] - shapes.corners[3 * triangle + other]
        lean = wp.dot(n, way)
        if lean <= least * wp.length(way):
            least = lean / wp.length(way)
            best = SIDE + wp.where(k == 1, top, other)
    return best


@wp.kernel
def pressed_parts(
    first: int,
    shapes: ShapeTables,
    poses: wp.array[wp.mat44d],
    near: wp.array[NearTriangle],
    parts: wp.array[int],
    sides: wp.array[wp.float64],
):
    """What of each triangle is pressed along the nearest points, and on which side of its plane the body is, or 0."""
    i = first + wp.tid()
    pair = near[i]
    t = pair.triangle
    n = pair.normal * rotation_of(poses[wp.min(pair.row, poses.shape[0] - 1)])
    flags = shapes.owns[t]
    sides[i] = _ZERO
    part = int(NOTHING)
    if ((flags >> HAS_PLANE) & 1) != 0:
        m = plane_normal(shapes, t)
        sides[i] = wp.sign(wp.dot(m, n))
        if wp.length(wp.cross(m, n)) <= TILT:
            part = int(PLANE)
    if part == NOTHING:
        found = farthest_part(shapes, t, n, TILT)
        if found >= CORNER:
            vertex = shapes.faces[t][found - CORNER]
            if shapes.vertex_edge[vertex] >= 0 and admits_at_vertex(shapes, vertex, -n, TILT):
                part = found
                # Something flat rests on all of an edge, also where it leans a little.
                edge = farthest_part(shapes, t, n, FLAT_ANGLE)
                if edge < CORNER and ((flags >> (IS_FEATURE + edge - SIDE)) & 1) != 0:
                    part = edge
        elif ((flags >> (IS_FEATURE + found - SIDE)) & 1) != 0:
            if admits_at_edge(shapes, shapes.face_edges[t][found - SIDE], -n, TILT):
                part = found
    parts[i] = part


@wp.kernel
def facing_parts(
    first: int,
    shapes: ShapeTables,
    rows: wp.array[int],
    triangles: wp.array[int],
    normals: wp.array[wp.vec3d],
    poses: wp.array[wp.mat44d],
    parts: wp.array[int],
):
    """What of each triangle faces a direction, whatever is beside it."""
    i = first + wp.tid()
    t = triangles[i]
    n = normals[i] * rotation_of(poses[wp.min(rows[i], poses.shape[0] - 1)])
    parts[i] = farthest_part(shapes, t, n, FLAT_ANGLE)
    if ((shapes.owns[t] >> HAS_PLANE) & 1) != 0:
        if wp.length(wp.cross(plane_normal(shapes, t), n)) <= FLAT_ANGLE:
            parts[i] = PLANE


@wp.kernel
def place_parts(
    first: int,
    shapes: ShapeTables,
    rows: wp.array[int],
    triangles: wp.array[int],
    parts: wp.array[int],
    poses: wp.array[wp.mat44d],
    origins: wp.array[wp.mat44d],
    features: Features,
):
    """Parts of triangles as features to be clipped; their numbers are those of the rows."""
    i = first + wp.tid()
    row = rows[i]
    t = triangles[i]
    part = parts[i]
    pose = poses[wp.min(row, poses.shape[0] - 1)]
    turned = rotation_of(pose)
    at = translation_of(pose) - translation_of(origins[wp.min(row, origins.shape[0] - 1)])
    if part >= CORNER:
        place_point(features, i, turned, at, shapes.corners[3 * t + part - CORNER], i)
    elif part >= SIDE:
        k = part - SIDE
        place_line(features, i, turned, at, shapes.corners[3 * t + k], shapes.corners[3 * t + (k + 1) % 3], i)
    else:
        features.count[i] = 3
        features.number[i] = i
        features.normal[i] = turned * plane_normal(shapes, t)
        for k in range(3):
            place_side(features, i, k, turned, at, shapes.corners[3 * t + k], shapes.corners[3 * t + (k + 1) % 3])
