"""First contact of meshes whose vertices move along lines: two of them, or one with itself.

Method: trees over vertices, edges and faces, with swept boxes; certificates inside the traversal drop almost every
        pair; what is left is solved by the primitive queries. For the earliest time a random hundredth of the pairs is
        solved first: its earliest time t_c bounds all the rest, so boxes and certificates only need to cover [0, t_c].
        The pass over everything certifies [0, t_c], and t_c is a lower bound of the contact that gave it: so the answer
        is the minimum of both.
Sound:  a pair is dropped only when certified free. Pairs that share a vertex always touch and are left out: a triangle
        that turns over its own edge is no contact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import warp as wp

from tangere.partition.step import FittedBody, Step
from tangere.partition.tree_pairs import Side, pairs
from tangere.query.contacts import Contacts, Kind, Status, contact_key
from tangere.query.first_contact.batch import answer
from tangere.query.first_contact.details import describe
from tangere.query.first_contact.features import EDGE_EDGE, VERTEX_FACE, Features
from tangere.query.first_contact.options import Mode, Options
from tangere.query.first_contact.overlap import first_overlap
from tangere.query.first_contact.published import Reading
from tangere.query.first_contact.reject import every_candidate, keep_function, shares_function
from tangere.query.first_contact.result import FirstContact
from tangere.runtime import SOUND, InputError, launch, using_threads
from tangere.shape import Mesh, Moving

wp.set_module_options(SOUND)

__all__ = ["Candidates", "all_contacts", "candidates", "first_contact"]

BroadPhase = Literal["tree", "brute"]

#: Times are early by up to this; pairs that tie with the sampled one must be seen, or the answer would depend on it.
TIE = 1e-6
#: Boxes of the whole step serve as well if the time to cover is not much shorter.
WORTH_FITTING = 0.6


def first_contact(
    a: Mesh | Moving,
    b: Mesh | Moving | None = None,
    *,
    mode: Mode = "sound",
    start: Literal["checked", "trusted"] = "checked",
    separation: float = 0.0,
    tolerance: float | None = None,
    reading: Reading | None = None,
    broad_phase: BroadPhase = "tree",
    device: str | None = None,
    threads: int | None = None,
) -> FirstContact:
    """The earliest time in [0, 1] at which `a` touches `b`, or itself if there is no `b`.

    Args:
        a, b: meshes, at rest or moving: `mesh.moving(Linear(end))`.
        mode, separation, tolerance, reading: see `Options`.
        start: "trusted" skips the search for overlap at t = 0 (for step loops that never leave an overlap behind).
        broad_phase: "tree", or "brute": every pair, for checks on small meshes.
        device: where to compute; None means where the motion's data is, else CUDA if present.
        threads: CPU threads; None means all, or TANGERE_THREADS.

    Example:
        >>> import tangere as tg
        >>> ball = tg.generate.icosphere(subdivisions=2)
        >>> other = ball.at([[1, 0, 0, 3], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
        >>> hit = tg.first_contact(ball.moving(tg.Linear(ball.vertices + [2, 0, 0])), other, device="cpu")
        >>> hit.status.name, round(hit.time, 9)
        ('CONTACT', 0.5)
    """
    options, trusted = _options(mode, separation, tolerance, reading, start, broad_phase)
    with using_threads(threads):
        step = Step.of([a] if b is None else [a, b], device)
        if not trusted:
            overlap = first_overlap(step)
            if overlap is not None:
                return FirstContact(0.0, 0.0, Status.START, overlap)
        bodies = step.fitted(1.0, 0.5 * options.separation)
        found, until = _Found.none(), 1.0
        if broad_phase == "tree":
            found = _search(step, bodies, options, broad_phase, until, sampled=True)
            until = min(1.0, found.earliest + TIE)
        if until < WORTH_FITTING:
            bodies = step.fitted(until, 0.5 * options.separation)
        return _first(step, found.joined(_search(step, bodies, options, broad_phase, until, sampled=False)))


def all_contacts(
    a: Mesh | Moving,
    b: Mesh | Moving | None = None,
    *,
    mode: Mode = "sound",
    start: Literal["checked", "trusted"] = "checked",
    separation: float = 0.0,
    tolerance: float | None = None,
    reading: Reading | None = None,
    broad_phase: BroadPhase = "tree",
    device: str | None = None,
    threads: int | None = None,
) -> Contacts:
    """The first contact of every pair of features that touch within the step, by rising time.

    Arguments as for `first_contact`. If the meshes overlap at t = 0 (an edge meets a face), the first row says so once,
    as a contact of kind OVERLAP.
    """
    options, trusted = _options(mode, separation, tolerance, reading, start, broad_phase)
    with using_threads(threads):
        step = Step.of([a] if b is None else [a, b], device)
        overlap = None if trusted else first_overlap(step)
        bodies = step.fitted(1.0, 0.5 * options.separation)
        contacts = _contacts(step, _search(step, bodies, options, broad_phase, until=1.0, sampled=False))
        return contacts if overlap is None else Contacts.joined([overlap, contacts])


@dataclass(frozen=True)
class Candidates:
    """Pairs whose swept boxes meet and that share no vertex, as numbers of features of a and b."""

    vertex_face: np.ndarray  #: (n, 2): vertex of a, face of b
    edge_edge: np.ndarray  #: (n, 2): edge of a, edge of b
    face_vertex: np.ndarray  #: (n, 2): face of a, vertex of b (none for a mesh with itself)


def candidates(
    a: Mesh | Moving,
    b: Mesh | Moving | None = None,
    *,
    separation: float = 0.0,
    device: str | None = None,
    threads: int | None = None,
) -> Candidates:
    """The pairs a narrow phase would have to look at; `first_contact` never stores them."""
    options = Options(separation=separation)
    with using_threads(threads):
        step = Step.of([a] if b is None else [a, b], device)
        bodies = step.fitted(1.0, 0.5 * options.separation)
        tables = {}
        for job in _jobs(bodies):
            found = job.pairs(step, every_candidate, 1.0, options.separation, False)
            tables[job.vertex_on, job.features.kind] = _sorted_rows(job.numbers(step, found)[0])
        return Candidates(
            vertex_face=tables[0, Kind.VERTEX_FACE],
            edge_edge=tables[0, Kind.EDGE_EDGE],
            face_vertex=tables.get((1, Kind.VERTEX_FACE), np.zeros((0, 2), np.int32))[:, ::-1],
        )


@dataclass(frozen=True)
class _Job:
    """One kind of pair between two bodies: edges with edges, or vertices of one with faces of the other."""

    features: Features
    first: Side
    second: Side
    vertex_on: int  #: 1 where the first side is body b

    def pairs(self, step: Step, keep: wp.Function, until: float, separation: float, sampled: bool) -> wp.array:
        return pairs(
            keep,
            self.first,
            self.second,
            step.start,
            step.end,
            until=until,
            margin=separation,
            sampled=sampled,
            shares=shares_function(self.features),
        )

    def numbers(self, step: Step, found: wp.array) -> tuple[np.ndarray, wp.array]:
        """Feature numbers (n, 2) of places in the trees, and the four vertices of each query.

        Within one mesh the smaller edge comes first: the answer must not depend on the tree.
        """
        count, device = len(found), step.device
        numbers = wp.empty((count, 2), dtype=wp.int32, device=device)
        quads = wp.empty(count, dtype=wp.vec4i, device=device)
        a, b = self.first, self.second
        ordered = int(a is b)
        inputs = [
            found,
            ordered,
            a.tree.items.shape[1],
            a.tree.order,
            a.tree.items,
            a.base,
            b.tree.order,
            b.tree.items,
            b.base,
        ]
        launch(_numbers, count, inputs, [numbers, quads], device=device)
        return numbers.numpy(), quads


def _jobs(bodies: list[FittedBody]) -> list[_Job]:
    a, b = bodies[0], bodies[-1]
    edges = [Side(body.body.edges, body.edges, body.body.base) for body in bodies]
    jobs = [
        _Job(EDGE_EDGE, edges[0], edges[-1], 0),
        _Job(VERTEX_FACE, Side(a.body.vertices, a.vertices, a.body.base), Side(b.body.faces, b.faces, b.body.base), 0),
    ]
    if a is not b:
        jobs.append(
            _Job(
                VERTEX_FACE, Side(b.body.vertices, b.vertices, b.body.base), Side(a.body.faces, a.faces, a.body.base), 1
            )
        )
    return jobs


@dataclass(frozen=True)
class _Found:
    """Pairs that are not free: one row each, the four vertices, and what the solver said."""

    kind: np.ndarray
    vertex_on: np.ndarray
    numbers: np.ndarray
    quads: np.ndarray
    time: np.ndarray
    time_upper: np.ndarray
    status: np.ndarray

    @staticmethod
    def none() -> _Found:
        ints = np.zeros(0, np.int32)
        reals = np.zeros(0)
        return _Found(ints, ints, ints.reshape(0, 2), ints.reshape(0, 4), reals, reals, ints)

    @property
    def earliest(self) -> float:
        return float(self.time.min()) if len(self.time) else np.inf

    def joined(self, other: _Found) -> _Found:
        return _Found(
            *(
                np.concatenate([mine, theirs])
                for mine, theirs in zip(vars(self).values(), vars(other).values(), strict=True)
            )
        )

    def rows(self, choice: np.ndarray) -> _Found:
        return _Found(*(column[choice] for column in vars(self).values()))

    def order(self) -> np.ndarray:
        """By time, then kind, then feature numbers: the same whatever tree, thread or device found them."""
        by_time = np.argsort(self.time)
        time = self.time[by_time]
        return np.lexsort((self.key, self.time)) if (time[1:] == time[:-1]).any() else by_time

    @property
    def key(self) -> np.ndarray:
        return contact_key(self.kind, self.vertex_on, self.numbers[:, 0], self.numbers[:, 1])


def _search(
    step: Step, bodies: list[FittedBody], options: Options, broad_phase: BroadPhase, until: float, sampled: bool
) -> _Found:
    """Every pair of features that may touch by `until`, solved over the whole step; the boxes cover that time."""
    found = _Found.none()
    for job in _jobs(bodies):
        if sampled and len(found.time):
            break  # any early time will do
        if broad_phase == "brute":
            survivors = _every_pair(job, step.device)
        else:
            keep = (
                every_candidate
                if options.mode == "published"
                else keep_function(job.features, options.separation > 0.0)
            )
            survivors = job.pairs(step, keep, until, options.separation, sampled)
        if not len(survivors):
            continue
        numbers, quads = job.numbers(step, survivors)
        answers = answer(job.features, step.start, step.end, quads, options)
        status = answers.status.numpy()
        hit = np.flatnonzero(status != Status.FREE)
        found = found.joined(
            _Found(
                kind=np.full(len(hit), job.features.kind, np.int32),
                vertex_on=np.full(len(hit), job.vertex_on, np.int32),
                numbers=numbers[hit],
                quads=quads.numpy()[hit],
                time=answers.time.numpy()[hit],
                time_upper=answers.time_upper.numpy()[hit],
                status=status[hit].astype(np.int32),
            )
        )
    return found


def _every_pair(job: _Job, device: wp.Device) -> wp.array:
    """All places (i, j) whose features share no vertex: the oracle of the tree."""
    a, b = job.first, job.second
    i, j = np.indices((len(a.tree.order), len(b.tree.order))).reshape(2, -1)
    if a is b:
        i, j = i[i < j], j[i < j]
    va, vb = a.tree.items.numpy()[i] + a.base, b.tree.items.numpy()[j] + b.base
    apart = ~(va[:, :, None] == vb[:, None, :]).any(axis=(1, 2))
    return wp.array(np.stack([i, j], axis=1)[apart].astype(np.int32), dtype=wp.vec2i, device=device)


def _first(step: Step, found: _Found) -> FirstContact:
    if not len(found.time):
        return FirstContact(np.inf, np.inf, Status.FREE)
    chosen = found.order()[:1]
    contact = _contacts(step, found.rows(chosen))
    status = Status(int(found.status[chosen[0]]))
    return FirstContact(float(found.time[chosen[0]]), float(found.time_upper.min()), status, contact)


def _contacts(step: Step, found: _Found) -> Contacts:
    """The contact record of what was found, in canonical order, each pair once."""
    found = found.rows(found.order())
    total = len(found.time)
    columns = {
        "kind": np.zeros(total, np.uint8),
        "weights": np.zeros((total, 4)),
        "point_a": np.zeros((total, 3)),
        "point_b": np.zeros((total, 3)),
        "normal": np.zeros((total, 3)),
    }
    for features in (EDGE_EDGE, VERTEX_FACE):
        rows = np.flatnonzero(found.kind == features.kind)
        if not len(rows):
            continue
        device = step.device
        details = describe(
            features,
            step.start,
            step.end,
            wp.array(found.quads[rows], dtype=wp.vec4i, device=device),
            wp.array(found.time[rows], dtype=wp.float64, device=device),
            wp.array(found.status[rows].astype(np.uint8), dtype=wp.uint8, device=device),
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


def _options(mode, separation, tolerance, reading, start, broad_phase) -> tuple[Options, bool]:
    if broad_phase not in ("tree", "brute"):
        raise InputError(f"broad_phase must be 'tree' or 'brute', not {broad_phase!r}")
    if start not in ("checked", "trusted"):
        raise InputError(f"start must be 'checked' or 'trusted', not {start!r}")
    return Options(mode, separation, tolerance, reading or Reading()), start == "trusted"


def _sorted_rows(table: np.ndarray) -> np.ndarray:
    return table[np.lexsort((table[:, 1], table[:, 0]))]


@wp.kernel
def _numbers(
    first: int,
    found: wp.array[wp.vec2i],
    ordered: int,
    width: int,
    order_a: wp.array[int],
    items_a: wp.array2d[int],
    base_a: int,
    order_b: wp.array[int],
    items_b: wp.array2d[int],
    base_b: int,
    numbers: wp.array2d[int],
    quads: wp.array[wp.vec4i],
):
    k = first + wp.tid()
    i = found[k][0]
    j = found[k][1]
    if ordered == 1 and order_a[i] > order_b[j]:
        other = i
        i = j
        j = other
    numbers[k, 0] = order_a[i]
    if width == 1:
        numbers[k, 0] = items_a[i, 0]  # loose vertices are not in the tree
    numbers[k, 1] = order_b[j]
    quad = wp.vec4i()
    for c in range(4):
        if c < width:
            quad[c] = items_a[i, c] + base_a
        else:
            quad[c] = items_b[j, c - width] + base_b
    quads[k] = quad
