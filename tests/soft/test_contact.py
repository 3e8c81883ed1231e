"""Contact: forces, friction on slopes, what never passes through, what falls together, threads."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.soft_bodies import overlaps, passes_through
from tangere.query.contacts import Kind
from tangere.query.proximity import proximity
from tangere.runtime import InputError, using_threads
from tangere.shape import generate
from tangere.shape.mesh import Mesh
from tangere.shape.tets import solid_block
from tangere.soft import Body, Simulation
from tangere.soft.contact.rows import ContactRows


def shifted(shape, *by: float):
    pose = np.eye(4)
    pose[:3, 3] = by
    return shape.at(pose)


def block_on_slope(slope: float, friction: float, **options) -> Simulation:
    """A block just above a plane; the slope is in the direction of gravity."""
    block = shifted(solid_block((4, 4, 2), size=(2.0, 2.0, 1.0)), 0.0, 0.0, 0.5 + 0.19)
    floor = Body(generate.sheet(2, size=(60.0, 60.0)), fixed=True, name="floor")
    gravity = 9.81 * np.array([np.sin(slope), 0.0, -np.cos(slope)])
    bodies = [Body(block, youngs_modulus=1e4, name="block", density=1.0), floor]
    return Simulation(bodies, gravity=gravity, friction=friction, distance=0.2, device="cpu", **options)


def two_blocks(response: str, **options) -> Simulation:
    """Two tumbling blocks that meet in free space."""
    rng = np.random.default_rng(5)
    one, other = solid_block((3, 3, 3)), shifted(solid_block((4, 3, 2)), 1.15, 0.3, 0.2)
    bodies = []
    for number, shape in enumerate((one, other)):
        spin = rng.standard_normal(3)
        velocity = np.cross(spin, shape.vertices - shape.vertices.mean(axis=0)) + [2.0 - 4.0 * number, 0.0, 0.3]
        bodies.append(Body(shape, youngs_modulus=2e3, velocity=velocity, name=f"block {number}", density=1.0))
    return Simulation(bodies, gravity=(0, 0, 0), response=response, device="cpu", **{"distance": 0.15, **options})


def dof_forces(rows: ContactRows, count: int) -> np.ndarray:
    """(n, 3) what the rows do to the dofs, as `update_forces` left them [N]."""
    total, all_ = np.zeros((count, 3)), rows.arrays
    for dofs, weights, size, force in zip(
        *(column.numpy()[: rows.count] for column in (all_.dofs, all_.weights, all_.sizes, all_.force)), strict=True
    ):
        np.add.at(total, dofs[:size], weights[:size, None] * force)
    return total


@pytest.mark.feature("F-L-38")
def test_penalty_forces_are_k_times_depth_and_conserve_momentum():
    simulation = two_blocks("penalty", contact_stiffness=70.0, friction=0.0)
    simulation.run(steps=4)
    for name in ("reset", "predict", "detect", "respond"):
        simulation.phases[name](simulation._pipeline)
    rows, contacts = simulation.rows, simulation.contacts
    assert {Kind.VERTEX_FACE, Kind.EDGE_EDGE} <= {Kind(kind) for kind in contacts.kind}
    begin = simulation._pipeline.start.numpy().copy()
    simulation._pipeline.assembly.dofs.x.assign(begin)
    rows.update_forces()
    forces = dof_forces(rows, len(begin))
    assert np.abs(forces).max() > 0.1
    assert np.abs(forces.sum(axis=0)).max() <= 1e-10 * np.abs(forces).sum()
    turning = np.cross(begin, forces)
    assert np.abs(turning.sum(axis=0)).max() <= 1e-10 * np.abs(turning).sum()

    def potential(x: np.ndarray) -> float:
        """k/2 max(0, d - gap)^2 of every contact, its normal kept, from the record alone."""
        places = [x[: len(begin_of[0])], x[len(begin_of[0]) :]]
        gaps = []
        for row in range(len(contacts)):
            point_a = _material_point(simulation, contacts, row, "a", places)
            point_b = _material_point(simulation, contacts, row, "b", places)
            gaps.append((point_a - point_b) @ contacts.normal[row])
        return 0.5 * 70.0 * (np.maximum(0.0, limits - np.array(gaps)) ** 2).sum()

    begin_of = [body.shape.vertices for body in simulation.bodies]
    limits = np.array([0.15 if a != b else 0.0 for a, b in zip(contacts.body_a, contacts.body_b, strict=True)])
    for dof in np.argsort(-np.linalg.norm(forces, axis=1))[:4]:
        for axis in range(3):
            low, high = begin.copy(), begin.copy()
            low[dof, axis] -= 1e-6
            high[dof, axis] += 1e-6
            slope = (potential(high) - potential(low)) / 2e-6
            assert forces[dof, axis] == pytest.approx(-slope, rel=1e-5, abs=1e-6)


def _material_point(simulation, contacts, row: int, side: str, places: list[np.ndarray]) -> np.ndarray:
    """The point of a contact on one body, from its feature and weights, wherever the body's vertices are."""
    body = int(getattr(contacts, f"body_{side}")[row])
    feature, weights = int(getattr(contacts, f"feature_{side}")[row]), contacts.weights[row]
    surface, vertices = simulation.bodies[body].surface, simulation.bodies[body].shape.surface_vertices
    if contacts.kind[row] == Kind.EDGE_EDGE:
        corners, weights = surface.edges[feature], weights[:2] if side == "a" else weights[2:]
    elif side == "a":
        corners, weights = np.array([feature]), weights[:1]
    else:
        corners, weights = surface.faces[feature], weights[1:]
    return weights @ places[body][vertices[corners]]


