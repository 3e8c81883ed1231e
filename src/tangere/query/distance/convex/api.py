"""How far are two analytic bodies, or one and a mesh, apart, and where are they nearest: one pair, or many.

Question: the distance of spheres, capsules, boxes, cylinders, cones and convex hulls, each with each and with rigid
          meshes, posed or moving.
Method:   the narrow phase of their kinds (`narrow_phase`), one kernel a pair of kinds, compiled when first asked; of a
          mesh the least over its triangles, by its tree (`mesh_search`).
Sound:    lower <= true distance <= upper. They differ by at most 1e-9 of the size of the bodies (the radii of their
          balls added up), or the answer is undecided to the extent that they say. Where the bodies overlap both are 0;
          a mesh is a surface, a body solid: one inside the body overlaps it, a body inside a mesh does not.
Known as: minimum distance of convex primitives (GJK and closed forms).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import warp as wp

from tangere.query.contacts.record import Kind
from tangere.query.dispatch import is_analytic, refuse_unsupported
from tangere.query.distance.convex.bodies import (
    ConvexBodies,
    MeshBody,
    PlacedBodies,
    arrays_of,
    as_placed,
    paired_count,
)
from tangere.query.distance.convex.mesh_search import mesh_distance_kernel
from tangere.query.distance.convex.narrow_phase import ConvexAnswer, distance_kernel
from tangere.query.distance.convex.supports import ConvexKind
from tangere.query.distance.result import Distance
from tangere.runtime import Arrays, LaunchCache, PreparedLaunch, choose_device, launch
from tangere.shape import Moving
from tangere.shape.analytic import Analytic
from tangere.shape.mesh import Mesh

#: Pairs for which launches are kept, by each thread; of meshes, which are kept with them, fewer.
KEPT_PAIRS, KEPT_MESHES = 64, 16
_HERE = np.eye(4)
#: How far bounds of a distance may be apart, relative to the size of the bodies.
ACCURACY = 1e-9
#: Farther than anything [m].
FAR = 1e300
#: Pairs worth a thread: some tens of nanoseconds to a microsecond each.
GRAIN = 2048
#: With a mesh they take tens of microseconds.
MESH_GRAIN = 8


def convex_distance(
    a: Analytic | Mesh | Moving,
    b: Analytic | Mesh | Moving,
    *,
    time: Arrays = 0.0,
    device: str | wp.Device | None = None,
) -> Distance:
    """The distance of analytic bodies, or of one and a mesh; arguments as for `distance`."""
    return placed_distance(*_placed_pair("distance", a, b, time), device)


def placed_distance(one: PlacedBodies, other: PlacedBodies, device: str | wp.Device | None) -> Distance:
    """The distance of two things where they are."""
    answers = _answers(one, other, device)
    if one.single and other.single:
        triangle = int(answers[0]["triangle"])
        return _of_one(answers[0], *(triangle if isinstance(side.shape, Mesh) else -1 for side in (one, other)))
    sides = [_triangles(side, answers) for side in (one, other)]
    overlap, nowhere = answers["overlap"] != 0, np.full((len(answers), 3), np.nan)
    return Distance(
        lower=answers["lower"].copy(),
        upper=answers["upper"].copy(),
        point_a=answers["point_a"].copy(),
        point_b=answers["point_b"].copy(),
        normal=np.where(overlap[:, None], 0.0, answers["normal"]),
        triangle_a=sides[0],
        triangle_b=sides[1],
        weights_a=nowhere,
        weights_b=nowhere.copy(),
        kind=np.where(overlap, Kind.OVERLAP, Kind.NONE).astype(np.uint8),
    )


def nearest_on_mesh(
    bodies: ConvexBodies, pose: np.ndarray, mesh: Mesh, within: float, device: wp.Device
) -> np.ndarray | None:
    """(1,) `ConvexAnswer` of a body at a pose and a mesh where it is made; None of a mesh no nearer than `within`.

    Valid until the next call.
    """
    other = MeshBody.of(mesh, device)
    if device.is_cpu:
        found = prepared_on_mesh.of(bodies, other).found(pose, _HERE, within)
    else:
        limit, out = wp.full(1, within, dtype=wp.float64, device=device), wp.empty(1, dtype=ConvexAnswer, device=device)
        poses = [wp.array(place[None], dtype=wp.mat44d, device=device) for place in (pose, _HERE)]
        inputs = [*bodies.arguments, poses[0], *other.arguments, poses[1], ACCURACY, limit]
        launch(mesh_distance_kernel(bodies.kind), 1, inputs, [out], device=device, grain=1)
        found = out.numpy()
    return None if found["triangle"][0] < 0 else found


def distance_of_answer(row: Any, lower: float, triangle: int) -> Distance:
    """The `Distance` of a body from a surface by its nearest triangle, of which nothing is nearer than `lower`."""
    return _of_one(row, -1, triangle, lower)


def _triangles(side: PlacedBodies, answers: np.ndarray) -> np.ndarray:
    """(n,) the nearest triangle of a mesh, -1 of other bodies."""
    return answers["triangle"].copy() if isinstance(side.shape, Mesh) else np.full(len(answers), -1, np.int32)


def convex_bodies_meet(
    a: Analytic | Mesh | Moving,
    b: Analytic | Mesh | Moving,
    *,
    time: Arrays = 0.0,
    device: str | wp.Device | None = None,
) -> bool | np.ndarray:
    """Whether analytic bodies, or one and a mesh, meet: unless a plane certainly separates them; (n,) of n pairs."""
    one, other = _placed_pair("intersects", a, b, time)
    meet = _answers(one, other, device)["lower"] <= 0.0
    return bool(meet[0]) if one.single and other.single else meet


def _placed_pair(question: str, a: Any, b: Any, time: Arrays) -> tuple[PlacedBodies, PlacedBodies]:
    if not all(is_analytic(thing) or isinstance(thing, Mesh | Moving) for thing in (a, b)):
        refuse_unsupported(question, a, b)
    return as_placed(a, time), as_placed(b, time)


def _answers(a: PlacedBodies, b: PlacedBodies, device: str | wp.Device | None) -> np.ndarray:
    """`ConvexAnswer` records of the pairs; of a single pair valid until the next call."""
    chosen = choose_device(device, *(side.shape.poses for side in (a, b) if isinstance(side.shape, Analytic)))
    bodies = arrays_of(a.shape, chosen), arrays_of(b.shape, chosen)
    swapped = bodies[0].kind > bodies[1].kind
    if swapped:
        (a, b), bodies = (b, a), bodies[::-1]
    if a.single and b.single and chosen.is_cpu:
        kept = prepared_on_mesh if bodies[1].kind == ConvexKind.TRIANGLE else _prepared
        found = kept.of(*bodies).found(a.poses, b.poses)
    else:
        count = paired_count(len(a.poses), len(b.poses))
        out = wp.empty(count, dtype=ConvexAnswer, device=chosen)
        inputs: list[Any] = []
        for placed, shapes in zip((a, b), bodies, strict=True):
            poses = wp.array(np.ascontiguousarray(placed.poses), dtype=wp.mat44d, device=chosen, copy=not chosen.is_cpu)
            inputs += [*shapes.arguments, poses]
        on_mesh = bodies[1].kind == ConvexKind.TRIANGLE
        inputs += [ACCURACY, _anywhere(chosen.alias)] if on_mesh else [ACCURACY]
        grain = MESH_GRAIN if on_mesh else GRAIN
        launch(_kernel_of(*bodies), count, inputs, [out], device=chosen, grain=grain)
        found = out.numpy()
    if swapped:
        found = found.copy()
        found["normal"] *= -1.0
        point = found["point_a"].copy()
        found["point_a"], found["point_b"] = found["point_b"], point
    return found


@cache
def _anywhere(device: str) -> wp.array:
    """No limit of how far triangles may be."""
    return wp.full(1, FAR, dtype=wp.float64, device=device)


def _kernel_of(a: ConvexBodies | MeshBody, b: ConvexBodies | MeshBody) -> wp.Kernel:
    return mesh_distance_kernel(a.kind) if b.kind == ConvexKind.TRIANGLE else distance_kernel(a.kind, b.kind)


def _of_one(row: Any, triangle_a: int, triangle_b: int, lower: float | None = None) -> Distance:
    """`Distance` of one pair, in plain numbers."""
    overlap = bool(row["overlap"])
    return Distance(
        lower=float(row["lower"]) if lower is None else lower,
        upper=float(row["upper"]),
        point_a=row["point_a"].copy(),
        point_b=row["point_b"].copy(),
        normal=np.zeros(3) if overlap else row["normal"].copy(),
        triangle_a=triangle_a,
        triangle_b=triangle_b,
        weights_a=np.full(3, np.nan),
        weights_b=np.full(3, np.nan),
        kind=Kind.OVERLAP if overlap else Kind.NONE,
    )


class PreparedConvexPair:
    """The distance of one body of each kind at poses that are written from call to call (CPU)."""

    def __init__(self, a: ConvexBodies | MeshBody, b: ConvexBodies | MeshBody) -> None:
        poses = [wp.zeros(1, dtype=wp.mat44d, device="cpu") for _ in range(2)]
        answer, within = wp.zeros(1, dtype=ConvexAnswer, device="cpu"), wp.full(1, FAR, dtype=wp.float64, device="cpu")
        self._rows, self._found, self._within = [array.numpy() for array in poses], answer.numpy(), within.numpy()
        limits = [ACCURACY, within] if b.kind == ConvexKind.TRIANGLE else [ACCURACY]
        arguments = [*a.arguments, poses[0], *b.arguments, poses[1], *limits, answer]
        self._ask = PreparedLaunch(_kernel_of(a, b), arguments, wp.get_device("cpu")).block.prepared(1)

    def found(self, pose_a: np.ndarray, pose_b: np.ndarray, within: float = FAR) -> np.ndarray:
        """(1,) `ConvexAnswer`, valid until the next call; of a mesh no nearer than `within` without a triangle."""
        self._rows[0][:], self._rows[1][:], self._within[0] = pose_a, pose_b, within
        self._ask()
        return self._found


_prepared = LaunchCache(PreparedConvexPair, most=KEPT_PAIRS)
prepared_on_mesh = LaunchCache(PreparedConvexPair, most=KEPT_MESHES)
