"""Steady motions with all that does not change computed once: the same poses and velocities as everywhere else."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from oracles.families.rigid_scenes import random_motion
from tangere.geometry.simd.four_oriented_boxes import FOUR_WIDE, SINES
from tangere.motion import Rest, Rigid, RigidMotion, Screw, Twist
from tangere.motion.bounds import is_steady, state_of, steady_of, steady_state, steady_within
from tangere.published.redon_screws import CosineScrew
from tangere.runtime import SOUND, launch

wp.set_module_options(SOUND)


@wp.kernel
def _states(first: int, motions: wp.array[RigidMotion], times: wp.array[wp.float64], out: wp.array2d[wp.float64]):
    """Both states of each motion, number by number."""
    i = first + wp.tid()
    for way in range(2):
        state = state_of(motions, i, 1, False, times[i])
        if way == 1:
            state = steady_state(steady_of(motions[i]), times[i])
        for k in range(9):
            out[i, 18 * way + k] = state.rotation[k / 3, k % 3]
        for k in range(3):
            out[i, 18 * way + 9 + k] = state.point[k]
            out[i, 18 * way + 12 + k] = state.linear[k]
            out[i, 18 * way + 15 + k] = state.angular[k]


def states(motion: Rigid, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    cpu = wp.get_device("cpu")
    out = np.zeros((len(times), 36))
    launch(
        _states,
        len(times),
        [wp.array(motion.records(), dtype=RigidMotion, device=cpu), wp.array(times, dtype=wp.float64, device=cpu)],
        [wp.array(out, dtype=wp.float64, device=cpu, copy=False)],
        device=cpu,
    )
    return out[:, :18], out[:, 18:]


@pytest.mark.parametrize("kind", ["rest", "twist", "screw"])
def test_states_are_those_of_the_general_formula(rng, effort, kind):
    """Screws of all sizes of turns among them, whose pivot sways where the axis is far away; and parts of motions."""
    count = effort(2000)
    motion = random_motion(kind, rng, count)
    begin = rng.uniform(0.0, 1.0, count) * rng.integers(0, 2, count)
    motion = motion.part(begin, begin + (1.0 - begin) * rng.uniform(0.1, 1.0, count))
    general, steady = states(motion, rng.uniform(0.0, 1.0, count))
    assert np.abs(general - steady).max() < 1e-13 * max(1.0, np.abs(general).max())


@wp.kernel
def _frames(
    first: int,
    motions: wp.array[RigidMotion],
    within: wp.mat44d,
    origin: wp.vec3d,
    times: wp.array[wp.float64],
    out: wp.array2d[wp.float64],
):
    """Where a frame is that lies in the moving one, and how fast its origin goes."""
    i = first + wp.tid()
    turned = wp.mat33d()
    at = wp.vec3d()
    for row in range(3):
        at[row] = within[row, 3]
        for column in range(3):
            turned[row, column] = within[row, column]
    state = steady_state(steady_within(steady_of(motions[i]), turned, at - motions[i].pivot, origin), times[i])
    for k in range(9):
        out[i, k] = state.rotation[k / 3, k % 3]
    for k in range(3):
        out[i, 9 + k] = state.point[k]
        out[i, 12 + k] = state.linear[k]


@pytest.mark.parametrize("kind", ["rest", "twist", "screw"])
def test_a_frame_within_the_moving_one_is_where_the_motion_takes_it(rng, effort, kind):
    count, cpu = effort(1000), wp.get_device("cpu")
    motion, times = random_motion(kind, rng, count), rng.uniform(0.1, 0.9, count)
    within, origin, out = np.eye(4), rng.normal(size=3), np.zeros((count, 15))
    within[:3, :3], within[:3, 3] = np.linalg.qr(rng.normal(size=(3, 3)))[0], rng.normal(size=3)
    inputs = [
        wp.array(motion.records(), dtype=RigidMotion, device=cpu),
        wp.mat44d(within),
        wp.vec3d(origin),
        wp.array(times, dtype=wp.float64, device=cpu),
        wp.array(out, dtype=wp.float64, device=cpu, copy=False),
    ]
    launch(_frames, count, inputs, device=cpu)
    poses = motion.pose(times) @ within
    size = max(1.0, np.abs(poses).max())
    assert np.abs(out[:, :9].reshape(-1, 3, 3) - poses[:, :3, :3]).max() < 1e-13
    assert np.abs(out[:, 9:12] - (poses[:, :3, 3] - origin)).max() < 1e-13 * size
    later, before = (motion.pose(times + step) @ within for step in (1e-6, -1e-6))
    speed = (later - before)[:, :3, 3] / 2e-6
    assert np.abs(out[:, 12:] - speed).max() < 1e-6 * max(1.0, np.abs(speed).max()) ** 3


def test_the_smallest_turns_lose_no_digits():
    """A sway is the arc over the angle: huge, times the sine: tiny."""
    angles = np.array([0.0, 1e-300, 1e-100, 1e-59, 1e-30, 1e-12, 1e-6])
    start = np.tile(np.eye(4), (len(angles), 1, 1))
    motion = Screw(start, Twist(start, [[1.0, 2.0, 3.0]] * len(angles), np.outer(angles, [0, 0, 1.0])).pose(1.0))
    records = motion.records().copy()
    records["angle"], records["axis"] = angles, [0.0, 0.0, 1.0]
    records["arc"], records["velocity"] = [1.0, 2.0, 0.0], [0.0, 0.0, 3.0]
    general, steady = states(
        type(motion).join([Rigid.of(records[k : k + 1]) for k in range(len(angles))]), angles + 0.3
    )
    assert np.abs(general - steady).max() < 1e-14


def test_only_constant_rates_are_steady():
    @wp.kernel
    def asked(first: int, motions: wp.array[RigidMotion], out: wp.array[wp.bool]):
        i = first + wp.tid()
        out[i] = is_steady(motions[i])

    end = Twist(np.eye(4), [1.0, 0, 0], [0, 0, 1.0]).pose(1.0)
    kinds = [Rest(), Twist(np.eye(4), [1.0, 0, 0], [0, 0, 50.0]), Screw(np.eye(4), end), CosineScrew(np.eye(4), end)]
    kinds += [Twist(np.eye(4), [1.0, 0, 0], [0, 0, 1e12])]
    out = wp.zeros(len(kinds), dtype=wp.bool, device="cpu")
    motions = wp.array(Rigid.join(kinds).records(), dtype=RigidMotion, device="cpu")
    launch(asked, len(kinds), [motions], [out], device=wp.get_device("cpu"))
    assert out.numpy().tolist() == [True, True, True, False, False]


@wp.func_native(
    FOUR_WIDE
    + SINES
    + """
    Wide sine, versine;
    sine_of_twice(Wide{x[0], x[1], x[2], x[3]}, sine, versine);
    for (int k = 0; k < 4; ++k) {
        out.data[8 * i + k] = sine[k];
        out.data[8 * i + 4 + k] = versine[k];
    }
