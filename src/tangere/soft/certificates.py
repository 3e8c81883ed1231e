"""Which patches deform so smoothly over a step that no feature of them can meet one around them.

A patch and its surroundings are compared with an affine map of how they lay once: x = c + F X + e. If R was then the
least distance of an edge of the patch and a triangle around it that do not share a vertex, their distance is at least
s R - e1 - e2, with the largest |e| of the patch and of all, and s a lower bound of the smallest singular value of F
over the whole step. Where that is positive the patch is certified: any rotation, stretch and drift passes, folds and
creases do not. Sound for every vertex on a straight way at its own constant pace: F, c and e are then linear in time.

"Once" is at rest, and for a patch that is too far from that now, where the step begins: then R is found anew, which
takes about as long as searching the patch twice, and lasts for some steps. (On CUDA one thread would take too long for
that, and searching is cheap.) What such a certificate covers a search would find apart as well, but for pairs that turn
a lot. Which contacts a step responds to must not depend on how things came where they are: there only rest counts
(`near_rest`).
"""

from __future__ import annotations

import warp as wp

from tangere.bound import LinearTree
from tangere.runtime import SOUND, launch
from tangere.soft.assembly import CLOSED
from tangere.soft.patch_layout import PatchLists
from tangere.soft.separation import further, nearest_way

wp.set_module_options(SOUND)

__all__ = ["Certificates"]

#: Patches worth a thread: each takes some microseconds.
GRAIN = 32
#: Rounds of the bound on the smallest singular value.
BOUND_ROUNDS = wp.constant(16)
#: Steps to wait before a patch that has no certificate even from where it is now is looked at anew.
PATIENCE = wp.constant(8)
#: Distances are right to far more digits than this.
ROUNDED = wp.constant(wp.float64(1.0 - 1.0e-9))


class Certificates:
    """Says which patches are apart from their surroundings, 1 for those that are."""

    def __init__(self, tree: LinearTree, lists: PatchLists, edges: wp.array) -> None:
        device = edges.device
        assert device is not None
        self._device, self._tree, self._lists, self._edges = device, tree, lists, edges
        self._certified, self._near = (wp.zeros(lists.count, dtype=wp.int32, device=device) for _ in range(2))
        self._rest = [lists.rest, lists.dual, lists.tangents, lists.apart]
        self._once = [wp.clone(array) for array in self._rest] if device.is_cpu else self._rest
        self._wait = wp.zeros(lists.count, dtype=wp.int32, device=device)
        self._middles = wp.empty(len(edges), dtype=wp.vec4d, device=device)

    def __call__(self, start: wp.array, end: wp.array, least: float, changed: wp.array, wanted: wp.array) -> wp.array:
        """Certify moves from start to end, during which features stay further apart than `least` [m].

        Args:
            changed: (c,) uint8, clusters whose moves are new; patches without one keep what they had.
            wanted: nothing is done if its first number (int32) is 0.
        """
        lists, tree = self._lists, self._tree
        once = [lists.around_offsets, lists.around, lists.own, *self._once]
        near = [lists.cluster_offsets, lists.clusters, changed, wanted]
        moves = [start, end, least]
        launch(_certify, lists.count, [*near, *once, *moves], [self._certified], device=self._device, grain=GRAIN)
        if self._device.is_cpu:
            inputs = [*near, *once, lists.edge_offsets, lists.patch_edges, self._edges]
            inputs += [tree.clusters, tree.first, tree.last, tree.items, lists.reach, *moves]
            launch(
                _renew,
                lists.count,
                inputs,
                [self._middles, self._wait, self._certified],
                device=self._device,
                grain=GRAIN,
            )
        return self._certified

    def near_rest(self, positions: wp.array, traits: wp.array) -> wp.array:
        """Certify patches of open surfaces where they are, by how they lay at rest and nothing else."""
        lists = self._lists
        inputs = [traits, lists.around_offsets, lists.around, lists.own, *self._rest, positions]
        launch(_near_rest, lists.count, inputs, [self._near], device=self._device, grain=GRAIN)
        return self._near


@wp.func
def smallest_stretch(f: wp.mat33d) -> wp.float64:
    """A lower bound of the smallest singular value: s3 >= 2 |det| / (|F|^2 - s3^2), from below."""
    determinant = wp.float64(2.0) * wp.abs(wp.determinant(f))
    squared = wp.ddot(f, f)
    bound = wp.float64(0.0)
    if squared > wp.float64(0.0):
        for _ in range(BOUND_ROUNDS):
            bound = determinant / (squared - bound * bound)
    return bound


@wp.func
def across_filled(f: wp.mat33d, tangents: wp.mat33d) -> wp.mat33d:
    """A map along the tangents, completed by how their normal turns."""
    return f + wp.outer(wp.normalize(wp.cross(f * tangents[0], f * tangents[1])), tangents[2])


