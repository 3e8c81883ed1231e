"""Screws: a turn of at most half a revolution about an axis together with a slide along it, between two poses.

Question: the motion from one pose to another that turns about one axis only.
Method:   rotation vector of the pose change through the quaternion; the slide is the part of the way along the axis.
          The pivot is put on the axis where that is near, so that it has no acceleration; for small turns the axis is
          far away or nowhere, and the body's origin goes along the arc instead.
Known as: the screw of Chasles' theorem, ScLERP of dual quaternions; "mouvement intermédiaire arbitraire dérivé d'un
          vissage" in Redon 2002, sections 2.3 and 3.2.
"""

from __future__ import annotations

import numpy as np

from tangere.motion.kinematics import STEADY
from tangere.motion.poses import as_poses, rotation_between
from tangere.motion.rigid_motion import Rigid, blank_records
from tangere.runtime import Arrays, InputError

#: From this angle on the axis is at most 10 times the way of the body's origin away [rad].
AXIS_IS_NEAR = 0.1
#: Below this a variant of the screw is the plain one: variants are made of quotients of the angle [rad].
NO_TURN = 1e-9


class Screw(Rigid):
    """The screw from one pose to another at constant rates; the rotation is the shorter way round.

    Args:
        start, end: poses at t = 0 and t = 1, shape (4, 4) or (n, 4, 4).
    """

    _kind = STEADY

    def __init__(self, start: Arrays, end: Arrays) -> None:
        name = type(self).__name__
        first, last = as_poses(start, f"{name}: start"), as_poses(end, f"{name}: end")
        try:
            first, last = np.broadcast_arrays(first, last)
        except ValueError as error:
            raise InputError(f"{name}: {len(first)} start poses and {len(last)} end poses") from error
        self._set(self._screws(first.reshape(-1, 4, 4), last.reshape(-1, 4, 4)), first.shape[:-2])

    def _screws(self, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        records = blank_records(len(start))
        axis, angle = rotation_between(start[:, :3, :3], end[:, :3, :3])
        way = end[:, :3, 3] - start[:, :3, 3]
        slide = np.einsum("ni,ni->n", way, axis)[:, None] * axis
        across = way - slide
        half = 0.5 * angle[:, None]
        near = half[:, 0] > 0.5 * AXIS_IS_NEAR
        with np.errstate(divide="ignore", invalid="ignore"):
            to_axis = np.where(near[:, None], 0.5 * (across + np.cross(axis, across) / np.tan(half)), 0.0)
            arc = np.where(half > 0.0, across * half / np.sin(half), across)
        records["kind"] = np.where(angle > NO_TURN, self._kind, STEADY)
        records["angle"], records["axis"] = angle, axis
        records["rotation"] = start[:, :3, :3]
        records["pivot"] = np.einsum("nji,nj->ni", start[:, :3, :3], to_axis)
        records["origin"] = start[:, :3, 3] + to_axis
        records["velocity"] = slide
        records["arc"] = np.where(near[:, None], 0.0, arc)
        return records
