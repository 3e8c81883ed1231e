"""Deforming bodies: the full list of contacts below a distance, against the IPC Toolkit on the same frames.

A cloth over a ball against itself (46,598 vertices, 92,230 triangles; public data) and two touching bumpy tori as one
mesh. The peer builds its set of collisions from the candidates of its fastest broad phase; it names each pair by the
nearest features and lists it once, so ours are named the same way before the two are compared. `Detector` keeps trees
as the peer keeps its collision mesh, both made one frame before the one that is measured; it lists features, weights
and gaps, as the peer lists features and weights; `proximity` adds points and normals in main memory.
"""

from __future__ import annotations

from functools import partial

import ipctk
import numpy as np

from bench import machine
from bench.data import cloth_ball
from bench.harness import Report, SkippedError, Timing, count, measure, ratio
from tangere.query.contacts import Contacts, Kind
from tangere.query.proximity import Detector, proximity
from tangere.shape import generate
from tangere.shape.mesh import Mesh

FEATURES: list[str] = []

#: The IPC Toolkit's threshold for softening nearly parallel edges (`edge_edge_mollifier_threshold`).
PARALLEL = 1e-3
#: What the IPC Toolkit offers besides comparing all with all; the first is the fastest.
BROAD_PHASES = ["LBVH", "HashGrid", "SpatialHash", "SweepAndPrune"]

Names = dict[str, set[tuple[int, int]]]


def run(report: Report, quick: bool = False) -> None:
    report.packages.append("ipctk")
    frames = {"two tori": (_tori(quick, apart=1.35), _tori(quick, apart=1.3).vertices)}
    if not quick:
        try:
            frames["cloth over a ball"] = cloth_ball()
        except SkippedError as reason:
            report.note(f"Without the cloth: {reason}.")
    report.section("Time to the full list of contacts")
    rows, equal, broad_phases = [], [], []
    for name, (before, vertices) in frames.items():
        mesh = before.replace(vertices=vertices)
        edge = float(np.linalg.norm(vertices[mesh.edges[:, 0]] - vertices[mesh.edges[:, 1]], axis=1).mean())
        peer = Peer(before, vertices)
        for part in (0.05, 0.2):
            for threads in sorted({1, machine.cores()}):
                ask = partial(proximity, mesh, distance=part * edge, device="cpu", threads=threads)
                detector = Detector(before, distance=part * edge, device="cpu", threads=threads)
                contenders = {
                    "detector": partial(detector.find, vertices),
                    "peer": partial(peer.build, part * edge, threads),
                    "proximity": ask,
                    "grid": partial(ask, broad_phase="grid"),
                    "levels": partial(ask, broad_phase="levels"),
                }
                timings = measure(contenders, rounds=3 if quick else 7)
                ours, theirs = timings["detector"], timings["peer"]
                rows.append(
                    [name, f"{part:g}", threads, len(ours.result), ours, *list(timings.values())[2:], theirs]
                    + [ratio(theirs.median, ours.median), ratio(theirs.median, timings["proximity"].median)]
                )
            equal.append([name, f"{part:g}", *_difference(named(ours.result.contacts, mesh, before), peer.named())])
            broad_phases.append([name, f"{part:g}", *_broad_phases(peer, part * edge)])
    columns = ["mesh", "distance / edge", "threads", "contacts", "detector", "proximity", "grid", "levels", "ipctk"]
    report.table([*columns, "ipctk / detector", "ipctk / proximity"], rows)
    report.section("The same contacts, named by nearest features")
    report.table(["mesh", "distance / edge", "in both", "ours only", "ipctk only"], equal)
    report.section("The broad phases of the peer, one thread")
    report.table(["mesh", "distance / edge", *BROAD_PHASES], broad_phases)


