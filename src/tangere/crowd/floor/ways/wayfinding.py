"""The ways of everybody: a field for each aim and each width of people, and who has none.

Question: which field does somebody follow to an aim, and is there a way at all?
Method:   radii are put into classes of five centimetres, each as its widest person. Fields are marched when an aim or a
          class is new, and kept. Among a crowd a way takes longer by the speed that people have at the density there.
Known as: floor fields by exit; walking speed by density (Weidmann 1993).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from tangere.crowd.floor.plans.building import AnyPlan, FloorWithout
from tangere.crowd.floor.plans.narrow_doors import shapely_library
from tangere.crowd.floor.stages import START, Stage
from tangere.crowd.floor.ways.travel_fields import NO_WAY, FieldTable, WalkableNodes, field_table, marched, raster_for
from tangere.runtime import InputError

if TYPE_CHECKING:
    from tangere.crowd.floor.arrivals import Source
    from tangere.crowd.floor.people_state import PeopleState

#: Width of a class of radii [m].
_CLASS = 0.05
#: Weidmann 1993: speed is this part of the free one at density rho, 1 - exp(-gamma (1 / rho - 1 / most)).
_GAMMA, _MOST = 1.913, 5.4
#: No place is slower than by this factor; density is taken over squares of this side [m].
_SLOWEST, _SQUARE = 20.0, 1.0


class Wayfinding:
    """Fields of a plan."""

    def __init__(self, plan: AnyPlan) -> None:
        self.plan = plan
        self.numbers = np.empty((0, 0), int)  #: (stages, classes) numbers of fields, -1: none
        self._radii: list[float] = []  #: of the classes
        self._terrains: list[WalkableNodes] = []
        self._pairs: list[tuple[int, int]] = []  #: stage and class of each field
        self._goals: list[Stage] = []
        self._raster = raster_for(plan, 1.0)
        self.lengths = np.empty((0, 0), np.float32)  #: (fields, nodes) [m]
        self.directions = np.empty((0, 0, 2), np.float32)  #: (fields, nodes, 2)

    def update(self, stages: list[Stage], radii: np.ndarray) -> np.ndarray:
        """March what is new; (people,) the class of each."""
        classes, sizes = _classes(radii)
        aims = sum(stage.kind != int(START) and not stage.straight for stage in stages)
        raster = raster_for(self.plan, min(classes, default=1.0), aims * len(classes))
        if classes != self._radii:
            self._raster = raster
            self._terrains = [WalkableNodes(self.plan, self._raster, radius) for radius in classes]
            self._radii, self._pairs, self._goals = classes, [], []
        known = len(self._pairs)
        for stage in stages:
            if stage.kind != int(START) and not stage.straight and stage not in self._goals:
                self._goals.append(stage)
                self._pairs += [(stage.number, k) for k in range(len(classes))]
        new = self._pairs[known:]
        if new or not known:
            lengths, directions = marched([(self._terrains[k], stages[s].area, stages[s].sheet) for s, k in new])
            self.lengths = np.concatenate([self.lengths, lengths]) if known else lengths
            self.directions = np.concatenate([self.directions, directions]) if known else directions
        self.numbers = np.full((len(stages), max(len(classes), 1)), -1)
        for field, pair in enumerate(self._pairs):
            self.numbers[pair] = field
        return sizes

    def table(self, device: wp.Device) -> FieldTable:
        """The fields for kernels."""
        terrains = [self._terrains[k] for _, k in self._pairs]
        return field_table(terrains, self._raster, self.lengths, self.directions, device)

    def times(self, positions: np.ndarray, sheets: np.ndarray) -> np.ndarray:
        """(fields, nodes) lengths of ways, longer where these people are and on stairs."""
        raster = self._raster
        low = raster.origin
        cells = np.floor((positions - low) / _SQUARE).astype(int)
        shape = tuple((np.array(raster.shape) * raster.side / _SQUARE).astype(int) + 2)
        density = np.zeros((len(self.plan.sheets), *shape))
        np.add.at(density, (sheets, *np.clip(cells, 0, np.array(shape) - 1).T), 1.0 / _SQUARE**2)
        with np.errstate(divide="ignore"):
            part = 1.0 - np.exp(-_GAMMA * (1.0 / density - 1.0 / _MOST))
        slower = 1.0 / np.clip(part, 1.0 / _SLOWEST, 1.0)
        # Which way people go on stairs a field does not know: the mean of up and down.
        slower *= np.array([2.0 / (sheet.up + sheet.down) for sheet in self.plan.sheets])[:, None, None]
        i, j = (np.floor(np.arange(n) * raster.side / _SQUARE).astype(int) for n in raster.shape)
        crowding = slower[:, i[:, None], j].ravel()
        goals = {stage.number: stage for stage in self._goals}
        return marched([(self._terrains[k], goals[s].area, goals[s].sheet) for s, k in self._pairs], crowding)[0]

    def reroute(self, obstacles: list[tuple[int, Any]]) -> None:
        """March all fields anew around obstacles: their sheets and polygons."""
        plan = FloorWithout(self.plan, obstacles) if obstacles else self.plan
        self._terrains = [WalkableNodes(plan, self._raster, radius) for radius in self._radii]
        goals = {stage.number: stage for stage in self._goals}
        asked = [(self._terrains[k], goals[s].area, goals[s].sheet) for s, k in self._pairs]
        self.lengths, self.directions = marched(asked)

    def lengths_from(self, stage: int, size: int, places: np.ndarray, sheets: np.ndarray) -> np.ndarray:
        """(n,) of the ways from places to a stage [m], weighed as they are near walls; inf: there is none."""
        raster, field = self._raster, self.numbers[stage, size]
        at = (places - raster.origin) / raster.side
        corner = np.clip(np.floor(at).astype(int), 0, np.array(raster.shape) - 2)
        node = corner[:, None] + np.array(((0, 0), (0, 1), (1, 0), (1, 1)))
        there = self.lengths[field][(sheets[:, None] * raster.columns + node[..., 0]) * raster.rows + node[..., 1]]
        ways = there + raster.side * np.linalg.norm(at[:, None] - node, axis=2)
        # Where only some nodes have a way, those behind a wall or a door too narrow do not count if there are others.
        mixed = np.flatnonzero((there < NO_WAY).any(axis=1) & (there >= NO_WAY).any(axis=1))
        for sheet in np.unique(sheets[mixed]).tolist():
            some = mixed[sheets[mixed] == sheet]
            behind = self._are_behind(places[some], raster.origin + raster.side * node[some], size, sheet)
            ways[some] = np.where(behind & ~behind.all(axis=1, keepdims=True), np.inf, ways[some])
        best = ways.min(axis=1, initial=np.inf)
        return np.where(best < NO_WAY, best, np.inf)

    def _are_behind(self, places: np.ndarray, nodes: np.ndarray, size: int, sheet: int) -> np.ndarray:
        """(n, 4) whether a wall or a door too narrow stands between a place and each of four nodes (n, 4, 2)."""
        shapely = shapely_library()
        lines = np.concatenate([self.plan.sheets[sheet].walls, self._terrains[size].closed[sheet]])
        tree = shapely.STRtree(shapely.linestrings(lines))
        ends = np.stack([np.broadcast_to(places[:, None], nodes.shape), nodes], axis=2)
        found = np.zeros(len(nodes) * 4, bool)
        found[tree.query(shapely.linestrings(ends.reshape(-1, 2, 2)), predicate="intersects")[0]] = True
        return found.reshape(-1, 4)

    def check(self, stages: list[Stage], people: PeopleState, sources: list[Source], sizes: np.ndarray) -> None:
        """Raise if somebody has no way from where he begins, or from one of his stages, to any that follow."""
        number, position, _ = people.now()
        aim = people.progress["stage"][number] if len(number) else np.empty(0, int)
        for stage in stages:
            mine = aim == stage.number
            places, sheets, who = position[mine], people.sheets()[mine], sizes[number[mine]]
            if stage.kind != int(START):
                point = stage.area.intersection(self.plan.sheets[stage.sheet].polygon).representative_point()
                places, who = np.array([[point.x, point.y]]), np.array([sizes.max(initial=0)])
                sheets = np.array([stage.sheet])
            for source in sources:
                if source.start == stage.number:
                    places, who = source.slots, np.full(len(source.slots), sizes[source.numbers].max())
                    sheets = np.full(len(places), source.sheet)
            if not stage.following or not len(places):
                continue
            best = np.full(len(places), np.inf)
            for size in np.unique(who):
                chosen = who == size
                for other in stage.following:
                    near = np.zeros(int(chosen.sum()))
                    if not other.straight:
                        near = self.lengths_from(other.number, int(size), places[chosen], sheets[chosen])
                    best[chosen] = np.minimum(best[chosen], near)
            if np.isinf(best).any():
                self._tell(stage, places, best, float(self._radii[int(who[np.argmax(np.isinf(best))])]))

    def _tell(self, stage: Stage, places: np.ndarray, best: np.ndarray, radius: float) -> None:
        lost, (x, y) = int(np.isinf(best).sum()), places[np.argmax(np.isinf(best))]
        names = " or ".join(other.name for other in stage.following)
        doors = self.plan.doors(radius)
        hint = f"; {doors[-1]} is too narrow" if doors else ""
        who = "nobody" if stage.kind != int(START) else f"no way for {lost} of {len(best)}"
        begin = (
            f"{who} of radius {radius:g} m gets" if stage.kind != int(START) else f"{who} people of radius {radius:g} m"
        )
        place = f"({x:.2f}, {y:.2f})"
        raise InputError(f"to: {begin} from {place} to {names}{hint} (no_way='stay', or --stay, lets them stay)")


def _classes(radii: np.ndarray) -> tuple[list[float], np.ndarray]:
    """The widest radius of each class that there is, rising, and the class of each person."""
    if len(radii) == 0:
        return [], np.empty(0, int)
    step = np.ceil(radii / _CLASS - 1.0e-9).astype(int)
    kinds, sizes = np.unique(step, return_inverse=True)
    return [float(radii[sizes == k].max()) for k in range(len(kinds))], sizes
