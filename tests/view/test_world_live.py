"""The page of a running world: driven by its own methods, and by a real browser where there is one."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from oracles.helpers.browser import pixels, until
from tangere.dynamics import Body, World, force_arrows
from tangere.runtime import InputError
from tangere.shape import generate
from tangere.view import ReplayViewer, WorldViewer
from tangere.view.live_pages.world_live import first_on_ray
from tests.oracles.rigid_worlds import meeting_pairs

pytest.importorskip("viser", reason="the viewer needs the extra [view]")


def world() -> World:
    """A box that lies on a floor."""
    pose = np.eye(4)
    pose[2, 3] = 0.52
    box = Body(generate.box((1.0, 1.0, 1.0)), pose, density=500.0, name="box")
    floor = Body(generate.box((4.0, 4.0, 0.02)), np.diag([1.0, 1.0, 1.0, 1.0]), fixed=True, name="floor")
    return World([floor, box], device="cpu")


@pytest.fixture
def viewer() -> Iterator[WorldViewer]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with WorldViewer(world(), port=port) as opened:
        yield opened


def test_the_page_follows_the_world_and_tells_its_contacts(viewer):
    viewer.simulation["box"].set_state(velocity=[0.5, 0.0, 0.0], spin=[0.0, 0.0, 1.0])
    told = []
    assert viewer.run(8, after_step=lambda: told.append(viewer.summary())) == 8
    handle, start = viewer.body("1: box"), generate.box((1.0, 1.0, 1.0)).vertices + [0.0, 0.0, 0.52]
    w, x, y, z = handle.wxyz
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    turn = np.eye(3) + 2.0 * (w * cross + cross @ cross)
    np.testing.assert_allclose(start @ turn.T + handle.position, viewer.simulation["box"].mesh.vertices, atol=1e-9)
    assert f"{len(viewer.simulation.contacts)} contacts" in told[-1]
    assert "forces" in viewer._drawn
    viewer._shown.value = False
    viewer.show()
    assert "forces" not in viewer._drawn


def test_arrows_change_on_the_page_and_are_never_taken_away_while_forces_act(viewer):
    viewer.run(20)
    arrows = viewer._drawn["forces"]
    kept = []
    for k in range(30):
        viewer.simulation.push("box", force=[10.0 * k, 0.0, 0.0])
        viewer.run(1)
        kept.append(viewer._drawn["forces"] is arrows)
        shown = force_arrows(viewer.simulation)
        np.testing.assert_array_equal(viewer._drawn["forces"].vertices, shown.mesh.vertices.astype(np.float32))
        arrows = viewer._drawn["forces"]
    assert all(kept[-10:])  # of as many contacts as before


def test_a_part_that_is_held_is_pulled_along_until_it_is_let_go_and_everything_can_begin_again(viewer):
    begun = viewer.simulation.poses
    corner = viewer.simulation["box"].mesh.vertices.max(axis=0)
    viewer.hold(1, corner)
    assert viewer.taken == 1
    assert "holding box" in viewer.summary()
    viewer.drag(corner + [0.0, 0.0, 2.0])
    viewer.run(60)
    assert viewer.simulation["box"].position[2] > 1.0
    viewer.let_go()
    assert viewer.taken is None
    speed = viewer.simulation["box"].velocity[2]
    viewer.run(3)
    assert viewer.simulation["box"].velocity[2] == pytest.approx(speed - 3 * 0.01 * 9.81, abs=1e-9)  # it falls
    viewer.restart()
    np.testing.assert_array_equal(viewer.simulation.poses, begun)


@pytest.mark.parametrize(("body", "point"), [("floor", [0, 0, 0]), (1, [0, 0, np.nan])])
def test_what_cannot_be_pulled_is_not_held(viewer, body, point):
    with pytest.raises(InputError):
        viewer.hold(body, point)
    assert viewer.taken is None
    viewer.simulation.step()


def test_the_point_that_is_taken_is_the_first_on_the_ray_or_the_nearest_corner():
    triangles = (lambda mesh: mesh.vertices[mesh.faces])(generate.box((1.0, 1.0, 1.0)))
    np.testing.assert_allclose(
        first_on_ray(triangles, np.array([0.1, 0.2, 5.0]), np.array([0, 0, -1.0])), [0.1, 0.2, 0.5]
    )
    np.testing.assert_allclose(
        np.abs(first_on_ray(triangles, np.array([2.0, 2.0, 5.0]), np.array([0, 0, -1.0]))), [0.5, 0.5, 0.5]
    )


def test_a_recorded_world_is_replayed_with_the_contacts_of_its_frames():
    recording = world().record(steps=10)
    with ReplayViewer(recording, port=None) as viewer:
        viewer.set_time(1.0)
        assert f"{len(recording.contact_points(1.0))} contacts" in viewer.summary()
        there = recording.bodies[1].mesh.at(recording.poses[-1, 1])
        drawn = np.asarray(viewer.body("1: box").vertices)
        assert drawn.min(axis=0) == pytest.approx(there.bounds[0], abs=1e-5)


def yellow(image: np.ndarray) -> np.ndarray:
    """Rows and columns of the box's pixels."""
    return np.argwhere(image[..., 0] > image[..., 2] + 40)


def test_in_chromium_a_part_is_pulled_by_the_mouse_and_forces_are_seen(viewer, page, tmp_path):
    until(lambda: len(yellow(pixels(page))) > 500, page)
    steps = threading.Thread(target=viewer.run, daemon=True)
    steps.start()
    until(lambda: viewer.simulation.steps > 20, page)
    page.get_by_role("button", name="Pause").click()
    until(lambda: not viewer._running.is_set(), page)
    here = viewer.simulation.steps
    page.get_by_role("button", name="One step").click()
    until(lambda: viewer.simulation.steps == here + 1, page)

    def red(image: np.ndarray) -> int:
        return int(((image[..., 0] > image[..., 1] + 90) & (image[..., 0] > image[..., 2] + 60)).sum())

    until(lambda: red(pixels(page)) > 20, page)  # the arrows of the floor's forces
    page.get_by_role("button", name="Run").click()
    rows, columns = yellow(pixels(page)).T
    page.mouse.click(float(np.median(columns)), float(np.median(rows)))
    until(lambda: viewer.taken == 1, page)
    # The arrows of the hand stand at the point under the mouse; the one that points up is dragged up.
    page.wait_for_timeout(1500)
    page.screenshot(path=str(tmp_path / "taken.png"))
    before = viewer.simulation["box"].position[2]
    x, y = float(np.median(columns)), float(np.median(rows))
    for reach in (28, 36, 44, 22, 52):
        page.mouse.move(x, y - reach)
        page.mouse.down()
        page.mouse.move(x, y - reach - 60, steps=6)
        page.mouse.move(x, y - reach - 150, steps=6)
        page.mouse.up()
        page.wait_for_timeout(700)
        if viewer.simulation["box"].position[2] > before + 0.05:
            break
    assert viewer.simulation["box"].position[2] > before + 0.05
    page.screenshot(path=str(tmp_path / "held.png"))
    page.get_by_role("button", name="Let go").click()
    until(lambda: viewer.taken is None, page)
    until(lambda: abs(viewer.simulation["box"].position[2] - before) < 0.05, page)
    viewer.close()
    steps.join(timeout=5.0)
    assert not steps.is_alive()
    assert meeting_pairs(viewer.simulation) == []
