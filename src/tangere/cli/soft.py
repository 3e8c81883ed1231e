"""`tangere soft`: soft bodies that fall, touch, slide and never pass through; to watch, to record, to draw."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tangere.cli.shared.options import machine_options, width_option

if TYPE_CHECKING:
    from tangere.soft import Simulation

#: Steps of 20 ms that show all that happens in each scene.
_STEPS = {"tori": 300, "knot": 370, "drop": 100, "cloth": 100, "cut": 75}
#: Young's modulus that steps of 20 ms can follow in any of the scenes [Pa].
_STIFFEST = 1e12


@click.command()
@click.argument("scene")
@click.option(
    "--steps",
    type=click.IntRange(min=1),
    help="Steps of 20 ms; default: tori 300, knot 370, drop and cloth 100, cut 75; with --view until Ctrl-C.",
)
@click.option("--youngs-modulus", type=float, help="Of the bodies [Pa]; default: what suits the scene.")
@click.option(
    "--triangles", type=click.Choice(["3200", "12800", "51200", "204800"]), help="Of the tori; default: 3200."
)
@click.option("--mesh", type=click.Path(path_type=Path), help="Drop or cut your own tetrahedra: .msh, .vtu, .mesh, …")
@click.option("--shape", type=click.Choice(["block", "torus"]), help="What is cut; default: block.")
@click.option("--toughness", type=float, help="Of the blade that cuts [N/m]; default: 20.")
@click.option("--depth", type=float, help="How far the blade goes, as part of the height; default: 1.1.")
@click.option("--kerf", type=float, help="Width of the cut at rest [m]; default: what the elements have room for.")
@click.option("--response", type=click.Choice(["hard", "penalty"]), help="How bodies touch; default: hard.")
@click.option("--record", type=click.Path(path_type=Path), help="Write every frame there, to be replayed.")
@click.option("--out", type=click.Path(path_type=Path), help="Write the run as .glb, .usd, .pvd, .mp4, .gif, …")
@click.option("--png", type=click.Path(path_type=Path), help="Write a strip of pictures.")
@click.option("--view", "look", is_flag=True, help="Watch it live in the browser, and pull at it, until Ctrl-C.")
@width_option(360, "picture")
@machine_options
def soft(
    scene: str,
    steps: int | None,
    youngs_modulus: float | None,
    triangles: str | None,
    mesh: Path | None,
    shape: str | None,
    toughness: float | None,
    depth: float | None,
    kerf: float | None,
    response: str | None,
    record: Path | None,
    out: Path | None,
    png: Path | None,
    look: bool,
    width: int,
    threads: int | None,
    device: str | None,
) -> None:
    """Run SCENE: tori, knot, drop, cloth or cut; or replay one: the .npz file that --record wrote.

    \b
    tangere soft cut --toughness 50 --depth 0.5 --png cut.png --out cut.glb
    tangere soft tori --png tori.png --record tori.npz
    tangere soft drop --mesh organ.msh --youngs-modulus 5000 --view
    tangere soft tori.npz --view
    tangere soft tori.npz --out tori.glb
    """
    from tangere.cli.shared.extras import check_view_extra
    from tangere.cli.shared.simulation_runs import replay_file
    from tangere.runtime import InputError, check_out_file, using_threads
    from tangere.scene.export import check_export_file

    check_out_file(png, "--png", ".png")
    check_out_file(record, "--record", ".npz")
    if out is not None:
        check_export_file(out)
    check_view_extra(pillow=png is not None, viser=look)
    replayed = Path(scene).suffix == ".npz"
    if not replayed and scene not in _STEPS:
        raise InputError(f"{scene}: a scene is {', '.join(_STEPS)}, or a .npz file that --record wrote")
    given = {
        "--steps": steps,
        "--youngs-modulus": youngs_modulus,
        "--triangles": triangles,
        "--mesh": mesh,
        "--record": record,
        "--shape": shape,
        "--toughness": toughness,
        "--depth": depth,
        "--kerf": kerf,
    }
    given["--response"] = response
    if replayed:
        unused = next((option for option, value in given.items() if value is not None), None)
        if unused is not None:
            raise InputError(f"{unused}: a recorded run is replayed as it is")
        from tangere.soft import Recording

        replay_file(Recording.load(scene), Path(scene), out, png, look, width, device)
        return
    if mesh is not None and scene not in ("drop", "cut"):
        raise InputError(f"--mesh: only the scenes drop and cut take another mesh, not {scene}")
    of_cut = {"shape": shape, "toughness": toughness, "depth": depth, "kerf": kerf}
    for option, value in of_cut.items():
        if value is not None and scene != "cut":
            raise InputError(f"--{option}: only the scene cut takes it, not {scene}")
    if mesh is not None and shape is not None:
        raise InputError("--shape: the mesh is what is cut")
    if triangles is not None and scene != "tori":
        raise InputError(f"--triangles: only the tori come in several resolutions, not {scene}")
    if youngs_modulus is not None and youngs_modulus > _STIFFEST:
        raise InputError(f"--youngs-modulus: at most {_STIFFEST:g} Pa, not {youngs_modulus:g}")
    kept = {"--record": record, "--out": out, "--png": png}
    if look and steps is None and any(kept.values()):
        raise InputError("--view with --record, --out or --png: say how many steps to keep, --steps")
    with using_threads(threads):
        options = {name: value for name, value in of_cut.items() if value is not None}
        simulation = _simulation(scene, youngs_modulus, triangles, mesh, response or "hard", device, options)
        endless = look and steps is None
        _run(simulation, scene, None if endless else steps or _STEPS[scene], record, out, png, look, width)


def _simulation(
    scene: str,
    youngs_modulus: float | None,
    triangles: str | None,
    mesh: Path | None,
    response: str,
    device: str | None,
    own: dict[str, Any],
) -> Simulation:
    from tangere.shape.tets import TetMesh
    from tangere.soft import scenes

    options: dict[str, Any] = {"response": response, "device": device, **own}
    if youngs_modulus is not None:
        options["youngs_modulus"] = youngs_modulus
    if triangles is not None:
        options["triangles"] = int(triangles)
    if mesh is not None:
        options["shape"] = TetMesh.load(mesh)
    return getattr(scenes, scene)(**options)


def _run(
    simulation: Simulation,
    name: str,
    steps: int | None,
    record: Path | None,
    out: Path | None,
    png: Path | None,
    look: bool,
    width: int,
) -> None:
    """Run so many steps, or, while somebody looks, until the page is closed (None)."""
    import numpy as np
    from rich.console import Console

    from tangere.cli.shared.simulation_runs import PhaseTimes, draw_strip, run_steps, shown_steps
    from tangere.soft import Recorder

    console = Console()
    recorder = Recorder(simulation)
    saved = [path for path in (record, out) if path is not None]
    shown = shown_steps(steps)
    phases = PhaseTimes()
    counts: list[int] = []

    def keep() -> None:
        phases.add(simulation.timings)
        counts.append(simulation.rows.count)
        if saved or (png is not None and simulation.steps in shown):
            recorder()

    if saved or png is not None:
        recorder()
    viewer = None
    if look:
        from tangere.view import LiveViewer

        viewer = partial(LiveViewer, simulation)
    run_steps(console, name, steps, simulation.step, keep, viewer)
    if counts:
        title = f"{simulation!r}; contacts: {np.mean(counts):.0f} on average, {max(counts)} at most"
        phases.print(console, title)
    for path in saved:
        recorder.recording().save(path)
        console.print(f"wrote {path}", highlight=False, markup=False, soft_wrap=True)
    if png is not None:
        draw_strip(recorder.recording(), png, width, str(simulation.device))
        console.print(f"wrote {png}", highlight=False, markup=False, soft_wrap=True)
