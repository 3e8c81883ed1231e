"""The viewer, driven by a real browser where there is one, and by its own methods everywhere."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from urllib.parse import urlparse

import numpy as np
import pytest

from oracles.families.drawn_scenes import approaching_squares, contacts_at, square
from oracles.helpers.browser import pixels, until
from tangere.motion import Linear
from tangere.runtime import InputError, MissingExtraError
from tangere.shape import generate
from tangere.view import Viewer, show

pytest.importorskip("viser", reason="the viewer needs the extra [view]")


def scene():
    return approaching_squares(
        contacts_at([0.25, 0.75], [[-0.5, -0.6, 0.3], [0.5, -0.6, 0.3]], np.eye(3)[[2, 2]], [1, 2])
    )


@pytest.fixture
def viewer() -> Iterator[Viewer]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with show(scene(), port=port, block=False) as opened:
        yield opened


def test_it_listens_on_loopback_only(viewer):
    host, port = urlparse(viewer.url).hostname, urlparse(viewer.url).port
    assert host == "127.0.0.1"
    socket.create_connection((host, port), timeout=5.0).close()
    others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    for address in others - {"127.0.0.1", "127.0.1.1"}:
        with pytest.raises(OSError, match=r"refused|unreachable|timed out"):
            socket.create_connection((address, port), timeout=2.0)


def test_set_time_moves_vertices_and_shows_the_contacts_so_far(viewer):
    thing = viewer.scene.things[0]
    for moment, so_far in ((0.0, 0), (0.5, 1), (1.0, 2), (0.3, 1)):
        viewer.set_time(moment)
        assert viewer.time == moment
        assert viewer.body("small").vertices == pytest.approx(thing.vertices(moment), abs=1e-6)
        assert f"{so_far} of 2 contacts" in viewer.summary()
    assert "vertex-face" in viewer.summary()
    assert "first contact at t = 0.25" in viewer.summary()


def test_the_scrubber_and_the_panel_show_the_clock_of_the_scene(viewer):
    clocked = replace(scene(), clock=(1.7e9, 1.7e9 + 8.0))
    with show(clocked, block=False) as other:
        assert (other._slider.min, other._slider.max) == (1.7e9, 1.7e9 + 8.0)
        other.set_time(0.5)
        assert other._slider.value == 1.7e9 + 4.0
        assert other.summary().startswith("t = 1700000004.0000  \n1 of 2 contacts")
        assert "first contact at t = 1700000002.000000" in other.summary()
        other._slider.value = 1.7e9 + 6.0
        other._on_scrub(SimpleNamespace(client=object()))  # as a person's hand does
        assert other.time == 0.75
    viewer.set_time(0.5)
    assert viewer._slider.value == 0.5
    assert viewer.summary().startswith("t = 0.5000")


def test_a_contact_is_not_told_late():
    """The first contact is at 2/3: rounded to the nearest it would be after itself."""
    early = approaching_squares(contacts_at([2 / 3], [[0.0, -0.6, 0.3]], np.eye(3)[[2]]))
    with show(early, block=False) as viewer:
        assert "first contact at t = 0.666666" in viewer.summary()


def test_things_at_a_contact_do_not_hide_it_and_others_stay_solid(viewer):
    small, large = viewer.scene.things
    touching = contacts_at([0.5], [small.vertices(0.5).mean(axis=0)], np.eye(3)[[1]])
    glass = replace(viewer.scene, contacts=touching)
    with show(glass, block=False) as other:
        for moment, seen in ((0.0, None), (0.49, None), (0.5, 0.35), (1.0, None), (0.5, 0.35)):
            other.set_time(moment)  # at the end the small one has left the place of the contact
            assert other.body("small").opacity == seen
            assert other.body("large").opacity is None
        other._show_through.value = False
        other._redraw_contacts()
        assert other.body("small").opacity is None
    with show(glass.with_glass("small", opacity=0.2), block=False) as other:
        other.set_time(0.5)
        assert other.body("small").opacity == pytest.approx(0.2)


def test_light_does_not_run_across_the_edges_of_a_box():
    box = generate.box()
    moving = box.moving(Linear(np.asarray(box.vertices) + 1.0))
    with show(moving, block=False) as viewer:
        handle = viewer.body("box") if "box" in viewer._bodies else viewer.body("body 0")
        viewer.set_time(0.5)
        corners = np.asarray(handle.vertices)[np.asarray(handle.faces)]
        assert corners == pytest.approx(np.asarray(box.vertices)[np.asarray(box.faces)] + 0.5, abs=1e-6)
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        # three.js shades by the mean over the triangles of a vertex: all of one direction, then
        for vertex in range(len(handle.vertices)):
            around = normals[(np.asarray(handle.faces) == vertex).any(axis=1)]
            assert np.linalg.matrix_rank(around, tol=1e-6) == 1


def test_bad_times_and_ports_are_refused_and_closing_twice_is_fine(viewer):
    for moment in (-0.1, 1.1, float("nan")):
        with pytest.raises(InputError, match="from 0 to 1"):
            viewer.set_time(moment)
    with pytest.raises(InputError, match="no browser"):
        viewer.screenshot()
    viewer.close()
    viewer.close()


def test_only_the_default_port_gives_way_to_the_next_free_one(viewer, monkeypatch):
    with pytest.raises(InputError, match=f"port {viewer.port} is taken"):
        show(scene(), port=viewer.port, block=False)
    monkeypatch.setattr("tangere.view.address.DEFAULT_PORT", viewer.port)
    with show(scene(), block=False) as other:
        assert other.port > viewer.port
        socket.create_connection(("127.0.0.1", other.port), timeout=5.0).close()


@pytest.mark.parametrize(("host", "port"), [("192.0.2.1", None), ("no-such-host.invalid", None), ("127.0.0.1", 70000)])
def test_an_address_that_cannot_be_bound_is_refused(host, port):
    with pytest.raises(InputError, match=f"cannot be served on {host}"):
        show(scene(), host=host, port=port, block=False)


def test_a_mesh_is_shown_as_a_scene_of_it_alone():
    with show(square(0.0, name="tile"), block=False) as viewer:
        assert viewer.body("tile").vertices == pytest.approx(square(0.0).vertices)


def test_without_viser_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "viser", None)
    with pytest.raises(MissingExtraError, match=r"tangere\[view\]"):
        show(scene(), block=False)


def blue_column(image) -> float:
    """Mean column of the small square's pixels, as a fraction of the width; 0 while there are too few of them."""
    image = image.astype(int)
    columns = np.nonzero(image[..., 2] > image[..., 0] + 60)[1]
    return float(columns.mean() / image.shape[1]) if len(columns) > 200 else 0.0


