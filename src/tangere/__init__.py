"""tangere: when, where and how do moving things first touch?

The face is small and flat; everything loads when it is first used, so importing costs nothing and touches no GPU.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tangere import query, runtime, scene, shape, view
    from tangere.motion import Chain, CosineScrew, Linear, Path, Rest, Screw, TanScrew, Twist
    from tangere.query.contacts import Contacts, Kind, Status
    from tangere.query.distance import Distance, distance
    from tangere.query.first_contact import FirstContact, FirstContacts, all_contacts, candidates, first_contact
    from tangere.query.path_check import PathCheck, check_path
    from tangere.runtime.errors import TangereError
    from tangere.scene import Scene
    from tangere.shape import Mesh, generate
    from tangere.view import picture

__version__ = "0.1.0"

__all__ = [
    "Chain",
    "Contacts",
    "CosineScrew",
    "Distance",
    "FirstContact",
    "FirstContacts",
    "Kind",
    "Linear",
    "Mesh",
    "Path",
    "PathCheck",
    "Rest",
    "Scene",
    "Screw",
    "Status",
    "TanScrew",
    "TangereError",
    "Twist",
    "all_contacts",
    "candidates",
    "check_path",
    "distance",
    "first_contact",
    "generate",
    "picture",
    "query",
    "runtime",
    "scene",
    "shape",
    "view",
]

_HOMES = {
    "Contacts": "tangere.query.contacts",
    "Kind": "tangere.query.contacts",
    "Status": "tangere.query.contacts",
    "FirstContact": "tangere.query.first_contact",
    "FirstContacts": "tangere.query.first_contact",
    "all_contacts": "tangere.query.first_contact",
    "candidates": "tangere.query.first_contact",
    "first_contact": "tangere.query.first_contact",
    "Linear": "tangere.motion",
    "CosineScrew": "tangere.motion",
    "TanScrew": "tangere.motion",
    "Chain": "tangere.motion",
    "Rest": "tangere.motion",
    "Twist": "tangere.motion",
    "Screw": "tangere.motion",
    "Path": "tangere.motion",
    "Mesh": "tangere.shape",
    "generate": "tangere.shape",
    "Scene": "tangere.scene",
    "PathCheck": "tangere.query.path_check",
    "check_path": "tangere.query.path_check",
    "Distance": "tangere.query.distance",
    "distance": "tangere.query.distance",
    "TangereError": "tangere.runtime.errors",
    "picture": "tangere.view",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    elif name in __all__:
        value = import_module(f"tangere.{name}")
    else:
        raise AttributeError(f"module 'tangere' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
