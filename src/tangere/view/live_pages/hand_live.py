"""A page where a person takes a part with the mouse, or with keys or a gamepad, and sees what it touches.

Question: what does the part that is held do, and what does it feel?
Method:   the part is drawn where a certified motion has brought it, never where the device would have it; that is shown
          as a ghost if wanted. Dragging the part moves it in the plane that faces the eye; with the wheel, or with
          shift, in depth; with ctrl it turns, and a gizmo turns it about one axis. Contacts light up, the force on the
          hand is an arrow, clearance and latency stand in the panel. Sixty times a second the ticks of the time that
          has passed are made, and the picture is sent; with a fast loop in a process of its own only slow ticks are.
Known as: direct manipulation with pseudo-haptic feedback (Redon 2002, sections 6.2 and 6.3).
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from tangere.dynamics import arrows, size_of
from tangere.hand import Hand, PointerDevice, SeparateLoops, Sight
from tangere.motion import quaternions_of, rotations_of
from tangere.view.live_pages.hand_page import HandPage

_TEXT_SECONDS = 0.2  #: between two changes of the text
_GHOST = 0.25  #: opacity of where the device wants the part
_ARROW = 0.01  #: length of the arrow of a newton, as a part of the size of the part
_LONGEST_ARROW = 1.5
_CONTACT, _NEAR = (235, 40, 40), (245, 170, 40)  #: colours: at the security distance, within reach
_TOUCHING = 1.5  #: security distances within which a contact lights up red


class HandViewer(HandPage):
    """A page of a hand. Use it as a context manager; `run` makes the ticks.

    Args:
        hand: what is shown and ticked.
        loops: with a fast loop in another process, only slow ticks are made here.
        host, port: as of a `Viewer`.
    """

    def __init__(
        self,
        hand: Hand,
        *,
        loops: SeparateLoops | None = None,
        host: str = "127.0.0.1",
        port: int | None = None,
    ) -> None:
        world = hand.world
        self._begin(hand, loops)
        self._text_due = 0.0
        self._sent: dict[tuple[str, str], np.ndarray] = {}
        poses, scene = world.poses, replace(world.scene(forces=False), title="tangere hand")
        self._names = [thing.name for thing in scene.things]
        self._home = np.linalg.inv(poses[hand.body])
        self._size = size_of([world.bodies[hand.body]], poses[[hand.body]])
        self._start = poses[hand.body].copy()
        super().__init__(hand, scene, host=host, port=port)
        self._listen(self.body(self._names[hand.body]))

    def restart(self) -> None:
        """Put the part back to where it was when the page was opened."""
        with self._frame:
            self.hand.place(self._start)
            if isinstance(self.hand.device, PointerDevice):
                self.hand.device.release()
        self.show()

    def show(self) -> None:
        """Draw the part where it is certified to be, its contacts and its force; what has not changed is not sent."""
        hand, now = self.hand, time.monotonic()
        with self._lock, self.server.atomic():
            self._place(self.body(self._names[hand.body]), hand.pose)
            ghost = bool(self._show_ghost.value) and hand.holding
            self._send(self._ghost, visible=ghost)
            if ghost:
                self._place(self._ghost, hand.target)
            self._draw_contacts_now()
            self._draw_force()
            if now >= self._text_due:
                self._text_due = now + _TEXT_SECONDS
                self._text.content = self.summary()
            self._tell_shown()
        self.server.flush()

    def summary(self) -> str:
        """The text of the panel, in Markdown."""
        hand, told = self.hand, self.hand.report
        reach = hand.clearance
        force = float(np.linalg.norm(hand.force))
        lines = [f"t = {hand.time:.2f} s", f"force {force:.2f} N"]
        more = "" if len(hand.contacts) else "more than "
        lines.append(f"clearance {more}{1e3 * reach:.3g} mm" if np.isfinite(reach) else "nothing to touch")
        lines.append(f"{len(hand.contacts)} contacts within reach")
        name = hand.world.bodies[hand.body].name
        lines.append(f"holding {name}" if hand.holding else f"take the {name}" if told.lost is None else told.lost)
        lines.append(f"walks stopped: {told.walks_stopped}; given {1e3 * told.given:.3g} mJ")
        lines += self._lines_of_loops()
        return "  \n".join(lines)

    # -- drawing -------------------------------------------------------------------------------------------------------

    def _add_own_controls(self, gui: Any) -> None:
        gui.add_button("Restart").on_click(lambda _: self.restart())
        super()._add_own_controls(gui)
        self._add_echo(gui)
        with gui.add_folder("Show"):
            self._show_contacts = gui.add_checkbox("contacts", True)
            self._show_force = gui.add_checkbox("force", True)
            self._show_ghost = gui.add_checkbox("where the hand wants it", False)
            self._glass = gui.add_checkbox("see through", True)
            self._glass.on_update(lambda _: self._see_through_others())
        if isinstance(self.hand.device, PointerDevice):
            self._turning = gui.add_checkbox("gizmo for turns", False)
            self._turning.on_update(lambda _: self._toggle_gizmo())
            gui.add_markdown("Drag the part; wheel or shift: depth; ctrl: turn.")
        self._add_marks()
        self._see_through_others()

    def _add_marks(self) -> None:
        scene, hand = self.server.scene, self.hand
        thing = self.scene.things[hand.body]
        vertices = thing.vertices(self.scene.time_range[0])[thing.creased.source].astype(np.float32)
        self._ghost = scene.add_mesh_simple(
            "/ghost", vertices, thing.creased.faces, color=(120, 120, 220), opacity=_GHOST, visible=False
        )
        arrow = arrows(np.zeros((1, 3)), np.array([[0.0, 0.0, 1.0]]))
        self._arrow = scene.add_mesh_simple(
            "/force", arrow.vertices.astype(np.float32), arrow.faces, color=_CONTACT, visible=False
        )
        self._points = scene.add_point_cloud(
            "/touching", np.zeros((1, 3), np.float32), _CONTACT, point_size=0.02 * self._size, point_shape="circle",
            precision="float32", visible=False,
        )  # fmt: skip
        self._gizmo: Any = None

    def _see_through_others(self) -> None:
        """Whether bodies hide what touches behind them."""
        for number, thing in enumerate(self.scene.things):
            if number != self.hand.body:
                opacity = min(thing.opacity, 0.45) if self._glass.value else 1.0
                self.body(thing.name).opacity = None if opacity == 1.0 else opacity

    def _send(self, handle: Any, **properties: Any) -> None:
        """Change what differs from what was sent last."""
        for name, value in properties.items():
            key, given = (handle.name, name), np.asarray(value)
            sent = self._sent.get(key)
            if sent is None or sent.shape != given.shape or not np.array_equal(sent, given):
                self._sent[key] = given
                setattr(handle, name, value)

    def _place(self, handle: Any, pose: np.ndarray) -> None:
        moved = pose @ self._home
        turn = np.round(quaternions_of(moved[None, :3, :3])[0], 7)
        self._send(handle, position=tuple(np.round(moved[:3, 3] / self._size, 7) * self._size), wxyz=tuple(turn))

    def _draw_contacts_now(self) -> None:
        contacts = self.hand.contacts
        shown = bool(self._show_contacts.value) and len(contacts) > 0
        if shown:
            near = contacts.gap <= _TOUCHING * self.hand.separation
            points = np.round(0.5 * (contacts.point_a + contacts.point_b) / self._size, 5) * self._size
            colours = np.where(near[:, None], _CONTACT, _NEAR).astype(np.uint8)
            self._send(self._points, points=points.astype(np.float32), colors=colours)
        self._send(self._points, visible=shown)

    def _draw_force(self) -> None:
        hand, force = self.hand, np.round(self.hand.force, 2)
        strength = float(np.linalg.norm(force))
        shown = bool(self._show_force.value) and strength > 0.0
        if shown:
            turn = np.round(quaternions_of(turned_to(force / strength)[None])[0], 4)
            length = min(_ARROW * strength, _LONGEST_ARROW) * self._size
            self._send(self._arrow, position=tuple(hand.handle[:3, 3]), wxyz=tuple(turn), scale=length)
        self._send(self._arrow, visible=shown)

    def _toggle_gizmo(self) -> None:
        """Rings about the part's middle, by which it is turned."""
        if self._gizmo is not None:
            self._gizmo.remove()
            self._gizmo = None
        if not self._turning.value:
            return
        self._gizmo = self.server.scene.add_transform_controls(
            "/turning", 0.6 * self._size, disable_axes=True, disable_sliders=True, depth_test=False,
            position=tuple(self.hand.handle[:3, 3]),
        )  # fmt: skip
        self._gizmo.on_update(lambda event: self._on_gizmo(event))

    def _on_gizmo(self, event: Any) -> None:
        device, hand, phase = self.hand.device, self.hand, event.phase
        if phase == "start":
            with self._frame:
                self._turned_from = handle = hand.handle
                middle = handle[:3, 3]
                device.press(handle, middle, Sight(middle, np.eye(3), 1.0), 0.5, 0.5)
        elif phase == "update" and device.pressed:
            turn = rotations_of(np.asarray(event.target.wxyz, float)[None], "gizmo")[0]
            device.turn_to(turn @ self._turned_from[:3, :3])
        elif phase == "end":
            device.release()
            self._toggle_gizmo()  # where the part is now


def turned_to(direction: np.ndarray) -> np.ndarray:
    """A rotation (3, 3) that brings z to a direction (3,)."""
    other = np.eye(3)[int(np.argmin(np.abs(direction)))]
    first = np.cross(other, direction)
    first /= np.linalg.norm(first)
    return np.stack([first, np.cross(direction, first), direction], axis=1)
