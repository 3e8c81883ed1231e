"""What the stages of the CUDA pipeline hand on to each other: bodies, candidates, features, contact points.

Lists have SEGMENTS segments, each with a counter of its own: threads would wait for a single one. A list that is too
short is counted on and its contents ignored; the host runs the chunk again with more capacity. `pipeline` has the plan.
"""

from __future__ import annotations

import warp as wp

from tangere.bvh.height_pyramid import Terrain
from tangere.query.intersection.cylinder_heightfield import upright_cylinder
from tangere.query.manifold.details import ContactPoint, store_contact_point
from tangere.query.manifold.narrow_phase.contact import BodyPlace, place_over
from tangere.query.manifold.traversal import GroundAround
from tangere.runtime import SOUND
from tangere.shape.analytic import AnalyticShape, Hulls, PlacedBody, place

wp.set_module_options(SOUND)

SEGMENTS = wp.constant(256)
#: Threads that share the work of a segment.
LANES = wp.constant(1024)
#: Blocks that share a CUDA multiprocessor: fewer registers for each thread, but more threads to wait together.
BLOCKS = 4

#: Which lists the counters belong to, SEGMENTS each and 64 bytes apart: candidates, contact points, features of three
#: kinds, cells, candidates that are blocks of four cells, all other candidates, slots of sorted contact points.
CANDIDATES = wp.constant(0)
CONTACT_POINTS = wp.constant(256)
FACES = wp.constant(512)
VERTICES = wp.constant(768)
EDGES = wp.constant(1024)
CELLS = wp.constant(1280)
CELL_BLOCKS = wp.constant(1536)
SINGLE_NODES = wp.constant(1792)
SLOTS = wp.constant(2048)
#: The counter that says which body is not finite.
NOT_FINITE = wp.constant(8 * 2304)
COUNTERS = 8 * 2304 + 1

#: Features of a cell or of planar ground, in the order of the traversal: two triangles or a rectangle, a vertex, edges.
VERTEX = wp.constant(3)
EDGE = wp.constant(4)

#: Tasks of a candidate, besides the flags of its node: faces, the vertex and edges it owns, four cells to refine.
HAS_FACE = wp.constant(64)
IS_OWNER = wp.constant(128)
IS_BLOCK = wp.constant(256)


@wp.struct
class Batch:
    """The bodies and the ground they are on."""

    chosen: wp.array[int]  # numbers of the bodies
    first: wp.int32  # of those in the chunk that is computed
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
    """What later stages read of a body instead of making it again: the less, the faster."""

    number: wp.int32
    world: wp.int32
    axis: wp.vec3d
    side: wp.vec3d
    centre: wp.vec3d  #: this and the next two: of its `BodyPlace`
    margin: wp.float64
    slack: wp.float64
    lowest: wp.float64  #: this and the next two: of its `GroundAround`
    down: wp.vec3d
    window: wp.vec4i


@wp.struct
class CandidateNode:
    """A node that a body is near to: four cells still to be refined, a cell, or planar ground."""

    body: wp.int32  #: its number in the chunk
    tasks: wp.int32  #: flags of the node, and which of its features to test; IS_BLOCK if it is four cells
    node: wp.vec3i  #: level, row, column


@wp.struct
class Link:
    """A contact in the chain of those of its body, which has no order of its own."""

    after: wp.int32  #: the next contact of the chain; -1 is its end
    order: wp.int64  #: where it comes in the traversal; odd if it is a wall


