"""The walk of a step: who meets whom on the way, certified for every pair of bodies.

Question: can all bodies go their motions without coming nearer to each other than they must stay?
Method:   pairs whose boxes over the step are apart cannot meet. Of the others, those that move less than what is left
          of their gap, but for what both go, cannot either; all that remain are asked about in one batch of first
          contacts.
          Who goes as when it was last asked about, and hit nothing, is not asked about again.
Sound:    the separation asked for is what the world keeps, and beyond it 0.4 of the pair's own clearance (nine tenths
          of a small one), or of the security distance where that is less; nine tenths where a larger separation is
          asked for, which bodies are to keep: with one fixed value, bodies that were
          stopped within it would be stuck; with halves of any clearance, stops would take all of it. Poses are rounded
          by much less than that. Pairs that are nearer than what rounding lets decide may be told to meet at once,
          never too late.
Known as: continuous collision detection with a motion bound; conservative advancement.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.dynamics.contact.pairs import BodyPairs, PairFilter
from tangere.dynamics.contact.passing import TOLERANCE, TOLERANCE_PART, kept_of_clearance
from tangere.dynamics.contact.rows import Distances
from tangere.dynamics.solver import vec6d
from tangere.dynamics.state import BodyConstants, RigidState, angular_of, linear_of
from tangere.query.first_contact import PreparedFirstContact
from tangere.runtime import SOUND, PreparedLaunch, offsets

wp.set_module_options(SOUND)

#: Least tolerance, in sizes of a pair, its motion included: below it rounding would hide contacts.
LEAST_TOLERANCE = wp.constant(wp.float64(2.0e-12))
#: Of the same: by how much poses and ways are rounded, at most.
ROUNDED = wp.constant(wp.float64(1.0e-14))
#: Tolerances that a gap is above what the walk keeps, at least.
ROOM_FOR_TOLERANCE = wp.constant(wp.float64(1.5))
#: Security distances by which boxes are grown; pairs that were not near at the start are at least twice as far apart.
MARGIN = 1.0


@wp.struct
class KnownGaps:
    """Pairs of bodies that were looked at where the step begins, in rising order, and the least gap of each."""

    pairs: wp.array[wp.vec2i]
    least: wp.array[wp.float64]
    count: wp.array[int]  # (1,)
    beyond: wp.float64  # what is not among them is at least so far apart [m]


class CertifiedWalk:
    """Asks about the motions of all bodies; arrays and launches are kept.

    Args:
        origin: of the meshes where the step begins.
        motion: displacement of the centre of mass and rotation vector of each body.
        part: (n,) how much of its motion each body goes.
    """

    def __init__(
        self,
        first_contact: PreparedFirstContact,
        table: BodyConstants,
        state: RigidState,
        origin: wp.array,
        motion: wp.array,
        part: wp.array,
        asleep: wp.array,
        filter: PairFilter,
        distances: Distances,
        device: wp.Device,
    ) -> None:
        count = len(motion)
        self._device, self._first_contact = device, first_contact
        self._table, self._state, self._origin = table, state, origin
        self._motion, self._part, self._distances = motion, part, distances
        reach = wp.full(count, MARGIN * distances.security + distances.kept, dtype=wp.float64, device=device)
        self._body_pairs = BodyPairs(table, state, motion, reach, asleep, filter, device)
        self.displacement = wp.zeros(count, dtype=wp.vec3d, device=device)
        self.turning = wp.zeros(count, dtype=wp.vec3d, device=device)
        self._way = wp.zeros(count, dtype=wp.float64, device=device)
        #: (n,) uint8: bodies that go another part than when they were last asked about
        self.changed = wp.full(count, 1, dtype=wp.uint8, device=device)
        self._known_motion = wp.zeros(count, dtype=vec6d, device=device)  # that was last asked about
        self._mark = PreparedLaunch(mark_changed, [motion, self._known_motion, self.changed], device, grain=1024)
        self._split = PreparedLaunch(
            split_motion, [table.radius, motion, part, self.displacement, self.turning, self._way], device, grain=1024
        )
        self._room = 0
        self._gaps: KnownGaps | None = None
        self.asked = 0  #: pairs asked about in the last walk
        self._make_room(64)

    def _make_room(self, count: int) -> None:
        device, self._room = self._device, 0  # until all is there, also where this is interrupted
        self._ask = wp.zeros(count, dtype=wp.int32, device=device)
        self._starts = wp.zeros(count + 1, dtype=wp.int32, device=device)
        self._separation = wp.zeros(count, dtype=wp.float64, device=device)
        self._tolerance = wp.zeros(count, dtype=wp.float64, device=device)
        self.pairs = wp.zeros(count, dtype=wp.vec2i, device=device)  #: those asked about
        self._asked_separation = wp.zeros(count, dtype=wp.float64, device=device)
        self._asked_tolerance = wp.zeros(count, dtype=wp.float64, device=device)
        self._prepare()
        self._room = count

    def set_gaps(self, gaps: KnownGaps) -> None:
        """Where the gaps at the start of a step stand; the arrays stay until this is called again."""
        self._gaps = gaps
        self._prepare()

    def _prepare(self) -> None:
        if self._gaps is None:
            return
        device, listed = self._device, self._body_pairs.pairs
        self._listed = None
        self._choose = PreparedLaunch(
            choose_asked,
            [
                listed,
                self._gaps,
                self._state.position,
                self._table.radius,
                self._way,
                self.displacement,
                self.turning,
                self.changed,
                self._distances,
                self._ask,
                self._separation,
                self._tolerance,
            ],
            device,
            grain=1024,
        )
        self._scan = PreparedLaunch(scan_first, [self._ask, self._starts], device, serial=True)
        self._fill = PreparedLaunch(
            fill_asked,
            [
                listed,
                self._ask,
                self._starts,
                self._separation,
                self._tolerance,
                self.pairs,
                self._asked_separation,
                self._asked_tolerance,
            ],
            device,
            grain=1024,
        )
        self._listed = listed

    def begin(self, struck: np.ndarray | None = None) -> Any:
        """Ask about all pairs whose boxes overlap, along the whole motions; None where nobody can be hit.

        Args:
            struck: of the bodies those that the last answer said to be hit, where there was one about the same step:
                only they and those that go otherwise now are asked about. None means all are.
        """
        self._body_pairs.find()
        if struck is None:
            self.changed.fill_(1)
        else:
            chosen = np.zeros(len(self._motion), np.uint8)
            chosen[struck] = 1
            self.changed.assign(chosen)
        self._mark(len(self._motion))
        return self.ask()

    def ask(self) -> Any:
        """Ask about the pairs of bodies that changed, along the parts of their motions."""
        bodies, count = len(self._motion), self._body_pairs.count
        self._split(bodies)
        self.asked = 0
        if count == 0:
            return None
        if count > self._room:
            self._make_room(2 * count)
        elif self._listed is not self._body_pairs.pairs:
            self._prepare()
        self._choose(count)
        self.asked = self._compact(count)
        if self.asked == 0:
            return None
        return self._first_contact.ask(
            self.pairs[: self.asked],
            (self._state.rotation, self._origin),
            self.displacement,
            self.turning,
            pivot=self._table.centre,
            separation=self._asked_separation[: self.asked],
            tolerance=self._asked_tolerance[: self.asked],
            start="trusted",
        )

    def _compact(self, count: int) -> int:
        if self._device.is_cpu:
            self._scan.launch(1, 0, count)
            asked = int(self._starts.numpy()[count])
        else:
            starts, asked = offsets(self._ask[:count])
            wp.copy(self._starts, starts, count=count)
        if asked:
            self._fill(count)
        return asked


def hits_of(times: np.ndarray) -> np.ndarray:
    """Which of the pairs asked about meet."""
    return np.flatnonzero(times <= 1.0).astype(np.int32)


@wp.kernel
def split_motion(
    first: int,
    radius: wp.array[wp.float64],
    motion: wp.array[vec6d],
    part: wp.array[wp.float64],
    displacement: wp.array[wp.vec3d],
    turning: wp.array[wp.vec3d],
    way: wp.array[wp.float64],
):
    """The part of each motion that is gone, and how far no point of the body goes beyond."""
    i = first + wp.tid()
    drift = part[i] * linear_of(motion[i])
    angle = part[i] * angular_of(motion[i])
    displacement[i] = drift
    turning[i] = angle
    way[i] = wp.length(drift) + wp.length(angle) * radius[i]


@wp.kernel
def mark_changed(first: int, motion: wp.array[vec6d], known: wp.array[vec6d], changed: wp.array[wp.uint8]):
    """Who goes otherwise than it was known; now it is known."""
    i = first + wp.tid()
    for k in range(6):
        if motion[i][k] != known[i][k]:
            changed[i] = wp.uint8(1)
    known[i] = motion[i]


@wp.func
def known_gap(gaps: KnownGaps, pair: wp.vec2i) -> wp.float64:
    """A lower bound of the distance of two bodies where the step begins."""
    low = int(0)
    high = int(gaps.count[0])
    while low < high:
        mid = (low + high) / 2
        other = gaps.pairs[mid]
        if other[0] < pair[0] or (other[0] == pair[0] and other[1] < pair[1]):
            low = mid + 1
        else:
            high = mid
    if low < gaps.count[0]:
        if gaps.pairs[low][0] == pair[0] and gaps.pairs[low][1] == pair[1]:
            return gaps.least[low]
    return gaps.beyond


@wp.kernel
def choose_asked(
    first: int,
    pairs: wp.array[wp.vec2i],
    gaps: KnownGaps,
    position: wp.array[wp.vec3d],
    radius: wp.array[wp.float64],
    way: wp.array[wp.float64],
    displacement: wp.array[wp.vec3d],
    turning: wp.array[wp.vec3d],
    changed: wp.array[wp.uint8],
    distances: Distances,
    ask: wp.array[int],
    separation: wp.array[wp.float64],
    tolerance: wp.array[wp.float64],
):
    k = first + wp.tid()
    a = pairs[k][0]
    b = pairs[k][1]
    ask[k] = 0
    if changed[a] == wp.uint8(0) and changed[b] == wp.uint8(0):
        return
    gap = known_gap(gaps, pairs[k])
    clear = gap - distances.kept
    above = kept_of_clearance(clear, distances.security, distances.held)
    kept = distances.kept + above
    allowed = wp.min(TOLERANCE * distances.security, TOLERANCE_PART * (clear - above))
    if clear <= wp.float64(0.0):
        kept = kept_of_clearance(gap, distances.security, distances.held)
        allowed = TOLERANCE_PART * (gap - kept)
    if way[a] + way[b] == wp.float64(0.0):
        return
    size = wp.length(position[a] - position[b]) + radius[a] + radius[b] + way[a] + way[b]
    size += wp.length(position[a]) + wp.length(position[b])  # far from the origin everything is rounded more
    # what both go does not bring them nearer to each other
    turns = wp.length(turning[a]) * radius[a] + wp.length(turning[b]) * radius[b]
    nearer = wp.min(wp.length(displacement[a] - displacement[b]) + turns, way[a] + way[b])
    # distances and ways are rounded: what is left must be larger by more than that
    left = gap - kept
    if nearer < left - wp.float64(1.0e-9) * gap - ROUNDED * size:
        return
    ask[k] = 1
    allowed = wp.max(allowed, LEAST_TOLERANCE * size)
    room = gap - ROOM_FOR_TOLERANCE * allowed
    if room > wp.float64(0.0):  # or bodies that are nearly as near as rounding lets decide could not part
        kept = wp.min(kept, room)
    separation[k] = kept
    tolerance[k] = allowed


@wp.kernel
def fill_asked(
    first: int,
    pairs: wp.array[wp.vec2i],
    ask: wp.array[int],
    starts: wp.array[int],
    separation: wp.array[wp.float64],
    tolerance: wp.array[wp.float64],
    asked: wp.array[wp.vec2i],
    asked_separation: wp.array[wp.float64],
    asked_tolerance: wp.array[wp.float64],
):
    k = first + wp.tid()
    if ask[k] == 1:
        slot = starts[k]
        asked[slot] = pairs[k]
        asked_separation[slot] = separation[k]
        asked_tolerance[slot] = tolerance[k]


@wp.kernel
def scan_first(first: int, count: int, counts: wp.array[int], starts: wp.array[int]):
    """Where each of the first `count` shares begins; the total behind the last."""
    total = int(0)
    for i in range(count):
        starts[i] = total
        total += counts[i]
    starts[count] = total
