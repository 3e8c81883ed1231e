"""A line search that goes as far as `largest_step` says: it never stalls, never touches, and keeps its separation."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import tangere as tg


def walk(steps, separation, rng, *, pressed):
    """The shares of steps of a ball that is pushed about in front of a wall; the last position."""
    ball = tg.generate.icosphere(subdivisions=1)
    wall = tg.generate.box((1.0, 6.0, 6.0))
    x = ball.vertices - [2.0, 0.0, 0.0]
    shares = []
    for _ in range(steps):
        push = rng.normal(0.0, 0.2, 3) + 0.02 * rng.normal(size=x.shape)
        push[..., 0] += pressed
        push -= 0.05 * x.mean(axis=0) * [0.0, 1.0, 1.0]  # it stays in front of the wall
        end = x + push
        now = ball.replace(vertices=x)
        share = tg.largest_step(now.moving(tg.Linear(end)), wall, separation=separation, device="cpu")
        x = now.moving(tg.Linear(end)).at(share).vertices
        shares.append(share)
        assert not tg.first_contact(
            now.moving(tg.Linear(x)), wall, separation=separation, tolerance=1e-12, start="trusted", device="cpu"
        )
    return np.array(shares), x, ball, wall


@pytest.mark.parametrize("separation", [0.0, 0.05])
def test_a_thousand_random_steps_never_stall_and_never_touch(separation, rng, effort):
    shares, x, ball, wall = walk(effort(1000), separation, rng, pressed=0.3)
    assert (shares > 0.0).all()
    assert (shares < 1.0).sum() > 0.2 * len(shares)
    assert Fraction(float(x[:, 0].max())) <= -Fraction(1, 2) - Fraction(separation)
    hit = tg.first_contact(ball.replace(vertices=x), wall, separation=separation, device="cpu")
    assert hit.status != tg.Status.START


def test_pressed_straight_on_the_gap_shrinks_more_and_more_slowly():
    box = tg.generate.box()
    wall = tg.generate.box((1.0, 4.0, 4.0)).at(np.array([[1, 0, 0, 2.0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]]))
    x, gaps = box.vertices.copy(), []
    for _ in range(100):
        end = x + [1.0, 0.0, 0.0]
        share = tg.largest_step(box.replace(vertices=x).moving(tg.Linear(end)), wall, device="cpu")
        assert share > 0.0
        x = x + share * (end - x)
        gaps.append(1.5 - x[:, 0].max())
    assert (np.diff(gaps) < 0.0).all()
    assert gaps[-1] > 1e-10


def test_what_slides_past_in_a_narrow_gap_goes_all_the_way():
    plate = tg.generate.box((2.0, 2.0, 0.1))
    for gap in (1e-3, 1e-6, 1e-8, 1e-10):
        x = plate.vertices + [0.0, 0.0, 0.1 + gap]
        sliding = plate.replace(vertices=x).moving(tg.Linear(x + [0.7, 0.3, 0.0]))
        assert tg.largest_step(sliding, plate, device="cpu") == 1.0


def test_a_free_step_goes_all_the_way_and_a_contact_leaves_its_share():
    ball = tg.generate.icosphere(subdivisions=2)
    x = ball.vertices - [4.0, 0.0, 0.0]
    away = ball.replace(vertices=x)
    assert tg.largest_step(away.moving(tg.Linear(x - 1.0)), ball, device="cpu") == 1.0
    share = tg.largest_step(away.moving(tg.Linear(x + [4.0, 0.0, 0.0])), ball, keep=0.5, device="cpu")
    hit = tg.first_contact(away.moving(tg.Linear(x + [4.0, 0.0, 0.0])), ball, device="cpu")
    assert share == pytest.approx(0.5 * hit.time, rel=1e-4)


def test_a_sheet_that_is_folded_onto_itself_stops_before_it_touches(rng):
    sheet = tg.generate.sheet(200)
    x = sheet.vertices.copy()
    middle = x[:, 0].mean()
    for _ in range(40):
        end = x.copy()
        folded = x[:, 0] > middle
        end[folded] = np.stack(
            [2.0 * middle - sheet.vertices[folded, 0], sheet.vertices[folded, 1], x[folded, 2] * 0.0], axis=1
        )
        end[:, 2] += 0.01 * rng.normal(size=len(x))
        now = sheet.replace(vertices=x)
        share = tg.largest_step(now.moving(tg.Linear(end)), device="cpu")
        assert share > 0.0
        x = now.moving(tg.Linear(end)).at(share).vertices
        assert not tg.intersects(sheet.replace(vertices=x), device="cpu")


def test_rigid_parts_step_as_well():
    peg, hole = tg.generate.box((0.2, 0.2, 1.0)), tg.generate.plate_with_hole()
    start = np.eye(4)
    start[:3, 3] = 0.6, 0.1, 3.0
    turn = Rotation.from_rotvec((0.0, 0.0, 0.3)).as_rotvec()
    share = tg.largest_step(peg.moving(tg.Twist(start, (0.0, 0.0, -4.0), turn)), hole, device="cpu")
    hit = tg.first_contact(peg.moving(tg.Twist(start, (0.0, 0.0, -4.0), turn)), hole, device="cpu")
    assert 0.0 < share <= min(hit.time, 1.0)


@pytest.mark.parametrize("separation", [0.0, 0.05])
def test_a_rigid_part_that_is_pushed_and_turned_against_another_never_stalls(separation, rng, effort):
    part, fixed = tg.generate.bumpy_sphere(500), tg.generate.torus(600, tube=0.4)
    pose = np.eye(4)
    pose[0, 3] = 4.0
    shares = []
    for _ in range(effort(60)):
        motion = tg.Twist(pose, -0.3 * pose[:3, 3] + rng.normal(0.0, 0.3, 3), rng.normal(0.0, 0.5, 3))
        share = tg.largest_step(part.moving(motion), fixed, separation=separation, device="cpu")
        assert share > 0.0
        pose = motion.pose(share)
        assert tg.distance(part.moving(tg.Rest(pose)), fixed, device="cpu").lower > separation
        shares.append(share)
    assert min(shares) < 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"keep": 1.0}, "keep must be between"),
        ({"keep": 0.0}, "keep must be between"),
        ({"separation": -1.0}, "separat"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(tg.TangereError, match=message):
        tg.largest_step(tg.generate.box(), tg.generate.torus(), device="cpu", **arguments)


def test_a_step_that_begins_too_near_is_refused():
    box = tg.generate.box()
    over = box.at(np.array([[1, 0, 0, 1.01], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]]))
    with pytest.raises(tg.TangereError, match=r"begins nearer than the separation of 0\.02 m"):
        tg.largest_step(box, over, separation=0.02, device="cpu")
    with pytest.raises(tg.TangereError, match="begins in contact"):
        tg.largest_step(
            box, box.at(np.array([[1, 0, 0, 1.0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]])), device="cpu"
        )
    turning = over.moving(tg.Twist(np.eye(4), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)))
    with pytest.raises(
        tg.TangereError, match="largest step of a Mesh in Linear motion and a Mesh in rigid motion is not known"
    ):
        tg.largest_step(box.moving(tg.Linear(box.vertices + 1.0)), turning, device="cpu")
    many = over.moving(tg.Twist(np.tile(np.eye(4), (3, 1, 1)), np.ones((3, 3)), np.zeros((3, 3))))
    with pytest.raises(tg.TangereError, match="one motion of each mesh"):
        tg.largest_step(many, box, device="cpu")
    along = over.moving(tg.Path(np.tile(np.eye(4), (2, 1, 1))))
    with pytest.raises(tg.TangereError, match="largest step of a Mesh along a Path and a Mesh at rest is not known"):
        tg.largest_step(along, box, device="cpu")
    with pytest.raises(tg.TangereError, match="largest step of an analytic body"):
        tg.largest_step(tg.Sphere(1.0), box, device="cpu")
