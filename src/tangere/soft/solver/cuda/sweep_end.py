"""What follows each sweep over single vertices: whole bodies shift, and the sequence of sweeps is accelerated (CUDA).

Shift:  forces from inside a body cancel, so its mean move depends on inertia and contacts alone; sweeps over single
        vertices find it last of all. It is one more block of the same descent, for every body without fixed vertices:
        (M/dt^2 + sum K) s = sum m (y - x)/dt^2 + sum F; the stiffness of contacts between two free bodies is doubled,
        which bounds both shifting at once. Without it a block on a slope would gain speed a quarter too fast after the
        usual number of sweeps.
Then:   Anderson acceleration (`anderson`).
All of it is sums over rows and dofs, each of which needs the one before: three kernels. Dofs are summed by warps, which
add to one of several sums of each body so that few wait: 76,000 dofs would add 13 numbers each to 52. Bodies that
something holds do not shift, and have no sums. All lanes of a warp must come to these sums: a launch has a multiple of
`WARP` indices (`whole_warps`), and nobody has returned before; of a part of a warp its own lanes are enough.
On CPU it is part of `solver.cpu.sweeps`.
"""

from __future__ import annotations

import warp as wp

from tangere.runtime import SOUND, PreparedLaunch
from tangere.soft.contact.islands import ContactIslands
from tangere.soft.contact.row_entries import RowArrays
from tangere.soft.contact.rows import ContactRows, row_force
from tangere.soft.model.assembled_bodies import AssembledBodies, DofArrays, WholeBodies, inertia_per_mass
from tangere.soft.solver.anderson import (
    WINDOW,
    AndersonMemory,
    Dots,
    accelerated_position,
    anderson_memory,
    mixing_coefficients,
    record_differences,
)
from tangere.soft.solver.rod import RodArrays, accelerate_rod, record_rod, relax_rod

wp.set_module_options(SOUND)

#: Sums of each body on CUDA.
SLOTS = 4
#: A sum: mass times missing move (3), force (3), stiffness (9).
PARTS = wp.constant(15)
#: Lanes of a warp.
WARP = 32


def whole_warps(count: int) -> int:
    """The least number of indices that is not below this one and fills warps."""
    return -(-count // WARP) * WARP


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return 32;
#else
    return 1;
#endif
""")
def warp_width() -> int:
    """How many lanes a warp has."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    const unsigned own = width == 32 ? 0xffffffffu : ((1u << width) - 1u) << (threadIdx.x & 31 & ~(width - 1));
    for (int way = width / 2; way > 0; way /= 2)
        value += __shfl_xor_sync(own, value, way);
#endif
    return value;
""")
def sum_of_lanes(value: wp.float64, width: int) -> wp.float64:
    """The sum over so many lanes side by side, a power of two up to 32; the same for each of them."""
    ...


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return __all_sync(0xffffffffu, key == __shfl_sync(0xffffffffu, key, 0)) != 0;
#else
    return true;
#endif
""")
def all_lanes_have(key: int) -> bool:
    """Whether a number is the same in all lanes of a warp."""
    ...


