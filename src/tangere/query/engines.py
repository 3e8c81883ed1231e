"""The engines of the questions at one instant and of clearance that the table names, each loaded when first asked.

First contact has its own (`first_contact.engines`). `tangere.query` registers both with the table (`dispatch`), so that
what asks the table, such as the road of meshes, needs to know none of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tangere.query.dispatch import is_analytic


def _distance_of_bodies(a: Any, b: Any, *, solid: bool, time: Any, device: Any) -> Any:
    from tangere.query.distance.convex.api import convex_distance

    if not _asks_of_mesh(a, b, solid):
        return convex_distance(a, b, time=time, device=device)
    from tangere.query.containment.api import check_solids, distance_of_solids

    check_solids(a, b)
    return distance_of_solids(convex_distance(a, b, time=time, device=device), a, b, time, device)


def _distance_from_ground(a: Any, b: Any, *, solid: bool, **options: Any) -> Any:
    from tangere.query.distance.heightfield import heightfield_distance

    return heightfield_distance(a, b, **options)


def _bodies_meet(a: Any, b: Any, *, solid: bool, **options: Any) -> bool | np.ndarray:
    from tangere.query.distance.convex.api import convex_bodies_meet

    if not _asks_of_mesh(a, b, solid):
        return convex_bodies_meet(a, b, **options)
    return _one_or_many(_distance_of_bodies(a, b, solid=solid, **options).lower <= 0.0)


def _meets_ground(a: Any, b: Any, *, solid: bool, **options: Any) -> bool | np.ndarray:
    found = _distance_from_ground(a, b, solid=solid, **options)
    return _one_or_many(found.lower <= 0.0 if is_analytic(a) else found.upper == 0.0)


def _one_or_many(told: Any) -> bool | np.ndarray:
    """What is told of one pair, or of each of n."""
    return bool(told) if np.ndim(told) == 0 else np.asarray(told, bool)


def _near_bodies(a: Any, b: Any, **options: Any) -> Any:
    from tangere.query.proximity.convex.api import bodies_proximity

    return bodies_proximity(a, b, **options)


def _near_in_lists(a: Any, b: Any, **options: Any) -> Any:
    from tangere.query.proximity.body_lists import lists_proximity

    return lists_proximity(a, b, **options)


def _distance_of_lists(a: Any, b: Any, **options: Any) -> Any:
    from tangere.query.distance.body_lists import lists_distance

    return lists_distance(a, b, **options)


def _lists_meet(a: Any, b: Any, **options: Any) -> Any:
    from tangere.query.intersection.body_lists import lists_meet

    return lists_meet(a, b, **options)


def _manifolds_of_lists(a: Any, b: Any, **options: Any) -> Any:
    from tangere.query.manifold.body_lists import lists_manifold

    return lists_manifold(a, b, **options)


def _clearance_of_bodies(a: Any, b: Any, **options: Any) -> Any:
    from tangere.query.clearance.bodies import bodies_clearance

    return bodies_clearance(a, b, **options)


def _asks_of_mesh(a: Any, b: Any, solid: bool) -> bool:
    """Whether a mesh is said to be solid: analytic bodies always are."""
    return solid and not (is_analytic(a) and is_analytic(b))


#: By question, and by their names in the table; what is not here the functions people call do themselves.
ENGINES: dict[str, dict[str, Callable[..., Any]]] = {
    "distance": {"convex": _distance_of_bodies, "heightfield": _distance_from_ground, "lists": _distance_of_lists},
    "intersects": {"convex": _bodies_meet, "heightfield": _meets_ground, "lists": _lists_meet},
    "proximity": {"bodies": _near_bodies, "lists": _near_in_lists},
    "manifold": {"lists": _manifolds_of_lists},
    "least_clearance": {"bodies": _clearance_of_bodies},
}
