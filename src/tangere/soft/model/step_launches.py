"""Small launches of a step: the free motion, the surface carried along, velocities, bodies moved as a whole."""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.runtime import SOUND, PreparedLaunch
from tangere.soft.model.assembled_bodies import AssembledBodies, DofArrays, SurfaceArrays

wp.set_module_options(SOUND)

GRAIN = 8192


def predict(
    assembly: AssembledBodies, start: wp.array, free_motion: wp.array, dt: float, gravity: np.ndarray
) -> PreparedLaunch:
    """Keeps where the dofs start, and puts them where they would go without forces from inside."""
    arguments = [assembly.dofs, dt, wp.vec3d(*gravity), start, free_motion]
    return PreparedLaunch(_predict, arguments, assembly.device, grain=GRAIN)


def carry_surface(assembly: AssembledBodies, surface: wp.array) -> PreparedLaunch:
    """Puts the surface vertices where the dofs carry them."""
    return PreparedLaunch(_carry, [assembly.dofs.x, assembly.surface, surface], assembly.device, grain=GRAIN)


def find_velocity(
    assembly: AssembledBodies, reached: wp.array, owed: wp.array, start: wp.array, dt: float
) -> PreparedLaunch:
    """Velocities of free dofs from what they reached in the step, and what of their mean move bodies are owed."""
    arguments = [reached, start, owed, 1.0 / dt, assembly.dofs]
    return PreparedLaunch(_velocity, arguments, assembly.device, grain=GRAIN)


def move_bodies(assembly: AssembledBodies, by: wp.array) -> PreparedLaunch:
    """Moves each body by a vector of its own."""
    return PreparedLaunch(_move, [by, assembly.dofs], assembly.device, grain=GRAIN)


@wp.kernel
def _predict(
    first: int,
    dofs: DofArrays,
    dt: wp.float64,
    gravity: wp.vec3d,
    start: wp.array[wp.vec3d],
    free_motion: wp.array[wp.vec3d],
):
    i = first + wp.tid()
    start[i] = dofs.x[i]
    if dofs.free[i] == 1:
        # Damping is implicit: it slows down, and never turns round; `AssembledBodies.inertia` has the other half.
        slowed = dt / (wp.float64(1.0) + dt * dofs.damping[i])
        dofs.x[i] = dofs.x[i] + slowed * (dofs.v[i] + dt * gravity)
    else:
        dofs.x[i] = dofs.x[i] + dt * dofs.v[i]
    free_motion[i] = dofs.x[i]


@wp.kernel
def _carry(first: int, x: wp.array[wp.vec3d], surface: SurfaceArrays, positions: wp.array[wp.vec3d]):
    s = first + wp.tid()
    c = surface.carriers[s]
    w = surface.weights[s]
    positions[s] = w[0] * x[c[0]] + w[1] * x[c[1]] + w[2] * x[c[2]] + w[3] * x[c[3]]


@wp.kernel
def _velocity(
    first: int,
    reached: wp.array[wp.vec3d],
    start: wp.array[wp.vec3d],
    owed: wp.array[wp.vec3d],
    per_dt: wp.float64,
    dofs: DofArrays,
):
    """What is held keeps the velocity it was given."""
    i = first + wp.tid()
    if dofs.free[i] == 1:
        dofs.v[i] = per_dt * (reached[i] - start[i] + owed[dofs.body[i]])


@wp.kernel
def _move(first: int, by: wp.array[wp.vec3d], dofs: DofArrays):
    i = first + wp.tid()
    if dofs.free[i] == 1:
        dofs.x[i] = dofs.x[i] + by[dofs.body[i]]
