"""Where do bodies rest on the ground, or on each other, how deep, and which way is out?"""

from tangere.query.manifold.engines import manifold
from tangere.query.manifold.primitives import cylinder_sphere, on_plane

__all__ = [
    "cylinder_sphere",
    "manifold",
    "on_plane",
]
