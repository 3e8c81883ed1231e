"""Which sharp edge crosses each sharp edge nearest: contacts that no vertex sees.

Where two surfaces are smooth, vertices near the crossing of two edges tell the same gap as the edges do. Where both are
sharp, as two boxes that meet edge to edge, or end, as the rims of sheets, only the edges know. So contacts are looked
for between edges that are sharp at rest, and where the nearest points lie inside both (Léonard 2021, section 3.7.2).
A smooth body has no such edge, and pays nothing. Rims of a cut touch as walls do (`activation`).
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.bvh.lbvh import LinearTree, MovingBox, TreeArrays, boxes_meet
from tangere.geometry.closest_points import edges_offset, nearest_on_edges
from tangere.runtime import SOUND, launch
from tangere.soft.contact.activation import REACH, activation, vertex_normal
from tangere.soft.model.assembled_bodies import STILL, WALL, AssembledBodies, SurfaceArrays, sharp_edges

wp.set_module_options(SOUND)

#: Edges worth a thread.
GRAIN = 256


class SharpEdges:
    """The sharp edges of all surfaces, in a tree of their own."""

    def __init__(self, assembly: AssembledBodies) -> None:
        self._assembly, whole = assembly, assembly.rest_mesh
        number, device = sharp_edges(whole), assembly.device
        self.count = len(number)  #: how many there are, in arrays with room for more
        self.number = wp.array(number, dtype=wp.int32, device=device)  #: (m,) in the list of all edges
        self.ends = wp.array(whole.edges[number], dtype=wp.int32, device=device)  #: (m, 2)
        self.tree = LinearTree.build(self.ends, assembly.surface.rest, whole.bounds) if self.count else None
        room = _spare_edges(assembly)
        if room and self.tree is not None:
            roomy, scanty = (int(np.ceil(np.log2(room / part))) for part in (4, 32))
            clusters = 1 << max(4, min(8, roomy), scanty)
            self.tree = self.tree.with_room(clusters)
            self.number = wp.array(np.concatenate([number, np.zeros(room, int)]), dtype=wp.int32, device=device)
            ends = np.concatenate([whole.edges[number], np.zeros((room, 2), int)])
            self.ends = wp.array(ends, dtype=wp.int32, device=device)

    def find_nearest(
        self, boxes: wp.array, positions: wp.array, distance: float, base: int, partners: wp.array
    ) -> None:
        """Writes the edge that crosses edge k nearest to place base + k of `partners`, both as numbers of sharp edges.

        Args:
            boxes: of the surface vertices, grown by half of what contacts are looked for.
            positions: of the surface vertices [m].
            distance: below which surfaces touch [m].
            partners: int32; -1 is written where nothing is near.
        """
        assembly, tree = self._assembly, self.tree
        if tree is None:
            return
        fitted = tree.fit(boxes)
        inputs = [self.ends, boxes, tree.arrays, fitted.nodes, fitted.items]
        inputs += [positions, assembly.surface, distance, base]
        count = len(self.ends) if assembly.device.is_cuda else self.count  # what is captured has all there is room for
        launch(_nearest, count, inputs, [partners], device=assembly.device, grain=GRAIN)


def _spare_edges(assembly: AssembledBodies) -> int:
    """Sharp edges that cuts may add: those of walls meet the skin in a line, those of sheets have two rims."""
    if not assembly.has_room:
        return 0
    spare = np.diff(assembly.vertex_base) - [len(body.surface.vertices) for body in assembly.current]
    of_sheets = [2 * more for more, body in zip(spare, assembly.current, strict=True) if not body.is_solid]
    return len(assembly.surface.rest) // 4 + int(sum(of_sheets))


@wp.func
def rims_of_cut(v0: int, v1: int, w0: int, w1: int, surface: SurfaceArrays) -> bool:
    """Whether both are edges on walls of one body."""
    at_cut = surface.traits[v0] & surface.traits[v1] & surface.traits[w0] & surface.traits[w1] & WALL
    return at_cut != 0 and surface.body[v0] == surface.body[w0]


@wp.func
def outside_each_other(
    v0: int, v1: int, w0: int, w1: int, offset: wp.vec3d, positions: wp.array[wp.vec3d], surface: SurfaceArrays
) -> bool:
    """Whether the way between two edges leaves the body at both; `offset` goes from the second to the first."""
    ours = vertex_normal(v0, positions, surface) + vertex_normal(v1, positions, surface)
    theirs = vertex_normal(w0, positions, surface) + vertex_normal(w1, positions, surface)
    return wp.dot(ours, offset) < wp.float64(0.0) and wp.dot(theirs, offset) > wp.float64(0.0)


@wp.kernel
def _nearest(
    first: int,
    edges: wp.array2d[int],
    boxes: wp.array[MovingBox],
    tree: TreeArrays,
    nodes: wp.array[MovingBox],
    items: wp.array[MovingBox],
    positions: wp.array[wp.vec3d],
    surface: SurfaceArrays,
    distance: wp.float64,
    base: int,
    partners: wp.array[int],
):
    i = first + wp.tid()
    v0 = edges[i, 0]
    v1 = edges[i, 1]
    if v0 == v1:  # a place that is free
        partners[base + i] = -1
        return
    box = wp.min(boxes[v0], boxes[v1])
    still = surface.traits[v0] & surface.traits[v1] & STILL
    nearest = int(-1)
    least = wp.float64(1.0e300)
    node = int(0)
    while node < tree.skip.shape[0]:
        if not boxes_meet(box, nodes[node]):
            node = tree.skip[node]
        elif tree.cluster[node] < 0:
            node = node + 1
        else:
            for place in range(tree.first[node], tree.last[node] + 1):
                if boxes_meet(box, items[place]):
                    j = tree.order[place]
                    w0 = edges[j, 0]
                    w1 = edges[j, 1]
                    apart_features = v0 != w0 and v0 != w1 and v1 != w0 and v1 != w1
                    if apart_features and (still & surface.traits[w0] & surface.traits[w1]) == 0:
                        at = nearest_on_edges(positions[v0], positions[v1], positions[w0], positions[w1])
                        inside = wp.min(wp.min(at[0], at[1]), wp.float64(1.0) - wp.max(at[0], at[1]))
                        if inside > wp.float64(0.0):
                            offset = edges_offset(positions[v0], positions[v1], positions[w0], positions[w1], at)
                            gap = wp.length(offset)
                            apart = wp.length(
                                edges_offset(surface.rest[v0], surface.rest[v1], surface.rest[w0], surface.rest[w1], at)
                            )
                            walls = rims_of_cut(v0, v1, w0, w1, surface)
                            same_body = surface.body[v0] == surface.body[w0] and not walls
                            if gap < REACH * activation(distance, apart, same_body):
                                if gap < least or (gap == least and j < nearest):
                                    if not walls or outside_each_other(v0, v1, w0, w1, offset, positions, surface):
                                        least = gap
                                        nearest = j
            node = tree.skip[node]
    partners[base + i] = nearest
