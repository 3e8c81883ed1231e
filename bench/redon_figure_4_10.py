"""How many recession vectors do boxes need, and what memory do they take (Redon, figures 4.10, 4.11)?

Cones of size 0 (never cull), 1, 2, … on the tree of a door of 3,530 triangles, 7,059 boxes, and of a bumpy torus of as
many, whose normals point everywhere; top-down and bottom-up, built as printed (for r_max = 6 and 9: with fewer vectors
that takes minutes) and by hulls, which leave out vectors that others imply. Memory is measured and compared with
formula (4.14).
"""

from __future__ import annotations

import numpy as np

from bench.harness import Report, count
from tangere.bvh.obb import ObbTree
from tangere.bvh.recession import RecessionCones
from tangere.published.redon_recession import memory_model
from tangere.shape import generate

FEATURES = ["F-R-47"]

#: Number of cones of each size, top-down and bottom-up (two rows of the thesis do not add up to 7,059).
PRINTED = {
    3: ([1393, 3494, 1234, 938], [2184, 3279, 1079, 517]),
    6: ([678, 3494, 1234, 591, 345, 235, 484], [1679, 3279, 1081, 477, 246, 153, 144]),
    9: ([504, 3494, 1234, 591, 345, 235, 175, 124, 82, 275], [1569, 3279, 1079, 477, 246, 153, 107, 66, 49, 34]),
}


def run(report: Report, quick: bool = False) -> None:
    parts = {"door": generate.door_panel(), "bumpy torus": generate.torus(3528, bumps=0.1)}
    rows, memory = [], []
    for most in (6,) if quick else tuple(PRINTED):
        for k, way in enumerate(("top-down", "bottom-up")):
            for name, mesh in parts.items():
                for builder in ("published", "hull") if most > 3 else ("hull",):
                    cones = RecessionCones.build(mesh, ObbTree.of(mesh, "cpu"), most=most, attach=way, builder=builder)
                    rows.append([f"{name}, {builder}", most, way, *_row(np.bincount(cones.sizes))])
                    expected = memory_model(cones.sizes)
                    off = f"{cones.memory - expected:+d} B"
                    memory.append(
                        [f"{name}, {builder}", most, way, count(cones.sizes.sum()), cones.memory, expected, off]
                    )
            rows.append(["thesis", most, way, *_row(PRINTED[most][k])])
    report.table(["", "r_max", "attached", *(f"size {k}" for k in range(10))], rows)
    report.section("Memory")
    report.table(["", "r_max", "attached", "vectors", "bytes", "formula (4.14)", "difference"], memory)
    report.note(
        """The formula counts 24 bytes a vector and 4 bytes a box for where its vectors begin; the array has one such
        entry more than there are boxes. The thesis needs 309 KiB top-down and 222 KiB bottom-up at r_max = 6."""
    )


def _row(sizes) -> list[int | None]:
    return [int(sizes[k]) if k < len(sizes) else None for k in range(10)]
