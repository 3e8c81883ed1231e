"""Contact problems of rigid bodies: sweeps, interior point and peers, time and residual.

Towers, walls, heaps with normals of every direction, and one body in a hollow, at the first step of a fall (gravity
times step is 0.098 m/s), cold. The residual is the natural map of the cone problem: how far any contact is from its
law. Convex friction has one answer, which Clarabel, a solver of cone programs, finds as well. Its time is that of the
solve, without laying out matrices. One thread, and its time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp

from bench.harness import Report, measure, seconds
from tangere.dynamics.solver import OneBodyProjection, Solver, contact_rows, frames, rigid_bodies
from tangere.runtime import needs_extra, using_threads

SIZES = (10, 100, 1000)
FALL = 0.0981


def run(report: Report, quick: bool = False) -> None:
    report.packages += ["clarabel", "scipy"]
    with needs_extra("clarabel", "bench"):
        import clarabel  # noqa: F401
    with using_threads(1):
        for name, make in SCENES.items():
            report.section(name.capitalize())
            rows = []
            for size in SIZES[:2] if quick else SIZES:
                rows += _rows(*make(size))
            report.table(["contacts, bodies", "solver", "law", "time", "residual [m/s]", "against Clarabel"], rows)
        _one_body(report, quick)


def _rows(bodies: dict[str, np.ndarray], columns: dict[str, np.ndarray]) -> list[list[Any]]:
    device = wp.get_device("cpu")
    problem = _Matrices(bodies, columns)
    arrays = rigid_bodies(device, **bodies), contact_rows(device, **columns)
    solvers = {
        ("150 sweeps", "Coulomb"): Solver(device=device, method="gauss_seidel"),
        ("auto", "Coulomb"): Solver(device=device),
        ("interior point", "convex"): Solver(device=device, law="convex", tolerance=1e-10),
    }

    def ours(solver: Solver) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
        def call() -> tuple[np.ndarray, np.ndarray]:
            arrays[0].velocity.assign(bodies["velocity"])
            arrays[1].impulse.zero_()
            solver.solve(*arrays)
            return arrays[0].velocity.numpy().copy(), arrays[1].impulse.numpy().copy()

        return call

    contenders: dict[Any, Callable[[], Any]] = {key: ours(solver) for key, solver in solvers.items()}
    contenders["Clarabel", "convex"] = problem.clarabel()
    timings = measure(contenders, rounds=7, clock=time.thread_time)
    found = []
    for (name, law), timing in timings.items():
        residual = problem.residual(*timing.result, coulomb=law == "Coulomb")
        against = timings["Clarabel", "convex"].median / timing.median
        size = f"{len(columns['body_a'])}, {len(bodies['inverse_mass'])}"
        found.append([size, name, law, timing, f"{residual:.1e}", f"{against:.2f}x"])
    return found


def _one_body(report: Report, quick: bool) -> None:
    """The projection of one motion, beside SciPy's non-negative least squares."""
    from scipy.optimize import nnls

    report.section("One body, without friction")
    rng = np.random.default_rng(0)
    projection = OneBodyProjection()
    rows = []
    for count in (10, 100, 1000):
        jacobian = 0.2 * rng.normal(size=(count, 6)) + np.eye(6)[2]
        need, wanted = rng.uniform(-1e-3, 0.0, count), np.array([0.01, 0.0, -0.02, 0.01, 0.01, 0.0])
        system, target = np.vstack([jacobian.T, (need - jacobian @ wanted)[None]]), np.eye(7)[6]

        def scipy_(system=system, target=target, wanted=wanted) -> np.ndarray:
            rest = system @ nnls(system, target)[0] - target
            return wanted - rest[:6] / rest[6]

        def many(call: Callable[[], Any]) -> Callable[[], Any]:
            return lambda: [call() for _ in range(20 if quick else 200)][-1]

        def one(jacobian=jacobian, need=need, wanted=wanted) -> np.ndarray:
            return projection.project(jacobian, need, wanted).motion

        timings = measure({"ours": many(one), "scipy": many(scipy_)}, clock=time.thread_time)
        each = [timing.median / (20 if quick else 200) for timing in timings.values()]
        apart = np.abs(timings["ours"].result - timings["scipy"].result).max()
        rows.append([count, *map(seconds, each), f"{each[1] / each[0]:.1f}x", f"{apart:.0e}"])
    report.table(["rows", "`OneBodyProjection`", "SciPy's `nnls`", "ratio", "apart"], rows)


