"""The certified step itself, by sampling: nothing comes nearer before the time it promises. Mutants must fail.

End-to-end tests have weak teeth here: a search with a wrong bound is still right most of the time. So single pairs of
boxes and of triangles are stepped by the functions of the search, and looked at many times before their answer.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import warp as wp
from scipy.spatial.transform import Rotation

from oracles.families.rigid_scenes import KINDS, random_motion
from oracles.rigid_distances import box_gaps, triangle_distances
from tangere.bvh.obb import ObbNode
from tangere.motion import Chain, Rigid, RigidMotion
from tangere.query.first_contact.rigid.conservative_advancement import (
    Pair,
    QueryArrays,
    RigidQuery,
    conservative_advance,
    largest_safe_step,
    pair_of,
    relative_at,
)
from tangere.query.first_contact.rigid.cpu.lane_search import lane_time
from tangere.query.first_contact.rigid.cpu.simd_advance import (
    BODIES,
    advance_lanes,
    place_bodies,
    place_course,
    place_steady_bodies,
)
from tangere.query.first_contact.rigid.narrow_phase import corners_of, leaf_time
from tangere.runtime import SOUND, launch

wp.set_module_options(SOUND)

CPU = "cpu"
#: Of places and ways: most pairs start apart, and many come near [m].
SPREAD = 0.4
TOLERANCE = 1e-4
#: What is wrong with a mutant: 0 nothing, 1 no acceleration, 2 distances to the axis forgotten.
RIGHT, NO_ACCELERATION, NO_ARM = 0, 1, 2


@wp.func
def mutated(pair: Pair, mutant: int) -> Pair:
    if mutant == 1:
        pair.bounds_a.acceleration = wp.float64(0.0)
        pair.bounds_a.turn = wp.float64(0.0)
        pair.bounds_b.acceleration = wp.float64(0.0)
        pair.bounds_b.turn = wp.float64(0.0)
    if mutant == 2:
        pair.bounds_a.axis = wp.vec3d()
        pair.bounds_b.axis = wp.vec3d()
        pair.bounds_a.fixed_axis = True
        pair.bounds_b.fixed_axis = True
    return pair


@wp.kernel
def stepped(
    first: int,
    boxes: wp.bool,
    mutant: int,
    arrays: QueryArrays,
    counters: wp.array2d[wp.int64],
    times: wp.array[wp.float64],
):
    i = first + wp.tid()
    arrays.pairs[i] = mutated(pair_of(arrays.queries[i], arrays), mutant)
    pairs = arrays.pairs
    zero = wp.float64(0.0)
    one = wp.float64(1.0)
    if boxes:
        now = relative_at(arrays, i, zero)
        times[i] = conservative_advance(arrays, i, arrays.nodes_a[i], arrays.nodes_b[i], now, zero, one, counters, i)
    else:
        a = corners_of(arrays.corners_a, i, pairs[i].bounds_a.pivot)
        b = corners_of(arrays.corners_b, i, pairs[i].bounds_b.pivot)
        times[i] = leaf_time(arrays, i, a, b, zero, one).time


@wp.kernel
def stepped_lanes(
    first: int,
    mutant: int,
    swapped: bool,
    again: int,
    arrays: QueryArrays,
    rows_a: wp.array[wp.float32],
    rows_b: wp.array[wp.float32],
    children: wp.array[int],
    scratch: wp.array[wp.uint64],
    times: wp.array2d[wp.float64],
):
    """One box against the four of its node; of b's four the boxes are those of the next pairs."""
    i = first + wp.tid()
    pair = mutated(pair_of(arrays.queries[i], arrays), mutant)
    arrays.pairs[i] = pair
    base = i * wp.static(BODIES + 6)
    zero = wp.float64(0.0)
    one = wp.float64(1.0)
    place_course(arrays.pairs, i, scratch, base)
    if pair.steady:
        place_steady_bodies(arrays.pairs, i, zero, scratch, base)
    else:
        place_bodies(relative_at(arrays, i, zero), scratch, base)
    straight = pair.steady and not pair.steady_a.bends and not pair.steady_b.bends
    lanes = base + wp.static(BODIES)
    advance_lanes(
        arrays.pairs,
        i,
        rows_a,
        children,
        rows_b,
        children,
        4 * i,
        i,
        not swapped,
        zero,
        one,
        pair.steady,
        straight,
        again,
        scratch,
        lanes,
        base,
    )
    for k in range(4):
        times[i, k] = lane_time(scratch, lanes + k)


