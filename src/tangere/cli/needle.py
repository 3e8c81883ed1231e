"""`tangere needle`: a needle into a liver, a brain, a solid of your own, or until it meets itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tangere.cli.shared.options import machine_options

if TYPE_CHECKING:
    from tangere.needle import Recording
    from tangere.needle.scenarios import Insertion

_SCENES = ("liver", "brain", "self")
#: Frames that are kept of a simulated second.
_FRAMES = 30


@click.command()
@click.argument("scene")
@click.option("--mesh", type=click.Path(path_type=Path), help="Tetrahedra of your own instead: .msh, .vtu, .mesh, …")
@click.option("--trace", type=click.Path(path_type=Path), help="How to drive it: a .csv file of time, speed, spin.")
@click.option("--save-trace", type=click.Path(path_type=Path), help="Write how it was driven, to be replayed.")
@click.option(
    "--mode",
    type=click.Choice(["soft", "hard"]),
    help="Push no tissue, and go through cells that are fine around the tip: late steps are counted (soft), or cells"
    " left for later (hard); default: push the tissue.",
)
@click.option("--record", type=click.Path(path_type=Path), help="Write the run there, to be shown again.")
@click.option("--out", type=click.Path(path_type=Path), help="Write the run as .glb, .usd, .pvd, .mp4, .gif, …")
@click.option("--png", type=click.Path(path_type=Path), help="Write a picture of where the tip is deepest.")
@click.option("--plot", type=click.Path(path_type=Path), help="Write a plot of the force, in and out.")
@click.option("--view", "look", is_flag=True, help="Show the run in the browser, until Ctrl-C.")
@machine_options
def needle(
    scene: str,
    mesh: Path | None,
    trace: Path | None,
    save_trace: Path | None,
    mode: str | None,
    record: Path | None,
    out: Path | None,
    png: Path | None,
    plot: Path | None,
    look: bool,
    threads: int | None,
    device: str | None,
) -> None:
    """Drive a needle into SCENE: liver, brain or self; or show a run again: the .npz file that --record wrote.

    \b
    tangere needle liver --plot force.png --png liver.png
    tangere needle brain --record brain.npz --view
    tangere needle self --out self.gif
    tangere needle liver --mesh organ.vtu --trace hand.csv
    """
    from tangere.cli.shared.extras import check_view_extra
    from tangere.needle import Recording
    from tangere.needle.scenarios import Trace
    from tangere.runtime import InputError, check_out_file, using_threads
    from tangere.scene.export import check_export_file

    for path, option, ending in (
        (png, "--png", ".png"),
        (plot, "--plot", ".png"),
        (record, "--record", ".npz"),
        (save_trace, "--save-trace", ".csv"),
    ):
        check_out_file(path, option, ending)
    if out is not None:
        check_export_file(out)
    check_view_extra(pillow=png is not None, matplotlib=plot is not None, viser=look)
    replayed = Path(scene).suffix == ".npz"
    if not replayed and scene not in _SCENES:
        raise InputError(f"{scene}: a scene is {', '.join(_SCENES)}, or a .npz file that --record wrote")
    if plot is not None and not replayed and (mode is not None or scene == "self"):
        raise InputError("--plot: a needle that pushes no tissue feels no force that could be drawn")
    if replayed:
        made = {"--mesh": mesh, "--trace": trace, "--save-trace": save_trace, "--mode": mode, "--record": record}
        unused = next((option for option, value in made.items() if value is not None), None)
        if unused is not None:
            raise InputError(f"{unused}: a recorded run is shown as it is")
        if not (out or png or plot or look):
            raise InputError(f"{scene}: say what to do with a recorded run: --view, --out, --png or --plot FILE")
        _write(Recording.load(scene), None, out, png, plot, look, device)
        return
    driven = None if trace is None else Trace.load(trace)
    with using_threads(threads):
        insertion = _insertion(scene, mesh, mode, device, threads)
        along = driven or insertion.trace
        if save_trace is not None:
            along.save(save_trace)
            click.echo(f"wrote {save_trace}")
        recording = _run(insertion, along, keep=any((record, out, png, plot, look)))
        if recording is not None:
            _write(recording, record, out, png, plot, look, device)


def _insertion(scene: str, mesh: Path | None, mode: str | None, device: str | None, threads: int | None) -> Insertion:
    from tangere.needle import scenarios
    from tangere.runtime import InputError
    from tangere.shape.tets import TetMesh

    options: dict[str, Any] = {"mode": mode, "device": device, "threads": threads}
    if mesh is None:
        return scenarios.SCENES[scene](**options)
    if scene == "self":
        raise InputError("--mesh: the scene self has cells of its own")
    return scenarios.own(TetMesh.load(mesh), **options)


def _run(insertion: Insertion, trace: Any, *, keep: bool) -> Recording | None:
    """Drive the needle, with a bar and a table; frames of it, if they are wanted."""
    import time

    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress

    from tangere.cli.shared.tables import screen_table
    from tangere.needle import Recorder

    console, simulation, dt = Console(), insertion.simulation, insertion.dt
    recorder, every = Recorder(simulation), max(1, round(1.0 / _FRAMES / dt))
    measured: dict[str, list[float]] = {}
    taken: list[float] = []
    if keep:
        recorder(0.0)
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task(insertion.name, total=max(1, round(trace.seconds / dt)))
        began = time.perf_counter()

        def after(now: float) -> None:
            nonlocal began
            taken.append(time.perf_counter() - began)
            for name, value in simulation.measures.items():
                measured.setdefault(name, []).append(value)
            if keep and len(taken) % every == 0:
                recorder(now)
            elif keep:
                recorder.note()
            progress.advance(task)
            began = time.perf_counter()

        trace.run(simulation, dt=dt, after_step=after)
    title = f"{insertion.name}: {trace.seconds:g} s in {len(taken)} steps"
    rows = [[escape(name), value] for name, value in _rows(simulation, measured, taken)]
    console.print(screen_table(title, ["", "value"], rows))
    return recorder.recording() if keep else None


def _rows(simulation: Any, measured: dict[str, list[float]], taken: list[float]) -> list[list[str]]:
    import numpy as np

    rows = [["deepest [mm]", f"{1e3 * max(measured['depth']):.2f}"]]
    if "force" in measured:
        rows += [["largest force [N]", f"{max(measured['force']):.3f}"]]
        rows += [["smallest force [N]", f"{min(measured['force']):.3f}"]]
    rows += [["particles at the end", str(len(simulation.particles))]]
    contacts = simulation.contacts
    for name, body in (
        ("vessel or membrane", contacts.body_b > 0),
        ("part of the needle itself", contacts.body_b == 0),
    ):
        if body.any():
            rows += [[f"nearest {name} at the end [mm]", f"{1e3 * contacts.gap[body].min():.2f}"]]
    quantiles = 1e3 * np.quantile(taken[1:] or taken, [0.5, 0.99])
    rows += [["a step, median and p99 [ms]", f"{quantiles[0]:.2f}, {quantiles[1]:.2f}"]]
    report = getattr(simulation, "report", None)
    if report is not None:
        rows += [["cells split, merged", f"{report.split}, {report.merged}"], ["cells now", str(report.leaves)]]
        rows += [["late steps", str(report.overruns)], ["cells left for later, added up", str(report.postponed)]]
    return rows


def _write(
    recording: Recording,
    record: Path | None,
    out: Path | None,
    png: Path | None,
    plot: Path | None,
    look: bool,
    device: str | None,
) -> None:
    from tangere.cli.shared.page import open_page
    from tangere.view import picture

    deepest = float(recording.parts[int(recording.numbers("depth").argmax())])
    for path in (record, out):
        if path is not None:
            recording.save(path)
            click.echo(f"wrote {path}")
    if plot is not None:
        recording.plot(plot)
        click.echo(f"wrote {plot}")
    if png is not None:
        picture(recording.scene(), deepest, path=png, device=device)
        click.echo(f"wrote {png}")
    if look:
        open_page(recording.scene(), deepest)
