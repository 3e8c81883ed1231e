"""The sweep over the vertices of one colour for CUDA: a warp for every vertex shares out neighbours, elements and rows.

A colour of a coarse solid has a hundred vertices, which leave a GPU idle, each busy for long with some forty dependent
reads. With 32 lanes to a vertex those reads happen side by side. The formulas are those of `model.elastic`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import warp as wp

from tangere.runtime import SOUND
from tangere.soft.model.elastic import element_block

wp.set_module_options(SOUND)

LANES = 32


class CudaVertexSweep:
    """Moves some dofs of one colour; on CPU, where it is only tested, each has a single lane."""

    def __init__(self, arguments: Sequence[Any], device: wp.Device) -> None:
        """`arguments` are those of the kernel after the first."""
        self._arguments, self._device = list(arguments), device
        if device.is_cuda:
            wp.load_module(_sweep.module, device=device, block_dim=LANES)

    def __call__(self, count: int, first: int) -> None:
        lanes = LANES if self._device.is_cuda else 1
        arguments = [first, *self._arguments]
        wp.launch(_sweep, count * lanes, arguments, device=self._device, record_tape=False, block_dim=LANES)


@wp.kernel
def _sweep(
    first: int,
    order: wp.array[int],
    x: wp.array[wp.vec3d],
    y: wp.array[wp.vec3d],
    inertia: wp.array[wp.float64],
    neighbour_offsets: wp.array[int],
    neighbours: wp.array[int],
    weights: wp.array[wp.float64],
    diagonal: wp.array[wp.float64],
    element_offsets: wp.array[int],
    opposite: wp.array[wp.vec3i],
    laws: wp.array[wp.vec3d],
    row_begin: wp.array[int],
    row_end: wp.array[int],
    entry_row: wp.array[int],
    entry_pull: wp.array[wp.vec2d],
    row_force: wp.array[wp.vec3d],
    row_stiffness: wp.array[wp.mat33d],
):
    width = wp.block_dim()
    lane = wp.tid() % width
    i = order[first + wp.tid() / width]
    here = x[i]
    force = wp.vec3d()
    outer = wp.mat33d()
    if lane == 0:
        force = inertia[i] * (y[i] - here)
        for k in range(3):
            outer[k, k] = inertia[i] + diagonal[i]
    for e in range(neighbour_offsets[i] + lane, neighbour_offsets[i + 1], width):
        force -= weights[e] * (x[neighbours[e]] - here)
    for e in range(element_offsets[i] + lane, element_offsets[i + 1], width):
        pull, matrix = element_block(here, x, opposite[e], laws[e])
        force += pull
        outer += matrix
    for e in range(row_begin[i] + lane, row_end[i], width):
        share = entry_pull[e]
        force += share[0] * row_force[entry_row[e]]
        outer += share[1] * row_stiffness[entry_row[e]]
    all_force = wp.tile_reduce(wp.add, wp.tile(force, preserve_type=True))[0]
    all_outer = wp.tile_reduce(wp.add, wp.tile(outer, preserve_type=True))[0]
    if lane == 0:
        x[i] = here + wp.inverse(all_outer) * all_force
