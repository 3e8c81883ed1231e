"""Soft bodies that are cut: simplices that open along the way of a blade."""

from tangere.soft.cutting.simplicial_complex import ComplexChange, SimplicialComplex

__all__ = ["ComplexChange", "SimplicialComplex"]
