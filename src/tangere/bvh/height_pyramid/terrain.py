"""Ground as kernels see it: heights in tiles, and a pyramid of bounds over them.

The grid is cut into tiles of TILE x TILE cells. A resident tile has a page: its vertices with one more row and column
before them (so creases are known at seams), and the pyramid's levels 0 to TOP - 1 in Morton order, the four children
of a node side by side. `page` says where a tile's page is, -1 where it is not resident; a terrain in memory has all.
Levels from TOP on, one node per tile and up, are always there, row by row, with the heights of their corners. A node
(level, i, j) spans the cells i 2^level … (i+1) 2^level - 1 and likewise for j. All heights are relative to `origin`.

Each vertex has an owner: the node of level 0 of the same number, with the edges that leave it along x, along y, and the
diagonal of its cell (from (i, j+1) to (i+1, j)). Vertices of the last row and column are owned by cells beyond the
border, which have no ground but bounds of what they own.
Bounds are float32 rounded outward. Flags of a node:
* PLANAR: all cells have ground and lie on one plane, through the node's corners, up to `Terrain.planar`;
* CONVEX_X, CONVEX_Y, CONVEX_DIAGONAL: a cell owns an edge that a body can touch from above: a ridge bent by more than
  the field's flatness, or an edge with ground on one side only;
* CONVEX_VERTEX: a cell owns a vertex at the end of such an edge;
* GAP: a cell has no ground (a hole, or beyond the border).

A walk over the nodes under a window starts from at most 2 x 2 nodes that cover it and goes from each into its quarters,
the last quarter first. Where it is says where it goes next, so it needs no stack, and every walk of a window has the
same order.
Known as: quadtree of height bounds, maximum mipmap (Tevs, Ihrke and Seidel 2008); a stackless traversal.
The cells and their diagonals are those of Strashnov and Torgashev 2020, section 2.
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND

wp.set_module_options(SOUND)

PLANAR = wp.constant(1)
CONVEX_X = wp.constant(2)
CONVEX_Y = wp.constant(4)
CONVEX_DIAGONAL = wp.constant(8)
CONVEX_VERTEX = wp.constant(16)
GAP = wp.constant(32)

#: Levels below this are in pages.
TOP = wp.constant(5)
#: Cells along a side of a tile: 2^TOP.
TILE = wp.constant(32)
#: Heights along a side of a page: TILE + 1 vertices and one before them.
PAGE_SIDE = wp.constant(34)
PAGE_HEIGHTS = wp.constant(34 * 34)
#: Nodes of levels 0 to TOP - 1 of a tile: 1024 + 256 + 64 + 16 + 4.
PAGE_NODES = wp.constant(1364)

#: Nodes still to visit: a window starts with 4 at most, and a level adds 3; 24 levels are 2^24 cells a side.
NodeStack = wp.types.vector(length=80, dtype=wp.int64)

LOW_BITS = wp.constant(wp.int64((1 << 28) - 1))
#: Closed cells: a box that ends at a border touches both sides, also where the division has rounded [cells].
WINDOW_SLACK = wp.constant(wp.float64(1e-7))
NOT_A_NUMBER = wp.constant(wp.float64(float("nan")))


@wp.struct
class Terrain:
    heights: wp.array[wp.float64]  # PAGE_HEIGHTS a page, row by row from vertex (-1, -1) of the tile [m]
    bounds: wp.array[wp.vec2f]  # PAGE_NODES a page: lowest and highest [m]
    flags: wp.array[wp.uint8]  # PAGE_NODES a page
    page: wp.array[int]  # (tiles_y * tiles_x) page of a tile or -1
    top_bounds: wp.array[wp.vec2f]  # levels TOP to root
    top_flags: wp.array[wp.uint8]
    top_corners: wp.array[wp.vec4d]  # heights of V0, V1, V2, V3 [m]
    top_offset: wp.array[int]  # (root - TOP + 1) where a level begins
    rows: int  # cells along y
    columns: int  # cells along x
    tiles_x: int
    root: int  # the level with one node
    dx: wp.float64  # [m]
    dy: wp.float64  # [m]
    origin: wp.vec3d  # [m]
    planar: wp.float64  # how far PLANAR ground may be from its plane [m]
    flatness: wp.float64  # how far an edge must bend to be convex [m]


@wp.struct
class Walk:
    """A window of cells (first and last row, first and last column) and the nodes it is entered by."""

    window: wp.vec4i
    level: wp.int32  #: of the nodes it starts from
    start: wp.vec3i  #: level, row and column of the first node


@wp.func
def node_heights(t: Terrain, level: int, i: int, j: int) -> wp.vec4d:
    """Heights of V0, V1, V2, V3 of a node without GAP; of level 0: of the cell (i, j).

    A node may reach beyond the tiles that are resident: what it needs of them is beside its bounds.
    """
    if level >= TOP:
        return t.top_corners[top_node(t, level, i, j)]
    up = TOP - level
    page = t.page[(i >> up) * t.tiles_x + (j >> up)]
    row = (i << level) & (TILE - 1)
    column = (j << level) & (TILE - 1)
    at = page * PAGE_HEIGHTS + (row + 1) * PAGE_SIDE + column + 1
    size = 1 << level
    far = at + size * PAGE_SIDE
    return wp.vec4d(t.heights[at], t.heights[at + size], t.heights[far], t.heights[far + size])


@wp.func
def height_at(t: Terrain, x: wp.float64, y: wp.float64) -> wp.float64:
    """Height over the origin of the ground at (x, y) relative to the origin; NaN where there is none."""
    u = x / t.dx
    v = y / t.dy
    if not (u >= wp.float64(0.0) and v >= wp.float64(0.0) and u <= wp.float64(t.columns) and v <= wp.float64(t.rows)):
        return NOT_A_NUMBER
    j = wp.min(int(u), t.columns - 1)
    i = wp.min(int(v), t.rows - 1)
    if (node_flags(t, 0, i, j) & GAP) != 0:
        return NOT_A_NUMBER
    h = node_heights(t, 0, i, j)
    a = u - wp.float64(j)
    b = v - wp.float64(i)
    one = wp.float64(1.0)
    if a + b <= one:
        return h[0] + a * (h[1] - h[0]) + b * (h[2] - h[0])
    return h[3] + (one - a) * (h[2] - h[3]) + (one - b) * (h[1] - h[3])


@wp.func
def node_bounds(t: Terrain, level: int, i: int, j: int) -> wp.vec2f:
    """Lowest and highest ground in a node, over the origin [m]; (inf, -inf) where there is none."""
    if level < TOP:
        return t.bounds[page_node(t, level, i, j)]
    return t.top_bounds[top_node(t, level, i, j)]


@wp.func
def node_flags(t: Terrain, level: int, i: int, j: int) -> int:
    """What a node is: PLANAR, CONVEX_X, …; of level 0: the cell (i, j) and the vertex and edges it owns."""
    if level < TOP:
        return int(t.flags[page_node(t, level, i, j)])
    return int(t.top_flags[top_node(t, level, i, j)])


@wp.func
def cell_window(t: Terrain, lower: wp.vec3d, upper: wp.vec3d) -> wp.vec4i:
    """First and last row, first and last column of the owners a box (relative to the origin) may touch.

    The owners beyond the border (row `rows`, column `columns`) are among them; empty where first > last.
    """
    return wp.vec4i(
        wp.max(index_of(lower[1] / t.dy - WINDOW_SLACK, t.rows), 0),
        wp.min(index_of(upper[1] / t.dy + WINDOW_SLACK, t.rows), t.rows),
        wp.max(index_of(lower[0] / t.dx - WINDOW_SLACK, t.columns), 0),
        wp.min(index_of(upper[0] / t.dx + WINDOW_SLACK, t.columns), t.columns),
    )


@wp.func
def start_level(t: Terrain, window: wp.vec4i) -> int:
    """The level to start from: the lowest at which a window lies in 2 x 2 nodes, or in a single one that is planar."""
    single = int(0)
    while single < t.root and ((window[0] ^ window[1]) | (window[2] ^ window[3])) >> single != 0:
        single += 1
    if (node_flags(t, single, window[0] >> single, window[2] >> single) & PLANAR) != 0:
        return single
    size = wp.max(window[1] - window[0], window[3] - window[2])
    level = int(0)
    while (1 << level) < size and level < t.root:
        level += 1
    return level


@wp.func
def walk_over(t: Terrain, window: wp.vec4i) -> Walk:
    """A walk over a window that is not empty."""
    walk = Walk()
    walk.window = window
    walk.level = start_level(t, window)
    walk.start = wp.vec3i(walk.level, window[1] >> walk.level, window[3] >> walk.level)
    return walk


@wp.func
def next_node(walk: Walk, node: wp.vec3i, into: bool) -> wp.vec3i:
    """The node after this one, into its quarters or past them; of level -1 at the end."""
    level = node[0]
    row = node[1]
    column = node[2]
    window = walk.window
    inside = bool(False)
    if into:
        level -= 1
        row = 2 * row + 1
        column = 2 * column + 1
        inside = is_in_window(window, level, row, column)
    while not inside:
        if level == walk.level:
            column -= 1
            if column < (window[2] >> level):
                column = window[3] >> level
                row -= 1
                if row < (window[0] >> level):
                    return wp.vec3i(-1, 0, 0)
            inside = True
        elif ((row | column) & 1) == 0:  # the last of its four
            level += 1
            row = row >> 1
            column = column >> 1
        else:
            row = row - (1 - (column & 1))
            column = column ^ 1
            inside = is_in_window(window, level, row, column)
    return wp.vec3i(level, row, column)


@wp.func
def is_in_window(window: wp.vec4i, level: int, row: int, column: int) -> bool:
    rows = (row << level) <= window[1] and ((row + 1) << level) > window[0]
    return rows and (column << level) <= window[3] and ((column + 1) << level) > window[2]


@wp.func
def node_key(level: int, i: int, j: int) -> wp.int64:
    """A node in one number, for a NodeStack."""
    return (wp.int64(level) << wp.int64(56)) | (wp.int64(i) << wp.int64(28)) | wp.int64(j)


@wp.func
def node_level(key: wp.int64) -> int:
    return int(key >> wp.int64(56))


@wp.func
def node_row(key: wp.int64) -> int:
    return int((key >> wp.int64(28)) & LOW_BITS)


@wp.func
def node_column(key: wp.int64) -> int:
    return int(key & LOW_BITS)


@wp.func
def page_node(t: Terrain, level: int, i: int, j: int) -> int:
    """Where a node below TOP is in `bounds` and `flags`."""
    up = TOP - level
    page = t.page[(i >> up) * t.tiles_x + (j >> up)]
    inside = (1 << up) - 1
    return page * PAGE_NODES + level_offset(level) + morton(i & inside, j & inside)


@wp.func
def level_offset(level: int) -> int:
    """Where a level begins in a page: 0, 1024, 1280, 1344, 1360."""
    return (4096 - (1 << (12 - 2 * level))) // 3


@wp.func
def top_node(t: Terrain, level: int, i: int, j: int) -> int:
    """Where a node from TOP on is in `top_bounds` and `top_flags`."""
    up = level - TOP
    width = (t.tiles_x + (1 << up) - 1) >> up
    return t.top_offset[up] + i * width + j


@wp.func
def morton(i: int, j: int) -> int:
    """The bits of i and j, below 32, in turn: j first."""
    return spread(j) | (spread(i) << 1)


@wp.func
def spread(x: int) -> int:
    x = (x | (x << 4)) & 0x10F  # abcde -> a....bcde, then pairs, then single bits
    x = (x | (x << 2)) & 0x133
    return (x | (x << 1)) & 0x155


@wp.func
def index_of(x: wp.float64, last: int) -> int:
    """floor(x), or -1 below 0 and last + 1 above `last`: what is beyond an end stays beyond it; NaN is below."""
    if x > wp.float64(last):
        return last + 1
    if x >= wp.float64(0.0):
        return int(x)
    return -1
