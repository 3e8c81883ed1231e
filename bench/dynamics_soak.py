"""A million steps of small worlds, each looked at with the exact test: no state has an intersection.

Boxes and wedges in a bin, linked hoops, sheets, bodies that bounce, a mechanism, a bin that is shaken, and a sphere, a
drum, a cone and a cuboid that are what their formulas say; every hundred steps bodies are kicked, so that none sleeps
for long. Half of the steps have the solver cut to ten sweeps. A run is
made in chunks, which are written to a file as they are done: who is interrupted goes on from there. `TANGERE_SOAK`
names the file; without it, `tangere-soak.csv` in the folder for temporary files.
"""

from __future__ import annotations

import csv
import os
import tempfile
from collections.abc import Callable
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np

from bench.harness import Report, count
from oracles.rigid_worlds import meeting_pairs
from tangere.dynamics import Body, World
from tangere.shape import generate
from tangere.shape.analytic import Box, Cone, Cylinder, Sphere

__all__ = ["SCENES", "Chunk", "soak"]

FEATURES = ["F-R-81"]

#: Steps of a chunk, and between two kicks; chunks of each scene and number of sweeps in a whole run.
CHUNK, KICK, CHUNKS = 1000, 100, 72


def at(x: float = 0.0, y: float = 0.0, z: float = 0.0) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, 3] = x, y, z
    return pose


def _bin(**options: object) -> list[Body]:
    """A floor and four walls, 2 m by 2 m inside."""
    walls = [Body(generate.box((3.0, 3.0, 0.2)), at(z=-0.1), name="floor", **options)]
    for x, y in ((1.1, 0.0), (-1.1, 0.0), (0.0, 1.1), (0.0, -1.1)):
        size = (0.2, 2.6, 4.0) if x else (2.0, 0.2, 4.0)
        walls.append(Body(generate.box(size), at(x, y, 2.01), name=f"wall {x} {y}", **options))
    return walls


def boxes(seed: int, **options: object) -> World:
    """Boxes and wedges in a bin."""
    rng = np.random.default_rng(seed)
    shapes = [generate.box((0.5, 0.4, 0.3)), generate.prism(3, radius=0.35, height=0.5), generate.box((0.9, 0.1, 0.1))]
    bodies = [Body(shapes[k % 3], at(*rng.uniform(-0.4, 0.4, 2), 0.6 + 0.8 * k), name=f"part {k}") for k in range(4)]
    return World([*_bin(fixed=True), *bodies], device="cpu", threads=1, **options)


def hoops(seed: int, **options: object) -> World:
    """Three linked hoops in planes that cross, the first of them fixed."""
    hoop = generate.torus(288, radius=0.4, tube=0.06)
    planes = np.array([[[1, 0, 0], [0, 0, -1], [0, 1, 0]], [[0, 0, 1], [0, 1, 0], [-1, 0, 0]]], float)
    bodies = []
    for k in range(3):
        pose = at(z=-0.6 * k)
        pose[:3, :3] = planes[k % 2]
        bodies.append(Body(hoop, pose, fixed=k == 0, name=f"hoop {k}"))
    return World(bodies, device="cpu", threads=1, **options)


def sheets(seed: int, **options: object) -> World:
    """Sheets without thickness, and a ball, in a bin."""
    sheet = generate.sheet(8, size=(0.8, 0.6))
    bodies = [Body(sheet, at(0.05 * k, 0.0, 0.4 + 0.3 * k), name=f"sheet {k}") for k in range(3)]
    ball = Body(generate.icosphere(subdivisions=1, radius=0.2), at(0.1, 0.1, 1.6), name="ball")
    return World([*_bin(fixed=True), *bodies, ball], device="cpu", threads=1, **options)


def bouncing(seed: int, **options: object) -> World:
    """Balls and a box that bounce."""
    ball, box = generate.icosphere(subdivisions=1, radius=0.25), generate.box((0.4, 0.4, 0.4))
    bodies = [
        Body(ball if k % 2 else box, at(0.5 * (k % 2), 0.1 * k, 0.5 + 0.7 * k), name=f"part {k}") for k in range(4)
    ]
    return World([*_bin(fixed=True), *bodies], device="cpu", threads=1, restitution=0.8, **options)


