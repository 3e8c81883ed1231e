"""A page that shows a simulation while it runs: what pages of soft bodies and of crowds have in common."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from tangere.scene import Scene
from tangere.view.web import Viewer


class SimulationViewer(Viewer):
    """A page of one simulation, which `run` steps; a subclass draws it (`show`) and describes it (`summary`)."""

    def __init__(self, simulation: Any, scene: Scene, *, host: str, port: int | None) -> None:
        self.simulation = simulation
        self._running, self._single = threading.Event(), threading.Event()
        self._running.set()
        self._drawn: dict[str, Any] = {}
        super().__init__(scene, host=host, port=port)

    def run(self, steps: int | None = None, after_step: Callable[[], Any] | None = None) -> int:
        """Step, and show, until so many steps are done or the page is closed; never faster than time itself.

        Args:
            steps: how many; None means until the page is closed or the user presses Ctrl-C.
            after_step: called after each step.
        """
        done = 0
        try:
            while not self._closed.is_set() and (steps is None or done < steps):
                began = time.monotonic()
                if self._running.is_set() or self._single.is_set():
                    self._single.clear()
                    with self._lock:
                        self.simulation.step()
                        if after_step is not None:
                            after_step()
                    self.show()
                    done += 1
                time.sleep(max(0.0, self.simulation.dt - (time.monotonic() - began)))
        except KeyboardInterrupt:
            pass
        return done

    def show(self) -> None:
        """Draw the simulation as it is now."""
        raise NotImplementedError

    def set_time(self, time: float) -> None:
        """A simulation is always now."""
        self.show()

    def _add_controls(self) -> None:
        gui = self.server.gui
        self._pause = gui.add_button("Pause")
        self._pause.on_click(lambda _: self._toggle())
        self._add_own_controls(gui)

    def _add_own_controls(self, gui: Any) -> None:
        """Buttons of the subclass, and the text of its summary."""
        self._text = gui.add_markdown("")

    def _toggle(self) -> None:
        (self._running.clear if self._running.is_set() else self._running.set)()
        self._pause.label = "Pause" if self._running.is_set() else "Run"
