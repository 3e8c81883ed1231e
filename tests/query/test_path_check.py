"""Checking a path: analytic cases, dense sampling of everything in between, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import tangere as tg
from oracles.rigid_distances import mesh_distances
from tangere.motion import Linear, Path, Rest
from tangere.query.contacts import Contacts, Status
from tangere.query.path_check import check_path
from tangere.runtime import InputError
from tangere.shape.generate import box, icosphere, torus, window_lifter


def shifted(*places) -> np.ndarray:
    poses = np.tile(np.eye(4), (len(places), 1, 1))
    poses[:, :3, 3] = places
    return poses


def random_path(rng: np.random.Generator, count: int = 5, turn: float = 0.6) -> Path:
    poses = shifted(*rng.uniform(-2.2, 2.2, (count, 3)))
    vectors = turn * rng.normal(size=(count, 3))
    poses[:, :3, :3] = Rotation.from_rotvec(vectors).as_matrix()
    return Path(poses)


def test_a_box_that_slides_into_another_touches_where_arithmetic_says():
    cube = box(size=(1.0, 1.0, 1.0))
    path = Path(shifted((-3, 0, 0), (-1.5, 0, 0), (1, 0, 0)), [0.0, 0.25, 1.0])
    check = check_path(cube, cube, path, device="cpu")
    expected = 0.25 + 0.75 * 0.5 / 2.5
    assert check.status == Status.CONTACT
    assert expected - 1e-6 < check.time <= expected
    assert check.segment_status.tolist() == [Status.FREE, Status.CONTACT]
    assert check.segment_obstacle.tolist() == [-1, 0]
    assert np.abs(check.contacts.normal).max(axis=0)[0] == pytest.approx(1.0)
    assert (check.contacts.time == check.time).all()
    assert np.allclose(check.pose, path.pose(check.time))


def test_of_several_obstacles_the_first_one_met_is_told():
    cube = box(size=(1.0, 1.0, 1.0))
    far, near = cube.moving(Rest(shifted((6, 0, 0))[0])), cube.moving(Rest(shifted((4, 0, 0))[0]))
    check = check_path(
        cube,
        [far, near, box(size=(0.5, 0.5, 0.5)).at(shifted((0, 9, 0))[0])],
        Path(shifted((0, 0, 0), (8, 0, 0))),
        device="cpu",
    )
    assert check.contacts.body_b[0] == 1
    assert check.time == pytest.approx(3.0 / 8.0, abs=1e-6)
    assert check.clearance.obstacle[0] == 1


def test_an_answer_without_contacts_that_is_not_free_still_tells_its_obstacle():
    """Of two obstacles that of the first segment which is not free, not the one with the last number."""
    found = check_path(box(), [box(), box()], Path(shifted((5, 0, 0), (0.2, 0, 0), (6, 0, 0))), device="cpu")
    assert found.obstacle == found.contacts.body_b[0] == 0
    undecided = replace(
        found,
        status=Status.UNRESOLVED,
        contacts=Contacts(),
        segment_obstacle=np.array([0, 1], found.segment_obstacle.dtype),
    )
    assert undecided.obstacle == 0
    assert repr(undecided).startswith("PathCheck(unresolved at t=")
    assert "obstacle 0" in repr(undecided)
    free = check_path(box(), box(), Path(shifted((5, 0, 0), (6, 0, 0))), device="cpu")
    assert free.obstacle is None
    assert repr(free.clearance) == "Clearance(3.99999 to 4 m at t=0; 5 instants)"


def test_a_free_path_has_the_clearance_of_its_nearest_instant():
    ball = icosphere(3, radius=1.0)
    check = check_path(ball, ball, Path(shifted((-3, 2.5, 0), (3, 2.5, 0))), instants=8, device="cpu")
    assert not check
    assert check.status == Status.FREE
    assert check.clearance.least == pytest.approx(0.5, abs=0.02)
    assert check.clearance.certain <= check.clearance.least
    assert len(check.contacts) == 0


@pytest.mark.parametrize("instants", [1, 4])
def test_the_clearance_is_zero_at_a_contact_that_no_instant_sees(instants):
    cube, wall = box(size=(1.0, 1.0, 1.0)), box(size=(0.01, 4.0, 4.0))
    check = check_path(cube, wall, Path(shifted((-3, 0, 0), (3, 0, 0))), instants=instants, device="cpu")
    expected = (3.0 - 0.505) / 6.0
    assert check.status == Status.CONTACT
    assert (check.clearance.least, check.clearance.certain) == (0.0, 0.0)
    assert check.clearance.least_time == pytest.approx(expected, abs=1e-5)
    at_contact = check.clearance.time == check.time
    assert at_contact.sum() == 1
    assert 0.0 <= check.clearance.upper[at_contact][0] <= 1e-6 * wall.extent
    assert (np.diff(check.clearance.time) > 0.0).all()


def test_the_clearance_is_zero_where_the_part_starts_inside_its_obstacle():
    cube = box(size=(1.0, 1.0, 1.0))
    check = check_path(cube, cube, Path(shifted((0.3, 0.2, 0.1), (5, 0, 0))), device="cpu")
    assert (check.clearance.least, check.clearance.least_time, check.clearance.certain) == (0.0, 0.0, 0.0)


def test_a_contact_that_is_not_certain_leaves_the_gap_it_was_found_with():
    """Two cubes pass each other within the tolerance of contact and never touch."""
    cube, gap = box(size=(1.0, 1.0, 1.0)), 2e-7
    path = Path(shifted((-3, 1.0 + gap, 0), (3, 1.0 + gap, 0)))
    check = check_path(cube, cube, path, tolerance=1e-6, instants=2, device="cpu")
    assert check.status == Status.CONTACT
    assert check.time_upper == np.inf
    assert check.clearance.least == pytest.approx(gap, abs=1e-12)
    assert check.clearance.upper[check.clearance.time == check.time][0] <= 1e-6


@pytest.mark.parametrize("separation", [0.1, 0.4])
def test_a_path_certified_free_at_a_separation_is_certain_to_keep_it(separation):
    ball = icosphere(3, radius=1.0)
    path = Path(shifted((-3, 2.6, 0), (0, 2.6, 0.1), (3, 2.6, 0)))
    check = check_path(ball, ball, path, separation=separation, instants=1, device="cpu")
    assert check.status == Status.FREE
    assert separation <= check.clearance.certain <= check.clearance.least
    assert (check.clearance.between >= separation).all()
    assert (check.clearance.lower <= check.clearance.upper).all()


@pytest.mark.parametrize("accuracy", [0.5, 0.1])
def test_the_certified_clearance_of_a_free_path_is_near_the_least_of_many_samples(accuracy):
    rng = np.random.default_rng(11)
    ring, ball = torus(400), icosphere(subdivisions=1, radius=0.25)
    free = 0
    for _ in range(30):
        path = random_path(rng)
        check = check_path(ball, ring, path, instants=2, accuracy=accuracy, device="cpu")
        if check:
            continue
        free += 1
        near = check.clearance
        poses = path.pose(np.linspace(0.0, 1.0, 400))
        apart = mesh_distances(ball, ring, poses, np.tile(np.eye(4), (400, 1, 1)))
        assert near.certain <= apart.min() + 1e-9
        assert (1.0 - accuracy) * near.least <= near.certain + 1e-12
        assert near.least <= apart.min() / (1.0 - accuracy)
    assert free > 2


def test_a_dip_between_two_instants_is_found_and_told_with_its_time():
    """A bar swings past a post halfway between the ends of the path, where alone the distance is measured."""
    bar, post = box(size=(2.0, 0.1, 0.1)), box(size=(0.1, 0.1, 3.0)).moving(Rest(shifted((0.0, 1.25, 0.0))[0]))
    poses = np.tile(np.eye(4), (2, 1, 1))
    poses[1, :3, :3] = Rotation.from_rotvec((0.0, 0.0, 0.99 * np.pi)).as_matrix()
    check = check_path(bar, post, Path(poses), instants=1, accuracy=0.05, device="cpu")
    assert not check
    assert 0.18 < check.clearance.certain <= check.clearance.least < 0.21
    assert check.clearance.least_time == pytest.approx(0.5 / 0.99, abs=0.05)
    far = check_path(bar, post, Path(poses), instants=1, cap=0.1, device="cpu")
    assert far.clearance.certain == pytest.approx(0.09)


@pytest.mark.parametrize("seed", range(6))
def test_clearances_hold_and_a_separation_is_kept_up_to_the_contact(seed, effort):
    rng = np.random.default_rng(seed)
    part, obstacle, separation = torus(grid=(12, 8)), icosphere(2, radius=0.7), 0.15
    path = random_path(rng)
    check = check_path(part, obstacle, path, separation=separation, instants=2, device="cpu")

    def apart_at(times: np.ndarray) -> np.ndarray:
        return mesh_distances(part, obstacle, path.pose(times), np.tile(np.eye(4), (len(times), 1, 1)))

    clearance = check.clearance
    times = np.linspace(0.0, 1.0, effort(200, least=20))
    interval = np.clip(np.searchsorted(clearance.time, times, side="right") - 1, 0, len(clearance.between) - 1)
    assert (apart_at(times) >= clearance.between[interval] - 1e-9).all()
    measured = apart_at(clearance.time)
    assert (clearance.lower - 1e-9 <= measured).all()
    assert (measured <= clearance.upper + 1e-9).all()
    assert (clearance.lower[clearance.time < check.time] >= separation).all()
    assert not check or clearance.least <= separation + 1e-5


@pytest.mark.parametrize("seed", range(6))
def test_before_the_first_contact_nothing_is_nearer_and_clearances_hold_in_between(seed, effort):
    rng = np.random.default_rng(seed)
    part, obstacle = torus(grid=(12, 8)), icosphere(2, radius=0.7)
    path = random_path(rng)
    check = check_path(part, obstacle, path, instants=3, device="cpu")

    def apart_at(times: np.ndarray) -> np.ndarray:
        return mesh_distances(part, obstacle, path.pose(times), np.tile(np.eye(4), (len(times), 1, 1)))

    times = np.linspace(0.0, 1.0, effort(200, least=20))
    apart = apart_at(times)
    assert (apart[times < check.time] > 0.0).all()
    interval = np.minimum(
        np.searchsorted(check.clearance.time, times, side="right") - 1, len(check.clearance.between) - 1
    )
    assert (apart >= check.clearance.between[interval] - 1e-9).all()
    measured = apart_at(check.clearance.time)
    assert (check.clearance.lower - 1e-9 <= measured).all()
    assert (measured <= check.clearance.upper + 1e-9).all()
    if check:
        assert apart_at(np.array([check.time]))[0] <= 1e-6 * max(part.extent, obstacle.extent)


def test_a_part_that_starts_inside_its_obstacle_is_told_so():
    cube = box(size=(1.0, 1.0, 1.0))
    check = check_path(cube, cube, Path(shifted((0.3, 0.2, 0.1), (5, 0, 0))), device="cpu")
    assert check.status == Status.START
    assert check.time == 0.0


def test_an_overlap_at_the_start_is_told_whatever_only_touches_then():
    cube = box(size=(1.0, 1.0, 1.0))
    near, over = (cube.at(pose) for pose in shifted((1.0 + 5e-7, 0, 0), (-0.5, 0, 0)))
    for obstacles, number in (([near, over], 1), ([over, near], 0)):
        check = check_path(cube, obstacles, Path(shifted((0, 0, 0), (0, 0, 0.1))), device="cpu")
        assert (check.status, check.time, check.time_upper) == (Status.START, 0.0, 0.0)
        assert check.segment_status.tolist() == [Status.START]
        assert check.segment_obstacle.tolist() == [number]
        assert set(check.contacts.body_b.tolist()) == {number}


@pytest.mark.long_in_debug
def test_the_window_lifter_comes_out_one_way_and_not_the_other():
    task = window_lifter()
    free = check_path(task.part, task.fixed, Path(task.free_path), instants=1, device="cpu")
    touching = check_path(task.part, task.fixed, Path(task.touching_path), instants=1, device="cpu")
    assert not free
    assert free.clearance.certain >= 0.0
    assert touching.status == Status.CONTACT
    assert 0.0 < touching.time < 1.0


def test_progress_counts_up_to_its_total():
    calls = []
    cube = box(size=(1.0, 1.0, 1.0))
    places = [(3.0 + 0.01 * k, 0.0, 0.0) for k in range(200)]
    check_path(
        cube, [cube, cube], Path(shifted(*places)), instants=1, progress=lambda *at: calls.append(at), device="cpu"
    )
    assert [done for done, _ in calls] == list(range(1, calls[-1][1] + 1))
    assert calls[-1][0] == calls[-1][1]


def test_a_bar_of_progress_is_on_stderr_and_changes_nothing(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    cube = box()
    path = Path(shifted((3, 0, 0), (1, 0, 0)))
    shown = check_path(cube, cube, path, progress=True, device="cpu")
    written = capsys.readouterr()
    assert "checking the path" in written.err
    assert written.out == ""
    assert shown.time == check_path(cube, cube, path, device="cpu").time
    assert capsys.readouterr().err == ""


def test_what_cannot_be_checked_is_refused_by_name():
    cube = box()
    path = Path(shifted((3, 0, 0), (4, 0, 0)))
    moving = cube.moving(Linear(cube.vertices))
    for wrong, reason in (
        (lambda: check_path(moving, cube, path), "part must be a Mesh"),
        (lambda: check_path(cube, [], path), "no obstacles"),
        (lambda: check_path(cube, [cube, moving], path), "obstacle 1"),
        (
            lambda: check_path(cube, cube, shifted((0, 0, 0))),
            r"not an array of .* \(1, 4, 4\).*tg.Path\(poses\)",
        ),
        (lambda: check_path(cube, cube, path, instants=0), "instants"),
        (lambda: check_path(cube, cube, path, instants=2.5), "instants must be a whole number"),
        (lambda: check_path(cube, None, path), "obstacles must be a Mesh or a list of them, not NoneType"),
    ):
        with pytest.raises(InputError, match=reason):
            wrong()


def test_a_path_survives_its_file(tmp_path, rng):
    path = random_path(rng, 7)
    Path(path.poses, path.times, clock=(2.0, 5.0)).save(tmp_path / "path.csv")
    again = Path.load(tmp_path / "path.csv")
    clock = again.clock
    assert clock == (2.0, 5.0)
    assert np.allclose(again.poses, path.poses, atol=1e-14)
    assert np.allclose(again.times, path.times, atol=1e-14)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "begins with the line t,x,y,z"),
        ("t,x,y\n0,1,2\n", "begins with the line t,x,y,z"),
        ("t,x,y,z,qw,qx,qy,qz\n0,0,0,0,1,0,0,0\n", "at least two poses, not 1"),
        ("t,x,y,z,qw,qx,qy,qz\n0,0,0,0,1,0,0,0\n0,1,0,0,1,0,0,0\n", "times must rise"),
        ("t,x,y,z,qw,qx,qy,qz\n0,0,0,0,1,0,0,0\n1,1,0,0,0,0,0,0\n", "must not be zero"),
        ("t,x,y,z,qw,qx,qy,qz\n0,0,0,0,1,0,0,0\n1,1,0,0,1,0,0\n", "line 3 has 7 columns"),
        ("t,x,y,z,qw,qx,qy,qz\n0,0,0,0,1,0,0,0\n1,nan,0,0,1,0,0,0\n", "line 3 has a number that is not finite"),
        ("t,x,y,z,qw,qx,qy,qz\n0,0,0,0,1,0,0,0\n1,a,0,0,1,0,0,0\n", "line 3"),
    ],
)
def test_a_bad_path_file_is_refused_with_the_line(tmp_path, text, reason):
    (tmp_path / "path.csv").write_text(text)
    with pytest.raises(InputError, match=reason):
        Path.load(tmp_path / "path.csv")


def test_parts_and_obstacles_of_any_kind_are_checked_along_a_path():
    """All as high as a unit box, over each other: the clearance is the height between them."""
    heights = np.array([3.0, 1.5, 1.25, 2.0])
    poses = np.tile(np.eye(4), (4, 1, 1))
    poses[:, 2, 3] = heights
    path, ground = tg.Path(poses), tg.Heightfield(np.full((9, 9), 0.5), 1.0, origin=(-4.0, -4.0, 0.0))
    box = tg.generate.box([1.0, 1.0, 1.0])
    for part in (tg.Sphere(0.5), tg.Cylinder(0.5, 1.0), box):
        for obstacle in (tg.Box([0.5, 0.5, 0.5]), tg.Cone(0.5, 1.0), box, ground, [tg.Sphere(0.5), ground, box]):
            found = tg.check_path(part, obstacle, path, device="cpu")
            assert found.status == tg.Status.FREE
            assert found.clearance.certain <= 0.25 <= found.clearance.least + 1e-9
            assert found.clearance.certain >= 0.9 * 0.25 - 1e-6
            for time, lower, upper in zip(
                found.clearance.time, found.clearance.lower, found.clearance.upper, strict=True
            ):
                height = path.pose(time)[2, 3] - 1.0
                assert lower - 1e-8 <= height <= upper + 1e-8
    lower = poses.copy()
    lower[2, 2, 3] = 0.75
    for part in (tg.Sphere(0.5), box):
        found = tg.check_path(part, [ground, tg.Sphere(0.4)], tg.Path(lower), device="cpu")
        assert found.segment_status.tolist() == [tg.Status.FREE, tg.Status.CONTACT, tg.Status.START]
        assert found.path.pose(found.time)[2, 3] == pytest.approx(1.0, abs=1e-5)
        assert found.obstacle == 0
        assert found.contacts.body_b.tolist()[0] == 0
    with pytest.raises(InputError, match="solid=True is for meshes"):
        tg.check_path(tg.Sphere(0.5), box, path, solid=True, device="cpu")
    with pytest.raises(InputError, match="obstacle 0 must be a Mesh, one body or ground at rest"):
        tg.check_path(box, [tg.Sphere([1.0, 2.0])], path, device="cpu")
