"""How near do two moving rigid bodies come to each other, at the least, and when?

Question: the least distance over the whole step, from below and from above.
Method:   the distance at a few instants is a first bound from above; one search lowers it until nothing can be nearer
          than (1 - accuracy) of it (`traversal`). All queries of a batch are searched in one launch.
Sound:    lower <= least distance <= upper, rounding included. Bodies that come within the tolerance have lower 0.
Known as: certified (minimum) clearance, minimum separation distance over a motion.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from tangere.query.clearance.cpu.depth_first import NodePair, find_nearest_approach
from tangere.query.clearance.narrow_phase import NearestApproach, lower_by_triangles
from tangere.query.dispatch import answer, engine_for
from tangere.query.distance.api import distance
from tangere.query.first_contact.rigid.bodies import Forest, MovingBodies, batch_size, bodies_of
from tangere.query.first_contact.rigid.query_batch import RigidQueryBatch
from tangere.runtime import (
    Arrays,
    InputError,
    choose_device,
    described,
    launch,
    not_negative,
    number,
    text_below,
    to_numpy,
    using_threads,
    view_room,
)
from tangere.shape import Moving
from tangere.shape.mesh import Mesh, warn_of_doubted_units

#: An accuracy that rounding does not allow is made coarser up to this.
COARSEST = 0.9
#: Finer accuracies than this are searched for by way of coarser ones.
FINE = 1e-4
#: Of groups that are alike one in so many is searched first.
SAMPLED = 8
_NEAREST = NearestApproach.numpy_dtype()
#: What is to stay beyond a length is searched up to this multiple of it.
SLACK = 1.1
#: Instants at which the distance is measured first: the nearer the first bound, the shorter the search.
INSTANTS = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, eq=False)
class LeastClearance:
    """The least distance of two bodies during a step; with n motions every field has shape (n,)."""

    lower: Any  #: they never come nearer [m]
    upper: Any  #: … and once come as near as this [m]; inf where that is farther than was asked for
    time: Any  #: when, in [0, 1]; NaN where upper is inf
    triangle_a: Any  #: of a that is as near then; -1 where upper is inf
    triangle_b: Any

    @property
    def accuracy(self) -> Any:
        """What was reached: lower is (1 - accuracy) upper; NaN where upper is inf, 0 where both are 0."""
        return reached_accuracy(self.lower, self.upper)

    def __repr__(self) -> str:
        if np.ndim(self.upper):
            least = f", least {np.min(self.upper):.9g}" if len(self.upper) else ""
            return f"LeastClearance({len(self.upper)} queries{least})"
        return f"LeastClearance({text_below(self.lower, 9)} to {self.upper:.9g} m at t={self.time:.9g})"

    def _repr_html_(self) -> str:
        """For notebooks: how near, when and where; of many, the nearest."""
        lower, upper, time, of_a, of_b = map(
            np.atleast_1d, (self.lower, self.upper, self.time, self.triangle_a, self.triangle_b)
        )
        facts = {"queries": str(len(upper))} if np.ndim(self.upper) else {}
        if len(upper):
            k = int(upper.argmin())
            facts |= {
                "distance": f"{text_below(lower[k], 9)} to {upper[k]:.9g} m",
                "time": f"{time[k]:.9g}",
                "triangles": f"{of_a[k]} and {of_b[k]}",
            }
        return view_room().html("LeastClearance", facts)


def least_clearance(
    a: Mesh | Moving,
    b: Mesh | Moving,
    *,
    accuracy: float = 0.1,
    cap: Arrays | None = None,
    tolerance: float | None = None,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> LeastClearance:
    """How near two rigid bodies come to each other between t = 0 and t = 1.

    Args:
        a, b: meshes or analytic bodies at rest or moving rigidly, n motions with n, or n with one; `b` may be ground,
            which is solid, with walls at its border and around holes.
        accuracy: lower is at least (1 - accuracy) upper; in (0, 1). Small ones are dear where bodies stay close. What
            rounding does not allow, below 1e-8 or where the distance itself is of that part of the scene, is as fine as
            it does: `accuracy` of the answer says how fine.
        cap: clearance beyond it does not matter: lower is then (1 - accuracy) cap, upper inf [m]; one or (n,).
            None means no cap.
        tolerance: distances below this need not be resolved, lower may be 0 [m]; None means 1e-6 of the larger body's
            size.
        device: where to search; None means CUDA if present.
        threads: CPU threads, for a batch; None means all, or TANGERE_THREADS.

    Example:
        >>> import numpy as np, tangere as tg
        >>> ball = tg.generate.icosphere(subdivisions=3)
        >>> start = np.eye(4)
        >>> start[:3, 3] = (-4.0, 2.5, 0.0)
        >>> passing = ball.moving(tg.Twist(start, (8.0, 0.0, 0.0), (0.0, 0.0, 0.0)))
        >>> near = tg.least_clearance(passing, ball, accuracy=0.01, device="cpu")
        >>> round(near.upper, 2), round(near.time, 1), near.lower > 0.99 * near.upper - 1e-9
        (0.5, 0.5, True)
    """
    check_accuracy(accuracy)
    if tolerance is not None:
        not_negative(tolerance, "tolerance")
    if engine_for("least_clearance", a, b) != "meshes":
        with using_threads(threads):
            return answer("least_clearance", a, b, accuracy=accuracy, cap=cap, tolerance=tolerance, device=device)
    sides = bodies_of(a, "a"), bodies_of(b, "b")
    warn_of_doubted_units(a, b)
    single = all(bodies.count is None for bodies in sides)
    with using_threads(threads):
        count = batch_size(*sides)
        known = _measured(a, b, count, device)
        bounds = np.minimum(known[0], np.inf if cap is None else caps_of(cap, count))
        found, lower = search_clearance(*sides, bounds, accuracy=accuracy, tolerance=tolerance, device=device)
    seen = found["time"] >= 0.0
    measured = ~seen & (known[0] <= bounds)
    result = LeastClearance(
        lower,
        np.where(seen | measured, found["upper"], np.inf),
        np.where(seen, found["time"], np.where(measured, known[1], np.nan)),
        np.where(seen, found["a"], np.where(measured, known[2], -1)).astype(np.int32),
        np.where(seen, found["b"], np.where(measured, known[3], -1)).astype(np.int32),
    )
    if single:
        return LeastClearance(*(column[0].item() for column in vars(result).values()))
    return result


def search_clearance(
    a: MovingBodies,
    b: MovingBodies,
    bounds: np.ndarray,
    *,
    accuracy: float,
    tolerance: float | None,
    device: str | wp.Device | None,
) -> tuple[np.ndarray, np.ndarray]:
    """The `NearestApproach` of n queries below their bounds, and how near they certainly do not come, each (n,).

    Args:
        bounds: distances that are known, or as far as is asked, (n,), finite.
    """
    device, count = choose_device(device), len(bounds)
    if not count:
        return np.zeros(0, _NEAREST), np.zeros(0)
    forests = Forest.of(a.shapes, device), Forest.of(b.shapes, device)
    batch = RigidQueryBatch(*forests, count, len(a.motion.records()) + len(b.motion.records()), device)
    batch.set_queries(a, b, 0.0, tolerance)
    return nearest_approaches(batch, bounds, accuracy=accuracy, tolerances=batch.tolerances)


def nearest_approaches(
    batch: RigidQueryBatch,
    bounds: np.ndarray,
    *,
    begin: np.ndarray | None = None,
    accuracy: float,
    tolerances: np.ndarray,
    like: Callable[[np.ndarray], np.ndarray] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The `NearestApproach` of groups of prepared queries, and how near they certainly do not come, each (groups,).

    Args:
        bounds: distances that are known, or as far as is asked, (groups,), finite.
        begin: the first query of each group, of which the nearest is asked for, and the end, (groups + 1,); None means
            that every query is a group.
        accuracy: as for `least_clearance`.
        tolerances: what comes within this touches, (groups,) [m].
        like: where groups that follow each other are alike: the query of each group that asks what the one given asks
            for another, -1 where none does. Every so many groups are then searched first, and their nearest triangles
            bound the others.
    """
    search = _Search(batch, bounds, begin)
    accuracy, *finer = ever_finer(accuracy)
    if like is not None and len(bounds) > SAMPLED:
        search.run_some(accuracy, like)
    reached = np.full(len(bounds), accuracy)
    while True:
        nearest = search.run(accuracy)
        # Where rounding does not allow the accuracy, a coarser one; what comes within the tolerance touches.
        missed = ~nearest["certified"]
        if not (missed & (nearest["upper"] > tolerances)).any() or accuracy >= COARSEST:
            break
        accuracy = min(10.0 * accuracy, COARSEST)
        reached[missed] = accuracy
    lower = np.where(nearest["certified"], (1.0 - reached) * nearest["upper"], 0.0)
    certified = nearest["certified"].copy()
    going = certified.copy()
    for accuracy in finer:
        nearest = search.run_again(going, accuracy)
        going &= nearest["certified"]
        lower[going] = (1.0 - accuracy) * nearest["upper"][going]
    nearest = nearest.copy()
    nearest["certified"] = certified  # also what a finer search could not do: `lower` is of a coarser one
    return nearest, lower


