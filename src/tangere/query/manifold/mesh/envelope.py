"""Few contacts that say all that many say: those on the lower convex envelope of the gaps.

Question: which contacts of a pair can be left out without allowing a motion that they forbid?
Method:   for small motions of a rigid body the gaps of contacts with one normal change by an affine function of where
          they are across it. So a contact is implied by others if its gap is not below the lower convex envelope of
          theirs: it is kept if some affine function that rises by at most 1 is below the gaps of all others and, by a
          tolerance, above its own. That is a linear programme in two variables for each. Contacts are one group if
          their normals differ by a degree at most, as on ground.
Sound:    what is left out is implied by what is kept, to the tolerance for each contact left out: on a flat place the
          corners of the convex hull stay, and what is nearer than an affine function through them.
Known as: manifold reduction without loss; redundancy of linear constraints; Seidel 1991 for the programme.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.query.contacts.record import Contacts
from tangere.query.manifold.reduction import ALIKE
from tangere.runtime import SOUND, LaunchCache, PreparedLaunch, launch

wp.set_module_options(SOUND)

real = wp.float64
vec = wp.vec3d

#: Gaps that differ by this part of the bodies' size do not differ.
SAME = 1e-9
#: Contacts for which arrays are kept, by each thread.
FEW = 256
_ZERO = wp.constant(real(0.0))
_ONE = wp.constant(real(1.0))
#: The programme prefers slopes along this direction: any will do that edges are rarely across.
_ALONG = wp.constant(real(0.6180339887498949))
_ACROSS = wp.constant(real(0.7861513777574233))
#: Lines whose directions differ by less (sin) are parallel: contacts at one place differ by rounding.
_PARALLEL = wp.constant(real(1.0e-10))
#: Part of the tolerance by which rounding may break a bound.
_ROUNDING = wp.constant(real(0.1))


def reduced(contacts: Contacts, sizes: np.ndarray, device: wp.Device) -> Contacts:
    """The contacts that the others do not imply, by rising query and key.

    Args:
        contacts: of any number of queries, in any order.
        sizes: of the bodies of each contact, (n,) [m].
    """
    if not len(contacts):
        return contacts
    order = np.lexsort((contacts.key, contacts.query))
    query = contacts.query[order]
    starts = np.flatnonzero(np.concatenate([[True], query[1:] != query[:-1]]))
    firsts = np.append(starts, len(order)).astype(np.int32)
    columns = firsts, contacts.point_a[order], contacts.normal[order], contacts.gap[order], SAME * sizes[order]
    if device.is_cpu and len(order) <= FEW:
        state = _prepared.of().state(columns)
    else:
        arrays = [wp.array(column, dtype=dtype, device=device) for column, dtype in zip(columns, _TYPES, strict=True)]
        group = wp.zeros(len(order), dtype=wp.int32, device=device)
        flat = wp.empty(len(order), dtype=wp.vec2d, device=device)
        launch(keep_envelope, len(starts), arrays, [flat, group], device=device, grain=16)
        state = group.numpy()
    return contacts[order[state >= 0]]


_TYPES: tuple[Any, ...] = (wp.int32, wp.vec3d, wp.vec3d, wp.float64, wp.float64)


class _PreparedEnvelope:
    """Arrays for a few contacts, and the launch prepared over them (CPU)."""

    def __init__(self) -> None:
        cpu = wp.get_device("cpu")
        arrays = [wp.zeros(FEW + 1, dtype=dtype, device=cpu) for dtype in (*_TYPES, wp.vec2d, wp.int32)]
        self._columns = [array.numpy() for array in arrays]
        self._launch = PreparedLaunch(keep_envelope, arrays, cpu)

    def state(self, columns: tuple[np.ndarray, ...]) -> np.ndarray:
        """The group of each contact, -1 of those left out; valid until the next call."""
        for kept, column in zip(self._columns, columns, strict=False):
            kept[: len(column)] = column
        self._launch.launch(len(columns[0]) - 1, 0)
        return self._columns[-1][: len(columns[1])]


_prepared = LaunchCache(_PreparedEnvelope)


@wp.func
def is_implied(
    begin: int,
    end: int,
    i: int,
    flat: wp.array[wp.vec2d],
    gaps: wp.array[wp.float64],
    group: wp.array[int],
    same: real,
) -> bool:
    """Whether contacts of a group, those left out already aside, have no slope with all above contact i."""
    slope = wp.vec2d(_ONE, _ONE)
    slack = _ROUNDING * same
    for j in range(begin, end):
        if j != i and group[j] == group[i]:
            way = flat[j] - flat[i]
            rise = gaps[j] - gaps[i] - same
            if wp.dot(way, slope) > rise + slack:
                long = wp.length(way)
                if not long > same:
                    return True
                # On this line, as far along as the lines before it and the box allow.
                n = way / long
                foot = n * (rise / long)
                d = wp.vec2d(-n[1], n[0])
                if d[0] * _ALONG + d[1] * _ACROSS < _ZERO:
                    d = -d
                low = real(-4.0)
                high = real(4.0)
                for side in range(4):
                    e = wp.vec2d(_ZERO, _ZERO)
                    e[side / 2] = wp.where(side % 2 == 0, _ONE, -_ONE)
                    rate = wp.dot(e, d)
                    room = _ONE - wp.dot(e, foot)
                    if wp.abs(rate) <= _PARALLEL:
                        if room < _ZERO:
                            return True
                    elif rate > _ZERO:
                        high = wp.min(high, room / rate)
                    else:
                        low = wp.max(low, room / rate)
                for k in range(begin, j):
                    if k != i and group[k] == group[i]:
                        other = flat[k] - flat[i]
                        rate = wp.dot(other, d)
                        room = gaps[k] - gaps[i] - same - wp.dot(other, foot)
                        if wp.abs(rate) <= _PARALLEL * wp.length(other):
                            if room < -slack:
                                return True
                        elif rate > _ZERO:
                            high = wp.min(high, room / rate)
                        else:
                            low = wp.max(low, room / rate)
                if low > high + _PARALLEL:
                    return True
                slope = foot + high * d
    return False


@wp.func
def farthest_way(
    begin: int, end: int, leader: int, points: wp.array[wp.vec3d], normals: wp.array[wp.vec3d], group: wp.array[int]
) -> vec:
    """A unit vector across the normal of a group, the same whichever way the scene is turned: to its farthest point."""
    n = normals[leader]
    e = vec(_ONE, _ZERO, _ZERO)
    if wp.abs(n[0]) > wp.abs(n[1]):
        e = vec(_ZERO, _ONE, _ZERO)
    e = e - wp.dot(e, n) * n
    far = real(0.0)
    for j in range(begin, end):
        if group[j] == leader:
            way = points[j] - points[leader]
            way = way - wp.dot(way, n) * n
            if wp.length(way) > far:
                far = wp.length(way)
                e = way
    return wp.normalize(e)


@wp.kernel
def keep_envelope(
    first: int,
    firsts: wp.array[int],
    points: wp.array[wp.vec3d],
    normals: wp.array[wp.vec3d],
    gaps: wp.array[wp.float64],
    same: wp.array[wp.float64],
    flat: wp.array[wp.vec2d],
    group: wp.array[int],
):
    """Write the first contact of the group of each one, and -1 for those that the others imply."""
    query = first + wp.tid()
    begin = firsts[query]
    end = firsts[query + 1]
    for i in range(begin, end):
        group[i] = i
        leader = int(i)
        for j in range(begin, i):
            if leader == i and group[j] == j and wp.dot(normals[i], normals[j]) >= ALIKE:
                leader = j
        group[i] = leader
    for i in range(begin, end):
        leader = group[i]
        n = normals[leader]
        e = farthest_way(begin, end, leader, points, normals, group)
        way = points[i] - points[leader]
        flat[i] = wp.vec2d(wp.dot(way, e), wp.dot(way, wp.cross(n, e)))
    i = end - 1
    while i >= begin:
        if is_implied(begin, end, i, flat, gaps, group, same[i]):
            group[i] = -1
        i -= 1
