"""Near features by trees over vertices, edges and faces: the distance is tested inside the traversal.

No candidate is kept: what is appended is the name of a pair that is near (specs/leonard-deformable-gpu C21.7, F-L-60).
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.broad_phase.triangles import Layout, Surfaces
from tangere.query.proximity.cpu.parallel_sort import LEAST, ParallelSort
from tangere.query.proximity.cpu.search_program import SearchProgram
from tangere.query.proximity.feature_trees import placing
from tangere.query.proximity.search_plan import SearchPlan
from tangere.runtime import collect, launch, thread_count

__all__ = ["joined", "search_trees"]


def search_trees(surfaces: Surfaces, jobs: np.ndarray, distance: float) -> wp.array:
    """Names of all pairs of features without a common vertex that are nearer than `distance` [m], in any order.

    Args:
        jobs: (k, 2) meshes to compare, a <= b, each pair once; a mesh with itself is (a, a).
    """
    return (_search_eights if surfaces.device.is_cpu else _search_pairs)(surfaces, jobs, distance)


def _search_eights(surfaces: Surfaces, jobs: np.ndarray, distance: float) -> wp.array:
    """On CPU, in arrays that stay with the topologies; while one thread has them another makes its own."""
    kept, key = surfaces.layout.cache, ("eights", jobs.tobytes())
    run: SearchProgram | None = kept.pop(key, None)
    if run is None or run.distance != distance or not run.plan.is_current(surfaces):
        run = SearchProgram(SearchPlan.of(surfaces, jobs, distance), surfaces.layout, distance)
    run.look_at(surfaces.positions, surfaces.frame)
    ordered, count = run.find(lambda count: _room(surfaces.layout, count), thread_count())
    names = wp.clone(ordered.names[:count])
    kept[key] = run
    return names


def _room(layout: Layout, count: int) -> ParallelSort:
    names, number = (wp.empty(n, dtype=wp.int64, device="cpu") for n in (max(count, LEAST), 1))
    return ParallelSort(layout, names, number)


def _search_pairs(surfaces: Surfaces, jobs: np.ndarray, distance: float) -> wp.array:
    """On CUDA."""
    plan, device = SearchPlan.of(surfaces, jobs, distance), surfaces.device
    for body in plan.bodies.values():
        kernel, dim, arguments = placing(*body, surfaces.positions, distance, surfaces.frame)
        launch(kernel, dim, arguments, device=device)
    found = []
    for branch in (plan.edges, plan.vertices):
        branch.fit()
        found += [
            collect(s.kernel, s.dim, s.inputs, wp.int64, device=device, capacity=s.expected) for s in branch.searches
        ]
    return joined(found, device)


def joined(parts: list[wp.array], device: wp.Device) -> wp.array:
    """The names of all parts in one array."""
    if len(parts) == 1:
        return parts[0]
    whole = wp.empty(sum(map(len, parts)), dtype=wp.int64, device=device)
    at = 0
    for part in parts:
        if len(part):
            wp.copy(whole, part, dest_offset=at, count=len(part))
        at += len(part)
    return whole
