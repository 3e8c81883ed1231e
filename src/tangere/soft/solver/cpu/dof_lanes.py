"""What acts on eight dofs of one colour, side by side in SIMD lanes, and how they move (CPU).

Dofs of one colour and kind, solid or sheet, are put into groups of eight, those with as many elements together. A row
holds one number for each of the eight: a neighbour, a corner of an element, a constant of it. Shorter lists go on with
elements that do nothing, and groups that are not full repeat their last dof with all that acts on it: it comes to the
same place twice. Positions lie in fours, so that one load takes one, and eight of them turned make three rows.
The formulas are those of `model.elastic`.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import warp as wp

from tangere.runtime import SOUND, launch
from tangere.soft.contact.row_entries import RowArrays
from tangere.soft.model.assembled_bodies import AssembledBodies, DofCoupling, struct_of

wp.set_module_options(SOUND)

#: Groups of each colour, colours, and rows that cuts may add before all is laid out anew.
SPARE_GROUPS, SPARE_COLOURS, SPARE_ROWS = 64, 4, 4096


@wp.struct
class DofLanes:
    """All groups of eight dofs that move, by colour."""

    colours: wp.array[wp.vec2i]  #: (c,) the groups of each colour: from … to below it; there may be room after them
    table: wp.array2d[int]  #: (e, 5): first row of neighbours, how many, first of elements, how many, 1 for solids
    dofs: wp.array2d[int]  #: (e, 8)
    neighbours: wp.array2d[int]  #: (r, 8)
    weights: wp.array2d[wp.float64]  #: (r, 8)
    corners: wp.array2d[int]  #: (3 q, 8)
    laws: wp.array2d[wp.float64]  #: (3 q, 8): lam times rest size over 6 volumes or 2 areas, one over those, a


def dof_lanes(assembly: AssembledBodies) -> DofLanes:
    """The groups of an assembly, made once and on the host; with room for more where the assembly has room."""
    if assembly.lanes is not None:
        return assembly.lanes
    material = assembly.material
    ranges, element_ranges, opposite = (
        a.numpy() for a in (material.neighbour_ranges, material.element_ranges, material.opposite)
    )
    sizes = element_ranges[:, 1] - element_ranges[:, 0]
    is_solid = np.zeros(len(sizes), bool)
    is_solid[sizes > 0] = opposite[element_ranges[sizes > 0, 0], 2] >= 0
    order, groups, spare = assembly.order.numpy(), [], assembly.has_room
    for begin, end in pairwise(assembly.colours.tolist()):
        ours, some_groups = order[begin:end], []
        for kind in (True, False):
            some = ours[is_solid[ours] == kind]
            some = some[np.argsort(-sizes[some], kind="stable")]
            some_groups.append(np.concatenate([some, np.repeat(some[-1:], -len(some) % 8)]).reshape(-1, 8))
        groups.append(np.concatenate(some_groups))
    dofs = np.concatenate(groups)
    near_at, part_at = (_begins(lists, dofs) for lists in (ranges, element_ranges))
    lists = near_at[:-1], np.diff(near_at), part_at[:-1], np.diff(part_at)
    table = np.stack([*lists, is_solid[dofs[:, 0]]], axis=1)
    near_rows, part_rows = int(near_at[-1]), int(part_at[-1])
    sizes = [len(some) for some in groups]
    if spare:
        more = [*(SPARE_GROUPS + size // 4 for size in sizes), *[SPARE_GROUPS] * SPARE_COLOURS]
        sizes += [0] * SPARE_COLOURS
        begins = np.cumsum([0, *(size + room for size, room in zip(sizes, more, strict=True))])
        place = np.concatenate([begin + np.arange(size) for begin, size in zip(begins, sizes, strict=False)])
        table, dofs = (_spread(array, place, begins[-1]) for array in (table, dofs))
        near_rows, part_rows = (rows + rows // 2 + SPARE_ROWS for rows in (near_rows, part_rows))
    else:
        begins = np.cumsum([0, *sizes])
    colours = np.stack([begins[:-1], begins[:-1] + sizes], axis=1)
    host = wp.get_device("cpu")
    made = struct_of(
        DofLanes,
        host,
        colours=colours,
        table=table,
        dofs=dofs,
        neighbours=wp.zeros((near_rows, 8), dtype=wp.int32, device=host),
        weights=wp.zeros((near_rows, 8), dtype=wp.float64, device=host),
        corners=wp.zeros((3 * part_rows, 8), dtype=wp.int32, device=host),
        laws=wp.zeros((3 * part_rows, 8), dtype=wp.float64, device=host),
    )
    here = {name: getattr(material, name).to(host) for name in DofCoupling.vars}
    launch(_lay_groups, len(table), [struct_of(DofCoupling, host, **here)], [made], device=host, grain=1024)
    assembly.lanes = made
    return made


def _spread(rows: np.ndarray, place: np.ndarray, count: int) -> np.ndarray:
    """Rows in other places among so many."""
    made = np.zeros((count, rows.shape[1]), rows.dtype)
    made[place] = rows
    return made


def _begins(ranges: np.ndarray, dofs: np.ndarray) -> np.ndarray:
    """Where the rows of each eight begin, and how many there are: one for each entry of the longest list of them."""
    return np.concatenate([[0], np.cumsum((ranges[:, 1] - ranges[:, 0])[dofs].max(axis=1))])


@wp.func
def lay_group(group: int, material: DofCoupling, lanes: DofLanes):
    """Write the rows of a group, whose dofs and place are known, lane by lane."""
    first_near = lanes.table[group, 0]
    first_part = lanes.table[group, 2]
    for lane in range(8):
        dof = lanes.dofs[group, lane]
        begin = material.neighbour_ranges[dof][0]
        size = material.neighbour_ranges[dof][1] - begin
        for k in range(lanes.table[group, 1]):
            if k < size:
                lanes.neighbours[first_near + k, lane] = material.neighbours[begin + k]
                lanes.weights[first_near + k, lane] = material.weights[begin + k]
            else:
                lanes.neighbours[first_near + k, lane] = dof
                lanes.weights[first_near + k, lane] = wp.float64(0.0)
        begin = material.element_ranges[dof][0]
        size = material.element_ranges[dof][1] - begin
        for k in range(lanes.table[group, 3]):
            corners = wp.vec3i(dof, dof, dof)
            law = wp.vec3d()
            if k < size:
                corners = material.opposite[begin + k]
                law = material.laws[begin + k]
                law[0] = law[0] * law[1]
            for j in range(3):
                corner = corners[j]
                if corner < 0:  # the third of a sheet
                    corner = dof
                lanes.corners[3 * (first_part + k) + j, lane] = corner
                lanes.laws[3 * (first_part + k) + j, lane] = law[j]


@wp.kernel
def _lay_groups(first: int, material: DofCoupling, lanes: DofLanes):
    lay_group(first + wp.tid(), material, lanes)


@wp.func_native(
    """
    typedef double Wide __attribute__((ext_vector_type(8), aligned(8)));
    typedef double Four __attribute__((ext_vector_type(4), aligned(8)));
    struct Vector { Wide x, y, z; };
    const Four* places = (const Four*)x.data;
    auto at = [&](const int* dof) -> Vector {
        auto pair = [&](int lane) -> Wide {
            return __builtin_shufflevector(places[dof[lane]], places[dof[lane + 4]], 0, 1, 2, 3, 4, 5, 6, 7);
        };
        const Wide a = pair(0), b = pair(1), c = pair(2), d = pair(3);
        const Wide xz0 = __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14);
        const Wide xz1 = __builtin_shufflevector(c, d, 0, 8, 2, 10, 4, 12, 6, 14);
        const Wide yw0 = __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15);
        const Wide yw1 = __builtin_shufflevector(c, d, 1, 9, 3, 11, 5, 13, 7, 15);
        return {__builtin_shufflevector(xz0, xz1, 0, 1, 8, 9, 4, 5, 12, 13),
                __builtin_shufflevector(yw0, yw1, 0, 1, 8, 9, 4, 5, 12, 13),
                __builtin_shufflevector(xz0, xz1, 2, 3, 10, 11, 6, 7, 14, 15)};
    };
    auto minus = [](Vector a, Vector b) -> Vector { return {a.x - b.x, a.y - b.y, a.z - b.z}; };
    auto dot = [](Vector a, Vector b) -> Wide { return a.x * b.x + a.y * b.y + a.z * b.z; };
    auto cross = [](Vector a, Vector b) -> Vector {
        return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
    };
    const int* dof = &lanes.dofs.data[8 * group];
    const int* row = &lanes.table.data[5 * group];
    const Vector here = at(dof);
    Vector force = {};
    Wide xx = {}, xy = {}, xz = {}, yy = {}, yz = {}, zz = {};
    auto add = [&](Wide scale, Vector v) {
        force.x += scale * v.x, force.y += scale * v.y, force.z += scale * v.z;
    };
    auto add_outer = [&](Wide scale, Vector v) {
        const Vector s = {scale * v.x, scale * v.y, scale * v.z};
        xx += s.x * v.x, xy += s.x * v.y, xz += s.x * v.z, yy += s.y * v.y, yz += s.y * v.z, zz += s.z * v.z;
    };
    for (int lane = 0; lane < 8; ++lane) {
        const int i = dof[lane];
        const Four pull = inertia.data[i] * (((const Four*)y.data)[i] - places[i]);
        force.x[lane] = pull[0], force.y[lane] = pull[1], force.z[lane] = pull[2];
        xx[lane] = yy[lane] = zz[lane] = inertia.data[i] + diagonal.data[i];
        if (rows.begin.data[i] < rows.end.data[i]) {
            Four push = {};
            Wide stiff = {};
            for (int e = rows.begin.data[i]; e < rows.end.data[i]; ++e) {
                const double* row_force = &row_forces.data[12 * rows.entry_row.data[e]];
                const double* share = (const double*)&rows.entry_pull.data[e];
                push += share[0] * *(const Four*)row_force;
                stiff += share[1] * *(const Wide*)(row_force + 4);
            }
            force.x[lane] += push[0], force.y[lane] += push[1], force.z[lane] += push[2];
            xx[lane] += stiff[0], xy[lane] += stiff[1], xz[lane] += stiff[2];
            yy[lane] += stiff[3], yz[lane] += stiff[4], zz[lane] += stiff[5];
        }
    }
    for (int k = row[0]; k < row[0] + row[1]; ++k)
        add(-*(const Wide*)&lanes.weights.data[8 * k], minus(at(&lanes.neighbours.data[8 * k]), here));
    for (int k = row[2]; k < row[2] + row[3]; ++k) {
        const int* corner = &lanes.corners.data[24 * k];
        const Wide* law = (const Wide*)&lanes.laws.data[24 * k];
        const Vector origin = at(corner);
        const Vector along = minus(at(corner + 8), origin), to = minus(here, origin);
        if (row[4] == 1) {
            const Vector change = cross(along, minus(at(corner + 16), origin));
            add(law[0] * (law[2] - law[1] * dot(to, change)), change);
            add_outer(law[0] * law[1], change);
        } else {
            const Vector area = cross(along, to);
            const Wide size = __builtin_elementwise_sqrt(dot(area, area));
            const Wide scale = law[0] * law[1];
            // law[1] size is the ratio of areas; without area there is no direction to push in
            add(size > 0.0 ? law[0] * law[2] / size - scale : (Wide)0.0, cross(area, along));
            add_outer(-scale, along);
            const Wide across = scale * dot(along, along);
            xx += across, yy += across, zz += across;
        }
    }
    const Wide a = yy * zz - yz * yz, b = xz * yz - xy * zz, c = xy * yz - xz * yy;
    const Wide d = xx * zz - xz * xz, e = xy * xz - xx * yz, f = xx * yy - xy * xy;
    const Wide whole = xx * a + xy * b + xz * c;
    const Wide inverse = whole != 0.0 ? 1.0 / whole : (Wide)0.0;
    const Wide mx = here.x + (a * force.x + b * force.y + c * force.z) * inverse;
    const Wide my = here.y + (b * force.x + d * force.y + e * force.z) * inverse;
    const Wide mz = here.z + (c * force.x + e * force.y + f * force.z) * inverse;
    for (int lane = 0; lane < 8; ++lane)
        ((Four*)x.data)[dof[lane]] = (Four){mx[lane], my[lane], mz[lane], 0.0};
"""
)
def move_lanes(
    group: int,
    lanes: DofLanes,
    x: wp.array[wp.vec4d],
    y: wp.array[wp.vec4d],
    inertia: wp.array[wp.float64],
    diagonal: wp.array[wp.float64],
    rows: RowArrays,
    row_forces: wp.array2d[wp.float64],
):
    """Each of the eight dofs goes to the minimum of its own part of the energy."""
    ...