@wp.func
def holds(
    p: int,
    offsets: wp.array[int],
    vertices: wp.array[int],
    own: wp.array[int],
    rest: wp.array[wp.vec3d],
    dual: wp.array[wp.vec3d],
    tangents: wp.array[wp.mat33d],
    apart: wp.array[wp.float64],
    start: wp.array[wp.vec3d],
    end: wp.array[wp.vec3d],
    least: wp.float64,
) -> bool:
    half = wp.float64(0.5)
    begin = offsets[p]
    stop = offsets[p + 1]
    if apart[p] <= wp.float64(0.0):
        return False
    centre0 = start[vertices[begin]]
    centre1 = end[vertices[begin]]
    mean0 = wp.vec3d()
    mean1 = wp.vec3d()
    f0 = wp.mat33d()
    f1 = wp.mat33d()
    for e in range(begin, stop):  # duals add up to zero: any centre gives the same map
        v = vertices[e]
        from0 = start[v] - centre0
        from1 = end[v] - centre1
        mean0 += from0
        mean1 += from1
        f0 += wp.outer(from0, dual[e])
        f1 += wp.outer(from1, dual[e])
    centre0 += mean0 / wp.float64(stop - begin)
    centre1 += mean1 / wp.float64(stop - begin)
    f0 = across_filled(f0, tangents[p])
    f1 = across_filled(f1, tangents[p])
    worst = wp.float64(0.0)
    worst_own = wp.float64(0.0)
    for e in range(begin, stop):
        e0 = start[vertices[e]] - centre0 - f0 * rest[e]
        e1 = end[vertices[e]] - centre1 - f1 * rest[e]
        squared = wp.max(wp.dot(e0, e0), wp.dot(e1, e1))
        worst = wp.max(worst, squared)
        if own[e] == 1:
            worst_own = wp.max(worst_own, squared)
    change = f1 - f0
    stretch = smallest_stretch(half * (f0 + f1)) - half * wp.sqrt(wp.ddot(change, change))
    return stretch * apart[p] > wp.sqrt(worst_own) + wp.sqrt(worst) + least


@wp.func
def asked(
    p: int, cluster_offsets: wp.array[int], clusters: wp.array[int], changed: wp.array[wp.uint8], wanted: wp.array[int]
) -> bool:
    """Whether a cluster of the patch, or one around it, goes elsewhere than before."""
    if wanted[0] == 1:
        for c in range(cluster_offsets[p], cluster_offsets[p + 1]):
            if changed[clusters[c]] != wp.uint8(0):
                return True
    return False


@wp.kernel
def _certify(
    first: int,
    cluster_offsets: wp.array[int],
    clusters: wp.array[int],
    changed: wp.array[wp.uint8],
    wanted: wp.array[int],
    offsets: wp.array[int],
    vertices: wp.array[int],
    own: wp.array[int],
    rest: wp.array[wp.vec3d],
    dual: wp.array[wp.vec3d],
    tangents: wp.array[wp.mat33d],
    apart: wp.array[wp.float64],
    start: wp.array[wp.vec3d],
    end: wp.array[wp.vec3d],
    least: wp.float64,
    certified: wp.array[int],
):
    p = first + wp.tid()
    if asked(p, cluster_offsets, clusters, changed, wanted):
        certified[p] = int(holds(p, offsets, vertices, own, rest, dual, tangents, apart, start, end, least))


@wp.kernel
def _near_rest(
    first: int,
    traits: wp.array[int],
    offsets: wp.array[int],
    vertices: wp.array[int],
    own: wp.array[int],
    rest: wp.array[wp.vec3d],
    dual: wp.array[wp.vec3d],
    tangents: wp.array[wp.mat33d],
    apart: wp.array[wp.float64],
    positions: wp.array[wp.vec3d],
    certified: wp.array[int],
):
    p = first + wp.tid()
    certified[p] = 0
    if apart[p] > wp.float64(0.0):  # others may have nothing around them
        if (traits[vertices[offsets[p]]] & CLOSED) == 0:
            least = wp.float64(0.0)
            held = holds(p, offsets, vertices, own, rest, dual, tangents, apart, positions, positions, least)
            certified[p] = int(held)


