"""The search of `truncation` for CPUs: the boxes of eight faces at a time, and directions for eight pairs at once.

Pairs for which no direction is soon found are asked one by one by `may_cross`, which finds the shortest way exactly: so
what is found is what the search one by one finds. Where few moves are new only pairs with one of them are asked for.
The twin for CUDA is the kernel of `truncation`. Arguments stay positional for the reason told in `simd_nearest_faces`.
"""

from __future__ import annotations

import warp as wp

from tangere.bvh.lbvh import LANES, Lanes, MovingBox
from tangere.bvh.wide import begin_descent, meeting_of, next_cluster
from tangere.geometry.simd import VECTORS
from tangere.runtime import SOUND, reserve_slots
from tangere.soft.contact.cpu.simd_candidates import PENDING, add_candidates, drop_eight
from tangere.soft.safe_step.separating_direction import NOISE, TRIES, USABLE, VertexMoves, may_cross

wp.set_module_options(SOUND)


@wp.kernel
def simd_crossing(
    first: int,
    shard: int,
    units: wp.array[wp.vec4i],
    features: wp.array[int],
    ranges: wp.array[wp.vec2i],
    edges: wp.array2d[int],
    boxes: wp.array[MovingBox],
    certified: wp.array[int],
    octet_offsets: wp.array[int],
    octets: wp.array[wp.vec2i],
    cones: wp.array2d[wp.float64],
    changed: wp.array[wp.uint8],
    dirty: wp.array[wp.uint8],
    node_first: wp.array[int],
    first_cluster: wp.array[int],
    node_of: wp.array[int],
    nodes: wp.array[MovingBox],
    rows: wp.array2d[Lanes],
    levels: wp.array[int],
    lanes: wp.array[Lanes],
    corners: wp.array2d[Lanes],
    items: wp.array2d[int],
    order: wp.array[int],
    moves: VertexMoves,
    by_mask: wp.array[wp.uint64],
    scratch: wp.array2d[int],
    counts: wp.array[wp.int64],
    capacity: int,
    out: wp.array[wp.vec2i],
):
    """The faces that the edges of a patch have no certificate against."""
    row = first + wp.tid()
    unit = units[row]
    top = unit[0]
    patch = unit[1]
    excluded = octet_offsets[patch]
    excluded_end = excluded
    if certified[patch] == 1:
        excluded_end = octet_offsets[patch + 1]
    any_way = wp.vec4d(wp.float64(0.0), wp.float64(0.0), wp.float64(0.0), wp.float64(-1.0))
    only_dirty = int(1)  # a patch that goes where it went needs to ask only for others that do not
    first_own = first_cluster[patch]
    end_own = first_cluster[patch + 1]
    for own in range(first_own, end_own):
        if changed[own] != wp.uint8(0):
            only_dirty = 0
    pending = int(0)
    begin_descent(
        nodes, top, rows, levels, excluded, excluded_end, octets, any_way, cones, only_dirty, dirty, row, scratch
    )
    other = next_cluster(
        nodes, top, rows, levels, excluded, excluded_end, octets, any_way, cones, only_dirty, dirty, row, scratch
    )
    while other >= 0:
        node = node_of[other]
        met = meeting_of(nodes, node, rows, first_own, end_own, any_way, cones)
        for own in range(first_own, end_own):
            if ((met >> (own - first_own)) & 1) == 1 and (changed[own] | changed[other]) != wp.uint8(0):
                for e in range(ranges[own][0], ranges[own][1]):
                    i = features[e]
                    pending = add_candidates(
                        i, edges[i, 0], edges[i, 1], boxes, nodes, node, lanes, corners, other,
                        node_first[node], by_mask, pending, row, scratch,
                    )  # fmt: skip
                    if pending >= LANES:
                        append_uncertified(
                            LANES, row, scratch, edges, items, order, moves, shard, counts, capacity, out
                        )
                        pending = drop_eight(pending, row, scratch)
        other = next_cluster(
            nodes, top, rows, levels, excluded, excluded_end, octets, any_way, cones, only_dirty, dirty, row, scratch
        )
    if pending > 0:
        append_uncertified(pending, row, scratch, edges, items, order, moves, shard, counts, capacity, out)


@wp.func
def append_uncertified(
    count: int,
    row: int,
    scratch: wp.array2d[int],
    edges: wp.array2d[int],
    items: wp.array2d[int],
    order: wp.array[int],
    moves: VertexMoves,
    shard: int,
    counts: wp.array[wp.int64],
    capacity: int,
    out: wp.array[wp.vec2i],
):
    """Append those of up to eight candidates that have no certificate."""
    left = simd_uncertain(count, row, scratch, edges, items, moves)
    lane = int(0)
    while left > 0:
        if (left & 1) == 1:
            i = scratch[row, lane]
            j = scratch[row, PENDING + lane]
            if may_cross(edges[i, 0], edges[i, 1], items[j, 0], items[j, 1], items[j, 2], moves):
                slot = reserve_slots(counts, shard, 1, capacity)
                if slot >= 0:
                    out[slot] = wp.vec2i(i, order[j])
        left = left >> 1
        lane = lane + 1


