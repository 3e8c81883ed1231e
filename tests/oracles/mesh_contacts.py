"""What touches in small moving meshes, by brute force: every pair of features, decided in integer arithmetic.

Nothing here uses trees, certificates or kernels of the mesh pipeline. Edges are found from the faces anew, pairs are
all pairs that share no vertex, plain NumPy drops those that are clearly apart, and `exact.decide` (itself tested
against algebraic numbers) has the last word. Things are meshes or moving meshes; `b=None` asks about a with itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tangere.query.contacts import Contacts, Kind
from tangere.query.first_contact.primitives.narrow_phase.exact import ExactContact, decide
from tangere.shape import Moving
from tangere.shape.mesh import Mesh

__all__ = [
    "FeaturePairs",
    "corners_at",
    "distances",
    "edge_pierces_face",
    "edges_of",
    "ends",
    "feature_pairs",
    "first_time",
    "moving_boxes_meet",
    "names",
    "overlaps",
    "sizes",
    "touching",
    "triangles_intersect",
]

Thing = Mesh | Moving
#: Kind, side of the vertex, feature of a, feature of b.
Name = tuple[int, int, int, int]

#: Coefficients of a coplanarity cubic this far from zero, relative to the query's size, are no rounding error.
CLEARLY = 1e-9


@dataclass(frozen=True)
class FeaturePairs:
    """All pairs of one kind that share no vertex."""

    kind: Kind
    vertex_on: int  #: 1 where the first feature belongs to b
    numbers: np.ndarray  #: (n, 2) first feature, second feature
    corners: np.ndarray  #: (n, 4) their vertices, counted through all bodies

    def rows(self, choice: np.ndarray) -> FeaturePairs:
        return FeaturePairs(self.kind, self.vertex_on, self.numbers[choice], self.corners[choice])

    @property
    def names(self) -> list[Name]:
        """How a contact of each pair is told in `Contacts`."""
        first, second = (1, 0) if self.vertex_on else (0, 1)
        return [(int(self.kind), self.vertex_on, int(pair[first]), int(pair[second])) for pair in self.numbers]


def touching(a: Thing, b: Thing | None = None) -> dict[Name, ExactContact]:
    """Every pair that touches within the step, with its exact first time."""
    start, end = ends(a, b)
    found = {}
    for pairs in feature_pairs(a, b):
        near = pairs.rows(_maybe_touching(pairs, start, end))
        points = np.concatenate([start[near.corners], end[near.corners]], axis=1)
        answers = (decide(near.kind, query) for query in points)
        found |= {name: answer for name, answer in zip(near.names, answers, strict=True) if answer.hit}
    return found


def first_time(contacts: dict[Name, ExactContact]) -> tuple[float, float]:
    """Doubles that enclose the exact first time; inf when there is none."""
    return min(((c.time_below, c.time_above) for c in contacts.values()), default=(np.inf, np.inf))


def overlaps(a: Thing, b: Thing | None = None) -> set[tuple[int, int, int]]:
    """(side of the edge, feature of a, feature of b) of every edge that meets a face at t = 0, no vertex shared."""
    start, _ = ends(a, b)
    bodies = _bodies(a, b)
    found = set()
    for side, (of_edge, of_face) in enumerate([(0, 0)] if b is None else [(0, 1), (1, 0)]):
        edges = edges_of(bodies[of_edge][0]) + bodies[of_edge][1]
        faces = bodies[of_face][0].faces + bodies[of_face][1]
        rows = _apart(edges, faces, _boxes_meet(start[edges], start[faces]))
        edge, face = start[edges[rows[:, 0]]], start[faces[rows[:, 1]]]
        for k in np.flatnonzero(~_clearly_apart(edge, face)):
            if edge_pierces_face(edge[k], face[k]):
                i, j = map(int, rows[k])
                found.add((side, j, i) if side else (side, i, j))
    return found


def names(contacts: Contacts) -> list[Name]:
    """The pairs of a contact record."""
    columns = (contacts.kind, contacts.vertex_on, contacts.feature_a, contacts.feature_b)
    return [(int(k), int(on), int(p), int(q)) for k, on, p, q in zip(*columns, strict=True)]


def corners_at(a: Thing, b: Thing | None, contacts: Contacts, time: np.ndarray | None = None) -> np.ndarray:
    """(n, 4, 3): where the vertices of each contact are at its time (or at the times given)."""
    start, end = ends(a, b)
    bodies = _bodies(a, b)
    edges = [edges_of(mesh) + base for mesh, base in bodies]
    faces = [mesh.faces + base for mesh, base in bodies]
    rows = []
    for kind, on, feature_a, feature_b in names(contacts):
        if kind == Kind.EDGE_EDGE:
            rows.append([*edges[0][feature_a], *edges[-1][feature_b]])
        elif on:
            rows.append([feature_b + bodies[-1][1], *faces[0][feature_a]])
        else:
            rows.append([feature_a, *faces[-1][feature_b]])
    corners = np.array(rows, dtype=int).reshape(-1, 4)
    t = (contacts.time if time is None else time)[:, None, None]
    return start[corners] * (1.0 - t) + end[corners] * t


def feature_pairs(a: Thing, b: Thing | None = None) -> list[FeaturePairs]:
    """All vertex-face and edge-edge pairs that share no vertex, each once."""
    bodies = _bodies(a, b)
    (mesh_a, _), (mesh_b, base_b) = bodies[0], bodies[-1]
    edges_a, edges_b = edges_of(mesh_a), edges_of(mesh_b) + base_b
    edge_pairs = _apart(edges_a, edges_b)
    if b is None:
        edge_pairs = edge_pairs[edge_pairs[:, 0] < edge_pairs[:, 1]]
    corners = np.concatenate([edges_a[edge_pairs[:, 0]], edges_b[edge_pairs[:, 1]]], axis=1)
    pairs = [FeaturePairs(Kind.EDGE_EDGE, 0, edge_pairs, corners)]
    sides = [(0, bodies[0], bodies[-1])] + ([(1, bodies[1], bodies[0])] if b is not None else [])
    for vertex_on, (of_vertex, vertex_base), (of_face, face_base) in sides:
        vertices = np.unique(of_vertex.faces)[:, None] + vertex_base
        faces = of_face.faces + face_base
        found = _apart(vertices, faces)
        corners = np.concatenate([vertices[found[:, 0]], faces[found[:, 1]]], axis=1)
        numbers = np.stack([corners[:, 0] - vertex_base, found[:, 1]], axis=1)
        pairs.append(FeaturePairs(Kind.VERTEX_FACE, vertex_on, numbers, corners))
    return pairs


def moving_boxes_meet(pairs: FeaturePairs, start: np.ndarray, end: np.ndarray, margin: float = 0.0) -> np.ndarray:
    """(n,) whether no axis separates the boxes of both features, each grown by `margin`, at both ends alike."""
    points = np.stack([start[pairs.corners], end[pairs.corners]])
    split = 1 if pairs.kind == Kind.VERTEX_FACE else 2
    one, other = points[:, :, :split], points[:, :, split:]
    above, below = other.min(2) - one.max(2), one.min(2) - other.max(2)
    return (np.maximum(above.min(0), below.min(0)) <= 2.0 * margin).all(axis=1)


def ends(a: Thing, b: Thing | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Positions of all vertices of a, then of b, at t = 0 and at t = 1."""
    things = [a] if b is None else [a, b]
    start = [thing.vertices if isinstance(thing, Mesh) else thing.shape.vertices for thing in things]
    end = [thing.vertices if isinstance(thing, Mesh) else np.asarray(thing.motion.end) for thing in things]
    return np.concatenate(start), np.concatenate(end)


