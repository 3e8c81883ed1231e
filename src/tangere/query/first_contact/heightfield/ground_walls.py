"""First contact of moving analytic bodies with the walls of ground: of its border and of holes.

Question: does a body that comes from beside the ground touch it there before it touches the surface?
Method:   a ball around its way says that a body cannot reach a wall, which is so of all that stay over the ground; of
          the others boxes around slices of the way say which walls they may meet. These are meshes
          (`broad_phase.ground.walls`), for the engine of bodies and meshes (`first_contact.convex`).
Sound:    as that engine and the search of the surface: the earlier of the two is told.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.broad_phase.bodies import swept_boxes
from tangere.broad_phase.ground import GroundWalls, WallBlock
from tangere.query.contacts.record import Status
from tangere.query.first_contact.heightfield.query_batch import cut_down, searched
from tangere.query.first_contact.options import Accuracy
from tangere.query.listed_bodies import Extent, ball_radius
from tangere.runtime import to_numpy
from tangere.shape import Moving

#: Columns of an `Answer` that are taken from the contact with a wall.
_TAKEN = "time", "status", "point_a", "point_b", "normal"


def answers_of(bodies: Moving, terrain: Any, accuracy: Accuracy, trusted: bool, device: wp.Device) -> np.ndarray:
    """What each of n bodies finds of the surface and of the walls, as `Answer` records, (n,)."""
    answers, centres, ways = searched(bodies, terrain, accuracy, trusted, device)
    walls = GroundWalls.of(terrain)
    if len(answers) == 1:
        x, y, _ = centres[0].tolist()
        if not walls.may_meet_ball(x, y, float(ways[0])):
            return answers
        rows = np.zeros(1, np.int64)
    else:
        rows = walls.may_meet_balls(centres, ways)
    rows = rows[answers["time"][rows] > 0.0]
    if len(rows):
        _take_walls(answers, rows, bodies, walls, accuracy, device)
    return answers


def _take_walls(
    answers: np.ndarray, rows: np.ndarray, bodies: Moving, walls: GroundWalls, accuracy: Accuracy, device: wp.Device
) -> None:
    """Tell of some bodies what they meet of walls before the surface, or that they begin in one."""
    single = bodies.motion.shape == () and len(bodies.shape) == 1
    # A tolerance that was not given is that of the body and its way, cut down so that bodies can be asked together.
    kept = cut_down(answers["tolerance"][rows])
    asked: dict[tuple[Any, float], list[int]] = {}
    margins = answers["tolerance"][rows] + accuracy.separation
    for row, boxes, tolerance in zip(rows.tolist(), _boxes(bodies, rows, margins, device), kept, strict=True):
        near = walls.near(boxes[:, 0], boxes[:, 1])
        wanted = tolerance if accuracy.tolerance is None else accuracy.tolerance
        for block in walls.blocks(near, float(boxes[:, 0, 2].min()), float(boxes[:, 1, 2].max())):
            asked.setdefault((block, float(wanted)), []).append(row)
    for (block, tolerance), members in asked.items():
        _ask(answers, np.array(members), bodies, block, accuracy.separation, tolerance, single, device)


def _boxes(bodies: Moving, rows: np.ndarray, margins: np.ndarray, device: wp.Device) -> np.ndarray:
    """(k, SLICES, 2, 3) boxes around slices of the ways of some bodies, grown by margins [m]."""
    shape, motion = bodies.shape, bodies.motion
    poses = to_numpy(shape.poses, "poses").reshape(-1, 4, 4)
    shapes, motions = [], []
    for row in rows.tolist():
        own = min(row, len(poses) - 1)
        reach = ball_radius(shape[own] if len(shape) > 1 else shape)
        shapes.append(Extent(np.stack([poses[own, :3, 3] - reach, poses[own, :3, 3] + reach])))
        motions.append(motion[min(row, motion.shape[0] - 1)] if motion.shape else motion)
    grown = margins * (1.0 + 1e-9)
    boxes = swept_boxes(shapes, motions, 0.0, device=device).astype(np.float64)
    boxes[:, :, 0] -= grown[:, None, None]
    boxes[:, :, 1] += grown[:, None, None]
    return boxes


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