@wp.func
def least_apart(
    p: int,
    edge_offsets: wp.array[int],
    patch_edges: wp.array[int],
    edges: wp.array2d[int],
    cluster_offsets: wp.array[int],
    clusters: wp.array[int],
    nodes: wp.array[int],
    node_first: wp.array[int],
    node_last: wp.array[int],
    items: wp.array2d[int],
    x: wp.array[wp.vec3d],
    reach: wp.float64,
    middles: wp.array[wp.vec4d],
) -> wp.float64:
    """The least distance of an edge of the patch and a face around it without a common vertex, at most the reach."""
    half = wp.float64(0.5)
    for e in range(edge_offsets[p], edge_offsets[p + 1]):
        one = x[edges[patch_edges[e], 0]]
        other = x[edges[patch_edges[e], 1]]
        middle = half * (one + other)
        middles[e] = wp.vec4d(middle[0], middle[1], middle[2], half * wp.length(other - one))
    least = reach + wp.float64(0.0)
    for c in range(cluster_offsets[p], cluster_offsets[p + 1]):
        node = nodes[clusters[c]]
        centre = wp.vec3d()
        for j in range(node_first[node], node_last[node] + 1):
            centre += x[items[j, 0]] + x[items[j, 1]] + x[items[j, 2]]
        centre = centre / wp.float64(3 * (node_last[node] - node_first[node] + 1))
        size = wp.float64(0.0)
        for j in range(node_first[node], node_last[node] + 1):
            for k in range(3):
                size = wp.max(size, wp.length_sq(x[items[j, k]] - centre))
        size = wp.sqrt(size)
        for e in range(edge_offsets[p], edge_offsets[p + 1]):
            middle = wp.vec3d(middles[e][0], middles[e][1], middles[e][2])
            enough = least + size + middles[e][3]
            if wp.length_sq(middle - centre) < enough * enough:
                v0 = edges[patch_edges[e], 0]
                v1 = edges[patch_edges[e], 1]
                for j in range(node_first[node], node_last[node] + 1):
                    i0 = items[j, 0]
                    i1 = items[j, 1]
                    i2 = items[j, 2]
                    if i0 != v0 and i1 != v0 and i2 != v0 and i0 != v1 and i1 != v1 and i2 != v1:
                        if not further(x[v0], x[v1], x[i0], x[i1], x[i2], least):
                            least = wp.min(least, wp.length(nearest_way(x[v0], x[v1], x[i0], x[i1], x[i2])))
    return least


@wp.kernel
def _renew(
    first: int,
    cluster_offsets: wp.array[int],
    clusters: wp.array[int],
    changed: wp.array[wp.uint8],
    wanted: wp.array[int],
    offsets: wp.array[int],
    vertices: wp.array[int],
    own: wp.array[int],
    rest: wp.array[wp.vec3d],
    dual: wp.array[wp.vec3d],
    tangents: wp.array[wp.mat33d],
    apart: wp.array[wp.float64],
    edge_offsets: wp.array[int],
    patch_edges: wp.array[int],
    edges: wp.array2d[int],
    nodes: wp.array[int],
    node_first: wp.array[int],
    node_last: wp.array[int],
    items: wp.array2d[int],
    reach: wp.float64,
    start: wp.array[wp.vec3d],
    end: wp.array[wp.vec3d],
    least: wp.float64,
    middles: wp.array[wp.vec4d],
    wait: wp.array[int],
    certified: wp.array[int],
):
    """Where there is no certificate, compare from now on with how the patch lies when this step begins."""
    p = first + wp.tid()
    if certified[p] == 1 or apart[p] <= wp.float64(0.0):
        return
    if not asked(p, cluster_offsets, clusters, changed, wanted):
        return
    if wait[p] > 0:
        wait[p] = wait[p] - 1
        return
    wait[p] = PATIENCE
    middle = wp.vec3d()
    for e in range(offsets[p], offsets[p + 1]):
        middle += start[vertices[e]]
    middle = middle / wp.float64(offsets[p + 1] - offsets[p])
    normal = wp.vec3d()
    for c in range(cluster_offsets[p], cluster_offsets[p + 1]):
        node = nodes[clusters[c]]
        for j in range(node_first[node], node_last[node] + 1):
            a = start[items[j, 0]]
            normal += wp.cross(start[items[j, 1]] - a, start[items[j, 2]] - a)
    normal = wp.normalize(normal)
    aside = wp.vec3d(wp.float64(1.0), wp.float64(0.0), wp.float64(0.0))
    if wp.abs(normal[0]) > wp.float64(0.7):
        aside = wp.vec3d(wp.float64(0.0), wp.float64(1.0), wp.float64(0.0))
    one = wp.normalize(wp.cross(normal, aside))
    other = wp.cross(normal, one)
    aa = wp.float64(0.0)
    ab = wp.float64(0.0)
    bb = wp.float64(0.0)
    for e in range(offsets[p], offsets[p + 1]):
        r = start[vertices[e]] - middle
        u = wp.dot(r, one)
        w = wp.dot(r, other)
        aa += u * u
        ab += u * w
        bb += w * w
    determinant = aa * bb - ab * ab
    if not (determinant > wp.float64(1.0e-9) * aa * bb):
        return
    for e in range(offsets[p], offsets[p + 1]):
        r = start[vertices[e]] - middle
        u = wp.dot(r, one)
        w = wp.dot(r, other)
        rest[e] = r
        dual[e] = ((bb * u - ab * w) / determinant) * one + ((aa * w - ab * u) / determinant) * other
    tangents[p] = wp.matrix_from_rows(one, other, normal)
    found = least_apart(
        p,
        edge_offsets,
        patch_edges,
        edges,
        cluster_offsets,
        clusters,
        nodes,
        node_first,
        node_last,
        items,
        start,
        reach,
        middles,
    )
    apart[p] = wp.max(ROUNDED * found, wp.float64(1.0e-300))
    if holds(p, offsets, vertices, own, rest, dual, tangents, apart, start, end, least):
        certified[p] = 1
        wait[p] = 0
