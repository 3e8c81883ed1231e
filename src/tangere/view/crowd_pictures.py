"""Pictures of crowds by matplotlib: from above in the plane, and plots of measures.

Walls are drawn as walls: the border of the map, blocked edges and the sides of obstacles, dark and thick. Points are
coloured by the speed they want, as in Pitiot 2015, section 9.1.1.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tangere.crowd import Simulation, Trajectories, wall_edges
from tangere.runtime import InputError, check_kind, needs_extra, writing
from tangere.view.crowd_scene import SPEED_COLOURS, speed_classes
from tangere.view.pictures import Picture

_INK, _BODY = "#3c4048", "#c8553d"
#: Cells: coarse, fine, crowded, blocked.
_COARSE, _FINE, _CROWDED, _BLOCKED = (0.97, 0.97, 0.96), (0.45, 0.62, 0.80), (0.98, 0.80, 0.52), (0.45, 0.46, 0.50)
#: Walls: colour, width in points of a picture of 1200 pixels, and room around the map for the border, as a part of it.
_WALL, _WALL_WIDTH, _MARGIN = "#22252b", 3.2, 0.006


def top_view(simulation: Simulation, path: str | Path | None = None, *, width: int = 1200) -> Picture:
    """A flat crowd from above, (height, width, 3) uint8.

    Cells are coloured by level and by how crowded they are, points by the speed they want; walls are dark lines.
    """
    check_kind(simulation, Simulation, "simulation")
    map = simulation.map
    if map.dimension != 2 or not map.flat:
        raise InputError("top_view draws flat maps; use Simulation.scene for surfaces and space")
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
        colour = np.array(SPEED_COLOURS)[speed_classes(simulation.points.traits["speed"])]
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
    image = np.asarray(figure.canvas.buffer_rgba())[..., :3].copy().view(Picture)
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


def _canvas() -> tuple[Any, Any, Any]:
    with needs_extra("matplotlib", "view"):
        from matplotlib import collections
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    figure = Figure()
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    return figure, axes, collections


def _save(figure: Any, path: str | Path, dpi: float) -> None:
    with writing(path):
        figure.savefig(path, dpi=dpi, format="png")


def _cell_polygons(map: Any) -> tuple[list[np.ndarray], np.ndarray]:
    phi1, origin, anchor = map.numpy("phi1"), map.numpy("origin"), map.numpy("anchor")
    polygons, leaves = [], map.leaves
    for start in anchor[leaves]:
        darts = [int(start)]
        while phi1[darts[-1]] != start:
            darts.append(int(phi1[darts[-1]]))
        polygons.append(map.positions[origin[darts], :2])
    return polygons, leaves
