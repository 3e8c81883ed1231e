"""The contact rows of a world from step to step: their arrays, and the launches that fill them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from tangere.dynamics.body import Body
from tangere.dynamics.contact.hits import (
    LEAST_TIME,
    NEXT_LEAST_TIME,
    CarriedBodies,
    make_hit_rows,
    make_rows_near_hits,
    straighten_rows,
)
from tangere.dynamics.contact.passing import FaceOutlines
from tangere.dynamics.contact.rows import (
    Distances,
    KeptRows,
    RowFacts,
    SurfaceTable,
    keep_rows,
    make_rows,
    place_rows,
    placed_rows,
)
from tangere.dynamics.material import SurfaceKinds
from tangere.dynamics.saved_arrays import SavedArrays
from tangere.dynamics.solver import ContactRowArrays, reserve
from tangere.dynamics.state import BodyConstants, RigidState, distinct_meshes
from tangere.query.contacts import Contacts, Kind
from tangere.query.proximity.posed import MeshFeatures, patch_outlines
from tangere.runtime import PreparedLaunch, to_numpy
from tangere.shape.mesh import Mesh

#: Rows there is room for at first.
ROOM = 64
#: Columns of `KeptRows`.
KEPT = ("body_a", "body_b", "key", "force", "target")
#: Columns that tell of a step after it.
TOLD = ("body_a", "body_b", "arm_a", "arm_b", "frame", "impulse")
TOLD_FACTS = ("key", "kind", "feature_a", "feature_b", "point_a", "point_b", "gap", "struck")


class RowSet:
    """Contact rows: those of near features, then those of hits.

    Args:
        motion: how bodies go in the step.
    """

    def __init__(
        self,
        bodies: Sequence[Body],
        surfaces: SurfaceKinds,
        table: BodyConstants,
        state: RigidState,
        motion: wp.array,
        distances: Distances,
        second_order: bool,
        device: wp.Device,
    ) -> None:
        self._device, self._table, self._state = device, table, state
        self._motion, self._distances = motion, distances
        self._second_order = int(second_order)
        self._surfaces = surface_table(bodies, surfaces, device)
        self._carried: Any = CarriedBodies()
        self._carried.table, self._carried.state, self._carried.motion = table, state, motion
        self._carried.surfaces, self._carried.distances = self._surfaces, distances
        self.trust_early_hits(False)
        self.arrays: Any = ContactRowArrays()  #: as the solver takes them
        self.facts: Any = RowFacts()
        self.placing: Any = ContactRowArrays()  #: the rows that move contacts apart which are too near
        self._kept: Any = KeptRows()
        self._kept_range = wp.zeros(2, dtype=wp.int32, device=device)  #: rows kept between meshes
        self._kept_analytic = wp.zeros(
            2, dtype=wp.int32, device=device
        )  #: and those kept of analytic bodies, behind them
        self._none, self._begin = (wp.zeros(1, dtype=wp.int32, device=device) for _ in range(2))
        self.count, self.gathered = 0, 0  #: rows, and those of them that are no hits
        self._between = 0  #: those between meshes
        self.version = 0  #: another one when the arrays are
        self._room, self._made_of = 0, (None, None, None)
        self._make: PreparedLaunch | None = None
        self._saved, self._saved_counts = SavedArrays(), (0, 0, 0)
        self._kept_counts = self._saved_kept_counts = (0, 0)  #: rows kept between meshes, and with the others
        self._reserve(ROOM)

    def _reserve(self, count: int) -> None:
        """Room for more rows; what is there stays."""
        if count <= self._room:
            return
        device = self._device
        self.version += 1
        self._room = 0  # until all is there: who interrupts this finds launches over arrays that are gone
        for rows in (self.arrays, self.facts, self.placing, self._kept):
            reserve(rows, count, device)
        for name in ("body_a", "body_b", "arm_a", "arm_b", "frame"):
            setattr(self.placing, name, getattr(self.arrays, name))
        room = len(self.arrays.body_a)
        self._lack, self._pushed = (wp.zeros(room, dtype=wp.float64, device=device) for _ in range(2))
        arrays, facts, placing, distances = self.arrays, self.facts, self.placing, self._distances
        most = 0.1 * float(distances.security)
        unused = wp.zeros(room, dtype=wp.float64, device=device)
        self._place, self._hold = (
            PreparedLaunch(
                place_rows,
                [arrays, facts, self._motion, self._table, self._state, self._surfaces, distances, most]
                + [self._second_order, pushing, placing.bias, placing.friction, placing.impulse, lack],
                device,
                grain=512,
            )
            for pushing, lack in ((1, self._lack), (0, unused))
        )
        self._keep = PreparedLaunch(keep_rows, [arrays, facts, self._pushed, distances, self._kept], device, grain=512)
        self._straighten = PreparedLaunch(straighten_rows, [facts, distances.dt, arrays.bias], device)
        self._measure: PreparedLaunch | None = None
        self._make = None
        self._room = 2 * count

    # -- in a step -----------------------------------------------------------------------------------------------------

    def clear(self) -> None:
        """No rows."""
        self.count = self.gathered = self._between = 0

    def make(self, columns: Any, chosen: wp.array, count: int, pairs: wp.array) -> None:
        """Rows of the chosen of the contacts found between pairs of bodies."""
        self._reserve(count)
        given = columns, chosen, pairs
        if self._make is None or any(new is not old for new, old in zip(given, self._made_of, strict=True)):
            arguments = [chosen, columns, pairs, self._table, self._state, self._motion, self._surfaces]
            arguments += [
                self._distances,
                self._kept,
                self._kept_range,
                self._none,
                self._second_order,
                self.arrays,
                self.facts,
            ]
            self._make, self._made_of = PreparedLaunch(make_rows, arguments, self._device, grain=256), given
        self._make(count)
        self.count = self.gathered = self._between = count

    def make_analytic(self, columns: Any, count: int, pairs: np.ndarray) -> None:
        """Rows of contacts of analytic bodies, behind those between meshes."""
        self._reserve(self.count + count)
        device = self._device
        self._begin.fill_(self.count)
        chosen = wp.array(np.arange(count, dtype=np.int32), dtype=wp.int32, device=device)
        arguments = [chosen, columns, wp.array(pairs, dtype=wp.vec2i, device=device), self._table, self._state]
        arguments += [self._motion, self._surfaces, self._distances, self._kept, self._kept_analytic, self._begin]
        arguments += [self._second_order, self.arrays, self.facts]
        PreparedLaunch(make_rows, arguments, device, grain=256)(count)
        self.count += count
        self.gathered = self.count

    def trust_early_hits(self, trusted: bool) -> None:
        """Whether rows of hits take what early ones lost for the square of time, however little that is."""
        self._carried.least_time = NEXT_LEAST_TIME if trusted else LEAST_TIME

    def add_hits(self, pairs: wp.array, answer: Any, hits: np.ndarray) -> None:
        """Rows of those pairs asked about that were hit."""
        columns = answer.columns
        arguments = [wp.array(hits, dtype=wp.int32, device=self._device), pairs, answer.time]
        self._add(make_hit_rows, [*arguments, columns.point_a, columns.point_b, columns.normal], len(hits))

    def add_analytic_hits(self, hits: Any) -> None:
        """Rows of what analytic bodies hit (`AnalyticHits`)."""
        device, count = self._device, len(hits.times)
        points = [wp.array(each, dtype=wp.vec3d, device=device) for each in (hits.point_a, hits.point_b, hits.normal)]
        arguments = [wp.array(np.arange(count, dtype=np.int32), dtype=wp.int32, device=device)]
        arguments += [wp.array(hits.pairs, dtype=wp.vec2i, device=device)]
        arguments += [wp.array(hits.times, dtype=wp.float64, device=device), *points]
        self._add(make_hit_rows, arguments, count)

    def add_near_hits(self, columns: Any, chosen: wp.array, count: int, pairs: np.ndarray, times: np.ndarray) -> None:
        """Rows of the chosen of the contacts that pairs of bodies have when they meet."""
        device = self._device
        given = wp.array(pairs, dtype=wp.vec2i, device=device), wp.array(times, dtype=wp.float64, device=device)
        self._add(make_rows_near_hits, [chosen, columns, *given], count)

    def _add(self, kernel: wp.Kernel, arguments: list[Any], more: int) -> None:
        self._reserve(self.count + more)
        self._begin.fill_(self.count)
        PreparedLaunch(
            kernel, [*arguments, self._carried, self._begin, self.arrays, self.facts], self._device, grain=256
        )(more)
        self.count += more

    def bodies(self) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of the bodies of each row."""
        return self._read(self.arrays, "body_a"), self._read(self.arrays, "body_b")

    def straighten(self) -> bool:
        """Leave out of the rows what hits showed beyond their approach: it is for motions, not for velocities.

        Whether there was any.
        """
        if self.count == self.gathered:
            return False
        self._straighten.launch(self.count - self.gathered, self.gathered)
        return True

    def place(self, pushing: bool = True) -> float:
        """The rows that move contacts apart; by how much the most [m].

        Args:
            pushing: False: they only see to it that nothing else brings contacts nearer than that.
        """
        if not pushing:
            self._hold(self.count)
            return 0.0
        self._place(self.count)
        self._pushed.zero_()
        return float(self._lack.numpy()[: self.count].max(initial=0.0))

    def measure(self, placed: wp.array) -> None:
        """See how far that has been done."""
        if self._measure is None:
            arguments = [self.arrays, placed, self._lack, self._distances.dt, self._pushed]
            self._measure = PreparedLaunch(placed_rows, arguments, self._device, grain=512)
        self._measure(self.count)

    def keep(self) -> None:
        """The step is done: impulses and targets of its rows are where the next one begins."""
        self._keep(self.gathered)
        self._know_kept(self._between, self.gathered)

    def forget(self) -> None:
        """No rows, and no warm starts."""
        self.clear()
        self._know_kept(0, 0)

    def _know_kept(self, between: int, everything: int) -> None:
        """So many rows are kept of meshes, and of all."""
        self._kept_counts = between, everything
        self._kept_range.assign([0, between])
        self._kept_analytic.assign([between, everything])

    def save(self) -> None:
        """Keep what a step overwrites."""
        self._saved_counts, self._saved_kept_counts = (self.count, self.gathered, self._between), self._kept_counts
        self._saved.save(self._told(), self.count)
        self._saved.save(self._kept_columns(), self._kept_counts[1])

    def restore(self) -> None:
        """As it was kept."""
        self._saved.restore(self._told())
        self._saved.restore(self._kept_columns())
        self.count, self.gathered, self._between = self._saved_counts
        self._know_kept(*self._saved_kept_counts)

    def _told(self) -> list[tuple[str, wp.array]]:
        columns = [(name, getattr(self.arrays, name)) for name in TOLD]
        return columns + [(f"fact {name}", getattr(self.facts, name)) for name in TOLD_FACTS]

    def _kept_columns(self) -> list[tuple[str, wp.array]]:
        return [(f"kept {name}", getattr(self._kept, name)) for name in KEPT]

    def checkpoint(self) -> dict[str, np.ndarray]:
        """What the next step begins with, by name."""
        ends = np.array(self._kept_counts, np.int64)
        kept = {name: to_numpy(getattr(self._kept, name), name, None)[: ends.max()].copy() for name in KEPT}
        return kept | {"ends": ends}

    def resume(self, kept: dict[str, np.ndarray]) -> None:
        """Begin the next step with what a checkpoint has."""
        self.clear()
        count = len(kept["key"])
        self._reserve(count)
        for name in KEPT if count else ():
            column = getattr(self._kept, name)
            wp.copy(column, wp.array(kept[name], dtype=column.dtype, device=self._device), count=count)
        self._know_kept(*kept["ends"].tolist())

    # -- looking -------------------------------------------------------------------------------------------------------

    def contacts(self) -> Contacts:
        """The rows as contacts, where the step began."""
        columns = {name: self._read(self.facts, name) for name in ("point_a", "point_b", "gap", "kind", "key")}
        kind = columns["kind"]
        return Contacts.of(
            point_a=columns["point_a"],
            point_b=columns["point_b"],
            normal=np.ascontiguousarray(self._read(self.arrays, "frame")[:, 0]),
            gap=columns["gap"],
            kind=np.select([kind < 0, kind == 2], [int(Kind.NONE), int(Kind.EDGE_EDGE)], int(Kind.VERTEX_FACE)),
            vertex_on=(kind == 1).astype(np.uint8),
            feature_a=self._read(self.facts, "feature_a"),
            feature_b=self._read(self.facts, "feature_b"),
            body_a=self._read(self.arrays, "body_a"),
            body_b=self._read(self.arrays, "body_b"),
            key=columns["key"],
        )

    def impulses(self) -> np.ndarray:
        """(n, 3) that the first body of each contact got in the last step, in the world frame [N s]."""
        impulse = self._read(self.arrays, "impulse") + self._read(self.facts, "struck")
        return np.einsum("nij,ni->nj", self._read(self.arrays, "frame"), impulse)

    def approach(self, velocity: np.ndarray) -> np.ndarray:
        """(n,) how fast the bodies of each row approach there, with (bodies, 6) velocities [m/s]."""
        speed = np.zeros((self.count, 3))
        for sign, side in ((1.0, "a"), (-1.0, "b")):
            motion = velocity[self._read(self.arrays, f"body_{side}")]
            speed += sign * (motion[:, :3] + np.cross(motion[:, 3:], self._read(self.arrays, f"arm_{side}")))
        return -np.einsum("ni,ni->n", speed, self._read(self.arrays, "frame")[:, 0])

    def _read(self, rows: Any, name: str) -> np.ndarray:
        return to_numpy(getattr(rows, name), name, None)[: self.count].copy()