@wp.struct
class ManifoldBuffers:
    """Everything the stages hand on: the bodies of a chunk, what they are near to and what they touch.

    (candidates), (points) and (slots) are SEGMENTS times the capacity of that list.
    """

    bodies: wp.array[PackedBody]  # (bodies)
    candidates: wp.array[CandidateNode]  # of a body in the order of the traversal, each before the owners on its rim
    candidate_capacity: wp.int32  # of a segment
    by_kind: wp.array[
        int
    ]  # (candidates) of each segment from its begin on blocks of four cells, from its end all others
    cells: wp.array[wp.vec2i]  # (4 candidates) 4 * candidate + quarter of what is to be culled, and its tasks
    features: wp.array[int]  # (24 candidates) see `add_features`: first faces, then vertices, then edges of a segment
    contact_points: wp.array[ContactPoint]
    links: wp.array[Link]  # (points)
    contact_capacity: wp.int32  # of a segment
    heads: wp.array[int]  # (bodies) where the chain of its contact points begins
    begin: wp.array[int]  # (bodies) its first slot; after its sorted points there is one more for a lifted body …
    end: wp.array[int]  # (bodies) … which is here
    slot_capacity: wp.int32  # of a segment
    sorted_points: wp.array[int]  # (slots) 2 * contact point, or 2 * contact point + 1 if it is a wall
    next_in_group: wp.array[int]  # (slots) the next slot of the group; -1 is the end
    last_in_group: wp.array[int]  # (slots) of the first of a group: the last
    next_group: wp.array[int]  # (slots) of the first of a group: the first of the next; -1 is the end
    leaders: wp.array[wp.vec4i]  # (KEPT_FOURS slots) of the first of a group: contact points that lead …
    retained: wp.array[wp.vec4i]  # (slots) … and those that are retained, -1 for none
    groups: wp.array[int]  # (bodies) the first of its first group
    counts: wp.array[wp.int64]  # (COUNTERS)


@wp.func
def load_body(batch: Batch, k: int) -> LoadedBody:
    """The k-th body of the chunk, made from its pose."""
    here = LoadedBody()
    i = batch.chosen[batch.first + k]
    here.number = i
    here.world = batch.worlds[wp.min(i, batch.worlds.shape[0] - 1)]
    pose = batch.poses[i]
    here.body = place(batch.shapes[wp.min(i, batch.shapes.shape[0] - 1)], pose)
    margin = batch.margins[wp.min(i, batch.margins.shape[0] - 1)]
    here.place = place_over(batch.terrains[here.world], here.body, batch.hulls, pose, margin, k)
    return here


@wp.func
def pack_body(buffers: ManifoldBuffers, k: int, here: LoadedBody, around: GroundAround):
    """Store what is expensive to make again."""
    packed = PackedBody()
    packed.number = here.number
    packed.world = here.world
    packed.axis = here.body.axis
    packed.side = here.body.side
    packed.centre = here.place.centre
    packed.margin = here.place.margin
    packed.slack = here.place.slack
    packed.lowest = around.lowest
    packed.down = around.grown.down
    packed.window = around.walk.window
    buffers.bodies[k] = packed


@wp.func
def unpack_body(batch: Batch, buffers: ManifoldBuffers, k: int) -> LoadedBody:
    """The k-th body of the chunk, from what was packed."""
    packed = buffers.bodies[k]
    i = packed.number
    here = LoadedBody()
    here.number = i
    here.world = packed.world
    here.body = place(batch.shapes[wp.min(i, batch.shapes.shape[0] - 1)], batch.poses[i])
    here.body.axis = packed.axis
    here.body.side = packed.side
    here.place.centre = packed.centre
    here.place.slot = k
    here.place.margin = packed.margin
    here.place.slack = packed.slack
    return here


@wp.func
def unpack_surroundings(buffers: ManifoldBuffers, here: LoadedBody) -> GroundAround:
    """What is around a body, without the nodes to walk over, from what was packed."""
    packed = buffers.bodies[here.place.slot]
    around = GroundAround()
    around.walk.window = packed.window
    around.near = packed.margin + packed.slack
    around.lowest = packed.lowest
    around.grown = upright_cylinder(
        wp.vec3d(), here.body.axis, here.body.radius + around.near, here.body.reach + around.near
    )
    around.grown.down = packed.down
    around.grown.side = wp.cross(around.grown.axis, packed.down)
    return around


@wp.func
def segment_of(thread: int) -> int:
    """The segment of the lists that a thread, or a body, appends to: one for each warp in turn."""
    return (thread >> 5) % SEGMENTS


