"""Crowds in maps of any size, and in real time.

Experiments E6 and E13, on Pitiot 2015, sections 8.3.1 and 9.1.1, and E5 in cities. Cities take turns of a few steps,
and all is done five times; a time is the mean of all steps, each with its fastest run. Real time is one run as it
comes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from bench.harness import Report, count, seconds
from bench.pitiot_crowd_figures import STAGES, TURN, changed_cell, make_steps, one_step, timed, verdict
from tangere.crowd import Simulation
from tangere.crowd.scenarios import circle, city, corridor, swarm

#: E6: F-P-18; real time: F-P-65; E13: F-P-66.
FEATURES = ["F-P-18", "F-P-65", "F-P-66"]

_TASKS = [task for task in STAGES if task != "bodies"]


def run(report: Report, quick: bool = False) -> None:
    _sizes(report, 30 if quick else 500, 40 if quick else 1200, quick)
    _real_time(report, quick)
    _in_space(report, (30,) if quick else (500, 10_000), 2 if quick else 600)


def _sizes(report: Report, points: int, steps: int, quick: bool) -> None:
    report.section("E6: a city of any size, the same crowd (the thesis: independent)")
    sizes, district = ((2, 3), 2) if quick else ((5, 10, 20, 40), 5)
    ways = {f"in a district of {district} x {district}": district, "all over": None}
    kinds = {
        "as the library does it: cells adapt, hidden waypoints are walked around": {},
        "neither": {"adaptive": None, "reroute": 0.0},
    }
    makers = {
        (n, where, kind): partial(
            city, points, blocks=n, district=blocks, visits=1, device="cpu", separate=True, **options
        )
        for n in sizes
        for where, blocks in ways.items()
        for kind, options in kinds.items()
    }
    found = timed(makers, steps, runs=5)
    for kind in kinds:
        for where in ways:
            report.note(f"**{points} points {where}; {kind}**")
            chosen = [found[n, where, kind] for n in sizes]
            rows = []
            for n, one in zip(sizes, chosen, strict=True):
                s = one.simulation
                near, changed = s.observe().neighbours.mean(), changed_cell(s)
                times = [one.step, *(one.parts[task] for task in _TASKS), one.slowest]
                rest = [f"{near:.2f}", f"{100 * changed:.1f} %, {verdict(changed < 0.1)}"]
                rows.append([f"{n} x {n}", count(len(s.map.leaves)), *map(seconds, times), *rest])
            columns = ["blocks", "cells", "step", *_TASKS, "slowest step", "others near", "change cell (below 10 %)"]
            report.table(columns, rows)
            grown = chosen[-1].step / chosen[0].step - 1.0
            tracking = chosen[-1].parts["tracking"] / chosen[0].parts["tracking"] - 1.0
            more = chosen[-1].parts["tracking"] - chosen[0].parts["tracking"]
            held = verdict(abs(grown) <= 0.1) + (": it is cheaper" if grown < -0.1 else "")
            report.note(
                f"Largest against smallest city: step {100 * grown:+.0f} % (asked for: ± 10 %, {held}), tracking alone "
                f"{100 * tracking:+.0f} %, that is {1e9 * more / points:+.1f} ns a point."
            )
    report.note(
        f"{count(steps)} steps. In a district the crowd is the same, the city around it is not. All over a larger city "
        "as many points are less dense and look at fewer others, and hardly anybody is pushed behind a corner, so that "
        "no ways around walls are planned: there a step costs less. Nothing more is searched in a larger city, but "
        "points who share no cells share no lines of the cache. So a point keeps a rectangle of its cell and asks for "
        "nothing while it is there, what a cell says of itself is one line, sorting asks for the cells of those who "
        "change theirs only, and what was seen is looked at again only so far ahead. What is left is that of a new "
        "cell, nothing of which is in the cache."
    )


def _real_time(report: Report, quick: bool) -> None:
    report.section("Real time: 30 steps a second")
    points = 60 if quick else 1000
    cases: dict[str, tuple[Callable[[], Simulation], int]] = {
        f"corridor {points} + 50": (lambda: corridor(points, 50, device="cpu"), 4000),
        f"circle {points} + 50": (lambda: circle(points, 50, device="cpu"), 4000),
        f"circle {5 * points} + 300": (lambda: circle(5 * points, 300, size=400.0, device="cpu"), 5000),
        f"in space {points // 2}": (lambda: swarm(points // 2, device="cpu"), 1200),
        f"in space {10 * points}": (lambda: swarm(10 * points, device="cpu"), 1200),
    }
    rows = []
    for name, (make, steps) in cases.items():
        simulation, windows = make(), []
        simulation.step()
        for _ in range(1 if quick else steps // TURN):
            windows.append([one_step(simulation)[0] for _ in range(TURN)])
        each = np.array(windows)
        dearest = float(each.mean(axis=1).max())
        times = [float(each.mean()), dearest, float(each.max())]
        rows.append([name, count(each.size), *map(seconds, times), f"{1 / dearest:.0f} Hz", verdict(dearest <= 1 / 30)])
    columns = ["crowd", "steps", "step", f"dearest {TURN} steps", "slowest step", "rate of the dearest", "30 Hz"]
    report.table(columns, rows)
    report.note("Until crowds have met in the middle and parted.")


def _in_space(report: Report, numbers: tuple[int, ...], before: int) -> None:
    report.section("E13: tasks of a crowd in space, when it meets")
    rows = []
    for points in numbers:
        simulation = swarm(points, device="cpu", separate=True)
        make_steps(simulation, before)
        begin, sums = time.perf_counter(), np.zeros(len(STAGES))
        for _ in range(TURN):
            sums += one_step(simulation)[1]
        whole = time.perf_counter() - begin
        shares = [f"{100 * sums[STAGES.index(task)] / whole:.0f} %" for task in _TASKS]
        rows.append([count(points), seconds(whole / TURN), *shares])
    report.table(["points", "step", *_TASKS], rows)
