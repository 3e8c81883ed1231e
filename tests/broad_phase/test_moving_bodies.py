"""Swept boxes of moving bodies and the pairs of them: each broad phase against the other and against all pairs."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from oracles.families.rigid_scenes import KINDS, random_motion, shape
from tangere.broad_phase.bodies import box_pairs, first_meetings, rest_still, swept_boxes
from tangere.broad_phase.bodies.body_pairs import SLICES, linked_pairs
from tangere.motion import Chain, Rest, Twist
from tangere.runtime import InputError

CPU = wp.get_device("cpu")


def every_pair(boxes: np.ndarray, still: np.ndarray) -> np.ndarray:
    """By brute force, in rising order."""
    lower, upper = boxes[:, 0], boxes[:, 1]
    meet = ((lower[:, None] <= upper[None]) & (lower[None] <= upper[:, None])).all(axis=2)
    meet &= ~(still[:, None] & still[None])
    return np.argwhere(np.triu(meet, 1))


@pytest.mark.parametrize("kind", KINDS)
def test_a_body_stays_within_its_swept_boxes(rng, effort, kind):
    """At many times of each slice, every vertex; and boxes at rest are no larger than they must be."""
    count = effort(30, least=3)
    mesh = shape("cone")
    motions = random_motion(kind, rng, count)
    boxes = swept_boxes([mesh] * count, [motions[i] for i in range(count)], device=CPU)
    assert boxes.shape == (count, SLICES, 2, 3)
    for k in range(SLICES):
        for t in np.linspace(k / SLICES, (k + 1) / SLICES, 9):
            poses = motions.pose(t)
            points = mesh.vertices @ np.swapaxes(poses[:, :3, :3], 1, 2) + poses[:, None, :3, 3]
            assert (points >= boxes[:, k, None, 0]).all()
            assert (points <= boxes[:, k, None, 1]).all()
    if kind == "rest":  # a box of a box is no larger than the diagonal
        sides = (boxes[:, :, 1] - boxes[:, :, 0]).max()
        assert sides <= np.linalg.norm(mesh.bounds[1] - mesh.bounds[0]) * (1 + 1e-5)


def test_the_link_of_a_chain_stays_within_its_swept_boxes(rng):
    mesh = shape("block")
    chain = Chain([random_motion(kind, rng, 1)[0] for kind in ("twist", "screw", "tan screw", "cosine screw")])
    for k in range(len(chain)):
        link = chain.link(k)
        boxes = swept_boxes([mesh], [link], device=CPU)[0]
        for t in np.linspace(0.0, 1.0, 200, endpoint=False):
            points = link.positions(mesh.vertices, t)
            assert (points >= boxes[int(t * SLICES), 0]).all()
            assert (points <= boxes[int(t * SLICES), 1]).all()


@pytest.mark.parametrize("method", ["sweep", "tree"])
def test_both_broad_phases_find_exactly_the_pairs_that_overlap(rng, effort, method, device):
    for size in (0.02, 0.2, 2.0):
        count = effort(400, least=20)
        lower = rng.random((count, 3)).astype(np.float32)
        lower[: count // 4] = np.round(lower[: count // 4] * 4) / 4  # boxes that touch in a plane
        boxes = np.stack([lower, lower + np.float32(size) * rng.random((count, 3)).astype(np.float32)], axis=1)
        boxes[: count // 4, 1] = boxes[: count // 4, 0] + np.float32(0.25)
        still = rng.random(count) < 0.3
        found = box_pairs(boxes, still=still, method=method, device=wp.get_device(device))
        np.testing.assert_array_equal(found, every_pair(boxes, still))


def test_the_first_slice_two_boxes_share_bounds_the_time_they_meet(rng):
    """Balls that fly towards each other: before the time told, they are apart by closed form; some pairs never meet."""
    ball = shape("ball")
    motions, ways = [], []
    for x in rng.uniform(1.5, 6.0, 40):
        pose = np.eye(4)
        pose[0, 3] = x
        ways.append((x, rng.uniform(0.0, 6.0)))
        motions.append(Twist(pose, [-ways[-1][1], 0.0, 0.0], rng.normal(size=3)))
    slices = swept_boxes([ball] * 41, [Rest(), *motions], device=CPU)
    pairs = np.array([(0, i + 1) for i in range(40)])
    when = first_meetings(slices, pairs)
    for time, (x, speed) in zip(when, ways, strict=True):
        true = (x - 1.2) / speed if speed > 0 else np.inf  # the balls' radii are 0.6: no contact before
        if np.isinf(time):
            assert true > 1.0 - 1.0 / SLICES
        else:
            assert time <= true
    assert np.isinf(when).any()
    assert ((when > 0) & np.isfinite(when)).any()


def test_motions_that_are_none_rest(rng):
    poses = np.tile(np.eye(4), (1, 1, 1))
    zero = Twist(poses[0], [0, 0, 0], [0, 0, 0])
    turning = Twist(poses[0], [0, 0, 0], [0, 0, 0.1])
    assert rest_still([Rest(), zero, turning, Chain([Rest(), turning]).link(1)]).tolist() == [True, True, False, False]


def test_links_that_hang_on_each_other_are_told():
    chain = Chain([Rest()] * 5, [-1, 0, 1, 1, 3])
    assert linked_pairs(chain, 10).tolist() == [[10, 11], [11, 12], [11, 13], [13, 14]]


def test_a_broad_phase_nobody_wrote_is_refused():
    with pytest.raises(InputError, match="'sweep' or 'tree', not 'grid'"):
        box_pairs(np.zeros((2, 2, 3), np.float32), method="grid", device=CPU)  # pyright: ignore
