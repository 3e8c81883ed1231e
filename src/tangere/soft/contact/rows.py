"""Contact rows: for each contact a spring along its normal and friction across it, mapped to the degrees of freedom.

A row is a combination of dofs: g = n . sum_k c_k q_k, the gap along a normal kept for the step, with sum_k c_k = 0.
Force:    fn = k max(0, d - g) along n, the published F = k (dx - d) (Léonard 2021, section 3.8); friction mu fn against
          the slip u of the step, proportional to it below a small slip. It goes to the dofs with the weights c: sums of
          forces vanish exactly as the weights do.
Block:    |c_k| sum_j |c_j| K bounds what the row adds to all dofs at once, so no row needs a colour.
Memory:   friction goes on from the slip that was taken up before (`friction_memory`).
Guides:   a phase may append rows of another kind, which hold a point of a body on a line, as a shaft of a needle does:
          with the offset u of the point from where it is held and the unit tangent t of the line, a spring k_across on
          u - (u.t) t, and along t one of stiffness k_along whose force is at most f. The potential along t is Huber's;
          its secant stiffness f / |u.t| beyond the limit bounds it from above, so that sweeps still descend. One that
          only pushes has no force where the point is ahead (u.t > 0): the tip. Who appends guides moves the place where
          a point is held after the step, where it slipped: the anchor that remembers.
Known as: penalty contact; Coulomb friction, lagged and regularised (as in Li et al. 2020); bilateral constraints with
          friction of needle insertion (Duriez et al. 2009); Huber's loss, majorised (Huber 1964).
"""

from __future__ import annotations

from collections.abc import Callable

import warp as wp

from tangere.runtime import SOUND, PreparedLaunch, launch
from tangere.soft.contact.activation import activation, is_flat, meets_wall, vertex_normal
from tangere.soft.contact.contact_points import ContactArrays, ContactPoints
from tangere.soft.contact.friction_memory import (
    Bristles,
    FrictionMemory,
    put_elsewhere,
    ratcheted,
    recall,
    was_passed_over,
    widened,
)
from tangere.soft.contact.islands import ContactIslands, union
from tangere.soft.contact.nearest_edges import rims_of_cut
from tangere.soft.contact.row_entries import WIDTH, RowArrays, RowDofs, RowEntries, RowWeights
from tangere.soft.model.assembled_bodies import CLOSED, RIM, SMOOTH, WALL, AssembledBodies, SurfaceArrays, struct_of

wp.set_module_options(SOUND)

#: Friction is proportional to slip below this part of the contact distance.
SLIP = 1e-3
#: Cosine of the angle from which on what is nearest to a vertex is beside it, and not on one side of its surface.
_ASIDE = wp.constant(wp.float64(0.25))
#: Rows there is room for at first.
LEAST_ROOM = 256


