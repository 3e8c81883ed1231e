"""Assemblies from files: names, places, shapes that are shared, units, and what is wrong with a file."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import trimesh

import tangere as tg
from tangere.runtime import InputError
from tangere.shape import generate

URDF = """<?xml version="1.0"?>
<robot name="arm">
  <link name="base"><collision><geometry><box size="0.2 0.2 0.1"/></geometry></collision></link>
  <link name="tool"><collision><geometry><box size="0.1 0.1 0.1"/></geometry></collision></link>
  <joint name="turn" type="revolute"><parent link="base"/><child link="tool"/><origin xyz="0 0 0.1"/>
    <axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
</robot>
"""


def at(x: float, y: float = 0.0, z: float = 0.0) -> np.ndarray:
    placed = np.eye(4)
    placed[:3, 3] = x, y, z
    return placed


def as_trimesh(mesh: tg.Mesh) -> trimesh.Trimesh:
    return trimesh.Trimesh(mesh.vertices, mesh.faces, process=False)


@pytest.fixture
def scene_file(tmp_path):
    """A plate and, in an assembly of their own, two bolts of one shape and a mirrored, stretched block."""
    scene = trimesh.Scene(base_frame="world")
    plate, bolt = as_trimesh(generate.box([0.2, 0.2, 0.02])), as_trimesh(generate.prism(12, radius=0.01, height=0.05))
    scene.add_geometry(plate, node_name="plate", geom_name="plate")
    scene.graph.update(frame_from="world", frame_to="fasteners", matrix=at(0.0, 0.0, 0.02))
    for k, x in enumerate((-0.05, 0.05)):
        scene.add_geometry(
            bolt, node_name=f"bolt_{k}", geom_name=f"bolt_{k}", parent_node_name="fasteners", transform=at(x)
        )
    scene.add_geometry(
        as_trimesh(generate.box([0.02, 0.02, 0.02])),
        node_name="block",
        geom_name="block",
        parent_node_name="fasteners",
        transform=at(0.0, 0.08) @ np.diag([-1.0, 1.0, 2.0, 1.0]),
    )
    path = tmp_path / "machine.glb"
    scene.export(path)
    return path


def test_a_scene_keeps_names_tree_places_and_shared_shapes(scene_file):
    assembly = tg.Assembly.load(scene_file)
    assert assembly.name == "machine"
    assert sorted(part.name for part in assembly.parts) == ["block", "bolt_0", "bolt_1", "plate"]
    assert assembly["bolt_0"].path.endswith("fasteners/bolt_0")
    assert assembly["bolt_0"].shape is assembly["bolt_1"].shape
    assert len(assembly.shapes) == 3
    assert np.allclose(assembly["bolt_1"].pose, at(0.05, 0.0, 0.02), atol=1e-7)
    assert all(part.shape.report.closed for part in assembly.parts)
    block = assembly["block"].mesh
    assert np.allclose(block.bounds, [[-0.01, 0.07, 0.0], [0.01, 0.09, 0.04]], atol=1e-7)
    assert block.mass_properties().mass == pytest.approx(0.02**3 * 2.0, rel=1e-5)  # and faces outwards
    assert "4 parts of 3 shapes" in repr(assembly)
    hard = assembly.clashes(device="cpu").of("hard")
    found = {frozenset((row.name_a, row.name_b)) for row in hard}
    assert found == {frozenset(("plate", other)) for other in ("block", "bolt_0", "bolt_1")}


def test_a_folder_of_meshes_is_an_assembly_by_file_names_in_the_unit_that_is_told(tmp_path):
    for k in (10, 2, 1):
        tg.Mesh(1000.0 * generate.box([0.1, 0.1, 0.1]).at(at(0.2 * k)).vertices, generate.box().faces).save(
            tmp_path / f"part_{k}.ply"
        )
    (tmp_path / "readme.txt").write_text("not a part")
    assembly = tg.Assembly.load(tmp_path, units="mm")
    assert [part.name for part in assembly.parts] == ["part_1", "part_2", "part_10"]
    assert np.allclose(assembly["part_2"].mesh.bounds, [[0.35, -0.05, -0.05], [0.45, 0.05, 0.05]])


def test_the_links_of_a_robot_are_parts_where_its_joints_are_at_zero(tmp_path):
    pytest.importorskip("yourdfpy", reason="needs the extra [robot]")
    path = tmp_path / "arm.urdf"
    path.write_text(URDF)
    assembly = tg.Assembly.load(path)
    assert [part.path for part in assembly.parts] == ["arm/base", "arm/tool"]
    assert np.allclose(assembly["tool"].pose, at(0.0, 0.0, 0.1))
    assert [str(row.kind) for row in assembly.clashes(device="cpu")] == ["touching"]


def warehouse(module: str):
    """build123d, which writes STEP files, and a module of bd_warehouse, which has parts that others drew."""
    pytest.importorskip("cascadio", reason="needs the extra [cad]")
    build = pytest.importorskip("build123d", reason="build123d, which writes STEP files, is not installed")
    return build, pytest.importorskip(
        f"bd_warehouse.{module}", reason="bd_warehouse, which has parts, is not installed"
    )


def test_screws_and_nuts_from_a_step_file_keep_names_instances_and_tolerance(tmp_path):
    build, fastener = warehouse("fastener")
    screw = fastener.SocketHeadCapScrew(size="M6-1", length=20, simple=True)
    nut = fastener.HexNut(size="M6-1", simple=True)
    children = []
    for k, x in enumerate((-10, 10)):
        for label, thing, z in (("screw", screw, 5), ("nut", nut, -10.2)):
            child = copy.copy(thing)
            child.label = f"{label}_{k}"
            child.locate(build.Location((x, 0, z)))
            children.append(child)
    holes = [place * build.Cylinder(3.2, 20) for place in build.Locations((-10, 0), (10, 0)).locations]
    plate = build.Box(40, 20, 10) - holes
    plate.label = "plate"
    path = tmp_path / "stack.step"
    build.export_step(build.Compound(label="stack", children=[plate, *children]), str(path))
    assembly = tg.Assembly.load(path, tolerance=2e-5)
    assert sorted(part.name for part in assembly.parts) == ["nut_0", "nut_1", "plate", "screw_0", "screw_1"]
    assert assembly["screw_0"].path == "stack/screw_0"
    assert assembly["screw_0"].shape is assembly["screw_1"].shape
    assert assembly.chord_error == 2e-5
    found = assembly.clashes(device="cpu")
    assert found.counts == {"duplicate": 0, "inside": 0, "hard": 0, "touching": 4, "near": 0}
    assert [row.free for row in assembly.removal("screw_0", [[0, 0, 1], [0, 0, -1]], device="cpu")] == [True, False]


def test_a_bearing_whose_rollers_are_drawn_into_its_races_is_found_out(tmp_path):
    build, bearings = warehouse("bearing")
    path = tmp_path / "bearing.step"
    build.export_step(bearings.SingleRowDeepGrooveBallBearing(size="M8-22-7"), str(path))
    assembly = tg.Assembly.load(path, tolerance=2e-5)
    races = [part for part in assembly.parts if part.name.endswith("Race")]
    assert len(races) == 2
    assert all(part.shape.report.closed for part in assembly.parts)
    outer = max(races, key=lambda part: part.shape.extent)
    assert outer.shape.bounds[1, 0] == pytest.approx(0.011, abs=1e-6)  # an M8-22-7 is 22 mm wide
    assert len(assembly.clashes(depth=False, device="cpu").of("hard")) == 2 * (len(assembly) - 2)


def test_facets_of_a_step_file_are_within_the_tolerance(tmp_path):
    build, _ = warehouse("fastener")
    path = tmp_path / "shaft.step"
    build.export_step(build.Cylinder(4, 30), str(path))
    for tolerance in (1e-4, 1e-5):
        rim = tg.Assembly.load(path, tolerance=tolerance).parts[0].mesh.vertices
        angle = np.unique(np.round(np.arctan2(rim[:, 1], rim[:, 0]), 6))
        widest = np.diff(np.append(angle, angle[0] + 2.0 * np.pi)).max()
        assert np.allclose(np.linalg.norm(rim[:, :2], axis=1), 0.004, atol=1e-8)
        assert 0.0 < 0.004 * (1.0 - np.cos(0.5 * widest)) <= tolerance


def test_files_that_cannot_be_read_are_told(tmp_path, scene_file):
    with pytest.raises(InputError, match="there is no file"):
        tg.Assembly.load(tmp_path / "none.step")
    (tmp_path / "a.txt").write_text("")
    with pytest.raises(InputError, match="known are"):
        tg.Assembly.load(tmp_path / "a.txt")
    with pytest.raises(InputError, match="tolerance is for STEP"):
        tg.Assembly.load(scene_file, tolerance=1e-5)
    with pytest.raises(InputError, match="units are for folders"):
        tg.Assembly.load(scene_file, units="mm")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InputError, match="in the folder"):
        tg.Assembly.load(empty)
    (tmp_path / "bad.glb").write_bytes(b"not a glb")
    with pytest.raises(InputError, match="cannot be read"):
        tg.Assembly.load(tmp_path / "bad.glb")
    with pytest.raises(InputError, match="by a path"):
        tg.Assembly.load(7)  # type: ignore[arg-type]


def test_a_step_file_without_a_solid_is_told(tmp_path):
    pytest.importorskip("cascadio", reason="needs the extra [cad]")
    (tmp_path / "bad.step").write_text("ISO-10303-21;\nnothing\n")
    with pytest.raises(InputError, match="no solid"):
        tg.Assembly.load(tmp_path / "bad.step")
