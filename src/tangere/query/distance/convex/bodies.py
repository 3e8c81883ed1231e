"""Analytic bodies as the narrow phase takes them: their kind, records and tables on a device, and where they are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import warp as wp

from tangere.bvh.obb import ObbTree, refuse_tiny
from tangere.motion import Path, Rigid
from tangere.query.distance.convex.supports import CURVED, ConvexKind, ConvexShape
from tangere.query.intersection.posed import as_instants, as_posed
from tangere.runtime import Arrays, InputError, LaunchCache, UnsupportedError, to_numpy
from tangere.shape import Moving
from tangere.shape.analytic import CONE, CYLINDER, HULL, ROUND, Analytic, AnalyticShape, Box, hull_tables
from tangere.shape.mesh import Mesh

#: The layout of `ConvexShape` for NumPy.
SHAPE = np.dtype(ConvexShape.numpy_dtype())
#: Bodies whose records are kept on their device, by each thread.
KEPT_BODIES = 64


@dataclass(frozen=True, eq=False)
class ConvexBodies:
    """Shapes of one kind on a device."""

    kind: ConvexKind
    shapes: wp.array  #: (1,) or (n,) `ConvexShape`
    points: wp.array  #: corners of a hull, else empty
    records: wp.array  #: (1,) or (n,) `AnalyticShape`, as the bounds of their motions take them
    reaches: wp.array  #: (1,) or (n,): no point of a core is farther from its origin [m]

    @property
    def arguments(self) -> tuple[wp.array, wp.array]:
        """What kernels of pairs take of them."""
        return self.shapes, self.points

    @staticmethod
    def of(bodies: Analytic, device: wp.Device) -> ConvexBodies:
        """What the bodies are in their own frames; kept for those that share their records."""
        return _kept.of(bodies.records, bodies.hull, type(bodies), device)


def _made(records: np.ndarray, hull: Any, family: type, device: wp.Device) -> ConvexBodies:
    kind = _kind_of(records, family)
    shapes = shape_records(records, kind, hull)
    return ConvexBodies(
        kind,
        wp.array(shapes, dtype=ConvexShape, device=device),
        hull_tables(hull, device.alias).corners if kind == ConvexKind.HULL else _no_points(device.alias),
        wp.array(records, dtype=AnalyticShape, device=device),
        wp.array(np.ascontiguousarray(shapes["reach"]), dtype=wp.float64, device=device),
    )


_kept = LaunchCache(_made, most=KEPT_BODIES)


@dataclass(frozen=True, eq=False)
class MeshBody:
    """A rigid mesh on a device, on the side of a kernel where a body could be."""

    kind: ConvexKind  #: of its leaves: comes after all other kinds
    arguments: tuple[wp.array, wp.array]  #: nodes and corners of its OBB tree
    records: wp.array  #: (1,) `AnalyticShape`: something that turns as a whole
    reaches: wp.array  #: (1,) no vertex is farther from the origin [m]

    @staticmethod
    def of(mesh: Mesh, device: wp.Device) -> MeshBody:
        """The arrays of a mesh, kept with it."""
        key = MeshBody, device.alias
        if key not in mesh.cache:
            refuse_tiny(mesh)
            tree = ObbTree.of(mesh, device)
            record = np.zeros(1, AnalyticShape.numpy_dtype())
            record["kind"] = HULL
            reach = np.linalg.norm(mesh.vertices[np.unique(mesh.faces)], axis=1).max(keepdims=True)
            mesh.cache[key] = MeshBody(
                ConvexKind.TRIANGLE,
                (tree.nodes, tree.corners),
                wp.array(record, dtype=AnalyticShape, device=device),
                wp.array(reach, dtype=wp.float64, device=device),
            )
        return mesh.cache[key]


def arrays_of(shape: Analytic | Mesh, device: wp.Device) -> ConvexBodies | MeshBody:
    """What kernels take of bodies, or of a mesh."""
    return MeshBody.of(shape, device) if isinstance(shape, Mesh) else ConvexBodies.of(shape, device)


def convex_kind(bodies: Analytic) -> ConvexKind:
    """What the cores of the bodies are."""
    return _kind_of(bodies.records, type(bodies))


def _kind_of(records: np.ndarray, family: type) -> ConvexKind:
    kind = records["kind"][0]
    if kind == ROUND:
        return ConvexKind.SEGMENT if records["half"][:, 2].any() else ConvexKind.POINT
    if kind == CYLINDER:
        return ConvexKind.CYLINDER
    if kind == CONE:
        return ConvexKind.CONE
    return ConvexKind.BOX if issubclass(family, Box) else ConvexKind.HULL


def shape_records(records: np.ndarray, kind: ConvexKind, hull: Any) -> np.ndarray:
    """`ConvexShape`s of `AnalyticShape`s, (1,) or (n,)."""
    shapes: Any = np.zeros(len(records), SHAPE)
    shapes["radius"], shapes["half"] = records["radius"], records["half"]
    shapes["axis"] = [0.0, 0.0, 1.0]
    if kind == ConvexKind.HULL:
        shapes["count"] = len(hull.corners)
        shapes["reach"] = np.linalg.norm(hull.corners, axis=1).max()
        shapes["inner"] = max(hull.planes[:, 3].min(), 0.0)
    else:
        around = records["radius"] if kind in CURVED else 0.0
        shapes["reach"] = np.hypot(np.linalg.norm(records["half"], axis=1), around)
        shapes["inner"] = _inner_radius(records, kind)
    return shapes


def _inner_radius(records: np.ndarray, kind: ConvexKind) -> np.ndarray | float:
    """Of the ball about the origin within each body; zero of cores without a volume."""
    radius, half = records["radius"], records["half"][:, 2]
    if kind == ConvexKind.BOX:
        return records["half"].min(axis=1)
    if kind == ConvexKind.CYLINDER:
        return np.minimum(radius, half)
    if kind == ConvexKind.CONE:
        return half * radius / np.hypot(2.0 * half, radius)
    return 0.0


@cache
def _no_points(device: str) -> wp.array:
    return wp.zeros(0, dtype=wp.vec3d, device=device)


@dataclass(frozen=True, eq=False)
class PlacedBodies:
    """Analytic bodies, or a mesh, at n poses."""

    shape: Analytic | Mesh
    poses: np.ndarray  #: (n, 4, 4)
    single: bool  #: one body at one pose, not a batch of one


def as_placed(thing: Analytic | Mesh | Moving, time: Arrays = 0.0) -> PlacedBodies:
    """Where analytic bodies, or a mesh, are at `time`, one or (n,) times in [0, 1]."""
    if isinstance(thing, Mesh) or (isinstance(thing, Moving) and isinstance(thing.shape, Mesh)):
        posed = as_posed(thing, time)
        return PlacedBodies(posed.mesh, posed.poses, posed.single)
    times = as_instants(time)
    if isinstance(thing, Analytic):
        poses = to_numpy(thing.poses, "poses")
        if times.ndim == 1:
            poses = _broadcast(poses, len(times), "bodies", "times")
        return PlacedBodies(thing, poses, len(poses) == 1 and times.ndim == 0)
    if not isinstance(thing.motion, (Rigid, Path)):
        raise UnsupportedError(f"analytic bodies move by Twist, Screw, Path and the like, not by {thing.motion!r}")
    moved = thing.motion.pose(times)
    own = to_numpy(thing.shape.poses, "poses")
    count = len(own) if moved.ndim == 2 else len(moved)
    if len(own) not in (1, count):
        raise InputError(f"{len(own)} bodies and {count} motions or times do not pair off: as many, or one of either")
    poses = moved @ own if own.size else np.zeros((0, 4, 4))
    return PlacedBodies(thing.shape, poses.reshape(-1, 4, 4), moved.ndim == 2 and len(own) == 1)


def _broadcast(poses: np.ndarray, count: int, what: str, other: str) -> np.ndarray:
    if len(poses) not in (1, count):
        raise InputError(f"{len(poses)} {what} and {count} {other} do not pair off: as many of both, or one of either")
    return np.broadcast_to(poses, (count, 4, 4))


def paired_count(a: int, b: int) -> int:
    """How many pairs a bodies and b bodies make: n with n, or n with 1."""
    counts = {a, b} - {1}
    if len(counts) > 1:
        raise InputError(f"{a} bodies a do not pair off with {b} bodies b: as many of both, or one of either")
    return counts.pop() if counts else 1
