"""Pictures: what is where, by an independent projection; light and colour only as far as they carry meaning."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

from oracles.families.drawn_scenes import FROM_THE_FRONT, approaching_squares, contacts_at, square
from tangere.motion import Linear
from tangere.query.contacts import Kind
from tangere.runtime import InputError, MissingExtraError, using_threads
from tangere.scene import Camera, Scene, Thing
from tangere.shape import generate
from tangere.shape.mesh import Mesh
from tangere.view import picture, strip

SIZE = (90, 60)


def pixel(scene: Scene, point, size=SIZE) -> tuple[int, int]:
    """Row and column where a point of the world is seen."""
    viewpoint = scene.camera.placed(scene.points, size[0] / size[1])
    offset = np.asarray(point) - viewpoint.eye
    half = np.tan(np.radians(viewpoint.field_of_view) / 2.0) * (offset @ viewpoint.forward)
    x, y = offset @ viewpoint.right / (half * size[0] / size[1]), offset @ viewpoint.up / half
    return int((1.0 - y) / 2.0 * size[1]), int((1.0 + x) / 2.0 * size[0])


def hue(colour) -> str:
    red, _, blue = (int(c) for c in colour)
    return "blue" if blue > red + 40 else "orange" if red > blue + 40 else "grey"


def test_things_are_where_the_projection_puts_them_and_near_hides_far(device):
    scene = approaching_squares()
    image = picture(scene, 0.0, size=SIZE, device=device)
    assert image.shape == (60, 90, 3)
    assert image.dtype == np.uint8
    assert hue(image[pixel(scene, (-0.6, -0.5, 0.0))]) == "blue"
    assert hue(image[pixel(scene, (0.6, 0.5, 0.0))]) == "orange"
    assert hue(image[2, 2]) == "grey"


def test_time_moves_things(device):
    scene = approaching_squares()
    image = picture(scene, 1.0, size=SIZE, device=device)
    assert hue(image[pixel(scene, (0.6, -0.5, 0.0))]) == "blue"
    assert hue(image[pixel(scene, (-0.6, -0.5, 0.0))]) == "orange"


def inward_distance(corners, rows, columns) -> np.ndarray:
    """Distance of each pixel from the nearest side of a triangle of (row, column) corners, positive inside."""
    grid, middle = np.stack([rows, columns], axis=-1), corners.mean(axis=0)
    sides = []
    for p, q in zip(corners, np.roll(corners, 1, axis=0), strict=True):
        normal = np.array([q[1] - p[1], p[0] - q[0]]) / np.hypot(*(q - p))
        sides.append((grid - p) @ (normal * np.sign((middle - p) @ normal)))
    return np.min(sides, axis=0)


def test_the_outline_of_a_triangle_is_right_to_a_pixel(device):
    corners = np.array([[-0.9, 0.0, -0.7], [0.8, 0.1, -0.5], [-0.2, -0.3, 0.9]])
    scene = Scene((Thing("triangle", Mesh(corners, [[0, 1, 2]]), (0.9, 0.1, 0.1)),), camera=FROM_THE_FRONT)
    image = picture(scene, size=(120, 120), samples=1, device=device).astype(int)
    red = image[..., 0] > image[..., 1] + 40
    seen = np.array([pixel(scene, corner, (120, 120)) for corner in corners], float)
    inside = inward_distance(seen, *np.mgrid[0:120, 0:120])
    assert red[inside > 1.5].all()
    assert not red[inside < -1.5].any()
    assert (inside > 1.5).sum() > 2000


def test_a_see_through_thing_shows_what_is_behind_it(device):
    scene = approaching_squares()
    solid = picture(scene, 0.0, size=SIZE, device=device)[pixel(scene, (-0.6, -0.5, 0.0))].astype(int)
    glass = replace(scene, things=(replace(scene.things[0], opacity=0.3), scene.things[1]))
    gone = replace(scene, things=(replace(scene.things[0], opacity=0.0), scene.things[1]))
    through, without = (
        picture(s, 0.0, size=SIZE, device=device)[pixel(scene, (-0.6, -0.5, 0.0))].astype(int) for s in (glass, gone)
    )
    assert solid[0] + 30 < through[0] < without[0]
    assert hue(without) == "orange"


def test_a_contact_is_marked_from_its_time_on_in_the_colour_of_its_kind(device):
    point = (0.0, -0.9, 0.5)
    contacts = contacts_at([0.5], [point], [[0.0, 0.0, 1.0]], Kind.EDGE_EDGE)
    scene = approaching_squares(contacts)
    before, after = (picture(scene, time, size=(360, 240), device=device) for time in (0.49, 0.5))
    row, column = pixel(scene, point, (360, 240))
    assert hue(before[row, column]) == "orange"
    red, green, blue = (int(c) for c in after[row, column])
    assert green + 60 < min(red, blue)  # violet


def test_a_hidden_contact_shines_through(device):
    contacts = contacts_at([0.0], [(0.5, 1.0, 0.0)], [[0.0, 0.0, 1.0]], Kind.EDGE_EDGE)
    with_mark = picture(approaching_squares(contacts), size=(360, 240), device=device).astype(int)
    without = picture(approaching_squares(), size=(360, 240), device=device).astype(int)
    changed = np.abs(with_mark - without).sum(axis=2)
    assert changed.max() > 60


def test_each_side_of_a_box_has_one_shade(device):
    """Seen from a corner, alone: within a side nothing changes that light depends on."""
    box = generate.box((1.0, 1.0, 1.0))
    scene = Scene((Thing("box", box, (0.5, 0.5, 0.5)),), camera=Camera((1.0, -1.0, 1.0)))
    image = picture(scene, size=(240, 240), device=device).astype(int)
    for axis, sign in ((0, 1), (1, -1), (2, 1)):
        corner = 0.5 * np.array([1.0, -1.0, 1.0])
        shades = []
        for u, v in np.random.default_rng(axis).uniform(0.1, 0.9, size=(40, 2)):
            point = corner.copy()
            others = [k for k in range(3) if k != axis]
            point[others[0]] *= 1.0 - 2.0 * u
            point[others[1]] *= 1.0 - 2.0 * v
            point[axis] = 0.5 * sign
            shades.append(image[pixel(scene, point, (240, 240))])
        assert np.ptp(np.array(shades), axis=0).max() <= 12


def test_creases_and_contacts_are_darker_than_open_surfaces(device):
    floor = square(0.0)
    wall = floor.replace(vertices=floor.vertices[:, [0, 2, 1]] * (1.0, -1.0, 1.0) + (0.0, -1.0, -1.0))
    scene = Scene((Thing("back", floor, (0.8, 0.8, 0.8)), Thing("floor", wall, (0.8, 0.8, 0.8))), camera=FROM_THE_FRONT)
    image = picture(scene, size=(120, 120), device=device).astype(int).sum(axis=2)
    corner, open_wall = pixel(scene, (0.0, 0.0, -0.96), (120, 120)), pixel(scene, (0.0, 0.0, 0.7), (120, 120))
    assert image[corner] < image[open_wall] - 20


def test_the_picture_has_the_same_bits_for_any_number_of_threads():
    images = []
    for threads in (1, 2, 5):
        with using_threads(threads):
            images.append(picture(approaching_squares(), 0.3, size=SIZE, device="cpu"))
    assert (images[0] == images[1]).all()
    assert (images[0] == images[2]).all()


def test_far_from_the_origin_and_very_small_scenes_look_the_same():
    scene = approaching_squares()
    expected = picture(scene, size=SIZE, device="cpu").astype(int)
    for scale, offset in ((1e-5, 0.0), (1e4, 0.0), (1.0, 1e6)):
        frame = np.diag([scale, scale, scale, 1.0])
        frame[:3, 3] = offset
        moved = replace(scene, things=tuple(replace(thing, frame=frame) for thing in scene.things))
        image = picture(moved, size=SIZE, device="cpu").astype(int)
        assert np.mean(np.abs(image - expected).max(axis=2) > 8) < 0.01


def test_a_strip_holds_its_frames_side_by_side(device):
    scene = approaching_squares()
    image = strip(scene, [0.0, 1.0], size=SIZE, device=device)
    assert (image[:, :90] == picture(scene, 0.0, size=SIZE, device=device)).all()
    assert (image[:, -90:] == picture(scene, 1.0, size=SIZE, device=device)).all()
    assert (image[:, 90:-90] == 255).all()


def test_labels_are_written_into_the_frames():
    pytest.importorskip("PIL")
    plain, labelled = (strip(approaching_squares(), [0.0], size=SIZE, labels=text) for text in (None, ["hello"]))
    changed = (plain != labelled).any(axis=2)
    assert 20 < changed.sum() < 0.2 * changed.size
    assert not changed[30:].any()


def test_the_png_file_holds_the_same_pixels(tmp_path):
    image_module = pytest.importorskip("PIL.Image")
    path = tmp_path / "a.PNG"
    image = picture(approaching_squares(), size=SIZE, path=path)
    assert (np.asarray(image_module.open(path)) == image).all()


def test_without_pillow_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingExtraError, match=r"tangere\[view\]"):
        picture(approaching_squares(), size=(8, 8), path=tmp_path / "a.png")


@pytest.mark.parametrize("time", [-0.1, 1.1, float("nan")])
def test_times_outside_the_scene_are_refused_even_where_nothing_moves(time):
    for scene in (approaching_squares(), Scene.of(square(0.0))):
        with pytest.raises(InputError, match="from 0 to 1"):
            picture(scene, time, size=SIZE)
        with pytest.raises(InputError, match="from 0 to 1"):
            strip(scene, [0.0, time], size=SIZE)


def test_a_mesh_is_drawn_as_a_scene_of_it_alone():
    mesh = square(0.0)
    moving = mesh.moving(Linear(mesh.vertices + (2.0, 0.0, 0.0)))
    for body in (mesh, moving):
        assert (picture(body, 0.5, size=SIZE) == picture(Scene.of(body), 0.5, size=SIZE)).all()
        assert (strip(body, [0.0, 1.0], size=SIZE) == strip(Scene.of(body), [0.0, 1.0], size=SIZE)).all()


def test_bad_arguments_are_refused(tmp_path):
    scene = approaching_squares()
    with pytest.raises(InputError, match="positive"):
        picture(scene, size=(0, 10))
    with pytest.raises(InputError, match="equally many"):
        strip(scene, [0.0, 1.0], labels=["one"])
    with pytest.raises(InputError, match="equally many"):
        strip(scene, [])
    with pytest.raises(InputError, match="positive"):
        strip(scene, [0.0], size=(10, 0))
    with pytest.raises(InputError, match="not list"):
        picture([1, 2, 3])  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("a.foo", "writes a .png file, so its name must end in .png"),
        ("a", "writes a .png file"),
        ("none/a.png", "cannot be written: there is no folder .*none"),
        ("file/a.png", "cannot be written"),
        ("folder.png", "cannot be written: it is a folder"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_before_anything_is_drawn(name, reason, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder.png").mkdir()
    monkeypatch.setattr(sys.modules[picture.__module__], "cast", None)
    for draw in (
        lambda path: picture(approaching_squares(), path=path),
        lambda path: strip(square(0.0), [0], path=path),
    ):
        with pytest.raises(InputError, match=reason):
            draw(str(tmp_path / name))
