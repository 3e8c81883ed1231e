"""Clashes of an assembly of a thousand parts: plates, bolts, washers, gears and shafts, some of them at fault.

Five shapes, 992 parts, 328,000 triangles; one core, processor time, so that others on the machine do not count. Beside
`Assembly.clashes`: trimesh's collision manager on FCL, which lists pairs whose surfaces meet and knows neither inside,
touching, near nor depth; and the depth of the hard pairs one after the other in NumPy, the version from which
`tg.depth` was made.
"""

from __future__ import annotations

import time
from functools import partial
from itertools import product

import numpy as np
import trimesh

import tangere as tg
from bench.harness import Report, SkippedError, ratio, seconds
from bench.harness import measure as measure_by
from tangere.assembly import Clashes, Part
from tangere.query.depth import search_depths
from tangere.runtime import using_threads

FEATURES: list[str] = []
CLEARANCE, SKIN = 1e-3, 1e-5
measure = partial(measure_by, rounds=3, clock=time.process_time)


def run(report: Report, quick: bool = False) -> None:
    report.packages += ["trimesh", "python-fcl", "manifold3d"]
    assembly = machine(100 if quick else 1000)
    manager = _manager(assembly)
    options = {"device": "cpu", "threads": 1}
    timings = measure(
        {
            "without depth": lambda: assembly.clashes(CLEARANCE, SKIN, depth=False, **options),
            "with depth and a way out": lambda: assembly.clashes(CLEARANCE, SKIN, **options),
            "trimesh with FCL": lambda: manager.in_collision_internal(return_names=True)[1],
        }
    )
    found: Clashes = timings["with depth and a way out"].result
    met = {frozenset(pair) for pair in timings["trimesh with FCL"].result}
    report.section(f"{len(assembly)} parts, {found.compared} pairs of boxes")
    report.table(
        ["", "time", "FCL / this", "finds"],
        [
            (name, timing, ratio(timings["trimesh with FCL"].median, timing.median), _told(name, found, met))
            for name, timing in timings.items()
        ],
    )
    missed = [row for row in found if frozenset((row.name_a, row.name_b)) not in met and row.kind != "near"]
    kinds = {kind: sum(str(row.kind) == kind for row in missed) for kind in ("duplicate", "inside", "hard", "touching")}
    told = ", ".join(f"{number} {kind}" for kind, number in kinds.items() if number) or "none"
    report.note(f"Of our clashes that are not merely near, FCL's list lacks {told}.")
    _depths(report, assembly, found, quick)


def _told(name: str, found: Clashes, met: set) -> str:
    if name.startswith("trimesh"):
        return f"{len(met)} pairs that meet"
    return ", ".join(f"{number} {kind}" for kind, number in found.counts.items() if number)


def _depths(report: Report, assembly: tg.Assembly, found: Clashes, quick: bool) -> None:
    """The depth of hard pairs, ours and the NumPy version, each to 5 %."""
    hard = found.of("hard")[: 4 if quick else 24]
    pairs = [(assembly.parts[row.a], assembly.parts[row.b]) for row in hard]
    timings = measure(
        {
            "all pairs at once": lambda: _together(pairs),
            "tg.depth, one after the other, with a way out": lambda: [_ours(*pair) for pair in pairs],
            "NumPy": lambda: [_theirs(*pair) for pair in pairs],
        }
    )
    first, second = timings["all pairs at once"].result, timings["NumPy"].result
    report.section(f"Depth of {len(pairs)} hard pairs")
    report.table(
        ["", "time a pair", "NumPy / this"],
        [
            (name, seconds(timing.median / len(pairs)), ratio(timings["NumPy"].median, timing.median))
            for name, timing in timings.items()
        ],
    )
    wrong = sum(a[0] > b[1] * (1.0 + 1e-9) or b[0] > a[1] * (1.0 + 1e-9) for a, b in zip(first, second, strict=True))
    report.note(f"Intervals of the first and the last that do not overlap: {wrong}.")


def _together(pairs: list[tuple[Part, Part]]) -> list[tuple[float, float]]:
    """Depths of all pairs by one search, as `clashes` asks for them."""
    parts = [part for pair in pairs for part in pair]
    shapes = list(dict.fromkeys(part.shape for part in parts))
    shape, poses = np.array([shapes.index(part.shape) for part in parts]), np.stack([part.pose for part in parts])
    rows = np.arange(len(parts)).reshape(-1, 2)
    with using_threads(1):
        found = search_depths(shapes, shape, poses, rows, accuracy=0.05, resolution=0.25 * SKIN, device="cpu")
    return list(zip(found.lower.tolist(), found.upper.tolist(), strict=True))


def _ours(a: Part, b: Part) -> tuple[float, float]:
    found = tg.depth(a.body, b.body, accuracy=0.05, resolution=0.25 * SKIN, device="cpu", threads=1)
    return found.lower, found.upper


def _theirs(a: Part, b: Part) -> tuple[float, float]:
    sides = [_numpy_depth(one.mesh, other.mesh) for one, other in ((a, b), (b, a))]
    return max(lower for lower, _ in sides), max(upper for _, upper in sides)


