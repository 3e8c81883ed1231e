"""Moving boxes against exact rational positions: nothing sticks out, at any scale, and little is wasted."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import warp as wp
from hypothesis import given
from hypothesis import strategies as st

from oracles.helpers.box_codes import corners
from tangere.bvh.lbvh import Frame, vertex_boxes

#: Size and place of a scene; 1e60 is far beyond float32, 1e-30 squared is below it.
SCENES = {
    "unit": (1.0, 0.0),
    "far": (1.0, 1e9),
    "tiny": (1e-30, 0.0),
    "tiny and far": (1e-30, 1e-20),
    "huge": (1e60, 0.0),
    "below normal numbers": (1e-319, 0.0),
    "near zero beside a far origin": (1e-12, 1.0),
}


def boxes_of(start, end, until, margin, frame) -> np.ndarray:
    """(n, 2, 2, 3) lower and upper corners at the beginning and at the end, as float32."""
    points = (wp.array(x, dtype=wp.vec3d, device="cpu") for x in (start, end))
    return corners(vertex_boxes(*points, until, margin, frame))


def local(x: float, frame: Frame, axis: int) -> Fraction:
    """A coordinate in the frame of the boxes, exactly."""
    return (Fraction(x) - Fraction(float(frame.origin[axis]))) * Fraction(frame.scale)


def sticks_out(start, end, until, margin, frame, boxes) -> list[tuple[int, int, float]]:
    """(vertex, axis, part of the time) of the positions, grown by the margin, that a box does not hold."""
    outside = []
    for i, axis in np.ndindex(start.shape):
        lower, upper = ([Fraction(float(x)) for x in boxes[i, :, side, axis]] for side in (0, 1))
        grown = Fraction(margin) * Fraction(frame.scale)
        a, b = (local(float(x[i, axis]), frame, axis) for x in (start, end))
        for part in (Fraction(0), Fraction(1, 3), Fraction(1)):
            x = a + (b - a) * Fraction(until) * part
            low, high = (side[0] + (side[1] - side[0]) * part for side in (lower, upper))
            if not low <= x - grown <= x + grown <= high:
                outside.append((i, axis, float(part)))
    return outside


@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize("until", [0.0, 1e-12, 1.0 / 3.0, 1.0])
@pytest.mark.parametrize("margin", [0.0, 1e-3])
def test_a_box_holds_the_exact_way_of_its_vertex(name, until, margin, rng, effort):
    size, place = SCENES[name]
    count = effort(60)
    start = place + size * rng.uniform(-1, 1, (count, 3))
    end = start + size * rng.uniform(-1, 1, (count, 3)) * 10.0 ** rng.integers(-9, 1, (count, 1))
    start[0] = end[0] = 0.0
    frame = Frame.around(np.stack([start.min(axis=0), start.max(axis=0)]))
    boxes = boxes_of(start, end, until, margin * size, frame)
    assert not sticks_out(start, end, until, margin * size, frame, boxes)


@pytest.mark.parametrize("name", [name for name in SCENES if name != "below normal numbers"])
def test_a_box_is_tight_to_a_few_steps_of_float32(name, rng):
    size, place = SCENES[name]
    start = place + size * rng.uniform(-1, 1, (200, 3))
    end = start + size * rng.uniform(-1, 1, (200, 3))
    frame = Frame.around(np.stack([start.min(axis=0), start.max(axis=0)]))
    boxes = boxes_of(start, end, 1.0, 0.0, frame).astype(float)
    # Five steps of float32 at the scene's size, and what float64 itself lost by being far away.
    spare = 5 * 2.0**-23 * 2.0 + 60 * 2.0**-53 * place * frame.scale
    for when, points in enumerate((start, end)):
        x = (points - frame.origin) * frame.scale
        assert (x - boxes[:, when, 0] <= spare).all()
        assert (boxes[:, when, 1] - x <= spare).all()


def test_the_frame_of_a_scene_makes_its_size_about_one():
    for size in (1e-300, 1e-30, 0.7, 1.0, 3.0, 1e60):
        frame = Frame.around(np.array([[0.0, 0.0, 0.0], [size, size / 2, 0.0]]))
        assert 0.5 <= size * frame.scale <= 1.0
        assert np.log2(frame.scale) == np.round(np.log2(frame.scale))


def test_the_frame_of_a_single_point_is_usable():
    frame = Frame.around(np.full((2, 3), 5.0))
    boxes = boxes_of(np.full((1, 3), 5.0), np.full((1, 3), 6.0), 1.0, 0.0, frame)
    assert (boxes[0, 0, 0] <= 0.0).all()
    assert (boxes[0, 1, 1] >= 1.0).all()


def test_boxes_beyond_float32_still_overlap_what_they_meet():
    """Vertices that leave a small scene for 1e90 are held to meet there."""
    frame = Frame.around(np.array([[0.0] * 3, [1.0] * 3]))
    leaving, far = boxes_of(np.zeros((2, 3)) + [[0], [1e89]], np.full((2, 3), 1e90), 1.0, 0.0, frame)
    assert np.isfinite([leaving, far]).all()
    assert (leaving[1, 0] <= far[1, 1]).all()
    assert (far[1, 0] <= leaving[1, 1]).all()


@given(
    st.lists(st.floats(-1e50, 1e50), min_size=2, max_size=2),
    st.floats(0.0, 1.0),
    st.floats(0.0, 1e3),
    st.floats(-1e6, 1e6),
    st.integers(-100, 100),
)
def test_no_numbers_make_a_vertex_leave_its_box(ends, until, margin, origin, exponent):
    frame = Frame(np.full(3, origin), 2.0**exponent)
    start, end = (np.full((1, 3), x) for x in ends)
    if max(abs(x) + margin + abs(origin) for x in ends) * frame.scale > 1e38:
        return
    assert not sticks_out(start, end, until, margin, frame, boxes_of(start, end, until, margin, frame))
