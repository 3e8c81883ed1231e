"""People on floor plans are drawn with walls as walls, from above and as scenes, and as videos."""

from __future__ import annotations

import numpy as np
import pytest

from tangere.crowd import FloorPlan, Simulation
from tangere.runtime import InputError

shapely = pytest.importorskip("shapely")
pytest.importorskip("matplotlib")
pytestmark = pytest.mark.long_in_debug

PLAN = FloorPlan(shapely.box(0, 0, 8, 4).difference(shapely.box(3.9, 0, 4.1, 2.5)))


@pytest.fixture(scope="module")
def done():
    simulation = Simulation(PLAN, dt=0.05, device="cpu")
    simulation.add_people(8, shapely.box(0, 0, 3, 4), to=simulation.add_exit(shapely.box(7, 0, 8, 4)), seed=1)
    return simulation.run(3.0, record=0.5)


def pixel(image, x: float, y: float) -> np.ndarray:
    """The colour at a place of the plan."""
    height, width, _ = image.shape
    scale = width / (8 + 2 * 0.16)
    return np.asarray(image[int(height - (y + 0.16) * scale), int((x + 0.16) * scale)], int)


def test_walls_are_dark_the_floor_is_light_and_people_are_there(done, tmp_path):
    import tangere.view as view

    image = view.floor_view(done, tmp_path / "plan.png", frame=0, width=800)
    assert (tmp_path / "plan.png").stat().st_size > 1000
    assert pixel(image, 6.0, 3.0).min() > 240
    assert pixel(image, 3.9, 1.0).max() < 90
    assert pixel(image, 4.0, 1.0).min() > 200  # outside, between the sides of the wall
    for place in done.rows_at(0)[1]:
        assert np.ptp(pixel(image, *place)) > 40
    dense = view.floor_view(done, frame=0, density=1.0, trails=np.inf, width=800)
    assert (np.asarray(dense) != np.asarray(image)).any()


def test_a_simulation_and_a_run_show_themselves(done):
    simulation = Simulation(PLAN, dt=0.05, device="cpu")
    simulation.add_people(4, shapely.box(0, 0, 3, 4), to=simulation.add_exit(shapely.box(7, 0, 8, 4)))
    for shown in (simulation, done):
        png = shown._repr_png_()
        assert png is not None
        assert png.startswith(b"\x89PNG")
        names = [thing.name for thing in shown.scene().things]
        assert names == ["floor", "walls", "people"]


def test_the_floor_of_a_scene_is_the_plan(done):
    floor = done.scene().things[0]
    corners = np.asarray(floor.vertices(0.0)).reshape(-1, 3, 3)
    area = 0.5 * np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])[:, 2]
    assert (area > 0).all()
    assert area.sum() == pytest.approx(PLAN.area)


def test_a_run_is_a_video(done, tmp_path):
    from PIL import Image

    import tangere.view as view

    view.floor_video(done, tmp_path / "run.gif", width=200)
    assert getattr(Image.open(tmp_path / "run.gif"), "n_frames", 1) > 3
    with pytest.raises(InputError, match="video"):
        view.floor_video(done, tmp_path / "run.png")
    with pytest.raises(InputError, match="frame"):
        view.floor_view(done, frame=1000)
