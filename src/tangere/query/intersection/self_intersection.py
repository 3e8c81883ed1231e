"""Does a mesh pass through itself, at one instant: is this state valid?

It does where an edge meets a face without having a vertex in common with it. Any two triangles that cross do so along
such a pair; triangles that share an edge and lie flat on each other do not count: they touch along it anyway.
Method: an edge tree against a face tree, decided by signs of determinants inside the traversal where these are beyond
        rounding, exactly where they are not (as `intersecting_pairs` does for two meshes).
Known as: self-intersection test of a mesh, validity of a state.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.broad_phase.deforming import BvhSide, SearchedItems, Step, pairs
from tangere.geometry.triangles import APART, MEET, edge_pierces, side
from tangere.query.first_contact.primitives.edge_face import edges_meet_faces
from tangere.runtime import SOUND, launch, using_threads
from tangere.shape.mesh import Mesh

wp.set_module_options(SOUND)


def intersects_itself(mesh: Mesh, *, device: str | wp.Device | None = None, threads: int | None = None) -> bool:
    """Whether any edge of the mesh meets a face it has no vertex in common with."""
    return len(self_intersections(mesh, device=device, threads=threads)) > 0


def self_intersections(mesh: Mesh, *, device: str | wp.Device | None = None, threads: int | None = None) -> np.ndarray:
    """All pairs of an edge and a face without a common vertex that meet: (n, 2) int32 numbers, in rising order.

    Example:
        >>> import tangere as tg
        >>> from tangere.query.intersection.self_intersection import self_intersections
        >>> len(self_intersections(tg.generate.icosphere(subdivisions=2), device="cpu"))
        0
    """
    with using_threads(threads):
        step = Step.of([mesh], device)
        body = step.fitted(0.0)[0]
        edges, faces = BvhSide(body.body.edges, body.edges, 0), BvhSide(body.body.faces, body.faces, 0)
        found = pairs(_may_meet, edges, faces, step.start, step.start, until=0.0, sharing=False)
        verdicts = wp.empty(len(found), dtype=wp.int32, device=step.device)
        inputs = [found, edges.tree.items, faces.tree.items, step.start]
        launch(_decide, len(found), inputs, [verdicts], device=step.device)
        places, sure = found.numpy().reshape(-1, 2), verdicts.numpy() == MEET
        unsure = np.flatnonzero(~sure)
        if len(unsure):
            edge_items = edges.tree.items.numpy()[places[unsure, 0]]
            face_items = faces.tree.items.numpy()[places[unsure, 1]]
            at = edges_meet_faces(
                step.start,
                wp.array(edge_items, dtype=wp.int32, device=step.device),
                wp.array(face_items, dtype=wp.int32, device=step.device),
            )
            sure[unsure[np.isfinite(at)]] = True
        numbers = np.stack(
            [edges.tree.order.numpy()[places[sure, 0]], faces.tree.order.numpy()[places[sure, 1]]], axis=1
        )
        return numbers[np.lexsort((numbers[:, 1], numbers[:, 0]))]


@wp.func
def _meeting(edges: wp.array2d[int], i: int, faces: wp.array2d[int], j: int, positions: wp.array[wp.vec3d]) -> int:
    """MEET, APART or UNSURE."""
    p = positions[edges[i, 0]]
    q = positions[edges[i, 1]]
    a = positions[faces[j, 0]]
    b = positions[faces[j, 1]]
    c = positions[faces[j, 2]]
    side_p = side(a, b, c, p)
    side_q = side(a, b, c, q)
    if side_p * side_q > 0:
        return APART
    return edge_pierces(p, side_p, q, side_q, a, b, c)


@wp.func
def _may_meet(search: SearchedItems, i: int, j: int) -> bool:
    return _meeting(search.items_a, i, search.items_b, j, search.start) != APART


@wp.kernel
def _decide(
    first: int,
    found: wp.array[wp.vec2i],
    edges: wp.array2d[int],
    faces: wp.array2d[int],
    positions: wp.array[wp.vec3d],
    verdicts: wp.array[int],
):
    k = first + wp.tid()
    verdicts[k] = _meeting(edges, found[k][0], faces, found[k][1], positions)
