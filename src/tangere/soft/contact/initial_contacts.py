"""What follows from where bodies were put: whether they overlap, which are inside others, how near they are.

Overlap is refused, and what is inside another body makes that one a container (`nesting`).
Bodies put nearer to each other than the contact distance are not shot away: a vertex that is near another body then
touches others only below that gap, as points of one body touch below a part of their distance at rest (`activation`):
at the start nothing pushes. What is all but touching keeps a small part of the contact distance, so that contact, not
the truncation, carries it.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.query.contacts import Kind
from tangere.shape.mesh import Mesh
from tangere.soft.contact.detection import Detection
from tangere.soft.contact.nesting import contains_another
from tangere.soft.model.assembly import CLOSED, Assembly
from tangere.soft.validation import check_no_overlap

#: The least part of the contact distance that is left of it.
LEAST_PART = 0.02


class InitialContacts:
    """Of the bodies of one simulation with hard contact; seen at the start, and after bodies were put elsewhere."""

    def __init__(self, assembly: Assembly, detection: Detection, distance: float) -> None:
        self._assembly, self._detection, self._distance = assembly, detection, distance
        self._traits = assembly.traits.numpy().copy()
        #: (s,) the gap below which each surface vertex touches other bodies [m]
        self.limits = wp.full(len(assembly.rest), distance, dtype=wp.float64, device=assembly.device)
        self.current = False  #: whether nothing was put anywhere since the last look
        self._checked_apart, self._gaps_known = True, False

    def invalidate(self, *, keep_gaps: bool) -> None:
        """A body was put elsewhere; `keep_gaps`: as part of a state that goes on, not to start from there."""
        self.current = self._checked_apart = False
        self._gaps_known = self._gaps_known and keep_gaps

    def refresh(self, meshes: list[Mesh]) -> None:
        """At the bodies where they are; the detection's positions must be theirs."""
        if not self._checked_apart:
            check_no_overlap(self._assembly, meshes, "where they were put")
        shells = np.repeat(contains_another(meshes), np.diff(self._assembly.vertex_base))
        self._assembly.traits.assign(np.where(shells, self._traits & ~int(CLOSED), self._traits))
        if not self._gaps_known:
            self._measure_gaps()
        self.current = self._checked_apart = self._gaps_known = True

    def _measure_gaps(self) -> None:
        """Take the gaps where the bodies are now."""
        detection = self._detection
        detection.find_nearest()
        while detection.contact_points.count > detection.contact_points.room:
            detection.make_room(detection.contact_points.count)
            detection.find_nearest()
        contact_points, count = detection.contact_points, detection.contact_points.count
        quads, weights = (a.numpy()[:count].reshape(-1, 4) for a in (contact_points.quads, contact_points.weights))
        body = self._assembly.body_of_vertex.numpy()
        gaps = np.linalg.norm((weights[..., None] * detection.positions.numpy()[quads]).sum(axis=1), axis=1)
        # The vertices of a face have gaps of their own; the ends of an edge may have none.
        mine = np.zeros((count, 4), bool)
        mine[:, 0] = True
        mine[contact_points.kind.numpy()[:count] == Kind.EDGE_EDGE] = True
        mine &= (body[quads[:, 0]] != body[quads[:, 3]])[:, None]
        limits = np.full(len(body), self._distance)
        np.minimum.at(limits, quads[mine], np.broadcast_to(gaps[:, None], mine.shape)[mine])
        self.limits.assign(np.maximum(limits, LEAST_PART * self._distance))
