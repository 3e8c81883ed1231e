"""First contact of rigid parts of 70,000 triangles and 20,000 to 80,000 in assemblies: how fast, and who is right?

Six motions of two bumpy tori of 69,696 triangles, trees prepared, one core; every mode of python-fcl's continuous query
and rapier3d's nonlinear cast in the same run, each judged against dense sampling (2,001 discrete tests with FCL, then
halving). Then distance and all contacts at one instant beside python-fcl and coal. Last, the trajectories of the
virtual operator, step by step, through the public call.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from bench.harness import Report, count, measure, ratio, seconds
from bench.operator import SCENES, recorded
from bench.peers import fcl, rapier
from bench.redon_table_3_2 import percentiles
from bench.replay import Replay, replay
from bench.tori import TASKS
from tangere.bvh.obb import ObbTree
from tangere.bvh.recession import RecessionCones
from tangere.motion import Rest, Twist
from tangere.motion.poses import quaternions_of
from tangere.query.distance import distance
from tangere.query.first_contact import first_contact
from tangere.query.intersection import intersecting_pairs
from tangere.shape import generate
from tangere.shape.generate.build.assembly import pose
from tangere.shape.mesh import Mesh

FEATURES: list[str] = []

#: Largest error of a time of contact that passes for right, as a part of the step: one of a thousand samples.
RIGHT = 1e-3


#: Steps per second, or seconds per step, asked for, by scene; the regime that counts.
ASKED = {
    "lifter": ("", "660 steps/s, better 6,600"),
    "door on body": ("sliding", "5 ms a step"),
    "conforming doors": ("sliding", "30 ms a step"),
    "pylon": ("", "60 steps/s"),
}


def run(report: Report, quick: bool = False) -> None:
    report.packages += ["python-fcl", "coal", "rapier3d"]
    torus = generate.bumpy_torus(66, 33) if quick else generate.bumpy_torus()
    pair = fcl.FclPair(torus, torus)
    truths = {task.name: pair.truth(task.motion, 501 if quick else 2001) for task in TASKS}
    _motions(report, torus, pair, truths, quick)
    _instants(report, torus, pair, quick)
    _trajectories(report, quick)


def _motions(report: Report, torus: Mesh, pair: fcl.FclPair, truths: dict[str, float], quick: bool) -> None:
    report.section("Six motions")
    ours = measure(
        {task.name: partial(_first_contact, torus, task.motion) for task in TASKS}, rounds=7 if quick else 31
    )
    cast = rapier.RapierPair(torus, torus)
    rows, verdicts = [], []
    for task in TASKS:
        timing, truth = ours[task.name], truths[task.name]
        motion = task.motion
        samples = motion.pose(np.linspace(0.0, 1.0, 1001))
        sampling = measure({"sampled": partial(pair.sampled, samples)}, rounds=3)["sampled"]
        peers = {"python-fcl, collide() at 1,001 true poses": (sampling.result, sampling.median)}
        peers |= {f"python-fcl, {mode}": pair.continuous(mode, motion) for mode in fcl.MODES}
        quaternion = quaternions_of(motion.pose(0.0)[None, :3, :3])[0]
        peers["rapier3d, nonlinear cast"] = cast.cast(quaternion, task.at, task.velocity, task.rotation)
        rows.append([task.name, _time(truth), _time(timing.result), _verdict(timing.result, truth), timing])
        for name, (found, taken) in peers.items():
            against = ratio(taken, timing.median)
            verdicts.append([task.name, name, _time(found), _verdict(found, truth), seconds(taken), against])
    report.table(["motion", "truth", "found", "verdict", "time"], rows)
    slowest = max(timing.median for timing in ours.values())
    report.note(f"Asked for: all right, never late, at most 1 ms each, better 0.5; slowest median: {seconds(slowest)}.")
    report.table(["motion", "peer", "found", "verdict", "time", "against ours"], verdicts)
    report.note(
        f"""Right: within {RIGHT:g} of a step of the truth. A sampler is late by up to one sample by design, and cannot
        know what happens between them. FCL is given the end poses, so that it cannot be told of 20 rad; translation
        modes ignore turns. Fresh models are given to it every time, their building not counted. Peers other than the
        sampler were run once."""
    )


def _instants(report: Report, torus: Mesh, pair: fcl.FclPair, quick: bool) -> None:
    report.section("Distance and all contacts at one instant")
    coal = fcl.CoalPair(torus, torus)
    apart, deep = pose(TASKS[0].at, axis=0, angle=0.5 * np.pi), TASKS[0].motion.pose(1.0)

    def asked(at: np.ndarray):
        return torus.moving(Rest(at))

    questions = {
        "distance": (
            lambda: distance(asked(apart), torus, device="cpu").upper,
            lambda: pair.distance(apart),
            lambda: coal.distance(apart),
            lambda value: f"{value:.9f}",
        ),
        "all contacts": (
            lambda: len(intersecting_pairs(asked(deep), torus, device="cpu")),
            lambda: pair.contacts(deep),
            lambda: coal.contacts(deep),
            str,
        ),
    }
    rows = []
    for name, (ours, theirs, coals, show) in questions.items():
        contenders = {"tangere": partial(_alone, ours), "python-fcl": theirs, "coal": coals}
        timings = measure(contenders, rounds=5 if quick else 15)
        best = timings["tangere"].median
        rows += [[name, who, show(t.result), t, ratio(t.median, best)] for who, t in timings.items()]
    report.table(["question", "by", "answer", "time", "against ours"], rows)
    report.note("Asked for: at least as fast, better three times as fast. Contacts are pairs of triangles that meet.")


def _trajectories(report: Report, quick: bool) -> None:
    report.section("Step by step")
    rows = []
    for name, (regime, asked) in ASKED.items():
        recording = recorded(name, 60 if quick else None)
        chosen = (recording.regime == regime) if regime else np.ones(len(recording.regime), bool)
        trajectory = recording.trajectory[chosen]
        for mesh in (trajectory.part, trajectory.fixed):  # what a prepared part has in its file
            RecessionCones.of(mesh, ObbTree.of(mesh, "cpu"), device="cpu")
        for recession in (False, True) if name == "conforming doors" else (False,):
            replay(trajectory[:5], recession=recession, device="cpu", threads=1)
            rounds = [
                replay(trajectory, recession=recession, device="cpu", threads=1) for _ in range(1 if quick else 3)
            ]
            least = np.min([one.seconds for one in rounds], axis=0)
            result = Replay(rounds[0].time, rounds[0].status, rounds[0].features, least, rounds[0].counts)
            hits = f"{int(np.isfinite(result.time).sum())} of {len(result)}"
            title = SCENES[name].text + (", recession on" if recession else "")
            mean = seconds(float(least.mean()))
            rows.append([title, regime or "all", hits, count(result.rate), mean, *percentiles(result), asked])
    report.table(
        ["scene", "actions", "touch", "steps/s", "mean", "median", "95 %", "99 %", "slowest", "asked for"], rows
    )
    report.note(
        """One core, Python included; of each step the least of three replays. Sliding actions press the part against
        its surroundings; the curved skins of the conforming doors lie on each other all over, a few tenths of a
        millimetre apart, the worst case for any method that prunes by boxes."""
    )


def _first_contact(torus: Mesh, motion: Twist) -> float:
    return first_contact(torus.moving(motion), torus, device="cpu", threads=1).time


def _alone(question):
    from tangere.runtime import using_threads

    with using_threads(1):
        return question()


def _time(value: float) -> str:
    return "none" if np.isinf(value) else f"{value:.6f}"


def _verdict(found: float, truth: float) -> str:
    if np.isinf(truth):
        return "right" if np.isinf(found) else "WRONG: there is none"
    if np.isinf(found):
        return "WRONG: missed"
    off = found - truth
    if abs(off) <= RIGHT:
        return "right" if off <= 1e-8 else f"late by {off:.1e}"
    return f"WRONG: {'late' if off > 0.0 else 'early'} by {abs(off):.3f}"
