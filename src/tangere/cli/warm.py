"""`tangere warm`: every kernel of the main road compiled in one go, so that nobody waits for one later."""

from __future__ import annotations

import time

import click


@click.command()
@click.option("--device", help="cpu, cuda, cuda:0 …; default: the CPU and, if present, CUDA.")
def warm(device: str | None) -> None:
    """Compile all kernels now: some minutes once, and a first use of anything waits for nothing afterwards.

    What is compiled stays on disk, for this user and this version of Warp; WARP_CACHE_PATH says where.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from tangere.cli.shared.kernels import compilations, compiled_files, warm_devices
    from tangere.cli.shared.tables import screen_table

    console = Console()
    devices = warm_devices(device)
    before = compiled_files()
    seconds: dict[str, float] = {}
    units = compilations(devices)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("kernels", total=len(units))
        for room, what, work in units:
            progress.update(task, description=f"{room}: {what}")
            begin = time.perf_counter()
            work()
            seconds[room] = seconds.get(room, 0.0) + time.perf_counter() - begin
            progress.advance(task)
    new = len(compiled_files() - before)
    where = " and ".join(place.alias for place in devices)
    if not new:
        console.print(
            f"everything is there: no kernel had to be compiled for {where}",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )
        return
    rows = [[room, f"{taken:.1f} s"] for room, taken in seconds.items()]
    rows.append(["all", f"{sum(seconds.values()):.1f} s"])
    console.print(f"{new} modules of kernels compiled for {where}", highlight=False, markup=False, soft_wrap=True)
    console.print(screen_table("", ["room", "time"], rows))
