"""Each public question asked about something tiny: what compiles the kernels that are made on demand."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

import tangere as tg
from tangere import crowd, dynamics, needle, soft
from tangere.cells.generate import hex_grid, quad_grid
from tangere.cells.maps import merge, split
from tangere.crowd import Bubbles, Orca, scenarios
from tangere.shape.tets import solid_block
from tangere.soft import scenes

#: A question by name, and the call that asks it on a device.
FirstCall = tuple[str, Callable[[str], object]]

#: Queries in a batch that takes the road of large ones.
_MANY = 4096


def _at(x: float) -> np.ndarray:
    pose = np.eye(4)
    pose[0, 3] = x
    return pose


def _ball() -> tg.Mesh:
    return tg.generate.icosphere(1)


def _turning() -> tg.shape.Moving:
    return _ball().moving(tg.Screw(_at(-4.0), _at(0.5)))


def _deforming(device: str) -> None:
    ball = _ball()
    end = ball.vertices + (4.0, 0.0, 0.0)
    beside = ball.replace(vertices=ball.vertices + (4.0, 0.0, 0.0))
    tg.first_contact(ball.moving(tg.Linear(end)), beside, device=device)
    tg.all_contacts(ball.moving(tg.Linear(end)), beside, device=device)
    sheet = tg.generate.sheet(200)
    tg.first_contact(sheet.moving(tg.Linear(sheet.vertices * (-1.0, 1.0, 1.0))), device=device)
    tg.all_contacts(sheet.moving(tg.Linear(sheet.vertices * (-1.0, 1.0, 1.0))), device=device)
    tg.candidates(ball.moving(tg.Linear(end)), beside, device=device)


def _rigid(device: str) -> None:
    tg.first_contact(_turning(), _ball(), device=device)
    tg.first_contact(_turning(), _ball(), options=tg.RigidOptions(contacts="all"), device=device)
    movers = [_ball().moving(tg.Twist(_at(4.0 * k), (-4.0 * k, 0.0, 0.0), (0.0, 1.0, 0.0))) for k in range(3)]
    tg.first_contact(movers, device=device)


def _mixed(device: str) -> None:
    ball = _ball()
    tg.first_contact(_turning(), ball.moving(tg.Linear(ball.vertices * 1.1)), device=device)


def _path(device: str) -> None:
    tg.check_path(tg.generate.box(), tg.generate.box(), tg.Path(np.stack([_at(-3.0), _at(-2.0)])), device=device)
    tg.check_path(tg.generate.box(), tg.generate.box(), tg.Path(np.stack([_at(-3.0), _at(1.0)])), device=device)


def _clearance(device: str) -> None:
    tg.least_clearance(_ball().moving(tg.Twist(_at(5.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0))), _ball(), device=device)


def _distance(device: str) -> None:
    tg.distance(_ball(), _ball().moving(tg.Rest(_at(3.0))), device=device)


def _intersection(device: str) -> None:
    tg.intersects(_ball(), _ball().moving(tg.Rest(_at(1.0))), device=device)
    tg.intersects(_ball(), device=device)


def _proximity(device: str) -> None:
    tg.proximity(_ball(), _ball().at(_at(2.05)), distance=0.1, device=device)
    tg.proximity(tg.generate.sheet(200), distance=0.01, device=device)


def _signed_distance(device: str) -> None:
    tg.signed_distance(np.zeros((3, 3)), _ball(), device=device)


def _batches(device: str) -> None:
    for count in (4, _MANY):
        x0, x1 = np.random.default_rng(0).random((2, count, 4, 3))
        for ask in (tg.query.vertex_face, tg.query.edge_edge):
            ask(x0, x1, device=device)
        for ask, width in ((tg.query.vertex_edge, 3), (tg.query.vertex_vertex, 2)):
            ask(x0[:, :width], x1[:, :width], device=device)
        tg.query.triangle_triangle(*np.random.default_rng(0).random((2, count, 6, 3)), device=device)


def _terrain(device: str) -> None:
    ground = tg.Heightfield(np.zeros((8, 8)))
    down = tg.Twist(np.eye(4), (0.0, 0.0, -2.0), (0.0, 0.0, 0.0))
    for body in (
        tg.Cylinder(0.3, 0.5),
        tg.Sphere(0.3),
        tg.Box((0.3, 0.3, 0.3)),
        tg.Capsule(0.3, 0.5),
        tg.Cone(0.3, 0.5),
        tg.ConvexMesh(_ball()),
    ):
        pose = np.eye(4)
        pose[:3, 3] = 3.5, 3.5, 1.5
        tg.first_contact(body.at(pose).moving(down), ground, device=device)
        pose[2, 3] = 0.2
        tg.manifold(body.at(pose), ground, device=device)
    tg.touches(tg.Cylinder(0.3, 0.5).at(pose), ground, device=device)


def _bodies() -> list[Any]:
    """One analytic body of each kind."""
    return [
        tg.Sphere(0.3),
        tg.Capsule(0.3, 0.5),
        tg.Box((0.3, 0.3, 0.3)),
        tg.Cylinder(0.3, 0.5),
        tg.Cone(0.3, 0.5),
        tg.ConvexMesh(_ball()),
    ]


def _each_pair(ask: Callable[[Any, Any, str], object]) -> Callable[[str], None]:
    """A question about every two kinds of analytic bodies, near each other."""

    def run(device: str) -> None:
        for first, second in combinations_with_replacement(_bodies(), 2):
            ask(first, second.at(_at(0.6)), device)

    return run


def _meet(a: Any, b: Any, device: str) -> None:
    tg.first_contact(a.moving(tg.Twist(_at(-3.0), (4.0, 0.0, 0.0), (0.0, 1.0, 0.0))), b, device=device)


def _lie(a: Any, b: Any, device: str) -> None:
    tg.manifold(a, b, device=device)
    tg.manifold(a, b.at(_at(-0.3)), device=device)  # where they overlap


def _bodies_and_meshes(device: str) -> None:
    """Rigid meshes, and such as deform."""
    ball = _ball()
    blown = ball.moving(tg.Linear(ball.vertices * 1.1))
    for body in _bodies():
        beside = body.at(_at(1.2))
        tg.distance(beside, ball, device=device)
        tg.proximity(beside, ball, distance=0.1, device=device)
        tg.manifold(beside, ball, device=device)
        _meet(body, ball, device)
        _meet(body, blown, device)


def _cells(device: str) -> None:
    for map in (quad_grid(2, 2, device=device), hex_grid(2, 2, 2, device=device)):
        for method in ("sequential", "sets"):
            split(map, [0], method=method)
            merge(map, [0], method=method)


def _dynamics(device: str) -> None:
    """Something that hits something and slides on it, and something that hangs in a joint."""
    box, above = tg.generate.box(), np.eye(4)
    above[2, 3] = 1.05
    bodies = [
        dynamics.Body(box, name="floor", fixed=True),
        dynamics.Body(box, above, name="crate", velocity=[1.0, 0.0, -3.0]),
        dynamics.Body(box, _at(3.0), name="rod"),
    ]
    world = dynamics.World(bodies, friction=0.5, device=device)
    world.join("hinge", "rod", at=[3.0, 0.0, 0.0], axis=[0.0, 1.0, 0.0])
    world.run(steps=6)


def _needle(device: str) -> None:
    if not device.startswith("cuda"):  # cells of a needle are on the CPU
        block = hex_grid(2, 2, 2, size=0.05, device=device)
        start = {"entry": [0.05, 0.05, 0.001], "direction": [0.0, 0.0, 1.0]}
        vessels = [[[0.0, 0.05, 0.02], [0.1, 0.05, 0.02]]]
        membrane = tg.generate.sheet(8, size=(0.05, 0.05))
        membrane = membrane.replace(vertices=membrane.vertices + (0.05, 0.05, 0.03))
        moving = needle.KinematicSimulation(
            block, needle.Needle(), vessels=vessels, membranes=[membrane], level=1, **start
        )
        for _ in range(10):
            moving.step(0.005)
        moving.refine()
    tissue = soft.Body(solid_block((3, 3, 3), size=(0.1, 0.1, 0.08)), youngs_modulus=1e4)
    pushed = needle.Simulation(
        tissue, needle.Needle(), needle.Tissue(), entry=[0.001, 0.002, 0.04], direction=[0, 0, -1], device=device
    )
    for _ in range(3):
        pushed.step(0.02)


def _soft(scene: str) -> Callable[[str], None]:
    def run(device: str) -> None:
        simulation = getattr(scenes, scene)(device=device)
        simulation.run(steps=2)

    return run


def _crowd(scenario: str) -> Callable[[str], None]:
    def run(device: str) -> None:
        for rule in (Bubbles(), Orca()) if scenario != "swarm" else (Bubbles(),):
            simulation = getattr(scenarios, scenario)(20, behaviour=rule, device=device)
            simulation.run(steps=2)

    return run


def _floor(device: str) -> None:
    if find_spec("shapely") is None:  # plans are of that package
        return
    plan = crowd.FloorPlan("POLYGON ((0 0, 6 0, 6 4, 0 4, 0 0))")
    for rule in (crowd.CollisionFreeSpeed(), crowd.SocialForce()):
        simulation = crowd.Simulation(plan, behaviour=rule, dt=0.05, device=device)
        way_out = simulation.add_exit("POLYGON ((5 1, 6 1, 6 3, 5 3, 5 1))")
        simulation.add_people(4, "POLYGON ((0.5 0.5, 3 0.5, 3 3.5, 0.5 3.5, 0.5 0.5))", to=way_out)
        simulation.run(0.1)


def _picture(device: str) -> None:
    tg.picture(_ball(), size=(16, 12), device=device)


#: Every question, by the room that answers it.
FIRST_CALLS: dict[str, list[FirstCall]] = {
    "query": [
        ("batches of primitives", _batches),
        ("first contact, deforming", _deforming),
        ("first contact, rigid", _rigid),
        ("first contact, rigid with deforming", _mixed),
        ("bodies on terrain", _terrain),
        ("distance of two bodies", _each_pair(lambda a, b, device: tg.distance(a, b, device=device))),
        ("first contact of two bodies", _each_pair(_meet)),
        ("manifold of two bodies", _each_pair(_lie)),
        ("bodies and meshes", _bodies_and_meshes),
        ("check of a path", _path),
        ("least clearance", _clearance),
        ("distance", _distance),
        ("intersection", _intersection),
        ("proximity", _proximity),
        ("signed distance", _signed_distance),
    ],
    "cells": [("splitting and merging", _cells)],
    "dynamics": [("rigid world", _dynamics)],
    "needle": [("needles", _needle)],
    "soft": [(f"soft {scene}", _soft(scene)) for scene in ("drop", "cloth")],
    "crowd": [
        *(
            (f"crowd {scenario}", _crowd(scenario))
            for scenario in ("corridor", "circle", "city", "snake", "planet", "knot", "potatoid", "swarm")
        ),
        ("crowd on a floor plan", _floor),
    ],
    "view": [("picture", _picture)],
}
