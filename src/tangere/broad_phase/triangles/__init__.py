"""Which triangles of a scene have boxes that overlap: one question, six interchangeable answers."""

from tangere.broad_phase.triangles.api import BroadPhase, triangle_pairs
from tangere.broad_phase.triangles.surfaces import (
    LARGEST,
    Layout,
    Surfaces,
    as_meshes,
    checked_distance,
    checked_size,
)
from tangere.broad_phase.triangles.triangle_aabbs import EMPTY, every_job

__all__ = [
    "EMPTY",
    "LARGEST",
    "BroadPhase",
    "Layout",
    "Surfaces",
    "as_meshes",
    "checked_distance",
    "checked_size",
    "every_job",
    "triangle_pairs",
]
