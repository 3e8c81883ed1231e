"""Acyclic articulated chains: links that move in the frame of the link they hang on.

Question: how do links move in the world, each given by its joint?
Method:   the pose of a link is the product of the motions from the root to it, X_k(t) = X_parent(t) J_k(t), where J_k
          holds the joint's place in the parent and its motion (Redon 2002, section 3.2). Loops are refused: the motions
          between two instants round a loop would contradict each other.
Known as: forward kinematics of a kinematic tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tangere.motion.rigid_motion import Rigid, joined_records, motions_of
from tangere.runtime import InputError, described, to_numpy


class Chain:
    """Links in a tree.

    Args:
        joints: the motion of each link in the frame of its parent, one motion each (`Screw`, `Twist`, `Rest`, …).
        parents: the link each hangs on, -1 for the world; None means each on the one before.

    Example:
        >>> import numpy as np
        >>> from tangere.motion import Chain, Twist
        >>> elbow = np.eye(4); elbow[0, 3] = 1.0
        >>> arm = Chain([Twist(np.eye(4), [0, 0, 0], [0, 0, 1.0]), Twist(elbow, [0, 0, 0], [0, 0, 0.5])])
        >>> np.round(arm.link(1).pose(1.0)[:3, 3], 6).tolist()
        [0.540302, 0.841471, 0.0]
    """

    def __init__(self, joints: Sequence[Rigid], parents: Sequence[int] | None = None) -> None:
        if isinstance(joints, Rigid) or not isinstance(joints, Iterable):
            raise InputError(f"Chain: joints must be a list of motions, not {described(joints)}")
        self.joints = tuple(joints)
        self.parents = tuple(range(-1, len(self.joints) - 1)) if parents is None else _numbers(parents)
        if len(self.parents) != len(self.joints):
            raise InputError(f"Chain: {len(self.joints)} joints and {len(self.parents)} parents")
        for i, (joint, parent) in enumerate(zip(self.joints, self.parents, strict=True)):
            if not isinstance(joint, Rigid) or joint.shape:
                raise InputError(f"Chain: joint {i} must be one rigid motion, not {described(joint)}")
            if not -1 <= parent < len(self.joints):
                raise InputError(f"Chain: link {i} hangs on link {parent}, but there are {len(self.joints)} links")
        for i in range(len(self.joints)):
            self._to_root(i)

    def __len__(self) -> int:
        return len(self.joints)

    def __repr__(self) -> str:
        return f"Chain({len(self)} links)"

    def link(self, number: int) -> Rigid:
        """The motion of a link in the world.

        Args:
            number: of the link, from 0.
        """
        if not (isinstance(number, (int, np.integer)) and 0 <= number < len(self)):
            raise InputError(f"Chain: there is no link {number!r}; links are numbered 0 to {len(self) - 1}")
        joints = [self.joints[i] for i in reversed(self._to_root(number))]
        records = joined_records([joint.records() for joint in joints])
        return motions_of(records, len(records), ())

    def positions(self, points: Sequence[np.ndarray], time: float) -> list[np.ndarray]:
        """Where points of each link, (m_i, 3) in its frame [m], are at `time`."""
        return [self.link(i).positions(each, time) for i, each in enumerate(points)]

    def _to_root(self, number: int) -> list[int]:
        """The links from `number` to the root."""
        links = [number]
        while (parent := self.parents[links[-1]]) >= 0:
            if parent in links:
                loop = " -> ".join(map(str, [*links[links.index(parent) :], parent]))
                raise InputError(f"Chain: links {loop} form a loop")
            links.append(parent)
        return links


def _numbers(parents: Sequence[int]) -> tuple[int, ...]:
    rows = to_numpy(parents, "Chain: parents", None)
    if rows.ndim != 1 or not (np.issubdtype(rows.dtype, np.integer) or not rows.size):
        raise InputError(f"Chain: parents must be a row of whole numbers, not {described(parents)}")
    return tuple(rows.tolist())
