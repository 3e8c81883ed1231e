"""What two processes that share a hand tell each other: dtypes of the records in shared memory."""

from __future__ import annotations

import numpy as np

from tangere.hand.coupling import ContactRowSet
from tangere.hand.coupling.fast_loop import PROXY_NUMBERS
from tangere.hand.coupling.fast_tick import CouplingState
from tangere.hand.coupling.rows import HEAD, WIDTH

#: What the slow loop orders: clutch, and how often to take a lost device again.
ORDER = np.dtype([("clutch", np.int64), ("resumes", np.int64)])
#: What the fast loop tells: its state, where it has the part, its ticks.
LOOP_STATE = np.dtype(CouplingState.numpy_dtype())
STATE = np.dtype([("state", LOOP_STATE), ("proxy", np.float64, PROXY_NUMBERS), ("ticks", np.int64)])
#: Contacts as numbers: what stands before the rows, and a row.
ROWS_HEAD, ROWS_ROW = np.dtype([("numbers", np.float64, HEAD)]), np.dtype([("numbers", np.float64, WIDTH)])


def packed_rows(message: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A packed set of rows as a record and its rows."""
    head, rows = np.zeros(1, ROWS_HEAD), np.zeros((len(message) - HEAD) // WIDTH, ROWS_ROW)
    head["numbers"][0] = message[:HEAD]
    rows["numbers"] = message[HEAD:].reshape(-1, WIDTH)
    return head, rows


def unpacked_rows(head: np.ndarray, rows: np.ndarray) -> ContactRowSet:
    """The other way."""
    return ContactRowSet.of(head["numbers"], rows["numbers"])
