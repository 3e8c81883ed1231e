"""Can a simulation start, and go on? Bodies that can move, sensible numbers, surfaces apart, ends that are finite."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import warp as wp

from tangere.broad_phase.deforming import BvhSide, Step, pairs
from tangere.query.first_contact.deforming.culling import start_overlap_filter
from tangere.query.first_contact.primitives.edge_face import edges_meet_faces
from tangere.runtime import InputError, TangereError, not_negative, positive, whole
from tangere.shape.mesh import Mesh
from tangere.soft.body import Body
from tangere.soft.model.assembled_bodies import STILL, AssembledBodies


def checked_bodies(bodies: Sequence[Body]) -> list[Body]:
    """The bodies as a list, if there are any and one of them can move."""
    if isinstance(bodies, Body) or not isinstance(bodies, Iterable):
        raise InputError(f"a simulation takes a list of bodies, not a {type(bodies).__name__}")
    bodies = list(bodies)
    if not bodies:
        raise InputError("a simulation needs at least one body")
    for number, body in enumerate(bodies):
        if not isinstance(body, Body):
            raise InputError(f"body {number} is a {type(body).__name__}, not a Body")
    if all(body.is_obstacle for body in bodies):
        raise InputError("nothing can move: every vertex of every body is fixed")
    return bodies


def check_options(response: str, friction: float, contact_stiffness: float | None, sweeps: int | None) -> None:
    """Raise if an option of a simulation cannot be used."""
    if response not in ("hard", "penalty", "none"):
        raise InputError(f"response must be 'hard', 'penalty' or 'none', not {response!r}")
    not_negative(friction, "friction")
    if contact_stiffness is not None:
        positive(contact_stiffness, "contact_stiffness")
    if sweeps is not None:
        whole(sweeps, "sweeps", 1)


def mean_edge(bodies: Sequence[Body]) -> float:
    """Of the surfaces that can move [m]."""
    lengths = []
    for body in bodies:
        if not body.is_obstacle:
            ends = body.surface.vertices[body.surface.edges]
            lengths.append(np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1))
    return float(np.concatenate(lengths).mean())


def check_no_overlap(assembly: AssembledBodies, meshes: Sequence[Mesh], when: str) -> None:
    """Raise if surfaces touch or overlap, unless nothing of either can move there.

    Args:
        meshes: the surface of each body where it is.
        when: they are there, in words.
    """
    step = Step.of([Mesh.join(list(meshes))], "cpu")
    (fitted,) = step.fitted(0.0)
    edges, faces = fitted.body.edges, fitted.body.faces
    sides = BvhSide(edges, fitted.edges, 0), BvhSide(faces, fitted.faces, 0)
    found = pairs(start_overlap_filter(), *sides, step.start, step.end, until=0.0, sharing=False).numpy()
    ends, corners = edges.items.numpy()[found[:, 0]], faces.items.numpy()[found[:, 1]]
    rows = np.concatenate([assembly.vertex_rows(number) for number in range(len(meshes))])
    still = (assembly.surface.traits.numpy()[rows] & int(STILL)) != 0
    matters = ~(still[ends].all(axis=1) & still[corners].all(axis=1))
    ends, corners = ends[matters], corners[matters]
    at = edges_meet_faces(step.start, *(wp.array(a, dtype=wp.int32, device=step.device) for a in (ends, corners)))
    meeting = np.flatnonzero(np.isfinite(at))
    if not len(meeting):
        return
    k = meeting[0]
    begin, end = step.start.numpy()[ends[k]]
    place = (begin + at[k] * (end - begin)).round(6).tolist()
    a, b = sorted(int(assembly.surface.body.numpy()[rows[v]]) for v in (ends[k, 0], corners[k, 0]))
    who = [f"body {n} {assembly.bodies[n].name!r}" for n in (a, b)]
    who = f"{who[0]} with itself" if a == b else f"{who[0]} and {who[1]}"
    raise InputError(f"{who} touch or overlap {when}, near {place}: response 'hard' needs surfaces apart")


def touch_exactly(points: wp.array, ends: np.ndarray, corners: np.ndarray) -> bool:
    """Whether one of some edges (n, 2) meets its face (n, 3), by numbers of points [m]; decided exactly."""
    pairs = (wp.array(np.ascontiguousarray(part), dtype=wp.int32, device=points.device) for part in (ends, corners))
    return bool(np.isfinite(edges_meet_faces(points, *pairs)).any())


def raise_not_finite(assembly: AssembledBodies, end: np.ndarray, step: int, dt: float) -> None:
    """Raise because a step ends, for some dof, at a place that is not finite; `end` (n, 3) [m], `dt` [s]."""
    wrong = np.flatnonzero(~np.isfinite(end).all(axis=1))
    body = assembly.bodies[int(assembly.dofs.body.numpy()[wrong[0] if len(wrong) else 0])]
    raise TangereError(
        f"step {step} has no finite solution: body {body.name!r} moves too fast, or is too stiff,"
        f" for steps of {dt:g} s; everything is where the step began"
    )
