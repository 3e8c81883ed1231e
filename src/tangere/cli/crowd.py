"""`tangere crowd`: the scenarios of crowds, with progress, measures, a picture and trajectories."""

from __future__ import annotations

import math
from contextlib import ExitStack
from pathlib import Path

import click

from tangere.cli.shared.options import machine_options, out_folder_option

_SCENES = ["corridor", "circle", "city", "snake", "planet", "knot", "potatoid", "swarm"]
#: Which scenarios have agents with a shape, and how the number of them is called there.
_SHAPED = {"corridor": "bodies", "circle": "bodies", "city": "bodies", "snake": "snakes"} | dict.fromkeys(
    ("planet", "knot", "potatoid"), "slugs"
)

#: What the measures of `Trajectories` are called in the table.
_MEASURES = {
    "stalling": "part that stands still on its way",
    "density": "others within range [1/{unit}]",
    "overlaps": "pairs that overlap",
    "deepest": "deepest of those [m]",
    "speed": "mean speed [m/s]",
    "cells": "cells of the map",
    "arrived": "points at their goal",
}


@click.command()
@click.argument("scenario", type=click.Choice(_SCENES))
@click.option("--points", type=click.IntRange(min=1), default=500, show_default=True, help="Point agents.")
@click.option(
    "--bodies",
    type=click.IntRange(min=0),
    help="Agents with a shape; default: 50, snakes 2, in the city and in space none.",
)
@click.option("--seconds", type=click.FloatRange(0.1, 1e6), default=20.0, show_default=True, help="Simulated time.")
@click.option("--behaviour", type=click.Choice(["bubbles", "orca"]), default="bubbles", show_default=True)
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True)
@out_folder_option
@click.option(
    "--save",
    type=click.Choice(["npz", "csv", "parquet", "glb", "usd", "usda", "usdc", "pvd", "vtu", "gif", "mp4"]),
    help="Also write the trajectories (csv and parquet: of points), or the scene of them.",
)
@click.option("--view", "look", is_flag=True, help="Watch it in the browser from the start, and on after SECONDS.")
@machine_options
def crowd(
    scenario: str,
    points: int,
    bodies: int | None,
    seconds: float,
    behaviour: str,
    seed: int,
    out: Path,
    save: str | None,
    look: bool,
    threads: int | None,
    device: str | None,
) -> None:
    """Run a crowd; leaves SCENARIO.png and SCENARIO-measures.png in the folder OUT.

    \b
    corridor  two groups swap sides while boxes cross their way
    circle    from a circle to the other side of it, through rings of boxes
    city      from one crossing to the next, around buildings
    snake     a dense crowd, crossed by chains of boxes
    planet, knot, potatoid   points and slugs on closed surfaces
    swarm     from a sphere in space through its middle
    """
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress

    from tangere.cli.shared.extras import check_view_extra
    from tangere.cli.shared.output_folder import make_out_folder
    from tangere.cli.shared.tables import screen_table
    from tangere.crowd import Bubbles, Orca, check_format, scenarios
    from tangere.runtime import InputError, using_threads
    from tangere.view import plot_measures

    if bodies is not None and scenario not in _SHAPED:
        raise InputError(f"--bodies: agents of the scenario {scenario} have no shape")
    if behaviour == "orca" and scenario == "swarm":
        raise InputError("--behaviour: orca is planar, and the swarm is in space")
    if not math.isfinite(seconds):
        raise InputError(f"--seconds must be a number, not {seconds}")
    if save is not None:
        check_format(f".{save}")
    check_view_extra(matplotlib=True, viser=look)
    make_out_folder(out)
    console = Console()
    given = {} if bodies is None else {_SHAPED[scenario]: bodies}
    rule = Orca() if behaviour == "orca" else Bubbles()
    with ExitStack() as stack:
        stack.enter_context(using_threads(threads))
        with console.status(f"preparing {scenario}"):
            simulation = getattr(scenarios, scenario)(points, behaviour=rule, seed=seed, device=device, **given)
        if look:
            viewer = stack.enter_context(_page(simulation))
            console.print(f"watch it at {viewer.url} (Ctrl-C ends)", highlight=False, markup=False, soft_wrap=True)
            result = viewer.record(seconds)
        else:
            viewer = None
            with Progress(console=console, transient=True) as progress:
                task = progress.add_task(scenario, total=None)

                def show(done: int, steps: int) -> None:
                    progress.update(task, completed=done, total=steps)

                result = simulation.run(seconds, progress=show)
        written = [out / f"{scenario}.png", out / f"{scenario}-measures.png"]
        if save is not None:  # before the pictures: what was computed stays, whatever becomes of them
            written.append(out / f"{scenario}.{save}")
            result.save(written[-1])
        _draw(simulation, written[0], device)
        plot_measures(result, written[1])
        last = {name: values[-1] for name, values in result.measures.items()}
        unit = "m²" if simulation.map.dimension == 2 else "m³"
        rows = [[escape(_MEASURES[name].format(unit=unit)), f"{value:.4g}"] for name, value in last.items()]
        travelled = "nobody is there yet" if math.isnan(result.travel_time) else f"{result.travel_time:.4g}"
        rows.append([escape("mean travel time of those [s]"), travelled])
        console.print(screen_table(f"{simulation!r}", ["measure", "at the end"], rows))
        console.print("wrote " + ", ".join(map(str, written)), highlight=False, markup=False, soft_wrap=True)
        if viewer is not None and not viewer.ended:
            viewer.run()


def _page(simulation):
    from tangere.view import CrowdViewer

    return CrowdViewer(simulation)


def _draw(simulation, path: Path, device: str | None) -> None:
    from tangere.view import picture, top_view

    if simulation.map.flat:
        top_view(simulation, path)
    else:
        picture(simulation.scene(), path=path, device=device)
