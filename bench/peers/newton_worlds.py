"""Newton (PyPI: newton) as a rigid-body engine: its position-based solver on Warp, here on the CPU.

Boxes are boxes, other bodies convex pieces, and what has none is a mesh. "stiff" has 20 iterations, where it comes with
two, and no softness of contacts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bench.peers.rigid_worlds import PeerBody
from tangere.motion import quaternions_of

__all__ = ["Newton"]


class Newton:
    """Newton: extended position-based dynamics in float32."""

    name, package = "Newton", "newton"

    def __init__(self, bodies: Sequence[PeerBody], friction: float, dt: float, stiff: bool) -> None:
        import newton

        self._newton, self._dt = newton, dt
        builder: Any = newton.ModelBuilder(gravity=(0.0, 0.0, -9.81))
        self._moving = [k for k, body in enumerate(bodies) if body.mass > 0.0]
        self._start = np.array([body.pose for body in bodies])
        for body in bodies:
            self._add(builder, body, friction)
        self._model = builder.finalize(device="cpu")
        options = {"iterations": 20, "rigid_contact_relaxation": 1.0} if stiff else {}
        self._solver = newton.solvers.SolverXPBD(self._model, **options)
        self._states = [self._model.state(), self._model.state()]
        self._control = self._model.control()
        self._contacts = self._model.contacts()

    def _add(self, builder: Any, body: PeerBody, friction: float) -> None:
        place = _transform(body.pose)
        if body.mass > 0.0:
            owner = builder.add_body(xform=place, mass=body.mass, inertia=body.inertia.tolist(), lock_inertia=True)
            place = _transform(np.eye(4))
        else:
            owner = -1
        look = builder.ShapeConfig(density=0.0, mu=friction, restitution=0.0)
        if body.box is not None:
            hx, hy, hz = body.box.tolist()
            builder.add_shape_box(owner, xform=place, hx=hx, hy=hy, hz=hz, cfg=look)
            return
        for piece in body.pieces:
            builder.add_shape_convex_hull(owner, xform=place, mesh=self._mesh(*_hull(piece)), cfg=look)
        if not len(body.pieces):
            builder.add_shape_mesh(owner, xform=place, mesh=self._mesh(body.mesh.vertices, body.mesh.faces), cfg=look)

    def _mesh(self, vertices: np.ndarray, faces: np.ndarray) -> Any:
        return self._newton.Mesh(vertices.astype(np.float32), faces.astype(np.int32).ravel(), compute_inertia=False)

    def step(self) -> None:
        now, after = self._states
        now.clear_forces()
        self._model.collide(now, self._contacts)
        self._solver.step(now, after, self._control, self._contacts, self._dt)
        self._states = [after, now]

    def poses(self) -> np.ndarray:
        """(n, 4, 4) of the centres of mass."""
        from scipy.spatial.transform import Rotation

        places = self._states[0].body_q.numpy().astype(float)
        found = self._start.copy()
        found[self._moving, :3, 3] = places[:, :3]
        found[self._moving, :3, :3] = Rotation.from_quat(places[:, 3:]).as_matrix()
        return found

    def close(self) -> None:
        pass


def _transform(pose: np.ndarray) -> Any:
    import warp as wp

    w, x, y, z = quaternions_of(pose[None, :3, :3])[0].tolist()
    return wp.transform(pose[:3, 3].tolist(), wp.quat(x, y, z, w))


def _hull(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Corners and triangles, facing outwards, of the hull of points."""
    from scipy.spatial import ConvexHull

    hull = ConvexHull(points)
    faces = hull.simplices.copy()
    a, b, c = (points[faces[:, k]] for k in range(3))
    inward = np.einsum("ni,ni->n", np.cross(b - a, c - a), hull.equations[:, :3]) < 0.0
    faces[inward] = faces[inward, ::-1]
    return points, faces
