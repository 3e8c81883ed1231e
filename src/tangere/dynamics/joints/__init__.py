"""Joints as rows of the solver."""
