"""Record what a part did, and replay it: the same actions under other settings, step by step, counted and timed.

A trajectory is a part, what stands still round it, and one rigid motion for every action, each from where the part was
to where it was meant to go. The file is one `.npz` of plain arrays, read without pickle. A replay asks every action for
its first contact; times, statuses and features have the same bits from run to run and for any number of CPU threads,
the counters are exact on one. Counters are those of Redon 2002, section 3.5 (N_BV, N_EE, N_VF, N_FV, N_rec, T).
"""

from __future__ import annotations

import csv
import time
from dataclasses import astuple, dataclass, field, fields
from pathlib import Path

import numpy as np

from tangere.bvh.recession import RecessionCones
from tangere.motion import COSINE, STEADY, TANGENT, Rigid
from tangere.motion.rigid_motion import RECORD, blank_records, motions_of
from tangere.published.redon_intervals import IntervalOptions, first_contacts_by_intervals
from tangere.published.redon_intervals.result import IntervalCounters as IntervalCounters
from tangere.query.contacts import Status
from tangere.query.first_contact import RigidOptions
from tangere.query.first_contact.rigid.api import Counters as SoundCounters
from tangere.query.first_contact.rigid.api import rigid_first_contact
from tangere.runtime import InputError, TangereError
from tangere.shape.mesh import Mesh

__all__ = ["Replay", "Trajectory", "replay"]

FORMAT, VERSION = "tangere.trajectory", 1


@dataclass(frozen=True, eq=False)
class Trajectory:
    """The actions of a part beside something that stands still.

    Args:
        part: the mesh that moves, in its own frame.
        fixed: the mesh that does not.
        motion: one rigid motion for each action, shape (n,); `Rigid.join` makes one of many.
    """

    part: Mesh
    fixed: Mesh
    motion: Rigid

    def __post_init__(self) -> None:
        if not isinstance(self.motion, Rigid) or len(self.motion.shape) != 1:
            raise InputError(f"Trajectory: the motion must be a row of rigid motions, not {self.motion!r}")

    def __len__(self) -> int:
        return len(self.motion)

    def __getitem__(self, rows: slice | np.ndarray) -> Trajectory:
        """Some of the actions, chosen by a slice, numbers or a mask."""
        return Trajectory(self.part, self.fixed, self.motion[rows])

    def __repr__(self) -> str:
        return f"Trajectory({self.part.name!r} beside {self.fixed.name!r}, {len(self)} actions)"

    def save(self, path: str | Path) -> None:
        """Write the trajectory to one file, `.npz` by custom."""
        arrays: dict[str, object] = {"format": FORMAT, "version": VERSION, "links": self.motion.links}
        for side, mesh in (("part", self.part), ("fixed", self.fixed)):
            arrays |= {f"{side}/name": mesh.name, f"{side}/vertices": mesh.vertices, f"{side}/faces": mesh.faces}
        records = self.motion.records()
        arrays |= {f"motion/{name}": records[name] for name in RECORD.names or ()}
        try:
            with open(path, "wb") as file:
                np.savez_compressed(file, **arrays)  # pyright: ignore[reportArgumentType]
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error

    @staticmethod
    def load(path: str | Path) -> Trajectory:
        """The trajectory recorded at `path`."""
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {key: file[key] for key in file.files} if isinstance(file, np.lib.npyio.NpzFile) else {}
        except FileNotFoundError as error:
            raise InputError(f"{path}: no such file") from error
        except Exception as error:  # damaged archives make zipfile, zlib and NumPy raise nearly anything
            raise InputError(f"{path}: not a recorded trajectory, or a damaged one: {error}") from error
        if str(arrays.get("format")) != FORMAT:
            raise InputError(f"{path}: a file of arrays, but not a recorded trajectory")
        version = arrays.get("version")
        if version is None or version.shape or int(version) != VERSION:
            raise InputError(f"{path}: recorded with version {version}; this tangere reads {VERSION}")
        try:
            return Trajectory(_mesh(arrays, "part"), _mesh(arrays, "fixed"), _motion(arrays))
        except KeyError as error:
            raise InputError(f"{path}: the recording lacks {error}") from error
        except (TangereError, TypeError, ValueError) as error:
            raise InputError(f"{path}: the recording is damaged: {error}") from error


