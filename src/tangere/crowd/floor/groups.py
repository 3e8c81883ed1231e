"""People who belong together: they go where the first of them goes, as fast as the slowest, and wait for each other.

Question: where is the middle of a group, and how does a member go on so that it stays together?
Method:   before a step the middle of each group is found, of those who are on the sheet of its first member. Who is
          ahead of it by more than a metre slows down, and stands at three; who sees it turns a little to it. Stages are
          chosen from where the first member is, and by his chance.
Sound:    what it reads is the state before the step: the same bits for any threads.
Known as: group cohesion (Moussaïd et al. 2010), as a wish and not as a force: any behaviour may follow it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.crowd.agents.arrays import CrowdArrays
from tangere.crowd.agents.wall_crossings import is_hidden
from tangere.crowd.floor.cell_grid import FloorCells, sheet_of
from tangere.runtime import SOUND, InputError, PreparedLaunch

wp.set_module_options(SOUND)

_ZERO, _ONE = (wp.constant(wp.float64(x)) for x in (0.0, 1.0))
#: Who is so far ahead of the middle of his group begins to slow down, and stands [m].
_AHEAD, _STANDS = (wp.constant(wp.float64(x)) for x in (1.0, 3.0))
#: How much people turn to the middle of their group, at most, and from how far on it is that [m].
_TURN, _FAR = (wp.constant(wp.float64(x)) for x in (0.4, 3.0))


@wp.struct
class GroupTable:
    """By group; `slot` by number of a person: his place among those who are there, -1: he is not there."""

    first: wp.array[int]  # and one more
    member: wp.array[int]
    leader: wp.array[int]  # slot of the first member who is there; -1: nobody is
    slot: wp.array[int]


def group_sizes(groups: Any, people: int) -> np.ndarray:
    """(people,) the group of each, of one size for all groups or of their sizes."""
    try:
        sizes = np.asarray(groups)
        wrong = sizes.dtype.kind not in "iu" or sizes.ndim > 1 or (sizes < 1).any()
    except (TypeError, ValueError):
        wrong, sizes = True, np.empty(0)
    if wrong:
        raise InputError(f"groups must be a size, or the sizes of all groups, not {groups!r}")
    if sizes.ndim == 0:
        return np.arange(people) // int(sizes)
    if sizes.sum() != people:
        raise InputError(f"groups: their sizes make {sizes.sum()}, not {people} people")
    return np.repeat(np.arange(len(sizes)), sizes)


def slowest_together(speeds: np.ndarray, group: np.ndarray) -> np.ndarray:
    """(people,) the speed of the slowest of each one's group."""
    least = np.full(int(group.max(initial=-1)) + 1, np.inf)
    np.minimum.at(least, group, speeds)
    return least[group]


def nearest_together(places: np.ndarray, group: np.ndarray) -> np.ndarray:
    """(n,) an order of places such that those of one group, which follow each other, are near each other."""
    left, order = np.ones(len(places), bool), []
    for size in np.bincount(group).tolist():
        first = int(np.argmax(left))
        away = np.where(left, np.linalg.norm(places - places[first], axis=1), np.inf)
        chosen = np.argsort(away, kind="stable")[:size]
        left[chosen] = False
        order += chosen.tolist()
    return np.array(order)


def group_table(group: np.ndarray, device: wp.Device) -> GroupTable:
    """Groups for kernels; group: (people,) of each, -1: none."""
    t = GroupTable()
    members = np.argsort(group, kind="stable")
    members = members[group[members] >= 0]
    count = int(group.max(initial=-1)) + 1
    first = np.searchsorted(group[members], np.arange(count + 1))
    t.first = wp.array(first.astype(np.int32), dtype=wp.int32, device=device)
    t.member = wp.array(members.astype(np.int32), dtype=wp.int32, device=device)
    t.leader = wp.full(count, -1, dtype=wp.int32, device=device)
    t.slot = wp.full(max(len(group), 1), -1, dtype=wp.int32, device=device)
    return t


def group_launches(
    t: GroupTable, crowd: CrowdArrays, cells: FloorCells, live: wp.array, device: wp.Device
) -> list[PreparedLaunch]:
    """What to run before a step."""
    capacity, groups = len(crowd.position), len(t.leader)
    return [
        PreparedLaunch(_forget, [t], device, dim=len(t.slot), grain=4096),
        PreparedLaunch(_note_slots, [t, crowd, live], device, dim=capacity, grain=4096),
        PreparedLaunch(_find_middles, [t, crowd, cells], device, dim=groups, grain=64),
    ]


@wp.func
def leader_of(t: GroupTable, c: CrowdArrays, number: int) -> int:
    """The slot of the first member of somebody's group; -1: he is alone."""
    if t.leader.shape[0] == 0 or c.group[number] < 0:
        return -1
    return t.leader[c.group[number]]


@wp.func
def kept_together(t: GroupTable, c: CrowdArrays, f: FloorCells, i: int, preferred: wp.vec3d) -> wp.vec3d:
    """A wish that keeps somebody with his group."""
    leader = leader_of(t, c, c.number[i])
    speed = wp.length(preferred)
    if leader < 0 or speed == _ZERO:
        return preferred
    if sheet_of(f, c.cell[leader]) != sheet_of(f, c.cell[i]):
        return preferred
    to = c.group_centre[c.group[c.number[i]]] - c.position[i]
    way = preferred / speed
    behind = -wp.dot(to, way)
    slower = wp.clamp((_STANDS - behind) / (_STANDS - _AHEAD), _ZERO, _ONE)
    if slower < _ONE:
        return preferred * slower
    distance = wp.length(to)
    if distance > _AHEAD and not is_hidden(c.neighbourhoods, c.cell[i], c.position[i], c.position[i] + to):
        way = wp.normalize(way + to * (_TURN * wp.min(distance / _FAR, _ONE) / distance))
    return way * speed


@wp.kernel
def _forget(first: int, t: GroupTable):
    t.slot[first + wp.tid()] = -1


@wp.kernel
def _note_slots(first: int, t: GroupTable, c: CrowdArrays, live: wp.array[int]):
    i = first + wp.tid()
    if i < live[0]:
        t.slot[c.number[i]] = i


@wp.kernel
def _find_middles(first: int, t: GroupTable, c: CrowdArrays, f: FloorCells):
    g = first + wp.tid()
    leader = int(-1)
    middle = wp.vec3d()
    count = _ZERO
    for k in range(t.first[g], t.first[g + 1]):
        i = t.slot[t.member[k]]
        if i >= 0:
            if leader < 0:
                leader = int(i)
            if sheet_of(f, c.cell[i]) == sheet_of(f, c.cell[leader]):
                middle += c.position[i]
                count += _ONE
    t.leader[g] = leader
    if leader >= 0:
        c.group_centre[g] = middle / count