class SweepEnd:
    """Ends the sweeps of a step: call `begin`, and after each sweep `__call__`."""

    def __init__(
        self,
        assembly: AssembledBodies,
        islands: ContactIslands,
        y: wp.array,
        rows: ContactRows,
        dt: float,
        rod: RodArrays | None = None,
    ) -> None:
        """`y` is the free motion of the step; a rod is solved by one thread."""
        device, bodies = assembly.device, assembly.body_room
        self._rows, self._dofs = rows, len(assembly.dofs.x)
        self._x, self._memory = assembly.dofs.x, anderson_memory(len(assembly.dofs.x), device)
        memory = self._memory
        sums = wp.zeros((bodies * SLOTS, int(PARTS)), dtype=wp.float64, device=device)
        whole = [islands.anchored, assembly.whole, 1.0 / dt**2, dt, sums]
        dofs = assembly.dofs
        slot_of = [*range(WINDOW), -1]  # the last for a sweep that stays plain
        turns = [(slot, turn) for slot in slot_of for turn in range(2)]
        dots = wp.zeros(SLOTS, dtype=Dots, device=device)
        self._sum_forces = PreparedLaunch(
            _sum_forces, [rows.arrays, dofs, y, islands.anchored, sums, dots], device, serial=True
        )
        self._shift = {
            slot: PreparedLaunch(_shift, [slot, dofs, *whole, memory, dots], device, serial=True) for slot in slot_of
        }
        self._accelerate = {
            key: PreparedLaunch(_accelerate, [*key, dofs, memory, sums, dots], device, serial=True) for key in turns
        }

        self._rod = rod is not None and len(rod.right) > 1
        if rod is not None and self._rod:
            self._relax = [PreparedLaunch(_relax, [n, rod, rows.arrays, dofs], device, serial=True) for n in range(2)]
            rods = [memory, rod, dots]
            self._rod_end = {key: PreparedLaunch(_rod_end, [*key, *rods], device, serial=True) for key in turns}

    def relax_rod(self, sweep: int) -> None:
        """Before a sweep over dofs: the rod, if there is one, and where it guides bodies."""
        if self._rod:
            self._relax[min(sweep, 1)](1)

    def begin(self) -> None:
        """Before the first sweep."""
        self._memory.valid.fill_(-1)
        wp.copy(self._memory.before, self._x)

    def __call__(self, sweep: int, *, accelerated: bool) -> None:
        """End the sweep of this number, 0, 1, 2, …"""
        slot = sweep % WINDOW if accelerated else -1
        self._sum_forces(whole_warps(max(self._rows.launch_size, self._dofs, SLOTS)))
        self._shift[slot](whole_warps(self._dofs))
        if self._rod and slot >= 0:
            self._rod_end[slot, sweep % 2](1)
        self._accelerate[slot, sweep % 2](self._dofs)


@wp.func
def add_contact_force(
    at_a: int,
    at_b: int,
    free_a: bool,
    free_b: bool,
    push: wp.vec3d,
    matrix: wp.mat33d,
    sums: wp.array2d[wp.float64],
):
    """What a contact between two bodies does to them."""
    double = wp.float64(int(free_a) + int(free_b))
    for c in range(3):
        if free_a:
            wp.atomic_add(sums, at_a, 3 + c, push[c])
        if free_b:
            wp.atomic_add(sums, at_b, 3 + c, -push[c])
        for d in range(3):
            if free_a:
                wp.atomic_add(sums, at_a, 6 + 3 * c + d, double * matrix[c, d])
            if free_b:
                wp.atomic_add(sums, at_b, 6 + 3 * c + d, double * matrix[c, d])


@wp.func
def body_shift(
    b: int,
    anchored: wp.array[int],
    whole: WholeBodies,
    per_dt2: wp.float64,
    dt: wp.float64,
    sums: wp.array2d[wp.float64],
) -> wp.vec3d:
    if anchored[b] != 0:
        return wp.vec3d()
    slots = sums.shape[0] / anchored.shape[0]
    missing = wp.vec3d()
    push = wp.vec3d()
    matrix = wp.mat33d()
    for k in range(b * slots, (b + 1) * slots):
        for c in range(3):
            missing[c] = missing[c] + sums[k, c]
            push[c] = push[c] + sums[k, 3 + c]
            for d in range(3):
                matrix[c, d] = matrix[c, d] + sums[k, 6 + 3 * c + d]
    held = inertia_per_mass(b, whole, per_dt2, dt)
    for c in range(3):
        matrix[c, c] = matrix[c, c] + held * whole.mass[b]
    return wp.inverse(matrix) * (held * missing + push)


