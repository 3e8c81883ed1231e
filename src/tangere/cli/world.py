"""`tangere world`: rigid bodies that fall, slide, bounce and never pass through; to watch, to record, to draw."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tangere.cli.shared.options import machine_options, width_option

if TYPE_CHECKING:
    from tangere.cli.shared.simulation_runs import PhaseTimes
    from tangere.dynamics import Recorder, World

_FILES = (".toml", ".json", ".urdf", ".npz")


@click.command()
@click.argument("scene")
@click.option(
    "--steps", type=click.IntRange(min=1), help="How many; default: what the scene says; with --view endless."
)
@click.option("--seconds", type=float, help="How long instead [s].")
@click.option("--dt", type=float, help="Length of a step [s]; default: what the scene says.")
@click.option("--meshes", type=click.Path(path_type=Path), help="Folder of the meshes that a file names.")
@click.option("--allow-overlaps", is_flag=True, help="Do not compare bodies that overlap at the start.")
@click.option("--record", type=click.Path(path_type=Path), help="Write every frame there (.npz), to be replayed.")
@click.option("--out", type=click.Path(path_type=Path), help="Write the run as .glb, .usd, .pvd, .mp4, .gif, …")
@click.option("--png", type=click.Path(path_type=Path), help="Write a strip of pictures.")
@click.option("--plot", type=click.Path(path_type=Path), help="Write a plot of the energy over time (.png).")
@click.option("--json", "as_json", is_flag=True, help="Print machine-readable JSON.")
@click.option("--view", "look", is_flag=True, help="Watch it live in the browser, and pull at it, until Ctrl-C.")
@width_option(360, "picture")
@machine_options
def world(
    scene: str,
    steps: int | None,
    seconds: float | None,
    dt: float | None,
    meshes: Path | None,
    allow_overlaps: bool,
    record: Path | None,
    out: Path | None,
    png: Path | None,
    plot: Path | None,
    as_json: bool,
    look: bool,
    width: int,
    threads: int | None,
    device: str | None,
) -> None:
    """Run SCENE: a scene.toml, a Rigid-IPC .json or a .urdf file, or a ready one: arch, barrels, body, bolt, cards,
    chain, cradle, door, motor, pile, pylon, robot, stack; or replay one: the .npz file that --record wrote.

    \b
    tangere world arch --png arch.png --record arch.npz
    tangere world scene.toml --seconds 2 --out run.glb
    tangere world pile --view
    tangere world arch.npz --view
    """
    from tangere.cli.shared.extras import check_view_extra
    from tangere.cli.shared.simulation_runs import replay_file
    from tangere.runtime import InputError, check_out_file
    from tangere.scene.export import check_export_file

    check_out_file(png, "--png", ".png")
    check_out_file(plot, "--plot", ".png")
    check_out_file(record, "--record", ".npz")
    if out is not None:
        check_export_file(out)
    check_view_extra(pillow=png is not None, matplotlib=plot is not None, viser=look)
    if steps is not None and seconds is not None:
        raise InputError("--steps and --seconds: one of them is enough")
    if Path(scene).suffix.lower() == ".npz":
        given = {"--steps": steps, "--seconds": seconds, "--dt": dt, "--meshes": meshes, "--record": record}
        given |= {"--plot": plot, "--json": as_json or None, "--allow-overlaps": allow_overlaps or None}
        unused = next((option for option, value in given.items() if value is not None), None)
        if unused is not None:
            raise InputError(f"{unused}: a recorded run is replayed as it is")
        from tangere.dynamics import Recording

        replay_file(Recording.load(scene), Path(scene), out, png, look, width, device)
        return
    if look and steps is None and seconds is None and any((record, out, png, plot)):
        raise InputError("--view with --record, --out, --png or --plot: say how long, --steps or --seconds")
    if look and as_json:
        raise InputError("--view and --json: somebody looks, or a program reads")
    options: dict[str, Any] = {} if dt is None else {"dt": dt}
    options |= {"allowed": "overlapping"} if allow_overlaps else {}
    made, told = _world(scene, meshes, options, threads, device)
    count = _count(made, steps, seconds, told, look, scene)
    _run(made, scene, count, record, out, png, plot, as_json, look, width)


def _world(
    scene: str, meshes: Path | None, options: dict[str, Any], threads: int | None, device: str | None
) -> tuple[World, int | None]:
    """The world asked for, and how many steps show all that happens in it."""
    from tangere.dynamics import World
    from tangere.dynamics.scenes import SCENES
    from tangere.runtime import InputError

    options = {**options, "threads": threads, "device": device}
    if Path(scene).suffix.lower() in _FILES:
        made = World.load(scene, meshes=meshes, **options)
        return made, made.steps_told
    if scene not in SCENES:
        raise InputError(f"{scene}: a scene is {', '.join(SCENES)}, or a file that ends in {', '.join(_FILES)}")
    if meshes is not None:
        raise InputError(f"--meshes: {scene} has meshes of its own")
    make, told = SCENES[scene]
    return make(**options), told


def _count(
    made: World, steps: int | None, seconds: float | None, told: int | None, look: bool, scene: str
) -> int | None:
    """Steps to make; None is endless."""
    from tangere.runtime import InputError, positive

    if seconds is not None:
        return max(1, round(positive(seconds, "--seconds") / made.dt))
    if steps is not None or look:
        return steps
    if told is None:
        raise InputError(f"{scene}: does not say how long it runs; say it with --steps or --seconds")
    return told


def _run(
    made: World,
    name: str,
    steps: int | None,
    record: Path | None,
    out: Path | None,
    png: Path | None,
    plot: Path | None,
    as_json: bool,
    look: bool,
    width: int,
) -> None:
    """Run so many steps, or, while somebody looks, until the page is closed (None)."""
    from rich.console import Console

    from tangere.cli.shared.json_text import json_text
    from tangere.cli.shared.simulation_runs import PhaseTimes, run_steps, shown_steps
    from tangere.dynamics import Recorder

    console = Console(stderr=as_json)
    recorder = Recorder(made)
    saved = [path for path in (record, out) if path is not None]
    shown = shown_steps(steps)
    phases = PhaseTimes()
    course: list[tuple[float, float, float, int]] = []  # time, kinetic and gravitational energy, contacts

    def keep() -> None:
        energy = made.energy
        course.append((made.time, energy.kinetic, energy.gravitational, len(made.contacts)))
        phases.add(made.timings)
        if saved or (png is not None and made.steps in shown):
            recorder()

    keep()
    viewer = None
    if look:
        from tangere.view import WorldViewer

        viewer = partial(WorldViewer, made)
    run_steps(console, name, steps, made.step, keep, viewer)
    if as_json:
        click.echo(json_text(_as_data(made, phases, course)))
    else:
        _print(console, made, phases, course)
    _write(console, recorder, saved, png, width, made)
    if plot is not None:
        _plot(course, name, plot)
        console.print(f"wrote {plot}", highlight=False, markup=False, soft_wrap=True)


def _print(console: Any, made: World, phases: PhaseTimes, course: list[tuple[Any, ...]]) -> None:
    contacts = [row[3] for row in course]
    title = f"{made!r}; contacts: {sum(contacts) / len(contacts):.0f} on average, {max(contacts)} at most"
    phases.print(console, title)
    told = made.truncation
    lines = [f"at most {max(abs(made.velocities[:, :3]).max(initial=0.0), 0.0):.3g} m/s at the end"]
    lines.append(f"{int(made.asleep.sum())} of {sum(body.moves for body in made.bodies)} asleep")
    lines.append(f"held back: {told.all_bodies} bodies, {told.all_lost_time:.3g} s in all")
    console.print("; ".join(lines), highlight=False, markup=False, soft_wrap=True)


def _as_data(made: World, phases: PhaseTimes, course: list[tuple[Any, ...]]) -> dict[str, Any]:
    from tangere.cli.shared.simulation_runs import COLUMNS

    told = made.truncation
    return {
        "steps": made.steps,
        "dt": made.dt,
        "time": made.time,
        "bodies": [
            {
                "name": body.name,
                "pose": body.pose.tolist(),
                "velocity": body.velocity.tolist(),
                "spin": body.spin.tolist(),
            }
            for body in made
        ],
        "joints": made.coordinates,
        "contacts": len(made.contacts),
        "energy": {"kinetic": made.energy.kinetic, "gravitational": made.energy.gravitational},
        "asleep": int(made.asleep.sum()),
        "truncation": {
            "bodies": told.all_bodies,
            "lost_time": told.all_lost_time,
            "solved_again": told.all_solved_again,
            "overlapping": [list(pair) for pair in told.overlapping],
        },
        "milliseconds": {phase: dict(zip(COLUMNS, row, strict=True)) for phase, row in phases.milliseconds().items()},
        "course": [dict(zip(("time", "kinetic", "gravitational", "contacts"), row, strict=True)) for row in course],
    }


def _write(console: Any, recorder: Recorder, saved: list[Path], png: Path | None, width: int, made: World) -> None:
    from tangere.cli.shared.simulation_runs import draw_strip

    if not saved and png is None:
        return
    recording = recorder.recording()
    for path in saved:
        recording.save(path)
        console.print(f"wrote {path}", highlight=False, markup=False, soft_wrap=True)
    if png is not None:
        draw_strip(recording, png, width, str(made.device))
        console.print(f"wrote {png}", highlight=False, markup=False, soft_wrap=True)


def _plot(course: list[tuple[Any, ...]], name: str, path: Path) -> None:
    from tangere.view import plot_lines

    times, kinetic, gravitational, _ = zip(*course, strict=True)
    lowest = min(gravitational)
    above = [value - lowest for value in gravitational]
    total = [a + b for a, b in zip(kinetic, above, strict=True)]
    series = {"kinetic": (times, kinetic), "gravitational, above its lowest": (times, above), "total": (times, total)}
    plot_lines(path, series, title=f"{name}: energy", x_label="time [s]", y_label="energy [J]")
