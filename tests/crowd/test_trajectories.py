"""Trajectories in files, measures against all pairs, and pictures."""

from __future__ import annotations

import csv
import sys

import numpy as np
import pytest

from tangere.cells.generate import quad_grid
from tangere.crowd import Simulation, Trajectories, box
from tangere.runtime import InputError, MissingExtraError
from tangere.view import plot_measures, top_view


@pytest.fixture(scope="module")
def recorded():
    simulation = Simulation(quad_grid(8, 8, size=3.0, device="cpu"))
    random = np.random.default_rng(4)
    simulation.add_points(random.uniform(1, 23, (60, 2)), goals=random.uniform(1, 23, (60, 2)))
    simulation.add_bodies(box(2.0, 1.0), [[12.0, 12.0]], headings=[[1, 0]], goals=[[20.0, 12.0]])
    heard = []
    return simulation, simulation.run(2.0, record=0.5, progress=lambda done, steps: heard.append((done, steps))), heard


def test_what_is_noted_is_what_happened(recorded):
    simulation, found, heard = recorded
    np.testing.assert_allclose(found.times, [0, 0.5, 1.0, 1.5, 2.0])
    np.testing.assert_array_equal(found.positions[-1], simulation.positions)
    np.testing.assert_array_equal(found.particles[-1], simulation.bodies.positions)
    assert heard == [(done, 60) for done in range(1, 61)]


@pytest.mark.feature("F-P-84")
def test_measures_are_those_of_all_pairs(recorded):
    simulation, found, _ = recorded
    x, v = found.positions[-1], found.velocities[-1]
    away = np.linalg.norm(x[:, None] - x[None], axis=2) + 99 * np.eye(60)
    assert found.measures["overlaps"][-1] == (away < 0.6).sum() / 2
    assert found.measures["deepest"][-1] == pytest.approx(max(0.0, 0.6 - away.min()), abs=1e-12)
    assert found.measures["density"][-1] == pytest.approx((away <= 1.5).sum(axis=1).mean() / (np.pi * 1.5**2))
    going = ~np.isfinite(found.arrived)
    assert found.measures["stalling"][-1] == pytest.approx((np.linalg.norm(v[going], axis=1) < 0.14).mean())
    assert found.travel_time == pytest.approx(found.arrived[np.isfinite(found.arrived)].mean(), nan_ok=True)


def test_the_time_of_a_way_begins_when_an_agent_gets_it(tmp_path):
    simulation = Simulation(quad_grid(8, 4, size=3.0, device="cpu"))
    simulation.add_points([[2.0, 3.0]], goals=[[9.0, 3.0]])
    first = simulation.run(8.0)
    simulation.add_points([[2.0, 9.0]], goals=[[9.0, 9.0]])
    second = simulation.run(8.0)
    np.testing.assert_allclose(second.set_off, [0.0, 8.0])
    np.testing.assert_allclose(second.arrived - second.set_off, first.travel_time, atol=0.2)
    assert second.travel_time == pytest.approx(first.travel_time, abs=0.2)
    simulation.retarget([0], [[2.0, 3.0]])
    third = simulation.run(8.0)
    np.testing.assert_allclose(third.set_off, [16.0, 8.0])
    assert third.travel_time == pytest.approx(first.travel_time, abs=0.2)
    third.save(tmp_path / "third.npz")
    assert Trajectories.load(tmp_path / "third.npz").travel_time == third.travel_time


def test_who_is_added_during_a_run_is_noted_from_then_on(tmp_path):
    simulation = Simulation(quad_grid(8, 8, size=3.0, device="cpu"))
    simulation.add_points([[4.0, 4.0], [9.0, 9.0]])

    def add(done, steps):
        part = done / steps
        if part in (0.5, 1.0):
            simulation.add_points([[20.0, 12.0 * part]])
            simulation.add_bodies(box(2.0, 1.0), [[12.0, 20.0 * part]], headings=[[1, 0]])

    found = simulation.run(2.0, record=0.5, progress=add)
    assert np.isnan(found.positions).any(axis=2).sum(axis=0).tolist() == [0, 0, 3, 5]
    assert np.isnan(found.particles).any(axis=2).sum(axis=0).tolist() == [3] * 4 + [5] * 4
    np.testing.assert_array_equal(found.positions[-1, :3], simulation.positions[:3])
    assert found.bodies.tolist() == [0, 4, 8]
    assert found.set_off.shape == found.arrived.shape == (4,)
    found.save(tmp_path / "crowd.csv")
    with (tmp_path / "crowd.csv").open() as file:
        rows = [(float(row["time"]), int(row["agent"])) for row in csv.DictReader(file)]
    assert len(rows) == 5 + 5 + 2
    assert [round(time, 6) for time, agent in rows if agent == 2] == [1.5, 2.0]


