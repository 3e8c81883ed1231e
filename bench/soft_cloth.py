"""A cloth of 19,602 triangles in contact with itself, against rapier3d's soft bodies, step by step in one run.

The cloth falls on a ball and folds over it; both take the same time step, the peer with self contacts. How far the
cloth has stretched is told beside the time: a fast step that stretches more is no better. The two are compared over the
first 50 steps: those of the peer take a second each, and more and more as the cloth comes to lie on itself. Ours go on
to 120.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from bench.harness import Report, SkippedError, ratio, seconds
from tangere.shape import generate
from tangere.shape.mesh import Mesh
from tangere.soft import Body, Simulation

FEATURES: list[str] = []

DT = 1.0 / 120.0

#: One step, where the cloth is, and the cloth at rest.
World = tuple[Callable[[], None], Callable[[], np.ndarray], Mesh]


def run(report: Report, quick: bool = False) -> None:
    cells, steps, more = (29, 6, 6) if quick else (99, 50, 70)
    report.packages.append("rapier3d")
    report.section(f"A cloth of {2 * cells**2} triangles falls on a ball")
    world = _ours(cells)
    ours = _measured(world, steps)
    rows = [[f"tangere, steps 2 to {steps + 1}", *_columns(ours), ""]]
    try:
        theirs = _measured(_rapier(cells), steps)
    except ImportError as error:
        raise SkippedError("rapier3d is not installed") from error
    rows.append(["rapier3d, self contacts, the same steps", *_columns(theirs), ratio(theirs[0], ours[0])])
    rows.append([f"tangere, steps {steps + 3} to {steps + more + 2}", *_columns(_measured(world, more)), ""])
    report.table(["", "step (median)", "slowest", "longest edge at the end, of its rest length", "against ours"], rows)


def _columns(result: tuple[float, float, float]) -> list[str]:
    return [seconds(result[0]), seconds(result[1]), f"{result[2]:.3f}"]


def _measured(world: World, steps: int) -> tuple[float, float, float]:
    """Median and longest of so many steps after one that is not timed [s], and the largest stretch at the end."""
    step, positions, sheet = world
    step()  # the first one compiles
    taken = []
    for _ in range(steps):
        began = time.perf_counter()
        step()
        taken.append(time.perf_counter() - began)

    def lengths(vertices: np.ndarray) -> np.ndarray:
        ends = vertices[sheet.edges]
        return np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1)

    stretch = lengths(positions()) / lengths(sheet.vertices)
    return float(np.median(taken)), max(taken), float(stretch.max())


def _sheet(cells: int) -> Mesh:
    sheet = generate.sheet(2 * cells**2, size=(1.0, 1.0))
    return sheet.replace(vertices=sheet.vertices + [0.0, 0.0, 0.32])


def _ours(cells: int) -> World:
    sheet = _sheet(cells)
    cloth = Body(sheet, youngs_modulus=1e4, poisson=0.3, density=300.0, thickness=1e-3, name="cloth")
    ball = Body(generate.icosphere(subdivisions=4, radius=0.3), fixed=True, name="ball")
    simulation = Simulation([cloth, ball], dt=DT, sweeps=10)
    return simulation.step, lambda: simulation[0].positions, sheet


def _rapier(cells: int) -> World:
    import rapier3d

    sheet, side = _sheet(cells), cells + 1
    world = rapier3d.PhysicsWorld((0.0, 0.0, -9.81))
    world.integration_parameters.dt = DT
    world.add_collider(rapier3d.Collider.ball(0.3))
    edge = 1.0 / cells
    builder = rapier3d.SoftBody.cloth((-0.5, -0.5, 0.32), (edge, 0.0, 0.0), (0.0, edge, 0.0), side, side)
    handle = world.add_soft_body(builder.mass(0.3).self_contacts(True))

    def positions() -> np.ndarray:
        cloth = world.soft_bodies.get(handle)
        assert cloth is not None
        return np.asarray(cloth.particle_positions)

    return world.step, positions, sheet
