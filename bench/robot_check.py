"""Whole robot trajectories: fifty segments of a UR5 and a Panda in their cells, one core, beside samples of coal.

A trajectory is a spline through four random configurations, free by our own check and by coal's samples. Beside
`robot.check`: a prototype of it, which writes the records of all joints with NumPy and asks the engine of rigid parts
about all pairs and segments in one batch, without dropping any by boxes first; the same with whole chains from the
world in the place of those from the common ancestor; one scene question for each segment; and coal at 1,000 instants,
which proves nothing. Robots are those of the wheel example-robot-data. Times are those of the process.
"""

from __future__ import annotations

import time
from functools import partial
from itertools import pairwise
from typing import Any

import coal
import numpy as np
import warp as wp

import tangere as tg
from bench.harness import Report, ratio, seconds
from bench.harness import measure as measure_by
from bench.robots import SEGMENTS, cell, linked, load, splines
from tangere.query.first_contact.rigid.bodies import Forest
from tangere.query.first_contact.rigid.query_batch import RigidQueryBatch
from tangere.runtime import using_threads

FEATURES: list[str] = []

measure = partial(measure_by, clock=time.process_time)
SAMPLES, TRAJECTORIES = 1000, 1000


def run(report: Report, quick: bool = False) -> None:
    report.packages += ["coal"]
    rounds = 1 if quick else 7
    rows = [row for name in ("UR5", "Panda") for row in _free_plans_of(name, quick, rounds)]
    report.section("A free trajectory of fifty segments, the robot itself and its cell")
    report.table(["robot", "what", "time", "in verdicts"], rows)
    report.note("With clearance: certified up to 0.1 m, to a half.")
    _many(report, quick)
    _talos(report, rounds)


def _free_plans_of(name: str, quick: bool, rounds: int) -> list[list[str]]:
    """Rows about one robot: what was measured, how long it took, and that in verdicts."""
    robot, world = load(name), cell()
    allowed = linked(robot)
    peer = CoalSamples(robot, world, allowed)
    plans = free_plans(robot, world, allowed, peer, 1 if quick else 4)
    options: dict[str, Any] = {"tolerance": 1e-6, "device": "cpu", "threads": 1}
    near, whole = (Prototype(robot, world, allowed, reduced=reduced) for reduced in (True, False))
    found = measure(
        {
            "verdict": lambda: [robot.check(q, world, allowed, **options) for q in plans],
            "with clearance": lambda: [robot.check(q, world, allowed, clearance=0.1, **options) for q in plans],
            "prototype": lambda: [near.statuses(q) for q in plans],
            "whole chains": lambda: [whole.statuses(q) for q in plans],
            "scenes": lambda: [scenes(robot, world, allowed, plans[0])],
            "coal": lambda: [peer.touches(plans[0], SAMPLES)],
        },
        rounds=rounds,
    )
    assert all(not status.any() for status in found["prototype"].result)
    assert not any(found["verdict"].result)
    each = {key: timing.median / (1 if key in ("scenes", "coal") else len(plans)) for key, timing in found.items()}
    return [[name, key, seconds(taken), ratio(taken, each["verdict"])] for key, taken in each.items()]


def _many(report: Report, quick: bool) -> None:
    robot, world = load("UR5"), cell()
    allowed = linked(robot)
    count = 20 if quick else TRAJECTORIES
    q = splines(np.random.default_rng(1), robot, count)
    ask = partial(robot.check, q, world, allowed, until="contact", device="cpu", tolerance=1e-6)
    taken = measure({"all": ask}, rounds=1 if quick else 3)["all"]
    touching = int((taken.result.status != 0).sum())
    report.section("Random trajectories of a UR5, each to its first contact, all cores")
    report.table(["trajectories", "touch", "process time"], [[count, touching, seconds(taken.median)]])


