"""Bodies that are put somewhere: near others, inside others, on others, by hand, by a drive; and what cannot be."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from oracles.soft_bodies import copy_strains, passes_through
from tangere.runtime import SOUND, InputError, TangereError, choose_device, launch
from tangere.shape import generate
from tangere.shape.tets import solid_block
from tangere.soft import Body, Simulation
from tangere.soft.contact.initial_contacts import contains_another
from tangere.soft.model.assembled_bodies import struct_of
from tangere.soft.safe_step.separating_direction import VertexMoves, may_cross

wp.set_module_options(SOUND)


def shifted(shape, *by: float):
    pose = np.eye(4)
    pose[:3, 3] = by
    return shape.at(pose)


def floor(**options) -> Body:
    return Body(generate.sheet(8, size=(4.0, 4.0)), fixed=True, name="floor", **options)


@pytest.mark.parametrize("above", [1e-7, 0.02, 0.1])
def test_a_body_that_starts_nearer_than_the_contact_distance_is_not_shot_away(above):
    block = Body(shifted(solid_block((2, 2, 2)), 0.0, 0.0, 0.5 + above), youngs_modulus=1e4, density=1.0)
    simulation = Simulation([block, floor()], device="cpu")
    assert above < simulation.distance
    for _ in range(2):
        start, high = simulation.energy.total, 0.0
        for _ in range(40):
            simulation.step()
            high = max(high, simulation[0].positions[:, 2].min())
            assert simulation.energy.total < 1.05 * start
        assert 0.0 < high < above + 0.05 * simulation.distance
        simulation[0].set_state(positions=block.shape.vertices)
        simulation[0].set_state(velocities=np.zeros_like(block.shape.vertices))


def test_a_state_that_goes_on_pushes_as_before():
    """Positions, velocities and what friction remembers are a state: a copy of it does what the first one does."""
    block = Body(
        shifted(solid_block((2, 2, 2)), 0.0, 0.0, 0.9), youngs_modulus=1e3, velocity=(0.0, 0.0, -3.0), density=1.0
    )
    one, other = (Simulation([block, floor()], device="cpu") for _ in range(2))
    one.run(steps=14)
    assert one.rows.count > 0
    other[0].set_state(positions=one[0].positions, velocities=one[0].velocities)
    copy_strains(one, other)
    one.step()
    other.step()
    assert np.array_equal(one[0].positions, other[0].positions)


def test_a_body_slides_in_a_closed_container_as_on_an_open_floor():
    block = Body(
        shifted(solid_block((2, 2, 2)), -0.5, 0.0, -1.4), youngs_modulus=2e3, velocity=(2.0, 0.0, 0.0), density=1.0
    )
    simulation = Simulation(
        [block, Body(generate.box([4, 4, 4]), fixed=True)], device="cpu", distance=0.1, friction=0.0
    )
    simulation.run(steps=20)
    assert simulation.rows.count >= 9
    assert simulation[0].velocities[:, 0].mean() == pytest.approx(2.0, rel=0.01)
    assert simulation.meshes()[0].vertices[:, 2].min() + 2.0 > 0.05


def test_a_container_is_a_closed_surface_with_something_inside():
    ball, box = generate.icosphere(subdivisions=2, radius=0.3), generate.box([4, 4, 4])
    ring = generate.torus(400, radius=1.0, tube=0.4)
    assert contains_another([ball, box]).tolist() == [False, True]
    assert contains_another([ball, ring]).tolist() == [False, False]  # in the hole
    assert contains_another([shifted(ball, 1.0, 0.0, 0.0).replace(vertices=0.5 * ball.vertices + [1.0, 0, 0]), ring])[1]
    assert contains_another([ball, generate.sheet(8)]).tolist() == [False, False]
    assert contains_another([shifted(ball, 3.0, 0.0, 0.0), box]).tolist() == [False, False]


def test_bodies_that_touch_exactly_push_each_other_apart_by_penalty():
    on_floor = Body(shifted(solid_block((2, 2, 2)), 0.0, 0.0, 0.5), youngs_modulus=1e3, density=1.0)
    sheet = generate.sheet(50, size=(4.0, 4.0))
    for ground in (sheet, sheet.replace(vertices=sheet.vertices * [-1.0, 1.0, 1.0])):  # whichever way it looks
        simulation = Simulation([on_floor, Body(ground, fixed=True)], device="cpu", distance=0.05, response="penalty")
        simulation.step()
        assert (simulation.contacts.gap == 0.0).any()
        assert np.linalg.norm(simulation.contacts.normal, axis=1) == pytest.approx(1.0, abs=1e-12)
        simulation.run(steps=30)
        assert simulation[0].positions[:, 2].min() > 0.03
    lower = solid_block((2, 2, 2))
    bodies = [
        Body(lower, youngs_modulus=1e3, fixed=lower.vertices[:, 2] < -0.4, density=1.0),
        Body(shifted(lower, 0, 0, 1.0), youngs_modulus=1e3, density=1.0),
    ]
    simulation = Simulation(bodies, device="cpu", distance=0.05, response="penalty")
    simulation.run(steps=40)
    assert simulation[1].positions[:, 2].min() > simulation[0].positions[:, 2].max()


def test_contacts_stay_where_the_step_began_and_have_names_of_their_own():
    simulation = Simulation(
        [
            Body(shifted(solid_block((2, 2, 2)), 0, 0, 0.7), density=1.0),
            floor(),
            Body(shifted(solid_block((2, 2, 2)), 0, 0, 1.8), density=1.0),
        ],
        device="cpu",
    )
    simulation.run(steps=12)
    before = simulation.contacts
    simulation.meshes()
    assert len(before) > 10
    assert np.array_equal(simulation.contacts.gap, before.gap)
    assert len(np.unique(before.key)) == len(before)


@wp.kernel
def _crosses(first: int, moves: VertexMoves, out: wp.array[int]):
    out[0] = int(may_cross(0, 1, 2, 3, 4, moves))


@pytest.mark.parametrize("vertex", range(5))
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_a_number_is_never_certified(vertex, value):
    start = np.array([[0, 0, 1], [1, 0, 1], [0, 0, 0], [1, 0, 0], [0, 1, 0.0]])
    end = start.copy()
    end[vertex, 2] = value
    device = choose_device("cpu")
    moves = struct_of(VertexMoves, device, start=start, end=end, traits=np.zeros(5), least=1e-6)
    out = wp.zeros(1, dtype=wp.int32, device="cpu")
    launch(_crosses, 1, [moves], [out], device=device)
    assert out.numpy()[0] == 1


@pytest.mark.parametrize("response", ["hard", "penalty", "none"])
def test_a_step_without_a_finite_end_is_refused_and_undone(response):
    simulation = Simulation(
        [Body(shifted(solid_block((2, 2, 2)), 0, 0, 0.7), name="cube", density=1.0), floor()],
        device="cpu",
        response=response,
    )
    simulation.step()
    before, plain = simulation[0].positions, simulation.phases["predict"]

    def lost(s):
        plain(s)
        places = s.free_motion.numpy().copy()
        places[3] = np.nan
        s.free_motion.assign(places)
        s.assembly.dofs.x.assign(places)

    simulation.phases["predict"] = lost
    with pytest.raises(TangereError, match="cube"):
        simulation.step()
    assert np.array_equal(simulation[0].positions, before)
    simulation.phases["predict"] = plain
    simulation.step()
    assert np.isfinite(simulation[0].positions).all()


def test_speeds_that_no_step_can_follow_are_refused():
    with pytest.raises(InputError, match="body 0: a speed of 1e"):
        Simulation([Body(solid_block((1, 1, 1)), velocity=(0.0, 1e18, 0.0), density=1.0)], device="cpu")
    simulation = Simulation([Body(solid_block((1, 1, 1)), density=1.0)], device="cpu")
    with pytest.raises(InputError, match="a speed of 1e"):
        simulation[0].set_state(velocities=np.full((8, 3), 1e18))


def test_a_driven_tool_dents_a_soft_block_and_never_passes_through():
    shape = solid_block((4, 4, 4))
    block = Body(shape, youngs_modulus=2e3, fixed=shape.vertices[:, 2] < -0.49, density=1.0)
    tool = Body(shifted(solid_block((1, 1, 1), size=(0.2, 0.2, 0.2)), 0.02, 0.01, 0.65), fixed=True)
    simulation = Simulation([block, tool], device="cpu", gravity=(0, 0, 0), distance=0.05)
    simulation[1].drive((0.0, 0.0, -2.5))
    sent, kept = 0.0, []
    for _ in range(5):
        before = simulation.meshes()
        simulation.step()
        assert not passes_through(before, simulation.meshes())
        kept.append(simulation.truncation.driven_part)
        sent += 0.05 * kept[-1]
    assert kept[:4] == [1.0] * 4
    assert kept[4] < 1.0
    assert simulation[1].positions == pytest.approx(tool.shape.vertices - [0.0, 0.0, sent], abs=1e-12)
    assert simulation[0].positions[:, 2].max() < 0.55
    assert simulation.energy.elastic > 10.0
    low = simulation[1].positions[:, 2].min()
    simulation[1].drive((0.0, 0.0, 2.5))
    simulation.run(steps=20)
    assert 1.0 < simulation[1].positions[:, 2].min() < low + 20 * 0.05 + 1e-9  # the block may come after it
    simulation[1].drive((0.0, 0.0, -100.0))  # two metres in a step
    for _ in range(4):
        before = simulation.meshes()
        simulation.step()
        assert not passes_through(before, simulation.meshes())
    with pytest.raises(InputError, match="nothing of body 0 is fixed"):
        Simulation([Body(shape, density=1.0), tool], device="cpu")[0].drive((0, 0, 1))


def test_a_state_in_which_bodies_overlap_is_refused_by_name():
    tool = Body(shifted(solid_block((1, 1, 1), size=(0.2, 0.2, 0.2)), 0.02, 0.01, 0.65), fixed=True, name="tool")
    simulation = Simulation(
        [Body(solid_block((2, 2, 2)), name="block", density=1.0), tool], device="cpu", gravity=(0, 0, 0)
    )
    at = simulation[1].positions
    simulation[1].set_state(positions=at - [0.0, 0.0, 0.2])
    with pytest.raises(InputError, match="'block' and body 1 'tool' touch or overlap where they were put"):
        simulation.step()
    simulation[1].set_state(positions=at)
    simulation.step()


def test_fixed_obstacles_may_touch_and_cross_each_other():
    """A wall that stands in the floor: nothing of either can move, so it matters to nobody."""
    wall = Body(shifted(solid_block((1, 1, 1)), 1.3, 0.0, 0.0), fixed=True, name="wall")
    block = Body(
        shifted(solid_block((2, 2, 2)), 0.0, 0.0, 0.9), youngs_modulus=1e4, velocity=(3.0, 0.0, 0.0), density=1.0
    )
    simulation = Simulation([block, floor(), wall], device="cpu", distance=0.05)
    for _ in range(25):
        simulation.step()
        assert simulation.truncation.iterations < 16
    assert 0.0 < simulation[0].positions[:, 2].min() < 0.2
    assert 0.5 < simulation[0].positions[:, 0].max() < 0.8


@pytest.mark.parametrize(
    "ask",
    [
        lambda s: s[7].positions,
        lambda s: s[-1].positions,
        lambda s: s[9].velocities,
        lambda s: s[7].set_state(positions=np.zeros((8, 3))),
        lambda s: s[0].set_state(positions="abc"),
        lambda s: s[5].drive((0, 0, 1)),
        lambda s: s[1].drive((0, np.nan, 1)),
        lambda s: s.run(steps=2.5),
        lambda s: s.run(-1),
        lambda s: s.run(steps=-1),
        lambda s: s[0].pull(1.5, (0, 0, 0)),
        lambda s: s[0].pull(1, "abc"),
        lambda s: s[1].pull(1, (0, 0, 0)),
        lambda s: Simulation(s.bodies, dt="x"),
        lambda s: Simulation(s.bodies, dt=None),
        lambda s: Simulation(s.bodies, distance="a"),
        lambda s: Simulation(s.bodies, friction=None),
        lambda s: Simulation(s.bodies, gravity="abc"),
        lambda s: Simulation(s.bodies, contact_stiffness="a"),
        lambda s: Simulation(s.bodies, sweeps=True),
        lambda s: Simulation(s.bodies[0]),
        lambda s: Body(s.bodies[0].shape, youngs_modulus=None, density=1.0),
        lambda s: Body(s.bodies[0].shape, density="a"),
        lambda s: Body(s.bodies[0].shape, poisson="x", density=1.0),
        lambda s: Body(s.bodies[0].shape, damping=None, density=1.0),
    ],
)
def test_what_cannot_be_used_is_an_input_error(ask):
    simulation = Simulation([Body(shifted(solid_block((1, 1, 1)), 0, 0, 0.9), density=1.0), floor()], device="cpu")
    with pytest.raises(InputError):
        ask(simulation)


def test_a_row_that_is_not_finite_is_named():
    simulation = Simulation([Body(solid_block((1, 1, 1)), density=1.0)], device="cpu")
    places = simulation[0].positions
    places[5, 1] = np.inf
    with pytest.raises(InputError, match="positions of body 0: row 5 is not finite"):
        simulation[0].set_state(positions=places)