def edges_of(mesh: Mesh) -> np.ndarray:
    """Each side of a triangle once, smaller vertex first, in lexicographic order."""
    sides = np.concatenate([mesh.faces[:, [0, 1]], mesh.faces[:, [1, 2]], mesh.faces[:, [2, 0]]])
    return np.unique(np.sort(sides, axis=1), axis=0)


def distances(kind: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """(n,) distance between the features of contacts of these kinds, corners (n, 4, 3)."""
    return np.array(
        [
            _point_to_triangle(*points) if k == Kind.VERTEX_FACE else _between_segments(*points)
            for k, points in zip(kind, corners, strict=True)
        ]
    )


def sizes(corners: np.ndarray) -> np.ndarray:
    """(n,) largest difference of coordinates among four points (n, 4, 3)."""
    return (corners.max(axis=1) - corners.min(axis=1)).max(axis=1)


def _bodies(a: Thing, b: Thing | None) -> list[tuple[Mesh, int]]:
    meshes = [thing if isinstance(thing, Mesh) else thing.shape for thing in ([a] if b is None else [a, b])]
    return [(mesh, 0 if k == 0 else len(meshes[0].vertices)) for k, mesh in enumerate(meshes)]


def _apart(first: np.ndarray, second: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
    """(n, 2) rows (i, j) of two tables of vertices, of all or of those given, that have none in common."""
    rows = np.indices((len(first), len(second))).reshape(2, -1).T if rows is None else rows
    shared = (first[rows[:, 0], :, None] == second[rows[:, 1], None, :]).any(axis=(1, 2))
    return rows[~shared]


def _boxes_meet(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """(n, 2) rows (i, j) of features (n, k, 3) and (m, l, 3) whose boxes meet."""
    meet = np.ones((len(first), len(second)), dtype=bool)
    for axis in range(3):
        one, other = first[:, None, :, axis], second[None, :, :, axis]
        meet &= (one.min(axis=2) <= other.max(axis=2)) & (other.min(axis=2) <= one.max(axis=2))
    return np.argwhere(meet)


def _clearly_apart(edge: np.ndarray, face: np.ndarray) -> np.ndarray:
    """(n,) whether edges (n, 2, 3) keep to one side of the plane of their face (n, 3, 3), or their line misses it."""
    corners = face - edge[:, :1]
    along = edge[:, 1] - edge[:, 0]
    clear = CLEARLY * np.maximum(np.abs(corners).max(axis=(1, 2)), np.abs(along).max(axis=1)) ** 3
    first = np.einsum("ni,ni->n", np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), corners[:, 0])
    rounds = np.einsum("ni,nki->nk", along, np.cross(corners, np.roll(corners, -1, axis=1)))
    last = first - rounds.sum(axis=1)
    one_side = (np.minimum(first, last) > clear) | (np.maximum(first, last) < -clear)
    return one_side | ((rounds.min(axis=1) < -clear) & (rounds.max(axis=1) > clear))


def _maybe_touching(pairs: FeaturePairs, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Whether boxes meet and the coplanarity cubic has no clear sign; far from certain, but never wrong to keep."""
    x, y = start[pairs.corners], end[pairs.corners]
    a, b = x[:, 1:] - x[:, :1], y[:, 1:] - y[:, :1]

    def volume(p, q, r):
        return np.einsum("ni,ni->n", np.cross(p[:, 0], q[:, 1]), r[:, 2])

    coefficients = np.stack(
        [
            volume(a, a, a),
            (volume(b, a, a) + volume(a, b, a) + volume(a, a, b)) / 3.0,
            (volume(b, b, a) + volume(b, a, b) + volume(a, b, b)) / 3.0,
            volume(b, b, b),
        ]
    )
    clear = CLEARLY * np.maximum(np.abs(a), np.abs(b)).max(axis=(1, 2), initial=0.0) ** 3
    apart = (coefficients > clear).all(axis=0) | (coefficients < -clear).all(axis=0)
    return moving_boxes_meet(pairs, start, end) & ~apart


def _point_to_segment(p, a, b) -> float:
    along = b - a
    squared = along @ along
    part = min(max((p - a) @ along / squared, 0.0), 1.0) if squared > 0.0 else 0.0
    return float(np.linalg.norm(p - a - part * along))


def _point_to_triangle(p, a, b, c) -> float:
    nearest = min(_point_to_segment(p, a, b), _point_to_segment(p, b, c), _point_to_segment(p, c, a))
    matrix = np.stack([b - a, c - a], axis=1)
    weights, _, rank, _ = np.linalg.lstsq(matrix, p - a, rcond=1e-12)
    if rank == 2 and weights.min() >= 0.0 and weights.sum() <= 1.0:
        nearest = min(nearest, float(np.linalg.norm(p - a - matrix @ weights)))
    return nearest


def _between_segments(a, b, c, d) -> float:
    nearest = min(
        *(_point_to_segment(p, c, d) for p in (a, b)),
        *(_point_to_segment(p, a, b) for p in (c, d)),
    )
    matrix = np.stack([b - a, c - d], axis=1)
    parts, _, rank, _ = np.linalg.lstsq(matrix, c - a, rcond=1e-12)
    if rank == 2 and parts.min() >= 0.0 and parts.max() <= 1.0:
        nearest = min(nearest, float(np.linalg.norm(c - a - matrix @ parts)))
    return nearest


def edge_pierces_face(edge: np.ndarray, face: np.ndarray) -> bool:
    """Whether a closed segment (2, 3) and a closed triangle (3, 3), either possibly degenerate, have a common point.

    A vertex that runs along the segment while the face rests meets it exactly then.
    """
    edge, face = np.asarray(edge, dtype=np.float64), np.asarray(face, dtype=np.float64)
    return decide(Kind.VERTEX_FACE, np.concatenate([edge[:1], face, edge[1:], face])).hit


def triangles_intersect(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two closed triangles (3, 3), possibly degenerate, have a common point.

    Then an edge of one meets the other, also when one lies within the other or is collapsed to its edges.
    """
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    return any(edge_pierces_face(one[[i, i - 1]], other) for one, other in ((a, b), (b, a)) for i in range(3))
