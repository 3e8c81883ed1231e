"""Capsules deep in cylinders, cones and hulls, as they lie where formulas have cases: supports along directions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import tangere as tg
from oracles.convex_distances import outside, rows_of
from oracles.convex_families import bodies, poses, sizes
from oracles.ways_out import least_seen, reaches

#: Relative to the size of both bodies.
LEAST = 1e-9
LYING = ("any", "along", "across", "side", "concentric", "needle", "small")
OTHERS = ["cylinder", "cone", pytest.param("hull", marks=pytest.mark.slow)]


def lying(how: str, kind: str, count: int, rng: np.random.Generator):
    """A capsule and another body: the axis of one along or across that of the other, or along its side, or nearly."""
    low, high = (0.02, 0.1) if how == "small" else (0.2, 1.5)
    own, other = sizes("capsule", count, rng, low, high), sizes(kind, count, rng, 0.2, 1.5)
    if how == "needle":
        name = rng.choice(["radius", "height"])
        for side in (own, other):
            if side:
                side[name] *= 10.0 ** rng.uniform(-4.0, 0.0, count)
    placed = [poses(count, rng, 0.0), poses(count, rng, 0.0)]
    if how in ("along", "across", "side"):
        turn = np.zeros(count)
        if how == "across":
            turn[:] = 0.5 * np.pi
        if how == "side" and kind == "cone":
            turn = np.arctan2(other["radius"], other["height"])
        lean = rng.normal(size=(count, 3)) * 10.0 ** rng.uniform(-15.0, -1.0, (count, 1))
        lean[: count // 4] = 0.0
        own_turn = Rotation.from_rotvec(lean) * Rotation.from_rotvec(turn[:, None] * [0.0, -1.0, 0.0])
        placed[0][:, :3, :3] = placed[1][:, :3, :3] @ own_turn.as_matrix()
    if how != "concentric":
        off = rng.normal(size=(count, 3)) * (0.02 if how == "needle" else 0.2)
        off[: count // 8, 1] = 0.0  # in the plane of both axes
        placed[0][:, :3, 3] = np.einsum("nij,nj->ni", placed[1][:, :3, :3], off)
    return bodies("capsule", **own).at(placed[0]), bodies(kind, **other).at(placed[1])


@pytest.mark.parametrize("how", LYING)
@pytest.mark.parametrize("kind", OTHERS)
def test_deep_capsules_are_parted_by_the_gap_and_it_is_the_least(rng, effort, device, kind, how):
    count = effort(300, 60)
    placed = lying(how, kind, count, rng)
    a, b = (rows_of(body, count=count) for body in placed)
    size = a.size + b.size
    found = tg.manifold(*placed, distance=0.0, device=device)
    gap, normal = np.full(count, np.inf), np.zeros((count, 3))
    np.minimum.at(gap, found.query, found.gap)
    normal[found.query] = found.normal
    # Margins that overlap while the cores do not have a distance; its way out is across the nearest points.
    met = np.isfinite(gap) & (-gap > a.radius + 1e-6 * size)
    assert met.sum() > count // 5
    assert (-gap >= reaches(a, b, normal[:, None])[:, 0] - LEAST * size)[met].all()  # moved so far, they are apart
    assert (-gap <= least_seen(a, b, rng) + LEAST * size)[met].all()
    deepest = (found.gap == gap[found.query]) & met[found.query]
    rows = found.query[deepest]
    along = np.einsum("ij,ij->i", found.point_a - found.point_b, found.normal)[deepest]
    assert (np.abs(along - gap[rows]) <= LEAST * size[rows]).all()
    for body, part, points in ((placed[0], a, found.point_a), (placed[1], b, found.point_b)):
        assert (outside(part[rows], points[deepest], body.hull.planes) <= LEAST * size[rows]).all()
