"""Which bodies touch, directly or through others, and how such an island moves as a whole.

Question: which bodies exchange momentum in this step, and what is their mean move?
Method:   union-find on the device: islands are a forest in which the larger root is hooked under the smaller one,
          without locks, so that each island is called by its first body.
Sound:    nothing outside pushes an island without held dofs but gravity: its momentum after a step is known exactly,
          and its mean move is a frame in which nothing needs to be held back.
Known as: contact islands, of rigid-body engines; union-find (Tarjan 1975).
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.runtime import SOUND, PreparedLaunch
from tangere.soft.model.assembled_bodies import AssembledBodies, WholeBodies

wp.set_module_options(SOUND)

#: Sums over the dofs of a body are taken in this many slices.
SLICES = wp.constant(32)


class MassMoves:
    """Sums of mass times move and of mass (vec4d) over the dofs of each body, in slices of the range that has them.

    On CUDA every dof adds to a slice at once; on CPU each slice is summed in order, with the same bits for any number
    of threads. Where parts have come off, a slice of the range has a sum for each.
    """

    def __init__(self, assembly: AssembledBodies, after: wp.array, before: wp.array) -> None:
        device = assembly.device
        self.sums = wp.zeros(assembly.body_room * int(SLICES), dtype=wp.vec4d, device=device)
        self._dofs = len(assembly.dofs.x) if device.is_cuda else 0
        self._slices = (len(assembly.dof_base) - 1) * int(SLICES)
        columns = [assembly.dofs.body, assembly.dofs.mass, after, before, self.sums]
        if device.is_cuda:
            self._sums = PreparedLaunch(_add_at_once, columns, device)
        else:
            self._sums = PreparedLaunch(_add_slices, [assembly.whole, *columns], device, grain=1024)

    def __call__(self) -> None:
        if self._dofs:
            self.sums.zero_()
            self._sums(self._dofs)
        else:
            self._sums(self._slices)


class ContactIslands:
    """The islands of one step; `label` is the first body of the island of each body."""

    def __init__(self, assembly: AssembledBodies) -> None:
        device, bodies = assembly.device, assembly.body_room
        self.device, self._bodies = device, bodies
        anchored = np.ones(bodies, np.int32)  # what is not there does not move
        anchored[: len(assembly.current)] = [body.fixed.any() for body in assembly.current]
        self.anchored = wp.array(
            anchored, dtype=wp.int32, device=device
        )  #: 1 for bodies with fixed vertices, or pulled
        self._singletons = wp.array(np.arange(bodies, dtype=np.int32), dtype=wp.int32, device=device)
        self.label = wp.clone(self._singletons)
        self._flatten = PreparedLaunch(_flatten, [self.label], device, serial=True)

    def clear(self) -> None:
        """Every body is an island of its own."""
        wp.copy(self.label, self._singletons)

    def compress(self) -> None:
        """Call each body by the first of its island, after some were joined (`union`)."""
        if self._bodies > 1:
            self._flatten(self._bodies)


class MeanMoves:
    """Writes the mean move by mass of the island of each body [m]; zero where a dof of the island is held."""

    def __init__(self, islands: ContactIslands, moves: MassMoves, mean: wp.array) -> None:
        device, bodies = islands.device, len(islands.label)
        self._bodies = bodies
        self._total = wp.zeros(bodies, dtype=wp.vec4d, device=device)
        self._island_anchored = wp.zeros(bodies, dtype=wp.int32, device=device)
        sums = [moves.sums, islands.label, islands.anchored, self._total, self._island_anchored]
        self._add = PreparedLaunch(_add_bodies, sums, device, serial=True)
        self._mean = PreparedLaunch(
            _mean_moves, [islands.label, self._total, self._island_anchored, mean], device, serial=True
        )

    def __call__(self) -> None:
        self._total.zero_()
        self._island_anchored.zero_()
        self._add(self._bodies)
        self._mean(self._bodies)


@wp.func
def root(label: wp.array[int], body: int) -> int:
    here = body
    while label[here] != here:
        here = label[here]
    return here


@wp.func
def union(label: wp.array[int], a: int, b: int):
    """Put two bodies into one island; many threads may do so at once (on CPU one)."""
    one = root(label, a)
    other = root(label, b)
    while one != other:
        low = wp.min(one, other)
        high = wp.max(one, other)
        if wp.atomic_cas(label, high, high, low) == high:
            other = one
        else:
            one = root(label, low)
            other = root(label, high)


@wp.kernel
def _flatten(first: int, label: wp.array[int]):
    b = first + wp.tid()
    label[b] = root(label, b)


@wp.func
def slice_of(k: int, whole: WholeBodies):
    """The dofs, from … to below, of a slice of a range; slices of all ranges are numbered through."""
    own = k / SLICES
    end = whole.base[own + 1]
    part = (end - whole.base[own] + SLICES - 1) / SLICES
    begin = whole.base[own] + (k % SLICES) * part
    return begin, wp.min(begin + part, end)


@wp.kernel
def _add_slices(
    first: int,
    whole: WholeBodies,
    body: wp.array[int],
    mass: wp.array[wp.float64],
    after: wp.array[wp.vec3d],
    before: wp.array[wp.vec3d],
    sums: wp.array[wp.vec4d],
):
    k = first + wp.tid()
    begin, end = slice_of(k, whole)
    if whole.following[k / SLICES] < 0:
        total = wp.vec4d()
        for i in range(begin, end):
            m = mass[i]
            d = m * (after[i] - before[i])
            total += wp.vec4d(d[0], d[1], d[2], m)
        sums[k] = total
        return
    b = k / SLICES
    while b >= 0:
        sums[b * SLICES + k % SLICES] = wp.vec4d()
        b = whole.following[b]
    for i in range(begin, end):
        m = mass[i]
        d = m * (after[i] - before[i])
        own = body[i] * SLICES + k % SLICES
        sums[own] = sums[own] + wp.vec4d(d[0], d[1], d[2], m)


@wp.kernel
def _add_at_once(
    first: int,
    body: wp.array[int],
    mass: wp.array[wp.float64],
    after: wp.array[wp.vec3d],
    before: wp.array[wp.vec3d],
    sums: wp.array[wp.vec4d],
):
    i = first + wp.tid()
    m = mass[i]
    d = m * (after[i] - before[i])
    wp.atomic_add(sums, body[i] * SLICES + i % SLICES, wp.vec4d(d[0], d[1], d[2], m))


@wp.kernel
def _add_bodies(
    first: int,
    sums: wp.array[wp.vec4d],
    label: wp.array[int],
    anchored: wp.array[int],
    total: wp.array[wp.vec4d],
    island_anchored: wp.array[int],
):
    """The sums of each island, at its first body (one thread on CPU)."""
    b = first + wp.tid()
    mine = wp.vec4d()
    for k in range(b * SLICES, (b + 1) * SLICES):
        mine += sums[k]
    wp.atomic_add(total, label[b], mine)
    if anchored[b] == 1:
        wp.atomic_max(island_anchored, label[b], 1)


@wp.kernel
def _mean_moves(
    first: int,
    label: wp.array[int],
    total: wp.array[wp.vec4d],
    island_anchored: wp.array[int],
    mean: wp.array[wp.vec3d],
):
    b = first + wp.tid()
    whole = total[label[b]]
    mean[b] = wp.vec3d()
    if island_anchored[label[b]] == 0 and whole[3] > wp.float64(0.0):
        mean[b] = wp.vec3d(whole[0], whole[1], whole[2]) / whole[3]
