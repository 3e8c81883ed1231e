"""People on a floor plan: they come, go to their aims around each other and the walls, and leave.

Question: where is everybody after the next step, who has left and when?
Method:   a step is a few launches: see, steer and go; let people in; serve queues; sort by cell. Everything that they
          read is prepared when something has been added. Fields of ways are marched once for each aim and radius.
Sound:    nobody passes a wall; who has no way is told before anybody moves; the same bits for any number of threads.
Known as: microscopic evacuation simulation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import warp as wp

from tangere.cells.maps import MapArrays, RingTable
from tangere.crowd.agents.arrays import BodyEdges
from tangere.crowd.agents.step_kernel import Behaviour
from tangere.crowd.agents.wall_crossings import WALL_MARGIN
from tangere.crowd.floor.arrivals import QueueTable, Source, admit, serve, source_table
from tangere.crowd.floor.cell_grid import CellGrid
from tangere.crowd.floor.floor_obstacles import obstacle_launches, obstacle_table
from tangere.crowd.floor.floor_step import FloorArrays, begin_launch, choice_launch, rechoice_launch, step_launch
from tangere.crowd.floor.groups import group_launches, group_sizes, group_table, nearest_together, slowest_together
from tangere.crowd.floor.live_sort import live_sort_launches
from tangere.crowd.floor.people_state import PeopleState
from tangere.crowd.floor.placement import floats, scattered, slots_in, trait, usable_area
from tangere.crowd.floor.plans.building import AnyPlan, Building
from tangere.crowd.floor.plans.floor_plan import FloorPlan, area_of
from tangere.crowd.floor.plans.narrow_doors import shapely_library
from tangere.crowd.floor.plans.sheets import segments_of
from tangere.crowd.floor.records import FloorRecorder, FloorRun
from tangere.crowd.floor.staged_floor import StagedFloor
from tangere.crowd.floor.stages import NOWHERE, QUEUE, QUICKEST, START, Stage, stage_table
from tangere.crowd.floor.ways.wayfinding import Wayfinding
from tangere.crowd.steering.collision_free_speed import CollisionFreeSpeed
from tangere.crowd.validation import check_behaviour
from tangere.runtime import (
    InputError,
    NonCopyable,
    PreparedLaunch,
    check_kind,
    choose_device,
    not_negative,
    on_own_threads,
    positive,
    using_threads,
    view_room,
    whole,
)

#: How often who chooses the quickest way chooses again [s].
_RECHOOSE = 2.0
#: People that a source may have.
_MOST_PEOPLE = 10_000_000
#: Steps between looks at how many are there, on CUDA.
_LOOK = 50


class FloorSimulation(StagedFloor, NonCopyable, instead="make another one, or keep what run returns"):
    """People on a floor plan; `Simulation(plan, …)` makes one.

    Args:
        plan: where they may walk.
        behaviour: how they steer: `CollisionFreeSpeed` (default), `SocialForce`, `Orca`, `Bubbles` or your own.
        dt: length of a step [s].
        no_way: what to do when somebody has no way to any of his aims: "refuse" to run, or let him "stay".
        reroute: how often ways are found anew around obstacles [s]; 0: when `reroute` is called.
        seed: of what is random: places, traits, shares.
        device: where to compute; None: CUDA if present, else CPU. threads: CPU threads; None means all.

    Example:
        >>> import tangere as tg
        >>> plan = tg.crowd.FloorPlan("POLYGON ((0 0, 8 0, 8 4, 0 4, 0 0))")
        >>> sim = tg.crowd.Simulation(plan, dt=0.05)
        >>> way_out = sim.add_exit("POLYGON ((7 1, 8 1, 8 3, 7 3, 7 1))")
        >>> _ = sim.add_people(10, "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))", to=way_out)
        >>> done = sim.run(60, until="empty")
        >>> int(np.isfinite(done.left).sum())
        10
    """

    def __init__(
        self,
        plan: AnyPlan,
        *,
        behaviour: Behaviour | None = None,
        dt: float = 0.01,
        no_way: Literal["refuse", "stay"] = "refuse",
        reroute: float = 0.0,
        seed: int = 0,
        device: str | wp.Device | None = None,
        threads: int | None = None,
    ) -> None:
        check_kind(plan, (FloorPlan, Building), "plan")
        self.plan: AnyPlan = plan
        self.dt = positive(dt, "dt")
        self.behaviour: Behaviour = CollisionFreeSpeed(restlessness=2.0) if behaviour is None else behaviour
        check_behaviour(self.behaviour)
        if no_way not in ("refuse", "stay"):
            raise InputError(f"no_way is 'refuse' or 'stay', not {no_way!r}")
        self.no_way, self.seed = no_way, whole(seed, "seed")
        self.threads = None if threads is None else whole(threads, "threads", 1)
        self.device = choose_device(device)
        self._reroute_every = round(not_negative(reroute, "reroute") / self.dt)
        self.steps = 0  #: done so far
        self.stages, self.lines, self.obstacles = [], [], []
        self.people = PeopleState(self.device)
        self._sources: list[Source] = []
        self._random = np.random.default_rng(self.seed)
        self._prepared = False
        self._grid: CellGrid | None = None
        self._ways: Wayfinding | None = None
        self._queues: QueueTable | None = None
        self._table = source_table([], [], [], 0, self.device)
        self._launches: list[Any] = []

    def __repr__(self) -> str:
        return f"FloorSimulation({self.count} of {len(self.people)} people there, t = {self.time:.2f} s)"

    @property
    def time(self) -> float:
        """Since the start [s]."""
        return self.steps * self.dt

    @property
    def count(self) -> int:
        """How many people are there."""
        return self.people.count

    @property
    def numbers(self) -> np.ndarray:
        """(n,) of the people who are there, rising."""
        return np.sort(self.people.now()[0])

    @property
    def positions(self) -> np.ndarray:
        """(n, 2) of the people who are there, by number [m]."""
        number, position, _ = self.people.now()
        return position[np.argsort(number)]

    @property
    def sheets(self) -> np.ndarray:
        """(n,) by number: which of the plan's sheets people are on: storeys and then stairs of a building."""
        return self.people.sheets()[np.argsort(self.people.now()[0])]

    @property
    def heights(self) -> np.ndarray:
        """(n,) of the floor under the people who are there, by number [m]."""
        place, sheets = self.positions, self.sheets
        found = np.zeros(len(place))
        for k in np.unique(sheets).tolist():
            found[sheets == k] = self.plan.sheets[k].heights(place[sheets == k])
        return found

    @property
    def velocities(self) -> np.ndarray:
        """(n, 2) [m/s]."""
        number, _, velocity = self.people.now()
        return velocity[np.argsort(number)]

    @on_own_threads
    def add_people(
        self,
        people: Any,
        area: Any = None,
        *,
        to: Any,
        choose: Literal["nearest", "quickest", "shares"] = "nearest",
        shares: Any = None,
        radius: Any = 0.2,
        speed: Any = (1.34, 0.26),
        start: float = 0.0,
        groups: Any = None,
        storey: str | None = None,
        seed: int | None = None,
    ) -> np.ndarray:
        """Add people who are there from now on; returns their numbers.

        Args:
            people: how many, or where (n, 2) [m].
            area: the polygon that so many are scattered in; None: the whole plan.
            to: where they go: a stage, or several of which each chooses one.
            choose: the "nearest" by the length of the way, the "quickest" by its time among the crowd (chosen again
                every two seconds), or "shares" by chance.
            radius, speed: one number, (mean, deviation) of a normal distribution, or one for each [m, m/s].
            start: they stand still until then [s].
            groups: size of groups that stay together, or the sizes of all; None: everybody for himself.
            seed: of places and traits; None: what comes next.
        """
        random = self._random if seed is None else np.random.default_rng(whole(seed, "seed"))
        stage = Stage(len(self.stages), int(START), None, "start", opens=not_negative(start, "start"))
        stage.follow(to, choose, shares)
        self._check_own(stage)
        given = None if isinstance(people, (int, np.integer)) else floats(people, "people")
        if given is not None and area is not None:
            raise InputError("add_people takes places, or a number and an area")
        if given is not None and (given.ndim != 2 or given.shape[1] != 2):
            raise InputError(f"people must be how many, or their places (n, 2), not of shape {given.shape}")
        count = whole(people, "people", 1) if given is None else len(given)
        radii, speeds = trait(radius, "radius", count, random), trait(speed, "speed", count, random)
        self._check_width(radii)
        sheet = self._sheet(storey)
        together = None
        if groups is not None:
            together = group_sizes(groups, count)
            speeds = slowest_together(speeds, together)
        if given is None:
            room = usable_area(
                self.plan.sheets[sheet], None if area is None else area_of(area, "area"), float(radii.max()), "area"
            )
            number, taken, _ = self.people.now()
            here = self.people.sheets() == sheet
            room = self._without_obstacles(room, sheet, float(radii.max()))
            places = scattered(room, radii, taken[here], self.people.radius[number[here]], random, "area")
            if together is not None:
                places = places[nearest_together(places, together)]
        else:
            places = given
            self._check_places(places, sheet)
        self.stages.append(stage)
        numbers = self.people.add(radii, speeds, stage.number, together)
        self.people.put(numbers, places, sheet, self.time)
        self._prepared = False
        return numbers

    @on_own_threads
    def add_source(
        self,
        area: Any,
        *,
        rate: float,
        to: Any,
        start: float | None = None,
        until: float | None = None,
        count: int | None = None,
        choose: Literal["nearest", "quickest", "shares"] = "nearest",
        shares: Any = None,
        radius: Any = 0.2,
        speed: Any = (1.34, 0.26),
        regular: bool = True,
        groups: Any = None,
        storey: str | None = None,
        seed: int | None = None,
    ) -> np.ndarray:
        """Let people enter in an area while it runs, where there is room; returns their numbers.

        Args:
            rate: people per second. start: when the first comes [s]; None: now. until: nobody is due later [s].
            count: how many in all; give it, or `until`, or both.
            regular: one every 1 / rate seconds; False: at random moments (a Poisson process).
            groups: as in `add_people`; those of a group come together, when the first of them is due.
            to, choose, shares, radius, speed, seed: as in `add_people`.
        """
        rate, begin = positive(rate, "rate"), self.time if start is None else not_negative(start, "start")
        if until is None and count is None:
            raise InputError("add_source takes until, count or both: how long, or how many?")
        random = self._random if seed is None else np.random.default_rng(whole(seed, "seed"))
        most = whole(count, "count", 1) if count is not None else 0
        if until is not None:
            expected = max(0.0, (positive(until, "until") - begin) * rate)
            bound = int(expected + 1.0e-9) + 1 if regular else int(expected + 10.0 * np.sqrt(expected) + 20)
            most = min(most, bound) if count is not None else bound
        if most > _MOST_PEOPLE:
            raise InputError(f"add_source: {most:.2g} people are too many")
        gaps = np.full(most, 1.0 / rate) if regular else random.exponential(1.0 / rate, most)
        due = begin + np.cumsum(gaps) - (gaps[:1] if regular else 0.0)
        due = due if until is None else due[due <= until + 1.0e-9]
        if len(due) == 0:
            raise InputError(f"add_source: nobody comes between {begin:g} s and {until:g} s")
        stage = Stage(len(self.stages), int(START), None, "source")
        stage.follow(to, choose, shares)
        self._check_own(stage)
        radii, speeds = trait(radius, "radius", len(due), random), trait(speed, "speed", len(due), random)
        self._check_width(radii)
        sheet, together = self._sheet(storey), None
        if groups is not None:
            together = group_sizes(groups, len(due))
            speeds = slowest_together(speeds, together)
            due = due[np.searchsorted(together, together)]
        room = usable_area(self.plan.sheets[sheet], area_of(area, "area"), float(radii.max()), "area")
        largest = 1 if together is None else int(np.bincount(together).max())
        slots, each = slots_in(room, random, largest)  # obstacles are looked at when somebody comes
        self.stages.append(stage)
        numbers = self.people.add(radii, speeds, stage.number, together)
        self._note_arrivals()
        self._sources.append(Source(stage.number, numbers, due, slots, each, sheet))
        self._prepared = False
        return numbers

    @on_own_threads
    def prepare(self) -> None:
        """Bring what kernels read up to date; a step does so by itself. Who has no way is told here."""
        if self._prepared:
            return
        behaviour = self._fitted()
        reach = behaviour.range
        if self._ways is None:
            self._ways = Wayfinding(self.plan)
        sizes = self._ways.update(self.stages, self.people.radius)
        sides = sum(len(segments_of(obstacle.area)) for obstacle in self.obstacles)
        if self._grid is None or self._grid.range != reach or self._grid.more != sides:
            self._grid = CellGrid(self.plan, reach, self.device, more=sides)
        if self.no_way == "refuse":
            self._ways.check(self.stages, self.people, self._sources, sizes)
        self._note_arrivals()
        self.people.upload(self._grid, sizes, self.dt, self.steps, self.seed)
        floor = self._floor_arrays()
        self._make_launches(behaviour, floor)
        self._prepared = True

    @on_own_threads
    def step(self) -> None:
        """Go on by `dt`."""
        self.prepare()
        if self._reroute_every and self.obstacles and self.steps % self._reroute_every == 0:
            self.reroute()
        if self._has_quickest and self.steps % self._rechoose == 0:
            self._choose_again()
        for part in self._launches:
            part.run()
        self.steps += 1

    def run(
        self,
        seconds: float | None = None,
        *,
        steps: int | None = None,
        until: Literal["empty"] | None = None,
        record: float | None = 0.1,
        progress: Callable[[int, int], object] | bool = False,
    ) -> FloorRun:
        """Go on for so long, or for so many steps, and record who is where.

        Args:
            seconds: how long, at most [s]; or give `steps`.
            until: "empty": end when nobody is there or comes any more.
            record: seconds between frames; None: the first and the last only.
            progress: True shows a bar; a function is called with (steps done, steps in all) now and then.
        """
        if (seconds is None) == (steps is None):
            raise InputError("run takes either seconds or steps")
        if until not in (None, "empty"):
            raise InputError(f"until is 'empty' or None, not {until!r}")
        count = whole(steps, "steps") if seconds is None else max(1, round(positive(seconds, "seconds") / self.dt))
        every = count if record is None else max(1, round(positive(record, "record") / self.dt))
        with using_threads(self.threads):
            self.prepare()
            recorder = FloorRecorder(self)
            recorder.record()
            done = 0
            look = min(every, _LOOK if self.device.is_cuda else 10) if until == "empty" else every
            while done < count:
                block = min(look - done % look, every - done % every, count - done)
                self._run_steps(block)
                done += block
                empty = until == "empty" and self.is_empty
                if done % every == 0 or done == count or empty:
                    recorder.record()
                if callable(progress):
                    progress(done, count)
                if empty:
                    break
            return recorder.finished()

    @property
    def is_empty(self) -> bool:
        """Whether nobody is there, nor comes any more."""
        return self.count == 0 and self._waiting == 0

    @property
    def no_way_numbers(self) -> np.ndarray:
        """Numbers of the people who have no way to any of their aims."""
        self.prepare()
        inside = np.isfinite(self.people.trait("entered")) & ~np.isfinite(self.people.trait("left"))
        return np.flatnonzero(inside & (self.people.trait("stage") == NOWHERE))

    def scene(self) -> Any:
        """The people as they are now, as a `tangere.scene.Scene` for pictures and the viewer."""
        return view_room().floor_scene(self)

    def _repr_png_(self) -> bytes | None:
        """For notebooks: the plan and everybody on it."""
        return view_room().floor_png(self)

    def _run_steps(self, count: int) -> None:
        if self._has_quickest or (self._reroute_every and self.obstacles):
            for _ in range(count):
                self.step()
            return
        launches = self._launches
        for _ in range(count):
            for part in launches:
                part.run()
        self.steps += count

    @on_own_threads
    def reroute(self) -> None:
        """Find the ways anew around obstacles where they are now; one that was told `reroute` does so by itself."""
        self.prepare()
        assert self._ways is not None
        self._ways.reroute([(obstacle.sheet, obstacle.area_now) for obstacle in self.obstacles])
        self._floor.fields.direction.assign(self._ways.directions.reshape(-1, 2))
        self._floor.fields.length.assign(self._ways.lengths.ravel())
        self._floor.fields.time.assign(self._ways.lengths.ravel())
        rechoice_launch(self.people.arrays, self._floor, self.device, all_choices=True).run()

    @property
    def _waiting(self) -> int:
        """How many are still to come."""
        return int((self._table.first.numpy()[1:] - self._table.next.numpy()).sum()) if self._sources else 0

    def _note_arrivals(self) -> None:
        """Keep how many of each source have come, before the table is made anew."""
        came = self._table.next.numpy() - self._table.first.numpy()[:-1]
        more = [0] * (len(self._sources) - len(came))
        places = [*self._table.place.numpy().tolist(), *more]
        self._table = source_table(self._sources, [*came.tolist(), *more], places, self.seed, self.device)

    def _fitted(self) -> Behaviour:
        fit = getattr(self.behaviour, "fitted", None)
        if fit is None or len(self.people) == 0:
            return self.behaviour
        fastest = max(1.0, *(max(sheet.up, sheet.down) for sheet in self.plan.sheets))  # moving stairs, of level ground
        return fit(float(self.people.radius.max()), fastest * float(self.people.speed.max()))

    def _check_width(self, radii: np.ndarray) -> None:
        fixed = getattr(self.behaviour, "fitted", None) is None or getattr(self.behaviour, "cutoff", None) is not None
        wide = radii > 0.5 * self.behaviour.range
        if fixed and wide.any():
            limit = f"half the range of the behaviour, {self.behaviour.range:g} m"
            raise InputError(f"radius: that of person {int(np.argmax(wide))} is more than {limit}")

    def _without_obstacles(self, room: Any, sheet: int, radius: float) -> Any:
        shapely = shapely_library()
        areas = [shapely.buffer(o.area_now, radius + 1.0e-5) for o in self.obstacles if o.sheet == sheet]
        room = shapely.difference(room, shapely.union_all(areas)) if areas else room
        if room.is_empty:
            raise InputError("area: obstacles leave no room in it")
        return room

    def _check_places(self, places: np.ndarray, sheet: int) -> None:
        if not np.isfinite(places).all():
            raise InputError(f"people: place {int(np.argwhere(~np.isfinite(places))[0, 0])} is not finite")
        wrong = ~self.plan.sheets[sheet].contains(places)
        if wrong.any():
            raise InputError(f"people: place {int(np.argmax(wrong))} is on a wall or off the plan")
        near = self.plan.sheets[sheet].distance_to_walls(places) <= 2.0 * WALL_MARGIN
        if near.any():
            raise InputError(f"people: place {int(np.argmax(near))} is on a wall")
        for obstacle in self.obstacles:
            inside = shapely_library().dwithin(obstacle.area_now, shapely_library().points(places), 1.0e-5)
            if obstacle.sheet == sheet and inside.any():
                raise InputError(f"people: place {int(np.argmax(inside))} is in {obstacle.name}")
        everybody = np.concatenate([self.people.now()[1][self.people.sheets() == sheet], places])
        _, first, same = np.unique(everybody, axis=0, return_index=True, return_inverse=True)
        again = first[same.ravel()] != np.arange(len(everybody))
        if again.any():
            raise InputError(f"people: place {int(np.argmax(again)) - len(everybody) + len(places)} is taken already")

    def _floor_arrays(self) -> FloorArrays:
        assert self._grid is not None
        assert self._ways is not None
        floor, device = FloorArrays(), self.device
        floor.cells, floor.fields = self._grid.arrays, self._ways.table(device)
        floor.stages = stage_table(self.stages, self._ways.numbers, self.seed, device)
        floor.people, floor.live = self.people.people, self.people.live
        floor.groups = group_table(self.people.group, device)
        floor.obstacles = obstacle_table(self.obstacles, self.plan, self._grid, device)
        for obstacle in self.obstacles:
            obstacle.follow(floor.obstacles)
        ends = np.array([line.ends.ravel() for line in self.lines]).reshape(-1, 4)
        floor.line = wp.array(ends, dtype=wp.vec4d, device=device)
        sheets = np.array([line.sheet for line in self.lines], np.int32)
        floor.line_sheet = wp.array(sheets, dtype=wp.int32, device=device)
        places = np.concatenate([np.empty((0, 2)), *(stage.places for stage in self.stages)])
        floor.place = wp.array(places, dtype=wp.vec2d, device=device)
        first = np.cumsum([0, *(len(stage.places) for stage in self.stages)])
        floor.place_first = wp.array(first.astype(np.int32), dtype=wp.int32, device=device)
        self._floor = floor
        return floor

    def _make_launches(self, behaviour: Behaviour, floor: FloorArrays) -> None:
        people, device = self.people, self.device
        crowd, moved = people.arrays, people.moved
        map, rings, edges = MapArrays(), RingTable(), BodyEdges()
        map.dimension = 2
        parameters = wp.array(np.asarray(behaviour.parameters(), float), dtype=wp.float64, device=device)
        self._launches = []
        if (people.group >= 0).any():
            self._launches += group_launches(floor.groups, crowd, floor.cells, people.live, device)
            for part in self._launches:
                part.run()
        begin_launch(crowd, floor, device).run()
        self._launches += [step_launch(behaviour.steer, [crowd, map, rings, edges, parameters, floor], moved, device)]
        if any(stage.following and (stage.kind != int(START) or stage.opens > self.time) for stage in self.stages):
            self._launches.append(choice_launch(crowd, floor, moved, device))
        queues = [stage for stage in self.stages if stage.kind == int(QUEUE)]
        if queues:
            self._queues = self._queue_table(queues, len(floor.place))
            self._launches.append(PreparedLaunch(serve, [crowd, floor, self._queues, moved], device, dim=1, grain=1))
        if self._sources:
            self._launches.append(PreparedLaunch(admit, [crowd, floor, self._table, moved], device, dim=1, grain=1))
        self._launches += live_sort_launches(moved, people.live, crowd, device)
        if self.obstacles:
            moving = obstacle_launches(floor.obstacles, crowd, floor.cells, people.live, device)
            moving[-1].run()
            self._launches += moving
        self._has_quickest = any(stage.choice == int(QUICKEST) and stage.following for stage in self.stages)
        self._rechoose = max(1, round(_RECHOOSE / self.dt))

    def _queue_table(self, queues: list[Stage], places: int) -> QueueTable:
        """The queues for kernels, with those who stand in them."""
        table, before = QueueTable(), self._queues
        stage, rank = self.people.trait("stage"), self.people.trait("rank")
        first = np.cumsum([0, *(len(s.places) for s in self.stages)])
        member, count, served = np.zeros(places, np.int32), [], []
        for queue in queues:
            inside = np.flatnonzero((stage == queue.number) & (rank >= 0))
            member[first[queue.number] + rank[inside]] = inside
            count.append(len(inside))
            served.append(np.inf)
            if before is not None and queue.number in before.stage.numpy():
                served[-1] = before.served.numpy()[list(before.stage.numpy()).index(queue.number)]
        table.stage = wp.array([q.number for q in queues], dtype=wp.int32, device=self.device)
        table.service = wp.array([q.service for q in queues], dtype=wp.float64, device=self.device)
        table.count = wp.array(np.array(count, np.int32), dtype=wp.int32, device=self.device)
        table.member = wp.array(member, dtype=wp.int32, device=self.device)
        table.away = wp.zeros(places, dtype=wp.float64, device=self.device)
        table.served = wp.array(np.array(served), dtype=wp.float64, device=self.device)
        return table

    def _choose_again(self) -> None:
        """March the times of ways among the crowd as it is now, and let those choose again who take the quickest."""
        assert self._ways is not None
        times = self._ways.times(self.people.now()[1], self.people.sheets())
        self._floor.fields.time.assign(times.ravel())
        rechoice_launch(self.people.arrays, self._floor, self.device).run()
