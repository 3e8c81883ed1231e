"""First contact of rigid bodies on public data: a robot in its surroundings, and query sets turned into rigid pairs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from bench.shapes.traps import thin_plate
from oracles.families.rigid_scenes import at
from oracles.families.sample_queries import read_families
from oracles.rigid_approaches import least_distances
from tangere.motion import Rigid, Screw, Twist
from tangere.query.contacts import Kind, Status
from tangere.query.first_contact import edge_edge, vertex_face
from tangere.query.first_contact.rigid.api import rigid_first_contact, rigid_first_contacts
from tangere.query.first_contact.rigid.bodies import MovingBodies
from tangere.query.intersection import intersects
from tangere.shape.mesh import Mesh

TOLERANCE = 1e-9


@pytest.mark.parametrize("kind", [Kind.VERTEX_FACE, Kind.EDGE_EDGE], ids=lambda kind: kind.name.lower())
def test_public_queries_as_rigid_pairs_are_never_missed_or_late(kind, data_folder, effort, rng):
    """Queries whose two sides each go straight without turning, as pairs of triangles (a vertex or an edge is one that
    is flat) under twists: the exact linear answer is the truth."""
    sides = ([0, 0, 0], [1, 2, 3]) if kind == Kind.VERTEX_FACE else ([0, 1, 1], [2, 3, 3])
    start, ways = [], []
    for queries in read_families(data_folder):
        if queries.kind == kind:
            way = queries.points[:, 4:] - queries.points[:, :4]
            bent = np.max([np.abs(way[:, s] - way[:, s[:1]]).max(axis=(1, 2)) for s in sides], axis=0)
            straight = bent <= 1e-12 * np.abs(queries.points).max(axis=(1, 2))
            start.append(queries.points[straight, :4])
            ways.append(np.stack([way[straight, s[0]] for s in sides], axis=1))
    start, ways = np.concatenate(start), np.concatenate(ways)
    rows = rng.permutation(len(start))[: effort(400, least=20)]
    start, ways = start[rows], ways[rows]
    end = start.copy()
    for side, s in enumerate(sides):
        end[:, list(set(s))] += ways[:, None, side]
    exact = (vertex_face if kind == Kind.VERTEX_FACE else edge_edge)(start, end, mode="exact", device="cpu")
    bodies = []
    for side, s in enumerate(sides):
        meshes = [Mesh(points, [[0, 1, 2]]) for points in start[:, s]]
        motion = Twist(np.eye(4), ways[:, side], np.zeros(3))
        bodies.append(MovingBodies(meshes, motion, np.arange(len(meshes))))
    found = rigid_first_contacts(*bodies, tolerance=TOLERANCE, device="cpu")
    truth = exact.status != Status.FREE
    assert truth.sum() >= 5 or len(rows) < 100
    assert (found.time <= exact.time_upper).all()
    assert (found.status[truth] != Status.FREE).all()
    near = np.linalg.norm(found.point_a - found.point_b, axis=1)[found.status != Status.FREE]
    assert (near <= TOLERANCE * (1 + 1e-6)).all()


def test_a_robot_meets_its_surroundings_no_later_than_samples_say(data_folder, rng, effort):
    """FCL's own test meshes: free before the answer at sampled times, and near enough at it, by exact intersection."""
    robot = Mesh.load(data_folder / "meshes" / "fcl_rob.obj")
    around = Mesh.load(data_folder / "meshes" / "fcl_env.obj")
    low, high = around.bounds
    tolerance = 1e-6 * around.extent
    found = 0
    for _ in range(effort(12, least=3)):
        ends = [at(rng.uniform(low, high), any_turn(rng)) for _ in range(2)]
        moving = robot.moving(Screw(*ends))
        hit = rigid_first_contact(around, moving, tolerance=tolerance, device="cpu")
        if hit.status == Status.START:
            assert intersects(around, moving, time=0.0, device="cpu")
            continue
        until = min(hit.time, 1.0)
        times = np.unique(np.concatenate([np.linspace(0, until, 60), until * (1 - 10.0 ** -np.arange(1.0, 10))]))
        assert not any(intersects(around, moving, time=float(t), device="cpu") for t in times)
        if hit:
            found += 1
            gap = np.linalg.norm(hit.contacts.point_a - hit.contacts.point_b, axis=1)
            assert (gap <= tolerance * (1 + 1e-6)).all()
            if np.isfinite(hit.time_upper):
                assert intersects(around, moving, time=hit.time_upper, device="cpu")
    assert found >= 1


def any_turn(rng) -> np.ndarray:
    return Rotation.random(random_state=int(rng.integers(2**31))).as_matrix()


@pytest.mark.feature("F-R-17")
def test_the_thin_plate_at_ten_thousand_widths_a_step_never_tunnels(rng, effort):
    """The 1 mm plate (G-12) flies 10 m at a plate at rest, in any attitude, through its middle: contact every time."""
    plate, wall = thin_plate(12), thin_plate(200)
    count = effort(1000)
    ahead = rng.normal(size=(count, 3)) * [0.6, 0.6, 0.0] + [0.0, 0.0, 1.0]
    ahead *= rng.choice([-1.0, 1.0], (count, 1)) / np.linalg.norm(ahead, axis=1, keepdims=True)
    starts = np.stack([at(-5.0 * way + [*rng.uniform(-0.4, 0.4, 2), 0.0], any_turn(rng)) for way in ahead])
    turns = rng.choice([0.0, 1.0, 20.0], (count, 1)) * rng.normal(size=(count, 3))
    motions = Rigid.join([Twist(starts, 10.0 * ahead, turns)])
    found = rigid_first_contacts(wall, plate.moving(motions), tolerance=1e-7, device="cpu")
    assert (found.status == Status.CONTACT).all()
    few = slice(0, effort(60))
    least, last = least_distances(wall, plate, Twist(np.eye(4), [0, 0, 0], [0, 0, 0]), motions[few], found.time[few])
    assert (least >= 0.5e-7 * (1 - 1e-6)).all()
    assert (last <= 1e-7 * (1 + 1e-6)).all()
