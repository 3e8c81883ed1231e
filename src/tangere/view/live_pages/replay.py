"""A page that replays a recorded run of soft or rigid bodies: in seconds, with the contacts of the frame shown."""

from __future__ import annotations

from dataclasses import replace

from tangere import dynamics, soft
from tangere.view.web import Viewer


class ReplayViewer(Viewer):
    """A page of one recording. Use it as a context manager, or call `close`."""

    def __init__(
        self, recording: soft.Recording | dynamics.Recording, *, host: str = "127.0.0.1", port: int | None = None
    ) -> None:
        self.recording = recording
        self._time_label = "time [s]"
        super().__init__(replace(recording.scene(), clock=(0.0, recording.seconds)), host=host, port=port)

    def summary(self) -> str:
        """The text of the panel, in Markdown."""
        found = len(self.recording.contact_points(self._time))
        lines = [f"t = {self._time * self.recording.seconds:.2f} s of {self.recording.seconds:.2f} s"]
        return "  \n".join([*lines, f"{found} contacts"])
