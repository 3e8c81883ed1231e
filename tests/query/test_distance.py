"""Distance of meshes against brute force over all pairs of triangles, and what the bounds promise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation

import tangere as tg
from tangere.motion import Linear, Path, Rest, Twist
from tangere.query.contacts import Kind
from tangere.query.distance import distance
from tangere.runtime import InputError, UnsupportedError, using_threads


def posed(rng, away=1.0) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, :3] = Rotation.random(random_state=rng).as_matrix()
    direction = rng.normal(size=3)
    pose[:3, 3] = direction / np.linalg.norm(direction) * away
    return pose


def triangle_distance(a: np.ndarray, b: np.ndarray) -> float:
    """Distance of two triangles as a quadratic program over their barycentric coordinates, from several starts."""

    def squared(x):
        gap = a[0] + x[0] * (a[1] - a[0]) + x[1] * (a[2] - a[0]) - b[0] - x[2] * (b[1] - b[0]) - x[3] * (b[2] - b[0])
        return gap @ gap

    limits = [{"type": "ineq", "fun": lambda x: 1 - x[0] - x[1]}, {"type": "ineq", "fun": lambda x: 1 - x[2] - x[3]}]
    answer = minimize(
        squared, [0.3] * 4, bounds=[(0, 1)] * 4, constraints=limits, method="SLSQP", options={"ftol": 1e-18}
    )
    return float(np.sqrt(answer.fun))


def segment_gaps(p0, p1, q0, q1) -> np.ndarray:
    """Distances of segments, all pairs of rows at once (Eberly's clamping, then the four end points)."""
    d, e, r = p1 - p0, q1 - q0, p0 - q0
    a, b, c = (np.einsum("...i,...i", x, y) for x, y in ((d, d), (d, e), (e, e)))
    dr, er = np.einsum("...i,...i", d, r), np.einsum("...i,...i", e, r)
    with np.errstate(divide="ignore", invalid="ignore"):
        s = np.nan_to_num(np.clip((b * er - c * dr) / (a * c - b * b), 0, 1))
        ends = [
            (s, np.clip((b * s + er) / c, 0, 1)),
            (np.zeros_like(s), np.clip(er / c, 0, 1)),
            (np.ones_like(s), np.clip((b + er) / c, 0, 1)),
            (np.clip(-dr / a, 0, 1), np.zeros_like(s)),
            (np.clip((b - dr) / a, 0, 1), np.ones_like(s)),
        ]
    gaps = [np.linalg.norm(r + u[..., None] * d - w[..., None] * e, axis=-1) for u, w in ends]
    return np.min(gaps, axis=0)


def point_gaps(p, a, b, c) -> np.ndarray:
    """Distances of points from the interiors of triangles, inf where the foot is outside."""
    normal = np.cross(b - a, c - a)
    size = np.linalg.norm(normal, axis=-1)
    inside = np.ones(np.broadcast_shapes(p.shape, a.shape)[:-1], bool)
    for x, y in ((a, b), (b, c), (c, a)):
        inside &= np.einsum("...i,...i", np.cross(y - x, p - x), normal) >= 0
    return np.where(inside, np.abs(np.einsum("...i,...i", p - a, normal)) / size, np.inf)


def brute_distance(a: tg.Mesh, b: tg.Mesh) -> float:
    """Over all pairs of triangles: edges with edges, corners with faces."""
    s, t = a.vertices[a.faces][:, None], b.vertices[b.faces][None]
    best = np.inf
    for i in range(3):
        best = min(best, point_gaps(s[..., i, :], t[..., 0, :], t[..., 1, :], t[..., 2, :]).min())
        best = min(best, point_gaps(t[..., i, :], s[..., 0, :], s[..., 1, :], s[..., 2, :]).min())
        for j in range(3):
            best = min(
                best,
                segment_gaps(s[..., i, :], s[..., (i + 1) % 3, :], t[..., j, :], t[..., (j + 1) % 3, :]).min(),
            )
    return float(best)


def check(found, a: tg.Mesh, b: tg.Mesh, true: float) -> None:
    assert found.lower <= true + 1e-13 * (1 + true)
    assert found.upper >= true - 1e-13 * (1 + true)
    assert found.upper - found.lower < 1e-11
    assert np.linalg.norm(found.point_a - found.point_b) == pytest.approx(found.upper, abs=1e-12)
    for mesh, triangle, weights, point in (
        (a, found.triangle_a, found.weights_a, found.point_a),
        (b, found.triangle_b, found.weights_b, found.point_b),
    ):
        assert weights.min() >= 0.0
        assert weights.sum() == pytest.approx(1.0)
        assert weights @ mesh.vertices[mesh.faces[triangle]] == pytest.approx(point, abs=1e-12)
    assert found.normal == pytest.approx((found.point_a - found.point_b) / found.upper, abs=1e-9)


def test_the_distance_of_meshes_is_that_of_their_nearest_triangles(effort, rng, device):
    shapes = [tg.generate.icosphere(subdivisions=1), tg.generate.torus(98, bumps=0.2), tg.generate.torus(72)]
    for k in range(effort(20, 5)):
        a, b = shapes[k % 3], shapes[(k + 1) % 3]
        poses = posed(rng, 0.4), posed(rng, 3.0)
        found = distance(a.moving(Rest(poses[0])), b.moving(Rest(poses[1])), device=device)
        placed = a.at(poses[0]), b.at(poses[1])
        check(found, *placed, brute_distance(*placed))


def test_single_triangles_agree_with_a_quadratic_program(effort, rng):
    for _ in range(effort(60)):
        a, b = rng.normal(size=(2, 3, 3))
        b += [0, 0, rng.uniform(0, 3)]
        meshes = [tg.Mesh(t, [[0, 1, 2]]) for t in (a, b)]
        found = distance(*meshes, device="cpu")
        assert found.upper == pytest.approx(triangle_distance(a, b), abs=1e-6)
        if found.kind != Kind.OVERLAP:
            check(found, *meshes, min(brute_distance(*meshes), found.upper))


def test_meshes_that_meet_are_at_distance_zero_with_a_common_point():
    ball = tg.generate.icosphere(subdivisions=2)
    shift = np.eye(4)
    shift[:3, 3] = [1.2, 0.3, 0.1]
    found = distance(ball, ball.at(shift), device="cpu")
    assert (found.lower, found.upper, found.kind) == (0.0, 0.0, Kind.OVERLAP)
    assert np.array_equal(found.point_a, found.point_b)
    for centre in (np.zeros(3), shift[:3, 3]):
        assert 0.9 < np.linalg.norm(found.point_a - centre) <= 1.0 + 1e-9


@pytest.mark.parametrize(
    ("a", "b", "upper", "kind"),
    [
        ([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 0, 0], [1, 0, 0], [0, 1, 0]], 0.0, Kind.OVERLAP),  # the same
        ([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[1, 0, 0], [2, 0, 0], [2, 1, 0]], 0.0, Kind.OVERLAP),  # a common corner
        ([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0.2, 0.2, 0], [0.3, 0.2, 0], [0.2, 0.3, 0]], 0.0, Kind.OVERLAP),
        ([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[3, 0, 0], [4, 0, 0], [3, 1, 0]], 2.0, None),  # coplanar
        ([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0.2, 0.2, 1], [0.2, 0.2, 2], [0.2, 0.2, 3]], 1.0, Kind.VERTEX_FACE),
        ([[0, 0, 0], [0, 0, 0], [0, 0, 0]], [[3, 4, 0], [3, 4, 0], [3, 4, 0]], 5.0, None),  # points
        ([[0, 0, 0], [1, 0, 0], [2, 0, 0]], [[0, 1, 0], [1, 1, 0], [2, 1, 0]], 1.0, None),  # parallel needles
        ([[0, 0, 0], [2, 0, 0], [1, 0, -1]], [[1, -1, 1], [1, 1, 1], [1, 0, 2]], 1.0, Kind.EDGE_EDGE),
    ],
)
def test_degenerate_triangles_have_the_distance_they_should(a, b, upper, kind):
    for scale in (1.0, 2.0**-60, 2.0**60):
        meshes = [tg.Mesh(np.array(t, float) * scale, [[0, 1, 2]]) for t in (a, b)]
        found = distance(*meshes, device="cpu")
        assert found.upper == pytest.approx(upper * scale, rel=1e-12)
        assert found.lower == pytest.approx(upper * scale, rel=1e-12)
        assert kind is None or found.kind == kind


