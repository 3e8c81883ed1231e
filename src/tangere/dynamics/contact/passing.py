"""Edges and corners that pass by each other within a step: the direction in which they are then nearest.

Question: which line tells two features apart for a whole step, where that between them at its start does not?
Method:   what is near at the start is a row along the line between the nearest points there. What goes past a corner
          would be stopped by it: the line of two corners turns as they pass, and one that leans by a tenth takes a
          tenth of a speed for an approach. So where that row stops what bodies would do without contacts, the features
          are moved along the way that they would go, and the least distance of the two is looked for: a parallelogram,
          or a segment, and an edge or a corner. Where that is more than what the walk keeps, the row is one along the
          line there. It keeps the features apart as well, since they are on two sides of a plane across it.
          What is nearest is one of 27 cases: each of the place on one edge, on the other, and the time is free, or at
          its beginning, or at its end.
Sound:    rows are suggestions: where the way bends, or contacts change it, the walk finds what is hit.
Known as: ghost collisions of speculative contacts; a separating plane of swept features.
"""

from __future__ import annotations

import warp as wp

from tangere.dynamics.solver import contact_frame
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: Of the security distance: the tolerance of the walk at most.
TOLERANCE = wp.constant(wp.float64(0.1))
#: Of a pair's own clearance that is small already: what the walk keeps, so that stops do not take it bit by bit.
KEPT_OF_SMALL = wp.constant(wp.float64(0.9))
#: Of the security distance: a clearance that is small.
SMALL = wp.constant(wp.float64(0.1))
#: Of what is given up of a clearance, as tolerance.
TOLERANCE_PART = wp.constant(wp.float64(0.2))
#: Sides of an outline that are looked at, at most.
MOST_SIDES = wp.constant(32)
#: Directions whose Gram determinant is smaller, in parts of that of orthogonal ones, are taken for dependent.
DEPENDENT = wp.constant(wp.float64(1.0e-13))

_ZERO = wp.constant(wp.float64(0.0))
_ONE = wp.constant(wp.float64(1.0))


@wp.struct
class Passing:
    """Two features where they are nearest on their way."""

    distance: wp.float64  # [m]
    normal: wp.vec3d  # from b to a there
    point_a: wp.vec3d  # the nearest points, as they are at the start
    point_b: wp.vec3d


@wp.struct
class FaceOutlines:
    """Outlines of the flat patches of all distinct meshes, each in the frame of its mesh."""

    mesh_first: wp.array[int]  # of each mesh, its first triangle
    patch: wp.array[int]  # of each triangle, the one that its patch is named by, counted through all meshes
    first: wp.array[int]  # of each triangle that names a patch, where its outline begins; one more
    begin: wp.array[wp.vec3d]  # [m]
    way: wp.array[wp.vec3d]  # to the end of the side


@wp.func
def kept_of_clearance(clear: wp.float64, security: wp.float64, held: wp.float64) -> wp.float64:
    """How much of a clearance the walk keeps."""
    small = wp.min(SMALL * security, KEPT_OF_SMALL * clear)
    return wp.min(held * security, wp.max(held * clear, small))


@wp.func
def passing_distance(gap: wp.float64, kept: wp.float64, security: wp.float64, held: wp.float64) -> wp.float64:
    """What the walk lets features pass at that are nowhere nearer, and at the start so far apart."""
    clear = gap - kept
    if clear <= _ZERO:
        return gap
    above = kept_of_clearance(clear, security, held)
    return kept + above + wp.min(TOLERANCE * security, TOLERANCE_PART * (clear - above))


@wp.func
def nearest_on_the_way(apart: wp.vec3d, edge_a: wp.vec3d, way: wp.vec3d, edge_b: wp.vec3d) -> wp.vec3d:
    """The place on edge a, the time and the place on edge b, each from 0 to 1, at which they are nearest.

    Args:
        apart: from the begin of edge b to that of edge a, at the start.
        way: of a, as b sees it.
    """
    columns = wp.matrix_from_cols(edge_a, way, -edge_b)
    gram = wp.transpose(columns) * columns
    slope = -(wp.transpose(columns) * apart)
    best = wp.vec3d()
    least = wp.dot(apart, apart)
    for case in range(27):
        number = case
        matrix = wp.mat33d(gram)
        wanted = wp.vec3d(slope)
        scale = _ONE
        for k in range(3):
            where = number % 3
            number = number / 3
            if where > 0:
                for j in range(3):
                    matrix[k, j] = _ZERO
                matrix[k, k] = _ONE
                wanted[k] = wp.float64(where - 1)
            scale = scale * matrix[k, k]
        determinant = wp.determinant(matrix)
        if wp.abs(determinant) > DEPENDENT * scale:
            found = wp.inverse(matrix) * wanted
            if wp.min(found) >= _ZERO and wp.max(found) <= _ONE:
                off = apart + columns * found
                if wp.dot(off, off) < least:
                    least = wp.dot(off, off)
                    best = found
    return best


@wp.func
def nearest_passing(begin_a: wp.vec3d, edge_a: wp.vec3d, way: wp.vec3d, begin_b: wp.vec3d, edge_b: wp.vec3d) -> Passing:
    """Where two edges, or corners as edges of no length, are nearest; see `nearest_on_the_way`."""
    where = nearest_on_the_way(begin_a - begin_b, edge_a, way, edge_b)
    passing = Passing()
    passing.point_a = begin_a + where[0] * edge_a
    passing.point_b = begin_b + where[2] * edge_b
    offset = passing.point_a + where[1] * way - passing.point_b
    passing.distance = wp.length(offset)
    passing.normal = wp.normalize(offset)
    return passing


@wp.func
def passes_rim(
    point: wp.vec3d, way: wp.vec3d, normal: wp.vec3d, gap: wp.float64, outlines: FaceOutlines, face: int
) -> Passing:
    """Where a corner above a patch is nearest to the rim, if it comes to the plane of the patch beyond that.

    All is in the frame of the mesh. The distance is 0 where the corner comes down within the rim, or is beside it for
    longer than a few sides tell.

    Args:
        point: of the corner; its way is as the body of the patch sees it.
        normal: of the patch, towards the corner, which is so far from it (`gap`).
        face: which triangle, through all meshes.
    """
    passing = Passing()
    patch = outlines.patch[face]
    falls = -wp.dot(way, normal)
    if falls <= gap or outlines.first[patch + 1] - outlines.first[patch] > MOST_SIDES:
        return passing
    landing = point + (gap / falls) * way
    frame = contact_frame(normal)
    along = frame[1]
    across = frame[2]
    within = wp.bool(False)
    for k in range(outlines.first[patch], outlines.first[patch + 1]):
        begin = outlines.begin[k] - landing
        end = begin + outlines.way[k]
        y = wp.dot(begin, across)
        v = wp.dot(end, across)
        if (y > _ZERO) != (v > _ZERO):
            x = wp.dot(begin, along)
            if x + (wp.dot(end, along) - x) * y / (y - v) > _ZERO:
                within = not within
    if within:
        return passing
    for k in range(outlines.first[patch], outlines.first[patch + 1]):
        found = nearest_passing(point, wp.vec3d(), way, outlines.begin[k], outlines.way[k])
        if passing.distance == _ZERO or found.distance < passing.distance:
            passing = found
    return passing
