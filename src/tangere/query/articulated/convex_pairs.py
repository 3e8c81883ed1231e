"""Pairs of analytic bodies, and of one and a mesh, in steps of a motion, as what they are: formulas, never facets.

What boxes about whole bodies leave (`pair_questions`) is sorted by the kinds of the parts: one launch for each pair of
kinds (`convex_search`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from tangere.query.articulated.convex_search import (
    ChainedBodies,
    ChainedPairs,
    ConvexApproach,
    step_approach_kernel,
    step_contact_kernel,
)
from tangere.query.articulated.pair_questions import PairQuestions
from tangere.query.articulated.questions import StepHit
from tangere.query.clearance import ever_finer
from tangere.query.contacts.record import Contacts, Kind, Status
from tangere.query.distance.convex.bodies import SHAPE, convex_kind, shape_records
from tangere.query.distance.convex.supports import ConvexKind, ConvexShape
from tangere.query.first_contact.convex.search import ConvexContact
from tangere.query.first_contact.rigid.bodies import Forest
from tangere.runtime import launch, to_numpy
from tangere.shape.analytic import HULL, Analytic, AnalyticShape
from tangere.shape.mesh import Mesh

#: Rows worth a thread: microseconds each, with a mesh a tenth of a millisecond.
GRAIN, MESH_GRAIN = 32, 2
#: An accuracy that rounding does not allow is made coarser up to this.
COARSEST = 0.9
_CONTACT, _HIT, _APPROACH = (struct.numpy_dtype() for struct in (ConvexContact, StepHit, ConvexApproach))


class ConvexPairs:
    """Pairs of parts of which one at least is analytic; arguments as for `RigidPairs`."""

    def __init__(
        self, questions: PairQuestions, bodies: Sequence[Mesh | Analytic], owner: np.ndarray, parts: np.ndarray
    ) -> None:
        self.questions, self.bodies, self.owner, self.parts = questions, tuple(bodies), owner, parts
        self.device, layout = questions.device, questions.layout
        self._many = np.bincount(owner, minlength=len(questions.pairs))
        self._first = np.cumsum(self._many) - self._many
        kinds = np.array([ConvexKind.TRIANGLE if isinstance(body, Mesh) else convex_kind(body) for body in bodies])
        self._swapped = kinds[parts[:, 0]] > kinds[parts[:, 1]]
        ordered = kinds[np.where(self._swapped[:, None], parts[:, ::-1], parts)]
        self._group = ordered[:, 0] * len(ConvexKind) + ordered[:, 1]
        self._chained = self._bodies_on_device(kinds)
        self._pairs: Any = ChainedPairs()
        self._pairs.width = layout.width
        columns = {"body": parts, "motion": layout.first[owner], "links": layout.links[owner]}
        for name, column in columns.items():
            column = np.ascontiguousarray(np.where(self._swapped[:, None], column[:, ::-1], column), np.int32)
            setattr(self._pairs, name, wp.array(column, dtype=wp.vec2i, device=self.device))
        self._clocks: np.ndarray | None = None

    def ask(self, rows: np.ndarray | None = None) -> None:
        """Take over what `questions` was asked; rows as for `RigidPairs.ask`."""
        asked = self.questions
        if self._clocks is not asked.smooth:
            self._clocks = asked.smooth
            self._pairs.smooth = wp.array(asked.smooth[self.owner], dtype=wp.bool, device=self.device)
        self.rows = asked.expanded(self._first, self._many) if rows is None else rows
        self.total = len(self.rows)
        self._pair = self.rows % len(self.parts)
        self._tolerances = asked.tolerances[self.owner[self._pair]]

    def search(self) -> np.ndarray:
        """Search all pairs of all steps; the earliest of each step as `StepHit`, (steps,)."""
        asked = self.questions
        hits = np.zeros(asked.asked, _HIT)
        hits["time"], hits["pair"] = 2.0, -1
        if not self.total:
            return hits
        self._contacts = self._found(asked.separations[self.owner[self._pair]])
        if asked.given_tolerance is not None:
            asked.refuse_tolerance(asked.given_tolerance, self._contacts["tolerance"])
        touching = np.flatnonzero(self._contacts["status"] != Status.FREE)
        step, found = self.rows[touching] // len(self.parts), self._contacts[touching]
        through = found["status"] == Status.START
        # Of equal times one that overlaps at the start, then the first.
        order = np.lexsort((touching, ~through, found["time"]))
        steps, first = np.unique(step[order], return_index=True)
        chosen = order[first]
        hits["time"][steps], hits["through"][steps] = found["time"][chosen], through[chosen]
        hits["row"][steps], hits["pair"][steps] = touching[chosen], self._pair[touching[chosen]]
        return hits

    def hits(self) -> np.ndarray:
        """The time of the first contact of every pair in every step, (steps, pairs), > 1 for none; after `search`."""
        times = np.full(self.questions.asked * len(self.parts), 2.0)
        if self.total:
            times[self.rows] = np.where(self._contacts["status"] != Status.FREE, self._contacts["time"], 2.0)
        return times.reshape(self.questions.asked, -1)

    def details(self, steps: np.ndarray, hits: np.ndarray) -> tuple[np.ndarray, np.ndarray, Contacts]:
        """Status, time by which contact is certain, and contacts in the world, of some steps with their `StepHit`s."""
        found, pairs = self._contacts[hits["row"]].copy(), hits["pair"]
        self.questions.carry_to_world(found, steps, self.owner[pairs])
        is_mesh = np.array([isinstance(body, Mesh) for body in self.bodies])[self.parts[pairs]]
        contacts = Contacts.of(
            query=steps,
            time=found["time"].copy(),
            point_a=found["point_a"].copy(),
            point_b=found["point_b"].copy(),
            normal=found["normal"].copy(),
            body_a=self.parts[pairs, 0],
            body_b=self.parts[pairs, 1],
            feature_a=np.where(is_mesh[:, 0], found["triangle"], -1),
            feature_b=np.where(is_mesh[:, 1], found["triangle"], -1),
            kind=np.where(found["status"] == Status.START, Kind.OVERLAP, Kind.NONE),
        )
        return found["status"].astype(np.uint8), found["time_upper"].copy(), contacts

    def least(self, bounds: np.ndarray, accuracy: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """How near any two bodies of each step come below a bound: upper and time as `ConvexApproach`, what none comes
        nearer than, the pair; each (steps,). See `RigidPairs.least`."""
        count, step = len(bounds), self.rows // len(self.parts)
        found = np.zeros(self.total, _APPROACH)
        found["upper"], found["time"], found["certified"] = bounds[step], -1.0, True
        first, *finer = ever_finer(accuracy)
        low = self._approach(found, first)
        for rung in finer:
            nearest = bounds.copy()
            np.minimum.at(nearest, step, found["upper"])
            asked = np.flatnonzero(found["certified"] & (low < nearest[step]))  # others are not the nearest
            found[asked] = self._approached(found, asked, rung)[asked]
            sure = asked[found["certified"][asked]]
            low[sure] = (1.0 - rung) * found["upper"][sure]
        best = np.zeros(count, _APPROACH)
        best["upper"], best["time"] = bounds, -1.0
        lower, pair = (1.0 - accuracy) * bounds, np.full(count, -1, np.int32)
        np.minimum.at(lower, step, low)
        seen = np.flatnonzero(found["time"] >= 0.0)
        order = seen[np.lexsort((seen, found["upper"][seen]))]
        steps, place = np.unique(step[order], return_index=True)
        best[steps], pair[steps] = found[order[place]], self._pair[order[place]]
        return best, lower, pair

    def stay_beyond(self, lengths: np.ndarray) -> np.ndarray:
        """Whether all pairs of each step certainly stay farther apart than `lengths`, (steps,)."""
        step = self.rows // len(self.parts)
        free = self._found(lengths[step])["status"] == Status.FREE
        stays = np.ones(self.questions.asked, bool)
        np.logical_and.at(stays, step, free)
        return stays

    def _found(self, separation: np.ndarray) -> np.ndarray:
        """`ConvexContact` of all rows, a of each as in `parts`."""
        lengths = np.stack([separation, self._tolerances], axis=1)
        contacts = wp.zeros(self.total, dtype=ConvexContact, device=self.device)
        self._launched(step_contact_kernel, np.arange(self.total), lengths, [], contacts)
        found = contacts.numpy()
        back = self._swapped[self._pair]
        found["normal"][back] *= -1.0
        found["point_a"][back], found["point_b"][back] = found["point_b"][back], found["point_a"][back]
        return found

    def _approach(self, found: np.ndarray, accuracy: float) -> np.ndarray:
        """Lower what is `found` of all rows, and what they do not come nearer than, (rows,)."""
        reached, asked = np.full(self.total, accuracy), np.arange(self.total)
        while len(asked):
            found[asked] = self._approached(found, asked, accuracy)[asked]
            asked = asked[~found["certified"][asked] & (found["upper"][asked] > self._tolerances[asked])]
            if accuracy >= COARSEST:
                break
            accuracy = min(10.0 * accuracy, COARSEST)
            reached[asked] = accuracy
            found["certified"][asked] = True
        return np.where(found["certified"], (1.0 - reached) * found["upper"], 0.0)

    def _approached(self, found: np.ndarray, rows: np.ndarray, accuracy: float) -> np.ndarray:
        lengths = np.stack([np.zeros(self.total), self._tolerances], axis=1)
        approaches = wp.array(found, dtype=ConvexApproach, device=self.device)
        self._launched(step_approach_kernel, rows, lengths, [accuracy], approaches)
        return approaches.numpy()

    def _launched(
        self, kernel_of: Any, rows: np.ndarray, lengths: np.ndarray, inputs: list[Any], out: wp.array
    ) -> None:
        """Launch the kernel of each pair of kinds that some rows are of."""
        table = wp.array(lengths, dtype=wp.vec2d, device=self.device)
        groups = self._group[self._pair[rows]]
        for group in np.unique(groups):
            chosen = rows[groups == group]
            kinds = divmod(int(group), len(ConvexKind))
            which = np.stack([self.rows[chosen], chosen], axis=1).astype(np.int32)
            given = [wp.array(which, dtype=wp.vec2i, device=self.device), table, self._chained, self._pairs, *inputs]
            grain = MESH_GRAIN if kinds[1] == ConvexKind.TRIANGLE else GRAIN
            launch(kernel_of(*kinds), len(chosen), given, [out], device=self.device, grain=grain)

    def _bodies_on_device(self, kinds: np.ndarray) -> Any:
        count, device = len(self.bodies), self.device
        shapes, records = np.zeros(count, SHAPE), np.zeros(count, AnalyticShape.numpy_dtype())
        poses, tree = np.tile(np.eye(4), (count, 1, 1)), np.zeros((count, 2), np.int32)
        meshes = tuple(dict.fromkeys(body for body in self.bodies if isinstance(body, Mesh)))
        forest = Forest.of(meshes, device) if meshes else None
        points: list[np.ndarray] = []
        place = 0
        for k, body in enumerate(self.bodies):
            if isinstance(body, Mesh):
                assert forest is not None
                shape = meshes.index(body)
                tree[k] = forest.first_node[shape], forest.first_triangle[shape]
                records["kind"][k] = HULL
                shapes["reach"][k] = np.linalg.norm(body.vertices[np.unique(body.faces)], axis=1).max()
                continue
            records[k], poses[k] = body.records[0], to_numpy(body.poses, "poses")[0]
            shapes[k] = shape_records(body.records[:1], ConvexKind(kinds[k]), body.hull)[0]
            if kinds[k] == ConvexKind.HULL:
                shapes["first"][k] = place
                points.append(body.hull.corners)
                place += len(body.hull.corners)
        chained: Any = ChainedBodies()
        chained.motions = self.questions.motions
        chained.shapes = wp.array(shapes, dtype=ConvexShape, device=device)
        chained.points = wp.array(np.concatenate([np.zeros((0, 3)), *points]), dtype=wp.vec3d, device=device)
        chained.records = wp.array(records, dtype=AnalyticShape, device=device)
        chained.poses = wp.array(poses, dtype=wp.mat44d, device=device)
        chained.reach = wp.array(np.ascontiguousarray(shapes["reach"]), dtype=wp.float64, device=device)
        chained.tree = wp.array(tree, dtype=wp.vec2i, device=device)
        if forest is not None:
            chained.nodes, chained.corners = forest.nodes, forest.corners
        return chained
