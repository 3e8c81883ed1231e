"""Islands: who hangs together, in which order rows come, on one thread and on many."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from oracles.contact_problems import Problem, boxes, heap, tower
from tangere.dynamics.solver import contact_rows, frames, joint_rows, rigid_bodies
from tangere.dynamics.solver.islands import Islands, find_in_parallel

NAMES = ("label", "number", "contact_first", "contact_order", "joint_first", "joint_order", "body_first", "body_order")


def random_graph(rng, bodies: int, contacts: int, joints: int, device):
    """Bodies, a third of them fixed, and rows between any two of them, the world and themselves included."""
    place = wp.get_device(device)
    columns = boxes(bodies)
    fixed = rng.random(bodies) < 0.3
    columns["inverse_mass"][fixed] = 0.0
    columns["inverse_inertia"][fixed] = 0.0
    pairs = rng.integers(-1, bodies, (2, contacts))
    links = rng.integers(-1, bodies, (2, joints))
    rows = contact_rows(
        place,
        body_a=pairs[0],
        body_b=pairs[1],
        arm_a=np.zeros((contacts, 3)),
        frame=np.tile(frames([[0.0, 0.0, 1.0]]), (contacts, 1, 1)),
    )
    hinges = joint_rows(place, body_a=links[0], body_b=links[1], jacobian_a=np.ones((joints, 6)))
    return rigid_bodies(place, **columns), rows, hinges, ~fixed, pairs, links


def expected(moves: np.ndarray, pairs: np.ndarray, links: np.ndarray) -> list[tuple]:
    """Islands by SciPy: bodies, contacts and joints of each, by the first body."""
    bodies = len(moves)
    movable = np.append(moves, False)  # -1 is the world
    edges = np.concatenate([pairs, links], axis=1)
    both = movable[edges[0]] & movable[edges[1]]
    graph = coo_matrix((np.ones(both.sum()), edges[:, both]), shape=(bodies, bodies))
    _, label = connected_components(graph, directed=False)
    found = {}
    for kind, rows in ((1, pairs), (2, links)):
        for i, (a, b) in enumerate(rows.T):
            if movable[a] or movable[b]:
                body = a if movable[a] else b
                found.setdefault(label[body], ([], [], []))[kind].append(i)
    for body in np.flatnonzero(moves):
        if label[body] in found:
            found[label[body]][0].append(int(body))
    return sorted(found.values(), key=lambda island: island[0][0])


def listed(arrays, islands: int) -> list[tuple]:
    columns = {name: getattr(arrays, name).numpy() for name in NAMES}

    def part(name: str, k: int) -> list[int]:
        first = columns[f"{name}_first"]
        return columns[f"{name}_order"][first[k] : first[k + 1]].tolist()

    return [(part("body", k), part("contact", k), part("joint", k)) for k in range(islands)]


@pytest.mark.parametrize(("bodies", "contacts", "joints"), [(1, 0, 0), (30, 20, 5), (300, 260, 40), (50, 400, 0)])
def test_islands_are_the_components_of_bodies_that_move_and_rows_keep_their_order(
    rng, device, bodies, contacts, joints
):
    arrays, rows, hinges, moves, pairs, links = random_graph(rng, bodies, contacts, joints, device)
    truth = expected(moves, pairs, links)
    finder = Islands(wp.get_device(device))
    count = finder.find(arrays, bodies, rows, contacts, hinges, joints)
    assert listed(finder.arrays, count) == truth
    numbers = finder.arrays.number.numpy()[:bodies]
    for k, (members, _, _) in enumerate(truth):
        assert set(members) <= set(np.flatnonzero(numbers == k).tolist())


def test_the_road_for_many_threads_finds_the_same_bits(rng):
    for bodies, contacts, joints in ((1, 1, 0), (40, 60, 10), (200, 150, 0)):
        arrays, rows, hinges, *_ = random_graph(rng, bodies, contacts, joints, "cpu")
        one, other = Islands(wp.get_device("cpu")), Islands(wp.get_device("cpu"))
        count = one.find(arrays, bodies, rows, contacts, hinges, joints)
        other.reserve(bodies, contacts, joints)
        sizes = (bodies, contacts, joints)
        assert find_in_parallel(other.arrays, arrays, rows, hinges, sizes, wp.get_device("cpu")) == count
        for name, used in zip(NAMES, (bodies, bodies, count + 1, contacts, count + 1, joints, count + 1, bodies)):
            np.testing.assert_array_equal(
                getattr(one.arrays, name).numpy()[:used], getattr(other.arrays, name).numpy()[:used]
            )


def together(problems: list[Problem]) -> tuple[Problem, np.ndarray]:
    """Problems side by side, their rows in turns; and where each row came from."""
    bodies = {name: np.concatenate([p.bodies[name] for p in problems]) for name in problems[0].bodies}
    rows = {name: np.concatenate([p.rows[name] for p in problems]) for name in problems[0].rows}
    counts = [len(p.bodies["inverse_mass"]) for p in problems]
    shift = np.repeat(np.cumsum(counts) - counts, [p.contacts for p in problems])
    for side in ("body_a", "body_b"):
        rows[side] = np.where(rows[side] >= 0, rows[side] + shift, -1)
    order = np.argsort(np.concatenate([np.linspace(0.0, 1.0, p.contacts) for p in problems]), kind="stable")
    return Problem(bodies, {name: column[order] for name, column in rows.items()}), order


@pytest.mark.feature("F-R-49")
def test_groups_solved_independently_give_what_each_gives_alone_and_what_all_give_at_once(device):
    problems = [tower(3), heap(40), tower(1), heap(25, seed=4)]
    whole, order = together(problems)
    solved = whole.solve(device, sweeps=400)
    alone = [problem.solve(device, sweeps=400) for problem in problems]
    assert solved.report.islands == sum(one.report.islands for one in alone)
    np.testing.assert_array_equal(solved.velocity, np.concatenate([one.velocity for one in alone]))
    impulse = np.empty_like(solved.impulse)
    impulse[order] = solved.impulse
    np.testing.assert_array_equal(impulse, np.concatenate([one.impulse for one in alone]))
    # The conditions of all rows at once, which know nothing of groups, hold as well as those of each group.
    assert whole.residual(solved) <= max(one.report.worst for one in alone) * (1.0 + 1e-6)
    # Without friction the answer is unique: the projection of all bodies at once is that of each group.
    whole.rows["friction"][:] = 0.0
    np.testing.assert_allclose(
        whole.solve(device, method="interior_point", tolerance=1e-10).velocity.reshape(-1),
        whole.frictionless(),
        atol=1e-8,
    )
