"""What moves how between two instants."""

from tangere.motion.body import Rigid
from tangere.motion.chain import Chain
from tangere.motion.linear import Linear
from tangere.motion.path import Path, deviation, split
from tangere.motion.screw import CosineScrew, Screw, TanScrew
from tangere.motion.twist import Rest, Twist

__all__ = [
    "Chain",
    "CosineScrew",
    "Linear",
    "Path",
    "Rest",
    "Rigid",
    "Screw",
    "TanScrew",
    "Twist",
    "deviation",
    "split",
]
