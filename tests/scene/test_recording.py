"""Record and replay: everything comes back bit by bit; anything else is refused with a reason."""

from __future__ import annotations

import pickle
import zipfile
from dataclasses import fields, replace

import numpy as np
import pytest

from oracles.families.drawn_scenes import approaching_squares, contacts_at, square
from tangere.query.contacts import Contacts
from tangere.runtime import InputError, UnsupportedError
from tangere.scene import Camera, Scene


class Hovering:
    """A motion the recorder does not know."""

    def positions(self, start, time):
        return start


def recorded(tmp_path) -> tuple[Scene, object]:
    contacts = contacts_at([0.25, 0.5], [[0.1, 0.2, 1 / 3], [1e-300, -0.0, 5.0]], np.eye(3)[:2], [1, 2])
    scene = replace(approaching_squares(contacts), camera=Camera((1, 2, 3), target=(0.5, 0, 0)), title="two squares")
    path = tmp_path / "scene.npz"
    scene.save(path)
    return scene, path


def test_a_recording_comes_back_bit_by_bit(tmp_path):
    scene, path = recorded(tmp_path)
    back = Scene.load(path)
    assert (back.title, back.time_range, back.camera) == (scene.title, scene.time_range, scene.camera)
    for column in fields(Contacts):
        mine, theirs = getattr(scene.contacts, column.name), getattr(back.contacts, column.name)
        assert mine.dtype == theirs.dtype
        assert mine.tobytes() == theirs.tobytes()
    for mine, theirs in zip(scene.things, back.things, strict=True):
        assert (mine.name, mine.colour, mine.opacity, mine.moves) == (
            theirs.name,
            theirs.colour,
            theirs.opacity,
            theirs.moves,
        )
        assert mine.faces.tobytes() == theirs.faces.tobytes()
        for time in (0.0, 1 / 3, 1.0):
            assert mine.vertices(time).tobytes() == theirs.vertices(time).tobytes()


def test_a_motion_the_recorder_does_not_know_is_refused(tmp_path):
    with pytest.raises(UnsupportedError, match="Hovering"):
        Scene.of(square(0.0).moving(Hovering())).save(tmp_path / "scene.npz")


def test_foreign_and_damaged_files_are_refused_with_a_reason(tmp_path):
    _, path = recorded(tmp_path)
    good = path.read_bytes()
    wrong = {
        "text.npz": b"this is not an archive",
        "empty.npz": b"",
        "cut.npz": good[: len(good) // 2],
        "pickle.npz": pickle.dumps({"format": "tangere.scene"}),
    }
    for name, content in wrong.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=name):
            Scene.load(tmp_path / name)
    np.savez(tmp_path / "arrays.npz", x=np.arange(3))
    with pytest.raises(InputError, match="not a scene recording"):
        Scene.load(tmp_path / "arrays.npz")
    with pytest.raises(InputError, match="no such file"):
        Scene.load(tmp_path / "absent.npz")


def rewritten(path, target, drop=(), **changed):
    """A copy of a recording with some arrays dropped or changed."""
    with np.load(path) as file:
        arrays = {key: file[key] for key in file.files if key not in drop}
    np.savez(target, **{**arrays, **changed})
    return target


def test_another_version_a_missing_part_and_a_wrong_part_are_refused(tmp_path):
    _, path = recorded(tmp_path)
    with pytest.raises(InputError, match="version 99"):
        Scene.load(rewritten(path, tmp_path / "a.npz", version=99))
    with pytest.raises(InputError, match="contacts/normal"):
        Scene.load(rewritten(path, tmp_path / "b.npz", drop=["contacts/normal"]))
    with pytest.raises(InputError, match="damaged"):
        Scene.load(rewritten(path, tmp_path / "c.npz", **{"0/faces": np.array([[0, 1, 99]])}))
    with pytest.raises(InputError, match="damaged"):
        Scene.load(rewritten(path, tmp_path / "d.npz", **{"contacts/time": np.zeros(7)}))


def test_objects_in_a_recording_are_never_unpickled(tmp_path):
    _, path = recorded(tmp_path)
    target = rewritten(path, tmp_path / "objects.npz", title=np.array([{"a": 1}], dtype=object))
    assert zipfile.is_zipfile(target)
    with pytest.raises(InputError, match=r"objects\.npz"):
        Scene.load(target)
