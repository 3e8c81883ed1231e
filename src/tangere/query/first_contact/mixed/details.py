"""Contacts from what the interval engine finds: a time, two triangles and which of their features meet."""

from __future__ import annotations

import numpy as np

from tangere.query.contacts.record import Contacts, Kind
from tangere.shape.mesh import Mesh


def contacts_at(
    mesh_a: Mesh,
    corners_a: np.ndarray,
    mesh_b: Mesh,
    corners_b: np.ndarray,
    query: np.ndarray,
    when: np.ndarray,
    hit: np.ndarray,
) -> Contacts:
    """Contacts of triangles whose corners are at (n, 3, 3) then; `hit` holds triangle of a, triangle of b, feature."""
    feature = hit[:, 2]
    edges = feature < 9
    rows = np.arange(len(query))
    i, j = feature // 3, feature % 3
    # Edge-edge: both parameters; else the vertex of one side and the weights of the other side's corners.
    ends_a = np.stack([corners_a[rows, i % 3], corners_a[rows, (i + 1) % 3]], axis=1)
    ends_b = np.stack([corners_b[rows, j], corners_b[rows, (j + 1) % 3]], axis=1)
    u, w = _nearest_on_segments(ends_a, ends_b)
    on_a = ends_a[:, 0] + u[:, None] * (ends_a[:, 1] - ends_a[:, 0])
    on_b = ends_b[:, 0] + w[:, None] * (ends_b[:, 1] - ends_b[:, 0])
    weights = np.stack([1 - u, u, 1 - w, w], axis=1)
    across = np.cross(ends_a[:, 1] - ends_a[:, 0], ends_b[:, 1] - ends_b[:, 0])

    vertex_on = np.where(feature >= 12, 1, 0)
    for side in (0, 1):
        those = ~edges & (vertex_on == side)
        vertex, face = (corners_a, corners_b) if side == 0 else (corners_b, corners_a)
        v, f = vertex[rows, np.where(those, feature - 9 - 3 * side, 0)], face
        share = _nearest_on_triangle(v[those], f[those])
        place = np.einsum("nk,nki->ni", share, f[those])
        (on_a if side == 0 else on_b)[those] = v[those]
        (on_b if side == 0 else on_a)[those] = place
        weights[those] = np.concatenate([np.ones((len(share), 1)), share], axis=1)
        across[those] = np.cross(f[those, 1] - f[those, 0], f[those, 2] - f[those, 0])
    normal, gap = _normals(on_a - on_b, across)
    feature_a = _numbers(mesh_a, hit[:, 0], np.where(edges, i % 3, np.where(vertex_on == 0, feature - 9, -1)), edges)
    feature_b = _numbers(mesh_b, hit[:, 1], np.where(edges, j, np.where(vertex_on == 1, feature - 12, -1)), edges)
    kind = np.where(edges, Kind.EDGE_EDGE, Kind.VERTEX_FACE)
    return Contacts.of(
        query=query,
        time=when,
        point_a=on_a,
        point_b=on_b,
        normal=normal,
        gap=gap,
        feature_a=feature_a,
        feature_b=feature_b,
        weights=weights,
        kind=kind,
        vertex_on=vertex_on,
    )


def _nearest_on_segments(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Parameters of nearest points of segments (n, 2, 3), by alternating projections from the best of five starts."""
    e, f = a[:, 1] - a[:, 0], b[:, 1] - b[:, 0]
    n = np.cross(e, f)
    squared = np.maximum(np.einsum("ni,ni->n", n, n), 1e-300)
    guess = np.einsum("ni,ni->n", np.cross(b[:, 0] - a[:, 0], f), n) / squared
    best_u, best_w, least = np.zeros(len(a)), np.zeros(len(a)), np.full(len(a), np.inf)
    starts = [guess, np.zeros(len(a)), np.ones(len(a)), _project(b[:, 0], a), _project(b[:, 1], a)]
    for start in starts:
        u = np.clip(start, 0.0, 1.0)
        w = _project(a[:, 0] + u[:, None] * e, b)
        u = _project(b[:, 0] + w[:, None] * f, a)
        gap = np.linalg.norm(a[:, 0] + u[:, None] * e - b[:, 0] - w[:, None] * f, axis=1)
        better = gap < least
        best_u, best_w, least = np.where(better, u, best_u), np.where(better, w, best_w), np.where(better, gap, least)
    return best_u, best_w


def _project(p: np.ndarray, segment: np.ndarray) -> np.ndarray:
    along = segment[:, 1] - segment[:, 0]
    squared = np.maximum(np.einsum("ni,ni->n", along, along), 1e-300)
    return np.clip(np.einsum("ni,ni->n", p - segment[:, 0], along) / squared, 0.0, 1.0)


def _nearest_on_triangle(p: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Weights of the nearest point of each triangle (n, 3, 3)."""
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    n = np.cross(b - a, c - a)
    area = np.maximum(np.einsum("ni,ni->n", n, n), 1e-300)
    on_b = np.einsum("ni,ni->n", np.cross(p - a, c - a), n) / area
    on_c = np.einsum("ni,ni->n", np.cross(b - a, p - a), n) / area
    best = np.stack([1 - on_b - on_c, on_b, on_c], axis=1)
    outside = (best < 0.0).any(axis=1)
    least = np.where(outside, np.inf, 0.0)
    for k in range(3):
        u = _project(p, corners[:, [k, (k + 1) % 3]])
        weights = np.zeros((len(p), 3))
        weights[:, k], weights[:, (k + 1) % 3] = 1 - u, u
        gap = np.linalg.norm(np.einsum("nk,nki->ni", weights, corners) - p, axis=1)
        better = outside & (gap < least)
        best[better], least = weights[better], np.where(better, gap, least)
    return best


def _normals(offset: np.ndarray, across: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Unit normals from b to a and gaps: along the offset of the points, or along the features' normal if they meet."""
    gap = np.linalg.norm(offset, axis=1)
    length = np.linalg.norm(across, axis=1)
    fallback = np.where(length[:, None] > 0.0, across / np.maximum(length, 1e-300)[:, None], [0.0, 0.0, 1.0])
    normal = np.where(gap[:, None] > 1e-300, offset / np.maximum(gap, 1e-300)[:, None], fallback)
    return normal, gap


def _numbers(mesh: Mesh, triangle: np.ndarray, local: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Edge, vertex or (local -1) face numbers of the mesh."""
    corners = mesh.faces[triangle]
    rows = np.arange(len(triangle))
    start = corners[rows, np.maximum(local, 0)].astype(np.int64)
    end = corners[rows, (np.maximum(local, 0) + 1) % 3].astype(np.int64)
    low, high = np.minimum(start, end), np.maximum(start, end)
    codes = mesh.edges[:, 0].astype(np.int64) * len(mesh.vertices) + mesh.edges[:, 1]
    edge = np.searchsorted(codes, low * len(mesh.vertices) + high)
    return np.where(edges, edge, np.where(local < 0, triangle, start))
