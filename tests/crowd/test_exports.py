"""Recorded crowds as scenes and files: points are balls, bodies prisms, walls upright; read back by other libraries."""

from __future__ import annotations

import numpy as np
import pytest

from tangere.cells.generate import quad_grid
from tangere.crowd import Simulation, Trajectories, box, wall_edges, wall_quads
from tangere.crowd.scenarios import planet, swarm
from tangere.runtime import InputError
from tangere.scene.export import FORMATS


@pytest.fixture(scope="module")
def recorded():
    """Two points and a box in a square of 12 m with a wall, over two seconds; a third point comes in the middle."""
    simulation = Simulation(quad_grid(4, 4, size=3.0, device="cpu"), adaptive=None)
    map = simulation.map
    centre = map.numpy("centre")
    middle = int(np.argmin(np.linalg.norm(centre[:, :2] - [4.5, 4.5], axis=1)))
    ends = map.positions[map.numpy("origin")]
    darts = np.flatnonzero((map.numpy("cell") == middle) & (ends[map.numpy("phi1"), 0] == 6) & (ends[:, 0] == 6))
    map.block("dart", darts)
    simulation.add_points([[2.0, 2.0], [10.0, 10.0]], goals=[[2.0, 10.0], [10.0, 2.0]], radius=[0.2, 0.4])
    simulation.add_bodies(box(2.0, 1.0), [[8.0, 8.0]], headings=[[1, 0]], goals=[[8.0, 2.0]])

    def add(done, _):
        if done == 30:
            simulation.add_points([[2.0, 6.0]], goals=[[2.0, 8.0]])

    return simulation, simulation.run(2.0, record=0.5, progress=add)


def test_a_recorded_crowd_is_a_scene_on_its_own_clock(recorded):
    simulation, found = recorded
    scene = found.scene()
    assert scene.clock == (0.0, pytest.approx(2.0))
    things = {thing.name: thing for thing in scene.things}
    assert things.keys() == {"ground", "walls", "points", "body section 0"}
    balls = things["points"].vertices(0.5).reshape(3, -1, 3)
    np.testing.assert_allclose(balls[:2].mean(axis=1), found.positions[2, :2], atol=1e-12)
    for ball, radius in zip(balls, (0.2, 0.4, 0.0), strict=True):  # the third is not there yet
        np.testing.assert_allclose(np.linalg.norm(ball - ball.mean(axis=0), axis=1), radius, atol=1e-12)
    prism = things["body section 0"].vertices(1.0)
    np.testing.assert_allclose(prism[:4], found.particles[-1])
    assert (prism[4:, 2] > 0.1).all()
    low, high = things["ground"].rest_vertices.min(axis=0), things["ground"].rest_vertices.max(axis=0)
    np.testing.assert_array_equal([low, high], [[0, 0, 0], [12, 12, 0]])
    assert simulation._repr_png_().startswith(b"\x89PNG")
    assert found._repr_png_().startswith(b"\x89PNG")


def test_walls_stand_upright_on_the_border_and_on_what_is_blocked(recorded):
    simulation, found = recorded
    quads = wall_quads(simulation.map)
    assert len(quads) == len(wall_edges(simulation.map)) == 16 + 1
    np.testing.assert_array_equal(quads[:, :2], wall_edges(simulation.map))
    np.testing.assert_array_equal(quads[:, 2:, :2], quads[:, 1::-1, :2])
    assert (quads[:, 2:, 2] > 0.1).all()
    np.testing.assert_array_equal(found.walls, quads)
    inside = quads[(quads[..., 0] == 6).all(axis=1)]
    np.testing.assert_array_equal(np.sort(inside[0, :2, 1]), [3.0, 6.0])
    names = {thing.name for thing in simulation.scene().things}
    assert {"walls", "cells of level 0", "body 0"} <= names


def test_every_format_of_scenes_is_one_of_trajectories(recorded, tmp_path):
    _, found = recorded
    with pytest.raises(InputError) as told:
        found.save(tmp_path / "crowd.txt")
    assert all(suffix in str(told.value) for suffix in FORMATS)


def test_a_glb_file_has_the_crowd_as_meshes(recorded, tmp_path):
    trimesh = pytest.importorskip("trimesh")
    _, found = recorded
    found.save(tmp_path / "crowd.glb")
    scene = trimesh.load(tmp_path / "crowd.glb")
    bounds = np.sort(scene.bounds, axis=0)
    assert len(scene.geometry) >= 4
    np.testing.assert_allclose(np.sort(np.ptp(bounds, axis=0))[1:], 12.0, atol=1e-4)


def test_a_usd_file_has_the_crowd_over_time(recorded, tmp_path):
    usd = pytest.importorskip("pxr.Usd", reason="usd-core is not installed")
    _, found = recorded
    found.save(tmp_path / "crowd.usda")
    stage = usd.Stage.Open(str(tmp_path / "crowd.usda"))
    assert stage.GetEndTimeCode() > stage.GetStartTimeCode()
    assert sum(prim.GetTypeName() == "Mesh" for prim in stage.Traverse()) >= 4


def test_a_vtu_file_has_the_start(recorded, tmp_path):
    pyvista = pytest.importorskip("pyvista", reason="pyvista is not installed")
    _, found = recorded
    found.save(tmp_path / "crowd.vtu")
    bounds = pyvista.read(tmp_path / "crowd.vtu").bounds
    np.testing.assert_allclose(bounds[:4], [0, 12, 0, 12], atol=1e-6)


def test_a_video_of_a_crowd_has_pictures_that_differ(recorded, tmp_path):
    image = pytest.importorskip("PIL.Image")
    _, found = recorded
    found.save(tmp_path / "crowd.gif")
    with image.open(tmp_path / "crowd.gif") as video:
        assert video.n_frames > 1


def test_what_is_shown_survives_a_file_and_is_not_asked_of_older_ones(recorded, tmp_path):
    _, found = recorded
    found.save(tmp_path / "crowd.npz")
    again = Trajectories.load(tmp_path / "crowd.npz")
    for name in ("radii", "outlines", "ground", "walls"):
        np.testing.assert_array_equal(getattr(again, name), getattr(found, name))
    with np.load(tmp_path / "crowd.npz") as file:
        arrays = {name: file[name] for name in file.files}
    older = {name: values for name, values in arrays.items() if name not in ("radii", "outlines", "ground", "walls")}
    np.savez(tmp_path / "older.npz", **older)
    assert [thing.name for thing in Trajectories.load(tmp_path / "older.npz").scene().things] == ["points"]
    np.savez(tmp_path / "wrong.npz", **arrays | {"outlines": np.array([[0, 99]])})
    with pytest.raises(InputError, match="outlines must be numbers of particles"):
        Trajectories.load(tmp_path / "wrong.npz")


@pytest.mark.parametrize("make", [lambda: planet(5, 1, device="cpu"), lambda: swarm(5, device="cpu")])
def test_crowds_on_surfaces_and_in_space_are_scenes_too(make):
    simulation = make()
    scene = simulation.run(steps=3).scene()
    assert any(thing.name == "ground" for thing in scene.things) == (simulation.map.dimension == 2)
    assert all(np.isfinite(thing.vertices(1.0)).all() for thing in scene.things)
