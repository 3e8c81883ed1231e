"""Poses, motions, meshes and queries that several sections ask about, the same on every machine."""

from __future__ import annotations

from typing import Any

import numpy as np

import tangere as tg
from tools import words


def poses(rng: np.random.Generator, count: int, spread: float = 1.0, turn: float = 1.0) -> np.ndarray:
    """(count, 4, 4) random poses; sums, products and roots alone make them, so that every machine has the same."""
    q = np.concatenate([np.ones((count, 1)), turn * rng.uniform(-1, 1, (count, 3))], axis=1)
    w, x, y, z = (q / np.sqrt((q * q).sum(axis=1, keepdims=True))).T
    found = np.tile(np.eye(4), (count, 1, 1))
    found[:, :3, :3] = np.moveaxis(
        np.array(
            [
                [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
            ]
        ),
        2,
        0,
    )
    found[:, :3, 3] = spread * rng.uniform(-1, 1, (count, 3))
    return found


def place(x: float = 0.0, y: float = 0.0, z: float = 0.0) -> np.ndarray:
    """A pose that shifts."""
    pose = np.eye(4)
    pose[:3, 3] = x, y, z
    return pose


def motions(kind: str, rng: np.random.Generator, count: int, away: float = 2.5) -> Any:
    """Motions from about a distance towards the origin, and past it."""
    turn = 0.4 if kind == "tan" else 1.0  # which goes round by less than 3 rad
    begin = poses(rng, count, 0.3, turn)
    begin[:, :3, 3] += away * np.sign(rng.uniform(-1, 1, (count, 3))) * rng.uniform(0.6, 1, (count, 3))
    aim = rng.uniform(-1, 1, (count, 3)) * np.where(np.arange(count) % 3, 0.6, 3.0)[:, None]  # each third passes by
    if kind == "rest":
        return tg.Rest(begin)
    if kind == "twist":
        return tg.Twist(begin, 1.2 * (aim - begin[:, :3, 3]), rng.uniform(-3, 3, (count, 3)))
    end = poses(rng, count, 0.0, turn)
    end[:, :3, 3] = aim
    make = {"screw": tg.Screw, "tan": words.TanScrew, "cosine": words.CosineScrew}[kind]
    return make(begin, end)


def shapes() -> dict[str, Any]:
    """Small meshes of many kinds."""
    make = words.generate
    return {
        "torus": make.torus(grid=(24, 12), bumps=0.2),
        "ball": make.icosphere(2, radius=0.8),
        "box": make.box((1.0, 0.7, 0.4)),
        "gear": make.gear(teeth=9),
        "comb": make.comb(4),
        "bumps": make.bumpy_sphere(320, seed=3),
    }


SIDES = {
    "vertex_face": (1, 3),
    "edge_edge": (2, 2),
    "vertex_edge": (1, 2),
    "vertex_vertex": (1, 1),
    "triangle_triangle": (3, 3),
}


def _dyadic(rng: np.random.Generator, *shape: int, bits: int = 3, reach: int = 2) -> np.ndarray:
    """Short binary fractions: sums and products of a few are exact."""
    return rng.integers(-reach << bits, (reach << bits) + 1, shape) / float(1 << bits)


def _weights(rng: np.random.Generator, count: int, corners: int, border: bool) -> np.ndarray:
    """(count, corners) weights in eighths that sum up to 1; on the border of the feature some are 0."""
    cuts = np.sort(rng.integers(0 if border else 1, 9 if border else 8, (count, corners - 1)), axis=1)
    edges = np.concatenate([np.zeros((count, 1)), cuts, np.full((count, 1), 8)], axis=1)
    return np.diff(edges, axis=1) / 8.0


def _touching(rng: np.random.Generator, count: int, sides: tuple[int, int], border: bool) -> np.ndarray:
    """(count, points, 3) two features that have a point in common, exactly."""
    a, b = (_dyadic(rng, count, corners, 3) for corners in sides)
    meet = [np.einsum("nc,ncx->nx", _weights(rng, count, s, border), p) for s, p in zip(sides, (a, b), strict=True)]
    return np.concatenate([a + (meet[1] - meet[0])[:, None], b], axis=1)


def queries(kind: str, rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Families of `count` queries each, one after the other: random, planted, grazing and degenerate motions."""
    sides = SIDES[kind]
    points, first = sum(sides), sides[0]
    families = []

    def family(x0: np.ndarray, x1: np.ndarray) -> None:
        families.append((x0, x1))

    def planted(touch: np.ndarray, velocity: np.ndarray) -> None:
        when = rng.integers(0, 17, (count, 1, 1)) / 16.0
        family(touch - when * velocity, touch + (1.0 - when) * velocity)

    family(*rng.random((2, count, points, 3)))
    start = rng.uniform(-1, 1, (count, points, 3))
    start[:, :first, 2] += 1.5
    end = start + rng.uniform(-0.3, 0.3, start.shape)
    end[:, :first, 2] -= rng.uniform(0.5, 3.0, (count, 1))
    family(start, end)  # towards each other
    family(start, start + 0.1 * (end - start))  # hardly moving
    family(np.round(4 * start) / 4, np.round(4 * end) / 4)  # many coincidences
    family(_dyadic(rng, count, points, 3, bits=0, reach=1), _dyadic(rng, count, points, 3, bits=0, reach=1))
    for border in (False, True):
        planted(_touching(rng, count, sides, border), _dyadic(rng, count, points, 3))
    rigid = np.concatenate([np.repeat(_dyadic(rng, count, 1, 3), corners, axis=1) for corners in sides], axis=1)
    planted(_touching(rng, count, sides, False), rigid)
    touch = _touching(rng, count, sides, True)
    along = (touch[:, -1:] - touch[:, first : first + 1]) * _dyadic(rng, count, 1, 1)
    planted(touch, np.concatenate([np.repeat(along, first, axis=1), np.zeros((count, sides[1], 3))], axis=1))  # grazing
    flat = _touching(rng, count, sides, False) * [1, 1, 0]
    planted(flat, _dyadic(rng, count, points, 3) * [1, 1, 0])  # in one plane
    collapsed = _touching(rng, count, sides, True)
    collapsed[:, -1] = collapsed[:, first]
    planted(collapsed, _dyadic(rng, count, points, 3))
    planted(_touching(rng, count, sides, False) + 2.0**20, _dyadic(rng, count, points, 3))  # far from the origin
    family(1e-9 * start, 1e-9 * end)
    family(start, start)  # at rest
    jittered = _touching(rng, count, sides, True)
    jittered += rng.uniform(-1e-9, 1e-9, jittered.shape)
    planted(jittered, _dyadic(rng, count, points, 3))
    x0, x1 = (np.ascontiguousarray(np.concatenate(both)) for both in zip(*families, strict=True))
    return x0, x1
