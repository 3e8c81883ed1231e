"""Floor plans come from layers of DXF files and from images, as shapely makes them of the same shapes."""

from __future__ import annotations

import numpy as np
import pytest

from tangere.crowd import FloorPlan, Simulation
from tangere.runtime import InputError

shapely = pytest.importorskip("shapely")
ezdxf = pytest.importorskip("ezdxf")


def drawing(tmp_path, unit: int = 6, scale: float = 1.0):
    """A hall with a pillar of two outlines, a round one, a wall that is one line, and a layer that is no wall."""
    file = ezdxf.new()
    file.header["$INSUNITS"] = unit
    space = file.modelspace()
    for name in ("walls", "notes"):
        file.layers.add(name)

    def line(points, layer="walls", closed=False):
        space.add_lwpolyline([(scale * x, scale * y) for x, y in points], close=closed, dxfattribs={"layer": layer})

    line([(0, 0), (12, 0), (12, 6), (0, 6)], closed=True)
    line([(8, 2), (9, 2), (9, 3), (8, 3)], closed=True)
    space.add_circle((scale * 3, scale * 3), scale * 0.5, dxfattribs={"layer": "walls"})
    space.add_line((scale * 6, 0), (scale * 6, scale * 4), dxfattribs={"layer": "walls"})
    line([(1, 1), (11, 5)], layer="notes")
    path = tmp_path / "plan.dxf"
    file.saveas(path)
    return path


@pytest.mark.parametrize(("unit", "scale"), [(6, 1.0), (4, 1000.0)])
def test_the_layers_of_a_drawing_are_a_plan(tmp_path, unit, scale):
    plan = FloorPlan.from_dxf(drawing(tmp_path, unit, scale), "walls", thickness=0.1)
    circle = shapely.Point(3, 3).buffer(0.5, quad_segs=64)
    wanted = shapely.box(0, 0, 12, 6) - shapely.box(8, 2, 9, 3) - circle - shapely.box(5.95, -0.05, 6.05, 4.05)
    assert shapely.area(shapely.symmetric_difference(plan.polygon, wanted)) < 0.01
    assert plan.contains([[1.0, 1.0], [3.0, 3.0], [8.5, 2.5], [6.0, 2.0], [6.0, 5.0]]).tolist() == [1, 0, 0, 0, 1]
    simulation = Simulation(plan, dt=0.05)
    simulation.add_people(10, shapely.box(0, 0, 2, 6), to=simulation.add_exit(shapely.box(11, 0, 12, 6)), seed=1)
    assert np.isfinite(simulation.run(60.0, until="empty").left).all()


def test_gaps_between_ends_are_closed_up_to_snap(tmp_path):
    file = ezdxf.new()
    file.header["$INSUNITS"] = 6
    corners = [(0, 0), (5, 0), (5, 4), (0, 4)]
    for k, (x, y) in enumerate(corners):
        file.modelspace().add_line((x + 0.003, y), corners[(k + 1) % 4])
    file.saveas(tmp_path / "gaps.dxf")
    assert FloorPlan.load(tmp_path / "gaps.dxf").area == pytest.approx(20.0, rel=0.01)
    with pytest.raises(InputError, match=r"enclose nothing: are there gaps wider than snap, 0\.001 m"):
        FloorPlan.from_dxf(tmp_path / "gaps.dxf", snap=0.001)


def test_an_outline_in_a_wall_is_floor_again(tmp_path):
    file = ezdxf.new()
    file.header["$INSUNITS"] = 6
    for size in (5.0, 3.0, 2.0):
        points = [(-size, -size), (size, -size), (size, size), (-size, size)]
        file.modelspace().add_lwpolyline(points, close=True)
    file.saveas(tmp_path / "nested.dxf")
    plan = FloorPlan.load(tmp_path / "nested.dxf")
    assert plan.area == pytest.approx(100 - 36 + 16)
    assert plan.contains([[4.0, 0.0], [2.5, 0.0], [0.0, 0.0]]).tolist() == [True, False, True]


def test_what_is_wrong_with_a_drawing_is_told(tmp_path):
    path = drawing(tmp_path, unit=0)
    with pytest.raises(InputError, match="does not tell its unit"):
        FloorPlan.from_dxf(path)
    with pytest.raises(InputError, match="no layer 'doors', but 'notes', 'walls'"):
        FloorPlan.from_dxf(path, "doors", unit=1.0)
    with pytest.raises(InputError, match="enclose nothing"):
        FloorPlan.from_dxf(path, ["notes"], unit=1.0)
    (tmp_path / "text.dxf").write_text("no drawing")
    with pytest.raises(InputError, match=r"text\.dxf: cannot be read as DXF"):
        FloorPlan.load(tmp_path / "text.dxf")
    with pytest.raises(InputError, match=r"missing\.dxf: cannot be read"):
        FloorPlan.load(tmp_path / "missing.dxf")


def test_light_pixels_are_floor(tmp_path):
    pillow = pytest.importorskip("PIL.Image")
    picture = np.zeros((40, 60), np.uint8)
    picture[2:38, 2:58] = 255
    picture[10:20, 30:32] = 0  # a wall
    picture[30:34, 10:14] = 40  # a dark pillar
    pillow.fromarray(picture).save(tmp_path / "plan.png")
    wanted = shapely.box(0.2, 0.2, 5.8, 3.8) - shapely.box(3.0, 2.0, 3.2, 3.0) - shapely.box(1.0, 0.6, 1.4, 1.0)
    for given in (picture, picture / 255.0, np.repeat(picture[..., None], 3, axis=2), tmp_path / "plan.png"):
        plan = FloorPlan.from_image(given, 0.1)
        assert shapely.area(shapely.symmetric_difference(plan.polygon, wanted)) < 0.01
        assert len(plan.walls) == 12


def test_random_images_are_plans(rng):
    """Pixels that touch at corners only make no plan that crosses itself."""
    for _ in range(20):
        picture = rng.random((12, 15)) < 0.6
        plan = FloorPlan.from_image(picture, 0.5)
        assert plan.area == pytest.approx(picture.sum() * 0.25, rel=0.01)
        middles = [((k + 0.5) * 0.5, (12 - j - 0.5) * 0.5) for j in range(12) for k in range(15)]
        assert (plan.contains(middles) == picture.ravel()).all()


def test_what_is_wrong_with_an_image_is_told(tmp_path):
    with pytest.raises(InputError, match="light enough"):
        FloorPlan.from_image(np.zeros((4, 4)), 0.1)
    with pytest.raises(InputError, match="shape"):
        FloorPlan.from_image(np.ones(4), 0.1)
    with pytest.raises(InputError, match="pixel"):
        FloorPlan.from_image(np.ones((4, 4)), 0.0)
    with pytest.raises(InputError, match=r"missing\.png"):
        FloorPlan.from_image(tmp_path / "missing.png", 0.1)
