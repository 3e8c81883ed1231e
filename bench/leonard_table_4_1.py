"""Deforming bodies: boxes or spheres, and is a box around every feature worth it?

Experiment E1, tables 4.1 to 4.3 of the document: two tori, one of which falls on the other and slides off, over 300
steps of 20 ms, and a knot that collapses on itself over 370, at the document's numbers of triangles. Every 20th step of
tangere's own simulation is recorded once and replayed for detection. The document's machine was an i5-9400F at 4.1 GHz;
its material, contact distance and motion are not known, so trends can be compared, milliseconds hardly.
"""

from __future__ import annotations

import inspect
import os
import time
import zlib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bench.harness import Report, ratio
from tangere.broad_phase.triangles import Surfaces
from tangere.published.leonard_grid import detect
from tangere.published.leonard_grid.feature_tests import count_tests
from tangere.published.leonard_grid.pipeline import Settings
from tangere.shape.mesh import Mesh
from tangere.soft import scenes as simulated

FEATURES = ["F-L-30", "F-L-83", "F-L-88"]

#: Our guess of the document's contact distance [m].
DISTANCE = 0.55
RUNS = 10
#: A frame is kept every so many steps.
EVERY = 20
#: Triangles of the tori, and steps of each scene.
SCENES = {"tori 3200": (3_200, 300), "tori 12800": (12_800, 300), "tori 51200": (51_200, 300), "knot 3960": (None, 370)}
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
    pair_keys, runs = (["tori 3200", "knot 3960"], 1) if quick else (list(SCENES), RUNS)
    times, pairs, removed, losses, regions = [], [], [], [], []
    for name in pair_keys:
        scenes, plain = frames(name, quick), settings_of(name)
        balls = replace(plain, bounds="spheres")
        asked = [replace(bounds, primitive_boxes=boxes) for bounds in (balls, plain) for boxes in (True, False)]
        asked += [replace(plain, mode="published"), replace(plain, regions=False)]
        took = [
            1e3 * measured.mean for measured in in_turns(scenes, {s: {"settings": s} for s in asked}, runs).values()
        ]
        printed = PRINTED_MS[name]
        times.append([name, *(f"{t:.2f} / {p}" for t, p in zip(took, printed, strict=False)), f"{took[4]:.2f}"])
        counts = [np.array([_counts(scene, settings) for scene in scenes]) for settings in (balls, plain)]
        mean = [c[:, 0].mean() for c in counts]
        pairs.append([name, *(f"{n:.0f} / {p}" for n, p in zip(mean, PRINTED_PAIRS[name], strict=True))])
        part = [100.0 * c[:, 2].sum() / max(c[:, 1].sum(), 1) for c in counts]
        removed.append([name, *(f"{r:.1f} % / {p}" for r, p in zip(part, PRINTED_REMOVED[name], strict=True))])
        losses.append([name, *lost_by_published_rules(scenes, plain)])
        regions.append([name, f"{took[3]:.2f}", f"{took[5]:.2f}", ratio(took[5], took[3])])
    report.section("Time of detection per step [ms], ours / printed (table 4.1)")
    columns = ["spheres, feature boxes", "spheres", "boxes, feature boxes", "boxes", "boxes, published rules"]
    report.table(["scene", *columns], times)
    report.section("Pairs of triangles per step, ours / printed (table 4.2)")
    report.table(["scene", "spheres", "boxes"], pairs)
    report.section("Pairs of features removed by their boxes, ours / printed (table 4.3)")
    report.table(["scene", "spheres", "boxes"], removed)
    report.section("What the published rules lose, per step")
    report.table(["scene", "pairs of triangles", "of", "contacts", "of"], losses)
    report.section("With and without regions of interest [ms]")
    report.table(["scene", "in regions only", "all triangles", "ratio"], regions)
    report.note(
        f"""Sound mode unless said otherwise, on one CPU thread, from positions to the list of contacts; means of {runs}
        runs, in turns, over every {EVERY}th step. Contact distance {DISTANCE} m; the simulation itself holds its bodies
        some 0.15 m (knot: 0.4 m) apart."""
    )


def settings_of(name: str, **options: Any) -> Settings:
    """What is compared in a scene: the tori with each other, the knot with itself; in the stages of the document."""
    within = name.startswith("knot")
    return Settings(within=within, between=not within, **{"fused": False, **options})


