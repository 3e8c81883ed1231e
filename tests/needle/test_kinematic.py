"""A kinematic needle: cells, deposits and contacts against brute force, on tetrahedra and hexahedra of any level."""

from __future__ import annotations

import numpy as np
import pytest

from needle.anatomies import membranes, vessels
from oracles.cell_maps import check_map, check_registration, owners
from oracles.segment_distances import segment_to_segments, segment_to_triangles
from tangere.cells.generate import hex_grid, tet_grid
from tangere.cells.maps import CellMap
from tangere.needle import Bevel, KinematicSimulation, Needle, Vessel
from tangere.runtime import InputError

MAPS = {
    "hexahedra": lambda jitter: hex_grid(4, 4, 4, size=0.25, jitter=jitter, device="cpu"),
    "tetrahedra": lambda jitter: tet_grid(2, 2, 2, size=0.5, jitter=jitter, mirrored=True, device="cpu"),
}
RADIUS, DISTANCE, LOCK = 2e-3, 0.03, 0.02


def brute_force(simulation: KinematicSimulation, segment: int, a: np.ndarray, b: np.ndarray) -> dict:
    """What is within the distance of one segment of the needle: (body, feature) and its gap."""
    anatomy, found = simulation.anatomy, {}
    corners = anatomy.points[anatomy.segments], anatomy.points[anatomy.triangles]
    gaps = np.concatenate(
        [
            segment_to_segments(a, b, *corners[0].transpose(1, 0, 2)),
            segment_to_triangles(a, b, *corners[1].transpose(1, 0, 2)),
        ]
    )
    gaps = gaps - anatomy.radius - RADIUS
    for k in np.flatnonzero(gaps <= DISTANCE):
        found[1 + int(anatomy.owner[k]), int(anatomy.own_number[k])] = float(gaps[k])
    path = simulation.particles.position
    if segment > 2:
        own = segment_to_segments(a, b, path[: segment - 2], path[1 : segment - 1]) - 2 * RADIUS
        found |= {(0, int(k)): float(own[k]) for k in np.flatnonzero(own <= DISTANCE)}
    return found


def check_contacts(simulation: KinematicSimulation, before: int) -> int:
    """Compare the contacts of the last move, which began with so many particles; returns how many there are."""
    path, tip, total = simulation.particles.position, simulation.tip.position, 0
    contacts = simulation.contacts
    assert (np.diff(contacts.gap) >= 0).all()
    ends = [*path, tip]
    for segment in range(before - 1, len(path)):
        expected = brute_force(simulation, segment, ends[segment], ends[segment + 1])
        mine = contacts.feature_a == segment
        found = {
            (int(body), int(feature)): float(gap)
            for body, feature, gap in zip(
                contacts.body_b[mine], contacts.feature_b[mine], contacts.gap[mine], strict=True
            )
        }
        # Whoever is within a rounding of the distance may be listed or not.
        for key in expected.keys() ^ found.keys():
            assert abs((expected | found)[key] - DISTANCE) < 1e-12, (segment, key)
        for key in expected.keys() & found.keys():
            assert abs(expected[key] - found[key]) < 1e-9, (segment, key)
        total += len(found)
    return total


def wander(simulation: KinematicSimulation, rng, moves: int, *, size: float = 0.004, refine_every: int = 5) -> int:
    """Random moves inside the unit cube, each checked; returns how many contacts were compared."""
    direction, total, path = rng.normal(size=3), 0, 0.0
    search, tips = simulation._search, []
    for k in range(moves):
        direction = direction / np.linalg.norm(direction) + 0.15 * rng.normal(size=3)
        step = size * rng.uniform(0.2, 2.0) * direction / np.linalg.norm(direction)
        target = simulation.tip.position + step
        outside = (target < 0.03) | (target > 0.97)
        if outside.any():
            direction[outside] *= -1
            step = np.zeros(3)  # stays where it is, and is looked at all the same
            target = simulation.tip.position
        before = len(simulation.particles)
        search.advance(target)
        path += np.linalg.norm(step)
        total += check_contacts(simulation, before)
        np.testing.assert_array_equal(simulation.tip.position, target)
        tips.append(simulation.tip)
        assert len(simulation.particles) - 1 == int(np.floor(simulation.length / LOCK + 1e-9))
        assert simulation.length == pytest.approx(path)
        if k % refine_every == refine_every - 1 or k == moves - 1:
            holding = owners(simulation.map, np.array([tip.position for tip in tips]), slack=1e-9)
            assert all(tip.cell in cells for tip, cells in zip(tips, holding, strict=True))
            tips.clear()
            simulation.refine()
            assert simulation.tip.level == simulation._refinement.level
    return total


