"""Parts with their trees, kept in one file."""

from tangere.bvh.prepared.part import PreparedPart

__all__ = [
    "PreparedPart",
]
