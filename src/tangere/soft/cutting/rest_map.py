"""Where points of the world are in the rest shape of a body: a blade is led through that.

Question: the body is bent and somewhere else; where in it, as it is at rest, does a blade go?
Method:   a point in a tetrahedron has its weights of the corners there, in both shapes. Outside, a point keeps its
          place against the nearest vertex, turned as the body is turned there. For a sheet, a point keeps its weights
          in the nearest triangle and its height over it.
Known as: material coordinates; polar decomposition.
"""

from __future__ import annotations

import numpy as np

#: Weights may be negative by this much where a point lies between two tetrahedra.
_ROUNDING = 1e-9
#: Points beside a sheet go with the plane of its triangles up to this negative weight.
BESIDE_SHEET = 1.0


#: Pairs of a point and the box of a simplex that are looked at at once.
_MOST_AT_ONCE = 1 << 18


def to_rest(points: np.ndarray, x: np.ndarray, rest: np.ndarray, simplices: np.ndarray) -> np.ndarray:
    """(k, 3) points in the rest shape [m].

    Args:
        points: in the world (k, 3) [m].
        x, rest: vertices of the body where they are, and at rest (n, 3) [m].
        simplices: (m, 4) tetrahedra or (m, 3) triangles; vertices that none of them has are not asked.
    """
    used = np.zeros(len(x), bool)
    used[simplices] = True
    used = np.flatnonzero(used)
    if simplices.shape[1] == 3:
        return np.stack([_at_sheet(point, x, rest, simplices, used) for point in points])
    found, weights = locate(points, x, simplices, _ROUNDING)
    inside = np.einsum("ij,ijk->ik", weights, rest[simplices[found]])
    return np.stack(
        [inside[k] if found[k] >= 0 else _beside(point, x, rest, simplices, used) for k, point in enumerate(points)]
    )


def locate(
    points: np.ndarray, vertices: np.ndarray, simplices: np.ndarray, outside: float
) -> tuple[np.ndarray, np.ndarray]:
    """(k,) the simplex that has each point, -1 for none, and its weights there, (k, 3 or 4).

    Args:
        vertices: of the simplices, in the shape in which the points are [m].
        outside: how negative a weight may be; infinity means the best one there is. Heights over triangles are free.
    """
    some = vertices[simplices[:: 1 + len(simplices) // 4096]]
    loose = 0.1 * float(np.median(np.linalg.norm(np.ptp(some, axis=1), axis=1)))
    found, weights = np.full(len(points), -1), np.zeros((len(points), simplices.shape[1]))
    there = simplices_near(points.min(axis=0) - loose, points.max(axis=0) + loose, vertices, simplices)
    corners = vertices[simplices[there]]
    low, high = corners.min(axis=1) - loose, corners.max(axis=1) + loose
    for some in np.array_split(np.arange(len(points)), 1 + len(points) * len(there) // _MOST_AT_ONCE):
        within = np.ones((len(some), len(there)), bool)
        for axis in range(3):
            own = points[some, axis, None]
            within &= (low[:, axis] <= own) & (own <= high[:, axis])
        at, near = np.nonzero(within)
        at, near = some[at], there[near]
        if np.isinf(outside):
            lost = np.setdiff1d(some, at)
            away = [((vertices[simplices].mean(axis=1) - points[k]) ** 2).sum(axis=1).argsort()[:16] for k in lost]
            at = np.concatenate([at, *(np.full(len(nearest), k) for k, nearest in zip(lost, away, strict=True))])
            near = np.concatenate([near, *away])
        shapes = vertices[simplices[near]]
        inner = _solved(_frames(shapes), points[at] - shapes[:, 0])[:, : simplices.shape[1] - 1]
        all_weights = np.column_stack([1.0 - inner.sum(axis=1), inner])
        inside = all_weights.min(axis=1)
        order = np.lexsort((-inside, at))
        best = order[np.unique(at[order], return_index=True)[1]]
        best = best[inside[best] >= -outside]
        found[at[best]], weights[at[best]] = near[best], all_weights[best]
    return found, weights


def simplices_near(low: np.ndarray, high: np.ndarray, vertices: np.ndarray, simplices: np.ndarray) -> np.ndarray:
    """Simplices whose boxes meet another one: some corner is not beyond each of its sides, as bits of vertices say."""
    bits = np.zeros(len(vertices), np.uint8)
    for k in range(3):
        bits |= (vertices[:, k] <= high[k]).astype(np.uint8) << k
        bits |= (vertices[:, k] >= low[k]).astype(np.uint8) << (3 + k)
    met = bits[simplices[:, 0]]
    for k in range(1, simplices.shape[1]):
        met |= bits[simplices[:, k]]
    return np.flatnonzero(met == 63)


def _solved(frames: np.ndarray, ways: np.ndarray) -> np.ndarray:
    """(m, 3) coordinates of ways in frames; far away where a frame is flat."""
    flat = np.abs(np.linalg.det(frames)) == 0.0
    sound = np.where(flat[:, None, None], np.eye(3), frames)
    return np.where(flat[:, None], 1e300, np.linalg.solve(sound, ways[..., None])[..., 0])


def _at_sheet(
    point: np.ndarray, x: np.ndarray, rest: np.ndarray, triangles: np.ndarray, used: np.ndarray
) -> np.ndarray:
    nearest = used[((x[used] - point) ** 2).sum(axis=1).argmin()]
    around = triangles[(triangles == nearest).any(axis=1)]
    frames = _frames(x[around])
    inner = np.linalg.solve(frames, (point - x[around[:, 0]])[..., None])[..., 0]
    least = np.minimum(inner[:, :2].min(axis=1), 1.0 - inner[:, :2].sum(axis=1))
    best = int(least.argmax())
    if least[best] < -BESIDE_SHEET:
        return _beside(point, x, rest, triangles, used)
    return rest[around[best, 0]] + _frames(rest[around[best : best + 1]])[0] @ inner[best]


def _beside(point: np.ndarray, x: np.ndarray, rest: np.ndarray, simplices: np.ndarray, used: np.ndarray) -> np.ndarray:
    """As seen from the nearest vertex of those used, which turns with the simplices around it."""
    nearest = used[((x[used] - point) ** 2).sum(axis=1).argmin()]
    around = simplices[np.logical_or.reduce([column == nearest for column in simplices.T])]
    now, once = _frames(x[around]), _frames(rest[around])
    gradient = (now @ np.linalg.inv(once)).mean(axis=0)
    u, _, v = np.linalg.svd(gradient)
    turn = u @ np.diag([1.0, 1.0, np.sign(np.linalg.det(u @ v))]) @ v
    return rest[nearest] + turn.T @ (point - x[nearest])


def _frames(corners: np.ndarray) -> np.ndarray:
    """(m, 3, 3) the sides from the first corner as columns; of triangles the unit normal is the third."""
    sides = np.moveaxis(corners[:, 1:] - corners[:, :1], 1, 2)
    if sides.shape[2] == 3:
        return sides
    normal = np.cross(sides[:, :, 0], sides[:, :, 1])
    return np.concatenate([sides, (normal / np.linalg.norm(normal, axis=1, keepdims=True))[:, :, None]], axis=2)