@wp.func_native(
    VECTORS
    + f"""
    const int tries = {int(TRIES)}, room_for = {int(PENDING)};
    const double kept = {float(USABLE)!r}, noise = {float(NOISE)!r};
"""
    + """
    const int* one = &scratch.data[scratch.shape[1] * row];
    const int* other = one + room_for;
    const double* from[5][8];
    const double* to[5][8];
    #pragma clang loop vectorize(disable) unroll(disable)
    for (int lane = 0; lane < 8; ++lane) {
        const int k = lane < count ? lane : 0;
        const int* edge = &edges.data[2 * one[k]];
        const int* face = &items.data[3 * other[k]];
        for (int c = 0; c < 5; ++c) {
            const int v = c < 2 ? edge[c] : face[c - 2];
            from[c][lane] = (const double*)&moves.start.data[v];
            to[c][lane] = (const double*)&moves.end.data[v];
        }
    }
    Vector at[5], move[5];
    for (int c = 0; c < 5; ++c) {
        at[c] = gathered(from[c]);
        move[c] = minus(gathered(to[c]), at[c]);
    }
    const Vector drift = {
        0.5 * (move[0].x + move[1].x), 0.5 * (move[0].y + move[1].y), 0.5 * (move[0].z + move[1].z)};
    for (int c = 0; c < 5; ++c)
        move[c] = minus(move[c], drift);
    auto larger = [](Wide a, Wide b) -> Wide { return a > b ? a : b; };
    auto smaller = [](Wide a, Wide b) -> Wide { return a < b ? a : b; };
    auto chosen = [](Whole truth, Vector a, Vector b) -> Vector {
        return {truth ? a.x : b.x, truth ? a.y : b.y, truth ? a.z : b.z};
    };
    const Vector *e = at, *f = at + 2, *m = move + 2;
    const Vector along = minus(e[1], e[0]), side1 = minus(f[1], f[0]), side2 = minus(f[2], f[0]);
    const Vector above = minus(e[0], f[0]);
    const double third = 1.0 / 3.0;
    Vector way = {
        0.5 * (e[0].x + e[1].x) - third * (f[0].x + f[1].x + f[2].x),
        0.5 * (e[0].y + e[1].y) - third * (f[0].y + f[1].y + f[2].y),
        0.5 * (e[0].z + e[1].z) - third * (f[0].z + f[1].z + f[2].z)};
    const Wide sum = move[0].x + m[0].x + m[1].x + m[2].x + move[0].y + m[0].y + m[1].y + m[2].y + move[0].z + m[0].z
        + m[1].z + m[2].z;
    const Whole number = sum - sum == zero;  // which least and greatest would not show
    const int counted = count < 8 ? (1 << count) - 1 : 255;
    int open = counted;
    for (int k = 0; k < tries; ++k) {
        const Wide length = __builtin_elementwise_sqrt(dot(way, way)), scale = unit / length;
        const Vector n = {way.x * scale, way.y * scale, way.z * scale};
        const Wide a0 = dot(n, above), a1 = a0 + dot(n, along), b1 = dot(n, side1), b2 = dot(n, side2);
        const Wide low = smaller(a0, a1), high = larger(zero, larger(b1, b2)), gap = low - high;
        const Wide lost = larger(zero, low - smaller(a0 + dot(n, move[0]), a1 + dot(n, move[1])));
        const Wide reached = larger(dot(n, m[0]), larger(b1 + dot(n, m[1]), b2 + dot(n, m[2])));
        const Wide room = kept * larger(gap - moves.least, noise * gap);
        // Ways too short for their inverse are left to others.
        const Whole holds = number & (length > 1e-100) & (gap > zero) & (lost + larger(zero, reached - high) <= room);
        open &= ~bits_of(holds);
        if (!open)
            return 0;
        const Vector lowest = chosen(a1 < a0, e[1], e[0]);
        Vector highest = chosen(b1 > zero, f[1], f[0]);
        highest = chosen(b2 > larger(zero, b1), f[2], highest);
        const Vector back = minus(way, minus(lowest, highest));
        const Wide size = dot(back, back);
        const Wide part = size > zero ? clamped(dot(way, back) / size) : zero;
        way = {way.x - part * back.x, way.y - part * back.y, way.z - part * back.z};
    }
    return open;
"""
)
def simd_uncertain(
    count: int,
    row: int,
    scratch: wp.array2d[int],
    edges: wp.array2d[int],
    items: wp.array2d[int],
    moves: VertexMoves,
) -> int:
    """Which of up to eight pairs of an edge and a face have no certificate along directions that are soon found."""
    ...
