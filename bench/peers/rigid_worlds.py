"""Rigid-body engines on PyPI, each with the bodies of one of our worlds: MuJoCo, PyBullet and rapier3d.

Bodies are given as boxes where they are boxes, else as convex pieces; what has none goes to rapier3d as a mesh, and not
to the others, whose moving bodies are convex or made of convex pieces. "stiff" settings ask each for the least overlap
that it offers: MuJoCo a time constant of two steps and a stiff impedance, PyBullet no slop and 200 iterations, rapier3d
no allowed error and 20 iterations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tangere.motion import quaternions_of
from tangere.shape.mesh import Mesh

__all__ = ["ENGINES", "PeerBody", "UnfitError"]


class UnfitError(Exception):
    """An engine that cannot be given such a body."""


@dataclass(frozen=True)
class PeerBody:
    """A body as engines take it; `pieces` are about the centre of mass, along the mesh's axes."""

    pose: np.ndarray  #: (4, 4) of the centre of mass
    mass: float  #: 0 for what is fixed
    inertia: np.ndarray  #: (3, 3)
    box: np.ndarray | None  #: (3,) half sides
    pieces: Sequence[np.ndarray]  #: (n, 3) corners of convex pieces
    mesh: Mesh  #: about the centre of mass


class Bullet:
    """PyBullet: sequential impulses, no continuous detection for boxes and hulls."""

    name, package = "PyBullet", "pybullet"

    def __init__(self, bodies: Sequence[PeerBody], friction: float, dt: float, stiff: bool) -> None:
        import pybullet

        self._bullet = pybullet
        self._world = pybullet.connect(pybullet.DIRECT)
        pybullet.setGravity(0, 0, -9.81, physicsClientId=self._world)
        pybullet.setTimeStep(dt, physicsClientId=self._world)
        pybullet.setPhysicsEngineParameter(deterministicOverlappingPairs=1, physicsClientId=self._world)
        if stiff:
            pybullet.setPhysicsEngineParameter(
                contactSlop=0.0, numSolverIterations=200, erp=0.2, contactERP=0.2, physicsClientId=self._world
            )
        self._bodies = [self._add(body, friction) for body in bodies]

    def _add(self, body: PeerBody, friction: float) -> int:
        bullet, world = self._bullet, self._world
        if body.box is not None:
            shape = bullet.createCollisionShape(bullet.GEOM_BOX, halfExtents=body.box.tolist(), physicsClientId=world)
        elif not len(body.pieces):
            raise UnfitError("moving bodies are convex pieces")
        else:
            with TemporaryDirectory() as folder:
                file = Path(folder) / "pieces.obj"
                file.write_text(_as_groups(body.pieces))
                shape = bullet.createCollisionShape(bullet.GEOM_MESH, fileName=str(file), physicsClientId=world)
        w, x, y, z = quaternions_of(body.pose[None, :3, :3])[0]
        number = bullet.createMultiBody(
            body.mass, shape, -1, body.pose[:3, 3].tolist(), (x, y, z, w), physicsClientId=world
        )
        # Frictions of two bodies are multiplied.
        told = {"lateralFriction": float(np.sqrt(friction)), "linearDamping": 0.0, "angularDamping": 0.0}
        if body.mass > 0.0:
            told["localInertiaDiagonal"] = np.diag(body.inertia).tolist()
        bullet.changeDynamics(number, -1, **told, collisionMargin=0.0, physicsClientId=world)
        return number

    def step(self) -> None:
        self._bullet.stepSimulation(physicsClientId=self._world)

    def poses(self) -> np.ndarray:
        """(n, 4, 4) of the centres of mass."""
        found = np.tile(np.eye(4), (len(self._bodies), 1, 1))
        for k, number in enumerate(self._bodies):
            place, turn = self._bullet.getBasePositionAndOrientation(number, physicsClientId=self._world)
            found[k, :3, 3] = place
            found[k, :3, :3] = np.reshape(self._bullet.getMatrixFromQuaternion(turn), (3, 3))
        return found

    def close(self) -> None:
        self._bullet.disconnect(physicsClientId=self._world)


