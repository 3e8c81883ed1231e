"""What a crowd did: positions over time, measures of how well it went, and files of both.

Measures, one number per recorded time: `stalling` (part of the agents still under way slower than a tenth of what
they want), `density` (mean over agents of others within the range, per area or volume), `overlaps` (pairs nearer than
the sum of their radii), `deepest` (worst overlap [m]), `speed` (mean [m/s]), `cells` and `arrived`.
Stalling is one of the measures of realism that Pitiot 2015 leaves to future work.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from tangere.crowd.environment import cell_triangles, wall_quads
from tangere.runtime import InputError, MissingExtraError, view_room

if TYPE_CHECKING:
    from tangere.crowd.simulation import Simulation

_RADIUS = 0.3  #: of a point whose radius is not known [m]
_STALLED = 0.1  #: part of the wanted speed
#: Files of trajectories, and of scenes of them.
_TABLES = (".npz", ".csv", ".parquet")
_SCENES = (".glb", ".usd", ".usda", ".usdc", ".pvd", ".vtu", ".gif", ".mp4")


@dataclass(frozen=True, eq=False)
class Trajectories:
    """A crowd over time; who was added while it was recorded is at nan before."""

    times: np.ndarray  #: (f,) [s]
    positions: np.ndarray  #: (f, n, 3) of points [m]
    velocities: np.ndarray  #: (f, n, 3) [m/s]
    particles: np.ndarray  #: (f, p, 3) of bodies [m]
    bodies: np.ndarray  #: (b + 1,) particles of body k are bodies[k] … bodies[k + 1] - 1
    set_off: np.ndarray  #: (n,) when each point got its route [s]
    arrived: np.ndarray  #: (n,) when each point was done [s]; inf: not yet
    measures: dict[str, np.ndarray]  #: (f,) each
    radii: np.ndarray = field(default_factory=lambda: np.empty(0))  #: (n,) of points [m]
    outlines: np.ndarray = field(default_factory=lambda: np.empty((0, 0), int))  #: (s, k) particles; -1: no more
    ground: np.ndarray = field(default_factory=lambda: np.empty((0, 3, 3)))  #: (t, 3, 3) triangles at the end [m]
    walls: np.ndarray = field(default_factory=lambda: np.empty((0, 4, 3)))  #: (w, 4, 3) upright, at the end [m]

    def __post_init__(self) -> None:
        if len(self.radii) != len(self.arrived):  # older files do not tell
            object.__setattr__(self, "radii", np.full(len(self.arrived), _RADIUS))

    def __repr__(self) -> str:
        _, points, _ = self.positions.shape
        return f"Trajectories({points} points, {len(self.bodies) - 1} bodies, {len(self.times)} times)"

    @property
    def travel_time(self) -> float:
        """Mean over the points that were done, each from when it set off [s]; nan when nobody was."""
        done = np.isfinite(self.arrived)
        return float((self.arrived - self.set_off)[done].mean()) if done.any() else math.nan

    def scene(self) -> Any:
        """The run as a `tangere.scene.Scene`: points are balls and bodies prisms, among the walls of their map."""
        return view_room().crowd_scene(self)

    def _repr_png_(self) -> bytes | None:
        """For notebooks: the start of it."""
        return view_room().png(self)

    def save(self, path: str | Path) -> None:
        """Write a file whose name says the format.

        `.npz` has everything and is what `load` reads; `.csv` and `.parquet` have rows of points: time, agent, x, y, z,
        vx, vy, vz; `.glb`, `.usd`, `.usda`, `.usdc`, `.pvd`, `.vtu`, `.gif` and `.mp4` show the scene, as `Scene.save`.
        """
        path = Path(path)
        check_format(path.suffix)
        if path.suffix in _SCENES:
            self.scene().save(path)
            return
        try:
            if path.suffix == ".npz":
                measures = {f"measure_{name}": values for name, values in self.measures.items()}
                np.savez_compressed(path, **{name: getattr(self, name) for name in _ARRAYS}, **measures)
            elif path.suffix == ".csv":
                with path.open("w", newline="", encoding="utf-8") as file:
                    writer = csv.writer(file)
                    writer.writerow(_COLUMNS)
                    writer.writerows(zip(*(column.tolist() for column in self._columns()), strict=True))
            else:
                _write_parquet(path, dict(zip(_COLUMNS, self._columns(), strict=True)))
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error

    @classmethod
    def load(cls, path: str | Path) -> Trajectories:
        """Read what `save` wrote as .npz."""
        try:
            with np.load(path, allow_pickle=False) as file:
                read = {name: file[name] for name in file.files}
        except (OSError, ValueError, TypeError, AttributeError, BadZipFile) as error:
            raise InputError(f"{path}: cannot be read as trajectories: {error}") from error
        if "arrived" in read:  # older files do not say when points set off: at the start
            read.setdefault("set_off", np.zeros_like(read["arrived"]))
        measures = {name[8:]: values for name, values in read.items() if name.startswith("measure_")}
        arrays = {name: values for name, values in read.items() if not name.startswith("measure_")}
        strange = sorted((arrays.keys() | set(_SHOWN)) ^ set(_ARRAYS))
        if strange:
            raise InputError(f"{path}: these are not trajectories: {', '.join(strange)} missing or unknown")
        _check_shapes(read, path)
        return cls(**arrays, measures=measures)

    def _columns(self) -> list[np.ndarray]:
        frame, agent = np.nonzero(~np.isnan(self.positions).any(axis=2))
        return [self.times[frame], agent, *self.positions[frame, agent].T, *self.velocities[frame, agent].T]


_SHOWN = ("radii", "outlines", "ground", "walls")  # older files do not have these
_ARRAYS = ("times", "positions", "velocities", "particles", "bodies", "set_off", "arrived", *_SHOWN)
_COLUMNS = ("time", "agent", "x", "y", "z", "vx", "vy", "vz")


class Recorder:
    """Records a simulation from time to time."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._frames: list[tuple[float, np.ndarray, np.ndarray, np.ndarray]] = []
        self._measures: list[dict[str, float]] = []

    def record(self) -> None:
        """Add the state as it is now."""
        s = self._simulation
        velocities = s.velocities
        self._frames.append((s.time, s.positions, velocities, s.bodies.positions.copy()))
        seen, speed, arrived = s.observe(), np.linalg.norm(velocities, axis=1), s.arrived
        under_way, wanted = s.points.under_way(), s.points.traits["speed"]
        reach, dimension = s.behaviour.range, s.map.dimension
        ball = math.pi * reach**2 if dimension == 2 else 4.0 / 3.0 * math.pi * reach**3
        slow = speed[under_way] < _STALLED * wanted[under_way]
        self._measures.append(
            {
                "stalling": float(slow.mean()) if len(slow) and s.steps else 0.0,
                "density": float(seen.neighbours.mean() / ball) if len(speed) else 0.0,
                "overlaps": float(seen.overlaps.sum() / 2),
                "deepest": seen.deepest,
                "speed": float(speed.mean()) if len(speed) else 0.0,
                "cells": float(len(s.map.leaves)),
                "arrived": float(np.isfinite(arrived).sum()),
            }
        )

    def trajectories(self) -> Trajectories:
        """Everything recorded so far."""
        s = self._simulation
        times, *states = zip(*self._frames, strict=True)
        measures = {name: np.array([row[name] for row in self._measures]) for name in self._measures[0]}
        counts = len(s.points), len(s.points), int(s.bodies.offsets[-1])
        arrays = [_stacked(state, count) for state, count in zip(states, counts, strict=True)]
        return Trajectories(
            np.array(times),
            *arrays,
            bodies=s.bodies.offsets.copy(),
            set_off=s.points.traits["set_off"].copy(),
            arrived=s.arrived,
            measures=measures,
            radii=s.points.traits["radius"].copy(),
            outlines=_outlines(s),
            ground=cell_triangles(s.map, raised=True)[0] if s.map.dimension == 2 else np.empty((0, 3, 3)),
            walls=wall_quads(s.map),
        )


