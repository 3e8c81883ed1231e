"""Each formula of the course on its own (course on 3D collision detection, chapter 6.X4)."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from types import FunctionType, SimpleNamespace

import numpy as np
import pytest
import sympy
import warp as wp

from tangere.published.course import Reading, positions_at
from tangere.published.course.companion import real_roots
from tangere.published.course.feature_pairs import collinear_times
from tangere.published.course.inside import barycentric, inside_segment, line_line, plane_from_base, plane_from_points
from tangere.published.course.polynomials import coplanarity, normal_polynomial, quadratic_roots
from tangere.published.course.reading import ReadingValues
from tangere.published.course.triangle_tests import TESTS, VERTEX_EDGE_PAIRS, choose_vertices
from tangere.query.contacts import Kind
from tangere.runtime import SOUND

wp.set_module_options(SOUND)
EPSILON = 2.0**-52


@wp.kernel
def _cubics(x0: wp.array2d[wp.vec3d], x1: wp.array2d[wp.vec3d], p: wp.array[wp.vec4d]):
    i = wp.tid()
    v0 = x1[i, 0] - x0[i, 0]
    v1 = x1[i, 1] - x0[i, 1]
    v2 = x1[i, 2] - x0[i, 2]
    v3 = x1[i, 3] - x0[i, 3]
    r0 = x0[i, 0]
    p[i] = coplanarity(x0[i, 1] - r0, x0[i, 2] - r0, x0[i, 3] - r0, v1 - v0, v2 - v0, v3 - v0)


@wp.kernel
def _roots(p: wp.array[wp.vec4d], roots: wp.array[wp.vec3d]):
    i = wp.tid()
    roots[i] = real_roots(p[i], wp.float64(1.0e-12))


@wp.kernel
def _quadratics(p: wp.array[wp.vec3d], roots: wp.array[wp.vec2d]):
    i = wp.tid()
    roots[i] = quadratic_roots(p[i][0], p[i][1], p[i][2])


@wp.kernel
def _planes(x: wp.array2d[wp.vec3d], u: wp.array[wp.vec2d], out: wp.array2d[wp.vec3d]):
    i = wp.tid()
    out[i, 0] = plane_from_points(x[i, 0], x[i, 1], x[i, 2], u[i])
    out[i, 1] = plane_from_base(x[i, 0], x[i, 1], x[i, 2], u[i])


@wp.kernel
def _barycentric(x: wp.array2d[wp.vec3d], u: wp.array[wp.vec2d]):
    i = wp.tid()
    u[i] = barycentric(x[i, 0], x[i, 1], x[i, 2], x[i, 3])


@wp.kernel
def _line_line(x: wp.array2d[wp.vec3d], u: wp.array[wp.vec2d]):
    i = wp.tid()
    u[i] = line_line(x[i, 0], x[i, 1], x[i, 2], x[i, 3])


@wp.kernel
def _inside_segment(x: wp.array2d[wp.vec3d], inside: wp.array[wp.bool]):
    i = wp.tid()
    inside[i] = inside_segment(x[i, 0], x[i, 1], x[i, 2], wp.float64(0.0))


@wp.kernel
def _collinear(x0: wp.array2d[wp.vec3d], x1: wp.array2d[wp.vec3d], reading: ReadingValues, times: wp.array[wp.vec2d]):
    i = wp.tid()
    r01 = x0[i, 1] - x0[i, 0]
    r02 = x0[i, 2] - x0[i, 0]
    v01 = x1[i, 1] - x1[i, 0] - r01
    v02 = x1[i, 2] - x1[i, 0] - r02
    times[i] = collinear_times(normal_polynomial(r01, r02, v01, v02), reading)


def run(kernel, out, *arrays, device="cpu"):
    """Launch a test kernel over the first axis of its NumPy arrays; points become vectors."""
    given = [a if isinstance(a, ReadingValues.cls) else vectors(a, device) for a in arrays]
    result = wp.empty((len(arrays[0]), *out[1:]), dtype=out[0], device=device)
    wp.launch(kernel, len(arrays[0]), given, [result], device=device)
    return result.numpy()


def vectors(a, device):
    a = np.ascontiguousarray(a, dtype=float)
    return wp.array(a, dtype={2: wp.vec2d, 3: wp.vec3d, 4: wp.vec4d}[a.shape[-1]], device=device)


def exact(points):
    return [[Fraction(float(c)) for c in p] for p in points]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def minus(a, b):
    return [x - y for x, y in zip(a, b, strict=True)]


# --- Positions and the table of tests -------------------------------------------------------------------------------


@pytest.mark.feature("F-T-1")
def test_the_six_positions_at_the_time_of_contact_are_start_plus_velocity_times_time(rng, device):
    x0, x1 = rng.normal(size=(2, 200, 6, 3)) * 10.0 ** rng.integers(-6, 7, (200, 1, 1))
    time = rng.uniform(0, 1, 200)
    wanted = wp.array(time, dtype=wp.float64, device=device)
    found = positions_at(vectors(x0, device), vectors(x1, device), wanted).numpy()
    for i in range(200):
        t = Fraction(time[i])
        for r, s, p in zip(x0[i].ravel(), x1[i].ravel(), found[i].ravel(), strict=True):
            truth = Fraction(r) + (Fraction(s) - Fraction(r)) * t
            assert abs(Fraction(p) - truth) <= Fraction(1e-15) * max(abs(Fraction(r)), abs(Fraction(s)))


@pytest.mark.feature("F-T-2")
def test_the_table_has_each_choice_of_four_vertices_once_six_faces_and_nine_edges():
    assert {tuple(sorted(vertices)) for _, vertices in TESTS} == set(combinations(range(6), 4))
    assert len(TESTS) == 15
    for kind, (a, b, c, d) in TESTS:
        first = [{0, 1, 2} >= {v} for v in (a, b, c, d)]
        if kind == Kind.VERTEX_FACE:
            assert first in ([True, False, False, False], [False, True, True, True])
        else:
            assert first == [True, True, False, False]
    assert [kind for kind, _ in TESTS] == [Kind.VERTEX_FACE] * 6 + [Kind.EDGE_EDGE] * 9


def test_the_vertex_edge_pairs_are_every_vertex_with_every_edge_of_the_other_triangle():
    edges = [*combinations(range(3), 2), *combinations(range(3, 6), 2)]
    assert set(VERTEX_EDGE_PAIRS) == {(v, *e) for v in range(6) for e in edges if (v < 3) != (e[0] < 3)}
    assert len(VERTEX_EDGE_PAIRS) == 18


def test_choosing_vertices_follows_the_table(rng, device):
    x = rng.normal(size=(7, 6, 3))
    tests = tuple(vertices for _, vertices in TESTS)
    chosen = choose_vertices(vectors(x, device), tests).numpy()
    assert np.array_equal(chosen, x[:, tests].reshape(-1, 4, 3))


# --- T1, T2: the code itself run on symbols --------------------------------------------------------------------------


def symbolic(function: wp.Function, **more):
    """The Python source of a Warp function, with the few Warp operations it uses acting on sympy matrices."""
    operations = SimpleNamespace(
        cross=lambda a, b: a.cross(b),
        matrix_from_rows=lambda *rows: sympy.Matrix([list(row) for row in rows]),
        vec4d=lambda *c: c,
    )
    return FunctionType(function.func.__code__, {"wp": operations, **more})


T = sympy.Symbol("t")
R = [sympy.Matrix(sympy.symbols(f"r{k}:3")) for k in "abcd"]
V = [sympy.Matrix(sympy.symbols(f"v{k}:3")) for k in "abcd"]
P = [r + v * T for r, v in zip(R, V, strict=True)]
EDGES = [R[1] - R[0], R[2] - R[0], R[3] - R[0]]
RELATIVE = [V[1] - V[0], V[2] - V[0], V[3] - V[0]]


@pytest.mark.feature("F-T-3")
def test_the_normal_polynomial_is_the_cross_product_of_the_moving_edges():
    a, b, c = (row.T for row in map(symbolic(normal_polynomial)(*EDGES[:2], *RELATIVE[:2]).row, range(3)))
    normal = (P[1] - P[0]).cross(P[2] - P[0])
    assert (normal - (a * T**2 + b * T + c)).expand() == sympy.zeros(3, 1)


@pytest.mark.feature("F-T-4")
def test_the_cubic_is_the_volume_of_the_four_moving_points():
    cubic = symbolic(coplanarity, normal_polynomial=symbolic(normal_polynomial))
    a, b, c, d = cubic(*EDGES, *RELATIVE)
    volume = sympy.Matrix.hstack(P[1] - P[0], P[2] - P[0], P[3] - P[0]).det()
    assert sympy.expand(volume - (a * T**3 + b * T**2 + c * T + d)) == 0


@pytest.mark.feature("F-T-4")
def test_pure_translation_makes_all_fifteen_cubics_linear(rng, device):
    x0 = rng.integers(-100, 101, (200, 6, 3)).astype(float)
    moves = rng.integers(-100, 101, (200, 2, 3)).astype(float)
    x1 = x0 + np.repeat(moves, 3, axis=1)
    tests = [list(vertices) for _, vertices in TESTS]
    p = run(_cubics, (wp.vec4d,), *(x[:, tests].reshape(-1, 4, 3) for x in (x0, x1)), device=device)
    assert np.all(p[:, :2] == 0)
    assert np.any(p[:, 2] != 0)


@pytest.mark.feature("F-T-4")
def test_an_edge_that_translates_makes_the_edge_edge_cubic_quadratic(rng):
    x0, x1 = rng.integers(-100, 101, (2, 200, 4, 3)).astype(float)
    x1[:, 1] = x1[:, 0] + x0[:, 1] - x0[:, 0]
    p = run(_cubics, (wp.vec4d,), x0, x1)
    assert np.all(p[:, 0] == 0)
    assert np.any(p[:, 1] != 0)


# --- Roots ----------------------------------------------------------------------------------------------------------


@pytest.mark.feature("F-T-5")
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("roots", [[], [0.25], [-3.0], [0.25, 0.75], [0.125, 0.5, 0.75], [0.0, 0.5], [0.0, 0.0, 0.5]])
def test_companion_roots_are_the_roots_at_every_scale_and_degree(roots, size, device):
    polynomial = np.poly(roots) if roots else np.array([1.0, 0.0, 1.0])
    p = np.concatenate([np.zeros(4 - len(polynomial)), polynomial])[None] * size**3
    (found,) = run(_roots, (wp.vec3d,), p, device=device)
    assert found[np.isfinite(found)] == pytest.approx(roots, abs=1e-14)


@pytest.mark.feature("F-T-5")
def test_companion_roots_are_those_of_numpy(rng, device):
    p = rng.normal(size=(2000, 4)) * 10.0 ** rng.uniform(-8, 0, (2000, 4))
    p[:50] = [1, 0, 0, -1]  # needs an exceptional shift
    p[50:100, 0] = 1e-40  # a leading coefficient so small that the method itself has few digits left
    for found, coefficients in zip(run(_roots, (wp.vec3d,), p, device=device), p, strict=True):
        expected = sorted(z.real for z in np.roots(coefficients) if abs(z.imag) <= 1e-12 * max(1, abs(z)))
        assert found[np.isfinite(found)] == pytest.approx(expected, rel=1e-5 if coefficients[0] == 1e-40 else 1e-9)


@pytest.mark.feature("F-T-5")
def test_exact_double_roots_are_found_by_the_closed_quadratic_even_when_rounding_makes_them_complex():
    p = np.array([[1, -1, 0.25], [1, -1, 0.25 * (1 + 1e-13)], [1, -1, 0.25 * (1 + 1e-9)], [0, 2, -1], [0, 0, 0]])
    roots = run(_quadratics, (wp.vec2d,), p)
    assert roots[:2] == pytest.approx(0.5, abs=1e-12)
    assert np.isinf(roots[2]).all()
    assert np.array_equal(roots[3], [0.5, np.inf])
    assert np.isinf(roots[4]).all()


# --- T4 to T6, T10: inside ------------------------------------------------------------------------------------------


@pytest.mark.feature("F-T-6")
def test_both_forms_of_the_plane_agree_and_the_printed_one_does_not(rng, device):
    x, u = rng.normal(size=(500, 3, 3)), rng.normal(size=(500, 2))
    forms = run(_planes, (wp.vec3d, 2), x, u, device=device)
    assert forms[:, 0] == pytest.approx(forms[:, 1], abs=1e-13)
    r0, r1, r2 = x.transpose(1, 0, 2)
    a, b = u.T[:, :, None]
    printed = r0 * (1 - a - b) + a * (r1 - r0) + b * (r2 - r0)
    assert printed - forms[:, 1] == pytest.approx(-(a + b) * r0, abs=1e-13)


@pytest.mark.feature("F-T-7")
@pytest.mark.parametrize("thinness", [1.0, 1e-3, 1e-6])
def test_barycentric_coordinates_are_exact_to_the_condition_of_the_triangle(thinness, rng, device):
    x = rng.normal(size=(300, 4, 3))  # point, r0, r1, r2
    x[:, 3] = x[:, 1] + rng.uniform(0.5, 2, (300, 1)) * (x[:, 2] - x[:, 1]) + thinness * rng.normal(size=(300, 3))
    inside = rng.dirichlet([1, 1, 1], 300)
    x[:, 0] = np.einsum("nk,nkd->nd", inside, x[:, 1:])
    found = run(_barycentric, (wp.vec2d,), x, device=device)
    for points, u in zip(x, found, strict=True):
        r, r0, r1, r2 = exact(points)
        e1, e2, w = minus(r1, r0), minus(r2, r0), minus(r, r0)
        d11, d12, d22, w1, w2 = dot(e1, e1), dot(e1, e2), dot(e2, e2), dot(w, e1), dot(w, e2)
        determinant = d11 * d22 - d12 * d12
        condition = float(d11 * d22 / determinant) * (1 + float(dot(w, w) / min(d11, d22)) ** 0.5)
        truth = [float((w1 * d22 - w2 * d12) / determinant), float((w2 * d11 - w1 * d12) / determinant)]
        assert u == pytest.approx(truth, abs=32 * EPSILON * condition)


@pytest.mark.feature("F-T-9")
@pytest.mark.parametrize("angle", [1.0, 1e-3, 1e-6])
def test_lines_meet_where_exact_arithmetic_says(angle, rng, device):
    x = rng.normal(size=(300, 4, 3))
    x[:, 3] = x[:, 2] + rng.uniform(0.5, 2, (300, 1)) * (x[:, 1] - x[:, 0]) + angle * rng.normal(size=(300, 3))
    meeting = rng.uniform(-0.5, 1.5, (2, 300, 1))
    x[:, 2:] += (x[:, 0] + meeting[0] * (x[:, 1] - x[:, 0]) - x[:, 2] - meeting[1] * (x[:, 3] - x[:, 2]))[:, None]
    found = run(_line_line, (wp.vec2d,), x, device=device)
    for points, u in zip(x, found, strict=True):
        r0, r1, r2, r3 = exact(points)
        a, b, d = minus(r1, r0), minus(r3, r2), minus(r2, r0)
        aa, ab, bb, ad, bd = dot(a, a), dot(a, b), dot(b, b), dot(a, d), dot(b, d)
        determinant = aa * bb - ab * ab  # of the normal equations of the two nearest points
        condition = float(aa * bb / determinant) ** 0.5 * (1 + float(dot(d, d) / min(aa, bb)) ** 0.5)
        truth = [float((ad * bb - bd * ab) / determinant), float((ad * ab - bd * aa) / determinant)]
        assert u == pytest.approx(truth, abs=64 * EPSILON * condition)


@pytest.mark.feature("F-T-9")
def test_parallel_lines_have_no_meeting_point():
    assert np.isnan(run(_line_line, (wp.vec2d,), np.array([[[0, 0, 0], [1, 0, 0], [0, 1, 0], [2, 1, 0]]]))).all()


def test_a_point_of_the_line_is_inside_the_segment_between_its_ends_and_every_point_if_they_coincide(rng):
    ends = rng.integers(-50, 51, (400, 2, 3)).astype(float)
    parameter = rng.integers(-8, 13, 400) / 4
    point = ends[:, 0] + parameter[:, None] * (ends[:, 1] - ends[:, 0])
    x = np.concatenate([point[:, None], ends], axis=1)
    assert np.array_equal(run(_inside_segment, (wp.bool,), x), (parameter >= 0) & (parameter <= 1))
    x[:, 2] = x[:, 1]
    assert run(_inside_segment, (wp.bool,), x).all()


# --- T8, T9: collinearity -------------------------------------------------------------------------------------------


@pytest.mark.feature("F-T-11")
@pytest.mark.parametrize("axes", [[0, 1], [1, 2], [2, 0], None])
def test_a_time_of_collinearity_in_an_axis_plane_or_a_tilted_one_is_found(axes, rng):
    time = rng.integers(1, 16, 500) / 16
    ends = rng.integers(-32, 33, (500, 2, 2)) / 8.0
    vertex = ends[:, 0] + rng.integers(-8, 17, (500, 1)) / 8 * (ends[:, 1] - ends[:, 0])
    now, velocity = np.concatenate([vertex[:, None], ends], axis=1), rng.integers(-32, 33, (500, 3, 2)) / 8.0
    # the tilted plane is spanned by small whole vectors, so that the three stay collinear exactly
    frame = np.array([[1.0, 2, 3], [3, -1, 2]]) if axes is None else np.eye(3)[axes]
    x0 = (now - velocity * time[:, None, None]) @ frame
    x1 = (now + velocity * (1 - time[:, None, None])) @ frame
    times = run(_collinear, (wp.vec2d,), x0, x1, Reading().values())
    simple = np.abs(times - time[:, None]).min(axis=1) < 1e-6
    always = np.isinf(times).all(axis=1)  # coincident points: collinear at all times, which the course leaves open
    assert np.count_nonzero(always) < 10
    assert np.all(simple | always)
    if axes is not None:
        assert np.isinf(run(_collinear, (wp.vec2d,), x0, x1, Reading(vanishing="none").values())).all()


def test_three_points_without_a_common_time_have_none(rng):
    x0, x1 = rng.normal(size=(2, 500, 3, 3))
    assert np.isinf(run(_collinear, (wp.vec2d,), x0, x1, Reading().values())).all()
