"""Every vertex-face and edge-edge pair of meshes nearer than a distance, by brute force in NumPy.

Distances come from `oracles.distances`, which shares no code with the library. Pairs within `GUARD` of the distance,
relative to the scene, may fall on either side of it: rounding decides, and tests leave them out. And scenes to try.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oracles.distances import feature_distance
from oracles.families.moving_meshes import grid, soup, tetrahedron
from tangere.query.contacts import Contacts, Kind
from tangere.shape import generate
from tangere.shape.mesh import Mesh

__all__ = ["GUARD", "SCENES", "assert_same_contacts", "crossing_plates", "names", "near_pairs", "reach"]

GUARD = 1e-12

Name = tuple[int, int, int, int, int]  #: kind, body and number of the first feature, body and number of the second


def near_pairs(
    meshes: Sequence[Mesh], distance: float, *, within: bool = True, between: bool = True
) -> dict[Name, float]:
    """The pairs below a distance, with their distances: the vertex, or the edge of the earlier mesh, first."""
    found: dict[Name, float] = {}
    for k, one in enumerate(meshes):
        for m, other in enumerate(meshes):
            if not (within if k == m else between):
                continue
            used = np.unique(one.faces)
            v, f = (x.ravel() for x in np.meshgrid(used, np.arange(len(other.faces)), indexing="ij"))
            apart = np.ones(len(v), bool) if k != m else ~(other.faces[f] == v[:, None]).any(axis=1)
            v, f = v[apart], f[apart]
            points = np.concatenate([one.vertices[v][:, None], other.vertices[other.faces[f]]], axis=1)
            _add(found, Kind.VERTEX_FACE, k, v, m, f, points, distance)
            if k > m:
                continue
            e, g = (
                x.ravel() for x in np.meshgrid(np.arange(len(one.edges)), np.arange(len(other.edges)), indexing="ij")
            )
            if k == m:
                e, g = e[e < g], g[e < g]
                apart = ~(one.edges[e][:, :, None] == other.edges[g][:, None, :]).any(axis=(1, 2))
                e, g = e[apart], g[apart]
            points = np.concatenate([one.vertices[one.edges[e]], other.vertices[other.edges[g]]], axis=1)
            _add(found, Kind.EDGE_EDGE, k, e, m, g, points, distance)
    return found


def names(contacts: Contacts) -> list[Name]:
    """The same names, of contacts."""
    swap = contacts.vertex_on == 1
    first = np.where(swap[:, None], *_columns(contacts)[::-1])
    second = np.where(swap[:, None], *_columns(contacts))
    return [(int(k), *map(int, a), *map(int, b)) for k, a, b in zip(contacts.kind, first, second, strict=True)]


def assert_same_contacts(contacts: Contacts, meshes: Sequence[Mesh], distance: float, **which: bool) -> None:
    """Nothing lost, nothing extra, nothing twice, every gap right; pairs within the guard may be there or not."""
    scale = max(float(np.abs(mesh.vertices).max()) for mesh in meshes) + distance
    expected = near_pairs(meshes, distance + GUARD * scale, **which)
    sure = {name for name, d in expected.items() if d < distance - GUARD * scale}
    found = names(contacts)
    assert len(found) == len(set(found)), "a contact came twice"
    assert not sure - set(found), f"{len(sure - set(found))} of {len(sure)} contacts are lost"
    assert not set(found) - set(expected), "there are contacts that are too far apart"
    gaps = np.array([expected[name] for name in found])
    assert np.abs(contacts.gap - gaps).max(initial=0.0) <= GUARD * scale


def _columns(contacts: Contacts) -> tuple[np.ndarray, np.ndarray]:
    a = np.stack([contacts.body_a, contacts.feature_a], axis=1)
    b = np.stack([contacts.body_b, contacts.feature_b], axis=1)
    return a, b


def _add(found: dict[Name, float], kind: Kind, k: int, one, m: int, other, points: np.ndarray, distance: float) -> None:
    apart = feature_distance(kind, points)
    near = np.flatnonzero(apart < distance)
    for i in near:
        found[int(kind), k, int(one[i]), m, int(other[i])] = float(apart[i])


def crossing_plates(degrees: float, cells: int = 8) -> Mesh:
    """Two sheets of one mesh, edges 0.5, that cross along their middle at an angle."""
    sheet = grid(cells + 1, cells + 1)
    flat = sheet.vertices * 0.5 - 0.25 * cells * np.array([1.0, 1.0, 0.0])
    angle = np.radians(degrees)
    x, y, _ = flat.T
    tilted = np.stack([x * np.cos(angle), y, x * np.sin(angle)], axis=1) + [0.01, 0.013, 0.0]
    return Mesh.join([sheet.replace(vertices=flat), sheet.replace(vertices=tilted)], name="plates")


def scenes() -> dict[str, list[Mesh]]:
    rng = np.random.default_rng(5)
    sizes = 10.0 ** rng.uniform(-2.0, 0.0, (60, 1, 1))
    mixed = soup(rng.normal(size=(60, 1, 3)) * 0.7 + sizes * rng.normal(size=(60, 3, 3)))
    knot = generate.trefoil_knot(240)
    torus = generate.torus(160)
    moved = np.eye(4)
    moved[:3, 3] = torus.extent * np.array([0.2, 0.1, 0.15])
    return {
        "plates 2": [crossing_plates(2.0, 5)],
        "plates 20": [crossing_plates(20.0, 5)],
        "mixed sizes": [mixed],
        "knot": [knot],
        "tori": [torus, torus.at(moved)],
        "three bodies": [tetrahedron(), grid(4, 4), soup(rng.normal(size=(8, 3, 3)))],
        "one point": [soup(np.zeros((5, 3, 3)))],
        "one triangle": [soup(rng.normal(size=(1, 3, 3)))],
    }


SCENES = scenes()


def reach(meshes: list[Mesh]) -> float:
    """A distance that makes contacts: some part of the edges."""
    lengths = [np.linalg.norm(m.vertices[m.edges[:, 0]] - m.vertices[m.edges[:, 1]], axis=1).mean() for m in meshes]
    return 0.9 * float(np.mean(lengths)) + 1e-3
