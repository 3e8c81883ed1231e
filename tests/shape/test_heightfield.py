"""Heightfields: where vertices are, what cells are made of, files, edits, meshes."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest

from tangere.runtime import InputError, MissingExtraError
from tangere.shape.heightfield import Heightfield
from tangere.shape.heightfield.heightfield import HOLE, RECTANGLE, TRIANGLES


def random_field(rng, rows=7, columns=5, **options) -> Heightfield:
    return Heightfield(rng.normal(size=(rows + 1, columns + 1)), (0.5, 0.8), (3.0, -2.0, 1.5), **options)


@pytest.mark.feature("F-S-1")
def test_vertices_go_to_their_place_and_back_with_dx_and_dy_apart(rng):
    field = random_field(rng)
    vertices = field.vertices
    assert vertices.shape == (8, 6, 3)
    for i in range(8):
        for j in range(6):
            assert vertices[i, j] == pytest.approx(
                [3.0 + 0.5 * j, -2.0 + 0.8 * i, 1.5 + field.heights[i, j]], abs=1e-15
            )
    index = (vertices[..., :2] - field.origin[:2]) / field.spacing
    assert np.array_equal(np.rint(index[..., 0]), np.tile(np.arange(6), (8, 1)))
    assert np.array_equal(np.rint(index[..., 1]), np.tile(np.arange(8)[:, None], (1, 6)))
    assert field.height_at(vertices.reshape(-1, 3)) == pytest.approx(vertices[..., 2].ravel(), abs=1e-12)


@pytest.mark.feature("F-S-2")
def test_cells_are_rectangles_where_planar_and_level_along_an_axis():
    x, y = np.meshgrid(np.arange(4.0), np.arange(4.0))
    saddle = x * y
    for heights, kind in ((0.0 * x, RECTANGLE), (0.3 * x, RECTANGLE), (-2.0 * y, RECTANGLE), (x + y, TRIANGLES)):
        assert (Heightfield(heights).elements == kind).all()
    assert (Heightfield(saddle).elements[1:, 1:] == TRIANGLES).all()
    noise = np.random.default_rng(0).uniform(-1.0, 1.0, (4, 4))
    assert (Heightfield(0.3 * x + 1e-7 * noise).elements == RECTANGLE).all()
    assert (Heightfield(0.3 * x + 1e-4 * noise).elements == TRIANGLES).any()
    holes = np.zeros((3, 3), bool)
    holes[1, 2] = True
    assert np.argwhere(Heightfield(0.0 * x, holes=holes).elements == HOLE).tolist() == [[1, 2]]


@pytest.mark.feature("F-S-3")
def test_planes_pass_through_their_vertices_and_face_up(rng):
    field = Heightfield(rng.normal(0.0, 20.0, (9, 7)), (0.5, 0.8), (3.0, -2.0, 1.5))
    normals, offsets = field.planes()
    v = field.vertices
    corners = (v[:-1, :-1], v[:-1, 1:], v[1:, :-1], v[1:, 1:])
    assert (normals[..., 2] > 0.0).all()
    for triangle, used in ((0, (0, 1, 2)), (1, (3, 2, 1))):
        for corner in used:
            s = offsets[..., triangle] - (normals[..., triangle, :] * corners[corner]).sum(-1)
            assert np.abs(s).max() < 1e-12


def test_height_between_vertices_is_that_of_the_triangle_cut_from_v1_to_v2():
    field = Heightfield([[0.0, 1.0], [1.0, 5.0]])
    assert field.height_at([[0.5, 0.5], [0.25, 0.25], [0.75, 0.75], [1.0, 1.0]]).tolist() == [1.0, 0.5, 3.0, 5.0]
    assert np.isnan(field.height_at([[-0.1, 0.5], [0.5, 1.1], [np.nan, 0.0]])).all()


def test_the_mesh_has_the_surface_and_leaves_holes_out(rng):
    holes = np.zeros((7, 5), bool)
    holes[2, 3] = True
    mesh = random_field(rng, holes=holes).to_mesh()
    assert len(mesh.faces) == 2 * (35 - 1)
    assert (mesh.face_normals[:, 2] > 0.0).all()
    level = (mesh.face_areas * mesh.face_normals[:, 2]).sum()  # the area seen from above
    assert level == pytest.approx(34 * 0.5 * 0.8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_npz_keeps_everything_and_npy_the_heights(rng, tmp_path, dtype):
    field = Heightfield(rng.normal(size=(5, 4)).astype(dtype), (0.5, 0.8), (1.0, 2.0, 3.0), rng.random((4, 3)) < 0.4)
    field.save(tmp_path / "a.npz")
    read = Heightfield.load(tmp_path / "a.npz")
    assert read.heights.dtype == dtype
    assert np.array_equal(read.heights, field.heights)
    assert (read.spacing, read.origin) == (field.spacing, field.origin)
    assert np.array_equal(read.holes, field.holes)
    Heightfield(field.heights, 0.5, (1.0, 2.0, 3.0)).save(tmp_path / "a.npy")
    assert np.array_equal(Heightfield.load(tmp_path / "a.npy", spacing=2.0).heights, field.heights)
    assert np.array_equal(pickle.loads(pickle.dumps(field)).heights, field.heights)


@pytest.mark.parametrize("told", [(), ("spacing",), ("origin",), ("spacing", "origin")])
def test_a_16_bit_picture_keeps_heights_to_half_a_step_and_where_they_are(told, rng, tmp_path):
    pytest.importorskip("PIL")
    field = Heightfield(rng.normal(100.0, 1.0, size=(9, 6)), (0.5, 0.8), (3.0, -2.0, 1.5))
    field.save(tmp_path / "a.png")
    read = Heightfield.load(tmp_path / "a.png", **{name: getattr(field, name) for name in told})
    step = np.ptp(field.heights) / 65535
    assert np.abs(read.vertices - field.vertices).max() <= 0.5 * step + 1e-12


def test_a_picture_that_says_nothing_but_scale_and_offset_starts_at_the_origin(tmp_path):
    image, png = pytest.importorskip("PIL.Image"), pytest.importorskip("PIL.PngImagePlugin")
    text = png.PngInfo()
    for name, number in (("scale", "0.5"), ("offset", "-3")):
        text.add_text(name, number)
    image.fromarray(np.array([[4, 6], [0, 2]], np.uint16)).save(tmp_path / "a.png", pnginfo=text)
    assert Heightfield.load(tmp_path / "a.png").vertices[..., 2].tolist() == [[-3.0, -2.0], [-1.0, 0.0]]
    moved = Heightfield.load(tmp_path / "a.png", origin=(7.0, 8.0, 10.0), scale=1.0)
    assert moved.vertices[0].tolist() == [[7.0, 8.0, 7.0], [8.0, 8.0, 9.0]]
    text.add_text("origin", "here")
    image.fromarray(np.zeros((2, 2), np.uint16)).save(tmp_path / "b.png", pnginfo=text)
    with pytest.raises(InputError, match=r"'b\.png': the text beside its heights is wrong"):
        Heightfield.load(tmp_path / "b.png")


@pytest.mark.parametrize("name", ["a.npy", "a.png"])
def test_holes_are_not_lost_in_files_that_cannot_keep_them(name, rng, tmp_path):
    with pytest.raises(InputError, match=rf"{name}': there are holes, which only .npz keeps"):
        random_field(rng, holes=np.ones((7, 5), bool)).save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_geotiff_brings_its_spacing_and_its_origin_and_makes_holes_of_nodata(rng, tmp_path):
    rasterio = pytest.importorskip("rasterio")
    heights = rng.normal(size=(4, 3)).astype(np.float32)
    heights[0, 0] = -9999.0
    transform = rasterio.transform.from_origin(100.0, 200.0, 2.0, 5.0)
    kind = {"driver": "GTiff", "height": 4, "width": 3, "count": 1, "dtype": "float32", "nodata": -9999.0}
    with rasterio.open(tmp_path / "a.tif", "w", transform=transform, **kind) as file:
        file.write(heights, 1)
    field = Heightfield.load(tmp_path / "a.tif")
    assert field.spacing == (2.0, 5.0)
    assert field.origin == (101.0, 182.5, 0.0)
    assert np.array_equal(field.heights[0], heights[-1])
    assert np.argwhere(field.holes).tolist() == [[2, 0]]


@pytest.mark.parametrize(("package", "file"), [("rasterio", "a.tif"), ("PIL", "a.png")])
def test_a_missing_package_is_told_by_name(package, file, tmp_path, monkeypatch):
    (tmp_path / file).write_bytes(b"")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match="pip install"):
        Heightfield.load(tmp_path / file)


def test_an_edit_is_a_new_field_and_leaves_the_old_one_alone(rng):
    field = random_field(rng)
    before = field.heights.copy()
    dug = field.edit((2, 1), np.full((2, 3), -7.0))
    assert np.array_equal(field.heights, before)
    assert (dug.heights[2:4, 1:4] == -7.0).all()
    assert (dug.heights != before).sum() == 6
    with pytest.raises(ValueError, match="read-only"):
        dug.heights[0, 0] = 1.0
    with pytest.raises(AttributeError, match="immutable"):
        dug.spacing = (1.0, 1.0)


def test_an_edit_takes_ground_away_and_puts_it_back(rng):
    field = random_field(rng)
    shaft = field.edit((2, 1), holes=np.ones((2, 3), bool))
    assert field.holes is None
    assert shaft.holes.sum() == shaft.holes[2:4, 1:4].sum() == 6
    assert shaft.heights is field.heights
    filled = shaft.edit((2, 1), np.full((3, 3), 9.0), holes=np.zeros((2, 2), bool))
    assert np.argwhere(filled.holes).tolist() == [[2, 3], [3, 3]]
    assert filled.height_at([3.0 + 0.5 * 2, -2.0 + 0.8 * 3]) == 10.5
    assert filled.edit((0, 0), holes=np.zeros(field.shape, bool)).holes is None
    with pytest.raises(InputError, match="holes must be bool"):
        field.edit((2, 1), np.zeros((3, 3)), holes=np.ones((3, 3), bool))
    with pytest.raises(InputError, match="holes must be bool"):
        field.edit((2, 1), holes=np.ones((2, 2)))
    with pytest.raises(InputError, match="window"):
        field.edit((6, 0), holes=np.ones((2, 2), bool))
    with pytest.raises(InputError, match="an edit needs"):
        field.edit((0, 0))


def test_the_height_under_one_point_is_one_number_and_other_shapes_are_refused(rng):
    field = random_field(rng)
    points = rng.uniform([3.0, -2.0], [5.5, 3.6], (4, 5, 2))
    heights = field.height_at(points)
    assert heights.shape == (4, 5)
    assert heights[1, 2] == field.height_at(points[1, 2]) == field.height_at([*points[1, 2], 77.0])
    assert field.height_at(np.zeros((0, 2))).shape == (0,)
    for wrong in (1.0, [], [1.0], np.zeros((2, 4))):
        with pytest.raises(InputError, match="points must have shape"):
            field.height_at(wrong)


def test_a_scale_that_flattens_the_ground_is_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((3, 3)))
    for wrong in (0, 0.0, np.nan, np.inf, "1"):
        with pytest.raises(InputError, match="scale"):
            Heightfield.load(tmp_path / "a.npy", scale=wrong)
    assert (Heightfield.load(tmp_path / "a.npy", scale=-2).heights == -2.0).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0.0, 1.0]],), "2 by 2"),
        ((np.zeros(5),), "shape"),
        (([[0.0, np.nan], [0.0, 0.0]],), r"height \(0, 1\)"),
        (([[0.0, 0.0], [0.0, np.inf]],), r"height \(1, 1\)"),
        ((np.zeros((3, 3)), 0.0), "spacing"),
        ((np.zeros((3, 3)), (1.0, -1.0)), "spacing"),
        ((np.zeros((3, 3)), 1.0, (0.0, 0.0)), "origin"),
        ((np.zeros((3, 3)), 1.0, (0.0, 0.0, np.nan)), "origin"),
        ((np.zeros((3, 3)), 1.0, (0.0, 0.0, 0.0), np.zeros((3, 3), bool)), "holes"),
        ((np.zeros((3, 3)), 1.0, (0.0, 0.0, 0.0), np.zeros((2, 2))), "holes"),
    ],
)
def test_bad_input_is_refused_by_name(arguments, message):
    with pytest.raises(InputError, match=message):
        Heightfield(*arguments)


def test_a_window_beyond_the_border_and_unknown_files_are_refused(rng, tmp_path):
    field = random_field(rng)
    with pytest.raises(InputError, match="window"):
        field.edit((7, 0), np.zeros((2, 2)))
    with pytest.raises(InputError, match="window"):
        field.edit((-1, 0), np.zeros((2, 2)))
    with pytest.raises(InputError, match="there is no file"):
        Heightfield.load(tmp_path / "none.npy")
    with pytest.raises(InputError, match="known types"):
        Heightfield.load(tmp_path / "none.doc")
    with pytest.raises(InputError, match="known types"):
        field.save(tmp_path / "none.tif")
    (tmp_path / "bad.npz").write_bytes(b"nothing")
    with pytest.raises(InputError, match="cannot be read"):
        Heightfield.load(tmp_path / "bad.npz")
