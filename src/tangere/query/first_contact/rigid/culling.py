"""Recession culling within the search: a part of a body that moves away from the other is not part of a first contact.

Method: the velocity field of each body relative to the other at the start, and how much it can change over the step
        (nothing, for a screw against a body at rest), are found once; a pair of boxes is dropped when one of them
        recedes from the other body for the whole step (Redon 2002, sections 4.2 to 4.4).
Sound:  only for bodies that are apart at the start: the caller vouches for surfaces that do not meet, and
        `StartCheck` (`bvh.recession`) for neither body being inside of the other. Open and unoriented meshes have no
        cones and lose nothing. A feature is lost only with all triangles around it, for pairs of whole triangles are
        solved.
Known as: backface culling by normal cones (Vaněček 1994; Redon, Kheddar and Coquillart 2002).
"""

from __future__ import annotations

import warp as wp

from tangere.bvh.obb import ObbNode
from tangere.bvh.recession import VelocityField, box_recedes, field_at, field_drift
from tangere.query.first_contact.rigid.conservative_advancement import QueryArrays
from tangere.runtime import SOUND

wp.set_module_options(SOUND)


@wp.struct
class RecessionTable:
    """Recession vectors of all nodes of both sides: node i has first[i] … first[i + 1]."""

    first_a: wp.array(dtype=wp.int32)
    vectors_a: wp.array(dtype=wp.vec3d)
    first_b: wp.array(dtype=wp.int32)
    vectors_b: wp.array(dtype=wp.vec3d)


@wp.struct
class Culling:
    """The velocity fields of a query, and their largest changes."""

    on: wp.bool
    field_a: VelocityField
    field_b: VelocityField
    change_a: wp.float64
    change_b: wp.float64


@wp.func
def culling_of(arrays: QueryArrays, row: int) -> Culling:
    """Fields of a query; off for chains and on the smooth clock, whose fields have no bound here."""
    culling = Culling()
    query = arrays.queries[row]
    if query.recession and query.links_a == 1 and query.links_b == 1 and not query.smooth:
        a = arrays.motions[query.motion_a]
        b = arrays.motions[query.motion_b]
        culling.on = True
        culling.field_a = field_at(a, b, wp.float64(0.0))
        culling.field_b = field_at(b, a, wp.float64(0.0))
        culling.change_a = field_drift(a, b, arrays.pairs[row].size)
        culling.change_b = field_drift(b, a, arrays.pairs[row].size)
    return culling


@wp.func
def recedes(culling: Culling, cones: RecessionTable, a: ObbNode, b: ObbNode, node_a: int, node_b: int) -> bool:
    """Whether one of two boxes recedes from the other body during the whole step."""
    result = bool(False)
    if culling.on:
        result = box_recedes(
            a, cones.first_a[node_a], cones.first_a[node_a + 1], cones.vectors_a, culling.field_a, culling.change_a
        ) or box_recedes(
            b, cones.first_b[node_b], cones.first_b[node_b + 1], cones.vectors_b, culling.field_b, culling.change_b
        )
    return result
