"""What happened on a floor: rows of who was where when, who left when, and files, tables and measures of it.

Question: how long did it take, where was it dense, and how do other programs read it?
Method:   a row for each person who is there at each frame, so that people may come and go. Files: .npz has everything,
          .csv and .parquet have the rows, .sqlite has the tables that JuPedSim's viewer and PedPy read.
Known as: trajectories in long form.
"""

from __future__ import annotations

import csv
import sqlite3
from dataclasses import dataclass, fields, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from tangere.crowd.floor.floor_obstacles import posed
from tangere.crowd.floor.measures import flow_of, grid_density, voronoi_density
from tangere.crowd.floor.plans.building import AnyPlan, plan_from_text
from tangere.crowd.floor.plans.floor_plan import FloorPlan
from tangere.crowd.floor.plans.narrow_doors import shapely_library
from tangere.runtime import InputError, MissingExtraError, positive, view_room

if TYPE_CHECKING:
    from tangere.crowd.floor.simulation import FloorSimulation

_FORMATS = (".npz", ".csv", ".parquet", ".sqlite")


@dataclass(frozen=True, eq=False)
class FloorRun:
    """A run on a floor plan: rows of who was where at which frame, and by person what became of him."""

    plan: AnyPlan
    times: np.ndarray  #: (f,) of the frames [s]
    frame: np.ndarray  #: (k,) of each row
    number: np.ndarray  #: (k,) of the person
    position: np.ndarray  #: (k, 2) [m]
    velocity: np.ndarray  #: (k, 2) [m/s]
    entered: np.ndarray  #: (n,) when each person came [s]; inf: not yet
    left: np.ndarray  #: (n,) when each person left [s]; inf: not yet
    radii: np.ndarray  #: (n,) [m]
    speeds: np.ndarray  #: (n,) wanted [m/s]
    no_way: np.ndarray  #: numbers of those who had no way
    exits: np.ndarray  #: (n,) number of the stage that each person left by or goes to; -1: none
    sheet: np.ndarray  #: (k,) of each row: which of the plan's sheets, the storeys and then the stairs of a building
    obstacle_areas: np.ndarray  #: (m,) WKT of each obstacle where it was added
    obstacle_sheets: np.ndarray  #: (m,)
    obstacle_poses: np.ndarray  #: (f, m, 3) displacement and turn at each frame [m, m, rad]

    def __repr__(self) -> str:
        gone = int(np.isfinite(self.left).sum())
        return f"FloorRun({len(self.left)} people, {gone} left, {len(self.times)} frames to t = {self.times[-1]:.2f} s)"

    @property
    def evacuation_time(self) -> float:
        """When the last person left [s]; inf if somebody who came is still there, nan if nobody came."""
        came = np.isfinite(self.entered)
        return float(self.left[came].max()) if came.any() else float("nan")

    @property
    def travel_times(self) -> np.ndarray:
        """(n,) from coming to leaving [s]; inf for who has not left."""
        with np.errstate(invalid="ignore"):
            return np.where(np.isfinite(self.left), self.left - self.entered, np.inf)

    @property
    def flow(self) -> float:
        """People per second who left, between the first and the last of them."""
        return flow_of(np.sort(self.left[np.isfinite(self.left)]))

    @property
    def heights(self) -> np.ndarray:
        """(k,) of the floor at each row [m]."""
        found = np.zeros(len(self.number))
        for k, sheet in enumerate(self.plan.sheets):
            found[self.sheet == k] = sheet.heights(self.position[self.sheet == k])
        return found

    def on(self, storey: str) -> FloorRun:
        """The rows on one storey or flight of stairs of a building, by its name."""
        names = [sheet.name for sheet in self.plan.sheets]
        if storey not in names:
            raise InputError(f"storey: there is no {storey!r}, but {', '.join(map(repr, names))}")
        kept = self.sheet == names.index(storey)
        rows = {name: getattr(self, name)[kept] for name in ("frame", "number", "position", "velocity")}
        plan = FloorPlan(self.plan.sheets[names.index(storey)].polygon)
        there = self.obstacle_sheets == names.index(storey)
        rows["obstacle_areas"], rows["obstacle_poses"] = self.obstacle_areas[there], self.obstacle_poses[:, there]
        rows["obstacle_sheets"] = np.zeros(int(there.sum()), int)
        return replace(self, plan=plan, sheet=np.zeros(int(kept.sum()), int), **rows)

    def laid_out(self) -> FloorRun:
        """The run of a building on one plan, its storeys side by side; that on a plan as it is."""
        plan, moved = self.plan.laid_out()
        if plan is self.plan:
            return self
        poses = self.obstacle_poses.copy()
        poses[..., :2] += moved[self.obstacle_sheets]
        changed = {"obstacle_poses": poses, "obstacle_sheets": np.zeros_like(self.obstacle_sheets)}
        place = self.position + moved[self.sheet]
        return replace(self, plan=plan, position=place, sheet=np.zeros_like(self.sheet), **changed)

    @property
    def _flat(self) -> tuple[FloorPlan, np.ndarray]:
        run = self.laid_out()
        assert isinstance(run.plan, FloorPlan)
        return run.plan, run.position

    def rows_at(self, frame: int) -> tuple[np.ndarray, np.ndarray]:
        """Numbers and positions of who was there at a frame; -1 is the last."""
        if not -len(self.times) <= frame < len(self.times):
            raise InputError(f"frame: there are {len(self.times)} frames, not one of number {frame}")
        chosen = self.frame == frame % len(self.times)
        return self.number[chosen], self.position[chosen]

    def obstacles_at(self, frame: int) -> list[Any]:
        """The polygons of obstacles at a frame."""
        areas = shapely_library().from_wkt(self.obstacle_areas.astype(str))
        return [posed(area, pose) for area, pose in zip(areas, self.obstacle_poses[frame], strict=True)]

    def density(self, side: float = 1.0, start: float = -np.inf, end: float = np.inf) -> np.ndarray:
        """(columns, rows) mean people per square metre in squares of a grid from the least corner of the plan on.

        Of a building as it is laid out; `on` has one storey of it.

        Args:
            side: of a square [m]. start, end: frames of this time [s].
        """
        kept = (self.times >= start) & (self.times <= end)
        if not kept.any():
            raise InputError(f"density: there is no frame from {start:g} s to {end:g} s")
        plan, position = self._flat
        return grid_density(plan, position[kept[self.frame]], side)[0] / kept.sum()

    def voronoi_density(self, frame: int, cutoff: float | None = 2.0) -> np.ndarray:
        """(n,) one over the area of the Voronoi cell of each person at a frame, in the order of `rows_at` [1/m²]."""
        run = self.laid_out()
        return voronoi_density(self._flat[0], run.rows_at(frame)[1], cutoff)

    def fundamental_diagram(self, area: Any, every: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Density [1/m²] and mean speed [m/s] in a polygon, for each so many frames with somebody in it."""
        from tangere.crowd.floor.plans.floor_plan import area_of

        shapely, polygon = shapely_library(), area_of(area, "area")
        plan, position = self._flat
        floor = float(shapely.intersection(polygon, plan.polygon).area)
        positive(floor, "area: the part of it that is on the plan")
        inside = shapely.contains_xy(polygon, position[:, 0], position[:, 1])
        speed = np.linalg.norm(self.velocity, axis=1)
        count = np.bincount(self.frame[inside], minlength=len(self.times))
        total = np.bincount(self.frame[inside], speed[inside], minlength=len(self.times))
        kept = np.flatnonzero(count)[:: max(1, every)]
        return count[kept] / floor, total[kept] / count[kept]

    def to_pedpy(self) -> Any:
        """The rows as `pedpy.TrajectoryData`; frames must be at equal times."""
        try:
            pandas, pedpy = import_module("pandas"), import_module("pedpy")
        except ImportError as error:
            raise MissingExtraError("pedpy", "pedpy") from error
        x, y = self._flat[1].T
        table = pandas.DataFrame({"id": self.number, "frame": self.frame, "x": x, "y": y})
        return pedpy.TrajectoryData(table, frame_rate=self.frame_rate)

    @property
    def frame_rate(self) -> float:
        """Frames per second; the last one may come early."""
        if len(self.times) < 2:
            return 1.0
        return float(1.0 / (self.times[1] - self.times[0]))

    def scene(self) -> Any:
        """The run as a `tangere.scene.Scene`: people are balls among upright walls."""
        return view_room().floor_scene(self)

    def _repr_png_(self) -> bytes | None:
        """For notebooks: the plan with the trails of everybody."""
        return view_room().floor_png(self)

    def save(self, path: str | Path) -> None:
        """Write a file whose name says the format: .npz, .csv, .parquet or .sqlite; .glb, .gif, .mp4 show the scene."""
        path = Path(path)
        if path.suffix not in _FORMATS:
            self.scene().save(path)
            return
        try:
            if path.suffix == ".npz":
                arrays = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "plan"}
                np.savez_compressed(path, plan=np.array(self.plan.to_text()), **arrays)
            elif path.suffix == ".sqlite":
                self._write_sqlite(path)
            else:
                columns = {"frame": self.frame, "number": self.number, "x": self.position[:, 0]}
                columns["y"] = self.position[:, 1]
                if len(self.plan.sheets) > 1:
                    columns |= {"sheet": self.sheet, "z": self.heights}
                if path.suffix == ".csv":
                    with path.open("w", newline="", encoding="utf-8") as file:
                        writer = csv.writer(file)
                        writer.writerow(columns)
                        writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
                else:
                    _write_parquet(path, columns)
        except (OSError, sqlite3.OperationalError) as error:
            raise InputError(f"{path}: cannot be written: {error}") from error

    @classmethod
    def load(cls, path: str | Path) -> FloorRun:
        """Read what `save` wrote as .npz."""
        try:
            with np.load(path, allow_pickle=False) as file:
                read = {name: file[name] for name in file.files}
        except (OSError, ValueError, TypeError, AttributeError, BadZipFile) as error:
            raise InputError(f"{path}: cannot be read as a run: {error}") from error
        wanted = {f.name for f in fields(cls)}
        if read.keys() != wanted:
            strange = ", ".join(sorted(read.keys() ^ wanted))
            raise InputError(f"{path}: this is no run on a floor: {strange} missing or unknown")
        return cls(plan_from_text(str(read.pop("plan"))), **read)

    def _write_sqlite(self, path: Path) -> None:
        """The tables of JuPedSim's files, version 2."""
        plan, position = self._flat
        path.unlink(missing_ok=True)
        wkt = plan.to_text()
        x0, y0, x1, y1 = plan.bounds
        connection = sqlite3.connect(path)
        try:
            with connection:
                run = connection.execute
                run("CREATE TABLE metadata (key TEXT NOT NULL UNIQUE PRIMARY KEY, value TEXT NOT NULL)")
                run("CREATE TABLE geometry (hash INTEGER NOT NULL, wkt TEXT NOT NULL)")
                run("CREATE TABLE frame_data (frame INTEGER NOT NULL, geometry_hash INTEGER NOT NULL)")
                run(
                    "CREATE TABLE trajectory_data (frame INTEGER NOT NULL, id INTEGER NOT NULL, pos_x REAL NOT NULL,"
                    " pos_y REAL NOT NULL, ori_x REAL NOT NULL, ori_y REAL NOT NULL)"
                )
                entries = {"version": "2", "fps": str(self.frame_rate), "xmin": x0, "xmax": x1, "ymin": y0, "ymax": y1}
                connection.executemany("INSERT INTO metadata VALUES (?, ?)", [(k, str(v)) for k, v in entries.items()])
                run("INSERT INTO geometry VALUES (?, ?)", (1, wkt))
                connection.executemany("INSERT INTO frame_data VALUES (?, 1)", [(k,) for k in range(len(self.times))])
                size = np.linalg.norm(self.velocity, axis=1, keepdims=True)
                ahead = np.divide(self.velocity, size, out=np.zeros_like(self.velocity), where=size > 0)
                columns = [self.frame, self.number, *position.T, *ahead.T]
                rows = zip(*(column.tolist() for column in columns), strict=True)
                connection.executemany("INSERT INTO trajectory_data VALUES (?, ?, ?, ?, ?, ?)", rows)
                run("CREATE INDEX frame_id_idx ON trajectory_data(frame, id)")
        finally:
            connection.close()


class FloorRecorder:
    """Records a simulation on a floor from time to time."""

    def __init__(self, simulation: FloorSimulation) -> None:
        self._simulation = simulation
        self._times: list[float] = []
        self._poses: list[list[tuple[float, float, float]]] = []
        self._rows: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []

    def record(self) -> None:
        """Add who is where now."""
        number, position, velocity = self._simulation.people.now()
        order = np.argsort(number)
        self._times.append(self._simulation.time)
        self._poses.append([obstacle.pose for obstacle in self._simulation.obstacles])
        self._rows.append((number[order], position[order], velocity[order], self._simulation.people.sheets()[order]))

    def finished(self) -> FloorRun:
        """Everything recorded so far."""
        s = self._simulation
        number, position, velocity, sheet = (np.concatenate(column) for column in zip(*self._rows, strict=True))
        frame = np.repeat(np.arange(len(self._rows)), [len(row[0]) for row in self._rows])
        entered, left, exits = (s.people.trait(name) for name in ("entered", "left", "stage"))
        return FloorRun(
            s.plan,
            np.array(self._times),
            frame,
            number,
            position,
            velocity,
            entered,
            left,
            s.people.radius.copy(),
            s.people.speed.copy(),
            s.no_way_numbers,
            exits.astype(int),
            sheet,
            np.array([shapely_library().to_wkt(o.area, -1) for o in s.obstacles], str),
            np.array([o.sheet for o in s.obstacles], int),
            np.array(self._poses, float).reshape(len(self._poses), -1, 3),
        )


def _write_parquet(path: Path, columns: dict[str, np.ndarray]) -> None:
    try:
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError as error:
        raise MissingExtraError("pyarrow", "crowd") from error
    parquet.write_table(arrow.table(columns), path)
