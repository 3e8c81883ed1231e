"""Edge-edge first contact under linear vertex motion.

Question: the earliest t in [0, 1] at which each two moving segments touch.
Method:   roots of the coplanarity cubic in certified brackets, then time bisection of what is left (`narrow_phase`).
Sound:    never late, early by at most `tolerance`; "free" is certain.
Known as: narrow-phase continuous collision detection, time of impact (Provot 1997; Bridson, Fedkiw and Anderson 2002);
          the cubic is that of the course on 3D collision detection, chapter 6.X4.
"""

from __future__ import annotations

import warp as wp

from tangere.query.first_contact.options import Accuracy, Mode
from tangere.query.first_contact.primitives.batch import first_contacts_of_four
from tangere.query.first_contact.primitives.narrow_phase.features import EDGE_EDGE
from tangere.query.first_contact.result import FirstContacts
from tangere.runtime import Arrays


def edge_edge(
    x0: Arrays,
    x1: Arrays,
    *,
    mode: Mode = "sound",
    separation: float = 0.0,
    tolerance: float | None = None,
    details: bool = True,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> FirstContacts:
    """Earliest time at which each two moving segments touch.

    Args:
        x0, x1: a0, a1, b0, b1 at t = 0 and t = 1, shape (n, 4, 3) [m].
        mode, separation, tolerance: see `Accuracy`. details, device, threads: see `vertex_face`.

    Example:
        >>> import numpy as np, tangere
        >>> x0 = np.array([[[-1, 0, 1], [1, 0, 1], [0, -1, 0], [0, 1, 0]]], float)
        >>> x1 = x0 - [[[0, 0, 4], [0, 0, 4], [0, 0, 0], [0, 0, 0]]]
        >>> float(tangere.query.edge_edge(x0, x1, device="cpu").time[0].round(9))
        0.25
    """
    accuracy = Accuracy(mode, separation, tolerance)
    return first_contacts_of_four(EDGE_EDGE, x0, x1, accuracy, details=details, device=device, threads=threads)
