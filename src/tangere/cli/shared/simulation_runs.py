"""Runs of simulations on the command line: a bar or a live page on the way, how long the phases of a step took, a strip
of pictures, and what is done with the file of one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import click
import numpy as np

from tangere.runtime import InputError
from tangere.scene import Scene

STRIP = 5  #: pictures in a strip
#: What is told of the times of a phase, in the order of `milliseconds`.
COLUMNS = ("mean", "median", "p99", "slowest")


class RecordedRun(Protocol):
    """What recordings of soft bodies and of rigid worlds have in common."""

    def __len__(self) -> int: ...

    @property
    def seconds(self) -> float: ...

    @property
    def parts(self) -> np.ndarray: ...

    def contact_points(self, time: float) -> np.ndarray: ...

    def scene(self) -> Scene: ...

    def save(self, path: Path) -> None: ...


def shown_steps(steps: int | None) -> set[int]:
    """Which of so many steps are in the strip."""
    return set(np.linspace(0, steps or 0, STRIP).round().astype(int).tolist())


def draw_strip(recording: RecordedRun, path: Path, width: int, device: str | None) -> None:
    """Write a strip of pictures of `width` pixels each."""
    from tangere.view import strip

    frames = np.unique(np.linspace(0, len(recording) - 1, STRIP).round().astype(int))
    times = recording.parts[frames].tolist()
    labels = [f"{time * recording.seconds:.2f} s, {len(recording.contact_points(time))} contacts" for time in times]
    strip(recording.scene(), times, labels=labels, size=(width, width), path=path, device=device)


def replay_file(
    recording: RecordedRun, file: Path, out: Path | None, png: Path | None, look: bool, width: int, device: str | None
) -> None:
    """Export, draw and show the run of a file, as options say."""
    from tangere.view import ReplayViewer

    if out is None and png is None and not look:
        raise InputError(f"{file}: say what to do with a recorded run: --view, --out FILE or --png FILE")
    if out is not None:
        recording.save(out)
        click.echo(f"wrote {out}")
    if png is not None:
        draw_strip(recording, png, width, device)
        click.echo(f"wrote {png}")
    if look:
        with ReplayViewer(recording) as viewer:
            click.echo(f"{viewer.url} replays {file.name}; Ctrl-C ends", err=True)
            viewer.wait()


class PhaseTimes:
    """Seconds of each phase, step by step."""

    def __init__(self) -> None:
        self._taken: dict[str, list[float]] = {}

    def add(self, timings: dict[str, float]) -> None:
        """What the phases of one step took [s]."""
        for phase, taken in timings.items():
            self._taken.setdefault(phase, []).append(taken)

    def milliseconds(self) -> dict[str, tuple[float, ...]]:
        """`COLUMNS` of each phase, and of the whole step, without the first one, which compiles."""
        table = {name: 1e3 * np.array(taken[1:] or taken) for name, taken in self._taken.items()}
        if table:
            table["whole step"] = np.sum(list(table.values()), axis=0)
        return {
            name: (float(t.mean()), float(np.median(t)), float(np.percentile(t, 99)), float(t.max()))
            for name, t in table.items()
        }

    def print(self, console: Any, title: str) -> None:
        """The table on the screen; nothing if there was no step."""
        from tangere.cli.shared.tables import screen_table

        rows = [[name, *(f"{value:.2f} ms" for value in row)] for name, row in self.milliseconds().items()]
        if rows:
            console.print(screen_table(title, ["phase", *COLUMNS], rows))


def run_steps(
    console: Any,
    name: str,
    steps: int | None,
    step: Callable[[], object],
    keep: Callable[[], None],
    viewer: Callable[[], Any] | None,
) -> None:
    """Make so many steps and call `keep` after each; while somebody looks, until the page is closed where it is None.

    Args:
        viewer: makes the live page; None: a bar instead.
    """
    from rich.progress import Progress

    if viewer is not None:
        with viewer() as page:
            click.echo(f"{page.url} shows {name}; Ctrl-C ends", err=True)
            page.run(steps, after_step=keep)
        return
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task(name, total=steps)
        for _ in range(steps or 0):
            step()
            keep()
            progress.advance(task)
