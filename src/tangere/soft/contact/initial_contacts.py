"""What follows from where bodies were put: whether they overlap, which are inside others, how near they are.

Overlap is refused. A closed surface with another body inside is touched from inside, like a container or a shell of
layers, and so taken as an open one (`contains_another`): sides of closed surfaces that face the same way can only meet
from inside, and are left out (`normal_cones`); as hard contact lets nothing through, what is outside when bodies are
put in their places stays outside, so that rule is right but for surfaces with something inside.
Bodies put nearer to each other than the contact distance are not shot away: a vertex that is near another body then
touches others only below that gap, as points of one body touch below a part of their distance at rest (`activation`):
at the start nothing pushes. What is all but touching keeps a small part of the contact distance. So small a gap has
little force; what is pressed widens it (`friction_memory`), so that contact, not the truncation, carries it.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.query.contacts import Kind
from tangere.shape.mesh import Mesh
from tangere.soft.contact.activation import LEAST_PART
from tangere.soft.contact.detection import Detection
from tangere.soft.model.assembled_bodies import CLOSED, AssembledBodies
from tangere.soft.validation import check_no_overlap


class InitialContacts:
    """Of the bodies of one simulation with hard contact; seen at the start, and after bodies were put elsewhere."""

    def __init__(self, assembly: AssembledBodies, detection: Detection, distance: float) -> None:
        self._assembly, self._detection, self._distance = assembly, detection, distance
        self.given_traits = wp.clone(assembly.surface.traits)  #: as if nothing were inside anything
        #: (s,) the gap below which each surface vertex touches other bodies [m]
        self.limits = wp.full(len(assembly.surface.rest), distance, dtype=wp.float64, device=assembly.device)
        self.current = False  #: whether nothing was put anywhere since the last look
        self._checked_apart, self._gaps_known = True, False
        self.shells = frozenset[int]()  #: bodies that have another one inside
        self.looks = 0  #: how often traits and gaps were found anew

    def invalidate(self, *, keep_gaps: bool) -> None:
        """A body was put elsewhere; `keep_gaps`: as part of a state that goes on, not to start from there."""
        self.current = self._checked_apart = False
        self._gaps_known = self._gaps_known and keep_gaps

    def go_on(self, limits: np.ndarray) -> None:
        """Bodies have been cut, and are apart: the gaps (s,) below which vertices touch are known [m]."""
        self.limits.assign(limits)
        self.looks += 1
        self.current, self._checked_apart, self._gaps_known = False, True, True

    def refresh(self, meshes: list[Mesh]) -> None:
        """At the bodies where they are; the detection's positions must be theirs."""
        if not self._checked_apart:
            check_no_overlap(self._assembly, meshes, "where they were put")
        shells, traits = contains_another(meshes), self.given_traits.numpy()
        opened = shells[self._assembly.surface.body.numpy()]
        self._assembly.surface.traits.assign(np.where(opened, traits & ~int(CLOSED), traits))
        self.shells = frozenset(np.flatnonzero(shells).tolist())
        if not self._gaps_known:
            self._measure_gaps()
        self.current = self._checked_apart = self._gaps_known = True
        self.looks += 1

    def _measure_gaps(self) -> None:
        """Take the gaps where the bodies are now."""
        detection = self._detection
        detection.find_nearest()
        while detection.contact_points.count > detection.contact_points.room:
            detection.make_room(detection.contact_points.count)
            detection.find_nearest()
        contact_points, count = detection.contact_points, detection.contact_points.count
        quads, weights = (a.numpy()[:count].reshape(-1, 4) for a in (contact_points.quads, contact_points.weights))
        body = self._assembly.surface.body.numpy()
        gaps = np.linalg.norm((weights[..., None] * detection.positions.numpy()[quads]).sum(axis=1), axis=1)
        # The vertices of a face have gaps of their own; the ends of an edge may have none.
        mine = np.zeros((count, 4), bool)
        mine[:, 0] = True
        mine[contact_points.kind.numpy()[:count] == Kind.EDGE_EDGE] = True
        mine &= (body[quads[:, 0]] != body[quads[:, 3]])[:, None]
        limits = np.full(len(body), self._distance)
        np.minimum.at(limits, quads[mine], np.broadcast_to(gaps[:, None], mine.shape)[mine])
        self.limits.assign(np.maximum(limits, LEAST_PART * self._distance))


def contains_another(meshes: list[Mesh]) -> np.ndarray:
    """(b,) bool: whether a mesh is closed and one of the others, or a part of it, lies inside.

    By the winding number of a vertex of each part of the inner surface: |sum of solid angles| > 2 pi.
    """
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
