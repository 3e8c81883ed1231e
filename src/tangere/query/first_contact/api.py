"""When do they first touch? The functions people call; the table of questions (`query.dispatch`) finds the engine.

The contract of time is that of `FirstContact`: never late, early by at most a tolerance.
Known as: continuous collision detection, time of impact.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import warp as wp

from tangere.query.contacts.record import Contacts
from tangere.query.dispatch import BODIES, TERRAIN, answer, kind_of
from tangere.query.first_contact.options import DeformingOptions, Mode, RigidOptions, SceneOptions, Start
from tangere.query.first_contact.result import Candidates, FirstContact, FirstContacts
from tangere.runtime import Arrays, InputError, using_threads
from tangere.shape import Moving
from tangere.shape.mesh import Mesh, warn_of_doubted_units


def first_contact(
    a: Any,
    b: Any = None,
    *,
    allowed: Arrays | None = None,
    mode: Mode = "sound",
    start: Start = "checked",
    skin: float | None = None,
    separation: float = 0.0,
    tolerance: float | None = None,
    solid: bool = False,
    options: DeformingOptions | RigidOptions | SceneOptions | None = None,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> FirstContact | FirstContacts:
    """The earliest time in [0, 1] at which `a` touches `b`, or itself if there is no `b`, or any two of a list.

    Args:
        a, b: meshes or analytic bodies at rest or moving, `mesh.moving(motion)`: a mesh by `Linear` (every vertex its
            own way), all rigidly, by `Twist`, `Screw`, `Path`, a link of a `Chain` …; `b` may be a `Heightfield`. All
            combine (the page "Who answers what" is the table) but n motions with `Linear` or a `Path` of meshes.
            Ground is solid, with walls at its border and around holes, all the way down: a motion that begins in it is
            START. `a` may be a list of these, ground too: any two that do not both rest; with a list `b`, one of each:
            `contacts.body_a` and `body_b` say which.
        allowed: of a list, pairs of bodies that may touch, (k, 2), by number or by name.
        mode: "sound" is never late; "exact" decides what rounding leaves open (Linear motion); "published" is the
            method as its document prints it, not safe.
        start: "trusted" skips the search for overlap at t = 0 (for step loops that never leave an overlap behind);
            "leaving" is for a rigid part that is in contact where it is mounted: contacts shallower than `skin` are
            ignored, at any time of the motion, and the answer says so: "free but for 0.1 mm".
        skin: how deep these may be [m]; None means the chord errors of the facets and the rounding of float32.
        separation: distance that already counts as contact [m].
        tolerance: at the returned time the distance is at most separation + tolerance [m]; None means 1e-6 of the
            size of the query.
        solid: meshes are solid: one that begins inside another is START, with a contact of kind INSIDE; later none can
            get in without touching. Closed meshes whose triangles agree, at rest or moving; others are refused.
        options: of one engine: `DeformingOptions(broad_phase=)` of meshes in Linear motion, `RigidOptions(contacts=,
            recession=)` of meshes in rigid motion, `SceneOptions(broad_phase=)` of a list.
        device: where to compute; None means where the motion's data is, else CUDA if present.
        threads: CPU threads; None means all, or TANGERE_THREADS.

    Returns:
        A `FirstContact`; for n motions, or n analytic bodies, `FirstContacts` with a row for each.

    Example:
        >>> import numpy as np, tangere as tg
        >>> ball, start = tg.generate.icosphere(subdivisions=3), np.eye(4)
        >>> start[0, 3] = -3.0
        >>> spinning = ball.moving(tg.Twist(start, displacement=[2.0, 0.0, 0.0], rotation=[0.0, 0.0, 6.0]))
        >>> hit = tg.first_contact(spinning, ball, device="cpu")
        >>> hit.status.name, 0.49 < hit.time < 0.52
        ('CONTACT', True)
        >>> far = np.eye(4)
        >>> far[0, 3] = 5.0
        >>> hit = tg.first_contact([ball, spinning, ball.moving(tg.Rest(far))], device="cpu")
        >>> int(hit.contacts.body_a[0]), int(hit.contacts.body_b[0])
        (0, 1)
    """
    of_list = {}
    if kind_of(a) == BODIES and b is None:
        of_list, a = {"allowed": allowed}, list(a)
    elif allowed is not None:
        raise InputError("allowed says which bodies of a list may touch: first_contact([a, b, c], allowed=[(0, 1)])")
    warn_of_doubted_units(a, b)
    taken = None
    if start == "leaving":
        from tangere.query.first_contact.skin import without_skin  # as an engine: who does not ask does not load it

        (a, taken), start = without_skin(a, [b], skin), "checked"
        tolerance = taken.tolerance(tolerance, a.shape.extent if isinstance(a, Moving) else a.extent)
    elif skin is not None:
        raise InputError("skin goes with start='leaving'")
    solid = solid and kind_of(b) != TERRAIN  # which is solid anyway
    if solid:
        _check_solids(a, b)
    found = answer(
        "first_contact",
        a,
        b,
        mode=mode,
        start=start,
        separation=separation,
        tolerance=tolerance,
        options=options,
        device=device,
        threads=threads,
        **of_list,
    )
    if solid:
        with using_threads(threads):
            found = _starting_inside(found, a, b, device, allowed)
    return found if taken is None else replace(found, skin=taken)


def _check_solids(a: Any, b: Any) -> None:
    """Raise unless all the bodies have an inside."""
    from tangere.query.containment.api import check_solids
    from tangere.query.containment.listed import solids_of

    if _of_lists(a, b):
        solids_of(a, b)
        return
    if b is None:
        raise InputError("solid=True is about one body inside another: give b, or a list of bodies")
    check_solids(a, b)


def _of_lists(a: Any, b: Any) -> bool:
    return BODIES in (kind_of(a), kind_of(b))


def _starting_inside(found: Any, a: Any, b: Any, device: Any, allowed: Arrays | None) -> Any:
    """What was found, but START where one solid begins inside another."""
    from tangere.query.containment.api import starting_inside
    from tangere.query.containment.listed import listed_starting_inside

    if _of_lists(a, b):
        return listed_starting_inside(found, a, b, allowed, device)
    return starting_inside(found, a, b, device=device)


def all_contacts(
    a: Mesh | Moving,
    b: Mesh | Moving | None = None,
    *,
    mode: Mode = "sound",
    start: Start = "checked",
    separation: float = 0.0,
    tolerance: float | None = None,
    options: DeformingOptions | None = None,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> Contacts:
    """The first contact of every pair of features that touch within the step, by rising time (Linear motion).

    Arguments as for `first_contact`. If the meshes overlap at t = 0 (an edge meets a face), the first row says so once,
    as a contact of kind OVERLAP. What rigid bodies do after they touch is not their motion any more: of them,
    `first_contact(a, b, options=RigidOptions(contacts="all"))` finds all that touches at the first instant.
    """
    return answer(
        "all_contacts",
        a,
        b,
        mode=mode,
        start=start,
        separation=separation,
        tolerance=tolerance,
        options=options,
        device=device,
        threads=threads,
    )


def candidates(
    a: Mesh | Moving,
    b: Mesh | Moving | None = None,
    *,
    separation: float = 0.0,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> Candidates:
    """The pairs a narrow phase would have to look at (Linear motion); `first_contact` never stores them."""
    return answer("candidates", a, b, separation=separation, device=device, threads=threads)
