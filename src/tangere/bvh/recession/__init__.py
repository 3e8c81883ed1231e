"""Recession cones: which parts of a moving body cannot be the first to touch."""

from tangere.bvh.recession.cones import RecessionCones
from tangere.bvh.recession.culling import VelocityField, box_recedes, field_at, field_drift
from tangere.bvh.recession.initial_check import StartCheck, StartSide, Vertices

__all__ = [
    "RecessionCones",
    "StartCheck",
    "StartSide",
    "VelocityField",
    "Vertices",
    "box_recedes",
    "field_at",
    "field_drift",
]
