"""What the device knows about the iterations of one truncation: places in the array `state`, int32."""

from __future__ import annotations

import warp as wp

#: Whether an iteration is needed; how many there were; pairs that must be shortened in this one; whether all moves are
#: new; vertices limited in the first one; the most pairs found without certificate; contacts; whether a move is not
#: finite.
ACTIVE, ITERATION, SHORT, ALL_NEW, LIMITED, FOUND, ROWS, NOT_FINITE = (wp.constant(k) for k in range(8))
#: Iterations in which single vertices are shortened.
LOCAL_ITERATIONS = wp.constant(16)
#: After so many more, in each of which bodies that touch move half as far, they only drift.
ISLAND_ITERATIONS = wp.constant(4)
