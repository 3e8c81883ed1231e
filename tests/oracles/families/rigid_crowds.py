"""Crowds of random scenes, a whole family at once: what the soundness of first contact is proved on by the thousand.

The families are those of `rigid_scenes` on meshes small enough for brute force, as arrays: two meshes and n motions
of each. Motions of several kinds are mixed in one crowd.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from bench.shapes.pot import pot as loose_pot
from oracles.families.rigid_scenes import shape
from tangere.motion import Rest, Rigid, Screw, Twist
from tangere.published.redon_screws import CosineScrew, TanScrew
from tangere.shape import generate
from tangere.shape.mesh import Mesh

__all__ = ["CROWDS", "Crowd", "crowds"]

#: The shapes there are, 1 to 120 triangles.
SHAPES: dict[str, Mesh] = {
    "ball": generate.icosphere(triangles=80, radius=0.6),
    "stone": generate.icosphere(triangles=20, radius=0.6),
    "ring": generate.torus(grid=(7, 4), radius=0.8, tube=0.2),
    "hoop": generate.torus(grid=(7, 3), radius=1.0, tube=0.05),
    "pot": loose_pot(120),
    **{name: shape(name) for name in ("plate", "block", "cone", "needle")},
}


@dataclass(frozen=True)
class Crowd:
    """n scenes of two shapes."""

    family: str
    a: Mesh
    b: Mesh
    motion_a: Rigid
    motion_b: Rigid

    def __len__(self) -> int:
        return len(self.motion_b)


def crowds(family: str, rng, count: int):
    """Crowds of one family, one for each of its pairs of shapes, `count` scenes in all."""
    pairs, moves = CROWDS[family]
    sizes = np.diff(np.linspace(0, count, len(pairs) + 1).astype(int))
    for (a, b), size in zip(pairs, sizes, strict=True):
        if size:
            yield Crowd(family, SHAPES[a], SHAPES[b], *moves(rng, int(size)))


def units(rng, count: int) -> np.ndarray:
    v = rng.normal(size=(count, 3))
    return v / np.linalg.norm(v, axis=1, keepdims=True)


def placed(rng, positions: np.ndarray, aligned: float = 0.3) -> np.ndarray:
    """Poses at `positions`, some along the axes, where degenerate cases live."""
    count = len(positions)
    poses = np.tile(np.eye(4), (count, 1, 1))
    turns = 2.0 * rng.normal(size=(count, 3)) * (rng.random((count, 1)) > aligned)
    poses[:, :3, :3] = Rotation.from_rotvec(turns).as_matrix()
    poses[:, :3, 3] = positions
    return poses


def flights(rng, start: np.ndarray, way: np.ndarray, turn: np.ndarray) -> Rigid:
    """From `start` by `way` while turning, as any kind of motion that can turn so far."""
    angle = np.linalg.norm(turn, axis=1)
    kind = rng.integers(4, size=len(start))
    kind[(angle >= 3.1) | ((kind == 3) & (angle >= 2.5))] = 0
    twist = Twist(start, way, turn)
    end = twist.pose(1.0)
    groups = [np.flatnonzero(kind == k) for k in range(4)]
    parts = [
        twist[rows] if k == 0 else (Screw, CosineScrew, TanScrew)[k - 1](start[rows], end[rows])
        for k, rows in enumerate(groups)
        if len(rows)
    ]
    back = np.argsort(np.concatenate(groups))
    return Rigid.join(parts)[back]


def resting(count: int) -> Rigid:
    return Rest(np.tile(np.eye(4), (count, 1, 1)))


def thrown(spins):
    """One body thrown at another, which moves itself in four of ten scenes."""

    def moves(rng, count):
        away = units(rng, count) * rng.uniform(2.0, 4.0, (count, 1))
        way = (0.6 * rng.normal(size=(count, 3)) - away) * rng.uniform(0.5, 1.5, (count, 1))
        moving = rng.random((count, 1)) < 0.4
        start = placed(rng, np.zeros((count, 3)))
        a = flights(rng, start, 0.4 * moving * rng.normal(size=(count, 3)), moving * rng.normal(size=(count, 3)))
        turn = rng.choice(spins, (count, 1)) * units(rng, count)
        return a, flights(rng, placed(rng, away), way, turn)

    return moves


def thin(rng, count):
    """Plates 2 mm thick that fly 20 m a step: ten thousand widths."""
    away = 10.0 * units(rng, count)
    way = -2.0 * away + 0.3 * rng.normal(size=(count, 3))
    turn = rng.choice([0.0, 1.0, 6.0], (count, 1)) * units(rng, count)
    return Rest(placed(rng, np.zeros((count, 3)))), flights(rng, placed(rng, away), way, turn)


def grazing(rng, count):
    """Balls that pass each other at next to no distance, either side of touching."""
    side = units(rng, count)
    along = np.cross(side, units(rng, count))
    miss = 1.2 * rng.choice([0.93, 0.96, 0.985, 1.0, 1.0 + 1e-5], (count, 1))
    turn = rng.choice([0.0, 1.0, 5.0], (count, 1)) * units(rng, count)
    return resting(count), flights(rng, placed(rng, miss * side - 2.0 * along), 4.0 * along, turn)


def linked(rng, count):
    """Hoops through each other, free at first, that turn or are pulled."""
    start = np.tile(np.eye(4), (count, 1, 1))
    start[:, :3, :3] = Rotation.from_rotvec([np.pi / 2, 0.0, 0.0]).as_matrix()
    start[:, 0, 3] = 1.0
    way = rng.uniform(0.0, 1.0, (count, 1)) * rng.normal(size=(count, 3))
    return resting(count), flights(rng, start, way, rng.choice([0.0, 0.5, 3.0, 9.0], (count, 1)) * units(rng, count))


def touching(rng, count):
    """Blocks that lie on each other at t = 0, exactly or nearly, and slide, part or press."""
    start = np.tile(np.eye(4), (count, 1, 1))
    start[:, :2, 3] = rng.uniform(-0.5, 0.5, (count, 2))
    start[:, 2, 3] = 0.5 + rng.choice([0.0, 1e-12, 1e-7, 1e-4], count)
    way = rng.normal(size=(count, 3))
    way[:, 2] = rng.choice([0.0, 0.5, -0.5], count)
    return resting(count), flights(rng, start, way, rng.choice([0.0, 0.4], (count, 1)) * units(rng, count))


def screws(rng, count):
    """Screws about axes near the other body, by up to a full turn."""
    axis, point = units(rng, count), 0.8 * rng.normal(size=(count, 3))
    start = placed(rng, units(rng, count) * rng.uniform(1.5, 2.5, (count, 1)))
    # the point of the axis, in the body's frame: it slides along the axis while the body turns about it
    pivot = np.einsum("nji,nj->ni", start[:, :3, :3], point - start[:, :3, 3])
    turn = axis * rng.uniform(0.0, 2 * np.pi, (count, 1))
    return resting(count), Twist(start, axis * rng.normal(size=(count, 1)), turn, pivot)


def many_turns(rng, count):
    """Twists of one to six turns."""
    start = placed(rng, units(rng, count) * rng.uniform(1.5, 2.5, (count, 1)))
    turn = units(rng, count) * 2 * np.pi * rng.integers(1, 7, (count, 1))
    return resting(count), Twist(start, 0.7 * rng.normal(size=(count, 3)), turn, 0.5 * rng.normal(size=(count, 3)))


_SOLIDS = [("stone", "stone"), ("ring", "stone"), ("block", "cone"), ("cone", "ring"), ("block", "block")]
_TURNING = [("ring", "stone"), ("hoop", "plate"), ("block", "plate"), ("cone", "hoop")]
_POTS = [("pot", "needle"), ("pot", "cone"), ("pot", "pot")]

#: Family -> pairs of shapes, and what makes n motions of each.
CROWDS = {
    "solids": (_SOLIDS, thrown([0.0, 0.5, 2.0, 8.0])),
    "thin": ([("plate", "plate"), ("plate", "needle"), ("plate", "stone")], thin),
    "grazing": ([("ball", "ball")], grazing),
    "linked": ([("hoop", "hoop")], linked),
    "touching": ([("block", "block")], touching),
    "pots": (_POTS, thrown([0.0, 1.0, 4.0])),
    "screws": (_TURNING, screws),
    "turns": (_TURNING, many_turns),
}