def test_far_from_the_origin_the_bounds_widen_but_still_hold(rng):
    ball = tg.generate.icosphere(subdivisions=1)
    far = np.eye(4)
    far[:3, 3] = [1e7, -2e7, 5e6]
    near = far.copy()
    near[0, 3] += 2.5
    found = distance(ball.moving(Rest(far)), ball.moving(Rest(near)), device="cpu")
    shift = np.eye(4)
    shift[0, 3] = near[0, 3] - far[0, 3]
    true = brute_distance(ball, ball.at(shift))
    assert found.lower <= true <= found.upper
    assert found.upper - found.lower < 1e-5


def test_many_times_and_many_poses_are_one_call(rng):
    part, block = tg.generate.torus(200), tg.generate.icosphere(subdivisions=1)
    twist = Twist(np.eye(4), [5.0, 0.0, 0.0], [0.0, 3.0, 1.0])
    there = np.eye(4)
    there[:3, 3] = [2.0, 3.0, 0.0]
    times = np.linspace(0, 1, 9)
    every = distance(part.moving(twist), block.moving(Rest(there)), time=times, device="cpu")
    assert every.upper.shape == (9,)
    assert every.point_a.shape == (9, 3)
    for k, t in enumerate(times):
        one = distance(part.moving(twist), block.moving(Rest(there)), time=t, device="cpu")
        assert (one.lower, one.upper, one.triangle_a) == (every.lower[k], every.upper[k], every.triangle_a[k])
    path = Path(twist.pose(np.linspace(0, 1, 4)))
    along = distance(part.moving(path), block.moving(Rest(there)), time=times, device="cpu")
    assert along.upper == pytest.approx(
        distance(part.moving(Rest(path.pose(times))), block.moving(Rest(there)), device="cpu").upper
    )
    once = distance(part.moving(path), block.moving(Rest(there)), time=0.5, device="cpu")
    assert (once.lower, once.upper) == (along.lower[4], along.upper[4])
    poses = np.stack([posed(rng, 4.0) for _ in range(4)])
    batch = distance(part.moving(Rest(poses)), block, device="cpu")
    assert batch.upper.shape == (4,)
    assert "4 queries" in repr(batch)


