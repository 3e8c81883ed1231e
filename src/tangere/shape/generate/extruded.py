"""Outlines given a height, with as few triangles as they can have: prisms and combs.

An outline with k points becomes 4k - 4 triangles: 2k on the sides, k - 2 on each end.
"""

from __future__ import annotations

import numpy as np

from tangere.runtime import InputError, positive, whole
from tangere.shape.generate.build.budget import solve
from tangere.shape.generate.build.lattice import band
from tangere.shape.mesh.mesh import Mesh


def prism(
    sides: int | None = None,
    *,
    triangles: int | None = None,
    radius: float = 1.0,
    height: float = 1.0,
    name: str = "prism",
) -> Mesh:
    """A regular prism along z, centred at the origin; closed. Without `sides` and `triangles` it has six sides.

    Args:
        sides: of the regular polygon, at least 3; a prism has 4 sides - 4 triangles.
        triangles: exactly how many, instead of `sides`.
        radius: of the circle through the polygon's corners [m].
        height: along z [m].
    """
    if sides is not None and triangles is not None:
        raise InputError("prism: give sides or triangles, not both")
    if triangles is not None:
        sides = solve("prism", triangles, lambda n: n // 4 + 1 if n % 4 == 0 and n >= 8 else None)
    sides = whole(6 if sides is None else sides, "prism: sides", least=3)
    angle = 2.0 * np.pi * np.arange(sides) / sides
    outline = positive(radius, "prism: radius") * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    later = np.arange(1, sides - 1)
    fan = np.stack([np.zeros_like(later), later, later + 1], axis=1)
    return _extruded(outline, fan, positive(height, "prism: height"), name)


def comb(
    teeth: int | None = None,
    *,
    triangles: int | None = None,
    pitch: float = 0.2,
    gap: float = 0.5,
    length_of_teeth: float = 1.0,
    back: float = 0.2,
    thickness: float = 0.2,
    name: str = "comb",
) -> Mesh:
    """A comb in the xy plane: a bar along x with teeth along +y, made of few large triangles; closed.

    Two combs engage when one is turned half a turn about z and shifted by half a pitch. The bar starts at the origin;
    thickness is centred on z = 0. Without `teeth` and `triangles` it has 12 teeth.

    Args:
        teeth: how many, at least 1; a comb has 16 teeth - 4 triangles.
        triangles: exactly how many, instead of `teeth`.
        pitch: from one tooth to the next [m].
        gap: width of the space between teeth, as a fraction of the pitch.
        length_of_teeth: beyond the bar [m].
        back: width of the bar [m].
        thickness: along z [m].
    """
    if teeth is not None and triangles is not None:
        raise InputError("comb: give teeth or triangles, not both")
    if triangles is not None:
        teeth = solve("comb", triangles, lambda n: (n + 4) // 16 if n % 16 == 12 else None)
    teeth = whole(12 if teeth is None else teeth, "comb: teeth", least=1)
    positive(gap, "comb: gap", below=1.0)
    left = positive(pitch, "comb: pitch") * np.arange(teeth)
    right = left + (1.0 - gap) * pitch
    foot = positive(back, "comb: back")
    tip = foot + positive(length_of_teeth, "comb: length_of_teeth")

    # Along the teeth from right to left each has four corners: foot, tip, tip, foot. The outermost two feet lie on
    # the straight ends of the comb, so the bar's own corners take their place.
    corners = np.stack(
        [np.stack([right, right, left, left], axis=1), np.tile([foot, tip, tip, foot], (teeth, 1))], axis=2
    )
    outline = corners[::-1].reshape(-1, 2)
    outline[0, 1] = outline[-1, 1] = 0.0
    first = 4 * np.arange(teeth)[:, None]
    tooth_faces = (first + [[0, 1, 2, 0, 2, 3]]).reshape(-1, 3)
    feet = np.sort(np.concatenate([first[1:, 0], first[:-1, 0] + 3]))  # on the bar, right to left
    bar_corner = np.full(len(feet), len(outline) - 1)
    bar_faces = np.stack([bar_corner, np.append(0, feet)[:-1], feet], axis=1)
    return _extruded(outline, np.concatenate([tooth_faces, bar_faces]), positive(thickness, "comb: thickness"), name)


def _extruded(outline: np.ndarray, cap: np.ndarray, height: float, name: str) -> Mesh:
    """The solid over a counter-clockwise outline (k, 2) whose inside is triangulated by `cap`, centred on z = 0."""
    count = len(outline)
    below = np.column_stack([outline, np.full(count, -0.5 * height)])
    here = np.arange(count + 1) % count
    sides = np.stack([here, here + count], axis=1).ravel()[band(count + 1, 2, wrap=False)]
    return Mesh(
        np.concatenate([below, below * [1.0, 1.0, -1.0]]),
        np.concatenate([cap[:, ::-1], cap + count, sides]),
        name=name,
    )
