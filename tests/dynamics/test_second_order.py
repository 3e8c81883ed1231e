"""The second derivative of gaps against finite differences of the gaps themselves."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import warp as wp

from tangere.dynamics.contact.second_order import gap_acceleration
from tangere.dynamics.solver import vec6d
from tangere.motion import Twist
from tangere.runtime import launch


@wp.kernel
def _accelerations(
    first: int,
    kind: int,
    normal: wp.array[wp.vec3d],
    arm_a: wp.array[wp.vec3d],
    arm_b: wp.array[wp.vec3d],
    motion_a: wp.array[vec6d],
    motion_b: wp.array[vec6d],
    edge_a: wp.array[wp.vec3d],
    edge_b: wp.array[wp.vec3d],
    out: wp.array[wp.float64],
):
    i = first + wp.tid()
    out[i] = gap_acceleration(kind, normal[i], arm_a[i], arm_b[i], motion_a[i], motion_b[i], edge_a[i], edge_b[i])


def kappa(kind, normal, arm_a, arm_b, motion_a, motion_b, edge_a, edge_b):
    cpu = wp.get_device("cpu")

    def one(values, dtype=wp.vec3d):
        return wp.array(np.asarray(values, float)[None], dtype=dtype, device=cpu)

    out = wp.zeros(1, dtype=wp.float64, device=cpu)
    inputs = [kind, one(normal), one(arm_a), one(arm_b), one(motion_a, vec6d), one(motion_b, vec6d)]
    launch(_accelerations, 1, [*inputs, one(edge_a), one(edge_b)], [out], device=cpu)
    return float(out.numpy()[0])


def unit(vector):
    return vector / np.linalg.norm(vector)


def second_difference(gap, h=1e-3):
    """Of fourth order."""
    return (-gap(2 * h) + 16 * gap(h) - 30 * gap(0.0) + 16 * gap(-h) - gap(-2 * h)) / (12 * h * h)


def moved(motion, point, time):
    """Where a point of a body that turns about the origin of its frame is; `time` may be negative."""
    sign = 1.0 if time >= 0.0 else -1.0
    twist = Twist(np.eye(4), sign * motion[:3], sign * motion[3:])
    pose = twist.pose(abs(time))
    return pose[:3, :3] @ point + pose[:3, 3], pose[:3, :3]


def gap(kind, normal, edge_a, edge_b, arm_a, arm_b, motion_a, motion_b, between, time):
    """The distance of two points along the normal that turns with a face, or with both edges."""
    at_a, turn_a = moved(motion_a, arm_a, time)
    at_b, turn_b = moved(motion_b, arm_b, time)
    if kind == 2:
        along = unit(np.cross(turn_a @ edge_a, turn_b @ edge_b))
    else:
        along = (turn_b if kind == 0 else turn_a) @ normal
    return (at_a + between - at_b) @ along


@pytest.mark.feature("F-R-51")
@pytest.mark.parametrize("kind", [0, 1, 2])
def test_kappa_is_the_second_derivative_of_the_gap(kind, rng):
    """Both bodies turn about their centres, here the origins of two frames; the gap is tiny beside the arms."""
    for _ in range(20):
        centre_a, centre_b = rng.normal(size=3), rng.normal(size=3)
        touch = rng.normal(size=3)
        motion_a, motion_b = rng.normal(size=6), rng.normal(size=6)
        if kind == 2:
            edge_a, edge_b = unit(rng.normal(size=3)), unit(rng.normal(size=3))
            normal = unit(np.cross(edge_a, edge_b))
        else:
            edge_a = edge_b = np.zeros(3)
            normal = unit(rng.normal(size=3))

        about = (
            kind,
            normal,
            edge_a,
            edge_b,
            touch - centre_a,
            touch - centre_b,
            motion_a,
            motion_b,
            centre_a - centre_b,
        )
        found = kappa(kind, normal, touch - centre_a, touch - centre_b, motion_a, motion_b, edge_a, edge_b)
        assert found == pytest.approx(second_difference(partial(gap, *about)), rel=1e-6, abs=1e-6)


def test_edges_that_are_almost_parallel_have_no_rate():
    edge = np.array([1.0, 0.0, 0.0])
    other = unit(np.array([1.0, 1e-3, 0.0]))
    spin = np.array([0.0, 0.0, 0.0, 3.0, 2.0, 1.0])
    found = kappa(2, [0, 0, 1.0], np.zeros(3), np.zeros(3), spin, -spin, edge, other)
    assert found == 0.0
