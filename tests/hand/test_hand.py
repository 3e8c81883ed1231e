"""A hand holds a part: it follows, is stopped, slides, and the same run is the same to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

import tangere as tg
from tangere.dynamics import Body, World
from tangere.hand import Hand, SimulatedDevice
from tangere.runtime import InputError, UnsupportedError


def posed(x=0.0, y=0.0, z=0.0):
    pose = np.eye(4)
    pose[:3, 3] = x, y, z
    return pose


def cube_on_table(height=0.11, device="cpu", **options):
    """A cube of 0.1 m above a wide table whose top is at 0.05 m."""
    table = Body(tg.generate.box((1.0, 1.0, 0.1)), name="table", fixed=True)
    return World(
        [table, Body(tg.generate.box((0.1, 0.1, 0.1)), posed(z=height), name="cube")], device=device, **options
    )


def pressed(depth, slide=0.0, height=0.11):
    """The hand goes down by a depth in a second, and sideways."""
    return lambda time: posed(slide * time, 0.0, height - depth * min(time, 1.0))


def test_a_part_that_is_free_follows_the_device():
    world = cube_on_table(height=0.5)
    hand = Hand(world, "cube", SimulatedDevice(lambda time: posed(0.05 * time, 0.0, 0.5)))
    hand.run(1.0)
    device = hand.device.read(1.0).pose
    assert np.abs(hand.proxy[:3, 3] - device[:3, 3]).max() < 2e-4  # it lags by the coupling's 2 ms
    assert np.array_equal(world["cube"].pose, hand.pose)
    assert hand.report.walks_asked == 0


def test_a_part_that_is_pressed_rests_at_the_separation_and_pushes_back():
    world = cube_on_table()
    hand = Hand(world, "cube", SimulatedDevice(pressed(0.03)))
    hand.run(2.0)
    assert hand.pose[2, 3] == pytest.approx(0.1 + world.separation, abs=1e-7)
    # two springs in a row, of the hand (400 N/m) and of the coupling (2000 N/m), are 20 mm too short
    assert hand.force[2] == pytest.approx(0.02 / (1 / 400.0 + 1 / 2000.0), rel=2e-3)
    assert hand.report.passive
    assert hand.report.walks_stopped == 0
    assert len(hand.contacts) == 4
    assert hand.clearance == pytest.approx(world.separation, rel=1e-3)


def test_a_pressed_part_slides_as_if_nothing_held_it():
    hand = Hand(cube_on_table(), "cube", SimulatedDevice(pressed(0.02, slide=0.05)))
    hand.run(2.0)
    assert hand.pose[0, 3] == pytest.approx(0.1, abs=2e-3)
    assert abs(hand.force[0]) < 1e-2


def test_two_runs_are_the_same_to_the_last_bit():
    def run():
        hand, forces = Hand(cube_on_table(), "cube", SimulatedDevice(pressed(0.03, slide=0.02))), []
        hand.run(1.0, after_tick=lambda time: forces.append(hand.force))
        return np.array(forces), hand.pose

    first, second = run(), run()
    assert np.array_equal(first[0], second[0])
    assert np.array_equal(first[1], second[1])


def test_both_loops_may_tell_each_other_by_numbers():
    """As two processes do: the same bits as in one."""
    one = Hand(cube_on_table(), "cube", SimulatedDevice(pressed(0.03)))
    one.run(0.5)
    fast = Hand(cube_on_table(), "cube", SimulatedDevice(pressed(0.03)))
    slow = Hand(cube_on_table(), "cube", SimulatedDevice(pressed(0.03)))
    for number in range(1, 501):
        fast.fast_tick(number / 1000.0)
        if number % 5 == 0:
            fast.put_rows(slow.look(fast.proxy_message))
    assert np.array_equal(one.force, fast.force)
    assert np.array_equal(one.pose, slow.pose)


def test_a_pacer_calls_the_ticks():
    class Clock:
        late, lateness = 2, 0.003

        def run(self, fast, slow, seconds, *, fast_rate, slow_rate):
            for number in range(1, round(seconds * fast_rate) + 1):
                fast(number / fast_rate)
                if number % round(fast_rate / slow_rate) == 0:
                    slow(number / fast_rate)

    paced, lockstep = (Hand(cube_on_table(), "cube", SimulatedDevice(pressed(0.03))) for _ in range(2))
    paced.run(0.2, pacer=Clock())
    lockstep.run(0.2)
    assert np.array_equal(paced.force, lockstep.force)
    assert (paced.report.late, paced.report.lateness) == (2, 0.003)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"stiffness": 0.0}, "stiffness must be positive"),
        ({"damping": -1.0}, "damping must be"),
        ({"metaphor": "rope"}, "metaphor must be one of spring, incremental"),
        ({"law": "6.4"}, "law must be one of coupling, drag"),
        ({"slow_rate": 300.0}, "multiple of slow_rate"),
        ({"scale": -1.0}, "scale must be positive"),
        ({"reach": 1e-9}, "reach must be more than"),
        ({"grip": (1.0, 2.0)}, "grip must be three"),
    ],
)
def test_what_a_hand_cannot_use_is_told_by_its_name(options, told):
    with pytest.raises(InputError, match=told):
        Hand(cube_on_table(), "cube", SimulatedDevice(np.eye(4)), **options)


def test_what_cannot_be_held_is_refused():
    world = cube_on_table()
    with pytest.raises(InputError, match="is fixed: a hand holds"):
        Hand(world, "table", SimulatedDevice(np.eye(4)))
    world.join("hinge", "cube", at=[0.0, 0.0, 0.11], axis=[0.0, 0.0, 1.0])
    with pytest.raises(UnsupportedError, match="joint"):
        Hand(world, "cube", SimulatedDevice(np.eye(4)))
    with pytest.raises(InputError, match="passes through 'table'"):
        Hand(cube_on_table(height=0.09), "cube", SimulatedDevice(np.eye(4)))


def test_a_part_that_is_alone_goes_anywhere():
    world = World([Body(tg.generate.box((0.1, 0.1, 0.1)), name="cube")], device="cpu")
    hand = Hand(world, "cube", SimulatedDevice(lambda time: posed(0.1 * time)))
    hand.run(0.3)
    assert hand.pose[0, 3] == pytest.approx(0.03, abs=2e-3)
    assert hand.clearance == np.inf
    assert len(hand.contacts) == 0


def test_a_slow_tick_sees_bodies_that_were_put_elsewhere():
    world = cube_on_table()
    hand = Hand(world, "cube", SimulatedDevice(pressed(0.03)))
    hand.run(0.1)
    world["table"].set_state(pose=posed(z=-0.02))
    hand.run(1.9)
    assert hand.pose[2, 3] == pytest.approx(0.08 + world.separation, abs=1e-6)
    assert not tg.intersects(*world.meshes(), device="cpu")


@pytest.mark.cuda
def test_a_world_on_cuda_is_felt_as_one_on_the_cpu():
    hands = [Hand(cube_on_table(device=name), "cube", SimulatedDevice(pressed(0.03))) for name in ("cpu", "cuda:0")]
    for hand in hands:
        hand.run(1.5)
    assert np.abs(hands[0].force - hands[1].force).max() < 1e-6
    assert np.abs(hands[0].pose - hands[1].pose).max() < 1e-9


def test_a_part_is_not_put_into_another_one_and_stays_where_it_was():
    world = cube_on_table()
    hand = Hand(world, "cube", SimulatedDevice(pressed(0.0)))
    with pytest.raises(InputError, match=r"body 1 \('cube'\) passes through 'table' there: it stays"):
        hand.place(posed(z=0.07))
    assert hand.pose[2, 3] == world["cube"].pose[2, 3] == 0.11
    hand.run(0.1)
    assert hand.report.walks_stopped == 0
    hand.place(posed(z=0.3))
    assert hand.pose[2, 3] == world["cube"].pose[2, 3] == 0.3
    assert not hand.contacts


@pytest.mark.parametrize("given", [None, np.eye(4), "mouse"])
def test_what_is_no_device_is_refused(given):
    with pytest.raises(InputError, match="device must be a device, as SimulatedDevice is one"):
        Hand(cube_on_table(), "cube", given)
