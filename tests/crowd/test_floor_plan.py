"""Floor plans are read as they are, bad ones are told in a sentence, and doors too narrow are told with their place."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tangere.crowd import FloorPlan, Simulation, load_plan
from tangere.runtime import InputError

shapely = pytest.importorskip("shapely")

SQUARE = "POLYGON ((0 0, 4 0, 4 3, 0 3, 0 0))"


def two_rooms(door: float, thick: float = 0.2):
    """Rooms of 4 x 4 m and a door in the middle of the wall between them."""
    wall = shapely.union_all([shapely.box(4, -1, 4 + thick, 2 - door / 2), shapely.box(4, 2 + door / 2, 4 + thick, 5)])
    return shapely.box(0, 0, 8 + thick, 4).difference(wall)


def test_the_same_plan_comes_from_shapely_wkt_and_geojson(tmp_path):
    polygon = shapely.from_wkt(SQUARE)
    feature = {"type": "Feature", "geometry": json.loads(shapely.to_geojson(polygon)), "properties": {}}
    collection = {"type": "FeatureCollection", "features": [feature]}
    plans = [FloorPlan(given) for given in (polygon, SQUARE, feature, json.dumps(collection))]
    for name in ("plan.wkt", "plan.geojson"):
        plans[0].save(tmp_path / name)
        plans.append(FloorPlan.load(tmp_path / name))
    for plan in plans:
        assert plan.polygon.equals(polygon)
        assert plan.walls.shape == (4, 2, 2)
        assert plan.area == 12.0


def test_a_collection_of_polygons_is_one_plan():
    """As the files of JuPedSim's examples are."""
    plan = FloorPlan("GEOMETRYCOLLECTION (POLYGON ((0 0, 4 0, 4 3, 0 3, 0 0)), POLYGON ((4 1, 6 1, 6 2, 4 2, 4 1)))")
    assert plan.area == 14.0
    assert len(plan.walls) == 8


def test_holes_are_walls_and_no_floor():
    plan = FloorPlan(shapely.box(0, 0, 4, 4).difference(shapely.box(1, 1, 2, 2)))
    assert len(plan.walls) == 8
    assert plan.contains([[0.5, 0.5], [1.5, 1.5], [1.0, 1.0], [5.0, 1.0]]).tolist() == [True, False, False, False]
    np.testing.assert_allclose(plan.distance_to_walls([[0.5, 1.5], [3.0, 3.0]]), [0.5, 1.0])


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("POLYGON EMPTY", "empty"),
        ("LINESTRING (0 0, 1 1)", "LineString"),
        ("POLYGON ((0 0, 4 4, 4 0, 0 4, 0 0))", r"cross.*\(2 2\)"),
        ("POLYGON ((0 0, 1 0", "cannot be read"),
        ("GEOMETRYCOLLECTION (POINT (0 0), POLYGON ((0 0, 1 0, 1 1, 0 0)))", "not of a Point"),
        ("GEOMETRYCOLLECTION (POLYGON ((0 0, 4 4, 4 0, 0 4, 0 0)))", r"cross.*\(2 2\)"),
        ('{"type": "Polygon", ', "GeoJSON"),
        (42, "polygon of shapely, WKT or GeoJSON"),
        ("POLYGON ((0 0, 1e8 0, 1e8 1e8, 0 0))", "origin"),
    ],
)
def test_a_plan_that_cannot_be_used_is_told_in_one_sentence(given, told):
    with pytest.raises(InputError, match=told) as caught:
        FloorPlan(given)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_plan_is_told_with_its_name(tmp_path):
    with pytest.raises(InputError, match=r"plan\.dwg"):
        FloorPlan.load(tmp_path / "plan.dwg")
    with pytest.raises(InputError, match=r"missing\.wkt"):
        FloorPlan.load(tmp_path / "missing.wkt")


