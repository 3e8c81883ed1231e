"""The options every first-contact query takes, checked once."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Literal

from tangere.runtime import InputError, published

__all__ = ["Mode", "Options"]

#: A name, or a reading of the course, `tangere.published.course.Reading(...)`, which means "published" read so.
Mode = Literal["sound", "exact", "published"] | Any


@dataclass(frozen=True)
class Options:
    """How to answer.

    Args:
        mode: "sound" never misses a contact and is never late; "exact" also decides what sound leaves at rounding
            level, by integer arithmetic; "published" is the course as printed, which is not safe, and a
            `tangere.published.course.Reading` is how to read what it leaves open.
        separation: distance that already counts as contact [m].
        tolerance: at the returned time the distance is at most separation + tolerance [m]; None means 1e-6 of the
            query's size.
    """

    mode: Mode = "sound"
    separation: float = 0.0
    tolerance: float | None = None
    reading: Any = field(default=None, init=False)  #: of the course, where the mode is "published"

    def __post_init__(self) -> None:
        if hasattr(self.mode, "solve_triangles"):
            object.__setattr__(self, "reading", self.mode)
            object.__setattr__(self, "mode", "published")
        elif self.mode == "published":
            object.__setattr__(self, "reading", published("course").Reading())
        if self.mode not in ("sound", "exact", "published"):
            raise InputError(f"mode must be 'sound', 'exact' or 'published', not {self.mode!r}")
        object.__setattr__(self, "separation", _length("separation", self.separation))
        if self.tolerance is not None:
            object.__setattr__(self, "tolerance", _length("tolerance", self.tolerance))
        if self.separation > 0.0 and self.mode != "sound":
            raise InputError(f"mode {self.mode!r} decides contact only: separation must be 0, not {self.separation!r}")


def _length(name: str, value: object) -> float:
    if isinstance(value, Real) and not isinstance(value, bool) and 0.0 <= float(value) < math.inf:
        return float(value)
    raise InputError(f"{name} must be a length >= 0, not {value!r}")
