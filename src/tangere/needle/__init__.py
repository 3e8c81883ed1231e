"""Needles in tissue: where the tip is, what is near it, and what pushing it takes."""

from tangere.needle.anatomy import Anatomy, Membrane, Vessel
from tangere.needle.instrument import Bevel, Needle
from tangere.needle.kinematic import KinematicSimulation, Particles, Tip
from tangere.needle.simulation import ShaftParticles, Simulation
from tangere.needle.tip_frame import TipFrame, duty_cycled
from tangere.needle.tip_refinement import RefinementReport
from tangere.needle.tissue import Tissue

__all__ = [
    "Anatomy",
    "Bevel",
    "KinematicSimulation",
    "Membrane",
    "Needle",
    "Particles",
    "RefinementReport",
    "ShaftParticles",
    "Simulation",
    "Tip",
    "TipFrame",
    "Tissue",
    "Vessel",
    "duty_cycled",
]
