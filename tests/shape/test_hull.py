"""Hulls keep every corner that reaches out, however flat the faces about it are.

The oracle is the definition: in no direction may a point be farther than the farthest corner, nor outside a plane.
"""

import numpy as np
import pytest
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

import tangere as tg
from tangere.shape.analytic.hull import convex_hull

#: What rounding may do to a hull of size one.
ROUNDING = 1e-14


def dome(rings, bend, around=8):
    """A dome so flat that neighbours bend by `bend`, above a spike that points down: each point is a corner."""
    steps = np.arange(1, rings + 1)
    radii, heights = steps * 0.5 / rings, -np.cumsum(steps * bend) * 0.5 / rings
    angles = 2.0 * np.pi * np.arange(around) / around
    top = [(r * np.cos(x), r * np.sin(x), h) for r, h in zip(radii, heights, strict=True) for x in angles]
    return np.array([(0.0, 0.0, 0.0), *top, (0.0, 0.0, -1.0)])


def lattice(count):
    """The points of a lattice on the sides of a cube."""
    line = np.linspace(-1.0, 1.0, count)
    points = np.array(np.meshgrid(line, line, line)).reshape(3, -1).T
    return points[np.abs(points).max(axis=1) == 1.0]


def assert_holds(hull, points):
    """That the corners and the planes of a hull hold the points."""
    middle = points.mean(axis=0)
    across = np.random.default_rng(0).normal(size=(200, 3))
    facets = ConvexHull(points - middle).equations[:, :3]
    ways = np.concatenate([facets[:: 1 + len(facets) // 500], hull.planes[:, :3], across])
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    reach, told = (((some - middle) @ ways.T).max(axis=0) for some in (points, hull.corners))
    extent = np.ptp(points, axis=0).max()
    assert (reach - told).max() <= ROUNDING * extent
    outside = points @ hull.planes[:, :3].T - hull.planes[:, 3]
    assert outside.max() <= ROUNDING * np.abs(points).max()
    assert np.linalg.norm(hull.planes[:, :3], axis=1) == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize(("rings", "bend"), [(1, 4e-12), (1, 9e-10), (20, 9e-10), (100, 2e-11)])
def test_all_corners_of_a_dome_that_is_all_but_flat_are_kept(rings, bend):
    points = dome(rings, bend)
    hull = convex_hull(points, "dome")
    assert len(hull.corners) == len(points)
    assert_holds(hull, points)


def test_a_face_is_flat_as_a_whole_and_not_from_each_facet_to_the_next():
    hull = convex_hull(dome(100, 9e-10), "dome")
    for face in range(len(hull.planes)):
        own = hull.corners[np.unique(hull.edges[(hull.edges[:, 2:] == face).any(axis=1), :2])]
        assert np.abs(own @ hull.planes[face, :3] - hull.planes[face, 3]).max() <= 1e-9
    assert len(hull.planes) < len(convex_hull(dome(100, 1e-6), "dome").planes)


@pytest.mark.parametrize("away", [0.0, 100.0])
@pytest.mark.parametrize("thickness", [1.0, 1e-3])
def test_a_tessellated_box_has_six_faces_and_no_corner_inside_them(thickness, away):
    turned = Rotation.from_rotvec([0.3, -1.1, 0.7]).as_matrix()
    points = (lattice(12) * (1.0, 1.0, thickness)) @ turned.T + away
    hull = convex_hull(points, "box")
    assert len(hull.planes) == 6
    if away == 0.0:  # far away the points themselves are off their planes by the rounding of their coordinates
        assert len(hull.corners) - len(hull.edges) + 6 == 2
    assert len(hull.corners) < 30
    assert_holds(hull, points)


@pytest.mark.parametrize("noise", [1e-15, 1e-13, 1e-11, 1e-9, 1e-7])
def test_a_tessellated_box_with_noise_keeps_all_that_reaches_out(noise):
    points = lattice(9) + np.random.default_rng(1).uniform(-noise, noise, (len(lattice(9)), 3))
    hull = convex_hull(points, "box")
    assert_holds(hull, points)
    assert (len(hull.planes) == 6) == (noise < 1e-10)


@pytest.mark.parametrize("height", [1e-3, 1e-9, 1e-12])
def test_faces_of_a_flat_double_pyramid_are_not_one(height):
    points = np.array([(1, 0, 0), (0, 1, 0), (-1, 0, 0), (0, -1, 0), (0, 0, height), (0, 0, -height)], float)
    hull = convex_hull(points, "lens")
    assert (len(hull.corners), len(hull.edges), len(hull.planes)) == (6, 12, 8)
    assert_holds(hull, points)


@pytest.mark.parametrize(("rings", "bend", "deep"), [(1, 9e-10, 2e-10), (150, 9e-10, 1e-8)])
def test_a_ball_that_goes_into_a_dome_that_is_all_but_flat_is_seen(rings, bend, deep):
    points = dome(rings, bend)
    hull = tg.ConvexMesh(tg.Mesh(points, ConvexHull(points).simplices))
    pose = np.eye(4)
    pose[2, 3] = 1.5  # the ball's lowest point is 0.5 above the dome's highest
    found = tg.distance(tg.Sphere(1.0).at(pose), hull, device="cpu")
    assert found.lower <= 0.5 <= found.upper <= 0.5 + 1e-12
    fall = tg.Sphere(1.0).moving(tg.Twist(pose, [0.0, 0.0, -0.5 - deep], [0.0, 0.0, 0.0]))
    contact = tg.first_contact(fall, hull, tolerance=1e-10, device="cpu")
    assert contact.status == tg.Status.CONTACT
    assert contact.time * (0.5 + deep) <= 0.5
    pose[2, 3] = 1.0 - deep
    assert tg.intersects(tg.Sphere(1.0).at(pose), hull, device="cpu")


def test_a_box_on_a_dome_that_is_all_but_flat_lies_on_its_whole_face():
    points = dome(3, 2e-11)
    hull = tg.ConvexMesh(tg.Mesh(points, ConvexHull(points).simplices))
    pose = np.eye(4)
    pose[2, 3] = 0.25 - 1e-6
    contacts = tg.manifold(tg.Box([2.0, 2.0, 0.25]).at(pose), hull, device="cpu")
    assert len(contacts) == 8  # the eight corners of the rim
    assert np.linalg.norm(contacts.point_b[:, :2], axis=1) == pytest.approx(0.5)
    assert contacts.gap == pytest.approx(-1e-6, abs=1e-9)
