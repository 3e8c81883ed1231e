"""Grouping by normal and the choice of four points."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import warp as wp

from tangere.query.manifold.details import ContactPoint
from tangere.query.manifold.reduction import KEPT, ContactGroups, add_contact, clear_groups, empty_groups, reduce_group
from tangere.runtime import launch


@wp.kernel(enable_backward=False)
def _stream(first: int, touches: wp.array2d[ContactPoint], groups: ContactGroups, stay: wp.array2d[wp.vec4i]):
    i = first + wp.tid()
    clear_groups(groups, i)
    for k in range(touches.shape[1]):
        add_contact(groups, i, touches[i, k])
    for g in range(wp.min(groups.count[i], groups.room)):
        stay[i, g] = reduce_group(groups, i, g, wp.float64(0.0))


def chosen(points, normals, depths, room: int = 8) -> tuple[np.ndarray, list[list[np.ndarray]]]:
    """The number of groups of each set, and for each group the numbers of the points that stay."""
    count, size = points.shape[:2]
    rows = np.zeros((count, size), ContactPoint.numpy_dtype())
    rows["point"], rows["normal"], rows["depth"] = points, normals, depths
    rows["feature"] = np.arange(size)
    device = wp.get_device("cpu")
    groups = empty_groups(count, room, device)
    stay = wp.empty((count, room), dtype=wp.vec4i, device=device)
    launch(_stream, count, [wp.array(rows, dtype=ContactPoint, device=device), groups], [stay], device=device)
    kept = groups.contacts.numpy().reshape(count, room, KEPT)
    counts, picks = groups.count.numpy(), stay.numpy()
    return counts, [
        [kept[i, g, picks[i, g][picks[i, g] >= 0]]["feature"] for g in range(min(counts[i], room))]
        for i in range(count)
    ]


def area(points: np.ndarray) -> np.ndarray:
    """(…,) area of the hull of four points, (…, 4, 2): the largest of its quadrilaterals and triangles."""
    orders = [[0, 1, 2, 3], [0, 1, 3, 2], [0, 2, 1, 3], [0, 1, 2, 2], [0, 1, 3, 3], [0, 2, 3, 3], [1, 2, 3, 3]]
    x, y = np.moveaxis(points[..., orders, :], -1, 0)
    return 0.5 * np.abs((x * np.roll(y, -1, axis=-1) - y * np.roll(x, -1, axis=-1)).sum(axis=-1)).max(axis=-1)


@pytest.mark.feature("F-S-20")
def test_four_points_keep_the_deepest_and_most_of_the_area(rng, effort):
    """Most of what four points with the deepest among them can have: no choice of four has the hull of twelve."""
    sets, size = effort(300), 12
    flat = rng.normal(size=(sets, size, 2))
    up = np.array([0.2, -0.3, 0.9])
    up /= np.linalg.norm(up)
    e = np.cross(up, [1.0, 0.0, 0.0])
    e /= np.linalg.norm(e)
    points = flat[..., :1] * e + flat[..., 1:] * np.cross(up, e)
    depths = rng.uniform(0.0, 0.01, (sets, size))
    counts, picks = chosen(points, np.broadcast_to(up, points.shape), depths)
    assert (counts == 1).all()
    ratios = []
    for k in range(sets):
        four = picks[k][0]
        assert four[0] == depths[k].argmax()
        assert len(set(four)) == len(four) <= 4
        others = np.array(list(combinations(sorted(set(range(size)) - {int(four[0])}), 3)))
        best = area(flat[k][np.column_stack([np.full(len(others), four[0]), others])]).max()
        ratios.append(area(flat[k][np.resize(four, 4)]) / best)
    assert np.mean(ratios) >= 0.95
    assert min(ratios) > 0.6


@pytest.mark.feature("F-S-19")
def test_normals_half_a_degree_apart_are_one_group_and_two_degrees_apart_are_two():
    def leaning(degrees):
        return np.array([np.sin(np.radians(degrees)), 0.0, np.cos(np.radians(degrees))])

    for degrees, expected in ((0.5, 1), (2.0, 2)):
        normals = np.stack([leaning(0.0), leaning(degrees)])[None]
        points = np.array([[[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]])
        counts, picks = chosen(points, normals, np.array([[0.01, 0.02]]))
        assert counts[0] == expected
        assert sum(len(group) for group in picks[0]) == 2
    # Kerb top and asphalt: parallel planes are one group.
    points = np.array([[[0.0, 0.0, 0.0], [1.0, 0.0, 0.15]]])
    counts, _ = chosen(points, np.tile([0.0, 0.0, 1.0], (1, 2, 1)), np.array([[0.01, 0.02]]))
    assert counts[0] == 1


def test_points_on_a_line_leave_its_ends_and_the_deepest(rng):
    along = np.sort(rng.uniform(-1.0, 1.0, (50, 9)), axis=1)
    points = along[..., None] * np.array([0.6, 0.8, 0.0])
    depths = rng.uniform(0.0, 1.0, (50, 9))
    _, picks = chosen(points, np.broadcast_to([0.0, 0.0, 1.0], points.shape), depths)
    for k in range(50):
        assert set(picks[k][0]) == {0, 8, int(depths[k].argmax())}


def test_equal_points_are_one_and_missing_room_is_counted():
    counts, picks = chosen(np.zeros((1, 5, 3)), np.tile([0.0, 0.0, 1.0], (1, 5, 1)), np.arange(5.0)[None])
    assert counts[0] == 1
    assert [list(group) for group in picks[0]] == [[4]]
    angles = np.radians(3.0 * np.arange(12))
    normals = np.stack([np.sin(angles), 0.0 * angles, np.cos(angles)], axis=1)[None]
    counts, _ = chosen(np.zeros((1, 12, 3)), normals, np.zeros((1, 12)))
    assert counts[0] == 12  # though there is room for eight
