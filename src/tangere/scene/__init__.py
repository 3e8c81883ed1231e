"""One description of things, their frames, contacts and time: what is recorded, replayed and drawn."""

from tangere.scene.camera import Camera, Viewpoint
from tangere.scene.contact_balls import CONTACT_COLOURS, RecordedContacts, ball_size, balls
from tangere.scene.creases import CreasedMesh, vertex_normals
from tangere.scene.keyframes import Episode, Keyframes, moving_balls
from tangere.scene.markers import KIND_COLOURS, contact_colours, contact_markers, marker_radius
from tangere.scene.recorded_arrays import read_recorded, write_recorded
from tangere.scene.scene import PALETTE, Drawable, Scene, Thing

__all__ = [
    "CONTACT_COLOURS",
    "KIND_COLOURS",
    "PALETTE",
    "Camera",
    "CreasedMesh",
    "Drawable",
    "Episode",
    "Keyframes",
    "RecordedContacts",
    "Scene",
    "Thing",
    "Viewpoint",
    "ball_size",
    "balls",
    "contact_colours",
    "contact_markers",
    "marker_radius",
    "moving_balls",
    "read_recorded",
    "vertex_normals",
    "write_recorded",
]
