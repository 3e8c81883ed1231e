"""The folder of a run: what was asked, which shards there are, and whose run it is now.

| in the folder | |
|---|---|
| `fleet.json` | the question, the number of jobs, the digest of each shard |
| `jobs.parquet` | the jobs as they were asked, with the shard of each |
| `shards/` | the answers, a file for each shard |
| `parts/` | prepared meshes by their hash |
| `unfinished/` | files that are being written, and claims; emptied when a run begins |
| log.jsonl | what happened when: shards, workers, deaths |
| `lock` | held while a run goes on |
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from tangere.fleet.columns import arrow
from tangere.fleet.jobs import Jobs, Shard
from tangere.fleet.shard_files import shard_path
from tangere.fleet.worker import whoami
from tangere.runtime import InputError, described, writing

FORMAT, VERSION = "tangere fleet", 1


class RunFolder:
    """The folder of a run, made where it is not there."""

    def __init__(self, path: str | PathLike[str]) -> None:
        if not isinstance(path, str | PathLike):
            raise InputError(f"folder must be a path, not {described(path)}")
        self.path = Path(fspath(path)).resolve()

    @contextmanager
    def held(self) -> Iterator[None]:
        """This run's alone; a second one is refused. A process that ends gives it back."""
        with writing(self.path):
            for part in ("shards", "parts", "unfinished"):
                (self.path / part).mkdir(parents=True, exist_ok=True)
            lock = os.open(self.path / "lock", os.O_CREAT | os.O_RDWR, 0o666)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                holder = os.pread(lock, 200, 0).decode(errors="replace").strip() or "somebody"
                raise InputError(f"{self.path}: another run is going on in it, by {holder}") from error
            os.ftruncate(lock, 0)
            os.pwrite(lock, "process {1} on {0}".format(*whoami()).encode(), 0)
            with writing(self.path):
                for left in (self.path / "unfinished").iterdir():
                    left.unlink(missing_ok=True)
            yield
        finally:
            os.close(lock)

    def manifest(self) -> dict[str, Any] | None:
        """What was asked here before; None where nothing was."""
        path = self.path / "fleet.json"
        try:
            told = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise InputError(f"{path}: cannot be read: {error}") from error
        if not isinstance(told, dict) or told.get("format") != FORMAT:
            raise InputError(f"{path}: is not of a fleet of ours")
        if told.get("version") != VERSION:
            raise InputError(f"{path}: has version {told.get('version')!r}, and this tangere reads {VERSION}")
        return told

    def ask(self, jobs: Jobs, shards: Sequence[Shard], digests: Sequence[str], seconds: float, device: str) -> None:
        """Keep what is asked; files of shards that are of other jobs are removed."""
        pa = arrow()
        before = self.manifest()
        for number, digest in enumerate(before["shards"] if before else ()):
            if number >= len(digests) or digests[number] != digest:
                shard_path(self.path, number).unlink(missing_ok=True)
        numbers = [0] * len(jobs)
        for shard in shards:
            for job in shard.jobs.tolist():
                numbers[job] = shard.number
        names = [name for name in jobs.table.column_names if name not in ("job", "shard")]
        table = pa.table({"job": range(len(jobs)), "shard": numbers} | {name: jobs.table[name] for name in names})
        told = {
            "format": FORMAT,
            "version": VERSION,
            "question": jobs.kind.name,
            "fine": list(jobs.kind.fine),
            "jobs": len(jobs),
            "labels": list(jobs.labels),
            "settings": jobs.settings,
            "units": jobs.units,
            "device": device,
            "seconds_per_shard": seconds,
            "shards": list(digests),
        }
        with writing(self.path):
            own = self.path / "unfinished" / "jobs.parquet"
            pa.parquet.write_table(table, own, compression="zstd")
            os.replace(own, self.path / "jobs.parquet")
            own = self.path / "unfinished" / "fleet.json"
            own.write_text(json.dumps(told, indent=1, default=str), encoding="utf-8")
            os.replace(own, self.path / "fleet.json")

    def log(self, event: str, **told: Any) -> None:
        """Note what happened; a log that cannot be written stops nobody."""
        line = json.dumps({"at": round(time.time(), 3), "event": event, **told}, default=str)
        with suppress(OSError), (self.path / "log.jsonl").open("a", encoding="utf-8") as file:
            file.write(line + "\n")
