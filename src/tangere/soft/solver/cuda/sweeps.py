"""The sweeps of a step as launches, for CUDA: forces of the contacts, every colour, the end of the sweep.

The twin for CPUs is `solver.cpu.sweeps`; on CPU, where these launches are only tested, they go where its sweeps go.
"""

from __future__ import annotations

from itertools import pairwise

import warp as wp

from tangere.soft.contact.islands import ContactIslands
from tangere.soft.contact.rows import ContactRows
from tangere.soft.model.assembly import Assembly
from tangere.soft.solver.cuda.sweep_end import SweepEnd
from tangere.soft.solver.cuda.vertex_block import CudaVertexSweep


class CudaSweeps:
    """Sweeps over all dofs that move."""

    def __init__(
        self, assembly: Assembly, islands: ContactIslands, y: wp.array, inertia: wp.array, rows: ContactRows, dt: float
    ) -> None:
        """`y` is the free motion of the step, `inertia` m / dt^2."""
        self._rows, self._colours = rows, list(pairwise(assembly.colours.tolist()))
        arguments = [assembly.order, assembly.x, y, inertia, *assembly.material, *rows.by_dof]
        self._move = CudaVertexSweep(arguments, assembly.device)
        self._end = SweepEnd(assembly, islands, y, rows, dt)
        self.accelerated = True

    def __call__(self, sweeps: int) -> None:
        """So many sweeps from where the dofs are; the last one is not accelerated."""
        self._end.begin()
        for sweep in range(sweeps):
            self._rows.update_forces()
            for begin, end in self._colours:
                self._move(end - begin, begin)
            self._end(sweep, accelerated=self.accelerated and sweep < sweeps - 1)
