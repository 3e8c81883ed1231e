"""Deforming bodies: the grid against trees of boxes with a given depth, as simulators have them.

Experiment E3, table 4.6 of the document, which compares with SOFA's tree of depth 12. The baseline here is such a tree:
triangles halved along the longest axis down to a depth, boxes refitted at every step or the tree built anew, leaves
against leaves. Its pairs go through the same distance tests, so the contacts must be equal, and are compared. Frames
are recorded from tangere's own simulation.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial

import numpy as np
import warp as wp

from bench.harness import Report, ratio
from bench.leonard_table_4_1 import DISTANCE, FRAMES, RUNS, SCENES, frames
from tangere.partition.broad_phase_boxes import EMPTY, Box, boxes_overlap, triangle_boxes
from tangere.partition.pipeline import Settings
from tangere.partition.pipeline_surfaces import Surfaces
from tangere.query.proximity import Detector, detect
from tangere.query.proximity.near import describe
from tangere.query.proximity.owned import near_features
from tangere.query.proximity.tree_search import joined
from tangere.runtime import SOUND, collect, launch, take, using_threads
from tangere.shape import Mesh

wp.set_module_options(SOUND)

FEATURES = ["F-L-4", "F-L-72", "F-L-85"]

DEPTHS = (4, 6, 8, 10, 12)
#: Printed [ms]: SOFA, and the document's grid.
PRINTED = {"tori 3200": (0.69, 0.53), "tori 12800": (2.97, 2.41), "knot 3960": (35.51, 12.21)}


def run(report: Report, quick: bool = False) -> None:
    rows, sweep = [], []
    for name in ["tori 3200"] if quick else SCENES:
        scenes, within = frames(name, 2 if quick else FRAMES, quick), name.startswith("knot")
        runs = 1 if quick else RUNS if len(scenes[0][0].faces) < 20_000 else 2
        expected = [_grid(scene, within).key for scene in scenes]
        timed = {}
        for depth in DEPTHS[1:3] if quick else DEPTHS:
            for variant in ("refit", "rebuild"):
                trees: dict[int, DepthTree] = {}
                ask = partial(_baseline, within=within, depth=depth, rebuild=variant == "rebuild", trees=trees)
                timed[depth, variant] = _mean(ask, scenes, runs if variant == "refit" else 1, expected)
        best = min(timed, key=lambda key: timed[key])
        grid = _mean(partial(_grid, within=within), scenes, runs, expected)
        detector = Detector(scenes[0], distance=DISTANCE, within=within, between=not within, device="cpu", threads=1)
        kept = _mean(lambda scene, d=detector: d.contacts([m.vertices for m in scene]), scenes, runs, expected)
        sofa, printed = PRINTED.get(name, (None, None))
        deepest = timed[max(depth for depth, _ in timed), "refit"]
        rows.append(
            [name, *(f"{1e3 * t:.2f}" for t in (deepest, timed[best], grid, kept))]
            + [f"{best[0]}, {best[1]}", ratio(timed[best], grid), ratio(timed[best], kept)]
            + ["-" if sofa is None else f"{sofa} / {printed} ({sofa / printed:.2f}x)"]
        )
        sweep += [
            [name, variant, *(f"{1e3 * timed[d, variant]:.2f}" for d, v in timed if v == variant)]
            for variant in ("refit", "rebuild")
        ]
    report.section("Milliseconds a step (table 4.6)")
    columns = ["scene", f"tree, depth {max(d for d, _ in timed)}", "best tree", "grid", "kept trees", "best is"]
    report.table([*columns, "best / grid", "best / kept", "printed: SOFA / grid"], rows)
    report.note(
        f"""Everything on one CPU thread, to the full list of contacts, means of {runs if quick else RUNS} runs (51,200
        triangles: 2; trees built anew: 1) over {len(scenes)} frames. In every frame all contacts are equal: checked.
        "Kept trees" is `Detector`."""
    )
    report.section("By depth [ms]")
    report.table(["scene", "tree", *(str(d) for d, v in timed if v == "refit")], sweep)


@dataclass(frozen=True)
class DepthTree:
    """Triangles of a mesh halved along the longest axis; node k has children 2k and 2k + 1, leaves are the last."""

    order: wp.array  #: triangles, leaf after leaf
    first: wp.array  #: (leaves + 1,) where each leaf begins
    leaves: int

    @staticmethod
    def built(mesh: Mesh, depth: int) -> DepthTree:
        centres = mesh.vertices[mesh.faces].mean(axis=1)
        depth = min(depth, max(0, int(np.log2(len(centres)))))
        pieces = [np.arange(len(centres))]
        for _ in range(depth):
            halves = []
            for piece in pieces:
                axis = int(np.argmax(np.ptp(centres[piece], axis=0)))
                piece = piece[np.argpartition(centres[piece, axis], len(piece) // 2)]
                halves += [piece[: len(piece) // 2], piece[len(piece) // 2 :]]
            pieces = halves
        first = np.concatenate([[0], np.cumsum([len(piece) for piece in pieces])])
        arrays = (wp.array(a, dtype=wp.int32, device="cpu") for a in (np.concatenate(pieces), first))
        return DepthTree(*arrays, leaves=len(pieces))

    def fitted(self, boxes: wp.array, base: int) -> wp.array:
        """Boxes of all nodes, from those of the triangles."""
        nodes = wp.empty(2 * self.leaves, dtype=Box, device="cpu")
        launch(_fit, self.leaves, [self.order, self.first, self.leaves, base, boxes], [nodes], device=nodes.device)
        launch(_merge, 1, [self.leaves], [nodes], device=nodes.device)
        return nodes


def _grid(scene: list[Mesh], within: bool):
    settings = Settings(within=within, between=not within)
    return detect(scene, distance=DISTANCE, settings=settings, count_losses=False, device="cpu", threads=1).contacts


def _baseline(scene: list[Mesh], within: bool, depth: int, rebuild: bool, trees: dict[int, DepthTree]):
    with using_threads(1):
        surfaces = Surfaces.of(scene, "cpu")
        boxes, bases = triangle_boxes(surfaces, DISTANCE), surfaces.layout.face_base.tolist()
        for k, mesh in enumerate(scene):
            if rebuild or k not in trees:
                trees[k] = DepthTree.built(mesh, depth)
        nodes = {k: tree.fitted(boxes, bases[k]) for k, tree in trees.items()}
        names = []
        for a, b in [(0, 0)] if within else [(0, 1)]:
            one, other = trees[a], trees[b]
            inputs = [one.order, one.first, nodes[a], one.leaves, bases[a], other.order, other.first, nodes[b]]
            inputs += [other.leaves, bases[b], int(a == b), boxes]
            pairs = collect(_leaf_pairs, one.leaves, inputs, wp.vec2i, device=surfaces.device, grain=16)
            names.append(near_features(surfaces, pairs, DISTANCE))
        return describe(surfaces, joined(names, surfaces.device)).contacts


def _mean(ask, scenes: list, runs: int, expected: list[np.ndarray]) -> float:
    """Mean time over scenes and runs [s], after a round in which the contacts are compared."""
    for scene, keys in zip(scenes, expected, strict=True):
        assert np.array_equal(ask(scene).key, keys), "the contacts differ"
    begin = time.perf_counter()
    for _ in range(runs):
        for scene in scenes:
            ask(scene)
    return (time.perf_counter() - begin) / (runs * len(scenes))


@wp.kernel
def _fit(
    first: int,
    order: wp.array[int],
    begins: wp.array[int],
    leaves: int,
    base: int,
    boxes: wp.array[Box],
    nodes: wp.array[Box],
):
    k = first + wp.tid()
    whole = Box(EMPTY)
    for place in range(begins[k], begins[k + 1]):
        whole = wp.min(whole, boxes[order[place] + base])
    nodes[leaves + k] = whole


@wp.kernel
def _merge(first: int, leaves: int, nodes: wp.array[Box]):
    k = leaves - 1
    while k > 0:
        nodes[k] = wp.min(nodes[2 * k], nodes[2 * k + 1])
        k = k - 1


@wp.kernel
def _leaf_pairs(
    first: int,
    shard: int,
    order_a: wp.array[int],
    begins_a: wp.array[int],
    nodes_a: wp.array[Box],
    leaves_a: int,
    base_a: int,
    order_b: wp.array[int],
    begins_b: wp.array[int],
    nodes_b: wp.array[Box],
    leaves_b: int,
    base_b: int,
    within: int,
    boxes: wp.array[Box],
    counts: wp.array[wp.int64],
    capacity: int,
    out: wp.array[wp.vec2i],
):
    """One leaf of a down the tree of b; within one tree only leaves that do not come before it."""
    k = first + wp.tid()
    whole = nodes_a[leaves_a + k]
    node = int(1)
    while node > 0:
        down = boxes_overlap(whole, nodes_b[node])
        if down and node < leaves_b:
            node = 2 * node
        else:
            m = node - leaves_b
            if down and (within == 0 or m >= k):
                for p in range(begins_a[k], begins_a[k + 1]):
                    i = order_a[p] + base_a
                    begin = begins_b[m]
                    if within == 1 and m == k:
                        begin = p + 1
                    for q in range(begin, begins_b[m + 1]):
                        j = order_b[q] + base_b
                        if boxes_overlap(boxes[i], boxes[j]):
                            place = take(counts, shard, 1, capacity)
                            if place >= 0:
                                out[place] = wp.vec2i(wp.min(i, j), wp.max(i, j))
            while (node & 1) == 1:
                node = node >> 1
            if node > 0:
                node = node + 1
