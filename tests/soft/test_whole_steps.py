"""A step is done or not done: what stops it undoes it, and no thread sees half of one."""

from __future__ import annotations

import os
import signal
import sys
import threading

import numpy as np
import pytest

from tangere.runtime import InputError
from tangere.shape import generate
from tangere.soft import Body, Simulation
from tangere.soft.step import StepPipeline

STEPS = 24


def cloth_on_a_floor(response: str = "hard", **options) -> Simulation:
    """A cloth that crumples on a plate; it is fast enough to be held back."""
    plate = generate.plate(300, size=(2.0, 2.0, 0.1))
    sheet = generate.sheet(200, size=(1.0, 1.0))
    turn = np.array([[0.8, 0.0, 0.6], [0.0, 1.0, 0.0], [-0.6, 0.0, 0.8]])
    cloth = Body(
        sheet.replace(vertices=sheet.vertices @ turn.T + [0, 0, 0.4]), density=100.0, velocity=(0.0, 0.0, -8.0)
    )
    floor = Body(plate.replace(vertices=plate.vertices - [0, 0, 0.3]), fixed=True)
    return Simulation([cloth, floor], response=response, device="cpu", **options)


def state_of(simulation: Simulation) -> np.ndarray:
    return np.concatenate([simulation[0].positions, simulation[0].velocities])


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, np.ndarray]:
    """Where the cloth is after all steps, by response."""
    states = {}
    for response in ("hard", "penalty"):
        simulation = cloth_on_a_floor(response)
        simulation.run(steps=STEPS)
        states[response] = state_of(simulation)
    return states


class Stopped(BaseException):
    """Not even an `Exception`, as `KeyboardInterrupt` is none."""


@pytest.mark.parametrize("response", ["hard", "penalty"])
@pytest.mark.parametrize("phase", ["reset", "predict", "detect", "respond", "solve", "truncate", "record"])
def test_a_step_that_is_stopped_in_any_phase_was_never_begun(phase, response, undisturbed):
    simulation = cloth_on_a_floor(response)
    if phase not in simulation.phases:
        pytest.skip(f"{response} has no such phase")
    plain, begun = simulation.phases[phase], 0

    def stopping(s: StepPipeline) -> None:
        nonlocal begun
        plain(s)
        begun += 1
        if begun % 3 == 1:
            raise Stopped

    simulation.phases[phase] = stopping
    while simulation.steps < STEPS:
        before, steps, time = state_of(simulation), simulation.steps, simulation.time
        try:
            simulation.step()
        except Stopped:
            assert np.array_equal(state_of(simulation), before)
            assert (simulation.steps, simulation.time) == (steps, time)
            assert len(simulation.contacts) == simulation.rows.count == 0
    assert begun > STEPS
    assert np.array_equal(state_of(simulation), undisturbed[response])


@pytest.mark.parametrize("response", ["hard", "penalty"])
def test_a_step_may_be_stopped_between_any_two_calls_of_functions(response, undisturbed, rng):
    simulation, stopped = cloth_on_a_floor(response, threads=1), 0
    while simulation.steps < STEPS:
        left = int(rng.integers(1, 100))

        def count(frame, event: str, argument) -> None:
            nonlocal left
            if event == "call" and "tangere/soft" in frame.f_code.co_filename:
                left -= 1
                if left == 0:
                    raise Stopped

        sys.setprofile(count)
        try:
            simulation.step()
        except Stopped:
            stopped += 1
        finally:
            sys.setprofile(None)
        simulation.run(steps=min(1, STEPS - simulation.steps))
    assert stopped > STEPS / 4
    assert np.array_equal(state_of(simulation), undisturbed[response])


def make_parts(simulation: Simulation, parts: int, made: int, stop: bool = False) -> None:
    with simulation.step_in_parts(parts) as advance:
        for _ in range(made):
            advance()
        if stop:
            raise Stopped


