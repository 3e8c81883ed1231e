"""First contact of rigid meshes: the record, the start, tolerances, and bad input."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from oracles.families.rigid_scenes import at, scene, shape
from oracles.rigid_distances import closest_approach, mesh_distances
from tangere.motion import Linear, Rest, Screw, Twist
from tangere.published.redon_screws import CosineScrew, TanScrew
from tangere.query.contacts import Kind, Status
from tangere.query.first_contact import RigidOptions
from tangere.query.first_contact.rigid.api import rigid_first_contact, rigid_first_contacts
from tangere.query.first_contact.rigid.bodies import MovingBodies
from tangere.runtime import InputError, UnsupportedError
from tangere.shape import generate
from tangere.shape.mesh import Mesh


def rising_block(height: float, way: float):
    """A block that moves up or down by `way`, its lower face `height` above that of the other block's upper one."""
    block = generate.box((1.0, 1.0, 1.0), name="upper")
    return block.moving(Twist(at([0.25, 0.125, 1.0 + height]), [0.0, 0.0, way], [0.0, 0.0, 0.0]))


def test_a_ball_turning_into_a_wall_touches_when_it_should():
    """A ball on an arm of length 2 swings into a wall: the time is known in closed form."""
    ball = generate.icosphere(triangles=1280, radius=0.5)
    wall = generate.plate(size=(8.0, 8.0, 0.2)).at(at([0.0, 0.0, -0.1]))
    swing = Twist(at([2.0, 0.0, 1.2]), [0, 0, 0], [0.0, 1.0, 0.0], pivot=[-2.0, 0.0, 0.0])
    hit = rigid_first_contact(wall, ball.moving(swing), tolerance=1e-9, device="cpu")
    angle = np.arcsin((1.2 - 0.5) / 2.0)
    assert hit.status == Status.CONTACT
    assert hit.time == pytest.approx(angle, abs=5e-3)  # the ball is a polyhedron
    assert hit.time <= hit.time_upper <= hit.time + 1e-6
    contact = hit.contacts
    assert contact.normal[0] == pytest.approx([0.0, 0.0, -1.0], abs=1e-6)  # pushes the wall away from the ball
    assert contact.gap[0] == pytest.approx(np.linalg.norm(contact.point_a[0] - contact.point_b[0]), rel=1e-6)
    assert contact.kind[0] == Kind.VERTEX_FACE
    assert contact.vertex_on[0] == 1
    vertex = ball.moving(swing).at(hit.time).vertices[contact.feature_b[0]]
    assert vertex == pytest.approx(contact.point_b[0], abs=1e-12)


@pytest.mark.parametrize("kind", [Screw, TanScrew, CosineScrew])
def test_swapping_the_bodies_gives_the_same_time_and_the_opposite_normal(rng, kind):
    one, other = shape("ring"), shape("cone")
    for _ in range(20):
        end = at(0.3 * rng.normal(size=3), Rotation.from_rotvec(0.8 * rng.normal(size=3)).as_matrix())
        moving = other.moving(kind(at([2.5, 0.4, 0.2]), end))
        hit = rigid_first_contact(one, moving, tolerance=1e-7, device="cpu")
        back = rigid_first_contact(moving, one, tolerance=1e-7, device="cpu")
        assert hit.status == back.status
        if hit:
            assert hit.time == pytest.approx(back.time, abs=1e-6)
            assert hit.contacts.normal[0] == pytest.approx(-back.contacts.normal[0], abs=1e-2)


