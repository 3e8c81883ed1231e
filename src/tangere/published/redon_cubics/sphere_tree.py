"""Trees of spheres over a surface whose leaves all have one radius, however large the triangles are.

Method: the surface is cut by a grid of cubes that just fit into a leaf sphere; each cube the surface passes through is
        a leaf, with lists of the faces, edges and vertices in it. Leaves are halved along their longest extent, and
        spheres are then put round them from the bottom up: round the two spheres below, or round all leaves below about
        their mean, whichever is smaller. Leaves with equal lists share a label; a node has the label of its children if
        they agree, else one of its own.
Sound:  every surface point lies in a cube, so in the leaf's sphere; its features are in that leaf's lists.
Source: Redon 2002, sections 2.5 (construction) and 2.6.4 (labels).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import warp as wp

from tangere.bvh.recession.cones import Branches
from tangere.runtime.append_buffer import collect, reserve_slots
from tangere.runtime.errors import InputError
from tangere.runtime.warp_setup import SOUND
from tangere.shape.mesh.mesh import Mesh

wp.set_module_options(SOUND)

#: Leaves a tree may have: a radius far too small for the mesh is a mistake, not a wish.
MOST_LEAVES = 4_000_000
#: Spheres and cubes are this much larger than they should be, so that rounding cannot make them too small.
ROUNDING = 1e-9
#: Cubes along one side of the grid: their three numbers share one 64-bit key.
MOST_ALONG = 1 << 20


@wp.struct
class SphereNode:
    """One sphere in the body's frame. Preorder: the left child follows its parent."""

    centre: wp.vec3d  #: [m]
    radius: wp.float64  #: [m]
    right: wp.int32  #: number of the right child; 0 at a leaf
    leaf: wp.int32  #: number of the leaf, -1 inside
    label: wp.int32  #: equal for nodes whose leaves all hold the same features


@dataclass(frozen=True, eq=False)
class SphereTree:
    """Spheres over a mesh; 2 leaves - 1 nodes. Lists: entries first[leaf] … first[leaf + 1] of `faces`, and so on."""

    leaf_radius: float  #: [m]
    nodes: wp.array  #: (2 n - 1,) `SphereNode`
    face_first: wp.array
    faces: wp.array
    edge_first: wp.array
    edges: wp.array
    vertex_first: wp.array
    vertices: wp.array

    @property
    def leaves(self) -> int:
        return (len(self.nodes) + 1) // 2

    @staticmethod
    def of(mesh: Mesh, leaf_radius: float, device: str | wp.Device = "cpu") -> SphereTree:
        """The tree of a mesh, built once for each radius and device.

        Args:
            leaf_radius: of every leaf [m]; things that are to be tested against each other should have about the same.
        """
        place = wp.get_device(device)
        key = ("sphere tree", float(leaf_radius), place.alias)
        if key not in mesh.cache:
            mesh.cache[key] = _built(mesh, float(leaf_radius), place)
        return mesh.cache[key]

    def branches(self) -> Branches:
        """The tree as recession cones are built over it."""
        records, first = self.nodes.numpy(), self.face_first.numpy()
        right = records["right"]
        leaf = right <= 0
        counts = np.zeros(len(right), np.int64)
        leaves = records["leaf"][leaf]
        counts[leaf] = np.diff(first)[leaves]
        begin = np.concatenate([[0], np.cumsum(counts)])
        places = np.repeat(first[leaves] - begin[:-1][leaf], counts[leaf]) + np.arange(begin[-1])
        return Branches(right, begin, self.faces.numpy()[places])

    def receding_kernel(self) -> wp.Kernel:
        """The kernel that asks of every sphere whether it recedes: `redon_recession.receding_nodes` asks it."""
        from tangere.published.redon_cubics.receding import receding_spheres

        return receding_spheres


def _built(mesh: Mesh, radius: float, device: wp.Device) -> SphereTree:
    if not 0.0 < radius < math.inf:
        raise InputError(f"Mesh {mesh.name!r}: the leaf radius must be positive and finite, not {radius!r}")
    side = 2.0 * radius / math.sqrt(3.0)
    size = mesh.bounds[1] - mesh.bounds[0]
    if (size > MOST_ALONG * side).any() or mesh.face_areas.sum() > MOST_LEAVES * side * side:
        raise InputError(f"Mesh {mesh.name!r}: a leaf radius of {radius:g} m takes more than {MOST_LEAVES} spheres")
    numbers = np.unique(mesh.faces)
    features = [mesh.faces, mesh.edges[:, [0, 1, 1]], np.repeat(numbers[:, None], 3, axis=1)]
    hits = [_cells(mesh, side, corners) for corners in features]
    cells = np.unique(np.concatenate([cell for _, cell in hits]))
    lists = [_listed(np.searchsorted(cells, cell), feature, len(cells)) for feature, cell in hits]
    lists[2] = (lists[2][0], numbers[lists[2][1]].astype(np.int32))

    index = np.stack([cells >> 42, (cells >> 21) & (2 * MOST_ALONG - 1), cells & (2 * MOST_ALONG - 1)], axis=1)
    centres = mesh.bounds[0] + (index + 0.5) * side
    nodes = _nodes(centres, radius * (1.0 + ROUNDING), _labels(lists))

    def on_device(array: np.ndarray) -> wp.array:
        return wp.array(array, dtype=wp.int32, device=device)

    return SphereTree(
        radius,
        wp.array(nodes, dtype=SphereNode, device=device),
        *(on_device(column) for pair in lists for column in pair),
    )


