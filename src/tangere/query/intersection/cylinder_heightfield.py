"""Does a cylinder touch the ground, at one instant?

Method: descend the pyramid; drop a node when a plane of the cylinder (its base, five of its side) has all ground of the
        node on the far side; decide triangles by an exact test (which the article lacks, ERR-9: it asks for the closest
        point only): the part of the triangle between the base planes is convex, so only its nearest point to the axis
        matters. That part's border consists of pieces of the edges and of chords in the base planes; none of it has to
        be stored. The first hit ends the search.
Sound:  closed sets, touching counts, up to rounding of the coordinates relative to the cylinder. Planar ground is
        decided as one square (`Terrain.planar`).
Known as: overlap test of a convex body and a heightfield.
A cylinder below the surface that does not touch it is buried, which is reported as well, unless it is over a hole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from tangere.bvh.height_pyramid import (
    GAP,
    PLANAR,
    NodeStack,
    Terrain,
    cell_window,
    height_at,
    node_bounds,
    node_column,
    node_flags,
    node_heights,
    node_key,
    node_level,
    node_row,
    start_level,
    terrain_visits,
    tiles_held,
)
from tangere.query.dispatch import refuse_unsupported
from tangere.runtime import SOUND, InputError, choose_device, launch, to_numpy, using_threads
from tangere.shape.analytic import AnalyticShape, Cylinder
from tangere.shape.heightfield import Heightfield, TiledHeightfield

wp.set_module_options(SOUND)

#: Cylinders worth a thread: a microsecond each on smooth ground.
GRAIN = 512

FAR = wp.constant(wp.float64(1e300))
DIAGONAL = wp.constant(wp.float64(0.5**0.5))
#: Rounding of the planes that drop a node, relative to the lengths that make it.
ROUNDING = wp.constant(wp.float64(1e-12))
_ZERO = wp.constant(wp.float64(0.0))
_HALF = wp.constant(wp.float64(0.5))
_ONE = wp.constant(wp.float64(1.0))

FREE = wp.constant(0)
SURFACE = wp.constant(1)
BURIED = wp.constant(2)
OUTSIDE = wp.constant(3)


@dataclass(frozen=True, eq=False)
class Touches:
    """How n cylinders are to the ground."""

    surface: np.ndarray  #: (n,) bool: touches or cuts the surface
    buried: np.ndarray  #: (n,) bool: wholly below it
    outside: np.ndarray  #: (n,) bool: its box is beside the terrain

    @property
    def hit(self) -> np.ndarray:
        """(n,) bool: touches the ground, which is solid."""
        return self.surface | self.buried

    def __len__(self) -> int:
        return len(self.surface)

    def __repr__(self) -> str:
        counts = f"{int(self.surface.sum())} touch, {int(self.buried.sum())} buried, {int(self.outside.sum())} outside"
        return f"Touches({len(self)} cylinders: {counts})"


def touches(
    cylinders: Cylinder, terrain: Any, *, device: str | wp.Device | None = None, threads: int | None = None
) -> Touches:
    """Whether each cylinder touches the ground, decided exactly.

    The surface is what touches, and what has its centre below it is buried: a cylinder that reaches into the ground
    under the surface, from a hole or from beyond the border, is neither. `manifold` tells how deep it is there.

    Args:
        cylinders: n of them, placed by `at`.
        terrain: a `Heightfield` or `TiledHeightfield`.
        device: where to compute; None means where the poses are, else CUDA if present.
        threads: CPU threads; None means all, or TANGERE_THREADS.

    Example:
        >>> import numpy as np
        >>> from tangere.shape.analytic import Cylinder
        >>> from tangere.shape.heightfield import Heightfield
        >>> pose = np.eye(4)
        >>> pose[:3, 3] = [5.0, 5.0, 0.6]
        >>> touches(Cylinder(0.5, 1.2).at(pose), Heightfield(np.zeros((11, 11))), device="cpu")
        Touches(1 cylinders: 1 touch, 0 buried, 0 outside)
    """
    if not isinstance(cylinders, Cylinder) or not isinstance(terrain, Heightfield | TiledHeightfield):
        refuse_unsupported("touches", cylinders, terrain)
    device = choose_device(device, cylinders.poses)
    poses = to_numpy(cylinders.poses, "poses").reshape(-1, 4, 4)
    wrong = ~np.isfinite(poses).all(axis=(1, 2))
    if wrong.any():
        raise InputError(f"cylinder {int(np.argmax(wrong))}: its pose is not finite")
    sizes = cylinders.records
    codes = np.empty(len(poses), np.uint8)
    reach = np.hypot(sizes["radius"], sizes["half"][:, 2])
    with using_threads(threads), tiles_held([terrain], device):
        for rows, ground in terrain_visits(terrain, poses[:, :3, 3], reach, device):
            shapes = wp.array(sizes if len(sizes) == 1 else sizes[rows], dtype=AnalyticShape, device=device)
            placed = wp.array(np.ascontiguousarray(poses[rows]), dtype=wp.mat44d, device=device)
            out = wp.empty(len(placed), dtype=wp.uint8, device=device)
            launch(_touch, len(placed), [ground, shapes, placed], [out], device=device, grain=GRAIN)
            codes[rows] = out.numpy()
    return Touches(codes == SURFACE, codes == BURIED, codes == OUTSIDE)


@wp.struct
class UprightCylinder:
    """A cylinder relative to the terrain's origin, with what the planes that drop nodes need."""

    centre: wp.vec3d
    axis: wp.vec3d  # unit, not downward
    down: wp.vec3d  # unit, across the axis, as far down as can be
    side: wp.vec3d  # unit, across both, level
    radius: wp.float64
    half: wp.float64  # of the height
    reach: wp.vec3d  # half of the box around it
    slack: wp.float64


