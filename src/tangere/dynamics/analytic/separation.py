"""How near may analytic bodies come on their way? What the walk of a step keeps, for questions about many at once.

As `stepping.walk` has it for meshes: what the world keeps, and beyond it 0.4 of the clearance (nine tenths of a small
one), or of the security distance where that is less.
"""

from __future__ import annotations

import numpy as np

from tangere.dynamics.contact.rows import Distances

#: Of a clearance that is small already (a part of the security distance): what the walk keeps, so that stops do not
#: take it bit by bit.
KEPT_OF_SMALL, SMALL = 0.9, 0.1
#: Of what is kept, as tolerance; and the least one, in sizes of the bodies, their places and their ways.
TOLERANCE_PART, LEAST_TOLERANCE = 0.2, 1e-10
#: What the walk keeps is rounded down to a level: this much between their logarithms.
LEVEL = 0.05


def kept_on_the_way(
    gap: np.ndarray, size: np.ndarray, distances: Distances, level: float = LEVEL
) -> tuple[np.ndarray, np.ndarray]:
    """(n,) how near each may come, at a few levels, and tolerances [m].

    Args:
        gap: (n,) where the way begins [m].
        size: (n,) of bodies, their places and their ways: what rounding is relative to [m].
    """
    security, kept, held = float(distances.security), float(distances.kept), float(distances.held)
    most = kept + held * security
    clear = np.where(gap > kept, gap - kept, gap)
    small = np.minimum(SMALL * security, KEPT_OF_SMALL * clear)
    above = np.minimum(held * security, np.maximum(held * clear, small))
    wanted = np.where(gap > kept, kept, 0.0) + above
    least = LEAST_TOLERANCE * size
    tolerance = np.maximum(TOLERANCE_PART * np.minimum(above, clear - above), least)
    levels = np.ceil(np.log(most / np.maximum(wanted, least)) / level)
    return most * np.exp(-level * np.maximum(levels, 0.0)), tolerance
