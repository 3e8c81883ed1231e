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
        table = numbers[HEAD : HEAD + WIDTH * count].reshape(-1, WIDTH)
        return cls(
            grip=numbers[4:7].copy(),
            rotation=numbers[7:16].reshape(3, 3).copy(),
            rows=table[:, :6].copy(),
            room=table[:, 6].copy(),
            reach=float(numbers[2]),
            stopped=bool(numbers[1]),
            load=numbers[16:22].copy(),
            load_stiffness=numbers[22:HEAD].copy(),
            most_load=float(numbers[3]),
        )
