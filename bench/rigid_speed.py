"""Questions about rigid parts before and after trees of four children: calls, trajectories, threads, peers.

Every figure of the library is taken by the same script in a process of its own, one thread, processor time of that
thread, the least of many rounds: of this tree, and, where TANGERE_BEFORE names another checkout of it, of that one, in
turns. Two tori of 69,696 triangles move as `bench/tori.py` says; trajectories are those of the virtual operator.
Where TANGERE_PROTOTYPES names the folder of the trial code that was written for that other checkout, it runs beside.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.harness import Report, measure, ratio, seconds
from bench.operator import recorded
from bench.redon_table_3_2 import criteria
from bench.tori import TASKS
from tangere.motion import Rest
from tangere.query.distance import distance
from tangere.query.first_contact import PreparedFirstContact, first_contact
from tangere.query.intersection import intersecting_pairs
from tangere.shape import generate
from tangere.shape.generate.build.assembly import pose
from tangere.shape.mesh import Mesh

FEATURES: list[str] = []

ROOT = Path(__file__).resolve().parents[1]
#: Actions of each trajectory, and which of them count.
ACTIONS = 200
SCENES = {"lifter": "", "door on body": "sliding", "conforming doors": "sliding", "pylon": ""}
#: Rounds over the processes of all trees.
TURNS = 3
#: Trial code of the search: its file, and what it is told.
PROTOTYPES = {"four doubles": ("lanes_trial3.py", "double", "4"), "eight floats": ("lanes_trial3.py", "float", "8")}


def run(report: Report, quick: bool = False) -> None:
    report.packages += ["python-fcl", "coal"]
    trees = {"now": ROOT}
    if other := os.environ.get("TANGERE_BEFORE"):
        trees["before"] = Path(other)
    with tempfile.TemporaryDirectory() as folder:
        for name, regime in SCENES.items():
            recording = recorded(name, 60 if quick else ACTIONS)
            chosen = (recording.regime == regime) if regime else np.ones(len(recording.regime), bool)
            recording.trajectory[chosen].save(Path(folder) / f"{name}.npz")
        found: dict[str, dict[str, list[float]]] = {tree: {} for tree in trees}
        for _ in range(1 if quick else TURNS):
            for tree, root in trees.items():
                for key, value in _figures_of(root, folder, quick).items():
                    found[tree].setdefault(key, []).append(value)
    least = {tree: {key: min(values) for key, values in figures.items()} for tree, figures in found.items()}
    now, before = least["now"], least.get("before", {})
    verdicts = _calls(report, now, before)
    verdicts += _prepared(report, now)
    verdicts += _trajectories(report, now, before)
    torus = generate.bumpy_torus(66, 33) if quick else generate.bumpy_torus()
    verdicts += _searches(report, now, before, quick)
    verdicts += _peers(report, torus, quick)
    verdicts += _threads(report, torus, quick)
    criteria(report, verdicts)


def library_figures(folder: str, quick: bool) -> dict[str, float]:
    """Seconds of each question; runs in any tree, and uses what the library has had for long."""
    import time
    from pathlib import Path

    import numpy as np

    import tangere as tg
    from bench.tori import TASKS

    try:
        from bench.replay import Trajectory
    except ImportError:
        from tangere.scene.trajectory import Trajectory

    def least(call, rounds: int) -> float:
        call()
        taken = []
        for _ in range(5 if quick else rounds):
            begin = time.thread_time()
            call()
            taken.append(time.thread_time() - begin)
        return min(taken)

    def ask(a, b, **options):
        return lambda: tg.first_contact(a, b, device="cpu", threads=1, **options)

    figures = {}
    torus = tg.generate.torus(2000 if quick else 69696, bumps=0.05)
    for task in TASKS:
        figures[f"motion {task.name}"] = least(ask(torus.moving(task.motion), torus), 60)
    box = tg.generate.box((1.0, 1.0, 1.0))
    at = np.eye(4)
    at[2, 3] = 1.5
    down = tg.Twist(at, (0.0, 0.0, -1.0), (0.0, 0.0, 0.0))
    figures["two boxes that land flat"] = least(ask(box.moving(down), box), 300)
    tilted = at.copy()
    tilted[:3, :3] = [[0.8, 0.0, 0.6], [0.36, 0.8, -0.48], [-0.48, 0.6, 0.64]]
    figures["two boxes that touch"] = least(ask(box.moving(tg.Twist(tilted, (0, 0, -1), (0, 0, 0))), box), 300)
    figures["two boxes that stay apart"] = least(ask(box.moving(tg.Twist(at, (0, 0, 0.3), (0, 0, 0))), box), 300)
    overlap = tg.Twist(TASKS[0].motion.pose(1.0), (0.1, 0.0, 0.0), (0.0, 0.3, 0.0))
    figures["overlap at the start"] = least(ask(torus.moving(overlap), torus), 15)
    figures["separation of half the part"] = least(ask(torus.moving(TASKS[3].motion), torus, separation=1.0), 5)
    rng = np.random.default_rng(0)
    begin = np.tile(np.eye(4), (300, 1, 1))
    begin[:, :3, 3] = rng.normal(size=(300, 3)) * 2.0
    many = tg.Twist(begin, rng.normal(size=(300, 3)), rng.normal(size=(300, 3)))
    figures["300 pairs again"] = least(ask(box.moving(many), box), 10)
    counts = iter(range(299, 0, -1))
    parts = {n: box.moving(many[:n]) for n in range(280, 301)}
    figures["an ever new number of pairs"] = least(lambda: ask(parts[next(counts)], box)(), 10)
    figures["Twist()"] = least(lambda: tg.Twist(at, (0.0, 0.0, -1.0), (0.0, 0.0, 0.0)), 300)
    for file in sorted(Path(folder).glob("*.npz")):
        trajectory = Trajectory.load(file)
        part, fixed, motion = trajectory.part, trajectory.fixed, trajectory.motion
        bodies = [part.moving(motion[k]) for k in range(len(motion))]
        steps = np.full(len(bodies), np.inf)
        for _ in range(2 if quick else 4):
            for k, body in enumerate(bodies):
                start = time.thread_time()
                tg.first_contact(body, fixed, device="cpu", threads=1)
                steps[k] = min(steps[k], time.thread_time() - start)
        figures[f"scene {file.stem}"] = float(steps.mean())
    return figures


def _figures_of(root: Path, folder: str, quick: bool) -> dict[str, float]:
    """`library_figures` of a tree."""
    code = f"{inspect.getsource(library_figures)}\nimport json\nprint(json.dumps(library_figures({folder!r}, {quick})))"
    path = os.pathsep.join([str(root / "src"), str(root), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def _beside(name: str, key: str, now: dict[str, float], before: dict[str, float]) -> list[Any]:
    """A row of a table: before, now, and how many times faster."""
    old = before.get(key)
    return [name, old and seconds(old), seconds(now[key]), old and ratio(old, now[key])]


def _calls(report: Report, now: dict[str, float], before: dict[str, float]) -> list[tuple[str, str, bool]]:
    report.section("One call")
    columns = ["question", "before", "now", "faster"]
    motions = [f"motion {task.name}" for task in TASKS]
    rows = [_beside(task.name, key, now, before) for task, key in zip(TASKS, motions, strict=True)]
    searching = sum(now[key] for key in motions[:5])
    old = sum(before[key] for key in motions[:5]) if before else None
    rows.append(["the five that search", old and seconds(old), seconds(searching), old and ratio(old, searching)])
    report.table(columns, rows)
    others = [
        "two boxes that stay apart",
        "two boxes that touch",
        "two boxes that land flat",
        "overlap at the start",
        "separation of half the part",
        "300 pairs again",
        "an ever new number of pairs",
        "Twist()",
    ]
    report.table(columns, [_beside(name, name, now, before) for name in others])
    slowest = max(now[key] for key in motions)
    free, touching = now["two boxes that stay apart"], now["two boxes that touch"]
    fresh, again = now["an ever new number of pairs"], now["300 pairs again"]
    return [
        ("each of six motions through the public call, at most 0.35 ms", seconds(slowest), slowest <= 0.35e-3),
        ("a plain free call, at most 40 us", seconds(free), free <= 40e-6),
        ("a call with a contact, at most 80 us", seconds(touching), touching <= 80e-6),
        ("an ever new number of pairs, at most 1.2 of the same", ratio(fresh, again), fresh <= 1.2 * again),
    ]


def _prepared(report: Report, now: dict[str, float]) -> list[tuple[str, str, bool]]:
    """What a prepared call costs beside its search: of bodies that stay apart there is next to none."""
    report.section("Prepared")
    box = generate.box((1.0, 1.0, 1.0))
    prepared = PreparedFirstContact([box, box], device="cpu", threads=1)
    above = pose((0.0, 0.0, 1.5))
    prepared.set(1, np.eye(4))
    ways = {}
    for name, displacement in (("apart", (0.0, 0.0, 0.3)), ("touching", (0.0, 0.0, -1.0))):
        prepared.set(0, above, displacement)
        prepared.first_contact(0, 1)

        def ask() -> None:
            prepared.first_contact(0, 1)

        def set_and_ask(displacement=displacement) -> None:
            prepared.set(0, above, displacement)
            prepared.first_contact(0, 1)

        ways[f"{name}, asked"] = _least(ask, 2000)
        ways[f"{name}, set and asked"] = _least(set_and_ask, 2000)
    report.table(["two boxes", "time"], [[name, seconds(taken)] for name, taken in ways.items()])
    fixed = ways["apart, asked"]
    return [("a prepared question, at most 10 us", seconds(fixed), fixed <= 10e-6)]


def _searches(
    report: Report, now: dict[str, float], before: dict[str, float], quick: bool
) -> list[tuple[str, str, bool]]:
    """The searches alone: ours as prepared questions, the trial code's kernels."""
    report.section("The search alone")
    torus = generate.torus(2000 if quick else 69696, bumps=0.05)
    prepared = PreparedFirstContact([torus, torus], device="cpu", threads=1)
    prepared.set(1, np.eye(4))
    ours = {}
    for task in TASKS:
        prepared.set(0, task.motion.pose(0.0), task.velocity, task.rotation)
        ours[task.name] = _least(lambda: prepared.first_contact(0, 1).time, 20 if quick else 200)
    columns = {"now, prepared": ours} | {name: _prototype(*told) for name, told in PROTOTYPES.items() if before}
    columns = {name: times for name, times in columns.items() if times}
    searching = [task.name for task in TASKS[:5]]
    sums = {name: sum(times[key] for key in searching) for name, times in columns.items()}
    rows: list[list[Any]] = [
        [task.name, *(seconds(times[task.name]) for times in columns.values()), seconds(now[f"motion {task.name}"])]
        for task in TASKS
    ]
    rows.append(["the five that search", *(seconds(taken) for taken in sums.values()), None])
    report.table(["question", *columns, "now, one call"], rows)
    total = sums["now, prepared"]
    verdicts = [("the five that search, at most 800 us", seconds(total), total <= 800e-6)]
    if len(sums) > 1:
        report.note(
            "Trial code: the kernel alone, against a body at rest, without balls, recession or chains; what floats may "
            "be off by it does not know."
        )
        doubles = sums["four doubles"]
        verdicts.append(("… not slower than the trial code in doubles", ratio(doubles, total), total <= doubles))
    return verdicts


