"""Which parts does a body fall into? Floods from the facets that were opened, in slices of a budget.

Question: do the simplices on both sides of the facets opened last still hang together, and if not, what is on its own?
Method:   a flood starts at every simplex at an opened facet; the smallest goes on by one layer of neighbours; floods
          that meet become one. One that has nowhere to go while others live is a part of its own. As long as nothing
          parts, floods meet after some dozen simplices. What is in a part, its vertices and those of its surface, is
          listed then, and it is told when that is done. A slice ends after so many simplices; the next goes on from
          there. Where the blade has changed something in between, floods that have reached it are void: each begins
          again at one simplex. It, and floods from facets opened there, count in every other turn as if they were as
          large as it was, so that others are not kept waiting while the blade goes on.
Sound:    floods cover only what is joined by facets, so parts are exactly the connected components. What has come off
          a void flood has facets that were opened since, and floods from there. Which one a part is called does not
          depend on time or threads.
Known as: bidirectional search; union-find (Tarjan 1975).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import warp as wp

from tangere.runtime import SOUND, PreparedLaunch
from tangere.soft.cutting.complex_arrays import ComplexArrays
from tangere.soft.cutting.cut_surface import CutSurface, SurfaceStore
from tangere.soft.cutting.simplicial_complex import ComplexChange, SimplicialComplex

wp.set_module_options(SOUND | {"max_unroll": 1})

#: Simplices of a slice: less than a millisecond.
BUDGET = 16_000

#: Places in `numbers`.
EPOCH = wp.constant(0)
LIVING = wp.constant(1)
PARTS = wp.constant(2)
PARTED = wp.constant(3)
UNFINISHED = wp.constant(4)
ENDED = wp.constant(5)  # the flood whose simplices are listed, or -1
NEXT_MEMBER = wp.constant(6)  # the next one of them, or -1
OLD_SIMPLICES = wp.constant(7)  # how long the lists were before
OLD_VERTICES = wp.constant(8)
OLD_NAMES = wp.constant(9)
SIMPLICES = wp.constant(10)  # and are
VERTICES = wp.constant(11)
NAMES = wp.constant(12)
READY = wp.constant(13)  # 1 if what is listed may be told
LEFT = wp.constant(14)  # simplices of the slice
FLOODS = wp.constant(15)  # that have begun
DROPPED = wp.constant(16)  # 1 if what was listed is of a void flood
TURN = wp.constant(17)  # 0 where the smallest flood goes on, 1 where void ones count
NUMBERS = 18
#: With more floods than this each goes on by a layer before the smallest one is asked for, at most so often.
MANY, ROUNDS = wp.constant(32), wp.constant(8)
#: Looking at so many floods takes as long as looking at a simplex.
FLOODS_OF_ONE = wp.constant(8)
#: So many things of a part take as long to be labelled as a simplex takes to be looked at; and vertices to be prepared.
LABELS_OF_ONE = wp.constant(8)
PREPARED_OF_ONE = 3
#: Floods that there is room for, at least.
_LEAST_FLOODS = 1 << 14


@wp.struct
class FloodArrays:
    """Floods as linked lists of simplices: all of each, and those it goes on from."""

    group: wp.array[int]  #: (n,) the flood that has reached a simplex
    epoch: wp.array[int]  #: (n,) when
    next_member: wp.array[int]  #: (n,)
    next_waiting: wp.array[int]  #: (n,)
    root: wp.array[int]  #: (g,) the flood that one has become a part of
    size: wp.array[int]  #: (g,)
    late: wp.array[int]  #: (g,) how large the void one was that it has begun in
    members: wp.array[wp.vec2i]  #: (g,) first and last
    waiting: wp.array[wp.vec2i]  #: (g,) first and last; -1 for none
    alive: wp.array[int]  #: (g,) 1 for floods that go on
    living: wp.array[int]  #: those, and some that do not any more
    seeds: wp.array[int]  #: simplices at facets that have just been opened
    changed: wp.array[int]  #: simplices that the blade has changed
    simplices: wp.array[int]  #: of all parts, part after part
    vertices: wp.array[int]
    names: wp.array[int]  #: of vertices of the surface
    vertex_epoch: wp.array[int]
    name_epoch: wp.array[int]
    numbers: wp.array[int]


@dataclass(frozen=True, eq=False)
class FoundPart:
    """What has come off, or of what is about to be told as much as has been listed."""

    part: int  #: its number
    of: int  #: what it was part of
    flood: tuple[int, int]  #: what has found it: how often floods have begun, and where its simplices are listed from
    vertices: np.ndarray  #: (v,) of the complex
    names: np.ndarray  #: (s,) of the surface; the same of a sheet


class ConnectedParts:
    """The parts of a `SimplicialComplex`; `arrays.part` has the number of each simplex, all 0 at first."""

    def __init__(self, body: SimplicialComplex, surface: CutSurface | None = None) -> None:
        """`surface`: of the body, to be told which of its vertices are a part's."""
        self._body, self._surface, self._device = body, surface, wp.get_device("cpu")
        self._seeds = np.zeros(0, np.int32)
        self._new = 0  # of the seeds: no flood has begun there yet
        self._changed: list[np.ndarray] = []  # since the last slice
        self._dirty, self._anew = False, True  # whether there is something new, and all floods are void
        self.parts = 1  #: so far
        self._listed: FoundPart | None = None  # what may be told next
        self._prepared = (0, 0), 0  # the flood, and how much of it
        self._begun = 0  # how often floods have
        self._lay_out()

    def note(self, change: ComplexChange) -> None:
        """The blade has gone on."""
        if change:
            if len(change.opened):
                self._seeds = np.concatenate([self._seeds, change.opened.ravel() >> 2])
                self._new += 2 * len(change.opened)
            self._dirty = len(self._seeds) > 0
            self._changed.append(change.changed)

    def advance(self, budget: int = BUDGET, *, prepare: Callable[[FoundPart], None] | None = None) -> list[FoundPart]:
        """One slice: the parts that were found.

        Args:
            prepare: is told of each part before, as far as it has been listed, in this slice and in earlier ones; it
                may still turn out to be none if the blade goes on.
        """
        given = 0, 0, 0
        if self._dirty:
            given = self._give()
        elif not self._numbers[UNFINISHED]:
            return []
        numbers, left, found = self._numbers, budget, []
        going = True
        while going:
            self._given_limits[:] = left, budget, *given
            self._run.run()
            left, given = int(numbers[LEFT]), (0, 0, 0)
            if numbers[DROPPED]:
                self._begun, self._listed = self._begun + 1, None
            if numbers[PARTED]:
                assert self._listed is not None
                found.append(self._listed)
                self._listed = None
            elif numbers[ENDED] >= 0 and not numbers[READY]:
                listed = self._list()
                if prepare is not None:
                    prepare(listed)
                length = len(listed.vertices) + len(listed.names)
                known = self._prepared[1] if self._prepared[0] == listed.flood else 0
                self._prepared = listed.flood, length
                left -= (length - known) // PREPARED_OF_ONE
                if numbers[NEXT_MEMBER] < 0:
                    numbers[READY], self._listed = 1, listed
            else:
                going = False
            going = going and left > 0
        if not numbers[UNFINISHED]:
            self._seeds, self._anew = np.zeros(0, np.int32), True
        self.parts = int(numbers[PARTS])
        return found

    def _give(self) -> tuple[int, int, int]:
        """Tell the kernel what is new: whether floods begin anew, from how many seeds, how many simplices changed."""
        known = self._body.arrays, self._surface and self._surface.arrays
        same = all(now is before for now, before in zip(known, self._known, strict=True))
        changed = np.concatenate(self._changed or [np.zeros(0, np.int32)])
        room = len(self._arrays.seeds)
        # Every new seed begins a flood, and so does every void one, of which there are as many as have begun at most.
        floods = 2 * int(self._numbers[FLOODS]) + self._new
        anew = self._anew or not same or max(floods, len(changed)) > room
        if anew and (not same or 4 * len(self._seeds) > room):  # or the next ones would begin anew, too
            self._lay_out()
        seeds, changed = (self._seeds, changed[:0]) if anew else (self._seeds[len(self._seeds) - self._new :], changed)
        self._given_seeds[: len(seeds)] = seeds
        self._given_changed[: len(changed)] = changed
        self._dirty, self._anew, self._new, self._changed = False, False, 0, []
        if anew:
            self._begun, self._listed = self._begun + 1, None
        return int(anew), len(seeds), len(changed)

    def state(self) -> tuple[np.ndarray, int]:
        """All that later slices depend on, to go back to (`restore`); floods under way begin anew then."""
        return self._seeds, self.parts

    def restore(self, state: tuple[np.ndarray, int]) -> None:
        """As it was; the body is restored by itself."""
        self._seeds, self.parts = state
        self._dirty, self._anew, self._listed = len(self._seeds) > 0, True, None
        self._new, self._changed = 0, []
        self._numbers[[PARTS, UNFINISHED]] = self.parts, 0

    @property
    def finished(self) -> bool:
        """Whether all that was opened is accounted for."""
        return not self._dirty and not self._numbers[UNFINISHED]

    def _list(self) -> FoundPart:
        """What is listed, as it will be called."""
        numbers = self._numbers
        flood = self._begun, int(numbers[OLD_SIMPLICES])
        of = int(self._body.view("part")[self._simplices[flood[1]]])
        vertices = self._vertices[numbers[OLD_VERTICES] : numbers[VERTICES]]
        names = self._names[numbers[OLD_NAMES] : numbers[NAMES]] if self._surface else vertices
        if numbers[NEXT_MEMBER] < 0:  # the lists are used again when floods begin anew
            vertices, names = vertices.copy(), names.copy()
        return FoundPart(int(numbers[PARTS]), of, flood, vertices, names)

    def _lay_out(self) -> None:
        simplices, seeds = self._body.arrays.simplex_room, max(_LEAST_FLOODS, 8 * len(self._seeds))
        arrays = FloodArrays()
        rooms = dict.fromkeys(("group", "epoch", "next_member", "next_waiting"), simplices)
        rooms |= dict.fromkeys(
            ("root", "size", "late", "members", "waiting", "alive", "living", "seeds", "changed"), seeds
        )
        rooms["simplices"] = simplices
        names = self._surface.arrays.vertex_room if self._surface else 0
        rooms |= dict.fromkeys(("vertices", "vertex_epoch"), self._body.arrays.vertex_room)
        rooms |= dict.fromkeys(("names", "name_epoch"), names)
        for name, room in rooms.items():
            setattr(arrays, name, wp.zeros(room, dtype=FloodArrays.vars[name].type.dtype, device=self._device))
        arrays.numbers = wp.zeros(NUMBERS, dtype=wp.int32, device=self._device)
        arrays.numbers.numpy()[[PARTS, ENDED]] = self.parts, -1
        self._limits = wp.zeros(5, dtype=wp.int32, device=self._device)
        self._known = self._body.arrays, self._surface and self._surface.arrays
        self._arrays, self._numbers = arrays, arrays.numbers.numpy()
        self._given_seeds, self._given_limits = arrays.seeds.numpy(), self._limits.numpy()
        self._given_changed = arrays.changed.numpy()
        self._vertices, self._names = arrays.vertices.numpy(), arrays.names.numpy()
        self._simplices = arrays.simplices.numpy()
        store = self._surface.arrays if self._surface else SurfaceStore()
        inputs = [self._body.arrays, store, arrays, self._limits]
        self._run = PreparedLaunch(_flood, inputs, self._device, dim=1, serial=True)


