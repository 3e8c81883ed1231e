"""A page where a person holds something: what pages of parts and of tools have in common.

Question: what does a person do in the page, and when is it seen?
Method:   sixty times a second the ticks of the time that has passed are made, with what the page has told until then,
          and the picture is sent; with a fast loop in a process of its own only slow ticks are. What a person does in
          between is answered at once, by the ticks up to the next slow one, once in a sixtieth of a second: so it is
          seen in the next picture of the page, not in that after it. What the pointer does
          comes by a socket of its own (`page_input`); that a drag begins or ends is told by viser, which knows what is
          under it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np

from tangere.hand import Device, GamepadDevice, Hand, KeyboardDevice, PointerDevice, SeparateLoops, Sight
from tangere.hand.devices import KEY_CODES, RateDevice
from tangere.motion import rotations_of
from tangere.runtime.pacer import LoopPacer
from tangere.view.live_pages.page_input import PageInput
from tangere.view.live_pages.simulation_viewer import SimulationViewer

_RATE = 60.0  #: pictures a second
_BEHIND = 0.1  #: how far ticks may be behind; what is more is left out and counted [s]
_SOON = 0.004  #: so shortly before a tick nothing is answered apart [s]
_KINDS = {None: "plane", "shift": "depth", "cmd/ctrl": "turn"}


class HandPage(SimulationViewer):
    """A page of a hand; a subclass draws it."""

    _image_light = False  # who holds something waits for the picture

    def _begin(self, hand: Hand, loops: SeparateLoops | None) -> None:
        """What is held; before the page is made."""
        self.hand, self._loops = hand, loops
        self.pacer = LoopPacer(_RATE, sleep=self._wait_for_events)  #: of the pictures
        self.answered = 0  #: pictures in between, because a person did something
        self._event, self._advanced = threading.Event(), time.monotonic()
        self.left_out = 0.0  #: time of which no ticks were made, because they take longer than it [s]
        self._pointer = self._pressed_at = (0.5, 0.5, 0.0)  # across, down, notches of the wheel
        self._is_pressed = False
        self._behind = 0.0
        # of ticks and restarts; callbacks of the page wait for a tick, not for a picture
        self._frame = threading.Lock()
        keys = list(KEY_CODES) if isinstance(hand.device, KeyboardDevice) else []
        self.input = PageInput(keys=keys, gamepad=isinstance(hand.device, GamepadDevice))
        self.input.on_event = self._event.set

    def run(self, steps: int | None = None, after_step: Callable[[], Any] | None = None) -> int:
        """Make ticks and pictures, so many pictures, or until the page is closed or the user presses Ctrl-C.

        Args:
            steps: pictures to make; None means until the page is closed.
            after_step: called after each picture.
        """
        done = 0
        try:
            for _ in self.pacer.ticks():
                if self._closed.is_set() or (steps is not None and done >= steps):
                    break
                if self._running.is_set() or self._single.is_set():
                    self._single.clear()
                    self.advance(self.pacer.period)
                    self.show()
                    done += 1
                    if after_step is not None:
                        after_step()
        except KeyboardInterrupt:
            pass
        return done

    def advance(self, seconds: float) -> None:
        """Make the ticks of so much time; slow ones only where the fast loop is elsewhere."""
        with self._frame:
            self._tick(seconds + self.pacer.missed * self.pacer.period)

    def _tick(self, seconds: float, *, look: bool = False) -> None:
        """Make the ticks of so much time, with `look` up to the end of a slow one."""
        hand = self.hand
        self._event.clear()
        self._advanced = time.monotonic()
        self.input.begin()
        self._look_from_camera()
        if self._loops is not None:
            self._loops.look()
            return
        self._wait(seconds)
        ticks = max(int(self._behind * hand.fast_rate + 1e-6), 0)
        if look:  # what comes after it is made up for by then
            ticks += -(hand.report.fast_ticks + ticks) % round(hand.fast_rate / hand.slow_rate)
        if ticks:
            self._behind -= ticks / hand.fast_rate
            hand.run(ticks / hand.fast_rate)

    def _wait(self, seconds: float) -> None:
        """So much time is to be made up for; what is too much is left out."""
        self._behind += seconds
        if self._behind > _BEHIND:
            self.left_out += self._behind - _BEHIND
            self._behind = _BEHIND

    def _wait_for_events(self, seconds: float) -> None:
        """Sleep until the next tick; the first thing that a person does meanwhile is answered at once."""
        due = time.monotonic() + seconds
        if seconds > _SOON and self._event.wait(seconds - _SOON) and self._running.is_set():
            with self._frame:
                passed = min(time.monotonic() - self._advanced, self.pacer.period)
                self._tick(passed, look=True)
                self._behind -= passed  # the tick counts it once more
            self.show()
            self.answered += 1
        time.sleep(max(due - time.monotonic(), 0.0))

    # -- what is told -------------------------------------------------------------------------------------------------

    def _add_echo(self, gui: Any) -> None:
        """Where the page finds the stamps of what pictures show."""
        self._echo = gui.add_html('<span id="tangere-echo" data-stamp=""></span>')

    def _tell_shown(self) -> None:
        """The picture that is sent now shows what was done until it was begun."""
        stamp = self.input.shown()
        if stamp is not None:
            self._echo.content = f'<span id="tangere-echo" data-stamp="{stamp!r}"></span>'

    def _lines_of_loops(self) -> list[str]:
        """Latency and overruns, for the panel."""
        lines, latency = [], self.input.latency
        if latency.count:
            lines.append(f"latency {1e3 * latency.quantile(0.5):.0f} ms, p99 {1e3 * latency.quantile(0.99):.0f} ms")
            frames = [self.input.frames_late(share) for share in (0.5, 0.99)]
            lines.append(f"that is {frames[0]} pictures of this page, p99 {frames[1]}")
        if self._loops is not None:
            lines.append(f"fast loop: {self._loops.scheduling}, {self._loops.late} overruns")
        return lines

    # -- input ---------------------------------------------------------------------------------------------------------

    def _own_socket(self) -> Callable[[Any], Awaitable[None]]:
        return self.input.answer

    def _listen(self, held: Any) -> None:
        """Let the page feed the device; `held` is what is dragged."""
        device: Device = self.hand.device
        if isinstance(device, KeyboardDevice):
            self.input.on_keys = device.hold
        elif isinstance(device, GamepadDevice):
            self.input.on_gamepad = lambda axes, buttons: device.rest() if axes is None else device.feed(axes, buttons)
        elif isinstance(device, PointerDevice):
            self.input.on_pointer = self._on_pointer
            for modifier, kind in _KINDS.items():
                held.on_drag("left", modifier=modifier)(lambda event, kind=kind: self._on_drag(event, kind))
        self.input.install(self.server)

    def _on_pointer(self, x: float, y: float, notches: float, pressed: bool) -> None:
        """The pointer is there; from the thread of the socket."""
        device = self.hand.device
        self._pointer = (x, y, notches)
        if pressed and not self._is_pressed:
            self._pressed_at = self._pointer
        self._is_pressed = pressed
        if not pressed:
            device.release()
        elif device.pressed:
            device.drag(x, y, notches - self._pressed_at[2])

    def _on_drag(self, event: Any, kind: Any) -> None:
        """viser says that a drag of the part begins or ends; in between the page's own script tells each motion."""
        device = self.hand.device
        if event.phase == "start":
            x, y, notches = self._pressed_at
            with self._frame:
                device.press(self.hand.handle, event.start_position, sight_of(event.client.camera), x, y, kind)
            device.drag(self._pointer[0], self._pointer[1], self._pointer[2] - notches)
        elif event.phase == "end":
            device.release()
            self._pressed_at = self._pointer  # with another modifier it goes on from here

    def _look_from_camera(self) -> None:
        """Devices that tell velocities tell them along the axes of the picture."""
        device, clients = self.hand.device, self.server.get_clients()
        if isinstance(device, RateDevice) and clients:
            camera = clients[min(clients)].camera
            if camera.image_height:
                device.look_from(sight_of(camera).axes)


def sight_of(camera: Any) -> Sight:
    """The camera of a page, as viser tells it: x to the right, y down, z ahead."""
    axes = rotations_of(np.asarray(camera.wxyz, float)[None], "camera")[0] * [1.0, -1.0, -1.0]
    aspect = camera.image_width / max(camera.image_height, 1)
    return Sight(np.asarray(camera.position, float), axes, float(np.tan(0.5 * camera.fov)), aspect)
