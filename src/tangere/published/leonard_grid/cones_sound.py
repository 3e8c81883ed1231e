"""Patches of a cell that certainly have no contact within themselves: the sound form of the normal-cone test.

The triangles of a cell fall into pieces that hang together through edges. A piece is a graph over a plane, so that no
two of its points lie above each other, if
  its normals keep below a right angle from the axis of the piece, the triangles at each inner edge agreeing which side
  is out, and
  its contour, projected along the axis, is one simple closed polygon.
Why: over each point of the plane there are as many points of the piece as the contour winds around it, all triangles
facing one way; a simple polygon winds once at most.
Contacts at a distance d > 0 need more: two points nearer than d, one of them farther than d from the contour in
projection, are joined on the piece by a path no longer than d / cos(angle), which was no longer than that times the
largest shrinking at rest. If that is below what an exclusion at rest covers, the pair is excluded anyway.
Known as: normal cones and the contour test of self-collision (Volino and Magnenat-Thalmann 1994; Provot 1997).
"""

from __future__ import annotations

import math

import warp as wp

from tangere.broad_phase.triangles.surfaces import Surfaces
from tangere.published.leonard_grid.cones import FaceCones, angle_between, unit_or_zero
from tangere.published.leonard_grid.grid.entries import GridEntries, Runs
from tangere.runtime.arrays import as_points, device_of
from tangere.runtime.kernel_launch import launch
from tangere.runtime.warp_setup import SOUND

wp.set_module_options(SOUND)

#: Cells with more entries are not looked at: the tests are quadratic.
MOST_ENTRIES = wp.constant(64)
#: Cosines and gaps must be clear of rounding.
CLEAR = wp.constant(wp.float64(1.0e-9))
HALF_TURN = wp.constant(wp.float64(math.pi))
LEAST_COSINE = wp.constant(wp.float64(1.0e-3))


def sound_patches(
    surfaces: Surfaces,
    entries: GridEntries,
    runs: Runs,
    cones: FaceCones,
    distance: float,
    *,
    covered: float = 0.0,
    rest=None,
) -> wp.array:
    """Patches for `cell_pairs`, for contacts nearer than `distance` [m]; with 0: for intersections.

    Args:
        cones: of the normals now; those of a step make pieces keep below a right angle throughout it.
        covered: pairs nearer than this at rest [m], and joined there, are excluded.
        rest: positions at rest, (n, 3), needed for distance > 0.
    """
    device, count = device_of(entries.keys), len(entries.keys)
    patches = wp.empty(count, dtype=wp.int32, device=device)
    pieces, faces = Pieces(), surfaces.layout.faces
    pieces.triangles, pieces.faces, pieces.positions = entries.triangles, faces, surfaces.positions
    pieces.label, pieces.border = (wp.empty(count, dtype=wp.int32, device=device) for _ in range(2))
    shrinking = wp.zeros(len(faces), dtype=wp.float64, device=device)
    if distance > 0.0:
        at_rest = as_points(rest, "rest", device)
        launch(_shrinking, len(faces), [faces, at_rest, surfaces.positions], [shrinking], device=device)
    inputs = [runs.start, runs.number, pieces, cones.axis, cones.angle, shrinking, distance, covered]
    launch(_certify_cells, len(runs.start), inputs, [patches], device=device, grain=64)
    return patches


@wp.kernel
def _shrinking(
    first: int,
    faces: wp.array2d[int],
    rest: wp.array[wp.vec3d],
    now: wp.array[wp.vec3d],
    shrinking: wp.array[wp.float64],
):
    """How much longer a length in the triangle was at rest, at most."""
    i = first + wp.tid()
    r1 = rest[faces[i, 1]] - rest[faces[i, 0]]
    r2 = rest[faces[i, 2]] - rest[faces[i, 0]]
    c1 = now[faces[i, 1]] - now[faces[i, 0]]
    c2 = now[faces[i, 2]] - now[faces[i, 0]]
    c11 = wp.dot(c1, c1)
    c12 = wp.dot(c1, c2)
    c22 = wp.dot(c2, c2)
    area = c11 * c22 - c12 * c12
    if not (area > wp.float64(1.0e-8) * c11 * c22):
        shrinking[i] = wp.float64(1.0e300)
        return
    r11 = wp.dot(r1, r1)
    r12 = wp.dot(r1, r2)
    r22 = wp.dot(r2, r2)
    # The larger eigenvalue of the metric at rest relative to the metric now.
    trace = (c22 * r11 - wp.float64(2.0) * c12 * r12 + c11 * r22) / area
    product = (r11 * r22 - r12 * r12) / area
    root = wp.sqrt(wp.max(trace * trace - wp.float64(4.0) * product, wp.float64(0.0)))
    shrinking[i] = wp.sqrt(wp.float64(0.5) * (trace + root)) * (wp.float64(1.0) + wp.float64(1.0e-6))


