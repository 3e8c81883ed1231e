"""The CUDA engine of proximity: trees of pairs, a thread for each feature."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.broad_phase.triangles import Layout, Surfaces
from tangere.bvh.lbvh import LinearTree
from tangere.query.proximity.contact_buffer import ContactBuffer
from tangere.query.proximity.cuda.detector import CudaDetector
from tangere.query.proximity.cuda.lbvh import CudaLbvh, CudaLbvhBoxes
from tangere.query.proximity.cuda.narrow_phase import lbvh_search_kernel
from tangere.query.proximity.cuda.placement import place_launch
from tangere.query.proximity.details import fill_one_by_one
from tangere.query.proximity.engine import Engine
from tangere.query.proximity.search_plan import EXPECTED, PlannedSearch, PlannedSide, SearchPlan
from tangere.query.proximity.searched_features import searched_features
from tangere.runtime import collect, concatenated, device_of, launch, sort_pairs


def _vertex_order(surfaces: Surfaces, used: np.ndarray, hull: np.ndarray) -> np.ndarray:
    named = wp.array(used[:, None], dtype=wp.int32, device=surfaces.device)
    return used[LinearTree.build(named, surfaces.positions, hull).order.numpy()]


def _build_tree(
    items: np.ndarray, numbers: np.ndarray, order: np.ndarray, points: np.ndarray, hull: np.ndarray, device: wp.Device
) -> CudaLbvh:
    return CudaLbvh.of(items, wp.array(points, dtype=wp.vec3d, device=device), hull, numbers)


def _plan_search(layout: Layout, a: PlannedSide, b: PlannedSide, distance: float) -> PlannedSearch:
    """A search for keys of pairs nearer than `distance` [m]; within a tree if both sides have the same one."""
    assert isinstance(a.boxes, CudaLbvhBoxes)
    assert isinstance(b.boxes, CudaLbvhBoxes)
    one, other = a.boxes.of, b.boxes.of
    sides = ((side.boxes.of.tree.items, side.boxes.of.numbers, side.placed.positions) for side in (a, b))
    inputs = [one.tree.units, int(a.boxes is b.boxes), int(a.trees is b.trees)]
    inputs += [searched_features(layout, *sides, distance), a.boxes.items, b.boxes.items, b.boxes.records]
    kernel = lbvh_search_kernel(one.tree.items.shape[1], other.tree.items.shape[1])
    return PlannedSearch(kernel, len(one.numbers), inputs, EXPECTED * len(one.numbers))


def _near_pairs(surfaces: Surfaces, jobs: np.ndarray, distance: float) -> wp.array:
    plan, device = SearchPlan.of(surfaces, jobs, distance), surfaces.device
    for body in plan.bodies.values():
        kernel, dim, arguments = place_launch(*body, surfaces.positions, distance, surfaces.frame)
        launch(kernel, dim, arguments, device=device)
    found = []
    for branch in (plan.edges, plan.vertices):
        branch.fit()
        found += [
            collect(s.kernel, s.dim, s.inputs, wp.int64, device=device, capacity=s.expected) for s in branch.searches
        ]
    return concatenated(found, wp.int64, device)


def _sort_keys(pair_keys: wp.array, bits: int) -> wp.array:
    return sort_pairs(pair_keys, wp.empty(len(pair_keys), dtype=wp.int32, device=device_of(pair_keys)), bits=bits)[0]


def _fill_launch(near: ContactBuffer) -> tuple[wp.Kernel, int, list[Any]]:
    return fill_one_by_one, len(near.pair_keys), [near.table]


CUDA = Engine(
    vertex_order=_vertex_order,
    build_tree=_build_tree,
    plan_search=_plan_search,
    near_pairs=_near_pairs,
    sort_keys=_sort_keys,
    fill_launch=_fill_launch,
    detector=CudaDetector,
)
