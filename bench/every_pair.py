"""Distances, contacts and first contacts of analytic bodies, every kind with every kind, beside coal and python-fcl.

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
from tangere import Box, Capsule, Cone, ConvexMesh, Cylinder, Heightfield, Mesh, Rest, Sphere, Twist
from tangere.query.distance import distance
from tangere.query.distance.convex.bodies import ConvexBodies
from tangere.query.distance.convex.narrow_phase import ConvexAnswer, distance_kernel
from tangere.query.first_contact import first_contact
from tangere.query.manifold import manifold
from tangere.query.manifold.convex.batch import NearPairs, hull_faces, near_pairs
from tangere.runtime import using_threads
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
    _manifolds(report, quick)
    _patches(report, quick)
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
            sides = [thrown(kind, number, rng) for kind in (first, second)]
            found = first_contact(*sides, tolerance=1e-6, device="cpu", threads=1)
            # the same bodies again, but only throws that touch
            rows_hit = np.resize(np.flatnonzero(found.hit), number)
            asks = {
                "some": partial(first_contact, *sides, tolerance=1e-6, device="cpu", threads=1),
                "all": partial(
                    first_contact,
                    *(side.shape.moving(side.motion[rows_hit]) for side in sides),
                    tolerance=1e-6,
                    device="cpu",
                    threads=1,
                ),
            }
            timings = measure(asks, rounds=3 if quick else 5, clock=time.thread_time)
            hits = [f"{timings[name].result.hit.mean():.0%}" for name in asks]
            each = [seconds(min(timings[name].rounds) / number) for name in asks]
            rows.append([f"{first}, {second}", hits[0], each[0], each[1], "5 us"])
    report.table(["bodies", "touch", "a pair", "a pair that touches", "asked for"], rows)
    report.note(
        "Whole calls of `tg.first_contact`, arrays made and answers taken apart included; both bodies on twists."
    )


def thrown(kind: str, number: int, rng: np.random.Generator) -> Any:
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


def _manifolds(report: Report, quick: bool) -> None:
    """Overlapping bodies: how long, and who is told the least way out?"""
    report.section("Contacts of overlapping bodies")
    number, peers = (100, 30) if quick else (100_000, 2000)
    rows = []
    for i, first in enumerate(KINDS):
        for second in KINDS[i:]:
            rng = np.random.default_rng(5)
            bodies, places = (body(first, rng), body(second, rng)), (poses(number, rng, 0.15), poses(number, rng, 0.15))
            a, b = (each.at(place) for each, place in zip(bodies, places, strict=True))
            met = np.flatnonzero(distance(a, b, device="cpu").upper == 0.0)
            asked = met[: min(peers, len(met))]
            a, b = bodies[0].at(places[0][met]), bodies[1].at(places[1][met])
            contenders: dict[str, Any] = {"ours": partial(manifold, a, b, distance=0.0, device="cpu", threads=1)}
            contenders["single"] = _single_contacts(bodies, [place[met] for place in places])
            contenders["coal"] = _coal_contacts(bodies, [place[asked] for place in places])
            contenders["single coal"], contenders["cleared"] = _single_coal(bodies, [place[asked] for place in places])
            others = _fcl_contacts(bodies, [place[asked] for place in places])
            if others is not None:
                contenders["fcl"] = others
            timings = measure(contenders, rounds=2 if quick else 9, clock=time.thread_time, at_most=9.0)
            best = {name: min(timing.rounds) for name, timing in timings.items()}
            found = timings["ours"].result
            least = np.zeros(len(met))
            np.minimum.at(least, found.query, found.gap)
            size = float(np.abs(least).max())
            own = np.zeros((len(met), 3))
            own[found.query] = found.normal
            ours = best["single"] / len(met)
            coal = max(best["single coal"] - best["cleared"], 0.0) / len(asked)
            wanted = AT_LEAST[0 if first in SIMPLE and second in SIMPLE else 1]
            row = [f"{first}, {second}", seconds(ours), seconds(coal), ratio(coal, ours), wanted]
            whole = best["ours"] / len(met), best["coal"] / len(asked)
            row += [*(seconds(each) for each in whole), ratio(whole[1], whole[0])]
            row.append(_judged(bodies, places, met, own, -least, -least, size))
            for name in ("coal", "fcl"):
                if name not in contenders:
                    row.append(None)
                    continue
                normal, depth = timings[name].result
                row.append(_judged(bodies, places, asked, normal, depth, -least[: len(asked)], size))
            rows.append(row)
    report.table(
        [
            *("bodies", "one contact", "coal", "against coal", "asked for"),
            *("all, whole call", "coal, one, whole call", "against coal"),
            *("ours do not part, longer", "coal's", "python-fcl's"),
        ],
        rows,
    )
    report.note(
        """Times a pair. One contact: normal, depth and both points, ours by the kernels over arrays that are there,
        coal's by its `ComputeCollision`, made once, over transforms made before, the cost of clearing its result taken
        off and the contact not read. Whole calls: `tg.manifold` with all corners of what they share and arrays made and
        taken apart; coal's `collide`, asked for one contact, which is read. Then the answers that do not part the
        bodies, moved by their depth and a ten-thousandth of the deepest along their normal, and those that are longer
        than the least of all by that. rapier3d has no question about the contacts of two shapes in Python."""
    )


def _single_contacts(bodies: Any, places: Any) -> Any:
    """The nearest points or the least way out of each pair, over arrays that are there."""
    cpu = wp.get_device("cpu")
    one, other = (ConvexBodies.of(each, cpu) for each in bodies)
    first, second = (wp.array(place, dtype=wp.mat44d, device=cpu) for place in places)
    inputs = [one.shapes, one.points, first, other.shapes, other.points, second]
    faces = hull_faces(bodies[1].hull, cpu)

    def asked() -> NearPairs:
        with using_threads(1):
            return near_pairs((one.kind, other.kind), inputs, faces, len(places[0]), 0.0, cpu)

    return asked


def _single_coal(bodies: Any, places: Any) -> tuple[Any, Any]:
    """Two functions: coal's contacts with the clearing of results, and the clearing alone."""
    import coal

    shapes = [_coal_shape(each) for each in bodies]
    ask, request, result = coal.ComputeCollision(*shapes), coal.CollisionRequest(), coal.CollisionResult()
    request.enable_contact, request.num_max_contacts = True, 1
    both = [[coal.Transform3s(p[:3, :3], p[:3, 3]) for p in place] for place in places]
    rows = list(zip(*both, strict=True))

    def asked(kept: Any = shapes) -> list[int]:
        found = []
        for x, y in rows:
            result.clear()
            found.append(ask(x, y, request, result))
        return found

    def cleared() -> list[int]:
        found = []
        for _x, _y in rows:
            result.clear()
            found.append(0)
        return found

    return asked, cleared


