"""First contact of smooth surfaces: never late, within tolerance, and cheap thanks to the boxes."""

from __future__ import annotations

import numpy as np
import pytest

from tangere.motion import Rest, Screw, Twist
from tangere.published.redon_intervals import BezierSurface, TorusSurface, surfaces_first_contact
from tangere.query.contacts import Status
from tangere.runtime import InputError, UnsupportedError


def cap(height: float = 1.0) -> BezierSurface:
    """A bulge over the square [-1, 1]^2, highest in the middle."""
    x, y = np.meshgrid(np.linspace(-1, 1, 4), np.linspace(-1, 1, 4), indexing="ij")
    z = np.zeros((4, 4))
    z[1:3, 1:3] = height
    return BezierSurface(np.stack([x, y, z], axis=-1))


def at(z: float, turn=(0, 0, 0)) -> np.ndarray:
    from scipy.spatial.transform import Rotation

    pose = np.eye(4)
    pose[:3, :3] = Rotation.from_rotvec(turn).as_matrix()
    pose[2, 3] = z
    return pose


def sampled_gap(a, motion_a, b, motion_b, time, count=60) -> float:
    """Least distance of sampled points of a from b: of the torus exactly, of patches by their samples."""
    u, v = (x.ravel() for x in np.meshgrid(np.linspace(0, 1, count), np.linspace(0, 1, count)))
    points = motion_a.positions(a.points(0, u, v), time).reshape(-1, 3)
    pose = motion_b.pose(time).reshape(4, 4)
    if isinstance(b, TorusSurface):
        return float(b.distance((points - pose[:3, 3]) @ pose[:3, :3]).min())
    from scipy.spatial import cKDTree

    others = motion_b.positions(b.points(0, u, v), time).reshape(-1, 3)
    return float(cKDTree(others).query(points)[0].min())


MOTIONS = {
    "straight": Twist(at(4.0, (np.pi, 0, 0)), [0, 0, -4], [0, 0, 0]),
    "turning": Twist(at(4.0, (np.pi, 0.3, 0)), [0.2, 0, -4], [0.7, 0.4, 1]),
    "screw": Screw(at(4.0, (2.9, 0, 0)), at(0.5, (2.0, 0.5, 0))),
}


@pytest.mark.feature("F-R-32")
def test_the_boxes_save_nine_tenths_of_the_inclusions_of_a_pair_of_patches(device):
    for name, motion in MOTIONS.items():
        arguments = (cap(), motion, cap(), Rest())
        filtered = surfaces_first_contact(*arguments, tolerance=0.02, device=device)
        plain = surfaces_first_contact(*arguments, tolerance=0.02, boxes=False, device=device)
        print(
            f"{name}: t {filtered.time:.5f} / {plain.time:.5f}, inclusions {filtered.inclusions} with boxes"
            f" ({filtered.box_tests} box tests), {plain.inclusions} without"
        )
        assert filtered.status == plain.status == Status.CONTACT
        np.testing.assert_allclose(filtered.time, plain.time, atol=0.02)
        assert plain.inclusions >= 10 * filtered.inclusions


@pytest.mark.parametrize("motion", MOTIONS)
@pytest.mark.parametrize("other", [cap(), TorusSurface(0.8, 0.3)], ids=["patch", "torus"])
def test_the_time_is_never_late_and_the_surfaces_are_near_there(motion, other, device):
    moving, tolerance = MOTIONS[motion], 0.01
    found = surfaces_first_contact(cap(), moving, other, Rest(at(0.1)), tolerance=tolerance, device=device)
    assert found.status == Status.CONTACT
    assert sampled_gap(cap(), moving, other, Rest(at(0.1)), found.time) <= tolerance + 0.05  # of the samples
    # The first sampled touch (within what a sample can tell) comes no earlier than the answer.
    for t in np.linspace(0, found.time, 50)[:-1]:
        assert sampled_gap(cap(), moving, other, Rest(at(0.1)), t) > 1e-3


def test_two_caps_meet_where_their_tops_do(device):
    """Tops at 0.5625 of the bulge's height meet at a known time."""
    top = float(cap().points(0, 0.5, 0.5)[2])
    found = surfaces_first_contact(cap(), MOTIONS["straight"], cap(), Rest(), tolerance=1e-3, device=device)
    truth = (4.0 - 2 * top) / 4.0
    assert truth - 1e-3 <= found.time <= truth
    np.testing.assert_allclose(found.parameters, 0.5, atol=0.1)


def test_a_torus_that_moves_meets_a_patch_at_rest_at_the_same_time(device):
    torus = TorusSurface(0.8, 0.3)
    there = surfaces_first_contact(
        cap(), Twist(at(4.0), [0, 0, -4], [0, 0, 0]), torus, Rest(), tolerance=5e-3, device=device
    )
    back = surfaces_first_contact(
        cap(), Rest(at(4.0)), torus, Twist(at(0.0), [0, 0, 4], [0, 0, 0]), tolerance=5e-3, device=device
    )
    np.testing.assert_allclose(there.time, back.time, atol=1e-2)


def test_surfaces_that_pass_are_free_and_those_that_touch_at_once_say_so(device):
    passing = surfaces_first_contact(cap(), Twist(at(4.0), [3, 0, 0], [0, 0, 1]), cap(), Rest(), device=device)
    assert passing.status == Status.FREE
    assert passing.time == np.inf
    assert passing.patch == (-1, -1)
    assert passing.inclusions == 0
    touching = surfaces_first_contact(cap(), Rest(), cap(), Rest(at(0.2, (0.5, 0, 0))), device=device)
    assert touching.status == Status.START
    assert touching.time == 0.0


def test_a_search_that_runs_out_answers_early_never_late(device):
    full = surfaces_first_contact(cap(), MOTIONS["turning"], cap(), Rest(), tolerance=0.02, device=device)
    short = surfaces_first_contact(
        cap(), MOTIONS["turning"], cap(), Rest(), tolerance=0.02, most_inclusions=20, device=device
    )
    assert short.time <= full.time


def test_what_it_cannot_take_is_named(device):
    with pytest.raises(UnsupportedError, match="TorusSurface and TorusSurface"):
        surfaces_first_contact(TorusSurface(), Rest(), TorusSurface(), Rest(), device=device)
    with pytest.raises(InputError, match="tolerance"):
        surfaces_first_contact(cap(), Rest(), cap(), Rest(), tolerance=0.0, device=device)
    with pytest.raises(InputError, match="motion_b is 2 motions"):
        surfaces_first_contact(cap(), Rest(), cap(), Rest(np.tile(np.eye(4), (2, 1, 1))), device=device)
