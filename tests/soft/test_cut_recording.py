"""Runs in which bodies are cut are kept as they were: other triangles from a cut on, in files of every format."""

from __future__ import annotations

import itertools
import json
import struct

import numpy as np
import pytest

from tangere.runtime import InputError
from tangere.scene import Scene
from tangere.shape.tets import solid_block
from tangere.soft import Body, Recorder, Recording, Simulation, scenes

Frames = list[list[tuple[np.ndarray, np.ndarray]]]


@pytest.fixture(scope="module")
def run() -> tuple[Recording, Frames]:
    """A block that is cut through and falls apart; and vertices and faces of all bodies at each frame."""
    solid = solid_block((4, 2, 2), size=(0.2, 0.1, 0.1), name="block")
    body = Body(solid, cuttable=True, fixed=solid.vertices[:, 0] < -0.099)
    simulation = Simulation([body], device="cpu", threads=1)
    recorder, seen = Recorder(simulation), []

    def keep() -> None:
        recorder()
        seen.append([(mesh.vertices, mesh.faces) for mesh in simulation.meshes()])

    keep()
    blades = [np.array([[0.011, y, -0.08], [0.011, y, 0.08]]) for y in np.linspace(-0.06, 0.06, 5)]
    for start, end in itertools.pairwise(blades):
        simulation.cut(0, start, end)
        simulation.step()
        keep()
    simulation.end_stroke(0)
    for _ in range(3):
        simulation.step()
        keep()
    assert len(simulation) == 2
    return recorder.recording(), seen


def triangles_shown(scene: Scene, time: float) -> np.ndarray:
    """(n, 3, 3) corners of all triangles that have a size."""
    found = [thing.vertices(time)[thing.faces] for thing in scene.things if "contact" not in thing.name]
    every = np.concatenate(found)
    return every[np.linalg.norm(np.cross(every[:, 1] - every[:, 0], every[:, 2] - every[:, 0]), axis=1) > 0.0]


def sorted_middles(triangles: np.ndarray) -> np.ndarray:
    middles = triangles.mean(axis=1)
    return middles[np.lexsort(middles.round(6).T)]


@pytest.mark.parametrize("stored", [False, True])
def test_each_frame_has_the_triangles_that_there_were(run, tmp_path, stored) -> None:
    recording, seen = run
    if stored:
        recording.save(tmp_path / "cut.npz")
        recording = Recording.load(tmp_path / "cut.npz")
    scene = recording.scene()
    assert {len(bodies) for bodies in seen} == {1, 2}
    for time, bodies in zip(recording.parts.tolist(), seen, strict=True):
        wanted = np.concatenate([vertices[faces] for vertices, faces in bodies])
        found = triangles_shown(scene, time)
        assert len(found) == len(wanted)
        assert sorted_middles(found) == pytest.approx(sorted_middles(wanted), abs=1e-5)


def test_a_body_with_a_comma_in_its_name_is_recorded(tmp_path) -> None:
    body = Body(solid_block((4, 2, 2), size=(0.2, 0.1, 0.1)), cuttable=True, name="liver, left")
    simulation = Simulation([body], device="cpu", threads=1)
    recorder = Recorder(simulation)
    recorder()
    for y in (-0.06, 0.0):
        start = np.array([[0.011, y, -0.08], [0.011, y, 0.08]])
        simulation.cut(0, start, start + [0.0, 0.06, 0.0])
        recorder()
    recorder.recording().save(tmp_path / "run.glb")
    names = [thing.name for thing, _, _ in recorder.recording().bodies]
    assert len(set(names)) == len(names) > 2


def test_walls_have_a_colour_of_their_own(run) -> None:
    recording, _ = run
    walls = {thing.colour for thing, _, _ in recording.bodies if thing.name.endswith("walls")}
    others = {thing.colour for thing, _, _ in recording.bodies if not thing.name.endswith("walls")}
    assert len(walls) == 1
    assert not walls & others


