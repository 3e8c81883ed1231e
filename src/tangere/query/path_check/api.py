"""Can a part be moved along a path without touching anything? The daily question of assembly.

Question: the first contact of a part on its way, a verdict on every segment of the path, and the clearance over time.
Method:   every segment of the path is a screw; all of them are searched for their first contact with each obstacle in
          one batch (`first_contact.rigid`), then for how near they come to it (`clearance_profile`).
Sound:    a segment that is free is certified free; `time` is never later than the first contact; the clearance is
          never below `certain`.
Known as: continuous collision checking of a path, assembly (disassembly) path verification.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import warp as wp

from tangere.motion import Path, Rest
from tangere.query.clearance.api import check_accuracy
from tangere.query.contacts.record import Contacts, Status, contact_facts
from tangere.query.containment.api import check_solid
from tangere.query.dispatch import TERRAIN, is_analytic, kind_of
from tangere.query.first_contact.skin import Skin, mesh_without_skin
from tangere.query.path_check.clearance_profile import Clearance, PathQuestion, clearance_profile
from tangere.query.path_check.segments import PathSegments
from tangere.runtime import InputError, described, positive, text_below, using_threads, view_room
from tangere.shape import Moving
from tangere.shape.mesh import Mesh, warn_of_doubted_units

Progress = Callable[[int, int], object]


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
    skin: Skin | None = None  #: what the part was asked about without, if it starts in contact

    def __bool__(self) -> bool:
        """True where there is a contact or none could be excluded."""
        return self.status != Status.FREE

    @property
    def pose(self) -> np.ndarray:
        """(4, 4) where the part is at the first contact, or at the end of a free path."""
        return self.path.pose(min(self.time, 1.0))

    @property
    def obstacle(self) -> int | None:
        """Number of the obstacle that it touches first, or that could not be excluded; None when free."""
        touching = np.flatnonzero(self.segment_status != Status.FREE)
        return int(self.segment_obstacle[touching[0]]) if len(touching) else None

    def __repr__(self) -> str:
        segments = f"{int((self.segment_status != Status.FREE).sum())} of {len(self.segment_status)} segments touch"
        if self.status == Status.FREE:
            return f"PathCheck({self._verdict()}, clearance {self.clearance.told})"
        return f"PathCheck({self.status} at t={text_below(self.time, 9)}, obstacle {self.obstacle}; {segments})"

    def _verdict(self) -> str:
        return str(self.status) if self or self.skin is None else f"free but for {self.skin}"

    def _repr_html_(self) -> str:
        """For notebooks: the verdict, the clearance and the first contact."""
        touching = int((self.segment_status != Status.FREE).sum())
        near = self.clearance
        facts = {
            "status": self._verdict(),
            "segments that touch": f"{touching} of {len(self.segment_status)}",
            "clearance": near.told,
        }
        if self.status != Status.FREE:
            facts["time"] = text_below(self.time, 9)
        return view_room().html("PathCheck", facts | contact_facts(self.contacts))


def check_path(
    part: Any,
    obstacles: Any,
    path: Path,
    *,
    start: Literal["checked", "leaving"] = "checked",
    skin: float | None = None,
    separation: float = 0.0,
    tolerance: float | None = None,
    solid: bool = False,
    instants: int = 4,
    accuracy: float = 0.1,
    cap: float | None = None,
    progress: Progress | bool = False,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> PathCheck:
    """First contact of `part` along the whole path, the verdict on every segment, and the clearance over time.

    Args:
        part: a mesh or an analytic body in its own frame; the path's poses place it in the world.
        obstacles: meshes and analytic bodies at rest, where they are or by `mesh.moving(Rest(pose))`, and ground.
        path: screws through poses.
        start: "leaving" is for a part that is in contact where it is mounted: contacts shallower than `skin` are
            ignored, and the clearance is that of the part without its skin.
        skin: how deep these may be [m]; None means the chord errors of the facets and the rounding of float32.
        separation: distance that already counts as contact [m].
        tolerance: at the returned time the distance is at most separation + tolerance [m]; None means 1e-6 of the
            larger body's size.
        solid: bodies are solid: where the part begins a segment inside an obstacle that is START, of kind INSIDE, and
            the clearance is 0. Closed meshes whose triangles agree; others are refused.
        instants: so many per segment at which the clearance is measured.
        accuracy: `clearance.certain` is at least (1 - accuracy) `clearance.least`, in (0, 1).
        cap: clearance beyond it need not be certified [m]: `certain` is then at least (1 - accuracy) cap; None means
            no cap.
        progress: True shows a bar on stderr; a function is called with (steps done, steps in all).
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
        raise InputError(f"instants must be a whole number of at least 1 for a segment, not {described(instants)}")
    check_accuracy(accuracy)
    if cap is not None:
        positive(cap, "cap")
    taken = None
    kind = _question(part, things)
    if kind is not PathQuestion and (solid or start != "checked"):
        said = "solid=True" if solid else f"start={start!r}"
        raise InputError(f"{said} is for meshes: analytic bodies and ground are solid anyway")
    if start == "leaving":
        part, taken = mesh_without_skin(part, things, skin)
        tolerance = taken.tolerance(tolerance, part.extent)
    elif start != "checked":
        raise InputError(f"start must be 'checked' or 'leaving', not {described(start)}")
    elif skin is not None:
        raise InputError("skin goes with start='leaving'")
    if solid:
        check_solid(part, "the part")
        for number, thing in enumerate(things):
            check_solid(thing, f"obstacle {number}")
    with using_threads(threads), _reported(progress) as report:
        question = kind(part, things, path, separation, tolerance, solid, device, report)
        status = np.zeros((len(things), len(path)), np.uint8)
        times, uppers = np.full(status.shape, np.inf), np.full(status.shape, np.inf)
        for number, thing, block in question.blocks(0):
            found = question.first_contacts(thing, block)
            status[number, block] = found.status
            times[number, block], uppers[number, block] = found.time, found.time_upper
        segments = PathSegments.of(path, status, times, uppers)
        bound = np.inf if cap is None else cap
        clearance = clearance_profile(question, segments, instants=instants, accuracy=accuracy, cap=bound)
        if taken is not None:
            clearance = clearance.with_skin(taken.deepest)
        return replace(_verdict(question, segments, clearance), skin=taken)


