"""What moves how between two instants."""

from tangere.motion.linear import Linear

__all__ = ["Linear"]