@pytest.mark.feature("F-R-2")
def test_the_first_contact_is_a_vertex_on_a_face_or_two_edges_and_the_points_lie_on_them(rng, effort):
    """By brute force over all pairs of triangles: nothing is as near before, and at that time the features touch."""
    seen = set()
    for _ in range(effort(60)):
        s = scene("solids", rng)
        a, b = shape(s.a), shape(s.b)
        hit = rigid_first_contact(a.moving(s.motion_a), b.moving(s.motion_b), tolerance=1e-7, device="cpu")
        if hit.status != Status.START:
            assert closest_approach(a, b, s.motion_a, s.motion_b, min(hit.time, 1.0), samples=24, rounds=6) > 0.49e-7
        if hit.status != Status.CONTACT:
            continue
        contact = hit.contacts
        moved = [a.moving(s.motion_a).at(hit.time), b.moving(s.motion_b).at(hit.time)]
        distance = mesh_distances(a, b, s.motion_a.pose([hit.time]), s.motion_b.pose([hit.time]))[0]
        assert contact.gap[0] == pytest.approx(distance, abs=1e-12)
        assert distance <= 1e-7 * (1 + 1e-9)
        kind, on = Kind(contact.kind[0]), int(contact.vertex_on[0])
        seen.add((kind, on))
        features = [int(contact.feature_a[0]), int(contact.feature_b[0])]
        points = [contact.point_a[0], contact.point_b[0]]
        w = contact.weights[0]
        if kind == Kind.EDGE_EDGE:
            ends = [mesh.vertices[mesh.edges[f]] for mesh, f in zip(moved, features, strict=True)]
            # sides of triangles may run against the stored edge
            for edge, point, (p, q) in zip(ends, points, [(w[0], w[1]), (w[2], w[3])], strict=True):
                there = [p * edge[0] + q * edge[1], q * edge[0] + p * edge[1]]
                assert min(np.linalg.norm(x - point) for x in there) < 1e-12
        else:
            vertex = moved[on].vertices[features[on]]
            face = moved[1 - on].vertices[moved[1 - on].faces[features[1 - on]]]
            assert vertex == pytest.approx(points[on], abs=1e-12)
            assert w[1:] @ face == pytest.approx(points[1 - on], abs=1e-12)
    assert seen == {(Kind.EDGE_EDGE, 0), (Kind.VERTEX_FACE, 0), (Kind.VERTEX_FACE, 1)}


def test_an_overlap_at_the_start_is_told_with_the_edge_and_the_face_that_meet():
    one, other = generate.icosphere(triangles=80), generate.icosphere(triangles=80)
    hit = rigid_first_contact(one, other.moving(Twist(at([1.5, 0.1, 0.2]), [5.0, 0, 0], [0, 0, 1.0])), device="cpu")
    assert (hit.time, hit.time_upper, hit.status) == (0.0, 0.0, Status.START)
    contact = hit.contacts
    assert contact.kind[0] == Kind.OVERLAP
    moved = other.at(at([1.5, 0.1, 0.2]))
    of_edge, of_face = (one, moved) if contact.vertex_on[0] == 0 else (moved, one)
    edge, face = contact.feature_a[0], contact.feature_b[0]
    if contact.vertex_on[0]:
        edge, face = face, edge
    ends, corners = of_edge.vertices[of_edge.edges[edge]], of_face.vertices[of_face.faces[face]]
    normal = np.cross(corners[1] - corners[0], corners[2] - corners[0])
    assert (ends[0] - corners[0]) @ normal * ((ends[1] - corners[0]) @ normal) < 0
    assert (contact.point_a[0] - corners[0]) @ normal == pytest.approx(0.0, abs=1e-12)


def test_a_body_wholly_inside_another_is_free_until_it_touches_the_wall():
    room, ball = generate.box((4.0, 4.0, 4.0)), generate.icosphere(triangles=320, radius=0.5)
    assert not rigid_first_contact(room, ball.moving(Twist(np.eye(4), [1.0, 0, 0], [0, 0, 9.0])), device="cpu")
    assert rigid_first_contact(room, ball.moving(Twist(np.eye(4), [2.0, 0, 0], [0, 0, 9.0])), device="cpu")


def test_lying_on_each_other_at_the_start_is_contact_at_time_zero():
    ground = generate.box((1.0, 1.0, 1.0))
    for way in (-1.0, 0.0, 1.0):
        hit = rigid_first_contact(ground, rising_block(0.0, way), tolerance=1e-7, device="cpu")
        assert hit.time == 0.0
        assert hit.status in (Status.CONTACT, Status.START)


