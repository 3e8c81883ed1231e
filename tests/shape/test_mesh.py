"""Meshes: what they take, refuse, share and compute."""

from __future__ import annotations

import pickle
import subprocess
import sys
from io import BytesIO

import numpy as np
import pytest
import warp as wp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tangere.runtime import InputError
from tangere.shape import generate
from tangere.shape.mesh import Mesh

TRIANGLE = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]


def pose(linear, offset=(0.0, 0.0, 0.0)):
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = linear, offset
    return matrix


def rotation(axis, angle):
    x, y, z = np.asarray(axis) / np.linalg.norm(axis)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross


@pytest.mark.parametrize(
    "vertices",
    [
        TRIANGLE,
        np.array(TRIANGLE, np.float32),
        np.array(TRIANGLE, int),
        np.asfortranarray(TRIANGLE),
        wp.array(TRIANGLE, dtype=wp.vec3d, device="cpu"),
    ],
    ids=["list", "float32", "int", "fortran", "warp"],
)
def test_positions_of_any_kind_become_float64(vertices):
    mesh = Mesh(vertices, [[0, 1, 2]])
    assert mesh.vertices.dtype == np.float64
    assert mesh.vertices.flags.c_contiguous
    assert mesh.vertices.tolist() == TRIANGLE
    assert mesh.faces.dtype == np.int32


def test_a_mesh_does_not_change_with_the_array_it_was_made_from():
    vertices, faces = np.array(TRIANGLE), np.array([[0, 1, 2]], np.int32)
    mesh = Mesh(vertices, faces)
    vertices[:] = 7.0
    faces[:] = 0
    assert mesh.vertices.tolist() == TRIANGLE
    assert mesh.faces.tolist() == [[0, 1, 2]]


def test_read_only_float64_positions_are_not_copied():
    vertices = np.array(TRIANGLE)
    vertices.flags.writeable = False
    assert Mesh(vertices, [[0, 1, 2]]).vertices is vertices


def test_nothing_about_a_mesh_can_be_set():
    mesh = generate.box()
    for array in (mesh.vertices, mesh.faces, mesh.edges, mesh.bounds, mesh.face_normals, mesh.face_areas):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    for attribute in ("vertices", "faces", "name", "topology", "cache"):
        with pytest.raises(AttributeError):
            setattr(mesh, attribute, None)


