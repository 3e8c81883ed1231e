"""Robots from URDF and MJCF files."""

from tangere.shape.robot.holding_mesh import mesh_holding
from tangere.shape.robot.robot import Inertial, Joint, RobotDescription

__all__ = [
    "Inertial",
    "Joint",
    "RobotDescription",
    "mesh_holding",
]
