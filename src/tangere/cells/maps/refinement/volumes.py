"""Splitting and merging the cells of a 3-map: a hexahedron into 8, any polyhedron into one cell per corner.

Question: the same volume, as its children; and back.
Method:   cut the edges, divide the faces, then close each corner off: for every dart d of the volume, leaving corner p
          along edge e in face f with g on the other side of e, one interior face centre(f) - middle(e) - centre(g) -
          middle of the volume. A merge takes the interior faces out again, then joins those faces and edges that no
          neighbour needs.
Known as: primal subdivision of volumes (Pitiot 2015, sections 3.2.2, 6.2 and 9.1.1).
"""

from __future__ import annotations

import warp as wp

from tangere.cells.maps.arrays import (
    MapArrays,
    drop_cell,
    drop_dart,
    drop_vertex,
    edge_label,
    face_label,
    level,
    link_next,
    new_cell,
    new_dart,
    new_vertex,
    tag,
)
from tangere.cells.maps.orbits import (
    assign_cell,
    corner_mean,
    in_face_step,
    last_part,
    level_phi1,
    level_phi2,
    level_phi3,
    next_part,
)
from tangere.cells.maps.refinement.division import (
    CORNER,
    CUT,
    INWARD,
    SIDE,
    corners_of,
    cut_edge,
    divide_polygon,
    join_parts,
    uncut_edge,
)
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: Lists in the work row, one entry per level-n dart of the volume: the darts; the inner edge of its own face and of
#: the face across its edge; the places of the dart across and of the next dart around the corner; the interior dart
#: that arrives at the middle of the volume.
DART_LIMIT = wp.constant(128)
DART, INNER, ACROSS = wp.constant(256), wp.constant(384), wp.constant(512)
TWIN, TURN, RISE = wp.constant(640), wp.constant(768), wp.constant(896)


@wp.func
def volume_split_room(m: MapArrays, c: int) -> wp.vec3i:
    """Darts, vertices and cells that splitting volume c makes at most."""
    darts = int(0)
    count = int(0)
    d = int(m.anchor[c])
    while d >= 0:
        count += 1
        x = int(m.phi3[d])
        while x >= 0 and x != m.phi2[d]:
            darts += 2
            x = m.phi3[m.phi2[x]]
        darts += 12
        d = m.link[d]
    return wp.vec3i(2 * darts, 2 * count + 1, count)


@wp.func
def _volume_darts(m: MapArrays, c: int, work: wp.array2d[int], row: int) -> int:
    """Write the own-level darts of volume c to `work`; returns how many, or -1 if they are too many."""
    k = m.cell_level[c]
    work[row, DART] = int(m.anchor[c])
    count = int(1)
    i = int(0)
    while i < count:
        for turn in range(2):
            x = int(0)
            if turn == 0:
                x = level_phi1(m, work[row, DART + i], k)
            else:
                x = level_phi2(m, work[row, DART + i], k)
            if _place(x, count, work, row) < 0:
                if count == DART_LIMIT:
                    return -1
                work[row, DART + count] = x
                count += 1
        i += 1
    return count


@wp.func
def _place(d: int, count: int, work: wp.array2d[int], row: int) -> int:
    for i in range(count):
        if work[row, DART + i] == d:
            return i
    return -1


@wp.func
def set_face_centre(m: MapArrays, d: int, centre: wp.vec3d):
    """Give a face one centre, on both sides."""
    m.face_centre[d] = centre
    x = int(m.phi1[d])
    while x != d:
        m.face_centre[x] = centre
        x = m.phi1[x]
    y = int(m.phi3[d])
    if y >= 0:
        m.face_centre[y] = centre
        x = m.phi1[y]
        while x != y:
            m.face_centre[x] = centre
            x = m.phi1[x]


@wp.func
def _divided(m: MapArrays, d: int, k: int) -> bool:
    """Whether the level-k face of corner dart d is divided: an inner edge follows the first half of its edge."""
    after = level_phi1(m, d, k + 1)
    return level(m, after) == k + 1 and edge_label(m, after) != edge_label(m, d)


