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

#: Rows of eight numbers in a node: centres, half sizes, axes.
ROWS_OF_NODE = 15
_LANES = 8
#: The half size of a box that is none: it is apart from everything.
_NONE = -1.0e30


@wp.struct
class EightTables:
    """The eights of all shapes, one after the other; nodes count through all shapes."""

    rows: wp.array[wp.float32]  # 15 rows of 8 for each node of eight
    lanes: wp.array[wp.int32]  # the boxes of a node of eight, -1 for none
    node: wp.array[wp.int32]  # the node of eight that each box opens into, -1 for a triangle


@dataclass(frozen=True, eq=False)
class ObbEights:
    """The eights of one tree."""

    rows: np.ndarray  #: (k, 15, 8) float32
    lanes: np.ndarray  #: (k, 8) int32: nodes of the tree, -1 for none
    node: np.ndarray  #: (n,) int32: which one each node of the tree opens into, -1 for a leaf

    @staticmethod
    def of(mesh: Mesh) -> ObbEights:
        """The eights of a mesh's tree, made when first asked for and kept in `mesh.cache`."""
        eights = mesh.cache.get(ObbEights)
        if eights is None:
            eights = mesh.cache[ObbEights] = _collapsed(ObbTree.of(mesh, "cpu").records())
        return eights


def eight_tables(meshes: Sequence[Mesh]) -> Any:
    """`EightTables` of distinct meshes, in order."""
    each = [ObbEights.of(mesh) for mesh in meshes]
    nodes = np.cumsum([0] + [len(eights.node) for eights in each])
    wide = np.cumsum([0] + [len(eights.lanes) for eights in each])

    def counted(parts: list[np.ndarray], starts: np.ndarray) -> wp.array:
        moved = [np.where(part < 0, -1, part + start).ravel() for part, start in zip(parts, starts, strict=False)]
        return wp.array(np.concatenate(moved).astype(np.int32), dtype=wp.int32, device="cpu")

    tables: Any = EightTables()
    tables.rows = wp.array(np.concatenate([eights.rows.ravel() for eights in each]), dtype=wp.float32, device="cpu")
    tables.lanes = counted([eights.lanes for eights in each], nodes)
    tables.node = counted([eights.node for eights in each], wide)
    return tables


def _collapsed(records: np.ndarray) -> ObbEights:
    """Level by level, all nodes of eight of a level at once."""
    right, radius = records["right"], records["radius"]
    node = np.full(len(records), -1, np.int32)
    levels: list[np.ndarray] = []
    opened = np.flatnonzero(right[:1] >= 0)
    made = 0
    while len(opened):
        node[opened] = made + np.arange(len(opened))
        made += len(opened)
        lanes = np.full((len(opened), _LANES), -1, np.int32)
        lanes[:, 0], lanes[:, 1] = opened + 1, right[opened]
        for place in range(2, _LANES):
            inner = (lanes >= 0) & (right[lanes] >= 0)
            largest = np.where(inner, radius[lanes], -1.0).argmax(axis=1)
            rows = np.flatnonzero(inner.any(axis=1))
            replaced = lanes[rows, largest[rows]]
            lanes[rows, largest[rows]] = replaced + 1
            lanes[rows, place] = right[replaced]
        levels.append(lanes)
        inner = lanes[lanes >= 0]
        opened = inner[right[inner] >= 0]
    lanes = np.concatenate(levels) if levels else np.zeros((0, _LANES), np.int32)
    rows = np.zeros((len(lanes), ROWS_OF_NODE, _LANES), np.float32)
    boxes, used = records[lanes], (lanes >= 0)[:, None]
    rows[:, 0:3] = np.swapaxes(boxes["centre"], 1, 2)
    rows[:, 3:6] = np.where(used, np.swapaxes(boxes["half"], 1, 2), np.float32(_NONE))
    rows[:, 6:15] = boxes["axes"].transpose(0, 3, 2, 1).reshape(-1, 9, _LANES)
    return ObbEights(rows, lanes, node)
