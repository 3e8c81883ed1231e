"""Ground that brings a simulation of its own, so that `Simulation` need not know every kind of it."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, runtime_checkable

Made_co = TypeVar("Made_co", covariant=True)


@runtime_checkable
class Ground(Protocol[Made_co]):
    """What people walk on that is no `CellMap`."""

    def __simulation__(self, **settings: Any) -> Made_co:
        """What `Simulation` makes of this ground and these settings."""
        ...
