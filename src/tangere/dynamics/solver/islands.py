"""Islands: which bodies exchange impulses, and the rows of each island in one stretch.

Question: which bodies hang together through contacts and joints, and which rows are theirs?
Method:   union-find over bodies that can move; the larger root is hooked under the smaller one, so that an island is
          called by its first body, whoever comes first. Islands that have rows are numbered by their first body; rows
          and bodies are sorted by island, in their own order within it. On CPU one kernel does everything in order; on
          CUDA rows hook without locks and a radix sort groups them. Both give the same numbers and orders.
Sound:    bodies that cannot move do not connect (Redon 2002, chapter 5): islands can be solved independently.
Known as: contact groups (Redon 2002), simulation islands; union-find (Tarjan 1975).
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.dynamics.solver.growing_struct import GrowingStruct, address_of
from tangere.dynamics.solver.problem import ContactRowArrays, JointRowArrays, RigidBodyArrays
from tangere.runtime import SOUND, InputError, PreparedLaunch, launch, offsets, sort_pairs

wp.set_module_options(SOUND)

#: No row has a body that is not there.
NONE = 2**31 - 1
_NONE = wp.constant(NONE)


@wp.struct
class IslandArrays:
    """Rows and bodies by island: those of island k are order[first[k]] … order[first[k + 1] - 1]."""

    label: wp.array[wp.int32]  # of each body: the first body of its island
    number: wp.array[wp.int32]  # of each body: its island, -1 without rows
    contact_first: wp.array[wp.int32]
    contact_order: wp.array[wp.int32]
    joint_first: wp.array[wp.int32]
    joint_order: wp.array[wp.int32]
    body_first: wp.array[wp.int32]
    body_order: wp.array[wp.int32]
    count: wp.array[wp.int32]  # (2,): islands; the first contact (then joint) row of a body that is not there, or NONE


#: Arrays that do not belong to bodies, and what they belong to.
_COUNTS = {"contact_order": "contacts", "joint_order": "joints", "count": "numbers"}


class Islands:
    """Finds the islands of problems on one device; the arrays are used again."""

    def __init__(self, device: wp.Device) -> None:
        self.device = device
        self._growing = GrowingStruct(IslandArrays(), device, lambda name: _COUNTS.get(name, "bodies"))
        self._growing.reserve(numbers=2)
        self._key: tuple = ()
        self._serial: PreparedLaunch | None = None
        self._counts = wp.zeros(3, dtype=wp.int32, device=device)
        self._host_counts = self._counts.numpy()

    @property
    def arrays(self) -> IslandArrays:
        """Rows and bodies by island."""
        return self._growing.struct

    @property
    def version(self) -> int:
        """Another one when the arrays are."""
        return self._growing.version

    def read(self, name: str, count: int) -> np.ndarray:
        """The first elements of an array."""
        return self._growing.read(name, count)

    def largest(self, count: int) -> int:
        """The most rows of one of so many islands."""
        first = self.read("contact_first", count + 1) + self.read("joint_first", count + 1)
        return int(np.diff(first).max(initial=0))

    def reserve(self, bodies: int, contacts: int, joints: int) -> None:
        """Make room."""
        self._growing.reserve(bodies=bodies + 1, contacts=contacts, joints=joints)

    def find(
        self,
        bodies: RigidBodyArrays,
        body_count: int,
        contacts: ContactRowArrays,
        contact_count: int,
        joints: JointRowArrays,
        joint_count: int,
        key: tuple = (),
    ) -> int:
        """Fill `arrays`; the number of islands.

        Rows must name bodies that are there, or -1. `key` is another one when an array of the arguments is.
        """
        counts = (body_count, contact_count, joint_count)
        self.reserve(*counts)
        if self.device.is_cuda:
            return find_in_parallel(self.arrays, bodies, contacts, joints, counts, self.device)
        key = (*(key or map(address_of, (bodies, contacts, joints))), self.version)
        if self._serial is None or key != self._key:
            arguments = [bodies, contacts, joints, self._counts, self.arrays]
            self._serial, self._key = PreparedLaunch(_find_in_order, arguments, self.device, serial=True), key
        self._host_counts[:] = counts
        self._serial(1)
        islands, bad = self.read("count", 2)
        if bad != NONE:
            _check_bodies(int(bad), contacts, joints, counts)
        return int(islands)


def find_in_parallel(
    found: IslandArrays,
    bodies: RigidBodyArrays,
    contacts: ContactRowArrays,
    joints: JointRowArrays,
    counts: tuple[int, int, int],
    device: wp.Device,
) -> int:
    """The same for many threads at once; on CPU its kernels run on one thread, for tests."""
    body_count, contact_count, joint_count = counts

    def run(kernel: wp.Kernel, dim: int, arguments: list) -> None:
        launch(kernel, dim, arguments, device=device, threads=1)

    used = wp.zeros(max(body_count, 1), dtype=wp.int32, device=device)
    found.count.fill_(NONE)
    for a, b, count, before in (
        (contacts.body_a, contacts.body_b, contact_count, 0),
        (joints.body_a, joints.body_b, joint_count, contact_count),
    ):
        run(_find_strangers, count, [a, b, body_count, before, found.count])
    _check_bodies(int(found.count.numpy()[1]), contacts, joints, counts)
    run(_singletons, body_count, [found.label])
    for a, b, count in (
        (contacts.body_a, contacts.body_b, contact_count),
        (joints.body_a, joints.body_b, joint_count),
    ):
        run(_hook, count, [bodies, a, b, found.label])
    run(_flatten, body_count, [found.label])
    for a, b, count in (
        (contacts.body_a, contacts.body_b, contact_count),
        (joints.body_a, joints.body_b, joint_count),
    ):
        run(_mark_used, count, [bodies, a, b, found.label, used])
    starts, islands = offsets(used[:body_count]) if body_count else (used, 0)
    run(_number_bodies, body_count, [found.label, used, starts, found.number])

    def group(keys: wp.array, count: int, order: wp.array, first: wp.array) -> None:
        rows = wp.empty(max(count, 1), dtype=wp.int32, device=device)
        run(_singletons, count, [rows])
        keys, rows = sort_pairs(keys[:count], rows[:count])
        wp.copy(order, rows, count=count)
        run(_find_first, islands + 1, [keys, count, first])

    for a, b, count, order, first in (
        (contacts.body_a, contacts.body_b, contact_count, found.contact_order, found.contact_first),
        (joints.body_a, joints.body_b, joint_count, found.joint_order, found.joint_first),
    ):
        keys = wp.empty(max(count, 1), dtype=wp.int32, device=device)
        run(_row_keys, count, [bodies, a, b, found.number, islands, keys])
        group(keys, count, order, first)
    keys = wp.empty(max(body_count, 1), dtype=wp.int32, device=device)
    run(_body_keys, body_count, [found.number, islands, keys])
    group(keys, body_count, found.body_order, found.body_first)
    found.count[:1].fill_(islands)
    return islands


def _check_bodies(bad: int, contacts: ContactRowArrays, joints: JointRowArrays, counts: tuple[int, int, int]) -> None:
    if bad == NONE:
        return
    name, rows, row = ("contacts", contacts, bad) if bad < counts[1] else ("joints", joints, bad - counts[1])
    for side in ("body_a", "body_b"):
        body = int(getattr(rows, side).numpy()[row])
        if not -1 <= body < counts[0]:
            raise InputError(f"{name}.{side}[{row}] is {body}, but there are {counts[0]} bodies (-1 is the world)")


@wp.func
def is_stranger(a: int, b: int, bodies: int) -> bool:
    """Whether a row names a body that is not there."""
    return a < -1 or b < -1 or a >= bodies or b >= bodies


@wp.func
def moves(bodies: RigidBodyArrays, body: int) -> bool:
    """Whether impulses change the motion of a body."""
    if body < 0:
        return False
    i = bodies.inverse_inertia[body]
    return bodies.inverse_mass[body] + wp.trace(i) != wp.float64(0.0)


@wp.func
def root(label: wp.array[wp.int32], body: int) -> int:
    """The first body known to hang together with this one."""
    here = body
    while label[here] != here:
        here = label[here]
    return here


@wp.func
def hook(label: wp.array[wp.int32], a: int, b: int):
    """Put two bodies into one island; many threads may do so at once."""
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


@wp.func
def mover(bodies: RigidBodyArrays, a: int, b: int) -> int:
    """A body of a row that can move, -1 if neither can."""
    if moves(bodies, a):
        return a
    if moves(bodies, b):
        return b
    return -1


@wp.func
def row_island(bodies: RigidBodyArrays, number: wp.array[wp.int32], a: int, b: int) -> int:
    body = mover(bodies, a, b)
    if body < 0:
        return -1
    return number[body]


@wp.func
def hook_in_order(
    bodies: RigidBodyArrays, a: wp.array[wp.int32], b: wp.array[wp.int32], n: int, label: wp.array[wp.int32]
):
    for i in range(n):
        p = a[i]
        q = b[i]
        if p != q and moves(bodies, p) and moves(bodies, q):
            one = root(label, p)
            other = root(label, q)
            low = wp.min(one, other)
            label[wp.max(one, other)] = low
            label[p] = low  # shortens the way for the next
            label[q] = low


@wp.func
def group_in_order(
    bodies: RigidBodyArrays,
    a: wp.array[wp.int32],
    b: wp.array[wp.int32],
    n: int,
    number: wp.array[wp.int32],
    islands: int,
    first: wp.array[wp.int32],
    order: wp.array[wp.int32],
):
    """Counting sort of rows by island; rows of bodies that do not move come last."""
    for k in range(islands + 1):
        first[k] = 0
    for i in range(n):
        k = row_island(bodies, number, a[i], b[i])
        if k >= 0:
            first[k + 1] = first[k + 1] + 1
    for k in range(islands):
        first[k + 1] = first[k + 1] + first[k]
    rest = int(first[islands])
    for i in range(n):
        k = row_island(bodies, number, a[i], b[i])
        if k >= 0:
            order[first[k]] = i
            first[k] = first[k] + 1
        else:
            order[rest] = i
            rest += 1
    for j in range(islands):  # every first has become the next one's
        k = islands - j
        first[k] = first[k - 1]
    first[0] = 0


@wp.kernel
def _find_in_order(
    first: int,
    bodies: RigidBodyArrays,
    contacts: ContactRowArrays,
    joints: JointRowArrays,
    counts: wp.array[wp.int32],
    found: IslandArrays,
):
    """All of it, on one thread."""
    n = counts[0]
    bad = int(_NONE)
    for i in range(counts[2]):
        j = counts[2] - 1 - i
        if is_stranger(joints.body_a[j], joints.body_b[j], n):
            bad = counts[1] + j
    for i in range(counts[1]):
        j = counts[1] - 1 - i
        if is_stranger(contacts.body_a[j], contacts.body_b[j], n):
            bad = j
    found.count[0] = 0
    found.count[1] = bad
    if bad != _NONE:
        return
    for b in range(n):
        found.label[b] = b
        found.number[b] = -1
    hook_in_order(bodies, contacts.body_a, contacts.body_b, counts[1], found.label)
    hook_in_order(bodies, joints.body_a, joints.body_b, counts[2], found.label)
    for b in range(n):
        found.label[b] = root(found.label, b)
    for i in range(counts[1]):
        body = mover(bodies, contacts.body_a[i], contacts.body_b[i])
        if body >= 0:
            found.number[found.label[body]] = 0
    for i in range(counts[2]):
        body = mover(bodies, joints.body_a[i], joints.body_b[i])
        if body >= 0:
            found.number[found.label[body]] = 0
    islands = int(0)
    for b in range(n):
        if found.label[b] != b:
            found.number[b] = found.number[found.label[b]]  # its root comes before it
        elif found.number[b] == 0:
            found.number[b] = islands
            islands += 1
    found.count[0] = islands
    group_in_order(
        bodies,
        contacts.body_a,
        contacts.body_b,
        counts[1],
        found.number,
        islands,
        found.contact_first,
        found.contact_order,
    )
    group_in_order(
        bodies, joints.body_a, joints.body_b, counts[2], found.number, islands, found.joint_first, found.joint_order
    )
    for k in range(islands + 1):
        found.body_first[k] = 0
    for b in range(n):
        k = found.number[b]
        if k >= 0:
            found.body_first[k + 1] = found.body_first[k + 1] + 1
    for k in range(islands):
        found.body_first[k + 1] = found.body_first[k + 1] + found.body_first[k]
    rest = int(found.body_first[islands])
    for b in range(n):
        k = found.number[b]
        if k >= 0:
            found.body_order[found.body_first[k]] = b
            found.body_first[k] = found.body_first[k] + 1
        else:
            found.body_order[rest] = b
            rest += 1
    for j in range(islands):
        k = islands - j
        found.body_first[k] = found.body_first[k - 1]
    found.body_first[0] = 0


@wp.kernel
def _find_strangers(
    first: int,
    body_a: wp.array[wp.int32],
    body_b: wp.array[wp.int32],
    bodies: int,
    before: int,
    count: wp.array[wp.int32],
):
    i = first + wp.tid()
    if is_stranger(body_a[i], body_b[i], bodies):
        wp.atomic_min(count, 1, before + i)


@wp.kernel
def _singletons(first: int, label: wp.array[wp.int32]):
    i = first + wp.tid()
    label[i] = i


@wp.kernel
def _hook(
    first: int,
    bodies: RigidBodyArrays,
    body_a: wp.array[wp.int32],
    body_b: wp.array[wp.int32],
    label: wp.array[wp.int32],
):
    i = first + wp.tid()
    a = body_a[i]
    b = body_b[i]
    if a != b and moves(bodies, a) and moves(bodies, b):
        hook(label, a, b)


@wp.kernel
def _flatten(first: int, label: wp.array[wp.int32]):
    b = first + wp.tid()
    label[b] = root(label, b)


@wp.kernel
def _mark_used(
    first: int,
    bodies: RigidBodyArrays,
    body_a: wp.array[wp.int32],
    body_b: wp.array[wp.int32],
    label: wp.array[wp.int32],
    used: wp.array[wp.int32],
):
    i = first + wp.tid()
    body = mover(bodies, body_a[i], body_b[i])
    if body >= 0:
        used[label[body]] = 1


@wp.kernel
def _number_bodies(
    first: int,
    label: wp.array[wp.int32],
    used: wp.array[wp.int32],
    starts: wp.array[wp.int32],
    number: wp.array[wp.int32],
):
    b = first + wp.tid()
    number[b] = -1
    if used[label[b]] == 1:
        number[b] = starts[label[b]]


@wp.kernel
def _row_keys(
    first: int,
    bodies: RigidBodyArrays,
    body_a: wp.array[wp.int32],
    body_b: wp.array[wp.int32],
    number: wp.array[wp.int32],
    islands: int,
    keys: wp.array[wp.int32],
):
    i = first + wp.tid()
    k = row_island(bodies, number, body_a[i], body_b[i])
    if k < 0:
        k = islands
    keys[i] = k


@wp.kernel
def _body_keys(first: int, number: wp.array[wp.int32], islands: int, keys: wp.array[wp.int32]):
    b = first + wp.tid()
    k = number[b]
    if k < 0:
        k = islands
    keys[b] = k


@wp.kernel
def _find_first(first: int, keys: wp.array[wp.int32], count: int, starts: wp.array[wp.int32]):
    """Where the rows of each island begin among sorted keys."""
    k = first + wp.tid()
    low = int(0)
    high = int(count)
    while low < high:
        middle = (low + high) / 2
        if keys[middle] < k:
            low = middle + 1
        else:
            high = middle
    starts[k] = low
