"""Trees over the vertices, edges and faces of a scene at an instant, with boxes made for one kind of question.

The order of a tree is made once, on CPU as eights (`WideBvh`), on CUDA as a tree of pairs (`CudaLbvh`); its boxes are
fitted to the positions of every instant, grown by half the contact distance. Nothing moves here, so a box is six codes
instead of the twelve of a moving box. Vertices are renumbered in the order of their tree, so that what is near in space
is near in memory, however a file lists it. One tree may hold all meshes of a scene, whose pairs and selves are then
searched at once, as Léonard proposes for GPUs (2021, section 5.4.2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from tangere.broad_phase.triangles import Surfaces
from tangere.bvh.wide import WideBvh, WideBvhBoxes
from tangere.query.proximity.cuda.lbvh import CudaLbvh, CudaLbvhBoxes
from tangere.query.proximity.engine import engine_of

#: Orders are made anew after so many questions: a mesh that crumples leaves them behind.
FITS_PER_ORDER = 64

#: The order of some features, made for where it is searched.
Tree = WideBvh | CudaLbvh


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
        engine = engine_of(device)
        order = engine.vertex_order(surfaces, used, hull)
        points, place = everywhere[order], np.zeros(int(layout.vertex_base[-1]), np.int32)
        place[order] = np.arange(len(order))

        def tree(items: np.ndarray, numbers: np.ndarray) -> Tree:
            return engine.build_tree(items, numbers, order, points, hull, device)

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
class PlacedVertices:
    """Where the vertices of trees are, in their order, and room for their boxes."""

    positions: wp.array  #: (n,) vec3d [m]
    vertices: WideBvhBoxes | CudaLbvhBoxes  #: grown by half the contact distance

    @staticmethod
    def empty(trees: FeatureTrees) -> PlacedVertices:
        """Room for the vertices of trees."""
        positions = wp.empty(trees.count, dtype=wp.vec3d, device=trees.vertices.numbers.device)
        return PlacedVertices(positions, trees.vertices.boxes())
