"""`tangere demo`: a part out of a door, three moving scenes, what happens next, a million queries of each kind."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tangere.cli.shared.options import machine_options, out_folder_option, width_option
from tangere.cli.shared.timing import timed

if TYPE_CHECKING:
    import numpy as np

    from tangere.cli.shared.showcase import Case
    from tangere.shape import Mesh

_SCENES = ["scene", "triangles", "first contact", "found in", "all contacts", "found in "]
_PATHS = ["path", "segments", "triangles", "verdict", "clearance", "checked in"]
_WORLDS = ["world", "bodies", "steps", "a step", "contacts at the end", "pairs that overlap"]
_BATCHES = ["batch", "queries", "contacts", "queries/s"]
#: A first world and a first cut, whose kernels stay on disk.
_AHEAD = """
import sys
import tangere as tg
tg.dynamics.scenes.pile(27, device=sys.argv[1] or None).run(steps=80)
tg.soft.scenes.cut(device=sys.argv[1] or None).run(steps=75)
"""
#: Steps until boxes in a bin are at rest, and until a blade is through a block.
_STEPS, _CUT_STEPS = 200, 75


@click.command()
@out_folder_option
@click.option("--queries", default=1_000_000, show_default=True, type=click.IntRange(min=1), help="Size of a batch.")
@width_option(440, "frame")
@machine_options
def demo(out: Path, queries: int, width: int, threads: int | None, device: str | None) -> None:
    """See it work in about a minute, without GPU or browser; leaves demo.png and demo.md in the folder OUT."""
    from rich.console import Console

    from tangere.cli.shared.extras import check_view_extra
    from tangere.cli.shared.output_folder import make_out_folder, write_report
    from tangere.cli.shared.showcase import cases
    from tangere.cli.shared.tables import markdown_table, screen_table
    from tangere.runtime import choose_device, thread_count, using_threads
    from tangere.view import stacked

    check_view_extra(pillow=True)
    make_out_folder(out)
    console = Console()
    with using_threads(threads), console.status("") as status, _compiling_ahead(device) as ahead:
        status.update("taking a motor out of a door")
        paths, frames = _paths(width, device)
        scenes = []
        for case in cases():
            status.update(f"first contact: {case.name}")
            row, frame = _scene(case, width, device)
            scenes.append(row)
            frames.append(frame)
        status.update("boxes fall into a bin")
        ahead.wait()
        worlds, frame = _world(width, device)
        frames.append(frame)
        status.update("a blade cuts a soft block")
        row, frame = _cut(width, device)
        worlds.append(row)
        frames.append(frame)
        batches = []
        for kind in ("vertex_face", "edge_edge"):
            status.update(f"{queries} queries: {kind.replace('_', '-')}")
            batches.append(_batch(kind, queries, device))
        where = f"{choose_device(device).name}, {thread_count()} threads"
    console.print(screen_table(f"A window-lifter motor out of a door ({where})", _PATHS, paths))
    console.print(screen_table("Moving scenes", _SCENES, scenes))
    console.print(screen_table("What happens next", _WORLDS, worlds))
    console.print(screen_table("Random vertex-face and edge-edge queries", _BATCHES, batches))
    every = ((_PATHS, paths), (_SCENES, scenes), (_WORLDS, worlds), (_BATCHES, batches))
    tables = (markdown_table(*table) for table in every)
    stacked(frames).save(out / "demo.png")
    write_report(out / "demo.md", ["# tangere demo", where, *tables])
    console.print(f"wrote {out / 'demo.png'} and {out / 'demo.md'}", highlight=False, markup=False, soft_wrap=True)


def _paths(width: int, device: str | None) -> tuple[list[list[str]], list[np.ndarray]]:
    """The removal of a motor through the slot of a door: one path is free, the other touches; rows and a picture."""
    import tangere as tg
    from tangere.scene import Scene
    from tangere.view import strip

    task = tg.generate.window_lifter()
    triangles = str(len(task.part.faces) + len(task.fixed.faces))
    rows, frames = [], []
    for name, poses in (("good", task.free_path), ("bad", task.touching_path)):
        path = tg.Path(poses)
        check, seconds = timed(lambda path=path: tg.check_path(task.part, task.fixed, path, device=device))
        verdict = f"{check.status} at t = {check.time:.6f}" if check else "free"
        clearance = f"{1e3 * check.clearance.least:.1f} mm"
        rows.append([name, str(len(path)), triangles, verdict, clearance, f"{seconds:.3f} s"])
        scene = Scene.of(task.part.moving(path), task.fixed, contacts=check.contacts).with_glass(task.fixed.name)
        times = [0.0, min(check.time, 0.6), 1.0]
        labels = [f"{name} path, t = 0", verdict if check else "t = 0.6", "t = 1" if check else "free all the way"]
        frames.append(strip(scene, times, labels=labels, size=(width, width * 3 // 4), device=device))
    return rows, frames


def _scene(case: Case, width: int, device: str | None) -> tuple[list[str], np.ndarray]:
    """One row of the table, and one row of the picture: before, at the first contact, and all contacts at the end."""
    import tangere as tg
    from tangere.scene import Scene
    from tangere.view import strip

    hit, first_seconds = timed(lambda: tg.first_contact(*case.anew(), device=device))
    contacts, all_seconds = timed(lambda: tg.all_contacts(*case.anew(), device=device))
    answer = f"t = {hit.time:.6f}" if hit else "free"
    row = [case.name, str(case.triangles), answer, f"{first_seconds:.3f} s", str(len(contacts)), f"{all_seconds:.3f} s"]
    scene = Scene.of(*case.bodies, contacts=contacts, camera=case.camera)
    times = [0.0, float(contacts.time.min()) if len(contacts) else 0.5, 1.0]
    labels = [f"{case.name}, t = 0", f"first contact, {answer}", f"{len(contacts)} contacts by t = 1"]
    return row, strip(scene, times, labels=labels, size=(width, width * 3 // 4), device=device)


@contextmanager
def _compiling_ahead(device: str | None) -> Iterator[subprocess.Popen[bytes]]:
    """Another process compiles the kernels of rigid worlds meanwhile: compiling takes one core at a time."""
    command = [sys.executable, "-c", _AHEAD, device or ""]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.terminate()


def _world(width: int, device: str | None) -> tuple[list[list[str]], np.ndarray]:
    """Boxes that fall into a bin: one row, and how they come to rest; every pair is tested at the end."""
    import tangere as tg
    from tangere.view import strip

    world = tg.dynamics.scenes.pile(27, device=device)
    world.run(steps=2)  # compiles
    began = time.perf_counter()
    recording = world.record(steps=_STEPS, every=10)
    seconds = time.perf_counter() - began
    moves = [body.moves for body in world.bodies]  # walls and floor of the bin are joined
    overlaps = _overlaps(world.meshes(), moves, device)
    contacts = len(world.contacts)
    row = _world_row("27 boxes in a bin", len(world), _STEPS, world.dt, seconds, contacts, overlaps)
    labels = [
        "27 boxes in a bin, t = 0",
        f"t = {0.3 * recording.seconds:.1f} s",
        f"{contacts} contacts, {overlaps} overlaps",
    ]
    frame = strip(recording, [0.0, 0.3, 1.0], labels=labels, size=(width, width * 3 // 4), device=device)
    return [row], frame


def _cut(width: int, device: str | None) -> tuple[list[str], np.ndarray]:
    """A blade goes through a soft block: one row, and the block before, half-way and in two; every pair is tested."""
    import tangere as tg
    from tangere.view import strip

    simulation = tg.soft.scenes.cut(device=device)
    recorder = tg.soft.Recorder(simulation)
    recorder()
    began = time.perf_counter()
    for _ in range(_CUT_STEPS):
        simulation.step()
        recorder()
    seconds = time.perf_counter() - began
    recording = recorder.recording()
    bodies, contacts = list(simulation), len(simulation.contacts)
    overlaps = _overlaps([body.mesh for body in bodies], [True] * len(bodies), device)
    row = _world_row("a soft block is cut", len(bodies), _CUT_STEPS, simulation.dt, seconds, contacts, overlaps)
    labels = [
        "a soft block is cut, t = 0",
        f"t = {0.4 * recording.seconds:.1f} s",
        f"{len(bodies) - 1} parts, {overlaps} overlaps",
    ]
    frame = strip(recording.scene(), [0.0, 0.4, 1.0], labels=labels, size=(width, width * 3 // 4), device=device)
    return row, frame


def _overlaps(meshes: Sequence[Mesh], moves: Sequence[bool], device: str | None) -> int:
    """How many pairs of meshes overlap, of which at least one moves."""
    from itertools import combinations

    import tangere as tg

    pairs = [(a, b) for a, b in combinations(range(len(meshes)), 2) if moves[a] or moves[b]]
    return sum(bool(tg.intersects(meshes[a], meshes[b], device=device)) for a, b in pairs)


def _world_row(
    name: str, bodies: int, steps: int, dt: float, seconds: float, contacts: int, overlaps: int
) -> list[str]:
    """One row of what happens next; `seconds` are those of all steps."""
    took = f"{1e3 * seconds / steps:.1f} ms"
    return [name, str(bodies), f"{steps} of {1e3 * dt:g} ms", took, str(contacts), str(overlaps)]


def _batch(kind: str, count: int, device: str | None) -> list[str]:
    from tangere import query
    from tangere.cli.shared.showcase import random_batch
    from tangere.cli.shared.tables import quantity

    x0, x1 = random_batch(count)
    ask = getattr(query, kind)
    found, seconds = timed(lambda: ask(x0, x1, device=device))
    return [kind.replace("_", "-"), str(count), str(int(found.hit.sum())), quantity(count / seconds)]
