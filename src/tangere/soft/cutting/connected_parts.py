"""Which parts does a body fall into? Floods from the facets that were opened, in slices of a budget.

Question: do the simplices on both sides of the facets opened last still hang together, and if not, what is on its own?
Method:   a flood starts at every simplex at an opened facet; the smallest goes on by one layer of neighbours; floods
          that meet become one. One that has nowhere to go while others live is a part of its own. As long as nothing
          parts, floods meet after some dozen simplices. A slice ends after so many simplices; the next goes on from
          there, unless the blade has changed something in between: then floods start anew, from all facets opened
          since.
Sound:    floods cover only what is joined by facets, so parts are exactly the connected components.
Known as: bidirectional search; union-find (Tarjan 1975).
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.runtime import SOUND, PreparedLaunch
from tangere.soft.cutting.complex_arrays import ComplexArrays
from tangere.soft.cutting.simplicial_complex import ComplexChange, SimplicialComplex

wp.set_module_options(SOUND | {"max_unroll": 1})

#: Simplices of a slice: about a millisecond.
BUDGET = 20_000

#: Places in `numbers`.
EPOCH = wp.constant(0)
LIVING = wp.constant(1)
PARTS = wp.constant(2)
PARTED = wp.constant(3)
UNFINISHED = wp.constant(4)
NUMBERS = 5


@wp.struct
class FloodArrays:
    """Floods as linked lists of simplices: all of each, and those it goes on from."""

    group: wp.array[int]  #: (n,) the flood that has reached a simplex
    epoch: wp.array[int]  #: (n,) when
    next_member: wp.array[int]  #: (n,)
    next_waiting: wp.array[int]  #: (n,)
    root: wp.array[int]  #: (g,) the flood that one has become a part of
    size: wp.array[int]  #: (g,)
    members: wp.array[wp.vec2i]  #: (g,) first and last
    waiting: wp.array[wp.vec2i]  #: (g,) first and last; -1 for none
    alive: wp.array[int]  #: (g,) 1 for floods that go on
    living: wp.array[int]  #: those, and some that do not any more
    seeds: wp.array[int]  #: simplices at opened facets
    parted: wp.array[wp.vec3i]  #: parts that came to be in this slice: number, whose part it was, one of its simplices
    numbers: wp.array[int]


class ConnectedParts:
    """The parts of a `SimplicialComplex`; `arrays.part` has the number of each simplex, all 0 at first."""

    def __init__(self, body: SimplicialComplex) -> None:
        self._body, self._device = body, wp.get_device("cpu")
        self._seeds = np.zeros(0, np.int32)
        self._dirty = False
        self.parts = 1  #: so far
        self._lay_out()

    def note(self, change: ComplexChange) -> None:
        """The blade has gone on."""
        if change:
            if len(change.opened):
                self._seeds = np.concatenate([self._seeds, change.opened.ravel() >> 2])
            self._dirty = len(self._seeds) > 0

    def advance(self, budget: int = BUDGET) -> np.ndarray:
        """One slice: (k, 2) parts that were found, and the parts that they were in before."""
        if not self._dirty:
            if not self._numbers[UNFINISHED]:
                return np.zeros((0, 2), np.int32)
            begin = 0
        else:
            if self._body.arrays is not self._known or len(self._seeds) > len(self._arrays.seeds):
                self._lay_out()
            self._given_seeds[: len(self._seeds)] = self._seeds
            begin = len(self._seeds)
            self._dirty = False
        self._given_limits[:] = begin, budget
        self._run.run()
        if not self._numbers[UNFINISHED]:
            self._seeds = np.zeros(0, np.int32)
        self.parts = int(self._numbers[PARTS])
        return self._parted[: self._numbers[PARTED], :2].copy()

    def state(self) -> tuple[np.ndarray, int]:
        """All that later slices depend on, to go back to (`restore`); floods under way begin anew then."""
        return self._seeds, self.parts

    def restore(self, state: tuple[np.ndarray, int]) -> None:
        """As it was; the body is restored by itself."""
        self._seeds, self.parts = state
        self._dirty = len(self._seeds) > 0
        self._numbers[[PARTS, UNFINISHED]] = self.parts, 0

    @property
    def finished(self) -> bool:
        """Whether all that was opened is accounted for."""
        return not self._dirty and not self._numbers[UNFINISHED]

    def _lay_out(self) -> None:
        simplices, seeds = self._body.arrays.simplex_room, max(1024, 2 * len(self._seeds))
        arrays = FloodArrays()
        rooms = dict.fromkeys(("group", "epoch", "next_member", "next_waiting"), simplices)
        rooms |= dict.fromkeys(("root", "size", "members", "waiting", "alive", "living", "seeds", "parted"), seeds)
        for name, room in rooms.items():
            setattr(arrays, name, wp.zeros(room, dtype=FloodArrays.vars[name].type.dtype, device=self._device))
        arrays.numbers = wp.zeros(NUMBERS, dtype=wp.int32, device=self._device)
        arrays.numbers.numpy()[PARTS] = self.parts
        self._limits = wp.zeros(2, dtype=wp.int32, device=self._device)
        self._arrays, self._known, self._numbers = arrays, self._body.arrays, arrays.numbers.numpy()
        self._given_seeds, self._given_limits = arrays.seeds.numpy(), self._limits.numpy()
        self._parted = arrays.parted.numpy()
        self._run = PreparedLaunch(_flood, [self._body.arrays, arrays, self._limits], self._device, dim=1, serial=True)


@wp.func
def group_at(f: FloodArrays, t: int) -> int:
    """The flood that has a simplex, or -1."""
    if f.epoch[t] != f.numbers[EPOCH]:
        return -1
    return find_root(f, f.group[t])


@wp.func
def find_root(f: FloodArrays, g: int) -> int:
    """What a flood has become a part of."""
    at = int(g)
    while f.root[at] != at:
        f.root[at] = f.root[f.root[at]]
        at = f.root[at]
    return at


@wp.func
def reach(f: FloodArrays, g: int, t: int):
    """A flood comes to a simplex, and will go on from there."""
    f.epoch[t] = f.numbers[EPOCH]
    f.group[t] = g
    f.next_member[t] = -1
    f.next_waiting[t] = -1
    members = f.members[g]
    if members[0] < 0:
        f.members[g] = wp.vec2i(t, t)
    else:
        f.next_member[members[1]] = t
        f.members[g] = wp.vec2i(members[0], t)
    waiting = f.waiting[g]
    if waiting[0] < 0:
        f.waiting[g] = wp.vec2i(t, t)
    else:
        f.next_waiting[waiting[1]] = t
        f.waiting[g] = wp.vec2i(waiting[0], t)
    f.size[g] = f.size[g] + 1


@wp.func
def join(f: FloodArrays, a: int, b: int) -> int:
    """Two floods become one, the larger; which."""
    one = find_root(f, a)
    other = find_root(f, b)
    if one == other:
        return one
    if f.size[one] < f.size[other]:
        swap = one
        one = other
        other = swap
    f.root[other] = one
    f.alive[other] = 0
    f.size[one] = f.size[one] + f.size[other]
    mine = f.members[one]
    theirs = f.members[other]
    f.next_member[mine[1]] = theirs[0]
    f.members[one] = wp.vec2i(mine[0], theirs[1])
    ours = f.waiting[one]
    more = f.waiting[other]
    if ours[0] < 0:
        f.waiting[one] = more
    elif more[0] >= 0:
        f.next_waiting[ours[1]] = more[0]
        f.waiting[one] = wp.vec2i(ours[0], more[1])
    return one


@wp.func
def spread(c: ComplexArrays, f: FloodArrays, g: int) -> int:
    """One layer of a flood; how many simplices it has looked at."""
    at = f.waiting[g][0]
    last = f.waiting[g][1]
    f.waiting[g] = wp.vec2i(-1, -1)
    own = int(g)
    looked = int(0)
    going = at >= 0
    while going:
        after = f.next_waiting[at]
        beyond = c.neighbours[at]
        for k in range(c.size):
            if beyond[k] >= 0:
                o = beyond[k] >> 2
                other = group_at(f, o)
                if other < 0:
                    reach(f, own, o)
                elif other != own:
                    own = join(f, own, other)
        looked += 1
        going = at != last
        at = after
    return looked


@wp.func
def first_living(f: FloodArrays) -> int:
    """The first flood that goes on; -1, and none is left, if there is none."""
    for i in range(f.numbers[LIVING]):
        if f.alive[f.living[i]] == 1:
            return f.living[i]
    f.numbers[LIVING] = 0
    return -1


@wp.func
def smallest_of_part(c: ComplexArrays, f: FloodArrays, part: int) -> wp.vec2i:
    """The smallest flood alive in a part, and how many there are; forgets those that are not alive."""
    found = int(-1)
    count = int(0)
    kept = int(0)
    for i in range(f.numbers[LIVING]):
        g = f.living[i]
        if f.alive[g] == 1:
            f.living[kept] = g
            kept += 1
            if c.part[f.members[g][0]] == part:
                count += 1
                if count == 1 or f.size[g] < f.size[wp.max(found, 0)]:
                    found = g
    f.numbers[LIVING] = kept
    return wp.vec2i(found, count)


@wp.kernel
def _flood(first: int, c: ComplexArrays, f: FloodArrays, limits: wp.array[int]):
    """Start anew from so many seeds, or go on (0), up to a budget of simplices (one thread)."""
    f.numbers[PARTED] = 0
    seeds = limits[0]
    if seeds > 0:
        f.numbers[EPOCH] = f.numbers[EPOCH] + 1
        for g in range(seeds):
            f.root[g] = g
            f.size[g] = 0
            f.alive[g] = 1
            f.members[g] = wp.vec2i(-1, -1)
            f.waiting[g] = wp.vec2i(-1, -1)
            if f.epoch[f.seeds[g]] == f.numbers[EPOCH]:  # it was listed before
                f.alive[g] = 0
                f.root[g] = f.group[f.seeds[g]]
            else:
                reach(f, g, f.seeds[g])
        for g in range(seeds):
            beyond = c.neighbours[f.seeds[g]]
            for k in range(c.size):
                if beyond[k] >= 0:
                    other = group_at(f, beyond[k] >> 2)
                    if other >= 0:
                        join(f, g, other)
        f.numbers[LIVING] = seeds
        for g in range(seeds):
            f.living[g] = g
    left = limits[1]
    while f.numbers[LIVING] > 0 and left > 0:
        g = first_living(f)
        if g >= 0:
            part = c.part[f.members[g][0]]
            smallest = smallest_of_part(c, f, part)
            if smallest[1] < 2:
                f.alive[g] = 0
            elif f.waiting[smallest[0]][0] >= 0:
                left -= spread(c, f, smallest[0])
            else:
                own = smallest[0]
                f.alive[own] = 0
                name = f.numbers[PARTS]
                f.numbers[PARTS] = name + 1
                n = f.numbers[PARTED]
                f.parted[n] = wp.vec3i(name, part, f.members[own][0])
                f.numbers[PARTED] = n + 1
                at = f.members[own][0]
                while at >= 0:
                    c.part[at] = name
                    at = f.next_member[at]
    f.numbers[UNFINISHED] = int(first_living(f) >= 0)
