"""How a point of a moving body follows what its motion is made from.

Question: a slope by where a point of the body is at a time, what slope is it by the poses and vectors of the motion?
Method:   a twist is its start turned by exp(t w) and shifted; a screw is exp(t S) X0, S = log(X1 inverse(X0)), whose
          variation by both ends is t J(t S) inverse(J(S)), J the left Jacobian of the group. Slopes go through the
          transposes.
Known as: adjoint (reverse) sensitivities on SO(3) and SE(3); left Jacobian (Barfoot 2017, section 7.1).
"""

from __future__ import annotations

import numpy as np

from tangere.motion import Path, Twist, rotation_between

#: Terms of the series of the left Jacobian: its argument turns by half a turn at most.
TERMS = 40


def by_twist(motion: Twist, times: np.ndarray, points: np.ndarray, slopes: np.ndarray) -> dict[str, np.ndarray]:
    """Slopes (n, m) by the start, the displacement and the rotation vector of twists.

    Args:
        times: (n,) in [0, 1].
        points: of the body, in its frame, (n, 3) [m].
        slopes: by these points where they are then, in the world, (n, 3).
    """
    count = len(times)
    records = np.broadcast_to(motion.records(), count)
    turn, pivot = records["rotation"], records["pivot"]
    vector = records["axis"] * records["angle"][:, None]
    turned = rotations(times[:, None] * vector)
    arm = np.einsum("nij,nj->ni", turn, points - pivot)
    back = np.einsum("nji,nj->ni", turned, slopes)
    held = np.cross(np.einsum("nij,nj->ni", turn, pivot), slopes) + np.cross(arm, back)
    moment = np.cross(np.einsum("nij,nj->ni", turned, arm), slopes)
    return {
        "start": np.concatenate([slopes, held], axis=1),
        "displacement": times[:, None] * slopes,
        "rotation": times[:, None] * np.einsum("nji,nj->ni", left_jacobians(times[:, None] * vector), moment),
    }


def by_screw(
    start: np.ndarray, end: np.ndarray, times: np.ndarray, points: np.ndarray, slopes: np.ndarray
) -> dict[str, np.ndarray]:
    """Slopes (n, 6) by the first and the last pose of screws; arguments as for `by_twist`, poses (n, 4, 4) or one."""
    count = len(times)
    start, end = (np.broadcast_to(pose, (count, 4, 4)) for pose in (start, end))
    whole = screw_of(start, end)
    part = times[:, None] * whole
    at = exponentials(part) @ start
    place = np.einsum("nij,nj->ni", at[:, :3, :3], points) + at[:, :3, 3]
    slope = np.concatenate([slopes, np.cross(place, slopes)], axis=1)  # by (velocity at the world's origin, angular)
    share = times[:, None, None] * screw_jacobians(part) @ np.linalg.inv(screw_jacobians(whole))
    by_start = adjoints(exponentials(part)) - share @ adjoints(exponentials(whole))
    found = {"start": (by_start, start), "end": (share, end)}
    return {name: _at_origin(np.einsum("nji,nj->ni", by, slope), pose) for name, (by, pose) in found.items()}


def by_path(motion: Path, times: np.ndarray, points: np.ndarray, slopes: np.ndarray) -> dict[str, np.ndarray]:
    """Slopes (n, k, 6) by the k poses of a path."""
    segment, within = motion.segment_of(times)
    ends = by_screw(motion.poses[segment], motion.poses[segment + 1], within, points, slopes)
    table = np.zeros((len(times), len(motion.poses), 6))
    rows = np.arange(len(times))
    table[rows, segment], table[rows, segment + 1] = ends["start"], ends["end"]
    return {"waypoints": table}


def _at_origin(slope: np.ndarray, pose: np.ndarray) -> np.ndarray:
    """Slopes by the velocity of the body's origin, from those by the velocity at the world's origin."""
    return np.concatenate([slope[:, :3], slope[:, 3:] + np.cross(slope[:, :3], pose[:, :3, 3])], axis=1)


def crosses(vectors: np.ndarray) -> np.ndarray:
    """(n, 3, 3) matrices of the cross product with vectors."""
    x, y, z = vectors.T
    zero = np.zeros_like(x)
    return np.stack([zero, -z, y, z, zero, -x, -y, x, zero], axis=1).reshape(-1, 3, 3)


def rotations(vectors: np.ndarray) -> np.ndarray:
    """(n, 3, 3) exp of rotation vectors (Rodrigues)."""
    angle, across = np.linalg.norm(vectors, axis=1)[:, None, None], crosses(vectors)
    half = np.sinc(0.5 * angle / np.pi)
    return np.eye(3) + np.sinc(angle / np.pi) * across + 0.5 * half * half * (across @ across)


def left_jacobians(vectors: np.ndarray) -> np.ndarray:
    """(n, 3, 3) J with exp(w + dw) = exp(J dw) exp(w) to first order, for any number of turns."""
    angle, across = np.linalg.norm(vectors, axis=1)[:, None, None], crosses(vectors)
    half = np.sinc(0.5 * angle / np.pi)
    small = angle < 1e-2
    safe = np.where(small, 1.0, angle)
    third = np.where(small, 1.0 / 6.0 - angle**2 / 120.0 + angle**4 / 5040.0, (safe - np.sin(safe)) / safe**3)
    return np.eye(3) + 0.5 * half * half * across + third * (across @ across)


def screw_of(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """(n, 6) the log of end inverse(start): velocity at the world's origin, and rotation vector, the short way."""
    axis, angle = rotation_between(start[:, :3, :3], end[:, :3, :3])
    vector = axis * angle[:, None]
    change = np.einsum("nij,nkj->nik", end[:, :3, :3], start[:, :3, :3])
    shift = end[:, :3, 3] - np.einsum("nij,nj->ni", change, start[:, :3, 3])
    return np.concatenate([np.linalg.solve(left_jacobians(vector), shift[..., None])[..., 0], vector], axis=1)


def exponentials(screws: np.ndarray) -> np.ndarray:
    """(n, 4, 4) exp of screws."""
    poses = np.zeros((len(screws), 4, 4))
    poses[:, :3, :3] = rotations(screws[:, 3:])
    poses[:, :3, 3] = np.einsum("nij,nj->ni", left_jacobians(screws[:, 3:]), screws[:, :3])
    poses[:, 3, 3] = 1.0
    return poses


def adjoints(poses: np.ndarray) -> np.ndarray:
    """(n, 6, 6) twists (velocity at the origin, angular) carried by poses."""
    turn = poses[:, :3, :3]
    table = np.zeros((len(poses), 6, 6))
    table[:, :3, :3] = table[:, 3:, 3:] = turn
    table[:, :3, 3:] = crosses(poses[:, :3, 3]) @ turn
    return table


def screw_jacobians(screws: np.ndarray) -> np.ndarray:
    """(n, 6, 6) the left Jacobian of SE(3): the sum of ad^k / (k + 1)!."""
    small = np.zeros((len(screws), 6, 6))
    small[:, :3, :3] = small[:, 3:, 3:] = crosses(screws[:, 3:])
    small[:, :3, 3:] = crosses(screws[:, :3])
    term = np.tile(np.eye(6), (len(screws), 1, 1))
    total = term.copy()
    for k in range(1, TERMS):
        term = term @ small / (k + 1)
        total += term
    return total
