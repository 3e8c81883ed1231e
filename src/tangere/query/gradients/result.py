"""What gradients are told: of which answers they can be trusted, and by what of each body they are taken."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np

from tangere.motion import Path, Screw, Twist
from tangere.query.gradients.motion_sensitivity import by_path, by_screw, by_twist
from tangere.runtime import InputError, to_numpy
from tangere.shape import Moving
from tangere.shape.analytic import Analytic
from tangere.shape.mesh import Mesh


class GradientStatus(IntEnum):
    """Whether an answer has a gradient."""

    SMOOTH = 0  #: it has one
    TIE = 1  #: other features are as near: it has slopes on either side, and what is told is one of them
    GRAZING = 2  #: bodies slide past each other where they first touch: the time has no slope; zero is told
    START = 3  #: in contact at the start: zero
    FREE = 4  #: no contact, or farther than was asked for: zero
    TOUCHING = 5  #: surfaces meet, which leaves their distance at 0: zero
    UNRESOLVED = 6  #: the query did not decide: zero

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, eq=False)
class BodyGradients:
    """By what moves one of the two bodies. Of n answers every array has n in front.

    Six numbers of a pose are a displacement of the body's origin and a rotation vector, both in the world and applied
    to the pose as it is: p + v, exp(w) R. Of an analytic body at rest that is the pose it was put `at`; one that moves
    is in the frame of its motion, where it was put, and goes with that. What a body's motion does not have is None.
    """

    body: Mesh | Analytic | Moving
    single: bool
    times: np.ndarray  #: (n,) of the answers
    poses: np.ndarray  #: (n, 4, 4) where the body is then
    slopes: np.ndarray  #: (n, 3) by its point that is nearest, in the world
    points: np.ndarray  #: (n, 3) that point, in the body's frame [m]
    faces: np.ndarray  #: (n,) triangle that holds it, -1 where there is none
    shares: np.ndarray  #: (n, 3) of that triangle's corners in it

    @property
    def point(self) -> np.ndarray:
        """(3,) by the body's nearest point, if that alone is moved in the world."""
        return self._one(self.slopes)

    @cached_property
    def pose(self) -> np.ndarray:
        """(6,) by the pose that the body has at the time of the answer, however it came there."""
        arm = np.einsum("nij,nj->ni", self.poses[:, :3, :3], self.points)
        return self._one(np.concatenate([self.slopes, np.cross(arm, self.slopes)], axis=1))

    @property
    def start(self) -> np.ndarray | None:
        """(6,) by the first pose of a `Twist` or of a `Screw`."""
        return self._by_motion.get("start")

    @property
    def end(self) -> np.ndarray | None:
        """(6,) by the last pose of a `Screw`."""
        return self._by_motion.get("end")

    @property
    def displacement(self) -> np.ndarray | None:
        """(3,) by the displacement of a `Twist`."""
        return self._by_motion.get("displacement")

    @property
    def rotation(self) -> np.ndarray | None:
        """(3,) by the rotation vector of a `Twist`."""
        return self._by_motion.get("rotation")

    @property
    def waypoints(self) -> np.ndarray | None:
        """(k, 6) by the poses of a `Path`."""
        return self._by_motion.get("waypoints")

    @cached_property
    def corners(self) -> np.ndarray:
        """(3,) numbers of the vertices that `vertices` is about; -1 where there is none."""
        mesh = self.body.shape if isinstance(self.body, Moving) else self.body
        if isinstance(mesh, Analytic):
            return self._one(np.full((len(self.faces), 3), -1))
        known = (self.faces >= 0)[:, None]
        return self._one(np.where(known, mesh.faces[np.where(self.faces >= 0, self.faces, 0)], -1))

    @cached_property
    def vertices(self) -> np.ndarray:
        """(3, 3) by the vertices `corners` of the mesh, in its own frame; of a `Linear` motion at its start."""
        back = np.einsum("nji,nj->ni", self.poses[:, :3, :3], self.slopes)
        share = self.shares * (1.0 - self.times)[:, None] if self._deforms else self.shares
        return self._one(share[:, :, None] * back[:, None])

    @cached_property
    def end_vertices(self) -> np.ndarray | None:
        """(3, 3) by the vertices `corners` at the end of a `Linear` motion."""
        if not self._deforms:
            return None
        return self._one((self.shares * self.times[:, None])[:, :, None] * self.slopes[:, None])

    @property
    def _deforms(self) -> bool:
        return isinstance(self.body, Moving) and hasattr(self.body.motion, "end")

    @cached_property
    def _by_motion(self) -> dict[str, np.ndarray]:
        motion: Any = self.body.motion if isinstance(self.body, Moving) else None
        given = self.times, self.points, self.slopes
        found: dict[str, np.ndarray] = {}
        if isinstance(motion, Twist):
            found = by_twist(motion, *given)
        elif type(motion) is Screw:
            found = by_screw(motion.pose(0.0), motion.pose(1.0), *given)
        elif isinstance(motion, Path):
            found = by_path(motion, *given)
        return {name: self._one(value) for name, value in found.items()}

    def _one(self, rows: np.ndarray) -> np.ndarray:
        return rows[0] if self.single else rows


@dataclass(frozen=True, eq=False)
class Gradients:
    """The gradient of an answer by what moves each of the two bodies; of n answers, of each."""

    value: Any  #: what it is the gradient of: a distance [m], or a time; inf where there is none
    time: Any  #: instant of the step at which bodies are looked at
    status: Any  #: `GradientStatus`
    rate: Any  #: how fast the bodies part then [m per step], negative where they approach; NaN where nothing was found
    normal: Any  #: (3,) unit, pushes a away from b
    a: BodyGradients
    b: BodyGradients

    @property
    def smooth(self) -> Any:
        """Whether the gradient is one."""
        return self.status == GradientStatus.SMOOTH

    def by_joints(self, jacobian_a: Any = None, jacobian_b: Any = None) -> np.ndarray:
        """(dof,) by joint values, where these move the bodies.

        Args:
            jacobian_a, jacobian_b: (6, dof) each, or (n, 6, dof): the velocity of the body's origin and its angular
                velocity, in the world, for each joint (`Robot.jacobians`); None for a body that no joint moves.
        """
        sides = [
            (body, to_numpy(jacobian, f"jacobian_{name}"))
            for body, jacobian, name in ((self.a, jacobian_a, "a"), (self.b, jacobian_b, "b"))
            if jacobian is not None
        ]
        if not sides:
            raise InputError("jacobian_a or jacobian_b must be given: without them no joint moves anything")
        for _, jacobian in sides:
            if jacobian.ndim not in (2, 3) or jacobian.shape[-2] != 6:
                raise InputError(f"a jacobian must have shape (6, dof) or (n, 6, dof), not {jacobian.shape}")
        parts = [np.einsum("...i,...ij->...j", body.pose, jacobian) for body, jacobian in sides]
        return parts[0] if len(parts) == 1 else parts[0] + parts[1]

    def __repr__(self) -> str:
        if np.ndim(self.status):
            counts = ", ".join(
                f"{int((self.status == s).sum())} {s}" for s in GradientStatus if (self.status == s).any()
            )
            return f"Gradients({len(self.status)}: {counts or 'none'})"
        return f"Gradients({GradientStatus(int(self.status))}, of {float(self.value):.9g})"