def _prototype(file: str, *told: str) -> dict[str, float]:
    """Seconds of each motion that a file of trial code prints; none where there is no such code."""
    folder, tree = (os.environ.get(name) for name in ("TANGERE_PROTOTYPES", "TANGERE_BEFORE"))
    if not (folder and tree):
        return {}
    environment = os.environ | {"RS": tree, "PYTHONPATH": os.pathsep.join([f"{tree}/src", tree])}
    command = [sys.executable, str(Path(folder) / file), *told]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    printed = re.findall(r"^(.+?) +t=.*kernel +([\d.]+) us", done.stdout, re.MULTILINE)
    return {name: 1e-6 * float(taken) for name, taken in printed}


def _least(call, rounds: int) -> float:
    taken = []
    for _ in range(rounds):
        begin = time.thread_time()
        call()
        taken.append(time.thread_time() - begin)
    return min(taken)


def _trajectories(report: Report, now: dict[str, float], before: dict[str, float]) -> list[tuple[str, str, bool]]:
    report.section("Step by step")
    asked = {"lifter": 1.0 / 6600.0, "door on body": 0.9e-3, "conforming doors": 8e-3, "pylon": 1.0 / 6000.0}
    rows, verdicts = [], []
    for name, most in asked.items():
        step = now[f"scene {name}"]
        rows.append([*_beside(name, f"scene {name}", now, before), f"{1.0 / step:,.0f}", seconds(most)])
        verdicts.append((f"a step of {name}, at most {seconds(most)}", seconds(step), step <= most))
    report.table(["trajectory", "before", "now", "faster", "steps/s", "asked for"], rows)
    report.note("One core; of each step the least of several replays, Python included.")
    return verdicts


