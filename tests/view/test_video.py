"""Videos: decoded again, and compared with pictures at the same times."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

from oracles.families.drawn_scenes import approaching_squares
from tangere.runtime import InputError, MissingExtraError
from tangere.scene import Keyframes, Scene, Thing
from tangere.shape import generate
from tangere.view import picture, save_video

SIZE = (96, 64)


def far(a, b) -> float:
    return float(np.abs(np.asarray(a, int) - np.asarray(b, int)).mean())


def test_a_gif_has_the_pictures_of_its_times_and_plays_as_long_as_asked(tmp_path, device):
    image_module = pytest.importorskip("PIL.Image")
    scene = approaching_squares()
    save_video(scene, tmp_path / "a.gif", frames=5, seconds=1.0, size=SIZE, device=device)
    film = image_module.open(tmp_path / "a.gif")
    assert (film.n_frames, film.size, film.info["loop"]) == (5, SIZE, 0)
    shown = 0
    for k, time in enumerate((0.0, 0.25, 0.5, 0.75, 1.0)):
        film.seek(k)
        shown += film.info["duration"]
        frame = np.asarray(film.convert("RGB"))
        assert far(frame, picture(scene, time, size=SIZE, device=device)) < 4.0
        other = picture(scene, 1.0 - time if time != 0.5 else 0.0, size=SIZE, device=device)
        assert far(frame, other) > 2.0 * far(frame, picture(scene, time, size=SIZE, device=device))
    assert shown == 1000


def test_a_video_follows_the_clock_of_its_scene(tmp_path):
    image_module = pytest.importorskip("PIL.Image")
    for clock, seconds in (((5.0, 7.0), 2.0), (None, 4.0), ((0.0, 3600.0), 4.0)):
        scene = replace(approaching_squares(), clock=clock)
        scene.save(tmp_path / "a.gif", size=(12, 8))  # the scene's own way to it
        film = image_module.open(tmp_path / "a.gif")
        shown = 0
        for k in range(film.n_frames):  # frames that do not differ are one, shown longer
            film.seek(k)
            shown += film.info["duration"]
        assert shown == 1000 * seconds


def test_an_mp4_has_the_pictures_of_its_times(tmp_path):
    ffmpeg = pytest.importorskip("imageio_ffmpeg", reason="imageio-ffmpeg is not installed (extra [video])")
    scene = approaching_squares()
    scene.save(tmp_path / "a.mp4", frames=10, seconds=0.4, size=SIZE)
    reader = ffmpeg.read_frames(str(tmp_path / "a.mp4"))
    told = next(reader)
    assert told["size"] == SIZE
    assert told["codec"] == "h264"
    frames = [np.frombuffer(frame, np.uint8).reshape(SIZE[1], SIZE[0], 3) for frame in reader]
    assert len(frames) == 10
    for k in (0, 4, 9):
        assert far(frames[k], picture(scene, k / 9, size=SIZE)) < 6.0


def test_what_leaves_and_comes_back_is_in_the_picture_all_the_time(tmp_path):
    image_module = pytest.importorskip("PIL.Image")
    box = generate.box()
    away = np.asarray(box.vertices) + [30.0, 0.0, 0.0]
    excursion = Keyframes(np.stack([box.vertices, away, box.vertices]))
    scene = Scene((Thing("box", box.moving(excursion), (0.1, 0.2, 0.9)),))
    save_video(scene, tmp_path / "a.gif", frames=3, size=(180, 120))
    film = image_module.open(tmp_path / "a.gif")
    film.seek(1)
    image = np.asarray(film.convert("RGB")).astype(int)
    assert (image[..., 2] > image[..., 0] + 30).sum() > 10


def test_what_cannot_be_written_is_refused_before_anything_is_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[picture.__module__], "cast", None)
    scene = approaching_squares()
    with pytest.raises(InputError, match=r"a \.gif or a \.mp4"):
        save_video(scene, tmp_path / "a.avi")
    with pytest.raises(InputError, match="there is no folder"):
        save_video(scene, tmp_path / "none" / "a.gif")
    with pytest.raises(InputError, match="must be even"):
        save_video(scene, tmp_path / "a.mp4", size=(33, 20))
    with pytest.raises(InputError, match="seconds must be"):
        save_video(scene, tmp_path / "a.gif", seconds=-1.0)
    with pytest.raises(InputError, match="must be positive"):
        save_video(scene, tmp_path / "a.gif", size=(0, 10))
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(MissingExtraError, match=r"tangere\[video\]"):
        save_video(scene, tmp_path / "a.mp4")
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingExtraError, match=r"tangere\[view\]"):
        save_video(scene, tmp_path / "a.gif")
