"""Runs: thousands of jobs on other processes and machines, each answered once, whatever happens to workers.

Question: the answers of all jobs, in a folder.
Method:   shards of about equal work are handed to whoever is free, the largest first. A shard's file appears whole or
          not at all, so a run that ends early goes on where it was: what is there is kept. A worker that dies is
          replaced and its shard done again; the job it was at is given up after some tries, by a row that says so.
Sound:    answers are read back from the files at the end. A job that raised, took too long, killed its workers or has
          no row is never free. Bits of the files do not depend on who did them, how many, in which order.
Known as: a bag of tasks with checkpoints.
"""

from __future__ import annotations

import pickle
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from os import PathLike
from typing import Any, Literal

from tangere.fleet.columns import FILES
from tangere.fleet.jobs import Jobs, Shard
from tangere.fleet.kinds.job_kind import FAILED
from tangere.fleet.ray_pool import RayCluster, RayPool
from tangere.fleet.report import FleetReport
from tangere.fleet.run_folder import RunFolder
from tangere.fleet.shard_files import claim_path, read_shard, shard_path
from tangere.fleet.worker import ShardTask, claimed, whoami
from tangere.fleet.worker_pools import Ended, ExecutorPool, Here, Processes, WorkerPool, not_importable
from tangere.runtime import InputError, TangereError, check_kind, described, positive, whole

_PATIENCE = 0.5  #: at most so long between two looks at Ctrl-C [s]


def run(
    jobs: Jobs,
    folder: str | PathLike[str],
    executor: Literal["ray"] | RayCluster | Executor | int | None = None,
    *,
    retries: int = 2,
    seconds_per_shard: float = 5.0,
    seconds_per_job: float | None = None,
    repeat_failed: bool = False,
    changed: Literal["refuse", "redo"] = "refuse",
    progress: Callable[[int, int], object] | bool = False,
    device: Literal["cpu", "cuda"] = "cpu",
    cards_per_worker: float = 1.0,
    threads: int | None = None,
) -> FleetReport:
    """Do all jobs whose answers are not in the folder yet.

    Args:
        jobs: what is asked.
        folder: where answers are kept, made if it is not there; all workers must see it under this name.
        executor: who does them: None means here, one after the other; a number means so many processes, started for
            it; "ray" or a `RayCluster` means actors on Ray; else an executor of processes (`concurrent.futures`).
        retries: how often a job is tried again over which a worker has died.
        seconds_per_shard: about how long the work between two files is [s]; a folder keeps what it began with.
        seconds_per_job: a job that takes longer is ended, and its answer is "timeout". Here, without an executor, a job
            that does not leave a native call cannot be ended.
        repeat_failed: do shards again in which jobs have failed before.
        changed: what to do where shards in the folder are of other jobs, or files have changed since: "refuse", or
            "redo" these shards.
        progress: True shows a bar on stderr; a function is called with (jobs done, jobs in all).
        device: "cpu", or "cuda", with a share of a card for each worker.
        cards_per_worker: that share, for Ray: 0.5 means two workers on a card. Processes take cards in turn.
        threads: CPU threads of a worker; None means all here, without an executor, and else one.
    """
    check_kind(jobs, Jobs, "jobs")
    whole(retries, "retries")
    positive(seconds_per_shard, "seconds_per_shard")
    if seconds_per_job is not None:
        positive(seconds_per_job, "seconds_per_job")
        if executor is None and threading.current_thread() is not threading.main_thread():
            raise InputError("seconds_per_job goes with an executor, or with the main thread")
    if changed not in ("refuse", "redo"):
        raise InputError(f"changed must be 'refuse' or 'redo', not {described(changed)}")
    if device not in ("cpu", "cuda"):
        raise InputError(f"device must be 'cpu' or 'cuda', not {described(device)}: workers choose the card")
    positive(cards_per_worker, "cards_per_worker")
    if threads is not None:
        whole(threads, "threads", 1)
    hire = _pool(executor, device, cards_per_worker, jobs.kind.in_script)
    if isinstance(executor, Executor | int):
        _check_sent(jobs)
    place = RunFolder(folder)
    with place.held(), _reported(progress, jobs.kind.name) as report:
        begin = time.perf_counter()
        shards, digests = _asked(place, jobs, seconds_per_shard, device, changed)
        kept, damaged = _there(place, shards, digests, repeat_failed)
        todo = [shard for shard in shards if shard.number not in kept]
        spent = _RunningShards(place, jobs, shards, digests, retries, report)
        spent.settings = {
            "seconds_per_job": seconds_per_job,
            "device": device,
            "threads": threads if threads is not None or executor is None else 1,
        }
        spent.jobs_done = sum(len(shards[number].jobs) for number in kept)
        place.log("begin", jobs=len(jobs), shards=len(shards), kept=len(kept), damaged=len(damaged))
        if todo:
            spent.do(todo, hire)
        place.log("end", seconds=time.perf_counter() - begin)
        told = place.manifest()
        assert told is not None
        return FleetReport.read(
            place,
            told,
            done=sum(len(shard.jobs) for shard in todo),
            kept=sum(len(shards[number].jobs) for number in kept),
            damaged=len(damaged),
            deaths=spent.deaths,
            seconds=time.perf_counter() - begin,
            workers=dict(spent.workers),
        )