@wp.func
def upright_cylinder(centre: wp.vec3d, axis: wp.vec3d, radius: wp.float64, half: wp.float64) -> UprightCylinder:
    """The cylinder with its axis turned up."""
    b = UprightCylinder()
    b.centre = centre
    v = axis
    if v[2] < _ZERO:
        v = -v
    b.axis = v
    down = wp.vec3d(v[2] * v[0], v[2] * v[1], v[2] * v[2] - _ONE)
    length = wp.length(down)
    b.down = wp.vec3d(_ONE, _ZERO, _ZERO) - v * v[0]
    if length > wp.float64(1e-9):
        b.down = down / length
    else:
        b.down = wp.normalize(b.down)
    b.side = wp.cross(v, b.down)
    b.radius = radius
    b.half = half
    for k in range(3):
        b.reach[k] = half * wp.abs(v[k]) + radius * wp.sqrt(wp.max(_ZERO, _ONE - v[k] * v[k]))
    b.slack = ROUNDING * (radius + half) + wp.float64(1e-15) * (
        wp.abs(centre[0]) + wp.abs(centre[1]) + wp.abs(centre[2])
    )
    return b


@wp.func
def cylinder_touches(t: Terrain, b: UprightCylinder) -> bool:
    """Whether the cylinder touches or cuts the surface."""
    margin = wp.vec3d(b.slack, b.slack, b.slack)
    window = cell_window(t, b.centre - b.reach - margin, b.centre + b.reach + margin)
    if window[0] > window[1] or window[2] > window[3]:
        return False
    stack = NodeStack()
    count = int(0)
    level = start_level(t, window)
    for i in range(window[0] >> level, (window[1] >> level) + 1):
        for j in range(window[2] >> level, (window[3] >> level) + 1):
            stack[count] = node_key(level, i, j)
            count += 1
    lowest = b.centre[2] - b.reach[2] - b.slack
    highest = b.centre[2] + b.reach[2] + b.slack
    while count > 0:
        count -= 1
        key = stack[count]
        level = node_level(key)
        row = node_row(key)
        column = node_column(key)
        bounds = node_bounds(t, level, row, column)
        if wp.float64(bounds[1]) < lowest or wp.float64(bounds[0]) > highest:
            continue
        x = wp.float64(column << level) * t.dx - b.centre[0]
        y = wp.float64(row << level) * t.dy - b.centre[1]
        width = wp.float64(1 << level) * t.dx
        depth = wp.float64(1 << level) * t.dy
        if node_is_clear(b, x, x + width, y, y + depth, wp.float64(bounds[1]) - b.centre[2]):
            continue
        flags = node_flags(t, level, row, column)
        if (flags & PLANAR) != 0 or level == 0:
            if (flags & GAP) == 0:
                h = node_heights(t, level, row, column)
                p0 = in_frame(b, x, y, h[0])
                p1 = in_frame(b, x + width, y, h[1])
                p2 = in_frame(b, x, y + depth, h[2])
                p3 = in_frame(b, x + width, y + depth, h[3])
                if cylinder_meets_triangle(p0, p1, p2, b.radius, b.half):
                    return True
                if cylinder_meets_triangle(p3, p2, p1, b.radius, b.half):
                    return True
        else:
            down = level - 1
            for q in range(4):
                i = 2 * row + (q >> 1)
                j = 2 * column + (q & 1)
                if (i << down) <= window[1] and ((i + 1) << down) > window[0]:
                    if (j << down) <= window[3] and ((j + 1) << down) > window[2]:
                        stack[count] = node_key(down, i, j)
                        count += 1
    return False


