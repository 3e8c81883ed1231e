"""The collision-free speed model and the social force model give what their formulas and JuPedSim give."""

from __future__ import annotations

import numpy as np
import pytest

from tangere.crowd import CollisionFreeSpeed, FloorPlan, FloorSimulation, Simulation, SocialForce
from tangere.runtime import InputError

shapely = pytest.importorskip("shapely")
pytestmark = pytest.mark.long_in_debug

ROOM = shapely.box(0, 0, 20, 10)
GOAL = np.array([18.75, 5.0])


def places(rng) -> np.ndarray:
    grid = np.stack(np.meshgrid(np.arange(1, 10, 0.75), np.arange(1, 9.2, 0.75)), axis=-1).reshape(-1, 2)
    return grid + rng.uniform(-0.1, 0.1, grid.shape)


def ours(behaviour, start: np.ndarray, dt: float = 0.01) -> FloorSimulation:
    simulation = Simulation(FloorPlan(ROOM), behaviour=behaviour, dt=dt, device="cpu")
    way_out = simulation.add_exit(shapely.box(19.5, 4.5, 19.9, 5.5))
    aim = simulation.add_waypoint(shapely.Point(GOAL).buffer(1e-3), to=way_out, straight=True)
    simulation.add_people(start, to=aim, speed=1.2, radius=0.2)
    return simulation


def nearest_on_walls(x: np.ndarray) -> np.ndarray:
    """(n, 4, 2) the nearest points of the four walls."""
    corners = np.array([(0, 0), (20, 0), (20, 10), (0, 10)], float)
    a, b = corners, np.roll(corners, -1, axis=0)
    part = np.clip(((x[:, None] - a) * (b - a)).sum(-1) / ((b - a) ** 2).sum(-1), 0, 1)
    return a + part[..., None] * (b - a)


def collision_free_speed(x: np.ndarray, cutoff: float) -> np.ndarray:
    """The formulas of Tordeux, Chraibi and Seyfried (2016), all pairs."""
    to = GOAL - x
    push = to / np.linalg.norm(to, axis=1, keepdims=True)
    away = x[:, None] - nearest_on_walls(x)
    d = np.linalg.norm(away, axis=2)
    push += (np.where(d < cutoff, 5.0 * np.exp((0.2 - d) / 0.02), 0.0)[..., None] * away / d[..., None]).sum(axis=1)
    away = x[:, None] - x
    d = np.linalg.norm(away, axis=2)
    np.fill_diagonal(d, np.inf)
    near = d < cutoff
    push += (np.where(near, 8.0 * np.exp((0.4 - d) / 0.1) / d, 0.0)[..., None] * away).sum(axis=1)
    e = push / np.linalg.norm(push, axis=1, keepdims=True)
    ahead = -(e[:, None] * away).sum(-1) >= 0
    beside = np.abs(e[:, None, 0] * away[..., 1] - e[:, None, 1] * away[..., 0]) <= 0.4
    space = np.where(near & ahead & beside, d - 0.4, np.inf).min(axis=1)
    return e * np.clip(space / 1.0, 0.0, 1.2)[:, None]


def test_collision_free_speed_is_its_formula(rng):
    x = places(rng)
    simulation = ours(CollisionFreeSpeed(cutoff=3.0, precision="double"), x)
    for _ in range(5):
        expected = x + 0.01 * collision_free_speed(x, 3.0)
        simulation.step()
        np.testing.assert_allclose(simulation.positions, expected, rtol=0, atol=1e-13)
        x = simulation.positions


def test_single_precision_and_the_derived_range_stay_near_the_formula(rng):
    start = places(rng)
    exact, quick = ours(CollisionFreeSpeed(cutoff=3.0, precision="double"), start), ours(CollisionFreeSpeed(), start)
    for simulation in (exact, quick):
        simulation.run(3.0, record=None)
    assert np.abs(exact.positions - quick.positions).max() < 2e-4


