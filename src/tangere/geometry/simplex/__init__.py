"""The point of a simplex that is nearest to the origin."""

from tangere.geometry.simplex.nearest import (
    NearestOfSimplex,
    nearest_of_four,
    nearest_of_points,
    nearest_of_three,
    nearest_of_two,
)

__all__ = [
    "NearestOfSimplex",
    "nearest_of_four",
    "nearest_of_points",
    "nearest_of_three",
    "nearest_of_two",
]
