"""FCL (PyPI: python-fcl) and its successor Coal (PyPI: coal): bounding-volume trees, discrete and continuous queries.

FCL's continuous query takes a kind of motion and a solver; the motion is made from the two end poses, so more than half
a turn cannot be said. Conservative advancement and the polynomial solver damage the model they are given: every timed
call gets a fresh one, built outside the clock.
"""

from __future__ import annotations

import time

import coal
import fcl
import numpy as np

from tangere.motion import Rigid
from tangere.shape.mesh import Mesh

__all__ = ["MODES", "CoalPair", "FclPair"]

#: (motion, solver, samples) of the continuous query, by the name tables use.
MODES = {
    "translation, naive, 1,000 samples": ("CCDM_TRANS", "CCDC_NAIVE", 1000),
    "linear, naive, 1,000 samples": ("CCDM_LINEAR", "CCDC_NAIVE", 1000),
    "screw, naive, 1,000 samples": ("CCDM_SCREW", "CCDC_NAIVE", 1000),
    "translation, conservative advancement": ("CCDM_TRANS", "CCDC_CONSERVATIVE_ADVANCEMENT", 10),
    "linear, conservative advancement": ("CCDM_LINEAR", "CCDC_CONSERVATIVE_ADVANCEMENT", 10),
    "screw, conservative advancement": ("CCDM_SCREW", "CCDC_CONSERVATIVE_ADVANCEMENT", 10),
    "translation, polynomial": ("CCDM_TRANS", "CCDC_POLYNOMIAL_SOLVER", 10),
}


class FclPair:
    """Two meshes for FCL; the second one stays where it is."""

    def __init__(self, part: Mesh, fixed: Mesh) -> None:
        self.meshes = part, fixed
        self.part, self.fixed = (fcl.CollisionObject(_model(mesh)) for mesh in self.meshes)

    def collides(self, pose: np.ndarray) -> bool:
        """Whether the meshes meet with the part at a pose."""
        self.part.setTransform(_transform(pose))
        return fcl.collide(self.part, self.fixed, fcl.CollisionRequest(), fcl.CollisionResult()) > 0

    def contacts(self, pose: np.ndarray) -> int:
        """How many pairs of triangles meet, all of them found."""
        self.part.setTransform(_transform(pose))
        request = fcl.CollisionRequest(num_max_contacts=1_000_000, enable_contact=True)
        return fcl.collide(self.part, self.fixed, request, fcl.CollisionResult())

    def distance(self, pose: np.ndarray) -> float:
        """Distance with the part at a pose."""
        self.part.setTransform(_transform(pose))
        return fcl.distance(self.part, self.fixed, fcl.DistanceRequest(), fcl.DistanceResult())

    def sampled(self, poses: np.ndarray) -> float:
        """Time of the first of evenly spread poses at which they meet; inf if none."""
        for k, pose in enumerate(poses):
            if self.collides(pose):
                return k / (len(poses) - 1)
        return np.inf

    def truth(self, motion: Rigid, samples: int = 2001) -> float:
        """First contact by dense sampling and then halving; inf if no sample collides."""
        found = self.sampled(motion.pose(np.linspace(0.0, 1.0, samples)))
        if not 0.0 < found <= 1.0:
            return found
        low, high = found - 1.0 / (samples - 1), found
        while high - low > 1e-9:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self.collides(motion.pose(middle)) else (middle, high)
        return high

    def continuous(self, mode: str, motion: Rigid) -> tuple[float, float]:
        """Time of contact (inf when free) that the continuous query gives, and the seconds it took."""
        kind, solver, samples = MODES[mode]
        part, fixed = (fcl.CollisionObject(_model(mesh)) for mesh in self.meshes)
        part.setTransform(_transform(motion.pose(0.0)))
        end = _transform(motion.pose(1.0))
        request = fcl.ContinuousCollisionRequest(
            num_max_iterations=samples,
            ccd_motion_type=getattr(fcl.CCDMotionType, kind),
            ccd_solver_type=getattr(fcl.CCDSolverType, solver),
        )
        result = fcl.ContinuousCollisionResult()
        began = time.perf_counter()
        fcl.continuousCollide(part, end, fixed, fcl.Transform(), request, result)
        taken = time.perf_counter() - began
        return (result.time_of_contact if result.is_collide else np.inf), taken


class CoalPair:
    """Two meshes for Coal."""

    def __init__(self, part: Mesh, fixed: Mesh) -> None:
        self.models = tuple(_coal_model(mesh) for mesh in (part, fixed))
        self._here = coal.Transform3s.Identity()

    def contacts(self, pose: np.ndarray) -> int:
        """How many pairs of triangles meet, all of them found."""
        request = coal.CollisionRequest(coal.CollisionRequestFlag.CONTACT, 1_000_000)
        result = coal.CollisionResult()
        coal.collide(self.models[0], _coal_pose(pose), self.models[1], self._here, request, result)
        return result.numContacts()

    def near(self, pose: np.ndarray, margin: float) -> int:
        """How many pairs of triangles are nearer than a margin, all of them found."""
        request = coal.CollisionRequest(coal.CollisionRequestFlag.CONTACT, 1_000_000)
        request.security_margin = margin
        result = coal.CollisionResult()
        coal.collide(self.models[0], _coal_pose(pose), self.models[1], self._here, request, result)
        return result.numContacts()

    def distance(self, pose: np.ndarray) -> float:
        """Distance with the part at a pose."""
        result = coal.DistanceResult()
        return coal.distance(
            self.models[0], _coal_pose(pose), self.models[1], self._here, coal.DistanceRequest(), result
        )


def _model(mesh: Mesh) -> fcl.BVHModel:
    model = fcl.BVHModel()
    model.beginModel(len(mesh.faces), len(mesh.vertices))
    model.addSubModel(mesh.vertices, mesh.faces)
    model.endModel()
    return model


def _transform(pose: np.ndarray) -> fcl.Transform:
    return fcl.Transform(pose[:3, :3], pose[:3, 3])


def _coal_model(mesh: Mesh) -> coal.BVHModelOBBRSS:
    model = coal.BVHModelOBBRSS()
    model.beginModel(len(mesh.faces), len(mesh.vertices))
    triangles = coal.StdVec_Triangle()
    for face in mesh.faces.tolist():
        triangles.append(coal.Triangle(*face))
    points = coal.StdVec_Vec3s()
    for vertex in mesh.vertices:
        points.append(vertex)
    model.addSubModel(points, triangles)
    model.endModel()
    return model


def _coal_pose(pose: np.ndarray) -> coal.Transform3s:
    return coal.Transform3s(pose[:3, :3].copy(), pose[:3, 3].copy())
