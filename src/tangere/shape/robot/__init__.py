"""Robots from URDF files."""

from tangere.shape.robot.urdf import load_urdf

__all__ = [
    "load_urdf",
]
