"""Deforming bodies: what do triangles of mixed sizes cost a uniform grid, a hierarchical one, and a tree?

Experiment E10: many small triangles over a table of two, which are 1 to 100 times as large. A grid whose cells fit the
largest triangle, as the document's does, has all others in a few cells then; levels of cells keep the cost flat.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from bench.harness import Report, count, measure
from tangere.broad_phase.triangles import Surfaces, triangle_pairs
from tangere.published.leonard_grid.pipeline import Settings, find_pairs
from tangere.shape.mesh import Mesh

FEATURES = ["F-L-69"]

#: Levels may take so many times as long when the largest triangle is 100 times as large.
NEARLY_FLAT = 1.5


def run(report: Report, quick: bool = False) -> None:
    triangles = 2_000 if quick else 20_000
    scenes = {f"{ratio:g}": Surfaces.of([small_over_large(triangles, ratio)], "cpu") for ratio in (1.0, 10.0, 100.0)}
    ways = {
        "cells of the largest": lambda s: find_pairs(s, 1e-3, Settings(cell=largest_box(s))).pairs,
        **{
            name: partial(triangle_pairs, distance=1e-3, broad_phase=name)
            for name in ("grid", "levels", "tree", "sweep")
        },
    }
    # All in turns: what grows with the sizes must not be what the machine did in the meantime.
    contenders = {f"{way}, {name}": partial(ask, s) for way, ask in ways.items() for name, s in scenes.items()}
    timings = measure(contenders, rounds=9, at_most=10.0)
    rows = []
    for name in scenes:
        each = [timings[f"{way}, {name}"] for way in ways]
        pairs = [np.sort(timing.result.numpy().reshape(-1, 2).astype(np.int64) @ [1 << 32, 1]) for timing in each]
        assert all(np.array_equal(pairs[0], other) for other in pairs), "not all ways find the same pairs"
        rows.append([name, count(len(each[0].result)), *each])
    report.section(f"Pairs of {triangles} triangles, one instant")
    report.table(["large / small", "pairs", *ways], rows)
    level = [timings[f"levels, {name}"].median for name in scenes]
    grows, beside = max(level) / level[0], level[0] / timings["grid, 1"].median
    verdict = "pass" if grows < NEARLY_FLAT else "fail"
    report.note(
        f"""Levels take at most x {grows:.2f} of what they take at 1 : 1 (nearly flat: below x {NEARLY_FLAT:g},
        {verdict}), and there x {beside:.2f} of what a uniform grid takes."""
    )


def small_over_large(triangles: int, ratio: float) -> Mesh:
    """Loose triangles of size 1 in a layer 16 deep, and a table of two triangles `ratio` times as large below."""
    rng = np.random.default_rng(7)
    side = np.sqrt(triangles / 0.4 / 16.0)
    corners = rng.random((triangles, 1, 3)) * [side, side, 16.0] + rng.random((triangles, 3, 3))
    table = ratio * np.array([[[0, 0, 0], [1, 0, 0], [1, 1, 0]], [[0, 0, 0], [1, 1, 0], [0, 1, 0]]], float)
    table += [0.5 * (side - ratio), 0.5 * (side - ratio), -0.1]
    corners = np.concatenate([corners, table])
    return Mesh(corners.reshape(-1, 3), np.arange(corners.size // 3).reshape(-1, 3))


def largest_box(surfaces: Surfaces) -> float:
    corners = surfaces.meshes[0].vertices[surfaces.meshes[0].faces]
    return float((corners.max(axis=1) - corners.min(axis=1)).max()) + 2e-3
