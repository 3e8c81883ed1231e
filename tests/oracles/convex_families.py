"""Families of pairs of convex bodies: random ones, and those where searches for a distance go wrong."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

import tangere as tg

__all__ = ["DEGENERATE", "KINDS", "PAIRS", "bodies", "poses", "sizes"]

KINDS = ("sphere", "capsule", "box", "cylinder", "cone", "hull")
PAIRS = [(a, b) for i, a in enumerate(KINDS) for b in KINDS[i:]]
DEGENERATE = ("parallel", "tilted", "touching", "concentric", "thin", "scales", "aligned_tips")


def _hull(shift: float = 0.0) -> tg.ConvexMesh:
    rng = np.random.default_rng(7)
    x = rng.normal(size=(24, 3))
    x = x / np.linalg.norm(x, axis=1)[:, None] * [0.5, 0.4, 0.6] + shift
    return tg.ConvexMesh(tg.Mesh(x, [[0, 1, 2]], name="hull"))


HULL = _hull()


def sizes(kind: str, count: int, rng: np.random.Generator, low: float = 0.2, high: float = 1.0) -> dict:
    """Sizes of n bodies of a kind, by the names of their arguments; hulls come in one size."""

    def some(*shape: int) -> np.ndarray:
        return np.exp(rng.uniform(np.log(low), np.log(high), (count, *shape)))

    if kind == "sphere":
        return {"radius": some()}
    if kind == "box":
        return {"half": some(3)}
    return {} if kind == "hull" else {"radius": some(), "height": 2.0 * some()}


def bodies(kind: str, **given: np.ndarray):
    """The bodies of a kind."""
    if kind == "hull":
        return HULL
    return {"sphere": tg.Sphere, "capsule": tg.Capsule, "box": tg.Box, "cylinder": tg.Cylinder, "cone": tg.Cone}[kind](
        **given
    )


def poses(count: int, rng: np.random.Generator, spread: float, rotations: np.ndarray | None = None) -> np.ndarray:
    """Random poses, or those with given rotations."""
    result = np.tile(np.eye(4), (count, 1, 1))
    result[:, :3, :3] = Rotation.random(count, rng=rng).as_matrix() if rotations is None else rotations
    result[:, :3, 3] = rng.normal(size=(count, 3)) * spread
    return result


def quarter_turns(count: int, rng: np.random.Generator) -> np.ndarray:
    """Rotations that take axes to axes, exactly."""
    group = np.round(Rotation.create_group("O").as_matrix())
    return group[rng.integers(0, len(group), count)]


def family(name: str, kind_a: str, kind_b: str, count: int, rng: np.random.Generator):
    """((bodies, poses) of a, of b) of a degenerate family; "touching" and "tilted" are still to be moved together."""
    own = [sizes(kind, count, rng) for kind in (kind_a, kind_b)]
    spread, turns = 1.6, [None, None]
    if name in ("parallel", "touching"):
        turns = [quarter_turns(count, rng) for _ in range(2)]
    if name == "tilted":
        turns = [quarter_turns(count, rng) for _ in range(2)]
        axis = rng.normal(size=(count, 3))
        angle = 10.0 ** rng.uniform(-12, -2, count)
        tilt = Rotation.from_rotvec(axis / np.linalg.norm(axis, axis=1)[:, None] * angle[:, None]).as_matrix()
        turns[1] = tilt @ turns[1]
    if name == "thin":
        for side, kind in zip(own, (kind_a, kind_b), strict=True):
            if kind == "box":
                side["half"][np.arange(count), rng.integers(0, 3, count)] = 1e-5
            elif kind in ("capsule", "cylinder", "cone"):
                side[rng.choice(["radius", "height"])][:] = 1e-5
    if name == "scales":
        factor = 10.0 ** rng.uniform(-6, 6, count), 10.0 ** rng.uniform(-1.5, 1.5, (2, count))
        if kind_a == kind_b == "hull":  # which come in one size
            factor = np.ones(count), np.ones((2, count))
        own = [
            {key: value * (factor[0] * each).reshape(-1, *[1] * (value.ndim - 1)) for key, value in side.items()}
            for side, each in zip(own, factor[1], strict=True)
        ]
        places = [poses(count, rng, 1.6), poses(count, rng, 1.6)]
        for place in places:
            place[:, :3, 3] *= (factor[0] * factor[1].max(axis=0))[:, None]
    else:
        places = [poses(count, rng, spread, turn) for turn in turns]
    if name == "parallel":  # centres on a lattice: faces, edges and axes in common planes
        for place in places:
            place[:, :3, 3] = np.round(place[:, :3, 3] * 2.0) / 2.0
    if name == "concentric":
        places[1][:, :3, 3] = places[0][:, :3, 3]
        half = rng.random(count) < 0.5
        places[1][half, :3, 3] += rng.normal(size=(half.sum(), 3)) * 1e-9
    if name == "aligned_tips":  # both on one axis, tips and caps facing
        turned = Rotation.random(count, rng=rng).as_matrix()
        for place in places:
            place[:, :3, :3] = turned
        places[1][:, :3, 3] = places[0][:, :3, 3] + turned[:, :, 2] * rng.uniform(-4, 4, count)[:, None]
    return [(bodies(kind, **side), place) for kind, side, place in zip((kind_a, kind_b), own, places, strict=True)]
