"""Two oriented boxes: the separating axis."""

from tangere.geometry.obb.separating_axis import LONGEST, separation_of, support

__all__ = [
    "LONGEST",
    "separation_of",
    "support",
]
