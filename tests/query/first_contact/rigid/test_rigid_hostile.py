"""What a careless user asks of rigid first contact is answered, or refused with a reason, and never answered wrong."""

from __future__ import annotations

import numpy as np
import pytest

import tangere as tg
from tangere.query.contacts import Status
from tangere.query.distance import distance
from tangere.query.first_contact.rigid import rigid_first_contact, rigid_first_contacts, scene_first_contact
from tangere.query.intersection import intersects
from tangere.runtime import InputError, UnsupportedError

BOX = tg.generate.box()


def moved(x: float, y: float = 0.0, z: float = 0.0) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, 3] = x, y, z
    return pose


def scaled(mesh: tg.Mesh, factor: float) -> tg.Mesh:
    return mesh.replace(vertices=mesh.vertices * factor)


@pytest.mark.parametrize("length", [1e101, 1e200, 1e300])
def test_ways_so_long_that_their_squares_overflow_are_refused(length):
    """At 1e200 the search once answered "free" for a box that goes right through another."""
    with pytest.raises(InputError, match="displacement contains numbers beyond 1e\\+100"):
        tg.Twist(moved(3.0), [-length, 0.0, 0.0], np.zeros(3))
    with pytest.raises(InputError, match="start contains numbers beyond"):
        tg.Twist(moved(length), np.zeros(3), np.zeros(3))
    with pytest.raises(InputError, match="beyond"):
        tg.Screw(moved(0.0), moved(length))


@pytest.mark.parametrize("length", [1e3, 1e6, 1e9, 1e20, 1e50, 1e99])
@pytest.mark.parametrize("turn", [0.0, 3.0])
def test_however_fast_a_box_goes_it_does_not_get_through_another(length, turn):
    found = tg.first_contact(BOX.moving(tg.Twist(moved(3.0), [-length, 0, 0], [0, 0, turn])), BOX, device="cpu")
    assert found.status == Status.CONTACT
    assert found.time <= 2.0 / length * (1.0 + 1e-12)


@pytest.mark.parametrize("scale", [1e-39, 1e-30, 1e-9, 1e9, 1e30, 1e36])
def test_the_time_does_not_depend_on_the_unit_of_length(scale):
    mesh = scaled(BOX, scale)
    motion = tg.Twist(moved(3.0 * scale), [-3.0 * scale, 0.0, 0.0], [0.0, 0.0, 1.0])
    found = tg.first_contact(mesh.moving(motion), mesh, device="cpu")
    expected = tg.first_contact(BOX.moving(tg.Twist(moved(3.0), [-3.0, 0.0, 0.0], [0, 0, 1.0])), BOX, device="cpu")
    assert found.time == pytest.approx(expected.time, abs=1e-6)
    assert distance(mesh, mesh.at(moved(3.0 * scale)), device="cpu").upper == pytest.approx(2.0 * scale)


def test_a_mesh_too_small_for_its_boxes_is_refused_by_name():
    with pytest.raises(InputError, match=r"'box'.*1e-50"):
        tg.first_contact(scaled(BOX, 1e-50).moving(tg.Twist(moved(1.0), [0, 0, 0], [0, 0, 0])), BOX, device="cpu")


def test_no_questions_get_no_answers():
    none = tg.Twist(np.zeros((0, 4, 4)), np.zeros((0, 3)), np.zeros((0, 3)))
    found = tg.first_contact(BOX.moving(none), BOX, device="cpu")
    assert len(found) == 0
    assert found.point_a.shape == (0, 3)
    assert not found.hit.any()


@pytest.mark.parametrize(("thing", "told"), [(None, "NoneType"), ("mesh.stl", "str"), (np.zeros((3, 3)), "array")])
def test_what_is_no_mesh_is_refused_by_its_type(thing, told):
    with pytest.raises(UnsupportedError, match=told):
        intersects(thing, device="cpu")
    with pytest.raises(UnsupportedError, match=told):
        intersects(thing, BOX, device="cpu")
    with pytest.raises(UnsupportedError, match=told):
        distance(thing, BOX, device="cpu")
    with pytest.raises(UnsupportedError, match="a Mesh at rest with itself" if thing is None else told):
        distance(BOX, thing, device="cpu")  # without a second one only a list can be asked about


def test_meshes_turned_inside_out_lose_no_contact_to_recession():
    """Cones of inward normals would cull exactly what comes nearer."""
    ball = tg.generate.icosphere(subdivisions=2)
    inside_out = tg.Mesh(ball.vertices, ball.faces[:, ::-1])
    both = tg.Mesh.join([ball, inside_out.at(moved(5.0))])
    for mesh in (inside_out, both):
        for start, way in ((4.0, -6.0), (-9.0, 6.0)):
            moving = mesh.moving(tg.Twist(moved(start), [way, 0.0, 0.0], [0.0, 0.0, 0.3]))
            with_cones = rigid_first_contact(moving, ball, options=tg.RigidOptions(recession=True), device="cpu")
            without = rigid_first_contact(moving, ball, device="cpu")
            assert with_cones.time == without.time
            assert with_cones.status == without.status


@pytest.mark.parametrize("thing", [None, 5, BOX, BOX.moving(tg.Rest())])
def test_a_scene_that_is_no_list_is_refused(thing):
    with pytest.raises(InputError, match="bodies must be a list of bodies"):
        scene_first_contact(thing, device="cpu")


