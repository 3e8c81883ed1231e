"""The pairs of mesh features a search found, and the contact record made of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from tangere.partition.step import Step
from tangere.query.contacts import Contacts, Kind, contact_key
from tangere.query.first_contact.decide import FREE
from tangere.query.first_contact.details import describe
from tangere.query.first_contact.features import EDGE_EDGE, VERTEX_FACE
from tangere.query.first_contact.sound import Answers
from tangere.runtime import SOUND, collect, device_of, launch, take

wp.set_module_options(SOUND)

__all__ = ["Found", "contacts_of"]

#: Contacts that cost less on the CPU than in launches and copies.
FEW = 64
#: Queries a thread picks hits from.
GRAIN = 32768
#: Hits to make room for at first; more make the picking run twice.
ROOM = 65536


@wp.struct
class Hit:
    """What is read back of a query that is not free; the columns of `Found` that differ from row to row."""

    numbers: wp.vec2i
    quads: wp.vec4i
    time: wp.float64
    time_upper: wp.float64
    status: int


@dataclass(frozen=True)
class Found:
    """Pairs that are not free: one row each, the four vertices, and what the solver said."""

    kind: np.ndarray
    vertex_on: np.ndarray
    numbers: np.ndarray
    quads: np.ndarray
    time: np.ndarray
    time_upper: np.ndarray
    status: np.ndarray

    @staticmethod
    def none() -> Found:
        ints = np.zeros(0, np.int32)
        reals = np.zeros(0)
        return Found(ints, ints, ints.reshape(0, 2), ints.reshape(0, 4), reals, reals, ints)

    @staticmethod
    def of(kind: Kind, vertex_on: int, numbers: wp.array, quads: wp.array, answers: Answers) -> Found:
        """The queries of one kind that are not free, picked where they were answered."""
        inputs = [numbers, quads, answers.time, answers.time_upper, answers.status]
        count, device = len(quads), device_of(quads)
        room = min(count, ROOM)
        hits = collect(_append_hits, count, inputs, Hit, device=device, grain=GRAIN, capacity=room).numpy()
        return Found(
            kind=np.full(len(hits), kind, np.int32),
            vertex_on=np.full(len(hits), vertex_on, np.int32),
            **{name: np.ascontiguousarray(hits[name]) for name in hits.dtype.names or ()},
        )

    @property
    def earliest(self) -> float:
        return float(self.time.min()) if len(self.time) else np.inf

    def joined(self, other: Found) -> Found:
        return Found(
            *(
                np.concatenate([mine, theirs])
                for mine, theirs in zip(vars(self).values(), vars(other).values(), strict=True)
            )
        )

    def rows(self, choice: np.ndarray) -> Found:
        return Found(*(column[choice] for column in vars(self).values()))

    def order(self) -> np.ndarray:
        """By time, then kind, then feature numbers: the same whatever tree, thread or device found them."""
        by_time = np.argsort(self.time)
        time = self.time[by_time]
        return np.lexsort((self.key, self.time)) if (time[1:] == time[:-1]).any() else by_time

    @property
    def key(self) -> np.ndarray:
        return contact_key(self.kind, self.vertex_on, self.numbers[:, 0], self.numbers[:, 1])


def contacts_of(step: Step, found: Found) -> Contacts:
    """The contact record of what was found, in canonical order, each pair once."""
    found = found.rows(found.order())
    total = len(found.time)
    columns = {
        "weights": np.zeros((total, 4)),
        "point_a": np.zeros((total, 3)),
        "point_b": np.zeros((total, 3)),
        "normal": np.zeros((total, 3)),
    }
    for features in (EDGE_EDGE, VERTEX_FACE):
        rows = np.flatnonzero(found.kind == features.kind)
        if not len(rows):
            continue
        start, end, quads = _where_they_are(step, found.quads[rows])
        details = describe(
            features,
            start,
            end,
            quads,
            wp.array(found.time[rows], dtype=wp.float64, device=start.device),
            wp.array(found.status[rows].astype(np.uint8), dtype=wp.uint8, device=start.device),
        )
        for name, column in columns.items():
            column[rows] = getattr(details, name).numpy()
    point_a, point_b, normal, numbers = columns["point_a"], columns["point_b"], columns["normal"], found.numbers.copy()
    swapped = np.flatnonzero(found.vertex_on)
    if len(swapped):
        point_a[swapped], point_b[swapped] = point_b[swapped], point_a[swapped]
        normal[swapped] *= -1.0
        numbers[swapped] = numbers[swapped, ::-1]
    return Contacts(
        query=np.zeros(total, np.int32),
        time=found.time,
        point_a=point_a,
        point_b=point_b,
        normal=normal,
        gap=np.einsum("ij,ij->i", point_a - point_b, normal),
        body_a=np.zeros(total, np.int32),
        body_b=np.full(total, len(step.bodies) - 1, np.int32),
        feature_a=numbers[:, 0].astype(np.int32),
        feature_b=numbers[:, 1].astype(np.int32),
        weights=columns["weights"],
        kind=found.kind.astype(np.uint8),
        vertex_on=found.vertex_on.astype(np.uint8),
        key=found.key,
    )


def _where_they_are(step: Step, quads: np.ndarray) -> tuple[wp.array, wp.array, wp.array | None]:
    """Start, end and quads for `describe`; a few contacts are fetched from CUDA in one go and described on the CPU."""
    on_device = wp.array(quads, dtype=wp.vec4i, device=step.device)
    if len(quads) > FEW or not step.device.is_cuda:
        return step.start, step.end, on_device
    both = wp.empty((2, 4 * len(quads)), dtype=wp.vec3d, device=step.device)
    launch(_fetch, len(quads), [on_device, step.start, step.end], [both], device=step.device)
    start, end = both.numpy()
    return wp.array(start, dtype=wp.vec3d, device="cpu"), wp.array(end, dtype=wp.vec3d, device="cpu"), None


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
        place = take(counts, shard, 1, capacity)
        if place >= 0:
            out[place] = Hit(numbers[i], quads[i], time[i], time_upper[i], int(status[i]))


@wp.kernel
def _fetch(
    first: int,
    quads: wp.array[wp.vec4i],
    start: wp.array[wp.vec3d],
    end: wp.array[wp.vec3d],
    both: wp.array2d[wp.vec3d],
):
    k = first + wp.tid()
    for c in range(4):
        both[0, 4 * k + c] = start[quads[k][c]]
        both[1, 4 * k + c] = end[quads[k][c]]
