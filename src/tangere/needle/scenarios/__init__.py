"""Insertions that are ready to run: organs with vessels and membranes, and how a needle is driven into them."""

from tangere.needle.scenarios.insertions import SCENES, Insertion, brain, liver, own, self_collision
from tangere.needle.scenarios.organs import organ, surface_point, vessel_tree
from tangere.needle.scenarios.trace import Trace

__all__ = [
    "SCENES",
    "Insertion",
    "Trace",
    "brain",
    "liver",
    "organ",
    "own",
    "self_collision",
    "surface_point",
    "vessel_tree",
]
