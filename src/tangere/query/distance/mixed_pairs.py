"""How far are many different pairs of things apart: analytic bodies, meshes and ground, each with each?

Method: pairs of one family, such as a cylinder of any size and a cone of any size, or a box and one mesh, are one batch
        of `distance`; pairs of meshes are asked about together as well (`many_pairs`).
Sound:  as these: lower <= true distance <= upper.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import warp as wp

from tangere.motion import Rest, as_poses
from tangere.query.contacts.record import Kind
from tangere.query.dispatch import TERRAIN, kind_of
from tangere.query.distance.api import distance
from tangere.query.distance.convex.bodies import convex_kind
from tangere.query.distance.many_pairs import blank, distances, numbers_of_shapes
from tangere.query.distance.result import Distance
from tangere.runtime import Arrays, InputError, UnsupportedError, described, to_numpy
from tangere.shape.analytic import Analytic
from tangere.shape.mesh import Mesh


def mixed_distances(
    shapes: Sequence[Any],
    a: Arrays,
    b: Arrays,
    poses_a: Arrays | None,
    poses_b: Arrays | None,
    *,
    cap: float | None,
    accuracy: float,
    device: str | wp.Device | None,
) -> Distance:
    """The distances of n pairs of any of `shapes`; arguments as for `distances`."""
    things = [_checked(shape, k) for k, shape in enumerate(shapes)]
    sides = [PlacedShapes(things, which, poses, name) for which, poses, name in ((a, poses_a, "a"), (b, poses_b, "b"))]
    count = max(len(side.rows) for side in sides)
    for side in sides:
        side.spread(count)
    families = [_family(shape) for shape in things]
    groups: dict[Hashable, list[int]] = {}
    for row in range(count):
        pair = tuple(families[side.rows[row]] for side in sides)
        groups.setdefault("meshes" if all(key[0] == "mesh" for key in pair) else pair, []).append(row)
    columns = blank(count)
    for key, members in groups.items():
        rows = np.array(members)
        if key == "meshes":
            chosen = [(side.rows[rows], side.poses[rows]) for side in sides]
            (of_a, at_a), (of_b, at_b) = ((_numbered(things, which), places) for which, places in chosen)
            meshes = [thing for thing in things if isinstance(thing, Mesh)]
            found = distances(meshes, of_a, of_b, at_a, at_b, cap=cap, accuracy=accuracy, device=device)
        else:
            found = _of_family(*(side.batch(rows) for side in sides), device)
        for name, column in columns.items():
            column[rows] = getattr(found, name)
    far = np.zeros(count, bool) if cap is None else columns["upper"] > cap
    columns["upper"][far], columns["lower"][far] = np.inf, (1.0 - accuracy) * (cap or 0.0)
    for name in ("point_a", "point_b", "weights_a", "weights_b"):
        columns[name][far] = np.nan
    columns["normal"][far], columns["kind"][far] = 0.0, Kind.NONE
    columns["triangle_a"][far] = columns["triangle_b"][far] = -1
    return Distance(**columns)


class PlacedShapes:
    """Which shape each pair has on one side, and where it is."""

    def __init__(self, things: Sequence[Any], which: Arrays, poses: Arrays | None, name: str) -> None:
        self.rows = numbers_of_shapes(which, len(things), name)
        places = np.eye(4) if poses is None else as_poses(poses, f"poses_{name}")
        if places.shape[:-2] not in ((), self.rows.shape):
            raise InputError(f"poses_{name} must be one, or one for each of {len(self.rows)} pairs, not {places.shape}")
        self.poses = np.broadcast_to(places, (len(self.rows), 4, 4))
        self._things, self._name, self._placed = things, name, poses is not None

    def spread(self, count: int) -> None:
        """One for all where there is only one."""
        if len(self.rows) not in (1, count):
            raise InputError(f"a and b must be as many, or one of either, not {len(self.rows)} and {count}")
        self.rows, self.poses = np.broadcast_to(self.rows, count), np.broadcast_to(self.poses, (count, 4, 4))

    def batch(self, rows: np.ndarray) -> Any:
        """The shapes of some pairs, of one family, where they are."""
        chosen, places = self.rows[rows], self.poses[rows]
        distinct, own = np.unique(chosen, return_inverse=True)
        first = self._things[distinct[0]]
        if isinstance(first, Mesh):
            return first.moving(Rest(places))
        if not isinstance(first, Analytic):
            if self._placed and np.abs(places - np.eye(4)).max() > 0.0:
                raise InputError(f"poses_{self._name}: ground does not move")
            return first
        members = [self._things[k] for k in distinct]
        at = np.concatenate([to_numpy(member.poses, "poses").reshape(1, 4, 4) for member in members])
        return Analytic.joined(members)[own].at(places @ at[own])


def _checked(shape: Any, number: int) -> Any:
    if not isinstance(shape, Mesh | Analytic) and kind_of(shape) != TERRAIN:
        raise UnsupportedError(f"shapes[{number}] must be a Mesh, an analytic body or ground, not {described(shape)}")
    if isinstance(shape, Analytic) and len(shape) != 1:
        raise InputError(f"shapes[{number}] is {len(shape)} bodies: list them one by one")
    return shape


def _family(shape: Any) -> tuple[Hashable, ...]:
    """Shapes of one family can be one batch."""
    if isinstance(shape, Mesh):
        return "mesh", id(shape)
    if isinstance(shape, Analytic):
        return "body", convex_kind(shape), id(shape.hull)
    return "ground", id(shape)


def _numbered(things: Sequence[Any], which: np.ndarray) -> np.ndarray:
    """Numbers of shapes as numbers among the meshes."""
    return (np.cumsum([isinstance(thing, Mesh) for thing in things]) - 1)[which]


def _of_family(a: Any, b: Any, device: Any) -> Distance:
    """The distances of one batch; ground may be on either side."""
    if kind_of(a) != TERRAIN or kind_of(b) == TERRAIN:
        return distance(a, b, device=device)
    found = distance(b, a, device=device)
    turned = {name: getattr(found, name) for name in ("lower", "upper", "kind")}
    for name in ("point", "triangle", "weights"):
        turned |= {f"{name}_a": getattr(found, f"{name}_b"), f"{name}_b": getattr(found, f"{name}_a")}
    return Distance(**turned, normal=-found.normal)
