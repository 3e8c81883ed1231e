"""The arrays of a combinatorial map, as one kernel argument, and the smallest things kernels do with them.

Question: what is next to a dart, what does it belong to, and where is there room for another one?
Method:   a dart is an oriented edge inside one face inside one volume. `phi1` and `phi_1` go to the next and the
          previous dart of the face, `phi2` to the same edge in the adjacent face, `phi3` (3-maps) to the same face in
          the adjacent volume; -1 is the border. Five small values share one word per dart, its tag: level, edge label,
          face label, whether it is a wall, and whether it is one of its own and not only the side of an obstacle.
Sound:    places come from free lists first; counters are atomic, so that independent operations may run side by side on
          CUDA (a CPU kernel that allocates runs on one thread).
Known as: combinatorial maps, darts and permutations (Damiand and Lienhardt 2014; Pitiot 2015, section 3.1).
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: Levels fit in a byte; the cells of level 30 are 10^-9 of those of level 0.
LEVEL_LIMIT = 30
#: `counts`: places ever used and places free again, of darts, vertices and cells.
DARTS, FREE_DARTS = wp.constant(0), wp.constant(1)
VERTICES, FREE_VERTICES = wp.constant(2), wp.constant(3)
CELLS, FREE_CELLS = wp.constant(4), wp.constant(5)
#: Bits of a tag.
WALL, OWN_WALL = 1 << 12, 1 << 13
#: What a dead dart's tag and an unused cell's level are.
UNUSED = wp.constant(-1)


@wp.struct
class MapArrays:
    dimension: int
    phi1: wp.array[int]
    phi_1: wp.array[int]
    phi2: wp.array[int]
    phi3: wp.array[int]  # 2-maps: all -1
    origin: wp.array[int]  # vertex
    cell: wp.array[int]  # leaf cell
    tag: wp.array[int]
    link: wp.array[int]  # the darts of a leaf, one after the other from its anchor; of a dead dart: its successor
    back: wp.array[int]
    face_centre: wp.array[wp.vec3d]  # per dart; 3-maps only
    position: wp.array[wp.vec3d]
    centre: wp.array[wp.vec3d]  # per cell
    cell_level: wp.array[int]
    parent: wp.array[int]
    first_child: wp.array[int]  # -1: a leaf
    sibling: wp.array[int]
    anchor: wp.array[int]  # a dart of the cell that lives as long as the cell
    obstacle: wp.array[int]
    inverted: wp.array[int]  # 1: bent so much that no point sees the whole cell
    free_darts: wp.array[int]
    free_vertices: wp.array[int]
    free_cells: wp.array[int]
    counts: wp.array[int]


def grown(array: wp.array, room: int, fill: int = 0) -> wp.array:
    """A copy with so many rows, the new ones filled."""
    longer = wp.full((room, *array.shape[1:]), fill, dtype=array.dtype, device=array.device)
    wp.copy(longer, array, count=array.size)
    return longer


@wp.func
def tag(level: int, edge: int, face: int, walls: int) -> int:
    return level | (edge << 8) | (face << 10) | (walls << 12)


@wp.func
def level(m: MapArrays, d: int) -> int:
    """The level at which a dart was introduced."""
    return m.tag[d] & 255


@wp.func
def edge_label(m: MapArrays, d: int) -> int:
    return (m.tag[d] >> 8) & 3


@wp.func
def face_label(m: MapArrays, d: int) -> int:
    return (m.tag[d] >> 10) & 3


@wp.func
def is_wall(m: MapArrays, d: int) -> int:
    """1 if nothing may leave through the edge (2-maps) or the face (3-maps) of this dart."""
    return (m.tag[d] >> 12) & 1


@wp.func
def own_wall(m: MapArrays, d: int) -> int:
    """1 if the edge or face is a wall whatever is on its sides."""
    return (m.tag[d] >> 13) & 1


@wp.func
def walls(m: MapArrays, d: int) -> int:
    """Both, as `tag` takes them."""
    return (m.tag[d] >> 12) & 3


@wp.func
def link_next(m: MapArrays, a: int, b: int):
    m.phi1[a] = b
    m.phi_1[b] = a


@wp.func
def _allocate(counts: wp.array[int], used: int, free: int, places: wp.array[int]) -> int:
    left = wp.atomic_sub(counts, free, 1)
    if left > 0:
        return places[left - 1]
    wp.atomic_add(counts, free, 1)
    return wp.atomic_add(counts, used, 1)


@wp.func
def _release(counts: wp.array[int], free: int, places: wp.array[int], place: int):
    places[wp.atomic_add(counts, free, 1)] = place


@wp.func
def new_dart(m: MapArrays, like: int, origin: int, tag: int) -> int:
    """A dart in the face and cell of another one, with no neighbours yet."""
    d = _allocate(m.counts, DARTS, FREE_DARTS, m.free_darts)
    m.origin[d] = origin
    m.cell[d] = int(m.cell[like])
    m.tag[d] = tag
    m.phi2[d] = -1
    m.phi3[d] = -1
    after = int(m.link[like])
    m.link[d] = after
    m.back[d] = like
    m.link[like] = d
    if after >= 0:
        m.back[after] = d
    if m.dimension == 3:
        m.face_centre[d] = m.face_centre[like]
    return d


@wp.func
def drop_dart(m: MapArrays, d: int, successor: int):
    """Give a dart back; whoever aims at it finds the successor in its link."""
    m.tag[d] = UNUSED
    before = int(m.back[d])
    after = int(m.link[d])
    if before >= 0:
        m.link[before] = after
    if after >= 0:
        m.back[after] = before
    m.link[d] = successor
    _release(m.counts, FREE_DARTS, m.free_darts, d)


@wp.func
def new_vertex(m: MapArrays, position: wp.vec3d) -> int:
    v = _allocate(m.counts, VERTICES, FREE_VERTICES, m.free_vertices)
    m.position[v] = position
    return v


@wp.func
def drop_vertex(m: MapArrays, v: int):
    _release(m.counts, FREE_VERTICES, m.free_vertices, v)


@wp.func
def new_cell(m: MapArrays, parent: int, anchor: int) -> int:
    """A leaf below `parent`, put in front of its other children."""
    c = _allocate(m.counts, CELLS, FREE_CELLS, m.free_cells)
    m.cell_level[c] = m.cell_level[parent] + 1
    m.parent[c] = parent
    m.anchor[c] = anchor
    m.first_child[c] = -1
    m.sibling[c] = int(m.first_child[parent])
    m.obstacle[c] = int(m.obstacle[parent])
    m.inverted[c] = 0
    m.first_child[parent] = c
    return c


@wp.func
def drop_cell(m: MapArrays, c: int):
    m.cell_level[c] = UNUSED
    m.parent[c] = -1
    _release(m.counts, FREE_CELLS, m.free_cells, c)
