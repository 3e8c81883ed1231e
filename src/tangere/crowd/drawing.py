"""Pictures of crowds: from above in the plane, as a scene for the viewer in space, and plots of measures.

Walls are drawn as walls: the border of the map, blocked edges and the sides of obstacles, dark and thick. Points are
coloured by the speed they want, as in Pitiot 2015, section 9.1.1.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tangere.cells.maps import WALL
from tangere.crowd.simulation import Simulation
from tangere.crowd.trajectories import Trajectories
from tangere.runtime import InputError, MissingExtraError, check_kind
from tangere.scene import Camera, Scene, Thing
from tangere.shape.analytic import Sphere
from tangere.shape.mesh import Mesh

_INK, _BODY = "#3c4048", "#c8553d"
_GROUND = (0.80, 0.82, 0.84)
#: Cells: coarse, fine, crowded, blocked.
_COARSE, _FINE, _CROWDED, _BLOCKED = (0.97, 0.97, 0.96), (0.45, 0.62, 0.80), (0.98, 0.80, 0.52), (0.45, 0.46, 0.50)
#: Walls: colour, width in points of a picture of 1200 pixels, and room around the map for the border, as a part of it.
_WALL, _WALL_WIDTH, _MARGIN = "#22252b", 3.2, 0.006
#: How high walls stand, as a part of the mean length of a cell's edges.
_WALL_HEIGHT = 0.2
#: How high above the ground bodies are drawn [m].
_OUTLINE_HEIGHT = 0.3
#: Slow agents are blue, fast ones orange.
_SPEEDS = ((0.27, 0.47, 0.67), (0.45, 0.70, 0.62), (0.93, 0.68, 0.42), (0.80, 0.36, 0.30))


def top_view(simulation: Simulation, path: str | Path | None = None, *, width: int = 1200) -> np.ndarray:
    """A flat crowd from above, (height, width, 3) uint8.

    Cells are coloured by level and by how crowded they are, points by the speed they want; walls are dark lines.
    """
    check_kind(simulation, Simulation, "simulation")
    map = simulation.map
    if map.dimension != 2 or not map.flat:
        raise InputError("top_view draws flat maps; use scene_of for surfaces and space")
    figure, axes, collections = _canvas()
    corners = map.positions[np.unique(map.numpy("origin")[map.darts]), :2]
    low, high = corners.min(axis=0), corners.max(axis=0)
    room = _MARGIN * (high - low).max()
    low, high = low - room, high + room
    size = high - low
    figure.set_size_inches(10.0, max(2.0, 10.0 * size[1] / size[0]))
    polygons, cells = _cell_polygons(map)
    colours = cell_colours(simulation, cells)
    axes.add_collection(collections.PolyCollection(polygons, facecolors=colours, edgecolors="#d2d5da", linewidths=0.4))
    walls = collections.LineCollection(wall_edges(map)[:, :, :2], colors=_WALL, linewidths=_WALL_WIDTH)
    walls.set_capstyle("round")
    axes.add_collection(walls)
    bodies = [
        simulation.bodies.outline(k, s)[:, :2]
        for k, body in enumerate(simulation.bodies.bodies)
        for s in range(len(body.sections))
    ]
    axes.add_collection(collections.PolyCollection(bodies, facecolors=_BODY, edgecolors=_INK, linewidths=0.4))
    if len(simulation.points):
        place, radius = simulation.positions[:, :2], simulation.points.traits["radius"]
        widths = 2.0 * radius
        colour = np.array(_SPEEDS)[_speed_class(simulation.points.traits["speed"])]
        discs = collections.EllipseCollection(
            widths,
            widths,
            np.zeros(len(place)),
            units="xy",
            offsets=place,
            facecolors=colour,
            transOffset=axes.transData,
        )
        axes.add_collection(discs)
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(low[1], high[1])
    figure.set_dpi(width / 10.0)
    figure.canvas.draw()
    image = np.asarray(figure.canvas.buffer_rgba())[..., :3].copy()
    if path is not None:
        _save(figure, path, width / 10.0)
    return image


def cell_colours(simulation: Simulation, cells: np.ndarray) -> np.ndarray:
    """(n, 3) colours of cells, 0 to 1: bluer with each level, warmer the more agents are in them, obstacles grey."""
    map = simulation.map
    depth = np.minimum(0.12 * map.levels[cells], 0.5)[:, None]
    counts = np.zeros(map.cell_capacity)
    known = simulation.points.counts()
    counts[: len(known)] = known
    limit = simulation.adaptive.split if simulation.adaptive is not None else 8
    crowded = np.minimum(counts[cells] / limit, 1.0)[:, None]
    colours = (1.0 - depth) * np.array(_COARSE) + depth * np.array(_FINE)
    colours = (1.0 - 0.6 * crowded) * colours + 0.6 * crowded * np.array(_CROWDED)
    colours[map.arrays.obstacle.numpy()[cells] != 0] = _BLOCKED
    return colours


def scene_of(simulation: Simulation) -> Scene:
    """Ground, obstacles, bodies and points as things for pictures and the viewer; points by wanted speed."""
    check_kind(simulation, Simulation, "simulation")
    map, things = simulation.map, []
    if map.dimension == 2:
        triangles, cells = cell_triangles(map, raised=True)
        level = np.where(map.arrays.obstacle.numpy()[cells] != 0, -1, map.levels[cells])
        for k in np.unique(level):
            grey = tuple(float(max(0.2, 1.0 - 0.1 * max(k, 0))) * c for c in _GROUND) if k >= 0 else (0.45, 0.46, 0.5)
            name = f"cells of level {k}" if k >= 0 else "obstacles"
            things.append(Thing(name, _mesh(triangles[level == k]), grey))
        panels = _wall_panels(map)
        if len(panels):
            things.append(Thing("walls", _mesh(panels), (0.13, 0.15, 0.17)))
    for kind, number in enumerate(np.unique(_speed_class(simulation.points.traits["speed"]))):
        chosen = _speed_class(simulation.points.traits["speed"]) == number
        if chosen.any():
            poses = np.tile(np.eye(4), (int(chosen.sum()), 1, 1))
            poses[:, :3, 3] = simulation.positions[chosen]
            radius = simulation.points.traits["radius"][chosen]
            things.append(Thing(f"points {kind + 1}", Sphere(radius).at(poses), _SPEEDS[number]))
    for k, body in enumerate(simulation.bodies.bodies):
        parts = [raised_outline(simulation.bodies.outline(k, s)) for s in range(len(body.sections))]
        fan = np.concatenate([part[0][part[1]] for part in parts])
        things.append(Thing(f"body {k}", _mesh(fan), (0.78, 0.33, 0.24)))
    return Scene(tuple(things), camera=Camera((0.4, -1.0, 0.7)), title=repr(simulation))


def plot_measures(trajectories: Trajectories, path: str | Path) -> None:
    """Stalling, density, overlaps and speed over time, as PNG."""
    figure, _, _ = _canvas()
    figure.clear()
    names = {
        "stalling": "part stalled",
        "density": "others within range\n[1/m² or 1/m³]",
        "overlaps": "pairs overlapping",
        "speed": "speed [m/s]",
    }
    figure.set_size_inches(7.2, 6.4)
    panels = figure.subplots(len(names), 1, sharex=True)
    for axes, (name, label) in zip(panels, names.items(), strict=True):
        axes.plot(trajectories.times, trajectories.measures[name], color="#4477aa", linewidth=1.6)
        axes.set_ylabel(label, fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
    panels[-1].set_xlabel("time [s]")
    _save(figure, path, 150)


def _speed_class(speed: np.ndarray) -> np.ndarray:
    """0 to 3 by quarter of the range of speeds."""
    span = np.ptp(speed) if len(speed) else 0.0
    return np.zeros(len(speed), int) if span == 0 else np.minimum((4 * (speed - speed.min()) / span).astype(int), 3)


def _canvas() -> tuple[Any, Any, Any]:
    try:
        from matplotlib import collections
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("matplotlib", "view") from error
    figure = Figure()
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    return figure, axes, collections


def _save(figure: Any, path: str | Path, dpi: float) -> None:
    try:
        figure.savefig(path, dpi=dpi, format="png")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error


def _cell_polygons(map: Any) -> tuple[list[np.ndarray], np.ndarray]:
    phi1, origin, anchor = map.numpy("phi1"), map.numpy("origin"), map.numpy("anchor")
    polygons, leaves = [], map.leaves
    for start in anchor[leaves]:
        darts = [int(start)]
        while phi1[darts[-1]] != start:
            darts.append(int(phi1[darts[-1]]))
        polygons.append(map.positions[origin[darts], :2])
    return polygons, leaves


def cell_triangles(map: Any, *, raised: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """(n, 3, 3) triangles of the darts of a 2-map [m], and their cells.

    Args:
        raised: obstacles stand out, with a roof and sides.
    """
    darts, origin = map.darts, map.numpy("origin")
    cell = map.numpy("cell")[darts]
    ends = map.positions[origin[darts]], map.positions[origin[map.numpy("phi1")[darts]]]
    triangles = np.stack([map.numpy("centre")[cell], *ends], axis=1)
    blocked = map.arrays.obstacle.numpy()[cell] != 0
    if raised and blocked.any():
        foot = triangles[blocked]
        tall = 0.5 * float(np.linalg.norm(foot[:, 2] - foot[:, 1], axis=1).mean())
        normal = np.cross(foot[:, 1] - foot[:, 0], foot[:, 2] - foot[:, 0])
        normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-300)
        roof = foot + tall * normal[:, None]
        lower, upper = foot[:, [1, 2]], roof[:, [1, 2]]
        sides = np.concatenate([lower, upper[:, 1:]], axis=1), np.concatenate([lower[:, :1], upper[:, ::-1]], axis=1)
        triangles = np.concatenate([triangles[~blocked], roof, *sides])
        cell = np.concatenate([cell[~blocked], *[cell[blocked]] * 3])
    return triangles, cell


def cell_edges(map: Any) -> np.ndarray:
    """(n, 2, 3) the edges of all leaves, each once [m]."""
    origin = map.numpy("origin")
    ends = np.sort(np.stack([origin[map.darts], origin[map.numpy("phi1")[map.darts]]], axis=1), axis=1)
    return map.positions[np.unique(ends, axis=0)]


def wall_edges(map: Any) -> np.ndarray:
    """(n, 2, 3) the edges that stop agents: the border of a 2-map, blocked edges and the sides of obstacles [m]."""
    darts = _wall_darts(map)
    origin = map.numpy("origin")
    return map.positions[np.stack([origin[darts], origin[map.numpy("phi1")[darts]]], axis=1)]


def _wall_darts(map: Any) -> np.ndarray:
    """One dart of each such edge, of a cell that agents may be in unless both are obstacles' or there is no other."""
    darts, across = map.darts, map.numpy("phi2")
    blocked = map.arrays.obstacle.numpy()[map.numpy("cell")[darts]] != 0
    other = across[darts]
    stops = (other < 0) | ((map.numpy("tag")[darts] & WALL != 0) & ~blocked)
    chosen = darts[stops]
    # An edge that is blocked itself stops from both sides.
    twice = (across[chosen] >= 0) & np.isin(across[chosen], chosen) & (across[chosen] < chosen)
    return chosen[~twice]


