"""Trees of eights, and what CPUs do eight at a time, against NumPy and bit by bit against one by one."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
import warp as wp

from oracles.distances import feature_distance
from tangere.broad_phase.triangles import EMPTY
from tangere.bvh.lbvh import code_below
from tangere.bvh.wide import FitFrame, WideBvh, compact_order
from tangere.query.contacts import Kind
from tangere.query.proximity import Detector, proximity
from tangere.query.proximity.cpu.details import fill_in_lanes
from tangere.query.proximity.cpu.lazy_aabbs import LazyItemBoxes
from tangere.query.proximity.details import ContactTable, fill_one_by_one
from tangere.runtime import launch, run_phases
from tangere.shape import generate
from tangere.shape.mesh import Mesh

COLUMNS = {"quads": wp.vec4i, "weights": wp.vec4d, "gap": wp.float64, "features": wp.vec2i, "kind": wp.uint8}


def ring(count: int) -> np.ndarray:
    """Points around a circle: every coordinate rises and falls, and is lowest or highest at both ends."""
    angle = np.linspace(0.0, 2.0 * np.pi, count)
    return np.stack([np.cos(angle), np.sin(angle), np.zeros(count)], axis=1)


POINTS = {
    "one": lambda rng: np.zeros((1, 3)),
    "eight": lambda rng: rng.normal(size=(8, 3)),
    "nine": lambda rng: rng.normal(size=(9, 3)),
    "all in one place": lambda rng: np.ones((1000, 3)),
    "on a line, in order": lambda rng: np.arange(3000.0)[:, None] * [1.0, 0.0, 0.0],
    "around a ring": lambda rng: ring(200_000),
    "on a grid": lambda rng: rng.integers(0, 4, (2000, 3)).astype(float),
    "anywhere": lambda rng: rng.normal(size=(5003, 3)) * [5.0, 1.0, 1e-3],
    "very small": lambda rng: rng.normal(size=(500, 3)) * 1e-60,
    "far away": lambda rng: rng.normal(size=(500, 3)) + 1e6,
}


@pytest.mark.parametrize("name", POINTS)
def test_an_order_cuts_every_cell_in_two_along_its_longest_side(name, rng):
    points = POINTS[name](rng)
    order = compact_order(np.arange(len(points), dtype=np.int32)[:, None], points)
    assert np.array_equal(np.sort(order), np.arange(len(points)))
    placed = points[order]
    lower, room = placed.min(axis=0), 1e-6 * np.ptp(placed, axis=0).max()  # sides are measured in float32
    size = 8
    while size < len(points):
        for begin in range(0, len(points), 2 * size):
            one, other = placed[begin : begin + size] - lower, placed[begin + size : begin + 2 * size] - lower
            if len(other):
                sides = np.ptp(np.concatenate([one, other]), axis=0)
                longest = sides >= sides.max() - 2.0 * room
                assert (one.max(axis=0) <= other.min(axis=0) + room)[longest].any()
        size *= 2


def instant_of(points: np.ndarray, margin: float, origin: Sequence[float], scale: float) -> tuple[wp.array, wp.array]:
    """An instant with vertices at these points [m], which are the second of the arrays and must be kept."""
    where, instant = wp.array(points, dtype=wp.vec3d, device="cpu"), wp.zeros(1, dtype=FitFrame, device="cpu")
    instant.numpy()[0] = (where.ptr, margin, origin, scale)
    return instant, where


@wp.kernel
def codes_of(first: int, x: wp.array[wp.float64], codes: wp.array[int]):
    i = first + wp.tid()
    codes[i] = code_below(x[i])


def boxes_of(points: np.ndarray, margin: float, origin: Sequence[float], scale: float) -> np.ndarray:
    """(n, 6) the codes of the boxes of points, each made alone."""
    signed, middle = np.concatenate([points, -points], axis=1), np.concatenate([origin, np.negative(origin)])
    room = 16.0 * 2.0**-53 * (np.abs(signed) + np.abs(middle) + margin) + margin + 1e-320
    numbers = wp.array(((signed - middle - room) * scale).ravel(), dtype=wp.float64, device="cpu")
    codes = wp.empty(len(numbers), dtype=wp.int32, device="cpu")
    launch(codes_of, len(numbers), [numbers], [codes], device=wp.get_device("cpu"))
    return codes.numpy().reshape(-1, 6)


def value_of(codes: np.ndarray) -> np.ndarray:
    """The numbers that have these codes, as float64."""
    return np.sign(codes) * (2 * np.abs(codes)).astype(np.int32).view(np.float32).astype(float)


@pytest.mark.parametrize(
    ("size", "margin", "origin", "scale"),
    [
        (1.0, 0.01, (0.0, 0.0, 0.0), 1.0),
        (1e6, 0.0, (3e6, -1e6, 1e9), 2.0**-20),
        (1e-300, 1e-302, (0.0, 1e-300, 0.0), 2.0**990),
        (1e100, 1e80, (0.0, 0.0, -1e100), 1.0),
        (0.0, 0.0, (0.0, 0.0, 0.0), 1.0),
    ],
)
@pytest.mark.parametrize(("count", "width"), [(1, 3), (7, 2), (8, 1), (9, 3), (64, 1), (65, 2), (700, 3), (4097, 2)])
def test_every_box_of_a_tree_is_that_of_what_is_below_and_lanes_without_anything_are_empty(
    count, width, size, margin, origin, scale, rng
):
    points = size * rng.normal(size=(300, 3))
    instant, kept = instant_of(points, margin, origin, scale)
    order = rng.permutation(300).astype(np.int32)
    items = rng.integers(0, 300, (count, width)).astype(np.int32)
    tree = WideBvh.of(items, np.arange(count), order)
    boxes = tree.boxes()
    for launches in zip(boxes.fitting(instant), strict=True):
        run_phases([launches])
    lazy = LazyItemBoxes([(boxes, wp.array(kept.numpy()[order], dtype=wp.vec3d, device="cpu"))])
    step, groups, steps, *_ = lazy.marks(boxes, boxes)
    step.fill_(5)
    steps.fill_(5)
    groups.fill_(tree.groups)
    run_phases([lazy.fitting(instant)])
    expected = boxes_of(points, margin, origin, scale)[order][items].min(axis=1)
    for begin, end in np.stack([tree.levels.numpy()[:-1], tree.levels.numpy()[1:]], axis=1):
        lanes = boxes.rows.numpy()[begin:end].transpose(0, 2, 1).reshape(-1, 6)
        assert np.array_equal(lanes[: len(expected)], expected)
        assert (lanes[len(expected) :] == EMPTY).all()
        padded = np.concatenate([expected, np.full((-len(expected) % 8, 6), EMPTY)])
        expected = padded.reshape(-1, 8, 6).min(axis=1)
        if begin == 0:
            assert np.array_equal(boxes.clusters.numpy()[:, :6], expected)
    assert len(expected) == 1
    if size <= 1e6:  # beyond, codes stop at the largest number
        around = value_of(boxes.clusters.numpy()[0, :6])
        first = points[order][items[:8].ravel()]
        exact = [[Fraction(v) for v in end] for end in (first.min(axis=0).tolist(), first.max(axis=0).tolist())]
        grown, center = Fraction(margin), [Fraction(v) for v in origin]
        for k in range(3):
            assert Fraction(around[k]) <= (exact[0][k] - center[k] - grown) * Fraction(scale)
            assert Fraction(-around[3 + k]) >= (exact[1][k] - center[k] + grown) * Fraction(scale)


def quadruples(rng: np.random.Generator, count: int) -> np.ndarray:
    """Four points each: generic, on small integers (degenerate and parallel ones are common), slivers, parallel."""
    generic, slivers, parallel = rng.normal(size=(3, count, 4, 3))
    noise = 10.0 ** rng.uniform(-16, -1, (2, count, 1)) * rng.normal(size=(2, count, 3))
    slivers[:, 3] = slivers[:, 1] + (slivers[:, 2] - slivers[:, 1]) * rng.uniform(-1, 2, (count, 1)) + noise[0]
    parallel[:, 3] = parallel[:, 2] + (parallel[:, 1] - parallel[:, 0]) * rng.uniform(-2, 2, (count, 1)) + noise[1]
    whole = rng.integers(-2, 3, (count, 4, 3)).astype(float)
    return rng.permutation(np.concatenate([generic, slivers, parallel, whole, generic * [1.0, 1.0, 1e-7]]))


def described(kernel: wp.Kernel, dim: int, pair_keys: np.ndarray, points: np.ndarray, bodies: int) -> list[np.ndarray]:
    """The columns of contacts: quadruple i has vertex 4 i, face i, and edges 2 i and 2 i + 1."""
    count, first = len(points), 4 * np.arange(len(points))[:, None]
    faces, edges = first + [1, 2, 3], np.concatenate([first + [0, 1], first + [2, 3]], axis=1).reshape(-1, 2)
    ends = np.linspace(0, count, bodies + 1).astype(int)
    arrays = [np.stack([4 * ends, 2 * ends, ends]), faces, edges]
    bases, faces, edges = (wp.array(a.astype(np.int32), dtype=wp.int32, device="cpu") for a in arrays)
    table = ContactTable()
    table.number = wp.array([len(pair_keys)], dtype=wp.int64, device="cpu")
    table.pair_keys, table.bits = wp.array(pair_keys, dtype=wp.int64, device="cpu"), 20
    table.bases, table.faces, table.edges = bases, faces, edges
    table.positions = wp.array(points.reshape(-1, 3), dtype=wp.vec3d, device="cpu")
    for name, dtype in COLUMNS.items():
        setattr(table, name, wp.empty(len(pair_keys), dtype=dtype, device="cpu"))
    launch(kernel, dim, [table], device=wp.get_device("cpu"))
    return [getattr(table, name).numpy() for name in COLUMNS]


@pytest.mark.parametrize("bodies", [1, 3])
def test_contacts_described_by_eights_are_those_described_one_by_one_bit_by_bit(bodies, rng, effort):
    points = quadruples(rng, effort(4001))
    number = np.arange(len(points))
    one = np.concatenate([(2 << 40) | (4 * number << 20) | number, (4 << 40) | (2 * number << 20) | (2 * number + 1)])
    pair_keys = np.sort(one)
    found = described(fill_in_lanes, -(-len(pair_keys) // 8), pair_keys, points, bodies)
    expected = described(fill_one_by_one, len(pair_keys), pair_keys, points, bodies)
    for column, other in zip(found, expected, strict=True):
        assert np.array_equal(column, other)
    for kind, rows in ((Kind.VERTEX_FACE, slice(None, len(points))), (Kind.EDGE_EDGE, slice(len(points), None))):
        distance = feature_distance(kind, points)
        size = np.ptp(points, axis=1).max(axis=1)
        assert (np.abs(found[2][rows] - distance) <= 2e-12 * (size + 1e-3)).all()


def test_slivers_and_all_but_parallel_edges_are_found_among_others(rng):
    points = quadruples(rng, 300)
    points += 100.0 * np.arange(len(points))[:, None, None] * [1.0, 0.0, 0.0]
    third = points.mean(axis=1, keepdims=True) + 3.0 * rng.normal(size=(len(points), 2, 3))
    corners = np.concatenate([points, third], axis=1)[:, [0, 1, 4, 2, 3, 5]]
    mesh = Mesh(corners.reshape(-1, 3), np.arange(6 * len(points)).reshape(-1, 3))
    found, expected = (proximity(mesh, distance=1.0, broad_phase=b, device="cpu") for b in ("tree", "brute"))
    assert np.array_equal(found.key, expected.key)
    edges = found.kind == Kind.EDGE_EDGE
    along = mesh.vertices[mesh.edges[:, 1]] - mesh.vertices[mesh.edges[:, 0]]
    a, b = along[found.feature_a[edges]], along[found.feature_b[edges]]
    squared = (np.cross(a, b) ** 2).sum(axis=1) / ((a**2).sum(axis=1) * (b**2).sum(axis=1))
    assert (squared < 1e-7).sum() > 50
    assert (squared > 1e-3).sum() > 1000


def test_contacts_in_main_memory_outlive_the_next_step():
    ball = generate.icosphere(subdivisions=3)
    detector = Detector([ball, ball], distance=0.05, within=False, device="cpu")
    found = detector.contacts([ball.vertices, ball.vertices + [1.96, 0.0, 0.0]])
    gaps, weights = found.gap.copy(), found.weights.copy()
    other = detector.contacts([ball.vertices, ball.vertices + [1.98, 0.1, 0.0]])
    assert len(other)
    assert len(found)
    assert np.array_equal(found.gap, gaps)
    assert np.array_equal(found.weights, weights)


def test_threads_that_ask_about_one_mesh_at_once_do_not_disturb_each_other():
    mesh = generate.trefoil_knot(3960)
    bodies = [mesh.replace(vertices=mesh.vertices * [1.0, 1.0, 1.0 - 0.05 * k]) for k in range(8)]
    expected = [proximity(body, distance=0.4, device="cpu", threads=1) for body in bodies]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            found = pool.map(lambda body: proximity(body, distance=0.4, device="cpu", threads=1), bodies)
            for one, other in zip(found, expected, strict=True):
                assert np.array_equal(one.key, other.key)
                assert np.array_equal(one.gap, other.gap)
    assert len({len(contacts) for contacts in expected}) > 1
