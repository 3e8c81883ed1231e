"""Scenes in the format of the Rigid-IPC project with numbers drawn at random: the rule for all holds for these, too."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tangere as tg
from tangere.dynamics import World
from tests.dynamics.test_rigid_ipc import check_run

MESHES = {
    "cube": tg.generate.box((1.0, 1.0, 1.0)),
    "ball": tg.generate.icosphere(subdivisions=1, radius=0.5),
    "ring": tg.generate.torus(grid=(12, 6), radius=0.35, tube=0.15),
    "sheet": tg.generate.sheet(2, size=(1.0, 1.0)),
}
SOLIDS = ("cube", "ball", "ring")


def body(mesh, position, size, **more):
    return {"mesh": f"{mesh}.obj", "position": [*map(float, position)], "dimensions": [*map(float, size)], **more}


def turned(rng, spin=0.0):
    """Any rotation, and an angular velocity of up to so many degrees a second about each axis."""
    return {"rotation": rng.uniform(-180, 180, 3).tolist(), "angular_velocity": rng.uniform(-spin, spin, 3).tolist()}


def fixed(mesh, position, size, **more):
    return body(mesh, position, size, type="static", **more)


def ground(scale=1.0):
    return fixed("sheet", (0, 0, 0), (20 * scale, 20 * scale, 0))


def spinning(rng):
    """Up to six turns in a step of 1/20 s, in flight and on the ground."""
    spin = turned(rng, 10.0 ** rng.uniform(3.0, 4.6))
    return [ground(), body(rng.choice(SOLIDS), (0, 0, 2.5), rng.uniform(0.3, 1.0, 3), **spin)], {"timestep": 0.05}


def dominoes(rng):
    bodies = [body("cube", (0.45 * k, 0, 0.501), (0.12, 0.5, 1.0)) for k in range(8)]
    bodies[0]["angular_velocity"] = [0.0, rng.uniform(60, 300), 0.0]
    return [ground(), *bodies], {}


def sheets(rng):
    """Without thickness, one above the other."""
    size = (1.0, 1.0, 0.0)
    fall = [body("sheet", (*rng.uniform(-0.3, 0.3, 2), 0.9 + 1.3 * k), size, **turned(rng, 300)) for k in range(4)]
    return [ground(), *fall], {}


def wedge(rng):
    """Between two slopes, at up to 200 m/s."""
    slopes = [
        fixed("cube", (side * 1.2, 0, 0), (0.2, 3, 3), rotation=[0, side * rng.uniform(10, 40), 0]) for side in (-1, 1)
    ]
    return [*slopes, body("cube", (0, 0, 4.0), (0.5, 0.5, 0.5), **turned(rng)) | falling(rng, 200)], {}


def falling(rng, most):
    return {"linear_velocity": [0.0, 0.0, -float(rng.uniform(0, most))]}


def billiards(rng):
    """In a closed box, bouncing."""
    walls = []
    for axis in range(3):
        for side in (-1, 1):
            place, size = np.zeros(3), np.full(3, 2.99)
            place[axis], size[axis] = side * 1.7, 0.2
            walls.append(fixed("cube", place, size))
    balls = [
        body(rng.choice(SOLIDS), (-0.9 + 0.6 * k, *rng.uniform(-0.7, 0.7, 2)), (0.4, 0.4, 0.4), **turned(rng, 2000))
        | {"linear_velocity": rng.uniform(-30, 30, 3).tolist()}
        for k in range(4)
    ]
    return [*walls, *balls], {"gravity": [0, 0, 0], "coefficient_restitution": float(rng.choice([0.5, 0.9, 1.0]))}


def any_scale(rng):
    """From a millimetre to a kilometre, with gravity to scale or not."""
    size = float(10.0 ** rng.uniform(-3, 3))
    fall = [
        body(rng.choice(SOLIDS), size * np.array([*rng.uniform(-0.4, 0.4, 2), 1 + 1.8 * k]), [size] * 3, **turned(rng))
        for k in range(4)
    ]
    return [ground(size), *fall], {"gravity": [0, 0, -9.81 * (size if rng.random() < 0.7 else 1.0)]}


def stirrer(rng):
    """A driven bar turns in a ring of bodies."""
    bar = body("cube", (0, 0, 0.3), (2.4, 0.3, 0.2), type="kinematic", angular_velocity=[0, 0, rng.uniform(90, 720)])
    angles = np.linspace(0, 2 * np.pi, 6, endpoint=False) + 0.4
    places = [(np.cos(angle), np.sin(angle), 0.9 + 0.7 * (k % 2)) for k, angle in enumerate(angles)]
    return [ground(), bar, *[body(rng.choice(SOLIDS), place, (0.35,) * 3, **turned(rng)) for place in places]], {}


def bullets(rng):
    """At up to 10,000 m/s at a wall of 2 cm."""
    shots = [
        body(rng.choice(SOLIDS), (-2 - k, 0.7 * (k - 1), 0), (0.3,) * 3, **turned(rng, 5000))
        | {"linear_velocity": [float(10.0 ** rng.uniform(1, 4)), *rng.uniform(-5, 5, 2)]}
        for k in range(3)
    ]
    return [fixed("cube", (0, 0, 0), (0.02, 4, 4)), *shots], {"gravity": [0, 0, 0]}


def needle(rng):
    """A rod falls into a gap that is wider than it by a millimetre to a decimetre."""
    play = float(10.0 ** rng.uniform(-3, -1))
    jaws = [fixed("cube", (side * (0.525 + 0.5 * play), 0, 0), (1, 1, 1)) for side in (-1, 1)]
    tilt = [0.0, rng.uniform(-0.3, 0.3) * np.degrees(play), 0.0]
    return [*jaws, body("cube", (0, 0, 1.8), (0.05, 0.05, 2.0), rotation=tilt) | falling(rng, 100)], {}


def held_axes(rng):
    """A lever that only turns, a piston that only rises, and what falls on them."""
    lever = body("cube", (0, 0, 0), (3, 0.3, 0.1), is_dof_fixed=[True, True, True, True, False, True])
    piston = body("cube", (-1.2, 0, 0.5), (0.3,) * 3, is_dof_fixed=[True, True, False, True, True, True])
    load = body("cube", (1.2, 0, rng.uniform(0.6, 2)), (0.4,) * 3, density=float(10.0 ** rng.uniform(1, 4)))
    return [lever, piston, load | turned(rng)], {}


def uneven_stack(rng):
    """Each cube up to 1,000 times as heavy as the one below."""
    factor = 10.0 ** rng.uniform(1, 3)
    return [ground(), *[body("cube", (0, 0, 0.501 + 1.002 * k), (1, 1, 1), density=factor**k) for k in range(4)]], {}


def kept_apart(rng):
    distance = {"minimum_separation_distance": float(10.0 ** rng.uniform(-3, -1))}
    fall = [body("cube", (*rng.uniform(-0.2, 0.2, 2), 1.0 + 1.6 * k), (1, 1, 1)) for k in range(3)]
    return [ground(), *fall], {"distance_barrier_constraint": distance}


SCENES = (
    spinning, dominoes, sheets, wedge, billiards, any_scale, stirrer, bullets, needle, held_axes, uneven_stack,
    kept_apart,
)  # fmt: skip


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("scenes")
    (made / "fixtures").mkdir()
    (made / "meshes").mkdir()
    for name, mesh in MESHES.items():
        mesh.save(made / "meshes" / f"{name}.obj")
    return made


def check(folder, make, seed, steps):
    rng = np.random.default_rng(seed)
    bodies, more = make(rng)
    problem = {"rigid_bodies": bodies, "gravity": [0, 0, -9.81], "coefficient_friction": float(rng.uniform(0, 0.8))}
    problem |= {key: more.pop(key) for key in ("gravity", "coefficient_restitution") if key in more}
    file = folder / "fixtures" / f"{make.__name__}-{seed}.json"
    file.write_text(json.dumps({"timestep": 0.01, "max_iterations": steps, "rigid_body_problem": problem, **more}))
    world = World.load(file, device="cpu")
    check_run(world, steps, look=2)


@pytest.mark.parametrize("make", SCENES)
def test_the_rule_for_all_holds_whatever_the_numbers(folder, make):
    check(folder, make, 0, 40)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 7))
@pytest.mark.parametrize("make", SCENES)
def test_the_rule_for_all_holds_for_many_numbers(folder, make, seed):
    check(folder, make, seed, 200)
