"""Motion space against contact space: Wilhelmsen and Dantzig on random contacts (Redon, tables 5.1 and 5.2).

Random rows, two bodies each (a body drawn twice is a contact with the world), random right-hand sides that some motion
satisfies, unit masses: n bodies with p contacts each. Both solvers solve about as many linear systems; what differs is
what they renew in between: six numbers for each body, or one for each contact. The ratio is the time of Dantzig's
algorithm over that of Wilhelmsen's: above 1 motion space is faster.

Dense and sparse versions read all numbers of the rows (of the matrix of contacts), or only those that are not zero. The
thesis does not say how much of the matrix its contact space reads: all of it, as a product of a matrix and a vector
does, or only the columns of contacts whose force changes. Both are here. It factors every system anew; in the last
table both solvers change their factors as contacts come and go.
"""

from __future__ import annotations

import time

import numpy as np

from bench.harness import Report
from tangere.published.redon_dynamics import ConeBatch, LcpBatch
from tangere.runtime import using_threads

FEATURES = ["F-R-58"]

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


#: Ways to solve: heading, table of the thesis beside it, options of both solvers, whether all of the matrix is read.
WAYS: tuple[tuple[str, list[list[float]] | None, dict[str, bool], bool], ...] = (
    ("Dense (table 5.1)", PRINTED[False], {}, False),
    ("Sparse, columns of changed forces (table 5.2)", PRINTED[True], {"sparse": True}, False),
    ("Sparse, all of the matrix (table 5.2)", PRINTED[True], {"sparse": True}, True),
    ("Sparse, all of the matrix, factors followed", None, {"sparse": True, "incremental": True}, True),
)


def run(report: Report, quick: bool = False) -> None:
    runs = 5 if quick else 50
    bodies, contacts = (BODIES[:2], CONTACTS[:2]) if quick else (BODIES, CONTACTS)
    solves, apart = np.zeros(2), 0.0
    for heading, printed, options, whole in WAYS:
        ratios = np.zeros((len(contacts), len(bodies)))
        with using_threads(1):
            for i, p in enumerate(contacts):
                for j, n in enumerate(bodies):
                    seconds, made, difference = _cell(n, p, runs, options, whole)
                    ratios[i, j] = seconds[1] / seconds[0]
                    solves += made
                    apart = max(apart, difference)
        report.section(heading)
        rows = []
        for i, p in enumerate(contacts):
            theirs = [f" ({ratio:.2f})" for ratio in printed[i]] if printed is not None else [""] * len(bodies)
            rows.append([f"p = {p}", *(f"{ratio:.2f}{other}" for ratio, other in zip(ratios[i], theirs))])
        report.table(["ours" if printed is None else "ours (thesis)", *(f"n = {n}" for n in bodies)], rows)
        corner = ratios[np.greater_equal(contacts, 25)][:, np.greater_equal(bodies, 12)]
        if corner.size:
            report.note(f"From 12 bodies with 25 contacts each on: {corner.min():.2f} to {corner.max():.2f}.")
    report.note(
        f"""{runs} problems for each cell, on one thread. Wilhelmsen's algorithm solves {solves[0]:,.0f} linear systems
        in all, Dantzig's {solves[1]:,.0f}. The motions they find differ by at most {apart:.0e}."""
    )
    report.note(
        """Asked for: the sparse ratio rises with bodies and contacts, and is above 1.5 from 12 bodies with 25 contacts
        each on. It does where contact space renews its accelerations by all of the matrix; where it reads only the
        columns of forces that change, most of that is gone, and the ratio no longer rises beyond 15 contacts for each
        body. With few contacts contact space is faster, as the thesis says."""
    )


def _cell(n: int, p: int, runs: int, options: dict[str, bool], whole: bool) -> tuple[np.ndarray, np.ndarray, float]:
    """Seconds and linear systems of (Wilhelmsen, Dantzig), and how far their motions are apart."""
    rng = np.random.default_rng(1000 * n + p)
    seconds, made, apart = np.zeros(2), np.zeros(2), 0.0
    at_once = min(5, runs)
    for k in range(runs // at_once + 1):  # the first ones warm up and do not count
        rows, target = _random(rng, at_once, n, p)
        cones = ConeBatch(rows, target, **options)
        matrix = rows @ rows.transpose(0, 2, 1)
        matrix[np.abs(matrix) < 1e-14] = 0.0
        forces = LcpBatch(matrix, -np.einsum("rmk,rk->rm", rows, target), whole=whole, **options)
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
