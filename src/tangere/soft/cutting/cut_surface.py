"""The surface of a solid that is cut: a triangle for every facet with nothing beyond, vertices that keep their numbers.

Question: what are the surface triangles after a step of the blade, and which of them are new?
Method:   a surface vertex is an orbit of corners of triangles: those reached from each other by going round edges
          through tetrahedra. So walls that meet at a vertex of the solid without being joined there stay two. Only
          triangles of changed tetrahedra are looked at; an orbit keeps its number as long as its vertex of the solid.
Sound:    closed and oriented after every step. Every number that is written is logged before, so that a step is undone
          to the last bit; when the log or the store is full nothing is written any more.
Known as: orbits of a combinatorial map (Lienhardt 1994); an undo log.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.runtime import SOUND, PreparedLaunch
from tangere.soft.cutting import complex_arrays as layout
from tangere.soft.cutting.complex_arrays import CHANGED, ComplexArrays
from tangere.soft.cutting.simplicial_complex import SimplicialComplex

wp.set_module_options(SOUND | {"max_unroll": 1})

#: Places in `numbers`.
TRIANGLES = wp.constant(0)
VERTICES = wp.constant(1)
FREE = wp.constant(2)
LOGGED = wp.constant(3)
SHORT_OF_ROOM = wp.constant(4)
MARK = wp.constant(5)
TRIANGLES_BEFORE = wp.constant(6)
VERTICES_BEFORE = wp.constant(7)
FREE_BEFORE = wp.constant(8)
TOUCHED = wp.constant(9)
FAN = wp.constant(10)
REPLACED = wp.constant(11)
LOOKED = wp.constant(12)
NUMBERS = 13


@wp.struct
class SurfaceStore:
    """Everything is whole numbers, in one store, so that one log remembers all that is written."""

    triangle_room: int
    vertex_room: int
    slots: int  #: where in the store: the triangle of each facet 4 t + k, or -1
    corners: int  #: three surface vertices of each triangle; -1 of one that is free
    owners: int  #: its facet
    dofs: int  #: the vertex of the solid of each surface vertex; -1 of one that is gone
    places: int  #: one corner 3 f + j of each surface vertex
    free: int  #: triangles that are free
    marks: int  #: of triangles, the last step that has written of them; not in the log
    store: wp.array[int]
    log: wp.array[wp.vec2i]  #: where, and what was there
    numbers: wp.array[int]
    vertex_mark: wp.array[int]
    touched: wp.array[wp.vec4i]  #: triangles that are looked at, and their vertices before
    fan: wp.array[int]  #: corners of one orbit
    replaced: wp.array[int]  #: surface vertices of which corners have gone to others; then triangles written of


class CutSurface:
    """The surface of a `SimplicialComplex` of tetrahedra, kept up with it."""

    def __init__(self, body: SimplicialComplex, *, room: float = 2.0) -> None:
        self._body, self._device = body, wp.get_device("cpu")
        outside = int((body.neighbours < 0).sum())
        self._history: list[tuple[SurfaceStore, np.ndarray, np.ndarray]] | None = None
        self._build(int(room * outside) + 256, int(room * outside) // 2 + 256)

    def follow(self) -> None:
        """What the last step of the body has changed."""
        if self._body.arrays is not self._known or self._facets < 4 * self._body.arrays.simplex_room:  # it has grown
            self._build(self.arrays.triangle_room, self.arrays.vertex_room, keep=True)
        before = self._numbers.copy()
        self._follow.run()
        while self._numbers[SHORT_OF_ROOM]:
            self._undo.run()
            self._build(2 * self.arrays.triangle_room, 2 * self.arrays.vertex_room, keep=True)
            before = self._numbers.copy()
            self._follow.run()
        if self._history is not None:
            self._history.append((self.arrays, self._log[: self._numbers[LOGGED]].copy(), before))

    def begin_history(self) -> None:
        """From here on remember what is written, for `undo_history`."""
        self._history = []

    def undo_history(self) -> None:
        """As it was at `begin_history`; the body is undone by itself."""
        while self._history:
            arrays, log, before = self._history.pop()
            if arrays is not self.arrays:
                self.arrays = arrays
                self._prepare()
            self._store[log[::-1, 0]] = log[::-1, 1]  # of several of one place the first is written last
            before[MARK] = self._numbers[MARK]  # only counts up
            self._numbers[:] = before

    def undo(self) -> None:
        """Take back the last `follow`; the body is undone by itself."""
        self._undo.run()

    def state(self) -> tuple[SurfaceStore, np.ndarray, np.ndarray]:
        """All that later steps depend on, to go back to after any number of them (`restore`)."""
        return self.arrays, self._store[: self.arrays.marks].copy(), self._numbers.copy()

    def restore(self, state: tuple[SurfaceStore, np.ndarray, np.ndarray]) -> None:
        """As it was; the body is restored by itself."""
        arrays, store, numbers = state
        mark = int(arrays.numbers.numpy()[MARK])
        arrays.store.numpy()[: arrays.marks], arrays.numbers.numpy()[:] = store, numbers
        arrays.numbers.numpy()[MARK] = mark  # only counts up
        if arrays is not self.arrays:
            self.arrays = arrays
            self._prepare()

    @property
    def looked_at(self) -> np.ndarray:
        """(c,) places of triangles whose corners, or whose vertices' places, the last step may have changed."""
        found = self._looked[: self._numbers[LOOKED]].copy()
        found.sort()
        return found

    @property
    def triangles(self) -> np.ndarray:
        """(f, 3) surface vertices; -1 where a place is free."""
        a, count = self.arrays, self._numbers[TRIANGLES]
        return self._store[a.corners : a.corners + 3 * count].reshape(-1, 3).copy()

    @property
    def owners(self) -> np.ndarray:
        """(f,) the facet 4 t + k of each triangle."""
        return self._store[self.arrays.owners :][: self._numbers[TRIANGLES]].copy()

    @property
    def dofs(self) -> np.ndarray:
        """(s,) the vertex of the solid that carries each surface vertex; -1 where there is none."""
        return self._store[self.arrays.dofs :][: self._numbers[VERTICES]].copy()

    @property
    def walls(self) -> np.ndarray:
        """(f,) bool: whether a triangle was opened by a blade."""
        wall, owners = self._body.view("wall"), self.owners
        return (wall[owners >> 2] >> (owners & 3)) & 1 == 1

    @property
    def touched(self) -> np.ndarray:
        """(c,) triangles that the last step has looked at: their corners, or their vertices' places, may be new."""
        return self.arrays.touched.numpy()[: self._numbers[TOUCHED], 0].copy()

    @property
    def store(self) -> np.ndarray:
        """All of `arrays.store` as NumPy sees it."""
        return self._store

    @property
    def _facets(self) -> int:
        """How many facets there are slots for."""
        return self.arrays.corners - self.arrays.slots

    def _build(self, triangle_room: int, vertex_room: int, *, keep: bool = False) -> None:
        """Lay out the store; with what is there, or anew from the body."""
        old = self.arrays if keep else None
        facets = 4 * self._body.arrays.simplex_room
        arrays = SurfaceStore()
        arrays.triangle_room, arrays.vertex_room = triangle_room, vertex_room
        sizes = {"slots": facets, "corners": 3 * triangle_room, "owners": triangle_room}
        sizes |= {"dofs": vertex_room, "places": vertex_room, "free": triangle_room}
        sizes["marks"] = triangle_room
        ends = np.cumsum([0, *sizes.values()])
        for name, begin in zip(sizes, ends, strict=False):
            setattr(arrays, name, int(begin))
        arrays.store = wp.array(np.full(ends[-1], -1, np.int32), dtype=wp.int32, device=self._device)
        arrays.log = wp.zeros(8 * triangle_room, dtype=wp.vec2i, device=self._device)
        arrays.numbers = wp.zeros(NUMBERS, dtype=wp.int32, device=self._device)
        arrays.vertex_mark = wp.zeros(vertex_room, dtype=wp.int32, device=self._device)
        arrays.touched = wp.zeros(triangle_room, dtype=wp.vec4i, device=self._device)
        arrays.replaced = wp.zeros(4 * triangle_room, dtype=wp.int32, device=self._device)
        arrays.fan = wp.zeros(3 * triangle_room, dtype=wp.int32, device=self._device)
        if old is not None:
            store, before = arrays.store.numpy(), old.store.numpy()
            ends_before = [old.slots, old.corners, old.owners, old.dofs, old.places, old.free, old.marks]
            for k, name in enumerate(list(sizes)[:-1]):  # marks begin anew
                size = min(ends_before[k + 1] - ends_before[k], sizes[name])
                begin = getattr(arrays, name)
                store[begin : begin + size] = before[ends_before[k] : ends_before[k] + size]
            arrays.numbers.assign(old.numbers)
            arrays.numbers.numpy()[[MARK, LOGGED]] = 0
        self.arrays = arrays
        self._prepare()
        if old is None:
            inputs = [self._body.arrays, arrays, int(self._body._numbers[layout.SIMPLICES])]
            PreparedLaunch(_follow, inputs, self._device, dim=1, serial=True).run()

    def _prepare(self) -> None:
        self._numbers, self._store = self.arrays.numbers.numpy(), self.arrays.store.numpy()
        self._log, self._looked = self.arrays.log.numpy(), self.arrays.replaced.numpy()
        self._known, inputs = self._body.arrays, [self._body.arrays, self.arrays]
        self._follow = PreparedLaunch(_follow, [*inputs, 0], self._device, dim=1, serial=True)
        self._undo = PreparedLaunch(_undo, [self.arrays], self._device, dim=1, serial=True)


