"""Contact problems and what is true of their solutions, in plain NumPy: matrices, natural map, energies."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import warp as wp

from tangere.dynamics.solver import Solver, contact_rows, frames, joint_rows, rigid_bodies

#: Speed that gravity gives in a hundredth of a second [m/s].
FALL = 0.0981


@dataclass
class Solved:
    velocity: np.ndarray  #: (n, 6)
    impulse: np.ndarray  #: (m, 3)
    joint_impulse: np.ndarray  #: (k,)
    report: Any


@dataclass
class Problem:
    """Columns as the solver takes them, and the same problem as dense matrices."""

    bodies: dict[str, np.ndarray]
    rows: dict[str, np.ndarray] = field(default_factory=dict)
    joints: dict[str, np.ndarray] = field(default_factory=dict)

    def on(self, device: str | wp.Device) -> tuple[Any, Any, Any]:
        place = wp.get_device(device)
        rows = contact_rows(place, **self.rows) if self.rows else None
        joints = joint_rows(place, **self.joints) if self.joints else None
        return rigid_bodies(place, **self.bodies), rows, joints

    def solve(self, device: str = "cpu", **options: Any) -> Solved:
        return self.solve_by(Solver(device=device, **options))

    def solve_by(self, solver: Solver) -> Solved:
        bodies, rows, joints = self.on(solver.device)
        report = solver.solve(bodies, rows, joints=joints)
        impulse = rows.impulse.numpy() if rows else np.zeros((0, 3))
        joint_impulse = joints.impulse.numpy() if joints else np.zeros(0)
        return Solved(bodies.velocity.numpy().copy(), impulse.copy(), joint_impulse.copy(), report)

    # -- matrices ------------------------------------------------------------------------------------------------------

    @property
    def contacts(self) -> int:
        return len(self.rows.get("body_a", ()))

    @property
    def inverse_mass(self) -> np.ndarray:
        """M^-1, (6 n, 6 n)."""
        n = len(self.bodies["inverse_mass"])
        inverse = np.zeros((6 * n, 6 * n))
        for b in range(n):
            inverse[6 * b : 6 * b + 3, 6 * b : 6 * b + 3] = self.bodies["inverse_mass"][b] * np.eye(3)
            inverse[6 * b + 3 : 6 * b + 6, 6 * b + 3 : 6 * b + 6] = self.bodies["inverse_inertia"][b]
        return inverse

    @property
    def free(self) -> np.ndarray:
        return np.asarray(self.bodies["velocity"], float).reshape(-1)

    @property
    def jacobian(self) -> np.ndarray:
        """Contacts, (3 m, 6 n): rows normal, tangent, tangent of each."""
        m, n = self.contacts, len(self.bodies["inverse_mass"])
        j = np.zeros((m, 3, n, 6))
        other = self.rows.get("body_b", np.full(m, -1))
        arms = self.rows["arm_a"], self.rows.get("arm_b", np.zeros((m, 3)))
        for i in range(m):
            for body, arm, sign in ((self.rows["body_a"][i], arms[0][i], 1.0), (other[i], arms[1][i], -1.0)):
                if body >= 0:
                    frame = sign * self.rows["frame"][i]
                    j[i, :, body, :3] += frame
                    j[i, :, body, 3:] += np.cross(arm, frame)
        return j.reshape(3 * m, 6 * n)

    @property
    def bias(self) -> np.ndarray:
        return np.asarray(self.rows.get("bias", np.zeros((self.contacts, 3))), float).reshape(-1)

    @property
    def friction(self) -> np.ndarray:
        return np.asarray(self.rows.get("friction", np.zeros(self.contacts)), float)

    # -- truths --------------------------------------------------------------------------------------------------------

    def residual(self, solved: Solved, *, coulomb: bool = True, rows: np.ndarray | None = None) -> float:
        """The natural map of the cone problem [m/s], of all contacts or of `rows` (mask).

        Without the shift of De Saxcé if not `coulomb`. Where nobody can give way along a normal it is the approach.
        """
        j, mu = self.jacobian, self.friction
        u = (j @ solved.velocity.reshape(-1) + self.bias).reshape(-1, 3)
        if coulomb:
            u[:, 0] += mu * np.linalg.norm(u[:, 1:], axis=1)
        d = np.einsum("ij,jk,ik->i", j, self.inverse_mass, j).reshape(-1, 3).max(axis=1)
        r = solved.impulse
        natural = np.linalg.norm(r - project(r - u / np.where(d > 0.0, d, 1.0)[:, None], mu), axis=1) * d
        normal = np.einsum("ij,jk,ik->i", j, self.inverse_mass, j).reshape(-1, 3)[:, 0]
        stiff = normal <= 1e-12 * d
        approach = np.maximum(-(j @ solved.velocity.reshape(-1) + self.bias).reshape(-1, 3)[:, 0], 0.0)
        found = np.where(stiff, approach, natural)
        return float((found if rows is None else found[rows]).max(initial=0.0))

    def frictionless(self) -> np.ndarray:
        """Velocities (6 n,) without friction, by SciPy's non-negative least squares.

        Without bias as the nearest point of a cone, else by least-distance programming, where that routine now and then
        stops too early on redundant rows: so the answer is checked.
        """
        from scipy.optimize import nnls

        j, inverse = self.jacobian[::3], self.inverse_mass
        factor = np.zeros_like(inverse)
        for at in range(0, len(inverse), 3):
            values, axes = np.linalg.eigh(inverse[at : at + 3, at : at + 3])
            factor[at : at + 3, at : at + 3] = axes * np.sqrt(np.maximum(values, 0.0))
        rows = j @ factor
        lack = -self.bias[::3] - j @ self.free
        scale = lack.max(initial=0.0)
        if scale <= 0.0:
            return self.free
        if not self.bias.any():
            start = -np.linalg.lstsq(factor, self.free, rcond=None)[0]
            answer = self.free + factor @ rows.T @ nnls(rows.T, start, maxiter=100 * len(rows))[0]
        else:
            system = np.vstack([rows.T, lack[None] / scale])
            target = np.eye(len(system))[-1]
            rest = system @ nnls(system, target, maxiter=100 * system.shape[1])[0] - target
            answer = self.free - scale * factor @ (rest[:-1] / rest[-1])
        assert (j @ answer + self.bias[::3]).min() >= -1e-10
        return answer

    def by_clarabel(self, tolerance: float = 1e-9) -> Solved:
        """Convex friction by Clarabel, an interior-point solver of cone programs."""
        import clarabel
        from scipy import sparse

        mu, mass = self.friction, np.linalg.inv(self.inverse_mass)
        scale = sparse.diags(np.stack([np.ones_like(mu), mu, mu], axis=1).reshape(-1))
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
        solution = clarabel.DefaultSolver(
            sparse.triu(mass).tocsc(),
            -(mass @ self.free),
            sparse.csc_matrix(-(scale @ self.jacobian)),
            scale @ self.bias,
            [clarabel.SecondOrderConeT(3)] * len(mu),
            settings,
        ).solve()
        impulse = (scale @ np.array(solution.z)).reshape(-1, 3)
        return Solved(np.array(solution.x).reshape(-1, 6), impulse, np.zeros(0), solution)

    def kinetic_energy(self, velocity: np.ndarray) -> float:
        """Of bodies that move."""
        energy = 0.0
        for b, v in enumerate(velocity.reshape(-1, 6)):
            if self.bodies["inverse_mass"][b] > 0.0:
                energy += 0.5 * v[:3] @ v[:3] / self.bodies["inverse_mass"][b]
                energy += 0.5 * v[3:] @ np.linalg.pinv(self.bodies["inverse_inertia"][b]) @ v[3:]
        return float(energy)

    def unbalance(self, solved: Solved) -> float:
        """How far Newton's law is from holding [m/s]."""
        impulses = self.jacobian.T @ solved.impulse.reshape(-1)
        return float(np.abs(solved.velocity.reshape(-1) - self.free - self.inverse_mass @ impulses).max())


