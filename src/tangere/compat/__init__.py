"""Other libraries' words for our answers: trimesh's collision manager, without python-fcl."""

from tangere.compat.collision_data import ContactData, DistanceData
from tangere.compat.collision_manager import CollisionManager, scene_to_collision
from tangere.compat.collision_object import CollisionObject

__all__ = [
    "CollisionManager",
    "CollisionObject",
    "ContactData",
    "DistanceData",
    "scene_to_collision",
]
