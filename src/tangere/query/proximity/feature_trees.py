"""Trees over the vertices, edges and faces of a scene at an instant, with boxes made for one kind of question.

The order of a tree is made once, on CPU as eights (`Bvh8`), on CUDA as a tree of pairs (`CudaLbvh`); its boxes are
fitted to the positions of every instant, grown by half the contact distance. Nothing moves here, so a box is six codes
instead of the twelve of a moving box. Vertices are renumbered in the order of their tree, so that what is near in space
is near in memory, however a file lists it. One tree may hold all meshes of a scene, whose pairs and selves are then
searched at once (specs/leonard-deformable-gpu C20, C21.7).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from tangere.broad_phase.triangles import Surfaces
from tangere.bvh.lbvh import LERP_ERROR, UNDERFLOW, Frame, LinearTree, code_below
from tangere.query.proximity.aabb_record import Record
from tangere.query.proximity.cpu.bvh8 import Bvh8, Bvh8Boxes
from tangere.query.proximity.cpu.compact_order import compact_order
from tangere.query.proximity.cuda.lbvh import CudaLbvh, CudaLbvhBoxes
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

__all__ = ["FeatureTrees", "Placed", "Tree", "placing"]

#: Orders are made anew after so many questions: a mesh that crumples leaves them behind.
FITS_PER_ORDER = 64

#: The order of some features, made for where it is searched.
Tree = Bvh8 | CudaLbvh


@dataclass(frozen=True)
class FeatureTrees:
    """The vertices, edges and faces of one mesh of a scene, or of all."""

    vertices: Tree
    edges: Tree
    faces: Tree
    count: int  #: of vertices

    @staticmethod
    def of(surfaces: Surfaces, body: int | None = None) -> FeatureTrees:
        """The trees of a mesh, or of all; kept with the topologies, and ordered anew now and then."""
        cache, key = surfaces.layout.cache, ("trees", body)
        trees, fits = cache.get(key, (None, 0))
        if trees is None or fits >= FITS_PER_ORDER:
            trees, fits = FeatureTrees.built(surfaces, body), 0
        cache[key] = (trees, fits + 1)
        return trees

    @staticmethod
    def built(surfaces: Surfaces, body: int | None = None) -> FeatureTrees:
        """The trees, ordered by where features are now."""
        layout, device = surfaces.layout, surfaces.device
        chosen = range(len(surfaces.meshes)) if body is None else range(body, body + 1)
        bounds = np.array([surfaces.meshes[k].bounds for k in chosen])
        hull = np.stack([bounds[:, 0].min(axis=0), bounds[:, 1].max(axis=0)])
        used = np.concatenate([np.unique(surfaces.meshes[k].faces) + layout.vertex_base[k] for k in chosen])
        everywhere = surfaces.positions.numpy()
        if device.is_cpu:
            order = used[compact_order(np.arange(len(used), dtype=np.int32)[:, None], everywhere[used])]
        else:
            named = wp.array(used[:, None], dtype=wp.int32, device=device)
            order = used[LinearTree.build(named, surfaces.positions, hull).order.numpy()]
        points, place = everywhere[order], np.zeros(int(layout.vertex_base[-1]), np.int32)
        place[order] = np.arange(len(order))
        on_device = wp.array(points, dtype=wp.vec3d, device=device)

        def tree(items: np.ndarray, numbers: np.ndarray) -> Tree:
            if device.is_cuda:
                return CudaLbvh.of(items, on_device, hull, numbers)
            where = compact_order(items, points) if items.shape[1] > 1 else slice(None)
            return Bvh8.of(items[where], numbers[where], order)

        def part(features: wp.array, base: np.ndarray) -> Tree:
            numbers = np.arange(base[chosen.start], base[chosen.stop], dtype=np.int32)
            return tree(place[features.numpy()[numbers]], numbers)

        return FeatureTrees(
            tree(np.arange(len(order), dtype=np.int32)[:, None], order),
            part(layout.edges, layout.edge_base),
            part(layout.faces, layout.face_base),
            len(order),
        )


@dataclass(frozen=True)
class Placed:
    """Where the vertices of trees are, in their order, and room for their boxes."""

    positions: wp.array  #: (n,) vec3d [m]
    vertices: Bvh8Boxes | CudaLbvhBoxes  #: grown by half the contact distance

    @staticmethod
    def empty(trees: FeatureTrees) -> Placed:
        """Room for the vertices of trees."""
        positions = wp.empty(trees.count, dtype=wp.vec3d, device=trees.vertices.numbers.device)
        return Placed(positions, trees.vertices.boxes())


def placing(
    trees: FeatureTrees, placed: Placed, positions: wp.array, distance: float, frame: Frame
) -> tuple[wp.Kernel, int, list[Any]]:
    """On CUDA, kernel, number of indices and arguments of the launch that places vertices and makes their boxes.

    Args:
        positions: of all vertices of a scene, (v,) vec3d [m].
        frame: where boxes are kept.
    """
    assert isinstance(placed.vertices, CudaLbvhBoxes)
    inputs = [positions, trees.vertices.numbers, 0.5 * distance, wp.vec3d(*frame.origin), frame.scale]
    return _place, trees.count, [*inputs, placed.positions, placed.vertices.items]


@wp.kernel
def _place(
    first: int,
    positions: wp.array[wp.vec3d],
    numbers: wp.array[int],
    margin: wp.float64,
    origin: wp.vec3d,
    scale: wp.float64,
    placed: wp.array[wp.vec3d],
    boxes: wp.array[Record],
):
    i = first + wp.tid()
    p = positions[numbers[i]]
    placed[i] = p
    box = Record()
    for k in range(3):
        room = LERP_ERROR * (wp.abs(p[k]) + wp.abs(origin[k]) + margin) + margin + UNDERFLOW
        box[k] = code_below((p[k] - origin[k] - room) * scale)
        box[3 + k] = code_below((origin[k] - p[k] - room) * scale)
    boxes[i] = box
