"""Worlds with a part to hold: the parts of Redon 2002, chapter 6, a square peg, and a finger on a steering wheel.

The shapes are of our own making with as many triangles as in the document. The part is the last body of each world and
is called "part".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tangere.dynamics import Body, World
from tangere.runtime import positive
from tangere.shape import generate
from tangere.shape.generate import PartInPlace
from tangere.shape.mesh import Mesh

#: The security distance, as a part of the size of what stands still.
SECURITY_PART = 1e-4
#: Half the side of a square hole, half the side of its plate, and the thickness of that [m].
HOLE, PLATE, THICK = 0.01, 0.03, 0.02


def door(triangles: tuple[int, int] = (16_000, 29_000), **options: Any) -> World:
    """A door in front of the opening of a car body, ready to be put in; options are those of `World`."""
    task = generate.door_on_body(*triangles)
    return _part_in_place(task, task.free_path[-1], options)


def lifter(**options: Any) -> World:
    """The motor of a window lifter in its door, ready to be taken out: 20,000 triangles."""
    task = generate.window_lifter()
    return _part_in_place(task, task.free_path[0], options)


def pylon(**options: Any) -> World:
    """A bent part in a pylon of perforated beams and pipes, ready to be taken out: 80,000 triangles."""
    task = generate.pylon_bay()
    return _part_in_place(task, task.free_path[0], options)


def wheel(*, finger: float = 0.001, above: float = 0.002, **options: Any) -> World:
    """A small cube above the logo of a steering wheel of 11,000 triangles; it does not turn.

    Args:
        finger: side of the cube [m].
        above: how far above the hub's highest point it begins [m].
        options: of the `World`; the separation is a fiftieth of the cube unless given.
    """
    mesh, start = generate.steering_wheel(), np.eye(4)
    hub = np.linalg.norm(mesh.vertices[:, :2], axis=1) < 0.06
    start[2, 3] = mesh.vertices[hub, 2].max() + 0.5 * positive(finger, "finger") + above
    cube = Body(generate.box((finger,) * 3), start, fixed=(False, False, False, True, True, True), name="part")
    return World([Body(mesh, fixed=True, name="wheel"), cube], **{"separation": 0.02 * finger, **options})


def square_peg(clearance: float = 1e-4, *, separations: float = 4.0, depth: float = 0.01, **options: Any) -> World:
    """A square peg, 40 mm long, in a square hole of 20 mm; it is in by so much and goes in along -z.

    Args:
        clearance: on each side [m].
        separations: how many security distances the clearance is; 1.1 leaves a tenth of one to move in.
        depth: how far it is in [m]; below zero it is above the hole.
        options: of the `World`.
    """
    half, start = HOLE - positive(clearance, "clearance", below=HOLE), np.eye(4)
    start[2, 3] = 0.02 - depth
    peg = Body(generate.box((2.0 * half, 2.0 * half, 0.04)), start, name="part")
    plate = Body(plate_with_square_hole(), fixed=True, name="plate")
    security = clearance / positive(separations, "separations")
    return World([plate, peg], **{"separation": security, **options})


def plate_with_square_hole() -> Mesh:
    """A closed plate below z = 0 with a square hole through it."""
    outer, inner = PLATE * _CORNERS, HOLE * _CORNERS
    ring = np.concatenate([outer, inner])
    vertices = np.concatenate([np.c_[ring, np.zeros(8)], np.c_[ring, np.full(8, -THICK)]])
    faces = []
    for k in range(4):
        n = (k + 1) % 4
        faces += [[k, n, 4 + n], [k, 4 + n, 4 + k], [8 + k, 12 + n, 8 + n], [8 + k, 12 + k, 12 + n]]  # top, bottom
        faces += [[k, 8 + n, n], [k, 8 + k, 8 + n]]  # outside
        faces += [[4 + k, 4 + n, 12 + n], [4 + k, 12 + n, 12 + k]]  # the hole
    return Mesh(vertices, np.array(faces), name="plate")


_CORNERS = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])

#: Scenes by name.
SCENES: dict[str, Callable[..., World]] = {
    "door": door,
    "lifter": lifter,
    "peg": square_peg,
    "pylon": pylon,
    "wheel": wheel,
}


def _part_in_place(task: PartInPlace, pose: np.ndarray, options: dict[str, Any]) -> World:
    bodies = [Body(task.fixed, fixed=True, name=task.fixed.name), Body(task.part, pose, name="part")]
    return World(bodies, **{"separation": SECURITY_PART * task.fixed.extent, "gravity": (0.0, 0.0, 0.0), **options})
