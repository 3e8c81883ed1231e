"""How crowded cells are to be: the criterion by which maps adapt to the points in them.

Question: how many points in a cell are too many, and how few are few enough for a merge?
Method:   two numbers, far enough apart that a merge is not undone at once.
Known as: a refinement criterion, by density (Pitiot 2015, sections 6.1 and 8.3.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tangere.runtime import InputError


@dataclass(frozen=True)
class Density:
    """Split a cell with more than `split` points, merge children with at most `merge` points together.

    `merge` is at most half of `split`, so that a merge is not undone at once.
    """

    split: int = 8
    merge: int = 4

    def __post_init__(self) -> None:
        for count in (self.split, self.merge):
            if isinstance(count, bool) or not isinstance(count, (int, np.integer)):
                raise InputError(f"Density counts points: split and merge are whole numbers, not {count!r}")
        if not 0 <= 2 * self.merge <= self.split:
            raise InputError(f"Density needs 0 <= 2 merge <= split, not split {self.split} and merge {self.merge}")

    def __call__(self, registration: Any) -> tuple[np.ndarray, np.ndarray]:
        """Priorities per cell, to split and to merge, as `tangere.cells.registration.adapt` takes them."""
        capacity = registration.map.cell_capacity
        count = np.bincount(registration.cells, minlength=capacity)
        total = np.zeros(capacity)
        leaves, parent = registration.map.leaves, registration.map.arrays.parent.numpy()
        children = leaves[parent[leaves] >= 0]
        np.add.at(total, parent[children], count[children])
        return (count - self.split).astype(float), self.merge + 1 - total
