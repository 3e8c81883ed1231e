"""Which parts of an assembly clash, and how?

Method:   rules in this order. The same shape in the same place: duplicate. Surfaces apart: inside, by one vertex of
          each piece (`tangere.query.containment`), else near or free. Surfaces that meet: hard if either part without
          its skin (`mesh_without_skin`) still meets the other or is inside it, else touching. Depth does not decide
          between the two, as flat faces would need endless pieces. All pairs whose boxes are near are searched in one
          launch for each question.
Sound:    near and free are certified bounds of the distance; a pair that goes deeper than `Skin.deepest` is hard. What
          has no inside, or is too thin for the skin, is told in `note`, and hard where it is not proved to touch only.
Known as: clash detection: hard, clearance and duplicate clashes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
import warp as wp

from tangere.assembly.clash import FAULTS, Clash, Clashes, ClashKind
from tangere.assembly.pair_points import points_of_pairs
from tangere.assembly.part import Part
from tangere.broad_phase.bodies import box_pairs
from tangere.motion import Rest
from tangere.query.clearance import search_clearance
from tangere.query.containment import check_solid, contained_vertices, outward
from tangere.query.depth import find_escapes, search_depths
from tangere.query.distance import distance
from tangere.query.first_contact import MovingBodies, mesh_without_skin
from tangere.query.intersection import meeting_pairs
from tangere.runtime import InputError
from tangere.shape.mesh import Mesh

#: Coordinates of files of single precision are known to this part of them, with room for two parts and a pose.
SINGLE = 2.0**-22
#: And poses of double precision to this part.
DOUBLE = 2.0**-50
#: The skin is at least so many times what counts as touching.
LEAST_SKIN = 8.0
#: Distances are searched to this part of them.
_ACCURACY = 1e-3
#: Depths of parts that are hard in each other are told apart down to this part of the skin.
_DEPTH_RESOLUTION = 0.25
#: Pieces of surface for the depth of one pair, at most about.
_MOST_PIECES = 200_000
_AXES = np.concatenate([np.eye(3), -np.eye(3)]) + 0.0


@dataclass
class ClashSearch:
    """Parts, laid out for searches over many pairs of them."""

    parts: Sequence[Part]
    touch: float
    skin: float
    device: wp.Device
    timings: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        given: list[Mesh] = list(dict.fromkeys(part.shape for part in self.parts))
        number = {id(mesh): k for k, mesh in enumerate(given)}
        self.shape = np.array([number[id(part.shape)] for part in self.parts], np.int32)
        self.shapes = [outward(mesh) for mesh in given]
        self.turned = np.array([mesh is not own for mesh, own in zip(self.shapes, given, strict=True)])
        self.poses = np.stack([part.pose for part in self.parts])
        self.solid = np.array([_is_solid(mesh) for mesh in self.shapes])
        self._clock = perf_counter()

    def find(
        self, clearance: float, allowed: set[tuple[int, int]], depth: bool, accuracy: float, chord_error: float
    ) -> Clashes:
        """All clashes."""
        pairs = self._near_pairs(clearance, allowed)
        compared = len(pairs)
        kind = np.full(compared, "", object)
        note = np.full(compared, "", object)
        kind[self._same(pairs)] = ClashKind.DUPLICATE
        self._tell("boxes")
        triangles = meeting_pairs(self.shapes, self.shape, self.poses, pairs, self.device).astype(np.int64)
        self._tell("meeting")
        apart = np.flatnonzero(triangles[:, 0] < 0)
        lower, upper = np.zeros(compared), np.zeros(compared)
        lower[apart], upper[apart], triangles[apart] = self._distances(pairs[apart], clearance)
        meeting = (upper <= self.touch) & (kind == "")
        apart = (upper > self.touch) & (kind == "")
        kind[apart & (upper <= clearance)] = ClashKind.NEAR
        self._tell("distance")
        rows = np.flatnonzero(apart)
        kind[rows[self._nested(self.shapes, self.shape, self.poses, pairs[rows])]] = ClashKind.INSIDE
        self._tell("inside")
        rows = np.flatnonzero(meeting)
        hard, told = self._hard(pairs[rows])
        kind[rows], note[rows] = np.where(hard, ClashKind.HARD, ClashKind.TOUCHING), told
        self._tell("hard or touching")
        kept = np.flatnonzero(kind != "")
        kept = kept[np.lexsort((pairs[kept, 1], pairs[kept, 0], [_RANK[k] for k in kind[kept]]))]
        columns = self._columns(pairs[kept], kind[kept], lower[kept], upper[kept], triangles[kept], depth, accuracy)
        self._tell("depth")
        names = [part.name for part in self.parts]
        told_rows = tuple(
            Clash(int(a), int(b), names[a], names[b], ClashKind(kind[row]), *values, note=str(note[row]))
            for (a, b), row, values in zip(pairs[kept], kept, columns, strict=True)
        )
        open_parts, turned_parts = (
            tuple(name for name, s in zip(names, self.shape, strict=True) if those[s])
            for those in (~self.solid, self.turned)
        )
        return Clashes(
            told_rows,
            clearance,
            self.skin,
            self.touch,
            chord_error,
            len(names),
            compared,
            open_parts,
            turned_parts,
            self.timings,
        )

    def _tell(self, phase: str) -> None:
        now = perf_counter()
        self.timings[phase], self._clock = now - self._clock, now

    def _near_pairs(self, clearance: float, allowed: set[tuple[int, int]]) -> np.ndarray:
        """(k, 2) parts whose boxes are within the clearance, but for those that may touch."""
        boxes = grown_boxes(world_boxes(self.shapes, self.shape, self.poses), 0.5 * max(clearance, 4.0 * self.touch))
        pairs = box_pairs(boxes, device=self.device).astype(np.int64)
        if allowed and len(pairs):
            pairs = pairs[[tuple(pair) not in allowed for pair in pairs.tolist()]]
        return pairs

    def _same(self, pairs: np.ndarray) -> np.ndarray:
        """(k,) whether pairs are the same shape in the same place: no point of them is farther off than `touch`."""
        a, b = pairs.T
        extent = np.array([np.abs(mesh.bounds).max() for mesh in self.shapes])
        turned = np.abs(self.poses[a, :3, :3] - self.poses[b, :3, :3]).sum(axis=2).max(axis=1, initial=0.0)
        shifted = np.abs(self.poses[a, :3, 3] - self.poses[b, :3, 3]).max(axis=1, initial=0.0)
        return (self.shape[a] == self.shape[b]) & (turned * extent[self.shape[a]] + shifted <= self.touch)

    def _distances(self, pairs: np.ndarray, clearance: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Bounds of the distances, each (k,), inf where farther than the clearance; and (k, 2) triangles."""
        cap = max(clearance, 4.0 * self.touch) / (1.0 - _ACCURACY) * (1.0 + 1e-9)
        lower, upper, triangles = nearest_of_pairs(
            self.shapes, self.shape, self.poses, pairs, cap, self.touch, self.device
        )
        for row in np.flatnonzero((lower <= clearance) & (upper > clearance) & np.isfinite(upper)):
            a, b = (self.parts[k].body for k in pairs[row])
            found = distance(a, b, device=self.device)
            lower[row], upper[row] = found.lower, found.upper
        return lower, upper, triangles

    def _nested(self, shapes: Sequence[Mesh], shape: np.ndarray, poses: np.ndarray, pairs: np.ndarray) -> np.ndarray:
        """(k,) whether a piece of one body of a pair is inside the other; bodies without an inside hold nothing."""
        solid = np.array([_is_solid(mesh) for mesh in shapes])
        both = np.concatenate([pairs, pairs[:, ::-1]])
        rows = np.flatnonzero(solid[shape[both[:, 1]]])
        inside = np.zeros(len(both), bool)
        inside[rows] = contained_vertices(shapes, shape, poses, both[rows], self.device) >= 0
        return inside.reshape(2, -1).any(axis=0)

    def _hard(self, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(k,) whether pairs that meet are deeper in each other than the skin, and what is to be noted of them."""
        hard, note = np.zeros(len(pairs), bool), np.full(len(pairs), "", object)
        thin, refused = self._without_skins(np.unique(self.shape[pairs]))
        shapes = [*self.shapes, *thin.values()]
        place = {k: len(self.shapes) + n for n, k in enumerate(thin)}
        undecided = np.ones(len(pairs), bool)
        for side in (0, 1):
            rows = np.flatnonzero([self.shape[k] in place for k in pairs[:, side]])
            undecided[rows] = False
            rows = rows[~hard[rows]]
            if not len(rows):
                continue
            # The part without its skin is a body of its own, after all others.
            shape = np.concatenate([self.shape, [place[self.shape[k]] for k in pairs[rows, side]]]).astype(np.int32)
            poses = np.concatenate([self.poses, self.poses[pairs[rows, side]]])
            asked = np.stack([len(self.shape) + np.arange(len(rows)), pairs[rows, 1 - side]], axis=1)
            hard[rows] = meeting_pairs(shapes, shape, poses, asked, self.device)[:, 0] >= 0
            left = np.flatnonzero(~hard[rows])
            hard[rows[left]] = self._nested(shapes, shape, poses, asked[left])
        for row in np.flatnonzero(undecided):
            reasons = [refused[int(self.shape[k])] for k in pairs[row]]
            note[row] = f"touching is not told from hard: {reasons[0]}"
        rows = np.flatnonzero(undecided)
        hard[rows] = True
        deep = rows[[bool(self.solid[self.shape[pair]].all()) for pair in pairs[rows]]]
        if len(deep):  # the depth may prove that they only touch
            found = self._depths(pairs[deep], 0.05)
            hard[deep] = found.upper > self.skin
            note[deep[~hard[deep]]] = ""
        return hard, note

    def _without_skins(self, numbers: np.ndarray) -> tuple[dict[int, Mesh], dict[int, str]]:
        """Shapes without their skin by number, and why others keep it."""
        thin, refused = {}, {}
        for number in numbers.tolist():
            try:
                thin[number] = mesh_without_skin(self.shapes[number], (), self.skin)[0]
            except InputError as error:
                refused[number] = str(error)
        return thin, refused

    def _depths(self, pairs: np.ndarray, accuracy: float) -> Any:
        return search_depths(
            self.shapes,
            self.shape,
            self.poses,
            pairs,
            accuracy=accuracy,
            resolution=_DEPTH_RESOLUTION * self.skin,
            most=_MOST_PIECES,
            device=self.device,
        )

    def _columns(
        self,
        pairs: np.ndarray,
        kind: np.ndarray,
        lower: np.ndarray,
        upper: np.ndarray,
        triangles: np.ndarray,
        depth: bool,
        accuracy: float,
    ) -> list[tuple[Any, ...]]:
        """Distance, its bound from below, depth from below and above, escape, point and normal of each row."""
        count = len(pairs)
        deep = np.full((count, 2), np.nan)
        escape, point, normal = np.full((count, 3), np.nan), np.zeros((count, 3)), np.zeros((count, 3))
        seen = np.flatnonzero(triangles[:, 0] >= 0)
        if len(seen):
            corners = [
                np.stack([self._corners(pairs[row, side], triangles[row, side]) for row in seen]) for side in (0, 1)
            ]
            point[seen], normal[seen] = points_of_pairs(*corners, self.touch, self.device)
        middles = [row for row in range(count) if triangles[row, 0] < 0]
        for row in middles:  # duplicates, and what is inside farther from the surface than the clearance
            small = min((self.parts[k] for k in pairs[row]), key=lambda part: part.shape.extent)
            point[row] = small.pose[:3, :3] @ small.shape.bounds.mean(axis=0) + small.pose[:3, 3]
        same = kind == ClashKind.DUPLICATE
        normal[same] = 0.0
        if depth:
            solid = self.solid[self.shape[pairs]].all(axis=1)
            rows = np.flatnonzero(solid & ~same & np.isin(kind, FAULTS))
            found = self._depths(pairs[rows], accuracy)
            deep[rows] = np.stack([found.lower, found.upper], axis=1)
            sure = found.lower > 0.0
            point[rows[sure]], normal[rows[sure]] = found.point[sure], found.normal[sure]
            rows = np.flatnonzero(solid & np.isin(kind, FAULTS))
            ways = np.concatenate([np.tile(_AXES, (len(rows), 1, 1)), normal[rows, None]], axis=1)
            ways[:, -1] = np.where(ways[:, -1].any(axis=1, keepdims=True), ways[:, -1], _AXES[0])
            escape[rows] = find_escapes(self.shapes, self.shape, self.poses, pairs[rows], ways, device=self.device)
        meets = np.isin(kind, (ClashKind.DUPLICATE, ClashKind.HARD, ClashKind.TOUCHING))
        far = np.where(meets, 0.0, np.where(np.isfinite(upper), upper, np.nan)).tolist()
        near = np.where(meets, 0.0, lower).tolist()
        return list(zip(far, near, *deep.T.tolist(), escape, point, normal, strict=True))

    def _corners(self, part: int, triangle: int) -> np.ndarray:
        """(3, 3) corners of a triangle of a part in the world."""
        mesh, pose = self.parts[part].shape, self.poses[part]
        return mesh.vertices[mesh.faces[triangle]] @ pose[:3, :3].T + pose[:3, 3]


_RANK = {kind: rank for rank, kind in enumerate(ClashKind)}


def nearest_of_pairs(
    shapes: Sequence[Mesh],
    shape: np.ndarray,
    poses: np.ndarray,
    pairs: np.ndarray,
    cap: float,
    touch: float,
    device: wp.Device,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distances of many different pairs of bodies at rest whose surfaces do not meet, in one launch.

    Returns:
        (k,) from below and from above, inf where farther than the cap; (k, 2) triangles, -1 where farther. Where bodies
        are nearer than `touch` the search stops: both bounds are then at most that.
    """
    if not len(pairs):
        return np.zeros(0), np.zeros(0), np.zeros((0, 2), np.int64)
    sides = [MovingBodies(shapes, Rest(poses[side]), shape[side]) for side in pairs.T]
    bounds = np.full(len(pairs), cap)
    found, lower = search_clearance(*sides, bounds, accuracy=_ACCURACY, tolerance=touch, device=device)
    seen = found["time"] >= 0.0
    triangles = np.where(seen[:, None], np.stack([found["a"], found["b"]], axis=1), -1)
    return lower, np.where(seen, found["upper"], np.inf), triangles


def world_boxes(shapes: Sequence[Mesh], shape: np.ndarray, poses: np.ndarray) -> np.ndarray:
    """(n, 2, 3) boxes of bodies in the world [m]."""
    boxes = np.empty((len(shape), 2, 3))
    for row, (number, pose) in enumerate(zip(shape, poses, strict=True)):
        placed = pose[:3, :3] @ shapes[number].vertices.T
        boxes[row] = placed.min(axis=1), placed.max(axis=1)
    return boxes + poses[:, None, :3, 3]


def grown_boxes(boxes: np.ndarray, margin: float) -> np.ndarray:
    """Boxes grown by a margin [m], in single precision, rounded outwards."""
    rounding = 1e-12 * np.abs(boxes).max(initial=0.0)
    lower, upper = (
        (boxes[:, 0] - margin - rounding).astype(np.float32),
        (boxes[:, 1] + margin + rounding).astype(np.float32),
    )
    return np.stack([np.nextafter(lower, np.float32(-np.inf)), np.nextafter(upper, np.float32(np.inf))], axis=1)


def _is_solid(mesh: Mesh) -> bool:
    """Whether a mesh has an inside."""
    try:
        check_solid(mesh, "part")
    except InputError:
        return False
    return True
