"""The scenes of the document at any stiffness: bounded energy, and never an intersection, decided exactly each step."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.soft_bodies import overlaps
from tangere.runtime import InputError
from tangere.shape.tets import solid_block, solid_torus
from tangere.soft import Body, Recorder, Recording, Simulation, scenes

SCENES = {"tori": (scenes.tori, 300), "knot": (scenes.knot, 370)}


def run_soundly(name: str, stiffness: float, steps: int) -> int:
    """The most contacts of any step."""
    simulation = SCENES[name][0](youngs_modulus=stiffness, device="cpu")
    start, most = simulation.energy.total, 0
    for _ in range(steps):
        simulation.step()
        most = max(most, simulation.rows.count)
        assert not overlaps(simulation)
        energy = simulation.energy
        assert np.isfinite(energy.total)
        assert energy.total <= start + 0.02 * abs(start)
    return most


@pytest.mark.parametrize(("name", "stiffness"), [("tori", 1e2), ("tori", 1e6), ("knot", 1e2), ("knot", 1e6)])
def test_the_softest_and_the_stiffest_scenes_begin_soundly(name, stiffness):
    most = run_soundly(name, stiffness, 50 if name == "knot" else 62)
    assert most > 0 or (name, stiffness) == ("knot", 1e6)  # a stiff knot takes longer to come down on itself


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize("stiffness", [1e2, 1e3, 1e4, 1e5, 1e6])
def test_every_scene_runs_soundly_to_its_end(name, stiffness):
    run_soundly(name, stiffness, SCENES[name][1])


def test_a_solid_dropped_comes_to_rest_on_the_floor():
    simulation = scenes.drop(solid_torus((12, 2), radius=0.5, tube=0.2), device="cpu", friction=0.6)
    floor = simulation.meshes()[1].vertices[:, 2].max()
    simulation.run(steps=70)
    torus = simulation.meshes()[0].vertices
    assert floor < torus[:, 2].min() < floor + simulation.distance
    assert np.abs(simulation[0].velocities).max() < 0.5


@pytest.mark.feature("F-L-89")
def test_a_picture_shows_boxes_the_grid_and_contacts_in_their_colours():
    view = pytest.importorskip("tangere.view")
    simulation = scenes.drop(device="cpu")
    simulation.run(steps=40)
    assert {1, 2} <= set(simulation.contacts.kind.tolist())
    scene = simulation.scene()
    names = {thing.name for thing in scene.things}
    assert {"vertex-face contacts", "edge-edge contacts", "boxes", "grid"} <= names
    image = view.picture(scene, size=(480, 360), device="cpu").astype(int)
    red, green, blue = (image[..., k] for k in range(3))
    assert ((green > red + 40) & (green > blue + 40)).sum() > 40
    assert ((red > green + 60) & (red > blue + 60)).sum() > 3
    bare = view.picture(simulation.scene(boxes=False, grid=False), size=(480, 360), device="cpu")
    assert (np.abs(image - bare).max(axis=2) > 40).sum() > 300


def test_a_recording_says_what_was_where():
    simulation = scenes.drop(device="cpu")
    recorder = Recorder(simulation)
    with pytest.raises(InputError, match="nothing has been kept"):
        recorder.recording()
    recorder()
    for _ in range(3):
        simulation.run(steps=8)
        recorder()
    recording = recorder.recording()
    scene = recording.scene()
    assert len(recording) == 4
    now = simulation.meshes()[0].vertices
    assert scene.things[0].vertices(1.0) == pytest.approx(now, abs=1e-6)
    between = recording.origin + 0.5 * (recording.bodies[0][2][0] + recording.bodies[0][2][1].astype(float))
    assert scene.things[0].vertices(0.5 / 3.0) == pytest.approx(between, abs=1e-6)
    assert len(recording.contact_points(1.0)) == len(simulation.contacts)


def test_frames_are_replayed_when_they_were_and_where_they_were(tmp_path):
    """Kept at 0, 0.02 and 0.2 s, a thousand kilometres away, where float32 knows sixteenths of a metre."""
    away = np.eye(4)
    away[0, 3] = 1e6
    simulation = Simulation(
        [Body(solid_block((2, 2, 2)).at(away), velocity=(1.0, 0.0, 0.0), density=1.0)], gravity=(0, 0, 0), device="cpu"
    )
    recorder = Recorder(simulation)
    recorder()
    for steps in (1, 9):
        simulation.run(steps=steps)
        recorder()
    recorder.recording().save(tmp_path / "run.npz")
    thing = Recording.load(tmp_path / "run.npz").scene().things[0]
    began = simulation.bodies[0].surface.vertices
    for time in (0.0, 0.1, 0.5, 1.0):
        assert thing.vertices(time) == pytest.approx(began + [0.2 * time, 0.0, 0.0], rel=0.0, abs=1e-6)


def test_recordings_of_the_first_version_are_read_and_damaged_ones_refused(tmp_path):
    simulation = scenes.drop(device="cpu")
    recorder = Recorder(simulation)
    for _ in range(3):
        recorder()
        simulation.step()
    recorder.recording().save(tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz") as file:
        good = dict(file)
    old = {key: value for key, value in good.items() if key not in ("times", "origin")} | {"version": 1, "seconds": 0.5}
    np.savez(tmp_path / "old.npz", **old)
    assert Recording.load(tmp_path / "old.npz").times == pytest.approx([0.0, 0.25, 0.5])
    broken = {
        "version None": {"version": None},
        "version 7": {"version": 7},
        "where their contacts begin": {"first": np.empty(0)},
        "do not fit": {"first": good["first"] - 1},
        "times": {"times": np.full(3, np.nan)},
        "go back": {"times": np.array([0.0, 0.2, 0.1])},
    }
    for reason, change in broken.items():
        arrays = {key: value for key, value in (good | change).items() if value is not None}
        np.savez(tmp_path / "bad.npz", **arrays)
        with pytest.raises(InputError, match=reason):
            Recording.load(tmp_path / "bad.npz")
