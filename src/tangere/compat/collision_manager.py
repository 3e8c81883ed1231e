"""trimesh's `CollisionManager`, answered by our questions: which of many posed meshes meet, how far are they apart?

Method: boxes in the world say which pairs may meet; one thread a pair decides those (`object_pairs`). Distances are
        those of `distance`, nearest boxes first, until no box is nearer than what was found.
Exact:  as `intersects` and `distance`. Touching counts as collision. A closed, convex mesh is a solid, as in trimesh:
        what is inside it is in collision with it. Other meshes are surfaces: one wholly inside another is free.
Known as: trimesh's `trimesh.collision.CollisionManager`, a front end of FCL (Pan, Chitta and Manocha 2012).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np
import warp as wp

from tangere.broad_phase.bodies import box_pairs
from tangere.compat.collision_data import ContactData, DistanceData
from tangere.compat.collision_object import CollisionObject
from tangere.compat.convex_solids import one_inside, overlap_depth
from tangere.compat.object_pairs import ObjectGroup, colliding
from tangere.compat.triangle_contacts import contact_depths, contact_points
from tangere.query.distance import distance
from tangere.query.intersection import intersecting_pairs
from tangere.runtime import InputError, choose_device, on_own_threads

#: What an object is called that is in no manager.
_EXTERNAL = "__external"
#: More objects than this go through the broad phase; among fewer, all boxes are compared with all.
_FEW = 256
#: Rows of a table of all pairs of boxes made at a time, and pairs whose distances are compared at a time.
_ROWS = 512
_PAIRS = 2**18

#: A distance, and the faces and points of both objects where it is.
_Nearest = tuple[float, tuple[int, int], tuple[np.ndarray, np.ndarray]]


class CollisionManager:
    """Meshes by name, each at its transform: which are in collision, and how near are they to each other?

    Methods, results and exceptions are those of `trimesh.collision.CollisionManager`; python-fcl is not needed. Meshes
    may be trimesh's or ours.

    Args:
        device: where to compute; pairs are asked about one at a time, which suits the CPU.
        threads: CPU threads; None means all, or TANGERE_THREADS.

    Example:
        >>> import numpy as np, tangere as tg
        >>> from tangere.compat import CollisionManager
        >>> manager = CollisionManager()
        >>> aside = np.eye(4)
        >>> aside[0, 3] = 1.5
        >>> _ = manager.add_object("ball", tg.generate.icosphere(3))
        >>> _ = manager.add_object("ring", tg.generate.torus(2048), aside)
        >>> manager.in_collision_internal(return_names=True)
        (True, {('ball', 'ring')})
        >>> manager.allow("ball", "ring")
        >>> manager.in_collision_internal()
        False
    """

    def __init__(self, *, device: str | wp.Device | None = "cpu", threads: int | None = None) -> None:
        self._device, self.threads = choose_device(device), threads
        self._objects: dict[Hashable, CollisionObject] = {}
        self._allowed: set[frozenset[Hashable]] = set()
        self._last: ObjectGroup | None = None

    def __repr__(self) -> str:
        return f"CollisionManager({len(self._objects)} objects)"

    # -- what is in it ------------------------------------------------------------------------------------------------

    def add_object(self, name: Hashable, mesh: Any, transform: Any = None) -> CollisionObject:
        """Put a mesh into the manager, in place of the one that had this name.

        Args:
            mesh: a `trimesh.Trimesh` or a `tangere.Mesh`.
            transform: (4, 4) where it is; None means the identity.
        """
        self._objects[name] = thing = CollisionObject(mesh, transform)
        return thing

    def remove_object(self, name: Hashable) -> None:
        """Take a mesh out of the manager, and what was allowed for it."""
        self._known(name)
        del self._objects[name]
        self._allowed = {pair for pair in self._allowed if name not in pair}

    def set_transform(self, name: Hashable, transform: Any) -> None:
        """Put the object somewhere else: (4, 4), instead of the transform it had."""
        self._known(name).transform = transform

    def allow(self, a: Hashable, b: Hashable) -> None:
        """Let two objects touch, as parts in a joint do: internal answers leave the pair out from now on."""
        self._known(a)
        self._known(b)
        self._allowed.add(frozenset((a, b)))

    # -- collisions ---------------------------------------------------------------------------------------------------

    @on_own_threads
    def in_collision_single(
        self, mesh: Any, transform: Any = None, return_names: bool = False, return_data: bool = False
    ) -> Any:
        """Whether a mesh collides with an object of the manager.

        Returns:
            is_collision, then, where asked for, the set of names of all objects it collides with, and a list of
            `ContactData`.
        """
        mine, other = self._group(), ObjectGroup({_EXTERNAL: CollisionObject(mesh, transform)})
        pairs, data = _collisions(mine, other, _overlapping(mine.boxes, other.boxes), return_data, self._device)
        return _answer(bool(pairs), {name for name, _ in pairs}, data, return_names, return_data)

    @on_own_threads
    def in_collision_internal(self, return_names: bool = False, return_data: bool = False) -> Any:
        """Whether any two objects of the manager collide that are not allowed to touch.

        Returns:
            is_collision, then, where asked for, the set of pairs of names, each in alphabetical order, and a list of
            `ContactData`.
        """
        mine = self._group()
        if len(mine.boxes) > _FEW:
            rows = box_pairs(_rounded_outward(mine.boxes), device=wp.get_device("cpu"))
        else:
            rows = _overlapping(mine.boxes, mine.boxes)
            rows = rows[rows[:, 0] < rows[:, 1]]
        pairs, data = _collisions(mine, mine, self._unlike(mine, rows), return_data, self._device)
        return _answer(bool(pairs), set(pairs), data, return_names, return_data)

    @on_own_threads
    def in_collision_other(
        self, other_manager: CollisionManager, return_names: bool = False, return_data: bool = False
    ) -> Any:
        """Whether an object of this manager collides with one of another.

        Returns:
            is_collision, then, where asked for, the set of pairs of names (of this manager, of the other), and a list
            of `ContactData`.
        """
        mine, other = self._group(), other_manager._group()
        pairs, data = _collisions(mine, other, _overlapping(mine.boxes, other.boxes), return_data, self._device)
        return _answer(bool(pairs), set(pairs), data, return_names, return_data)

    # -- distances ----------------------------------------------------------------------------------------------------

    @on_own_threads
    def min_distance_single(
        self, mesh: Any, transform: Any = None, return_name: bool = False, return_data: bool = False
    ) -> Any:
        """The least distance of a mesh to the objects of the manager.

        Returns:
            distance [m], inf where the manager is empty, minus the depth where convex solids overlap; then, where asked
            for, the name of the nearest object, and a `DistanceData`.
        """
        mine, other = self._group(), ObjectGroup({_EXTERNAL: CollisionObject(mesh, transform)})
        least, names, data = _least_distance(mine, other, _blocks(len(mine.names), 1), self._device)
        return _answer(least, names[0], data, return_name, return_data)

    @on_own_threads
    def min_distance_internal(
        self, name: Hashable = None, return_names: bool = False, return_data: bool = False
    ) -> Any:
        """The least distance of two objects of the manager that are not allowed to touch, or of one to the others.

        Args:
            name: the one; None means of any two.

        Returns:
            distance [m], inf where there are no two, minus the depth where convex solids overlap; then, where asked
            for, both names in alphabetical order, and a `DistanceData`.
        """
        mine = self._group()
        if name is None:
            blocks = (rows[rows[:, 0] < rows[:, 1]] for rows in _blocks(len(mine.names), len(mine.names)))
        else:
            self._known(name)
            one, others = mine.names.index(name), np.arange(len(mine.names))
            blocks = iter([np.stack([np.full_like(others, one), others], axis=1)[others != one]])
        unlike = (self._unlike(mine, rows) for rows in blocks)
        least, names, data = _least_distance(mine, mine, unlike, self._device)
        return _answer(least, names, data, return_names, return_data)

    @on_own_threads
    def min_distance_other(
        self, other_manager: CollisionManager, return_names: bool = False, return_data: bool = False
    ) -> Any:
        """The least distance of an object of this manager to one of another.

        Returns:
            distance [m], inf where there are no two, minus the depth where convex solids overlap; then, where asked
            for, both names (of this manager, of the other), and a `DistanceData`.
        """
        mine, other = self._group(), other_manager._group()
        blocks = _blocks(len(mine.names), len(other.names))
        least, names, data = _least_distance(mine, other, blocks, self._device)
        return _answer(least, names, data, return_names, return_data)

    # -----------------------------------------------------------------------------------------------------------------

    def _known(self, name: Hashable) -> CollisionObject:
        if name not in self._objects:
            raise InputError(f"{name} not in collision manager!")
        return self._objects[name]

    def _group(self) -> ObjectGroup:
        self._last = ObjectGroup(self._objects, self._last)
        return self._last

    def _unlike(self, group: ObjectGroup, rows: np.ndarray) -> np.ndarray:
        """The pairs that are not allowed to touch, names in alphabetical order."""
        rank = np.empty(len(group.names), np.int64)
        rank[sorted(range(len(rank)), key=group.names.__getitem__)] = np.arange(len(rank))
        rows = np.where((rank[rows[:, 0]] > rank[rows[:, 1]])[:, None], rows[:, ::-1], rows)
        place = {name: row for row, name in enumerate(group.names)} if self._allowed else {}
        for pair in self._allowed:
            rows = rows[~np.isin(rows, [place[name] for name in pair]).all(axis=1)]
        return rows


def scene_to_collision(scene: Any) -> tuple[CollisionManager, dict[Hashable, CollisionObject]]:
    """A manager with the objects of a `trimesh.Scene`, and the objects by the names of their nodes.

    Example:
        >>> import trimesh
        >>> from tangere.compat import scene_to_collision
        >>> manager, objects = scene_to_collision(trimesh.Scene([trimesh.creation.box(), trimesh.creation.icosphere()]))
        >>> len(objects), manager.in_collision_internal()
        (2, True)
    """
    manager, objects = CollisionManager(), {}
    for node in scene.graph.nodes_geometry:
        transform, geometry = scene.graph[node]
        objects[node] = manager.add_object(node, scene.geometry[geometry], transform)
    return manager, objects


def _answer(found: Any, names: Any, data: Any, return_names: bool, return_data: bool) -> Any:
    """What trimesh returns: the bare answer, or a tuple of it with what was asked for."""
    asked = [value for value, wanted in ((names, return_names), (data, return_data)) if wanted]
    return (found, *asked) if asked else found


def _collisions(
    a: ObjectGroup, b: ObjectGroup, rows: np.ndarray, return_data: bool, device: wp.Device
) -> tuple[list[tuple[Hashable, Hashable]], list[ContactData]]:
    """The names of the pairs that collide, and their contacts where asked for."""
    rows = rows[colliding(a, b, rows, device)].tolist()
    names = [(a.names[i], b.names[j]) for i, j in rows]
    things = [(a.objects[i], b.objects[j]) for i, j in rows]
    return names, _contacts(names, things, device) if return_data else []


def _contacts(
    names: list[tuple[Hashable, Hashable]], pairs: list[tuple[CollisionObject, CollisionObject]], device: wp.Device
) -> list[ContactData]:
    """All contacts of pairs that collide."""
    data: list[ContactData] = []
    met: list[tuple[tuple[Hashable, Hashable], np.ndarray]] = []
    corners: list[tuple[np.ndarray, np.ndarray]] = []
    for named, (a, b) in zip(names, pairs, strict=True):
        faces = intersecting_pairs(a.placed, b.placed, device=device)
        held = one_inside(a, b) if not len(faces) else None
        if held is not None:
            first, (point, depth, normal) = held
            data.append(ContactData(named, (-1, -1), point, normal if first else -normal, depth))
        elif len(faces):
            met.append((named, faces))
            corners.append((a.triangles(faces[:, 0]), b.triangles(faces[:, 1])))
    if met:
        corners_a, corners_b = (np.concatenate(side) for side in zip(*corners, strict=True))
        points = contact_points(corners_a, corners_b)
        depths, normals = contact_depths(corners_a, corners_b)
        rows = zip(points, normals, depths.tolist(), strict=True)
        each = ((named, (i, j)) for named, faces in met for i, j in faces.tolist())
        data += [ContactData(named, faces, *row) for (named, faces), row in zip(each, rows, strict=True)]
    return data


def _least_distance(
    a: ObjectGroup, b: ObjectGroup, blocks: Iterator[np.ndarray], device: wp.Device
) -> tuple[float, tuple[Hashable, Hashable], DistanceData | None]:
    """The least distance of a pair, its names, and where it is."""
    least, nearest, data = np.inf, (None, None), None
    rows, gaps = _nearest_boxes(a.boxes, b.boxes, blocks)
    near = rows[gaps <= 0.0]
    meeting = near[colliding(a, b, near, device)]
    asked = _depth if len(meeting) else _distance
    if len(meeting):
        rows, gaps = meeting, _gaps(a.boxes[meeting[:, 0]], b.boxes[meeting[:, 1]])
    for k in np.argsort(gaps, kind="stable").tolist():
        if gaps[k] > least:
            break
        i, j = rows[k].tolist()
        one, other = a.objects[i], b.objects[j]
        if least <= 0.0 and not (one.solid and other.solid):  # only solids are nearer than 0
            continue
        found, faces, points = asked(one, other, device)
        if found < least:
            least, nearest = found, (a.names[i], b.names[j])
            data = DistanceData(nearest, faces, points, found)
    return least, nearest, data


def _distance(a: CollisionObject, b: CollisionObject, device: wp.Device) -> _Nearest:
    """Of two objects that do not collide: the distance, the faces and the points that are nearest."""
    found = distance(a.placed, b.placed, device=device)
    return found.lower, (found.triangle_a, found.triangle_b), (found.point_a, found.point_b)


def _depth(a: CollisionObject, b: CollisionObject, device: wp.Device) -> _Nearest:
    """Of two that do: minus the depth of solids, 0 of others."""
    if a.solid and b.solid:
        depth = overlap_depth(a, b)
        return -depth.depth, (-1, -1), (depth.point_a, depth.point_b)
    return 0.0, *_distance(a, b, device)[1:]


def _blocks(count_a: int, count_b: int) -> Iterator[np.ndarray]:
    """All pairs, so many rows of the table at a time that they fit into memory."""
    rows = max(1, _PAIRS // max(count_b, 1))
    for first in range(0, count_a, rows):
        of_a = np.arange(first, min(first + rows, count_a))
        yield np.stack(np.meshgrid(of_a, np.arange(count_b), indexing="ij"), axis=-1).reshape(-1, 2)


def _nearest_boxes(
    boxes_a: np.ndarray, boxes_b: np.ndarray, blocks: Iterator[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """The pairs that may be nearest, and the gaps between their boxes: no gap is larger than the smallest reach."""
    kept: list[tuple[np.ndarray, np.ndarray]] = [(np.zeros((0, 2), np.int64), np.zeros(0))]
    bound = np.inf
    for rows in blocks:
        a, b = boxes_a[rows[:, 0]], boxes_b[rows[:, 1]]
        reach = np.linalg.norm(np.maximum(a[:, 1] - b[:, 0], b[:, 1] - a[:, 0]), axis=1)
        bound = min(bound, reach.min(initial=np.inf))
        gaps = _gaps(a, b)
        kept.append((rows[gaps <= bound], gaps[gaps <= bound]))
    rows, gaps = (np.concatenate(parts) for parts in zip(*kept, strict=True))
    return rows[gaps <= bound], gaps[gaps <= bound]


def _overlapping(boxes_a: np.ndarray, boxes_b: np.ndarray) -> np.ndarray:
    """(n, 2) the pairs of boxes that overlap."""
    found = [np.zeros((0, 2), np.int64)]
    for first in range(0, len(boxes_a), _ROWS):
        some = boxes_a[first : first + _ROWS]
        meet = np.ones((len(some), len(boxes_b)), bool)
        for axis in range(3):
            meet &= some[:, 0, axis, None] <= boxes_b[:, 1, axis]
            meet &= boxes_b[:, 0, axis] <= some[:, 1, axis, None]
        found.append(np.argwhere(meet) + (first, 0))
    return np.concatenate(found)


def _gaps(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(n,) the distance of the two boxes of each pair; minus their depth where they overlap."""
    between = np.maximum(a[:, 0] - b[:, 1], b[:, 0] - a[:, 1])
    apart = np.linalg.norm(np.maximum(between, 0.0), axis=1)
    return np.where(apart > 0.0, apart, between.max(axis=1))


def _rounded_outward(boxes: np.ndarray) -> np.ndarray:
    rounded = boxes.astype(np.float32)
    rounded[:, 0] = np.nextafter(rounded[:, 0], np.float32(-np.inf))
    rounded[:, 1] = np.nextafter(rounded[:, 1], np.float32(np.inf))
    return rounded
