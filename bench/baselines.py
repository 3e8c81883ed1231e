"""Where discrete detection, backtracking and sampling fail, and first contact does not (Redon, chapters 1 and 2).

Four scenes: a thin plate that jumps over another one, a hoop that jumps into another one (afterwards they
cannot be separated), a box that ends beyond the middle of a wall, so that a discrete method which looks for the
shortest way out lets it leave on the wrong side, and a bar that swings past a post. Each method moves the part by one
step of a screw: discrete looks at the end only; backtracking too, and halves the step back when it finds penetration;
sampled looks at ten instants; the pseudo-continuous one follows every vertex along a straight line (exact for pure
translations).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import tangere as tg
from bench.harness import Report, measure
from bench.shapes.traps import thin_plate, two_hoops
from tangere.motion import Rest, Screw
from tangere.query.first_contact.rigid.api import rigid_first_contact
from tangere.query.intersection import intersecting_pairs, intersects
from tangere.shape import generate
from tangere.shape.generate.build.assembly import pose
from tangere.shape.mesh import Mesh

__all__ = ["METHODS", "SCENES", "Scene", "wrong_side_exit"]

FEATURES: list[str] = []

#: Where a method lets the part go: up to this time of the step.
Method = Callable[[Mesh, Mesh, Screw], float]


@dataclass(frozen=True, eq=False)
class Scene:
    """One step of a part beside a fixed one; a path of the part through `fixed` is what all of them ask for."""

    part: Mesh
    fixed: Mesh
    motion: Screw
    trap: str  #: what goes wrong when the contact is missed


def discrete(part: Mesh, fixed: Mesh, motion: Screw) -> float:
    """The whole step if nothing intersects at its end, else none of it."""
    return 0.0 if _meet(part, fixed, motion, 1.0) else 1.0


def backtracking(part: Mesh, fixed: Mesh, motion: Screw) -> float:
    """Bisection of the time of contact, begun only if the end of the step intersects."""
    if not _meet(part, fixed, motion, 1.0):
        return 1.0
    low, high = 0.0, 1.0
    while high - low > 1e-6:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if _meet(part, fixed, motion, middle) else (middle, high)
    return low


def sampled(part: Mesh, fixed: Mesh, motion: Screw, samples: int = 10) -> float:
    """The last of evenly spread instants before the first one that intersects."""
    for k in range(1, samples + 1):
        if _meet(part, fixed, motion, k / samples):
            return (k - 1) / samples
    return 1.0


def straight_vertices(part: Mesh, fixed: Mesh, motion: Screw) -> float:
    """Vertices go along straight lines: a turning body is deformed, so times are right for translations only."""
    start = part.at(motion.pose(0.0))
    end = part.at(motion.pose(1.0)).vertices
    return min(tg.first_contact(start.moving(tg.Linear(end)), fixed, device="cpu").time, 1.0)


def first_contact(part: Mesh, fixed: Mesh, motion: Screw) -> float:
    """Ours."""
    return min(rigid_first_contact(part.moving(motion), fixed, device="cpu").time, 1.0)


METHODS: dict[str, Method] = {
    "discrete": discrete,
    "backtracking": backtracking,
    "sampled, 10 instants": sampled,
    "straight vertices": straight_vertices,
    "first contact": first_contact,
}


def _scenes() -> dict[str, Scene]:
    plate, hoops = thin_plate(), two_hoops()
    # 1 mm thick, 10 m a step: ten thousand thicknesses, while it turns a little.
    above, below = pose((0.1, 0.05, 4.5), axis=0, angle=0.1), pose((0.1, 0.05, -5.5), axis=0, angle=0.3)
    jump = Screw(hoops.touching_path[0], hoops.touching_path[1])
    box, wall = generate.box((0.2, 0.2, 0.2), name="box"), generate.box((1.0, 1.0, 0.3), name="wall")
    turning = generate.box((2.0, 0.1, 0.1), name="bar")
    post = generate.box((0.1, 0.1, 1.0), name="post").at(pose((0.7, 0.7, 0.0)))
    return {
        "thin plate, 10,000 thicknesses in a step": Scene(plate, plate, Screw(above, below), "tunnelling"),
        "two hoops": Scene(hoops.part, hoops.fixed, jump, "linked for ever"),
        "box into a wall, past its middle": Scene(
            box, wall, Screw(pose((0.0, 0.0, 0.5)), pose((0.0, 0.0, -0.2))), "out on the wrong side"
        ),
        "bar swung past a post, a quarter turn": Scene(
            turning, post, Screw(pose(axis=2), pose(axis=2, angle=0.5 * np.pi)), "swung through"
        ),
    }


SCENES = _scenes()


def wrong_side_exit(part: Mesh, fixed: Mesh, at: np.ndarray) -> np.ndarray:
    """(3,) unit: which way a penetrating part leaves by the shortest way along the axes, as penalty forces push it.

    Args:
        at: (4, 4) pose with an intersection.
    """
    ways = [sign * axis for axis in np.eye(3) for sign in (1.0, -1.0)]

    def length(way: np.ndarray) -> float:
        placed = part.at(at)
        return float((fixed.vertices @ way).max() - (placed.vertices @ way).min())

    return min(ways, key=length)


def run(report: Report, quick: bool = False) -> None:
    rows = []
    for name, scene in SCENES.items():
        methods = {
            method: lambda method=method, scene=scene: METHODS[method](scene.part, scene.fixed, scene.motion)
            for method in METHODS
        }
        timings = measure(methods, rounds=3 if quick else 7)
        truth = timings["first contact"].result
        for method, timing in timings.items():
            rows.append([name, method, f"{timing.result:.6f}", _verdict(scene, timing.result, truth), timing])
    report.table(["scene", "method", "moves to", "verdict", "time"], rows)
    wall = SCENES["box into a wall, past its middle"]
    end = wall.motion.pose(1.0)
    pairs = len(intersecting_pairs(wall.part.moving(Rest(end)), wall.fixed, device="cpu"))
    way = wrong_side_exit(wall.part, wall.fixed, end)
    came = wall.motion.pose(0.0)[:3, 3] - end[:3, 3]
    report.note(
        f"""The box came from above. A discrete method with a penalty response finds it in the wall at the end of the
        step ({pairs} pairs of triangles) and pushes it the shortest way out, along {way.astype(int).tolist()}:
        {"back where it came from" if way @ came > 0.0 else "out on the other side"}. A method is right if it stops at
        most 0.1 % of a step before the first contact and no exact test before its time finds an intersection."""
    )


def _verdict(scene: Scene, time: float, truth: float) -> str:
    """Right, early, or what went wrong, by exact intersection tests along the way."""
    if time > truth + 1e-3:
        through = any(_meet(scene.part, scene.fixed, scene.motion, t) for t in np.linspace(truth, time, 400))
        return f"missed: {scene.trap}" if through else "late"
    before = np.linspace(0.0, time, 200)
    if any(_meet(scene.part, scene.fixed, scene.motion, t) for t in before[:-1]):
        return "late"
    return "right" if time > truth - 1e-3 else f"safe, {100.0 * (truth - time):.1f} % of the step early"


def _meet(part: Mesh, fixed: Mesh, motion: Screw, time: float) -> bool:
    return intersects(part.moving(Rest(motion.pose(time))), fixed, device="cpu")
