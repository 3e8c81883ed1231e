"""Depths of bodies in each other beside the faces of their difference, by qhull, and meridian sections, by shapely."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.spatial import ConvexHull

import tangere as tg
from oracles.convex_distances import rows_of, supports
from oracles.convex_families import bodies, poses, sizes

shapely = pytest.importorskip("shapely")

#: Relative to the size of both bodies.
LEAST = 1e-9
#: Kinds with a margin around a core.
ROUND = ("sphere", "capsule")


def corners_of(body, pose: np.ndarray) -> np.ndarray:
    """The corners of a core with flat faces, in the world."""
    record = body.records[0]
    if isinstance(body, tg.ConvexMesh):
        corners = body.hull.corners * record["half"]
    else:
        corners = np.array(np.meshgrid(*([-x, x] if x > 0.0 else [0.0] for x in record["half"]))).reshape(3, -1).T
    return corners @ pose[:3, :3].T + pose[:3, 3]


def least_of_faces(a: np.ndarray, b: np.ndarray) -> float:
    """The distance of the origin from the nearest face of the difference of two sets of corners."""
    difference = (a[:, None] - b[None]).reshape(-1, 3)
    return float(-ConvexHull(difference).equations[:, 3].max())


@pytest.mark.parametrize(
    ("kind_a", "kind_b"),
    [("sphere", "box"), ("capsule", "box"), ("box", "box"), ("sphere", "hull")]
    + [
        pytest.param(*pair, marks=pytest.mark.slow) for pair in (("capsule", "hull"), ("box", "hull"), ("hull", "hull"))
    ],
)
def test_the_way_out_of_flat_faces_is_the_nearest_face_of_the_difference(rng, effort, device, kind_a, kind_b):
    count = effort(200, 40)
    places = [poses(count, rng, 0.2) for _ in "ab"]
    places[0][: count // 5, :3, 3] = places[1][: count // 5, :3, 3]  # concentric
    places[0][count // 5 : count // 3, :3, :3] = np.eye(3)  # parallel faces
    places[1][count // 5 : count // 3, :3, :3] = np.eye(3)
    for row in range(count):
        scale = [float(10.0 ** rng.uniform(-2.0, 0.0)), 1.0]
        a, b = (
            bodies(kind, **sizes(kind, 1, rng, 0.2 * each, each))
            for kind, each in zip((kind_a, kind_b), scale, strict=True)
        )
        found = tg.manifold(a.at(places[0][row]), b.at(places[1][row]), distance=0.0, device=device)
        cores = corners_of(a, places[0][row]), corners_of(b, places[1][row])
        depth = least_of_faces(*cores)
        if depth < 1e-6:  # the cores are apart, though the bodies may not be
            continue
        margins = sum(float(body.records[0]["radius"]) for body, kind in ((a, kind_a), (b, kind_b)) if kind in ROUND)
        size = sum(np.abs(each - each.mean(axis=0)).max() for each in cores) + margins
        assert found.gap.min() == pytest.approx(-depth - margins, abs=LEAST * size)


@pytest.mark.parametrize("kind", ["cylinder", "cone"])
def test_a_sphere_leaves_a_round_body_by_the_nearest_side_of_its_section(rng, effort, device, kind):
    """Also where a body is a needle or a plate, and where the centre is on the axis."""
    count = effort(400, 40)
    ratio = 10.0 ** rng.uniform(-4.0, 4.0, count)
    radius, half = np.sqrt(ratio), 1.0 / np.sqrt(ratio)
    body = {"cylinder": tg.Cylinder, "cone": tg.Cone}[kind](radius, 2.0 * half)
    place, shares = poses(count, rng, 1.0), rng.uniform(-1.0, 1.0, (count, 3))
    shares[: count // 4, :2] = 0.0
    # a centre within the section: as far up as told, and as far out as that leaves
    outer = 1.0 if kind == "cylinder" else 0.5 * (1.0 - shares[:, 2])
    local = np.stack([shares[:, 0] * radius * outer, np.zeros(count), shares[:, 2] * half], axis=1)
    turn = np.eye(4)[None].repeat(count, axis=0)
    turn[:, :3, 3] = np.einsum("nij,nj->ni", place[:, :3, :3], local) + place[:, :3, 3]
    found = tg.manifold(tg.Sphere(0.25).at(turn), body.at(place), distance=0.0, device=device)
    assert found.query.tolist() == list(range(count))
    one, other = rows_of(tg.Sphere(0.25).at(turn)), rows_of(body.at(place))
    parted = supports(one, -found.normal) + supports(other, found.normal)
    size = 0.25 + np.hypot(radius, half)
    for row in range(count):
        r, h = radius[row], half[row]
        section = [(-r, -h), (r, -h), (r, h), (-r, h)] if kind == "cylinder" else [(-r, -h), (r, -h), (0.0, h)]
        sides = [shapely.LineString(side) for side in pairwise([*section, section[0]])]
        depth = min(side.distance(shapely.Point(local[row, 0], local[row, 2])) for side in sides)
        assert found.gap[row] == pytest.approx(-depth - 0.25, abs=LEAST * size[row])
    assert (-found.gap >= parted - LEAST * size).all()