@wp.func
def least_cosine(axis: wp.vec3d, normal: wp.vec3d, spread: wp.float64) -> wp.float64:
    """Of the angle between the axis and a normal that stays within `spread` of what it is said to be."""
    if spread == wp.float64(0.0):
        return wp.dot(axis, normal)
    return wp.cos(wp.min(angle_between(axis, normal) + spread, HALF_TURN))


@wp.struct
class Pieces:
    """The entries of cells by the pieces of surface they are of, and the contours of these."""

    triangles: wp.array[int]  # of each entry
    faces: wp.array2d[int]
    positions: wp.array[wp.vec3d]
    label: wp.array[int]  # of each entry: the first entry of its piece
    border: wp.array[int]  # of each entry: a bit for each side that is on the contour


@wp.func
def share_an_edge(s: int, t: int, faces: wp.array2d[int]) -> bool:
    common = int(0)
    for c in range(3):
        for d in range(3):
            if faces[s, c] == faces[t, d]:
                common += 1
    return common >= 2


@wp.func
def apart_along(p: wp.vec3d, q: wp.vec3d, r: wp.vec3d, s: wp.vec3d, direction: wp.vec3d) -> bool:
    """Whether segments pq and rs are clearly apart along a direction."""
    low = wp.min(wp.dot(p, direction), wp.dot(q, direction))
    high = wp.max(wp.dot(p, direction), wp.dot(q, direction))
    low_other = wp.min(wp.dot(r, direction), wp.dot(s, direction))
    high_other = wp.max(wp.dot(r, direction), wp.dot(s, direction))
    room = CLEAR * (high - low + high_other - low_other)
    room = room + CLEAR * wp.length(direction) * (wp.length(q - p) + wp.length(s - r))
    return low_other > high + room or low > high_other + room


@wp.func
def sides_keep_apart(side: int, other_side: int, axis: wp.vec3d, pieces: Pieces) -> bool:
    """Whether two sides of a contour, four times an entry plus its side, projected along the axis, have no point but a
    common vertex in common.
    """
    at_p = pieces.faces[pieces.triangles[side / 4], side % 4]
    at_q = pieces.faces[pieces.triangles[side / 4], (side % 4 + 1) % 3]
    at_r = pieces.faces[pieces.triangles[other_side / 4], other_side % 4]
    at_s = pieces.faces[pieces.triangles[other_side / 4], (other_side % 4 + 1) % 3]
    origin = pieces.positions[at_p]
    p1 = wp.vec3d()
    q1 = across(pieces.positions[at_q] - origin, axis)
    r1 = across(pieces.positions[at_r] - origin, axis)
    s1 = across(pieces.positions[at_s] - origin, axis)
    if at_q == at_r or at_p == at_s:
        # Neighbours: they must not fold back on each other.
        back = p1 - q1
        on = s1 - r1
        if at_p == at_s:
            back = q1 - p1
            on = r1 - s1
        flat = wp.length(wp.cross(back, on)) <= CLEAR * wp.length(back) * wp.length(on)
        return not (flat and wp.dot(back, on) >= wp.float64(0.0))
    one = q1 - p1
    other = s1 - r1
    return (
        apart_along(p1, q1, r1, s1, wp.cross(axis, one))
        or apart_along(p1, q1, r1, s1, wp.cross(axis, other))
        or apart_along(p1, q1, r1, s1, one)
        or apart_along(p1, q1, r1, s1, other)
    )


@wp.func
def across(v: wp.vec3d, axis: wp.vec3d) -> wp.vec3d:
    return v - axis * wp.dot(v, axis)


@wp.func
def side_is_inner(e: int, side: int, begin: int, end: int, pieces: Pieces) -> int:
    """1 if exactly one other triangle of the piece has the side, the other way round; 0 if none; else -1."""
    p = pieces.faces[pieces.triangles[e], side]
    q = pieces.faces[pieces.triangles[e], (side + 1) % 3]
    facing = int(0)
    wrong = int(0)
    for f in range(begin, end):
        if f != e and pieces.label[f] == pieces.label[e]:
            for d in range(3):
                r = pieces.faces[pieces.triangles[f], d]
                s = pieces.faces[pieces.triangles[f], (d + 1) % 3]
                if r == q and s == p:
                    facing += 1
                if r == p and s == q:
                    wrong += 1
    if wrong > 0 or facing > 1:
        return -1
    return facing


