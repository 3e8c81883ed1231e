"""Contacts with a mesh, named so that they stay: corner, side or rim of the body, patch, edge or vertex of the mesh.

A flat place of a mesh is named by its first triangle and says nothing within its outline: what a body's corner rests on
keeps its name while it slides over the triangles of the place.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tangere.query.contacts.record import Contacts
from tangere.query.manifold.convex.clipping import ARC, CORNER_A, CORNER_B, CROSSING
from tangere.query.manifold.convex.features import DISC
from tangere.query.manifold.mesh.triangle_features import CORNER, PLANE, SIDE
from tangere.query.proximity.posed.features import IS_FEATURE, MeshFeatures
from tangere.shape.mesh import Mesh

#: What a contact is of the mesh.
PATCH, EDGE, VERTEX = 0, 1, 2
_SIDES = int(SIDE)
_CORNERS = int(CORNER)
#: The key of nearest or deepest points, whatever they are of.
NO_FEATURES = 3 << 61
#: Bits of a key: a number of a mesh, what it numbers, a corner or side of a feature, the feature.
_NUMBER, _KIND, _PART = 29, 2, 10


def feature_numbers(mesh: Mesh, triangles: np.ndarray, parts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What parts of triangles are of the mesh, and their numbers there."""
    vertex = mesh.faces[triangles, np.clip(parts - _CORNERS, 0, 2)]
    edge = mesh.topology.face_edges[triangles, np.clip(parts - _SIDES, 0, 2)]
    kind = np.where(parts >= _CORNERS, VERTEX, np.where(parts >= _SIDES, EDGE, PATCH))
    patch = MeshFeatures.of(mesh).patch[triangles]
    return kind, np.where(kind == VERTEX, vertex, np.where(kind == EDGE, edge, patch))


def rim_key(feature_a: np.ndarray, root: np.ndarray, edge: np.ndarray) -> np.ndarray:
    """The keys of the middles of arcs that begin where the rim of a body's disc crosses an edge for the first or
    second time (`root`).
    """
    own = 4 | root.astype(np.int64)
    key = (int(CROSSING) << 61) | (feature_a.astype(np.int64) << (_NUMBER + _KIND + _PART))
    return key | (own << (_NUMBER + _KIND)) | (EDGE << _NUMBER) | edge


def contacts_of(
    mesh: Mesh, found: np.ndarray, triangles: np.ndarray, parts: np.ndarray, sides: np.ndarray
) -> tuple[Contacts, np.ndarray]:
    """The record of `ManifoldPoint`s; `feature_b` numbers the rows of triangles, their parts and the body's sides.

    What is within a flat place is left out. Returns the rows as well that the contacts are of.
    """
    features = MeshFeatures.of(mesh)
    found = found[((found["key"] >> 60) & 3 != CROSSING) | (found["key"] & int(ARC) == 0)]  # see `rim_arcs`
    pair = found["feature_b"]
    triangle, part = triangles[pair], parts[pair]
    what, number = (found["key"] >> 60) & 3, found["key"] & 0xFFFFF
    kind, named = feature_numbers(mesh, triangle, part)
    flat = part == PLANE
    # Which corner or side of the triangle's part it is, and which of the body's; on a rim the root comes last.
    own = np.where(what == CORNER_A, number, 0)
    other = np.where(what == CORNER_B, number, 0)
    crossing = what == CROSSING
    disc = crossing & (sides[pair] == DISC)
    own = np.where(crossing, np.where(disc, number & 3, number >> 10), own)
    other = np.where(crossing, np.where(disc, number >> 2, number & 1023), other)
    corner = (what == CORNER_B) & flat
    side = crossing & flat
    end = (what == CORNER_B) & (kind == EDGE)
    first = np.where(end, part - _SIDES + other, other) % 3
    vertex, edge = mesh.faces[triangle, first], mesh.topology.face_edges[triangle, first]
    named = np.where(corner | end, vertex, np.where(side, edge, named))
    kind = np.where(corner | end, VERTEX, np.where(side, EDGE, kind))
    within = (corner & (features.vertex_edge[vertex] < 0)) | (
        side & ((features.owns[triangle] >> (IS_FEATURE + first)) & 1 == 0)
    )
    key = (what << 61) | (found["feature_a"].astype(np.int64) << (_NUMBER + _KIND + _PART))
    key |= (own << (_NUMBER + _KIND)) | (kind << _NUMBER) | named
    kept = ~within
    contacts = Contacts.of(
        query=found["row"][kept],
        point_a=found["point_a"][kept],
        point_b=found["point_b"][kept],
        normal=found["normal"][kept],
        gap=found["gap"][kept],
        feature_a=found["feature_a"][kept],
        feature_b=triangle[kept],
        key=key[kept],
    )
    return contacts, pair[kept]


def unique_keys(contacts: Contacts) -> Contacts:
    """The contacts, by rising query and key; of equal keys of a query, of a corner seen along two normals, later ones
    are raised.
    """
    order = np.lexsort((contacts.key, contacts.query))
    key, query = contacts.key[order], contacts.query[order]
    again = np.zeros(len(key), np.int64)
    for k in np.flatnonzero((np.diff(key) == 0) & (np.diff(query) == 0)):
        again[k + 1] = again[k] + 1
    return replace(contacts[order], key=key + (again << 51))
