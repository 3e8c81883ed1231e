"""Random rigid motions of every kind, and scenes of two moving meshes, for the tests of bounds and engines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from bench.shapes.pot import pot as loose_pot
from tangere.motion import Rest, Rigid, Screw, Twist
from tangere.published.redon_screws import CosineScrew, TanScrew
from tangere.shape import generate
from tangere.shape.mesh import Mesh

__all__ = ["FAMILIES", "KINDS", "Scene", "at", "random_motion", "random_poses", "scene", "shape"]

KINDS = ["rest", "twist", "screw", "tan screw", "cosine screw"]


def at(position, rotation=None) -> np.ndarray:
    """A pose at a position, turned by a matrix."""
    pose = np.eye(4)
    pose[:3, 3] = position
    if rotation is not None:
        pose[:3, :3] = rotation
    return pose


def random_poses(rng, count: int, spread: float = 2.0) -> np.ndarray:
    """Poses with any orientation about the origin, (n, 4, 4)."""
    poses = np.tile(np.eye(4), (count, 1, 1))
    poses[:, :3, :3] = Rotation.random(count, random_state=rng.integers(2**31)).as_matrix()
    poses[:, :3, 3] = spread * rng.normal(size=(count, 3))
    return poses


def random_motion(kind: str, rng, count: int, spread: float = 2.0):
    """Motions of one kind, (n,): angles from next to nothing to half a turn, for twists up to several turns."""
    start = random_poses(rng, count, spread)
    if kind == "rest":
        return Rest(start)
    if kind == "twist":
        turns = rng.normal(size=(count, 3)) * 10.0 ** rng.uniform(-3, 1, (count, 1))
        return Twist(start, spread * rng.normal(size=(count, 3)), turns, rng.normal(size=(count, 3)))
    # Angles on both sides of where the axis is taken to be near.
    largest = 2.9 if kind == "tan screw" else np.pi
    rotvec = rng.normal(size=(count, 3))
    rotvec *= (10.0 ** rng.uniform(-6, 0, count) * largest / np.linalg.norm(rotvec, axis=1))[:, None]
    end = start.copy()
    end[:, :3, :3] = Rotation.from_rotvec(rotvec).as_matrix() @ start[:, :3, :3]
    end[:, :3, 3] += spread * rng.normal(size=(count, 3))
    return {"screw": Screw, "tan screw": TanScrew, "cosine screw": CosineScrew}[kind](start, end)


# -- scenes: two small meshes that move --------------------------------------------------------------------------------

#: The small shapes the scenes are made of.
SHAPES: dict[str, Mesh] = {}


def shape(name: str) -> Mesh:
    """One of the shapes, made once."""
    if not SHAPES:
        angle = np.linspace(0.0, 2 * np.pi, 12, endpoint=False)
        rim = np.stack([0.5 * np.cos(angle), 0.5 * np.sin(angle), np.zeros(12)], 1)
        around = [[i, (i + 1) % 12] for i in range(12)]
        faces = [[p, q, 12] for p, q in around] + [[q, p, 13] for p, q in around]
        SHAPES.update(
            ball=generate.icosphere(triangles=80, radius=0.6),
            ring=generate.torus(grid=(12, 6), radius=0.8, tube=0.2),
            hoop=generate.torus(grid=(12, 6), radius=1.0, tube=0.05),
            plate=generate.box((1.6, 1.2, 0.002)),
            block=generate.box((1.0, 0.8, 0.5)),
            cone=Mesh(np.vstack([rim, [[0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]]), np.array(faces), name="cone"),
            pot=loose_pot(150),
            needle=Mesh([[0, 0, 0], [1.5, 0, 0], [1.5, 1e-9, 0]], [[0, 1, 2]], name="needle"),
        )
    return SHAPES[name]


@dataclass(frozen=True)
class Scene:
    """Two shapes with one motion each."""

    family: str
    a: str
    b: str
    motion_a: Rigid
    motion_b: Rigid


def scene(family: str, rng) -> Scene:
    """A random scene of a family."""
    return FAMILIES[family](family, rng)


def unit(rng) -> np.ndarray:
    v = rng.normal(size=3)
    return v / np.linalg.norm(v)


def placed(rng, position, *, aligned: float = 0.3) -> np.ndarray:
    """A pose at `position`, sometimes along the axes, where degenerate cases live."""
    pose = np.eye(4)
    if rng.random() > aligned:
        pose[:3, :3] = Rotation.from_rotvec(2.0 * rng.normal(size=3)).as_matrix()
    pose[:3, 3] = position
    return pose


def flight(rng, start: np.ndarray, way: np.ndarray, turn: np.ndarray) -> Rigid:
    """From `start` by `way` while turning, as any kind of motion that can turn so far."""
    twist = Twist(start, way, turn)
    angle = np.linalg.norm(turn)
    kinds = ["twist"] + (["screw", "cosine"] if angle < np.pi else []) + (["tangent"] if angle < 2.5 else [])
    kind = rng.choice(kinds)
    if kind == "twist":
        return twist
    return {"screw": Screw, "cosine": CosineScrew, "tangent": TanScrew}[kind](start, twist.pose(1.0))


def _thrown(family: str, rng, pairs, spins=(0.0, 0.5, 2.0, 8.0)) -> Scene:
    """One body thrown at another, which may move itself."""
    a, b = pairs[rng.integers(len(pairs))]
    away = unit(rng) * rng.uniform(2.0, 4.0)
    target = 0.6 * rng.normal(size=3)
    moving = rng.random() < 0.4
    motion_a = flight(rng, placed(rng, np.zeros(3)), 0.4 * rng.normal(size=3), rng.normal(size=3)) if moving else Rest()
    way = (target - away) * rng.uniform(0.5, 1.5)
    return Scene(family, a, b, motion_a, flight(rng, placed(rng, away), way, rng.choice(spins) * unit(rng)))


def _solids(family, rng):
    return _thrown(
        family, rng, [("ball", "ball"), ("ring", "ball"), ("block", "cone"), ("cone", "ring"), ("block", "block")]
    )


def _thin(family, rng):
    """Plates 2 mm thick that fly 20 m a step: ten thousand widths."""
    away = unit(rng) * 10.0
    start = placed(rng, away)
    way = -2.0 * away + 0.3 * rng.normal(size=3)
    return Scene(
        family,
        "plate",
        rng.choice(["plate", "needle", "ball"]),
        Rest(placed(rng, np.zeros(3))),
        flight(rng, start, way, rng.choice([0.0, 1.0, 6.0]) * unit(rng)),
    )


def _grazing(family, rng):
    """Balls that pass each other at next to no distance, either side of touching."""
    side = unit(rng)
    along = np.cross(side, unit(rng))
    miss = 2 * 0.6 * rng.choice([0.93, 0.96, 0.985, 1.0, 1.0 + 1e-5])
    start = placed(rng, miss * side - 2.0 * along)
    return Scene(
        family, "ball", "ball", Rest(), flight(rng, start, 4.0 * along, rng.choice([0.0, 1.0, 5.0]) * unit(rng))
    )


def _linked(family, rng):
    """Hoops through each other, free at first, that turn or are pulled."""
    start = np.eye(4)
    start[:3, :3] = Rotation.from_rotvec([np.pi / 2, 0.0, 0.0]).as_matrix()
    start[:3, 3] = [1.0, 0.0, 0.0]
    return Scene(
        family,
        "hoop",
        "hoop",
        Rest(),
        flight(rng, start, rng.uniform(0.0, 1.0) * rng.normal(size=3), rng.choice([0.0, 0.5, 3.0, 9.0]) * unit(rng)),
    )


def _touching(family, rng):
    """Blocks that lie on each other at t = 0, exactly or nearly, and slide, part or press."""
    start = np.eye(4)
    gap = rng.choice([0.0, 1e-12, 1e-7, 1e-4])
    start[:3, 3] = [rng.uniform(-0.5, 0.5), rng.uniform(-0.5, 0.5), 0.5 + gap]
    way = np.array([rng.normal(), rng.normal(), rng.choice([0.0, 0.5, -0.5])])
    return Scene(family, "block", "block", Rest(), flight(rng, start, way, rng.choice([0.0, 0.4]) * unit(rng)))


def _pots(family, rng):
    """Something small in and through an open pot of no thickness."""
    return _thrown(family, rng, [("pot", "needle"), ("pot", "cone"), ("pot", "pot")], spins=(0.0, 1.0, 4.0))


def _full_turns(family, rng):
    """Chained half-turn screws are Path's; here screws of nearly half a turn, and twists of many turns."""
    a, b = [("ring", "ball"), ("hoop", "plate"), ("block", "plate"), ("cone", "hoop")][rng.integers(4)]
    away = unit(rng) * rng.uniform(1.5, 2.5)
    start = placed(rng, away)
    if rng.random() < 0.5:
        end = placed(rng, unit(rng) * rng.uniform(1.5, 2.5))
        end[:3, :3] = Rotation.from_rotvec(unit(rng) * (np.pi - 1e-6)).as_matrix() @ start[:3, :3]
        return Scene(family, a, b, Rest(), Screw(start, end))
    turns = unit(rng) * 2 * np.pi * rng.integers(1, 7)
    return Scene(family, a, b, Rest(), Twist(start, 0.7 * rng.normal(size=3), turns, 0.5 * rng.normal(size=3)))


FAMILIES = {
    "solids": _solids,
    "thin": _thin,
    "grazing": _grazing,
    "linked": _linked,
    "touching": _touching,
    "pots": _pots,
    "turns": _full_turns,
}
