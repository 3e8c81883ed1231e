"""An engine pylon with a bent part that can only be pivoted out (for that of Redon 2002, chapter 6).

The part is an L: one leg stands in a gap between a shelf and the rear wall, the other lies under the shelf. Lifted, it
hits the shelf; drawn back, it hits the wall. Turned a quarter about the edge of the shelf, the first leg comes to lie
over the shelf, the second hangs in the gap, and it can be lifted out. x along the pylon, y across, z up.
"""

from __future__ import annotations

import numpy as np

from tangere.shape.generate.build.assembly import PartInPlace, pose, steps
from tangere.shape.generate.build.blocks import add, block_solid, cut_holes, rounded
from tangere.shape.generate.build.pieces import Piece, divided, joined, moved, rod
from tangere.shape.mesh.mesh import Mesh

_LENGTH, _WIDTH, _HEIGHT = 1.6, 0.5, 1.0  # of the bay [m]
_SHELF, _EDGE, _SHEET = 0.50, 0.30, 0.015  # underside of the shelf, its rear edge, thickness of sheets [m]
_THICK = 0.06  # of the bent part [m]
_INNER = (0.285, 0.25, 0.49)  # inner corner of the bent part where it is mounted [m]


def pylon_frame(triangles: int = 78_000, *, name: str = "pylon frame") -> Mesh:
    """The bay: perforated walls, beams and shelf, struts, pipes and brackets; closed pieces that go through each other.

    Args:
        triangles: exactly how many; even and at least 40,844.
    """
    x, y, z = _LENGTH, _WIDTH, _HEIGHT
    pieces = [_sheet(0, 0.10, (0.0, y), (0.0, z), (5, 9)), _sheet(0, x - _SHEET, (0.0, y), (0.0, z), (5, 9))]
    pieces += [_sheet(1, side, (0.0, x), (0.06, 0.45), (15, 4)) for side in (0.0, y - _SHEET)]
    pieces += [_sheet(1, side, (0.0, x), (0.55, 0.70), (15, 1)) for side in (0.0, y - _SHEET)]
    pieces += [_sheet(2, 0.14, (0.05, x), (0.0, y), (15, 5)), _sheet(2, _SHELF, (_EDGE, x), (0.0, y), (12, 5))]
    pieces += [_beam(x, (0.0, side, level)) for side in (0.02, y - 0.05) for level in (0.02, 0.46, z - 0.06)]
    for side in (0.0, y):
        pieces += [_bar((at, side, 0.0), (at, side, z), 0.02) for at in (0.0, 0.4, 0.8, 1.2, x)]
        pieces += [_bar((at, side, 0.5), (at + 0.4, side, z), 0.012) for at in (0.4, 0.8, 1.2)]
        pieces += [_bar((at + 0.4, side, 0.5), (at, side, z), 0.012) for at in (0.4, 0.8, 1.2)]
    for side, level in ((0.08, 0.22), (0.42, 0.22), (0.08, 0.62), (0.42, 0.62), (0.12, 0.30)):
        pieces.append(_pipe(side, level))
    pieces += [
        moved(_clip(), by=(at, side, level))
        for at in (0.5, 0.7, 0.9, 1.1, 1.3)
        for side in (0.06, 0.40)
        for level in (_SHELF + _SHEET, 0.14 + _SHEET)
    ]
    vertices, faces = divided("pylon frame", joined(pieces), triangles)
    return Mesh(vertices, faces, name=name)


def bent_bracket(triangles: int = 2000, *, name: str = "bent bracket") -> Mesh:
    """An L along z (0.40 m) and x (0.36 m), its inner corner at the origin, with bolt holes across; closed.

    Args:
        triangles: exactly how many; even and at least 376.
    """
    half, t = 0.05, _THICK
    holes = np.array([[-0.5 * t, 0.20], [-0.5 * t, 0.30], [0.15, -0.5 * t], [0.25, -0.5 * t]])
    boxes = [add((-t, -half, -t), (0.0, half, 0.34)), add((0.0, -half, -t), (0.30, half, 0.0))]
    vertices, faces = divided(
        "bent bracket", block_solid([*boxes, *cut_holes(1, holes, 0.015, -half, half)]), triangles
    )
    return Mesh(rounded(vertices, 1, holes, 0.015), faces, name=name)


