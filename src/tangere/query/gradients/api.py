"""How do distances, clearances and times of first contact change with where bodies are and how they move?

Question: the first derivatives of an answer, by pose, by twist, by the ends of a motion, by joints, by vertices.
Method:   the features that the answer names are held: the distance of two bodies changes as the gap of their nearest
          points does, along the normal. The time of a contact changes as the gap there does, over the speed at which it
          closes. The least clearance changes as the distance does at the time where it is least. Times are sharpened
          first (`approach`), for answers are exact to a tolerance only.
Sound:    where the nearest features are the only ones (`ties`) these are the derivatives, up to rounding; beside
          cylinders and cones up to 1e-4, the root of what their distances are exact to. Where they are not, or bodies
          graze, start in contact or stay free, `status` says so. That two *times* are equally near is not looked for.
Known as: envelope theorem (Danskin 1967); implicit function theorem for event times; the saltation term of hybrid
          systems begins with the latter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from tangere.motion import Linear
from tangere.query.clearance.api import LeastClearance
from tangere.query.contacts.record import Kind, Status
from tangere.query.distance.api import Distance
from tangere.query.first_contact.result import FirstContact, FirstContacts
from tangere.query.gradients.approach import SHORT, Approach, Instant, extent_of
from tangere.query.gradients.result import BodyGradients, Gradients, GradientStatus
from tangere.query.gradients.ties import find_ties, points_jump
from tangere.query.intersection.posed import as_posed
from tangere.runtime import (
    Arrays,
    InputError,
    UnsupportedError,
    choose_device,
    described,
    not_negative,
    number,
    to_numpy,
    using_threads,
)
from tangere.shape import Moving
from tangere.shape.analytic import Analytic
from tangere.shape.mesh import Mesh

#: What comes within this part of the bodies' size of the nearest is as near; of contacts, of what is left of the gap.
TIE, SHORT_TIE = 1e-9, 1e-2
#: Faces that the normal leaves by less than this cosine are not flat on it.
FLAT = 1.0 - 1e-6
_S = GradientStatus


def distance(
    found: Distance,
    a: Mesh | Analytic | Moving,
    b: Mesh | Analytic | Moving,
    *,
    time: Arrays = 0.0,
    tie: float | None = None,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> Gradients:
    """The gradient of distances, by what `tg.distance` found.

    Args:
        found: the answer of `tg.distance(a, b, time=time)`.
        a, b, time: what it was asked about.
        tie: features that come within this of the nearest count as equally near [m]; None means 1e-9 of the bodies'
            size.
        device: where to look for those; None means CUDA if present.
        threads: CPU threads; None means all, or TANGERE_THREADS.

    Example:
        >>> import numpy as np, tangere as tg
        >>> ball, away = tg.generate.icosphere(subdivisions=2), np.eye(4)
        >>> away[:3, 3] = 0.3, 0.2, 2.5
        >>> one, other = ball.at(away), tg.generate.box((4, 4, 1))
        >>> slope = tg.gradients.distance(tg.distance(one, other, device="cpu"), one, other, device="cpu")
        >>> slope.status.name, round(slope.a.pose[2].item(), 9)
        ('SMOOTH', 1.0)
    """
    _check(found, Distance, "distance", a, b)
    times, single = _rows(found.upper, time)
    with using_threads(threads):
        chosen = choose_device(device)
        bodies = Approach(a, b, chosen)
        at: Any = float(times[0]) if single else times
        here = bodies.of(found, times, at)
        status = np.where(here.apart > 0.0, _S.SMOOTH, _S.TOUCHING)
        status[~np.isfinite(here.apart)] = _S.FREE
        status = _with_ties(bodies, here, status, _tie(tie, TIE * bodies.size), chosen)
    return _gradients(bodies, here, here.apart, status, np.ones(len(times)), single)


def distance_status(
    shapes: Sequence[Mesh | Analytic],
    which: np.ndarray,
    poses: tuple[np.ndarray, np.ndarray],
    points: tuple[np.ndarray, np.ndarray],
    normals: np.ndarray,
    upper: np.ndarray,
    *,
    tie: float | None = None,
    device: wp.Device,
) -> np.ndarray:
    """(n,) `GradientStatus` of the distances of n pairs of bodies, any of `shapes` with any other.

    Args:
        which: of the shapes each pair is of, (n, 2).
        poses: where these are, (n, 4, 4) each.
        points: the nearest, in the world, (n, 3) each.
        normals: from b to a there, (n, 3), unit.
        upper: the distances, (n,); inf where they are not known.
        tie: as for `distance`.
    """
    status = np.where(upper > 0.0, _S.SMOOTH, _S.TOUCHING)
    status[~np.isfinite(upper)] = _S.FREE
    analytic = np.array([isinstance(shape, Analytic) for shape in shapes])[which].any(axis=1)
    size = np.array([extent_of(shape) for shape in shapes])[which].sum(axis=1)
    rows = np.flatnonzero((status == _S.SMOOTH) & ~analytic)
    if len(rows):
        meshes = tuple(shape for shape in shapes if isinstance(shape, Mesh))
        number = np.cumsum([isinstance(shape, Mesh) for shape in shapes]) - 1
        near = TIE * size[rows] if tie is None else np.full(len(rows), not_negative(tie, "tie"))
        given = [tuple(part[rows] for part in both) for both in (poses, points)]
        status[rows[find_ties(meshes, number[which[rows]], *given, normals[rows], near, device)]] = _S.TIE
    rows = np.flatnonzero((status == _S.SMOOTH) & analytic)
    for one, other in np.unique(which[rows], axis=0):
        mine = rows[(which[rows] == [one, other]).all(axis=1)]
        given = [tuple(part[mine] for part in both) for both in (poses, points)]
        jump = points_jump((shapes[one], shapes[other]), *given, float(size[mine[0]]), device)
        status[mine[jump]] = _S.TIE
    return status.astype(np.uint8)


def clearance(
    found: LeastClearance,
    a: Mesh | Analytic | Moving,
    b: Mesh | Analytic | Moving,
    *,
    tie: float | None = None,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> Gradients:
    """The gradient of least clearances over a motion, by what `tg.least_clearance` found.

    The least that is near the time found is taken: it is no more than `found.upper`, and `value` tells it.

    Args:
        found: the answer of `tg.least_clearance(a, b)`.
        a, b, tie, device, threads: as for `distance`.

    Example:
        >>> import numpy as np, tangere as tg
        >>> ball, start = tg.generate.icosphere(subdivisions=3), np.eye(4)
        >>> start[:3, 3] = (-4.0, 2.5, 0.1)
        >>> passing = ball.moving(tg.Twist(start, (8.0, 0.0, 0.0), (0.0, 0.0, 0.0)))
        >>> slope = tg.gradients.clearance(tg.least_clearance(passing, ball, device="cpu"), passing, ball, device="cpu")
        >>> bool(abs(slope.rate) < 1e-6), round(float(slope.a.displacement[1] / slope.a.start[1]), 2)
        (True, 0.5)
    """
    _check(found, LeastClearance, "least_clearance", a, b)
    times, single = _rows(found.upper, found.time)
    upper = np.atleast_1d(np.asarray(found.upper, float))
    seen = np.isfinite(upper)
    with using_threads(threads):
        chosen = choose_device(device)
        bodies = Approach(a, b, chosen)
        here = bodies.least(np.where(seen, times, 0.0), np.where(seen, upper, np.inf))
        status = np.where(here.apart > 0.0, _S.SMOOTH, _S.TOUCHING)
        status[~seen] = _S.FREE
        status = _with_ties(bodies, here, status, _tie(tie, TIE * bodies.size), chosen)
    return _gradients(bodies, here, np.where(seen, here.apart, np.inf), status, np.ones(len(times)), single)


def time(
    found: FirstContact | FirstContacts,
    a: Mesh | Analytic | Moving,
    b: Mesh | Analytic | Moving,
    *,
    separation: float = 0.0,
    grazing: float = 1e-3,
    tie: float | None = None,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> Gradients:
    """The gradient of times of first contact, by what `tg.first_contact` found.

    Args:
        found: the answer of `tg.first_contact(a, b, separation=separation)`.
        a, b, separation: what it was asked about: meshes at rest, or moving by a rigid motion, a `Path` or a `Linear`
            one; n motions, or one.
        grazing: bodies that meet at a smaller angle than this to their surfaces graze [rad].
        tie: features that come within this of the nearest just before the contact count as touching then [m]; None
            means 1e-10 of the bodies' size.
        device, threads: as for `distance`.

    Example:
        >>> import numpy as np, tangere as tg
        >>> ball, start = tg.generate.icosphere(subdivisions=2, radius=0.1), np.eye(4)
        >>> start[:3, 3] = 0.03, 0.02, 1.0
        >>> falling, ground = ball.moving(tg.Twist(start, (0, 0, -2.0), (0, 0, 0))), tg.generate.box((4, 4, 0.2))
        >>> slope = tg.gradients.time(tg.first_contact(falling, ground, device="cpu"), falling, ground, device="cpu")
        >>> round(slope.value, 6), round(slope.a.start[2].item(), 6), round(slope.a.displacement[2].item(), 6)
        (0.4, 0.5, 0.2)
    """
    _check(found, (FirstContact, FirstContacts), "first_contact", a, b)
    not_negative(separation, "separation")
    number(grazing, "grazing")
    if found.skin is not None:
        raise UnsupportedError("a contact without a skin is one of another body: ask about `skin.mesh` and its time")
    told = to_numpy(found.time, "found.time")
    times, single = _rows(told, told)
    state = np.atleast_1d(to_numpy(found.status, "found.status", np.uint8))
    hit = state == Status.CONTACT
    with using_threads(threads):
        chosen = choose_device(device)
        bodies = Approach(a, b, chosen)
        here = bodies.contact(np.where(hit, times, 0.0), float(separation))
        status = np.full(len(times), _S.SMOOTH)
        status[~(here.apart > 0.0)] = _S.GRAZING  # they were apart before: rounding hides the normal
        status[~(-here.rate > grazing * here.speed)] = _S.GRAZING
        for query, own in ((Status.START, _S.START), (Status.FREE, _S.FREE), (Status.UNRESOLVED, _S.UNRESOLVED)):
            status[state == query] = own
        if separation < SHORT * bodies.size:
            status[(status == _S.SMOOTH) & _on_corners(here)] = _S.TIE
        status = _with_ties(bodies, here, status, _tie(tie, SHORT_TIE * SHORT * bodies.size), chosen)
    slope = np.divide(-1.0, here.rate, out=np.zeros(len(times)), where=here.rate < 0.0)
    value = np.where(hit, here.times + slope * np.maximum(here.apart - separation, 0.0), told)
    return _gradients(bodies, here, value, status, slope, single)


def through(body: Mesh | Moving, times: Arrays, points: Arrays, slopes: Arrays) -> BodyGradients:
    """Slopes by what moves a body, from slopes of anything by where its points are: a cost of your own.

    Args:
        body: a mesh at rest, or moving rigidly or along a `Path`; one motion, or n.
        times: in [0, 1], (n,).
        points: one for each time, in the body's frame, (n, 3) [m].
        slopes: by where these are in the world at the times, (n, 3).

    Example:
        >>> import numpy as np, tangere as tg
        >>> box, path = tg.generate.box(), tg.Path(np.tile(np.eye(4), (3, 1, 1)))
        >>> by = tg.gradients.through(box.moving(path), [0.25], [[0.0, 0.0, 0.0]], [[0.0, 0.0, 1.0]])
        >>> by.waypoints[0, :, 2].tolist()
        [0.5, 0.5, 0.0]
    """
    _check_body(body, "body")
    when = np.atleast_1d(to_numpy(times, "times")).astype(float)
    rows = [np.atleast_2d(to_numpy(part, name)) for part, name in ((points, "points"), (slopes, "slopes"))]
    if when.ndim != 1 or any(part.shape != (len(when), 3) for part in rows):
        shapes = f"{rows[0].shape} and {rows[1].shape}"
        raise InputError(f"points and slopes must have shape ({len(when)}, 3), one row for each time, not {shapes}")
    poses = np.broadcast_to(as_posed(body, when).poses, (len(when), 4, 4))
    none = np.full(len(when), -1)
    return BodyGradients(body, False, when, poses, rows[1], rows[0], none, np.zeros((len(when), 3)))


def _check_body(body: Any, name: str, kinds: Any = Mesh) -> None:
    shape = body.shape if isinstance(body, Moving) else body
    if not isinstance(shape, kinds):
        told = "meshes" if kinds is Mesh else "meshes and analytic bodies"
        raise UnsupportedError(f"gradients are of {told}, at rest or moving; {name} is {described(body)}")
    if isinstance(shape, Analytic) and len(shape) != 1:
        raise UnsupportedError(f"gradients are of one analytic body; {name} has {len(shape)}")


def _check(found: Any, kinds: Any, question: str, a: Any, b: Any) -> None:
    if not isinstance(found, kinds):
        raise InputError(f"found must be what tg.{question} answers, not {described(found)}")
    _check_body(a, "a", Mesh | Analytic)
    _check_body(b, "b", Mesh | Analytic)
    count = 1 if np.ndim(getattr(found, "upper", getattr(found, "time", 0.0))) == 0 else None
    if count is None and any(isinstance(getattr(body, "motion", None), Linear) for body in (a, b)):
        raise UnsupportedError("n answers are of rigid motions; of Linear ones gradients are taken one at a time")


def _rows(value: Any, time: Any) -> tuple[np.ndarray, bool]:
    """Times of n answers, and whether there is one."""
    single = np.ndim(value) == 0
    times = np.asarray(to_numpy(time, "time"), float)
    count = 1 if single else len(value)
    if times.shape not in ((), (count,)):
        raise InputError(f"time has shape {times.shape}, but there are {count} answers")
    return np.broadcast_to(times, count).astype(float), single


def _tie(tie: float | None, default: float) -> float:
    return default if tie is None else float(not_negative(tie, "tie"))


def _with_ties(bodies: Approach, here: Instant, status: np.ndarray, tie: float, device: wp.Device) -> np.ndarray:
    """The status, TIE where other features are as near."""
    rows = np.flatnonzero(status == _S.SMOOTH)
    if len(rows) and bodies.analytic:
        poses, points = ((one[rows], other[rows]) for one, other in (here.poses, here.points))
        status[rows[points_jump(here.meshes, poses, points, bodies.size, device)]] = _S.TIE
    elif len(rows):
        poses, points = ((one[rows], other[rows]) for one, other in (here.poses, here.points))
        which = np.tile(np.arange(2), (len(rows), 1))
        tied = find_ties(here.meshes, which, poses, points, here.normal[rows], np.full(len(rows), tie), device)
        status[rows[tied]] = _S.TIE
    return status


def _on_corners(here: Instant) -> np.ndarray:
    """(n,) whether a vertex meets an edge or a vertex: it goes by on either side, unless one is flat."""
    odd = (here.kind == Kind.VERTEX_EDGE) | (here.kind == Kind.VERTEX_VERTEX)
    for row in np.flatnonzero(odd):
        flat = []
        for mesh, pose, faces, shares in zip(here.meshes, here.poses, here.faces, here.shares, strict=True):
            corners = mesh.faces[faces[row]][shares[row] > 0.0]
            around = np.flatnonzero(np.isin(mesh.faces, corners).sum(axis=1) >= len(corners))
            sides = mesh.vertices[mesh.faces[around]]
            normals = np.cross(sides[:, 1] - sides[:, 0], sides[:, 2] - sides[:, 0]) @ pose[row, :3, :3].T
            length = np.linalg.norm(normals, axis=1)
            flat.append((np.abs(normals @ here.normal[row]) >= FLAT * length).all())
        odd[row] = not any(flat)
    return odd


def _gradients(
    bodies: Approach, here: Instant, value: np.ndarray, status: np.ndarray, scale: np.ndarray, single: bool
) -> Gradients:
    """Slopes of the nearest points: `scale` along the normal for a, against it for b; zero where there are none."""
    told = np.isin(status, (_S.SMOOTH, _S.TIE))
    slopes = np.where(told[:, None], scale[:, None] * here.normal, 0.0)
    sides = []
    for k, body in enumerate((bodies.a, bodies.b)):
        pose, point = here.poses[k], np.where(told[:, None], here.points[k], here.poses[k][:, :3, 3])
        sides.append(
            BodyGradients(
                body,
                single,
                here.times,
                pose,
                slopes if k == 0 else -slopes,
                np.einsum("nji,nj->ni", pose[:, :3, :3], point - pose[:, :3, 3]),
                np.where(told, here.faces[k], -1),
                np.where(told[:, None], here.shares[k], 0.0),
            )
        )
    rate = np.where(np.isin(status, (_S.FREE, _S.START, _S.UNRESOLVED, _S.TOUCHING)), np.nan, here.rate)
    columns = (value, here.times, status.astype(np.uint8), rate, np.where(told[:, None], here.normal, 0.0))
    if single:
        value, times, code, rate, normal = (column[0] for column in columns)
        return Gradients(float(value), float(times), GradientStatus(int(code)), float(rate), normal, *sides)
    return Gradients(*columns, *sides)
