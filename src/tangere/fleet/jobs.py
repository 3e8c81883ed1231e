"""Jobs: one question asked of each row of a table.

Question: what is asked, of which files, and has any of it changed since?
Method:   columns are checked once, in Arrow; names of files are found and their bytes hashed; jobs of the same parts
          come together and are cut into shards of about equal work. The cut and the digest of each shard follow from
          the jobs alone, whoever does them.
Sound:    columns that the question does not know are refused: a misspelt one would be left out in silence.
Known as: a job array, a parameter sweep.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from tangere.fleet.columns import FILES, Column, ColumnKind, arrow, checked, table_of, value_as
from tangere.fleet.file_stamps import FileStamp, stamp
from tangere.fleet.kinds.job_kind import ANSWERED, COMMON, JobKind, OwnJobs
from tangere.runtime import InputError, described, not_negative

#: There are so many shards at least, where there are jobs enough: workers end at about the same time.
LEAST_SHARDS = 64
#: Of answers: another number, and shards of older ones are told to have changed.
_VERSION = 1


@dataclass(frozen=True, eq=False)
class Shard:
    """Jobs that one worker does in one go."""

    number: int
    jobs: np.ndarray  #: numbers of its jobs, in the order they are done
    cost: float  #: about how long it takes [s]


class Jobs:
    """Jobs of one kind.

    Args:
        question: "clash", "check" or "crowd"; or a function of your own, which is called with a row (values by name)
            and `JobTools` and returns values by name.
        rows: a .parquet or .csv file, an Arrow table, a data frame, columns by name, or a list of rows (values by
            name).
        base: the folder that relative names of files start from; None means that of the file of rows, or the working
            folder.
        units: of meshes that do not say theirs: "m", "mm", "inch" …; None means metres.
        labels: columns of your own, which are kept beside the answers.
        answers: of a function of your own: the type of each value that it returns.
        files: of a function of your own: columns that hold names of files; `JobTools.part` opens those of meshes.
        settings: values for all jobs that do not have their own.

    Example:
        >>> import tangere as tg
        >>> def area(row, tools):
        ...     return {"area": row["width"] * row["height"]}
        >>> jobs = tg.fleet.Jobs(area, {"width": [1.0, 2.0], "height": [3.0, 4.0]}, answers={"area": float})
        >>> len(jobs)
        2
    """

    kind: JobKind

    def __init__(
        self,
        question: str | Callable[[dict[str, Any], Any], dict[str, Any]],
        rows: Any,
        *,
        base: str | PathLike[str] | None = None,
        units: str | None = None,
        labels: Iterable[str] = (),
        answers: Mapping[str, Any] | None = None,
        files: Iterable[str] = (),
        **settings: Any,
    ) -> None:
        table, beside = table_of(rows)
        if not len(table):
            raise InputError("jobs: there are none")
        self.labels = tuple(labels)
        self.kind = _kind(question, table, self.labels, answers, tuple(files), settings)
        known = {**self.kind.columns, **COMMON}
        reserved = {*ANSWERED, *self.kind.answers, "shard"}
        taken = [name for name in (*self.labels, *self.kind.columns) if name in reserved]
        if taken:
            raise InputError(f"jobs: answers have a column {taken[0]!r}; call yours something else")
        unread = [name for name in self.labels if name in known]
        if unread:
            raise InputError(f"labels: {unread[0]!r} is a column of {self.kind.name} jobs, which would not be read")
        self.table = checked(table, known, self.labels, self.kind.name)
        unknown = [name for name in settings if name not in known]
        if unknown:
            raise InputError(f"{self.kind.name} jobs know no {unknown[0]!r}; known are {', '.join(known)}")
        self.units = units if units is None else _checked_units(units)
        self._base = Path(fspath(base)).resolve() if base is not None else beside or Path.cwd()
        self.settings = {name: value_as(value, known[name].kind, name) for name, value in settings.items()}
        self._check_nulls()
        self.stamps = self._stamped()

    def __len__(self) -> int:
        return len(self.table)

    def __repr__(self) -> str:
        return f"Jobs({self.kind.name!r}, {len(self)} jobs, {len(self.stamps)} files)"

    def rows(self, jobs: np.ndarray | Sequence[int]) -> list[dict[str, Any]]:
        """The rows of these jobs, with settings, and with files by their whole paths; what is null is not in them."""
        taken = self.table.take(arrow().array(np.asarray(jobs)))
        rows = []
        for values in taken.to_pylist():
            row = {**self.settings, **{name: value for name, value in values.items() if value is not None}}
            for name in self._files().keys() & row.keys():
                value = row[name]
                row[name] = self._path(value) if isinstance(value, str) else [self._path(each) for each in value]
            rows.append(row)
        return rows

    @cached_property
    def costs(self) -> np.ndarray:
        """(n,) about how long each job takes [s]."""
        sizes = {path: each.size for path, each in self.stamps.items()}
        found = np.empty(len(self))
        for first in range(0, len(self), 10_000):
            block = np.arange(first, min(first + 10_000, len(self)))
            for job, row in zip(block, self.rows(block), strict=True):
                found[job] = (
                    not_negative(row["cost"], f"jobs: row {job}: cost")
                    if "cost" in row
                    else (self.kind.cost(row, sizes))
                )
        return found

    def shards(self, seconds: float) -> list[Shard]:
        """The jobs in shards of about so long, jobs with the same files together."""
        names = [name for name in self._files() if name in self.table.column_names]
        keys = list(zip(*(map(str, self.table[name].to_pylist()) for name in names), strict=True)) or [()] * len(self)
        order = np.array(sorted(range(len(self)), key=lambda job: (keys[job], job)))
        limit = min(seconds, self.costs.sum() / LEAST_SHARDS)
        shards, begin, taken = [], 0, 0.0
        for place, job in enumerate(order):
            if place > begin and taken + self.costs[job] > limit * (1.0 + 1e-9):
                shards.append(Shard(len(shards), order[begin:place], taken))
                begin, taken = place, 0.0
            taken += self.costs[job]
        shards.append(Shard(len(shards), order[begin:], taken))
        return shards

    def digest(self, shard: Shard, device: str) -> str:
        """What the answers of a shard depend on; files count by their bytes and name, not by where they are."""
        whole = hashlib.sha256(f"{_VERSION} {version('tangere')} {self.kind.digest} {self.units} {device}".encode())
        for job, row in zip(shard.jobs.tolist(), self.rows(shard.jobs), strict=True):
            for name in self._files().keys() & row.keys():
                value = row[name]
                paths = [value] if isinstance(value, str) else value
                row[name] = [(Path(path).name, self.stamps[path].digest) for path in paths]
            whole.update(f"{job} {json.dumps(row, sort_keys=True, default=str)}\n".encode())
        return whole.hexdigest()

    def _files(self) -> dict[str, Column]:
        return {name: column for name, column in self.kind.columns.items() if column.kind in FILES}

    def _path(self, name: str) -> str:
        return str(self._base / name)

    def _check_nulls(self) -> None:
        """Each row must be a question."""
        names = [name for name in self.table.column_names if name not in self.labels]
        columns = [self.table[name].is_valid().to_numpy() for name in names]
        there = np.stack(columns, axis=1) if columns else np.zeros((len(self), 0), bool)
        for pattern, first in zip(*np.unique(there, axis=0, return_index=True), strict=True):
            given = {name for name, valid in zip(names, pattern, strict=True) if valid} | self.settings.keys()
            try:
                self.kind.check(given - COMMON.keys())
            except InputError as error:
                raise InputError(f"{error} (row {first})" if len(self) > 1 else str(error)) from error

    def _stamped(self) -> dict[str, FileStamp]:
        """Of each file what it is; raises where one is not there."""
        stamps: dict[str, FileStamp] = {}
        for name in self._files():
            values = self.settings.get(name)
            given = [(None, values)] if values is not None else []
            if name in self.table.column_names:
                given += enumerate(self.table[name].to_pylist())
            for row, value in given:
                for each in [value] if isinstance(value, str) else value or ():
                    told = f"jobs: {name}" if row is None else f"jobs: row {row}: {name}"
                    if each is None:
                        raise InputError(f"{told}: a name is missing in the list")
                    path = self._path(each)
                    if path not in stamps:
                        stamps[path] = _stamp(path, told, self.kind.columns[name].folder)
        return stamps


def _stamp(path: str, told: str, folder: bool) -> FileStamp:
    if not (Path(path).is_file() or (folder and Path(path).is_dir())):
        raise InputError(f"{told}: there is no file {path!r}")
    try:
        return stamp(Path(path))
    except OSError as error:
        raise InputError(f"{told}: {path!r} cannot be read: {error.strerror or error}") from error


def _checked_units(units: str) -> str:
    from tangere.shape.mesh import named_unit

    named_unit(units)
    return units


def _kind(
    question: Any,
    table: Any,
    labels: Sequence[str],
    answers: Mapping[str, Any] | None,
    files: Sequence[str],
    settings: Mapping[str, Any],
) -> JobKind:
    if callable(question):
        return _own(question, table, labels, answers, files, settings)
    if answers is not None or files:
        raise InputError("answers and files are of jobs that a function of your own answers")
    return _landed(question)


def job_columns(question: str) -> dict[str, Column]:
    """The columns that "clash", "check" or "crowd" jobs may have, and what stands in them."""
    return {**_landed(question).columns, **COMMON}


def _landed(question: Any) -> JobKind:
    match question:
        case "clash":
            from tangere.fleet.kinds.clash_jobs import ClashJobs

            return ClashJobs()
        case "check":
            from tangere.fleet.kinds.check_jobs import CheckJobs

            return CheckJobs()
        case "crowd":
            from tangere.fleet.kinds.crowd_jobs import CrowdJobs

            return CrowdJobs()
    raise InputError(f"question must be 'clash', 'check', 'crowd' or a function, not {described(question)}")


def _own(
    function: Callable[..., Any],
    table: Any,
    labels: Sequence[str],
    answers: Mapping[str, Any] | None,
    files: Sequence[str],
    settings: Mapping[str, Any],
) -> OwnJobs:
    if answers is None:
        raise InputError("answers must say which values your function returns, as in answers={'length': float}")
    columns = {name: table[name].to_pylist() for name in files if name in table.column_names}
    columns |= {name: [value] for name, value in settings.items()}
    absent = [name for name in files if name not in columns]
    if absent:
        raise InputError(f"files: jobs have no column {absent[0]!r}")
    taken = (*labels, *COMMON)
    free = {name: Column(ColumnKind.ANY, "") for name in (*table.column_names, *settings) if name not in taken}
    kinds = {name: _one_or_many(columns[name], name) for name in files}
    return OwnJobs(
        function, {**free, **{name: Column(kind, "", mesh=True) for name, kind in kinds.items()}}, dict(answers)
    )


def _one_or_many(values: list[Any], name: str) -> ColumnKind:
    """Whether a column of files has one in each row."""
    if all(value is None or isinstance(value, str | PathLike) for value in values):
        return ColumnKind.FILE
    return ColumnKind.FILES
