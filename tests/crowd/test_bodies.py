"""Bodies keep or regain their shape, push points and are not pushed by them, and make way for themselves."""

from __future__ import annotations

import numpy as np
import pytest

from tangere.cells.generate import quad_grid
from tangere.crowd import Body, Bubbles, Cage, Simulation, box, chain, deformable, rigid
from tangere.crowd.scenarios import snake
from tangere.runtime import InputError

ARROW = np.array([(-1.5, -1.0), (1.5, 0.0), (-1.5, 1.0), (-0.5, 0.0)])  # concave


def ground(size=30.0, cell=3.0, **options):
    count = round(size / cell)
    return Simulation(quad_grid(count, count, size=cell, device="cpu"), **options)


def lengths(points):
    return np.linalg.norm(points[:, None] - points[None], axis=2)


def holds(polygon, points):
    """Which points a polygon holds, by the winding of its corners around them."""
    to = polygon[None, :, :2] - points[:, None, :2]
    angle = np.arctan2(to[..., 1], to[..., 0])
    turn = np.diff(np.concatenate([angle, angle[:, :1]], axis=1), axis=1)
    return np.abs(((turn + np.pi) % (2 * np.pi) - np.pi).sum(axis=1)) > 1.0


def test_a_rigid_body_keeps_its_shape_turns_and_arrives():
    simulation = ground()
    simulation.add_bodies(box(4.0, 2.0), [[6.0, 6.0]], headings=[[1, 0]], goals=[[[22.0, 22.0]]], speed=3.0)
    rest = lengths(box(4.0, 2.0).particles)
    for _ in range(30):
        simulation.run(steps=10)
        np.testing.assert_allclose(lengths(simulation.bodies.outline(0)), rest, atol=0.02)
    outline = simulation.bodies.outline(0)
    assert np.linalg.norm(outline.mean(axis=0)[:2] - 22.0) < 2.0
    ahead = outline[1] - outline[0]
    assert ahead[0] > 0
    assert ahead[1] > 1.0  # it was along x, and has turned


def rotation(angle):
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


@pytest.mark.feature("F-P-55")
def test_a_pressed_body_regains_its_shape_and_a_turned_one_stays_turned(rng):
    turn = 2 * np.pi * np.arange(16) / 16
    body = deformable(np.stack([2.0 * np.cos(turn), np.sin(turn)], axis=1), beta_linear=0.0)
    simulation = ground()
    simulation.add_bodies(body, [[15.0, 15.0]], headings=[[0.6, 0.8]])
    start = simulation.bodies.positions.copy()
    pressed = start + rng.normal(0, 0.15, start.shape) * [1, 1, 0]
    simulation.bodies.arrays.position.assign(pressed)
    simulation.run(steps=300)
    found = simulation.bodies.positions
    np.testing.assert_allclose(lengths(found), lengths(body.particles), atol=1e-3)
    # The best rotation of the pressed shape, by singular values: the oracle of the angle.
    a, b = pressed - pressed.mean(axis=0), np.c_[body.particles, np.zeros(16)]
    u, _, vt = np.linalg.svd(a[:, :2].T @ b[:, :2])
    best = u @ np.diag([1, np.linalg.det(u @ vt)]) @ vt
    np.testing.assert_allclose((found - found.mean(axis=0))[:, :2], b[:, :2] @ best.T, atol=5e-3)
    # Matched at once and rigidly, the rotation is that one exactly, after a single step, and nothing turns any more.
    stiff = deformable(body.particles, alpha=1.0, beta_linear=0.0)
    for angle in (0.3, 2.0, -3.1):
        simulation = ground()
        simulation.add_bodies(stiff, [[15.0, 15.0]], headings=[[1.0, 0.0]])
        turned = body.particles @ rotation(angle).T + rng.normal(0, 0.15, body.particles.shape)
        simulation.bodies.arrays.position.assign(np.c_[turned + 15.0, np.zeros(16)])
        u, _, vt = np.linalg.svd((turned - turned.mean(axis=0)).T @ body.particles)
        best = u @ np.diag([1, np.linalg.det(u @ vt)]) @ vt
        simulation.step()
        first = simulation.bodies.positions
        np.testing.assert_allclose((first - first.mean(axis=0))[:, :2], body.particles @ best.T, atol=1e-12)


