"""`tangere crowd`: scenarios of crowds and floor plans, with progress, measures, a picture and trajectories."""

from __future__ import annotations

import math
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
import numpy as np

from tangere.cli.shared.options import machine_options, out_folder_option

_PLANS = (".wkt", ".geojson", ".json", ".dxf")
_BEHAVIOURS = ["bubbles", "orca", "speed", "force"]
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


class _SceneOrPlan(click.ParamType):
    """The name of a scenario, or a file with a floor plan."""

    name = "scenario"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return "SCENARIO|PLAN"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if Path(value).suffix in _PLANS:
            return value
        return click.Choice(_SCENES).convert(value, param, ctx)


@click.command()
@click.argument("scenario", type=_SceneOrPlan())
@click.option(
    "--points", "--agents", type=click.IntRange(min=1), default=500, show_default=True, help="Point agents, or people."
)
@click.option(
    "--exits",
    multiple=True,
    help="Of a plan: x0,y0,x1,y1 of a box [m], WKT, or a file of WKT or GeoJSON; of a building STOREY: before it."
    " May be given again.",
)
@click.option("--stay", is_flag=True, help="Of a plan: who has no way stays; else he is told, and nobody goes.")
@click.option(
    "--bodies",
    type=click.IntRange(min=0),
    help="Agents with a shape; default: 50, snakes 2, in the city and in space none.",
)
@click.option("--seconds", type=click.FloatRange(0.1, 1e6), default=20.0, show_default=True, help="Simulated time.")
@click.option(
    "--behaviour",
    type=click.Choice(_BEHAVIOURS),
    help="Default: bubbles, on a plan speed (collision-free speed model).",
)
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True)
@out_folder_option
@click.option(
    "--save",
    type=click.Choice(["npz", "csv", "parquet", "sqlite", "glb", "usd", "usda", "usdc", "pvd", "vtu", "gif", "mp4"]),
    help="Also write the trajectories (csv and parquet: of points), or the scene of them.",
)
@click.option("--video", is_flag=True, help="Also write a video; of a plan seen from above.")
@click.option("--view", "look", is_flag=True, help="Watch it in the browser from the start, and on after SECONDS.")
@machine_options
def crowd(
    scenario: str,
    points: int,
    exits: tuple[str, ...],
    stay: bool,
    bodies: int | None,
    seconds: float,
    behaviour: str | None,
    seed: int,
    out: Path,
    save: str | None,
    video: bool,
    look: bool,
    threads: int | None,
    device: str | None,
) -> None:
    """Run a crowd; leaves SCENARIO.png and SCENARIO-measures.png in the folder OUT.

    A PLAN is a file .wkt, .geojson, .dxf or .json, also of a building: people anywhere on it leave by the nearest of
    the EXITS, for SECONDS or until it is empty; leaves PLAN.png with trails and density, and PLAN-n-t.png, who has left
    when.

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
    from tangere.crowd import Bubbles, Orca, SocialForce, check_format, scenarios
    from tangere.runtime import InputError, using_threads
    from tangere.view import plot_measures

    rules = {"bubbles": Bubbles, "orca": Orca, "force": SocialForce}
    if not math.isfinite(seconds):
        raise InputError(f"--seconds must be a number, not {seconds}")
    if Path(scenario).suffix in _PLANS:
        if bodies is not None:
            raise InputError("--bodies: people on a floor plan have no other shape than a disc")
        rule = None if behaviour in (None, "speed") else rules[behaviour]()
        settings = {"behaviour": rule, "seed": seed, "device": device, "threads": threads}
        settings["no_way"] = "stay" if stay else "refuse"
        _run_plan(Path(scenario), exits, points, seconds, out, save, video, look, settings)
        return
    if stay:
        raise InputError(f"--stay: the scenario {scenario} is not a floor plan")
    if exits:
        raise InputError(f"--exits: the scenario {scenario} has none, a floor plan does")
    if behaviour in ("speed", "force"):
        raise InputError(f"--behaviour: {behaviour} is for floor plans")
    if save == "sqlite":
        raise InputError("--save: sqlite is for floor plans")
    if bodies is not None and scenario not in _SHAPED:
        raise InputError(f"--bodies: agents of the scenario {scenario} have no shape")
    if behaviour == "orca" and scenario == "swarm":
        raise InputError("--behaviour: orca is planar, and the swarm is in space")
    if save is not None:
        check_format(f".{save}")
    check_view_extra(matplotlib=True, viser=look)
    make_out_folder(out)
    console = Console()
    given = {} if bodies is None else {_SHAPED[scenario]: bodies}
    rule = rules[behaviour or "bubbles"]()
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
        if video:
            written.append(out / f"{scenario}.mp4")
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


def _run_plan(
    path: Path,
    exits: tuple[str, ...],
    people: int,
    seconds: float,
    out: Path,
    save: str | None,
    video: bool,
    look: bool,
    settings: dict[str, Any],
) -> None:
    """People on a floor plan: run, tell, draw."""
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress

    from tangere.cli.shared.extras import check_view_extra
    from tangere.cli.shared.output_folder import make_out_folder
    from tangere.cli.shared.tables import screen_table
    from tangere.crowd import FloorSimulation, load_plan
    from tangere.runtime import InputError
    from tangere.view import floor_video, floor_view, plot_lines, show

    if not exits:
        raise InputError("--exits: say where people leave, as x0,y0,x1,y1, WKT or a file")
    check_view_extra(matplotlib=True, viser=look)
    plan = load_plan(path)
    simulation = FloorSimulation(plan, dt=0.02, **settings)
    aims = [simulation.add_exit(_area(area), storey=storey) for storey, area in map(_on_storey, exits)]
    storeys = [sheet for sheet in plan.sheets if sheet.slope == (0.0, 0.0)]
    before = 0
    for sheet, share in zip(storeys, np.cumsum([s.polygon.area for s in storeys]), strict=True):
        count = round(people * share / sum(s.polygon.area for s in storeys)) - before
        if count:
            simulation.add_people(count, to=aims, storey=sheet.name or None)
        before += count
    simulation.prepare()  # who has no way is told here
    make_out_folder(out)
    console, name = Console(), path.stem
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task(name, total=None)
        shown: Any = lambda done, steps: progress.update(task, completed=done, total=steps)  # noqa: E731
        run = simulation.run(seconds, until="empty", record=0.2, progress=shown)
    written = [out / f"{name}.png", out / f"{name}-n-t.png"]
    if save is not None:
        written.append(out / f"{name}.{save}")
        run.save(written[-1])
    floor_view(run, written[0], density=1.0, trails=math.inf)
    left = np.sort(run.left[np.isfinite(run.left)])
    curve = {"left": (left.tolist(), list(range(1, len(left) + 1)))}
    labels = {"title": "Who has left when", "x_label": "time [s]", "y_label": "people who have left"}
    plot_lines(written[1], curve, marked=False, **labels)
    if video:
        written.append(out / f"{name}.mp4")
        floor_video(run, written[-1])
    rows = [
        ["people", str(people)],
        ["left", str(len(left))],
        ["the last one [s]", f"{left[-1]:.4g}" if len(left) else "nobody yet"],
        [
            "mean travel time [s]",
            f"{run.travel_times[np.isfinite(run.left)].mean():.4g}" if len(left) else "nobody yet",
        ],
        ["flow out [1/s]", f"{run.flow:.4g}"],
        ["densest square metre, mean over time [1/m²]", f"{np.nanmax(run.density(1.0)):.4g}"],
    ]
    rows += [["without a way", str(len(run.no_way))]] if len(run.no_way) else []
    rows += [[f"by {aim.name}", str(int((np.isfinite(run.left) & (run.exits == aim.number)).sum()))] for aim in aims]
    table = [[escape(told), escape(value)] for told, value in rows]
    console.print(screen_table(escape(repr(plan)), ["measure", "at the end"], table))
    console.print("wrote " + ", ".join(map(str, written)), highlight=False, markup=False, soft_wrap=True)
    if look:
        with show(run.scene(), block=False) as viewer:
            console.print(f"watch it at {viewer.url} (Ctrl-C ends)", highlight=False, markup=False, soft_wrap=True)
            viewer.wait()


def _on_storey(given: str) -> tuple[str | None, str]:
    """The name of a storey before a colon, and the rest."""
    storey, colon, area = given.partition(":")
    return (storey, area) if colon and "{" not in storey else (None, given)


def _area(given: str) -> Any:
    """A box as x0,y0,x1,y1, WKT or GeoJSON, or a file of either."""
    from tangere.crowd import FloorPlan
    from tangere.runtime import InputError

    if Path(given).suffix in _PLANS:
        return FloorPlan.load(given).polygon
    try:
        return FloorPlan.area_of(given)
    except InputError as error:
        raise InputError(f"--exits: {error}") from error


def _page(simulation):
    from tangere.view import CrowdViewer

    return CrowdViewer(simulation)


def _draw(simulation, path: Path, device: str | None) -> None:
    from tangere.view import picture, top_view

    if simulation.map.flat:
        top_view(simulation, path)
    else:
        picture(simulation.scene(), path=path, device=device)
