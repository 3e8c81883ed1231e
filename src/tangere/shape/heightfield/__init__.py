"""Ground: heights on a regular grid, in memory or in tiles of files."""

from tangere.shape.heightfield.heightfield import Heightfield
from tangere.shape.heightfield.relief import SQUARE, Relief
from tangere.shape.heightfield.tiled_heightfield import TiledHeightfield

__all__ = [
    "SQUARE",
    "Heightfield",
    "Relief",
    "TiledHeightfield",
]