def _talos(report: Report, rounds: int) -> None:
    robot = load("Talos")
    low, high = robot.limits.T
    start = np.clip(np.zeros(len(low)), low, high)
    end = np.clip(start + np.random.default_rng(2).uniform(-0.5, 0.5, len(low)), low, high)
    q = start + np.linspace(0.0, 1.0, SEGMENTS + 1)[:, None] * (end - start)
    allowed = robot.default_allowed()
    ask = partial(robot.check, q, None, allowed, device="cpu", threads=1)
    taken = measure({"all": ask}, rounds=rounds)["all"]
    report.section("Talos, fifty segments, all pairs but those that always touch, one core")
    report.table(
        ["pairs", "verdict", "time"], [[taken.result.compared, str(taken.result.status), seconds(taken.median)]]
    )


def free_plans(robot: tg.Robot, world: Any, allowed: Any, peer: CoalSamples, count: int) -> list[np.ndarray]:
    rng, plans = np.random.default_rng(5), []
    while len(plans) < count:
        q = splines(rng, robot, 200)
        free = robot.check(q, world, allowed, until="contact", device="cpu").status == 0
        plans += [one for one in q[free] if not peer.touches(one, 100)]
    return plans[:count]


def scenes(robot: tg.Robot, world: Any, allowed: Any, q: np.ndarray) -> list[Any]:
    """One question for each segment, as users had to ask."""
    things = [*world.values()]
    names = [*robot.bodies, *world]
    numbers = [[names.index(name) for name in pair] for pair in allowed]
    return [
        tg.first_contact([*robot.moving(one, other), *things], allowed=numbers, device="cpu", threads=1)
        for one, other in pairwise(q)
    ]


class Prototype:
    """All pairs and segments in one batch; records by NumPy, a few lines for each joint."""

    def __init__(self, robot: tg.Robot, world: Any, allowed: Any, *, reduced: bool) -> None:
        checker = tg.robot.TrajectoryChecker(
            tg.robot.Workcell({"": robot}, world=world),
            robot.allowed(allowed),
            device="cpu",
            threads=1,
            reduced=reduced,
        )
        self.cell, self.pairs, self.layout = checker.cell, checker.pairs, checker.queries(1).layout
        forest = Forest.of(tuple(self.cell.meshes), wp.get_device("cpu"))
        count, width = SEGMENTS * len(self.pairs), SEGMENTS * self.layout.width
        self.batch = RigidQueryBatch(forest, forest, count, width, wp.get_device("cpu"))

    def statuses(self, q: np.ndarray) -> np.ndarray:
        layout = self.layout
        shift = np.repeat(np.arange(SEGMENTS) * layout.width, len(self.pairs))
        columns: dict[str, Any] = {"smooth": False, "separation": 0.0, "tolerance": 1e-6}
        for k, side in enumerate("ab"):
            columns[f"motion_{side}"] = np.tile(layout.first[:, k], SEGMENTS) + shift
            columns[f"links_{side}"] = np.tile(layout.links[:, k], SEGMENTS)
            columns[f"shape_{side}"] = np.tile(self.pairs[:, k], SEGMENTS)
        with using_threads(1):  # as the checks beside it
            self.batch.upload([self._records(q)[:, layout.frames].reshape(-1)], columns)
            self.batch.search_each()
            return self.batch.status()

    def _records(self, q: np.ndarray) -> np.ndarray:
        """(segments, joints + 1), the last at rest."""
        cell, count = self.cell, len(q) - 1
        records = np.zeros((count, len(cell.joints) + 1), tg.Rest().records().dtype)
        records[:] = tg.Rest().records()
        for k, joint in enumerate(cell.joints):
            values = joint.factor * q[:, cell.value[k]] + joint.offset
            begin, way = values[:-1], np.diff(values)
            turn, at = cell.origins[k, :3, :3], cell.origins[k, :3, 3]
            along = turn @ joint.axis
            if joint.kind == "sliding":
                records["rotation"][:, k] = turn
                records["origin"][:, k] = at + along * begin[:, None]
                records["velocity"][:, k] = along * way[:, None]
            else:
                x, y, z = joint.axis
                across = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
                sine, half = np.sin(begin)[:, None, None], np.sin(0.5 * begin)[:, None, None]
                records["rotation"][:, k] = turn @ (np.eye(3) + sine * across + 2.0 * half * half * (across @ across))
                records["origin"][:, k] = at
                records["angle"][:, k] = np.abs(way)
                records["axis"][:, k] = along * np.where(way < 0.0, -1.0, 1.0)[:, None]
        return records


