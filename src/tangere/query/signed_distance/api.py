"""Signed distance of points to a closed mesh: negative inside.

Method: the nearest point of the surface by a descent of the tree of faces, nearer child first; inside or outside by the
        angle-weighted normal of the feature it lies on, which tells for every closed, oriented surface that does not
        pass through itself (Baerentzen and Aanaes 2005).
Error:  distances are right to 1e-12 of the scene; boxes only ever prune what is certainly farther. Coordinates above
        1e75, and meshes smaller than 1e-75, are refused: fourth powers of lengths must be numbers.
Known as: point-to-mesh distance with angle-weighted pseudonormals (Baerentzen and Aanaes 2005).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from tangere.broad_phase.deforming import MeshInStep
from tangere.broad_phase.triangles import LARGEST, checked_size
from tangere.bvh.lbvh import Frame, LinearTree, MovingBox, TreeArrays, TreeBoxes, vertex_boxes
from tangere.geometry.closest_points import face_offset, nearest_on_face
from tangere.query.dispatch import BODIES, POINTS, kind_of, refuse_unsupported
from tangere.runtime import SOUND, Arrays, InputError, as_points, choose_device, launch, using_threads
from tangere.shape.mesh import Mesh

wp.set_module_options(SOUND)

#: Nodes that can wait in a descent: one for each bit of a Morton code.
Waiting = wp.types.vector(length=64, dtype=wp.int32)
Bounds = wp.types.vector(length=64, dtype=wp.float64)
_FAR = wp.constant(wp.float64(1.0e300))
#: Nearer than this part of the mesh the way to the surface is rounding noise, and the surface tells the normal.
_ON_SURFACE = wp.constant(wp.float64(1.0e-13))
#: What rounding may do to the lower bound of a squared distance.
_ROUNDING = wp.constant(wp.float64(1.0 - 1.0e-12))


@dataclass(frozen=True, eq=False)
class SignedDistances:
    """Of n points: how far from the surface, and where on it."""

    distance: np.ndarray  #: (n,) [m], negative inside
    point: np.ndarray  #: (n, 3) nearest point of the surface [m]
    normal: np.ndarray  #: (n, 3) unit, outwards: the way the distance grows
    face: np.ndarray  #: (n,) int32
    weights: np.ndarray  #: (n, 3) of its corners

    def __len__(self) -> int:
        return len(self.distance)


def signed_distance(
    points: Arrays, mesh: Mesh, *, device: str | wp.Device | None = None, threads: int | None = None
) -> SignedDistances:
    """The signed distance of each point to a closed mesh whose triangles face outwards.

    Args:
        points: (n, 3) [m].
        device, threads: as for `proximity`.

    Example:
        >>> import tangere as tg
        >>> from tangere.query.signed_distance import signed_distance
        >>> found = signed_distance([[0, 0, 0], [0, 0, 2.0]], tg.generate.box([2, 2, 2]), device="cpu")
        >>> found.distance.tolist()
        [-1.0, 1.0]
    """
    if not isinstance(mesh, Mesh) or kind_of(points) not in (POINTS, BODIES):  # a list without numbers is told below
        refuse_unsupported("signed_distance", points, mesh)
    checked_size(mesh)
    if not (mesh.topology.is_closed and mesh.topology.is_oriented):
        raise InputError(f"Mesh {mesh.name!r}: inside and outside need a closed mesh with triangles that agree")
    device = choose_device(device, points)
    with using_threads(threads):
        x = usable_points(points, device)
        count = len(x)
        weights, nearest, normal = (wp.empty(count, dtype=wp.vec3d, device=device) for _ in range(3))
        distance = wp.empty(count, dtype=wp.float64, device=device)
        face = wp.empty(count, dtype=wp.int32, device=device)
        target = _Target.of(mesh, device)
        inputs = [x, *target.arrays]
        launch(_signed, count, inputs, [distance, nearest, normal, face, weights], device=device, grain=256)
        return SignedDistances(
            distance.numpy(),
            nearest.numpy().reshape(-1, 3),
            normal.numpy().reshape(-1, 3),
            face.numpy(),
            weights.numpy().reshape(-1, 3),
        )


def usable_points(points: Arrays, device: wp.Device) -> wp.array:
    """(n,) vec3d; a coordinate that is no number, or whose fourth power is none, is refused."""
    x = as_points(points, "points", device)
    rows = x.numpy().reshape(-1, 3)
    usable = (np.abs(rows) <= LARGEST).all(axis=1)
    if not usable.all():
        row = int(np.argmin(usable))
        reason = f"is above {LARGEST:g}" if np.isfinite(rows[row]).all() else "is not finite"
        raise InputError(f"points: row {row} {reason}")
    return x


@dataclass(frozen=True)
class _Target:
    """A mesh as the search wants it."""

    tree: LinearTree
    boxes: TreeBoxes
    frame: Frame
    positions: wp.array
    normals: tuple[wp.array, wp.array, wp.array]  #: of faces, edges and vertices
    face_edges: wp.array

    @staticmethod
    def of(mesh: Mesh, device: wp.Device) -> _Target:
        key = ("signed distance", device.alias)
        if key not in mesh.cache:
            mesh.cache[key] = _Target._built(mesh, device)
        return mesh.cache[key]

    @staticmethod
    def _built(mesh: Mesh, device: wp.Device) -> _Target:
        a, b, c = np.moveaxis(mesh.vertices[mesh.faces] - mesh.vertices[mesh.faces[0, 0]], 1, 0)
        if np.einsum("fi,fi->", a, np.cross(b, c)) < 0.0:
            raise InputError(f"Mesh {mesh.name!r}: its triangles face inwards")
        positions = as_points(mesh.vertices, f"{mesh.name}: vertices", device)
        frame = Frame.around(mesh.bounds)
        tree = MeshInStep(mesh, 0, device).faces
        topology = mesh.topology
        edge_normals = np.zeros((len(mesh.edges), 3))
        for k in range(3):
            np.add.at(edge_normals, topology.face_edges[:, k], mesh.face_normals)
        tables = (mesh.face_normals, edge_normals, mesh.vertex_normals)
        return _Target(
            tree,
            tree.fit(vertex_boxes(positions, positions, 0.0, 0.0, frame)),
            frame,
            positions,
            tuple(wp.array(table, dtype=wp.vec3d, device=device) for table in tables),
            wp.array(topology.face_edges, dtype=wp.int32, device=device),
        )

    @property
    def arrays(self) -> list:
        return [
            *(self.tree.arrays, self.boxes.nodes),
            *(wp.vec3d(*self.frame.origin), self.frame.scale, self.positions, *self.normals, self.face_edges),
        ]


@wp.func
def from_code(code: int) -> wp.float64:
    """The number a code of a `MovingBox` stands for."""
    if code < 0:
        return -wp.float64(wp.cast((-code) << 1, wp.float32))
    return wp.float64(wp.cast(code << 1, wp.float32))


@wp.func
def squared_to_box(x: wp.vec3d, box: MovingBox) -> wp.float64:
    """The squared distance of a point to the box, both in the frame of the mesh."""
    total = wp.float64(0.0)
    for k in range(3):
        beyond = wp.max(from_code(box[k]) - x[k], wp.max(x[k] + from_code(box[3 + k]), wp.float64(0.0)))
        total += beyond * beyond
    return total


@wp.kernel
def _signed(
    first: int,
    points: wp.array[wp.vec3d],
    tree: TreeArrays,
    nodes: wp.array[MovingBox],
    origin: wp.vec3d,
    scale: wp.float64,
    positions: wp.array[wp.vec3d],
    face_normals: wp.array[wp.vec3d],
    edge_normals: wp.array[wp.vec3d],
    vertex_normals: wp.array[wp.vec3d],
    face_edges: wp.array2d[int],
    distance: wp.array[wp.float64],
    nearest: wp.array[wp.vec3d],
    normal: wp.array[wp.vec3d],
    face: wp.array[int],
    weights: wp.array[wp.vec3d],
):
    q = first + wp.tid()
    p = points[q]
    local = (p - origin) * scale
    waiting = Waiting()
    bounds = Bounds()
    count = int(1)
    best = _FAR + wp.float64(0.0)
    at = int(0)
    on = wp.vec3d()
    while count > 0:
        count -= 1
        node = waiting[count]
        if bounds[count] * _ROUNDING < best * scale * scale:
            if tree.cluster[node] >= 0:
                for i in range(tree.first[node], tree.last[node] + 1):
                    a = positions[tree.items[i, 0]]
                    b = positions[tree.items[i, 1]]
                    c = positions[tree.items[i, 2]]
                    w = nearest_on_face(p, a, b, c)
                    offset = face_offset(p, a, b, c, w)
                    squared = wp.dot(offset, offset)
                    # Of equally near faces the smallest number: the answer must not depend on the tree.
                    if squared < best or (squared == best and tree.order[i] < tree.order[at]):
                        best = squared
                        at = i
                        on = w
            else:
                one = node + 1
                other = tree.skip[node + 1]
                to_one = squared_to_box(local, nodes[one])
                to_other = squared_to_box(local, nodes[other])
                if to_other < to_one:
                    kept = one
                    one = other
                    other = kept
                    swapped = to_one
                    to_one = to_other
                    to_other = swapped
                waiting[count] = other
                bounds[count] = to_other
                waiting[count + 1] = one
                bounds[count + 1] = to_one
                count += 2
    a = positions[tree.items[at, 0]]
    b = positions[tree.items[at, 1]]
    c = positions[tree.items[at, 2]]
    offset = face_offset(p, a, b, c, on)
    number = tree.order[at]
    zeros = int(0)
    corner = int(0)
    gone = int(0)
    for k in range(3):
        if on[k] == wp.float64(0.0):
            zeros += 1
            gone = k
        else:
            corner = k
    out = face_normals[number]
    if zeros == 1:
        out = edge_normals[face_edges[number, (gone + 1) % 3]]
    if zeros == 2:
        out = vertex_normals[tree.items[at, corner]]
    length = wp.length(offset)
    sign = wp.float64(1.0)
    if wp.dot(offset, out) < wp.float64(0.0):
        sign = wp.float64(-1.0)
    distance[q] = sign * length
    nearest[q] = p - offset
    if length * scale > _ON_SURFACE:
        normal[q] = offset * (sign / length)
    else:
        normal[q] = wp.normalize(out)
    face[q] = number
    weights[q] = on
