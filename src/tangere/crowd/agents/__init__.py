"""The agents: their state on the device, sorted by cell, what they see and how they move."""

from tangere.crowd.agents.arrays import BodyEdges, CrowdArrays, ring_cell

__all__ = ["BodyEdges", "CrowdArrays", "ring_cell"]
