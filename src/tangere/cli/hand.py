"""`tangere hand`: hold a part with a device, feel what it touches, see it in the browser."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tangere.cli.shared.options import width_option

if TYPE_CHECKING:
    from tangere.hand import Device, Hand, LedPart, LedTool
    from tangere.runtime.pacer import PacerReport

_FRAMES = 30.0  #: a second that are recorded
_PAGE = ("mouse", "keyboard", "gamepad")  #: devices of the page
_WAIT = 60.0  #: how long a driver may take to speak [s]
_PARTS, _TOOLS = ("lifter", "door", "pylon", "wheel", "peg"), ("press", "cut")  #: scenes of rigid parts, soft bodies
_SLOW = {"part": 200.0, "tool": 100.0}  #: rates of the slow loop [1/s]


@click.command()
@click.argument("scene", type=click.Choice([*_PARTS, *_TOOLS]))
@click.option(
    "--device",
    "held",
    default="mouse",
    show_default=True,
    help="mouse, keyboard or gamepad of the page; simulated; a trace .csv; spacemouse; udp:PORT.",
)
@click.option("--seconds", type=float, help="How long [s]; default: all of a trace, 6 simulated, else until Ctrl-C.")
@click.option("--real-time", "paced", is_flag=True, help="Simulated and traces: 1 kHz in a process of its own.")
@click.option("--hard", is_flag=True, help="Postpone recording where there is no time left; else overruns are counted.")
@click.option("--fifo/--no-fifo", default=True, help="Ask for SCHED_FIFO for the fast loop.")
@click.option("--trace", type=click.Path(path_type=Path), help="Write what the device told there (.csv).")
@click.option("--record", type=click.Path(path_type=Path), help="Write every frame there (.npz), to be replayed.")
@click.option("--out", type=click.Path(path_type=Path), help="Write the run as .glb, .usd, .pvd, .mp4, .gif, …")
@click.option("--png", type=click.Path(path_type=Path), help="Write a strip of pictures.")
@click.option("--view", "look", is_flag=True, help="Watch in the browser; devices of the page always do.")
@click.option("--stiffness", type=float, help="Of the coupling [N/m].")
@click.option(
    "--slow-rate", type=float, help="Of the slow loop [1/s], a part of 1000; default: 200, wheel 1000, soft bodies 100."
)
@width_option(360, "picture")
@click.option("--compute", help="cpu, cuda, cuda:0 …; default: CUDA if present, else the CPU.")
@click.option("--threads", type=click.IntRange(min=1), help="CPU threads of the slow loop; default: every core.")
def hand(
    scene: str,
    held: str,
    seconds: float | None,
    paced: bool,
    hard: bool,
    fifo: bool,
    trace: Path | None,
    record: Path | None,
    out: Path | None,
    png: Path | None,
    look: bool,
    stiffness: float | None,
    slow_rate: float | None,
    width: int,
    compute: str | None,
    threads: int | None,
) -> None:
    """Hold a part of SCENE: the motor of a window lifter, a car door, the part of a pylon, a finger on a wheel, a peg;
    or a tool among soft bodies: press, a ball on a block, and cut, a blade.

    \b
    tangere hand lifter                                  take it with the mouse, in the browser
    tangere hand lifter --device simulated --png out.png
    tangere hand wheel --device udp:5005 --view          a driver of your own (docs/devices.md)
    tangere hand pylon --device spacemouse --trace me.csv
    tangere hand pylon --device me.csv                   the same again, to the last bit
    tangere hand cut --device simulated --png cut.png    a blade in a block that it cuts
    """
    from rich.console import Console

    from tangere.cli.shared.extras import check_view_extra
    from tangere.runtime import InputError, check_out_file, positive
    from tangere.scene.export import check_export_file

    check_out_file(png, "--png", ".png")
    check_out_file(record, "--record", ".npz")
    check_out_file(trace, "--trace", ".csv")
    if out is not None:
        check_export_file(out)
    look = look or held in _PAGE
    check_view_extra(pillow=png is not None, viser=look)
    separate = paced or held.startswith("udp:") or held == "spacemouse"
    if paced and held in _PAGE:
        raise InputError(f"--real-time: the {held} of a page tells sixty times a second what it does")
    if trace is not None and separate:
        raise InputError("--trace: is written on the virtual clock, without --real-time, udp and spacemouse")
    if seconds is not None:
        positive(seconds, "--seconds")
    console = Console()
    made, options = _scene(scene, slow_rate, compute, threads)
    make = _device(held, made)
    if stiffness is not None:
        options["stiffness"] = stiffness
    if separate:
        holding = made.held_by(_Nothing(), **options)
    else:
        device = make()
        end = float(getattr(device, "end", made.way.wait + made.way.seconds + 1.8))
        if trace is not None:
            from tangere.hand import TraceRecorder

            device = TraceRecorder(device, trace)
        holding = made.held_by(device, **options)
        if seconds is None and held not in _PAGE:
            seconds = end
    recorder = _recorder(holding, made) if any((record, out, png)) else None
    if recorder is not None and seconds is None:
        raise InputError("--record, --out and --png: say how long, --seconds")
    if separate:
        reports = _run_separate(holding, make, seconds, look, recorder, hard, 10 if fifo else None, held)
    else:
        reports = _run_here(holding, seconds, look, recorder)
        holding.close()
    _print(console, holding, reports)
    _write(console, recorder, [path for path in (record, out) if path is not None], png, width, holding)
    if trace is not None:
        console.print(f"wrote {trace}", highlight=False, markup=False, soft_wrap=True)


def _scene(
    name: str, slow_rate: float | None, compute: str | None, threads: int | None
) -> tuple[LedPart | LedTool, dict[str, Any]]:
    """What is held, and options of the hand."""
    from tangere.hand import led_part, led_tool
    from tangere.runtime import positive

    if name in _PARTS:
        made = led_part(name, device=compute, threads=threads)
        rate = made.options.get("slow_rate", _SLOW["part"]) if slow_rate is None else positive(slow_rate, "--slow-rate")
        return made, {"slow_rate": rate, "threads": threads}
    rate = _SLOW["tool"] if slow_rate is None else positive(slow_rate, "--slow-rate")
    return led_tool(name, device=compute, threads=threads, dt=1.0 / rate), {}


def _recorder(holding: Hand, made: LedPart | LedTool) -> Any:
    """Keeps frames of a run."""
    from tangere.hand import HandRecorder, LedTool
    from tangere.soft import Recorder

    return Recorder(made.simulation) if isinstance(made, LedTool) else HandRecorder(holding)


class _Nothing:
    """Stands for a device that another process has."""

    measured_axes = forced_axes = (True,) * 6

    def read(self, time: float) -> Any:
        from tangere.hand import DeviceState

        return DeviceState()

    def write(self, force: Any, torque: Any) -> None:
        """Nobody feels it."""

    def close(self) -> None:
        """There is nothing to let go of."""


def _device(word: str, made: LedPart | LedTool) -> Any:
    """What gives the device that was asked for, here or in another process."""
    from tangere.hand import (
        GamepadDevice,
        KeyboardDevice,
        PointerDevice,
        SimulatedDevice,
        SpaceMouseDevice,
        TraceDevice,
    )
    from tangere.runtime import InputError

    kinds: dict[str, Any] = {
        "mouse": PointerDevice,
        "keyboard": KeyboardDevice,
        "gamepad": GamepadDevice,
        "simulated": partial(SimulatedDevice, made.way),
        "spacemouse": SpaceMouseDevice,
    }
    if word in kinds:
        return kinds[word]
    if word.startswith("udp:"):
        try:
            port = int(word.removeprefix("udp:"))
        except ValueError:
            raise InputError(f"--device: {word!r} has no number of a port") from None
        if not 0 < port < 65536:
            raise InputError(f"--device: a port is at least 1 and at most 65535, not {port}")
        return partial(waiting_driver, port)
    if word.lower().endswith(".csv"):
        return partial(TraceDevice, word)
    raise InputError(f"--device: {word!r} is not one of {', '.join(kinds)}, udp:PORT or a trace that ends in .csv")


def waiting_driver(port: int) -> Device:
    """A UDP device whose driver has spoken."""
    from tangere.hand import UdpDevice

    made = UdpDevice(port)
    made.wait(_WAIT)
    return made


def _run_here(holding: Hand, seconds: float | None, look: bool, recorder: Any) -> dict[str, PacerReport]:
    """On the virtual clock, or as fast as pictures are shown."""
    if look:
        return _show(holding, None, seconds, recorder)
    ticks, every = 0, round(holding.fast_rate / _FRAMES)

    def keep(time: float) -> None:
        nonlocal ticks
        ticks += 1
        if recorder is not None and ticks % every == 0:
            recorder()

    if recorder is not None:
        recorder()
    holding.run(seconds or 1.0, after_tick=keep)
    return {}


def _run_separate(
    holding: Hand,
    make: Any,
    seconds: float | None,
    look: bool,
    recorder: Any,
    hard: bool,
    priority: int | None,
    held: str,
) -> dict[str, PacerReport]:
    """The fast loop in a process of its own."""
    from tangere.hand import SeparateLoops

    if held.startswith("udp:"):
        click.echo(f"waiting for a driver at UDP port {held.removeprefix('udp:')} of 127.0.0.1", err=True)
    with SeparateLoops(holding, make, mode="hard" if hard else "soft", priority=priority) as loops:
        if look:
            reports = _show(holding, loops, seconds, recorder)
        else:
            if recorder is not None:
                loops.pacer.postponable("recording", _recording_work(holding, recorder))
            with suppress(KeyboardInterrupt):
                loops.run(seconds or 1e9)
            reports = {"slow loop": loops.pacer.report()}
        return {"fast loop": loops.stop(), **reports}


def _recording_work(holding: Hand, recorder: Any) -> Any:
    """Keeps a frame when the next one is due."""
    last = -1.0

    def keep(seconds: float) -> int:
        nonlocal last
        if holding.time - last >= 1.0 / _FRAMES - 1e-9:
            last = holding.time
            recorder()
        return 0

    return keep


def _show(holding: Hand, loops: Any, seconds: float | None, recorder: Any) -> dict[str, PacerReport]:
    """In the browser, so long or until the page is closed."""
    from tangere.hand import ToolHand
    from tangere.view import HandViewer, ToolViewer

    page = ToolViewer if isinstance(holding, ToolHand) else HandViewer
    with page(holding, loops=loops) as viewer:
        click.echo(f"{viewer.url} shows {holding.name}; Ctrl-C ends", err=True)
        pictures = None if seconds is None else round(seconds * viewer.pacer.rate)
        if recorder is not None:
            work = _recording_work(holding, recorder)
            viewer.run(pictures, after_step=lambda: work(0.0))
        else:
            viewer.run(pictures)
        return {"pictures": viewer.pacer.report()}


def _print(console: Any, holding: Hand, reports: dict[str, PacerReport]) -> None:
    import numpy as np

    from tangere.cli.shared.tables import screen_table

    told = holding.report
    rows = [
        ["time", f"{holding.time:.2f} s, {told.fast_ticks:,} and {told.slow_ticks:,} ticks"],
        ["work given to the hand", f"{1e3 * told.given:.3g} mJ, {1e3 * told.most_given:.3g} at most"],
        ["taken out by the tank", f"{1e3 * told.withheld:.3g} mJ in {told.limited:,} ticks"],
        ["clearance", f"{1e3 * holding.clearance:.4g} mm" if np.isfinite(holding.clearance) else "nothing near"],
        ["force", f"{float(np.linalg.norm(holding.force)):.3g} N"],
        ["walks stopped", f"{told.walks_stopped:,} of {told.slow_ticks:,}"],
    ]
    for loop, report in reports.items():
        rows += [[f"{loop}: {name}", value] for name, value in report.rows()]
    if told.lost is not None:
        rows.append(["the device is lost", told.lost])
    console.print(screen_table(repr(holding), ["", ""], rows))


def _write(console: Any, recorder: Any, saved: list[Path], png: Path | None, width: int, holding: Hand) -> None:
    from tangere.cli.shared.simulation_runs import draw_strip

    if recorder is None:
        return
    recording = recorder.recording()
    for path in saved:
        recording.save(path)
        console.print(f"wrote {path}", highlight=False, markup=False, soft_wrap=True)
    if png is not None:
        draw_strip(recording, png, width, holding.computes_on)
        console.print(f"wrote {png}", highlight=False, markup=False, soft_wrap=True)
