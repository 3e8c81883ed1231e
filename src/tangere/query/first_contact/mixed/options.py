"""How finely the interval engine cuts time and space, and what it counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import warp as wp

from tangere.query.first_contact.mixed.narrow_phase import PRINTED_MEMBERSHIP, SOUND_MEMBERSHIP, Precision
from tangere.runtime import InputError

_MEMBERSHIP = {"sound": SOUND_MEMBERSHIP, "printed": PRINTED_MEMBERSHIP}


@dataclass(frozen=True, kw_only=True)
class BisectionOptions:
    """Settings of the elementary tests by interval bisection (Redon 2002, section 3.3.2).

    Args:
        membership: "sound", or "printed", which can miss contacts.
        time_tolerance: longest interval of time that may be reported.
        tolerance: how far points may move in it [m]; None means 1e-6 of the extent of the query.
        most_intervals: of one pair of triangles; beyond it they count as touching.
    """

    membership: Literal["sound", "printed"] = "sound"
    time_tolerance: float = 1.0
    tolerance: float | None = None
    most_intervals: int = 100_000

    def __post_init__(self) -> None:
        if self.membership not in _MEMBERSHIP:
            raise InputError(f"membership must be one of {tuple(_MEMBERSHIP)}, not {self.membership!r}")
        if not self.time_tolerance > 0.0:
            raise InputError(f"time_tolerance must be positive, not {self.time_tolerance!r}")
        if self.tolerance is not None and not (self.tolerance > 0.0 and np.isfinite(self.tolerance)):
            raise InputError(f"tolerance must be positive, not {self.tolerance!r}")
        if not self.most_intervals > 0:
            raise InputError(f"most_intervals must be positive, not {self.most_intervals!r}")

    def precision(self, extent: float) -> Any:
        precision: Any = Precision()
        precision.space = 1e-6 * extent if self.tolerance is None else self.tolerance
        precision.time, precision.most = self.time_tolerance, self.most_intervals
        precision.membership = int(_MEMBERSHIP[self.membership])
        return precision


@dataclass(frozen=True)
class IntervalCounters:
    """How often each test was made; exact on one thread."""

    box_final: int = 0  #: discrete box tests at the end
    box_initial: int = 0  #: discrete box tests at the start
    box_continuous: int = 0  #: continuous box tests
    box_intervals: int = 0  #: intervals those took (stage 1 evaluations)
    edge_edge: int = 0
    vertex_face: int = 0
    face_vertex: int = 0
    recession: int = 0
    leaf_intervals: int = 0  #: intervals the elementary tests took
    boxes: int = 0  #: pairs of boxes tested, N_BV

    @staticmethod
    def of(rows: np.ndarray) -> IntervalCounters:
        """The sum over queries of a kernel's table."""
        return IntervalCounters(*(int(total) for total in rows.reshape(-1, len(COLUMNS)).sum(axis=0)))


COLUMNS = tuple(IntervalCounters.__dataclass_fields__)
#: Places in the kernels' table of counters.
FINAL, INITIAL, CONTINUOUS, INTERVALS, EDGE_EDGE, VERTEX_FACE, FACE_VERTEX, RECESSION, LEAF_INTERVALS, BOXES = (
    wp.constant(i) for i in range(len(COLUMNS))
)
