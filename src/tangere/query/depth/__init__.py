"""How deep are two solids in each other, and which way is out?"""

from tangere.query.depth.api import Depth, depth
from tangere.query.depth.escape import DIRECTIONS, find_escapes
from tangere.query.depth.overlap_volume import overlap_volume
from tangere.query.depth.search import DepthBounds, search_depths

__all__ = [
    "DIRECTIONS",
    "Depth",
    "DepthBounds",
    "depth",
    "find_escapes",
    "overlap_volume",
    "search_depths",
]
