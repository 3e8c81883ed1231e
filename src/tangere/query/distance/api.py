"""How far are two rigid bodies apart, and where are they nearest? Meshes here, analytic bodies by `convex`.

Method: descent of both OBB trees (`traversal`); triangles that meet are found by the same test as in
        `intersecting_pairs`, and what rounding hides is decided exactly (trees: Redon 2002, section 3.2).
Sound:  lower <= true distance <= upper, for the surfaces: one mesh wholly inside another is as far from it as its
        surface is. The lower bound is the gap between the triangles along the direction found, less rounding.
Known as: minimum distance query by two bounding volume hierarchies (Larsen, Gottschalk, Lin and Manocha 2000, PQP).
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import warp as wp

from tangere.bvh.obb import ObbTree, refuse_tiny
from tangere.geometry.triangles import MEET, UNSURE
from tangere.motion import Rest
from tangere.query.contacts.record import Kind
from tangere.query.dispatch import answer, engine_for
from tangere.query.distance.cpu.search import find_nearest_in_eights
from tangere.query.distance.cpu.simd_descent import NEARER_SCRATCH
from tangere.query.distance.result import Distance
from tangere.query.distance.traversal import (
    BOUNDS,
    MEETING,
    NUMBERS,
    POINT_A,
    POINT_B,
    TRIANGLE_A,
    TRIANGLE_B,
    VECTORS,
    WEIGHTS_A,
    WEIGHTS_B,
    find_nearest,
)
from tangere.query.intersection.api import intersecting_pairs
from tangere.query.intersection.cpu.search import eights_pair, fits_eights
from tangere.query.intersection.posed import as_posed, paired, world_scale
from tangere.query.intersection.prepared_pair import PosedPair
from tangere.query.intersection.traversal import decide_exactly
from tangere.runtime import (
    Arrays,
    InputError,
    LaunchCache,
    PreparedLaunch,
    choose_device,
    launch,
    thread_count,
    using_threads,
)
from tangere.shape import Moving
from tangere.shape.mesh import Mesh

#: What rounding may do to a distance, relative to the largest coordinate in the world.
ROUNDING = 2.0**-46


def distance(
    a: Any,
    b: Any = None,
    *,
    allowed: Arrays | None = None,
    time: Arrays = 0.0,
    solid: bool = False,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> Distance:
    """The distance of two bodies, or of a body and the ground, at one instant or at many; or of the nearest of a list.

    Analytic bodies are solid and exact, never facets: their bounds differ by 1e-9 of the bodies' size at most, or as
    much as they say where rounding leaves more open; where they overlap the distance is 0, of kind OVERLAP.

    Args:
        a, b: meshes or analytic bodies (`Sphere`, `Box`, `ConvexMesh` …), at rest or moving rigidly; batches of poses,
            bodies or motions pair off, n with n or n with 1. `b` may be the ground, a `Heightfield` or
            `TiledHeightfield`, which is solid: the distance of a body below its surface is 0. `a` may be a list of
            these, ground too: the nearest two; with a list `b`, the nearest of one of each.
        allowed: of a list, pairs of bodies that may touch, (k, 2), by number or by name: they are left out.
        time: instants in [0, 1], one or (n,); of a list one.
        solid: bodies are solid: where one is inside the other the distance is 0, of kind INSIDE. Closed meshes whose
            triangles agree; others are refused.
        device: where to compute; None means CUDA if present.
        threads: CPU threads, for a batch; None means all, or TANGERE_THREADS.

    Returns:
        A `Distance`; of a list a `NearestBodies`, of which `body_a` and `body_b` are the numbers, and inf where there
        are no two. Its lower bound is that of all pairs.

    Example:
        >>> import numpy as np, tangere as tg
        >>> from tangere.query.distance import distance
        >>> ball = tg.generate.icosphere(subdivisions=2)
        >>> away = np.eye(4)
        >>> away[0, 3] = 3.0
        >>> found = distance(ball, ball.at(away), device="cpu")
        >>> round(found.upper, 9), found.upper - found.lower < 1e-12
        (1.0, True)
        >>> distance(tg.Sphere(1.0), tg.Box([0.5, 0.5, 0.5]).at(away), device="cpu")
        Distance(1.5, none)
        >>> distance([tg.Sphere(1.0), tg.Sphere(0.5).at(away), tg.Box([0.2, 0.2, 0.2]).at(away)], device="cpu")
        NearestBodies(0, overlap of 1 and 2)
    """
    if threads is not None:
        with using_threads(threads):
            return distance(a, b, allowed=allowed, time=time, solid=solid, device=device)
    engine = engine_for("distance", a, b)
    if engine == "lists":
        return answer("distance", a, b, allowed=allowed, time=time, solid=solid, device=device)
    if allowed is not None:
        raise InputError("allowed says which bodies of a list may touch: distance([a, b, c], allowed=[(0, 1)])")
    if engine != "meshes":
        return answer("distance", a, b, time=time, solid=solid, device=device)
    if solid:
        return _solid_distance(a, b, time, device)
    one, other = as_posed(a, time), as_posed(b, time)
    refuse_tiny(one.mesh)
    refuse_tiny(other.mesh)
    device = choose_device(device)
    meshes = one.mesh, other.mesh
    trees = ObbTree.of(one.mesh, device), ObbTree.of(other.mesh, device)
    single = one.single and other.single
    if single and device.is_cpu:
        scales = world_scale(one, other)
        search = (_eights_searches if _in_eights(scales, device) else _searches).of(*meshes)
        search.rows[:, 0], search.rows[:, 1] = one.poses, other.poses
        poses, numbers, vectors = search.poses, *search.found()
    else:
        poses = paired(one, other, device)
        scales = world_scale(one, other)
        numbers_found = wp.zeros((len(poses), NUMBERS), dtype=wp.int32, device=device)
        vectors_found = wp.zeros((len(poses), VECTORS), dtype=wp.vec3d, device=device)
        kernel, inputs = find_nearest, [trees[0].nodes, trees[1].nodes, trees[0].corners, trees[1].corners]
        if _in_eights(scales, device):
            kernel, inputs = find_nearest_in_eights, [eights_pair(*meshes, NEARER_SCRATCH, thread_count())]
        launch(kernel, len(poses), [*inputs, poses], [numbers_found, vectors_found], device=device, grain=1)
        numbers, vectors = numbers_found.numpy(), vectors_found.numpy()
    unsure = [0] * int(numbers[0, MEETING] == UNSURE) if single else np.flatnonzero(numbers[:, MEETING] == UNSURE)
    for query in unsure:
        _decide_exactly(query, numbers, vectors, meshes, trees, poses)
    if single:
        return Distance(**_fields(numbers[0], vectors[0], scales.item()))
    return Distance(**_columns(numbers, vectors, scales))


def _solid_distance(a: Mesh | Moving, b: Mesh | Moving, time: Arrays, device: str | wp.Device | None) -> Distance:
    """The distance of surfaces, but 0 where one body is inside the other."""
    from tangere.query.containment.api import check_solids, distance_of_solids  # who does not ask does not load it

    check_solids(a, b)
    return distance_of_solids(distance(a, b, time=time, device=device), a, b, time, device)


class PreparedDistance(PosedPair):
    """The search at one pose of each mesh, by one thread."""

    def __init__(self, a: Mesh, b: Mesh, *, eights: bool) -> None:
        super().__init__(a, b)
        numbers = wp.zeros((1, NUMBERS), dtype=wp.int32, device="cpu")
        vectors = wp.zeros((1, VECTORS), dtype=wp.vec3d, device="cpu")
        self._host_numbers, self._host_vectors = numbers.numpy(), vectors.numpy()
        one, other = self.trees
        kernel, inputs = find_nearest, [one.nodes, other.nodes, one.corners, other.corners]
        self._leading = [0]
        if eights:
            kernel, inputs = find_nearest_in_eights, [eights_pair(a, b, NEARER_SCRATCH)]
            self._leading = [0, 0, 0]
        self._recorded = PreparedLaunch(kernel, [*inputs, self.poses, numbers, vectors], wp.get_device("cpu"))

    def found(self) -> tuple[np.ndarray, np.ndarray]:
        """The numbers and vectors found at the poses in `rows`; valid until the next call."""
        self._host_vectors[:] = 0.0
        self._recorded.launch(1, *self._leading)
        return self._host_numbers, self._host_vectors


_searches = LaunchCache(partial(PreparedDistance, eights=False))
_eights_searches = LaunchCache(partial(PreparedDistance, eights=True))


def _in_eights(scales: np.ndarray, device: wp.Device) -> bool:
    """Whether the twin for CPUs answers."""
    return device.is_cpu and len(scales) > 0 and fits_eights(scales.min(), scales.max())


def _decide_exactly(
    query: int,
    numbers: np.ndarray,
    vectors: np.ndarray,
    meshes: tuple[Mesh, Mesh],
    trees: tuple[ObbTree, ObbTree],
    poses: wp.array,
) -> None:
    """Decide exactly where rounding hid whether triangles meet."""
    placed = [mesh.moving(Rest(pose)) for mesh, pose in zip(meshes, poses.numpy()[query], strict=True)]
    meeting = intersecting_pairs(*placed, device=poses.device)[:1]
    if len(meeting):
        _, points = decide_exactly(trees, poses, np.array([query], np.int32), meeting)
        numbers[query] = [*meeting[0], MEET]
        vectors[query, POINT_A] = vectors[query, POINT_B] = points[0]


def _fields(numbers: np.ndarray, vectors: np.ndarray, scale: float) -> dict[str, Any]:
    """`_columns` of one query, in plain numbers: arrays take as long as a tenth of the search."""
    vectors = vectors.copy()
    meet = bool(numbers[MEETING] == MEET)
    slack = ROUNDING * scale
    away = vectors[POINT_A] - vectors[POINT_B]
    x, y, z = away.tolist()
    length = math.sqrt(x * x + y * y + z * z)
    lower, upper, _ = vectors[BOUNDS].tolist()
    weights_a, weights_b = vectors[WEIGHTS_A], vectors[WEIGHTS_B]
    kind = Kind.OVERLAP
    if meet:
        weights_a[:] = weights_b[:] = np.nan
    else:
        kind = Kind(_KINDS[np.count_nonzero(weights_a), np.count_nonzero(weights_b)].item())
    return {
        "lower": 0.0 if meet else max(lower - slack, 0.0),
        "upper": 0.0 if meet else upper + slack,
        "normal": away / (length if length > 0.0 else 1.0),
        "kind": kind,
        "point_a": vectors[POINT_A],
        "point_b": vectors[POINT_B],
        "triangle_a": int(numbers[TRIANGLE_A]),
        "triangle_b": int(numbers[TRIANGLE_B]),
        "weights_a": weights_a,
        "weights_b": weights_b,
    }


def _columns(numbers: np.ndarray, vectors: np.ndarray, scale: np.ndarray) -> dict[str, Any]:
    meet = numbers[:, MEETING] == MEET
    slack = ROUNDING * scale
    away = vectors[:, POINT_A] - vectors[:, POINT_B]
    length = np.linalg.norm(away, axis=1, keepdims=True)
    weights_a, weights_b = vectors[:, WEIGHTS_A].copy(), vectors[:, WEIGHTS_B].copy()
    weights_a[meet] = weights_b[meet] = np.nan
    return {
        "lower": np.where(meet, 0.0, np.maximum(vectors[:, BOUNDS, 0] - slack, 0.0)),
        "upper": np.where(meet, 0.0, vectors[:, BOUNDS, 1] + slack),
        "normal": away / np.where(length > 0.0, length, 1.0),
        "kind": np.where(meet, Kind.OVERLAP, kinds_of(weights_a, weights_b)),
        "point_a": vectors[:, POINT_A].copy(),
        "point_b": vectors[:, POINT_B].copy(),
        "triangle_a": numbers[:, TRIANGLE_A].copy(),
        "triangle_b": numbers[:, TRIANGLE_B].copy(),
        "weights_a": weights_a,
        "weights_b": weights_b,
    }


#: Kind of contact by how many corners have weight on either side.
_KINDS = np.full((4, 4), Kind.VERTEX_FACE, np.uint8)
_KINDS[1, 1], _KINDS[1, 2], _KINDS[2, 1], _KINDS[2, 2] = (
    Kind.VERTEX_VERTEX,
    Kind.VERTEX_EDGE,
    Kind.VERTEX_EDGE,
    Kind.EDGE_EDGE,
)


def kinds_of(weights_a: np.ndarray, weights_b: np.ndarray) -> np.ndarray:
    """Which kinds of features the points with these weights are on."""
    return _KINDS[np.count_nonzero(weights_a, axis=1), np.count_nonzero(weights_b, axis=1)]
