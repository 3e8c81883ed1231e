"""What moves how between two instants."""

from tangere.motion.chain import Chain
from tangere.motion.kinematics import COSINE, STEADY, TANGENT, RigidMotion, RigidPose, pose_at, velocity_at
from tangere.motion.linear import Linear
from tangere.motion.path import Path, deviation, split
from tangere.motion.pose_files import read_poses
from tangere.motion.poses import as_poses, quaternions_of, rotation_between, rotations_of
from tangere.motion.rigid_motion import Rigid, joined_records, motions_of
from tangere.motion.screw import Screw
from tangere.motion.twist import TWIST_FAULTS, Rest, Twist, TwistArrays, twist_fault, twist_motion

__all__ = [
    "COSINE",
    "STEADY",
    "TANGENT",
    "TWIST_FAULTS",
    "Chain",
    "Linear",
    "Path",
    "Rest",
    "Rigid",
    "RigidMotion",
    "RigidPose",
    "Screw",
    "Twist",
    "TwistArrays",
    "as_poses",
    "deviation",
    "joined_records",
    "motions_of",
    "pose_at",
    "quaternions_of",
    "read_poses",
    "rotation_between",
    "rotations_of",
    "split",
    "twist_fault",
    "twist_motion",
    "velocity_at",
]
