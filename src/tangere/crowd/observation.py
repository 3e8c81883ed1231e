"""What goes on around each agent: neighbours, overlaps, the nearest one.

Question: how near are others to each agent?
Method:   asked of the cells the step itself uses: the one-ring, as in Pitiot 2015, section 8.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from tangere.cells.maps import MapArrays, RingTable
from tangere.crowd.agents.arrays import CrowdArrays, ring_cell
from tangere.runtime import SOUND, launch

wp.set_module_options(SOUND)


@dataclass(frozen=True)
class Observation:
    """By agent number."""

    neighbours: np.ndarray  #: (n,) others within the range
    overlaps: np.ndarray  #: (n,) others nearer than the sum of the radii
    nearest: np.ndarray  #: (n,) distance to the nearest other one seen [m]; inf when there is none
    deepest: float  #: by how much two discs overlap at most [m]


def observe(inputs: list[Any], reach: float, device: wp.Device) -> Observation:
    """Look around from every agent. Inputs: crowd, map, rings."""
    count = len(inputs[0].position)
    neighbours, overlaps = (wp.empty(count, dtype=wp.int32, device=device) for _ in range(2))
    nearest, depth = (wp.empty(count, dtype=wp.float64, device=device) for _ in range(2))
    outputs = [neighbours, overlaps, nearest, depth]
    launch(_observe, count, [*inputs, wp.float64(reach)], outputs, device=device, grain=512)
    deepest = float(depth.numpy().max(initial=0.0))
    return Observation(neighbours.numpy(), overlaps.numpy(), nearest.numpy(), deepest)


@wp.kernel
def _observe(
    first: int,
    c: CrowdArrays,
    m: MapArrays,
    rings: RingTable,
    reach: wp.float64,
    neighbours: wp.array[int],
    overlaps: wp.array[int],
    nearest: wp.array[wp.float64],
    depth: wp.array[wp.float64],
):
    i = first + wp.tid()
    x = c.position[i]
    n = c.number[i]
    cell = m.cell[c.dart[i]]
    seen = int(0)
    touching = int(0)
    least = wp.float64(wp.inf)
    deepest = wp.float64(0.0)
    for k in range(rings.size[cell] + 1):
        b = ring_cell(rings, cell, k)
        for j in range(c.start[b], c.start[b + 1]):
            if j != i:
                d = wp.length(c.position[j] - x)
                least = wp.min(least, d)
                if d <= reach:
                    seen += 1
                gap = c.radius[n] + c.radius[c.number[j]] - d
                if gap > wp.float64(0.0):
                    touching += 1
                    deepest = wp.max(deepest, gap)
    neighbours[n] = seen
    overlaps[n] = touching
    nearest[n] = least
    depth[n] = deepest
