"""Questions about bodies on ground: manifolds, first contacts, tiles."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np

import tangere as tg
from tools import words
from tools.digest.answers import Book, section
from tools.digest.questions import place, poses


def ground_kinds(book: Book) -> dict[str, Any]:
    make, rng = words.generate.terrain, book.rng("ground")
    rough = rng.integers(-3, 4, (40, 36)) / 8.0
    holes = rng.random((39, 35)) < 0.05
    found = {
        "dunes": make.dunes(size=(14.0, 9.0), height=1.2, length=8.0),
        "kerbs": make.kerbs(size=(8.0, 6.0)),
        "rough": tg.Heightfield(rough, (0.5, 0.4), (-1.0, 2.0, 0.5), holes),
    }
    if not book.quick:
        found |= {
            "flat": make.flat(size=(8.0, 6.0)),
            "slope": make.slope(size=(8.0, 6.0), angle=0.3, heading=0.7),
            "fractal": make.fractal(size=(8.0, 6.0), seed=2),
            "stairs": make.stairs(size=(8.0, 4.0)),
            "city": make.city_blocks(size=(30.0, 30.0)),
        }
    return found


def _analytic() -> dict[str, Any]:
    return {
        "cylinder": tg.Cylinder(0.35, 0.5),
        "sphere": tg.Sphere(0.4),
        "capsule": tg.Capsule(0.3, 0.6),
        "box": tg.Box([0.4, 0.3, 0.2]),
        "cone": tg.Cone(0.4, 0.7),
        "hull": tg.ConvexMesh(words.generate.gear(teeth=7, radius=0.5, bore=0.1)),
    }


def _lowered(book: Book, ground: Any, case: str, count: int, low: float, high: float) -> np.ndarray:
    """Poses of any attitude, so far above the ground below them; some upright, some lying."""
    rng = book.rng(case)
    found = poses(rng, count, 0.0)
    found[::5, :3, :3] = np.eye(3)
    found[1::5, :3, :3] = [[1, 0, 0], [0, 0, -1], [0, 1, 0]]
    lower, upper = ground.bounds[0, :2] - 0.3, ground.bounds[1, :2] + 0.3
    found[:, :2, 3] = lower + (upper - lower) * rng.random((count, 2))
    height = ground.height_at(found[:, :3, 3])
    found[:, 2, 3] = np.where(np.isnan(height), 0.0, height) + rng.uniform(low, high, count)
    return found


@section
def terrain(book: Book) -> None:
    """Bodies of every kind on ground of every kind: manifolds, touching and first contact."""
    grounds, bodies = ground_kinds(book), _analytic()
    chosen = ("cylinder", "sphere", "box") if book.quick else tuple(bodies)
    for ground_name, ground in grounds.items():
        points = book.rng(ground_name).uniform(*(ground.bounds[:, :2] + [[-0.5], [0.5]]), (60, 2))
        book.keep(f"{ground_name}.ground", {"heights": ground.height_at(points), "elements": ground.elements})
        for name in chosen:
            body, case = bodies[name], f"{ground_name}.{name}"
            low = _lowered(book, ground, case, book.size(150, 20), -0.3, 0.6)
            book.ask(f"{case}.manifold", tg.manifold, body.at(low), ground, device="cpu")
            high = _lowered(book, ground, f"{case} above", book.size(80, 10), 0.0, 1.5)
            rng = book.rng(f"{case} way")
            way = rng.uniform(-1, 1, (len(high), 3)) * (2.0, 2.0, 0.5) - (0.0, 0.0, 1.0)
            thrown = tg.Twist(high, way, rng.uniform(-6, 6, (len(high), 3)))
            book.ask(f"{case}.first", tg.first_contact, body.moving(thrown), ground, device="cpu")
            if name == "cylinder":
                book.ask(f"{case}.touches", tg.touches, body.at(low), ground, device="cpu")
            if not book.quick:
                options = {**words.gaps_up_to(0.05), "device": "cpu"}
                book.keep(f"{case}.few", [tg.manifold(body.at(pose), ground, **options) for pose in low[:6]])
                options = {"separation": 0.05, "tolerance": 1e-4, "device": "cpu"}
                moved = body.moving(tg.Screw(high, high @ poses(rng, 1, 0.8)[0]))
                book.ask(f"{case}.screw", tg.first_contact, moved, ground, **options)
        if not book.quick:
            fine = tg.Twist(high, (0.2, 0.1, -1.5), (3.0, 1.0, 0.0))
            book.ask(f"{ground_name}.fine", tg.first_contact, body.moving(fine), ground, tolerance=1e-10, device="cpu")
            low = _lowered(book, ground, f"{ground_name} printed", 40, 0.0, 0.4)
            book.ask(f"{ground_name}.published", words.manifold_published, bodies["cylinder"].at(low), ground)
    _one_body_on_terrain(book, grounds["dunes"], bodies)
    _tiles(book, grounds, bodies)
    if book.quick:
        return
    many = [grounds[name] for name in ("dunes", "kerbs", "rough")]
    low = _lowered(book, many[1], "worlds", 90, -0.2, 0.4)
    world = np.arange(90) % 3
    book.ask("worlds", tg.manifold, bodies["cylinder"].at(low), many, world=world, device="cpu")
    for name, body in bodies.items():
        placed = body.at(poses(book.rng(f"plane {name}"), 60, 0.6))
        book.ask(f"plane.{name}", words.on_plane, placed, [0.0, 0.6, 0.8], 0.1, **words.gaps_up_to(0.05), device="cpu")
    stones = tg.Sphere(0.2).at(poses(book.rng("stones"), 60, 0.6))
    wheels = bodies["cylinder"].at(poses(book.rng("wheels"), 60, 0.4))
    book.ask("spheres", words.cylinder_sphere, wheels, stones, **words.gaps_up_to(0.1), device="cpu")
    sizes = tg.Cylinder(np.linspace(0.2, 0.5, 60), np.linspace(0.6, 0.1, 60))
    low = _lowered(book, many[0], "sizes", 60, -0.1, 0.3)
    book.ask("sizes", tg.manifold, sizes.at(low), many[0], device="cpu")
    dug = many[2].edit((3, 4), np.full((6, 5), -1.0), holes=np.ones((5, 4), bool))
    low = _lowered(book, dug, "edited", 60, -0.5, 0.3)
    book.ask("edited", tg.manifold, bodies["cylinder"].at(low), dug, device="cpu")


def _one_body_on_terrain(book: Book, ground: Any, bodies: dict[str, Any]) -> None:
    way = _lowered(book, ground, "path", 5, 0.0, 0.1)
    way[:, 2, 3] += (2.0, 1.6, 1.2, 0.3, -0.2)
    body = bodies["cylinder"]
    book.ask("path", tg.first_contact, body.moving(tg.Path(way)), ground, device="cpu")
    if not book.quick:
        raised = place(3.0, 3.0, 3.0)
        falling = [tg.Twist(raised, (0, 0, -3.0), (0, 1.0, 0)), tg.Twist(place(0.4), (0, 0, 0), (3.0, 0, 1.0))]
        book.ask("chain", tg.first_contact, body.moving(tg.Chain(falling).link(1)), ground, device="cpu")
        tangent = words.TanScrew(raised, way[2] @ place(0, 0, -3.0))
        book.ask("tangent", tg.first_contact, body.moving(tangent), ground, device="cpu")


def _tiles(book: Book, grounds: dict[str, Any], bodies: dict[str, Any]) -> None:
    rough, body = grounds["rough"], bodies["cylinder"]
    low = _lowered(book, rough, "tiles", book.size(150, 20), -0.3, 0.6)
    tiled = tg.TiledHeightfield(rough.heights, rough.spacing, rough.origin, rough.holes)
    book.ask("tiled.manifold", tg.manifold, body.at(low), tiled, device="cpu")
    book.ask("tiled.touches", tg.touches, body.at(low), tiled, device="cpu")
    falling = tg.Twist(low + place(0, 0, 1.0) - np.eye(4), (0.3, 0.1, -1.5), (0.0, 2.0, 0.0))
    book.ask("tiled.first", tg.first_contact, body.moving(falling), tiled, device="cpu")
    if book.quick:
        return
    dunes = grounds["dunes"]
    low = _lowered(book, dunes, "folder", 100, -0.2, 0.4)
    with tempfile.TemporaryDirectory() as folder:
        written = words.write_tiles(folder, dunes.heights, dunes.spacing, dunes.origin, tile=32)
        for name in ("cylinder", "capsule", "hull"):
            book.ask(f"folder.{name}", tg.manifold, bodies[name].at(low), written, device="cpu")
        dug = words.edit_tiles(folder, (20, 30), np.full((9, 7), -0.5))
        book.ask("folder.edited", tg.manifold, body.at(low), dug, device="cpu")
