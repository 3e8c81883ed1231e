"""Paths of screws, and how finely a motion is cut into them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from tangere.motion import Path, Screw, Twist, deviation, split
from tangere.runtime import InputError


def poses_along(rng, count: int) -> np.ndarray:
    poses = np.tile(np.eye(4), (count, 1, 1))
    poses[:, :3, :3] = Rotation.from_rotvec(rng.normal(size=(count, 3))).as_matrix()
    poses[:, :3, 3] = rng.normal(size=(count, 3))
    return poses


def test_a_path_goes_through_its_poses_by_screws(rng):
    poses = poses_along(rng, 6)
    times = np.array([0.0, 0.1, 0.15, 0.5, 0.9, 1.0])
    path = Path(poses, times)
    assert np.abs(path.pose(times) - poses).max() < 1e-12
    for k in range(5):
        screw = Screw(poses[k], poses[k + 1])
        for part in (0.25, 0.5):
            t = times[k] + part * (times[k + 1] - times[k])
            assert np.abs(path.pose(t) - screw.pose(part)).max() < 1e-12
            moved = (path.pose(t + 1e-7) - path.pose(t - 1e-7)) / 2e-7
            angular, linear = path.twist(t)
            assert np.abs(moved[:3, 3] - linear - np.cross(angular, path.pose(t)[:3, 3])).max() < 1e-5


def test_the_motion_between_two_times_of_a_segment_is_the_path(rng):
    path = Path(poses_along(rng, 4))
    begin, end = np.array([0.0, 0.4, 2 / 3]), np.array([0.2, 0.6, 1.0])
    between = path.between(begin, end)
    for k in range(3):
        assert np.abs(between.pose(0.5)[k] - path.pose(0.5 * (begin[k] + end[k]))).max() < 1e-12


def test_paths_that_make_no_sense_are_refused(rng):
    poses = poses_along(rng, 3)
    with pytest.raises(InputError, match="k >= 2"):
        Path(poses[:1])
    with pytest.raises(InputError, match="times must rise from 0 to 1"):
        Path(poses, [0.0, 0.7, 0.6])
    with pytest.raises(InputError, match="3 poses and times of shape"):
        Path(poses, [0.0, 1.0])


def largest_error(reference, path) -> float:
    """How far the origin of the body on the path gets from the reference."""
    times = np.linspace(0.0, 1.0, 2001)
    return float(np.linalg.norm(path.pose(times)[:, :3, 3] - reference.pose(times)[:, :3, 3], axis=1).max())


@pytest.mark.feature("F-R-5")
def test_halving_the_steps_quarters_the_error_as_predicted():
    """A straight way with a steady turn, cut into screws: the error is the sagitta m w / 8."""
    way, turn = np.array([0.8, -0.3, 0.1]), np.array([0.2, 0.4, 1.1])
    reference = Twist(np.eye(4), way, turn)
    errors = []
    for steps in (1, 2, 4, 8, 16):
        times = np.linspace(0.0, 1.0, steps + 1)
        poses = reference.pose(times)
        errors.append(largest_error(reference, Path(poses, times)))
        across = np.linalg.norm(way - (way @ turn) * turn / (turn @ turn)) / steps
        angle = np.linalg.norm(turn) / steps
        assert errors[-1] == pytest.approx(0.5 * across * np.tan(angle / 4), rel=1e-3)
        assert errors[-1] == pytest.approx(across * angle / 8, rel=0.04)
        assert deviation(poses[:-1], poses[1:]).max() == pytest.approx(errors[-1], rel=1e-3)
    ratios = np.divide(errors[:-1], errors[1:])
    assert (np.abs(ratios - 4.0) < 0.15).all()


@pytest.mark.feature("F-R-5")
def test_splitting_keeps_the_error_below_the_tolerance_over_several_turns():
    reference = Twist(np.eye(4), [1.0, 0.0, 0.2], [0.0, 3.0, 40.0])
    counts = []
    for tolerance in (1e-2, 1e-3, 1e-4):
        path = split(reference, tolerance)
        assert largest_error(reference, path) <= tolerance * 1.001
        counts.append(len(path))
    assert counts[0] < counts[1] < counts[2] < 20_000
    with pytest.raises(InputError, match="tolerance must be a length"):
        split(reference, 0.0)


def test_a_path_file_gives_back_poses_and_times_to_the_last_digit(rng, tmp_path):
    path = Path(poses_along(rng, 5), [0.0, 0.2, 0.25, 0.7, 1.0], clock=(1.5, 9.0))
    path.save(tmp_path / "way.csv")
    again = Path.load(tmp_path / "way.csv")
    assert again.clock == (1.5, 9.0)
    assert np.allclose(again.poses, path.poses, atol=1e-15, rtol=0)
    assert np.allclose(again.times, path.times, atol=1e-15, rtol=0)
    lines = (tmp_path / "way.csv").read_text().splitlines()
    assert lines[0] == "t,x,y,z,qw,qx,qy,qz"
    first = np.array(lines[1].split(","), float)
    expected = Rotation.from_matrix(path.poses[0, :3, :3]).as_quat()  # x, y, z, w
    assert np.allclose(np.abs(first[4:] @ np.roll(expected, 1)), 1.0)


@pytest.mark.parametrize("header", ["# timestamp tx ty tz qx qy qz qw\n", "", "t,x,y,z,qx,qy,qz,qw\n"])
def test_files_with_w_last_are_read_where_the_header_or_the_caller_says_so(header, rng, tmp_path):
    poses = poses_along(rng, 4)
    times = np.array([10.0, 11.0, 12.5, 14.0])
    rows = np.column_stack([times, poses[:, :3, 3], Rotation.from_matrix(poses[:, :3, :3]).as_quat()])
    apart = "," if header.startswith("t,") else " "
    (tmp_path / "way.txt").write_text(header + "\n".join(apart.join(map(repr, map(float, row))) for row in rows))
    for order in ["xyzw"] if not header.startswith("t,") else ["xyzw", None]:
        path = Path.load(tmp_path / "way.txt", quaternion=order)
        assert np.allclose(path.poses, poses, atol=1e-12)
        assert path.clock == (10.0, 14.0)
    if header.startswith("t,"):
        with pytest.raises(InputError, match="said to be wxyz, but its header says xyzw"):
            Path.load(tmp_path / "way.txt", quaternion="wxyz")
    else:
        with pytest.raises(InputError, match="quaternion= tells their order"):
            Path.load(tmp_path / "way.txt")


def test_a_path_is_saved_with_w_last_on_demand(rng, tmp_path):
    path = Path(poses_along(rng, 3))
    path.save(tmp_path / "way.csv", quaternion="xyzw")
    assert (tmp_path / "way.csv").read_text().startswith("t,x,y,z,qx,qy,qz,qw\n")
    assert np.allclose(Path.load(tmp_path / "way.csv").poses, path.poses, atol=1e-15, rtol=0)
    with pytest.raises(InputError, match="quaternion must be one of wxyz, xyzw, not 'zyxw'"):
        path.save(tmp_path / "way.csv", quaternion="zyxw")


@pytest.mark.parametrize("clock", [(1.0, 1.0), (2.0, 1.0), (0.0, np.inf), 3.0, None])
def test_a_clock_that_does_not_rise_is_refused(clock, rng):
    with pytest.raises(InputError, match="clock must be two times"):
        Path(poses_along(rng, 3), clock=clock)
