"""How many contacts has a body? Prisms on prisms (Redon, chapter 5), and what that costs in motion and contact space.

Two cubes that are nearly aligned touch in eight points, two prisms with n sides in 2 n: the corners of the region their
faces share. The thesis argues from this that there are far more contacts than ways to move, so that dynamics should be
solved in motion space. Here the upper prism, turned by half the angle between two corners, falls on the lower one;
contacts are crossings of two sharp edges nearer than the gap, from `tg.proximity`. The motion of the upper prism is
projected on their rows by one launch (`OneBodyProjection`), by Wilhelmsen's algorithm, and by Dantzig's in contact
space.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import tangere as tg
from bench.harness import Report, seconds
from tangere.dynamics.solver import OneBodyProjection
from tangere.published.redon_dynamics import ConeBatch, LcpBatch
from tangere.runtime import using_threads

SIDES = (3, 4, 6, 8, 12, 24, 48, 96)
GAP = 1e-3


def run(report: Report, quick: bool = False) -> None:
    rows = []
    with using_threads(1):
        for sides in SIDES[:3] if quick else SIDES:
            arms, normals = _contacts(sides)
            jacobian = np.concatenate([normals, np.cross(arms, normals)], axis=1)
            wanted = np.array([0.02, -0.01, -0.1, 0.05, 0.02, 0.01])
            rows.append([sides, 2 * sides, len(arms), *_times(jacobian, wanted)])
    columns = ["sides", "contacts (thesis)", "contacts (ours)"]
    report.table([*columns, "`OneBodyProjection`", "Wilhelmsen", "Dantzig", "apart"], rows)
    found = all(row[1] == row[2] for row in rows)
    report.note(
        f"""{"Every" if found else "NOT every"} pair of prisms has as many contacts as the thesis says: eight for the
        cubes. Times are of one call, the least of seven; the last column is how far the three motions are apart."""
    )


def _contacts(sides: int) -> tuple[np.ndarray, np.ndarray]:
    """Arms and normals of the crossings of sharp edges of a prism on another."""
    prism = tg.generate.prism(sides)
    turn = np.pi / sides
    pose = np.eye(4)
    pose[:2, :2] = [[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]
    pose[2, 3] = 1.0 + GAP
    found = tg.proximity(prism.at(pose), prism, distance=GAP * (1.0 + 1e-6))
    sharp = _sharp_edges(prism)
    crossing = found.kind == tg.Kind.EDGE_EDGE
    crossing &= sharp[np.where(crossing, found.feature_a, 0)] & sharp[np.where(crossing, found.feature_b, 0)]
    return found.point_a[crossing] - pose[:3, 3], found.normal[crossing]


def _sharp_edges(mesh: tg.Mesh) -> np.ndarray:
    """Edges between faces that are not in one plane."""
    first, second = mesh.topology.edge_faces.indices.reshape(-1, 2).T  # closed: two faces at every edge
    return np.einsum("ij,ij->i", mesh.face_normals[first], mesh.face_normals[second]) < 1.0 - 1e-9


def _times(jacobian: np.ndarray, wanted: np.ndarray) -> list[str]:
    need = np.zeros(len(jacobian))
    projection = OneBodyProjection()
    cones = ConeBatch(jacobian[None], -wanted[None])
    forces = LcpBatch((jacobian @ jacobian.T)[None], (jacobian @ wanted)[None])
    motions = [
        projection.project(jacobian, need, wanted).motion,
        wanted + cones.solve().point[0],
        wanted + jacobian.T @ forces.solve().force[0],
    ]
    taken = [_least(call) for call in (lambda: projection.project(jacobian, need, wanted), cones.solve, forces.solve)]
    return [*map(seconds, taken), f"{np.ptp(motions, axis=0).max():.0e}"]


def _least(call: Callable[[], object], rounds: int = 7, times: int = 50) -> float:
    taken = []
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(times):
            call()
        taken.append((time.perf_counter() - begin) / times)
    return min(taken)