def mechanism(seed: int, **options: object) -> World:
    """A motor that swings a flail among boxes."""
    rod, box = generate.box((0.8, 0.1, 0.1)), generate.box((0.3, 0.3, 0.3))
    flail = Body(generate.box((0.5, 0.1, 0.1)), at(0.65, 0.0, 0.75), name="flail")
    bodies = [Body(rod, at(0.0, 0.0, 0.6), name="arm"), flail]
    bodies += [Body(box, at(-0.5 + 0.5 * k, -0.7, 0.3), name=f"box {k}") for k in range(3)]
    world = World([*_bin(fixed=True), *bodies], device="cpu", threads=1, **options)
    world.join("hinge", "arm", at=[0.0, 0.0, 0.6], axis=[0, 0, 1], speed=2.0, force=200.0)
    world.join("ball", "arm", "flail", at=[0.4, 0.0, 0.675])
    return world


def shaken(seed: int, **options: object) -> World:
    """A bin that is driven to and fro, with boxes in it."""
    box = generate.box((0.4, 0.3, 0.3))
    bodies = [Body(box, at(0.1 * k, 0.05 * k, 0.4 + 0.5 * k), name=f"box {k}") for k in range(3)]
    return World([*_bin(driven=True, group=1), *bodies], device="cpu", threads=1, **options)


def formulas(seed: int, **options: object) -> World:
    """Analytic bodies in a bin of such."""
    walls = [Body(Box(np.ptp(wall.mesh.bounds, axis=0) / 2.0), wall.pose, fixed=True) for wall in _bin(fixed=True)]
    shapes = [Sphere(0.25), Cylinder(0.25, 0.3), Cone(0.3, 0.4), Box([0.25, 0.2, 0.15])]
    bodies = [Body(shape, at(0.1 * k, 0.05 * k, 0.5 + 0.7 * k), name=f"part {k}") for k, shape in enumerate(shapes)]
    return World([*walls, *bodies], device="cpu", threads=1, **options)


SCENES: dict[str, Callable[..., World]] = {
    "boxes": boxes, "hoops": hoops, "sheets": sheets, "bouncing": bouncing, "mechanism": mechanism, "shaken": shaken,
    "formulas": formulas,
}  # fmt: skip


@dataclass(frozen=True)
class Chunk:
    """What some steps of a scene came to."""

    scene: str
    sweeps: int  #: of the solver at most; 0 means as chosen
    number: int
    steps: int
    intersections: int  #: pairs of bodies that met, over all states looked at
    truncated: int  #: bodies that were held back, each step anew
    lost: float  #: of the bodies' time


def soak(scene: str, sweeps: int, number: int, steps: int = CHUNK, look: int = 1) -> Chunk:
    """Some steps of a scene, kicked now and then, and looked at every so many steps."""
    world = SCENES[scene](number, **({"sweeps": sweeps} if sweeps else {}))
    rng = np.random.default_rng([number, sweeps])
    moving = [body.name for body in world.bodies if body.moves]
    met = 0
    for step in range(steps):
        if step % KICK == KICK - 1:
            for name in moving:
                world[name].set_state(velocity=rng.normal(0.0, 1.5, 3), spin=rng.normal(0.0, 3.0, 3))
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


def run(report: Report, quick: bool = False) -> None:
    file = Path(os.environ.get("TANGERE_SOAK", Path(tempfile.gettempdir()) / "tangere-soak.csv"))
    wanted = [(name, sweeps, k) for k in range(1 if quick else CHUNKS) for name in SCENES for sweeps in (0, 10)]
    done = [] if quick else read(file)
    known = {(chunk.scene, chunk.sweeps, chunk.number) for chunk in done}
    for name, sweeps, number in wanted:
        if (name, sweeps, number) in known:
            continue
        done.append(soak(name, sweeps, number, 50 if quick else CHUNK))
        if not quick:
            append(file, done[-1])
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
