"""The least distance of two moving trees over a whole step: one depth-first search with a shrinking bound.

Question: how near do two rigid bodies come between t = 0 and t = 1, to a relative accuracy?
Method:   U is the least distance seen so far. A pair of boxes, or of triangles, is moved on in time as long as its gap
          certainly stays above (1 - accuracy) U. Boxes that cannot be moved on to the end are opened; triangles are
          evaluated on the way, which lowers U. Nearer children come first, so that U falls early.
          Several queries may share U, if only the nearest of them is asked for: the likely one goes first.
Sound:    U only falls, so what was certified with an older one stays valid: at the end no distance during the step is
          below (1 - accuracy) U, and U is the distance at an instant that was evaluated, rounded up.
Twins:    `cpu.depth_first` by a thread for each group of queries, `cuda.block_search` by a block. Threads of a CPU
          cannot take the second: a process has one stack of blocks.
Known as: branch and bound over node pairs with conservative advancement (Mirtich 1996; Zhang, Lee and Kim 2006).
"""

from __future__ import annotations

import warp as wp

from tangere.bvh.obb import ObbNode, box_centre
from tangere.query.clearance.narrow_phase import NearestApproach
from tangere.query.first_contact.rigid.conservative_advancement import Pair, Relative
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

_ZERO = wp.constant(wp.float64(0.0))


@wp.func
def centre_distance(pairs: wp.array[Pair], row: int, now: Relative, a: ObbNode, b: ObbNode) -> wp.float64:
    """About how far two boxes are apart: the distance of the balls about them."""
    apart = (
        now.point
        + now.rotation * (box_centre(b) - pairs[row].bounds_b.pivot)
        - (box_centre(a) - pairs[row].bounds_a.pivot)
    )
    return wp.length(apart) - wp.float64(a.radius) - wp.float64(b.radius)


@wp.func
def likely_query(known: NearestApproach, begin: int) -> int:
    """The number in its group of the query of which something near is known: it goes first, so that U falls early."""
    return wp.where(known.time >= _ZERO, known.query - begin, 0)


@wp.func
def query_in_turn(k: int, likely: int) -> int:
    """The k-th query of a group in the order of the search: the likely one, then those before it, then the others."""
    result = wp.where(k <= likely, k - 1, k)
    return wp.where(k == 0, likely, result)
