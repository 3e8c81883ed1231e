"""A map of OpenStreetMap as a crowd's ground: buildings are obstacles, streets may be told from squares.

Question: where can one walk in this piece of a town?
Method:   the .osm file (XML) is read with the standard library. Nodes are laid flat around the middle of the extract
          (a metre is a metre in x and y). Closed ways tagged `building`, and multipolygons less their courtyards, block
          every cell of a grid whose centre they hold, and the cell of their middle however small they are. Cells within
          the width of a way tagged `highway` that cars use are zones for cars, and all other free cells for walkers.
Known as: import of OpenStreetMap with circulation zones (Pitiot 2015, section 8.3.2).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import warp as wp

from tangere.cells.generate import quad_grid
from tangere.cells.maps import CellMap
from tangere.crowd.occupancy import in_polygon
from tangere.runtime import InputError, positive

_EARTH = 6_371_008.8  #: mean radius [m]
#: Half of the width of a way by its tag [m], for links 4 m; those not listed are for walkers.
_CAR_WAYS = {"motorway": 8.0, "trunk": 7.0, "primary": 6.0, "secondary": 5.0, "tertiary": 4.0}
_CAR_WAYS |= {f"{name}_link": 4.0 for name in _CAR_WAYS}
_CAR_WAYS |= {"residential": 3.5, "unclassified": 3.5, "living_street": 3.0, "service": 2.5}
#: Cells at most: a file that asks for more has nodes far apart.
_MOST_CELLS = 10_000_000


@dataclass(frozen=True, eq=False)
class StreetMap:
    """A piece of a town."""

    map: CellMap  #: buildings are obstacle cells
    buildings: list[np.ndarray]  #: (k, 2) outlines, without courtyards [m]
    cars: np.ndarray  #: cells for cars
    walkers: np.ndarray  #: cells for walkers: all that are free and not for cars
    origin: tuple[float, float]  #: latitude and longitude of the middle [degrees]

    def __repr__(self) -> str:
        return (
            f"StreetMap({len(self.buildings)} buildings, {len(self.cars)} car cells, {len(self.walkers)} walker cells)"
        )

    @classmethod
    def load(cls, path: str | Path, *, cell: float = 4.0, device: str | wp.Device | None = None) -> StreetMap:
        """Read a local .osm file.

        Args:
            cell: side of the grid's squares [m].
        """
        cell = positive(cell, "cell")
        try:
            root = ElementTree.parse(path).getroot()
        except (OSError, ElementTree.ParseError, LookupError, ValueError) as error:  # the last two: its encoding
            raise InputError(f"{path}: cannot be read as OpenStreetMap XML: {error}") from error
        nodes = {
            node.get("id"): (_degrees(node, "lat", path), _degrees(node, "lon", path)) for node in root.iter("node")
        }
        ways = {way.get("id"): _way(way, nodes) for way in root.iter("way")}
        used = np.array([place for refs, _ in ways.values() for place in refs])
        if len(used) == 0:
            raise InputError(f"{path}: there are no ways with nodes")
        middle = 0.5 * (used.min(axis=0) + used.max(axis=0))
        low, high = (getattr(_laid_flat(used, middle), name)(axis=0) for name in ("min", "max"))
        counts = np.maximum(np.ceil((high - low + 4 * cell) / cell), 1)  # two cells of margin all around
        if counts.prod() > _MOST_CELLS:
            extent = f"{high[0] - low[0]:.4g} x {high[1] - low[1]:.4g} m"
            raise InputError(f"{path}: {extent} in cells of {cell} m are more than {_MOST_CELLS:,} cells")
        map = quad_grid(int(counts[0]), int(counts[1]), size=cell, device=device)
        shift = 2 * cell - low
        centres = map.numpy("centre")[:, :2]
        solid, cars = np.zeros(len(centres), bool), np.zeros(len(centres), bool)
        buildings: list[np.ndarray] = []
        for outlines, courtyards in _buildings(root, ways):
            held, open_air = np.zeros(len(centres), bool), np.zeros(len(centres), bool)
            for ring in outlines:
                buildings.append(_laid_flat(np.array(ring[:-1]), middle) + shift)
                within = in_polygon(buildings[-1], centres)
                if not within.any():
                    within[np.argmin(np.linalg.norm(centres - buildings[-1].mean(axis=0), axis=1))] = True
                held |= within
            for ring in courtyards:
                open_air |= in_polygon(_laid_flat(np.array(ring[:-1]), middle) + shift, centres)
            solid |= held & ~open_air
        for refs, tags in ways.values():
            if tags.get("highway") in _CAR_WAYS:
                cars |= _along(_laid_flat(np.array(refs), middle) + shift, centres, _CAR_WAYS[tags["highway"]])
        map.block("cell", np.flatnonzero(solid))
        free = ~solid
        return cls(map, buildings, np.flatnonzero(free & cars), np.flatnonzero(free & ~cars), (middle[0], middle[1]))


def _degrees(node: ElementTree.Element, name: str, path: str | Path) -> float:
    try:
        value = float(node.get(name, ""))
    except ValueError:
        value = math.nan
    if not abs(value) <= (90.0 if name == "lat" else 180.0):
        raise InputError(f"{path}: node {node.get('id')} has no number as {name}, or one that is no angle")
    return value


def _way(way: ElementTree.Element, nodes: dict) -> tuple[list[tuple[float, float]], dict[str, str]]:
    refs = [ref.get("ref") for ref in way.iter("nd")]
    # Extracts are cut at their border: nodes that are not in the file are outside.
    places = [nodes[ref] for ref in refs if ref in nodes]
    return places, {tag.get("k", ""): tag.get("v", "") for tag in way.iter("tag")}


def _buildings(root: ElementTree.Element, ways: dict) -> list[tuple[list[list], list[list]]]:
    """Closed rings of nodes around each building, and around its courtyards."""
    found = []
    for refs, tags in ways.values():
        if tags.get("building", "no") != "no":
            found.append((_rings([refs]), []))
    for relation in root.iter("relation"):
        tags = {tag.get("k"): tag.get("v") for tag in relation.iter("tag")}
        if tags.get("type") == "multipolygon" and tags.get("building", "no") != "no":
            members = [(m.get("role"), ways[m.get("ref")][0]) for m in relation.iter("member") if m.get("ref") in ways]
            inner = [refs for role, refs in members if role == "inner"]
            found.append((_rings([refs for role, refs in members if role != "inner"]), _rings(inner)))
    return found


def _rings(pieces: list[list]) -> list[list]:
    """Closed rings of pieces that are rings or meet at their ends; what does not close is left out."""
    rest, rings = [list(piece) for piece in pieces if len(piece) > 1], []
    while rest:
        ring = rest.pop()
        while ring[0] != ring[-1]:
            after = next((p for p in rest if ring[-1] in (p[0], p[-1])), None)
            if after is None:
                break
            rest.remove(after)
            ring += after[1:] if after[0] == ring[-1] else after[-2::-1]
        if ring[0] == ring[-1] and len(ring) > 3:
            rings.append(ring)
    return rings


def _laid_flat(degrees: np.ndarray, middle: np.ndarray) -> np.ndarray:
    """(n, 2) metres east and north of the middle."""
    if len(degrees) == 0:
        return np.empty((0, 2))
    north, east = np.radians(degrees - middle).T
    return _EARTH * np.stack([east * math.cos(math.radians(middle[0])), north], axis=1)


def _along(way: np.ndarray, points: np.ndarray, width: float) -> np.ndarray:
    """Which points are within `width` of a polyline."""
    near = np.zeros(len(points), bool)
    for a, b in itertools.pairwise(way):
        along = b - a
        square = float(along @ along)
        part = np.clip((points - a) @ along / square, 0.0, 1.0) if square > 0 else np.zeros(len(points))
        near |= np.linalg.norm(points - a - part[:, None] * along, axis=1) <= width
    return near