def _wall_panels(map: Any) -> np.ndarray:
    """(n, 3, 3) triangles of low walls that stand on the edges where agents stop but no obstacle stands [m]."""
    darts, across = _wall_darts(map), map.numpy("phi2")
    other = across[darts]
    beside = np.where(other >= 0, map.arrays.obstacle.numpy()[map.numpy("cell")[other]], 0)
    darts = darts[(beside == 0) & (map.arrays.obstacle.numpy()[map.numpy("cell")[darts]] == 0)]
    origin, place = map.numpy("origin"), map.positions
    a, b = place[origin[darts]], place[origin[map.numpy("phi1")[darts]]]
    if len(darts) == 0:
        return np.empty((0, 3, 3))
    normal = np.cross(a - map.numpy("centre")[map.numpy("cell")[darts]], b - a)
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-300)
    up = _WALL_HEIGHT * float(np.linalg.norm(b - a, axis=1).mean()) * normal
    panels = np.concatenate([np.stack([a, b, b + up], axis=1), np.stack([a, b + up, a + up], axis=1)])
    return np.concatenate([panels, panels[:, ::-1]])  # seen from both sides


def raised_outline(outline: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(k + 1, 3) middle and corners of a body's outline, a bit above the ground [m], and (k, 3) triangles of them."""
    middle = outline.mean(axis=0)
    normal = np.cross(outline - middle, np.roll(outline, -1, axis=0) - middle).sum(axis=0)
    corners = np.concatenate([middle[None], outline]) + _OUTLINE_HEIGHT * normal / max(
        float(np.linalg.norm(normal)), 1e-300
    )
    k = np.arange(1, len(corners))
    return corners, np.stack([np.zeros_like(k), k, np.roll(k, -1)], axis=1)


def _mesh(triangles: np.ndarray) -> Mesh:
    return Mesh(triangles.reshape(-1, 3), np.arange(3 * len(triangles)).reshape(-1, 3))
