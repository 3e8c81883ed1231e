"""OpenStreetMap files: buildings become obstacles, streets become zones, and agents walk between them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tangere.crowd import Simulation, load_streets
from tangere.runtime import InputError

LATITUDE, LONGITUDE = 48.58, 7.75
METRE = 180.0 / (math.pi * 6_371_008.8)  # of latitude, in degrees


def osm(ways):
    """An extract: for each way its corners east and north of a point [m], and its tags."""
    nodes, lines = [], []
    for corners, tags in ways:
        refs = []
        closed = corners[0] == corners[-1]
        for east, north in corners[:-1] if closed else corners:
            nodes.append((LATITUDE + north * METRE, LONGITUDE + east * METRE / math.cos(math.radians(LATITUDE))))
            refs.append(len(nodes))
        refs += refs[:1] if closed else []
        text = "".join(f'<nd ref="{r}"/>' for r in refs) + "".join(f'<tag k="{k}" v="{v}"/>' for k, v in tags.items())
        lines.append(f'<way id="{len(lines) + 1}">{text}</way>')
    places = "".join(f'<node id="{k + 1}" lat="{a:.12f}" lon="{b:.12f}"/>' for k, (a, b) in enumerate(nodes))
    return f'<?xml version="1.0"?><osm version="0.6">{places}{"".join(lines)}</osm>'


@pytest.mark.feature("F-P-60")
def test_buildings_block_streets_are_zones_and_agents_find_their_way(tmp_path):
    house = [(0, 0), (20, 0), (20, 12), (0, 12), (0, 0)]
    path = tmp_path / "town.osm"
    path.write_text(
        osm([(house, {"building": "yes"}), ([(-20, -20), (40, -20), (40, 30)], {"highway": "residential"})])
    )
    streets = load_streets(path, cell=2.0, device="cpu")
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
    simulation.step(30 * 45)
    assert np.isfinite(simulation.arrived).all()


def test_files_that_are_no_maps_are_refused(tmp_path):
    path = tmp_path / "x.osm"
    with pytest.raises(InputError, match="cannot be read"):
        load_streets(path)
    path.write_text("<osm><node id='1'")
    with pytest.raises(InputError, match="cannot be read"):
        load_streets(path)
    path.write_text("<osm><node id='1' lat='x' lon='2'/></osm>")
    with pytest.raises(InputError, match="node 1 has no number as lat"):
        load_streets(path)
    path.write_text("<osm/>")
    with pytest.raises(InputError, match="no ways"):
        load_streets(path)
