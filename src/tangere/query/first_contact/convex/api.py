"""First contact of moving analytic bodies: spheres, capsules, boxes, cylinders, cones and hulls, each with each, or a
mesh.

Question: when do two solid convex bodies, or one and the surface of a rigid mesh, first come within `separation`?
Method:   conservative advancement with supports that turn with the bodies (`conservative_advancement`); a path is
          answered stretch by stretch (`path`), a mesh through its tree (`mesh_search`). One kernel a pair of kinds,
          compiled when first asked.
Sound:    never later than the true time; at `time` the distance is at most separation + tolerance. Bodies that overlap,
          or are nearer than the separation, at t = 0 have status START.
Known as: continuous collision detection of convex primitives, time of impact (Mirtich 1996; Zhang, Lee and Kim 2006).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import warp as wp

from tangere.motion import Path
from tangere.query.contacts.record import Contacts, DeferredContacts, Kind, Status
from tangere.query.distance.convex.bodies import paired_count
from tangere.query.first_contact.convex.path import first_along_paths
from tangere.query.first_contact.convex.query_batch import MovingSide, contacts_of_pairs, moving_side
from tangere.query.first_contact.options import Accuracy, Start, check_start
from tangere.query.first_contact.result import FirstContact, FirstContacts
from tangere.runtime import InputError, choose_device, using_threads
from tangere.shape import Moving
from tangere.shape.analytic import Analytic
from tangere.shape.mesh import Mesh


def convex_first_contact(
    a: Analytic | Mesh | Moving,
    b: Analytic | Mesh | Moving,
    *,
    start: Start = "checked",
    separation: float = 0.0,
    tolerance: float | None = None,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> FirstContact | FirstContacts:
    """When analytic bodies first touch each other, or a mesh: one pair, or n with n, or n with 1.

    Args:
        a, b: analytic bodies, or one of them a rigid mesh, at rest or moving by `Twist`, `Screw`, `Path`, a link of a
            `Chain` … A mesh is a surface: wholly inside a body it overlaps it, a body wholly inside it is free.
        start: "checked" and "trusted" are the same here: whether bodies overlap at t = 0 is known at once.
        separation: distance that already counts as contact [m].
        tolerance: at the returned time the distance is at most separation + tolerance [m]; None means 1e-6 of the
            larger body's size and way (of a path: of each stretch). What would drown in rounding, about 1e-12 of all
            lengths involved, is refused.
        device: where to compute; None means where the data is, else CUDA if present.
        threads: CPU threads; None means all, or TANGERE_THREADS.
    """
    accuracy = Accuracy(separation=separation, tolerance=tolerance)
    check_start(start)
    shapes = [thing.shape if isinstance(thing, Moving) else thing for thing in (a, b)]
    on = choose_device(device, *(shape.poses for shape in shapes if isinstance(shape, Analytic)))
    sides = moving_side(a, "a"), moving_side(b, "b")
    paths = _path_of(a), _path_of(b)

    def search(one: MovingSide, other: MovingSide) -> np.ndarray:
        return contacts_of_pairs(one, other, accuracy.separation, accuracy.tolerance, on)

    if threads is None and paths == (None, None):
        found = search(*sides)
    else:
        with using_threads(threads):
            count = paired_count(*(side.count for side in sides))
            found = search(*sides) if paths == (None, None) else first_along_paths(sides, paths, count, search)
    if accuracy.tolerance is not None:
        refuse_small(found["tolerance"], accuracy.tolerance)
    is_mesh = [isinstance(shape, Mesh) for shape in shapes]
    if all(
        len(side.poses) == 1 and (path is not None or side.motion.shape == ())
        for side, path in zip(sides, paths, strict=True)
    ):
        return answer_of_one(found, *is_mesh)
    return answers_of_many(found)


def _path_of(thing: Any) -> Path | None:
    return thing.motion if isinstance(thing, Moving) and isinstance(thing.motion, Path) else None


def refuse_small(kept: np.ndarray, tolerance: float) -> None:
    """Raise if the tolerance could not be kept."""
    if len(kept) and kept.max() > tolerance:
        worst = int(np.argmax(kept))
        raise InputError(
            f"tolerance {tolerance!r} is below 1e-12 of the size of pair {worst}, its motion included: rounding would"
            f" hide contacts; at least {kept[worst]:.3g} is possible"
        )


def answers_of_many(found: np.ndarray) -> FirstContacts:
    """What is told of n `ConvexContact` records."""
    return FirstContacts(
        time=found["time"].copy(),
        time_upper=found["time_upper"].copy(),
        status=found["status"].astype(np.uint8),
        point_a=found["point_a"].copy(),
        point_b=found["point_b"].copy(),
        normal=found["normal"].copy(),
    )


def answer_of_one(found: np.ndarray, mesh_a: bool, mesh_b: bool) -> FirstContact:
    """What is told of a single `ConvexContact` record, with its contact; a mesh tells its triangle."""
    row = found[0]
    time, upper, status = float(row["time"]), float(row["time_upper"]), Status(int(row["status"]))
    if status == Status.FREE:
        return FirstContact(time, upper, status)
    return FirstContact(time, upper, status, DeferredContacts.by(partial(_contacts, found.copy(), mesh_a, mesh_b)))


def swapped_sides(found: np.ndarray) -> np.ndarray:
    """The same records with a in the place of b."""
    turned = found.copy()
    turned["normal"] *= -1.0
    turned["point_a"], turned["point_b"] = found["point_b"], found["point_a"]
    return turned


def _contacts(found: np.ndarray, mesh_a: bool, mesh_b: bool) -> Contacts:
    return Contacts.of(
        time=found["time"].copy(),
        point_a=found["point_a"].copy(),
        point_b=found["point_b"].copy(),
        normal=found["normal"].copy(),
        feature_a=found["triangle"].copy() if mesh_a else -1,
        feature_b=found["triangle"].copy() if mesh_b else -1,
        kind=np.where(found["status"] == Status.START, Kind.OVERLAP, Kind.NONE),
    )
