"""Which bodies are below the surface of a ground at the start of a step? They meet it on the way up.

Method: where the surfaces do not meet, a point is below the ground if and only if the surface is somewhere above it. So
        bodies below whose highest ground something is are moved straight up, all of them in one batch for each part
        (`mesh_heightfield.below_ground`); of analytic bodies the search on the pyramid of heights says it.
Sound:  as these.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from tangere.broad_phase.ground import GroundBlocks
from tangere.motion import Rest, Twist
from tangere.query.articulated.pair_questions import PairQuestions
from tangere.query.articulated.questions import StepHit
from tangere.query.contacts.record import Contacts, Kind, Status
from tangere.query.first_contact.heightfield.query_batch import answers_of
from tangere.query.first_contact.mesh_heightfield.below_ground import SHARPER
from tangere.query.first_contact.options import Accuracy
from tangere.query.first_contact.rigid.api import rigid_first_contacts
from tangere.query.first_contact.rigid.bodies import MovingBodies
from tangere.shape.mesh import Mesh

_HIT = StepHit.numpy_dtype()
#: No surface is looked for more sharply than to this part of the way and the coordinates.
ROUNDING = 2.0**-38
#: A row that is below: the step, the pair, how deep it is at least, and the point of the surface above.
_BURIED = np.dtype([("step", "i8"), ("pair", "i4"), ("depth", "f8"), ("point", "3f8")])


class BuriedPairs:
    """Bodies and grounds; arguments as for `GroundPairs`, and the grounds' squares by body."""

    def __init__(
        self,
        questions: PairQuestions,
        bodies: Sequence[Sequence[Any]],
        rows: np.ndarray,
        grounds: dict[int, GroundBlocks],
    ) -> None:
        self.owner = rows
        self._questions, self._bodies, self._grounds = questions, bodies, grounds
        self._pairs = questions.pairs[rows]

    def ask(self, balls: np.ndarray) -> None:
        """Take over what `questions` was asked, and the balls of all bodies."""
        self._balls = balls
        self.__dict__.pop("_buried", None)

    def search(self) -> np.ndarray:
        """The steps at whose start a body is below a surface, or touches it; `StepHit`, (steps,)."""
        hits = np.zeros(self._questions.asked, _HIT)
        hits["time"], hits["pair"] = 2.0, -1
        step, first = np.unique(self._buried["step"], return_index=True)
        hits["time"][step], hits["through"][step], hits["row"][step] = 0.0, True, first
        hits["pair"][step] = self._buried["pair"][first]
        return hits

    def hits(self) -> np.ndarray:
        """The time of the first contact of every pair in every step, (steps, pairs), > 1 for none."""
        times = np.full((self._questions.asked, len(self.owner)), 2.0)
        times[self._buried["step"], self._buried["pair"]] = 0.0
        return times

    def details(self, steps: np.ndarray, hits: np.ndarray) -> tuple[np.ndarray, np.ndarray, Contacts]:
        """Status, time by which contact is certain, and how far up out is, of some steps with their `StepHit`s."""
        found = self._buried[hits["row"]]
        contacts = Contacts.of(
            query=steps,
            time=np.zeros(len(found)),
            point_a=found["point"] - found["depth"][:, None] * (0.0, 0.0, 1.0),
            point_b=found["point"].copy(),
            normal=np.tile([0.0, 0.0, 1.0], (len(found), 1)),
            gap=-found["depth"],
            kind=np.full(len(found), Kind.INSIDE, np.uint8),
        )
        return np.full(len(found), Status.START, np.uint8), np.zeros(len(found)), contacts

    def least(self, bounds: np.ndarray, accuracy: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What is below is as near as can be; see `RigidPairs.least`."""
        below = self.search()
        buried = below["pair"] >= 0
        nearest = np.zeros(len(bounds), [("upper", "f8"), ("time", "f8")])
        nearest["upper"], nearest["time"] = np.where(buried, 0.0, bounds), np.where(buried, 0.0, -1.0)
        return nearest, np.where(buried, 0.0, (1.0 - accuracy) * bounds), below["pair"]

    def stay_beyond(self, lengths: np.ndarray) -> np.ndarray:
        """Whether no body of a step is below, (steps,)."""
        return self.search()["pair"] < 0

    @cached_property
    def _buried(self) -> np.ndarray:
        """What is below, by step."""
        found = [np.zeros(0, _BURIED)]
        for k, (body, ground) in enumerate(self._pairs.tolist()):
            blocks = self._grounds[ground]
            ball, square = blocks.near_balls(self._balls[:, body], 0.0, above=True)
            if len(ball):
                tolerance = float(self._questions.tolerances[self.owner[k]])
                poses = self._questions.poses(np.unique(ball), body)
                for part in self._bodies[body]:
                    if isinstance(part, Mesh):
                        found.append(self._mesh_below(k, part, poses, ball, square, tolerance))
                    else:
                        found.append(self._body_below(k, part, poses, np.unique(ball), tolerance))
        below = np.concatenate(found)
        return below[np.lexsort((-below["depth"], below["step"]))]

    def _mesh_below(
        self, k: int, mesh: Mesh, poses: np.ndarray, ball: np.ndarray, square: np.ndarray, tolerance: float
    ) -> np.ndarray:
        """Of a mesh at poses in steps `ball` without repetition, with squares that may be above it."""
        body, ground = self._pairs[k].tolist()
        blocks, centres = self._grounds[ground], self._balls[:, body]
        steps, step = np.unique(ball, return_inverse=True)
        lowest = (centres[:, 2] - centres[:, 3])[steps]
        highest = np.full(len(steps), -np.inf)
        np.maximum.at(highest, step, blocks.bounds[square, 1, 2])
        rise = highest - lowest + 1e-3 * (mesh.extent + np.abs(highest))
        distinct, shape = np.unique(square, return_inverse=True)
        way = np.zeros((len(ball), 3))
        way[:, 2] = rise[step]
        found = rigid_first_contacts(
            MovingBodies((mesh,), Twist(poses[step], way, np.zeros((len(ball), 3)))),
            MovingBodies([block.mesh for block in blocks.blocks(distinct)], Rest(), shape),
            tolerance=max(SHARPER * tolerance, ROUNDING * float(np.abs(rise).max() + np.abs(poses).max())),
            start="trusted",
            device=self._questions.device,
        )
        hit = np.flatnonzero(found.status != Status.FREE)
        order = hit[np.lexsort((found.time[hit], step[hit]))]
        which, first = np.unique(step[order], return_index=True)
        chosen = order[first]
        below = np.zeros(len(which), _BURIED)
        below["step"], below["pair"] = steps[which], k
        below["depth"], below["point"] = rise[which] * found.time[chosen], found.point_b[chosen]
        return below

    def _body_below(self, k: int, part: Any, poses: np.ndarray, steps: np.ndarray, tolerance: float) -> np.ndarray:
        """Of an analytic body at poses in some steps."""
        field = self._bodies[int(self._pairs[k, 1])][0]
        found = answers_of(
            part.moving(Rest(poses)), field, Accuracy(tolerance=tolerance), False, self._questions.device
        )
        start = np.flatnonzero(found["status"] == Status.START)
        below = np.zeros(len(start), _BURIED)
        below["step"], below["pair"] = steps[start], k
        below["point"] = found["point_b"][start]
        return below
