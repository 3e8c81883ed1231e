"""Broad phases behind one question: which pairs of triangles of a scene have boxes that overlap?

All compare the same boxes and find the same pairs, so that each is an oracle of the others (Léonard 2021, chapter 2,
surveys them). What suits when: "tree" as a rule; "sweep" for few or scattered triangles; "front" where little moves
from call to call; "brute" for checks. "grid" and "levels", a hierarchical grid, are Léonard's, as `tangere.published`
reproduces them: for comparisons.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
import warp as wp

from tangere.broad_phase.triangles.brute_force import brute_pairs
from tangere.broad_phase.triangles.bvh import tree_pairs_of
from tangere.broad_phase.triangles.front import front_pairs
from tangere.broad_phase.triangles.surfaces import Surfaces
from tangere.broad_phase.triangles.sweep_and_prune import sweep_pairs
from tangere.broad_phase.triangles.triangle_aabbs import TriangleAabbs, every_job
from tangere.runtime import InputError, published

BroadPhase = Literal["tree", "grid", "levels", "sweep", "brute", "front"]


def triangle_pairs(
    surfaces: Surfaces, distance: float, jobs: np.ndarray | None = None, *, broad_phase: BroadPhase = "tree"
) -> wp.array:
    """All pairs (i, j), i < j, of triangles whose boxes, grown by half of `distance`, overlap: (n,) vec2i, any order.

    Args:
        distance: [m].
        jobs: (k, 2) pairs of meshes to compare, (a, a) for a mesh with itself; None means all.
    """
    if broad_phase not in get_args(BroadPhase):
        raise InputError(f"broad_phase must be one of {', '.join(get_args(BroadPhase))}, not {broad_phase!r}")
    jobs = every_job(len(surfaces.meshes)) if jobs is None else jobs
    if broad_phase == "tree":
        return tree_pairs_of(surfaces, distance, jobs)
    if broad_phase == "front":
        return front_pairs(surfaces, distance, jobs)
    return _BY_BOXES[broad_phase](TriangleAabbs.of(surfaces, distance, jobs))


_BY_BOXES: dict[str, Callable[[TriangleAabbs], wp.array]] = {
    "brute": brute_pairs,
    "sweep": sweep_pairs,
    "grid": lambda aabbs: published("leonard_grid").grid_pairs(aabbs, levels=False),
    "levels": lambda aabbs: published("leonard_grid").grid_pairs(aabbs, levels=True),
}
