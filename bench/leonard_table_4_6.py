"""Deforming bodies: the grid against trees of boxes with a given depth, as simulators have them.

Experiment E3, table 4.6 of the document, which compares with SOFA's tree of depth 12. The baseline here is such a tree:
triangles halved along the longest axis down to a depth, boxes refitted at every step or the tree built anew, leaves
against leaves. Its pairs go through the same distance tests, so the contacts must be equal, and are compared. Frames
are every 40th step of tangere's own simulation.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial

import numpy as np
import warp as wp

from bench.harness import Report, ratio
from bench.leonard_table_4_1 import DISTANCE, EVERY, RUNS, SCENES, frames, settings_of
from tangere.broad_phase.triangles import EMPTY, Surfaces
from tangere.broad_phase.triangles.triangle_aabbs import Box, boxes_overlap, triangle_boxes
from tangere.published.leonard_grid import detect
from tangere.published.leonard_grid.pipeline import Settings
from tangere.query.contacts import Contacts
from tangere.query.proximity import Detector
from tangere.query.proximity.contact_buffer import describe
from tangere.query.proximity.representative_triangles import near_features
from tangere.runtime import SOUND, collect, launch, reserve_slots, using_threads
from tangere.shape.mesh import Mesh

wp.set_module_options(SOUND)

FEATURES = ["F-L-4", "F-L-72", "F-L-85"]

DEPTHS = (4, 6, 8, 10, 12)
#: Trees that are built anew at every step, which takes NumPy longer than the search.
REBUILT = (8, 12)
#: Printed [ms]: SOFA, and the document's grid.
PRINTED = {"tori 3200": (0.69, 0.53), "tori 12800": (2.97, 2.41), "knot 3960": (35.51, 12.21)}


def run(report: Report, quick: bool = False) -> None:
    rows, sweep, runs = [], [], 1 if quick else RUNS
    depths = [(depth, False) for depth in DEPTHS] + [(depth, True) for depth in REBUILT]
    for name in ["tori 3200"] if quick else SCENES:
        scenes, settings = frames(name, quick)[1::2], settings_of(name)
        on = {"device": "cpu", "threads": 1}
        detector = Detector(scenes[0], distance=DISTANCE, within=settings.within, between=settings.between, **on)
        asked = {
            "grid": partial(_grid, settings=settings),
            "kept": lambda scene, d=detector: d.contacts([mesh.vertices for mesh in scene]),
            **{(depth, rebuild): partial(_baseline, settings.within, depth, rebuild, {}) for depth, rebuild in depths},
        }
        timed = {way: 1e3 * took for way, took in _means(asked, scenes, runs).items()}
        best = min(depths, key=lambda key: timed[key])
        sofa, printed = PRINTED.get(name, (None, None))
        rows.append(
            [name, *(f"{t:.2f}" for t in (timed[12, False], timed[best], timed["grid"], timed["kept"]))]
            + [f"{best[0]}, {'built anew' if best[1] else 'refitted'}"]
            + [ratio(timed[best], timed[way]) for way in ("grid", "kept")]
            + ["-" if sofa is None else f"{sofa} / {printed} ({sofa / printed:.2f}x)"]
        )
        sweep.append([name, *(f"{timed[key]:.2f}" for key in depths)])
    report.section("Milliseconds a step (table 4.6)")
    columns = ["scene", "tree, depth 12", "best tree", "grid", "kept trees", "best is", "best / grid", "best / kept"]
    report.table([*columns, "printed: SOFA / grid"], rows)
    report.note(
        f"""Everything on one CPU thread, to the full list of contacts, means of {runs} runs, in turns, over every
        {2 * EVERY}th step. In every frame all contacts are equal: checked. "Kept trees" is `Detector`."""
    )
    report.section("By depth [ms]")
    report.table(["scene", *(f"{d}, built anew" if rebuild else f"{d}" for d, rebuild in depths)], sweep)


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


def _grid(scene: list[Mesh], settings: Settings) -> Contacts:
    return detect(scene, distance=DISTANCE, settings=settings, device="cpu", threads=1).contacts


def _baseline(within: bool, depth: int, rebuild: bool, trees: dict[int, DepthTree], scene: list[Mesh]) -> Contacts:
    """The contacts by trees, which are made when they are missing."""
    with using_threads(1):
        surfaces = Surfaces.of(scene, "cpu")
        boxes, bases = triangle_boxes(surfaces, DISTANCE), surfaces.layout.face_base.tolist()
        for k, mesh in enumerate(scene):
            if rebuild or k not in trees:
                trees[k] = DepthTree.built(mesh, depth)
        nodes = {k: tree.fitted(boxes, bases[k]) for k, tree in trees.items()}
        b = 0 if within else 1
        one, other = trees[0], trees[b]
        inputs = [one.order, one.first, nodes[0], one.leaves, bases[0], other.order, other.first, nodes[b]]
        inputs += [other.leaves, bases[b], int(within), boxes]
        pairs = collect(_leaf_pairs, one.leaves, inputs, wp.vec2i, device=surfaces.device, grain=16)
        return describe(surfaces, near_features(surfaces, pairs, DISTANCE)).contacts


def _means(asked: dict, scenes: list[list[Mesh]], runs: int) -> dict:
    """Mean time of each way over scenes and runs, in turns [s], after a round in which the contacts are compared."""
    expected = [asked["grid"](scene).key for scene in scenes]
    for ask in asked.values():
        for scene, keys in zip(scenes, expected, strict=True):
            assert np.array_equal(ask(scene).key, keys), "the contacts differ"
    total = dict.fromkeys(asked, 0.0)
    for _ in range(runs):
        for way, ask in asked.items():
            begin = time.perf_counter()
            for scene in scenes:
                ask(scene)
            total[way] += (time.perf_counter() - begin) / (runs * len(scenes))
    return total


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
                            slot = reserve_slots(counts, shard, 1, capacity)
                            if slot >= 0:
                                out[slot] = wp.vec2i(wp.min(i, j), wp.max(i, j))
            while (node & 1) == 1:
                node = node >> 1
            if node > 0:
                node = node + 1
