"""What the slow loop tells the fast one: contacts as rows, and where the part was when they were looked for.

As one array of numbers it goes to another process through shared memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tangere.runtime import InputError

#: Numbers before those of the rows: how many rows, whether the walk was stopped, reach, most load, grip and rotation,
#: load and its stiffness.
HEAD = 28
#: Numbers of a row.
WIDTH = 7


@dataclass(frozen=True, eq=False)
class ContactRowSet:
    """Contacts of a part: row . motion >= -room, for motions of its grip from where they were looked for.

    Args:
        grip: (3,) of the grip then [m].
        rotation: (3, 3) of the part then.
        rows: (n, 6), normal and arm x normal.
        room: (n,) gap without the security distance [m].
        reach: how far from there no point of the part may go [m].
        stopped: whether the part is to go back there.
        load: (6,) what yields pushes the part there [N], [N m].
        load_stiffness: (6,) how much less it does for each way from there, not negative [N/m], [N m/rad].
        most_load: what the load is at most, whatever the way from there [N].
    """

    grip: np.ndarray
    rotation: np.ndarray
    rows: np.ndarray
    room: np.ndarray
    reach: float
    stopped: bool = False
    load: np.ndarray = field(default_factory=lambda: np.zeros(6))
    load_stiffness: np.ndarray = field(default_factory=lambda: np.zeros(6))
    most_load: float = np.inf

    def packed(self) -> np.ndarray:
        """All of it as numbers."""
        numbers = np.empty(HEAD + WIDTH * len(self.room))
        numbers[:4] = len(self.room), self.stopped, self.reach, self.most_load
        numbers[4:7], numbers[7:16] = self.grip, self.rotation.ravel()
        numbers[16:22], numbers[22:HEAD] = self.load, self.load_stiffness
        table = numbers[HEAD:].reshape(-1, WIDTH)
        table[:, :6], table[:, 6] = self.rows, self.room
        return numbers

    @classmethod
    def unpacked(cls, numbers: np.ndarray) -> ContactRowSet:
        """From the beginning of an array of numbers that may be longer."""
        count = int(numbers[0]) if len(numbers) >= HEAD and numbers[0] >= 0.0 else -1
        if count < 0 or len(numbers) < HEAD + WIDTH * count:
            raise InputError(f"numbers must begin with a packed set of rows; {len(numbers)} do not hold one")
        kept = numbers[: HEAD + WIDTH * count].copy()
        return cls.of(kept[:HEAD], kept[HEAD:].reshape(-1, WIDTH))

    @classmethod
    def of(cls, head: np.ndarray, table: np.ndarray) -> ContactRowSet:
        """From the numbers before the rows and those of the rows, (n, WIDTH), which stay as they are."""
        return cls(
            grip=head[4:7],
            rotation=head[7:16].reshape(3, 3),
            rows=table[:, :6],
            room=table[:, 6],
            reach=float(head[2]),
            stopped=bool(head[1]),
            load=head[16:22],
            load_stiffness=head[22:],
            most_load=float(head[3]),
        )
