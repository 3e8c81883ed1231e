"""Cells fine around the tip of a needle and coarse behind it, a few at a time and within a deadline.

Question: which cells are split and merged now, so that the tip is always in a cell of the finest level?
Method:   the cell of the tip first, to the finest level. Then cells farther than 1.5 radii merge, and cells within the
          radius split: wishes come from a search of rings around the tip, so that the rest of the map is not looked
          at. In mode "soft" all is done that the budget allows, coarse cells first, and late steps are counted. In mode
          "hard" a batch is two cells, the nearest, or those that balance asks for before them; none is begun after two
          fifths of the deadline, and what is left is counted as postponed.
          Merges come before other splits, so that they are never starved and the number of cells stays bounded.
Sound:    the cell of the tip is at the finest level after every step, whatever the budget and the deadline.
Known as: multiresolution within a frame: soft and hard real time (Pitiot 2015, sections 2.1, 6.1 and 9.1).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal

import numpy as np
import warp as wp

from tangere.cells.maps import MapArrays, RingTable, may_merge
from tangere.needle.tip_search import TipSearch
from tangere.runtime import SOUND, PreparedLaunch

wp.set_module_options(SOUND)

Mode = Literal["soft", "hard"]
#: Cells to split or merge between two looks at the clock.
_BATCH = 2
#: The part of the deadline after which nothing more is begun in mode "hard": a batch takes about the rest.
_BEGIN = 0.4
#: Cells farther from the tip than so many radii merge.
_FAR = wp.constant(wp.float64(1.5))


@dataclass
class RefinementReport:
    """What was done so far; seconds are of the last step."""

    merged: int = 0
    split: int = 0
    postponed: int = 0  #: wishes left for later, added up over steps
    overruns: int = 0  #: steps that took longer than the deadline
    steps: int = 0
    seconds: float = 0.0
    leaves: int = 0


class TipRefinement:
    """Keeps the cells around the tip of a `TipSearch` fine.

    Args:
        radius: of the fine cells around the tip [m].
        level: of the finest cells.
        budget: at most so many merges and as many splits in a step, besides those of the tip's own cell and those that
            balance asks for; None: all.
        deadline: of a step [s].
    """

    def __init__(
        self,
        search: TipSearch,
        *,
        radius: float,
        level: int,
        mode: Mode = "soft",
        budget: int | None = None,
        deadline: float = 1.0 / 30.0,
    ) -> None:
        self._search, self._registration, self._map = search, search.anatomy.registration, search.map
        self.radius, self.level = radius, min(level, search.map.level_limit)
        self.mode, self.budget, self.deadline = mode, budget, deadline
        self.report = RefinementReport(leaves=len(self._map.leaves))
        self._count = wp.zeros(2, dtype=wp.int32, device=self._map.device)
        self._counted = self._count.numpy()
        self._packed: tuple[object, ...] = ()

    def step(self) -> None:
        """Split and merge for where the tip is now."""
        began, report = time.perf_counter(), self.report
        while self._map.levels[cell := self.tip_cell] < self.level:
            self._split(np.array([cell]))
        left = self._merge_far(began) + self._split_near(began)
        report.postponed += left
        report.steps += 1
        report.leaves = len(self._map.leaves)
        report.seconds = time.perf_counter() - began
        report.overruns += report.seconds > self.deadline

    @property
    def tip_cell(self) -> int:
        """The cell of the tip."""
        return int(self._map.host("cell")[self._search.dart[0]])

    def _late(self, began: float) -> bool:
        return self.mode == "hard" and time.perf_counter() - began > _BEGIN * self.deadline

    def _merge_far(self, began: float) -> int:
        """Merge what is far; returns how many that may merge are left."""
        far = self._list(_far_parents)
        if len(far):
            far = far[may_merge(self._map, far, balanced=True)]
        todo = far if self.budget is None else far[: self.budget]
        done = 0
        while done < len(todo) and not self._late(began):
            batch = todo[done : done + _BATCH] if self.mode == "hard" else todo[done:]
            merged = self._registration.merge(batch, balanced=True)
            self._search.follow_merges()
            self._search.refresh(merged)
            self.report.merged += len(merged)
            done += len(batch)
        return len(far) - done

    def _split_near(self, began: float) -> int:
        """Split what is near; returns how many wishes are left."""
        left = np.inf if self.budget is None else self.budget
        while len(near := self._list(_near_leaves)):
            if left <= 0 or self._late(began):
                return len(near)
            if self.mode == "soft":
                near = near[np.argsort(self._map.levels[near], kind="stable")]
            most = min(left, _BATCH if self.mode == "hard" else len(near))
            batch = near[: int(most)]
            if self.mode == "hard":  # no more than these, whatever balance asks for first
                batch = np.unique([self._coarsest(int(cell)) for cell in batch])
            self._split(batch)
            left -= len(batch)
        return 0

    def _coarsest(self, cell: int) -> int:
        """The cell, or one that has to be split before it: it has no coarser neighbour."""
        levels, rings = self._map.levels, self._map.rings
        while len(coarser := (ring := rings.row(cell))[levels[ring] < levels[cell]]):
            cell = int(coarser[0])
        return cell

    def _split(self, cells: np.ndarray) -> None:
        done = self._registration.split(cells, balanced=True)
        self._search.refresh(self._map.children_of(done))
        self.report.split += len(done)

    def _list(self, kernel: wp.Kernel) -> np.ndarray:
        """The cells that a kernel wishes."""
        map, s, t = self._map, self._search.search, self._search.tip_arrays
        now = map.arrays.cell_level, map.arrays.phi1, map.rings.table.cells, s.low
        if not self._packed or any(a is not b for a, b in zip(now, self._packed, strict=True)):
            self._packed = now
            wishes, mark, queue = (wp.zeros(map.cell_capacity, dtype=wp.int32, device=map.device) for _ in range(3))
            self._wishes = wishes.numpy()
            inputs = [map.arrays, map.rings.table, s.low, s.high, t.tip, t.dart, self.radius, self.level]
            self._wish = {
                one: PreparedLaunch(one, [*inputs, mark, queue, wishes, self._count], map.device, dim=1, serial=True)
                for one in (_far_parents, _near_leaves)
            }
        self._wish[kernel].run()
        return self._wishes[: self._counted[0]].astype(np.int64)


@wp.func
def _gap(x: wp.vec3d, low: wp.vec3d, high: wp.vec3d) -> wp.float64:
    """The distance of a point to a box."""
    total = wp.float64(0.0)
    for k in range(3):
        apart = wp.max(wp.max(low[k] - x[k], x[k] - high[k]), wp.float64(0.0))
        total += apart * apart
    return wp.sqrt(total)


@wp.kernel
def _near_leaves(
    first: int,
    m: MapArrays,
    table: RingTable,
    low: wp.array[wp.vec3d],
    high: wp.array[wp.vec3d],
    tip: wp.array[wp.vec3d],
    dart: wp.array[int],
    radius: wp.float64,
    level: int,
    mark: wp.array[int],
    queue: wp.array[int],
    wishes: wp.array[int],
    wished: wp.array[int],
):
    """Leaves below the level within the radius of the tip, ring by ring."""
    stamp = wished[1] + 1
    wished[1] = stamp
    count = int(0)
    queue[0] = int(m.cell[dart[0]])
    mark[queue[0]] = stamp
    head = int(0)
    tail = int(1)
    while head < tail:
        c = queue[head]
        head += 1
        if m.cell_level[c] < level:
            wishes[count] = c
            count += 1
        for k in range(table.size[c]):
            x = table.cells[c * table.width + k]
            if mark[x] != stamp:
                mark[x] = stamp
                if _gap(tip[0], low[x], high[x]) <= radius:
                    queue[tail] = x
                    tail += 1
    wished[0] = count


@wp.kernel
def _far_parents(
    first: int,
    m: MapArrays,
    table: RingTable,
    low: wp.array[wp.vec3d],
    high: wp.array[wp.vec3d],
    tip: wp.array[wp.vec3d],
    dart: wp.array[int],
    radius: wp.float64,
    level: int,
    mark: wp.array[int],
    queue: wp.array[int],
    wishes: wp.array[int],
    wished: wp.array[int],
):
    """Cells farther than some radii whose children are all leaves."""
    count = int(0)
    for c in range(m.counts[4]):
        if m.cell_level[c] >= 0 and m.first_child[c] >= 0:
            if _gap(tip[0], low[c], high[c]) > _FAR * radius:
                leaves = bool(True)
                child = int(m.first_child[c])
                while child >= 0 and leaves:
                    leaves = m.first_child[child] < 0
                    child = m.sibling[child]
                if leaves:
                    wishes[count] = c
                    count += 1
    wished[0] = count
