"""Record a run, frame by frame, and replay it: a scene like any other, for pictures, strips and the viewer.

The file is one `.npz` of plain arrays, read without pickle. Keys: `format`, `version`, `seconds`, `distance`, `points`,
`kinds` and `first` (contacts: where, of which kind, and where those of each frame begin), and for body number i
`i/name`, `i/colour`, `i/faces` and `i/frames` (float32, shape (frames, n, 3)).
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tangere.runtime import InputError, TangereError
from tangere.scene import Scene, Thing
from tangere.shape import Mesh
from tangere.soft.drawing import CAMERA, CONTACT_COLOURS, ball_size, balls, body_things
from tangere.soft.simulation import Simulation

__all__ = ["Frames", "Recorder", "Recording"]

FORMAT, VERSION = "tangere.soft", 1


@dataclass(frozen=True, eq=False)
class Frames:
    """A motion through many states: vertices go from each to the next along straight lines, in equal times.

    Args:
        states: shape (k, n, 3) [m].
    """

    states: np.ndarray

    def positions(self, start: Any, time: float) -> np.ndarray:
        """Where the vertices are at `time`, 0 the first state and 1 the last, shape (n, 3) [m]."""
        place = time * (len(self.states) - 1)
        before = min(int(place), len(self.states) - 1)
        after = min(before + 1, len(self.states) - 1)
        part = place - before
        return self.states[before].astype(np.float64) * (1.0 - part) + self.states[after] * part


@dataclass(frozen=True, eq=False)
class ContactBalls:
    """A motion that is none: balls jump to where the contacts of each frame are, spare ones shrink to nothing."""

    recording: Recording
    kind: int
    radius: float

    def positions(self, start: Any, time: float) -> np.ndarray:
        points = self.recording.contact_points(time, self.kind)
        rest = np.asarray(start)
        moved = np.broadcast_to(self.recording.bodies[0][2][0, 0], rest.shape).astype(np.float64)
        if len(points):
            placed = balls(points, self.radius).vertices
            moved[: len(placed)] = placed
        return moved


@dataclass(frozen=True, eq=False)
class Recording:
    """Bodies in many frames, and the contacts of each."""

    bodies: list[tuple[Thing, np.ndarray, np.ndarray]]  #: how it is drawn, faces (m, 3), states (k, n, 3) [m]
    seconds: float  #: from the first frame to the last
    points: np.ndarray  #: (c, 3) of all contacts, frame after frame [m]
    kinds: np.ndarray  #: (c,) uint8, `Kind`
    first: np.ndarray  #: (k + 1,) where the contacts of each frame begin

    def __len__(self) -> int:
        return len(self.first) - 1

    def frame_at(self, time: float) -> int:
        """The frame nearest to `time` in [0, 1]."""
        return round(time * (len(self) - 1))

    def contact_points(self, time: float, kind: int | None = None) -> np.ndarray:
        """(n, 3) contacts in the frame nearest to `time` [m], of one kind or of all."""
        frame = slice(*self.first[self.frame_at(time) : self.frame_at(time) + 2])
        points, kinds = self.points[frame], self.kinds[frame]
        return points if kind is None else points[kinds == kind]

    def scene(self) -> Scene:
        """The run as a scene: time 0 is the first frame and 1 the last, contacts are small balls."""
        things = []
        for thing, faces, states in self.bodies:
            mesh = Mesh(states[0].astype(np.float64), faces, name=thing.name)
            moves = len(states) > 1 and bool((states != states[0]).any())
            things.append(Thing(thing.name, mesh.moving(Frames(states)) if moves else mesh, thing.colour))
        moving = [states for _, _, states in self.bodies if (states[0] != states[-1]).any()] or [self.bodies[0][2]]
        ends = np.concatenate([states[[0, -1]].reshape(-1, 3) for states in moving])
        radius = ball_size(int(np.diff(self.first).max(initial=1)), float(np.linalg.norm(np.ptp(ends, axis=0))))
        for kind, colour in CONTACT_COLOURS.items():
            begins = np.concatenate([[0], np.cumsum(self.kinds == kind)])
            most = int(np.diff(begins[self.first]).max(initial=0))
            if most:
                spare = balls(np.zeros((most, 3)), radius)
                motion = ContactBalls(self, int(kind), radius)
                name = kind.name.lower().replace("_", "-") + " contacts"
                things.append(Thing(name, spare.moving(motion), colour))
        return Scene(tuple(things), camera=CAMERA, title=f"soft bodies, {self.seconds:g} s")

    def save(self, path: str | Path) -> None:
        """Write the run to one file, `.npz` by custom."""
        arrays: dict[str, Any] = {"format": FORMAT, "version": VERSION, "seconds": self.seconds}
        arrays |= {"points": self.points, "kinds": self.kinds, "first": self.first}
        for number, (thing, faces, states) in enumerate(self.bodies):
            arrays |= {f"{number}/name": thing.name, f"{number}/colour": thing.colour}
            arrays |= {f"{number}/faces": faces, f"{number}/frames": states}
        try:
            with open(path, "wb") as file:
                np.savez_compressed(file, **arrays)
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error

    @staticmethod
    def load(path: str | Path) -> Recording:
        """The run recorded at `path`."""
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {key: file[key] for key in file.files} if isinstance(file, np.lib.npyio.NpzFile) else {}
        except FileNotFoundError as error:
            raise InputError(f"{path}: no such file") from error
        except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise InputError(f"{path}: not a recorded run, or a damaged one: {error}") from error
        if str(arrays.get("format")) != FORMAT:
            raise InputError(f"{path}: not a recorded run of soft bodies")
        if int(arrays["version"]) != VERSION:
            raise InputError(f"{path}: recorded with version {int(arrays['version'])}; this tangere reads {VERSION}")
        try:
            return _recording(arrays)
        except KeyError as error:
            raise InputError(f"{path}: the recording lacks {error}") from error
        except (TangereError, TypeError, ValueError) as error:
            raise InputError(f"{path}: the recording is damaged: {error}") from error


@dataclass(eq=False)
class Recorder:
    """Keeps the frames of a simulation: call it at the start and after each step that is to be kept."""

    simulation: Simulation
    _states: list[list[np.ndarray]] = field(default_factory=list)
    _contacts: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    _times: list[float] = field(default_factory=list)

    def __call__(self) -> None:
        """Keep what is now; contacts are those of the last step."""
        self._states.append([mesh.vertices.astype(np.float32) for mesh in self.simulation.meshes()])
        found = self.simulation.contacts
        self._contacts.append((0.5 * (found.point_a + found.point_b), found.kind))
        self._times.append(self.simulation.time)

    def recording(self) -> Recording:
        """Everything kept so far."""
        if not self._states:
            raise InputError("Recorder: nothing has been kept yet")
        meshes = self.simulation.meshes()
        things = body_things(self.simulation, meshes)
        bodies = [
            (thing, mesh.faces, np.stack([frame[number] for frame in self._states]))
            for number, (thing, mesh) in enumerate(zip(things, meshes, strict=True))
        ]
        counts = [len(points) for points, _ in self._contacts]
        return Recording(
            bodies,
            self._times[-1] - self._times[0],
            np.concatenate([points.reshape(-1, 3) for points, _ in self._contacts]),
            np.concatenate([kinds for _, kinds in self._contacts]).astype(np.uint8),
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        )


def _recording(arrays: dict[str, np.ndarray]) -> Recording:
    numbers = sorted({int(key.split("/")[0]) for key in arrays if key.split("/")[0].isdigit()})
    points, kinds, first = arrays["points"], arrays["kinds"], arrays["first"]
    if points.shape != (len(kinds), 3) or first[-1] != len(kinds) or (np.diff(first) < 0).any():
        raise ValueError("the contacts do not fit their frames")
    bodies = []
    for number in numbers:
        faces, states = arrays[f"{number}/faces"], arrays[f"{number}/frames"]
        if states.ndim != 3 or len(states) != len(first) - 1 or not np.isfinite(states).all():
            raise ValueError(f"the frames of body {number} are not {len(first) - 1} finite states")
        mesh = Mesh(states[0].astype(np.float64), faces)
        thing = Thing(str(arrays[f"{number}/name"]), mesh, tuple(arrays[f"{number}/colour"].tolist()))
        bodies.append((thing, mesh.faces, states))
    if not bodies:
        raise ValueError("there are no bodies")
    return Recording(bodies, float(arrays["seconds"]), points, kinds, first)
