"""Scenes that leave the library: read back by other libraries and by the words of the formats' own specifications.

Where a thing is at a time is known from its motion; files are decoded here, without the code that wrote them.
"""

from __future__ import annotations

import base64
import json
import struct
import zlib
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from oracles.families.drawn_scenes import contacts_at
from tangere.motion import Linear, Twist
from tangere.motion import Path as PosePath
from tangere.query.contacts import Kind
from tangere.runtime import InputError, MissingExtraError
from tangere.scene import Camera, Keyframes, Scene, Thing, moving_balls
from tangere.scene.export import FORMATS, export
from tangere.shape import generate
from tangere.shape.analytic import Sphere
from tangere.shape.mesh import Mesh


def turned(x: float, angle: float) -> np.ndarray:
    pose = np.eye(4)
    pose[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    pose[0, 3] = x
    return pose


PATH = PosePath([turned(-3.0, 0.0), turned(-1.0, 0.6), turned(2.0, 2.5)], [0.0, 0.25, 1.0])


def sheet_states(count: int = 6) -> np.ndarray:
    """A sheet that is bent more and more, (count, n, 3)."""
    flat = np.asarray(generate.sheet(32).vertices)
    bent = flat[None].repeat(count, axis=0)
    bent[:, :, 2] += np.linspace(0.0, 0.5, count)[:, None] * flat[:, 0] ** 2 + 2.0
    return bent


def scene() -> Scene:
    """A part on a path, a wall that rests, a sheet that deforms; contacts at two times; ten seconds of a clock."""
    part, wall, sheet = generate.box((1.2, 0.6, 0.4)), generate.box((0.2, 3.0, 2.0)), generate.sheet(32)
    things = (
        Thing("part", part.moving(PATH), (0.2, 0.4, 0.8)),
        Thing("wall", wall, (0.9, 0.5, 0.1), opacity=0.3),
        Thing("sheet", sheet.moving(Keyframes(sheet_states())), (0.1, 0.8, 0.3)),
    )
    normals = np.eye(3)[[0, 1]]
    contacts = contacts_at([0.5, 0.75], [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]], normals, [Kind.EDGE_EDGE, Kind.VERTEX_FACE])
    return Scene(things, contacts, title="three things", clock=(100.0, 110.0))


