"""Cones of normals: which way a piece of surface faces, at an instant or during a step; and the published cell test.

Leaf:      the normal of a triangle; while its vertices move along lines, the normal is a quadratic curve whose three
           control vectors span a cone that holds it all the time.
Published: the cones of a cell's triangles are merged by halves; where the half-angle stays below a right angle, the
           cell is taken to be free of contact within one body. That loses real contacts (Léonard 2021, section 3.6.1):
           it holds for one connected patch with a simple contour, and a cell mixes sheets. `cones_sound` asks for both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import warp as wp

from tangere.broad_phase.triangles.surfaces import Surfaces
from tangere.published.leonard_grid.grid.entries import GridEntries, Runs
from tangere.runtime.arrays import device_of
from tangere.runtime.kernel_launch import launch
from tangere.runtime.warp_setup import SOUND

wp.set_module_options(SOUND)

RIGHT_ANGLE = wp.constant(wp.float64(0.5 * math.pi))
#: Cones that wait to be merged: one for each power of two.
Axes = wp.types.matrix(shape=(24, 3), dtype=wp.float64)
Angles = wp.types.vector(length=24, dtype=wp.float64)
#: What rounding may add to an angle.
ANGLE_ERROR = wp.constant(wp.float64(1.0e-7))


@dataclass(frozen=True)
class FaceCones:
    """Which way each triangle faces: at an instant, or throughout a step."""

    axis: wp.array  #: (m,) vec3d, unit; zero where a triangle has no area
    angle: wp.array  #: (m,) [rad]: its normal stays within this of the axis; 0 at an instant, pi where none is known

    @staticmethod
    def of(surfaces: Surfaces, end: wp.array | None = None) -> FaceCones:
        """The normals now; or with `end`, (n,) vec3d [m], cones that hold them while vertices go there along lines."""
        faces, device = surfaces.layout.faces, surfaces.device
        axis = wp.empty(len(faces), dtype=wp.vec3d, device=device)
        angle = wp.zeros(len(faces), dtype=wp.float64, device=device)
        if end is None:
            launch(_face_normals, len(faces), [faces, surfaces.positions], [axis], device=device)
        else:
            launch(_face_cones, len(faces), [faces, surfaces.positions, end], [axis, angle], device=device)
        return FaceCones(axis, angle)


def published_patches(surfaces: Surfaces, entries: GridEntries, runs: Runs, cones: FaceCones) -> wp.array:
    """Patches for `cell_pairs`: the whole of each cell that the published test takes to be free of self-contact."""
    device, count = device_of(entries.keys), len(entries.keys)
    patches = wp.empty(count, dtype=wp.int32, device=device)
    inputs = [entries.triangles, runs.start, runs.number, cones.axis, cones.angle, surfaces.layout.body]
    launch(_merge_cells, len(runs.start), inputs, [patches], device=device, grain=1024)
    return patches


@wp.func
def unit_or_zero(v: wp.vec3d) -> wp.vec3d:
    length = wp.length(v)
    if length > wp.float64(0.0):
        return v / length
    return wp.vec3d()


@wp.func
def angle_between(a: wp.vec3d, b: wp.vec3d) -> wp.float64:
    """The angle of two unit vectors, right to rounding also where it is small."""
    return wp.atan2(wp.length(wp.cross(a, b)), wp.dot(a, b))


@wp.kernel
def _face_cones(
    first: int,
    faces: wp.array2d[int],
    start: wp.array[wp.vec3d],
    end: wp.array[wp.vec3d],
    axis: wp.array[wp.vec3d],
    angle: wp.array[wp.float64],
):
    i = first + wp.tid()
    a = faces[i, 0]
    b = faces[i, 1]
    c = faces[i, 2]
    u0 = start[b] - start[a]
    v0 = start[c] - start[a]
    u1 = end[b] - end[a]
    v1 = end[c] - end[a]
    # n(t) = (u0 + t (u1 - u0)) x (v0 + t (v1 - v0)) in Bernstein form.
    n0 = unit_or_zero(wp.cross(u0, v0))
    n1 = unit_or_zero(wp.cross(u1, v1))
    between = unit_or_zero(wp.float64(0.5) * (wp.cross(u0, v1) + wp.cross(u1, v0)))
    middle = unit_or_zero(n0 + between + n1)
    widest = wp.max(angle_between(middle, n0), wp.max(angle_between(middle, between), angle_between(middle, n1)))
    widest = widest + ANGLE_ERROR
    defined = wp.dot(n0, n0) * wp.dot(n1, n1) * wp.dot(between, between) * wp.dot(middle, middle) > wp.float64(0.5)
    axis[i] = middle
    if defined and widest < RIGHT_ANGLE:
        angle[i] = widest
    else:
        angle[i] = wp.float64(2.0) * RIGHT_ANGLE


@wp.kernel
def _face_normals(first: int, faces: wp.array2d[int], positions: wp.array[wp.vec3d], normals: wp.array[wp.vec3d]):
    i = first + wp.tid()
    a = positions[faces[i, 0]]
    normals[i] = unit_or_zero(wp.cross(positions[faces[i, 1]] - a, positions[faces[i, 2]] - a))


@wp.kernel
def _merge_cells(
    first: int,
    triangles: wp.array[int],
    start: wp.array[int],
    number: wp.array[int],
    normals: wp.array[wp.vec3d],
    spread: wp.array[wp.float64],
    body: wp.array[int],
    patches: wp.array[int],
):
    """Merge by halves, with equal halves first: what a recursion that splits at powers of two would do."""
    c = first + wp.tid()
    entries = triangles.shape[0]
    cells = number[entries - 1] + 1
    if c >= cells:
        return
    begin = start[c]
    end = entries
    if c + 1 < cells:
        end = start[c + 1]
    axes = Axes()
    angles = Angles()
    waiting = int(0)
    wide = int(0)
    e = begin
    while e < end and wide == 0:
        normal = normals[triangles[e]]
        axes[waiting] = normal
        angles[waiting] = spread[triangles[e]]
        if angles[waiting] >= RIGHT_ANGLE:
            wide = 1
        waiting += 1
        e += 1
        merged = e - begin
        # Merge as often as the number of leaves so far is even, and all at the end.
        while waiting > 1 and wide == 0 and ((merged & 1) == 0 or e == end):
            one = axes[waiting - 2]
            other = axes[waiting - 1]
            angle = wp.float64(0.5) * angle_between(one, other) + wp.max(angles[waiting - 2], angles[waiting - 1])
            waiting -= 1
            axes[waiting - 1] = unit_or_zero(one + other)
            angles[waiting - 1] = angle
            merged = merged >> 1
            if angle >= RIGHT_ANGLE:
                wide = 1
    for f in range(begin, end):
        patches[f] = -1
        if wide == 0:
            patches[f] = 2 * body[triangles[f]] + 1
