"""Mesh files: what is written comes back, what is welded is said, what cannot be read is refused in one sentence."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from bench.shapes.pot import pot as loose_pot
from tangere.runtime import InputError
from tangere.shape import generate
from tangere.shape.mesh import Mesh, weld_vertices


def corners(mesh):
    return mesh.vertices[mesh.faces]


@pytest.mark.parametrize(("suffix", "error"), [("ply", 0.0), ("obj", 1e-17), ("off", 1e-17)])
def test_double_precision_formats_give_back_vertices_and_triangles_in_order(tmp_path, rng, suffix, error):
    mesh = generate.bumpy_sphere(980, seed=4, radius=np.pi * 1e3)
    mesh = mesh.replace(vertices=mesh.vertices + rng.normal(size=3))
    mesh.save(tmp_path / f"a.{suffix}")
    loaded = Mesh.load(tmp_path / f"a.{suffix}")
    assert np.abs(loaded.vertices - mesh.vertices).max() <= error
    assert np.array_equal(loaded.faces, mesh.faces)
    assert loaded.name == f"a.{suffix}"
    assert loaded.report.welded_vertices == 0


@pytest.mark.parametrize("suffix", ["stl", "glb"])
def test_single_precision_formats_give_back_every_triangle_rounded(tmp_path, suffix):
    mesh = generate.torus(bumps=0.1, grid=(24, 12))
    mesh.save(str(tmp_path / f"a.{suffix}"))
    loaded = Mesh.load(str(tmp_path / f"a.{suffix}"))
    assert np.array_equal(corners(loaded), corners(mesh).astype(np.float32))
    assert loaded.topology.is_closed
    assert len(loaded.vertices) == len(mesh.vertices)
    assert loaded.mass_properties().volume == pytest.approx(mesh.mass_properties().volume, rel=1e-6)


def test_an_stl_file_is_welded_and_the_report_says_so(tmp_path):
    mesh = generate.box()
    mesh.save(tmp_path / "box.stl")
    welded = Mesh.load(tmp_path / "box.stl")
    assert (len(welded.vertices), welded.report.welded_vertices) == (8, 28)
    assert "vertices welded on loading because equal: 28" in repr(welded.report)
    assert welded.topology.is_closed
    assert welded.replace(vertices=welded.vertices * 2).report.welded_vertices == 28

    soup = Mesh.load(tmp_path / "box.stl", weld=False)
    assert (len(soup.vertices), soup.report.welded_vertices) == (36, 0)
    assert np.array_equal(corners(soup), corners(welded))


def test_unshared_triangles_keep_their_own_vertices_without_welding(tmp_path):
    mesh = loose_pot(3000)
    mesh.save(tmp_path / "pot.ply")
    loaded = Mesh.load(tmp_path / "pot.ply", weld=False)
    assert np.array_equal(loaded.vertices, mesh.vertices)
    assert np.array_equal(loaded.faces, mesh.faces)


def test_welding_merges_equal_vertices_into_the_first_and_keeps_the_order(rng):
    points = rng.normal(size=(40, 3))
    copies = rng.integers(0, 40, size=200)
    vertices, faces = points[copies], rng.integers(0, 200, size=(500, 3))
    kept, renumbered = weld_vertices(vertices, faces)
    first_seen = list(dict.fromkeys(map(tuple, vertices.tolist())))
    assert kept.tolist() == [list(point) for point in first_seen]
    assert np.array_equal(kept[renumbered], vertices[faces])


def test_welding_leaves_neighbouring_numbers_apart_and_joins_both_zeros():
    vertices = np.array(
        [[0.0, 0, 0], [np.nextafter(0, 1), 0, 0], [-0.0, 0, 0], [1.0, 0, 0], [np.nextafter(1, 2), 0, 0]]
    )
    kept, faces = weld_vertices(vertices, np.array([[0, 1, 2], [2, 3, 4]]))
    assert len(kept) == 4
    assert faces.tolist() == [[0, 1, 0], [0, 2, 3]]


def test_welding_nothing_gives_back_the_same_arrays():
    mesh = generate.box()
    vertices, faces = weld_vertices(mesh.vertices, mesh.faces)
    assert vertices is mesh.vertices
    assert faces is mesh.faces


def test_a_scene_becomes_one_mesh_with_every_part_in_its_place(tmp_path):
    import trimesh

    move = np.eye(4)
    move[:3, 3] = [4.0, 0.0, 0.0]
    mirror = np.diag([1.0, 1.0, -1.0, 1.0])
    scene = trimesh.Scene()
    scene.add_geometry(trimesh.creation.box(extents=(1, 1, 1)))
    scene.add_geometry(trimesh.creation.box(extents=(2, 2, 2)), transform=move)
    scene.add_geometry(trimesh.creation.box(extents=(1, 1, 3)), transform=mirror @ np.linalg.inv(move))
    scene.export(tmp_path / "scene.glb")
    mesh = Mesh.load(tmp_path / "scene.glb")
    assert mesh.report.components == 3
    assert mesh.mass_properties().volume == pytest.approx(1.0 + 8.0 + 3.0)
    assert np.allclose(mesh.bounds, [[-4.5, -1.0, -1.5], [5.0, 1.0, 1.5]])


def test_quads_are_cut_into_triangles_and_normals_do_not_split_vertices(tmp_path):
    text = "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nvn 0 0 1\nvn 0 1 0\nf 1//1 2//1 3//2 4//2\n"
    (tmp_path / "quad.obj").write_text(text)
    mesh = Mesh.load(tmp_path / "quad.obj")
    assert mesh.vertices.tolist() == [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]
    assert len(mesh.faces) == 2
    assert mesh.face_areas.sum() == 1.0


def test_an_obj_file_with_materials_and_normals_is_one_clean_mesh(tmp_path):
    ball = generate.icosphere(1)
    lines = [f"v {x!r} {y!r} {z!r}" for x, y, z in ball.vertices.tolist()]
    lines += [f"vn {x!r} {y!r} {z!r}" for x, y, z in ball.face_normals.tolist()]
    for face, (a, b, c) in enumerate(ball.faces + 1):
        lines += [f"usemtl half{face // 40}"] * (face % 40 == 0)
        lines.append(f"f {a}//{face + 1} {b}//{face + 1} {c}//{face + 1}")
    (tmp_path / "ball.obj").write_text("\n".join(lines))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mesh = Mesh.load(tmp_path / "ball.obj")
    assert sorted(map(tuple, mesh.vertices.tolist())) == sorted(map(tuple, ball.vertices.tolist()))
    assert mesh.topology.is_closed
    assert mesh.mass_properties().volume == pytest.approx(ball.mass_properties().volume)


def test_zero_area_triangles_and_unused_vertices_survive_loading(tmp_path):
    mesh = Mesh([[0, 0, 0], [1, 0, 0], [2, 0, 0], [0, 1, 0], [5, 5, 5]], [[0, 1, 2], [0, 1, 3], [1, 1, 3]])
    mesh.save(tmp_path / "odd.ply")
    loaded = Mesh.load(tmp_path / "odd.ply")
    assert np.array_equal(loaded.vertices, mesh.vertices)
    assert np.array_equal(loaded.faces, mesh.faces)
    assert loaded.report.zero_area_triangles == 2


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match=r"Mesh 'none.stl': there is no file '.*none.stl'"):
        Mesh.load(tmp_path / "none.stl")
    with pytest.raises(InputError, match="there is no file"):
        Mesh.load(tmp_path)


@pytest.mark.parametrize("suffix", ["stl", "ply", "obj", "off", "glb", "png", "txt", ""])
@pytest.mark.parametrize("content", [b"", b"\x89PNG\r\n\x1a\n" + bytes(range(256)), b"hello, world\n" * 20])
def test_files_that_are_no_meshes_are_refused_in_one_sentence(tmp_path, suffix, content):
    path = tmp_path / f"foreign.{suffix}".rstrip(".")
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"^Mesh 'foreign.*': ") as caught:
        Mesh.load(path)
    assert "\n" not in str(caught.value)


def test_a_cloud_of_points_is_no_mesh(tmp_path):
    header = (
        "ply\nformat ascii 1.0\nelement vertex 2\nproperty float x\nproperty float y\nproperty float z\nend_header\n"
    )
    (tmp_path / "cloud.ply").write_text(header + "0 0 0\n1 1 1\n")
    with pytest.raises(InputError, match=r"Mesh 'cloud.ply': the file contains no triangles"):
        Mesh.load(tmp_path / "cloud.ply")


@pytest.mark.parametrize(
    ("vertex", "face", "message"),
    [
        ("nan 0 0", "3 0 1 2", "Mesh 'bad.ply': vertex 2 is not finite"),
        ("0 1 0", "3 0 1 3", "Mesh 'bad.ply': triangle 0 uses vertex 3 but there are 3 vertices"),
    ],
)
def test_bad_numbers_in_a_file_are_named(tmp_path, vertex, face, message):
    (tmp_path / "bad.ply").write_text(
        "ply\nformat ascii 1.0\nelement vertex 3\nproperty double x\nproperty double y\nproperty double z\n"
        f"element face 1\nproperty list uchar int vertex_indices\nend_header\n0 0 0\n1 0 0\n{vertex}\n{face}\n"
    )
    with pytest.raises(InputError, match=message):
        Mesh.load(tmp_path / "bad.ply")


def test_what_cannot_be_written_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"cannot write '.*a.docx': the known types are .glb, .obj, .off, .ply, .stl"):
        generate.box().save(tmp_path / "a.docx")
    for suffix in ("ply", "stl"):
        with pytest.raises(InputError, match=r"cannot write .*: No such file or directory"):
            generate.box().save(tmp_path / "missing" / f"a.{suffix}")


def test_two_frames_of_a_simulation_load_with_one_topology(data_folder):
    frames = [Mesh.load(data_folder / "meshes" / f"cloth_ball{frame}.ply") for frame in (92, 93)]
    assert frames[0].topology.same_as(frames[1].topology)
    assert [len(x) for x in (frames[0].vertices, frames[0].edges, frames[0].faces)] == [46_598, 138_825, 92_230]
    assert not np.array_equal(frames[0].vertices, frames[1].vertices)
    assert frames[0].report.welded_vertices == 0