"""
)
def _sines(x: wp.vec4d, i: int, out: wp.array[wp.float64]): ...


@wp.kernel
def _four_sines(first: int, x: wp.array[wp.vec4d], out: wp.array[wp.float64]):
    i = first + wp.tid()
    _sines(x[i], i, out)


def test_four_sines_are_right_to_a_few_roundings(rng, effort):
    """Against sine and 1 - cosine in extended precision, up to hundreds of millions of turns."""
    count = effort(20_000) // 4 * 4
    x = rng.choice([-1.0, 1.0], count) * 10.0 ** rng.uniform(-20, 8.9, count)
    x[:8] = [0.0, np.pi, -np.pi, np.pi / 2, np.pi / 4, 1e-300, 3 * np.pi / 2, 1e8 * np.pi]
    out, cpu = np.zeros(2 * count), wp.get_device("cpu")
    launch(
        _four_sines,
        count // 4,
        [wp.array(x.reshape(-1, 4), dtype=wp.vec4d, device=cpu)],
        [wp.array(out, dtype=wp.float64, device=cpu, copy=False)],
        device=cpu,
    )
    sine, versine = out.reshape(-1, 2, 4).transpose(1, 0, 2).reshape(2, -1)
    exact = x.astype(np.longdouble)
    half, cosine = np.sin(exact), np.cos(exact)
    assert np.abs(sine - 2 * half * cosine).max() < 1e-15
    assert np.abs(versine - 2 * half * half).max() < 1e-15
    small = np.abs(x) < 1e-3
    assert np.abs(sine[small] / np.where(x[small] == 0, 1, 2 * x[small]) - (x[small] != 0)).max() < 1e-5
