"""Rigid motions: rigid at every time, through their end poses, continuous, and the formulas of the family."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from tangere.motion import Chain, Linear, Path, Rest, Rigid, Screw, Twist
from tangere.published.redon_screws import CosineScrew, TanScrew
from tangere.runtime import InputError

#: Angles at which screws are hard: none, below any rounding, where the pivot moves to the axis, half a turn.
ANGLES = [0.0, 1e-300, 1e-17, 1e-14, 1e-12, 1e-9, 2e-9, 1e-6, 1e-3, 0.0999, 0.1001, 1.0, 2.0, 2.9]
HALF_TURNS = [3.1, np.pi - 1e-6, np.pi - 1e-9, np.pi - 1e-12, np.pi]
TIMES = np.linspace(0.0, 1.0, 41)
POINTS = np.eye(3)
TWO_POSES = Path(np.tile(np.eye(4), (2, 1, 1)))


def pose_from(vector, translation) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, :3] = Rotation.from_rotvec(vector).as_matrix()
    pose[:3, 3] = translation
    return pose


def random_pose(rng, size: float = 1.0) -> np.ndarray:
    return pose_from(rng.normal(size=3), size * rng.normal(size=3))


def end_poses(rng, angle: float, way: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Two poses a turn of `angle` apart."""
    start = random_pose(rng)
    axis = rng.normal(size=3)
    end = pose_from(axis / np.linalg.norm(axis) * angle, np.zeros(3)) @ start
    end[:3, 3] = start[:3, 3] + way * rng.normal(size=3)
    return start, end


def screws(rng) -> list[tuple[Rigid, np.ndarray, np.ndarray]]:
    """(motion, start, end) of every kind of screw and hard angle, several ways long."""
    found = []
    for angle in ANGLES + HALF_TURNS:
        for way in (0.0, 1e-9, 1.0, 100.0):
            start, end = end_poses(rng, angle, way)
            for kind in (Screw, CosineScrew) if angle in HALF_TURNS else (Screw, TanScrew, CosineScrew):
                found.append((kind(start, end), start, end))
    return found


def off_rigid(poses: np.ndarray) -> float:
    turns = poses[..., :3, :3]
    return float(np.abs(turns @ np.swapaxes(turns, -1, -2) - np.eye(3)).max())


@pytest.mark.feature("F-R-3")
def test_every_motion_is_rigid_interpolates_and_is_continuous(rng):
    motions = screws(rng)
    for _ in range(20):
        start = random_pose(rng)
        velocity, rotation, pivot = rng.normal(size=(3, 3))
        twist = Twist(start, velocity, 7.0 * rotation, pivot)
        turn = Rotation.from_rotvec(7.0 * rotation).as_matrix() @ start[:3, :3]
        end = np.eye(4)
        end[:3, :3] = turn
        end[:3, 3] = start[:3, 3] + start[:3, :3] @ pivot + velocity - turn @ pivot
        motions.append((twist, start, end))
    motions.append((Rest(start), start, start))
    for motion, start, end in motions:
        poses = motion.pose(TIMES)
        scale = max(1.0, np.abs(start).max(), np.abs(end).max())
        assert off_rigid(poses) < 1e-12
        assert np.abs(poses[0] - start).max() < 1e-12 * scale
        assert np.abs(poses[-1] - end).max() < 1e-12 * scale
        assert (poses[:, 3] == [0.0, 0.0, 0.0, 1.0]).all()
        # Continuous: a hundredth of the step makes small changes; the cosine variant starts like a square root.
        fine = motion.pose(np.linspace(0.0, 1.0, 4001))
        way = np.abs(np.diff(fine, axis=0)).max(axis=(1, 2))
        # 60: 21 rad a step at worst, and ways of a few hundred metres scale along
        lipschitz = 60.0 * scale * (np.sqrt(1.0 / 4000) if isinstance(motion, CosineScrew) else 1.0 / 4000)
        assert way.max() < lipschitz


@pytest.mark.feature("F-R-6")
def test_poses_to_screw_to_poses_is_the_identity_down_to_no_motion_and_up_to_half_a_turn(rng):
    for angle in [*ANGLES, *HALF_TURNS]:
        for way in (0.0, 1.0):
            start, end = end_poses(rng, angle, way)
            again = Screw(start, end)
            assert np.abs(again.pose(1.0) - end).max() < 1e-12
            record = again.records()[0]
            assert abs(record["angle"] - angle) < 1e-12 * max(angle, 1e-3)
            # the slide is along the axis: no part of it across
            assert np.linalg.norm(np.cross(record["velocity"], record["axis"])) < 1e-12
    still = Screw(start, start)
    assert (still.pose(TIMES) == still.pose(0.0)).all()
    assert np.abs(still.pose(0.3) - start).max() < 1e-15


