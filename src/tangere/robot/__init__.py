"""URDF robots and their trajectories: what touches, how near it comes, which links may touch."""

from tangere.robot import generate
from tangere.robot.allowed_pairs import AllowedPairs
from tangere.robot.result import LastValid, RobotCheck, RobotChecks, TrajectorySegments
from tangere.robot.robot import Robot, check
from tangere.robot.touching import TouchingPair, TouchingTable
from tangere.robot.trajectory_checker import TrajectoryChecker
from tangere.robot.trajectory_files import read_trajectory
from tangere.robot.trajectory_gradients import (
    RobotDistances,
    SegmentGradients,
    TrajectoryGradient,
    clearance_gradients,
    time_gradient,
)
from tangere.robot.workcell import Workcell

__all__ = [
    "AllowedPairs",
    "LastValid",
    "Robot",
    "RobotCheck",
    "RobotChecks",
    "RobotDistances",
    "SegmentGradients",
    "TouchingPair",
    "TouchingTable",
    "TrajectoryChecker",
    "TrajectoryGradient",
    "TrajectorySegments",
    "Workcell",
    "check",
    "clearance_gradients",
    "generate",
    "read_trajectory",
    "time_gradient",
]
