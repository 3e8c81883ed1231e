"""First contacts of many queries on CUDA: a block for each query, its waiting pairs in shared memory.

Method:   a block takes as many pairs from the top of its query's stack as there are, a pair for each thread; a thread
          opens the larger box of its pair and advances both children, once. Those that may still meet go back on the
          stack, of all threads first the later ones, then the earlier ones: so the search goes depth-first, the
          earliest pairs first. Pairs of triangles wait on a stack of their own until there is one for every thread.
          They are solved step by step, and go back after each one that does not settle them: nobody waits for the
          slowest. The earliest time is shared after that. Nothing waits for the host, nor one query for another. A
          block is a warp where there are many queries, and wider where they would leave most of the device idle.
Code:     whatever is long is called from one place, and recession has a kernel of its own: the time of a search on a
          GPU is that of fetching its code and of registers that do not suffice.
Room:     a stack holds at most a pair for every thread and level of both trees, but for trees deeper than any that was
          seen: when it gets full only one thread goes on, depth-first, and the others put their pairs back.
Bits:     as `traversal` says, the order does not matter: the same answer for any number of threads a query has.
Also:     runs on the CPU, with one thread a query, or with 32 in turns (`wp.config.enable_cpu_blocks`).
Known as: a traversal by a warp with a shared stack (Aila and Laine 2009, persistent threads; Chitalu, Dubach and Komura
          2018, BVTT front in blocks).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import warp as wp

from tangere.bvh.obb import ObbNode, box_axes
from tangere.query.first_contact.rigid.conservative_advancement import QueryArrays, Relative, relative_at, safe_time
from tangere.query.first_contact.rigid.culling import Culling, RecessionTable, culling_of, recedes
from tangere.query.first_contact.rigid.narrow_phase import corner_radii, corners_of, leaf_step
from tangere.query.first_contact.rigid.traversal import COUNTERS, EarliestHit, hit_of, is_earlier, no_hit
from tangere.runtime import SOUND

if TYPE_CHECKING:
    from tangere.query.first_contact.rigid.query_batch import RigidQueryBatch

wp.set_module_options(SOUND)

#: Threads of a query among many, and of one of few: the second have half the rounds of the first.
THREADS = 32
MANY_THREADS = 64
#: Up to so many queries are few: a thousand take 6.5 ms by 64 threads each on an H200, by 32 7.5.
FEW = 1024
#: Pairs of boxes that a stack has room for, 12 bytes each, by the number of threads: eight blocks of a warp share the
#: 228 kB of a multiprocessor.
STACK = {THREADS: 1536, MANY_THREADS: 2048}
#: Of a thread; fewer let more blocks share a multiprocessor.
REGISTERS = 255
#: So many places are kept for one thread that goes on alone, depth-first: more than two trees have levels.
RESERVE = 128

_ONE = wp.constant(wp.float64(1.0))
_ZERO = wp.constant(wp.float64(0.0))
_NO_KEY = wp.constant(wp.int64(2**63 - 1))


@wp.struct
class WaitingPair:
    """A pair of boxes that is free until `time`."""

    time: wp.float32  #: of the clock, rounded down
    a: wp.int32  #: node of a, counted from its root; -1: the roots, not yet looked at
    b: wp.int32


@wp.struct
class WaitingTriangles:
    """A pair of triangles that is free until `time`, after so many steps."""

    time: wp.float64  #: of the clock
    a: wp.int32  #: node of a, counted from its root
    b: wp.int32
    steps: wp.int32


def search_blocks(
    batch: RigidQueryBatch, threads: int | None = None, room: int | None = None, registers: int = REGISTERS
) -> None:
    """Search every query of `batch` for a contact not after the time that stands among its hits.

    Args:
        threads: of a query, one of those that `STACK` has.
        room: pairs after which a stack counts as full; None: as many as it has room for.
        registers: of a thread, on CUDA.
    """
    if threads is None:
        threads = MANY_THREADS if batch.count <= FEW else THREADS
    device = batch.device
    width = threads if device.is_cuda or wp.config.enable_cpu_blocks else 1
    room = STACK[threads] if room is None else room
    counters = wp.zeros((batch.count * width if batch.counting else 0, COUNTERS), dtype=wp.int64, device=device)
    key = ("blocks", threads, room, registers)
    search: Any = batch.searches.get(key)
    if search is None or batch.counting:
        search = wp.launch(
            block_kernel(threads, batch.recession, registers),
            batch.count * width,
            [0, batch.arrays, batch.cones, batch.hits, counters, room],
            device=device,
            record_cmd=True,
            record_tape=False,
            block_dim=threads,
        )
        if not batch.counting:
            batch.searches[key] = search
    search.set_dim(batch.count * width)
    search.launch()
    if batch.counting:
        batch.host_counters = counters.numpy().sum(axis=0, keepdims=True)


@wp.func
def no_culling(arrays: QueryArrays, row: int) -> Culling:
    return Culling()


@wp.func
def never_recedes(culling: Culling, cones: RecessionTable, a: ObbNode, b: ObbNode, node_a: int, node_b: int) -> bool:
    return False


@wp.func
def rounded_down(time: wp.float64) -> wp.float32:
    """The largest float32 that is not later, or one before it; times are not negative."""
    result = wp.float32(time)
    if wp.float64(result) > time:
        result = result * wp.float32(1.0 - 1.2e-7)  # more than the distance of two float32
    return result


@wp.func
def key_of(hit: EarliestHit) -> wp.int64:
    """Smaller is better at the same time: piercing, then smaller triangle numbers."""
    key = (wp.int64(hit.a) << wp.int64(31)) | wp.int64(hit.b)
    if hit.pierced < 0:
        key = key | (wp.int64(1) << wp.int64(62))
    return key


@cache
def block_kernel(threads: int, recession: bool, registers: int = REGISTERS) -> wp.Kernel:
    """The search by so many threads, with so many registers each on CUDA."""
    capacity = STACK[threads]
    # Of triangles fewer than a pair for each thread wait, two come from each, and one goes back.
    together = 4 * threads
    culling_for = culling_of if recession else no_culling
    is_receding = recedes if recession else never_recedes

    @wp.kernel(module="unique", module_options=SOUND, cuda_max_registers=registers)
    def search_by_blocks(
        first: int,
        arrays: QueryArrays,
        cones: RecessionTable,
        bests: wp.array[EarliestHit],
        counters: wp.array2d[wp.int64],
        room: int,
    ):
        """A block for each query; counters, where there are any, are of each thread."""
        width = wp.block_dim()
        lane = wp.tid() % width
        row = first + wp.tid() / width
        node_a = arrays.queries[row].node_a
        node_b = arrays.queries[row].node_b
        culling = culling_for(arrays, row)
        stack = wp.tile_stack(capacity=capacity, dtype=WaitingPair)
        leaves = wp.tile_stack(capacity=together, dtype=WaitingTriangles)
        best = no_hit()
        until = wp.min(bests[row].time, _ONE)
        root = WaitingPair()
        root.a = -1
        wp.tile_stack_push(stack, root, lane == 0)
        going = bool(True)
        while going:
            waiting = wp.tile_stack_count(stack)
            ready = wp.tile_stack_count(leaves)
            solving = ready >= width or waiting == 0
            item = WaitingPair()
            leaf = WaitingTriangles()
            place = int(-1)
            if solving:
                leaf, place = wp.tile_stack_pop(leaves)
            else:
                item, place = wp.tile_stack_pop(stack)
                leaf.time = wp.float64(item.time)
            tau = leaf.time
            wanted = place >= 0 and not tau > until
            # A full stack leaves room for one thread that goes depth-first.
            put_back = wanted and not solving and lane > 0 and waiting > room - RESERVE - width
            wanted = wanted and not put_back
            now = Relative()
            if wanted:
                now = relative_at(arrays, row, tau)
            if solving:
                again = bool(False)
                if wanted:
                    triangle_a = arrays.nodes_a[node_a + leaf.a].triangle
                    triangle_b = arrays.nodes_b[node_b + leaf.b].triangle
                    a = corners_of(
                        arrays.corners_a, arrays.queries[row].triangle_a + triangle_a, arrays.pairs[row].bounds_a.pivot
                    )
                    b = corners_of(
                        arrays.corners_b, arrays.queries[row].triangle_b + triangle_b, arrays.pairs[row].bounds_b.pivot
                    )
                    rho_a = corner_radii(arrays.pairs[row].bounds_a, a)
                    rho_b = corner_radii(arrays.pairs[row].bounds_b, b)
                    answer = leaf_step(now, arrays.pairs, row, a, b, rho_a, rho_b, until, tau, leaf.steps)
                    again = answer.going
                    leaf.time = answer.time
                    leaf.steps = answer.steps
                    if not again:
                        found = hit_of(answer, arrays.pairs, row, a, triangle_a, triangle_b, counters, wp.tid())
                        if found.time <= until and is_earlier(found, best):
                            best = found
                wp.tile_stack_push(leaves, leaf, again)
                bound = wp.min(best.time, wp.float64(2.0))
                if best.time == _ZERO and best.pierced >= 0:
                    bound = -_ONE  # nothing is earlier: the search ends
                until = wp.min(until, wp.tile_min(wp.tile(bound))[0])
            else:
                near = WaitingPair()
                far = WaitingPair()
                has_near = bool(False)
                has_far = bool(False)
                near_leaf = bool(False)
                far_leaf = bool(False)
                if wanted:
                    opens_a = bool(False)
                    right = int(0)
                    many = int(2)
                    if item.a < 0:
                        many = 1
                    else:
                        below_a = arrays.nodes_a[node_a + item.a].right
                        below_b = arrays.nodes_b[node_b + item.b].right
                        opens_a = below_b < 0 or (
                            below_a >= 0
                            and arrays.nodes_a[node_a + item.a].radius >= arrays.nodes_b[node_b + item.b].radius
                        )
                        right = wp.where(opens_a, below_a, below_b)
                    for k in range(many):
                        child = WaitingPair()
                        child.a = wp.max(item.a, 0)
                        child.b = item.b
                        if item.a >= 0:
                            if opens_a:
                                child.a = wp.where(k == 0, item.a + 1, right)
                            else:
                                child.b = wp.where(k == 0, item.b + 1, right)
                        box_a = arrays.nodes_a[node_a + child.a]
                        box_b = arrays.nodes_b[node_b + child.b]
                        back_a = wp.transpose(box_axes(box_a))
                        keep = arrays.pairs[row].keep
                        reached = safe_time(now, arrays.pairs, row, keep, back_a, box_a, box_b, tau, until)
                        child.time = rounded_down(reached[1])
                        if counters.shape[0] > 0:
                            counters[wp.tid(), 0] = counters[wp.tid(), 0] + wp.int64(1)
                        alive = not wp.float64(child.time) > until
                        if alive and is_receding(culling, cones, box_a, box_b, node_a + child.a, node_b + child.b):
                            alive = False
                            if counters.shape[0] > 0:
                                counters[wp.tid(), 3] = counters[wp.tid(), 3] + wp.int64(1)
                        if alive:
                            far = near
                            has_far = has_near
                            far_leaf = near_leaf
                            near = child
                            has_near = True
                            near_leaf = box_a.right < 0 and box_b.right < 0
                    if has_far and far.time < near.time:
                        other = near
                        near = far
                        far = other
                        of_triangles = near_leaf
                        near_leaf = far_leaf
                        far_leaf = of_triangles
                wp.tile_stack_push(stack, item, put_back)
                wp.tile_stack_push(stack, far, has_far and not far_leaf)
                wp.tile_stack_push(stack, near, has_near and not near_leaf)
                wp.tile_stack_push(leaves, unsolved(far), has_far and far_leaf)
                wp.tile_stack_push(leaves, unsolved(near), has_near and near_leaf)
            going = wp.tile_stack_count(stack) + wp.tile_stack_count(leaves) > 0 and until >= _ZERO
        own = wp.min(best.time, wp.float64(2.0))
        earliest = wp.tile_min(wp.tile(own))[0]
        key = wp.int64(_NO_KEY)
        if best.time == earliest and earliest <= _ONE:
            key = key_of(best)
        least = wp.tile_min(wp.tile(key))[0]
        if earliest > _ONE:
            if lane == 0:
                bests[row] = no_hit()
        elif key == least:
            bests[row] = best

    return search_by_blocks


@wp.func
def unsolved(pair: WaitingPair) -> WaitingTriangles:
    """A pair of boxes of one triangle each, as these."""
    result = WaitingTriangles()
    result.time = wp.float64(pair.time)
    result.a = pair.a
    result.b = pair.b
    return result