def test_a_linear_match_gives_way_to_shear_and_plasticity_keeps_it():
    corners = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)], float)
    squeezed = corners * [1.4, 1 / 1.4]
    widths = {}
    for name, body in {
        "rigid": deformable(corners, alpha=0.4, beta_linear=0.0),
        "linear": deformable(corners, alpha=0.4, beta_linear=1.0),
        "plastic": deformable(
            corners, alpha=0.1, beta_linear=0.0, plastic_yield=0.1, plastic_creep=20.0, plastic_max=0.5
        ),
    }.items():
        simulation = ground()
        simulation.add_bodies(body, [[15.0, 15.0]], headings=[[1, 0]])
        simulation.bodies.arrays.position.assign(np.c_[squeezed + 15.0, np.zeros(4)])
        simulation.run(steps=300)
        widths[name] = np.ptp(simulation.bodies.positions[:, 0])
    assert widths["rigid"] == pytest.approx(2.0, abs=1e-3)
    assert widths["linear"] == pytest.approx(2.8, abs=1e-3)
    assert 2.1 < widths["plastic"] < 2.8


@pytest.mark.feature("F-P-47")
def test_a_concave_body_moves_pushes_points_out_of_its_way_and_carries_its_mesh():
    simulation = ground(behaviour=Bubbles(noise=0.0))
    simulation.add_bodies(rigid(ARROW), [[6.0, 15.0]], headings=[[1, 0]], goals=[[[26.0, 15.0]]], speed=1.0)
    simulation.add_points([[14.0, 15.2]])
    lattice = np.stack(np.meshgrid(np.linspace(-1.4, 1.4, 15), np.linspace(-0.9, 0.9, 13), [0.0, 1.0]), -1).reshape(
        -1, 3
    )
    outline = simulation.bodies.bodies[0].particles
    lattice = lattice[holds(outline, lattice)]
    cage = Cage(outline, lattice)
    for _ in range(40):
        simulation.run(steps=10)
        now = simulation.bodies.outline(0)
        assert not holds(now, simulation.positions).any()
        followed = cage.follow(now)
        np.testing.assert_allclose(lengths(followed), lengths(lattice), atol=0.05)
    assert np.linalg.norm(simulation.positions[0, :2] - [14.0, 15.2]) > 0.5
    np.testing.assert_allclose(cage.weights.sum(axis=1), 1.0)
    np.testing.assert_allclose(cage.follow(outline)[:, :2], lattice[:, :2], atol=1e-9)


def test_a_cage_holds_its_own_corners_and_edges_exactly():
    square = np.array([(0, 0), (2, 0), (2, 2), (0, 2)], float)
    points = np.array([(0, 0, 5), (1, 0, 5), (2, 1.5, 5), (1, 1, 5)], float)
    moved = square * [3, 1] + [1, 1]
    np.testing.assert_allclose(Cage(square, points).follow(moved), points * [3, 1, 1] + [1, 1, 0], atol=1e-12)


@pytest.mark.feature("F-P-48")
@pytest.mark.parametrize("kind", ["rigid", "chain", "deformable"])
def test_each_kind_of_body_gets_to_its_goal_among_points(kind, rng):
    turn = 2 * np.pi * np.arange(12) / 12
    body = {
        "rigid": box(3.0, 1.5),
        "chain": chain(3, 2.0, 1.0),
        "deformable": deformable(np.stack([1.5 * np.cos(turn), 0.7 * np.sin(turn)], axis=1)),
    }[kind]
    simulation = ground()
    simulation.add_bodies(body, [[9.0, 15.0]], headings=[[1, 0]], goals=[[[24.0, 18.0]]], speed=2.0)
    simulation.add_points(rng.uniform(12, 20, (30, 2)))
    simulation.run(steps=30 * 14)
    assert np.linalg.norm(simulation.bodies.outline(0).mean(axis=0)[:2] - [24, 18]) < 2.5
    for section in body.sections:
        shape = simulation.bodies.positions[list(section)]
        np.testing.assert_allclose(lengths(shape), lengths(body.particles[list(section)]), atol=0.35)


