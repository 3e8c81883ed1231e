"""The earliest contact of a whole scene of rigid bodies: which two of them, when, and where.

Method:   the broad phase (`partition.moving_bodies`) tells which pairs may meet and when at the earliest. Pairs are
          asked about in batches by that time; the earliest contact so far is passed on to every search, and pairs that
          cannot meet before it are dropped unasked.
Sound:    up to the time told, any two bodies that are compared stay more than separation + tolerance / 2 apart, so all
          of them can be placed there. Of equal times that of a pair which overlaps at the start is told (START), then
          that of the smallest pair: the answer does not depend on batches, threads or the broad phase.
Spec:     specs/redon-rigid-ccd-and-dynamics C3.3, C12.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tangere.broad_phase.bodies import BroadPhase, box_pairs, first_meetings, rest_still, swept_boxes
from tangere.motion import COSINE, Path, Rest, Rigid, joined_records
from tangere.query.contacts.record import Status
from tangere.query.first_contact.options import Options
from tangere.query.first_contact.result import FirstContact
from tangere.query.first_contact.rigid.bodies import Forest
from tangere.query.first_contact.rigid.contact_records import contacts_of
from tangere.query.first_contact.rigid.query_batch import TOLERANCE, RigidQueryBatch
from tangere.query.intersection.api import intersects
from tangere.runtime import Arrays, InputError, UnsupportedError, choose_device, to_numpy, using_threads
from tangere.shape.mesh import Mesh, Moving

__all__ = ["first_contact_of_scene"]

#: Pairs asked about at once: few at first, for one early contact drops most of the others.
FIRST_BATCH, LARGEST_BATCH = 16, 4096


def first_contact_of_scene(
    bodies: Sequence[Mesh | Moving],
    *,
    ignored: Arrays | None = None,
    separation: float = 0.0,
    tolerance: float | None = None,
    broad_phase: BroadPhase = "sweep",
    device: str | None = None,
    threads: int | None = None,
) -> FirstContact:
    """The earliest time in [0, 1] at which any two of the bodies touch; `contacts.body_a`, `body_b` say which two.

    Args:
        bodies: meshes at rest, or moving rigidly, one motion each. Two at rest are not compared with each other; a
            motion that leads nowhere, such as a `Twist` of zeros, counts as rest.
        ignored: pairs of bodies that may touch, shape (k, 2), for instance `linked_pairs` of a chain.
        separation: distance that already counts as contact [m].
        tolerance: at the returned time the distance is at most separation + tolerance [m]; None means 1e-6 of the
            largest body's size.
        broad_phase: "sweep" (sweep and prune) or "tree"; the answer is the same.
        device, threads: as for `first_contact`.

    Example:
        >>> import numpy as np, tangere as tg
        >>> from tangere.query.first_contact.rigid import first_contact_of_scene
        >>> ball, left, right = tg.generate.icosphere(), np.eye(4), np.eye(4)
        >>> left[0, 3], right[0, 3] = -4.0, 3.0
        >>> one, other = tg.Twist(left, [4, 0, 0], [0, 0, 1]), tg.Twist(right, [-4, 0, 0], [1, 0, 0])
        >>> hit = first_contact_of_scene([ball, ball.moving(one), ball.moving(other)], device="cpu")
        >>> int(hit.contacts.body_a[0]), int(hit.contacts.body_b[0])
        (0, 2)
    """
    options = Options(separation=separation, tolerance=tolerance)
    if isinstance(bodies, (Mesh, Moving)):
        raise InputError("bodies must be a list of bodies, not one body")
    if not isinstance(bodies, Iterable):
        raise InputError(f"bodies must be a list of bodies, not {type(bodies).__name__}")
    place = choose_device(device)
    with using_threads(threads):
        things = [_body(number, body) for number, body in enumerate(bodies)]
        dropped = _ignored(ignored, len(things))
        if len(things) < 2:
            return FirstContact(np.inf, np.inf, Status.FREE)
        shapes, motions = zip(*things, strict=True)
        kept = TOLERANCE * max(mesh.extent for mesh in shapes) if options.tolerance is None else options.tolerance
        # contact is told within separation + tolerance, so each of two boxes is grown by half of that and a little
        slices = swept_boxes(shapes, motions, 0.5 * (options.separation + kept) * (1.0 + 1e-9), device=place)
        whole = np.stack([slices[:, :, 0].min(axis=1), slices[:, :, 1].max(axis=1)], axis=1)
        pairs = box_pairs(whole, still=rest_still(motions), method=broad_phase, device=place)
        pairs = pairs[~np.isin(pairs.astype(np.int64) @ [len(shapes), 1], dropped @ [len(shapes), 1])]
        when = first_meetings(slices, pairs)
        order = np.lexsort((pairs[:, 1], pairs[:, 0], when))
        order = order[np.isfinite(when[order])]
        return _earliest(shapes, motions, pairs[order], when[order], options, kept, place)


def _earliest(
    shapes: Sequence[Mesh],
    motions: Sequence[Rigid],
    pairs: np.ndarray,
    when: np.ndarray,
    options: Options,
    tolerance: float,
    device: Any,
) -> FirstContact:
    """The earliest contact of pairs in the order of the times `when` they may meet first."""
    distinct = list(dict.fromkeys(shapes))
    forest = Forest.of(distinct, device)
    shape = np.array([distinct.index(mesh) for mesh in shapes], np.int32)
    links = np.array([motion.links for motion in motions], np.int32)
    base = np.cumsum(links) - links
    records = joined_records([motion.records() for motion in motions])
    smooth = np.array([(motion.records()["kind"] == COSINE).any() for motion in motions])
    best = FirstContact(np.inf, np.inf, Status.FREE)
    earliest: tuple[Any, ...] = (np.inf,)
    at_start = []  #: pairs and touches at time 0 of which it is open whether they meet there
    place, size = 0, FIRST_BATCH
    while place < len(pairs) and when[place] <= best.time:
        batch = pairs[place : place + size]
        place, size = place + len(batch), min(2 * size, LARGEST_BATCH)
        a, b = batch.T
        desk = RigidQueryBatch(forest, forest, len(batch), len(records), device)
        clock = smooth[a] | smooth[b]
        desk.write(
            [records],
            {
                "motion_a": base[a],
                "motion_b": base[b],
                "links_a": links[a],
                "links_b": links[b],
                "shape_a": shape[a],
                "shape_b": shape[b],
                "smooth": clock,
                "separation": options.separation,
                "tolerance": tolerance,
            },
        )
        desk.search_each(None if best.time > 1.0 else _on_clock(best.time, clock))
        touches = desk.described()
        desk.refuse_small(options.tolerance)
        status = desk.status()
        parted = status != Status.START
        row = int(np.lexsort((b, a, parted, touches["time"]))[0])
        found = float(touches["time"][row]), bool(parted[row]), *batch[row].tolist()
        if found < earliest:
            earliest = found
            best = _told(touches[row : row + 1], Status(int(status[row])), batch[row], shapes)
        at_start += [
            (tuple(batch[k].tolist()), touches[k : k + 1].copy()) for k in np.flatnonzero(touches["time"] == 0.0)
        ]
    if best.time == 0.0 and best.status != Status.START:
        for pair, touch in sorted(at_start, key=lambda asked: asked[0]):
            if intersects(*(shapes[k].moving(motions[k]) for k in pair), device=device):
                return replace(_told(touch, Status.START, pair, shapes), time_upper=0.0)
    return best


def _told(touch: np.ndarray, status: Status, pair: Sequence[int], shapes: Sequence[Mesh]) -> FirstContact:
    """The contact of two bodies, of which `touch` is the only record."""
    a, b = (int(number) for number in pair)
    record = contacts_of(touch.copy(), [shapes[a]], [shapes[b]])
    record = replace(record, body_a=np.full(len(record), a, np.int32), body_b=np.full(len(record), b, np.int32))
    return FirstContact(float(touch["time"][0]), float(touch["time_upper"][0]), status, record)


def _body(number: int, body: Mesh | Moving) -> tuple[Mesh, Rigid]:
    """Shape and motion of a body."""
    if isinstance(body, Mesh):
        return body, Rest()
    if not isinstance(body, Moving) or not isinstance(body.shape, Mesh):
        raise InputError(f"body {number} must be a Mesh or a moving Mesh, not {type(body).__name__}")
    if isinstance(body.motion, Path):
        raise UnsupportedError(f"body {number} follows a Path: ask for its segments one after the other")
    if not isinstance(body.motion, Rigid):
        raise UnsupportedError(f"body {number}: the motion must be rigid, not {type(body.motion).__name__}")
    if body.motion.shape:
        raise InputError(f"body {number} has {body.motion.shape[0]} motions, but a scene has one for each body")
    return body.shape, body.motion


def _ignored(pairs: Arrays | None, count: int) -> np.ndarray:
    """The pairs not to ask about, (k, 2), the smaller number first."""
    if pairs is None:
        return np.zeros((0, 2), np.int64)
    rows = to_numpy(pairs, "ignored", None)
    if not rows.size:
        return np.zeros((0, 2), np.int64)
    if rows.ndim != 2 or rows.shape[1] != 2:
        raise InputError(f"ignored must be pairs of bodies of shape (k, 2), not {rows.shape}")
    if not np.issubdtype(rows.dtype, np.integer):
        raise InputError(f"ignored must be whole numbers, not {rows.dtype}")
    wrong = ((rows < 0) | (rows >= count)).any(axis=1)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InputError(f"ignored[{at}] is {rows[at].tolist()} but there are {count} bodies")
    return np.sort(rows.astype(np.int64), axis=1)


def _on_clock(time: float, smooth: np.ndarray) -> np.ndarray:
    """A time of the step on the clock of each query, rounded up."""
    return np.where(smooth, np.arcsin(np.sqrt(time)) / (0.5 * np.pi) * (1.0 + 1e-14) + 1e-300, time)
