"""A bent pipe that goes into a converging nozzle, for the demonstration with a force-feedback arm of Redon 2002."""

from __future__ import annotations

import numpy as np

from tangere.runtime import positive
from tangere.shape.generate import PartInPlace
from tangere.shape.generate.build.assembly import pose, steps
from tangere.shape.generate.build.lattice import ring_grid
from tangere.shape.generate.build.pieces import divided
from tangere.shape.generate.build.sweep import sweep
from tangere.shape.mesh import Mesh

__all__ = ["bent_pipe", "nozzle", "pipe_nozzle"]

_PIPE, _BORE = 0.03, 0.022  # outer and inner radius of the pipe [m]
_STRAIGHT, _BEND = 0.15, 0.12  # length of the straight ends, radius of the bend [m]


def bent_pipe(triangles: int = 4000, *, name: str = "bent pipe") -> Mesh:
    """A pipe, 60 mm wide, that comes down the z axis, ends at the origin and bends towards +x further up; closed.

    Args:
        triangles: exactly how many; even and at least 3,968.
    """
    turn = 0.5 * np.pi * np.linspace(0.0, 1.0, 17)
    bend = np.stack([_BEND * (1.0 - np.cos(turn)), 0.0 * turn, _STRAIGHT + _BEND * np.sin(turn)], axis=1)
    straight = np.linspace(0.0, 1.0, 8)[:-1, None]
    path = np.concatenate([straight * bend[0], bend, bend[-1] + (straight + 1.0 / 7.0) * [_STRAIGHT, 0.0, 0.0]])
    return _hollow("bent pipe", path, np.full(len(path), _PIPE), np.full(len(path), _BORE), triangles, name)


def nozzle(triangles: int = 4000, *, clearance: float = 0.002, name: str = "nozzle") -> Mesh:
    """A nozzle round the z axis, open above; below z = -0.04 m it is a sleeve for the pipe, 0.1 m long; closed.

    Args:
        triangles: exactly how many; even and at least 1,920.
        clearance: between the pipe and the sleeve, all round [m].
    """
    positive(clearance, "nozzle: clearance", below=0.02)
    height = np.array(
        [-0.14, -0.115, -0.09, -0.065, -0.04, -0.035, -0.03, -0.02, -0.01, 0.0, 0.01, 0.02, 0.03, 0.045, 0.06]
    )
    opening = np.clip((height + 0.04) / 0.10, 0.0, 1.0)
    # The polygon of the sleeve has its sides, not its corners, at the clearance.
    inner = (_PIPE + clearance) / np.cos(np.pi / 32) + 0.05 * opening**2
    path = np.stack([0.0 * height, 0.0 * height, height], axis=1)
    return _hollow("nozzle", path, inner + 0.01, inner, triangles, name)


def pipe_nozzle(triangles: int = 8000, *, clearance: float = 0.002) -> PartInPlace:
    """The pipe in the sleeve of the nozzle; it comes out straight, or touches when it is tilted at once.

    Args:
        triangles: of both together, half each; a multiple of 4.
        clearance: between the pipe and the sleeve, all round [m].
    """
    inside, outside = (0.0, 0.0, -0.1, 0.0), (0.0, 0.0, 0.15, 0.0)
    here = pose(inside[:3])[None]
    return PartInPlace(
        part=bent_pipe(triangles // 2),
        fixed=nozzle(triangles // 2, clearance=clearance),
        free_path=np.concatenate([here, steps(inside, outside, 8)]),
        touching_path=np.concatenate([here, steps(inside, (0.0, 0.0, 0.0, 0.4), 8)]),
    )


def _hollow(shape: str, path: np.ndarray, outer: np.ndarray, inner: np.ndarray, triangles: int, name: str) -> Mesh:
    """A tube with a wall: along the outside and back along the inside."""
    sides = 32
    outside, inside = (sweep(path, radius, sides, closed=False)[0].reshape(-1, sides, 3) for radius in (outer, inner))
    vertices = np.concatenate([outside, inside[::-1]]).reshape(-1, 3)
    return Mesh(*divided(shape, (vertices, ring_grid(2 * len(path), sides)), triangles), name=name)
