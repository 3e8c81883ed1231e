"""Record an insertion, frame by frame, and replay it: a scene like any other, and the force against depth.

The file to be loaded again is one `.npz` of plain arrays, read without pickle. Keys: `format`, `version`, `times` (of
each frame [s]), `needle_radius`, `radius` (of segments) [m], `segments`, `triangles`, `tissue_faces` (numbers of
points), and for frame number i `i/nodes`, `i/points`, `i/tissue`, `i/cells` (float32 [m]), `i/levels`, `i/needle`,
`i/segments`, `i/triangles` (shades) and `i/numbers` (force [N], travel and depth [m]). Version 2 has `i/faces` where
the tissue was cut since the frame before, and `curve`, rows of these numbers between frames.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tangere.needle.drawing import SHADES, NeedleFrame, camera_of, frame_of, things_of
from tangere.runtime import InputError, view_room
from tangere.scene import Scene, read_recorded, write_recorded
from tangere.scene.export import export

FORMAT, VERSION = "tangere.needle", 2
#: Frames of a file for other programs: each has all vertices in all shades.
_MOST_FRAMES = 60
_SHADED = ("needle", "segments", "triangles")
_NUMBERS = ("force", "travel", "depth")


@dataclass(frozen=True, eq=False)
class Recording:
    """A needle, the tissue and what is in it, in many frames."""

    frames: list[NeedleFrame]
    needle_radius: float  #: [m]
    radius: np.ndarray  #: (s,) of the segments of vessels [m]
    segments: np.ndarray  #: (s, 2) numbers of points
    triangles: np.ndarray  #: (t, 3) of membranes
    curve: np.ndarray  #: (m, 3) force [N], travel and depth [m] of every step that was noted

    def __len__(self) -> int:
        return len(self.frames)

    def __repr__(self) -> str:
        return f"Recording(needle, {len(self.segments)} segments of vessels; {len(self)} frames, {self.seconds:g} s)"

    def _repr_png_(self) -> bytes | None:
        """For notebooks: the last frame; None where it cannot be drawn."""
        return view_room().png(self, 1.0)

    @property
    def times(self) -> np.ndarray:
        """(k,) of the frames [s]."""
        return np.array([frame.time for frame in self.frames])

    @property
    def seconds(self) -> float:
        """From the first frame to the last [s]."""
        return float(self.times[-1] - self.times[0])

    @property
    def parts(self) -> np.ndarray:
        """(k,) when each frame is shown, 0 the first and 1 the last."""
        return (self.times - self.times[0]) / (self.seconds or 1.0)

    def numbers(self, name: str) -> np.ndarray:
        """(k,) "force" along the needle [N], "travel" of its base or "depth" of its tip [m] in every frame."""
        if name not in _NUMBERS:
            raise InputError(f"numbers: {name!r} is none of {', '.join(_NUMBERS)}")
        return np.array([frame.numbers.get(name, np.nan) for frame in self.frames])

    def scene(self, *, opacity: float = 0.25) -> Scene:
        """The run as a scene: time 0 is the first frame and 1 the last.

        Args:
            opacity: of the tissue.
        """
        last = self.frames[-1]
        seen = np.concatenate([last.tissue, last.cells.reshape(-1, 3)])
        seen = seen if len(seen) else np.concatenate([last.nodes, last.points])
        things = things_of(
            self.frames,
            self.parts,
            segments=self.segments,
            triangles=self.triangles,
            radius=self.radius,
            needle_radius=self.needle_radius,
            opacity=opacity,
            extent=float(np.linalg.norm(np.ptp(seen, axis=0))),
        )
        clock = float(self.times[0]), float(self.times[-1])
        title = f"needle, {self.seconds:g} s" if len(self) > 1 else "needle"
        return Scene(tuple(things), camera=camera_of(last), title=title, clock=clock if len(self) > 1 else None)

    def plot(self, path: str | Path) -> None:
        """Draw force against travel of the base as a .png file, inward and outward."""
        force, travel = self.curve[:, 0], 1e3 * self.curve[:, 1]
        if not np.isfinite(force).all():
            raise InputError(f"{path}: a kinematic needle feels no force that could be drawn")
        deepest = int(np.argmax(travel))
        series = {"in": (travel[: deepest + 1].tolist(), force[: deepest + 1].tolist())}
        if deepest < len(force) - 1:
            series["out"] = travel[deepest:].tolist(), force[deepest:].tolist()
        labels = {"title": "force of the tissue on the needle", "x_label": "travel of the base [mm]"}
        view_room().plot_lines(path, series, y_label="force [N]", marked=False, **labels)

    def save(self, path: str | Path, **options: Any) -> None:
        """Write the run to a file whose name says the format.

        `.npz` is what `load` reads. Everything else is for other programs, as `Scene.save` writes it: animated `.glb`
        (glTF), `.usd`, a `.pvd` series for ParaView, `.gif` and `.mp4` videos.

        Args:
            options: of what is for other programs: `frames`, at most 60 if it is not said, `seconds`, and for videos
                `size`.
        """
        if Path(path).suffix.lower() != ".npz" or options:
            export(self.scene(), path, **{"frames": min(len(self), _MOST_FRAMES), **options})
            return
        arrays: dict[str, Any] = {"times": self.times, "needle_radius": self.needle_radius, "radius": self.radius}
        arrays["curve"] = self.curve
        arrays |= {"segments": self.segments, "triangles": self.triangles, "tissue_faces": self.frames[0].faces}
        for number, frame in enumerate(self.frames):
            for name in ("nodes", "points", "tissue", "cells"):
                arrays[f"{number}/{name}"] = getattr(frame, name).astype(np.float32)
            if number and not np.array_equal(frame.faces, self.frames[number - 1].faces):
                arrays[f"{number}/faces"] = frame.faces
            arrays |= {f"{number}/{name}": frame.shades[name] for name in _SHADED}
            arrays[f"{number}/levels"] = frame.levels
            arrays[f"{number}/numbers"] = np.array(_row(frame.numbers))
        write_recorded(path, FORMAT, VERSION, arrays)

    @staticmethod
    def load(path: str | Path) -> Recording:
        """The run recorded at `path`."""
        return read_recorded(path, "a recorded run of a needle", FORMAT, range(1, VERSION + 1), _recording)


@dataclass(eq=False)
class Recorder:
    """Keeps the frames of a needle of either kind: call it at the start and after each step that is to be kept.

    Steps that are not kept may be noted, `note`: they are in the plot of the force.
    """

    simulation: Any
    _frames: list[NeedleFrame] = field(default_factory=list)
    _curve: list[list[float]] = field(default_factory=list)

    def __call__(self, time: float | None = None) -> None:
        """Keep what is now.

        Args:
            time: of it [s]; None: that of the simulation, or, of a kinematic needle, one second after the last.
        """
        last = self._frames[-1].time if self._frames else -1.0
        now = float(getattr(self.simulation, "time", last + 1.0) if time is None else time)
        if self._frames and now < last:
            raise InputError(f"Recorder: time goes back, from {last:g} to {now:g} s")
        self._frames.append(frame_of(self.simulation, now))
        self.note()

    def note(self) -> None:
        """Keep the numbers of what is now, and not how it looks."""
        self._curve.append(_row(self.simulation.measures))

    def recording(self) -> Recording:
        """Everything kept so far."""
        if not self._frames:
            raise InputError("Recorder: nothing has been kept yet")
        anatomy = self.simulation.anatomy
        return Recording(
            list(self._frames),
            self.simulation.needle.radius,
            anatomy.radius[: len(anatomy.segments)],
            anatomy.segments,
            anatomy.triangles,
            np.array(self._curve),
        )


def _row(numbers: dict[str, float]) -> list[float]:
    return [numbers.get(name, np.nan) for name in _NUMBERS]


def _recording(arrays: dict[str, np.ndarray]) -> Recording:
    times = np.asarray(arrays["times"], float)
    if times.ndim != 1 or not len(times) or not np.isfinite(times).all() or (np.diff(times) < 0.0).any():
        raise ValueError("the frames have no times that rise")
    segments, triangles, faces = (arrays[name] for name in ("segments", "triangles", "tissue_faces"))
    frames = []
    for number, time in enumerate(times.tolist()):
        nodes, points, tissue, cells = (
            np.asarray(arrays[f"{number}/{name}"], float) for name in ("nodes", "points", "tissue", "cells")
        )
        levels, values = arrays[f"{number}/levels"], arrays[f"{number}/numbers"]
        shades = {name: arrays[f"{number}/{name}"] for name in _SHADED}
        fits = nodes.shape[1:] == points.shape[1:] == tissue.shape[1:] == (3,) and cells.shape == (len(levels), 3, 3)
        sizes = {"needle": len(nodes) - 1, "segments": len(segments), "triangles": len(triangles)}
        fits &= all(shades[name].shape == (size,) for name, size in sizes.items()) and len(nodes) >= 2
        if not fits or values.shape != (len(_NUMBERS),) or any(s.max(initial=0) >= SHADES for s in shades.values()):
            raise ValueError(f"the arrays of frame {number} do not fit each other")
        if not all(np.isfinite(x).all() for x in (nodes, points, tissue, cells)):
            raise ValueError(f"something in frame {number} is nowhere")
        for rows, count, name in ((segments, len(points), "segments"), (triangles, len(points), "triangles")):
            if len(rows) and not 0 <= rows.min() <= rows.max() < count:
                raise ValueError(f"the {name} name points that are not in frame {number}")
        if f"{number}/faces" in arrays:
            faces = arrays[f"{number}/faces"]
        elif frames and tissue.shape != frames[-1].tissue.shape:
            raise ValueError(f"the tissue has another number of vertices in frame {number}, and no faces for them")
        if len(faces) and not 0 <= faces.min() <= faces.max() < len(tissue):
            raise ValueError(f"the faces of the tissue name vertices that are not in frame {number}")
        known = {name: float(value) for name, value in zip(_NUMBERS, values, strict=True) if np.isfinite(value)}
        frames.append(NeedleFrame(time, nodes, points, shades, tissue, faces, cells, levels, known))
    radius = np.asarray(arrays["radius"], float)
    if radius.shape != (len(segments),):
        raise ValueError("segments and their radii do not fit")
    curve = np.asarray(arrays.get("curve", [_row(frame.numbers) for frame in frames]), float)
    if curve.ndim != 2 or curve.shape[1] != len(_NUMBERS):
        raise ValueError("the curve has no three columns")
    return Recording(frames, float(arrays["needle_radius"]), radius, segments, triangles, curve)