@pytest.mark.parametrize(("strength", "reach"), [(8.0, 2.341), (1.0e7, 3.0)])
def test_within_a_cutoff_only_what_rounds_away_is_left_out(rng, strength, reach):
    """In single precision people beyond 2.34 m push by less than rounding; where they push harder they count."""
    start = places(rng) if strength == 8.0 else np.array([[5.0, 3.0], [5.0, 5.5]])
    found = []
    for precision in ("double", "single"):
        simulation = ours(CollisionFreeSpeed(cutoff=3.0, strength=strength, precision=precision), start)
        simulation.run(steps=3, record=None)
        found.append(simulation.positions)
    assert np.abs(found[0] - found[1]).max() < 2e-8
    assert CollisionFreeSpeed(cutoff=3.0, strength=strength).fitted(0.2, 1.2).range == pytest.approx(reach, abs=1e-3)
    assert CollisionFreeSpeed(cutoff=3.0, precision="double").fitted(0.2, 1.2).range == 3.0


def test_where_neighbours_are_more_than_are_kept_all_count(rng):
    """120 people within 1.5 m of each other: more than the list of a kernel holds."""
    x = np.array([8.0, 5.0]) + rng.uniform(-0.75, 0.75, (120, 2))
    simulation = ours(CollisionFreeSpeed(cutoff=3.0, precision="double"), x)
    expected = x + 0.01 * collision_free_speed(x, 3.0)
    simulation.step()
    np.testing.assert_allclose(simulation.positions, expected, rtol=0, atol=1e-12)


def test_collision_free_speed_is_jupedsims(rng):
    jupedsim = pytest.importorskip("jupedsim")
    start = places(rng)
    peer = jupedsim.Simulation(model=jupedsim.CollisionFreeSpeedModel(), geometry=ROOM, dt=0.01)
    stage = peer.add_waypoint_stage(tuple(GOAL), 0.5)
    journey = peer.add_journey(jupedsim.JourneyDescription([stage]))
    traits = {"journey_id": journey, "stage_id": stage, "radius": 0.2, "desired_speed": 1.2, "time_gap": 1.0}
    agents = [
        peer.add_agent(jupedsim.CollisionFreeSpeedModelAgentParameters(position=tuple(p), **traits)) for p in start
    ]
    simulation = ours(CollisionFreeSpeed(cutoff=3.0, precision="double"), start)
    for steps in (1, 99, 200):
        peer.iterate(steps)
        simulation.run(steps=steps, record=None)
        place = {agent.id: agent.position for agent in peer.agents()}
        np.testing.assert_allclose(simulation.positions, [place[a] for a in agents], rtol=0, atol=1e-12)


def social_force(x: np.ndarray, v: np.ndarray, dt: float, cutoff: float) -> np.ndarray:
    """The formulas of Helbing, Farkas and Vicsek (2000), all pairs; the next velocities."""

    def forces(away, reach, slip):
        d = np.linalg.norm(away, axis=2)
        n = away / np.maximum(d, 1e-12)[..., None]
        t = np.stack([-n[..., 1], n[..., 0]], axis=-1)
        deep = np.maximum(reach - d, 0.0)
        push = 2000.0 * np.exp((reach - d) / 0.08) + 1.2e5 * deep
        force = push[..., None] * n + (2.4e5 * deep * (slip * t).sum(-1))[..., None] * t
        return np.where((d < cutoff)[..., None], force, 0.0)

    total = forces(x[:, None] - nearest_on_walls(x), 0.2, np.repeat(-v[:, None], 4, axis=1)).sum(axis=1)
    pairs = forces(x[:, None] - x, 0.4, v[None] - v[:, None])
    pairs[np.arange(len(x)), np.arange(len(x))] = 0.0
    to = GOAL - x
    preferred = 1.2 * to / np.linalg.norm(to, axis=1, keepdims=True)
    following = v + dt * ((preferred - v) / 0.5 + (total + pairs.sum(axis=1)) / 80.0)
    size = np.linalg.norm(following, axis=1, keepdims=True)
    return following * np.minimum(1.0, 1.3 * 1.2 / np.maximum(size, 1e-12))


