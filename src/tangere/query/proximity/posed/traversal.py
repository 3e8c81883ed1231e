"""The descent of two posed OBB trees for everything nearer than a distance.

Question: which pairs of features are constraints, and how near do the surfaces come?
Method:   depth first over pairs of boxes nearer than the distance, no refitting and no posed copies of meshes; pairs of
          triangles are compared in `leaf`. A thread begins with a pair of bodies and looks at so many pairs of boxes;
          what it leaves is begun by other threads, so few large bodies keep many threads busy, as many small ones do.
Sound:    boxes count their rounding, so no pair of triangles below the distance is left out; a feature owned by a
          triangle is where the triangle is, so no pair of features is.
Others:   `cpu.search` compares eight boxes at a time; what it finds is the same.
Known as: simultaneous descent of bounding volume hierarchies (Gottschalk, Lin and Manocha 1996).
"""

from __future__ import annotations

import warp as wp

from tangere.bvh.obb import boxes_at_least
from tangere.query.intersection.traversal import Waiting, opens_first
from tangere.query.proximity.posed.leaf import Appended, PairState, compare_triangles
from tangere.query.proximity.posed.narrow_phase import PairFrame
from tangere.query.proximity.posed.shapes import FACE, NODE, ShapeTables
from tangere.runtime import SOUND, reserve_slots

wp.set_module_options(SOUND)

#: What a pair of bodies is: apart or touching; passing through each other; not placed by rotations; no two bodies; not
#: asked about a distance.
APART = wp.constant(0)
OVERLAP = wp.constant(1)
BAD_POSE = wp.constant(2)
BAD_DISTANCE = wp.constant(3)
BAD_PAIR = wp.constant(4)

#: Rounding of positions in the frame of a, relative to the largest coordinate.
_ROUNDING = wp.constant(wp.float64(2.0**-46))
#: Offsets below this part of the coordinates tell no direction.
_TINY = wp.constant(wp.float64(1.0e-11))
#: How far from orthonormal rotations may be.
_ORTHONORMAL = wp.constant(wp.float64(1.0e-6))


@wp.struct
class PairQueries:
    """Pairs of bodies, where each body is, and what counts as near."""

    pairs: wp.array[wp.vec2i]
    limit: wp.array[wp.float64]  # of each pair [m]
    rotation: wp.array[wp.mat33d]  # of each body
    origin: wp.array[wp.vec3d]
    tilt: wp.float64


@wp.struct
class PairResults:
    """What is told of each pair of bodies."""

    least: wp.array[wp.float64]  # [m]
    status: wp.array[wp.int32]


@wp.struct
class PairSearch:
    """The search of one pair."""

    frame: PairFrame
    base_a: wp.vec4i
    base_b: wp.vec4i
    size: wp.float64  # a bound of the coordinates of both bodies in the frame of a
    status: wp.int32
    so_far: PairState


@wp.func
def pair_frame(shapes: ShapeTables, queries: PairQueries, pair: int) -> PairFrame:
    """Where the second body of a pair is in the frame of the first, and what counts as near."""
    bodies = queries.pairs[pair]
    frame = PairFrame()
    back = wp.transpose(queries.rotation[bodies[0]])
    frame.turn = back * queries.rotation[bodies[1]]
    frame.back = wp.transpose(frame.turn)
    frame.shift = back * (queries.origin[bodies[1]] - queries.origin[bodies[0]])
    frame.limit = queries.limit[pair]
    frame.tilt = queries.tilt
    size = reach_of(shapes, bodies[0]) + reach_of(shapes, bodies[1]) + wp.length(frame.shift)
    frame.tiny = _TINY * size
    return frame


@wp.func
def reach_of(shapes: ShapeTables, body: int) -> wp.float64:
    """A bound of the coordinates of a body in its own frame."""
    root = shapes.nodes[shapes.base[shapes.shape[body]][NODE]]
    return wp.float64(wp.length(root.centre) + root.radius)


@wp.func
def is_rotation(r: wp.mat33d) -> bool:
    """Whether a matrix is a rotation, up to rounding; NaN is none."""
    square = wp.transpose(r) * r - wp.identity(n=3, dtype=wp.float64)
    return wp.ddot(square, square) < _ORTHONORMAL * _ORTHONORMAL and wp.determinant(r) > wp.float64(0.0)


