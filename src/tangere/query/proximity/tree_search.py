"""Near features by trees over vertices, edges and faces: the distance is tested inside the traversal.

No candidate is stored: what `within` keeps is near (specs/leonard-deformable-gpu C21.7, F-L-60). Two meshes, or more,
are searched pair by pair; trees are built once per topology and fitted to the positions of the moment.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.partition.pipeline_surfaces import Surfaces
from tangere.partition.tree_pairs import Side, pairs
from tangere.query.contacts import Kind
from tangere.query.proximity.near import name_of, number_bits
from tangere.query.proximity.primitives import edges_offset, face_offset, nearest_on_edges, nearest_on_face
from tangere.runtime import SOUND, launch

wp.set_module_options(SOUND)

__all__ = ["edges_are_near", "face_is_near", "search_trees"]


def search_trees(surfaces: Surfaces, jobs: np.ndarray, distance: float) -> wp.array:
    """Names of all pairs of features without a common vertex that are nearer than `distance`, in any order.

    Args:
        jobs: (k, 2) meshes to compare, a <= b; a mesh with itself is (a, a).
    """
    layout, device = surfaces.layout, surfaces.device
    base, edge_base, face_base = (b.tolist() for b in (layout.vertex_base, layout.edge_base, layout.face_base))
    fits = surfaces.fitted(distance)
    bits, parts = number_bits(layout), []
    for a, b in jobs.tolist():
        edges = [Side(fit.body.edges, fit.edges, fit.body.base) for fit in {a: fits[a], b: fits[b]}.values()]
        searches = [(Kind.EDGE_EDGE, 0, edges[0], edges[-1], edge_base[a], edge_base[b])]
        for side, (v, f) in enumerate([(a, b)] if a == b else [(a, b), (b, a)]):
            vertices = Side(fits[v].body.vertices, fits[v].vertices, fits[v].body.base)
            faces = Side(fits[f].body.faces, fits[f].faces, fits[f].body.base)
            searches.append((Kind.VERTEX_FACE, side, vertices, faces, base[v], face_base[f]))
        for kind, side, one, other, one_base, other_base in searches:
            keep = edges_are_near if kind == Kind.EDGE_EDGE else face_is_near
            positions = surfaces.positions
            found = pairs(keep, one, other, positions, positions, until=0.0, margin=distance, sharing=False)
            names = wp.empty(len(found), dtype=wp.int64, device=device)
            inputs = [found, wp.int64(kind), side, int(one is other), wp.int64(bits)]
            inputs += [one.tree.order, one.tree.items, int(kind == Kind.VERTEX_FACE), one_base]
            inputs += [other.tree.order, other_base]
            launch(_names, len(found), inputs, [names], device=device)
            parts.append(names)
    return joined(parts, device)


def joined(parts: list[wp.array], device: wp.Device) -> wp.array:
    """The names of all parts in one array."""
    whole = wp.empty(sum(map(len, parts)), dtype=wp.int64, device=device)
    at = 0
    for part in parts:
        if len(part):
            wp.copy(whole, part, dest_offset=at, count=len(part))
        at += len(part)
    return whole


@wp.func
def face_is_near(
    items_a: wp.array2d[int],
    i: int,
    base_a: int,
    items_b: wp.array2d[int],
    j: int,
    base_b: int,
    positions: wp.array[wp.vec3d],
    same: wp.array[wp.vec3d],
    until: wp.float64,
    distance: wp.float64,
) -> bool:
    """Whether a vertex is nearer to a face than `distance`."""
    p = positions[items_a[i, 0] + base_a]
    a = positions[items_b[j, 0] + base_b]
    b = positions[items_b[j, 1] + base_b]
    c = positions[items_b[j, 2] + base_b]
    return is_within(face_offset(p, a, b, c, nearest_on_face(p, a, b, c)), distance)


@wp.func
def edges_are_near(
    items_a: wp.array2d[int],
    i: int,
    base_a: int,
    items_b: wp.array2d[int],
    j: int,
    base_b: int,
    positions: wp.array[wp.vec3d],
    same: wp.array[wp.vec3d],
    until: wp.float64,
    distance: wp.float64,
) -> bool:
    """Whether two edges are nearer than `distance`; the smaller one first, so that the answer is the same for all."""
    a0 = items_a[i, 0] + base_a
    a1 = items_a[i, 1] + base_a
    b0 = items_b[j, 0] + base_b
    b1 = items_b[j, 1] + base_b
    return is_within(ordered_offset(positions, a0, a1, b0, b1), distance)


@wp.func
def ordered_offset(positions: wp.array[wp.vec3d], a0: int, a1: int, b0: int, b1: int) -> wp.vec3d:
    """The way between two edges, the one with the smaller vertices first."""
    p0 = positions[a0]
    p1 = positions[a1]
    q0 = positions[b0]
    q1 = positions[b1]
    if b0 < a0 or (b0 == a0 and b1 < a1):
        return edges_offset(q0, q1, p0, p1, nearest_on_edges(q0, q1, p0, p1))
    return edges_offset(p0, p1, q0, q1, nearest_on_edges(p0, p1, q0, q1))


@wp.func
def is_within(offset: wp.vec3d, distance: wp.float64) -> bool:
    """Whether an offset is shorter than a distance."""
    return wp.dot(offset, offset) < distance * distance


@wp.kernel
def _names(
    first: int,
    found: wp.array[wp.vec2i],
    kind: wp.int64,
    side: int,
    within: int,
    bits: wp.int64,
    order_a: wp.array[int],
    items_a: wp.array2d[int],
    vertices: int,
    base_a: int,
    order_b: wp.array[int],
    base_b: int,
    names: wp.array[wp.int64],
):
    k = first + wp.tid()
    one = order_a[found[k][0]]
    if vertices == 1:
        one = items_a[found[k][0], 0]  # loose vertices are not in the tree
    one = one + base_a
    other = order_b[found[k][1]] + base_b
    if within == 1 and other < one:
        names[k] = name_of(kind, side, other, one, bits)
    else:
        names[k] = name_of(kind, side, one, other, bits)
