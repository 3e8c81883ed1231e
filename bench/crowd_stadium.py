"""A stadium empties in real time: stands in sectors around a pitch, a gate of 4 m from each, and exits around them.

Steps of 1/30 s, 2.4 people per square metre at the start, on all cores and on one. Real time is a step in 33 ms of wall
time; the time of one thread is process time, which others on the machine do not lengthen as much.
"""

from __future__ import annotations

import time

import numpy as np
import shapely

from bench.harness import Report, count, seconds
from tangere.crowd import FloorPlan, FloorSimulation
from tangere.runtime import using_threads

DT, SECTORS, DENSITY = 1.0 / 30.0, 40, 2.4


def _oval(x: float, y: float) -> shapely.Polygon:
    turn = np.linspace(0, 2 * np.pi, 8 * SECTORS, endpoint=False)
    return shapely.Polygon(np.stack([x * np.cos(turn), y * np.sin(turn)], axis=1))


def stadium(people: int) -> tuple[FloorPlan, shapely.Polygon, list[shapely.Polygon]]:
    """The plan, the stands, and where people leave: as large as so many need."""
    size = np.sqrt(1.15 * people / DENSITY / (np.pi * (1.0 * 0.8 - 0.55 * 0.4)))  # walls take some of it
    rim, pitch, around = _oval(size, 0.8 * size), _oval(0.55 * size, 0.4 * size), _oval(size + 12, 0.8 * size + 12)
    walls = [shapely.boundary(rim).buffer(0.15)]
    gates = []
    for k in range(SECTORS):
        for turn, cuts in ((k, walls), (k + 0.5, gates)):
            angle = 2 * np.pi * turn / SECTORS
            way = np.array([np.cos(angle), 0.8 * np.sin(angle)])
            if cuts is walls:
                cuts.append(shapely.LineString([0.5 * size * way, size * way]).buffer(0.1))
            else:
                cuts.append(shapely.LineString([(size - 2) * way, (size + 2) * way]).buffer(2.0, cap_style="flat"))
    blocked = shapely.union_all(walls).difference(shapely.union_all(gates))
    floor = around.difference(pitch).difference(blocked)
    floor = max(shapely.get_parts(floor), key=lambda part: part.area)
    stands = rim.difference(pitch)
    exits = [
        shapely.Point(around.exterior.interpolate(part, normalized=True)).buffer(6.0) for part in np.arange(0, 1, 0.05)
    ]
    return FloorPlan(floor), stands, exits


def people_on(plan: FloorPlan, stands: shapely.Polygon, people: int) -> np.ndarray:
    """A lattice of the density, a little disturbed, where there is room."""
    step = 1.0 / np.sqrt(DENSITY)
    x0, y0, x1, y1 = stands.bounds
    places = np.stack(np.meshgrid(np.arange(x0, x1, step), np.arange(y0, y1, step)), axis=-1).reshape(-1, 2)
    places = places + np.random.default_rng(0).uniform(-0.05, 0.05, places.shape)
    room = shapely.intersection(stands, shapely.buffer(plan.polygon, -0.25))
    shapely.prepare(room)
    return places[shapely.contains_xy(room, *places.T)][:people]


def run(report: Report, quick: bool = False) -> None:
    report.packages += ["shapely"]
    rows = []
    for people in (2_000,) if quick else (30_000, 100_000):
        plan, stands, exits = stadium(people)
        places = people_on(plan, stands, people)
        for threads in (None, 1):
            with using_threads(threads):
                simulation = FloorSimulation(plan, dt=DT, device="cpu", threads=threads)
                aims = [simulation.add_exit(area) for area in exits]
                begin = time.process_time()
                simulation.add_people(places, to=aims, radius=0.2, speed=1.34)
                simulation.prepare()
                ready = time.process_time() - begin
                clock = time.perf_counter if threads is None else time.process_time
                simulation.run(steps=5, record=None)
                rounds = []
                for _ in range(3 if quick else 12):
                    begin = clock()
                    simulation.run(steps=10, record=None)
                    rounds.append((clock() - begin) / 10)
                least, middle = min(rounds), float(np.median(rounds))
                kind = "all cores, wall time" if threads is None else "one thread, process time"
                real = f"{DT / least:.2f} ({DT / middle:.2f})"
                told = [count(len(places)), kind, seconds(ready), f"{seconds(least)} ({seconds(middle)})", real]
                rows.append([*told, count(len(places) / least)])
    columns = ["people", "on", "fields and cells", "a step: least (median)", "times real time", "agent-steps/s"]
    report.table(columns, rows)
    report.note("Asked for: 30,000 people in real time on two cores; aim 100,000.")
