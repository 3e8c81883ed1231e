"""All bodies of a world in arrays on one device: what never changes, and where they are now.

A body's position is that of its centre of mass; its frame is the mesh's: x = rotation p + origin, where the origin is
position - rotation centre. Velocities are six numbers: of the centre of mass [m/s], and angular, in world axes [rad/s].
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import warp as wp

from tangere.dynamics.analytic.analytic_body import beyond_facets
from tangere.dynamics.body import Body
from tangere.dynamics.material import SurfaceKinds
from tangere.dynamics.solver import vec6d
from tangere.shape.mesh import Mesh

#: Bits of `BodyConstants.held`: translations along x y z, rotations about x y z, and driven.
TRANSLATIONS, ROTATIONS, DRIVEN = 0b000111, 0b111000, 0b1000000
#: Bits of a body that no contact moves.
STILL = TRANSLATIONS | ROTATIONS


#: How far a body looks for contacts ahead of its motion, at most: parts of its radius, and median edges of its mesh, of
#: which a fine one would list thousands. What is beyond is found by the walk.
REACH, EDGES = 0.25, 4.0


@wp.struct
class BodyConstants:
    """What never changes, one row a body."""

    mass: wp.array[wp.float64]  # [kg]
    inertia: wp.array[wp.mat33d]  # about the centre of mass, along the mesh's axes [kg m^2]
    centre: wp.array[wp.vec3d]  # of mass, in the mesh's frame [m]
    radius: wp.array[wp.float64]  # of the ball about the centre that holds the mesh [m]
    reach: wp.array[wp.float64]  # how far it looks for contacts ahead of its motion, at most [m]
    lower: wp.array[wp.vec3d]  # box of the mesh, from the centre, along the mesh's axes [m]
    upper: wp.array[wp.vec3d]
    held: wp.array[int]  # bits
    surface: wp.array[int]  # kind of surface
    shape: wp.array[int]  # number of its mesh among the distinct ones


@wp.struct
class RigidState:
    """What a step changes, one row a body."""

    position: wp.array[wp.vec3d]  # of the centre of mass [m]
    rotation: wp.array[wp.mat33d]
    velocity: wp.array[vec6d]  # [m/s], [rad/s]


def body_table(bodies: Sequence[Body], surfaces: SurfaceKinds, device: wp.Device) -> BodyConstants:
    """The constants of the bodies; what does not move has the mass 1, which nobody reads."""
    different = list({id(body): body for body in bodies}.values())  # copies of a world have the same ones
    place = {id(body): k for k, body in enumerate(different)}
    row = np.array([place[id(body)] for body in bodies])
    count = len(different)
    mass, inertia, centre = np.ones(count), np.tile(np.eye(3), (count, 1, 1)), np.zeros((count, 3))
    for i, body in enumerate(different):
        if body.moves:
            found = body.mass_properties
            mass[i], inertia[i], centre[i] = found.mass, found.inertia, found.centre
        else:  # a driven body turns about its middle, unless it says about what
            middle = collision_mesh(body).bounds.mean(axis=0)
            centre[i] = middle if body.centre is None else np.asarray(body.centre, float)
    meshes = [collision_mesh(body) for body in different]
    beyond = np.array([0.0 if body.analytic is None else beyond_facets(body.analytic) for body in different])
    radius = [np.linalg.norm(mesh.vertices - c, axis=1).max() for mesh, c in zip(meshes, centre, strict=True)]
    radius = np.array(radius) + beyond
    edges = [
        EDGES * float(np.median(np.linalg.norm(np.diff(mesh.vertices[mesh.edges], axis=1), axis=2))) for mesh in meshes
    ]
    reach = np.minimum(REACH * radius, edges)
    boxes = np.array([mesh.bounds for mesh in meshes]) - centre[:, None]
    boxes += beyond[:, None, None] * np.array([[-1.0], [1.0]])
    bits = np.array([sum(1 << k for k in range(6) if body.held[k]) for body in different])
    bits += np.array([DRIVEN if body.driven else 0 for body in different])
    number = {id(mesh): k for k, mesh in enumerate(distinct_meshes(different))}
    shape = np.array([number[id(mesh)] for mesh in meshes], np.int32)
    table: Any = BodyConstants()
    table.mass = _on(mass[row], wp.float64, device)
    table.inertia = _on(inertia[row], wp.mat33d, device)
    table.centre = _on(centre[row], wp.vec3d, device)
    table.radius = _on(radius[row], wp.float64, device)
    table.reach = _on(reach[row], wp.float64, device)
    table.lower, table.upper = (_on(boxes[row, k], wp.vec3d, device) for k in (0, 1))
    table.held = _on(bits[row].astype(np.int32), wp.int32, device)
    table.surface = _on(surfaces.of_body, wp.int32, device)
    table.shape = _on(shape[row], wp.int32, device)
    return table


def distinct_meshes(bodies: Sequence[Body]) -> list[Any]:
    """Each mesh once, in the order of the first body that has it."""
    return list({id(mesh): mesh for mesh in map(collision_mesh, bodies)}.values())


def collision_mesh(body: Body) -> Mesh:
    """What is compared with other meshes; ground is not, and has one triangle in its place."""
    return _no_mesh() if body.ground is not None else body.mesh


@cache
def _no_mesh() -> Mesh:
    return Mesh(np.eye(3), np.array([[0, 1, 2]], np.int32), name="ground")


def start_state(bodies: Sequence[Body], table: BodyConstants, device: wp.Device) -> RigidState:
    """Where the bodies are at the start, and how fast."""
    poses = np.array([body.pose for body in bodies])
    velocity = np.array([np.r_[body.velocity, body.spin] for body in bodies])
    held = np.array([body.held for body in bodies])
    driven = np.array([body.driven for body in bodies])
    state = empty_state(len(bodies), device)
    write_poses(state, table, poses)
    state.velocity.assign(np.where(held & ~driven[:, None], 0.0, velocity))
    return state


def empty_state(count: int, device: wp.Device) -> RigidState:
    """Room for the state of so many bodies."""
    state: Any = RigidState()
    state.position = wp.zeros(count, dtype=wp.vec3d, device=device)
    state.rotation = wp.zeros(count, dtype=wp.mat33d, device=device)
    state.velocity = wp.zeros(count, dtype=vec6d, device=device)
    return state


def copy_state(target: RigidState, source: RigidState) -> None:
    """Everything of one state into another."""
    for name in ("position", "rotation", "velocity"):
        wp.copy(getattr(target, name), getattr(source, name))


def read_poses(state: RigidState, table: BodyConstants) -> np.ndarray:
    """(n, 4, 4) from the meshes' frames to the world."""
    rotation, centre = state.rotation.numpy(), table.centre.numpy()
    poses = np.zeros((len(rotation), 4, 4))
    poses[:, :3, :3], poses[:, 3, 3] = rotation, 1.0
    poses[:, :3, 3] = state.position.numpy() - np.einsum("nij,nj->ni", rotation, centre)
    return poses


