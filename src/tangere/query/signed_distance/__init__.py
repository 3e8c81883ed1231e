"""How far points are from a closed surface, negative inside: exactly, or from samples."""

from tangere.query.signed_distance.api import SignedDistances, signed_distance
from tangere.query.signed_distance.sampled_field import DistanceField

__all__ = [
    "DistanceField",
    "SignedDistances",
    "signed_distance",
]