@wp.func
def in_frame(b: UprightCylinder, x: wp.float64, y: wp.float64, height: wp.float64) -> wp.vec3d:
    """A point of the ground in the cylinder's frame, its axis along z."""
    p = wp.vec3d(x, y, height - b.centre[2])
    return wp.vec3d(wp.dot(b.down, p), wp.dot(b.side, p), wp.dot(b.axis, p))


@wp.func
def node_is_clear(
    b: UprightCylinder, x0: wp.float64, x1: wp.float64, y0: wp.float64, y1: wp.float64, top: wp.float64
) -> bool:
    """Whether a plane has the cylinder on one side and the box [x0, x1] x [y0, y1] x (-inf, top] on the other.

    The box is relative to the cylinder's centre. Planes: the lower base; the side's lowest, its two vertical ones, and
    those half-way between; the one nearest to the middle of the box's top.
    """
    if farthest(b.axis, x0, x1, y0, y1, top) < -b.half - b.slack:
        return True
    outer = -b.radius - b.slack
    if farthest(-b.down, x0, x1, y0, y1, top) < outer:
        return True
    if farthest(b.side, x0, x1, y0, y1, top) < outer or farthest(-b.side, x0, x1, y0, y1, top) < outer:
        return True
    if farthest(-(b.down + b.side) * DIAGONAL, x0, x1, y0, y1, top) < outer:
        return True
    if farthest(-(b.down - b.side) * DIAGONAL, x0, x1, y0, y1, top) < outer:
        return True
    middle = wp.vec3d(_HALF * (x0 + x1), _HALF * (y0 + y1), top)
    across = middle - wp.dot(middle, b.axis) * b.axis
    length = wp.length(across)
    if length > b.radius and across[2] <= _ZERO:
        return farthest(-across / length, x0, x1, y0, y1, top) < outer
    return False


@wp.func
def farthest(
    n: wp.vec3d, x0: wp.float64, x1: wp.float64, y0: wp.float64, y1: wp.float64, top: wp.float64
) -> wp.float64:
    """How far the box reaches along n, which does not point down."""
    return wp.max(n[0] * x0, n[0] * x1) + wp.max(n[1] * y0, n[1] * y1) + n[2] * top


