"""Robots from URDF files."""

from tangere.shape.robot.robot import Joint, Robot

__all__ = [
    "Joint",
    "Robot",
]