@wp.kernel
def _sum_forces(
    first: int,
    rows: RowArrays,
    dofs: DofArrays,
    y: wp.array[wp.vec3d],
    anchored: wp.array[int],
    sums: wp.array2d[wp.float64],
    dots: wp.array[Dots],
):
    """The sums over rows and dofs (one thread on CPU); those of the acceleration start again from zero."""
    i = first + wp.tid()
    slots = sums.shape[0] / anchored.shape[0]
    slot = i % slots
    if i < dots.shape[0]:
        dots[i] = Dots()
    width = warp_width()
    own = int(-1)
    missing = wp.vec3d()
    if i < dofs.x.shape[0]:
        if anchored[dofs.body[i]] == 0:
            own = dofs.body[i]
            missing = dofs.mass[i] * (y[i] - dofs.x[i])
    if all_lanes_have(own):
        for c in range(3):
            total = sum_of_lanes(missing[c], width)
            if own >= 0 and i % width == 0:
                wp.atomic_add(sums, own * slots + (i / width) % slots, c, total)
    elif own >= 0:
        for c in range(3):
            wp.atomic_add(sums, own * slots + slot, c, missing[c])
    if i < rows.live[0]:
        a = rows.bodies[i][0]
        b = rows.bodies[i][1]
        if a != b:
            push, matrix = row_force(i, dofs.x, rows)
            if wp.dot(push, push) != wp.float64(0.0):
                add_contact_force(
                    a * slots + slot, b * slots + slot, anchored[a] == 0, anchored[b] == 0, push, matrix, sums
                )


@wp.kernel
def _shift(
    first: int,
    slot: int,
    dofs: DofArrays,
    anchored: wp.array[int],
    whole: WholeBodies,
    per_dt2: wp.float64,
    dt: wp.float64,
    sums: wp.array2d[wp.float64],
    memory: AndersonMemory,
    dots: wp.array[Dots],
):
    """Every dof finds the shift of its body for itself: cheaper than another launch (one thread on CPU)."""
    i = first + wp.tid()
    width = warp_width()
    mine = Dots()
    if i < dofs.x.shape[0]:
        if dofs.free[i] == 1:
            here = dofs.x[i] + body_shift(dofs.body[i], anchored, whole, per_dt2, dt, sums)
            dofs.x[i] = here
            if slot >= 0:
                mine = record_differences(i, slot, here, dofs.mass[i], memory)
    if slot >= 0:
        for k in range(10):
            mine[k] = sum_of_lanes(mine[k], width)
        if i % width == 0:
            wp.atomic_add(dots, (i / width) % dots.shape[0], mine)


@wp.kernel
def _accelerate(
    first: int,
    slot: int,
    turn: int,
    dofs: DofArrays,
    memory: AndersonMemory,
    sums: wp.array2d[wp.float64],
    dots: wp.array[Dots],
):
    """The combination, found by every dof for itself; the sums of the bodies start again from zero."""
    i = first + wp.tid()
    k = int(i)
    while k < sums.shape[0]:
        for c in range(PARTS):
            sums[k, c] = wp.float64(0.0)
        k += dofs.x.shape[0]
    if slot >= 0:
        total = Dots()
        for s in range(dots.shape[0]):
            total += dots[s]
        theta, now = mixing_coefficients(slot, total, memory.valid[turn], memory.residual[turn])
        if i == 0:
            memory.valid[1 - turn] = now
            memory.residual[1 - turn] = total[9]
        if dofs.free[i] == 1:
            dofs.x[i] = accelerated_position(i, theta, dofs.x[i], memory.differences_x)
        memory.before[i] = dofs.x[i]


@wp.kernel
def _relax(first: int, sweep: int, rod: RodArrays, rows: RowArrays, dofs: DofArrays):
    """A rod where the dofs are (one thread)."""
    if sweep == 0:
        for i in range(rod.count[0]):
            rod.before[i] = rod.x[i]
    relax_rod(rod, rows, dofs.x)


@wp.kernel
def _rod_end(first: int, slot: int, turn: int, memory: AndersonMemory, rod: RodArrays, dots: wp.array[Dots]):
    """The rod's part of the acceleration, before that of the dofs (one thread)."""
    dots[0] = dots[0] + record_rod(rod, slot)
    total = Dots()
    for s in range(dots.shape[0]):
        total += dots[s]
    theta, _now = mixing_coefficients(slot, total, memory.valid[turn], memory.residual[turn])
    accelerate_rod(rod, theta)
