"""Analytic bodies: their surfaces and masses, what holds them above the ground, and apart from each other."""
