"""A round obstacle that is put down, taken away and moved while a crowd is there: cells around it get finer.

Cells are split along its rim as far as the simulation allows, and every cell whose centre it covers is blocked as soon
as nobody is in it; whoever is caught inside stays in his cell until it goes on. Where it leaves, cells are freed, and
merge again by density.
Spec: specs/pitiot-multiresolution-interactions 2.16 (criteria), 2.18 (obstacles), 5.1.
"""

from __future__ import annotations

import numpy as np

from tangere.cells.maps.refining import split
from tangere.crowd.simulation import Simulation
from tangere.crowd.sizes import cell_widths
from tangere.runtime import Arrays, InputError

__all__ = ["Obstacle"]


class Obstacle:
    """A disc (flat maps) or ball (space) that agents go around.

    Args:
        centre: (2,) or (3,) [m]. radius: [m].
    """

    def __init__(self, simulation: Simulation, centre: Arrays, radius: float) -> None:
        if not radius > 0:
            raise InputError(f"radius must be positive, not {radius}")
        if simulation.map.dimension == 2 and not simulation.map.flat:
            raise InputError("obstacles are put into flat maps or into space")
        self.simulation, self.radius = simulation, float(radius)
        self._blocked = np.empty(0, np.int64)
        self.move(centre)

    @property
    def cells(self) -> np.ndarray:
        """The cells that are blocked now."""
        return self._blocked

    def move(self, centre: Arrays) -> None:
        """Put it somewhere else."""
        place = np.asarray(centre, float).reshape(-1)
        self.centre = np.concatenate([place, np.zeros(3 - len(place))])  #: (3,) [m]
        away = np.linalg.norm(self._centres(self._blocked) - self.centre, axis=1)
        self._free(self._blocked[away > self.radius])
        self._split_rim()
        self.settle()

    def settle(self) -> None:
        """Block what it covers and nobody is in any more; call it between steps."""
        simulation, map = self.simulation, self.simulation.map
        leaves = map.leaves
        far = np.linalg.norm(self._centres(leaves) - self.centre, axis=1)
        free = (far <= self.radius) & (map.arrays.obstacle.numpy()[leaves] == 0)
        taken = np.concatenate([simulation.cells, map.numpy("cell")[simulation.bodies.arrays.dart.numpy()]])
        fresh = np.setdiff1d(leaves[free], taken)
        if len(fresh):
            simulation.block(fresh)
            self._blocked = np.concatenate([self._blocked, fresh])

    def remove(self) -> None:
        """Take it away."""
        self._free(self._blocked)

    def _free(self, cells: np.ndarray) -> None:
        if len(cells):
            self.simulation.block(cells, blocked=False)
            self._blocked = np.setdiff1d(self._blocked, cells)

    def _split_rim(self) -> None:
        simulation, map = self.simulation, self.simulation.map
        for _ in range(simulation.levels):
            leaves = map.leaves
            leaves = leaves[(map.levels[leaves] < simulation.levels) & (map.arrays.obstacle.numpy()[leaves] == 0)]
            away = np.linalg.norm(self._centres(leaves) - self.centre, axis=1)
            rim = leaves[np.abs(away - self.radius) <= cell_widths(map)[leaves]]
            if len(rim) == 0:
                return
            split(map, rim, balanced=True)
            simulation.prepare()

    def _centres(self, cells: np.ndarray) -> np.ndarray:
        return self.simulation.map.numpy("centre")[cells]
