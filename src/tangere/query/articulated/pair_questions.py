"""Questions about pairs of bodies in steps of a motion: what each pair moves by, and which pairs may meet at all.

Method:   pairs are asked about in the frame of their nearest common ancestor (`chain_layout`). Kernels turn joint
          values into motions, and balls and boxes about whole bodies drop what certainly stays apart (`questions`).
          What is left is for the engines of `rigid_pairs` and `convex_pairs`, part by part.
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
    StepValues,
    cull_step_pairs,
    gather_rows,
    place_bodies,
    write_step_motions,
)
from tangere.query.first_contact.rigid.bodies import Forest
from tangere.query.first_contact.rigid.conservative_advancement import Pair, QueryArrays, RigidQuery
from tangere.query.first_contact.rigid.query_batch import TOLERANCE
from tangere.runtime import InputError, NonCopyable, fetched, launch, offsets
from tangere.shape.mesh import Mesh

#: Queries, and steps, worth a thread when they are written.
QUERIES, STEPS = 256, 8
#: Threads that look at boxes about whole bodies on CUDA, about: each needs a row of a kilobyte to itself.
THREADS = 1 << 17
_MOTION = RigidMotion.numpy_dtype()


class PairQuestions(NonCopyable):
    """Pairs of bodies in up to `steps` steps, prepared for being asked again and again.

    Args:
        meshes: one for each body, in the frame it hangs on: the body itself, or what holds it.
        paths: the frames each body hangs on, from the world to the body.
        pairs: numbers of two bodies, (n, 2), n > 0.
        joints: `JointArrays`: the frames that joints move, 0 … m - 1; those from m on are given for each step.
        moved: how many frames these joints move.
        steps: how many steps there is room for.
        sizes: of each body, which default tolerances are parts of [m]; None means those of the meshes.
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
        sizes: np.ndarray | None = None,
        reduced: bool = True,
    ) -> None:
        self.meshes, self.pairs, self.steps, self.device = tuple(meshes), pairs, steps, device
        self.layout = ChainLayout.of(paths, pairs, reduced=reduced)
        distinct = tuple(dict.fromkeys(self.meshes))
        number = {mesh: k for k, mesh in enumerate(distinct)}
        self._shapes, self._shape = distinct, np.array([number[mesh] for mesh in self.meshes], np.int32)
        self._forest = Forest.of(distinct, device)
        self._extent = np.array([mesh.extent for mesh in self.meshes]) if sizes is None else sizes
        width, count = self.layout.width, len(pairs)
        self._parts = rows_of_step(device, steps, count)
        self.motions = wp.zeros(steps * width, dtype=RigidMotion, device=device)
        self._roots = self._root_arrays(steps * self._parts)
        self._kept = wp.zeros(steps * count, dtype=wp.int32, device=device)
        self.rows = wp.zeros(steps * count, dtype=wp.int32, device=device)
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
        self.table = self._pair_table()
        self._values: Any = StepValues()
        self._values.begin, self._values.end = (wp.zeros(steps, dtype=wp.int32, device=device) for _ in range(2))
        self._host_rows = [array.numpy() for array in (self._values.begin, self._values.end)] if device.is_cpu else []
        self.asked, self.total, self.beyond = 0, 0, 0.0
        self.given_tolerance: float | None = None

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
        self.asked, self.beyond = count, float(beyond)
        launch(write_step_motions, count * width, [self._frames, values], [self.motions], device=self.device)
        bodies = len(self.meshes)
        inputs = [self._bodies, width, self._roots]
        launch(place_bodies, count * bodies, inputs, [self._balls], device=self.device, grain=QUERIES)
        inputs = [self.table, self._balls, bodies, width, self._parts, float(beyond), self._roots]
        outputs = [self._kept, self._worst]
        launch(cull_step_pairs, count * self._parts, inputs, outputs, device=self.device, grain=STEPS)
        self.given_tolerance = tolerance
        if tolerance is not None:
            self.refuse_tolerance(tolerance, self._worst.numpy()[: count * self._parts])
        kept = self._kept[: count * pairs]
        self.offsets, self.total = offsets(kept)
        launch(gather_rows, count * pairs, [kept, self.offsets], [self.rows], device=self.device)

    @property
    def tolerance(self) -> float:
        """The largest of all pairs [m]."""
        return float(self.tolerances.max())

    def balls(self) -> np.ndarray:
        """What no body leaves in any step: a ball in the world, centre and radius, (steps, bodies, 4)."""
        count = self.asked * len(self.meshes)
        return fetched(self._balls, slice(count)).reshape(self.asked, len(self.meshes), 4)

    def poses(self, steps: np.ndarray, body: int) -> np.ndarray:
        """Where a body is at the start of some steps, (n, 4, 4)."""
        links, place = int(self.layout.body_links[body]), int(self.layout.body_first[body])
        first = steps * self.layout.width + place
        chain = fetched(self.motions, (first[:, None] + np.arange(links)).reshape(-1))
        return motions_of(chain, links, (len(steps),)).pose(0.0)

    def starts(self) -> np.ndarray:
        """(steps + 1,) the first query about each step."""
        return np.append(fetched(self.offsets, slice(None, None, len(self.pairs))), self.total)

    def expanded(self, first: np.ndarray, count: np.ndarray) -> np.ndarray:
        """What is left, for parts: step * parts + part, rising, where those of a pair are `count` from `first` on."""
        rows = fetched(self.rows, slice(self.total))
        step = rows // len(self.pairs)
        pair = rows - step * len(self.pairs)
        many = count[pair]
        begin = step * int(count.sum()) + first[pair]
        if many.max(initial=0) <= 1:
            return begin[many > 0]
        ends = np.cumsum(many)
        return np.repeat(begin - ends + many, many) + np.arange(ends[-1])

    def _put_rows(self, begin: np.ndarray, end: np.ndarray) -> None:
        """Between which rows of the configurations steps go."""
        if self._host_rows:
            self._host_rows[0][: len(begin)], self._host_rows[1][: len(end)] = begin, end
            return
        for kept, rows in ((self._values.begin, begin), (self._values.end, end)):
            wp.copy(kept, wp.array(rows, dtype=wp.int32, device="cpu"), count=len(rows))

    def refuse_tolerance(self, tolerance: float, kept: np.ndarray) -> None:
        """Raise if the tolerance could not be kept somewhere."""
        worst = float(kept.max(initial=0.0))
        if worst > tolerance:
            raise InputError(
                f"tolerance {tolerance!r} is below 1e-12 of the size of a pair, its motion included: rounding would"
                f" hide contacts; at least {worst:.3g} is possible"
            )

    def _root_arrays(self, rows: int) -> Any:
        """Where boxes about whole bodies are asked about, a row for each thread."""
        arrays: Any = QueryArrays()
        arrays.queries = wp.zeros(rows, dtype=RigidQuery, device=self.device)
        arrays.pairs = wp.zeros(rows, dtype=Pair, device=self.device)
        arrays.motions = self.motions
        arrays.nodes_a = arrays.nodes_b = self._forest.nodes
        arrays.corners_a = arrays.corners_b = self._forest.corners
        return arrays

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
        self.smooth = np.zeros(len(self.pairs), bool)
        table.smooth = wp.array(self.smooth, dtype=wp.bool, device=self.device)
        self._lengths: tuple[Any, ...] = ()
        return table

    def _put_lengths(self, separation: np.ndarray | float, tolerance: float | None) -> None:
        key = np.asarray(separation).tobytes(), tolerance
        if key == self._lengths:
            return
        larger = self._extent[self.pairs].max(axis=1)
        self.tolerances = TOLERANCE * larger if tolerance is None else np.full(len(larger), float(tolerance))
        apart = np.ascontiguousarray(np.broadcast_to(np.asarray(separation, float), len(self.pairs)))
        self.table.tolerance = wp.array(self.tolerances, dtype=wp.float64, device=self.device)
        self.table.separation = wp.array(apart, dtype=wp.float64, device=self.device)
        self.separations = apart
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
        self.smooth = np.asarray(of_pairs, bool)
        self.table.smooth = wp.array(self.smooth, dtype=wp.bool, device=self.device)
        self._bodies.smooth = bool(kinds.any())

    def carry_to_world(self, details: np.ndarray, steps: np.ndarray, pairs: np.ndarray) -> None:
        """Points and normals from the frames of ancestors to the world."""
        shared, root = self.layout.shared[pairs], self.layout.root[pairs]
        if not shared.any():
            return
        for cut in np.unique(shared[shared > 0]):
            rows = np.flatnonzero(shared == cut)
            first = steps[rows] * self.layout.width + root[rows]
            chain = fetched(self.motions, (first[:, None] + np.arange(cut)).reshape(-1))
            pose = motions_of(chain, int(cut)).pose(details["time"][rows])
            for name in ("point_a", "point_b"):
                details[name][rows] = np.einsum("nij,nj->ni", pose[:, :3, :3], details[name][rows]) + pose[:, :3, 3]
            details["normal"][rows] = np.einsum("nij,nj->ni", pose[:, :3, :3], details["normal"][rows])


def rows_of_step(device: wp.Device, steps: int, pairs: int) -> int:
    """How many threads look at the pairs of a step."""
    return 1 if device.is_cpu else min(max(THREADS // steps, 1), pairs)
