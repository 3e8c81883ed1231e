"""A linear bounding volume hierarchy: Morton order, radix splits, clusters of at most eight items, preorder layout.

Build (once per topology): items are sorted along a Morton curve; each pair of neighbours in that order names one split
of the radix tree over the codes, found by binary search, all in parallel (Karras 2012). Subtrees of at most eight items
become clusters, and only the nodes above them and the clusters are kept. Sorted by first item, then by falling size,
they are in preorder: the left child of node k is k + 1, and `skip[k]` is where to go on after the subtree of k.

Fit (every query): boxes of items and clusters, then of the nodes above. On CPU that is one sweep from the last node to
the first, some 10 ns a node; on CUDA every cluster climbs and enlarges its ancestors, stopping where it no longer adds
anything (what is there already came from others, who carry it on). Boxes belong to the fit, so one tree may serve
several threads at once.
Known as: LBVH (Lauterbach et al. 2009; Karras 2012).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import warp as wp

from tangere.bvh.lbvh.moving_aabb import LANES, Lanes, MovingBox
from tangere.runtime import SOUND, CapacityError, collect, device_of, launch, reserve_slots, sort_pairs

wp.set_module_options(SOUND)

#: Bits of a Morton code for each axis, and of the rank below it that makes codes unique: 63, so keys stay positive.
AXIS_BITS = wp.constant(13)
RANK_BITS = wp.constant(24)
#: The sample is 1/128 of the units, at least 64 (1/128 to 1/8: 132 to 226 ms on a cloth; any early hit helps a lot). On
#: CUDA, where a unit is a single item and threads are many, it is 1/16.
SAMPLE_PART = 128
SAMPLE_PART_CUDA = 16
SAMPLE_LEAST = 64
#: Beyond every number's code: the box of nothing.
NOWHERE = wp.constant(wp.int32(2**30 - 1))


@wp.struct
class TreeArrays:
    """A `LinearTree` as kernels that go down it see it."""

    first: wp.array[int]
    last: wp.array[int]
    skip: wp.array[int]
    cluster: wp.array[int]
    items: wp.array2d[int]
    order: wp.array[int]


@dataclass(frozen=True)
class TreeBoxes:
    """The boxes of one fit of a tree."""

    tree: LinearTree
    items: wp.array  #: (n,) `MovingBox`, in tree order
    nodes: wp.array  #: (N,) `MovingBox`

    @cached_property
    def lanes(self) -> wp.array:
        """(12c,) `Lanes`: the boxes of the items by cluster, eight side by side."""
        tree, device = self.tree, self.items.device
        rows = wp.empty(12 * len(tree.clusters), dtype=Lanes, device=device)
        inputs = [tree.clusters, tree.first, tree.last, self.items]
        launch(_lanes, len(tree.clusters), inputs, [rows], device=device, grain=8192)
        return rows


@dataclass(frozen=True)
class LinearTree:
    """The order of the items and the nodes above them, without boxes."""

    order: wp.array  #: (n,) user's number of the item at each place
    items: wp.array  #: (n, w) vertices of the item at each place
    first: wp.array  #: (N,) first place below each node, in preorder
    last: wp.array  #: (N,) last place below it
    skip: wp.array  #: (N,) node after its subtree, N at the end
    parent: wp.array  #: (N,)
    clusters: wp.array  #: (c,) the nodes without children
    cluster: wp.array  #: (N,) which cluster a node is, -1 for nodes with children
    corners: wp.array  #: (c, w) `Lanes`: the vertices of the items of a cluster, eight side by side, -1 for none
    units: wp.array  #: what one thread queries with: first place, last place, cluster; clusters on CPU, places on CUDA
    sample: wp.array  #: a random hundredth or so of the units

    @cached_property
    def arrays(self) -> TreeArrays:
        """What kernels take."""
        arrays = TreeArrays()
        arrays.first, arrays.last, arrays.skip, arrays.cluster = self.first, self.last, self.skip, self.cluster
        arrays.items, arrays.order = self.items, self.order
        return arrays

    @staticmethod
    def build(items: wp.array, points: wp.array, bounds: np.ndarray) -> LinearTree:
        """A tree over `items`, (n, w) vertex numbers, that lie at `points` (m,) within `bounds` (2, 3)."""
        device, count = items.device, len(items)
        if count >= 1 << RANK_BITS:
            raise CapacityError(f"a tree holds at most {(1 << RANK_BITS) - 1} items, not {count}")
        codes = wp.empty(count, dtype=wp.int64, device=device)
        order = wp.empty(count, dtype=wp.int32, device=device)
        cell = max(float(np.max(bounds[1] - bounds[0])), 1e-300) / ((1 << AXIS_BITS) - 1)
        inputs = [items, items.shape[1], points, wp.vec3d(*bounds[0]), 1.0 / cell]
        launch(_codes, count, inputs, [codes, order], device=device)
        codes, order = sort_pairs(codes, order, bits=3 * AXIS_BITS)
        placed = wp.empty_like(items)
        launch(_place, count, [items, items.shape[1], order], [codes, placed], device=device)
        keys = collect(_nodes, max(count - 1, 1), [codes, count], wp.int64, device=device, grain=8192)
        return _in_preorder(order, placed, keys)

    def with_room(self, clusters: int) -> LinearTree:
        """The same beside a subtree of so many clusters, a power of two, that are empty, under a common root.

        Every cluster of the new one has room for eight items; who puts some there writes `items`, `order`, `corners`
        and `last` of its node.
        """
        count, width, nodes, lanes = len(self.order), self.items.shape[1], len(self.first), int(LANES)
        device = device_of(self.items)
        ranges, above, waiting = [], [], [(0, clusters, 0)]
        while waiting:
            begin, end, parent = waiting.pop()
            mine = 1 + nodes + len(ranges)
            ranges.append((begin, end))
            above.append(parent)
            if end - begin > 1:
                waiting += [((begin + end) // 2, end, mine), (begin, (begin + end) // 2, mine)]
        begin, end = np.array(ranges).T
        number = 1 + nodes + np.arange(len(ranges))
        leaf = end - begin == 1
        young = {
            "first": count + lanes * begin,
            "last": count + np.where(leaf, lanes * begin, lanes * end) - 1,
            "skip": number + 2 * (end - begin) - 1,
            "parent": np.array(above),
            "cluster": np.where(leaf, len(self.clusters) + begin, -1),
        }
        old = {name: getattr(self, name).numpy() for name in young}
        old["skip"], old["parent"] = old["skip"] + 1, old["parent"] + 1
        root = {"first": 0, "last": count + lanes * clusters - 1, "skip": number[-1] + 1, "parent": -1, "cluster": -1}
        empty = np.zeros((lanes * clusters, width), np.int32)
        arrays = {name: np.concatenate([[root[name]], old[name], young[name]]) for name in young}
        arrays["order"] = np.concatenate([self.order.numpy(), empty[:, 0]])
        arrays["items"] = np.concatenate([self.items.numpy(), empty])
        arrays["clusters"] = np.concatenate([self.clusters.numpy() + 1, number[leaf]])
        nothing = np.full((clusters, width, lanes), -1, np.int32)
        corners = np.concatenate([self.corners.numpy().reshape(-1, width, lanes), nothing])
        return LinearTree(
            **{name: wp.array(array, dtype=wp.int32, device=device) for name, array in arrays.items()},
            corners=wp.array(corners, dtype=Lanes, device=device),
            units=wp.array(self.units.numpy() + [0, 0, 1], dtype=wp.vec3i, device=device),
            sample=wp.array(self.sample.numpy() + [0, 0, 1], dtype=wp.vec3i, device=device),
        )

    def fit(self, boxes: wp.array, into: TreeBoxes | None = None) -> TreeBoxes:
        """The boxes of items and nodes, from the boxes of the vertices; `into`: of before, to be used again."""
        device, nodes = self.items.device, len(self.first)
        fitted = into or TreeBoxes(
            self,
            items=wp.empty(len(self.items), dtype=MovingBox, device=device),
            nodes=wp.empty(nodes, dtype=MovingBox, device=device),
        )
        inputs = [self.first, self.last, self.cluster, self.items, self.items.shape[1], boxes]
        outputs = [fitted.items, fitted.nodes]
        launch(_cluster_boxes, nodes, inputs, outputs, device=device, grain=8192)
        if device_of(self.items).is_cuda:
            launch(_climb, len(self.clusters), [self.clusters, self.parent], [fitted.nodes], device=device)
        else:
            launch(_sweep_up, 1, [self.first, self.last, self.skip], [fitted.nodes], device=device)
        return fitted


def _in_preorder(order: wp.array, placed: wp.array, keys: wp.array) -> LinearTree:
    device, count, nodes = device_of(order), len(order), len(keys)
    keys, _ = sort_pairs(keys, wp.zeros(nodes, dtype=wp.int32, device=device))
    first, last, skip, parent = (wp.empty(nodes, dtype=wp.int32, device=device) for _ in range(4))
    top_at = wp.empty(count, dtype=wp.int32, device=device)
    launch(_unpack, nodes, [keys, count], [first, last, top_at], device=device)
    launch(_set_skips, nodes, [first, last, top_at, count], [skip], device=device)
    launch(_set_parents, nodes, [first, last, skip], [parent], device=device)
    begin, end = first.numpy(), last.numpy()
    clusters = np.flatnonzero(end - begin < LANES).astype(np.int32)
    cluster = np.full(nodes, -1, np.int32)
    cluster[clusters] = np.arange(len(clusters))
    units = np.stack([begin[clusters], end[clusters], clusters], axis=1)
    if device.is_cuda:
        places = np.arange(count, dtype=np.int32)
        units = np.stack([places, places, np.repeat(clusters, units[:, 1] - units[:, 0] + 1)], axis=1)
    size = min(len(units), max(SAMPLE_LEAST, len(units) // (SAMPLE_PART_CUDA if device.is_cuda else SAMPLE_PART)))
    sample = units[np.random.default_rng(0).permutation(len(units))[:size]]
    corners = wp.empty((len(clusters), placed.shape[1]), dtype=Lanes, device=device)
    on_device = wp.array(clusters, dtype=wp.int32, device=device)
    launch(_corners, len(clusters), [on_device, first, last, placed, placed.shape[1]], [corners], device=device)
    return LinearTree(
        order=order,
        items=placed,
        first=first,
        last=last,
        skip=skip,
        parent=parent,
        clusters=on_device,
        cluster=wp.array(cluster, dtype=wp.int32, device=device),
        corners=corners,
        units=wp.array(units, dtype=wp.vec3i, device=device),
        sample=wp.array(sample, dtype=wp.vec3i, device=device),
    )


@wp.func
def spread(x: wp.int64) -> wp.int64:
    """The bits of x, two zero bits after each."""
    y = x
    y = (y | (y << wp.int64(32))) & wp.int64(0x1F00000000FFFF)
    y = (y | (y << wp.int64(16))) & wp.int64(0x1F0000FF0000FF)
    y = (y | (y << wp.int64(8))) & wp.int64(0x100F00F00F00F00F)
    y = (y | (y << wp.int64(4))) & wp.int64(0x10C30C30C30C30C3)
    y = (y | (y << wp.int64(2))) & wp.int64(0x1249249249249249)
    return y


@wp.func
def cell_of(x: wp.float64, per_cell: wp.float64) -> wp.int64:
    return wp.int64(wp.clamp(x * per_cell, wp.float64(0.0), wp.float64((1 << AXIS_BITS) - 1)))


@wp.kernel
def _codes(
    first: int,
    items: wp.array2d[int],
    width: int,
    points: wp.array[wp.vec3d],
    corner: wp.vec3d,
    per_cell: wp.float64,
    codes: wp.array[wp.int64],
    order: wp.array[int],
):
    i = first + wp.tid()
    lower = points[items[i, 0]]
    upper = lower
    for k in range(1, width):
        lower = wp.min(lower, points[items[i, k]])
        upper = wp.max(upper, points[items[i, k]])
    centre = lower * wp.float64(0.5) + upper * wp.float64(0.5) - corner
    x = spread(cell_of(centre[0], per_cell))
    y = spread(cell_of(centre[1], per_cell))
    z = spread(cell_of(centre[2], per_cell))
    codes[i] = x | (y << wp.int64(1)) | (z << wp.int64(2))
    order[i] = i


@wp.kernel
def _place(
    first: int,
    items: wp.array2d[int],
    width: int,
    order: wp.array[int],
    codes: wp.array[wp.int64],
    placed: wp.array2d[int],
):
    """Items in Morton order, and codes made unique by the place."""
    i = first + wp.tid()
    for k in range(width):
        placed[i, k] = items[order[i], k]
    codes[i] = (codes[i] << wp.int64(RANK_BITS)) | wp.int64(i)


@wp.func
def has_longer_prefix(x: wp.int64, y: wp.int64) -> bool:
    """Of two differences (exclusive or) of codes: x has its highest bit below that of y, so a longer common prefix."""
    return x < y and x < (x ^ y)


@wp.func
def packed(begin: int, size: int, count: int) -> wp.int64:
    """A key that sorts nodes into preorder: by first place, then by falling size."""
    return (wp.int64(begin) << wp.int64(32)) | wp.int64(count - size)


@wp.kernel
def _nodes(
    first: int,
    shard: int,
    codes: wp.array[wp.int64],
    count: int,
    counts: wp.array[wp.int64],
    capacity: int,
    out: wp.array[wp.int64],
):
    """The node of the radix tree that has its first or last place at i, and those of its children that are clusters."""
    i = first + wp.tid()
    begin = int(0)
    end = count - 1
    if i > 0:
        code = codes[i]
        step = int(-1)
        outside = code ^ codes[i - 1]
        if has_longer_prefix(code ^ codes[i + 1], outside):
            step = 1
        else:
            outside = code ^ codes[i + 1]
        reach = int(2)
        other = i + reach * step
        while other >= 0 and other < count and has_longer_prefix(code ^ codes[wp.clamp(other, 0, count - 1)], outside):
            reach = reach * 2
            other = i + reach * step
        length = int(0)
        stride = reach / 2
        while stride > 0:
            other = i + (length + stride) * step
            if other >= 0 and other < count:
                if has_longer_prefix(code ^ codes[other], outside):
                    length = length + stride
            stride = stride / 2
        begin = wp.min(i, i + length * step)
        end = wp.max(i, i + length * step)
    size = end - begin + 1
    if size <= LANES:
        if i == 0:
            slot = reserve_slots(counts, shard, 1, capacity)
            if slot >= 0:
                out[slot] = packed(begin, size, count)
        return
    # The last place of the left child: the furthest one from `begin` that shares more with it than `end` does.
    whole = codes[begin] ^ codes[end]
    split = begin
    stride = size
    while stride > 1:
        stride = (stride + 1) / 2
        if split + stride < end:
            if has_longer_prefix(codes[begin] ^ codes[split + stride], whole):
                split = split + stride
    emitted = int(1)
    left = split - begin + 1
    right = end - split
    if left <= LANES:
        emitted += 1
    if right <= LANES:
        emitted += 1
    slot = reserve_slots(counts, shard, emitted, capacity)
    if slot >= 0:
        out[slot] = packed(begin, size, count)
        if left <= LANES:
            slot += 1
            out[slot] = packed(begin, left, count)
        if right <= LANES:
            slot += 1
            out[slot] = packed(split + 1, right, count)


@wp.kernel
def _unpack(
    first: int, keys: wp.array[wp.int64], count: int, begin: wp.array[int], end: wp.array[int], top_at: wp.array[int]
):
    k = first + wp.tid()
    b = int(keys[k] >> wp.int64(32))
    size = count - int(keys[k] & wp.int64(0xFFFFFFFF))
    begin[k] = b
    end[k] = b + size - 1
    if k == 0 or int(keys[wp.max(k - 1, 0)] >> wp.int64(32)) != b:
        top_at[b] = k


@wp.kernel
def _set_skips(
    first: int, begin: wp.array[int], end: wp.array[int], top_at: wp.array[int], count: int, skip: wp.array[int]
):
    k = first + wp.tid()
    if end[k] == count - 1:
        skip[k] = begin.shape[0]
    else:
        skip[k] = top_at[end[k] + 1]


@wp.kernel
def _set_parents(first: int, begin: wp.array[int], end: wp.array[int], skip: wp.array[int], parent: wp.array[int]):
    k = first + wp.tid()
    if k == 0:
        parent[k] = -1
    if end[k] - begin[k] >= LANES:
        parent[k + 1] = k
        parent[skip[k + 1]] = k


@wp.kernel
def _corners(
    first: int,
    clusters: wp.array[int],
    begin: wp.array[int],
    end: wp.array[int],
    items: wp.array2d[int],
    width: int,
    corners: wp.array2d[Lanes],
):
    k = first + wp.tid()
    for c in range(width):
        row = Lanes(-1)
        for place in range(begin[clusters[k]], end[clusters[k]] + 1):
            row[place - begin[clusters[k]]] = items[place, c]
        corners[k, c] = row


@wp.kernel
def _cluster_boxes(
    first: int,
    begin: wp.array[int],
    end: wp.array[int],
    cluster: wp.array[int],
    items: wp.array2d[int],
    width: int,
    boxes: wp.array[MovingBox],
    item_boxes: wp.array[MovingBox],
    nodes: wp.array[MovingBox],
):
    """Boxes of each cluster and of its items; nodes above get an empty box."""
    k = first + wp.tid()
    whole = MovingBox(NOWHERE)
    if cluster[k] >= 0:
        for place in range(begin[k], end[k] + 1):
            box = boxes[items[place, 0]]
            for c in range(1, width):
                box = wp.min(box, boxes[items[place, c]])
            item_boxes[place] = box
            whole = wp.min(whole, box)
    nodes[k] = whole


@wp.kernel
def _lanes(
    first: int,
    clusters: wp.array[int],
    begin: wp.array[int],
    end: wp.array[int],
    boxes: wp.array[MovingBox],
    lanes: wp.array[Lanes],
):
    """Unused lanes repeat the last item; a cluster without items has any."""
    k = first + wp.tid()
    at = begin[clusters[k]]
    last = wp.max(at, end[clusters[k]])
    b0 = boxes[at]
    b1 = boxes[wp.min(at + 1, last)]
    b2 = boxes[wp.min(at + 2, last)]
    b3 = boxes[wp.min(at + 3, last)]
    b4 = boxes[wp.min(at + 4, last)]
    b5 = boxes[wp.min(at + 5, last)]
    b6 = boxes[wp.min(at + 6, last)]
    b7 = boxes[last]
    for row in range(12):
        lanes[12 * k + row] = Lanes(b0[row], b1[row], b2[row], b3[row], b4[row], b5[row], b6[row], b7[row])


@wp.kernel
def _sweep_up(first: int, begin: wp.array[int], end: wp.array[int], skip: wp.array[int], nodes: wp.array[MovingBox]):
    """Boxes of all nodes above clusters, children before parents (one thread)."""
    k = begin.shape[0] - 1
    while k >= 0:
        if end[k] - begin[k] >= LANES:
            nodes[k] = wp.min(nodes[k + 1], nodes[skip[k + 1]])
        k = k - 1


@wp.func
def within(box: MovingBox, outer: MovingBox) -> bool:
    inside = int(1)
    for k in range(12):
        inside = inside & int(outer[k] <= box[k])
    return inside == 1


@wp.kernel
def _climb(first: int, clusters: wp.array[int], parent: wp.array[int], nodes: wp.array[MovingBox]):
    cluster = clusters[first + wp.tid()]
    box = nodes[cluster]
    node = parent[cluster]
    while node >= 0:
        if within(box, nodes[node]):
            node = int(-1)
        else:
            wp.atomic_min(nodes, node, box)
            node = parent[node]
