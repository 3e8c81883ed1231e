"""A crowd in a map: point agents and bodies that go to their goals and keep clear of each other.

Question: where is everybody after the next step?
Method:   a step is a list of phases. Bodies move (they do not mind points); points see their neighbours, steer and move
          in one kernel; everybody is sorted by cell; now and then detours around walls are looked for, and cells are
          split where it is crowded and merged where it is not.
Sound:    all reads are of the step before, so that the same numbers come out for any number of threads.
Known as: agent-based crowd simulation with local avoidance (Pitiot 2015, chapter 8; in space section 9.1.1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

import numpy as np
import warp as wp

from tangere.cells import Density, checked_indices
from tangere.cells.maps import CellMap
from tangere.crowd.adaptation import CellAdaptation
from tangere.crowd.agents.body_agents import BodyAgents
from tangere.crowd.agents.cell_sizes import finest_level
from tangere.crowd.agents.neighbour_ranges import neighbourhoods_of
from tangere.crowd.agents.population import Population
from tangere.crowd.agents.relocation import place_points
from tangere.crowd.agents.step_kernel import Behaviour, StepLaunches, step_launches
from tangere.crowd.bodies import Body
from tangere.crowd.ground import Ground
from tangere.crowd.navigation.detours import Detours
from tangere.crowd.navigation.planning import Planner
from tangere.crowd.navigation.routes import Goals, WaypointLists
from tangere.crowd.observation import Observation, observe
from tangere.crowd.occupancy import is_occupied
from tangere.crowd.phase_timings import PhaseTimings
from tangere.crowd.steering.bubbles import Bubbles
from tangere.crowd.trajectories import Recorder, Trajectories
from tangere.crowd.validation import check_behaviour, group_numbers, heading_vectors, positive_each
from tangere.runtime import (
    Arrays,
    InputError,
    NonCopyable,
    check_kind,
    not_negative,
    on_own_threads,
    positive,
    using_threads,
    view_room,
    whole,
)

if TYPE_CHECKING:
    from tangere.crowd.obstacles import Obstacle

_Made = TypeVar("_Made")

#: Stiffness and damping of the bubbles of bodies [1/(m s^2), 1/s].
_BODY_PUSH = 30.0, 4.0
#: Of several tried in the scenes of bench/pitiot_crowd_figures; (8, 4) is better without bodies and worse among them.
_CROWDED = Density(12, 4)
#: How far points look ahead for walls, as a part of the range: many seconds of their way.
_AHEAD = 15.0


class Simulation(NonCopyable, instead="make another one, or keep the trajectories that run returns"):
    """Agents in a map.

    Args:
        map: the ground (flat or a surface) or space they are in; it is split and merged as they go. With a `FloorPlan`
            this makes a `FloorSimulation`, whose arguments and methods are others.
        behaviour: how points steer: `Bubbles`, `Orca` or your own.
        adaptive: when cells split and merge; None: never. `levels`: at most so fine; None: as fine as the range allows.
        adapt_every: steps between looks at the density; cells change when many are to, or at every eighth look.
        budget: at most so many splits and merges at a look, and no waiting for more.
        dt: length of a step [s]. goal_radius: a waypoint is reached within this distance [m].
        anticipation: how far ahead bodies push points aside [s]; 0: not at all.
        reroute: how often points whose waypoint is hidden by a wall or by the border of the map look for a way around
            it [s]; 0: never. It keeps the `clearance` from walls [m]; None: twice the radius of points (the median).
        whole_edges: keep cells so large that edges of bodies are seen as far as they act (see `edge_reach`), which by
            ellipses is farther than the range. False: as far as the cells around show, at least the range; then how
            far beside a long edge it pushes depends on the size of the cells.
        seed: of what is random in how points steer; 0 or above.
        separate: steer and move in two kernels, so that each has its time in `timings`.
        device: where to compute, and where the map goes; None: where the map is.
        threads: CPU threads; None means all, or TANGERE_THREADS.
    """

    @overload
    def __new__(cls, map: Ground[_Made], **settings: Any) -> _Made: ...

    @overload
    def __new__(cls, map: CellMap, **settings: Any) -> Self: ...

    def __new__(cls, map: CellMap | Ground[Any], **settings: Any) -> Any:
        """Of a map, or what another ground makes of it: of a floor plan a `FloorSimulation`."""
        return map.__simulation__(**settings) if isinstance(map, Ground) else super().__new__(cls)

    def __init__(
        self,
        map: CellMap,
        *,
        behaviour: Behaviour | None = None,
        adaptive: Density | None = _CROWDED,
        levels: int | None = None,
        adapt_every: int = 30,
        budget: int | None = None,
        dt: float = 1.0 / 30.0,
        goal_radius: float = 0.5,
        anticipation: float = 1.0,
        reroute: float = 1.0,
        clearance: float | None = None,
        whole_edges: bool = False,
        seed: int = 0,
        separate: bool = False,
        device: str | wp.Device | None = None,
        threads: int | None = None,
    ) -> None:
        if hasattr(map, "geom_type") or isinstance(map, str):
            raise InputError(f"map must be a CellMap or a FloorPlan, not {type(map).__name__}: FloorPlan(…) makes one")
        check_kind(map, CellMap, "map")
        if adaptive is not None:
            check_kind(adaptive, Density, "adaptive")
        self.dt = positive(dt, "dt")
        levels, budget = (None if x is None else whole(x, name) for x, name in ((levels, "levels"), (budget, "budget")))
        self.behaviour = Bubbles() if behaviour is None else behaviour
        check_behaviour(self.behaviour)
        self.goal_radius, every = positive(goal_radius, "goal_radius"), whole(adapt_every, "adapt_every", 1)
        self.separate, self.whole_edges = separate, whole_edges
        self.clearance = None if clearance is None else not_negative(clearance, "clearance")
        self._reroute_every = round(not_negative(reroute, "reroute") / self.dt)
        anticipation, self._seed = not_negative(anticipation, "anticipation"), whole(seed, "seed")
        self.steps = 0  #: done so far
        self.obstacles: list[Obstacle] = []  #: those put down and not taken away
        self.map, self.threads = map, threads
        with using_threads(threads):
            if device is not None:
                map.to_device(device)
            finest = finest_level(map, self.behaviour.range)
            self.points = Population(map)
            self.bodies = BodyAgents(map, anticipation)
        finest = finest if levels is None else min(levels, finest)
        self._adaptation = CellAdaptation(
            map, self.points, self.bodies, adaptive, finest=finest, every=every, budget=budget
        )
        self._phases = PhaseTimings(map.device, wait=separate)
        self._prepared_version = -1  #: of the map that kernels' arrays were made for; -1: agents have changed
        self._launches: tuple[tuple, StepLaunches] | None = None  #: and what they were prepared for
        self._detours: Detours | None = None

    def __repr__(self) -> str:
        who = f"{len(self.points)} points, {len(self.bodies)} bodies"
        return f"Simulation({who}, {len(self.map.leaves)} cells, t = {self.time:.2f} s)"

    def scene(self) -> Any:
        """The crowd as it is now, as a `tangere.scene.Scene` for pictures and the viewer; points by wanted speed."""
        return view_room().crowd_scene(self)

    def _repr_png_(self) -> bytes | None:
        """For notebooks: the crowd as it is now."""
        return view_room().png(self)

    @property
    def time(self) -> float:
        """Since the start [s]."""
        return self.steps * self.dt

    @property
    def positions(self) -> np.ndarray:
        """(n, 3) of the points [m]."""
        return self.points.by_number("position")

    @property
    def velocities(self) -> np.ndarray:
        """(n, 3) of the points [m/s]."""
        return self.points.by_number("velocity")

    @property
    def timings(self) -> dict[str, float]:
        """Seconds each phase of the last step took; steering has the time of moving too unless they are `separate`."""
        return dict(self._phases.last)

    @property
    def total_timings(self) -> dict[str, float]:
        """The same of all steps so far."""
        return dict(self._phases.total)

    @property
    def operations(self) -> list[int]:
        """Merges and splits of cells so far."""
        return self._adaptation.operations

    @property
    def adaptive(self) -> Density | None:
        """When cells split and merge; None: never. May be set."""
        return self._adaptation.limit

    @adaptive.setter
    def adaptive(self, limit: Density | None) -> None:
        if limit is not None:
            check_kind(limit, Density, "adaptive")
        self._adaptation.limit = limit

    @property
    def levels(self) -> int:
        """No cell gets finer than this level."""
        return self._adaptation.finest

    @property
    def cells(self) -> np.ndarray:
        """(n,) the cell of each point."""
        return self.map.arrays.cell.numpy()[self.points.by_number("dart")]

    @property
    def arrived(self) -> np.ndarray:
        """(n,) when each point was done with its route, for the first time [s]; inf before."""
        return self.points.arrived()

    @on_own_threads
    def add_points(
        self,
        positions: Arrays,
        *,
        goals: Goals = None,
        speed: float | Arrays = 1.4,
        radius: float | Arrays = 0.3,
        groups: Arrays | None = None,
        repeat: bool = False,
    ) -> np.ndarray:
        """Add point agents; returns their numbers.

        Args:
            positions: (n, 2) or (n, 3) [m].
            goals: (n, 2 | 3), or for each agent its waypoints (k, 2 | 3) [m]; None: stay here. Towards one that cannot
                be reached they press on.
            speed: wanted [m/s].
            radius: of the disc or ball that `Orca` keeps clear and whose overlaps are counted, at most half the range
                [m]; `Bubbles` keep their range.
            groups: a number for each agent; those of one group stay together (see `Bubbles.cohesion`). None: alone.
            repeat: after the last waypoint comes the first.
        """
        places, darts = place_points(self.map, positions, "positions")
        count = len(places)
        traits = {
            "radius": positive_each(radius, "radius", count),
            "speed": positive_each(speed, "speed", count),
            "group": group_numbers(groups, count),
            "repeat": int(repeat),
            "set_off": self.time,
        }
        wide = traits["radius"] > 0.5 * self.behaviour.range
        if wide.any():
            reason = f"more than half the range, {self.behaviour.range} m: it would not be seen that discs touch"
            raise InputError(f"radius: that of agent {int(np.argmax(wide))} is {reason}")
        numbers = self.points.add(places, darts, WaypointLists.of(goals, count, self.map.dimension), traits)
        self._prepared_version, self._adaptation.fitted = -1, False
        return numbers

    @on_own_threads
    def add_bodies(
        self,
        body: Body,
        positions: Arrays,
        *,
        headings: Arrays,
        goals: Goals = None,
        speed: float | Arrays = 3.0,
        repeat: bool = False,
    ) -> np.ndarray:
        """Add bodies of one shape; returns their numbers.

        Args:
            positions: (n, 2) or (n, 3) of their heads [m]. headings: (n, 2) or (n, 3), where they look.
        """
        check_kind(body, Body, "body")
        if self.map.dimension != 2:
            raise InputError("bodies live in 2-maps: in the plane or on a surface")
        places, darts = place_points(self.map, positions, "positions")
        ahead = heading_vectors(headings, len(places))
        speeds = positive_each(speed, "speed", len(places))
        if self.whole_edges:
            reach = self.edge_reach(body, float(speeds.max(initial=0.0)))
            finest = finest_level(self.map, reach, "the reach of the body's edges,")
            self._adaptation.finest = min(self._adaptation.finest, finest)
        numbers = self.bodies.add(body, places, darts, ahead, WaypointLists.of(goals, len(places)), speeds, repeat)
        self._prepared_version = -1
        return numbers

    def edge_reach(self, body: Body, speed: float) -> float:
        """How far an edge of a body that goes so fast may act on points [m]: its sides, and ahead of it."""
        sides = body.particles[body.edges]
        longest = float(np.linalg.norm(sides[:, 1] - sides[:, 0], axis=1).max())
        ahead = float(np.hypot(speed * self.bodies.anticipation, body.width / 2))
        acts = getattr(self.behaviour, "edge_reach", None)
        if acts is None:
            return self.behaviour.range
        return max(acts(longest), acts(ahead, ahead=True) if self.bodies.anticipation > 0 else 0.0)

    @on_own_threads
    def retarget(self, numbers: Arrays, goals: Goals) -> None:
        """Give points new goals, as in `add_points`."""
        chosen = checked_indices(numbers, "numbers", len(self.points), "points")
        self.points.retarget(chosen, WaypointLists.of(goals, len(chosen), self.map.dimension), self.time)
        self._prepared_version = -1

    @on_own_threads
    def plan(self, starts: Arrays, goals: Arrays, *, clearance: float = 0.4, penalty: float = 0.0) -> list[np.ndarray]:
        """Waypoints around obstacles, and with a penalty around crowds (see `Planner`), to be used as goals."""
        counts = self.points.counts() if penalty > 0 else None
        return Planner(self.map, clearance=clearance, counts=counts, penalty=penalty).routes(starts, goals)

    @on_own_threads
    def step(self) -> None:
        """Go on by `dt`. The first one after points were added fits the cells to them, unless on a budget.

        One that is interrupted (Ctrl-C) may be done in part: bodies have moved, points have not.
        """
        self._phases.begin_step()
        for obstacle in self.obstacles:
            obstacle.block_covered_cells()
        self.prepare()
        self._fit_cells()
        self._step_bodies()
        self._step_points()
        self.steps += 1
        if self._reroute_every and self.steps % self._reroute_every == 0:
            self.reroute(ahead=_AHEAD * self.behaviour.range)
        if self.adaptive is not None and self.steps % self._adaptation.every == 0:
            self._adapt_where_worthwhile()

    def run(
        self,
        seconds: float | None = None,
        *,
        steps: int | None = None,
        record: float = 0.5,
        progress: Callable[[int, int], object] | bool = False,
    ) -> Trajectories:
        """Go on for so long, or for so many steps, and record everything every `record` seconds.

        Args:
            seconds: how long, at least one step [s]; or give `steps`.
            progress: True shows a bar; a function is called with (steps done, steps in all) after each step, and may
                add agents (nan before they are there).
        """
        if (seconds is None) == (steps is None):
            raise InputError("run takes either seconds or steps")
        if seconds is not None:
            steps = max(1, round(positive(seconds, "seconds") / self.dt))
        count, every = whole(steps, "steps"), max(1, round(positive(record, "record") / self.dt))
        recorder = Recorder(self)
        recorder.record()
        for done in _counted(count, progress):
            self.step()
            if done % every == 0 or done == count:
                recorder.record()
            if callable(progress):
                progress(done, count)
        return recorder.trajectories()

    @on_own_threads
    def observe(self, reach: float | None = None) -> Observation:
        """Neighbours within `reach` [m] (default: the behaviour's range), overlaps, and the nearest of each point."""
        distance = self.behaviour.range if reach is None else not_negative(reach, "reach")
        if distance > self.behaviour.range:
            raise InputError(f"reach {distance} m is more than cells are sure to show, {self.behaviour.range} m")
        self.prepare()
        return observe([self.points.arrays, self.map.arrays, self.map.rings.table], distance, self.map.device)

    @on_own_threads
    def adapt(self, least: float = 0.0) -> int:
        """Merge and split cells by density, once, if at least this part of them is to be; returns how many were."""
        if self.adaptive is None:
            return 0
        with self._phases.phase("multiresolution"):
            self.prepare()
            chosen = self._adaptation.choose(least, self.steps)
            if chosen is None:
                return 0
            changed = self._adaptation.change(*chosen)
            detours = self._detours
            self.prepare()
            if detours is not None:
                detours.update_cells()
                self._detours = detours
            return changed

    @on_own_threads
    def block(self, cells: Arrays, *, blocked: bool = True) -> None:
        """Make cells without agents obstacles, or free them again; one that is split stands for all below it."""
        self.prepare()
        leaves = self.map.leaves_below(cells)
        wrong = leaves[is_occupied(self.points, self.bodies, leaves)] if blocked else leaves[:0]
        if len(wrong):
            raise InputError(f"cells: there are agents in cell {wrong[0]}")
        self.map.block("cell", leaves, blocked=blocked)
        self._prepared_version = -1

    @on_own_threads
    def reroute(self, *, clearance: float | None = None, ahead: float = np.inf) -> np.ndarray:
        """Send points whose waypoint is hidden by a wall or border around it; returns their numbers. Flat maps only.

        Args:
            clearance: distance kept from walls from now on [m]; None: as before.
            ahead: once a point has seen its waypoint, only walls so near may hide it [m].
        """
        self.clearance = self.clearance if clearance is None else not_negative(clearance, "clearance")
        if not ahead > 0:
            raise InputError(f"ahead must be positive, not {ahead}")
        self.prepare()
        clearance_now = self.clearance
        if clearance_now is None:
            clearance_now = 2.0 * float(np.median(self.points.traits["radius"])) if len(self.points) else 0.0
        if self._detours is None or self._detours.clearance != clearance_now:
            self._detours = Detours(self.map, self.points, clearance_now)
        hidden, around = self._detours.find(ahead)
        if len(self.points):
            self.points.set_detours(hidden, around)
        return hidden

    @on_own_threads
    def prepare(self) -> None:
        """Bring what kernels read up to date after the map or the agents have changed; a step does so by itself."""
        if self._prepared_version == self.map.version:
            return
        c = self.points.arrays
        c.neighbourhoods = neighbourhoods_of(self.map, self.behaviour.range)
        c.surface = int(self.map.is_surface)
        c.dt, c.seed = self.dt, self._seed
        c.clock.fill_(self.steps)
        self.points.relocate()
        self.bodies.relocate()
        parameters = np.asarray(self.behaviour.parameters(), float)
        self._parameters = wp.array(parameters, dtype=wp.float64, device=self.map.device)
        self._prepared_version = self.map.version
        self._launches = self._detours = None
        self._adaptation.update_cells()

    def _fit_cells(self) -> None:
        """Adapt the cells to a new crowd level by level, so that later steps find little to do."""
        if self._adaptation.fitted:
            return
        self._adaptation.fitted = True
        for _ in range(self.levels if self._adaptation.budget is None else 0):
            if self.adapt() == 0:
                return

    def _adapt_where_worthwhile(self) -> None:
        if self.adapt(self._adaptation.least_part_now()):
            self._adaptation.begin_waiting()

    def _step_bodies(self) -> None:
        if not len(self.bodies):
            return
        with self._phases.phase("bodies"):
            inputs = [self.map.arrays, self.points.arrays.neighbourhoods]
            self.bodies.routes.goal_radius = max(self.goal_radius, 1.0)
            self.bodies.step(inputs, (*_BODY_PUSH, self.behaviour.range), self.dt, self.time)

    def _step_points(self) -> None:
        if len(self.points):
            launches = self._prepared_launches()
            with self._phases.phase("behaviour"):
                if self.points.has_groups:
                    self.points.centre_groups()
                launches.steer.run()
            if launches.move is not None:
                with self._phases.phase("tracking"):
                    launches.move.run()
            with self._phases.phase("registration"):
                for part in launches.sort:
                    part.run()
        if len(self.bodies):
            with self._phases.phase("bodies"):
                self.bodies.register()

    def _prepared_launches(self) -> StepLaunches:
        """The launches of a step, prepared anew if anything they read has been replaced."""
        key = self._prepared_version, self.separate, self.bodies.edges.arrays
        if self._launches is None or self._launches[0] != key:
            points, device = self.points, self.map.device
            points.routes.goal_radius = self.goal_radius
            inputs = [points.arrays, self.map.arrays, self.map.rings.table, key[2], points.routes, self._parameters]
            sort = points.sort_launches()
            launches = step_launches(self.behaviour.steer, inputs, points.moved, sort, device, separate=self.separate)
            self._launches = key, launches
        return self._launches[1]


def _counted(count: int, progress: object) -> Iterator[int]:
    """1, 2, … count; with a bar if `progress` is True."""
    numbers = range(1, count + 1)
    if progress is not True:
        yield from numbers
        return
    from rich.progress import track

    yield from track(numbers, description="steps", total=count, transient=True)
