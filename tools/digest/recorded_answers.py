"""The record of the quick digest, which the tests compare with."""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tools.digest.answers import Columns
from tools.digest.comparison import CLOSE, deviation, index_text

RECORD = Path(__file__).resolve().parents[2] / "tests" / "data" / "digest.npz"
#: How far columns that magnify rounding may be from the record, others by `CLOSE`: bodies are a millionth of their size
#: apart when they touch, so that the direction between their nearest points has six digits less than the points.
MAGNIFIED = dict.fromkeys(("normal", "gap", "weights"), 1e-7)
MAGNIFYING = ("rigid", "mixed", "screws", "robots", "path_check")
#: Of a column longer than this, the record holds so many entries; of integers a checksum of all as well.
KEPT = {"floats": 96, "integers": 64}


@dataclasses.dataclass(frozen=True)
class Kept:
    """What the record holds of one column."""

    shape: tuple[int, ...]
    integers: bool
    at: np.ndarray  #: which entries, counted through the whole column
    values: np.ndarray
    total: float  #: of floats the largest size of a finite entry; of integers a checksum of all of them


def _chosen(size: int, most: int) -> np.ndarray:
    """The entries of a column that the record holds."""
    return np.arange(size) if size <= most else np.linspace(0, size - 1, most).astype(np.int64)


def _kept(column: np.ndarray) -> Kept:
    integers = column.dtype.kind != "f"
    at = _chosen(column.size, KEPT["integers" if integers else "floats"])
    flat = column.ravel().astype(np.int64 if integers else np.float64)
    return Kept(column.shape, integers, at, flat[at], _total(flat))


def _total(flat: np.ndarray) -> float:
    if flat.dtype.kind == "f":
        return float(np.abs(flat[np.isfinite(flat)]).max(initial=0.0))
    return float(zlib.crc32(flat.tobytes()))


def _is_recorded(key: str) -> bool:
    """Hashes are not: they tell no difference of rounding from another."""
    return not key.endswith(".sha")


def record(columns: Columns, file: Path = RECORD) -> None:
    """Write what the test compares with: some entries of every column, packed."""
    kept = {key: _kept(column) for key, column in columns.items() if _is_recorded(key)}
    ones = list(kept.values())
    np.savez_compressed(
        file,
        keys=np.frombuffer("\n".join(kept).encode(), np.uint8),
        shapes=np.frombuffer("\n".join(" ".join(map(str, one.shape)) for one in ones).encode(), np.uint8),
        most=np.array([KEPT["floats"], KEPT["integers"]]),
        integers=np.array([one.integers for one in ones]),
        totals=np.array([one.total for one in ones]),
        real=np.concatenate([one.values for one in ones if not one.integers]),
        whole=np.concatenate([one.values for one in ones if one.integers]),
    )


def load_record(file: Path = RECORD) -> dict[str, Kept]:
    """What `record` wrote."""
    found: dict[str, Kept] = {}
    with np.load(file, allow_pickle=False) as arrays:
        keys = arrays["keys"].tobytes().decode().split("\n")
        shapes = [tuple(map(int, line.split())) for line in arrays["shapes"].tobytes().decode().split("\n")]
        values, begin = (arrays["real"], arrays["whole"]), [0, 0]
        for key, shape, integers, total in zip(keys, shapes, arrays["integers"], arrays["totals"], strict=True):
            which = int(integers)
            at = _chosen(int(np.prod(shape, dtype=np.int64)), int(arrays["most"][which]))
            end = begin[which] + len(at)
            found[key] = Kept(shape, bool(integers), at, values[which][begin[which] : end], float(total))
            begin[which] = end
    return found


def _close(section: str, column: str) -> float:
    """How far a column may be from the record."""
    return MAGNIFIED.get(column.rpartition(".")[2], CLOSE) if section in MAGNIFYING else CLOSE


def check(columns: Columns, recorded: Mapping[str, Kept]) -> list[str]:
    """What of the columns differs from the record, each as a line with section, case, column and index."""
    told = []
    for key, before in recorded.items():
        section, case, column = key.split("/")
        name = f"section {section}, case {case}, column {column}"
        if key not in columns:
            told.append(f"{name}: not there any more")
            continue
        now = columns[key]
        if now.shape != before.shape or (now.dtype.kind != "f") != before.integers:
            told.append(f"{name}: {now.dtype} of shape {now.shape}, recorded {before.values.dtype} of {before.shape}")
            continue
        flat = now.ravel().astype(before.values.dtype)
        if before.integers:
            off = (flat[before.at] != before.values).astype(float)
        else:
            off = deviation(before.values, flat[before.at], before.total)
        if len(off) and off.max() > _close(section, column):
            worst = int(np.argmax(off))
            place = int(before.at[worst])
            at = index_text(np.unravel_index(place, before.shape))
            told.append(f"{name}, index {at}: {flat[place]!r}, recorded {before.values[worst]!r}")
        elif before.integers and _total(flat) != before.total:
            told.append(f"{name}: an integer between the recorded ones differs")
    return told + [f"{key}: not in the record" for key in columns if _is_recorded(key) and key not in recorded]