class Gltf:
    """A .glb file, decoded as section 3 and 4 of the glTF 2.0 specification say."""

    def __init__(self, path: Path) -> None:
        data = path.read_bytes()
        magic, version, length, size, kind = struct.unpack_from("<4sIIII", data)
        assert (magic, version, length, kind) == (b"glTF", 2, len(data), 0x4E4F534A)
        assert size % 4 == 0
        self.json = json.loads(data[20 : 20 + size])
        binary_size, binary_kind = struct.unpack_from("<II", data, 20 + size)
        assert binary_kind == 0x004E4942
        self.binary = data[28 + size :]
        assert len(self.binary) == binary_size == self.json["buffers"][0]["byteLength"]

    def array(self, number: int) -> np.ndarray:
        accessor = self.json["accessors"][number]
        view = self.json["bufferViews"][accessor["bufferView"]]
        kind = {5126: "<f4", 5125: "<u4"}[accessor["componentType"]]
        width = {"SCALAR": 1, "VEC3": 3, "VEC4": 4}[accessor["type"]]
        assert view["byteOffset"] % 4 == 0
        assert view["byteLength"] == 4 * width * accessor["count"]
        values = np.frombuffer(self.binary, kind, width * accessor["count"], view["byteOffset"]).reshape(-1, width)
        if "min" in accessor:
            assert values.min(axis=0).tolist() == accessor["min"]
            assert values.max(axis=0).tolist() == accessor["max"]
        return values

    def node(self, name: str) -> int:
        (found,) = [k for k, node in enumerate(self.json["nodes"]) if node["name"] == name]
        return found

    def animated(self, node: int, path: str, seconds: float, default: list[float]) -> np.ndarray:
        """The value of an animated property by appendix C: steps, straight lines, and great arcs of quaternions."""
        for channel in self.json["animations"][0]["channels"] if "animations" in self.json else []:
            if channel["target"] == {"node": node, "path": path}:
                sampler = self.json["animations"][0]["samplers"][channel["sampler"]]
                times = self.array(sampler["input"])[:, 0].astype(float)
                assert (np.diff(times) > 0.0).all()
                values = self.array(sampler["output"]).astype(float)
                values = values.reshape(len(times), -1)
                k = int(np.clip(np.searchsorted(times, seconds, side="right") - 1, 0, len(times) - 1))
                n = min(k + 1, len(times) - 1)
                part = 0.0 if n == k or seconds < times[0] else (seconds - times[k]) / (times[n] - times[k])
                if sampler["interpolation"] == "STEP":
                    return values[k]
                if path != "rotation":
                    return (1.0 - part) * values[k] + part * values[n]
                cosine = values[k] @ values[n]
                angle, other = np.arccos(min(abs(cosine), 1.0)), np.sign(cosine) * values[n]
                if angle < 1e-4:
                    return values[k]
                return (np.sin((1 - part) * angle) * values[k] + np.sin(part * angle) * other) / np.sin(angle)
        return np.asarray(self.json["nodes"][node].get(path, default), float)

    def vertices(self, node: int, seconds: float) -> np.ndarray:
        """Of a node that is a child of the root, before the root turns it."""
        mesh = self.json["meshes"][self.json["nodes"][node]["mesh"]]
        primitive = mesh["primitives"][0]
        points = self.array(primitive["attributes"]["POSITION"]).astype(float)
        targets = primitive.get("targets", [])
        weights = self.animated(node, "weights", seconds, [0.0] * len(targets))
        for weight, target in zip(weights, targets, strict=True):
            points = points + weight * self.array(target["POSITION"])
        shift = self.animated(node, "translation", seconds, [0.0] * 3)
        x, y, z, w = self.animated(node, "rotation", seconds, [0.0, 0.0, 0.0, 1.0])
        size = self.animated(node, "scale", seconds, [1.0] * 3)
        turn = np.array(
            [
                [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
                [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
                [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
            ]
        )
        return (points * size) @ turn.T + shift

    def triangles(self, node: int, seconds: float) -> np.ndarray:
        primitive = self.json["meshes"][self.json["nodes"][node]["mesh"]]["primitives"][0]
        return self.vertices(node, seconds)[self.array(primitive["indices"])[:, 0].reshape(-1, 3)]


def triangles(thing: Thing, time: float) -> np.ndarray:
    """(m, 3, 3): where they are, by the motion."""
    return thing.vertices(time)[thing.faces]


TIMES = (0.0, 0.1, 0.25, 0.4, 0.61, 0.9, 1.0)


def test_a_glb_has_every_triangle_where_the_motion_puts_it_at_all_times(tmp_path):
    shown = scene()
    shown.save(tmp_path / "a.glb")
    file = Gltf(tmp_path / "a.glb")
    for thing in shown.things:
        for time in TIMES:
            found = file.triangles(file.node(thing.name), 10.0 * time)
            assert found == pytest.approx(triangles(thing, time), abs=2e-4 * shown.extent), (thing.name, time)


def test_a_rigid_part_is_a_node_whose_pose_is_the_motion_s(tmp_path):
    scene().save(tmp_path / "a.glb")
    file = Gltf(tmp_path / "a.glb")
    node = file.node("part")
    assert "targets" not in file.json["meshes"][file.json["nodes"][node]["mesh"]]["primitives"][0]
    for time in (0.0, 0.25, 1.0):  # keys
        pose = PATH.pose(time)
        x, y, z, w = file.animated(node, "rotation", 10.0 * time, [])
        assert (x, y) == pytest.approx((0.0, 0.0), abs=1e-6)
        assert 2.0 * np.arctan2(z, w) == pytest.approx(np.arctan2(pose[1, 0], pose[0, 0]), abs=1e-6)
        assert file.animated(node, "translation", 10.0 * time, []) == pytest.approx(pose[:3, 3], abs=1e-6)
    used = {channel["target"]["path"] for channel in file.json["animations"][0]["channels"]}
    assert used == {"translation", "rotation", "weights", "scale"}  # the last for the contacts only


def test_a_deforming_sheet_has_a_morph_target_for_each_state_but_the_first(tmp_path):
    scene().save(tmp_path / "a.glb")
    file = Gltf(tmp_path / "a.glb")
    mesh = file.json["meshes"][file.json["nodes"][file.node("sheet")]["mesh"]]
    states = sheet_states()
    # keys are those of all motions: 0.25 is the path's
    assert len(mesh["primitives"][0]["targets"]) in (len(states) - 1, len(states))
    normals = file.array(mesh["primitives"][0]["attributes"]["NORMAL"])
    assert np.linalg.norm(normals, axis=1) == pytest.approx(1.0, abs=1e-5)


def test_contacts_appear_at_their_time_in_the_colour_of_their_kind(tmp_path):
    scene().save(tmp_path / "a.glb")
    file = Gltf(tmp_path / "a.glb")
    for name, point, seconds, red in (
        ("edge-edge contacts", [0.1, 0.2, 0.3], 5.0, 0.66),
        ("vertex-face contacts", [0.4, 0.5, 0.6], 7.5, 0.86),
    ):
        node = file.node(name)
        assert np.ptp(file.vertices(node, seconds - 0.01), axis=0).max() == 0.0
        shown = file.vertices(node, seconds)
        assert np.linalg.norm(shown - point, axis=1).min() < 0.1
        assert np.ptp(shown, axis=0).max() > 0.01
        mesh = file.json["meshes"][file.json["nodes"][node]["mesh"]]
        colour = file.json["materials"][mesh["primitives"][0]["material"]]["pbrMetallicRoughness"]["baseColorFactor"]
        assert colour[0] == pytest.approx(red**2.2, abs=1e-6)
    material = file.json["materials"][1]
    assert (material["alphaMode"], material["pbrMetallicRoughness"]["baseColorFactor"][3]) == ("BLEND", 0.3)


def test_trimesh_opens_a_glb_and_finds_things_upright(tmp_path):
    import trimesh

    shown = scene()
    shown.save(tmp_path / "a.glb")
    opened = trimesh.load(tmp_path / "a.glb")
    for thing in shown.things:
        (name,) = [node for node in opened.graph.nodes_geometry if node.startswith(thing.name)]
        placed, geometry = opened.graph[name]
        mesh = opened.geometry[geometry]
        found = trimesh.transform_points(mesh.vertices, placed)[mesh.faces]
        expected = triangles(thing, 0.0)[..., [0, 2, 1]] * (1.0, 1.0, -1.0)  # z becomes y, y becomes -z
        assert found == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("up", [(0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (1.0, 2.0, -0.5)])
def test_what_is_up_for_the_camera_is_up_in_the_file(up, tmp_path):
    import trimesh

    camera = Camera((0.3, 0.2, 1.0), up=up)
    Scene.of(generate.box(), camera=camera).save(tmp_path / "a.glb")
    opened = trimesh.load(tmp_path / "a.glb")
    placed, _ = opened.graph[next(iter(opened.graph.nodes_geometry))]
    assert placed[:3, :3] @ (np.array(up) / np.linalg.norm(up)) == pytest.approx([0.0, 1.0, 0.0], abs=1e-9)


def test_a_crowd_is_one_ball_in_many_places(tmp_path, rng):
    places = np.cumsum(rng.normal(size=(20, 50, 3)), axis=0)
    places[:7, 3] = np.nan  # comes later
    radius = rng.uniform(0.2, 0.4, 50)
    crowd = Scene((moving_balls("agents", places, radius=radius, times=np.linspace(5.0, 24.0, 20)),), clock=(0.0, 19.0))
    crowd.save(tmp_path / "crowd.glb")
    file = Gltf(tmp_path / "crowd.glb")
    assert len(file.json["meshes"]) == 1
    agents = file.json["nodes"][file.node("agents")]["children"]
    assert len(agents) == 50
    for seconds in (0.0, 6.5, 7.0, 12.25, 19.0):
        k = int(seconds)
        part = seconds - k
        there = places[k] if part == 0.0 else (1 - part) * places[k] + part * places[k + 1]
        for agent, node in enumerate(agents):
            found = file.vertices(node, seconds)
            if np.isnan(there[agent]).any():
                assert np.ptp(found, axis=0).max() == pytest.approx(0.0, abs=1e-6)
            else:
                assert found.mean(axis=0) == pytest.approx(there[agent], abs=0.01)
                assert np.linalg.norm(found - found.mean(axis=0), axis=1).max() == pytest.approx(
                    radius[agent], rel=1e-3
                )
    assert (tmp_path / "crowd.glb").stat().st_size < 150_000


def test_bodies_of_a_batch_move_on_their_own(tmp_path):
    start = np.tile(np.eye(4), (3, 1, 1))
    start[:, 0, 3] = [0.0, 2.0, 4.0]
    bodies = Sphere(np.array([0.5, 0.5, 0.5])).moving(
        Twist(start, [[0, 0, 1.0], [0, 1.0, 0], [0, 0, 0]], np.zeros((3, 3)))
    )
    batch = Scene.of(bodies)
    batch.save(tmp_path / "a.glb")
    file = Gltf(tmp_path / "a.glb")
    nodes = [k for k, node in enumerate(file.json["nodes"]) if "mesh" in node]
    for time in (0.0, 0.5, 1.0):
        middles = [file.vertices(node, time).mean(axis=0) for node in nodes]
        expected = start[:, :3, 3] + time * np.array([[0, 0, 1.0], [0, 1.0, 0], [0, 0, 0]])
        for place in expected:
            assert np.linalg.norm(np.array(middles) - place, axis=1).min() < 1e-3


def test_what_turns_fast_has_as_many_keys_as_that_takes(tmp_path):
    part = generate.box((1.0, 0.2, 0.2))
    moving = part.moving(Twist(np.eye(4), [0.5, 0.0, 0.0], [0.0, 0.0, 40.0]))  # more than six turns
    spinning = Scene.of(moving)
    spinning.save(tmp_path / "a.glb")
    file = Gltf(tmp_path / "a.glb")
    node = next(k for k, node in enumerate(file.json["nodes"]) if "mesh" in node)
    for time in np.linspace(0.0, 1.0, 57):
        assert file.triangles(node, time) == pytest.approx(triangles(spinning.things[0], time), abs=1e-3)


class Jumping:
    """A motion that is none: it is somewhere else in every tenth of the time."""

    def positions(self, start, time):
        return np.asarray(start) + [min(int(10.0 * time), 9) % 3, 0.0, 0.0]


def test_what_jumps_is_never_halfway(tmp_path):
    jumping = Scene.of(generate.box().moving(Jumping()))
    jumping.save(tmp_path / "a.glb")
    file = Gltf(tmp_path / "a.glb")
    node = next(k for k, node in enumerate(file.json["nodes"]) if "mesh" in node)
    for time in np.linspace(0.013, 0.983, 60):
        if min(10.0 * time % 1.0, 1.0 - 10.0 * time % 1.0) > 0.03:
            assert file.triangles(node, time) == pytest.approx(triangles(jumping.things[0], time), abs=1e-5)


def test_far_from_the_origin_files_keep_their_digits(tmp_path):
    """Metres in a national grid: single precision has steps of 0.25 m there."""
    away = np.array([453_000.0, 5_400_000.0, 300.0])
    flat = np.asarray(generate.sheet(32).vertices)
    states = flat[None] + away + np.array([[[0, 0, 0.0]], [[0.0, 0.0, 0.3]]]) * (1.0 + flat[None, :, :1])
    box = generate.box()
    things = (
        Thing("rest", box.replace(vertices=np.asarray(box.vertices) + away)),
        Thing(
            "shifted", box.replace(vertices=np.asarray(box.vertices) + away).moving(Linear(box.vertices + away + 0.7))
        ),
        Thing("bent", Mesh(states[0], generate.sheet(32).faces).moving(Keyframes(states))),
    )
    national = Scene(things)
    national.save(tmp_path / "a.glb")
    file = Gltf(tmp_path / "a.glb")
    for thing in things:
        node = file.json["nodes"][file.node(thing.name)]
        mesh = file.json["meshes"][node["mesh"]]["primitives"][0]
        points = file.array(mesh["attributes"]["POSITION"]).astype(float)
        assert np.abs(points).max() < 10.0
        expected = thing.vertices(0.0)
        assert node["translation"] + points.mean(axis=0) == pytest.approx(expected.mean(axis=0), abs=0.3)
        assert np.ptp(points, axis=0) == pytest.approx(np.ptp(expected, axis=0), abs=1e-6)


def test_seconds_and_frames_can_be_asked_for(tmp_path):
    scene().save(tmp_path / "a.glb", seconds=2.0, frames=5)
    file = Gltf(tmp_path / "a.glb")
    for sampler in file.json["animations"][0]["samplers"]:
        times = file.array(sampler["input"])[:, 0]
        assert times.max() <= 2.0
        if sampler["interpolation"] == "LINEAR":
            assert times == pytest.approx([0.0, 0.5, 1.0, 1.5, 2.0])
    without = replace(scene(), clock=None)
    without.save(tmp_path / "b.glb")
    file = Gltf(tmp_path / "b.glb")
    inputs = [file.array(sampler["input"]) for sampler in file.json["animations"][0]["samplers"]]
    assert max(times.max() for times in inputs) == 1.0


def test_a_scene_at_rest_has_no_animation(tmp_path):
    Scene.of(generate.box()).save(tmp_path / "a.glb")
    assert "animations" not in Gltf(tmp_path / "a.glb").json


# --- USD ---


def usd_triangles(stage, prim, code: float) -> np.ndarray:
    from pxr import UsdGeom

    mesh = UsdGeom.Mesh(prim)
    points = np.array(mesh.GetPointsAttr().Get(code), float)
    matrix = np.array(UsdGeom.Xformable(prim).ComputeLocalToWorldTransform(code))
    faces = np.array(mesh.GetFaceVertexIndicesAttr().Get()).reshape(-1, 3)
    assert set(mesh.GetFaceVertexCountsAttr().Get()) == {3}
    return (points @ matrix[:3, :3] + matrix[3, :3])[faces]


@pytest.mark.parametrize("suffix", [".usda", ".usdc", ".usd"])
def test_usd_opens_the_file_and_has_every_triangle_where_the_motion_puts_it(suffix, tmp_path):
    usd = pytest.importorskip("pxr.Usd", reason="usd-core is not installed (extra [usd])")
    geometry = pytest.importorskip("pxr.UsdGeom")
    shown, path = scene(), tmp_path / f"a{suffix}"
    shown.save(path)
    shown.save(path)  # over an older one
    stage = usd.Stage.Open(str(path))
    assert geometry.GetStageUpAxis(stage) == "Z"
    assert geometry.GetStageMetersPerUnit(stage) == 1.0
    rate = stage.GetTimeCodesPerSecond()
    assert (stage.GetStartTimeCode(), stage.GetEndTimeCode()) == (0.0, 10.0 * rate)
    meshes = {prim.GetParent().GetDisplayName(): prim for prim in stage.Traverse() if prim.IsA(geometry.Mesh)}
    for thing in shown.things:
        for time in TIMES:
            found = usd_triangles(stage, meshes[thing.name], 10.0 * time * rate)
            assert found == pytest.approx(triangles(thing, time), abs=2e-4 * shown.extent), (thing.name, time)
    wall = geometry.Mesh(meshes["wall"])
    assert wall.GetDisplayOpacityAttr().Get()[0] == pytest.approx(0.3)
    marks = [prim for prim in stage.Traverse() if prim.GetDisplayName().endswith("contacts")]
    seen = {prim.GetDisplayName(): geometry.Imageable(prim) for prim in marks}
    for name, seconds in (("edge-edge contacts", 5.0), ("vertex-face contacts", 7.5)):
        assert seen[name].ComputeVisibility((seconds - 0.01) * rate) == "invisible"
        assert seen[name].ComputeVisibility(seconds * rate) == "inherited"


def test_things_in_usd_may_have_any_name(tmp_path):
    usd = pytest.importorskip("pxr.Usd", reason="usd-core is not installed (extra [usd])")
    box = generate.box()
    names = ["1: größe", "a b", "a_b", "", "a/b"]
    Scene(tuple(Thing(name, box) for name in names)).save(tmp_path / "a.usda")
    stage = usd.Stage.Open(str(tmp_path / "a.usda"))
    assert [prim.GetDisplayName() for prim in stage.GetDefaultPrim().GetChildren()] == names


def test_without_usd_core_the_error_says_what_to_install(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pxr", None)
    with pytest.raises(MissingExtraError, match=r"tangere\[usd\]"):
        scene().save(tmp_path / "a.usda")


# --- VTK ---


def vtk_array(element: ElementTree.Element) -> np.ndarray:
    """A compressed binary array of one block, as VTK's file formats say."""
    assert element.text is not None
    kind = {"Float64": "<f8", "Int64": "<i8", "Int32": "<i4", "UInt8": "<u1"}[element.attrib["type"]]
    blocks = int.from_bytes(base64.b64decode(element.text[:12])[:8], "little")
    if blocks == 0:
        return np.empty(0, kind)
    assert blocks == 1
    head = base64.b64decode(element.text[:44])
    _, size, last, packed = struct.unpack("<4Q", head)
    raw = zlib.decompress(base64.b64decode(element.text[44:]))
    assert (len(raw), last, len(base64.b64decode(element.text[44:]))) == (size, 0, packed)
    values = np.frombuffer(raw, kind)
    width = int(element.attrib.get("NumberOfComponents", 1))
    return values.reshape(-1, width) if width > 1 else values


def vtk_file(path: Path) -> dict[str, np.ndarray]:
    return {element.attrib["Name"]: vtk_array(element) for element in ElementTree.parse(path).iter("DataArray")}


def test_a_series_has_the_scene_in_double_precision_at_times_of_its_clock(tmp_path):
    shown = scene()
    shown.save(tmp_path / "run.pvd")
    rows = [row.attrib for row in ElementTree.parse(tmp_path / "run.pvd").iter("DataSet")]
    things = [row for row in rows if row["part"] == "0"]
    times = np.array([float(row["timestep"]) for row in things])
    assert (times[0], times[-1]) == (100.0, 110.0)
    assert (np.diff(times) > 0.0).all()
    assert {100.0 + 10.0 * t for t in (0.0, 0.2, 0.5, 1.0)} <= set(times.round(9))
    for row in things[:: max(1, len(things) // 5)]:
        time = (float(row["timestep"]) - 100.0) / 10.0
        data = vtk_file(tmp_path / row["file"])
        expected = np.concatenate([thing.vertices(time) for thing in shown.things])
        assert np.abs(data["points"] - expected).max() < 1e-12
        assert (data["types"] == 5).all()
        corners = data["points"][data["connectivity"].reshape(-1, 3)]
        for number, thing in enumerate(shown.things):
            assert corners[data["thing"] == number] == pytest.approx(triangles(thing, time), abs=1e-12)
        assert data["colour"][data["thing"] == 1][0].tolist() == [230, 128, 26, 76]
    counts = [len(vtk_file(tmp_path / row["file"])["gap"]) for row in rows if row["part"] == "1"]
    assert [counts[0], counts[-1]] == [0, 2]
    assert sorted(set(counts)) == [0, 1, 2]


def test_pyvista_opens_a_series_and_a_single_file(tmp_path):
    pyvista = pytest.importorskip("pyvista", reason="pyvista is not installed")
    shown = scene()
    shown.save(tmp_path / "run.pvd", frames=5)
    reader = pyvista.get_reader(tmp_path / "run.pvd")
    assert reader.time_values == pytest.approx([100.0, 102.5, 105.0, 107.5, 110.0])
    for time, seen in ((100.0, 0), (105.0, 1), (110.0, 2)):
        reader.set_active_time_value(time)
        blocks = reader.read()
        expected = np.concatenate([thing.vertices((time - 100.0) / 10.0) for thing in shown.things])
        assert np.abs(np.asarray(blocks[0].points) - expected).max() < 1e-12
        assert blocks[0].n_cells == sum(len(thing.faces) for thing in shown.things)
        assert str(blocks[0].field_data["names"][0]).splitlines() == ["0: part", "1: wall", "2: sheet"]
        assert blocks[1].n_points == seen
    assert blocks[1].point_data["normal"].tolist() == np.eye(3)[[0, 1]].tolist()
    shown.save(tmp_path / "start.vtu")
    start = pyvista.read(tmp_path / "start.vtu")
    assert start.n_points == sum(len(thing.vertices(0.0)) for thing in shown.things)


# --- which format ---


def test_the_end_of_the_name_says_the_format_and_bad_ones_are_refused_before_the_work(tmp_path, monkeypatch):
    shown = scene()
    for name, reason in (
        ("a.obj", "must end in one of"),
        ("a", "must end in one of"),
        ("none/a.glb", "there is no folder"),
        ("folder.glb", "it is a folder"),
    ):
        (tmp_path / "folder.glb").mkdir(exist_ok=True)
        with pytest.raises(InputError, match=reason):
            shown.save(tmp_path / name)
    with pytest.raises(InputError, match=r"size means nothing for \.glb"):
        shown.save(tmp_path / "a.glb", size=(100, 100))
    with pytest.raises(InputError, match=r"frames means nothing for \.npz"):
        shown.save(tmp_path / "a.npz", frames=3)
    for wrong in (1, 2.5, "many"):
        with pytest.raises(InputError, match="frames must be a whole number"):
            shown.save(tmp_path / "a.glb", frames=wrong)
    for wrong in (0.0, -1.0, float("nan")):
        with pytest.raises(InputError, match="seconds must be"):
            shown.save(tmp_path / "a.glb", seconds=wrong)
    assert {".npz", ".glb", ".usd", ".usda", ".usdc", ".pvd", ".vtu", ".gif", ".mp4"} == set(FORMATS)


def test_bodies_and_recordings_are_exported_by_one_call(tmp_path):
    class Recording:
        def scene(self) -> Scene:
            return scene()

    export(Recording(), tmp_path / "a.glb")
    assert Gltf(tmp_path / "a.glb").json["scenes"][0]["name"] == "three things"
    export(generate.box(), tmp_path / "b.GLB", frames=None)
    assert len(Gltf(tmp_path / "b.GLB").json["meshes"]) == 1


def test_a_clock_is_recorded_and_must_rise(tmp_path):
    box = generate.box()
    Scene.of(box, clock=(3.0, 5.5)).save(tmp_path / "a.npz")
    back = Scene.load(tmp_path / "a.npz")
    assert back.clock == (3.0, 5.5)
    assert (back.on_clock(0.5), back.off_clock(4.25), back.off_clock(9.0)) == (4.25, 0.5, 1.0)
    Scene.of(box).save(tmp_path / "b.npz")
    assert Scene.load(tmp_path / "b.npz").clock is None
    for wrong in ((2.0, 1.0), (0.0, float("inf"))):
        with pytest.raises(InputError, match="clock"):
            Scene.of(box, clock=wrong)
