"""Analytic bodies: sizes, poses, boxes, supports and vertical columns."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from oracles.bodies_on_terrain import outside, random_rotations, surface_points
from tangere.motion import Linear, Twist
from tangere.runtime import InputError, launch
from tangere.shape.analytic import (
    Analytic,
    AnalyticShape,
    Box,
    Capsule,
    Cone,
    ConvexMesh,
    Cylinder,
    Hulls,
    Sphere,
    bounds_of,
    hull_tables,
    place,
    support_of,
    support_value_of,
    vertical_interval_of,
)
from tangere.shape.generate import icosphere
from tangere.shape.mesh import Mesh

SIZES = {
    "cylinder": (Cylinder, np.array([0.4, 1.0])),
    "capsule": (Capsule, np.array([0.3, 0.8])),
    "cone": (Cone, np.array([0.5, 0.9])),
    "box": (Box, np.array([0.3, 0.5, 0.4])),
}


def made(kind: str) -> Analytic:
    make, size = SIZES[kind]
    return Box(size) if kind == "box" else make(*size)


def asked(bodies: Analytic, points: np.ndarray) -> dict[str, np.ndarray]:
    """Bounds of each body, and support along and column through a vector of its own."""
    kind, device = bodies.kind, wp.get_device("cpu")
    bounds, support = bounds_of(kind), support_of(kind)
    reach, column = support_value_of(kind), vertical_interval_of(kind)

    @wp.kernel(module="unique", enable_backward=False)
    def ask(
        first: int,
        shapes: wp.array[AnalyticShape],
        poses: wp.array[wp.mat44d],
        hulls: Hulls,
        given: wp.array[wp.vec3d],
        out: wp.array2d[wp.vec3d],
    ):
        i = first + wp.tid()
        body = place(shapes[wp.min(i, shapes.shape[0] - 1)], poses[i])
        box = bounds(body, hulls)
        out[0, i] = box.lower
        out[1, i] = box.upper
        out[2, i] = support(body, hulls, given[i])
        line = column(body, hulls, given[i][0], given[i][1])
        out[3, i] = wp.vec3d(line.low, line.high, reach(body, hulls, given[i]))
        out[4, i] = line.normal

    count = len(bodies)
    out = wp.empty((5, count), dtype=wp.vec3d, device=device)
    inputs = [
        wp.array(bodies.records, dtype=AnalyticShape, device=device),
        wp.array(bodies.poses, dtype=wp.mat44d, device=device),
        hull_tables(bodies.hull, "cpu"),
        wp.array(points, dtype=wp.vec3d, device=device),
    ]
    launch(ask, count, inputs, [out], device=device)
    return dict(zip(("lower", "upper", "support", "column", "normal"), out.numpy(), strict=True))


@pytest.mark.feature("F-S-4")
@pytest.mark.parametrize("kind", SIZES)
def test_boxes_hold_sampled_points_and_are_tight(kind, rng):
    poses = np.tile(np.eye(4), (60, 1, 1))
    poses[:, :3, :3] = random_rotations(60, rng)  # upright and nearly upright among them
    found = asked(made(kind).at(poses), np.ones((60, 3)))
    samples = surface_points(kind, SIZES[kind][1], rng, 10_000)
    for k in range(60):
        placed = samples @ poses[k, :3, :3].T
        assert (placed >= found["lower"][k] - 1e-12).all()
        assert (placed <= found["upper"][k] + 1e-12).all()
    # Support points reach the sides exactly, also of upright bodies.
    for axis in range(3):
        for sign, side in ((-1.0, "lower"), (1.0, "upper")):
            along = np.tile(sign * np.eye(3)[axis], (60, 1))
            reached = asked(made(kind).at(poses), along)["support"]
            np.testing.assert_allclose(reached[:, axis], found[side][:, axis], atol=1e-7)
            local = np.einsum("nji,nj->ni", poses[:, :3, :3], reached)
            np.testing.assert_allclose(outside(kind, SIZES[kind][1], local), 0.0, atol=1e-9)


@pytest.mark.parametrize("kind", SIZES)
def test_no_sampled_point_is_farther_than_the_support(kind, rng):
    poses = np.tile(np.eye(4), (200, 1, 1))
    poses[:, :3, :3] = random_rotations(200, rng)
    along = rng.normal(size=(200, 3))
    found = asked(made(kind).at(poses), along)
    support = found["support"]
    np.testing.assert_allclose(found["column"][:, 2], np.einsum("ni,ni->n", support, along), atol=1e-14)
    samples = np.einsum("nij,kj->nki", poses[:, :3, :3], surface_points(kind, SIZES[kind][1], rng, 3000))
    assert (np.einsum("nki,ni->nk", samples, along).max(axis=1) <= np.einsum("ni,ni->n", support, along) + 1e-12).all()


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("kind", ["cylinder", "cone"])
def test_the_support_along_the_axis_and_near_it_is_on_the_body_and_extremal(kind, scale, rng):
    count = 3000
    make, size = SIZES[kind]
    poses = np.tile(np.eye(4), (count, 1, 1))
    poses[:, :3, :3] = random_rotations(count, rng)
    axis = poses[:, :3, 2]
    aside = np.cross(axis, rng.normal(size=(count, 3))) * 10.0 ** rng.uniform(-20.0, -1.0, (count, 1))
    aside[: count // 3] = 0.0  # exactly along it, but for the rounding of the product
    along = (rng.choice([-1.0, 1.0], (count, 1)) * axis + aside) * 10.0 ** rng.uniform(-9.0, 9.0, (count, 1))
    found = asked(make(*(scale * size)).at(poses), along)
    support = found["support"]
    local = np.einsum("nji,nj->ni", poses[:, :3, :3], support) / scale
    np.testing.assert_allclose(outside(kind, size, local), 0.0, atol=1e-14)
    # h(u) of a cylinder is half |u.v| + r |u x v|; of a cone the tip's or its rim's; in extended precision.
    u, v = along.astype(np.longdouble), axis.astype(np.longdouble)
    v /= np.linalg.norm(v, axis=1, keepdims=True)
    up, rim = (u * v).sum(axis=1), np.linalg.norm(np.cross(u, v), axis=1)
    radius, half = size[0], 0.5 * size[1]
    most = half * np.abs(up) + radius * rim if kind == "cylinder" else np.maximum(half * up, radius * rim - half * up)
    reached = (u * support).sum(axis=1) / scale
    assert (np.abs(reached - most) <= 2e-15 * np.linalg.norm(u, axis=1)).all()
    assert (np.abs(found["column"][:, 2] / scale - most) <= 2e-15 * np.linalg.norm(u, axis=1)).all()


@pytest.mark.parametrize("kind", SIZES)
def test_a_column_begins_and_ends_on_the_surface_and_its_normal_points_in(kind, rng):
    poses = np.tile(np.eye(4), (2000, 1, 1))
    poses[:, :3, :3] = random_rotations(2000, rng)
    lines = rng.uniform(-0.9, 0.9, (2000, 3))
    found = asked(made(kind).at(poses), lines)
    low, high = found["column"][:, 0], found["column"][:, 1]
    inside = low <= high
    assert 100 < inside.sum() < 1900
    turns, size = poses[:, :3, :3], SIZES[kind][1]

    def distance(z, which):
        points = np.column_stack([lines[:, :2], z])[which]
        return outside(kind, size, np.einsum("nji,nj->ni", turns[which], points))

    np.testing.assert_allclose(distance(low, inside), 0.0, atol=1e-8)
    np.testing.assert_allclose(distance(high, inside), 0.0, atol=1e-8)
    assert (distance(0.5 * (low + high), inside) <= 1e-9).all()
    for z in np.linspace(-1.0, 1.0, 41):  # a line said to miss does so everywhere
        assert (distance(np.full(2000, z), ~inside) >= -1e-9).all()
    normal = found["normal"][inside]
    np.testing.assert_allclose(np.linalg.norm(normal, axis=1), 1.0, atol=1e-9)
    start = np.column_stack([lines[:, :2], low])[inside]
    ahead = np.einsum("nji,nj->ni", turns[inside], start + 1e-5 * normal)
    behind = np.einsum("nji,nj->ni", turns[inside], start - 1e-5 * normal)
    assert (outside(kind, size, behind) > 0.0).all()
    assert (outside(kind, size, ahead) < 1e-9).mean() > 0.99  # but at an edge


def test_sizes_and_poses_pair_off():
    assert len(Cylinder(0.5, [1.0, 2.0, 3.0])) == 3
    assert len(Sphere(1.0).at(np.tile(np.eye(4), (5, 1, 1)))) == 5
    assert len(Cylinder([1.0, 2.0], 1.0).at(np.eye(4))) == 2
    three = Box([[1.0, 2.0, 3.0]] * 3)
    assert len(three[1:]) == 2
    assert repr(three) == "Box(3 bodies)"
    shifted = np.eye(4)
    shifted[0, 3] = 1.0
    twice = Sphere(1.0).at(shifted).at(shifted)
    assert twice.poses[0, 0, 3] == 2.0
    with pytest.raises(AttributeError, match="immutable"):
        three.kind = 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Cylinder(-1.0, 1.0), r"Cylinder: radius\[0\] must be positive"),
        (lambda: Cylinder(1.0, [1.0, np.nan]), r"Cylinder: height\[1\] must be positive"),
        (lambda: Cylinder([1.0, 2.0], [1.0, 2.0, 3.0]), "different lengths"),
        (lambda: Sphere(np.ones((2, 2))), "must be one number"),
        (lambda: Sphere(np.inf), "positive and finite"),
        (lambda: Box([1.0, 2.0]), r"must have shape \(3,\)"),
        (lambda: Box([1.0, 0.0, 1.0]), r"Box: half\[0\]"),
        (lambda: Sphere([1.0, 1.0]).at(np.tile(np.eye(4), (3, 1, 1))), "do not pair off"),
        (lambda: Sphere(1.0).at(np.diag([1.0, 1.0, 2.0, 1.0])), "not rigid"),
        (lambda: Sphere(1.0).at(np.full((4, 4), np.nan)), "not finite"),
        (lambda: ConvexMesh(Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])), "no volume"),
        (lambda: ConvexMesh(None), "ConvexMesh: mesh must be a Mesh, not NoneType"),
    ],
)
def test_bad_sizes_and_poses_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_hull_has_each_face_once_and_edges_between_two():
    cube = Box([1.0, 1.0, 1.0]).hull
    assert (len(cube.corners), len(cube.edges), len(cube.planes)) == (8, 12, 6)
    ball = icosphere(subdivisions=2)
    hull = ConvexMesh(ball).hull
    assert len(hull.corners) - len(hull.edges) + len(hull.planes) == 2
    assert (hull.corners @ hull.planes[:, :3].T <= hull.planes[:, 3] + 1e-9).all()
    assert ConvexMesh(ball).hull is hull


def test_moving_bodies_are_where_their_motion_has_them(rng):
    starts = np.tile(np.eye(4), (4, 1, 1))
    starts[:, :3, 3] = rng.normal(size=(4, 3))
    motion = Twist(starts, rng.normal(size=(4, 3)), rng.normal(size=(4, 3)))
    placed = np.tile(np.eye(4), (4, 1, 1))
    placed[:, :3, :3], placed[:, :3, 3] = random_rotations(4, rng), rng.normal(size=(4, 3))
    one, four = Cylinder(0.5, 1.2).moving(motion), Cylinder(0.5, 1.2).at(placed).moving(motion)
    for time in (0.0, 0.3, 1.0):
        np.testing.assert_allclose(one.at(time).poses, motion.pose(time), atol=1e-14)
        np.testing.assert_allclose(four.at(time).poses, motion.pose(time) @ placed, atol=1e-14)
    with pytest.raises(InputError, match=r"Cylinder\(1 body\): a motion is defined for times in \[0, 1\], not 1.5"):
        one.at(1.5)
    with pytest.raises(InputError, match="analytic bodies move by rigid motions"):
        Cylinder(0.5, 1.2).moving(Linear(np.zeros((3, 3))))
