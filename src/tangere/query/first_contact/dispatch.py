"""Who knows the answer? One table from what the two things are to the routine that finds their first contact.

A new shape or motion adds a kind and a row here; no caller changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from tangere.broad_phase.deforming import Step
from tangere.motion import Linear, Path, Rigid
from tangere.query.contacts.record import Contacts, Status
from tangere.query.first_contact.deforming import api as meshes
from tangere.query.first_contact.deforming.initial_overlap import first_overlap
from tangere.query.first_contact.options import Mode
from tangere.query.first_contact.result import FirstContact, FirstContacts
from tangere.runtime import InputError, UnsupportedError, published
from tangere.shape.analytic import Analytic
from tangere.shape.heightfield import Heightfield, TiledHeightfield
from tangere.shape.mesh import Mesh, Moving

__all__ = ["all_contacts", "first_contact"]

Thing = Mesh | Moving | Heightfield | TiledHeightfield
Settings = dict[str, Any]

#: What the routines do not all take; the rest they do.
_OPTIONS: Settings = {"mode": "sound", "broad_phase": "tree", "contacts": "first", "recession": False}


def first_contact(
    a: Thing,
    b: Thing | None = None,
    *,
    mode: Mode = "sound",
    start: Literal["checked", "trusted"] = "checked",
    separation: float = 0.0,
    tolerance: float | None = None,
    contacts: Literal["first", "all"] = "first",
    recession: bool = False,
    broad_phase: meshes.BroadPhase = "tree",
    device: str | None = None,
    threads: int | None = None,
) -> FirstContact | FirstContacts:
    """The earliest time in [0, 1] at which `a` touches `b`, or itself if there is no `b`.

    Args:
        a, b: meshes at rest or moving, `mesh.moving(motion)`: by `Linear` (every vertex its own way) or rigidly, by
            `Twist`, `Screw`, `Path`, a link of a `Chain` …; or analytic bodies moving over a `Heightfield`. All combine
            but `Linear` with a `Path` (ask about its segments one by one), and n motions with `Linear` or a `Path`. Of
            terrain the upper surface is what touches: walls of holes and the border are no contacts, `manifold` tells
            the depth there, and a motion that begins below ground is START.
        mode: "sound" is never late; "exact" decides what rounding leaves open (Linear motion); "published" is the
            method as its document prints it, not safe.
        start: "trusted" skips the search for overlap at t = 0 (for step loops that never leave an overlap behind).
        separation: distance that already counts as contact [m].
        tolerance: at the returned time the distance is at most separation + tolerance [m]; None means 1e-6 of the
            size of the query.
        contacts: "all" also tells every other pair of features that touch at that time (rigid motion), not reduced: a
            hundred or so where two boxes lie flat on each other.
        recession: drop parts that move away from the other body (rigid motion); see `rigid_first_contact`.
        broad_phase: "tree", or "brute": every pair, for checks on small meshes (Linear motion).
        device: where to compute; None means where the motion's data is, else CUDA if present.
        threads: CPU threads; None means all, or TANGERE_THREADS.

    Returns:
        A `FirstContact`; for n motions, or n analytic bodies, `FirstContacts` with a row for each.

    Example:
        >>> import numpy as np, tangere as tg
        >>> ball, start = tg.generate.icosphere(subdivisions=3), np.eye(4)
        >>> start[0, 3] = -3.0
        >>> spinning = ball.moving(tg.Twist(start, velocity=[2.0, 0.0, 0.0], rotation=[0.0, 0.0, 6.0]))
        >>> hit = tg.first_contact(spinning, ball, device="cpu")
        >>> hit.status.name, 0.49 < hit.time < 0.52
        ('CONTACT', True)
    """
    settings = {
        "mode": mode,
        "start": start,
        "separation": separation,
        "tolerance": tolerance,
        "contacts": contacts,
        "recession": recession,
        "broad_phase": broad_phase,
        "device": device,
        "threads": threads,
    }
    kinds = (_kind(a), None if b is None else _kind(b))
    for (firsts, seconds), routine in _ROUTINES.items():
        if kinds[0] in firsts and kinds[1] in seconds:
            return routine(a, b, settings)
    if any(kinds[1] in firsts and kinds[0] in seconds for firsts, seconds in _ROUTINES):
        raise UnsupportedError(f"first contact of a {kinds[0]} with a {kinds[1]}: ask with the {kinds[1]} first")
    raise UnsupportedError(f"first contact of {_told(kinds)} is not known; known: {_KNOWN}")


def all_contacts(a: Mesh | Moving, b: Mesh | Moving | None = None, **settings: Any) -> Contacts:
    """The first contact of every pair of features that touch within the step, by rising time (Linear motion).

    Arguments as for `first_contact`. If the meshes overlap at t = 0 (an edge meets a face), the first row says so once,
    as a contact of kind OVERLAP. What rigid bodies do after they touch is not their motion any more: of them,
    `first_contact(a, b, contacts="all")` tells all that touches at the first instant.
    """
    if "Mesh in rigid motion" in (_kind(a), _kind(b)):
        raise UnsupportedError(
            "all contacts within a step are known of meshes at rest or in Linear motion, not in rigid motion;"
            ' first_contact(a, b, contacts="all") tells all that touches at the first instant'
        )
    return meshes.all_contacts(a, b, **settings)


def _kind(thing: Thing | None) -> str:
    """What a thing is, as the table has it."""
    if isinstance(thing, (Heightfield, TiledHeightfield)):
        return "terrain"
    if isinstance(thing, Mesh):
        return "Mesh at rest"
    if isinstance(thing, Moving) and isinstance(thing.shape, Analytic):
        return "moving analytic body"
    if isinstance(thing, Moving) and isinstance(thing.motion, Linear):
        return "Mesh in Linear motion"
    if isinstance(thing, Moving) and isinstance(thing.motion, (Rigid, Path)):
        return "Mesh in rigid motion"
    if isinstance(thing, Analytic):
        return "analytic body at rest"
    if isinstance(thing, Moving):
        return f"{type(thing.shape).__name__} in {type(thing.motion).__name__} motion"
    return type(thing).__name__


def _taken(settings: Settings, what: str, *names: str) -> Settings:
    """The settings a routine takes; others must be as they are by default."""
    for name, usual in _OPTIONS.items():
        if name not in names and settings[name] != usual:
            raise InputError(f"first contact of {what} takes no {name}={settings[name]!r}")
    return {name: value for name, value in settings.items() if name not in _OPTIONS or name in names}


def _motions(thing: Any) -> tuple[int, ...]:
    """(n,) of a body with n motions, () of others."""
    return getattr(thing.motion, "shape", ()) if isinstance(thing, Moving) else ()


def _refuse_many(a: Any, b: Any, other: str) -> None:
    """Raise if a body has n motions, next to one that is asked about with a single one only."""
    for name, thing in (("a", a), ("b", b)):
        if count := _motions(thing):
            raise InputError(f"{name} has a batch of {count[0]} motions, but takes a single one against {other}")


def _linear(a: Any, b: Any, settings: Settings) -> FirstContact:
    taken = _taken(settings, "meshes in Linear motion", "mode", "broad_phase")
    return meshes.first_contact(a, b, **taken)


def _rigid(a: Any, b: Any, settings: Settings) -> FirstContact | FirstContacts:
    taken = _taken(settings, "rigid meshes", "mode", "contacts", "recession")
    mode, contacts = taken.pop("mode"), taken.pop("contacts")
    start = taken.pop("start")
    many = any(_motions(thing) for thing in (a, b))
    if any(isinstance(thing, Moving) and isinstance(thing.motion, Path) for thing in (a, b)):
        _refuse_many(a, b, "a Path")
    if mode == "published":
        return published("redon_intervals").first_contact(a, b, many=many, **taken)
    if mode != "sound":
        raise InputError(f"first contact of rigid meshes knows the modes 'sound' and 'published', not {mode!r}")
    from tangere.query.first_contact.rigid.api import rigid_first_contact, rigid_first_contacts

    if not many:
        return rigid_first_contact(a, b, contacts=contacts, start=start, **taken)
    if contacts != "first":
        raise InputError("contacts='all' takes one motion, not a batch")
    return rigid_first_contacts(a, b, start=start, **taken)


def _by_bounds(a: Any, b: Any, settings: Settings) -> FirstContact:
    from tangere.query.first_contact.mixed.api import first_contact_by_bounds
    from tangere.query.first_contact.mixed.options import BisectionOptions

    taken = _taken(settings, "a deforming and a rigid mesh")
    _refuse_many(a, b, "a mesh in Linear motion")
    for name, thing in (("a", a), ("b", b)):
        if isinstance(thing.motion, Path):
            raise UnsupportedError(f"{name} moves by Path: against a mesh in Linear motion ask about its segments")
    if taken["separation"]:
        raise InputError("first contact of a deforming and a rigid mesh takes no separation")
    if taken["start"] != "trusted":
        overlap = first_overlap(Step.of([a.at(0.0), b.at(0.0)], taken["device"]))
        if overlap is not None:
            return FirstContact(0.0, 0.0, Status.START, overlap)
    options = BisectionOptions(tolerance=taken["tolerance"])
    found = first_contact_by_bounds(a, b, options, device=taken["device"], threads=taken["threads"])
    return FirstContact(float(found.time[0]), np.inf, Status(int(found.status[0])), found.contacts)


def _on_terrain(a: Any, b: Any, settings: Settings) -> FirstContact | FirstContacts:
    from tangere.query.first_contact.heightfield.api import bodies_terrain

    return bodies_terrain(a, b, **_taken(settings, "bodies and terrain"))


_FLEXIBLE = ("Mesh at rest", "Mesh in Linear motion")
_STIFF = ("Mesh at rest", "Mesh in rigid motion")

_KNOWN = (
    "a Mesh at rest, a Mesh in Linear motion (each also with itself), a Mesh in rigid motion,"
    " and analytic bodies moving over a terrain"
)

#: (what a may be, what b may be) -> who knows; the first row that fits.
_ROUTINES: dict[tuple[tuple[str, ...], tuple[str | None, ...]], Callable[[Any, Any, Settings], Any]] = {
    (_FLEXIBLE, (*_FLEXIBLE, None)): _linear,
    (_STIFF, _STIFF): _rigid,
    (("Mesh in Linear motion",), ("Mesh in rigid motion",)): _by_bounds,
    (("Mesh in rigid motion",), ("Mesh in Linear motion",)): _by_bounds,
    (("moving analytic body",), ("terrain",)): _on_terrain,
}


def _told(kinds: tuple[str, str | None]) -> str:
    return f"a {kinds[0]} with itself" if kinds[1] is None else f"a {kinds[0]} and a {kinds[1]}"
