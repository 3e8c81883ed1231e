"""Runs that leave the library are read back by other packages, with the bodies where the simulation had them."""

from __future__ import annotations

import io

import numpy as np
import pytest

from tangere.runtime import InputError
from tangere.shape import generate
from tangere.shape.tets import solid_block
from tangere.soft import Body, Recorder, Recording, Simulation

DT = 0.02


@pytest.fixture(scope="module")
def run() -> tuple[Recording, list[np.ndarray]]:
    """A soft block that is thrown at a wall and bounces; and its surface at each frame, (n, 3) [m]."""
    block = Body(solid_block((3, 2, 2), size=(0.3, 0.2, 0.2)), velocity=(1.0, 0.0, 0.0), density=1.0, name="block")
    wall = generate.box((0.1, 1.0, 1.0))
    wall = Body(wall.replace(vertices=wall.vertices + [0.25, 0.0, 0.0]), fixed=True, name="wall")
    simulation = Simulation([block, wall], dt=DT, gravity=(0, 0, 0), distance=0.02, device="cpu")
    recorder, seen = Recorder(simulation), []
    for _ in range(9):
        recorder()
        seen.append(simulation[0].mesh.vertices)
        simulation.step()
    recording = recorder.recording()
    assert len(recording.points)  # it touches the wall
    return recording, seen


def within(points: np.ndarray, of: np.ndarray) -> float:
    """The largest distance of a point to the nearest of others [m]."""
    return float(np.linalg.norm(points[:, None] - of[None], axis=2).min(axis=1).max())


def test_a_scene_of_a_run_has_its_clock(run):
    recording, _ = run
    assert recording.scene().clock == pytest.approx((0.0, 8 * DT))
    assert recording.scene().on_clock(0.5) == pytest.approx(4 * DT)


def test_trimesh_reads_the_first_frame_of_a_glb(run, tmp_path):
    trimesh = pytest.importorskip("trimesh")
    recording, seen = run
    recording.save(tmp_path / "run.glb")
    scene = trimesh.load(tmp_path / "run.glb")
    mesh = next(mesh for name, mesh in scene.geometry.items() if "block" in name)
    node = next(name for name in scene.graph.nodes_geometry if "block" in name)
    placed = trimesh.transform_points(mesh.vertices, scene.graph.get(node)[0])
    z_up = placed[:, [0, 2, 1]] * [1.0, -1.0, 1.0]  # glTF has y up
    assert within(z_up, seen[0]) < 1e-5
    assert len(mesh.faces) == len(recording.bodies[0][1])


def test_usd_has_the_frames_at_their_times(run, tmp_path):
    usd, geometry = (
        pytest.importorskip(f"pxr.{name}", reason="usd-core is not installed") for name in ("Usd", "UsdGeom")
    )
    recording, seen = run
    recording.save(tmp_path / "run.usda")
    stage = usd.Stage.Open(str(tmp_path / "run.usda"))
    prim = next(p for p in stage.Traverse() if p.IsA(geometry.Mesh) and "block" in str(p.GetPath()))
    rate = stage.GetTimeCodesPerSecond()
    assert stage.GetEndTimeCode() / rate - stage.GetStartTimeCode() / rate == pytest.approx(8 * DT, abs=1e-6)
    for frame in (0, 3, 8):
        at = usd.TimeCode(stage.GetStartTimeCode() + frame * DT * rate)
        local = np.array(geometry.Mesh(prim).GetPointsAttr().Get(at), float)
        matrix = np.array(geometry.Xformable(prim).ComputeLocalToWorldTransform(at))
        placed = local @ matrix[:3, :3] + matrix[3, :3]
        assert within(placed, seen[frame]) < 1e-4


def test_pyvista_reads_every_frame_of_a_series_for_paraview(run, tmp_path):
    pyvista = pytest.importorskip("pyvista")
    recording, seen = run
    recording.save(tmp_path / "run.pvd")
    reader = pyvista.get_reader(tmp_path / "run.pvd")
    assert len(reader.time_values) >= len(seen)
    for frame in (0, 3, 8):
        reader.set_active_time_value(min(reader.time_values, key=lambda t: abs(t - frame * DT)))
        assert reader.active_time_value == pytest.approx(frame * DT, abs=1e-9)
        found = np.concatenate([np.asarray(block.points) for block in reader.read()])
        assert within(seen[frame], found) < 1e-5


@pytest.mark.parametrize("name", ["run.gif", "run.mp4"])
def test_videos_are_read_frame_by_frame_and_show_that_something_moves(run, tmp_path, name):
    imageio = pytest.importorskip("imageio.v3")
    pytest.importorskip("PIL.Image")
    if name.endswith(".mp4"):
        pytest.importorskip("imageio_ffmpeg", reason="the encoder of .mp4 files is not installed")
    recording, _ = run
    recording.save(tmp_path / name, frames=4, size=(96, 64))
    frames = np.stack([np.asarray(frame)[..., :3] for frame in imageio.imiter(tmp_path / name)])
    assert frames.shape[1:] == (64, 96, 3)
    assert len(frames) >= 4
    assert np.abs(frames[0].astype(int) - frames[-1]).max() > 40


def test_what_is_loaded_again_is_npz_and_other_names_are_refused(run, tmp_path):
    recording, _ = run
    recording.save(tmp_path / "run.npz")
    assert (Recording.load(tmp_path / "run.npz").times == recording.times).all()
    assert repr(recording) == "Recording('0: block', '1: wall'; 9 frames, 0.16 s)"
    with pytest.raises(InputError, match=r"\.glb"):
        recording.save(tmp_path / "run.obj")
    with pytest.raises(InputError, match="size"):
        recording.save(tmp_path / "run.glb", size=(96, 64))
    with pytest.raises(InputError, match="frames"):
        recording.save(tmp_path / "run.npz", frames=3)


def test_bodies_simulations_and_runs_show_themselves_in_notebooks(run):
    image_module = pytest.importorskip("PIL.Image")
    body = Body(generate.sheet(32), name="cloth")
    simulation = Simulation([body], device="cpu")
    for shown in (body, simulation, simulation[0], run[0]):
        image = np.asarray(image_module.open(io.BytesIO(shown._repr_png_())).convert("RGB"))
        assert image.std() > 2.0, shown
