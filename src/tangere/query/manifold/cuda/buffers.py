"""What the kernels of `rounds` tell each other: the bodies, what they are near to, and what they touch.

Lists have SEGMENTS segments, each with a counter of its own: a single one would be waited for.
"""

from __future__ import annotations

import warp as wp

from tangere.bvh.height_pyramid import Terrain
from tangere.query.intersection.cylinder_heightfield import upright_cylinder
from tangere.query.manifold.contact_point import ContactPoint, put_touch
from tangere.query.manifold.features.contact import BodyPlace, stand
from tangere.query.manifold.sweep import GroundAround
from tangere.runtime import SOUND
from tangere.shape.analytic import AnalyticShape, Hulls, PlacedBody, place

wp.set_module_options(SOUND)

__all__ = [
    "BLOCKS",
    "CELLS",
    "COUNTERS",
    "EDGE",
    "EDGES",
    "FACES",
    "FOURS",
    "HAS_FACE",
    "IS_BLOCK",
    "IS_OWNER",
    "ITEM_COUNT",
    "LANES",
    "PLACES",
    "SEGMENTS",
    "TOUCH_COUNT",
    "VERTEX",
    "VERTICES",
    "WHOLES",
    "WRONG",
    "Batch",
    "Item",
    "Link",
    "LoadedBody",
    "ManifoldBuffers",
    "PackedBody",
    "add_cell",
    "add_features",
    "chain",
    "feature_at",
    "filled",
    "is_short",
    "link_up",
    "load_body",
    "node_of",
    "pack_body",
    "places",
    "put",
    "reserve",
    "segment_of",
    "standing",
    "surrounded",
]

SEGMENTS = wp.constant(256)
#: Threads that share the work of a segment.
LANES = wp.constant(1024)
#: Blocks that share a CUDA multiprocessor: fewer registers for each thread, but more threads to wait together.
BLOCKS = 4

#: Which lists the counters belong to, SEGMENTS each and 64 bytes apart: items, touches, features of three kinds, cells,
#: blocks of four cells, all other items, touches in order.
ITEM_COUNT = wp.constant(0)
TOUCH_COUNT = wp.constant(256)
FACES = wp.constant(512)
VERTICES = wp.constant(768)
EDGES = wp.constant(1024)
CELLS = wp.constant(1280)
FOURS = wp.constant(1536)
WHOLES = wp.constant(1792)
PLACES = wp.constant(2048)
#: Where it is said that a body is not finite.
WRONG = wp.constant(8 * 2304)
COUNTERS = 8 * 2304 + 1

#: Features of a cell or of planar ground, in the order of the sweep: two triangles or a rectangle, a vertex, edges.
VERTEX = wp.constant(3)
EDGE = wp.constant(4)

#: What an item is, besides the flags of its node: one with faces, one with the vertex and edges it owns, four cells.
HAS_FACE = wp.constant(64)
IS_OWNER = wp.constant(128)
IS_BLOCK = wp.constant(256)


@wp.struct
class Batch:
    """The bodies and the ground they are on."""

    chosen: wp.array[int]  # numbers of the bodies
    first: wp.int32  # of those in the part that is done
    terrains: wp.array[Terrain]
    shapes: wp.array[AnalyticShape]  # (n) or (1)
    poses: wp.array[wp.mat44d]
    margins: wp.array[wp.float64]  # (n) or (1) [m]
    worlds: wp.array[int]  # (n) or (1)
    hulls: Hulls


@wp.struct
class LoadedBody:
    """A body where it is."""

    number: wp.int32
    world: wp.int32
    body: PlacedBody
    place: BodyPlace


@wp.struct
class PackedBody:
    """What is written down of a body: the less, the faster."""

    number: wp.int32
    world: wp.int32
    axis: wp.vec3d
    side: wp.vec3d
    centre: wp.vec3d  #: this and the next two: of its `Place`
    margin: wp.float64
    slack: wp.float64
    lowest: wp.float64  #: this and the next two: of its `Surroundings`
    down: wp.vec3d
    window: wp.vec4i


@wp.struct
class Item:
    """A node that a body is near to: four cells still to be looked at, a cell, or planar ground."""

    body: wp.int32  #: its place in the part
    what: wp.int32  #: flags of the node, and what it is asked for; IS_BLOCK if it is four cells
    node: wp.vec3i  #: level, row, column


