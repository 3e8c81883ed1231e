"""How the joints of a mechanism move the links that hang on them, in kernels."""

from tangere.motion.joints.constant_rate import JointArrays, joint_arrays, joint_motion

__all__ = ["JointArrays", "joint_arrays", "joint_motion"]
