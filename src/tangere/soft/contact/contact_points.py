"""Contacts as combinations of surface vertices, in the order of their features.

A search writes what each feature touches to a place of its own; those places where something is become a list. How
long it is the device knows (`live`); on CUDA they are counted, scanned and filled, the host asks once a step, and when
the list was too short the step is done again with a longer one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import warp as wp
import warp.utils

from tangere.geometry.closest_points import nearest_on_edges, nearest_on_face
from tangere.query.contacts import Kind
from tangere.query.proximity import ContactBuffer
from tangere.runtime import SOUND, device_of, launch
from tangere.soft.contact.nearest_edges import SharpEdges
from tangere.soft.model.assembled_bodies import AssembledBodies, struct_of

wp.set_module_options(SOUND)

_EDGE_EDGE = wp.constant(wp.uint8(Kind.EDGE_EDGE))
_VERTEX_FACE = wp.constant(wp.uint8(Kind.VERTEX_FACE))


@wp.struct
class ContactArrays:
    """The arrays of `ContactPoints`."""

    quads: wp.array[wp.vec4i]
    weights: wp.array[wp.vec4d]
    features: wp.array[wp.vec2i]
    kind: wp.array[wp.uint8]
    place: wp.array[int]
    live: wp.array[int]


@wp.struct
class PartnerArrays:
    """What each feature touches (`ContactPartners`), and the features."""

    nearest: wp.array[int]
    first_edge: int
    faces: wp.array2d[int]
    edge_number: wp.array[int]
    edges: wp.array2d[int]


@dataclass(frozen=True)
class ContactPoints:
    """n contacts, in arrays with room for more: the gap vector is sum_k weights[k] x[quads[k]]."""

    quads: wp.array  #: vec4i
    weights: wp.array  #: vec4d, adding up to 0
    features: wp.array  #: vec2i: vertex and face, or two edges
    kind: wp.array  #: uint8, `Kind`
    place: wp.array  #: int32: of the feature that touches (`ContactPartners`), -1 where that is not known
    live: wp.array  #: (1,) int32: n

    @staticmethod
    def empty(room: int, device: wp.Device) -> ContactPoints:
        """No contacts, and room for some."""
        types = (wp.vec4i, wp.vec4d, wp.vec2i, wp.uint8, wp.int32)
        columns = (wp.empty(room, dtype=dtype, device=device) for dtype in types)
        return ContactPoints(*columns, live=wp.zeros(1, dtype=wp.int32, device=device))

    def copy(self, room: int) -> ContactPoints:
        """The same contacts, with other room for more."""
        more = ContactPoints.empty(room, device_of(self.live))
        for name in ("quads", "weights", "features", "kind", "place"):
            wp.copy(getattr(more, name), getattr(self, name), count=self.room)
        wp.copy(more.live, self.live)
        return more

    @property
    def room(self) -> int:
        return len(self.quads)

    @cached_property
    def arrays(self) -> ContactArrays:
        """All of them, for kernels."""
        columns = {name: getattr(self, name) for name in ("quads", "weights", "features", "kind", "place", "live")}
        return struct_of(ContactArrays, device_of(self.live), **columns)

    @property
    def count(self) -> int:
        """n, which on CUDA must be asked for."""
        return int(self.live.numpy()[0])


class ContactPartners:
    """What each feature touches: vertex v at places 2 v and 2 v + 1, then the sharp edges; -1 for nothing."""

    def __init__(self, assembly: AssembledBodies, sharp: SharpEdges) -> None:
        device = assembly.device
        self._assembly = assembly
        self.first_edge = 2 * len(assembly.surface.rest)
        self.nearest = wp.empty(self.first_edge + len(sharp.ends), dtype=wp.int32, device=device)
        self._ends = wp.empty_like(self.nearest)
        self._arrays = struct_of(
            PartnerArrays,
            device,
            nearest=self.nearest,
            first_edge=self.first_edge,
            faces=assembly.surface.faces,
            edge_number=sharp.number,
            edges=sharp.ends,
        )

    def clear(self) -> None:
        self.nearest.fill_(-1)

    def list_contacts(self, contact_points: ContactPoints, positions: wp.array) -> ContactPoints:
        """Fill a list with them; a longer one is made where the host can see that it is needed."""
        device = self._assembly.device
        if device.is_cuda:
            self.list_by_scan(contact_points, positions)
            return contact_points
        kept = self._kept()
        if contact_points.room < len(kept):
            contact_points = ContactPoints.empty(len(kept) + len(kept) // 2, device)
        places = wp.array(kept, dtype=wp.int32, device=device, copy=False)
        inputs = [places, self._arrays, positions, contact_points.arrays]
        launch(_fill_kept, len(kept), inputs, device=device, grain=1024)
        contact_points.live.fill_(len(kept))
        return contact_points

    def list_by_scan(self, contact_points: ContactPoints, positions: wp.array) -> None:
        """Fill a list with as many as it has room for, without a word to the host."""
        device, places = self._assembly.device, len(self.nearest)
        launch(_keep, places, [self.nearest, self.first_edge], [self._ends], device=device, grain=8192)
        warp.utils.array_scan(self._ends, self._ends, inclusive=True)
        inputs = [self._ends, self._arrays, positions, contact_points.arrays]
        launch(_fill, places, inputs, device=device, grain=8192)

    def _kept(self) -> np.ndarray:
        """Which places tell of a contact: where two edges have found each other, the first one does (CPU)."""
        nearest = self.nearest.numpy()
        kept = np.flatnonzero(nearest >= 0).astype(np.int32)
        edges = kept[kept >= self.first_edge] - self.first_edge
        if not len(edges):
            return kept
        other = nearest[self.first_edge + edges]
        listed = (other < edges) & (nearest[self.first_edge + other] == edges)
        return np.concatenate([kept[: len(kept) - len(edges)], self.first_edge + edges[~listed]])


def points_from_proximity(near: ContactBuffer, device: wp.Device, faces: wp.array | None = None) -> ContactPoints:
    """The contacts that `tangere.query.proximity` found; `faces`: what each of its faces is called, if not the same."""
    if faces is not None:
        launch(_name_faces, len(near), [faces, near.kind], [near.features], device=device)
    weights = wp.empty(len(near), dtype=wp.vec4d, device=device)
    launch(_from_near, len(near), [near.weights, near.kind], [weights], device=device)
    live = wp.array(np.array([len(near)], np.int32), dtype=wp.int32, device=device)
    unknown = wp.full(len(near), -1, dtype=wp.int32, device=device)
    return ContactPoints(near.quads, weights, near.features, near.kind, unknown, live)


@wp.kernel
def _keep(first: int, partners: wp.array[int], first_edge: int, keep: wp.array[int]):
    """Two edges may have found each other: then the first one is listed."""
    k = first + wp.tid()
    kept = int(partners[k] >= 0)
    if kept == 1 and k >= first_edge:
        edge = k - first_edge
        if partners[k] < edge and partners[first_edge + partners[k]] == edge:
            kept = 0
    keep[k] = kept


@wp.kernel
def _fill(
    first: int, ends: wp.array[int], partners: PartnerArrays, positions: wp.array[wp.vec3d], contacts: ContactArrays
):
    k = first + wp.tid()
    if k == partners.nearest.shape[0] - 1:
        contacts.live[0] = ends[k]
    before = int(0)
    if k > 0:
        before = ends[wp.max(k - 1, 0)]
    if ends[k] != before and before < contacts.quads.shape[0]:
        write_contact(k, before, partners, positions, contacts)


@wp.kernel
def _fill_kept(
    first: int, kept: wp.array[int], partners: PartnerArrays, positions: wp.array[wp.vec3d], contacts: ContactArrays
):
    n = first + wp.tid()
    write_contact(kept[n], n, partners, positions, contacts)


@wp.func
def write_contact(k: int, place: int, partners: PartnerArrays, positions: wp.array[wp.vec3d], contacts: ContactArrays):
    """Write what the feature at place k touches to a place in the list."""
    one = wp.float64(1.0)
    contacts.place[place] = k
    if k < partners.first_edge:
        v = k / 2
        f = partners.nearest[k]
        f0 = partners.faces[f, 0]
        f1 = partners.faces[f, 1]
        f2 = partners.faces[f, 2]
        w = nearest_on_face(positions[v], positions[f0], positions[f1], positions[f2])
        contacts.quads[place] = wp.vec4i(v, f0, f1, f2)
        contacts.weights[place] = wp.vec4d(one, -w[0], -w[1], -w[2])
        contacts.features[place] = wp.vec2i(v, f)
        contacts.kind[place] = _VERTEX_FACE
    else:
        i = k - partners.first_edge
        j = partners.nearest[k]
        quad = wp.vec4i(partners.edges[i, 0], partners.edges[i, 1], partners.edges[j, 0], partners.edges[j, 1])
        at = nearest_on_edges(positions[quad[0]], positions[quad[1]], positions[quad[2]], positions[quad[3]])
        contacts.quads[place] = quad
        contacts.weights[place] = wp.vec4d(one - at[0], at[0], at[1] - one, -at[1])
        contacts.features[place] = wp.vec2i(partners.edge_number[i], partners.edge_number[j])
        contacts.kind[place] = _EDGE_EDGE


@wp.kernel
def _name_faces(first: int, faces: wp.array[int], kind: wp.array[wp.uint8], features: wp.array[wp.vec2i]):
    k = first + wp.tid()
    if kind[k] != _EDGE_EDGE:
        features[k] = wp.vec2i(features[k][0], faces[features[k][1]])


@wp.kernel
def _from_near(
    first: int,
    near_weights: wp.array[wp.vec4d],
    kind: wp.array[wp.uint8],
    weights: wp.array[wp.vec4d],
):
    k = first + wp.tid()
    w = wp.abs(near_weights[k])
    if kind[k] == _EDGE_EDGE:
        weights[k] = wp.vec4d(w[0], w[1], -w[2], -w[3])
    else:
        weights[k] = wp.vec4d(wp.float64(1.0), -w[1], -w[2], -w[3])
