"""Contacts that change: a cube over the corner of another one, a logo under a finger, a peg in its hole."""

from __future__ import annotations

import numpy as np
import pytest

import tangere as tg
from bench.redon_hand_peg import penalty_peg, proxy_peg
from tangere.dynamics import Body, World
from tangere.hand import Hand, SimulatedDevice, led_part, scenes
from tangere.hand.devices.device import ALL_AXES, DeviceState
from tangere.hand.devices.handle_motion import FollowingHandle, turn_of
from tangere.motion import Twist
from tests.oracles.rigid_worlds import meeting_pairs


def over_the_corner(*, turned=(0.2, 0.15, 0.3), height=0.128, fixed=False, **options):
    """A cube that is pressed on another one and pulled over its corner: forces and certified poses by tick."""
    cube, start = tg.generate.box((0.1, 0.1, 0.1)), np.eye(4)
    start = Twist(start, [0.0, 0.01, height], turned).pose(1.0)
    part = Body(cube, start, fixed=fixed, name="part")
    world = World([Body(cube, fixed=True, name="fixed"), part], device="cpu")

    def path(time):
        pose, slid = start.copy(), max(time - 0.8, 0.0)
        pose[:3, 3] += 0.06 * slid, 0.04 * slid, -0.025 * min(time / 0.8, 1.0)
        return pose

    hand = Hand(world, "part", SimulatedDevice(path), **options)
    forces, poses, crossing = [], [], []

    def after(time):
        forces.append(hand.force)
        poses.append(hand.pose)
        if len(forces) % 25 == 0:
            crossing.append(tg.intersects(*world.meshes(), device="cpu"))

    hand.run(2.6, after_tick=after)
    return hand, np.array(forces), np.array(poses), crossing


@pytest.mark.feature("F-R-74")
@pytest.mark.parametrize("law", ["coupling", "drag"])
def test_a_cube_goes_over_the_corner_of_another_without_a_jolt(law):
    hand, forces, poses, crossing = over_the_corner(law=law)
    assert np.linalg.norm(forces, axis=1).max() > 1.0
    assert poses[-1, 0, 3] > 0.105  # it is beyond
    assert not any(crossing)
    assert np.linalg.norm(np.diff(forces, axis=0), axis=1).max() < 0.3  # in 1 ms
    steps = np.linalg.norm(np.diff(poses[:, :3, 3], axis=0), axis=1)
    assert steps.max() < 1e-3  # in 5 ms
    assert hand.report.walks_stopped == 0


def test_a_part_that_slips_off_an_edge_lets_the_force_down_gently():
    """Without turning all contacts end at once: 1.7 N would be gone in a tick."""
    options = {"turned": (0.0, 0.0, 0.0), "height": 0.115, "fixed": (False, False, False, True, True, True)}
    _, gentle, _, crossing = over_the_corner(**options)
    _, sudden, _, _ = over_the_corner(most_change=1e6, **options)
    falls = [np.linalg.norm(np.diff(forces, axis=0), axis=1).max() for forces in (gentle, sudden)]
    assert falls[1] > 0.8
    assert falls[0] <= 0.3001
    assert not any(crossing)


def highest_below(mesh, x, y, half):
    """The highest point of a mesh over a square: triangles clipped by its four sides; brute force."""
    corners = mesh.vertices[mesh.faces]
    near = (corners[:, :, :2].max(1) >= [x - half, y - half]).all(1)
    near &= (corners[:, :, :2].min(1) <= [x + half, y + half]).all(1)
    highest = -np.inf
    for triangle in corners[near]:
        polygon = list(triangle)
        for axis, sign, at in ((0, 1.0, x + half), (0, -1.0, x - half), (1, 1.0, y + half), (1, -1.0, y - half)):
            kept = []
            for p, q in zip(polygon, polygon[1:] + polygon[:1], strict=True):
                d, e = sign * (at - p[axis]), sign * (at - q[axis])
                if d >= 0.0:
                    kept.append(p)
                if (d < 0.0) != (e < 0.0):
                    kept.append(p + d / (d - e) * (q - p))
            polygon = kept
        highest = max([highest, *(point[2] for point in polygon)])
    return highest


class JerkyDevice:
    """Goes to another place near the way of a part every few hundredths of a second, as fast as a mouse is followed."""

    measured_axes = forced_axes = ALL_AXES

    def __init__(self, way: np.ndarray, seed: int) -> None:
        self._way, self._rng, self._due, self._target = way, np.random.default_rng(seed), 0.0, way[0]
        self._handle = FollowingHandle()
        self._handle.place(way[0])

    def read(self, time: float) -> DeviceState:
        if time >= self._due:
            self._due = time + self._rng.uniform(0.02, 0.4)
            near, self._target = self._way[self._rng.integers(len(self._way))], np.eye(4)
            self._target[:3, :3] = turn_of(0.3 * self._rng.normal(size=3)) @ near[:3, :3]
            self._target[:3, 3] = near[:3, 3] + 0.05 * self._rng.normal(size=3)
        self._handle.follow(self._target, time)
        return DeviceState(self._handle.pose.copy(), self._handle.velocity.copy(), 0)

    def write(self, force: np.ndarray, torque: np.ndarray) -> None:
        """It feels nothing."""

    def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize(("name", "seconds"), [("lifter", 3.0), ("pylon", 10.0)])