def test_all_contacts_at_the_first_instant_are_told_on_request():
    """A block lands flat on another: its corners over the face, the other's corners under it, and edges that cross."""
    ground = generate.box((1.0, 1.0, 1.0))
    falling = rising_block(0.5, -1.0)
    one = rigid_first_contact(ground, falling, tolerance=1e-6, device="cpu")
    every = rigid_first_contact(ground, falling, tolerance=1e-6, options=RigidOptions(contacts="all"), device="cpu")
    assert one.time == every.time == pytest.approx(0.5, abs=1e-6)
    assert len(one.contacts) == 1
    contacts = every.contacts
    assert contacts.key[0] == one.contacts.key[0]
    assert len(set(contacts.key.tolist())) == len(contacts)
    assert (contacts.gap <= 1e-6).all()
    assert (contacts.time == every.time).all()
    assert np.abs(np.abs(contacts.normal) - [0, 0, 1.0]).max() < 1e-6
    # by brute force: every vertex-face and edge-edge pair within the tolerance at that time
    moved = falling.at(every.time)
    expected = {(0, *pair) for pair in near_vertex_faces(ground, moved, 1e-6)}
    expected |= {(1, f, v) for v, f in near_vertex_faces(moved, ground, 1e-6)}
    told = {
        (int(on), int(p), int(q))
        for kind, on, p, q in zip(
            contacts.kind, contacts.vertex_on, contacts.feature_a, contacts.feature_b, strict=True
        )
        if kind == Kind.VERTEX_FACE
    }
    assert told == expected
    assert (contacts.kind == Kind.EDGE_EDGE).any()


def near_vertex_faces(of_vertex: Mesh, of_face: Mesh, limit: float) -> set[tuple[int, int]]:
    """Pairs (vertex, face) within `limit`, for faces in a plane of constant z with vertices above or beneath."""
    found = set()
    for v, p in enumerate(of_vertex.vertices):
        for f, corners in enumerate(of_face.vertices[of_face.faces]):
            weights = np.linalg.lstsq(np.vstack([corners.T, np.ones(3)]), np.append(p, 1.0), rcond=None)[0]
            if weights.min() >= -1e-9 and np.linalg.norm(weights @ corners - p) <= limit:
                found.add((v, f))
    return found


@pytest.mark.parametrize("tolerance", [1e-3, 1e-6, 1e-9, 1e-10])
def test_tolerances_down_to_rounding_are_kept(rng, tolerance):
    for _ in range(10):
        s = scene("solids", rng)
        a, b = shape(s.a), shape(s.b)
        hit = rigid_first_contact(a.moving(s.motion_a), b.moving(s.motion_b), tolerance=tolerance, device="cpu")
        if hit.status == Status.CONTACT:
            distance = mesh_distances(a, b, s.motion_a.pose([hit.time]), s.motion_b.pose([hit.time]))[0]
            assert distance <= tolerance * (1 + 1e-9) + 1e-14
        assert hit.status != Status.UNRESOLVED


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_answers_scale(scale):
    ball = generate.icosphere(triangles=320)
    far = generate.icosphere(triangles=320, radius=scale)
    moves = [Twist(at([3.0 * s, 0, 0]), [-2.0 * s, 0, 0], [1.0, 2.0, 3.0]) for s in (1.0, scale)]
    one, other = (rigid_first_contact(b, b.moving(m), device="cpu") for b, m in zip((ball, far), moves, strict=True))
    assert one.time == pytest.approx(other.time, abs=1e-5)


def test_input_that_makes_no_sense_is_refused():
    ball = generate.icosphere(triangles=80)
    with pytest.raises(InputError, match=r"below 1e-12 of the size of query 0"):
        rigid_first_contact(
            ball, ball.moving(Twist(at([3e6, 0, 0]), [0, 0, 0], [0, 0, 0])), tolerance=1e-9, device="cpu"
        )
    with pytest.raises(InputError, match="tolerance must be finite and not negative"):
        rigid_first_contact(ball, ball, tolerance=-1.0, device="cpu")
    with pytest.raises(InputError, match="contacts must be 'first' or 'all'"):
        RigidOptions(contacts="some")  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="b has 2 motions: ask rigid_first_contacts"):
        rigid_first_contact(ball, ball.moving(Rest(np.stack([np.eye(4)] * 2))), device="cpu")
    with pytest.raises(InputError, match="a has 3 bodies and b has 2"):
        rigid_first_contacts(
            ball.moving(Rest(np.stack([np.eye(4)] * 3))), ball.moving(Rest(np.stack([np.eye(4)] * 2))), device="cpu"
        )
    with pytest.raises(UnsupportedError, match=r"^b: the motion must be rigid, not Linear"):
        rigid_first_contact(ball, ball.moving(Linear(ball.vertices)), device="cpu")
    with pytest.raises(InputError, match=r"shape\[1\] is 7 but there are 1 shapes"):
        MovingBodies([ball], Rest(), np.array([0, 7]))