def surface_table(bodies: Sequence[Body], surfaces: SurfaceKinds, device: wp.Device) -> Any:
    """Friction, restitution and edges as kernels take them."""
    table: Any = SurfaceTable()
    table.kinds = len(surfaces.friction)
    table.friction = wp.array(surfaces.friction.ravel(), dtype=wp.float64, device=device)
    table.restitution = wp.array(surfaces.restitution.ravel(), dtype=wp.float64, device=device)
    meshes = distinct_meshes(bodies)
    ends = [mesh.vertices[mesh.edges] for mesh in meshes]
    ways = np.concatenate([pair[:, 1] - pair[:, 0] for pair in ends])
    length = np.linalg.norm(ways, axis=1, keepdims=True)
    table.edge = wp.array(ways / np.where(length > 0.0, length, 1.0), dtype=wp.vec3d, device=device)
    table.edge_length = wp.array(length[:, 0], dtype=wp.float64, device=device)
    table.edge_first = _first_of(meshes, "edges", device)
    table.outlines = _outlines(meshes, device)
    return table


def _first_of(meshes: Sequence[Mesh], name: str, device: wp.Device) -> wp.array:
    """The first edge or face of each mesh, where those of all are counted through."""
    first = np.cumsum([0] + [len(getattr(mesh, name)) for mesh in meshes])[:-1]
    return wp.array(first.astype(np.int32), dtype=wp.int32, device=device)


def _outlines(meshes: Sequence[Mesh], device: wp.Device) -> Any:
    """The rims of flat places, as kernels take them."""
    outlines: Any = FaceOutlines()
    outlines.mesh_first = _first_of(meshes, "faces", device)
    patch, counts, begin, way, before = [], [], [], [], 0
    for mesh in meshes:
        patch.append(MeshFeatures.of(mesh).patch + before)
        before += len(mesh.faces)
        offsets, sides = patch_outlines(mesh)
        counts.append(np.diff(offsets))
        corners = mesh.vertices[mesh.faces]
        begin.append(corners.reshape(-1, 3)[sides])
        way.append(np.roll(corners, -1, axis=1).reshape(-1, 3)[sides] - begin[-1])
    first = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    outlines.patch = wp.array(np.concatenate(patch).astype(np.int32), dtype=wp.int32, device=device)
    outlines.first = wp.array(first.astype(np.int32), dtype=wp.int32, device=device)
    outlines.begin = wp.array(np.concatenate(begin), dtype=wp.vec3d, device=device)
    outlines.way = wp.array(np.concatenate(way), dtype=wp.vec3d, device=device)
    return outlines
