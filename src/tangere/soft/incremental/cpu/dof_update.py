"""Degrees of freedom after a cut: new ones, where they are, and what holds those together whose elements have changed.

Question: elements were bisected and vertices split; which rows of dofs, materials and lanes are others now?
Method:   vertices of changed elements are looked at, no others. A new one is put where the blend of the complex says;
          of each the elements around it are found by a flood over neighbours, and from them its mass, neighbours and
          laws as `model.material` has them. These lists go to fresh places. A new dof has the least colour that no
          neighbour has, and a lane in a group of that colour; groups with a dof that has changed are written anew,
          to fresh rows.
          Of a sheet the bending over an edge has the far corners of both its triangles too: `sheet_update` finds what
          holds its vertices together.
Sound:    nothing that others read is overwritten before it is noted. New vertices are neighbours of old ones, but no
          two old ones become neighbours: colours of old ones stay.
The kernels run on one thread of the host.
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND
from tangere.soft.cutting.complex_arrays import VERTICES, ComplexArrays
from tangere.soft.incremental.undo_log import FULL, WriteLog, put, put_value
from tangere.soft.model.assembled_bodies import DofCoupling
from tangere.soft.solver.cpu.dof_lanes import DofLanes, lay_group

wp.set_module_options(SOUND | {"max_unroll": 1})

#: Elements, and neighbours, of one dof at most.
MOST_AROUND = 512
#: Places in `DofRoom.numbers`.
TOUCHED = wp.constant(0)
GROUPS = wp.constant(1)
NEIGHBOURS = wp.constant(2)
ELEMENTS = wp.constant(3)
NEAR_ROWS = wp.constant(4)
PART_ROWS = wp.constant(5)
VERTEX_STAMP = wp.constant(6)
SIMPLEX_STAMP = wp.constant(7)
GROUP_STAMP = wp.constant(8)
RETIRED = wp.constant(9)
INSIDE_OUT = wp.constant(10)
NUMBERS = 11
#: Rows of a block that is kept for later, at most.
MOST_ROWS = 128

#: Numbers of arrays in the log.
ROW_OF, FREE, NEAR_RANGES, PART_RANGES, LANE_OF, COLOUR_OF, FILL, COLOUR_RANGES, TABLE, LANE_DOFS, DOF_COUNTS = (
    wp.constant(k) for k in range(11)
)
KNOWN, SWEPT, BODY = (wp.constant(11 + k) for k in range(3))
#: The same for floating-point numbers.
X, V, MASS, DIAGONAL, LIMIT, INERTIA, PLAIN_INERTIA = (wp.constant(k) for k in range(7))


mat43d = wp.types.matrix(shape=(4, 3), dtype=wp.float64)


@wp.struct
class DofRoom:
    """What the update of dofs reads and writes besides the arrays of the simulation; whole numbers by flat views."""

    numbers: wp.array[int]
    known: wp.array[int]  #: (1,) vertices of the complex that have rows
    changed: wp.array[int]  #: simplices with other corners or neighbours
    blended: wp.array[wp.vec3i]  #: vertices that are between two others now
    blends: wp.array[wp.float64]
    row_of: wp.array[int]  #: by vertex of the complex: its dof
    parts: wp.array[wp.vec3i]  #: by part: its body, the range of the arrays that it has rows in, the first dof of that
    body: wp.array[int]  #: by dof
    counts: wp.array[int]  #: by range: dofs in use
    rooms: wp.array[int]  #: by range: dofs there is room for
    touched: wp.array[int]  #: vertices of changed simplices
    vertex_stamp: wp.array[int]
    simplex_stamp: wp.array[int]
    star: wp.array[int]
    near: wp.array[int]  #: neighbours of one dof
    near_weight: wp.array[wp.float64]
    near_place: wp.array[int]  #: by dof: its place among them
    near_stamp: wp.array[int]  #: by dof: the star whose neighbour it is
    x: wp.array[wp.float64]  #: by dof, three numbers each
    v: wp.array[wp.float64]
    mass: wp.array[wp.float64]
    diagonal: wp.array[wp.float64]
    inertia: wp.array[wp.float64]
    plain_inertia: wp.array[wp.float64]
    damping: wp.array[wp.float64]
    dt: wp.array[wp.float64]
    limit: wp.array[wp.float64]  #: by dof: the gap below which what it carries touches others [m]
    free: wp.array[int]
    near_ranges: wp.array[int]
    part_ranges: wp.array[int]
    lane_of: wp.array[int]  #: by dof: 8 times its group, and its lane; -1 for none
    colour_of: wp.array[int]  #: by dof; -1 for none
    fill: wp.array[int]  #: by group: lanes that are not repeated
    group_stamp: wp.array[int]
    groups: wp.array[int]  #: groups to be written anew
    colour_ranges: wp.array[int]
    colour_ends: wp.array[int]  #: by colour: where its room ends
    table: wp.array[int]
    lane_dofs: wp.array[int]
    swept: wp.array[int]  #: the same, each dof once, -1 for all other lanes: what sweeps on CUDA go through
    mu: wp.float64
    lam: wp.float64
    density: wp.float64
    thickness: wp.float64  #: of a sheet [m]
    rigidity: wp.float64  #: of a sheet, against bending [N m]
    solid: int  #: 1 for a solid, 0 for a sheet
    #: Blocks of rows that are free, by their number of rows: first of each stack, and the next of each block.
    spare_near: wp.array[int]
    spare_part: wp.array[int]
    next_near: wp.array[int]
    next_part: wp.array[int]
    retired: wp.array[wp.vec4i]  #: blocks that are free when the step is done: of neighbours, of elements


@wp.func
def opposite_rows(rows: wp.vec4i, k: int) -> wp.vec3i:
    """The three of the corners of a tetrahedron that are not corner k, turned so that volumes are positive."""
    if k == 0:
        return wp.vec3i(rows[1], rows[3], rows[2])
    if k == 1:
        return wp.vec3i(rows[0], rows[2], rows[3])
    if k == 2:
        return wp.vec3i(rows[0], rows[3], rows[1])
    return wp.vec3i(rows[0], rows[1], rows[2])


@wp.func
def spokes_of(c: ComplexArrays, corners: wp.vec4i) -> mat43d:
    """By corner, six times the volume over its height, upward."""
    p0 = c.rest[corners[0]]
    p1 = c.rest[corners[1]]
    p2 = c.rest[corners[2]]
    p3 = c.rest[corners[3]]
    return wp.matrix_from_rows(
        wp.cross(p3 - p1, p2 - p1), wp.cross(p2 - p0, p3 - p0), wp.cross(p3 - p0, p1 - p0), wp.cross(p1 - p0, p2 - p0)
    )


@wp.func
def here(d: DofRoom, v: int) -> wp.vec3d:
    """Where a vertex is [m]."""
    row = d.row_of[v]
    return wp.vec3d(d.x[3 * row], d.x[3 * row + 1], d.x[3 * row + 2])


@wp.func
def touch(d: DofRoom, log: WriteLog, v: int):
    """What holds a vertex is to be found anew."""
    if d.vertex_stamp[v] != d.numbers[VERTEX_STAMP]:
        d.vertex_stamp[v] = d.numbers[VERTEX_STAMP]
        n = d.numbers[TOUCHED]
        if n < d.touched.shape[0]:
            d.touched[n] = v
            d.numbers[TOUCHED] = n + 1
        else:
            log.numbers[FULL] = 1


@wp.kernel
def place_dofs(first: int, changed: wp.array[int], c: ComplexArrays, d: DofRoom, log: WriteLog):
    """Rows for new vertices; where they are; and which vertices are touched (one thread).

    `changed`: how many simplices, how many blends.
    """
    d.numbers[TOUCHED] = 0
    for v in range(d.known[0], c.numbers[VERTICES]):
        part = d.parts[c.part[c.simplex_at[v]]]
        own = part[1]
        count = d.counts[own]
        if count >= d.rooms[own]:
            log.numbers[FULL] = 1
            return
        put(log, DOF_COUNTS, d.counts, own, count + 1)
        row = part[2] + count
        put(log, ROW_OF, d.row_of, v, row)
        put(log, BODY, d.body, row, part[0])
        put(log, FREE, d.free, row, 1)
        put_value(log, LIMIT, d.limit, row, wp.float64(wp.inf))
    for i in range(changed[1]):
        blend = d.blended[i]
        s = d.blends[i]
        m = d.row_of[blend[0]]
        p = d.row_of[blend[1]]
        q = d.row_of[blend[2]]
        for k in range(3):
            place = (wp.float64(1.0) - s) * d.x[3 * p + k] + s * d.x[3 * q + k]
            speed = (wp.float64(1.0) - s) * d.v[3 * p + k] + s * d.v[3 * q + k]
            put_value(log, X, d.x, 3 * m + k, place)
            put_value(log, V, d.v, 3 * m + k, speed)
        if blend[0] >= d.known[0]:
            if d.free[p] == 0 and d.free[q] == 0:
                put(log, FREE, d.free, m, 0)
            put_value(log, LIMIT, d.limit, m, wp.min(d.limit[p], d.limit[q]))
    put(log, KNOWN, d.known, 0, c.numbers[VERTICES])
    d.numbers[VERTEX_STAMP] = d.numbers[VERTEX_STAMP] + 1
    d.numbers[INSIDE_OUT] = -1
    for i in range(changed[0]):
        corners = c.corners[d.changed[i]]
        if c.size == 4:
            o = here(d, corners[0])
            up = wp.cross(here(d, corners[1]) - o, here(d, corners[2]) - o)
            if not (wp.dot(up, here(d, corners[3]) - o) > wp.float64(0.0)):
                d.numbers[INSIDE_OUT] = d.changed[i]
        for k in range(c.size):
            touch(d, log, corners[k])
        if c.size == 3:  # bending over its edges has the far corners of the triangles beyond
            beyond = c.neighbours[d.changed[i]]
            for k in range(3):
                if beyond[k] >= 0:
                    touch(d, log, c.corners[beyond[k] >> 2][beyond[k] & 3])


@wp.func
def find_star(c: ComplexArrays, d: DofRoom, v: int) -> int:
    """The simplices at a vertex, rising; how many, or more than there is room for."""
    stamp = d.numbers[SIMPLEX_STAMP] + 1
    d.numbers[SIMPLEX_STAMP] = stamp
    room = d.star.shape[0]
    d.star[0] = c.simplex_at[v]
    d.simplex_stamp[d.star[0]] = stamp
    count = int(1)
    at = int(0)
    while at < count:
        t = d.star[at]
        corners = c.corners[t]
        beyond = c.neighbours[t]
        for k in range(4):
            if corners[k] != v and beyond[k] >= 0:
                o = beyond[k] >> 2
                if d.simplex_stamp[o] != stamp:
                    d.simplex_stamp[o] = stamp
                    if count < room:
                        d.star[count] = o
                    count += 1
        at += 1
        if count > room:
            return count
    for i in range(1, count):
        own = d.star[i]
        j = i - 1
        while j >= 0 and d.star[wp.max(j, 0)] > own:
            d.star[j + 1] = d.star[j]
            j -= 1
        d.star[j + 1] = own
    return count


@wp.func
def sort_neighbours(d: DofRoom, count: int):
    """Neighbours rising, and their weights."""
    for i in range(1, count):
        own = d.near[i]
        weight = d.near_weight[i]
        j = i - 1
        while j >= 0 and d.near[wp.max(j, 0)] > own:
            d.near[j + 1] = d.near[j]
            d.near_weight[j + 1] = d.near_weight[j]
            j -= 1
        d.near[j + 1] = own
        d.near_weight[j + 1] = weight


@wp.func
def enter_row(d: DofRoom, log: WriteLog, material: DofCoupling, row: int, near: int, count: int, mass: wp.float64):
    """So many neighbours and elements, at the ends of their lists, and a mass are those of a dof from now on."""
    sort_neighbours(d, near)
    to = d.numbers[NEIGHBOURS]
    begin = d.numbers[ELEMENTS]
    if to + near > material.weights.shape[0]:
        log.numbers[FULL] = 1
        return
    total = wp.float64(0.0)
    for i in range(near):
        material.neighbours[to + i] = d.near[i]
        material.weights[to + i] = d.near_weight[i]
        total += d.near_weight[i]
    put_value(log, DIAGONAL, d.diagonal, row, -total)
    put_value(log, MASS, d.mass, row, mass)
    inertia = mass * (wp.float64(1.0) + d.dt[0] * d.damping[row]) / (d.dt[0] * d.dt[0])
    put_value(log, INERTIA, d.inertia, row, inertia)
    put_value(log, PLAIN_INERTIA, d.plain_inertia, row, inertia)
    put(log, NEAR_RANGES, d.near_ranges, 2 * row, to)
    put(log, NEAR_RANGES, d.near_ranges, 2 * row + 1, to + near)
    put(log, PART_RANGES, d.part_ranges, 2 * row, begin)
    put(log, PART_RANGES, d.part_ranges, 2 * row + 1, begin + count)
    d.numbers[NEIGHBOURS] = to + near
    d.numbers[ELEMENTS] = begin + count


@wp.kernel
def couple_dofs(first: int, c: ComplexArrays, d: DofRoom, log: WriteLog, material: DofCoupling):
    """Masses and lists of all vertices that are touched, to fresh places (one thread)."""
    sixth = wp.float64(1.0) / wp.float64(6.0)
    for n in range(d.numbers[TOUCHED]):
        v = d.touched[n]
        row = d.row_of[v]
        count = find_star(c, d, v)
        begin = d.numbers[ELEMENTS]
        if count > d.star.shape[0] or begin + count > material.laws.shape[0]:
            log.numbers[FULL] = 1
            return
        mass = wp.float64(0.0)
        near = int(0)
        stamp = d.numbers[SIMPLEX_STAMP]
        for i in range(count):
            corners = c.corners[d.star[i]]
            rows = wp.vec4i(d.row_of[corners[0]], d.row_of[corners[1]], d.row_of[corners[2]], d.row_of[corners[3]])
            own = int(0)
            for k in range(1, 4):
                if corners[k] == v:
                    own = k
            spokes = spokes_of(c, corners)
            up = spokes[own]
            other_corner = corners[0]
            if own == 0:
                other_corner = corners[1]
            volume = sixth * wp.dot(c.rest[v] - c.rest[other_corner], up)
            mass += wp.float64(0.25) * d.density * volume
            per = wp.float64(1.0) / (wp.float64(6.0) * volume)
            material.opposite[begin + i] = opposite_rows(rows, own)
            material.laws[begin + i] = wp.vec3d(d.lam * volume, per, wp.float64(1.0) + d.mu / d.lam)
            scale = d.mu * volume * per * per
            for k in range(4):
                if k != own:
                    other = rows[k]
                    at = d.near_place[other]
                    if d.near_stamp[other] != stamp:
                        at = near
                        if near + 1 >= d.near.shape[0]:
                            log.numbers[FULL] = 1
                            return
                        near += 1
                        d.near_stamp[other] = stamp
                        d.near_place[other] = at
                        d.near[at] = other
                        d.near_weight[at] = wp.float64(0.0)
                    d.near_weight[at] = d.near_weight[at] + scale * wp.dot(up, spokes[k])
        enter_row(d, log, material, row, near, count, mass)
        if log.numbers[FULL] == 1:
            return


@wp.func
def least_colour(d: DofRoom, material: DofCoupling, row: int) -> int:
    """The least colour that no neighbour has."""
    colour = int(0)
    taken = int(1)
    while taken == 1:
        taken = int(0)
        for e in range(d.near_ranges[2 * row], d.near_ranges[2 * row + 1]):
            if d.colour_of[material.neighbours[e]] == colour:
                taken = 1
        colour += taken
    return colour


@wp.func
def mark_group(d: DofRoom, group: int):
    """A group is to be written anew."""
    if d.group_stamp[group] != d.numbers[GROUP_STAMP]:
        d.group_stamp[group] = d.numbers[GROUP_STAMP]
        d.groups[d.numbers[GROUPS]] = group
        d.numbers[GROUPS] = d.numbers[GROUPS] + 1


@wp.func
def new_lane(d: DofRoom, log: WriteLog, row: int, colour: int):
    """A lane for a dof: in the last group of its colour, or in a new one."""
    end = d.colour_ranges[2 * colour + 1]
    group = end - 1
    fits = bool(False)
    if end > d.colour_ranges[2 * colour]:
        fits = d.fill[group] < 8 and d.table[5 * group + 4] == d.solid
    if not fits:
        if end >= d.colour_ends[colour]:
            log.numbers[FULL] = 1
            return
        group = end
        put(log, COLOUR_RANGES, d.colour_ranges, 2 * colour + 1, end + 1)
        put(log, FILL, d.fill, group, 0)
        for k in range(4):
            put(log, TABLE, d.table, 5 * group + k, 0)
        put(log, TABLE, d.table, 5 * group + 4, d.solid)
    at = d.fill[group]
    for lane in range(at, 8):
        put(log, LANE_DOFS, d.lane_dofs, 8 * group + lane, row)
    put(log, FILL, d.fill, group, at + 1)
    put(log, SWEPT, d.swept, 8 * group + at, row)
    put(log, LANE_OF, d.lane_of, row, 8 * group + at)
    put(log, COLOUR_OF, d.colour_of, row, colour)
    mark_group(d, group)


@wp.func
def block_of(spare: wp.array[int], following: wp.array[int], size: int) -> int:
    """A free block of so many rows, or -1."""
    if size >= spare.shape[0]:
        return -1
    found = spare[size]
    if found >= 0:
        spare[size] = following[found]
    return found


@wp.kernel
def lay_lanes(first: int, d: DofRoom, log: WriteLog, lanes: DofLanes, material: DofCoupling):
    """Lanes of new dofs, and the groups of all that is touched, to fresh rows (one thread)."""
    d.numbers[GROUPS] = 0
    d.numbers[GROUP_STAMP] = d.numbers[GROUP_STAMP] + 1
    d.numbers[RETIRED] = 0
    for n in range(d.numbers[TOUCHED]):
        row = d.row_of[d.touched[n]]
        if d.free[row] == 1:
            if d.lane_of[row] >= 0:
                mark_group(d, d.lane_of[row] / 8)
            else:
                colour = least_colour(d, material, row)
                if colour >= d.colour_ends.shape[0]:
                    log.numbers[FULL] = 1
                    return
                new_lane(d, log, row, colour)
    if log.numbers[FULL] == 1:
        return
    for n in range(d.numbers[GROUPS]):
        group = d.groups[n]
        near = int(0)
        parts = int(0)
        for lane in range(8):
            row = d.lane_dofs[8 * group + lane]
            near = wp.max(near, d.near_ranges[2 * row + 1] - d.near_ranges[2 * row])
            parts = wp.max(parts, d.part_ranges[2 * row + 1] - d.part_ranges[2 * row])
        at_near = block_of(d.spare_near, d.next_near, near)
        if at_near < 0:
            at_near = d.numbers[NEAR_ROWS]
            d.numbers[NEAR_ROWS] = at_near + near
        at_part = block_of(d.spare_part, d.next_part, parts)
        if at_part < 0:
            at_part = d.numbers[PART_ROWS]
            d.numbers[PART_ROWS] = at_part + parts
        if d.numbers[NEAR_ROWS] > lanes.weights.shape[0] or 3 * d.numbers[PART_ROWS] > lanes.laws.shape[0]:
            log.numbers[FULL] = 1
            return
        retired = d.numbers[RETIRED]
        d.retired[retired] = wp.vec4i(
            d.table[5 * group], d.table[5 * group + 1], d.table[5 * group + 2], d.table[5 * group + 3]
        )
        d.numbers[RETIRED] = retired + 1
        put(log, TABLE, d.table, 5 * group, at_near)
        put(log, TABLE, d.table, 5 * group + 1, near)
        put(log, TABLE, d.table, 5 * group + 2, at_part)
        put(log, TABLE, d.table, 5 * group + 3, parts)
        lay_group(group, material, lanes)


@wp.kernel
def free_blocks(first: int, d: DofRoom):
    """What groups have left may be used again (one thread)."""
    for n in range(d.numbers[RETIRED]):
        block = d.retired[n]
        if block[1] > 0 and block[1] < d.spare_near.shape[0]:
            d.next_near[block[0]] = d.spare_near[block[1]]
            d.spare_near[block[1]] = block[0]
        if block[3] > 0 and block[3] < d.spare_part.shape[0]:
            d.next_part[block[2]] = d.spare_part[block[3]]
            d.spare_part[block[3]] = block[2]
    d.numbers[RETIRED] = 0
