"""Cubics of tangent screws, against the moving points themselves, the printed formulas and roots found otherwise."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp
from scipy.spatial.transform import Rotation

from oracles.screw_frames import Screws, unit
from tangere.motion import Screw
from tangere.published.redon_cubics import edge_edge_times, face_vertex_times, vertex_face_times
from tangere.published.redon_cubics.cubics import edge_edge_cubic, face_vertex_cubic, vertex_face_cubic
from tangere.published.redon_cubics.path import ScrewPath, path_point, screw_paths
from tangere.published.redon_screws import TanScrew
from tangere.runtime import InputError, launch

EE, VF, FV = 1, 2, 3
ASK = {EE: edge_edge_times, VF: vertex_face_times, FV: face_vertex_times}
#: Which of the four points move.
MOVING = {EE: (0, 1), VF: (0,), FV: (1, 2, 3)}


# -- the oracle -----------------------------------------------------------------------------------------------------


def positions(screws, kind, x, t):
    """The four points (n, 4, 3) at times t (n,), the resting ones as they are."""
    result = x.copy()
    moving = list(MOVING[kind])
    result[:, moving] = screws.moved(x[:, moving], t)
    return result


def determinant(kind, x):
    """The printed equations (1.3) and (1.4) of the four points."""
    a, b, c, d = np.moveaxis(x, 1, 0)
    if kind == EE:
        return np.einsum("ni,ni->n", c - a, np.cross(b - a, d - c))
    return np.einsum("ni,ni->n", b - a, np.cross(c - b, d - b)) * (-1.0 if kind == FV else 1.0)


def margin(kind, x):
    """How far inside its features the meeting point is: negative outside, relative to them."""
    a, b, c, d = np.moveaxis(x, 1, 0)
    if kind == EE:
        normal = np.cross(b - a, d - c)
        size = (normal**2).sum(-1)
        u = np.einsum("ni,ni->n", np.cross(c - a, d - c), normal) / size
        v = np.einsum("ni,ni->n", np.cross(c - a, b - a), normal) / size
        return np.min([u, 1 - u, v, 1 - v], axis=0)
    normal = np.cross(c - b, d - b)
    size = (normal**2).sum(-1)
    v = np.einsum("ni,ni->n", np.cross(a - b, d - b), normal) / size
    w = np.einsum("ni,ni->n", np.cross(c - b, a - b), normal) / size
    return np.min([v, w, 1 - v - w], axis=0)


def true_times(screws, kind, x):
    """First contact by the roots of the interpolated cubic, and whether rounding could change the answer.

    f(t) (1 + tau^2) is a cubic in tau: four values of the screw itself give it, eigenvalues its roots.
    """
    count, largest = len(x), np.tan(0.5 * screws.angle)
    nodes = 0.5 - 0.5 * np.cos(np.pi * np.array([0.5, 1.5, 2.5, 3.5]) / 4)
    values = []
    for node in nodes:
        t = 2.0 * np.arctan(node * largest) / screws.angle
        values.append(determinant(kind, positions(screws, kind, x, t)) * (1.0 + (node * largest) ** 2))
    cubic = np.linalg.solve(np.vander(nodes, 4), np.array(values)).T  # falling powers of s
    scale = np.abs(cubic).max(axis=1)
    companion = np.zeros((count, 3, 3))
    companion[:, 1, 0] = companion[:, 2, 1] = 1.0
    leading = np.where(np.abs(cubic[:, 0]) > 1e-13 * scale, cubic[:, 0], 1e-13 * scale)
    companion[:, 0] = -cubic[:, 1:] / leading[:, None]
    roots = np.linalg.eigvals(companion)
    first, doubtful = np.full(count, np.inf), np.zeros(count, bool)
    for k in range(3):
        s = roots[:, k].real
        for _ in range(3):
            slope = (3 * cubic[:, 0] * s + 2 * cubic[:, 1]) * s + cubic[:, 2]
            s = s - np.polyval(cubic.T, s) / np.where(slope == 0.0, 1.0, slope)
        slope = (3 * cubic[:, 0] * s + 2 * cubic[:, 1]) * s + cubic[:, 2]
        near = (s > -1e-6) & (s < 1.0 + 1e-6)
        t = 2.0 * np.arctan(np.clip(s, 0.0, 1.0) * largest) / screws.angle
        inside = margin(kind, positions(screws, kind, x, t))
        real = np.abs(roots[:, k].imag) < 1e-4
        steep = np.abs(slope) > 1e-4 * scale
        doubtful |= (
            near
            & real
            & (inside > -1e-6)
            & (~steep | (np.abs(inside) < 1e-6) | (np.abs(s) < 1e-6) | (np.abs(s - 1.0) < 1e-6))
        )
        hit = real & steep & (s >= 0.0) & (s <= 1.0) & (inside >= 0.0)
        first = np.where(hit, np.minimum(first, t), first)
    return first, doubtful


def queries(rng, kind, count, **options):
    """Random screws and points near each other: about a third touch."""
    screws = Screws(rng, count, **options)
    x = 0.7 * rng.normal(size=(count, 4, 3))
    x[:, 0] *= 0.5
    return screws, x


def to_bodies(screws, kind, x):
    """The points as the queries take them: moving ones in the body's frame."""
    given = x.copy()
    moving = list(MOVING[kind])
    given[:, moving] = screws.to_body(x[:, moving])
    return given


