"""What samples miss: 32 trajectories each of six robots, certified, beside 1,000 instants of coal and cast hulls.

A trajectory is fifty segments of a spline through four random configurations within the limits of the joints, in a cell
with a table, a box, a rod of 3 mm and a plate of half a millimetre. All pairs of bodies that do not always touch are
asked about, in every segment; coal is asked about all of them at twenty instants of each segment (pairs whose boxes are
apart are not put to it). A contact that coal sees has to be told, at no later time; at every time told coal's distance
has to be within the tolerance. Missed is what touches within a segment while no instant shows it. Cast hulls are the
convex hulls of a body at both ends of a segment, as Tesseract's checker takes them; an alarm is counted where such
hulls meet though the segment is certified free. Boxes, cylinders and spheres are such for coal as well. Robots are
those of the wheel example-robot-data. Times are those of the process.
"""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import coal
import numpy as np
import warp as wp
from scipy.interpolate import CubicSpline
from scipy.spatial import ConvexHull

import tangere as tg
from bench.harness import Report, seconds
from bench.robot_check import CoalSamples, collide, distance
from bench.robots import boxes_meet, load

FEATURES: list[str] = []

ROBOTS = ("UR5", "Panda", "Talos", "PR2", "Baxter", "Tiago")
TRAJECTORIES, SEGMENTS, INSTANTS, TOLERANCE = 32, 50, 20, 1e-6
#: Trajectories, and every so many of their segments, of which cast hulls are made.
CAST, EVERY = 3, 5


def run(report: Report, quick: bool = False) -> None:
    report.packages += ["coal"]
    rows, hulls = [], []
    names = ROBOTS[:1] if quick else ROBOTS
    with ProcessPoolExecutor(1 if quick else 2, mp_context=get_context("spawn")) as pool:
        found = list(pool.map(found_about, names, [1 if quick else TRAJECTORIES] * len(names)))
    for name, counts in zip(names, found, strict=True):
        assert counts.lost == 0, f"{name}: coal sees contacts that were not told"
        assert counts.farthest <= TOLERANCE * 1.001, f"{name}: a contact was told where coal has {counts.farthest} m"
        rows.append(counts.row())
        hulls.append([name, counts.cast, counts.alarms])
    report.section("Pair-segments that touch, told and sampled")
    report.table(
        [
            "robot",
            "pairs",
            "trajectories",
            "touch",
            "seen by samples",
            "missed by samples",
            "not told",
            "coal in two minds",
            "largest distance at a time told",
            "ours, each",
            "samples, each",
        ],
        rows,
    )
    report.note("Touch, seen, missed, not told: pairs of bodies times segments. A pair that touches at a start counts.")
    report.note(
        "In two minds: coal's `collide` says that they touch, its `distance` that they are up to 1e-6 m apart, which is"
        " the tolerance of its GJK; we tell them later, or not."
    )
    report.section("Cast hulls on pair-segments that are certified free")
    report.table(["robot", "asked", "alarms"], hulls)


def found_about(name: str, count: int) -> Findings:
    """What was found about one robot, without what it was found with."""
    findings = Findings(name, count)
    findings.pairs = findings.pairs.tolist()
    del findings.peer, findings.checker
    return findings


