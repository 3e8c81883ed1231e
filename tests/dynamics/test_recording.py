"""Recorded worlds: looked at, written to files, and gone on from any frame with the same bits."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tangere as tg
from tangere.dynamics import Body, Recorder, Recording, World, scenes
from tangere.runtime import InputError
from tests.dynamics.test_world import BOX, at, floor, pile, world_of

FRAMES = 90


@pytest.fixture(scope="module")
def recorded() -> Recording:
    """Boxes that fall on each other, two of them on a hinge with a motor; at the end some sleep, one is pulled."""
    world = World(pile(5, count=6), device="cpu", threads=1)
    world.join("hinge", "box 0", "box 1", at=[0.0, 0.0, 1.0], axis=[0.0, 0.0, 1.0], speed=3.0, force=50.0)
    world.pull("box 5", world["box 5"].position, [2.0, 0.0, 4.0])
    world.push("box 4", force=[20.0, 0.0, 0.0])
    return world.record(steps=FRAMES)


def test_a_recording_has_all_frames_and_what_pushed_the_bodies_in_them(recorded):
    assert len(recorded) == FRAMES + 1
    assert recorded.seconds == pytest.approx(0.9)
    assert (recorded.poses[0, 1:, 2, 3] > recorded.poses[-1, 1:, 2, 3]).sum() >= 4
    points, forces, pairs = recorded.contact_forces(-1)
    assert len(points) == len(forces) == len(pairs) > 0
    assert np.linalg.norm(forces, axis=1).max() > 10.0


@pytest.mark.parametrize(("frame", "threads"), [(0, 2), (1, 1), (40, 2), (70, 1)])
def test_a_saved_run_goes_on_from_any_frame_with_the_same_bits_and_any_number_of_threads(
    recorded, tmp_path, frame, threads
):
    recorded.save(tmp_path / "run.npz")
    world = Recording.load(tmp_path / "run.npz").world(frame, device="cpu", threads=threads)
    assert world.steps == frame
    for k in range(frame + 1, min(frame + 25, FRAMES + 1)):
        world.step()
        assert world.poses.tobytes() == recorded.poses[k].tobytes(), k


def test_sleepers_sleep_on_and_wake_as_they_would_have(tmp_path):
    world = world_of(floor(), Body(BOX, at(z=0.5 + 1e-4), name="box"), Body(BOX, at(0.2, 0.1, 3.5), name="late"))
    recording = world.record(steps=110)
    asleep = [bool(recording.world(k, device="cpu").asleep[1]) for k in (0, 60)]
    assert asleep == [False, True]
    again = recording.world(60, device="cpu")
    assert len(again.contacts) > 0  # those that it fell asleep with
    for k in range(61, 111):
        again.step()
        assert again.poses.tobytes() == recording.poses[k].tobytes(), k
    assert recording.poses[-1, 1].tobytes() != recording.poses[60, 1].tobytes()  # the late one woke it


def test_wheels_on_ground_go_on_with_the_same_bits_and_are_saved_as_the_formulas_they_are(tmp_path):
    world = scenes.robot_with_trailer(device="cpu")
    recording = world.record(steps=50)
    recording.save(tmp_path / "run.npz")
    loaded = Recording.load(tmp_path / "run.npz")
    for frame, threads in ((0, 2), (25, 1)):
        again = loaded.world(frame, device="cpu", threads=threads)
        again.run(steps=25)
        assert again.poses.tobytes() == recording.poses[frame + 25].tobytes()
    assert loaded.bodies[0].ground is not None
    assert loaded.bodies[1].analytic.records.tobytes() == world.bodies[1].analytic.records.tobytes()
    assert loaded.scene().things[0].name == "0: ground"


def test_the_same_run_recorded_with_one_and_two_threads_is_the_same_file():
    runs = [World(pile(2, count=4), device="cpu", threads=threads).record(steps=40) for threads in (1, 2)]
    for name, (rows, _) in runs[0].states.items():
        assert rows.tobytes() == runs[1].states[name][0].tobytes(), name


def test_every_few_steps_may_be_kept_and_the_last_one_always_is():
    world = world_of(Body(BOX), gravity=(0, 0, -1.0))
    done = []
    run = world.record(steps=10, every=4, progress=lambda k, n: done.append((k, n)))
    assert run.times.tolist() == pytest.approx([0.0, 0.04, 0.08, 0.1])
    assert done[-1] == (10, 10)


def test_a_world_is_saved_and_goes_on_where_it_was(recorded, tmp_path):
    world = recorded.world(30, device="cpu")
    world.save(tmp_path / "now.npz")
    again = World.load(tmp_path / "now.npz", device="cpu")
    assert (again.steps, again.coordinates) == (world.steps, world.coordinates)
    again.step()
    assert again.poses.tobytes() == recorded.poses[31].tobytes()


def test_the_scene_of_a_run_shows_bodies_where_they_were_and_forces_as_arrows(recorded):
    scene = recorded.scene()
    part = recorded.parts[50]
    for k, thing in enumerate(scene.things[:-1]):
        there = recorded.bodies[k].mesh.at(recorded.poses[50, k]).vertices
        np.testing.assert_allclose(thing.vertices(part), there, atol=1e-9)
    assert scene.things[-1].name == "forces"
    points, forces, _ = recorded.contact_forces(50)
    arrows = scene.things[-1].vertices(part).reshape(-1, 26, 3)[: len(points)]
    along = arrows[:, 25] - arrows[:, 24]  # from the foot of each arrow to its tip
    pushed = np.linalg.norm(forces, axis=1) > 1e-6
    cosine = np.einsum("ni,ni->n", along, forces)[pushed]
    cosine /= np.linalg.norm(along[pushed], axis=1) * np.linalg.norm(forces[pushed], axis=1)
    np.testing.assert_allclose(np.abs(cosine), 1.0, atol=1e-9)
    assert scene.clock == pytest.approx((0.0, 0.9))


def test_arrows_of_a_stack_point_up_in_whatever_order_its_bodies_come():
    """Each contact has one arrow, on the body that is carried: none points down through what stands below."""
    box = tg.generate.box((1.0, 1.0, 1.0))
    places = np.tile(np.eye(4), (4, 1, 1))
    places[:, 2, 3] = -0.5, 0.501, 1.502, 2.503
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]):
        world = World([Body(box, places[k], fixed=k == 0) for k in order], device="cpu")
        run = world.record(steps=25)
        pushing = np.linalg.norm(world.forces, axis=1) > 0.0
        live = world.scene().things[-1].mesh.vertices.reshape(-1, 26, 3)
        kept = run.scene().things[-1].vertices(1.0).reshape(-1, 26, 3)[: len(pushing)][pushing]
        assert len(live) == len(kept) == pushing.sum() >= 9
        for arrows in (live, kept):
            assert ((arrows[:, 25] - arrows[:, 24])[:, 2] > 0.0).all()
        assert (live[:, 24, 2] > 1.9).sum() >= 3  # the upper contacts have arrows of their own


def test_runs_are_written_for_other_programs(recorded, tmp_path):
    trimesh = pytest.importorskip("trimesh")
    recorded.save(tmp_path / "run.glb")
    loaded = trimesh.load(tmp_path / "run.glb")
    assert len(loaded.geometry) == 7
    start = np.concatenate([body.mesh.at(p).vertices for body, p in zip(recorded.bodies, recorded.poses[0])])
    upright = loaded.bounds[:, 1] if np.ptp(loaded.bounds[:, 1]) < np.ptp(loaded.bounds[:, 2]) else loaded.bounds[:, 2]
    assert upright == pytest.approx([start[:, 2].min(), start[:, 2].max()], abs=1e-4)


def test_walls_that_would_hide_what_moves_are_of_glass_and_floors_are_not():
    wall, floor = Body(BOX, at(x=2.0, z=1.0), fixed=True), Body(BOX, at(z=-1.5), fixed=True)
    world = world_of(wall, floor, Body(BOX, at(z=0.5)))
    for scene in (world.scene(), world.record(steps=1).scene(forces=False)):
        assert [thing.opacity < 0.5 for thing in scene.things[:3]] == [True, False, False]


def last_heights(recorded):
    meshes = [body.mesh.at(pose) for body, pose in zip(recorded.bodies, recorded.poses[-1], strict=True)]
    vertices = np.concatenate([mesh.vertices for mesh in meshes])
    return [vertices[:, 2].min(), vertices[:, 2].max()]


def test_usd_opens_a_run_and_has_its_bodies_where_they_ended(recorded, tmp_path):
    usd = pytest.importorskip("pxr.Usd", reason="usd-core is not installed (extra [usd])")
    from pxr import UsdGeom

    recorded.save(tmp_path / "run.usda")
    stage = usd.Stage.Open(str(tmp_path / "run.usda"))
    cache = UsdGeom.BBoxCache(stage.GetEndTimeCode(), ["default"])
    box = cache.ComputeWorldBound(stage.GetPseudoRoot()).ComputeAlignedRange()
    assert [box.GetMin()[2], box.GetMax()[2]] == pytest.approx(last_heights(recorded), abs=1e-4)


def test_pyvista_opens_a_run_and_has_its_bodies_where_they_ended(recorded, tmp_path):
    pyvista = pytest.importorskip("pyvista", reason="pyvista is not installed")
    recorded.save(tmp_path / "run.pvd")
    reader = pyvista.get_reader(tmp_path / "run.pvd")
    reader.set_active_time_value(reader.time_values[-1])
    bounds = pyvista.MultiBlock(reader.read()).bounds
    assert bounds[4:] == pytest.approx(last_heights(recorded), abs=1e-4)


def test_a_world_is_drawn_with_gravity_down_and_shows_itself_in_notebooks():
    pytest.importorskip("PIL")
    world = world_of(Body(BOX, fixed=True), Body(BOX, at(y=1.5)), gravity=(0, -9.81, 0))
    world.run(0.5)
    scene = world.scene()
    assert scene.camera.up == pytest.approx((0.0, 1.0, 0.0))
    arrows = scene.things[-1].mesh.vertices.reshape(-1, 26, 3)
    assert ((arrows[:, 25] - arrows[:, 24])[:, 1] > 0.0).all()  # the floor pushes up
    assert world._repr_png_().startswith(b"\x89PNG")
    assert "contacts" in world._repr_html_()
    assert "frames" in world.record(steps=1)._repr_html_()


def damaged(path, change):
    arrays = dict(np.load(path))
    change(arrays)
    np.savez(path, **arrays)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda a: a.pop("times"), "lacks 'times'"),
        (lambda a: a.update(times=a["times"][::-1]), "times of the frames do not rise"),
        (lambda a: a.update(poses=a["poses"][:, :1]), "finite poses of each body"),
        (lambda a: a.update({"contact/force": a["contact/force"] * np.nan}), "do not fit their forces"),
        (lambda a: a.update({"first/row/key": a["first/row/key"][1:]}), "does not say where it begins"),
        (lambda a: a.update(format="other"), "not a recorded run of a rigid world"),
        (lambda a: a.update(version=99), "recorded with version 99"),
        (lambda a: a.update(world="[]"), "the world is"),
        (lambda a: a.update(world=json.dumps({"body": [{"mesh": 0, "densty": 1}] * 7})), "is 'density' meant"),
    ],
)
def test_a_damaged_recording_is_refused_in_a_sentence(recorded, tmp_path, change, told):
    path = tmp_path / "run.npz"
    recorded.save(path)
    damaged(path, change)
    with pytest.raises(InputError, match=told):
        Recording.load(path)


def test_what_cannot_be_recorded_or_resumed_is_told(recorded, tmp_path):
    world = world_of(Body(BOX), Body(BOX, at(3.0)), gravity=(0, 0, 0))
    recorder = Recorder(world)
    with pytest.raises(InputError, match="nothing has been kept"):
        recorder.recording()
    recorder()
    world.join("ball", 0, 1, at=[1.5, 0, 0])
    with pytest.raises(InputError, match="begin another recording"):
        recorder()
    nothing = np.zeros((0, 3)), np.zeros((0, 3)), np.zeros((0, 2), int)
    recorder.keep(0.5, *nothing)
    with pytest.raises(InputError, match="time must not fall"):
        recorder.keep(0.4, *nothing)
    assert recorder.recording().times.tolist() == [0.0, 0.5]
    with pytest.raises(InputError, match="there is no frame 500"):
        recorded.world(500)
    with pytest.raises(InputError, match="has no 'position'"):
        world.resume({})
    with pytest.raises(InputError, match="'position' has the shape"):
        world.resume(recorded.state(0))
    kept = world.checkpoint()
    kept["rotation"][1] *= 2.0
    with pytest.raises(InputError, match="'rotation' of body 1 is no rotation"):
        world.resume(kept)
    (tmp_path / "torn.npz").write_bytes(b"PK\x03\x04 not all of it")
    with pytest.raises(InputError, match="damaged"):
        Recording.load(tmp_path / "torn.npz")
    with pytest.raises(InputError, match="no such file"):
        Recording.load(tmp_path / "none.npz")
    assert tg.dynamics.Recording is Recording


@pytest.mark.parametrize("frame", [FRAMES + 1, -FRAMES - 2, 1.5, "last", None])
def test_a_frame_that_is_not_there_is_told(recorded, frame):
    with pytest.raises(InputError, match="there is no frame"):
        recorded.world(frame, device="cpu")
