"""The solver of contact problems: islands, rows, sweeps, and the interior point where sweeps make no headway.

Question: with which velocities and impulses do bodies obey all their contacts and joints?
Method:   islands are found and solved independently, in parallel. "gauss_seidel": warm-started sweeps.
          "interior_point": a convex problem and twenty sweeps in turn, until a round makes no more headway. "auto":
          sweeps; islands that these cannot take below what is good, and that do not slide much faster than their
          residual, go to the interior point, and keep the better answer.
Sound:    the residual of what is returned is told for each island. Input that is not finite is refused, and then
          nothing has been changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from tangere.dynamics.solver.chosen_islands import MOST_ITERATIONS, ChosenIslands, InteriorOptions
from tangere.dynamics.solver.gauss_seidel import NOT_FINITE, SOLVED, STAGNANT, IslandReport, SweepOptions, sweep_islands
from tangere.dynamics.solver.growing_struct import GrowingStruct, address_of
from tangere.dynamics.solver.islands import NONE, Islands
from tangere.dynamics.solver.problem import ContactRowArrays, JointRowArrays, RigidBodyArrays, reserve
from tangere.dynamics.solver.whitened_rows import (
    WhitenedRows,
    whiten_bodies,
    whiten_contacts,
    whiten_joints,
    write_contact_impulses,
    write_joint_impulses,
    write_velocities,
)
from tangere.runtime import (
    InputError,
    NonCopyable,
    PreparedLaunch,
    choose_device,
    not_negative,
    on_own_threads,
    whole,
)

METHODS = ("auto", "gauss_seidel", "interior_point")
LAWS = ("coulomb", "convex")
#: A residual below this part of the speed at which contacts slide is as good as it needs to be: bodies that tumble.
SLIDING_PART = 0.2
#: Convex problems of one island at most, each with the shift that sweeps after the last one left.
ROUNDS = 8
#: Sweeps after a convex problem.
ROUND_SWEEPS = 20
#: A round that leaves more than this part of the residual is the last one.
HEADWAY = 0.3
#: Products of blocks for each row that a factor may take, in "auto": heaps of thousands of bodies stay with sweeps.
MOST_PRODUCTS = 5.0
#: Islands of more rows are swept to the end before they may go to the interior point: of many bodies most tumble.
PATIENT = 200
#: Threads of a GPU for each island, of which one works: in a warp of their own, islands do not wait for each other.
WARP = 32
#: Rows worth a CPU thread: a hundred sweeps over them take as long as it takes to wake one.
ROWS_A_THREAD = 64


@dataclass(frozen=True)
class SolverReport:
    """What a solve came to, island by island; islands are numbered by their first body."""

    islands: int  #: how many there are
    residual: np.ndarray  #: how far the rows of each island are from their laws, by the natural map [m/s]
    iterations: np.ndarray  #: sweeps of each island, and iterations of the interior point
    interior: int  #: how many islands went to the interior point

    @property
    def worst(self) -> float:
        """The largest residual [m/s]; 0 without islands."""
        return float(self.residual.max(initial=0.0))


class Solver(NonCopyable):
    """Solves contact problems on one device, again and again; arrays and launches are kept.

    Args:
        device: where the problems are.
        method: "gauss_seidel", "interior_point", or "auto": sweeps, and the interior point where they stagnate.
        law: of friction: "coulomb", or "convex": a sliding contact opens as if it climbed (associated friction), which
            makes the answer unique; by interior point.
        sweeps: at most so many sweeps of Gauss-Seidel.
        tolerance: sweeps end when no relative velocity changes by more [m/s].
        good: residual that sweeps must be able to reach, else "auto" turns to the interior point [m/s].
        threads: CPU threads; None means `thread_count()`.
    """

    def __init__(
        self,
        *,
        device: str | wp.Device | None = None,
        method: str = "auto",
        law: str = "coulomb",
        sweeps: int = 150,
        tolerance: float = 1e-7,
        good: float = 1e-5,
        threads: int | None = None,
    ) -> None:
        self.device = choose_device(device)
        if method not in METHODS:
            raise InputError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
        if law not in LAWS:
            raise InputError(f"law must be one of {', '.join(LAWS)}, not {law!r}")
        if law == "convex" and method == "gauss_seidel":
            raise InputError('law="convex" needs the interior point: method must be "auto" or "interior_point"')
        self.method, self.law, self.threads = method, law, threads
        if law == "convex":
            self.method = "interior_point"
        self.sweeps, self.tolerance = whole(sweeps, "sweeps"), not_negative(tolerance, "tolerance")
        self.good = not_negative(good, "good")
        self._islands = Islands(self.device)
        self._rows = GrowingStruct(
            WhitenedRows(), self.device, lambda name: {"c_": "contacts", "j_": "joints"}.get(name[:2], "bodies")
        )
        self._report = GrowingStruct(IslandReport(), self.device, lambda name: "islands")
        self._no_contacts, self._no_joints = ContactRowArrays(), JointRowArrays()
        reserve(self._no_contacts, 1, self.device)
        reserve(self._no_joints, 1, self.device)
        self._chosen = ChosenIslands(self.device, MOST_PRODUCTS if self.method == "auto" else np.inf)
        self._sliding = wp.full(1, SLIDING_PART, dtype=wp.float64, device=self.device)
        self._thorough = False
        self._apart = WARP if self.device.is_cuda else 1
        self._large: Any = None
        self._since, self._host_since = wp.zeros(1, dtype=wp.int32, device=self.device), 0
        self._opening, self._polishing, self._interior = self._options()
        self._launches: dict[str, PreparedLaunch] = {}
        self._key: tuple = ()
        if self.device.is_cuda:
            self._use_blocks()

    @property
    def islands(self) -> Islands:
        """The islands of the last problem, on the device."""
        return self._islands

    @property
    def thorough(self) -> bool:
        """Whether "auto" takes islands to the interior point that slide, too: slower, where sliding parts are pulled
        tight. False at first."""
        return self._thorough

    @thorough.setter
    def thorough(self, value: bool) -> None:
        if value != self._thorough:
            self._thorough = bool(value)
            self._sliding.fill_(0.0 if value else SLIDING_PART)

    @on_own_threads
    def solve(
        self,
        bodies: RigidBodyArrays,
        contacts: ContactRowArrays | None = None,
        count: int | None = None,
        joints: JointRowArrays | None = None,
        joint_count: int | None = None,
        since: int = 0,
    ) -> SolverReport:
        """Change the velocities of `bodies` and the impulses of the rows from free to solved.

        Args:
            contacts, joints: rows; their impulses are where the solver begins.
            count, joint_count: how many of them count; None means as many as there is room for.
            since: contacts before this one were solved for in the last solve, from the same velocities and with the
                same joints: islands that have got no others keep the answer they have. 0 means that all are new.
        """
        body_count = len(bodies.inverse_mass)
        if contacts is None:
            contacts, count = self._no_contacts, 0
        if joints is None:
            joints, joint_count = self._no_joints, 0
        count = len(_arrays(contacts)[0]) if count is None else count
        joint_count = len(_arrays(joints)[0]) if joint_count is None else joint_count
        counts = {"bodies": body_count, "contacts": count, "joints": joint_count}
        given = tuple(map(address_of, (bodies, contacts, joints)))
        islands = self._islands.find(bodies, body_count, contacts, count, joints, joint_count, given)
        self._rows.reserve(**counts)
        self._report.reserve(islands=islands)
        key = (*given, self._islands.version, self._rows.version, self._report.version)
        launches = self._prepared(bodies, contacts, joints, key)
        interior = 0
        if islands:
            launches["bodies"](body_count)
            launches["contacts"](count)
            launches["joints"](joint_count)
            if since != self._host_since:
                self._host_since = -1  # unknown, where this is interrupted
                self._since.fill_(since)
                self._host_since = since
            sweeps = launches["sweeps"]
            sweeps.grain = max(1, islands * ROWS_A_THREAD // (count + joint_count))
            sweeps(islands * self._apart)
            if self._large is not None and self._islands.largest(islands) > PATIENT:
                about = (self._islands.arrays, self._rows.struct, self._opening, self._report.struct)
                self._large.sweep(*about, islands, count, joint_count)
            status = self._report.read("status", islands)
            if (status == NOT_FINITE).any():
                self._refuse_not_finite(bodies, contacts, joints)
            everything = self.method == "interior_point"
            chosen = np.flatnonzero(status != SOLVED if everything else status == STAGNANT)
            if len(chosen):
                options = (self._polishing, self._interior, self._report.struct)
                interior = self._chosen.solve(chosen, self._islands, self._rows.struct, *options, counts, key)
            launches["velocities"](body_count)
        launches["contact impulses"](count)
        launches["joint impulses"](joint_count)
        residual, iterations = (self._report.read(name, islands).copy() for name in ("residual", "iterations"))
        return SolverReport(islands, residual, iterations, interior)

    def _options(self) -> tuple[Any, Any, Any]:
        """Sweeps before the interior point and after it, and the interior point itself."""
        opening, polishing, interior = SweepOptions(), SweepOptions(), InteriorOptions()
        for sweeps in (opening, polishing):
            sweeps.most, sweeps.tolerance, sweeps.good = self.sweeps, self.tolerance, 0.0
            sweeps.sliding, sweeps.patient = self._sliding, PATIENT
            sweeps.since, sweeps.apart, sweeps.alone = self._since, self._apart, NONE
        if self.method == "auto":
            opening.good = self.good
        if self.method == "interior_point":
            opening.most = min(self.sweeps, ROUND_SWEEPS) if self.law == "coulomb" else 0
        interior.tolerance, interior.iterations = 0.1 * self.tolerance, MOST_ITERATIONS
        interior.rounds, interior.sweeps, interior.headway = ROUNDS, ROUND_SWEEPS, HEADWAY
        interior.good = self.good if self.method == "auto" else self.tolerance
        interior.convex = self.law == "convex"
        if interior.convex:  # the first problem is the answer
            interior.rounds, interior.sweeps = 1, 0
        return opening, polishing, interior

    def _use_blocks(self) -> None:
        """From now on leave islands of many rows to blocks of threads."""
        from tangere.dynamics.solver.cuda.block_sweeps import LargeIslands

        self._large, self._opening.alone = LargeIslands(self.device), PATIENT

    def _prepared(self, bodies: Any, contacts: Any, joints: Any, key: tuple) -> dict[str, PreparedLaunch]:
        """The launches over these arrays; made anew when one of them is another."""
        if key == self._key:
            return self._launches
        islands, rows, report, device = self._islands.arrays, self._rows.struct, self._report.struct, self.device
        arguments = {
            "bodies": (whiten_bodies, [bodies, rows]),
            "contacts": (whiten_contacts, [bodies, contacts, islands, rows]),
            "joints": (whiten_joints, [bodies, joints, islands, rows]),
            "sweeps": (sweep_islands, [islands, rows, self._opening, report]),
            "velocities": (write_velocities, [rows, islands, bodies]),
            "contact impulses": (write_contact_impulses, [rows, islands, contacts]),
            "joint impulses": (write_joint_impulses, [rows, islands, joints]),
        }
        self._launches = {name: PreparedLaunch(*given, device) for name, given in arguments.items()}
        self._key = key
        return self._launches

    def _refuse_not_finite(self, bodies: Any, contacts: Any, joints: Any) -> None:
        for what, rows in (("bodies", bodies), ("contacts", contacts), ("joints", joints)):
            for name, array in zip(rows._cls.vars, _arrays(rows), strict=True):
                values = array.numpy()
                bad = np.argwhere(~np.isfinite(values) & ~((name in ("lower", "upper")) & np.isinf(values)))
                if len(bad):
                    raise InputError(f"{what}.{name}[{bad[0][0]}] is not finite")
        raise InputError(
            "an inverse mass or inertia is negative, a lower bound is above the upper one, or forces or speeds are so"
            " large that their products are not finite"
        )


def _arrays(rows: Any) -> list[wp.array]:
    return [getattr(rows, name) for name in rows._cls.vars]
