"""People on a thousand random floor plans, every way of every step checked: nobody through a wall, lost, or stuck.

Plans have thin walls at any angle with doors of 0.7 to 1.2 m, spikes and slivers down to a micrometre; people are of
radii of 0.15 to 0.45 m, so that some doors are too narrow for them. Every way is tested against every wall in floating
point with a bound on its error, and what that cannot tell in rational arithmetic. Who has no way is told first and
compared with the plan shrunk by the radius. Who has a way and is still there at the end goes on alone: who does not get
out even then is stuck. A run is made plan by plan and written to a file: who is interrupted goes on from there.
`TANGERE_CROWD_SOAK` names the file; without it, `tangere-crowd-soak.csv` in the folder for temporary files.
"""

from __future__ import annotations

import csv
import os
import tempfile
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np
import shapely
import warp as wp

from bench.harness import Report, count
from oracles.floor_plans import random_plan, segments_meet
from tangere.crowd import CollisionFreeSpeed, FloorPlan, FloorSimulation, Simulation
from tangere.runtime import InputError, PreparedLaunch

__all__ = ["PlanSoak", "WayCheck", "soak"]

#: Plans of a whole run, agent-steps and people on each; a crowd that is not out after so long is looked at [s].
PLANS, STEPS, PEOPLE, SECONDS = 1000, 1_000_000, 150, 240.0
#: Bound on the relative error of an orientation in double precision (Shewchuk 1997, with room).
_ERROR = wp.constant(wp.float64(4.0e-16))
_ZERO = wp.constant(wp.float64(0.0))


@dataclass(frozen=True)
class PlanSoak:
    """What became of the crowds on a plan."""

    number: int
    agent_steps: int
    people: int
    left: int
    exact: int  #: ways and walls that needed rational arithmetic
    crossings: int
    lost: int  #: neither there nor gone, or not on the floor
    told: int  #: people who have no way, as told before the run
    mistold: int  #: as told, but not by the plan shrunk by the radius, or the other way
    kept: int  #: still there after a crowd's time, though they have a way
    stuck: int  #: of these, who did not get out alone


@wp.func
def _side(a: wp.vec2d, b: wp.vec2d, c: wp.vec2d) -> int:
    """Of which side of ab the point c is: -1 or 1, 0 if it is not sure."""
    left = (b[0] - a[0]) * (c[1] - a[1])
    right = (b[1] - a[1]) * (c[0] - a[0])
    turn = left - right
    bound = _ERROR * (wp.abs(left) + wp.abs(right))
    if turn > bound:
        return 1
    if turn < -bound:
        return -1
    return 0


@wp.kernel
def _check_ways(
    first: int,
    count: wp.array[int],
    number: wp.array[int],
    position: wp.array[wp.vec3d],
    wall: wp.array[wp.vec4d],
    before: wp.array[wp.vec2d],
    found: wp.array[int],
    start: wp.array[wp.vec2d],
    end: wp.array[wp.vec2d],
    met: wp.array[int],
):
    for i in range(count[0]):
        n = number[i]
        p = before[n]
        q = wp.vec2d(position[i][0], position[i][1])
        if p[0] != q[0] or p[1] != q[1]:
            for k in range(wall.shape[0]):
                w = wall[k]
                if (
                    wp.min(w[0], w[2]) <= wp.max(p[0], q[0])
                    and wp.max(w[0], w[2]) >= wp.min(p[0], q[0])
                    and wp.min(w[1], w[3]) <= wp.max(p[1], q[1])
                    and wp.max(w[1], w[3]) >= wp.min(p[1], q[1])
                ):
                    a = wp.vec2d(w[0], w[1])
                    b = wp.vec2d(w[2], w[3])
                    by_wall = _side(a, b, p) * _side(a, b, q)
                    by_way = _side(p, q, a) * _side(p, q, b)
                    if by_wall <= 0 and by_way <= 0:
                        at = found[0]
                        if at < met.shape[0]:
                            start[at] = p
                            end[at] = q
                            met[at] = k
                        found[0] = at + 1
        before[n] = q


