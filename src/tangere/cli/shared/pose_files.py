"""Poses in CSV files: a line for each, `x,y,z,qw,qx,qy,qz`, with a first column `t` or without it, as paths have it."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from tangere.motion import rotations_of
from tangere.runtime import InputError

__all__ = ["load_poses"]

_COLUMNS = ("x", "y", "z", "qw", "qx", "qy", "qz")


def load_poses(file: Path) -> np.ndarray:
    """The poses in a file, shape (n, 4, 4); quaternions may have any length but zero, and times are not looked at."""
    try:
        with open(file, newline="", encoding="utf-8-sig") as opened:
            lines = [line for line in csv.reader(opened) if line]
    except FileNotFoundError as error:
        raise InputError(f"{file}: no such file") from error
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{file}: cannot be read as a CSV file: {error}") from error
    header = tuple(word.strip() for word in lines[0]) if lines else ()
    if header not in (_COLUMNS, ("t", *_COLUMNS)):
        raise InputError(f"{file}: poses begin with the line {','.join(_COLUMNS)}")
    if len(lines) < 2:
        raise InputError(f"{file}: there are no poses in it")
    rows = np.array([_numbers(file, number, line, len(header)) for number, line in enumerate(lines[1:], start=2)])
    poses = np.tile(np.eye(4), (len(rows), 1, 1))
    poses[:, :3, :3] = rotations_of(rows[:, -4:], f"{file}: quaternions")
    poses[:, :3, 3] = rows[:, -7:-4]
    return poses


def _numbers(file: Path, number: int, line: list[str], columns: int) -> list[float]:
    if len(line) != columns:
        raise InputError(f"{file}: line {number} has {len(line)} columns, not {columns}")
    try:
        values = [float(word) for word in line]
    except ValueError as error:
        raise InputError(f"{file}: line {number}: {error}") from error
    if not np.isfinite(values).all():
        raise InputError(f"{file}: line {number} has a number that is not finite")
    return values
