"""Motions through given states: meshes that were recorded frame by frame, and balls that go from place to place.

Both say in `times` when their states are reached, which is where exported animations have their keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tangere.runtime import InputError, to_numpy
from tangere.scene.scene import PALETTE, Colour, Thing
from tangere.shape.mesh import Mesh


@dataclass(frozen=True, eq=False)
class Keyframes:
    """A motion through many states: vertices go from each to the next along straight lines.

    Args:
        states: shape (k, n, 3), from the origin [m].
        times: (k,) when each state is reached, rising from 0, the first, to 1, the last; None means evenly.
        origin: (3,) [m].
    """

    states: np.ndarray
    times: np.ndarray | None = None
    origin: Any = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        states = np.asarray(to_numpy(self.states, "Keyframes: states", None))
        if states.ndim != 3 or states.shape[2] != 3 or len(states) < 1:
            raise InputError(f"Keyframes: states must have shape (k, n, 3), not {states.shape}")
        times = np.linspace(0.0, 1.0, len(states)) if self.times is None else np.array(self.times, float)
        if times.shape != (len(states),) or (np.diff(times) < 0.0).any() or not ((times >= 0) & (times <= 1)).all():
            raise InputError(f"Keyframes: {len(states)} states need as many times that rise from 0 to 1")
        object.__setattr__(self, "states", states)
        object.__setattr__(self, "times", times)
        object.__setattr__(self, "origin", np.asarray(self.origin, float))

    def positions(self, start: Any, time: float) -> np.ndarray:
        """Where the vertices are at `time`, 0 the first state and 1 the last, shape (n, 3) [m]."""
        before, after, part = self.between(time)
        if part == 0.0:  # what is nowhere in the next state is here still
            return self.states[before] + self.origin
        return self.states[before].astype(np.float64) * (1.0 - part) + self.states[after] * part + self.origin

    def between(self, time: float) -> tuple[int, int, float]:
        """The states before and after `time`, and the part of the way from one to the other."""
        times: Any = self.times
        before = int(np.clip(np.searchsorted(times, time, side="right") - 1, 0, len(times) - 1))
        after = min(before + 1, len(times) - 1)
        span = times[after] - times[before]
        return before, after, float((time - times[before]) / span) if span > 0.0 else 0.0


@dataclass(frozen=True, eq=False)
class Episode:
    """A motion of something that is there for a while only, as a body between two cuts; else it has no size.

    Args:
        keyframes: its states, at times within the span.
        span: from when on it is there, and until when, which is not included unless it is the end.
    """

    keyframes: Keyframes
    span: tuple[float, float]

    @property
    def times(self) -> Any:
        """When its states are reached."""
        return self.keyframes.times

    @property
    def states(self) -> np.ndarray:
        """All of them."""
        return self.keyframes.states

    def shown(self, time: float) -> bool:
        """Whether it is there."""
        begin, end = self.span
        return begin <= time and (time < end or end >= 1.0)

    def positions(self, start: Any, time: float) -> np.ndarray:
        """Where the vertices are at `time`, shape (n, 3) [m]; all in one place where it is not there."""
        here = self.keyframes.positions(start, min(max(time, self.span[0]), 1.0))
        return here if self.shown(time) else np.repeat(here.mean(axis=0, keepdims=True), len(here), axis=0)


@dataclass(frozen=True, eq=False)
class _Balls:
    """A motion of balls whose middles go through given places; who is nowhere has no size."""

    places: Keyframes
    radius: np.ndarray  #: (n,) [m]
    known: np.ndarray  #: (n, 3) a place of each [m]
    ball: np.ndarray  #: (v, 3) vertices of one of radius 1

    @property
    def times(self) -> Any:
        return self.places.times

    @property
    def states(self) -> np.ndarray:
        return self.places.states

    def positions(self, start: Any, time: float) -> np.ndarray:
        middles = self.places.positions(start, time)
        there = np.isfinite(middles).all(axis=1)
        middles = np.where(there[:, None], middles, self.known)
        return (middles[:, None] + (there * self.radius)[:, None, None] * self.ball).reshape(-1, 3)


def moving_balls(
    name: str, places: Any, *, radius: Any = 0.25, times: Any = None, colour: Colour = PALETTE[0], opacity: float = 1.0
) -> Thing:
    """Balls that go through places, as one thing: agents of a crowd, for instance.

    Args:
        places: (k, n, 3) [m]; who is not there yet, or no longer, is at nan.
        radius: of all, or (n,) [m].
        times: (k,) that rise; the first is shown at time 0 and the last at time 1. None means evenly.
    """
    places = np.asarray(places, float)
    if times is not None:
        times = np.asarray(times, float)
        times = (times - times[0]) / ((times[-1] - times[0]) or 1.0)
    motion = Keyframes(places, times)
    count = places.shape[1]
    there = np.isfinite(places).all(axis=2)
    if not there.any(axis=0).all() or count == 0:
        raise InputError(f"moving_balls {name!r}: every ball must be somewhere at some time, and there must be one")
    known = places[there.argmax(axis=0), np.arange(count)]
    radius = np.broadcast_to(np.asarray(radius, float), count)
    from tangere.shape.generate import icosphere  # only who draws needs it

    ball = icosphere(triangles=80)
    points, faces = np.asarray(ball.vertices), np.asarray(ball.faces)
    every = (faces + len(points) * np.arange(count)[:, None, None]).reshape(-1, 3)
    mesh = Mesh((known[:, None] + radius[:, None, None] * points).reshape(-1, 3), every, name=name)
    return Thing(name, mesh.moving(_Balls(motion, radius, known, points)), colour, opacity)
