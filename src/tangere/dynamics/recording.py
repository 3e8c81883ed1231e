"""Record a run of a world, frame by frame; look at it, write it to files, and go on from any frame with the same bits.

The file to be loaded again is one `.npz` of plain arrays, read without pickle. Keys: `format`, `version`, `world` (a
text in JSON, as `files.description` has it; a body's `mesh` or `ground` is a number), `mesh/i/vertices` and
`mesh/i/faces`, `ground/i/heights`, `ground/i/spacing`, `ground/i/origin` and `ground/i/holes`, `times`
(k,) of the frames [s]; `contact/point`, `contact/force` and `contact/bodies` with `contact/first`, where those of each
frame begin; and of each array of a checkpoint its rows of all frames, `state/NAME`, and where those of each frame
begin, `first/NAME`. Phases of a step that a user replaced are code, and not in it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tangere.dynamics.body import Body
from tangere.dynamics.drawing import (
    FORCE,
    LONGEST_ARROW,
    arrow_scale,
    arrows,
    body_colour,
    camera_for,
    moving_points,
    on_who_is_carried,
    opacities,
    size_of,
    thing_names,
)
from tangere.dynamics.files.description import BodyShape, SceneFile, describe, generated, read_description
from tangere.dynamics.world import World, world_of
from tangere.motion import Path as PosePath
from tangere.runtime import InputError, described, view_room
from tangere.scene import Scene, Thing, read_recorded, write_recorded
from tangere.scene.export import export
from tangere.shape.heightfield import Heightfield
from tangere.shape.mesh import Mesh

FORMAT, VERSION = "tangere.dynamics", 1
#: Of ground, as `Heightfield` has it.
GROUND_KEYS = ("heights", "spacing", "origin", "holes")
CONTACT_KEYS = ("contact/point", "contact/force", "contact/bodies", "contact/first")


@dataclass(frozen=True, eq=False)
class ForceArrows:
    """A motion that is none: arrows jump to the contacts of each frame, spare ones shrink to nothing."""

    recording: Recording
    scale: float  #: [m/N]
    longest: float  #: [m]

    @property
    def times(self) -> np.ndarray:
        """When the frames are shown: where exported animations have their keys."""
        return self.recording.parts

    def positions(self, start: Any, time: float) -> np.ndarray:
        recording = self.recording
        points, forces, pairs = recording.contact_forces(recording.frame_at(time))
        forces = on_who_is_carried(recording.bodies, pairs, forces, recording.gravity)
        moved = np.broadcast_to(recording.poses[0, 0, :3, 3], np.shape(start)).copy()
        if len(points):
            placed = arrows(points, self.scale * forces, self.longest).vertices
            moved[: len(placed)] = placed
        return moved


@dataclass(frozen=True, eq=False)
class Recording:
    """A world in many frames: where its bodies were, what pushed them, and all that it takes to go on from each."""

    described: dict[str, Any]  #: the world, as `files.description` has it
    shapes: list[Mesh | Heightfield]  #: meshes and grounds that its bodies have, by number
    times: np.ndarray  #: (k,) of the frames [s]
    poses: np.ndarray  #: (k, n, 4, 4) of all bodies [m]
    contacts: tuple[np.ndarray, ...]  #: points (c, 3) [m], forces (c, 3) [N], bodies (c, 2), first (k + 1,)
    states: dict[str, tuple[np.ndarray, np.ndarray]]  #: of all frames, by name: rows, and where each frame begins

    def __len__(self) -> int:
        return len(self.times)

    def __repr__(self) -> str:
        return f"Recording({self.poses.shape[1]} bodies; {len(self)} frames, {self.seconds:g} s)"

    def _repr_png_(self) -> bytes | None:
        """For notebooks: the last frame; None where it cannot be drawn."""
        return view_room().png(self, 1.0)

    def _repr_html_(self) -> str:
        """For notebooks: the same picture with what there is in it."""
        facts = {"bodies": self.poses.shape[1], "frames": len(self), "seconds": f"{self.seconds:g}"}
        return view_room().html("a recorded world", facts, self._repr_png_())

    @property
    def seconds(self) -> float:
        """From the first frame to the last [s]."""
        return float(self.times[-1] - self.times[0])

    @property
    def parts(self) -> np.ndarray:
        """(k,) when each frame is shown, 0 the first and 1 the last."""
        return (self.times - self.times[0]) / (self.seconds or 1.0)

    @property
    def gravity(self) -> np.ndarray:
        """(3,) [m/s^2]."""
        return np.array(self.described.get("gravity", (0.0, 0.0, -9.81)), float)

    @cached_property
    def bodies(self) -> list[Body]:
        """As they were given."""
        return self._scene_file().options["bodies"]

    def frame_at(self, time: float) -> int:
        """The frame nearest to `time` in [0, 1]."""
        return int(np.argmin(np.abs(self.parts - time)))

    def contact_forces(self, frame: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Points (n, 3) [m], forces on the first body (n, 3) [N] and bodies (n, 2) of the contacts of a frame."""
        points, forces, pairs, first = self.contacts
        rows = slice(first[self._frame(frame)], first[self._frame(frame) + 1])
        return points[rows], forces[rows], pairs[rows]

    def contact_points(self, time: float) -> np.ndarray:
        """(n, 3) contacts in the frame nearest to `time` in [0, 1] [m]."""
        return self.contact_forces(self.frame_at(time))[0]

    def world(self, frame: int = -1, **options: Any) -> World:
        """The world as it was in a frame; it goes on with the same bits as it did.

        Args:
            frame: which; negative ones count from the end.
            options: `device` and `threads`; anything else of `World` makes it another world.
        """
        made = world_of(self._scene_file(), "recording", **options)
        made.resume(self.state(frame))
        return made

    def state(self, frame: int) -> dict[str, np.ndarray]:
        """Everything that steps after a frame depend on, by name."""
        k = self._frame(frame)
        return {name: rows[first[k] : first[k + 1]] for name, (rows, first) in self.states.items()}

    def scene(self, *, forces: bool = True) -> Scene:
        """The run as a scene: time 0 is the first frame and 1 the last; forces of contacts are arrows."""
        bodies, parts, gravity = self.bodies, self.parts, self.gravity
        seen = opacities(bodies, self.poses[0], gravity)
        things = []
        for k, name in enumerate(thing_names(bodies)):
            mesh, poses = bodies[k].mesh, self.poses[:, k]
            moves = len(poses) > 1 and parts[-1] > 0.0 and bool((poses != poses[0]).any())
            shape = mesh.moving(PosePath(poses, parts)) if moves else mesh.at(poses[0])
            things.append(Thing(name, shape, body_colour(bodies, k), seen[k]))
        points = np.concatenate([moving_points(bodies, self.poses[k]) for k in (0, -1)])
        everything = np.concatenate([points, *(body.mesh.at(self.poses[0, k]).bounds for k, body in enumerate(bodies))])
        most = int(np.diff(self.contacts[3]).max(initial=0))
        if forces and most:
            size = size_of(bodies, self.poses[0])
            longest = LONGEST_ARROW * size
            spare = arrows(np.zeros((most, 3)), np.tile([0.0, 0.0, longest], (most, 1)))
            motion = ForceArrows(self, arrow_scale(bodies, gravity, size), longest)
            things.append(Thing("forces", spare.moving(motion), FORCE))
        camera = camera_for(gravity, points, everything)
        clock = float(self.times[0]), float(self.times[-1])
        return Scene(tuple(things), camera=camera, title=f"rigid bodies, {self.seconds:g} s", clock=clock)

    def save(self, path: str | Path, *, forces: bool | None = None, **options: Any) -> None:
        """Write the run to a file whose name says the format.

        `.npz` is what `load` reads. Everything else is for other programs, as `Scene.save` writes it: animated `.glb`
        (glTF), `.usd`, `.usda` and `.usdc`, a `.pvd` series for ParaView, `.gif` and `.mp4` videos.

        Args:
            forces: whether other programs get arrows of forces; None means yes in `.gif` and `.mp4`, no in others.
            options: of what is for other programs: `frames`, `seconds`, and for videos `size`.
        """
        kind = Path(path).suffix.lower()
        if kind == ".npz" and not options and forces is None:
            write_recorded(path, FORMAT, VERSION, self._arrays())
            return
        export(self.scene(forces=kind in (".gif", ".mp4") if forces is None else forces), path, **options)

    @staticmethod
    def load(path: str | Path) -> Recording:
        """The run recorded at `path`."""
        return read_recorded(path, "a recorded run of a rigid world", FORMAT, [VERSION], _recording)

    def _frame(self, frame: int) -> int:
        given = int(frame) if isinstance(frame, int | np.integer) else len(self)
        number = given + len(self) if given < 0 else given
        if not 0 <= number < len(self):
            raise InputError(f"there is no frame {described(frame)}; there are {len(self)}, counted from 0")
        return number

    def _scene_file(self) -> SceneFile:
        return read_description(self.described, self._shape, "recording")

    def _shape(self, told: dict[str, Any], whose: str) -> BodyShape:
        if "shape" in told:
            return generated(told["shape"], whose)
        return self.shapes[told["ground"] if "ground" in told else told["mesh"]]

    def _arrays(self) -> dict[str, Any]:
        arrays: dict[str, Any] = {"world": json.dumps(self.described), "times": self.times, "poses": self.poses}
        arrays |= dict(zip(CONTACT_KEYS, self.contacts, strict=True))
        for number, shape in enumerate(self.shapes):
            columns = ("vertices", "faces") if isinstance(shape, Mesh) else GROUND_KEYS
            kind = "mesh" if isinstance(shape, Mesh) else "ground"
            found = {column: getattr(shape, column) for column in columns}
            arrays |= {f"{kind}/{number}/{column}": array for column, array in found.items() if array is not None}
        for name, (rows, first) in self.states.items():
            arrays |= {f"state/{name}": rows, f"first/{name}": first}
        return arrays


