"""First contact of one moving body with another by cubics and sphere trees: the first engine of the thesis.

Question: the earliest time at which a body that moves by a tangent screw touches a resting one.
Method:   sphere trees traversed together with a continuous sphere test; at the leaves edge-edge, vertex-face and
          face-vertex contacts as roots of cubics; caches, tables and labels that can be switched off one by one
          (Redon 2002, sections 2.4 to 2.6).
Promise:  that of the thesis: the first root, to rounding, and no certificate; an overlap at the start is not looked
          for. It serves to reproduce the thesis and as an oracle; `first_contact` is the query to use.
If both bodies move, or one moves by another motion, the motion relative to b is replaced by tangent screws between its
poses at equal times, each turning by at most `Switches.largest_turn` (Redon 2002, section 2.3).
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import warp as wp

from tangere.motion.rigid_motion import Rigid, evaluated
from tangere.motion.twist import Rest
from tangere.published.redon_cubics.path import PathPoint, ScrewPath, screw_paths, times
from tangere.published.redon_cubics.search import (
    EDGE_EDGE,
    FACE_VERTEX,
    CubicBody,
    CubicCache,
    CubicHit,
    CubicPlan,
    search_kernel,
)
from tangere.published.redon_cubics.sphere_tree import SphereTree
from tangere.published.redon_cubics.switches import Counts, Switches
from tangere.published.redon_screws import TanScrew
from tangere.query.contacts.record import Contacts, Kind, Status
from tangere.query.first_contact.primitives.details import describe
from tangere.query.first_contact.primitives.narrow_phase import features
from tangere.query.first_contact.result import FirstContact
from tangere.runtime.errors import CapacityError, InputError
from tangere.runtime.kernel_launch import launch
from tangere.shape import Moving
from tangere.shape.mesh.mesh import Mesh

#: Of the extent of the smaller body, if no leaf radius is given.
LEAF_PART = 0.02
#: Of the extent: a distance below this is rounding.
REACH = 1e-9
#: Of a screw's time: the velocity at the contact is a difference over twice this; only its direction is used.
VELOCITY_STEP = 1e-4
#: Entries of the table of pairs at first.
TABLE = 1 << 14
#: … and at most.
LARGEST_TABLE = 1 << 29


@dataclass(frozen=True)
class CubicSearch:
    """What a search found and what it did for that."""

    contact: FirstContact
    counts: Counts


def first_contact_by_cubics(
    a: Mesh | Moving, b: Mesh | Moving, *, switches: Switches | None = None, device: str = "cpu"
) -> FirstContact:
    """The earliest time in [0, 1] at which `a` touches `b`, both rigid; see the module for what is promised.

    Args:
        a, b: meshes, at rest or with a rigid motion.
        switches: which savings to use.
        device: where to search; the search has one thread, so the CPU is the place.
    """
    return search(a, b, switches=switches, device=device).contact


def search(a: Mesh | Moving, b: Mesh | Moving, *, switches: Switches | None = None, device: str = "cpu") -> CubicSearch:
    """`first_contact_by_cubics`, with the counts of what was done."""
    switches = switches or Switches()
    (mesh_a, motion_a), (mesh_b, motion_b) = _rigid(a), _rigid(b)
    radius = switches.leaf_radius or LEAF_PART * min(mesh_a.extent, mesh_b.extent)
    place = wp.get_device(device)
    screws = _tangent_screws(motion_a, motion_b, switches.largest_turn)
    paths = screw_paths(screws)
    counts = Counts()
    for piece in range(len(paths)):
        found, more = _one_screw(mesh_a, mesh_b, paths[piece : piece + 1], radius, switches, place)
        counts += more
        if found["s"] < math.inf:
            within = float(times(found["s"], screws["angle"][piece]))
            time = min((piece + within) / len(paths), 1.0)
            contact = _contact(mesh_a, mesh_b, screws[piece : piece + 1], within, found, time, motion_b.pose(time))
            status = Status.START if time == 0.0 else Status.CONTACT
            return CubicSearch(FirstContact(time, math.inf, status, contact), counts)
    return CubicSearch(FirstContact(math.inf, math.inf, Status.FREE), counts)


def _rigid(body: Mesh | Moving) -> tuple[Mesh, Rigid]:
    if isinstance(body, Mesh):
        return body, Rest()
    if not isinstance(body.motion, Rigid) or body.motion.shape:
        raise InputError(f"Mesh {body.shape.name!r}: the search by cubics takes one rigid motion, not {body.motion!r}")
    return body.shape, body.motion


def _tangent_screws(a: Rigid, b: Rigid, largest_turn: float) -> np.ndarray:
    """Records of the screws of a in the frame of b, one after the other in equal times."""
    pieces = 1
    if not (isinstance(a, TanScrew) and isinstance(b, Rest)):
        turned = float(a.records()["angle"][0] + b.records()["angle"][0])
        pieces = max(1, math.ceil(turned / largest_turn))
    at = np.linspace(0.0, 1.0, pieces + 1)
    relative = np.linalg.inv(b.pose(at)) @ a.pose(at)
    return TanScrew(relative[:-1], relative[1:]).records()


# -- one screw --------------------------------------------------------------------------------------------------------


@dataclass
class _VertexCache:
    """Paths of a body's vertices; nothing is ever cleared, a stamp tells which are of this search."""

    points: wp.array
    stamps: wp.array
    stamp: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)  # two searches with one body take turns

    @staticmethod
    def of(mesh: Mesh, device: wp.Device) -> _VertexCache:
        """The cache of a body on a device, made once."""
        key, count = ("screw paths of vertices", device.alias), len(mesh.vertices)
        if key not in mesh.cache:
            points = wp.zeros(count, dtype=PathPoint, device=device)
            mesh.cache.setdefault(key, _VertexCache(points, wp.zeros(count, dtype=wp.int32, device=device)))
        return mesh.cache[key]


