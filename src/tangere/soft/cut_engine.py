"""What a simulation asks of whoever cuts its bodies: `soft.cutting` enters itself here when it is loaded.

A step of bodies that nobody cuts needs none of it, so `simulation` and `step` know this contract only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from tangere.runtime import Arrays
from tangere.soft.blade import Blade
from tangere.soft.body import Body

if TYPE_CHECKING:
    from tangere.soft.step import StepPipeline

#: The width of a cut, as part of the contact distance. In one half as wide, walls of a body that hardly carries itself
#: were held by the truncation while they slid, and it gained 2 % of the energy that it lost in the end; here nothing.
KERF_PART = 0.1


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
    """The width of a cut through a body at a contact distance [m]."""
    return KERF_PART * distance if body.kerf is None else body.kerf