def write_poses(state: RigidState, table: BodyConstants, poses: np.ndarray) -> None:
    """Put all bodies where (n, 4, 4) poses of their meshes say."""
    rotation = np.ascontiguousarray(poses[:, :3, :3])
    state.rotation.assign(rotation)
    state.position.assign(poses[:, :3, 3] + np.einsum("nij,nj->ni", rotation, table.centre.numpy()))


@wp.func
def linear_of(motion: vec6d) -> wp.vec3d:
    """The linear part of a motion or a wrench."""
    return wp.vec3d(motion[0], motion[1], motion[2])


@wp.func
def angular_of(motion: vec6d) -> wp.vec3d:
    """The angular part of a motion or a wrench."""
    return wp.vec3d(motion[3], motion[4], motion[5])


@wp.func
def joined(linear: wp.vec3d, angular: wp.vec3d) -> vec6d:
    """A motion or a wrench of its parts."""
    return vec6d(linear[0], linear[1], linear[2], angular[0], angular[1], angular[2])


@wp.func
def at_point(motion: vec6d, arm: wp.vec3d) -> wp.vec3d:
    """The velocity of the point of a body at an arm from its centre of mass."""
    return linear_of(motion) + wp.cross(angular_of(motion), arm)


def _on(array: np.ndarray, dtype: Any, device: wp.Device) -> wp.array:
    return wp.array(np.ascontiguousarray(array), dtype=dtype, device=device)
