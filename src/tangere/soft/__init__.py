"""Deformable bodies: solids of tetrahedra and sheets of triangles that move, touch, slide and never pass through."""

from tangere.soft import scenes
from tangere.soft.body import Body
from tangere.soft.measures import Energy
from tangere.soft.simulation import Simulation

__all__ = ["Body", "Energy", "Simulation", "scenes"]
