"""`tangere bench`: how fast are the main queries on this machine?"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click

from tangere.cli.shared.json_text import json_text
from tangere.cli.shared.options import machine_options

_SIZES = (1_000, 10_000, 100_000, 1_000_000)
_KINDS = ("vertex_face", "edge_edge")


class Work(NamedTuple):
    """Something to measure: `items` of `unit` are done by one `run`."""

    name: str
    items: int
    unit: str
    run: Callable[[], Any]


class Measured(NamedTuple):
    """Median seconds of several runs, and what they come to per second."""

    name: str
    items: int
    unit: str
    seconds: float
    runs: int
    per_second: float


@click.command()
@click.option(
    "--seconds", default=60.0, show_default=True, type=click.FloatRange(min=0.0), help="Time to spend, about."
)
@click.option("--json", "as_json", is_flag=True, help="Print machine-readable JSON.")
@click.option("--png", type=click.Path(path_type=Path), help="Also plot queries per second over batch size.")
@machine_options
def bench(seconds: float, as_json: bool, png: Path | None, threads: int | None, device: str | None) -> None:
    """Measure batches of primitive queries and three moving scenes on this machine, in about a minute."""
    from rich.console import Console

    from tangere.cli.shared.extras import check_view_extra
    from tangere.cli.shared.showcase import cases
    from tangere.cli.shared.tables import quantity, screen_table
    from tangere.runtime import check_out_file, choose_device, thread_count, using_threads

    check_out_file(png, "--png", ".png")
    check_view_extra(matplotlib=png is not None)
    target = choose_device(device)
    with using_threads(threads), Console(stderr=True).status("") as status:
        machine = {"device": target.name, "threads": thread_count()}
        share = seconds / (len(_KINDS) * len(_SIZES) + len(cases()))
        measured = []
        for work in _works(device):
            status.update(f"{work.name}, {work.items} {work.unit}")
            measured.append(_measure(work, share))
    if png is not None:
        _plot(png, measured, f"{machine['device']}, {machine['threads']} threads")
    if as_json:
        click.echo(json_text({**machine, "results": [row._asdict() for row in measured]}))
        return
    rows = [
        [row.name, f"{row.items} {row.unit}", f"{row.seconds:.3g}", str(row.runs), f"{quantity(row.per_second)}/s"]
        for row in measured
    ]
    title = f"{machine['device']}, {machine['threads']} threads"
    Console().print(screen_table(title, ["query", "size", "seconds", "runs", "rate"], rows))


def _works(device: str | None) -> Iterator[Work]:
    """One after the other, so that only one batch is in memory."""
    import tangere as tg
    from tangere import query
    from tangere.cli.shared.showcase import cases, random_batch

    for kind in _KINDS:
        for size in _SIZES:
            run = partial(getattr(query, kind), *random_batch(size), device=device)
            yield Work(kind.replace("_", "-"), size, "queries", run)
    for case in cases():
        name = f"first contact: {case.name}"
        yield Work(name, case.triangles, "triangles", lambda case=case: tg.first_contact(*case.anew(), device=device))


def _measure(work: Work, budget: float) -> Measured:
    work.run()  # Compiles kernels and makes buffers, once.
    end = time.perf_counter() + budget
    seconds = []
    while not seconds or (time.perf_counter() + seconds[-1] < end and len(seconds) < 1000):
        start = time.perf_counter()
        work.run()
        seconds.append(time.perf_counter() - start)
    median = statistics.median(seconds)
    return Measured(work.name, work.items, work.unit, median, len(seconds), work.items / median)


def _plot(path: Path, measured: list[Measured], title: str) -> None:
    from tangere.view import plot_lines

    names = [kind.replace("_", "-") for kind in _KINDS]
    batches = {name: [row for row in measured if row.name == name] for name in names}
    series = {name: ([row.items for row in rows], [row.per_second for row in rows]) for name, rows in batches.items()}
    plot_lines(path, series, title=title, x_label="queries in a batch", y_label="queries per second", logarithmic=True)
