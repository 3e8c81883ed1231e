"""What is to be compared in a step of meshes: edges with edges, and vertices with faces both ways."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import warp as wp

from tangere.broad_phase.deforming import BvhSide, FittedMesh, Step, pairs
from tangere.query.first_contact.primitives.narrow_phase.features import EDGE_EDGE, VERTEX_FACE, FeaturePairKind
from tangere.runtime import SOUND, launch

wp.set_module_options(SOUND)


@dataclass(frozen=True)
class FeaturePairSearch:
    """One kind of pair between two bodies: edges with edges, or vertices of one with faces of the other."""

    features: FeaturePairKind
    first: BvhSide
    second: BvhSide
    vertex_on: int  #: 1 where the first side is body b

    def pairs(self, step: Step, keep: wp.Function, until: float, separation: float, sampled: bool) -> wp.array:
        return pairs(
            keep,
            self.first,
            self.second,
            step.start,
            step.end,
            until=until,
            margin=separation,
            sampled=sampled,
            sharing=False,
        )

    def queries(self, step: Step, found: wp.array) -> tuple[wp.array, wp.array]:
        """Feature numbers (n,) vec2i of places in the trees, and the four vertices of each query.

        Within one mesh the smaller edge comes first: the answer must not depend on the tree.
        """
        count, device = len(found), step.device
        numbers = wp.empty(count, dtype=wp.vec2i, device=device)
        quads = wp.empty(count, dtype=wp.vec4i, device=device)
        a, b = self.first, self.second
        ordered = int(a is b)
        inputs = [
            found,
            ordered,
            a.tree.items.shape[1],
            a.tree.order,
            a.tree.items,
            a.base,
            b.tree.order,
            b.tree.items,
            b.base,
        ]
        launch(_queries, count, inputs, [numbers, quads], device=device)
        return numbers, quads


def feature_pair_searches(bodies: list[FittedMesh]) -> Iterator[FeaturePairSearch]:
    """Edges with edges, then vertices with faces both ways; trees are fitted when a search comes up."""
    edges = [BvhSide(body.body.edges, body.edges, body.body.base) for body in bodies]
    yield FeaturePairSearch(EDGE_EDGE, edges[0], edges[-1], 0)
    a, b = bodies[0], bodies[-1]
    for vertex_on, (of_vertex, of_face) in enumerate([(a, b)] if a is b else [(a, b), (b, a)]):
        vertices = BvhSide(of_vertex.body.vertices, of_vertex.vertices, of_vertex.body.base)
        faces = BvhSide(of_face.body.faces, of_face.faces, of_face.body.base)
        yield FeaturePairSearch(VERTEX_FACE, vertices, faces, vertex_on)


def every_pair(search: FeaturePairSearch, device: wp.Device) -> wp.array:
    """All places (i, j) whose features share no vertex: the oracle of the tree."""
    a, b = search.first, search.second
    i, j = np.indices((len(a.tree.order), len(b.tree.order))).reshape(2, -1)
    if a is b:
        i, j = i[i < j], j[i < j]
    va, vb = a.tree.items.numpy()[i] + a.base, b.tree.items.numpy()[j] + b.base
    apart = ~(va[:, :, None] == vb[:, None, :]).any(axis=(1, 2))
    return wp.array(np.stack([i, j], axis=1)[apart].astype(np.int32), dtype=wp.vec2i, device=device)


@wp.kernel
def _queries(
    first: int,
    found: wp.array[wp.vec2i],
    ordered: int,
    width: int,
    order_a: wp.array[int],
    items_a: wp.array2d[int],
    base_a: int,
    order_b: wp.array[int],
    items_b: wp.array2d[int],
    base_b: int,
    numbers: wp.array[wp.vec2i],
    quads: wp.array[wp.vec4i],
):
    k = first + wp.tid()
    i = found[k][0]
    j = found[k][1]
    if ordered == 1 and order_a[i] > order_b[j]:
        other = i
        i = j
        j = other
    number_a = order_a[i]
    if width == 1:
        number_a = items_a[i, 0]  # loose vertices are not in the tree
    numbers[k] = wp.vec2i(number_a, order_b[j])
    quad = wp.vec4i()
    for c in range(4):
        if c < width:
            quad[c] = items_a[i, c] + base_a
        else:
            quad[c] = items_b[j, c - width] + base_b
    quads[k] = quad
