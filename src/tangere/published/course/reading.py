"""How to read what the course leaves open.

The printed text fixes no tolerance: not when a polynomial is zero, not when a complex root is real, not what a
component of the normal that vanishes throughout means. A `Reading` fixes all of it. The default is the most charitable
strict reading; no reading makes the printed method safe.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast

import warp as wp

from tangere.runtime.errors import InputError

_T = TypeVar("_T")


def _struct(fields: type[_T]) -> type[_T]:
    """`wp.struct`, typed as the class it was made from."""
    return cast(type[_T], wp.struct(fields))


@_struct
class ReadingValues:
    """A `Reading` inside kernels."""

    zero: wp.float64
    widen: wp.float64
    every_time: wp.bool
    imaginary: wp.float64
    match: wp.float64


@dataclass(frozen=True)
class Reading:
    """One reading of the course; the defaults are the most charitable strict one."""

    zero: float = 0.0  #: a cubic whose coefficients are all at most this in size is the zero polynomial [m^3]
    widen: float = 0.0  #: inside tests are closed and widened by this
    vanishing: Literal["none", "all"] = "all"  #: times of a component of the normal that is exactly zero (ERR-5)
    imaginary: float = 1e-12  #: a root is real if its imaginary part is at most this times max(1, |root|)
    match: float = 1e-9  #: two components share a time if their roots differ by at most this

    def __post_init__(self) -> None:
        if self.vanishing not in ("none", "all"):
            raise InputError(f"Reading: vanishing must be 'none' or 'all', not {self.vanishing!r}")
        for name in ("zero", "widen", "imaginary", "match"):
            if not getattr(self, name) >= 0.0:
                raise InputError(f"Reading: {name} must be a number >= 0, not {getattr(self, name)!r}")

    def solve(self, kind: Any, x0: wp.array, x1: wp.array) -> tuple[wp.array, wp.array]:
        """Time and status of each query of a kind, read so; see `tangere.published.course.solve`."""
        from tangere.published.course import solve

        return solve(kind, x0, x1, self)

    def solve_triangles(self, x0: wp.array, x1: wp.array) -> tuple[wp.array, wp.array]:
        """Time and status of each pair of triangles, read so."""
        from tangere.published.course.triangles import solve_triangles

        return solve_triangles(x0, x1, self)

    def values(self) -> ReadingValues:
        """The reading as kernels take it."""
        values = ReadingValues()
        values.zero = wp.float64(self.zero)
        values.widen = wp.float64(self.widen)
        values.every_time = wp.bool(self.vanishing == "all")
        values.imaginary = wp.float64(self.imaginary)
        values.match = wp.float64(self.match)
        return values
