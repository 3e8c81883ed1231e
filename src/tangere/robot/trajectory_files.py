"""Trajectories in files: tables of joint values, with or without times.

| file | columns |
|---|---|
| .csv with a header | `t` or `time`, if there are times; joints by their names, in any order |
| .csv without one | the joints in order, or a time before them |
| .npy | (k, dof) or (n, k, dof) joints in order |

A column that is neither is refused: what it is for was meant to count.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path

import numpy as np

from tangere.runtime import InputError

_TIMES = ("t", "time")


def read_trajectory(path: str | PathLike[str], joints: Sequence[str]) -> tuple[np.ndarray | None, np.ndarray]:
    """Times, (k,) or None, and configurations, (k, dof) in the order of `joints`, of a file.

    Args:
        path: a .csv or .npy file.
        joints: names, `robot.joint_names`.
    """
    file = Path(fspath(path))
    if not file.is_file():
        raise InputError(f"{file.name}: there is no file {str(file)!r}")
    if file.suffix == ".npy":
        return None, _array(file)
    try:
        with file.open(newline="", encoding="utf-8-sig") as text:  # spreadsheets put a mark before the first name
            rows = [row for row in csv.reader(text) if any(cell.strip() for cell in row)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{file.name}: is no table of numbers: {error}") from error
    if not rows:
        raise InputError(f"{file.name}: is empty")
    names = [cell.strip() for cell in rows[0]]
    if all(_is_number(name) for name in names):
        table = _numbers(file, rows, len(names), 1)
        if len(names) == len(joints) + 1:
            return _rising(file, table[:, 0], 1), table[:, 1:]
        if len(names) != len(joints):
            raise InputError(f"{file.name}: has {len(names)} columns for {len(joints)} joints: {', '.join(joints)}")
        return None, table
    missing = [joint for joint in joints if joint not in names]
    if missing:
        raise InputError(f"{file.name}: has no column for {', '.join(missing)}; there are {', '.join(names)}")
    unknown = [repr(name) for name in names if name not in joints and name not in _TIMES]
    if unknown:
        joint = "a joint with a value of its own" if len(unknown) == 1 else "joints with values of their own"
        raise InputError(
            f"{file.name}: column{'s' * (len(unknown) > 1)} {', '.join(unknown)} would be ignored: not the time, nor"
            f" {joint}, which are {', '.join(joints)}"
        )
    twice = [name for name in joints if names.count(name) > 1]
    if sum(names.count(name) for name in _TIMES) > 1:
        twice.append("the time")
    if twice:
        raise InputError(f"{file.name}: has several columns for {', '.join(twice)}")
    if len(rows) == 1:
        raise InputError(f"{file.name}: has no row below its header")
    table = _numbers(file, rows[1:], len(names), 2)
    q = table[:, [names.index(joint) for joint in joints]]
    column = next((name for name in _TIMES if name in names), None)
    return None if column is None else _rising(file, table[:, names.index(column)], 2), q


def _rising(file: Path, times: np.ndarray, first: int) -> np.ndarray:
    """Times, or in which row they do not rise."""
    stays = np.flatnonzero(~(np.diff(times) > 0.0))
    if len(stays):
        row = int(stays[0]) + 1
        raise InputError(f"{file.name}: row {first + row} has time {times[row]:g} after {times[row - 1]:g}")
    return times


def _array(file: Path) -> np.ndarray:
    """The real numbers of a .npy file."""
    try:
        table = np.load(file, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise InputError(f"{file.name}: is no array of numbers: {error}") from error
    if not isinstance(table, np.ndarray) or table.dtype.kind not in "fiu":
        given = f"numbers of type {table.dtype}" if isinstance(table, np.ndarray) else "several arrays"
        raise InputError(f"{file.name}: is no array of real numbers: it has {given}")
    return table.astype(float)


def _numbers(file: Path, rows: list[list[str]], columns: int, first: int) -> np.ndarray:
    table = np.zeros((len(rows), columns))
    for k, row in enumerate(rows):
        if len(row) != columns or not all(_is_number(cell) for cell in row):
            raise InputError(f"{file.name}: row {first + k} is not {columns} numbers: {','.join(row)}")
        table[k] = [float(cell) for cell in row]
        if not np.isfinite(table[k]).all():
            raise InputError(f"{file.name}: row {first + k} has a number that is not finite: {','.join(row)}")
    return table


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
