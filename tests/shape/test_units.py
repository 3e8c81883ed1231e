"""Units of mesh files and maps: what says its unit is converted, what does not is taken as metres and doubted."""

from __future__ import annotations

import sys
import types
import warnings
import zipfile

import numpy as np
import pytest
import trimesh
from click.testing import CliRunner

import tangere as tg
from tangere.cli import main
from tangere.runtime import InputError
from tangere.shape.heightfield import Heightfield
from tangere.shape.heightfield.geographic import metres_per_degree
from tangere.shape.mesh import Mesh, doubted_units

SIDES = (30.0, 20.0, 10.0)


def saved(path, sides=SIDES) -> None:
    """A box from the origin in whatever unit, as trimesh writes it."""
    box = trimesh.creation.box(sides)
    box.apply_translation(np.array(sides) / 2.0)
    box.export(path)


def rewritten_3mf(path, unit: str) -> None:
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content.replace(b'unit="millimeter"', f'unit="{unit}"'.encode()))


@pytest.mark.parametrize(
    ("unit", "metres"), [("millimeter", 1e-3), ("inch", 0.0254), ("foot", 0.3048), ("micron", 1e-6), ("meter", 1.0)]
)
def test_a_3mf_file_is_converted_from_the_unit_it_says(unit, metres, tmp_path):
    pytest.importorskip("lxml")
    saved(tmp_path / "box.3mf")
    rewritten_3mf(tmp_path / "box.3mf", unit)
    mesh = Mesh.load(tmp_path / "box.3mf")
    assert np.allclose(mesh.bounds[1], np.array(SIDES) * metres, rtol=1e-6)
    assert ("converted" in " ".join(mesh.report.notes)) == (metres != 1.0)
    assert "assumed" not in mesh.report.units


@pytest.mark.parametrize(("metre", "metres"), [("0.01", 0.01), ("0.0254", 0.0254), ("1", 1.0)])
def test_a_collada_file_is_converted_from_the_unit_it_says(metre, metres, tmp_path):
    pytest.importorskip("collada")
    saved(tmp_path / "box.dae")
    text = (tmp_path / "box.dae").read_text()
    assert "<unit" not in text
    (tmp_path / "box.dae").write_text(text.replace("<up_axis>", f'<unit name="told" meter="{metre}"/><up_axis>', 1))
    assert np.allclose(Mesh.load(tmp_path / "box.dae").bounds[1], np.array(SIDES) * metres, rtol=1e-6)


def test_a_gltf_file_is_in_metres(tmp_path):
    saved(tmp_path / "box.glb")
    mesh = Mesh.load(tmp_path / "box.glb")
    assert np.array_equal(mesh.bounds[1], SIDES)
    assert mesh.report.units == "metres"


@pytest.mark.parametrize("suffix", ["stl", "ply", "obj", "off"])
def test_files_that_do_not_say_are_metres_unless_told(suffix, tmp_path):
    saved(tmp_path / f"box.{suffix}")
    plain, told = Mesh.load(tmp_path / f"box.{suffix}"), Mesh.load(tmp_path / f"box.{suffix}", units="mm")
    assert np.array_equal(plain.bounds[1], SIDES)
    assert "assumed" in plain.report.units
    assert np.array_equal(told.vertices, plain.vertices / 1000.0)  # 30 mm are 0.03 m to the last bit
    assert told.report.units == "millimetres"
    assert "lengths converted from millimetres to metres" in told.report.notes
    assert np.allclose(Mesh.load(tmp_path / f"box.{suffix}", units="inch").bounds[1], np.array(SIDES) * 0.0254)


def test_units_that_nobody_knows_are_refused_by_name(tmp_path):
    saved(tmp_path / "box.stl")
    with pytest.raises(InputError, match="units must be one of m, mm, cm, um, km, inch, ft, not 'furlong'"):
        Mesh.load(tmp_path / "box.stl", units="furlong")
    with pytest.raises(InputError, match="units must be one of"):
        Mesh.load(tmp_path / "box.stl", units=1e-3)  # pyright: ignore
    (tmp_path / "part.step").write_text("")
    with pytest.raises(InputError, match="a STEP file says its unit"):
        Mesh.load(tmp_path / "part.step", units="mm")