@wp.func
def group_at(f: FloodArrays, t: int) -> int:
    """The flood that has a simplex and goes on, or is listed; else -1."""
    if f.epoch[t] != f.numbers[EPOCH]:
        return -1
    found = find_root(f, f.group[t])
    if f.alive[found] == 0 and f.numbers[ENDED] != found:
        return -1
    return found


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
    f.late[one] = wp.max(f.late[one], f.late[other])
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
    least = int(0)
    count = int(0)
    kept = int(0)
    for i in range(f.numbers[LIVING]):
        g = f.living[i]
        if f.alive[g] == 1:
            f.living[kept] = g
            kept += 1
            if c.part[f.members[g][0]] == part:
                count += 1
                size = f.size[g] + f.numbers[TURN] * f.late[g]
                if count == 1 or size < least:
                    found = g
                    least = size
    f.numbers[LIVING] = kept
    return wp.vec2i(found, count)


@wp.func
def list_member(c: ComplexArrays, s: SurfaceStore, f: FloodArrays, t: int):
    """A simplex of a part, its vertices, and those of its triangles on the surface, each once."""
    epoch = f.numbers[EPOCH]
    f.simplices[f.numbers[SIMPLICES]] = t
    f.numbers[SIMPLICES] = f.numbers[SIMPLICES] + 1
    corners = c.corners[t]
    beyond = c.neighbours[t]
    for k in range(c.size):
        v = corners[k]
        if f.vertex_epoch[v] != epoch:
            f.vertex_epoch[v] = epoch
            f.vertices[f.numbers[VERTICES]] = v
            f.numbers[VERTICES] = f.numbers[VERTICES] + 1
        if beyond[k] < 0 and f.names.shape[0] > 0:
            triangle = s.store[s.slots + 4 * t + k]
            for j in range(3):
                name = s.store[s.corners + 3 * triangle + j]
                if f.name_epoch[name] != epoch:
                    f.name_epoch[name] = epoch
                    f.names[f.numbers[NAMES]] = name
                    f.numbers[NAMES] = f.numbers[NAMES] + 1


