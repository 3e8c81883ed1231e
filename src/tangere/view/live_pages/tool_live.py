"""A page where a person takes a tool or a blade and pushes and cuts soft bodies with it.

Bodies, contacts and walls of cuts are drawn as in the page of soft bodies; the tool stands where the last step has
brought it, and is dragged as a part is (`hand_live`): in the plane that faces the eye, with the wheel or shift in
depth, with ctrl it turns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tangere.hand import PointerDevice, SeparateLoops, ToolHand
from tangere.motion import quaternions_of
from tangere.view.live_pages.hand_page import HandPage
from tangere.view.live_pages.soft_live import LiveViewer


class ToolViewer(HandPage, LiveViewer):
    """A page of a tool in a hand. Use it as a context manager; `run` makes the ticks.

    Args:
        hand: what is shown and ticked.
        loops: with a fast loop in another process, only steps of the bodies are made here.
        host, port: as of a `Viewer`.
    """

    def __init__(
        self,
        hand: ToolHand,
        *,
        loops: SeparateLoops | None = None,
        host: str = "127.0.0.1",
        port: int | None = None,
    ) -> None:
        self._begin(hand, loops)
        self._tool = hand
        super().__init__(hand.simulation, host=host, port=port)
        self._listen(self.body(self._names[hand.body]))

    def advance(self, seconds: float) -> None:
        """Make the ticks of so much time; where the fast loop is elsewhere, the steps of the bodies."""
        if self._loops is None:
            super().advance(seconds)
            return
        with self._frame:
            self.input.begin()
            self._wait(seconds)
            steps = int(self._behind * self.hand.slow_rate + 1e-6)
            self._behind -= steps / self.hand.slow_rate
            for _ in range(steps):
                self._loops.look()

    def show(self) -> None:
        """Draw the bodies as they are now, and the tool where the last step has brought it."""
        with self._lock, self.server.atomic():
            super().show()
            pose, tool = self.hand.pose, self.body(self._names[self._tool.body])
            tool.position, tool.wxyz = tuple(pose[:3, 3]), tuple(quaternions_of(pose[None, :3, :3])[0])
            self._tell_shown()
        self.server.flush()

    def summary(self) -> str:
        """The text of the panel, in Markdown."""
        hand, told = self._tool, self._tool.report
        lines = [super().summary(), f"force {float(np.linalg.norm(hand.force)):.2f} N"]
        free = f"take the {hand.name}" if told.lost is None else told.lost
        lines.append(f"holding {hand.name}" if hand.holding else free)
        if hand.why_stopped is not None:
            lines.append(f"it waits: {hand.why_stopped}")
        return "  \n".join([*lines, *self._lines_of_loops()])

    def _add_own_controls(self, gui: Any) -> None:
        super()._add_own_controls(gui)
        self._add_echo(gui)
        if isinstance(self.hand.device, PointerDevice):
            gui.add_markdown("Drag the tool; wheel or shift: depth; ctrl: turn.")
