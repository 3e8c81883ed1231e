"""Small worlds for the soak: bodies of every kind that meet in every way, in a bin which they cannot leave.

Each takes the number of its run, from which what is random in it is drawn, and options of the `World`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tangere.dynamics import Body, World
from tangere.shape import generate
from tangere.shape.analytic import Box, Capsule, Cone, ConvexMesh, Cylinder, Sphere
from tangere.shape.heightfield import Heightfield
from tangere.shape.mesh import Mesh

__all__ = ["SCENES"]


def at(x: float = 0.0, y: float = 0.0, z: float = 0.0) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, 3] = x, y, z
    return pose


def _bin(**options: object) -> list[Body]:
    """A floor and four walls, 2 m by 2 m inside."""
    walls = [Body(generate.box((3.0, 3.0, 0.2)), at(z=-0.1), name="floor", **options)]
    for x, y in ((1.1, 0.0), (-1.1, 0.0), (0.0, 1.1), (0.0, -1.1)):
        size = (0.2, 2.6, 4.0) if x else (2.0, 0.2, 4.0)
        walls.append(Body(generate.box(size), at(x, y, 2.01), name=f"wall {x} {y}", **options))
    return walls


def boxes(seed: int, **options: object) -> World:
    """Boxes and wedges in a bin."""
    rng = np.random.default_rng(seed)
    shapes = [generate.box((0.5, 0.4, 0.3)), generate.prism(3, radius=0.35, height=0.5), generate.box((0.9, 0.1, 0.1))]
    bodies = [Body(shapes[k % 3], at(*rng.uniform(-0.4, 0.4, 2), 0.6 + 0.8 * k), name=f"part {k}") for k in range(4)]
    return World([*_bin(fixed=True), *bodies], device="cpu", threads=1, **options)


def hoops(seed: int, **options: object) -> World:
    """Three linked hoops in planes that cross, the first of them fixed."""
    hoop = generate.torus(288, radius=0.4, tube=0.06)
    planes = np.array([[[1, 0, 0], [0, 0, -1], [0, 1, 0]], [[0, 0, 1], [0, 1, 0], [-1, 0, 0]]], float)
    bodies = []
    for k in range(3):
        pose = at(z=-0.6 * k)
        pose[:3, :3] = planes[k % 2]
        bodies.append(Body(hoop, pose, fixed=k == 0, name=f"hoop {k}"))
    return World(bodies, device="cpu", threads=1, **options)


def sheets(seed: int, **options: object) -> World:
    """Sheets without thickness, and a ball, in a bin."""
    sheet = generate.sheet(8, size=(0.8, 0.6))
    bodies = [Body(sheet, at(0.05 * k, 0.0, 0.4 + 0.3 * k), name=f"sheet {k}") for k in range(3)]
    ball = Body(generate.icosphere(subdivisions=1, radius=0.2), at(0.1, 0.1, 1.6), name="ball")
    return World([*_bin(fixed=True), *bodies, ball], device="cpu", threads=1, **options)


def bouncing(seed: int, **options: object) -> World:
    """Balls and a box that bounce."""
    ball, box = generate.icosphere(subdivisions=1, radius=0.25), generate.box((0.4, 0.4, 0.4))
    bodies = [
        Body(ball if k % 2 else box, at(0.5 * (k % 2), 0.1 * k, 0.5 + 0.7 * k), name=f"part {k}") for k in range(4)
    ]
    return World([*_bin(fixed=True), *bodies], device="cpu", threads=1, restitution=0.8, **options)


def mechanism(seed: int, **options: object) -> World:
    """A motor that swings a flail among boxes."""
    rod, box = generate.box((0.8, 0.1, 0.1)), generate.box((0.3, 0.3, 0.3))
    flail = Body(generate.box((0.5, 0.1, 0.1)), at(0.65, 0.0, 0.75), name="flail")
    bodies = [Body(rod, at(0.0, 0.0, 0.6), name="arm"), flail]
    bodies += [Body(box, at(-0.5 + 0.5 * k, -0.7, 0.3), name=f"box {k}") for k in range(3)]
    world = World([*_bin(fixed=True), *bodies], device="cpu", threads=1, **options)
    world.join("hinge", "arm", at=[0.0, 0.0, 0.6], axis=[0, 0, 1], speed=2.0, force=200.0)
    world.join("ball", "arm", "flail", at=[0.4, 0.0, 0.675])
    return world


def shaken(seed: int, **options: object) -> World:
    """A bin that is driven to and fro, with boxes in it."""
    box = generate.box((0.4, 0.3, 0.3))
    bodies = [Body(box, at(0.1 * k, 0.05 * k, 0.4 + 0.5 * k), name=f"box {k}") for k in range(3)]
    return World([*_bin(driven=True, group=1), *bodies], device="cpu", threads=1, **options)


def formulas(seed: int, **options: object) -> World:
    """Analytic bodies in a bin of such."""
    walls = [Body(Box(np.ptp(wall.mesh.bounds, axis=0) / 2.0), wall.pose, fixed=True) for wall in _bin(fixed=True)]
    shapes = [Sphere(0.25), Cylinder(0.25, 0.3), Cone(0.3, 0.4), Box([0.25, 0.2, 0.15])]
    bodies = [Body(shape, at(0.1 * k, 0.05 * k, 0.5 + 0.7 * k), name=f"part {k}") for k, shape in enumerate(shapes)]
    return World([*walls, *bodies], device="cpu", threads=1, **options)


def inertialess(seed: int, **options: object) -> World:
    """Boxes in a bin in a world of first order, where forces make speeds."""
    return boxes(seed, order=1, gravity=(0.0, 0.0, -0.5), **options)


def uneven(seed: int, **options: object) -> World:
    """A stack in a bin, each box ten times as heavy as the one below it."""
    box = generate.box((0.5, 0.5, 0.4))
    bodies = [Body(box, at(0.02 * k, z=0.21 + 0.42 * k), density=10.0 * 10.0**k, name=f"box {k}") for k in range(4)]
    return World([*_bin(fixed=True), *bodies], device="cpu", threads=1, **options)


def tips(seed: int, **options: object) -> World:
    """Slender tetrahedra, which touch with tips and sharp edges, between two of them that stand."""
    base = np.array([[0.1, 0.0, 0.0], [-0.05, 0.087, 0.0], [-0.05, -0.087, 0.0], [0.0, 0.0, 0.8]])
    spike = Mesh(base, np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]]))
    bodies = [Body(spike, at(0.3 * side, z=1e-3), fixed=True, name=f"standing {side}") for side in (-1, 1)]
    rng = np.random.default_rng([seed, 1])
    for k in range(4):
        pose = at(*rng.uniform(-0.3, 0.3, 2), 1.0 + 0.9 * k + 0.8 * (k % 2))
        pose[:3, :3] = np.diag([1.0, -1.0, -1.0]) if k % 2 else np.eye(3)
        bodies.append(Body(spike, pose, name=f"spike {k}"))
    return World([*_bin(fixed=True), *bodies], device="cpu", threads=1, **options)


def linkage(seed: int, **options: object) -> World:
    """A loop of four bars that a motor turns, a piston in its limits, and two boxes in their way."""
    bodies = [
        Body(generate.box((0.3, 0.05, 0.05)), at(-0.35, 0.0, 1.0), name="crank"),
        Body(generate.box((0.8, 0.05, 0.05)), at(0.2, 0.06, 1.0), name="coupler"),
        Body(generate.box((0.5, 0.05, 0.05)), at(0.35, 0.0, 1.0), name="rocker"),
        Body(generate.box((0.3, 0.3, 0.1)), at(0.0, -0.6, 0.7), name="piston"),
        *(Body(generate.box((0.4, 0.3, 0.3)), at(-0.3 + 0.6 * k, 0.0, 0.3 + 0.4 * k), name=f"box {k}") for k in (0, 1)),
    ]
    world = World([*_bin(fixed=True), *bodies], device="cpu", threads=1, **options)
    world.join("hinge", "crank", at=[-0.5, 0.0, 1.0], axis=[0, 1, 0], speed=3.0, force=60.0)
    world.join("ball", "crank", "coupler", at=[-0.2, 0.03, 1.0])
    world.join("hinge", "coupler", "rocker", at=[0.6, 0.03, 1.0], axis=[0, 1, 0])
    world.join("ball", "rocker", at=[0.1, 0.0, 1.0])
    world.join("slider", "piston", at=[0.0, -0.6, 0.7], axis=[0, 0, 1], limits=(-0.4, 0.6))
    return world


def puppet(seed: int, **options: object) -> World:
    """Limbs on balls and hinges with limits, a head on a string, a hand that is welded on; it falls over boxes."""
    limb, hand = generate.box((0.4, 0.12, 0.12)), generate.icosphere(subdivisions=1, radius=0.1)
    bodies = [
        Body(generate.box((0.3, 0.2, 0.5)), at(-0.3, 0.0, 1.5), name="trunk"),
        Body(generate.icosphere(subdivisions=1, radius=0.15), at(-0.3, 0.0, 2.0), name="head"),
        Body(limb, at(0.1, 0.0, 1.65), name="arm"),
        Body(limb, at(0.55, 0.0, 1.65), name="forearm"),
        Body(hand, at(-0.6, 0.0, 1.65), name="hand"),
        *(Body(generate.box((0.5, 0.4, 0.3)), at(0.0, 0.5 - k, 0.2), name=f"box {k}") for k in (0, 1)),
    ]
    world = World([*_bin(fixed=True), *bodies], device="cpu", threads=1, **options)
    world.join("distance", "trunk", "head", at=[-0.3, 0.0, 1.75], to=[-0.3, 0.0, 1.85])
    world.join("ball", "trunk", "arm", at=[-0.125, 0.0, 1.65])
    world.join("hinge", "arm", "forearm", at=[0.325, 0.0, 1.65], axis=[0, 1, 0], limits=(-1.5, 0.2))
    world.join("weld", "trunk", "hand", at=[-0.475, 0.0, 1.65])
    return world


def tunnel(seed: int, **options: object) -> World:
    """A cube in a closed tunnel with 0.1 mm of play on each side, less than the security distance."""
    size, play = 0.5, 1e-4
    middle = 0.5 * size + play + 0.05
    across = [
        Body(generate.box((2.4, 1.0, 0.1)), at(z=middle), fixed=True),
        Body(generate.box((2.4, 1.0, 0.1)), at(z=-middle), fixed=True),
    ]
    high = 2.0 * (middle - 0.05) - 1e-6
    across += [Body(generate.box((2.4, 0.1, high)), at(y=side * middle), fixed=True) for side in (-1, 1)]
    across += [Body(generate.box((0.1, 0.4, 0.4)), at(side * 1.0), fixed=True) for side in (-1, 1)]
    return World([*across, Body(generate.box((size, size, size)), name="cube")], device="cpu", threads=1, **options)


def ground(seed: int, **options: object) -> World:
    """Bodies that are their formulas, and a mesh, in a hollow of a height field."""
    steps = np.linspace(-2.0, 2.0, 21)
    x, y = np.meshgrid(steps, steps)
    field = Heightfield(0.6 * (x**2 + y**2) + 0.02 * np.sin(9.0 * x) * np.sin(7.0 * y), 0.2, origin=(-2.0, -2.0, 0.0))
    shapes = [
        Sphere(0.2), Cylinder(0.2, 0.3), Capsule(0.1, 0.3), Box([0.2, 0.15, 0.1]), generate.box((0.3, 0.3, 0.3)),
        ConvexMesh(generate.prism(5, radius=0.2, height=0.3)),
    ]  # fmt: skip
    bodies = [
        Body(shape, at(0.1 * k - 0.2, 0.05 * k, 0.6 + 0.6 * k), name=f"part {k}") for k, shape in enumerate(shapes)
    ]
    return World([Body(field, name="ground"), *bodies], device="cpu", threads=1, friction=0.6, **options)


SCENES: dict[str, Callable[..., World]] = {
    "boxes": boxes, "hoops": hoops, "sheets": sheets, "bouncing": bouncing, "mechanism": mechanism, "shaken": shaken,
    "formulas": formulas, "inertialess": inertialess, "uneven": uneven, "tips": tips, "linkage": linkage,
    "puppet": puppet, "tunnel": tunnel, "ground": ground,
}  # fmt: skip
