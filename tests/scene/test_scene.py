"""The scene description."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.families.drawn_scenes import approaching_squares, contacts_at, square
from tangere.motion import Linear
from tangere.runtime import InputError
from tangere.scene import Scene, Thing


def test_a_thing_is_where_its_motion_and_its_frame_put_it(rng):
    mesh = square(0.0)
    end = mesh.vertices + rng.normal(size=(4, 3))
    frame = np.array([[0, -1, 0, 5.0], [1, 0, 0, 6.0], [0, 0, 1, 7.0], [0, 0, 0, 1]])  # a quarter turn, then a shift
    thing = Thing("turned", mesh.moving(Linear(end)), frame=frame)
    halfway = (mesh.vertices + end) / 2.0
    expected = np.stack([5.0 - halfway[:, 1], 6.0 + halfway[:, 0], 7.0 + halfway[:, 2]], axis=1)
    assert thing.vertices(0.5) == pytest.approx(expected)


def test_of_names_things_after_their_meshes_and_gives_each_a_colour_of_its_own():
    scene = Scene.of(square(0.0, name="cup"), square(1.0, name="cup").moving(Linear(square(2.0).vertices)))
    assert [thing.name for thing in scene.things] == ["cup", "cup (1)"]
    assert [thing.moves for thing in scene.things] == [False, True]
    assert scene.things[0].colour != scene.things[1].colour


def test_contacts_by_a_time_are_those_that_have_happened():
    contacts = contacts_at([0.7, 0.2, 0.5], np.zeros((3, 3)), np.tile([0.0, 0.0, 1.0], (3, 1)))
    scene = approaching_squares(contacts)
    assert [len(scene.contacts_by(time)) for time in (0.1, 0.2, 0.5, 1.0)] == [0, 1, 2, 3]
    assert sorted(scene.contacts_by(0.6).feature_a.tolist()) == [1, 2]


def test_the_extent_covers_the_whole_motion():
    mesh = square(0.0, 0.5)
    scene = Scene.of(mesh.moving(Linear(mesh.vertices + (3.0, 0.0, 0.0))))
    assert scene.extent == pytest.approx(np.hypot(4.0, 1.0))


def test_scenes_and_things_that_make_no_sense_are_refused():
    mesh = square(0.0)
    with pytest.raises(InputError, match="at least one"):
        Scene(())
    with pytest.raises(InputError, match="two things are called 'x'"):
        Scene((Thing("x", mesh), Thing("x", mesh)))
    with pytest.raises(InputError, match="time_range"):
        Scene.of(mesh, time_range=(1.0, 0.0))
    with pytest.raises(InputError, match="colour and opacity"):
        Thing("x", mesh, opacity=1.5)
    for opacity, names in ((5, ()), (-0.1, ("x",)), (np.nan, ())):
        with pytest.raises(InputError, match=f"opacity must be between 0 and 1, not {opacity}"):
            Scene((Thing("x", mesh),)).with_glass(*names, opacity=opacity)
    with pytest.raises(InputError, match="a Moving, not ndarray"):
        Thing("x", mesh.vertices)
    with pytest.raises(InputError, match="frame"):
        Thing("x", mesh, frame=np.eye(3))