# -- coefficients -----------------------------------------------------------------------------------------------------


@wp.kernel
def _cubics(
    first: int,
    kind: int,
    points: wp.array2d[wp.vec3d],
    paths: wp.array[ScrewPath],
    out: wp.array[wp.vec4d],
):
    i = first + wp.tid()
    path = paths[i]
    a = points[i, 0]
    b = points[i, 1]
    c = points[i, 2]
    d = points[i, 3]
    if kind == 1:
        p = path_point(path, a)
        out[i] = edge_edge_cubic(path, p, path_point(path, b).place - p.place, c, d - c)
    if kind == 2:
        out[i] = vertex_face_cubic(path, path_point(path, a), b, wp.cross(c - b, d - b))
    if kind == 3:
        p = path_point(path, b)
        q = path_point(path, c).place - p.place
        r = path_point(path, d).place - p.place
        out[i] = face_vertex_cubic(path, a, p, wp.cross(q, r))


def cubics(kind, screws, x):
    count, cpu = len(x), wp.get_device("cpu")
    out = wp.zeros(count, dtype=wp.vec4d, device=cpu)
    points = wp.array(to_bodies(screws, kind, x), dtype=wp.vec3d, device=cpu)
    paths = wp.array(screw_paths(screws.motion.records()), dtype=ScrewPath, device=cpu)
    launch(_cubics, count, [kind, points, paths], [out], device=cpu)
    return out.numpy()


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(EE, marks=pytest.mark.feature("F-R-8")),
        pytest.param(VF, marks=pytest.mark.feature("F-R-9")),
        pytest.param(FV, marks=pytest.mark.feature("F-R-9")),
    ],
)
def test_the_cubic_is_the_determinant_of_the_moving_points(rng, kind):
    screws, x = queries(rng, kind, 2000, angle=(0.3, 2.9))
    cubic = cubics(kind, screws, x)
    tangent = np.tan(0.5 * screws.angle)
    for s in rng.random(5):
        t = 2.0 * np.arctan(tangent * s) / screws.angle
        at = positions(screws, kind, x, t)
        expected = determinant(kind, at) * (1.0 + (tangent * s) ** 2)
        terms = np.abs(cubic).sum(axis=1) + np.linalg.norm(at, axis=2).max(axis=1) ** 3
        terms += np.linalg.norm(x, axis=2).max(axis=1) ** 3 * (1.0 + tangent**2)
        assert (np.abs(np.polyval(cubic.T, s) - expected) <= 1e-12 * np.maximum(terms, 1.0)).all()


