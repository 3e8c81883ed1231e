"""Which closed surfaces have another body inside: those are touched from inside, like a container or a shell of layers.

Question: which closed surfaces must be taken as open ones?
Method:   the winding number of a vertex of each part of the inner surface, |sum of solid angles| > 2 pi.
Sound:    sides of closed surfaces that face the same way can only meet from inside, and are left out (`normal_cones`).
          As hard contact lets nothing through, what is outside when bodies are put in their places stays outside; so
          the rule is right but for surfaces with something inside.
"""

from __future__ import annotations

import numpy as np

from tangere.shape.mesh import Mesh


def contains_another(meshes: list[Mesh]) -> np.ndarray:
    """(b,) bool: whether a mesh is closed and one of the others, or a part of it, lies inside."""
    low, high = (np.stack([mesh.bounds[side] for mesh in meshes]) for side in range(2))
    found = np.zeros(len(meshes), bool)
    for outer in (k for k, mesh in enumerate(meshes) if mesh.topology.is_closed):
        meets = ((low <= high[outer]) & (high >= low[outer])).all(axis=1)
        meets[outer] = False
        for inner in np.flatnonzero(meets):
            points = _one_of_each_part(meshes[inner])
            points = points[((points >= low[outer]) & (points <= high[outer])).all(axis=1)]
            found[outer] |= any(_inside(point, meshes[outer]) for point in points)
    return found


def _one_of_each_part(mesh: Mesh) -> np.ndarray:
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    edges, count = mesh.edges, len(mesh.vertices)
    links = coo_matrix((np.ones(len(edges), bool), (edges[:, 0], edges[:, 1])), shape=(count, count))
    parts = connected_components(links, directed=False)[1][mesh.faces[:, 0]]
    return mesh.vertices[mesh.faces[np.unique(parts, return_index=True)[1], 0]]


def _inside(point: np.ndarray, mesh: Mesh) -> bool:
    a, b, c = np.moveaxis(mesh.vertices[mesh.faces] - point, 1, 0)
    la, lb, lc = (np.linalg.norm(side, axis=1) for side in (a, b, c))
    volume = np.einsum("ij,ij->i", a, np.cross(b, c))
    ab, bc, ca = (np.einsum("ij,ij->i", u, v) for u, v in ((a, b), (b, c), (c, a)))
    solid_angles = 2.0 * np.arctan2(volume, la * lb * lc + ab * lc + bc * la + ca * lb)
    return abs(solid_angles.sum()) > 2.0 * np.pi
