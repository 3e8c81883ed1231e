"""Normal cones of vertices and edges: in which directions can a feature be pressed from outside?

Question: may a contact push a body along n at one of its features?
Method:   the body lies, near the feature, on the side that n points to: each unit vector from the feature along the
          surface rises along n, or falls by less than the tilt (sin of an angle). The tilt keeps the corners of a body
          that rocks. Which side of a triangle is out is not asked.
          Where points coincide, directions are looked for among the planes through two of those vectors.
Known as: normal cone, polar of the tangent cone; Voronoi region of a feature (Lin and Canny 1991).
"""

from __future__ import annotations

import warp as wp

from tangere.query.proximity.posed.shapes import ShapeTables
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

_ONE = wp.constant(wp.float64(1.0))
_ZERO = wp.constant(wp.float64(0.0))
#: Times that a direction is led into two cones at most, and by how much it may miss them then.
_LED = wp.constant(16)
_MISSED = wp.constant(wp.float64(1.0e-9))
#: Planes through two vectors that are more parallel (sin) are not looked at.
_PARALLEL = wp.constant(wp.float64(1.0e-6))


@wp.func
def vertex_rise(shapes: ShapeTables, vertex: int, n: wp.vec3d) -> wp.float64:
    """How much the edges of a vertex rise along n, at least; 1 where there are none."""
    least = wp.float64(1.0)
    for k in range(shapes.vertex_first[vertex], shapes.vertex_first[vertex + 1]):
        least = wp.min(least, wp.dot(shapes.vertex_tangents[k], n))
    return least


@wp.func
def edge_rise(shapes: ShapeTables, edge: int, n: wp.vec3d) -> wp.float64:
    """How much the triangles of an edge rise along n, at least; 1 where there are none."""
    least = wp.float64(1.0)
    for k in range(shapes.edge_first[edge], shapes.edge_first[edge + 1]):
        least = wp.min(least, wp.dot(shapes.edge_tangents[k], n))
    return least


@wp.func
def admits_at_vertex(shapes: ShapeTables, vertex: int, n: wp.vec3d, tilt: wp.float64) -> bool:
    """Whether n is in the normal cone of a vertex."""
    for k in range(shapes.vertex_first[vertex], shapes.vertex_first[vertex + 1]):
        if wp.dot(shapes.vertex_tangents[k], n) < -tilt:
            return False
    return True


@wp.func
def admits_at_edge(shapes: ShapeTables, edge: int, n: wp.vec3d, tilt: wp.float64) -> bool:
    """Whether n is in the normal cone of an edge."""
    for k in range(shapes.edge_first[edge], shapes.edge_first[edge + 1]):
        if wp.dot(shapes.edge_tangents[k], n) < -tilt:
            return False
    return True


@wp.func
def lowest_tangent(shapes: ShapeTables, vertex: int, edge: int, n: wp.vec3d) -> wp.vec3d:
    """Of the vectors along the surface from a vertex, or from an edge where that is -1, the one that falls most."""
    lowest = wp.vec3d()
    least = _ZERO
    if vertex >= 0:
        for k in range(shapes.vertex_first[vertex], shapes.vertex_first[vertex + 1]):
            if wp.dot(shapes.vertex_tangents[k], n) < least:
                lowest = shapes.vertex_tangents[k]
                least = wp.dot(lowest, n)
    else:
        for k in range(shapes.edge_first[edge], shapes.edge_first[edge + 1]):
            if wp.dot(shapes.edge_tangents[k], n) < least:
                lowest = shapes.edge_tangents[k]
                least = wp.dot(lowest, n)
    return lowest