@pytest.mark.feature("F-R-8")
def test_the_edge_edge_cubic_is_the_printed_one(rng):
    """(2.15) and (2.27), in the screw's frame, with tau = s tan(w / 2)."""
    screws, x = queries(rng, EE, 500, angle=(0.3, 2.0))
    frame = np.stack([u := unit(np.cross(screws.axis, [0.3, 0.5, 0.7])), np.cross(screws.axis, u), screws.axis], axis=1)
    a, b, c, d = np.moveaxis(np.einsum("nij,nkj->nki", frame, x - screws.point[:, None]), 1, 0)
    e, f = b - a, d - c
    (ax, ay, az), (cx, cy, cz), (ex, ey, ez), (fx, fy, fz) = (v.T for v in (a, c, e, f))
    a0 = (az - cz) * (fx * ey - fy * ex) + ez * (ax * fy - ay * fx) + fz * (cx * ey - cy * ex)
    a1 = (az - cz) * (fx * ex + fy * ey) - ez * (ax * fx + ay * fy) + fz * (cx * ex + cy * ey)
    a2, a3 = fx * ey - fy * ex, fx * ex + fy * ey
    a4 = ez * (fx * cy - fy * cx) + fz * (ex * ay - ey * ax)
    tangent = np.tan(0.5 * screws.angle)
    sigma = screws.slide / tangent
    printed = np.stack([-sigma * a2, 2 * sigma * a3 + a4 - a0, 2 * a1 + sigma * a2, a0 + a4], axis=1)
    printed = printed * tangent[:, None] ** np.array([3, 2, 1, 0])
    sign = np.sign((printed * cubics(EE, screws, x)).sum(axis=1))[:, None]
    assert np.allclose(sign * cubics(EE, screws, x), printed, atol=1e-12 * np.abs(printed).max())


@pytest.mark.feature("F-R-9")
def test_the_vertex_face_cubic_is_the_printed_one(rng):
    """(2.21) and (2.29), in the screw's frame."""
    screws, x = queries(rng, VF, 500, angle=(0.3, 2.0))
    frame = np.stack([u := unit(np.cross(screws.axis, [0.3, 0.5, 0.7])), np.cross(screws.axis, u), screws.axis], axis=1)
    a, b, c, d = np.moveaxis(np.einsum("nij,nkj->nki", frame, x - screws.point[:, None]), 1, 0)
    n = np.cross(c - b, d - b)
    (ax, ay, az), (bx, by, bz), (nx, ny, nz) = (v.T for v in (a, b, n))
    b0, b1, b2, b3 = -ax * nx - ay * ny, ay * nx - ax * ny, -nz, bx * nx + by * ny + (bz - az) * nz
    tangent = np.tan(0.5 * screws.angle)
    sigma = screws.slide / tangent
    printed = np.stack([sigma * b2, b3 - b0, 2 * b1 + sigma * b2, b0 + b3], axis=1)
    printed = printed * tangent[:, None] ** np.array([3, 2, 1, 0])
    assert np.allclose(cubics(VF, screws, x), printed, atol=1e-12 * np.abs(printed).max())


# -- first contact of features ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [EE, VF, FV])
def test_first_contact_is_the_first_root_that_lies_on_both_features(rng, effort, kind):
    agree(rng, kind, effort(10_000))


@pytest.mark.slow
@pytest.mark.feature("F-R-10")
@pytest.mark.parametrize("kind", [EE, VF, FV])
def test_a_million_first_contacts_are_right_to_a_billionth(rng, effort, kind):
    for _ in range(10):
        agree(rng, kind, effort(100_000))


def agree(rng, kind, count):
    screws, x = queries(rng, kind, count)
    expected, doubtful = true_times(screws, kind, x)
    found = ASK[kind](to_bodies(screws, kind, x), screws.motion, device="cpu")
    assert doubtful.mean() < 0.01
    assert 0.05 < np.isfinite(expected).mean() < 0.9
    sure = ~doubtful
    assert np.array_equal(np.isfinite(found[sure]), np.isfinite(expected[sure]))
    both = sure & np.isfinite(expected)
    assert np.abs(found[both] - expected[both]).max() <= 1e-9


