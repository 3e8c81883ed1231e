"""What jobs of the tests do, in a module that workers can import."""

from __future__ import annotations

import itertools
import os
import signal
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any

import tangere as tg

ANSWERS = {"y": float}


def square(row: dict[str, Any], tools: Any) -> dict[str, Any]:
    return {"y": row["x"] ** 2}


def power(row: dict[str, Any], tools: Any, exponent: float = 2.0) -> dict[str, Any]:
    return {"y": row["x"] ** exponent}


class Power:
    def __init__(self, exponent: float) -> None:
        self.exponent = exponent

    def __call__(self, row: dict[str, Any], tools: Any) -> dict[str, Any]:
        return power(row, tools, self.exponent)


def faulty(row: dict[str, Any], tools: Any) -> dict[str, Any]:
    """A square, or whatever else the row says."""
    match row.get("do"):
        case "raise":
            raise RuntimeError("no such  thing\nas this")
        case "no text":
            raise RuntimeError("cannot read \udce4.stl")
        case "exit":
            sys.exit(3)
        case "text":
            return "a text"  # type: ignore[return-value]
        case "more":
            return {"z": 1.0}
        case "missing":
            return {"status": "missing"}
        case "wrong type":
            return {"y": "a text"}
        case "sleep":
            try:
                time.sleep(1000.0)
            except Exception:  # catches everything but what ends a job
                time.sleep(1000.0)
        case "native":
            deque(itertools.repeat(0), maxlen=0)  # in C, where no signal is seen, with the interpreter's lock
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "die once" if not Path(row["marker"]).exists():
            Path(row["marker"]).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        case "wait":
            time.sleep(0.05)
        case "warn":
            import warnings

            warnings.warn("mind the gap", UserWarning, stacklevel=1)
    return {"y": row["x"] ** 2}


def cards(row: dict[str, Any], tools: Any) -> dict[str, Any]:
    """What a worker sees of the cards."""
    time.sleep(0.2)
    return {"seen": os.environ.get("CUDA_VISIBLE_DEVICES", "none"), "device": tools.device, "process": os.getpid()}


def squares(count: int = 130, **more: Any) -> tg.fleet.Jobs:
    return tg.fleet.Jobs(square, {"x": [float(k) for k in range(count)]}, answers=ANSWERS, **more)


def faults(*do: str, count: int = 130, marker: Path | None = None) -> tg.fleet.Jobs:
    """Jobs of which the first have these faults, spread out."""
    rows = [{"x": float(k), "do": None, "marker": str(marker)} for k in range(count)]
    for place, what in enumerate(do):
        rows[(place * 37 + 50) % count]["do"] = what
    return tg.fleet.Jobs(faulty, rows, answers=ANSWERS)


def bits(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((folder / "shards").iterdir())}


def check_whole(report: tg.fleet.FleetReport, failed: dict[int, str] | None = None) -> None:
    """Every job once, in order; those not told to fail are squares."""
    table = report.table().to_pydict()
    assert table["job"] == list(range(report.jobs))
    expected = failed or {}
    assert {k: status for k, status in enumerate(table["status"]) if status != "done"} == expected
    assert report.answers["job"].to_pylist() == table["job"]
    for k, (x, y) in enumerate(zip(table["x"], table["y"], strict=True)):
        assert y == (None if k in expected else x * x)
    assert report.failed == len(expected)
    assert report.fine == report.jobs - len(expected)
    assert bool(report) == bool(expected)
