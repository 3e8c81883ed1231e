"""Measuring and reporting: interleaved timings, medians with their spread, ratio tables, Markdown pages with plots.

Everything compared is run in turns (ours, peer, ours, peer, ...), so that a noisy minute of the machine hits all alike.
A time is the median of the rounds; the spread beside it is the interquartile range.
"""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bench import machine
from bench.plots import Map, Plot

__all__ = ["Report", "SkippedError", "Timing", "count", "measure", "ratio", "seconds"]


class SkippedError(Exception):
    """A benchmark that cannot run here; the message says what it lacks."""


@dataclass(frozen=True)
class Timing:
    """The rounds of one thing measured [s], and what its last round returned."""

    rounds: tuple[float, ...]
    result: Any = None

    @property
    def median(self) -> float:
        return float(np.median(self.rounds))

    @property
    def spread(self) -> float:
        """Interquartile range [s]."""
        low, high = np.quantile(self.rounds, [0.25, 0.75])
        return float(high - low)

    def __str__(self) -> str:
        return f"{seconds(self.median)} ± {seconds(self.spread / 2)}"


def measure(
    contenders: Mapping[Any, Callable[[], Any]],
    *,
    rounds: int = 7,
    at_most: float = 60.0,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[Any, Timing]:
    """Time every contender `rounds` times, in turns, after one untimed round.

    Args:
        contenders: what to call, by name.
        rounds: how often; fewer, but at least 3, for a contender whose rounds so far took more than `at_most` seconds.
        clock: what is read before and after; `time.thread_time` where nobody uses a second thread.
    """
    for contender in contenders.values():
        contender()
    taken: dict[Any, list[float]] = {name: [] for name in contenders}
    results: dict[Any, Any] = {}
    for turn in range(rounds):
        for name, contender in contenders.items():
            if turn >= 3 and sum(taken[name]) > at_most:
                continue
            begin = clock()
            results[name] = contender()
            taken[name].append(clock() - begin)
    return {name: Timing(tuple(taken[name]), results[name]) for name in contenders}


@dataclass
class Report:
    """One page of docs/benchmarks/: the question, the machine, then tables, notes and plots in the order they came."""

    name: str
    docstring: str
    packages: list[str] = field(default_factory=list)  #: peers whose versions the page states
    _parts: list[str] = field(default_factory=list)
    _plots: dict[str, Plot | Map] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return self.docstring.strip().partition("\n")[0].rstrip(".")

    def section(self, heading: str) -> None:
        self._add(f"## {heading}")

    def note(self, text: str) -> None:
        """A paragraph; line breaks in the source do not count."""
        self._add(" ".join(inspect.cleandoc(text).split()))

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """A table whose cells are shown with `str`, except that None is a dash."""
        lines = [list(columns), ["---"] * len(columns)]
        lines += [["-" if cell is None else str(cell) for cell in row] for row in rows]
        self._add("\n".join(f"| {' | '.join(line)} |" for line in lines))

    def plot(self, key: str, plot: Plot | Map) -> None:
        """A picture, saved beside the page as NAME-KEY.svg."""
        self._plots[key] = plot
        self._add(f"![{plot.title}]({self.name}-{key}.svg)")

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        for key, plot in self._plots.items():
            plot.save(folder / f"{self.name}-{key}.svg")
        page = folder / f"{self.name}.md"
        page.write_text("\n\n".join([*self._head(), *self._parts]) + "\n")
        return page

    def _head(self) -> list[str]:
        question = inspect.cleandoc(self.docstring).strip().partition("\n")[2].strip()
        return [
            f"# {self.title}",
            *([question] if question else []),
            f"Measured by `python -m bench {self.name}` on {machine.description()}, with "
            f"{machine.versions(*self.packages)}. Times are medians ± half the interquartile range unless said "
            "otherwise; everything in one table was run in turns in the same process.",
        ]

    def _add(self, part: str) -> None:
        self._parts.append(part)
        print(f"\n{part}", flush=True)


def seconds(value: float) -> str:
    """A duration with three digits and a fitting unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= scale:
            return f"{_three_digits(value / scale)} {unit}"
    return f"{_three_digits(value / 1e-9)} ns"


def count(value: float) -> str:
    """A number with three digits and k, M or G."""
    for suffix, scale in ((" G", 1e9), (" M", 1e6), (" k", 1e3)):
        if value >= scale:
            return f"{_three_digits(value / scale)}{suffix}"
    return _three_digits(value)


def ratio(theirs: float, ours: float) -> str:
    """How many times longer theirs takes than ours."""
    return f"{_three_digits(theirs / ours)}x"


def _three_digits(value: float) -> str:
    if value == 0:
        return "0"
    return f"{value:,.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"
