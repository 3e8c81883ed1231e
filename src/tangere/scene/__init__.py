"""One description of things, their frames, contacts and time: what is recorded, replayed and drawn."""

from tangere.scene.camera import Camera, Viewpoint
from tangere.scene.creases import CreasedMesh, vertex_normals
from tangere.scene.keyframes import Keyframes, moving_balls
from tangere.scene.markers import KIND_COLOURS, contact_colours, contact_markers, marker_radius
from tangere.scene.scene import PALETTE, Drawable, Scene, Thing

__all__ = [
    "KIND_COLOURS",
    "PALETTE",
    "Camera",
    "CreasedMesh",
    "Drawable",
    "Keyframes",
    "Scene",
    "Thing",
    "Viewpoint",
    "contact_colours",
    "contact_markers",
    "marker_radius",
    "moving_balls",
    "vertex_normals",
]
