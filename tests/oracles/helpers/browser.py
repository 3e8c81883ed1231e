"""Patience with a browser, and what it shows."""

from __future__ import annotations

import io
import time

import numpy as np
import pytest

__all__ = ["pixels", "until"]


def until(condition, page, seconds: float = 90.0) -> None:
    """Let the browser work until the condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the browser did not get there in time"
        page.wait_for_timeout(100)


def pixels(page) -> np.ndarray:
    """What the page shows, left of its panel: (rows, columns, 3) int."""
    image_module = pytest.importorskip("PIL.Image")
    shot = image_module.open(io.BytesIO(page.screenshot(timeout=60_000))).convert("RGB")
    return np.asarray(shot).astype(int)[:, :520]
