"""One step of a world: the buffers that its phases share, and what each phase does.

Question: where are all bodies after the next `dt`, so that no two of them ever meet on the way?
Method:   velocity-level time stepping (Moreau and Jean) on contacts gathered before they touch, with the second-order
          terms of Redon 2002 (5.8) in every row; the step is then walked with first contact, pair by pair. What it
          still hits becomes a row, and the step is solved again; where that does not end the step is made in parts, and
          what the smallest parts still hit is truncated, body by body.
Sound:    a state is accepted only when every pair of bodies is certified to stay apart on the way there.
          Truncation runs until nobody is hit, however bad the solver. A step is done or undone as a whole (`save`,
          `restore`).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from tangere.dynamics.analytic.hits import NO_HITS
from tangere.dynamics.body import Body
from tangere.dynamics.contact.flights import Flights
from tangere.dynamics.contact.hits import hits_apart, pose_bodies
from tangere.dynamics.contact.pairs import BodyPairs, pair_filters
from tangere.dynamics.contact.row_set import RowSet
from tangere.dynamics.contact.rows import Distances
from tangere.dynamics.joint import WorldJoint
from tangere.dynamics.joints.rows import JointRows
from tangere.dynamics.material import SurfaceKinds
from tangere.dynamics.saved_arrays import SavedArrays
from tangere.dynamics.solver import RigidBodyArrays, Solver, SolverReport, vec6d
from tangere.dynamics.state import body_table, collision_mesh, copy_state, empty_state, read_poses, start_state
from tangere.dynamics.stepping.closing import JointClosing
from tangere.dynamics.stepping.energy_cap import EnergyCap
from tangere.dynamics.stepping.events import NO_IMPACTS, WorldImpacts, all_impacts, impacts_of
from tangere.dynamics.stepping.free_motion import find_end, find_motion, move, predict
from tangere.dynamics.stepping.gather import PairLimits, add_motion, find_reach
from tangere.dynamics.stepping.jams import Jams
from tangere.dynamics.stepping.options import FASTEST, GOOD, SPLIT, SPLITS, WorldOptions
from tangere.dynamics.stepping.report import StepTally
from tangere.dynamics.stepping.sleep import Sleepers
from tangere.dynamics.stepping.stalls import StalledMotors
from tangere.dynamics.stepping.walk import CertifiedWalk, KnownGaps
from tangere.dynamics.stepping.walk_hits import WalkHits
from tangere.dynamics.validation import overlapping_pairs, refuse_overlaps, refuse_sunken
from tangere.query.contacts import Contacts
from tangere.query.first_contact import PreparedFirstContact
from tangere.query.proximity.posed import PosedContacts, PosedProximity, reduce
from tangere.runtime import InputError, PreparedLaunch

if TYPE_CHECKING:
    from tangere.dynamics.analytic.analytic_rows import AnalyticRows

#: Security distances within which contacts are gathered: eps_r of Redon 2002 in terms of eps_s.
RUPTURE = 2.3
#: Of the play and of a pair's own clearance: what the walk keeps, also where more than the chosen separation is kept.
HELD, HELD_LARGE = 0.4, 0.9
#: Times a step is solved again with what it hit.
ROUNDS = 8
#: Times after which a step, or a part of one, that still hits something is split.
SPLIT_ROUNDS = 6
#: Times it is so without the interior point for what slides, and without trust in early hits.
QUICK_ROUNDS = 2
#: Rounds of truncation after which whoever is hit stays where it is.
TRUNCATION_ROUNDS = 8
#: Rounds in which contacts below their target are moved apart too; from which part of the security distance on.
PLACEMENT_ROUNDS, LEAST_LACK = 2, 1e-3
#: Times the largest lack that it may move a body.
MOST_PLACED = 4.0
#: Contacts a pair of bodies keeps; one left out comes back as a hit.
CONTACTS_PER_PAIR = 12


class WorldStep:
    """The state of all bodies, the buffers of a step, and its phases as methods: what `World.phases` calls.

    Who replaces a phase finds here what it reads and writes: `state` is where the bodies are and how fast, `free` the
    velocities without contacts, `rows` and `joints` what binds them, `motion` how they go, `part` how much of it.

    Args:
        ignored: (k, 2) pairs that are not compared.
        worlds: (n,) the world of each body, rising, of which only those of one are compared; None means one world.
    """

    def __init__(
        self,
        bodies: Sequence[Body],
        options: WorldOptions,
        surfaces: SurfaceKinds,
        ignored: np.ndarray,
        device: wp.Device,
        worlds: np.ndarray | None = None,
    ) -> None:
        self.bodies, self.options, self.device = tuple(bodies), options, device
        self._worlds = np.zeros(len(bodies), np.int32) if worlds is None else worlds
        self.steps = 0  #: made so far
        self.lock = threading.RLock()  #: who steps, puts or reads holds it, so that nobody meets half a step
        count = len(bodies)
        self.surfaces = surfaces
        self.table = body_table(bodies, surfaces, device)
        self.state = start_state(bodies, self.table, device)
        self._saved_arrays, self._saved = SavedArrays(), {}
        self._before = empty_state(count, device)  #: where a part of a step began
        self.load = wp.array([[*body.force, *body.torque] for body in bodies], dtype=vec6d, device=device)
        self.free, self.motion, self.end = (wp.zeros(count, dtype=vec6d, device=device) for _ in range(3))
        self.origin = wp.zeros(count, dtype=wp.vec3d, device=device)
        self.part = wp.full(count, 1.0, dtype=wp.float64, device=device)  #: of its motion that each body goes
        tireless = np.array([not body.moves for body in bodies])
        self.sleepers = Sleepers(self.table.radius.numpy(), tireless, device)
        self.asleep = self.sleepers.array
        self.solved: Any = RigidBodyArrays()
        self.solved.inverse_mass = wp.zeros(count, dtype=wp.float64, device=device)
        self.solved.inverse_inertia = wp.zeros(count, dtype=wp.mat33d, device=device)
        self.solved.velocity = wp.zeros(count, dtype=vec6d, device=device)
        self.placement: Any = RigidBodyArrays()  #: moves bodies, not their velocities
        self.placement.inverse_mass = self.solved.inverse_mass
        self.placement.inverse_inertia = self.solved.inverse_inertia
        self.placement.velocity = wp.zeros(count, dtype=vec6d, device=device)
        self.distances: Any = Distances()
        self.distances.security, self.distances.kept = options.security, options.kept
        self.distances.rest = options.rest_speed
        self.distances.held = HELD_LARGE if options.kept > 0.0 else HELD
        self.distances.dt = wp.full(1, options.dt, dtype=wp.float64, device=device)
        self.length = options.dt  #: of the part of a step that is made now [s]
        self.level, self._left = 0, 0  #: parts are 1 / SPLIT^level of a step; how many of the smallest are to be made
        self.rows = RowSet(
            bodies, surfaces, self.table, self.state, self.motion, self.distances, options.second_order, device
        )
        self.joints = JointRows(
            bodies, self.table, self.state, self.free, self.motion, self.part, self.solved, self.distances.dt, device
        )
        about: dict[str, Any] = {"device": device, "sweeps": options.sweeps, "threads": options.threads}
        about |= {"tolerance": options.tolerance, "good": GOOD * options.tolerance}
        self.solver, self._placer = Solver(**about), Solver(**about)
        self._motors = StalledMotors(self.solver, self.rows, self.joints, self.solved, self.table)
        self._strayed = self._opened = False  #: whether joints were left far open, and smaller steps may help
        self._closing = JointClosing(
            Solver(**about), self.table, self.solved, self.rows, self.joints, self.motion, self.distances.dt, device,
        )  # fmt: skip
        self.bouncing = bool(surfaces.restitution.max() > 0.0)
        self._flights = Flights(
            self.solver, self.rows, self.state, self.solved, self.free, self.motion, self.end, self.distances, device
        )
        self._bounces = False
        self._energy = EnergyCap(
            self.table, options.gravity, self.load, self._before, self.state, self.motion, self.part,
            self.placement.velocity, self.distances, device,
        )  # fmt: skip
        self.tally = StepTally()  #: what steps held back
        self.jams = Jams(count)  #: who is held back again and again
        meshes = [collision_mesh(body) for body in bodies]
        self.near = PosedProximity(meshes, device=device, threads=options.threads)
        standing = np.array([body.ground is None for body in bodies])
        self._size = float(np.median(self.table.radius.numpy()[standing | ~standing.any()]))  #: that tells rows apart
        self.analytic: AnalyticRows | None = None  #: what holds bodies above ground, and analytic ones apart
        if not standing.all() or any(body.is_curved for body in bodies):
            from tangere.dynamics.analytic.analytic_rows import AnalyticRows

            self.analytic = AnalyticRows(
                bodies,
                self._worlds,
                self.rows,
                self.state,
                self.table,
                self.motion,
                self.asleep,
                self.distances,
                device,
            )
        self._first_contact = PreparedFirstContact(meshes, device=device, threads=options.threads)
        self._ignored = ignored
        self._still = np.array([body.fixed for body in bodies])
        self._prepare()
        self._hits = WalkHits()  #: that are left for `truncate`
        self._found: PosedContacts | None = None  #: what is near where the step begins
        self._islands, self._placed = 0, False
        self._impacts: list[WorldImpacts] = []  #: of the parts of a step, where there are several
        self._checked = False
        self.overlapping: tuple[tuple[int, int], ...] = ()  #: pairs that are not compared, where they were put

    def _prepare(self) -> None:
        """Launches over the arrays of bodies, and who looks at pairs of them."""
        device, options, count = self.device, self.options, len(self.bodies)
        dt, gravity = self.distances.dt, wp.vec3d(*options.gravity)
        filter, of_formulas = pair_filters(self.bodies, self._worlds, self._ignored, device)
        way, reach = (wp.zeros(count, dtype=wp.float64, device=device) for _ in range(2))
        self._way = way
        self._most_placed = wp.zeros(1, dtype=wp.float64, device=device)
        table, state, solved, held = self.table, self.state, self.solved, self.table.held

        def prepared(kernel: wp.Kernel, *arguments: Any) -> PreparedLaunch:
            return PreparedLaunch(kernel, arguments, device, dim=count, grain=512)

        self._predict = prepared(
            predict, table, state, self.load, self.asleep, gravity, dt, options.order,
            solved.inverse_mass, solved.inverse_inertia, self.origin, self.free,
        )  # fmt: skip
        self._find_motion = prepared(
            find_motion, table, state, self.load, self.asleep, self.free, solved.velocity, dt, options.order,
            self.motion, self.end,
        )  # fmt: skip
        self._find_end = prepared(find_end, held, self.free, solved.velocity, self.end)
        self._move = prepared(move, table, self.motion, self.end, self.free, self.part, options.order, state)
        self._find_reach = prepared(
            find_reach, table, state, self.free, self.distances, RUPTURE, self.motion, way, reach
        )
        self._when = wp.zeros(count, dtype=wp.float64, device=device)
        self._rotation_then = wp.zeros(count, dtype=wp.mat33d, device=device)
        self._origin_then = wp.zeros(count, dtype=wp.vec3d, device=device)
        self._pose = prepared(
            pose_bodies, self._when, table, state, self.motion, self._rotation_then, self._origin_then
        )
        self._add_motion = prepared(add_motion, self.placement.velocity, table, dt, self._most_placed, self.motion)
        self._near_pairs = BodyPairs(table, state, self.motion, reach, self.asleep, filter, device)
        if self.analytic is not None:
            self.analytic.compare(of_formulas, reach)
        self._walk = CertifiedWalk(
            self._first_contact, table, state, self.origin, self.motion, self.part, self.asleep, filter,
            self.distances, device,
        )  # fmt: skip
        self._gaps: Any = KnownGaps()
        self._gaps.count = wp.zeros(1, dtype=wp.int32, device=device)
        self._gaps.beyond = 2.0 * RUPTURE * options.security + options.kept
        self._no_gaps = wp.zeros(1, dtype=wp.float64, device=device)
        self._limits = PairLimits(way, self.distances, RUPTURE, device)

    # -- phases --------------------------------------------------------------------------------------------------------

    def predict(self) -> None:
        """Velocities without contacts."""
        self._predict.run()

    def gather(self) -> None:
        """What may be met in the step: pairs of bodies, their gaps, and the contacts among them; who is met wakes."""
        self._gather()
        while self.rows.count and self.sleepers.touched(*self.rows.bodies()):
            self.predict()
            self._gather()

    def _gather(self) -> None:
        self._found = None
        self._find_reach.run()
        pairs = self._near_pairs.find()
        self.tally.pairs = pairs
        self.joints.gather()
        self.rows.clear()
        if pairs:
            self._gather_pairs(pairs)
        else:
            self._use_gaps(0, self._no_gaps)
        if self.analytic is not None:
            self.tally.pairs += self.analytic.gather(self._way.numpy(), ~self.sleepers.asleep)

    def _gather_pairs(self, pairs: int) -> None:
        listed = self._near_pairs.pairs[:pairs]
        limits = self._limits.of(self._near_pairs.pairs, pairs)
        found = self.near.find(listed, self.state.rotation, self.origin, limits)
        self._found = found  # whose arrays the walk reads
        self._use_gaps(pairs, found.results.least)
        chosen = reduce(found, self._size, CONTACTS_PER_PAIR)
        if chosen.count:
            self.rows.make(found.columns, chosen.rows, chosen.count, self._near_pairs.pairs)

    def respond(self) -> None:
        """Solve all rows, and find how the bodies go."""
        self._solve()
        while self._strayed and self.level < SPLITS:
            self.split(self.level + 1)
            self.predict()
            self.gather()
            self._solve()

    def walk(self) -> None:
        """Look where the motion goes; what it hits becomes a row, and the step is solved again."""
        hits = self._walk_rounds()
        while self.level < SPLITS and (self._strayed or (len(hits) and not self.jams.explain(hits.pairs))):
            self.split(self.level + 1)
            self.predict()
            self.gather()
            self.respond()
            hits = self._walk_rounds()
        self._hits = hits

    def _walk_rounds(self) -> WalkHits:
        """What is still hit, at the end of as many rounds as are worth it."""
        self.part.fill_(1.0)
        hits = self._ask(self._walk.begin())
        for number in range(1, (ROUNDS if self.level == SPLITS else SPLIT_ROUNDS) + 1):
            if not len(hits) or (number > 1 and self.jams.explain(hits.pairs)):
                break
            if self.sleepers.touched(*hits.pairs.T):
                self.solver.thorough = False
                self.predict()
                self.gather()
                self.respond()
                return self._walk_rounds()
            known, thorough = self.rows.count, number > QUICK_ROUNDS
            self.rows.trust_early_hits(thorough)
            self._add_hits(hits)
            self.tally.solved_again += 1
            self.solver.thorough = thorough
            if number >= PLACEMENT_ROUNDS:  # all others are moved as before: without it they would be hit
                hits.clear_bodies(self.placement.velocity, self.solver.islands.arrays.number)
            self._solve(with_placement=number < PLACEMENT_ROUNDS, since=known)
            hits = self._ask(self._walk.begin(struck=hits.pairs), changed=True)
        self.solver.thorough = False
        return hits

    def _ask(self, answer: Any, changed: bool = False) -> WalkHits:
        """Who is hit: pairs of an answer of the walk, and analytic bodies, of which only those that `changed`."""
        hits = NO_HITS
        if self.analytic is not None:
            asked = self._walk.changed.numpy() != 0 if changed else ~self.sleepers.asleep
            hits = self.analytic.walk(self.motion.numpy() * self.part.numpy()[:, None], asked)
        return WalkHits.of(answer, self._walk.pairs, hits)

    def _add_hits(self, hits: WalkHits) -> None:
        """Rows of what the walk ran into."""
        between = hits.between
        if len(between):
            self.rows.add_hits(self._walk.pairs, hits.answer, between)
            self._add_near_hits(hits.pairs[: len(between)], hits.times[: len(between)])
        if self.analytic is not None and len(hits.analytic.times):
            self.analytic.add_hits(hits.analytic, self.motion.numpy(), self._way.numpy())

    def truncate(self) -> None:
        """Whoever is still hit goes only so far; again, until nobody is."""
        hits, rounds, self._hits = self._hits, 0, WalkHits()
        part, opened = np.ones(len(self.bodies)), self._opened
        while len(hits) or opened:
            times = hits.times if rounds < TRUNCATION_ROUNDS else np.zeros(len(hits))
            before = part.copy()
            for body in hits.pairs.T:
                np.minimum.at(part, body, before[body] * times)
            part = self.joints.together(part, opened)
            opened = False
            part[self._still] = 1.0  # who never moves loses no time
            self.part.assign(part)
            self._walk.changed.assign((part != before).astype(np.uint8))
            rounds += 1
            hits = self._ask(self._walk.ask(), changed=True)
        part[self._motors.stopped] = 0.0
        self.tally.truncated(part, self.length)
        self.jams.count(part, self.length / self.options.dt)

    def record(self) -> None:
        """Go; keep what the next step begins with."""
        if self.rows.straighten():
            self._solve_speeds()
        self._move.run()
        if self.options.order == 2:
            self._energy.cap(self._islands, self.solver, self.rows, self.joints)
        self.jams.rest(self.state.velocity, self.part, self.table.held, self.joints.group >= 0)
        self._motors.go_on(self.state.velocity, self._before.velocity)
        self.joints.count_work(self._before.velocity, self.state.velocity, self.length, self.options.order)
        self.rows.keep()
        self.tally.joints(self.joints.keep(), self.joints.stalled)
        for velocity in (self.state.velocity, self.free):
            if not (np.abs(velocity.numpy()) < FASTEST).all():
                raise InputError(f"step {self.steps}: a velocity is not finite")  # which `make_step` explains
        if self.level:  # rows of this part are gone with the next one
            self._impacts.append(self._part_impacts())
        self._left -= SPLIT ** (SPLITS - self.level)
        if not self.unfinished:
            self._settle()
            self.tally.end()
            self.steps += 1

    # -- a step as a whole ---------------------------------------------------------------------------------------------

    def save(self) -> None:
        """Keep what a step changes that the next one goes on from, or that tells of the last one."""
        self._saved_arrays.save(self._overwritten(), len(self.bodies))
        for part in (self.sleepers, self.jams, self.rows, self.joints):
            part.save()
        self._saved = {name: getattr(self, name) for name in ("steps", "level", "length", "_impacts")}
        self._saved["tally"] = copy(self.tally)

    def _overwritten(self) -> list[tuple[str, wp.array]]:
        found = [(name, getattr(self.state, name)) for name in ("position", "rotation", "velocity")]
        return [*found, ("free", self.free), ("before", self._before.velocity)]

    def begin(self) -> None:
        """Begin a step: in one part, or in a few where the last one was made in many."""
        self.tally.begin()
        self.joints.hold()
        self._impacts = []
        self._left = SPLIT**SPLITS
        self.split(max(self.level - 1, 0))

    @property
    def unfinished(self) -> bool:
        """Whether parts of the step are to be made."""
        return self._left > 0

    def begin_part(self) -> None:
        """Begin a part of a step."""
        copy_state(self._before, self.state)

    def split(self, level: int) -> None:
        """From now on make steps in `SPLIT` parts, and each of these in as many, `level` times over."""
        length = self.options.dt / SPLIT**level
        if length != self.length:
            self.joints.scale(length / self.length)
            self.distances.dt.fill_(length)
        self.level, self.length = level, length

    def restore(self) -> None:
        """As if the step, of which any part may be done, had not been begun."""
        self._saved_arrays.restore(self._overwritten())
        for part in (self.sleepers, self.jams, self.rows, self.joints):
            part.restore()
        for name, value in self._saved.items():
            setattr(self, name, value)
        self.distances.dt.fill_(self.length)
        self.solver.thorough = False

    # -- what users do between steps -----------------------------------------------------------------------------------

    def join(self, joint: WorldJoint, motor: tuple[float, float, bool] | None) -> None:
        """One more joint; its bodies are not compared any more."""
        self.joints.add(joint)
        if motor is not None:
            self.joints.drive(len(self.joints.joints) - 1, motor)
        if joint.body_b >= 0:
            self._ignored = np.concatenate([self._ignored, [[joint.body_a, joint.body_b]]])
            self._prepare()
        self._checked = False
        for body in (joint.body_a, joint.body_b):
            if body >= 0:
                self.wake(body)

    def placed_anew(self) -> None:
        """Bodies were put elsewhere: look for overlaps before the next step, and start cold."""
        self._checked = False
        self.rows.forget()
        self.joints.measure()

    @property
    def ignored(self) -> np.ndarray:
        """(k, 2) pairs that are not compared."""
        return self._ignored

    def certified(self) -> None:
        """Bodies stand as others do of which it is known that they do not overlap."""
        self._checked = True

    def wake(self, body: int) -> None:
        """Something was done to a body: it sleeps no more, nor do those that sleep with it."""
        self.sleepers.wake(np.array([body]))

    def refuse_overlaps(self) -> None:
        """Raise if bodies that are compared overlap where they were put."""
        if self._checked:
            return
        self.motion.zero_()
        self.free.zero_()
        self._find_reach.run()
        count = self._near_pairs.find()
        pairs = self._near_pairs.pairs.numpy()[:count]
        poses = read_poses(self.state, self.table)
        if count:  # only those need the exact test that are not certainly apart
            apart = self.near.at(poses, pairs, 0.0).least > 0.0
            solid = np.array([body.analytic is not None for body in self.bodies])  # others may be wholly inside
            pairs = pairs[~apart | solid[pairs].any(axis=1)]
        when = "at the start" if self.steps == 0 else f"at step {self.steps}"
        refuse_overlaps(self.bodies, poses, pairs, when)
        if self.analytic is not None:
            refuse_overlaps(self.bodies, poses, self.analytic.near_pairs(), when)
            refuse_sunken(self.bodies, self.analytic.below(), when)
        first = self._worlds[self._ignored[:, 0]] == self._worlds[0] if len(self._ignored) else slice(0)
        self.overlapping = overlapping_pairs(self.bodies, poses, self._ignored[first])
        self._checked = True

    # -- parts of phases -----------------------------------------------------------------------------------------------

    def _add_near_hits(self, pairs: np.ndarray, times: np.ndarray) -> None:
        """Rows of all that is near where pairs of bodies meet, or may be so in what is left of the step."""
        way, options = self._way.numpy(), self.options
        distance = options.kept + RUPTURE * options.security + (1.0 - times) * way[pairs].sum(axis=1)
        for group in hits_apart(pairs, times, self._still):
            when = np.zeros(len(self.bodies))
            when[pairs[group]] = times[group, None]
            self._when.assign(when)
            self._pose.run()
            found = self.near.find(pairs[group], self._rotation_then, self._origin_then, distance[group])
            chosen = reduce(found, self._size, CONTACTS_PER_PAIR)
            if chosen.count:
                self.rows.add_near_hits(found.columns, chosen.rows, chosen.count, pairs[group], times[group])

    def _use_gaps(self, pairs: int, least: wp.array) -> None:
        """Let the walk know how far apart pairs are at the start."""
        gaps, listed = self._gaps, self._near_pairs.pairs
        gaps.count.fill_(pairs)
        if gaps.pairs is not listed or gaps.least is not least:
            gaps.pairs, gaps.least = listed, least
            self._walk.set_gaps(gaps)

    def _solve(self, with_placement: bool = True, since: int = 0) -> None:
        """Velocities from the free ones, then motions, then what moves contacts apart that are too near; `since`: see
        `Solver.solve`."""
        self._motors.keep()
        while not self._solve_once(with_placement, since):
            since = 0

    def _solve_once(self, with_placement: bool, since: int) -> bool:
        """The same; whether no other motors had to give way, with which it is to be done again."""
        wp.copy(self.solved.velocity, self.free)
        report = self._solved(self.solver, self.solved, self.rows.arrays, self.joints.rows, since)
        self._islands = 0 if report is None else report.islands
        if self._motors.unsolved(report):
            return False
        bounces = self.bouncing and self.rows.count > 0 and self._islands > 0 and self._flights.find(self._islands)
        if bounces:
            wp.copy(self.solved.velocity, self.free)
            self._flights.begin()
            report = self._solved(self.solver, self.solved, self.rows.arrays, self.joints.rows)
        self.tally.residual = 0.0 if report is None else report.worst
        self._find_motion.run()
        if bounces:
            self._flights.end()
        self._bounces = bounces
        if with_placement:
            self._placed = report is not None and self._place()
        if self._placed:
            self._add_motion.run()
        if self.joints.count and report is not None:
            self._opened = self._closing.close()
            self._strayed = self._opened and not self._closing.explained(self.jams)
            if self._motors.unclosed(self._closing.strayed, self.level == SPLITS):
                return False
            return not (self._opened and self._motors.stop_drivers(self.free, self.jams, self.level == SPLITS))
        return True

    def _solve_speeds(self) -> None:
        """Velocities at the end once more, with rows as they are now; motions stay."""
        wp.copy(self.solved.velocity, self.free)
        if self._bounces:
            self._flights.begin()
        self._solved(self.solver, self.solved, self.rows.arrays, self.joints.rows, self.rows.gathered)
        self._find_end.run()
        if self._bounces:
            self._flights.end_speeds()

    def _solved(self, solver: Solver, bodies: Any, rows: Any, joints: Any, since: int = 0) -> SolverReport | None:
        if not self.rows.count and not self.joints.count:
            return None
        since = 0 if self.bouncing else since  # else from other velocities than before
        return solver.solve(bodies, rows, self.rows.count, joints, self.joints.count, since)

    def _place(self) -> bool:
        """The least motion that gives contacts their targets back; whether any is needed."""
        lack = self.rows.place()
        if lack <= LEAST_LACK * self.options.security:
            return False
        self.joints.place()
        self.placement.velocity.zero_()
        self._solved(self._placer, self.placement, self.rows.placing, self.joints.placing)
        if self.options.order == 2:
            self._energy.limit_placement(self._islands, self.solver, self.rows, self.joints)
        self.rows.measure(self.placement.velocity)
        self._most_placed.fill_(MOST_PLACED * max(lack, self.joints.error))
        return True

    def _settle(self) -> None:
        """Islands that have been at rest for long sleep, except those that motors or pulls hold."""
        options = self.options
        if options.order != 2 or not self._islands or self.tally.held.any():
            return
        island = self.solver.islands.arrays.number.numpy()[: len(self.bodies)]
        held_up = island[self.joints.driven_bodies()]
        island = np.where(np.isin(island, held_up), -1, island)
        velocity = self.state.velocity.numpy()
        still = options.still_speed * self.length
        if self.sleepers.settle(island, self.motion.numpy(), velocity, still, self.length):
            velocity = np.where(self.sleepers.asleep[:, None], 0.0, velocity)
            self.state.velocity.assign(velocity)
            self.sleepers.remember(self.rows.contacts(), self.rows.impulses() / self.length)

    def _part_impacts(self) -> WorldImpacts:
        return impacts_of(self.rows, self._before.velocity.numpy(), self.free.numpy(), self.options.rest_speed)

    def impacts(self) -> WorldImpacts:
        """Who struck whom in the last step."""
        if self.steps == 0:
            return NO_IMPACTS
        return all_impacts(self._impacts) if self._impacts else self._part_impacts()

    def contacts(self) -> Contacts:
        """Those of the rows, and those that sleepers have."""
        found = self.rows.contacts()
        return Contacts.joined([found[~self.sleepers.of_sleepers(found)], self.sleepers.contacts])

    def forces(self) -> np.ndarray:
        """(n, 3) on the first body of each of them [N]."""
        awake = ~self.sleepers.of_sleepers(self.rows.contacts())
        return np.concatenate([self.rows.impulses()[awake] / self.length, self.sleepers.forces])
