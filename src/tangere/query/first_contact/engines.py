"""The engines of first contact that the table of questions names, each loaded when it is first asked.

`dispatch.answer` looks the engine up and calls it. The engines take the options that all have as keywords, and an
object of their own for what only they have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tangere.motion import Linear, Path, Rest
from tangere.query.dispatch import MESH, RIGID, kind_of
from tangere.query.first_contact.options import DeformingOptions, RigidOptions, SceneOptions
from tangere.runtime import InputError, published
from tangere.shape import Moving

EngineOptions = TypeVar("EngineOptions", DeformingOptions, RigidOptions, SceneOptions)


def _deforming(a: Any, b: Any, *, options: Any, **common: Any) -> Any:
    from tangere.query.first_contact.deforming.api import deforming_first_contact

    return deforming_first_contact(a, b, options=_own(options, DeformingOptions, "meshes in Linear motion"), **common)


def _rigid(a: Any, b: Any, *, mode: Any, options: Any, **common: Any) -> Any:
    options, many = _own(options, RigidOptions, "rigid meshes"), any(_motions(thing) for thing in (a, b))
    if mode == "published":
        if options != RigidOptions():
            raise InputError(f"mode='published' of rigid meshes takes no options, not {options!r}")
        common.pop("start")
        return published("redon_intervals").first_contact(a, b, many=many, **common)
    if mode != "sound":
        raise InputError(f"first contact of rigid meshes knows the modes 'sound' and 'published', not {mode!r}")
    from tangere.query.first_contact.rigid.api import rigid_first_contact, rigid_first_contacts

    return (rigid_first_contacts if many else rigid_first_contact)(a, b, options=options, **common)


def _path(a: Any, b: Any, *, mode: Any, options: Any, **common: Any) -> Any:
    from tangere.query.first_contact.rigid.path import first_contact_along_path

    _only_sound(mode, "meshes along a Path")
    _refuse_many(a, b, "a Path")
    return first_contact_along_path(a, b, options=_own(options, RigidOptions, "meshes along a Path"), **common)


def _scene(a: Any, b: None, *, mode: Any, options: Any, allowed: Any = None, **common: Any) -> Any:
    _only_sound(mode, "a list of bodies")
    own = _own(options, SceneOptions, "a list of bodies")
    if not all(kind_of(body) in (MESH, RIGID) for body in a):
        from tangere.query.first_contact.body_lists import lists_first_contact

        return lists_first_contact(a, None, allowed=allowed, options=own, **common)
    from tangere.query.first_contact.rigid.scene import scene_first_contact

    return scene_first_contact(a, allowed=allowed, options=own, **common)


def _lists(a: Any, b: Any, *, mode: Any, options: Any, **common: Any) -> Any:
    from tangere.query.first_contact.body_lists import lists_first_contact

    _only_sound(mode, "lists of bodies")
    return lists_first_contact(a, b, options=_own(options, SceneOptions, "lists of bodies"), **common)


def _stretches(a: Any, b: Any, *, mode: Any, options: Any, **common: Any) -> Any:
    from tangere.query.first_contact.stretches import first_contact_by_stretches

    _only_sound(mode, "a deforming mesh and something along a Path")
    _no_options(options, "a deforming mesh and something along a Path")
    return first_contact_by_stretches(a, b, **common)


def _deforming_convex(a: Any, b: Any, *, mode: Any, options: Any, **common: Any) -> Any:
    _only_sound(mode, "a deforming mesh and analytic bodies")
    _no_options(options, "a deforming mesh and analytic bodies")
    if any(isinstance(thing, Moving) and isinstance(thing.motion, Path) for thing in (a, b)):
        return _stretches(a, b, mode=mode, options=options, **common)
    from tangere.query.first_contact.deforming_convex.api import deforming_convex_first_contact

    return deforming_convex_first_contact(a, b, **common)


def _mixed(a: Any, b: Any, *, mode: Any, options: Any, **common: Any) -> Any:
    from tangere.query.first_contact.mixed.api import mixed_first_contact

    _only_sound(mode, "a deforming and a rigid mesh")
    _no_options(options, "a deforming and a rigid mesh")
    _refuse_many(a, b, "a mesh in Linear motion")
    return mixed_first_contact(a, b, **common)


def _heightfield(a: Any, b: Any, *, mode: Any, options: Any, **common: Any) -> Any:
    from tangere.query.first_contact.heightfield.api import heightfield_first_contact

    _only_sound(mode, "bodies and terrain")
    _no_options(options, "bodies and terrain")
    return heightfield_first_contact(a if isinstance(a, Moving) else a.moving(Rest()), b, **common)


def _mesh_heightfield(a: Any, b: Any, *, mode: Any, options: Any, **common: Any) -> Any:
    from tangere.query.first_contact.mesh_heightfield.api import mesh_heightfield_first_contact

    if not (isinstance(a, Moving) and isinstance(a.motion, Linear)):
        _only_sound(mode, "rigid meshes and terrain")
    _no_options(options, "meshes and terrain")
    return mesh_heightfield_first_contact(a, b, mode=mode, **common)


def _convex(a: Any, b: Any, *, mode: Any, options: Any, **common: Any) -> Any:
    from tangere.query.first_contact.convex.api import convex_first_contact

    _only_sound(mode, "analytic bodies")
    _no_options(options, "analytic bodies")
    return convex_first_contact(a, b, **common)


def _all_contacts(a: Any, b: Any, *, options: Any = None, **common: Any) -> Any:
    from tangere.query.first_contact.deforming.api import deforming_all_contacts

    return deforming_all_contacts(a, b, options=_own(options, DeformingOptions, "meshes in Linear motion"), **common)


def _candidates(a: Any, b: Any, **common: Any) -> Any:
    from tangere.query.first_contact.deforming.api import deforming_candidates

    return deforming_candidates(a, b, **common)


#: By question, and by their names in the table.
ENGINES: dict[str, dict[str, Callable[..., Any]]] = {
    "first_contact": {
        "deforming": _deforming,
        "rigid": _rigid,
        "path": _path,
        "scene": _scene,
        "lists": _lists,
        "mixed": _mixed,
        "stretches": _stretches,
        "heightfield": _heightfield,
        "mesh_heightfield": _mesh_heightfield,
        "convex": _convex,
        "deforming_convex": _deforming_convex,
    },
    "all_contacts": {"all_contacts": _all_contacts},
    "candidates": {"candidates": _candidates},
}


def _own(options: Any, kind: type[EngineOptions], what: str) -> EngineOptions:
    """The options of an engine; None means the usual ones, and those of another engine are refused."""
    if options is None:
        return kind()
    if not isinstance(options, kind):
        raise InputError(f"first contact of {what} takes {kind.__name__} as options, not {options!r}")
    return options


def _no_options(options: Any, what: str) -> None:
    if options is not None:
        raise InputError(f"first contact of {what} takes no options, not {options!r}")


def _only_sound(mode: Any, what: str) -> None:
    if mode != "sound":
        raise InputError(f"first contact of {what} knows the mode 'sound', not {mode!r}")


def _motions(thing: Any) -> tuple[int, ...]:
    """(n,) of a body with n motions, () of others."""
    return getattr(thing.motion, "shape", ()) if isinstance(thing, Moving) else ()


def _refuse_many(a: Any, b: Any, other: str) -> None:
    """Raise if a body has n motions, next to one that takes a single one only."""
    for name, thing in (("a", a), ("b", b)):
        if count := _motions(thing):
            raise InputError(f"{name} has a batch of {count[0]} motions, but takes a single one against {other}")
