"""When cells split and merge: by density, near a point, or as a function says; within a level and a budget.

Question: which cells should be finer, and which coarser?
Method:   a criterion looks at a registration and gives two priorities per cell: how much a leaf is to be split and how
          much a split cell is to be merged; not above zero is not at all. `adapt` takes the highest first, merges
          before splits. Cells whose children differ in walls or obstacles do not merge, whatever the criterion says.
          A budget counts what can be done: cells that may not merge yet do not use it up.
Known as: multiresolution criteria (Pitiot 2015, sections 6.1, 8.3.3 and 9.1.2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tangere.cells.maps.refinement.split_merge import may_merge
from tangere.cells.registration.registration import Registration
from tangere.runtime import Arrays, InputError

#: (split, merge) priorities, one number per cell.
Criterion = Callable[[Registration], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class NearPoint:
    """Cells within `radius` [m] of a point go up to `level`; cells farther than 1.5 times that go back."""

    point: Arrays
    radius: float
    level: int

    def __post_init__(self) -> None:
        point = np.asarray(self.point, dtype=float).reshape(-1)
        if len(point) not in (2, 3) or not np.isfinite(point).all():
            raise InputError(f"NearPoint needs a point of two or three coordinates [m], not {self.point}")
        if not 0 <= self.radius < np.inf or self.level < 0:
            raise InputError(f"NearPoint needs a radius and a level >= 0, not {self.radius} and {self.level}")

    def __call__(self, registration: Registration) -> tuple[np.ndarray, np.ndarray]:
        map = registration.map
        point = np.zeros(3)
        point[: len(np.asarray(self.point))] = self.point
        away = np.full(map.cell_capacity, np.inf)
        darts = map.darts
        cell = map.numpy("cell")[darts]
        np.minimum.at(away, cell, np.linalg.norm(map.positions[map.numpy("origin")[darts]] - point, axis=1))
        leaves, parent = map.leaves, map.arrays.parent.numpy()
        away[leaves] = np.minimum(away[leaves], np.linalg.norm(map.arrays.centre.numpy()[leaves] - point, axis=1))
        nearest = np.full(map.cell_capacity, np.inf)
        children = leaves[parent[leaves] >= 0]
        np.minimum.at(nearest, parent[children], away[children])
        priority = np.where(map.levels < self.level, self.radius - away, -1.0)
        # The cell the point is in is near whatever its size.
        held = registration.map.arrays.cell.numpy()[_dart_of(registration, point)]
        if map.levels[held] < self.level:
            priority[held] = self.radius
        keep = parent[held] if map.levels[held] > 0 else -1
        merge = np.where(np.isfinite(nearest), nearest - 1.5 * self.radius, -1.0)
        if keep >= 0:
            merge[keep] = -1.0
        return priority, merge


def adapt(
    registration: Registration,
    criterion: Criterion,
    *,
    level_limit: int = 8,
    budget: int | None = None,
    balanced: bool = True,
) -> tuple[np.ndarray, np.ndarray]:
    """Merge and split cells as a criterion says, once; returns the cells merged and the cells split.

    Args:
        level_limit: no cell gets finer than this level.
        budget: at most so many merges and as many splits, the highest first; None: all. Splits that balance
            asks for come on top.
        balanced: keep cells that share a vertex within one level of each other.
    """
    map = registration.map
    if level_limit < 0 or (budget is not None and budget < 0):
        raise InputError(f"level_limit and budget must not be negative, but are {level_limit} and {budget}")
    level_limit = min(level_limit, map.level_limit)
    _, priority = _priorities(criterion, registration)
    levels, child, parent = map.levels, map.arrays.first_child.numpy(), map.arrays.parent.numpy()
    inner = (levels >= 0) & (child >= 0)
    has_inner_child = np.zeros(len(levels), bool)
    has_inner_child[parent[inner & (parent >= 0)]] = True
    wanted = _highest(priority, inner & ~has_inner_child)
    # Those that may not merge yet must not use up the budget of those behind them.
    wanted = wanted[may_merge(map, wanted, balanced=balanced)][:budget]
    merged = registration.merge(wanted, balanced=balanced)
    priority, _ = _priorities(criterion, registration)
    leaf = np.zeros(map.cell_capacity, bool)
    leaf[map.leaves] = True
    wanted = _highest(priority, leaf & (map.levels < level_limit))[:budget]
    split = registration.split(wanted, balanced=balanced)
    return merged, split


def _priorities(criterion: Criterion, registration: Registration) -> tuple[np.ndarray, np.ndarray]:
    split, merge = (np.asarray(priority, dtype=float) for priority in criterion(registration))
    capacity = registration.map.cell_capacity
    if split.shape != (capacity,) or merge.shape != (capacity,):
        raise InputError(f"criterion: gives priorities of shapes {split.shape} and {merge.shape} for {capacity} cells")
    return split, merge


def _highest(priority: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """The allowed cells of a priority above zero, the highest first."""
    cells = np.flatnonzero(allowed & (priority > 0))
    return cells[np.argsort(-priority[cells], kind="stable")]


def _dart_of(registration: Registration, point: np.ndarray) -> int:
    from tangere.cells.tracking.locate import locate

    return int(locate(registration.map, point[None]).dart[0])
