"""Interval arithmetic in kernels, rounded outward."""

from tangere.geometry.intervals.arithmetic import excludes_zero, minus, overlap, plus, times

__all__ = [
    "excludes_zero",
    "minus",
    "overlap",
    "plus",
    "times",
]
