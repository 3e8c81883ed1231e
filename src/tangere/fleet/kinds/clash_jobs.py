"""Clash jobs: do two parts, or the parts of an assembly, clash, and how?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from tangere.assembly import Assembly, Clashes, Part
from tangere.fleet.columns import Column, ColumnKind
from tangere.fleet.kinds.job_kind import JobKind, check_one_of
from tangere.fleet.part_store import JobTools
from tangere.motion import as_poses, rotations_of
from tangere.runtime import InputError


class ClashJobs(JobKind):
    """Two parts a and b where they are, or the parts of an assembly."""

    name = "clash"
    columns: ClassVar[dict[str, Column]] = {
        "a": Column(ColumnKind.FILE, "a part", mesh=True),
        "b": Column(ColumnKind.FILE, "another part", mesh=True),
        "pose_a": Column(ColumnKind.NUMBERS, "where it is: 16 numbers by rows, or x, y, z, qw, qx, qy, qz"),
        "pose_b": Column(ColumnKind.NUMBERS, "the same of b"),
        "assembly": Column(ColumnKind.FILE, "or an assembly: a file, or a folder of meshes", folder=True),
        "clearance": Column(ColumnKind.NUMBER, "parts nearer than this are near [m]"),
        "skin": Column(ColumnKind.NUMBER, "parts no deeper in each other only touch [m]"),
        "tolerance": Column(ColumnKind.NUMBER, "of STEP files [m]"),
        "depth": Column(ColumnKind.FLAG, "whether to find how deep hard clashes are"),
        "accuracy": Column(ColumnKind.NUMBER, "of the depth, as a share of it"),
    }
    answers: ClassVar[dict[str, Any]] = {
        "clashes": int,
        "duplicates": int,
        "inside": int,
        "hard": int,
        "touching": int,
        "near": int,
        "part_a": str,
        "part_b": str,
        "distance": float,
        "distance_lower": float,
        "depth_lower": float,
        "depth_upper": float,
        "point": list[float],
        "normal": list[float],
        "skin_used": float,
    }
    fine = ("free", "touching")

    def check(self, given: set[str]) -> None:
        """Two parts, or an assembly."""
        check_one_of(self.name, given, ("a", "b"), ("assembly",))
        misplaced = {"pose_a", "pose_b"} & given if "assembly" in given else {"tolerance"} & given
        if misplaced:
            raise InputError(f"jobs: the column {sorted(misplaced)[0]!r} does not go with the other columns")

    def cost(self, row: Mapping[str, Any], sizes: Mapping[str, int]) -> float:
        """A few milliseconds, and more for large files."""
        if "assembly" in row:
            return 0.2 + 2e-6 * sizes[row["assembly"]]
        return 5e-3 + 5e-9 * (sizes[row["a"]] + sizes[row["b"]])

    def answer(self, row: dict[str, Any], tools: JobTools) -> dict[str, Any]:
        """The worst clash there is, and how many of each kind."""
        assembly, note = _assembly(row, tools)
        options = {name: row[name] for name in ("clearance", "skin", "depth", "accuracy") if name in row}
        found = assembly.clashes(**options, device=tools.device, threads=tools.threads)
        return {**_told(found), "note": note}


def _assembly(row: Mapping[str, Any], tools: JobTools) -> tuple[Assembly, str]:
    if "assembly" in row:
        path = Path(row["assembly"])
        units = tools.units if path.is_dir() else None
        return Assembly.load(path, tolerance=row.get("tolerance"), units=units), ""
    parts = []
    for name in ("a", "b"):
        told = f"{name}: {Path(row[name]).name}"
        parts.append(Part(told, told, tools.part(row[name]), pose_of(row.get(f"pose_{name}"), f"pose_{name}")))
    return Assembly(parts), tools.doubted([row["a"], row["b"]])


def _told(found: Clashes) -> dict[str, Any]:
    counts = found.counts
    told = {
        "duplicates": counts["duplicate"],
        **{kind: counts[kind] for kind in ("inside", "hard", "touching", "near")},
    }
    told |= {"clashes": len(found), "skin_used": found.skin}
    if not len(found):
        return {"status": "free", **told}
    worst = found[0]
    return {
        "status": str(worst.kind),
        **told,
        "part_a": worst.name_a,
        "part_b": worst.name_b,
        "distance": worst.distance,
        "distance_lower": worst.distance_lower,
        "depth_lower": worst.depth_lower,
        "depth_upper": worst.depth_upper,
        "point": worst.point.tolist(),
        "normal": worst.normal.tolist(),
    }


def pose_of(values: Any, name: str) -> np.ndarray:
    """A pose (4, 4) of 16 numbers by rows, or of 7: x, y, z, qw, qx, qy, qz; None: as in the file."""
    if values is None:
        return np.eye(4)
    numbers = np.asarray(values, float)
    if numbers.shape == (7,):
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = rotations_of(numbers[None, 3:], name)[0], numbers[:3]
        return as_poses(pose, name)
    if numbers.shape != (16,):
        raise InputError(f"{name} must be 16 numbers by rows, or 7: x, y, z, qw, qx, qy, qz; not {len(numbers)}")
    return as_poses(numbers.reshape(4, 4), name)
