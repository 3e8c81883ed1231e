"""A step on a floor plan: everybody sees, steers and goes as far as walls allow; who reaches an aim gets the next.

Question: where is everybody after a step, who has left, and who has crossed a line?
Method:   one kernel for all people who are there (`live`), with any behaviour; the preferred velocity is that of the
          field of the person's stage. Who has done with a stage chooses the next in a kernel of its own, so that this
          one stays small. The time at which a line is crossed is that of the crossing itself.
Sound:    it reads the state before the step and writes what is the person's own: the same bits for any threads. Nobody
          passes a wall (`wall_crossings`), and who would leave the cells stays.
Known as: a fused kernel.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import warp as wp

from tangere.cells.maps import MapArrays, RingTable
from tangere.crowd.agents.arrays import BodyEdges, CrowdArrays, MovedAgents
from tangere.crowd.agents.wall_crossings import clipped_way
from tangere.crowd.floor.cell_grid import FloorCells, crossing, floor_cell, place_after, sheet_of
from tangere.crowd.floor.floor_obstacles import ObstacleTable
from tangere.crowd.floor.groups import GroupTable, kept_together, leader_of
from tangere.crowd.floor.stages import (
    EXIT,
    NEAREST,
    QUEUE,
    QUICKEST,
    START,
    WAITING,
    People,
    StageTable,
    chosen_stage,
    is_in_stage,
)
from tangere.crowd.floor.ways.travel_fields import FieldTable, way_direction
from tangere.runtime import SOUND, PreparedLaunch

wp.set_module_options(SOUND)

#: People per kernel index on CPU, where every index costs a copy of all array headers.
_CHUNK, _GRAIN = 32, 4
_ZERO, _ONE = (wp.constant(wp.float64(x)) for x in (0.0, 1.0))
#: Who is so near to the last place of a queue, or to the first free one, joins it; where it is full he waits [m].
JOIN = wp.constant(wp.float64(1.5))
_HOLD = wp.constant(wp.float64(1.2))
#: Who has no place keeps so far from those of others [m], and goes away at this part of his speed.
_CLEAR, _AWAY = (wp.constant(wp.float64(x)) for x in (0.8, 0.5))
#: Who has done with his stage has been there since ever, until he has chosen the next.
_DONE = wp.constant(wp.float64(-wp.inf))
#: Who waits in a queue slows down this long before his place [s].
_EASE = wp.constant(wp.float64(0.5))


@wp.struct
class FloorArrays:
    """All of a floor that a step reads beside the crowd."""

    cells: FloorCells
    stages: StageTable
    fields: FieldTable
    people: People
    obstacles: ObstacleTable
    groups: GroupTable
    live: wp.array[int]
    line: wp.array[wp.vec4d]
    line_sheet: wp.array[int]
    place: wp.array[wp.vec2d]  # of queues, one after the other
    place_first: wp.array[int]  # by stage, and one more


def step_launch(steer: Any, inputs: list[Any], out: MovedAgents, device: wp.Device) -> PreparedLaunch:
    """The launch of a step; inputs: crowd, map, rings, edges, parameters, floor."""
    chunk = 1 if device.is_cuda else _CHUNK
    indices = -(-len(out.cell) // chunk)
    return PreparedLaunch(_floor_kernel(steer), [*inputs, chunk, out], device, dim=indices, grain=_GRAIN)


def choice_launch(crowd: CrowdArrays, floor: FloorArrays, out: MovedAgents, device: wp.Device) -> PreparedLaunch:
    """The launch after a step that lets who has done with a stage choose the next."""
    chunk = 1 if device.is_cuda else _CHUNK
    indices = -(-len(out.cell) // chunk)
    return PreparedLaunch(_choose_next, [crowd, floor, chunk, out], device, dim=indices, grain=_GRAIN)


def begin_launch(crowd: CrowdArrays, floor: FloorArrays, device: wp.Device) -> PreparedLaunch:
    """The launch that lets people who begin now choose their first stage."""
    return PreparedLaunch(_begin, [crowd, floor], device, dim=len(crowd.position))


def rechoice_launch(
    crowd: CrowdArrays, floor: FloorArrays, device: wp.Device, *, all_choices: bool = False
) -> PreparedLaunch:
    """The launch that lets people who take the quickest way choose again, or also those who take the nearest."""
    return PreparedLaunch(_choose_again, [crowd, floor, int(all_choices)], device, dim=len(crowd.position))


@wp.func
def _straight_to(target: wp.vec2d, x: wp.vec3d) -> wp.vec3d:
    return wp.normalize(wp.vec3d(target[0] - x[0], target[1] - x[1], _ZERO))


@wp.func
def preferred_on_floor(f: FloorArrays, number: int, sheet: int, x: wp.vec3d, speed: wp.float64) -> wp.vec3d:
    """The velocity that somebody on a sheet wants, were it level."""
    s = f.people.stage[number]
    if s < 0:
        return wp.vec3d()
    kind = f.stages.kind[s]
    if kind == START or (kind == WAITING and f.people.since[number] < wp.float64(wp.inf)):
        return wp.vec3d()
    rank = f.people.rank[number]
    if kind == QUEUE and rank >= 0:
        place = f.place[f.place_first[s] + rank]
        to = wp.vec3d(place[0] - x[0], place[1] - x[1], _ZERO)
        return to * wp.min(_ONE / _EASE, speed / wp.max(wp.length(to), wp.float64(1.0e-9)))
    if kind == QUEUE and sheet == f.stages.sheet[s]:
        # Who is so near and has no place waits for one, and out of the way of who has.
        last = f.stages.target[s]
        for k in range(f.place_first[s], f.place_first[s + 1]):
            off = wp.vec3d(x[0] - f.place[k][0], x[1] - f.place[k][1], _ZERO)
            if wp.length_sq(off) < _CLEAR * _CLEAR:
                return wp.normalize(off) * (_AWAY * speed)
        if wp.length_sq(wp.vec3d(last[0] - x[0], last[1] - x[1], _ZERO)) < _HOLD * _HOLD:
            return wp.vec3d()
    if f.stages.straight[s] == 1:
        return speed * _straight_to(f.stages.target[s], x)
    way = way_direction(f.fields, f.stages.field[s, f.people.size[number]], sheet, x)
    if way[0] == _ZERO and way[1] == _ZERO and sheet == f.stages.sheet[s]:
        way = _straight_to(f.stages.target[s], x)
    return speed * way


@wp.func
def _slowed(f: FloorCells, sheet: int, way: wp.vec3d) -> wp.float64:
    """Speed in a direction as a part of that on level ground: stairs are slower, up and down."""
    if f.sheets == 1:
        return _ONE
    slope = f.slope[sheet]
    if slope[0] * way[0] + slope[1] * way[1] > _ZERO:
        return slope[2]
    return slope[3]


@wp.func
def _choose(f: FloorArrays, c: CrowdArrays, at: int, number: int, sheet: int, cell: int, x: wp.vec3d) -> int:
    """What comes after a stage for somebody; for one of a group, what comes for the first of it."""
    first = leader_of(f.groups, c, number)
    if first < 0:
        return chosen_stage(f.stages, f.fields, c.neighbourhoods, at, number, f.people.size[number], sheet, cell, x)
    over = sheet_of(f.cells, c.cell[first])
    size = f.people.size[number]
    return chosen_stage(
        f.stages,
        f.fields,
        c.neighbourhoods,
        at,
        c.number[first],
        size,
        over,
        c.cell[first],
        c.position[first],
    )


@wp.func
def _next_stage(f: FloorArrays, c: CrowdArrays, number: int, sheet: int, cell: int, x: wp.vec3d):
    at = f.people.stage[number]
    f.people.chooser[number] = int(at)
    f.people.stage[number] = _choose(f, c, at, number, sheet, cell, x)
    f.people.since[number] = wp.float64(wp.inf)


@wp.func
def _arrive(f: FloorArrays, number: int, sheet: int, x: wp.vec3d, time: wp.float64) -> bool:
    """Note when somebody has reached his stage, and when he has done with it; whether he leaves."""
    s = f.people.stage[number]
    if s < 0:
        return False
    kind = f.stages.kind[s]
    if kind == START:
        return False
    if kind == QUEUE:
        return False
    since = f.people.since[number]
    if not since < wp.float64(wp.inf):
        if not is_in_stage(f.stages, s, sheet, x):
            return False
        if kind == EXIT:
            f.people.left[number] = time
            return True
        f.people.since[number] = time
        since = time
    if time >= since + f.stages.wait[s] and time >= f.stages.opens[s]:
        f.people.since[number] = _DONE
    return False


@wp.func
def _note_crossings(f: FloorArrays, number: int, sheet: int, p: wp.vec3d, q: wp.vec3d, step: int, dt: wp.float64):
    for k in range(f.line.shape[0]):
        if f.line_sheet[k] == sheet and not wp.abs(f.people.crossed[k, number]) < wp.float64(wp.inf):
            part = crossing(f.line[k], p, q)
            if wp.abs(part) < wp.float64(wp.inf):
                time = (wp.float64(step) + wp.abs(part) - _ONE) * dt
                f.people.crossed[k, number] = wp.where(part > _ZERO, time, -time)


@cache
def _floor_kernel(steer: Any) -> wp.Kernel:
    @wp.kernel(module="unique", module_options=SOUND)
    def floor_step(
        first: int,
        c: CrowdArrays,
        m: MapArrays,
        rings: RingTable,
        e: BodyEdges,
        parameters: wp.array[wp.float64],
        f: FloorArrays,
        chunk: int,
        out: MovedAgents,
    ):
        time = wp.float64(c.clock[0] + 1) * c.dt
        up = wp.vec3d(_ZERO, _ZERO, _ONE)
        begin = (first + wp.tid()) * chunk
        for i in range(begin, wp.min(begin + chunk, f.live[0])):
            x = c.position[i]
            number = c.number[i]
            sheet = sheet_of(f.cells, c.cell[i])
            preferred = preferred_on_floor(f, number, sheet, x, c.speed[number])
            preferred = kept_together(f.groups, c, f.cells, i, preferred)
            preferred = preferred * _slowed(f.cells, sheet, preferred)
            v = steer(c, m, rings, e, parameters, i, preferred, up)
            way = clipped_way(c.neighbourhoods, c.cell[i], x, c.dt * v)
            place = place_after(f.cells, sheet, x, x + way)
            y = wp.vec3d(place[0], place[1], _ZERO)
            over = int(place[3])
            cell = floor_cell(f.cells, over, y)
            if cell < 0:
                y = x
                cell = int(c.cell[i])
                over = sheet
            _note_crossings(f, number, sheet, x, y, c.clock[0], c.dt)
            out.position[i] = y
            out.velocity[i] = (y - x) / c.dt
            out.number[i] = int(number)
            out.cell[i] = cell
            if _arrive(f, number, over, y, time):
                out.cell[i] = -1

    return floor_step


@wp.kernel
def _choose_next(first: int, c: CrowdArrays, f: FloorArrays, chunk: int, out: MovedAgents):
    time = wp.float64(c.clock[0] + 1) * c.dt
    begin = (first + wp.tid()) * chunk
    for i in range(begin, wp.min(begin + chunk, f.live[0])):
        number = out.number[i]
        s = f.people.stage[number]
        if s >= 0 and out.cell[i] >= 0:
            starts = f.stages.kind[s] == START and time >= f.stages.opens[s]
            if starts or f.people.since[number] == _DONE:
                _next_stage(f, c, number, sheet_of(f.cells, out.cell[i]), out.cell[i], out.position[i])


@wp.kernel
def _begin(first: int, c: CrowdArrays, f: FloorArrays):
    i = first + wp.tid()
    if i < f.live[0]:
        number = c.number[i]
        s = f.people.stage[number]
        if s >= 0:
            if f.stages.kind[s] == START and wp.float64(c.clock[0]) * c.dt >= f.stages.opens[s]:
                _next_stage(f, c, number, sheet_of(f.cells, c.cell[i]), c.cell[i], c.position[i])


@wp.kernel
def _choose_again(first: int, c: CrowdArrays, f: FloorArrays, all_choices: int):
    i = first + wp.tid()
    if i < f.live[0]:
        number = c.number[i]
        at = f.people.chooser[number]
        waits = f.people.rank[number] >= 0 or f.people.since[number] < wp.float64(wp.inf)
        if at >= 0 and not waits:
            if f.stages.choice[at] == QUICKEST or (all_choices == 1 and f.stages.choice[at] == NEAREST):
                sheet = sheet_of(f.cells, c.cell[i])
                s = _choose(f, c, at, number, sheet, c.cell[i], c.position[i])
                if s >= 0:
                    f.people.stage[number] = s
