"""One description of things, their frames, contacts and time: what is recorded, replayed and drawn."""

from tangere.scene.camera import Camera, Viewpoint
from tangere.scene.scene import Scene, Thing

__all__ = ["Camera", "Scene", "Thing", "Viewpoint"]
