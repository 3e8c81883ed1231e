"""Few contacts out of many for each pair of bodies: those that say most about how the pair may move.

Question: which rows suffice to hold two bodies apart?
Method:   a contact is a row (n, arm x n / size) of six numbers: what it says about the motion of a body of that size.
          The nearest contact of a pair is taken, then always the one whose row is farthest from all that are taken,
          until so many are taken or the rest is nearly the same (squared distance below `SAME`). Ties go to the first.
          Arms are counted from the nearest contact, so the choice does not hang on where the world's origin is.
Known as: farthest point sampling (Gonzalez 1985), manifold reduction.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.query.contacts.record import Contacts
from tangere.query.proximity.posed.details import PosedColumns
from tangere.query.proximity.posed.result import PosedContacts
from tangere.runtime import (
    SOUND,
    Arrays,
    InputError,
    NonCopyable,
    PreparedLaunch,
    launch,
    offsets,
    prepare_phases,
    to_numpy,
    whole,
)

wp.set_module_options(SOUND)

#: Rows nearer than this (squared) say the same.
SAME = wp.constant(wp.float64(1.0e-4))
_FAR = wp.constant(wp.float64(1.0e30))


class ReducedContacts(NonCopyable, instead="take its contacts, which are in main memory"):
    """Which contacts of an answer were chosen, in its order; of pair i rows[first[i]] … rows[first[i + 1] - 1].

    The arrays on the device are kept with the answer and used again by its next reduction.
    """

    def __init__(self, found: PosedContacts, rows: wp.array, first: wp.array, count: int) -> None:
        self.found = found
        self.rows = rows  #: (count,) int32 on the device: numbers of contacts; the array may be longer
        self.first = first  #: (n + 1,) int32 on the device; the array may be longer
        self.count = count

    def __len__(self) -> int:
        return self.count

    @property
    def contacts(self) -> Contacts:
        """The contacts chosen, in main memory."""
        return self.found.contacts[self.rows.numpy()[: self.count]]


def reduce(found: PosedContacts, size: Arrays, most: int = 12) -> ReducedContacts:
    """At most so many contacts of each pair.

    Args:
        size: of the bodies of a pair, one for all or (n,): a turn by 1 moves a body as far as a step of this [m].
        most: contacts of a pair to take at most.
    """
    sizes, count = to_numpy(size, "size"), found.pair_count
    if sizes.shape not in ((), (count,)):
        raise InputError(f"size must be one number or have shape ({count},), not {sizes.shape}")
    if not (np.min(sizes, initial=1.0) > 0.0 and np.max(sizes, initial=1.0) < np.inf):
        raise InputError("size must be positive and finite")
    reduction = found.kept(PreparedReduction)
    chosen = reduction.run(sizes, whole(most, "most", 1), count, found.count)
    return ReducedContacts(found, reduction.rows, reduction.first, chosen)


class PreparedReduction:
    """The arrays and launches of reductions over one workspace."""

    def __init__(self, workspace: Any) -> None:
        device, room, places = workspace.device, workspace.room, len(workspace.columns.key)
        self._device = device
        self._columns, self._starts = workspace.columns, workspace.first
        self._size = wp.zeros(room, dtype=wp.float64, device=device)
        self._host_size = self._size.numpy()
        self._most = wp.zeros(1, dtype=wp.int32, device=device)
        self._host_most = self._most.numpy()
        self._kept = wp.zeros(places, dtype=wp.int32, device=device)
        self._far = wp.zeros(places, dtype=wp.float64, device=device)
        self._amount = wp.zeros(room, dtype=wp.int32, device=device)
        self._told = wp.zeros(2, dtype=wp.int64, device=device)  # how many pairs, how many are chosen
        self._host_told = self._told.numpy()
        self.rows = wp.zeros(places, dtype=wp.int32, device=device)
        self.first = wp.zeros(room + 1, dtype=wp.int32, device=device)
        self._choose = [self._columns, self._starts, self._size, self._most, self._far, self._kept, self._amount]
        self._place = [self._starts, self._kept, self.first, self.rows]
        if device.is_cpu:
            pairs = self._told[:1]
            phases = [
                PreparedLaunch(choose_contacts, self._choose, device, dim=pairs, grain=256),
                PreparedLaunch(_scan, [self._amount, self.first, self._told], device, dim=1),
                PreparedLaunch(place_rows, self._place, device, dim=pairs, grain=4096),
            ]
            self._program = prepare_phases([[phase] for phase in phases], workspace.threads)

    def run(self, sizes: np.ndarray, most: int, pairs: int, contacts: int) -> int:
        """Choose; how many are chosen in all."""
        self._host_size[:pairs] = sizes
        self._host_most[0] = most
        if self._device.is_cpu:
            self._host_told[0] = pairs
            self._program.run()
            return int(self._host_told[1])
        if pairs == 0 or contacts == 0:
            self.first.zero_()
            return 0
        wp.copy(self._size, wp.array(self._host_size, dtype=wp.float64, device="cpu"))
        self._most.fill_(most)
        launch(choose_contacts, pairs, self._choose, device=self._device)
        starts, chosen = offsets(self._amount[:pairs])
        wp.copy(self.first, starts, count=pairs)
        self.first[pairs : pairs + 1].fill_(chosen)
        launch(place_rows, pairs, self._place, device=self._device)
        return chosen


@wp.func
def turning(columns: PosedColumns, k: int, centre: wp.vec3d, size: wp.float64) -> wp.vec3d:
    """What a contact says about turns: arm x n / size."""
    return wp.cross(columns.point_a[k] - centre, columns.normal[k]) / size


@wp.kernel
def choose_contacts(
    first: int,
    columns: PosedColumns,
    starts: wp.array[wp.int32],
    size: wp.array[wp.float64],
    most: wp.array[wp.int32],
    far: wp.array[wp.float64],
    kept: wp.array[wp.int32],
    amount: wp.array[wp.int32],
):
    """Mark the contacts of each pair that are taken; `far` is how far each is from those so far."""
    pair = first + wp.tid()
    begin = starts[pair]
    end = starts[pair + 1]
    chosen = int(-1)
    for k in range(begin, end):
        far[k] = _FAR
        kept[k] = 0
        if chosen < 0 or columns.gap[k] < columns.gap[wp.max(chosen, 0)]:
            chosen = k
    taken = int(0)
    centre = wp.vec3d()
    if chosen >= 0:
        centre = columns.point_a[chosen]
    while chosen >= 0 and taken < most[0]:
        kept[chosen] = 1
        taken += 1
        n = columns.normal[chosen]
        turn = turning(columns, chosen, centre, size[pair])
        chosen = int(-1)
        farthest = wp.float64(SAME)
        for k in range(begin, end):
            along = columns.normal[k] - n
            around = turning(columns, k, centre, size[pair]) - turn
            far[k] = wp.min(far[k], wp.dot(along, along) + wp.dot(around, around))
            if far[k] > farthest:
                farthest = far[k]
                chosen = k
    amount[pair] = taken


@wp.kernel
def _scan(first: int, amount: wp.array[wp.int32], starts: wp.array[wp.int32], told: wp.array[wp.int64]):
    """Where the chosen ones of each pair begin, by one thread."""
    total = int(0)
    pairs = int(told[0])
    for pair in range(pairs):
        starts[pair] = total
        total += amount[pair]
    starts[pairs] = total
    told[1] = wp.int64(total)


@wp.kernel
def place_rows(
    first: int,
    starts: wp.array[wp.int32],
    kept: wp.array[wp.int32],
    places: wp.array[wp.int32],
    rows: wp.array[wp.int32],
):
    """The numbers of the chosen contacts of each pair, in order."""
    pair = first + wp.tid()
    place = int(places[pair])
    for k in range(starts[pair], starts[pair + 1]):
        if kept[k] == 1:
            rows[place] = k
            place += 1