@pytest.mark.feature("F-P-52")
def test_points_do_not_change_the_way_of_a_body_by_a_single_bit(rng):
    found = []
    for points in (0, 200):
        simulation = ground(adaptive=None)
        simulation.add_bodies(
            box(3.0, 1.5), [[6.0, 15.0], [24.0, 15.5]], headings=[[1, 0], [-1, 0]], goals=[[[26, 15]], [[4, 15]]]
        )
        if points:
            simulation.add_points(np.random.default_rng(1).uniform(9, 21, (points, 2)))
        simulation.run(steps=90)
        found.append(simulation.bodies.positions)
    assert found[0].tobytes() == found[1].tobytes()


@pytest.mark.feature("F-P-51")
def test_a_slow_body_never_gets_over_a_point_that_has_room():
    simulation = ground(behaviour=Bubbles(panic=0.0), anticipation=0.0)
    simulation.add_bodies(box(4.0, 2.0), [[5.0, 15.0]], headings=[[1, 0]], goals=[[[25.0, 15.0]]], speed=0.8)
    simulation.add_points(np.stack([np.linspace(9, 22, 12), 15.0 + 0.8 * np.sin(np.arange(12))], axis=1))
    for _ in range(60):
        simulation.run(steps=10)
        assert not holds(simulation.bodies.outline(0), simulation.positions).any()


@pytest.mark.parametrize(("length", "cell"), [(5.0, 3.0), (20.0, 1.5)])
def test_an_edge_is_listed_in_every_cell_it_crosses_and_counts_once(rng, length, cell):
    simulation = ground(cell=cell)
    margin = length / 2 + 1.0
    place, angle = rng.uniform(margin, 30 - margin, (12, 2)), rng.uniform(0, 6.28, 12)
    simulation.add_bodies(box(length, 0.7), place, headings=np.stack([np.cos(angle), np.sin(angle)], axis=1))
    simulation.add_points(rng.uniform(1, 29, (80, 2)))
    simulation.run(steps=1)
    e = simulation.bodies.edges.arrays
    first, cells, edge, start, entry = (getattr(e, n).numpy() for n in ("first", "cells", "edge", "start", "entry"))
    a, b = e.a.numpy(), e.b.numpy()
    part = np.linspace(0, 1, 4000)[:, None]
    centre = simulation.map.numpy("centre")
    assert (np.diff(first)[:48] > 0).all()  # four sides each; what comes after them is virtual, and nobody moves
    for k in np.flatnonzero(np.diff(first)):
        at = np.floor((a[k] + part * (b[k] - a[k]))[:, :2] / cell)
        listed = np.floor(centre[cells[first[k] : first[k + 1]], :2] / cell)
        assert {tuple(x) for x in at} <= {tuple(x) for x in listed}
        assert len(listed) <= len({tuple(x) for x in at}) + 1  # a corner may just be touched
    for c in range(len(start) - 1):
        assert (cells[entry[start[c] : start[c + 1]]] == c).all()
    assert sorted(entry[: first[-1]]) == list(range(start[-1]))
    assert start[-1] == first[-1]


