"""Everything between two steps that later ones depend on: where a run can go on with the same bits.

Known as: checkpoint and restart.
"""

from __future__ import annotations

import numpy as np

from tangere.dynamics.stepping.report import StepTally
from tangere.dynamics.stepping.step import WorldStep

_STATE = ("position", "rotation", "velocity")


def checkpoint_of(step: WorldStep) -> dict[str, np.ndarray]:
    """Arrays by name."""
    tally = step.tally
    found = {name: getattr(step.state, name).numpy().copy() for name in _STATE}
    found["load"] = step.load.numpy().copy()
    found["count"] = np.array([step.steps, step.level, tally.all_solved_again, tally.all_bodies])
    found["lost_time"] = np.array([tally.all_lost_time])
    for part, kept in _parts(step).items():
        found |= {f"{part}/{name}": array for name, array in kept.checkpoint().items()}
    return found


def resume_from(step: WorldStep, kept: dict[str, np.ndarray]) -> None:
    """Go on from a checkpoint of a world of the same bodies and joints."""
    step.placed_anew()
    for name in _STATE:
        getattr(step.state, name).assign(kept[name])
    step.load.assign(kept["load"])
    step.steps, level, again, bodies = (int(number) for number in kept["count"])
    step.split(level)
    step.tally = StepTally(all_solved_again=again, all_bodies=bodies, all_lost_time=float(kept["lost_time"][0]))
    for part, own in _parts(step).items():
        own.resume({key.partition("/")[2]: array for key, array in kept.items() if key.startswith(f"{part}/")})


def _parts(step: WorldStep) -> dict:
    return {"row": step.rows, "joint": step.joints, "sleep": step.sleepers, "jam": step.jams}
