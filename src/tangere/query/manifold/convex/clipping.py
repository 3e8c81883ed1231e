"""Where two features lie over each other: the corners of what their shadows along the normal have in common.

Question: all points at which a face, line, disc or point of one body is over one of another, nearer than a distance.
Method:   corners of either that are over the other, and crossings of their sides; of a disc eight points of its rim,
          where sides cross it, and the middles of arcs between these: slivers have a breadth. Each is lifted back along
          the normal to both features, so a gap is exact where features lean. Corners that coincide count once. The
          nearest points are added where no corner is as near.
Known as: contact manifold by clipping (Sutherland and Hodgman 1974), without the order of the corners.
"""

from __future__ import annotations

import warp as wp

from tangere.query.manifold.convex.features import DISC, LINE, POINT, Features, NearPair
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

real = wp.float64
vec = wp.vec3d

#: Points on the rim of a disc.
RIM = wp.constant(8)
_ZERO = wp.constant(real(0.0))
_HALF = wp.constant(real(0.5))
_ONE = wp.constant(real(1.0))
_TWO = wp.constant(real(2.0))
_FAR = wp.constant(real(1.0e300))
_DIAGONAL = wp.constant(real(0.7071067811865476))
_TURN = wp.constant(real(6.283185307179586))
#: Steps of Newton's method on the rim of a disc, and the angle that one goes at most.
RIM_STEPS = wp.constant(8)
_FAR_TURN = wp.constant(real(0.3))
#: Arcs of a rim below this angle are none.
_SMALL = wp.constant(real(1.0e-7))
#: Corners that are nearer than this part of the bodies' size are one.
_SAME = wp.constant(real(1.0e-9))
#: Lines that turn from each other by less are parallel: both lie on each other.
_PARALLEL = wp.constant(real(1.0e-3))
#: What a point is: a corner of a, of b, a crossing, the nearest points.
CORNER_A = wp.constant(0)
CORNER_B = wp.constant(1)
CROSSING = wp.constant(2)
NEAREST = wp.constant(3)
#: Set in the number of a crossing that is the middle of an arc between two.
ARC = wp.constant(1 << 19)


@wp.struct
class ManifoldPoint:
    """One contact, in the world."""

    row: wp.int32
    feature_a: wp.int32
    feature_b: wp.int32
    gap: wp.float64
    point_a: wp.vec3d
    point_b: wp.vec3d
    normal: wp.vec3d
    key: wp.int64


@wp.struct
class Listing:
    """How far the list of a pair has got."""

    count: wp.int32
    least: wp.float64


@wp.func
def flat(v: vec, n: vec) -> vec:
    """The part of v across n."""
    return v - wp.dot(v, n) * n


@wp.func
def corners_of(f: Features, i: int) -> int:
    """How many corners a feature has."""
    count = f.count[i]
    if count == DISC:
        return RIM
    return wp.where(count == POINT, 1, wp.where(count == LINE, 2, count))


@wp.func
def eighth(k: int) -> real:
    """The sine of k eighths of a turn."""
    most = wp.where(k % 2 == 1, _DIAGONAL, wp.where(k % 4 == 0, _ZERO, _ONE))
    return wp.where(k % 8 > 4, -most, most)


@wp.func
def corner_of(f: Features, i: int, k: int) -> vec:
    count = f.count[i]
    if count == DISC:
        return f.starts[i, 0] + eighth(k + 2) * f.ends[i, 0] + eighth(k) * f.ends[i, 1]
    if count == LINE and k == 1:
        return f.ends[i, 0]
    return f.starts[i, k]


@wp.func
def lifted(f: Features, i: int, x: vec, n: vec) -> vec:
    """The point of a feature that is over x, along n; of a line or a point the nearest one, seen so."""
    count = f.count[i]
    start = f.starts[i, 0]
    if count == POINT:
        return start
    if count == LINE:
        way = f.ends[i, 0] - start
        across = flat(way, n)
        part = wp.dot(x - start, across) / wp.dot(across, across)
        return start + wp.clamp(part, _ZERO, _ONE) * way
    return x + (wp.dot(start - x, f.normal[i]) / wp.dot(n, f.normal[i])) * n