def test_momentum_is_conserved_to_ten_digits_while_bodies_collide():
    simulation = two_blocks("penalty", friction=0.4)
    before, touched = simulation.momentum, 0
    size = np.abs(
        simulation._pipeline.assembly.dofs.mass.numpy()[:, None] * simulation._pipeline.assembly.dofs.v.numpy()
    ).sum()
    for _ in range(40):
        simulation.step()
        touched += simulation.rows.count > 0
        assert np.abs(simulation.momentum - before).max() <= 1e-10 * size
    assert touched > 3
    # They did push each other: the first no longer moves as it did.
    assert simulation[0].velocities[:, 0].mean() < 1.0


@pytest.mark.feature("F-L-41")
def test_the_response_consumes_the_contacts_that_detection_found():
    simulation = two_blocks("penalty", distance=0.2)
    simulation.run(steps=3)
    meshes = simulation.meshes()
    simulation.step()
    found = proximity(*meshes, distance=0.2, device="cpu")
    between = simulation.contacts[simulation.contacts.body_a != simulation.contacts.body_b]
    assert len(found) > 0
    assert len(between) == len(found)
    assert np.allclose(np.sort(between.gap), np.sort(found.gap), atol=1e-12)
    assert simulation.rows.count == len(simulation.contacts)


@pytest.mark.feature("F-L-39")
def test_a_step_is_a_list_of_phases_in_order_and_any_can_be_replaced():
    simulation = two_blocks("hard")
    assert list(simulation.phases) == ["reset", "predict", "detect", "respond", "solve", "truncate", "record"]
    calls = []
    for name, phase in list(simulation.phases.items()):
        simulation.phases[name] = lambda s, name=name, phase=phase: (calls.append(name), phase(s))
    simulation.run(steps=2)
    assert calls == 2 * list(simulation.phases)
    assert set(simulation.timings) == set(simulation.phases)
    assert all(seconds >= 0.0 for seconds in simulation.timings.values())


@pytest.mark.parametrize("friction", [0.3, 0.6])
def test_a_block_stays_on_a_slope_below_the_friction_angle(friction):
    simulation = block_on_slope(np.arctan(0.85 * friction), friction)
    simulation.run(steps=30)
    resting = simulation[0].positions[:, 0].mean()
    simulation.run(steps=50)
    assert abs(simulation[0].positions[:, 0].mean() - resting) < 0.02  # of 4 m it would slide without friction
    assert abs(simulation[0].velocities[:, 0].mean()) < 0.02


@pytest.mark.parametrize("friction", [0.3, 0.6])
def test_a_block_slides_down_a_steeper_slope_at_the_rate_of_coulomb_friction(friction):
    slope = np.arctan(1.5 * friction)
    simulation = block_on_slope(slope, friction)
    simulation.run(steps=40)
    begin = simulation[0].velocities[:, 0].mean()
    simulation.run(steps=30)
    rate = (simulation[0].velocities[:, 0].mean() - begin) / (30 * simulation.dt)
    assert rate == pytest.approx(9.81 * (np.sin(slope) - friction * np.cos(slope)), rel=0.05)


def test_without_friction_nothing_holds_a_block():
    simulation = block_on_slope(0.2, 0.0)
    simulation.run(steps=30)
    begin = simulation[0].velocities[:, 0].mean()
    simulation.run(steps=20)
    assert (simulation[0].velocities[:, 0].mean() - begin) / 0.4 == pytest.approx(9.81 * np.sin(0.2), rel=1e-3)


