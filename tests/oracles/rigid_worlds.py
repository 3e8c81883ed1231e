"""What must hold of every state of a rigid world, looked at from outside."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from tangere.dynamics import Body, World
from tangere.motion import Rest
from tangere.query.distance import distance
from tangere.query.intersection import intersects


def meeting_pairs(world: World, ignored: set[tuple[int, int]] = frozenset()) -> list[tuple[int, int]]:
    """The pairs of bodies that meet now by the exact test, of those that are compared."""
    bodies, poses = world.bodies, world.poses
    boxes = np.array([mesh.bounds for mesh in world.meshes()])
    joined = {tuple(sorted((joint.body_a, joint.body_b))) for joint in world.joints} | set(ignored)
    found = []
    for i in range(len(bodies)):
        for j in range(i + 1, len(bodies)):
            same_group = bodies[i].group is not None and bodies[i].group == bodies[j].group
            if (bodies[i].fixed and bodies[j].fixed) or same_group or (i, j) in joined:
                continue
            apart = (boxes[i, 0] > boxes[j, 1]).any() or (boxes[j, 0] > boxes[i, 1]).any()
            if apart and bodies[i].analytic is None and bodies[j].analytic is None:  # facets are inside of formulas
                continue
            if intersects(*(_placed(bodies[k], poses[k]) for k in (i, j)), device="cpu"):
                found.append((i, j))
    return found


def joint_error(world: World, size: float = 1.0) -> float:
    """How far points, axes, turns and coordinates of joints are off, at most, from poses alone [sizes or rad]."""
    worst, poses = 0.0, world.poses
    for joint in world.joints:
        a, b = poses[joint.body_a], np.eye(4) if joint.body_b < 0 else poses[joint.body_b]
        apart = a[:3, :3] @ joint.anchor_a + a[:3, 3] - b[:3, :3] @ joint.anchor_b - b[:3, 3]
        axis = b[:3, :3] @ joint.axis_b
        turned = a[:3, :3] @ joint.relative.T @ b[:3, :3].T
        low, high = joint.limits
        if joint.kind == "slider":
            way = float(axis @ apart)
            worst = max(worst, (low - way) / size, (way - high) / size)
            apart = apart - axis * way
        if joint.kind == "distance":
            apart = np.linalg.norm(apart) - joint.length
        worst = max(worst, float(np.linalg.norm(apart)) / size)
        if joint.kind in ("hinge", "slider"):
            worst = max(worst, float(np.linalg.norm(np.cross(axis, a[:3, :3] @ joint.axis_a))))
        if joint.kind in ("weld", "slider"):
            worst = max(worst, float(np.abs(turned - np.eye(3)).max()))
        if joint.kind == "hinge" and np.isfinite(low):
            sine = 0.5 * axis @ [turned[k - 1, k - 2] - turned[k - 2, k - 1] for k in range(3)]
            angle = np.arctan2(sine, 0.5 * (np.trace(turned) - 1.0))
            worst = max(worst, low - angle, angle - high)
    return worst


def _placed(body: Body, pose: np.ndarray) -> Any:
    """A body where it is: by its formula, or its mesh."""
    return body.mesh.moving(Rest(pose)) if body.analytic is None else body.analytic.at(pose @ body.offset)


class EnergyRule:
    """How much the energy of a world that nothing drives rose above an earlier one.

    The range it had is its kinetic energy and its height above the lowest state, at most: what could have been lost.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        energy = world.energy
        self._lowest, self._floor, self._highest = energy.total, energy.gravitational, energy.total
        self.rise = 0.0  #: [J]

    def look(self) -> None:
        """After a step."""
        energy = self._world.energy
        self._lowest, self._highest = min(self._lowest, energy.total), max(self._highest, energy.total)
        self._floor = min(self._floor, energy.gravitational)
        self.rise = max(self.rise, energy.total - self._lowest)

    @property
    def part(self) -> float:
        """Of the range; 0 where there is none to speak of."""
        mass = sum(body.mass for body in self._world.bodies if body.moves)
        span = max(self._highest - self._floor, 1e-9 * mass)  # of a world at rest: a speed of some 0.05 mm/s
        return self.rise / span


def least_distance(world: World) -> float:
    """Of all pairs of bodies that are compared: how near two of them certainly are not [m].

    Analytic bodies are what their formulas say, and solid.
    """
    poses = world.poses
    joined = {tuple(sorted((joint.body_a, joint.body_b))) for joint in world.joints}
    placed = [_placed(body, pose) for body, pose in zip(world.bodies, poses, strict=True)]
    found = [np.inf]
    for i, j in itertools.combinations(range(len(world)), 2):
        one, other = world.bodies[i], world.bodies[j]
        same_group = one.group is not None and one.group == other.group
        if not ((one.fixed and other.fixed) or same_group or (i, j) in joined):
            found.append(float(np.min(distance(placed[i], placed[j], device="cpu").lower)))
    return min(found)