@wp.func
def filled(buffers: ManifoldBuffers, counter: int, segment: int, capacity: int) -> int:
    """How many there are in a segment of a list."""
    return int(wp.min(buffers.counts[8 * (counter + segment)], wp.int64(capacity)))


@wp.func
def overflowed(buffers: ManifoldBuffers, segment: int) -> bool:
    """Whether a list was too short for a segment: what it holds is of no use, all is done again with more room."""
    candidates = buffers.counts[8 * (CANDIDATES + segment)]
    contact_points = buffers.counts[8 * (CONTACT_POINTS + segment)]
    return candidates > wp.int64(buffers.candidate_capacity) or contact_points > wp.int64(buffers.contact_capacity)


@wp.func
def node_of(candidate: CandidateNode, quarter: int) -> wp.vec3i:
    """The node of a candidate, or of the cell that is its quarter; the walk goes from the last one to the first."""
    if (candidate.tasks & IS_BLOCK) == 0:
        return candidate.node
    return wp.vec3i(0, 2 * candidate.node[1] + 1 - (quarter >> 1), 2 * candidate.node[2] + 1 - (quarter & 1))


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
def _fetch_add(counts: wp.array[wp.int64], at: int, amount: int) -> wp.int64:
    """Add an amount to a counter; what it was before."""
    ...


@wp.func
def advance(buffers: ManifoldBuffers, counter: int, segment: int, amount: int) -> wp.int64:
    """Take `amount` entries at the end of a segment of a list; which is the first. They are counted, fit or not."""
    return _fetch_add(buffers.counts, 8 * (counter + segment), amount)


@wp.func
def add_cell(buffers: ManifoldBuffers, segment: int, cell: int, tasks: int):
    """List a cell or planar ground (4 * candidate + quarter) that a body is near to."""
    at = int(advance(buffers, CELLS, segment, 1))
    buffers.cells[4 * segment * buffers.candidate_capacity + at] = wp.vec2i(cell, tasks)


@wp.func
def feature_at(buffers: ManifoldBuffers, counter: int, segment: int) -> int:
    """Where the features of a kind begin; a segment has room for 8 faces, 4 vertices, 12 edges of each candidate."""
    before = wp.where(counter == FACES, 0, wp.where(counter == VERTICES, 8, 12))
    return (24 * segment + before) * buffers.candidate_capacity


@wp.func
def add_features(buffers: ManifoldBuffers, counter: int, segment: int, cell: int, mask: int):
    """List features of one kind of a cell (4 * candidate + quarter), given as bits: 8 * cell + feature."""
    number = int(0)
    for k in range(7):
        number += (mask >> k) & 1
    if number == 0:
        return
    at = feature_at(buffers, counter, segment) + int(advance(buffers, counter, segment, number))
    for k in range(7):
        if ((mask >> k) & 1) != 0:
            buffers.features[at] = 8 * cell + k
            at += 1


@wp.func
def reserve(buffers: ManifoldBuffers, segment: int, number: int) -> int:
    """Room for some contact points side by side; where the first goes, -1 if they do not fit."""
    at = advance(buffers, CONTACT_POINTS, segment, number)
    if at + wp.int64(number) > wp.int64(buffers.contact_capacity):
        return -1
    return segment * buffers.contact_capacity + int(at)


@wp.func
def store(buffers: ManifoldBuffers, at: int, contact: ContactPoint, order: wp.int64):
    """Write a contact point that is in no chain yet, and where it comes in the traversal."""
    store_contact_point(buffers.contact_points, at, contact)
    set_link(buffers, at, -1, order)


@wp.func
def set_link(buffers: ManifoldBuffers, at: int, after: int, order: wp.int64):
    """Write which contact point follows one in its chain, and where it comes in the traversal."""
    link = Link()
    link.after = after
    link.order = order
    buffers.links[at] = link


@wp.func
def prepend(buffers: ManifoldBuffers, body: int, first: int, last: int):
    """Put a chain of contact points before all others of a body."""
    buffers.links[last].after = wp.atomic_exch(buffers.heads, body, first)
