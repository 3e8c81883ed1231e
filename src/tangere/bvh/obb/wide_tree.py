"""OBB trees of four children a node, for CPUs: a box is compared with four at once.

Method:   levels of the binary tree are left out: of a node's children the largest are replaced by theirs until there
          are four. The four boxes lie number by number beside each other (SIMD lanes), as float32 of the same values.
          A box is named by its place: 4 node + lane. Node 0 has one child, the root.
Sound:    the boxes are those of the binary tree.
Known as: wide BVH, structure of arrays (Wald, Benthin and Boulos 2008; Ernst and Greiner 2008).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from tangere.bvh.obb.node import ObbNode
from tangere.bvh.obb.tree import ObbTree
from tangere.runtime import SOUND, launch
from tangere.shape.mesh import Mesh

wp.set_module_options(SOUND)

#: Boxes of a node.
LANES = 4
#: Numbers of a box: centre 3, half sizes 3, axes 9 (component by component, as `ObbNode.axes`), radius.
NUMBERS = 16
#: In the place of a child that is not there.
NO_CHILD = wp.constant(2**31 - 1)

_LANES = wp.constant(LANES)
_NUMBERS = wp.constant(NUMBERS)


@dataclass(frozen=True, eq=False)
class WideObbTree:
    """The boxes of a mesh in its own frame, four in each of n nodes; on the CPU."""

    rows: wp.array  #: (16 n, 4) as one row of float32
    children: wp.array  #: (4 n,) int32: the node below, -1 - triangle for a leaf, `NO_CHILD` where there is none
    nodes: wp.array  #: (4 n,) int32: the node of the binary tree that each place holds
    depth: int  #: places on the longest way down, less one

    def __len__(self) -> int:
        return len(self.children) // LANES

    @staticmethod
    def of(mesh: Mesh) -> WideObbTree:
        """The tree of `mesh`, made when it is first asked for and kept in `mesh.cache`."""
        tree = mesh.cache.get(WideObbTree)
        if tree is None:
            tree = mesh.cache[WideObbTree] = WideObbTree.widened(ObbTree.of(mesh, "cpu"))
        return tree

    @staticmethod
    def widened(tree: ObbTree) -> WideObbTree:
        """The wide tree of a binary one on the CPU."""
        cpu = wp.get_device("cpu")
        most = len(tree.nodes) // 2 + 2  # a node for every one above the leaves, and the first
        rows = wp.zeros(most * NUMBERS * LANES, dtype=wp.float32, device=cpu)
        children = wp.full(most * LANES, NO_CHILD, dtype=wp.int32, device=cpu)
        nodes = wp.zeros(most * LANES, dtype=wp.int32, device=cpu)
        order, depths = (wp.zeros(most, dtype=wp.int32, device=cpu) for _ in range(2))
        count = wp.zeros(1, dtype=wp.int32, device=cpu)
        launch(_widen, 1, [tree.nodes, order, depths], [rows, children, nodes, count], device=cpu)
        used = int(count.numpy()[0])
        depth = int(np.max(depths.numpy()[:used])) + 1
        return WideObbTree(
            rows[: used * NUMBERS * LANES], children[: used * LANES], nodes[: used * LANES], depth
        )  # a copy would cost as much as the few numbers that are not used


@wp.func
def write_box(rows: wp.array[wp.float32], nodes: wp.array[int], place: int, node: ObbNode, number: int):
    """Put a box into its place."""
    base = (place / _LANES) * (_NUMBERS * _LANES) + place % _LANES
    for i in range(3):
        rows[base + i * _LANES] = node.centre[i]
        rows[base + (3 + i) * _LANES] = node.half[i]
        for j in range(3):
            rows[base + (6 + 3 * i + j) * _LANES] = node.axes[i, j]
    rows[base + 15 * _LANES] = node.radius
    nodes[place] = number


@wp.kernel
def _widen(
    first: int,
    tree: wp.array[ObbNode],
    order: wp.array[int],
    depths: wp.array[int],
    rows: wp.array[wp.float32],
    children: wp.array[int],
    nodes: wp.array[int],
    count: wp.array[int],
):
    """All nodes, level by level; `order`: the binary node each comes from."""
    write_box(rows, nodes, 0, tree[0], 0)
    used = int(1)
    children[0] = -1 - tree[0].triangle
    if tree[0].right >= 0:
        children[0] = 1
        order[1] = 0
        depths[1] = 1
        used = 2
    at = int(1)
    while at < used:
        base = at * _LANES
        opened = order[at]
        nodes[base] = opened + 1
        nodes[base + 1] = tree[opened].right
        many = int(2)
        going = bool(True)
        while going and many < _LANES:
            largest = int(-1)
            radius = wp.float32(-1.0)
            for k in range(many):
                node = nodes[base + k]
                if tree[node].right >= 0 and tree[node].radius > radius:
                    largest = base + k
                    radius = tree[node].radius
            going = largest >= 0
            if going:
                node = nodes[largest]
                nodes[largest] = node + 1
                nodes[base + many] = tree[node].right
                many += 1
        for k in range(many):
            node = nodes[base + k]
            write_box(rows, nodes, base + k, tree[node], node)
            children[base + k] = -1 - tree[node].triangle
            if tree[node].right >= 0:
                children[base + k] = used
                order[used] = node
                depths[used] = depths[at] + 1
                used += 1
        at += 1
    count[0] = used