@wp.func
def end_flood(f: FloodArrays, g: int):
    """A flood has nowhere to go: what it has reached is a part, and is listed from now on."""
    f.alive[g] = 0
    f.numbers[ENDED] = g
    f.numbers[NEXT_MEMBER] = f.members[g][0]
    f.numbers[READY] = 0
    for k in range(3):
        f.numbers[OLD_SIMPLICES + k] = f.numbers[SIMPLICES + k]


@wp.func
def list_members(c: ComplexArrays, s: SurfaceStore, f: FloodArrays, left: int) -> int:
    """Go on listing what is in a part; how much of what is left that takes."""
    spent = int(0)
    at = f.numbers[NEXT_MEMBER]
    while at >= 0 and spent + spent / 2 < left:  # listing one takes a little longer than looking at it
        list_member(c, s, f, at)
        at = f.next_member[at]
        spent += 1
    f.numbers[NEXT_MEMBER] = at
    return spent + spent / 2


@wp.func
def call_members(c: ComplexArrays, f: FloodArrays, left: int, budget: int) -> int:
    """Call all that was listed by the number of the part, if there is time; how much of what is left that takes."""
    things = int(0)
    for k in range(3):
        things += f.numbers[SIMPLICES + k] - f.numbers[OLD_SIMPLICES + k]
    takes = 1 + things / LABELS_OF_ONE
    if takes > left and left < budget:
        return left  # there is more in the next slice
    for i in range(f.numbers[OLD_SIMPLICES], f.numbers[SIMPLICES]):
        c.part[f.simplices[i]] = f.numbers[PARTS]
    f.numbers[PARTS] = f.numbers[PARTS] + 1
    f.numbers[PARTED] = 1
    f.numbers[ENDED] = -1
    return takes


