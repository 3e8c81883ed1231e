"""Simplices that know their neighbours: the arrays that a cut reads and changes, and how a change is taken back.

Question: who is beyond each facet of a tetrahedron or triangle, and what was there before this step?
Method:   a simplex has 4 corners, or 3 in a sheet; facet k is opposite corner k; beyond it is 4 o + j, facet j of
          simplex o, or -1 where the body ends. Simplices and vertices are only ever added. Before a row changes for
          the first time in a step it is put into a journal.
Sound:    the journal has room for every row, so a step that runs out of room anywhere else, or is not wanted, is
          undone to the last bit (`undo`).
Known as: a half-facet data structure (Dyedov et al. 2015, "AHF"); an undo log.
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND

wp.set_module_options(SOUND | {"max_unroll": 1})

#: Places in `numbers`.
SIMPLICES = wp.constant(0)
VERTICES = wp.constant(1)
STATUS = wp.constant(2)
MARK = wp.constant(3)
VERTEX_MARK = wp.constant(4)
STROKE = wp.constant(5)
STEP = wp.constant(6)
SIMPLICES_BEFORE = wp.constant(7)
VERTICES_BEFORE = wp.constant(8)
ON_BEFORE = wp.constant(9)
WANTED_PART = wp.constant(10)
CROSSED = wp.constant(11)
BISECTED = wp.constant(12)
SNAPPED = wp.constant(13)
MOVED = wp.constant(14)
GUARDED = wp.constant(15)
CHORDS = wp.constant(16)
PENDING = wp.constant(17)
CRUMBS = wp.constant(18)
DROPPED = wp.constant(19)
SPLIT = wp.constant(20)
UNDECIDED = wp.constant(21)
TURNED = wp.constant(22)
NUMBERS = 23

#: Values of STATUS.
FINE = wp.constant(0)
FULL = wp.constant(1)

#: Rows of `lists`.
CANDIDATES = wp.constant(0)
CROSSED_P = wp.constant(1)
CROSSED_Q = wp.constant(2)
CROSSED_BY = wp.constant(3)
ON = wp.constant(4)
LOOK = wp.constant(5)
WAITING = wp.constant(6)
WAITING_BEFORE = wp.constant(7)
FACETS = wp.constant(8)
ENDS = wp.constant(9)
SEPARATING = wp.constant(10)
STARS = wp.constant(11)
STAR_ENDS = wp.constant(12)
RING = wp.constant(13)
STAR = wp.constant(14)
FLOOD = wp.constant(15)
AROUND = wp.constant(16)
OPENED = wp.constant(17)
CHANGED = wp.constant(18)
BLENDED = wp.constant(19)
BLENDED_P = wp.constant(20)
BLENDED_Q = wp.constant(21)
CHAINS = wp.constant(22)
EDGES_P = wp.constant(23)
EDGES_Q = wp.constant(24)
EDGES_AT = wp.constant(25)
LISTS = 26


@wp.struct
class ComplexArrays:
    """n simplices, v vertices, and what a stroke of the blade has said about them."""

    size: int  #: corners of a simplex: 4, or 3 in a sheet
    simplex_room: int
    vertex_room: int
    list_room: int
    corners: wp.array[wp.vec4i]  #: (n,) vertices
    neighbours: wp.array[wp.vec4i]  #: (n,) 4 o + j beyond each facet, or -1
    opening: wp.array[int]  #: (n,) bit k: facet k is about to open; bit 4 + k: something separates there
    wall: wp.array[int]  #: (n,) bit k: facet k was opened by a blade
    label: wp.array[int]  #: (n,) the stroke in which its side was decided, with the sign of the side
    next: wp.array[int]  #: (n,) another simplex bisected from the same one, or -1
    part: wp.array[int]  #: (n,) which connected part it belongs to
    mark: wp.array[int]  #: (n,) the last flood that came by
    changed: wp.array[int]  #: (n,) the last step that changed corners or neighbours
    kept: wp.array[int]  #: (n,) the last step in which it went into the journal
    twin: wp.array[int]  #: (n,) the other child while it is bisected
    rest: wp.array[wp.vec3d]  #: (v,) where vertices are at rest [m]
    simplex_at: wp.array[int]  #: (v,) one of the simplices there
    on: wp.array[int]  #: (v,) the last stroke whose cut goes through it
    side: wp.array[
        int
    ]  #: (v,) 2 n where stroke n was the last to pass it, 2 n + 1 where that is a guess; the sign is of the side
    seen_from: wp.array[int]  #: (v,) a vertex on the cut from which it is seen on that side, or -1
    normal: wp.array[wp.vec3d]  #: (v,) of the cut there
    height: wp.array[wp.vec2d]  #: (v,) above the cut where it was snapped; the cut is normal . x = second number [m]
    level: wp.array[int]  #: (v,) 0; how many guesses beyond the blade where the end of a stroke put it on the cut
    near: wp.array[int]  #: (v,) the crossing nearest to a snapped vertex, or -1
    near_length: wp.array[wp.float64]  #: (v,) and how far that is [m]
    vertex_mark: wp.array[int]  #: (v,)
    vertex_kept: wp.array[int]  #: (v,)
    numbers: wp.array[int]  #: (NUMBERS,)
    lists: wp.array2d[int]  #: (LISTS, list_room)
    lengths: wp.array[int]  #: (LISTS,)
    #: (list_room,) where edges are crossed; then the first one is the area of one side of what opens [m^2], of a sheet
    #: the length [m]
    fractions: wp.array[wp.float64]
    blends: wp.array[wp.float64]  #: (list_room,) vertex BLENDED is (1 - s) BLENDED_P + s BLENDED_Q
    edge_keys: wp.array[wp.int64]  #: a hash table of edges
    edge_marks: wp.array[int]
    journal: wp.array[int]
    journal_corners: wp.array[wp.vec4i]
    journal_neighbours: wp.array[wp.vec4i]
    journal_words: wp.array[wp.vec4i]
    vertex_journal: wp.array[int]
    vertex_journal_rest: wp.array[wp.vec3d]
    vertex_journal_normal: wp.array[wp.vec3d]
    vertex_journal_height: wp.array[wp.vec2d]
    vertex_journal_words: wp.array[wp.vec4i]
    journal_lengths: wp.array[int]  #: (2,) of simplices, of vertices


@wp.struct
class CutOptions:
    """How near the cut a vertex is snapped onto it, and what may not get smaller."""

    snap: wp.float64  #: part of an edge
    snap_height: wp.float64  #: [m]
    short_edge: wp.float64  #: edges below this are never bisected by the blade [m]
    least_altitude: wp.float64  #: of what a bisection makes [m]
    least_moved: wp.float64  #: altitude that a moved vertex leaves [m]
    longest: wp.float64  #: edge that a moved vertex may make [m]
    largest: wp.float64  #: diagonal of the box of a simplex that a moved vertex may make [m]
    sure_height: wp.float64  #: over the cut at which the side of a vertex is taken for granted [m]


@wp.func
def push(c: ComplexArrays, which: int, value: int):
    """Append to a list; a full one says so in STATUS."""
    n = c.lengths[which]
    if n < c.list_room:
        c.lists[which, n] = value
        c.lengths[which] = n + 1
    else:
        c.numbers[STATUS] = FULL


@wp.func
def new_mark(c: ComplexArrays) -> int:
    """A number that no simplex is marked with."""
    mark = c.numbers[MARK] + 1
    c.numbers[MARK] = mark
    return mark


@wp.func
def new_vertex_mark(c: ComplexArrays) -> int:
    """A number that no vertex is marked with."""
    mark = c.numbers[VERTEX_MARK] + 1
    c.numbers[VERTEX_MARK] = mark
    return mark


@wp.func
def keep(c: ComplexArrays, t: int):
    """Put a simplex into the journal, as it was before this step."""
    step = c.numbers[STEP]
    if t < c.numbers[SIMPLICES_BEFORE] and c.kept[t] != step:
        c.kept[t] = step
        n = c.journal_lengths[0]
        c.journal[n] = t
        c.journal_corners[n] = c.corners[t]
        c.journal_neighbours[n] = c.neighbours[t]
        c.journal_words[n] = wp.vec4i(c.label[t], c.next[t], c.part[t], c.wall[t])
        c.journal_lengths[0] = n + 1


@wp.func
def keep_vertex(c: ComplexArrays, v: int):
    """The same for a vertex."""
    step = c.numbers[STEP]
    if v < c.numbers[VERTICES_BEFORE] and c.vertex_kept[v] != step:
        c.vertex_kept[v] = step
        n = c.journal_lengths[1]
        c.vertex_journal[n] = v
        c.vertex_journal_rest[n] = c.rest[v]
        c.vertex_journal_normal[n] = c.normal[v]
        c.vertex_journal_height[n] = c.height[v]
        c.vertex_journal_words[n] = wp.vec4i(c.simplex_at[v], c.on[v], c.side[v], c.seen_from[v])
        c.journal_lengths[1] = n + 1


@wp.func
def change(c: ComplexArrays, t: int):
    """Corners or neighbours of a simplex are about to change."""
    keep(c, t)
    step = c.numbers[STEP]
    if c.changed[t] != step:
        c.changed[t] = step
        push(c, CHANGED, t)


@wp.func
def begin_step(c: ComplexArrays):
    """From here on everything can be undone."""
    c.numbers[STATUS] = FINE
    c.numbers[STEP] = c.numbers[STEP] + 1
    c.numbers[SIMPLICES_BEFORE] = c.numbers[SIMPLICES]
    c.numbers[VERTICES_BEFORE] = c.numbers[VERTICES]
    c.numbers[ON_BEFORE] = c.lengths[ON]
    for k in range(int(CROSSED), NUMBERS):
        c.numbers[k] = 0
    c.journal_lengths[0] = 0
    c.journal_lengths[1] = 0
    for which in range(LISTS):
        if which != ON and which != WAITING:
            c.lengths[which] = 0
    for i in range(c.lengths[WAITING]):
        push(c, WAITING_BEFORE, c.lists[WAITING, i])


@wp.kernel
def undo(first: int, c: ComplexArrays):
    """As if the last step had not been begun (one thread)."""
    for i in range(c.journal_lengths[0]):
        t = c.journal[i]
        c.corners[t] = c.journal_corners[i]
        c.neighbours[t] = c.journal_neighbours[i]
        words = c.journal_words[i]
        c.opening[t] = 0  # as always between steps
        c.label[t] = words[0]
        c.next[t] = words[1]
        c.part[t] = words[2]
        c.wall[t] = words[3]
    for i in range(c.journal_lengths[1]):
        v = c.vertex_journal[i]
        c.rest[v] = c.vertex_journal_rest[i]
        c.normal[v] = c.vertex_journal_normal[i]
        c.height[v] = c.vertex_journal_height[i]
        notes = c.vertex_journal_words[i]
        c.simplex_at[v] = notes[0]
        c.on[v] = notes[1]
        c.side[v] = notes[2]
        c.seen_from[v] = notes[3]
    c.numbers[SIMPLICES] = c.numbers[SIMPLICES_BEFORE]
    c.numbers[VERTICES] = c.numbers[VERTICES_BEFORE]
    c.lengths[ON] = c.numbers[ON_BEFORE]
    c.lengths[WAITING] = 0
    for i in range(c.lengths[WAITING_BEFORE]):
        push(c, WAITING, c.lists[WAITING_BEFORE, i])
    for which in range(LISTS):
        if which != ON and which != WAITING:
            c.lengths[which] = 0
    c.journal_lengths[0] = 0
    c.journal_lengths[1] = 0
