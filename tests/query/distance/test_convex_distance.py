"""Distances of analytic bodies: proved by their own points and normals, and found again as conic programmes."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

import tangere as tg
from oracles.convex_distances import Rows, certificate, conic_distance, rows_of
from oracles.convex_families import DEGENERATE, HULL, KINDS, PAIRS, bodies, family, poses, sizes
from tangere.query.distance.convex.bodies import SHAPE, ConvexBodies
from tangere.query.distance.convex.narrow_phase import ConvexAnswer, closest_of, distance_kernel
from tangere.query.distance.convex.supports import ConvexKind, ConvexShape
from tangere.runtime import InputError, UnsupportedError, launch
from tangere.shape.analytic import HULL as HULL_KIND

ACCURACY = 1e-9


def prove(a, place_a, b, place_b, found, *, open_rows: int = 0) -> np.ndarray:
    """Check a batch of answers by weak duality; the rows that are undecided, few as they must be."""
    rows = rows_of(a, place_a), rows_of(b, place_b)
    size = rows[0].size + rows[1].size
    far = np.linalg.norm(place_a[:, :3, 3] - place_b[:, :3, 3], axis=1)
    rounding = 1e-14 * (size + far + np.abs(place_a[:, :3, 3]).max(axis=1) + np.abs(place_b[:, :3, 3]).max(axis=1))
    overlap = found.kind == tg.Kind.OVERLAP
    proof = certificate(*rows, found.point_a, found.point_b, found.normal, (a.hull.planes, b.hull.planes))
    assert (proof.outside <= 10.0 * rounding).all()
    assert (np.abs(proof.upper - found.upper)[~overlap] <= 10.0 * rounding[~overlap]).all()
    certain = np.maximum(proof.lower, 0.0) + rounding
    assert (found.lower <= np.where(overlap, 0.0, certain)).all()
    assert (found.upper[overlap] == 0.0).all()
    assert (found.point_a[overlap] == found.point_b[overlap]).all()
    undecided = found.upper - found.lower > 1.001 * ACCURACY * size
    assert undecided.sum() <= open_rows
    return np.flatnonzero(undecided)


def drawn_together(a, place_a, b, place_b, gaps: np.ndarray):
    """b moved along the normal until the gap is what was wanted, where they were apart."""
    found = tg.distance(a.at(place_a), b.at(place_b), device="cpu")
    apart = found.lower > 0.0
    place = place_b.copy()
    place[apart, :3, 3] += found.normal[apart] * (found.lower[apart] - gaps[apart])[:, None]
    return place


def random_pair(kinds, count, rng, spread=1.6):
    sides = [bodies(kind, **sizes(kind, count, rng)) for kind in kinds]
    return [(side, poses(count, rng, spread)) for side in sides]


@pytest.mark.parametrize("kinds", PAIRS, ids="-".join)
def test_every_answer_proves_itself_far_and_near(kinds, rng, effort, device):
    count = effort(200)
    (a, place_a), (b, place_b) = random_pair(kinds, count, rng)
    prove(a, place_a, b, place_b, tg.distance(a.at(place_a), b.at(place_b), device=device))
    near = drawn_together(a, place_a, b, place_b, 0.1 * rng.random(count))
    prove(a, place_a, b, near, tg.distance(a.at(place_a), b.at(near), device=device))


@pytest.mark.slow
@pytest.mark.parametrize("kinds", PAIRS, ids="-".join)
def test_a_hundred_thousand_answers_prove_themselves(kinds, rng):
    (a, place_a), (b, place_b) = random_pair(kinds, 100_000, rng)
    prove(a, place_a, b, place_b, tg.distance(a.at(place_a), b.at(place_b), device="cpu"), open_rows=5)
    near = drawn_together(a, place_a, b, place_b, 10.0 ** rng.uniform(-6, -1, 100_000))
    prove(a, place_a, b, near, tg.distance(a.at(place_a), b.at(near), device="cpu"), open_rows=50)


@pytest.mark.parametrize("kinds", PAIRS, ids="-".join)
def test_conic_programmes_find_the_same_distance(kinds, rng, effort):
    count = effort(12, least=3)
    (a, place_a), (b, place_b) = random_pair(kinds, count, rng)
    found = tg.distance(a.at(place_a), b.at(place_b), device="cpu")
    rows = rows_of(a, place_a), rows_of(b, place_b)
    for k in range(count):
        lower, upper = conic_distance(rows[0][[k]], rows[1][[k]])
        assert found.lower[k] <= upper
        assert found.upper[k] >= lower


@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("kinds", PAIRS, ids="-".join)
def test_degenerate_pairs_are_answered_or_told_undecided(name, kinds, rng, effort):
    count = effort(200)
    (a, place_a), (b, place_b) = family(name, *kinds, count, rng)
    if name in ("touching", "tilted"):
        gaps = np.zeros(count) if name == "touching" else 10.0 ** rng.uniform(-10, -2, count)
        place_b = drawn_together(a, place_a, b, place_b, gaps)
    found = tg.distance(a.at(place_a), b.at(place_b), device="cpu")
    allowed = {"tilted": 8, "touching": 4}.get(name, 1)
    rows = prove(a, place_a, b, place_b, found, open_rows=allowed)
    size = rows_of(a, place_a).size + rows_of(b, place_b).size
    assert ((found.upper - found.lower)[rows] <= 1e-6 * size[rows]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_triangles_are_a_kind_for_kernels(kind, rng, effort, device):
    count = effort(40)
    body, place = bodies(kind, **sizes(kind, count, rng)), poses(count, rng, 1.6)
    corners = rng.normal(size=(count, 3, 3)) * 0.7
    chosen = wp.get_device(device)
    convex = ConvexBodies.of(body, chosen)
    shapes = np.zeros(count, SHAPE)
    shapes["first"], shapes["count"] = 3 * np.arange(count), 3
    shapes["reach"] = np.linalg.norm(corners, axis=2).max(axis=1)
    out = wp.empty(count, dtype=ConvexAnswer, device=chosen)
    inputs = [convex.shapes, convex.points, wp.array(place, dtype=wp.mat44d, device=chosen)]
    inputs += [wp.array(shapes, dtype=ConvexShape, device=chosen)]
    inputs += [wp.array(corners.reshape(-1, 3), dtype=wp.vec3d, device=chosen)]
    inputs += [wp.array(np.eye(4)[None], dtype=wp.mat44d, device=chosen), ACCURACY]
    launch(distance_kernel(convex.kind, ConvexKind.TRIANGLE), count, inputs, [out], device=chosen)
    found = out.numpy()
    for k in range(count):
        triangle = Rows(HULL_KIND, np.zeros(1), np.ones((1, 3)), corners[k], np.eye(4)[None])
        lower, upper = conic_distance(rows_of(body, place)[[k]], triangle)
        assert found["lower"][k] <= upper
        assert found["upper"][k] >= lower
        assert found["upper"][k] - found["lower"][k] <= 1.001 * ACCURACY * 6.0


def test_one_inside_the_other_is_at_distance_zero():
    outer = {"sphere": tg.Sphere(3.0), "capsule": tg.Capsule(3.0, 1.0), "box": tg.Box([3.0, 3.0, 3.0])}
    outer |= {"cylinder": tg.Cylinder(3.0, 6.0), "cone": tg.Cone(9.0, 18.0)}
    inner = {"sphere": tg.Sphere(0.1), "capsule": tg.Capsule(0.1, 0.3), "box": tg.Box([0.1, 0.2, 0.3])}
    inner |= {"cylinder": tg.Cylinder(0.1, 0.3), "cone": tg.Cone(0.1, 0.3), "hull": HULL}
    moved = np.eye(4)
    moved[:3, 3] = 0.1, 0.2, 0.3
    for large in outer.values():
        for small in inner.values():
            for one, other in ((large, small.at(moved)), (small.at(moved), large)):
                found = tg.distance(one, other, device="cpu")
                assert (found.lower, found.upper, found.kind) == (0.0, 0.0, tg.Kind.OVERLAP)
                assert (found.triangle_a, found.triangle_b) == (-1, -1)
                assert np.isnan(found.weights_a).all()
                assert tg.intersects(one, other, device="cpu")


def test_closed_forms_that_anybody_knows():
    def at(*place):
        pose = np.eye(4)
        pose[:3, 3] = place
        return pose

    found = tg.distance(tg.Sphere(1.0), tg.Sphere(0.5).at(at(3.0, 4.0, 0.0)), device="cpu")
    assert found.upper == pytest.approx(3.5, abs=1e-12)
    assert found.lower == pytest.approx(3.5, abs=1e-12)
    np.testing.assert_allclose(found.point_a, [0.6, 0.8, 0.0], atol=1e-14)
    np.testing.assert_allclose(found.normal, [-0.6, -0.8, 0.0], atol=1e-14)
    box, cone = tg.Box([1.0, 1.0, 1.0]), tg.Cone(1.0, 2.0)
    assert tg.distance(box, cone.at(at(0.0, 0.0, 3.0)), device="cpu").upper == pytest.approx(1.0, abs=1e-9)
    assert tg.distance(cone, box.at(at(0.0, 0.0, 3.0)), device="cpu").upper == pytest.approx(1.0, abs=1e-9)
    cylinder = tg.Cylinder(1.0, 2.0)
    assert tg.distance(cylinder, cylinder.at(at(2.0, 0.0, 5.0)), device="cpu").upper == pytest.approx(3.0, abs=1e-9)
    found = tg.distance(tg.Capsule(0.5, 2.0), tg.Capsule(0.5, 2.0).at(at(3.0, 0.0, 0.0)), device="cpu")
    assert found.upper == pytest.approx(2.0, abs=1e-12)


@pytest.mark.parametrize("kind", ["box", "cylinder", "cone", "hull"])
def test_over_a_flat_end_the_lowest_point_decides(kind, rng, effort, device):
    """Wherever a tilted body hangs over the end of a wide cylinder: its height is its lowest point's."""
    count = effort(200)
    hanging = bodies(kind, **sizes(kind, count, rng))
    place = poses(count, rng, 0.3)
    reach = rows_of(hanging, place).size
    wide = tg.Cylinder(np.full(count, 10.0), 2.0)
    gap = 10.0 ** rng.uniform(-4, 0, count)
    lowest = _lowest(kind, hanging, place[:, 2, :3])
    place[:, 2, 3] = 1.0 + gap - lowest
    turned = poses(count, rng, 3.0)
    found = tg.distance(wide.at(turned), hanging.at(turned @ place), device=device)
    accuracy = ACCURACY * (11.0 + reach)
    assert (found.lower <= gap + 1e-13).all()
    assert (found.upper >= gap - 1e-13).all()
    assert (found.upper - found.lower <= accuracy).all()
    assert np.einsum("ij,ij->i", found.normal, -turned[:, :3, 2]) == pytest.approx(1.0, abs=1e-12)