def test_fast_turns_near_contacts_stop_no_walk(name, seconds, effort):
    """Points that turn go on circles: rows that go on linearly led 155 of 1,000 walks into the pylon."""
    scene = led_part(name, device="cpu")
    hand = scene.held_by(JerkyDevice(scene.way.poses, 0), slow_rate=100.0)
    hand.run(effort(int(seconds)))
    assert hand.report.walks_asked > 0.5 * hand.report.slow_ticks
    assert hand.report.walks_stopped == 0
    assert hand.report.relaxed == 0
    assert meeting_pairs(hand.world) == []


@pytest.mark.feature("F-R-75")
@pytest.mark.parametrize(("speed", "slow_rate", "reach"), [(0.006, 250.0, 10.0), (0.022, 1000.0, 3.0)])
def test_the_logo_of_a_wheel_is_felt_with_a_cube_of_a_millimetre(speed, slow_rate, reach):
    """E-17: the height of a finger that is drawn over the logo is that of the mesh, within the security distance.

    Between two looks the finger goes at most half the reach along a face that has ended: the faster, the more looks.
    """
    world = scenes.wheel(device="cpu")
    start, security = world["part"].pose, world.separation
    mesh = world.bodies[0].mesh

    def path(time):
        pose = start.copy()
        pose[:3, 3] += 0.024 + speed * max(time - 0.2, 0.0), 0.015, -0.006 * min(time / 0.2, 1.0)
        return pose

    device = SimulatedDevice(path, measured_axes=(1, 1, 1, 0, 0, 0), forced_axes=(1, 1, 1, 0, 0, 0))
    world["part"].set_state(pose=path(0.0))
    hand, heights, forces = Hand(world, "part", device, slow_rate=slow_rate, reach=reach * security), [], []
    every = round(0.00012 / speed * 1000.0)

    def after(time):
        forces.append(hand.force[2])
        if time > 0.25 and round(1000 * time) % every == 0:
            x, y, z = hand.pose[:3, 3]
            heights.append((z - 0.0005 - security, highest_below(mesh, x, y, 0.0005)))

    hand.run(0.2 + 0.0228 / speed, after_tick=after)
    felt, true = np.array(heights).T
    assert np.ptp(true) > 0.0019  # the whole height of the logo, up and down
    assert true[0] < 0.0101
    assert true[-1] < 0.0101
    assert np.abs(felt - true).max() <= security
    assert np.ptp(forces[400:]) > 0.5  # and felt by the hand
    if slow_rate == 1000.0:
        assert hand.report.walks_stopped == 0


@pytest.mark.feature("F-R-76")
def test_a_pressed_and_twisted_peg_rests_with_a_proxy_and_rattles_with_penalties():
    """E-19: clearances of 4 and of 1.1 security distances; the discrete method's energy grows in the same run."""
    for separations in (4.0, 1.1):
        run = proxy_peg(separations)
        assert run.given < 0.0
        assert run.speed < 1e-3
        assert run.crossings == 0
        assert run.force < 5.0
        assert run.report.passive
    early, late = penalty_peg(1000.0, seconds=0.8), penalty_peg(1000.0, seconds=1.1)
    assert early.given > 1e-3
    assert late.given > 10.0 * early.given
    assert late.speed > 10.0 * early.speed > 0.1


@pytest.mark.parametrize(("stiffness", "delay", "hand_stiffness"), [(5000.0, 0.003, 400.0), (2000.0, 0.003, 100.0)])
def test_what_late_forces_give_is_seen_and_ended_by_a_tank_that_is_told_the_delay(stiffness, delay, hand_stiffness):
    """Struck at a stiff coupling: without the tank the handle is given ever more; a blind tank sees nothing of it."""
    struck = {"length": 2.0, "within": 0.1, "delay": delay, "hand_stiffness": hand_stiffness, "stiffness": stiffness}
    without, blind, told = (
        proxy_peg(1.1, **struck, tank=tank, told_delay=known)
        for tank, known in ((None, 0.0), (1e-3, 0.0), (1e-3, delay))
    )
    assert without.most_given > 3e-3
    assert blind.most_given > 3e-3
    assert blind.report.most_given < 1e-4
    assert told.report.most_given == pytest.approx(told.most_given, abs=2e-4)
    assert told.most_given < 2e-3
    assert told.speed < 1e-3
    assert told.crossings == 0
