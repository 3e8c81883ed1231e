"""Do the meshes of a step overlap at its start, or are they nearer than a separation?

They overlap if an edge meets a face that it has no vertex in common with. Both questions are decided exactly.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.broad_phase.deforming import BvhSide, Step, pairs
from tangere.query.contacts.record import Contacts, Kind
from tangere.query.first_contact.deforming.culling import start_overlap_filter
from tangere.query.first_contact.deforming.details import Hits, contacts_of
from tangere.query.first_contact.primitives.edge_face import edges_meet_faces
from tangere.query.first_contact.primitives.exact_distance import edges_nearer, vertex_face_nearer

#: Gaps that differ from the separation by more than this part of it, and of the coordinates, need no exact arithmetic.
_CLEAR = 1e-9


def first_overlap(step: Step) -> Contacts | None:
    """A contact of kind OVERLAP (the one with the smallest feature numbers) if the meshes meet at t = 0, else None."""
    bodies = step.fitted(0.0)
    sides = [(0, 0)] if len(bodies) == 1 else [(0, 1), (1, 0)]
    for of_edge, of_face in sides:
        a, b = bodies[of_edge], bodies[of_face]
        edge_side = BvhSide(a.body.edges, a.edges, a.body.base)
        face_side = BvhSide(b.body.faces, b.faces, b.body.base)
        keep = start_overlap_filter()
        found = pairs(keep, edge_side, face_side, step.start, step.end, until=0.0, sharing=False).numpy()
        if not len(found):
            continue
        edges = a.body.edges.items.numpy()[found[:, 0]] + a.body.base
        faces = b.body.faces.items.numpy()[found[:, 1]] + b.body.base
        at = edges_meet_faces(
            step.start,
            wp.array(edges, dtype=wp.int32, device=step.device),
            wp.array(faces, dtype=wp.int32, device=step.device),
        )
        meeting = np.flatnonzero(np.isfinite(at))
        if not len(meeting):
            continue
        edge = a.body.edges.order.numpy()[found[meeting, 0]]
        face = b.body.faces.order.numpy()[found[meeting, 1]]
        smallest = np.lexsort((face, edge))[0]
        row = meeting[smallest]
        points = step.start.numpy()
        ends, corners = points[edges[row]], points[faces[row]]
        return _overlap(
            ends[0] + (ends[1] - ends[0]) * at[row],
            np.cross(corners[1] - corners[0], corners[2] - corners[0]),
            int(edge[smallest]),
            int(face[smallest]),
            of_edge,
            len(bodies) - 1,
        )
    return None


def starts_nearer(step: Step, found: Hits, separation: float) -> bool:
    """Whether a pair that was found at t = 0 is nearer than the separation there; the meshes do not overlap."""
    if not separation:
        return False
    found = found.rows(np.flatnonzero(found.time == 0.0))
    found = found.rows(found.order())
    at = contacts_of(step, found)
    gap = np.linalg.norm(at.point_a - at.point_b, axis=1)
    near = _CLEAR * (separation + np.abs(at.point_a).max(axis=1))
    if (gap < separation - near).any():
        return True
    points = step.start.numpy()
    nearer = {Kind.VERTEX_FACE: vertex_face_nearer, Kind.EDGE_EDGE: edges_nearer}
    return any(
        nearer[Kind(int(found.kind[row]))](points[found.quads[row]].tolist(), separation)
        for row in np.flatnonzero(gap <= separation + near)
    )


def _overlap(point: np.ndarray, across: np.ndarray, edge: int, face: int, edge_on: int, body_b: int) -> Contacts:
    length = float(np.linalg.norm(across))
    normal = across / length if length > 0.0 else np.array([0.0, 0.0, 1.0])
    features = (edge, face) if edge_on == 0 else (face, edge)
    return Contacts.of(
        point_a=point[None],
        normal=normal[None] if edge_on == 0 else -normal[None],
        gap=np.zeros(1),
        body_b=body_b,
        feature_a=features[0],
        feature_b=features[1],
        weights=np.nan,
        kind=Kind.OVERLAP,
        vertex_on=edge_on,
    )