def _lowest(kind, shape, along: np.ndarray) -> np.ndarray:
    """The least height of a body's points over its centre; `along`: the world's z in the body's frame."""
    half, radius = shape.records["half"], shape.records["radius"]
    across = np.hypot(along[:, 0], along[:, 1])
    if kind == "box":
        return -(np.abs(along) * half).sum(axis=1)
    if kind == "cylinder":
        return -(np.abs(along[:, 2]) * half[:, 2] + radius * across)
    if kind == "cone":
        return np.minimum(along[:, 2] * half[:, 2], -along[:, 2] * half[:, 2] - radius * across)
    return (along @ shape.hull.corners.T).min(axis=1)


def test_batches_pair_off_and_are_the_same_bits_as_single_pairs(rng):
    a, b = tg.Capsule(0.3, 1.0), tg.Cone(0.5, 1.0)
    place = poses(5, rng, 2.0)
    many = tg.distance(a, b.at(place), device="cpu")
    assert many.upper.shape == (5,)
    assert "5 queries" in repr(many)
    swapped = tg.distance(b.at(place), a, device="cpu")
    np.testing.assert_array_equal(swapped.normal, -many.normal)
    np.testing.assert_array_equal(swapped.point_a, many.point_b)
    for k in range(5):
        one = tg.distance(a, b.at(place[k]), device="cpu")
        assert (one.lower, one.upper) == (many.lower[k], many.upper[k])
        np.testing.assert_array_equal(one.point_b, many.point_b[k])
    assert len(tg.distance(a, b.at(np.zeros((0, 4, 4))), device="cpu").upper) == 0
    with pytest.raises(InputError, match="2 bodies a do not pair off with 5 bodies b"):
        tg.distance(a.at(place[:2]), b.at(place), device="cpu")


