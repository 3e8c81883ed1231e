"""Dynamics in motion space, as Redon's thesis has it: cones, projections, friction rows, impacts, contact space."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from tangere.dynamics.solver import frames
from tangere.published.redon_dynamics import (
    ConeBatch,
    LcpBatch,
    curvature_need,
    dimple_directions,
    gauss_projection,
    jacobian_rows,
    motion_space_rows,
    nearest_in_cone,
    simultaneous_impact,
    sliding_directions,
    solve_lcp,
)
from tangere.runtime import InputError

GRAVITY = 9.81


def metric(rng, size: int) -> np.ndarray:
    """A kinetic metric of any kind."""
    spread = rng.normal(size=(size, size))
    return spread @ spread.T + 0.2 * np.eye(size)


def body_problem(rng, bodies: int, contacts: int):
    """Mass, rows, need and free motion of bodies with random contacts, some with the world, that allow rest."""
    mass = np.zeros((6 * bodies, 6 * bodies))
    for b in range(bodies):
        mass[6 * b : 6 * b + 3, 6 * b : 6 * b + 3] = rng.uniform(0.5, 5.0) * np.eye(3)
        mass[6 * b + 3 : 6 * b + 6, 6 * b + 3 : 6 * b + 6] = metric(rng, 3)
    a = rng.integers(0, bodies, contacts)
    b = np.where(rng.random(contacts) < 0.4, -1, rng.integers(0, bodies, contacts))
    b = np.where(a == b, -1, b)
    normals = rng.normal(size=(contacts, 3))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    rows = jacobian_rows(bodies, a, b, rng.normal(size=(contacts, 3)), rng.normal(size=(contacts, 3)), normals)
    return mass, rows, -rng.uniform(0.0, 0.3, contacts), rng.normal(size=6 * bodies)


def by_enumeration(mass, rows, need, wanted) -> np.ndarray:
    """The least distance by trying every set of active rows: the only one whose conditions all hold."""
    inverse = np.linalg.inv(mass)
    for size in range(len(rows) + 1):
        for active in map(list, combinations(range(len(rows)), size)):
            j = rows[active]
            force = np.linalg.lstsq(j @ inverse @ j.T, need[active] - j @ wanted, rcond=None)[0]
            x = wanted + inverse @ j.T @ force
            if force.min(initial=0.0) >= -1e-12 and (rows @ x - need).min() >= -1e-11:
                return x
    raise AssertionError("no set of active rows is optimal")


@pytest.mark.feature("F-R-55")
def test_ten_thousand_cones_have_their_nearest_point_and_tell_members_by_zero_distance(rng, effort):
    for m, k in ((3, 3), (8, 3), (12, 6), (30, 12)):
        count = effort(2500)
        vectors, targets = rng.normal(size=(count, m, k)), rng.normal(size=(count, k))
        members = np.arange(count) % 2 == 0
        inside = np.einsum("nmk,nm->nk", vectors, rng.uniform(0.0, 1.0, (count, m)) * (rng.random((count, m)) < 0.5))
        targets[members] = inside[members]
        for sparse, incremental in ((False, False), (True, False), (True, True)):
            found = ConeBatch(vectors, targets, sparse=sparse, incremental=incremental).solve()
            np.testing.assert_allclose(found.point, np.einsum("nmk,nm->nk", vectors, found.weights), atol=1e-9)
            assert found.weights.min() >= 0.0
            rest = targets - found.point
            slope = np.einsum("nmk,nk->nm", vectors, rest)
            assert slope.max() <= 1e-8  # no vector leads nearer
            assert np.abs(np.einsum("nk,nk->n", rest, found.point)).max() <= 1e-7
            distance = np.linalg.norm(rest, axis=1)
            assert distance[members].max() <= 1e-8
            # where it is not zero, `rest` separates the target from the cone
            outside = distance > 1e-6
            assert outside.sum() > 0.02 * count
            assert (np.einsum("nk,nk->n", rest, targets)[outside] > 0.0).all()


@pytest.mark.feature("F-R-54")
def test_the_reduction_to_a_nearest_point_gives_the_least_distance(rng, effort):
    for _ in range(effort(40)):
        mass, rows, need, wanted = body_problem(rng, bodies=2, contacts=7)
        expected = by_enumeration(mass, rows, need, wanted)
        for method in ("nnls", "ldp", "lcp"):  # seven rows in twelve dimensions: a k with J k = c exists
            found = gauss_projection(mass, rows, need, wanted, method=method)
            assert found.feasible
            np.testing.assert_allclose(found.motion, expected, atol=1e-9)


@pytest.mark.feature("F-R-50", "F-R-56")
def test_projections_satisfy_all_conditions_and_equal_the_forces_of_contact_space(rng, effort):
    for _ in range(effort(60)):
        mass, rows, need, wanted = body_problem(rng, bodies=3, contacts=int(rng.integers(1, 60)))
        found = gauss_projection(mass, rows, need, wanted)
        slack = rows @ found.motion - need
        assert slack.min() >= -1e-10
        assert found.multipliers.min() >= 0.0
        assert np.abs(slack * found.multipliers).max() <= 1e-9
        np.testing.assert_allclose(mass @ (found.motion - wanted), rows.T @ found.multipliers, atol=1e-10)
        # The same forces solve the complementarity problem with A = J M^-1 J^T, and its solution gives this motion.
        a, b = rows @ np.linalg.solve(mass, rows.T), rows @ wanted - need
        acceleration = a @ found.multipliers + b
        assert acceleration.min() >= -1e-9
        assert np.abs(acceleration * found.multipliers).max() <= 1e-9
        forces = solve_lcp(a, b)
        assert forces.solved
        assert forces.force.min() >= 0.0
        assert np.abs(forces.force * forces.acceleration).max() <= 1e-9
        np.testing.assert_allclose(wanted + np.linalg.solve(mass, rows.T @ forces.force), found.motion, atol=1e-8)


def test_redundant_rows_that_disagree_break_the_printed_method_but_not_least_distance(rng):
    mass, rows, need, wanted = body_problem(rng, bodies=1, contacts=4)
    rows, need = np.concatenate([rows, rows]), np.concatenate([need, need + 1e-3])
    wanted = wanted - 3.0 * np.linalg.solve(mass, rows[:4].T).sum(axis=1)
    assert (rows @ gauss_projection(mass, rows, need, wanted, method="nnls").motion - need).min() < -1e-5
    assert (rows @ gauss_projection(mass, rows, need, wanted).motion - need).min() > -1e-10


def test_rows_that_contradict_are_told():
    rows = np.array([[1.0, 0.0], [-1.0, 0.0]])
    assert not gauss_projection(np.eye(2), rows, np.array([1.0, 1.0]), np.zeros(2)).feasible


@pytest.mark.feature("F-R-57")
def test_motion_space_is_better_conditioned_and_sparse_however_bodies_are_joined(rng):
    bodies, contacts = 20, 60
    mass, rows, _, _ = body_problem(rng, bodies, contacts)
    j = motion_space_rows(np.linalg.cholesky(mass).T, rows)
    assert np.count_nonzero(np.abs(j) > 1e-14) <= 12 * contacts
    forces = rows @ np.linalg.solve(mass, rows.T)
    assert np.linalg.cond(forces) == pytest.approx(np.linalg.cond(j) ** 2, rel=1e-3)
    # one body that all touch: every two contacts share it
    a, b = np.zeros(contacts, int), np.arange(contacts) % (bodies - 1) + 1
    normals = rng.normal(size=(contacts, 3))
    star = jacobian_rows(bodies, a, b, rng.normal(size=(contacts, 3)), rng.normal(size=(contacts, 3)), normals)
    assert np.count_nonzero(star) <= 12 * contacts
    assert np.count_nonzero(star @ star.T) == contacts * contacts


@pytest.mark.feature("F-R-59")
def test_a_two_link_arm_in_reduced_coordinates_stops_at_a_wall():
    """Angles of a planar arm with M(q) and J(q); its tip must not accelerate through a wall."""
    lengths, masses = np.array([1.0, 0.8]), np.array([2.0, 1.0])
    q = np.array([0.4, 0.9])
    rate = np.array([0.3, -0.2])

    def tip(angles):
        return lengths[0] * np.cos(angles[0]) + lengths[1] * np.cos(angles.sum())

    # point masses at the ends of the links
    inertia_12 = masses[1] * lengths[0] * lengths[1] * np.cos(q[1])
    inertia_22 = masses[1] * lengths[1] ** 2
    inertia_11 = masses.sum() * lengths[0] ** 2 + inertia_22 + 2.0 * inertia_12
    mass = np.array([[inertia_11, inertia_22 + inertia_12], [inertia_22 + inertia_12, inertia_22]])
    jacobian = -np.array(
        [[-lengths[0] * np.sin(q[0]) - lengths[1] * np.sin(q.sum()), -lengths[1] * np.sin(q.sum())]]
    )  # the tip's x must not grow
    step = 1e-4
    curvature = -(tip(q + step * rate) - 2.0 * tip(q) + tip(q - step * rate)) / step**2
    free = np.array([-4.0, 1.0])  # pushes the tip towards the wall
    assert jacobian @ free + curvature < -0.1
    found = gauss_projection(mass, jacobian, np.array([-curvature]), free)
    assert jacobian @ found.motion + curvature == pytest.approx(0.0, abs=1e-9)
    # d'Alembert: the reaction does no work along what the wall allows
    along = np.array([-jacobian[0, 1], jacobian[0, 0]])
    assert along @ mass @ (found.motion - free) == pytest.approx(0.0, abs=1e-10)
    path = [q + t * rate + 0.5 * t * t * found.motion for t in (0.0, 1e-3, 2e-3)]
    assert tip(path[2]) - 2.0 * tip(path[1]) + tip(path[0]) == pytest.approx(0.0, abs=1e-8)


@pytest.mark.feature("F-R-53")
def test_a_pendulum_held_by_opposite_rows_keeps_its_length_and_its_energy():
    """A rod hung at its end: every equation of the joint is two opposite inequalities, at velocity level."""
    dt, arm = 5e-3, np.array([0.0, 0.0, 0.5])
    inertia = np.diag([1.0, 1.0, 0.05]) / 12.0
    mass = np.zeros((6, 6))
    mass[:3, :3] = np.eye(3)
    turn, centre, velocity = np.eye(3), np.array([0.0, 0.0, -0.5]), np.array([0.5, 0.0, 0.0, 0.0, -1.0, 0.0])
    drift = []
    for _ in range(400):
        mass[3:, 3:] = turn @ inertia @ turn.T
        r = turn @ arm
        rows = jacobian_rows(1, np.zeros(3, int), np.full(3, -1), np.tile(r, (3, 1)), np.zeros((3, 3)), np.eye(3))
        error = centre + r
        drift.append(np.linalg.norm(error))
        free = velocity + dt * np.array([0.0, 0.0, -GRAVITY, 0.0, 0.0, 0.0])
        need = -0.2 * error / dt
        found = gauss_projection(mass, np.concatenate([rows, -rows]), np.concatenate([need, -need]), free)
        assert found.feasible
        velocity = found.motion
        np.testing.assert_allclose(rows @ velocity, need, atol=1e-9)
        centre = centre + dt * velocity[:3]
        turn = rotation(dt * velocity[3:]) @ turn
    assert max(drift) <= 2e-3
    assert np.mean(drift[200:]) <= 2.0 * np.mean(drift[20:200]) + 1e-9  # bounded, not growing
    assert velocity[1] == pytest.approx(0.0, abs=1e-9)


def rotation(vector: np.ndarray) -> np.ndarray:
    angle = np.linalg.norm(vector)
    x, y, z = vector
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sinc(angle / np.pi) * cross + 0.5 * np.sinc(0.5 * angle / np.pi) ** 2 * cross @ cross


def particle_rows(directions: np.ndarray) -> np.ndarray:
    """Rows of one body through its centre."""
    count = len(directions)
    nothing = np.zeros((count, 3))
    return jacobian_rows(1, np.zeros(count, int), np.full(count, -1), nothing, nothing, directions)


@pytest.mark.feature("F-R-60")
def test_a_particle_that_slides_is_slowed_by_mu_g(rng):
    for mu in (0.1, 0.5, 1.2):
        normal = np.array([[0.0, 0.0, 1.0]])
        angle = rng.uniform(0.0, 2.0 * np.pi)
        tangent = np.array([[np.cos(angle), np.sin(angle), 0.0]])
        d = particle_rows(sliding_directions(normal, tangent, np.array([mu])))
        free = np.array([0.0, 0.0, -GRAVITY, 0.0, 0.0, 0.0])
        rows, need = np.concatenate([particle_rows(normal), -d]), np.concatenate([[0.0], -(d @ free)])
        found = gauss_projection(np.eye(6), rows, need, free)
        np.testing.assert_allclose(found.motion[:3], -mu * GRAVITY * tangent[0], atol=1e-9)


def on_slope(slope: float, mu: float, sides: int, direction: float) -> np.ndarray:
    """Acceleration, in the frame of a slope, of a particle at rest; downhill is at an angle from the first tangent."""
    frame = np.eye(3)[[2, 0, 1]][None]
    walls = particle_rows(dimple_directions(frame, np.array([mu]), sides)[0])
    angle = np.arctan(slope)
    downhill = np.array([np.cos(direction), np.sin(direction)])
    free = np.zeros(6)
    free[:2], free[2] = GRAVITY * np.sin(angle) * downhill, -GRAVITY * np.cos(angle)
    return gauss_projection(np.eye(6), walls, np.zeros(len(walls)), free).motion


@pytest.mark.feature("F-R-61")
def test_a_dimple_of_six_sides_sticks_up_to_mu_along_a_generator_and_a_little_less_between(rng):
    for mu in (0.2, 0.5, 1.0):
        for sides in (4, 6, 12):
            generator, between = 2.0 * np.pi / sides, np.pi / sides
            assert np.abs(on_slope(0.999999 * mu, mu, sides, generator)).max() <= 1e-9
            beyond = on_slope(1.01 * mu, mu, sides, generator)
            angle = np.arctan(1.01 * mu)
            slides = GRAVITY * (np.sin(angle) - mu * np.cos(angle)) / (1.0 + mu * mu)
            downhill = np.array([np.cos(generator), np.sin(generator)])
            np.testing.assert_allclose(beyond[:2], slides * downhill, atol=1e-9)
            assert beyond[2] == pytest.approx(mu * slides, abs=1e-9)  # and climbs, as the thesis says
            weakest = mu * np.cos(np.pi / sides)
            assert np.abs(on_slope(0.999999 * weakest, mu, sides, between)).max() <= 1e-9
            assert np.abs(on_slope(1.01 * weakest, mu, sides, between)).max() > 1e-3
            for direction in rng.uniform(0.0, 2.0 * np.pi, 5):  # no direction is weaker
                assert np.abs(on_slope(0.999 * weakest, mu, sides, direction)).max() <= 1e-9


def frictional(rng, bodies: int, contacts: int):
    """The rows of bodies with dimples at half of the contacts and sliding rows at the others."""
    mass, _, _, velocity = body_problem(rng, bodies, 1)
    a, b = rng.integers(0, bodies, contacts), np.full(contacts, -1)
    arms, normals = rng.normal(size=(contacts, 3)), rng.normal(size=(contacts, 3))
    frame = frames(normals / np.linalg.norm(normals, axis=1, keepdims=True))
    mu = rng.uniform(0.1, 0.9, contacts)
    half = contacts // 2

    def rows(chosen, directions):
        chosen = np.asarray(chosen)
        return jacobian_rows(bodies, a[chosen], b[chosen], arms[chosen], 0.0 * arms[chosen], directions)

    walls = dimple_directions(frame[:half], mu[:half])
    dimples = rows(np.repeat(np.arange(half), walls.shape[1]), walls.reshape(-1, 3))
    moving = np.arange(half, contacts)
    sliding = rows(moving, sliding_directions(frame[moving, 0], frame[moving, 1], mu[moving]))
    return mass, rows(np.arange(contacts), frame[:, 0]), dimples, sliding, velocity


@pytest.mark.feature("F-R-62")
def test_friction_keeps_the_answer_unique_whatever_the_order_of_the_rows(rng, effort):
    for _ in range(effort(20)):
        mass, normal, dimples, sliding, free = frictional(rng, bodies=2, contacts=10)
        rows = np.concatenate([normal, dimples, -sliding])
        need = np.concatenate([np.zeros(len(normal) + len(dimples)), -(sliding @ free)])
        # rest is allowed where friction alone does not push
        need = np.minimum(need, 0.0)
        first = gauss_projection(mass, rows, need, free)
        assert first.feasible
        for _ in range(3):
            order = rng.permutation(len(rows))
            other = gauss_projection(mass, rows[order], need[order], free)
            assert other.feasible
            np.testing.assert_allclose(other.motion, first.motion, atol=1e-7)


@pytest.mark.feature("F-R-52")
def test_impacts_stop_reverse_exchange_and_never_add_energy(rng, effort):
    wall = particle_rows(np.array([[0.0, 0.0, 1.0]]))
    falling = np.array([0.3, 0.0, -2.0, 0.0, 0.0, 0.0])
    for e in (0.0, 0.5, 1.0):
        after = simultaneous_impact(np.eye(6), wall, falling, e).motion
        np.testing.assert_allclose(after, [0.3, 0.0, 2.0 * e, 0.0, 0.0, 0.0], atol=1e-12)
    two = np.array([[-1.0, 1.0]])  # two balls on a line, equal masses: they exchange speeds, or go on together
    for e, after in ((1.0, [0.0, 2.0]), (0.0, [1.0, 1.0])):
        found = simultaneous_impact(np.eye(2), two, np.array([2.0, 0.0]), e)
        np.testing.assert_allclose(found.motion, after, atol=1e-12)
    for _ in range(effort(150)):
        mass, rows, _, velocity = body_problem(rng, bodies=3, contacts=int(rng.integers(1, 25)))
        after = simultaneous_impact(mass, rows, velocity, rng.uniform()).motion
        assert after @ mass @ after <= velocity @ mass @ velocity * (1.0 + 1e-9)
    with pytest.raises(InputError, match="between 0 and 1"):
        simultaneous_impact(np.eye(2), two, np.zeros(2), 1.5)


def test_a_cradle_struck_by_one_ball_flies_off_together_as_simultaneous_impacts_have_it():
    rows = np.eye(5)[1:] - np.eye(5)[:-1]
    after = simultaneous_impact(np.eye(5), rows, np.array([2.0, 0.0, 0.0, 0.0, 0.0]), 1.0).motion
    np.testing.assert_allclose(after, [-1.2, 0.8, 0.8, 0.8, 0.8], atol=1e-12)
    assert after @ after == pytest.approx(4.0)


@pytest.mark.feature("F-R-63")
def test_an_oblique_bounce_with_friction_loses_tangential_speed_and_no_impact_gains_energy(rng, effort):
    normal, tangent = np.array([[0.0, 0.0, 1.0]]), np.array([[1.0, 0.0, 0.0]])
    before = np.array([1.0, 0.0, -2.0, 0.0, 0.0, 0.0])
    for e in (0.0, 0.3, 0.7):
        for mu in (0.05, 0.2):
            sliding = particle_rows(sliding_directions(normal, tangent, np.array([mu])))
            after = simultaneous_impact(np.eye(6), particle_rows(normal), before, e, sliding=sliding).motion
            assert after[2] == pytest.approx(2.0 * e, abs=1e-9)
            assert after[0] == pytest.approx(1.0 - mu * (1.0 + e) * 2.0, abs=1e-9)
            assert after @ after < before @ before
    for _ in range(effort(60)):  # many contacts at rest: the dimples allow rest, which is nearer than any gain
        mass, normals, dimples, _, velocity = frictional(rng, bodies=2, contacts=6)
        after = simultaneous_impact(mass, normals, velocity, 0.0, dimples=dimples)
        assert after.feasible
        assert after.motion @ mass @ after.motion <= velocity @ mass @ velocity * (1.0 + 1e-9)


def test_terms_of_velocity_are_the_second_derivative_of_the_gap():
    """A vertex of a spinning body above a spinning face: K against finite differences."""
    rng = np.random.default_rng(5)
    centres, velocities, spins = rng.normal(size=(2, 3)), rng.normal(size=(2, 3)), rng.normal(size=(2, 3))
    corner, foot = rng.normal(size=3), rng.normal(size=3)
    normal = rng.normal(size=3)
    normal /= np.linalg.norm(normal)

    def gap(t: float) -> float:
        turned = [rotation(t * spin) for spin in spins]
        point_a = centres[0] + t * velocities[0] + turned[0] @ corner
        point_b = centres[1] + t * velocities[1] + turned[1] @ foot
        return (turned[1] @ normal) @ (point_a - point_b)

    # the foot must be where the vertex is, along the normal
    apart = centres[0] + corner - centres[1] - foot
    foot = foot + apart - 1e-9 * normal
    approach = velocities[0] + np.cross(spins[0], corner) - velocities[1] - np.cross(spins[1], foot)
    need = curvature_need(
        spins[:1], spins[1:], corner[None], foot[None], approach[None], normal[None], np.cross(spins[1], normal)[None]
    )
    step = 1e-4
    second = (gap(step) - 2.0 * gap(0.0) + gap(-step)) / step**2
    assert -need[0] == pytest.approx(second, abs=1e-5)


def test_batches_of_contact_problems_agree_with_motion_space(rng):
    vectors, targets = rng.normal(size=(20, 40, 12)), rng.normal(size=(20, 12))
    points = ConeBatch(vectors, targets).solve()
    forces = [
        LcpBatch(
            vectors @ vectors.transpose(0, 2, 1),
            -np.einsum("nmk,nk->nm", vectors, targets),
            sparse=sparse,
            incremental=incremental,
            whole=whole,
        ).solve()
        for sparse in (False, True)
        for incremental in (False, True)
        for whole in (False, True)
    ]
    for found in forces:
        assert found.solved.all()
        np.testing.assert_allclose(np.einsum("nmk,nm->nk", vectors, found.force), points.point, atol=1e-8)
    one = nearest_in_cone(vectors[3], targets[3])
    np.testing.assert_array_equal(one.point, points.point[3])