def _question(part: Any, things: list[Any]) -> type[PathQuestion]:
    """What asks about meshes, or about other things too."""
    if all(isinstance(thing.shape if isinstance(thing, Moving) else thing, Mesh) for thing in (part, *things)):
        return PathQuestion
    from tangere.query.path_check.bodies import BodyPathQuestion  # who does not ask does not load it

    return BodyPathQuestion


@contextmanager
def _reported(progress: Progress | bool) -> Iterator[Progress | None]:
    """What hears of progress, if anything does."""
    if progress is not True:
        yield progress or None
        return
    from rich.console import Console
    from rich.progress import Progress as Bars

    with Bars(console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("checking the path")
        yield lambda done, total: bars.update(task, completed=done, total=total)


def _obstacles(part: Any, obstacles: Any, path: Path) -> list[Any]:
    single = isinstance(part, Mesh) or (is_analytic(part) and not isinstance(part, Moving) and len(part) == 1)
    if not single:
        given = described(part)
        raise InputError(f"the part must be a Mesh or one analytic body, not {given}: the path says where it is")
    if not isinstance(path, Path):
        raise InputError(f"the path must be a Path, not {described(path)}: poses (k, 4, 4) go by tg.Path(poses)")
    alone = isinstance(obstacles, (Mesh, Moving)) or is_analytic(obstacles) or kind_of(obstacles) == TERRAIN
    if not alone and not isinstance(obstacles, Iterable):
        raise InputError(f"obstacles must be a Mesh or a list of them, not {type(obstacles).__name__}")
    things = [obstacles] if alone else list(obstacles)
    if not things:
        raise InputError("there are no obstacles")
    for number, thing in enumerate(things):
        shape, motion = (thing.shape, thing.motion) if isinstance(thing, Moving) else (thing, Rest())
        known = isinstance(shape, Mesh) or (is_analytic(shape) and len(shape) == 1) or kind_of(thing) == TERRAIN
        if not known or not isinstance(motion, Rest) or motion.shape:
            raise InputError(f"obstacle {number} must be a Mesh, one body or ground at rest, not {described(thing)}")
    return things


def _verdict(question: PathQuestion, segments: PathSegments, clearance: Clearance) -> PathCheck:
    """What the segments say of the whole path; the first one that touches is searched again for where."""
    path = question.path
    columns = segments.status, segments.time, segments.obstacle, clearance
    if not len(segments.touching):
        return PathCheck(path, np.inf, np.inf, Status.FREE, Contacts(), *columns)
    first = int(segments.touching[0])
    hit = question.hit(first, question.obstacles[segments.obstacle[first]])
    time = float(segments.time[first])
    hit.contacts.time[:] = time
    hit.contacts.body_b[:] = segments.obstacle[first]
    status = Status(int(segments.status[first]))
    return PathCheck(path, time, float(segments.time_upper[first]), status, hit.contacts, *columns)
