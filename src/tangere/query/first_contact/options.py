"""The options of first-contact queries, checked once: those that all take, and those of one engine.

What only one engine has is in its own class, given as `options=`: an engine refuses the options of another.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from tangere.runtime import InputError, described, not_negative, published

#: Whether overlap at t = 0 is searched for, or the caller knows that there is none.
Start = Literal["checked", "trusted", "leaving"]

#: A name, or a reading of the course, `tangere.published.course.Reading(...)`, which means "published" read so.
Mode = Literal["sound", "exact", "published"] | Any


@dataclass(frozen=True)
class Accuracy:
    """How to answer, whatever moves; `options=` takes what only one engine has.

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
        object.__setattr__(self, "separation", not_negative(self.separation, "separation"))
        if self.tolerance is not None:
            object.__setattr__(self, "tolerance", not_negative(self.tolerance, "tolerance"))
        if self.separation > 0.0 and self.mode != "sound":
            raise InputError(f"mode {self.mode!r} decides contact only: separation must be 0, not {self.separation!r}")


@dataclass(frozen=True)
class DeformingOptions:
    """Of meshes in `Linear` motion.

    Args:
        broad_phase: "tree", or "brute": every pair, for checks on small meshes.
    """

    broad_phase: Literal["tree", "brute"] = "tree"

    def __post_init__(self) -> None:
        _one_of(self.broad_phase, "broad_phase", ("tree", "brute"))


@dataclass(frozen=True)
class RigidOptions:
    """Of meshes in rigid motion.

    Args:
        contacts: "all" also lists every other pair of features within separation + tolerance at the time of contact.
            Nothing is reduced: boxes that land flat on each other have some hundred, for every edge of a triangulation
            counts.
        recession: drop parts that move away from the other body, by recession cones. On conforming parts (41k on 33k
            triangles, one thread) lifting was 3 to 22 times as fast, sliding 1 to 2.3 times, pressing a fifth slower.
            Meshes that are open or not oriented lose nothing, nor do queries where one body starts inside the other.
            The cones take the surfaces not to meet at t = 0, so `start="checked"` first searches for what touches or
            overlaps then, which takes about as long as the search; "trusted" does not, and a pair that is within
            tolerance at t = 0 but parting is no contact then.
    """

    contacts: Literal["first", "all"] = "first"
    recession: bool = False

    def __post_init__(self) -> None:
        _one_of(self.contacts, "contacts", ("first", "all"))
        if not isinstance(self.recession, bool | np.bool_):
            raise InputError(f"recession must be True or False, not {self.recession!r}")


@dataclass(frozen=True)
class SceneOptions:
    """Of a list of bodies.

    Args:
        broad_phase: "sweep" (sweep and prune) or "tree"; the answer is the same.
    """

    broad_phase: Literal["sweep", "tree"] = "sweep"

    def __post_init__(self) -> None:
        _one_of(self.broad_phase, "broad_phase", ("sweep", "tree"))


def check_start(start: str) -> None:
    """Raise unless `start` is one of the words for it; who takes "leaving" has asked before."""
    if start not in ("checked", "trusted"):
        raise InputError(
            f"start must be 'checked' or 'trusted' (or 'leaving', for rigid parts), not {described(start)}"
        )


def _one_of(value: object, name: str, words: tuple[str, str]) -> None:
    if value not in words:
        raise InputError(f"{name} must be {words[0]!r} or {words[1]!r}, not {described(value)}")