def seen(page, wanted) -> np.ndarray:
    """What the page shows, left of its panel, once that is what is wanted; waits for the browser to draw it."""
    shots = []

    def drawn() -> bool:
        shots.append(pixels(page))
        return wanted(shots[-1])

    until(drawn, page)
    return shots[-1]


def test_in_chromium_the_scrubber_moves_the_thing_and_the_screenshot_button_saves_a_png(viewer, page, tmp_path):
    image_module = pytest.importorskip("PIL.Image")
    before = seen(page, lambda image: 0.1 < blue_column(image) < 0.45)

    scrubber = page.get_by_role("slider").first
    scrubber.focus()
    page.keyboard.press("End")
    until(lambda: viewer.time == 1.0, page)
    after = seen(page, lambda image: blue_column(image) > 0.55)
    assert (np.abs(before - after).max(axis=2) > 40).sum() > 2000

    shot = viewer.screenshot((300, 200), timeout=90.0)
    assert shot.shape == (200, 300, 3)
    assert blue_column(shot) > 0.5
    with page.expect_download(timeout=90_000) as download:
        page.get_by_role("button", name="Screenshot").click()
    assert download.value.suggested_filename == "tangere-1.0000.png"
    download.value.save_as(tmp_path / "shot.png")
    saved = np.asarray(image_module.open(tmp_path / "shot.png"))
    assert saved.shape[2] == 3
    assert blue_column(saved) > 0.5

    page.get_by_role("button", name="Go to first contact").click()
    until(lambda: viewer.time == 0.25, page)
    page.get_by_role("button", name="Play").click()
    until(lambda: viewer.time > 0.4, page)
    assert {urlparse(url).hostname for url in page.asked_for if url.startswith(("http", "ws"))} == {"127.0.0.1"}