@pytest.mark.feature("F-R-7")
def test_the_screw_family_turns_and_slides_as_its_formulas_say(rng):
    """Against the matrix form in a frame with the axis as z: rotation by a(t) and slide b(t)."""
    for angle in (0.2, 1.0, 2.5):
        slide = rng.normal()
        frame = random_pose(rng)  # of the screw: its z axis is the axis
        start = random_pose(rng)

        def at(a, b, frame=frame, start=start):
            turn = np.array([[np.cos(a), -np.sin(a), 0, 0], [np.sin(a), np.cos(a), 0, 0], [0, 0, 1, b], [0, 0, 0, 1.0]])
            return frame @ turn @ np.linalg.inv(frame) @ start

        end = at(angle, slide)
        formulas = {
            Screw: lambda t, w=angle: (w * t, t),
            TanScrew: lambda t, w=angle: (w * t, np.tan(w * t / 2) / np.tan(w / 2)),
            CosineScrew: lambda t, w=angle: (np.arccos(1 - t + t * np.cos(w)), t),
        }
        for kind, formula in formulas.items():
            motion = kind(start, end)
            for t in TIMES:
                a, b = formula(t)
                assert np.abs(motion.pose(t) - at(a, slide * b)).max() < 1e-7 * np.sqrt(t * (1 - t)) + 2e-13


def test_screws_without_turn_are_translations(rng):
    start, end = end_poses(rng, 0.0)
    for kind in (Screw, TanScrew, CosineScrew):
        poses = kind(start, end).pose(TIMES)
        straight = start + TIMES[:, None, None] * (end - start)
        assert np.abs(poses - straight).max() < 1e-15


@pytest.mark.parametrize("kind", [Screw, TanScrew, CosineScrew])
def test_twists_are_the_derivatives_of_poses(rng, kind):
    step = 1e-6
    for angle in (0.0, 1e-7, 0.05, 0.3, 2.0):
        motion = kind(*end_poses(rng, angle))
        for t in (0.2, 0.5, 0.9):
            angular, linear = motion.twist(t)
            points = rng.normal(size=(5, 3))
            before, after = motion.positions(points, t - step), motion.positions(points, t + step)
            expected = linear + np.cross(angular, motion.positions(points, t))
            assert np.abs((after - before) / (2 * step) - expected).max() < 1e-7


def test_a_twist_turns_any_number_of_times_about_a_pivot_that_goes_straight(rng):
    start, pivot, velocity = random_pose(rng), rng.normal(size=3), rng.normal(size=3)
    twist = Twist(start, velocity, [0.0, 0.0, 6.0 * np.pi], pivot)
    at = twist.positions(pivot[None], 0.0)
    for t in (1 / 3, 0.5, 2 / 3, 1.0):
        assert np.abs(twist.positions(pivot[None], t) - at - t * velocity).max() < 1e-13
    assert np.abs(twist.pose(1 / 3)[:3, :3] - start[:3, :3]).max() < 1e-14


def test_motions_come_in_batches(rng):
    starts = np.stack([random_pose(rng) for _ in range(5)])
    ends = np.stack([random_pose(rng) for _ in range(5)])
    batch = Screw(starts, ends)
    assert batch.shape == (5,)
    assert len(batch) == 5
    assert batch.pose(0.5).shape == (5, 4, 4)
    assert batch.positions(np.zeros((7, 3)), 0.5).shape == (5, 7, 3)
    one = Screw(starts[3], ends[3])
    assert (batch.pose(0.3)[3] == one.pose(0.3)).all()
    assert Twist(starts, np.zeros(3), np.ones((5, 3))).shape == (5,)
    assert Screw(starts[0], ends).shape == (5,)


