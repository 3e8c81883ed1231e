"""First contact of rigid meshes by threads, in rounds and in batches: the same answer every way."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from oracles.families.rigid_scenes import FAMILIES, at, random_motion, scene, shape
from oracles.rigid_distances import mesh_distances
from tangere.motion import Twist
from tangere.query.contacts import Kind, Status
from tangere.query.first_contact import RigidOptions
from tangere.query.first_contact.rigid.api import Counters, rigid_first_contact, rigid_first_contacts
from tangere.query.first_contact.rigid.bodies import Forest, MovingBodies, bodies_of
from tangere.query.first_contact.rigid.cuda import frontier_search as rounds
from tangere.query.first_contact.rigid.query_batch import RigidQueryBatch
from tangere.query.first_contact.rigid.single_query import SingleQuery
from tangere.query.intersection import intersects
from tangere.shape import generate
from tangere.shape.mesh import Mesh


def same_bits(one, other) -> bool:
    columns = ("time", "point_a", "point_b", "normal", "gap", "feature_a", "feature_b", "weights", "kind", "key")
    equal = one.time == other.time and one.time_upper == other.time_upper and one.status == other.status
    return equal and all(
        np.array_equal(getattr(one.contacts, c), getattr(other.contacts, c), equal_nan=c == "weights") for c in columns
    )


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
    monkeypatch.setattr(rounds, "WIDEST", 64)
    monkeypatch.setattr(rounds, "HITS", 1)
    cpu = wp.get_device("cpu")
    for family in FAMILIES:
        for _ in range(effort(4, least=1)):
            s = scene(family, rng)
            sides = bodies_of(shape(s.a).moving(s.motion_a), "a"), bodies_of(shape(s.b).moving(s.motion_b), "b")
            forests = [Forest.of(bodies.shapes, cpu) for bodies in sides]
            batch = RigidQueryBatch(*forests, 1, 2, cpu)
            batch.set_queries(*sides, 0.0, 1e-6)
            batch.search_each()
            expected = batch.host_hits.copy()
            batch.reset_hits()
            rounds.search_frontier(batch)
            found = batch.host_hits
            assert (found["time"] <= 1.0) == (expected["time"] <= 1.0)
            assert (found["pierced"] >= 0) == (expected["pierced"] >= 0)
            if expected["time"] <= 1.0 and expected["pierced"] < 0:
                # Boxes are opened in another order: the times differ by what the tolerance leaves open.
                assert found["time"] == pytest.approx(expected["time"], abs=1e-3)
                times = batch.contact_details()["time"]
                near = mesh_distances(shape(s.a), shape(s.b), s.motion_a.pose(times), s.motion_b.pose(times))
                assert near <= 1e-6 * (1.0 + 1e-6)
            assert batch.host_counters[0, 0] > 0


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
        MovingBodies(
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
            assert not one or batch.time[i] == pytest.approx(one.time, abs=1e-5)
            assert batch.time[i] <= one.time_upper
            assert one.time <= batch.time_upper[i]
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


@pytest.mark.feature("F-R-19")
def test_every_event_takes_one_search_and_time_never_goes_back(monkeypatch):
    """A spinning ball between two walls: it is placed at each contact as told, thrown back, and never corrected."""
    passes = []
    search = SingleQuery.search
    monkeypatch.setattr(SingleQuery, "search", lambda *asked: (passes.append(1), search(*asked)))
    ball = generate.icosphere(triangles=320, radius=0.5)
    slab = generate.box((0.2, 4.0, 4.0))
    walls = Mesh.join([slab.at(at([x, 0.0, 0.0])) for x in (-1.5, 1.5)])
    pose, velocity, spin = at([0.1, 0.2, 0.0]), np.array([7.0, 0.1, 0.0]), np.array([0.3, 1.0, 0.2])
    steps, step, events = 100, 0.05, 0
    for _ in range(steps):
        rest = step
        while rest > 0.0:
            motion = Twist(pose, rest * velocity, rest * spin)
            hit = rigid_first_contact(
                walls,
                ball.moving(motion),
                tolerance=1e-7,
                options=RigidOptions(recession=True),
                start="trusted",
                threads=1,
                device="cpu",
            )
            pose = motion.pose(min(hit.time, 1.0))
            assert not intersects(walls, ball.at(pose), device="cpu")
            rest *= 1.0 - min(hit.time, 1.0)
            if hit:
                assert hit.status == Status.CONTACT
                assert hit.time > 0.0
                events += 1
                normal = -hit.contacts.normal[0]  # away from the walls
                velocity = velocity - 2.0 * min(velocity @ normal, 0.0) * normal
    assert len(passes) == steps + events
    assert events == pytest.approx(steps * step * 7.0 / 1.8, abs=2)


@pytest.mark.parametrize("separation", [0.0, 0.5])
@pytest.mark.parametrize("threads", [1, 2])
def test_an_overlap_at_the_start_ends_the_search_at_once(separation, threads):
    """Balls of 5,120 triangles that cross, or are well within the separation: thousands of triangles are near."""
    ball = generate.icosphere(triangles=5120)
    start = at([1.7 if separation == 0.0 else 2.2, 0.1, 0.2])
    moving, counters = ball.moving(Twist(start, [3.0, 0.0, 0.0], [0.0, 0.0, 1.0])), Counters()
    hit = rigid_first_contact(ball, moving, separation=separation, counters=counters, threads=threads, device="cpu")
    assert (hit.status, hit.time, hit.time_upper) == (Status.START, 0.0, 0.0)
    assert counters.triangle_pairs < 100
    assert counters.box_tests < 2000
    trusted = rigid_first_contact(ball, moving, separation=separation, start="trusted", device="cpu")
    assert trusted.status == Status.START


def test_the_limit_of_certainty_is_found_where_faces_land_flat(rng):
    """The triangles that touch first may never go through each other; by the time that is told bodies do overlap."""
    cube, wall = generate.box((1.0, 1.0, 1.0)), generate.box((0.5, 4.0, 4.0))
    for _ in range(10):
        place = rng.uniform(-1.0, 1.0, 2)
        motion = Twist(at([-3.0, *place]), [3.0, 0.0, 0.0], [0.0, 0.0, 0.0])[np.zeros(1, int)]
        found = rigid_first_contacts(cube.moving(motion), wall, device="cpu")
        assert found.time[0] == pytest.approx((3.0 - 0.75) / 3.0, abs=1e-5)
        assert found.time[0] < found.time_upper[0] < found.time[0] + 1e-4
        assert intersects(cube.at(motion[0].pose(found.time_upper[0])), wall, device="cpu")


def test_a_batch_of_another_size_has_the_same_bits(rng):
    """Batches keep room for more: what was asked before must not show."""
    ball, ring = shape("block"), generate.torus(576)
    motion = random_motion("twist", rng, 21)
    all_of_them = rigid_first_contacts(ring.moving(motion), ball, device="cpu")
    assert all_of_them.hit.any()
    for count in (17, 21, 1, 18, 20):
        some = rigid_first_contacts(ring.moving(motion[:count]), ball, device="cpu")
        assert len(some) == count
        for name in ("time", "time_upper", "status", "point_a", "normal", "weights", "kind"):
            assert getattr(some, name).tobytes() == getattr(all_of_them, name)[:count].tobytes(), name
