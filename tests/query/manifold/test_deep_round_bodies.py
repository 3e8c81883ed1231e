"""Bodies deep in each other, nearly coaxial and with middles near each other: supports along directions, refined."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import tangere as tg
from oracles.convex_distances import outside, rows_of
from oracles.convex_families import PAIRS, bodies, sizes
from oracles.ways_out import least_seen, reaches

#: Relative to the size of both bodies.
LEAST = 1e-9
#: Pairs whose kernels every run compiles.
FEW = [("capsule", "cylinder"), ("cylinder", "cylinder"), ("cylinder", "cone")]
EVERY = [pytest.param(*pair, marks=[] if pair in FEW else pytest.mark.slow) for pair in PAIRS]


def nearly_coaxial(count: int, rng: np.random.Generator) -> np.ndarray:
    """Poses that lean by 1e-8 to 0.1 and are off by 1e-9 to 0.1; some lean not at all, some are concentric."""
    result = np.tile(np.eye(4), (count, 1, 1))
    lean = rng.normal(size=(count, 3)) * 10.0 ** rng.uniform(-8.0, -1.0, (count, 1))
    off = rng.normal(size=(count, 3)) * 10.0 ** rng.uniform(-9.0, -1.0, (count, 1))
    lean[: count // 8], off[count // 10 : count // 5] = 0.0, 0.0
    result[:, :3, :3], result[:, :3, 3] = Rotation.from_rotvec(lean).as_matrix(), off
    return result


@pytest.mark.parametrize(("kind_a", "kind_b"), EVERY)
def test_deep_bodies_are_parted_by_the_gap_and_it_is_the_least(rng, effort, device, kind_a, kind_b):
    count = effort(150, 40)
    first, other = (bodies(kind, **sizes(kind, count, rng, 0.2, 1.5)) for kind in (kind_a, kind_b))
    turned = Rotation.random(rng=rng).as_matrix()
    place = np.tile(np.eye(4), (count, 1, 1))
    place[:, :3, :3], place[:, :3, 3] = turned, rng.normal(size=3)
    placed = first.at(place @ nearly_coaxial(count, rng)), other.at(place)
    a, b = (rows_of(body, count=count) for body in placed)
    size = a.size + b.size
    found = tg.manifold(*placed, distance=0.0, device=device)
    assert np.unique(found.query).tolist() == list(range(count))  # they all overlap
    gap, normal = np.full(count, np.inf), np.zeros((count, 3))
    np.minimum.at(gap, found.query, found.gap)
    normal[found.query] = found.normal
    assert (-gap >= reaches(a, b, normal[:, None])[:, 0] - LEAST * size).all()  # moved so far, they are apart
    assert (-gap <= least_seen(a, b, rng) + LEAST * size).all()
    deepest = found.gap == gap[found.query]
    rows = found.query[deepest]
    along = np.einsum("ij,ij->i", found.point_a - found.point_b, found.normal)
    assert (np.abs(along - found.gap) <= 2.0 * LEAST * size[found.query]).all()
    for body, part, points in ((placed[0], a, found.point_a), (placed[1], b, found.point_b)):
        assert (outside(part[rows], points[deepest], body.hull.planes) <= 1e-9 * size[rows]).all()


def test_a_cylinder_all_but_coaxial_in_a_cone_has_contacts(device):
    """Newton's method on the direction once ended at points that were not the deepest: they were told to be apart."""
    place = np.array(
        [
            [0.9999999999638064, 6.571655292176257e-06, 5.403747749814905e-06, -0.015790058882129178],
            [-6.5716245194012645e-06, 0.999999999962192, -5.694707785519705e-06, -0.012014087346305009],
            [-5.403785173267156e-06, 5.694672273912384e-06, 0.9999999999691849, -4.222636682331802e-05],
            [0.0, 0.0, 0.0, 1.0],
        ]
    )
    a, b = tg.Cylinder(0.28, 2.47).at(place), tg.Cone(0.68, 0.45).at(np.eye(4))
    found = tg.manifold(a, b, distance=0.0, device=device)
    assert len(found)
    parted = reaches(rows_of(a), rows_of(b), found.normal[:1, None])[0, 0]
    assert found.gap.min() == pytest.approx(-parted, abs=1e-9)
