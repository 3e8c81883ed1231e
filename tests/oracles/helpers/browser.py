"""Patience with a browser, and what it shows."""

from __future__ import annotations

import io
import time

import numpy as np
import pytest

__all__ = ["pictures_until_seen", "pixels", "until", "watch_pictures"]

#: Keeps of each picture of a page a sum of all matrices that it was drawn with, and of each motion of the pointer how
#: many pictures there were before it.
_WATCH = """(() => {
  const kind = WebGL2RenderingContext.prototype, plain = kind.uniformMatrix4fv;
  const watched = (window.watched = { pictures: [], events: [] });
  let sum = 0;
  kind.uniformMatrix4fv = function (place, flipped, values, ...rest) {
    for (let i = 0; i < values.length; i += 1) sum += values[i] * (i + 1 + values.length);
    return plain.call(this, place, flipped, values, ...rest);
  };
  addEventListener("pointermove", () => watched.events.push(watched.pictures.length), { capture: true });
  const tick = () => {
    watched.pictures.push(sum);
    sum = 0;
    requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
})()"""


def watch_pictures(page) -> None:
    """From now on, keep what pictures are drawn with."""
    page.evaluate(_WATCH)


def pictures_until_seen(page) -> list[int]:
    """Of each motion of the pointer: the pictures drawn from then on, up to the first that differs from the last one.

    The picture that was begun before it counts as well: one is the least there can be. Motions must be so far apart
    that nothing moves any more before the next one.
    """
    watched = page.evaluate("window.watched")
    pictures, found = watched["pictures"], []
    for event in watched["events"]:
        before = [drawn for drawn in pictures[:event] if drawn]  # where nothing has changed nothing is drawn
        after = (k for k, drawn in enumerate(pictures[event:], 1) if drawn and drawn != before[-1]) if before else ()
        found += list(after)[:1]
    return found


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
