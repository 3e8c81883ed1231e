"""The article's algorithm, part by part, corrected and as printed; and cylinders on planes and spheres."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial import ConvexHull

from oracles.bodies_on_terrain import clipped_distance, ground, meets_ground, random_rotations
from tangere.published.strashnov_three_cases.elements import (
    OneCylinder,
    case_of,
    clip_segment,
    elements,
    overlap,
    rim_frame,
)
from tangere.published.strashnov_three_cases.manifold import (
    deferred_contacts,
    first_stage,
    inner_contacts,
    three_cases,
)
from tangere.query.manifold import cylinder_sphere, manifold, on_plane
from tangere.shape.analytic import Box, Capsule, Cylinder, Sphere
from tangere.shape.heightfield import Heightfield


def random_field(rng, cells: float = 10, cell: float = 0.5, rough: float = 0.3) -> Heightfield:
    return Heightfield(rng.uniform(0.0, rough, (int(cells) + 1, int(cells) + 1)), (cell, 0.7 * cell))


def random_cylinder(rng, field: Heightfield, depth: float = 0.02) -> OneCylinder:
    """A cylinder that is a little in the ground of a rough field."""
    turn = random_rotations(1, rng)[0]
    lower, upper = field.bounds
    place = rng.uniform(lower + [1.0, 1.0, 0.0], upper - [1.0, 1.0, 0.0])
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = turn, place
    low, high = lower[2] - 2.0, upper[2] + 2.0
    for _ in range(20):
        pose[2, 3] = 0.5 * (low + high)
        hit = meets_ground(field, pose, 0.3, 0.9) or pose[2, 3] < lower[2]
        low, high = (pose[2, 3], high) if hit else (low, pose[2, 3])
    return OneCylinder(np.array([*place[:2], high - depth]), turn[:, 2], 0.3, 0.9)


def all_elements(field: Heightfield) -> list:
    return list(elements(field, *field.bounds))


@pytest.mark.feature("F-S-5")
def test_no_element_outside_the_window_meets_the_cylinder(rng):
    for _ in range(40):
        field = random_field(rng, cells=6)
        place = rng.uniform(field.bounds[0] - 0.3, field.bounds[1] + 0.3)
        cylinder = OneCylinder(place, random_rotations(1, rng)[0][:, 2], 0.3, 0.9)
        inside = {e.number for e in elements(field, *cylinder.box())}
        meeting = {e.number for e in all_elements(field) if overlap(cylinder, e).hit}
        assert meeting <= inside


@pytest.mark.feature("F-S-8", "F-S-9")
def test_every_element_has_one_case_and_a_clear_one_does_not_meet_the_cylinder(rng):
    seen = set()
    for _ in range(25):
        field = random_field(rng, cells=6)
        cylinder = random_cylinder(rng, field)
        for e in elements(field, *cylinder.box()):
            axis = cylinder.facing(e.normal)
            w, u = rim_frame(axis, e)
            assert abs(w @ axis) < 1e-12
            assert w @ e.normal <= 1e-12
            a1 = e.depth(cylinder.centre - 0.45 * axis + 0.3 * w)
            a2 = e.depth(cylinder.centre + 0.45 * axis + 0.3 * w)
            b1 = e.depth(cylinder.centre - 0.45 * axis - 0.3 * w)
            turn = np.linspace(0.0, 2.0 * np.pi, 16)[:, None]
            rim = cylinder.centre - 0.45 * axis + 0.3 * (np.cos(turn) * w + np.sin(turn) * u)
            depths = e.offset - rim @ e.normal
            assert depths.max() <= a1 + 1e-12
            assert depths.min() >= b1 - 1e-12
            holds = {
                None: a1 < 0,
                "A": a1 >= 0 and a2 < 0 and b1 >= 0,
                "B": a1 >= 0 and a2 >= 0,
                "C": a1 >= 0 and a2 < 0 and b1 < 0,
            }
            assert sum(holds.values()) == 1
            case = case_of(cylinder, e, axis)
            assert holds[case]
            assert case is not None or not overlap(cylinder, e).hit
            seen.add(case)
    assert seen == {None, "A", "B", "C"}


def test_clipping_a_segment_agrees_with_sampling_it(rng):
    field = random_field(rng, cells=3)
    for e in all_elements(field):
        for _ in range(5):
            start, end = (rng.uniform(e.corners.min(axis=0) - 0.2, e.corners.max(axis=0) + 0.2) for _ in range(2))
            start, end = (p + e.depth(p) * e.normal for p in (start, end))
            part = clip_segment(start, end - start, e, 1e-12)
            t = np.linspace(0.0, 1.0, 101)
            inside = np.array([e.holds(start + s * (end - start), 0.0) for s in t])
            if part is None:
                assert not inside.any()
            else:
                np.testing.assert_array_equal(inside, (t >= part[0]) & (t <= part[1]))


def exact_part(start: np.ndarray, end: np.ndarray, corners: np.ndarray) -> tuple[Fraction, Fraction] | None:
    """The part of a segment in a convex polygon, all in the plane (2,): of all crossings of its lines, those inside."""
    (px, py), (qx, qy) = ([Fraction(x) for x in p] for p in (start, end))
    sides = [[Fraction(x) for x in (*a, *(b - a))] for a, b in zip(corners, np.roll(corners, -1, axis=0), strict=True)]

    def left_of(side, t) -> Fraction:
        x, y, dx, dy = side
        return dx * (py + t * (qy - py) - y) - dy * (px + t * (qx - px) - x)

    times = [Fraction(0), Fraction(1)]
    for side in sides:
        at_start, at_end = left_of(side, 0), left_of(side, 1)
        if at_start != at_end:
            times.append(at_start / (at_start - at_end))
    inside = [t for t in times if 0 <= t <= 1 and all(left_of(side, t) >= 0 for side in sides)]
    return (min(inside), max(inside)) if inside else None


@pytest.mark.feature("F-S-14")
def test_clipping_segments_along_edges_and_through_corners_agrees_with_exact_arithmetic(rng):
    """Ends on a lattice of quarter cells: parallel to an edge, on it, beyond its end, through a corner only."""
    field = Heightfield(rng.integers(0, 8, (4, 4)) / 8.0, 0.5)
    level = Heightfield(np.zeros((2, 2)), 0.5)
    touching = along = outside = 0
    for e in all_elements(field) + all_elements(level):
        low = e.corners.min(axis=0)[:2]
        for _ in range(60):
            start, end = (low + rng.integers(-2, 7, 2) / 8.0 for _ in range(2))
            part = exact_part(start, end, e.corners[:, :2])
            placed = [np.array([*p, (e.offset - p @ e.normal[:2]) / e.normal[2]]) for p in (start, end)]
            found = clip_segment(placed[0], placed[1] - placed[0], e, 1e-12)
            if part is None:
                assert found is None
            elif part[0] == part[1] and not (start == end).all():  # a corner only: rounding may miss it, no more
                assert found is None or np.allclose(found, float(part[0]), atol=1e-9)
                touching += 1
            else:
                np.testing.assert_allclose(found, np.array(part, float), atol=1e-9)
            sides = np.roll(e.corners, -1, axis=0)[:, :2] - e.corners[:, :2]
            crosses = sides[:, 0] * (end - start)[1] - sides[:, 1] * (end - start)[0]
            parallel = (crosses == 0.0).any() and not (start == end).all()
            along += bool(parallel and part is not None)
            outside += bool(parallel and part is None)
    assert min(touching, along, outside) > 20


@pytest.mark.feature("F-S-16")
def test_one_rim_point_on_a_slope_has_the_depth_of_the_plane():
    field = Heightfield(np.add.outer(0.2 * np.arange(7.0), 0.1 * np.arange(7.0)), 1.0)
    up = np.array([-0.1, -0.2, 1.0]) / np.sqrt(1.05)
    axis = np.array([0.5, 0.1, 0.8]) / np.linalg.norm([0.5, 0.1, 0.8])
    along = axis @ up
    reach = 0.45 * abs(along) + 0.3 * np.sqrt(1.0 - along**2)
    centre = np.array([3.2, 3.3, 0.0])
    centre[2] = 0.1 * centre[0] + 0.2 * centre[1]
    found = three_cases(OneCylinder(centre + (reach - 0.02) * up, axis, 0.3, 0.9), field)
    assert len(found) == 1
    assert abs(found[0].depth - 0.02) < 1e-9
    np.testing.assert_allclose(found[0].normal, up, atol=1e-12)


@pytest.mark.feature("F-S-11")
@pytest.mark.parametrize("cell", [0.25, 0.5, 1.0, 2.0, 4.0, 8.0])
def test_the_centre_of_an_upright_barrel_is_supported_at_every_cell_size(cell, rng):
    size, radius = 0.3 * cell, 0.3
    cells = max(4, int(4.0 / size))
    x, y = np.meshgrid(np.arange(cells + 1) * size, np.arange(cells + 1) * size)
    field = Heightfield(0.1 * x + 0.05 * y, size)
    up = np.array([-0.1, -0.05, 1.0]) / np.linalg.norm([-0.1, -0.05, 1.0])
    for _ in range(3):
        centre = np.array([*rng.uniform(0.3 * cells * size, 0.7 * cells * size, 2), 0.0])
        centre[2] = 0.1 * centre[0] + 0.05 * centre[1]
        found = three_cases(OneCylinder(centre + 0.44 * up, up, radius, 0.9), field)
        points = np.array([c.point for c in found]) - centre
        for c in found:
            rim = np.linalg.norm(np.cross(c.point - centre, up))
            assert rim <= radius + 1e-9
            assert abs(c.depth - 0.01) < 1e-9
            foot = (c.point + c.depth * c.normal)[:2] / size
            lines = np.array([foot[0], foot[1], foot[0] + foot[1]])
            on_edge = np.abs(lines - np.round(lines)).min() < 1e-6
            assert abs(rim - radius) < 1e-9 or on_edge  # on the rim, or a vertex of the ground below the base
        # No direction in the plane has all points on one side: the centre is inside their hull.
        for angle in np.linspace(0.0, 2.0 * np.pi, 24, endpoint=False):
            assert (points @ np.array([np.cos(angle), np.sin(angle), 0.0])).max() > -1e-9


@pytest.mark.feature("F-S-10", "F-S-13", "F-S-16")
def test_in_every_case_an_element_is_taken_if_and_only_if_it_meets_the_cylinder(rng):
    taken = {"A": 0, "B": 0, "C": 0}
    for _ in range(30):
        field = random_field(rng, cells=6, rough=float(rng.choice([0.02, 0.3])))
        cylinder = random_cylinder(rng, field, depth=float(rng.choice([0.005, 0.05])))
        turn = np.column_stack([*_across(cylinder.axis), cylinder.axis])
        near = list(elements(field, *cylinder.box()))
        stages = first_stage(cylinder, near, 1e-9)
        used = {c.element for c in stages.found} | {e.number for _, e, _ in stages.deferred}
        for e in near:
            distance = clipped_distance((e.corners - cylinder.centre) @ turn, 0.45)
            if abs(distance - 0.3) > 1e-9:
                case = case_of(cylinder, e, cylinder.facing(e.normal))
                assert (e.number in used) == (distance < 0.3), (case, distance)
                if case is not None:
                    taken[case] += distance < 0.3
    assert min(taken.values()) > 8


def _across(axis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    e = np.cross(axis, [1.0, 0.0, 0.0] if abs(axis[0]) < 0.7 else [0.0, 1.0, 0.0])
    e /= np.linalg.norm(e)
    return e, np.cross(axis, e)


@pytest.mark.feature("F-S-15")
def test_a_wheel_beside_a_ridge_defers_two_points_for_a_parallel_edge_and_one_otherwise():
    heights = np.zeros((6, 6))
    heights[:, 3:] = 0.15
    field = Heightfield(heights, 0.5)
    for heading, expected in ((0.0, 2), (0.3, 1)):
        axis = np.array([np.sin(heading), np.cos(heading), 0.0])
        wheel = OneCylinder(np.array([0.83, 1.27, 0.4]), axis, 0.45, 0.3)
        stages = first_stage(wheel, list(elements(field, *wheel.box())), 1e-9)
        points: dict[int, int] = {}
        for _, e, _ in stages.deferred:
            points[e.number] = points.get(e.number, 0) + 1
        assert points
        assert max(points.values()) == expected
        assert [d for d, _, _ in stages.deferred] == sorted(d for d, _, _ in stages.deferred)


@pytest.mark.feature("F-S-17")
@pytest.mark.parametrize("shape", ["rectangle", "triangle", "L"])
def test_the_corners_of_a_plateau_under_a_base_stay(shape):
    heights = np.zeros((12, 12))
    number = np.arange(144).reshape(12, 12)
    cells = {"rectangle": [(5, 5), (5, 6)], "triangle": [(5, 5)], "L": [(5, 5), (5, 6), (6, 5)]}[shape]
    corners = set()
    for i, j in cells:
        block = number[i : i + 2, j : j + 2].ravel()
        corners |= set(block[:3] if shape == "triangle" else block)
    heights.ravel()[list(corners)] = 0.2
    field = Heightfield(heights, 0.1)
    barrel = OneCylinder(np.array([0.55, 0.55, 0.2 + 0.44]), np.array([0.0, 0.0, 1.0]), 0.35, 0.9)
    where = field.vertices.reshape(-1, 3)[sorted(corners), :2]
    outer = where[ConvexHull(where).vertices]
    stages = first_stage(barrel, list(elements(field, *barrel.box())), 1e-9)
    inner_contacts(barrel, stages, 1e-9)
    found = np.array([c.point[:2] for c in stages.found if c.normal[2] > 0.999])
    assert len(outer) == {"rectangle": 4, "triangle": 3, "L": 5}[shape]
    for corner in outer:
        assert np.linalg.norm(found - corner, axis=1).min() < 1e-9
    # What is left of them in the manifold: all, or the four of five that hold most of the area.
    kept = np.array([c.point[:2] for c in three_cases(barrel, field) if c.normal[2] > 0.999])
    assert sum(np.linalg.norm(kept - corner, axis=1).min() < 1e-9 for corner in outer) == min(len(outer), 4)
    assert ConvexHull(kept).volume >= (1.0 if len(outer) <= 4 else 0.85) * ConvexHull(where).volume - 1e-12


@pytest.mark.feature("F-S-18")
def test_moving_out_along_a_deferred_contact_leaves_its_point_on_the_surface(rng):
    checked = 0
    for _ in range(25):
        field = random_field(rng, cells=8)
        cylinder = random_cylinder(rng, field, depth=0.03)
        stages = first_stage(cylinder, list(elements(field, *cylinder.box())), 1e-9)
        before = len(stages.found)
        deferred_contacts(cylinder, stages, 1e-6, 1e-9)
        for c in stages.found[before:]:
            assert c.depth >= -1e-9
            np.testing.assert_allclose(np.linalg.norm(c.normal), 1.0, atol=1e-9)
            points = [q for _, e, q in stages.deferred if e.number == c.element]
            local = np.array(points) - c.depth * c.normal - cylinder.centre
            along = local @ cylinder.axis
            beside = np.linalg.norm(local - np.outer(along, cylinder.axis), axis=1)
            assert np.abs(np.maximum(beside - 0.3, np.abs(along) - 0.45)).min() < 1e-9
            checked += 1
    assert checked > 4
    # The centre of a disc on the surface: a sign must be chosen, a normal must not vanish.
    disc = OneCylinder(np.array([2.0, 2.0, 0.0]), np.array([0.0, 0.0, 1.0]), 0.5, 0.1)
    for c in three_cases(disc, Heightfield(np.zeros((5, 5)) + 1e-6 * np.eye(5))):
        assert np.linalg.norm(c.normal) > 0.5


def test_the_corrected_algorithm_has_a_contact_wherever_the_exact_test_hits(rng, effort):
    deeper, lost = 0, 0
    for _ in range(effort(20)):
        field = random_field(rng, *rng.choice([[12, 0.4], [6, 0.8]]))
        cylinder = random_cylinder(rng, field)
        hit = any(overlap(cylinder, e).hit for e in elements(field, *cylinder.box()))
        found = three_cases(cylinder, field)
        assert bool(found) >= hit
        assert all(c.depth <= 1.011 * 0.02 + 1e-4 for c in found)
        printed = three_cases(cylinder, field, printed=True)
        lost += hit and not printed
        deeper += any(c.depth > 0.03 for c in printed)
    assert lost > 0  # the printed one misses some


@pytest.mark.feature("F-S-12")
def test_the_sets_of_the_first_stage_on_a_plateau_of_three_by_three_cells():
    heights = np.zeros((6, 6))
    heights[1:5, 1:5] = 0.2
    field = Heightfield(heights, 0.2)
    barrel = OneCylinder(np.array([0.5, 0.5, 0.2 + 0.44]), np.array([0.0, 0.0, 1.0]), 0.25, 0.9)
    near = list(elements(field, *barrel.box()))
    stages = first_stage(barrel, near, 1e-9)
    number = np.arange(36).reshape(6, 6)
    assert stages.contact_vertices == set(number[1:5, 1:5].ravel())
    assert stages.inner_vertices == set(number[2:4, 2:4].ravel())
    assert [e.number for _, e in stages.inner] == [2 * (2 * 5 + 2)]


def test_the_published_mode_is_the_printed_algorithm(rng):
    field = Heightfield(ground("flat", 12, 0.5, rng), 0.5)
    pose = np.eye(4)
    pose[:3, 3] = [3.1, 2.9, 0.25 + 0.59]
    found = manifold(Cylinder(0.5, 1.2).at(pose), field, mode="published", device="cpu")
    printed = three_cases(OneCylinder(pose[:3, 3], pose[:3, 2], 0.5, 1.2), field, printed=True)
    assert len(found) == len(printed) == 4
    np.testing.assert_allclose(found.gap, -0.01, atol=1e-12)
    with pytest.raises(TypeError, match="published"):
        manifold(Sphere(0.5).at(pose), field, mode="published", device="cpu")


@pytest.mark.feature("F-S-7")
def test_a_cylinder_on_a_plane_has_four_two_or_one_points_and_a_flat_grid_gives_the_same(rng):
    field = Heightfield(np.full((25, 25), 0.3), 0.25)
    expected = {0.0: 4, 0.5 * np.pi: 2, 0.7: 1}
    for tilt, count in expected.items():
        c, s = np.cos(tilt), np.sin(tilt)
        pose = np.eye(4)
        pose[:3, :3] = [[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]]
        pose[:3, 3] = [3.03, 2.98, 0.3 + 0.6 * abs(c) + 0.5 * abs(s) - 0.01]
        cylinder = Cylinder(0.5, 1.2).at(pose)
        plane = on_plane(cylinder, [0.0, 0.0, 1.0], 0.3, device="cpu")
        grid = manifold(cylinder, field, distance=0.0, device="cpu")
        assert len(plane) == len(grid) == count
        np.testing.assert_allclose(plane.gap, -0.01, atol=1e-12)
        for name in ("point_a", "point_b", "normal", "gap"):
            np.testing.assert_allclose(getattr(plane, name), getattr(grid, name), atol=1e-9)


def test_any_body_on_an_oblique_plane_is_as_deep_as_its_support(rng):
    up = np.array([0.3, -0.2, 0.9])
    up /= np.linalg.norm(up)
    poses = np.tile(np.eye(4), (40, 1, 1))
    poses[:, :3, :3] = random_rotations(40, rng)
    poses[:, :3, 3] = 0.3 * up
    deepest = []
    for bodies in (Box([0.5, 0.4, 0.6]), Capsule(0.4, 0.6)):
        found = on_plane(bodies.at(poses), up, 0.0, device="cpu")
        most = np.zeros(40)
        np.maximum.at(most, found.query, -found.gap)
        deepest.append(most)
    along = np.abs(np.einsum("nij,i->nj", poses[:, :3, :3], up))
    np.testing.assert_allclose(deepest[0], np.maximum(0.0, along @ [0.5, 0.4, 0.6] - 0.3), atol=1e-12)
    np.testing.assert_allclose(deepest[1], along[:, 2] * 0.3 + 0.4 - 0.3, atol=1e-12)


def test_a_cylinder_and_a_sphere_touch_at_their_nearest_points(rng):
    poses = np.tile(np.eye(4), (60, 1, 1))
    poses[:, :3, :3] = random_rotations(60, rng)
    places = np.tile(np.eye(4), (60, 1, 1))
    places[:, :3, 3] = rng.uniform(-1.5, 1.5, (60, 3))
    found = cylinder_sphere(Cylinder(0.5, 1.2).at(poses), Sphere(0.3).at(places), distance=10.0, device="cpu")
    assert len(found) == 60
    for k in range(60):
        c = poses[k, :3, :3].T @ places[k, :3, 3]
        inside = np.hypot(c[0], c[1]) <= 0.5 and abs(c[2]) <= 0.6
        if inside:
            expected = -0.3 - min(0.5 - np.hypot(c[0], c[1]), 0.6 - abs(c[2]))
        else:
            nearest = minimize(
                lambda q, c=c: np.sum((np.array([q[0] * np.cos(q[1]), q[0] * np.sin(q[1]), q[2]]) - c) ** 2),
                [0.3, np.arctan2(c[1], c[0]), 0.0],
                bounds=[(0.0, 0.5), (None, None), (-0.6, 0.6)],
            )
            expected = np.sqrt(nearest.fun) - 0.3
        assert abs(found.gap[k] - expected) < 1e-5
    touching = cylinder_sphere(Cylinder(0.5, 1.2).at(poses), Sphere(0.3).at(places), device="cpu")
    assert set(touching.query) == set(np.flatnonzero(found.gap <= 0.0))
