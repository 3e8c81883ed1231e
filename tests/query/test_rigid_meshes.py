"""First contact of rigid meshes: the record, the start, threads, batches, paths, chains, and bad input."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp
from scipy.spatial.transform import Rotation

from rigid_families import FAMILIES, scene, shape
from rigid_oracle import closest_approach, mesh_distances
from tangere.motion import Chain, CosineScrew, Linear, Path, Rest, Screw, TanScrew, Twist
from tangere.query.contacts import Kind, Status
from tangere.query.first_contact.rigid import Bodies, Counters, rigid_first_contact, rigid_first_contacts, rounds
from tangere.query.first_contact.rigid.bodies import Forest, bodies_of
from tangere.query.first_contact.rigid.desk import Desk
from tangere.runtime import InputError, UnsupportedError
from tangere.shape import Mesh, generate

TURNED = Rotation.from_rotvec([np.pi / 2, 0.0, 0.0]).as_matrix()
#: The six motions of the bumpy tori: start, velocity, rotation vector.
SIX = {
    "translation": ([1.05, 0, 0], [0.4, 0, 0], [0, 0, 0]),
    "turn z": ([1.05, 0, 0], [0.3, 0, 0], [0, 0, 1.0]),
    "turn y": ([1.05, 0, 0], [0, 0.2, 0], [0, np.pi / 2, 0]),
    "approach": ([0, 5.0, 0], [0, -4.5, 0], [1.0, 2.0, 0.5]),
    "approach, 20 rad": ([0, 5.0, 0], [0, -4.5, 0], [3.0, 20.0, 1.5]),
    "far": ([0, 5.0, 0], [0, -1.0, 0], [1.0, 2.0, 0.5]),
}


def at(position, rotation=None) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, 3] = position
    if rotation is not None:
        pose[:3, :3] = rotation
    return pose


def rising_block(height: float, way: float):
    """A block that moves up or down by `way`, its lower face `height` above that of the other block's upper one."""
    block = generate.box((1.0, 1.0, 1.0), name="upper")
    return block.moving(Twist(at([0.25, 0.125, 1.0 + height]), [0.0, 0.0, way], [0.0, 0.0, 0.0]))


def same_bits(one, other) -> bool:
    columns = ("time", "point_a", "point_b", "normal", "gap", "feature_a", "feature_b", "weights", "kind", "key")
    equal = one.time == other.time and one.time_upper == other.time_upper and one.status == other.status
    return equal and all(
        np.array_equal(getattr(one.contacts, c), getattr(other.contacts, c), equal_nan=c == "weights") for c in columns
    )


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
    seen = set()
    for _ in range(effort(60)):
        s = scene("solids", rng)
        a, b = shape(s.a), shape(s.b)
        hit = rigid_first_contact(a.moving(s.motion_a), b.moving(s.motion_b), tolerance=1e-7, device="cpu")
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
    every = rigid_first_contact(ground, falling, tolerance=1e-6, contacts="all", device="cpu")
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


@pytest.mark.parametrize("family", ["solids", "linked", "touching", "turns"])
def test_the_answer_has_the_same_bits_for_any_number_of_threads(rng, effort, family):
    for _ in range(effort(8, least=2)):
        s = scene(family, rng)
        a, b = shape(s.a).moving(s.motion_a), shape(s.b).moving(s.motion_b)
        one, two, seven = (rigid_first_contact(a, b, tolerance=1e-6, threads=n, device="cpu") for n in (1, 2, 7))
        assert same_bits(one, two)
        assert same_bits(one, seven)


def test_sharing_a_long_search_among_threads_keeps_the_bits():
    """Nearly conforming cylinders that slide: thousands of pairs are alive after the opening."""
    outer = generate.torus(grid=(96, 48), radius=2.0, tube=0.52)
    inner = generate.torus(grid=(96, 48), radius=2.0, tube=0.5)
    answers = []
    for threads in (1, 2, 7):
        counters = Counters()
        moving = inner.moving(Twist(np.eye(4), [0.0, 0.0, 0.03], [0.0, 0.0, 0.3]))
        answers.append(rigid_first_contact(outer, moving, threads=threads, counters=counters, device="cpu"))
        assert counters.box_tests > 2000
        assert counters.triangle_tests >= counters.triangle_pairs > 0
    assert answers[0].status == Status.CONTACT
    assert same_bits(answers[0], answers[1])
    assert same_bits(answers[0], answers[2])


