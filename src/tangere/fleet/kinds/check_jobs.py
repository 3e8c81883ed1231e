"""Check jobs: does a part along its path, or a robot along its trajectory, touch anything?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any, ClassVar

import numpy as np

from tangere.fleet.columns import Column, ColumnKind
from tangere.fleet.kinds.job_kind import JobKind, check_one_of
from tangere.fleet.part_store import JobTools
from tangere.motion import Path
from tangere.query.contacts import Status
from tangere.query.path_check import check_path
from tangere.robot import Robot, read_trajectory
from tangere.runtime import InputError

_PART = ("leaving", "skin", "solid", "poses", "path", "quaternion")
_ROBOT = ("srdf", "q", "trajectory")
_ROBOTS_KEPT = 16
#: Robots that this process has opened, by digest.
_robots: dict[str, Robot] = {}


class CheckJobs(JobKind):
    """A part along a path, or a robot along a trajectory."""

    name = "check"
    columns: ClassVar[dict[str, Column]] = {
        "part": Column(ColumnKind.FILE, "what moves", mesh=True),
        "path": Column(ColumnKind.FILE, "its poses: t,x,y,z,qw,qx,qy,qz"),
        "poses": Column(ColumnKind.NUMBERS, "or the poses themselves: 16 numbers each, by rows"),
        "quaternion": Column(ColumnKind.TEXT, "wxyz or xyzw: of a path without header"),
        "robot": Column(ColumnKind.FILE, "or a robot: .urdf"),
        "trajectory": Column(ColumnKind.FILE, "its configurations"),
        "q": Column(ColumnKind.NUMBERS, "or the configurations themselves, one after the other"),
        "srdf": Column(ColumnKind.FILE, "which of its links may touch"),
        "against": Column(ColumnKind.FILES, "what stands in the way", mesh=True),
        "leaving": Column(ColumnKind.FLAG, "the part is in contact where it is mounted"),
        "skin": Column(ColumnKind.NUMBER, "… and contacts shallower than this are ignored [m]"),
        "solid": Column(ColumnKind.FLAG, "one inside the other counts"),
        "separation": Column(ColumnKind.NUMBER, "a distance that counts as contact [m]"),
        "tolerance": Column(ColumnKind.NUMBER, "of the time, as a length [m]"),
        "clearance": Column(ColumnKind.NUMBER, "certify how near it comes, up to this [m]"),
        "accuracy": Column(ColumnKind.NUMBER, "of the clearance, as a share of it"),
    }
    answers: ClassVar[dict[str, Any]] = {
        "time": float,
        "time_upper": float,
        "body": str,
        "obstacle": str,
        "segments": int,
        "segments_free": int,
        "first_segment": int,
        "clearance_lower": float,
        "clearance_upper": float,
        "limits_broken": list[str],
        "point": list[float],
        "normal": list[float],
    }
    fine = ("free",)

    def check(self, given: set[str]) -> None:
        """A part and its path, or a robot and its trajectory."""
        check_one_of(self.name, given, ("part",), ("robot",))
        if "part" in given:
            check_one_of(self.name, given, ("part", "path", "against"), ("part", "poses", "against"))
        else:
            check_one_of(self.name, given, ("robot", "trajectory"), ("robot", "q"))
        misplaced = given & set(_ROBOT if "part" in given else _PART)
        if misplaced:
            raise InputError(f"jobs: the column {sorted(misplaced)[0]!r} does not go with the other columns")

    def cost(self, row: Mapping[str, Any], sizes: Mapping[str, int]) -> float:
        """Tens of milliseconds, and more for long paths and large files."""
        steps = len(row.get("poses") or ()) / 16 or len(row.get("q") or ()) / 6
        steps = steps or sizes.get(row.get("path") or row.get("trajectory") or "", 0) / 100
        return 0.02 + 1e-3 * steps + 2e-9 * sum(sizes[path] for path in row.get("against") or ())

    def answer(self, row: dict[str, Any], tools: JobTools) -> dict[str, Any]:
        """The verdict, the first contact and the clearance."""
        return _part_told(row, tools) if "part" in row else _robot_told(row, tools)


def _part_told(row: dict[str, Any], tools: JobTools) -> dict[str, Any]:
    part, names = tools.part(row["part"]), row["against"]
    if "path" in row:
        path = Path.load(row["path"], quaternion=row.get("quaternion"))
    else:
        path = Path(_cut(row["poses"], 16, "poses").reshape(-1, 4, 4))
    options = {name: row[name] for name in ("skin", "solid", "separation", "tolerance", "accuracy") if name in row}
    found = check_path(
        part,
        [tools.part(name) for name in names],
        path,
        start="leaving" if row.get("leaving") else "checked",
        cap=row.get("clearance"),
        **options,
        device=tools.device,
        threads=tools.threads,
    )
    free = found.segment_status == Status.FREE
    clock = path.clock
    return {
        "status": found.status.name.lower(),
        "time": _on(clock, found.time),
        "time_upper": _on(clock, found.time_upper),
        "body": part.name if found else None,
        "obstacle": FilePath(names[found.obstacle]).name if found.obstacle is not None else None,
        "segments": len(free),
        "segments_free": int(free.sum()),
        "first_segment": int(np.argmin(free)) if not free.all() else None,
        "clearance_lower": found.clearance.certain,
        "clearance_upper": found.clearance.least,
        **_first(found.contacts),
        "note": tools.doubted([row["part"], *names]),
    }


def _robot_told(row: dict[str, Any], tools: JobTools) -> dict[str, Any]:
    robot = _robot(row["robot"], tools)
    times, q = None, None
    if "trajectory" in row:
        times, q = read_trajectory(row["trajectory"], robot.joint_names)
        if q.ndim != 2:
            raise InputError(f"{FilePath(row['trajectory']).name}: a job has one trajectory, not an array {q.shape}")
    else:
        q = _cut(row["q"], len(robot.joint_names), "q")
    allowed = robot.allowed(srdf=row["srdf"]) if "srdf" in row else None
    options = {name: row[name] for name in ("separation", "tolerance", "clearance", "accuracy") if name in row}
    world = {FilePath(name).name: tools.part(name) for name in row.get("against") or ()}
    if len(world) != len(row.get("against") or ()):
        raise InputError("against: two things have the same name")
    found = robot.check(q, world, allowed, times=times, **options, device=tools.device, threads=tools.threads)
    pair = found.pair or (None, None)
    free = found.segments.status == Status.FREE
    low, high = found.clearance
    return {
        "status": found.status.name.lower(),
        "time": found.time,
        "time_upper": found.time_upper,
        "body": pair[0],
        "obstacle": pair[1],
        "segments": len(free),
        "segments_free": int(free.sum()),
        "first_segment": found.segment,
        "clearance_lower": low,
        "clearance_upper": high,
        "limits_broken": list(found.limits_broken),
        **_first(found.contact),
    }


def _robot(path: str, tools: JobTools) -> Robot:
    digest = tools.files[path]
    if digest not in _robots:
        if len(_robots) >= _ROBOTS_KEPT:
            _robots.pop(next(iter(_robots)))
        _robots[digest] = Robot.load(path)
    return _robots[digest]


def _first(contacts: Any) -> dict[str, Any]:
    if not len(contacts):
        return {}
    return {"point": contacts.point_b[0].tolist(), "normal": contacts.normal[0].tolist()}


def _cut(values: Any, width: int, name: str) -> np.ndarray:
    numbers = np.asarray(values, float)
    if len(numbers) == 0 or len(numbers) % width:
        raise InputError(f"{name} must be {width} numbers each, one after the other, not {len(numbers)} in all")
    return numbers.reshape(-1, width)


def _on(clock: tuple[float, float], time: float) -> float:
    return clock[0] + time * (clock[1] - clock[0])
