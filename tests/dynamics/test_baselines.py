"""Simulations that look at ends of steps, or push with springs, fail where a world does not."""

from __future__ import annotations

import numpy as np
import pytest

from bench.baselines import SCENES, backtracking, discrete, wrong_side_exit
from bench.dynamics_baselines import PLAY, overlaps, penalty_peg, thrown, world_peg

PLATE, HOOPS, WALL, _ = SCENES


@pytest.mark.feature("F-R-82")
@pytest.mark.parametrize("name", [PLATE, HOOPS, WALL])
def test_what_is_thrown_through_in_one_step_is_stopped_by_a_world(name):
    scene = SCENES[name]
    if name == WALL:  # found in the wall, and pushed out on its other side
        end = scene.motion.pose(1.0)
        came = scene.motion.pose(0.0)[:3, 3] - end[:3, 3]
        assert wrong_side_exit(scene.part, scene.fixed, end) @ came < 0.0
    else:
        assert discrete(scene.part, scene.fixed, scene.motion) == 1.0
        assert backtracking(scene.part, scene.fixed, scene.motion) == 1.0
    world, poses = thrown(scene)
    assert not any(overlaps(scene, pose) for pose in poses)
    way = scene.motion.pose(1.0)[:3, 3] - scene.motion.pose(0.0)[:3, 3]
    gone = (poses[0] - scene.motion.pose(0.0))[:3, 3] @ way / (way @ way)
    assert gone < 0.95
    assert world.truncation.all_lost_time == 0.0


@pytest.mark.feature("F-R-82")
def test_springs_let_a_peg_enter_its_walls_or_rattle_and_a_world_rests():
    soft, stiff = penalty_peg(1e3), penalty_peg(2.56e5)
    assert soft.deepest > PLAY
    assert stiff.speed > 0.1
    world, peg = world_peg()
    assert peg.deepest < 0.0
    assert peg.speed < 1e-3
    assert world.truncation.all_lost_time == 0.0
    assert np.abs(world["peg"].position[1:]).max() < 2 * PLAY
