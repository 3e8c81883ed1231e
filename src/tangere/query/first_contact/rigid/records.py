"""From what the kernels found to the contact record and to columns of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tangere.query.contacts import Contacts, Kind, Status, contact_key
from tangere.shape import Mesh

__all__ = ["contacts_of", "details_of"]

#: `Kind` of each way triangles meet, as `Touch.kind` tells it: two edges, vertex of a, vertex of b, edge through face.
KINDS = np.array([Kind.EDGE_EDGE, Kind.VERTEX_FACE, Kind.VERTEX_FACE, Kind.OVERLAP], np.uint8)
VERTEX_OF_B, THROUGH = 2, 3


def contacts_of(touches: np.ndarray, shapes_a: Sequence[Mesh], shapes_b: Sequence[Mesh]) -> Contacts:
    """The contact record of `Touch` records of one question about the first shape of each side, each pair once.

    The first record stays first; the others follow by kind and feature.
    """
    way = touches["kind"]
    feature_a = _numbers(shapes_a[0], touches["triangle_a"], touches["feature_a"], way, vertex=1)
    feature_b = _numbers(shapes_b[0], touches["triangle_b"], touches["feature_b"], way, vertex=VERTEX_OF_B)
    kind = KINDS[way]
    on_b = ((way == VERTEX_OF_B) | ((way == THROUGH) & (touches["feature_a"] < 0))).astype(np.uint8)
    first, second = np.where(on_b, feature_b, feature_a), np.where(on_b, feature_a, feature_b)
    key = contact_key(kind, on_b, first, second)
    rows = np.zeros(1, int)
    if len(key) > 1:
        _, unique = np.unique(key, return_index=True)
        rows = np.concatenate([rows, unique[key[unique] != key[0]]])
    count = len(rows)
    contacts = Contacts(
        query=np.zeros(count, np.int32),
        time=touches["time"][rows],
        point_a=touches["point_a"][rows],
        point_b=touches["point_b"][rows],
        normal=touches["normal"][rows],
        gap=touches["gap"][rows],
        body_a=np.zeros(count, np.int32),
        body_b=np.ones(count, np.int32),
        feature_a=feature_a[rows],
        feature_b=feature_b[rows],
        weights=np.where((way == THROUGH)[rows, None], np.nan, touches["weights"][rows]),
        kind=kind[rows],
        vertex_on=on_b[rows],
        key=key[rows],
    )
    return contacts


def details_of(touches: np.ndarray, status: np.ndarray) -> dict[str, Any]:
    """The columns of `FirstContacts` that tell what touches where; NaN and NONE where nothing does."""
    hit = status != Status.FREE
    columns = {
        name: np.where(hit[:, None], touches[name], np.nan) for name in ("weights", "point_a", "point_b", "normal")
    }
    return columns | {"kind": np.where(hit, KINDS[touches["kind"]], Kind.NONE).astype(np.uint8)}


def _numbers(mesh: Mesh, triangle: np.ndarray, feature: np.ndarray, way: np.ndarray, vertex: int) -> np.ndarray:
    """Vertex, edge or face numbers of one side; `vertex` is the way that has the vertex here."""
    if len(way) == 1:  # arrays would take a tenth of a small search
        face, kind, place = int(triangle[0]), int(way[0]), int(feature[0])
        if kind == vertex:
            face = mesh.faces[face, place]
        elif kind == 0 or (kind == THROUGH and place >= 0):
            face = mesh.topology.face_edges[face, place]
        return np.array([face], np.int32)
    number = triangle.astype(np.int32)  # of the face
    corner = way == vertex
    number[corner] = mesh.faces[triangle[corner], feature[corner]]
    side = (way == 0) | ((way == THROUGH) & (feature >= 0))
    if side.any():
        number[side] = mesh.topology.face_edges[triangle[side], feature[side]]
    return number
