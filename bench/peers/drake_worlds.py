"""Drake (PyPI: drake) as a rigid-body engine: discrete steps of its convex solver, pressed patches between bodies.

Its point contacts have one point for a pair, on which no stack stands; all bodies are compliant to it instead, with the
modulus of its defaults. Boxes are boxes; other bodies are convex pieces, and who has none is not given to it. "stiff"
is a hundred times the modulus of steel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bench.peers.rigid_worlds import PeerBody, UnfitError

__all__ = ["Drake"]

#: Modulus as it comes and stiff [Pa].
SOFT, STIFF = 1e7, 2e13


class Drake:
    """Drake: a convex solver, hydroelastic contacts."""

    name, package = "Drake", "drake"

    def __init__(self, bodies: Sequence[PeerBody], friction: float, dt: float, stiff: bool) -> None:
        from pydrake.multibody.plant import AddMultibodyPlantSceneGraph
        from pydrake.systems.analysis import Simulator
        from pydrake.systems.framework import DiagramBuilder

        builder: Any = DiagramBuilder()
        self._plant, _ = AddMultibodyPlantSceneGraph(builder, dt)
        self._plant.mutable_gravity_field().set_gravity_vector([0.0, 0.0, -9.81])
        properties = _properties(friction, STIFF if stiff else SOFT)
        self._numbers = [self._add(body, properties, number) for number, body in enumerate(bodies)]
        self._fixed = {k: body.pose for k, body in enumerate(bodies) if body.mass == 0.0}
        self._plant.Finalize()
        self._simulator, self._dt, self._steps = Simulator(builder.Build()), dt, 0
        self._context = self._plant.GetMyContextFromRoot(self._simulator.get_context())
        self._simulator.Initialize()

    def _add(self, body: PeerBody, properties: Any, number: int) -> int:
        from pydrake.geometry import Box, Convex
        from pydrake.math import RigidTransform
        from pydrake.multibody.tree import SpatialInertia, UnitInertia

        plant, place = self._plant, RigidTransform(body.pose)
        if body.box is not None:
            shapes = [Box(*(2.0 * body.box))]
        elif len(body.pieces):
            shapes = [Convex(points=np.ascontiguousarray(piece.T), label="piece") for piece in body.pieces]
        else:
            raise UnfitError("moving bodies are convex pieces")
        if body.mass > 0.0:
            unit = np.diag(body.inertia) / body.mass
            made = plant.AddRigidBody(f"b{number}", SpatialInertia(body.mass, np.zeros(3), UnitInertia(*unit)))
            plant.SetDefaultFloatingBaseBodyPose(made, place)
            place = RigidTransform()
        else:
            made = plant.world_body()
        for k, shape in enumerate(shapes):
            plant.RegisterCollisionGeometry(made, place, shape, f"g{number}-{k}", properties)
        return int(made.index())

    def step(self) -> None:
        self._steps += 1
        self._simulator.AdvanceTo(self._steps * self._dt)

    def poses(self) -> np.ndarray:
        """(n, 4, 4) of the centres of mass."""
        there = self._plant.get_body_poses_output_port().Eval(self._context)
        found = np.array([there[number].GetAsMatrix4() for number in self._numbers])
        for k, pose in self._fixed.items():
            found[k] = pose
        return found

    def close(self) -> None:
        pass


def _properties(friction: float, modulus: float) -> Any:
    from pydrake.geometry import AddCompliantHydroelasticProperties, AddContactMaterial, ProximityProperties
    from pydrake.multibody.plant import CoulombFriction

    made = ProximityProperties()
    AddContactMaterial(friction=CoulombFriction(friction, friction), properties=made)
    AddCompliantHydroelasticProperties(resolution_hint=1.0, hydroelastic_modulus=modulus, properties=made)
    return made
