"""Where people go next: exits, waypoints, waiting places and queues, and how one of several is chosen.

Question: what is the next aim of somebody who has reached this one?
Method:   every stage has a list of stages that may follow it, and a way to choose: the nearest by the length of the
          way, the quickest by its time among the crowd, or shares by chance. People who are added begin at a stage that
          they leave at once. All of it is in tables that the kernel of a step reads.
Sound:    chance is a function of the seed, of the number of a person and of the stage: the same for any threads.
Known as: stages and journeys (JuPedSim); exit choice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import warp as wp

from tangere.crowd.agents.neighbour_ranges import Neighbourhoods
from tangere.crowd.floor.placement import floats
from tangere.crowd.floor.plans.sheets import segments_of
from tangere.crowd.floor.ways.travel_fields import NO_WAY, FieldTable, way_length
from tangere.runtime import SOUND, InputError

wp.set_module_options(SOUND)

#: Kinds of stages.
START, EXIT, WAYPOINT, WAITING, QUEUE = (wp.constant(k) for k in range(5))
#: Ways to choose.
NEAREST, QUICKEST, SHARES = (wp.constant(k) for k in range(3))
CHOICES = ("nearest", "quickest", "shares")
#: The stage of who has no way.
NOWHERE = -1
_NOWHERE = wp.constant(NOWHERE)
_NO_WAY = wp.constant(wp.float32(NO_WAY))


@dataclass(eq=False)
class Stage:
    """A place that people go to: made by the `add_…` of a simulation, given to others as `to`."""

    number: int  #: of the stages of the simulation
    kind: int
    area: Any  #: a polygon of shapely; None: a start
    name: str = ""
    sheet: int = 0  #: storey or stairs that it is on
    straight: bool = False  #: go straight at it, by no field
    wait: float = 0.0  #: how long people stay there [s]
    opens: float = 0.0  #: nobody goes on before [s]
    places: np.ndarray = field(default_factory=lambda: np.empty((0, 2)))  #: (k, 2) of a queue, its front first [m]
    service: float = 0.0  #: of a queue: seconds for each person
    following: list[Stage] = field(default_factory=list)
    choice: int = 0
    shares: np.ndarray = field(default_factory=lambda: np.empty(0))

    def __repr__(self) -> str:
        return f"Stage({self.name})"

    def follow(self, to: Any, choose: str = "nearest", shares: Any = None) -> None:
        """Say where people go from here."""
        stages = list(to) if isinstance(to, (list, tuple)) else [to]
        if not stages or not all(isinstance(s, Stage) and s.kind != int(START) for s in stages):
            raise InputError("to must be what add_exit, add_waypoint, add_waiting_place or add_queue returned, or some")
        if choose not in CHOICES:
            raise InputError(f"choose is 'nearest', 'quickest' or 'shares', not {choose!r}")
        if (shares is not None) != (choose == "shares"):
            raise InputError("shares go with choose='shares', and it with them")
        if shares is not None:
            parts = floats(shares, "shares")
            if parts.shape != (len(stages),) or not np.isfinite(parts).all() or (parts < 0).any() or parts.sum() <= 0:
                raise InputError(f"shares must be {len(stages)} numbers, 0 or more and not all 0, not {shares}")
            self.shares = np.cumsum(parts / parts.sum())
        self.following, self.choice = stages, CHOICES.index(choose)


@wp.struct
class StageTable:
    """By stage."""

    kind: wp.array[int]
    straight: wp.array[int]
    sheet: wp.array[int]
    low: wp.array[wp.vec2d]
    high: wp.array[wp.vec2d]
    side_first: wp.array[int]  # and one more
    side: wp.array[wp.vec4d]  # of the areas
    target: wp.array[wp.vec2d]
    wait: wp.array[wp.float64]
    opens: wp.array[wp.float64]
    choice: wp.array[int]
    next_first: wp.array[int]  # and one more
    next: wp.array[int]
    share: wp.array[wp.float32]  # beside `next`, added up
    field: wp.array2d[int]  # by stage and class of radius; -1: none
    seed: int


@wp.struct
class People:
    """By number of a person."""

    stage: wp.array[int]
    chooser: wp.array[int]  # the stage that the present one was chosen at
    size: wp.array[int]  # class of the radius
    since: wp.array[wp.float64]  # when the present stage was reached [s]; inf: not yet
    entered: wp.array[wp.float64]  # [s]; inf: not yet
    left: wp.array[wp.float64]  # [s]; inf: not yet
    rank: wp.array[int]  # place in the queue; -1: not in it
    crossed: wp.array2d[wp.float64]  # by line: when it was first crossed [s], negative: from right to left; inf: never


def stage_table(stages: list[Stage], fields: np.ndarray, seed: int, device: wp.Device) -> StageTable:
    """The stages for kernels; fields: (stages, classes) numbers of fields."""
    table, sides = StageTable(), [_sides(s.area) for s in stages]
    boxes = [(0.0, 0.0, 0.0, 0.0) if s.area is None else s.area.bounds for s in stages]
    targets = [(0.0, 0.0) if s.area is None else _target(s) for s in stages]
    shares = [s.shares if len(s.shares) else np.ones(len(s.following)) for s in stages]
    whole = {
        "kind": [s.kind for s in stages],
        "straight": [int(s.straight) for s in stages],
        "sheet": [s.sheet for s in stages],
        "choice": [s.choice for s in stages],
        "side_first": np.cumsum([0, *map(len, sides)]),
        "next_first": np.cumsum([0, *(len(s.following) for s in stages)]),
        "next": [other.number for s in stages for other in s.following],
    }
    for name, values in whole.items():
        setattr(table, name, wp.array(np.array(values, np.int32), dtype=wp.int32, device=device))
    table.low = wp.array(np.array(boxes)[:, :2], dtype=wp.vec2d, device=device)
    table.high = wp.array(np.array(boxes)[:, 2:], dtype=wp.vec2d, device=device)
    table.side = wp.array(np.concatenate([np.empty((0, 4)), *sides]), dtype=wp.vec4d, device=device)
    table.target = wp.array(np.array(targets), dtype=wp.vec2d, device=device)
    table.wait = wp.array([s.wait for s in stages], dtype=wp.float64, device=device)
    table.opens = wp.array([s.opens for s in stages], dtype=wp.float64, device=device)
    table.share = wp.array(np.concatenate([np.empty(0), *shares]).astype(np.float32), dtype=wp.float32, device=device)
    table.field = wp.array(fields.astype(np.int32), dtype=wp.int32, device=device)
    table.seed = seed
    return table


def _sides(area: Any) -> np.ndarray:
    """(n, 4) the sides of a polygon."""
    return np.empty((0, 4)) if area is None else segments_of(area).reshape(-1, 4)


def _target(stage: Stage) -> tuple[float, float]:
    """A point in the area: its middle where that is in it."""
    if stage.kind == int(QUEUE):
        return tuple(stage.places[-1])
    middle = stage.area.centroid
    point = middle if stage.area.contains(middle) else stage.area.representative_point()
    return point.x, point.y


@wp.func
def is_in_stage(t: StageTable, s: int, sheet: int, x: wp.vec3d) -> bool:
    """Whether a place on a sheet is in the area of a stage, by the even-odd rule."""
    if sheet != t.sheet[s]:
        return False
    if x[0] < t.low[s][0] or x[1] < t.low[s][1] or x[0] > t.high[s][0] or x[1] > t.high[s][1]:
        return False
    odd = int(0)
    for k in range(t.side_first[s], t.side_first[s + 1]):
        w = t.side[k]
        if (w[1] > x[1]) != (w[3] > x[1]):
            if x[0] < w[0] + (x[1] - w[1]) / (w[3] - w[1]) * (w[2] - w[0]):
                odd = 1 - odd
    return odd == 1


@wp.func
def chosen_stage(
    t: StageTable,
    f: FieldTable,
    seen: Neighbourhoods,
    at: int,
    number: int,
    size: int,
    sheet: int,
    cell: int,
    x: wp.vec3d,
) -> int:
    """What comes after a stage for somebody at x in a cell of a sheet; nowhere if there is no way to any."""
    first = t.next_first[at]
    last = t.next_first[at + 1]
    found = int(_NOWHERE)
    if t.choice[at] == SHARES:
        state = wp.rand_init(t.seed, number * t.kind.shape[0] + at)
        chance = wp.randf(state)
        for k in range(first, last):
            if found < 0 and (chance < t.share[k] or k == last - 1):
                found = t.next[k]
        return found
    best = _NO_WAY
    for k in range(first, last):
        s = t.next[k]
        length = wp.float32(wp.inf)
        if t.straight[s] == 1:
            dx = x[0] - t.target[s][0]
            dy = x[1] - t.target[s][1]
            length = wp.float32(wp.sqrt(dx * dx + dy * dy))
        elif t.choice[at] == QUICKEST:
            length = way_length(f, f.time, seen, cell, t.field[s, size], sheet, x)
        else:
            length = way_length(f, f.length, seen, cell, t.field[s, size], sheet, x)
        if length < best:
            best = length
            found = s
    return found