def test_virtual_edges_reach_ahead_stop_at_walls_and_become_a_wedge_for_wide_bodies():
    simulation = ground(anticipation=1.0)
    bar = rigid([(-0.5, -3), (0.5, -3), (0.5, 3), (-0.5, 3)])
    simulation.add_bodies(
        box(3.0, 1.0), [[8.0, 8.0], [24.5, 20.0]], headings=[[1, 0], [1, 0]], goals=[[[28, 8]], [[99, 20]]], speed=6.0
    )
    simulation.add_bodies(bar, [[8.0, 22.0]], headings=[[1, 0]], goals=[[[28, 22]]], speed=3.0)
    simulation.run(steps=20)
    e = simulation.bodies.edges.arrays
    ahead, owner, a, b = e.ahead.numpy() == 1, e.owner.numpy(), e.a.numpy(), e.b.numpy()
    assert [int((owner[ahead] == k).sum()) for k in range(3)] == [1, 1, 2]
    free = np.flatnonzero(ahead & (owner == 0))[0]
    speed = simulation.bodies.velocities[:4].mean(axis=0)
    np.testing.assert_allclose(b[free] - a[free], speed, atol=1e-9)
    assert b[np.flatnonzero(ahead & (owner == 1))[0], 0] <= 30.0 + 1e-9
    wedge = b[ahead & (owner == 2)]
    assert np.linalg.norm(wedge[0] - wedge[1]) == pytest.approx(6.0, rel=1e-6)


def test_anticipation_and_panic_save_most_of_a_dense_crowd_from_a_fast_snake():
    overrun = {}
    for horizon, panic in ((0.0, 0.0), (1.0, 2.25)):
        simulation = snake(600, 1, speed=12.0, anticipation=horizon, behaviour=Bubbles(panic=panic), device="cpu")
        hit, fastest = np.zeros(600, bool), 0.0
        for _ in range(100):
            before = simulation.velocities
            simulation.step()
            fastest = max(fastest, np.linalg.norm(simulation.velocities - before, axis=1).max() / simulation.dt)
            for section in range(12):
                hit |= holds(simulation.bodies.outline(0, section), simulation.positions)
        overrun[horizon] = hit.mean()
        assert fastest <= 12.0 * 2.5 + 1e-6  # even in panic
    assert overrun[0.0] > 0.02
    assert overrun[1.0] <= 0.5 * overrun[0.0]


@pytest.mark.parametrize("repeat", [False, True])
def test_a_body_that_is_added_later_does_not_change_the_way_of_the_others(repeat):
    """Nor what plasticity has made of them."""
    corners = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)], float)
    soft = deformable(corners, alpha=0.1, beta_linear=0.0, plastic_yield=0.1, plastic_creep=20.0, plastic_max=0.5)
    ends = []
    for add in (False, True):
        simulation = ground(adaptive=None)
        goals = [[[8.0, 24.0], [26.0, 24.0], [26.0, 20.0]]]
        simulation.add_bodies(box(2, 1), [[4.0, 24.0]], headings=[[1, 0]], goals=goals, speed=3.0, repeat=repeat)
        simulation.add_bodies(soft, [[15.0, 8.0]], headings=[[1, 0]])
        place = simulation.bodies.positions
        place[4:] = np.c_[corners * [1.4, 1 / 1.4] + [15.0, 8.0], np.zeros(4)]
        simulation.bodies.arrays.position.assign(place)
        simulation.run(steps=120)
        assert simulation.bodies.routes.current.numpy()[0] == 1
        if add:
            simulation.add_bodies(box(2, 1), [[4.0, 4.0]], headings=[[1, 0]], goals=[[4.0, 4.0]])
        simulation.run(steps=240)
        ends.append((simulation.bodies.positions[:8], simulation.bodies.routes.arrived.numpy()[:2]))
    assert np.ptp(ends[0][0][4:, 0]) > 2.1  # 2 at rest
    for alone, together in zip(*ends, strict=True):
        np.testing.assert_array_equal(alone, together)