def project(x: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """The points of the cones |x_t| <= mu x_n nearest to x (m, 3)."""
    n, t = x[:, 0], np.linalg.norm(x[:, 1:], axis=1)
    height = np.maximum((n + mu * t) / (1.0 + mu * mu), 0.0)
    scale = mu * height / np.maximum(t, 1e-300)
    outside = np.column_stack([height, scale * x[:, 1], scale * x[:, 2]])
    return np.where(((t <= mu * n) & (n >= 0.0))[:, None], x, outside)


def boxes(count: int, size=(1.0, 1.0, 1.0), mass=1.0) -> dict[str, np.ndarray]:
    """Bodies of solid boxes."""
    x, y, z = size
    inertia = np.diag([y * y + z * z, x * x + z * z, x * x + y * y]) * mass / 12.0
    inverse = np.tile(np.linalg.inv(inertia), (count, 1, 1))
    return {"inverse_mass": np.full(count, 1.0 / mass), "inverse_inertia": inverse, "velocity": np.zeros((count, 6))}


def tower(count: int, friction: float = 0.5) -> Problem:
    """Cubes on each other, four contacts between two, that begin to fall and to shift."""
    bodies = boxes(count)
    level = np.arange(count)
    bodies["velocity"][:, 2] = -FALL
    bodies["velocity"][:, 0] = 0.02 * np.sin(level)
    corners = np.tile([[-0.5, -0.5, 0.0], [0.5, -0.5, 0.0], [0.5, 0.5, 0.0], [-0.5, 0.5, 0.0]], (count, 1))
    body = np.repeat(level, 4)
    return Problem(
        bodies,
        {
            "body_a": body,
            "body_b": body - 1,
            "arm_a": corners - [0.0, 0.0, 0.5],
            "arm_b": np.where(body[:, None] > 0, corners + [0.0, 0.0, 0.5], 0.0),
            "frame": np.tile(frames([[0.0, 0.0, 1.0]]), (4 * count, 1, 1)),
            "friction": np.full(4 * count, friction),
            "bias": np.zeros((4 * count, 3)),
        },
    )


def wall(high: int, wide: int, friction: float = 0.4) -> Problem:
    """Bricks in running bond, four contacts with each of two below, that begin to fall and to shift."""
    place = [(2.0 * i + j % 2, 0.5 + j) for j in range(high) for i in range(wide)]
    bodies = boxes(len(place), (2.0, 1.0, 1.0))
    bodies["velocity"][:, 2] = -FALL
    bodies["velocity"][:, 0] = 0.05 * np.sin(1.0 + np.arange(len(place)))
    found = []
    for j in range(high):
        for i in range(wide):
            for half in (0, 1):
                below = i - 1 + half + j % 2
                if j and not 0 <= below < wide:
                    continue
                x = place[j * wide + i][0] - 1.0 + half
                under = (j - 1) * wide + below if j else -1
                found += [(j * wide + i, under, x + dx, dy, float(j)) for dx in (0.0, 1.0) for dy in (-0.5, 0.5)]
    rows = np.array(found)
    a, b, points = rows[:, 0].astype(int), rows[:, 1].astype(int), rows[:, 2:]
    centre = np.array([[x, 0.0, z] for x, z in place])
    count = len(rows)
    columns = {"body_a": a, "body_b": b, "frame": np.tile(frames([[0.0, 0.0, 1.0]]), (count, 1, 1))}
    columns |= {"arm_a": points - centre[a], "arm_b": np.where(b[:, None] >= 0, points - centre[b], 0.0)}
    return Problem(bodies, columns | {"friction": np.full(count, friction), "bias": np.zeros((count, 3))})


def dimple(contacts: int, friction: float = 0.3, seed: int = 0) -> Problem:
    """One body in a hollow: many contacts, six ways to move."""
    rng = np.random.default_rng(seed)
    q = rng.uniform(-1.0, 1.0, (contacts, 2))
    points = np.column_stack([q, 0.1 * (q * q).sum(axis=1)])
    normals = np.column_stack([-0.2 * q, np.ones(contacts)])
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    bodies = boxes(1, (2.0, 2.0, 1.0), 5.0)
    bodies["velocity"][0] = [0.05, 0.02, -FALL, 0.02, -0.05, 0.1]
    bias = np.zeros((contacts, 3))
    bias[:, 0] = rng.uniform(0.0, 1e-3, contacts)
    columns = {"body_a": np.zeros(contacts, int), "body_b": np.full(contacts, -1), "arm_a": points - [0.0, 0.0, 0.5]}
    columns |= {"arm_b": np.zeros((contacts, 3)), "frame": frames(normals), "bias": bias}
    return Problem(bodies, columns | {"friction": np.full(contacts, friction)})


def heap(contacts: int, friction: float = 0.5, seed: int = 0) -> Problem:
    """Cubes that tumble: contacts of every direction between neighbours in a lattice, and with the ground."""
    rng = np.random.default_rng(seed)
    count = max(contacts // 7, 2)
    side = int(np.ceil(count ** (1 / 3)))
    lattice = np.array([[i, j, k] for k in range(side) for i in range(side) for j in range(side)], float)[:count]
    place = lattice + rng.uniform(-0.1, 0.1, lattice.shape) + [0.0, 0.0, 0.5]
    touching = []
    for i in range(count):
        touching += [(i, j) for j in range(i) if np.linalg.norm(place[i] - place[j]) < 1.15]
        touching += [(i, -1)] if lattice[i, 2] == 0 else []
    pairs = np.array([touching[k % len(touching)] for k in range(contacts)])
    a, b = pairs[np.argsort(np.arange(contacts) % len(touching), kind="stable")].T
    under = place[a] * [1.0, 1.0, 0.0]
    other = np.where(b[:, None] >= 0, place[b], under)
    normal = place[a] - other
    normal = normal / np.linalg.norm(normal, axis=1, keepdims=True) + rng.normal(0.0, 0.25, normal.shape)
    normal = np.where(b[:, None] >= 0, normal, [0.0, 0.0, 1.0])
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    point = np.where(b[:, None] >= 0, 0.5 * (place[a] + other), under) + rng.normal(0.0, 0.2, under.shape)
    bodies = boxes(count)
    bodies["velocity"] = rng.normal(0.0, 0.05, (count, 6)) - [0.0, 0.0, FALL, 0.0, 0.0, 0.0]
    arms = {"arm_a": point - place[a], "arm_b": np.where(b[:, None] >= 0, point - place[b], 0.0)}
    columns = {"body_a": a, "body_b": b, "frame": frames(normal), "friction": np.full(contacts, friction)}
    return Problem(bodies, columns | arms | {"bias": np.zeros((contacts, 3))})