def ever_finer(accuracy: float) -> list[float]:
    """Accuracies to search for one after the other: what a coarser one found lets a finer one begin near the end.

    A search whose bound falls all along the way takes a step for each part `accuracy` of the bound.
    """
    rungs = max(math.ceil(math.log10(FINE / accuracy) - 1e-9), 0)
    return [accuracy * 10.0**rung for rung in range(rungs, -1, -1)]


def stay_beyond(batch: RigidQueryBatch, lengths: np.ndarray, begin: np.ndarray | None = None) -> np.ndarray:
    """Whether the bodies of each group of queries certainly stay farther apart than these lengths > 0, (groups,).

    False may mean that they come nearer than `SLACK` times the length; groups as for `nearest_approaches`.
    """
    return _Search(batch, SLACK * lengths, begin).run(1.0 - 1.0 / SLACK, stop=True)["certified"]


class _Search:
    """Groups of queries, and what is known of each."""

    def __init__(self, batch: RigidQueryBatch, bounds: np.ndarray, begin: np.ndarray | None) -> None:
        self._batch, self._count = batch, len(bounds)
        self._room = batch.a.depth + batch.b.depth + 4
        nearest = np.zeros(self._count, _NEAREST)
        nearest["upper"], nearest["time"] = bounds, -1.0
        begin = np.arange(self._count + 1) if begin is None else begin
        device = batch.device
        self._begin = wp.array(begin.astype(np.int32), dtype=wp.int32, device=device)
        self._found = wp.array(nearest, dtype=NearestApproach, device=device)
        self._stack = wp.empty(self._count * self._room if device.is_cpu else 0, dtype=NodePair, device=device)

    def run_some(self, accuracy: float, like: Callable[[np.ndarray], np.ndarray]) -> None:
        """Search one in `SAMPLED` groups, and bound the others by the triangles found; see `nearest_approaches`."""
        group, device = np.arange(self._count), self._batch.device
        given = self._found.numpy().copy()
        chosen = given.copy()
        chosen["certified"] = group % SAMPLED != 0
        self._found.assign(chosen)
        found = self.run(accuracy).copy()
        source = found[group // SAMPLED * SAMPLED]
        seen = (source["time"] >= 0.0) & (group % SAMPLED != 0)
        rows = np.where(seen, like(source["query"]), -1)
        found["certified"] &= group % SAMPLED == 0
        self._found.assign(found)
        triangles = np.stack([source["a"], source["b"]], axis=1)
        inputs = [
            self._batch.arrays,
            wp.array(rows, dtype=wp.int32, device=device),
            wp.array(triangles, dtype=wp.vec2i, device=device),
        ]
        launch(lower_by_triangles, self._count, inputs, [self._found], device=device)

    def run_again(self, which: np.ndarray, accuracy: float) -> np.ndarray:
        """Search these groups with a finer accuracy, below what they were found to come to."""
        given = self._found.numpy().copy()
        given["certified"] = ~which
        self._found.assign(given)
        return self.run(accuracy)

    def run(self, accuracy: float, *, stop: bool = False) -> np.ndarray:
        """Search what is not certified yet."""
        if self._batch.device.is_cuda:
            from tangere.query.clearance.cuda.block_search import search_blocks

            search_blocks(self._batch.arrays, self._begin, accuracy, self._found, stop=stop)
        else:
            inputs = [self._batch.arrays, self._begin, accuracy, stop, self._room, self._stack]
            launch(find_nearest_approach, self._count, inputs, [self._found], device=self._batch.device, grain=1)
        return self._found.numpy()


def reached_accuracy(lower: Any, upper: Any) -> Any:
    """The part of upper that lower is below it; NaN where upper is inf, 0 where both are 0."""
    low, high = np.asarray(lower, float), np.asarray(upper, float)
    known = np.isfinite(high) & (high > 0.0)
    part = np.where(known, (high - low) / np.where(known, high, 1.0), np.where(high == 0.0, 0.0, np.nan))
    return part if part.ndim else float(part)


def check_accuracy(accuracy: float) -> None:
    """Raise unless a relative accuracy is one."""
    if not 0.0 < number(accuracy, "accuracy") < 1.0:
        raise InputError(f"accuracy must be between 0 and 1, not {described(accuracy)}")


def caps_of(cap: Arrays, count: int) -> np.ndarray:
    """(1,) or (count,) positive lengths beyond which clearance does not matter."""
    caps = np.atleast_1d(to_numpy(cap, "cap"))
    if caps.shape not in ((1,), (count,)) or not (caps > 0.0).all():
        raise InputError(f"cap must be a positive length, or one for each of {count} queries, not {described(cap)}")
    return caps


def _measured(a: Any, b: Any, count: int, device: Any) -> tuple[np.ndarray, ...]:
    """Distance, time and triangles at the nearest of some instants, each (count,)."""
    best: tuple[np.ndarray, ...] = ()
    for instant in INSTANTS:
        seen = distance(a, b, time=instant, device=device)
        now = tuple(
            np.broadcast_to(column, count) for column in (seen.upper, instant, seen.triangle_a, seen.triangle_b)
        )
        nearer = now[0] < best[0] if best else np.ones(count, bool)
        best = tuple(np.where(nearer, new, old) for new, old in zip(now, best or now, strict=True))
    return best