class WayCheck:
    """Checks the ways of each step of a simulation against all walls of its plan; made before the first step."""

    def __init__(self, simulation: FloorSimulation, most: int = 1 << 16) -> None:
        simulation.prepare()
        self._simulation, people = simulation, simulation.people
        number, position, _ = people.now()
        before = np.full((max(len(people), 1), 2), np.nan)
        before[number] = position
        self._walls = simulation.plan.walls
        self._found = wp.zeros(1, dtype=wp.int32, device="cpu")
        self._start, self._end = (wp.zeros(most, dtype=wp.vec2d, device="cpu") for _ in range(2))
        self._met = wp.zeros(most, dtype=wp.int32, device="cpu")
        self._live = wp.zeros(1, dtype=wp.int32, device="cpu")
        walls = wp.array(self._walls.reshape(-1, 4), dtype=wp.vec4d, device="cpu")
        arguments = [self._live, people.moved.number, people.moved.position, walls]
        arguments += [wp.array(before, dtype=wp.vec2d, device="cpu"), self._found, self._start, self._end, self._met]
        self._launch = PreparedLaunch(_check_ways, arguments, wp.get_device("cpu"), dim=1, grain=1)
        self.exact, self.crossings, self.agent_steps = 0, 0, 0

    def step(self) -> None:
        """A step of the simulation, and a look at every way of it."""
        live = self._simulation.people.live.numpy()
        self._live.numpy()[0] = live[0]
        self.agent_steps += int(live[0])
        self._simulation.step()
        self._launch.run()
        if self._found.numpy()[0] > len(self._met) // 2:
            self.look()

    def look(self) -> None:
        """Decide what is not sure in rational arithmetic."""
        found = int(self._found.numpy()[0])
        if found > len(self._met):
            raise RuntimeError(f"{found} ways of one step are not sure")
        start, end = self._start.numpy(), self._end.numpy()
        for k in range(found):
            self.crossings += segments_meet(start[k], end[k], *self._walls[self._met.numpy()[k]])
        self.exact += found
        self._found.zero_()


def soak(number: int, steps: int = STEPS, people: int = PEOPLE) -> PlanSoak:
    """Crowds on one plan, one after the other, until so many agent-steps are done."""
    random = np.random.default_rng([26, number])
    plan, radius = FloorPlan(random_plan(random, float(random.choice([14.0, 20.0])))), float(random.uniform(0.15, 0.45))
    dt = float(random.choice([0.01, 0.02, 0.05]))
    room = shapely.buffer(plan.polygon, -radius * 1.001)
    x, y = shapely.get_coordinates(shapely.point_on_surface(max(shapely.get_parts(room), key=shapely.area)))[0]
    done = dict.fromkeys([field.name for field in fields(PlanSoak)], 0) | {"number": number}
    while done["agent_steps"] < steps:
        count = people
        while True:
            simulation = Simulation(
                plan, behaviour=CollisionFreeSpeed(restlessness=2.0), dt=dt, no_way="stay", device="cpu"
            )
            way_out = simulation.add_exit(shapely.box(x - 0.5, y - 0.5, x + 0.5, y + 0.5))
            try:
                simulation.add_people(count, to=way_out, radius=radius, seed=int(random.integers(2**31)))
                break
            except InputError:  # so many do not fit
                count //= 2
        _run_crowd(simulation, way_out.area, radius, done, steps)
    return PlanSoak(**done)


