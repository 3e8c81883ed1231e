"""Deformable bodies: solids of tetrahedra and sheets of triangles that move, touch, slide and never pass through."""

from tangere.soft.body import Body
from tangere.soft.drawing import (
    CAMERA,
    CONTACT_COLOURS,
    ball_size,
    body_things,
    boxes_and_cells,
    contact_points,
    extent_of,
)
from tangere.soft.model.energy import Energy
from tangere.soft.recording import Recorder, Recording
from tangere.soft.simulation import Simulation

__all__ = [
    "CAMERA",
    "CONTACT_COLOURS",
    "Body",
    "Energy",
    "Recorder",
    "Recording",
    "Simulation",
    "ball_size",
    "body_things",
    "boxes_and_cells",
    "contact_points",
    "extent_of",
]
