"""tangere: when, where and how do moving things first touch?

The face is small and flat; everything loads when it is first used, so importing costs nothing and touches no GPU.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tangere import cells, crowd, query, runtime, scene, shape, soft, view
    from tangere.motion import Chain, CosineScrew, Linear, Path, Rest, Screw, TanScrew, Twist
    from tangere.query.contacts import Contacts, Kind, Status
    from tangere.query.distance import Distance, distance
    from tangere.query.first_contact import FirstContact, FirstContacts, all_contacts, candidates, first_contact
    from tangere.query.first_contact.rigid import first_contact_of_scene
    from tangere.query.intersection import intersecting_pairs, intersects
    from tangere.query.intersection.cylinder_terrain import touches
    from tangere.query.manifold import manifold
    from tangere.query.path_check import PathCheck, check_path
    from tangere.query.proximity import Detector, Exclusion, detect, proximity
    from tangere.query.signed_distance import DistanceField, signed_distance
    from tangere.runtime.errors import TangereError
    from tangere.scene import Scene
    from tangere.shape import (
        Box,
        Capsule,
        Cone,
        ConvexMesh,
        Cylinder,
        Heightfield,
        Mesh,
        Sphere,
        TiledHeightfield,
        generate,
    )
    from tangere.shape.robot import load_urdf
    from tangere.shape.tets import TetMesh
    from tangere.view import picture

__version__ = "0.1.0"

__all__ = [
    "Box",
    "Capsule",
    "Chain",
    "Cone",
    "Contacts",
    "ConvexMesh",
    "CosineScrew",
    "Cylinder",
    "Detector",
    "Distance",
    "DistanceField",
    "Exclusion",
    "FirstContact",
    "FirstContacts",
    "Heightfield",
    "Kind",
    "Linear",
    "Mesh",
    "Path",
    "PathCheck",
    "Rest",
    "Scene",
    "Screw",
    "Sphere",
    "Status",
    "TanScrew",
    "TangereError",
    "TetMesh",
    "TiledHeightfield",
    "Twist",
    "all_contacts",
    "candidates",
    "cells",
    "check_path",
    "crowd",
    "detect",
    "distance",
    "first_contact",
    "first_contact_of_scene",
    "generate",
    "intersecting_pairs",
    "intersects",
    "load_urdf",
    "manifold",
    "picture",
    "proximity",
    "query",
    "runtime",
    "scene",
    "shape",
    "signed_distance",
    "soft",
    "touches",
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
    "first_contact_of_scene": "tangere.query.first_contact.rigid",
    "Linear": "tangere.motion",
    "CosineScrew": "tangere.motion",
    "TanScrew": "tangere.motion",
    "Chain": "tangere.motion",
    "Rest": "tangere.motion",
    "Twist": "tangere.motion",
    "Screw": "tangere.motion",
    "Path": "tangere.motion",
    "Box": "tangere.shape",
    "Capsule": "tangere.shape",
    "Cone": "tangere.shape",
    "ConvexMesh": "tangere.shape",
    "Cylinder": "tangere.shape",
    "Heightfield": "tangere.shape",
    "Mesh": "tangere.shape",
    "Sphere": "tangere.shape",
    "TetMesh": "tangere.shape.tets",
    "load_urdf": "tangere.shape.robot",
    "TiledHeightfield": "tangere.shape",
    "generate": "tangere.shape",
    "Scene": "tangere.scene",
    "PathCheck": "tangere.query.path_check",
    "check_path": "tangere.query.path_check",
    "Distance": "tangere.query.distance",
    "distance": "tangere.query.distance",
    "Detector": "tangere.query.proximity",
    "Exclusion": "tangere.query.proximity",
    "detect": "tangere.query.proximity",
    "proximity": "tangere.query.proximity",
    "DistanceField": "tangere.query.signed_distance",
    "signed_distance": "tangere.query.signed_distance",
    "intersecting_pairs": "tangere.query.intersection",
    "intersects": "tangere.query.intersection",
    "manifold": "tangere.query.manifold",
    "touches": "tangere.query.intersection.cylinder_terrain",
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
