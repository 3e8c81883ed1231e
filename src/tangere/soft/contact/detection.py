"""The contacts of a step: the nearest face on each side of every vertex, or all near features as published.

"nearest" is made for the hard response: few rows, and what they miss the truncation holds back. "All" asks
`tangere.query.proximity` for every vertex-face and edge-edge pair nearer than the contact distance; pairs of one body
that were so at rest push only when they come nearer still (Léonard 2021, sections 3.7, 3.8 and 5.2).

Crossings of edges that the truncation had to hold are contacts of the steps that follow (`HeldCrossings`).
Question: what bears an edge of a tool that presses into a smooth surface between its vertices?
Method:   vertices do not see it, and sharp edges are only asked about sharp ones (`nearest_edges`), so at first nothing
          pushes there, and the truncation shortens the moves of an edge and a face. What it has so held against
          something fixed is a contact from the next step on, of the two edges that are nearest to each other, as long
          as they are near. It begins at the gap that is left, so nothing is shot away; as long as it is pressed, the
          gap below which it pushes gets wider, up to the contact distance.
Sound:    nothing is pushed that was not held; where nothing is held this costs nothing.
Known as: an active set of constraints, found by violation; lazy constraints.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from tangere.broad_phase.triangles import Layout, Surfaces
from tangere.query.contacts import Contacts, Kind, contact_key
from tangere.query.proximity import find_near
from tangere.runtime import SOUND, launch
from tangere.shape.mesh import Mesh
from tangere.soft.contact.activation import LEAST_PART, REACH
from tangere.soft.contact.contact_points import ContactPartners, ContactPoints, points_from_proximity
from tangere.soft.contact.friction_memory import PRESSED, WIDER
from tangere.soft.contact.nearest_edges import SharpEdges
from tangere.soft.contact.nearest_faces import find_nearest_faces
from tangere.soft.contact.normal_cones import NormalCones
from tangere.soft.contact.row_entries import RowArrays
from tangere.soft.model.assembled_bodies import AssembledBodies
from tangere.soft.safe_step.patches import Patches

wp.set_module_options(SOUND)

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
        self._cut_mesh: tuple[Any, Mesh, wp.array] | None = None  #: of faces that a cut has written
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
        assembly, (mesh, rows) = self._assembly, self._mesh_now()
        layout = Layout.of((mesh.topology,), assembly.device)
        surfaces = Surfaces((mesh,), layout, self.positions, self._patches.frame)
        near = find_near(surfaces, np.array([[0, 0]], np.int32), self._distance)
        self.contact_points = points_from_proximity(near, assembly.device, rows)

    def _mesh_now(self) -> tuple[Mesh, wp.array | None]:
        """All surfaces as one mesh, and which row of the arrays each of its triangles is; None: they are the same.

        What is searched through is made anew where a cut has written faces, once.
        """
        assembly = self._assembly
        if assembly.faces_now is None:
            return assembly.rest_mesh, None
        if self._cut_mesh is None or self._cut_mesh[0] is not assembly.faces_now:
            rows, corners = assembly.faces_now()
            mesh = Mesh(assembly.rest_mesh.vertices, corners, name="all surfaces")
            on_device = wp.array(rows, dtype=wp.int32, device=assembly.device)
            self._cut_mesh = assembly.faces_now, mesh, on_device
        return self._cut_mesh[1:]

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


#: Pairs that are kept of a step; what else was held is held again.
MOST = 4096


@dataclass(frozen=True)
class EdgePairs:
    """n pairs of edges, each once: what contacts of them need."""

    quads: np.ndarray  #: (n, 4) surface vertices: the ends of both edges
    limits: np.ndarray  #: (n,) the gap below which they push [m]

    @staticmethod
    def none() -> EdgePairs:
        return EdgePairs(np.zeros((0, 4), np.int32), np.zeros(0))


class HeldCrossings:
    """Those of one simulation; `pairs` are filled by the truncation."""

    def __init__(self, assembly: AssembledBodies, edges: wp.array, positions: wp.array, distance: float) -> None:
        """`edges` of all surfaces, as pairs name them; `positions` of the surface vertices when a step begins."""
        self._assembly, self._edges, self._positions, self._distance = assembly, edges, positions, distance
        self.pairs = wp.zeros(MOST, dtype=wp.vec2i, device=assembly.device)  #: edge and face
        self.count = wp.zeros(1, dtype=wp.int32, device=assembly.device)
        self._now = self._saved = EdgePairs.none()
        self._first = self._listed = 0  #: the first of their rows, and how many there are in this step

    def save(self) -> None:
        """Keep what a step changes."""
        self._saved = self._now

    def restore(self) -> None:
        """As if the step had not been begun."""
        self._now = self._saved

    def forget(self) -> None:
        """Bodies were put elsewhere."""
        self._now = EdgePairs.none()
        self.count.zero_()

    def __len__(self) -> int:
        return len(self._now.limits)

    def append_to(self, contact_points: ContactPoints) -> ContactPoints:
        """Put them behind the other contacts, or behind copies of these where there is no room."""
        self._listed = 0
        if not len(self):
            return contact_points
        numbers = self._edge_numbers(self._now.quads.reshape(-1, 2)).reshape(-1, 2)
        there = (numbers >= 0).all(axis=1)  # or cut away since
        self._now, numbers = EdgePairs(self._now.quads[there], self._now.limits[there]), numbers[there]
        n, device, quads = len(self), self._assembly.device, self._now.quads
        self._first = contact_points.count
        if not n or self._first > contact_points.room:  # then the step is done again
            return contact_points
        if self._first + n > contact_points.room:
            contact_points = contact_points.copy(2 * (self._first + n))
        weights = _crossing(self._positions.numpy()[quads])[0]
        for name, dtype, values in (
            ("quads", wp.vec4i, quads),
            ("weights", wp.vec4d, weights),
            ("features", wp.vec2i, numbers),
            ("kind", wp.uint8, np.full(n, Kind.EDGE_EDGE, np.uint8)),
            ("place", wp.int32, np.full(n, -1, np.int32)),
        ):
            column = wp.array(values, dtype=dtype, device=device)
            wp.copy(getattr(contact_points, name), column, dest_offset=self._first, count=n)
        contact_points.live.fill_(self._first + n)
        self._listed = n
        return contact_points

    def set_limits(self, rows: RowArrays) -> None:
        """Below which gaps their rows push."""
        if self._listed:
            device = self._assembly.device
            limits = wp.array(self._now.limits, dtype=wp.float64, device=device)
            launch(_set_limits, self._listed, [self._first, limits], [rows], device=device)

    def learn(self) -> None:
        """After the truncation: which are contacts of the next step; the positions are still those of the start."""
        self._listed, count = 0, min(int(self.count.numpy()[0]), MOST)
        if not count and not len(self):
            return
        quads = np.concatenate([self._now.quads, self._nearest_edges(self.pairs.numpy()[:count])])
        limits = np.concatenate([self._now.limits, np.full(len(quads) - len(self), np.nan)])
        quads = np.sort(quads.reshape(-1, 2, 2).astype(np.int64), axis=2)
        order = np.argsort(quads[:, :, 0] * 2**31 + quads[:, :, 1], axis=1)
        quads = np.take_along_axis(quads, order[..., None], axis=1).reshape(-1, 4)
        quads, first, back = np.unique(quads, axis=0, return_index=True, return_inverse=True)
        limits = limits[first]  # known ones come first
        held = np.zeros(len(quads), bool)
        held[back.ravel()[len(self) :]] = True
        weights, gap = _crossing(self._positions.numpy()[quads])
        limits = np.where(np.isnan(limits), np.maximum(gap, LEAST_PART * self._distance), limits)
        wider = held | (gap < float(PRESSED) * limits)
        limits = np.where(wider, np.minimum(float(WIDER) * limits, self._distance), limits)
        inside = (np.abs(weights) > 0.0).all(axis=1)
        keep = inside & (gap < limits)
        self._now = EdgePairs(quads[keep], limits[keep])

    def _nearest_edges(self, pairs: np.ndarray) -> np.ndarray:
        """(m, 4) of edges and faces: the edge, and the edge of the face that it crosses nearest, inside both."""
        surface = self._assembly.surface
        edges, faces = self._edges.numpy()[pairs[:, 0]], surface.faces.numpy()[pairs[:, 1]]
        if not len(edges):
            return np.zeros((0, 4), np.int32)
        quads = np.stack([np.concatenate([edges, faces[:, [k, (k + 1) % 3]]], axis=1) for k in range(3)], axis=1)
        weights, gap = _crossing(self._positions.numpy()[quads])
        gap = np.where((np.abs(weights) > 0.0).all(axis=2), gap, np.inf)
        best = gap.argmin(axis=1)
        row = np.arange(len(quads))
        return quads[row, best][np.isfinite(gap[row, best])]

    def _edge_numbers(self, ends: np.ndarray) -> np.ndarray:
        """Which of all edges have these ends, in order; -1 where there is none any more."""
        count, edges = len(self._positions), self._edges.numpy()
        wanted, back = np.unique(ends.astype(np.int64) @ [count, 1], return_inverse=True)
        asked = np.zeros(count, bool)
        asked[ends] = True
        near = np.flatnonzero(asked[edges[:, 0]] & asked[edges[:, 1]])
        keys = np.sort(edges[near], axis=1).astype(np.int64) @ [count, 1]
        place = np.minimum(np.searchsorted(wanted, keys), len(wanted) - 1)
        found = wanted[place] == keys
        numbers = np.full(len(wanted), -1, np.int32)
        numbers[place[found]] = near[found]
        return numbers[back.ravel()]


def _crossing(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The nearest points of two edges, (..., 4, 3): weights (..., 4) of their ends, and the gap (...)."""
    a, b, c, d = np.moveaxis(points, -2, 0)
    u, v, w = b - a, d - c, a - c
    uu, uv, vv = (np.einsum("...i,...i", *both) for both in ((u, u), (u, v), (v, v)))
    uw, vw = np.einsum("...i,...i", u, w), np.einsum("...i,...i", v, w)
    area = np.maximum(uu * vv - uv * uv, 1e-300)
    s = np.clip((uv * vw - vv * uw) / area, 0.0, 1.0)
    t = np.clip((uv * s + vw) / np.maximum(vv, 1e-300), 0.0, 1.0)
    s = np.clip((uv * t - uw) / np.maximum(uu, 1e-300), 0.0, 1.0)
    weights = np.stack([1.0 - s, s, t - 1.0, -t], axis=-1)
    return weights, np.linalg.norm(np.einsum("...k,...ki->...i", weights, points), axis=-1)


@wp.kernel
def _set_limits(first: int, begin: int, limits: wp.array[wp.float64], rows: RowArrays):
    k = first + wp.tid()
    rows.law[begin + k] = wp.vec2d(rows.law[begin + k][0], limits[k])
