"""Batches of primitive queries: any size, any number of threads, any array, the same bits; bad input is refused."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from oracles import flint_ccd
from oracles.families.feature_queries import FAMILIES
from tangere.query.contacts import Kind, Status
from tangere.query.first_contact import (
    FirstContacts,
    edge_edge,
    triangle_triangle,
    vertex_edge,
    vertex_face,
    vertex_vertex,
)
from tangere.runtime import InputError

WIDTH = {vertex_face: 4, edge_edge: 4, vertex_edge: 3, vertex_vertex: 2, triangle_triangle: 6}
each_query = pytest.mark.parametrize("query", WIDTH, ids=lambda query: query.__name__)


def batch(query, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Plain and degenerate queries mixed, so that every stage of the solver has work."""
    if query in (vertex_face, edge_edge):
        kind = Kind.VERTEX_FACE if query is vertex_face else Kind.EDGE_EDGE
        names = ("random_half_colliding", "tiny_integer_grid", "grazing_offset", "coplanar_boundary_jittered")
        share = -(-n // len(names))
        points = np.concatenate([FAMILIES[name](kind, share, rng).points for name in names])
        points = rng.permutation(points)[:n]
        return points[:, :4].copy(), points[:, 4:].copy()
    x = rng.integers(-8, 9, (2, n, WIDTH[query], 3)) / 8.0
    x[..., 2] *= query is triangle_triangle  # a vertex and an edge, or two vertices, meet within a plane at best
    return x[0], x[1]


def assert_same(a: FirstContacts, b: FirstContacts) -> None:
    for name, column in vars(a).items():
        other = getattr(b, name)
        assert (column is None) == (other is None)
        if column is not None:
            np.testing.assert_array_equal(column, other, err_msg=name)
            assert column.dtype == other.dtype


@each_query
@pytest.mark.parametrize("mode", ["sound", "exact"])
def test_an_empty_batch_gives_an_empty_answer(query, mode):
    nothing = np.zeros((0, WIDTH[query], 3))
    answer = query(nothing, nothing, mode=mode, device="cpu", details=False)
    assert len(answer) == 0
    assert answer.hit.shape == (0,)
    assert "none" in repr(answer)


@pytest.mark.feature("F-T-21")
@each_query
@pytest.mark.parametrize("options", [{}, {"mode": "exact"}, {"separation": 0.01}], ids=["sound", "exact", "separated"])
def test_one_by_one_gives_the_bits_of_the_batch(query, options, effort, rng):
    n = effort(100, least=100)  # small batches have a kernel of their own
    x0, x1 = batch(query, n, rng)
    together = query(x0, x1, device="cpu", **options)
    assert 0 < np.count_nonzero(together.hit) < n
    for row in range(n):
        alone = query(x0[row : row + 1], x1[row : row + 1], device="cpu", **options)
        assert_same(alone, rows_of(together, slice(row, row + 1)))


def rows_of(answer: FirstContacts, rows) -> FirstContacts:
    return FirstContacts(**{name: column[rows] for name, column in vars(answer).items() if column is not None})


@pytest.mark.long_in_debug
@pytest.mark.parametrize("query", [vertex_face, edge_edge], ids=lambda query: query.__name__)
@pytest.mark.parametrize("options", [{}, {"separation": 0.01}], ids=["sound", "separated"])
def test_a_hundred_thousand_queries_have_the_same_bits_on_1_2_and_7_threads(query, options, effort, rng):
    x0, x1 = batch(query, effort(100_000), rng)
    single = query(x0, x1, threads=1, device="cpu", **options)
    for threads in (2, 7):
        assert_same(single, query(x0, x1, threads=threads, device="cpu", **options))


def test_triangles_have_the_same_bits_on_1_2_and_7_threads(effort, rng):
    x0, x1 = batch(triangle_triangle, effort(3000), rng)
    single = triangle_triangle(x0, x1, threads=1, device="cpu")
    for threads in (2, 7):
        assert_same(single, triangle_triangle(x0, x1, threads=threads, device="cpu"))


@pytest.mark.parametrize("query", [vertex_face, edge_edge], ids=lambda query: query.__name__)
def test_the_order_of_a_batch_does_not_matter(query, effort, rng):
    x0, x1 = batch(query, effort(3000), rng)
    order = rng.permutation(len(x0))
    assert_same(query(x0[order], x1[order], device="cpu"), rows_of(query(x0, x1, device="cpu"), order))


# --- What arrays may be given -----------------------------------------------------------------------------------------


def frozen(x: np.ndarray) -> np.ndarray:
    x = x.copy()
    x.flags.writeable = False
    return x


@each_query
@pytest.mark.parametrize(
    "given",
    [
        np.ndarray.tolist,
        np.asfortranarray,
        lambda x: np.repeat(x, 2, axis=0)[::2],
        lambda x: np.repeat(x, 2, axis=2)[:, :, ::2],
        lambda x: np.ascontiguousarray(x[::-1])[::-1],
        frozen,
        lambda x: x.astype(">f8"),
        lambda x: x.astype(np.float32),
    ],
    ids=["lists", "fortran", "sliced", "strided", "reversed", "read-only", "big-endian", "float32"],
)
def test_any_layout_of_the_same_numbers_gives_the_same_answer_and_is_left_alone(query, given, effort, rng):
    x0, x1 = (x.astype(np.float32).astype(np.float64) for x in batch(query, effort(50), rng))
    before = x0.copy(), x1.copy()
    assert_same(query(given(x0), given(x1), device="cpu"), query(x0, x1, device="cpu"))
    np.testing.assert_array_equal((x0, x1), before)


@each_query
@pytest.mark.parametrize("separation", [0.0, 0.01])
def test_a_single_query_may_be_made_with_a_new_axis(query, separation, rng):
    """NumPy gives such an axis the stride 0."""
    x0, x1 = (x[3] for x in batch(query, 8, rng))
    copied = query(np.array([x0]), np.array([x1]), separation=separation, device="cpu")
    assert_same(query(x0[None], x1[None], separation=separation, device="cpu"), copied)


@each_query
def test_whole_numbers_are_taken_as_positions(query, rng):
    x0, x1 = rng.integers(-3, 4, (2, 50, WIDTH[query], 3))
    assert_same(query(x0, x1, device="cpu"), query(x0.astype(float), x1.astype(float), device="cpu"))


@each_query
@pytest.mark.parametrize("as_vectors", [True, False])
def test_warp_arrays_come_back_as_warp_arrays(query, as_vectors, effort, rng):
    x0, x1 = batch(query, effort(50), rng)
    kind = {"dtype": wp.vec3d} if as_vectors else {"dtype": wp.float64}
    answer = query(wp.array(x0, device="cpu", **kind), wp.array(x1, device="cpu", **kind))
    expected = query(x0, x1, device="cpu")
    for name, column in vars(expected).items():
        if column is not None:
            assert isinstance(getattr(answer, name), wp.array), name
            np.testing.assert_array_equal(getattr(answer, name).numpy(), column, err_msg=name)
    np.testing.assert_array_equal(answer.hit, expected.hit)


def test_an_answer_says_what_it_holds():
    x0 = np.array([[[0.2, 0.2, 1.0], [0, 0, 0], [1, 0, 0], [0, 1, 0]]] * 3)
    x1 = x0.copy()
    x1[1, 0, 2], x0[2, 0, 2] = -1.0, 0.0
    answer = vertex_face(x0, x1, device="cpu")
    assert answer.status.tolist() == [Status.FREE, Status.CONTACT, Status.START]
    assert repr(answer) == "FirstContacts(3 queries: 1 free, 1 contact, 1 start)"


# --- What is refused --------------------------------------------------------------------------------------------------


@each_query
def test_wrong_shapes_are_refused_by_name(query):
    width = WIDTH[query]
    good = np.zeros((2, width, 3))
    for bad in (np.zeros((2, width + 1, 3)), np.zeros((2, width, 2)), np.zeros((width, 3)), np.zeros(0), 3.0):
        with pytest.raises(InputError, match=rf"x0 must have shape \(n, {width}, 3\)"):
            query(bad, good, device="cpu")
        with pytest.raises(InputError, match="x1 must have shape"):
            query(good, bad, device="cpu")
    with pytest.raises(InputError, match="x0 has 2 queries and x1 has 1"):
        query(good, good[:1], device="cpu")
    with pytest.raises(InputError, match="x0 is not an array of numbers"):
        query([["here"]], good, device="cpu")
    with pytest.raises(InputError, match="x1 must be real numbers, not complex128"):
        query(good, good + 1j, device="cpu")


@pytest.mark.parametrize("query", [vertex_face, edge_edge, vertex_edge, vertex_vertex], ids=lambda q: q.__name__)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e101, -1e101])
@pytest.mark.parametrize("options", [{}, {"mode": "exact"}, {"separation": 0.1}], ids=["sound", "exact", "separated"])
@pytest.mark.parametrize("large", [False, True], ids=["small batch", "large batch"])
def test_a_coordinate_that_cannot_be_computed_with_is_refused_by_the_number_of_its_query(
    query, bad, options, large, rng
):
    n = 200 if large else 12
    x0, x1 = batch(query, n, rng)
    for x, row in ((x0, 5), (x1, n - 1)):
        spoiled = x.copy()
        spoiled[row, -1, 1] = bad
        arguments = (spoiled, x1) if x is x0 else (x0, spoiled)
        with pytest.raises(InputError, match=rf"query {row} has a coordinate"):
            query(*arguments, device="cpu", **options)