@wp.func
def name_at(c: ComplexArrays, s: SurfaceStore, f: int, k: int) -> int:
    """The surface vertex at corner k of a triangle; negative where the place of the triangle is free.

    A sheet is its own surface: its triangles are its simplices, its surface vertices its vertices, and the store is
    not asked.
    """
    if c.size == 3:
        return c.corners[f][k]
    return s.store[s.corners + 3 * f + k]


@wp.func
def vertex_of(c: ComplexArrays, s: SurfaceStore, name: int) -> int:
    """The vertex of the body at a surface vertex; -1 of one that is gone."""
    if c.size == 3:
        return name
    return s.store[s.dofs + name]


@wp.func
def simplex_behind(c: ComplexArrays, s: SurfaceStore, f: int) -> int:
    """The simplex that a triangle is of."""
    if c.size == 3:
        return f
    return s.store[s.owners + f] >> 2


@wp.func
def part_of(c: ComplexArrays, s: SurfaceStore, name: int) -> int:
    """The part that a surface vertex belongs to."""
    if c.size == 3:
        return c.part[c.simplex_at[name]]
    return c.part[s.store[s.owners + s.store[s.places + name] / 3] >> 2]


@wp.func
def name_count(c: ComplexArrays, s: SurfaceStore) -> int:
    """How many surface vertices there are, with those that are gone."""
    if c.size == 3:
        return c.numbers[layout.VERTICES]
    return s.numbers[VERTICES]


