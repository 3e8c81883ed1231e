"""The pairs of mesh features a search found, and the contact record made of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from tangere.broad_phase.deforming import Step
from tangere.query.contacts.record import Contacts, Kind, contact_key
from tangere.query.first_contact.deforming.corner_normals import corner_normals
from tangere.query.first_contact.primitives.details import describe_rows
from tangere.query.first_contact.primitives.narrow_phase.features import EDGE_EDGE, VERTEX_FACE
from tangere.query.first_contact.primitives.narrow_phase.root_isolation import FREE
from tangere.query.first_contact.primitives.narrow_phase.solver import PrimitiveAnswers
from tangere.runtime import SOUND, collect, device_of, reserve_slots

wp.set_module_options(SOUND)

#: A query that is not free, as it is read back: feature numbers, corners, times and status, exact in float64. A struct
#: of ten columns takes ten times as long to get to NumPy.
Hit = wp.types.vector(length=9, dtype=wp.float64)
#: Queries a thread picks hits from.
GRAIN = 32768
#: Hits to make room for at first; more make the picking run twice.
ROOM = 65536


@dataclass(frozen=True)
class Hits:
    """Pairs that are not free: one row each, the four vertices, and what the solver said."""

    kind: np.ndarray
    vertex_on: np.ndarray
    numbers: np.ndarray
    quads: np.ndarray
    time: np.ndarray
    time_upper: np.ndarray
    status: np.ndarray

    @staticmethod
    def none() -> Hits:
        ints = np.zeros(0, np.int32)
        reals = np.zeros(0)
        return Hits(ints, ints, ints.reshape(0, 2), ints.reshape(0, 4), reals, reals, ints)

    @staticmethod
    def of(kind: Kind, vertex_on: int, numbers: wp.array, quads: wp.array, answers: PrimitiveAnswers) -> Hits:
        """The queries of one kind that are not free, picked where they were answered."""
        inputs = [numbers, quads, answers.time, answers.time_upper, answers.status]
        count, device = len(quads), device_of(quads)
        room = min(count, ROOM)
        hits = collect(_append_hits, count, inputs, Hit, device=device, grain=GRAIN, capacity=room).numpy()
        return Hits(
            kind=np.full(len(hits), kind, np.int32),
            vertex_on=np.full(len(hits), vertex_on, np.int32),
            numbers=hits[:, :2].astype(np.int32),
            quads=hits[:, 2:6].astype(np.int32),
            time=hits[:, 6].copy(),
            time_upper=hits[:, 7].copy(),
            status=hits[:, 8].astype(np.int32),
        )

    @property
    def earliest(self) -> float:
        return float(self.time.min()) if len(self.time) else np.inf

    def joined(self, other: Hits) -> Hits:
        return Hits(
            *(
                np.concatenate([mine, theirs])
                for mine, theirs in zip(vars(self).values(), vars(other).values(), strict=True)
            )
        )

    def rows(self, choice: np.ndarray) -> Hits:
        return Hits(*(column[choice] for column in vars(self).values()))

    def order(self) -> np.ndarray:
        """By time, then kind, then feature numbers: the same whatever tree, thread or device found them."""
        by_time = np.argsort(self.time)
        time = self.time[by_time]
        return np.lexsort((self.key, self.time)) if (time[1:] == time[:-1]).any() else by_time

    @property
    def key(self) -> np.ndarray:
        return contact_key(self.kind, self.vertex_on, self.numbers[:, 0], self.numbers[:, 1])


def contacts_of(step: Step, found: Hits) -> Contacts:
    """The contact record of what was found, in canonical order, each pair once."""
    found = found.rows(found.order())
    total = len(found.time)
    touches = np.zeros((total, 14))
    for features in (EDGE_EDGE, VERTEX_FACE):
        rows = np.flatnonzero(found.kind == features.kind)
        if len(rows):
            when = np.column_stack([found.quads[rows], found.time[rows]])
            touches[rows] = describe_rows(features, step.start, step.end, when)
    weights, point_a, point_b, normal, bearers = np.split(touches, [4, 7, 10, 13], axis=1)
    unsure = np.flatnonzero(bearers)
    if len(unsure):
        normal[unsure] = corner_normals(step, found.rows(unsure), touches[unsure])
    numbers = found.numbers.copy()
    swapped = np.flatnonzero(found.vertex_on)
    if len(swapped):
        point_a[swapped], point_b[swapped] = point_b[swapped], point_a[swapped]
        normal[swapped] *= -1.0
        numbers[swapped] = numbers[swapped, ::-1]
    return Contacts.of(
        time=found.time,
        point_a=point_a,
        point_b=point_b,
        normal=normal,
        body_b=len(step.bodies) - 1,
        feature_a=numbers[:, 0],
        feature_b=numbers[:, 1],
        weights=weights,
        kind=found.kind,
        vertex_on=found.vertex_on,
        key=found.key,
    )


@wp.kernel
def _append_hits(
    first: int,
    shard: int,
    numbers: wp.array[wp.vec2i],
    quads: wp.array[wp.vec4i],
    time: wp.array[wp.float64],
    time_upper: wp.array[wp.float64],
    status: wp.array[wp.uint8],
    counts: wp.array[wp.int64],
    capacity: int,
    out: wp.array[Hit],
):
    i = first + wp.tid()
    if status[i] != FREE:
        slot = reserve_slots(counts, shard, 1, capacity)
        if slot >= 0:
            hit = Hit()
            hit[0] = wp.float64(numbers[i][0])
            hit[1] = wp.float64(numbers[i][1])
            for c in range(4):
                hit[2 + c] = wp.float64(quads[i][c])
            hit[6] = time[i]
            hit[7] = time_upper[i]
            hit[8] = wp.float64(status[i])
            out[slot] = hit
