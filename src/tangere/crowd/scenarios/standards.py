"""Tests of the RiMEA guideline and of IMO MSC.1/Circ.1238 for pedestrians, for any behaviour.

Question: does a model of pedestrians do what guidelines for evacuation analysis ask of one?
Method:   each test is a function of a behaviour that runs its scenario and tells what was asked, what was found, and
          whether it passes; None where there is no criterion. None of the criteria was read at its source: those of
          RiMEA 1 to 14 are as the test scripts of JuPedSim's repository tell them (versions 2.2.1 and 3.0 of the
          guideline), those of RiMEA 15 and 16 as they are commonly told, those of IMO as they are commonly quoted.
Known as: RiMEA guideline, tests 1 to 16; IMO MSC.1/Circ.1238, annex 3, tests 4, 8, 9, 10.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from tangere.crowd.agents.step_kernel import Behaviour
from tangere.crowd.floor import Building, FloorPlan, FloorSimulation, Stairs
from tangere.crowd.floor.plans.narrow_doors import shapely_library

#: Weidmann 1993: horizontal speeds on stairs, up and down [m/s].
_UP, _DOWN, _FREE = 0.61, 0.694, 1.34


@dataclass(frozen=True)
class Verdict:
    """What came of a test."""

    test: str
    asked: str
    found: str
    passed: bool | None  #: None: there is no criterion

    def __str__(self) -> str:
        result = {True: "passes", False: "does not pass", None: "no criterion"}[self.passed]
        return f"{self.test}: {result}: {self.found} (asked: {self.asked})"


Test = Callable[[Behaviour | None], Verdict]


def _box(x0: float, y0: float, x1: float, y1: float) -> Any:
    return shapely_library().box(x0, y0, x1, y1)


def _plan(*boxes: Any) -> FloorPlan:
    return FloorPlan(shapely_library().union_all(list(boxes)))


def rimea_1(behaviour: Behaviour | None = None) -> Verdict:
    """One person in a corridor."""
    simulation = FloorSimulation(_plan(_box(0, 0, 42, 2)), behaviour=behaviour, dt=0.02)
    simulation.add_people(np.array([[1.0, 1.0]]), to=simulation.add_exit(_box(41, 0, 42, 2)), speed=1.33)
    took = simulation.run(60.0, until="empty", record=None).evacuation_time
    return Verdict("RiMEA 1", "40 m at 1.33 m/s in 26 to 34 s", f"{took:.1f} s", 26.0 <= took <= 34.0)


def _on_stairs(behaviour: Behaviour | None, up: bool) -> float:
    storeys = {"lower": (_box(0, 0, 5, 2), 0.0), "upper": (_box(15, 0, 20, 2), 5.0)}
    house = Building(storeys, [Stairs("lower", ((5, 0), (5, 2)), "upper", ((15, 0), (15, 2)))])
    simulation = FloorSimulation(house, behaviour=behaviour, dt=0.02)
    begin, end = ("lower", "upper") if up else ("upper", "lower")
    way_out = simulation.add_exit(_box(19, 0, 20, 2) if up else _box(0, 0, 1, 2), storey=end)
    lines = [simulation.add_line((x, 0), (x, 2), storey=house.stairs[0].name) for x in (6, 14)]
    simulation.add_people(np.array([[2.0 if up else 18.0, 1.0]]), to=way_out, storey=begin, speed=_FREE)
    simulation.run(60.0, until="empty", record=None)
    return 8.0 / abs(float(lines[1].times[0] - lines[0].times[0]))


def rimea_2(behaviour: Behaviour | None = None) -> Verdict:
    """One person up stairs."""
    speed = _on_stairs(behaviour, up=True)
    return Verdict("RiMEA 2", f"keeps {_UP:.2f} m/s up 10 m of stairs", f"{speed:.3f} m/s", abs(speed / _UP - 1) < 0.05)


def rimea_3(behaviour: Behaviour | None = None) -> Verdict:
    """One person down stairs."""
    speed = _on_stairs(behaviour, up=False)
    asked = f"keeps {_DOWN:.2f} m/s down 10 m of stairs"
    return Verdict("RiMEA 3", asked, f"{speed:.3f} m/s", abs(speed / _DOWN - 1) < 0.05)


def rimea_4(behaviour: Behaviour | None = None) -> Verdict:
    """Speed against density in a corridor without ends: a ring of 2 m."""
    shapely = shapely_library()
    ring = shapely.Point(0, 0).buffer(11, quad_segs=16) - shapely.Point(0, 0).buffer(9, quad_segs=16)
    found = []
    for density in (0.5, 1.0, 2.0, 3.0):
        simulation = FloorSimulation(FloorPlan(ring), behaviour=behaviour, dt=0.05)
        way_out = simulation.add_exit(_box(8, -0.5, 12, 0.5))
        # The middles of three parts of the ring, one after the other, for ever.
        angles = np.array([[k * 2 * np.pi / 3 - 0.1, k * 2 * np.pi / 3 + 0.1] for k in range(3)])
        rims = [[(r * np.cos(a), r * np.sin(a)) for r, a in ((8, x), (12, x), (12, y), (8, y))] for x, y in angles]
        stages = [simulation.add_waypoint(shapely.Polygon(rim), to=way_out) for rim in rims]
        for stage, following in zip(stages, [*stages[1:], stages[0]], strict=True):
            stage.follow(following)
        count = round(density * ring.area)
        random = np.random.default_rng(1)
        turn = 2 * np.pi * (np.arange(count) + random.uniform(-0.2, 0.2, count)) / count
        track = 9.35 + 1.3 * ((np.arange(count) % 4) / 3.0)
        places = np.stack([track * np.cos(turn), track * np.sin(turn)], axis=1)
        parts = (np.floor(turn / (2 * np.pi / 3)).astype(int) + 1) % 3
        for k in range(3):
            simulation.add_people(places[parts == k], to=stages[k], radius=0.15, speed=_FREE)
        simulation.run(15.0, record=None)
        found.append(float(np.linalg.norm(simulation.velocities, axis=1).mean()))
    told = ", ".join(f"{speed:.2f}" for speed in found)
    falling = all(a >= b - 0.02 for a, b in pairwise(found)) and found[-1] < 0.6 * found[0]
    return Verdict("RiMEA 4", "speed falls with density", f"{told} m/s at 0.5, 1, 2, 3 /m²", falling)


def rimea_5(behaviour: Behaviour | None = None) -> Verdict:
    """Ten people who react after 10, 20, … 100 s."""
    simulation = FloorSimulation(_plan(_box(0, 0, 8, 5)), behaviour=behaviour, dt=0.1)
    way_out = simulation.add_exit(_box(7.5, 2, 8, 3))
    for k in range(10):
        place = np.array([[5.6 - 1.2 * (k % 5), 1.0 + 3.0 * (k // 5)]])
        simulation.add_people(place, to=way_out, start=10.0 * (k + 1))
    done = simulation.run(130.0, until="empty", record=0.1)
    late = []
    for number in range(10):
        mine = done.number == number
        going = np.linalg.norm(done.velocity[mine], axis=1) > 0.1
        late.append(done.times[done.frame[mine][np.argmax(going)]] - 10.0 * (number + 1))
    worst = float(np.abs(late).max())
    return Verdict("RiMEA 5", "everybody starts when told, to 0.2 s", f"{worst:.2f} s off", worst <= 0.2 + 1e-9)


def rimea_6(behaviour: Behaviour | None = None) -> Verdict:
    """Twenty people around a corner."""
    shapely = shapely_library()
    plan = FloorPlan("POLYGON ((0 0, 12 0, 12 12, 10 12, 10 2, 0 2, 0 0))")
    simulation = FloorSimulation(plan, behaviour=behaviour, dt=0.02)
    simulation.add_people(20, _box(0, 0, 6, 2), to=simulation.add_exit(_box(10, 11, 12, 12)), seed=1)
    done = simulation.run(90.0, until="empty", record=0.02)
    order = np.lexsort((done.frame, done.number))
    place, number = done.position[order], done.number[order]
    same = number[1:] == number[:-1]
    ways = shapely.linestrings(np.stack([place[:-1][same], place[1:][same]], axis=1))
    through = int(shapely.intersects(shapely.boundary(plan.polygon), ways).sum())
    left = int(np.isfinite(done.left).sum())
    found = f"{left} of 20 got there, {through} ways through walls"
    return Verdict("RiMEA 6", "20 people round a corner, through no wall", found, left == 20 and through == 0)


def rimea_7(behaviour: Behaviour | None = None) -> Verdict:
    """Walking speeds of four groups of ages."""
    groups = {"under 30": ((1.095, 0.17), (0.58, 1.61)), "30 to 50": ((1.475, 0.02), (1.41, 1.54))}
    groups |= {"over 50": ((1.045, 0.12), (0.68, 1.41)), "limited": ((0.61, 0.05), (0.46, 0.76))}
    found, passed = [], True
    for name, (speed, (least, most)) in groups.items():
        simulation = FloorSimulation(_plan(_box(0, 0, 30, 102)), behaviour=behaviour, dt=0.05)
        way_out = simulation.add_exit(_box(29, 0, 30, 102))
        starts = np.stack([np.full(50, 2.0), 2.0 + 2.0 * np.arange(50)], axis=1)
        lines = [simulation.add_line((x, 0), (x, 102)) for x in (5, 10)]
        simulation.add_people(starts, to=way_out, speed=speed, seed=2)
        simulation.run(40.0, until="empty", record=None)
        walked = 5.0 / (np.abs(lines[1].crossings) - np.abs(lines[0].crossings))
        found.append(f"{name} {walked.min():.2f} to {walked.max():.2f}")
        passed &= bool(walked.min() > least * 0.97 and walked.max() < most and abs(walked.mean() - speed[0]) < 0.05)
    return Verdict("RiMEA 7", "walked speeds within Weidmann's bounds", ", ".join(found) + " m/s", passed)


def rimea_8(behaviour: Behaviour | None = None) -> Verdict:
    """Parameters: how evacuation of one room depends on speed."""
    times = []
    for speed in (0.8, 1.1, 1.4):
        plan = _plan(_box(0, 0, 10, 10), _box(9.9, 4.4, 12, 5.6))
        simulation = FloorSimulation(plan, behaviour=behaviour, dt=0.05)
        way_out = simulation.add_exit(_box(11, 4.4, 12, 5.6))
        simulation.add_people(60, _box(0, 0, 9, 10), to=way_out, speed=speed, seed=1)
        times.append(simulation.run(300.0, until="empty", record=None).evacuation_time)
    told = ", ".join(f"{t:.0f}" for t in times)
    return Verdict("RiMEA 8", "influence of parameters is documented", f"{told} s at 0.8, 1.1, 1.4 m/s", None)


def _large_room(exits: int, behaviour: Behaviour | None) -> tuple[FloorSimulation, list[Any]]:
    """30 x 20 m with doors of 1 m in the long sides, and outside of them where people leave."""
    doors = [(7.0, -1.0), (22.0, -1.0), (7.0, 20.0), (22.0, 20.0)][:exits]
    boxes = [_box(x, y - 0.01 if y > 0 else y, x + 1, y + (1.0 if y > 0 else 1.01)) for x, y in doors]
    simulation = FloorSimulation(_plan(_box(0, 0, 30, 20), *boxes), behaviour=behaviour, dt=0.05)
    ends = [(x, y + 0.4 if y > 0 else y, x + 1, y + (1.0 if y > 0 else 0.6)) for x, y in doors]
    return simulation, [simulation.add_exit(_box(*end)) for end in ends]


def rimea_9(behaviour: Behaviour | None = None) -> Verdict:
    """1,000 people, four exits of 1 m, and then two of them; IMO 9 is the same."""
    times = []
    for exits in (4, 2):
        simulation, outs = _large_room(exits, behaviour)
        simulation.add_people(1000, _box(0.5, 0.5, 29.5, 19.5), to=outs, seed=1)
        times.append(simulation.run(1500.0, until="empty", record=None).evacuation_time)
    asked = "two of four exits closed: about twice the time (1.5 to 2.5)"
    found = f"{times[0]:.0f} and {times[1]:.0f} s, {times[1] / times[0]:.2f} times"
    return Verdict("RiMEA 9, IMO 9", asked, found, bool(1.5 < times[1] / times[0] < 2.5))


def rimea_10(behaviour: Behaviour | None = None) -> Verdict:
    """23 people in 12 cabins who are assigned exits; IMO 10 is the same."""
    low = [(2.5 * (k % 6), 0.0 if k < 6 else 5.4) for k in range(12)]
    cabins = [_box(x, y, x + 2.3, y + 2.0) for x, y in low]
    doors = [_box(x + 0.7, 1.99 if y == 0 else 5.19, x + 1.6, 2.21 if y == 0 else 5.41) for x, y in low]
    plan = _plan(_box(-2, 2.2, 17, 5.2), *cabins, *doors)
    simulation = FloorSimulation(plan, behaviour=behaviour, dt=0.05)
    main, second = simulation.add_exit(_box(-2, 2.2, -1, 5.2)), simulation.add_exit(_box(16, 2.2, 17, 5.2))
    assigned: list[int] = []
    for k, cabin in enumerate(cabins):
        count, to = (2 if k else 1), (main if k % 6 < 4 else second)
        simulation.add_people(count, cabin, to=to, seed=k)
        assigned += [to.number] * count
    done = simulation.run(120.0, until="empty", record=None)
    right = int((np.isfinite(done.left) & (done.exits == assigned)).sum())
    return Verdict("RiMEA 10, IMO 10", "23 people leave by the exit assigned", f"{right} of 23", right == 23)


def rimea_11(behaviour: Behaviour | None = None) -> Verdict:
    """1,000 people who choose the quickest of two exits."""
    simulation, outs = _large_room(2, behaviour)
    area = _box(0.5, 0.5, 14, 19.5)
    simulation.add_people(1000, area, to=outs, choose="quickest", radius=0.15, seed=1)
    done = simulation.run(1500.0, until="empty", record=None)
    second, left = int((done.exits == outs[1].number).sum()), int(np.isfinite(done.left).sum())
    found = f"{second} of 1,000 took the farther exit, {left} left"
    return Verdict(
        "RiMEA 11", "some take the farther exit when the nearer is jammed", found, 100 < second < 600 and left == 1000
    )


def rimea_12(behaviour: Behaviour | None = None) -> Verdict:
    """150 people, two rooms, a corridor of 1 m between them and an exit of 1 m."""
    plan = _plan(_box(0, 0, 10, 10), _box(9.9, 4.5, 15.1, 5.5), _box(15, 0, 25, 10), _box(24.9, 4.5, 27, 5.5))
    simulation = FloorSimulation(plan, behaviour=behaviour, dt=0.05)
    way_out = simulation.add_exit(_box(26, 4.5, 27, 5.5))
    first, last = simulation.add_line((12, 4), (12, 6)), simulation.add_line((25.5, 4), (25.5, 6))
    simulation.add_people(150, _box(0, 0, 9, 10), to=way_out, seed=1)
    done = simulation.run(600.0, until="empty", record=1.0)
    dense = done.density(1.0, end=60.0)
    jams = float(np.nanmax(dense[6:10, 3:7])), float(np.nanmax(dense[21:25, 3:7]))
    found = f"{jams[0]:.1f} and {jams[1]:.1f} /m², flows {first.flow:.2f} and {last.flow:.2f} /s"
    passed = bool(np.isfinite(done.left).all() and last.flow <= first.flow + 0.05 and jams[0] > 2.0 * jams[1])
    return Verdict("RiMEA 12", "a jam before the first bottleneck, none before the last", found, passed)


def rimea_13(behaviour: Behaviour | None = None) -> Verdict:
    """150 people from a room over a corridor to stairs of the same width."""
    storeys = {"lower": (shapely_library().union(_box(0, 0, 8, 10), _box(7.99, 4, 20, 6)), 0.0)}
    storeys["upper"] = (_box(26, 3, 32, 7), 4.0)
    house = Building(storeys, [Stairs("lower", ((20, 4), (20, 6)), "upper", ((26, 4), (26, 6)))])
    simulation = FloorSimulation(house, behaviour=behaviour, dt=0.05)
    way_out = simulation.add_exit(_box(30, 3, 32, 7), storey="upper")
    corridor, foot = simulation.add_line((10, 4), (10, 6)), simulation.add_line((19.5, 4), (19.5, 6))
    simulation.add_people(150, _box(0, 0, 8, 10), to=way_out, seed=1)
    done = simulation.run(600.0, until="empty", record=1.0)
    dense = done.on("lower").density(1.0, start=20.0, end=60.0)
    before, at = float(np.nanmean(dense[9:12, 4:6])), float(np.nanmean(dense[17:20, 4:6]))
    # Flow while people come: until the half of them have passed.
    flows = [74.0 / float(line.times[74] - line.times[0]) for line in (corridor, foot)]
    found = f"{at:.1f} /m² at the foot, {before:.1f} in the corridor; flows {flows[1]:.2f} and {flows[0]:.2f} /s"
    passed = bool(np.isfinite(done.left).all() and at > before and flows[1] <= flows[0] + 0.02)
    return Verdict("RiMEA 13", "a jam at the foot of stairs, flow there no more than in the corridor", found, passed)


def rimea_14(behaviour: Behaviour | None = None) -> Verdict:
    """A short way over another storey, or a long one on the level."""
    shapely = shapely_library()
    level = shapely.union_all([_box(0, 0, 6, 6), _box(24, 0, 30, 6), _box(0, 5.9, 2, 8), _box(0, 7.9, 30, 10)])
    level = shapely.union(level, _box(28, 5.9, 30, 8))
    storeys = {"level": (level, 0.0), "over": (_box(12, 1, 18, 5), 2.0)}
    stairs = [Stairs("level", ((6, 2), (6, 4)), "over", ((12, 2), (12, 4)))]
    stairs.append(Stairs("level", ((24, 2), (24, 4)), "over", ((18, 2), (18, 4))))
    names = {}
    for choose in ("nearest", "quickest"):
        simulation = FloorSimulation(Building(storeys, stairs), behaviour=behaviour, dt=0.05)
        way_out = simulation.add_exit(_box(26, 0, 30, 5), storey="level")
        over = simulation.add_waypoint(_box(14, 1, 16, 5), to=way_out, storey="over")
        around = simulation.add_waypoint(_box(14, 8, 16, 10), to=way_out, storey="level")
        numbers = simulation.add_people(20, _box(0, 0, 5, 5), to=[over, around], choose=choose, seed=1)
        simulation.step()
        names[choose] = int((simulation.people.trait("stage")[numbers] == over.number).sum())
        done = simulation.run(180.0, until="empty", record=None)
        if not np.isfinite(done.left).all():
            return Verdict("RiMEA 14", "the way chosen is documented", "not everybody left", False)
    found = f"{names['nearest']} of 20 take the stairs by length, {names['quickest']} by time"
    return Verdict("RiMEA 14", "the way chosen is documented", found, None)


def rimea_15(behaviour: Behaviour | None = None) -> Verdict:
    """A crowd round a corner, and along straight corridors as long as its inner and its outer side."""
    times = []
    corner = FloorPlan("POLYGON ((0 0, 16 0, 16 16, 12 16, 12 4, 0 4, 0 0))")
    for plan, end in ((corner, _box(12, 15, 16, 16)), (_plan(_box(0, 0, 24, 4)), _box(23, 0, 24, 4))):
        simulation = FloorSimulation(plan, behaviour=behaviour, dt=0.05)
        simulation.add_people(100, _box(0, 0, 10, 4), to=simulation.add_exit(end), seed=1)
        times.append(simulation.run(300.0, until="empty", record=None).evacuation_time)
    simulation = FloorSimulation(_plan(_box(0, 0, 32, 4)), behaviour=behaviour, dt=0.05)
    simulation.add_people(100, _box(0, 0, 10, 4), to=simulation.add_exit(_box(31, 0, 32, 4)), seed=1)
    times.append(simulation.run(300.0, until="empty", record=None).evacuation_time)
    found = f"{times[0]:.1f} s, straight {times[1]:.1f} s (inner) and {times[2]:.1f} s (outer side)"
    asked = "longer than straight along the inner side; no criterion for the outer one"
    return Verdict("RiMEA 15", asked, found, bool(times[0] > times[1]))


def rimea_16(behaviour: Behaviour | None = None) -> Verdict:
    """Groups of four in a hall."""
    spread = []
    for groups in (4, None):
        simulation = FloorSimulation(_plan(_box(0, 0, 40, 10)), behaviour=behaviour, dt=0.05)
        way_out = simulation.add_exit(_box(39, 0, 40, 10))
        simulation.add_people(40, _box(1, 0, 12, 10), to=way_out, groups=groups, seed=1)
        simulation.run(14.0, record=None)
        place = simulation.positions.reshape(10, 4, 2)
        away = np.linalg.norm(place - place.mean(axis=1, keepdims=True), axis=2)
        spread.append(float(np.median(away.max(axis=1))))
    found = f"{spread[0]:.1f} m from the middle of a group, {spread[1]:.1f} m of as many strangers"
    return Verdict("RiMEA 16", "groups stay together", found, spread[0] < 2.0 and spread[0] < 0.6 * spread[1])


def imo_4(behaviour: Behaviour | None = None) -> Verdict:
    """100 people and an exit of 1 m."""
    simulation = FloorSimulation(_plan(_box(0, 0, 8, 5), _box(7.99, 2, 10, 3)), behaviour=behaviour, dt=0.02)
    way_out, line = simulation.add_exit(_box(9, 2, 10, 3)), simulation.add_line((8.2, 1.9), (8.2, 3.1))
    simulation.add_people(100, _box(0, 0, 8, 5), to=way_out, radius=0.2, seed=1)
    simulation.run(300.0, until="empty", record=None)
    passed = bool(len(line.times) == 100 and line.flow <= 1.33)
    return Verdict("IMO 4", "at most 1.33 people per second", f"{line.flow:.2f} /s", passed)


def imo_8(behaviour: Behaviour | None = None) -> Verdict:
    """100 people through a corridor of 10 x 2 m that 0, 10, 50, 100 others come through."""
    times = []
    plan = _plan(_box(0, 0, 10, 10), _box(9.99, 4, 20.01, 6), _box(20, 0, 30, 10))
    for people in (0, 10, 50, 100):
        simulation = FloorSimulation(plan, behaviour=behaviour, dt=0.05)
        right, left = simulation.add_exit(_box(28, 0, 30, 10)), simulation.add_exit(_box(0, 0, 2, 10))
        going = simulation.add_people(100, _box(2.5, 0, 9, 10), to=right, radius=0.15, seed=1)
        if people:
            simulation.add_people(people, _box(21, 0, 27.5, 10), to=left, radius=0.15, seed=2)
        times.append(float(simulation.run(900.0, until="empty", record=None).left[going].max()))
    told = ", ".join(f"{t:.0f}" for t in times)
    rising = all(a < b for a, b in pairwise(times)) and times[-1] < 900.0
    return Verdict("IMO 8", "the more come the other way, the longer it takes", f"{told} s for 0, 10, 50, 100", rising)


#: All tests, by name; those that take long are in `LONG`.
TESTS: dict[str, Test] = {
    function.__name__: function
    for function in (
        rimea_1, rimea_2, rimea_3, rimea_4, rimea_5, rimea_6, rimea_7, rimea_8, rimea_9, rimea_10, rimea_11, rimea_12,
        rimea_13, rimea_14, rimea_15, rimea_16, imo_4, imo_8,
    )
}  # fmt: skip
#: Names of those with a thousand people.
LONG = ("rimea_9", "rimea_11")
