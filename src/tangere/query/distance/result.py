"""The answer to "how far apart": bounds, points and features of one pair of bodies, or of many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tangere.query.contacts.record import Kind
from tangere.runtime import view_room


@dataclass(frozen=True, eq=False)
class Distance:
    """Distance of two bodies; with many times or poses every field has their shape (n,) in front.

    Which features of meshes are nearest is told by `kind` and by the weights: a weight that is zero leaves its corner
    out. Of analytic bodies triangles are -1, weights NaN, and the kind is NONE, or OVERLAP.
    """

    lower: Any  #: the true distance is not smaller [m]
    upper: Any  #: … and not larger [m]; both are 0 where the bodies meet
    point_a: Any  #: (3,) nearest point of a, in the world [m]
    point_b: Any  #: (3,) nearest point of b
    normal: Any  #: (3,) unit, pushes a away from b; zero where they meet (of analytic bodies: where it is not known)
    triangle_a: Any  #: of a that holds `point_a`
    triangle_b: Any  #: of b that holds `point_b`
    weights_a: Any  #: (3,) of the corners of `triangle_a`; NaN where the bodies meet
    weights_b: Any  #: (3,)
    kind: Any  #: `Kind` of the nearest features, OVERLAP where the bodies meet

    def __repr__(self) -> str:
        if np.ndim(self.upper):
            least = f", least {np.min(self.upper):.9g}" if len(self.upper) else ""
            return f"Distance({len(self.upper)} queries{least})"
        return f"Distance({self.upper:.9g}, {Kind(self.kind)})"

    def _repr_html_(self) -> str:
        """For notebooks: how far and where; of many, the nearest."""
        single = np.ndim(self.upper) == 0
        facts = {} if single else {"queries": str(len(self.upper))}
        if single or len(self.upper):
            k = () if single else int(np.argmin(self.upper))
            lower, upper, kind, of_a, of_b = (
                np.asarray(value)[k] for value in (self.lower, self.upper, self.kind, self.triangle_a, self.triangle_b)
            )
            points = [", ".join(f"{x:.6g}" for x in np.asarray(v)[k]) for v in (self.point_a, self.point_b)]
            facts |= {
                "distance": f"{lower:.9g} to {upper:.9g} m",
                "features": f"{Kind(int(kind))}, triangles {of_a} and {of_b}",
                "points": f"({points[0]}) and ({points[1]}) m",
            }
        return view_room().html("Distance", facts)
