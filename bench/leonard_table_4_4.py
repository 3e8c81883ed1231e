"""Deforming bodies: what do cones of normals save in self-collision, and what do they lose?

Experiment E2, tables 4.4 and 4.5 of the document, on a knot of 3,960 triangles that collapses on itself, recorded from
tangere's own simulation, and two plates of one mesh that cross, where the printed test loses contacts. Sound cones need
an exclusion at rest and leave out less.
"""

from __future__ import annotations

import numpy as np

from bench.harness import Report, seconds
from bench.leonard_table_4_1 import DISTANCE, FRAMES, RUNS, frames, mean_times
from tangere.partition.pipeline import Settings
from tangere.query.proximity import Exclusion, detect
from tangere.shape import Mesh, generate

FEATURES = ["F-L-3", "F-L-84"]


def run(report: Report, quick: bool = False) -> None:
    runs = 1 if quick else RUNS
    scenes = frames("knot 3960", 2 if quick else FRAMES, quick)
    report.section("The knot, time per step by stage (table 4.4)")
    columns = {cones: mean_times(scenes, Settings(mode="published", cones=cones), runs) for cones in (False, True)}
    stages = list(columns[True])
    report.table(
        ["stage", "without cones", "with cones"],
        [[stage, *(seconds(columns[c].get(stage, 0.0)) for c in (False, True))] for stage in stages]
        + [["total", *(seconds(sum(columns[c].values())) for c in (False, True))]],
    )
    report.note(
        f"""Printed: 12.06 ms without cones, 9.90 ms with them (-17.9 %), on an i5-9400F; published rules, one thread,
        means of {runs} runs over {len(scenes)} frames."""
    )
    report.section("What the published rules leave out (table 4.5) and lose")
    rows = []
    for name, scene, distance in [("knot", scenes[-1], DISTANCE), *plates()]:
        found = detect(scene, distance=distance, settings=Settings(mode="published", cones=True), device="cpu")
        sound = detect(scene, distance=distance, device="cpu")
        c = found.counts
        rows.append(
            [
                name,
                f"{100 * c['cells skipped'] / c['cells']:.1f} %",
                f"{100 * c['entries skipped'] / c['entries']:.1f} %",
                len(sound.contacts),
                c["contacts lost"],
                f"{c['pairs lost']} of {sound.counts['pairs']}",
            ]
        )
    report.table(
        ["scene", "cells left out", "entries left out", "contacts", "contacts lost", "pairs of triangles lost"], rows
    )
    report.note("Printed for the knot: 87.4 % of the cells and 67.5 % of the entries, on average over the collapse.")
    report.section("Sound cones")
    rows = []
    for name, mesh in {"knot": scenes[0][0], "fine sheet": generate.sheet(2 * 60 * 60, size=(60.0, 60.0))}.items():
        edge = float(np.linalg.norm(mesh.vertices[mesh.edges[:, 0]] - mesh.vertices[mesh.edges[:, 1]], axis=1).mean())
        exclude = Exclusion.at_rest(mesh, 2.5 * edge, device="cpu")
        counts = [
            detect(
                mesh,
                distance=0.6 * edge,
                settings=Settings(cones=cones, cell=6.0 * edge),
                exclude=exclude,
                device="cpu",
            )
            for cones in (False, True)
        ]
        assert np.array_equal(counts[0].contacts.key, counts[1].contacts.key)
        rows.append([name, *(c.counts["pairs"] for c in counts), *(seconds(c.total) for c in counts)])
    report.table(["mesh", "pairs without", "pairs with cones", "time without", "time with cones"], rows)


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