def pylon_bay(triangles: int = 80_000) -> PartInPlace:
    """The bent bracket in the pylon; the free path pivots it by 90 degrees while it rises 35 mm, then lifts it out.

    Args:
        triangles: of both together, 1/40 of them for the bracket; a multiple of 80.
    """
    x, y, z = _INNER
    mounted, turned = (x, y, z, 0.0), (x, y, z + 0.035, 0.5 * np.pi)
    free = [pose(_INNER)[None], steps(mounted, turned, 36), steps(turned, (x, y, z + 0.75, turned[3]), 10)]
    touching = [pose(_INNER)[None], steps(mounted, (x, y, z + 0.75, 0.0), 10)]
    return PartInPlace(
        part=bent_bracket(triangles // 40),
        fixed=pylon_frame(triangles - triangles // 40),
        free_path=np.concatenate(free),
        touching_path=np.concatenate(touching),
    )


def _sheet(
    axis: int, at: float, first: tuple[float, float], second: tuple[float, float], holes: tuple[int, int]
) -> Piece:
    """A sheet across `axis` with a grid of round holes; the two spans are along the other axes in their order."""
    spans, other = (first, second), [k for k in range(3) if k != axis]
    pitch = [(high - low) / (n + 1) for (low, high), n in zip(spans, holes, strict=True)]
    lines = [low + step * np.arange(1, n + 1) for (low, _), step, n in zip(spans, pitch, holes, strict=True)]
    centres, radius = np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1).reshape(-1, 2), 0.3 * min(pitch)
    low, high = np.empty(3), np.empty(3)
    low[axis], high[axis] = at, at + _SHEET
    low[other], high[other] = [span[0] for span in spans], [span[1] for span in spans]
    vertices, faces = block_solid([add(low, high), *cut_holes(axis, centres, radius, at, at + _SHEET)])
    return rounded(vertices, axis, centres, radius), faces


def _beam(span: float, at: tuple[float, float, float]) -> Piece:
    """A U-shaped beam along x, 30 mm by 40 mm, with holes in its web."""
    centres = np.stack([np.linspace(0.05, span - 0.05, 16), np.full(16, 0.02)], axis=1)
    boxes = [add((0.0, 0.0, 0.0), (span, 0.03, 0.004)), add((0.0, 0.0, 0.036), (span, 0.03, 0.04))]
    boxes += [add((0.0, 0.0, 0.0), (span, 0.004, 0.04)), *cut_holes(1, centres, 0.010, 0.0, 0.004)]
    vertices, faces = block_solid(boxes)
    return moved((rounded(vertices, 1, centres, 0.010), faces), by=at)


def _bar(start: tuple[float, float, float], end: tuple[float, float, float], radius: float) -> Piece:
    return rod(np.linspace(start, end, 4), radius, 12)


def _pipe(side: float, level: float) -> Piece:
    """A pipe along x with two bends round an obstacle."""
    x = np.linspace(0.06, _LENGTH - 0.06, 60)
    swing = 0.04 * np.exp(-(((x - 1.0) / 0.12) ** 2))
    return rod(np.stack([x, side + np.sign(0.25 - side) * swing, level + swing], axis=1), 0.014, 12)


def _clip() -> Piece:
    """A small angle bracket with a hole in each leg."""
    centre = np.array([[0.02, 0.02]])
    boxes = [add((0.0, 0.0, 0.0), (0.04, 0.04, 0.004)), add((0.0, 0.0, 0.0), (0.04, 0.004, 0.04))]
    boxes += [*cut_holes(2, centre, 0.008, 0.0, 0.004), *cut_holes(1, centre, 0.008, 0.0, 0.004)]
    vertices, faces = block_solid(boxes)
    return rounded(rounded(vertices, 2, centre, 0.008), 1, centre, 0.008), faces
