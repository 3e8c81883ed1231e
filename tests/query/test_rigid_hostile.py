"""What a careless user asks of rigid first contact is answered, or refused with a reason, and never answered wrong."""

from __future__ import annotations

import numpy as np
import pytest

import tangere as tg
from tangere.query.contacts import Status
from tangere.query.distance import distance
from tangere.query.first_contact.rigid import first_contact_of_scene, rigid_first_contact
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
    with pytest.raises(InputError, match="velocity contains numbers beyond 1e\\+100"):
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
    with pytest.raises(InputError, match=r"'box'.*1.73e-50"):
        tg.first_contact(scaled(BOX, 1e-50).moving(tg.Twist(moved(1.0), [0, 0, 0], [0, 0, 0])), BOX, device="cpu")


def test_no_questions_get_no_answers():
    none = tg.Twist(np.zeros((0, 4, 4)), np.zeros((0, 3)), np.zeros((0, 3)))
    found = tg.first_contact(BOX.moving(none), BOX, device="cpu")
    assert len(found) == 0
    assert found.point_a.shape == (0, 3)
    assert not found.hit.any()


@pytest.mark.parametrize("thing", [None, "mesh.stl", np.zeros((3, 3))])
def test_what_is_no_mesh_is_refused_by_its_type(thing):
    with pytest.raises(UnsupportedError, match=type(thing).__name__):
        intersects(thing, device="cpu")
    with pytest.raises(UnsupportedError, match=type(thing).__name__):
        intersects(thing, BOX, device="cpu")
    with pytest.raises(UnsupportedError, match=type(thing).__name__):
        distance(BOX, thing, device="cpu")


def test_meshes_turned_inside_out_lose_no_contact_to_recession():
    """Cones of inward normals would cull exactly what comes nearer."""
    ball = tg.generate.icosphere(subdivisions=2)
    inside_out = tg.Mesh(ball.vertices, ball.faces[:, ::-1])
    both = tg.Mesh.join([ball, inside_out.at(moved(5.0))])
    for mesh in (inside_out, both):
        for start, way in ((4.0, -6.0), (-9.0, 6.0)):
            moving = mesh.moving(tg.Twist(moved(start), [way, 0.0, 0.0], [0.0, 0.0, 0.3]))
            with_cones = rigid_first_contact(moving, ball, recession=True, device="cpu")
            without = rigid_first_contact(moving, ball, device="cpu")
            assert with_cones.time == without.time
            assert with_cones.status == without.status


def test_a_scene_of_one_body_that_is_no_list_is_refused():
    with pytest.raises(InputError, match="list of bodies"):
        first_contact_of_scene(BOX, device="cpu")  # pyright: ignore[reportArgumentType]
