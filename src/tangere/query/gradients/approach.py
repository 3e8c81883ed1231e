"""Two bodies near the time of an answer: where they are nearest, how fast they part, and the time itself, sharpened.

Question: when exactly is the distance least, or that of a contact, near a time that a query told within its tolerance?
Method:   the distance at an instant comes with its slope by time, which is the speed of the nearest points against each
          other along their normal. The least is where the slope changes sign, found by bisection downhill; a contact is
          reached by Newton steps that stop short of it, so that there still is a normal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from tangere.motion import Linear, Rest
from tangere.query.distance.api import Distance, distance
from tangere.query.intersection.posed import as_posed
from tangere.runtime import to_numpy
from tangere.shape import Moving
from tangere.shape.analytic import HULL, Analytic
from tangere.shape.mesh import Mesh

#: A contact is looked at where bodies are still this part of their size apart: nearer, rounding would turn the normal.
SHORT = 1e-8
#: Newton steps towards it.
STEPS = 6
#: The first step downhill, how steps grow, and bisections between the last two.
FIRST_STEP, GROWTH, HALVINGS = 1e-3, 2.0, 44


@dataclass(frozen=True, eq=False)
class Instant:
    """n pairs of bodies, each at a time; see `Distance` for the columns."""

    times: np.ndarray  #: (n,)
    poses: tuple[np.ndarray, np.ndarray]  #: of a and of b, (n, 4, 4)
    meshes: tuple[Mesh | Analytic, Mesh | Analytic]  #: of a and of b; where they deform as they are then
    apart: np.ndarray  #: (n,) [m]
    points: tuple[np.ndarray, np.ndarray]  #: the nearest, in the world, (n, 3)
    normal: np.ndarray  #: (n, 3)
    faces: tuple[np.ndarray, np.ndarray]  #: (n,)
    shares: tuple[np.ndarray, np.ndarray]  #: (n, 3)
    kind: np.ndarray  #: (n,)
    rate: np.ndarray  #: (n,) how fast they part [m per step]
    speed: np.ndarray  #: (n,) of these points against each other, any way [m per step]

    def where(self, rows: np.ndarray, other: Instant) -> Instant:
        """This, but the other in some rows."""

        def chosen(one: Any, two: Any) -> Any:
            if isinstance(one, tuple):
                return tuple(chosen(x, y) for x, y in zip(one, two, strict=True))
            return np.where(rows.reshape(-1, *[1] * (one.ndim - 1)), two, one)

        columns = {name: chosen(value, getattr(other, name)) for name, value in vars(self).items() if name != "meshes"}
        return Instant(meshes=other.meshes if rows.all() else self.meshes, **columns)


class Approach:
    """n pairs of bodies, to be looked at at one time each."""

    def __init__(self, a: Mesh | Analytic | Moving, b: Mesh | Analytic | Moving, device: wp.Device) -> None:
        self.a, self.b, self._device = a, b, device
        self.size = sum(extent_of(_shape(body)) for body in (a, b))
        self.analytic = any(isinstance(_shape(body), Analytic) for body in (a, b))

    def at(self, times: np.ndarray) -> Instant:
        """The nearest points at times, (n,)."""
        rigid = not any(isinstance(getattr(body, "motion", None), Linear) for body in (self.a, self.b))
        at: Any = times if rigid else float(times[0])
        return self.of(distance(self.a, self.b, time=at, device=self._device), times, at)

    def of(self, found: Distance, times: np.ndarray, at: Any) -> Instant:
        """What a distance at times says; `at` is the time as `distance` was given it."""
        posed = [_posed(body, at) for body in (self.a, self.b)]
        count = len(times)
        columns = {
            name: np.asarray(value).reshape(count, *_SHAPES.get(name, ())) for name, value in vars(found).items()
        }
        points = columns["point_a"], columns["point_b"]
        faces = columns["triangle_a"], columns["triangle_b"]
        told = columns["weights_a"], columns["weights_b"]
        shares = tuple(map(_shares, posed, points, faces, told))
        normal = np.nan_to_num(columns["normal"])
        velocities = [
            _velocity(body, times, *given) for body, *given in zip((self.a, self.b), points, faces, shares, strict=True)
        ]
        against = np.nan_to_num(velocities[0] - velocities[1])
        return Instant(
            times,
            tuple(np.broadcast_to(poses, (count, 4, 4)) for _, poses in posed),
            (posed[0][0], posed[1][0]),
            columns["upper"],
            points,
            normal,
            faces,
            shares,
            columns["kind"],
            np.einsum("ni,ni->n", normal, against),
            np.linalg.norm(against, axis=1),
        )

    def least(self, times: np.ndarray, bound: np.ndarray) -> Instant:
        """Where the distance is least, downhill of times at which it is at most `bound`, (n,) each."""
        here = self.at(times)
        best, step = here, FIRST_STEP
        for _ in range(3):
            low, high = self._bracket(here, step)
            for _ in range(HALVINGS):
                middle = 0.5 * (low + high)
                down = self.at(middle).rate < 0.0
                low, high = np.where(down, middle, low), np.where(down, high, middle)
            found = self.at(np.where(low <= 0.0, 0.0, np.where(high >= 1.0, 1.0, 0.5 * (low + high))))
            best = best.where((found.apart <= best.apart) & (here.apart > 0.0), found)
            if (best.apart <= bound).all():
                break
            step *= 0.01  # the steps went over a rise
        return best

    def _bracket(self, here: Instant, step: float) -> tuple[np.ndarray, np.ndarray]:
        """Times between which the slope changes sign, or that have reached an end of the step."""
        down = here.rate < 0.0
        near, far = here.times.copy(), here.times.copy()
        going = np.ones(len(near), bool)
        while going.any():
            ahead = np.clip(far + np.where(down, step, -step), 0.0, 1.0)
            still = (self.at(ahead).rate < 0.0) == down
            stopped = going & (~still | (ahead == far))
            near = np.where(going & still, ahead, near)
            far = np.where(going, ahead, far)
            going &= ~stopped
            step *= GROWTH
        return np.minimum(near, far), np.maximum(near, far)

    def contact(self, times: np.ndarray, separation: float) -> Instant:
        """Just before the distance is `separation`, near times told for that, (n,), never later than it."""
        wanted = separation + SHORT * self.size
        here = self.at(times)
        for _ in range(STEPS):
            way = np.divide(here.apart - wanted, -here.rate, out=np.zeros(len(times)), where=here.rate < 0.0)
            ahead = np.clip(here.times + np.where(here.apart > 0.0, way, 0.0), 0.0, 1.0)
            if (ahead == here.times).all():
                break
            there = self.at(ahead)
            nearer = (np.abs(there.apart - wanted) < np.abs(here.apart - wanted)) & (there.apart > separation)
            if not nearer.any():
                break
            here = here.where(nearer, there)
        return here


_SHAPES = dict.fromkeys(("point_a", "point_b", "normal", "weights_a", "weights_b"), (3,))


def _shape(body: Mesh | Analytic | Moving) -> Any:
    return body.shape if isinstance(body, Moving) else body


def extent_of(shape: Mesh | Analytic) -> float:
    """The size of a body [m]."""
    if isinstance(shape, Mesh):
        return shape.extent
    record = shape.records[0]
    corners = shape.hull.corners * record["half"] if shape.kind == HULL else record["half"]
    return 2.0 * float(np.linalg.norm(corners, axis=-1).max() + record["radius"])


def _posed(body: Mesh | Analytic | Moving, at: Any) -> tuple[Any, np.ndarray]:
    """A body, and the poses of the frame that moves it; of one at rest its own."""
    shape = _shape(body)
    if isinstance(shape, Mesh):
        posed = as_posed(body, at)  # pyright: ignore[reportArgumentType]
        return posed.mesh, posed.poses
    if isinstance(body, Moving):
        return shape, body.motion.pose(at).reshape(-1, 4, 4)
    return Analytic.joined([shape]), to_numpy(shape.poses, "poses")


def _shares(
    posed: tuple[Mesh | Analytic, np.ndarray], points: np.ndarray, faces: np.ndarray, told: np.ndarray
) -> np.ndarray:
    """(n, 3) of the corners of a mesh's triangles in its nearest points; beside an analytic body they are not told."""
    shape, poses = posed
    shares = np.nan_to_num(told)
    rows = np.flatnonzero((faces >= 0) & np.isnan(told).any(axis=1) & np.isfinite(points).all(axis=1))
    if isinstance(shape, Mesh) and len(rows):
        poses = np.broadcast_to(poses, (len(points), 4, 4))[rows]
        own = np.einsum("nji,nj->ni", poses[:, :3, :3], points[rows] - poses[:, :3, 3])
        shares[rows] = shares_of(own, shape.vertices[shape.faces[faces[rows]]])
    return shares


