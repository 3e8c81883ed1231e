"""The search: two sphere trees from the top, elementary tests at the leaves, the earliest contact of all.

One thread does it, in the order of the thesis, so that the counts mean what they say: a kernel of dimension one.
Labels: a pair of labels is entered in the table when all tests of a pair of leaves with those labels are done; later
pairs of nodes with the same labels, leaves or not, can have nothing new (Redon 2002, section 2.6.4).
"""

from __future__ import annotations

import warp as wp

from tangere.published.redon_cubics.cubics import edge_edge_root, face_vertex_root, vertex_face_root
from tangere.published.redon_cubics.path import PathPoint, ScrewPath, path_point
from tangere.published.redon_cubics.sphere_tree import SphereNode
from tangere.published.redon_cubics.spheres import BY_QUADRATIC, BY_QUARTIC, REJECTED_PATH, sphere_verdict
from tangere.runtime.warp_setup import SOUND

wp.set_module_options(SOUND)

#: Kinds of elementary tests, and of entries in the table of pairs (0 is a pair of labels).
EDGE_EDGE = wp.constant(1)
VERTEX_FACE = wp.constant(2)
FACE_VERTEX = wp.constant(3)

FACES = wp.constant(0)
EDGES = wp.constant(1)
VERTICES = wp.constant(2)

# Counters, in the order of `Counts`.
_SPHERES = wp.constant(0)
_REJECTED = wp.constant(1)
_ACCEPTED = wp.constant(2)
_QUADRATICS = wp.constant(3)
_QUARTICS = wp.constant(4)
_LABELS_SKIPPED = wp.constant(5)
_LEAF_PAIRS = wp.constant(6)
_ELEMENTARY = wp.constant(6)  # plus the kind
_PAIRS_SKIPPED = wp.constant(10)
_TRANSFORMS = wp.constant(11)

_INF = wp.constant(wp.float64(float("inf")))
#: Fibonacci hashing: 2^64 over the golden ratio.
_SPREAD = wp.constant(wp.uint64(0x9E3779B97F4A7C15))


@wp.struct
class CubicBody:
    """A mesh and its tree."""

    vertices: wp.array[wp.vec3d]
    faces: wp.array[wp.vec3i]
    edges: wp.array[wp.vec2i]
    nodes: wp.array[SphereNode]
    face_first: wp.array[wp.int32]
    face_list: wp.array[wp.int32]
    edge_first: wp.array[wp.int32]
    edge_list: wp.array[wp.int32]
    vertex_first: wp.array[wp.int32]
    vertex_list: wp.array[wp.int32]


@wp.struct
class CubicPlan:
    """The switches and limits of one search."""

    label_table: wp.bool
    pair_tables: wp.bool
    vertex_cache: wp.bool
    prefilters: wp.bool
    pass_time: wp.bool
    stamp: wp.int32  #: of the vertex cache: entries with it are valid
    reach: wp.float64  #: distance that counts as contact [m]


@wp.struct
class CubicCache:
    """What the search remembers."""

    table: wp.array[wp.int64]  #: of pairs done; zero where free, a power of two long
    points: wp.array[PathPoint]  #: cache of the moving body's vertices
    stamps: wp.array[wp.int32]  #: … and when each was computed
    stack: wp.array[wp.vec2i]
    counts: wp.array[wp.int64]


@wp.struct
class CubicHit:
    """The earliest contact."""

    s: wp.float64  #: inf if there is none
    kind: wp.int32
    a: wp.int32  #: feature of the moving body
    b: wp.int32  #: feature of the resting body
    used: wp.int32  #: entries in the table; more than it should hold means: again with a larger one


@wp.func
def count(memory: CubicCache, what: int):
    memory.counts[what] = memory.counts[what] + wp.int64(1)


@wp.func
def feature_a(kind: int) -> int:
    """What the moving body gives to a test: faces, edges or vertices."""
    feature = EDGES
    if kind == VERTEX_FACE:
        feature = VERTICES
    if kind == FACE_VERTEX:
        feature = FACES
    return feature


@wp.func
def feature_b(kind: int) -> int:
    """What the resting body gives to a test."""
    feature = EDGES
    if kind == VERTEX_FACE:
        feature = FACES
    if kind == FACE_VERTEX:
        feature = VERTICES
    return feature


@wp.func
def list_start(body: CubicBody, feature: int, leaf: int) -> int:
    """Where the list of a leaf starts; that of the next one is where it ends."""
    if feature == FACES:
        return body.face_first[leaf]
    if feature == EDGES:
        return body.edge_first[leaf]
    return body.vertex_first[leaf]


@wp.func
def list_entry(body: CubicBody, feature: int, place: int) -> int:
    if feature == FACES:
        return body.face_list[place]
    if feature == EDGES:
        return body.edge_list[place]
    return body.vertex_list[place]


@wp.func
def done(memory: CubicCache, kind: int, a: int, b: int) -> bool:
    """Whether a pair is in the table."""
    return memory.table[_place(memory, _key(kind, a, b))] != wp.int64(0)


@wp.func
def enter(memory: CubicCache, kind: int, a: int, b: int) -> int:
    """Put a pair in the table; 1 if it was not there."""
    key = _key(kind, a, b)
    place = _place(memory, key)
    if memory.table[place] == key:
        return 0
    memory.table[place] = key
    return 1


@wp.func
def _key(kind: int, a: int, b: int) -> wp.int64:
    """Never 0: the kind's bits start at one."""
    return (wp.int64(kind + 1) << wp.int64(60)) | (wp.int64(a) << wp.int64(30)) | wp.int64(b)


