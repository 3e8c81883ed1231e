"""Maps of cells that split and merge, points tracked through them, and who is present in and near each cell.

Ten lines are enough to plug it into something else: create points, segments and triangles, ask who is where, and
split and merge by a criterion or on request::

    from tangere.cells.generate import hex_grid
    from tangere.cells.registration import NearPoint, Registration, adapt
    block = hex_grid(4, 4, 4, size=0.25)
    tip, nerve = [0.51, 0.52, 0.53], [[0.1, 0.42, 0.47], [0.9, 0.46, 0.48]]
    skin = [[0.45, 0.44, 0.46], [0.66, 0.45, 0.47], [0.46, 0.65, 0.45]]
    world = Registration(block, [tip, *nerve, *skin], segments=[[1, 2]], triangles=[[3, 4, 5]])
    merged, split = adapt(world, NearPoint(tip, radius=0.1, level=2))
    cell = int(world.cells[0])
    beside = {kind: world.near(kind, cell).tolist() for kind in ("segments", "triangles")}
    world.split([cell])
"""

from tangere.cells.counting_sort import (
    CellGroups,
    count_shard,
    first_at_least,
    group_by_cell,
    scan_counts,
    shard_begin,
)
from tangere.cells.density import Density
from tangere.cells.index_checks import checked_indices

__all__ = [
    "CellGroups",
    "Density",
    "checked_indices",
    "count_shard",
    "first_at_least",
    "group_by_cell",
    "scan_counts",
    "shard_begin",
]