def shares_of(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """(n, 3) of the corners of triangles, (n, 3, 3), in the points of theirs that are nearest to points, (n, 3)."""
    choices = []
    sides = corners[:, 1:] - corners[:, :1]
    within = np.einsum("nik,ni->nk", np.linalg.pinv(sides), points - corners[:, 0])
    choices.append(np.column_stack([1.0 - within.sum(axis=1), within]))
    for one, other in ((0, 1), (1, 2), (2, 0)):  # of triangles without an area, and by rounding outside
        way = corners[:, other] - corners[:, one]
        length = np.einsum("ni,ni->n", way, way)
        along = np.einsum("ni,ni->n", way, points - corners[:, one])
        part = np.clip(np.divide(along, length, out=np.zeros(len(way)), where=length > 0.0), 0.0, 1.0)
        on_side = np.zeros((len(way), 3))
        on_side[:, one], on_side[:, other] = 1.0 - part, part
        choices.append(on_side)
    table = np.stack(choices, axis=1)
    missed = np.linalg.norm(np.einsum("nck,nki->nci", table, corners) - points[:, None], axis=2)
    missed[(table < 0.0).any(axis=2)] = np.inf
    return table[np.arange(len(points)), missed.argmin(axis=1)]


def _velocity(
    body: Mesh | Analytic | Moving, times: np.ndarray, points: np.ndarray, faces: np.ndarray, shares: np.ndarray
) -> np.ndarray:
    """(n, 3) of points of a body, which are where they are told in the world."""
    motion = getattr(body, "motion", None)
    if motion is None or isinstance(motion, Rest):
        return np.zeros_like(points)
    if isinstance(motion, Linear):
        way = (motion.end - _shape(body).vertices)[_shape(body).faces[faces]]
        return np.einsum("nk,nki->ni", shares, way)
    angular, linear = motion.twist(times)
    return linear + np.cross(angular, points)
