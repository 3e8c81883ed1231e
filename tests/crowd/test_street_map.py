"""OpenStreetMap files: buildings become obstacles, streets become zones, and agents walk between them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tangere.crowd import Simulation, StreetMap
from tangere.runtime import InputError

LATITUDE, LONGITUDE = 48.58, 7.75
METRE = 180.0 / (math.pi * 6_371_008.8)  # of latitude, in degrees


def osm(ways, relations=()):
    """An extract: for each way its corners east and north of a point [m], and its tags; members of relations."""
    nodes, lines, known = [], [], {}
    for corners, tags in ways:
        refs = []
        for east, north in corners:
            if (east, north) not in known:
                nodes.append((LATITUDE + north * METRE, LONGITUDE + east * METRE / math.cos(math.radians(LATITUDE))))
                known[east, north] = len(nodes)
            refs.append(known[east, north])
        text = "".join(f'<nd ref="{r}"/>' for r in refs) + "".join(f'<tag k="{k}" v="{v}"/>' for k, v in tags.items())
        lines.append(f'<way id="{len(lines) + 1}">{text}</way>')
    places = "".join(f'<node id="{k + 1}" lat="{a:.12f}" lon="{b:.12f}"/>' for k, (a, b) in enumerate(nodes))
    for members in relations:
        text = "".join(f'<member type="way" ref="{way}" role="{role}"/>' for way, role in members)
        text += '<tag k="type" v="multipolygon"/><tag k="building" v="yes"/>'
        lines.append(f"<relation>{text}</relation>")
    return f'<?xml version="1.0"?><osm version="0.6">{places}{"".join(lines)}</osm>'


@pytest.mark.feature("F-P-60")
def test_buildings_block_streets_are_zones_and_agents_find_their_way(tmp_path):
    house = [(0, 0), (20, 0), (20, 12), (0, 12), (0, 0)]
    path = tmp_path / "town.osm"
    path.write_text(
        osm([(house, {"building": "yes"}), ([(-20, -20), (40, -20), (40, 30)], {"highway": "residential"})])
    )
    streets = StreetMap.load(path, cell=2.0, device="cpu")
    centre = streets.map.numpy("centre")[:, :2]
    outline = streets.buildings[0]
    np.testing.assert_allclose(np.ptp(outline, axis=0), [20, 12], atol=1e-3)
    low, high = outline.min(axis=0), outline.max(axis=0)
    inside = ((centre > low) & (centre < high)).all(axis=1)
    np.testing.assert_array_equal(streets.map.arrays.obstacle.numpy() != 0, inside)
    assert inside.sum() == pytest.approx(60, abs=16)
    assert len(np.intersect1d(streets.cars, streets.walkers)) == 0
    assert len(streets.cars) + len(streets.walkers) == (~inside).sum()
    assert len(streets.cars) * 4.0 == pytest.approx(110 * 7.0, rel=0.2)
    simulation = Simulation(streets.map)
    middle = 0.5 * (low + high)
    start, goal = [[low[0] - 4, middle[1]]], [[high[0] + 4, middle[1]]]
    (way,) = simulation.plan(start, goal)
    assert len(way) >= 3  # around the house
    simulation.add_points(start, goals=[way])
    simulation.run(steps=30 * 45)
    assert np.isfinite(simulation.arrived).all()


def test_files_that_are_no_maps_are_refused(tmp_path):
    path = tmp_path / "x.osm"
    with pytest.raises(InputError, match="cannot be read"):
        StreetMap.load(path)
    path.write_text("<osm><node id='1'")
    with pytest.raises(InputError, match="cannot be read"):
        StreetMap.load(path)
    path.write_text("<osm><node id='1' lat='x' lon='2'/></osm>")
    with pytest.raises(InputError, match="node 1 has no number as lat"):
        StreetMap.load(path)
    path.write_text("<osm/>")
    with pytest.raises(InputError, match="no ways"):
        StreetMap.load(path)
    path.write_text("<osm><node id='1' lat='95' lon='2'/></osm>")
    with pytest.raises(InputError, match="no angle"):
        StreetMap.load(path)
    path.write_text("<?xml version='1.0' encoding='foo'?><osm/>")
    with pytest.raises(InputError, match="cannot be read"):
        StreetMap.load(path)
    for wrong in (np.inf, np.nan, -1.0):
        with pytest.raises(InputError, match="cell must be positive"):
            StreetMap.load(path, cell=wrong)
    nodes = "<node id='1' lat='10' lon='-179.9'/><node id='2' lat='11' lon='179.9'/>"
    path.write_text(f"<osm>{nodes}<way id='1'><nd ref='1'/><nd ref='2'/></way></osm>")
    with pytest.raises(InputError, match="more than 10,000,000 cells"):
        StreetMap.load(path)


def test_courtyards_are_free_huts_block_a_cell_and_links_are_for_cars(tmp_path):
    half = [(0, 0), (40, 0), (40, 20)], [(0, 0), (0, 40), (40, 40), (40, 20)]  # of an outline
    yard = [(12, 12), (28, 12), (28, 28), (12, 28), (12, 12)]
    hut, gone = ([(x, 60), (x + 2, 60), (x + 2, 62), (x, 62), (x, 60)] for x in (10.3, 30.3))
    ways = [(half[0], {}), (half[1], {}), (yard, {}), (hut, {"building": "hut"}), (gone, {"building": "no"})]
    ways.append(([(-20, -20), (60, -20)], {"highway": "primary_link"}))
    path = tmp_path / "court.osm"
    path.write_text(osm(ways, [[(1, "outer"), (2, "outer"), (3, "inner")]]))
    streets = StreetMap.load(path, cell=4.0, device="cpu")
    assert len(streets.buildings) == 2
    np.testing.assert_allclose(np.ptp(streets.buildings[1], axis=0), 40.0, atol=1e-3)
    low = streets.buildings[1].min(axis=0)
    centre = streets.map.numpy("centre")[:, :2] - low
    solid = streets.map.arrays.obstacle.numpy() != 0
    block = ((centre > 0) & (centre < 40)).all(axis=1) & ~((centre > 12) & (centre < 28)).all(axis=1)
    nearest = np.argmin(np.linalg.norm(centre - [11.3, 61.0], axis=1))
    assert set(np.flatnonzero(solid)) == {*np.flatnonzero(block), nearest}
    assert len(streets.cars) * 16.0 == pytest.approx(80 * 8.0, rel=0.3)