@wp.func
def _place(memory: CubicCache, key: wp.int64) -> int:
    """Where a key is in the table, or the free place where it would be."""
    mixed = (wp.uint64(key) * _SPREAD) >> wp.uint64(33)
    place = int(mixed) & (memory.table.shape[0] - 1)
    while memory.table[place] != wp.int64(0) and memory.table[place] != key:
        place = (place + 1) & (memory.table.shape[0] - 1)
    return place


@wp.func
def vertex_path(path: ScrewPath, body: CubicBody, plan: CubicPlan, memory: CubicCache, v: int) -> PathPoint:
    """The path of a vertex of the moving body, from the cache if it is there."""
    if plan.vertex_cache:
        if memory.stamps[v] == plan.stamp:
            return memory.points[v]
    count(memory, _TRANSFORMS)
    point = path_point(path, body.vertices[v])
    if plan.vertex_cache:
        memory.points[v] = point
        memory.stamps[v] = plan.stamp
    return point


@wp.func
def spheres_meet(
    path: ScrewPath, a: SphereNode, b: SphereNode, plan: CubicPlan, memory: CubicCache, end: wp.float64
) -> bool:
    verdict = sphere_verdict(path, path_point(path, a.centre), b.centre, a.radius + b.radius, end, plan.prefilters)
    count(memory, _SPHERES)
    way = _ACCEPTED
    if verdict == REJECTED_PATH:
        way = _REJECTED
    if verdict >= BY_QUADRATIC:
        way = _QUADRATICS
    if verdict >= BY_QUARTIC:
        way = _QUARTICS
    count(memory, way)
    return verdict % 2 == 1


@wp.func
def elementary(
    path: ScrewPath,
    a: CubicBody,
    b: CubicBody,
    plan: CubicPlan,
    memory: CubicCache,
    kind: int,
    i: int,
    j: int,
    end: wp.float64,
) -> wp.float64:
    """The first contact of feature i of the moving body with feature j of the resting one in [0, end]."""
    if kind == EDGE_EDGE:
        e = a.edges[i]
        f = b.edges[j]
        p = vertex_path(path, a, plan, memory, e[0])
        q = vertex_path(path, a, plan, memory, e[1])
        return edge_edge_root(path, p, q, b.vertices[f[0]], b.vertices[f[1]], end, plan.reach)
    if kind == VERTEX_FACE:
        hit = b.faces[j]
        p = vertex_path(path, a, plan, memory, i)
        return vertex_face_root(path, p, b.vertices[hit[0]], b.vertices[hit[1]], b.vertices[hit[2]], end, plan.reach)
    face = a.faces[i]
    p = vertex_path(path, a, plan, memory, face[0])
    q = vertex_path(path, a, plan, memory, face[1])
    r = vertex_path(path, a, plan, memory, face[2])
    return face_vertex_root(path, b.vertices[j], p, q, r, end, plan.reach)


@wp.kernel
def search_kernel(
    first: int,
    paths: wp.array[ScrewPath],
    moving: CubicBody,
    resting: CubicBody,
    plan: CubicPlan,
    memory: CubicCache,
    answer: wp.array[CubicHit],
):
    """All pairs of nodes from the roots down; `first` + tid is always 0."""
    path = paths[first + wp.tid()]
    best = CubicHit()
    best.s = _INF
    used = int(0)
    kinds = int(FACE_VERTEX + 1)  # a variable: the loop over them is not unrolled
    end = wp.float64(1.0)
    top = int(1)
    memory.stack[0] = wp.vec2i(0, 0)
    while top > 0 and 4 * used < 3 * memory.table.shape[0]:
        top -= 1
        pair = memory.stack[top]
        a = moving.nodes[pair[0]]
        b = resting.nodes[pair[1]]
        skip = bool(False)
        if plan.label_table:
            skip = done(memory, 0, a.label, b.label)
        if skip:
            count(memory, _LABELS_SKIPPED)
        elif spheres_meet(path, a, b, plan, memory, end):
            if a.right == 0 and b.right == 0:
                count(memory, _LEAF_PAIRS)
                for kind in range(EDGE_EDGE, kinds):
                    mine = feature_a(kind)
                    theirs = feature_b(kind)
                    for m in range(list_start(moving, mine, a.leaf), list_start(moving, mine, a.leaf + 1)):
                        i = list_entry(moving, mine, m)
                        for n in range(list_start(resting, theirs, b.leaf), list_start(resting, theirs, b.leaf + 1)):
                            j = list_entry(resting, theirs, n)
                            fresh = int(1)
                            if plan.pair_tables and 4 * used < 3 * memory.table.shape[0]:
                                fresh = enter(memory, kind, i, j)
                                used += fresh
                            if fresh == 0:
                                count(memory, _PAIRS_SKIPPED)
                            else:
                                count(memory, _ELEMENTARY + kind)
                                s = elementary(path, moving, resting, plan, memory, kind, i, j, end)
                                if s < best.s:
                                    best.s = s
                                    best.kind = kind
                                    best.a = i
                                    best.b = j
                                    if plan.pass_time:
                                        end = s
                if plan.label_table:
                    used += enter(memory, 0, a.label, b.label)
            elif b.right == 0 or (a.right != 0 and a.radius >= b.radius):
                memory.stack[top] = wp.vec2i(a.right, pair[1])
                memory.stack[top + 1] = wp.vec2i(pair[0] + 1, pair[1])
                top += 2
            else:
                memory.stack[top] = wp.vec2i(pair[0], b.right)
                memory.stack[top + 1] = wp.vec2i(pair[0], pair[1] + 1)
                top += 2
    best.used = used
    answer[0] = best
