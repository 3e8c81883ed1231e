"""What the device knows about the rounds of one truncation: places in the array `state`, int32."""

from __future__ import annotations

import warp as wp

__all__ = ["ACTIVE", "ALL_NEW", "BROKEN", "FOUND", "LIMITED", "LOCAL_ROUNDS", "ROUND", "ROWS", "SHORT", "WHOLE_ROUNDS"]

#: Whether a round is needed; how many there were; pairs that must be shortened in this round; whether all moves are
#: new; vertices limited in the first round; the most pairs found without certificate; contacts; whether a move is not
#: finite.
ACTIVE, ROUND, SHORT, ALL_NEW, LIMITED, FOUND, ROWS, BROKEN = (wp.constant(k) for k in range(8))
#: Rounds in which single vertices are shortened.
LOCAL_ROUNDS = wp.constant(16)
#: After so many more, in each of which bodies that touch move half as far, they only drift.
WHOLE_ROUNDS = wp.constant(4)
