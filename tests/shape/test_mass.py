"""Mass properties against closed forms, Monte Carlo and the laws of rigid motion."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tangere.runtime import InputError
from tangere.shape import generate
from tangere.shape.mesh import Mesh

sizes = st.floats(0.1, 10.0)
coordinates = st.floats(-100.0, 100.0)


def box_inertia(mass, size):
    x, y, z = np.square(size)
    return mass / 12.0 * np.diag([y + z, x + z, x + y])


def turned(mesh, axis, angle, offset):
    axis = np.asarray(axis) / np.linalg.norm(axis)
    cross = np.cross(np.eye(3), -axis)
    rotation = np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = rotation, offset
    return rotation, mesh.at(pose)


@given(sizes, sizes, sizes, coordinates, coordinates, coordinates, st.floats(0.1, 1e4))
def test_a_box_anywhere_has_the_textbook_values(x, y, z, a, b, c, density):
    mesh = generate.box((x, y, z))
    moved = mesh.replace(vertices=mesh.vertices + [a, b, c])
    solid = moved.mass_properties(density)
    mass = density * x * y * z
    assert solid.volume == pytest.approx(x * y * z, rel=1e-9)
    assert solid.mass == pytest.approx(mass, rel=1e-9)
    assert np.allclose(solid.centre, [a, b, c], rtol=1e-12, atol=1e-10)
    expected = box_inertia(mass, (x, y, z))
    assert np.allclose(solid.inertia, expected, rtol=1e-8, atol=1e-8 * expected.max())


@given(st.tuples(*[st.floats(-1, 1)] * 3).filter(lambda v: np.linalg.norm(v) > 0.1), st.floats(-4, 4))
def test_turning_a_solid_turns_its_inertia(axis, angle):
    mesh = generate.comb(3)
    rotation, moved = turned(mesh, axis, angle, [3.0, -2.0, 1.0])
    before, after = mesh.mass_properties(2.0), moved.mass_properties(2.0)
    assert after.volume == pytest.approx(before.volume, rel=1e-12)
    assert np.allclose(after.centre, rotation @ before.centre + [3.0, -2.0, 1.0], atol=1e-12)
    assert np.allclose(after.inertia, rotation @ before.inertia @ rotation.T, atol=1e-13)


def test_a_tetrahedron_has_its_exact_volume_and_centre():
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3]], float)
    solid = Mesh(corners, [[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]]).mass_properties()
    assert solid.volume == pytest.approx(1.0, rel=1e-15)
    assert np.allclose(solid.centre, corners.mean(axis=0), rtol=1e-15)


def test_finer_spheres_tend_to_the_ball():
    errors = []
    for subdivisions in (1, 2, 3, 4):
        solid = generate.icosphere(subdivisions, radius=2.0).mass_properties(3.0)
        assert np.allclose(solid.centre, 0.0, atol=1e-14)
        assert np.allclose(solid.inertia, solid.inertia[0, 0] * np.eye(3), rtol=1e-10, atol=1e-10)
        ball = 4.0 / 3.0 * np.pi * 8.0
        errors.append([1.0 - solid.volume / ball, 1.0 - solid.inertia[0, 0] / (0.4 * 3.0 * ball * 4.0)])
    errors = np.array(errors)
    assert (errors > 0.0).all()
    assert (errors[1:] < errors[:-1] / 3.0).all()  # second order: a quarter per halving
    assert (errors[-1] < 0.01).all()


def test_inertia_matches_monte_carlo_integration(rng):
    mesh = generate.comb(2)  # two bars on a back: points inside are told by comparison of coordinates
    solid = mesh.mass_properties()
    points = rng.uniform(*mesh.bounds, size=(400_000, 3))
    x, y = points[:, 0], points[:, 1]
    inside = points[(y < 0.2) | (x < 0.1) | (x > 0.2)]
    volume = np.prod(mesh.bounds[1] - mesh.bounds[0]) * len(inside) / len(points)
    arm = inside - inside.mean(axis=0)
    inertia = volume * (np.mean((arm**2).sum(axis=1)) * np.eye(3) - arm.T @ arm / len(arm))
    assert solid.volume == pytest.approx(volume, rel=5e-3)
    assert np.allclose(solid.centre, inside.mean(axis=0), atol=2e-3)
    assert np.allclose(solid.inertia, inertia, atol=5e-3 * inertia.max())


def test_far_from_the_origin_the_inertia_keeps_its_digits():
    mesh = generate.box()
    solid = mesh.replace(vertices=mesh.vertices + 1e6).mass_properties()
    assert np.allclose(solid.inertia, np.eye(3) / 6.0, atol=1e-9)


def test_a_hollow_solid_weighs_its_wall():
    outer, inner = generate.box((2.0, 2.0, 2.0)), generate.box()
    cavity = Mesh(inner.vertices, inner.faces[:, ::-1])
    assert Mesh.join([outer, cavity]).mass_properties().volume == pytest.approx(7.0)


@pytest.mark.parametrize(
    ("mesh", "message"),
    [
        (generate.sheet(), "Mesh 'sheet': has no mass properties because it is open: 4 edges have one triangle only"),
        (
            Mesh(generate.box().vertices, np.concatenate([generate.box().faces] * 2), name="twice"),
            "Mesh 'twice': has no mass properties because 18 edges have more than two triangles",
        ),
        (
            Mesh(generate.box().vertices, [generate.box().faces[0][::-1], *generate.box().faces[1:]], name="box"),
            "Mesh 'box': has no mass properties because it is not oriented: at 3 edges two triangles disagree",
        ),
        (
            Mesh(generate.box().vertices, generate.box().faces[:, ::-1], name="inside out"),
            "Mesh 'inside out': encloses a volume of -1; its triangles must face outwards",
        ),
        (
            Mesh(generate.box().vertices * [1, 1, 0], generate.box().faces, name="flat"),
            "Mesh 'flat': encloses a volume of 0",
        ),
    ],
    ids=["open", "crowded", "unoriented", "inside out", "flat"],
)
def test_what_is_no_solid_has_no_mass_and_says_why(mesh, message):
    with pytest.raises(InputError, match=message):
        mesh.mass_properties()


@pytest.mark.parametrize("density", [0.0, -1.0, np.nan, np.inf])
def test_a_density_must_be_positive(density):
    with pytest.raises(InputError, match="Mesh 'box': density must be positive"):
        generate.box().mass_properties(density)


def test_a_sheet_weighs_its_area_and_turns_like_a_plate():
    plate = generate.sheet(8, size=(2.0, 1.0))
    found = plate.sheet_mass_properties(3.0)
    assert found.mass == pytest.approx(6.0)
    assert found.volume == 0.0
    expected = np.diag([6.0 * 1.0 / 12.0, 6.0 * 4.0 / 12.0, 6.0 * 5.0 / 12.0])
    np.testing.assert_allclose(found.inertia, expected, atol=1e-14)


def test_a_sheet_weighs_as_many_points_spread_over_it(rng):
    ball = generate.bumpy_sphere(320)
    ball = ball.replace(vertices=ball.vertices + [7.0, -2.0, 4.0])
    corners = ball.vertices[ball.faces]
    weights = rng.dirichlet(np.ones(3), size=(len(corners), 1000))
    points = np.einsum("mki,mij->mkj", weights, corners).reshape(-1, 3)
    weight = np.repeat(ball.face_areas / 1000, 1000)
    mean = weight @ points / weight.sum()
    second = np.einsum("n,ni,nj->ij", weight, points - mean, points - mean)
    found = ball.sheet_mass_properties()
    assert found.mass == pytest.approx(ball.face_areas.sum())
    np.testing.assert_allclose(found.centre, mean, atol=5e-3)
    np.testing.assert_allclose(found.inertia, np.trace(second) * np.eye(3) - second, rtol=0.02, atol=0.02)


def test_a_sheet_without_area_says_so():
    line = Mesh([[0, 0, 0], [1, 0, 0], [2, 0, 0]], [[0, 1, 2]], name="line")
    with pytest.raises(InputError, match="no area"):
        line.sheet_mass_properties()
