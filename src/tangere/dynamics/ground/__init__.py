"""Analytic bodies on height grids: their surfaces and masses, and what holds them above the ground."""