def _numpy_depth(a: tg.Mesh, b: tg.Mesh, most: int = 200_000) -> tuple[float, float]:
    """The largest depth of a's surface in b, by subdivision: the prototype of `tg.depth`."""
    triangles = a.vertices[a.faces]
    low, high = b.bounds
    triangles = triangles[((triangles.max(1) >= low) & (triangles.min(1) <= high)).all(1)]
    lower = upper = 0.0
    asked = 0
    while len(triangles):
        centre = triangles.mean(1)
        radius = np.linalg.norm(triangles - centre[:, None], axis=2).max(1)
        found = tg.signed_distance(centre, b, device="cpu", threads=1)
        depth, asked = -found.distance, asked + len(centre)
        corners = triangles.reshape(-1, 3)
        other = np.repeat(b.vertices[b.faces[found.face]], 3, axis=0)
        off = np.linalg.norm(trimesh.triangles.closest_point(other, corners) - corners, axis=1).reshape(-1, 3).max(1)
        radius = np.minimum(radius, np.maximum(off - depth, 0.0))
        lower = max(lower, float(depth.max()))
        left = depth + radius > lower / 0.95 + 0.25 * SKIN
        done = left if asked <= most else np.zeros_like(left)
        upper = max(upper, float((depth + radius)[~done].max(initial=0.0)))
        rest = triangles[done]
        edges = np.linalg.norm(np.roll(rest, -1, 1) - rest, axis=2).argmax(1)
        rows = np.arange(len(rest))
        p, q, r = (rest[rows, (edges + k) % 3] for k in range(3))
        middle = 0.5 * (p + q)
        triangles = np.concatenate([np.stack([p, middle, r], 1), np.stack([middle, q, r], 1)])
    return lower, max(lower, upper)


def _manager(assembly: tg.Assembly) -> trimesh.collision.CollisionManager:
    try:
        manager = trimesh.collision.CollisionManager()
    except ValueError as error:
        raise SkippedError("python-fcl is not installed") from error
    shapes = {id(shape): trimesh.Trimesh(shape.vertices, shape.faces, process=False) for shape in assembly.shapes}
    for part in assembly.parts:
        manager.add_object(part.name, shapes[id(part.shape)], part.pose)
    return manager


def machine(most: int, seed: int = 0) -> tg.Assembly:
    """Plates with four holes, bolts and washers in them, gears on shafts; some bolts bite, some washers are lost."""
    try:
        from manifold3d import Manifold
    except ImportError as error:
        raise SkippedError("manifold3d is not installed") from error

    def cylinder(radius: float, height: float, z: float, sides: int = 32) -> Manifold:
        return Manifold.cylinder(height, radius, radius, sides).translate([0.0, 0.0, z])

    corners = [(x, y) for x, y in product((-0.035, 0.035), repeat=2)]
    plate = Manifold.cube([0.1, 0.1, 0.01]).translate([-0.05, -0.05, 0.0])
    for x, y in corners:
        plate = plate - cylinder(0.0042, 0.03, -0.01).translate([x, y, 0.0])
    gear = cylinder(0.02, 0.01, 0.0, 64)
    for k in range(24):
        tooth = Manifold.cube([0.006, 0.004, 0.01], True).translate([0.022, 0.0, 0.005])
        gear = gear + tooth.rotate([0.0, 0.0, 15.0 * k])
    solids = {
        "plate": plate,
        "bolt": cylinder(0.007, 0.005, 0.0116, 6) + cylinder(0.004, 0.0316, -0.02),
        "washer": cylinder(0.008, 0.0016, 0.0) - cylinder(0.0042, 0.01, -0.005),
        "gear": gear - cylinder(0.0051, 0.03, -0.01, 64),
        "shaft": cylinder(0.005, 0.05, -0.02, 48),
    }
    meshes = {name: solid.to_mesh64() for name, solid in solids.items()}
    shapes = {
        name: tg.Mesh(np.array(mesh.vert_properties[:, :3]), np.array(mesh.tri_verts, np.int32), name=name)
        for name, mesh in meshes.items()
    }
    rng, parts = np.random.default_rng(seed), []

    def put(name: str, place: np.ndarray, turn: float = 0.0) -> None:
        pose = np.eye(4)
        pose[:2, :2] = [[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]
        pose[:3, 3] = place
        parts.append(Part(f"{name} {len(parts)}", f"{name} {len(parts)}", shapes[name], pose))

    side = int(np.ceil((most / 12) ** (1 / 3)))
    for cell in np.ndindex(side, side, side):
        if len(parts) + 12 > most:
            break
        place, fault = np.array(cell) * [0.12, 0.12, 0.08], rng.random()
        put("plate", place)
        for x, y in corners:
            bites = fault < 0.1 and x > 0.0 and y > 0.0
            put("washer", place + [x, y, 0.01])
            put("bolt", place + [x + (0.0006 if bites else 0.0), y, 0.0])
        put("gear", place + [0.0, 0.0, 0.02])
        put("shaft", place + [0.0, 0.0, 0.02])
        if fault < 0.5:
            put("gear", place + [0.0479, 0.0, 0.0355 if fault < 0.2 else 0.05], np.pi / 24)
        else:
            put("washer", place + [0.0, 0.0, 0.06])
        if fault > 0.93:
            put("washer", place + [0.035, 0.035, 0.01])
        if fault > 0.88:
            put("washer", place + [0.0, 0.0, 0.002])
    return tg.Assembly(parts, name="machine")