def crossing() -> tg.Path:
    poses = np.tile(np.eye(4), (2, 1, 1))
    poses[:, 0, 3] = [-3.0, -2.0]
    return tg.Path(poses)


def test_sizes_that_differ_300_fold_warn_once_by_name_if_a_file_did_not_say_its_unit(tmp_path):
    saved(tmp_path / "block.stl", (500.0, 500.0, 500.0))
    part = tg.generate.box((0.5, 0.5, 0.5), name="shaft")
    with pytest.warns(UserWarning, match=r"'block.stl' .* 1000 times as large as 'shaft'.*units='mm'"):
        tg.check_path(part, Mesh.load(tmp_path / "block.stl"), crossing(), device="cpu")
    block = Mesh.load(tmp_path / "block.stl")
    with pytest.warns(UserWarning, match=r"block\.stl"):
        tg.first_contact(part.moving(tg.Linear(part.vertices - 1.0)), block, device="cpu")
    with pytest.warns(UserWarning, match=r"block\.stl"):
        tg.least_clearance(part, Mesh.load(tmp_path / "block.stl"), device="cpu")
    with warnings.catch_warnings(action="error"):
        tg.first_contact(part.moving(tg.Linear(part.vertices - 2.0)), block, device="cpu")
        told = Mesh.load(tmp_path / "block.stl", units="mm")
        tg.check_path(part, told, crossing(), device="cpu")
        large = tg.generate.box((500.0, 500.0, 500.0))  # made, not loaded: its lengths are what they are
        tg.first_contact(part.moving(tg.Linear(part.vertices - 1.0)), large, device="cpu")


def test_bodies_of_like_sizes_and_files_that_say_their_unit_are_not_doubted(tmp_path):
    saved(tmp_path / "box.stl", (40.0, 20.0, 10.0))
    small = tg.generate.icosphere(radius=0.01)
    assert doubted_units([Mesh.load(tmp_path / "box.stl", units="m"), small]) is None
    assert doubted_units(Mesh.load(tmp_path / "box.stl"), tg.generate.icosphere(radius=5.0)) is None
    large = Mesh.load(tmp_path / "box.stl")
    assert "box.stl" in (doubted_units(large, small) or "")
    assert doubted_units(large, small) is None  # told before


def test_a_mesh_that_was_moved_or_copied_knows_its_file_still(tmp_path):
    import pickle

    saved(tmp_path / "box.stl")
    mesh = Mesh.load(tmp_path / "box.stl")
    for other in (mesh.at(np.diag([-1.0, 1.0, 1.0, 1.0])), mesh.replace(vertices=mesh.vertices + 1.0)):
        assert other.source == mesh.source
    assert pickle.loads(pickle.dumps(mesh)).source == mesh.source


@pytest.fixture
def parts(tmp_path):
    """A shaft in metres (.glb) and a block in millimetres (.stl) that it runs into."""
    shaft = trimesh.creation.box((0.03, 0.01, 0.01))
    shaft.export(tmp_path / "shaft.glb")
    block = trimesh.creation.box((20.0, 20.0, 20.0))
    block.apply_translation((100.0, 0.0, 0.0))
    block.export(tmp_path / "block.stl")
    poses = np.tile(np.eye(4), (2, 1, 1))
    poses[1, 0, 3] = 0.1
    tg.Path(poses).save(tmp_path / "way.csv")
    return tmp_path


def check(folder, *more: str):
    files = [str(folder / name) for name in ("shaft.glb", "block.stl", "way.csv")]
    return CliRunner().invoke(main, ["check", files[0], "--against", files[1], "--path", files[2], *more])


def test_the_command_takes_units_of_the_files_that_do_not_say(parts):
    told = check(parts, "--units", "mm")
    assert told.exit_code == 1  # the block begins at 90 mm, the shaft ends at 15 mm and goes 100 mm
    assert "contact at t = 0.74" in told.stdout or "contact at t = 0.75" in told.stdout
    assert "block.stl" not in told.stderr