@wp.func
def _divide_face(m: MapArrays, d: int, k: int, work: wp.array2d[int], row: int) -> bool:
    """Divide the level-k face of d on both sides, around its centre."""
    count = corners_of(m, d, k, work, row, 0)
    if count < 0:
        return False
    other = level_phi3(m, d, k)
    middle = new_vertex(m, m.face_centre[d])
    if other >= 0:
        corners_of(m, other, k, work, row, SIDE)
        divide_polygon(m, count, k, middle, work, row, SIDE)
    divide_polygon(m, count, k, middle, work, row, 0)
    if other >= 0:
        for i in range(count):
            j = SIDE + (count - i) % count
            _sew3(m, work[row, INWARD + i], m.phi2[work[row, INWARD + j]])
            _sew3(m, work[row, INWARD + j], m.phi2[work[row, INWARD + i]])
    for i in range(count):
        corner = work[row, CORNER + i]
        a = m.position[m.origin[corner]] + m.position[m.origin[work[row, CUT + i]]]
        b = m.position[middle] + m.position[m.origin[work[row, CUT + (i + count - 1) % count]]]
        set_face_centre(m, corner, wp.float64(0.25) * (a + b))
    return True


@wp.func
def _sew3(m: MapArrays, a: int, b: int):
    m.phi3[a] = b
    m.phi3[b] = a


@wp.func
def split_volume(m: MapArrays, c: int, work: wp.array2d[int], row: int) -> bool:
    """Split leaf c; False if it has too many darts."""
    k = m.cell_level[c]
    count = _volume_darts(m, c, work, row)
    if count < 0:
        return False
    for i in range(count):
        if corners_of(m, work[row, DART + i], k, work, row, 0) < 0:
            return False
    for i in range(count):
        d = work[row, DART + i]
        if level(m, m.phi1[d]) <= k:
            cut_edge(m, d, k + 1)
    for i in range(count):
        d = work[row, DART + i]
        if not _divided(m, d, k):
            _divide_face(m, d, k, work, row)
    _relations(m, k, count, work, row)
    middle = new_vertex(m, m.centre[c])
    for i in range(count):
        _add_interior_face(m, i, k, middle, work, row)
    for i in range(count):
        # Within a child, two interior faces meet along (centre of the face, middle).
        rise = work[row, RISE + i]
        fall = int(m.phi1[work[row, RISE + work[row, TURN + i]]])
        m.phi2[fall] = rise
        m.phi2[rise] = fall
        if i < work[row, TWIN + i]:
            x = int(m.phi2[work[row, INNER + i]])
            y = int(m.phi1[m.phi2[work[row, INNER + work[row, TWIN + i]]]])
            start = int(x)
            turning = bool(True)
            while turning:
                _sew3(m, x, y)
                x = m.phi_1[x]
                y = m.phi1[y]
                turning = x != start
    for i in range(count):
        d = work[row, DART + i]
        set_face_centre(m, m.phi2[work[row, INNER + i]], _quad_centre(m, work[row, RISE + i], work[row, INNER + i]))
        if m.cell[d] == c:  # the first dart of a new corner
            assign_cell(m, d, new_cell(m, c, d))
    return True


@wp.func
def _quad_centre(m: MapArrays, rise: int, inner: int) -> wp.vec3d:
    fall = m.phi1[rise]
    total = m.position[m.origin[rise]] + m.position[m.origin[fall]] + m.position[m.origin[m.phi1[fall]]]
    return wp.float64(0.25) * (total + m.position[m.origin[inner]])


@wp.func
def _relations(m: MapArrays, k: int, count: int, work: wp.array2d[int], row: int):
    """For each dart of a volume with divided faces: inner edges, the twin across its edge, the turn at its corner."""
    for i in range(count):
        d = work[row, DART + i]
        twin = level_phi2(m, d, k)
        inner = level_phi1(m, twin, k + 1)
        work[row, INNER + i] = level_phi1(m, d, k + 1)
        work[row, ACROSS + i] = in_face_step(m, last_part(m, inner, k + 1)[0])
        work[row, TWIN + i] = _place(twin, count, work, row)
        work[row, TURN + i] = _place(level_phi1(m, twin, k), count, work, row)


