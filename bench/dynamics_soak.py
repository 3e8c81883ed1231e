"""A million steps of small worlds, each looked at with the exact test: no state has an intersection.

Boxes and wedges in a bin, with inertia and without, linked hoops, sheets, bodies that bounce, a mechanism, a loop of
bars with a piston, a puppet, a bin that is shaken, a stack that is ever heavier, spikes that touch with their tips, a
cube that has hardly any play, bodies that are what their formulas say, in a bin and on a height field; every hundred
steps bodies are kicked, so that none sleeps for long. Half of the steps have the solver cut to ten sweeps.

A run is made in chunks, which are written to a file as they are done: who is interrupted goes on from there. What a
chunk comes to depends on its scene and number alone. `TANGERE_SOAK` names the file; without it, `tangere-soak.csv` in
the folder for temporary files. `TANGERE_SOAK_PROCESSES` says how many processes make chunks, 1 without it, and
`TANGERE_SOAK_SECONDS` after how long none is begun any more.
"""

from __future__ import annotations

import csv
import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import astuple, dataclass, fields
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from bench.harness import Report, count
from bench.shapes.soak_worlds import SCENES
from oracles.rigid_worlds import meeting_pairs
from tangere.runtime.threads import using_threads

__all__ = ["SCENES", "Chunk", "chunks", "soak"]

FEATURES = ["F-R-81"]

#: Steps of a chunk, and between two kicks; chunks of each scene and number of sweeps in a whole run.
CHUNK, KICK, CHUNKS = 1000, 100, 36
#: What a chunk is named by: scene, sweeps, number.
Key = tuple[str, int, int]


@dataclass(frozen=True, order=True)
class Chunk:
    """What some steps of a scene came to."""

    scene: str
    sweeps: int  #: of the solver at most; 0 means as chosen
    number: int
    steps: int
    intersections: int  #: pairs of bodies that met, over all states looked at
    truncated: int  #: bodies that were held back, each step anew
    lost: float  #: of the bodies' time

    @property
    def key(self) -> Key:
        return self.scene, self.sweeps, self.number


def soak(scene: str, sweeps: int, number: int, steps: int = CHUNK, look: int = 1) -> Chunk:
    """Some steps of a scene, kicked now and then, and looked at every so many steps."""
    world = SCENES[scene](number, **({"sweeps": sweeps} if sweeps else {}))
    rng = np.random.default_rng([number, sweeps])
    moving = [body for body in world.bodies if body.moves]
    met = 0
    with using_threads(1):
        for step in range(steps):
            if step % KICK == KICK - 1:
                for body in moving:
                    velocity, spin = rng.normal(0.0, 1.5, 3), rng.normal(0.0, 3.0, 3)
                    if scene == "inertialess":
                        world.push(body.name, force=body.mass * velocity, torque=body.mass * 0.1 * spin)
                    else:
                        world[body.name].set_state(velocity=velocity, spin=spin)
                if scene == "shaken":
                    way = [*rng.normal(0.0, 0.4, 2), 0.0]
                    for body in world.bodies:
                        if body.driven:
                            world.drive(body.name, velocity=way)
            world.step()
            if step % look == look - 1:
                met += len(meeting_pairs(world))
    told = world.truncation
    return Chunk(
        scene, sweeps, number, steps, met, told.all_bodies, told.all_lost_time / (len(moving) * steps * world.dt)
    )


def chunks(wanted: Iterable[Key], steps: int, processes: int = 1, seconds: float = np.inf) -> Iterator[Chunk]:
    """Chunks as they are done, by so many processes; none is begun after so many seconds."""
    began, left = time.monotonic(), iter(wanted)
    if processes == 1:
        for key in left:
            if time.monotonic() - began < seconds:
                yield soak(*key, steps)
        return
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        pending: set[Future[Chunk]] = set()
        while True:
            if time.monotonic() - began < seconds:
                pending |= {pool.submit(soak, *key, steps) for key in islice(left, processes - len(pending))}
            if not pending:
                return
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            yield from (chunk.result() for chunk in done)


def run(report: Report, quick: bool = False) -> None:
    file = Path(os.environ.get("TANGERE_SOAK", Path(tempfile.gettempdir()) / "tangere-soak.csv"))
    processes = int(os.environ.get("TANGERE_SOAK_PROCESSES", "1"))
    seconds = float(os.environ.get("TANGERE_SOAK_SECONDS", "inf"))
    wanted = [(name, sweeps, k) for k in range(1 if quick else CHUNKS) for name in SCENES for sweeps in (0, 10)]
    done = [] if quick else [chunk for chunk in read(file) if chunk.key in set(wanted)]
    known = {chunk.key for chunk in done}
    left = [key for key in wanted if key not in known]
    for chunk in chunks(left, 50 if quick else CHUNK, processes, seconds):
        done.append(chunk)
        if not quick:
            append(file, chunk)
    done.sort()
    rows = []
    for name in SCENES:
        for sweeps in (0, 10):
            mine = [chunk for chunk in done if (chunk.scene, chunk.sweeps) == (name, sweeps)]
            steps, held = sum(chunk.steps for chunk in mine), sum(chunk.truncated for chunk in mine)
            lost = float(np.mean([chunk.lost for chunk in mine])) if mine else 0.0
            met = sum(chunk.intersections for chunk in mine)
            rows.append([name, sweeps or "as chosen", count(steps), met, count(held), f"{100.0 * lost:.3g} %"])
    report.table(["scene", "sweeps", "steps", "intersections", "bodies held back", "of their time"], rows)
    report.note(f"{count(sum(chunk.steps for chunk in done))} steps in all, every state looked at.")


def read(file: Path) -> list[Chunk]:
    """The chunks that are done."""
    if not file.is_file():
        return []
    with file.open(newline="", encoding="utf-8") as lines:
        kinds = [str, int, int, int, int, int, float]
        return [
            Chunk(*(kind(value) for kind, value in zip(kinds, row, strict=True))) for row in list(csv.reader(lines))[1:]
        ]


def append(file: Path, chunk: Chunk) -> None:
    """One more chunk."""
    new = not file.is_file()
    with file.open("a", newline="", encoding="utf-8") as lines:
        writer = csv.writer(lines)
        if new:
            writer.writerow([field.name for field in fields(Chunk)])
        writer.writerow(astuple(chunk))