@dataclass(frozen=True, eq=False)
class Replay:
    """What every action of a trajectory met, and what it took to find out."""

    time: np.ndarray  #: (n,) of the first contact in [0, 1], inf when free
    status: np.ndarray  #: (n,) `Status`
    features: np.ndarray  #: (n, 2) of part and fixed that touch: `feature_a`, `feature_b` of the contact; -1 when free
    seconds: np.ndarray = field(repr=False)  #: (n,) wall time of each step
    counts: dict[str, np.ndarray] = field(repr=False)  #: (n,) each, by the names of the engine's counters

    def __len__(self) -> int:
        return len(self.time)

    @property
    def totals(self) -> dict[str, int]:
        """The counters over all steps."""
        return {name: int(column.sum()) for name, column in self.counts.items()}

    @property
    def rate(self) -> float:
        """Steps per second."""
        return len(self) / float(self.seconds.sum())

    def same_answers(self, other: Replay) -> bool:
        """Whether all times, statuses and features have the same bits."""
        names = ("time", "status", "features")
        return all(getattr(self, name).tobytes() == getattr(other, name).tobytes() for name in names)

    def write_csv(self, path: str | Path) -> None:
        """One row per step: its number, time, status and seconds, then the counters."""
        with open(path, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["step", "time", "status", "seconds", *self.counts])
            for step in range(len(self)):
                row = [step, repr(float(self.time[step])), Status(int(self.status[step])).name.lower()]
                row += [repr(float(self.seconds[step])), *(int(column[step]) for column in self.counts.values())]
                writer.writerow(row)


def replay(
    trajectory: Trajectory,
    intervals: IntervalOptions | None = None,
    *,
    cones: tuple[RecessionCones, RecessionCones] | None = None,
    separation: float = 0.0,
    tolerance: float | None = None,
    recession: bool = False,
    device: str | None = None,
    threads: int | None = None,
) -> Replay:
    """Ask every action of a trajectory, one after the other, for its first contact.

    Args:
        intervals: settings of the interval engine (engine B of the thesis); None means the sound engine, whose
            counters are box_tests, triangle_tests, triangle_pairs and receding.
        cones: recession vectors for the interval engine; see `first_contacts_by_intervals`.
        separation, tolerance, recession: for the sound engine, as for `rigid_first_contact`.
        device: where to compute; None means CUDA if present.
        threads: CPU threads; None means all, or TANGERE_THREADS. Counters are exact on one.
    """
    count = len(trajectory)
    times, status = np.full(count, np.inf), np.zeros(count, np.uint8)
    features, seconds = np.full((count, 2), -1, np.int32), np.zeros(count)
    names = [one.name for one in fields(SoundCounters if intervals is None else IntervalCounters)]
    table = np.zeros((count, len(names)), np.int64)
    for step in range(count):
        body = trajectory.part.moving(trajectory.motion[step])
        if intervals is None:
            counters = SoundCounters()
            began = time.perf_counter()
            found = rigid_first_contact(
                body,
                trajectory.fixed,
                separation=separation,
                tolerance=tolerance,
                options=RigidOptions(recession=recession),
                counters=counters,
                device=device,
                threads=threads,
            )
            seconds[step] = time.perf_counter() - began
            times[step], status[step], contacts = found.time, found.status, found.contacts
        else:
            each = first_contacts_by_intervals(
                body, trajectory.fixed, intervals, cones=cones, device=device, threads=threads
            )
            # Without what Python does round it: preparing this engine's question takes longer than many answers.
            seconds[step] = each.seconds
            times[step], status[step], contacts, counters = each.time[0], each.status[0], each.contacts, each.counters
        if status[step] != Status.FREE:
            features[step] = contacts.feature_a[0], contacts.feature_b[0]
        table[step] = astuple(counters)
    return Replay(times, status, features, seconds, dict(zip(names, table.T, strict=True)))


def _mesh(arrays: dict[str, np.ndarray], side: str) -> Mesh:
    return Mesh(arrays[f"{side}/vertices"], arrays[f"{side}/faces"], name=str(arrays[f"{side}/name"]))


def _motion(arrays: dict[str, np.ndarray]) -> Rigid:
    columns = {name: arrays[f"motion/{name}"] for name in RECORD.names or ()}
    links, count = int(arrays["links"]), len(columns["kind"])
    if links < 1 or count % links:
        raise ValueError(f"{count} records do not make motions of {links} links")
    records = blank_records(count)
    for name, column in columns.items():
        if column.shape != records[name].shape or column.dtype != records[name].dtype:
            raise ValueError(
                f"{name} is {column.dtype} {column.shape}, not {records[name].dtype} {records[name].shape}"
            )
        if not np.isfinite(column).all():
            raise ValueError(f"{name} is not finite")
        records[name] = column
    turns = records["rotation"]
    if np.abs(np.swapaxes(turns, 1, 2) @ turns - np.eye(3)).max(initial=0.0) > 1e-9:
        raise ValueError("a rotation is not orthogonal")
    if not np.isin(records["kind"], [int(STEADY), int(TANGENT), int(COSINE)]).all():
        raise ValueError("a motion is of no known kind")
    return motions_of(records, links)
