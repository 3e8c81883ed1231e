"""People on floor plans from above: walls as walls, people by their speed, density maps, trails, videos; and scenes.

Colours of people go from red (standing) to blue (as fast as they want); a density map is the mean over the run, or as
it is now. In scenes walls stand upright and people are balls.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tangere.crowd import FloorPlan, FloorRun, FloorSimulation, Sheet, grid_density, posed
from tangere.runtime import InputError, check_kind, check_out_file, needs_extra, positive, whole, writing
from tangere.scene import Camera, Scene, Thing, moving_balls
from tangere.shape.analytic import Sphere
from tangere.shape.mesh import Mesh
from tangere.view.pictures import Picture
from tangere.view.video import write_frames

_FLOOR, _OUTSIDE, _WALL, _TRAIL, _SOLID = "#ffffff", "#e9eaec", "#22252b", "#4477aa", "#8a8f98"
_STANDING, _GOING = np.array([0.80, 0.25, 0.20]), np.array([0.20, 0.45, 0.75])
_GROUND, _PANEL, _PERSON = (0.86, 0.87, 0.88), (0.30, 0.32, 0.36), (0.27, 0.47, 0.67)
#: Height of walls [m], and room around a plan, as a part of it.
_HEIGHT, _MARGIN = 1.2, 0.02
#: Nobody is faster on his trail [m/s].
_JUMP = 10.0
_CAMERA = Camera((0.25, -1.0, 1.3))


def floor_view(
    crowd: FloorRun | FloorSimulation,
    path: str | Path | None = None,
    *,
    frame: int = -1,
    density: float | None = None,
    trails: float = 0.0,
    width: int = 1000,
) -> Picture:
    """A plan with everybody on it, from above, (height, width, 3) uint8; of a building, storeys side by side.

    Args:
        crowd: a run, or a simulation as it is now.
        path: a .png file to write as well.
        frame: which one of a run.
        density: side of the squares of a density map [m], the mean over the run; None: no map.
        trails: draw where people went in the last seconds [s]; inf: all the way.
        width: in pixels.
    """
    return _drawn(_state(crowd, frame), path, density, trails, whole(width, "width", 50))


def floor_video(
    run: FloorRun,
    path: str | Path,
    *,
    rate: float = 1.0,
    density: float | None = None,
    trails: float = 0.0,
    width: int = 800,
) -> None:
    """Write a run as a .gif or .mp4 file, seen from above.

    Args:
        rate: how many seconds of the run a second shows.
        density, trails, width: as of `floor_view`.
    """
    check_kind(run, FloorRun, "run")
    path = Path(path)
    if path.suffix.lower() not in (".gif", ".mp4"):
        raise InputError(f"{path}: a video is a .gif or a .mp4 file")
    check_out_file(path, "a video", path.suffix.lower())
    size = floor_view(run, frame=0, width=whole(width, "width", 50)).shape
    run = run.laid_out()
    even = size[0] - size[0] % 2, size[1] - size[1] % 2

    def frames() -> Iterator[Picture]:
        for k in range(len(run.times)):
            yield floor_view(run, frame=k, density=density, trails=trails, width=width)[: even[0], : even[1]]

    with writing(path):
        write_frames(path, frames(), (even[1], even[0]), 1.0 / (run.frame_rate * positive(rate, "rate")))


def floor_png(crowd: FloorRun | FloorSimulation) -> bytes | None:
    """The bytes of a picture for notebooks; a run with all trails. None where it cannot be drawn."""
    try:
        return floor_view(crowd, trails=np.inf if isinstance(crowd, FloorRun) else 0.0, width=600)._repr_png_()
    except (InputError, ImportError):
        return None


def floor_scene(crowd: FloorRun | FloorSimulation) -> Scene:
    """The people as they are now, or over a run: floor, upright walls, balls."""
    sheets = crowd.plan.sheets
    things = [Thing("floor", _joined([_floor_mesh(s) for s in sheets]), _GROUND)]
    things.append(Thing("walls", _joined([_wall_mesh(s) for s in sheets]), _PANEL))
    if isinstance(crowd, FloorRun):
        times = crowd.times
        seen = np.unique(crowd.number)
        if len(seen):
            places = np.full((len(times), len(seen), 3), np.nan)
            column = np.searchsorted(seen, crowd.number)
            places[crowd.frame, column, :2] = crowd.position
            places[crowd.frame, column, 2] = crowd.heights + crowd.radii[crowd.number]
            if len(times) == 1:
                places, times = np.repeat(places, 2, axis=0), np.array([times[0], times[0] + 1.0])
            balls = moving_balls("people", places, radius=crowd.radii[seen], times=times, colour=_PERSON)
            things.append(balls)
        return Scene(tuple(things), camera=_CAMERA, title=repr(crowd), clock=(float(times[0]), float(times[-1])))
    if crowd.count:
        radius = crowd.people.radius[crowd.numbers]
        poses = np.tile(np.eye(4), (crowd.count, 1, 1))
        poses[:, :2, 3], poses[:, 2, 3] = crowd.positions, radius + crowd.heights
        things.append(Thing("people", Sphere(radius).at(poses), _PERSON))
    return Scene(tuple(things), camera=_CAMERA, title=repr(crowd))


def _state(crowd: FloorRun | FloorSimulation, frame: int) -> dict[str, Any]:
    """What is drawn: the plan, people with their velocities, and rows that maps and trails are made of."""
    if isinstance(crowd, FloorSimulation):
        number, time = crowd.numbers, crowd.time
        plan, moved = crowd.plan.laid_out()
        state = {"position": crowd.positions + moved[crowd.sheets], "velocity": crowd.velocities, "run": None}
        state["obstacles"] = [posed(obstacle.area_now, (*moved[obstacle.sheet], 0.0)) for obstacle in crowd.obstacles]
        radius, speed = crowd.people.radius, crowd.people.speed
    else:
        check_kind(crowd, FloorRun, "crowd")
        crowd = crowd.laid_out()
        plan = crowd.plan
        if not -len(crowd.times) <= frame < len(crowd.times):
            raise InputError(f"frame: there are {len(crowd.times)} frames, not one of number {frame}")
        chosen = crowd.frame == frame % len(crowd.times)
        number, time = crowd.number[chosen], float(crowd.times[frame])
        state = {"position": crowd.position[chosen], "velocity": crowd.velocity[chosen], "run": crowd}
        state["obstacles"] = crowd.obstacles_at(frame)
        radius, speed = crowd.radii, crowd.speeds
    return state | {"plan": plan, "radius": radius[number], "speed": speed[number], "time": time}


def _drawn(state: dict[str, Any], path: str | Path | None, density: float | None, trails: float, width: int) -> Picture:
    with needs_extra("matplotlib", "view"):
        from matplotlib import collections, patches
        from matplotlib import path as paths
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    plan: FloorPlan = state["plan"]
    low, high = np.array(plan.bounds[:2]), np.array(plan.bounds[2:])
    room = _MARGIN * (high - low).max()
    low, high = low - room, high + room
    size = high - low
    figure = Figure(figsize=(10.0, max(1.0, 10.0 * size[1] / size[0])), dpi=width / 10.0, facecolor=_OUTSIDE)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(low[1], high[1])
    rings = [np.asarray(ring.coords)[:, :2] for part in _parts(plan) for ring in (part.exterior, *part.interiors)]
    outline = paths.Path.make_compound_path(*(paths.Path(ring, closed=True) for ring in rings))
    floor = patches.PathPatch(outline, facecolor=_FLOOR, edgecolor="none")
    axes.add_patch(floor)
    if density is not None:
        _draw_density(axes, floor, state, positive(density, "density"))
    if trails > 0:
        lines = _trails(state, trails)
        axes.add_collection(collections.LineCollection(lines, colors=_TRAIL, linewidths=0.8, alpha=0.5))
    for area in state["obstacles"]:
        for part in getattr(area, "geoms", [area]):
            axes.add_patch(patches.Polygon(np.asarray(part.exterior.coords), facecolor=_SOLID, edgecolor=_WALL))
    walls = collections.LineCollection(list(plan.walls), colors=_WALL, linewidths=2.4)
    walls.set_capstyle("round")
    axes.add_collection(walls)
    if len(state["position"]):
        part = np.clip(np.linalg.norm(state["velocity"], axis=1) / state["speed"], 0.0, 1.0)[:, None]
        discs = collections.EllipseCollection(
            2.0 * state["radius"],
            2.0 * state["radius"],
            np.zeros(len(part)),
            units="xy",
            offsets=state["position"],
            facecolors=(1.0 - part) * _STANDING + part * _GOING,
            transOffset=axes.transData,
        )
        axes.add_collection(discs)
    figure.canvas.draw()
    image = np.asarray(figure.canvas.buffer_rgba())[..., :3].copy().view(Picture)  # pyright: ignore[reportAttributeAccessIssue]
    if path is not None:
        with writing(path):
            figure.savefig(path, dpi=width / 10.0, format="png", facecolor=_OUTSIDE)
    return image


def _draw_density(axes: Any, floor: Any, state: dict[str, Any], side: float) -> None:
    run: FloorRun | None = state["run"]
    plan = state["plan"]
    values = grid_density(plan, state["position"], side)[0] if run is None else run.density(side)
    low = np.array(plan.bounds[:2])
    x, y = (low[k] + side * np.arange(n + 1) for k, n in enumerate(values.shape))
    mesh = axes.pcolormesh(x, y, np.ma.masked_invalid(values).T, cmap="YlOrRd", vmin=0.0, alpha=0.85)
    mesh.set_clip_path(floor)


def _trails(state: dict[str, Any], seconds: float) -> list[np.ndarray]:
    run: FloorRun | None = state["run"]
    if run is None:
        return []
    at = run.times[run.frame]
    kept = (at <= state["time"] + 1e-9) & (at >= state["time"] - seconds)
    number, place, frame = run.number[kept], run.position[kept], run.frame[kept]
    order = np.lexsort((frame, number))
    far = np.linalg.norm(np.diff(place[order], axis=0), axis=1) > _JUMP * np.diff(run.times).max(initial=0.0) + 0.5
    cuts = np.flatnonzero((np.diff(number[order]) != 0) | far) + 1  # laid out, storeys are apart
    return [line for line in np.split(place[order], cuts) if len(line) > 1]


def _parts(plan: FloorPlan) -> list[Any]:
    return list(getattr(plan.polygon, "geoms", [plan.polygon]))


def _floor_mesh(sheet: Sheet) -> tuple[np.ndarray, np.ndarray]:
    """The floor as triangles: a constrained Delaunay triangulation of its corners."""
    import shapely

    triangles = shapely.get_parts(shapely.constrained_delaunay_triangles(sheet.polygon))
    corners = np.stack([np.asarray(t.exterior.coords)[:3, :2] for t in triangles])
    (ax, ay), (bx, by) = (corners[:, 1] - corners[:, 0]).T, (corners[:, 2] - corners[:, 0]).T
    turned = ax * by - ay * bx < 0
    corners[turned] = corners[turned][:, ::-1]
    flat = corners.reshape(-1, 2)
    return np.column_stack([flat, sheet.heights(flat)]), np.arange(len(flat)).reshape(-1, 3)


def _wall_mesh(sheet: Sheet) -> tuple[np.ndarray, np.ndarray]:
    """Upright walls, to be seen from both sides."""
    ends = sheet.walls.reshape(-1, 2)
    foot = np.column_stack([ends, sheet.heights(ends)]).reshape(-1, 2, 3)
    top = foot + [0.0, 0.0, _HEIGHT]
    panels = np.concatenate(
        [np.stack([foot[:, 0], foot[:, 1], top[:, 1]], axis=1), np.stack([foot[:, 0], top[:, 1], top[:, 0]], axis=1)]
    )
    both = np.concatenate([panels, panels[:, ::-1]])
    return both.reshape(-1, 3), np.arange(3 * len(both)).reshape(-1, 3)


def _joined(meshes: list[tuple[np.ndarray, np.ndarray]]) -> Mesh:
    first = np.cumsum([0, *(len(points) for points, _ in meshes)])
    faces = [triangles + start for (_, triangles), start in zip(meshes, first, strict=False)]
    return Mesh(np.concatenate([points for points, _ in meshes]), np.concatenate(faces))