def test_rounds_find_the_same_contact_as_a_search_by_one_thread(rng, effort, monkeypatch):
    """The search for GPUs, run on the CPU; narrow rounds make it sort and block."""
    monkeypatch.setattr(rounds, "WIDTH", 64)
    monkeypatch.setattr(rounds, "HITS", 1)
    cpu = wp.get_device("cpu")
    for family in FAMILIES:
        for _ in range(effort(4, least=1)):
            s = scene(family, rng)
            sides = bodies_of(shape(s.a).moving(s.motion_a), "a"), bodies_of(shape(s.b).moving(s.motion_b), "b")
            forests = [Forest.of(bodies.shapes, cpu) for bodies in sides]
            desk = Desk(*forests, 1, 2, cpu)
            desk.ask(*sides, 0.0, 1e-6)
            desk.search_each()
            expected = desk.host_bests.copy()
            rounds.search_rounds(desk)
            assert desk.host_bests["time"] == expected["time"]
            if expected["time"] <= 1.0:
                assert desk.host_bests == expected
            assert desk.host_counters[0, 0] > 0


def test_recession_culling_finds_the_same_contacts_with_less_work(rng, effort):
    """Closed bodies that start apart, small turns: the same times up to the tolerance."""
    culled = without = 0
    ball, ring = generate.icosphere(triangles=1280), generate.torus(grid=(40, 20), tube=0.3)
    for _ in range(effort(20, least=4)):
        away = rng.normal(size=3)
        away *= 2.6 / np.linalg.norm(away)
        turn = rng.choice([0.0, 0.2]) * rng.normal(size=3)
        start = at(away, Rotation.from_rotvec(rng.normal(size=3)).as_matrix())
        end = at(0.2 * rng.normal(size=3), Rotation.from_rotvec(turn).as_matrix() @ start[:3, :3])
        for motion in (Screw(start, end), Twist(start, end[:3, 3] - away, turn)):
            counts = [Counters(), Counters()]
            plain, fast = (
                rigid_first_contact(
                    ball,
                    ring.moving(motion),
                    tolerance=1e-7,
                    recession=on,
                    counters=counts[on],
                    threads=1,
                    device="cpu",
                )
                for on in (False, True)
            )
            assert plain.status == fast.status
            assert plain.time == fast.time or fast.time == pytest.approx(plain.time, abs=1e-6)
            assert counts[0].receding == 0
            culled += counts[1].receding
            without += counts[0].box_tests - counts[1].box_tests
    assert culled > 0
    assert without > 0


def test_recession_culling_leaves_open_meshes_alone(rng):
    pot, needle = shape("pot"), shape("needle")
    counters = Counters()
    moving = needle.moving(Twist(at([3.0, 0, 0.5]), [-6.0, 0, 0], [0, 0, 0]))
    hit = rigid_first_contact(pot, moving, recession=True, counters=counters, device="cpu")
    assert hit.time == rigid_first_contact(pot, moving, device="cpu").time
    assert counters.receding == 0


def test_counters_are_the_same_every_time_on_one_thread():
    s = scene("solids", np.random.default_rng(3))
    totals = []
    for _ in range(2):
        counters = Counters()
        a, b = shape(s.a).moving(s.motion_a), shape(s.b).moving(s.motion_b)
        rigid_first_contact(a, b, threads=1, counters=counters, device="cpu")
        totals.append(counters)
    assert totals[0] == totals[1]
    assert totals[0].box_tests > 0