class Mujoco:
    """MuJoCo: soft constraints, Newton's method, elliptic cones."""

    name, package = "MuJoCo", "mujoco"

    def __init__(self, bodies: Sequence[PeerBody], friction: float, dt: float, stiff: bool) -> None:
        import mujoco

        self._mujoco = mujoco
        spec: Any = mujoco.MjSpec()
        spec.option.timestep, spec.option.cone = dt, mujoco.mjtCone.mjCONE_ELLIPTIC
        spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        spec.memory = 2 << 30
        self._rows = []
        for number, body in enumerate(bodies):
            told = {"pos": body.pose[:3, 3], "quat": quaternions_of(body.pose[None, :3, :3])[0]}
            node = spec.worldbody.add_body(name=f"b{number}", **told)
            if body.mass > 0.0:
                node.add_freejoint()
                node.mass, node.explicitinertial = body.mass, True
                node.inertia, node.ipos, node.iquat = np.diag(body.inertia), [0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]
            self._add_geoms(spec, node, body, friction, dt, stiff, number)
        self._model = spec.compile()
        self._data = mujoco.MjData(self._model)
        mujoco.mj_forward(self._model, self._data)
        self._numbers = [mujoco.mj_name2id(self._model, mujoco.mjtObj.mjOBJ_BODY, f"b{k}") for k in range(len(bodies))]

    def _add_geoms(
        self, spec: Any, node: Any, body: PeerBody, friction: float, dt: float, stiff: bool, number: int
    ) -> None:
        types = self._mujoco.mjtGeom
        look: dict[str, Any] = {"friction": [friction, 0.0, 0.0]}
        if stiff:
            look |= {"solref": [2.0 * dt, 1.0], "solimp": [0.99, 0.9999, 1e-5, 0.5, 2.0]}
        if body.box is not None:
            node.add_geom(type=types.mjGEOM_BOX, size=body.box, **look)
        elif not len(body.pieces):
            raise UnfitError("meshes are their convex hulls")
        for k, piece in enumerate(body.pieces if body.box is None else ()):
            mesh = spec.add_mesh(name=f"m{number}_{k}")
            mesh.uservert = np.ravel(piece).tolist()
            # Its frame is moved to its middle when it is compiled; the geom is put where it was.
            node.add_geom(type=types.mjGEOM_MESH, meshname=mesh.name, **look)

    def step(self) -> None:
        self._mujoco.mj_step(self._model, self._data)

    def poses(self) -> np.ndarray:
        """(n, 4, 4) of the centres of mass."""
        found = np.tile(np.eye(4), (len(self._numbers), 1, 1))
        found[:, :3, 3] = self._data.xpos[self._numbers]
        found[:, :3, :3] = self._data.xmat[self._numbers].reshape(-1, 3, 3)
        return found

    def close(self) -> None:
        pass


class Rapier:
    """rapier3d: sequential impulses with substeps, continuous detection asked for."""

    name, package = "rapier3d", "rapier3d"

    def __init__(self, bodies: Sequence[PeerBody], friction: float, dt: float, stiff: bool) -> None:
        import rapier3d

        self._rapier = rapier3d
        self._world = world = rapier3d.PhysicsWorld((0.0, 0.0, -9.81))
        world.integration_parameters.dt = dt
        if stiff:
            world.integration_parameters.normalized_allowed_linear_error = 0.0
            world.integration_parameters.num_solver_iterations = 20
        world.physics_pipeline.set_num_threads(1)
        self._bodies = [self._add(body, friction) for body in bodies]

    def _add(self, body: PeerBody, friction: float) -> Any:
        rapier, world = self._rapier, self._world
        kind = rapier.RigidBodyType.DYNAMIC if body.mass > 0.0 else rapier.RigidBodyType.FIXED
        turn = _rotation_vector(body.pose[:3, :3])
        builder = rapier.RigidBodyBuilder(kind).translation(tuple(body.pose[:3, 3])).rotation(tuple(turn))
        handle = world.rigid_bodies.insert(builder.can_sleep(False).ccd_enabled(body.mass > 0.0))
        colliders = []
        if body.box is not None:
            colliders.append(rapier.Collider.cuboid(*body.box))
        elif len(body.pieces):
            colliders += [rapier.Collider.convex_hull(np.ascontiguousarray(piece)) for piece in body.pieces]
        else:
            colliders.append(rapier.Collider.trimesh(body.mesh.vertices, body.mesh.faces))
        volume = body.mesh.mass_properties(1.0).volume
        for collider in colliders:  # pieces share the mass by their volumes
            made = collider.friction(friction).density(body.mass / volume if body.mass > 0.0 else 0.0)
            world.colliders.insert_with_parent(made, handle, world.rigid_bodies)
        return handle

    def step(self) -> None:
        self._world.step()

    def poses(self) -> np.ndarray:
        """(n, 4, 4) of the centres of mass."""
        found = np.tile(np.eye(4), (len(self._bodies), 1, 1))
        for k, handle in enumerate(self._bodies):
            body = self._world.rigid_bodies[handle]
            found[k, :3, 3] = list(body.translation)
            turned = [list(body.rotation.transform_vector(tuple(axis))) for axis in np.eye(3)]
            found[k, :3, :3] = np.transpose(turned)
        return found

    def close(self) -> None:
        pass


def _as_groups(pieces: Sequence[np.ndarray]) -> str:
    """An .obj file with a group for each convex piece."""
    from scipy.spatial import ConvexHull

    lines, first = [], 1
    for number, piece in enumerate(pieces):
        lines += [f"o piece{number}", *(f"v {x!r} {y!r} {z!r}" for x, y, z in piece.tolist())]
        lines += [f"f {a + first} {b + first} {c + first}" for a, b, c in ConvexHull(piece).simplices.tolist()]
        first += len(piece)
    return "\n".join(lines) + "\n"


def _rotation_vector(turn: np.ndarray) -> np.ndarray:
    from scipy.spatial.transform import Rotation

    return Rotation.from_matrix(turn).as_rotvec()


ENGINES = (Mujoco, Bullet, Rapier)
