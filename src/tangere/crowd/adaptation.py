"""When and where the cells of a crowd's map are split and merged.

Question: which cells change now, and is it worth the cost?
Method:   cells that hold many are split and cells that hold few are merged, by the marks of `agents.density`. Changing
          the map costs much the same for one cell as for many, so it is put off until a part of the cells is to change,
          for a few times at most; with a budget nothing is put off.
Sound:    whoever aims at a dart that a merge takes away aims at one of the same cell before a split reuses it.
Known as: adaptive multiresolution of the environment, by density (Pitiot 2015, chapters 5 and 6).
"""

from __future__ import annotations

import numpy as np

from tangere.cells import Density
from tangere.cells.maps import CellMap, merge, replace_merged_darts, split
from tangere.crowd.agents.body_agents import BodyAgents
from tangere.crowd.agents.density import DensityMarks
from tangere.crowd.agents.population import Population

#: A change is put off until this part of the cells is to be split or merged, for so many times at most.
_WORTHWHILE_PART, _PUT_OFF_AT_MOST = 0.15, 8


class CellAdaptation:
    """Splits and merges the cells that agents are in.

    Args:
        limit: when cells split and merge; None: never. finest: no cell gets finer than this level.
        every: steps between looks at the density.
        budget: at most so many splits and as many merges at a time, and nothing is put off; None: all.
    """

    def __init__(
        self,
        map: CellMap,
        points: Population,
        bodies: BodyAgents,
        limit: Density | None,
        *,
        finest: int,
        every: int,
        budget: int | None,
    ) -> None:
        self.limit, self.finest, self.every, self.budget = limit, finest, every, budget
        self.operations = [0, 0]  #: merges and splits so far
        self.fitted = False  #: whether the cells were fitted to all agents since some were added
        self._map, self._points, self._bodies = map, points, bodies
        self._marks: DensityMarks | None = None
        self._put_off = 0

    def update_cells(self) -> None:
        """After the map or the agents have changed: marks are made anew."""
        self._marks = None

    def choose(self, least_part: float, steps: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Cells to merge and cells to split; None if they are not more than this part of all.

        Args:
            steps: done so far.
        """
        if self.limit is None:
            return None
        if self._marks is None or self._marks.limit != self.limit:
            self._marks = DensityMarks(self._map, self._points.arrays, self.limit, self.finest)
        few, many = self._marks.cells_to_change(self._bodies.edges.arrays, self.budget, steps // self.every)
        return None if len(few) + len(many) <= least_part * self._marks.leaves else (few, many)

    def change(self, few: np.ndarray, many: np.ndarray) -> int:
        """Merge and split these cells; returns how many were."""
        merged = merge(self._map, few, balanced=True)
        if len(merged):
            # Before a split takes the places of darts that are gone.
            replace_merged_darts(self._map, self._points.arrays.dart)
            self._bodies.replace_merged_darts()
        new = split(self._map, many, balanced=True)
        self.operations = [self.operations[0] + len(merged), self.operations[1] + len(new)]
        return len(merged) + len(new)

    def least_part_now(self) -> float:
        """The part of the cells that has to be due for a change this time."""
        self._put_off += 1
        return 0.0 if self.budget is not None or self._put_off >= _PUT_OFF_AT_MOST else _WORTHWHILE_PART

    def begin_waiting(self) -> None:
        """After a change: the next ones may be put off again."""
        self._put_off = 0
