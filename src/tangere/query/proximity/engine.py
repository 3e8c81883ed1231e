"""Which parts of a detection are made for CPUs, which for CUDA: the one place where the engine asks for the device.

On CPUs features are in trees of eights and are compared eight at a time (`cpu`); on CUDA a thread takes one feature
through a tree of pairs (`cuda`). Both find the same pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import warp as wp

from tangere.broad_phase.triangles import Layout, Surfaces


@dataclass(frozen=True)
class Engine:
    """The functions of one kind of device."""

    #: (surfaces, vertices, hull) -> the vertices in the order of their tree.
    vertex_order: Callable[[Surfaces, np.ndarray, np.ndarray], np.ndarray]
    #: (items, numbers, order, points, hull, device) -> a tree over items of ordered vertices, which have these numbers.
    build_tree: Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, wp.Device], Any]
    #: (layout, a, b, distance) -> the `PlannedSearch` for pairs of features of two `PlannedSide`s.
    plan_search: Callable[[Layout, Any, Any, float], Any]
    #: (surfaces, jobs, distance) -> keys of all near pairs, in any order.
    near_pairs: Callable[[Surfaces, np.ndarray, float], wp.array]
    #: (keys, bits) -> the keys, all different, in rising order.
    sort_keys: Callable[[wp.array, int], wp.array]
    #: (buffer) -> kernel, number of indices and arguments of the launch that writes a buffer's columns.
    fill_launch: Callable[[Any], tuple[wp.Kernel, int, list[Any]]]
    #: The detector of a scene: (surfaces, plan, positions, distance, excluded).
    detector: Callable[..., Any]


def engine_of(device: wp.Device) -> Engine:
    """The engine of a device."""
    return _engine(device.is_cuda)


@cache
def _engine(is_cuda: bool) -> Engine:
    if is_cuda:
        from tangere.query.proximity.cuda.engine import CUDA

        return CUDA
    from tangere.query.proximity.cpu.engine import CPU

    return CPU