@wp.func
def is_over(f: Features, i: int, x: vec, n: vec, same: real) -> bool:
    """Whether a feature has a point over x, along n."""
    count = f.count[i]
    if count == POINT or count == LINE:  # noqa: SIM109
        return wp.length(flat(x - lifted(f, i, x, n), n)) <= same
    if count == DISC:
        return wp.length(lifted(f, i, x, n) - f.starts[i, 0]) <= wp.length(f.ends[i, 0]) + same
    turn = wp.where(wp.dot(f.normal[i], n) < _ZERO, -_ONE, _ONE)
    k = int(0)
    while k < count:
        way = flat(f.ends[i, k] - f.starts[i, k], n)
        if turn * wp.dot(wp.cross(way, x - f.starts[i, k]), n) < -same * wp.length(way):
            return False
        k += 1
    return True


@wp.func
def is_corner(f: Features, i: int, x: vec, n: vec, same: real) -> bool:
    """Whether x is a corner of a feature, seen along n."""
    k = int(0)
    while k < corners_of(f, i):
        if wp.length(flat(corner_of(f, i, k) - x, n)) <= same:
            return True
        k += 1
    return False


@wp.func
def listed(
    list: Listing,
    pair: NearPair,
    a: Features,
    b: Features,
    i: int,
    x: vec,
    what: int,
    number: int,
    distance: real,
    origin: vec,
    offset: int,
    room: int,
    out: wp.array[ManifoldPoint],
) -> Listing:
    """The list with the contact over x, if it is near enough; written down where there is room for it."""
    n = pair.normal
    point_a = lifted(a, i, x, n) - pair.margin_a * n
    point_b = lifted(b, i, x, n) + pair.margin_b * n
    gap = wp.dot(point_a - point_b, n)
    if what == NEAREST:
        point_a = pair.point_a
        point_b = pair.point_b
        gap = pair.gap
    if gap <= distance:
        if list.count < room:
            point = ManifoldPoint()
            point.row = pair.row
            point.feature_a = a.number[i]
            point.feature_b = b.number[i]
            point.gap = gap
            point.point_a = origin + point_a
            point.point_b = origin + point_b
            point.normal = n
            features = (wp.int64(a.number[i]) << wp.int64(20)) | wp.int64(b.number[i])
            point.key = (wp.int64(what) << wp.int64(60)) | (features << wp.int64(20)) | wp.int64(number)
            out[offset + list.count] = point
        list.count += 1
        list.least = wp.min(list.least, gap)
    return list


@wp.func
def crossing_of(p: vec, way: vec, q: vec, other: vec, n: vec, same: real, parallel: real) -> real:
    """Where, as a part of `way`, two sides cross between their ends, seen along n; negative where they do not."""
    turn = wp.dot(wp.cross(way, other), n)
    long = wp.length(flat(way, n))
    short = wp.length(flat(other, n))
    if not wp.abs(turn) > parallel * long * short:
        return -_ONE
    s = wp.dot(wp.cross(q - p, other), n) / turn
    t = wp.dot(wp.cross(q - p, way), n) / turn
    if s * long > same and (_ONE - s) * long > same and t * short > same and (_ONE - t) * short > same:
        return s
    return -_ONE


@wp.func
def rim_crossing(disc: Features, sides: Features, i: int, k: int, root: int, n: vec) -> real:
    """Where, as a part of it, side k crosses the rim of a disc, seen along n, first or again; -1 where it does not."""
    p = lifted(disc, i, sides.starts[i, k], n)
    way = lifted(disc, i, sides.ends[i, k], n) - p
    p = p - disc.starts[i, 0]
    squared = wp.length_sq(way)
    half = wp.dot(p, way) / squared
    left = half * half - (wp.length_sq(p) - wp.length_sq(disc.ends[i, 0])) / squared
    if not left > _ZERO:
        return -_ONE
    return -half + wp.where(root == 0, -_ONE, _ONE) * wp.sqrt(left)


@wp.func
def angle_on(disc: Features, i: int, x: vec) -> real:
    """Where a point of its plane is around a disc."""
    from_middle = x - disc.starts[i, 0]
    return wp.atan2(wp.dot(from_middle, disc.ends[i, 1]), wp.dot(from_middle, disc.ends[i, 0]))