@dataclass(eq=False)
class Recorder:
    """Keeps the frames of a world: call it at the start and after each step that is to be kept."""

    simulation: World
    _states: list[dict[str, np.ndarray]] = field(default_factory=list)
    _poses: list[np.ndarray] = field(default_factory=list)
    _contacts: list[tuple[np.ndarray, ...]] = field(default_factory=list)
    _times: list[float] = field(default_factory=list)
    _joints: tuple[Any, ...] = ()

    def __call__(self) -> None:
        """Keep what is now; contacts are those of the last step."""
        world = self.simulation
        if not self._times:
            self._joints = world.joints
        elif world.joints != self._joints:
            raise InputError("Recorder: bodies were joined since the first frame; begin another recording")
        found = world.contacts
        pairs = np.stack([found.body_a, found.body_b], axis=1)
        self.keep(world.time, 0.5 * (found.point_a + found.point_b), world.forces, pairs)

    def keep(self, time: float, points: np.ndarray, forces: np.ndarray, pairs: np.ndarray) -> None:
        """Keep what is now, with a time and contacts of somebody who moves its bodies without steps.

        Args:
            time: not before that of the last frame [s].
            points: (n, 3) of the contacts [m].
            forces: (n, 3) on the first body of each [N].
            pairs: (n, 2) bodies of each.
        """
        if self._times and time < self._times[-1]:
            raise InputError(f"time must not fall: {time:g} s comes after {self._times[-1]:g} s")
        self._states.append(self.simulation.checkpoint())
        self._poses.append(self.simulation.poses)
        self._contacts.append((points, forces, pairs))
        self._times.append(time)

    def recording(self) -> Recording:
        """Everything kept so far."""
        if not self._times:
            raise InputError("Recorder: nothing has been kept yet")
        numbers: dict[int, int] = {}
        shapes: list[Mesh | Heightfield] = []

        def number_of(shape: Mesh | Heightfield) -> int:
            if id(shape) not in numbers:
                numbers[id(shape)] = len(shapes)
                shapes.append(shape)
            return numbers[id(shape)]

        told = describe(self.simulation, number_of, now=False)
        contacts = [np.concatenate([row[k] for row in self._contacts]) for k in range(3)]
        states = {name: _joined([state[name] for state in self._states]) for name in self._states[0]}
        contacts.append(_begins([row[0] for row in self._contacts]))
        return Recording(told, shapes, np.array(self._times), np.stack(self._poses), tuple(contacts), states)


