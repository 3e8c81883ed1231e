"""Pairs of meshes in steps of a motion, by the engines of rigid parts: first contact, and least clearance.

All pairs of a step share one bound where only the nearest of them is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from tangere.motion import motions_of
from tangere.query.articulated.pair_questions import QUERIES, PairQuestions
from tangere.query.articulated.questions import PairTable, StepHit, find_step_hits, write_step_queries
from tangere.query.clearance.api import nearest_approaches, stay_beyond
from tangere.query.contacts.record import Contacts
from tangere.query.first_contact.rigid.bodies import Forest
from tangere.query.first_contact.rigid.details import contacts_of_batch
from tangere.query.first_contact.rigid.query_batch import RigidQueryBatch
from tangere.runtime import fetched, launch
from tangere.shape import Moving
from tangere.shape.mesh import Mesh

#: The least number of queries there is room for.
LEAST_ROOM = 256


class RigidPairs:
    """Pairs of meshes.

    Args:
        questions: what is asked about pairs of bodies.
        meshes: parts of the bodies.
        owner: which pair of bodies each pair of parts belongs to, (n,), rising.
        parts: numbers of two of the meshes, (n, 2).
    """

    def __init__(self, questions: PairQuestions, meshes: Sequence[Mesh], owner: np.ndarray, parts: np.ndarray) -> None:
        self.questions, self.meshes, self.owner, self.parts = questions, tuple(meshes), owner, parts
        self.device = questions.device
        self._whole = np.array_equal(owner, np.arange(len(questions.pairs)))  # bodies are their only parts
        self._many = np.bincount(owner, minlength=len(questions.pairs))
        self._first = np.cumsum(self._many) - self._many
        distinct = tuple(dict.fromkeys(self.meshes))
        number = {mesh: k for k, mesh in enumerate(distinct)}
        self._shapes, self._shape = distinct, np.array([number[mesh] for mesh in self.meshes], np.int32)
        self._forest = Forest.of(distinct, self.device)
        self._table = self._pair_table()
        self._lengths: Any = None
        self._own_rows = wp.zeros(0, dtype=wp.int32, device=self.device)
        self._own_starts = wp.zeros(questions.steps + 1, dtype=wp.int32, device=self.device)
        self._hits = wp.zeros(questions.steps, dtype=StepHit, device=self.device)
        self._host_hits = self._hits.numpy()
        self.batch: RigidQueryBatch | None = None  #: of what the boxes about whole bodies leave, after `ask`
        self._chosen: RigidQueryBatch | None = None

    def ask(self, rows: np.ndarray | None = None) -> None:
        """Take over what `questions` was asked.

        Args:
            rows: what to ask about, step * parts + part, rising; None means what `questions` left.
        """
        asked = self.questions
        self._put_lengths()
        if rows is None and self._whole:
            self.total, self._rows, self._starts, self._stride = asked.total, asked.rows, asked.offsets, len(self.parts)
        else:
            rows = asked.expanded(self._first, self._many) if rows is None else rows
            self.total, self._stride = len(rows), 1
            if len(self._own_rows) < self.total:
                room = 1 << max(self.total - 1, LEAST_ROOM - 1).bit_length()
                self._own_rows = wp.zeros(room, dtype=wp.int32, device=self.device)
            self._rows, self._starts = self._own_rows, self._own_starts
            starts = np.searchsorted(rows, np.arange(asked.asked + 1) * len(self.parts))
            self._put(self._rows, rows)
            self._put(self._starts, starts)
        if self.batch is None or self.total > self.batch.room:
            room = 1 << max(self.total - 1, LEAST_ROOM - 1).bit_length()
            self.batch = RigidQueryBatch(self._forest, self._forest, room, asked.motions, self.device)
        self.batch.take(self.total)
        inputs = [self._rows, self._table, asked.layout.width, self.batch.arrays]
        launch(write_step_queries, self.total, inputs, [self.batch.hits], device=self.device, grain=QUERIES)

    def search(self) -> np.ndarray:
        """Search all pairs of all steps; the earliest of each step as `StepHit`, (steps,), until the next search."""
        batch = self._batch
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
        times = np.full(self.questions.asked * len(self.parts), 2.0)
        times[fetched(self._rows, slice(self.total))] = self._batch.fetched_hits()["time"]
        return times.reshape(self.questions.asked, -1)

    def details(self, steps: np.ndarray, hits: np.ndarray) -> tuple[np.ndarray, np.ndarray, Contacts]:
        """Status, time by which contact is certain, and contacts in the world, of some steps with their `StepHit`s."""
        if self._chosen is None or self._chosen.room < len(hits):
            room = 1 << max(len(hits) - 1, LEAST_ROOM - 1).bit_length()
            self._chosen = RigidQueryBatch(self._forest, self._forest, room, self.questions.motions, self.device)
        self._chosen.take_rows(self._batch, hits["row"])
        details, pairs = self._chosen.contact_details().copy(), hits["pair"]
        self.questions.carry_to_world(details, steps, self.owner[pairs])
        contacts = contacts_of_batch(details, self._shapes, self._shape, self.parts[pairs], steps)
        return self._chosen.status(), details["time_upper"].copy(), contacts

    def least(self, bounds: np.ndarray, accuracy: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The nearest two bodies of each step below a bound: `NearestApproach`, what none comes nearer than, the pair.

        Each (steps,). `ask` must have been told of what is nearer than (1 - accuracy) times the bounds.
        """
        tolerances = np.full(len(bounds), self.questions.tolerances.min())
        rows, count = fetched(self._rows, slice(self.total)), len(self.parts)

        def like(query: np.ndarray) -> np.ndarray:
            wanted = np.arange(len(bounds)) * count + rows[query] % count
            place = np.minimum(np.searchsorted(rows, wanted), self.total - 1)
            return np.where(rows[place] == wanted, place, -1)

        nearest, lower = nearest_approaches(
            self._batch,
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
        return stay_beyond(self._batch, lengths, self._begin())

    def _put(self, array: wp.array, values: np.ndarray) -> None:
        """Write the first numbers of an array."""
        if self.device.is_cpu:
            array.numpy()[: len(values)] = values
        elif len(values):
            wp.copy(array, wp.array(values, dtype=wp.int32, device="cpu"), count=len(values))

    @property
    def _batch(self) -> RigidQueryBatch:
        assert self.batch is not None, "nothing was asked"
        return self.batch

    def _begin(self) -> np.ndarray:
        """(steps + 1,) the first query about each step."""
        asked = self.questions.asked
        return np.append(fetched(self._starts, slice(0, asked * self._stride, self._stride)), self.total)

    def _step_hits(self) -> np.ndarray:
        count = len(self.parts)
        inputs = [count, self.total, self._rows, self._starts, self._stride, self._table.smooth, self._batch.hits]
        asked = self.questions.asked
        launch(find_step_hits, asked, inputs, [self._hits], device=self.device, grain=QUERIES)
        return self._host_hits[:asked] if self.device.is_cpu else fetched(self._hits, slice(asked))

    def _pair_table(self) -> Any:
        """What is the same for all steps, but for lengths and clocks."""
        table: Any = PairTable()
        shape, layout = self._shape[self.parts], self.questions.layout
        forest = self._forest
        columns = {
            "body": self.parts,
            "node": forest.first_node[shape],
            "wide": forest.first_wide[shape] if self.device.is_cpu else 0 * shape,
            "triangle": forest.first_triangle[shape],
            "motion": layout.first[self.owner],
            "links": layout.links[self.owner],
        }
        for name, column in columns.items():
            setattr(table, name, wp.array(np.ascontiguousarray(column, np.int32), dtype=wp.vec2i, device=self.device))
        return table

    def _put_lengths(self) -> None:
        """Tolerances, separations and clocks, as those of the pairs of bodies are."""
        own, asked = self._table, self.questions
        if self._lengths == (key := (id(asked.tolerances), id(asked.separations), id(asked.smooth))):
            return
        self._lengths, self._kept = key, (asked.tolerances, asked.separations, asked.smooth)
        columns = {"tolerance": asked.tolerances, "separation": asked.separations, "smooth": asked.smooth}
        for name, column in columns.items():
            kind = wp.bool if name == "smooth" else wp.float64
            setattr(own, name, wp.array(column[self.owner], dtype=kind, device=self.device))

    def _moving_pair(self, row: int) -> tuple[Moving, Moving]:
        """The bodies of a query, in the frame of their ancestor."""
        step, pair = divmod(int(fetched(self._rows, slice(row, row + 1))[0]), len(self.parts))
        bodies, layout = [], self.questions.layout
        owner = self.owner[pair]
        for side in range(2):
            first = step * layout.width + layout.first[owner, side]
            links = int(layout.links[owner, side])
            motion = motions_of(fetched(self.questions.motions, slice(first, first + links)).copy(), links, ())
            bodies.append(self.meshes[self.parts[pair, side]].moving(motion))
        return bodies[0], bodies[1]
