"""Dynamics in motion space as in Redon's thesis: Gauss's projection, Wilhelmsen, friction rows, impacts, the LCP."""

from tangere.published.redon_dynamics.dantzig import LcpBatch, LcpSolutions, solve_lcp
from tangere.published.redon_dynamics.event_loop import EventLoop, LoopEvent
from tangere.published.redon_dynamics.gauss_projection import GaussProjection, gauss_projection, motion_space_rows
from tangere.published.redon_dynamics.impact import simultaneous_impact
from tangere.published.redon_dynamics.rows import (
    SIDES,
    curvature_need,
    dimple_directions,
    jacobian_rows,
    sliding_directions,
)
from tangere.published.redon_dynamics.wilhelmsen import ConeBatch, ConePoints, nearest_in_cone

__all__ = [
    "SIDES",
    "ConeBatch",
    "ConePoints",
    "EventLoop",
    "GaussProjection",
    "LcpBatch",
    "LcpSolutions",
    "LoopEvent",
    "curvature_need",
    "dimple_directions",
    "gauss_projection",
    "jacobian_rows",
    "motion_space_rows",
    "nearest_in_cone",
    "simultaneous_impact",
    "sliding_directions",
    "solve_lcp",
]