def test_social_force_is_its_formula(rng):
    x = places(rng)
    x[:30] += rng.uniform(-0.3, 0.3, (30, 2))  # some of them touch
    simulation = ours(SocialForce(cutoff=1.5), x)
    v = np.zeros_like(x)
    for _ in range(5):
        v = social_force(x, v, 0.01, 1.5)
        simulation.step()
        np.testing.assert_allclose(simulation.velocities, v, rtol=0, atol=1e-9)
        x, v = simulation.positions, simulation.velocities


@pytest.mark.slow
def test_restless_people_free_a_door_that_the_model_as_published_clogs():
    """Three people hold each other in a door of 0.8 m: nobody moves any more, unless who stands turns a little."""
    left: dict[float, list[int]] = {0.0: [], 2.0: []}
    plan = FloorPlan(shapely.union_all([shapely.box(0, 0, 10, 10), shapely.box(9.99, 4.6, 11, 5.4)]))
    for seed in range(6):
        for restlessness, stayed in left.items():
            behaviour = CollisionFreeSpeed(restlessness=restlessness)
            simulation = Simulation(plan, behaviour=behaviour, dt=0.05, device="cpu")
            way_out = simulation.add_exit(shapely.box(10.4, 4.6, 11, 5.4))
            simulation.add_people(150, shapely.box(0, 0, 9, 10), to=way_out, seed=seed)
            simulation.run(240.0, until="empty", record=None)
            stayed.append(simulation.count)
    assert max(left[0.0]) > 0
    assert max(left[2.0]) == 0


def test_walls_hold_nobody_who_is_alone_in_a_door_just_wide_enough():
    """Doors of a millimetre more than the diameter, at angles, and steps longer than walls push: everybody gets out."""
    from shapely import affinity

    for angle in (0.0, 20.0, 45.0):
        wall = shapely.union_all([shapely.box(5, -9, 5.3, 3 - 0.4005), shapely.box(5, 3 + 0.4005, 5.3, 19)])
        plan = shapely.box(0, 0, 10, 6).difference(affinity.rotate(wall, angle, origin=(5, 3)))
        for dt in (0.01, 0.05):
            simulation = Simulation(FloorPlan(plan), dt=dt, device="cpu")
            way_out = simulation.add_exit(shapely.box(9, 0, 10, 6))
            for y in (1.0, 3.0, 5.0):
                simulation.add_people(np.array([[1.0, y]]), to=way_out, radius=0.4, speed=1.3, start=10 * y)
            assert np.isfinite(simulation.run(120.0, until="empty", record=None).left).all()


def test_ranges_follow_from_people_unless_they_are_given():
    assert CollisionFreeSpeed().fitted(0.2, 1.2).range == pytest.approx(0.4 + 1.2)
    assert CollisionFreeSpeed(time_gap=0.5).fitted(0.2, 1.2).range == pytest.approx(0.4 + 0.1 * np.log(8e4))
    assert CollisionFreeSpeed(cutoff=3.0).fitted(0.2, 9.0).range == 3.0
    assert SocialForce(cutoff=2.0).range == 2.0
    assert 1.0 < SocialForce().fitted(0.2, 1.2).range < 2.0


@pytest.mark.parametrize(
    "make",
    [
        lambda: CollisionFreeSpeed(time_gap=0.0),
        lambda: CollisionFreeSpeed(cutoff=-1.0),
        lambda: CollisionFreeSpeed(precision="half"),  # type: ignore[arg-type]
        lambda: SocialForce(mass=0.0),
        lambda: SocialForce(friction=-1.0),
    ],
)
def test_parameters_that_cannot_be_are_told(make):
    with pytest.raises(InputError, match=r"CollisionFreeSpeed|SocialForce"):
        make()
