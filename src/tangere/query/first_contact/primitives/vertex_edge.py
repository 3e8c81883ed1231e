"""Vertex-edge first contact under linear motion: an edge-edge query whose first edge has no length.

In space a vertex meets an edge by accident only; the query is for motion in a plane and for curves.
"""

from __future__ import annotations

import warp as wp

from tangere.query.contacts.record import Kind
from tangere.query.first_contact.options import Accuracy, Mode
from tangere.query.first_contact.primitives.batch import first_contacts, intake, refuse_unusable
from tangere.query.first_contact.primitives.narrow_phase.features import EDGE_EDGE
from tangere.query.first_contact.result import FirstContacts
from tangere.runtime import SOUND, Arrays, launch, like

wp.set_module_options(SOUND)


def vertex_edge(
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
    """Earliest time at which each moving vertex touches its moving segment.

    Args:
        x0, x1: vertex, then the two ends of the edge, at t = 0 and t = 1, shape (n, 3, 3) [m].
        mode, separation, tolerance: see `Accuracy`. details, device, threads: see `vertex_face`.

    The weights are those of an edge-edge contact whose first edge is the vertex twice.
    """
    accuracy = Accuracy(mode, separation, tolerance)
    start, end = intake(x0, x1, 3, device)
    convert = like(x0)
    if accuracy.mode == "published":
        refuse_unusable(start.numpy(), end.numpy())
        time, status = accuracy.reading.solve(Kind.VERTEX_EDGE, start, end)
        never = wp.full(len(time), wp.inf, dtype=wp.float64, device=time.device)
        return FirstContacts(time=convert(time), time_upper=convert(never), status=convert(status))
    edges = as_edges(start, 1, 2), as_edges(end, 1, 2)
    return first_contacts(EDGE_EDGE, *edges, accuracy, details=details, threads=threads, convert=convert)


def as_edges(points: wp.array, first_edge: int, second_edge: int) -> wp.array:
    """(n, 4) end points of two edges from (n, first_edge + second_edge) points; an edge of one point has no length."""
    edges = wp.empty((len(points), 4), dtype=wp.vec3d, device=points.device)
    launch(_as_edges, len(points), [points, first_edge, second_edge], [edges], device=points.device)
    return edges


@wp.kernel
def _as_edges(first: int, points: wp.array2d[wp.vec3d], first_edge: int, second_edge: int, edges: wp.array2d[wp.vec3d]):
    i = first + wp.tid()
    edges[i, 0] = points[i, 0]
    edges[i, 1] = points[i, first_edge - 1]
    edges[i, 2] = points[i, first_edge]
    edges[i, 3] = points[i, first_edge + second_edge - 1]
