"""Which triangles and which nodes of a tree recede: the tests of the thesis, one by one, to look at what they say.

Question: which parts of a moving body move away from what is outside, at an instant or during a part of a step?
Method:   the elementary test asks the corners of a triangle, the hierarchical one the box or ball of a node
          (`tangere.bvh.recession.culling`; Redon 2002, sections 4.2 and 4.3). Searches ask it inside their traversal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.bvh.obb.node import ObbNode
from tangere.bvh.obb.tree import ObbTree
from tangere.bvh.recession.cones import POINTER_BYTES, VECTOR_BYTES, RecessionCones
from tangere.bvh.recession.culling import MARGIN, VelocityField, box_recedes, field_at, field_drift
from tangere.motion import Rest, Rigid, RigidMotion
from tangere.runtime import SOUND, launch
from tangere.shape.mesh import Mesh

wp.set_module_options(SOUND)

_ZERO = wp.constant(wp.float64(0.0))


def receding_triangles(mesh: Mesh, motion: Rigid, other: Rigid | None = None, *, time: float = 0.0) -> np.ndarray:
    """Which triangles of a moving body recede from another at one instant: (m,) bool; the elementary test.

    Args:
        mesh: closed and facing outwards.
        motion, other: of the body and of the other one; None rests.
    """
    device = wp.get_device("cpu")
    corners = wp.array(mesh.vertices[mesh.faces.ravel()], dtype=wp.vec3d, device=device)
    normals = wp.array(mesh.face_normals, dtype=wp.vec3d, device=device)
    receding = wp.empty(len(mesh.faces), dtype=wp.bool, device=device)
    inputs = [corners, normals, *_motions(motion, other, device), time]
    launch(_triangles, len(mesh.faces), inputs, [receding], device=device)
    return receding.numpy()


def receding_nodes(
    tree: Any,
    cones: RecessionCones,
    motion: Rigid,
    other: Rigid | None = None,
    *,
    begin: float = 0.0,
    end: float | None = None,
    reach: float = np.inf,
) -> np.ndarray:
    """Which nodes of the tree of a moving body recede from another body: (N,) bool; the hierarchical test.

    Args:
        tree: an `ObbTree`, or what has nodes and tells its `receding_kernel()`.
        motion, other: of the body and of the other one, one motion each; None rests.
        begin, end: the part of the step, in [0, 1]; end None means the instant `begin`.
        reach: largest distance of a point of the body from the pivots of both motions at any time [m]; only needed
            where the other body moves as well.
    """
    device = wp.get_device("cpu")
    receding = wp.empty(len(tree.nodes), dtype=wp.bool, device=device)
    motions = _motions(motion, other, device)
    span = 0.0 if end is None else end - begin
    inputs = [tree.nodes, cones.first, cones.vectors, *motions, begin, span, min(reach, 1e150)]
    kernel = _boxes if isinstance(tree, ObbTree) else tree.receding_kernel()
    launch(kernel, len(tree.nodes), inputs, [receding], device=device)
    return receding.numpy()


def _motions(motion: Rigid, other: Rigid | None, device: wp.Device) -> list[wp.array]:
    both = (motion, Rest() if other is None else other)
    return [wp.array(m.records(), dtype=RigidMotion, device=device) for m in both]


def memory_model(sizes: np.ndarray, *, vector: int = VECTOR_BYTES, cone: int = 0, pointer: int = POINTER_BYTES) -> int:
    """Bytes of cones of the given sizes (4.14): vectors, what a cone costs besides, and a pointer for every node.

    The thesis stores integers and characteristic points with each cone; corners of boxes need not be stored.
    """
    return int(vector * sizes.sum() + cone * np.count_nonzero(sizes) + pointer * len(sizes))


@wp.func
def point_recedes(p: wp.vec3d, normal: wp.vec3d, field: VelocityField) -> bool:
    velocity = field.linear + wp.cross(field.angular, p)
    speed = wp.length(field.linear) + wp.length(field.angular) * wp.length(p)
    return wp.dot(velocity, normal) < -MARGIN * speed


@wp.func
def triangle_recedes(a: wp.vec3d, b: wp.vec3d, c: wp.vec3d, normal: wp.vec3d, field: VelocityField) -> bool:
    """The elementary test: all three corners, so all points, move against the normal; never without a normal."""
    return point_recedes(a, normal, field) and point_recedes(b, normal, field) and point_recedes(c, normal, field)


@wp.func
def ball_recedes(
    centre: wp.vec3d,
    radius: wp.float64,
    first: int,
    last: int,
    vectors: wp.array[wp.vec3d],
    field: VelocityField,
    change: wp.float64,
) -> bool:
    """Whether a ball moves against all recession vectors first … last - 1; see `box_recedes`."""
    if last <= first:
        return False
    velocity = field.linear + wp.cross(field.angular, centre)
    far = wp.length(centre) + radius
    allowed = -change - MARGIN * (wp.length(field.linear) + wp.length(field.angular) * far)
    for i in range(first, last):
        n = vectors[i]
        if not (wp.dot(velocity, n) + radius * wp.length(wp.cross(n, field.angular)) < allowed):
            return False
    return True


@wp.func
def change_over(motion: RigidMotion, other: RigidMotion, span: wp.float64, reach: wp.float64) -> wp.float64:
    change = _ZERO + wp.float64(0.0)
    if span > _ZERO:
        change = span * field_drift(motion, other, reach)
    return change


@wp.kernel
def _triangles(
    first: int,
    corners: wp.array[wp.vec3d],
    normals: wp.array[wp.vec3d],
    motion: wp.array[RigidMotion],
    other: wp.array[RigidMotion],
    time: wp.float64,
    receding: wp.array[wp.bool],
):
    i = first + wp.tid()
    field = field_at(motion[0], other[0], time)
    receding[i] = triangle_recedes(corners[3 * i], corners[3 * i + 1], corners[3 * i + 2], normals[i], field)


@wp.kernel
def _boxes(
    first: int,
    nodes: wp.array[ObbNode],
    cone_first: wp.array[int],
    vectors: wp.array[wp.vec3d],
    motion: wp.array[RigidMotion],
    other: wp.array[RigidMotion],
    begin: wp.float64,
    span: wp.float64,
    reach: wp.float64,
    receding: wp.array[wp.bool],
):
    i = first + wp.tid()
    field = field_at(motion[0], other[0], begin)
    change = change_over(motion[0], other[0], span, reach)
    receding[i] = box_recedes(nodes[i], cone_first[i], cone_first[i + 1], vectors, field, change)
