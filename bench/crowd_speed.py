"""Speed of people on floor plans against JuPedSim: the same bottleneck, model and step of 0.01 s, on one thread.

A room with 2.4 people per square metre empties through a door of 1.2 m, half a metre deep. Both run the collision-free
speed model, JuPedSim by `iterate(n)` without polling. Agent-steps count the people who are there. JuPedSim
(`pip install jupedsim`) looks 3 m far; ours derives how far neighbours matter from radii, speeds and the time gap, and
is measured at 3 m as well: there it leaves out, in single precision, who pushes by less than 2^-25 of the drive (from
2.34 m on). What both do with the same people is compared by `crowd_evacuation`.
"""

from __future__ import annotations

import time
from functools import partial
from importlib import import_module

import numpy as np
import shapely

from bench.crowd_evacuation import bottleneck, ours, theirs
from bench.harness import Report, SkippedError, count, measure, seconds
from tangere.crowd import FloorPlan, FloorSimulation
from tangere.crowd.floor.ways.travel_fields import WalkableNodes, marched, raster_for
from tangere.runtime import using_threads


def run(report: Report, quick: bool = False) -> None:
    try:
        import_module("jupedsim")
    except ImportError as error:
        raise SkippedError("jupedsim is not installed") from error
    report.packages += ["jupedsim", "shapely"]
    with using_threads(1):
        _speed(report, quick)
        _fields(report, quick)


def _go(simulation: FloorSimulation, steps: int, done: list[int]) -> None:
    """Make steps, and note how many of people."""
    before = simulation.count
    simulation.run(steps=steps, record=None)
    done.append((before + simulation.count) * steps // 2)


def _iterate(peer, steps: int, done: list[int]) -> None:
    before = peer.agent_count()
    peer.iterate(steps)
    done.append((before + peer.agent_count()) * steps // 2)


def _speed(report: Report, quick: bool) -> None:
    rows = []
    for people, steps in ((100, 20),) if quick else ((100, 200), (1_000, 100), (5_000, 30)):
        case = bottleneck(people)
        near, far, peer = ours(case), ours(case, cutoff=3.0), theirs(case)
        there: dict[str, list[int]] = {"ours": [], "3 m": [], "peer": []}
        timings = measure(
            {
                "ours": partial(_go, near, steps, there["ours"]),
                "3 m": partial(_go, far, steps, there["3 m"]),
                "peer": partial(_iterate, peer, steps, there["peer"]),
            },
            rounds=3 if quick else 7,
            clock=time.process_time,
        )
        rates = {
            name: float(np.median(np.array(there[name][-len(timing.rounds) :]) / timing.rounds))
            for name, timing in timings.items()
        }
        ratios = [f"{rates[name] / rates['peer']:.1f}" for name in ("ours", "3 m")]
        rows.append([count(people), *(count(rates[name]) for name in ("ours", "3 m", "peer")), *ratios])
    columns = ["people", "ours [agent-steps/s]", "ours at 3 m", "JuPedSim", "ours / JuPedSim", "at 3 m"]
    report.table(columns, rows)
    report.note("Process time of one thread, in turns. Asked for: 5 times at 100 people, 10 times at 1,000 and 5,000.")


def _fields(report: Report, quick: bool) -> None:
    """Ways to ten goals in a building of a hundred rooms."""
    size, radius = (30.0 if quick else 100.0), 0.25
    plan = FloorPlan(offices(size))
    random = np.random.default_rng(1)
    inner, goals = plan.polygon.buffer(-0.6), []
    while len(goals) < 10:
        point = shapely.Point(random.uniform(0, size, 2))
        if inner.contains(point):
            goals.append(point.buffer(0.5))
    begin = time.process_time()
    terrain = WalkableNodes(plan, raster_for(plan, radius), radius)
    ground = time.process_time() - begin
    timing = measure(
        {"fields": lambda: marched([(terrain, goal, 0) for goal in goals])}, rounds=3, clock=time.process_time
    )
    nodes = terrain.raster.columns * terrain.raster.rows
    told = [f"{size:g} x {size:g} m", count(len(plan.walls)), count(nodes), seconds(ground), str(timing["fields"])]
    report.table(["plan", "walls", "nodes", "nodes and walls", "ten fields"], [told])
    report.note("Process time of one thread. Asked for: ten fields on 100 x 100 m in half a second.")


def offices(size: float, room: float = 10.0, wall: float = 0.2, door: float = 1.0, seed: int = 0) -> shapely.Polygon:
    """Rooms of 10 m with doors in most walls; the largest part of it."""
    random, boxes = np.random.default_rng(seed), []
    for i in range(1, int(size / room)):
        for j in range(int(size / room)):
            for turned in (False, True):
                middle, low = random.uniform(0.7, room - 0.7 - door), j * room
                pieces = [(0.0, middle), (middle + door, room)] if random.random() < 0.85 else [(0.0, room)]
                for a, b in pieces:
                    across = (i * room - wall / 2, low + a, i * room + wall / 2, low + b)
                    boxes.append(shapely.box(*(across if not turned else (across[1], across[0], across[3], across[2]))))
    plan = shapely.box(0, 0, size, size).difference(shapely.union_all(boxes))
    return max(shapely.get_parts(plan), key=lambda part: part.area)
