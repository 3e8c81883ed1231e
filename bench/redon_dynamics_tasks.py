"""The thesis' tasks at its sizes: a body bounces, a door is placed, a motor and a pylon's part are taken out: at 60 Hz?

Redon 2002, chapter 6, did them on a Pentium of 1 GHz with a mouse; here a hand that trembles by five security distances
leads the parts, in steps of 1/60 s, one thread, processor time. The exact test looks at every tenth state.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from bench.harness import Report, seconds
from tangere.dynamics import World, scenes
from tangere.motion import Rest
from tangere.query.intersection import intersects

FEATURES = ["F-R-67", "F-R-68", "F-R-69", "F-R-70"]

TASKS: dict[str, Callable[..., World]] = {
    "a body bounces with friction": scenes.bouncing_body,
    "a door is put into its opening": scenes.door_positioning,
    "a motor is taken out of a door": scenes.motor_removal,
    "a part pivots out of a pylon": scenes.pylon_extraction,
}


def run(report: Report, quick: bool = False) -> None:
    rows = [_row(name, make, 30 if quick else 600) for name, make in TASKS.items()]
    columns = ["task", "triangles", "steps", "mean", "95 %", "slowest", "steps per second"]
    report.table([*columns, "from the target", "states that intersect", "held back"], rows)
    report.note(
        "Asked for: 60 steps per second at least, within two security distances of the target, no intersection."
    )


def _row(name: str, make: Callable[..., World], most: int) -> list[object]:
    make(device="cpu", threads=1).run(steps=5)  # compiles
    world = make(device="cpu", threads=1)
    guide = world.phases.get("guide")
    taken, meeting = [], 0
    while world.steps < (min(most, 180) if guide is None else most) and not (guide is not None and guide.done):
        began = time.process_time()
        world.step()
        taken.append(time.process_time() - began)
        if world.steps % 10 == 0:
            bodies = [body.body.mesh.moving(Rest(body.pose)) for body in world]
            meeting += bool(intersects(*bodies, device="cpu"))
    mean = float(np.mean(taken))
    missing = (
        "-" if guide is None else f"{1e3 * guide.missing()[0]:.2f} mm ({guide.missing()[0] / world.separation:.1f})"
    )
    triangles = sum(len(body.body.mesh.faces) for body in world if body.body.mesh.name != "box")
    columns = [name, f"{triangles:,}", world.steps, seconds(mean), seconds(float(np.percentile(taken, 95)))]
    columns += [seconds(max(taken)), f"{1.0 / mean:.0f}"]
    return [*columns, missing, meeting, world.truncation.all_bodies]
