"""Points in cells that bend: wrong locations and endless walks against deformation, and how fast a mesh may deform.

Experiment E11, on Pitiot 2015, chapter 7, with the four-state machine of convex cells as the control, which
may fail on warped faces. Every answer is checked against all simplices of the map. Then 10,000 points live in a block
that deforms at every step.
"""

from __future__ import annotations

import time

import numpy as np

from bench.harness import Report, count, seconds
from tangere.cells.generate import hex_grid, quad_grid
from tangere.cells.registration import Registration
from tangere.cells.tracking import locate, move
from tangere.published.pitiot_trackers import track_convex

#: E11 with its control: 39; starting on faces: 40; on edges and vertices: 41. The last section: 43.
FEATURES = ["F-P-39", "F-P-40", "F-P-41", "F-P-43"]


def run(report: Report, quick: bool = False) -> None:
    _robust(report, 300 if quick else 4000)
    _from_sides(report, 100 if quick else 2000)
    _alive(report, quick)


def _robust(report: Report, number: int) -> None:
    report.section(f"E11: {count(number)} moves by half a cell, vertices displaced at random")
    rng, size, rows, fine, failed = np.random.default_rng(0), 5, [], True, 0
    for jitter in (0.0, 0.1, 0.2, 0.3, 0.4):
        row = [f"{jitter:g} cells"]
        for dimension, make in ((2, quad_grid), (3, hex_grid)):
            map = make(*[size] * dimension, jitter=jitter, device="cpu")
            points = rng.uniform(0.02, size - 0.02, (number, 3))
            targets = np.clip(points + rng.normal(0, 0.5, points.shape), 0.02, size - 0.02)
            for x in (points, targets):
                x[:, 2] *= dimension == 3
            start = locate(map, points)
            walked, straight = locate(map, targets, start.dart), move(map, points, targets, start.dart)
            wrong = [outside(map, x.cell, targets) + int(x.blocked.sum()) for x in (walked, straight)]
            fine &= not any(wrong)
            row += [str(wrong[0]), str(wrong[1])]
            if dimension == 3:
                control = track_convex(map, points, targets, start.dart)
                lost = control.lost | control.blocked
                row += [str(outside(map, control.cell[~lost], targets[~lost])), str(int(lost.sum()))]
                failed += int(row[-2]) + int(row[-1])
        rows.append(row)
    columns = ["displacement", "2D: wrong by walks", "by marches", "3D: wrong by walks", "by marches"]
    report.table([*columns, "control: wrong", "control: lost"], rows)
    report.note(
        f"None wrong and none endless in ours: {'pass' if fine else 'fail'}. The control fails {failed} times "
        f"({'pass' if failed else 'fail'})."
    )


def _from_sides(report: Report, number: int) -> None:
    report.section(f"E11 from faces, edges and vertices: {count(number)} moves from each, in space")
    rng, size, rows, fine = np.random.default_rng(2), 5, [], True
    for jitter in (0.0, 0.1, 0.2, 0.3, 0.4):
        map = hex_grid(size, size, size, jitter=jitter, device="cpu")
        darts = rng.choice(map.darts, number)
        s, e = (map.positions[map.numpy("origin")[d]] for d in (darts, map.numpy("phi1")[darts]))
        targets = rng.uniform(0.02, size - 0.02, (number, 3))
        row = [f"{jitter:g} cells"]
        for start in ((s + e + map.numpy("face_centre")[darts]) / 3, 0.3 * s + 0.7 * e, s):
            aimed = locate(map, start).dart
            walked, straight = locate(map, targets, aimed), move(map, start, targets, aimed)
            wrong = [outside(map, x.cell, targets) + int(x.blocked.sum()) for x in (walked, straight)]
            fine &= not any(wrong)
            row.append(f"{wrong[0]}, {wrong[1]}")
        rows.append(row)
    report.table(["displacement", "wrong by walks and marches: from faces", "from edges", "from vertices"], rows)
    report.note(f"None wrong and none endless: {'pass' if fine else 'fail'}.")


def outside(map, cells: np.ndarray, points: np.ndarray) -> int:
    """Points in none of the simplices of the cell they are said to be in; all simplices of that cell are tried."""
    darts, wrong = map.darts, 0
    cell, origin, phi1 = (map.numpy(name) for name in ("cell", "origin", "phi1"))
    dimension = map.dimension
    corners = [map.numpy("centre")[cell[darts]], map.positions[origin[darts]], map.positions[origin[phi1[darts]]]]
    if dimension == 3:
        corners.insert(1, map.numpy("face_centre")[darts])
    simplex = np.stack(corners, axis=1)[..., :dimension]
    inverse = np.linalg.inv((simplex[:, 1:] - simplex[:, :1]).transpose(0, 2, 1))
    order = np.argsort(cell[darts], kind="stable")
    first = np.searchsorted(cell[darts][order], np.arange(map.cell_capacity + 1))
    for c in np.unique(cells):
        own = order[first[c] : first[c + 1]]
        here = points[cells == c, :dimension]
        weights = np.einsum("dij,ndj->ndi", inverse[own], here[:, None] - simplex[own, 0][None])
        least = np.minimum(weights.min(axis=2), 1 - weights.sum(axis=2))
        wrong += int((least.max(axis=1) < -1e-9).sum())
    return wrong


def _alive(report: Report, quick: bool) -> None:
    report.section("Points in a block that deforms at every step")
    number, size, steps = (200, 4, 2) if quick else (10_000, 10, 30)
    map = hex_grid(size, size, size, device="cpu")
    rng = np.random.default_rng(1)
    registration = Registration(map, rng.uniform(0.1, size - 0.1, (number, 3)))
    rest = map.positions.copy()
    wall = np.prod(np.sin(np.pi * rest / size), axis=1)[:, None]
    taken = []
    for step in range(steps):
        bent = rest + 0.35 * wall * np.sin(0.2 * step + rest[:, [1, 2, 0]])
        targets = np.clip(registration.points + rng.normal(0, 0.02, (number, 3)), 0.05, size - 0.05)
        begin = time.perf_counter()
        registration.deform(bent)
        registration.move(targets)
        registration.present("points")
        taken.append(time.perf_counter() - begin)
    wrong = outside(map, registration.cells, registration.points)
    typical = float(np.median(taken))
    report.note(
        f"{count(number)} points, {count(size**3)} cells: {seconds(typical)} a step, {1 / typical:.0f} Hz (asked for: "
        f"30 Hz, {'pass' if typical <= 1 / 30 else 'fail'}); {wrong} in a wrong cell at the end."
    )