class _Matrices:
    """A problem as sparse matrices."""

    def __init__(self, bodies: dict[str, np.ndarray], columns: dict[str, np.ndarray]) -> None:
        from scipy import sparse

        m, n = len(columns["body_a"]), len(bodies["inverse_mass"])
        self.friction, self.free = columns["friction"], bodies["velocity"].reshape(-1)
        self.bias = columns["bias"].reshape(-1)
        blocks, at = [], []
        for body, arm, sign in (
            (columns["body_a"], columns["arm_a"], 1.0),
            (columns["body_b"], columns["arm_b"], -1.0),
        ):
            frame = sign * columns["frame"]
            block = np.concatenate([frame, np.cross(arm[:, None], frame)], axis=2)
            block[body < 0] = 0.0
            blocks.append(block)
            at.append(np.maximum(body, 0))
        index = np.broadcast_to(np.arange(3 * m).reshape(1, m, 3, 1), (2, m, 3, 6))
        column = np.broadcast_to(6 * np.array(at)[:, :, None, None] + np.arange(6), (2, m, 3, 6))
        values = (np.array(blocks).ravel(), (index.ravel(), column.ravel()))
        self.jacobian = sparse.csr_matrix(values, shape=(3 * m, 6 * n))
        mass = [sparse.eye(3) / w for w in bodies["inverse_mass"]]
        inertia = [np.linalg.inv(i) for i in bodies["inverse_inertia"]]
        self.mass = sparse.block_diag([block for pair in zip(mass, inertia) for block in pair]).tocsc()
        inverse = [
            block for w, i in zip(bodies["inverse_mass"], bodies["inverse_inertia"]) for block in (w * np.eye(3), i)
        ]
        weighted = self.jacobian @ sparse.block_diag(inverse)
        self.diagonal = np.asarray(self.jacobian.multiply(weighted).sum(axis=1)).reshape(-1, 3).max(axis=1)

    def residual(self, velocity: np.ndarray, impulse: np.ndarray, *, coulomb: bool) -> float:
        u = (self.jacobian @ velocity.reshape(-1) + self.bias).reshape(-1, 3)
        if coulomb:
            u[:, 0] += self.friction * np.linalg.norm(u[:, 1:], axis=1)
        x, mu, d = impulse - u / self.diagonal[:, None], self.friction, self.diagonal
        n, t = x[:, 0], np.linalg.norm(x[:, 1:], axis=1)
        high = np.maximum((n + mu * t) / (1.0 + mu * mu), 0.0)
        outside = np.column_stack([high, x[:, 1:] * (mu * high / np.maximum(t, 1e-300))[:, None]])
        nearest = np.where((t <= mu * n)[:, None], x, outside)
        return float((np.linalg.norm(impulse - nearest, axis=1) * d).max())

    def clarabel(self) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
        import clarabel
        from scipy import sparse

        mu = self.friction
        scale = sparse.diags(np.stack([np.ones_like(mu), mu, mu], axis=1).reshape(-1))
        given = sparse.triu(self.mass).tocsc(), -(self.mass @ self.free), (-(scale @ self.jacobian)).tocsc()
        cones = [clarabel.SecondOrderConeT(3)] * len(mu)
        settings = clarabel.DefaultSettings()
        settings.verbose, settings.max_threads = False, 1
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-9

        def call() -> tuple[np.ndarray, np.ndarray]:
            solution = clarabel.DefaultSolver(*given, scale @ self.bias, cones, settings).solve()
            return np.array(solution.x).reshape(-1, 6), (scale @ np.array(solution.z)).reshape(-1, 3)

        return call


def _boxes(count: int, size: tuple[float, float, float] = (1.0, 1.0, 1.0), mass: float = 1.0) -> dict[str, np.ndarray]:
    x, y, z = size
    inverse = np.linalg.inv(np.diag([y * y + z * z, x * x + z * z, x * x + y * y]) * mass / 12.0)
    velocity = np.zeros((count, 6))
    velocity[:, 2] = -FALL
    return {
        "inverse_mass": np.full(count, 1.0 / mass),
        "inverse_inertia": np.tile(inverse, (count, 1, 1)),
        "velocity": velocity,
    }


def _columns(a, b, points, normals, friction, centres, bias=0.0) -> dict[str, np.ndarray]:
    a, b = np.asarray(a), np.asarray(b)
    approach = np.zeros((len(a), 3))
    approach[:, 0] = bias
    return {
        "body_a": a,
        "body_b": b,
        "arm_a": points - centres[a],
        "arm_b": np.where(b[:, None] >= 0, points - centres[b], 0.0),
        "frame": frames(normals),
        "friction": np.full(len(a), friction),
        "bias": approach,
    }


