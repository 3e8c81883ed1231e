"""Worker pools: who does the shards. Here, in processes of ours, by an executor of the caller's, or by actors on Ray.

Question: who is free, who has done what, who has died over which shard?
Method:   a pool takes a shard for each free worker and tells what has ended. Workers of ours and actors take one
          shard at a time, so that a death is known to be of that shard. A pool that breaks takes all its shards with
          it: they are told as broken, and who asked tries them one at a time.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from types import ModuleType
from typing import Any

from tangere.fleet.worker import ShardDone, ShardTask, do_shard, ignore_interrupts
from tangere.runtime import InputError

#: Shards that an executor is given at once where it does not say how many workers it has.
_UNKNOWN = 64


@dataclass(frozen=True)
class Ended:
    """A shard that is done, or that a worker has died over."""

    number: int
    done: ShardDone | None = None
    death: str = ""  #: how the worker ended
    alone: bool = True  #: whether no other shard can have been the reason


class WorkerPool(ABC):
    """Workers that take shards."""

    @property
    @abstractmethod
    def free(self) -> int:
        """How many shards it can take now."""

    @abstractmethod
    def submit(self, task: ShardTask) -> None:
        """Take a shard."""

    @abstractmethod
    def wait(self, seconds: float) -> list[Ended]:
        """What has ended, waiting so long at most; raises what a worker could not answer by a row."""

    @abstractmethod
    def close(self, *, at_once: bool) -> None:
        """End the workers; at once means in the middle of shards."""


class Here(WorkerPool):
    """This process: one shard after the other."""

    def __init__(self) -> None:
        self._ended: list[Ended] = []

    @property
    def free(self) -> int:
        """One at a time."""
        return 0 if self._ended else 1

    def submit(self, task: ShardTask) -> None:
        """Do it, now."""
        self._ended.append(Ended(task.number, do_shard(task, here=True)))

    def wait(self, seconds: float) -> list[Ended]:
        """What was done."""
        ended, self._ended = self._ended, []
        return ended

    def close(self, *, at_once: bool) -> None:
        """There is nothing to end."""


@dataclass(eq=False)
class _Seat:
    """A process of ours, our end of the pipe to it, and its shard."""

    process: Any
    pipe: Connection
    number: int | None = None


class Processes(WorkerPool):
    """So many processes of ours; each that dies is replaced.

    Args:
        script: whether they need the script that runs, because jobs are answered by a function in it. It is then
            executed once more by each of them, as is the way of `multiprocessing`.
    """

    def __init__(self, workers: int, *, script: bool) -> None:
        self._script = script
        self._context = get_context("spawn")  # threads of kernels do not survive a fork
        self._seats = [self._seat() for _ in range(workers)]

    def _seat(self) -> _Seat:
        mine, theirs = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(theirs, os.getpid()), daemon=True)
        with nullcontext() if self._script else _no_script():
            process.start()
        theirs.close()
        return _Seat(process, mine)

    @property
    def free(self) -> int:
        """Processes without a shard."""
        return sum(seat.number is None for seat in self._seats)

    def submit(self, task: ShardTask) -> None:
        """To the first that is free."""
        place = next(place for place, seat in enumerate(self._seats) if seat.number is None)
        seat = self._seats[place]
        with suppress(BrokenPipeError, ConnectionResetError):  # it has died since: who waits is told
            seat.pipe.send((place, task))
        seat.number = task.number

    def wait(self, seconds: float) -> list[Ended]:
        """Shards that are done, and those of processes that have died."""
        busy = {seat.pipe: place for place, seat in enumerate(self._seats) if seat.number is not None}
        ended = []
        for pipe in wait_for(list(busy), seconds):
            place = busy[pipe]
            seat = self._seats[place]
            number = seat.number
            assert number is not None
            try:
                told = seat.pipe.recv()
            except (EOFError, ConnectionResetError):
                seat.process.join()
                ended.append(Ended(number, death=_how(seat.process.exitcode)))
                self._seats[place] = self._seat()
                continue
            seat.number = None
            ended.append(Ended(number, _or_raised(told)))
        return ended

    def close(self, *, at_once: bool) -> None:
        """Workers end when nobody can ask them any more."""
        for seat in self._seats:
            seat.pipe.close()
            if at_once or seat.number is not None:
                seat.process.kill()
        for seat in self._seats:
            seat.process.join(5.0)
            if seat.process.is_alive():
                seat.process.kill()
                seat.process.join()


@contextmanager
def _no_script() -> Iterator[None]:
    """A process that is started inside does not execute the script that runs."""
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


def _serve(pipe: Connection, asked_by: int) -> None:
    """The life of a process of ours."""
    ignore_interrupts()
    threading.Thread(target=_end_with, args=(asked_by,), daemon=True).start()
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):  # nobody asks any more, or reads what was answered
        while True:
            pipe.send(_answered(pipe.recv_bytes()))


def _answered(sent: bytes) -> ShardDone | Exception:
    """Do what was sent: the number of the worker, and a shard."""
    try:
        place, task = pickle.loads(sent)
    except Exception as error:  # what was sent is of modules that cannot be imported here
        return not_importable(error)
    return attempt(task, place)


def not_importable(error: BaseException) -> InputError:
    """What to tell of a task that a worker cannot read."""
    reason = (str(error).strip() or type(error).__name__).splitlines()[-1]
    return InputError(f"workers cannot take the jobs, whose function they must be able to import: {reason}")


def _end_with(process: int) -> None:
    """End this process when the one that started it has ended, whatever became of it."""
    while os.getppid() == process:
        time.sleep(0.5)
    os._exit(1)


def attempt(task: ShardTask, place: int = 0) -> ShardDone | Exception:
    """Do a shard; what cannot be answered by rows is returned, so that every pool tells it alike.

    Args:
        place: number of the worker; workers on one machine share out its cards.
    """
    try:
        return do_shard(_on_card(task, place))
    except Exception as error:
        return error


def _on_card(task: ShardTask, place: int) -> ShardTask:
    if task.device != "cuda":
        return task
    import warp as wp

    return replace(task, device=f"cuda:{place % max(1, wp.get_cuda_device_count())}")


def _or_raised(told: ShardDone | Exception) -> ShardDone:
    if isinstance(told, Exception):
        raise told
    return told


def _how(code: int | None) -> str:
    """How a process ended."""
    if code is not None and code < 0:
        return f"its process was ended by {signal.Signals(-code).name}"
    return f"its process ended with code {code}"


class ExecutorPool(WorkerPool):
    """An executor of the caller's; a process pool that breaks is replaced by one like it."""

    def __init__(self, executor: Executor) -> None:
        self._executor, self._own = executor, False
        self._workers = getattr(executor, "_max_workers", None) or _UNKNOWN
        self._futures: dict[Future[Any], int] = {}

    @property
    def free(self) -> int:
        """As many as it has workers."""
        return self._workers - len(self._futures)

    def submit(self, task: ShardTask) -> None:
        """To the executor."""
        place = len(self._futures)
        try:
            future = self._executor.submit(attempt, task, place)
        except BrokenExecutor:
            self._replace()
            future = self._executor.submit(attempt, task, place)
        self._futures[future] = task.number

    def wait(self, seconds: float) -> list[Ended]:
        """Shards that are done; all of them if the pool has broken."""
        ready, _ = wait(self._futures, timeout=seconds, return_when=FIRST_COMPLETED)
        alone, ended, broken = len(self._futures) == 1, [], ""
        for future in ready:
            number = self._futures.pop(future)
            try:
                ended.append(Ended(number, _or_raised(future.result())))
            except BrokenExecutor as error:
                broken = str(error) or type(error).__name__
                ended.append(Ended(number, death=broken, alone=alone))
        if broken:
            ended += [Ended(number, death=broken, alone=False) for number in self._futures.values()]
            self._futures.clear()
            self._replace()
        return ended

    def _replace(self) -> None:
        old = self._executor
        if not isinstance(old, ProcessPoolExecutor):
            return
        old.shutdown(wait=False, cancel_futures=True)
        self._executor, self._own = ProcessPoolExecutor(self._workers, mp_context=get_context("spawn")), True

    def close(self, *, at_once: bool) -> None:
        """An executor of the caller's goes on; ours ends."""
        for future in self._futures:
            future.cancel()
        if self._own:
            self._executor.shutdown(wait=not at_once, cancel_futures=True)