def check_format(suffix: str) -> None:
    """Raise unless trajectories can be written to files that end so: for use before the work."""
    if suffix not in (*_TABLES, *_SCENES):
        shown = f"{', '.join(_SCENES[:-1])} or {_SCENES[-1]}"
        raise InputError(f"trajectories are written as .npz, .csv or .parquet, and shown as {shown}, not {suffix}")
    if suffix == ".parquet":
        try:
            import_module("pyarrow.parquet")
        except ImportError as error:
            raise MissingExtraError("pyarrow", "crowd") from error


def _outlines(simulation: Simulation) -> np.ndarray:
    """(s, k) the particles of each section of each body, -1 after the last."""
    bodies = simulation.bodies
    rows = [base + np.array(section) for base, body in zip(bodies.offsets, bodies.bodies) for section in body.sections]
    result = np.full((len(rows), max(map(len, rows), default=0)), -1)
    for place, row in zip(result, rows, strict=True):
        place[: len(row)] = row
    return result


def _stacked(states: tuple[np.ndarray, ...], count: int) -> np.ndarray:
    """(f, count, 3) of states (k, 3), k <= count: new agents come after the others."""
    result = np.full((len(states), count, 3), np.nan)
    for row, state in zip(result, states, strict=True):
        row[: len(state)] = state
    return result


def _check_shapes(arrays: dict[str, np.ndarray], path: str | Path) -> None:
    """Raise unless arrays have the shapes of `Trajectories`; all that are not listed here are measures."""
    bodies, times, points = arrays["bodies"], arrays["times"].size, arrays["arrived"].size
    whole = bodies.ndim == 1 and len(bodies) > 0 and np.issubdtype(bodies.dtype, np.integer)
    if not whole or bodies[0] != 0 or (np.diff(bodies) < 0).any():
        raise InputError(f"{path}: these are not trajectories: bodies must be numbers that rise from 0")
    outlines = arrays.get("outlines", np.empty((0, 0), int))
    known = outlines.ndim == 2 and outlines.dtype.kind == "i" and ((outlines >= -1) & (outlines < bodies[-1])).all()
    if not known:
        raise InputError(f"{path}: these are not trajectories: outlines must be numbers of particles")
    shapes = {"bodies": bodies.shape, "particles": (times, int(bodies[-1]), 3)}
    shapes |= dict.fromkeys(("positions", "velocities"), (times, points, 3))
    shapes |= dict.fromkeys(("set_off", "arrived"), (points,))
    shapes |= {"radii": (points,), "ground": (len(arrays.get("ground", ())), 3, 3)}
    shapes |= {"walls": (len(arrays.get("walls", ())), 4, 3), "outlines": outlines.shape}
    for name, array in arrays.items():
        shape = shapes.get(name, (times,))
        if array.shape != shape or array.dtype.kind not in "if":
            reason = f"{name} must be numbers of shape {shape}, not {array.dtype} of shape {array.shape}"
            raise InputError(f"{path}: these are not trajectories: {reason}")


def _write_parquet(path: Path, columns: dict[str, np.ndarray]) -> None:
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    parquet.write_table(arrow.table(columns), path)
