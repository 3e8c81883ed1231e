"""Soft bodies that are cut: simplices that open along the way of a blade, their surface, and what falls apart."""

from tangere.soft.cutting.connected_parts import ConnectedParts
from tangere.soft.cutting.cut_surface import CutSurface
from tangere.soft.cutting.cuts import Cuts
from tangere.soft.cutting.simplicial_complex import ComplexChange, SimplicialComplex

__all__ = ["ComplexChange", "ConnectedParts", "CutSurface", "Cuts", "SimplicialComplex"]
