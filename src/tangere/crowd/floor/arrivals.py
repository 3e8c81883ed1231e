"""People who come while a simulation runs, and queues that serve them one by one.

Question: who enters now, and whose turn is it?
Method:   one thread after each step. A source has places in its area; whoever is due takes one that is free, or waits
          outside until there is one, in order. Those of a group take places that lie together, unless they have waited
          for long. A queue has places, its front first: who comes near the last one gets
          the first free one, who has stood at the front for the time of service goes on, and the others move up.
Sound:    nobody enters where somebody stands; the order of people is that of their cells, so that it depends on no
          number of threads.
Known as: inflow with rejection; first come, first served.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from tangere.crowd.agents.arrays import CrowdArrays, MovedAgents
from tangere.crowd.floor.cell_grid import floor_cell, sheet_of
from tangere.crowd.floor.floor_obstacles import is_in_obstacle
from tangere.crowd.floor.floor_step import JOIN, FloorArrays
from tangere.crowd.floor.stages import QUEUE, chosen_stage
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: Places of a source that are tried in a step.
_TRIES = wp.constant(16)
#: Who has waited so long for a place beside his group takes any [s].
_PATIENCE = wp.constant(wp.float64(5.0))
#: Who is so near to his place in a queue has reached it [m].
_REACHED = wp.constant(wp.float64(0.3))
#: Who is so much nearer to a place in a queue than its owner takes it [m].
_NEARER = wp.constant(wp.float64(1.0))


@dataclass(frozen=True)
class Source:
    """Where people come from: their numbers, and when they are due."""

    start: int  #: number of the stage they begin at
    numbers: np.ndarray
    due: np.ndarray  #: rising [s]
    slots: np.ndarray  #: (k, 2) places where they may enter [m]
    each: int  #: so many of these, one after the other, lie together for a group
    sheet: int = 0  #: that these are on


@wp.struct
class SourceTable:
    first: wp.array[int]  # by source, into `due` and `number`, and one more
    next: wp.array[int]  # who is next
    start: wp.array[int]  # stage
    sheet: wp.array[int]
    slot_first: wp.array[int]  # and one more
    slot: wp.array[wp.vec2d]
    each: wp.array[int]  # slots that lie together
    place: wp.array[int]  # the first slot of those that the last group enters at
    due: wp.array[wp.float64]
    number: wp.array[int]
    seed: int


@wp.struct
class QueueTable:
    """By stage: who stands where."""

    stage: wp.array[int]  # by queue
    service: wp.array[wp.float64]  # by queue [s]
    count: wp.array[int]  # by queue: people in it
    member: wp.array[int]  # beside the places of all queues: who has them
    away: wp.array[wp.float64]  # beside `member`: how far he is from it [m]
    served: wp.array[wp.float64]  # by queue: since when the first is served; inf: not yet


def source_table(
    sources: list[Source], done: list[int], places: list[int], seed: int, device: wp.Device
) -> SourceTable:
    """The sources for kernels; done: how many of each have come; places: where the last group of each entered."""
    table = SourceTable()
    first = np.cumsum([0, *(len(s.numbers) for s in sources)])
    whole = {
        "first": first,
        "next": first[:-1] + np.array(done, int),
        "start": [s.start for s in sources],
        "sheet": [s.sheet for s in sources],
        "each": [s.each for s in sources],
        "place": places,
        "slot_first": np.cumsum([0, *(len(s.slots) for s in sources)]),
        "number": np.concatenate([np.empty(0, int), *(s.numbers for s in sources)]),
    }
    for name, values in whole.items():
        setattr(table, name, wp.array(np.array(values, np.int32), dtype=wp.int32, device=device))
    slots = np.concatenate([np.empty((0, 2)), *(s.slots for s in sources)])
    table.slot = wp.array(slots, dtype=wp.vec2d, device=device)
    due = np.concatenate([np.empty(0), *(s.due for s in sources)])
    table.due = wp.array(due, dtype=wp.float64, device=device)
    table.seed = seed
    return table


@wp.func
def _is_free(
    c: CrowdArrays, out: MovedAgents, x: wp.vec3d, cell: int, radius: wp.float64, before: int, now: int
) -> bool:
    """Whether nobody stands within his and this radius of x: of those there before, by cell, and of the new ones."""
    row = c.neighbourhoods.cell[cell].run
    for k in range(row, row + c.neighbourhoods.cell[cell].runs):
        run = c.neighbourhoods.run[k]
        for j in range(c.start[run.first], c.start[run.last + 1]):
            if out.cell[j] >= 0:
                apart = radius + c.radius[out.number[j]]
                if wp.length_sq(out.position[j] - x) < apart * apart:
                    return False
    for j in range(before, now):
        apart = radius + c.radius[out.number[j]]
        if wp.length_sq(out.position[j] - x) < apart * apart:
            return False
    return True


@wp.kernel
def admit(first: int, c: CrowdArrays, f: FloorArrays, s: SourceTable, out: MovedAgents):
    """Let people in who are due, after a step and before the sort."""
    before = f.live[0]
    now = int(before)
    time = wp.float64(c.clock[0] + 1) * c.dt
    for source in range(s.next.shape[0]):
        waiting = bool(True)
        while waiting:
            k = int(s.next[source])
            waiting = False
            if k < s.first[source + 1]:
                if s.due[k] <= time:
                    number = s.number[k]
                    state = wp.rand_init(s.seed, number * 7919 + c.clock[0])
                    each = s.each[source]
                    slots = s.slot_first[source + 1] - s.slot_first[source]
                    # Who comes after somebody of his group enters where that one did.
                    beside = int(-1)
                    if c.group[number] >= 0 and k > s.first[source]:
                        if c.group[s.number[k - 1]] == c.group[number]:
                            beside = s.number[k - 1]
                    begin = int(s.place[source])
                    if beside < 0:
                        begin = wp.min(int(wp.randf(state) * wp.float32(slots / each)), slots / each - 1) * each
                    elif time > s.due[k] + _PATIENCE:
                        begin = 0
                        each = slots
                    for _attempt in range(_TRIES):
                        pick = begin + wp.min(int(wp.randf(state) * wp.float32(each)), each - 1)
                        place = s.slot[s.slot_first[source] + pick]
                        x = wp.vec3d(place[0], place[1], wp.float64(0.0))
                        cell = floor_cell(f.cells, s.sheet[source], x)
                        if not waiting and cell >= 0:
                            shut = is_in_obstacle(f.obstacles, s.sheet[source], x, c.radius[number])
                            if not shut and _is_free(c, out, x, cell, c.radius[number], before, now):
                                out.position[now] = x
                                out.velocity[now] = wp.vec3d()
                                out.number[now] = int(number)
                                out.cell[now] = cell
                                now += 1
                                waiting = True
                    if waiting:
                        x = out.position[now - 1]
                        f.people.entered[number] = time
                        f.people.chooser[number] = int(s.start[source])
                        if beside < 0:
                            s.place[source] = begin
                        f.people.stage[number] = chosen_stage(
                            f.stages,
                            f.fields,
                            c.neighbourhoods,
                            s.start[source],
                            number,
                            f.people.size[number],
                            s.sheet[source],
                            out.cell[now - 1],
                            x,
                        )
                        if beside >= 0:
                            if f.people.chooser[beside] == s.start[source]:  # he has chosen for both
                                f.people.stage[number] = int(f.people.stage[beside])
                        s.next[source] = k + 1
    f.live[0] = now


@wp.func
def _distance(place: wp.vec2d, x: wp.vec3d) -> wp.float64:
    dx = place[0] - x[0]
    dy = place[1] - x[1]
    return wp.sqrt(dx * dx + dy * dy)


@wp.func
def _take_place(f: FloorArrays, q: QueueTable, k: int, base: int, number: int, x: wp.vec3d):
    """Let somebody take the place of a queue whose owner is much farther from it, and does not get there."""
    taken = int(-1)
    for place in range(q.count[k]):
        if taken < 0 and _distance(f.place[base + place], x) + _NEARER < q.away[base + place]:
            taken = place
    if taken >= 0:
        f.people.rank[q.member[base + taken]] = -1
        f.people.rank[number] = taken
        q.member[base + taken] = number
        q.away[base + taken] = wp.float64(0.0)


@wp.kernel
def serve(first: int, c: CrowdArrays, f: FloorArrays, q: QueueTable, out: MovedAgents):
    """Let people join queues, move up, and go on when they have been served."""
    time = wp.float64(c.clock[0] + 1) * c.dt
    for i in range(f.live[0]):
        number = out.number[i]
        stage = f.people.stage[number]
        if stage >= 0 and out.cell[i] >= 0:
            if f.stages.kind[stage] == QUEUE:
                for k in range(q.stage.shape[0]):
                    if q.stage[k] == stage:
                        base = f.place_first[stage]
                        places = f.place_first[stage + 1] - base
                        here = sheet_of(f.cells, out.cell[i]) == f.stages.sheet[stage]
                        if f.people.rank[number] < 0 and here and q.count[k] < places:
                            free = _distance(f.place[base + q.count[k]], out.position[i])
                            if wp.min(free, _distance(f.place[base + places - 1], out.position[i])) < JOIN:
                                q.member[base + q.count[k]] = number
                                f.people.rank[number] = int(q.count[k])
                                q.count[k] = q.count[k] + 1
                        elif f.people.rank[number] < 0 and here:
                            _take_place(f, q, k, base, number, out.position[i])
                        if f.people.rank[number] >= 0:
                            at = base + f.people.rank[number]
                            q.away[at] = _distance(f.place[at], out.position[i])
                        if f.people.rank[number] == 0:
                            if not q.served[k] < wp.float64(wp.inf):
                                if _distance(f.place[base], out.position[i]) < _REACHED:
                                    q.served[k] = time
                            elif time >= q.served[k] + q.service[k]:
                                f.people.rank[number] = -1
                                f.people.chooser[number] = int(stage)
                                sheet = sheet_of(f.cells, out.cell[i])
                                f.people.stage[number] = chosen_stage(
                                    f.stages,
                                    f.fields,
                                    c.neighbourhoods,
                                    stage,
                                    number,
                                    f.people.size[number],
                                    sheet,
                                    out.cell[i],
                                    out.position[i],
                                )
                                q.count[k] = q.count[k] - 1
                                q.served[k] = wp.float64(wp.inf)
                                for place in range(q.count[k]):
                                    other = int(q.member[base + place + 1])
                                    q.member[base + place] = other
                                    f.people.rank[other] = place