def needle_in(name: str, jitter: float, level: int, rng, **options) -> KinematicSimulation:
    return KinematicSimulation(
        MAPS[name](jitter),
        Needle(radius=RADIUS, length=1.0),
        entry=[0.47, 0.52, 0.51],
        direction=[0.1, 0.3, 0.9],
        vessels=vessels(rng, 150),
        membranes=membranes(rng, 6),
        lock_length=LOCK,
        distance=DISTANCE,
        radius=0.03,
        level=level,
        **options,
    )


@pytest.mark.feature("F-P-67")
@pytest.mark.parametrize(("level", "jitter"), [(0, 0.0), (1, 0.2), (3, 0.0), (3, 0.15)])
@pytest.mark.parametrize("name", MAPS)
def test_no_contact_is_missed_and_no_cell_is_wrong(name, level, jitter, rng, effort):
    simulation = needle_in(name, jitter, level, rng)
    assert wander(simulation, rng, effort(60)) > 20
    check_map(simulation.map, area=None if jitter else 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("level", range(7))
@pytest.mark.parametrize("name", MAPS)
def test_a_hundred_thousand_random_moves(name, level, rng, effort):
    for jitter in (0.0, 0.15):
        simulation = needle_in(name, jitter, level, rng)
        assert wander(simulation, rng, effort(3600), refine_every=20) > 100


def test_everything_stays_registered_while_cells_follow_the_tip(rng):
    simulation = needle_in("hexahedra", 0.1, 2, rng)
    for _ in range(6):
        simulation.step(0.02)
        check_registration(simulation.anatomy.registration, near=False)
        particles = simulation.particles
        holding = owners(simulation.map, particles.position, slack=1e-9)
        assert all(cell in cells for cell, cells in zip(particles.cell, holding, strict=True))


@pytest.mark.feature("F-P-71")
def test_particles_know_their_cell_and_their_place_in_it(rng):
    simulation = needle_in("tetrahedra", 0.15, 2, rng)
    for _ in range(8):
        simulation.step(0.021)
    particles, map = simulation.particles, simulation.map
    assert len(particles) == 9
    np.testing.assert_allclose(particles.weights.sum(axis=1), 1.0)
    assert (particles.weights > -1e-9).all()
    origin, following = map.numpy("origin"), map.numpy("phi1")
    corners = np.stack(
        [
            map.positions[origin[following[particles.dart]]],
            map.positions[origin[particles.dart]],
            map.numpy("face_centre")[particles.dart],
            map.numpy("centre")[particles.cell],
        ],
        axis=1,
    )
    np.testing.assert_allclose((particles.weights[..., None] * corners).sum(axis=1), particles.position, atol=1e-12)


@pytest.mark.feature("F-P-68")
@pytest.mark.parametrize(("mode", "budget"), [("soft", None), ("soft", 16), ("soft", 4), ("soft", 1), ("hard", None)])
def test_the_tip_is_in_the_finest_cell_and_leaves_stay_bounded_on_a_helix(mode, budget, effort):
    map = hex_grid(6, 6, 6, size=1 / 6, device="cpu")
    simulation = KinematicSimulation(
        map,
        Needle(length=4.0, radius=1e-3, tip=Bevel(curvature=4.0)),
        entry=[0.25, 0.5, 0.08],
        direction=[0.0, 0.95, 0.3],
        roll=0.35,
        lock_length=0.02,
        radius=0.03,
        level=4,
        mode=mode,
        budget=budget,
        deadline=0.002,
    )
    leaves = []
    for _ in range(effort(160)):
        simulation.step(0.005)
        assert simulation.tip.level == 4
        leaves.append(simulation.report.leaves)
    assert simulation.report.merged > 0
    # As many as cells around the tip, not as many as the path is long.
    assert max(leaves[len(leaves) // 2 :]) <= 1.6 * max(leaves[: len(leaves) // 2])
    check_map(map, area=1.0)


def test_in_hard_mode_a_batch_is_two_cells_whatever_balance_asks_for(monkeypatch):
    simulation = KinematicSimulation(
        hex_grid(6, 6, 6, size=1 / 6, device="cpu"),
        Needle(length=4.0, radius=1e-3),
        entry=[0.1, 0.4, 0.4],
        direction=[1.0, 0.7, 0.3],
        radius=0.03,
        level=4,
        mode="hard",
        deadline=60.0,
    )
    refinement, done, total = simulation._refinement, [], 0
    split, near = refinement._registration.split, refinement._split_near
    monkeypatch.setattr(refinement._registration, "split", lambda *a, **k: done.append(split(*a, **k)) or done[-1])

    def split_near(began: float) -> int:
        done.clear()
        left = near(began)
        assert all(1 <= len(cells) <= 2 for cells in done)
        return left

    monkeypatch.setattr(refinement, "_split_near", split_near)
    for _ in range(12):
        simulation.step(0.015)
        total += len(done)
        assert simulation.tip.level == 4
    assert total > 50
    assert simulation.report.postponed == 0
    check_map(simulation.map, area=1.0)


def test_a_deadline_that_is_given_counts_from_then_on():
    map = hex_grid(4, 4, 4, size=0.25, device="cpu")
    needle = Needle(length=4.0, radius=1e-3, tip=Bevel(curvature=0.0))
    start = {"entry": [0.3, 0.5, 0.1], "direction": [0.0, 0.0, 1.0], "lock_length": 0.02}
    simulation = KinematicSimulation(map, needle, **start, radius=0.2, level=3, mode="hard", deadline=60.0)
    assert simulation.report.postponed == 0
    simulation.advance(0.3)
    simulation.refine(deadline=1e-9)  # no time for anything but the cell of the tip
    assert simulation.report.postponed > 0
    assert simulation.tip.level == 3
    left = simulation.report.postponed
    simulation.refine(deadline=60.0)
    assert simulation.report.postponed == left
    with pytest.raises(InputError, match="deadline"):
        simulation.refine(deadline=0.0)


@pytest.mark.feature("F-P-70")
def test_a_needle_that_goes_round_meets_itself(rng):
    simulation = KinematicSimulation(
        hex_grid(4, 4, 4, size=0.25, device="cpu"),
        Needle(length=4.0, radius=RADIUS, tip=Bevel(curvature=5.0)),
        entry=[0.5, 0.7, 0.5],
        direction=[0.0, 0.0, 1.0],
        lock_length=LOCK,
        distance=DISTANCE,
        level=0,
    )
    met = None
    for k in range(80):
        before = len(simulation.particles)
        simulation.step(0.019)
        check_contacts(simulation, before)
        if met is None and (simulation.contacts.body_b == 0).any():
            met = k
    # A circle of radius 0.2 m is 1.26 m long.
    assert met is not None
    assert 0.019 * met == pytest.approx(2 * np.pi / 5.0, abs=0.06)


def test_what_is_behind_a_bay_of_the_border_is_found():
    # A horseshoe of cubes: the needle goes up one arm, the vessel is in the other, 0.1 away through the gap.
    corners, cubes = [], []
    block = hex_grid(5, 3, 1, size=0.1, device="cpu")
    keep = [
        c for c in block.leaves if not (0.2 < block.numpy("centre")[c][0] < 0.3 and block.numpy("centre")[c][1] > 0.1)
    ]
    for c in keep:
        low = np.round(block.numpy("centre")[c] - 0.05, 9)
        cube = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]])
        corners.append(low + 0.1 * cube)
    points, number = np.unique(np.round(np.concatenate(corners), 9), axis=0, return_inverse=True)
    cubes = number.reshape(-1, 8)
    horseshoe = CellMap.from_polyhedra(points, cubes, device="cpu")
    line = Vessel([[0.31, 0.15, 0.05], [0.31, 0.29, 0.05]], radius=1e-3)
    for level in (0, 2):
        simulation = KinematicSimulation(
            horseshoe,
            Needle(radius=1e-3),
            entry=[0.19, 0.12, 0.05],
            direction=[0.0, 1.0, 0.0],
            vessels=[line],
            distance=0.125,
            lock_length=0.05,
            radius=0.02,
            level=level,
        )
        simulation.step(0.15)
        assert simulation.contacts.gap[0] == pytest.approx(0.12 - 2e-3)