def _run_crowd(simulation: FloorSimulation, goal: shapely.Polygon, radius: float, done: dict, steps: int) -> None:
    plan, total = simulation.plan, len(simulation.people)
    check = WayCheck(simulation)
    told = np.zeros(total, bool)
    told[simulation.no_way_numbers] = True
    done["told"] += int(told.sum())
    done["mistold"] += _mistold(plan, simulation.positions, goal, radius, told)
    begin, most = done["agent_steps"], round(SECONDS / simulation.dt)
    while simulation.steps < most and simulation.count > told.sum() and begin + check.agent_steps < steps:
        for _ in range(50):
            check.step()
    check.look()
    gone = np.isfinite(simulation.people.trait("left"))
    there = np.zeros(total, bool)
    there[simulation.numbers] = True
    off = int((~plan.contains(simulation.positions)).sum()) if simulation.count else 0
    done["lost"] += int((gone == there).sum()) + off
    if simulation.steps >= most:
        kept = np.flatnonzero(there & ~told)
        done["kept"] += len(kept)
        place = dict(zip(simulation.numbers.tolist(), simulation.positions, strict=True))
        done["stuck"] += sum(not _gets_out(simulation, goal, radius, place[k]) for k in kept.tolist())
    for name, value in (("agent_steps", check.agent_steps), ("people", total), ("left", int(gone.sum()))):
        done[name] += value
    done["exact"] += check.exact
    done["crossings"] += check.crossings


def _mistold(plan: FloorPlan, places: np.ndarray, goal: shapely.Polygon, radius: float, told: np.ndarray) -> int:
    """How many are told otherwise than by the parts of the plan shrunk by a little more and by a little less."""
    wrong = np.zeros(len(places), bool)
    for part, blocked in ((1.0 - 1.0e-6, False), (1.0 + 1.0e-6, True)):
        rooms = shapely.get_parts(shapely.buffer(plan.polygon, -radius * part, quad_segs=128))
        has_way = np.zeros(len(places), bool)
        for room in rooms[shapely.intersects(rooms, goal)]:
            has_way |= shapely.dwithin(room, shapely.points(places), 1.0e-5 * radius)
        wrong |= (told & has_way) if blocked else (~told & ~has_way)
    return int(wrong.sum())


def _gets_out(simulation: FloorSimulation, goal: shapely.Polygon, radius: float, place: np.ndarray) -> bool:
    alone = Simulation(simulation.plan, behaviour=simulation.behaviour, dt=simulation.dt, no_way="stay", device="cpu")
    alone.add_people(place[None], to=alone.add_exit(goal), radius=radius, speed=1.0)
    return bool(np.isfinite(alone.run(240.0, until="empty", record=None).left).all())


def run(report: Report, quick: bool = False) -> None:
    report.packages += ["shapely"]
    file = Path(os.environ.get("TANGERE_CROWD_SOAK", Path(tempfile.gettempdir()) / "tangere-crowd-soak.csv"))
    done = [] if quick else read(file)
    known = {soaked.number for soaked in done}
    for number in range(2 if quick else PLANS):
        if number not in known:
            done.append(soak(number, 20_000 if quick else STEPS))
            if not quick:
                append(file, done[-1])
    told = [field.name for field in fields(PlanSoak)[1:]]
    totals = {name: sum(getattr(soaked, name) for soaked in done) for name in told}
    rows = [[name.replace("_", "-"), count(value)] for name, value in totals.items()]
    report.table(["of all plans", "number"], [["plans", count(len(done))], *rows])
    asked = "10^9 agent-steps on 1,000 plans, no crossings, nobody lost or stuck, who has no way told"
    report.note(f"Asked for: {asked}. Done: {totals['agent_steps']:.3g} agent-steps on {len(done)} plans.")


def read(file: Path) -> list[PlanSoak]:
    """The plans that are done."""
    if not file.is_file():
        return []
    with file.open(newline="", encoding="utf-8") as lines:
        return [PlanSoak(*map(int, row)) for row in list(csv.reader(lines))[1:]]


def append(file: Path, soaked: PlanSoak) -> None:
    """One more plan."""
    new = not file.is_file()
    with file.open("a", newline="", encoding="utf-8") as lines:
        writer = csv.writer(lines)
        if new:
            writer.writerow([field.name for field in fields(PlanSoak)])
        writer.writerow(astuple(soaked))
