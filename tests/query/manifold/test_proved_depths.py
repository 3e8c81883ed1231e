"""What a polytope proves of a depth, of bodies that lie as searches go wrong: supports along directions, refined."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp
from scipy.spatial.transform import Rotation

from oracles.convex_distances import rows_of
from oracles.convex_families import bodies, sizes
from oracles.ways_out import least_seen, reaches
from tangere.query.distance.convex.bodies import ConvexBodies
from tangere.query.manifold.convex.batch import penetrations
from tangere.query.manifold.convex.penetration import PROVED

#: Relative to the size of both bodies.
LEAST = 1e-9
FLAT = [("box", "hull"), ("hull", "hull")]
ROUND = [("box", "cylinder"), ("cylinder", "cylinder"), ("cylinder", "hull"), ("cone", "cone")]
LYING = ("parallel", "concentric", "inside", "needle")


def lying(how: str, kinds: tuple[str, str], count: int, rng: np.random.Generator):
    """Two bodies whose middles are near each other, at poses that lie as told."""
    small = (0.05, 0.2) if how == "inside" else (0.2, 1.5)
    given = [sizes(kind, count, rng, *each) for kind, each in zip(kinds, (small, (0.5, 1.5)), strict=True)]
    places = [np.tile(np.eye(4), (count, 1, 1)) for _ in kinds]
    for place, size in zip(places, given, strict=True):
        place[:, :3, :3] = Rotation.random(count, rng=rng).as_matrix()
        if how == "parallel":  # a half to the last bit
            quarter = Rotation.from_euler("xyz", rng.integers(0, 4, (count, 3)) * 0.5 * np.pi)
            lean = Rotation.from_rotvec(rng.normal(size=(count, 3)) * 10.0 ** rng.uniform(-15.0, -6.0, (count, 1)))
            place[:, :3, :3] = quarter.as_matrix()
            place[::2, :3, :3] = (lean * quarter).as_matrix()[::2]
        if how == "needle" and "radius" in size:
            size["radius"] *= 10.0 ** rng.uniform(-4.0, 0.0, count)
        if how == "needle" and "half" in size:
            size["half"][:, 0] *= 10.0 ** rng.uniform(-4.0, 0.0, count)
    if how != "concentric":
        places[0][:, :3, 3] = rng.normal(size=(count, 3)) * (0.02 if how == "needle" else 0.15)
    return [bodies(kind, **size).at(place) for kind, size, place in zip(kinds, given, places, strict=True)]


@pytest.mark.parametrize("how", LYING)
@pytest.mark.parametrize(("kind_a", "kind_b"), FLAT + ROUND)
def test_a_depth_that_is_proved_parts_and_is_the_least(rng, effort, kind_a, kind_b, how):
    count, cpu = effort(60, 20), wp.get_device("cpu")
    placed = lying(how, (kind_a, kind_b), count, rng)
    inputs, kinds = [], []
    for body in placed:
        own = ConvexBodies.of(body, cpu)
        kinds.append(own.kind)
        inputs += [own.shapes, own.points, wp.array(body.poses, dtype=wp.mat44d, device=cpu)]
    found = penetrations((kinds[0], kinds[1]), inputs, np.arange(count, dtype=np.int32), cpu)
    a, b = (rows_of(body, count=count) for body in placed)
    size = a.size + b.size
    deep = found["depth"] > 1e-6 * size  # cores that are apart have a direction, not a depth
    assert deep.any()
    parted = reaches(a, b, found["normal"][:, None])[:, 0]
    assert (np.abs(found["depth"] - parted) <= LEAST * size)[deep].all()
    proved = (found["room"] == PROVED) & deep
    assert (found["depth"] <= least_seen(a, b, rng) + LEAST * size)[proved].all()
    if (kind_a, kind_b) in FLAT:  # rounding spoils none
        assert proved[deep].all()
    assert proved.sum() >= 0.9 * deep.sum()
