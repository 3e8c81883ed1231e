"""What is true of two convex bodies, without the library's search: certificates of weak duality, and conic programmes.

`certificate` judges an answer: both points must belong to their bodies (membership by formula), so their distance is no
less than the true one; and along the normal the supports, by formula, leave a gap that is no more. If both agree, the
answer is right, whoever found it. `conic_distance` finds it by an interior point method (Clarabel): the bodies as
cones; its bounds are the objectives of both programmes, the duality gap. All is plain NumPy, over rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tangere.shape.analytic import CONE, CYLINDER, HULL, ROUND, Analytic

__all__ = ["Certificate", "Rows", "certificate", "conic_distance", "outside", "rows_of", "supports"]


@dataclass(frozen=True)
class Rows:
    """n bodies of one kind in the world."""

    kind: int
    radius: np.ndarray  #: (n,)
    half: np.ndarray  #: (n, 3)
    corners: np.ndarray  #: (k, 3) of a hull, before it is scaled
    poses: np.ndarray  #: (n, 4, 4)

    @property
    def size(self) -> np.ndarray:
        """(n,) no less than the distance of any point from the origin of the body."""
        if self.kind == HULL:
            return np.linalg.norm(self.half[:, None] * self.corners, axis=2).max(axis=1)
        return np.linalg.norm(self.half, axis=1) + self.radius

    def __getitem__(self, chosen) -> Rows:
        return Rows(self.kind, self.radius[chosen], self.half[chosen], self.corners, self.poses[chosen])


def rows_of(bodies: Analytic, poses: np.ndarray | None = None, count: int | None = None) -> Rows:
    """The bodies at their own poses, or at `poses`; one of them may stand for `count`."""
    poses = np.asarray(bodies.poses if poses is None else poses)
    count = max(len(poses), len(bodies.records)) if count is None else count
    radius = np.broadcast_to(bodies.records["radius"], (count,))
    half = np.broadcast_to(bodies.records["half"], (count, 3))
    return Rows(bodies.kind, radius, half, bodies.hull.corners, np.broadcast_to(poses, (count, 4, 4)))


def supports(bodies: Rows, n: np.ndarray) -> np.ndarray:
    """(n,) the largest n.x of the points x of each body, in the world."""
    u = np.einsum("nji,nj->ni", bodies.poses[:, :3, :3], n)
    across = np.hypot(u[:, 0], u[:, 1])
    reach = bodies.half[:, 2]
    if bodies.kind == ROUND:
        most = reach * np.abs(u[:, 2]) + bodies.radius * np.linalg.norm(u, axis=1)
    elif bodies.kind == CYLINDER:
        most = reach * np.abs(u[:, 2]) + bodies.radius * across
    elif bodies.kind == CONE:
        most = np.maximum(reach * u[:, 2], bodies.radius * across - reach * u[:, 2])
    else:
        most = ((u * bodies.half) @ bodies.corners.T).max(axis=1)
    return most + np.einsum("ni,ni->n", n, bodies.poses[:, :3, 3])


def outside(bodies: Rows, points: np.ndarray, planes: np.ndarray | None = None) -> np.ndarray:
    """(n,) by how much points of the world break the formula of their body [m]; of a hull, its `planes`."""
    p = np.einsum("nji,nj->ni", bodies.poses[:, :3, :3], points - bodies.poses[:, :3, 3])
    across, reach = np.hypot(p[:, 0], p[:, 1]), bodies.half[:, 2]
    if bodies.kind == ROUND:
        return np.hypot(across, np.maximum(np.abs(p[:, 2]) - reach, 0.0)) - bodies.radius
    if bodies.kind == CYLINDER:
        return np.maximum(across - bodies.radius, np.abs(p[:, 2]) - reach)
    if bodies.kind == CONE:
        slope = bodies.radius / (2.0 * reach)
        side = (across - (reach - p[:, 2]) * slope) / np.hypot(1.0, slope)
        return np.maximum(side, -reach - p[:, 2])
    scaled = p / bodies.half
    beyond = scaled @ planes[:, :3].T - planes[:, 3]  # in units of the table: a plane is 1 / |normal / half| m thick
    return (beyond / np.linalg.norm(planes[None, :, :3] / bodies.half[:, None], axis=2)).max(axis=1)


@dataclass(frozen=True)
class Certificate:
    lower: np.ndarray  #: (n,) the true distance is not smaller, up to rounding
    upper: np.ndarray  #: (n,) … not larger, if the points belong to the bodies
    outside: np.ndarray  #: (n,) by how much they do not


def certificate(
    a: Rows, b: Rows, point_a: np.ndarray, point_b: np.ndarray, normal: np.ndarray, planes: tuple = (None, None)
) -> Certificate:
    """What points of both bodies, and a unit vector that pushes a away from b, prove about their distance."""
    away = np.maximum(outside(a, point_a, planes[0]), outside(b, point_b, planes[1]))
    lower = -supports(a, -normal) - supports(b, normal)
    return Certificate(lower, np.linalg.norm(point_a - point_b, axis=1), away)


def conic_distance(a: Rows, b: Rows) -> tuple[float, float]:
    """(lower, upper) of the distance of two bodies, one row each: least t with |x - y| <= t, x in a, y in b.

    Bodies of sizes about 1: the programme is not scaled.
    """
    import clarabel
    from scipy import sparse

    programme = _Programme()
    t = programme.variables(1)
    x, y = (_place(programme, bodies) for bodies in (a, b))
    programme.cone([(0.0, {t: 1.0})] + [(0.0, {x + k: 1.0, y + k: -1.0}) for k in range(3)])
    matrix, right, cones = programme.assembled(clarabel)
    cost = np.zeros(programme.count)
    cost[t] = 1.0
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    empty = sparse.csc_matrix((programme.count, programme.count))
    found = clarabel.DefaultSolver(empty, cost, matrix, right, cones, settings).solve()
    # Infeasible by 1e-11 of lengths about 1: what both objectives may be off.
    slack = 1e-10 * float((a.size + b.size)[0] + np.linalg.norm(a.poses[0, :3, 3] - b.poses[0, :3, 3]))
    return max(found.obj_val_dual - slack, 0.0), found.obj_val + slack


class _Programme:
    """Rows of h - G z in cones, as they are added."""

    def __init__(self) -> None:
        self.count, self._groups = 0, {"zero": [], "positive": []}
        self._cones: list[list] = []

    def variables(self, count: int) -> int:
        self.count += count
        return self.count - count

    def equal(self, row: tuple[float, dict[int, float]]) -> None:
        """constant + coefficients . z = 0"""
        self._groups["zero"].append(row)

    def positive(self, row: tuple[float, dict[int, float]]) -> None:
        self._groups["positive"].append(row)

    def cone(self, rows: list[tuple[float, dict[int, float]]]) -> None:
        """The first is no less than the length of the others."""
        self._cones.append(rows)

    def assembled(self, clarabel):
        from scipy import sparse

        rows = [*self._groups["zero"], *self._groups["positive"], *(row for cone in self._cones for row in cone)]
        entries = [(k, column, -value) for k, (_, row) in enumerate(rows) for column, value in row.items()]
        at, columns, values = zip(*entries, strict=True)
        cones = [
            clarabel.ZeroConeT(len(self._groups["zero"])),
            clarabel.NonnegativeConeT(len(self._groups["positive"])),
        ]
        cones += [clarabel.SecondOrderConeT(len(cone)) for cone in self._cones]
        matrix = sparse.csc_matrix((values, (at, columns)), shape=(len(rows), self.count))
        return matrix, np.array([row[0] for row in rows]), cones


def _place(programme: _Programme, body: Rows) -> int:
    """Variables x of a point of the body in the world, with p of it in its own frame."""
    x, p = programme.variables(3), programme.variables(3)
    rotation, offset = body.poses[0, :3, :3], body.poses[0, :3, 3]
    for k in range(3):
        row = {x + k: -1.0} | {p + j: float(rotation[k, j]) for j in range(3)}
        programme.equal((float(offset[k]), row))
    radius, half = float(body.radius[0]), body.half[0]
    if body.kind == ROUND:
        s = programme.variables(1)
        programme.positive((float(half[2]), {s: 1.0}))
        programme.positive((float(half[2]), {s: -1.0}))
        programme.cone([(radius, {}), (0.0, {p: 1.0}), (0.0, {p + 1: 1.0}), (0.0, {p + 2: 1.0, s: -1.0})])
    elif body.kind == CYLINDER:
        programme.positive((float(half[2]), {p + 2: 1.0}))
        programme.positive((float(half[2]), {p + 2: -1.0}))
        programme.cone([(radius, {}), (0.0, {p: 1.0}), (0.0, {p + 1: 1.0})])
    elif body.kind == CONE:
        slope = radius / (2.0 * float(half[2]))
        programme.positive((float(half[2]), {p + 2: 1.0}))
        programme.cone([(slope * float(half[2]), {p + 2: -slope}), (0.0, {p: 1.0}), (0.0, {p + 1: 1.0})])
    else:
        corners = body.corners * half
        weights = programme.variables(len(corners))
        programme.equal((-1.0, {weights + k: 1.0 for k in range(len(corners))}))
        for k in range(3):
            row = {p + k: -1.0} | {weights + j: float(corners[j, k]) for j in range(len(corners))}
            programme.equal((0.0, row))
        for k in range(len(corners)):
            programme.positive((0.0, {weights + k: 1.0}))
    return x
