"""The page of a hand: driven by its own methods, by a socket, and by a real browser where there is one."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from urllib.parse import urlsplit

import numpy as np
import pytest

from oracles.helpers.browser import pictures_until_seen, pixels, until, watch_pictures
from tangere.hand import GamepadDevice, Hand, KeyboardDevice, PointerDevice, SeparateLoops, Sight, led_part, led_tool
from tangere.view import HandViewer, ToolViewer
from tangere.view.live_pages.hand_live import turned_to
from tangere.view.live_pages.hand_page import sight_of
from tangere.view.live_pages.page_input import PageInput
from tests.hand.real_time_devices import cube_on_table, pressing
from tests.oracles.rigid_worlds import meeting_pairs

pytest.importorskip("viser", reason="the viewer needs the extra [view]")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def page_of(device) -> HandViewer:
    return HandViewer(Hand(cube_on_table(), "cube", device, slow_rate=100.0), port=free_port())


def camera(eye: np.ndarray, target: np.ndarray, up=(0.0, 0.0, 1.0)) -> SimpleNamespace:
    """A camera as viser tells it."""
    from scipy.spatial.transform import Rotation

    ahead = (target - eye) / np.linalg.norm(target - eye)
    right = np.cross(ahead, up)
    right /= np.linalg.norm(right)
    turn = np.stack([right, np.cross(ahead, right), ahead], axis=1)
    x, y, z, w = Rotation.from_matrix(turn).as_quat()
    return SimpleNamespace(position=eye, wxyz=(w, x, y, z), fov=0.8, image_width=600, image_height=400)


def told(viewer: HandViewer, **message) -> None:
    """As the script of the page does."""
    viewer.input.take(json.dumps(message))


def drag(viewer: HandViewer, phase: str, seen: SimpleNamespace, point=None) -> None:
    """As viser says that a drag begins or ends."""
    event = SimpleNamespace(phase=phase, start_position=point, client=SimpleNamespace(camera=seen))
    viewer._on_drag(event, "plane")


def test_a_part_is_dragged_onto_the_table_lights_up_and_pushes_back_and_stays_where_it_is_let_go():
    with page_of(PointerDevice()) as viewer:
        hand, seen = viewer.hand, camera(np.array([0.0, -1.0, 0.11]), np.array([0.0, 0.0, 0.11]))
        viewer.run(3)
        assert "take the cube" in viewer.summary()
        start, middle = hand.pose, hand.handle[:3, 3]
        told(viewer, pointer=[0.5, 0.5, 0.0], pressed=True, stamp=1.0)
        drag(viewer, "start", seen, middle)
        for k in range(10):
            told(viewer, pointer=[0.51, 0.5 + 0.02 * k, 0.0], pressed=True, stamp=2.0 + k)
            viewer.run(2)
        viewer.run(20)
        assert hand.holding
        assert "holding cube" in viewer.summary()
        # The cube has gone right by a hundredth of the width; down it got no farther than the table.
        assert hand.pose[0, 3] == pytest.approx(0.01 * 2.0 * np.tan(0.4) * 1.5, rel=1e-3)
        assert hand.pose[2, 3] == pytest.approx(0.1 + hand.separation, abs=2.0 * hand.separation)
        assert hand.target[2, 3] < 0.0
        assert hand.force[2] > 5.0
        assert viewer._points.visible
        assert viewer._arrow.visible
        red = (np.asarray(viewer._points.colors) == [235, 40, 40]).all(axis=1)
        assert red.any()
        up = turned_to(np.array([0.0, 0.0, 1.0]))[:, 2]
        assert up == pytest.approx([0.0, 0.0, 1.0])
        assert float(viewer._arrow.scale) > 0.0
        assert f"{np.linalg.norm(hand.force):.2f} N" in viewer.summary()
        viewer._show_contacts.value = viewer._show_force.value = False
        viewer._show_ghost.value = True
        viewer.show()
        assert (viewer._points.visible, viewer._arrow.visible, viewer._ghost.visible) == (False, False, True)
        told(viewer, pointer=[0.51, 0.7, 0.0], pressed=False, stamp=99.0)
        drag(viewer, "end", seen)
        viewer.run(10)
        there = hand.pose
        told(viewer, pointer=[0.1, 0.1, 0.0], pressed=False, stamp=100.0)
        viewer.run(10)
        np.testing.assert_array_equal(hand.pose, there)
        assert not hand.holding
        assert viewer.input.server_latency.count > 5
        assert "data-stamp" in viewer._echo.content
        assert '"100.0"' in viewer._echo.content
        viewer.restart()
        np.testing.assert_allclose(hand.pose, start, atol=1e-12)
        assert meeting_pairs(hand.world) == []


def test_a_tool_is_dragged_into_a_soft_block_and_pushes_back():
    made = led_tool("press", device="cpu")
    with ToolViewer(made.held_by(PointerDevice()), port=free_port()) as viewer:
        hand = viewer.hand
        middle = hand.handle[:3, 3]
        seen = camera(middle + [0.0, -0.6, 0.0], middle)
        viewer.run(2)
        assert "take the tool" in viewer.summary()
        told(viewer, pointer=[0.5, 0.5, 0.0], pressed=True, stamp=1.0)
        drag(viewer, "start", seen, middle)
        for k in range(12):
            told(viewer, pointer=[0.5, 0.5 + 0.006 * k, 0.0], pressed=True, stamp=2.0 + k)
            viewer.run(4)
        assert "holding tool" in viewer.summary()
        assert hand.handle[2, 3] < middle[2] - 0.01
        assert hand.force[2] > 1.0
        np.testing.assert_allclose(viewer.body("1: tool").position, hand.pose[:3, 3])
        block = made.simulation["block"].positions
        assert np.abs(block - made.simulation.bodies[0].shape.vertices).max() > 1e-3
        assert viewer.input.server_latency.count > 5
        told(viewer, pointer=[0.5, 0.5, 0.0], pressed=False, stamp=99.0)
        viewer.run(8)
        assert not hand.holding


def test_what_has_not_changed_is_not_sent_to_the_page_again():
    with page_of(PointerDevice()) as viewer:
        viewer.run(2)
        changed, part = [], viewer.body(viewer._names[1])

        class Watched:
            name = part.name

            def __setattr__(self, name: str, value: object) -> None:
                changed.append((name, value))

        viewer._bodies[viewer._names[1]] = Watched()
        viewer.run(5)
        assert changed == []
        viewer.hand.place(np.array([[1.0, 0, 0, 0.01], [0, 1, 0, 0], [0, 0, 1, 0.12], [0, 0, 0, 1]]))
        viewer.run(5)
        assert [name for name, _ in changed] == ["position"]
        np.testing.assert_allclose(changed[0][1], [0.01, 0.0, 0.01], atol=1e-7)


def test_the_gizmo_turns_the_part_about_its_middle():
    with page_of(PointerDevice()) as viewer:
        hand = viewer.hand
        viewer._turning.value = True
        viewer._toggle_gizmo()
        viewer.run(2)
        middle, half = hand.handle[:3, 3], np.deg2rad(10.0)
        target = SimpleNamespace(wxyz=(np.cos(half), 0.0, 0.0, np.sin(half)))
        for phase in ("start", "update", "end"):
            viewer._on_gizmo(SimpleNamespace(target=target, phase=phase))
            viewer.run(30)
        cosine, sine = np.cos(2 * half), np.sin(2 * half)
        expected = [[cosine, -sine, 0.0], [sine, cosine, 0.0], [0.0, 0.0, 1.0]]
        np.testing.assert_allclose(hand.pose[:3, :3], expected, atol=1e-3)
        assert hand.handle[:3, 3] == pytest.approx(middle, abs=1e-3)
        assert not hand.device.pressed


def test_keys_and_gamepads_of_the_page_move_the_part():
    with page_of(KeyboardDevice(speed=0.2)) as viewer:
        told(viewer, keys=["ArrowUp"], stamp=1.0)
        viewer.run(30)
        assert viewer.hand.pose[1, 3] > 0.02
    with page_of(GamepadDevice(speed=0.2)) as viewer:
        told(viewer, gamepad={"axes": [1.0, 0.0, 0.0, 0.0], "buttons": []}, stamp=1.0)
        viewer.run(30)
        there = viewer.hand.pose[0, 3]
        assert there > 0.02
        told(viewer, gamepad=None, stamp=2.0)
        viewer.run(20)
        here = viewer.hand.pose[0, 3]
        viewer.run(10)
        assert viewer.hand.pose[0, 3] == pytest.approx(here, abs=1e-4)


@pytest.mark.parametrize(
    "message",
    [
        b"bytes",
        "x" * 5000,
        "not json",
        "[]",
        "{}",
        '{"pointer": [0, 0, NaN], "pressed": true}',
        '{"pointer": [0, 0], "pressed": true}',
        '{"pointer": [0, true, 0], "pressed": true}',
        '{"pointer": [0, 0, 0]}',
        '{"keys": "ArrowUp"}',
        '{"keys": [1]}',
        '{"keys": ' + json.dumps(["a"] * 40) + "}",
        '{"gamepad": {"axes": [1]}}',
        '{"latency": -1}',
        '{"latency": 1e9}',
        '{"latency": 1, "frames": -1}',
        '{"latency": 1, "frames": 1.5}',
        '{"keys": [], "stamp": "now"}',
        "[" * 4000,
    ],
)
def test_messages_that_are_none_are_counted_and_left_out(message):
    heard, given = [], PageInput()
    given.on_pointer = given.on_keys = given.on_gamepad = lambda *told: heard.append(told)
    given.take(message)
    assert (heard, given.received, sum(given.refused.values()), given.shown()) == ([], 0, 1, None)


def test_the_latency_is_that_of_the_oldest_event_that_a_picture_is_the_first_to_show():
    given = PageInput()
    for stamp in (1.0, 2.0):
        given.take(json.dumps({"keys": [], "stamp": stamp}))
    given.begin()
    given.take(json.dumps({"keys": [], "stamp": 3.0}))  # while the picture is made, which does not show it
    assert given.shown() == 1.0
    assert given.shown() is None
    given.begin()
    assert given.shown() == 3.0
    given.begin()
    assert given.shown() is None
    assert given.server_latency.count == 2
    given.take(json.dumps({"latency": 20.0}))
    assert given.latency.quantile(1.0) == pytest.approx(0.02)
    assert given.frames_late(0.5) == 0
    for frames in (2, 1, 2, 7, 1):
        given.take(json.dumps({"latency": 20.0, "frames": frames}))
    assert [given.frames_late(share) for share in (0.4, 0.5, 1.0)] == [1, 2, 7]


def test_a_sight_is_the_camera_of_the_page():
    seen = camera(np.array([1.0, 2.0, 3.0]), np.array([0.0, 0.0, 0.5]))
    sight = sight_of(seen)
    assert isinstance(sight, Sight)
    ahead = np.array([-1.0, -2.0, -2.5]) / np.linalg.norm([1.0, 2.0, 2.5])
    assert sight.ray(0.5, 0.5) == pytest.approx(ahead)
    assert np.linalg.det(sight.axes) == pytest.approx(1.0)
    assert sight.ray(1.0, 0.5) @ sight.axes[:, 0] == pytest.approx(np.tan(0.4) * 1.5)
    assert sight.ray(0.5, 0.0) @ sight.axes[:, 1] == pytest.approx(np.tan(0.4))


def test_the_socket_of_the_script_is_behind_the_token_and_the_origin_and_its_end_lets_go():
    client = pytest.importorskip("websockets.asyncio.client", reason="the viewer needs the extra [view]")
    exceptions = pytest.importorskip("websockets.exceptions")
    with page_of(PointerDevice()) as viewer:
        url = urlsplit(viewer.url)
        origin, heard = f"http://{url.netloc}", []
        viewer.input.on_pointer = lambda *told: heard.append(told)

        async def talk(path: str, origin: str | None) -> None:
            async with client.connect(f"ws://{url.netloc}{path}", origin=origin) as opened:
                await opened.send(json.dumps({"pointer": [0.25, 0.75, 1], "pressed": True, "stamp": 1}))

        for path, stranger in (("/input", origin), (f"{url.path}/input", "http://evil.example"), (url.path, None)):
            with pytest.raises(exceptions.InvalidStatus, match="403"):
                asyncio.run(talk(path, stranger))
        assert heard == []
        asyncio.run(talk(f"{url.path}/input", origin))
        end = threading.Event()
        for _ in range(200):
            if len(heard) == 2:
                break
            end.wait(0.02)
        assert heard == [(0.25, 0.75, 1.0, True), (0.5, 0.5, 0.0, False)]


@pytest.mark.release
def test_a_thousand_ticks_a_second_go_on_beside_sixty_pictures():
    """For five seconds; how late they were is told, and nothing about it is asserted."""
    hand = Hand(cube_on_table(), "cube", pressing())
    with SeparateLoops(hand, pressing) as loops, HandViewer(hand, loops=loops, port=free_port()) as viewer:
        assert viewer.run(300) == 300
        assert "fast loop:" in viewer.summary()
        told = loops.stop()
        pictures = viewer.pacer.report()
    print(*told.rows(), *pictures.rows(), sep="\n")
    assert pictures.ticks == 301  # one more, at which it is seen that there are enough
    assert told.ticks + told.skipped >= 4_000
    assert hand.pose[2, 3] == pytest.approx(0.1 + hand.separation, abs=2.0 * hand.separation)
    assert hand.report.walks_stopped == 0
    assert hand.force[2] > 5.0
    assert meeting_pairs(hand.world) == []


@pytest.fixture
def viewer() -> Iterator[HandViewer]:
    scene = led_part("lifter", device="cpu")
    hand = Hand(scene.world, scene.body, PointerDevice(), slow_rate=100.0)
    with HandViewer(hand, port=free_port()) as opened:
        opened.way = scene.way
        yield opened


@pytest.mark.release
def test_in_chromium_the_motor_of_a_window_lifter_is_dragged_out_of_its_door_with_the_mouse(viewer, page, tmp_path):
    hand, way = viewer.hand, viewer.way.poses
    assert meeting_pairs(hand.world) == []
    threading.Thread(target=viewer.run, daemon=True).start()
    seen = viewer.server.get_clients()[0].camera
    # From where the axis of the first turn, y, is to the right.
    middle, eye = 0.5 * (way[0] + way[-1])[:3, 3], np.array([1.0, 0.0, 1.1])
    seen.up_direction = (0.0, 0.0, 1.0)
    seen.position, seen.look_at = tuple(middle + eye), tuple(middle)
    until(lambda: np.linalg.norm(seen.position - middle - eye) < 1e-3, page)
    # A notice about software rendering would hide the part.
    page.add_style_tag(content=".mantine-Notifications-root { display: none !important; }")
    page.wait_for_timeout(1500)
    box = page.evaluate("(() => { const b = document.querySelector('canvas').getBoundingClientRect();"
                        "return [b.left, b.top, b.width, b.height]; })()")  # fmt: skip
    sight = sight_of(seen)

    def pixel(x: float, y: float) -> tuple[float, float]:
        return box[0] + box[2] * x, box[1] + box[3] * y

    def place(point: np.ndarray) -> tuple[float, float]:
        right, up, back = sight.axes.T @ (point - sight.eye)
        tall = -back * sight.half_height
        return 0.5 + 0.5 * right / (tall * sight.aspect), 0.5 - 0.5 * up / tall

    def drag_to(begin: tuple[float, float], end: tuple[float, float], moves: int = 12) -> None:
        page.mouse.move(*pixel(*begin))
        page.mouse.down()
        for k in range(1, moves + 1):
            part = k / moves
            page.mouse.move(*pixel(*((1 - part) * np.array(begin) + part * np.array(end))))
            page.wait_for_timeout(30)

    def missing_turn() -> float:
        """About y [rad]."""
        turn = way[1][:3, :3] @ hand.pose[:3, :3].T
        return float(np.arctan2(turn[0, 2] - turn[2, 0], turn[0, 0] + turn[2, 2]))

    # A right angle about y, by ctrl, as a person does it: as far as it looks right.
    assert missing_turn() == pytest.approx(np.pi / 2.0)
    right = float(np.sign(sight.axes[1, 0]))
    page.keyboard.down("Control")
    for _ in range(8):
        missing = missing_turn()
        if abs(missing) < 0.04:
            break
        begin = place(hand.handle[:3, 3])
        drag_to(begin, (begin[0], begin[1] + right * missing / np.pi))
        until(lambda: hand.device.pressed, page)
        page.wait_for_timeout(700)
        page.mouse.up()
        until(lambda: not hand.device.pressed, page)
    assert abs(missing_turn()) < 0.04
    page.keyboard.up("Control")
    page.screenshot(path=str(tmp_path / "turned.png"), timeout=60_000)
    # Then it is pulled straight to where it is to be, in the plane and with the wheel in depth.
    goal = way[-1][:3, 3]
    start = hand.handle[:3, 3]
    depths = [-float(sight.axes[:, 2] @ (point - sight.eye)) for point in (start, goal)]
    drag_to(place(start), place(goal), 20)
    until(lambda: hand.device.pressed, page)
    notches = round((depths[1] / depths[0] - 1.0) / 0.02)
    for _ in range(abs(notches)):
        page.mouse.wheel(0.0, float(np.copysign(100.0, notches)))
        page.wait_for_timeout(30)
    until(lambda: np.linalg.norm(hand.handle[:3, 3] - goal) < 0.06, page, seconds=60.0)
    page.wait_for_timeout(500)
    image, there = pixels(page), place(hand.handle[:3, 3])
    page.screenshot(path=str(tmp_path / "out.png"), timeout=60_000)
    # What the mouse does is seen in the picture after the one that is being drawn, with nothing else to be done.
    watch_pictures(page)
    viewer.input.frames.clear()
    at = pixel(*place(goal))
    for k in range(10):
        page.mouse.move(at[0] + 3.0 * (k % 2), at[1])
        page.wait_for_timeout(500)
    seen_in = pictures_until_seen(page)
    assert len(seen_in) >= 8
    assert np.median(seen_in) <= 2
    page.mouse.up()
    until(lambda: not hand.device.pressed, page)
    # It is out, nothing was passed through, and the picture shows it where it is.
    assert meeting_pairs(hand.world) == []
    assert hand.report.walks_stopped == 0
    x, y = pixel(*there)
    shown = image[int(y) - 3 : int(y) + 4, int(x) - 3 : int(x) + 4].reshape(-1, 3).mean(axis=0)
    assert shown[0] > shown[2] + 25  # the motor is of a sandy colour, the door is grey
    assert viewer.input.latency.count > 0
    # A frame of the page that is drawn already, the frame and step of the server meanwhile, and the one that shows it.
    assert 1 <= viewer.input.frames_late(0.5) <= 3
    assert "latency" in viewer.summary()
    assert viewer.input.refused == {}
