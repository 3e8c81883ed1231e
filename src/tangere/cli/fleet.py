"""`tangere fleet`: thousands of clash, check or crowd jobs from a table, on all cores or on a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tangere.cli.shared.json_text import json_text
from tangere.cli.shared.options import units_option

if TYPE_CHECKING:
    from tangere.fleet import FleetReport

_ROWS = 20  #: jobs listed on the screen; --json lists all that need a look
_INTERRUPTED = 130  #: exit code after Ctrl-C


def _run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """What all kinds of jobs are run with."""
    file, folder = click.Path(path_type=Path), click.Path(path_type=Path, file_okay=False)
    options = [
        click.argument("jobs", type=file, required=False),
        click.option("--columns", is_flag=True, help="Say which columns JOBS may have, and end."),
        click.option("--out", type=folder, default=Path("fleet"), show_default=True, help="Folder of the answers."),
        click.option("--base", type=folder, help="Where relative names of files start; default: the folder of JOBS."),
        units_option,
        click.option("--label", "labels", multiple=True, help="A column of your own to keep; may be repeated."),
        click.option("--workers", type=click.IntRange(min=1), help="Processes, or actors; default: one a core."),
        click.option("--ray", metavar="ADDRESS", help="On Ray: auto, local, HOST:PORT or ray://HOST:PORT."),
        click.option("--retries", type=click.IntRange(min=0), default=2, show_default=True, help="After deaths."),
        click.option("--seconds-per-shard", default=5.0, show_default=True, help="Work between two files [s]."),
        click.option("--seconds-per-job", type=float, help="A job that takes longer is ended and told [s]."),
        click.option("--repeat-failed", is_flag=True, help="Try jobs again that have failed before."),
        click.option("--redo-changed", is_flag=True, help="Do jobs again that have changed since."),
        click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True),
        click.option("--cards-per-worker", default=1.0, show_default=True, help="With --ray, cuda."),
        click.option("--table", type=file, help="Also write jobs and answers as one .parquet or .csv file."),
        click.option("--json", "as_json", is_flag=True, help="Print machine-readable JSON."),
        click.pass_context,
    ]
    for option in reversed(options):
        command = option(command)
    return command


@click.group()
def fleet() -> None:
    """Do thousands of jobs, each a row of a .parquet or .csv file, on all cores or on a Ray cluster.

    A run that is interrupted goes on where it was when it is started again; what is done is not done twice.

    \b
    tangere fleet clash jobs.parquet --out clashes --ray auto
    tangere fleet check jobs.parquet --workers 8 --seconds-per-job 60
    tangere fleet crowd jobs.csv --table answers.parquet
    tangere fleet report clashes
    Exit code: 0 all free or done, 1 contacts or clashes, 2 bad input, or a job without an answer.
    """


@fleet.command()
@_run_options
def clash(ctx: click.Context, **options: Any) -> None:
    """Do two parts, or the parts of an assembly, clash? A row of JOBS for each."""
    _run(ctx, "clash", **options)


@fleet.command()
@_run_options
def check(ctx: click.Context, **options: Any) -> None:
    """Does a part along its path, or a robot along its trajectory, touch anything? A row of JOBS for each."""
    _run(ctx, "check", **options)


@fleet.command()
@_run_options
def crowd(ctx: click.Context, **options: Any) -> None:
    """How does a crowd scenario, or an evacuation, go? A row of JOBS for each."""
    _run(ctx, "crowd", **options)


@fleet.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--table", type=click.Path(path_type=Path), help="Also write one .parquet or .csv file.")
@click.option("--json", "as_json", is_flag=True, help="Print machine-readable JSON.")
@click.pass_context
def report(ctx: click.Context, folder: Path, table: Path | None, as_json: bool) -> None:
    """What is in the FOLDER of a run, whether it has ended or not."""
    from tangere.fleet import FleetReport

    _check_table(table)
    _tell(ctx, FleetReport.load(folder), table, as_json)


def _run(
    ctx: click.Context,
    kind: str,
    jobs: Path | None,
    columns: bool,
    out: Path,
    base: Path | None,
    units: str | None,
    labels: tuple[str, ...],
    workers: int | None,
    ray: str | None,
    table: Path | None,
    as_json: bool,
    redo_changed: bool,
    **options: Any,
) -> None:
    from tangere.fleet import Jobs, RayCluster, run
    from tangere.runtime import thread_count

    if columns:
        _print_columns(kind)
        return
    if jobs is None:
        raise click.UsageError("Missing argument 'JOBS'; --columns says what is in it.")
    _check_table(table)
    asked = Jobs(kind, jobs, base=base, units=units, labels=labels)
    executor = RayCluster(ray, workers) if ray is not None else workers or min(thread_count(), len(asked))
    changed = "redo" if redo_changed else "refuse"
    try:
        found = run(asked, out, executor, changed=changed, progress=True, **options)
    except KeyboardInterrupt:
        click.echo(f"tangere: interrupted; what is done is in {out}: the same command goes on", err=True)
        ctx.exit(_INTERRUPTED)
    _tell(ctx, found, table, as_json)


def _check_table(path: Path | None) -> None:
    if path is not None:
        from tangere.runtime import check_out_file

        check_out_file(path, "--table", ".csv" if path.suffix.lower() == ".csv" else ".parquet")


def _tell(ctx: click.Context, found: FleetReport, table: Path | None, as_json: bool) -> None:
    """Print and write what was found; the exit code says the worst of it."""
    if table is not None:
        found.save(table)
        click.echo(f"wrote {table}", err=True)
    click.echo(json_text(_as_data(found))) if as_json else _print(found)
    ctx.exit(2 if found.failed else 1 if found.found else 0)


def _as_data(found: FleetReport) -> dict[str, Any]:
    """The report in the types of JSON."""
    return {
        "question": found.question,
        "folder": str(found.folder),
        "jobs": found.jobs,
        "counts": found.counts,
        "fine": found.fine,
        "found": found.found,
        "failed": found.failed,
        "done": found.done,
        "kept": found.kept,
        "damaged_shards": found.damaged,
        "deaths": found.deaths,
        "seconds": found.seconds,
        "look": found.to_look_at().to_pylist(),
    }


def _print(found: FleetReport) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from tangere.cli.shared.tables import screen_table

    console = Console()
    told = ", ".join(f"{count} {status}" for status, count in found.counts.items())
    told = f"[bold]{escape(told)}[/bold]   ({found.jobs} {escape(found.question)} jobs)"
    console.print(told, highlight=False, soft_wrap=True)
    rows = [["done now", str(found.done)], ["done before", str(found.kept)], ["shards", str(found.shards)]]
    if found.damaged:
        rows.append(["damaged shards, done again", str(found.damaged)])
    if found.deaths:
        rows.append(["workers that died", str(found.deaths)])
    if found.seconds:
        rows.append(["seconds", f"{found.seconds:.3g}"])
    console.print(screen_table(escape(str(found.folder)), ["jobs", ""], rows))
    look = found.to_look_at()
    if not len(look):
        return
    listed = Table("job", "status", "what")
    for row in look.slice(0, _ROWS).to_pylist():
        listed.add_row(str(row["job"]), row["status"], escape(_what(row)))
    console.print(listed)
    if len(look) > _ROWS:
        console.print(f"{len(look) - _ROWS} more, --json and --table list them", highlight=False)


def _what(row: dict[str, Any]) -> str:
    """The reason of a failure, or what touches what."""
    if row.get("error"):
        return str(row["error"])
    names = [str(row[name]) for name in ("part_a", "part_b", "body", "obstacle") if row.get(name)]
    parts = [" and ".join(names)] if names else []
    if row.get("time") is not None:
        parts.append(f"t = {row['time']:.6g}")
    if row.get("note"):
        parts.append(str(row["note"]))
    return "; ".join(parts)


def _print_columns(kind: str) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from tangere.fleet import job_columns

    table = Table("column", "holds", "for", title=f"columns of {kind} jobs", title_justify="left")
    for name, column in job_columns(kind).items():
        table.add_row(name, str(column.kind), escape(column.told))
    Console().print(table)
