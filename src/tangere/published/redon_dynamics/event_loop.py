"""The thesis' simulator: predict, detect, accept or go to the time of contact, respond (Redon 2002, figure 1.1, 6.2).

Question: where are rigid bodies after the next step, or at the first contact on the way there?
Method:   constrained accelerations by Gauss's projection over the contacts (5.8), each biased towards the security
          distance (6.1); the motion is walked with first contact. Nothing met: the step is accepted. Something met: all
          bodies are placed with their motions at t_c, time goes on by t_c of the step, and all contacts bounce at once
          (5.14). Where a contact is nearer than the alert distance, repositioning cycles move bodies by the least
          motion that gives all of them the security distance (6.2), with first contact on.
Sound:    bodies are placed only where first contact has certified the way. Frictionless.
Known as: event-driven simulation; unilateral Baumgarte stabilisation. `tangere.dynamics.World` goes on past contacts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from tangere.motion import Twist
from tangere.published.redon_dynamics.gauss_projection import gauss_projection
from tangere.published.redon_dynamics.impact import simultaneous_impact
from tangere.published.redon_dynamics.rows import curvature_need, jacobian_rows
from tangere.query.contacts import Contacts
from tangere.query.first_contact import PreparedFirstContact
from tangere.query.proximity.posed import PosedProximity, reduce
from tangere.runtime import Arrays, InputError, to_numpy
from tangere.shape.mesh import Mesh

#: The alert and rupture distances of the thesis, in security distances.
ALERT, RUPTURE = 0.44, 2.3
#: Of what lacks, and of the distance: how much of it one step moves contacts apart; the tolerance of first contact.
COUPLING, TOLERANCE = 0.3, 0.02
#: Cycles of repositioning at most.
CYCLES = 20


@dataclass(frozen=True)
class LoopEvent:
    """What one turn of the loop did."""

    kind: str  #: "accepted": the whole step; "contact": to the time of contact
    time: float  #: gone on [s]
    cycles: int  #: of repositioning


class EventLoop:
    """Rigid bodies, stepped from event to event.

    Args:
        meshes: one for each body.
        mass: (n,) [kg]; infinite for bodies that are fixed.
        inertia: (n, 3, 3) about the centre of mass, along the mesh's axes [kg m^2].
        poses: (n, 4, 4) of the meshes, whose origins are the centres of mass.
        velocity: (n, 6) [m/s], [rad/s].
        security: eps_s [m].
        step: length of a step [s].
        order: 2, or 1 for velocities that are what forces do in one second.
    """

    def __init__(
        self,
        meshes: Sequence[Mesh],
        *,
        mass: Arrays,
        inertia: Arrays,
        poses: Arrays,
        velocity: Arrays,
        security: float,
        step: float = 0.01,
        gravity: Sequence[float] = (0.0, 0.0, -9.81),
        restitution: float = 0.0,
        order: int = 2,
    ) -> None:
        if order not in (1, 2):
            raise InputError(f"order is 1 or 2, not {order!r}")
        self.poses, self.velocity = to_numpy(poses, "poses").copy(), to_numpy(velocity, "velocity").copy()
        self.security, self.step, self.restitution, self.order = security, step, restitution, order
        self.time = 0.0  #: simulated [s]
        weight = to_numpy(mass, "mass")
        self._inertia, self._gravity = to_numpy(inertia, "inertia"), np.asarray(gravity, float)
        self._moves = np.flatnonzero(np.isfinite(weight))
        self._mass = weight
        self._row = np.full(len(weight), -1)
        self._row[self._moves] = np.arange(len(self._moves))
        still = ~np.isfinite(weight)
        pairs = np.array(list(combinations(range(len(weight)), 2)), np.int32).reshape(-1, 2)
        self._pairs = pairs[~still[pairs].all(axis=1)]
        self._near = PosedProximity(meshes, device="cpu")
        self._walk = PreparedFirstContact(meshes, device="cpu")
        self._size = float(np.median([mesh.extent for mesh in meshes]))

    def contacts(self) -> Contacts:
        """All contacts nearer than the rupture distance."""
        found = self._near.at(self.poses, self._pairs, RUPTURE * self.security)
        return reduce(found, self._size, 12).contacts

    def next_step(self) -> LoopEvent:
        """Figure 1.1, once."""
        found, h = self.contacts(), self.step
        jacobian, mass = self._rows(found), self._mass_matrix()
        before = self.velocity[self._moves].reshape(-1)
        pull = np.tile(np.r_[self._gravity, np.zeros(3)], len(self._moves))
        lack = np.maximum(self.security - found.gap, 0.0)
        if self.order == 1:
            after = gauss_projection(mass, jacobian, COUPLING * lack / h, pull).motion
        else:
            need = self._curvature(found) + COUPLING * lack / h**2 - jacobian @ before / h
            after = before + h * gauss_projection(mass, jacobian, need, pull).motion
        time = self._go(h * after)
        self.time += time * h
        self.velocity[self._moves] = (before + time * (after - before)).reshape(-1, 6)
        if time < 1.0:
            met = self.contacts()
            now = self.velocity[self._moves].reshape(-1)
            bounced = simultaneous_impact(mass, self._rows(met), now, self.restitution).motion
            self.velocity[self._moves] = bounced.reshape(-1, 6)
        cycles = self.reposition()
        return LoopEvent("accepted" if time >= 1.0 else "contact", time * h, cycles)

    def reposition(self) -> int:
        """Cycles (6.2) until no contact is below the security distance, if one is below the alert distance."""
        found = self.contacts()
        if not (found.gap < ALERT * self.security).any():
            return 0
        for cycle in range(1, CYCLES + 1):
            lack = self.security - found.gap
            motion = gauss_projection(self._mass_matrix(), self._rows(found), lack, np.zeros(6 * len(self._moves)))
            self._go(motion.motion)
            found = self.contacts()
            if not (found.gap < (1.0 - TOLERANCE) * self.security).any():
                return cycle
        return CYCLES

    def _go(self, motion: np.ndarray) -> float:
        """Go along displacements and rotation vectors up to the first contact; how much of them."""
        way = np.zeros((len(self.poses), 6))
        way[self._moves] = motion.reshape(-1, 6)
        keep = np.minimum(self._near.at(self.poses, self._pairs, self.security).least, self.security)
        answer = self._walk.ask(
            self._pairs, self.poses, way[:, :3], way[:, 3:],
            separation=0.5 * ALERT * keep, tolerance=TOLERANCE * keep, start="trusted",
        )  # fmt: skip
        time = min(float(np.min(answer.time, initial=1.0)), 1.0)
        twist = Twist(self.poses, way[:, :3], way[:, 3:])
        self.poses[self._moves] = np.asarray(twist.pose(time))[self._moves]
        return time

    def _mass_matrix(self) -> np.ndarray:
        count = len(self._moves)
        matrix = np.zeros((6 * count, 6 * count))
        for k, body in enumerate(self._moves):
            turn = self.poses[body, :3, :3]
            matrix[6 * k : 6 * k + 3, 6 * k : 6 * k + 3] = self._mass[body] * np.eye(3)
            matrix[6 * k + 3 : 6 * k + 6, 6 * k + 3 : 6 * k + 6] = turn @ self._inertia[body] @ turn.T
        return matrix

    def _arms(self, found: Contacts) -> tuple[np.ndarray, np.ndarray]:
        origin = self.poses[:, :3, 3]
        return found.point_a - origin[found.body_a], found.point_b - origin[found.body_b]

    def _rows(self, found: Contacts) -> np.ndarray:
        return jacobian_rows(
            len(self._moves), self._row[found.body_a], self._row[found.body_b], *self._arms(found), found.normal
        )

    def _curvature(self, found: Contacts) -> np.ndarray:
        arm_a, arm_b = self._arms(found)
        motion_a, motion_b = self.velocity[found.body_a], self.velocity[found.body_b]
        approach = motion_a[:, :3] + np.cross(motion_a[:, 3:], arm_a)
        approach -= motion_b[:, :3] + np.cross(motion_b[:, 3:], arm_b)
        turning = np.where((found.vertex_on == 1)[:, None], motion_a[:, 3:], motion_b[:, 3:])
        return curvature_need(
            motion_a[:, 3:], motion_b[:, 3:], arm_a, arm_b, approach, found.normal, np.cross(turning, found.normal)
        )
