"""Deforming bodies: the full list of contacts below a distance, against the IPC Toolkit on the same frames.

A cloth over a ball against itself (46,598 vertices, 92,230 triangles; public data) and two bumpy tori as one mesh. The
peer builds its set of collisions from the candidates of its fastest broad phase; it names each pair by the nearest
features and lists it once, so ours are named the same way before the two are compared. `Detector` keeps trees as the
peer keeps its collision mesh, and lists features, weights and gaps, as the peer lists features and weights;
`proximity` adds points and normals in main memory.
"""

from __future__ import annotations

from functools import partial

import ipctk
import numpy as np

from bench import machine
from bench.data import cloth_ball
from bench.harness import Report, SkippedError, count, measure, ratio
from tangere.query.contacts import Contacts, Kind
from tangere.query.proximity import Detector, proximity
from tangere.shape import Mesh, generate

FEATURES: list[str] = []

Names = dict[str, set[tuple[int, int]]]


def run(report: Report, quick: bool = False) -> None:
    report.packages.append("ipctk")
    meshes = {"two tori": _tori(quick)}
    if not quick:
        try:
            meshes["cloth over a ball"] = cloth_ball()[0]
        except SkippedError as reason:
            report.note(f"Without the cloth: {reason}.")
    report.section("Time to the full list of contacts")
    rows, equal = [], []
    for name, mesh in meshes.items():
        edge = float(np.linalg.norm(mesh.vertices[mesh.edges[:, 0]] - mesh.vertices[mesh.edges[:, 1]], axis=1).mean())
        peer = Peer(mesh)
        for part in (0.05, 0.2):
            for threads in sorted({1, machine.cores()}):
                ask = partial(proximity, mesh, distance=part * edge, device="cpu", threads=threads)
                detector = Detector(mesh, distance=part * edge, device="cpu", threads=threads)
                contenders = {
                    "detector": partial(detector.find, mesh.vertices),
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
            equal.append([name, f"{part:g}", *_difference(named(ours.result.contacts, mesh), peer.named())])
    columns = ["mesh", "distance / edge", "threads", "contacts", "detector", "proximity", "grid", "levels", "ipctk"]
    report.table([*columns, "ipctk / detector", "ipctk / proximity"], rows)
    report.section("The same contacts, named by nearest features")
    report.table(["mesh", "distance / edge", "in both", "ours only", "ipctk only"], equal)


class Peer:
    """The IPC Toolkit's collisions of a mesh with itself."""

    def __init__(self, mesh: Mesh) -> None:
        self._vertices = np.asfortranarray(mesh.vertices)
        self._mesh = ipctk.CollisionMesh(self._vertices, np.asfortranarray(mesh.edges), np.asfortranarray(mesh.faces))
        self._found = ipctk.NormalCollisions()

    def build(self, distance: float, threads: int) -> int:
        ipctk.set_num_threads(threads)
        self._found = ipctk.NormalCollisions()
        self._found.build(self._mesh, self._vertices, distance, 0.0, ipctk.LBVH())
        return len(self._found)

    def named(self) -> Names:
        found = self._found
        return {
            "vv": {_sorted(c.vertex0_id, c.vertex1_id) for c in found.vv_collisions},
            "ev": {(c.edge_id, c.vertex_id) for c in found.ev_collisions},
            "ee": {_sorted(c.edge0_id, c.edge1_id) for c in found.ee_collisions},
            "fv": {(c.face_id, c.vertex_id) for c in found.fv_collisions},
        }


def named(contacts: Contacts, mesh: Mesh) -> Names:
    """Contacts by the features their points lie in: a zero weight leaves its vertex out."""
    names: Names = {"vv": set(), "ev": set(), "ee": set(), "fv": set()}
    number = {tuple(edge): k for k, edge in enumerate(mesh.edges.tolist())}
    for kind, a, b, w in zip(contacts.kind, contacts.feature_a, contacts.feature_b, contacts.weights, strict=True):
        if kind == Kind.VERTEX_FACE:
            one, other = [int(a)], mesh.faces[b][w[1:] > 0.0].tolist()
            if len(other) == 3:
                names["fv"].add((int(b), int(a)))
                continue
        else:
            one, other = mesh.edges[a][w[:2] > 0.0].tolist(), mesh.edges[b][w[2:] > 0.0].tolist()
            if len(one) == len(other) == 2:
                names["ee"].add(_sorted(int(a), int(b)))
                continue
        if len(one) == len(other) == 1:
            names["vv"].add(_sorted(one[0], other[0]))
        else:
            vertex, edge = (one[0], other) if len(one) == 1 else (other[0], one)
            names["ev"].add((number[_sorted(*edge)], vertex))
    return names


def _difference(ours: Names, theirs: Names) -> list[str]:
    both = [len(ours[k] & theirs[k]) for k in ours]
    return [count(sum(both)), *(str(sum(len(x[k] - y[k]) for k in x)) for x, y in ((ours, theirs), (theirs, ours)))]


def _sorted(a: int, b: int) -> tuple[int, int]:
    return (a, b) if a < b else (b, a)


def _tori(quick: bool) -> Mesh:
    torus = generate.torus(grid=(32, 20) if quick else (128, 80), bumps=0.1)
    x, y, z = torus.vertices.T
    turned = np.stack([x + 1.05, -z, y], axis=1)
    return Mesh.join([torus, torus.replace(vertices=turned)])
