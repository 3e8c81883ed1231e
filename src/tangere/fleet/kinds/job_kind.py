"""What a kind of job knows: its columns, how long one may take, and how it is answered."""

from __future__ import annotations

import hashlib
import inspect
import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from tangere.fleet.columns import Column, ColumnKind, arrow
from tangere.runtime import InputError, described

if TYPE_CHECKING:
    from tangere.fleet.part_store import JobTools

#: Statuses of jobs without an answer: they are never free.
FAILED = ("error", "timeout", "lost", "missing")
#: Columns that every job may have.
COMMON = {"cost": Column(ColumnKind.NUMBER, "how long it may take, to cut shards by [s]")}
#: Columns that every answer has, before its own.
ANSWERED = ("job", "status", "error", "note")
_TYPES = (float, int, str, bool, list[float], list[str])


class JobKind(ABC):
    """One question, asked of many things."""

    name: str
    columns: Mapping[str, Column]
    answers: Mapping[str, Any]  #: the type of each value that is told: float, int, str, bool, list[float], list[str]
    fine: tuple[str, ...]  #: statuses that need no look

    in_script = False  #: whether the function that answers is in the script that runs

    @property
    def digest(self) -> str:
        """What the answers depend on beside the rows."""
        return self.name

    @abstractmethod
    def check(self, given: set[str]) -> None:
        """Raise unless these columns make a question."""

    @abstractmethod
    def cost(self, row: Mapping[str, Any], sizes: Mapping[str, int]) -> float:
        """About how long a job takes [s], by the sizes of its files [bytes]."""

    @abstractmethod
    def answer(self, row: dict[str, Any], tools: JobTools) -> dict[str, Any]:
        """`status`, and values by the names of `answers`."""

    def schema(self, labels: Any) -> Any:
        """The Arrow schema of answers, after fields for labels."""
        pa = arrow()
        common = [("job", pa.int64()), ("status", pa.string()), ("error", pa.string()), ("note", pa.string())]
        own = [(name, arrow_type(kind)) for name, kind in self.answers.items()]
        return pa.schema([*(pa.field(*each) for each in common), *labels, *(pa.field(*each) for each in own)])


def arrow_type(kind: Any) -> Any:
    """The Arrow type of values of a kind."""
    pa = arrow()
    arrows = (pa.float64(), pa.int64(), pa.string(), pa.bool_(), pa.list_(pa.float64()), pa.list_(pa.string()))
    return dict(zip(_TYPES, arrows, strict=True))[kind]


def check_one_of(kind: str, given: set[str], *ways: Sequence[str]) -> None:
    """Raise unless all columns of exactly one of these ways to ask are there."""
    whole = [way for way in ways if set(way) <= given]
    if len(whole) != 1:
        told = ", or ".join(" and ".join(way) for way in ways)
        found = "both are given" if whole else f"there are {', '.join(sorted(given)) or 'none'}"
        raise InputError(f"jobs: {kind} jobs have the columns {told}; {found}")


@dataclass(frozen=True)
class OwnJobs(JobKind):
    """Jobs that a function of the caller answers."""

    function: Callable[[dict[str, Any], Any], dict[str, Any]]
    columns: Mapping[str, Column]
    answers: Mapping[str, Any]
    fine: tuple[str, ...] = ("done", "free")
    seconds: float = field(default=0.1)

    def __post_init__(self) -> None:
        wrong = [name for name, kind in self.answers.items() if kind not in _TYPES]
        if wrong:
            known = "float, int, str, bool, list[float], list[str]"
            raise InputError(f"answers: {wrong[0]!r} must be one of {known}, not {described(self.answers[wrong[0]])}")
        taken = [name for name in self.answers if name in ANSWERED]
        if taken:
            raise InputError(f"answers: {taken[0]!r} is told of every job; call yours something else")

    @property
    def in_script(self) -> bool:
        """Whether the function is in the script that runs."""
        return self.function.__module__ == "__main__"

    @property
    def name(self) -> str:
        """The name of the function."""
        return getattr(self.function, "__qualname__", type(self.function).__name__)

    @property
    def digest(self) -> str:
        """The function by its place, its text where that can be read, and what it holds."""
        inner = self.function.func if isinstance(self.function, partial) else self.function
        try:
            text = inspect.getsource(inner if inspect.isroutine(inner) else type(inner))
        except (OSError, TypeError):
            text = ""
        whole = hashlib.sha256(f"{self.function.__module__}.{self.name}\n{text}".encode())
        whole.update(_held(self.function, inner))
        return whole.hexdigest()

    def check(self, given: set[str]) -> None:
        """Any columns will do."""

    def cost(self, row: Mapping[str, Any], sizes: Mapping[str, int]) -> float:
        """The same of all, unless a row tells its `cost`."""
        return self.seconds

    def answer(self, row: dict[str, Any], tools: JobTools) -> dict[str, Any]:
        """What the function returns; its status is "done" unless it says another."""
        found = self.function(row, tools)
        if not isinstance(found, dict):
            raise InputError(f"{self.name} must return values by name, not {described(found)}")
        unknown = [name for name in found if name not in self.answers and name != "status"]
        if unknown:
            raise InputError(f"{self.name} returned {unknown[0]!r}, of which answers says nothing")
        for name, kind in self.answers.items():
            _check_value(found.get(name), kind, f"{self.name} returned {name!r}, which")
        return {"status": "done", **found}


def _held(function: Any, inner: Any) -> bytes:
    """What a function holds beside its text: defaults, arguments of a partial, what it closes over; an object: all."""
    held = function
    if inspect.isfunction(inner):
        given = (function.args, function.keywords) if isinstance(function, partial) else ()
        closed = [cell.cell_contents for cell in inner.__closure__ or ()]
        held = (given, inner.__defaults__, inner.__kwdefaults__, closed)
    try:
        return pickle.dumps(held)
    except Exception:  # what cannot be pickled raises what it likes; such a function counts as another each time
        return repr(held).encode()


def _check_value(value: Any, kind: Any, told: str) -> None:
    pa = arrow()
    try:
        pa.scalar(value, arrow_type(kind))
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        word = getattr(kind, "__name__", str(kind)) if kind in (float, int, str, bool) else str(kind)
        raise InputError(f"{told} must be a {word}, not {described(value)}") from error
