"""Forces of bubbles and of edges against the formulas and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from tangere.cells.generate import quad_grid
from tangere.crowd import Bubbles, Simulation, box
from tangere.crowd.steering.bubbles import bubble_push, edge_field, segment_field
from tangere.runtime import InputError, choose_device, launch

R, K, Z = 1.5, 14.0, 2.0


@wp.kernel(enable_backward=False)
def _bubbles(
    first: int,
    d: wp.array[wp.float64],
    rate: wp.array[wp.float64],
    p: wp.vec3d,
    careful: int,
    out: wp.array[wp.float64],
):
    i = first + wp.tid()
    out[i] = bubble_push(d[i], rate[i], p[0], p[1], p[2], careful == 1)


@wp.kernel(enable_backward=False)
def _fields(first: int, x: wp.array2d[wp.vec3d], true_distance: int, out: wp.array2d[wp.float64]):
    i = first + wp.tid()
    up = wp.vec3d(wp.float64(0.0), wp.float64(0.0), wp.float64(1.0))
    f = edge_field(x[i, 0], x[i, 1], x[i, 2], x[i, 3], x[i, 4], x[i, 5], up)
    if true_distance == 1:
        f = segment_field(x[i, 0], x[i, 1], x[i, 2], x[i, 3], x[i, 4], x[i, 5], up)
    out[i, 0] = f.distance
    out[i, 1] = f.rate
    for k in range(3):
        out[i, 2 + k] = f.away[k]


def pushes(d, rate, careful):
    device = choose_device("cpu")
    d, rate = (wp.array(np.asarray(x, float), dtype=wp.float64, device=device) for x in (d, rate))
    out = wp.zeros(len(d), dtype=wp.float64, device=device)
    launch(_bubbles, len(d), [d, rate, wp.vec3d(K, Z, R), int(careful)], [out], device=device)
    return out.numpy()


def fields(rows, true_distance=False):
    """Rows (n, 6, 3): x, v, a, b and the velocities of a and b."""
    device = choose_device("cpu")
    x = wp.array(np.ascontiguousarray(rows), dtype=wp.vec3d, device=device)
    out = wp.zeros((len(rows), 5), dtype=wp.float64, device=device)
    launch(_fields, len(rows), [x, int(true_distance)], [out], device=device)
    return out.numpy()


@pytest.mark.feature("F-P-50")
def test_a_bubble_pushes_by_the_printed_formula_within_its_range_only(rng):
    d, rate = rng.uniform(0, 2 * R, 1000), rng.normal(size=1000)
    expected = np.where(d < R, K * (R - d) ** 2 - Z * rate, 0.0)
    np.testing.assert_allclose(pushes(d, rate, careful=False), expected, rtol=1e-12, atol=1e-12)
    assert pushes([R, np.nextafter(R, 9)], [-1.0, -1.0], careful=False).tolist() == [0.0, 0.0]


def test_a_careful_bubble_never_pulls_and_is_continuous_at_its_rim(rng):
    d, rate = rng.uniform(0, R, 1000), rng.uniform(-5, 20, 1000)
    assert pushes(d, rate, careful=True).min() >= 0
    assert abs(pushes([R - 1e-9], [-5.0], careful=True)[0]) < 1e-7


@pytest.mark.parametrize("true_distance", [False, True])
def test_the_gradient_and_the_rate_of_an_edge_field_are_those_of_its_distance(true_distance, rng):
    rows = rng.normal(size=(500, 6, 3))
    rows[:, :, 2] = 0.0
    found = fields(rows, true_distance)
    step = 1e-6
    gradient = []
    for k in range(2):
        moved = [rows.copy(), rows.copy()]
        moved[0][:, 0, k] += step
        moved[1][:, 0, k] -= step
        gradient.append((fields(moved[0], true_distance)[:, 0] - fields(moved[1], true_distance)[:, 0]) / (2 * step))
    gradient = np.stack(gradient, axis=1)
    size = np.linalg.norm(gradient, axis=1)
    clear = size > 0.05  # beside the middle of the edge the elliptic field is steep, on it there is no gradient
    assert clear.sum() > 300
    np.testing.assert_allclose(found[clear, 2:4], gradient[clear] / size[clear, None], atol=1e-5)
    later = rows.copy()
    later[:, 0] += step * rows[:, 1]
    later[:, 2] += step * rows[:, 4]
    later[:, 3] += step * rows[:, 5]
    rate = (fields(later, true_distance)[:, 0] - found[:, 0]) / step
    steady = np.abs(rate - found[:, 1]) < 1e-3 if true_distance else np.ones(len(rows), bool)
    assert steady.mean() > 0.98  # the foot of a true distance may pass a corner
    np.testing.assert_allclose(found[steady, 1], rate[steady], atol=1e-3)


def test_on_the_edge_itself_the_push_goes_aside():
    row = np.zeros((1, 6, 3))
    row[0, 2], row[0, 3], row[0, 0] = (0, 0, 0), (2, 0, 0), (1, 0, 0)
    found = fields(row)[0]
    assert found[0] == 0
    np.testing.assert_allclose(np.abs(found[2:]), [0, 1, 0], atol=1e-12)
    row[0, 3] = 0.0  # an edge without length pushes like a point
    np.testing.assert_allclose(fields(row)[0][[0, 2, 3, 4]], [1, 1, 0, 0], atol=1e-12)


def test_ellipses_reach_farther_than_the_range_beside_the_middle_of_an_edge():
    length = 4.0
    half_width = np.sqrt(R * R + R * length)
    row = np.zeros((1, 6, 3))
    row[0, 2], row[0, 3], row[0, 0] = (0, 0, 0), (length, 0, 0), (length / 2, half_width, 0)
    assert fields(row)[0, 0] == pytest.approx(R, rel=1e-12)


def pushed(cell, **options):
    """How fast a point three metres beside a box of 12 m gets in a step, in cells of that size."""
    map = quad_grid(round(36 / cell), round(36 / cell), size=cell, device="cpu")
    simulation = Simulation(map, behaviour=Bubbles(noise=0.0), adaptive=None, anticipation=0.0, **options)
    simulation.add_points([[18.0, 22.0]])
    simulation.add_bodies(box(12.0, 2.0), [[18.0, 18.0]], headings=[[1, 0]])
    simulation.step()
    return float(np.linalg.norm(simulation.velocities[0]))


def test_with_whole_edges_the_push_of_an_edge_does_not_depend_on_cells():
    reach = np.sqrt(R**2 + R * 12.0)
    assert Bubbles().edge_reach(12.0) == pytest.approx(reach)
    assert Bubbles(field="distance").edge_reach(12.0) == R
    assert Bubbles().edge_reach(4.0, ahead=True) == pytest.approx(np.sqrt(2.25**2 + 2.25 * 4.0))
    found = [pushed(cell, whole_edges=True) for cell in (12.0, 6.0, 4.5)]
    d = np.hypot(6.0, 3.0) - 6.0
    assert found == pytest.approx([K * (R - d) ** 2 / 30.0] * 3)
    for cell in (4.0, 1.5):
        with pytest.raises(InputError, match=r"reach of the body's edges, 4\.5 m"):
            pushed(cell, whole_edges=True)
    assert pushed(1.5) == 0.0  # as far as the ring shows


def test_with_whole_edges_cells_do_not_get_finer_than_edges_and_panic_reach():
    simulation = Simulation(quad_grid(4, 4, size=12.0, device="cpu"), whole_edges=True)
    assert simulation.levels == 3
    simulation.add_bodies(box(4.0, 2.0), [[20.0, 20.0]], headings=[[1, 0]], speed=2.0)
    # 2 m ahead of a body 2 m wide makes panic as far as 3.2 m beside.
    assert simulation.levels == 1
