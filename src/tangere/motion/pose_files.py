"""Poses in text files: a line for each, `t,x,y,z,qw,qx,qy,qz`, with times or without.

Question: which poses, at which times, does a file hold?
Method:   the header names the columns, and with them whether quaternions have w first or last. Files without a header
          are read too where the order is given: lines of numbers between commas, blanks or semicolons, and comments
          after `#`. Quaternions may have any length but zero.
Known as: "xyzw" files without header are TUM trajectories (Sturm et al. 2012, RGB-D benchmark) and what ROS prints;
          "wxyz" is the order of MuJoCo and of scalar-first libraries.
"""

from __future__ import annotations

import csv
import re
from os import PathLike

import numpy as np

from tangere.motion.poses import quaternions_of, rotations_of
from tangere.runtime import InputError

#: Columns of a quaternion, by the order of its parts.
QUATERNIONS = {"wxyz": ("qw", "qx", "qy", "qz"), "xyzw": ("qx", "qy", "qz", "qw")}
_PLACE = ("x", "y", "z")


def read_poses(
    file: str | PathLike[str], quaternion: str | None = None, *, timed: bool | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The times (n,) and the poses (n, 4, 4) in a file; times are NaN where there are none.

    Args:
        quaternion: "wxyz" or "xyzw"; None means what the header says, and that there must be one.
        timed: whether there must be times (True), or may be (None).
    """
    order = _checked_order(quaternion)
    lines = _lines(file)
    header = tuple(word.strip() for word in lines[0][1]) if lines else ()
    columns, named = _columns(file, header, order, timed)
    body = lines[1:] if named else lines
    if not body:
        raise InputError(f"{file}: there are no poses in it")
    rows = np.array([_numbers(file, number, line, len(columns)) for number, line in body])
    poses = np.tile(np.eye(4), (len(rows), 1, 1))
    places = [columns.index(name) for name in QUATERNIONS["wxyz"]]
    poses[:, :3, :3] = rotations_of(rows[:, places], f"{file}: quaternions")
    poses[:, :3, 3] = rows[:, -7:-4]
    return rows[:, 0] if columns[0] == "t" else np.full(len(rows), np.nan), poses


def write_poses(file: str | PathLike[str], times: np.ndarray, poses: np.ndarray, quaternion: str = "wxyz") -> None:
    """Write times (n,) and poses (n, 4, 4) as CSV, with a header."""
    order = _checked_order(quaternion) or "wxyz"
    parts = quaternions_of(poses[:, :3, :3])
    rows = np.column_stack([times, poses[:, :3, 3], parts if order == "wxyz" else np.roll(parts, -1, axis=1)])
    try:
        with open(file, "w", newline="", encoding="utf-8") as opened:
            writer = csv.writer(opened, lineterminator="\n")
            writer.writerow(("t", *_PLACE, *QUATERNIONS[order]))
            writer.writerows([[repr(float(x)) for x in row] for row in rows])
    except OSError as error:
        raise InputError(f"{file}: cannot be written: {error.strerror or error}") from error


def _checked_order(quaternion: str | None) -> str | None:
    if quaternion is not None and quaternion not in QUATERNIONS:
        raise InputError(f"quaternion must be one of {', '.join(QUATERNIONS)}, not {quaternion!r}")
    return quaternion


def _lines(file: str | PathLike[str]) -> list[tuple[int, list[str]]]:
    """The number and the words of each line that has some."""
    try:
        with open(file, newline="", encoding="utf-8-sig") as opened:
            text = opened.read()
        if "\0" in text:
            raise csv.Error("line contains NUL")
    except FileNotFoundError as error:
        raise InputError(f"{file}: no such file") from error
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{file}: cannot be read as a CSV file: {error}") from error
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].strip()
        if words:
            found.append((number, re.split(r"\s*[,;]\s*|\s+", words)))
    return found


def _columns(
    file: str | PathLike[str], header: tuple[str, ...], order: str | None, timed: bool | None
) -> tuple[tuple[str, ...], bool]:
    """The names of the columns, and whether the first line gives them."""
    for named, parts in QUATERNIONS.items():
        for columns in (("t", *_PLACE, *parts), (*_PLACE, *parts)):
            if header == columns and (timed is None or columns[0] == "t"):
                if order not in (None, named):
                    raise InputError(f"{file}: quaternions are said to be {order}, but its header says {named}")
                return columns, True
    if order is not None and len(header) in ((8,) if timed else (7, 8)) and _is_number(header[0]):
        return (*(("t",) if len(header) == 8 else ()), *_PLACE, *QUATERNIONS[order]), False
    first = ",".join((*(("t",) if timed else ()), *_PLACE, *QUATERNIONS[order or "wxyz"]))
    what = "a path begins" if timed else "poses begin"
    hint = "" if order is not None or not (header and _is_number(header[0])) else ", or quaternion= tells their order"
    raise InputError(f"{file}: {what} with the line {first}{hint}")


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _numbers(file: str | PathLike[str], number: int, line: list[str], columns: int) -> list[float]:
    if len(line) != columns:
        raise InputError(f"{file}: line {number} has {len(line)} columns, not {columns}")
    try:
        values = [float(word) for word in line]
    except ValueError as error:
        raise InputError(f"{file}: line {number}: {error}") from error
    if not np.isfinite(values).all():
        raise InputError(f"{file}: line {number} has a number that is not finite")
    return values
