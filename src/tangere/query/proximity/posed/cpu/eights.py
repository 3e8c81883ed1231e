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

from tangere.bvh.obb import ObbTree
from tangere.shape.mesh import Mesh

#: Rows of eight numbers in a node: centres, half sizes, axes, radii, and what each box opens into.
ROWS_OF_NODE, RADIUS, OPENS = 17, 15, 16
LANES = 8
#: The half size of a box that is none: it is apart from everything.
_NONE = -1.0e30


@wp.struct
class EightTables:
    """The eights of all shapes, one after the other; a shape begins with a node that holds its root alone."""

    rows: wp.array[wp.float32]  # 17 rows of 8 for each node; the last are int32: a node, or -1 - triangle
    first: wp.array[wp.int32]  # the first node of each shape


@dataclass(frozen=True, eq=False)
class ObbEights:
    """The eights of one tree."""

    rows: np.ndarray  #: (k, 17, 8) float32

    @staticmethod
    def of(mesh: Mesh) -> ObbEights:
        """The eights of a mesh's tree, made when first asked for and kept in `mesh.cache`."""
        eights = mesh.cache.get(ObbEights)
        if eights is None:
            eights = mesh.cache[ObbEights] = _collapsed(ObbTree.of(mesh, "cpu").records())
        return eights


def eight_tables(meshes: Sequence[Mesh]) -> Any:
    """`EightTables` of distinct meshes, in order."""
    each = [ObbEights.of(mesh).rows for mesh in meshes]
    first = np.cumsum([0] + [len(rows) for rows in each[:-1]]).astype(np.int32)
    joined = np.concatenate(each)
    opens, number = joined[:, OPENS].view(np.int32), np.repeat(first, [len(rows) for rows in each])
    opens[:] = np.where(opens < 0, opens, opens + number[:, None])
    tables: Any = EightTables()
    tables.rows = wp.array(joined.ravel(), dtype=wp.float32, device="cpu")
    tables.first = wp.array(first, dtype=wp.int32, device="cpu")
    return tables


def _collapsed(records: np.ndarray) -> ObbEights:
    """Level by level, all nodes of a level at once."""
    right, radius = records["right"], records["radius"]
    node = np.full(len(records), -1, np.int32)  # what each box opens into
    root = np.full((1, LANES), -1, np.int32)
    root[0, 0] = 0
    levels, opened, made = [root], np.flatnonzero(right[:1] >= 0), 1
    while len(opened):
        node[opened] = made + np.arange(len(opened))
        made += len(opened)
        lanes = np.full((len(opened), LANES), -1, np.int32)
        lanes[:, 0], lanes[:, 1] = opened + 1, right[opened]
        for place in range(2, LANES):
            inner = (lanes >= 0) & (right[lanes] >= 0)
            largest = np.where(inner, radius[lanes], -1.0).argmax(axis=1)
            rows = np.flatnonzero(inner.any(axis=1))
            replaced = lanes[rows, largest[rows]]
            lanes[rows, largest[rows]] = replaced + 1
            lanes[rows, place] = right[replaced]
        levels.append(lanes)
        inner = lanes[lanes >= 0]
        opened = inner[right[inner] >= 0]
    lanes = np.concatenate(levels)
    boxes, used = records[lanes], (lanes >= 0)[:, None]
    rows = np.zeros((len(lanes), ROWS_OF_NODE, LANES), np.float32)
    rows[:, 0:3] = np.swapaxes(boxes["centre"], 1, 2)
    rows[:, 3:6] = np.where(used, np.swapaxes(boxes["half"], 1, 2), np.float32(_NONE))
    rows[:, 6:15] = boxes["axes"].transpose(0, 3, 2, 1).reshape(-1, 9, LANES)
    rows[:, RADIUS] = boxes["radius"]
    rows[:, OPENS].view(np.int32)[:] = np.where(node[lanes] >= 0, node[lanes], -1 - boxes["triangle"])
    return ObbEights(rows)
