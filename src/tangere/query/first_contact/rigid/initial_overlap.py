"""Do bodies that are within tolerance of each other at t = 0 meet there? Then the answer is START, not CONTACT.

The search sees edges go through faces by more than rounding. What lies face on face, or crosses edge on edge as aligned
boxes do, is asked of `intersects`, which is exact. It is asked only where the first contact is at t = 0.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tangere.query.first_contact.rigid.query_batch import RigidQueryBatch
from tangere.query.first_contact.rigid.traversal import MEETS
from tangere.query.intersection.api import intersects
from tangere.shape.mesh import Moving

__all__ = ["classify_initial_overlap"]


def classify_initial_overlap(desk: RigidQueryBatch, pair: Callable[[int], tuple[Moving, Moving]]) -> None:
    """Tell the desk which of its questions have bodies that meet at t = 0.

    Args:
        pair: the two bodies of a question.
    """
    if desk.host_bests["time"].all():  # as a rule, and all that most questions pay
        return
    unclear = (desk.host_bests["time"] == 0.0) & (desk.host_bests["pierced"] < 0)
    found = desk.host_bests.copy()
    found["time"][~unclear] = 2.0
    for row in np.flatnonzero(unclear):
        if intersects(*pair(int(row)), device=desk.device):
            found["pierced"][row] = MEETS
    desk.put(found)