def _one_screw(
    a: Mesh, b: Mesh, path: np.ndarray, radius: float, switches: Switches, device: wp.Device
) -> tuple[np.void, Counts]:
    """The earliest contact along one path (an array of one), and what was counted."""
    cache = _VertexCache.of(a, device)
    moving, resting = _body(a, radius, device), _body(b, radius, device)
    counts = wp.zeros(12, dtype=wp.int64, device=device)
    answer = wp.zeros(1, dtype=CubicHit, device=device)
    coordinates = max(np.abs(a.bounds).max(), np.abs(b.bounds).max(), np.abs(path["translation"]).max())
    plan = CubicPlan()
    plan.reach = REACH * min(a.extent, b.extent) + 64.0 * np.finfo(float).eps * float(coordinates)
    for name in ("label_table", "pair_tables", "vertex_cache", "prefilters", "pass_time"):
        setattr(plan, name, getattr(switches, name))
    memory: Any = CubicCache()
    memory.points, memory.stamps, memory.counts = cache.points, cache.stamps, counts
    # A pair is replaced by two of its children, and a tree of n leaves halved at each level is log2(n) + 1 deep.
    depth = sum(math.ceil(math.log2(len(body.nodes))) + 1 for body in (moving, resting))
    memory.stack = wp.zeros(depth + 2, dtype=wp.vec2i, device=device)
    size = TABLE
    with cache.lock:
        while True:
            cache.stamp += 1
            plan.stamp = cache.stamp
            memory.table = wp.zeros(size, dtype=wp.int64, device=device)
            counts.zero_()
            paths = wp.array(path, dtype=ScrewPath, device=device)
            launch(search_kernel, 1, [paths, moving, resting, plan, memory], [answer], device=device)
            found = answer.numpy()[0]
            if 4 * found["used"] < 3 * size:
                return found, Counts(*counts.numpy().tolist())
            if size >= LARGEST_TABLE:
                raise CapacityError(f"more than {LARGEST_TABLE} pairs of features to remember: use smaller leaves")
            size *= 8


def _body(mesh: Mesh, radius: float, device: wp.Device) -> Any:
    """The mesh and its tree as the kernel takes them, made once."""
    key = ("screw cubics body", radius, device.alias)
    if key not in mesh.cache:
        tree = SphereTree.of(mesh, radius, device)
        body: Any = CubicBody()
        body.vertices = wp.array(mesh.vertices, dtype=wp.vec3d, device=device)
        body.faces = wp.array(mesh.faces, dtype=wp.vec3i, device=device)
        body.edges = wp.array(mesh.edges, dtype=wp.vec2i, device=device)
        body.nodes = tree.nodes
        body.face_first, body.face_list = tree.face_first, tree.faces
        body.edge_first, body.edge_list = tree.edge_first, tree.edges
        body.vertex_first, body.vertex_list = tree.vertex_first, tree.vertices
        mesh.cache[key] = body
    return mesh.cache[key]


# -- the contact record -----------------------------------------------------------------------------------------------


def _contact(
    a: Mesh, b: Mesh, screw: np.ndarray, within: float, found: np.void, time: float, frame: np.ndarray
) -> Contacts:
    """The contact in the world frame, where b's frame is at `frame`; `within` is the time in the screw's piece."""
    kind, number_a, number_b = int(found["kind"]), int(found["a"]), int(found["b"])
    swapped = kind == FACE_VERTEX
    corners_a = a.edges[number_a] if kind == EDGE_EDGE else a.faces[number_a] if swapped else [number_a]
    corners_b = b.edges[number_b] if kind == EDGE_EDGE else [number_b] if swapped else b.faces[number_b]
    early, late = max(within - VELOCITY_STEP, 0.0), min(within + VELOCITY_STEP, 1.0)
    here, before, after = (
        a.vertices[corners_a] @ pose[:3, :3].T + pose[:3, 3]
        for pose in evaluated(np.broadcast_to(screw, 3), np.array([within, early, late]))[0]
    )
    velocity = (after - before) / (late - early)
    still = b.vertices[corners_b]
    # The course of the four points as lines through where they are now: what `describe` reads the normal from.
    order = (lambda x, y: np.concatenate([y, x])) if swapped else (lambda x, y: np.concatenate([x, y]))
    start = order(here - time * velocity, still) @ frame[:3, :3].T + frame[:3, 3]
    end = order(here + (1.0 - time) * velocity, still) @ frame[:3, :3].T + frame[:3, 3]
    tested = features.EDGE_EDGE if kind == EDGE_EDGE else features.VERTEX_FACE
    details = describe(
        tested,
        *(wp.array(x[None], dtype=wp.vec3d, device="cpu").reshape(4) for x in (start, end)),
        None,
        wp.array([time], dtype=wp.float64, device="cpu"),
        wp.array([Status.CONTACT], dtype=wp.uint8, device="cpu"),
    )
    point_a, point_b, normal = (getattr(details, name).numpy() for name in ("point_a", "point_b", "normal"))
    if swapped:
        point_a, point_b, normal = point_b, point_a, -normal
    meeting = Kind.EDGE_EDGE if kind == EDGE_EDGE else Kind.VERTEX_FACE
    return Contacts.of(
        time=time,
        point_a=point_a,
        point_b=point_b,
        normal=normal,
        feature_a=number_a,
        feature_b=number_b,
        weights=details.weights.numpy(),
        kind=meeting,
        vertex_on=int(swapped),
    )