@each_query
@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"mode": "robust"}, "mode"),
        ({"mode": None}, "mode"),
        ({"separation": -1e-9}, "separation"),
        ({"separation": np.nan}, "separation"),
        ({"separation": np.inf}, "separation"),
        ({"separation": "wide"}, "separation"),
        ({"tolerance": -1.0}, "tolerance"),
        ({"tolerance": np.nan}, "tolerance"),
        ({"mode": "exact", "separation": 0.1}, "separation"),
        ({"threads": 0}, "threads"),
        ({"threads": 1.5}, "threads"),
        ({"device": "abacus"}, "device"),
    ],
    ids=str,
)
def test_options_without_meaning_are_refused_by_name(query, options, named):
    x = np.zeros((1, WIDTH[query], 3))
    with pytest.raises(InputError, match=named):
        query(x, x, **{"device": "cpu", **options})


@each_query
def test_lengths_may_be_numbers_of_any_library(query, rng):
    x0, x1 = batch(query, 20, rng)
    plain = query(x0, x1, separation=0.5, tolerance=1.0, device="cpu")
    assert_same(plain, query(x0, x1, separation=np.float32(0.5), tolerance=np.int64(1), device="cpu"))


def test_two_vertices_have_no_published_test():
    with pytest.raises(InputError, match="vertex-vertex"):
        vertex_vertex(np.zeros((1, 2, 3)), np.zeros((1, 2, 3)), mode="published", device="cpu")


