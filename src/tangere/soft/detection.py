"""The contacts of a step: the nearest face on each side of every vertex, or all near features as published.

"nearest" is made for the hard response: few rows, and what they miss the truncation holds back. "All" asks
`tangere.query.proximity` for every vertex-face and edge-edge pair nearer than the contact distance; pairs of one body
that were so at rest push only when they come nearer still (specs/leonard-deformable-gpu C9, C14).
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.bound import Frame
from tangere.partition.pipeline_surfaces import Layout, Surfaces
from tangere.query.contacts import Contacts, Kind, contact_key
from tangere.query.proximity.meshes import find_near
from tangere.soft.assembly import Assembly
from tangere.soft.nearest_faces import find_nearest_faces
from tangere.soft.patches import Patches
from tangere.soft.rows import Touching, touching_faces, touching_near

__all__ = ["Detection"]


class Detection:
    """Finds the contacts of a simulation's steps; `touching` are the last ones."""

    touching: Touching

    def __init__(self, assembly: Assembly, patches: Patches, distance: float) -> None:
        self._assembly, self._patches, self._distance = assembly, patches, distance
        self.clear()

    def clear(self) -> None:
        """No contacts."""
        self.touching = Touching.empty(0, self._assembly.device)
        self._positions = None

    def find(self, positions: wp.array, *, nearest: bool) -> None:
        """The contacts of surfaces at these positions."""
        self._positions = positions
        if nearest:
            pairs = find_nearest_faces(self._assembly, self._patches, positions, self._distance)
            self.touching = touching_faces(self._assembly, positions, pairs)
        else:
            layout = Layout.of((self._assembly.whole.topology,), self._assembly.device)
            bounds = np.stack([positions.numpy().min(axis=0), positions.numpy().max(axis=0)])
            surfaces = Surfaces((self._assembly.whole,), layout, positions, Frame.around(bounds))
            near = find_near(surfaces, np.array([[0, 0]], np.int32), self._distance)
            self.touching = touching_near(near, self._assembly.device)

    def touching_bodies(self) -> np.ndarray:
        """(n, 2) the bodies of each contact."""
        quads = self.touching.quads.numpy().reshape(-1, 4)
        return np.searchsorted(self._assembly.vertex_base, quads[:, [0, 3]], side="right").astype(np.int32) - 1

    @property
    def contacts(self) -> Contacts:
        """The contacts as the rest of the library knows them."""
        count = len(self.touching)
        if not count or self._positions is None:
            return Contacts()
        quads, weights = self.touching.quads.numpy().reshape(-1, 4), self.touching.weights.numpy().reshape(-1, 4)
        points = self._positions.numpy()[quads]
        ahead = np.maximum(weights, 0.0)[..., None], np.maximum(-weights, 0.0)[..., None]
        point_a, point_b = ((part * points).sum(axis=1) for part in ahead)
        gap = np.linalg.norm(point_a - point_b, axis=1)
        normal = (point_a - point_b) / np.where(gap > 0.0, gap, 1.0)[:, None]
        bodies, kind = self.touching_bodies(), self.touching.kind.numpy()
        features = self._within_bodies(self.touching.features.numpy().reshape(-1, 2), kind, bodies)
        return Contacts(
            query=np.zeros(count, np.int32),
            time=np.zeros(count),
            point_a=point_a,
            point_b=point_b,
            normal=normal,
            gap=gap,
            body_a=bodies[:, 0],
            body_b=bodies[:, 1],
            feature_a=features[:, 0],
            feature_b=features[:, 1],
            weights=np.abs(weights),
            kind=kind,
            vertex_on=np.zeros(count, np.uint8),
            key=contact_key(kind, 0, features[:, 0], features[:, 1]),
        )

    def _within_bodies(self, features: np.ndarray, kind: np.ndarray, bodies: np.ndarray) -> np.ndarray:
        """Numbers of features counted through all bodies, as each body counts its own."""
        surfaces = [body.surface for body in self._assembly.bodies]

        def base(sizes: list[int]) -> np.ndarray:
            return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)

        vertex = self._assembly.vertex_base
        edge, face = base([len(s.edges) for s in surfaces]), base([len(s.faces) for s in surfaces])
        edges = kind == Kind.EDGE_EDGE
        first = np.where(edges, edge[bodies[:, 0]], vertex[bodies[:, 0]])
        second = np.where(edges, edge[bodies[:, 1]], face[bodies[:, 1]])
        return features - np.stack([first, second], axis=1)
