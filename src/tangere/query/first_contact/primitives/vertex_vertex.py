"""Vertex-vertex first contact under linear motion: an edge-edge query whose edges have no length."""

from __future__ import annotations

import warp as wp

from tangere.query.first_contact.options import Accuracy, Mode
from tangere.query.first_contact.primitives.batch import first_contacts, intake
from tangere.query.first_contact.primitives.narrow_phase.features import EDGE_EDGE
from tangere.query.first_contact.primitives.vertex_edge import as_edges
from tangere.query.first_contact.result import FirstContacts
from tangere.runtime import Arrays, InputError, like


def vertex_vertex(
    x0: Arrays,
    x1: Arrays,
    *,
    mode: Mode = "sound",
    separation: float = 0.0,
    tolerance: float | None = None,
    details: bool = True,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> FirstContacts:
    """Earliest time at which each two moving points meet, or come within `separation` of each other.

    Args:
        x0, x1: the two points at t = 0 and t = 1, shape (n, 2, 3) [m].
        mode: "sound" or "exact"; the course leaves this test to a neighbouring edge, so there is no published one.
        separation, tolerance: see `Accuracy`. details, device, threads: see `vertex_face`.
    """
    if mode == "published":
        raise InputError("the course has no vertex-vertex test: mode must be 'sound' or 'exact'")
    accuracy = Accuracy(mode, separation, tolerance)
    start, end = intake(x0, x1, 2, device)
    edges = as_edges(start, 1, 1), as_edges(end, 1, 1)
    return first_contacts(EDGE_EDGE, *edges, accuracy, details=details, threads=threads, convert=like(x0))
