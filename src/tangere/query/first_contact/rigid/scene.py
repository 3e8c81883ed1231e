"""The earliest contact of a whole scene of rigid bodies: which two of them, when, and where.

Question: the earliest time in [0, 1] at which any two of many rigid bodies touch.
Method:   the broad phase (`broad_phase.bodies`) says which pairs may meet and when at the earliest. Pairs are searched
          in batches by that time; the earliest contact so far is passed on to every search, and pairs that cannot meet
          before it are dropped.
Sound:    up to the time returned, any two bodies that are compared stay more than separation + tolerance / 2 apart, so
          all of them can be placed there. Of equal times that of a pair which overlaps at the start is returned
          (START), then that of the smallest pair: the answer does not depend on batches, threads or the broad phase.
Known as: the time of impact of a scene, by a broad phase over swept volumes (sweep and prune: Cohen et al. 1995,
          I-COLLIDE).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import warp as wp

from tangere.broad_phase.bodies import box_pairs, first_meetings, rest_still, swept_boxes
from tangere.motion import COSINE, Path, Rest, Rigid, joined_records
from tangere.query.contacts.record import Status
from tangere.query.first_contact.options import Accuracy, SceneOptions, Start, check_start
from tangere.query.first_contact.result import FirstContact
from tangere.query.first_contact.rigid.bodies import Forest
from tangere.query.first_contact.rigid.details import contacts_of
from tangere.query.first_contact.rigid.query_batch import TOLERANCE, RigidQueryBatch, starts_nearer
from tangere.query.intersection.traversal import meshes_meet
from tangere.runtime import Arrays, InputError, UnsupportedError, choose_device, to_numpy, using_threads
from tangere.shape import Moving
from tangere.shape.mesh import Mesh

#: Pairs searched at once: few at first, for one early contact drops most of the others.
FIRST_BATCH, LARGEST_BATCH = 16, 4096


def scene_first_contact(
    bodies: Iterable[Mesh | Moving],
    *,
    allowed: Arrays | None = None,
    separation: float = 0.0,
    tolerance: float | None = None,
    start: Start = "checked",
    options: SceneOptions | None = None,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> FirstContact:
    """The earliest time in [0, 1] at which any two of the bodies touch; `contacts.body_a`, `body_b` say which two.

    Args:
        bodies: meshes at rest, or moving rigidly, one motion each. Two at rest are not compared with each other; a
            motion that leads nowhere, such as a `Twist` of zeros, counts as rest.
        allowed: pairs of bodies that may touch, (k, 2), by number or by name, for instance `linked_pairs` of a chain.
        separation: distance that already counts as contact [m].
        tolerance: at the returned time the distance is at most separation + tolerance [m]; None means 1e-6 of the
            largest body's size.
        start: "trusted" does not decide exactly whether bodies in contact at t = 0 meet there.
        options: the broad phase.
        device, threads: as for `first_contact`.
    """
    accuracy, options = Accuracy(separation=separation, tolerance=tolerance), options or SceneOptions()
    check_start(start)
    if isinstance(bodies, (Mesh, Moving)) or not isinstance(bodies, Iterable):
        raise InputError(f"bodies must be a list of bodies, not {type(bodies).__name__}")
    device = choose_device(device)
    with using_threads(threads):
        things = [rigid_body(number, body) for number, body in enumerate(bodies)]
        dropped = allowed_pairs(allowed, [shape.name for shape, _ in things])
        if len(things) < 2:
            return FirstContact(np.inf, np.inf, Status.FREE)
        shapes, motions = zip(*things, strict=True)
        kept = TOLERANCE * max(mesh.extent for mesh in shapes) if accuracy.tolerance is None else accuracy.tolerance
        # contact is reported within separation + tolerance, so each of two boxes is grown by half of that and a little
        slices = swept_boxes(shapes, motions, 0.5 * (accuracy.separation + kept) * (1.0 + 1e-9), device=device)
        whole = np.stack([slices[:, :, 0].min(axis=1), slices[:, :, 1].max(axis=1)], axis=1)
        pairs = box_pairs(whole, still=rest_still(motions), method=options.broad_phase, device=device)
        pairs = pairs[~np.isin(pairs.astype(np.int64) @ [len(shapes), 1], dropped @ [len(shapes), 1])]
        when = first_meetings(slices, pairs)
        order = np.lexsort((pairs[:, 1], pairs[:, 0], when))
        order = order[np.isfinite(when[order])]
        return _earliest(shapes, motions, pairs[order], when[order], accuracy, kept, start, device)


def _earliest(
    shapes: Sequence[Mesh],
    motions: Sequence[Rigid],
    pairs: np.ndarray,
    when: np.ndarray,
    accuracy: Accuracy,
    tolerance: float,
    start: str,
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
    at_start = []  #: pairs and contacts at time 0 of which it is open whether they meet there
    place, size = 0, FIRST_BATCH
    while place < len(pairs) and when[place] <= best.time:
        chosen = pairs[place : place + size]
        place, size = place + len(chosen), min(2 * size, LARGEST_BATCH)
        a, b = chosen.T
        batch = RigidQueryBatch(forest, forest, len(chosen), len(records), device)
        clock = smooth[a] | smooth[b]
        batch.upload(
            [records],
            {
                "motion_a": base[a],
                "motion_b": base[b],
                "links_a": links[a],
                "links_b": links[b],
                "shape_a": shape[a],
                "shape_b": shape[b],
                "smooth": clock,
                "separation": accuracy.separation,
                "tolerance": tolerance,
            },
        )
        batch.search_each(None if best.time > 1.0 else _on_clock(best.time, clock))
        batch.refuse_small_tolerance(accuracy.tolerance)
        details = batch.contact_details()
        status = batch.status()
        parted = status != Status.START
        row = int(np.lexsort((b, a, parted, details["time"]))[0])
        found = float(details["time"][row]), bool(parted[row]), *chosen[row].tolist()
        if found < earliest:
            earliest = found
            best = _hit(details[row : row + 1], Status(int(status[row])), chosen[row], shapes)
        at_start += [
            (tuple(chosen[k].tolist()), details[k : k + 1].copy()) for k in np.flatnonzero(details["time"] == 0.0)
        ]
    if best.time == 0.0 and best.status != Status.START and start == "checked":
        for pair, detail in sorted(at_start, key=lambda known: known[0]):
            bodies = [shapes[k].moving(motions[k]) for k in pair]
            near = accuracy.separation and starts_nearer(*bodies, accuracy.separation, choose_device(device))
            if near or meshes_meet(*bodies, device=device):
                return replace(_hit(detail, Status.START, pair, shapes), time_upper=0.0)
    return best


def _hit(detail: np.ndarray, status: Status, pair: Sequence[int], shapes: Sequence[Mesh]) -> FirstContact:
    """The contact of two bodies, of which `detail` is the only record."""
    a, b = (int(number) for number in pair)
    record = contacts_of(detail.copy(), shapes[a], shapes[b], a, b)
    return FirstContact(float(detail["time"][0]), float(detail["time_upper"][0]), status, record)


def rigid_body(number: int, body: Mesh | Moving) -> tuple[Mesh, Rigid]:
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


def allowed_pairs(pairs: Arrays | None, names: list[str]) -> np.ndarray:
    """The pairs that may touch as numbers of bodies, (k, 2), the smaller one first."""
    if pairs is None:
        return np.zeros((0, 2), np.int64)
    if isinstance(pairs, (list, tuple, set, frozenset)):
        pairs = _numbered(list(pairs), names)
    rows = to_numpy(pairs, "allowed", None)
    if not rows.size:
        return np.zeros((0, 2), np.int64)
    if rows.ndim != 2 or rows.shape[1] != 2:
        raise InputError(f"allowed must be pairs of bodies of shape (k, 2), not {rows.shape}")
    if not np.issubdtype(rows.dtype, np.integer):
        raise InputError(f"allowed must be whole numbers or names, not {rows.dtype}")
    wrong = ((rows < 0) | (rows >= len(names))).any(axis=1)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InputError(f"allowed[{at}] is {rows[at].tolist()} but there are {len(names)} bodies")
    return np.sort(rows.astype(np.int64), axis=1)


def _numbered(pairs: list[Any], names: list[str]) -> list[Any]:
    """The pairs with numbers in the place of names."""
    if not any(isinstance(body, str) for pair in pairs if isinstance(pair, Sequence) for body in pair):
        return pairs
    return [[_number(body, at, names) for body in pair] for at, pair in enumerate(pairs)]


def _number(body: Any, at: int, names: list[str]) -> Any:
    if not isinstance(body, str):
        return body
    if names.count(body) != 1:
        known = "no body has" if body not in names else f"{names.count(body)} bodies have"
        raise InputError(f"allowed[{at}] names {body!r}, which {known} as its name: {', '.join(map(repr, names))}")
    return names.index(body)


def _on_clock(time: float, smooth: np.ndarray) -> np.ndarray:
    """A time of the step on the clock of each query, rounded up."""
    return np.where(smooth, np.arcsin(np.sqrt(time)) / (0.5 * np.pi) * (1.0 + 1e-14) + 1e-300, time)
