"""Ways pulled tight: through a chain of gates, and past waypoints that need not be passed.

Question: what is the shortest way through these gates, and over these points?
Method:   the funnel algorithm; and a shortest path over the points by those legs that are known to be clear.
Known as: string pulling, the funnel algorithm (Lee and Preparata 1984).
"""

from __future__ import annotations

import numpy as np

#: So many waypoints one leg may leave out in a round, unless it leaves out all.
_SKIPPED_AT_ONCE = 2
#: Part of a leg by which it may be nearer to a wall, or longer: far above rounding, far below what anybody sees.
RELATIVE_SLACK = 1e-9


def pull_string(
    start: np.ndarray, goal: np.ndarray, left: np.ndarray, right: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The shortest way through a sequence of gates, (k, 3) without the start, and the gate that each point is at.

    Behind the last gate is the goal.
    """
    lefts, rights = np.concatenate([left, goal[None]]), np.concatenate([right, goal[None]])
    apex, low, high = start, start, start  # low: right side of the funnel, high: left side
    at_low = at_high = 0
    way: list[np.ndarray] = []
    gates: list[int] = []
    k = 0
    while k < len(lefts):
        r, l = rights[k], lefts[k]
        if _turn(apex, low, r) >= 0:
            if (apex == low).all() or _turn(apex, high, r) < 0:
                low, at_low = r, k
            else:
                way.append(high)
                gates.append(at_high)
                apex = low = high
                k = at_low = at_high
                k += 1
                continue
        if _turn(apex, high, l) <= 0:
            if (apex == high).all() or _turn(apex, low, l) > 0:
                high, at_high = l, k
            else:
                way.append(low)
                gates.append(at_low)
                apex = high = low
                k = at_high = at_low
                k += 1
                continue
        k += 1
    points, at = np.array([*way, goal]), np.array([*gates, len(left)])
    fresh = np.linalg.norm(np.diff(points, axis=0, prepend=start[None]), axis=1) > 1e-9
    fresh[-1] = True
    points, at = points[fresh], at[fresh]
    end = len(points) if len(points) < 2 or (points[-1] != points[-2]).any() else -1
    return points[:end], at[:end]


def _turn(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> float:
    """Positive where a, b, c turn left."""
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))


def shortcut_candidates(count: int) -> np.ndarray:
    """(n, 2) between which of so many points, in a row, a way is tried that leaves out those between."""
    pairs = [(i, j) for i in range(count) for j in range(i + 2, min(i + 2 + _SKIPPED_AT_ONCE, count))]
    return np.array(pairs + [(0, count - 1)] * (count > 2 + _SKIPPED_AT_ONCE))


def shortest_subsequence(points: np.ndarray, legs: np.ndarray) -> np.ndarray:
    """Over which points, after the first, the shortest way to the last leads: by these legs or to the next one."""
    steps = np.stack([np.arange(len(points) - 1), np.arange(1, len(points))], axis=1)
    legs = np.concatenate([steps, legs])
    legs = legs[np.argsort(legs[:, 0], kind="stable")]
    length = np.linalg.norm(points[legs[:, 1]] - points[legs[:, 0]], axis=1)
    best, before = [0.0] + [np.inf] * (len(points) - 1), [0] * len(points)
    for (i, j), more in zip(legs.tolist(), length.tolist()):
        # Long legs come first: a point on one of them is left out.
        if best[i] + more < best[j] * (1.0 - RELATIVE_SLACK):
            best[j], before[j] = best[i] + more, i
    chosen = [len(points) - 1]
    while before[chosen[-1]]:
        chosen.append(before[chosen[-1]])
    return np.array(chosen[::-1])