@pytest.mark.parametrize("thick", [0.01, 0.2, 2.0])
def test_a_door_is_told_if_and_only_if_it_is_narrower_than_a_person(thick):
    radius = 0.3
    assert FloorPlan(two_rooms(2 * radius + 0.001, thick)).doors(radius) == []
    (door,) = FloorPlan(two_rooms(2 * radius - 0.001, thick)).doors(radius)
    assert door.width == pytest.approx(2 * radius - 0.001, abs=1e-9)
    assert door.place[1] == pytest.approx(2.0)
    assert 4.0 <= door.place[0] <= 4.0 + thick
    assert "0.599 m at (4." in str(door)


@given(st.floats(0.3, 1.5), st.floats(0.3, 1.5), st.floats(0.15, 0.7))
def test_discs_pass_where_no_door_is_told(one, other, radius):
    """The oracle is the plan shrunk by the radius: it falls apart where somebody does not get through."""
    walls = [shapely.box(3, -1, 3.1, 2 - one / 2), shapely.box(3, 2 + one / 2, 3.1, 5)]
    walls += [shapely.box(6, -1, 6.3, 1 - other / 2), shapely.box(6, 1 + other / 2, 6.3, 5)]
    if min(abs(one - 2 * radius), abs(other - 2 * radius)) < 1e-3 or other > 1.9:
        return
    plan = FloorPlan(shapely.box(0, 0, 9, 4).difference(shapely.union_all(walls)))
    rooms = len(shapely.get_parts(plan.polygon.buffer(-radius, quad_segs=64)))
    assert len(plan.doors(radius)) == rooms - 1


def test_niches_and_corners_are_no_doors():
    niche = shapely.union_all([shapely.box(0, 0, 4, 4), shapely.box(4, 1, 5, 1.3)])
    assert FloorPlan(niche).doors(0.4) == []
    assert FloorPlan(SQUARE).doors(0.4) == []


def test_a_passage_beside_a_pillar_is_a_door():
    plan = FloorPlan(shapely.box(0, 0, 6, 4).difference(shapely.box(2, 0.3, 3, 3)))
    (door,) = plan.doors(0.25)
    assert door.width == pytest.approx(0.3)
    assert plan.doors(0.1) == []


@pytest.mark.parametrize("suffix", [".wkt", ".geojson", ".json"])
def test_the_file_is_named_that_has_no_plan(tmp_path, suffix):
    file = tmp_path / f"broken{suffix}"
    file.write_text("POLYGON ((0 0, 1")
    with pytest.raises(InputError, match=rf"broken\{suffix}: polygon cannot be read: Expected number"):
        load_plan(file)


def test_features_without_a_place_are_left_out():
    """GeoJSON allows features without a geometry, and programs write them."""
    nowhere = {"type": "Feature", "properties": {"name": "office"}, "geometry": None}
    square = {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]]}
    floor = {"type": "Feature", "properties": {}, "geometry": square}
    assert FloorPlan({"type": "FeatureCollection", "features": [nowhere, floor, nowhere]}).area == 16.0
    with pytest.raises(InputError, match="the plan is empty"):
        FloorPlan({"type": "FeatureCollection", "features": [nowhere]})


def test_a_plan_in_degrees_is_asked_about():
    plan = FloorPlan("POLYGON ((13.37 52.51, 13.38 52.51, 13.38 52.52, 13.37 52.52, 13.37 52.51))")
    simulation = Simulation(plan, device="cpu")
    with pytest.raises(InputError, match=r"has room in it; it is 0\.01 x 0\.01 m: are its lengths metres\?"):
        simulation.add_people(5, to=simulation.add_exit(plan.polygon))


@pytest.mark.parametrize("ground", [shapely.box(0, 0, 4, 4), SQUARE])
def test_who_gives_a_polygon_for_a_plan_is_told_what_makes_one(ground):
    with pytest.raises(InputError, match=r"map must be a CellMap or a FloorPlan, not (Polygon|str): FloorPlan"):
        Simulation(ground)
    with pytest.raises(InputError, match="threads must be a whole number of at least 1, not 0"):
        Simulation(FloorPlan(ground), threads=0)
