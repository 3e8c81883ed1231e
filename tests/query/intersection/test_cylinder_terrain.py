"""Exact touching of cylinders and ground: against brute force over all cells, and degenerate cases by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from oracles.cylinders_on_terrain import brute_touch, family, placed_at, tilted, triangles_meet
from tangere.query.intersection import touches
from tangere.runtime import UnsupportedError
from tangere.shape.analytic import Cylinder, Sphere
from tangere.shape.heightfield import Heightfield

KINDS = ("rough", "steep", "kerb", "flat", "slope")
#: A cylinder this near to touching may go either way: coordinates are of the order of 100 m.
ROUNDING = 1e-11


def disagreements(rng, device, kind, cell, count) -> tuple[int, int]:
    """How many answers differ from brute force, and how many cylinders touch."""
    field, cylinders = family(rng, kind, cell, count)
    answer = touches(cylinders, field, device=device).surface
    certain, possible = brute_touch(field, cylinders, -ROUNDING), brute_touch(field, cylinders, ROUNDING)
    return int((certain & ~answer).sum() + (answer & ~possible).sum()), int(answer.sum())


@pytest.mark.parametrize("kind", KINDS)
def test_touching_is_what_brute_force_over_all_cells_finds(kind, rng, device, effort):
    hits = 0
    for cell, count in ((0.05, 12), (0.3, 200), (1.0, 500), (4.0, 600), (20.0, 600)):
        wrong, found = disagreements(rng, device, kind, cell, effort(count))
        assert wrong == 0, f"cell {cell}"
        hits += found
    assert hits > effort(200)


@pytest.mark.slow
@pytest.mark.feature("F-S-5", "F-S-6")
def test_a_million_cylinders_touch_as_brute_force_says(rng, device, effort):
    done = hits = 0
    while done < effort(1_000_000):
        kind, cell = KINDS[done % 5], 10.0 ** rng.uniform(np.log10(0.05), np.log10(20.0))
        count = int(np.clip(4000 * cell**2, 50, 5000)) + 1
        wrong, found = disagreements(rng, device, kind, cell, count)
        assert wrong == 0, f"{kind}, cell {cell}, after {done}"
        done, hits = done + count, hits + found
    assert 0.2 < hits / done < 0.9


def test_the_oracle_agrees_with_a_convex_minimum_over_the_triangle(rng):
    """The gauge max(|z| / half, rho / radius) is convex: its least value on a triangle says touching as well."""
    count = 200
    corners = rng.normal(0.0, 1.5, (count, 3, 3))
    radius, half = rng.uniform(0.3, 1.0, count), rng.uniform(0.3, 1.0, count)
    u = np.linspace(0.0, 1.0, 401)
    s, t = (v[np.add.outer(u, u) <= 1.0 + 1e-9] for v in np.meshgrid(u, u, indexing="ij"))
    points = (
        corners[:, :1]
        + s[:, None] * (corners[:, 1:2] - corners[:, :1])
        + t[:, None] * (corners[:, 2:] - corners[:, :1])
    )
    gauge = np.maximum(
        np.abs(points[..., 2]) / half[:, None], np.hypot(points[..., 0], points[..., 1]) / radius[:, None]
    )
    met = triangles_meet(corners, radius, half)
    least = gauge.min(axis=1)
    assert met[least <= 1.0].all()
    assert (least[met] < 1.05).all()  # the grid's spacing
    assert 20 < met.sum() < 180


def test_no_cylinder_above_the_highest_ground_of_its_window_is_missed(rng, device, effort):
    """Rejection by height: cylinders lowered to just touch, then 1e-9 up and down."""
    field, cylinders = family(rng, "rough", 0.5, effort(400))
    poses = cylinders.poses.copy()
    low, high = poses[:, 2, 3] - 20.0, poses[:, 2, 3] + 20.0
    for _ in range(60):
        poses[:, 2, 3] = 0.5 * (low + high)
        hit = touches(cylinders._with(poses=poses), field, device=device).hit
        low, high = np.where(hit, poses[:, 2, 3], low), np.where(hit, high, poses[:, 2, 3])
    seated = high < cylinders.poses[:, 2, 3] + 19.0
    poses[:, 2, 3] = high + 1e-9
    assert not brute_touch(field, cylinders._with(poses=poses))[seated].any()
    poses[:, 2, 3] = low - 1e-9
    over = np.isfinite(field.height_at(poses[:, :2, 3])) & (low > cylinders.poses[:, 2, 3] - 19.0)
    found = touches(cylinders._with(poses=poses), field, device=device)
    assert (found.surface == brute_touch(field, cylinders._with(poses=poses)))[over].all()


@pytest.mark.parametrize("heading", [0.0, 0.3, np.pi / 4])
def test_a_cylinder_exactly_on_flat_ground_touches_and_just_above_does_not(heading, device):
    field = Heightfield(np.zeros((8, 8)), (0.7, 0.9), (-1.0, -2.0, 0.25))
    upright = placed_at(np.array([[1.0, 1.0, 0.25 + 0.5]]))
    lying = placed_at(np.array([[1.0, 1.0, 0.25 + 0.25]]), Rotation.from_euler("ZY", [[heading, np.pi / 2]]))
    for pose in (upright, lying):
        assert touches(Cylinder(0.25, 1.0).at(pose), field, device=device).surface.all()
        pose[:, 2, 3] += 1e-6
        assert not touches(Cylinder(0.25, 1.0).at(pose), field, device=device).hit.any()


def test_turning_the_axis_round_changes_nothing(rng, device, effort):
    field, cylinders = family(rng, "rough", 0.6, effort(500))
    over = cylinders.poses @ np.diag([1.0, -1.0, -1.0, 1.0])
    a, b = (touches(c, field, device=device) for c in (cylinders, cylinders._with(poses=over)))
    assert (a.surface == b.surface).all()
    assert (a.buried == b.buried).all()


def test_moving_terrain_and_cylinders_together_changes_nothing(rng, device, effort):
    field, cylinders = family(rng, "rough", 0.6, effort(500))
    shift = np.array([64.0, -128.0, 32.0])  # exact in binary
    poses = cylinders.poses.copy()
    base = touches(cylinders, field, device=device)
    poses[:, :3, 3] += shift
    moved = Heightfield(field.heights, field.spacing, tuple(np.array(field.origin) + shift), field.holes)
    assert (touches(cylinders._with(poses=poses), moved, device=device).surface == base.surface).all()


def test_below_the_ground_is_buried_beside_it_outside_and_in_a_hole_free(device):
    holes = np.zeros((4, 4), bool)
    holes[2, 2] = True
    field = Heightfield(np.zeros((5, 5)), 10.0, holes=holes)
    poses = placed_at(
        np.array([[5.0, 5.0, -3.0], [-5.0, 5.0, 0.0], [25.0, 25.0, 0.0], [25.0, 25.0, -3.0], [20.5, 25.0, 0.0]])
    )
    found = touches(Cylinder(1.0, 1.0).at(poses), field, device=device)
    assert found.buried.tolist() == [True, False, False, False, False]
    assert found.outside.tolist() == [False, True, False, False, False]
    assert found.surface.tolist() == [False, False, False, False, True]
    assert "1 buried" in repr(found)


def test_the_number_of_threads_changes_nothing(rng, effort):
    field, cylinders = family(rng, "rough", 0.3, effort(3000))
    one, two = (touches(cylinders, field, device="cpu", threads=n).surface for n in (1, 2))
    assert (one == two).all()


def test_what_is_no_cylinder_or_no_ground_is_refused():
    field = Heightfield(np.zeros((3, 3)))
    with pytest.raises(UnsupportedError, match="of an analytic body at rest and a Heightfield is not known"):
        touches(Sphere(1.0), field, device="cpu")
    with pytest.raises(UnsupportedError, match="Heightfield"):
        touches(Cylinder(1.0, 1.0), np.zeros((3, 3)), device="cpu")


def test_the_box_of_a_cylinder_holds_sampled_points_and_is_tight(rng):
    """`upright_cylinder.reach` by its effect: a cylinder whose box ends at the border is outside, 1e-7 in it is not."""
    field = Heightfield(np.zeros((3, 3)), 10.0)
    turns = tilted(rng, 60)
    radius, height = 0.7, 1.9
    angle = np.linspace(0.0, 2.0 * np.pi, 10_000)
    rim = np.stack([radius * np.cos(angle), radius * np.sin(angle), np.full_like(angle, 0.5 * height)], axis=1)
    points = np.concatenate([rim, rim * [1.0, 1.0, -1.0]])
    for axis in (0, 1):
        reach = (points @ turns.as_matrix().transpose(0, 2, 1))[..., axis].max(axis=1)
        for beyond, outside in ((2e-7 + 1e-6, True), (-1e-7 - 1e-6, False)):
            centres = np.full((60, 3), 10.0)
            centres[:, axis] = 20.0 + reach + beyond
            found = touches(Cylinder(radius, height).at(placed_at(centres, turns)), field, device="cpu")
            assert (found.outside == outside).all()
