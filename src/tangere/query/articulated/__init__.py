"""Every pair of bodies that hang on each other, in every step of a motion."""

from tangere.query.articulated.api import ArticulatedQueries
from tangere.query.articulated.chain_layout import AT_REST, ChainLayout

__all__ = [
    "AT_REST",
    "ArticulatedQueries",
    "ChainLayout",
]
