"""Trajectories of a UR5 and a Panda by Tesseract, Drake, coal and FCL: what each misses, and what it takes.

The trajectories are those of the page on samples: fifty segments of a spline in a cell with a table, a box, a rod of
3 mm and a plate of half a millimetre. Neighbours in a joint, and pairs that always touch, are left out. A checker says
of each segment whether anything touches. Ours is certified. coal, FCL, the discrete managers of Tesseract and the edge
check of Drake's planners look at twenty instants of a segment, up to the first that touches; the continuous manager of
Tesseract takes convex hulls of a body's pieces at both ends of the segment. Missed is a segment that touches while the
peer calls it free; a false alarm is one that is certified free. coal and FCL are asked pair by pair from Python, about
pairs whose boxes meet; the others find near pairs themselves, and know which ones are not compared. Peers that are not
installed are left out. Robots are those of the wheel example-robot-data. Times are those of the process, for one
trajectory.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import tangere as tg
from bench.harness import Report, SkippedError, ratio, seconds
from bench.robots import SEGMENTS, boxes_meet, linked, load
from tangere.query.contacts import Status

FEATURES: list[str] = []

ROBOTS = "UR5", "Panda"
TRAJECTORIES, INSTANTS, TOLERANCE = 32, 20, 1e-6
#: Of peers that take seconds for one.
FEWER = 3

Checker = Callable[[np.ndarray], np.ndarray]


def run(report: Report, quick: bool = False) -> None:
    try:
        from bench.robot_samples import cell, spline
    except ImportError as missing:
        raise SkippedError(f"{missing.name} is not installed") from missing
    report.packages += ["coal", "python-fcl", "tesseract-robotics", "drake"]
    rows, absent = [], set()
    for name in ROBOTS:
        one = _Cell(name, cell())
        rng = np.random.default_rng(21)
        plans = [spline(rng, one.robot) for _ in range(1 if quick else TRAJECTORIES)]
        ours = np.array([one.ours(q) for q in plans])
        taken = [_timed(one.ours, q)[1] for q in plans]
        rows.append([name, "tangere", len(plans), int(ours.sum()), 0, 0, seconds(np.median(taken)), None])
        with TemporaryDirectory() as folder:
            for peer, make in one.peers(Path(folder)).items():
                try:
                    check = make()
                except ImportError as missing:
                    absent.add(f"{peer.partition(',')[0]} ({missing.name})")
                    continue
                rows.append([name, peer, *_beside(check, plans, ours, float(np.median(taken)))])
                print(rows[-1], flush=True)
    report.section("Segments that touch anything")
    columns = ["robot", "checker", "trajectories", "told to touch", "missed", "false alarms", "time of each", "in ours"]
    report.table(columns, rows)
    report.note(
        f"A trajectory has {SEGMENTS} segments. Peers that take longer than a second are asked about {FEWER} of them;"
        " what they miss is counted of these. Drake takes the convex hull of every mesh: it sees more than is there."
        " A sweep of Tesseract is of one body from one end to the other; two sweeps may meet where their bodies are at"
        " different times."
    )
    if absent:
        report.note(f"Not installed: {', '.join(sorted(absent))}.")


def _beside(check: Checker, plans: list[np.ndarray], ours: np.ndarray, taken: float) -> list[Any]:
    """What a peer says of the same trajectories: told, missed, false alarms, and how long one takes."""
    found, times = [], []
    for q in plans:
        told, each = _timed(check, q)
        found.append(told)
        times.append(each)
        if len(found) == FEWER and np.median(times) > 1.0:
            break
    told, truth = np.array(found), ours[: len(found)]
    each = float(np.median(times))
    missed, alarms = int((truth & ~told).sum()), int((told & ~truth).sum())
    return [len(found), int(told.sum()), missed, alarms, seconds(each), ratio(each, taken)]


def _timed(check: Checker, q: np.ndarray) -> tuple[np.ndarray, float]:
    begin = time.process_time()
    found = check(q)
    return found, time.process_time() - begin


class _Cell:
    """A robot in a cell, and who checks it."""

    def __init__(self, name: str, world: dict[str, tg.Mesh]) -> None:
        self.robot, self.world = load(name), world
        self.allowed = self.robot.default_allowed() | self.robot.allowed(linked(self.robot))
        self.placed = tg.robot.Workcell({"": self.robot}, world=world)
        self.pairs = self.placed.pairs(self.allowed)

    def ours(self, q: np.ndarray) -> np.ndarray:
        """(segments,) whether anything touches."""
        found = self.robot.check(q, self.world, self.allowed, tolerance=TOLERANCE, device="cpu", threads=1)
        return found.segments.status != Status.FREE

    def peers(self, folder: Path) -> dict[str, Callable[[], Checker]]:
        """By name: what makes a checker, or raises ImportError."""
        return {
            f"coal, {INSTANTS} instants": self._coal,
            f"FCL, {INSTANTS} instants": self._fcl,
            f"Tesseract, Bullet, {INSTANTS} instants": partial(self._tesseract, folder, "bullet"),
            f"Tesseract, FCL, {INSTANTS} instants": partial(self._tesseract, folder, "fcl"),
            "Tesseract, cast hulls": partial(self._tesseract, folder, ""),
            f"Drake, {INSTANTS} instants": partial(self._drake, folder),
        }

    def _coal(self) -> Checker:
        from bench.robot_check import CoalBody, collide

        models = [CoalBody(parts) for parts in self.placed.parts]

        def touch(frames: np.ndarray, near: np.ndarray) -> bool:
            placed: dict[int, Any] = {}
            for pair in self.pairs[near].tolist():
                for body in pair:
                    if body not in placed:
                        placed[body] = models[body].at(frames[body])
                if collide(placed[pair[0]], placed[pair[1]]):
                    return True
            return False

        return partial(self._at_near_instants, touch)

    def _fcl(self) -> Checker:
        import fcl

        def shape(part: Any) -> tuple[Any, np.ndarray]:
            if isinstance(part, tg.Mesh):
                model = fcl.BVHModel()
                model.beginModel(len(part.vertices), len(part.faces))
                model.addSubModel(np.asarray(part.vertices, float), np.asarray(part.faces))
                model.endModel()
                return fcl.CollisionObject(model), np.eye(4)
            assert isinstance(part, tg.Box), part
            size = 2.0 * np.asarray(part.records[0]["half"], float)
            return fcl.CollisionObject(fcl.Box(*size)), np.asarray(part.poses)[0]

        models = [[shape(part) for part in parts] for parts in self.placed.parts]

        def touch(frames: np.ndarray, near: np.ndarray) -> bool:
            pairs = self.pairs[near].tolist()
            for body in {body for pair in pairs for body in pair}:
                for model, place in models[body]:
                    pose = frames[body] @ place
                    model.setTransform(fcl.Transform(pose[:3, :3], pose[:3, 3]))
            return any(
                fcl.collide(one, other, fcl.CollisionRequest(), fcl.CollisionResult())
                for a, b in pairs
                for one, _ in models[a]
                for other, _ in models[b]
            )

        return partial(self._at_near_instants, touch)

    def _tesseract(self, folder: Path, discrete: str) -> Checker:
        peer = importlib.import_module("bench.peers.tesseract")
        moving = [bool(path) for path in self.placed.paths]
        manager = peer.DISCRETE[discrete] if discrete else peer.CAST
        bodies = peer.TesseractBodies(self.placed.parts, moving, self.pairs, manager, folder)
        if discrete:
            return partial(self._at_instants, bodies.touch)

        def touches(q: np.ndarray) -> np.ndarray:
            frames = self._frames(q)
            return np.array([bodies.touch(one, other) for one, other in pairwise(frames)])

        return touches

    def _drake(self, folder: Path) -> Checker:
        peer = importlib.import_module("bench.peers.drake")
        compared = [(self.placed.names[a], self.placed.names[b]) for a, b in self.pairs.tolist()]
        robot = peer.DrakeRobot(self.robot, self.world, compared, folder)
        return partial(robot.touches, instants=INSTANTS)

    def _at_near_instants(self, touch: Callable[[np.ndarray, np.ndarray], bool], q: np.ndarray) -> np.ndarray:
        """As `_at_instants`, of what is asked about the pairs whose boxes meet."""
        found = np.zeros(len(q) - 1, bool)
        share = ((np.arange(INSTANTS) + 0.5) / INSTANTS)[:, None]
        for k, (one, other) in enumerate(pairwise(q)):
            frames = self._frames(one + share * (other - one))
            near = boxes_meet(self.placed.meshes, self.pairs, frames)
            found[k] = any(touch(*each) for each in zip(frames, near, strict=True) if each[1].any())
        return found

    def _at_instants(self, touch: Callable[[np.ndarray], bool], q: np.ndarray) -> np.ndarray:
        """(segments,) whether anything touches at any of some instants."""
        found = np.zeros(len(q) - 1, bool)
        share = ((np.arange(INSTANTS) + 0.5) / INSTANTS)[:, None]
        for k, (one, other) in enumerate(pairwise(q)):
            found[k] = any(touch(frames) for frames in self._frames(one + share * (other - one)))
        return found

    def _frames(self, q: np.ndarray) -> np.ndarray:
        """(n, bodies, 4, 4), of bodies and things."""
        poses = self.robot.poses(q)
        first = {name: names[0] for names in self.robot.groups[1:] for name in names}
        still = np.broadcast_to(np.eye(4), (len(q), 4, 4))
        return np.stack(
            [poses[:, self.robot.links.index(first[n])] if n in first else still for n in self.placed.names], axis=1
        )