@pytest.mark.parametrize("response", ["hard", "penalty"])
def test_a_step_in_parts_goes_where_short_steps_go_and_is_undone_as_one(response):
    short, long = (cloth_on_a_floor(response, dt=dt, sweeps=20) for dt in (0.005, 0.02))
    for k in range(8):
        for _ in range(4):
            short.step()
        before = state_of(long)
        if k % 2 == 0:
            with pytest.raises(Stopped):
                make_parts(long, 4, 3, stop=True)
            assert np.array_equal(state_of(long), before)
            assert long.steps == k
        make_parts(long, 4, 4)
        assert np.array_equal(state_of(long), state_of(short))
    assert (long.steps, long.time) == (8, short.time)
    with pytest.raises(InputError, match="step_in_parts: 1 of 2 parts were made"):
        make_parts(long, 2, 1)
    assert np.array_equal(state_of(long), state_of(short))
    long.step()
    assert not np.array_equal(state_of(long), state_of(short))


@pytest.mark.parametrize("response", ["hard", "penalty"])
def test_what_is_kept_of_steps_of_another_length_makes_no_difference(response):
    keeping, forgetting = (cloth_on_a_floor(response, dt=0.02, sweeps=20) for _ in range(2))
    pipeline = keeping._pipeline
    pipeline.prepare_dt(0.005)
    assert pipeline.dt == 0.02
    for parts in (1, 4, 1, 4, 2, 1, 4):
        for simulation in (keeping, forgetting):
            simulation._pipeline._other_dt = simulation._pipeline._other_dt if simulation is keeping else {}
            make_parts(simulation, parts, parts)
        assert np.array_equal(state_of(keeping), state_of(forgetting))
    assert pipeline._other_dt["dt"] == 0.02


def test_what_patches_are_compared_with_is_as_before_a_step_that_is_stopped():
    simulation = cloth_on_a_floor()
    certificates, plain = simulation._pipeline.patches.certificates, simulation.phases["record"]
    reference, kept = certificates._reference, certificates._kept
    arrays = [reference.rest, reference.duals, reference.tangents, reference.clearance, kept.wait, kept.nearest]
    changed = 0

    def stopping(s: StepPipeline) -> None:
        raise Stopped

    for _ in range(STEPS):
        before = [array.numpy().copy() for array in arrays]
        simulation.phases["record"] = stopping
        with pytest.raises(Stopped):
            simulation.step()
        assert all(np.array_equal(array.numpy(), was) for array, was in zip(arrays, before, strict=True))
        simulation.phases["record"] = plain
        simulation.step()
        changed += not np.array_equal(reference.rest.numpy(), before[0])
    assert changed > 3


def test_cloth_does_not_pass_through_the_floor_after_ctrl_c():
    simulation = cloth_on_a_floor()
    simulation[0].set_state(velocities=np.tile([0.0, 0.0, -60.0], (len(simulation[0].positions), 1)))
    solve = simulation.phases["solve"]

    def interrupted(s: StepPipeline) -> None:
        solve(s)
        os.kill(os.getpid(), signal.SIGINT)

    simulation.phases["solve"] = interrupted
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # who starts tests in the background ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            simulation.step()
    finally:
        signal.signal(signal.SIGINT, before)
    simulation.phases["solve"] = solve
    simulation.run(steps=10)
    assert simulation[0].positions[:, 2].min() > -0.25


def test_two_threads_make_the_steps_that_one_makes(undisturbed):
    simulation, looks = cloth_on_a_floor(), []
    threads = [threading.Thread(target=simulation.run, kwargs={"steps": STEPS // 2}) for _ in range(2)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        looks.append(simulation[0].positions[:, 2].min())
        _ = simulation.meshes(), simulation.energy, simulation.contacts, simulation.truncation
    assert simulation.steps == STEPS
    assert min(looks) > -0.25  # nobody saw what the solver alone had done
    assert np.array_equal(state_of(simulation), undisturbed["hard"])


def test_a_state_that_cannot_be_used_changes_nothing():
    simulation = cloth_on_a_floor()
    before = state_of(simulation)
    with pytest.raises(InputError, match="velocities of body 0 have shape"):
        simulation[0].set_state(positions=simulation[0].positions - [0, 0, 5.0], velocities=np.zeros((3, 3)))
    assert np.array_equal(state_of(simulation), before)
