"""Questions about twists, written by kernels: motions, queries and answers where they are, and what is wrong with them.

Kernels cannot raise: the first row with a fault is kept with its word, (row, word) as one number, and read by the host.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.motion import RigidMotion, TwistArrays, twist_fault, twist_motion
from tangere.query.contacts.record import Kind, Status
from tangere.query.first_contact.rigid.conservative_advancement import QueryArrays, RigidQuery, pair_of
from tangere.query.first_contact.rigid.details import KINDS, ContactDetail
from tangere.query.first_contact.rigid.traversal import NO_TRIANGLE, EarliestHit, no_hit
from tangere.runtime import SOUND, device_of

wp.set_module_options(SOUND)

#: In the place of a tolerance: 1e-6 of the larger body's size.
DEFAULT_TOLERANCE = -1.0e308
#: What is wrong with a question, by its word.
QUESTION_FAULTS = (
    "",
    "pairs[{row}] is {pair} but there are {bodies} bodies",
    "pairs[{row}] is {pair}: a body does not touch itself",
    "separation of pair {row} must be a length >= 0, not {separation!r}",
    "tolerance of pair {row} must be a length >= 0, not {tolerance!r}",
    "until of pair {row} must be a time in [0, 1], not {until!r}",
    "tolerance {tolerance!r} of pair {row} is below 1e-12 of the size of the query, its motion included: rounding would"
    " hide contacts",
)
#: Words a row may have.
WORDS = wp.constant(8)
NO_FAULT = 2**31 - 1

_ZERO = wp.constant(wp.float64(0.0))
_ONE = wp.constant(wp.float64(1.0))
_NEVER = wp.constant(wp.float64(wp.inf))
_NOTHING = wp.constant(wp.float64(wp.nan))
_RELATIVE = wp.constant(wp.float64(1e-6))
_FREE, _CONTACT, _START, _UNRESOLVED = (
    wp.constant(wp.uint8(s)) for s in (Status.FREE, Status.CONTACT, Status.START, Status.UNRESOLVED)
)
_NONE = wp.constant(int(Kind.NONE))


@wp.struct
class BodyTable:
    """Where the shape of each body is, and how large it is."""

    node: wp.array[int]
    wide: wp.array[int]
    triangle: wp.array[int]
    extent: wp.array[wp.float64]  #: [m]


@wp.struct
class QuestionArrays:
    """What is asked about each pair."""

    pairs: wp.array[wp.vec2i]  #: numbers of two bodies
    separation: wp.array[wp.float64]  #: [m]
    tolerance: wp.array[wp.float64]  #: [m], or `DEFAULT_TOLERANCE`
    until: wp.array[wp.float64]  #: in [0, 1]


@wp.struct
class DetailArrays:
    """What touches where, world, at the time of contact; NaN, -1 and NONE where nothing does."""

    time_upper: wp.array[wp.float64]  #: contact is certain by then, inf when that is not proved
    point_a: wp.array[wp.vec3d]  #: [m]
    point_b: wp.array[wp.vec3d]
    normal: wp.array[wp.vec3d]  #: unit, pushes a away from b
    gap: wp.array[wp.float64]  #: [m]
    triangle_a: wp.array[int]
    triangle_b: wp.array[int]
    kind: wp.array[int]  #: `Kind`


def fault_of(fault: wp.array, host: np.ndarray, place: int) -> tuple[int, int] | None:
    """(row, word) of the first row that has a fault, and forget it; None where none has.

    Args:
        host: the array itself on the CPU, which costs nothing to read.
    """
    found = (fault.numpy() if device_of(fault).is_cuda else host).item(place)
    if found == NO_FAULT:
        return None
    fault.fill_(NO_FAULT)
    return found // int(WORDS), found % int(WORDS)


@wp.func
def note_fault(fault: wp.array[int], place: int, row: int, word: int):
    if word > 0:
        wp.atomic_min(fault, place, row * WORDS + word)


@wp.kernel
def split_poses(first: int, poses: wp.array[wp.mat44d], rotation: wp.array[wp.mat33d], origin: wp.array[wp.vec3d]):
    i = first + wp.tid()
    m = poses[i]
    rotation[i] = wp.mat33d(m[0, 0], m[0, 1], m[0, 2], m[1, 0], m[1, 1], m[1, 2], m[2, 0], m[2, 1], m[2, 2])
    origin[i] = wp.vec3d(m[0, 3], m[1, 3], m[2, 3])


@wp.kernel
def check_twists(first: int, twists: TwistArrays, fault: wp.array[int]):
    i = first + wp.tid()
    note_fault(fault, 0, i, twist_fault(twists, i))


@wp.kernel
def write_motions(first: int, twists: TwistArrays, motions: wp.array[RigidMotion]):
    i = first + wp.tid()
    motions[i] = twist_motion(twists, i)


@wp.kernel
def set_motion(
    first: int, chosen: wp.array[int], twists: TwistArrays, motions: wp.array[RigidMotion], fault: wp.array[int]
):
    """The motion of the chosen body, if nothing is wrong with it."""
    i = chosen[first + wp.tid()]
    word = twist_fault(twists, i)
    if word == 0:
        motions[i] = twist_motion(twists, i)
    note_fault(fault, 0, i, word)


@wp.kernel
def write_queries(
    first: int,
    asked: QuestionArrays,
    bodies: BodyTable,
    arrays: QueryArrays,
    hits: wp.array[EarliestHit],
    fault: wp.array[int],
):
    """The query of each pair, and the limit of its search."""
    i = first + wp.tid()
    a = asked.pairs[i][0]
    b = asked.pairs[i][1]
    count = bodies.node.shape[0]
    separation = asked.separation[i]
    tolerance = asked.tolerance[i]
    until = asked.until[i]
    word = int(0)
    if not (until >= _ZERO and until <= _ONE):
        word = 5
    if tolerance != wp.static(wp.float64(DEFAULT_TOLERANCE)) and not (tolerance >= _ZERO and tolerance < _NEVER):
        word = 4
    if not (separation >= _ZERO and separation < _NEVER):
        word = 3
    if a == b:
        word = 2
    if a < 0 or b < 0 or a >= count or b >= count:
        word = 1
    if word == 0:
        query = RigidQuery()
        query.node_a = bodies.node[a]
        query.node_b = bodies.node[b]
        query.wide_a = bodies.wide[a]
        query.wide_b = bodies.wide[b]
        query.triangle_a = bodies.triangle[a]
        query.triangle_b = bodies.triangle[b]
        query.motion_a = a
        query.motion_b = b
        query.links_a = 1
        query.links_b = 1
        query.separation = separation
        query.tolerance = tolerance
        if tolerance < _ZERO:
            query.tolerance = _RELATIVE * wp.max(bodies.extent[a], bodies.extent[b])
        arrays.queries[i] = query
        pair = pair_of(query, arrays)
        arrays.pairs[i] = pair
        if tolerance >= _ZERO and pair.tolerance > tolerance:
            word = 6
        limit = no_hit()
        if until < _ONE:
            limit.time = until
            limit.a = NO_TRIANGLE
            limit.b = NO_TRIANGLE
        hits[i] = limit
    note_fault(fault, 1, i, word)


@wp.kernel
def write_answers(first: int, hits: wp.array[EarliestHit], time: wp.array[wp.float64], status: wp.array[wp.uint8]):
    i = first + wp.tid()
    hit = hits[i]
    time[i] = _NEVER
    status[i] = _FREE
    if hit.time <= _ONE:
        time[i] = hit.time
        if hit.pierced >= 0:
            status[i] = _START
        elif hit.decided:
            status[i] = _CONTACT
        else:
            status[i] = _UNRESOLVED


@wp.func
def kind_of_detail(kind: int) -> int:
    """`Kind` of a `ContactDetail`'s."""
    result = wp.static(int(KINDS[0]))
    if kind == 1 or kind == 2:
        result = wp.static(int(KINDS[1]))
    if kind == 3:
        result = wp.static(int(KINDS[3]))
    return result


@wp.kernel
def write_details(first: int, details: wp.array[ContactDetail], hits: wp.array[EarliestHit], columns: DetailArrays):
    i = first + wp.tid()
    nowhere = wp.vec3d(_NOTHING, _NOTHING, _NOTHING)
    columns.time_upper[i] = _NEVER
    columns.point_a[i] = nowhere
    columns.point_b[i] = nowhere
    columns.normal[i] = nowhere
    columns.gap[i] = _NOTHING
    columns.triangle_a[i] = -1
    columns.triangle_b[i] = -1
    columns.kind[i] = _NONE
    if hits[i].time <= _ONE:
        detail = details[i]
        columns.time_upper[i] = detail.time_upper
        columns.point_a[i] = detail.point_a
        columns.point_b[i] = detail.point_b
        columns.normal[i] = detail.normal
        columns.gap[i] = detail.gap
        columns.triangle_a[i] = detail.triangle_a
        columns.triangle_b[i] = detail.triangle_b
        columns.kind[i] = kind_of_detail(detail.kind)