class Pairs:
    """n pairs of boxes and of triangles, each moving by its own motions."""

    def __init__(self, rng, count: int, kind_a: str, kind_b: str, links: int = 1):
        self.count, self.links = count, links
        self.motion_a = chains(rng, kind_a, count, links)
        self.motion_b = chains(rng, kind_b, count, links)
        self.nodes = [nodes(rng, count) for _ in range(2)]
        self.corners = [
            rng.normal(size=(count, 1, 3))
            + rng.normal(size=(count, 3, 3)) * rng.choice([0.05, 0.3, 1.0], (count, 1, 1))
            for _ in range(2)
        ]

    def times(self, boxes: bool, mutant: int) -> np.ndarray:
        cpu = wp.get_device(CPU)
        queries = np.zeros(self.count, RigidQuery.numpy_dtype())
        numbers = np.arange(self.count)
        queries["node_a"] = queries["node_b"] = queries["triangle_a"] = queries["triangle_b"] = numbers
        queries["motion_a"] = self.links * numbers
        queries["motion_b"] = self.links * (self.count + numbers)
        queries["links_a"] = queries["links_b"] = self.links
        queries["tolerance"] = TOLERANCE
        records = np.zeros(2 * self.count * self.links, RigidMotion.numpy_dtype())
        half = self.count * self.links
        records[:half], records[half:] = self.motion_a.records(), self.motion_b.records()
        kinds = (records["kind"] == 2).reshape(2, self.count, -1).any(axis=(0, 2))
        queries["smooth"] = kinds
        self.kinds = kinds
        out = np.zeros(self.count)
        points = [wp.array(c.reshape(-1, 3), dtype=wp.vec3d, device=cpu) for c in self.corners]
        trees = [wp.array(n, dtype=ObbNode, device=cpu) for n in self.nodes]
        arrays: Any = QueryArrays()
        arrays.queries = wp.array(queries, dtype=RigidQuery, device=cpu)
        arrays.motions = wp.array(records, dtype=RigidMotion, device=cpu)
        arrays.nodes_a, arrays.nodes_b = trees
        arrays.corners_a, arrays.corners_b = points
        arrays.pairs = wp.zeros(self.count, dtype=Pair, device=cpu)
        self.arrays = arrays
        launch(
            stepped,
            self.count,
            [boxes, mutant, arrays, wp.zeros((self.count, 5), dtype=wp.int64, device=cpu)],
            [wp.array(out, dtype=wp.float64, device=cpu, copy=False)],
            device=cpu,
        )
        out = np.minimum(out, 1.0)
        return np.where(kinds, np.sin(0.5 * np.pi * out) ** 2, out)

    def lane_times(self, mutant: int, swapped: bool, again: int) -> np.ndarray:
        """(n, 4): until when the box of one body is free of four of the other, the first of which is the pair's own."""
        self.times(True, mutant)  # for its arrays
        cpu, wide = wp.get_device(CPU), []
        for nodes in self.nodes:
            four = np.stack([np.roll(nodes, -k) for k in range(4)], 1)
            axes = four["axes"].reshape(self.count, 4, 9)
            rows = np.concatenate([four["centre"], four["half"], axes, four["radius"][..., None]], axis=2)
            wide.append(wp.array(np.ascontiguousarray(rows.transpose(0, 2, 1)).ravel(), dtype=wp.float32, device=cpu))
        out = np.zeros((self.count, 4))
        children = wp.full(4 * self.count, -1, dtype=wp.int32, device=cpu)
        scratch = wp.zeros(self.count * (BODIES + 6), dtype=wp.uint64, device=cpu)
        launch(
            stepped_lanes,
            self.count,
            [mutant, swapped, again, self.arrays, *wide, children, scratch],
            [wp.array(out, dtype=wp.float64, device=cpu, copy=False)],
            device=cpu,
        )
        out = np.minimum(out, 1.0)
        return np.where(self.kinds[:, None], np.sin(0.5 * np.pi * out) ** 2, out)

    def violations_of_lanes(self, mutant: int, samples: int, swapped: bool, again: int = 4) -> int:
        """How many boxes of four come too near at one of the samples before their time."""
        end, bad = self.lane_times(mutant, swapped, again), 0
        for k in range(4):
            rows = np.flatnonzero(end[:, k] > 0.0)
            own, other = (1, 0) if swapped else (0, 1)
            near = np.zeros(len(rows), bool)
            for part in np.linspace(0.0, 1.0, samples, endpoint=False):
                poses = [motion[rows].pose(part * end[rows, k]) for motion in (self.motion_a, self.motion_b)]
                single = placed_boxes(self.nodes[own][rows], poses[own])
                four = placed_boxes(np.roll(self.nodes[other], -k)[rows], poses[other])
                near |= box_gaps(single[0], four[0], single[1], four[1]) < -1e-6
            bad += int(near.sum())
        return bad

    def violations(self, boxes: bool, mutant: int, samples: int) -> int:
        """How many pairs come too near at one of the samples before their time."""
        end = self.times(boxes, mutant)
        bad = np.zeros(self.count, bool)
        rows = np.flatnonzero(end > 0.0)
        for part in np.linspace(0.0, 1.0, samples, endpoint=False):
            poses = [motion[rows].pose(part * end[rows]) for motion in (self.motion_a, self.motion_b)]
            if boxes:
                bodies = [placed_boxes(n[rows], p) for n, p in zip(self.nodes, poses, strict=True)]
                near = box_gaps(bodies[0][0], bodies[1][0], bodies[0][1], bodies[1][1]) < -1e-6
            else:
                placed = [placed_points(c[rows], p) for c, p in zip(self.corners, poses, strict=True)]
                near = triangle_distances(*placed) < 0.5 * TOLERANCE * (1.0 - 1e-6)
            bad[rows] |= near
        return int(bad.sum())