def test_a_run_of_seconds_is_one_of_as_many_steps_and_neither_or_both_are_refused():
    ways = []
    for options in ({"seconds": 1.0}, {"steps": 30}, {"steps": 30, "progress": True}):
        simulation = Simulation(quad_grid(8, 8, size=3.0, device="cpu"), threads=1)
        simulation.add_points([[4.0, 4.0], [9.0, 9.0]], goals=[[20.0, 4.0], [2.0, 9.0]])
        ways.append(simulation.run(**options, record=0.25).positions)
        assert (simulation.steps, simulation.time) == (30, pytest.approx(1.0))
    np.testing.assert_array_equal(ways[0], ways[1])
    np.testing.assert_array_equal(ways[0], ways[2])
    for wrong in ({}, {"seconds": 1.0, "steps": 30}):
        with pytest.raises(InputError, match="either seconds or steps"):
            simulation.run(**wrong)


def test_threads_change_no_bit_and_are_refused_by_name_if_they_are_none():
    ways = []
    for threads in (1, 2, None):
        simulation = Simulation(quad_grid(30, 30, size=3.0, device="cpu"), device="cpu", threads=threads)
        random = np.random.default_rng(7)
        simulation.add_points(random.uniform(1, 89, (3000, 2)), goals=random.uniform(1, 89, (3000, 2)))
        ways.append(simulation.run(steps=10).positions)
    np.testing.assert_array_equal(ways[0], ways[1])
    np.testing.assert_array_equal(ways[0], ways[2])
    with pytest.raises(InputError, match="threads must be a positive whole number"):
        Simulation(quad_grid(3, 3, size=3.0, device="cpu"), threads=0)


def test_stalling_is_seen_where_nobody_gets_on():
    simulation = Simulation(quad_grid(3, 3, size=3.0, device="cpu"))
    simulation.add_points([[4.5, 4.5]], goals=[[99.0, 4.5]])  # behind the border
    assert simulation.run(8.0, record=4.0).measures["stalling"].tolist() == [0.0, 0.0, 1.0]


def test_files_hold_everything(recorded, tmp_path):
    _, found, _ = recorded
    found.save(tmp_path / "crowd.npz")
    again = Trajectories.load(tmp_path / "crowd.npz")
    for name in ("times", "positions", "velocities", "particles", "bodies", "set_off", "arrived"):
        np.testing.assert_array_equal(getattr(again, name), getattr(found, name))
    assert again.measures.keys() == found.measures.keys()
    found.save(tmp_path / "crowd.csv")
    with (tmp_path / "crowd.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 5 * 60
    assert float(rows[-1]["x"]) == found.positions[-1, -1, 0]
    with pytest.raises(InputError, match=r"\.npz, \.csv or \.parquet"):
        found.save(tmp_path / "crowd.txt")


def test_parquet_holds_all_columns(recorded, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    _, found, _ = recorded
    found.save(tmp_path / "crowd.parquet")
    table = parquet.read_table(tmp_path / "crowd.parquet")
    assert table.column_names == ["time", "agent", "x", "y", "z", "vx", "vy", "vz"]
    columns = [column.to_numpy().reshape(5, 60) for column in table.columns]
    np.testing.assert_array_equal(columns[0], np.broadcast_to(found.times[:, None], (5, 60)))
    np.testing.assert_array_equal(columns[1], np.broadcast_to(np.arange(60), (5, 60)))
    np.testing.assert_array_equal(np.stack(columns[2:5], axis=2), found.positions)
    np.testing.assert_array_equal(np.stack(columns[5:], axis=2), found.velocities)


def test_without_pyarrow_its_extra_is_named(recorded, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtraError, match="pyarrow"):
        recorded[1].save(tmp_path / "crowd.parquet")


@pytest.mark.release
def test_pictures_show_the_crowd(recorded, tmp_path):
    pytest.importorskip("matplotlib")
    simulation, found, _ = recorded
    image = top_view(simulation, tmp_path / "top.png", width=600)
    assert image.shape[1] == 600
    assert len(np.unique(image.reshape(-1, 3), axis=0)) > 20
    assert (image._repr_png_() or b"").startswith(b"\x89PNG")
    plot_measures(found, tmp_path / "measures.png")
    assert (tmp_path / "measures.png").stat().st_size > 5000
