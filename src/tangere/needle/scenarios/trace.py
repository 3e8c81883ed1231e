"""How a needle is driven: a table of times, speeds and spins, kept as CSV.

Question: what did the hand do, so that the same can be done again?
Method:   from each time on speed and spin are as its row says; the last time is the end. Numbers are written so that
          they read back with the same bits, and a run along a trace depends on nothing else.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tangere.needle.kinematic import KinematicSimulation
from tangere.needle.simulation import Simulation
from tangere.runtime import InputError, positive, writing

HEADER = ["time", "speed", "spin"]


@dataclass(frozen=True, eq=False)
class Trace:
    """Speeds of a needle's base over time.

    Args:
        times: (n,) from when on each row holds, rising from 0; the last one is the end [s].
        speed: (n,) along the needle, negative outward [m/s].
        spin: (n,) about it [rad/s].

    Example:
        >>> from tangere.needle.scenarios import Trace
        >>> trace = Trace([0.0, 1.0, 1.5, 2.5], [0.02, 0.0, -0.02, 0.0])  # in, hold, out
        >>> trace.seconds, trace.at(1.2), trace.at(2.0)
        (2.5, (0.0, 0.0), (-0.02, 0.0))
    """

    times: Any
    speed: Any
    spin: Any = None

    def __post_init__(self) -> None:
        times = np.asarray(self.times, float)
        given = {"speed": self.speed, "spin": np.zeros(times.shape) if self.spin is None else self.spin}
        if times.ndim != 1 or len(times) < 2 or times[0] != 0.0 or not (np.diff(times) > 0.0).all():
            raise InputError("Trace: times must be two or more that rise from 0")
        object.__setattr__(self, "times", times)
        for name, values in given.items():
            column = np.asarray(values, float)
            if column.shape != times.shape or not np.isfinite(column).all():
                raise InputError(f"Trace: {name} must be {len(times)} finite numbers, one for each time")
            object.__setattr__(self, name, column)
        if not np.isfinite(times).all():
            raise InputError("Trace: times must be finite")

    @property
    def seconds(self) -> float:
        """How long it takes [s]."""
        return float(self.times[-1])

    def at(self, time: float) -> tuple[float, float]:
        """Speed [m/s] and spin [rad/s] at a time [s]."""
        row = int(np.clip(np.searchsorted(self.times, time, side="right") - 1, 0, len(self.times) - 1))
        return float(self.speed[row]), float(self.spin[row])

    def steps(self, dt: float) -> Iterator[tuple[float, float]]:
        """Speed and spin of every step of `dt` [s]."""
        positive(dt, "dt")
        return (self.at((k + 0.5) * dt) for k in range(max(1, round(self.seconds / dt))))

    def run(
        self,
        simulation: Simulation | KinematicSimulation,
        *,
        dt: float | None = None,
        after_step: Callable[[float], object] | None = None,
    ) -> None:
        """Drive a needle along it.

        Args:
            dt: of a step [s]; of a kinematic needle only: a physical one has its own.
            after_step: is called with the time [s] after each step.
        """
        physical = isinstance(simulation, Simulation)
        if physical and dt is not None and dt != simulation.soft.dt:
            raise InputError(f"Trace: this simulation has steps of {simulation.soft.dt:g} s, not of {dt:g} s")
        step = simulation.soft.dt if isinstance(simulation, Simulation) else 0.01 if dt is None else dt
        for k, (speed, spin) in enumerate(self.steps(step)):
            if isinstance(simulation, Simulation):
                simulation.step(speed, spin=spin)
            else:
                simulation.step(speed * step, spin=spin * step)
            if after_step is not None:
                after_step((k + 1) * step)

    def save(self, path: str | Path) -> None:
        """Write a .csv file."""
        with writing(path), open(path, "w", newline="", encoding="utf-8") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(HEADER)
            rows.writerows([repr(float(x)) for x in row] for row in zip(self.times, self.speed, self.spin, strict=True))

    @staticmethod
    def load(path: str | Path) -> Trace:
        """Read a .csv file with the columns time, speed and, if there is one, spin."""
        try:
            with open(path, newline="", encoding="utf-8") as file:
                rows = [row for row in csv.reader(file) if row]
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
        except UnicodeDecodeError as error:
            raise InputError(f"{path}: not a table of text") from error
        names = [name.strip().lower() for name in rows[0]] if rows else []
        if names not in (HEADER, HEADER[:2]):
            raise InputError(f"{path}: the first line must be {','.join(HEADER)}")
        columns: list[list[float]] = [[] for _ in names]
        for number, row in enumerate(rows[1:], start=2):
            if len(row) != len(names):
                raise InputError(f"{path}: line {number} has {len(row)} values, not {len(names)}")
            for column, text in zip(columns, row, strict=True):
                try:
                    column.append(float(text))
                except ValueError as error:
                    raise InputError(f"{path}: line {number}: {text!r} is no number") from error
        try:
            return Trace(*columns)
        except InputError as error:
            raise InputError(f"{path}: {error}") from error