def test_a_part_of_a_motion_goes_the_same_way(rng):
    for motion, _, _ in screws(rng)[::7]:
        part = motion.part(0.25, 0.75)
        assert np.abs(part.pose(TIMES) - motion.pose(0.25 + 0.5 * TIMES)).max() < 1e-12 * 100
    parts = motion.part([0.0, 0.5], [0.5, 1.0])
    assert parts.shape == (2,)
    assert np.abs(parts.pose(1.0)[0] - motion.pose(0.5)).max() < 1e-12


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: Screw(np.eye(3), np.eye(4)), r"Screw: start must have shape \(4, 4\)"),
        (lambda: Screw(np.eye(4), np.full((4, 4), np.nan)), "Screw: end contains numbers that are not finite"),
        (lambda: Rest(np.diag([2.0, 1.0, 1.0, 1.0])), "Rest: pose is not rigid: its rotation block"),
        (lambda: Rest(np.diag([-1.0, 1.0, 1.0, 1.0])), "Rest: pose is not rigid: it mirrors"),
        (lambda: Rest(np.stack([np.eye(4), np.ones((4, 4))])), r"Rest: pose\[1\] has a last row"),
        (lambda: Twist(np.eye(4), [np.inf, 0, 0], [0, 0, 0]), "Twist: displacement is not finite"),
        (lambda: Twist(np.tile(np.eye(4), (2, 1, 1)), np.zeros((3, 3)), np.zeros(3)), "not as many"),
        (lambda: TanScrew(np.eye(4), pose_from([0, 0, 3.1], [0, 0, 0])), "turns by 3.1 rad, more than 3.0: split"),
        (lambda: Rest().pose(1.5), r"times in \[0, 1\]"),
        *[(lambda t=t: Linear(POINTS).positions(POINTS, t), r"times in \[0, 1\]") for t in (np.nan, -0.1, 1.1)],
        (lambda: Linear(POINTS).positions(POINTS, [0.0, 0.5]), r"one number, not an array of shape \(2,\)"),
        (lambda: Linear(POINTS).positions([[0, 0]], 0.5), r"start must have shape \(n, 3\), not \(1, 2\)"),
        (lambda: Linear(POINTS).positions([0, 0, 0], 0.5), r"start must have shape \(n, 3\), not \(3,\)"),
        (lambda: Rest().positions([[0, 0]], 0.5), r"points must have shape \(m, 3\), not \(1, 2\)"),
        (lambda: TWO_POSES.positions([[0, 0]], 0.5), r"points must have shape \(m, 3\), not \(1, 2\)"),
        (lambda: TWO_POSES.positions(0.0, 0.5), r"points must have shape \(m, 3\), not \(\)"),
        (lambda: Chain([Rest()]).positions([[0, 0]], 0.5), r"points must have shape \(m, 3\), not \(2,\)"),
        (lambda: Rest().part(0.5, 0.2), "a part goes from one time"),
        (lambda: Chain([Rest(), Rest()], [1, 0]), "links 0 -> 1 -> 0 form a loop"),
        (lambda: Chain([Rest()], [3]), "link 0 hangs on link 3"),
        (lambda: Chain([Rest()], [0.7]), "parents must be a row of whole numbers"),
        (lambda: Chain([Rest()], 0), "parents must be a row of whole numbers"),
        (lambda: Chain(Rest()), "joints must be a list of motions, not Rest"),
        (lambda: Chain(3), "joints must be a list of motions, not 3"),
        (lambda: Chain([None]), "joint 0 must be one rigid motion, not None"),
        (lambda: Chain([Rest(), Rest()]).link(7), "there is no link 7; links are numbered 0 to 1"),
        (lambda: Chain([Rest(), Rest()]).link(-1), "there is no link -1"),
        (lambda: Chain([Rest(), Rest()]).link("hand"), "there is no link 'hand'"),
        (lambda: Chain([Rest(np.tile(np.eye(4), (2, 1, 1)))]), "joint 0 must be one rigid motion"),
    ],
)
def test_motions_that_make_no_sense_are_refused_with_the_reason(make, reason):
    with pytest.raises(InputError, match=reason):
        make()


def test_poses_in_single_precision_are_mended(rng):
    rough = random_pose(rng).astype(np.float32)
    assert off_rigid(Rest(rough).pose(0.0)) < 1e-15


def test_a_chain_is_the_product_of_its_joints(rng):
    joints = [Screw(*end_poses(rng, angle)) for angle in (0.5, 1.0, 0.2)] + [CosineScrew(*end_poses(rng, 1.0))]
    chain = Chain(joints, [-1, 0, 1, 0])
    for t in (0.1, 0.6):
        first, second, third, side = (joint.pose(t) for joint in joints)
        assert np.abs(chain.link(2).pose(t) - first @ second @ third).max() < 1e-12
        assert np.abs(chain.link(3).pose(t) - first @ side).max() < 1e-12
        angular, linear = chain.link(2).twist(t)
        points = rng.normal(size=(5, 3))
        moved = (chain.link(2).positions(points, t + 1e-6) - chain.link(2).positions(points, t - 1e-6)) / 2e-6
        assert np.abs(moved - linear - np.cross(angular, chain.link(2).positions(points, t))).max() < 1e-7
