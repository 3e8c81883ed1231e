"""May cones be used at all? Only if every surface of each body lies outside of the other body at the start.

A part that moves against its normal moves away from what is outside, and *towards* what is inside: a robot in a closed
room is no case for the cones of the room. Redon 2002, section 4.2, takes it for granted.
Method: a surface that does not meet the other body is outside of it, or inside, as a whole; so one vertex of each
        connected surface is asked. A ray from it crosses the other mesh outwards as often as inwards if it is outside.
Sound:  crossings are counted only where rounding cannot matter. Where it can, another vertex and another direction are
        tried, and if none will do the answer is no, which costs time and nothing else.
Known as: point-in-polyhedron and intersection tests before back-face culling.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import warp as wp

from tangere.bvh.obb.build import DEPTH_LIMIT
from tangere.bvh.obb.node import ObbNode, box_axes, box_centre, box_half
from tangere.bvh.recession.cones import RecessionCones, surface_labels
from tangere.motion import RigidMotion, RigidPose, pose_at
from tangere.runtime import SOUND, PreparedLaunch, device_of, load
from tangere.shape.mesh import Mesh

wp.set_module_options(SOUND)

#: Vertices kept of every connected surface, and directions: so many attempts are made.
ATTEMPTS = wp.constant(8)
_DIRECTIONS = np.random.default_rng(1).normal(size=(int(ATTEMPTS), 3))
_DIRECTIONS /= np.linalg.norm(_DIRECTIONS, axis=1, keepdims=True)

#: Positions are exact to this part of the sizes of both bodies: 64 roundings.
_ROUNDING = wp.constant(wp.float64(64.0 * 2.0**-53))
#: Rounding errors of a determinant of differences, in those of its entries.
_DETERMINANT = wp.constant(wp.float64(16.0))
_ZERO = wp.constant(wp.float64(0.0))
_HALF = wp.constant(wp.float64(0.5))
_UNSURE = wp.constant(-(1 << 30))

Waiting = wp.types.vector(length=DEPTH_LIMIT + 2, dtype=wp.int32)


@wp.struct
class StartQuery:
    """Two bodies of many: where their nodes, triangles, motions and vertices to ask about begin."""

    node_a: wp.int32
    node_b: wp.int32
    triangle_a: wp.int32
    triangle_b: wp.int32
    motion_a: wp.int32
    motion_b: wp.int32
    first_a: wp.int32  #: vertices of a to ask b about
    last_a: wp.int32
    first_b: wp.int32
    last_b: wp.int32


@dataclass(frozen=True, eq=False)
class Vertices:
    """Vertices of every connected surface of some meshes, `ATTEMPTS` of each, and whose cones cull at all."""

    points: wp.array  #: (m,) vec3d, in the frames of the bodies
    first: np.ndarray  #: (meshes + 1,) where those of each mesh begin
    culls: np.ndarray  #: (meshes,) bool: the cones of the others are empty, and nothing is lost inside of them

    @staticmethod
    def of(meshes: tuple[Mesh, ...], cones: list[RecessionCones], device: wp.Device) -> Vertices:
        """Of meshes with their cones."""
        each = [_asked_about(mesh) for mesh in meshes]
        return Vertices(
            wp.array(np.concatenate(each), dtype=wp.vec3d, device=device),
            np.cumsum([0] + [len(points) for points in each], dtype=np.int32),
            np.array([len(known.vectors) > 0 for known in cones]),
        )


class StartSide(NamedTuple):
    """The first or the second bodies of n pairs."""

    nodes: wp.array  #: of trees, one after the other
    corners: wp.array
    vertices: Vertices


class StartCheck:
    """Whether cones may be used, for each of `count` pairs of bodies; asking again costs little.

    Args:
        a, b: whose bodies they are.
        motions: `RigidMotion` records; what is in the array when it is asked counts.
    """

    def __init__(self, a: StartSide, b: StartSide, motions: wp.array, count: int) -> None:
        device = motions.device
        self._sides = ("a", a.vertices, b.vertices), ("b", b.vertices, a.vertices)
        self._queries = wp.zeros(count, dtype=StartQuery, device=device)
        self._outside = wp.empty(count, dtype=wp.bool, device=device)
        self._host_queries = self._queries.numpy()
        inputs = [
            self._queries,
            motions,
            *(array for side in (a, b) for array in (side.nodes, side.corners, side.vertices.points)),
            wp.array(_DIRECTIONS, dtype=wp.vec3d, device=device),
        ]
        load(_outside, device)
        self._launch = PreparedLaunch(_outside, [*inputs, self._outside], device)

    def outside(self, columns: Mapping[str, Any] | np.ndarray, shapes: Sequence[Any] = (0, 0)) -> np.ndarray:
        """(count,) bool, valid until it is asked again.

        Args:
            columns: node_a … motion_b of `StartQuery`.
            shapes: which of the meshes of its side each body a, and each body b, is.
        """
        queries = self._host_queries
        for name in ("node_a", "node_b", "triangle_a", "triangle_b", "motion_a", "motion_b"):
            queries[name] = columns[name]
        for (name, vertices, others), shape, other in zip(self._sides, shapes, reversed(shapes), strict=True):
            begin, end = vertices.first[:-1][shape], vertices.first[1:][shape]
            queries[f"first_{name}"], queries[f"last_{name}"] = begin, np.where(others.culls[other], end, begin)
        if device_of(self._queries).is_cuda:
            self._queries.assign(queries)
        self._launch.launch(len(queries), 0)
        return self._outside.numpy()


def _asked_about(mesh: Mesh) -> np.ndarray:
    """(surfaces * ATTEMPTS, 3) vertices spread over each connected surface."""
    key = "vertices of surfaces"
    if key not in mesh.cache:
        label = surface_labels(mesh)
        order = np.argsort(label, kind="stable")
        first = np.searchsorted(label[order], np.arange(label.max() + 2))
        size = np.diff(first)
        steps = np.arange(int(ATTEMPTS))
        chosen = order[first[:-1, None] + steps * size[:, None] // int(ATTEMPTS)]
        mesh.cache[key] = mesh.vertices[mesh.faces[chosen, steps % 3]].reshape(-1, 3)
    return mesh.cache[key]


@wp.func
def meets_box(node: ObbNode, start: wp.vec3d, way: wp.vec3d, slack: wp.float64) -> bool:
    """Whether a segment may meet a box: by its nine axes, along which both are projected."""
    axes = wp.transpose(box_axes(node))
    half = box_half(node) + wp.vec3d(slack, slack, slack)
    reach = _HALF * (axes * way)
    middle = axes * (start - box_centre(node)) + reach
    turned = wp.cross(reach, middle)
    reach = wp.abs(reach)
    far = bool(False)
    for k in range(3):
        i = (k + 1) % 3
        j = (k + 2) % 3
        far = far or wp.abs(middle[k]) > half[k] + reach[k]
        far = far or wp.abs(turned[k]) > (half[i] + slack) * (reach[j] + slack) + (half[j] + slack) * (reach[i] + slack)
    return not far


@wp.func
def crossing(x: wp.vec3d, y: wp.vec3d, z: wp.vec3d, along: wp.vec3d, slack: wp.float64) -> int:
    """How a ray from the origin crosses a triangle: 1 outwards, -1 inwards, 0 not at all, or _UNSURE."""
    result = int(0)
    length = wp.max(wp.max(wp.length(x), wp.length(y)), wp.length(z))
    ahead = wp.max(wp.max(wp.dot(along, x), wp.dot(along, y)), wp.dot(along, z))
    if ahead >= -slack:
        least = _DETERMINANT * slack * length
        u = wp.dot(along, wp.cross(x, y))
        v = wp.dot(along, wp.cross(y, z))
        w = wp.dot(along, wp.cross(z, x))
        low = wp.min(wp.min(u, v), w)
        high = wp.max(wp.max(u, v), w)
        if not (low < -least and high > least):
            height = wp.dot(wp.cross(y - x, z - x), x)
            if low > least and wp.abs(height) > least * length:
                result = wp.where(height > _ZERO, 1, 0)
            elif high < -least and wp.abs(height) > least * length:
                result = wp.where(height < _ZERO, -1, 0)
            else:
                result = _UNSURE
    return result


@wp.func
def crossings(
    nodes: wp.array[ObbNode],
    root: int,
    corners: wp.array[wp.vec3d],
    triangle: int,
    p: wp.vec3d,
    along: wp.vec3d,
    slack: wp.float64,
) -> int:
    """How often a ray leaves a body less how often it enters it, or some negative number far below if it is unsure."""
    way = along * (wp.length(p - box_centre(nodes[root])) + wp.float64(2.0) * wp.float64(nodes[root].radius))
    waiting = Waiting()
    count = int(1)
    total = int(0)
    while count > 0:
        count -= 1
        i = waiting[count]
        node = nodes[root + i]
        if meets_box(node, p, way, slack):
            if node.right < 0:
                k = 3 * (triangle + node.triangle)
                found = crossing(corners[k] - p, corners[k + 1] - p, corners[k + 2] - p, along, slack)
                total += found
                if found == _UNSURE:
                    count = 0
            else:
                waiting[count] = node.right
                waiting[count + 1] = i + 1
                count += 2
    return total


@wp.func
def all_outside(
    nodes: wp.array[ObbNode],
    root: int,
    corners: wp.array[wp.vec3d],
    triangle: int,
    body: RigidPose,
    vertices: wp.array[wp.vec3d],
    first: int,
    last: int,
    other: RigidPose,
    directions: wp.array[wp.vec3d],
    slack: wp.float64,
) -> bool:
    """Whether all surfaces of the other body that vertices first … last - 1 are of are certainly outside of a body."""
    back = wp.transpose(body.rotation)
    outside = bool(True)
    surface = int(first)
    while outside and surface < last:
        total = int(_UNSURE)
        k = int(0)
        while k < ATTEMPTS and total <= _UNSURE / 2:
            p = back * (other.rotation * vertices[surface + k] + other.translation - body.translation)
            total = int(0)
            if meets_box(nodes[root], p, wp.vec3d(), slack):
                total = crossings(nodes, root, corners, triangle, p, directions[k], slack)
            k += 1
        outside = total == 0
        surface += ATTEMPTS
    return outside


@wp.kernel
def _outside(
    first: int,
    queries: wp.array[StartQuery],
    motions: wp.array[RigidMotion],
    nodes_a: wp.array[ObbNode],
    corners_a: wp.array[wp.vec3d],
    vertices_a: wp.array[wp.vec3d],
    nodes_b: wp.array[ObbNode],
    corners_b: wp.array[wp.vec3d],
    vertices_b: wp.array[wp.vec3d],
    directions: wp.array[wp.vec3d],
    outside: wp.array[wp.bool],
):
    i = first + wp.tid()
    q = queries[i]
    a = pose_at(motions[q.motion_a], _ZERO)
    b = pose_at(motions[q.motion_b], _ZERO)
    box_a = nodes_a[q.node_a]
    box_b = nodes_b[q.node_b]
    size = wp.length(a.translation) + wp.length(box_centre(box_a)) + wp.float64(box_a.radius)
    size += wp.length(b.translation) + wp.length(box_centre(box_b)) + wp.float64(box_b.radius)
    slack = _ROUNDING * size
    outside[i] = all_outside(
        nodes_a, q.node_a, corners_a, q.triangle_a, a, vertices_b, q.first_b, q.last_b, b, directions, slack
    ) and all_outside(
        nodes_b, q.node_b, corners_b, q.triangle_b, b, vertices_a, q.first_a, q.last_a, a, directions, slack
    )
