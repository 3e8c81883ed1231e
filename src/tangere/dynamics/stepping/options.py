"""What is chosen once for all steps of a world."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tangere.dynamics.stepping.sleep import SLOW, SLOW_FALL

#: What the solver may leave over, as part of the speed of what falls by its own size, but at least of what crosses so
#: much of it in a step; without gravity of what crosses so much. And what it may leave before it turns to a slower
#: method, in these. At 1 m and 0.01 s it is 1e-7 m/s in both cases.
TOLERANCE, LEAST_CROSSED, CROSSED, GOOD = 2e-8, 1e-3, 3e-2, 100.0
#: Parts that a step, or a part of one, is split into where it cannot be made as a whole; how often.
SPLIT, SPLITS = 4, 3
#: Speeds are below this, so that nothing that is made of them overflows [m/s, rad/s].
FASTEST = 1e25


@dataclass(frozen=True)
class WorldOptions:
    """How steps are made; see `World`."""

    dt: float  #: [s]
    gravity: np.ndarray  #: (3,) [m/s^2]
    separation: float  #: how far apart bodies rest [m]
    chosen: float  #: what fits the bodies [m]
    size: float  #: median one of bodies that move [m]
    order: int
    sweeps: int
    second_order: bool  #: whether rows have their second-order terms
    threads: int | None

    @property
    def security(self) -> float:
        """How much of the separation is play, in which contacts are gathered and solved for [m]."""
        return min(self.separation, self.chosen)

    @property
    def rest_speed(self) -> float:
        """Approaches slower than this do not bounce and are no impacts: what gravity makes good within half a step, or
        without gravity what is at rest for a sleeper [m/s]."""
        return max(0.5 * float(np.linalg.norm(self.gravity)) * self.dt, self.still_speed)

    @property
    def still_speed(self) -> float:
        """What is slower may be at rest, and sleep: a part of the security distance a step, but where steps are small
        only a part of what gravity gives in one, or all that begins to fall would be at rest [m/s]."""
        still, given = SLOW * self.security / self.dt, float(np.linalg.norm(self.gravity)) * self.dt
        return min(still, SLOW_FALL * given) if given > 0.0 else still

    @property
    def tolerance(self) -> float:
        """What the solver may leave over [m/s]."""
        fall = float(np.sqrt(self.size * np.linalg.norm(self.gravity)))
        across = self.size / self.dt
        return TOLERANCE * (max(fall, LEAST_CROSSED * across) if fall > 0.0 else CROSSED * across)

    @property
    def kept(self) -> float:
        """The rest of it: what the walk never goes below [m]."""
        return self.separation - self.security