@pytest.mark.parametrize("speed", [10.0, 1e3, 1e5])
def test_a_bullet_does_not_tunnel_through_a_sheet(speed):
    bullet = Body(
        shifted(solid_block((1, 1, 1), size=(0.1, 0.1, 0.1)), 0.03, 0.01, 3.0), density=1e3, velocity=(0, 0, -speed)
    )
    wall = Body(generate.sheet(8, size=(2.0, 2.0)), fixed=True)
    simulation = Simulation([bullet, wall], device="cpu", gravity=(0, 0, 0), distance=0.02)
    for _ in range(20):
        before = simulation.meshes()
        simulation.step()
        assert not passes_through(before, simulation.meshes())
        assert simulation.meshes()[0].vertices[:, 2].min() > 0.0


def test_a_bullet_is_caught_by_a_soft_curtain():
    bullet = Body(
        shifted(solid_block((1, 1, 1), size=(0.2, 0.2, 0.2)), 0.03, 0.01, 0.3), density=10.0, velocity=(0, 0, -80.0)
    )
    sheet = generate.sheet(200, size=(2.0, 2.0))
    rim = np.abs(sheet.vertices[:, :2]).max(axis=1) > 0.99
    curtain = Body(sheet, youngs_modulus=1e5, thickness=0.02, density=100.0, fixed=rim)
    simulation = Simulation([bullet, curtain], device="cpu", gravity=(0, 0, 0), distance=0.05)
    for _ in range(25):
        before = simulation.meshes()
        simulation.step()
        assert not passes_through(before, simulation.meshes())
    assert simulation.truncation.iterations >= 0
    assert simulation[0].velocities[:, 2].mean() > -20.0


def test_no_random_move_of_random_triangles_passes_through(rng, effort):
    """Whatever a solver asks for: here nothing but noise, far larger than the triangles."""
    for _ in range(effort(3, least=2)):
        soup = _disjoint_soup(rng, 40)
        simulation = Simulation(
            [Body(part, density=1.0, youngs_modulus=1.0) for part in soup],
            device="cpu",
            gravity=(0, 0, 0),
            distance=0.01,
        )
        simulation.phases["solve"] = lambda s: s.assembly.dofs.x.assign(
            s.start.numpy() + rng.standard_normal((len(s.assembly.dofs.x), 3))
        )
        before = simulation.meshes()
        simulation.step()
        assert not passes_through(before, simulation.meshes())
        assert simulation.truncation.iterations > 0
        assert not overlaps(simulation)


def _disjoint_soup(rng: np.random.Generator, count: int) -> list[Mesh]:
    """Triangles that do not meet, some of them very close."""
    kept: list[Mesh] = []
    while len(kept) < count:
        corners = rng.uniform(-1.0, 1.0, (1, 3)) + 0.3 * rng.standard_normal((3, 3))
        trial = Mesh(corners, [[0, 1, 2]])
        if not kept or not passes_through([*kept, trial], [*kept, trial]):
            kept.append(trial)
    return kept


def test_a_crumpling_sheet_never_meets_itself(rng):
    sheet = generate.sheet(450, size=(1.0, 1.0))
    simulation = Simulation([Body(sheet, youngs_modulus=1e3, density=100.0)], device="cpu", gravity=(0, 0, 0))
    for _ in range(6):
        push = 0.05 * rng.standard_normal(sheet.vertices.shape) - 0.25 * simulation[0].positions
        simulation.phases["solve"] = lambda s, push=push: s.assembly.dofs.x.assign(s.start.numpy() + push)
        before = simulation.meshes()
        simulation.step()
        assert simulation.truncation.iterations > 0
        assert not passes_through(before, simulation.meshes())
        assert not overlaps(simulation)


def test_moves_that_need_no_shortening_are_left_alone():
    simulation = two_blocks("hard")
    simulation.phases["solve"] = lambda s: None
    simulation.step()
    assert simulation.truncation.iterations == 0
    assert np.array_equal(simulation._pipeline.assembly.dofs.x.numpy(), simulation._pipeline.free_motion.numpy())


def test_bodies_that_fall_together_are_not_slowed():
    """Nearly touching plates in free fall: a plane at rest between them would hold the upper one back."""
    lower, upper = solid_block((2, 2, 1)), shifted(solid_block((2, 2, 1)), 0.05, 0.02, 1.0 + 2e-4)
    bodies = [Body(shape, velocity=(0, 0, -30.0), youngs_modulus=1e4, density=1.0) for shape in (lower, upper)]
    simulation = Simulation(bodies, device="cpu", distance=1e-3)
    simulation.run(steps=10)
    fallen = -30.0 * 0.2 - 9.81 * 0.02**2 * 55
    moved = np.concatenate([simulation[k].positions - body.shape.vertices for k, body in enumerate(bodies)])
    assert moved.mean(axis=0) == pytest.approx([0.0, 0.0, fallen], abs=1e-6)
    assert np.abs(moved[:, 2] - fallen).max() < 0.02


