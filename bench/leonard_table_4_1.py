"""Deforming bodies: boxes or spheres, and is a box around every feature worth it?

Experiment E1, tables 4.1 to 4.3 of the document, without its simulator: two tori that slide over each other and a knot
that sinks together, on prescribed paths, at the document's numbers of triangles. The document's machine was an i5-9400F
at 4.1 GHz, its material, contact distance and motion are not known: trends can be compared, milliseconds hardly.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bench.harness import Report, ratio
from tangere.partition.pipeline import Settings
from tangere.partition.pipeline_surfaces import Surfaces
from tangere.query.proximity import detect
from tangere.query.proximity.owned import count_tests
from tangere.shape import Mesh, generate

FEATURES = ["F-L-3", "F-L-30", "F-L-63", "F-L-83", "F-L-88"]

#: Our guess of the document's contact distance [m].
DISTANCE = 0.55
RUNS = 10
GRIDS = {"tori 3200": (40, 20), "tori 12800": (80, 40), "tori 51200": (160, 80)}
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
    names = ["tori 3200", "knot 3960"] if quick else [*GRIDS, "knot 3960"]
    runs, steps = (1, 3) if quick else (RUNS, 12)
    times, pairs, removed, stages = [], [], [], []
    for name in names:
        scenes = frames(name, steps)
        within = name.startswith("knot")
        row_ms, row_pairs, row_removed = [], [], []
        for bounds in ("spheres", "boxes"):
            settings = Settings(bounds=bounds, within=within, between=not within)
            for boxes in (True, False):
                chosen = replace(settings, primitive_boxes=boxes)
                row_ms.append(mean_times(scenes, chosen, runs))
            counts = [_counts(scene, settings) for scene in scenes]
            row_pairs.append(np.mean([c[0] for c in counts]))
            tested = np.sum([c[1] for c in counts])
            row_removed.append(np.sum([c[2] for c in counts]) / max(tested, 1))
        everyone = mean_times(scenes, Settings(regions=False, within=within, between=not within), runs)
        totals = [sum(t.values()) for t in row_ms]
        times.append([name, *(f"{1e3 * t:.2f} / {p}" for t, p in zip(totals, PRINTED_MS[name], strict=True))])
        pairs.append([name, *(f"{n:.0f} / {p}" for n, p in zip(row_pairs, PRINTED_PAIRS[name], strict=True))])
        removed.append(
            [name, *(f"{100 * r:.1f} % / {p}" for r, p in zip(row_removed, PRINTED_REMOVED[name], strict=True))]
        )
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
        ["scene", "spheres, feature boxes", "spheres", "boxes, feature boxes", "boxes"],
        times,
    )
    report.section("Pairs of triangles per step, ours / printed (table 4.2)")
    report.table(["scene", "spheres", "boxes"], pairs)
    report.section("Pairs of features removed by their boxes, ours / printed (table 4.3)")
    report.table(["scene", "spheres", "boxes"], removed)
    report.section("With and without regions of interest [ms]")
    report.table(["scene", "in regions only", "all triangles", "ratio"], stages)
    report.note(f"Sound mode on one CPU thread; means over {steps} steps of {runs} runs.")


def frames(name: str, steps: int) -> list[list[Mesh]]:
    """The bodies of a scene at some steps of their way."""
    if name.startswith("knot"):
        knot = generate.trefoil_knot(3960)
        return [[knot.replace(vertices=knot.vertices * [1, 1, 1 - 0.5 * t])] for t in np.linspace(0.0, 1.0, steps)]
    lower = generate.torus(grid=GRIDS[name], radius=5.0, tube=2.0)
    x, y, z = lower.vertices.T
    lower = lower.replace(vertices=np.stack([x, -z, y], axis=1))  # upright
    upper = generate.torus(grid=GRIDS[name], radius=5.0, tube=2.0)
    way = [
        np.array([6.0 * max(0.0, t - 0.4), 0.5 * t, 9.6 - 0.9 * min(t, 0.4) / 0.4 - 4.0 * max(0.0, t - 0.4)])
        for t in np.linspace(0.0, 1.0, steps)
    ]
    return [[lower, upper.replace(vertices=upper.vertices + shift)] for shift in way]


def mean_times(scenes: list[list[Mesh]], settings: Settings, runs: int) -> dict[str, float]:
    """Seconds of each stage, mean over scenes and runs, after one untimed round."""
    total: dict[str, float] = {}
    for turn in range(runs + 1):
        for scene in scenes:
            found = detect(
                scene, distance=DISTANCE, settings=settings, per_pair=False, count_losses=False, device="cpu", threads=1
            )
            if turn:
                for stage, took in found.seconds.items():
                    total[stage] = total.get(stage, 0.0) + took / (runs * len(scenes))
    return total


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