def _pool(executor: Any, device: str, cards_per_worker: float, in_script: bool) -> Callable[[], WorkerPool]:
    if executor is None:
        return Here
    if executor == "ray":
        executor = RayCluster()
    if isinstance(executor, RayCluster):
        return lambda: RayPool(executor, device, cards_per_worker)
    if isinstance(executor, int) and not isinstance(executor, bool):
        whole(executor, "executor", 1)
        return lambda: Processes(executor, script=in_script)
    if isinstance(executor, Executor):
        return lambda: ExecutorPool(executor)
    raise InputError(f"executor must be None, a number of processes, 'ray' or an Executor, not {described(executor)}")


def _check_sent(jobs: Jobs) -> None:
    """Raise unless a function of the caller's can be sent to other processes."""
    try:
        pickle.dumps(jobs.kind)
    except Exception as error:  # PicklingError, AttributeError, TypeError …
        raise not_importable(error) from error


def _asked(place: RunFolder, jobs: Jobs, seconds: float, device: str, changed: str) -> tuple[list[Shard], list[str]]:
    """The shards, and what each is of; raises where answers in the folder are of something else."""
    before = place.manifest()
    if before is None and any((place.path / "shards").iterdir()):
        raise InputError(f"{place.path}: has shards but no fleet.json that says what they are of")
    if before is not None and changed == "refuse":
        seconds = float(before["seconds_per_shard"])
    shards = jobs.shards(seconds)
    digests = [jobs.digest(shard, device) for shard in shards]
    if before is None or digests != before["shards"]:
        if before is not None and changed == "refuse":
            differ = sum(a != b for a, b in zip(digests, before["shards"], strict=False))
            differ += abs(len(digests) - len(before["shards"]))
            raise InputError(
                f"{place.path}: the jobs, their files, the device or tangere have changed since: {differ} of"
                f" {max(len(digests), len(before['shards']))} shards are of something else; take another folder,"
                " or changed='redo' to do these again"
            )
        place.ask(jobs, shards, digests, seconds, device)
    return shards, digests


def _there(place: RunFolder, shards: list[Shard], digests: list[str], repeat_failed: bool) -> tuple[set[int], set[int]]:
    """Shards whose answers are in the folder, and those whose files are damaged."""
    kept, damaged = set(), set()
    for shard, digest in zip(shards, digests, strict=True):
        if not shard_path(place.path, shard.number).exists():
            continue
        found = read_shard(place.path, shard.number)
        if found is None or found[1] != digest or found[0]["job"].to_pylist() != shard.jobs.tolist():
            damaged.add(shard.number)
        elif not (repeat_failed and set(found[0]["status"].to_pylist()) & set(FAILED)):
            kept.add(shard.number)
    return kept, damaged