class Findings:
    """What is found about one robot."""

    def __init__(self, name: str, count: int) -> None:
        self.name = name
        robot, world = load(name), cell()
        allowed = robot.default_allowed()
        self.peer = CoalSamples(robot, world, allowed)
        self.checker = tg.robot.TrajectoryChecker(
            tg.robot.Workcell({"": robot}, world=world), allowed, device="cpu", threads=1
        )
        self.trajectories, self.pairs = count, self.checker.pairs
        self.touch = self.seen = self.missed = self.lost = self.doubted = self.cast = self.alarms = 0
        self.farthest, self.ours, self.theirs = 0.0, 0.0, 0.0
        rng = np.random.default_rng(21)
        for k in range(count):
            self._add(robot, spline(rng, robot), hulls=k < CAST)

    def row(self) -> list[Any]:
        each = self.trajectories
        return [
            self.name,
            len(self.pairs),
            each,
            self.touch,
            self.seen,
            self.missed,
            self.lost,
            self.doubted,
            f"{self.farthest:.2g} m",
            seconds(self.ours / each),
            seconds(self.theirs / each),
        ]

    def _add(self, robot: tg.Robot, q: np.ndarray, *, hulls: bool) -> None:
        begin = time.process_time()
        told = pair_times(self.checker, q)
        self.ours += time.process_time() - begin
        share = (np.arange(INSTANTS) + 0.5) / INSTANTS
        at = (np.arange(SEGMENTS)[:, None] + share).reshape(-1)
        k = at.astype(int)
        poses = robot.poses(q[k] + (at - k)[:, None] * (q[k + 1] - q[k]))
        begin = time.process_time()
        hit = self._sampled(poses).reshape(SEGMENTS, INSTANTS, -1)
        self.theirs += time.process_time() - begin
        first = np.where(hit.any(axis=1), share[hit.argmax(axis=1)], np.inf)
        touching = told <= 1.0
        self.touch += int(touching.sum())
        self.seen += int(hit.any(axis=1).sum())
        self.missed += int((touching & ~hit.any(axis=1)).sum())
        for segment, pair in np.argwhere(np.isfinite(first) & ~(told <= first)):
            early = np.flatnonzero(hit[segment, :, pair] & (share < told[segment, pair]))
            apart = [self._distance(poses[segment * INSTANTS + n], pair) for n in early]
            doubted = 0.0 < min(apart) <= TOLERANCE  # which is that of coal's GJK as well
            self.doubted += doubted
            self.lost += not doubted
        segments, pairs = np.nonzero(touching & (told > 0.0))
        when = q[segments] + told[segments, pairs][:, None] * (q[segments + 1] - q[segments])
        for each, pair in zip(robot.poses(when), pairs, strict=True):
            self.farthest = max(self.farthest, self._distance(each, pair))
        if hulls:
            self._count_alarms(robot.poses(q), ~touching)

    def _sampled(self, poses: np.ndarray) -> np.ndarray:
        """(instants, pairs) whether coal finds that they collide."""
        frames = self._frames(poses)
        near = boxes_meet(self.checker.cell.meshes, self.pairs, frames)
        hit = np.zeros(near.shape, bool)
        for n in range(len(frames)):
            placed: dict[int, Any] = {}
            for pair in np.flatnonzero(near[n]):
                one, other = self.pairs[pair]
                for body in (one, other):
                    if body not in placed:
                        placed[body] = self.peer.models[body].at(frames[n, body])
                hit[n, pair] = collide(placed[one], placed[other])
        return hit

    def _frames(self, poses: np.ndarray) -> np.ndarray:
        """(n, bodies, 4, 4) from those of links."""
        still = np.broadcast_to(np.eye(4), (len(poses), 4, 4))
        return np.stack([still if frame < 0 else poses[:, frame] for frame in self.peer.frames], axis=1)

    def _distance(self, poses: np.ndarray, pair: int) -> float:
        frames = ((body, self.peer.frames[body]) for body in self.pairs[pair])
        placed = [self.peer.models[body].at(np.eye(4) if frame < 0 else poses[frame]) for body, frame in frames]
        return distance(*placed)

    def _count_alarms(self, poses: np.ndarray, free: np.ndarray) -> None:
        frames = self._frames(poses)
        outer = [mesh.vertices[ConvexHull(mesh.vertices).vertices] for mesh in self.checker.cell.meshes]
        for segment in range(0, SEGMENTS, EVERY):
            ends = frames[segment : segment + 2]
            points = [
                np.concatenate([v @ end[body, :3, :3].T + end[body, :3, 3] for end in ends])
                for body, v in enumerate(outer)
            ]
            low, high = (np.array([pick(p, axis=0) for p in points]) for pick in (np.min, np.max))
            hulls: dict[int, Any] = {}
            for pair in np.flatnonzero(free[segment]):
                self.cast += 1
                one, other = self.pairs[pair]
                if (low[one] > high[other]).any() or (low[other] > high[one]).any():
                    continue
                for body in (one, other):
                    if body not in hulls:
                        hulls[body] = _hull(points[body])
                still, result = coal.Transform3s(), coal.CollisionResult()
                self.alarms += bool(
                    coal.collide(hulls[one], still, hulls[other], still, coal.CollisionRequest(), result)
                )


def cell() -> dict[str, tg.Mesh]:
    """A table, a box on it, a thin rod and a thinner plate."""

    def at(mesh: tg.Mesh, *place: float) -> tg.Mesh:
        pose = np.eye(4)
        pose[:3, 3] = place
        return mesh.at(pose)

    return {
        "table": at(tg.generate.box((1.6, 1.6, 0.05)), 0.0, 0.0, -0.037),
        "box": at(tg.generate.box((0.15, 0.25, 0.3)), 0.45, 0.1, 0.14),
        "rod": at(tg.generate.prism(12, radius=0.0015, height=0.6), 0.35, -0.3, 0.35),
        "plate": at(tg.generate.box((0.3, 0.0005, 0.3)), -0.4, 0.2, 0.5),
    }


def spline(rng: np.random.Generator, robot: tg.Robot) -> np.ndarray:
    """(51, dof) through four random configurations, two radians about the middle of each joint's range at most."""
    low, high = np.clip(robot.limits, -np.pi, np.pi).T
    points = 0.5 * (low + high) + rng.uniform(-1.0, 1.0, (4, len(low))) * np.minimum(0.45 * (high - low), 2.0)
    curve = CubicSpline(np.linspace(0.0, 1.0, 4), points, bc_type="clamped")
    return np.clip(curve(np.linspace(0.0, 1.0, SEGMENTS + 1)), low, high)


def pair_times(checker: tg.robot.TrajectoryChecker, q: np.ndarray) -> np.ndarray:
    """(segments, pairs) when each pair first touches in each segment, in [0, 1]; beyond 1 where it does not."""
    rows = wp.array(q, dtype=wp.float64, device="cpu")
    queries = checker.queries(len(q) - 1)
    parts = []
    for first in range(0, len(q) - 1, queries.steps):
        begin = np.arange(first, min(first + queries.steps, len(q) - 1))
        queries.ask(rows, begin, begin + 1, checker.cell.records(begin, begin + 1), tolerance=TOLERANCE)
        queries.search()
        parts.append(queries.hits())
    return np.concatenate(parts)


def _hull(points: np.ndarray) -> Any:
    found = ConvexHull(points)
    number = {int(old): new for new, old in enumerate(found.vertices)}
    vertices, triangles = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
    for old in found.vertices:
        vertices.append(points[old])
    for corners in found.simplices:
        triangles.append(coal.Triangle(*(number[int(k)] for k in corners)))
    return coal.Convex(vertices, triangles)
