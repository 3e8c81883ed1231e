"""Digests of all answers, and how two of them differ."""

from __future__ import annotations

import hashlib
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tools.digest.answers import SECTIONS, Book, Columns

#: Values that differ by less than this, relative to themselves or to the largest of their column, are close.
CLOSE = 1e-12


def take(name: str, quick: bool = False) -> Book:
    """Ask the questions of one section."""
    book = Book(name, quick)
    try:
        SECTIONS[name](book)
    except Exception:
        book.failures.append(f"{name}\n{traceback.format_exc()}")
    return book


def hash_of(columns: Columns) -> str:
    """The hash of columns, by name: of their types, shapes and bits."""
    total = hashlib.sha256()
    for key in sorted(columns):
        column = np.ascontiguousarray(columns[key])
        total.update(f"{key} {column.dtype.str} {column.shape}".encode())
        total.update(column.tobytes())
    return total.hexdigest()


def digest(sections: Sequence[str], quick: bool) -> tuple[Columns, list[str]]:
    """All columns of the sections, and the questions that failed; prints a line for each section."""
    everything: Columns = {}
    failures: list[str] = []
    for name in sections:
        begin = time.perf_counter()
        book = take(name, quick)
        everything |= book.columns
        failures += book.failures
        numbers = sum(column.size for column in book.columns.values())
        told = f"{len(book.columns):5d} columns, {numbers:9d} numbers, {time.perf_counter() - begin:6.1f} s"
        print(f"{name:16s} {hash_of(book.columns)}  {told}  {book.skipped}".rstrip(), flush=True)
    print(f"{'all':16s} {hash_of(everything)}")
    for failure in failures:
        print(f"\nFAILED {failure}", file=sys.stderr)
    return everything, failures


def _difference(a: np.ndarray, b: np.ndarray) -> tuple[str, str]:
    """How two columns compare, "same", "close" or "different", and where they differ most."""
    if a.shape != b.shape:
        return "different", f"shape {a.shape} and {b.shape}"
    if a.dtype == b.dtype and a.tobytes() == b.tobytes():
        return "same", ""
    if a.size == 0:
        return "close", f"type {a.dtype} and {b.dtype}"
    if a.dtype.kind != "f" and b.dtype.kind != "f":
        wrong = np.flatnonzero((a != b).ravel())
        if not len(wrong):
            return "close", f"equal numbers of type {a.dtype} and {b.dtype}"
        at = np.unravel_index(wrong[0], a.shape)
        return "different", f"{len(wrong)} of {a.size} integers, first at {index_text(at)}: {a[at]} and {b[at]}"
    off = deviation(a, b)
    at = np.unravel_index(int(np.argmax(off)), a.shape)
    told = f"worst at {index_text(at)}: {a[at]!r} and {b[at]!r}, {off[at]:.1e} relative"
    return ("close" if off[at] <= CLOSE else "different"), told


def index_text(at: Sequence[Any]) -> str:
    return "[" + ", ".join(str(int(k)) for k in at) + "]"


def deviation(a: np.ndarray, b: np.ndarray, scale: float | None = None) -> np.ndarray:
    """How far two columns are apart, relative to the values or to the largest of them; inf where one is no number."""
    a, b = np.asarray(a, float), np.asarray(b, float)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    finite = np.isfinite(a) & np.isfinite(b)
    if scale is None:
        scale = float(np.abs(a[finite]).max(initial=0.0))
    with np.errstate(invalid="ignore", divide="ignore"):
        off = np.abs(a - b) / np.maximum(np.maximum(np.abs(a), np.abs(b)), scale)
    return np.where(same, 0.0, np.where(finite, off, np.inf))


def compare(before: Mapping[str, np.ndarray], after: Mapping[str, np.ndarray]) -> bool:
    """Tell how the columns that both have differ, and which only one has; whether all that both have are the same."""
    verdicts: dict[str, dict[str, int]] = {}
    told = []
    for key in [key for key in before if key in after]:
        verdict, where = _difference(before[key], after[key])
        counts = verdicts.setdefault(key.partition("/")[0], dict.fromkeys(("same", "close", "different"), 0))
        counts[verdict] += 1
        if verdict != "same":
            told.append(f"{verdict:9s} {key}: {where}")
    print(f"{'section':16s} {'same bits':>10s} {'within 1e-12':>13s} {'different':>10s}")
    for name, counts in verdicts.items():
        print(f"{name:16s} {counts['same']:10d} {counts['close']:13d} {counts['different']:10d}")
    for line in told:
        print(line)
    for title, one, other in (("first", before, after), ("second", after, before)):
        alone = [key for key in one if key not in other]
        print(f"only in the {title}: {len(alone)} columns", *alone, sep="\n    ")
    return not told
