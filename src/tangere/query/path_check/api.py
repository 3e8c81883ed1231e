"""Can a part be moved along a path without touching anything? The daily question of assembly.

Question: the first contact of a part on its way, a verdict on every segment of the path, and the clearance over time.
Method:   every segment of the path is a screw; all of them are searched for their first contact with each obstacle in
          one batch (`first_contact.rigid`), and the distance is measured at instants on the way (`distance`) and where
          segments touch. Between two instants no point of the part moves farther than `way`, so the clearance there is
          at least (lower before + lower after - way) / 2; where the search certified a distance, at least that.
Sound:    a segment that is free is certified free; `time` is never later than the first contact.
Known as: continuous collision checking of a path, assembly (disassembly) path verification.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np
import warp as wp

from tangere.motion import Path, Rest
from tangere.query.contacts.record import Contacts, Status
from tangere.query.distance.api import distance
from tangere.query.first_contact.options import RigidOptions
from tangere.query.first_contact.rigid.api import rigid_first_contact, rigid_first_contacts
from tangere.query.first_contact.rigid.bodies import MovingBodies
from tangere.runtime import InputError, described, using_threads
from tangere.shape import Moving
from tangere.shape.mesh import Mesh, warn_of_doubted_units

#: Segments asked at a time: enough to keep every core busy, few enough to tell of progress.
BLOCK = 64

Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Clearance:
    """Distance of the part to the nearest obstacle at instants on the path, contacts among them."""

    time: np.ndarray  #: (m,) along the path, rising from 0 to 1
    lower: np.ndarray  #: (m,) the true distance is not smaller [m]
    upper: np.ndarray  #: (m,) … and not larger [m]; both 0 where they overlap
    obstacle: np.ndarray  #: (m,) number of the nearest one
    between: np.ndarray  #: (m - 1,) the distance is not smaller at any time between two instants [m]

    @property
    def least(self) -> float:
        """The smallest distance at the instants, from above [m]: 0 where contact is certain, else at most its gap."""
        return float(self.upper.min())

    @property
    def least_time(self) -> float:
        """When that is, along the path."""
        return float(self.time[self.upper.argmin()])

    @property
    def certain(self) -> float:
        """The distance is not smaller at any time of the path [m]: of a free path at least the separation asked for."""
        return float(min(self.lower.min(), self.between.min()))


@dataclass(frozen=True, eq=False)
class PathCheck:
    """What happens to a part on its path."""

    path: Path
    time: float  #: of the first contact along the path, in [0, 1]; inf when free
    time_upper: float  #: contact is certain by then, inf when that is not proved
    status: Status
    contacts: Contacts = field(repr=False)  #: where it touches at `time`; `body_b` is the number of the obstacle
    segment_status: np.ndarray = field(repr=False)  #: (k,) `Status` of every segment
    segment_time: np.ndarray = field(repr=False)  #: (k,) of its first contact, along the path; inf when free
    segment_obstacle: np.ndarray = field(repr=False)  #: (k,) what it touches first, -1 when free
    clearance: Clearance = field(repr=False)

    def __bool__(self) -> bool:
        """True where there is a contact or none could be excluded."""
        return self.status != Status.FREE

    @property
    def pose(self) -> np.ndarray:
        """(4, 4) where the part is at the first contact, or at the end of a free path."""
        return self.path.pose(min(self.time, 1.0))

    def __repr__(self) -> str:
        segments = f"{int((self.segment_status != Status.FREE).sum())} of {len(self.segment_status)} segments touch"
        if self.status == Status.FREE:
            return f"PathCheck(free, clearance {self.clearance.least:.6g} m at the least of the instants)"
        return f"PathCheck({self.status} at t={self.time:.9g}, obstacle {self.contacts.body_b[0]}; {segments})"


def check_path(
    part: Mesh,
    obstacles: Mesh | Moving | Sequence[Mesh | Moving],
    path: Path,
    *,
    separation: float = 0.0,
    tolerance: float | None = None,
    instants: int = 4,
    progress: Progress | None = None,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> PathCheck:
    """First contact of `part` along the whole path, the verdict on every segment, and the clearance over time.

    Args:
        part: in its own frame; the path's poses place it in the world.
        obstacles: meshes at rest, where they are or by `mesh.moving(Rest(pose))`.
        path: screws through poses.
        separation: distance that already counts as contact [m].
        tolerance: at the returned time the distance is at most separation + tolerance [m]; None means 1e-6 of the
            larger body's size.
        instants: so many per segment at which the clearance is measured.
        progress: called with (steps done, steps in all).
        device: where to compute; None means CUDA if present.
        threads: CPU threads; None means all, or TANGERE_THREADS.

    Example:
        >>> import numpy as np, tangere as tg
        >>> poses = np.tile(np.eye(4), (3, 1, 1))
        >>> poses[:, 0, 3] = [-3.0, -1.5, 1.0]
        >>> check = tg.check_path(tg.generate.box(), tg.generate.box(), tg.Path(poses), device="cpu")
        >>> check.status.name, round(check.time, 3), check.segment_status.tolist()
        ('CONTACT', 0.6, [0, 1])
    """
    things = _obstacles(part, obstacles, path)
    warn_of_doubted_units(part, things)
    if not isinstance(instants, (int, np.integer)) or instants < 1:
        raise InputError(f"instants must be a whole number of at least 1 for a segment, not {instants!r}")
    blocks = [slice(first, first + BLOCK) for first in range(0, len(path), BLOCK)]
    steps = count(1)

    def one_more_done() -> None:
        if progress is not None:
            progress(next(steps), 2 * len(blocks) * len(things))

    with using_threads(threads):
        status = np.zeros((len(things), len(path)), np.uint8)
        times, uppers = np.full(status.shape, np.inf), np.full(status.shape, np.inf)
        for number, thing in enumerate(things):
            for block in blocks:
                found = rigid_first_contacts(
                    MovingBodies((part,), path.segments[block]),
                    thing,
                    separation=separation,
                    tolerance=tolerance,
                    details=False,
                    device=device,
                )
                status[number, block] = found.status
                times[number, block], uppers[number, block] = found.time, found.time_upper
                one_more_done()
        segments = _Segments.of(path, status, times, uppers)
        clearance = _clearance(part, things, path, segments, instants, separation, len(blocks), device, one_more_done)
        return _verdict(part, things, path, segments, clearance, separation, tolerance, device)


def _obstacles(part: Mesh, obstacles: Mesh | Moving | Sequence[Mesh | Moving], path: Path) -> list[Mesh | Moving]:
    if not isinstance(part, Mesh):
        raise InputError(f"the part must be a Mesh, not {type(part).__name__}: the path says where it is")
    if not isinstance(path, Path):
        raise InputError(f"the path must be a Path, not {type(path).__name__}")
    if not isinstance(obstacles, (Mesh, Moving, Iterable)):
        raise InputError(f"obstacles must be a Mesh or a list of them, not {type(obstacles).__name__}")
    things = [obstacles] if isinstance(obstacles, (Mesh, Moving)) else list(obstacles)
    if not things:
        raise InputError("there are no obstacles")
    for number, thing in enumerate(things):
        at_rest = isinstance(thing, Mesh) or (isinstance(thing, Moving) and isinstance(thing.motion, Rest))
        if not at_rest or (isinstance(thing, Moving) and thing.motion.shape):
            raise InputError(f"obstacle {number} must be a Mesh at rest, not {described(thing)}")
    return things


@dataclass(frozen=True)
class _Segments:
    """The earliest answer of all obstacles about each of k segments; times are along the path."""

    status: np.ndarray
    time: np.ndarray  #: inf when free
    time_upper: np.ndarray  #: inf when contact is not certain
    obstacle: np.ndarray  #: -1 when free

    @staticmethod
    def of(path: Path, status: np.ndarray, times: np.ndarray, uppers: np.ndarray) -> _Segments:
        """From answers of each obstacle, (obstacles, k), whose times are within the segments."""
        nearest = np.lexsort((status != Status.START, times), axis=0)[
            0
        ]  # an overlap goes before what only touches then
        rows, span = np.arange(len(path)), np.diff(path.times)
        chosen = status[nearest, rows]
        return _Segments(
            chosen,
            path.times[:-1] + times[nearest, rows] * span,
            path.times[:-1] + uppers[nearest, rows] * span,
            np.where(chosen != Status.FREE, nearest, -1),
        )

    @property
    def touching(self) -> np.ndarray:
        """Numbers of the segments that are not free."""
        return np.flatnonzero(self.status != Status.FREE)


def _verdict(
    part: Mesh,
    things: list[Mesh | Moving],
    path: Path,
    segments: _Segments,
    clearance: Clearance,
    separation: float,
    tolerance: float | None,
    device: str | wp.Device | None,
) -> PathCheck:
    """What the segments say of the whole path; the first one that touches is searched again for where."""
    columns = segments.status, segments.time, segments.obstacle, clearance
    if not len(segments.touching):
        return PathCheck(path, np.inf, np.inf, Status.FREE, Contacts(), *columns)
    first = int(segments.touching[0])
    hit = rigid_first_contact(
        part.moving(path.segments[first]),
        things[segments.obstacle[first]],
        separation=separation,
        tolerance=tolerance,
        options=RigidOptions(contacts="all"),
        device=device,
    )
    time = float(segments.time[first])
    hit.contacts.time[:] = time
    hit.contacts.body_b[:] = segments.obstacle[first]
    status = Status(int(segments.status[first]))
    return PathCheck(path, time, float(segments.time_upper[first]), status, hit.contacts, *columns)


def _clearance(
    part: Mesh,
    things: list[Mesh | Moving],
    path: Path,
    segments: _Segments,
    instants: int,
    separation: float,
    blocks: int,
    device: str | wp.Device | None,
    one_more_done: Callable[[], None],
) -> Clearance:
    """Distances at regular instants and where segments touch; raised to the separation where that was certified."""
    share = np.arange(instants) / instants
    times = np.append((path.times[:-1, None] + np.diff(path.times)[:, None] * share).ravel(), 1.0)
    certain = segments.touching[np.isfinite(segments.time_upper[segments.touching])]
    if len(segments.touching):
        times = np.unique(np.concatenate([times, segments.time[segments.touching], segments.time_upper[certain]]))
    poses = path.pose(times)
    lower, upper = np.empty((len(things), len(times))), np.empty((len(things), len(times)))
    for number, thing in enumerate(things):
        for block in np.array_split(np.arange(len(times)), blocks):
            found = distance(part.moving(Rest(poses[block])), thing, device=device)
            lower[number, block], upper[number, block] = found.lower, found.upper
            one_more_done()
    # Contact is certain there whatever rounding does to the pose.
    reached = segments.obstacle[certain], np.searchsorted(times, segments.time_upper[certain])
    upper[reached] = np.minimum(upper[reached], separation)
    lower[reached] = np.minimum(lower[reached], upper[reached])
    nearest = np.argmin(upper, axis=0)
    least, most = lower.min(axis=0), upper[nearest, np.arange(len(times))]
    between = np.maximum(0.5 * (least[:-1] + least[1:] - _way(part, path, times)), 0.0)
    free = _certified(path, segments, times)
    between[free] = np.maximum(between[free], separation)
    # Both ends of a stretch that is certified are so too, but for contacts.
    ends = (np.append(free, False) | np.append(False, free)) & ~np.isin(times, segments.time[segments.touching])
    least[ends] = np.clip(separation, least[ends], most[ends])
    return Clearance(times, least, most, nearest, between)


def _certified(path: Path, segments: _Segments, times: np.ndarray) -> np.ndarray:
    """(m - 1,) between which instants the search certified that the part stays farther off than the separation."""
    segment = np.clip(np.searchsorted(path.times, times[:-1], side="right") - 1, 0, len(path) - 1)
    return (segments.status[segment] == Status.FREE) | (times[1:] <= segments.time[segment])


def _way(part: Mesh, path: Path, times: np.ndarray) -> np.ndarray:
    """(m - 1,) how far any point of the part goes between two times at most [m]: rates are constant along a screw."""
    middle = 0.5 * (times[:-1] + times[1:])
    angular, linear = path.twist(middle)
    centre = 0.5 * (part.bounds[0] + part.bounds[1])
    radius = np.linalg.norm(part.vertices - centre, axis=1).max()
    pose = path.pose(middle)
    at = pose[:, :3, :3] @ centre + pose[:, :3, 3]
    speed = np.linalg.norm(linear + np.cross(angular, at), axis=1) + np.linalg.norm(angular, axis=1) * radius
    return speed * np.diff(times) * (1.0 + 1e-9)
