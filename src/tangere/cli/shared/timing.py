"""How long something takes, once it is warm."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """The answer and the seconds of a second run: the first also compiles kernels, which happens once."""
    work()
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start
