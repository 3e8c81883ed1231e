"""Distances and first contacts of analytic bodies, every kind with every kind, beside coal and python-fcl.

Batches of one pair of bodies at random poses, on one thread, by the thread's own time; far: gaps about the size of the
bodies, near: less than a tenth of it. Ours is the kernel over arrays that are there; coal is its `ComputeDistance`,
made once, over transforms made before, its result cleared before each call and the cost of clearing taken off; both run
in Python, so that some 80 ns of each of coal's calls are the call itself. Correctness is that of the certificates in
tests/oracles/convex_distances.py: our bounds are asked to 1e-9 of the size, coal stops at 1e-6. Then first contacts of
thrown bodies, with each other and with a mesh of 70,000 triangles, and what one call costs.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np
import warp as wp
from scipy.spatial.transform import Rotation

from bench.harness import Report, SkippedError, count, measure, ratio, seconds
from tangere import Box, Capsule, Cone, ConvexMesh, Cylinder, Mesh, Sphere, Twist
from tangere.query.distance import distance
from tangere.query.distance.convex.bodies import ConvexBodies
from tangere.query.distance.convex.narrow_phase import ConvexAnswer, distance_kernel
from tangere.query.first_contact import first_contact
from tangere.shape import generate
from tangere.shape.analytic import Analytic

FEATURES: list[str] = []

KINDS = ("sphere", "capsule", "box", "cylinder", "cone", "hull")
#: What is asked for of pairs of these, against coal.
SIMPLE, AT_LEAST = ("sphere", "capsule", "box"), ("5x", "2x")


def run(report: Report, quick: bool = False) -> None:
    try:
        import coal  # noqa: F401
    except ImportError as error:
        raise SkippedError("needs coal") from error
    report.packages += ["coal", "python-fcl"]
    _distances(report, quick)
    _contacts(report, quick)
    _mesh(report, quick)
    _one_call(report, quick)


def body(kind: str, rng: np.random.Generator, scale: float = 1.0) -> Analytic:
    """A body of sizes between 0.2 and 1."""

    def some(*shape: int) -> Any:
        return scale * rng.uniform(0.2, 1.0, shape or None)

    if kind == "hull":
        x = rng.normal(size=(32, 3))
        x = scale * x / np.linalg.norm(x, axis=1)[:, None] * [0.5, 0.4, 0.6]
        return ConvexMesh(Mesh(x, [[0, 1, 2]]))
    if kind == "sphere":
        return Sphere(some())
    if kind == "box":
        return Box(some(3))
    return {"capsule": Capsule, "cylinder": Cylinder, "cone": Cone}[kind](some(), 2.0 * some())


def poses(number: int, rng: np.random.Generator, spread: float) -> np.ndarray:
    rows = np.tile(np.eye(4), (number, 1, 1))
    rows[:, :3, :3] = Rotation.random(number, rng=rng).as_matrix()
    rows[:, :3, 3] = rng.normal(size=(number, 3)) * spread
    return rows


class Pairs:
    """Two bodies at n poses each, for the kernel and for coal."""

    def __init__(self, a: Analytic, b: Analytic, places: tuple[np.ndarray, np.ndarray]) -> None:
        cpu = wp.get_device("cpu")
        self.bodies, self.places = (a, b), places
        one, other = (ConvexBodies.of(each, cpu) for each in (a, b))
        self._out = wp.zeros(len(places[0]), dtype=ConvexAnswer, device=cpu)
        first, second = (wp.array(place, dtype=wp.mat44d, device=cpu) for place in places)
        inputs = [0, *one.arguments, first, *other.arguments, second, 1e-9]
        kernel = distance_kernel(one.kind, other.kind)
        self.run = partial(wp.launch, kernel, len(places[0]), inputs, [self._out], device=cpu)

    @property
    def found(self) -> np.ndarray:
        return self._out.numpy()

    def coal(self, most: int) -> tuple[Any, Any]:
        """Two functions: the queries with the clearing of results, and the clearing alone."""
        import coal

        shapes = [_coal_shape(each) for each in self.bodies]
        ask, request, result = coal.ComputeDistance(*shapes), coal.DistanceRequest(), coal.DistanceResult()
        both = [[coal.Transform3s(p[:3, :3], p[:3, 3]) for p in place[:most]] for place in self.places]
        rows = list(zip(*both, strict=True))

        def asked(kept: Any = shapes) -> list[float]:
            found = []
            for x, y in rows:
                result.clear()
                found.append(ask(x, y, request, result))
            return found

        def cleared() -> list[float]:
            found = []
            for _x, _y in rows:
                result.clear()
                found.append(0.0)
            return found

        return asked, cleared

    def fcl(self, most: int) -> Any:
        import fcl

        shapes = [_fcl_shape(each) for each in self.bodies]
        if None in shapes:
            return None
        rows = [
            [fcl.CollisionObject(shape, fcl.Transform(p[:3, :3], p[:3, 3])) for p in place[:most]]
            for shape, place in zip(shapes, self.places, strict=True)
        ]
        return lambda: [fcl.distance(x, y) for x, y in zip(*rows, strict=True)]


def _coal_shape(each: Analytic) -> Any:
    import coal

    radius, half = float(each.records["radius"][0]), [float(x) for x in each.records["half"][0]]
    if isinstance(each, ConvexMesh):
        corners = coal.StdVec_Vec3s()
        for corner in each.hull.corners:
            corners.append(corner)
        return coal.Convex.convexHull(corners, True, "Qt")
    if isinstance(each, Box):
        return coal.Box(*(2.0 * x for x in half))
    if isinstance(each, Sphere):
        return coal.Sphere(radius)
    return getattr(coal, type(each).__name__)(radius, 2.0 * half[2])


def _fcl_shape(each: Analytic) -> Any:
    import fcl

    radius, half = float(each.records["radius"][0]), [float(x) for x in each.records["half"][0]]
    if isinstance(each, ConvexMesh):
        return None
    if isinstance(each, Box):
        return fcl.Box(*(2.0 * x for x in half))
    if isinstance(each, Sphere):
        return fcl.Sphere(radius)
    return getattr(fcl, type(each).__name__)(radius, 2.0 * half[2])


def _distances(report: Report, quick: bool) -> None:
    report.section("Distances")
    number, peers = (2000, 500) if quick else (100_000, 20_000)
    rows = []
    for i, first in enumerate(KINDS):
        for second in KINDS[i:]:
            rng = np.random.default_rng(0)
            bodies = body(first, rng), body(second, rng)
            places = poses(number, rng, 1.6), poses(number, rng, 1.6)
            for how in ("far", "near"):
                pairs = Pairs(*bodies, places)
                rows.append(_compared(pairs, first, second, how, peers, number, quick))
                found, moved = pairs.found, places[1].copy()
                apart = found["lower"] > 0.0
                gap = found["lower"] - 0.1 * rng.random(number)
                moved[apart, :3, 3] += found["normal"][apart] * gap[apart, None]
                places = places[0], moved
    report.table(
        ["bodies", "gaps", "ours", "coal", "against coal", "asked for", "python-fcl", "undecided", "coal's error"], rows
    )
    report.note(
        """Ours and coal's are times a pair. Undecided: rows whose bounds differ by more than 1e-9 of the size. Coal's
        error is the largest beyond our bounds, of the bodies that are apart; python-fcl is asked about a tenth of the
        pairs, and about no hulls."""
    )


def _compared(pairs: Pairs, first: str, second: str, how: str, peers: int, number: int, quick: bool) -> list[Any]:
    asked, cleared = pairs.coal(peers)
    contenders = {"ours": pairs.run, "coal": asked, "cleared": cleared}
    slow = pairs.fcl(peers // 10)
    if slow is not None:
        contenders["fcl"] = slow
    timings = measure(contenders, rounds=3 if quick else 5, clock=time.thread_time, at_most=20.0)
    best = {name: min(timing.rounds) for name, timing in timings.items()}
    found = pairs.found[:peers]
    ours, coal = best["ours"] / number, (best["coal"] - best["cleared"]) / peers
    theirs = np.maximum(np.array(timings["coal"].result), 0.0)
    apart = found["lower"] > 0.0
    error = np.maximum(theirs - found["upper"], found["lower"] - theirs)[apart].max(initial=0.0)
    size = sum(
        float(each.records["radius"][0] + np.linalg.norm(each.records["half"][0] * (each.kind != 3)))
        + (float(np.linalg.norm(each.hull.corners * each.records["half"][0], axis=1).max()) if each.kind == 3 else 0.0)
        for each in pairs.bodies
    )
    undecided = int((pairs.found["upper"] - pairs.found["lower"] > 1.001e-9 * size).sum())
    wanted = AT_LEAST[0 if first in SIMPLE and second in SIMPLE else 1]
    fcl = seconds(best["fcl"] / (peers // 10)) if slow is not None else None
    return [
        f"{first}, {second}",
        how,
        seconds(ours),
        seconds(coal),
        ratio(coal, ours),
        wanted,
        fcl,
        undecided,
        f"{error:.0e}",
    ]


def _contacts(report: Report, quick: bool) -> None:
    report.section("First contacts of bodies")
    number, rows = 200 if quick else 10_000, []
    for i, first in enumerate(KINDS):
        for second in KINDS[i:]:
            rng = np.random.default_rng(3)
            sides = [_thrown(kind, number, rng) for kind in (first, second)]
            ask = partial(first_contact, *sides, tolerance=1e-6, device="cpu", threads=1)
            timing = measure({"ours": ask}, rounds=3 if quick else 5, clock=time.thread_time)["ours"]
            hit = float(timing.result.hit.mean())
            rows.append([f"{first}, {second}", f"{hit:.0%}", seconds(min(timing.rounds) / number), "5 us"])
    report.table(["bodies", "touch", "a pair", "asked for"], rows)
    report.note(
        "Whole calls of `tg.first_contact`, arrays made and answers taken apart included; both bodies on twists."
    )


def _thrown(kind: str, number: int, rng: np.random.Generator) -> Any:
    """n bodies on twists that tend towards the origin, spinning about pivots beside their centres."""
    start = poses(number, rng, 2.0)
    way = rng.normal(size=(number, 3)) * 0.5 - start[:, :3, 3] * rng.uniform(0.0, 1.0, (number, 1))
    pivot = rng.normal(size=(number, 3)) * 0.2
    return body(kind, rng).moving(Twist(start, way, rng.normal(size=(number, 3)), pivot=pivot))


def _mesh(report: Report, quick: bool) -> None:
    mesh = generate.bumpy_torus(24, 12) if quick else generate.bumpy_torus()
    report.section(f"First contacts with a mesh of {count(len(mesh.faces))} triangles")
    size, number, rows = float(np.ptp(mesh.bounds, axis=0).max()), 20 if quick else 200, []
    for kind in KINDS:
        rng = np.random.default_rng(1)
        each = body(kind, rng, 0.12 * size)
        aim = mesh.vertices[rng.integers(0, len(mesh.vertices), number)]
        start, way = poses(number, rng, 0.0), rng.normal(size=(number, 3))
        start[:, :3, 3] = 1.2 * size * way / np.linalg.norm(way, axis=1)[:, None]
        thrown = each.moving(Twist(start, 1.1 * (aim - start[:, :3, 3]), rng.normal(size=(number, 3))))
        ask = partial(first_contact, thrown, mesh, tolerance=1e-6 * size, device="cpu", threads=1)
        near = partial(distance, thrown, mesh, time=0.5, device="cpu", threads=1)
        timings = measure({"contact": ask, "distance": near}, rounds=3 if quick else 5, clock=time.thread_time)
        best = {name: min(timing.rounds) / number for name, timing in timings.items()}
        hit = float(timings["contact"].result.hit.mean())
        rows.append([kind, f"{hit:.0%}", seconds(best["contact"]), "150 us", seconds(best["distance"])])
    report.table(["body", "touch", "a throw", "asked for", "a distance half-way"], rows)


def _one_call(report: Report, quick: bool) -> None:
    report.section("One call")
    away = np.eye(4)
    away[0, 3] = 3.0
    box, ball = Box([0.5, 0.4, 0.3]).at(away), Sphere(1.0)
    moving = Box([0.5, 0.4, 0.3]).moving(Twist(away, [-3.0, 0.0, 0.0], [0.0, 0.0, 6.0]))
    contenders = {
        "distance of a sphere and a box": partial(distance, ball, box, device="cpu"),
        "distance of a cone and a box": partial(distance, Cone(1.0, 1.0), box, device="cpu"),
        "first contact of a sphere and a moving box": partial(first_contact, ball, moving, device="cpu"),
        "first contact of a cone and a moving box": partial(first_contact, Cone(1.0, 1.0), moving, device="cpu"),
    }
    timings = measure(contenders, rounds=20 if quick else 500, clock=time.thread_time)
    report.table(["question", "time", "asked for"], [[name, timing, "100 us"] for name, timing in timings.items()])
