"""Poses as (…, 4, 4) arrays, points and times: checked when they come in; the rotation from one pose to another.

Known as: elements of SE(3) as homogeneous matrices; rotations are brought back to SO(3) by Newton's iteration for the
polar decomposition, and turned into quaternions by the largest of four candidates (Shepperd 1978).
"""

from __future__ import annotations

import numpy as np

from tangere.runtime import Arrays, InputError, to_numpy

#: A rotation block this far from a rotation is a mistake (single precision gives 1e-7); below it, it is mended.
NOT_A_ROTATION = 1e-5
#: … and this near it is left as it is.
ROUNDING = 1e-14
#: Lengths and angles beyond this are refused: their squares and cubes would overflow, and contacts be missed.
LARGEST = 1e100


def as_poses(data: Arrays, name: str) -> np.ndarray:
    """Checked rigid poses, shape (4, 4) or (n, 4, 4); rotations are orthogonal to rounding.

    Args:
        data: rotation in [:3, :3], translation in [:3, 3] [m], last row 0 0 0 1.
        name: what to call it in an error.
    """
    poses = np.array(to_numpy(data, name))
    if poses.ndim not in (2, 3) or poses.shape[-2:] != (4, 4):
        raise InputError(f"{name} must have shape (4, 4) or (n, 4, 4), not {poses.shape}")
    if poses.ndim == 2 and _is_rigid(poses.tolist()):
        return poses
    every = poses.reshape(-1, 4, 4)
    _refuse(~np.isfinite(every).all(axis=(1, 2)), name, "contains numbers that are not finite")
    _refuse((np.abs(every) > LARGEST).any(axis=(1, 2)), name, f"contains numbers beyond {LARGEST:g}")
    _refuse((every[:, 3] != [0.0, 0.0, 0.0, 1.0]).any(axis=1), name, "has a last row that is not 0 0 0 1")
    turns = every[:, :3, :3]
    off = _off(turns)
    _refuse(off > NOT_A_ROTATION, name, "is not rigid: its rotation block is not orthogonal")
    _refuse(np.linalg.det(turns) < 0.0, name, "is not rigid: it mirrors")
    rough = np.flatnonzero(off > ROUNDING)
    for _ in range(3):  # Newton's iteration for the nearest orthogonal matrix
        turns[rough] = 0.5 * turns[rough] @ (3.0 * np.eye(3) - np.swapaxes(turns[rough], 1, 2) @ turns[rough])
    return poses


def as_vectors(data: Arrays, name: str) -> np.ndarray:
    """Checked finite vectors, shape (3,) or (n, 3)."""
    vectors = np.array(to_numpy(data, name))
    if vectors.ndim not in (1, 2) or vectors.shape[-1] != 3:
        raise InputError(f"{name} must have shape (3,) or (n, 3), not {vectors.shape}")
    if vectors.ndim == 1 and all(abs(x) <= LARGEST for x in vectors.tolist()):
        return vectors
    every = vectors.reshape(-1, 3)
    _refuse(~np.isfinite(every).all(axis=1), name, "is not finite")
    _refuse((np.abs(every) > LARGEST).any(axis=1), name, f"contains numbers beyond {LARGEST:g}")
    return vectors


def as_body_points(data: Arrays, name: str) -> np.ndarray:
    """Points of a body in its frame, shape (m, 3) [m]; one alone, (3,), and more in front are taken as well."""
    points = to_numpy(data, name)
    if points.ndim == 0 or points.shape[-1] != 3:
        raise InputError(f"{name} must have shape (m, 3), not {points.shape}")
    return points


def as_times(t: Arrays) -> np.ndarray:
    """Times of any shape, each in [0, 1]."""
    times = to_numpy(t, "t")
    if not ((times >= 0.0) & (times <= 1.0)).all():
        wrong = times[~((times >= 0.0) & (times <= 1.0))].flat[0] if times.shape else times
        raise InputError(f"a motion is defined for times in [0, 1], not {float(wrong):.17g}")
    return times


def rotation_between(start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Unit axis (n, 3) and angle in [0, pi] (n,) of the world rotations that take `start` to `end`, (n, 3, 3) each.

    Through the quaternion: as precise for the tiniest turns as for half turns. The axis of no turn is z.
    """
    quaternion = quaternions_of(end @ np.swapaxes(start, 1, 2))
    length = np.linalg.norm(quaternion[:, 1:], axis=1)
    angle = 2.0 * np.arctan2(length, quaternion[:, 0])
    axis = np.divide(
        quaternion[:, 1:], length[:, None], out=np.tile([0.0, 0.0, 1.0], (len(start), 1)), where=length[:, None] > 0
    )
    return axis, angle


def quaternions_of(turns: np.ndarray) -> np.ndarray:
    """(n, 4) unit quaternions w, x, y, z of rotations (n, 3, 3), with w >= 0."""
    x, y, z = turns[:, 0, 0], turns[:, 1, 1], turns[:, 2, 2]
    # 4 q q^T from the matrix: the row with the largest diagonal entry is the quaternion, up to its length.
    table = np.empty((len(turns), 4, 4))
    table[:, 0, 0], table[:, 1, 1] = 1.0 + x + y + z, 1.0 + x - y - z
    table[:, 2, 2], table[:, 3, 3] = 1.0 - x + y - z, 1.0 - x - y + z
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        table[:, 0, i + 1] = table[:, i + 1, 0] = turns[:, k, j] - turns[:, j, k]
        table[:, j + 1, k + 1] = table[:, k + 1, j + 1] = turns[:, k, j] + turns[:, j, k]
    row = np.argmax(np.einsum("nii->ni", table), axis=1)
    quaternion = table[np.arange(len(turns)), row]
    quaternion *= np.where(quaternion[:, :1] < 0.0, -1.0, 1.0)
    return quaternion / np.linalg.norm(quaternion, axis=1, keepdims=True)


def rotations_of(quaternions: np.ndarray, name: str) -> np.ndarray:
    """(n, 3, 3) rotations of quaternions w, x, y, z (n, 4) of any length but zero."""
    length = np.linalg.norm(quaternions, axis=1)
    _refuse(~(length > 1e-9), name, "is not a rotation: a quaternion must not be zero")
    w, x, y, z = (quaternions / length[:, None]).T
    rows = [
        [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
        [2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)],
        [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), -1, 0)


def _is_rigid(rows: list[list[float]]) -> bool:
    """Whether a pose needs neither a closer look nor mending: one is told so in a tenth of the time of arrays."""
    (a, b, c, x), (d, e, f, y), (g, h, i, z), last = rows
    if last != [0.0, 0.0, 0.0, 1.0] or not (abs(x) <= LARGEST and abs(y) <= LARGEST and abs(z) <= LARGEST):
        return False
    lengths = a * a + d * d + g * g, b * b + e * e + h * h, c * c + f * f + i * i
    angles = a * b + d * e + g * h, a * c + d * f + g * i, b * c + e * f + h * i
    near = 0.5 * ROUNDING  # what is nearer to the limit is left to arrays, which round otherwise
    right = all(abs(length - 1.0) <= near for length in lengths) and all(abs(angle) <= near for angle in angles)
    return right and a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g) > 0.0


def _off(turns: np.ndarray) -> np.ndarray:
    """(n,) how far R^T R is from 1."""
    return np.abs(np.swapaxes(turns, 1, 2) @ turns - np.eye(3)).max(axis=(1, 2))


def _refuse(bad: np.ndarray, name: str, reason: str) -> None:
    if bad.any():
        which = f"{name}[{int(np.argmax(bad))}]" if len(bad) > 1 else name
        raise InputError(f"{which} {reason}")
