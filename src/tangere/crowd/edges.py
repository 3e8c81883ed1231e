"""Edges of bodies by cell: contours, and the virtual edges that reach ahead of them.

Question: which edges does an agent in this cell see?
Method:   an edge is in every cell it crosses (marched unless both ends are in one convex cell), and cells hold lists
          of their edges. A virtual edge runs from the centroid of a body's head to where it will be after the horizon,
          cut at the first wall; a body wider than it runs far gets two, a wedge as wide as itself. A centroid that its
          body's first corner does not see past a wall has none.
          On surfaces, edges are in the cells of their ends and there are no virtual ones.
Spec: specs/pitiot-multiresolution-interactions 2.12, 2.21.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.cells.maps.arrays import MapArrays
from tangere.cells.maps.cell_map import CellMap
from tangere.cells.registration.crossing import ALONE, ENDS, MARCH, NOTHING, cross
from tangere.cells.registration.groups import group
from tangere.cells.tracking.march import marched
from tangere.cells.tracking.sides import INSIDE, walk
from tangere.crowd.arrays import Edges
from tangere.crowd.shape_matching import Bodies
from tangere.runtime import SOUND, launch

__all__ = ["MovingEdges"]

wp.set_module_options(SOUND)

_ZERO, _HALF, _ONE = (wp.constant(wp.float64(x)) for x in (0.0, 0.5, 1.0))


@wp.struct
class _Ends:
    dart_a: wp.array[int]
    dart_b: wp.array[int]
    how: wp.array[int]  # its cells are to be found


class MovingEdges:
    """The edges of all bodies, where they are now: contours first, then two places for each body's virtual edges.

    Args:
        contours: (e, 2) particles. owners: (e,) bodies.
        widths: (b,) of each body [m]. horizon: of anticipation [s]; 0: no virtual edges.
        wedge: a virtual edge becomes two where a body is wider than this part of the edge's length.
    """

    def __init__(
        self,
        map: CellMap,
        contours: np.ndarray,
        owners: np.ndarray,
        widths: np.ndarray,
        horizon: float,
        wedge: float = 0.5,
    ) -> None:
        self.map = map
        self._horizon = horizon if map.dimension == 2 and map.flat else 0.0
        self._wedge = wedge
        device, bodies = map.device, len(widths) if self._horizon > 0 else 0
        count = len(contours) + 2 * bodies
        everyone = np.concatenate([owners, np.repeat(np.arange(bodies), 2)])
        self._contours = wp.array(contours.astype(np.int32), dtype=wp.vec2i, device=device)
        self._widths = wp.array(widths, dtype=wp.float64, device=device)
        self._ends = _Ends()
        for name in ("dart_a", "dart_b", "how"):
            setattr(self._ends, name, wp.empty(count, dtype=wp.int32, device=device))
        self.arrays = Edges()  #: as kernels see them
        self._fixed = {name: wp.empty(count, dtype=wp.vec3d, device=device) for name in ("a", "b", "rate_a", "rate_b")}
        self._fixed["owner"] = wp.array(everyone.astype(np.int32), dtype=wp.int32, device=device)
        self._fixed["ahead"] = wp.zeros(count, dtype=wp.int32, device=device)
        if count == 0:
            self._list()

    def update(self, bodies: Bodies) -> None:
        """Register all edges anew."""
        e = Edges()
        for name, array in self._fixed.items():
            setattr(e, name, array)
        how = int(ENDS if bodies.surface else ALONE if self.map.has_convex_cells else MARCH)
        reach = wp.vec2d(self._horizon, self._wedge)
        inputs = [self.map.arrays, bodies, self._contours, self._widths, reach, how, self._ends]
        launch(_place_ends, len(e.owner), inputs, [e], device=self.map.device, grain=1024)
        self._list()

    def _list(self) -> None:
        """List edges by cell."""
        e = Edges()
        for name, array in self._fixed.items():
            setattr(e, name, array)
        rows, _ = cross(self.map, e.a, e.b, self._ends.dart_a, self._ends.dart_b, self._ends.how)
        lists = group(rows.cells, self.map.cell_capacity)
        e.first, e.cells, e.edge = rows.first, rows.cells, rows.owner
        e.start, e.entry = lists.start, lists.order
        self.arrays = e


@wp.func
def _virtual(
    m: MapArrays,
    b: Bodies,
    body: int,
    side: int,
    width: wp.float64,
    reach: wp.vec2d,
    i: int,
    x: _Ends,
    e: Edges,
):
    """Place one of the two virtual edges of a body, or none."""
    s = b.head_section[body]
    count = wp.float64(b.first[s + 1] - b.first[s])
    hub = wp.vec3d()
    velocity = wp.vec3d()
    for k in range(b.first[s], b.first[s + 1]):
        hub += b.position[b.particle[k]] / count
        velocity += b.velocity[b.particle[k]] / count
    way = reach[0] * velocity
    length = wp.length(way)
    wide = width > reach[1] * length
    seen = walk(m, hub, b.dart[b.particle[b.first[s]]])
    e.a[i] = hub
    e.b[i] = hub
    e.rate_a[i] = velocity
    e.rate_b[i] = velocity
    e.ahead[i] = 0
    x.dart_a[i] = seen[0]
    x.dart_b[i] = seen[0]
    x.how[i] = NOTHING
    if length > _ZERO and seen[1] == INSIDE and (side == 0 or wide):
        if wide:
            left = wp.vec3d(-way[1], way[0], _ZERO) * (width * _HALF / length)
            if side == 1:
                left = -left
            way = way + left
        end = marched(m, hub, hub + way, seen[0])
        e.b[i] = hub + end.time * way
        e.ahead[i] = 1
        x.dart_b[i] = end.dart
        x.how[i] = ALONE


@wp.kernel
def _place_ends(
    first: int,
    m: MapArrays,
    b: Bodies,
    contours: wp.array[wp.vec2i],
    widths: wp.array[wp.float64],
    reach: wp.vec2d,
    how: int,
    x: _Ends,
    e: Edges,
):
    i = first + wp.tid()
    if i >= contours.shape[0]:
        k = i - contours.shape[0]
        _virtual(m, b, k / 2, k % 2, widths[k / 2], reach, i, x, e)
        if x.how[i] == ALONE:
            x.how[i] = how
        return
    ends = contours[i]
    e.a[i] = b.position[ends[0]]
    e.b[i] = b.position[ends[1]]
    e.rate_a[i] = b.velocity[ends[0]]
    e.rate_b[i] = b.velocity[ends[1]]
    x.dart_a[i] = int(b.dart[ends[0]])
    x.dart_b[i] = int(b.dart[ends[1]])
    x.how[i] = how
