"""Which bodies may meet in a step: pairs of swept boxes, as kernels over arrays that stay.

Question: all pairs of bodies that may come nearer to each other than a reach, of which at least one moves.
Method:   a body's box over the step encloses its boxes at both ends, grown by the sag of the arc between them and by
          its reach; each body looks at all that follow it in its world. Two launches: count, then fill.
Sound:    points of a body that turns by less than half a turn stay within radius (1 - cos(angle / 2)) of the straight
          way between their ends; beyond, within the diameter.
Known as: broad phase by brute force on swept boxes; for thousands of bodies in one world `box_pairs` of the room
          `broad_phase` (sweep and prune) takes its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from tangere.dynamics.body import Body
from tangere.dynamics.rotations import turn
from tangere.dynamics.state import BodyConstants, RigidState, angular_of, linear_of, vec6d
from tangere.runtime import SOUND, PreparedLaunch, offsets

wp.set_module_options(SOUND)

#: Pairs there is room for at first.
ROOM = 64


@wp.struct
class PairFilter:
    """Which pairs are not compared."""

    last: wp.array[int]  # (n,) one behind the last body of the same world
    group: wp.array[int]  # (n,) bodies of one group are not compared; -1 is no group, -2 is compared with nobody
    first: wp.array[int]  # (n + 1,) where the ignored partners of each body begin
    ignored: wp.array[int]  # partners with larger numbers
    curved: wp.array[int]  # (n,) 1 for a body that no triangles are
    wanted: int  # 1 for pairs of which one is such a body, 0 for all others


class BodyPairs:
    """Pairs (i, j), i < j, in rising order, of bodies whose boxes over a step overlap.

    Args:
        motion: how each body goes in the step, displacement and rotation vector.
        reach: how much each box is grown [m].
    """

    def __init__(
        self,
        table: BodyConstants,
        state: RigidState,
        motion: wp.array,
        reach: wp.array,
        asleep: wp.array,
        filter: PairFilter,
        device: wp.Device,
    ) -> None:
        count = self._bodies = len(motion)
        self._device = device
        self._lower = wp.zeros(count, dtype=wp.vec3d, device=device)
        self._upper = wp.zeros(count, dtype=wp.vec3d, device=device)
        self._counts = wp.zeros(count, dtype=wp.int32, device=device)
        self._starts = wp.zeros(count + 1, dtype=wp.int32, device=device)
        self._boxes = PreparedLaunch(
            swept_boxes, [table, state, motion, reach, self._lower, self._upper], device, grain=1024
        )
        self._about = [table.held, asleep, filter, self._lower, self._upper]
        self._count = PreparedLaunch(count_pairs, [*self._about, self._counts], device, grain=64)
        self._scan = PreparedLaunch(scan_serially, [self._counts, self._starts], device, serial=True)
        self._total = self._starts.numpy() if device.is_cpu else None
        self.pairs: wp.array = wp.zeros(0, dtype=wp.vec2i, device=device)  #: with room for more than there are
        self.count = 0  #: of pairs
        self._prepare_fill(ROOM)

    def _prepare_fill(self, room: int) -> None:
        pairs = wp.zeros(room, dtype=wp.vec2i, device=self._device)
        self._fill = PreparedLaunch(fill_pairs, [*self._about, self._starts, pairs], self._device, grain=64)
        self.pairs = pairs  # last: there is a launch that knows its room, also where this is interrupted

    def find(self) -> int:
        """List the pairs of the motion as it is now; how many there are."""
        bodies = self._bodies
        self._boxes(bodies)
        self._count(bodies)
        if self._total is not None:
            self._scan.launch(1, 0)
            self.count = int(self._total[bodies])
        else:
            starts, self.count = offsets(self._counts)
            wp.copy(self._starts, starts, count=bodies)
        if self.count > len(self.pairs):
            self._prepare_fill(2 * self.count)
        if self.count:
            self._fill(bodies)
        return self.count


def pair_filters(
    bodies: Sequence[Body], worlds: np.ndarray, ignored: np.ndarray, device: wp.Device
) -> tuple[PairFilter, PairFilter]:
    """Which of n bodies are compared: pairs of which both are triangles, and those with a curved body.

    Args:
        worlds: (n,) the world of each body, rising.
        ignored: (k, 2) pairs.
    """
    numbers = {group: number for number, group in enumerate(dict.fromkeys(body.group for body in bodies))}
    groups = np.array([_group(body, numbers) for body in bodies])
    curved = np.array([body.is_curved for body in bodies])
    count = len(worlds)
    pairs = np.unique(np.sort(np.asarray(ignored, np.int64).reshape(-1, 2), axis=1), axis=0)
    both: list[Any] = [PairFilter(), PairFilter()]
    made = both[0]
    made.last = wp.array(np.searchsorted(worlds, worlds, side="right").astype(np.int32), dtype=wp.int32, device=device)
    made.group = wp.array(groups.astype(np.int32), dtype=wp.int32, device=device)
    first = np.searchsorted(pairs[:, 0], np.arange(count + 1)).astype(np.int32)
    made.first = wp.array(first, dtype=wp.int32, device=device)
    partners = pairs[:, 1] if len(pairs) else np.array([-1])
    made.ignored = wp.array(partners.astype(np.int32), dtype=wp.int32, device=device)
    made.curved = wp.array(curved.astype(np.int32), dtype=wp.int32, device=device)
    made.wanted, both[1].wanted = 0, 1
    for name in ("last", "group", "first", "ignored", "curved"):
        setattr(both[1], name, getattr(made, name))
    return both[0], both[1]


def _group(body: Body, numbers: dict[int | None, int]) -> int:
    """By which pairs are left out, numbered from 0; ground is compared otherwise."""
    if body.ground is not None:
        return -2
    return -1 if body.group is None else numbers[body.group]


@wp.func
def posed_box(rotation: wp.mat33d, middle: wp.vec3d, half: wp.vec3d) -> wp.vec3d:
    """Half the size, along the world's axes, of a box that is turned."""
    size = wp.vec3d()
    for k in range(3):
        size[k] = wp.abs(rotation[k, 0]) * half[0] + wp.abs(rotation[k, 1]) * half[1] + wp.abs(rotation[k, 2]) * half[2]
    return size