@wp.func
def on_both_rims(a: Features, b: Features, i: int, start: real, n: vec) -> vec:
    """The point of a's rim near an angle that is over b's, along n.

    By Newton's method on the angle: seen along n, discs that lean are ellipses.
    """
    angle = start
    x = a.starts[i, 0]
    radius = wp.length_sq(b.ends[i, 0])
    step = int(0)
    while step < RIM_STEPS:
        step += 1
        x = a.starts[i, 0] + wp.cos(angle) * a.ends[i, 0] + wp.sin(angle) * a.ends[i, 1]
        slope = wp.cos(angle) * a.ends[i, 1] - wp.sin(angle) * a.ends[i, 0]
        there = lifted(b, i, x, n) - b.starts[i, 0]
        turn = _TWO * wp.dot(there, slope - (wp.dot(slope, b.normal[i]) / wp.dot(n, b.normal[i])) * n)
        if turn != _ZERO:
            angle -= wp.clamp((wp.length_sq(there) - radius) / turn, -_FAR_TURN, _FAR_TURN)
    return x


@wp.func
def middle_of_arc(disc: Features, sides: Features, i: int, start: real, n: vec) -> vec:
    """The middle of the arc of a rim from an angle on to where a side crosses it next."""
    least = _TURN + _ZERO
    k = int(0)
    while k < sides.count[i]:
        root = int(0)
        while root < 2:
            part = rim_crossing(disc, sides, i, k, root, n)
            if part >= _ZERO and part <= _ONE:
                x = lifted(disc, i, sides.starts[i, k] + part * (sides.ends[i, k] - sides.starts[i, k]), n)
                on = angle_on(disc, i, x) - start
                on = wp.where(on < _ZERO, on + _TURN, on)
                if on > _SMALL and on < least:
                    least = on
            root += 1
        k += 1
    angle = start + _HALF * least
    return disc.starts[i, 0] + wp.cos(angle) * disc.ends[i, 0] + wp.sin(angle) * disc.ends[i, 1]


