"""Is this pair of mesh features worth a query? Cheap certificates, tested inside the tree traversal.

A pair is dropped if it is certified free on [0, until]: by the sign of the coplanarity cubic, or by a plane that does
not turn, from the closest points at one end. (Sides kept along an axis its moving boxes have seen already. Pairs that
share a vertex always touch, which is no contact: the traversal leaves them out.)
The certificates use the end points of the whole step: a shortened motion would be rounded.

Known as: non-penetration filters (Tang, Manocha and Tong 2010).
"""

from __future__ import annotations

from functools import cache

import warp as wp

from tangere.broad_phase.deforming import SearchedItems
from tangere.geometry.polynomials import (
    at,
    coplanarity,
    coplanarity_bound,
    largest,
    real,
    restricted_from_zero,
    sign_of,
)
from tangere.query.contacts.record import Kind
from tangere.query.first_contact.primitives.narrow_phase.features import (
    VERTEX_FACE,
    FeaturePairKind,
    MovingPoints,
    points_of,
)
from tangere.query.first_contact.primitives.narrow_phase.time_bisection import SEPARATION_MARGIN, scaled, unit
from tangere.runtime import SOUND

wp.set_module_options(SOUND)


@wp.func
def vertex_face_corners(items_a: wp.array2d[int], i: int, base_a: int, items_b: wp.array2d[int], j: int, base_b: int):
    return wp.vec4i(items_a[i, 0] + base_a, items_b[j, 0] + base_b, items_b[j, 1] + base_b, items_b[j, 2] + base_b)


@wp.func
def edge_edge_corners(items_a: wp.array2d[int], i: int, base_a: int, items_b: wp.array2d[int], j: int, base_b: int):
    return wp.vec4i(items_a[i, 0] + base_a, items_a[i, 1] + base_a, items_b[j, 0] + base_b, items_b[j, 1] + base_b)


@cache
def separating_plane_filter(features: FeaturePairKind, separated: bool) -> wp.Function:
    """Keeps the pairs that are not certified apart (by more than the separation) until `until`."""
    corners = vertex_face_corners if features.kind == Kind.VERTEX_FACE else edge_edge_corners
    apart = apart_filter(features, separated)

    @wp.func
    def keep(search: SearchedItems, i: int, j: int) -> bool:
        k = corners(search.items_a, i, search.base_a, search.items_b, j, search.base_b)
        return not apart(points_of(search.start, search.end, k), search.until, search.margin)

    return keep


@cache
def start_overlap_filter() -> wp.Function:
    """Keeps the pairs of an edge and a face that may meet at t = 0.

    A vertex that runs along the edge while the face rests must meet it: the vertex-face certificates apply.
    """
    apart = apart_filter(VERTEX_FACE, False)

    @wp.func
    def may_overlap(search: SearchedItems, i: int, j: int) -> bool:
        k = vertex_face_corners(search.items_a, i, search.base_a, search.items_b, j, search.base_b)
        p = points_of(search.start, search.start, k)
        p.y0 = search.start[search.items_a[i, 1] + search.base_a]
        return not apart(p, real(1.0), real(0.0))

    return may_overlap


@cache
def apart_filter(features: FeaturePairKind, separated: bool) -> wp.Function:
    """The certificates: (moving points, until, margin) -> certainly apart until `until`."""
    frame, direction, gap, gap_bound = features.frame, features.direction, features.gap, features.gap_bound
    normalised = unit if separated else scaled

    @wp.func
    def certainly_apart(p: MovingPoints, until: real, margin: real) -> bool:
        a1, a2, a3 = frame(p.x0, p.x1, p.x2, p.x3)
        b1, b2, b3 = frame(p.y0, p.y1, p.y2, p.y3)
        m1 = wp.max(largest(a1), largest(b1))
        m2 = wp.max(largest(a2), largest(b2))
        m3 = wp.max(largest(a3), largest(b3))
        if wp.static(not separated):
            c = coplanarity(a1, a2, a3, b1, b2, b3)
            if sign_of(restricted_from_zero(c, until), coplanarity_bound(m1, m2, m3)) != 0:
                return True
        bound = gap_bound(m1, m2, m3) + margin * SEPARATION_MARGIN
        r1 = at(a1, b1, until)
        r2 = at(a2, b2, until)
        r3 = at(a3, b3, until)
        n = normalised(direction(a1, a2, a3))
        if gap(wp.dot(n, a1), wp.dot(n, a2), wp.dot(n, a3)) > bound:
            if gap(wp.dot(n, r1), wp.dot(n, r2), wp.dot(n, r3)) > bound:
                return True
        n = normalised(direction(r1, r2, r3))
        if gap(wp.dot(n, r1), wp.dot(n, r2), wp.dot(n, r3)) > bound:
            if gap(wp.dot(n, a1), wp.dot(n, a2), wp.dot(n, a3)) > bound:
                return True
        return False

    return certainly_apart
