"""Oriented boxes in eights, for CPUs: the trees of rigid meshes, and the descent of two of them."""

from tangere.bvh.eights.obb_eights import LANES, RADIUS, EightTables, ObbEights, eight_tables
from tangere.bvh.eights.simd_descent import (
    FIRST_LEAF,
    LEAVES,
    PLACED_BOX,
    SCRATCH,
    begin_at,
    begin_descent,
    next_leaves,
)

__all__ = [
    "FIRST_LEAF",
    "LANES",
    "LEAVES",
    "PLACED_BOX",
    "RADIUS",
    "SCRATCH",
    "EightTables",
    "ObbEights",
    "begin_at",
    "begin_descent",
    "eight_tables",
    "next_leaves",
]