@wp.func
def _add_interior_face(m: MapArrays, i: int, k: int, middle: int, work: wp.array2d[int], row: int):
    """The interior face of dart i: centre(f) - middle of its edge - centre(g) - middle of the volume."""
    inner = work[row, INNER + i]
    across = work[row, ACROSS + i]
    label = int(0)
    while label == face_label(m, inner) or label == face_label(m, across):
        label += 1
    own = _add_edge_darts(m, inner, k, label)
    other = _add_edge_darts(m, across, k, label)
    word = tag(k + 1, 0, label, m.obstacle[m.cell[inner]])
    rise = new_dart(m, inner, m.origin[across], word)
    fall = new_dart(m, inner, middle, word)
    link_next(m, own[1], other[0])
    link_next(m, other[1], rise)
    link_next(m, rise, fall)
    link_next(m, fall, own[0])
    work[row, RISE + i] = rise


@wp.func
def _add_edge_darts(m: MapArrays, edge: int, k: int, label: int) -> wp.vec2i:
    """Darts back along a level-(k+1) edge, one beside each fine dart of it; returns the first and the last."""
    t = int(edge)
    head = int(-1)
    tail = int(-1)
    while t >= 0:
        after = next_part(m, t, edge, k + 1)
        own = k + 1
        if after >= 0:
            own = level(m, after)
        x = new_dart(m, edge, m.origin[m.phi1[t]], tag(own, edge_label(m, t), label, m.obstacle[m.cell[edge]]))
        if head < 0:
            tail = x
        else:
            link_next(m, x, head)
        head = x
        m.phi2[x] = t
        m.phi2[t] = x
        t = after
    return wp.vec2i(head, tail)


@wp.func
def merge_volume(m: MapArrays, c: int, work: wp.array2d[int], row: int):
    """Merge the children of c, which are leaves, into c."""
    k = m.cell_level[c]
    count = _volume_darts(m, c, work, row)
    _relations(m, k, count, work, row)
    child = int(m.first_child[c])
    m.obstacle[c] = int(m.obstacle[child])  # as all of them
    while child >= 0:
        after = int(m.sibling[child])
        drop_cell(m, child)
        child = after
    m.first_child[c] = -1
    for i in range(count):
        work[row, RISE + i] = int(m.phi1[m.phi2[work[row, ACROSS + i]]])
    for i in range(count):
        t = work[row, INNER + i]
        while t >= 0:
            u = in_face_step(m, t)
            m.phi2[t] = u
            m.phi2[u] = t
            t = next_part(m, t, work[row, INNER + i], k + 1)
    drop_vertex(m, m.origin[m.phi1[work[row, RISE]]])
    for i in range(count):
        last = work[row, RISE + i]
        x = int(m.phi1[last])
        while x != last:
            drop_dart(m, x, m.anchor[c])
            x = m.phi1[x]
        drop_dart(m, x, m.anchor[c])
    assign_cell(m, m.anchor[c], c)
    for i in range(count):
        d = work[row, DART + i]
        if _divided(m, d, k):
            _join_face(m, d, k, work, row)
    for i in range(count):
        uncut_edge(m, work[row, DART + i], k + 1)
    m.centre[c] = corner_mean(m, c)


@wp.func
def _join_face(m: MapArrays, d: int, k: int, work: wp.array2d[int], row: int):
    """Join the parts of the level-k face of d on both sides, unless the other side is still divided or cut deeper."""
    count = corners_of(m, d, k, work, row, 0)
    other = level_phi3(m, d, k)
    far = int(m.phi3[d])
    for i in range(count):
        corner = work[row, CORNER + i]
        inner = level_phi1(m, corner, k + 1)
        if level(m, m.phi1[inner]) > k + 1:
            return
        if far >= 0 and m.cell[m.phi3[corner]] != m.cell[far]:
            return
        # A part that is divided further keeps the face.
        if _divided(m, corner, k + 1):
            return
    if other >= 0:
        corners_of(m, other, k, work, row, SIDE)
    vertex = int(m.origin[m.phi1[level_phi1(m, d, k + 1)]])
    join_parts(m, count, k, False, work, row, 0)
    if other >= 0:
        join_parts(m, count, k, False, work, row, SIDE)
    drop_vertex(m, vertex)
    total = wp.vec3d()
    for i in range(count):
        total += m.position[m.origin[work[row, CORNER + i]]]
    set_face_centre(m, d, total / wp.float64(count))
