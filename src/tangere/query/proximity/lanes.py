"""Eight boxes at a time, for CPUs: what Warp's own vectors leave to chance is said to the compiler here.

The rows of a cluster hold one code of each of its eight boxes, so a box is compared with all of them by some ten
instructions, and the answer is a mask: no branch depends on what cannot be predicted. Vector types and builtins are
those of Clang, which compiles kernels for every CPU; nothing here is for CUDA.
"""

from __future__ import annotations

import warp as wp

from tangere.bound import Lanes
from tangere.query.proximity.records import Record
from tangere.runtime import SOUND

__all__ = ["fit_in_lanes", "lanes_meeting", "lanes_sharing", "lowest_bit", "node_apart"]


@wp.func_native("""
    typedef int Row __attribute__((ext_vector_type(8), aligned(4)));
    typedef bool Bits __attribute__((ext_vector_type(8)));
    const Row sums = *(const Row*)&nodes.data[node] + *(const Row*)&turned;
    return __builtin_bit_cast(unsigned char, __builtin_convertvector(sums > 0, Bits)) != 0;
""")
def node_apart(turned: Record, nodes: wp.array[Record], node: int) -> bool:
    """Whether a box is apart from that of a node; its halves are exchanged, and two very negative numbers follow."""
    ...


@wp.func_native("""
    typedef int Row __attribute__((ext_vector_type(8), aligned(4)));
    typedef bool Bits __attribute__((ext_vector_type(8)));
    const Row* row = (const Row*)&rows.data[6 * k];
    const int* box = (const int*)&boxes.data[i];
    const Row x = __builtin_elementwise_max(row[3] + box[0], row[0] + box[3]);
    const Row y = __builtin_elementwise_max(row[4] + box[1], row[1] + box[4]);
    const Row z = __builtin_elementwise_max(row[5] + box[2], row[2] + box[5]);
    const Row most = __builtin_elementwise_max(__builtin_elementwise_max(x, y), z);
    return __builtin_bit_cast(unsigned char, __builtin_convertvector(most <= 0, Bits));
""")
def lanes_meeting(boxes: wp.array[Record], i: int, rows: wp.array2d[Lanes], k: int) -> int:
    """A bit for each of the eight boxes of cluster k that meets box i."""
    ...


@wp.func_native("""
    typedef int Row __attribute__((ext_vector_type(8), aligned(4)));
    typedef bool Bits __attribute__((ext_vector_type(8)));
    const Row* row = (const Row*)&corners.data[across * k];
    const int* own = &items.data[wide * i];
    Row same = row[0] == own[0];
    for (int c = 0; c < wide; ++c)
        for (int d = 0; d < across; ++d)
            same |= row[d] == own[c];
    return __builtin_bit_cast(unsigned char, __builtin_convertvector(same != 0, Bits));
""")
def lanes_sharing(items: wp.array2d[int], wide: int, i: int, corners: wp.array2d[Lanes], across: int, k: int) -> int:
    """A bit for each item of cluster k with a vertex in common with item i; they have `across` and `wide` vertices."""
    ...


@wp.func_native("""
    return __builtin_ctz(bits);
""")
def lowest_bit(bits: int) -> int:
    """The number of the lowest bit that is set."""
    ...


@wp.func_native("""
    typedef int Row __attribute__((ext_vector_type(8), aligned(4)));
    const int wide = items.shape[1];
    int* rows = (int*)&lanes.data[6 * cluster];
    const Row none = (Row)((1 << 30) - 1);
    Row whole = none;
    for (int lane = 0; lane < 8; ++lane) {
        Row box = none;
        if (begin + lane <= end) {
            const int* own = &items.data[wide * (begin + lane)];
            box = *(const Row*)&boxes.data[own[0]];
            for (int c = 1; c < wide; ++c)
                box = __builtin_elementwise_min(box, *(const Row*)&boxes.data[own[c]]);
            *(Row*)&item_boxes.data[begin + lane] = box;
        }
        whole = __builtin_elementwise_min(whole, box);
        for (int row = 0; row < 6; ++row)
            rows[8 * row + lane] = box[row];
    }
    *(Row*)&nodes.data[node] = whole;
""")
def fit_cluster(
    node: int,
    cluster: int,
    begin: int,
    end: int,
    items: wp.array2d[int],
    boxes: wp.array[Record],
    item_boxes: wp.array[Record],
    nodes: wp.array[Record],
    lanes: wp.array2d[Lanes],
):
    """The boxes of the items of a cluster, in rows as well, and of its node; lanes without an item are empty."""
    ...


@wp.kernel(module="unique", module_options=SOUND)
def fit_in_lanes(
    first: int,
    clusters: wp.array[int],
    begin: wp.array[int],
    end: wp.array[int],
    skip: wp.array[int],
    items: wp.array2d[int],
    boxes: wp.array[Record],
    item_boxes: wp.array[Record],
    nodes: wp.array[Record],
    lanes: wp.array2d[Lanes],
):
    """The boxes of all clusters and of their items."""
    k = first + wp.tid()
    node = clusters[k]
    fit_cluster(node, k, begin[node], end[node], items, boxes, item_boxes, nodes, lanes)
    nodes[node][6] = skip[node]
    nodes[node][7] = k
