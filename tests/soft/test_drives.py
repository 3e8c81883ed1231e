"""Tools that are driven into soft bodies: each is held back as a whole, so that what is rigid stays so."""

from __future__ import annotations

import numpy as np
import pytest

from soft_oracle import passes_through
from tangere.shape import Mesh, generate
from tangere.shape.tets_solids import solid_block
from tangere.soft import Body, Simulation
from tangere.soft.rounds import LOCAL_ROUNDS, ROUND

#: Of a step [s].
DT = 0.02


def shifted(shape, *by: float):
    pose = np.eye(4)
    pose[:3, 3] = by
    return shape.at(pose)


def soft_block(x: float = 0.0, stiffness: float = 2e3) -> Body:
    """A cube of 1 m, held at its bottom."""
    shape = solid_block((4, 4, 4))
    return Body(shifted(shape, x, 0.0, 0.0), stiffness=stiffness, fixed=shape.vertices[:, 2] < -0.49, name="block")


def small_box(*at: float) -> Body:
    return Body(shifted(solid_block((1, 1, 1), size=(0.2, 0.2, 0.2)), *at), fixed=True, name="tool")


def scene(*bodies: Body, device: str = "cpu", distance: float = 0.05, threads: int | None = None) -> Simulation:
    return Simulation(bodies, dt=DT, gravity=(0, 0, 0), distance=distance, device=device, threads=threads)


def part_made(before: np.ndarray, after: np.ndarray, sent: np.ndarray) -> float:
    """The one part of their ways that all vertices made, within 1e-9 m; fails if there is none."""
    way, made = sent - before, after - before
    part = float((way * made).sum() / (way * way).sum())
    assert np.abs(made - part * way).max() < 1e-9
    return part


def turned(points: np.ndarray, angle: float, down: float) -> np.ndarray:
    """Turned about an oblique axis through their middle, and moved down: a rigid placement."""
    axis = np.array([1.0, 2.0, 0.5]) / np.linalg.norm([1.0, 2.0, 0.5])
    cross = np.cross(np.eye(3), axis)
    turn = np.eye(3) - np.sin(angle) * cross + (1.0 - np.cos(angle)) * cross @ cross
    middle = points.mean(axis=0)
    return (points - middle) @ turn.T + middle - [0.0, 0.0, down]


def one_box() -> Body:
    return small_box(0.02, 0.01, 0.65)


def fork() -> Body:
    """Two prongs that do not hang together, one of them beside the block."""
    prong = generate.box([0.2, 0.2, 0.2])
    return Body(Mesh.join([shifted(prong, 0.02, 0.01, 0.65), shifted(prong, 1.0, 0.0, 0.65)]), fixed=True)


def carried_box() -> Body:
    """A surface that the eight vertices of a larger solid carry."""
    solid, surface = solid_block((1, 1, 1), size=(0.3, 0.3, 0.3)), generate.box([0.2, 0.2, 0.2])
    return Body(shifted(solid, 0.02, 0.01, 0.65), surface=shifted(surface, 0.02, 0.01, 0.65), fixed=True)


@pytest.mark.parametrize("tool", [one_box, fork, carried_box])
def test_a_tool_pushed_and_turned_into_a_soft_block_is_held_back_as_a_whole(tool, device):
    simulation = scene(soft_block(), tool(), device=device)
    simulation.run(3)
    rest, parts = simulation.positions(1), []
    for step in range(1, 13):
        before, meshes = simulation.positions(1), simulation.meshes()
        sent = turned(rest, 0.06 * step, 0.04 * step)
        simulation.drive(1, (sent - before) / DT)
        simulation.step()
        parts.append(part_made(before, simulation.positions(1), sent))
        assert not passes_through(meshes, simulation.meshes())
    assert min(parts) < 0.9  # it was held back
    assert max(parts) < 1.0 + 1e-12
    simulation.drive(1, (0.0, 0.0, 5.0))
    simulation.run(20)
    before = simulation.positions(1)
    sent = turned(rest, 0.3, -2.0)
    simulation.drive(1, (sent - before) / DT)
    simulation.step()
    assert np.abs(simulation.positions(1) - sent).max() < 1e-9  # a rigid placement again