def test_a_batch_answers_like_single_questions(rng, effort, device):
    scenes = [scene(family, rng) for family in FAMILIES for _ in range(effort(6, least=2))]
    shapes = {name: shape(name) for s in scenes for name in (s.a, s.b)}
    names = list(shapes)
    sides = [
        Bodies(
            list(shapes.values()),
            type(scenes[0].motion_a).join([getattr(s, f"motion_{side}") for s in scenes]),
            np.array([names.index(getattr(s, side)) for s in scenes]),
        )
        for side in "ab"
    ]
    batch = rigid_first_contacts(*sides, tolerance=1e-6, device=device)
    for i, s in enumerate(scenes):
        a, b = shapes[s.a].moving(s.motion_a), shapes[s.b].moving(s.motion_b)
        one = rigid_first_contact(a, b, tolerance=1e-6, device="cpu")
        if device == "cpu":
            assert (batch.time[i], batch.time_upper[i], batch.status[i]) == (one.time, one.time_upper, one.status)
        else:
            assert (batch.status[i] == Status.FREE) == (one.status == Status.FREE)
            assert not one or batch.time[i] == pytest.approx(one.time, abs=1e-6)
        if one and device == "cpu":
            assert (batch.point_a[i] == one.contacts.point_a[0]).all()
            assert (batch.normal[i] == one.contacts.normal[0]).all()
    assert batch.kind[batch.status == Status.FREE].max(initial=0) == Kind.NONE


def test_n_motions_of_one_body_meet_one_other_body(rng):
    ball = generate.icosphere(triangles=320)
    starts = np.tile(np.eye(4), (50, 1, 1))
    starts[:, 0, 3] = 3.0
    motions = Twist(starts, np.linspace([-0.5, 0, 0], [-3.0, 0, 0], 50), rng.normal(size=(50, 3)))
    found = rigid_first_contacts(ball, ball.moving(motions), device="cpu")
    reach = -np.linspace(-0.5, -3.0, 50)
    hit = found.status == Status.CONTACT
    assert (hit == (reach > 1.05)).sum() >= 48
    assert found.time[hit] * reach[hit] == pytest.approx(1.0, abs=0.06)


def test_a_path_is_followed_through_all_its_segments():
    ball, ring = generate.icosphere(triangles=320, radius=0.3), shape("ring")
    poses = np.stack([at([2.5, 0, 0]), at([0, 2.5, 0.0], TURNED), at([-2.5, 0, 0]), at([0, -2.5, 0]), at([0.5, 0, 0])])
    path = Path(poses)
    moving = ball.moving(path)
    hit = rigid_first_contact(ring, moving, tolerance=1e-6, device="cpu")
    assert hit.status == Status.CONTACT
    assert 0.75 < hit.time < 1.0
    still = Rest()
    assert closest_approach(ring, ball, still, path, hit.time) >= 0.5e-6 * (1 - 1e-6)
    assert mesh_distances(ring, ball, still.pose([hit.time]), path.pose([hit.time]))[0] <= 1e-6
    assert hit.contacts.time[0] == hit.time
    # the other way round, and both on paths with other poses in between
    assert rigid_first_contact(moving, ring, tolerance=1e-6, device="cpu").time == pytest.approx(hit.time, abs=1e-6)
    resting = ring.moving(Path(np.stack([np.eye(4)] * 4), [0.0, 0.3, 0.31, 1.0]))
    assert rigid_first_contact(resting, moving, tolerance=1e-6, device="cpu").time == pytest.approx(hit.time, abs=1e-6)
    assert not rigid_first_contact(ring, ball.moving(Path(poses[:-1])), device="cpu")


@pytest.mark.feature("F-R-24")
def test_the_links_of_a_six_link_chain_touch_obstacles_when_sampling_says_so(rng, effort):
    bar = generate.box((1.0, 0.1, 0.1)).at(at([0.5, 0, 0]))
    obstacle = generate.icosphere(triangles=80, radius=0.3)
    touched = 0
    for _ in range(effort(3, least=1)):
        joints = [Twist(np.eye(4), [0, 0, 0], rng.normal(size=3))]
        for _ in range(5):
            joint = at([1.0, 0, 0], Rotation.from_rotvec(0.3 * rng.normal(size=3)).as_matrix())
            joints.append(Twist(joint, [0, 0, 0], rng.normal(size=3)))
        chain = Chain(joints)
        place = Rest(at(rng.uniform(-3, 3, size=3)))
        for k in range(6):
            link = chain.link(k)
            hit = rigid_first_contact(obstacle.moving(place), bar.moving(link), tolerance=1e-5, device="cpu")
            nearest = closest_approach(obstacle, bar, place, link, min(hit.time, 1.0), 24, 4) if hit.time > 0 else 1.0
            assert nearest >= 0.5e-5 * (1 - 1e-6)
            if hit:
                touched += 1
                assert mesh_distances(obstacle, bar, place.pose([hit.time]), link.pose([hit.time]))[0] <= 1e-5
    assert touched > 0
    with pytest.raises(InputError, match="form a loop"):
        Chain(joints, [5, 0, 1, 2, 3, 4])


