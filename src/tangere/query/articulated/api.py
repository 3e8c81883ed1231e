"""Every pair of many bodies that hang on each other, in every step of a long motion: all of it in one batch.

Question: in each step, which two bodies touch first and when, and how near do any two come at the least?
Method:   pairs are asked about in the frame of their nearest common ancestor (`chain_layout`). Kernels turn joint
          values into motions and queries (`questions`). Meshes are searched by the engines of rigid parts
          (`rigid_pairs`), analytic bodies by those of convex ones (`convex_pairs`), both on squares of ground
          (`ground_pairs`). A body may have several parts.
Sound:    as `first_contact` and `least_clearance` of each pair; a step is free if all its pairs are.
Known as: continuous collision checking of kinematic trees (Redon et al. 2004), by conservative advancement.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import warp as wp

from tangere.query.articulated.buried_pairs import BuriedPairs
from tangere.query.articulated.chain_layout import ChainLayout
from tangere.query.articulated.convex_pairs import ConvexPairs
from tangere.query.articulated.ground_pairs import GroundPairs
from tangere.query.articulated.pair_questions import PairQuestions
from tangere.query.articulated.rigid_pairs import RigidPairs
from tangere.query.contacts.record import Contacts
from tangere.query.first_contact.mesh_heightfield.api import LEAST_PART
from tangere.query.first_contact.rigid.query_batch import TOLERANCE
from tangere.runtime import NonCopyable
from tangere.shape.analytic import Analytic
from tangere.shape.heightfield import Heightfield, TiledHeightfield
from tangere.shape.mesh import Mesh

#: What a body may be made of: meshes, and analytic bodies, one each; or of one ground, which rests where it is.
Part = Mesh | Analytic | Heightfield | TiledHeightfield
#: The earliest contact of a step: its time (> 1: none), the pair (-1), and who found it in which row.
_HIT = np.dtype([("time", "f8"), ("pair", "i4"), ("row", "i4"), ("own", "i4"), ("engine", "i4")])
#: The nearest approach of a step: the distance, and when (-1: nothing below the bound).
_NEAREST = np.dtype([("upper", "f8"), ("time", "f8")])


class ArticulatedQueries(NonCopyable):
    """Questions about pairs of bodies in up to `steps` steps, prepared for being asked again and again.

    Args:
        meshes: one for each body, in the frame it hangs on: what holds all of it; of ground, its surface.
        bodies: the parts of each body, there; a part is a mesh, or one analytic body.
        paths: the frames each body hangs on, from the world to the body.
        pairs: numbers of two bodies, (n, 2), n > 0; ground comes second.
        joints: `JointArrays`: the frames that joints move, 0 … m - 1; those from m on are given for each step.
        moved: how many frames these joints move.
        steps: how many steps there is room for.
        reduced: see `ChainLayout.of`.
    """

    def __init__(
        self,
        meshes: Sequence[Mesh],
        bodies: Sequence[Sequence[Part]],
        paths: Sequence[tuple[int, ...]],
        pairs: np.ndarray,
        joints: Any,
        moved: int,
        steps: int,
        device: wp.Device,
        *,
        reduced: bool = True,
    ) -> None:
        self.pairs, self.steps = pairs, steps
        ground = np.array([isinstance(body[0], Heightfield | TiledHeightfield) for body in bodies])
        sizes = np.array(
            [
                _size_of_ground(body[0]) if of else mesh.extent
                for of, body, mesh in zip(ground, bodies, meshes, strict=True)
            ]
        )
        self._questions = PairQuestions(
            meshes, paths, pairs, joints, moved, steps, device, sizes=sizes, reduced=reduced
        )
        parts = [part for body in bodies for part in body]
        starts = np.cumsum([0, *map(len, bodies)])
        found: dict[Any, list[tuple[int, int, int]]] = {RigidPairs: [], ConvexPairs: []}
        on_ground = ground[pairs[:, 1]]
        for row, (a, b) in enumerate(pairs.tolist()):
            if on_ground[row]:
                continue
            for one, other in product(range(*starts[a : a + 2]), range(*starts[b : b + 2])):
                both = isinstance(parts[one], Mesh) and isinstance(parts[other], Mesh)
                found[RigidPairs if both else ConvexPairs].append((row, one, other))
        self._ground = GroundPairs(self._questions, bodies, np.flatnonzero(on_ground)) if on_ground.any() else None
        self.engines: list[Any] = []  #: by what the parts of bodies are
        for engine, rows in found.items():
            if rows:
                table = np.array(rows, np.int32)
                used, numbers = np.unique(table[:, 1:], return_inverse=True)
                own = numbers.reshape(-1, 2).astype(np.int32)
                self.engines.append(engine(self._questions, [parts[k] for k in used], table[:, 0], own))
        self._between = tuple(self.engines)

    @property
    def layout(self) -> ChainLayout:
        """Where the motions lie."""
        return self._questions.layout

    @property
    def tolerance(self) -> float:
        """The largest of all pairs [m]."""
        return self._questions.tolerance

    def ask(
        self,
        configurations: wp.array,
        begin: np.ndarray,
        end: np.ndarray,
        given: np.ndarray | None = None,
        *,
        separation: float = 0.0,
        tolerance: float | None = None,
        beyond: float = 0.0,
    ) -> None:
        """Write down steps that go from one configuration to another.

        Args:
            configurations: (n, dof) float64, on the device.
            begin, end: rows of these, (steps,) each.
            given: records of the frames without a joint, (steps, frames), or (1, frames) for all steps.
            separation: distance that already counts as contact [m].
            tolerance: as for `first_contact`; None means 1e-6 of the larger body's size.
            beyond: pairs are left out that certainly stay farther apart than this, and than what counts as contact [m].
        """
        self._questions.ask(
            configurations, begin, end, given, separation=separation, tolerance=tolerance, beyond=beyond
        )
        for engine in self._between:
            engine.ask()
        self.engines = [*self._between, *(self._ground.ask() if self._ground else ())]

    def search(self) -> np.ndarray:
        """Search all pairs of all steps; of each step the earliest, (steps,): `time`, > 1 for none, and `pair`, -1."""
        best = np.zeros(self._questions.asked, _HIT)
        best["time"], best["pair"] = 2.0, -1
        through = np.zeros(len(best), bool)
        for k, engine in enumerate(self.engines):
            hits = engine.search()
            overlap = hits["through"].astype(bool)
            if isinstance(engine, BuriedPairs):  # what touches the surface at the start is told by who finds that
                overlap &= engine.owner[hits["pair"]] != best["pair"]
            sooner = hits["time"] < best["time"]
            sooner |= (hits["time"] == best["time"]) & overlap & ~through & (hits["pair"] >= 0)
            best["time"][sooner], best["row"][sooner] = hits["time"][sooner], hits["row"][sooner]
            best["own"][sooner], best["pair"][sooner] = hits["pair"][sooner], engine.owner[hits["pair"][sooner]]
            best["engine"][sooner], through[sooner] = k, overlap[sooner]
        return best

    def hits(self) -> np.ndarray:
        """The time of the first contact of every pair in every step, (steps, pairs), > 1 for none; after `search`."""
        times = np.full((self._questions.asked, len(self.pairs)), 2.0)
        for engine in self.engines:
            np.minimum.at(times, (slice(None), engine.owner), engine.hits())
        return times

    def details(self, steps: np.ndarray, hits: np.ndarray) -> tuple[np.ndarray, np.ndarray, Contacts]:
        """Status, time by which contact is certain, and contacts in the world, of steps with what `search` said."""
        status, upper = np.zeros(len(hits), np.uint8), np.zeros(len(hits))
        contacts: list[Contacts] = []
        rows: list[np.ndarray] = []
        for k, engine in enumerate(self.engines):
            mine = np.flatnonzero(hits["engine"] == k)
            if len(mine):
                own = np.zeros(len(mine), [("pair", "i4"), ("row", "i4")])
                own["pair"], own["row"] = hits["own"][mine], hits["row"][mine]
                status[mine], upper[mine], found = engine.details(steps[mine], own)
                found.body_a[:], found.body_b[:] = self.pairs[hits["pair"][mine]].T
                contacts.append(found)
                rows.append(mine)
        return status, upper, Contacts.joined(contacts)[np.argsort(np.concatenate(rows))]

    def least(self, bounds: np.ndarray, accuracy: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The nearest two bodies of each step below a bound: `upper` and `time` (-1: none), what none comes nearer
        than, the pair (-1).

        Each (steps,). `ask` must have been told of what is nearer than (1 - accuracy) times the bounds.
        """
        nearest = np.zeros(len(bounds), _NEAREST)
        nearest["upper"], nearest["time"] = bounds, -1.0
        lower, pair = np.full(len(bounds), np.inf), np.full(len(bounds), -1, np.int32)
        for engine in self.engines:
            found, low, own = engine.least(nearest["upper"].copy(), accuracy)
            seen = (own >= 0) & (found["upper"] < nearest["upper"])
            for name in _NEAREST.names or ():
                nearest[name][seen] = found[name][seen]
            pair[seen] = engine.owner[own[seen]]
            lower = np.minimum(lower, low)
        return nearest, lower, pair

    def stay_beyond(self, lengths: np.ndarray) -> np.ndarray:
        """Whether all pairs of each step certainly stay farther apart than `lengths`, (steps,).

        `ask` must have been told of what is nearer than the largest of them.
        """
        return np.logical_and.reduce([engine.stay_beyond(lengths) for engine in self.engines])


def _size_of_ground(field: Heightfield | TiledHeightfield) -> float:
    """What default tolerances of ground are a part of: as much as rounding wants, a body's own size else [m]."""
    return LEAST_PART / TOLERANCE * float(np.abs(field.bounds).max())
