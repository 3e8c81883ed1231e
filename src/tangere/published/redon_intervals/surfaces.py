"""First contact of rigid smooth surfaces: Bézier patches with patches, and with a torus given by its equation.

Question: the earliest time in [0, 1] at which P(u, v) on one body meets Q(u', v') on another, or f = 0 there.
Method:   subdivision over (u, v, u', v', t), the largest of patch, other patch and motion first, earlier halves of time
          first: a part is dropped where the boxes of both pieces over the interval are apart, or where f has no zero on
          the box. Before it, a tree of oriented boxes over pieces of the surfaces finds which pieces can meet, and from
          when on (Redon 2002, section 3.4).
Sound:    never late; at the answer two patches are within the tolerance, a patch and a torus within about that. A
          search that runs out of evaluations answers with the earliest time it has not excluded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from tangere.bvh.obb.node import ObbNode
from tangere.geometry.intervals.arithmetic import INFINITE, above, below, excludes_zero, minus, plus, point, square
from tangere.motion.bounds.interval_bounds import IntervalBox, boxes_apart, union_of_boxes
from tangere.motion.kinematics import RigidMotion
from tangere.published.redon_intervals.movers import mover_of
from tangere.published.redon_intervals.moving_boxes import Subdivision, first_unresolved
from tangere.published.redon_intervals.options import IntervalOptions
from tangere.published.redon_intervals.parametric_surfaces import BezierSurface, TorusSurface
from tangere.published.redon_intervals.surface_tree import surface_tree
from tangere.query.contacts.record import Status
from tangere.query.first_contact.mixed.motion_chain import (
    MotionRow,
    last_span,
    point_bounds_over,
    vector_bounds_over,
)
from tangere.query.first_contact.mixed.narrow_phase import interval_dot
from tangere.runtime.arrays import choose_device
from tangere.runtime.errors import InputError, UnsupportedError
from tangere.runtime.kernel_launch import launch
from tangere.runtime.warp_setup import SOUND

# Loops stay loops: unrolled, this module would take a minute to compile.
wp.set_module_options(SOUND | {"max_unroll": 1})

#: Pieces of a patch, or of a torus, along each parameter, that the tree holds: boxes along the surface close on it with
#: the square of their size, where the boxes of inclusions do so only with their size.
CUTS = 32
#: Parts that wait at one time: each halving adds one, and a part is halved at most some 20 times in each variable.
STACK = wp.constant(256)
ZERO = wp.constant(wp.float64(0.0))
HALF = wp.constant(wp.float64(0.5))
ONE = wp.constant(wp.float64(1.0))
ROUNDING = wp.constant(wp.float64(2.0**-46))


@dataclass(frozen=True)
class SurfaceContact:
    """First contact of two surfaces, and what it took."""

    time: float  #: in [0, 1], inf when free
    status: Status
    patch: tuple[int, int]  #: patch of a and of b, -1 when free
    parameters: np.ndarray  #: (4,) u, v on a and on b of pieces that meet; nan where a surface has none
    inclusions: int  #: evaluations of the box of a piece over an interval
    box_tests: int  #: continuous tests of oriented boxes


def surfaces_first_contact(
    a: BezierSurface,
    motion_a: Any,
    b: BezierSurface | TorusSurface,
    motion_b: Any,
    *,
    tolerance: float | None = None,
    boxes: bool = True,
    most_inclusions: int = 50_000_000,
    device: str | wp.Device | None = None,
) -> SurfaceContact:
    """The first contact of two rigid surfaces.

    Args:
        motion_a, motion_b: one rigid motion each.
        tolerance: distance that counts as contact [m]; None means 1e-3 of the extent of both.
        boxes: use the tree of oriented boxes as a filter.
        most_inclusions: evaluations after which the search ends early.
    """
    if not isinstance(a, BezierSurface) or not isinstance(b, BezierSurface | TorusSurface):
        raise UnsupportedError(
            f"first contact of {type(a).__name__} and {type(b).__name__} is not known;"
            " known: BezierSurface with BezierSurface or TorusSurface"
        )
    tolerance = 1e-3 * (a.extent + b.extent) if tolerance is None else tolerance
    if not (np.isfinite(tolerance) and tolerance > 0.0):
        raise InputError(f"tolerance must be positive, not {tolerance!r}")
    device = choose_device(device)
    sides = [_side(surface, motion, name, device) for surface, motion, name in ((a, motion_a, "a"), (b, motion_b, "b"))]
    found = wp.zeros(8, dtype=wp.float64, device=device)
    counts = wp.zeros(2, dtype=wp.int64, device=device)
    inputs = [*sides, int(boxes), tolerance, IntervalOptions().subdivision(), wp.int64(most_inclusions)]
    scratch = [
        wp.empty(STACK, dtype=wp.mat44d, device=device),
        wp.empty(STACK, dtype=wp.vec2i, device=device),
        wp.empty(STACK, dtype=wp.float64, device=device),
    ]
    launch(_search, 1, inputs, [*scratch, found, counts], device=device)
    row, (inclusions, tests) = found.numpy(), counts.numpy()
    parameters = row[3:7].copy()
    free = not np.isfinite(row[0])
    if isinstance(b, TorusSurface):
        parameters[2:] = np.nan
    return SurfaceContact(
        float(row[0]),
        Status.FREE if free else Status.CONTACT if row[0] > 0.0 else Status.START,
        (-1, -1) if free else (int(row[1]), int(row[2])),
        np.full(4, np.nan) if free else parameters,
        int(inclusions),
        int(tests),
    )


@wp.struct
class SmoothSurface:
    """A surface on a body: control points of patches, or the two radii of a torus; and a tree over its pieces."""

    control: wp.array[wp.vec3d]  # sixteen a patch
    torus: wp.vec2d  # radius and tube; zero for patches
    patches: int
    nodes: wp.array[ObbNode]
    patch: wp.array[int]  # of each piece
    domain: wp.array[wp.vec4d]  # of each piece
    motions: wp.array[RigidMotion]
    size: wp.float64


def _side(surface: BezierSurface | TorusSurface, motion: Any, name: str, place: wp.Device) -> Any:
    records = np.ascontiguousarray(motion.records()).reshape(-1)
    if len(records) != motion.links:
        raise InputError(f"motion_{name} is {len(records) // motion.links} motions: one at a time")
    if "tree" not in surface.cache:
        pieces = surface.pieces(CUTS)
        surface.cache["tree"] = pieces, surface_tree(pieces)
    pieces, nodes = surface.cache["tree"]
    side: Any = SmoothSurface()
    torus = isinstance(surface, TorusSurface)
    control = np.zeros((1, 3)) if torus else surface.control.reshape(-1, 3)
    side.control = wp.array(np.ascontiguousarray(control), dtype=wp.vec3d, device=place)
    side.torus = wp.vec2d(surface.radius, surface.tube) if torus else wp.vec2d(0.0, 0.0)
    side.patches = 1 if torus else len(surface.control)
    side.nodes = wp.array(nodes, dtype=ObbNode, device=place)
    side.patch = wp.array(pieces.patch.astype(np.int32), dtype=wp.int32, device=place)
    side.domain = wp.array(pieces.domain, dtype=wp.vec4d, device=place)
    side.motions = wp.array(records, dtype=RigidMotion, device=place)
    side.size = float(np.abs(pieces.net).max())
    return side


@wp.struct
class MovingPiece:
    """Bounds of a piece over an interval, its extent without the motion, and the way its points can go."""

    box: IntervalBox
    extent: wp.float64
    way: wp.float64


@wp.func
def _row(surface: SmoothSurface) -> MotionRow:
    row = MotionRow()
    row.first = 0
    row.last = surface.motions.shape[0]
    return row


@wp.func
def _blossom(a: wp.float64, b: wp.float64) -> wp.mat44d:
    """Control points of a cubic to those of its part over [a, b]: row k is the blossom at k times b."""
    weights = wp.mat44d()
    for k in range(4):
        # Products of three factors (1 - t) + t x, as coefficients of x, are the weights of the old control points.
        w0 = ONE + ZERO
        w1 = ZERO + ZERO
        w2 = ZERO + ZERO
        w3 = ZERO + ZERO
        for i in range(3):
            t = a
            if i < k:
                t = b
            w3 = w3 * (ONE - t) + w2 * t
            w2 = w2 * (ONE - t) + w1 * t
            w1 = w1 * (ONE - t) + w0 * t
            w0 = w0 * (ONE - t)
        weights[k, 0] = w0
        weights[k, 1] = w1
        weights[k, 2] = w2
        weights[k, 3] = w3
    return weights


@wp.func
def _piece_during(surface: SmoothSurface, patch: int, domain: wp.vec4d, t0: wp.float64, t1: wp.float64) -> MovingPiece:
    """The inclusion function: where a piece of a patch can be during [t0, t1]."""
    row = _row(surface)
    span = last_span(surface.motions, row, t0, t1)
    along_u = _blossom(domain[0], domain[1])
    along_v = _blossom(domain[2], domain[3])
    piece = MovingPiece()
    piece.way = ZERO
    lower = wp.vec3d(INFINITE, INFINITE, INFINITE)
    upper = -lower
    i = int(0)
    while i < 4:
        j = int(0)
        while j < 4:
            p = wp.vec3d(ZERO, ZERO, ZERO)
            for k in range(4):
                across = wp.vec3d(ZERO, ZERO, ZERO)
                for m in range(4):
                    across += along_v[j, m] * surface.control[16 * patch + 4 * k + m]
                p += along_u[i, k] * across
            lower = wp.min(lower, p)
            upper = wp.max(upper, p)
            bounds = point_bounds_over(surface.motions, row, span, t0, t1, p)
            piece.way = wp.max(piece.way, wp.length(bounds.upper - bounds.lower))
            if i == 0 and j == 0:
                piece.box = bounds
            else:
                piece.box = union_of_boxes(piece.box, bounds)
            j += 1
        i += 1
    error = ROUNDING * surface.size
    box = piece.box
    box.lower -= wp.vec3d(error, error, error)
    box.upper += wp.vec3d(error, error, error)
    piece.box = box
    piece.extent = wp.length(upper - lower)
    return piece


@wp.func
def _misses_torus(surface: SmoothSurface, world: IntervalBox, t0: wp.float64, t1: wp.float64) -> bool:
    """Whether the equation of the torus has no zero on a box of world places during [t0, t1]."""
    row = _row(surface)
    span = last_span(surface.motions, row, t0, t1)
    centre = point_bounds_over(surface.motions, row, span, t0, t1, wp.vec3d(ZERO, ZERO, ZERO))
    offset = IntervalBox()
    for i in range(3):
        d = minus(wp.vec2d(world.lower[i], world.upper[i]), wp.vec2d(centre.lower[i], centre.upper[i]))
        offset.lower[i] = d[0]
        offset.upper[i] = d[1]
    x = interval_dot(offset, vector_bounds_over(surface.motions, row, span, t0, t1, wp.vec3d(ONE, ZERO, ZERO)))
    y = interval_dot(offset, vector_bounds_over(surface.motions, row, span, t0, t1, wp.vec3d(ZERO, ONE, ZERO)))
    z = interval_dot(offset, vector_bounds_over(surface.motions, row, span, t0, t1, wp.vec3d(ZERO, ZERO, ONE)))
    out = minus(square_root(plus(square(x), square(y))), point(surface.torus[0]))
    tube = square(point(surface.torus[1]))
    return excludes_zero(minus(plus(square(out), square(z)), tube))


@wp.func
def _search_pieces(
    a: SmoothSurface,
    patch_a: int,
    b: SmoothSurface,
    patch_b: int,
    whole: wp.mat44d,
    tolerance: wp.float64,
    most: wp.int64,
    waiting: wp.array[wp.mat44d],
    found: wp.array[wp.float64],
    counts: wp.array[wp.int64],
):
    """Subdivide a pair of pieces over its interval of time; `found` keeps the earliest part that cannot be dropped."""
    waiting[0] = whole
    pending = int(1)
    enough = tolerance / wp.float64(3.0)
    while pending > 0:
        pending -= 1
        part = waiting[pending]
        t0 = part[2, 0]
        t1 = wp.min(part[2, 1], found[0])
        if t0 < found[0]:
            motion = ZERO + ZERO
            extent_a = ZERO + ZERO
            extent_b = ZERO + ZERO
            box = IntervalBox()
            dropped = bool(False)
            side = int(0)
            while side < 2:
                if side == 0 or b.torus[0] == ZERO:
                    surface = a
                    patch = patch_a
                    domain = part[0]
                    if side == 1:
                        surface = b
                        patch = patch_b
                        domain = part[1]
                    piece = _piece_during(surface, patch, domain, t0, t1)
                    counts[0] += wp.int64(1)
                    motion += piece.way
                    if side == 0:
                        box = piece.box
                        extent_a = piece.extent
                    else:
                        dropped = boxes_apart(box, piece.box, ZERO)
                        extent_b = piece.extent
                side += 1
            if b.torus[0] > ZERO:
                dropped = _misses_torus(b, box, t0, t1)
            if not dropped:
                largest = wp.max(wp.max(extent_a, extent_b), motion)
                if largest <= enough or pending + 2 > STACK or counts[0] >= most:
                    found[0] = t0
                    found[1] = wp.float64(patch_a)
                    found[2] = wp.float64(patch_b)
                    for k in range(2):
                        found[3 + 2 * k] = HALF * (part[k, 0] + part[k, 1])
                        found[4 + 2 * k] = HALF * (part[k, 2] + part[k, 3])
                else:
                    which = int(2)
                    low = int(0)
                    if extent_a >= largest:
                        which = 0
                    elif extent_b >= largest:
                        which = 1
                    if which < 2 and part[which, 3] - part[which, 2] > part[which, 1] - part[which, 0]:
                        low = 2
                    middle = HALF * (part[which, low] + part[which, low + 1])
                    later = part
                    later[which, low] = middle
                    sooner = part
                    sooner[which, low + 1] = middle
                    waiting[pending] = later
                    waiting[pending + 1] = sooner
                    pending += 2


@wp.kernel
def _search(
    first: int,
    a: SmoothSurface,
    b: SmoothSurface,
    use_boxes: int,
    tolerance: wp.float64,
    how: Subdivision,
    most: wp.int64,
    waiting: wp.array[wp.mat44d],
    stack: wp.array[wp.vec2i],
    stack_from: wp.array[wp.float64],
    found: wp.array[wp.float64],
    counts: wp.array[wp.int64],
):
    found[0] = INFINITE
    whole = wp.vec4d(ZERO, ONE, ZERO, ONE)
    if use_boxes == 0:
        for patch_a in range(a.patches):
            for patch_b in range(b.patches):
                part = _part(whole, whole, ZERO)
                _search_pieces(a, patch_a, b, patch_b, part, tolerance, most, waiting, found, counts)
        return
    a_by = mover_of(a.motions, _row(a))
    b_by = mover_of(b.motions, _row(b))
    stack[0] = wp.vec2i(0, 0)
    stack_from[0] = ZERO
    pending = int(1)
    while pending > 0:
        pending -= 1
        pair = stack[pending]
        since = stack_from[pending]
        na = a.nodes[pair[0]]
        nb = b.nodes[pair[1]]
        if since < found[0]:
            if na.right < 0 and nb.right < 0:
                part = _part(a.domain[na.triangle], b.domain[nb.triangle], since)
                patch_a = a.patch[na.triangle]
                patch_b = b.patch[nb.triangle]
                _search_pieces(a, patch_a, b, patch_b, part, tolerance, most, waiting, found, counts)
            else:
                left = wp.vec2i(pair[0], pair[1] + 1)
                right = wp.vec2i(pair[0], nb.right)
                if nb.right < 0 or (na.right >= 0 and na.radius >= nb.radius):
                    left = wp.vec2i(pair[0] + 1, pair[1])
                    right = wp.vec2i(na.right, pair[1])
                # Of the two that can meet the one that can do so first goes on top.
                below = int(-1)
                which = int(0)
                while which < 2:
                    one = left
                    if which == 1:
                        one = right
                    counts[1] += wp.int64(1)
                    until = wp.min(found[0], ONE)
                    box_a = a.nodes[one[0]]
                    box_b = b.nodes[one[1]]
                    t = first_unresolved(box_a, a.motions, a_by, box_b, b.motions, b_by, since, until, how)[0]
                    if t < INFINITE:
                        place = pending
                        if below >= 0 and stack_from[below] < t:
                            stack[pending] = stack[below]
                            stack_from[pending] = stack_from[below]
                            place = below
                        stack[place] = one
                        stack_from[place] = t
                        below = pending
                        pending += 1
                    which += 1


@wp.func
def _part(piece_a: wp.vec4d, piece_b: wp.vec4d, since: wp.float64) -> wp.mat44d:
    """What is subdivided: a piece of each surface and an interval of time, one below the other."""
    return wp.matrix_from_rows(piece_a, piece_b, wp.vec4d(since, ONE, ZERO, ZERO), wp.vec4d(ZERO, ZERO, ZERO, ZERO))


@wp.func
def square_root(a: wp.vec2d) -> wp.vec2d:
    """Square roots of the numbers of a that are not negative."""
    zero = wp.float64(0.0)
    lower = zero
    if a[0] > zero:
        lower = wp.max(below(wp.sqrt(a[0])), zero)
    upper = INFINITE
    if a[1] >= zero:
        upper = above(wp.sqrt(a[1]))
    elif a[1] < zero:
        upper = zero
    return wp.vec2d(lower, upper)
