"""Car doors with two skins, and the window lifter inside one (for those of Redon 2002, chapters 4 and 6).

A door stands in the xz plane, its front edge at x = 0, its foot at z = 0; y goes from the outer skin into the car. It
is cut from blocks, refined, then bent: the window frame leans back and the outside bulges.
"""

from __future__ import annotations

import numpy as np

from tangere.runtime import InputError, described
from tangere.shape.generate.build.assembly import PartInPlace, pose, steps
from tangere.shape.generate.build.blocks import Box, add, block_solid, cut, cut_holes, rounded
from tangere.shape.generate.build.lattice import revolve
from tangere.shape.generate.build.pieces import Piece, divided, joined, moved
from tangere.shape.mesh.mesh import Mesh

_LENGTH, _HEIGHT, _BELT = 1.1, 1.1, 0.64  # along x, along z, and where the window begins [m]
_LEAN = 0.55  # how far the front of the window frame goes back for each metre up
_SKIN = 0.012  # thickness of each sheet [m]

#: Corners of the door seen from the side, counter-clockwise in (x, z) [m].
DOOR_OUTLINE = np.array(
    [[0.0, 0.0], [_LENGTH, 0.0], [_LENGTH, _HEIGHT], [_LEAN * (_HEIGHT - _BELT), _HEIGHT], [0.0, _BELT]]
)


def door_panel(triangles: int = 3530, *, crown: float = 0.0, name: str = "door panel") -> Mesh:
    """A car door: two bent skins with ribs between them, a window, and round holes in the inner skin; closed.

    Args:
        triangles: exactly how many; even and at least 3,456.
        crown: how far the middle is also bent outwards from front to rear [m]; 0 leaves it bent in one direction.
    """
    if not 0.0 <= crown <= 0.2:
        raise InputError(f"door panel: crown must be between 0 and 0.2 m, not {described(crown)}")
    depth = 0.07
    ribs = [(x, x + 0.02) for x in (0.34, 0.72)]
    bays = np.array([[0.19, 0.33], [0.53, 0.33], [0.89, 0.33]])
    small = np.array([[0.10, 0.12], [0.28, 0.12], [0.44, 0.12], [0.64, 0.12], [0.80, 0.12], [0.98, 0.12]])
    inside = (depth - _SKIN, depth)
    boxes = [
        *_shell(depth),
        *(add((low, _SKIN, 0.04), (high, depth - _SKIN, 0.6)) for low, high in ribs),
        *cut_holes(1, bays, 0.10, *inside),
        *cut_holes(1, small, 0.025, *inside),
    ]
    vertices, faces = divided("door panel", block_solid(boxes), triangles)
    vertices = rounded(rounded(vertices, 1, bays, 0.10), 1, small, 0.025)
    return Mesh(_crowned(_bent(vertices), crown), faces, name=name)


def door_cavity(triangles: int = 12_000, *, name: str = "door cavity") -> Mesh:
    """A deep door without ribs whose only opening, besides the window, is a slot in the inner skin; closed.

    The slot is 0.18 m wide, from x = 0.62 m, and 0.40 m high, from z = 0.10 m.

    Args:
        triangles: exactly how many; even and at least 496.
    """
    depth = 0.16
    boxes = [*_shell(depth), cut((0.62, depth - _SKIN, 0.10), (0.80, depth, 0.50))]
    vertices, faces = divided("door cavity", block_solid(boxes), triangles)
    return Mesh(_bent(vertices), faces, name=name)