@wp.kernel
def _certify_cells(
    first: int,
    start: wp.array[int],
    number: wp.array[int],
    pieces: Pieces,
    normals: wp.array[wp.vec3d],
    spread: wp.array[wp.float64],
    shrinking: wp.array[wp.float64],
    distance: wp.float64,
    covered: wp.float64,
    patches: wp.array[int],
):
    c = first + wp.tid()
    entries = pieces.triangles.shape[0]
    cells = number[entries - 1] + 1
    if c >= cells:
        return
    begin = start[c]
    end = entries
    if c + 1 < cells:
        end = start[c + 1]
    for e in range(begin, end):
        patches[e] = -1
        pieces.label[e] = e
        pieces.border[e] = 0
    if end - begin > MOST_ENTRIES:
        return
    changed = int(1)
    while changed == 1:
        changed = int(0)
        for e in range(begin, end):
            for f in range(begin, e):
                if pieces.label[e] != pieces.label[f]:
                    if share_an_edge(pieces.triangles[e], pieces.triangles[f], pieces.faces):
                        least = wp.min(pieces.label[e], pieces.label[f])
                        pieces.label[e] = least
                        pieces.label[f] = least
                        changed = 1
    for piece in range(begin, end):
        if pieces.label[piece] == piece:
            axis = wp.vec3d()
            for e in range(begin, end):
                if pieces.label[e] == piece:
                    axis += normals[pieces.triangles[e]]
            axis = unit_or_zero(axis)
            cosine = wp.float64(1.0)
            shrunk = wp.float64(0.0)
            sides = int(0)
            sound = int(1)
            first_side = int(-1)
            for e in range(begin, end):
                if pieces.label[e] == piece and sound == 1:
                    cosine = wp.min(
                        cosine, least_cosine(axis, normals[pieces.triangles[e]], spread[pieces.triangles[e]])
                    )
                    shrunk = wp.max(shrunk, shrinking[pieces.triangles[e]])
                    for side in range(3):
                        inner = side_is_inner(e, side, begin, end, pieces)
                        if inner < 0:
                            sound = 0
                        if inner == 0:
                            pieces.border[e] = pieces.border[e] | (1 << side)
                            sides += 1
                            first_side = 4 * e + side
            if not (cosine > LEAST_COSINE) or first_side < 0:
                sound = 0
            if sound == 1 and distance > wp.float64(0.0):
                if not (shrunk * distance < covered * cosine * (wp.float64(1.0) - wp.float64(1.0e-6))):
                    sound = 0
            # One closed polygon: follow it from side to side.
            steps = int(0)
            at = first_side
            while sound == 1 and (steps == 0 or at != first_side):
                steps += 1
                ahead = pieces.faces[pieces.triangles[at / 4], (at % 4 + 1) % 3]
                found = int(0)
                following = int(-1)
                for f in range(begin, end):
                    if pieces.label[f] == piece:
                        for d in range(3):
                            if ((pieces.border[f] >> d) & 1) == 1 and pieces.faces[pieces.triangles[f], d] == ahead:
                                found += 1
                                following = 4 * f + d
                if found != 1 or steps > sides:
                    sound = 0
                at = following
            if steps != sides:
                sound = 0
            for e in range(begin, end):
                if sound == 1 and pieces.label[e] == piece and pieces.border[e] > 0:
                    for f in range(begin, e + 1):
                        if pieces.label[f] == piece and pieces.border[f] > 0:
                            for k in range(3):
                                for m in range(3):
                                    listed = ((pieces.border[e] >> k) & 1) == 1 and ((pieces.border[f] >> m) & 1) == 1
                                    if listed and (f < e or m < k):
                                        if not sides_keep_apart(4 * e + k, 4 * f + m, axis, pieces):
                                            sound = 0
            if sound == 1:
                for e in range(begin, end):
                    if pieces.label[e] == piece:
                        patches[e] = 2 * piece
                        if is_deep(e, begin, end, pieces, axis, distance):
                            patches[e] = 2 * piece + 1


@wp.func
def is_deep(e: int, begin: int, end: int, pieces: Pieces, axis: wp.vec3d, distance: wp.float64) -> bool:
    """Whether a triangle is farther than `distance` from the contour of its piece, projected along the axis."""
    if distance == wp.float64(0.0):
        return True
    t = pieces.triangles[e]
    a = pieces.positions[pieces.faces[t, 0]]
    b = across(pieces.positions[pieces.faces[t, 1]] - a, axis)
    c = across(pieces.positions[pieces.faces[t, 2]] - a, axis)
    centre = (b + c) / wp.float64(3.0)
    radius = wp.max(wp.length(centre), wp.max(wp.length(b - centre), wp.length(c - centre)))
    reach = (radius + distance) * (wp.float64(1.0) + CLEAR)
    shallow = int(0)
    for f in range(begin, end):
        if pieces.label[f] == pieces.label[e] and pieces.border[f] > 0:
            for d in range(3):
                if ((pieces.border[f] >> d) & 1) == 1:
                    p = across(pieces.positions[pieces.faces[pieces.triangles[f], d]] - a, axis)
                    q = across(pieces.positions[pieces.faces[pieces.triangles[f], (d + 1) % 3]] - a, axis)
                    along = q - p
                    squared = wp.dot(along, along)
                    u = wp.float64(0.0)
                    if squared > wp.float64(0.0):
                        u = wp.clamp(wp.dot(centre - p, along) / squared, wp.float64(0.0), wp.float64(1.0))
                    if wp.length(p + u * along - centre) <= reach:
                        shallow = 1
    return shallow == 0
