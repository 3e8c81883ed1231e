"""Analytic bodies as the narrow phase takes them: their kind, records and tables on a device."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import warp as wp

from tangere.query.distance.convex.supports import ConvexKind, ConvexShape
from tangere.shape.analytic import CONE, CYLINDER, ROUND, Analytic, Box, hull_tables

SHAPE = np.dtype(ConvexShape.numpy_dtype())


@dataclass(frozen=True, eq=False)
class ConvexBodies:
    """Shapes of one kind on a device."""

    kind: ConvexKind
    shapes: wp.array  #: (1,) or (n,) `ConvexShape`
    points: wp.array  #: corners of a hull, else empty
    sizes: np.ndarray  #: (1,) or (n,) no point of a body is farther from its origin [m]

    @staticmethod
    def of(bodies: Analytic, device: wp.Device) -> ConvexBodies:
        """What the bodies are in their own frames; kept for bodies whose records are the same ones."""
        kept = bodies.__dict__.setdefault("_convex", {})
        if device.alias not in kept:
            kind = convex_kind(bodies)
            records = shape_records(bodies)
            margin = records["radius"] if kind <= ConvexKind.SEGMENT else 0.0
            kept[device.alias] = ConvexBodies(
                kind,
                wp.array(records, dtype=ConvexShape, device=device),
                hull_tables(bodies.hull, device.alias).corners if kind == ConvexKind.HULL else _no_points(device.alias),
                records["reach"] + margin,
            )
        return kept[device.alias]


def convex_kind(bodies: Analytic) -> ConvexKind:
    """What the cores of the bodies are."""
    if bodies.kind == ROUND:
        return ConvexKind.SEGMENT if bodies.records["half"][:, 2].any() else ConvexKind.POINT
    if bodies.kind == CYLINDER:
        return ConvexKind.CYLINDER
    if bodies.kind == CONE:
        return ConvexKind.CONE
    return ConvexKind.BOX if isinstance(bodies, Box) else ConvexKind.HULL


def shape_records(bodies: Analytic) -> np.ndarray:
    """(1,) or (n,) `ConvexShape` of bodies in their own frames."""
    given = bodies.records
    records: Any = np.zeros(len(given), SHAPE)
    records["radius"], records["half"] = given["radius"], given["half"]
    kind = convex_kind(bodies)
    if kind == ConvexKind.HULL:
        records["count"] = len(bodies.hull.corners)
        records["reach"] = np.linalg.norm(bodies.hull.corners, axis=1).max()
    else:
        around = given["radius"] if kind in (ConvexKind.CYLINDER, ConvexKind.CONE) else 0.0
        records["reach"] = np.hypot(np.linalg.norm(given["half"], axis=1), around)
    return records


@cache
def _no_points(device: str) -> wp.array:
    return wp.zeros(0, dtype=wp.vec3d, device=device)