def chains(rng, kind: str, count: int, links: int) -> Rigid:
    """`count` motions of one kind, or links at the end of chains of them."""
    joints = [random_motion(kind, rng, count, SPREAD) for _ in range(links)]
    if links == 1:
        return joints[0]
    return Rigid.join([Chain([joint[i] for joint in joints]).link(links - 1) for i in range(count)])


def nodes(rng, count: int) -> np.ndarray:
    """Random boxes as leaves of their own."""
    records = np.zeros(count, ObbNode.numpy_dtype())
    records["centre"] = 0.8 * rng.normal(size=(count, 3))
    records["half"] = rng.uniform(0.0, 0.7, size=(count, 3)) ** 2
    records["axes"] = Rotation.random(count, random_state=int(rng.integers(2**31))).as_matrix()
    records["radius"] = np.linalg.norm(records["half"].astype(float), axis=1) * (1 + 1e-6)
    records["right"] = -1
    return records


def placed_points(points: np.ndarray, poses: np.ndarray) -> np.ndarray:
    return np.einsum("nij,nkj->nki", poses[:, :3, :3], points) + poses[:, None, :3, 3]


def placed_boxes(boxes: np.ndarray, poses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Corners (n, 8, 3) and axes (n, 3, 3)."""
    signs = np.stack(np.meshgrid([-1.0, 1.0], [-1.0, 1.0], [-1.0, 1.0]), -1).reshape(8, 3)
    axes = boxes["axes"].astype(float)
    corners = boxes["centre"].astype(float)[:, None] + np.einsum(
        "nij,nkj->nki", axes, signs[None] * boxes["half"].astype(float)[:, None]
    )
    return placed_points(corners, poses), poses[:, :3, :3] @ axes


#: Every kind against rest, and mixed kinds that both move.
MIXTURES = [(kind, "rest") for kind in KINDS if kind != "rest"]
MIXTURES += [("rest", "twist"), ("twist", "twist"), ("screw", "cosine screw"), ("tan screw", "screw")]
MIXTURES += [("twist", "cosine screw"), ("cosine screw", "tan screw")]


@pytest.mark.parametrize("boxes", [True, False], ids=["boxes", "triangles"])
@pytest.mark.parametrize(("kind_a", "kind_b"), MIXTURES)
def test_nothing_comes_nearer_before_the_promised_time(rng, effort, boxes, kind_a, kind_b):
    pairs = Pairs(rng, effort(500), kind_a, kind_b)
    assert pairs.violations(boxes, RIGHT, effort(60)) == 0


@pytest.mark.parametrize("boxes", [True, False], ids=["boxes", "triangles"])
def test_nothing_comes_nearer_for_links_of_chains(rng, effort, boxes):
    pairs = Pairs(rng, effort(300), "screw", "twist", links=3)
    assert pairs.violations(boxes, RIGHT, effort(60)) == 0


@pytest.mark.parametrize("mutant", [NO_ACCELERATION, NO_ARM])
@pytest.mark.parametrize("boxes", [True, False], ids=["boxes", "triangles"])
def test_mutants_of_the_bound_are_found_out(rng, boxes, mutant):
    pairs = Pairs(rng, 800, "twist", "twist")
    assert pairs.violations(boxes, mutant, 60) > 3


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(("kind_a", "kind_b"), MIXTURES)
def test_none_of_four_boxes_comes_nearer_before_its_promised_time(rng, effort, swapped, kind_a, kind_b):
    # On the smooth clock angular speeds are not the largest ones: a bound that took them so failed once in 120 pairs.
    pairs = Pairs(rng, effort(800 if "cosine screw" in kind_b else 200), kind_a, kind_b)
    assert pairs.violations_of_lanes(RIGHT, effort(40), swapped) == 0


@pytest.mark.parametrize("swapped", [False, True])
def test_none_of_four_boxes_comes_nearer_for_links_of_chains(rng, effort, swapped):
    pairs = Pairs(rng, effort(200), "screw", "twist", links=3)
    assert pairs.violations_of_lanes(RIGHT, effort(40), swapped) == 0


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("mutant", [NO_ACCELERATION, NO_ARM])
def test_mutants_of_the_bound_of_four_boxes_are_found_out(rng, mutant, swapped):
    pairs = Pairs(rng, 400, "twist", "twist")
    assert pairs.violations_of_lanes(mutant, 40, swapped) > 3


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(("kind_a", "kind_b"), [("rest", "twist"), ("twist", "rest"), ("screw", "twist")])
def test_four_boxes_get_about_as_far_as_one_by_one(rng, effort, swapped, kind_a, kind_b):
    """The same bounds: without repeats the times differ by rounding, and by which of equal directions is taken."""
    pairs = Pairs(rng, effort(400), kind_a, kind_b)
    once, four = pairs.lane_times(RIGHT, swapped, 1)[:, 0], pairs.lane_times(RIGHT, swapped, 4)[:, 0]
    one_by_one = pairs.times(True, RIGHT)
    assert (four >= once).all()
    assert (np.abs(four - one_by_one) < 1e-4).mean() > 0.9
    assert (one_by_one > 0.0).mean() > 0.2


@pytest.mark.slow
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(
    ("kind_a", "kind_b"),
    [("rest", "twist"), ("twist", "rest"), ("screw", "twist"), ("rest", "screw"), ("twist", "cosine screw")],
)
def test_none_of_four_boxes_comes_nearer_at_a_thousand_times_for_thousands(rng, effort, swapped, kind_a, kind_b):
    pairs = Pairs(rng, effort(2000), kind_a, kind_b)
    assert pairs.violations_of_lanes(RIGHT, effort(1000), swapped) == 0


@pytest.mark.slow
@pytest.mark.parametrize("boxes", [True, False], ids=["boxes", "triangles"])
@pytest.mark.parametrize(("kind_a", "kind_b"), [("rest", "twist"), ("screw", "twist"), ("cosine screw", "tan screw")])
def test_nothing_comes_nearer_at_a_thousand_times_for_thousands_of_pairs(rng, effort, boxes, kind_a, kind_b):
    pairs = Pairs(rng, effort(4000), kind_a, kind_b)
    assert pairs.violations(boxes, RIGHT, effort(1000)) == 0


@wp.kernel
def _steps(first: int, x: wp.array[wp.vec3d], out: wp.array[wp.float64]):
    i = first + wp.tid()
    out[i] = largest_safe_step(x[i][0], x[i][1], x[i][2])


def cancelling_step(gap, a, b):
    """The one-branch form, which loses all digits where a < 0."""
    return 2.0 * gap / (a + np.sqrt(a * a + 4.0 * b * gap))


def overshoots(h, gap, a, b) -> np.ndarray:
    """Whether the gap is used up within h, exactly reckoned, by more than a millionth and rounding."""
    found = []
    for step, spare, rate, bend in zip(h, gap, a, b, strict=True):
        if not np.isfinite(step):
            found.append(True)
            continue
        way, curve = Fraction(rate) * Fraction(step), Fraction(bend) * Fraction(step) ** 2
        allowed = Fraction(spare) * (1 + Fraction(1, 10**6)) + Fraction(1, 10**14) * (abs(way) + curve)
        found.append(way + curve > allowed)
    return np.array(found)


def test_the_step_is_never_longer_than_the_root_even_where_the_pair_recedes(rng, effort):
    count = effort(3000)
    gap, b = 10.0 ** rng.uniform(-12, 1, count), 10.0 ** rng.uniform(-12, 3, count)
    a = rng.choice([-1.0, 1.0], count) * 10.0 ** rng.uniform(-9, 4, count)
    out = np.zeros(count)
    cpu = wp.get_device(CPU)
    points = wp.array(np.stack([gap, a, b], 1), dtype=wp.vec3d, device=cpu)
    launch(_steps, count, [points], [wp.array(out, dtype=wp.float64, device=cpu, copy=False)], device=cpu)
    assert not overshoots(out, gap, a, b).any()
    with np.errstate(divide="ignore"):
        assert overshoots(cancelling_step(gap, a, b), gap, a, b).sum() > 10