def _begins(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)


def _joined(parts: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    return np.concatenate(parts), _begins(parts)


def _shapes(arrays: dict[str, np.ndarray]) -> list[Mesh | Heightfield]:
    count = len(
        {key for key in arrays if key.startswith(("mesh/", "ground/")) and key.endswith(("/faces", "/heights"))}
    )
    shapes: list[Mesh | Heightfield] = []
    for k in range(count):
        if f"mesh/{k}/faces" in arrays:
            shapes.append(Mesh(arrays[f"mesh/{k}/vertices"], arrays[f"mesh/{k}/faces"]))
        else:
            heights, spacing, origin = (arrays[f"ground/{k}/{name}"] for name in GROUND_KEYS[:3])
            holes = arrays.get(f"ground/{k}/holes")
            shapes.append(Heightfield(heights, tuple(spacing.tolist()), origin=tuple(origin.tolist()), holes=holes))
    return shapes


def _recording(arrays: dict[str, np.ndarray]) -> Recording:
    told = json.loads(str(arrays["world"]))
    if not isinstance(told, dict) or not isinstance(told.get("body"), list):
        raise ValueError(f"the world is {described(told)}")
    shapes = _shapes(arrays)
    times, poses = arrays["times"], arrays["poses"]
    frames = len(times)
    if times.shape != (frames,) or not np.isfinite(times).all() or (np.diff(times) < 0.0).any() or not frames:
        raise ValueError("the times of the frames do not rise")
    if poses.shape != (frames, len(told["body"]), 4, 4) or not np.isfinite(poses).all():
        raise ValueError(f"there are not {frames} finite poses of each body")
    contacts = tuple(arrays[key] for key in CONTACT_KEYS)
    if contacts[0].shape != contacts[1].shape or not np.isfinite(np.concatenate(contacts[:2])).all():
        raise ValueError("the contacts do not fit their forces")
    if contacts[2].shape != (len(contacts[0]), 2):
        raise ValueError("the contacts do not fit their bodies")
    names = [key.removeprefix("state/") for key in arrays if key.startswith("state/")]
    states = {name: (arrays[f"state/{name}"], arrays[f"first/{name}"]) for name in names}
    for rows, first in [(contacts[0], contacts[3]), *states.values()]:
        fits = len(first) == frames + 1 and first[0] == 0 and first[-1] == len(rows)
        if not fits or (np.diff(first) < 0).any():
            raise ValueError("a frame does not say where it begins")
    found = Recording(told, shapes, times, poses, contacts, states)
    if len(found.bodies) != poses.shape[1]:
        raise ValueError("there are not as many bodies as poses")
    return found
