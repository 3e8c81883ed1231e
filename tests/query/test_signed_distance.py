"""Signed distances against brute force and solid angles, and the sampled field within its bound."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.distances import feature_distance
from oracles.families.moving_meshes import grid, tetrahedron
from tangere.query.contacts import Kind
from tangere.query.signed_distance import DistanceField, signed_distance
from tangere.runtime import CapacityError, InputError, UnsupportedError
from tangere.shape import generate
from tangere.shape.mesh import Mesh

MESHES = {
    "tetrahedron": Mesh(tetrahedron().vertices, tetrahedron().faces[:, ::-1]),
    "box": generate.box([1.0, 2.0, 0.1]),
    "torus": generate.torus(160),
    "ball": generate.icosphere(subdivisions=2),
    "plate with a hole": generate.plate_with_hole(),
}


def nearest_by_brute_force(points: np.ndarray, mesh: Mesh) -> np.ndarray:
    corners = np.broadcast_to(mesh.vertices[mesh.faces], (len(points), len(mesh.faces), 3, 3))
    queries = np.concatenate([np.broadcast_to(points[:, None, None], (*corners.shape[:2], 1, 3)), corners], axis=2)
    return feature_distance(Kind.VERTEX_FACE, queries.reshape(-1, 4, 3)).reshape(len(points), -1).min(axis=1)


def winding(points: np.ndarray, mesh: Mesh) -> np.ndarray:
    """1 inside, 0 outside: the solid angle of all triangles."""
    a, b, c = np.moveaxis(mesh.vertices[mesh.faces][None] - points[:, None, None], 2, 0)
    la, lb, lc = (np.linalg.norm(x, axis=2) for x in (a, b, c))
    top = np.einsum("nfi,nfi->nf", a, np.cross(b, c))
    dot = lambda x, y: np.einsum("nfi,nfi->nf", x, y)  # noqa: E731
    below = la * lb * lc + dot(a, b) * lc + dot(b, c) * la + dot(c, a) * lb
    return np.arctan2(top, below).sum(axis=1) / (2.0 * np.pi)


@pytest.mark.parametrize("name", MESHES)
def test_distance_and_side_are_those_of_brute_force(name, rng, device):
    mesh = MESHES[name]
    low, high = mesh.bounds
    points = rng.uniform(low - 0.5 * (high - low) - 0.1, high + 0.5 * (high - low) + 0.1, (300, 3))
    points = np.concatenate([points, mesh.vertices[:20] * 1.3 + 0.01, mesh.vertices[:20] * 0.99 + 0.001])
    found = signed_distance(points, mesh, device=device)
    expected = nearest_by_brute_force(points, mesh)
    assert np.abs(np.abs(found.distance) - expected).max() < 1e-12
    inside = winding(points, mesh)
    clear = np.minimum(np.abs(inside), np.abs(inside - 1.0)) < 1e-6
    assert clear.sum() > 300
    assert ((found.distance < 0.0) == (inside > 0.5))[clear].all()
    assert np.allclose(found.point, points - found.distance[:, None] * found.normal, atol=1e-12)
    assert np.allclose(
        (found.weights[:, :, None] * mesh.vertices[mesh.faces[found.face]]).sum(axis=1), found.point, atol=1e-12
    )


def test_a_point_on_the_surface_is_at_distance_zero_with_the_normal_of_the_face():
    mesh = generate.box([2.0, 2.0, 2.0])
    found = signed_distance([[1.0, 0.3, 0.2], [0.1, 0.2, -1.0]], mesh, device="cpu")
    assert np.abs(found.distance).max() < 1e-15
    assert np.allclose(found.normal, [[1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])


def test_what_has_no_inside_is_refused():
    with pytest.raises(InputError, match="closed mesh"):
        signed_distance([[0.0, 0.0, 0.0]], grid(3, 3))
    with pytest.raises(InputError, match="face inwards"):
        signed_distance([[0.0, 0.0, 0.0]], tetrahedron(), device="cpu")
    with pytest.raises(UnsupportedError, match="and a NoneType is not known; known: points with a Mesh"):
        signed_distance([[0.0, 0.0, 0.0]], None)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("scale", [1e-74, 1e-30, 1e30, 1e74])
def test_distances_are_right_at_every_scale_that_is_accepted(scale):
    box = generate.box([2.0, 2.0, 2.0])
    large = box.replace(vertices=box.vertices * scale)
    points = np.array([[0.0, 0.0, 0.0], [3.0, 0.2, 0.1], [0.0, 0.0, -9.0], [4.0, 5.0, 0.0]])
    found = signed_distance(points * scale, large, device="cpu")
    assert np.allclose(found.distance / scale, [-1.0, 2.0, 8.0, 5.0], rtol=1e-12)
    far = signed_distance([[1e75, 0.0, 0.0]], large, device="cpu")
    assert far.distance[0] == pytest.approx(1e75 - scale, rel=1e-12)


@pytest.mark.parametrize("scale", [1e-170, 1e-76, 1e76, 1e160])
def test_meshes_and_points_beyond_the_scale_are_refused_with_a_reason(scale):
    box = generate.box([2.0, 2.0, 2.0])
    with pytest.raises(InputError, match="too large" if scale > 1.0 else "too small"):
        signed_distance([[0.0, 0.0, 0.0]], box.replace(vertices=box.vertices * scale), device="cpu")
    field = DistanceField.of(box, 0.5, device="cpu")
    for ask in (lambda p: signed_distance(p, box, device="cpu"), lambda p: field.at(p, device="cpu")):
        with pytest.raises(InputError, match="row 1 is above"):
            ask([[0.0, 0.0, 0.0], [0.0, 1e76, 0.0]])
        for number in (np.nan, np.inf):
            with pytest.raises(InputError, match="row 1 is not finite"):
                ask([[0.0, 0.0, 0.0], [number, 0.0, 0.0]])


def test_a_field_refuses_what_is_no_pose_or_spacing():
    box = generate.box([2.0, 2.0, 2.0])
    field = DistanceField.of(box, 0.5, device="cpu")
    skewed = np.eye(4)
    skewed[3] = [0.0, 0.0, 0.1, 1.0]
    for pose, reason in (
        (np.diag([1.0, 1.0, -1.0, 1.0]), "mirrors"),
        (skewed, "last row"),
        (np.diag([2.0, 1.0, 1.0, 1.0]), "not orthogonal"),
        (np.eye(4)[None], r"shape \(4, 4\)"),
    ):
        with pytest.raises(InputError, match=reason):
            field.at([[0.0, 0.0, 0.0]], pose, device="cpu")
    for spacing in (None, "a", 0.0, np.nan):
        with pytest.raises(InputError, match="spacing must be a positive length"):
            DistanceField.of(box, spacing, device="cpu")  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="margin must be a length"):
        DistanceField.of(box, 0.1, margin=-1.0, device="cpu")
    with pytest.raises(InputError, match="not of a NoneType"):
        DistanceField.of(None, 0.1, device="cpu")  # pyright: ignore[reportArgumentType]
    for spacing in (1e-30, 1e-300):
        with pytest.raises(CapacityError, match="samples"):
            DistanceField.of(box, spacing, device="cpu")


@pytest.mark.feature("F-L-76")
@pytest.mark.parametrize("name", ["box", "torus", "ball"])
def test_the_sampled_field_of_a_tool_is_right_within_its_bound(name, rng):
    mesh = MESHES[name]
    spacing = 0.03 * mesh.extent
    field = DistanceField.of(mesh, spacing, margin=0.1 * mesh.extent, device="cpu")
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    turn *= np.sign(np.linalg.det(turn))
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = turn, [3.0, -1.0, 0.5]
    local = rng.uniform(mesh.bounds[0] - field.margin, mesh.bounds[1] + field.margin, (3000, 3))
    distance, gradient = field.at(local @ turn.T + pose[:3, 3], pose, device="cpu")
    expected = signed_distance(local, mesh, device="cpu")
    assert np.isfinite(distance).all()
    assert np.abs(distance - expected.distance).max() <= field.error
    assert np.abs(distance - expected.distance).mean() < 0.2 * field.error
    outside = expected.distance > 2.0 * spacing
    along = ((gradient[outside] @ turn) * expected.normal[outside]).sum(axis=1)
    assert np.median(along) > 0.98
    far, none = field.at([[1e3, 0.0, 0.0]], device="cpu")
    assert far[0] == np.inf
    assert not none.any()
