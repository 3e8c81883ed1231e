"""One description of things, their frames, contacts and time: what is recorded, replayed and drawn."""

from tangere.scene.camera import Camera, Viewpoint
from tangere.scene.scene import PALETTE, Drawable, Scene, Thing

__all__ = ["PALETTE", "Camera", "Drawable", "Scene", "Thing", "Viewpoint"]
