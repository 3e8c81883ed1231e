"""tangere: when, where and how do moving things first touch?

The face is small and flat; everything loads when it is first used, so importing costs nothing and touches no GPU.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tangere import (
        assembly,
        cells,
        compat,
        crowd,
        dynamics,
        fleet,
        hand,
        needle,
        query,
        robot,
        runtime,
        scene,
        shape,
        soft,
        view,
    )
    from tangere.assembly import Assembly
    from tangere.motion import Chain, Linear, Path, Rest, Screw, Twist
    from tangere.query import gradients
    from tangere.query.clearance import LeastClearance, least_clearance
    from tangere.query.contacts import Contacts, Kind, Status
    from tangere.query.depth import Depth, depth, overlap_volume
    from tangere.query.distance import Distance, distance, distances
    from tangere.query.first_contact import (
        DeformingOptions,
        FirstContact,
        FirstContacts,
        PreparedFirstContact,
        RigidOptions,
        SceneOptions,
        all_contacts,
        candidates,
        first_contact,
    )
    from tangere.query.intersection import intersecting_pairs, intersects, touches
    from tangere.query.line_search import largest_step
    from tangere.query.manifold import manifold
    from tangere.query.path_check import PathCheck, check_path
    from tangere.query.proximity import Detector, Exclusion, proximity
    from tangere.query.proximity.posed import PosedContacts, PosedProximity
    from tangere.query.signed_distance import DistanceField, signed_distance
    from tangere.robot import Robot
    from tangere.runtime import TangereError
    from tangere.scene import Scene
    from tangere.shape import generate
    from tangere.shape.analytic import Box, Capsule, Cone, ConvexMesh, Cylinder, Sphere
    from tangere.shape.heightfield import Heightfield, TiledHeightfield
    from tangere.shape.mesh import Mesh
    from tangere.shape.tets import TetMesh
    from tangere.view import picture

__version__ = "0.1.0"

__all__ = [
    "Assembly",
    "Box",
    "Capsule",
    "Chain",
    "Cone",
    "Contacts",
    "ConvexMesh",
    "Cylinder",
    "DeformingOptions",
    "Depth",
    "Detector",
    "Distance",
    "DistanceField",
    "Exclusion",
    "FirstContact",
    "FirstContacts",
    "Heightfield",
    "Kind",
    "LeastClearance",
    "Linear",
    "Mesh",
    "Path",
    "PathCheck",
    "PosedContacts",
    "PosedProximity",
    "PreparedFirstContact",
    "Rest",
    "RigidOptions",
    "Robot",
    "Scene",
    "SceneOptions",
    "Screw",
    "Sphere",
    "Status",
    "TangereError",
    "TetMesh",
    "TiledHeightfield",
    "Twist",
    "all_contacts",
    "assembly",
    "candidates",
    "cells",
    "check_path",
    "compat",
    "crowd",
    "depth",
    "distance",
    "distances",
    "dynamics",
    "first_contact",
    "fleet",
    "generate",
    "gradients",
    "hand",
    "intersecting_pairs",
    "intersects",
    "largest_step",
    "least_clearance",
    "manifold",
    "needle",
    "overlap_volume",
    "picture",
    "proximity",
    "query",
    "robot",
    "runtime",
    "scene",
    "shape",
    "signed_distance",
    "soft",
    "touches",
    "view",
]

#: Where the names of the face come from; the rest are rooms, and parts of rooms.
_HOMES = {
    "assembly": "Assembly",
    "motion": "Chain Linear Path Rest Screw Twist",
    "query.clearance": "LeastClearance least_clearance",
    "query.contacts": "Contacts Kind Status",
    "query.depth": "Depth depth overlap_volume",
    "query.distance": "Distance distance distances",
    "query.first_contact": (
        "DeformingOptions FirstContact FirstContacts PreparedFirstContact RigidOptions SceneOptions "
        "all_contacts candidates first_contact"
    ),
    "query.intersection": "intersecting_pairs intersects touches",
    "query.line_search": "largest_step",
    "query.manifold": "manifold",
    "query.path_check": "PathCheck check_path",
    "query.proximity": "Detector Exclusion proximity",
    "query.proximity.posed": "PosedContacts PosedProximity",
    "query.signed_distance": "DistanceField signed_distance",
    "robot": "Robot",
    "runtime": "TangereError",
    "scene": "Scene",
    "shape.analytic": "Box Capsule Cone ConvexMesh Cylinder Sphere",
    "shape.heightfield": "Heightfield TiledHeightfield",
    "shape.mesh": "Mesh",
    "shape.tets": "TetMesh",
    "view": "picture",
}
#: Parts of rooms that are on the face.
_PARTS = {"generate": "shape.generate", "gradients": "query.gradients"}
_HOME_OF = {name: f"tangere.{home}" for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'tangere' has no attribute {name!r}")
    if name in _HOME_OF:
        value = getattr(import_module(_HOME_OF[name]), name)
    else:
        value = import_module(f"tangere.{_PARTS.get(name, name)}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
