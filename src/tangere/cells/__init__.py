"""Partitioned space: combinatorial maps, tracking through their cells, registration, adaptive cells."""
