"""What is on a floor beside people: exits, waypoints, waiting places, queues, and lines where people are counted.

Question: where do people go, and where are they counted?
Method:   each is added to the plan, or to a storey of a building, and returned, to be given to others.
Known as: stages (JuPedSim); counting lines.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tangere.crowd.floor.floor_obstacles import FloorObstacle, checked_path
from tangere.crowd.floor.measures import CountingLine
from tangere.crowd.floor.people_state import PeopleState
from tangere.crowd.floor.placement import floats
from tangere.crowd.floor.plans.building import AnyPlan
from tangere.crowd.floor.plans.floor_plan import area_of
from tangere.crowd.floor.plans.narrow_doors import shapely_library
from tangere.crowd.floor.stages import EXIT, QUEUE, WAITING, WAYPOINT, Stage
from tangere.runtime import InputError, not_negative


class StagedFloor:
    """A plan with what people go to; `FloorSimulation` is one."""

    plan: AnyPlan
    people: PeopleState
    stages: list[Stage]  #: everything added that people go to or begin at
    lines: list[CountingLine]  #: those added
    obstacles: list[FloorObstacle]  #: those added
    _prepared: bool

    def add_exit(self, area: Any, *, storey: str | None = None, name: str = "") -> Stage:
        """A place where people leave: a polygon of which a part is on the plan.

        Args:
            storey: of a building, by its name; None: the first one. So it is wherever places are given.
        """
        return self._add_stage(EXIT, area, name or f"exit {len(self.stages)}", storey)

    def add_waypoint(
        self,
        area: Any,
        *,
        to: Any,
        choose: str = "nearest",
        shares: Any = None,
        straight: bool = False,
        storey: str | None = None,
        name: str = "",
    ) -> Stage:
        """A place that people go through: a polygon, after which they go on as in `add_people`.

        Args:
            straight: go straight at its middle, whatever is between, and not by the shortest way.
        """
        return self._add_stage(
            WAYPOINT, area, name or f"waypoint {len(self.stages)}", storey, to, choose, shares, straight=straight
        )

    def add_waiting_place(
        self,
        area: Any,
        *,
        to: Any,
        wait: float = 0.0,
        until: float = 0.0,
        choose: str = "nearest",
        shares: Any = None,
        storey: str | None = None,
        name: str = "",
    ) -> Stage:
        """A place where people stay for some time, and at least until some time [s], and then go on."""
        times = {"wait": not_negative(wait, "wait"), "opens": not_negative(until, "until")}
        name = name or f"waiting place {len(self.stages)}"
        return self._add_stage(WAITING, area, name, storey, to, choose, shares, **times)

    def add_queue(
        self,
        places: Any,
        *,
        to: Any,
        service: float,
        choose: str = "nearest",
        shares: Any = None,
        storey: str | None = None,
        name: str = "",
    ) -> Stage:
        """A queue: places (k, 2), the front first [m], where each person stands for the time of service [s].

        People come to the last place, take the first free one and move up; where none is free they wait near the last.
        """
        shapely = shapely_library()
        points = floats(places, "places")
        if points.ndim != 2 or points.shape[1] != 2 or len(points) == 0 or not np.isfinite(points).all():
            raise InputError(f"places must be points of shape (k, 2), not of shape {points.shape}")
        there = self.plan.sheets[self._sheet(storey)].contains(points)
        if not there.all():
            raise InputError(f"places: place {int(np.argmin(there))} is off the plan")
        tail = shapely.buffer(shapely.Point(points[-1]), 0.3)
        more = {"places": points, "service": not_negative(service, "service")}
        return self._add_stage(QUEUE, tail, name or f"queue {len(self.stages)}", storey, to, choose, shares, **more)

    def add_line(self, a: Any, b: Any, *, storey: str | None = None, name: str = "") -> CountingLine:
        """Note when each person first crosses the line from a to b; the moment is that of the crossing itself."""
        ends = floats([a, b], "add_line: ends")
        if ends.shape != (2, 2) or not np.isfinite(ends).all() or (ends[0] == ends[1]).all():
            raise InputError(f"add_line takes two different points of the plane, not {a} and {b}")
        line = CountingLine(self.people, len(self.lines), ends, name or f"line {len(self.lines)}", self._sheet(storey))
        self.lines.append(line)
        self.people.add_line()
        self._prepared = False
        return line

    def add_obstacle(self, area: Any, *, path: Any = None, storey: str | None = None, name: str = "") -> FloorObstacle:
        """A polygon in the way of people that may move; `reroute` finds ways around it where it is.

        Args:
            area: where it is when its path is at (0, 0).
            path: rows of (time, x, y) or (time, x, y, turn): from when on, and by how much it is moved and turned about
                its middle [s, m, m, rad]; straight between, and it stays at the last. None: it stays.
        """
        rows, sheet = checked_path(path), self._sheet(storey)
        obstacle = FloorObstacle(
            len(self.obstacles), area_of(area, "area"), rows, sheet, name or f"obstacle {len(self.obstacles)}"
        )
        self.people.read_back()
        here = self.people.sheets() == sheet
        near = shapely_library().dwithin(obstacle.area_now, shapely_library().points(self.people.now()[1][here]), 1e-5)
        if near.any():
            raise InputError(f"area: {obstacle.name} stands where person {self.people.now()[0][here][near][0]} is")
        self.obstacles.append(obstacle)
        self._prepared = False
        return obstacle

    def _add_stage(
        self,
        kind: Any,
        area: Any,
        name: str,
        storey: str | None = None,
        to: Any = None,
        choose: str = "nearest",
        shares: Any = None,
        **more: Any,
    ) -> Stage:
        polygon = area_of(area, "area")
        sheet = self._sheet(storey)
        if shapely_library().intersection(polygon, self.plan.sheets[sheet].polygon).area == 0.0:
            raise InputError(f"area: {name} lies off the plan")
        stage = Stage(len(self.stages), int(kind), polygon, name, sheet, **more)
        if kind != EXIT:
            stage.follow(to, choose, shares)
            self._check_own(stage)
        self.stages.append(stage)
        self._prepared = False
        return stage

    def _check_own(self, stage: Stage) -> None:
        """Raise if a stage leads to one of another simulation."""
        for other in stage.following:
            if other.number >= len(self.stages) or self.stages[other.number] is not other:
                raise InputError(f"to: {other.name} is of another simulation")

    def _sheet(self, storey: str | None) -> int:
        """The number of a storey."""
        if storey is None:
            return 0
        names = [sheet.name for sheet in self.plan.sheets]
        if storey not in names or not storey:
            known = ", ".join(map(repr, names)) if names != [""] else "none: this is one plan"
            raise InputError(f"storey: there is no {storey!r}, but {known}")
        return names.index(storey)