@pytest.mark.parametrize(
    ("allowed", "reason"),
    [
        ([[0, 1.9]], "whole numbers"),
        ([[True, False]], "whole numbers"),
        ([0, 1, 2], r"shape \(k, 2\), not \(3,\)"),
        ([[0, 1, 2]], r"shape \(k, 2\), not \(1, 3\)"),
        ("no", r"shape \(k, 2\)"),
        ([[0, 1], [2]], "allowed"),
        ([[0, 2]], r"allowed\[0\] is \[0, 2\] but there are 2 bodies"),
        ([[0, 1], [0, -1]], r"allowed\[1\] is \[0, -1\]"),
    ],
)
def test_pairs_that_may_touch_but_are_no_pairs_are_refused_and_hide_no_contact(allowed, reason):
    bodies = [BOX, BOX.moving(tg.Twist(moved(3.0), [-3.0, 0.0, 0.0], [0.0, 0.0, 0.0]))]
    with pytest.raises(InputError, match=reason):
        tg.first_contact(bodies, allowed=allowed, device="cpu")
    assert tg.first_contact(bodies, allowed=[], device="cpu").status == Status.CONTACT
    assert tg.first_contact(bodies, allowed=[[1, 0]], device="cpu").status == Status.FREE


#: How far apart the middles of two unit cubes are along x, and whether they meet.
CUBES = {0.0: True, 0.5: True, 1.0 - 1e-9: True, 1.0: True, 1.0 + 1e-8: False}


@pytest.mark.parametrize("recession", [False, True])
@pytest.mark.parametrize(("apart", "meets"), CUBES.items())
def test_aligned_cubes_that_meet_at_the_start_are_told_so_though_no_edge_goes_through_a_face(apart, meets, recession):
    """As `Linear` does: START where they meet, CONTACT where they are only within tolerance."""
    expected = (0.0, Status.START, 0.0) if meets else (0.0, Status.CONTACT, np.inf)
    for motion in (tg.Rest(moved(apart)), tg.Twist(moved(apart), [1.0, 0.0, 0.0], [0.0, 0.0, 0.0])):
        hit = tg.first_contact(BOX.moving(motion), BOX, options=tg.RigidOptions(recession=recession), device="cpu")
        assert (hit.time, hit.status, hit.time_upper) == expected
        assert np.abs(hit.contacts.point_a - hit.contacts.point_b).max() <= 1e-6 * BOX.extent
    scene = tg.first_contact([BOX, BOX.moving(tg.Twist(moved(apart), [1.0, 0, 0], [0, 0, 0]))], device="cpu")
    assert (scene.time, scene.status, scene.time_upper) == expected
    deforming = BOX.at(moved(apart))
    linear = tg.first_contact(deforming.moving(tg.Linear(deforming.vertices)), BOX, device="cpu")
    assert (linear.status == Status.START) == meets


def test_each_row_of_a_batch_tells_whether_it_meets_at_the_start(device):
    starts = np.stack([moved(x) for x in (*CUBES, 3.0, 9.0)])
    moving = BOX.moving(tg.Twist(starts, [-2.5, 0.0, 0.0], [0.0, 0.0, 0.0]))
    found = rigid_first_contacts(BOX, moving, device=device)
    told = [Status.START if meets else Status.CONTACT for meets in CUBES.values()]
    assert found.status.tolist() == [*told, Status.CONTACT, Status.FREE]
    assert found.time_upper[: len(CUBES)].tolist() == [0.0 if meets else np.inf for meets in CUBES.values()]
    trusted = rigid_first_contacts(BOX, moving, start="trusted", device=device)
    assert (trusted.time == found.time).all()
    assert Status.START not in trusted.status  # nobody asked


def test_a_path_that_starts_face_on_face_says_so():
    path = tg.Path(np.stack([moved(1.0), moved(1.5), moved(3.0)]))
    hit = tg.first_contact(BOX.moving(path), BOX, device="cpu")
    assert (hit.time, hit.status) == (0.0, Status.START)


def test_a_rigid_and_a_deforming_mesh_may_be_named_in_any_order():
    cloth = tg.generate.sheet(200)
    falling = BOX.moving(tg.Twist(moved(0.0, 0.0, 3.0), [0.0, 0.0, -4.0], [0.0, 0.0, 1.0]))
    rising = cloth.moving(tg.Linear(cloth.vertices + [0.0, 0.0, 0.1]))
    one, other = tg.first_contact(falling, rising, device="cpu"), tg.first_contact(rising, falling, device="cpu")
    assert one.status == other.status == Status.CONTACT
    assert one.time == pytest.approx(2.5 / 4.1, abs=1e-5)
    assert other.time == pytest.approx(one.time, abs=1e-5)
    assert one.contacts.normal[0] == pytest.approx([0.0, 0.0, 1.0], abs=1e-3)  # pushes the box up
    assert other.contacts.normal[0] == pytest.approx([0.0, 0.0, -1.0], abs=1e-3)
    with pytest.raises(UnsupportedError, match="ask with the moving analytic body first"):
        tg.first_contact(tg.Heightfield(np.zeros((3, 3))), tg.Cylinder(0.5, 1.0).moving(tg.Rest(moved(1, 1, 3))))


def test_all_contacts_of_rigid_bodies_are_refused_with_what_to_ask_instead():
    falling = BOX.moving(tg.Twist(moved(0.0, 0.0, 1.5), [0.0, 0.0, -1.0], np.zeros(3)))
    for a, b in ((falling, BOX), (BOX, falling)):
        with pytest.raises(UnsupportedError, match=r'rigid motion; .*RigidOptions\(contacts="all"\)\) finds'):
            tg.all_contacts(a, b, device="cpu")
    assert len(tg.first_contact(falling, BOX, options=tg.RigidOptions(contacts="all"), device="cpu").contacts) > 8
