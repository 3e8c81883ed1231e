"""How far may a step go so that nothing touches, and the next step can still begin?

Question: the largest share of a step, in [0, 1], after which bodies are still farther apart than a separation.
Method:   the gap at the start (the distance less the separation) is measured as far as a reserve, and the time is asked
          when half of it is used up. Of the way to there `keep` is taken, and less where the gap is narrower than the
          reserve: bodies that are pressed together for ever come nearer like 1, 1/2, 1/3, ... of the reserve, so never
          so near that rounding stops them, and what slides along in a narrow gap is not held up.
Sound:    the separation is kept at every time of the step that is taken. The answer is 0 only where rounding leaves no
          room at all.
Known as: collision-free step size, line search with CCD (Li and others 2020, Incremental Potential Contact).
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.motion import Rigid
from tangere.query.contacts.record import Status
from tangere.query.dispatch import engine_for
from tangere.query.distance.api import distance
from tangere.query.first_contact.api import first_contact
from tangere.query.proximity.api import proximity
from tangere.runtime import InputError, described, not_negative, number, using_threads
from tangere.shape import Moving
from tangere.shape.mesh import Mesh

#: The reserve, in sizes of the bodies: what is nearer is brought nearer still in small portions only.
RESERVE = 1e-6


def largest_step(
    a: Mesh | Moving,
    b: Mesh | Moving | None = None,
    *,
    separation: float = 0.0,
    keep: float = 0.9,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> float:
    """The share of a step, in [0, 1], after which `a` is still clear of `b`, or of itself if there is no `b`.

    A line search that goes there never stalls: the next step begins with a gap, and may again go some way.

    Args:
        a, b: meshes that both move by `Linear(end)`, or both rigidly (one motion each), or are at rest.
        separation: distance that is kept at all times [m].
        keep: this share of the way to the contact is taken; in (0, 1).
        device: where to compute; None means CUDA if present.
        threads: CPU threads; None means all, or TANGERE_THREADS.

    Example:
        >>> import tangere as tg
        >>> ball = tg.generate.icosphere(subdivisions=2)
        >>> wall = tg.generate.box((1.0, 4.0, 4.0))
        >>> x = ball.vertices - [3.0, 0.0, 0.0]
        >>> for _ in range(20):  # pressed against the wall
        ...     end = x + [1.0, 0.0, 0.0]
        ...     share = tg.largest_step(ball.replace(vertices=x).moving(tg.Linear(end)), wall, device="cpu")
        ...     x = x + share * (end - x)
        >>> bool(share > 0.0), bool(-0.5 - 1e-5 < x[:, 0].max() < -0.5)
        (True, True)
    """
    not_negative(separation, "separation")
    if not 0.0 < number(keep, "keep") < 1.0:
        raise InputError(f"keep must be between 0 and 1, not {described(keep)}")
    bodies = [a] if b is None else [a, b]
    engine_for("largest_step", a, b)
    if any(isinstance(body, Moving) and isinstance(body.motion, Rigid) and body.motion.shape for body in bodies):
        raise InputError("a line search takes one motion of each mesh, not a batch")
    reserve = RESERVE * max((body.shape if isinstance(body, Moving) else body).extent for body in bodies)
    with using_threads(threads):
        gap = _gap(bodies, separation, reserve, device)
        if not gap > 0.0:
            near = f"nearer than the separation of {separation:.6g} m" if separation else "in contact"
            raise InputError(f"the step begins {near}: nothing can be kept")
        found = first_contact(
            a, b, separation=separation + 0.5 * gap, tolerance=0.125 * gap, start="trusted", device=device
        )
    if found.status == Status.FREE:
        return 1.0
    return keep * min(1.0, 2.0 * gap / (gap + reserve)) * found.time


def _gap(bodies: list[Mesh | Moving], separation: float, reserve: float, device: str | wp.Device | None) -> float:
    """How much farther apart than the separation the bodies are at the start, at most the reserve [m]."""
    most = separation + reserve
    if len(bodies) == 2 and all(not isinstance(body, Moving) or isinstance(body.motion, Rigid) for body in bodies):
        return min(distance(*bodies, device=device).lower, most) - separation
    meshes = [body.at(0.0) if isinstance(body, Moving) else body for body in bodies]
    near = proximity(*meshes, distance=most, device=device)
    return float(min(np.linalg.norm(near.point_a - near.point_b, axis=1).min(initial=np.inf), most)) - separation