class Peer:
    """The IPC Toolkit's collisions of a mesh with itself, its vertices elsewhere."""

    def __init__(self, mesh: Mesh, vertices: np.ndarray) -> None:
        rest, edges, faces = (np.asfortranarray(a) for a in (mesh.vertices, mesh.edges, mesh.faces))
        self._mesh, self._vertices = ipctk.CollisionMesh(rest, edges, faces), np.asfortranarray(vertices)
        self._found = ipctk.NormalCollisions()

    def build(self, distance: float, threads: int, broad_phase: str = "LBVH") -> int:
        ipctk.set_num_threads(threads)
        self._found = ipctk.NormalCollisions()
        self._found.build(self._mesh, self._vertices, distance, 0.0, getattr(ipctk, broad_phase)())
        return len(self._found)

    def named(self) -> Names:
        """The collisions found last."""
        found = self._found
        return {
            "vv": {_sorted(c.vertex0_id, c.vertex1_id) for c in found.vv_collisions},
            "ev": {(c.edge_id, c.vertex_id) for c in found.ev_collisions},
            "ee": {_sorted(c.edge0_id, c.edge1_id) for c in found.ee_collisions},
            "fv": {(c.face_id, c.vertex_id) for c in found.fv_collisions},
        }


def _broad_phases(peer: Peer, distance: float) -> list[Timing]:
    contenders = {name: partial(peer.build, distance, 1, name) for name in BROAD_PHASES}
    return list(measure(contenders, rounds=1).values())


def named(contacts: Contacts, mesh: Mesh, rest: Mesh) -> Names:
    """Contacts by the features their points lie in, as the peer names them: a zero weight leaves its vertex out.

    Two edges stay two edges, wherever their points lie, if they are so nearly parallel that the peer softens them.
    """
    names: Names = {"vv": set(), "ev": set(), "ee": set(), "fv": set()}
    number = {tuple(edge): k for k, edge in enumerate(mesh.edges.tolist())}
    parallel = _nearly_parallel(contacts, mesh, rest)
    columns = (contacts.kind, contacts.feature_a, contacts.feature_b, contacts.weights, parallel)
    for kind, a, b, w, together in zip(*columns, strict=True):
        if kind == Kind.VERTEX_FACE:
            one, other = [int(a)], mesh.faces[b][w[1:] > 0.0].tolist()
            if len(other) == 3:
                names["fv"].add((int(b), int(a)))
                continue
        else:
            one, other = mesh.edges[a][w[:2] > 0.0].tolist(), mesh.edges[b][w[2:] > 0.0].tolist()
            if together or len(one) == len(other) == 2:
                names["ee"].add(_sorted(int(a), int(b)))
                continue
        if len(one) == len(other) == 1:
            names["vv"].add(_sorted(one[0], other[0]))
        else:
            vertex, edge = (one[0], other) if len(one) == 1 else (other[0], one)
            names["ev"].add((number[_sorted(*edge)], vertex))
    return names


def _nearly_parallel(contacts: Contacts, mesh: Mesh, rest: Mesh) -> np.ndarray:
    """Which contacts are of edges with sin^2 of their angle below the peer's threshold, by their lengths at rest."""
    edges = contacts.kind == Kind.EDGE_EDGE
    a, b = np.where(edges, contacts.feature_a, 0), np.where(edges, contacts.feature_b, 0)
    along, before = (m.vertices[m.edges[:, 1]] - m.vertices[m.edges[:, 0]] for m in (mesh, rest))
    squared, lengths = (np.cross(along[a], along[b]) ** 2).sum(axis=1), (before**2).sum(axis=1)
    return edges & (squared < PARALLEL * lengths[a] * lengths[b])


def _difference(ours: Names, theirs: Names) -> list[str]:
    both = [len(ours[k] & theirs[k]) for k in ours]
    return [count(sum(both)), *(str(sum(len(x[k] - y[k]) for k in x)) for x, y in ((ours, theirs), (theirs, ours)))]


def _sorted(a: int, b: int) -> tuple[int, int]:
    return (a, b) if a < b else (b, a)


def _tori(quick: bool, apart: float) -> Mesh:
    """The second one a little aside: where a vertex meets a vertex exactly, rounding alone would name the features."""
    torus = generate.torus(grid=(32, 20) if quick else (128, 80), bumps=0.1)
    x, y, z = torus.vertices.T
    return Mesh.join([torus, torus.replace(vertices=np.stack([x + apart, 0.013 - z, 0.007 + y], axis=1))])
