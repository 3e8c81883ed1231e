"""Paths as CSV files: a line for each pose, `t,x,y,z,qw,qx,qy,qz`; times rise, quaternions may have any length."""

from __future__ import annotations

import csv
from os import PathLike

import numpy as np

from tangere.motion.path import Path
from tangere.motion.poses import quaternions_of, rotations_of
from tangere.runtime import InputError

__all__ = ["load_path", "save_path"]

COLUMNS = ("t", "x", "y", "z", "qw", "qx", "qy", "qz")


def load_path(file: str | PathLike[str]) -> tuple[Path, tuple[float, float]]:
    """The path in a CSV file, over [0, 1], and the file's first and last time."""
    try:
        with open(file, newline="", encoding="utf-8-sig") as opened:
            lines = [line for line in csv.reader(opened) if line]
    except FileNotFoundError as error:
        raise InputError(f"{file}: no such file") from error
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{file}: cannot be read as a CSV file: {error}") from error
    if not lines or tuple(word.strip() for word in lines[0]) != COLUMNS:
        raise InputError(f"{file}: a path begins with the line {','.join(COLUMNS)}")
    rows = np.array([_numbers(file, number, line) for number, line in enumerate(lines[1:], start=2)])
    if len(rows) < 2:
        raise InputError(f"{file}: a path needs at least two poses, not {len(rows)}")
    times = rows[:, 0]
    if not (np.diff(times) > 0.0).all():
        worst = int(np.argmax(np.diff(times) <= 0.0))
        raise InputError(f"{file}: times must rise, but t = {times[worst]:g} is followed by t = {times[worst + 1]:g}")
    poses = np.tile(np.eye(4), (len(rows), 1, 1))
    poses[:, :3, :3] = rotations_of(rows[:, 4:], f"{file}: quaternions")
    poses[:, :3, 3] = rows[:, 1:4]
    share = (times - times[0]) / (times[-1] - times[0])
    share[-1] = 1.0
    return Path(poses, share), (float(times[0]), float(times[-1]))


def save_path(path: Path, file: str | PathLike[str], clock: tuple[float, float] = (0.0, 1.0)) -> None:
    """Write a path; its times are told between those of `clock`."""
    times = clock[0] + (clock[1] - clock[0]) * path.times
    rows = np.column_stack([times, path.poses[:, :3, 3], quaternions_of(path.poses[:, :3, :3])])
    try:
        with open(file, "w", newline="", encoding="utf-8") as opened:
            writer = csv.writer(opened, lineterminator="\n")
            writer.writerow(COLUMNS)
            writer.writerows([[repr(float(x)) for x in row] for row in rows])
    except OSError as error:
        raise InputError(f"{file}: cannot be written: {error.strerror or error}") from error


def _numbers(file: str | PathLike[str], number: int, line: list[str]) -> list[float]:
    if len(line) != len(COLUMNS):
        raise InputError(f"{file}: line {number} has {len(line)} columns, not {len(COLUMNS)}")
    try:
        values = [float(word) for word in line]
    except ValueError as error:
        raise InputError(f"{file}: line {number}: {error}") from error
    if not np.isfinite(values).all():
        raise InputError(f"{file}: line {number} has a number that is not finite")
    return values
