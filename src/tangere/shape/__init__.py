"""What things are: triangle and tetrahedral meshes, analytic bodies and ground, in motion or at rest; generators."""

from tangere.shape.moving import Moving

__all__ = ["Moving"]
