"""A crowd in a map: point agents and bodies that go to their goals and keep clear of each other.

One step: bodies move (they do not mind points), points look around, steer and go in one kernel, everybody is sorted
by cell, and every few steps cells are split where it is crowded and merged where it is not. All reads are of the step
before, so that the same numbers come out for any number of threads.
Spec: specs/pitiot-multiresolution-interactions 1.2, 2.16-2.23.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import warp as wp

from tangere.cells import numbers_of
from tangere.cells.maps import CellMap, follow_heirs, merge, split
from tangere.cells.registration import Density
from tangere.crowd.agents.body_agents import BodyAgents
from tangere.crowd.agents.cell_sizes import finest_level
from tangere.crowd.agents.density import DensityMarks
from tangere.crowd.agents.neighbour_ranges import sight_of
from tangere.crowd.agents.population import Population
from tangere.crowd.agents.relocation import place_points
from tangere.crowd.agents.step_kernel import Behaviour, go_launch, step_launch
from tangere.crowd.bodies import Body
from tangere.crowd.navigation.detours import Detours
from tangere.crowd.navigation.planning import Planner
from tangere.crowd.navigation.routes import Goals, Ways
from tangere.crowd.observation import Observation, observe
from tangere.crowd.occupancy import leaves_below, taken
from tangere.crowd.steering.bubbles import Bubbles
from tangere.crowd.trajectories import Recorder, Trajectories
from tangere.crowd.validation import check_behaviour, directions, groups_of, positive_each
from tangere.runtime import Arrays, InputError, NonCopyable, check_kind, not_negative, positive, whole

if TYPE_CHECKING:
    from tangere.crowd.obstacles import Obstacle

__all__ = ["Simulation"]

#: Stiffness and damping of the bubbles of bodies [1/(m s^2), 1/s].
_BODY_PUSH = 30.0, 4.0
#: Of several tried in the scenes of bench/pitiot_crowd_figures; (8, 4) is better without bodies and worse among them.
_CROWDED = Density(12, 4)
#: Changing the map costs much the same for one cell as for many: it is put off until this part of the cells is to be
#: split or merged, for so many looks at most.
_WORTH, _PATIENCE = 0.15, 8
#: How far points look ahead for walls, as a part of the range: many seconds of their way.
_AHEAD = 15.0


class Simulation(NonCopyable, instead="make another one, or keep the trajectories that run returns"):
    """Agents in a map.

    Args:
        map: the ground (flat or a surface) or space they are in; it is split and merged as they go.
        behaviour: how points steer: `Bubbles`, `Orca` or your own.
        adaptive: when cells split and merge; None: never. `levels`: at most so fine; None: as fine as the range allows.
        adapt_every: steps between looks at the density; cells change when many are to, or at every eighth look.
        budget: at most so many splits and merges at a look, and no waiting for more.
        dt: length of a step [s]. goal_radius: a waypoint is reached within this distance [m].
        anticipation: how far ahead bodies push points aside [s]; 0: not at all.
        reroute: how often points whose waypoint is hidden by a wall look for a way around it [s]; 0: never. It keeps
            the `clearance` from walls [m]; None: twice the radius of points (the median).
        whole_edges: keep cells so large that edges of bodies are seen as far as they act (see `edge_reach`), which by
            ellipses is farther than the range. False: as far as the cells around show, at least the range; then how
            far beside a long edge it pushes depends on the size of the cells.
        seed: of what is random in how points steer; 0 or above.
        separate: run steering and going apart, so that each has its time in `timers`.
    """

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
    ) -> None:
        check_kind(map, CellMap, "map")
        if adaptive is not None:
            check_kind(adaptive, Density, "adaptive")
        self.map, self.dt, self.adaptive = map, positive(dt, "dt"), adaptive
        levels, budget = (None if x is None else whole(x, name) for x, name in ((levels, "levels"), (budget, "budget")))
        self.behaviour = Bubbles() if behaviour is None else behaviour
        check_behaviour(self.behaviour)
        self.goal_radius, self.adapt_every = positive(goal_radius, "goal_radius"), whole(adapt_every, "adapt_every", 1)
        self.budget, self.separate, self.whole_edges = budget, separate, whole_edges
        finest = finest_level(map, self.behaviour.range)
        self.levels = finest if levels is None else min(levels, finest)  #: no cell gets finer
        self.clearance = None if clearance is None else not_negative(clearance, "clearance")
        self._reroute_every = round(not_negative(reroute, "reroute") / self.dt)
        self.steps = 0  #: done so far
        self.timers = dict.fromkeys(("behaviour", "tracking", "registration", "bodies", "multiresolution"), 0.0)  #: [s]
        self.operations = [0, 0]  #: merges and splits so far
        self.points = Population(map)
        self.bodies = BodyAgents(map, not_negative(anticipation, "anticipation"))
        self.obstacles: list[Obstacle] = []  #: those put down and not taken away
        self._seed = whole(seed, "seed")
        self._version = -1
        self._fitted, self._waited = False, 0
        self._recorded: tuple | None = None
        self._crowding: DensityMarks | None = None
        self._detours: Detours | None = None

    def __repr__(self) -> str:
        who = f"{len(self.points)} points, {len(self.bodies)} bodies"
        return f"Simulation({who}, {len(self.map.leaves)} cells, t = {self.time:.2f} s)"

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
    def cells(self) -> np.ndarray:
        """(n,) the cell of each point."""
        return self.map.arrays.cell.numpy()[self.points.by_number("dart")]

    @property
    def arrived(self) -> np.ndarray:
        """(n,) when each point was done with its route, for the first time [s]; inf before."""
        return self.points.arrived()

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
            "group": groups_of(groups, count),
            "repeat": int(repeat),
            "set_off": self.time,
        }
        wide = traits["radius"] > 0.5 * self.behaviour.range
        if wide.any():
            reason = f"more than half the range, {self.behaviour.range} m: it would not be seen that discs touch"
            raise InputError(f"radius: that of agent {int(np.argmax(wide))} is {reason}")
        numbers = self.points.add(places, darts, Ways.of(goals, count, self.map.dimension), traits)
        self._version, self._fitted = -1, False
        return numbers

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
        ahead = directions(headings, len(places))
        speeds = positive_each(speed, "speed", len(places))
        if self.whole_edges:
            reach = self.edge_reach(body, float(speeds.max(initial=0.0)))
            self.levels = min(self.levels, finest_level(self.map, reach, "the reach of the body's edges,"))
        numbers = self.bodies.add(body, places, darts, ahead, Ways.of(goals, len(places)), speeds, repeat)
        self._version = -1
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

    def retarget(self, numbers: Arrays, goals: Goals) -> None:
        """Give points new goals, as in `add_points`."""
        chosen = numbers_of(numbers, "numbers", len(self.points), "points")
        self.points.retarget(chosen, Ways.of(goals, len(chosen), self.map.dimension), self.time)
        self._version = -1

    def plan(self, starts: Arrays, goals: Arrays, *, clearance: float = 0.4, penalty: float = 0.0) -> list[np.ndarray]:
        """Waypoints around obstacles, and with a penalty around crowds (see `Planner`), to be used as goals."""
        counts = self.points.counts() if penalty > 0 else None
        return Planner(self.map, clearance=clearance, counts=counts, penalty=penalty).routes(starts, goals)

    def step(self, count: int = 1) -> None:
        """Go on by so many steps. The first one after points were added fits the cells to them, unless on a budget.

        One that is interrupted (Ctrl-C) may be done in part: bodies have moved, points have not.
        """
        for _ in range(whole(count, "count")):
            for obstacle in self.obstacles:
                obstacle.settle()
            self.prepare()
            if not self._fitted:
                self._fit()
            self._step_bodies()
            self._step_points()
            self.steps += 1
            if self._reroute_every and self.steps % self._reroute_every == 0:
                self.reroute(ahead=_AHEAD * self.behaviour.range)
            if self.adaptive is not None and self.steps % self.adapt_every == 0:
                self._look()

    def run(
        self, seconds: float, *, record: float = 0.5, progress: Callable[[float], None] | None = None
    ) -> Trajectories:
        """Go on for so long and note everything every `record` seconds.

        Args:
            progress: hears the part done, and may add agents (nan before they are there).
        """
        recorder = Recorder(self)
        steps, every = (max(1, round(positive(x, n) / self.dt)) for x, n in ((seconds, "seconds"), (record, "record")))
        recorder.note()
        for k in range(steps):
            self.step()
            if (k + 1) % every == 0 or k + 1 == steps:
                recorder.note()
            if progress is not None:
                progress((k + 1) / steps)
        return recorder.result()

    def observe(self, reach: float | None = None) -> Observation:
        """Neighbours within `reach` [m] (default: the behaviour's range), overlaps, and the nearest of each point."""
        distance = self.behaviour.range if reach is None else not_negative(reach, "reach")
        if distance > self.behaviour.range:
            raise InputError(f"reach {distance} m is more than cells are sure to show, {self.behaviour.range} m")
        self.prepare()
        return observe([self.points.crowd, self.map.arrays, self.map.rings.table], distance, self.map.device)

    def adapt(self, least: float = 0.0) -> int:
        """Merge and split cells by density, once, if at least this part of them is to be; returns how many were."""
        if self.adaptive is None:
            return 0
        with self._timed("multiresolution"):
            self.prepare()
            map = self.map
            if self._crowding is None or self._crowding.limit != self.adaptive:
                self._crowding = DensityMarks(map, self.points.crowd, self.adaptive, self.levels)
            few, many = self._crowding.look(self.bodies.edges.arrays, self.budget, self.steps // self.adapt_every)
            if len(few) + len(many) <= least * self._crowding.leaves:
                return 0
            done = merge(map, few, balanced=True)
            if len(done):
                # Before a split takes the places of darts that are gone.
                follow_heirs(map, self.points.crowd.dart)
                self.bodies.follow_heirs()
            new = split(map, many, balanced=True)
            self.operations = [self.operations[0] + len(done), self.operations[1] + len(new)]
            detours = self._detours
            self.prepare()
            if detours is not None:
                detours.forget_cells()
                self._detours = detours
            return len(done) + len(new)

    def block(self, cells: Arrays, *, blocked: bool = True) -> None:
        """Make cells without agents obstacles, or free them again; one that is split stands for all below it."""
        self.prepare()
        leaves = leaves_below(self.map, cells)
        wrong = leaves[taken(self.points, self.bodies, leaves)] if blocked else leaves[:0]
        if len(wrong):
            raise InputError(f"cells: there are agents in cell {wrong[0]}")
        self.map.block("cell", leaves, blocked=blocked)
        self._version = -1

    def reroute(self, *, clearance: float | None = None, ahead: float = np.inf) -> np.ndarray:
        """Send points whose waypoint is hidden by a wall around it; returns their numbers. Flat maps only.

        Args:
            clearance: distance kept from walls from now on [m]; None: as before.
            ahead: once a point has seen its waypoint, only walls so near may hide it [m].
        """
        self.clearance = self.clearance if clearance is None else not_negative(clearance, "clearance")
        if not ahead > 0:
            raise InputError(f"ahead must be positive, not {ahead}")
        self.prepare()
        kept = self.clearance
        if kept is None:
            kept = 2.0 * float(np.median(self.points.traits["radius"])) if len(self.points) else 0.0
        if self._detours is None or self._detours.clearance != kept:
            self._detours = Detours(self.map, self.points, kept)
        hidden, around = self._detours.look(ahead)
        if len(self.points):
            self.points.send_around(hidden, around)
        return hidden

    def prepare(self) -> None:
        """Bring what kernels read up to date after the map or the agents have changed; a step does so by itself."""
        if self._version == self.map.version:
            return
        c = self.points.crowd
        c.sight = sight_of(self.map, self.behaviour.range)
        c.surface = int(self.map.dimension == 2 and not self.map.flat)
        c.dt, c.seed = self.dt, self._seed
        c.clock.fill_(self.steps)
        self.points.relocate()
        self.bodies.relocate()
        parameters = np.asarray(self.behaviour.parameters(), float)
        self._parameters = wp.array(parameters, dtype=wp.float64, device=self.map.device)
        self._version = self.map.version
        self._recorded = self._crowding = self._detours = None

    def _fit(self) -> None:
        """Adapt the cells to a new crowd level by level, so that the looks of later steps find little to do."""
        self._fitted = True
        for _ in range(self.levels if self.budget is None else 0):
            if self.adapt() == 0:
                return

    def _look(self) -> None:
        """Adapt the cells where that is worth it."""
        self._waited += 1
        at_once = self.budget is not None or self._waited >= _PATIENCE
        if self.adapt(0.0 if at_once else _WORTH):
            self._waited = 0

    def _step_bodies(self) -> None:
        if not len(self.bodies):
            return
        with self._timed("bodies"):
            inputs = [self.map.arrays, self.points.crowd.sight]
            self.bodies.routes.near = max(self.goal_radius, 1.0)
            self.bodies.step(inputs, (*_BODY_PUSH, self.behaviour.range), self.dt, self.time)

    def _step_points(self) -> None:
        if len(self.points):
            self._record()
            with self._timed("behaviour"):
                if self.points.has_groups:
                    self.points.centre_groups()
                self._steer.run()
            if self.separate:
                with self._timed("tracking"):
                    self._go.run()
            with self._timed("registration"):
                for part in self._settle:
                    part.run()
        if len(self.bodies):
            with self._timed("bodies"):
                self.bodies.register()

    def _record(self) -> None:
        """Prepare the launches of a step, unless nothing they read has been replaced."""
        key = self._version, self.separate, self.bodies.edges.arrays
        if self._recorded == key:
            return
        c, device, moved = self.points.crowd, self.map.device, self.points.moved
        self.points.routes.near = self.goal_radius
        inputs = [c, self.map.arrays, self.map.rings.table, key[2], self.points.routes, self._parameters]
        self._steer = step_launch(self.behaviour.steer, not self.separate, inputs, moved, device)
        if self.separate:
            self._go = go_launch(c, self.map.arrays, moved, device)
        self._settle = self.points.cell_sort()
        self._recorded = key

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        begin = clock.perf_counter()
        yield
        if self.separate and self.map.device.is_cuda:
            wp.synchronize_device(self.map.device)
        self.timers[stage] += clock.perf_counter() - begin