@wp.func
def is_wall(c: ComplexArrays, s: SurfaceStore, f: int) -> bool:
    """Whether a triangle was opened by a blade; none of a sheet is."""
    if c.size == 3:
        return False
    owner = s.store[s.owners + f]
    return ((c.wall[owner >> 2] >> (owner & 3)) & 1) == 1


@wp.func
def write(s: SurfaceStore, at: int, value: int):
    """Put a number into the store, unless there is no room to remember what was there."""
    n = s.numbers[LOGGED]
    if n >= s.log.shape[0]:
        s.numbers[SHORT_OF_ROOM] = 1
    elif s.numbers[SHORT_OF_ROOM] == 0:
        s.log[n] = wp.vec2i(at, s.store[at])
        s.numbers[LOGGED] = n + 1
        s.store[at] = value


@wp.func
def facet_corner(k: int, j: int) -> int:
    """Corner j of facet k of a tetrahedron, outward."""
    if k % 2 == 0:
        return (k + 1 + j) % 4
    return (k + 1 + (3 - j) % 3) % 4


@wp.func
def dof_at(c: ComplexArrays, s: SurfaceStore, f: int, j: int) -> int:
    """The vertex of the solid at corner j of a triangle."""
    owner = s.store[s.owners + f]
    return c.corners[owner >> 2][facet_corner(owner & 3, j)]