class ContactRows:
    """The rows of a step, in buffers that grow."""

    def __init__(
        self,
        assembly: AssembledBodies,
        start: wp.array,
        *,
        dt: float,
        distance: float,
        friction: float,
        stiffness: float | None,
        limits: wp.array,
        smooth: bool,
        places: int,
    ) -> None:
        """Prepare.

        Args:
            start: where the dofs are when the step begins.
            stiffness: None means what the bodies ask for [N/m].
            limits: (s,) the gap below which each surface vertex touches other bodies [m].
            smooth: what slides over a surface is not held back by its vertices (`is_flatter`); else all normals are
                from point to point, as published.
            places: of features that may touch (`ContactPartners`).
        """
        self.memory = FrictionMemory(places, assembly)
        self._smooth = int(SMOOTH) if smooth else 0
        self._limits = limits
        self._assembly, self._start = assembly, start
        self._dt, self._distance, self._friction, self._stiffness = dt, distance, friction, stiffness
        self._positions = assembly.surface.rest  # of the surface when the step began
        self.live = wp.zeros(1, dtype=wp.int32, device=assembly.device)  #: how many rows there are
        self._grow(LEAST_ROOM)

    def set(self, contact_points: ContactPoints, positions: wp.array) -> None:
        """Make these contacts the rows of the step; `positions` of the surface when it begins."""
        device = self._assembly.device
        if contact_points.room > self.capacity:
            self._grow(max(contact_points.room, self.capacity + self.capacity // 2))
        if (
            self._prepared_for is None
            or self._prepared_for[0] is not contact_points
            or self._prepared_for[1] is not positions
        ):
            self._prepare(contact_points, positions)
        self._positions = positions
        wp.copy(self.live, contact_points.live)
        rows = contact_points.room if device.is_cuda else self.count
        self._find_laws(rows)
        self._find_dofs(rows)
        self.entries(rows)

    def append(self, count: int, write: Callable[[RowArrays, int], None]) -> None:
        """Add rows to those of the contacts, for this step; a phase between "respond" and "solve" calls it.

        Args:
            write: fills them, given the arrays and the number of the first one: bodies, dofs, weights, sizes, bound,
                place, and the members of `RowArrays` that make it a contact or a guide.
        """
        first = self.count
        if first + count > self.capacity:
            before = self.arrays
            self._grow(max(first + count, self.capacity + self.capacity // 2))
            for name in RowArrays.vars:
                old, new = getattr(before, name), getattr(self.arrays, name)
                if first and isinstance(old, wp.array) and len(new) == self.capacity:
                    wp.copy(new, old, count=first)
        write(self.arrays, first)
        self.live.fill_(first + count)
        self.entries(self.launch_size)

    def set_dt(self, dt: float) -> None:
        """Of steps of another length [s]."""
        self._dt, self._prepared_for = dt, None

    def _prepare(self, contact_points: ContactPoints, positions: wp.array) -> None:
        """Prepare for this list of contacts."""
        assembly, device, contacts = self._assembly, self._assembly.device, contact_points.arrays
        inputs = [contacts, positions, assembly.surface, self._limits]
        inputs += [self._distance, self._dt, self._stiffness or 0.0, self._smooth, self.memory.bristles]
        self._find_laws = PreparedLaunch(_laws, [*inputs, self.arrays], device, grain=1024)
        inputs = [contacts, assembly.surface, assembly.dofs.free]
        self._find_dofs = PreparedLaunch(_row_dofs, [*inputs, self.arrays], device, grain=1024)
        self._prepared_for = contact_points, positions  # last: should something stop this, it is done again

    def merge_islands(self, islands: ContactIslands) -> None:
        """Put bodies that touch into one island."""
        inputs = [self.arrays, islands.label]
        launch(_merge_islands, self.launch_size, inputs, device=self._assembly.device, threads=1)
        islands.compress()

    @property
    def count(self) -> int:
        """How many rows there are; on CUDA the device is asked."""
        return int(self.live.numpy()[0])

    def update_forces(self) -> None:
        """Forces and stiffnesses of all rows where the dofs are now."""
        self._forces(self.launch_size)

    def keep_strain(self) -> None:
        """After a step: remember what friction has taken up."""
        self.memory.keep(self.arrays, self._assembly.dofs.x, self._positions, self.launch_size)

    @property
    def launch_size(self) -> int:
        """Rows to launch for: on CUDA, where launches are captured, all there is room for; `live` says which count."""
        return self.capacity if self._assembly.device.is_cuda else self.count

    def _grow(self, capacity: int) -> None:
        assembly, device = self._assembly, self._assembly.device
        self.capacity, self._prepared_for = 0, None  # until all has grown, should something stop this
        lengths = dict.fromkeys(("begin", "end"), len(assembly.dofs.x))
        lengths |= dict.fromkeys(("entry_row", "entry_pull"), capacity * int(WIDTH))
        given = {"live": self.live, "start": self._start}
        given |= {"friction": self._friction, "slip": SLIP * self._distance}
        grown = {
            name: wp.zeros(lengths.get(name, capacity), dtype=member.type.dtype, device=device)
            for name, member in RowArrays.vars.items()
            if name not in given
        }
        self.arrays: RowArrays = struct_of(RowArrays, device, **given, **grown)  #: for kernels
        self._forces = PreparedLaunch(_forces, [assembly.dofs.x, self.arrays], device, grain=1024)
        self.entries = RowEntries(self.arrays)
        self.capacity = capacity


@wp.kernel
def _merge_islands(first: int, rows: RowArrays, label: wp.array[int]):
    """One thread on CPU."""
    r = first + wp.tid()
    if r < rows.live[0]:
        if rows.bodies[r][0] != rows.bodies[r][1]:
            union(label, rows.bodies[r][0], rows.bodies[r][1])


@wp.kernel
def _laws(
    first: int,
    contacts: ContactArrays,
    positions: wp.array[wp.vec3d],
    surface: SurfaceArrays,
    limits: wp.array[wp.float64],
    distance: wp.float64,
    dt: wp.float64,
    stiffness: wp.float64,
    smooth: int,
    bristles: Bristles,
    rows: RowArrays,
):
    """Normal, stiffness, activation distance, bodies and strain of each row."""
    r = first + wp.tid()
    if r >= rows.live[0]:
        return
    zero = wp.float64(0.0)
    quad = contacts.quads[r]
    weights = contacts.weights[r]
    gap = wp.vec3d()
    apart = wp.vec3d()
    of_a = wp.vec3d()  # area, mass and limit
    of_b = wp.vec3d()
    for k in range(4):
        v = quad[k]
        w = weights[k]
        gap += w * positions[v]
        apart += w * surface.rest[v]
        traits = wp.vec3d(surface.contact_area[v], surface.contact_mass[v], limits[v])
        of_a += wp.max(w, zero) * traits
        of_b += wp.max(-w, zero) * traits
    pair = wp.vec2i(surface.body[quad[0]], surface.body[quad[3]])
    found = surface.traits[quad[0]] | surface.traits[quad[1]] | surface.traits[quad[2]] | surface.traits[quad[3]]
    at_cut = (found & (WALL | RIM)) != 0 and contacts.place[r] >= 0  # else nothing is kept of it, as published
    kin = bristles.family[pair[0]] == bristles.family[pair[1]]
    length = wp.length(gap)
    normal = wp.vec3d()
    if length > zero:
        normal = gap / length
        flat = weights[1] <= zero and pair[0] != pair[1] and (surface.traits[quad[0]] & smooth) != 0
        if flat and not at_cut and not kin:  # what a blade has parted has been seen as far as it is, not along this
            own = wp.normalize(vertex_normal(quad[0], positions, surface))
            along = wp.dot(own, gap)
            if wp.abs(along) > _ASIDE * length:
                if is_flatter(quad, weights, positions, surface):
                    normal = wp.sign(along) * own
    else:
        normal = normal_at_contact(quad, weights, positions, surface)
    heaviest = wp.max(of_a, of_b)
    spring = stiffness + zero
    if spring == zero:
        spring = wp.max(heaviest[0] / distance, wp.float64(4.0) * heaviest[1] / (dt * dt))
    walls = bool(False)
    if at_cut and weights[1] <= zero:
        walls = meets_wall(quad[0], quad[1], quad[2], quad[3], surface)
    elif at_cut:
        walls = rims_of_cut(quad[0], quad[1], quad[2], quad[3], surface)
    below = activation(distance, wp.length(apart), pair[0] == pair[1] and not walls)
    if pair[0] != pair[1]:
        limit = wp.min(of_a[2], of_b[2])
        if not at_cut and not kin:
            limit = widened(contacts.place[r], pair[1], length, limit, bristles)
        below = wp.min(below, limit)
    if at_cut or (kin and pair[0] != pair[1]):
        anew = kin and put_elsewhere(quad, weights, bristles)
        anew = anew or was_passed_over(contacts.place[r], quad, weights, distance, bristles)
        below = wp.min(below, ratcheted(contacts.place[r], pair[1], length, distance, anew, bristles))
    rows.normal[r] = normal
    rows.bodies[r] = pair
    rows.law[r] = wp.vec2d(spring, below)
    rows.place[r] = int(contacts.place[r])
    rows.strain[r] = recall(contacts.place[r], pair[1], bristles)
    rows.guide[r] = wp.vec4d()


@wp.func
def is_flatter(quad: wp.vec4i, weights: wp.vec4d, positions: wp.array[wp.vec3d], surface: SurfaceArrays) -> bool:
    """Whether the surface around a smooth vertex is flat and that of the face is not, or the face touches by its rim.

    Then contact is along the normal of the vertex, wherever beside it the face is nearest: else what slides over a flat
    surface would be held back by its vertices.
    """
    sharp = bool(True)
    rim = bool(False)
    for k in range(1, 4):
        rim = rim or weights[k] == wp.float64(0.0)
        sharp = sharp and (weights[k] == wp.float64(0.0) or (surface.traits[quad[k]] & SMOOTH) == 0)
    if rim and sharp:
        return True
    if not is_flat(quad[0], positions, surface):
        return False
    flat = bool(True)
    for k in range(1, 4):
        flat = flat and is_flat(quad[k], positions, surface)
    return not flat


@wp.func
def normal_at_contact(
    quad: wp.vec4i, weights: wp.vec4d, positions: wp.array[wp.vec3d], surface: SurfaceArrays
) -> wp.vec3d:
    """The normal where the gap is 0: of the face, or across both edges; where they have none, between the surfaces.

    It points to the side where the first surface lies: closed ones tell, of two open ones both are asked. The contacts
    of Léonard 2021, section 3.7, have a normal from one point to the other, which is none there.
    """
    zero = wp.float64(0.0)
    a = positions[quad[0]]
    b = positions[quad[1]]
    c = positions[quad[2]]
    d = positions[quad[3]]
    across = wp.cross(b - a, d - c)
    split = 2
    if weights[1] <= zero:
        across = wp.cross(c - b, d - b)
        split = 1
    closed_a = (surface.traits[quad[0]] & CLOSED) != 0
    closed_b = (surface.traits[quad[3]] & CLOSED) != 0
    side = wp.vec3d()
    for k in range(4):
        ours = vertex_normal(quad[k], positions, surface)
        if k < split and (closed_a or not closed_b):
            side -= wp.abs(weights[k]) * wp.normalize(ours)
        if k >= split and (closed_b or not closed_a):
            side += wp.abs(weights[k]) * wp.normalize(ours)
    n = wp.normalize(across)
    if wp.length(n) == zero:
        n = wp.normalize(side)
    if wp.length(n) == zero:
        n = wp.vec3d(zero, zero, wp.float64(1.0))
    if wp.dot(n, side) < zero:
        n = -n
    return n


@wp.kernel
def _row_dofs(first: int, contacts: ContactArrays, surface: SurfaceArrays, free: wp.array[int], rows: RowArrays):
    """The dofs of each row, each once, with their weights; rows beyond the last have none."""
    r = first + wp.tid()
    if r >= rows.live[0]:
        rows.sizes[r] = 0
        return
    names = RowDofs()
    values = RowWeights()
    count = int(0)
    for k in range(4):
        v = contacts.quads[r][k]
        carrier = surface.carriers[v]
        for c in range(4):
            value = contacts.weights[r][k] * surface.weights[v][c]
            if value != wp.float64(0.0):
                at = int(0)
                while at < count and names[wp.min(at, 15)] != carrier[c]:
                    at += 1
                if at == count:
                    names[at] = carrier[c]
                    count += 1
                values[at] = values[at] + value
    total = wp.float64(0.0)
    for k in range(count):
        if free[names[k]] == 1:
            total += wp.abs(values[k])
    rows.dofs[r] = names
    rows.weights[r] = values
    rows.bound[r] = total
    rows.sizes[r] = count


@wp.struct
class GuideForce:
    force: wp.vec3d
    across: wp.float64  # stiffness
    along: wp.float64


@wp.func
def guide_force(offset: wp.vec3d, tangent: wp.vec3d, guide: wp.vec4d) -> GuideForce:
    """Force and stiffnesses of a guide."""
    along = wp.dot(offset, tangent)
    k = guide[1]
    if k * wp.abs(along) > guide[2]:
        k = guide[2] / wp.abs(along)
    if guide[3] > wp.float64(0.0) and along > wp.float64(0.0):
        k = wp.float64(0.0)
    held = GuideForce()
    held.force = -(k * along) * tangent - guide[0] * (offset - along * tangent)
    held.across = guide[0]
    held.along = k
    return held


@wp.func
def row_force(r: int, x: wp.array[wp.vec3d], rows: RowArrays):
    """Force and stiffness of a row where the dofs are now."""
    gap = wp.vec3d()
    moved = wp.vec3d()
    names = rows.dofs[r]
    values = rows.weights[r]
    for four in range((rows.sizes[r] + 3) / 4):  # four reads at once; beyond the last dof weights are zero
        for k in range(4):
            dof = names[4 * four + k]
            weight = values[4 * four + k]
            gap += weight * x[dof]
            moved += weight * (x[dof] - rows.start[dof])
    n = rows.normal[r]
    if rows.guide[r][0] > wp.float64(0.0):
        held = guide_force(gap - rows.aim[r], n, rows.guide[r])
        block = wp.outer((held.along - held.across) * n, n)
        for c in range(3):
            block[c, c] = block[c, c] + held.across
        return held.force, block
    moved += rows.strain[r]
    spring = rows.law[r][0]
    deep = rows.law[r][1] - wp.dot(n, gap)
    push = wp.vec3d()
    matrix = wp.mat33d()
    if deep > wp.float64(0.0):
        across = moved - wp.dot(moved, n) * n
        drag = rows.friction * spring * deep / wp.max(wp.length(across), rows.slip)
        push = (spring * deep) * n - drag * across
        matrix = wp.outer((spring - drag) * n, n)
        for c in range(3):
            matrix[c, c] = matrix[c, c] + drag
    return push, matrix


@wp.kernel
def _forces(first: int, x: wp.array[wp.vec3d], rows: RowArrays):
    r = first + wp.tid()
    if r < rows.live[0]:
        push, matrix = row_force(r, x, rows)
        rows.force[r] = push
        rows.stiffness[r] = matrix
