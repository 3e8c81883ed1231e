"""How near do moving bodies come? Bounds against distances at many instants, and against formulas."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

import tangere as tg
from tangere.runtime import InputError


def place(x, y=0.0, z=0.0, turn=(0.0, 0.0, 0.0)):
    pose = np.eye(4)
    pose[:3, :3] = Rotation.from_rotvec(turn).as_matrix()
    pose[:3, 3] = x, y, z
    return pose


def sampled(a, b, samples=400):
    found = tg.distance(a, b, time=np.linspace(0.0, 1.0, samples), device="cpu")
    return found.lower.min(), found.upper.min()


SHAPES = {
    "torus": lambda: tg.generate.torus(600, tube=0.3),
    "comb": lambda: tg.generate.comb(),
    "box": lambda: tg.generate.box(),
    "ball": lambda: tg.generate.bumpy_sphere(500),
}


@pytest.mark.parametrize("one", SHAPES)
@pytest.mark.parametrize("accuracy", [0.5, 0.05])
def test_no_sampled_distance_is_below_the_bound_and_the_least_is_near_it(one, accuracy):
    rng = np.random.default_rng(7)
    a, b = SHAPES[one](), SHAPES["torus"]()
    for _ in range(6):
        start = place(*rng.normal(0.0, 2.5, 3), turn=rng.normal(0.0, 1.0, 3))
        moving = a.moving(tg.Twist(start, rng.normal(0.0, 2.0, 3), rng.normal(0.0, 2.0, 3)))
        found = tg.least_clearance(moving, b, accuracy=accuracy, device="cpu")
        _, seen = sampled(moving, b)
        assert found.lower <= seen
        assert found.upper <= seen + 0.5 * seen
        at = tg.distance(moving, b, time=found.time, device="cpu")
        assert at.lower <= found.upper + 1e-9
        assert at.upper >= found.lower
        if tg.first_contact(moving, b, device="cpu"):
            assert found.lower == 0.0
            assert found.upper < 1e-5
        else:
            assert found.lower >= (1.0 - accuracy) * found.upper


def test_a_ball_that_passes_another_comes_as_near_as_the_formula_says():
    ball = tg.generate.icosphere(subdivisions=4)
    moving = ball.moving(tg.Twist(place(-5.0, 2.25), (9.0, 0.0, 0.0), (0.0, 0.0, 0.0)))
    found = tg.least_clearance(moving, ball, accuracy=1e-3, device="cpu")
    assert found.lower <= 0.26
    assert 0.2499 <= found.upper <= 0.26
    assert abs(found.time - 5.0 / 9.0) < 0.02


def test_a_box_over_a_table_keeps_its_height_to_the_last_digits():
    table = tg.generate.box((10.0, 10.0, 1.0))
    moving = tg.generate.box().moving(tg.Twist(place(-3.0, 0.0, 1.0 + 1e-3), (6.0, 0.0, 0.0), (0.0, 0.0, 0.0)))
    found = tg.least_clearance(moving, table, accuracy=0.01, device="cpu")
    assert 0.99e-3 - 1e-12 <= found.lower <= 1e-3 <= found.upper <= 1e-3 + 1e-12


def test_a_spin_that_dips_between_the_instants_is_seen():
    """A bar turns once about the axis; its end passes a post at t = 0.13, between the instants measured first."""
    bar = tg.generate.box((2.0, 0.05, 0.05))
    turn = 2.0 * np.pi * 0.13
    post = tg.generate.box((0.02, 0.02, 1.0)).at(place(1.05 * np.cos(turn), 1.05 * np.sin(turn)))
    moving = bar.moving(tg.Twist(np.eye(4), (0.0, 0.0, 0.0), (0.0, 0.0, 2.0 * np.pi)))
    found = tg.least_clearance(moving, post, accuracy=0.05, device="cpu")
    assert found.upper < 0.05
    assert min(abs(found.time - 0.13), abs(found.time - 0.63)) < 0.02


@pytest.mark.parametrize("accuracy", [1e-3, 1e-6, 1e-9, 1e-14])
def test_an_accuracy_that_rounding_does_not_allow_is_as_fine_as_it_does(accuracy):
    ball = tg.generate.icosphere(subdivisions=3)
    moving = ball.moving(tg.Twist(place(-4.0, 2.5), (8.0, 0.0, 0.0), (0.0, 0.0, 0.0)))
    found = tg.least_clearance(moving, ball, accuracy=accuracy, device="cpu")
    fine = tg.distance(moving, ball, time=np.linspace(0.45, 0.55, 2000), device="cpu").upper.min()
    assert fine * (1.0 - max(2.0 * accuracy, 1e-4)) <= found.lower <= fine
    assert found.lower <= found.upper <= fine * (1.0 + max(2.0 * accuracy, 1e-4))


@pytest.mark.parametrize("accuracy", [1e-5, 1e-6, 1e-8])
def test_fine_accuracies_are_kept_and_bound_what_the_formula_says(accuracy):
    """A turned box above a plate, its lowest corner or edge as high as trigonometry says; a ball that closes in."""
    plate, box = tg.generate.box((8.0, 8.0, 1.0)), tg.generate.box((1.0, 1.0, 1.0))
    tilt, height = 0.3, 1.5
    # About its middle: from tilt to pi/4 + tilt, past an edge right below at pi/4.
    spin = box.moving(
        tg.Twist(place(0.0, 0.0, height, turn=(0.0, tilt, 0.0)), (0.0, 0.0, 0.0), (0.0, 0.25 * np.pi, 0.0))
    )
    falling = box.moving(tg.Twist(place(-1.0, 0.0, 2.0), (2.0, 0.0, -0.9), (0.0, 0.0, 0.0)))
    for moving, true in ((spin, height - 0.5 - np.sqrt(0.5)), (falling, 2.0 - 0.9 - 0.5 - 0.5)):
        found = tg.least_clearance(moving, plate, accuracy=accuracy, device="cpu")
        assert found.lower <= true * (1.0 + 1e-14)
        assert true <= found.upper * (1.0 + 1e-14)
        assert found.accuracy <= accuracy * (1.0 + 1e-6)
        assert found.lower == pytest.approx((1.0 - found.accuracy) * found.upper, rel=1e-15)


def test_what_was_reached_is_told_where_rounding_does_not_allow_more():
    cube = tg.generate.box((1.0, 1.0, 1.0))
    over = cube.moving(tg.Twist(place(-1.0, 0.0, 1.001), (2.0, 0.0, 0.0), (0.0, 0.0, 0.0)))
    found = tg.least_clearance(over, cube, accuracy=1e-15, device="cpu")
    assert found.lower <= 1e-3 * (1.0 + 1e-12)
    assert 1e-15 < found.accuracy < 1e-9
    crossing = cube.moving(tg.Rest(place(0.5)))
    assert tg.least_clearance(crossing, cube, device="cpu").accuracy in (0.0, 1.0)
    far = tg.least_clearance(cube.moving(tg.Rest(place(9.0))), cube, cap=1.0, device="cpu")
    assert np.isnan(far.accuracy)


def test_rows_within_the_tolerance_stay_sound_beside_rows_that_need_a_coarser_accuracy():
    """Boxes glide over a table; of one the gap is below the tolerance, of the other the accuracy is beyond rounding."""
    gaps = np.array([5e-7, 0.3])
    starts = np.stack([place(-2.0, 0.0, 1.0 + gap, (0.0, 0.0, 0.3)) for gap in gaps])
    motion = tg.Twist(starts, np.tile([4.0, 0.0, 0.0], (2, 1)), np.tile([0.0, 0.0, 0.5], (2, 1)))
    table = tg.generate.box((10.0, 10.0, 1.0))
    for accuracy in (1e-3, 1e-9, 1e-15):
        found = tg.least_clearance(tg.generate.box().moving(motion), table, accuracy=accuracy, device="cpu")
        assert (found.lower <= gaps * (1.0 + 1e-9)).all()
        assert found.lower[1] >= 0.3 * (1.0 - max(2.0 * accuracy, 1e-4))
        assert (found.upper >= gaps * (1.0 - 1e-6)).all()


def test_what_is_beyond_the_cap_is_not_searched():
    a, b = tg.generate.box(), tg.generate.box().at(place(4.0))
    found = tg.least_clearance(a, b, cap=0.5, accuracy=0.1, device="cpu")
    assert (found.lower, found.upper) == (0.45, np.inf)
    assert np.isnan(found.time)
    assert found.triangle_a == -1


def test_many_motions_answer_as_each_by_itself():
    torus, ball = SHAPES["torus"](), SHAPES["ball"]()
    rng = np.random.default_rng(3)
    starts = np.stack([place(*rng.normal(0.0, 2.0, 3), turn=rng.normal(size=3)) for _ in range(12)])
    motion = tg.Twist(starts, rng.normal(size=(12, 3)), rng.normal(size=(12, 3)))
    many = tg.least_clearance(torus.moving(motion), ball, device="cpu")
    for row in range(12):
        one = tg.least_clearance(torus.moving(motion[row]), ball, device="cpu")
        for name in ("lower", "upper", "time", "triangle_a", "triangle_b"):
            assert getattr(one, name) == getattr(many, name)[row]


@settings(max_examples=25)
@given(st.integers(0, 2**31), st.floats(0.02, 0.9))
def test_bounds_hold_for_chains_and_both_bodies_moving(seed, accuracy):
    rng = np.random.default_rng(seed)
    arm = tg.Twist(place(*rng.normal(0.0, 1.5, 3)), rng.normal(0.0, 2.0, 3), rng.normal(0.0, 3.0, 3))
    hand = tg.Twist(place(*rng.normal(0.0, 0.5, 3)), np.zeros(3), rng.normal(0.0, 3.0, 3))
    a = tg.generate.box(rng.uniform(0.2, 1.5, 3)).moving(tg.Chain([arm, hand]).link(1))
    b = tg.generate.box(rng.uniform(0.2, 1.5, 3)).moving(
        tg.Twist(place(*rng.normal(0.0, 1.5, 3)), rng.normal(0.0, 2.0, 3), rng.normal(0.0, 3.0, 3))
    )
    found = tg.least_clearance(a, b, accuracy=accuracy, device="cpu")
    lower, upper = sampled(a, b, 120)
    assert found.lower <= upper
    assert found.upper >= found.lower
    if found.lower:
        assert lower >= found.lower - 1e-9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"accuracy": 0.0}, "accuracy must be between 0 and 1"),
        ({"accuracy": 1.0}, "accuracy must be between 0 and 1"),
        ({"accuracy": np.nan}, "accuracy"),
        ({"cap": -1.0}, "cap must be a positive length"),
        ({"cap": [1.0, 2.0]}, "cap must be a positive length"),
        ({"tolerance": -1.0}, "tolerance"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(tg.TangereError, match=message):
        tg.least_clearance(tg.generate.box(), tg.generate.box().at(place(3.0)), device="cpu", **arguments)


def test_every_device_answers_as_the_cpu(device):
    torus, ball = SHAPES["torus"](), SHAPES["ball"]()
    rng = np.random.default_rng(5)
    starts = np.stack([place(*rng.normal(0.0, 2.5, 3), turn=rng.normal(size=3)) for _ in range(40)])
    motion = tg.Twist(starts, rng.normal(size=(40, 3)), rng.normal(size=(40, 3)))
    here = tg.least_clearance(torus.moving(motion), ball, device="cpu")
    there = tg.least_clearance(torus.moving(motion), ball, device=device)
    assert (np.maximum(here.lower, there.lower) <= np.minimum(here.upper, there.upper)).all()
    np.testing.assert_array_equal(there.upper == 0.0, here.upper == 0.0)
    for found in (here, there):  # which places are looked at first is another matter on another device
        assert (found.lower >= (1.0 - 0.1) * found.upper - 1e-9).all()


def test_bodies_that_do_not_pair_off_are_refused():
    three, two = (np.tile(np.eye(4), (count, 1, 1)) for count in (3, 2))
    moving = tg.Box([1, 1, 1]).moving(tg.Twist(three, [0, 0, -1.0], [0, 0, 0]))
    with pytest.raises(InputError, match="3 bodies a do not pair off with 2 bodies b"):
        tg.least_clearance(moving, tg.Box([1, 1, 1]).at(two), device="cpu")


def test_bodies_that_go_through_each_other_have_no_distance_and_are_not_searched_again(monkeypatch):
    """Triangles that cross have nearest points some way apart: these are not how near the bodies come."""
    from tangere.query.clearance import api

    runs = []
    search = api._Search.run
    monkeypatch.setattr(api._Search, "run", lambda self, *args, **kw: (runs.append(args), search(self, *args, **kw))[1])
    a, b = tg.generate.box((0.2, 0.2, 4.0)), tg.generate.box((4.0, 4.0, 0.2))
    motion = tg.Twist(place(-9.0, 0.3, 0.4), (18.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    found = tg.least_clearance(a.moving(motion), b, cap=1.0, device="cpu")
    assert (found.lower, found.upper) == (0.0, 0.0)
    assert 0.3 < found.time < 0.7
    assert len(runs) == 1
