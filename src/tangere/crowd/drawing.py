"""Pictures of crowds: from above in the plane, as a scene for the viewer in space, and plots of measures.

Spec: specs/pitiot-multiresolution-interactions 2.23 (speeds in colours), 5.1.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tangere.crowd.simulation import Simulation
from tangere.crowd.trajectories import Trajectories
from tangere.runtime import InputError, MissingExtraError, check_kind
from tangere.scene import Camera, Scene, Thing
from tangere.shape.analytic import Sphere
from tangere.shape.mesh import Mesh

__all__ = ["cell_colours", "cell_edges", "cell_triangles", "lifted", "plot_measures", "scene_of", "top_view"]

_INK, _BODY = "#3c4048", "#c8553d"
_GROUND = (0.80, 0.82, 0.84)
#: Cells: coarse, fine, crowded, blocked.
_COARSE, _FINE, _CROWDED, _BLOCKED = (0.97, 0.97, 0.96), (0.45, 0.62, 0.80), (0.98, 0.80, 0.52), (0.45, 0.46, 0.50)
#: How high above the ground bodies are drawn [m].
_LIFT = 0.3
#: Slow agents are blue, fast ones orange.
_SPEEDS = ((0.27, 0.47, 0.67), (0.45, 0.70, 0.62), (0.93, 0.68, 0.42), (0.80, 0.36, 0.30))


def top_view(simulation: Simulation, path: str | Path | None = None, *, width: int = 1200) -> np.ndarray:
    """A flat crowd from above, (height, width, 3) uint8.

    Cells are coloured by level and by how crowded they are, points by the speed they want.
    """
    check_kind(simulation, Simulation, "simulation")
    map = simulation.map
    if map.dimension != 2 or not map.flat:
        raise InputError("top_view draws flat maps; use scene_of for surfaces and space")
    figure, axes, collections = _canvas()
    low, high = map.positions[:, :2].min(axis=0), map.positions[:, :2].max(axis=0)
    size = high - low
    figure.set_size_inches(10.0, max(2.0, 10.0 * size[1] / size[0]))
    polygons, cells = _cell_polygons(map)
    colours = cell_colours(simulation, cells)
    axes.add_collection(collections.PolyCollection(polygons, facecolors=colours, edgecolors="#d2d5da", linewidths=0.4))
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
    for kind, number in enumerate(np.unique(_speed_class(simulation.points.traits["speed"]))):
        chosen = _speed_class(simulation.points.traits["speed"]) == number
        if chosen.any():
            poses = np.tile(np.eye(4), (int(chosen.sum()), 1, 1))
            poses[:, :3, 3] = simulation.positions[chosen]
            radius = simulation.points.traits["radius"][chosen]
            things.append(Thing(f"points {kind + 1}", Sphere(radius).at(poses), _SPEEDS[number]))
    for k, body in enumerate(simulation.bodies.bodies):
        parts = [lifted(simulation.bodies.outline(k, s)) for s in range(len(body.sections))]
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


def lifted(outline: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(k + 1, 3) middle and corners of a body's outline, a bit above the ground [m], and (k, 3) triangles of them."""
    middle = outline.mean(axis=0)
    normal = np.cross(outline - middle, np.roll(outline, -1, axis=0) - middle).sum(axis=0)
    corners = np.concatenate([middle[None], outline]) + _LIFT * normal / max(float(np.linalg.norm(normal)), 1e-300)
    k = np.arange(1, len(corners))
    return corners, np.stack([np.zeros_like(k), k, np.roll(k, -1)], axis=1)


def _mesh(triangles: np.ndarray) -> Mesh:
    return Mesh(triangles.reshape(-1, 3), np.arange(3 * len(triangles)).reshape(-1, 3))
