"""Robots from URDF files."""

from tangere.shape.robot.robot import Inertial, Joint, Robot

__all__ = [
    "Inertial",
    "Joint",
    "Robot",
]
