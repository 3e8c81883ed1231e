"""Recession culling within the search for first contact: the same contacts, less work, and no overlap hidden by it."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp
from scipy.spatial.transform import Rotation

from oracles.families.rigid_scenes import at, shape
from tangere.bvh.obb import ObbTree
from tangere.bvh.recession import RecessionCones, StartCheck, StartSide, Vertices
from tangere.motion import Rest, RigidMotion, Screw, Twist, joined_records
from tangere.published.redon_intervals import IntervalOptions, first_contacts_by_intervals
from tangere.query.contacts import Status
from tangere.query.first_contact import RigidOptions
from tangere.query.first_contact.rigid.api import Counters, rigid_first_contact, rigid_first_contacts
from tangere.query.first_contact.rigid.bodies import MovingBodies
from tangere.runtime import InputError
from tangere.shape import generate
from tangere.shape.mesh import Mesh


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
                    options=RigidOptions(recession=on),
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
    hit = rigid_first_contact(pot, moving, options=RigidOptions(recession=True), counters=counters, device="cpu")
    assert hit.time == rigid_first_contact(pot, moving, device="cpu").time
    assert counters.receding == 0


@pytest.mark.parametrize("threads", [1, 2])
def test_an_overlap_at_the_start_is_not_hidden_by_culling(threads):
    """Balls in each other that part: every triangle recedes, but they overlap, and that is the answer."""
    ball = generate.icosphere(triangles=320)
    parting = ball.moving(Twist(at([1.2, 0.1, 0.2]), [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]))
    plain = rigid_first_contact(ball, parting, device="cpu", threads=threads)
    culled = rigid_first_contact(ball, parting, options=RigidOptions(recession=True), device="cpu", threads=threads)
    assert plain.status == culled.status == Status.START
    assert culled.time == 0.0
    assert culled.contacts.key[0] == plain.contacts.key[0]
    # who vouches for the start gets what the cones say
    trusted = rigid_first_contact(
        ball, parting, options=RigidOptions(recession=True), start="trusted", device="cpu", threads=threads
    )
    assert trusted.status == Status.FREE


def test_each_start_of_a_batch_is_checked(rng, device):
    """Twins side by side: they overlap (mirrored ones edge on edge, which pierces nothing), touch later, or never."""
    ball = generate.icosphere(triangles=80)
    starts = np.tile(np.eye(4), (40, 1, 1))
    starts[:, 0, 3] = np.linspace(1.0, 3.0, 40)
    starts[::2, :3, :3] = Rotation.from_rotvec([0.1, 0.2, 0.3]).as_matrix()
    parting = ball.moving(Twist(starts, rng.uniform(-1.5, 1.5, (40, 1)) * [1.0, 0.0, 0.0], np.zeros(3)))
    plain, culled = (
        rigid_first_contacts(ball, parting, options=RigidOptions(recession=on), device=device) for on in (False, True)
    )
    assert (culled.status == plain.status).all()
    assert (plain.status == Status.START).sum() >= 5
    assert (plain.status == Status.CONTACT).sum() >= 5
    np.testing.assert_allclose(culled.time, plain.time, rtol=0.0, atol=1e-5)


def test_a_start_that_is_neither_checked_nor_trusted_is_refused():
    with pytest.raises(InputError, match=r"start must be 'checked' or 'trusted' .*, not 'maybe'"):
        rigid_first_contact(shape("ball"), shape("ball"), start="maybe", device="cpu")  # pyright: ignore


# -- what starts inside of something ----------------------------------------------------------------------------------

ROOM = generate.icosphere(triangles=320, radius=2.0)
PART = generate.box((0.7, 0.7, 0.7))


def flipped(mesh: Mesh) -> Mesh:
    return Mesh(mesh.vertices, mesh.faces[:, ::-1])


#: What a part of 0.7 m at the origin is in: a room, one of several, a room whose wall has two sides, a bowl.
SURROUNDINGS = {
    "a closed room": ROOM,
    "one of two rooms": Mesh.join([ROOM.at(at([9.0, 0.0, 0.0])), ROOM]),
    "a hollow solid": Mesh.join([generate.icosphere(triangles=320, radius=2.5), flipped(ROOM)]),
    "a room of a hollow solid": Mesh.join(
        [generate.icosphere(triangles=320, radius=3.5), flipped(generate.icosphere(triangles=320, radius=3.0)), ROOM]
    ),
    "an open bowl": Mesh(ROOM.vertices, ROOM.faces[40:]),
}
CULLED = ["a hollow solid"]


def way_out(rng) -> Twist:
    return Twist(
        at(0.3 * rng.normal(size=3), Rotation.from_rotvec(rng.normal(size=3)).as_matrix()),
        4.0 * rng.normal(size=3),
        rng.choice([0.0, 0.3]) * rng.normal(size=3),
    )


@pytest.mark.parametrize("start", ["checked", "trusted"])
@pytest.mark.parametrize("around", SURROUNDINGS)
def test_what_starts_inside_of_a_surface_does_not_get_through_it_unseen(around, start, rng, effort):
    """Seen from inside a wall moves against its normal when it comes nearer: its cones would hide the contact."""
    surroundings, culled, hits = SURROUNDINGS[around], Counters(), 0
    for _ in range(effort(40, least=4)):
        moving, still = PART.moving(way_out(rng)), surroundings
        for a, b in ((moving, still), (still, moving)):
            plain = rigid_first_contact(a, b, device="cpu")
            found = rigid_first_contact(
                a, b, options=RigidOptions(recession=True), start=start, counters=culled, device="cpu"
            )
            assert (found.status, found.time) == (plain.status, pytest.approx(plain.time, abs=1e-6))
            hits += plain.status == Status.CONTACT
    assert hits > 4
    if around != "an open bowl":  # the part has cones of its own
        assert (culled.receding > 0) == (around in CULLED)


@pytest.mark.parametrize("recession", ["elementary", "hierarchical"])
@pytest.mark.parametrize("made", [IntervalOptions, IntervalOptions.printed])
def test_the_interval_engine_does_not_cull_what_starts_inside_either(recession, made, rng):
    motions = Twist(
        np.stack([at([0.0, 0.0, 0.0]), at([0.1, 0.2, 0.3]), at([6.0, 0.1, 0.2])]),
        np.array([[3.0, 0.3, 0.2], [0.0, -4.0, 0.3], [-8.0, 0.0, 0.0]]),
        np.zeros(3),
    )
    for a, b in ((PART.moving(motions), ROOM), (ROOM, PART.moving(motions))):
        plain = first_contacts_by_intervals(a, b, made(), device="cpu")
        found = first_contacts_by_intervals(a, b, made(recession=recession), device="cpu")
        assert plain.status.tolist() == [Status.CONTACT] * 3
        np.testing.assert_allclose(found.time, plain.time, rtol=0.0, atol=1e-3)
    parting = ROOM.moving(Twist(at([2.32, 2.31, 2.3]), [0.02, 0.02, 0.02], np.zeros(3)))
    counts = [
        first_contacts_by_intervals(parting, ROOM, made(recession=on), device="cpu").counters
        for on in ("off", recession)
    ]
    assert counts[1].boxes < counts[0].boxes  # what starts outside is culled still


def test_rows_of_a_batch_are_culled_or_not_by_where_each_starts(rng, device):
    """Parts of two shapes strewn in and round two rooms, one of them full of holes."""
    count = 60
    starts = np.stack([at(p, Rotation.from_rotvec(p).as_matrix()) for p in rng.uniform(-1.5, 1.5, (count, 3))])
    motion = Twist(starts, rng.normal(size=(count, 3)) * 4.0, 0.2 * rng.normal(size=(count, 3)))
    parts = MovingBodies([PART, generate.icosphere(triangles=80, radius=0.3)], motion, rng.integers(0, 2, count))
    rooms = MovingBodies(
        [ROOM, SURROUNDINGS["a hollow solid"], shape("ring")], Screw(np.eye(4), np.eye(4)), rng.integers(0, 3, count)
    )
    for a, b in ((parts, rooms), (rooms, parts)):
        counters = Counters()
        plain = rigid_first_contacts(a, b, device=device)
        culled = rigid_first_contacts(a, b, options=RigidOptions(recession=True), counters=counters, device=device)
        assert (culled.status == plain.status).all()
        np.testing.assert_allclose(culled.time, plain.time, rtol=0.0, atol=1e-5)
        assert counters.receding > 0
        assert (plain.status == Status.CONTACT).sum() > 20  # of which a good part from inside


def test_a_mesh_with_a_surface_inside_out_beside_the_others_is_never_culled():
    """The volumes of its surfaces add up to more than nothing, but one of them faces inwards and is no hollow."""
    mesh = Mesh.join([ROOM, flipped(PART).at(at([5.0, 0.0, 0.0]))])
    coming = PART.moving(Twist(at([9.0, 0.1, 0.2]), [-5.0, 0.0, 0.0], [0.0, 0.0, 0.0]))
    plain = rigid_first_contact(coming, mesh, device="cpu")
    assert plain.status == Status.CONTACT
    assert rigid_first_contact(coming, mesh, options=RigidOptions(recession=True), device="cpu").time == pytest.approx(
        plain.time, abs=1e-6
    )


def test_surfaces_inside_of_a_body_are_told_from_those_outside_by_solid_angles(rng, effort):
    """Points near and on edges of lattice cubes too, where rays meet edges: never called outside when inside."""
    bodies = {"ring": shape("ring"), "cube": generate.box((2.0, 2.0, 2.0)), "hollow": SURROUNDINGS["a hollow solid"]}
    tiny = generate.box((1e-3, 1e-3, 1e-3))
    for body in bodies.values():
        places = np.concatenate([rng.uniform(-2.0, 2.0, (effort(150), 3)), rng.integers(-3, 4, (effort(50), 3)) * 0.3])
        moving = tiny.moving(Screw(np.stack([at(p) for p in places]), np.stack([at(p) for p in places])))
        outside = outside_of(body, moving)
        winding = np.array([windings(body, tiny.vertices + p) for p in places])
        clear = (np.abs(winding - winding.round()) < 1e-9).all(axis=1) & (np.ptp(winding, axis=1) < 1e-9)
        assert clear.sum() > 50
        assert (outside == (winding.round()[:, 0] == 0))[clear].all()


def windings(mesh: Mesh, points: np.ndarray) -> np.ndarray:
    """How often a mesh winds round points, (n,)."""
    x, y, z = np.moveaxis(mesh.vertices[mesh.faces] - points[:, None, None], 2, 0)
    r, s, t = (np.linalg.norm(v, axis=-1) for v in (x, y, z))
    across = (x * np.cross(y, z)).sum(-1)
    along = r * s * t + (y * z).sum(-1) * r + (z * x).sum(-1) * s + (x * y).sum(-1) * t
    return np.arctan2(across, along).sum(-1) / (2.0 * np.pi)


def outside_of(body: Mesh, moving) -> np.ndarray:
    """What the library says."""
    cpu, records = wp.get_device("cpu"), joined_records([Rest().records(), moving.motion.records()])
    columns = dict.fromkeys(("node_a", "node_b", "triangle_a", "triangle_b", "motion_a"), 0)
    sides = []
    for mesh in (body, moving.shape):
        tree = ObbTree.of(mesh, cpu)
        vertices = Vertices.of((mesh,), [RecessionCones.of(mesh, tree, device=cpu)], cpu)
        sides.append(StartSide(tree.nodes, tree.corners, vertices))
    check = StartCheck(*sides, wp.array(records, dtype=RigidMotion, device=cpu), len(records) - 1)
    return check.outside(columns | {"motion_b": np.arange(1, len(records))})