@wp.struct
class Link:
    """A touch in the chain of those of its body, which has no order of its own."""

    after: wp.int32  #: the next touch of the chain; -1 is its end
    order: wp.int64  #: where it comes in the sweep; odd if it is a wall


@wp.struct
class ManifoldBuffers:
    """All that the bodies of a part are near to and touch."""

    noted: wp.array[PackedBody]  # (bodies)
    items: wp.array[Item]  # those of a body in the order of the sweep; after planar ground, the owners on its rim
    item_room: wp.int32  # of a segment
    near: wp.array[int]  # (items) from the begin of a segment on: blocks of four cells; from its end on: all others
    cells: wp.array[wp.vec2i]  # (4 items) 4 * item + quarter of what is to be sifted, and what it is
    features: wp.array[int]  # (24 items) see `add_features`: first faces, then vertices, then edges of a segment
    touches: wp.array[ContactPoint]
    links: wp.array[Link]  # (touches)
    room: wp.int32  # of a segment
    heads: wp.array[int]  # (bodies) where the chain of its touches begins
    begin: wp.array[int]  # (bodies) where its touches are in order, with one more place for that of a lifted body …
    end: wp.array[int]  # (bodies) … and where that is
    place_room: wp.int32  # of a segment
    touch: wp.array[int]  # (places) 2 * touch, or 2 * touch + 1 if it is a wall
    fellow: wp.array[int]  # (places) the next place of the group; -1 is the end
    last: wp.array[int]  # (places) of the first of a group: the last
    next_group: wp.array[int]  # (places) of the first of a group: the first of the next; -1 is the end
    kept: wp.array[wp.vec4i]  # (KEPT_FOURS places) of the first of a group: touches that lead …
    stay: wp.array[wp.vec4i]  # (places) … and those that stay, -1 for none
    groups: wp.array[int]  # (bodies) the first of its first group
    counts: wp.array[wp.int64]  # (COUNTERS)


@wp.func
def load_body(batch: Batch, k: int) -> LoadedBody:
    """The k-th body of the part, made from its pose."""
    here = LoadedBody()
    i = batch.chosen[batch.first + k]
    here.number = i
    here.world = batch.worlds[wp.min(i, batch.worlds.shape[0] - 1)]
    pose = batch.poses[i]
    here.body = place(batch.shapes[wp.min(i, batch.shapes.shape[0] - 1)], pose)
    margin = batch.margins[wp.min(i, batch.margins.shape[0] - 1)]
    here.place = stand(batch.terrains[here.world], here.body, pose, margin, k)
    return here


@wp.func
def pack_body(story: ManifoldBuffers, k: int, here: LoadedBody, around: GroundAround):
    """Write down what is dear to make again."""
    noted = PackedBody()
    noted.number = here.number
    noted.world = here.world
    noted.axis = here.body.axis
    noted.side = here.body.side
    noted.centre = here.place.centre
    noted.margin = here.place.margin
    noted.slack = here.place.slack
    noted.lowest = around.lowest
    noted.down = around.grown.down
    noted.window = around.walk.window
    story.noted[k] = noted


@wp.func
def standing(batch: Batch, story: ManifoldBuffers, k: int) -> LoadedBody:
    """The k-th body of the part, once it is noted."""
    noted = story.noted[k]
    i = noted.number
    here = LoadedBody()
    here.number = i
    here.world = noted.world
    here.body = place(batch.shapes[wp.min(i, batch.shapes.shape[0] - 1)], batch.poses[i])
    here.body.axis = noted.axis
    here.body.side = noted.side
    here.place.centre = noted.centre
    here.place.slot = k
    here.place.margin = noted.margin
    here.place.slack = noted.slack
    return here


@wp.func
def surrounded(story: ManifoldBuffers, here: LoadedBody) -> GroundAround:
    """What is around a body, but for the nodes to walk over."""
    noted = story.noted[here.place.slot]
    around = GroundAround()
    around.walk.window = noted.window
    around.near = noted.margin + noted.slack
    around.lowest = noted.lowest
    around.grown = upright_cylinder(
        wp.vec3d(), here.body.axis, here.body.radius + around.near, here.body.reach + around.near
    )
    around.grown.down = noted.down
    around.grown.side = wp.cross(around.grown.axis, noted.down)
    return around


@wp.func
def segment_of(thread: int) -> int:
    return (thread >> 5) % SEGMENTS


