"""First contact of two moving triangles: fifteen tests, and a test for overlap at the start.

Question: the earliest t in [0, 1] at which two triangles with independently moving corners touch.
Method:   the tests of `triangle_features`, six of a vertex and a face and nine of two edges; the earliest wins. They
          see boundary events only: two triangles that pierce each other at t = 0 already, and move together, have none.
          So overlap at the start is tested as well: an edge of one that meets the other at t = 0.
Sound:    never late, early by at most `tolerance`; "free" is certain.
Known as: triangle-triangle continuous collision detection (course on 3D collision detection, chapter 6.X4).
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import warp as wp

from tangere.query.contacts.record import Kind, Status, columns_of
from tangere.query.first_contact.options import Accuracy, Mode
from tangere.query.first_contact.primitives.batch import intake, refuse_unusable, solve_batch
from tangere.query.first_contact.primitives.details import DetailColumns, describe
from tangere.query.first_contact.primitives.edge_face import edges_meet_faces
from tangere.query.first_contact.primitives.narrow_phase.features import EDGE_EDGE, VERTEX_FACE
from tangere.query.first_contact.primitives.narrow_phase.solver import PrimitiveAnswers, refuse_invalid
from tangere.query.first_contact.primitives.triangle_features import EDGE_EDGE_TESTS, VERTEX_FACE_TESTS
from tangere.query.first_contact.result import FirstContacts
from tangere.runtime import Arrays, InputError, like, using_threads

#: Each edge of one triangle with the face of the other: (end, end), (corner, corner, corner).
EDGE_FACE_PAIRS = tuple(
    (edge, face)
    for face, edges in (((0, 1, 2), ((3, 4), (4, 5), (5, 3))), ((3, 4, 5), ((0, 1), (1, 2), (2, 0))))
    for edge in edges
)


def triangle_triangle(
    x0: Arrays,
    x1: Arrays,
    *,
    mode: Mode = "sound",
    start: Literal["checked", "trusted"] = "checked",
    separation: float = 0.0,
    tolerance: float | None = None,
    details: bool = True,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> FirstContacts:
    """Earliest time at which each two moving triangles touch.

    Args:
        x0, x1: the three corners of one triangle, then of the other, at t = 0 and t = 1, shape (n, 6, 3) [m].
        start: "trusted" skips the check for overlap at t = 0.
        mode, separation, tolerance: see `Accuracy`. details, device, threads: see `vertex_face`.

    `test` is the number of the test (`triangle_features`) that touched first; `kind` is OVERLAP where the triangles
    overlap at t = 0. Points a and b, and the normal, are those of that test (its vertex is a's if the test is one of a
    vertex of the first triangle); `weights` belong to the four vertices of the test.
    """
    accuracy = Accuracy(mode, separation, tolerance)
    if start not in ("checked", "trusted"):
        raise InputError(f"start must be 'checked' or 'trusted', not {start!r}")
    before, after = intake(x0, x1, 6, device)
    refuse_unusable(before.numpy(), after.numpy())
    with using_threads(threads):
        if accuracy.mode == "published":
            time, status = accuracy.reading.solve_triangles(before, after)
            never = wp.full(len(time), wp.inf, dtype=wp.float64, device=time.device)
            columns: dict[str, Any] = {"time": time, "time_upper": never, "status": status}
        else:
            columns = _earliest(before.flatten(), after.flatten(), accuracy, details)
            if start == "checked":
                _mark_overlaps(before.flatten(), columns)
    convert = like(x0)
    as_given = {
        name: convert(
            column if isinstance(column, wp.array) else wp.array(column, dtype=_DTYPES[name], device=before.device)
        )
        for name, column in columns.items()
    }
    return FirstContacts(**as_given)


#: Of what the columns are.
_DTYPES: dict[str, Any] = {"test": wp.int8} | {
    name: variable.type.dtype
    for columns in (PrimitiveAnswers, DetailColumns)
    for name, variable in columns.vars.items()
}


def _earliest(before: wp.array, after: wp.array, accuracy: Accuracy, details: bool) -> dict[str, Any]:
    """The first of the fifteen tests to touch, for each pair of triangles."""
    count = len(before) // 6
    base = 6 * np.arange(count, dtype=np.int32)[:, None, None]
    parts = []
    for features, tests in ((VERTEX_FACE, VERTEX_FACE_TESTS), (EDGE_EDGE, EDGE_EDGE_TESTS)):
        quads = (base + np.array(tests, dtype=np.int32)).reshape(-1, 4)
        on_device = wp.array(quads, dtype=wp.vec4i, device=before.device)
        part = solve_batch(features, before, after, on_device, accuracy)
        refuse_invalid(part.status.numpy().reshape(count, len(tests)).max(axis=1, initial=0))
        columns = columns_of(part)
        if details:
            columns |= columns_of(describe(features, before, after, on_device, part.time, part.status))
        parts.append({name: c.numpy().reshape(count, len(tests), *c.numpy().shape[1:]) for name, c in columns.items()})
    both = {name: np.concatenate([part[name] for part in parts], axis=1) for name in parts[0]}
    test = np.argmin(both["time"], axis=1)
    pick = np.arange(count)
    found: dict[str, Any] = {name: column[pick, test] for name, column in both.items()}
    found["time_upper"] = both["time_upper"].min(axis=1)
    found["test"] = np.where(np.isfinite(found["time"]), test, -1).astype(np.int8)
    if details:
        flipped = np.isin(test, np.flatnonzero([quad[0] >= 3 for quad in VERTEX_FACE_TESTS]))
        found["normal"] = np.where(flipped[:, None], -found["normal"], found["normal"])
        a, b = found["point_a"], found["point_b"]
        found["point_a"], found["point_b"] = (np.where(flipped[:, None], *pair) for pair in ((b, a), (a, b)))
    return found


def _mark_overlaps(before: wp.array, columns: dict[str, Any]) -> None:
    """Overwrite the answer of each pair of triangles that meet at t = 0."""
    count = len(before) // 6
    if count == 0:
        return
    base = 6 * np.arange(count, dtype=np.int32)[:, None, None]
    edges = (base + np.array([edge for edge, _ in EDGE_FACE_PAIRS], dtype=np.int32)).reshape(-1, 2)
    faces = (base + np.array([face for _, face in EDGE_FACE_PAIRS], dtype=np.int32)).reshape(-1, 3)
    where = edges_meet_faces(
        before,
        wp.array(edges, dtype=wp.int32, device=before.device),
        wp.array(faces, dtype=wp.int32, device=before.device),
    ).reshape(count, len(EDGE_FACE_PAIRS))
    overlapping = np.isfinite(where).any(axis=1) & (columns["status"] != Status.START)
    columns["time"][overlapping] = columns["time_upper"][overlapping] = 0.0
    columns["status"][overlapping] = Status.START
    columns["test"][overlapping] = -1
    if "kind" not in columns:
        return
    pair = np.argmin(where, axis=1)
    ends = before.numpy()[edges.reshape(count, -1, 2)[np.arange(count), pair]]
    on_edge = np.where(overlapping, where[np.arange(count), pair], 0.0)[:, None]
    point = ends[:, 0] * (1.0 - on_edge) + ends[:, 1] * on_edge
    corners = before.numpy()[faces.reshape(count, -1, 3)[np.arange(count), pair]]
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    length = np.linalg.norm(across, axis=1, keepdims=True)
    across = np.divide(across, length, out=np.broadcast_to([0.0, 0.0, 1.0], across.shape).copy(), where=length > 0.0)
    across[np.array([edge[0] >= 3 for edge, _ in EDGE_FACE_PAIRS])[pair]] *= -1.0  # the face is a's: push the other way
    columns["kind"][overlapping] = Kind.OVERLAP
    columns["weights"][overlapping] = np.nan
    for name, value in (("point_a", point), ("point_b", point), ("normal", across)):
        columns[name][overlapping] = value[overlapping]