class _RunningShards:
    """The shards of a run on their way."""

    settings: dict[str, Any]

    def __init__(
        self,
        place: RunFolder,
        jobs: Jobs,
        shards: list[Shard],
        digests: list[str],
        retries: int,
        report: Callable[[int, int], object],
    ) -> None:
        self.place, self.jobs, self.shards, self.digests = place, jobs, shards, digests
        self.retries, self.report = retries, report
        self.jobs_done = self.deaths = 0
        self.workers: Counter[str] = Counter()
        self._tried: Counter[int] = Counter()  # by job: workers that died over it
        self._begun: Counter[int] = Counter()  # by shard: workers that died before they began
        self._given_up: dict[int, tuple[str, str]] = {}
        schema = jobs.table.schema
        self._labels = tuple((name, schema.field(name).type) for name in jobs.labels)

    def do(self, todo: list[Shard], hire: Callable[[], WorkerPool]) -> None:
        """Do these shards, the largest first."""
        waiting = deque(shard.number for shard in sorted(todo, key=lambda shard: (-shard.cost, shard.number)))
        suspects: deque[int] = deque()  # of which one has broken a pool: each is tried alone
        running, alone = set[int](), set[int]()
        self.report(self.jobs_done, len(self.jobs))
        pool = hire()
        ended_well = False
        try:
            while waiting or suspects or running:
                while pool.free and (suspects or waiting) and not (running & alone or (suspects and running)):
                    number = suspects[0] if suspects else waiting.popleft()
                    if suspects:
                        alone.add(suspects.popleft())
                    pool.submit(self._task(number))
                    running.add(number)
                for ended in pool.wait(_PATIENCE):
                    running.discard(ended.number)
                    if ended.done is not None:
                        self._note(ended)
                    elif ended.alone:
                        self._blame(ended)
                        waiting.appendleft(ended.number)
                    else:
                        self.deaths += 1
                        self.place.log("broken", shard=ended.number, how=ended.death)
                        suspects.append(ended.number)
            ended_well = True
        finally:
            if not ended_well:
                self.place.log("interrupted", shards_left=len(waiting) + len(suspects) + len(running))
            pool.close(at_once=not ended_well)

    def _task(self, number: int) -> ShardTask:
        shard, files = self.shards[number], {}
        rows = self.jobs.rows(shard.jobs)
        columns = [name for name, column in self.jobs.kind.columns.items() if column.kind in FILES]
        for row in rows:
            for name in columns:
                value = row.get(name)
                for path in [value] if isinstance(value, str) else value or ():
                    files[path] = self.jobs.stamps[path].digest
        return ShardTask(
            self.place.path,
            number,
            self.digests[number],
            self.jobs.kind,
            shard.jobs.tolist(),
            rows,
            self._labels,
            files,
            self.jobs.units,
            {job: why for job, why in self._given_up.items() if job in set(shard.jobs.tolist())},
            asked_by=whoami(),
            **self.settings,
        )

    def _note(self, ended: Ended) -> None:
        done = ended.done
        assert done is not None
        self.workers[done.worker] += done.process_seconds
        self.jobs_done += len(self.shards[ended.number].jobs)
        self.place.log("shard", shard=ended.number, seconds=done.seconds, worker=done.worker, counts=done.counts)
        self.report(self.jobs_done, len(self.jobs))

    def _blame(self, ended: Ended) -> None:
        """A worker died over a shard: the job it was at may be the reason."""
        at = claimed(self.place.path, ended.number)
        claim_path(self.place.path, ended.number).unlink(missing_ok=True)
        self.deaths += 1
        self.place.log("death", shard=ended.number, how=ended.death, job=None if at is None else at[0])
        if at is None:
            self._begun[ended.number] += 1
            if self._begun[ended.number] > self.retries:
                raise TangereError(
                    f"workers end before they begin: {ended.death}; a script with the function of its jobs in it must"
                    " call run below if __name__ == '__main__'"
                )
            return
        job, by_watchdog = at
        if by_watchdog:
            limit = self.settings["seconds_per_job"]
            self._given_up[job] = "timeout", f"took more than {limit:g} s, in a call that had to be ended"
            return
        self._tried[job] += 1
        if self._tried[job] > self.retries:
            self._given_up[job] = "lost", f"{ended.death}, {self._tried[job]} times"


@contextmanager
def _reported(progress: Callable[[int, int], object] | bool, name: str) -> Iterator[Callable[[int, int], object]]:
    """What hears of progress."""
    if progress is not True:
        yield progress or (lambda done, count: None)
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn

    columns = (*Progress.get_default_columns(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(f"{name} jobs")
        yield lambda done, count: bars.update(task, completed=done, total=count)
