"""The moving bodies of a batch of queries: shapes, which of them each body has, and how each moves."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import warp as wp

from tangere.bvh.obb import ObbNode, ObbTree, WideObbTree, refuse_tiny
from tangere.bvh.recession import RecessionCones, Vertices
from tangere.motion import Rest, Rigid
from tangere.runtime import Arrays, InputError, UnsupportedError, device_of, to_numpy
from tangere.shape import Moving
from tangere.shape.mesh import Mesh

AT_REST = Rest()
#: Forests of several shapes kept for the next query about the same ones. They belong to no single mesh, so a mesh
#: that is paired with ever new others must not keep them.
KEPT_FORESTS = 8
_kept: OrderedDict[tuple[Any, ...], Forest] = OrderedDict()
_keeping = threading.Lock()


@dataclass(frozen=True)
class Forest:
    """The trees of several shapes, one after the other."""

    nodes: wp.array
    corners: wp.array
    first_node: np.ndarray  #: (shapes,) int32
    first_wide: np.ndarray  #: (shapes,) int32: of the nodes of `wide`
    first_triangle: np.ndarray  #: (shapes,) int32
    depth: int
    shapes: tuple[Mesh, ...]

    @cached_property
    def wide(self) -> tuple[wp.array, wp.array, wp.array, int]:
        """Rows, children and nodes of all `WideObbTree`s, and their depth; on CPUs."""
        cpu, trees = wp.get_device("cpu"), [WideObbTree.of(shape) for shape in self.shapes]
        return (
            _joined([tree.rows for tree in trees], wp.float32, cpu),
            _joined([tree.children for tree in trees], wp.int32, cpu),
            _joined([tree.nodes for tree in trees], wp.int32, cpu),
            max(tree.depth for tree in trees),
        )

    @cached_property
    def cones(self) -> tuple[wp.array, wp.array]:
        """Recession vectors of all nodes, as `RecessionCones` has them; nodes of open meshes have none."""
        device, each = device_of(self.nodes), self._each_cones
        vectors = np.concatenate([cones.vectors.numpy().reshape(-1, 3) for cones in each])
        before = np.cumsum([0] + [len(cones.vectors) for cones in each])
        first = [cones.first.numpy()[:-1] + offset for cones, offset in zip(each, before[:-1], strict=True)]
        rows = np.concatenate([*first, before[-1:]]).astype(np.int32)
        return (
            wp.array(rows, dtype=wp.int32, device=device),
            wp.array(vectors, dtype=wp.vec3d, device=device),
        )

    @cached_property
    def vertices(self) -> Vertices:
        """Vertices that decide whether cones may be used."""
        return Vertices.of(self.shapes, self._each_cones, device_of(self.nodes))

    @cached_property
    def _each_cones(self) -> list[RecessionCones]:
        device = device_of(self.nodes)
        return [RecessionCones.of(shape, ObbTree.of(shape, device), device=device) for shape in self.shapes]

    @staticmethod
    def of(shapes: Sequence[Mesh], device: wp.Device) -> Forest:
        """The forest of `shapes` on `device`: that of one shape is kept with it, of several the last ones asked for."""
        shapes = tuple(shapes)
        if len(shapes) == 1:
            cache, key = shapes[0].cache, (Forest, device.alias)
            forest = cache.get(key)
            if forest is None:
                forest = cache[key] = Forest._grown(shapes, device)
            return forest
        key = (device.alias, *map(id, shapes))  # numbers of meshes that live: the forest kept holds them
        with _keeping:
            forest = _kept.get(key)
        if forest is None:
            forest = Forest._grown(shapes, device)
        with _keeping:
            forest = _kept.setdefault(key, forest)  # another thread may have been quicker
            _kept.move_to_end(key)
            if len(_kept) > KEPT_FORESTS:
                _kept.popitem(last=False)
        return forest

    @staticmethod
    def _grown(shapes: tuple[Mesh, ...], device: wp.Device) -> Forest:
        for shape in shapes:
            refuse_tiny(shape)
        trees = [ObbTree.of(shape, device) for shape in shapes]
        return Forest(
            _joined([tree.nodes for tree in trees], ObbNode, device),
            _joined([tree.corners for tree in trees], wp.vec3d, device),
            np.cumsum([0] + [len(tree.nodes) for tree in trees[:-1]], dtype=np.int32),
            np.cumsum([0] + [len(WideObbTree.of(shape)) for shape in shapes[:-1] if device.is_cpu], dtype=np.int32),
            np.cumsum([0] + [len(shape.faces) for shape in shapes[:-1]], dtype=np.int32),
            max(tree.depth for tree in trees),
            shapes,
        )


@dataclass(frozen=True)
class MovingBodies:
    """n bodies: body i is `shapes[shape[i]]` under motion i.

    Args:
        shapes: the meshes there are.
        motion: n rigid motions, or one for all.
        shape: which mesh each body is, shape (n,); None means the first one.
    """

    shapes: Sequence[Mesh]
    motion: Any
    shape: Arrays | None = None

    def __post_init__(self) -> None:
        if not len(self.shapes):
            raise InputError("MovingBodies: there are no shapes")
        if not isinstance(self.motion, Rigid):
            raise UnsupportedError(f"MovingBodies: the motion must be rigid, not {type(self.motion).__name__}")
        if self.shape is not None:
            chosen = to_numpy(self.shape, "MovingBodies: shape", None)
            if chosen.ndim != 1 or not np.issubdtype(chosen.dtype, np.integer):
                given = f"{chosen.dtype} {chosen.shape}"
                raise InputError(f"MovingBodies: shape must be a row of whole numbers, not {given}")
            wrong = (chosen < 0) | (chosen >= len(self.shapes))
            if wrong.any():
                at = int(np.argmax(wrong))
                raise InputError(f"MovingBodies: shape[{at}] is {chosen[at]} but there are {len(self.shapes)} shapes")
            if self.motion.shape not in ((), chosen.shape):
                raise InputError(f"MovingBodies: {len(chosen)} bodies and {self.motion.shape[0]} motions")
            object.__setattr__(self, "shape", chosen.astype(np.int32))

    @property
    def count(self) -> int | None:
        """How many bodies; None for one that serves every query."""
        if self.shape is not None:
            return len(self.shape)
        return self.motion.shape[0] if self.motion.shape else None

    def body(self, row: int) -> Moving:
        """One of the bodies, or the only one."""
        mesh = self.shapes[0 if self.shape is None else self.shape[row]]
        return mesh.moving(self.motion[row] if self.motion.shape else self.motion)

    @cached_property
    def extent(self) -> Any:
        """Size of each body, or of the only one [m]."""
        sizes = np.array([shape.extent for shape in self.shapes])
        return sizes[0] if self.shape is None else sizes[self.shape]


def bodies_of(thing: Mesh | Moving | MovingBodies, name: str) -> MovingBodies:
    """A mesh at rest or moving as bodies."""
    if isinstance(thing, MovingBodies):
        return thing
    if isinstance(thing, Mesh):
        return MovingBodies((thing,), AT_REST)
    if isinstance(thing, Moving) and not isinstance(thing.motion, Rigid):
        raise UnsupportedError(f"{name}: the motion must be rigid, not {type(thing.motion).__name__}")
    if isinstance(thing, Moving):
        return MovingBodies((thing.shape,), thing.motion)
    raise InputError(f"{name} must be a Mesh, a moving Mesh or Bodies, not {type(thing).__name__}")


def batch_size(a: MovingBodies, b: MovingBodies) -> int:
    """How many queries two sides make: n with n, or n with one."""
    counts = {bodies.count for bodies in (a, b) if bodies.count is not None}
    if len(counts) > 1:
        raise InputError(f"a has {a.count} bodies and b has {b.count}: they must be as many, or one")
    return counts.pop() if counts else 1


def no_cones(device: wp.Device) -> tuple[wp.array, wp.array]:
    """The cones of queries that do not cull."""
    return wp.zeros(1, dtype=wp.int32, device=device), wp.zeros(1, dtype=wp.vec3d, device=device)


def _joined(parts: list[wp.array], dtype: Any, device: wp.Device) -> wp.array:
    if len(parts) == 1:
        return parts[0]
    joined = wp.empty(sum(map(len, parts)), dtype=dtype, device=device)
    place = 0
    for part in parts:
        wp.copy(joined, part, place, 0, len(part))
        place += len(part)
    return joined
