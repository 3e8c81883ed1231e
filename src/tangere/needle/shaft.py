"""The shaft of a needle as rows of the solver: guides across it, friction along it, the tip that pushes.

Question: what does a needle do to the tissue around it in one step, and what does the tissue do to the needle?
Method:   a particle every lock length is a guide (`tangere.soft`): held across the shaft, and along it by friction up
          to a limit, from an anchor on the shaft that moves when the limit is reached. The tip is one more guide that
          only pushes; before it goes through the surface, a disc of them.
Known as: bilateral constraints along the needle, with friction (Duriez et al. 2009; Chentanez et al. 2009).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import warp as wp

from tangere.needle.material_points import MaterialPoint
from tangere.runtime import SOUND, launch
from tangere.soft import RowArrays

wp.set_module_options(SOUND)


@wp.struct
class GuideColumns:
    """Guides to be appended, one after the other."""

    body: wp.array[int]
    dofs: wp.array[wp.vec4i]
    weights: wp.array[wp.vec4d]
    aim: wp.array[wp.vec3d]
    tangent: wp.array[wp.vec3d]
    guide: wp.array[wp.vec4d]


@dataclass
class Particle:
    """A point of the tissue on the shaft."""

    point: MaterialPoint
    anchor: float  #: where it is held, along the shaft from the base [m]
    length: float  #: of the path that it stands for [m]
    friction: float  #: the most that friction takes for a metre [N/m]
    force: np.ndarray = field(default_factory=lambda: np.zeros(3))  #: on the needle in the last step [N]
    sticking: bool = True


class GuideRows:
    """Room for the guides of one needle on the device of the tissue."""

    def __init__(self, device: wp.Device, free: wp.array) -> None:
        self._device, self.free = device, free
        self._room, self.count = 0, 0

    def set(self, **values: np.ndarray) -> None:
        """The guides of the next step: the members of `GuideColumns`, a row for each."""
        self.count = len(values["dofs"])
        if self.count > self._room:
            self._room = 2 * self.count
            kinds = GuideColumns.vars
            self._host, self._columns = GuideColumns(), GuideColumns()
            for name, member in kinds.items():
                setattr(self._host, name, wp.zeros(self._room, dtype=member.type.dtype, device="cpu"))
                there = getattr(self._host, name)
                if not self._device.is_cpu:
                    there = wp.zeros(self._room, dtype=member.type.dtype, device=self._device)
                setattr(self._columns, name, there)
        for name, rows in values.items():
            getattr(self._host, name).numpy()[: self.count] = rows
            if not self._device.is_cpu:
                wp.copy(getattr(self._columns, name), getattr(self._host, name), count=self.count)

    def write(self, rows: RowArrays, first: int) -> None:
        """Write them to rows, see `ContactRows.append`."""
        inputs = [first, self.free, self._columns, rows]
        launch(_write, self.count, inputs, device=self._device)


@wp.kernel
def _write(
    first: int,
    begin: int,
    free: wp.array[int],
    columns: GuideColumns,
    rows: RowArrays,
):
    i = first + wp.tid()
    r = begin + i
    names = rows.dofs[r]
    values = rows.weights[r]
    bound = wp.float64(0.0)
    for k in range(16):
        names[k] = 0
        values[k] = wp.float64(0.0)
    for k in range(4):
        names[k] = columns.dofs[i][k]
        values[k] = columns.weights[i][k]
        if free[names[k]] == 1:
            bound += wp.abs(values[k])
    rows.dofs[r] = names
    rows.weights[r] = values
    rows.sizes[r] = 4
    rows.bound[r] = bound
    rows.bodies[r] = wp.vec2i(columns.body[i], columns.body[i])
    rows.place[r] = -1
    rows.strain[r] = wp.vec3d()
    rows.law[r] = wp.vec2d()
    rows.normal[r] = columns.tangent[i]
    rows.aim[r] = columns.aim[i]
    rows.guide[r] = columns.guide[i]
