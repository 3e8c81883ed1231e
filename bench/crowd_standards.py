"""Tests of RiMEA and IMO for pedestrians, ours and JuPedSim's collision-free speed model on the same plans.

Ours as a simulation takes it unless told (`restlessness=2`), and as published. JuPedSim (`pip install jupedsim`) is
given the same people, radii, exits and steps, and judged by the same criteria; in a corridor without ends (RiMEA 4) its
people go from waypoint to waypoint, and who starts later (RiMEA 5) has no speed until then. It has no stairs, no groups
and no choice by time. None of the criteria was read at its source.
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
        other = peer[name]() if name in peer else WITHOUT.get(name, "not run")
        rows.append([ours.test, ours.asked, _told(ours), _told(published), other])
    report.table(["test", "asked", "ours", "ours as published", "JuPedSim"], rows)
    report.note("RiMEA 8 and 14 have no criterion.")


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


def _time(peer: Any, most: float, patience: float = 200.0) -> float:
    """When the last has left; inf: nobody has for 200 s, or somebody is there after so long; nan: it aborts."""
    since, there = 0.0, peer.agent_count()
    try:
        while peer.agent_count() and peer.elapsed_time() < most and peer.elapsed_time() < since + patience:
            peer.iterate(5)
            if peer.agent_count() < there:
                since, there = peer.elapsed_time(), peer.agent_count()
    except RuntimeError:
        return math.nan
    return peer.elapsed_time() if peer.agent_count() == 0 else math.inf


def _places(plan: FloorPlan, count: int, area: Any, radius: float, seed: int) -> np.ndarray:
    """Where ours begin."""
    simulation = FloorSimulation(plan)
    simulation.add_people(count, area, to=simulation.add_exit(plan.polygon), radius=radius, speed=1.34, seed=seed)
    return simulation.positions


def _verdict(passed: bool, found: str) -> str:
    return f"{'passes' if passed else 'does not pass'}: {found}"


def _now(peer: Any) -> dict[int, tuple[float, float]]:
    return {agent.id: agent.position for agent in peer.agents()}


def rimea_1() -> str:
    plan = FloorPlan(shapely.box(0, 0, 42, 2))
    took = _time(_peer(plan, 0.02, [shapely.box(41, 0, 42, 2)], [(np.array([[1.0, 1.0]]), 0.2, 1.33, [0])]), 60)
    return _verdict(26 <= took <= 34, f"{took:.1f} s")


def rimea_4() -> str:
    """Three waypoints around a ring, one after the other."""
    jupedsim = import_module("jupedsim")
    ring = shapely.Point(0, 0).buffer(11, quad_segs=16) - shapely.Point(0, 0).buffer(9, quad_segs=16)
    found = []
    for density in (0.5, 1.0, 2.0, 3.0):
        peer = jupedsim.Simulation(model=jupedsim.CollisionFreeSpeedModel(), geometry=ring, dt=0.05)
        turns = 2 * np.pi / 3 * np.arange(3)
        stages = [peer.add_waypoint_stage((10 * np.cos(turn), 10 * np.sin(turn)), 2.0) for turn in turns]
        journey = jupedsim.JourneyDescription(stages)
        for stage, following in zip(stages, [*stages[1:], stages[0]], strict=True):
            journey.set_transition_for_stage(stage, jupedsim.Transition.create_fixed_transition(following))
        number = peer.add_journey(journey)
        count = round(density * ring.area)
        turn = 2 * np.pi * (np.arange(count) + np.random.default_rng(1).uniform(-0.2, 0.2, count)) / count
        track = 9.35 + 1.3 * ((np.arange(count) % 4) / 3.0)
        for x, y, t in zip(track * np.cos(turn), track * np.sin(turn), turn, strict=True):
            stage = stages[(int(t // (2 * np.pi / 3)) + 1) % 3]
            traits = {"journey_id": number, "stage_id": stage, "radius": 0.15, "desired_speed": 1.34}
            peer.add_agent(jupedsim.CollisionFreeSpeedModelAgentParameters(position=(x, y), **traits))
        try:
            peer.iterate(300)
        except RuntimeError as error:
            return f"aborts: {str(error).partition(chr(10))[0]}"
        before = _now(peer)
        peer.iterate(1)
        after = _now(peer)
        found.append(float(np.mean([math.dist(before[k], after[k]) / 0.05 for k in before])))
    falling = all(a >= b - 0.02 for a, b in pairwise(found)) and found[-1] < 0.6 * found[0]
    return _verdict(falling, f"{', '.join(f'{speed:.2f}' for speed in found)} m/s at 0.5, 1, 2, 3 /m²")


def rimea_5() -> str:
    plan, way_out = FloorPlan(shapely.box(0, 0, 8, 5)), shapely.box(7.5, 2, 8, 3)
    places = np.array([[5.6 - 1.2 * (k % 5), 1.0 + 3.0 * (k // 5)] for k in range(10)])
    peer = _peer(plan, 0.1, [way_out], [(places, 0.2, 1.34, [0])])
    agents = sorted(agent.id for agent in peer.agents())
    late: dict[int, float] = {}
    for number in agents:
        peer.agent(number).model.desired_speed = 0.0
    for step in range(1, 1301):
        for k, number in enumerate(agents):
            if step == 100 * (k + 1) + 1:
                peer.agent(number).model.desired_speed = 1.34
        before = _now(peer)
        peer.iterate(1)
        for number, place in _now(peer).items():
            if number not in late and math.dist(place, before[number]) > 0.01:
                late[number] = 0.1 * step - 10.0 * (agents.index(number) + 1)
    worst = max(map(abs, late.values()))
    return _verdict(len(late) == 10 and worst <= 0.2 + 1e-9, f"{worst:.2f} s off")


def rimea_6() -> str:
    plan = FloorPlan("POLYGON ((0 0, 12 0, 12 12, 10 12, 10 2, 0 2, 0 0))")
    places = _places(plan, 20, shapely.box(0, 0, 6, 2), 0.2, 1)
    peer = _peer(plan, 0.02, [shapely.box(10, 11, 12, 12)], [(places, 0.2, 1.34, [0])])
    ways = []
    while peer.agent_count() and peer.elapsed_time() < 90:
        before = _now(peer)
        peer.iterate(1)
        ways += [(before[number], place) for number, place in _now(peer).items()]
    through = int(shapely.intersects(shapely.boundary(plan.polygon), shapely.linestrings(ways)).sum())
    left = 20 - peer.agent_count()
    return _verdict(left == 20 and through == 0, f"{left} of 20 got there, {through} ways through walls")


def rimea_7() -> str:
    groups = {"under 30": ((1.095, 0.17), (0.58, 1.61)), "30 to 50": ((1.475, 0.02), (1.41, 1.54))}
    groups |= {"over 50": ((1.045, 0.12), (0.68, 1.41)), "limited": ((0.61, 0.05), (0.46, 0.76))}
    plan, found, passed = FloorPlan(shapely.box(0, 0, 30, 102)), [], True
    for name, ((mean, deviation), (least, most)) in groups.items():
        drawn = np.clip(np.random.default_rng(2).normal(0.0, 1.0, 50), -3.0, 3.0) * deviation + mean
        people = [(np.array([[2.0, 2.0 + 2.0 * k]]), 0.2, float(speed), [k]) for k, speed in enumerate(drawn)]
        # An exit for each: people go to the middle of one, not to the nearest of it.
        peer = _peer(plan, 0.05, [shapely.box(29, 1.0 + 2.0 * k, 30, 3.0 + 2.0 * k) for k in range(50)], people)
        crossed: list[dict[int, float]] = [{}, {}]
        while peer.elapsed_time() < 40 and len(crossed[1]) < 50:
            before = _now(peer)
            peer.iterate(1)
            for number, (x, _) in _now(peer).items():
                for line, times in zip((5.0, 10.0), crossed, strict=True):
                    if before[number][0] < line <= x:
                        part = (line - before[number][0]) / (x - before[number][0])
                        times[number] = peer.elapsed_time() - 0.05 * (1.0 - part)
        walked = np.array([5.0 / (crossed[1][k] - crossed[0][k]) for k in crossed[1]])
        found.append(f"{name} {walked.min():.2f} to {walked.max():.2f}")
        passed &= bool(walked.min() > least * 0.97 and walked.max() < most and abs(walked.mean() - mean) < 0.05)
    return _verdict(passed, ", ".join(found) + " m/s")


def rimea_10() -> str:
    low = [(2.5 * (k % 6), 0.0 if k < 6 else 5.4) for k in range(12)]
    cabins = [shapely.box(x, y, x + 2.3, y + 2.0) for x, y in low]
    doors = [shapely.box(x + 0.7, 1.99 if y == 0 else 5.19, x + 1.6, 2.21 if y == 0 else 5.41) for x, y in low]
    plan = FloorPlan(shapely.union_all([shapely.box(-2, 2.2, 17, 5.2), *cabins, *doors]))
    exits = [shapely.box(-2, 2.2, -1, 5.2), shapely.box(16, 2.2, 17, 5.2)]
    people = [
        (_places(plan, 2 if k else 1, cabin, 0.2, k), 0.2, 1.34, [0 if k % 6 < 4 else 1])
        for k, cabin in enumerate(cabins)
    ]
    peer = _peer(plan, 0.05, exits, people)
    aims = {agent.id: agent.stage_id for agent in peer.agents()}
    stages = sorted(set(aims.values()))
    right, before = 0, _now(peer)
    while peer.agent_count() and peer.elapsed_time() < 120:
        peer.iterate(1)
        after = _now(peer)
        for number in before.keys() - after.keys():
            right += shapely.distance(exits[stages.index(aims[number])], shapely.Point(before[number])) < 0.1
        before = after
    return _verdict(right == 23, f"{right} of 23")


def rimea_12() -> str:
    boxes = (0, 0, 10, 10), (9.9, 4.5, 15.1, 5.5), (15, 0, 25, 10), (24.9, 4.5, 27, 5.5)
    plan = FloorPlan(shapely.union_all([shapely.box(*box) for box in boxes]))
    places = _places(plan, 150, shapely.box(0, 0, 9, 10), 0.2, 1)
    peer = _peer(plan, 0.05, [shapely.box(26, 4.5, 27, 5.5)], [(places, 0.2, 1.34, [0])])
    crossed: list[list[float]] = [[], []]
    dense, frames, before = np.zeros((27, 10)), 0, _now(peer)
    while peer.agent_count() and peer.elapsed_time() < 600:
        peer.iterate(1)
        after = _now(peer)
        for number, (x, y) in after.items():
            for line, times in zip((12.0, 25.5), crossed, strict=True):
                if before[number][0] < line <= x:
                    times.append(peer.elapsed_time())
            if peer.iteration_count() % 20 == 0 and peer.elapsed_time() <= 60.0:
                dense[int(x), int(y)] += 1
        frames += peer.iteration_count() % 20 == 0 and peer.elapsed_time() <= 60.0
        before = after
    if peer.agent_count():
        return f"does not pass: {peer.agent_count()} people stay for good"
    jams = float(dense[6:10, 3:7].max()) / frames, float(dense[21:25, 3:7].max()) / frames
    flows = [(len(times) - 1) / (times[-1] - times[0]) for times in crossed]
    found = f"{jams[0]:.1f} and {jams[1]:.1f} /m², flows {flows[0]:.2f} and {flows[1]:.2f} /s"
    return _verdict(flows[1] <= flows[0] + 0.05 and jams[0] > 2.0 * jams[1], found)


def rimea_15() -> str:
    times = []
    corner = "POLYGON ((0 0, 16 0, 16 16, 12 16, 12 4, 0 4, 0 0))"
    cases = [(FloorPlan(corner), shapely.box(12, 15, 16, 16))]
    cases += [(FloorPlan(shapely.box(0, 0, x, 4)), shapely.box(x - 1, 0, x, 4)) for x in (24, 32)]
    for plan, end in cases:
        places = _places(plan, 100, shapely.box(0, 0, 10, 4), 0.2, 1)
        times.append(_time(_peer(plan, 0.05, [end], [(places, 0.2, 1.34, [0])]), 300))
    found = f"{times[0]:.1f} s, straight {times[1]:.1f} s (inner) and {times[2]:.1f} s (outer side)"
    return _verdict(times[1] < times[0] < 300, found)


def rimea_9() -> str:
    times, stayed = [], []
    for exits in (4, 2):
        simulation, outs = standards._large_room(exits, None)
        assert isinstance(simulation.plan, FloorPlan)
        places = _places(simulation.plan, 1000, shapely.box(0.5, 0.5, 29.5, 19.5), 0.2, 1)
        areas = [out.area for out in outs]
        peer = _peer(simulation.plan, 0.05, areas, [(places, 0.2, 1.34, list(range(exits)))])
        times.append(_time(peer, 1500))
        stayed.append(peer.agent_count())
    if not all(map(math.isfinite, times)):
        return f"does not pass: {stayed[0]} and {stayed[1]} people stay for good"
    return _verdict(1.5 < times[1] / times[0] < 2.5, f"{times[0]:.0f} and {times[1]:.0f} s")


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
    return _verdict(len(left) == 100 and flow <= 1.33, f"{flow:.2f} /s")


def imo_8() -> str:
    boxes = shapely.box(0, 0, 10, 10), shapely.box(9.99, 4, 20.01, 6), shapely.box(20, 0, 30, 10)
    plan, times = FloorPlan(shapely.union_all(boxes)), []
    for people in (0, 10, 50, 100):
        crowd = [(_places(plan, 100, shapely.box(2.5, 0, 9, 10), 0.15, 1), 0.15, 1.34, [0])]
        if people:
            crowd.append((_places(plan, people, shapely.box(21, 0, 27.5, 10), 0.15, 2), 0.15, 1.34, [1]))
        times.append(_time(_peer(plan, 0.05, [shapely.box(28, 0, 30, 10), shapely.box(0, 0, 2, 10)], crowd), 900, 900))
    told = ", ".join("for ever" if math.isinf(t) else f"{t:.0f}" for t in times)
    rising = all(a < b < 900 for a, b in pairwise(times))
    return _verdict(rising, f"{told} s for 0, 10, 50, 100")


PEERS = {
    function.__name__: function
    for function in (
        rimea_1, rimea_4, rimea_5, rimea_6, rimea_7, rimea_9, rimea_10, rimea_12, rimea_15, imo_4, imo_8,
    )
}  # fmt: skip
#: What JuPedSim has not, and so cannot be asked.
WITHOUT = dict.fromkeys(("rimea_2", "rimea_3", "rimea_13", "rimea_14"), "has no stairs")
WITHOUT |= {"rimea_8": "no criterion", "rimea_11": "has no choice by time", "rimea_16": "has no groups"}
