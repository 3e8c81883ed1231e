"""Constraints of two posed meshes by brute force in NumPy: all vertices with all faces, all edges with all edges.

Nothing of the library is used but the vertices and faces of the meshes. Everything is placed in the world first.
`literal_contacts` takes the nearest points of each vertex and face, and of each two edges, finds out on which vertex,
edge or flat place each of them lies, and asks their normal cones for the direction: what must be listed, up to pairs
of features that share their points. `admissible_contacts` are those that may be listed: within both features up to a
hair, in both cones up to a hair.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

__all__ = ["Surface", "admissible_contacts", "assert_lists_constraints", "literal_contacts", "mesh_distance"]

RIM = 1e-9


@dataclass
class Surface:
    """A mesh in the world, with the features that can touch."""

    vertices: np.ndarray
    faces: np.ndarray
    edges: list[tuple[int, int]] = field(default_factory=list)  #: those that are not within a flat place
    ring: dict[int, np.ndarray] = field(default_factory=dict)  #: unit vectors along all edges of a vertex
    sides: dict[tuple[int, int], np.ndarray] = field(default_factory=dict)  #: unit vectors into the faces of an edge

    @staticmethod
    def of(mesh, pose: np.ndarray) -> Surface:
        points = mesh.vertices @ pose[:3, :3].T + pose[:3, 3]
        surface = Surface(points, np.asarray(mesh.faces))
        across = defaultdict(list)
        neighbours = defaultdict(set)
        for face in surface.faces.tolist():
            for k in range(3):
                p, q, r = face[k], face[(k + 1) % 3], face[(k + 2) % 3]
                if p == q:
                    continue
                neighbours[p].add(q)
                neighbours[q].add(p)
                across[min(p, q), max(p, q)].append(surface.inward(p, q, r))
        for edge, into in across.items():
            known = [t for t in into if t is not None]
            surface.sides[edge] = np.array(known).reshape(-1, 3)
            flat = len(into) == 2 and len(known) == 2
            if flat:
                bend = np.linalg.norm(np.cross(known[0], known[1]))
                flat = np.dot(known[0], known[1]) < 0 and bend < 1e-7
            if not flat:
                surface.edges.append(edge)
        for vertex, others in neighbours.items():
            ways = [points[q] - points[vertex] for q in sorted(others)]
            ways = [w / np.linalg.norm(w) for w in ways if np.linalg.norm(w) > 0]
            surface.ring[vertex] = np.array(ways).reshape(-1, 3)
        return surface

    def inward(self, p: int, q: int, r: int) -> np.ndarray | None:
        """From the edge pq across it to r; None where the face is a line."""
        along, other = self.vertices[q] - self.vertices[p], self.vertices[r] - self.vertices[p]
        longest = max(np.linalg.norm(along), np.linalg.norm(other), np.linalg.norm(other - along))
        if np.linalg.norm(np.cross(along, other)) <= 1e-6 * longest**2 or not np.any(along):
            return None
        way = other - along * (other @ along) / (along @ along)
        return way / np.linalg.norm(way)

    @property
    def corners(self) -> list[int]:
        """Vertices that are not within a flat place."""
        used = {v for edge in self.edges for v in edge}
        lonely = {v for v, ring in self.ring.items() if not len(ring)}
        lonely |= set(self.faces.ravel().tolist()) - set(self.ring)
        return sorted(used | lonely)

    def rise_at_vertex(self, vertex: int, n: np.ndarray) -> float:
        ring = self.ring.get(vertex, np.zeros((0, 3)))
        return float((ring @ n).min(initial=1.0))

    def rise_at_edge(self, edge: tuple[int, int], n: np.ndarray) -> float:
        return float((self.sides[edge] @ n).min(initial=1.0))

    def plane(self, face: int) -> np.ndarray | None:
        """Unit normal of a face that has a plane."""
        p, q, r = self.faces[face]
        if self.inward(p, q, r) is None:
            return None
        n = np.cross(self.vertices[q] - self.vertices[p], self.vertices[r] - self.vertices[p])
        return n / np.linalg.norm(n)

    def place(self, face: int, weights: np.ndarray):
        """("vertex", v), ("edge", e) or ("face", f): what a point of a face is on; flat sides are the face."""
        on = [k for k in range(3) if weights[k] > RIM]
        corners = self.faces[face]
        if len(on) == 1:
            v = int(corners[on[0]])
            return ("vertex", v) if v in self._corner_set else ("face", face)
        if len(on) == 2:
            e = tuple(sorted((int(corners[on[0]]), int(corners[on[1]]))))
            return ("edge", e) if e in self._edge_set else ("face", face)
        return ("face", face)

    @property
    def _corner_set(self):
        if "_corners" not in self.__dict__:
            self.__dict__["_corners"] = set(self.corners)
        return self.__dict__["_corners"]

    @property
    def _edge_set(self):
        if "_edges" not in self.__dict__:
            self.__dict__["_edges"] = set(self.edges)
        return self.__dict__["_edges"]

    def rise(self, place, n: np.ndarray) -> float:
        """How the surface rises along n next to a place; a face must be square to n."""
        kind, number = place
        if kind == "vertex":
            return self.rise_at_vertex(number, n)
        if kind == "edge":
            return self.rise_at_edge(number, n)
        normal = self.plane(number)
        return 1.0 if normal is not None and abs(normal @ n) > 1 - 1e-12 else -1.0


def _nearest_on_segments(p, a, b):
    """Parameters of the points of segments (m, 3), (m, 3) nearest to points p (n, 3): (n, m)."""
    d = b - a
    dd = np.einsum("mi,mi->m", d, d)
    u = np.einsum("nmi,mi->nm", p[:, None] - a[None], d) / np.where(dd > 0, dd, 1.0)
    return np.clip(u, 0.0, 1.0)


def nearest_on_faces(p, a, b, c):
    """Weights (n, m, 3) of the points of faces nearest to points, and their distances (n, m)."""
    best, weights = None, None
    for k, (x, y) in enumerate(((a, b), (b, c), (c, a))):
        u = _nearest_on_segments(p, x, y)
        w = np.zeros((*u.shape, 3))
        w[..., k], w[..., (k + 1) % 3] = 1 - u, u
        gap = np.linalg.norm(p[:, None] - (x[None] + u[..., None] * (y - x)[None]), axis=2)
        if best is None:
            best, weights = gap, w
        else:
            nearer = gap < best
            best = np.where(nearer, gap, best)
            weights = np.where(nearer[..., None], w, weights)
    normal = np.cross(b - a, c - a)
    area = np.einsum("mi,mi->m", normal, normal)
    safe = np.where(area > 0, area, 1.0)
    r = p[:, None] - a[None]
    w1 = np.einsum("nmi,mi->nm", np.cross(r, (c - a)[None]), normal) / safe
    w2 = np.einsum("nmi,mi->nm", np.cross((b - a)[None], r), normal) / safe
    inside = (area > 1e-24)[None] & (w1 >= 0) & (w2 >= 0) & (w1 + w2 <= 1)
    height = np.abs(np.einsum("nmi,mi->nm", r, normal)) / np.sqrt(safe)
    nearer = inside & (height <= best)
    best = np.where(nearer, height, best)
    weights = np.where(nearer[..., None], np.stack([1 - w1 - w2, w1, w2], axis=2), weights)
    return weights, best


def nearest_of_segments(a0, a1, b0, b1):
    """Parameters (n, m, 2) of the nearest points of all segments a with all b, and their distances."""
    u = np.stack([np.zeros((len(a0), len(b0))), np.ones((len(a0), len(b0)))])
    candidates = []
    for end, p in ((0, a0), (1, a1)):
        candidates.append((u[end], _nearest_on_segments(p, b0, b1)))
    for end, p in ((0, b0), (1, b1)):
        candidates.append((_nearest_on_segments(p, a0, a1).T, u[end]))
    d1, d2 = (a1 - a0)[:, None], (b1 - b0)[None]
    normal = np.cross(d1, d2)
    area = np.einsum("nmi,nmi->nm", normal, normal)
    lengths = np.einsum("nmi,nmi->nm", d1, d1) * np.einsum("nmi,nmi->nm", d2, d2)
    crossing = area > 1e-14 * lengths
    safe = np.where(crossing, area, 1.0)
    r = b0[None] - a0[:, None]
    s = np.einsum("nmi,nmi->nm", np.cross(r, np.broadcast_to(d2, r.shape)), normal) / safe
    t = np.einsum("nmi,nmi->nm", np.cross(r, np.broadcast_to(d1, r.shape)), normal) / safe
    within = crossing & (s >= 0) & (s <= 1) & (t >= 0) & (t <= 1)
    candidates.append((np.where(within, s, 0.0), np.where(within, t, 0.0)))
    best, parameters = None, None
    for s, t in candidates:
        x = a0[:, None] + s[..., None] * d1
        y = b0[None] + t[..., None] * d2
        gap = np.linalg.norm(x - y, axis=2)
        if best is None:
            best, parameters = gap, np.stack([s, t], axis=2)
        else:
            nearer = gap < best
            best = np.where(nearer, gap, best)
            parameters = np.where(nearer[..., None], np.stack([s, t], axis=2), parameters)
    return parameters, best


def mesh_distance(a: Surface, b: Surface) -> float:
    """The least distance of vertices and faces, and of edges: that of the surfaces where they do not cross."""
    least = np.inf
    for one, other in ((a, b), (b, a)):
        used = np.unique(one.faces)
        corners = [other.vertices[other.faces[:, k]] for k in range(3)]
        least = min(least, nearest_on_faces(one.vertices[used], *corners)[1].min())
    ends = [[s.vertices[s.faces[:, [k, (k + 1) % 3]]] for k in range(3)] for s in (a, b)]
    segments = [np.concatenate(x) for x in ends]
    least = min(
        least, nearest_of_segments(segments[0][:, 0], segments[0][:, 1], segments[1][:, 0], segments[1][:, 1])[1].min()
    )
    return float(least)


def literal_contacts(a: Surface, b: Surface, limit: float, tilt: float) -> list[tuple]:
    """(point_a, point_b, normal, gap) of every vertex-face and edge-edge pair that is near and in the normal cones."""
    found = []

    def consider(x, y, place_a, place_b):
        gap = np.linalg.norm(x - y)
        if not 1e-9 < gap < limit - 1e-12:
            return
        n = (x - y) / gap
        # A hair inside: rounding must not decide.
        if min(a.rise(place_a, n), b.rise(place_b, -n)) >= -tilt + 1e-9:
            found.append((x, y, n, gap))

    for one, other, swapped in ((a, b, False), (b, a, True)):
        corners = [other.vertices[other.faces[:, k]] for k in range(3)]
        usable = np.array(one.corners)
        weights, gaps = nearest_on_faces(one.vertices[usable], *corners)
        for i, f in np.argwhere(gaps < limit):
            v = int(usable[i])
            y = weights[i, f] @ other.vertices[other.faces[f]]
            here, there = ("vertex", v), other.place(int(f), weights[i, f])
            if swapped:
                consider(y, one.vertices[v], there, here)
            else:
                consider(one.vertices[v], y, here, there)
    edges_a, edges_b = np.array(a.edges).reshape(-1, 2), np.array(b.edges).reshape(-1, 2)
    a0, a1 = a.vertices[edges_a[:, 0]], a.vertices[edges_a[:, 1]]
    b0, b1 = b.vertices[edges_b[:, 0]], b.vertices[edges_b[:, 1]]
    parameters, gaps = nearest_of_segments(a0, a1, b0, b1)

    def place(edge, u):
        if u <= RIM:
            return ("vertex", int(edge[0]))
        if u >= 1 - RIM:
            return ("vertex", int(edge[1]))
        return ("edge", (int(edge[0]), int(edge[1])))

    for i, j in np.argwhere(gaps < limit):
        s, t = parameters[i, j]
        x, y = a0[i] + s * (a1[i] - a0[i]), b0[j] + t * (b1[j] - b0[j])
        consider(x, y, place(edges_a[i], s), place(edges_b[j], t))
    return found


def admissible_contacts(a: Surface, b: Surface, contacts, limit: float, tilt: float) -> np.ndarray:
    """(n,) whether each contact found is one: its features are what it says, near, and face each other."""
    edges = [
        sorted({tuple(sorted(map(int, (f[k], f[(k + 1) % 3])))) for f in s.faces for k in range(3)}) for s in (a, b)
    ]
    good = np.zeros(len(contacts), bool)
    for k in range(len(contacts)):
        x, y, n, gap = contacts.point_a[k], contacts.point_b[k], contacts.normal[k], contacts.gap[k]
        w = contacts.weights[k]
        features = int(contacts.feature_a[k]), int(contacts.feature_b[k])
        if contacts.kind[k] == 1:
            one, other = (a, b) if contacts.vertex_on[k] == 0 else (b, a)
            v, f = features if contacts.vertex_on[k] == 0 else features[::-1]
            up = n if contacts.vertex_on[k] == 0 else -n
            point, foot = one.vertices[v], w[1:] @ other.vertices[other.faces[f]]
            told = (x, y) if contacts.vertex_on[k] == 0 else (y, x)
            good[k] = (
                np.allclose(told[0], point, atol=1e-11)
                and np.allclose(told[1], foot, atol=1e-9)
                and w[1:].min() >= -2 * RIM
                and one.rise_at_vertex(v, up) >= -tilt - 1e-9
                and (other.plane(f) is not None and abs(other.plane(f) @ n) > 1 - 1e-9)
            )
        else:
            rises = []
            for surface, edge, u, at, way in (
                (a, edges[0][features[0]], w[1], x, n),
                (b, edges[1][features[1]], w[3], y, -n),
            ):
                p, q = surface.vertices[edge[0]], surface.vertices[edge[1]]
                on = np.allclose(at, p + u * (q - p), atol=1e-9)
                if u in (0.0, 1.0):  # the vertex itself
                    rise = surface.rise_at_vertex(edge[int(u)], way)
                else:
                    rise = surface.rise_at_edge(edge, way) if edge in surface.sides else -1.0
                rises.append(rise if on and -2 * RIM <= u <= 1 + 2 * RIM else -1.0)
            good[k] = min(rises) >= -tilt - 1e-9
        good[k] &= abs(np.linalg.norm(n) - 1) < 1e-12 and gap < limit and abs(gap - (x - y) @ n) < 1e-9
    return good


def assert_lists_constraints(mesh_a, mesh_b, pose_a, pose_b, contacts, limit: float, tilt: float) -> int:
    """What is listed is what must be, each once; returns how many must."""
    a, b = Surface.of(mesh_a, pose_a), Surface.of(mesh_b, pose_b)
    size = np.abs(np.concatenate([a.vertices, b.vertices])).max()
    needed = literal_contacts(a, b, limit, tilt)
    rows = np.concatenate([contacts.point_a, contacts.point_b, 1e-3 * size * contacts.normal], axis=1)
    for x, y, n, gap in needed:
        row = np.concatenate([x, y, 1e-3 * size * n])
        assert np.abs(rows - row).max(axis=1).min(initial=np.inf) < 1e-8 * size, f"missing: {x} {y} {n} {gap}"
    good = admissible_contacts(a, b, contacts, limit, tilt)
    assert good.all(), f"not a constraint: {contacts[np.flatnonzero(~good)[:1]].__dict__}"
    assert len(np.unique(contacts.key)) == len(contacts)
    order = np.argsort(contacts.key, kind="stable")
    assert np.array_equal(order, np.arange(len(contacts)))
    return len(needed)
