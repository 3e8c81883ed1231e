"""Deforming bodies: what do cones of normals save in self-collision, and what do they lose?

Experiment E2, tables 4.4 and 4.5 of the document, on a knot of 3,960 triangles that collapses on itself, every 20th
step of tangere's own simulation, and two plates of one mesh that cross, where the printed test loses contacts. Sound
cones need an exclusion at rest and leave out less.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from bench.harness import Report, measure
from bench.leonard_table_4_1 import DISTANCE, EVERY, RUNS, frames, in_turns
from tangere.broad_phase.triangles import Surfaces
from tangere.published.leonard_grid import detect
from tangere.published.leonard_grid.pipeline import Settings
from tangere.query.proximity import Exclusion
from tangere.shape import generate
from tangere.shape.mesh import Mesh

FEATURES = ["F-L-3", "F-L-84"]

#: Rows of table 4.4, the stages of ours that do their work, and what is printed [ms] without and with cones.
ROWS = {
    "cone test": (("cones",), 0.00, 0.80),
    "find pairs of triangles": (("runs", "pairs"), 3.66, 2.81),
    "primitive tests, contacts": (("features", "contacts"), 5.83, 3.69),
    "other": (("positions", "objects", "triangles", "grid", "entries", "sort"), 2.57, 2.59),
}
PRINTED_TOTALS = (12.06, 9.90)


def run(report: Report, quick: bool = False) -> None:
    runs, scenes = 1 if quick else RUNS, frames("knot 3960", quick)
    ways = {cones: {"settings": Settings(mode="published", cones=cones, fused=False)} for cones in (False, True)}
    measured = in_turns(scenes, ways, runs)
    rows = []
    for name, (stages, *printed) in ROWS.items():
        ours = [1e3 * sum(m.stages.get(stage, 0.0) for stage in stages) for m in measured.values()]
        rows.append([name, *(f"{ms:.2f}" for ms in ours), *(f"{ms:.2f}" for ms in printed)])
    without, with_cones = (1e3 * m.mean for m in measured.values())
    saved = [f"{100.0 * (b / a - 1.0):+.1f} %" for a, b in ((without, with_cones), PRINTED_TOTALS)]
    rows.append(["total", f"{without:.2f}", f"{with_cones:.2f} ({saved[0]})", "12.06", f"9.90 ({saved[1]})"])
    report.section("The knot, milliseconds a step (table 4.4)")
    report.table(["", "without cones", "with cones", "printed, without", "printed, with"], rows)
    report.note(
        f"""Published rules on one CPU thread, means of {runs} runs, in turns, over every {EVERY}th step; printed on an
        i5-9400F at 4.1 GHz."""
    )
    report.section("What the published rules leave out (table 4.5) and lose")
    rows = [["knot, mean of all frames", *_left_out(scenes, DISTANCE)]]
    rows += [[name, *_left_out([scene], distance)] for name, scene, distance in plates()]
    rows.append(["printed, knot", "87.4 %", "67.5 %", "-52 %", "-", "-", "-"])
    columns = ["cells left out", "entries left out", "elementary tests", "contacts", "contacts lost"]
    report.table(["scene", *columns, "pairs of triangles lost"], rows)
    _sound_cones(report, scenes[0][0], 3 if quick else 15)


def _left_out(scenes: list[list[Mesh]], distance: float) -> list[str]:
    """Mean shares of cells, entries and elementary tests that cones save, and what the published rules lose."""
    sums: dict[str, int] = {}
    tests = [0, 0]
    for scene in scenes:
        surfaces = Surfaces.of(scene, "cpu")
        for cones in (False, True):
            settings = Settings(mode="published", cones=cones)
            found = detect(surfaces, distance=distance, settings=settings, count_losses=cones)
            tests[cones] += found.tests.primitive_pairs
        sound = detect(surfaces, distance=distance)
        counts = found.counts | {"all contacts": len(sound.near), "all pairs": sound.counts["pairs"]}
        sums = {what: sums.get(what, 0) + number for what, number in counts.items()}
    many = len(scenes)
    return [
        f"{100 * sums['cells skipped'] / sums['cells']:.1f} %",
        f"{100 * sums['entries skipped'] / sums['entries']:.1f} %",
        f"{100 * (tests[1] / max(tests[0], 1) - 1.0):+.0f} %",
        f"{sums['all contacts'] / many:.0f}",
        f"{sums['contacts lost'] / many:.0f}",
        f"{sums['pairs lost'] / many:.0f} of {sums['all pairs'] / many:.0f}",
    ]


def _sound_cones(report: Report, knot: Mesh, rounds: int) -> None:
    report.section("Sound cones")
    rows = []
    for name, mesh in {"knot": knot, "fine sheet": generate.sheet(2 * 60 * 60, size=(60.0, 60.0))}.items():
        edge = float(np.linalg.norm(mesh.vertices[mesh.edges[:, 0]] - mesh.vertices[mesh.edges[:, 1]], axis=1).mean())
        exclude = Exclusion.at_rest(mesh, 2.5 * edge, device="cpu")
        ways = {
            cones: partial(
                detect,
                mesh,
                distance=0.6 * edge,
                settings=Settings(cones=cones, cell=6.0 * edge),
                exclude=exclude,
                device="cpu",
                threads=1,
            )
            for cones in (False, True)
        }
        timings = measure({str(cones): way for cones, way in ways.items()}, rounds=rounds)
        without, with_cones = (timing.result for timing in timings.values())
        assert np.array_equal(without.contacts.key, with_cones.contacts.key)
        rows.append([name, without.counts["pairs"], with_cones.counts["pairs"], *timings.values()])
    report.table(["mesh", "pairs without", "pairs with cones", "time without", "time with cones"], rows)
    report.note(f"Whole detections on one CPU thread, {rounds} rounds in turns.")


def plates() -> list[tuple[str, list[Mesh], float]]:
    """Two sheets of one mesh, 800 triangles each, edges 0.5, crossing at small angles."""
    scenes = []
    for degrees in (2.0, 5.0, 20.0):
        sheet = generate.sheet(800, size=(10.0, 10.0))
        x, y, z = (sheet.vertices - sheet.bounds.mean(axis=0)).T
        angle = np.radians(degrees)
        tilted = np.stack([x * np.cos(angle), y, x * np.sin(angle)], axis=1) + [0.01, 0.013, 0.0]
        both = Mesh.join([sheet.replace(vertices=np.stack([x, y, z], axis=1)), sheet.replace(vertices=tilted)])
        scenes.append((f"plates at {degrees:g} degrees", [both], 0.1))
    return scenes
