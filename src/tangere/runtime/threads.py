"""How many CPU threads a launch may use: an argument, else TANGERE_THREADS, else every core this process may run on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from numbers import Integral
from typing import Any, Concatenate, ParamSpec, TypeVar

from tangere.runtime.errors import InputError

_P, _R = ParamSpec("_P"), TypeVar("_R")

_chosen: ContextVar[int | None] = ContextVar("tangere_threads", default=None)


def thread_count() -> int:
    """The number of threads a sharded launch uses here and now."""
    chosen = _chosen.get()
    if chosen is not None:
        return chosen
    text = os.environ.get("TANGERE_THREADS")
    if text is None:
        return core_count()
    if not text.isdigit() or int(text) < 1:
        raise InputError(f"TANGERE_THREADS must be a positive whole number, not {text!r}")
    return int(text)


def core_count() -> int:
    """The number of cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def using_threads(count: int | None) -> Iterator[None]:
    """Every launch inside uses `count` CPU threads; None leaves things as they are."""
    if count is None:
        yield
        return
    if isinstance(count, bool) or not isinstance(count, Integral) or count < 1:
        raise InputError(f"threads must be a positive whole number, not {count!r}")
    token = _chosen.set(int(count))
    try:
        yield
    finally:
        _chosen.reset(token)


def on_own_threads(method: Callable[Concatenate[Any, _P], _R]) -> Callable[Concatenate[Any, _P], _R]:
    """A method whose launches use as many CPU threads as its object was given (`self.threads`; None: as they are)."""

    @wraps(method)
    def on_threads_of_self(self: Any, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        with using_threads(self.threads):
            return method(self, *args, **kwargs)

    return on_threads_of_self
