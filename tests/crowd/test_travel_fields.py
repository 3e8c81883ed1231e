"""Ways over a floor plan are as long as the shortest ones, keep off walls, and go through no wall."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from oracles.floor_plans import random_plan
from tangere.crowd import FloorPlan, Simulation
from tangere.crowd.floor.plans.wall_raster import Raster
from tangere.crowd.floor.ways.travel_fields import NO_WAY, WalkableNodes, marched, raster_for
from tangere.runtime import InputError

shapely = pytest.importorskip("shapely")
affinity = pytest.importorskip("shapely.affinity")


def field(plan: FloorPlan, goal, radius: float = 0.2):
    terrain = WalkableNodes(plan, raster_for(plan, radius), radius)
    lengths, directions = marched([(terrain, goal, 0)])
    shape = terrain.raster.shape
    return terrain, lengths[0].reshape(shape), directions[0].reshape(*shape, 2)


def test_in_the_open_lengths_are_distances():
    plan, goal = FloorPlan(shapely.box(0, 0, 20, 12)), shapely.Point(10, 6).buffer(0.5)
    terrain, lengths, directions = field(plan, goal)
    x, y = np.meshgrid(*terrain.raster.nodes(), indexing="ij")
    open_floor = shapely.contains_xy(shapely.box(1, 1, 19, 11), x, y)
    distance = np.hypot(x - 10, y - 6) - 0.5
    apart = np.abs(lengths - np.maximum(distance, 0))[open_floor]
    assert apart.max() < 0.4  # fast marching of first order: a few hundredths of the way
    far = open_floor & (distance > 1.0)
    aim = -np.stack([x - 10, y - 6], axis=-1) / np.hypot(x - 10, y - 6)[..., None]
    assert (directions * aim).sum(-1)[far].min() > 0.97


def test_round_a_corner_lengths_are_those_of_the_taut_string():
    wall = shapely.box(4.9, -1, 5.1, 5)
    plan, goal = FloorPlan(shapely.box(0, 0, 10, 8).difference(wall)), shapely.Point(8, 1).buffer(0.3)
    terrain, lengths, _ = field(plan, goal)
    raster = terrain.raster
    for x, y in ((1.0, 1.0), (3.0, 3.0), (4.0, 2.0)):
        i, j = np.round((np.array([x, y]) - raster.origin) / raster.side).astype(int)
        px, py = raster.origin + raster.side * np.array([i, j])
        corners = np.array([[px, py], [4.7, 5.2], [5.3, 5.2], [8, 1]])
        string = np.linalg.norm(np.diff(corners, axis=0), axis=1).sum() - 0.3
        assert string - 0.3 < lengths[i, j] < 1.12 * string


def test_no_way_leads_through_a_wall(rng, effort):
    """Downhill from every node of random plans: a step of the raster that a wall cuts is never taken."""
    for _ in range(effort(6, least=2)):
        polygon = random_plan(rng)
        plan, goal = FloorPlan(polygon), polygon.buffer(-0.3).representative_point().buffer(0.3)
        terrain, lengths, _ = field(plan, goal)
        raster = terrain.raster
        x, y = np.meshgrid(*raster.nodes(), indexing="ij")
        nodes = np.stack([x, y], axis=-1)
        inside = shapely.contains_xy(polygon, x, y)
        assert not np.isfinite(lengths[~inside & (shapely.distance(polygon, shapely.points(nodes)) > 1e-9)]).any()
        # Each reached node that is no seed has a lower one beside it with no wall between.
        entries = terrain.entries.reshape(raster.shape)
        boundary = shapely.boundary(polygon)
        for bit, step in enumerate(((1, 0), (-1, 0), (0, 1), (0, -1))):
            i, j = np.nonzero((entries >> bit) & 1)
            ways = shapely.linestrings(np.stack([nodes[i, j], nodes[i + step[0], j + step[1]]], axis=1))
            assert not shapely.intersects(boundary, ways).any()
        seeds = np.zeros(raster.shape, bool)
        seeds.ravel()[terrain.seeds(goal, 0)[0]] = True
        i, j = np.nonzero((lengths < NO_WAY) & ~seeds)
        least = np.full(len(i), np.inf)
        for bit, step in enumerate(((1, 0), (-1, 0), (0, 1), (0, -1))):
            may = ((entries[i, j] >> bit) & 1) == 1
            least[may] = np.minimum(least[may], lengths[(i + step[0])[may], (j + step[1])[may]])
        assert (least < lengths[i, j]).all()


@pytest.mark.parametrize("angle", [0.0, 17.0, 45.0])
@pytest.mark.parametrize(("door", "is_open"), [(0.402, True), (0.43, True), (0.398, False), (0.3, False)])
def test_a_door_is_a_way_if_and_only_if_a_person_fits_through(door, is_open, angle):
    """Whatever the angle of the wall and the nodes that happen to be there."""
    from shapely import affinity

    wall = shapely.union_all([shapely.box(5, -9, 5.1, 3 - door / 2), shapely.box(5, 3 + door / 2, 5.1, 19)])
    plan = shapely.box(0, 0, 10, 6).difference(wall)
    plan = affinity.rotate(plan, angle, origin=(0, 0))
    goal, start = (affinity.rotate(p, angle, origin=(0, 0)) for p in (shapely.Point(8, 3), shapely.Point(2, 3)))
    terrain, lengths, _ = field(FloorPlan(plan), goal.buffer(0.4))
    i, j = np.round((np.array(start.coords[0]) - terrain.raster.origin) / terrain.raster.side).astype(int)
    assert (lengths[i, j] < NO_WAY) == is_open


def test_nodes_inside_are_those_that_shapely_finds(rng):
    for _ in range(5):
        polygon = random_plan(rng)
        raster = Raster.around(polygon.bounds, 0.17, shift=0.3)
        x, y = np.meshgrid(*raster.nodes(), indexing="ij")
        inside = np.cumsum(raster.cuts(FloorPlan(polygon).walls)[0], axis=0) % 2 == 1
        np.testing.assert_array_equal(inside, shapely.contains_xy(polygon, x, y))


@pytest.mark.parametrize("angle", [0.0, 27.0, 45.0])
@pytest.mark.parametrize("thickness", [0.01, 0.2])
def test_who_stands_before_a_door_too_narrow_has_no_way_however_near_the_other_side_is(angle, thickness):
    """Of two rooms and a gap of 0.38 m people of 0.2 m on one side have no way, to the other side's they have."""
    wall = shapely.union(shapely.box(-thickness, -3, 0, -0.19), shapely.box(-thickness, 0.19, 0, 3))
    rooms = shapely.box(-4, -3, 4, 3) - wall
    turn = partial(affinity.rotate, angle=angle, origin=(0, 0))
    places = [(-thickness - d, y) for d in (0.063, 0.09, 0.13, 0.2) for y in (0.0, 0.01)]
    places += [(d, y) for d in (0.063, 0.09, 0.13, 0.2) for y in (0.0, -0.01)]
    places = np.array([turn(shapely.Point(place)).coords[0] for place in places])
    told = []
    for k, place in enumerate(places):  # one by one: they would stand in one another
        simulation = Simulation(FloorPlan(turn(rooms)), dt=0.05, device="cpu", no_way="stay")
        way_out = simulation.add_exit(turn(shapely.box(3, -3, 4, 3)))
        simulation.add_people(place[None], to=way_out, radius=0.2, speed=1.2)
        simulation.prepare()
        told.append(len(simulation.no_way_numbers))
        if k % 8 == 0:
            refusing = Simulation(FloorPlan(turn(rooms)), dt=0.05, device="cpu")
            refusing.add_people(
                place[None], to=refusing.add_exit(turn(shapely.box(3, -3, 4, 3))), radius=0.2, speed=1.2
            )
            if told[-1]:
                with pytest.raises(InputError, match=r"a door of 0\.380 m"):
                    refusing.prepare()
            else:
                refusing.prepare()
    assert told == [1] * 8 + [0] * 8