def test_the_command_says_which_file_may_have_another_unit(parts):
    guessed = check(parts)
    assert guessed.exit_code == 0
    assert "'block.stl'" in guessed.stderr
    assert "--units mm" in guessed.stderr
    assert guessed.stderr.count("block.stl") == 2  # by name and by file, and only once


@pytest.mark.parametrize("command", ["info", "convert", "view", "first-contact"])
def test_other_commands_take_units_too(command, parts):
    more = ["--png", str(parts / "a.png")] if command == "view" else []
    done = CliRunner().invoke(main, [command, str(parts / "block.stl"), "--units", "mm", *more])
    assert done.exit_code == 0, done.output
    if command == "info":
        assert "millimetres" in done.stdout
    if command == "convert":
        loaded = CliRunner().invoke(main, ["info", str(parts / "block.npz"), "--json"])
        assert '"extent": 0.0346' in loaded.stdout


# -- maps ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("latitude", "east", "north"),  # NGA, length of a degree of longitude and latitude on WGS 84 [m]
    [(0.0, 111319.5, 110574.3), (15.0, 107550.5, 110649.0), (30.0, 96486.3, 110852.4), (45.0, 78846.8, 111131.8)],
)
def test_a_degree_is_as_long_as_tables_say(latitude, east, north):
    for side in (1.0, -1.0):
        assert metres_per_degree((7.0, side * latitude), 0.1, "map.tif") == pytest.approx((east, north), abs=2.0)


def test_a_map_too_high_for_one_scale_is_refused_with_the_zone_to_project_it_to():
    with pytest.raises(InputError, match=r"'map.tif'.*6 degrees of latitude.*gdalwarp -t_srs EPSG:32632"):
        metres_per_degree((7.75, 48.5), 3.0, "map.tif")
    with pytest.raises(InputError, match="EPSG:32719"):
        metres_per_degree((-70.0, -45.0), 3.0, "map.tif")
    with pytest.raises(InputError, match="between the poles"):
        metres_per_degree((0.0, 89.9), 1.0, "map.tif")


class Affine:
    """What rasterio calls the transform of a north-up map."""

    b = d = 0.0

    def __init__(self, west: float, north: float, step: float) -> None:
        self.c, self.f, self.a, self.e = west, north, step, -step


@pytest.fixture
def fake_map(monkeypatch, tmp_path):
    """A function that makes a map of 101 x 201 samples which a stand-in for rasterio reads."""

    def make(crs, west: float, north: float, step: float):
        class Source:
            transform = Affine(west, north, step)

            def __init__(self) -> None:
                self.crs = crs

            def __enter__(self):
                return self

            def __exit__(self, *_) -> None:
                pass

            def read(self, _band: int) -> np.ndarray:
                return np.zeros((101, 201), np.float32)

            def read_masks(self, _band: int) -> np.ndarray:
                return np.full((101, 201), 255, np.uint8)

        stand_in = types.SimpleNamespace(
            open=lambda _: Source(), errors=types.SimpleNamespace(RasterioError=RuntimeError)
        )
        monkeypatch.setitem(sys.modules, "rasterio", stand_in)
        (tmp_path / "map.tif").write_bytes(b"")
        return tmp_path / "map.tif"

    return make


def test_a_map_in_degrees_becomes_metres_around_its_middle(fake_map):
    degrees = types.SimpleNamespace(is_geographic=True)
    field = Heightfield.load(fake_map(degrees, 7.0, 45.0 + 0.5 * 101 / 1200, 1 / 1200))
    dx, dy = field.spacing
    assert dx == pytest.approx(78846.8 / 1200, rel=1e-4)
    assert dy == pytest.approx(111131.8 / 1200, rel=1e-4)
    assert np.allclose(field.bounds[:, :2].sum(axis=0), 0.0, atol=1e-6)  # its middle is the origin


def test_a_map_in_feet_becomes_metres_and_one_without_a_system_stays(fake_map):
    feet = types.SimpleNamespace(is_geographic=False, linear_units_factor=("US survey foot", 1200 / 3937))
    assert Heightfield.load(fake_map(feet, 0.0, 1000.0, 10.0)).spacing == pytest.approx((3.048006, 3.048006))
    assert Heightfield.load(fake_map(None, 0.0, 1000.0, 10.0)).spacing == (10.0, 10.0)


