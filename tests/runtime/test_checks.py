"""What errors quote of what they were given: short values as they are written, arrays and long lists by their shape."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

import tangere as tg
from tangere.runtime import InputError, UnsupportedError, described, number, three_numbers


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        ("mm", "'mm'"),
        ([1, 2, 3], "[1, 2, 3]"),
        (None, "None"),
        (np.float64(2.5), repr(np.float64(2.5))),
        (np.zeros((800, 3)), "an array of float64 of shape (800, 3)"),
        (np.zeros(2, np.int32), "an array of int32 of shape (2,)"),
        (list(range(1000)), "a list of 1000"),
        ({k: k for k in range(1000)}, "a dict of 1000"),
    ],
)
def test_values_are_described_in_a_few_words(value, text):
    assert described(value) == text


def test_arrays_of_other_libraries_and_long_text_are_short():
    assert described(wp.zeros(5, dtype=wp.vec3d, device="cpu")).endswith("of shape (5,)")
    assert len(described("x" * 10_000)) < 100
    assert len(described(object())) < 100


@pytest.mark.parametrize(
    "ask",
    [
        lambda many: number(many, "dt"),
        lambda many: three_numbers(many, "gravity"),
        lambda many: tg.Screw(np.eye(4), np.eye(4)).pose(many + 1.0),
        lambda many: tg.Rest().part(many + 1.0, 1.0),
        lambda many: tg.Chain([tg.Rest()], many),
        lambda many: tg.first_contact(tg.generate.box(), tg.generate.box(), separation=many, device="cpu"),
        lambda many: tg.Heightfield(np.zeros((3, 3)), spacing=many),
        lambda many: tg.Heightfield(np.zeros((3, 3)), origin=many),
        lambda many: tg.check_path(tg.generate.box(), [many], tg.Path(np.tile(np.eye(4), (2, 1, 1)))),
        lambda many: tg.proximity(tg.generate.box(), distance=many),
        lambda many: tg.least_clearance(tg.generate.box(), tg.generate.box(), cap=many, device="cpu"),
        lambda many: tg.least_clearance(tg.generate.box(), tg.generate.box(), accuracy=many, device="cpu"),
        lambda many: tg.largest_step(tg.generate.box(), tg.generate.torus(), keep=many, device="cpu"),
        lambda many: tg.first_contact(tg.generate.box(), tg.generate.box(), start="leaving", skin=many, device="cpu"),
        lambda many: tg.Mesh.load("part.stl", units=many),
    ],
)
def test_no_error_prints_a_whole_array(ask):
    with pytest.raises(InputError) as told:
        ask(np.linspace(0.0, 1.0, 100))
    assert len(str(told.value)) < 200
    assert "\n" not in str(told.value)


def test_an_array_in_the_place_of_a_motion_or_a_body_is_told_by_its_shape_with_the_likely_cure():
    ball, poses = tg.generate.icosphere(1), np.tile(np.eye(4), (3, 1, 1))
    for given, cure in (
        (ball.vertices, r"of shape \(42, 3\) is not a motion: positions at t = 1 go by tg\.Linear\(array\)"),
        (poses[0], r"of shape \(4, 4\) is not a motion: .*tg\.Screw\(start, pose\)"),
        (poses, r"of shape \(3, 4, 4\) is not a motion: .*tg\.Path\(poses\)"),
    ):
        with pytest.raises(InputError, match=cure):
            ball.moving(given)
    for ask in (tg.first_contact, tg.distance, tg.intersects):
        with pytest.raises(UnsupportedError, match=r"and an array of float64 of shape \(42, 3\) is not known"):
            ask(ball, ball.vertices)
