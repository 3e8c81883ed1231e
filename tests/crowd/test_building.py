"""Storeys joined by stairs are one surface: people walk, see and are stopped over joints as on one plan."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from oracles.floor_plans import crossings
from tangere.crowd import Building, CollisionFreeSpeed, FloorPlan, Orca, Simulation, SocialForce, Stairs
from tangere.runtime import InputError

shapely = pytest.importorskip("shapely")
pytestmark = pytest.mark.long_in_debug


def house(**stairs) -> Building:
    """Two storeys that lie over each other in part, and stairs of 5 m between them."""
    storeys = {"ground": (shapely.box(0, 0, 10, 6), 0.0), "upper": (shapely.box(4, 0, 24, 6), 3.0)}
    return Building(storeys, [Stairs("ground", ((10, 2), (10, 4)), "upper", ((15, 2), (15, 4)), **stairs)])


def stacked(flights: int = 3) -> Building:
    """Storeys over each other and stairs straight over each other."""
    storeys = {f"storey {k}": (shapely.box(0, 0, 14, 8), 3.0 * k) for k in range(flights + 1)}
    flights_of = [Stairs(f"storey {k}", ((4, 3), (4, 5)), f"storey {k + 1}", ((9, 3), (9, 5))) for k in range(flights)]
    return Building(storeys, flights_of)


def test_sheets_are_the_storeys_less_the_stairs_and_the_stairs():
    ground, upper, flight = house().sheets
    assert ground.polygon.equals(shapely.box(0, 0, 10, 6))
    assert upper.polygon.equals(shapely.box(4, 0, 24, 6) - shapely.box(10, 2, 15, 4))
    assert flight.polygon.equals(shapely.box(10, 2, 15, 4))
    lengths = [np.linalg.norm(s.walls[:, 1] - s.walls[:, 0], axis=1).sum() for s in (ground, upper, flight)]
    np.testing.assert_allclose(lengths, [32 - 2, 52 + 14 - 2, 10], atol=1e-6)
    assert flight.slope == (1.0, 0.0)
    np.testing.assert_allclose(flight.heights(np.array([[10.0, 3], [12.5, 2], [15, 4]])), [0, 1.5, 3], atol=1e-12)


@pytest.mark.parametrize("behaviour", [CollisionFreeSpeed(), SocialForce(), Orca()], ids=lambda b: type(b).__name__)
def test_a_level_building_is_the_plan_that_it_is_made_of(behaviour):
    """Rooms and a passage as one plan, and as storeys joined by a ramp of no height: the same ways."""
    rooms, passage = [shapely.box(0, 0, 8, 6), shapely.box(11, 0, 19, 6)], shapely.box(8, 2, 11, 4)
    plan = FloorPlan(shapely.union_all([*rooms, passage]))
    level = Building(
        {"left": (rooms[0], 0.0), "right": (rooms[1], 0.0)},
        [Stairs("left", ((8, 2), (8, 4)), "right", ((11, 2), (11, 4)), up=1.0, down=1.0)],
    )
    ends = []
    random = np.random.default_rng(3)
    starts = np.stack(np.meshgrid(np.linspace(4, 7.5, 6), np.linspace(1, 5, 7)), axis=-1).reshape(-1, 2)
    starts = starts + random.uniform(-0.05, 0.05, starts.shape)
    for ground, storey in ((plan, None), (level, "right")):
        simulation = Simulation(ground, behaviour=behaviour, dt=0.02, device="cpu")
        way_out = simulation.add_exit(shapely.box(17, 0, 19, 6), storey=storey)
        simulation.add_people(starts, to=way_out, speed=1.3)
        simulation.run(1.2)
        ends.append(simulation.positions)
    assert (ends[0][:, 0] > 8.2).sum() > 2  # over the joint
    np.testing.assert_allclose(*ends, atol=1e-5)


def test_people_on_different_storeys_do_not_see_each_other():
    """Somebody straight above changes nothing, bit for bit, also near the stairs."""
    ends = []
    for more in (False, True):
        simulation = Simulation(house(), dt=0.05, device="cpu")
        way_out = simulation.add_exit(shapely.box(0, 0, 1, 6), storey="ground")
        simulation.add_people(np.array([[9.5, 3.0], [6.0, 3.0]]), to=way_out, speed=1.2)
        if more:
            hold = simulation.add_waiting_place(shapely.box(4, 0, 12, 6), to=way_out, until=1e6, storey="upper")
            places = np.array([[9.0, 3.1], [5.5, 2.9], [9.8, 3.3], [8.5, 2.5]])
            simulation.add_people(places, to=hold, storey="upper", speed=1.0)
        done = simulation.run(5.0)
        ends.append(done.position[done.number < 2])
    np.testing.assert_array_equal(*ends)


def test_people_see_each_other_over_a_joint():
    """Who stands on the stairs just beyond the joint slows down who comes from the storey."""
    simulation = Simulation(house(), dt=0.05, device="cpu", behaviour=CollisionFreeSpeed())
    way_out = simulation.add_exit(shapely.box(22, 0, 24, 6), storey="upper")
    hold = simulation.add_waiting_place(
        shapely.box(10, 2, 11, 4), to=way_out, until=1e6, storey="stairs from ground to upper"
    )
    simulation.add_people(np.array([[10.4, 3.0]]), to=hold, storey="stairs from ground to upper", speed=1.0)
    simulation.add_people(np.array([[8.0, 3.0]]), to=way_out, speed=1.0)
    done = simulation.run(6.0, record=0.05)
    apart = np.linalg.norm(done.position[done.number == 1] - done.position[done.number == 0], axis=1)
    assert apart.min() > 0.38
    assert done.position[done.number == 1][30, 0] < 9.45  # 1.5 s: slower than free


@pytest.mark.parametrize(("start", "storey", "speed"), [((2.0, 3.0), "ground", 0.5), ((22.0, 3.0), "upper", 0.25)])
def test_speed_on_stairs_is_the_part_told_up_and_down(start, storey, speed):
    building = house(up=0.5, down=0.25)
    simulation = Simulation(building, dt=0.02)
    ends = {"ground": shapely.box(22, 2, 24, 4), "upper": shapely.box(0, 2, 1, 4)}
    way_out = simulation.add_exit(ends[storey], storey="upper" if storey == "ground" else "ground")
    stairs = "stairs from ground to upper"
    lines = [simulation.add_line((x, 2), (x, 4), storey=stairs) for x in (11, 14)]
    simulation.add_people(np.array([start]), to=way_out, storey=storey, speed=1.2)
    done = simulation.run(60.0, until="empty")
    assert np.isfinite(done.left).all()
    took = abs(lines[1].times[0] - lines[0].times[0])
    assert 3.0 / took == pytest.approx(speed * 1.2, rel=1e-3)
    assert set(done.sheet.tolist()) == {0, 1, 2}


def test_who_goes_faster_on_moving_stairs_looks_farther():
    """The range follows from the greatest speed that anybody may have: 2 x 0.2 m and 3 x 1.2 m/s for 1 s."""
    simulation = Simulation(house(up=3.0, down=0.5), dt=0.05, device="cpu")
    way_out = simulation.add_exit(shapely.box(22, 2, 24, 4), storey="upper")
    simulation.add_people(np.array([[2.0, 3.0]]), to=way_out, storey="ground", speed=1.2)
    simulation.prepare()
    assert simulation._grid.range == pytest.approx(4.0)


def check_ways(building: Building, simulation, steps: int) -> None:
    """Every way of every step meets no wall of the sheet it is on; over a joint, its two parts none of either."""
    before: dict[int, tuple[int, np.ndarray]] = {}
    ways: list[list[np.ndarray]] = [[] for _ in building.sheets]
    for _ in range(steps):
        simulation.step()
        numbers, places, _ = simulation.people.now()
        for number, place, sheet in zip(numbers.tolist(), places, simulation.people.sheets().tolist(), strict=True):
            if number in before and (before[number][1] != place).any():
                on, last = before[number]
                if on == sheet:
                    ways[sheet].append(np.stack([last, place]))
                else:
                    (joint,) = [j for j in building.joints if set(j.sheets) == {on, sheet}]
                    (ax, ay), (bx, by) = ([Fraction(float(v)) for v in end] for end in joint.ends)
                    sides = [
                        (bx - ax) * (Fraction(float(y)) - ay) - (by - ay) * (Fraction(float(x)) - ax)
                        for x, y in (last, place)
                    ]
                    assert sides[0] * sides[1] <= 0
                    part = float(sides[0] / (sides[0] - sides[1])) if sides[0] != sides[1] else 0.0
                    middle = last + part * (place - last)
                    ways[on].append(np.stack([last, middle]))
                    ways[sheet].append(np.stack([middle, place]))
            before[number] = (sheet, place.copy())
    for sheet, found in zip(building.sheets, ways, strict=True):
        if found:
            stack = np.stack(found)
            assert crossings(sheet.walls, stack[:, 0], stack[:, 1]) == 0
    for number, place, sheet in zip(*simulation.people.now()[:2], simulation.people.sheets(), strict=True):
        polygon = building.sheets[sheet].polygon
        assert shapely.distance(polygon, shapely.Point(place)) < 1e-9, number


@pytest.mark.parametrize(("speed", "dt"), [(1.3, 0.05), (60.0, 0.1)])
def test_nobody_passes_a_wall_of_a_building_and_nobody_is_lost(speed, dt, effort):
    building = stacked(3)
    simulation = Simulation(building, dt=dt, device="cpu", behaviour=CollisionFreeSpeed(restlessness=2.0, cutoff=2.0))
    way_out = simulation.add_exit(shapely.box(0, 0, 1, 8), storey="storey 0")
    for k in range(4):
        simulation.add_people(effort(20, least=5), to=way_out, storey=f"storey {k}", speed=speed, seed=k)
    check_ways(building, simulation, effort(250, least=40))
    gone = np.isfinite(simulation.people.trait("left")).sum()
    assert gone + simulation.count == len(simulation.people)


def test_everybody_leaves_a_building_and_each_storey_passes_its_stairs(device):
    building = stacked(2)
    simulation = Simulation(building, dt=0.05, device=device)
    way_out = simulation.add_exit(shapely.box(12, 0, 14, 8), storey="storey 0")
    for k in range(3):
        simulation.add_people(15, to=way_out, storey=f"storey {k}", seed=k)
    lines = [simulation.add_line((6, 3), (6, 5), storey=f"stairs from storey {k} to storey {k + 1}") for k in range(2)]
    done = simulation.run(240.0, until="empty")
    assert np.isfinite(done.left).all()
    assert [len(line.times) for line in lines] == [30, 15]
    assert done.heights.max() == 6.0
    assert done.left[30:].min() > done.left[:15].min()


def test_a_turned_building_does_the_same():
    from shapely import affinity

    def turned(shape):
        return affinity.rotate(shape, 33.0, origin=(0, 0))

    flat = house()
    lines = [turned(shapely.LineString(line)).coords for line in (flat.stairs[0].foot, flat.stairs[0].head)]
    storeys = {name: (turned(flat.storeys[name].polygon), flat.heights[name]) for name in flat.storeys}
    building = Building(storeys, [Stairs("ground", tuple(lines[0]), "upper", tuple(lines[1]))])
    simulation = Simulation(building, dt=0.05)
    way_out = simulation.add_exit(turned(shapely.box(22, 0, 24, 6)), storey="upper")
    simulation.add_people(40, to=way_out, seed=1)
    done = simulation.run(120.0, until="empty")
    assert np.isfinite(done.left).all()


def test_stairs_too_narrow_are_told_and_have_no_way():
    storeys = {"ground": (shapely.box(0, 0, 10, 6), 0.0), "upper": (shapely.box(15, 0, 24, 6), 3.0)}
    building = Building(storeys, [Stairs("ground", ((10, 2), (10, 2.5)), "upper", ((15, 2), (15, 2.5)))])
    assert building.doors(0.2) == []
    assert building.doors(0.3)[0].width == pytest.approx(0.5)
    simulation = Simulation(building)
    simulation.add_people(3, to=simulation.add_exit(shapely.box(20, 0, 24, 6), storey="upper"), radius=0.3)
    with pytest.raises(InputError, match=r"no way for 3 of 3.*a door of 0\.500 m"):
        simulation.run(1.0)


def test_a_building_is_saved_and_read_again(tmp_path):
    building = house()
    building.save(tmp_path / "house.json")
    again = Building.load(tmp_path / "house.json")
    assert again.stairs == building.stairs
    assert [s.polygon.equals(t.polygon) for s, t in zip(building.sheets, again.sheets, strict=True)] == [True] * 3
    simulation = Simulation(building, dt=0.05)
    simulation.add_people(5, to=simulation.add_exit(shapely.box(0, 0, 1, 6)), storey="upper")
    done = simulation.run(5.0)
    for name in ("run.npz", "run.csv", "run.sqlite"):
        done.save(tmp_path / name)
    read = type(done).load(tmp_path / "run.npz")
    np.testing.assert_array_equal(read.sheet, done.sheet)
    assert repr(read.plan) == repr(building)
    assert (tmp_path / "run.csv").read_text().splitlines()[0] == "frame,number,x,y,sheet,z"


@pytest.mark.parametrize(
    ("storeys", "stairs", "told"),
    [
        ({}, [], "at least one"),
        ({"a": shapely.box(0, 0, 1, 1)}, [], "must be \\(plan, height\\)"),
        (None, [Stairs("ground", ((10, 2), (10, 4)), "attic", ((15, 2), (15, 4)))], "no storey 'attic'"),
        (None, [Stairs("ground", ((9, 2), (9, 7)), "upper", ((15, 2), (15, 7)))], "foot of .* along the floor"),
        (None, [Stairs("ground", ((10, 2), (10, 4)), "upper", ((10, 3), (10, 5)))], "face each other"),
        (None, [Stairs("upper", ((15, 2), (15, 4)), "ground", ((10, 2), (10, 4)))], "lower storey is at 3 m"),
    ],
)
def test_a_building_that_cannot_be_is_told_in_one_sentence(storeys, stairs, told):
    if storeys is None:
        storeys = {"ground": (shapely.box(0, 0, 10, 6), 0.0), "upper": (shapely.box(4, 0, 24, 6), 3.0)}
    with pytest.raises(InputError, match=told) as caught:
        Building(storeys, stairs)
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="storey: there is no 'cellar'"):
        Simulation(house()).add_exit(shapely.box(0, 0, 1, 1), storey="cellar")
