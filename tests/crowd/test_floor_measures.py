"""What is measured of people on floor plans is what other programs and plain geometry find."""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest

from tangere.crowd import FloorPlan, FloorRun, Simulation, grid_density, voronoi_density
from tangere.runtime import InputError

shapely = pytest.importorskip("shapely")
pytestmark = pytest.mark.long_in_debug

HALL = FloorPlan(shapely.box(0, 0, 12, 6))
RIGHT = shapely.box(11, 0, 12, 6)


@pytest.fixture(scope="module")
def busy():
    """A run in which people come and go, and its line."""
    simulation = Simulation(HALL, dt=0.05, device="cpu")
    way_out = simulation.add_exit(RIGHT)
    line = simulation.add_line((6, 0), (6, 6))
    simulation.add_people(30, shapely.box(0, 0, 5, 6), to=way_out, seed=1)
    simulation.add_source(shapely.box(0, 0, 2, 6), rate=2.0, count=15, to=way_out, seed=2)
    return simulation.run(60.0, until="empty", record=0.05), line


def test_the_moment_of_a_crossing_is_that_of_the_crossing_itself():
    """Alone in the hall at constant speed, the line at x = 6 is crossed when it is reached, between two steps."""
    simulation = Simulation(HALL, dt=0.3, device="cpu")
    way_out = simulation.add_exit(RIGHT)
    forth, back = simulation.add_line((6, 6), (6, 0)), simulation.add_line((6, 0), (6, 6))
    simulation.add_people(
        np.array([[2.0, 3.0]]), to=simulation.add_waypoint(RIGHT, to=way_out, straight=True), speed=1.3
    )
    simulation.run(6.0)
    assert abs(forth.crossings[0]) == pytest.approx(4.0 / 1.3, abs=1e-9)
    assert forth.crossings[0] == -back.crossings[0]
    assert np.isnan(forth.flow)


def test_crossings_are_those_between_recorded_frames(busy):
    done, line = busy
    first = np.full(len(done.left), np.inf)
    for number in range(len(first)):
        rows = done.number == number
        beyond = done.position[rows, 0] > 6.0
        if beyond.any():
            first[number] = done.times[done.frame[rows][np.argmax(beyond)]]
    assert len(line.times) == 45
    late = first - np.abs(line.crossings)
    assert ((late >= -1e-9) & (late <= 0.05 + 1e-9)).all()
    times, count = line.n_t()
    assert count[-1] == 45
    assert line.flow == pytest.approx(44 / (times[-1] - times[0]))
    assert line.specific_flow == pytest.approx(line.flow / 6.0)


def test_rows_have_everybody_who_was_there_and_nobody_else(busy):
    done, _ = busy
    for frame, time in enumerate(done.times):
        numbers, places = done.rows_at(frame)
        there = (done.entered <= time + 1e-9) & (done.left > time + 1e-9)
        assert numbers.tolist() == np.flatnonzero(there).tolist()
        assert HALL.contains(places).all()
    assert done.travel_times.min() > 0
    assert done.evacuation_time == done.left.max()
    assert done.flow == pytest.approx(44 / np.ptp(done.left))


def test_a_run_is_read_as_it_was_saved(busy, tmp_path):
    done, _ = busy
    done.save(tmp_path / "run.npz")
    again = FloorRun.load(tmp_path / "run.npz")
    assert again.plan.polygon.equals(done.plan.polygon)
    for name in ("times", "frame", "number", "position", "velocity", "entered", "left", "radii", "no_way", "exits"):
        np.testing.assert_array_equal(getattr(again, name), getattr(done, name))
    np.savez(tmp_path / "other.npz", plan="x")
    for name in ("other.npz", "missing.npz"):
        with pytest.raises(InputError, match=name):
            FloorRun.load(tmp_path / name)