@wp.func
def beside(c: ComplexArrays, s: SurfaceStore, f: int, j: int) -> int:
    """The corner 3 g + i, at the same vertex as corner j of f, of the triangle g across the edge from j to j + 1."""
    owner = s.store[s.owners + f]
    t = owner >> 2
    into = owner & 3
    u = dof_at(c, s, f, j)
    v = dof_at(c, s, f, (j + 1) % 3)
    found = int(-1)
    while found < 0:
        corners = c.corners[t]
        out = int(0)
        for k in range(4):
            if k != into and corners[k] != u and corners[k] != v:
                out = k
        n = c.neighbours[t][out]
        if n < 0:
            g = s.store[s.slots + 4 * t + out]
            for i in range(3):
                if corners[facet_corner(out, i)] == u:
                    found = 3 * g + i
        else:
            t = n >> 2
            into = n & 3
    return found


@wp.func
def walk_fan(c: ComplexArrays, s: SurfaceStore, f: int, j: int):
    """All corners of the orbit of corner j of a triangle."""
    first = 3 * f + j
    at = int(first)
    count = int(0)
    going = bool(True)
    while going:
        if count < s.fan.shape[0]:
            s.fan[count] = at
            count += 1
        else:
            s.numbers[SHORT_OF_ROOM] = 1
            going = False
        at = beside(c, s, at / 3, at % 3)
        if at == first:
            going = False
    s.numbers[FAN] = count


@wp.func
def number_fan(c: ComplexArrays, s: SurfaceStore, f: int, j: int, old: int, mark: int):
    """Give all corners of an orbit one number: an old one of it at the same vertex, or a new one."""
    walk_fan(c, s, f, j)
    dof = dof_at(c, s, f, j)
    name = int(-1)
    if may_keep(s, old, dof, mark):
        name = old
    i = int(0)
    while name < 0 and i < s.numbers[FAN]:
        known = s.store[s.corners + s.fan[i]]
        if may_keep(s, known, dof, mark):
            name = known
        i += 1
    if name < 0:
        name = s.numbers[VERTICES]
        if name >= s.vertex_room:
            s.numbers[SHORT_OF_ROOM] = 1
        else:
            s.numbers[VERTICES] = name + 1
            write(s, s.dofs + name, dof)
    if s.numbers[SHORT_OF_ROOM] == 0:
        s.vertex_mark[name] = mark
        write(s, s.places + name, s.fan[0])
        for k in range(s.numbers[FAN]):
            before = s.store[s.corners + s.fan[k]]
            if before != name:
                write(s, s.corners + s.fan[k], name)
                if before >= 0:
                    note_replaced(s, before)


@wp.func
def note_replaced(s: SurfaceStore, name: int):
    """A number that a corner has lost; it may be gone."""
    n = s.numbers[REPLACED]
    if n < s.replaced.shape[0]:
        s.replaced[n] = name
        s.numbers[REPLACED] = n + 1
    else:
        s.numbers[SHORT_OF_ROOM] = 1


@wp.func
def may_keep(s: SurfaceStore, name: int, dof: int, mark: int) -> bool:
    """Whether an orbit at a vertex of the solid may go on with a number: nobody else has taken it in this step."""
    if name < 0:
        return False
    return s.vertex_mark[name] != mark and s.store[s.dofs + name] == dof