def test_a_map_in_web_mercator_becomes_metres_of_the_ground(fake_map):
    """As large as the same piece of land in degrees."""
    mercator = types.SimpleNamespace(
        is_geographic=False, to_epsg=lambda: 3857, linear_units_factor=("metre", 1.0), is_projected=True
    )
    latitude, step = 48.0, 1e-4
    north = 6378137.0 * np.log(np.tan(np.pi / 4 + np.radians(latitude) / 2))
    unit = np.radians(step) * 6378137.0
    field = Heightfield.load(fake_map(mercator, 900_000.0, north + 50.5 * unit, unit))
    degrees = types.SimpleNamespace(is_geographic=True)
    same = Heightfield.load(fake_map(degrees, 8.0, latitude + 50.5 * step, step))
    assert field.spacing[0] == pytest.approx(same.spacing[0], rel=1e-6)
    assert field.spacing[1] == pytest.approx(same.spacing[1] * np.cos(np.radians(latitude)), rel=1e-6)
    assert np.allclose(field.bounds[:, :2].sum(axis=0), 0.0, atol=1e-6)
    with pytest.raises(InputError, match=r"too high .* degrees of latitude"):
        Heightfield.load(fake_map(mercator, 900_000.0, north, 10_000.0))
    utm = types.SimpleNamespace(is_geographic=False, to_epsg=lambda: 32632, linear_units_factor=("metre", 1.0))
    assert Heightfield.load(fake_map(utm, 5e5, 5e6, 30.0)).spacing == (30.0, 30.0)


@pytest.mark.parametrize("place", [(8.0, 48.0), (-70.0, -33.0), (0.0, 60.0)])
def test_a_real_geotiff_in_web_mercator_is_as_large_as_the_same_land_in_utm(place, tmp_path):
    """The other projection is PROJ's, through rasterio."""
    rasterio = pytest.importorskip("rasterio")
    warp = pytest.importorskip("rasterio.warp")
    longitude, latitude = place
    zone = (32600 if latitude >= 0 else 32700) + int((longitude + 180) // 6) + 1
    (x,), (y,) = warp.transform("EPSG:4326", "EPSG:3857", [longitude], [latitude])
    kind = {"driver": "GTiff", "height": 41, "width": 41, "count": 1, "dtype": "float32", "crs": "EPSG:3857"}
    transform = rasterio.transform.from_origin(x - 20.5 * 30.0, y + 20.5 * 30.0, 30.0, 30.0)
    with rasterio.open(tmp_path / "dem.tif", "w", transform=transform, **kind) as file:
        file.write(np.zeros((1, 41, 41), np.float32))
    ends = [x - 600.0, x + 600.0, x, x], [y, y, y - 600.0, y + 600.0]
    east, north = (np.array(column) for column in warp.transform("EPSG:3857", f"EPSG:{zone}", *ends))
    across = np.hypot(np.diff(east)[[0, 2]], np.diff(north)[[0, 2]])
    low, high = Heightfield.load(tmp_path / "dem.tif").bounds
    assert (high - low)[:2] == pytest.approx(across, rel=1.5e-3)  # the scale of UTM is 0.9996 to 1.001


def test_a_real_geotiff_in_degrees_becomes_metres(tmp_path):
    rasterio = pytest.importorskip("rasterio")
    kind = {"driver": "GTiff", "height": 40, "width": 60, "count": 1, "dtype": "float32", "crs": "EPSG:4326"}
    transform = rasterio.transform.from_origin(7.0, 46.0, 1 / 1200, 1 / 1200)
    with rasterio.open(tmp_path / "dem.tif", "w", transform=transform, **kind) as file:
        file.write(np.zeros((1, 40, 60), np.float32))
    dx, dy = Heightfield.load(tmp_path / "dem.tif").spacing
    assert 60.0 < dx < 70.0 < 90.0 < dy < 95.0