def test_tables_have_the_rows(busy, tmp_path):
    done, _ = busy
    done.save(tmp_path / "run.csv")
    table = np.loadtxt(tmp_path / "run.csv", delimiter=",", skiprows=1)
    np.testing.assert_array_equal(table, np.column_stack([done.frame, done.number, done.position]))
    parquet = pytest.importorskip("pyarrow.parquet")
    done.save(tmp_path / "run.parquet")
    read = parquet.read_table(tmp_path / "run.parquet")
    assert read.column_names == ["frame", "number", "x", "y"]
    np.testing.assert_array_equal(read["x"].to_numpy(), done.position[:, 0])
    done.save(tmp_path / "run.sqlite")
    with sqlite3.connect(tmp_path / "run.sqlite") as file:
        rows = file.execute("SELECT frame, id, pos_x, pos_y FROM trajectory_data").fetchall()
        fps = float(file.execute("SELECT value FROM metadata WHERE key = 'fps'").fetchone()[0])
        wkt = file.execute("SELECT wkt FROM geometry").fetchone()[0]
    np.testing.assert_array_equal(np.array(rows), table)
    assert fps == pytest.approx(20.0)
    assert shapely.from_wkt(wkt).equals(HALL.polygon)
    with pytest.raises(InputError, match="cannot be written"):
        done.save(tmp_path / "no" / "folder.csv")


def test_pedpy_finds_the_same_crossings_and_densities(busy):
    pedpy = pytest.importorskip("pedpy")
    done, line = busy
    table, crossing = pedpy.compute_n_t(
        traj_data=done.to_pedpy(), measurement_line=pedpy.MeasurementLine([(6, 0), (6, 6)])
    )
    assert len(crossing) == len(line.times)
    theirs = np.sort(crossing["frame"].to_numpy()) / 20.0
    assert np.abs(theirs - line.times).max() <= 0.05 + 1e-9
    frame = 60
    cells = pedpy.compute_individual_voronoi_polygons(
        traj_data=done.to_pedpy(), walkable_area=pedpy.WalkableArea(HALL.polygon)
    )
    there = cells[cells["frame"] == frame].sort_values("id")
    np.testing.assert_allclose(done.voronoi_density(frame, cutoff=None), there["density"].to_numpy(), rtol=1e-6)


def test_squares_count_people_per_floor():
    plan = FloorPlan(shapely.box(0, 0, 2, 2).difference(shapely.box(1, 1, 1.5, 2)))
    density, low = grid_density(plan, np.array([[0.5, 0.5], [0.6, 0.6], [1.75, 1.5]]), 1.0)
    np.testing.assert_allclose(density, [[2.0, 0.0], [0.0, 2.0]])
    assert low.tolist() == [0.0, 0.0]
    with pytest.raises(InputError, match="too many"):
        grid_density(plan, np.empty((0, 2)), 1e-5)


def test_densities_add_up_to_the_people(busy):
    done, _ = busy
    assert np.nansum(done.density(1.0)) * len(done.times) == pytest.approx(len(done.number))
    with pytest.raises(InputError, match="no frame"):
        done.density(1.0, start=1e6)
    for frame in (0, 40, 100):
        # Voronoi cells are all of the floor, each once.
        area = (1.0 / done.voronoi_density(frame, cutoff=None)).sum()
        assert area == pytest.approx(HALL.area)


def test_voronoi_cells_end_at_walls_and_at_the_cutoff():
    """Two rooms: nobody's cell goes on behind the wall, and who is alone has at most the disc of the cutoff."""
    plan = FloorPlan(shapely.box(0, 0, 8, 4).difference(shapely.box(3.9, -1, 4.1, 3.5)))
    places = np.array([[2.0, 2.0], [6.0, 2.0]])
    assert voronoi_density(plan, places, cutoff=1.0) == pytest.approx([1 / np.pi] * 2, rel=0.01)
    one = voronoi_density(plan, places[:1])
    assert one == pytest.approx([1 / plan.area])
    assert len(voronoi_density(plan, np.empty((0, 2)))) == 0


def test_the_fundamental_diagram_is_density_and_mean_speed(busy):
    done, _ = busy
    area = shapely.box(3, 0, 6, 6)
    density, speed = done.fundamental_diagram(area)
    frames = [k for k in range(len(done.times)) if shapely.contains_xy(area, *done.rows_at(k)[1].T).any()]
    assert len(frames) == len(density)
    for k, frame in enumerate(frames[:50]):
        rows = done.frame == frame
        inside = shapely.contains_xy(area, *done.position[rows].T)
        assert density[k] == pytest.approx(inside.sum() / 18.0)
        assert speed[k] == pytest.approx(np.linalg.norm(done.velocity[rows][inside], axis=1).mean())
