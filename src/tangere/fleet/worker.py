"""What a worker does: the jobs of a shard, one after the other, then its file.

Sound:    a job that raises, or takes too long, is a row that says so. A job that ends the process leaves its number
          in the claim of the shard: who resumes knows which it was. Threads, devices and other jobs change no bit of
          a row.
"""

from __future__ import annotations

import os
import signal
import socket
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tangere.fleet.columns import arrow
from tangere.fleet.kinds.job_kind import FAILED, JobKind
from tangere.fleet.part_store import JobTools
from tangere.fleet.shard_files import claim_path, write_shard
from tangere.fleet.time_limit import JobTimeOut, time_limit
from tangere.runtime import InputError, TangereError

_LONGEST = 500  #: characters of an error or note
_CLAIM = 16  #: characters of the number in a claim


@dataclass(frozen=True)
class ShardTask:
    """The jobs of a shard, as they go to a worker."""

    folder: Path
    number: int
    digest: str
    kind: JobKind
    jobs: list[int]
    rows: list[dict[str, Any]]
    labels: tuple[tuple[str, Any], ...]  #: names and Arrow types
    files: Mapping[str, str]  #: digest by path
    units: str | None
    given_up: Mapping[int, tuple[str, str]]  #: status and reason, by job, of those that are not tried again
    seconds_per_job: float | None
    device: str
    threads: int | None
    asked_by: tuple[str, int]  #: host and process


@dataclass(frozen=True)
class ShardDone:
    """What a worker tells of a shard whose file it has written."""

    number: int
    counts: dict[str, int]  #: of jobs by status
    seconds: float
    process_seconds: float  #: of the whole worker, while it did the shard
    worker: str


def do_shard(task: ShardTask, *, here: bool = False) -> ShardDone:
    """Do the jobs of a shard and write its file.

    Args:
        here: in the process that asked, which must not be ended.
    """
    begin, spent = time.perf_counter(), time.process_time()
    if not (task.folder / "unfinished").is_dir():
        raise InputError(f"{task.folder}: is not there on {socket.gethostname()}: all workers must share the folder")
    if not here and task.asked_by == whoami():
        raise InputError("executor: jobs need workers in processes of their own, or None: here, one after the other")
    arrow().scalar(0.0)  # pyarrow loads pandas, where that is, at its first value: no matter of the first job
    schema = task.kind.schema([arrow().field(*label) for label in task.labels])
    tools = JobTools(task.folder, task.files, task.units, task.device, task.threads)
    claim = os.open(claim_path(task.folder, task.number), os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o666)
    try:
        os.lseek(claim, _CLAIM, os.SEEK_SET)  # where the watchdog writes
        rows = []
        for job, row in zip(task.jobs, task.rows, strict=True):
            os.pwrite(claim, f"{job:<{_CLAIM}}".encode(), 0)
            labels = {name: row.pop(name, None) for name, _ in task.labels}
            told = _failed(*task.given_up[job]) if job in task.given_up else _answer(task, row, tools, claim, here)
            rows.append({"job": job, **labels, **{name: _encodable(value) for name, value in told.items()}})
    finally:
        os.close(claim)
    write_shard(task.folder, task.number, rows, schema, task.digest)
    claim_path(task.folder, task.number).unlink(missing_ok=True)
    statuses = [row["status"] for row in rows]
    counts = {status: statuses.count(status) for status in dict.fromkeys(statuses)}
    return ShardDone(
        task.number, counts, time.perf_counter() - begin, time.process_time() - spent, "{}:{}".format(*whoami())
    )


def whoami() -> tuple[str, int]:
    """Host and process."""
    return socket.gethostname(), os.getpid()


def claimed(folder: Path, number: int) -> tuple[int, bool] | None:
    """The job at which the worker of a shard ended, and whether the watchdog ended it; None where it had not begun."""
    try:
        text = claim_path(folder, number).read_bytes()
        return int(text[:_CLAIM]), b"Timeout" in text[_CLAIM:]
    except (OSError, ValueError):
        return None


def _answer(task: ShardTask, row: dict[str, Any], tools: JobTools, claim: int, here: bool) -> dict[str, Any]:
    row.pop("cost", None)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", UserWarning)
        try:
            with time_limit(task.seconds_per_job, None if here else claim):
                found = task.kind.answer(row, tools)
        except JobTimeOut:
            return _failed("timeout", f"took more than {task.seconds_per_job:g} s")
        except (Exception, SystemExit) as error:
            if isinstance(error, OSError) and error.errno in (28, 122):  # the disk, or a quota, is full
                raise InputError(f"{task.folder}: cannot be written: {error.strerror}") from error
            return _failed("error", _reason(error))
    status = found.get("status")
    if not isinstance(status, str) or status in FAILED:
        return _failed("error", f"status must be a word of your own, not {status!r}")
    notes = [found.pop("note", "")] + [str(each.message) for each in heard if issubclass(each.category, UserWarning)]
    note = "; ".join(note for note in dict.fromkeys(notes) if note)
    return {**found, "note": note[:_LONGEST] or None}


def _failed(status: str, reason: str) -> dict[str, Any]:
    return {"status": status, "error": reason}


def _reason(error: BaseException) -> str:
    text = " ".join(str(error).split())
    told = text if isinstance(error, TangereError) and text else f"{type(error).__name__}: {text}"
    return told[:_LONGEST]


def _encodable(value: Any) -> Any:
    """A text as a file can hold it: names of files may have bytes that are no text."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def ignore_interrupts() -> None:
    """Ctrl-C is for who asked, who ends the workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
