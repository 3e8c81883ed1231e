"""Crowds against pyrvo (ORCA) and against a kd-tree built anew at every step.

An open field with half an agent per square metre, random goals, steps of 1/30 s, neighbours within 1.5 m. Overlaps are
pairs nearer than the sum of their radii after the same number of steps. pyrvo decides in Python nothing during a step.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from bench.harness import Report, SkippedError, count, measure, ratio, seconds
from bench.pitiot_crowd_figures import make_steps
from tangere.crowd import Bubbles, Orca, Simulation
from tangere.crowd.scenarios import field
from tangere.runtime import thread_count, using_threads

FEATURES = ["F-P-79"]

RANGE, RADIUS, DT = 1.5, 0.3, 1.0 / 30.0


def run(report: Report, quick: bool = False) -> None:
    try:
        import pyrvo  # noqa: F401
    except ImportError as error:
        raise SkippedError("pyrvo is not installed") from error
    report.packages += ["pyrvo", "scipy"]
    rows, rates = [], {}
    for number in (300,) if quick else (1_000, 10_000, 100_000):
        steps = 2 if quick else max(2, 20_000 // number)
        for threads in sorted({1, thread_count()}):
            with using_threads(threads):
                row, rates[number, threads] = _row(number, steps, threads, quick)
                rows.append(row)
    columns = ["agents", "threads", "bubbles", "ORCA", "pyrvo", "pyrvo / bubbles", "pyrvo / ORCA", "kd-tree alone"]
    report.table([*columns, "agent-steps/s", "overlaps: bubbles, ORCA, pyrvo"], rows)
    gained = [f"{count(n)} agents: x {rates[n, t] / rates[n, 1]:.2f}" for n, t in rates if t > 1]
    report.note(
        f"On {thread_count()} threads against one: {', '.join(gained) or 'there is one'}. Asked for: three times "
        "pyrvo's agent-steps a second with no more overlaps. pyrvo runs on the threads it chooses by itself."
    )


def _row(number: int, steps: int, threads: int, quick: bool) -> tuple[list[str], float]:
    """A row of the table, and our agent-steps a second."""
    from scipy.spatial import cKDTree

    ours = {name: field(number, cell=RANGE, behaviour=rule, device="cpu") for name, rule in _rules().items()}
    peer = _peer(ours["bubbles"])
    places = ours["bubbles"].positions[:, :2]
    timings = measure(
        {
            **{name: partial(make_steps, simulation, steps) for name, simulation in ours.items()},
            "pyrvo": lambda: [peer.do_step() for _ in range(steps)],
            "kd-tree": lambda: [cKDTree(places).query_pairs(RANGE, output_type="ndarray") for _ in range(steps)],
        },
        rounds=3 if quick else 5,
        at_most=30.0,
    )
    times = {name: timing.median / steps for name, timing in timings.items()}
    end = np.array([(place.x, place.y) for place in map(peer.get_agent_position, range(number))])
    overlaps = [int(simulation.observe().overlaps.sum()) // 2 for simulation in ours.values()]
    overlaps.append(len(cKDTree(end).query_pairs(2 * RADIUS)))
    told = [seconds(times[name]) for name in ("bubbles", "ORCA", "pyrvo")]
    ratios = [ratio(times["pyrvo"], times[name]) for name in ("bubbles", "ORCA")]
    rate = number / times["bubbles"]
    ended = ", ".join(map(str, overlaps))
    return [count(number), str(threads), *told, *ratios, seconds(times["kd-tree"]), count(rate), ended], rate


def _rules() -> dict[str, Bubbles | Orca]:
    return {"bubbles": Bubbles(range=RANGE), "ORCA": Orca(range=RANGE, max_speed_factor=1.3)}


def _peer(simulation: Simulation):
    """The same agents in pyrvo, with the velocities they want at the start."""
    import pyrvo

    peer = pyrvo.RVOSimulator()
    peer.set_time_step(DT)
    routes = simulation.points.routes  # at the start everybody is under way
    places, goals = simulation.positions[:, :2], routes.points.numpy()[routes.current.numpy(), :2]
    speed = simulation.points.traits["speed"]
    wish = (goals - places) * (speed / np.linalg.norm(goals - places, axis=1))[:, None]
    for number, place in enumerate(places.tolist()):
        peer.add_agent(place, RANGE, 10, 2.0, 2.0, RADIUS, float(1.3 * speed[number]))
        peer.set_agent_pref_velocity(number, wish[number].tolist())
    return peer
