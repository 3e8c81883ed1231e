"""Léonard's grid pipeline: seven stages, normal cones, 26-DOPs."""

from tangere.published.leonard_grid.grid.pairs import grid_pairs
from tangere.published.leonard_grid.stages import StagedDetection, detect

__all__ = [
    "StagedDetection",
    "detect",
    "grid_pairs",
]
