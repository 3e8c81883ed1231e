"""Edges of bodies by cell: contours, and the virtual edges that reach ahead of them.

Question: which edges does an agent in this cell see?
Method:   an edge is in every cell it crosses (marched unless both ends are in one convex cell), and cells hold lists
          of their edges. A virtual edge runs from the centroid of a body's head to where it will be after the horizon,
          cut at the first wall; a body wider than it runs far gets two, a wedge as wide as itself.
          On surfaces, edges are in the cells of their ends and there are no virtual ones.
Spec: specs/pitiot-multiresolution-interactions 2.12, 2.21.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.cells.maps.cell_map import CellMap
from tangere.cells.tracking.locate import locate_darts
from tangere.cells.tracking.march import march_cells, move_darts
from tangere.crowd.arrays import Edges

__all__ = ["MovingEdges"]


class MovingEdges:
    """The edges of all bodies, where they are now.

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
        self.map, self.contours, self.owners, self.widths = map, contours, owners, widths
        self.horizon = horizon if map.dimension == 2 and map.flat else 0.0
        self.wedge = wedge
        self.marched = 0  #: edges marched in the last update
        self.arrays = self._listed(*(np.empty((0, 3)) for _ in range(4)), *(np.empty(0, np.int64) for _ in range(4)))
        self._hub_darts: wp.array | None = None

    def update(self, position: np.ndarray, velocity: np.ndarray, darts: np.ndarray, head: list[np.ndarray]) -> None:
        """Register all edges anew.

        Args:
            position, velocity: (p, 3) of particles. darts: (p,) theirs.
            head: three arrays (b, 3): centroid and velocity of each body's head, and the direction to its left.
        """
        a, b = self.contours.T
        ends = [position[a], position[b], velocity[a], velocity[b]]
        owner, ahead, start = self.owners, np.zeros(len(a), np.int64), darts[a]
        cell = self.map.arrays.cell.numpy()
        other = darts[b]
        if self.horizon > 0 and len(self.widths):
            more, whose, from_dart = self._virtual(*head)
            ends = [np.concatenate([x, y]) for x, y in zip(ends, more)]
            owner, start = np.concatenate([owner, whose]), np.concatenate([start, from_dart])
            ahead = np.concatenate([ahead, np.ones(len(whose), np.int64)])
            other = np.concatenate([other, np.full(len(whose), -1)])
        if not (self.map.flat or self.map.dimension == 3):
            pairs = np.unique(
                np.concatenate([np.stack([np.arange(len(a)), cell[d]], 1) for d in (start, other)]), axis=0
            )
            self.arrays = self._listed(*ends, owner, ahead, pairs[:, 0], pairs[:, 1])
            return
        known = other >= 0
        single = np.zeros(len(start), bool)
        if self.map.has_convex_cells:
            single[known] = cell[start[known]] == cell[other[known]]
        far = np.flatnonzero(~single)
        pairs = [np.stack([np.flatnonzero(single), cell[start[single]]], axis=1)]
        self.marched = len(far)
        found, blocked = self._crossed(ends[0][far], ends[1][far], start[far])
        pairs.append(np.stack([far[found[:, 0]], found[:, 1]], axis=1))
        back = far[blocked]
        back = back[known[back]]  # a wall is in the way: the cells from the other end as well
        found, _ = self._crossed(ends[1][back], ends[0][back], other[back])
        pairs.append(np.stack([back[found[:, 0]], found[:, 1]], axis=1))
        rows = np.unique(np.concatenate(pairs), axis=0)
        self.arrays = self._listed(*ends, owner, ahead, rows[:, 0], rows[:, 1])

    def _virtual(
        self, centre: np.ndarray, velocity: np.ndarray, left: np.ndarray
    ) -> tuple[list, np.ndarray, np.ndarray]:
        """Ends, owners and start darts of the virtual edges."""
        hubs = self._device(centre)
        darts, status = locate_darts(self.map, hubs, self._hub_darts)
        outside = status.numpy() != 0
        if outside.any():  # a hub behind a wall as the walk saw it: look for it everywhere
            darts, status = locate_darts(self.map, hubs, None)
        self._hub_darts = darts
        reach = self.horizon * velocity
        length = np.linalg.norm(reach, axis=1)
        fine = np.flatnonzero((length > 0) & (status.numpy() == 0))
        wide = self.widths > self.wedge * length
        ways = [(fine[~wide[fine]], 0.0), (fine[wide[fine]], 0.5), (fine[wide[fine]], -0.5)]
        whose = np.concatenate([who for who, _ in ways])
        tips = np.concatenate([centre[w] + reach[w] + side * self.widths[w, None] * left[w] for w, side in ways])
        start = darts.numpy()[whose]
        _, time, _ = move_darts(self.map, self._device(centre[whose]), self._device(tips), self._darts(start))
        tips = centre[whose] + time.numpy()[:, None] * (tips - centre[whose])
        ends = [centre[whose], tips, velocity[whose], velocity[whose]]
        return ends, whose, start

    def _crossed(self, a: np.ndarray, b: np.ndarray, darts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if len(a) == 0:
            return np.empty((0, 2), np.int64), np.empty(0, bool)
        pairs, status = march_cells(self.map, self._device(a), self._device(b), self._darts(darts))
        return pairs, status.numpy() == 1

    def _device(self, points: np.ndarray) -> wp.array:
        return wp.array(np.ascontiguousarray(points), dtype=wp.vec3d, device=self.map.device)

    def _darts(self, darts: np.ndarray) -> wp.array:
        return wp.array(darts.astype(np.int32), dtype=wp.int32, device=self.map.device)

    def _listed(self, a, b, rate_a, rate_b, owner, ahead, edge, cells) -> Edges:
        """The arrays for kernels; `edge` and `cells` are sorted pairs."""
        order = np.argsort(cells, kind="stable")
        ints = {
            "owner": owner,
            "ahead": ahead,
            "first": np.searchsorted(edge, np.arange(len(a) + 1)),
            "cells": cells,
            "edge": edge,
            "start": np.searchsorted(cells[order], np.arange(self.map.cell_capacity + 1)),
            "entry": order,
        }
        e = Edges()
        for name, values in ints.items():
            setattr(e, name, wp.array(values.astype(np.int32), dtype=wp.int32, device=self.map.device))
        for name, points in {"a": a, "b": b, "rate_a": rate_a, "rate_b": rate_b}.items():
            setattr(e, name, self._device(points))
        return e
