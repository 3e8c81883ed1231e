"""A map of OpenStreetMap as a crowd's ground: buildings are obstacles, streets may be told from squares.

Question: where can one walk in this piece of a town?
Method:   the .osm file (XML) is read with the standard library. Nodes are laid flat around the middle of the extract
          (a metre is a metre in x and y); closed ways tagged `building` block every cell of a grid whose centre they
          hold; cells within the width of a way tagged `highway` are zones for cars or walkers.
Spec: specs/pitiot-multiresolution-interactions 2.22 (urban import, circulation zones).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from tangere.cells.maps.cell_map import CellMap
from tangere.cells.maps.generate import quad_grid
from tangere.runtime import InputError

__all__ = ["Streets", "load_streets"]

_EARTH = 6_371_008.8  #: mean radius [m]
#: Half of the width of a way by its tag [m]; those not listed are for walkers.
_CAR_WAYS = {"motorway": 8.0, "trunk": 7.0, "primary": 6.0, "secondary": 5.0, "tertiary": 4.0, "residential": 3.5}
_WALKER_WIDTH = 2.0


@dataclass(frozen=True, eq=False)
class Streets:
    """A piece of a town."""

    map: CellMap  #: buildings are obstacle cells
    buildings: list[np.ndarray]  #: (k, 2) outlines [m]
    cars: np.ndarray  #: cells for cars
    walkers: np.ndarray  #: cells for walkers: all that are free and not for cars
    origin: tuple[float, float]  #: latitude and longitude of the middle [degrees]

    def __repr__(self) -> str:
        return f"Streets({len(self.buildings)} buildings, {len(self.cars)} car cells, {len(self.walkers)} walker cells)"


def load_streets(path: str | Path, *, cell: float = 4.0, device: str | None = None) -> Streets:
    """Read a local .osm file.

    Args:
        cell: side of the grid's squares [m].
    """
    try:
        root = ElementTree.parse(path).getroot()
    except (OSError, ElementTree.ParseError) as error:
        raise InputError(f"{path}: cannot be read as OpenStreetMap XML: {error}") from error
    if not cell > 0:
        raise InputError(f"cell must be positive, not {cell}")
    nodes = {node.get("id"): (_degrees(node, "lat", path), _degrees(node, "lon", path)) for node in root.iter("node")}
    ways = [_way(way, nodes, path) for way in root.iter("way")]
    used = np.array([place for refs, _ in ways for place in refs])
    if len(used) == 0:
        raise InputError(f"{path}: there are no ways with nodes")
    middle = 0.5 * (used.min(axis=0) + used.max(axis=0))
    flat = [(_laid_flat(np.array(refs), middle), tags) for refs, tags in ways]
    low, high = (getattr(_laid_flat(used, middle), name)(axis=0) for name in ("min", "max"))
    counts = np.maximum(np.ceil((high - low + 4 * cell) / cell).astype(int), 1)  # two cells of margin all around
    map = quad_grid(int(counts[0]), int(counts[1]), size=cell, device=device)
    shift = 2 * cell - low
    centres = map.numpy("centre")[:, :2]
    buildings = [
        way[:-1] + shift for way, tags in flat if "building" in tags and len(way) > 3 and (way[0] == way[-1]).all()
    ]
    solid, cars = np.zeros(len(centres), bool), np.zeros(len(centres), bool)
    for outline in buildings:
        solid |= _inside(outline, centres)
    for way, tags in flat:
        if tags.get("highway") in _CAR_WAYS:
            cars |= _along(way + shift, centres, _CAR_WAYS[tags["highway"]])
    map.block("cell", np.flatnonzero(solid))
    free = ~solid
    return Streets(map, buildings, np.flatnonzero(free & cars), np.flatnonzero(free & ~cars), (middle[0], middle[1]))


def _degrees(node: ElementTree.Element, name: str, path: str | Path) -> float:
    try:
        value = float(node.get(name, ""))
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{path}: node {node.get('id')} has no number as {name}")
    return value


def _way(way: ElementTree.Element, nodes: dict, path: str | Path) -> tuple[list[tuple[float, float]], dict[str, str]]:
    refs = [ref.get("ref") for ref in way.iter("nd")]
    # Extracts are cut at their border: nodes that are not in the file are outside.
    places = [nodes[ref] for ref in refs if ref in nodes]
    return places, {tag.get("k", ""): tag.get("v", "") for tag in way.iter("tag")}


def _laid_flat(degrees: np.ndarray, middle: np.ndarray) -> np.ndarray:
    """(n, 2) metres east and north of the middle."""
    if len(degrees) == 0:
        return np.empty((0, 2))
    north, east = np.radians(degrees - middle).T
    return _EARTH * np.stack([east * math.cos(math.radians(middle[0])), north], axis=1)


def _inside(polygon: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Which points a simple polygon holds: an odd number of sides to the right."""
    held = np.zeros(len(points), bool)
    for a, b in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
        beside = (a[1] > points[:, 1]) != (b[1] > points[:, 1])
        if a[1] != b[1]:
            crossing = a[0] + (points[:, 1] - a[1]) * (b[0] - a[0]) / (b[1] - a[1])
            held ^= beside & (points[:, 0] < crossing)
    return held


def _along(way: np.ndarray, points: np.ndarray, width: float) -> np.ndarray:
    """Which points are within `width` of a polyline."""
    near = np.zeros(len(points), bool)
    for a, b in itertools.pairwise(way):
        along = b - a
        square = float(along @ along)
        part = np.clip((points - a) @ along / square, 0.0, 1.0) if square > 0 else np.zeros(len(points))
        near |= np.linalg.norm(points - a - part[:, None] * along, axis=1) <= width
    return near
