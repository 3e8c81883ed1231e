"""What is kept of the answers of one section: columns of numbers by name."""

from __future__ import annotations

import dataclasses
import traceback
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import warp as wp

from tools import words

Columns = dict[str, np.ndarray]
Section = Callable[["Book"], None]
SECTIONS: dict[str, Section] = {}


def section(function: Section) -> Section:
    """Makes a function that asks the questions of one section known by its name."""
    SECTIONS[function.__name__] = function
    return function


class Book:
    """The answers of one section."""

    def __init__(self, name: str, quick: bool = False) -> None:
        self.name, self.quick = name, quick
        self.columns: Columns = {}
        self.failures: list[str] = []
        self.skipped = ""  #: why the section has no answers

    def size(self, full: int, quick: int) -> int:
        """How many, of the full digest or of the quick one."""
        return quick if self.quick else full

    def some(self, things: Iterable[Any], quick: int) -> list[Any]:
        """All of them, or the first few."""
        return list(things)[: quick if self.quick else None]

    def rng(self, case: str) -> np.random.Generator:
        """Random numbers of a case, whatever was asked before."""
        return np.random.default_rng(zlib.crc32(f"{self.name}/{case}".encode()))

    def ask(self, case: str, question: Callable[..., Any], *given: Any, **options: Any) -> Any:
        """Keep what a question is answered; None where it fails, which is told at the end."""
        try:
            answer = question(*given, **options)
            self.keep(case, answer)
            return answer
        except Exception:
            self.failures.append(f"{self.name}/{case}\n{traceback.format_exc()}")
            return None

    def keep(self, case: str, answer: Any) -> None:
        """Keep the columns of an answer."""
        for name, column in columns_of(answer).items():
            key = f"{self.name}/{case}/{name or 'value'}"
            if key in self.columns:
                raise ValueError(f"{key} is there twice")
            self.columns[key] = column


def columns_of(answer: Any) -> Columns:
    """The columns of an answer by name: of a record its fields, of a list of answers theirs one below the other."""
    if answer is None or isinstance(answer, str):
        return {}
    if isinstance(answer, wp.array):
        return columns_of(answer.numpy())
    if isinstance(answer, (bool, int, float, np.ndarray, np.generic)):
        array = np.array(answer)
        return {"": array} if array.dtype.kind in "biuf" else {}
    if isinstance(answer, Mapping):
        return _prefixed((str(name), value) for name, value in answer.items())
    if dataclasses.is_dataclass(answer):
        own = [(field.name, getattr(answer, field.name)) for field in dataclasses.fields(answer)]
        kept = ((name, value) for name, value in own if _is_column(name, value))
        return _prefixed((words.COLUMN_NAMES.get(name, name), value) for name, value in kept)
    if isinstance(answer, Sequence):
        return _stacked([columns_of(one) for one in answer])
    raise TypeError(f"{type(answer).__name__} has no columns")


def _is_column(name: str, value: Any) -> bool:
    if name in words.NOT_ANSWERS:
        return False
    plain = isinstance(value, (bool, int, float, np.ndarray, np.generic, wp.array))
    return plain or name in words.NESTED


def _prefixed(pairs: Iterable[tuple[str, Any]]) -> Columns:
    found: Columns = {}
    for name, value in pairs:
        for inner, column in columns_of(value).items():
            found[f"{name}.{inner}" if inner else name] = column
    return found


def _stacked(rows: list[Columns]) -> Columns:
    """Numbers become columns; columns of any lengths become one, with their lengths beside it."""
    found: Columns = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        parts = [row[name] for row in rows if name in row]
        if all(part.ndim == 0 for part in parts):
            found[name] = np.stack(parts)
        else:
            wide = [part.reshape(len(part), int(np.prod(part.shape[1:]))) if part.ndim > 1 else part for part in parts]
            found[name] = np.concatenate(wide)
            found[f"{name.rpartition('.')[0]}#"] = np.array([len(part) for part in parts])
    return found
