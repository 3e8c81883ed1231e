"""Where and how features meet: weights, points, kinds and normals."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.distances import distance_at, feature_distance, query_size
from oracles.families.feature_queries import FAMILIES
from oracles.families.planted_contacts import unit
from tangere.query.contacts import Kind, Status
from tangere.query.first_contact import FirstContacts, edge_edge, triangle_triangle, vertex_edge, vertex_face
from tangere.query.first_contact.primitives.narrow_phase.exact import decide_many

QUERY = {Kind.VERTEX_FACE: vertex_face, Kind.EDGE_EDGE: edge_edge}
FIRST = {Kind.VERTEX_FACE: [0], Kind.EDGE_EDGE: [0, 1]}
#: Weights of the difference point_a - point_b.
SIGNS = {Kind.VERTEX_FACE: np.array([1, -1, -1, -1]), Kind.EDGE_EDGE: np.array([1, 1, -1, -1])}
each_kind = pytest.mark.parametrize("kind", QUERY, ids=lambda kind: kind.name.lower())
each_family = pytest.mark.parametrize("family", FAMILIES)
FACE = [[0, 0, 0], [1, 0, 0], [0, 1, 0]]


def solve(kind: Kind, points: np.ndarray, **options) -> FirstContacts:
    return QUERY[kind](points[:, :4], points[:, 4:], **{"device": "cpu", **options})


def fields_of(answer: FirstContacts, rows: np.ndarray) -> FirstContacts:
    return FirstContacts(**{name: column[rows] for name, column in vars(answer).items() if column is not None})


def moving(points: np.ndarray, time: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions at the times and velocities, (n, 4, 3) each."""
    t = time[:, None, None]
    return points[:, :4] * (1 - t) + points[:, 4:] * t, points[:, 4:] - points[:, :4]