@wp.func
def begin_pair(shapes: ShapeTables, queries: PairQueries, pair: int) -> PairSearch:
    """What a search begins with; its status says whether there is anything to search."""
    search = PairSearch()
    bodies = queries.pairs[pair]
    if wp.min(bodies) < 0 or wp.max(bodies) >= queries.rotation.shape[0] or bodies[0] == bodies[1]:
        search.status = int(BAD_PAIR)
        return search
    search.base_a = shapes.base[shapes.shape[bodies[0]]]
    search.base_b = shapes.base[shapes.shape[bodies[1]]]
    search.frame = pair_frame(shapes, queries, pair)
    search.size = search.frame.tiny / _TINY
    search.so_far.nearest = search.frame.limit + _ROUNDING * search.size
    search.status = int(APART)
    if not (search.frame.limit >= wp.float64(0.0) and wp.isfinite(search.frame.limit)):
        search.status = int(BAD_DISTANCE)
    if not (is_rotation(queries.rotation[bodies[0]]) and is_rotation(queries.rotation[bodies[1]])):
        search.status = int(BAD_POSE)
    if not wp.isfinite(search.frame.shift):
        search.status = int(BAD_POSE)
    return search


@wp.func
def least_distance(search: PairSearch) -> wp.float64:
    """The least distance found less rounding, if that is below the limit; 0 of bodies that meet."""
    nearest = wp.clamp(search.so_far.nearest - _ROUNDING * search.size, wp.float64(0.0), search.frame.limit)
    return wp.where(search.so_far.meet, wp.float64(0.0), nearest)


@wp.kernel
def begin_search(first: int, shapes: ShapeTables, queries: PairQueries, results: PairResults, jobs: wp.array[wp.vec3i]):
    """Say what is known of each pair before its search, and where that begins: at both roots."""
    pair = first + wp.tid()
    search = begin_pair(shapes, queries, pair)
    results.status[pair] = search.status
    results.least[pair] = wp.where(search.status == APART, search.frame.limit, wp.float64(0.0))
    jobs[pair] = wp.vec3i(pair, 0, 0)


@wp.kernel
def find_constraints(
    first: int,
    shapes: ShapeTables,
    queries: PairQueries,
    jobs: wp.array[wp.vec3i],
    budget: int,
    out: Appended,
    results: PairResults,
    left_count: wp.array[wp.int64],
    left_capacity: int,
    left: wp.array[wp.vec3i],
):
    """Search from a pair of boxes on: append constraints, lower the least distance of the pair.

    Args:
        jobs: a pair of bodies, and a box of each, counted from its root.
        budget: pairs of boxes to look at; what waits then is appended to `left`, so that others go on with it.
    """
    job = jobs[first + wp.tid()]
    pair = job[0]
    search = begin_pair(shapes, queries, pair)
    frame = search.frame
    base_a = search.base_a
    base_b = search.base_b
    so_far = search.so_far
    uncertain = _ROUNDING * search.size
    waiting_a = Waiting()
    waiting_b = Waiting()
    waiting_a[0] = job[1]
    waiting_b[0] = job[2]
    count = int(1)
    if search.status != APART:
        count = 0
    looked = int(0)
    while count > 0 and looked < budget:
        looked += 1
        count -= 1
        i = waiting_a[count]
        j = waiting_b[count]
        a = shapes.nodes[base_a[NODE] + i]
        b = shapes.nodes[base_b[NODE] + j]
        if boxes_at_least(a, b, frame.turn, frame.shift, uncertain, frame.limit)[0] < frame.limit:
            if a.right < 0 and b.right < 0:
                face_a = base_a[FACE] + a.triangle
                face_b = base_b[FACE] + b.triangle
                so_far = compare_triangles(shapes, frame, pair, base_a, base_b, face_a, face_b, so_far, 0, out)
            elif opens_first(a, b):
                waiting_a[count] = a.right
                waiting_b[count] = j
                waiting_a[count + 1] = i + 1
                waiting_b[count + 1] = j
                count += 2
            else:
                waiting_a[count] = i
                waiting_b[count] = b.right
                waiting_a[count + 1] = i
                waiting_b[count + 1] = j + 1
                count += 2
    if count > 0:
        slot = reserve_slots(left_count, 0, count, left_capacity)
        if slot >= 0:
            for k in range(count):
                left[slot + k] = wp.vec3i(pair, waiting_a[k], waiting_b[k])
    if search.status == APART:
        search.so_far = so_far
        wp.atomic_min(results.least, pair, least_distance(search))
        if so_far.meet:
            wp.atomic_max(results.status, pair, int(OVERLAP))
