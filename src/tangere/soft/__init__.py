"""Deformable bodies: solids of tetrahedra and sheets of triangles that move, touch, slide and never pass through."""

from tangere.soft import scenes
from tangere.soft.blade import Blade
from tangere.soft.body import Body
from tangere.soft.contact.row_entries import RowArrays
from tangere.soft.cut_engine import CutEvent
from tangere.soft.cutting import Cuts
from tangere.soft.drawing import (
    CAMERA,
    WALL_COLOUR,
    body_things,
    boxes_and_cells,
    contact_points,
    extent_of,
)
from tangere.soft.model.elastic import Energy
from tangere.soft.recording import Recorder, Recording
from tangere.soft.safe_step.truncation import TruncationReport
from tangere.soft.simulated_body import SimulatedBody
from tangere.soft.simulation import Simulation
from tangere.soft.solver.rod import RodArrays, rod_arrays
from tangere.soft.step import StepPipeline

__all__ = [
    "CAMERA",
    "WALL_COLOUR",
    "Blade",
    "Body",
    "CutEvent",
    "Cuts",
    "Energy",
    "Recorder",
    "Recording",
    "RodArrays",
    "RowArrays",
    "SimulatedBody",
    "Simulation",
    "StepPipeline",
    "TruncationReport",
    "body_things",
    "boxes_and_cells",
    "contact_points",
    "extent_of",
    "rod_arrays",
    "scenes",
]
