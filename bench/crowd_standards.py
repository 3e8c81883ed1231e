"""Tests of RiMEA and IMO for pedestrians, ours and JuPedSim's collision-free speed model on the same plans.

Ours as a simulation takes it unless told (`restlessness=2`), and as published. JuPedSim (`pip install jupedsim`) is
given the same people, radii and exits; it has no stairs and no groups, and where a test needs what our scenarios ask of
the engine (starts by the clock, counts at lines) it is left out. None of the criteria was read at its source.
"""

from __future__ import annotations

import math
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
import shapely

from bench.harness import Report
from tangere.crowd import CollisionFreeSpeed, FloorSimulation
from tangere.crowd.floor import FloorPlan
from tangere.crowd.scenarios import standards


def run(report: Report, quick: bool = False) -> None:
    report.packages += ["shapely"]
    peer: dict[str, Any] = {}
    try:
        import_module("jupedsim")
        report.packages += ["jupedsim"]
        peer = PEERS
    except ImportError:
        report.note("JuPedSim is not installed.")
    rows = []
    for name, test in standards.TESTS.items():
        if quick and name not in ("rimea_1", "imo_4"):
            continue
        ours, published = test(None), test(CollisionFreeSpeed())
        other = peer[name]() if name in peer else "not run"
        rows.append([ours.test, ours.asked, _told(ours), _told(published), other])
    report.table(["test", "asked", "ours", "ours as published", "JuPedSim"], rows)
    report.note("RiMEA 8 and 14 have no criterion. Not run in JuPedSim: see above.")


def _told(verdict: standards.Verdict) -> str:
    return f"{ {True: 'passes', False: 'does not pass', None: 'no criterion'}[verdict.passed] }: {verdict.found}"


def _peer(plan: FloorPlan, dt: float, exits: list[Any], people: list[tuple[np.ndarray, float, float, list[int]]]):
    """A simulation of JuPedSim; people: places, radius, speed, and numbers of exits of which they take the nearest."""
    jupedsim = import_module("jupedsim")
    peer = jupedsim.Simulation(model=jupedsim.CollisionFreeSpeedModel(), geometry=plan.polygon, dt=dt)
    stages = [peer.add_exit_stage(area) for area in exits]
    journeys = [peer.add_journey(jupedsim.JourneyDescription([stage])) for stage in stages]
    for places, radius, speed, aims in people:
        for place in places.tolist():
            k = min(aims, key=lambda aim: shapely.distance(exits[aim], shapely.Point(place)))
            peer.add_agent(
                jupedsim.CollisionFreeSpeedModelAgentParameters(
                    position=tuple(place),
                    journey_id=journeys[k],
                    stage_id=stages[k],
                    radius=radius,
                    desired_speed=speed,
                )
            )
    return peer


def _time(peer: Any, most: float) -> float:
    try:
        while peer.agent_count() and peer.elapsed_time() < most:
            peer.iterate(5)
    except RuntimeError:
        return math.nan
    return peer.elapsed_time() if peer.agent_count() == 0 else math.inf


def _places(plan: FloorPlan, count: int, area: Any, radius: float, seed: int) -> np.ndarray:
    """Where ours begin."""
    simulation = FloorSimulation(plan)
    simulation.add_people(count, area, to=simulation.add_exit(plan.polygon), radius=radius, speed=1.34, seed=seed)
    return simulation.positions


def rimea_1() -> str:
    plan = FloorPlan(shapely.box(0, 0, 42, 2))
    took = _time(_peer(plan, 0.02, [shapely.box(41, 0, 42, 2)], [(np.array([[1.0, 1.0]]), 0.2, 1.33, [0])]), 60)
    return f"{'passes' if 26 <= took <= 34 else 'does not pass'}: {took:.1f} s"


def rimea_9() -> str:
    times, stayed = [], []
    for exits in (4, 2):
        simulation, outs = standards._large_room(exits, None)
        assert isinstance(simulation.plan, FloorPlan)
        places = _places(simulation.plan, 1000, shapely.box(0.5, 0.5, 29.5, 19.5), 0.2, 1)
        areas = [out.area for out in outs]
        peer = _peer(simulation.plan, 0.05, areas, [(places, 0.2, 1.34, list(range(exits)))])
        times.append(_time(peer, 400))
        stayed.append(peer.agent_count())
    if not all(map(math.isfinite, times)):
        return f"does not pass: {stayed[0]} and {stayed[1]} people stay for good"
    return f"{'passes' if 1.5 < times[1] / times[0] < 2.5 else 'does not pass'}: {times[0]:.0f} and {times[1]:.0f} s"


def imo_4() -> str:
    plan = FloorPlan(shapely.union(shapely.box(0, 0, 8, 5), shapely.box(7.99, 2, 10, 3)))
    places = _places(plan, 100, shapely.box(0, 0, 8, 5), 0.2, 1)
    peer = _peer(plan, 0.02, [shapely.box(9, 2, 10, 3)], [(places, 0.2, 1.34, [0])])
    left: list[float] = []
    while peer.agent_count() and peer.elapsed_time() < 300:
        before = peer.agent_count()
        peer.iterate(1)
        left += [peer.elapsed_time()] * (before - peer.agent_count())
    flow = (len(left) - 1) / (left[-1] - left[0])
    return f"{'passes' if len(left) == 100 and flow <= 1.33 else 'does not pass'}: {flow:.2f} /s"


def imo_8() -> str:
    boxes = shapely.box(0, 0, 10, 10), shapely.box(9.99, 4, 20.01, 6), shapely.box(20, 0, 30, 10)
    plan, times = FloorPlan(shapely.union_all(boxes)), []
    for people in (0, 10, 50, 100):
        crowd = [(_places(plan, 100, shapely.box(2.5, 0, 9, 10), 0.15, 1), 0.15, 1.34, [0])]
        if people:
            crowd.append((_places(plan, people, shapely.box(21, 0, 27.5, 10), 0.15, 2), 0.15, 1.34, [1]))
        times.append(_time(_peer(plan, 0.05, [shapely.box(28, 0, 30, 10), shapely.box(0, 0, 2, 10)], crowd), 900))
    told = ", ".join("for ever" if math.isinf(t) else f"{t:.0f}" for t in times)
    rising = all(a < b < 900 for a, b in pairwise(times))
    return f"{'passes' if rising else 'does not pass'}: {told} s"


PEERS = {"rimea_1": rimea_1, "rimea_9": rimea_9, "imo_4": imo_4, "imo_8": imo_8}