def test_no_bodies_may_be_added():
    simulation = ground()
    none = np.empty((0, 2))
    for _ in range(2):
        assert len(simulation.add_bodies(box(2, 1), none, headings=none, goals=none)) == 0
        simulation.run(steps=3)
        simulation.add_bodies(box(2, 1), [[9.0, 9.0 + 9.0 * len(simulation.bodies)]], headings=[[1, 0]])
    assert len(simulation.bodies) == 2


SQUARE = [(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)]
STAR = [(0.0, 0.0), (2.0, 0.0), (1.0, 1.0), (-1.0, 1.5), (-2.0, 0.0), (-1.0, -1.0), (1.0, -1.5)]


@pytest.mark.parametrize(
    ("particles", "sections", "reason"),
    [
        ([*SQUARE, (0.0, 0.0)], ((0, 1, 2, 3),), "particle 4 is in 0 of them"),
        (STAR, ((0, 1, 2), (0, 3, 4), (0, 5, 6)), "particle 0 is in 3 of them"),
        (SQUARE, ((0, 1, 2, 9),), r"section 0 must name some of 4 particles.*\[0, 1, 2, 9\]"),
        (SQUARE, ((0, 1, 2, -1),), "section 0 must name some of 4 particles"),
        (SQUARE, ((0, 1, 2, 3), (0, 1, 1, 2)), "section 1 must name .* none twice"),
        (SQUARE, ((0.0, 1.5, 2.0),), "section 0 must name"),
        (SQUARE, (), "at least one"),
    ],
)
def test_sections_that_make_no_body_are_named(particles, sections, reason):
    with pytest.raises(InputError, match=reason):
        Body(np.array(particles), sections)


def test_plasticity_is_no_less_than_nothing():
    for wrong in ({"plastic_yield": np.nan}, {"plastic_creep": -1.0}, {"plastic_max": np.nan}, {"plastic_max": -0.1}):
        with pytest.raises(InputError, match="plastic"):
            deformable(SQUARE, **wrong)
    for wrong in ("abc", 3.0):
        with pytest.raises(InputError):
            rigid(wrong)


@pytest.mark.parametrize("make", [rigid, deformable])
@pytest.mark.parametrize(
    ("outline", "sides"),
    [
        ([(0, 0), (4, 0), (0, 3), (2, 3), (-1, 1)], "1 and 3"),
        ([(0, 0), (4, 0), (4, 4), (3, -1), (0, 4)], "0 and 2"),
    ],
)
def test_outlines_that_cross_themselves_are_refused(make, outline, sides):
    with pytest.raises(InputError, match=f"section 0 crosses itself: its sides {sides} do"):
        make(outline)


def test_bad_bodies_are_refused():
    with pytest.raises(InputError, match="counter-clockwise"):
        rigid([(0, 0), (0, 1), (1, 0)])
    with pytest.raises(InputError, match="shape"):
        Body(np.zeros((2, 2)), ((0, 1),))
    simulation = ground()
    with pytest.raises(InputError, match="outside the map"):
        simulation.add_bodies(box(4, 2), [[1.0, 1.0]], headings=[[1, 0]])
    with pytest.raises(InputError, match="no direction"):
        simulation.add_bodies(box(4, 2), [[9.0, 9.0]], headings=[[0, 0]])


def test_points_may_come_while_bodies_are_under_way():
    """What bodies read of the map was freed when points were added: they crashed, or moved by what was there before."""
    ways = []
    for late in (False, True):
        simulation = Simulation(quad_grid(4, 4, size=3.0, device="cpu"), adaptive=None)
        simulation.add_bodies(box(2.0, 1.0), [[8.0, 8.0]], headings=[[1, 0]], goals=[[8.0, 2.0]])
        simulation.add_points([[2.0, 2.0]], goals=[[2.0, 10.0]])
        for step in range(60):
            if late and step == 30:
                simulation.add_points([[2.0, 6.0]], goals=[[2.0, 8.0]])
            simulation.step()
        ways.append(simulation.bodies.positions)
    np.testing.assert_array_equal(*ways)  # bodies do not mind points
