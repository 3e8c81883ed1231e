"""Ready worlds do what they are there for, and none of their states has an intersection."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

from tangere.dynamics import scenes
from tangere.runtime import InputError
from tests.oracles.rigid_worlds import EnergyRule, meeting_pairs


def run(world, steps, every=10):
    energy = EnergyRule(world)
    for number in range(steps):
        world.step()
        energy.look()
        if number % every == every - 1:
            assert meeting_pairs(world) == []
    assert meeting_pairs(world) == []
    assert world.truncation.all_bodies == 0
    return energy


@pytest.mark.parametrize(
    ("make", "steps"),
    [
        (lambda: scenes.stack(5, device="cpu"), 40),
        (lambda: scenes.arch(device="cpu"), 40),
        (lambda: scenes.card_house(2, device="cpu"), 60),
    ],
    ids=["stack", "arch", "cards"],
)
def test_what_stands_stands_still(make, steps):
    world = make()
    before = world.positions
    run(world, steps, every=20)
    size = min(body.mesh.extent for body in world.bodies if body.moves)
    assert np.linalg.norm(world.positions - before, axis=1).max() < 0.01 * size
    assert np.abs(world.velocities[:, :3]).max() < 1e-3


def test_a_stack_of_thirty_stands_still():
    world = scenes.stack(30, device="cpu")
    before = world.positions
    run(world, 300, every=50)
    assert np.linalg.norm(world.positions - before, axis=1).max() < 1e-3
    assert np.abs(world.velocities[:, :3]).max() < 1e-3


@pytest.mark.slow
@pytest.mark.feature("F-R-81")
@pytest.mark.parametrize("name", scenes.SCENES)
def test_no_state_of_any_scene_has_an_intersection(name):
    """As long as shows all that happens in it, looked at after every step."""
    make, steps = scenes.SCENES[name]
    run(make(device="cpu"), steps, every=1)


def test_an_arch_that_is_too_thin_falls():
    world = scenes.arch(device="cpu", thickness=0.06, stones=15)
    before = world.positions
    run(world, 80, every=20)
    assert np.linalg.norm(world.positions - before, axis=1).max() > 0.1


def test_the_cradle_hands_its_swing_to_the_last_ball():
    world = scenes.cradle(device="cpu")
    energy = run(world, 85, every=20)
    speed = np.abs(world.velocities[:, 0])
    assert speed[-1] > 1.3
    assert speed[:-1].max() < 0.01 * speed[-1]
    assert energy.part < 5e-3


def test_a_chain_swings_down_and_stays_linked():
    world = scenes.chain(4, device="cpu")
    run(world, 60)
    assert world.positions[-1, 2] < -0.1
    apart = np.linalg.norm(np.diff(world.positions, axis=0), axis=1)
    assert apart.max() < 2 * (0.05 - 0.012) + 0.003  # no link has left the next


def test_a_bolt_turns_down_its_thread():
    world = scenes.bolt(device="cpu")
    start, turned = world.poses[1], 0.0
    for _ in range(5):
        before = world["bolt"].pose[:3, 0]
        world.run(steps=12)
        now = world["bolt"].pose[:3, 0]
        turned += np.arctan2(before[0] * now[1] - before[1] * now[0], before[:2] @ now[:2])
        assert meeting_pairs(world) == []
    sunk = start[2, 3] - world["bolt"].pose[2, 3]
    assert turned < -0.2
    assert sunk == pytest.approx(-turned / (2.0 * np.pi) * 0.04, abs=0.003)  # as its pitch says, but for the play


def test_boxes_fall_into_the_bin():
    world = scenes.pile(18, device="cpu")
    run(world, 60, every=20)
    assert (np.abs(world.positions[5:, :2]) < 2.0).all()  # half of the bin is 2
    assert world.positions[5:, 2].min() > 0.3


@pytest.mark.feature("F-R-67")
def test_a_body_of_29000_triangles_bounces_and_slides_without_an_intersection():
    world = scenes.bouncing_body(device="cpu")
    assert len(world["car body"].body.mesh.faces) == 29_000
    heights = []
    energy = EnergyRule(world)
    for number in range(120):
        world.step()
        energy.look()
        heights.append(world["car body"].position[2])
        if number % 10 == 9:
            assert meeting_pairs(world) == []
    turns = np.sign(np.diff(heights))
    assert ((turns[:-1] < 0) & (turns[1:] > 0)).sum() >= 2  # it bounced
    assert world["car body"].position[0] > world.bodies[1].pose[0, 3] + 0.1  # and slid on
    assert energy.part < 5e-3


@pytest.mark.parametrize(
    ("make", "triangles"),
    [
        pytest.param(scenes.door_positioning, 45_000, marks=pytest.mark.feature("F-R-68")),
        pytest.param(scenes.motor_removal, 20_000, marks=pytest.mark.feature("F-R-69")),
        pytest.param(scenes.pylon_extraction, 80_000, marks=pytest.mark.feature("F-R-70")),
    ],
)
def test_parts_are_led_to_where_they_go_by_a_hand_that_trembles(make, triangles):
    """Within two security distances of the target; the pylon's part pivots by a right angle on its way."""
    world = make(device="cpu")
    assert sum(len(body.mesh.faces) for body in world.bodies) == triangles
    guide, start = world.phases["guide"], world.poses[1]
    touched = 0
    while not guide.done and world.steps < 600:
        world.step()
        touched += len(world.contacts) > 0
        if world.steps % 20 == 0:
            assert meeting_pairs(world) == []
    assert guide.done
    assert meeting_pairs(world) == []
    shift, turn = guide.missing()
    assert shift <= 2.0 * world.separation
    assert turn < 2e-3
    assert touched > 5  # it did slide along
    assert world.truncation.all_bodies == 0
    if make is scenes.pylon_extraction:
        assert np.arccos(np.clip(0.5 * (np.trace(start[:3, :3].T @ world.poses[1, :3, :3]) - 1.0), -1, 1)) > 1.5


def test_barrels_rest_on_road_and_kerb_and_a_robot_pulls_its_trailer():
    resting = scenes.barrels(device="cpu")
    resting.run(0.5)
    assert np.abs(resting.velocities).max() < 1e-2
    robot = scenes.robot_with_trailer(device="cpu")
    before = robot["trailer"].position
    robot.run(1.0)
    assert robot["trailer"].position[0] > before[0] + 0.2


@pytest.mark.feature("F-R-77")
def test_the_demo_of_the_thesis_is_at_most_thirty_lines_of_python(capsys, monkeypatch):
    """A pot pushed by 2 cm a step, turned by up to 0.025 rad about each axis, slides over what is in its way."""
    path = Path(__file__).parents[2] / "examples" / "a_pot_past_a_rock.py"
    assert len(path.read_text().splitlines()) <= 30
    monkeypatch.setattr(sys, "argv", [path.name])
    runpy.run_path(str(path), run_name="__main__")  # with checks of its own
    assert "past it after" in capsys.readouterr().out


def test_a_hand_leads_only_where_velocities_follow_forces():
    with pytest.raises(InputError, match="order 1"):
        scenes.Guide(scenes.stack(1, device="cpu"), "cube 0", [np.eye(4)], reach=1e-3)
    with pytest.raises(InputError, match="count must be"):
        scenes.stack(0)