@wp.func
def within_cones(
    shapes: ShapeTables, vertex_a: int, edge_a: int, vertex_b: int, edge_b: int, turn: wp.mat33d, n: wp.vec3d
) -> wp.vec3d:
    """The direction in the normal cones of two features that is next to n, which the tilt lets be beside them.

    A feature is a vertex, or an edge where that is -1; n, in the frame of a, pushes a from b. What n falls along is
    taken out of it, one vector after the other. Where no direction is in both cones, n stays.
    """
    led = n
    for _ in range(_LED):
        of_a = lowest_tangent(shapes, vertex_a, edge_a, led)
        of_b = -(turn * lowest_tangent(shapes, vertex_b, edge_b, -(wp.transpose(turn) * led)))
        off = wp.min(wp.dot(of_a, led), wp.dot(of_b, led))
        if off >= -_MISSED:
            return led
        if wp.dot(of_b, led) < wp.dot(of_a, led):
            of_a = of_b
        led = wp.normalize(led - wp.dot(of_a, led) * of_a)
    return n


@wp.func
def tangent_count(shapes: ShapeTables, vertex: int, edge: int) -> int:
    """How many vectors along the surface a feature has: a vertex, or an edge where that is -1."""
    if vertex >= 0:
        return shapes.vertex_first[vertex + 1] - shapes.vertex_first[vertex]
    return shapes.edge_first[edge + 1] - shapes.edge_first[edge] + 2


@wp.func
def tangent(shapes: ShapeTables, vertex: int, edge: int, k: int) -> wp.vec3d:
    """The k-th of them; an edge has its own two directions first."""
    if vertex >= 0:
        return shapes.vertex_tangents[shapes.vertex_first[vertex] + k]
    if k < 2:
        along = wp.normalize(shapes.vertices[shapes.edges[edge][1]] - shapes.vertices[shapes.edges[edge][0]])
        return wp.where(k == 0, along, -along)
    return shapes.edge_tangents[shapes.edge_first[edge] + k - 2]


@wp.func
def tangent_of_two(
    shapes: ShapeTables, vertex_a: int, edge_a: int, vertex_b: int, edge_b: int, turn: wp.mat33d, count_a: int, k: int
) -> wp.vec3d:
    """Those of the feature of a, then those of the feature of b turned round, all in the frame of a."""
    if k < count_a:
        return tangent(shapes, vertex_a, edge_a, k)
    return -(turn * tangent(shapes, vertex_b, edge_b, k - count_a))


@wp.func
def parting_direction(
    shapes: ShapeTables, vertex_a: int, edge_a: int, vertex_b: int, edge_b: int, turn: wp.mat33d
) -> wp.vec4d:
    """The direction along which two features that touch part best, in the frame of a, and how much it rises at least.

    A feature is a vertex, or an edge where that is -1. Looked for among the mean of all vectors along the surfaces and
    the normals of planes through two of them; it is for points that coincide, and rare.
    """
    count_a = tangent_count(shapes, vertex_a, edge_a)
    count = count_a + tangent_count(shapes, vertex_b, edge_b)
    best = wp.vec4d(_ZERO, _ZERO, _ONE, -_ONE)
    mean = wp.vec3d()
    for i in range(count):
        mean += tangent_of_two(shapes, vertex_a, edge_a, vertex_b, edge_b, turn, count_a, i)
    for i in range(-1, count):
        for j in range(i + 1, count):
            n = mean
            if i >= 0:
                n = wp.cross(
                    tangent_of_two(shapes, vertex_a, edge_a, vertex_b, edge_b, turn, count_a, i),
                    tangent_of_two(shapes, vertex_a, edge_a, vertex_b, edge_b, turn, count_a, j),
                )
            if (i >= 0 or j == 0) and wp.length(n) > _PARALLEL:
                n = wp.normalize(n)
                low = wp.float64(1.0)
                high = wp.float64(-1.0)
                for k in range(count):
                    rise = wp.dot(tangent_of_two(shapes, vertex_a, edge_a, vertex_b, edge_b, turn, count_a, k), n)
                    low = wp.min(low, rise)
                    high = wp.max(high, rise)
                if -high > low:
                    n = -n
                    low = -high
                if low > best[3]:
                    best = wp.vec4d(n[0], n[1], n[2], low)
    return best