def test_the_six_motions_of_the_bumpy_tori_are_answered_right():
    """Truth by refinement: clear at the time before, contact within the tolerance at the time."""
    torus = generate.bumpy_torus(24, 12)
    proved = 0
    for name, (position, velocity, rotation) in SIX.items():
        motion = Twist(at(position, TURNED), velocity, rotation)
        hit = rigid_first_contact(torus, torus.moving(motion), tolerance=1e-6, device="cpu")
        assert (hit.status == Status.FREE) == (name in ("turn y", "far"))
        nearest = closest_approach(torus, torus, Rest(), motion, min(hit.time, 1.0), samples=4, rounds=1)
        assert nearest >= 0.5e-6 * (1 - 1e-6)
        if hit:
            distance = mesh_distances(torus, torus, Rest().pose([hit.time]), motion.pose([hit.time]))[0]
            assert distance <= 1e-6
            assert hit.time < hit.time_upper
            proved += hit.time_upper < hit.time + 1e-4
    assert proved >= 2


@pytest.mark.slow
@pytest.mark.parametrize("name", SIX)
def test_the_six_motions_of_the_full_tori_agree_with_a_peer(name):
    """69,696 triangles each: python-fcl sees them apart at every sampled time before the answer, and meet after it."""
    fcl = pytest.importorskip("fcl")
    torus = generate.bumpy_torus()
    position, velocity, rotation = SIX[name]
    motion = Twist(at(position, TURNED), velocity, rotation)
    hit = rigid_first_contact(torus, torus.moving(motion), tolerance=1e-6, device="cpu")
    model = fcl.BVHModel()
    model.beginModel(len(torus.vertices), len(torus.faces))
    model.addSubModel(torus.vertices, torus.faces)
    model.endModel()
    still = fcl.CollisionObject(model, fcl.Transform())

    def meet(t: float) -> bool:
        pose = motion.pose(t)
        other = fcl.CollisionObject(model, fcl.Transform(pose[:3, :3], pose[:3, 3]))
        return fcl.collide(still, other, fcl.CollisionRequest(), fcl.CollisionResult()) > 0

    until = min(hit.time, 1.0)
    times = np.unique(np.concatenate([np.linspace(0, until, 2000), until * (1 - 10.0 ** -np.arange(1.0, 13))]))
    assert not any(meet(t) for t in times)
    if hit:
        assert hit.time_upper - hit.time < 1e-5
        assert meet(hit.time_upper)


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
    with pytest.raises(InputError, match="tolerance must be a length"):
        rigid_first_contact(ball, ball, tolerance=-1.0, device="cpu")
    with pytest.raises(InputError, match="contacts must be 'first' or 'all'"):
        rigid_first_contact(ball, ball, contacts="some", device="cpu")
    with pytest.raises(InputError, match="b has 2 motions: ask rigid_first_contacts"):
        rigid_first_contact(ball, ball.moving(Rest(np.stack([np.eye(4)] * 2))), device="cpu")
    with pytest.raises(InputError, match="a has 3 bodies and b has 2"):
        rigid_first_contacts(
            ball.moving(Rest(np.stack([np.eye(4)] * 3))), ball.moving(Rest(np.stack([np.eye(4)] * 2))), device="cpu"
        )
    with pytest.raises(UnsupportedError, match="the motion must be rigid, not Linear"):
        rigid_first_contact(ball, ball.moving(Linear(ball.vertices)), device="cpu")
    with pytest.raises(InputError, match=r"shape\[1\] is 7 but there are 1 shapes"):
        Bodies([ball], Rest(), np.array([0, 7]))