@pytest.mark.parametrize("kind", [EE, VF, FV])
@pytest.mark.parametrize("angle", [0.0, 1e-14, 1e-9, 1e-6, 1e-3])
def test_small_turns_go_over_into_translations(rng, kind, angle):
    """Against plain translation by linear interpolation, which a turn of `angle` changes by about `angle`."""
    count = 500
    x = rng.normal(size=(count, 4, 3))
    way = rng.normal(size=(count, 3))
    start = np.tile(np.eye(4), (count, 1, 1))
    end = start.copy()
    end[:, :3, 3] = way
    end[:, :3, :3] = Rotation.from_rotvec(angle * unit(rng.normal(size=(count, 3)))).as_matrix()
    found = ASK[kind](x, TanScrew(start, end), device="cpu")
    moving = np.isin(np.arange(4), MOVING[kind])
    f0 = determinant(kind, x)
    f1 = determinant(kind, x + np.where(moving[:, None], way[:, None], 0.0))
    t = f0 / (f0 - f1)
    inside = margin(kind, x + np.where(moving[:, None], (np.clip(t, 0, 1)[:, None] * way)[:, None], 0.0))
    doubtful = (np.abs(inside) < 1e2 * angle + 1e-9) | (np.minimum(np.abs(t), np.abs(t - 1)) < 1e2 * angle + 1e-9)
    doubtful |= np.abs(f0 - f1) < 1e-2 if angle > 1e-4 else False
    expected = np.where((t >= 0) & (t <= 1) & (inside >= 0), t, np.inf)
    sure = ~doubtful
    assert sure.sum() > 0.5 * count
    assert np.array_equal(np.isfinite(found[sure]), np.isfinite(expected[sure]))
    hit = sure & np.isfinite(expected)
    assert hit.sum() > 5
    assert np.allclose(found[hit], expected[hit], atol=100.0 * angle + 1e-12)


def test_touching_at_the_start_is_time_zero_and_receding_faces_never_touch():
    triangle = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    up, down = np.eye(4), np.eye(4)
    up[2, 3], down[2, 3] = 1.0, -1.0
    both = np.array([[[0.2, 0.2, 0.0], *triangle], [[0.2, 0.2, 0.5], *triangle]])
    start = np.stack([np.eye(4)] * 2)
    assert vertex_face_times(both, TanScrew(start, np.stack([up, up])), device="cpu").tolist() == [0.0, np.inf]
    assert vertex_face_times(both, TanScrew(start, np.stack([down, down])), device="cpu").tolist() == pytest.approx(
        [0.0, 0.5]
    )


def test_degenerate_features_touch_as_what_is_left_of_them():
    """A face shrunk to a segment, edges that are parallel or have no length, and a motion within the face's plane."""
    forward = np.eye(4)
    forward[0, 3] = 2.0
    motion = TanScrew(np.eye(4), forward)
    beside = [[0, 0, 0], [1, 0, 0], [1, 1, 0], [1, -1, 0]]  # coplanar all the way: no root names a time
    apart = [[0, 0, 0.5], [1, 0, 0], [1, 1, 0], [1, -1, 0]]
    assert vertex_face_times(np.array([apart], float), motion, device="cpu").tolist() == [np.inf]
    assert vertex_face_times(np.array([beside], float), motion, device="cpu")[0] in (np.inf, 0.5)
    parallel = [[0, 0, 0.1], [0, 1, 0.1], [1, 0, 0], [1, 1, 0]]
    assert edge_edge_times(np.array([parallel], float), motion, device="cpu").tolist() == [np.inf]


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_scale_does_not_matter(rng, scale):
    screws, x = queries(rng, EE, 400)
    given = to_bodies(screws, EE, x)
    start, end = screws.motion.pose(0.0), screws.motion.pose(1.0)
    plain = edge_edge_times(given, TanScrew(start, end), device="cpu")
    start, end = start.copy(), end.copy()
    start[:, :3, 3] *= scale
    end[:, :3, 3] *= scale
    scaled = edge_edge_times(scale * given, TanScrew(start, end), device="cpu")
    assert np.array_equal(np.isfinite(plain), np.isfinite(scaled))
    assert np.allclose(plain[np.isfinite(plain)], scaled[np.isfinite(plain)], atol=1e-9)


def test_input_that_makes_no_sense_is_refused():
    motion = TanScrew(np.eye(4), np.eye(4))
    with pytest.raises(InputError, match=r"points must have shape \(n, 4, 3\)"):
        edge_edge_times(np.zeros((3, 3, 3)), motion)
    with pytest.raises(InputError, match=r"points\[1\] is not finite"):
        edge_edge_times(np.array([np.zeros((4, 3)), np.full((4, 3), np.nan)]), motion)
    with pytest.raises(InputError, match=r"points has .* queries and motion .*: they must be as many"):
        edge_edge_times(np.zeros((3, 4, 3)), TanScrew(np.stack([np.eye(4)] * 2), np.eye(4)))
    with pytest.raises(InputError, match="must be a TanScrew"):
        edge_edge_times(np.zeros((3, 4, 3)), Screw(np.eye(4), np.eye(4)))  # pyright: ignore[reportArgumentType]
