"""What a person does in a page with mouse, keys and gamepad, as it happens.

Question: where is the pointer now, which keys are down, what does the gamepad say?
Method:   a script in the page (page_input.js) tells each event by a socket of its own, which is behind the same rule
          as the page (`access`). The newest counts: listeners are called with it, from the thread of the socket.
          The stamp of an event comes back to the page in the stream of the picture that shows it, and the page tells
          how long that took.
Sound:    what is no message, or has numbers that are none, is counted and left out.
"""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tangere.runtime import UnsupportedError
from tangere.runtime.pacer import LatencyHistogram

_MOST_BYTES = 4096  #: of a message
_MOST_KEYS = 32
_LONGEST = 60_000.0  #: latency that is believed [ms]
_MOST_FRAMES = 10_000  #: that are told apart


class PageInput:
    """What comes from the script of a page.

    Args:
        keys: the code of a KeyboardEvents that the script takes for itself; others are the camera's.
        gamepad: whether it looks at one.
    """

    def __init__(self, *, keys: list[str] | None = None, gamepad: bool = False) -> None:
        self._options = {"keys": keys or [], "gamepad": gamepad}
        self.on_pointer: Callable[[float, float, float, bool], None] = _nothing  #: x, y, notches, pressed
        self.on_keys: Callable[[frozenset[str]], None] = _nothing
        self.on_gamepad: Callable[[list[float] | None, list[float]], None] = _nothing  #: axes, None if unplugged
        self.on_event: Callable[[], None] = _nothing  #: after any of them
        self.refused: Counter[str] = Counter()  #: messages that were left out, by why
        self.received = 0  #: messages that were not
        self.open = 0  #: sockets
        self.latency = LatencyHistogram()  #: from an event to the picture that shows it, in the page [s]
        self.server_latency = LatencyHistogram()  #: from the arrival of an event to when its picture was sent [s]
        self.frames: Counter[int] = Counter()  #: how many pictures the page drew until then, that one included
        # Stamp of an event, and when it arrived: the oldest since a picture was begun, and that of the picture begun.
        self._waiting: tuple[float, float] | None = None
        self._drawn: tuple[float, float] | None = None

    def install(self, server: Any) -> None:
        """Let every page of a viser server run the script."""
        from viser import _messages

        script = Path(__file__).with_name("page_input.js").read_text(encoding="utf-8")
        made = getattr(_messages, "RunJavascriptMessage", None)
        if made is None:
            raise UnsupportedError("this version of viser runs no scripts in its pages; tangere needs 1.1")
        server.gui._websock_interface.queue_message(
            made(source=script.replace("TANGERE_OPTIONS", json.dumps(self._options)))
        )

    async def answer(self, connection: Any) -> None:
        """Hear one socket until it is closed; then nothing is pressed any more."""
        self.open += 1
        try:
            async for message in connection:
                self.take(message)
        finally:
            self.open -= 1
            self.on_pointer(0.5, 0.5, 0.0, False)
            self.on_keys(frozenset())
            self.on_gamepad(None, [])

    def take(self, message: str | bytes) -> None:
        """One message of the script."""
        arrived = time.monotonic()
        if not isinstance(message, str) or len(message) > _MOST_BYTES:
            self.refused["size"] += 1
            return
        try:
            told = json.loads(message)
            kind = self._tell(told)
        except (ValueError, TypeError, KeyError, RecursionError):
            self.refused["form"] += 1
            return
        self.received += 1
        if kind == "event" and self._waiting is None:
            self._waiting = _number(told.get("stamp", 0.0)), arrived
        if kind == "event":
            self.on_event()

    def begin(self) -> None:
        """A picture is begun: it uses all events so far, and no later ones."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None and self._drawn is None:
            self._drawn = waiting

    def shown(self) -> float | None:
        """The picture was sent; gives the stamp of the oldest event that none had shown before, if there is one."""
        drawn, self._drawn = self._drawn, None
        if drawn is None:
            return None
        self.server_latency.add(time.monotonic() - drawn[1])
        return drawn[0]

    def frames_late(self, share: float) -> int:
        """Pictures of the page until one shows an event, which this share of all events did not exceed; 0 if none."""
        wanted, seen = share * self.frames.total(), 0
        for frames in sorted(self.frames):
            seen += self.frames[frames]
            if seen >= wanted:
                return frames
        return 0

    def _tell(self, told: Any) -> str:
        if not isinstance(told, dict):
            raise ValueError
        if "latency" in told:
            latency = _number(told["latency"])
            if not 0.0 <= latency <= _LONGEST:
                raise ValueError
            frames = told.get("frames")
            if frames is not None and (isinstance(frames, bool) or not isinstance(frames, int) or frames < 0):
                raise ValueError
            self.latency.add(1e-3 * latency)
            if frames is not None:
                self.frames[min(frames, _MOST_FRAMES)] += 1
            return "latency"
        _number(told.get("stamp", 0.0))
        if "pointer" in told:
            x, y, notches = (_number(value) for value in told["pointer"])
            self.on_pointer(x, y, notches, bool(told["pressed"]))
        elif "keys" in told:
            keys = told["keys"]
            if not isinstance(keys, list) or len(keys) > _MOST_KEYS or not all(isinstance(key, str) for key in keys):
                raise ValueError
            self.on_keys(frozenset(keys))
        else:
            pad = told["gamepad"]
            if pad is None:
                self.on_gamepad(None, [])
            else:
                self.on_gamepad([_number(v) for v in pad["axes"]], [_number(v) for v in pad["buttons"]])
        return "event"


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError
    return float(value)


def _nothing(*_: Any) -> None:
    """Nobody listens."""
