"""Actors on Ray: a worker each, on whichever machine has a core, or a share of a card, for it.

Actors and not tasks: Ray ends the process of a task that has used a card, and kernels and parts would be loaded anew
for each shard. An actor is given a shard once it has started, so that one which waits for a core keeps none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tangere.fleet.worker import ShardDone, ShardTask
from tangere.fleet.worker_pools import Ended, WorkerPool, attempt, not_importable
from tangere.runtime import InputError, needs_extra, whole


@dataclass(frozen=True)
class RayCluster:
    """Workers on Ray.

    Args:
        address: of a cluster that runs: "auto", "host:6379", "ray://host:10001"; "local" starts one here. None means
            the one this program is connected to, or that RAY_ADDRESS names, or else "local".
        workers: how many; None means one for each core of the cluster, or as many as its cards have room for.
    """

    address: str | None = None
    workers: int | None = None

    def __post_init__(self) -> None:
        if self.workers is not None:
            whole(self.workers, "workers", 1)


class ShardActor:
    """A worker on Ray."""

    def ready(self) -> bool:
        """Whether it has started."""
        return True

    def do(self, task: ShardTask) -> ShardDone | Exception:
        """Do a shard."""
        return attempt(task)


class RayPool(WorkerPool):
    """Actors of a cluster; each that dies is replaced."""

    def __init__(self, cluster: RayCluster, device: str, cards_per_worker: float) -> None:
        with needs_extra("ray", "fleet"):
            import ray  # pyright: ignore[reportMissingImports]
        self._ray, self._started = ray, False
        if not ray.is_initialized():
            self._connect(cluster.address)
        elif cluster.address not in (None, "auto"):
            raise InputError(f"this program is connected to Ray already, so not to {cluster.address!r}")
        needed, per = ("GPU", cards_per_worker) if device == "cuda" else ("CPU", 1.0)
        room = int(ray.cluster_resources().get(needed, 0.0) / per + 1e-9)
        if room < 1:
            self.close(at_once=True)
            raise InputError(f"Ray has no {'card' if needed == 'GPU' else 'core'} for a worker")
        cards = {"num_gpus": cards_per_worker} if device == "cuda" else {}
        self._actor = ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0, **cards)(ShardActor)
        self._actors: dict[Any, Any] = {}  # what an actor was asked last -> the actor
        self._numbers: dict[Any, int] = {}  # … -> the shard
        self._idle: list[Any] = []
        for _ in range(cluster.workers or room):
            self._hire()

    def _connect(self, address: str | None) -> None:
        try:
            self._ray.init(address, include_dashboard=None, log_to_driver=False, logging_level="ERROR")
        except Exception as error:  # ConnectionError, ValueError, RuntimeError … of its own
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise InputError(f"Ray at {address or 'local'!r} cannot be reached: {reason}") from error
        self._started = True

    def _hire(self) -> None:
        actor = self._actor.remote()
        self._actors[actor.ready.remote()] = actor

    @property
    def free(self) -> int:
        """Actors that have started and have no shard."""
        return len(self._idle)

    def submit(self, task: ShardTask) -> None:
        """To one that is free."""
        actor = self._idle.pop()
        asked = actor.do.remote(task)
        self._actors[asked], self._numbers[asked] = actor, task.number

    def wait(self, seconds: float) -> list[Ended]:
        """Shards that are done, and those of actors that have died; actors that have started become free."""
        ready, _ = self._ray.wait(list(self._actors), num_returns=1, timeout=seconds)
        ended = []
        for asked in ready:
            actor, number = self._actors.pop(asked), self._numbers.pop(asked, None)
            try:
                told = self._ray.get(asked)
            except self._ray.exceptions.RayTaskError as error:
                raise not_importable(error.cause or error) from error
            except self._ray.exceptions.RayError as error:
                death = " ".join(str(error).split())[:200] or type(error).__name__
                if number is None:
                    raise InputError(f"Ray cannot start a worker: {death}") from error
                ended.append(Ended(number, death=death))
                self._ray.kill(actor)
                self._hire()
                continue
            if isinstance(told, Exception):
                raise told
            self._idle.append(actor)
            if number is not None:
                ended.append(Ended(number, told))
        return ended

    def close(self, *, at_once: bool) -> None:
        """End the actors, and Ray if it was started here."""
        for actor in [*getattr(self, "_idle", []), *getattr(self, "_actors", {}).values()]:
            self._ray.kill(actor)
        if self._started:
            self._ray.shutdown()
            self._started = False