@pytest.mark.parametrize(
    ("vertices", "faces", "message"),
    [
        ([], [[0, 1, 2]], "Mesh 'door.stl': has no vertices"),
        (TRIANGLE, np.zeros((0, 3), int), "Mesh 'door.stl': has no triangles"),
        ([[0.0, 0.0]] * 3, [[0, 1, 2]], r"Mesh 'door.stl': vertices must have shape \(n, 3\), not \(3, 2\)"),
        (
            [[0, 0, 0], [1, 0, np.nan], [0, 1, 0]],
            [[0, 1, 2]],
            r"Mesh 'door.stl': vertex 1 is not finite: \[1.0, 0.0, nan\]",
        ),
        ([[0, 0, 0], [1, 0, 0], [np.inf, 1, 0]], [[0, 1, 2]], "Mesh 'door.stl': vertex 2 is not finite"),
        (TRIANGLE, [[0, 1, 2], [0, 1, 3]], "Mesh 'door.stl': triangle 1 uses vertex 3 but there are 3 vertices"),
        ([["a", 0, 0]], [[0, 0, 0]], "Mesh 'door.stl': vertices is not an array of numbers"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(vertices, faces, message):
    with pytest.raises(InputError, match=message) as caught:
        Mesh(vertices, faces, name="door.stl")
    assert "\n" not in str(caught.value)


def test_replaced_positions_share_the_topology_and_its_cache():
    mesh = generate.torus(512)
    mesh.topology.cache["tree"] = "built"
    mesh.cache["boxes"] = "built"
    other = mesh.replace(vertices=mesh.vertices * 2.0)
    assert other.topology is mesh.topology
    assert other.topology.cache["tree"] == "built"
    assert other.cache == {}
    assert other.name == mesh.name
    assert np.array_equal(other.vertices, mesh.vertices * 2.0)


def test_replacing_with_another_number_of_positions_is_refused():
    with pytest.raises(InputError, match="Mesh 'box': has 8 vertices, the new positions are 7"):
        generate.box().replace(vertices=np.zeros((7, 3)))


def test_a_pose_moves_every_vertex_and_shares_the_topology():
    mesh = generate.box((1.0, 2.0, 3.0))
    moved = mesh.at(pose(rotation([0, 0, 1], np.pi / 2), [10.0, 0.0, 0.0]))
    expected = np.stack([10.0 - mesh.vertices[:, 1], mesh.vertices[:, 0], mesh.vertices[:, 2]], axis=1)
    assert np.allclose(moved.vertices, expected, atol=1e-15)
    assert moved.topology is mesh.topology


def test_a_mirrored_solid_keeps_its_outside_outside():
    mesh = generate.comb(3)
    mirrored = mesh.at(pose(np.diag([-1.0, 1.0, 1.0])))
    assert mirrored.mass_properties().volume == pytest.approx(mesh.mass_properties().volume, rel=1e-14)
    assert np.array_equal(mirrored.edges, mesh.edges)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.eye(3), r"Mesh 'box': a pose must have shape \(4, 4\), not \(3, 3\)"),
        (np.full((4, 4), np.nan), "Mesh 'box': the pose contains numbers that are not finite"),
        (np.eye(4) + np.eye(4)[[3, 0, 1, 2]].T, "Mesh 'box': the last row of a pose must be 0 0 0 1"),
        (pose(np.diag([1.0, 0.0, 1.0])), "Mesh 'box': the pose cannot be inverted"),
        (pose([[1, 2, 3], [4, 5, 6], [7, 8, 9]]), "Mesh 'box': the pose cannot be inverted"),
    ],
)
def test_a_bad_pose_is_refused(matrix, message):
    with pytest.raises(InputError, match=message):
        generate.box().at(matrix)


def test_bounds_extent_areas_and_normals_of_a_box():
    mesh = generate.box((1.0, 2.0, 2.0))
    assert mesh.bounds.tolist() == [[-0.5, -1.0, -1.0], [0.5, 1.0, 1.0]]
    assert mesh.extent == 3.0
    assert mesh.face_areas.sum() == pytest.approx(2 * (2 + 2 + 4))
    outwards = np.einsum("ni,ni->n", mesh.face_normals, mesh.vertices[mesh.faces].mean(axis=1))
    assert (outwards > 0.0).all()
    assert (np.abs(mesh.face_normals).max(axis=1) == 1.0).all()
    assert np.allclose(mesh.vertex_normals, np.sign(mesh.vertices) / np.sqrt(3.0), atol=1e-15)


def test_vertex_normals_of_a_sphere_point_away_from_its_centre():
    mesh = generate.icosphere(3)
    assert np.allclose(mesh.vertex_normals, mesh.vertices, atol=0.01)


def test_normals_are_zero_where_there_is_no_direction():
    mesh = Mesh([*TRIANGLE, [2.0, 0.0, 0.0], [9.0, 9.0, 9.0]], [[0, 1, 3]])
    assert not mesh.face_normals.any()
    assert not mesh.vertex_normals.any()
    assert mesh.face_areas.tolist() == [0.0]