@wp.kernel
def clip_features(
    first: int,
    chosen: wp.array[int],
    pairs: wp.array[NearPair],
    a: Features,
    b: Features,
    origins: wp.array[wp.mat44d],
    given: real,
    part: real,
    counts: wp.array[int],
    firsts: wp.array[ManifoldPoint],
    offsets: wp.array[int],
    out: wp.array[ManifoldPoint],
):
    """Count the contacts of each pair that are nearer than given, or, if that is negative, than a part of its size.

    The first one of each is written to `firsts`; with offsets, all for which `counts` says that there is room.
    """
    i = first + wp.tid()
    listing = offsets.shape[0] > 0
    offset = i
    room = int(1)
    if listing:
        offset = offsets[i]
        room = counts[i]
        if room <= 1:  # most have but one
            if room == 1:
                out[offset] = firsts[i]
            return
    pair = pairs[chosen[i]]
    distance = wp.where(given < _ZERO, part * pair.size, given)
    n = pair.normal
    same = _SAME * pair.size
    pose = origins[wp.min(pair.row, origins.shape[0] - 1)]
    origin = vec(pose[0, 3], pose[1, 3], pose[2, 3])
    list = Listing()
    list.least = _FAR
    of_a = a.count[i]
    of_b = b.count[i]
    near = same
    parallel = real(1.0e-12)
    if of_a == LINE and of_b == LINE:
        near = _PARALLEL * pair.size
        parallel = _PARALLEL
    k = int(0)
    while k < corners_of(a, i):
        x = corner_of(a, i, k)
        if is_over(b, i, x, n, near):
            list = listed(list, pair, a, b, i, x, CORNER_A, k, distance, origin, offset, room, out)
        k += 1
    k = int(0)
    while of_a != POINT and k < corners_of(b, i):  # a corner over a point is that point
        x = corner_of(b, i, k)
        if is_over(a, i, x, n, near) and not is_corner(a, i, x, n, near):
            list = listed(list, pair, a, b, i, x, CORNER_B, k, distance, origin, offset, room, out)
        k += 1
    # Sides with sides.
    j = int(0)
    while j < of_a:
        p = a.starts[i, j]
        way = a.ends[i, j] - p
        k = int(0)
        while k < of_b:
            q = b.starts[i, k]
            s = crossing_of(p, way, q, b.ends[i, k] - q, n, same, parallel)
            if s > _ZERO:
                number = ((j & 1023) << 10) | (k & 1023)
                list = listed(list, pair, a, b, i, p + s * way, CROSSING, number, distance, origin, offset, room, out)
            k += 1
        j += 1
    # Sides with the rim of a disc, and the middles of arcs between them.
    side = int(0)
    while side < 2:
        disc = a
        sides = b
        if side == 1:
            disc = b
            sides = a
        if disc.count[i] == DISC:
            k = int(0)
            while k < sides.count[i]:
                root = int(0)
                while root < 2:
                    part = rim_crossing(disc, sides, i, k, root, n)
                    x = lifted(disc, i, sides.starts[i, k] + part * (sides.ends[i, k] - sides.starts[i, k]), n)
                    long = wp.length(flat(sides.ends[i, k] - sides.starts[i, k], n))
                    if part * long > same and (_ONE - part) * long > same and not is_corner(disc, i, x, n, same):
                        number = ((k & 1023) << 2) | (2 * side + root)
                        list = listed(list, pair, a, b, i, x, CROSSING, number, distance, origin, offset, room, out)
                    if part >= _ZERO and part <= _ONE and sides.count[i] > 2:
                        x = middle_of_arc(disc, sides, i, angle_on(disc, i, x), n)
                        if is_over(sides, i, x, n, same) and not is_corner(disc, i, x, n, same):
                            number = ARC | ((k & 1023) << 2) | (2 * side + root)
                            list = listed(list, pair, a, b, i, x, CROSSING, number, distance, origin, offset, room, out)
                    root += 1
                k += 1
        side += 1
    if of_a == DISC and of_b == DISC:
        middle = a.starts[i, 0]
        radius = wp.length(a.ends[i, 0])
        other = wp.length(b.ends[i, 0])
        way = lifted(a, i, b.starts[i, 0], n) - middle
        apart = wp.length(way)
        if apart > same and apart < radius + other and apart > wp.abs(radius - other):
            along = _HALF * (apart + (radius - other) * (radius + other) / apart)
            beside = wp.sqrt(wp.max(radius * radius - along * along, _ZERO))
            up = wp.cross(a.normal[i], way) / apart
            root = int(0)
            while root < 2:
                x = middle + (along / apart) * way + wp.where(root == 0, -beside, beside) * up
                x = on_both_rims(a, b, i, angle_on(a, i, x), n)
                if is_over(b, i, x, n, same) and not is_corner(a, i, x, n, same) and not is_corner(b, i, x, n, same):
                    list = listed(list, pair, a, b, i, x, CROSSING, root, distance, origin, offset, room, out)
                # The middle of the arc of each disc over the other.
                x = middle + (radius / apart) * way
                over = is_over(b, i, x, n, same)
                if root == 1:
                    x = b.starts[i, 0] + other * wp.normalize(lifted(b, i, middle, n) - b.starts[i, 0])
                    over = is_over(a, i, x, n, same)
                if over and not is_corner(a, i, x, n, same) and not is_corner(b, i, x, n, same):
                    list = listed(list, pair, a, b, i, x, CROSSING, ARC | root, distance, origin, offset, room, out)
                root += 1
    if list.least > pair.gap + same:
        list = listed(list, pair, a, b, i, pair.point_a, NEAREST, 0, distance, origin, offset, room, out)
    counts[i] = list.count


@wp.kernel
def single_contacts(
    first: int,
    chosen: wp.array[int],
    pairs: wp.array[NearPair],
    numbers_b: wp.array[int],
    origins: wp.array[wp.mat44d],
    out: wp.array[ManifoldPoint],
):
    """The contacts of spheres, one for each pair, on features of the others with these numbers."""
    i = first + wp.tid()
    pair = pairs[chosen[i]]
    pose = origins[wp.min(pair.row, origins.shape[0] - 1)]
    origin = vec(pose[0, 3], pose[1, 3], pose[2, 3])
    point = ManifoldPoint()
    point.row = pair.row
    point.feature_b = numbers_b[wp.min(i, numbers_b.shape[0] - 1)]
    point.gap = pair.gap
    point.point_a = origin + pair.point_a
    point.point_b = origin + pair.point_b
    point.normal = pair.normal
    point.key = (wp.int64(CORNER_A) << wp.int64(60)) | (wp.int64(point.feature_b) << wp.int64(20))
    out[i] = point
