"""A kernel of `rounds`: puts the touches of a body into the order in which the sweep meets them.

It gives them places side by side, after those of the body before: neighbouring threads then read neighbouring places.
"""

from __future__ import annotations

import warp as wp

from tangere.query.manifold.cuda.buffers import BLOCKS, PLACES, Link, ManifoldBuffers, places, segment_of
from tangere.runtime import BLOCK, SOUND

wp.set_module_options(SOUND)

__all__ = ["put_in_order"]

#: Touches of a body that are put into order in registers.
AT_ONCE = wp.constant(16)
Orders = wp.types.vector(length=16, dtype=wp.int64)
Numbers = wp.types.vector(length=16, dtype=wp.int32)

_LAST = wp.constant(wp.int64(2**63 - 1))


@wp.kernel(module="unique", module_options=SOUND, launch_bounds=(BLOCK, BLOCKS + 2))
def put_in_order(first: int, story: ManifoldBuffers):
    k = first + wp.tid()
    if not sort_few(story, k):
        sort_many(story, k)


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    const longlong2 both = *reinterpret_cast<const longlong2*>(&links.data[at]);
    return wp::vec_t<2, wp::int64>((int)both.x, both.y);
#else
    return wp::vec_t<2, wp::int64>(links.data[at].after, links.data[at].order);
#endif
""")
def link_at(links: wp.array[Link], at: int) -> wp.vec2l:
    """A link, read at once: after and order."""
    ...


@wp.func
def with_wall(at: int, order: wp.int64) -> int:
    """A touch as it stands in a place."""
    return 2 * at + int(order & wp.int64(1))


@wp.func
def sort_few(story: ManifoldBuffers, k: int) -> bool:
    """Put the touches of a body into order, unless they are more than AT_ONCE."""
    orders = Orders()
    numbers = Numbers()
    for s in range(AT_ONCE):
        orders[s] = _LAST
    count = int(0)
    at = story.heads[k]
    while at >= 0 and count < AT_ONCE:
        link = link_at(story.links, at)
        order = link[1]
        number = with_wall(at, order)
        for s in range(AT_ONCE):
            other = orders[s]
            other_number = numbers[s]
            if order < other:
                orders[s] = order
                numbers[s] = number
                order = other
                number = other_number
        at = int(link[0])
        count += 1
    if at >= 0:
        return False
    segment = segment_of(k)
    begin = segment * story.place_room + int(places(story, PLACES, segment, count + 1))
    story.begin[k] = begin
    story.end[k] = begin + count
    for s in range(AT_ONCE):
        if s < count:
            story.touch[begin + s] = numbers[s]
    return True


@wp.func
def sort_many(story: ManifoldBuffers, k: int):
    """Put the touches of a body into order, however many they are: a heap sort."""
    count = int(0)
    at = story.heads[k]
    while at >= 0:
        count += 1
        at = story.links[at].after
    segment = segment_of(k)
    begin = segment * story.place_room + int(places(story, PLACES, segment, count + 1))
    story.begin[k] = begin
    story.end[k] = begin + count
    # A heap, whose first is the last in order, in the places themselves.
    size = int(0)
    at = story.heads[k]
    while at >= 0:
        link = link_at(story.links, at)
        hole = size + 0
        is_less = bool(True)
        while hole > 0 and is_less:
            parent = (hole - 1) // 2
            is_less = order_at(story, begin + parent) < link[1]
            if is_less:
                story.touch[begin + hole] = story.touch[begin + parent]
                hole = parent + 0
        story.touch[begin + hole] = with_wall(at, link[1])
        size += 1
        at = int(link[0])
    while size > 1:
        size -= 1
        moved = story.touch[begin + size]
        order = order_at(story, begin + size)
        story.touch[begin + size] = story.touch[begin]
        hole = int(0)
        child = int(1)
        while child < size:
            if child + 1 < size:
                if order_at(story, begin + child + 1) > order_at(story, begin + child):
                    child += 1
            if order_at(story, begin + child) > order:
                story.touch[begin + hole] = story.touch[begin + child]
                hole = child + 0
                child = 2 * child + 1
            else:
                child = size + 0
        story.touch[begin + hole] = moved


@wp.func
def order_at(story: ManifoldBuffers, place: int) -> wp.int64:
    return story.links[story.touch[place] >> 1].order