# -- leaves -----------------------------------------------------------------------------------------------------------


def _cells(mesh: Mesh, side: float, corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which feature passes through which cube: numbers of the features, keys of the cubes."""
    cpu = wp.get_device("cpu")
    pairs = collect(
        _pass_through,
        len(corners),
        [
            wp.array(np.ascontiguousarray(corners), dtype=wp.vec3i, device=cpu),
            wp.array(mesh.vertices, dtype=wp.vec3d, device=cpu),
            wp.vec3d(*mesh.bounds[0]),
            wp.float64(side),
            wp.float64(0.5 * side * (1.0 + ROUNDING) + 1e-14 * float(np.abs(mesh.bounds).max())),
        ],
        wp.vec4i,
        device=cpu,
    ).numpy()
    place = pairs[:, 1:].astype(np.int64)
    return pairs[:, 0], (place[:, 0] << 42) | (place[:, 1] << 21) | place[:, 2]


@wp.kernel
def _pass_through(
    first: int,
    shard: int,
    corners: wp.array[wp.vec3i],
    vertices: wp.array[wp.vec3d],
    origin: wp.vec3d,
    side: wp.float64,
    half: wp.float64,
    counts: wp.array[wp.int64],
    capacity: int,
    out: wp.array[wp.vec4i],
):
    i = first + wp.tid()
    a = vertices[corners[i][0]] - origin
    b = vertices[corners[i][1]] - origin
    c = vertices[corners[i][2]] - origin
    low = wp.min(wp.min(a, b), c) / side
    high = wp.max(wp.max(a, b), c) / side
    slack = half / side - wp.float64(0.5)
    for x in range(wp.max(0, wp.int32(wp.floor(low[0] - slack))), wp.int32(wp.floor(high[0] + slack)) + 1):
        for y in range(wp.max(0, wp.int32(wp.floor(low[1] - slack))), wp.int32(wp.floor(high[1] + slack)) + 1):
            for z in range(wp.max(0, wp.int32(wp.floor(low[2] - slack))), wp.int32(wp.floor(high[2] + slack)) + 1):
                middle = (wp.vec3d(wp.float64(x), wp.float64(y), wp.float64(z)) + wp.vec3d(wp.float64(0.5))) * side
                if _triangle_meets_cube(a - middle, b - middle, c - middle, half):
                    slot = reserve_slots(counts, shard, 1, capacity)
                    if slot >= 0:
                        out[slot] = wp.vec4i(i, x, y, z)


@wp.func
def _triangle_meets_cube(a: wp.vec3d, b: wp.vec3d, c: wp.vec3d, half: wp.float64) -> bool:
    """Whether no axis separates the triangle, which may be a segment or a point, from the cube about the origin."""
    for k in range(3):
        if wp.min(wp.min(a[k], b[k]), c[k]) > half or wp.max(wp.max(a[k], b[k]), c[k]) < -half:
            return False
    if _separates(wp.cross(b - a, c - a), a, b, c, half):
        return False
    for k in range(3):
        axis = wp.vec3d()
        axis[k] = wp.float64(1.0)
        if (
            _separates(wp.cross(axis, b - a), a, b, c, half)
            or _separates(wp.cross(axis, c - b), a, b, c, half)
            or _separates(wp.cross(axis, a - c), a, b, c, half)
        ):
            return False
    return True


@wp.func
def _separates(axis: wp.vec3d, a: wp.vec3d, b: wp.vec3d, c: wp.vec3d, half: wp.float64) -> bool:
    reach = half * (wp.abs(axis[0]) + wp.abs(axis[1]) + wp.abs(axis[2]))
    x = wp.dot(axis, a)
    y = wp.dot(axis, b)
    z = wp.dot(axis, c)
    return wp.min(wp.min(x, y), z) > reach or wp.max(wp.max(x, y), z) < -reach


def _listed(leaf: np.ndarray, feature: np.ndarray, leaves: int) -> tuple[np.ndarray, np.ndarray]:
    """First entry of each leaf (leaves + 1,), and the entries, ascending within a leaf."""
    order = np.lexsort((feature, leaf))
    first = np.concatenate([[0], np.cumsum(np.bincount(leaf, minlength=leaves))])
    return first.astype(np.int32), feature[order].astype(np.int32)


def _labels(lists: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """(leaves,) a number for each leaf, equal where all three lists are equal."""
    counts = np.stack([np.diff(first) for first, _ in lists], axis=1)
    labels, used = np.empty(len(counts), np.int64), 0
    for shape in np.unique(counts, axis=0):
        rows = np.flatnonzero((counts == shape).all(axis=1))
        content = [
            entries[first[rows][:, None] + np.arange(n)] for (first, entries), n in zip(lists, shape, strict=True)
        ]
        _, group = np.unique(np.concatenate(content, axis=1), axis=0, return_inverse=True)
        labels[rows] = used + group.ravel()
        used += int(group.max()) + 1
    return labels


# -- the tree above them ----------------------------------------------------------------------------------------------


def _nodes(centres: np.ndarray, radius: float, labels: np.ndarray) -> np.ndarray:
    """The nodes in preorder, as an array of `SphereNode`: halved from the top, spheres from the bottom."""
    count = len(centres)
    nodes = np.zeros(2 * count - 1, SphereNode.numpy_dtype())
    nodes["leaf"] = -1
    order = np.arange(count)
    levels = [(np.zeros(1, int), np.zeros(1, int), np.full(1, count))]  # node, its first leaf in order, how many
    while (levels[-1][2] > 1).any():
        node, first, many = (column[levels[-1][2] > 1] for column in levels[-1])
        levels[-1] = (node, first, many)
        _sort_halves(order, centres, first, many)
        left = (many + 1) // 2
        nodes["right"][node] = node + 2 * left
        children = zip((node + 1, node + 2 * left), (first, first + left), (left, many - left), strict=True)
        node, first, many = (np.concatenate(column) for column in zip(*children, strict=True))
        single = many == 1
        nodes["leaf"][node[single]] = order[first[single]]
        levels.append((node, first, many))
    if count == 1:
        nodes["leaf"] = 0
    leaf = nodes["leaf"]
    nodes["centre"], nodes["radius"], nodes["label"] = centres[leaf], radius, labels[leaf]
    for node, first, many in reversed(levels):
        inner = nodes["leaf"][node] < 0
        if inner.any():
            _enclose(nodes, node[inner], centres[order], first[inner], many[inner], radius, int(labels.max()) + 1)
    return nodes


def _sort_halves(order: np.ndarray, centres: np.ndarray, first: np.ndarray, many: np.ndarray) -> None:
    """Sort each range of `order` along the longest extent of its centres, in place."""
    begin = np.concatenate([[0], np.cumsum(many)[:-1]])
    group = np.repeat(np.arange(len(many)), many)
    place = np.arange(len(group)) - begin[group] + first[group]
    points = centres[order[place]]
    extent = np.maximum.reduceat(points, begin) - np.minimum.reduceat(points, begin)
    along = points[np.arange(len(points)), extent.argmax(axis=1)[group]]
    order[place] = order[place][np.lexsort((along, group))]


def _enclose(
    nodes: np.ndarray, node: np.ndarray, sorted_centres: np.ndarray, first: np.ndarray, many: np.ndarray,
    radius: float, fresh: int,
) -> None:  # fmt: skip
    """Fill in the spheres and labels of nodes whose children are done."""
    left, right = nodes[node + 1], nodes[nodes["right"][node]]
    way = right["centre"] - left["centre"]
    distance = np.linalg.norm(way, axis=1)
    both = 0.5 * (distance + left["radius"] + right["radius"])
    inside = both <= np.maximum(left["radius"], right["radius"])  # one child's sphere holds the other's
    larger = np.where((left["radius"] >= right["radius"])[:, None], left["centre"], right["centre"])
    share = np.divide(both - left["radius"], distance, out=np.zeros_like(both), where=distance > 0.0)
    centre = np.where(inside[:, None], larger, left["centre"] + share[:, None] * way)
    both = np.maximum(both, np.maximum(left["radius"], right["radius"]))

    begin = np.concatenate([[0], np.cumsum(many)[:-1]])
    group = np.repeat(np.arange(len(many)), many)
    points = sorted_centres[np.arange(len(group)) - begin[group] + first[group]]
    mean = np.add.reduceat(points, begin) / many[:, None]
    about = np.maximum.reduceat(np.linalg.norm(points - mean[group], axis=1), begin) + radius
    nodes["centre"][node] = np.where((about < both)[:, None], mean, centre)
    nodes["radius"][node] = np.minimum(about, both) * (1.0 + ROUNDING)
    nodes["label"][node] = np.where(left["label"] == right["label"], left["label"], fresh + node)