def tower(contacts: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Cubes on each other, four contacts between two."""
    count = max(contacts // 4, 1)
    bodies = _boxes(count)
    bodies["velocity"][:, 0] = 0.02 * np.sin(np.arange(count))
    centres = np.column_stack([np.zeros((count, 2)), 0.5 + np.arange(count)])
    a = np.repeat(np.arange(count), 4)
    corners = np.tile([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]], (count, 1))
    points = np.column_stack([corners, a])
    return bodies, _columns(a, a - 1, points, np.tile([0.0, 0.0, 1.0], (4 * count, 1)), 0.5, centres)


def wall(contacts: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Bricks in running bond, four contacts with each of two below."""
    wide = max(int(np.sqrt(contacts / 8)), 1)
    high = max(round(contacts / 8 / wide), 1)
    centres = np.array([[2.0 * i + j % 2, 0.0, 0.5 + j] for j in range(high) for i in range(wide)])
    bodies = _boxes(len(centres), (2.0, 1.0, 1.0))
    bodies["velocity"][:, 0] = 0.05 * np.sin(1.0 + np.arange(len(centres)))
    found = []
    for j in range(high):
        for i in range(wide):
            for half in (0, 1):
                below = i - 1 + half + j % 2
                if j == 0 or 0 <= below < wide:
                    under = (j - 1) * wide + below if j else -1
                    x = centres[j * wide + i, 0] - 1.0 + half
                    found += [(j * wide + i, under, x + dx, dy, j) for dx in (0.0, 1.0) for dy in (-0.5, 0.5)]
    rows = np.array(found, float)
    a, b = rows[:, :2].astype(int).T
    return bodies, _columns(a, b, rows[:, 2:], np.tile([0.0, 0.0, 1.0], (len(rows), 1)), 0.4, centres)


def heap(contacts: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Cubes of a disturbed lattice in motion, three contacts between neighbours, all kinds of normals."""
    rng = np.random.default_rng(0)
    count = max(int(contacts / 7.5), 2)
    side = int(np.ceil(count ** (1 / 3)))
    lattice = np.array([[i, j, k] for k in range(side) for i in range(side) for j in range(side)], float)[:count]
    centres = lattice + rng.uniform(-0.1, 0.1, lattice.shape) + [0.0, 0.0, 0.5]
    a, b, points, normals = [], [], [], []
    for i in range(count):
        for j in range(i + 1, count):
            apart = centres[i] - centres[j]
            if np.linalg.norm(apart) < 1.15:
                apart /= np.linalg.norm(apart)
                for _ in range(3):
                    normal = apart + rng.normal(0.0, 0.25, 3)
                    a.append(i)
                    b.append(j)
                    points.append(0.5 * (centres[i] + centres[j]) + rng.normal(0.0, 0.25, 3) * (1.0 - np.abs(apart)))
                    normals.append(normal / np.linalg.norm(normal))
        if lattice[i, 2] == 0:
            for shift in ((-0.3, -0.3), (0.3, -0.2), (0.0, 0.35)):
                a.append(i)
                b.append(-1)
                points.append([centres[i, 0] + shift[0], centres[i, 1] + shift[1], 0.0])
                normals.append(np.array([0.0, 0.0, 1.0]))
    keep = np.sort(rng.permutation(len(a))[:contacts])
    bodies = _boxes(count)
    bodies["velocity"] += rng.normal(0.0, 0.05, (count, 6))
    chosen = [np.array(column)[keep] for column in (a, b, points, normals)]
    return bodies, _columns(*chosen, 0.5, centres)


def hollow(contacts: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """One body in a curved hollow: six ways to move."""
    rng = np.random.default_rng(0)
    q = rng.uniform(-1.0, 1.0, (contacts, 2))
    normals = np.column_stack([-0.2 * q, np.ones(contacts)])
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    bodies = _boxes(1, (2.0, 2.0, 1.0), 5.0)
    bodies["velocity"][0] = [0.05, 0.02, -FALL, 0.02, -0.05, 0.1]
    points = np.column_stack([q, 0.1 * (q * q).sum(axis=1)])
    world = np.full(contacts, -1)
    body, centre = np.zeros(contacts, int), np.array([[0.0, 0.0, 0.5]])
    return bodies, _columns(body, world, points, normals, 0.3, centre, rng.uniform(0.0, 1e-3, contacts))


SCENES = {"tower": tower, "wall": wall, "heap": heap, "one body in a hollow": hollow}
