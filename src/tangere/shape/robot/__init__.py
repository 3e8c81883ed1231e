"""Robots from URDF files."""

from tangere.shape.robot.robot import Inertial, Joint, RobotDescription

__all__ = [
    "Inertial",
    "Joint",
    "RobotDescription",
]
