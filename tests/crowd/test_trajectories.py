"""Trajectories in files, measures against all pairs, and pictures."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from tangere.cells.maps import quad_grid
from tangere.crowd import Simulation, Trajectories, box, plot_measures, top_view
from tangere.runtime import InputError, MissingExtraError


@pytest.fixture(scope="module")
def recorded():
    simulation = Simulation(quad_grid(8, 8, size=3.0, device="cpu"))
    random = np.random.default_rng(4)
    simulation.add_points(random.uniform(1, 23, (60, 2)), goals=random.uniform(1, 23, (60, 2)))
    simulation.add_bodies(box(2.0, 1.0), [[12.0, 12.0]], headings=[[1, 0]], goals=[[20.0, 12.0]])
    heard = []
    return simulation, simulation.run(2.0, record=0.5, progress=heard.append), heard


def test_what_is_noted_is_what_happened(recorded):
    simulation, found, heard = recorded
    np.testing.assert_allclose(found.times, [0, 0.5, 1.0, 1.5, 2.0])
    np.testing.assert_array_equal(found.positions[-1], simulation.positions)
    np.testing.assert_array_equal(found.particles[-1], simulation.bodies.position)
    assert heard[-1] == 1.0
    assert len(heard) == 60


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


def test_stalling_is_seen_where_nobody_gets_on():
    simulation = Simulation(quad_grid(3, 3, size=3.0, device="cpu"))
    simulation.add_points([[4.5, 4.5]], goals=[[99.0, 4.5]])  # behind the border
    assert simulation.run(8.0, record=4.0).measures["stalling"].tolist() == [0.0, 0.0, 1.0]


def test_files_hold_everything(recorded, tmp_path):
    _, found, _ = recorded
    found.save(tmp_path / "crowd.npz")
    again = Trajectories.load(tmp_path / "crowd.npz")
    for name in ("times", "positions", "velocities", "particles", "bodies", "arrived"):
        np.testing.assert_array_equal(getattr(again, name), getattr(found, name))
    assert again.measures.keys() == found.measures.keys()
    found.save(tmp_path / "crowd.csv")
    with (tmp_path / "crowd.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 5 * 60
    assert float(rows[-1]["x"]) == found.positions[-1, -1, 0]
    with pytest.raises(InputError, match=r"\.npz, \.csv or \.parquet"):
        found.save(tmp_path / "crowd.txt")
    try:
        import pyarrow.parquet
    except ImportError:
        with pytest.raises(MissingExtraError):
            found.save(tmp_path / "crowd.parquet")
    else:
        found.save(tmp_path / "crowd.parquet")
        assert pyarrow.parquet.read_table(tmp_path / "crowd.parquet").num_rows == 300


@pytest.mark.release
def test_pictures_show_the_crowd(recorded, tmp_path):
    pytest.importorskip("matplotlib")
    simulation, found, _ = recorded
    image = top_view(simulation, tmp_path / "top.png", width=600)
    assert image.shape[1] == 600
    assert len(np.unique(image.reshape(-1, 3), axis=0)) > 20
    plot_measures(found, tmp_path / "measures.png")
    assert (tmp_path / "measures.png").stat().st_size > 5000
