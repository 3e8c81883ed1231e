"""A round obstacle that is put down, taken away and moved while a crowd is there: cells around it get finer.

Question: which cells does it block now, with agents about?
Method:   cells are split along its rim as far as the simulation allows, and every cell whose centre it covers is
          blocked as soon as nobody is in it, which every step looks for. Where it leaves, cells are freed unless
          another obstacle covers them, and merge again by density.
Sound:    nobody is ever in a blocked cell: whoever is caught inside stays in his cell until it goes on.
Known as: dynamic obstacles, as marked cells (Pitiot 2015, section 8.1) of a map that adapts (chapter 6).
"""

from __future__ import annotations

import numpy as np

from tangere.cells.maps import split
from tangere.crowd.agents.cell_sizes import cell_widths
from tangere.crowd.occupancy import is_occupied
from tangere.crowd.simulation import Simulation
from tangere.runtime import Arrays, InputError, positive, to_numpy


class Obstacle:
    """A disc (flat maps) or ball (space) that agents go around; every step of the simulation blocks what it covers.

    Args:
        centre: (2,) or (3,), somewhere in the map [m]. radius: [m].
    """

    def __init__(self, simulation: Simulation, centre: Arrays, radius: float) -> None:
        if simulation.map.is_surface:
            raise InputError("obstacles are put into flat maps or into space")
        self.simulation, self.radius = simulation, positive(radius, "radius")
        self._blocked = np.empty(0, np.int64)
        #: Covered and not blocked, and in which version of the map.
        self._pending, self._pending_version = np.empty(0, np.int64), -1
        self.centre = self._checked_centre(centre)  #: (3,) [m]
        simulation.obstacles.append(self)
        self.move(centre)

    @property
    def cells(self) -> np.ndarray:
        """The cells that are blocked now."""
        return self._blocked

    def move(self, centre: Arrays) -> None:
        """Put it somewhere else, (2,) or (3,) [m]."""
        self._check_present()
        self.centre, self._pending_version = self._checked_centre(centre), -1
        self._follow_splits()
        self._unblock(self._blocked[~self._covers(self._blocked)])
        self._split_rim()
        self.block_covered_cells()

    def block_covered_cells(self) -> None:
        """Block what it covers and nobody is in any more; every step does."""
        self._check_present()
        simulation, map = self.simulation, self.simulation.map
        self._follow_splits()
        if self._pending_version != map.version:
            leaves = map.leaves[map.arrays.obstacle.numpy()[map.leaves] == 0]
            self._pending, self._pending_version = leaves[self._covers(leaves)], map.version
        covered = self._pending
        if len(covered):
            simulation.prepare()
            fresh = covered[~is_occupied(simulation.points, simulation.bodies, covered)]
            if len(fresh):
                simulation.block(fresh)
                self._blocked = np.concatenate([self._blocked, fresh])

    def remove(self) -> None:
        """Take it away."""
        if self in self.simulation.obstacles:
            self.simulation.obstacles.remove(self)
        self._follow_splits()
        self._unblock(self._blocked)

    def _check_present(self) -> None:
        if self not in self.simulation.obstacles:
            raise InputError("the obstacle was taken away: put down another one")

    def _checked_centre(self, centre: Arrays) -> np.ndarray:
        place = to_numpy(centre, "centre").reshape(-1)
        wanted = (2, 3) if self.simulation.map.dimension == 2 else (3,)
        if len(place) not in wanted or not np.isfinite(place).all():
            raise InputError(f"centre must be {' or '.join(map(str, wanted))} finite numbers, not {place.tolist()}")
        place = np.concatenate([place, np.zeros(3 - len(place))])
        low, high = self.simulation.map.positions.min(axis=0), self.simulation.map.positions.max(axis=0)
        if ((place < low) | (place > high)).any():
            raise InputError(f"centre {np.round(place, 6).tolist()} is outside the map")
        return place

    def _unblock(self, cells: np.ndarray) -> None:
        if len(cells) == 0:
            return
        self._blocked = np.setdiff1d(self._blocked, cells)
        self.simulation.block(cells, blocked=False)
        for other in self.simulation.obstacles:
            if other is not self:
                other.block_covered_cells()

    def _follow_splits(self) -> None:
        """Cells may have been split since, to be not much coarser than their neighbours."""
        map = self.simulation.map
        while len(parents := self._blocked[map.arrays.first_child.numpy()[self._blocked] >= 0]):
            children = [child for parent in parents for child in map.children(int(parent))]
            self._blocked = np.concatenate([np.setdiff1d(self._blocked, parents), children]).astype(np.int64)

    def _split_rim(self) -> None:
        simulation, map = self.simulation, self.simulation.map
        for _ in range(simulation.levels):
            leaves = map.leaves
            leaves = leaves[(map.levels[leaves] < simulation.levels) & (map.arrays.obstacle.numpy()[leaves] == 0)]
            away = np.linalg.norm(self._centres(leaves) - self.centre, axis=1)
            rim = leaves[np.abs(away - self.radius) <= cell_widths(map)[leaves]]
            if len(rim) == 0:
                return
            simulation.operations[1] += len(split(map, rim, balanced=True))
            simulation.prepare()

    def _covers(self, cells: np.ndarray) -> np.ndarray:
        return np.linalg.norm(self._centres(cells) - self.centre, axis=1) <= self.radius

    def _centres(self, cells: np.ndarray) -> np.ndarray:
        return self.simulation.map.numpy("centre")[cells]