def _peers(report: Report, torus: Mesh, quick: bool) -> list[tuple[str, str, bool]]:
    from bench.peers import fcl

    report.section("Distance and all contacts at one instant")
    pair, coal = fcl.FclPair(torus, torus), fcl.CoalPair(torus, torus)
    apart, deep = pose(TASKS[0].at, axis=0, angle=0.5 * np.pi), TASKS[0].motion.pose(1.0)
    there, inside = torus.moving(Rest(apart)), torus.moving(Rest(deep))
    questions = {
        "distance": (
            lambda: distance(there, torus, device="cpu", threads=1).upper,
            partial(pair.distance, apart),
            partial(coal.distance, apart),
        ),
        "all contacts": (
            lambda: len(intersecting_pairs(inside, torus, device="cpu", threads=1)),
            partial(pair.contacts, deep),
            partial(coal.contacts, deep),
        ),
    }
    rows, verdicts = [], []
    for name, ways in questions.items():
        timings = measure(
            dict(zip(("tangere", "python-fcl", "coal"), ways, strict=True)),
            rounds=5 if quick else 40,
            clock=time.thread_time,
        )
        best = {who: min(timing.rounds) for who, timing in timings.items()}
        rows += [[name, who, seconds(taken), ratio(taken, best["tangere"])] for who, taken in best.items()]
        fastest = min(best["python-fcl"], best["coal"])
        verdicts.append(
            (f"{name}, three times as fast as peers", ratio(fastest, best["tangere"]), fastest >= 3.0 * best["tangere"])
        )
    report.table(["question", "by", "time", "against ours"], rows)
    return verdicts