def combined(weights: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return np.einsum("nk,nkd->nd", weights, vectors)


@pytest.mark.feature("F-T-20")
@each_kind
@each_family
def test_points_are_those_of_the_weights_and_lie_within_the_tolerance_of_each_other(kind, family, effort, rng):
    points = FAMILIES[family](kind, effort(300), rng).points
    answer = solve(kind, points)
    rows = np.flatnonzero(answer.hit)
    found, points = fields_of(answer, rows), points[rows]
    size = np.maximum(query_size(points), np.finfo(float).tiny)
    now, velocity = moving(points, found.time)
    split = 1 if kind == Kind.VERTEX_FACE else 2
    assert np.all(found.weights >= 0.0)
    for part in (found.weights[:, :split], found.weights[:, split:]):
        assert part.sum(axis=1) == pytest.approx(1.0, abs=1e-14)
    reach = 1e-15 * np.abs(points).max(axis=(1, 2), initial=0.0) + 1e-13 * size
    for point, part in ((found.point_a, np.s_[:split]), (found.point_b, np.s_[split:])):
        difference = point - combined(found.weights[:, part], now[:, part])
        assert np.all(np.abs(difference).max(axis=1, initial=0.0) <= 4 * reach)
    assert np.all(np.abs(found.point_a - found.point_b).max(axis=1, initial=0.0) <= 1e-6 * size + 4 * reach)
    # whatever the features, the normal is a unit vector and never along the approach
    assert np.linalg.norm(found.normal, axis=1) == pytest.approx(1.0, abs=1e-12)
    relative = combined(found.weights * SIGNS[kind], velocity)
    speed = np.abs(relative).max(axis=1, initial=0.0)
    along = np.einsum("nd,nd->n", relative / np.where(speed > 0, speed, 1.0)[:, None], found.normal)
    rounding = 1e-15 * np.abs(points).max(axis=(1, 2), initial=0.0) / np.where(speed > 0, speed, 1.0)
    assert np.all(along <= 1e-8 + rounding)


@pytest.mark.feature("F-T-20")
@each_kind
@pytest.mark.parametrize("family", ["random_half_colliding", "generic", "rigid_translation", "needles"])
def test_an_impulse_along_the_normal_separates_what_would_pass_through(kind, family, effort, rng):
    points = FAMILIES[family](kind, effort(1000), rng).points
    answer = solve(kind, points)
    inside = (answer.kind == kind) & np.isfinite(answer.time_upper) & (answer.weights > 0.02).all(axis=1)
    rows = np.flatnonzero(inside & (answer.time < 0.99))
    assert len(rows) > 0.05 * len(points)
    found = fields_of(answer, rows)
    now, velocity = moving(points[rows], found.time)
    approach = np.einsum("nd,nd->n", combined(found.weights * SIGNS[kind], velocity), found.normal)
    size = query_size(points[rows])
    clear = approach < -1e-3 * size  # all but the nearly tangential ones, where turning features decide what follows
    assert np.count_nonzero(clear) > 0.8 * len(rows)
    impulse = np.zeros_like(velocity)
    impulse[:, FIRST[kind]] = (-2 * approach[:, None] * found.normal)[:, None]
    step = 1e-6
    kept = np.einsum("nd,nd->n", gap_vector(kind, found, now + step * velocity), found.normal)
    turned = np.einsum("nd,nd->n", gap_vector(kind, found, now + step * (velocity + impulse)), found.normal)
    assert np.all(kept[clear] < 0.0)
    assert turned[clear] == pytest.approx(-step * approach[clear], rel=1e-2)
    apart = feature_distance(kind, now + step * (velocity + impulse))
    assert np.all(apart[clear] > 0.9 * turned[clear])


def gap_vector(kind: Kind, found: FirstContacts, positions: np.ndarray) -> np.ndarray:
    return combined(found.weights * SIGNS[kind], positions)


@each_kind
def test_the_normal_of_a_plain_contact_is_that_of_the_face_or_of_both_edges(kind, effort, rng):
    points = FAMILIES["random_half_colliding"](kind, effort(500), rng).points
    answer = solve(kind, points)
    rows = np.flatnonzero(answer.kind == kind)
    now, _ = moving(points[rows], answer.time[rows])
    p, q, r, s = now.transpose(1, 0, 2)
    across = np.cross(r - q, s - q) if kind == Kind.VERTEX_FACE else np.cross(q - p, s - r)
    assert np.abs(np.einsum("nd,nd->n", unit(across), answer.normal[rows])) == pytest.approx(1.0, abs=1e-9)


@each_kind
@pytest.mark.parametrize("mode", ["sound", "exact"])
def test_free_queries_have_no_details(kind, mode, effort, rng):
    answer = solve(kind, FAMILIES["random_half_colliding"](kind, effort(200), rng).points, mode=mode)
    free = answer.status == Status.FREE
    assert 0 < np.count_nonzero(free) < len(answer)
    assert np.all((answer.kind == Kind.NONE) == free)
    for column in (answer.weights, answer.point_a, answer.point_b, answer.normal):
        np.testing.assert_array_equal(np.isnan(column), np.broadcast_to(free[:, None], column.shape))


@pytest.mark.parametrize(
    ("kind", "x0", "expected", "weights"),
    [
        (Kind.VERTEX_FACE, [[0.25, 0.25, 1], *FACE], Kind.VERTEX_FACE, [1, 0.5, 0.25, 0.25]),
        (Kind.VERTEX_FACE, [[0.25, 0, 1], *FACE], Kind.VERTEX_EDGE, [1, 0.75, 0.25, 0]),
        (Kind.VERTEX_FACE, [[0, 0.25, 1], *FACE], Kind.VERTEX_EDGE, [1, 0.75, 0, 0.25]),
        (Kind.VERTEX_FACE, [[0.5, 0.5, 1], *FACE], Kind.VERTEX_EDGE, [1, 0, 0.5, 0.5]),
        (Kind.VERTEX_FACE, [[0, 0, 1], *FACE], Kind.VERTEX_VERTEX, [1, 1, 0, 0]),
        (Kind.VERTEX_FACE, [[1, 0, 1], *FACE], Kind.VERTEX_VERTEX, [1, 0, 1, 0]),
        (Kind.VERTEX_FACE, [[0, 1, 1], *FACE], Kind.VERTEX_VERTEX, [1, 0, 0, 1]),
        (
            Kind.EDGE_EDGE,
            [[-1, 0, 1], [3, 0, 1], [0, -1, 0], [0, 1, 0]],
            Kind.EDGE_EDGE,
            [0.75, 0.25, 0.5, 0.5],
        ),
        (Kind.EDGE_EDGE, [[0, 0, 1], [3, 0, 1], [0, -1, 0], [0, 1, 0]], Kind.VERTEX_EDGE, [1, 0, 0.5, 0.5]),
        (Kind.EDGE_EDGE, [[-1, 0, 1], [1, 0, 1], [0, -1, 0], [0, 0, 0]], Kind.VERTEX_EDGE, [0.5, 0.5, 0, 1]),
        (Kind.EDGE_EDGE, [[0, 0, 1], [3, 0, 1], [0, 0, 0], [0, 1, 0]], Kind.VERTEX_VERTEX, [1, 0, 1, 0]),
        (Kind.EDGE_EDGE, [[3, 0, 1], [0, 0, 1], [0, 1, 0], [0, 0, 0]], Kind.VERTEX_VERTEX, [0, 1, 0, 1]),
    ],
)
@pytest.mark.parametrize("mode", ["sound", "exact"])
def test_the_kind_names_the_smallest_features_that_meet(kind, x0, expected, weights, mode):
    start = np.array([x0], dtype=float)
    end = start.copy()
    end[:, FIRST[kind], 2] -= 2.0
    answer = QUERY[kind](start, end, mode=mode, device="cpu")
    assert Kind(answer.kind[0]) == expected
    assert answer.weights[0] == pytest.approx(weights, abs=1e-12)
    assert answer.normal[0] == pytest.approx([0, 0, 1], abs=1e-12)
    assert answer.time[0] == pytest.approx(0.5, abs=1e-9)


@each_kind
def test_kinds_at_exact_times_are_those_of_the_planted_weights(kind, effort, rng):
    queries = FAMILIES["boundary_weights"](kind, effort(300, least=200), rng)
    assert queries.time is not None
    exact = decide_many(kind, queries.points)
    first = (exact.time_below == queries.time) & (exact.time_above == queries.time)
    answer = solve(kind, queries.points[first], mode="exact")
    settled = answer.time == queries.time[first]
    assert np.count_nonzero(settled) > 50
    boundary = np.isin(answer.kind[settled], [Kind.VERTEX_EDGE, Kind.VERTEX_VERTEX])
    assert boundary.all()
    vanishing = (answer.weights[settled] <= 1e-12).sum(axis=1)
    expected = np.where(vanishing == 1, Kind.VERTEX_EDGE, Kind.VERTEX_VERTEX)
    np.testing.assert_array_equal(answer.kind[settled], expected)


@pytest.mark.parametrize(
    ("name", "kind", "x0", "move", "normal"),
    [
        # within the plane of the face: back where it came from
        ("coplanar vertex", Kind.VERTEX_FACE, [[-1, 0.25, 0], *FACE], (2, 0, 0), [-1, 0, 0]),
        # across the edge that is hit, not along the motion
        ("oblique coplanar vertex", Kind.VERTEX_FACE, [[-1, 0.25, 0], *FACE], (2, 0.25, 0), [-1, 0, 0]),
        ("parallel edges", Kind.EDGE_EDGE, [[0, 0, 1], [1, 0, 1], [0, 0, 0], [1, 0, 0]], (0, 0, -2), [0, 0, 1]),
        ("collapsed face", Kind.VERTEX_FACE, [[0.5, 0, 1], [0, 0, 0], [1, 0, 0], [0.25, 0, 0]], (0, 0, -2), [0, 0, 1]),
        ("face of one point", Kind.VERTEX_FACE, [[0, 0, 1], *[[0, 0, 0]] * 3], (0, 0, -2), [0, 0, 1]),
        ("edge of one point", Kind.EDGE_EDGE, [[0.25, 0, 1]] * 2 + [[0, 0, 0], [1, 0, 0]], (1, 0, -2), [0, 0, 1]),
    ],
)
def test_degenerate_contacts_have_the_normal_that_stops_them(name, kind, x0, move, normal):
    start = np.array([x0], dtype=float)
    end = start.copy()
    end[:, FIRST[kind]] += move
    answer = QUERY[kind](start, end, device="cpu")
    assert answer.status[0] == Status.CONTACT, name
    assert answer.normal[0] == pytest.approx(normal, abs=1e-6), name


@each_kind
def test_resting_contact_has_a_unit_normal(kind, effort, rng):
    """Without relative motion nothing says which way; some unit vector, across the face or both edges, must do."""
    touching = FAMILIES["generic"](kind, effort(300), rng)
    assert touching.time is not None
    now, _ = moving(touching.points, touching.time)
    answer = QUERY[kind](now, now.copy(), device="cpu")
    assert np.all(answer.status == Status.START)
    assert np.linalg.norm(answer.normal, axis=1) == pytest.approx(1.0, abs=1e-12)


@each_kind
def test_with_a_separation_the_normal_points_from_the_second_feature_to_the_first(kind, effort, rng):
    points = FAMILIES["random_half_colliding"](kind, effort(500), rng).points
    answer = solve(kind, points, separation=0.05)
    rows = np.flatnonzero(answer.status == Status.CONTACT)
    gap = np.einsum("nd,nd->n", answer.point_a[rows] - answer.point_b[rows], answer.normal[rows])
    assert gap == pytest.approx(distance_at(kind, points[rows], answer.time[rows]), rel=1e-6)


def test_without_details_there_are_only_times_and_statuses():
    x = np.zeros((1, 6, 3))
    for query, width in ((vertex_face, 4), (edge_edge, 4), (vertex_edge, 3), (triangle_triangle, 6)):
        answer = query(x[:, :width].copy(), x[:, :width].copy(), details=False, device="cpu")
        assert answer.status[0] == Status.START
        assert answer.normal is answer.weights is answer.kind is answer.point_a is answer.point_b is None
