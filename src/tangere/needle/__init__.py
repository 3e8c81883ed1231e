"""Needles in tissue: where the tip is, what is near it, and what pushing it takes."""

from tangere.needle.anatomy import Anatomy, Membrane, Vessel
from tangere.needle.instrument import Bevel, Needle
from tangere.needle.kinematic import KinematicSimulation, Particles, Tip
from tangere.needle.recording import Recorder, Recording
from tangere.needle.simulation import ShaftParticles, Simulation
from tangere.needle.steering import Arc, SteeringPlan, arc_to, follow_plan, plan_steering
from tangere.needle.tip_frame import TipFrame, duty_cycled
from tangere.needle.tip_refinement import RefinementReport
from tangere.needle.tissue import Tissue

__all__ = [
    "Anatomy",
    "Arc",
    "Bevel",
    "KinematicSimulation",
    "Membrane",
    "Needle",
    "Particles",
    "Recorder",
    "Recording",
    "RefinementReport",
    "ShaftParticles",
    "Simulation",
    "SteeringPlan",
    "Tip",
    "TipFrame",
    "Tissue",
    "Vessel",
    "arc_to",
    "duty_cycled",
    "follow_plan",
    "plan_steering",
]