def _judged(bodies: Any, places: Any, rows: np.ndarray, normal: Any, depth: Any, least: np.ndarray, size: float) -> str:
    """How many ways do not part the bodies of some rows, and how many are longer than need be."""
    little = 1e-4 * size
    moved = places[0][rows].copy()
    moved[:, :3, 3] += (np.asarray(depth) + little)[:, None] * np.asarray(normal)
    together = distance(bodies[0].at(moved), bodies[1].at(places[1][rows]), device="cpu").upper == 0.0
    longer = np.asarray(depth) > least + little
    return f"{together.mean():.1%}, {longer.mean():.1%}"


def _coal_contacts(bodies: Any, places: Any) -> Any:
    """Normals that push the first body away, and depths, one for each pair of poses."""
    import coal

    shapes = [_coal_shape(each) for each in bodies]
    request = coal.CollisionRequest()
    request.enable_contact, request.num_max_contacts = True, 1
    both = [[coal.Transform3s(p[:3, :3], p[:3, 3]) for p in place] for place in places]

    def asked() -> tuple[np.ndarray, np.ndarray]:
        normals, depths, result = [], [], coal.CollisionResult()
        for x, y in zip(*both, strict=True):
            result.clear()
            found = coal.collide(shapes[0], x, shapes[1], y, request, result)
            contact = result.getContact(0) if found else None
            normals.append([0.0, 0.0, 0.0] if contact is None else -np.asarray(contact.normal))
            depths.append(0.0 if contact is None else -contact.penetration_depth)
        return np.array(normals), np.array(depths)

    return asked


