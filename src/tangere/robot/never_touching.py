"""Proof that two links of a robot never touch, whatever their joints do within their limits.

Question: is there a configuration at which two links touch?
Method:   of the joints between the links one is swept over its whole range as one motion; the ranges of the others are
          cut into cells. In a cell no point of the links is farther from where it is at the cell's middle than
          reach = sum of rho_k h_k, where rho_k bounds the distance of what joint k moves to its axis and h_k is half
          the cell. If the links stay farther apart than that along the sweep at the middle, they do so in the whole
          cell. Else the cell is halved along the largest rho_k h_k, unless the sweep itself touches.
Sound:    "never" is a proof by the same certificates as `least_clearance`. "open" says nothing.
Known as: interval subdivision of configuration space (Zhang, Kim and Manocha 2007, on path non-existence).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import warp as wp

from tangere.query.articulated import ArticulatedQueries
from tangere.robot.workcell import Workcell

if TYPE_CHECKING:
    from tangere.robot.trajectory_checker import TrajectoryChecker

#: Cells that are asked about at once.
ROOM = 1024
#: A reach below this part of the links' size is not cut further [m].
LEAST_REACH = 1e-3
#: Links that never come nearer than this do not touch [m].
LEAST_DISTANCE = 1e-6
#: Room for rounding in a reach.
_ROUNDED_UP = 1.0 + 1e-9


def prove_never(
    checker: TrajectoryChecker, a: int, b: int, ranges: np.ndarray, whole_ranges: np.ndarray, cells: int
) -> tuple[str, np.ndarray | None, int]:
    """Verdict, a configuration at which the links touch if one was found, and how many cells were looked at.

    Args:
        a, b: numbers of two bodies of the checker's cell.
        ranges: of the joints' values, (dof, 2).
        whole_ranges: of which joints, (dof,), these are all values there are: of others nothing is proved.
        cells: at most so many.
    """
    cell = checker.cell
    rho = reaches(cell, a, b, ranges)
    span = ranges[:, 1] - ranges[:, 0]
    swept = int(np.argmax(rho * span))
    queries = ArticulatedQueries(
        cell.meshes,
        cell.parts,
        cell.paths,
        np.array([[a, b]], np.int32),
        checker._joints,
        len(cell.joints),
        ROOM,
        checker.device,
    )
    given = cell.records(np.zeros(1), np.zeros(1))
    half = np.where((rho > 0.0) & (np.arange(len(rho)) != swept), 0.5 * span, 0.0)
    middles, halves = ranges.mean(axis=1)[None], half[None]
    done = 0
    while len(middles):
        if done + len(middles) > cells:
            return "open", None, done
        done += len(middles)
        near = np.zeros(len(middles), bool)
        for first in range(0, len(middles), ROOM):
            rows = slice(first, first + ROOM)
            reach = (halves[rows] * rho).sum(axis=1) * _ROUNDED_UP
            touches, near[rows] = _asked(queries, checker, middles[rows], reach, swept, ranges, given)
            if touches is not None:
                return "touches", touches, done
        middles, halves = middles[near], halves[near]
        widest = np.argmax(halves * rho, axis=1)
        each = np.arange(len(middles))
        if len(middles) and (halves[each, widest] * rho[widest]).min() < LEAST_REACH:
            return "open", None, done
        halves = halves.copy()
        halves[each, widest] *= 0.5
        shift = np.zeros_like(middles)
        shift[each, widest] = halves[each, widest]
        middles, halves = np.concatenate([middles - shift, middles + shift]), np.concatenate([halves, halves])
    return "open" if (rho[~whole_ranges] > 0.0).any() else "never", None, done


def _asked(
    queries: ArticulatedQueries,
    checker: TrajectoryChecker,
    middles: np.ndarray,
    reach: np.ndarray,
    swept: int,
    ranges: np.ndarray,
    given: np.ndarray,
) -> tuple[np.ndarray | None, np.ndarray]:
    """A configuration that touches, if one is met; and which cells come nearer than their reach."""
    count = len(middles)
    ends = np.stack([middles, middles])
    ends[0, :, swept], ends[1, :, swept] = ranges[swept]
    rows = wp.array(ends.reshape(2 * count, -1), dtype=wp.float64, device=checker.device, ndim=2)
    number = np.arange(count)
    reach = np.maximum(reach, LEAST_DISTANCE)
    queries.ask(rows, number, number + count, given, beyond=float(reach.max()))
    near = ~queries.stay_beyond(reach)
    if near.any():
        queries.ask(rows, number[near], number[near] + count, given)
        hits = queries.search()
        touching = np.flatnonzero(hits["pair"] >= 0)
        if len(touching):
            k = int(touching[0])
            found = middles[near][k].copy()
            found[swept] = ranges[swept, 0] + hits["time"][k] * (ranges[swept, 1] - ranges[swept, 0])
            return found, near
    return None, near


def reaches(cell: Workcell, a: int, b: int, ranges: np.ndarray) -> np.ndarray:
    """(dof,) how fast any point of either body moves against the other when a value changes, at most [m per unit]."""
    rho = np.zeros(cell.dof)
    paths = cell.paths[a], cell.paths[b]
    shared = 0
    while shared < min(map(len, paths)) and paths[0][shared] == paths[1][shared]:
        shared += 1
    for body, path in ((a, paths[0][shared:]), (b, paths[1][shared:])):
        for joint, reach in zip(path, _along(cell, path, body, ranges), strict=True):
            rho[cell.value[joint]] += abs(cell.joints[joint].factor) * reach
    return rho


def _along(cell: Workcell, path: tuple[int, ...], body: int, ranges: np.ndarray) -> list[float]:
    """Of each joint of a path: no point of the body is farther from its axis, at any values; 1 for a sliding one."""
    vertices = cell.meshes[body].vertices
    farthest = float(np.linalg.norm(vertices, axis=1).max())
    bounds = []
    for place, joint in enumerate(path):
        axis = cell.joints[joint].axis
        if cell.joints[joint].kind == "sliding":
            bounds.append(1.0)
        elif place == len(path) - 1:
            bounds.append(float(np.linalg.norm(vertices - np.outer(vertices @ axis, axis), axis=1).max()))
        else:
            # The next joint's place keeps its distance to the axis, unless it slides; what hangs on it is a ball.
            below = path[place + 1 :]
            at = cell.origins[below[0], :3, 3]
            ways = [float(np.linalg.norm(cell.origins[k, :3, 3])) for k in below[1:]]
            bounds.append(
                float(np.linalg.norm(at - axis * (at @ axis)))
                + sum(ways)
                + sum(_slide(cell, k, ranges) for k in below)
                + farthest
            )
    return bounds


def _slide(cell: Workcell, joint: int, ranges: np.ndarray) -> float:
    """How far a joint moves its origin at most."""
    told = cell.joints[joint]
    if told.kind != "sliding":
        return 0.0
    return float(np.abs(told.factor * ranges[cell.value[joint]] + told.offset).max())
