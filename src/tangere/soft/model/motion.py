"""Small launches of a step: the free motion, the surface carried along, velocities, bodies moved as a whole."""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.runtime import SOUND, PreparedLaunch
from tangere.soft.model.assembly import Assembly

wp.set_module_options(SOUND)

GRAIN = 8192


def predict(
    assembly: Assembly, start: wp.array, free_motion: wp.array, dt: float, gravity: np.ndarray
) -> PreparedLaunch:
    """Keeps where the dofs start, and puts them where they would go without forces from inside."""
    arguments = [assembly.x, assembly.v, assembly.free, assembly.damping, dt, wp.vec3d(*gravity), start, free_motion]
    return PreparedLaunch(_predict, arguments, assembly.device, grain=GRAIN)


def carry_surface(assembly: Assembly, surface: wp.array) -> PreparedLaunch:
    """Puts the surface vertices where the dofs carry them."""
    return PreparedLaunch(
        _carry, [assembly.x, assembly.carriers, assembly.weights, surface], assembly.device, grain=GRAIN
    )


def find_velocity(assembly: Assembly, reached: wp.array, owed: wp.array, start: wp.array, dt: float) -> PreparedLaunch:
    """Velocities of free dofs from what they reached in the step, and what of their mean move bodies are owed."""
    arguments = [reached, start, assembly.free, assembly.body_of_dof, owed, 1.0 / dt, assembly.v]
    return PreparedLaunch(_velocity, arguments, assembly.device, grain=GRAIN)


def move_bodies(assembly: Assembly, by: wp.array) -> PreparedLaunch:
    """Moves each body by a vector of its own."""
    arguments = [assembly.body_of_dof, assembly.free, by, assembly.x]
    return PreparedLaunch(_move, arguments, assembly.device, grain=GRAIN)


@wp.kernel
def _predict(
    first: int,
    x: wp.array[wp.vec3d],
    v: wp.array[wp.vec3d],
    free: wp.array[int],
    damping: wp.array[wp.float64],
    dt: wp.float64,
    gravity: wp.vec3d,
    start: wp.array[wp.vec3d],
    free_motion: wp.array[wp.vec3d],
):
    i = first + wp.tid()
    start[i] = x[i]
    if free[i] == 1:
        # Damping is implicit: it slows down, and never turns round.
        x[i] = x[i] + (dt / (wp.float64(1.0) + dt * damping[i])) * (v[i] + dt * gravity)
    else:
        x[i] = x[i] + dt * v[i]
    free_motion[i] = x[i]


@wp.kernel
def _carry(
    first: int,
    x: wp.array[wp.vec3d],
    carriers: wp.array[wp.vec4i],
    weights: wp.array[wp.vec4d],
    surface: wp.array[wp.vec3d],
):
    s = first + wp.tid()
    c = carriers[s]
    w = weights[s]
    surface[s] = w[0] * x[c[0]] + w[1] * x[c[1]] + w[2] * x[c[2]] + w[3] * x[c[3]]


@wp.kernel
def _velocity(
    first: int,
    reached: wp.array[wp.vec3d],
    start: wp.array[wp.vec3d],
    free: wp.array[int],
    body: wp.array[int],
    owed: wp.array[wp.vec3d],
    per_dt: wp.float64,
    v: wp.array[wp.vec3d],
):
    """What is held keeps the velocity it was given."""
    i = first + wp.tid()
    if free[i] == 1:
        v[i] = per_dt * (reached[i] - start[i] + owed[body[i]])


@wp.kernel
def _move(first: int, body: wp.array[int], free: wp.array[int], by: wp.array[wp.vec3d], x: wp.array[wp.vec3d]):
    i = first + wp.tid()
    if free[i] == 1:
        x[i] = x[i] + by[body[i]]
