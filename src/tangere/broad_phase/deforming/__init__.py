"""One step of meshes whose vertices move along lines, and the pairs of their features that may meet."""

from tangere.broad_phase.deforming.bvh_pairs import BvhSide, SearchedItems, keep_all, pairs
from tangere.broad_phase.deforming.step import FittedMesh, MeshInStep, Step

__all__ = [
    "BvhSide",
    "FittedMesh",
    "MeshInStep",
    "SearchedItems",
    "Step",
    "keep_all",
    "pairs",
]
