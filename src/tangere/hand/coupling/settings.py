"""What a coupling is told, checked, and what it chooses where it is told nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tangere.dynamics.solver import vec6d
from tangere.hand.coupling.fast_tick import LAWS, MOST_DELAY, CouplingSettings
from tangere.hand.coupling.metaphor import METAPHORS
from tangere.runtime import InputError, not_negative, positive

#: Of the stiffness: the damping of a coupling that says nothing [s].
DAMPING_TIME = 2e-3
#: Turns are compared with ways by this: stiffness against turning is stiffness times its square [m].
LEVER = 10.0**-1.5
#: How long forces take to come and to go [s].
FADING = 0.05
#: What is in the energy tank at first, and at most [J].
TANK, CAPACITY = 1e-3, 1.0
#: The tank's damping turns no device of this mass round within a tick [kg].
LEAST_MASS = 0.05


def coupling_settings(
    rate: float,
    forced: Sequence[bool],
    free: Sequence[bool] | np.ndarray,
    radius: float,
    *,
    stiffness: float,
    damping: float | None,
    turn_stiffness: float | None,
    turn_damping: float | None,
    mass: float,
    metaphor: str,
    law: str,
    scale: float,
    most_force: float | None,
    most_change: float,
    tank: float | None,
    fading: float,
    most_jump: float,
    delay: float,
    security: float = 0.0,
) -> CouplingSettings:
    """The settings of a fast loop of so many ticks in a second; `Hand` says what each is.

    Args:
        forced: six axes on which the device can push.
        free: six axes along which the part can go.
        radius: no point of the part is farther from its grip [m].
        security: how far contacts are kept apart [m]; 0 where no walk is certified.
    """
    for name, value, known in (("metaphor", metaphor, METAPHORS), ("law", law, LAWS)):
        if value not in known:
            raise InputError(f"{name} must be one of {', '.join(known)}, not {value!r}")
    k = positive(stiffness, "stiffness")
    turn = k * LEVER**2 if turn_stiffness is None else positive(turn_stiffness, "turn_stiffness")
    b = DAMPING_TIME * k if damping is None else not_negative(damping, "damping")
    turn_b = DAMPING_TIME * turn if turn_damping is None else not_negative(turn_damping, "turn_damping")
    m = not_negative(mass, "mass")
    settings: Any = CouplingSettings()
    settings.period = 1.0 / rate
    settings.stiffness = vec6d(k, k, k, turn, turn, turn)
    settings.damping = vec6d(b, b, b, turn_b, turn_b, turn_b)
    settings.mass = vec6d(m, m, m, *(3 * [m * LEVER**2]))
    settings.radius, settings.lever, settings.security = radius, LEVER, security
    settings.scale = positive(scale, "scale")
    settings.most_force = np.inf if most_force is None else positive(most_force, "most_force")
    settings.most_change = positive(most_change, "most_change") / rate
    settings.fading = max(positive(fading, "fading"), settings.period)
    settings.most_way = positive(most_jump, "most_jump")
    settings.most_turn = min(10.0 * most_jump, np.pi)
    settings.capacity = np.inf if tank is None else max(CAPACITY, tank)
    settings.most_damping = LEAST_MASS * rate
    settings.delay = round(not_negative(delay, "delay") * rate)
    if settings.delay > MOST_DELAY:
        raise InputError(f"delay must be at most {MOST_DELAY / rate:g} s at {rate:g} ticks a second, not {delay:g}")
    settings.metaphor, settings.law = METAPHORS.index(metaphor), LAWS.index(law)
    settings.forced, settings.free = (vec6d(*(float(axis) for axis in axes)) for axes in (forced, free))
    return settings