@wp.func
def sag(angle: wp.float64, radius: wp.float64) -> wp.float64:
    """How far a point that turns by an angle strays from the straight way between its ends, at most."""
    if angle < wp.float64(3.14):
        half = wp.sin(wp.float64(0.25) * angle)
        return radius * wp.float64(2.0) * half * half
    return wp.float64(2.0) * radius


@wp.kernel
def swept_boxes(
    first: int,
    table: BodyConstants,
    state: RigidState,
    motion: wp.array[vec6d],
    reach: wp.array[wp.float64],
    lower: wp.array[wp.vec3d],
    upper: wp.array[wp.vec3d],
):
    i = first + wp.tid()
    rotation = state.rotation[i]
    position = state.position[i]
    middle = wp.float64(0.5) * (table.lower[i] + table.upper[i])
    half = wp.float64(0.5) * (table.upper[i] - table.lower[i])
    centre = position + rotation * middle
    size = posed_box(rotation, middle, half)
    low = centre - size
    high = centre + size
    drift = linear_of(motion[i])
    angle = angular_of(motion[i])
    ended = turn(angle) * rotation
    centre = position + drift + ended * middle
    size = posed_box(ended, middle, half)
    # positions are rounded: a little more than the reach
    grown = reach[i] + sag(wp.length(angle), table.radius[i])
    grown += wp.float64(1.0e-14) * (wp.length(position) + wp.length(drift) + table.radius[i])
    out = wp.vec3d(grown, grown, grown)
    lower[i] = wp.min(low, centre - size) - out
    upper[i] = wp.max(high, centre + size) + out


@wp.func
def compared(
    i: int,
    j: int,
    held: wp.array[int],
    asleep: wp.array[wp.uint8],
    filter: PairFilter,
    lower: wp.array[wp.vec3d],
    upper: wp.array[wp.vec3d],
) -> bool:
    """Whether boxes i and j overlap, and are to be compared."""
    for k in range(3):
        if lower[i][k] > upper[j][k] or lower[j][k] > upper[i][k]:
            return False
    still_i = held[i] == 63 or asleep[i] != wp.uint8(0)
    still_j = held[j] == 63 or asleep[j] != wp.uint8(0)
    if still_i and still_j:
        return False
    if wp.max(filter.curved[i], filter.curved[j]) != filter.wanted:
        return False
    if filter.group[i] >= 0 and filter.group[i] == filter.group[j]:
        return False
    if filter.group[i] == -2 or filter.group[j] == -2:
        return False
    ignored = bool(False)
    for k in range(filter.first[i], filter.first[i + 1]):
        ignored = ignored or filter.ignored[k] == j
    return not ignored


@wp.kernel
def count_pairs(
    first: int,
    held: wp.array[int],
    asleep: wp.array[wp.uint8],
    filter: PairFilter,
    lower: wp.array[wp.vec3d],
    upper: wp.array[wp.vec3d],
    counts: wp.array[int],
):
    i = first + wp.tid()
    found = int(0)
    for j in range(i + 1, filter.last[i]):
        if compared(i, j, held, asleep, filter, lower, upper):
            found += 1
    counts[i] = found


@wp.kernel
def fill_pairs(
    first: int,
    held: wp.array[int],
    asleep: wp.array[wp.uint8],
    filter: PairFilter,
    lower: wp.array[wp.vec3d],
    upper: wp.array[wp.vec3d],
    starts: wp.array[int],
    pairs: wp.array[wp.vec2i],
):
    i = first + wp.tid()
    slot = int(starts[i])
    for j in range(i + 1, filter.last[i]):
        if compared(i, j, held, asleep, filter, lower, upper):
            pairs[slot] = wp.vec2i(i, j)
            slot += 1


@wp.kernel
def scan_serially(first: int, counts: wp.array[int], starts: wp.array[int]):
    """Where each share begins; the total behind the last. One index: on CPU that is the fastest for few."""
    total = int(0)
    for i in range(counts.shape[0]):
        starts[i] = total
        total += counts[i]
    starts[counts.shape[0]] = total
