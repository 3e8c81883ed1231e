"""Tetrahedral meshes: orientation, surface, carried points, solids with exact counts, files, bad input."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest

from tangere.runtime import InputError, MissingExtraError
from tangere.shape import generate
from tangere.shape.mesh import Mesh
from tangere.shape.tets import TetMesh, solid_block, solid_knot, solid_torus

CORNERS = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])


def test_tetrahedra_are_turned_to_positive_volume():
    mesh = TetMesh(CORNERS, [[0, 2, 1, 3]])
    assert mesh.volumes == pytest.approx([1.0 / 6.0])
    assert sorted(mesh.tets[0]) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "solid",
    [
        solid_block((2, 3, 4), size=(1.0, 2.0, 3.0)),
        solid_block((2, 3, 4), size=(1.0, 2.0, 3.0), mirrored=True),
        solid_torus((12, 3)),
        solid_knot((40, 2)),
    ],
    ids=repr,
)
def test_the_surface_of_a_solid_is_closed_outward_and_holds_its_volume(solid):
    surface = solid.surface
    assert surface.topology.is_closed
    assert surface.topology.is_oriented
    assert surface.mass_properties().mass == pytest.approx(solid.volumes.sum())
    assert np.array_equal(surface.vertices, solid.vertices[solid.surface_vertices])


def test_a_mirrored_block_is_its_own_mirror_image_and_a_plain_one_is_not():
    def cut(block, turned):
        corners = block.vertices[block.tets] * turned
        return {frozenset(map(tuple, np.round(tet, 9) + 0.0)) for tet in corners}

    plain, mirrored = (solid_block((4, 2, 2), mirrored=way) for way in (False, True))
    for turned in ([-1, 1, 1], [1, -1, 1], [1, 1, -1]):
        assert cut(mirrored, turned) == cut(mirrored, [1, 1, 1])
        assert cut(plain, turned) != cut(plain, [1, 1, 1])


@pytest.mark.parametrize(("grid", "triangles"), [((40, 5), 1600), ((80, 10), 6400)])
def test_a_torus_has_the_surface_triangles_of_the_document(grid, triangles):
    assert len(solid_torus(grid).surface.faces) == triangles


def test_a_knot_has_the_surface_triangles_of_the_document():
    assert len(solid_knot((165, 3)).surface.faces) == 3960


def test_no_tetrahedron_of_a_torus_is_a_sliver():
    solid = solid_torus((24, 4))
    corners = solid.vertices[solid.tets]
    longest = np.linalg.norm(corners[:, :, None] - corners[:, None], axis=3).max(axis=(1, 2))
    assert (solid.volumes / longest**3).min() > 0.01


def test_carried_points_follow_an_affine_map_exactly(rng):
    solid = solid_torus((24, 4))
    points = generate.torus(grid=(40, 20), radius=5.0, tube=2.0).vertices
    corners, weights = solid.weights_at(points)
    assert weights.sum(axis=1) == pytest.approx(1.0)
    matrix, shift = rng.standard_normal((3, 3)), rng.standard_normal(3)
    moved = solid.vertices @ matrix.T + shift
    carried = (weights[:, :, None] * moved[corners]).sum(axis=1)
    assert np.allclose(carried, points @ matrix.T + shift, atol=1e-12)


def test_points_inside_have_no_negative_weights(rng):
    solid = solid_block((3, 3, 3))
    _, weights = solid.weights_at(rng.uniform(-0.49, 0.49, (200, 3)))
    assert weights.min() > -1e-12


def test_a_point_far_outside_is_refused():
    with pytest.raises(InputError, match=r"point 1 .* too far outside"):
        solid_block((1, 1, 1)).weights_at([[0.0, 0.0, 0.0], [9.0, 0.0, 0.0]])


def test_a_solid_can_be_moved_and_pickled():
    solid = solid_block((1, 1, 1)).at([[2, 0, 0, 5], [0, 1, 0, 0], [0, 0, -1, 0], [0, 0, 0, 1]])
    assert solid.volumes.sum() == pytest.approx(2.0)
    copy = pickle.loads(pickle.dumps(solid))
    assert np.array_equal(copy.vertices, solid.vertices)
    assert np.array_equal(copy.tets, solid.tets)
    with pytest.raises(AttributeError, match="immutable"):
        solid.name = "other"


@pytest.mark.parametrize(
    ("vertices", "tets", "message"),
    [
        (CORNERS, [[0, 1, 2, 4]], "tetrahedron 0 uses vertex 4 but there are 4"),
        (CORNERS, [[0, 1, 2]], r"shape \(m, 4\)"),
        (CORNERS, [[0.0, 1.0, 2.0, 3.0]], "whole numbers"),
        (CORNERS, [[0, 1, 2, 3], [0, 1, 1, 3]], "tetrahedron 1 has no volume"),
        (CORNERS * np.nan, [[0, 1, 2, 3]], "vertex 0 is not finite"),
        (CORNERS[:, :2], [[0, 1, 2, 3]], r"shape \(n, 3\)"),
    ],
)
def test_bad_tetrahedra_are_named(vertices, tets, message):
    with pytest.raises(InputError, match=message):
        TetMesh(vertices, tets)


def test_three_tetrahedra_on_one_face_have_no_surface():
    points = np.concatenate([CORNERS, [[0.3, 0.3, -1.0], [0.3, 0.3, 2.0]]])
    with pytest.raises(InputError, match="more than two tetrahedra share the face"):
        _ = TetMesh(points, [[0, 1, 2, 3], [0, 1, 2, 4], [0, 1, 2, 5]]).surface


@pytest.mark.parametrize("package", ["meshio", "pytetwild"])
def test_a_missing_package_is_named_with_its_extra(package, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / "a.msh").touch()
    with pytest.raises(MissingExtraError, match=package):
        TetMesh.load(tmp_path / "a.msh") if package == "meshio" else TetMesh.fill(generate.icosphere())


def test_a_file_of_tetrahedra_comes_back_as_it_was(tmp_path):
    meshio = pytest.importorskip("meshio")
    solid = solid_block((2, 1, 1))
    meshio.Mesh(solid.vertices, [("tetra", solid.tets)]).write(tmp_path / "block.vtk")
    again = TetMesh.load(tmp_path / "block.vtk")
    assert np.array_equal(again.tets, solid.tets)
    assert np.allclose(again.vertices, solid.vertices)
    with pytest.raises(InputError, match="no file"):
        TetMesh.load(tmp_path / "none.vtk")


class Mesher:
    """Stands for pytetwild: writes into its arrays, and knows one answer."""

    def __init__(self, vertices: np.ndarray, tets: np.ndarray) -> None:
        self._answer = vertices, tets

    def tetrahedralize(self, vertices: np.ndarray, faces: np.ndarray, **options) -> tuple[np.ndarray, np.ndarray]:
        assert vertices.flags.writeable
        assert faces.flags.writeable
        return self._answer


def test_holes_of_a_surface_are_closed_and_reported(monkeypatch):
    ball = generate.icosphere(subdivisions=2)
    corners = ball.faces[[0, 160]]  # two triangles that share no vertex
    assert len(np.unique(corners)) == 6
    pierced = Mesh(ball.vertices, np.delete(ball.faces, [0, 160], axis=0), name="ball")
    monkeypatch.setitem(sys.modules, "pytetwild", Mesher(CORNERS, np.array([[0, 1, 2, 3]])))
    assert TetMesh.fill(ball).report.notes == ()
    solid = TetMesh.fill(pierced)
    note = "holes of the surface that were closed: 2, along 6 edges with one triangle only"
    for same in (solid, solid.at(np.eye(4)), pickle.loads(pickle.dumps(solid))):
        assert same.report.notes == (note,)
    assert solid.report.volume == pytest.approx(float(solid.volumes.sum()))
    assert note in repr(solid.report)


def test_a_surface_that_encloses_nothing_cannot_be_filled(monkeypatch):
    monkeypatch.setitem(sys.modules, "pytetwild", Mesher(np.zeros((0, 3)), np.zeros((0, 4), int)))
    with pytest.raises(InputError, match="no inside to fill with tetrahedra: 12 of its edges"):
        TetMesh.fill(generate.sheet(18))


def test_a_ball_with_a_hole_is_filled_by_pytetwild(tmp_path, monkeypatch):
    pytest.importorskip("pytetwild")
    monkeypatch.chdir(tmp_path)
    ball = generate.icosphere(subdivisions=2)
    solid = TetMesh.fill(Mesh(ball.vertices, ball.faces[6:]), edge_length=0.4)
    assert float(solid.volumes.sum()) == pytest.approx(4.05, rel=0.03)
    assert "holes" in solid.report.notes[0]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("options", [{"grid": (2, 4)}, {"grid": (24, 0)}, {"tube": 6.0}, {"radius": -1.0}])
def test_impossible_tori_are_refused(options):
    with pytest.raises(InputError):
        solid_torus(**options)
