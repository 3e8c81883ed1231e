"""The options every first-contact query takes, checked once."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from numbers import Real
from typing import Literal

from tangere.query.first_contact.published import Reading
from tangere.runtime import InputError

__all__ = ["Mode", "Options"]

Mode = Literal["sound", "exact", "published"]


@dataclass(frozen=True)
class Options:
    """How to answer.

    Args:
        mode: "sound" never misses a contact and is never late; "exact" also decides what sound leaves at rounding
            level, by integer arithmetic; "published" is the course as printed, which is not safe.
        separation: distance that already counts as contact [m].
        tolerance: at the returned time the distance is at most separation + tolerance [m]; None means 1e-6 of the
            query's size.
        reading: how "published" reads what the course leaves open.
    """

    mode: Mode = "sound"
    separation: float = 0.0
    tolerance: float | None = None
    reading: Reading = field(default_factory=Reading)

    def __post_init__(self) -> None:
        if self.mode not in ("sound", "exact", "published"):
            raise InputError(f"mode must be 'sound', 'exact' or 'published', not {self.mode!r}")
        object.__setattr__(self, "separation", _length("separation", self.separation))
        if self.tolerance is not None:
            object.__setattr__(self, "tolerance", _length("tolerance", self.tolerance))
        if not isinstance(self.reading, Reading):
            raise InputError(f"reading must be a Reading, not {self.reading!r}")
        if self.separation > 0.0 and self.mode != "sound":
            raise InputError(f"mode {self.mode!r} decides contact only: separation must be 0, not {self.separation!r}")


def _length(name: str, value: object) -> float:
    if isinstance(value, Real) and not isinstance(value, bool) and 0.0 <= float(value) < math.inf:
        return float(value)
    raise InputError(f"{name} must be a length >= 0, not {value!r}")
