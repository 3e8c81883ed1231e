"""First contact of moving analytic bodies with the walls of ground: of its border and of holes.

Question: does a body that comes from beside the ground touch it there before it touches the surface?
Method:   a ball around its way says which walls a body may meet: none, of those that stay over the ground. Walls are
          meshes (`broad_phase.ground.walls`), for the engine of bodies and meshes (`first_contact.convex`).
Sound:    as that engine and the search of the surface: the earlier of the two is told.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.broad_phase.ground import GroundWalls, WallBlock
from tangere.query.contacts.record import Status
from tangere.query.first_contact.heightfield.query_batch import cut_down, searched
from tangere.query.first_contact.options import Accuracy
from tangere.shape import Moving

#: Columns of an `Answer` that are taken from the contact with a wall.
_TAKEN = "time", "status", "point_a", "point_b", "normal"


def answers_of(bodies: Moving, terrain: Any, accuracy: Accuracy, trusted: bool, device: wp.Device) -> np.ndarray:
    """What each of n bodies finds of the surface and of the walls, as `Answer` records, (n,)."""
    answers, centres, ways = searched(bodies, terrain, accuracy, trusted, device)
    walls = GroundWalls.of(terrain)
    if len(answers) == 1:
        near = walls.near_ball(*centres[0].tolist(), float(ways[0]))
        if not near:
            return answers
        rows, squares = np.zeros(len(near), np.int64), np.array(near)
    else:
        rows, squares = walls.near_balls(centres, ways)
    later = answers["time"][rows] > 0.0
    rows, squares = rows[later], squares[later]
    # A tolerance that was not given is that of the body and its way, cut down so that bodies can be asked together.
    given = accuracy.tolerance is not None
    wanted = np.full(len(rows), accuracy.tolerance) if given else cut_down(answers["tolerance"][rows])
    low, high = (centres[rows, 2] + sign * ways[rows] for sign in (-1.0, 1.0))
    asked: dict[tuple[WallBlock, float], list[int]] = {}
    for row, square, *heights, tolerance in zip(
        *(column.tolist() for column in (rows, squares, low, high, wanted)), strict=True
    ):
        for block in walls.block(square, *heights):
            asked.setdefault((block, tolerance), []).append(row)
    single = bodies.motion.shape == () and len(bodies.shape) == 1
    for (block, tolerance), members in asked.items():
        _ask(answers, np.array(members), bodies, block, accuracy.separation, tolerance, single, device)
    return answers


def _ask(
    answers: np.ndarray,
    rows: np.ndarray,
    bodies: Moving,
    block: WallBlock,
    separation: float,
    tolerance: float,
    single: bool,
    device: wp.Device,
) -> None:
    """Tell of some bodies when they meet some walls, where that is before what is known."""
    # Who stays over the ground does not load the engine.
    from tangere.query.first_contact.convex.query_batch import contacts_of_pairs, moving_side

    side = moving_side(bodies, "body")
    found = contacts_of_pairs(
        side if single else side[rows], moving_side(block.mesh, "wall"), separation, tolerance, device
    )
    known = answers[rows]
    sooner = (found["status"] != Status.FREE) & (found["time"] < known["time"])
    for name in _TAKEN:
        known[name][sooner] = found[name][sooner]
    known["time_upper"] = np.minimum(known["time_upper"], found["time_upper"])
    known["tolerance"] = np.maximum(known["tolerance"], np.where(sooner, found["tolerance"], 0.0))
    answers[rows] = known
