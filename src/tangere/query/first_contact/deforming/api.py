"""First contact of meshes whose vertices move along lines: two of them, or one with itself.

Question: the earliest time in [0, 1] at which any vertex-face or edge-edge pair without a common vertex touches.
Method: trees over vertices, edges and faces, with moving boxes; certificates inside the traversal drop almost every
        pair; what is left is solved by the primitive queries. For the earliest time a random hundredth of the pairs is
        solved first: its earliest time t_c bounds all the rest, so boxes and certificates only need to cover [0, t_c].
        The pass over everything certifies [0, t_c], and t_c is a lower bound of the contact that gave it: so the answer
        is the minimum of both.
Sound:  a pair is dropped only when certified free. Pairs that share a vertex always touch and are left out: a triangle
        that turns over its own edge is no contact.
Known as: continuous collision detection of deformable meshes, BVH of swept AABBs, self-collision (Bridson, Fedkiw and
        Anderson 2002).
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.broad_phase.deforming import FittedMesh, Step, keep_all
from tangere.query.contacts.record import Contacts, Kind, Status
from tangere.query.first_contact.deforming.culling import separating_plane_filter
from tangere.query.first_contact.deforming.details import Hits, contacts_of
from tangere.query.first_contact.deforming.feature_searches import every_pair, feature_pair_searches
from tangere.query.first_contact.deforming.initial_overlap import first_overlap, starts_nearer
from tangere.query.first_contact.options import Accuracy, DeformingOptions, Mode, Start, check_start
from tangere.query.first_contact.primitives.batch import solve_batch
from tangere.query.first_contact.result import Candidates, FirstContact
from tangere.runtime import using_threads
from tangere.shape import Moving
from tangere.shape.mesh import Mesh

#: Reported times are early, by up to 1e-6 as a rule: pairs that tie with the sampled one must be seen by the full pass
#: as well, or which of them is reported would depend on the sample. The time is never late, whatever this is.
TIE = 1e-6
#: Boxes of the whole step serve as well if the time to cover is not much shorter.
WORTH_FITTING = 0.6


def deforming_first_contact(
    a: Mesh | Moving,
    b: Mesh | Moving | None = None,
    *,
    mode: Mode = "sound",
    start: Start = "checked",
    separation: float = 0.0,
    tolerance: float | None = None,
    options: DeformingOptions | None = None,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> FirstContact:
    """The earliest time in [0, 1] at which `a` touches `b`, or itself if there is no `b`.

    Args:
        a, b: meshes, at rest or moving: `mesh.moving(Linear(end))`.
        mode, separation, tolerance: see `Accuracy`.
        start: "trusted" skips the search for overlap at t = 0 (for step loops that never leave an overlap behind).
        options: the broad phase.
        device: where to compute; None means where the motion's data is, else CUDA if present.
        threads: CPU threads; None means all, or TANGERE_THREADS.
    """
    accuracy, options = Accuracy(mode, separation, tolerance), options or DeformingOptions()
    check_start(start)
    with using_threads(threads):
        step = Step.of([a] if b is None else [a, b], device)
        if start == "checked":
            overlap = first_overlap(step)
            if overlap is not None:
                return FirstContact(0.0, 0.0, Status.START, overlap)
        bodies = step.fitted(1.0, 0.5 * accuracy.separation)
        found, until = Hits.none(), 1.0
        if options.broad_phase == "tree":
            found = _search(step, bodies, accuracy, options.broad_phase, until, sampled=True)
            until = min(1.0, found.earliest + TIE)
        if until < WORTH_FITTING:
            bodies = step.fitted(until, 0.5 * accuracy.separation)
        found = found.joined(_search(step, bodies, accuracy, options.broad_phase, until, sampled=False))
        return _first(step, found, accuracy, decided=start == "checked")


def deforming_all_contacts(
    a: Mesh | Moving,
    b: Mesh | Moving | None = None,
    *,
    mode: Mode = "sound",
    start: Start = "checked",
    separation: float = 0.0,
    tolerance: float | None = None,
    options: DeformingOptions | None = None,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> Contacts:
    """The first contact of every pair of features that touch within the step, by rising time.

    Arguments as for `first_contact`. If the meshes overlap at t = 0 (an edge meets a face), the first row says so once,
    as a contact of kind OVERLAP.
    """
    accuracy, options = Accuracy(mode, separation, tolerance), options or DeformingOptions()
    check_start(start)
    with using_threads(threads):
        step = Step.of([a] if b is None else [a, b], device)
        overlap = first_overlap(step) if start == "checked" else None
        bodies = step.fitted(1.0, 0.5 * accuracy.separation)
        contacts = contacts_of(step, _search(step, bodies, accuracy, options.broad_phase, until=1.0, sampled=False))
        return contacts if overlap is None else Contacts.joined([overlap, contacts])


def deforming_candidates(
    a: Mesh | Moving,
    b: Mesh | Moving | None = None,
    *,
    separation: float = 0.0,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> Candidates:
    """The pairs a narrow phase would have to look at; `first_contact` never stores them."""
    accuracy = Accuracy(separation=separation)
    with using_threads(threads):
        step = Step.of([a] if b is None else [a, b], device)
        bodies = step.fitted(1.0, 0.5 * accuracy.separation)
        tables = {}
        for search in feature_pair_searches(bodies):
            found = search.pairs(step, keep_all, 1.0, accuracy.separation, False)
            tables[search.vertex_on, search.features.kind] = _sorted_rows(search.queries(step, found)[0].numpy())
        return Candidates(
            vertex_face=tables[0, Kind.VERTEX_FACE],
            edge_edge=tables[0, Kind.EDGE_EDGE],
            face_vertex=tables.get((1, Kind.VERTEX_FACE), np.zeros((0, 2), np.int32))[:, ::-1],
        )


def _search(
    step: Step, bodies: list[FittedMesh], accuracy: Accuracy, broad_phase: str, until: float, sampled: bool
) -> Hits:
    """Every pair of features that may touch by `until`, solved over the whole step; the boxes cover that time."""
    found = Hits.none()
    for search in feature_pair_searches(bodies):
        if broad_phase == "brute":
            survivors = every_pair(search, step.device)
        else:
            keep = (
                keep_all
                if accuracy.mode == "published"
                else separating_plane_filter(search.features, accuracy.separation > 0.0)
            )
            survivors = search.pairs(step, keep, until, accuracy.separation, sampled)
        if not len(survivors):
            continue
        numbers, quads = search.queries(step, survivors)
        answers = solve_batch(search.features, step.start, step.end, quads, accuracy)
        found = found.joined(Hits.of(search.features.kind, search.vertex_on, numbers, quads, answers))
        if sampled and len(found.time):
            break  # any early time will do, and the trees of the next search need not be fitted
    return found


def _first(step: Step, found: Hits, accuracy: Accuracy, *, decided: bool) -> FirstContact:
    """The earliest of what was found; where it is `decided` that nothing meets at t = 0, what is near is a contact."""
    if not len(found.time):
        return FirstContact(np.inf, np.inf, Status.FREE)
    tied = np.flatnonzero(found.time == found.earliest)
    chosen = tied[found.rows(tied).order()[:1]]
    contact = contacts_of(step, found.rows(chosen))
    status = Status(int(found.status[chosen[0]]))
    if decided and status == Status.START and accuracy.mode != "published":
        status = Status.START if starts_nearer(step, found, accuracy.separation) else Status.CONTACT
    return FirstContact(float(found.time[chosen[0]]), float(found.time_upper.min()), status, contact)


def _sorted_rows(table: np.ndarray) -> np.ndarray:
    return table[np.lexsort((table[:, 1], table[:, 0]))]