@pytest.mark.feature("F-L-68")
def test_a_body_at_rest_has_no_contacts_with_itself_however_large_the_distance():
    sheet = generate.sheet(800, size=(1.0, 1.0))
    for part in (0.5, 2.0, 5.0):  # of the edges
        simulation = Simulation([Body(sheet, density=1.0)], device="cpu", gravity=(0, 0, 0), distance=part * 0.05)
        simulation.step()
        assert simulation.rows.count == 0
        assert np.allclose(simulation[0].positions, sheet.vertices, atol=1e-12)


def test_threads_do_not_change_a_bit():
    results = set()
    for threads in (1, 2, 7):
        with using_threads(threads):
            sheet = generate.sheet(1800, size=(1.5, 1.5))
            cloth = sheet.replace(vertices=sheet.vertices + [0.0, 0.0, 0.05])
            box = Body(shifted(generate.plate(300, size=(0.6, 0.6, 0.1)), 0, 0, -0.03), fixed=True)
            simulation = Simulation(
                [Body(cloth, density=100.0, youngs_modulus=1e4, velocity=(0, 0, -2.0)), box], device="cpu"
            )
            simulation.run(steps=12)
            assert simulation.rows.count > 100
            results.add(simulation[0].positions.tobytes())
    assert len(results) == 1


def test_surfaces_that_overlap_at_the_start_are_refused():
    pair = [
        Body(solid_block((1, 1, 1)), density=1.0),
        Body(shifted(solid_block((1, 1, 1)), 0.5, 0.2, 0.1), density=1.0),
    ]
    with pytest.raises(InputError, match="overlap at the start"):
        Simulation(pair, device="cpu")
    Simulation(pair, device="cpu", response="penalty")


def test_a_pulled_vertex_goes_where_it_is_pulled_and_is_stopped_by_a_wall():
    ball = Body(shifted(solid_block((2, 2, 2)), 0.0, 0.0, 2.0), youngs_modulus=1e3, density=10.0)
    wall = Body(generate.sheet(8, size=(6.0, 6.0)), fixed=True)
    simulation = Simulation([ball, wall], device="cpu", gravity=(0, 0, 0), distance=0.05)
    corner = int(np.argmin(ball.surface.vertices.sum(axis=1)))
    simulation[0].pull(corner, (0.5, 0.5, 2.5))
    simulation.run(steps=120)
    assert simulation.meshes()[0].vertices[corner] == pytest.approx([0.5, 0.5, 2.5], abs=0.15)
    simulation.let_go()
    before = simulation.momentum
    simulation.run(steps=3)
    assert simulation.momentum == pytest.approx(before, abs=1e-9)  # free again
    simulation[0].pull(corner, (0.0, 0.0, -3.0))
    for _ in range(60):
        simulation.step()
        assert simulation.meshes()[0].vertices[:, 2].min() > 0.0
        assert not overlaps(simulation)
    assert simulation.meshes()[0].vertices[corner, 2] < 0.1  # as far as it can go
    with pytest.raises(InputError, match="there is no body 5"):
        simulation[5].pull(0, (0, 0, 0))
    with pytest.raises(InputError, match="pull"):
        simulation[0].pull(10_000, (0, 0, 0))


def test_two_boxes_that_meet_edge_to_edge_push_each_other():
    """Crossed edges: no vertex is near a face, so only the pair of edges knows the contact."""
    roof = np.array([[1, 0, 0, 0], [0, 2**-0.5, -(2**-0.5), 0], [0, 2**-0.5, 2**-0.5, 0], [0, 0, 0, 1]])
    turned = np.array([[0, -1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]) @ roof
    lower, upper = solid_block((1, 1, 1)).at(roof), solid_block((1, 1, 1)).at(turned)
    gap = 0.06
    upper = shifted(upper, 0.0, 0.0, lower.vertices[:, 2].max() - upper.vertices[:, 2].min() + gap)
    bodies = [Body(lower, fixed=True), Body(upper, youngs_modulus=1e4, velocity=(0, 0, -0.5), density=1.0)]
    simulation = Simulation(bodies, device="cpu", gravity=(0, 0, 0), distance=0.05)
    kinds, deepest = set(), np.inf
    for _ in range(30):
        simulation.step()
        kinds |= {Kind(kind) for kind in simulation.contacts.kind}
        deepest = min(deepest, *simulation.contacts.gap, np.inf)
        assert not overlaps(simulation)
    assert kinds == {Kind.EDGE_EDGE}
    assert deepest < 0.05
    assert simulation[1].velocities[:, 2].mean() > 0.02  # thrown back, which a truncated move would not be
