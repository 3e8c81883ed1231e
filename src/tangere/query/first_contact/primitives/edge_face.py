"""Does an edge meet a face, at one instant?

Method: a vertex that runs along the edge while the face rests meets the face exactly then, so this is a vertex-face
first-contact query; what that leaves at rounding level is decided exactly. Closed sets: touching counts.
Known as: segment-triangle intersection.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.query.contacts.record import Status
from tangere.query.first_contact.primitives.narrow_phase.exact import resolve_undecided
from tangere.query.first_contact.primitives.narrow_phase.features import VERTEX_FACE
from tangere.query.first_contact.primitives.narrow_phase.solver import solve
from tangere.runtime import SOUND, launch

wp.set_module_options(SOUND)


def edges_meet_faces(points: wp.array, edges: wp.array, faces: wp.array) -> np.ndarray:
    """Where on its edge each edge meets its face: (n,) in [0, 1], inf where it does not; decided exactly.

    Args:
        points: positions, vec3d [m].
        edges, faces: numbers of the end points and of the corners of each pair, shapes (n, 2) and (n, 3).
    """
    count, device = len(edges), points.device
    start = wp.empty(4 * count, dtype=wp.vec3d, device=device)
    end = wp.empty(4 * count, dtype=wp.vec3d, device=device)
    launch(_run_along_edges, count, [points, edges, faces], [start, end], device=device)
    answers = solve(VERTEX_FACE, start, end)
    resolve_undecided(VERTEX_FACE, start, end, None, answers)
    return np.where(answers.status.numpy() == Status.FREE, np.inf, answers.time.numpy())


@wp.kernel
def _run_along_edges(
    first: int,
    points: wp.array[wp.vec3d],
    edges: wp.array2d[int],
    faces: wp.array2d[int],
    start: wp.array[wp.vec3d],
    end: wp.array[wp.vec3d],
):
    i = first + wp.tid()
    start[4 * i] = points[edges[i, 0]]
    end[4 * i] = points[edges[i, 1]]
    for k in range(3):
        corner = points[faces[i, k]]
        start[4 * i + k + 1] = corner
        end[4 * i + k + 1] = corner
