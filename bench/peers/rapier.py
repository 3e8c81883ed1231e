"""Rapier (PyPI: rapier3d): a nonlinear shape cast of one triangle mesh against another, in seconds rather than ms."""

from __future__ import annotations

import time

import numpy as np
import rapier3d

from tangere.shape.mesh import Mesh

__all__ = ["RapierPair"]


class RapierPair:
    """A mesh to cast, and a fixed one in a world of its own."""

    def __init__(self, part: Mesh, fixed: Mesh) -> None:
        self.shape = rapier3d.SharedShape.trimesh(part.vertices, part.faces)
        self.world = rapier3d.PhysicsWorld((0.0, 0.0, 0.0))
        self.world.add_collider(rapier3d.Collider.trimesh(fixed.vertices, fixed.faces))
        self.world.step()
        self.world.update_query_pipeline()

    def cast(
        self, quaternion: np.ndarray, at: np.ndarray, velocity: np.ndarray, rotation: np.ndarray
    ) -> tuple[float, float]:
        """Time of impact (inf when free) of a motion about the mesh's own origin, and the seconds it took.

        Args:
            quaternion: of the start, w, x, y, z.
            at: where the origin starts [m].
            velocity, rotation: over the step [m, rad].
        """
        start = rapier3d.Isometry3(tuple(at), rapier3d.Rotation3(*quaternion))
        motion = rapier3d.NonlinearRigidMotion(start, (0.0, 0.0, 0.0), tuple(velocity), tuple(rotation))
        options = rapier3d.ShapeCastOptions(max_time_of_impact=1.0)
        began = time.perf_counter()
        found = self.world.query_pipeline.cast_shape_nonlinear(motion, self.shape, options, 0.0, 1.0)
        taken = time.perf_counter() - began
        return (np.inf if found is None else found[1].time_of_impact), taken
