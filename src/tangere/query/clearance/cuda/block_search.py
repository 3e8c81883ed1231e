"""The least distance of groups of queries on CUDA: a block for each group, its waiting pairs in shared memory.

Method:   that of `traversal`, by all threads of a block: each takes a pair from the top of the group's stack. A pair of
          boxes is looked at where it has got to; one that was moved on waits to be looked at again, and one that could
          not be is opened. Pairs of triangles wait on a stack of their own until there is one for every thread, and go
          back after each step that does not settle them. U is shared after every step of triangles. Queries of a group
          begin when there are not pairs enough for all threads, the likely one first.
Code:     whatever is long is called from one place; see `first_contact.rigid.cuda.block_search`, also for the room that
          a stack has.
Sound:    a thread may have an older U: it only certifies more than is asked for.
Also:     runs on the CPU, with one thread a group, or with 32 in turns (`wp.config.enable_cpu_blocks`).
Known as: a traversal by a warp with a shared stack (Aila and Laine 2009, persistent threads; Chitalu, Dubach and Komura
          2018, BVTT front in blocks).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import warp as wp

from tangere.bvh.obb import box_axes
from tangere.query.clearance.narrow_phase import NearestApproach, approach_step, boxes_kept_apart
from tangere.query.clearance.traversal import centre_distance, likely_query, query_in_turn
from tangere.query.first_contact.rigid.conservative_advancement import (
    QueryArrays,
    Relative,
    relative_at,
    safe_time_of_nearest,
)
from tangere.query.first_contact.rigid.cuda.block_search import REGISTERS, RESERVE, THREADS, rounded_down
from tangere.query.first_contact.rigid.narrow_phase import corner_radii, corners_of
from tangere.runtime import SOUND, device_of

wp.set_module_options(SOUND)

#: Pairs of boxes that a stack has room for, 16 bytes each: eight blocks of a warp share the 228 kB of a multiprocessor.
STACK = 1408

_ONE = wp.constant(wp.float64(1.0))
_ZERO = wp.constant(wp.float64(0.0))
#: Beyond every distance.
_FAR = wp.constant(wp.float64(1.0e300))


@wp.struct
class WaitingNodes:
    """A pair of boxes that stays apart until `time`."""

    time: wp.float32  #: of the clock, rounded down
    query: wp.int32
    a: wp.int32  #: node of a, counted from its root; -1 - node: the pair itself is to be looked at, at this time
    b: wp.int32


@wp.struct
class ApproachingTriangles:
    """A pair of triangles that stays apart until `time`, after so many steps."""

    time: wp.float64  #: of the clock
    query: wp.int32
    a: wp.int32
    b: wp.int32
    steps: wp.int32


def search_blocks(
    arrays: Any,
    begin: wp.array,
    accuracy: float,
    found: wp.array,
    *,
    stop: bool = False,
    room: int = STACK,
    registers: int = REGISTERS,
) -> None:
    """As the kernel `find_nearest_approach` of `cpu.depth_first`, by a block for each group.

    Args:
        arrays: the queries.
        begin: the first query of each group, and the end.
        accuracy, stop: as there.
        found: what is known of each group before and after, those that are certified are left alone.
        room: pairs after which a stack counts as full.
        registers: of a thread, on CUDA.
    """
    device = device_of(found)
    width = THREADS if device.is_cuda or wp.config.enable_cpu_blocks else 1
    if len(found):
        wp.launch(
            block_kernel(registers),
            len(found) * width,
            [0, arrays, begin, accuracy, stop, room, found],
            device=device,
            record_tape=False,
            block_dim=THREADS,
        )


@wp.func
def corners_wait(query: int, time: wp.float64, a: int, b: int) -> ApproachingTriangles:
    """A pair of triangles before its first step."""
    result = ApproachingTriangles()
    result.time = time
    result.query = query
    result.a = a
    result.b = b
    return result


@cache
def block_kernel(registers: int = REGISTERS) -> wp.Kernel:
    """The search, with so many registers for each thread on CUDA."""
    capacity = STACK
    # Of triangles fewer than a pair for each thread wait, two come from each, and one goes back.
    together = 4 * THREADS

    @wp.kernel(module="unique", module_options=SOUND, cuda_max_registers=registers)
    def find_nearest_by_blocks(
        first: int,
        arrays: QueryArrays,
        begin: wp.array[wp.int32],
        accuracy: wp.float64,
        stop: bool,
        room: int,
        found: wp.array[NearestApproach],
    ):
        """A block for each group."""
        width = wp.block_dim()
        lane = wp.tid() % width
        job = first + wp.tid() / width
        count = begin[job + 1] - begin[job]
        best = found[job]  # that this thread has seen
        upper = best.upper  # that any has
        asked = not best.certified
        certified = bool(True)
        likely = likely_query(best, begin[job])
        stack = wp.tile_stack(capacity=capacity, dtype=WaitingNodes)
        leaves = wp.tile_stack(capacity=together, dtype=ApproachingTriangles)
        begun = int(0)
        going = asked and count > 0
        while going:
            if wp.tile_stack_count(stack) < width and begun < count:
                root = WaitingNodes()
                root.a = -1
                root.query = begin[job] + query_in_turn(begun + lane, likely)
                wp.tile_stack_push(stack, root, begun + lane < count)
                begun += width
            waiting = wp.tile_stack_count(stack)
            solving = wp.tile_stack_count(leaves) >= width or waiting == 0
            item = WaitingNodes()
            leaf = ApproachingTriangles()
            place = int(-1)
            if solving:
                leaf, place = wp.tile_stack_pop(leaves)
            else:
                item, place = wp.tile_stack_pop(stack)
                leaf.time = wp.float64(item.time)
                leaf.query = item.query
            wanted = place >= 0
            # A full stack leaves room for one thread that goes depth-first.
            put_back = wanted and not solving and lane > 0 and waiting > room - RESERVE - width
            wanted = wanted and not put_back
            row = leaf.query
            now = Relative()
            if wanted:
                now = relative_at(arrays, row, leaf.time)
            if solving:
                again = bool(False)
                open_ = bool(False)
                if wanted:
                    pivot_a = arrays.pairs[row].bounds_a.pivot
                    pivot_b = arrays.pairs[row].bounds_b.pivot
                    a = corners_of(arrays.corners_a, arrays.queries[row].triangle_a + leaf.a, pivot_a)
                    b = corners_of(arrays.corners_b, arrays.queries[row].triangle_b + leaf.b, pivot_b)
                    rho_a = corner_radii(arrays.pairs[row].bounds_a, a)
                    rho_b = corner_radii(arrays.pairs[row].bounds_b, b)
                    leaf.steps += 1
                    known = best
                    known.upper = upper
                    known.certified = True
                    step = approach_step(
                        now,
                        arrays,
                        row,
                        a,
                        b,
                        rho_a,
                        rho_b,
                        leaf.a,
                        leaf.b,
                        leaf.time,
                        leaf.steps,
                        accuracy,
                        known,
                    )
                    if step.nearest.upper < upper:
                        best = step.nearest
                    open_ = not step.nearest.certified or (stop and best.time >= _ZERO)
                    again = step.going and not open_
                    leaf.time = step.time
                wp.tile_stack_push(leaves, leaf, again)
                # What one has seen bounds all; what one cannot certify ends the search.
                bound = wp.where(open_, -_ONE, best.upper)
                shared = wp.tile_min(wp.tile(bound))[0]
                if shared < _ZERO:
                    certified = False
                upper = wp.min(upper, shared)
            else:
                near = WaitingNodes()
                far = WaitingNodes()
                has_near = bool(False)
                has_far = bool(False)
                near_leaf = bool(False)
                far_leaf = bool(False)
                near_apart = wp.float64(0.0)
                near_until = wp.float64(0.0)
                far_until = wp.float64(0.0)
                if wanted:
                    query = arrays.queries[row]
                    itself = item.a < 0
                    own_a = wp.where(itself, -1 - item.a, item.a)
                    opens_a = bool(False)
                    right = int(0)
                    many = int(1)
                    if not itself:
                        many = 2
                        below_a = arrays.nodes_a[query.node_a + own_a].right
                        below_b = arrays.nodes_b[query.node_b + item.b].right
                        opens_a = below_b < 0 or (
                            below_a >= 0
                            and arrays.nodes_a[query.node_a + own_a].radius
                            >= arrays.nodes_b[query.node_b + item.b].radius
                        )
                        right = wp.where(opens_a, below_a, below_b)
                    keep = boxes_kept_apart(accuracy, upper, arrays.pairs[row].slack)
                    for k in range(many):
                        child = item
                        child.a = own_a
                        if not itself:
                            if opens_a:
                                child.a = wp.where(k == 0, own_a + 1, right)
                            else:
                                child.b = wp.where(k == 0, item.b + 1, right)
                        box_a = arrays.nodes_a[query.node_a + child.a]
                        box_b = arrays.nodes_b[query.node_b + child.b]
                        back_a = wp.transpose(box_axes(box_a))
                        safe = safe_time_of_nearest(now, arrays.pairs, row, keep, back_a, box_a, box_b, leaf.time, _ONE)
                        if not safe[1] > _ONE:
                            of_triangles = box_a.right < 0 and box_b.right < 0
                            child.time = rounded_down(safe[1])
                            if not itself and not of_triangles and wp.float64(child.time) > leaf.time:
                                child.a = -1 - child.a  # it has got on: perhaps it does so again
                            apart = centre_distance(arrays.pairs, row, now, box_a, box_b)
                            if has_near and apart >= near_apart:
                                far = child
                                far_leaf = of_triangles
                                far_until = safe[1]
                                has_far = True
                            else:
                                far = near
                                far_leaf = near_leaf
                                far_until = near_until
                                has_far = has_near
                                near = child
                                near_leaf = of_triangles
                                near_until = safe[1]
                                near_apart = apart
                                has_near = True
                far_pair = ApproachingTriangles()
                near_pair = ApproachingTriangles()
                if has_far and far_leaf:
                    far_pair = corners_wait(
                        row,
                        far_until,
                        arrays.nodes_a[arrays.queries[row].node_a + far.a].triangle,
                        arrays.nodes_b[arrays.queries[row].node_b + far.b].triangle,
                    )
                if has_near and near_leaf:
                    near_pair = corners_wait(
                        row,
                        near_until,
                        arrays.nodes_a[arrays.queries[row].node_a + near.a].triangle,
                        arrays.nodes_b[arrays.queries[row].node_b + near.b].triangle,
                    )
                wp.tile_stack_push(stack, item, put_back)
                wp.tile_stack_push(stack, far, has_far and not far_leaf)
                wp.tile_stack_push(stack, near, has_near and not near_leaf)
                wp.tile_stack_push(leaves, far_pair, has_far and far_leaf)
                wp.tile_stack_push(leaves, near_pair, has_near and near_leaf)
            waiting = wp.tile_stack_count(stack) + wp.tile_stack_count(leaves)
            going = certified and (waiting > 0 or begun < count)
        own = wp.min(best.upper, _FAR)
        least = wp.tile_min(wp.tile(own))[0]
        place_of_least = wp.where(own == least, lane, width)
        chosen = wp.tile_min(wp.tile(place_of_least))[0]
        if asked and lane == chosen:
            best.certified = certified
            found[job] = best

    return find_nearest_by_blocks
