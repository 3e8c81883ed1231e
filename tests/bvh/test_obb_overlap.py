"""The 15-axis test of oriented boxes against a linear program that looks for a common point."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp
from scipy.optimize import linprog
from scipy.spatial.transform import Rotation

import tangere as tg
from tangere.bvh.obb import ObbNode, ObbTree, boxes_at_least, place_boxes
from tangere.bvh.obb.overlap import boxes_overlap
from tangere.geometry.obb import SKEW, boxes_apart
from tangere.runtime import SOUND, InputError, launch

wp.set_module_options(SOUND)


def box_pairs(rng, count):
    """Boxes of all shapes, some flat, near enough to touch half of the time; a third has nearly parallel axes."""
    turns = [Rotation.random(count, random_state=rng).as_matrix() for _ in range(2)]
    near = rng.random(count) < 1 / 3
    angle = rng.normal(size=(count, 3)) * 10.0 ** rng.uniform(-16, -2, (count, 1))
    turns[1] = np.where(near[:, None, None], Rotation.from_rotvec(angle).as_matrix() @ turns[0], turns[1])
    halves = rng.random((2, count, 3)) * 10.0 ** rng.uniform(-2, 0, (2, count, 3))
    halves *= rng.random((2, count, 3)) > 0.1
    centres = rng.normal(size=(2, count, 3))
    direction = rng.normal(size=(count, 3))
    reach = np.linalg.norm(halves, axis=2).sum(axis=0) * rng.random(count) / np.linalg.norm(direction, axis=1)
    centres[1] = centres[0] + direction * reach[:, None]
    return centres[0], halves[0], turns[0], centres[1], halves[1], turns[1]


def margin_of(pair) -> float:
    """How far both boxes can be shrunk (positive), or must be grown (negative), for a last common point: an LP.

    Variables: a point, and s to be maximised, with |axis . (point - centre)| + s <= half for all six axes.
    """
    centre_a, half_a, axes_a, centre_b, half_b, axes_b = pair
    rows = np.concatenate([axes_a.T, -axes_a.T, axes_b.T, -axes_b.T])
    limits = np.concatenate(
        [
            half_a + axes_a.T @ centre_a,
            half_a - axes_a.T @ centre_a,
            half_b + axes_b.T @ centre_b,
            half_b - axes_b.T @ centre_b,
        ]
    )
    answer = linprog(
        [0, 0, 0, -1], np.column_stack([rows, np.ones(12)]), limits, bounds=[(None, None)] * 4, method="highs-ds"
    )
    assert answer.status == 0
    return float(answer.x[3])


def separated(pairs) -> np.ndarray:
    """Whether one of all face normals and edge products separates the vertices, as projections of the 16 corners."""
    centre_a, half_a, axes_a, centre_b, half_b, axes_b = pairs
    signs = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, 8)
    corners = [c[:, :, None] + a @ (h[:, :, None] * signs) for c, h, a in zip(*[iter(pairs)] * 3, strict=False)]
    crosses = np.cross(axes_a.transpose(0, 2, 1)[:, :, None], axes_b.transpose(0, 2, 1)[:, None]).reshape(-1, 9, 3)
    size = np.linalg.norm(crosses, axis=2, keepdims=True)
    crosses = np.where(size > 1e-9, crosses / np.maximum(size, 1e-9), 0.0)
    directions = np.concatenate([axes_a.transpose(0, 2, 1), axes_b.transpose(0, 2, 1), crosses], axis=1)
    shadow_a, shadow_b = (directions @ c for c in corners)
    gaps = np.maximum(shadow_b.min(axis=2) - shadow_a.max(axis=2), shadow_a.min(axis=2) - shadow_b.max(axis=2))
    return gaps.max(axis=1)


@pytest.mark.feature("F-R-21")
def test_boxes_overlap_exactly_when_a_linear_program_finds_a_common_point(effort, rng):
    """10^4 pairs; the program decides 600 of them and vouches for the corner projections that decide the others."""
    pairs = box_pairs(rng, effort(10_000, 200))
    overlap, gap = boxes_overlap(*pairs, device="cpu"), separated(pairs)
    for k in range(effort(600, 100)):
        margin = margin_of([column[k] for column in pairs])
        if abs(margin) > 1e-9:
            assert overlap[k] == (margin > 0.0)
            assert (gap[k] > 0.0) == (margin < 0.0)
    clear = np.abs(gap) > 1e-9
    assert clear.mean() > 0.9
    assert np.array_equal(overlap[clear], gap[clear] < 0.0)
    assert 0.2 < overlap.mean() < 0.8


@pytest.mark.slow
@pytest.mark.feature("F-R-21")
def test_a_million_pairs_of_boxes_agree_with_the_linear_program(effort, rng):
    """The program decides 10^4 of them one by one and vouches for the corner projections, which decide all 10^6."""
    for part in range(10):
        pairs = box_pairs(rng, effort(100_000, 200))
        overlap, gap = boxes_overlap(*pairs, device="cpu"), separated(pairs)
        for k in range(effort(1000, 20)):
            margin = margin_of([column[k] for column in pairs])
            if abs(margin) > 1e-9:
                assert overlap[k] == (margin > 0.0), (part, k)
        clear = np.abs(gap) > 1e-9
        assert np.array_equal(overlap[clear], gap[clear] < 0.0)


def test_touching_boxes_overlap_in_every_orientation(effort, rng):
    count = effort(2000)
    turns = Rotation.random(count, random_state=rng).as_matrix()
    half_a, half_b = rng.random((2, count, 3))
    shift = turns[:, :, 0] * (half_a[:, :1] + half_b[:, :1])
    centre = rng.normal(size=(count, 3))
    assert boxes_overlap(centre, half_a, turns, centre + shift, half_b, turns, device="cpu").all()
    apart = centre + shift * (1.0 + 1e-9) + 1e-9 * turns[:, :, 0]
    assert not boxes_overlap(centre, half_a, turns, apart, half_b, turns, device="cpu").any()


def test_without_edge_axes_nothing_new_is_apart(rng):
    pairs = box_pairs(rng, 3000)
    every, faces = boxes_overlap(*pairs, device="cpu"), boxes_overlap(*pairs, edge_axes=False, device="cpu")
    assert (every <= faces).all()
    assert (every < faces).any()


def test_nonsense_boxes_are_refused_by_name(rng):
    pairs = list(box_pairs(rng, 3))
    for place, value, message in [
        (0, np.full((3, 3), np.nan), r"centre_a\[0\] is not finite"),
        (1, -np.ones((3, 3)), r"half_a\[0\] is negative"),
        (2, np.ones((3, 3, 3)), r"axes_a\[0\] is not orthonormal"),
        (3, np.ones((2, 3)), r"centre_b must have shape \(3, 3\)"),
    ]:
        wrong = list(pairs)
        wrong[place] = value
        with pytest.raises(InputError, match=message):
            boxes_overlap(*wrong, device="cpu")


@wp.kernel
def _node_pairs(
    first: int,
    nodes: wp.array[ObbNode],
    pairs: wp.array[wp.vec2i],
    rotations: wp.array[wp.mat33d],
    translations: wp.array[wp.vec3d],
    apart: wp.array[int],
    at_least: wp.array[wp.float64],
):
    i = first + wp.tid()
    a = nodes[pairs[i][0]]
    b = nodes[pairs[i][1]]
    none = wp.float64(0.0)
    boxes = place_boxes(a, b, rotations[i], translations[i], none)
    apart[i] = wp.where(boxes_apart(boxes, 1, SKEW), 1, 0)
    at_least[i] = boxes_at_least(a, b, rotations[i], translations[i], none, wp.float64(1.0e300))[0]


def test_boxes_of_trees_are_never_apart_or_further_than_the_points_they_hold(effort, rng):
    """Float32 records, turned and placed so that their triangles nearly touch, against the triangles' own corners."""
    mesh = tg.generate.torus(600, bumps=0.1)
    tree = ObbTree.build(mesh)
    right = tree.records()["right"]
    sets: list = [None] * len(tree)
    for node in range(len(tree) - 1, -1, -1):
        leaf = [tree.records()["triangle"][node]]
        sets[node] = leaf if right[node] < 0 else sets[node + 1] + sets[right[node]]
    count = effort(4000)
    pairs = rng.integers(0, len(tree), (count, 2))
    turns = Rotation.random(count, random_state=rng).as_matrix()
    alike = rng.random(count) < 0.5  # the same box twice, hardly turned: all edges nearly parallel
    pairs[alike, 1] = pairs[alike, 0]
    small = rng.normal(size=(count, 3)) * 10.0 ** rng.uniform(-9, -2, (count, 1))
    turns[alike] = Rotation.from_rotvec(small[alike]).as_matrix()
    shifts, nearest = np.empty((count, 3)), np.empty(count)
    for k, (i, j) in enumerate(pairs):
        a = mesh.vertices[mesh.faces[sets[i]]].reshape(-1, 3)
        b = mesh.vertices[mesh.faces[sets[j]]].reshape(-1, 3) @ turns[k].T
        # They touch where both are outermost along a direction: a face, an edge or, mostly, a corner of the boxes.
        along = rng.normal(size=3) * rng.choice([1.0, 1e-4], 3)
        p, q = a[np.argmax(a @ along)], b[np.argmin(b @ along)]
        nearest[k] = 10.0 ** rng.uniform(-12, 0) if k % 2 else 0.0
        shifts[k] = p - q + along / np.linalg.norm(along) * nearest[k]  # so p and q are `nearest` apart
    apart, at_least = np.zeros(count, np.int32), np.zeros(count)
    launch(
        _node_pairs,
        count,
        [
            tree.nodes,
            wp.array(pairs.astype(np.int32), dtype=wp.vec2i, device="cpu"),
            wp.array(turns, dtype=wp.mat33d, device="cpu"),
            wp.array(shifts, dtype=wp.vec3d, device="cpu"),
        ],
        [wp.array(apart, device="cpu", copy=False), wp.array(at_least, device="cpu", copy=False)],
        device=wp.get_device("cpu"),
    )
    assert (at_least <= nearest * (1 + 1e-12)).all()
    assert (at_least > 0.0).any()
    assert not apart[::2].any()
    assert apart[1::2].any()