@wp.func
def cylinder_meets_triangle(a: wp.vec3d, b: wp.vec3d, c: wp.vec3d, radius: wp.float64, half: wp.float64) -> bool:
    """Whether a triangle touches the cylinder about the z axis between z = -half and half (9.1)."""
    low = wp.min(a[2], wp.min(b[2], c[2]))
    high = wp.max(a[2], wp.max(b[2], c[2]))
    if low > half or high < -half:
        return False
    r2 = radius * radius
    if edge_axis_distance2(a, b, half) <= r2 or edge_axis_distance2(b, c, half) <= r2:
        return True
    if edge_axis_distance2(c, a, half) <= r2:
        return True
    if low < -half:
        if chord_axis_distance2(a, b, c, -half) <= r2:
            return True
    if high > half:
        if chord_axis_distance2(a, b, c, half) <= r2:
            return True
    wa = b[0] * c[1] - b[1] * c[0]
    wb = c[0] * a[1] - c[1] * a[0]
    wc = a[0] * b[1] - a[1] * b[0]
    total = wa + wb + wc
    if total != _ZERO and wa * total >= _ZERO and wb * total >= _ZERO and wc * total >= _ZERO:
        # The axis pierces the triangle; the height there is between the corners', whatever the rounding.
        z = wp.clamp((wa * a[2] + wb * b[2] + wc * c[2]) / total, low, high)
        return wp.abs(z) <= half
    return False


@wp.func
def edge_axis_distance2(a: wp.vec3d, b: wp.vec3d, half: wp.float64) -> wp.float64:
    """Squared distance from the axis of the part of the edge between the base planes; FAR where there is none."""
    first = _ZERO + _ZERO
    last = _ONE + _ZERO
    rise = b[2] - a[2]
    if rise == _ZERO:
        if wp.abs(a[2]) > half:
            return FAR
    else:
        s = (-half - a[2]) / rise
        e = (half - a[2]) / rise
        first = wp.max(first, wp.min(s, e))
        last = wp.min(last, wp.max(s, e))
        if first > last:
            return FAR
    dx = b[0] - a[0]
    dy = b[1] - a[1]
    return segment_distance2(a[0] + first * dx, a[1] + first * dy, a[0] + last * dx, a[1] + last * dy)


@wp.func
def chord_axis_distance2(a: wp.vec3d, b: wp.vec3d, c: wp.vec3d, z: wp.float64) -> wp.float64:
    """Squared distance from the axis of the triangle's chord at height z; FAR where there is none."""
    # The corner alone on its side of the plane, and the other two.
    alone = a
    p = b
    q = c
    above_a = a[2] > z
    above_b = b[2] > z
    above_c = c[2] > z
    if above_a == above_b:
        if above_b == above_c:
            return FAR
        alone = c
        p = a
        q = b
    elif above_a == above_c:
        alone = b
        p = c
        q = a
    s = (z - alone[2]) / (p[2] - alone[2])
    e = (z - alone[2]) / (q[2] - alone[2])
    return segment_distance2(
        alone[0] + s * (p[0] - alone[0]),
        alone[1] + s * (p[1] - alone[1]),
        alone[0] + e * (q[0] - alone[0]),
        alone[1] + e * (q[1] - alone[1]),
    )


@wp.func
def segment_distance2(ax: wp.float64, ay: wp.float64, bx: wp.float64, by: wp.float64) -> wp.float64:
    """Squared distance of the plane's origin from a segment."""
    dx = bx - ax
    dy = by - ay
    length2 = dx * dx + dy * dy
    s = _ZERO + _ZERO
    if length2 > _ZERO:
        s = wp.clamp(-(ax * dx + ay * dy) / length2, _ZERO, _ONE)
    x = ax + s * dx
    y = ay + s * dy
    return x * x + y * y


@wp.kernel
def _touch(
    first: int,
    t: Terrain,
    shapes: wp.array[AnalyticShape],
    poses: wp.array[wp.mat44d],
    out: wp.array[wp.uint8],
):
    i = first + wp.tid()
    shape = shapes[wp.min(i, shapes.shape[0] - 1)]
    pose = poses[i]
    centre = wp.vec3d(pose[0, 3], pose[1, 3], pose[2, 3]) - t.origin
    axis = wp.normalize(wp.vec3d(pose[0, 2], pose[1, 2], pose[2, 2]))
    b = upright_cylinder(centre, axis, shape.radius, shape.half[2])
    window = cell_window(t, b.centre - b.reach, b.centre + b.reach)
    code = int(FREE)
    if window[0] > window[1] or window[2] > window[3]:
        code = OUTSIDE
    elif cylinder_touches(t, b):
        code = SURFACE
    elif height_at(t, centre[0], centre[1]) > centre[2]:
        code = BURIED
    out[i] = wp.uint8(code)