def test_the_report_says_what_is_unusual():
    report = Mesh([*TRIANGLE, [2.0, 0.0, 0.0], [9.0, 9.0, 9.0]], [[0, 1, 2], [0, 1, 3], [0, 1, 2]], name="odd").report
    assert (report.vertices, report.edges, report.triangles) == (5, 5, 3)
    assert report.zero_area_triangles == 1
    assert (report.closed, report.oriented, report.manifold, report.components) == (False, False, False, 1)
    text = repr(report)
    for part in (
        "Mesh 'odd': 5 vertices, 5 edges, 3 triangles",
        "open, not oriented, not manifold, 1 component",
        "from (0 0 0) to (9 9 9)",
        "triangles without area: 1",
        "vertices of no triangle: 1",
        "edges with more than two triangles: 1",
        "edges with one triangle only: 2",
    ):
        assert part in text


def test_a_clean_solid_has_nothing_to_note():
    report = generate.icosphere(1).report
    assert report.notes == ()
    assert report.closed
    assert report.welded_vertices == 0


def test_joined_meshes_lie_side_by_side_in_one():
    a, b = generate.box(), generate.icosphere(1)
    joined = Mesh.join([a, b, a], name="both")
    assert joined.name == "both"
    assert len(joined.vertices) == 2 * len(a.vertices) + len(b.vertices)
    assert np.array_equal(
        joined.vertices[joined.faces],
        np.concatenate([a.vertices[a.faces], b.vertices[b.faces], a.vertices[a.faces]]),
    )
    assert joined.topology.component_count == 3
    with pytest.raises(InputError, match="there are no meshes to join"):
        Mesh.join([])
    for wrong, reason in (([a, None], "part 1 must be a Mesh, not NoneType"), (a, "must be a list of them, not Mesh")):
        with pytest.raises(InputError, match=f"Mesh 'mesh': .*{reason}"):
            Mesh.join(wrong)


def test_a_pickle_holds_the_arrays_and_nothing_else():
    mesh = generate.torus(512, name="ring")
    size = len(pickle.dumps(mesh))
    mesh.cache["tree"] = np.zeros(10_000)
    mesh.topology.cache["tree"] = np.zeros(10_000)
    assert mesh.report.closed
    assert len(pickle.dumps(mesh)) == size
    copy = pickle.loads(pickle.dumps(mesh))
    assert np.array_equal(copy.vertices, mesh.vertices)
    assert copy.topology.same_as(mesh.topology)
    assert (copy.name, copy.cache, copy.topology.cache) == ("ring", {}, {})
    assert not copy.vertices.flags.writeable
    assert not copy.faces.flags.writeable


def test_the_repr_names_the_mesh_and_its_size():
    assert repr(generate.box(name="door")) == "Mesh('door', 8 vertices, 12 triangles)"


@given(arrays(np.float64, (5, 3), elements=st.floats(-1e6, 1e6)))
def test_bounds_hold_every_vertex(vertices):
    mesh = Mesh(vertices, [[0, 1, 2], [2, 3, 4]])
    assert (mesh.bounds[0] <= vertices).all()
    assert (vertices <= mesh.bounds[1]).all()
    assert mesh.extent == pytest.approx(np.sqrt(((vertices.max(0) - vertices.min(0)) ** 2).sum()))


def test_importing_shapes_loads_neither_trimesh_nor_scipy():
    code = "import sys, tangere.shape; print({'trimesh', 'scipy'} & set(sys.modules))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "set()"


def test_a_notebook_gets_a_picture_and_facts_or_the_facts_alone(monkeypatch):
    image = pytest.importorskip("PIL.Image", reason="pictures need the extra [view]")
    mesh = generate.box((1.0, 2.0, 3.0), name="brick")
    with image.open(BytesIO(mesh._repr_png_())) as picture:
        assert picture.format == "PNG"
        assert picture.size[0] <= 640
    html = mesh._repr_html_()
    assert "data:image/png;base64," in html
    assert "closed, oriented" in html
    monkeypatch.setattr("tangere.view.notebook.picture", lambda *_, **__: (_ for _ in ()).throw(InputError("no")))
    plain = generate.box((1.0, 2.0, 3.0), name="brick")
    assert plain._repr_png_() is None
    assert "<img" not in plain._repr_html_()
    assert "12 triangles" in plain._repr_html_()
