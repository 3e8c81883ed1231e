"""First contact of moving analytic bodies with the ground: cylinders, spheres, capsules, boxes, cones, convex meshes.

Question: when does each of n moving, spinning bodies first touch the surface of a terrain?
Method:   conservative advancement, a time of its own for every node of the terrain's pyramid (`traversal`); walls are
          asked about where a body may come near one (`ground_walls`); a path is answered stretch by stretch (`path`).
Sound:    never later than the true time; at `time` the distance is at most separation + tolerance. A body that overlaps
          the surface or lies below it at t = 0 has status START.
Known as: conservative advancement (Mirtich 1996; Zhang, Lee and Kim 2006), time of impact, over a maximum-minimum
          pyramid (mipmap) of heights; Strashnov and Torgashev 2020 take slow motion for granted and have no such test.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import numpy as np
import warp as wp

from tangere.motion import Path, Rigid
from tangere.query.contacts.record import Contacts, DeferredContacts, Kind, Status
from tangere.query.first_contact.heightfield.ground_walls import answers_of
from tangere.query.first_contact.heightfield.path import first_along
from tangere.query.first_contact.options import Accuracy
from tangere.query.first_contact.result import FirstContact, FirstContacts
from tangere.runtime import InputError, UnsupportedError, choose_device, described, using_threads
from tangere.shape import Moving
from tangere.shape.analytic import Analytic


def heightfield_first_contact(
    bodies: Moving,
    terrain: Any,
    *,
    start: Literal["checked", "trusted"] = "checked",
    separation: float = 0.0,
    tolerance: float | None = None,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> FirstContact | FirstContacts:
    """When each moving body first touches the surface of the ground, from above or below, or one of its walls.

    Walls are met at the border and around holes, where the ground ends.

    Args:
        bodies: `wheels.moving(Twist(poses, displacement, rotation))`: n bodies with n motions, or n with 1; or n bodies
            that follow one `Path`.
        terrain: a `Heightfield` or `TiledHeightfield`.
        start: "trusted" does not look whether a body is buried at t = 0.
        separation: distance that already counts as contact [m].
        tolerance: at the returned time the distance is at most separation + tolerance [m]; None means 1e-6 of the
            body's size and way (of a path: of each stretch). What would drown in rounding, about 1e-12 of all lengths
            involved, is refused; below some 1e-9 of them directions lose their digits, and curved bodies at edges
            may end as UNRESOLVED: free until `time`, and near by then.
        device: where to compute; None means where the data is, else CUDA if present.
        threads: CPU threads; None means all, or TANGERE_THREADS.

    Returns:
        For n bodies or n motions one answer each: a is the body, b the ground; `weights` and `kind` are None. For one
        body with one motion a `FirstContact`.
    """
    accuracy = Accuracy(separation=separation, tolerance=tolerance)
    _check(bodies, start)
    on, trusted = choose_device(device, bodies.shape.poses), start == "trusted"

    def search(batch: Moving, without_start: bool) -> np.ndarray:
        return answers_of(batch, terrain, accuracy, without_start, on)

    if threads is None and not isinstance(bodies.motion, Path):
        answers = search(bodies, trusted)
    else:
        with using_threads(threads):
            if isinstance(bodies.motion, Path):
                answers = first_along(bodies, trusted, search)
            else:
                answers = search(bodies, trusted)
    _refuse_small(answers["tolerance"], accuracy.tolerance)
    if len(bodies.shape) == 1 and getattr(bodies.motion, "shape", ()) == ():
        return _of_one(answers)
    return FirstContacts(
        time=answers["time"].copy(),
        time_upper=answers["time_upper"].copy(),
        status=answers["status"].astype(np.uint8),
        point_a=answers["point_a"].copy(),
        point_b=answers["point_b"].copy(),
        normal=answers["normal"].copy(),
    )


def _check(bodies: Any, start: str) -> None:
    if not isinstance(bodies, Moving) or not isinstance(bodies.shape, Analytic):
        given = described(bodies)
        raise UnsupportedError(
            f"heightfield_first_contact() takes moving cylinders, spheres, boxes and the like, not {given}"
        )
    if start not in ("checked", "trusted"):
        raise InputError(f"start must be 'checked' or 'trusted', not {start!r}")
    if not isinstance(bodies.motion, (Rigid, Path)):
        raise UnsupportedError(f"bodies on terrain move by Twist, Screw, Path and the like, not by {bodies.motion!r}")


def _refuse_small(kept: np.ndarray, tolerance: float | None) -> None:
    """Raise if the tolerance could not be kept."""
    if tolerance is None or not (kept > tolerance).any():
        return
    worst = int(np.argmax(kept))
    raise InputError(
        f"tolerance {tolerance!r} is too small for body {worst}, its motion and the ground: rounding would hide"
        f" contacts; at least {kept[worst]:.3g} is possible"
    )


def _of_one(answers: np.ndarray) -> FirstContact:
    """The answer about one body, with its contact; what of the body touches has no number."""
    time, upper = float(answers["time"][0]), float(answers["time_upper"][0])
    status = Status(int(answers["status"][0]))
    if status == Status.FREE:
        return FirstContact(time, upper, status)
    return FirstContact(time, upper, status, DeferredContacts.by(partial(_contacts, answers.copy())))


def _contacts(answers: np.ndarray) -> Contacts:
    return Contacts.of(
        time=answers["time"].copy(),
        point_a=answers["point_a"].copy(),
        point_b=answers["point_b"].copy(),
        normal=answers["normal"].copy(),
        kind=np.where(answers["status"] == Status.START, Kind.OVERLAP, Kind.NONE),
    )