@wp.func
def filled(story: ManifoldBuffers, what: int, segment: int, room: int) -> int:
    """How many there are in a segment of a list."""
    return int(wp.min(story.counts[8 * (what + segment)], wp.int64(room)))


@wp.func
def is_short(story: ManifoldBuffers, segment: int) -> bool:
    """Whether a list was too short for a segment: what it holds is of no use, all is done again with more room."""
    items = story.counts[8 * (ITEM_COUNT + segment)]
    touches = story.counts[8 * (TOUCH_COUNT + segment)]
    return items > wp.int64(story.item_room) or touches > wp.int64(story.room)


@wp.func
def node_of(item: Item, quarter: int) -> wp.vec3i:
    """The node of an item, or of the cell that is its quarter; the walk goes from the last one to the first."""
    if (item.what & IS_BLOCK) == 0:
        return item.node
    return wp.vec3i(0, 2 * item.node[1] + 1 - (quarter >> 1), 2 * item.node[2] + 1 - (quarter & 1))


@wp.func_native("""
#if __CUDA_ARCH__ >= 700
    // One atomic for all lanes of a warp that ask for the same counter.
    const unsigned lanes = __match_any_sync(__activemask(), at);
    const unsigned before = lanes & ((1u << (threadIdx.x & 31)) - 1);
    int mine = 0, all = 0;
    for (int bit = 0; __any_sync(lanes, amount >> bit); ++bit) {
        const unsigned with = __ballot_sync(lanes, (amount >> bit) & 1);
        mine += __popc(with & before) << bit;
        all += __popc(with) << bit;
    }
    unsigned long long first = 0;
    if (before == 0)
        first = atomicAdd((unsigned long long*)&counts.data[at], (unsigned long long)all);
    return (wp::int64)__shfl_sync(lanes, first, __ffs(lanes) - 1) + mine;
#else
    return wp::atomic_add(&counts.data[at], (wp::int64)amount);
#endif
""")
def _count_up(counts: wp.array[wp.int64], at: int, amount: int) -> wp.int64:
    """Add an amount to a counter; what it was before."""
    ...


@wp.func
def places(story: ManifoldBuffers, what: int, segment: int, amount: int) -> wp.int64:
    """The first of some places at the end of a segment of a list; they are counted, fit or not."""
    return _count_up(story.counts, 8 * (what + segment), amount)


@wp.func
def add_cell(story: ManifoldBuffers, segment: int, cell: int, what: int):
    """List a cell or planar ground (4 * item + quarter) that a body is near to."""
    at = int(places(story, CELLS, segment, 1))
    story.cells[4 * segment * story.item_room + at] = wp.vec2i(cell, what)


@wp.func
def feature_at(story: ManifoldBuffers, what: int, segment: int) -> int:
    """Where the features of a kind begin: a segment has room for 8 faces, 4 vertices and 12 edges of every item."""
    before = wp.where(what == FACES, 0, wp.where(what == VERTICES, 8, 12))
    return (24 * segment + before) * story.item_room


@wp.func
def add_features(story: ManifoldBuffers, what: int, segment: int, cell: int, kept: int):
    """List features of one kind of a cell (4 * item + quarter), given as bits: 8 * cell + feature."""
    number = int(0)
    for k in range(7):
        number += (kept >> k) & 1
    if number == 0:
        return
    at = feature_at(story, what, segment) + int(places(story, what, segment, number))
    for k in range(7):
        if ((kept >> k) & 1) != 0:
            story.features[at] = 8 * cell + k
            at += 1


@wp.func
def reserve(story: ManifoldBuffers, segment: int, number: int) -> int:
    """Room for some touches side by side; where the first goes, -1 if they do not fit."""
    at = places(story, TOUCH_COUNT, segment, number)
    if at + wp.int64(number) > wp.int64(story.room):
        return -1
    return segment * story.room + int(at)


@wp.func
def put(story: ManifoldBuffers, at: int, touch: ContactPoint, order: wp.int64):
    put_touch(story.touches, at, touch)
    link_up(story, at, -1, order)


@wp.func
def link_up(story: ManifoldBuffers, at: int, after: int, order: wp.int64):
    link = Link()
    link.after = after
    link.order = order
    story.links[at] = link


@wp.func
def chain(story: ManifoldBuffers, body: int, first: int, last: int):
    """Put touches that are linked to each other before all others of a body."""
    story.links[last].after = wp.atomic_exch(story.heads, body, first)
