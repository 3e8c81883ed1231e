"""The course as printed (`mode="published"`): misprints corrected, everything else as it stands; for reproduction only.

Source: chapter 6.X4, "La détection de collision en 3D", of a course in French on 3D collision detection.
It misses contacts (the benchmark `bench/course_table_8.py` counts them): use `mode="sound"` for anything that matters.
"""

from tangere.published.course.feature_pairs import solve
from tangere.published.course.reading import Reading
from tangere.published.course.triangles import positions_at, solve_triangles

__all__ = ["Reading", "positions_at", "solve", "solve_triangles"]