class CoalSamples:
    """The same pairs, asked of coal at instants."""

    def __init__(self, robot: tg.Robot, world: Any, allowed: Any) -> None:
        placed = tg.robot.Workcell({"": robot}, world=world)
        self.robot, self.pairs = robot, placed.pairs(robot.allowed(allowed))
        self.models = [CoalBody(parts) for parts in placed.parts]
        # Meshes of the cell are baked into the frames of their groups: the frame of the first link of a group.
        first = {name: names[0] for names in robot.groups[1:] for name in names}
        self.frames = [robot.links.index(first[name]) if name in first else -1 for name in placed.names]

    def touches(self, q: np.ndarray, samples: int) -> bool:
        """Whether any two bodies collide at any of so many instants."""
        at = (np.arange(samples) + 0.5) / samples * (len(q) - 1)
        k = at.astype(int)
        poses = self.robot.poses(q[k] + (at - k)[:, None] * (q[k + 1] - q[k]))
        for each in poses:
            places = [np.eye(4) if f < 0 else each[f] for f in self.frames]
            placed = [model.at(place) for model, place in zip(self.models, places, strict=True)]
            for a, b in self.pairs:
                if collide(placed[a], placed[b]):
                    return True
        return False


class CoalBody:
    """The parts of a body as coal has them: its own spheres, boxes and cylinders, and meshes."""

    def __init__(self, parts: Any) -> None:
        self.parts = [_model(part) for part in parts]

    def at(self, pose: np.ndarray) -> list[tuple[Any, Any]]:
        """Shapes of coal, and where they are."""
        return [(shape, transform(pose if place is None else pose @ place)) for shape, place in self.parts]


def collide(a: list[tuple[Any, Any]], b: list[tuple[Any, Any]]) -> bool:
    """Whether two bodies meet, by coal."""
    request, result = coal.CollisionRequest(), coal.CollisionResult()
    for one, at_one in a:
        for other, at_other in b:
            result.clear()
            if coal.collide(one, at_one, other, at_other, request, result):
                return True
    return False


def distance(a: list[tuple[Any, Any]], b: list[tuple[Any, Any]]) -> float:
    """How far two bodies are apart, by coal [m]."""
    least = np.inf
    for one, at_one in a:
        for other, at_other in b:
            request, result = coal.DistanceRequest(), coal.DistanceResult()
            request.gjk_tolerance = 1e-10  # of round shapes; 1e-6 unless told
            least = min(least, coal.distance(one, at_one, other, at_other, request, result))
    return max(least, 0.0)


def transform(pose: np.ndarray) -> Any:
    """A pose as coal takes it."""
    return coal.Transform3s(np.ascontiguousarray(pose[:3, :3]), pose[:3, 3].copy())


def _model(part: Any) -> tuple[Any, np.ndarray | None]:
    """What coal has for a part, and where that is in the body's frame."""
    if isinstance(part, tg.Mesh):
        return _mesh_model(part), None
    record, place = part.records[0], np.asarray(part.poses)[0]
    radius, half = float(record["radius"]), np.asarray(record["half"], float)
    if isinstance(part, tg.Box):
        return coal.Box(*(2.0 * half)), place
    if isinstance(part, tg.Cylinder):
        return coal.Cylinder(radius, 2.0 * half[2]), place
    if isinstance(part, tg.Sphere):
        return coal.Sphere(radius), place
    if isinstance(part, tg.Capsule):
        return coal.Capsule(radius, 2.0 * half[2]), place
    raise TypeError(f"{part!r} has no shape of coal here")


def _mesh_model(mesh: tg.Mesh) -> Any:
    model = coal.BVHModelOBBRSS()
    model.beginModel(len(mesh.faces), len(mesh.vertices))
    triangles, vertices = coal.StdVec_Triangle(), coal.StdVec_Vec3s()
    for face in mesh.faces:
        triangles.append(coal.Triangle(*(int(corner) for corner in face)))
    for vertex in np.asarray(mesh.vertices, float):
        vertices.append(vertex)
    model.addSubModel(vertices, triangles)
    model.endModel()
    return model
