"""What motors do is what bodies have, and what is lost on the way is not theirs."""

from __future__ import annotations

import numpy as np
import pytest

import tangere as tg
from tangere.dynamics import Body, World

BAR, CUBE = tg.generate.box((1.0, 0.2, 0.2)), tg.generate.box((1.0, 1.0, 1.0))


def at(x=0.0, y=0.0, z=0.0):
    pose = np.eye(4)
    pose[:3, 3] = x, y, z
    return pose


@pytest.mark.parametrize("force", [None, 50.0])
def test_what_spins_up_a_wheel_is_its_energy(force):
    world = World([Body(BAR)], gravity=(0.0, 0.0, 0.0), device="cpu")
    world.join("hinge", 0, at=(0.0, 0.0, 0.0), axis=(0.0, 0.0, 1.0), speed=3.0, force=force, name="motor")
    world.run(steps=50)
    inertia = 40.0 * (1.0 + 0.04) / 12.0
    assert world.work["motor"] == pytest.approx(0.5 * inertia * 9.0, rel=1e-12)
    world.drive_joint("motor", speed=0.0)  # a brake takes it back
    world.run(steps=50)
    assert world.work["motor"] == pytest.approx(0.0, abs=1e-9)


def test_what_lifts_does_weight_times_height():
    world = World([Body(CUBE)], device="cpu")
    world.join("slider", 0, at=(0.0, 0.0, 0.0), axis=(0.0, 0.0, 1.0), speed=0.5, name="lift")
    world.join("slider", 0, at=(0.0, 0.0, 0.0), axis=(0.0, 0.0, 1.0), name="rail")
    world.run(1.0)
    assert world.work["lift"] == pytest.approx(1000.0 * 9.81 * 0.5 + 125.0, rel=0.01)
    assert world.work["rail"] == 0.0


def test_a_force_does_force_times_way_and_a_stalled_motor_nothing():
    wall = Body(CUBE, at(x=3.0), fixed=True)
    world = World([Body(CUBE), wall], gravity=(0.0, 0.0, 0.0), device="cpu")
    world.join("slider", 0, at=(0.0, 0.0, 0.0), axis=(1.0, 0.0, 0.0), force=500.0, name="push")
    world.run(2.0)  # 1 m of 2
    assert world.work["push"] == pytest.approx(500.0 * world.coordinates["push"], rel=0.01)
    world.run(3.0)
    done = world.work["push"]
    assert world.coordinates["push"] == pytest.approx(2.0, abs=1e-3)
    world.run(1.0)  # it pushes against the wall
    assert world.work["push"] == pytest.approx(done, abs=1e-6)


def test_a_step_that_fails_leaves_work_as_it_was():
    world = World([Body(BAR)], gravity=(0.0, 0.0, 0.0), device="cpu")
    world.join("hinge", 0, at=(0.0, 0.0, 0.0), axis=(0.0, 0.0, 1.0), speed=3.0, force=5.0, name="motor")
    world.run(steps=5)
    before, record = world.work, world.phases["record"]

    def fails(step):
        record(step)
        raise KeyboardInterrupt

    world.phases["record"] = fails
    with pytest.raises(KeyboardInterrupt):
        world.step()
    assert world.work == before
    world.phases["record"] = record
    world.step()
    assert world.work["motor"] > before["motor"]
