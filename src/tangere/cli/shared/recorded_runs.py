"""Recorded runs on the command line: a strip of pictures, and what is done with a file of one."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import click
import numpy as np

from tangere.runtime import InputError
from tangere.scene import Scene

STRIP = 5  #: pictures in a strip


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
