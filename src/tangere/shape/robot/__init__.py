"""Robots from URDF and MJCF files."""

from tangere.shape.robot.holding_mesh import mesh_holding, mesh_of_parts
from tangere.shape.robot.robot import Inertial, Joint, RobotDescription

__all__ = [
    "Inertial",
    "Joint",
    "RobotDescription",
    "mesh_holding",
    "mesh_of_parts",
]
