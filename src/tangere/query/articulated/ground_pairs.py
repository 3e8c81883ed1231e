"""Pairs of bodies and ground in steps of a motion: squares of the ground that bodies come near, as meshes.

Question: when does a body touch the surface of a ground, how near does it come, and is it below at the start?
Method:   a ball that a body does not leave in a step says which squares of the ground it may come near
          (`broad_phase.ground`). They are meshes at rest, for the engines of `rigid_pairs` and `convex_pairs`; who is
          below the surface at the start of a step is found by `buried_pairs`.
Sound:    as `first_contact` with a height field, but of its surface only: ground is solid, and who comes in through a
          wall of a hole or of the border is told at the start of the next step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tangere.broad_phase.ground import GroundBlock, GroundBlocks
from tangere.query.articulated.buried_pairs import BuriedPairs
from tangere.query.articulated.convex_pairs import ConvexPairs
from tangere.query.articulated.pair_questions import PairQuestions
from tangere.query.articulated.rigid_pairs import RigidPairs
from tangere.query.contacts.record import Contacts
from tangere.query.first_contact.mesh_heightfield.details import in_ground, refuse_unnumbered
from tangere.runtime import CapacityError
from tangere.shape.analytic import Analytic
from tangere.shape.heightfield import Heightfield, TiledHeightfield
from tangere.shape.mesh import Mesh

Ground = Heightfield | TiledHeightfield

#: Rows, steps times pairs of parts, are numbered by int32.
MOST_ROWS = 2**31


class GroundPairs:
    """Pairs of a body and a ground.

    Args:
        questions: what is asked about pairs of bodies.
        bodies: the parts of each body; of ground, only itself.
        rows: which pairs of bodies are of a body and a ground, rising; the ground comes second.
    """

    def __init__(self, questions: PairQuestions, bodies: Sequence[Sequence[Any]], rows: np.ndarray) -> None:
        self._questions, self._bodies, self._rows = questions, bodies, rows
        self._pairs = questions.pairs[rows]
        self._grounds = {int(number): GroundBlocks.of(bodies[number][0]) for number in np.unique(self._pairs[:, 1])}
        for number in self._grounds:
            refuse_unnumbered(bodies[number][0])
        self._used = {number: np.zeros(0, np.int64) for number in self._grounds}  # squares that have been near
        self._tables: list[_Table] = []
        self._buried = BuriedPairs(questions, bodies, rows, self._grounds)

    def ask(self) -> list[Any]:
        """Take over what `questions` was asked: the engines that answer it."""
        asked = self._questions
        balls = asked.balls()
        reach = (asked.separations + asked.tolerances)[self._rows] * (1.0 + 1e-9)
        near = [
            self._grounds[ground].near_balls(balls[:, body], max(float(reach[k]), asked.beyond))
            for k, (body, ground) in enumerate(self._pairs.tolist())
        ]
        self._use(near)
        for table in self._tables:
            table.engine.ask(table.rows(near, self._pairs, self._used))
        engines = [table.engine for table in self._tables]
        self._buried.ask(balls)
        return [*engines, self._buried]

    def _use(self, near: list[tuple[np.ndarray, np.ndarray]]) -> None:
        """Make engines that know all squares that have been near, if there are new ones."""
        grown = not self._tables
        for (_, ground), (_, squares) in zip(self._pairs.tolist(), near, strict=True):
            used = np.union1d(self._used[ground], squares)
            grown |= len(used) > len(self._used[ground])
            self._used[ground] = used
        if not grown:
            return
        blocks = {ground: self._grounds[ground].blocks(used) for ground, used in self._used.items()}
        self._tables = [
            _Table.of(engine, kind, self._questions, self._bodies, self._rows, blocks)
            for engine, kind in ((MeshesOnGround, Mesh), (BodiesOnGround, Analytic))
        ]
        self._tables = [table for table in self._tables if table.engine is not None]


@dataclass(eq=False)
class _Table:
    """Parts of one kind on squares of ground: of each pair of bodies all its parts with all squares, in this order."""

    engine: Any
    begin: np.ndarray  #: (pairs,) number of the first of its parts with the first square
    parts: np.ndarray  #: (pairs,) how many parts of this kind its body has

    @classmethod
    def of(
        cls,
        engine: Any,
        kind: type,
        questions: PairQuestions,
        bodies: Sequence[Sequence[Any]],
        rows: np.ndarray,
        blocks: dict[int, list[GroundBlock]],
    ) -> _Table:
        things: list[Any] = []
        squares: list[GroundBlock] = []
        place: dict[int, int] = {}  # of what is among the things
        owner, own, square = [], [], []
        begin, parts = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)

        def number(thing: Any) -> int:
            if id(thing) not in place:
                place[id(thing)] = len(things)
                things.append(thing)
            return place[id(thing)]

        for k, row in enumerate(rows.tolist()):
            body, ground = questions.pairs[row].tolist()
            begin[k] = len(owner)
            for part in bodies[body]:
                if isinstance(part, kind):
                    parts[k] += 1
                    for block in blocks[ground]:
                        owner.append(row)
                        own.append((number(part), number(block.mesh)))
                        square.append(len(squares))
                        squares.append(block)
        if questions.steps * len(owner) >= MOST_ROWS:
            raise CapacityError(
                f"{questions.steps} segments with {len(owner)} pairs of parts and squares of ground are more than can"
                " be numbered (2^31): ask about fewer trajectories at once"
            )
        made = engine(questions, things, np.array(owner, np.int32), np.array(own, np.int32)) if owner else None
        if made is not None:
            made.blocks = squares
        return cls(made, begin, parts)

    def rows(
        self, near: list[tuple[np.ndarray, np.ndarray]], pairs: np.ndarray, used: dict[int, np.ndarray]
    ) -> np.ndarray:
        """What to ask the engine about: all parts of a body with each square that the body is near, in each step."""
        width, found = len(self.engine.parts), [np.zeros(0, np.int64)]
        for k, (step, square) in enumerate(near):
            known = used[int(pairs[k, 1])]
            first = step * width + self.begin[k] + np.searchsorted(known, square)
            found.append((first[:, None] + np.arange(self.parts[k]) * len(known)).reshape(-1))
        return np.sort(np.concatenate(found))


class MeshesOnGround(RigidPairs):
    """Meshes, and squares of ground."""

    blocks: Sequence[GroundBlock]  #: of each pair

    def details(self, steps: np.ndarray, hits: np.ndarray) -> tuple[np.ndarray, np.ndarray, Contacts]:
        """As `RigidPairs.details`, with the numbers that vertices, edges and faces have in the ground."""
        status, upper, contacts = super().details(steps, hits)
        return status, upper, _numbered(contacts, [self.blocks[pair] for pair in hits["pair"].tolist()])


class BodiesOnGround(ConvexPairs):
    """Analytic bodies, and squares of ground."""

    blocks: Sequence[GroundBlock]  #: of each pair

    def details(self, steps: np.ndarray, hits: np.ndarray) -> tuple[np.ndarray, np.ndarray, Contacts]:
        """As `ConvexPairs.details`, with the numbers that faces have in the ground."""
        status, upper, contacts = super().details(steps, hits)
        return status, upper, _numbered(contacts, [self.blocks[pair] for pair in hits["pair"].tolist()])


def _numbered(contacts: Contacts, blocks: list[GroundBlock]) -> Contacts:
    """Contacts, each with a square of ground, in the numbers of the whole ground."""
    distinct = list(dict.fromkeys(blocks))
    which = np.array([distinct.index(block) for block in blocks])
    order = np.argsort(which, kind="stable")
    parts = [in_ground(contacts[np.flatnonzero(which == k)], block) for k, block in enumerate(distinct)]
    return Contacts.joined(parts)[np.argsort(order, kind="stable")]