def test_a_glb_shows_each_version_while_it_is_there(run, tmp_path) -> None:
    recording, _ = run
    recording.save(tmp_path / "cut.glb")
    data = (tmp_path / "cut.glb").read_bytes()
    document = json.loads(data[20 : 20 + struct.unpack("<I", data[12:16])[0]])
    nodes = [k for k, node in enumerate(document["nodes"]) if node.get("name", "").endswith("while it is there")]
    short = [states for _, _, states in recording.bodies if len(states) < len(recording)]
    assert len(nodes) == len(short) == len(recording.bodies)
    scaled = {c["target"]["node"] for c in document["animations"][0]["channels"] if c["target"]["path"] == "scale"}
    assert set(nodes) <= scaled


def test_a_series_for_paraview_has_only_what_is_there(run, tmp_path) -> None:
    pyvista = pytest.importorskip("pyvista")
    recording, seen = run
    recording.save(tmp_path / "cut.pvd")
    files = sorted((tmp_path / "cut").glob("things_*.vtu"))
    assert len(files) == len(recording)
    for file, bodies in zip(files, seen, strict=True):
        cells = pyvista.read(file).cells_dict[pyvista.CellType.TRIANGLE]
        least = sum(len(faces) for _, faces in bodies)
        balls = [thing for thing in recording.scene().things if "contact" in thing.name]
        assert len(cells) == least + sum(len(thing.faces) for thing in balls)


def test_usd_hides_what_is_not_there(run, tmp_path) -> None:
    usd, geometry = (pytest.importorskip(f"pxr.{name}") for name in ("Usd", "UsdGeom"))
    recording, seen = run
    recording.save(tmp_path / "cut.usda")
    stage = usd.Stage.Open(str(tmp_path / "cut.usda"))
    ends = stage.GetEndTimeCode()
    for time, bodies in zip(recording.parts.tolist(), seen, strict=True):
        shown = 0
        for prim in stage.GetPrimAtPath("/scene").GetChildren():
            image = geometry.Imageable(prim)
            if "contact" in prim.GetName() or image.ComputeVisibility(ends * time + 1e-3) == "invisible":
                continue
            meshes = [geometry.Mesh(child) for child in prim.GetChildren()]
            shown += sum(len(mesh.GetFaceVertexCountsAttr().Get()) for mesh in meshes)
        assert shown == sum(len(faces) for _, faces in bodies)


def test_wrong_spans_of_a_file_are_told(run, tmp_path) -> None:
    recording, _ = run
    recording.save(tmp_path / "cut.npz")
    arrays = dict(np.load(tmp_path / "cut.npz"))
    arrays["1/begin"] = np.array(10_000)
    np.savez(tmp_path / "wrong.npz", **arrays)
    with pytest.raises(InputError, match="body 1"):
        Recording.load(tmp_path / "wrong.npz")


@pytest.mark.feature("F-L-82")
@pytest.mark.parametrize("shape", ["block", "torus"])
def test_the_cut_scene_is_cut(shape) -> None:
    simulation = scenes.cut(shape, depth=0.5, device="cpu", threads=1)
    area = 0.0
    for _ in range(20):
        simulation.step()
        area += sum(event.area for event in simulation.events if event.step == simulation.steps - 1)
    assert area > 0.0
    assert simulation[1].force[2] > 0.0
    with pytest.raises(InputError, match="a shape is"):
        scenes.cut("cube")


def test_of_contacts_that_only_push_those_that_do_are_kept(tmp_path) -> None:
    """Most that response "penalty" looks at are near each other at rest: a ball for each is megabytes a frame."""
    simulation = scenes.cut(response="penalty", device="cpu", threads=1)
    recorder, pushing, near = Recorder(simulation), 0, 0
    frames = 4
    for _ in range(frames):
        simulation.step()
        recorder()
        pushing += int((np.linalg.norm(simulation.contact_forces, axis=1) > 0.0).sum())
        near += len(simulation.contacts)
    recording = recorder.recording()
    assert 10 * pushing < near
    assert len(recording.points) == pushing
    recording.save(tmp_path / "cut.glb")
    assert (tmp_path / "cut.glb").stat().st_size < 2e5 * frames
