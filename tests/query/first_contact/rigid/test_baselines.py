"""Methods that look at instants miss what happens between them; first contact does not."""

from __future__ import annotations

import numpy as np
import pytest

from bench.baselines import METHODS, SCENES, backtracking, discrete, first_contact, sampled, wrong_side_exit
from bench.operator import RUPTURE, Leg, record
from bench.shapes.pot import pot as loose_pot
from bench.shapes.traps import thin_plate
from tangere.motion import Rest, Screw, Twist
from tangere.query.contacts import Status
from tangere.query.distance import distance
from tangere.query.first_contact import RigidOptions
from tangere.query.first_contact.rigid.api import rigid_first_contacts
from tangere.query.intersection import intersects
from tangere.shape import generate
from tangere.shape.generate.build.assembly import pose

PLATE, HOOPS, WALL, BAR = SCENES


def meets(scene, time: float) -> bool:
    return intersects(scene.part.moving(Rest(scene.motion.pose(time))), scene.fixed, device="cpu")


@pytest.mark.parametrize("name", SCENES)
def test_first_contact_stops_just_before_the_first_intersection(name):
    scene = SCENES[name]
    time = first_contact(scene.part, scene.fixed, scene.motion)
    assert 0.0 < time < 1.0
    assert not any(meets(scene, t) for t in np.linspace(0.0, time, 60))
    assert any(meets(scene, t) for t in time + np.geomspace(1e-5, 1e-2, 40))


@pytest.mark.parametrize("name", [PLATE, HOOPS, BAR])
def test_methods_that_look_at_the_end_go_through(name):
    scene = SCENES[name]
    for method in (discrete, backtracking):
        assert method(scene.part, scene.fixed, scene.motion) == 1.0


def test_ten_instants_are_too_few_for_a_thin_plate_and_straight_vertices_for_a_turning_bar():
    plate, bar = SCENES[PLATE], SCENES[BAR]
    assert sampled(plate.part, plate.fixed, plate.motion) == 1.0
    assert METHODS["straight vertices"](bar.part, bar.fixed, bar.motion) == 1.0


def test_a_hoop_that_jumped_into_another_cannot_leave_again():
    scene = SCENES[HOOPS]
    linked = scene.motion.pose(1.0)
    assert not meets(scene, 1.0)
    for way in ([4.0, 0, 0], [-4.0, 0, 0], [0, 4.0, 0], [0, -4.0, 0], [0, 0, 4.0], [0, 0, -4.0]):
        out = linked.copy()
        out[:3, 3] += way
        assert first_contact(scene.part, scene.fixed, Screw(linked, out)) < 1.0


def test_a_box_beyond_the_middle_of_a_wall_is_pushed_out_on_the_wrong_side():
    scene = SCENES[WALL]
    came_from = scene.motion.pose(0.0)[:3, 3] - scene.motion.pose(1.0)[:3, 3]
    assert meets(scene, 1.0)
    assert wrong_side_exit(scene.part, scene.fixed, scene.motion.pose(1.0)) @ came_from < 0.0
    stopped = scene.motion.pose(first_contact(scene.part, scene.fixed, scene.motion))
    assert distance(scene.part.moving(Rest(stopped)), scene.fixed, device="cpu").lower > 0.0
    assert stopped[2, 3] > 0.25  # still on the side it came from


@pytest.mark.feature("F-R-17")
def test_a_plate_at_ten_thousand_thicknesses_a_step_never_tunnels_in_any_of_many_trials(rng, effort):
    """Its middle goes straight through the other plate while it turns by up to several radians."""
    plate, trials = thin_plate(), effort(200)
    places = np.concatenate([rng.uniform(-0.3, 0.3, (trials, 2)), rng.uniform(1.0, 9.0, (trials, 1))], axis=1)
    start = np.stack([pose(tuple(place), axis=k % 3, angle=rng.normal()) for k, place in enumerate(places)])
    velocity = np.concatenate(
        [rng.uniform(-0.3, 0.3, (trials, 2)) - places[:, :2], np.full((trials, 1), -10.0)], axis=1
    )
    motion = Twist(start, velocity, rng.normal(size=(trials, 3)))
    found = rigid_first_contacts(plate.moving(motion), plate, device="cpu")
    assert (found.status == Status.CONTACT).all()
    # By then the middle has not gone through, and nothing touches while it is farther away than the plate is large.
    height = places[:, 2] - 10.0 * found.time
    assert ((height > 0.0) & (height < 0.75)).all()


def test_an_open_pot_dropped_on_a_plate_is_stopped_whichever_way_its_triangles_face():
    """The detection half of working on open surfaces with unshared edges: nothing is culled as receding."""
    pot, floor = loose_pot(), generate.plate(size=(4.0, 4.0, 0.1))
    assert not pot.topology.is_closed
    for part in (pot, pot.__class__(pot.vertices, pot.faces[:, ::-1])):
        for angle in (0.0, 2.0, np.pi):
            drop = Screw(pose((0, 0, 4.0), axis=0, angle=angle), pose((0, 0, -4.0), axis=0, angle=angle))
            times = [
                rigid_first_contacts(
                    part.moving(drop), floor, options=RigidOptions(recession=recession), device="cpu"
                ).time[0]
                for recession in (False, True)
            ]
            assert times[0] == times[1] < 1.0
            lowest = (part.vertices @ drop.pose(times[0])[2, :3] + drop.pose(times[0])[2, 3]).min()
            assert 0.05 <= lowest < 0.05 + 1e-4


def test_the_virtual_operator_presses_and_slides_without_ever_going_through():
    ball, wall = generate.icosphere(subdivisions=3), generate.comb(4)
    middle = wall.bounds.mean(axis=0)
    start, through = pose(tuple(middle + [0.0, 0.0, 4.0])), pose(tuple(middle))
    aside = pose(tuple(middle + [1.0, 0.3, 0.2]), axis=1, angle=0.5)
    legs = [Leg("fast", through, 30, 0.3, 0.3), Leg("sliding", aside, 60, 0.05, 0.1), Leg("far", start, 10, 0.3, 0.3)]
    recording = record(ball, wall, start, legs, 100)
    assert not any(intersects(ball.moving(Rest(end)), wall, device="cpu") for end in recording.ends)
    gaps = distance(ball.moving(Rest(recording.ends)), wall, device="cpu")
    assert (gaps.lower > 0.0).all()
    assert (gaps.upper < 2.0 * RUPTURE * wall.extent).sum() > 20  # it did slide
    for k in range(1, 100):  # every action starts where the one before was stopped
        assert np.allclose(recording.trajectory.motion[k].pose(0.0), recording.ends[k - 1], atol=1e-12)