@wp.func
def begin_flood(f: FloodArrays, t: int):
    """A flood at a simplex that no other one has."""
    g = f.numbers[FLOODS]
    f.numbers[FLOODS] = g + 1
    f.root[g] = g
    f.size[g] = 0
    f.late[g] = 0
    if f.epoch[t] == f.numbers[EPOCH]:  # a void one was here
        was = find_root(f, f.group[t])
        f.late[g] = f.size[was] + f.late[was]
    f.alive[g] = 1
    f.members[g] = wp.vec2i(-1, -1)
    f.waiting[g] = wp.vec2i(-1, -1)
    reach(f, g, t)
    f.living[f.numbers[LIVING]] = g
    f.numbers[LIVING] = f.numbers[LIVING] + 1


@wp.func
def drop_flood(f: FloodArrays, g: int):
    """A flood has reached what is other now: it begins again."""
    f.alive[g] = 0
    if f.numbers[ENDED] == g:
        for i in range(f.numbers[OLD_VERTICES], f.numbers[VERTICES]):
            f.vertex_epoch[f.vertices[i]] = 0
        for i in range(f.numbers[OLD_NAMES], f.numbers[NAMES]):
            f.name_epoch[f.names[i]] = 0
        for k in range(3):
            f.numbers[SIMPLICES + k] = f.numbers[OLD_SIMPLICES + k]
        f.numbers[ENDED] = -1
        f.numbers[DROPPED] = 1
    begin_flood(f, f.members[g][0])


