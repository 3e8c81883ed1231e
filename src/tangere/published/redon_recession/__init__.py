"""Recession cones as Redon's thesis has them: how they are built, and the tests that they serve."""

from tangere.published.redon_recession.cones import published_cones
from tangere.published.redon_recession.culling import memory_model, receding_nodes, receding_triangles

__all__ = ["memory_model", "published_cones", "receding_nodes", "receding_triangles"]
