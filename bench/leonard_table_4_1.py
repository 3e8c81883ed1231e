"""Deforming bodies: boxes or spheres, and is a box around every feature worth it?

Experiment E1, tables 4.1 to 4.3 of the document: two tori, one of which falls on the other and slides off, over 300
steps of 20 ms, and a knot that collapses on itself over 370, at the document's numbers of triangles. Frames are
recorded once from tangere's own simulation and replayed for detection. The document's machine was an i5-9400F at 4.1
GHz; its material, contact distance and motion are not known, so trends can be compared, milliseconds hardly.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from bench.harness import Report, ratio
from tangere.partition.pipeline import Settings
from tangere.partition.pipeline_surfaces import Surfaces
from tangere.query.proximity import detect
from tangere.query.proximity.owned import count_tests
from tangere.shape import Mesh
from tangere.soft import scenes as simulated

FEATURES = ["F-L-30", "F-L-83"]

#: Our guess of the document's contact distance [m].
DISTANCE = 0.55
RUNS = 10
#: Frames that are replayed, evenly over the run.
FRAMES = 6
SCENES = {"tori 3200": 3_200, "tori 12800": 12_800, "tori 51200": 51_200, "knot 3960": None}
#: Printed, per step: ms with spheres and with boxes (each with, without boxes of features), pairs, primitive pairs.
PRINTED_MS = {
    "tori 3200": (0.79, 0.80, 0.54, 0.51),
    "tori 12800": (3.13, 3.09, 2.55, 2.39),
    "tori 51200": (16.93, 16.64, 16.20, 15.13),
    "knot 3960": (19.56, 20.75, 11.96, 12.06),
}
PRINTED_PAIRS = {
    "tori 3200": (2506, 965),
    "tori 12800": (7302, 3988),
    "tori 51200": (27759, 25687),
    "knot 3960": (161465, 83756),
}
PRINTED_REMOVED = {
    "tori 3200": ("23.3 %", "57.0 %"),
    "tori 12800": ("22.9 %", "46.4 %"),
    "tori 51200": ("20.0 %", "30.8 %"),
    "knot 3960": ("22.2 %", "49.8 %"),
}


def run(report: Report, quick: bool = False) -> None:
    names = ["tori 3200", "knot 3960"] if quick else list(SCENES)
    runs, many = (1, 2) if quick else (RUNS, FRAMES)
    times, pairs, removed, losses, stages = [], [], [], [], []
    for name in names:
        scenes, within = frames(name, many, quick), name.startswith("knot")
        fewer = runs if len(scenes[0][0].faces) < 20_000 else min(runs, 2)
        row_ms, row_pairs, row_removed = [], [], []
        for bounds in ("spheres", "boxes"):
            settings = Settings(bounds=bounds, within=within, between=not within)
            for boxes in (True, False):
                row_ms.append(mean_times(scenes, replace(settings, primitive_boxes=boxes), fewer))
            counts = [_counts(scene, settings) for scene in scenes]
            row_pairs.append(np.mean([c[0] for c in counts]))
            tested = np.sum([c[1] for c in counts])
            row_removed.append(np.sum([c[2] for c in counts]) / max(tested, 1))
        everyone = mean_times(scenes, Settings(regions=False, within=within, between=not within), fewer)
        totals = [sum(t.values()) for t in row_ms]
        times.append([name, *(f"{1e3 * t:.2f} / {p}" for t, p in zip(totals, PRINTED_MS[name], strict=True)), fewer])
        pairs.append([name, *(f"{n:.0f} / {p}" for n, p in zip(row_pairs, PRINTED_PAIRS[name], strict=True))])
        removed.append(
            [name, *(f"{100 * r:.1f} % / {p}" for r, p in zip(row_removed, PRINTED_REMOVED[name], strict=True))]
        )
        losses.append([name, *_losses(scenes, within)])
        stages.append(
            [
                name,
                f"{1e3 * totals[3]:.2f}",
                f"{1e3 * sum(everyone.values()):.2f}",
                ratio(sum(everyone.values()), totals[3]),
            ]
        )
    report.section("Time of detection per step [ms], ours / printed (table 4.1)")
    report.table(
        ["scene", "spheres, feature boxes", "spheres", "boxes, feature boxes", "boxes", "runs"],
        times,
    )
    report.section("Pairs of triangles per step, ours / printed (table 4.2)")
    report.table(["scene", "spheres", "boxes"], pairs)
    report.section("Pairs of features removed by their boxes, ours / printed (table 4.3)")
    report.table(["scene", "spheres", "boxes"], removed)
    report.section("What the published rules lose, per step")
    report.table(["scene", "pairs of triangles", "of", "contacts", "of"], losses)
    report.section("With and without regions of interest [ms]")
    report.table(["scene", "in regions only", "all triangles", "ratio"], stages)
    report.note(
        f"""Sound mode on one CPU thread; means over {many} frames of the run and over the number of runs in the table.
        Contact distance {DISTANCE} m; the simulation itself holds its bodies some 0.15 m (knot: 0.4 m) apart."""
    )


@cache
def frames(name: str, many: int, quick: bool = False) -> list[list[Mesh]]:
    """The bodies of a scene at `many` steps of their way, evenly spread over the whole simulation."""
    triangles = SCENES[name]
    simulation = simulated.knot() if triangles is None else simulated.tori(triangles)
    steps = (120 if quick else 370) if triangles is None else (120 if quick else 300)
    chosen = {round((k + 1) * steps / many) for k in range(many)}
    recorded = []
    for step in range(1, steps + 1):
        simulation.step()
        if step in chosen:
            recorded.append(simulation.meshes())
    return recorded


def mean_times(scenes: list[list[Mesh]], settings: Settings, runs: int, **options) -> dict[str, float]:
    """Seconds of each stage, mean over scenes and runs, after one untimed round; on one CPU thread unless told."""
    total: dict[str, float] = {}
    options = {"device": "cpu", "threads": 1, **options}
    for turn in range(runs + 1):
        for scene in scenes:
            found = detect(scene, distance=DISTANCE, settings=settings, count_losses=False, **options)
            if turn:
                for stage, took in found.seconds.items():
                    total[stage] = total.get(stage, 0.0) + took / (runs * len(scenes))
    return total


def _losses(scenes: list[list[Mesh]], within: bool) -> list[str]:
    """Mean pairs and contacts that only the sound rules find, beside all of them."""
    settings = Settings(mode="published", within=within, between=not within)
    found = [detect(scene, distance=DISTANCE, settings=settings, device="cpu") for scene in scenes]
    lost = {what: np.mean([f.losses.get(what, 0) for f in found]) for what in ("pairs lost", "contacts lost")}
    kept = {what: np.mean([f.counts.get(what, 0) for f in found]) for what in ("pairs", "contacts")}
    return [
        f"{value:.0f}"
        for what in ("pairs", "contacts")
        for value in (lost[f"{what} lost"], lost[f"{what} lost"] + kept[what])
    ]


def _counts(scene: list[Mesh], settings: Settings) -> tuple[int, int, int]:
    """Pairs of triangles without a common vertex, pairs of features, and how many of these their boxes tell apart."""
    surfaces = Surfaces.of(scene, "cpu")
    found = detect(surfaces, distance=DISTANCE, settings=settings, device="cpu").stages.pairs
    if found is None:
        return 0, 0, 0
    faces, pairs = surfaces.layout.faces.numpy(), found.numpy().reshape(-1, 2)
    apart = ~(faces[pairs[:, 0], :, None] == faces[pairs[:, 1], None, :]).any(axis=(1, 2))
    tests = count_tests(surfaces, found, DISTANCE)
    return int(apart.sum()), tests.primitive_pairs, tests.removed
