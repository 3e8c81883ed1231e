"""Vertex-face first contact under linear vertex motion.

Question: the earliest t in [0, 1] at which each moving vertex touches its moving triangle.
Method:   roots of the coplanarity cubic in certified brackets, then time bisection of what is left (`narrow_phase`).
Sound:    never late, early by at most `tolerance`; "free" is certain.
Known as: narrow-phase continuous collision detection, time of impact (Provot 1997; Bridson, Fedkiw and Anderson 2002);
          the cubic is that of the course on 3D collision detection, chapter 6.X4.
"""

from __future__ import annotations

import warp as wp

from tangere.query.first_contact.options import Accuracy, Mode
from tangere.query.first_contact.primitives.batch import first_contacts_of_four
from tangere.query.first_contact.primitives.narrow_phase.features import VERTEX_FACE
from tangere.query.first_contact.result import FirstContacts
from tangere.runtime import Arrays


def vertex_face(
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
    """Earliest time at which each moving vertex touches its moving triangle.

    Args:
        x0, x1: vertex, then the three corners, at t = 0 and t = 1, shape (n, 4, 3) [m].
        mode, separation, tolerance: see `Accuracy`.
        details: also find where: kind, weights, points and normal. Without, a batch takes about a third less time.
        device: where to compute; None means where the data is.
        threads: CPU threads; None means all, or TANGERE_THREADS.

    Example:
        >>> import numpy as np, tangere
        >>> x0 = np.array([[[0.2, 0.2, 1.0], [0, 0, 0], [1, 0, 0], [0, 1, 0]]])
        >>> x1 = x0 + [[[0, 0, -2], [0, 0, 0], [0, 0, 0], [0, 0, 0]]]
        >>> float(tangere.query.vertex_face(x0, x1, device="cpu").time[0].round(9))
        0.5
    """
    accuracy = Accuracy(mode, separation, tolerance)
    return first_contacts_of_four(VERTEX_FACE, x0, x1, accuracy, details=details, device=device, threads=threads)
