"""People on floor plans against JuPedSim: the same bottleneck, model, parameters and step of 0.01 s, on one thread.

A room with 2.4 people per square metre empties through a door of 1.2 m, half a metre deep. Both run the collision-free
speed model, JuPedSim by `iterate(n)` without polling. Agent-steps count the people who are there. JuPedSim
(`pip install jupedsim`) looks 3 m far; ours derives how far neighbours matter from radii, speeds and the time gap, and
is measured at 3 m as well.
"""

from __future__ import annotations

import time
from functools import partial
from importlib import import_module

import numpy as np
import shapely

from bench.harness import Report, SkippedError, count, measure, seconds
from tangere.crowd import CollisionFreeSpeed, FloorPlan, FloorSimulation, Simulation
from tangere.runtime import using_threads

RADIUS, SPEED, WIDTH, DT = 0.2, 1.2, 1.2, 0.01


def run(report: Report, quick: bool = False) -> None:
    try:
        import_module("jupedsim")
    except ImportError as error:
        raise SkippedError("jupedsim is not installed") from error
    report.packages += ["jupedsim", "shapely"]
    with using_threads(1):
        _speed(report, quick)
        _flows(report, quick)
        _fields(report, quick)


def bottleneck(people: int, width: float = WIDTH) -> tuple[FloorPlan, shapely.Polygon, np.ndarray]:
    """The plan, its exit, and where everybody begins."""
    side, depth = max(8.0, np.sqrt(people / 3.0) / 0.9), 4.0
    low, high = side / 2 - width / 2, side / 2 + width / 2
    parts = [shapely.box(0, 0, side, side), shapely.box(side - 0.001, low, side + 0.5, high)]
    parts.append(shapely.box(side + 0.499, side / 2 - 3, side + 0.5 + depth, side / 2 + 3))
    way_out = shapely.box(side + depth - 1.0, side / 2 - 3, side + 0.5 + depth, side / 2 + 3)
    nodes = np.linspace(0.5, side - 0.7, int(np.ceil(np.sqrt(people))))
    places = np.stack(np.meshgrid(nodes, nodes), axis=-1).reshape(-1, 2)
    places = places[np.argsort(side - places[:, 0], kind="stable")][:people]
    return FloorPlan(shapely.union_all(parts)), way_out, places


def _ours(people: int, seed: int = 0, width: float = WIDTH, **model) -> FloorSimulation:
    plan, way_out, places = bottleneck(people, width)
    simulation = Simulation(plan, behaviour=CollisionFreeSpeed(**model), dt=DT, device="cpu")
    places = places + np.random.default_rng(seed).uniform(-0.04, 0.04, places.shape)
    simulation.add_people(places, to=simulation.add_exit(way_out), radius=RADIUS, speed=SPEED)
    simulation.add_line((plan.bounds[2] - 4.25, 0.0), (plan.bounds[2] - 4.25, plan.bounds[3]))
    simulation.prepare()
    return simulation


def _peer(people: int, seed: int = 0, width: float = WIDTH, time_gap: float = 1.0):
    jupedsim = import_module("jupedsim")
    plan, way_out, places = bottleneck(people, width)
    places = places + np.random.default_rng(seed).uniform(-0.04, 0.04, places.shape)
    peer = jupedsim.Simulation(model=jupedsim.CollisionFreeSpeedModel(), geometry=plan.polygon, dt=DT)
    stage = peer.add_exit_stage(way_out)
    journey = peer.add_journey(jupedsim.JourneyDescription([stage]))
    traits = {"journey_id": journey, "stage_id": stage, "radius": RADIUS, "desired_speed": SPEED, "time_gap": time_gap}
    for place in places.tolist():
        peer.add_agent(jupedsim.CollisionFreeSpeedModelAgentParameters(position=tuple(place), **traits))
    return peer


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
        ours, far, peer = _ours(people), _ours(people, cutoff=3.0), _peer(people)
        there: dict[str, list[int]] = {"ours": [], "3 m": [], "peer": []}
        timings = measure(
            {
                "ours": partial(_go, ours, steps, there["ours"]),
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


def _flows(report: Report, quick: bool) -> None:
    """Time to empty and flow through doors, as means over starts."""
    rows, stayed = [], []
    starts, people = (1, 20) if quick else (6, 100)
    for width in (1.2,) if quick else (0.8, 1.2, 1.6, 2.4):
        found: dict[str, list[tuple[float, float]]] = {"ours": [], "peer": []}
        for seed in range(starts):
            ours = _ours(people, seed, width)
            done = ours.run(600, until="empty", record=None)
            gone = done.left[np.isfinite(done.left)]
            found["ours"].append((gone.max(), _flow(gone) / width))
            peer, left = _peer(people, seed, width), []
            while peer.agent_count() and peer.elapsed_time() < 600:
                before = peer.agent_count()
                peer.iterate(5)
                left += [peer.elapsed_time()] * (before - peer.agent_count())
            kept = {"ours": ours.count, "JuPedSim": peer.agent_count()}
            stayed += [f"{n} of {name} at {width:g} m, start {seed}" for name, n in kept.items() if n]
            found["peer"].append((max(left), _flow(np.array(left)) / width))
        means = [(np.mean(f, axis=0), np.std(f, axis=0)) for f in found.values()]
        cells = [f"{mean[k]:.2f} ± {spread[k]:.2f}" for k in (0, 1) for mean, spread in means]
        rows.append([f"{width:g} m", *cells])
    columns = ["door", "empty after [s]: ours", "JuPedSim", "flow [1/m/s]: ours", "JuPedSim"]
    report.table(columns, rows)
    report.note(
        f"{people} people, means and deviations over {starts} starts, time gap 1 s; flow between the first and the "
        "last tenth who leave. The published 1.3 to 1.9 /m/s needs a time gap of 0.5 to 0.8 s, in both. "
        "Where a door clogs and people stay for good, the last who left counts. "
        f"Stayed: {'; '.join(stayed) or 'nobody'}."
    )


def _flow(left: np.ndarray) -> float:
    left = np.sort(left)
    first, last = int(0.1 * len(left)), int(0.9 * len(left)) - 1
    return (last - first) / (left[last] - left[first])


def _fields(report: Report, quick: bool) -> None:
    """Ways to ten goals in a building of a hundred rooms."""
    from tangere.crowd.floor.ways.travel_fields import WalkableNodes, marched, raster_for

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
    report.note("Asked for: ten fields on 100 x 100 m in half a second.")


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