def lifter_motor(triangles: int = 8000, *, name: str = "lifter motor") -> Mesh:
    """A window-lifter: motor, gearbox and bracket on a rail of 0.36 m along x, 0.10 m deep; four closed pieces.

    The pieces go through each other where they are joined. The middle of the gearbox is the origin.

    Args:
        triangles: exactly how many; even and at least 1,112.
    """
    flat, slots = (0.038, 0.046), np.array([[-0.045, -0.045], [0.045, -0.045], [-0.045, 0.045], [0.045, 0.045]])
    bracket = [add((-0.06, flat[0], -0.06), (0.06, flat[1], 0.06)), *cut_holes(1, slots, 0.008, *flat)]
    rail = [
        add((-0.18, 0.04, -0.02), (0.18, 0.05, 0.02)),
        cut((-0.17, 0.044, -0.012), (0.17, 0.05, 0.012)),
    ]
    pieces = [
        _drum([0.03, 0.05, 0.05, 0.044, 0.044, 0.05, 0.05], [-0.05, -0.05, -0.01, -0.006, 0.0, 0.004, 0.042], 1),
        moved(_drum([0.01, 0.01, 0.026, 0.026, 0.020], [-0.15, -0.135, -0.135, -0.04, 0.0], 0), by=(0.0, -0.015, 0.0)),
        block_solid(rail),
    ]
    vertices, faces = divided("lifter motor", joined([*pieces, block_solid(bracket)]), triangles)
    return Mesh(rounded(vertices, 1, slots, 0.008), faces, name=name)


def window_lifter(triangles: int = 20_000) -> PartInPlace:
    """The lifter motor inside the door. The rail is longer than the slot is wide: it has to be turned upright first.

    The free path turns the motor a quarter, brings it before the slot and takes it out; the other forgets to turn.

    Args:
        triangles: of both together; a multiple of 10, two fifths for the motor.
    """
    y, out = 0.022, 0.40
    mounted, upright, before = (0.33, y, 0.32, 0.0), (0.33, y, 0.32, 0.5 * np.pi), (0.71, y, 0.30, 0.5 * np.pi)
    here = pose(mounted[:3])[None]
    free = [
        here,
        steps(mounted, upright, 18),
        steps(upright, before, 6),
        steps(before, (0.71, out, 0.30, before[3]), 6),
    ]
    level = (0.71, y, 0.30, 0.0)
    touching = [here, steps(mounted, level, 6), steps(level, (0.71, out, 0.30, 0.0), 6)]
    return PartInPlace(
        part=lifter_motor(2 * (triangles // 5)),
        fixed=door_cavity(triangles - 2 * (triangles // 5)),
        free_path=np.concatenate(free),
        touching_path=np.concatenate(touching),
    )


def bulge(height: np.ndarray) -> np.ndarray:
    """How far the side of the car is bent outwards (towards -y) at a height z [m]."""
    return -0.06 * (1.0 - ((height - 0.33) / 0.8) ** 2)


def _shell(depth: float) -> list[Box]:
    """A door of two skins with a hollow below the window."""
    return [
        add((0.0, 0.0, 0.0), (_LENGTH, depth, _HEIGHT)),
        cut((0.04, _SKIN, 0.04), (_LENGTH - 0.04, depth - _SKIN, 0.6)),
        cut((0.07, 0.0, _BELT + 0.02), (_LENGTH - 0.07, depth, _HEIGHT - 0.05)),
    ]


def _bent(vertices: np.ndarray) -> np.ndarray:
    """Blocks bent to the shape of the door; rows of equal z stay in their plane."""
    x, y, z = vertices.T
    lean = _LEAN * np.maximum(z - _BELT, 0.0)
    return np.stack([x + lean * (1.0 - x / _LENGTH), y + bulge(z), z], axis=1)


def _crowned(vertices: np.ndarray, crown: float) -> np.ndarray:
    """The outside bent along x as well: a door that is curved in two directions."""
    x, y, z = vertices.T
    return np.stack([x, y - crown * (1.0 - (2.0 * x / _LENGTH - 1.0) ** 2), z], axis=1)


def _drum(radii: list[float], heights: list[float], axis: int) -> Piece:
    """A turned part along a coordinate axis, closed at both ends."""
    rings = np.stack([radii, heights], axis=1)
    vertices, faces = revolve(rings, 32, first_pole=heights[0], last_pole=heights[-1])
    return np.roll(vertices, axis + 1, axis=1), faces
