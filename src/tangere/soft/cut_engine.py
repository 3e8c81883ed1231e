"""What a simulation asks of whoever cuts its bodies: `soft.cutting` enters itself here when it is loaded.

A step of bodies that nobody cuts needs none of it, so `simulation` and `step` know this contract only.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from tangere.runtime import Arrays
from tangere.shape.tets import TetMesh
from tangere.soft.blade import Blade
from tangere.soft.body import Body

if TYPE_CHECKING:
    from tangere.soft.step import StepPipeline

#: The width of a cut, as part of the contact distance. In one half as wide, walls of a body that hardly carries itself
#: were held by the truncation while they slid, and it gained 2 % of the energy that it lost in the end; here nothing.
KERF_PART = 0.1
#: And, where elements are flat, at most this part of their least altitude; a kerf of half of it is refused.
KERF_PART_OF_ALTITUDE = 0.4


@dataclass(frozen=True)
class CutEvent:
    """Something that a blade has done."""

    kind: Literal["opened", "split", "parted"]  #: facets opened, vertices split, a part has come off
    body: int  #: number of the body in the simulation
    count: int  #: of facets or vertices; of vertices of the part
    step: int  #: during which, counted from 0
    area: float = 0.0  #: of the walls, one side of each, at rest [m^2]
    part: int | None = None  #: number of the body that has come off


class CutEngine(Protocol):
    """The bodies of one simulation that can be cut, and the blades among them."""

    events: list[CutEvent]  #: all so far

    def cut(self, number: int, start: Arrays, end: Arrays) -> None:
        """The edge of a blade goes on through a body, from one polyline to another (k, 3) [m]."""
        ...

    def end_stroke(self, number: int) -> None:
        """The blade has left a body, and whatever has come off it."""
        ...

    def abandon_stroke(self, number: int) -> None:
        """The blade is taken out of a body: what it has opened stays, and nothing more is decided."""
        ...

    def pieces_of(self, number: int) -> tuple[int, ...]:
        """The numbers of a body that can be cut and of all that has come off the same one."""
        ...

    def advance_blades(self) -> None:
        """The phase "cut": blades go on through what they press on."""
        ...

    def press_blades(self) -> None:
        """The phase "press": what the edges of blades hold on to has rows in this step."""
        ...

    def force_on(self, number: int) -> np.ndarray:
        """(3,) what a body feels of what its edge cuts, if it is a blade [N]."""
        ...

    def separate(self) -> None:
        """Go on looking for parts, one slice a step, where the last one did not finish."""
        ...

    def save(self) -> None:
        """From here on everything can be taken back."""
        ...

    def restore(self) -> None:
        """As if nothing had been cut since `save`."""
        ...


_engines: list[Callable[[StepPipeline, dict[int, Blade]], CutEngine]] = []


def enter_cut_engine(make: Callable[[StepPipeline, dict[int, Blade]], CutEngine]) -> None:
    """From now on this makes what cuts the bodies of a simulation."""
    _engines[:] = [make]


def cut_engine(pipeline: StepPipeline, blades: dict[int, Blade]) -> CutEngine:
    """What cuts the bodies of a simulation; `blades` by their numbers among the bodies."""
    (make,) = _engines
    return make(pipeline, blades)


def kerf_of(body: Body, distance: float) -> float:
    """The width of a cut through a body at a contact distance [m]: as given, or one that its elements have room for."""
    if body.kerf is not None:
        return body.kerf
    shape = body.material or body.shape
    least = float(altitudes(shape.vertices, shape.tets if isinstance(shape, TetMesh) else shape.faces).min())
    kerf = KERF_PART * distance
    return min(kerf, KERF_PART_OF_ALTITUDE * least) if least > 0.0 else kerf


def altitudes(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """(n,) the least altitude of each triangle or tetrahedron; negative where it is inside out [m]."""
    a, b, c = (points[corners[:, k]] for k in range(3))
    if corners.shape[1] == 3:
        sides = np.linalg.norm([b - a, c - a, c - b], axis=-1)
        return np.linalg.norm(np.cross(b - a, c - a), axis=1) / sides.max(axis=0)
    d = points[corners[:, 3]]
    areas = [np.cross(b - a, c - a), np.cross(b - a, d - a), np.cross(c - a, d - a), np.cross(c - b, d - b)]
    return np.einsum("ij,ij->i", areas[0], d - a) / np.linalg.norm(areas, axis=-1).max(axis=0)


@contextmanager
def interrupts_wait() -> Iterator[Callable[[], None]]:
    """Ctrl-C is heard where what this gives is called, and at the end: not between a write and the note of it.

    A cut is undone from notes that the host takes when a kernel returns; Python raises what it heard meanwhile just
    then. Other threads never hear it anyway.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield lambda: None
        return
    kept: list[tuple[int, FrameType | None]] = []

    def hear() -> None:
        while kept:
            before(*kept.pop())

    signal.signal(signal.SIGINT, lambda number, frame: kept.append((number, frame)))
    try:
        yield hear
    finally:
        signal.signal(signal.SIGINT, before)
        hear()
