"""The contacts of a step: the nearest face on each side of every vertex, or all near features as published.

"nearest" is made for the hard response: few rows, and what they miss the truncation holds back. "All" asks
`tangere.query.proximity` for every vertex-face and edge-edge pair nearer than the contact distance; pairs of one body
that were so at rest push only when they come nearer still (Léonard 2021, sections 3.7, 3.8 and 5.2).
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.broad_phase.triangles import Layout, Surfaces
from tangere.query.contacts import Contacts, Kind, contact_key
from tangere.query.proximity import find_near
from tangere.soft.contact.activation import REACH
from tangere.soft.contact.contact_points import ContactPartners, ContactPoints, points_from_proximity
from tangere.soft.contact.held_crossings import HeldCrossings
from tangere.soft.contact.nearest_edges import SharpEdges
from tangere.soft.contact.nearest_faces import find_nearest_faces
from tangere.soft.contact.normal_cones import NormalCones
from tangere.soft.model.assembled_bodies import AssembledBodies
from tangere.soft.safe_step.patches import Patches

#: Contacts there is room for at first, and for each vertex on CUDA, where more room means capturing all graphs again.
LEAST_ROOM, ROOM_PER_VERTEX = 4096, 0.5


class Detection:
    """Finds the contacts of a simulation's steps; `contact_points` are the last ones."""

    def __init__(self, assembly: AssembledBodies, patches: Patches, positions: wp.array, distance: float) -> None:
        """`positions` are where the surface vertices are when a step begins [m]."""
        self._assembly, self._patches, self._distance = assembly, patches, distance
        self.positions = positions  #: of the surface vertices [m]
        self.cones = NormalCones(assembly, patches.tree, patches.lists, positions)
        self.sharp = SharpEdges(assembly)
        self.partners = ContactPartners(assembly, self.sharp)
        self.work: wp.array | None = None  #: what the last search for faces took, see `find_nearest_faces`
        room = int(ROOM_PER_VERTEX * len(positions)) if assembly.device.is_cuda else 0
        self.contact_points = ContactPoints.empty(max(LEAST_ROOM, room), assembly.device)

    @property
    def places(self) -> int:
        """How many features may touch, see `ContactPartners`."""
        return len(self.partners.nearest)

    def sources(self, before: Detection, vertices: np.ndarray) -> np.ndarray:
        """(places,) which place each feature that may touch had before bodies were cut, -1 for new ones.

        Args:
            vertices: (s,) the same for surface vertices.
        """
        known = vertices >= 0
        at_vertices = np.where(known[:, None], 2 * vertices[:, None] + [0, 1], -1).ravel()
        ends, old_ends = self.sharp.ends.numpy(), before.sharp.ends.numpy()
        count = len(before.positions)
        keys = np.sort(old_ends, axis=1).astype(np.int64) @ [count, 1]
        order = np.argsort(keys)
        wanted = np.sort(vertices[ends], axis=1).astype(np.int64)
        asked = np.where(wanted[:, 0] >= 0, wanted @ [count, 1], -1)
        place = np.minimum(np.searchsorted(keys[order], asked), len(keys) - 1)
        if not len(keys):
            return np.concatenate([at_vertices, np.full(len(ends), -1)])
        found = order[place]
        edges = np.where(keys[found] == asked, before.partners.first_edge + found, -1)
        return np.concatenate([at_vertices, edges])

    def clear(self) -> None:
        """No contacts."""
        self.contact_points.live.zero_()

    def make_room(self, count: int) -> None:
        """For at least so many contacts."""
        if count > self.contact_points.room:
            self.contact_points = ContactPoints.empty(count + count // 2, self._assembly.device)

    def find_nearest(self) -> None:
        """The nearest face on each side of every vertex, and the nearest crossing of sharp edges."""
        assembly, patches, positions = self._assembly, self._patches, self.positions
        cones, partners = self.cones, self.partners
        cones()
        fitted = patches.fit_static(positions, 0.5 * float(REACH) * self._distance, cones.vertices, cones.clusters)
        partners.clear()
        self.work = find_nearest_faces(assembly, patches, fitted, cones, positions, self._distance, partners.nearest)
        self.sharp.find_nearest(fitted.vertex_boxes, positions, self._distance, partners.first_edge, partners.nearest)
        self.contact_points = partners.list_contacts(self.contact_points, positions)

    def add_crossings(self, held: HeldCrossings) -> bool:
        """Those that had to be held are contacts too; whether that took another list."""
        before, self.contact_points = self.contact_points, held.append_to(self.contact_points)
        return self.contact_points is not before

    def find_all(self) -> None:
        """Every pair of features nearer than the contact distance."""
        assembly = self._assembly
        layout = Layout.of((assembly.rest_mesh.topology,), assembly.device)
        surfaces = Surfaces((assembly.rest_mesh,), layout, self.positions, self._patches.frame)
        near = find_near(surfaces, np.array([[0, 0]], np.int32), self._distance)
        self.contact_points = points_from_proximity(near, assembly.device)

    def contacts(self, normals: wp.array) -> Contacts:
        """The contacts as the rest of the library knows them; `normals` as the rows have them."""
        contact_points, count = self.contact_points, self.contact_points.count
        if not count:
            return Contacts()
        quads, weights = (a.numpy()[:count].reshape(-1, 4) for a in (contact_points.quads, contact_points.weights))
        points = self.positions.numpy()[quads]
        ahead = np.maximum(weights, 0.0)[..., None], np.maximum(-weights, 0.0)[..., None]
        point_a, point_b = ((part * points).sum(axis=1) for part in ahead)
        normal = normals.numpy()[:count].copy()
        bodies = self._assembly.surface.body.numpy()[quads[:, [0, 3]]]
        kind = contact_points.kind.numpy()[:count]
        through = contact_points.features.numpy()[:count].reshape(-1, 2)  # counted through all bodies
        features = self._within_bodies(through, quads, kind, bodies)
        return Contacts.of(
            point_a=point_a,
            point_b=point_b,
            normal=normal,
            body_a=bodies[:, 0],
            body_b=bodies[:, 1],
            feature_a=features[:, 0],
            feature_b=features[:, 1],
            weights=np.abs(weights),
            kind=kind,
            key=contact_key(kind, 0, through[:, 0], through[:, 1]),
        )

    def _within_bodies(
        self, features: np.ndarray, quads: np.ndarray, kind: np.ndarray, bodies: np.ndarray
    ) -> np.ndarray:
        """Numbers of features counted through all bodies, as each body counts its own."""
        assembly, found = self._assembly, np.empty_like(features)
        edges = kind == Kind.EDGE_EDGE
        for body in np.unique(bodies):
            vertices, faces = assembly.vertex_rows(body), assembly.face_rows(body)
            ours = ~edges & (bodies[:, 0] == body)
            found[ours, 0] = _places(vertices, features[ours, 0])
            ours = ~edges & (bodies[:, 1] == body)
            found[ours, 1] = _places(faces, features[ours, 1])
            known = np.sort(assembly.bodies[body].surface.edges, axis=1).astype(np.int64) @ [len(vertices), 1]
            for side, ends in enumerate((quads[:, :2], quads[:, 2:])):
                ours = edges & (bodies[:, side] == body)
                asked = np.sort(_places(vertices, ends[ours]), axis=1).astype(np.int64)
                found[ours, side] = _places(known, asked @ [len(vertices), 1])
        return found


def _places(rows: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Where each of these is among rows in any order, which have all of them."""
    if not asked.size:
        return asked
    order = np.argsort(rows)
    found = order[np.minimum(np.searchsorted(rows, asked, sorter=order), len(rows) - 1)]
    assert np.array_equal(rows[found], asked)
    return found
