"""IPC Toolkit (PyPI: ipctk): linear continuous collision detection, one query per Python call, or its own C++ loop.

Its methods are conservative: TightInclusionCCD by inclusion functions to a tolerance, AdditiveCCD by advancing until a
share of the initial distance is left (0.1 % here; its default is 10 %).
"""

from __future__ import annotations

from collections.abc import Callable

import ipctk
import numpy as np

from tangere.query.contacts import Kind

__all__ = ["METHODS", "CandidateLoop", "MeshStep", "answers"]

#: Narrow-phase methods compared, by the name tables use.
METHODS: dict[str, Callable[[], ipctk.NarrowPhaseCCD]] = {
    "TightInclusion": lambda: ipctk.TightInclusionCCD(tolerance=1e-6),
    "AdditiveCCD 0.999": lambda: ipctk.AdditiveCCD(conservative_rescaling=0.999),
}


def answers(kind: Kind, method: str, x0: np.ndarray, x1: np.ndarray) -> np.ndarray:
    """First-contact times of n queries of shape (n, 4, 3), one Python call each; inf where there is none."""
    ccd = METHODS[method]()
    ask = ccd.point_triangle_ccd if kind == Kind.VERTEX_FACE else ccd.edge_edge_ccd
    times = np.full(len(x0), np.inf)
    for i, (start, end) in enumerate(zip(x0, x1, strict=True)):
        hit, time = ask(*start, *end)
        if hit:
            times[i] = time
    return times


class CandidateLoop:
    """The queries as candidates of one mesh of loose triangles or edges, solved by ipctk's own C++ loop.

    The loop hands the earliest time found so far on to the next query, so queries that can only touch later cost it
    less; where no query collides it does all the work.
    """

    def __init__(self, kind: Kind, x0: np.ndarray, x1: np.ndarray) -> None:
        self._start, self._end = (np.asfortranarray(x.reshape(-1, 3)) for x in (x0, x1))
        first = 4 * np.arange(len(x0), dtype=np.int32)[:, None]
        self._candidates = ipctk.Candidates()
        if kind == Kind.VERTEX_FACE:
            faces = np.asfortranarray(first + np.array([[1, 2, 3]], dtype=np.int32))
            self._mesh = ipctk.CollisionMesh(self._start, np.asfortranarray(ipctk.edges(faces)), faces)
            self._candidates.fv_candidates = [ipctk.FaceVertexCandidate(i, 4 * i) for i in range(len(x0))]
        else:
            edges = np.asfortranarray((first + np.array([[0, 1, 2, 3]], dtype=np.int32)).reshape(-1, 2))
            self._mesh = ipctk.CollisionMesh(self._start, edges)
            self._candidates.ee_candidates = [ipctk.EdgeEdgeCandidate(2 * i, 2 * i + 1) for i in range(len(x0))]

    def earliest(self, method: str, threads: int) -> float:
        """The earliest contact of all queries, 1 if there is none."""
        ipctk.set_num_threads(threads)
        return self._candidates.compute_collision_free_stepsize(
            self._mesh, self._start, self._end, 0.0, METHODS[method]()
        )


class MeshStep:
    """A step of a mesh against itself: candidates from ipctk's LBVH, then its narrow phase."""

    def __init__(self, x0: np.ndarray, x1: np.ndarray, faces: np.ndarray) -> None:
        faces = np.asfortranarray(faces, dtype=np.int32)
        self._start, self._end = np.asfortranarray(x0), np.asfortranarray(x1)
        self._mesh = ipctk.CollisionMesh(self._start, np.asfortranarray(ipctk.edges(faces)), faces)

    def earliest(self, method: str, threads: int) -> float:
        """The earliest contact within the step, 1 if there is none."""
        ipctk.set_num_threads(threads)
        candidates = ipctk.Candidates()
        candidates.build(self._mesh, self._start, self._end, 0.0, ipctk.LBVH())
        return candidates.compute_collision_free_stepsize(self._mesh, self._start, self._end, 0.0, METHODS[method]())

    def candidate_count(self) -> int:
        """How many vertex-face and edge-edge candidates the LBVH finds."""
        candidates = ipctk.Candidates()
        candidates.build(self._mesh, self._start, self._end, 0.0, ipctk.LBVH())
        return len(candidates.fv_candidates) + len(candidates.ee_candidates)