# --- Vertex-edge and vertex-vertex ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["sound", "exact"])
def test_a_vertex_and_an_edge_meet_when_the_oracle_says_so(mode, effort, rng):
    x0, x1 = batch(vertex_edge, effort(300), rng)
    answer = vertex_edge(x0, x1, mode=mode, device="cpu")
    edges = np.concatenate([x[:, [0, 0, 1, 2]] for x in (x0, x1)], axis=1)
    oracle = [flint_ccd.decide(Kind.EDGE_EDGE, points) for points in edges]
    hit = np.array([contact.hit for contact in oracle])
    below = np.array([contact.time.enclosing_floats()[0] if contact.time else np.inf for contact in oracle])
    assert 0.1 < hit.mean() < 0.9
    np.testing.assert_array_equal(answer.hit, hit)
    assert np.all(answer.time <= below)
    assert answer.time[hit] == pytest.approx(below[hit], abs=1e-6 if mode == "sound" else 1e-15)
    assert np.all(np.isin(answer.kind[hit], [Kind.VERTEX_EDGE, Kind.VERTEX_VERTEX]))


def test_two_vertices_meet_where_their_difference_vanishes(effort, rng):
    n = effort(300)
    x0, x1, meeting = np.zeros((n, 2, 3)), np.zeros((n, 2, 3)), rng.integers(0, 17, (n, 1)) / 16
    x0[:], x1[:] = rng.integers(-8, 9, (2, n, 2, 3)) / 8.0
    aimed = rng.random(n) < 0.5
    start = rng.integers(-8, 9, (n, 3)) / 8.0
    x0[aimed, 1] = x0[aimed, 0] + (meeting * start)[aimed]
    x1[aimed, 1] = x1[aimed, 0] + ((meeting - 1) * start)[aimed]
    d0, d1 = x0[:, 0] - x0[:, 1], x1[:, 0] - x1[:, 1]
    meet = (np.cross(d0, d1) == 0).all(axis=1) & (np.einsum("nd,nd->n", d0, d1) <= 0)
    total = np.linalg.norm(d0, axis=1) + np.linalg.norm(d1, axis=1)
    time = np.divide(np.linalg.norm(d0, axis=1), total, out=np.zeros(n), where=total > 0)
    assert 0.2 < meet.mean() < 0.8
    for mode in ("sound", "exact"):
        answer = vertex_vertex(x0, x1, mode=mode, device="cpu")
        np.testing.assert_array_equal(answer.hit, meet)
        assert answer.time[meet] == pytest.approx(time[meet], abs=1e-12)
        assert np.all(answer.kind[meet] == Kind.VERTEX_VERTEX)
        assert np.abs(answer.point_a[meet] - answer.point_b[meet]).max() < 1e-12


def test_two_vertices_come_within_the_separation_at_the_root_of_a_quadratic(effort, rng):
    x0, x1 = rng.uniform(-1, 1, (2, effort(1000), 2, 3))
    separation = 0.5
    d, v = x0[:, 0] - x0[:, 1], (x1[:, 0] - x1[:, 1]) - (x0[:, 0] - x0[:, 1])
    a, b, c = (v * v).sum(axis=1), (d * v).sum(axis=1), (d * d).sum(axis=1) - separation**2
    inside = np.maximum(b * b - a * c, 0.0)
    first = np.where(c <= 0, 0.0, (-b - np.sqrt(inside)) / a)
    hit = (c <= 0) | ((b * b > a * c) & (first >= 0) & (first <= 1))
    answer = vertex_vertex(x0, x1, separation=separation, device="cpu")
    clear = (c <= 0) | (abs(b * b - a * c) > 1e-9) & (abs(first - 1) > 1e-9)
    np.testing.assert_array_equal(answer.hit[clear], hit[clear])
    rows = hit & clear
    assert 0.2 < rows.mean() < 0.8
    assert np.all(answer.time[rows] <= first[rows] + 1e-15)
    assert answer.time[rows] == pytest.approx(first[rows], abs=1e-6)