def test_moving_bodies_are_where_they_are_at_their_times(rng):
    a, b = tg.Sphere(0.5), tg.Cylinder(0.4, 1.0)
    twist = tg.Twist(poses(1, rng, 2.0)[0], [1.0, 0.0, 0.0], [0.0, 2.0, 0.0])
    times = np.linspace(0.0, 1.0, 4)
    found = tg.distance(a, b.moving(twist), time=times, device="cpu")
    expected = tg.distance(a, b.at(twist.pose(times)), device="cpu")
    np.testing.assert_array_equal(found.upper, expected.upper)
    path = tg.Path(twist.pose(times))
    one = tg.distance(a, b.moving(path), time=1.0 / 3.0, device="cpu")
    assert one.upper == pytest.approx(expected.upper[1], abs=1e-9)
    many = tg.distance(a.moving(tg.Rest(poses(3, rng, 1.0))), b.moving(twist), time=0.5, device="cpu")
    assert many.upper.shape == (3,)


def test_bad_questions_are_told_in_one_sentence():
    a, b = tg.Sphere(1.0), tg.Box([1.0, 1.0, 1.0])
    with pytest.raises(InputError, match="time must be in"):
        tg.distance(a, b, time=2.0)
    with pytest.raises(UnsupportedError, match="distance of an analytic body at rest and an array"):
        tg.distance(a, np.zeros((2, 3)))
    with pytest.raises(UnsupportedError, match="intersects of an analytic body at rest with itself is not known"):
        tg.intersects(a)
    with pytest.raises(InputError, match="smaller one first"):
        closest_of(ConvexKind.BOX, ConvexKind.POINT)
