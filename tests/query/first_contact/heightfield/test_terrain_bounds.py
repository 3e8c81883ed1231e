"""The certified step of bodies over ground, by sampling: no body passes a plane before the time promised. Mutants fail.

End-to-end tests have weak teeth here: a search with a wrong bound is still right most of the time. So single bodies are
stepped towards single planes by the functions of the search, and looked at many times before their answer.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import warp as wp

from oracles.bodies_on_terrain import random_rotations
from oracles.families.rigid_scenes import random_motion
from tangere.motion import COSINE, Chain, Rigid
from tangere.query.first_contact.heightfield.motion_bounds import (
    MovingShapes,
    moving_shape_bounds_of,
    outline_at,
    safe_time_of,
)
from tangere.query.first_contact.heightfield.query_batch import core_reach, moving_shapes
from tangere.runtime import SOUND, launch
from tangere.shape.analytic import Analytic, Box, Capsule, Cone, Cylinder, hull_tables

BODIES = {
    "cylinder": Cylinder(0.5, 1.2),
    "capsule": Capsule(0.3, 0.9),
    "cone": Cone(0.5, 1.0),
    "box": Box([0.5, 0.2, 0.7]),
}
MOTIONS = ["twist", "screw", "tan screw", "cosine screw", "chain", "chain of a cosine screw"]
#: What is wrong with a mutant: nothing; no acceleration; points of the body do not turn; nor does its origin.
RIGHT, NO_ACCELERATION, NO_OUTLINE, NO_ARM = range(4)


@cache
def stepping(kind: int) -> wp.Kernel:
    safe_time = safe_time_of(kind)

    @wp.kernel(module="unique", module_options=SOUND)
    def step(
        first: int,
        mutant: int,
        queries: MovingShapes,
        normals: wp.array[wp.vec3d],
        gaps: wp.array[wp.float64],
        begins: wp.array[wp.float64],
        out: wp.array[wp.float64],
    ):
        i = first + wp.tid()
        zero = wp.float64(0.0)
        m = moving_shape_bounds_of(queries, i, zero, wp.vec3d())
        if mutant == 1:
            m.bend = zero
        if mutant == 2:
            m.outline_spin = zero
        if mutant == 3:
            m.rho = zero
        o = outline_at(m, begins[i])
        out[i] = safe_time(m, o, normals[i], gaps[i], begins[i])

    return step


def promised(body: Analytic, motion, normals, gaps, begins, mutant: int) -> np.ndarray:
    """Until when, on the motion's clock, each gap stays open."""
    count, cpu = len(gaps), wp.get_device("cpu")
    out = wp.empty(count, dtype=wp.float64, device=cpu)
    queries = moving_shapes(
        motion.records().reshape(-1, motion.links), body.records, body.poses, core_reach(body.records, body.hull), cpu
    )
    queries.hulls, queries.tolerance = hull_tables(body.hull, "cpu"), 1.0e-6
    inputs = [
        mutant,
        queries,
        wp.array(normals, dtype=wp.vec3d, device=cpu),
        wp.array(gaps, dtype=wp.float64, device=cpu),
        wp.array(begins, dtype=wp.float64, device=cpu),
    ]
    launch(stepping(body.kind), count, inputs, [out], device=cpu)
    return np.minimum(out.numpy(), 1.0)


def lowest(name: str, poses: np.ndarray, normals: np.ndarray) -> np.ndarray:
    """The least n.p of the points p of the core of a body (a capsule's is a segment), at each pose."""
    n = np.einsum("ki,kij->kj", normals, poses[:, :3, :3])
    across = np.hypot(n[:, 0], n[:, 1])
    down = {
        "cylinder": 0.6 * np.abs(n[:, 2]) + 0.5 * across,
        "capsule": 0.45 * np.abs(n[:, 2]),
        "cone": np.maximum(-0.5 * n[:, 2], 0.5 * n[:, 2] + 0.5 * across),
        "box": np.abs(n) @ [0.5, 0.2, 0.7],
    }[name]
    return np.einsum("ki,ki->k", normals, poses[:, :3, 3]) - down


def motions_of_kind(rng, kind: str, count: int) -> Rigid:
    """Motions of one kind, (n,): single ones, or each the product of three in a chain."""
    if not kind.startswith("chain"):
        return random_motion(kind, rng, count, 1.0)
    last = "cosine screw" if "cosine" in kind else "screw"
    each = [random_motion(one, rng, count, 0.5) for one in ("twist", last, "rest")]
    return Rigid.join([Chain([motions[k] for motions in each]).link(2) for k in range(count)])


def violations(rng, name: str, kind: str, mutant: int, count: int) -> int:
    """How many bodies are behind their plane at one of the samples before their time."""
    placed = np.tile(np.eye(4), (count, 1, 1))
    placed[:, :3, :3] = random_rotations(count, rng)
    placed[:, :3, 3] = rng.normal(size=(count, 3)) * rng.choice([0.0, 0.3, 2.0], (count, 1))
    body, motion = BODIES[name].at(placed), motions_of_kind(rng, kind, count)
    normals = rng.normal(size=(count, 3))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    gaps = 10.0 ** rng.uniform(-4.0, 0.5, count)
    begins = rng.choice([0.0, 0.3], count)
    ends = promised(body, motion, normals, gaps, begins, mutant)
    smooth = (motion.records()["kind"] == COSINE).reshape(count, -1).any(axis=1)

    def height(clock: np.ndarray) -> np.ndarray:
        time = np.where(smooth, np.sin(0.5 * np.pi * clock) ** 2, clock)
        return lowest(name, motion.pose(time) @ placed, normals)

    plane = height(begins) - gaps
    behind = np.zeros(count, bool)
    for part in np.linspace(0.0, 1.0, 65):
        behind |= height(begins + part * (ends - begins)) < plane - 1e-9
    return int(behind.sum())


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("kind", MOTIONS)
def test_no_body_passes_a_plane_before_the_time_promised(name, kind, rng, effort):
    assert violations(rng, name, kind, RIGHT, effort(3000)) == 0


@pytest.mark.parametrize(
    ("mutant", "kind"),
    [(NO_ACCELERATION, "twist"), (NO_ACCELERATION, "screw"), (NO_OUTLINE, "twist"), (NO_ARM, "twist")],
)
def test_a_bound_that_forgets_something_is_caught(mutant, kind, rng, effort):
    assert violations(rng, "cylinder", kind, mutant, effort(3000, least=1000)) > 0
