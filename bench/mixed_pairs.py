"""Things of different kinds: bodies and meshes that deform, mixed lists, mixed pairs, clearance, one call.

All on one thread, by the thread's own time. Whole calls, arrays made and answers taken apart included. What is checked:
first contacts with the mesh that deforms against the distance at 20 instants before each, lists against their pairs,
mixed pairs against one by one.
"""

from __future__ import annotations

import time
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

import tangere as tg
from bench.every_pair import KINDS, body, poses
from bench.harness import Report, count, measure, seconds

FEATURES: list[str] = []


def run(report: Report, quick: bool = False) -> None:
    _deforming(report, quick)
    _lists(report, quick)
    _mixed_pairs(report, quick)
    _clearance(report, quick)
    _one_call(report, quick)


def _best(ask: Any, rounds: int) -> tuple[float, Any]:
    timing = measure({"ours": ask}, rounds=rounds, clock=time.thread_time)["ours"]
    return min(timing.rounds), timing.result


def _deforming(report: Report, quick: bool) -> None:
    sheet = tg.generate.sheet(400 if quick else 20_000)
    report.section(f"Bodies thrown at a sheet of {count(len(sheet.faces))} triangles that is blown up")
    rng = np.random.default_rng(2)
    wave = 0.1 * np.sin(9.0 * sheet.vertices[:, :1]) * np.cos(7.0 * sheet.vertices[:, 1:2])
    blown = sheet.moving(tg.Linear(sheet.vertices + wave * [0.0, 0.0, 1.0] + [0.0, 0.0, 0.3]))
    number, rows = 4 if quick else 20, []
    for kind in KINDS:
        start = poses(number, rng, 0.0)
        start[:, :3, 3] = rng.uniform([-0.4, -0.4, 0.6], [0.4, 0.4, 0.9], (number, 3))
        each = body(kind, rng, 0.1)
        thrown = each.moving(tg.Twist(start, [0.0, 0.0, -0.8], rng.normal(size=(number, 3)) * 3.0))
        taken, found = _best(partial(tg.first_contact, thrown, blown, device="cpu", threads=1), 3)
        late = 0
        for k in range(number):
            for part in np.linspace(0.0, 0.999, 5 if quick else 20):
                now = min(float(found.time[k]), 1.0) * part
                apart = tg.distance(each.moving(thrown.motion[k]), blown, time=float(now), device="cpu")
                late += apart.upper <= 0.0 and found.status[k] != tg.Status.START
        rows.append([kind, f"{found.hit.mean():.0%}", seconds(taken / number), late])
    report.table(["body", "touch", "a throw", "late"], rows)


def _lists(report: Report, quick: bool) -> None:
    report.section("Lists of bodies of all kinds over ground")
    rng, rows = np.random.default_rng(3), []
    ground = tg.Heightfield(np.zeros((64, 64)), 1.0, origin=(-32.0, -32.0, 0.0))
    ball = tg.generate.icosphere(2, radius=0.3)
    for number in (8,) if quick else (10, 100, 1000):
        start = poses(number, rng, 0.0)
        start[:, :3, 3] = rng.uniform([-30.0, -30.0, 1.5], [30.0, 30.0, 9.0], (number, 3))
        things: list[Any] = [ground]
        for k in range(number):
            shape = ball if k % 7 == 6 else body(KINDS[k % 7], rng, 0.5)
            things.append(shape.moving(tg.Twist(start[k], rng.normal(size=3) - [0.0, 0.0, 2.0], rng.normal(size=3))))
        taken, found = _best(partial(tg.first_contact, things, device="cpu", threads=1), 3)
        told = "not asked"
        if number <= 10:
            pairs = [tg.first_contact(b, a, device="cpu").time for a, b in combinations(things, 2)]
            told = "yes" if abs(min(pairs) - found.time) < 1e-12 or min(pairs) == found.time else "no"
        rows.append([number, f"{found.time:.4f}", seconds(taken), told])
    report.table(["bodies", "first contact at", "a list", "as pair by pair"], rows)


def _mixed_pairs(report: Report, quick: bool) -> None:
    report.section("Distances of pairs of mixed kinds")
    rng = np.random.default_rng(4)
    shapes = [body(kind, rng) for kind in KINDS for _ in range(4)]
    number = 1000 if quick else 100_000
    a, b = rng.integers(0, len(shapes), (2, number))
    places = poses(number, rng, 2.0), poses(number, rng, 2.0)
    taken, found = _best(partial(tg.distances, shapes, a, b, *places, device="cpu", threads=1), 3)
    wrong = 0
    for k in range(0, number, number // 200):
        one = tg.distance(shapes[a[k]].at(places[0][k]), shapes[b[k]].at(places[1][k]), device="cpu")
        wrong += abs(one.upper - found.upper[k]) > 1e-12
    report.table(
        ["pairs", "a pair", "other than one by one, of 200"], [[count(number), seconds(taken / number), wrong]]
    )


def _clearance(report: Report, quick: bool) -> None:
    report.section("Least clearance during a step")
    away = np.eye(4)
    away[:3, 3] = -2.0, 1.5, 1.3
    ground = tg.Heightfield(np.zeros((32, 32)), 0.25, origin=(-4.0, -4.0, 0.0))
    rows = []
    for name, part, other in (
        ("sphere, box", tg.Sphere(0.5), tg.Box([0.5, 0.4, 0.3])),
        ("cylinder, cone", tg.Cylinder(0.5, 1.0), tg.Cone(0.5, 1.0)),
        ("box, mesh", tg.Box([0.5, 0.4, 0.3]), tg.generate.icosphere(3, radius=0.5)),
        ("cylinder, ground", tg.Cylinder(0.5, 1.0), ground),
    ):
        passing = part.moving(tg.Twist(away, [4.0, 0.3, 0.0], [0.0, 2.0, 0.0]))
        taken, found = _best(partial(tg.least_clearance, passing, other, device="cpu", threads=1), 3 if quick else 10)
        rows.append([name, f"{found.lower:.4f} to {found.upper:.4f} m", seconds(taken)])
    report.table(["things", "clearance", "a call"], rows)


def _one_call(report: Report, quick: bool) -> None:
    report.section("One call")
    away, nearer = np.eye(4), np.eye(4)
    away[0, 3], nearer[0, 3] = 3.0, 0.2
    ball, box = tg.Sphere(0.5), tg.Box([0.5, 0.4, 0.3])
    motions = {
        "Twist": tg.Twist(away, [-3.0, 0.0, 0.0], [0.0, 0.0, 6.0]),
        "Screw": tg.Screw(away, nearer),
        "Path": tg.Path(np.stack([away, nearer, away])),
        "Chain": tg.Chain([tg.Twist(np.eye(4), [0, 0, 0], [0, 0, 1.0]), tg.Twist(away, [-3, 0, 0], [0, 0, 1.0])]).link(
            1
        ),
    }
    rows = []
    for name, motion in motions.items():
        moving = ball.moving(motion)
        timings = measure(
            {
                "distance": partial(tg.distance, moving, box, time=0.3, device="cpu"),
                "contact": partial(tg.first_contact, moving, box, device="cpu"),
            },
            rounds=20 if quick else 500,
            clock=time.thread_time,
        )
        rows.append([name, timings["distance"], timings["contact"], "100 us"])
    report.table(["a sphere by a …, and a box", "distance at a time", "first contact", "asked for"], rows)