def _fcl_contacts(bodies: Any, places: Any) -> Any:
    import fcl

    shapes = [_fcl_shape(each) for each in bodies]
    if None in shapes:
        return None
    both = [
        [fcl.CollisionObject(shape, fcl.Transform(p[:3, :3], p[:3, 3])) for p in place]
        for shape, place in zip(shapes, places, strict=True)
    ]

    def asked() -> tuple[np.ndarray, np.ndarray]:
        normals, depths = [], []
        for x, y in zip(*both, strict=True):
            result = fcl.CollisionResult()
            fcl.collide(x, y, fcl.CollisionRequest(num_max_contacts=1, enable_contact=True), result)
            contact = result.contacts[0] if result.contacts else None
            normals.append([0.0, 0.0, 0.0] if contact is None else -np.asarray(contact.normal))
            depths.append(0.0 if contact is None else contact.penetration_depth)
        return np.array(normals), np.array(depths)

    return asked


def _patches(report: Report, quick: bool) -> None:
    """Bodies that rest on a box: which part of the polygon they share is told?"""
    try:
        import fcl
        import shapely
    except ImportError:
        return
    import coal

    report.section("Bodies resting on a box: the part of what they share that is told")
    rows = []
    for kind in ("box", "cylinder"):
        rng = np.random.default_rng(6)
        parts: dict[str, list[float]] = {"ours": [], "ours, on a mesh": [], "coal's patch": [], "coal": [], "fcl": []}
        for _ in range(20 if quick else 200):
            half, angle, shift = rng.uniform(0.2, 0.8, 3), rng.uniform(0.0, np.pi), rng.uniform(-1.0, 1.0, 2)
            on = np.eye(4)
            on[:3, :3] = Rotation.from_rotvec([0.0, 0.0, angle]).as_matrix()
            on[:3, 3] = *shift, 0.5 + half[2] - 1e-3
            above = Box(half) if kind == "box" else Cylinder(half[0], 2.0 * half[2])
            below = Box([1.0, 0.7, 0.5])
            outline = shapely.Point(*shift).buffer(half[0], quad_segs=64)
            if kind == "box":
                corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * half[:2]
                outline = shapely.Polygon(corners @ on[:2, :2].T + shift)
            shared = outline.intersection(shapely.box(-1.0, -0.7, 1.0, 0.7)).area
            if shared < 1e-3:
                continue
            shapes, shapes_of_fcl = [[make(each) for each in (above, below)] for make in (_coal_shape, _fcl_shape)]
            places = [coal.Transform3s(p[:3, :3], p[:3, 3]) for p in (on, np.eye(4))]
            request, found = coal.CollisionRequest(), coal.CollisionResult()
            request.enable_contact, request.num_max_contacts = True, 64
            coal.collide(shapes[0], places[0], shapes[1], places[1], request, found)
            patches = coal.ContactPatchResult()
            coal.computeContactPatch(
                shapes[0], places[0], shapes[1], places[1], found, coal.ContactPatchRequest(), patches
            )
            listed = fcl.CollisionResult()
            both = [
                fcl.CollisionObject(shape, fcl.Transform(p[:3, :3], p[:3, 3]))
                for shape, p in zip(shapes_of_fcl, (on, np.eye(4)), strict=True)
            ]
            fcl.collide(*both, fcl.CollisionRequest(num_max_contacts=64, enable_contact=True), listed)
            points = {
                "ours": manifold(above.at(on), below, device="cpu").point_b,
                "ours, on a mesh": manifold(above.at(on), generate.box((2.0, 1.4, 1.0)), device="cpu").point_b,
                "coal's patch": [
                    np.asarray(patch.getPoint(k)).ravel()
                    for patch in (patches.getContactPatch(j) for j in range(patches.numContactPatches()))
                    for k in range(patch.size())
                ],
                "coal": [np.asarray(found.getContact(k).pos) for k in range(found.numContacts())],
                "fcl": [np.asarray(contact.pos) for contact in listed.contacts],
            }
            for name, each in points.items():
                flat = shapely.MultiPoint(np.reshape(each, (-1, 3))[:, :2]).convex_hull
                parts[name].append(flat.buffer(1e-9).intersection(outline).area / shared if len(each) else 0.0)
        row = [f"{kind} on a box"]
        for name in parts:
            row.append(f"{np.mean(parts[name]):.0%} ({np.min(parts[name]):.0%})")
        rows.append(row)
    report.table(["bodies", "ours", "ours, on a mesh", "coal's patches", "coal, 64 contacts", "python-fcl"], rows)
    report.note("Mean and least of 200 random places, by area of the convex hull of the points told.")


