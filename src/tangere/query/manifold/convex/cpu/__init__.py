"""Planes of a polytope's faces, four at a time on CPUs."""