@dataclass
class Measured:
    """Detections of one kind, over the frames of a scene, several times."""

    totals: list[float] = field(default_factory=list)  #: of each detection [s]
    runs: list[dict[str, float]] = field(default_factory=list)  #: of each run over all frames, mean of each stage [s]

    @property
    def mean(self) -> float:
        return float(np.mean(self.totals))

    @property
    def stages(self) -> dict[str, float]:
        """Mean of each stage [s]."""
        pair_keys = dict.fromkeys(stage for run in self.runs for stage in run)
        return {stage: float(np.mean([run.get(stage, 0.0) for run in self.runs])) for stage in pair_keys}


def in_turns(
    scenes: list[list[Mesh]], ways: Mapping[Hashable, Mapping[str, Any]], runs: int
) -> dict[Hashable, Measured]:
    """Detect the contacts of all scenes in several ways, in turns, `runs` times after an untimed round.

    Args:
        ways: options of `detect` by name; on one CPU thread unless they say otherwise.
    """
    measured = {name: Measured() for name in ways}
    for turn in range(runs + 1):
        for name, options in ways.items():
            taken = [_stages(scene, **{"device": "cpu", "threads": 1, **options}) for scene in scenes]
            if turn:
                measured[name].totals += [sum(stages.values()) for stages in taken]
                pair_keys = dict.fromkeys(stage for stages in taken for stage in stages)
                measured[name].runs.append(
                    {stage: float(np.mean([stages.get(stage, 0.0) for stages in taken])) for stage in pair_keys}
                )
    return measured


def _stages(scene: list[Mesh], device: str, **options: Any) -> dict[str, float]:
    """Seconds of each stage, from positions in main memory of which nothing is known yet."""
    fresh = [mesh.replace(vertices=mesh.vertices) for mesh in scene]
    begin = time.perf_counter()
    surfaces = Surfaces.of(fresh, device)
    taken = time.perf_counter() - begin
    return {"positions": taken} | detect(surfaces, distance=DISTANCE, count_losses=False, **options).seconds


@cache
def frames(name: str, quick: bool = False) -> list[list[Mesh]]:
    """The bodies of a scene at every 20th step of its simulation, recorded once and kept in the user's cache folder."""
    triangles, steps = SCENES[name]
    steps, every = (120, 60) if quick else (steps, EVERY)
    plan = inspect.getsource(simulated) + repr((triangles, steps, every))
    file = _cache_folder() / f"leonard-{name.replace(' ', '-')}-{steps // every}-{zlib.crc32(plan.encode()):08x}.npz"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(file, **_recorded(triangles, steps, every))
    with np.load(file) as kept:
        count = len(kept.files) // 2
        moved = [kept[f"positions {k}"].astype(float) for k in range(count)]
        meshes = [Mesh(moved[k][0], kept[f"faces {k}"], name=f"body {k}") for k in range(count)]
    return [
        [mesh.replace(vertices=x) for mesh, x in zip(meshes, each, strict=True)] for each in zip(*moved, strict=True)
    ]


def _recorded(triangles: int | None, steps: int, every: int) -> dict[str, np.ndarray]:
    """Faces of each body, and its positions at every so many steps, in single precision."""
    simulation = simulated.knot(device="cpu") if triangles is None else simulated.tori(triangles, device="cpu")
    kept = []
    for step in range(1, steps + 1):
        simulation.step()
        if step % every == 0:
            kept.append(simulation.meshes())
    faces = {f"faces {k}": mesh.faces for k, mesh in enumerate(kept[0])}
    return faces | {f"positions {k}": np.float32([meshes[k].vertices for meshes in kept]) for k in range(len(kept[0]))}


def _cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tangere-bench"


def lost_by_published_rules(scenes: list[list[Mesh]], settings: Settings) -> list[str]:
    """Mean pairs and contacts that only the sound rules find, each beside all of them."""
    published = replace(settings, mode="published")
    found = [detect(scene, distance=DISTANCE, settings=published, device="cpu") for scene in scenes]
    cells = []
    for what in ("pairs", "contacts"):
        lost = np.mean([f.losses.get(f"{what} lost", 0) for f in found])
        kept = np.mean([f.counts.get(what, 0) for f in found])
        cells += [f"{lost:.0f}", f"{lost + kept:.0f}"]
    return cells


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