def test_a_needle_stops_at_the_border():
    simulation = KinematicSimulation(
        hex_grid(2, 2, 2, size=0.5, device="cpu"),
        Needle(length=2.0),
        entry=[0.5, 0.5, 0.6],
        direction=[0, 0, 1],
        level=1,
    )
    simulation.step(0.3)
    assert not simulation.stopped
    simulation.step(0.3)
    assert simulation.stopped
    assert simulation.tip.position[2] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"entry": [9, 9, 9]}, r"entry: \[9.0, 9.0, 9.0\] is outside the map"),
        ({"direction": [0, 0, 0]}, "direction must be a direction"),
        ({"lock_length": 0.0}, "lock_length must be positive"),
        ({"mode": "fast"}, "mode is 'soft' or 'hard', not 'fast'"),
        ({"level": -1}, "level must be a whole number"),
        ({"vessels": [[[0, 0, 0]]]}, r"Vessel 'vessel': points must have shape \(n, 3\) with n >= 2, not \(1, 3\)"),
        ({"vessels": [[[0.5, 0.5, 0.5], [0.5, 0.5, 3.0]]]}, "vessels and membranes must be inside the body"),
    ],
)
def test_bad_input_is_told_in_one_sentence(options, message):
    given = {"entry": [0.5, 0.5, 0.5], "direction": [0, 0, 1], **options}
    with pytest.raises(InputError, match=message):
        KinematicSimulation(hex_grid(2, 2, 2, size=0.5, device="cpu"), Needle(), **given)
    simulation = KinematicSimulation(
        hex_grid(1, 1, 1, device="cpu"), Needle(), entry=[0.5, 0.5, 0.5], direction=[0, 0, 1], level=0
    )
    with pytest.raises(InputError, match="advance must be a length that is not negative, not -1"):
        simulation.step(-1)
