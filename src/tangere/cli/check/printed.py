"""How `tangere check` prints times: they keep their digits, and those of contacts are never told late."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tangere.scene import Scene


def printed_time(scene: Scene, shown: float, digits: int = 6, *, down: bool = False) -> str:
    """A time of the file, without zeros at its end: seconds since 1970 keep theirs.

    Args:
        scene: whose clock is that of the file.
        shown: what the clock shows.
        digits: of the whole range.
        down: for times of contacts, which must not be told late.
    """
    text = scene.shown_text(shown, digits, down=down)
    return text.rstrip("0").rstrip(".") if "." in text else text
