"""When things happen in an exported file: seconds from its beginning."""

from __future__ import annotations

from typing import Any

import numpy as np

from tangere.runtime import positive
from tangere.scene.scene import Scene


class Timing:
    """Seconds of a file for times of a scene.

    Args:
        seconds: how long the file plays; None means as long as the clock of the scene says, in seconds.
    """

    def __init__(self, scene: Scene, seconds: float | None = None) -> None:
        self.start, self.end = scene.time_range
        first, last = scene.clock or scene.time_range
        self.length = float(last - first) if seconds is None else positive(seconds, "seconds")

    def seconds(self, times: Any) -> np.ndarray:
        """From the beginning of the file on."""
        return (np.asarray(times, float) - self.start) / ((self.end - self.start) or 1.0) * self.length