@wp.func
def begin_floods(c: ComplexArrays, f: FloodArrays, anew: int, seeds: int, changed: int):
    """Floods at all seeds, and instead of those that are void."""
    f.numbers[DROPPED] = 0
    if anew == 1:
        f.numbers[EPOCH] = f.numbers[EPOCH] + 1
        f.numbers[ENDED] = -1
        for k in range(3):
            f.numbers[SIMPLICES + k] = 0
        f.numbers[FLOODS] = 0
        f.numbers[LIVING] = 0
        f.numbers[TURN] = 0
    for i in range(changed):
        g = group_at(f, f.changed[i])
        if g >= 0:
            drop_flood(f, g)
    begin = f.numbers[FLOODS]
    for i in range(seeds):
        if group_at(f, f.seeds[i]) < 0:  # it was not listed before
            begin_flood(f, f.seeds[i])
    for g in range(begin, f.numbers[FLOODS]):
        beyond = c.neighbours[f.members[g][0]]
        for k in range(c.size):
            if beyond[k] >= 0:
                other = group_at(f, beyond[k] >> 2)
                if other >= 0:
                    join(f, g, other)


@wp.func
def spread_all(c: ComplexArrays, f: FloodArrays, left: int) -> int:
    """Many floods, most of which meet soon, go on by a layer each; how much of what is left that takes."""
    spent = int(0)
    kept = int(0)
    for i in range(f.numbers[LIVING]):
        g = f.living[i]
        if f.alive[g] == 1:
            if spent < left:
                spent += spread(c, f, g)
        if f.alive[g] == 1:
            f.living[kept] = g
            kept += 1
    f.numbers[LIVING] = kept
    return spent


@wp.kernel
def _flood(first: int, c: ComplexArrays, s: SurfaceStore, f: FloodArrays, limits: wp.array[int]):
    """Go on up to so many simplices of a budget, or to one part (one thread).

    It also ends where a part is listed, and nobody has said yet that it may be told.

    Args:
        limits: what is left of the budget, and that; what is new: 1 where all floods begin anew, seeds, simplices that
            the blade has changed.
    """
    f.numbers[PARTED] = 0
    begin_floods(c, f, limits[2], limits[3], limits[4])
    left = limits[0]
    rounds = int(0)
    while limits[3] > 0 and f.numbers[LIVING] > MANY and rounds < ROUNDS and left > 0:
        left -= spread_all(c, f, left)
        rounds += 1
    going = left > 0
    while going:
        g = int(-1)
        if f.numbers[ENDED] < 0:
            g = first_living(f)
            going = g >= 0
        elif f.numbers[NEXT_MEMBER] >= 0:
            left -= list_members(c, s, f, left)
        else:
            going = False
            if f.numbers[READY] == 1:
                left -= call_members(c, f, left, limits[1])
        if g >= 0:
            part = c.part[f.members[g][0]]
            left -= f.numbers[LIVING] / FLOODS_OF_ONE
            f.numbers[TURN] = 1 - f.numbers[TURN]
            smallest = smallest_of_part(c, f, part)
            if smallest[1] < 2:
                f.alive[g] = 0
            elif f.waiting[smallest[0]][0] >= 0:
                left -= spread(c, f, smallest[0])
            else:
                end_flood(f, smallest[0])
        going = going and left > 0
    f.numbers[LEFT] = left
    alone = f.numbers[ENDED] < 0
    while alone:  # what has no other one to part from is done
        g = first_living(f)
        alone = False
        if g >= 0:
            if smallest_of_part(c, f, c.part[f.members[g][0]])[1] < 2:
                f.alive[g] = 0
                alone = True
    f.numbers[UNFINISHED] = int(first_living(f) >= 0 or f.numbers[ENDED] >= 0)
