"""A step that is stopped, by an error or Ctrl-C, wherever it is, has never been."""

from __future__ import annotations

import signal

import numpy as np
import pytest
import warp as wp

import tangere as tg
from tangere.dynamics import Body, World
from tangere.dynamics.solver import RigidBodyArrays
from tangere.dynamics.solver.growing_struct import GrowingStruct

PHASES = ("predict", "gather", "respond", "walk", "truncate", "record")


def at(x=0.0, y=0.0, z=0.0):
    pose = np.eye(4)
    pose[:3, 3] = x, y, z
    return pose


def busy():
    """Boxes that fall on each other, a motor, a slider with limits, and something that is driven into them."""
    box = tg.generate.box((0.2, 0.3, 0.4))
    bodies = [Body(tg.generate.box((4.0, 4.0, 0.1)), at(z=-0.05), fixed=True)]
    bodies += [Body(box, at(0.02 * k, 0.03 * k, 0.25 + 0.45 * k), restitution=0.3 * (k % 2)) for k in range(4)]
    bodies += [Body(tg.generate.box((0.1, 0.1, 1.0)), at(1.2, 0.0, 0.6)), Body(box, at(-1.2, 0.0, 0.6))]
    bodies += [Body(box, at(-0.6, 0.0, 0.5), driven=True, velocity=[0.5, 0.0, 0.0])]
    world = World(bodies, device="cpu")
    world.join("hinge", 5, at=[1.2, 0, 0.1], axis=[0, 1, 0], limits=(-0.5, 1.0), speed=3.0, force=1000.0)
    world.join("slider", 6, at=[-1.2, 0, 0.1], axis=[0, 0, 1], limits=(-0.1, 0.3), force=10.0)
    return world


def told(world):
    """Everything that a step leaves behind, as bytes."""
    step = getattr(world, "_step")  # noqa: B009 - copies have no checkpoint of their own
    found = {name: array.tobytes() for name, array in world.checkpoint().items()} if isinstance(world, World) else {}
    found |= {name: getattr(world, name).tobytes() for name in ("poses", "velocities")}
    contacts, impacts = world.contacts, step.impacts()
    found |= {f"contact {name}": getattr(contacts, name).tobytes() for name in ("point_a", "gap", "normal", "key")}
    found |= {f"impact {name}": getattr(impacts, name).tobytes() for name in ("body_a", "impulse", "speed")}
    found |= {"forces": step.forces().tobytes(), "truncation": repr(world.truncation), "steps": world.steps}
    return found


def different(one, other):
    return [name for name in one if one[name] != other[name]]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("copies", [False, True])
def test_a_step_that_fails_in_any_phase_has_never_been(copies, error):
    world, undisturbed = (busy().copies(2) if copies else busy() for _ in range(2))
    for made in (world, undisturbed):
        made.run(steps=35)
    before = told(world)
    assert len(world.contacts) > 4
    for name in PHASES:
        phase = world.phases[name]

        def broken(step, phase=phase):
            phase(step)
            raise error

        world.phases[name] = broken
        with pytest.raises(error):
            world.step()
        world.phases[name] = phase
        assert not different(before, told(world)), name
    for made in (world, undisturbed):
        made.run(steps=15)
    assert not different(told(undisturbed), told(world))


def test_a_step_that_is_interrupted_anywhere_has_never_been():
    world, undisturbed = busy(), busy()
    for made in (world, undisturbed):
        made.run(steps=20)
    rng, stopped = np.random.default_rng(0), 0

    def stop(*_):
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGALRM, stop)
    try:
        for _ in range(60):
            before = told(world)
            try:
                try:
                    signal.setitimer(signal.ITIMER_REAL, rng.uniform(5e-4, 8e-3))
                    world.step()
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0.0)
            except KeyboardInterrupt:
                stopped += 1
            if world.steps == before["steps"]:
                assert not different(before, told(world))
            else:
                undisturbed.step()
    finally:
        signal.signal(signal.SIGALRM, old)
    assert stopped > 5
    assert not different(told(undisturbed), told(world))


def wall(count):
    """Boxes in a row on the ground, that touch each other."""
    bodies = [Body(tg.generate.box((20.0, 4.0, 0.1)), at(z=-0.05), fixed=True)]
    box = tg.generate.box((0.2, 0.3, 0.4))
    bodies += [Body(box, at(0.2002 * k - 4.0, 0.0, 0.2001), spin=[0.0, 0.1, 0.0]) for k in range(count)]
    return World(bodies, device="cpu")


def test_a_step_that_is_interrupted_while_arrays_grow_leaves_none_too_small(monkeypatch):
    """Many contacts at once: every time that room is made, it is interrupted once, and the step tried again."""
    world, undisturbed, zeros, calls = wall(40), wall(40), wp.zeros, [0, 1]

    def interrupted(*given, **options):
        calls[0] += 1
        if calls[0] == calls[1]:
            raise KeyboardInterrupt
        return zeros(*given, **options)

    stopped, done = 0, False
    while not done:
        calls[0], calls[1] = 0, stopped + 1
        monkeypatch.setattr(wp, "zeros", interrupted)
        before = told(world)
        try:
            world.step()
            done = True
        except KeyboardInterrupt:
            stopped += 1
            assert not different(before, told(world))
        monkeypatch.setattr(wp, "zeros", zeros)
    undisturbed.step()
    assert stopped > 10
    for made in (world, undisturbed):
        made.run(steps=3)
    assert not different(told(undisturbed), told(world))


@pytest.mark.parametrize("stop", range(1, 4))
def test_a_struct_whose_growth_is_interrupted_has_the_room_it_tells(monkeypatch, stop):
    growing, zeros, calls = GrowingStruct(RigidBodyArrays(), wp.get_device("cpu"), lambda name: "bodies"), wp.zeros, [0]
    growing.reserve(bodies=20)
    version = growing.version

    def interrupted(*given, **options):
        calls[0] += 1
        if calls[0] == stop:
            raise KeyboardInterrupt
        return zeros(*given, **options)

    monkeypatch.setattr(wp, "zeros", interrupted)
    with pytest.raises(KeyboardInterrupt):
        growing.reserve(bodies=1000)
    monkeypatch.setattr(wp, "zeros", zeros)
    assert growing.version == version
    growing.reserve(bodies=900)
    assert all(len(getattr(growing.struct, name)) >= 900 for name in RigidBodyArrays.vars)
