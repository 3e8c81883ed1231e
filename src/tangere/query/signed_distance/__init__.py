"""How far points are from a closed surface, negative inside: exactly, or from samples."""

from tangere.query.signed_distance.field import DistanceField
from tangere.query.signed_distance.points import SignedDistances, signed_distance

__all__ = ["DistanceField", "SignedDistances", "signed_distance"]
