"""Motion space against contact space: Wilhelmsen and Dantzig on random contacts (Redon, tables 5.1 and 5.2).

Random rows, two bodies each (a body drawn twice is a contact with the world), random right-hand sides that some motion
satisfies, unit masses: n bodies with p contacts each. Both solvers factor every linear system anew, as the thesis does,
and solve about as many; what differs is what they renew in between: six numbers for each body, or one for each contact.
The ratio is the time of Dantzig's algorithm over that of Wilhelmsen's: above 1 motion space is faster. Dense and sparse
versions read all numbers of the rows (of the matrix of contacts), or only those that are not zero.
"""

from __future__ import annotations

import time

import numpy as np

from bench.harness import Report
from tangere.published.redon_dynamics import ConeBatch, LcpBatch
from tangere.runtime import using_threads

PARTLY = {
    "F-R-58": "the sparse ratio rises with bodies and up to 15 contacts for each, to 1.8; "
    "with 25 and more it stays at 1.1 to 1.3, where the thesis has 1.6 to 2.4"
}

BODIES = (2, 7, 12, 17, 22)
CONTACTS = (5, 15, 25, 35, 45)
#: Tables 5.1 (dense) and 5.2 (sparse), by contacts for each body, then by bodies.
PRINTED = {
    False: [
        [0.60, 0.50, 0.51, 0.54, 0.52],
        [0.85, 1.08, 1.23, 1.47, 1.63],
        [0.85, 0.90, 1.07, 1.21, 1.05],
        [0.94, 0.93, 1.31, 1.15, 1.01],
        [1.01, 1.08, 1.5, 1.08, 1.03],
    ],
    True: [
        [0.51, 0.62, 0.80, 0.91, 0.93],
        [0.71, 1.19, 1.52, 1.95, 2.19],
        [0.70, 1.04, 1.60, 1.98, 1.90],
        [0.76, 1.11, 2.08, 2.20, 2.05],
        [0.78, 1.34, 2.44, 2.43, 2.20],
    ],
}


def run(report: Report, quick: bool = False) -> None:
    runs = 5 if quick else 50
    bodies, contacts = (BODIES[:2], CONTACTS[:2]) if quick else (BODIES, CONTACTS)
    ratios: dict[bool, list[list[float]]] = {False: [], True: []}
    solves, apart = np.zeros(2), 0.0
    with using_threads(1):
        for p in contacts:
            for sparse in (False, True):
                ratios[sparse].append([])
            for n in bodies:
                for sparse in (False, True):
                    seconds, made, difference = _cell(n, p, runs, sparse)
                    ratios[sparse][-1].append(seconds[1] / seconds[0])
                    solves += made
                    apart = max(apart, difference)
    for sparse, heading in ((False, "Dense (table 5.1)"), (True, "Sparse (table 5.2)")):
        report.section(heading)
        rows = []
        for p, ours, theirs in zip(contacts, ratios[sparse], PRINTED[sparse]):
            rows.append([f"p = {p}", *(f"{mine:.2f} ({print_:.2f})" for mine, print_ in zip(ours, theirs))])
        report.table(["ours (thesis)", *(f"n = {n}" for n in bodies)], rows)
    corner = [r for row, p in zip(ratios[True], contacts) for r, n in zip(row, bodies) if n >= 12 and p >= 25]
    report.note(
        f"""{runs} problems for each cell, on one thread. Wilhelmsen's algorithm solves {solves[0]:,.0f} linear systems
        in all, Dantzig's {solves[1]:,.0f}. The motions they find differ by at most {apart:.0e}."""
    )
    if corner:
        report.note(
            f"""Asked for: the sparse ratio rises with bodies and contacts, and is above 1.5 from 12 bodies with 25
            contacts each on; found there: {min(corner):.2f} to {max(corner):.2f}. With few contacts contact space is
            faster, as the thesis says."""
        )


def _cell(n: int, p: int, runs: int, sparse: bool) -> tuple[np.ndarray, np.ndarray, float]:
    """Seconds and linear systems of (Wilhelmsen, Dantzig), and how far their motions are apart."""
    rng = np.random.default_rng(1000 * n + p)
    seconds, made, apart = np.zeros(2), np.zeros(2), 0.0
    at_once = min(5, runs)
    for k in range(runs // at_once + 1):  # the first ones warm up and do not count
        rows, target = _random(rng, at_once, n, p)
        cones = ConeBatch(rows, target, sparse=sparse)
        matrix = rows @ rows.transpose(0, 2, 1)
        matrix[np.abs(matrix) < 1e-14] = 0.0
        forces = LcpBatch(matrix, -np.einsum("rmk,rk->rm", rows, target), sparse=sparse)
        times, answers = [], []
        for batch in (cones, forces):
            begin = time.thread_time()
            answers.append(batch.solve())
            times.append(time.thread_time() - begin)
        if k > 0:
            seconds += times
            made += [answers[0].solves.sum(), answers[1].solves.sum()]
            assert answers[1].solved.all()
            motion = np.einsum("rmk,rm->rk", rows, answers[1].force)
            apart = max(apart, float(np.abs(motion - answers[0].point).max()))
    return seconds, made, apart


def _random(rng: np.random.Generator, count: int, n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows (count, n p, 6 n) and the motions k with c = J k (count, 6 n); the free motion is zero."""
    rows = np.zeros((count, n * p, n, 6))
    for r in range(count):
        pair = rng.integers(0, n, (2, n * p))
        for body in pair:
            rows[r, np.arange(n * p), body] = rng.uniform(-1.0, 1.0, (n * p, 6))
    return rows.reshape(count, n * p, 6 * n), rng.uniform(-1.0, 1.0, (count, 6 * n))
