"""One question by a whole GPU: the earliest few thousand pairs at a time, each by its own thread.

Method:   pairs wait in one array, the earliest at its end. A round takes up to `WIDTH` of them from there, expands each
          (or solves it, if both boxes are leaves), and puts the children back, sorted only when they are more than
          a round takes. So the search is depth-first in blocks, and the array never holds more than WIDTH pairs for
          every level of the trees. The earliest time found is shared through one number.
Bits:     as for `search`, the order does not matter: the same answer as on one CPU thread up to the device's own sines.
Also:     runs on the CPU, on one thread, so that it can be tested there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.bound.obb_node import ObbNode
from tangere.motion.rigid import RigidMotion
from tangere.query.first_contact.rigid.advance import RigidQuery, advanced, pair_of, relative_at
from tangere.query.first_contact.rigid.culling import Cones, culling_of, recedes
from tangere.query.first_contact.rigid.desk import NONE_YET, Desk
from tangere.query.first_contact.rigid.search import COUNTERS, Best, Candidate, solve_leaf
from tangere.runtime import SOUND, launch, load, sort_pairs
from tangere.runtime.launching import Recorded

wp.set_module_options(SOUND)

__all__ = ["search_rounds"]

#: Pairs per round: fewer rounds when it is larger, but more pairs that a contact found meanwhile would have dropped.
WIDTH = 4096
#: Contacts kept at first; when they are more (many pairs at the same instant), the search is done again.
HITS = 4096


def search_rounds(desk: Desk) -> None:
    """Search the only question of `desk` in rounds."""
    hits = HITS
    rounds = _Rounds(desk, hits)
    while not rounds.run():
        hits *= 8
        rounds = _Rounds(desk, hits)


class _Rounds:
    """Buffers and recorded launches of a search in rounds."""

    def __init__(self, desk: Desk, hits: int) -> None:
        device = desk.device
        levels = desk.a.depth + desk.b.depth + 2
        self.desk, self.capacity = desk, hits
        self.waiting = wp.empty((levels + 1) * WIDTH, dtype=Candidate, device=device)
        self.children = wp.empty(2 * WIDTH, dtype=Candidate, device=device)
        self.bound = wp.zeros(1, dtype=wp.float64, device=device)
        self.counts = wp.zeros(2, dtype=wp.int32, device=device)  # children, hits
        self.hits = wp.empty(hits, dtype=Best, device=device)
        self.counters = wp.zeros((WIDTH, COUNTERS), dtype=wp.int64, device=device)
        load(_round, device)
        shared = [self.bound, self.counts, self.hits, hits, self.counters]
        self._round = Recorded(_round, [*desk.inputs, desk.cones, self.waiting, self.children, *shared], device)

    def run(self) -> bool:
        """Whether all contacts found had room."""
        root: Any = np.zeros(1, Candidate.numpy_dtype())
        root["a"] = -1  # not yet looked at
        wp.copy(self.waiting, wp.array(root, dtype=Candidate, device=self.desk.device), count=1)
        self.bound.fill_(1.0)
        self.counts.zero_()
        self.counters.zero_()
        end = 1
        while end:
            taken = min(end, WIDTH)
            end -= taken
            self._round.launch(taken, 0, end)
            found, hits = (int(n) for n in self.counts.numpy())
            if hits > self.capacity:
                return False
            self.counts[:1].zero_()
            if found > WIDTH:
                self._sorted(found)
            if found:
                wp.copy(self.waiting, self.children, end, 0, found)
            end += found
        best = self.hits.numpy()[:hits]
        first = np.lexsort((best["b"], best["a"], best["pierced"] < 0, best["time"]))[:1]
        self.desk.bests.assign(best[first] if hits else NONE_YET)
        self.desk.fetch()
        self.desk.host_counters = self.counters.numpy().sum(axis=0, keepdims=True)
        return True

    def _sorted(self, count: int) -> None:
        """Put the earliest of the children last."""
        device = self.desk.device
        keys = wp.empty(count, dtype=wp.float64, device=device)
        order = wp.empty(count, dtype=wp.int32, device=device)
        launch(_keys, count, [self.children], [keys, order], device=device, threads=1)
        _, order = sort_pairs(keys, order)
        unsorted = wp.clone(self.children)
        launch(_gather, count, [unsorted, order], [self.children], device=device, threads=1)


@wp.kernel
def _keys(first: int, children: wp.array[Candidate], keys: wp.array[wp.float64], order: wp.array[int]):
    i = first + wp.tid()
    keys[i] = -children[i].time
    order[i] = i


@wp.kernel
def _gather(first: int, unsorted: wp.array[Candidate], order: wp.array[int], children: wp.array[Candidate]):
    i = first + wp.tid()
    children[i] = unsorted[order[i]]


@wp.kernel
def _round(
    first: int,
    begin: int,
    queries: wp.array[RigidQuery],
    motions: wp.array[RigidMotion],
    nodes_a: wp.array[ObbNode],
    corners_a: wp.array[wp.vec3d],
    nodes_b: wp.array[ObbNode],
    corners_b: wp.array[wp.vec3d],
    cones: Cones,
    waiting: wp.array[Candidate],
    children: wp.array[Candidate],
    bound: wp.array[wp.float64],
    counts: wp.array[int],
    hits: wp.array[Best],
    capacity: int,
    counters: wp.array2d[wp.int64],
):
    """Expand or solve pair `begin + i`; counters are per thread."""
    i = first + wp.tid()
    item = waiting[begin + i]
    until = bound[0]
    if not item.time > until:
        query = queries[0]
        pair = pair_of(query, motions, nodes_a, nodes_b)
        a = nodes_a[query.node_a + wp.max(item.a, 0)]
        b = nodes_b[query.node_b + item.b]
        culling = culling_of(query, pair, motions)
        if recedes(culling, cones, a, b, query.node_a + wp.max(item.a, 0), query.node_b + item.b):
            counters[i, 3] = counters[i, 3] + wp.int64(1)
        elif item.a >= 0 and a.right < 0 and b.right < 0:
            found = solve_leaf(
                query, pair, motions, corners_a, corners_b, a.triangle, b.triangle, item.time, until, counters, i
            )
            if found.time <= wp.float64(1.0) and found.time <= until:
                wp.atomic_min(bound, 0, found.time)
                place = wp.atomic_add(counts, 1, 1)
                if place < capacity:
                    hits[place] = found
        else:
            now = relative_at(query, pair, motions, item.time)
            fresh = int(2)
            if item.a < 0:
                fresh = 1
            for k in range(fresh):
                child = Candidate()
                child.a = wp.max(item.a, 0)
                child.b = item.b
                if item.a >= 0:
                    if b.right < 0 or (a.right >= 0 and a.radius >= b.radius):
                        child.a = item.a + 1
                        if k == 1:
                            child.a = a.right
                    else:
                        child.b = item.b + 1
                        if k == 1:
                            child.b = b.right
                box_a = nodes_a[query.node_a + child.a]
                box_b = nodes_b[query.node_b + child.b]
                child.size = box_a.radius + box_b.radius
                child.time = advanced(query, pair, motions, box_a, box_b, now, item.time, until, counters, i)
                if not child.time > until:
                    children[wp.atomic_add(counts, 0, 1)] = child
