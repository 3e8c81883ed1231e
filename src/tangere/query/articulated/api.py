"""Every pair of many bodies that hang on each other, in every step of a long motion: all of it in one batch.

Question: in each step, which two bodies touch first and when, and how near do any two come at the least?
Method:   pairs are asked about in the frame of their nearest common ancestor (`chain_layout`). Kernels turn joint
          values into motions and queries (`questions`); the engines of rigid parts search them: first contact
          (`first_contact.rigid`) and least clearance (`clearance`), the latter with one bound for all pairs of a step.
Sound:    as `first_contact` and `least_clearance` of each pair; a step is free if all its pairs are.
Known as: continuous collision checking of kinematic trees (Redon et al. 2004), by conservative advancement.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from tangere.motion import COSINE, RigidMotion, motions_of
from tangere.query.articulated.chain_layout import AT_REST, ChainLayout
from tangere.query.articulated.questions import (
    BodyPaths,
    FrameTable,
    PairTable,
    StepHit,
    StepValues,
    cull_step_pairs,
    find_step_hits,
    gather_rows,
    place_bodies,
    write_step_motions,
    write_step_queries,
)
from tangere.query.clearance.api import nearest_approaches, stay_beyond
from tangere.query.contacts.record import Contacts
from tangere.query.first_contact.rigid.bodies import Forest
from tangere.query.first_contact.rigid.details import contacts_of_batch
from tangere.query.first_contact.rigid.query_batch import TOLERANCE, RigidQueryBatch
from tangere.runtime import InputError, NonCopyable, launch, offsets
from tangere.shape import Moving
from tangere.shape.mesh import Mesh

#: Queries, and steps, worth a thread when they are written.
_QUERIES, _STEPS = 256, 8
#: The least number of queries there is room for.
LEAST_ROOM = 256
_MOTION = RigidMotion.numpy_dtype()


class ArticulatedQueries(NonCopyable):
    """Questions about pairs of bodies in up to `steps` steps, prepared for being asked again and again.

    Args:
        meshes: one for each body, in the frame it hangs on.
        paths: the frames each body hangs on, from the world to the body.
        pairs: numbers of two bodies, (n, 2), n > 0.
        joints: `JointArrays`: the frames that joints move, 0 … m - 1; those from m on are given for each step.
        moved: how many frames these joints move.
        steps: how many steps there is room for.
        reduced: see `ChainLayout.of`.
    """

    def __init__(
        self,
        meshes: Sequence[Mesh],
        paths: Sequence[tuple[int, ...]],
        pairs: np.ndarray,
        joints: Any,
        moved: int,
        steps: int,
        device: wp.Device,
        *,
        reduced: bool = True,
    ) -> None:
        self.meshes, self.pairs, self.steps, self.device = tuple(meshes), pairs, steps, device
        self.layout = ChainLayout.of(paths, pairs, reduced=reduced)
        distinct = tuple(dict.fromkeys(self.meshes))
        number = {mesh: k for k, mesh in enumerate(distinct)}
        self._shapes, self._shape = distinct, np.array([number[mesh] for mesh in self.meshes], np.int32)
        self._forest = Forest.of(distinct, device)
        self._extent = np.array([mesh.extent for mesh in self.meshes])
        width, count = self.layout.width, len(pairs)
        self._parts = 1 if device.is_cpu else count
        self.motions = wp.zeros(steps * width, dtype=RigidMotion, device=device)
        self._roots = RigidQueryBatch(self._forest, self._forest, steps * self._parts, self.motions, device)
        self.batch = self._roots  #: of what the boxes about whole bodies leave, after `ask`
        self._kept = wp.zeros(steps * count, dtype=wp.int32, device=device)
        self._rows = wp.zeros(steps * count, dtype=wp.int32, device=device)
        self._worst = wp.zeros(steps * self._parts, dtype=wp.float64, device=device)
        self._frames: Any = FrameTable()
        frames = self.layout.frames
        # Given motions: those of the frames without a joint, then rest.
        source = np.where((frames >= 0) & (frames < moved), frames, moved - 1 - frames)
        self._given = int(max(frames.max(initial=-1) + 1 - moved, 0))
        source[frames == AT_REST] = -1 - self._given
        self._frames.source = wp.array(source, dtype=wp.int32, device=device)
        self._frames.joints = joints
        self._given_array: np.ndarray | None = None  # what was put last
        self._rest = np.zeros(1, _MOTION)
        self._rest["axis"], self._rest["rotation"], self._rest["span"] = [0.0, 0.0, 1.0], np.eye(3), 1.0
        self._bodies: Any = BodyPaths()
        self._bodies.node = wp.array(self._forest.first_node[self._shape], dtype=wp.int32, device=device)
        self._bodies.motion = wp.array(self.layout.body_first, dtype=wp.int32, device=device)
        self._bodies.links = wp.array(self.layout.body_links, dtype=wp.int32, device=device)
        self._balls = wp.zeros(steps * len(self.meshes), dtype=wp.vec4d, device=device)
        self._table = self._pair_table()
        self._values: Any = StepValues()
        self._values.begin, self._values.end = (wp.zeros(steps, dtype=wp.int32, device=device) for _ in range(2))
        self._host_rows = [array.numpy() for array in (self._values.begin, self._values.end)] if device.is_cpu else []
        self._hits = wp.zeros(steps, dtype=StepHit, device=device)
        self._host_hits = self._hits.numpy()
        self._chosen: RigidQueryBatch | None = None

    def ask(
        self,
        configurations: wp.array,
        begin: np.ndarray,
        end: np.ndarray,
        given: np.ndarray | None = None,
        *,
        separation: np.ndarray | float = 0.0,
        tolerance: float | None = None,
        beyond: float = 0.0,
    ) -> None:
        """Write down steps that go from one configuration to another.

        Args:
            configurations: (n, dof) float64, on the device.
            begin, end: rows of these, (steps,) each.
            given: records of the frames without a joint, (steps, frames), or (1, frames) for all steps.
            separation: distance that already counts as contact [m]: one, or (pairs,).
            tolerance: as for `first_contact`; None means 1e-6 of the larger body's size.
            beyond: pairs are left out that certainly stay farther apart than this, and than what counts as contact [m].
        """
        count = len(begin)
        if count > self.steps:
            raise InputError(f"there is room for {self.steps} steps, not for {count}")
        self._put_lengths(separation, tolerance)
        self._put_given(given)
        values = self._values
        values.configurations = configurations
        self._put_rows(begin, end)
        width, pairs = self.layout.width, len(self.pairs)
        self.asked = count
        launch(write_step_motions, count * width, [self._frames, values], [self.motions], device=self.device)
        bodies = len(self.meshes)
        inputs = [self._bodies, width, self._roots.arrays]
        launch(place_bodies, count * bodies, inputs, [self._balls], device=self.device, grain=_QUERIES)
        inputs = [self._table, self._balls, bodies, width, self._parts, float(beyond), self._roots.arrays]
        outputs = [self._kept, self._worst]
        launch(cull_step_pairs, count * self._parts, inputs, outputs, device=self.device, grain=_STEPS)
        if tolerance is not None:
            self._refuse_tolerance(tolerance)
        kept = self._kept[: count * pairs]
        self._starts, self.total = offsets(kept)
        launch(gather_rows, count * pairs, [kept, self._starts], [self._rows], device=self.device)
        if self.total > self.batch.room or self.batch is self._roots:
            room = 1 << max(self.total - 1, LEAST_ROOM - 1).bit_length()
            self.batch = RigidQueryBatch(self._forest, self._forest, room, self.motions, self.device)
        self.batch.take(self.total)
        inputs = [self._rows, self._table, width, self.batch.arrays]
        launch(write_step_queries, self.total, inputs, [self.batch.hits], device=self.device, grain=_QUERIES)

    def search(self) -> np.ndarray:
        """Search all pairs of all steps; the earliest of each step as `StepHit`, (steps,), until the next search."""
        batch = self.batch
        if self.total:
            batch.search()
        hits = self._step_hits()
        if hits["unclear"].any():
            # Which of what is in contact at 0 meets there is decided exactly.
            batch.fetched_hits()
            batch.classify_initial_overlap(self._moving_pair)
            hits = self._step_hits()
        return hits

    def hits(self) -> np.ndarray:
        """The time of the first contact of every pair in every step, (steps, pairs), > 1 for none; after `search`."""
        times = np.full(self.asked * len(self.pairs), 2.0)
        times[self._rows.numpy()[: self.total]] = self.batch.fetched_hits()["time"]
        return times.reshape(self.asked, -1)

    def details(self, steps: np.ndarray, hits: np.ndarray) -> tuple[np.ndarray, np.ndarray, Contacts]:
        """Status, time by which contact is certain, and contacts in the world, of some steps with their `StepHit`s."""
        if self._chosen is None or self._chosen.room < len(hits) or self._chosen.motions is not self.motions:
            room = 1 << max(len(hits) - 1, LEAST_ROOM - 1).bit_length()
            self._chosen = RigidQueryBatch(self._forest, self._forest, room, self.motions, self.device)
        self._chosen.take_rows(self.batch, hits["row"])
        details, pairs = self._chosen.contact_details().copy(), hits["pair"]
        self._carry_to_world(details, steps, pairs)
        contacts = contacts_of_batch(details, self._shapes, self._shape, self.pairs[pairs], steps)
        return self._chosen.status(), details["time_upper"].copy(), contacts

    def least(self, bounds: np.ndarray, accuracy: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The nearest two bodies of each step below a bound: `NearestApproach`, what none comes nearer than, the pair.

        Each (steps,). `ask` must have been told of what is nearer than (1 - accuracy) times the bounds.
        """
        tolerances = np.full(len(bounds), self._tolerances.min())
        rows, count = self._rows.numpy()[: self.total], len(self.pairs)

        def like(query: np.ndarray) -> np.ndarray:
            wanted = np.arange(len(bounds)) * count + rows[query] % count
            place = np.minimum(np.searchsorted(rows, wanted), self.total - 1)
            return np.where(rows[place] == wanted, place, -1)

        nearest, lower = nearest_approaches(
            self.batch,
            bounds,
            begin=self._begin(),
            accuracy=accuracy,
            tolerances=tolerances,
            like=like if self.total else None,
        )
        seen = nearest["time"] >= 0.0
        pair = np.full(len(bounds), -1, np.int32)
        pair[seen] = rows[nearest["query"][seen]] % count
        return nearest, lower, pair

    def stay_beyond(self, lengths: np.ndarray) -> np.ndarray:
        """Whether all pairs of each step certainly stay farther apart than `lengths`, (steps,).

        `ask` must have been told of what is nearer than the largest of them.
        """
        return stay_beyond(self.batch, lengths, self._begin())

    @property
    def tolerance(self) -> float:
        """The largest of all pairs [m]."""
        return float(self._tolerances.max())

    def _begin(self) -> np.ndarray:
        """(steps + 1,) the first query about each step."""
        return np.append(self._starts.numpy()[:: len(self.pairs)], self.total)

    def _put_rows(self, begin: np.ndarray, end: np.ndarray) -> None:
        """Between which rows of the configurations steps go."""
        if self._host_rows:
            self._host_rows[0][: len(begin)], self._host_rows[1][: len(end)] = begin, end
            return
        for kept, rows in ((self._values.begin, begin), (self._values.end, end)):
            wp.copy(kept, wp.array(rows, dtype=wp.int32, device="cpu"), count=len(rows))

    def _refuse_tolerance(self, tolerance: float) -> None:
        worst = float(self._worst.numpy()[: self.asked * self._parts].max(initial=0.0))
        if worst > 0.0:
            raise InputError(
                f"tolerance {tolerance!r} is below 1e-12 of the size of a pair, its motion included: rounding would"
                f" hide contacts; at least {worst:.3g} is possible"
            )

    def _step_hits(self) -> np.ndarray:
        inputs = [len(self.pairs), self.total, self._rows, self._starts, self.batch.hits]
        launch(find_step_hits, self.asked, inputs, [self._hits], device=self.device, grain=_QUERIES)
        hits = self._host_hits if self.device.is_cpu else self._hits.numpy()
        return hits[: self.asked]

    def _pair_table(self) -> Any:
        """What is the same for all steps, but for lengths."""
        table: Any = PairTable()
        shape = self._shape[self.pairs]
        forest = self._forest
        columns = {
            "body": self.pairs,
            "node": forest.first_node[shape],
            "wide": forest.first_wide[shape] if self.device.is_cpu else 0 * shape,
            "triangle": forest.first_triangle[shape],
            "motion": self.layout.first,
            "links": self.layout.links,
        }
        for name, column in columns.items():
            setattr(table, name, wp.array(np.ascontiguousarray(column, np.int32), dtype=wp.vec2i, device=self.device))
        table.smooth = wp.zeros(len(self.pairs), dtype=wp.bool, device=self.device)
        self._lengths: tuple[Any, ...] = ()
        return table

    def _put_lengths(self, separation: np.ndarray | float, tolerance: float | None) -> None:
        key = np.asarray(separation).tobytes(), tolerance
        if key == self._lengths:
            return
        larger = self._extent[self.pairs].max(axis=1)
        self._tolerances = TOLERANCE * larger if tolerance is None else np.full(len(larger), float(tolerance))
        apart = np.ascontiguousarray(np.broadcast_to(np.asarray(separation, float), len(self.pairs)))
        self._table.tolerance = wp.array(self._tolerances, dtype=wp.float64, device=self.device)
        self._table.separation = wp.array(apart, dtype=wp.float64, device=self.device)
        self._lengths = key

    def _put_given(self, given: np.ndarray | None) -> None:
        """Motions of the frames without a joint, and of rest."""
        if given is not None and given is self._given_array and len(given) == 1:
            return
        self._given_array = given
        rows = 1 if given is None else len(given)
        records = np.zeros((rows, self._given + 1), _MOTION)
        if given is not None:
            records[:, : self._given] = given
        records[:, self._given] = self._rest
        key = records.tobytes() if rows == 1 else None
        if key is not None and key == getattr(self, "_given_key", None):
            return
        self._given_key = key
        self._frames.given = wp.array(records, dtype=RigidMotion, device=self.device)
        smooth = np.zeros(len(self.layout.frames), bool)
        kinds = (records["kind"] == COSINE).any(axis=0)
        source = self._frames.source.numpy()
        smooth[source < 0] = kinds[-1 - source[source < 0]]
        first, links = self.layout.first, self.layout.links
        of_pairs = (
            [
                any(smooth[f : f + n].any() for f, n in zip(first[row], links[row], strict=True))
                for row in range(len(self.pairs))
            ]
            if kinds.any()
            else np.zeros(len(self.pairs), bool)
        )
        self._table.smooth = wp.array(np.asarray(of_pairs), dtype=wp.bool, device=self.device)
        self._bodies.smooth = bool(kinds.any())

    def _moving_pair(self, row: int) -> tuple[Moving, Moving]:
        """The bodies of a query, in the frame of their ancestor."""
        step, pair = divmod(int(self._rows.numpy()[row]), len(self.pairs))
        bodies = []
        motions = self.motions.numpy()
        for side in range(2):
            first = step * self.layout.width + self.layout.first[pair, side]
            links = int(self.layout.links[pair, side])
            motion = motions_of(motions[first : first + links].copy(), links, ())
            bodies.append(self.meshes[self.pairs[pair, side]].moving(motion))
        return bodies[0], bodies[1]

    def _carry_to_world(self, details: np.ndarray, steps: np.ndarray, pairs: np.ndarray) -> None:
        """Points and normals from the frames of ancestors to the world."""
        shared, root = self.layout.shared[pairs], self.layout.root[pairs]
        if not shared.any():
            return
        motions = self.motions.numpy()
        for cut in np.unique(shared[shared > 0]):
            rows = np.flatnonzero(shared == cut)
            first = steps[rows] * self.layout.width + root[rows]
            chain = motions[(first[:, None] + np.arange(cut)).reshape(-1)]
            pose = motions_of(chain.copy(), int(cut)).pose(details["time"][rows])
            for name in ("point_a", "point_b"):
                details[name][rows] = np.einsum("nij,nj->ni", pose[:, :3, :3], details[name][rows]) + pose[:, :3, 3]
            details["normal"][rows] = np.einsum("nij,nj->ni", pose[:, :3, :3], details["normal"][rows])
