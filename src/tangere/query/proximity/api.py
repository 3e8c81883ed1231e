"""Which features of meshes are nearer than a distance, at one instant: two meshes, one with itself, or a whole scene.

Question:  which vertices and faces, and which edges, are nearer than a distance?
Method:    a broad phase finds pairs whose boxes, grown by half the distance, meet; vertices are compared with faces and
           edges with edges in float64. By default trees over vertices, edges and faces with the test inside the
           traversal; any other broad phase gives pairs of triangles, which compare the features they own.
Sound:     the contacts are exactly the vertex-face and edge-edge pairs without a common vertex whose distance, as the
           same function computes it everywhere, is below `distance`, less the ones that `exclude` names; each once, in
           canonical order, the same for every broad phase and number of threads. CPU and CUDA may differ for distances
           within 1e-12 of the size of the features (Léonard 2021, sections 3.6.3 to 3.8).
Known as:  proximity query, discrete collision detection with a contact distance.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.broad_phase.triangles import BroadPhase, Surfaces, as_meshes, checked_distance, every_job, triangle_pairs
from tangere.query.contacts.record import Contacts
from tangere.query.dispatch import BODIES, answer, kind_of
from tangere.query.proximity.contact_buffer import ContactBuffer, describe
from tangere.query.proximity.engine import engine_of
from tangere.query.proximity.exclusion_table import Exclude, ExclusionTable
from tangere.query.proximity.nearest_filter import nearest_of_each
from tangere.query.proximity.representative_triangles import near_features
from tangere.runtime import Arrays, InputError, using_threads
from tangere.shape.mesh import Mesh


def proximity(
    a: Any,
    b: Any = None,
    *,
    distance: float,
    allowed: Arrays | None = None,
    time: float = 0.0,
    broad_phase: BroadPhase = "tree",
    exclude: Exclude = None,
    nearest: bool = False,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> Contacts:
    """The contacts of `a` with `b`, or of `a` with itself if there is no `b`.

    Args:
        a, b: meshes at the instant in question; `a` may be a list of meshes: all with all, and each with itself. Or
            analytic bodies, meshes that move, and ground as `b`; or a list that mixes them, ground too: any two, none
            with itself; with a list `b`, one of each: `body_a` and `body_b` say which. An analytic body touches another
            once, and each triangle of a mesh or face of ground that is near enough.
        distance: features nearer than this are in contact [m]; an overlap has gap 0.
        allowed: of a list, pairs of bodies that may touch, (k, 2), by number or by name: they are left out.
        time: of what moves, the instant in [0, 1].
        broad_phase: "tree", "grid", "levels" (hierarchical grid), "sweep", "front" (begins where the last call of
            these topologies ended) or "brute": the answer is the same.
        exclude: pairs to leave out, besides those that share a vertex: `Exclusion.at_rest(mesh, distance)` and others;
            of several meshes a list with one for each, or None.
        nearest: keep at most one contact of each vertex with faces and of each edge with edges, the nearest: one is
            left out only where its vertex, or one of its two edges, keeps another that is not farther. Which mesh is
            given first does not matter.
        device: where to compute; None means CUDA if present.
        threads: CPU threads; None means all, or TANGERE_THREADS.

    Example:
        >>> import tangere as tg
        >>> from tangere.query.proximity import proximity
        >>> ball = tg.generate.icosphere(subdivisions=2)
        >>> other = ball.at([[1, 0, 0, 2.01], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
        >>> found = proximity(ball, other, distance=0.02, device="cpu")
        >>> round(float(found.gap.min()), 9)
        0.01
    """
    checked_distance(distance)
    a = list(a) if kind_of(a) == BODIES else a
    things = a if isinstance(a, list) else [a]
    if b is None and not things:
        return Contacts()
    if allowed is not None or not all(isinstance(thing, Mesh) for thing in (things if b is None else [a, b])):
        if exclude is not None or broad_phase != "tree":
            raise InputError("exclude and broad_phase are for meshes at rest: other things are compared as a whole")
        asked = {"distance": distance, "time": time, "nearest": nearest, "device": device, "threads": threads}
        if BODIES in (kind_of(a), kind_of(b)):
            asked["allowed"] = allowed
        elif allowed is not None:
            raise InputError("allowed says which bodies of a list may touch: proximity([a, b, c], allowed=[(0, 1)])")
        return answer("proximity", a, b, **asked)
    if b is None:
        meshes = as_meshes(things)
        jobs = every_job(len(meshes))
    else:
        meshes, jobs = [a, b], np.array([[0, 1]], np.int32)
    with using_threads(threads):
        surfaces = Surfaces.of(meshes, device)
        found = find_near(surfaces, jobs, distance, broad_phase=broad_phase, exclude=exclude).contacts
        return nearest_of_each(found) if nearest else found


def find_near(
    surfaces: Surfaces, jobs: np.ndarray, distance: float, *, broad_phase: BroadPhase = "tree", exclude: Exclude = None
) -> ContactBuffer:
    """The contacts of a scene, left on its device; `jobs` (k, 2) says which meshes are compared."""
    if broad_phase == "tree":
        pair_keys = engine_of(surfaces.device).near_pairs(surfaces, jobs, distance)
    else:
        pairs = triangle_pairs(surfaces, distance, jobs, broad_phase=broad_phase)
        pair_keys = near_features(surfaces, pairs, distance)
    excluded = ExclusionTable.of(surfaces, exclude)
    return describe(surfaces, pair_keys if excluded is None else excluded.removed_from(surfaces, pair_keys))