def _busiest(call, rounds: int) -> float:
    """Processor time of the busiest thread of this process during a call, the least of many rounds (Linux)."""

    def running() -> dict[str, float]:
        """Seconds of each thread: Linux makes the number of its clock from that of the thread."""
        threads = [task.name for task in Path("/proc/self/task").iterdir()]
        return {thread: time.clock_gettime((~int(thread) << 3) | 6) for thread in threads}

    taken = []
    for _ in range(rounds):
        begin = running()
        call()
        end = running()
        taken.append(max(end[thread] - begin.get(thread, 0.0) for thread in end))
    return min(taken)


def _threads(report: Report, torus: Mesh, quick: bool) -> list[tuple[str, str, bool]]:
    report.section("Two threads on one question")
    doors = recorded("conforming doors", 60 if quick else ACTIONS)
    trajectory = doors.trajectory[doors.regime == "sliding"]
    rows, verdicts = [], []
    questions = {task.name: (torus.moving(task.motion), torus) for task in TASKS}
    for k in (0, len(trajectory) // 2):
        questions[f"conforming doors, step {k}"] = trajectory.part.moving(trajectory.motion[k]), trajectory.fixed
    for name, (a, b) in questions.items():
        ways = {n: partial(first_contact, a, b, device="cpu", threads=n) for n in (1, 2)}
        timings = measure(ways, rounds=5 if quick else 60)
        one, two = (min(timings[n].rounds) for n in ways)
        same = timings[1].result.time == timings[2].result.time
        by_work = None
        if one > 2e-3:
            rounds = 5 if quick else 60
            alone, busiest = _least(ways[1], rounds), _busiest(ways[2], rounds)
            by_work = ratio(alone, busiest)
            verdicts.append((f"{name}: two threads at least 1.7 times as fast", ratio(one, two), one >= 1.7 * two))
            verdicts.append((f"{name}: … by work", by_work, alone >= 1.7 * busiest))
        else:
            verdicts.append((f"{name}: two threads not slower", ratio(one, two), two <= 1.1 * one))
        rows.append([name, seconds(one), seconds(two), ratio(one, two), by_work, "yes" if same else "no"])
    report.table(["question", "one thread", "two", "faster", "by work", "same bits"], rows)
    report.note(
        "Wall time, the least of many rounds; two cores. By work: processor time of one thread alone over that of the "
        "busier of two, what would be faster if nobody else used the machine."
    )
    return verdicts
