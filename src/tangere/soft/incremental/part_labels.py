"""A part that has come off is a body of its own: its rows stay where they are, and are labelled with another number.

Question: which dofs and surface vertices are the part's, what does it weigh, and who has to know of it?
Method:   a flood lists the vertices of the part (`cutting.connected_parts`). As it does, one kernel finds their rows,
          what they weigh, and whether anything of them is fixed or free; when it has ended, another labels them. Only
          the part, which is hardly ever more than half, is gone through, but to see whether anything of the rest is
          fixed. Sums over bodies go by labels from then on (`AssembledBodies.whole`); matrices, colours, faces, trees
          and certificates do not know of bodies.
Sound:    a vertex that has another label begins its contacts anew, as where all is laid out anew. All that is written
          is noted, and can be put back.
Known as: connected-component labelling.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from tangere.runtime import SOUND, PreparedLaunch, launch
from tangere.soft.incremental.host_mirror import HostMirror
from tangere.soft.incremental.undo_log import host

if TYPE_CHECKING:
    from tangere.soft.cutting.connected_parts import FoundPart

wp.set_module_options(SOUND | {"max_unroll": 1})

#: Places in `PartRows.numbers`: vertices and surface vertices of the part, those known before, its body, the one that
#: it was part of, and the dofs of the range that both have; what is found: dofs of the part that are free, and whether
#: something of the rest is fixed, and free.
DOFS, NAMES, DOFS_BEFORE, NAMES_BEFORE, NUMBER, OF, BEGIN, END = (wp.constant(k) for k in range(8))
FREE, HELD_REST, FREE_REST = (wp.constant(8 + k) for k in range(3))
NUMBERS = 11


@wp.struct
class PartRows:
    """A part of a body, and the arrays that its rows are in."""

    numbers: wp.array[int]
    vertices: wp.array[int]  #: of the complex
    names: wp.array[int]  #: of the cut surface
    row_of: wp.array[int]  #: by vertex of the complex
    vertex_row: wp.array[int]  #: by vertex of the cut surface
    dofs: wp.array[int]  #: its rows
    surface: wp.array[int]
    mass: wp.array[wp.float64]  #: by dof
    free: wp.array[int]
    dof_body: wp.array[int]
    surface_body: wp.array[int]
    elsewhere: wp.array[int]  #: by surface vertex (`friction_memory`); nothing where a device has it
    kept: wp.array[int]  #: by row: what was elsewhere before
    found_mass: wp.array[wp.float64]  #: (1,) of the part [kg]


class PartLabels:
    """Labels parts of one body that is cut."""

    def __init__(self, mirror: HostMirror, columns: dict[str, Any], elsewhere: wp.array) -> None:
        """Prepare.

        Args:
            columns: the members of `PartRows` that are there already, on the host.
            elsewhere: by surface vertex of the simulation, where that computes (`friction_memory`).
        """
        self._mirror, self._elsewhere = mirror, elsewhere
        self._flood = 0, 0  # that has listed what it knows
        rows = self._rows = PartRows()
        for name, array in columns.items():
            setattr(rows, name, array)
        for name, like in (
            ("vertices", "row_of"),
            ("dofs", "row_of"),
            ("names", "vertex_row"),
            ("surface", "vertex_row"),
        ):
            setattr(rows, name, wp.zeros_like(columns[like]))
        rows.kept = wp.zeros_like(rows.surface)
        rows.elsewhere = wp.zeros(0, dtype=wp.int32, device="cpu") if mirror.apart else elsewhere
        rows.numbers = wp.zeros(NUMBERS, dtype=wp.int32, device="cpu")
        rows.found_mass = wp.zeros(1, dtype=wp.float64, device="cpu")
        self._weigh = PreparedLaunch(_weigh_part, [rows], mirror.host, dim=1, serial=True)
        self._label = PreparedLaunch(_label_rows, [rows], mirror.host, dim=1, serial=True)
        for launch_of_nothing in (self._weigh, self._label):  # it prepares what takes longer than most parts
            launch_of_nothing.run()
        for name in PartRows.vars:
            host(getattr(rows, name))

    def weigh(self, new: FoundPart) -> None:
        """Find the rows of a part, what it weighs, and what of it is fixed: of what has come to it since last time."""
        rows, numbers = self._rows, host(self._rows.numbers)
        if self._flood != new.flood:
            numbers[[int(DOFS), int(NAMES), int(FREE)]] = 0
            host(rows.found_mass)[0] = 0.0
            self._flood = new.flood
        before, after = numbers[[int(DOFS), int(NAMES)]], (len(new.vertices), len(new.names))
        host(rows.vertices)[before[0] : after[0]] = new.vertices[before[0] :]
        host(rows.names)[before[1] : after[1]] = new.names[before[1] :]
        numbers[: int(NUMBER)] = *after, *before
        self._weigh.run()

    @property
    def mass(self) -> float:
        """Of the part [kg]."""
        return float(host(self._rows.found_mass)[0])

    @property
    def held(self) -> tuple[bool, bool]:
        """Whether something of the part is fixed, and of the rest, since it was labelled."""
        numbers = host(self._rows.numbers)
        return bool(numbers[FREE] < numbers[DOFS]), bool(numbers[HELD_REST])

    @property
    def moves(self) -> bool:
        """Whether something of the part can move, and of the rest."""
        numbers = host(self._rows.numbers)
        return bool(numbers[FREE] and numbers[FREE_REST])

    @property
    def surface(self) -> np.ndarray:
        """(s,) surface vertices of the part, as the simulation counts them."""
        return host(self._rows.surface)[: host(self._rows.numbers)[NAMES]]

    def has_surface(self, row: int) -> bool:
        """Whether a surface vertex is of what was labelled last."""
        numbers = host(self._rows.numbers)
        return row >= 0 and int(host(self._rows.surface_body)[row]) == int(numbers[NUMBER])

    def label(
        self, number: int, of: int, span: tuple[int, int], device_bodies: tuple[wp.array, wp.array]
    ) -> Callable[[], None]:
        """Label the rows, and say that contacts there begin anew; says how to take that back.

        Args:
            number: the body that the part is now.
            of: the one that it was part of.
            span: the dofs, from … to below it, of both.
            device_bodies: by dof and by surface vertex, on the device.
        """
        rows, there = self._rows, self._elsewhere
        numbers = host(rows.numbers)
        numbers[int(NUMBER) : int(END) + 1] = number, of, *span
        dofs, surface = host(rows.dofs)[: numbers[DOFS]].copy(), self.surface.copy()
        self._label.run()
        labels = (host(rows.dof_body), dofs), (host(rows.surface_body), surface)
        if not self._mirror.apart:
            marks, before = host(rows.elsewhere), host(rows.kept)[: len(surface)].copy()

            def back() -> None:
                for array, places in labels:
                    array[places] = of
                marks[surface] = before

            return back
        device = there.device
        sent = [wp.array(places, dtype=wp.int32, device=device) for places in (dofs, surface)]
        kept = wp.empty_like(sent[1])
        size = max(len(dofs), len(surface))
        arrays = [*sent, *device_bodies, there, kept]
        launch(_label_on_device, size, [number, 0, *arrays], device=device)

        def back_there() -> None:
            for array, places in labels:
                array[places] = of
            launch(_label_on_device, size, [of, 1, *arrays], device=device)

        return back_there


@wp.kernel
def _weigh_part(first: int, p: PartRows):
    """What has come to it (one thread)."""
    mass = p.found_mass[0]
    free = p.numbers[FREE]
    for i in range(p.numbers[DOFS_BEFORE], p.numbers[DOFS]):
        row = p.row_of[p.vertices[i]]
        p.dofs[i] = row
        mass += p.mass[row]
        free += p.free[row]
    p.found_mass[0] = mass
    p.numbers[FREE] = free
    for i in range(p.numbers[NAMES_BEFORE], p.numbers[NAMES]):
        p.surface[i] = p.vertex_row[p.names[i]]


@wp.kernel
def _label_rows(first: int, p: PartRows):
    """And see what the rest is like (one thread)."""
    for i in range(p.numbers[DOFS]):
        p.dof_body[p.dofs[i]] = p.numbers[NUMBER]
    for i in range(p.numbers[NAMES]):
        p.surface_body[p.surface[i]] = p.numbers[NUMBER]
    if p.elsewhere.shape[0] > 0:
        for i in range(p.numbers[NAMES]):
            p.kept[i] = p.elsewhere[p.surface[i]]
            p.elsewhere[p.surface[i]] = 1
    held = int(0)
    free = int(0)
    row = p.numbers[BEGIN]
    while row < p.numbers[END] and (held == 0 or free == 0):
        if p.dof_body[row] == p.numbers[OF]:
            if p.free[row] == 1:
                free = 1
            else:
                held = 1
        row += 1
    p.numbers[HELD_REST] = held
    p.numbers[FREE_REST] = free


@wp.kernel
def _label_on_device(
    first: int,
    number: int,
    undone: int,
    dofs: wp.array[int],
    surface: wp.array[int],
    dof_body: wp.array[int],
    surface_body: wp.array[int],
    elsewhere: wp.array[int],
    kept: wp.array[int],
):
    """Each row is listed once; what was elsewhere before is kept, or put back."""
    i = first + wp.tid()
    if i < dofs.shape[0]:
        dof_body[dofs[i]] = number
    if i < surface.shape[0]:
        surface_body[surface[i]] = number
        if undone == 0:
            kept[i] = elsewhere[surface[i]]
            elsewhere[surface[i]] = 1
        else:
            elsewhere[surface[i]] = kept[i]
