"""Two oriented boxes at one instant: are they apart, and at least how far?

Method: boxes of trees are placed relative to each other (`place_boxes`) for the 15-axis test of `geometry.obb`. The
        distance is bounded by taking one box as it is and the other by its extents along the first one's axes.
Sound:  never apart when they overlap; roundings of placements and poses are counted in.
Known as: separating axis test of oriented boxes, 15 axes (Gottschalk, Lin and Manocha 1996).
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.bvh.obb.node import ObbNode, box_axes, box_centre, box_half
from tangere.geometry.obb import BoxPair, boxes_apart
from tangere.runtime import SOUND, Arrays, InputError, choose_device, launch, to_numpy

wp.set_module_options(SOUND)

#: `SKEW` for axes orthonormal in double precision.
_SKEW_DOUBLE = 2.0**-46
#: Rounding of projections, relative to the numbers that go in.
_ROUNDING = wp.constant(wp.float64(2.0**-48))
#: A gap along float32 axes is a distance times at most 1 + 2^-22.
_STRETCH = wp.constant(wp.float64(1.0 - 2.0**-21))
#: How far axes given as float64 may be from orthonormal.
_NOT_ORTHONORMAL = 1e-12


def boxes_overlap(
    centre_a: Arrays,
    half_a: Arrays,
    axes_a: Arrays,
    centre_b: Arrays,
    half_b: Arrays,
    axes_b: Arrays,
    *,
    edge_axes: bool = True,
    device: str | wp.Device | None = None,
) -> np.ndarray:
    """Whether each of n pairs of boxes overlaps: (n,) bool; touching counts.

    Args:
        centre_a, centre_b: (n, 3) [m].
        half_a, half_b: half sizes along the axes, (n, 3) [m], not negative.
        axes_a, axes_b: orthonormal axes as columns, (n, 3, 3).
        edge_axes: False tests the 6 face normals only: pairs that only an edge axis separates then count as overlap.
    """
    device = choose_device(device, centre_a)
    columns, shapes = [], ((3,), (3,), (3, 3)) * 2
    names = ("centre_a", "half_a", "axes_a", "centre_b", "half_b", "axes_b")
    for name, data, shape in zip(names, (centre_a, half_a, axes_a, centre_b, half_b, axes_b), shapes, strict=True):
        columns.append(_checked(to_numpy(data, name), name, shape, len(columns[0]) if columns else None))
    count = len(columns[0])
    dtypes = (wp.vec3d, wp.vec3d, wp.mat33d) * 2
    inputs = [wp.array(c, dtype=t, device=device) for c, t in zip(columns, dtypes, strict=True)]
    apart = wp.empty(count, dtype=wp.bool, device=device)
    launch(_boxes_apart, count, [*inputs, int(edge_axes), _SKEW_DOUBLE], [apart], device=device)
    return ~apart.numpy()


def _checked(data: np.ndarray, name: str, shape: tuple[int, ...], count: int | None) -> np.ndarray:
    if data.shape[1:] != shape or (count is not None and len(data) != count):
        expected = ", ".join(str(s) for s in ("n" if count is None else count, *shape))
        raise InputError(f"{name} must have shape ({expected}), not {data.shape}")
    wrong, reason = ~np.isfinite(data).reshape(len(data), -1).all(axis=1), "is not finite"
    if name.startswith("half") and not wrong.any():
        wrong, reason = (data < 0.0).any(axis=1), "is negative"
    if name.startswith("axes") and not wrong.any():
        off = np.abs(np.swapaxes(data, 1, 2) @ data - np.eye(3)).reshape(len(data), 9).max(axis=1, initial=0.0)
        wrong, reason = off > _NOT_ORTHONORMAL, "is not orthonormal"
    if wrong.any():
        raise InputError(f"{name}[{int(np.argmax(wrong))}] {reason}")
    return data


@wp.func
def place_boxes(a: ObbNode, b: ObbNode, rotation: wp.mat33d, translation: wp.vec3d, uncertain: wp.float64) -> BoxPair:
    """Box b at x -> rotation x + translation in the frame of a; `uncertain` is what the translation may be off [m]."""
    axes_a = wp.transpose(box_axes(a))
    axes_b = rotation * box_axes(b)
    centre_a = box_centre(a)
    centre_b = rotation * box_centre(b)
    offset = (centre_b - centre_a) + translation
    pair = BoxPair()
    pair.half_a = box_half(a)
    pair.half_b = box_half(b)
    pair.offset_a = axes_a * offset
    pair.offset_b = wp.transpose(axes_b) * offset
    pair.cosines = axes_a * axes_b
    sizes = wp.abs(centre_a) + wp.abs(centre_b) + wp.abs(translation) + pair.half_a + pair.half_b
    pair.rounding = wp.float64(3.0) * uncertain + _ROUNDING * (sizes[0] + sizes[1] + sizes[2])
    return pair


@wp.func
def boxes_at_least(
    a: ObbNode,
    b: ObbNode,
    rotation: wp.mat33d,
    translation: wp.vec3d,
    uncertain: wp.float64,
    enough: wp.float64,
) -> wp.vec2d:
    """A lower bound of the distance of two boxes of trees, and how far their balls are apart; placed as `place_boxes`.

    Looks no further once the bound reaches `enough`: first at the balls, then along the line of centres, then along
    the face normals. The bound is 0 where the boxes may overlap; the balls' gap is negative where they do.
    """
    centre_a = box_centre(a)
    centre_b = rotation * box_centre(b)
    offset = (centre_b - centre_a) + translation
    length = wp.length(offset)
    balls = length - wp.float64(a.radius) - wp.float64(b.radius)
    sizes = wp.abs(centre_a) + wp.abs(centre_b) + wp.abs(translation)
    radii = wp.float64(a.radius) + wp.float64(b.radius)
    rounding = wp.float64(3.0) * (uncertain + _ROUNDING * (sizes[0] + sizes[1] + sizes[2] + radii))
    bound = balls
    if bound < enough + rounding and length > wp.float64(0.0):
        half_a = box_half(a)
        half_b = box_half(b)
        axes_a = wp.transpose(box_axes(a))
        axes_b = wp.transpose(box_axes(b))
        offset_a = wp.abs(axes_a * offset)
        offset_b = wp.abs(axes_b * (wp.transpose(rotation) * offset))
        bound = length - (wp.dot(offset_a, half_a) + wp.dot(offset_b, half_b)) / length
        if bound < enough + rounding:
            cosines = absolute((axes_a * rotation) * wp.transpose(axes_b))
            zero = wp.vec3d(wp.float64(0.0))
            gap_a = wp.max(offset_a - half_a - cosines * half_b, zero)
            gap_b = wp.max(offset_b - half_b - wp.transpose(cosines) * half_a, zero)
            bound = wp.max(bound, _STRETCH * wp.sqrt(wp.max(wp.dot(gap_a, gap_a), wp.dot(gap_b, gap_b))))
    return wp.vec2d(wp.max(bound - rounding, wp.float64(0.0)), balls)


@wp.func
def absolute(m: wp.mat33d) -> wp.mat33d:
    """Absolute values, entry by entry."""
    absolutes = wp.mat33d()
    for i in range(3):
        for j in range(3):
            absolutes[i, j] = wp.abs(m[i, j])
    return absolutes


@wp.kernel
def _boxes_apart(
    first: int,
    centre_a: wp.array[wp.vec3d],
    half_a: wp.array[wp.vec3d],
    axes_a: wp.array[wp.mat33d],
    centre_b: wp.array[wp.vec3d],
    half_b: wp.array[wp.vec3d],
    axes_b: wp.array[wp.mat33d],
    edge_axes: int,
    skew: wp.float64,
    apart: wp.array[wp.bool],
):
    n = first + wp.tid()
    offset = centre_b[n] - centre_a[n]
    pair = BoxPair()
    pair.half_a = half_a[n]
    pair.half_b = half_b[n]
    pair.offset_a = wp.transpose(axes_a[n]) * offset
    pair.offset_b = wp.transpose(axes_b[n]) * offset
    pair.cosines = wp.transpose(axes_a[n]) * axes_b[n]
    sizes = wp.abs(offset) + half_a[n] + half_b[n]
    pair.rounding = _ROUNDING * (sizes[0] + sizes[1] + sizes[2])
    apart[n] = boxes_apart(pair, edge_axes, skew)
