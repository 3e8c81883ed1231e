"""Which pieces of ground may meshes meet?"""

from tangere.broad_phase.ground.blocks import GroundBlock, GroundBlocks

__all__ = [
    "GroundBlock",
    "GroundBlocks",
]
