"""How deep are two solids in each other, and which way is out?

Question: the largest depth of one body's surface inside the other, over both bodies, from below and from above; and a
          translation that parts them.
Method:   pieces of both surfaces, cut until they cannot be much deeper than the deepest point found (`search`); coming
          back from afar along some directions (`escape`).
Sound:    lower <= depth <= upper, rounding included; the escape certainly parts them. Bodies that do not meet, exactly,
          have depth 0. The depth converges as meshes are refined. It is local: bodies that lie exactly on each other
          have depth 0, as no point of one surface is inside the other body; `escape` says how far to shift them.
Known as: penetration depth; this one is the directed Hausdorff distance of the surface inside, taken both ways.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from tangere.query.clearance.api import check_accuracy
from tangere.query.containment.api import check_solid
from tangere.query.depth.escape import DIRECTIONS, find_escapes
from tangere.query.depth.search import search_depths
from tangere.query.intersection.api import intersects
from tangere.query.intersection.posed import as_posed
from tangere.runtime import Arrays, InputError, positive, text_below, to_numpy, using_threads, view_room
from tangere.shape import Moving
from tangere.shape.mesh import Mesh, warn_of_doubted_units

#: Depths below this part of the smaller body need not be told apart.
RESOLUTION = 1e-4


@dataclass(frozen=True, eq=False)
class Depth:
    """How deep two bodies are in each other."""

    lower: float  #: the depth is not smaller [m]
    upper: float  #: … and not larger [m]; both are 0 where the bodies do not meet
    point: np.ndarray  #: (3,) of one surface, in the world, that is `lower` deep in the other body; NaN where that is 0
    normal: np.ndarray  #: (3,) unit, which way a is out the nearest from there; 0 where lower is 0
    escape: np.ndarray  #: (3,) a translation of a that certainly parts them [m]; 0 where they do not meet
    reached: bool  #: whether the bounds are as near as was asked for; else `most` pieces were not enough

    def __repr__(self) -> str:
        out = float(np.linalg.norm(self.escape))
        return f"Depth({self._told}, parted by {out:.6g} m)"

    @property
    def _told(self) -> str:
        return f"{text_below(self.lower)} to {self.upper:.6g} m"

    def _repr_html_(self) -> str:
        """For notebooks: how deep, where, and the way out."""
        facts: dict[str, Any] = {"depth": self._told}
        if self.lower > 0.0:
            facts["deepest at"] = f"({', '.join(f'{x:.6g}' for x in self.point)}) m"
        facts["parted by"] = f"({', '.join(f'{x:.6g}' for x in self.escape)}) m"
        return view_room().html("Depth", facts)


def depth(
    a: Mesh | Moving,
    b: Mesh | Moving,
    *,
    accuracy: float = 0.05,
    resolution: float | None = None,
    directions: Arrays | None = None,
    most: int = 1_000_000,
    time: float = 0.0,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> Depth:
    """How deep two solids are in each other at one instant, from below and from above, and a way out.

    Args:
        a, b: closed meshes, at rest or moving; others are refused.
        accuracy: lower is at least (1 - accuracy) upper, in (0, 1) …
        resolution: … or upper is at most this [m]; None means 1e-4 of the smaller body. Flat faces that only touch cost
            more the finer it is.
        directions: (m, 3) in which to look for a way out; None means those of the faces, edges and corners of a cube.
            That from the deepest point to the nearest surface is tried as well.
        most: pieces of surface that are evaluated, about; where that is not enough the bounds are wider.
        time: the instant in [0, 1].
        device: where to compute; None means CUDA if present.
        threads: CPU threads; None means all, or TANGERE_THREADS.

    Example:
        >>> import numpy as np, tangere as tg
        >>> box, beside = tg.generate.box([2, 2, 2]), np.eye(4)
        >>> beside[:3, 3] = 1.7, 0.2, 0.0
        >>> found = tg.depth(box.moving(tg.Rest(beside)), box, device="cpu")
        >>> found.lower <= 0.3 <= found.upper, bool(np.allclose(found.escape, [0.3, 0, 0], atol=1e-4))
        (True, True)
    """
    check_accuracy(accuracy)
    check_solid(a, "a", "depth")
    check_solid(b, "b", "depth")
    warn_of_doubted_units(a, b)
    one, other = as_posed(a, time), as_posed(b, time)
    if not (one.single and other.single):
        raise InputError("the depth is found for one pose of each body at a time")
    ways = DIRECTIONS if directions is None else _directions(directions)
    with using_threads(threads):
        if not intersects(a, b, time=time, solid=True, device=device):
            return Depth(0.0, 0.0, np.full(3, np.nan), np.zeros(3), np.zeros(3), True)
        least = RESOLUTION * min(one.mesh.extent, other.mesh.extent)
        bodies = (one.mesh, other.mesh), np.array([0, 1]), np.concatenate([one.poses, other.poses]), np.array([[0, 1]])
        found = search_depths(
            *bodies,
            accuracy=accuracy,
            resolution=least if resolution is None else positive(resolution, "resolution"),
            most=most,
            device=device,
        )
        if found.lower[0] > 0.0:
            ways = np.concatenate([ways, found.normal])
        escape = find_escapes(*bodies, ways, device=device)[0]
    return Depth(
        float(found.lower[0]), float(found.upper[0]), found.point[0], found.normal[0], escape, bool(found.reached[0])
    )


def _directions(given: Arrays) -> np.ndarray:
    ways = to_numpy(given, "directions")
    if ways.ndim != 2 or ways.shape[1] != 3 or not len(ways):
        raise InputError(f"directions must have shape (m, 3), not {ways.shape}")
    length = np.linalg.norm(ways, axis=1)
    if not (np.isfinite(length) & (length > 0.0)).all():
        raise InputError(f"directions[{int(np.argmin(np.isfinite(length) & (length > 0.0)))}] has no direction")
    return ways / length[:, None]