@wp.func
def look_at(c: ComplexArrays, s: SurfaceStore, t: int):
    """Triangles for the facets of a tetrahedron with nothing beyond; others lose theirs."""
    beyond = c.neighbours[t]
    for k in range(4):
        slot = s.slots + 4 * t + k
        f = s.store[slot]
        if beyond[k] < 0:
            if f < 0:
                free = s.numbers[FREE]
                if free > 0:
                    f = s.store[s.free + free - 1]
                    s.numbers[FREE] = free - 1
                else:
                    f = s.numbers[TRIANGLES]
                    if f >= s.triangle_room:
                        s.numbers[SHORT_OF_ROOM] = 1
                        return
                    s.numbers[TRIANGLES] = f + 1
                write(s, slot, f)
                write(s, s.owners + f, 4 * t + k)
            at = s.corners + 3 * f
            touched = s.numbers[TOUCHED]
            s.touched[touched] = wp.vec4i(f, s.store[at], s.store[at + 1], s.store[at + 2])
            s.numbers[TOUCHED] = touched + 1
        elif f >= 0:
            for j in range(3):
                note_replaced(s, s.store[s.corners + 3 * f + j])
                write(s, s.corners + 3 * f + j, -1)
            write(s, s.owners + f, -1)
            write(s, slot, -1)
            write(s, s.free + s.numbers[FREE], f)
            s.numbers[FREE] = s.numbers[FREE] + 1


@wp.kernel
def _follow(first: int, c: ComplexArrays, s: SurfaceStore, everything: int):
    """Keep up with the last step; or, at first, with so many tetrahedra (one thread)."""
    s.numbers[SHORT_OF_ROOM] = 0
    s.numbers[LOGGED] = 0
    s.numbers[TOUCHED] = 0
    s.numbers[REPLACED] = 0
    s.numbers[LOOKED] = 0
    s.numbers[TRIANGLES_BEFORE] = s.numbers[TRIANGLES]
    s.numbers[VERTICES_BEFORE] = s.numbers[VERTICES]
    s.numbers[FREE_BEFORE] = s.numbers[FREE]
    count = everything
    if count == 0:
        count = c.lengths[CHANGED]
    i = int(0)
    while i < count and s.numbers[SHORT_OF_ROOM] == 0:
        t = i
        if everything == 0:
            t = c.lists[CHANGED, i]
        look_at(c, s, t)
        i += 1
    if s.numbers[SHORT_OF_ROOM] == 1:
        return
    mark = s.numbers[MARK] + 1
    s.numbers[MARK] = mark
    for i in range(s.numbers[TOUCHED]):
        for j in range(3):
            write(s, s.corners + 3 * s.touched[i][0] + j, -2)
    i = int(0)
    while i < s.numbers[TOUCHED] and s.numbers[SHORT_OF_ROOM] == 0:
        row = s.touched[i]
        for j in range(3):
            if s.store[s.corners + 3 * row[0] + j] == -2:
                number_fan(c, s, row[0], j, row[1 + j], mark)
        i += 1
    for i in range(s.numbers[TOUCHED]):  # numbers of orbits that have become one
        row = s.touched[i]
        for j in range(3):
            name = row[1 + j]
            if name >= 0:
                note_replaced(s, name)
    for i in range(s.numbers[REPLACED]):
        name = s.replaced[i]
        if s.vertex_mark[name] != mark and s.store[s.dofs + name] >= 0:
            if s.store[s.corners + s.store[s.places + name]] != name:
                write(s, s.dofs + name, -1)
    note_looked(s, mark)


@wp.func
def note_looked(s: SurfaceStore, mark: int):
    """In REPLACED, which has been used: triangles of which a corner, a vertex or the owner was written, each once."""
    count = int(0)
    for i in range(s.numbers[LOGGED]):
        at = s.log[i][0] - s.corners
        if at >= 0 and at < s.dofs - s.corners:
            f = at / 3
            if at >= s.owners - s.corners:
                f = at - (s.owners - s.corners)
            if s.store[s.marks + f] != mark:
                s.store[s.marks + f] = mark
                s.replaced[count] = f
                count += 1
    s.numbers[LOOKED] = count


@wp.kernel
def _undo(first: int, s: SurfaceStore):
    """As if the last step had not been followed (one thread)."""
    n = s.numbers[LOGGED]
    while n > 0:
        n -= 1
        s.store[s.log[n][0]] = s.log[n][1]
    s.numbers[LOGGED] = 0
    s.numbers[LOOKED] = 0
    s.numbers[TRIANGLES] = s.numbers[TRIANGLES_BEFORE]
    s.numbers[VERTICES] = s.numbers[VERTICES_BEFORE]
    s.numbers[FREE] = s.numbers[FREE_BEFORE]
