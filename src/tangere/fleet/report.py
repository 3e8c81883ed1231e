"""What a fleet found: how many jobs of each status, and the table of answers.

Sound: everything is read from the files of shards, with their checksums. A job without a row is "missing"; two rows of
       one job are an error. Neither is ever free.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from tangere.fleet.columns import arrow
from tangere.fleet.kinds.job_kind import FAILED
from tangere.fleet.run_folder import RunFolder
from tangere.fleet.shard_files import read_shard
from tangere.runtime import InputError, view_room, writing


@dataclass(frozen=True, eq=False)
class FleetReport:
    """The answers of a run, as far as there are any; true where anything was found, or is not known."""

    folder: Path
    question: str
    jobs: int
    counts: dict[str, int]  #: jobs by status; "missing" are those without a row
    fine_statuses: tuple[str, ...]
    shards: int
    answers: Any = field(repr=False)  #: Arrow table of the rows there are, by job
    done: int = 0  #: jobs that this run has done
    kept: int = 0  #: jobs that were done before
    damaged: int = 0  #: shards whose files were damaged, and which this run has done again
    deaths: int = 0  #: workers that died
    seconds: float = 0.0  #: of this run
    workers: dict[str, float] = field(default_factory=dict)  #: process seconds of each worker in shards of this run

    @classmethod
    def load(cls, folder: str | PathLike[str]) -> FleetReport:
        """What there is in a folder, whether its run has ended or not."""
        place = RunFolder(folder)
        told = place.manifest()
        if told is None:
            raise InputError(f"{folder}: no fleet has been here, there is no fleet.json")
        return cls.read(place, told)

    @classmethod
    def read(cls, place: RunFolder, told: dict[str, Any], **run: Any) -> FleetReport:
        """The rows of all shards of a folder, each job once."""
        pa = arrow()
        tables = []
        for number, digest in enumerate(told["shards"]):
            found = read_shard(place.path, number)
            if found is not None and found[1] == digest:
                tables.append(found[0].replace_schema_metadata(None))
        rows = pa.concat_tables(tables).combine_chunks() if tables else pa.table({"job": [], "status": []})
        order = np.argsort(np.asarray(rows["job"], np.int64), kind="stable")
        rows = rows.take(pa.array(order))
        numbers = np.asarray(rows["job"], np.int64)
        if len(np.unique(numbers)) != len(numbers) or (len(numbers) and numbers[-1] >= told["jobs"]):
            twice = numbers[:-1][np.diff(numbers) == 0]
            raise InputError(f"{place.path}: job {int(twice[0]) if len(twice) else int(numbers[-1])} is there twice")
        counts = dict(Counter(rows["status"].to_pylist()).most_common())
        missing = told["jobs"] - len(rows)
        if missing:
            counts["missing"] = missing
        shards, run = len(told["shards"]), run or {"kept": len(rows)}
        return cls(place.path, told["question"], told["jobs"], counts, tuple(told["fine"]), shards, rows, **run)

    @property
    def fine(self) -> int:
        """Jobs with an answer that needs no look: free, done."""
        return sum(count for status, count in self.counts.items() if status in self.fine_statuses)

    @property
    def failed(self) -> int:
        """Jobs without an answer: error, timeout, lost, missing."""
        return sum(count for status, count in self.counts.items() if status in FAILED)

    @property
    def found(self) -> int:
        """Jobs with an answer that needs a look: a contact, a clash."""
        return self.jobs - self.fine - self.failed

    def __bool__(self) -> bool:
        return self.fine != self.jobs

    def __len__(self) -> int:
        return self.jobs

    def __repr__(self) -> str:
        told = ", ".join(f"{count} {status}" for status, count in self.counts.items())
        return f"FleetReport({self.question}: {told}; {self.done} done now, {self.kept} kept)"

    def _repr_html_(self) -> str:
        """For notebooks: how many jobs of each status."""
        facts = {status: str(count) for status, count in self.counts.items()}
        return view_room().html(repr(self), facts | {"folder": str(self.folder)})

    def to_look_at(self) -> Any:
        """The rows of `table` that are not fine: what was found, then what failed; columns without a value left out."""
        pa, table = arrow(), self.table()
        statuses = table["status"].to_pylist()
        found = [k for k, status in enumerate(statuses) if status not in (*self.fine_statuses, *FAILED)]
        failed = [k for k, status in enumerate(statuses) if status in FAILED]
        rows = table.take(pa.array([*found, *failed], pa.int64()))
        return rows.select([name for name in rows.column_names if rows[name].null_count < max(len(rows), 1)])

    def save(self, path: str | PathLike[str]) -> None:
        """Write `table` as one .parquet or .csv file; lists in .csv have semicolons between their values."""
        pa, file, table = arrow(), Path(fspath(path)), self.table()
        kind = file.suffix.lower()
        if kind not in (".parquet", ".csv"):
            raise InputError(f"{file}: answers are written as .parquet and .csv files")
        with writing(file):
            if kind == ".parquet":
                pa.parquet.write_table(table, file)
                return
            flat = {name: _flat(table[name]) for name in table.column_names}
            pa.csv.write_csv(pa.table(flat), file)

    def table(self) -> Any:
        """Jobs and answers side by side, an Arrow table by job; jobs without a row have the status "missing"."""
        pa = arrow()
        try:
            asked = pa.parquet.read_table(self.folder / "jobs.parquet")
        except (OSError, pa.ArrowException) as error:
            raise InputError(f"{self.folder / 'jobs.parquet'}: cannot be read: {error}") from error
        place = np.full(self.jobs, -1)
        place[np.asarray(self.answers["job"], np.int64)] = np.arange(len(self.answers))
        rows = pa.array(place, mask=place < 0)
        columns = {name: asked[name] for name in asked.column_names}
        for name in self.answers.column_names:
            if name not in ("job", *asked.column_names):
                columns[name] = self.answers[name].take(rows)
        columns["status"] = pa.compute.fill_null(columns["status"].cast(pa.string()), "missing")
        return pa.table(columns)


def _flat(column: Any) -> Any:
    """Lists as text."""
    if not arrow().types.is_nested(column.type):
        return column
    values = column.to_pylist()
    return arrow().array([None if value is None else ";".join(map(str, value)) for value in values], arrow().string())
