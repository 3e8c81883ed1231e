"""Do the meshes of a step overlap at its start? An edge that meets a face it has no vertex in common with."""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.partition.step import Step
from tangere.partition.tree_pairs import Side, pairs
from tangere.query.contacts import Contacts, Kind, contact_key
from tangere.query.first_contact.reject import overlap_function
from tangere.query.intersection.edge_face import edges_meet_faces

__all__ = ["first_overlap"]


def first_overlap(step: Step) -> Contacts | None:
    """A contact of kind OVERLAP (the one with the smallest feature numbers) if the meshes meet at t = 0, else None."""
    bodies = step.fitted(0.0)
    sides = [(0, 0)] if len(bodies) == 1 else [(0, 1), (1, 0)]
    for of_edge, of_face in sides:
        a, b = bodies[of_edge], bodies[of_face]
        edge_side = Side(a.body.edges, a.edges, a.body.base)
        face_side = Side(b.body.faces, b.faces, b.body.base)
        keep = overlap_function()
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


def _overlap(point: np.ndarray, across: np.ndarray, edge: int, face: int, edge_on: int, body_b: int) -> Contacts:
    length = float(np.linalg.norm(across))
    normal = across / length if length > 0.0 else np.array([0.0, 0.0, 1.0])
    features = (edge, face) if edge_on == 0 else (face, edge)
    return Contacts(
        query=np.zeros(1, np.int32),
        time=np.zeros(1),
        point_a=point[None],
        point_b=point[None].copy(),
        normal=normal[None] if edge_on == 0 else -normal[None],
        gap=np.zeros(1),
        body_a=np.zeros(1, np.int32),
        body_b=np.full(1, body_b, np.int32),
        feature_a=np.full(1, features[0], np.int32),
        feature_b=np.full(1, features[1], np.int32),
        weights=np.full((1, 4), np.nan),
        kind=np.full(1, Kind.OVERLAP, np.uint8),
        vertex_on=np.full(1, edge_on, np.uint8),
        key=np.atleast_1d(contact_key(Kind.OVERLAP, edge_on, edge, face)),
    )
