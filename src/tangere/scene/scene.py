"""The scene: things in their frames, moving over one stretch of time, and the contacts between them.

Every picture, the viewer and the recorder are fed by this one description; nothing here knows how it is drawn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Decimal, localcontext
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tangere.query.contacts import Contacts
from tangere.runtime import InputError, to_numpy, view_room
from tangere.scene.camera import Camera
from tangere.scene.creases import CreasedMesh, split_creases
from tangere.scene.tessellation import mesh_of
from tangere.shape import Moving
from tangere.shape.analytic import Analytic
from tangere.shape.heightfield import Heightfield
from tangere.shape.mesh import Mesh

Colour = tuple[float, float, float]
#: What can be a thing.
Drawable = Mesh | Moving | Heightfield | Analytic

#: Body colours (sRGB, 0 to 1): muted, so that contacts in strong colours stand out, and told apart by the colour-blind.
PALETTE: tuple[Colour, ...] = (
    (0.36, 0.55, 0.75),
    (0.93, 0.68, 0.42),
    (0.45, 0.70, 0.62),
    (0.78, 0.55, 0.66),
    (0.62, 0.60, 0.78),
    (0.74, 0.73, 0.55),
)


@dataclass(frozen=True, eq=False)
class Thing:
    """One body, or one batch of bodies: at rest, or moving.

    Args:
        name: unique in its scene.
        shape: a `Mesh`, a `Heightfield`, placed cylinders, spheres, boxes and the like, or what `moving(motion)` gives.
        colour: sRGB, each 0 to 1.
        opacity: 1 is solid, 0 invisible.
        frame: pose of the shape's coordinates in the world, shape (4, 4).
    """

    name: str
    shape: Drawable
    colour: Colour = PALETTE[0]
    opacity: float = 1.0
    frame: np.ndarray = field(default_factory=lambda: np.eye(4))

    def __post_init__(self) -> None:
        if not isinstance(self.shape, Drawable):
            raise InputError(
                f"Thing {self.name!r}: shape must be a Mesh, a Heightfield, analytic bodies or a Moving,"
                f" not {type(self.shape).__name__}"
            )
        if len(self.colour) != 3 or not all(0.0 <= c <= 1.0 for c in self.colour) or not 0.0 <= self.opacity <= 1.0:
            raise InputError(f"Thing {self.name!r}: colour and opacity must be between 0 and 1")
        frame = np.asarray(self.frame, float)
        if frame.shape != (4, 4) or not np.isfinite(frame).all():
            raise InputError(f"Thing {self.name!r}: frame must be a finite (4, 4) pose")
        object.__setattr__(self, "frame", frame)

    @property
    def moves(self) -> bool:
        """Whether its vertices depend on time."""
        return isinstance(self.shape, Moving)

    @cached_property
    def mesh(self) -> Mesh:
        """The mesh that is drawn, in its own coordinates: where a motion starts from."""
        if isinstance(self.shape, Moving):
            return self.shape.shape if isinstance(self.shape.shape, Mesh) else mesh_of(self.shape.at(0.0))
        return mesh_of(self.shape)

    @property
    def faces(self) -> np.ndarray:
        """Vertex numbers, shape (m, 3)."""
        return to_numpy(self.mesh.faces, "faces", np.int32)

    def vertices(self, time: float) -> np.ndarray:
        """Positions in the world at `time`, shape (n, 3) [m]."""
        return self._placed(mesh_of(self.shape.at(time)) if isinstance(self.shape, Moving) else self.mesh)

    @cached_property
    def creased(self) -> CreasedMesh:
        """The mesh with vertices of their own on both sides of its sharp edges: those of where a motion starts from."""
        return split_creases(self.rest_vertices, self.faces)

    @property
    def rest_vertices(self) -> np.ndarray:
        """Where a motion starts from, or the body rests, in the world, shape (n, 3) [m]."""
        return self._placed(self.mesh)

    def _placed(self, mesh: Mesh) -> np.ndarray:
        return to_numpy(mesh.vertices, "vertices") @ self.frame[:3, :3].T + self.frame[:3, 3]


@dataclass(frozen=True, eq=False)
class Scene:
    """Things, the contacts between them (in the world frame), and the stretch of time they are shown over.

    Args:
        clock: what the user's clock shows at the ends of the time range, such as the first and last time of a path
            file; None means that it shows the same times.
    """

    things: tuple[Thing, ...]
    contacts: Contacts = field(default_factory=Contacts)
    time_range: tuple[float, float] = (0.0, 1.0)
    camera: Camera = field(default_factory=Camera)
    title: str = ""
    mark_size: float = 1.0  #: of the marks at contacts, as a part of what suits the extent of the scene
    clock: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "things", tuple(self.things))
        names = [thing.name for thing in self.things]
        twice = next((name for name in names if names.count(name) > 1), None)
        if not names:
            raise InputError("Scene: there must be at least one thing")
        if twice is not None:
            raise InputError(f"Scene: two things are called {twice!r}")
        start, end = self.time_range
        if not (np.isfinite(start) and np.isfinite(end) and start <= end):
            raise InputError(f"Scene: time_range must rise, not {self.time_range}")
        if self.clock is not None and not (np.isfinite(self.clock).all() and self.clock[0] <= self.clock[1]):
            raise InputError(f"Scene: clock must be two times that rise, not {self.clock}")
        if not 0.0 < self.mark_size < np.inf:
            raise InputError(f"Scene: mark_size must be positive, not {self.mark_size}")

    @classmethod
    def of(
        cls,
        *bodies: Drawable,
        contacts: Contacts | None = None,
        time_range: tuple[float, float] = (0.0, 1.0),
        camera: Camera | None = None,
        title: str = "",
        mark_size: float = 1.0,
        clock: tuple[float, float] | None = None,
    ) -> Scene:
        """A scene of bodies, each in a colour of its own and named after its mesh or kind."""
        things: list[Thing] = []
        for number, body in enumerate(bodies):
            shape: Any = body.shape if isinstance(body, Moving) else body
            kind = f"{len(shape)} x {type(shape).__name__.lower()}" if isinstance(shape, Analytic) else None
            name = kind or getattr(shape, "name", None) or f"body {number}"
            if any(name == thing.name for thing in things):
                name = f"{name} ({number})"
            things.append(Thing(name, body, PALETTE[number % len(PALETTE)]))
        return cls(tuple(things), contacts or Contacts(), time_range, camera or Camera(), title, mark_size, clock)

    @classmethod
    def around(cls, shown: Scene | Drawable | Any) -> Scene:
        """`shown` itself if it is a scene; its `scene()` if it has one, as simulations and recorded runs do; a body, at
        rest or moving, alone in a scene of its own."""
        if callable(getattr(shown, "scene", None)):
            shown = shown.scene()
        return shown if isinstance(shown, Scene) else cls.of(shown)

    def with_glass(self, *names: str, opacity: float = 0.3) -> Scene:
        """The same scene with these things see-through: parts are mostly moved inside of something.

        Args:
            opacity: 1 is solid, 0 invisible.
        """
        if not 0.0 <= opacity <= 1.0:
            raise InputError(f"Scene: opacity must be between 0 and 1, not {opacity!r}")
        missing = next((name for name in names if all(name != thing.name for thing in self.things)), None)
        if missing is not None:
            raise InputError(f"Scene: nothing is called {missing!r}")
        things = (replace(thing, opacity=opacity) if thing.name in names else thing for thing in self.things)
        return replace(self, things=tuple(things))

    def checked_time(self, time: float) -> float:
        """`time`, which must be in the time range."""
        start, end = self.time_range
        if not start <= time <= end:
            raise InputError(f"the scene is described for times from {start:g} to {end:g}, not {time:g}")
        return time

    def on_clock(self, time: float) -> float:
        """What the clock shows at `time`."""
        (start, end), (first, last) = self.time_range, self.clock or self.time_range
        return first + (last - first) * (time - start) / ((end - start) or 1.0)

    def clock_text(self, time: float, digits: int, *, down: bool = False) -> str:
        """What the clock shows at `time`, in as many decimals as `digits` of the whole range need.

        Args:
            down: for times of contacts, which must not be told late.
        """
        return self.shown_text(self.on_clock(time), digits, down=down)

    def shown_text(self, shown: float, digits: int, *, down: bool = False) -> str:
        """The same of a time that is the clock's already."""
        first, last = self.clock or self.time_range
        decimals = max(0, digits - 1 - math.floor(math.log10((last - first) or 1.0)))
        exact = Decimal(repr(float(shown)))  # as it is printed: 0.3 is 0.3, not a little less
        with localcontext(prec=400):
            return f"{exact.quantize(Decimal(1).scaleb(-decimals), ROUND_FLOOR if down else ROUND_HALF_EVEN) + 0:f}"

    def off_clock(self, shown: float) -> float:
        """The time at which the clock shows so much, at most the ends of the time range."""
        (start, end), (first, last) = self.time_range, self.clock or self.time_range
        return min(max(start + (end - start) * (shown - first) / ((last - first) or 1.0), start), end)

    def contacts_by(self, time: float) -> Contacts:
        """The contacts that have happened by `time`."""
        return self.contacts[self.contacts.time <= time]

    @cached_property
    def points(self) -> np.ndarray:
        """What a camera has to see, shape (n, 3) [m]; every vertex, at both ends of the time range."""
        return np.concatenate(
            [t.vertices(time) for t in self.things for time in (self.time_range if t.moves else (0,))]
        )

    @cached_property
    def extent(self) -> float:
        """Diagonal of the box around everything over the whole time [m]."""
        points = self.points
        return float(np.linalg.norm(points.max(0) - points.min(0)))

    def save(
        self,
        path: str | Path,
        *,
        frames: int | None = None,
        seconds: float | None = None,
        size: tuple[int, int] | None = None,
    ) -> None:
        """Write the scene to a file whose name says the format.

        `.npz` is what `load` reads; `.glb` (glTF), `.usd`, `.usda`, `.usdc` (extra [usd]) are animated; `.pvd` is a
        series for ParaView in a folder beside it, `.vtu` its start; `.gif` and `.mp4` (extras [view], [video]) videos.

        Args:
            frames: how many instants are written; None means as many as it takes.
            seconds: how long it plays; None means what the clock of the scene says.
            size: width and height of a video in pixels.
        """
        from tangere.scene.export import export

        export(self, path, frames=frames, seconds=seconds, size=size)

    @classmethod
    def load(cls, path: str | Path) -> Scene:
        """Read back what `save` wrote as `.npz`; anything else raises an `InputError` that says why."""
        from tangere.scene.recording import load_scene

        return load_scene(path)

    @cached_property
    def _png(self) -> bytes | None:
        return view_room().png(self)

    def _repr_png_(self) -> bytes | None:
        """For notebooks: a picture at the first contact, or at the start."""
        return self._png

    def _repr_html_(self) -> str:
        """For notebooks: the same picture with what there is in it."""
        return view_room().html(repr(self), image=self._png)

    def __repr__(self) -> str:
        names = ", ".join(thing.name for thing in self.things)
        return f"Scene({names}; {len(self.contacts)} contacts; time {self.time_range[0]:g} to {self.time_range[1]:g})"