@pytest.mark.parametrize("rounds_before", [0, int(LOCAL_ROUNDS) - 1], ids=["vertices first", "whole groups"])
def test_a_tool_keeps_its_shape_whatever_moves_the_solver_asks_for(device, rng, rounds_before):
    simulation = scene(soft_block(), one_box(), device=device, distance=1.0)
    free = simulation._assembly.free.numpy()[:, None] == 1
    parts, rounds = [], []

    def push(s):
        s._assembly.x.assign(s._assembly.x.numpy() + np.where(free, 0.1 * rng.standard_normal((len(free), 3)), 0.0))

    def hold_back(s):
        s._truncation.begin()
        state = s._truncation.state.numpy().copy()
        state[int(ROUND)] = rounds_before
        s._truncation.state.assign(state)
        while not s._truncation.settled():
            s._truncation.round()

    simulation.phases |= {"solve": push, "truncate": hold_back}
    for _ in range(12):
        before, meshes = simulation.positions(1), simulation.meshes()
        way = 0.01 * rng.standard_normal(3) - [0.0, 0.0, 0.03]
        simulation.drive(1, way / DT)
        simulation.step()
        parts.append(part_made(before, simulation.positions(1), before + way))
        rounds.append(simulation.held.rounds)
        assert not passes_through(meshes, simulation.meshes())
    assert min(parts) < 0.9
    assert max(rounds) > rounds_before + 1


def test_two_tools_are_held_back_by_what_each_of_them_meets():
    tools = small_box(-0.02, 0.01, 0.65), small_box(2.02, 0.03, 0.65)
    simulation = scene(soft_block(), soft_block(2.0, stiffness=4e3), *tools)
    ways = np.array([[0.1, 0.0, -2.5], [0.0, 0.2, -2.4]]) * DT
    parts = []
    for body, way in zip((2, 3), ways, strict=True):
        simulation.drive(body, way / DT)
    for _ in range(6):
        before = [simulation.positions(body) for body in (2, 3)]
        simulation.step()
        after = [simulation.positions(body) for body in (2, 3)]
        parts.append([part_made(b, a, b + way) for b, a, way in zip(before, after, ways, strict=True)])
    held = np.array(parts)[np.min(parts, axis=1) < 0.9]
    assert (np.abs(held[:, 0] - held[:, 1]) > 0.01).all()
    assert (np.min(parts, axis=0) < 0.9).all()


def test_a_tool_that_meets_nothing_goes_all_its_way_while_another_is_held_back():
    simulation = scene(soft_block(), small_box(0.02, 0.01, 0.65), small_box(2.0, 0.0, 0.65))
    rest = simulation.positions(2)
    for body in (1, 2):
        simulation.drive(body, (0.0, 0.0, -2.5))
    simulation.run(6)
    assert simulation.positions(1)[:, 2].min() > 0.55 - 6 * 0.05 + 1e-3
    assert np.abs(simulation.positions(2) - (rest - [0.0, 0.0, 6 * 0.05])).max() < 1e-12


def test_the_held_end_of_a_driven_body_moves_as_one_and_the_rest_of_it_yields():
    """A hard tip with a soft handle."""
    shape = shifted(solid_block((2, 2, 2), size=(0.2, 0.2, 0.2)), 0.02, 0.01, 0.65)
    tip = shape.vertices[:, 2] < 0.56
    simulation = scene(soft_block(), Body(shape, stiffness=1e3, fixed=tip))
    simulation.drive(1, (0.0, 0.0, -2.5))
    parts = []
    for _ in range(7):
        before, meshes = simulation.positions(1), simulation.meshes()
        simulation.step()
        after = simulation.positions(1)
        parts.append(part_made(before[tip], after[tip], before[tip] - [0.0, 0.0, 2.5 * DT]))
        assert not passes_through(meshes, simulation.meshes())
    assert min(parts) < 0.9
    assert np.abs((after - shape.vertices)[~tip, 2].mean() - (after - shape.vertices)[tip, 2].mean()) > 1e-3


def test_driven_tools_end_at_the_same_bits_for_any_number_of_threads():
    ends = []
    for threads in (1, 3):
        simulation = scene(soft_block(), carried_box(), small_box(0.35, 0.3, 0.65), threads=threads)
        for body in (1, 2):
            simulation.drive(body, (0.1, 0.0, -2.5))
        simulation.run(7)
        ends.append(np.concatenate([simulation.positions(body) for body in range(3)]))
    assert np.array_equal(*ends)