def test_any_number_of_threads_gives_the_same_bits(rng):
    part, block = tg.generate.torus(200), tg.generate.icosphere(subdivisions=2)
    poses = np.stack([posed(rng, 3.0) for _ in range(40)])
    seen = set()
    for threads in (1, 2):
        with using_threads(threads):
            found = distance(part.moving(Rest(poses)), block, device="cpu")
        seen.add(b"".join(np.asarray(c).tobytes() for c in (found.lower, found.upper, found.point_a, found.triangle_b)))
    assert len(seen) == 1


def test_deforming_meshes_are_measured_at_one_time_only():
    ball = tg.generate.icosphere(subdivisions=1)
    cloth = ball.moving(Linear(ball.vertices + [4.0, 0.0, 0.0]))
    assert distance(cloth, ball, time=1.0, device="cpu").upper == pytest.approx(
        distance(ball.at([[1, 0, 0, 4], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]), ball, device="cpu").upper
    )
    with pytest.raises(UnsupportedError, match="many times"):
        distance(cloth, ball, time=[0.0, 1.0], device="cpu")
    with pytest.raises(InputError, match=r"time must be in \[0, 1\]"):
        distance(ball, ball, time=2.0, device="cpu")
    with pytest.raises(InputError, match=r"do not pair off.*: as many of both, or one of either"):
        distance(
            ball.moving(Rest(np.tile(np.eye(4), (2, 1, 1)))),
            ball.moving(Rest(np.tile(np.eye(4), (3, 1, 1)))),
            device="cpu",
        )


def test_meshes_too_small_for_their_lengths_are_refused_however_small():
    """A diagonal below 1e-160 underflows, so the size is not taken from it."""
    box = tg.generate.box()
    for size in (1e-41, 1e-100, 1e-165, 1e-310):
        tiny = box.replace(vertices=size * box.vertices)
        for one, other in ((tiny, box), (box, tiny)):
            with pytest.raises(InputError, match=r"is .* in size; the least is 1e-40"):
                distance(one, other, device="cpu")
            with pytest.raises(InputError, match=r"is .* in size; the least is 1e-40"):
                tg.first_contact(one.moving(Twist(np.eye(4), [1.0, 0.0, 0.0], [0.0, 0.0, 0.0])), other, device="cpu")
    small = box.replace(vertices=1e-39 * box.vertices)
    away = box.replace(vertices=1e-39 * (box.vertices + [3.0, 0.0, 0.0]))
    assert distance(small, away, device="cpu").upper == pytest.approx(2e-39, rel=1e-9)


def test_python_fcl_finds_the_same_distance(rng):
    fcl = pytest.importorskip("fcl")
    mesh = tg.generate.torus(3000, bumps=0.1)
    model = fcl.BVHModel()
    model.beginModel(len(mesh.vertices), len(mesh.faces))
    model.addSubModel(mesh.vertices, mesh.faces)
    model.endModel()
    for _ in range(5):
        pose = posed(rng, 2.9)
        found = distance(mesh, mesh.moving(Rest(pose)), device="cpu")
        one, other = (fcl.CollisionObject(model, fcl.Transform(p[:3, :3], p[:3, 3])) for p in (np.eye(4), pose))
        assert found.upper == pytest.approx(fcl.distance(one, other), abs=1e-9)