def _one_call(report: Report, quick: bool) -> None:
    report.section("One call")

    def pose(x: float, y: float, z: float) -> np.ndarray:
        place = np.eye(4)
        place[:3, 3] = x, y, z
        return place

    away, on, above, rest, over = pose(3, 0, 0), pose(0, 0, 0.8), pose(0, 0, 2), pose(2.5, 2.5, 0.2), pose(2.5, 2.5, 2)
    box, ball, cone = Box([0.5, 0.4, 0.3]), Sphere(1.0), Cone(1.0, 1.0)
    moving = box.moving(Twist(away, [-3.0, 0.0, 0.0], [0.0, 0.0, 6.0]))
    crate, plate = box.at(on), generate.box((4.0, 4.0, 1.0))
    falling, beside = (Twist(start, [0.3, 0.0, -3.0], [0.0, 0.0, 2.0]) for start in (above, over))
    part, torus = generate.box((1.0, 0.8, 0.6)), generate.bumpy_torus(24, 12) if quick else generate.bumpy_torus()
    x = np.linspace(-5.0, 5.0, 65)
    ground = Heightfield(0.2 * np.sin(x)[:, None] * np.cos(x), spacing=10.0 / 64.0, origin=(-5.0, -5.0, 0.0))
    contenders = {
        "manifold of a box on a box": partial(manifold, crate, Box([2.0, 2.0, 0.5])),
        "manifold of a box on a mesh of 12 triangles": partial(manifold, crate, plate),
        "manifold of a mesh on a mesh, 12 triangles each": partial(manifold, part.moving(Rest(on)), plate),
        "manifold of a box on ground": partial(manifold, box.at(rest), ground),
        "manifold of a mesh of 12 triangles on ground": partial(
            manifold, part.moving(Rest(pose(2.5, 2.5, 0.31))), ground, distance=0.1
        ),
        "distance of a sphere and a box": partial(distance, ball, box.at(away)),
        "distance of a cone and a box": partial(distance, cone, box.at(away)),
        "distance of a box and a mesh of 12 triangles": partial(distance, box.at(away), plate),
        f"distance of a box and a mesh of {count(len(torus.faces))} triangles": partial(distance, box.at(away), torus),
        "distance of a box and ground": partial(distance, box.at(over), ground),
        "distance of a box and ground, over the corner of four squares": partial(distance, box.at(above), ground),
        "distance of a mesh of 12 triangles and ground": partial(distance, part.moving(Rest(over)), ground),
        "first contact of a sphere and a moving box": partial(first_contact, ball, moving),
        "first contact of a cone and a moving box": partial(first_contact, cone, moving),
        "first contact of a moving box and a mesh of 12 triangles": partial(first_contact, box.moving(falling), plate),
        "first contact of a moving box and ground": partial(first_contact, box.moving(beside), ground),
        "first contact of a moving mesh of 12 triangles and ground": partial(
            first_contact, part.moving(beside), ground
        ),
        "first contact of that mesh and ground, over the corner of four squares": partial(
            first_contact, part.moving(falling), ground
        ),
    }
    kinds = {name: "ground" if "ground" in name else "mesh" if "mesh" in name else "bodies" for name in contenders}
    timings: dict[str, Any] = {}
    for kind in ("bodies", "mesh", "ground"):  # each kind in turns
        asks = {name: partial(ask, device="cpu") for name, ask in contenders.items() if kinds[name] == kind}
        timings |= measure(asks, rounds=20 if quick else 500, clock=time.thread_time)
    rows = [[name, timing, "100 us"] for name, timing in timings.items()]
    report.table(["question", "time", "asked for"], rows)
    report.note(
        """Ground: 64 by 64 cells, which are searched as four squares of 32 by 32 where a body may be near. What is kept
        from call to call was made before: trees, kernels and launches."""
    )
