"""Record a run, frame by frame, and replay it: a scene like any other, for pictures, files and the viewer.

The file to be loaded again is one `.npz` of plain arrays, read without pickle. Keys: `format`, `version`, `times` (of
each frame [s]), `origin` (3,) [m], `points`, `kinds` and `first` (contacts: where, of which kind, and where those of
each frame begin), and for body number i `i/name`, `i/colour`, `i/faces`, `i/frames` (float32, shape (frames, n, 3),
from the origin) and `i/begin`, the first frame in which it is there. A body that is cut is another one from then on,
and its walls are one of their own. Files of version 2 have bodies that are always there; those of version 1 have
`seconds` for the whole run instead of times and an origin.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tangere.runtime import InputError, view_room
from tangere.scene import Episode, Keyframes, RecordedContacts, Scene, Thing, read_recorded, write_recorded
from tangere.scene.export import export
from tangere.shape.mesh import Mesh, Topology
from tangere.soft.drawing import CAMERA, WALL_COLOUR, body_things
from tangere.soft.simulation import Simulation

FORMAT, VERSION = "tangere.soft", 3


@dataclass(frozen=True, eq=False)
class Recording:
    """Bodies in many frames, and the contacts of each."""

    bodies: list[tuple[Thing, np.ndarray, np.ndarray]]  #: how it is drawn, faces (m, 3), states (frames, n, 3) [m]
    times: np.ndarray  #: (k,) of the frames [s]
    origin: np.ndarray  #: (3,) of the states [m]
    points: np.ndarray  #: (c, 3) of all contacts, frame after frame [m]
    kinds: np.ndarray  #: (c,) uint8, `Kind`
    first: np.ndarray  #: (k + 1,) where the contacts of each frame begin
    begins: tuple[int, ...] = ()  #: the first frame in which each body is there; () means that all always are

    def __len__(self) -> int:
        return len(self.first) - 1

    def __repr__(self) -> str:
        names = ", ".join(repr(thing.name) for thing, _, _ in self.bodies)
        return f"Recording({names}; {len(self)} frames, {self.seconds:g} s)"

    def _repr_png_(self) -> bytes | None:
        """For notebooks: the last frame; None where it cannot be drawn."""
        return view_room().png(self, 1.0)

    @property
    def seconds(self) -> float:
        """From the first frame to the last [s]."""
        return float(self.times[-1] - self.times[0])

    @property
    def parts(self) -> np.ndarray:
        """(k,) when each frame is shown, 0 the first and 1 the last."""
        return (self.times - self.times[0]) / (self.seconds or 1.0)

    @property
    def contacts(self) -> RecordedContacts:
        """Where bodies touched, frame by frame."""
        return RecordedContacts(self.parts, self.points, self.kinds, self.first)

    def contact_points(self, time: float, kind: int | None = None) -> np.ndarray:
        """(n, 3) contacts in the frame nearest to `time` in [0, 1] [m], of one kind or of all."""
        return self.contacts.at(time, kind)

    def scene(self) -> Scene:
        """The run as a scene: time 0 is the first frame and 1 the last, contacts are small balls."""
        things = []
        for (thing, faces, states), begin in zip(self.bodies, self.begins or [0] * len(self.bodies), strict=True):
            mesh = Mesh(states[0] + self.origin, faces, name=thing.name)
            moves = len(states) > 1 and bool((states != states[0]).any())
            motion = Keyframes(states, self.parts[begin : begin + len(states)], self.origin)
            if len(states) < len(self):
                end = begin + len(states)
                span = float(self.parts[begin]), float(self.parts[end]) if end < len(self) else 1.0
                motion, moves = Episode(motion, span), True
            things.append(Thing(thing.name, mesh.moving(motion) if moves else mesh, thing.colour))
        moving = [states for _, _, states in self.bodies if (states[0] != states[-1]).any()] or [self.bodies[0][2]]
        ends = np.concatenate([states[[0, -1]].reshape(-1, 3) for states in moving])
        extent = float(np.linalg.norm(np.ptp(ends, axis=0)))
        things += self.contacts.things(extent, self.origin + self.bodies[0][2][0, 0])
        clock = float(self.times[0]), float(self.times[-1])
        return Scene(tuple(things), camera=CAMERA, title=f"soft bodies, {self.seconds:g} s", clock=clock)

    def save(self, path: str | Path, **options: Any) -> None:
        """Write the run to a file whose name says the format.

        `.npz` is what `load` reads. Everything else is for other programs, as `Scene.save` writes it: animated `.glb`
        (glTF), `.usd`, `.usda` and `.usdc`, a `.pvd` series for ParaView, `.gif` and `.mp4` videos.

        Args:
            options: of what is for other programs: `frames`, `seconds`, and for videos `size`.
        """
        if Path(path).suffix.lower() != ".npz" or options:
            export(self, path, **options)
            return
        arrays: dict[str, Any] = {"times": self.times, "origin": self.origin}
        arrays |= {"points": self.points, "kinds": self.kinds, "first": self.first}
        for number, (thing, faces, states) in enumerate(self.bodies):
            arrays |= {f"{number}/name": thing.name, f"{number}/colour": thing.colour}
            arrays |= {f"{number}/faces": faces, f"{number}/frames": states}
            arrays |= {f"{number}/begin": self.begins[number] if self.begins else 0}
        write_recorded(path, FORMAT, VERSION, arrays)

    @staticmethod
    def load(path: str | Path) -> Recording:
        """The run recorded at `path`."""
        return read_recorded(path, "a recorded run of soft bodies", FORMAT, range(1, VERSION + 1), _recording)


@dataclass(frozen=True, eq=False)
class _Version:
    """A body from one cut to the next."""

    called: str  #: the body, whose versions have names of their own
    thing: Thing
    topology: Topology
    walls: np.ndarray  #: (m,) bool, which of its triangles a blade has opened
    begin: int  #: its first frame
    states: list[np.ndarray] = field(default_factory=list)

    def bodies(self) -> list[tuple[Thing, np.ndarray, np.ndarray]]:
        """As a recording has it: what was its surface before, and what has been opened."""
        faces, states = self.topology.faces, np.stack(self.states)
        if not self.walls.any():
            return [(self.thing, faces, states)]
        found = []
        for chosen, thing in (
            (~self.walls, self.thing),
            (self.walls, Thing(f"{self.thing.name}, walls", self.thing.shape, WALL_COLOUR)),
        ):
            used, local = np.unique(faces[chosen], return_inverse=True)
            found.append((thing, local.reshape(-1, 3).astype(np.int32), states[:, used]))
        return found


@dataclass(eq=False)
class Recorder:
    """Keeps the frames of a simulation: call it at the start and after each step that is to be kept."""

    simulation: Simulation
    _origin: np.ndarray = field(default_factory=lambda: np.zeros(3))
    _shown: dict[int, _Version] = field(default_factory=dict)
    _versions: list[_Version] = field(default_factory=list)
    _contacts: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    _times: list[float] = field(default_factory=list)

    def __call__(self) -> None:
        """Keep what is now; contacts are those of the last step, with response "penalty" those of them that push.

        That one looks at all features near each other, most of which are so at rest: too many to be drawn or stored.
        """
        meshes = self.simulation.meshes()
        if not self._times:  # far from 0 float32 has too few digits
            self._origin = Mesh.join(meshes).bounds.mean(axis=0)
        things = body_things(self.simulation, meshes)
        for number, (mesh, body) in enumerate(zip(meshes, self.simulation.bodies, strict=True)):
            shown = self._shown.get(number)
            if shown is None or shown.topology is not mesh.topology:
                count = sum(version.called == things[number].name for version in self._versions)
                name = things[number].name + (f", cut {count}" if count else "")
                thing = Thing(name, mesh, things[number].colour)
                shown = self._shown[number] = _Version(
                    things[number].name, thing, mesh.topology, body.wall_faces, len(self._times)
                )
                self._versions.append(shown)
            shown.states.append((mesh.vertices - self._origin).astype(np.float32))
        found = self.simulation.contacts
        if self.simulation.response == "penalty" and len(found):
            found = found[self.simulation.contact_forces.any(axis=1)]
        self._contacts.append((0.5 * (found.point_a + found.point_b), found.kind))
        self._times.append(self.simulation.time)

    def recording(self) -> Recording:
        """Everything kept so far."""
        if not self._times:
            raise InputError("Recorder: nothing has been kept yet")
        bodies, begins = [], []
        for version in self._versions:
            for one in version.bodies():
                bodies.append(one)
                begins.append(version.begin)
        counts = [len(points) for points, _ in self._contacts]
        return Recording(
            bodies,
            np.array(self._times),
            self._origin,
            np.concatenate([points.reshape(-1, 3) for points, _ in self._contacts]),
            np.concatenate([kinds for _, kinds in self._contacts]).astype(np.uint8),
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            tuple(begins) if any(len(states) < len(self._times) for _, _, states in bodies) else (),
        )


def _recording(arrays: dict[str, np.ndarray]) -> Recording:
    numbers = sorted({int(key.split("/")[0]) for key in arrays if key.split("/")[0].isdigit()})
    points, kinds, first = arrays["points"], arrays["kinds"], arrays["first"]
    if first.ndim != 1 or len(first) < 2 or not np.issubdtype(first.dtype, np.integer):
        raise ValueError("the frames have no list of where their contacts begin")
    if points.shape != (len(kinds), 3) or first[0] != 0 or first[-1] != len(kinds) or (np.diff(first) < 0).any():
        raise ValueError("the contacts do not fit their frames")
    if not np.isfinite(points).all():
        raise ValueError("a contact is nowhere")
    frames = len(first) - 1
    if "times" not in arrays and int(arrays["version"]) == 1:
        arrays = {**arrays, "times": np.linspace(0.0, float(arrays["seconds"]), frames), "origin": np.zeros(3)}
    times, origin = (np.asarray(arrays[key], np.float64) for key in ("times", "origin"))
    if times.shape != (frames,) or origin.shape != (3,) or not np.isfinite(np.concatenate([times, origin])).all():
        raise ValueError(f"there are not {frames} finite times and an origin")
    if (np.diff(times) < 0.0).any():
        raise ValueError("the times of the frames go back")
    bodies, begins = [], []
    for number in numbers:
        faces, states = arrays[f"{number}/faces"], arrays[f"{number}/frames"]
        begins.append(int(arrays.get(f"{number}/begin", np.zeros(()))))
        whole = begins[-1] == 0 and len(states) == frames
        if not whole and (int(arrays["version"]) < 3 or not 0 <= begins[-1] <= frames - len(states) or not len(states)):
            raise ValueError(f"the frames of body {number} are not {frames} finite states")
        if states.ndim != 3 or not np.isfinite(states).all():
            raise ValueError(f"the frames of body {number} are not {frames} finite states")
        mesh = Mesh(states[0] + origin, faces)
        thing = Thing(str(arrays[f"{number}/name"]), mesh, tuple(arrays[f"{number}/colour"].tolist()))
        bodies.append((thing, mesh.faces, states))
    if not bodies:
        raise ValueError("there are no bodies")
    always = all(len(states) == frames for _, _, states in bodies)
    return Recording(bodies, times, origin, points, kinds, first, () if always else tuple(begins))
