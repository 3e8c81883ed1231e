"""Uniform and hierarchical grids over triangle boxes."""
