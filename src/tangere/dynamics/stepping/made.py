"""A step made as a whole: all of its phases, timed, or nothing."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from tangere.dynamics.stepping.options import FASTEST
from tangere.dynamics.stepping.step import WorldStep
from tangere.runtime import InputError, positive, using_threads, whole

#: What each phase does, by its name, in order.
PHASES: dict[str, Callable[[WorldStep], None]] = {
    "predict": WorldStep.predict,
    "gather": WorldStep.gather,
    "respond": WorldStep.respond,
    "walk": WorldStep.walk,
    "truncate": WorldStep.truncate,
    "record": WorldStep.record,
}


def make_step(step: WorldStep, phases: dict[str, Callable[[WorldStep], None]]) -> dict[str, float]:
    """One step; whatever stops it, an error or Ctrl-C, leaves everything where it began. Seconds by phase."""
    with step.lock, using_threads(step.options.threads):
        step.save()
        try:
            step.refuse_overlaps()
            step.begin()
            seconds = dict.fromkeys(phases, 0.0)
            while step.unfinished:  # most steps are made in one part
                step.begin_part()
                for name, phase in phases.items():
                    began = time.perf_counter()
                    phase(step)
                    seconds[name] += time.perf_counter() - began
        except BaseException as error:
            told = _explained(error, step)
            _restore(step)
            if told is not error:
                raise told from error
            raise
    return seconds


def _restore(step: WorldStep) -> None:
    """Undo a step, also while Ctrl-C is pressed again and again."""
    done = False
    while not done:
        try:
            step.restore()
            done = True
        except KeyboardInterrupt:  # what stopped the step is raised when it is undone
            continue


def _explained(error: BaseException, step: WorldStep) -> BaseException:
    """What stopped a step, in words of users where numbers went beyond all bounds."""
    if not isinstance(error, InputError):
        return error
    found = [np.abs(each.numpy()) for each in (step.free, step.solved.velocity, step.state.velocity)]
    speed = np.max(found, axis=0).max(axis=1, initial=0.0)
    wild = ~(speed < FASTEST)
    if not wild.any():
        return error
    body = int(np.argmax(wild))
    return InputError(
        f"step {step.steps}: body {body} ({step.bodies[body].name!r}) would go faster than {FASTEST:g} m/s"
        " or rad/s: a force, a torque or a speed is too large"
    )


def steps_in(seconds: float | None, steps: int | None, dt: float) -> int:
    """How many steps `run` makes: for so long, to the nearest step and at least one, or so many."""
    if (seconds is None) == (steps is None):
        raise InputError("run: say how long, run(seconds), or how many steps, run(steps=n), and not both")
    return whole(steps, "steps") if seconds is None else max(1, round(positive(seconds, "seconds") / dt))
