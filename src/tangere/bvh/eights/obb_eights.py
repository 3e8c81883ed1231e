"""Oriented boxes in eights: an OBB tree whose nodes hold eight boxes side by side, for the vector unit of CPUs.

Method: a node of eight has the boxes that are left when, beginning with the two children of a node, the largest box
        that has children is replaced by them until there are eight. Boxes are those of the tree, to the bit.
Known as: a wide BVH by collapsing a binary one (Dammertz et al. 2008; Wald et al. 2008).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from tangere.bvh.obb import ObbNode, ObbTree
from tangere.runtime import SOUND, launch
from tangere.shape.mesh import Mesh

wp.set_module_options(SOUND)

#: Rows of eight numbers in a node: centres, half sizes, axes, radii, and what each box opens into.
ROWS_OF_NODE, RADIUS, OPENS = 17, 15, 16
LANES = 8
#: The half size of a box that is none: it is apart from everything.
_NONE = -1.0e30

_LANES = wp.constant(LANES)
_NUMBERS = wp.constant(LANES * ROWS_OF_NODE)
_ROWS_OF_NODE = wp.constant(ROWS_OF_NODE)
_OPENS = wp.constant(OPENS)
_RADIUS = wp.constant(RADIUS)
_NO_SIZE = wp.constant(wp.float32(_NONE))
_Eight = wp.types.vector(length=LANES, dtype=wp.int32)


@wp.struct
class EightTables:
    """The eights of all shapes, one after the other; a shape begins with a node that holds its root alone."""

    rows: wp.array[wp.float32]  # 17 rows of 8 for each node; the last are int32: a node, or -1 - triangle
    first: wp.array[wp.int32]  # the first node of each shape


@dataclass(frozen=True, eq=False)
class ObbEights:
    """The eights of one tree, on the CPU; node 0 holds the root alone."""

    rows: wp.array  #: (k, 17, 8) float32 in one row; the last of a node are int32: a node, or -1 - triangle

    @staticmethod
    def of(mesh: Mesh) -> ObbEights:
        """The eights of a mesh's tree, made when first asked for and kept in `mesh.cache`."""
        eights = mesh.cache.get(ObbEights)
        if eights is None:
            eights = mesh.cache[ObbEights] = ObbEights.collapsed(ObbTree.of(mesh, "cpu"))
        return eights

    @staticmethod
    def collapsed(tree: ObbTree) -> ObbEights:
        """The eights of a binary tree on the CPU."""
        cpu = wp.get_device("cpu")
        most = len(tree.nodes) // 2 + 2  # a node for every one above the leaves, and the first
        rows = wp.empty(most * ROWS_OF_NODE * LANES, dtype=wp.float32, device=cpu)
        order, count = (wp.zeros(n, dtype=wp.int32, device=cpu) for n in (most, 1))
        launch(_collapse, 1, [tree.nodes, order], [rows, count], device=cpu)
        return ObbEights(rows[: int(count.numpy()[0]) * ROWS_OF_NODE * LANES])  # memory beyond is never touched

    def nodes(self) -> np.ndarray:
        """(k, 17, 8) the rows of each node."""
        return self.rows.numpy().reshape(-1, ROWS_OF_NODE, LANES)


def eight_tables(meshes: Sequence[Mesh]) -> Any:
    """`EightTables` of distinct meshes, in order."""
    each = [ObbEights.of(mesh).nodes() for mesh in meshes]
    first = np.cumsum([0] + [len(rows) for rows in each[:-1]]).astype(np.int32)
    joined = np.concatenate(each)
    opens, number = joined[:, OPENS].view(np.int32), np.repeat(first, [len(rows) for rows in each])
    opens[:] = np.where(opens < 0, opens, opens + number[:, None])
    tables: Any = EightTables()
    tables.rows = wp.array(joined.ravel(), dtype=wp.float32, device="cpu")
    tables.first = wp.array(first, dtype=wp.int32, device="cpu")
    return tables


@wp.func
def _write_box(rows: wp.array[wp.float32], base: int, node: ObbNode, opens: int):
    """Put a box into its lane, whose first number is at `base`."""
    for i in range(3):
        rows[base + i * _LANES] = node.centre[i]
        rows[base + (3 + i) * _LANES] = node.half[i]
        for k in range(3):
            rows[base + (6 + 3 * k + i) * _LANES] = node.axes[i, k]
    rows[base + _RADIUS * _LANES] = node.radius
    rows[base + _OPENS * _LANES] = wp.cast(opens, wp.float32)


@wp.func
def _write_none(rows: wp.array[wp.float32], base: int):
    """A lane without a box."""
    for k in range(_ROWS_OF_NODE):
        rows[base + k * _LANES] = wp.float32(0.0)
    for i in range(3):
        rows[base + (3 + i) * _LANES] = _NO_SIZE


@wp.kernel
def _collapse(
    first: int,
    tree: wp.array[ObbNode],
    order: wp.array[int],
    rows: wp.array[wp.float32],
    count: wp.array[int],
):
    """All nodes, level by level; `order`: the binary node each comes from."""
    for k in range(1, _LANES):
        _write_none(rows, k)
    used = int(1)
    opens = -1 - tree[0].triangle
    if tree[0].right >= 0:
        opens = 1
        used = 2
    _write_box(rows, 0, tree[0], opens)
    at = int(1)
    while at < used:
        lanes = _Eight()
        lanes[0] = order[at] + 1
        lanes[1] = tree[order[at]].right
        many = int(2)
        going = bool(True)
        while going and many < _LANES:
            largest = int(-1)
            radius = wp.float32(-1.0)
            for k in range(many):
                node = lanes[k]
                if tree[node].right >= 0 and tree[node].radius > radius:
                    largest = k
                    radius = tree[node].radius
            going = largest >= 0
            if going:
                node = lanes[largest]
                lanes[largest] = node + 1
                lanes[many] = tree[node].right
                many += 1
        for k in range(_LANES):
            base = at * _NUMBERS + k
            if k < many:
                opens = -1 - tree[lanes[k]].triangle
                if tree[lanes[k]].right >= 0:
                    opens = used
                    order[used] = lanes[k]
                    used += 1
                _write_box(rows, base, tree[lanes[k]], opens)
            else:
                _write_none(rows, base)
        at += 1
    count[0] = used
