"""The frame of a tip: arcs, spins and duty cycles, against circles written down by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tangere.needle import Bevel, Needle, TipFrame, duty_cycled
from tangere.runtime import InputError


@pytest.mark.feature("F-P-72")
@pytest.mark.parametrize("steps", [1, 7, 1000])
def test_a_bevel_tip_goes_along_an_arc_of_its_curvature_whatever_the_steps(steps):
    curvature, length = 5.0, 0.1
    frame = TipFrame(np.zeros(3), np.eye(3))
    for _ in range(steps):
        frame = frame.advanced(length / steps, curvature=curvature)
    # It turns about x, so from z towards -y.
    angle = curvature * length
    there = np.array([0.0, (np.cos(angle) - 1.0) / curvature, np.sin(angle) / curvature])
    np.testing.assert_allclose(frame.position, there, atol=1e-15)
    np.testing.assert_allclose(frame.rotation.T @ frame.rotation, np.eye(3), atol=1e-13)


@pytest.mark.feature("F-P-72")
def test_full_spin_is_straight_and_a_part_of_it_bends_by_the_rest():
    def end(duty: float, cycles: int = 2000, length: float = 0.1, curvature: float = 5.0) -> TipFrame:
        frame = TipFrame(np.zeros(3), np.eye(3))
        for _ in range(cycles):
            for way, spin in duty_cycled(curvature, duty, length / cycles):
                frame = frame.advanced(way, curvature=curvature, spin=spin)
        return frame

    straight = end(1.0)
    assert np.hypot(*straight.position[:2]) < 1e-5
    assert straight.position[2] == pytest.approx(0.1, rel=1e-6)
    for duty in (0.0, 0.25, 0.5, 0.75):
        angle = np.arccos(np.clip(end(duty).direction[2], -1.0, 1.0))
        assert angle / 0.1 == pytest.approx(5.0 * (1.0 - duty), rel=2e-3)


def test_a_frame_looks_where_it_is_told():
    for direction in ([0, 0, 1], [1, 2, -3], [0, -1, 0]):
        frame = TipFrame.looking([1, 2, 3], direction, roll=0.7)
        np.testing.assert_allclose(frame.direction, np.array(direction) / np.linalg.norm(direction))
        np.testing.assert_allclose(frame.rotation.T @ frame.rotation, np.eye(3), atol=1e-14)
        assert np.linalg.det(frame.rotation) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Needle(length=-1.0), "Needle: length must be positive"),
        (lambda: Needle(radius=0.2), "Needle: a radius of 0.2 m is not less than the length, 0.15 m"),
        (lambda: Needle(tip="bevel"), "Needle: tip"),
        (lambda: Bevel(-0.5), "Bevel: force must"),
        (lambda: TipFrame.looking([0, 0, 0], [0, 0, 0]), "direction must be a direction of three numbers"),
        (lambda: duty_cycled(5.0, 1.5, 0.01), "duty must be from 0 to 1, not 1.5"),
    ],
)
def test_bad_needles_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()
