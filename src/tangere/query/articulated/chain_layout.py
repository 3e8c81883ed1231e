"""Where the motions of a tree of frames lie in memory, so that both bodies of each pair are moved by a short chain.

Question: which motions move the two bodies of a pair against each other?
Method:   a body hangs on a path of frames from the world. What both paths of a pair begin with moves both alike: each
          keeps the rest, or a record of rest if nothing is left. In every step the paths of the farthest bodies lie
          one after the other; all other chains are pieces of them.
Sound:    distances do not depend on the frame they are measured in. The fewer motions, the sharper their bounds.
Known as: relative kinematics of two links in the frame of their nearest common ancestor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

#: In the place of a frame: the record of a body that does not move against the ancestor.
AT_REST = -1


@dataclass(frozen=True, eq=False)
class ChainLayout:
    """The records of one step: which frame stands at each place, and which of them move the bodies of each pair."""

    frames: np.ndarray  #: (width,) the frame of each record, AT_REST for the last one
    first: np.ndarray  #: (pairs, 2) the first record of each body's chain
    links: np.ndarray  #: (pairs, 2) how many records it has
    shared: np.ndarray  #: (pairs,) how many frames both paths begin with
    root: np.ndarray  #: (pairs,) the first of the records of these
    body_first: np.ndarray  #: (bodies,) the first record of each body's whole path from the world
    body_links: np.ndarray  #: (bodies,) how many records it has

    @property
    def width(self) -> int:
        """Records of one step."""
        return len(self.frames)

    @classmethod
    def of(cls, paths: Sequence[tuple[int, ...]], pairs: np.ndarray, *, reduced: bool = True) -> ChainLayout:
        """The layout of some bodies.

        Args:
            paths: the frames that each body hangs on, from the world to the body.
            pairs: numbers of two bodies, (n, 2).
            reduced: leave out what both paths begin with; False keeps whole chains, for comparison.
        """
        frames: list[int] = []
        place: dict[tuple[int, ...], int] = {(): 0}
        for path in sorted(set(paths), key=lambda path: (-len(path), path)):
            held = next((kept for kept in place if kept[: len(path)] == path), None)
            if held is None:
                place[path] = len(frames)
                frames += path
            else:
                place[path] = place[held]
        rest = len(frames)
        first, links = np.zeros((len(pairs), 2), np.int32), np.ones((len(pairs), 2), np.int32)
        shared, root = np.zeros(len(pairs), np.int32), np.zeros(len(pairs), np.int32)
        for row, (a, b) in enumerate(pairs):
            cut = _common(paths[a], paths[b]) if reduced else 0
            shared[row], root[row] = cut, place[paths[a]]
            for side, path in enumerate((paths[a], paths[b])):
                left = len(path) - cut
                first[row, side] = place[path] + cut if left else rest
                links[row, side] = max(left, 1)
        body_first = np.array([place[path] if path else rest for path in paths], np.int32)
        body_links = np.array([max(len(path), 1) for path in paths], np.int32)
        return cls(np.array([*frames, AT_REST], np.int32), first, links, shared, root, body_first, body_links)


def _common(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    """How many frames two paths begin with."""
    count = 0
    while count < min(len(a), len(b)) and a[count] == b[count]:
        count += 1
    return count
