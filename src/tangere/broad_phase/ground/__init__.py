"""Which pieces of ground may meshes meet?"""

from tangere.broad_phase.ground.blocks import GroundBlock, GroundBlocks
from tangere.broad_phase.ground.walls import GroundWalls, WallBlock

__all__ = [
    "GroundBlock",
    "GroundBlocks",
    "GroundWalls",
    "WallBlock",
]
