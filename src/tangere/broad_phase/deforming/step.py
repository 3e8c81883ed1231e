"""One step of one or two meshes whose vertices move along straight lines: positions and trees on a device.

Trees over vertices, edges and faces are built once per topology and kept with it; every query fits new boxes to them.
After `FITS_PER_ORDER` fits the order of the items is made anew, because a mesh that crumples leaves it behind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import warp as wp

from tangere.bvh.lbvh import Frame, LinearTree, TreeBoxes, vertex_boxes
from tangere.motion import Linear
from tangere.runtime import InputError, UnsupportedError, as_points, choose_device, device_of, launch
from tangere.shape import Moving
from tangere.shape.mesh import Mesh

FITS_PER_ORDER = 64
#: The magnitudes of a vertex add up to less than this, so those of any query to less than 1e100.
LARGEST = wp.constant(wp.float64(1.0e98))


@dataclass(frozen=True)
class FittedMesh:
    """Boxes of a body's trees over part of a step; trees are fitted when first asked for."""

    body: MeshInStep
    boxes: wp.array = field(repr=False)

    @cached_property
    def vertices(self) -> TreeBoxes:
        return self.body.vertices.fit(self.boxes)

    @cached_property
    def edges(self) -> TreeBoxes:
        return self.body.edges.fit(self.boxes)

    @cached_property
    def faces(self) -> TreeBoxes:
        return self.body.faces.fit(self.boxes)


@dataclass(frozen=True)
class MeshInStep:
    """One mesh of a step: its trees, the same ones throughout, and where its vertices begin in the step's arrays."""

    mesh: Mesh
    base: int
    device: wp.Device

    @cached_property
    def vertices(self) -> LinearTree:
        return self._tree("vertices", lambda: np.unique(self.mesh.faces).astype(np.int32)[:, None])

    @cached_property
    def edges(self) -> LinearTree:
        return self._tree("edges", lambda: self.mesh.edges)

    @cached_property
    def faces(self) -> LinearTree:
        return self._tree("faces", lambda: self.mesh.faces)

    def _tree(self, name: str, items: Callable[[], np.ndarray]) -> LinearTree:
        cache = self.mesh.topology.cache
        key = ("linear tree", name, self.device.alias)
        tree, fits = cache.get(key, (None, 0))
        if tree is None or fits >= FITS_PER_ORDER:
            on_device = wp.array(items(), dtype=wp.int32, device=self.device)
            tree, fits = LinearTree.build(on_device, _positions(self.mesh, self.device), self.mesh.bounds), 0
        cache[key] = (tree, fits + 1)
        return tree


@dataclass(frozen=True)
class Step:
    """Meshes in motion from t = 0 to t = 1, on one device; vertex v of body k is number `bodies[k].base + v`."""

    bodies: tuple[MeshInStep, ...]
    start: wp.array  #: positions at t = 0, vec3d [m]
    end: wp.array  #: positions at t = 1
    frame: Frame

    @staticmethod
    def of(things: list[Mesh | Moving], device: str | wp.Device | None) -> Step:
        """The step of one or two things, at rest or in linear motion."""
        moves = [_mesh_and_end(thing) for thing in things]
        device = choose_device(device, *(end for _, end in moves))
        bodies, base = [], 0
        for mesh, _ in moves:
            bodies.append(MeshInStep(mesh, base, device))
            base += len(mesh.vertices)
        # Start and end of a vertex side by side: a query reads both.
        path = wp.empty((base, 2), dtype=wp.vec3d, device=device)
        worst = wp.zeros(1, dtype=wp.int32, device=device)
        for body, (mesh, end) in zip(bodies, moves, strict=True):
            start = _positions(mesh, device)
            end = start if end is None else as_points(end, f"{mesh.name}: end positions", device)
            launch(_lay_out, len(start), [start, end, body.base], [path, worst], device=device, threads=1)
        _refuse_unusable(bodies, base - int(worst.numpy()[0]))
        corners = np.stack(
            [
                np.min([mesh.bounds[0] for mesh, _ in moves], axis=0),
                np.max([mesh.bounds[1] for mesh, _ in moves], axis=0),
            ]
        )
        return Step(bodies=tuple(bodies), start=path[:, 0], end=path[:, 1], frame=Frame.around(corners))

    @property
    def device(self) -> wp.Device:
        return device_of(self.start)

    def fitted(self, until: float, margin: float = 0.0) -> list[FittedMesh]:
        """Boxes of every body over times 0 … `until`, grown by `margin` [m]."""
        boxes = vertex_boxes(self.start, self.end, until, margin, self.frame)
        return [FittedMesh(body, boxes[body.base : body.base + len(body.mesh.vertices)]) for body in self.bodies]


def _refuse_unusable(bodies: list[MeshInStep], number: int) -> None:
    """Raise if vertex `number` of the step is one of a body."""
    for body in bodies:
        if body.base <= number < body.base + len(body.mesh.vertices):
            vertex = number - body.base
            raise InputError(f"Mesh {body.mesh.name!r}: vertex {vertex} has a place that is not finite or above 1e98")


def _positions(mesh: Mesh, device: wp.Device) -> wp.array:
    """The vertices of a mesh on a device; they never change, so they are copied there once."""
    key = ("positions", device.alias)
    if key not in mesh.cache:
        mesh.cache[key] = as_points(mesh.vertices, f"{mesh.name}: vertices", device)
    return mesh.cache[key]


def _mesh_and_end(thing: Mesh | Moving) -> tuple[Mesh, object]:
    if isinstance(thing, Mesh):
        return thing, None
    if isinstance(thing, Moving) and isinstance(thing.shape, Mesh) and isinstance(thing.motion, Linear):
        return thing.shape, thing.motion.end
    what = type(thing).__name__
    if isinstance(thing, Moving):
        what = f"{type(thing.shape).__name__} in {type(thing.motion).__name__} motion"
    raise UnsupportedError(f"first contact of a {what} is not known; known: a Mesh at rest, a Mesh in Linear motion")


@wp.kernel(enable_backward=False)
def _lay_out(
    first: int,
    start: wp.array[wp.vec3d],
    end: wp.array[wp.vec3d],
    base: int,
    path: wp.array2d[wp.vec3d],
    worst: wp.array[int],
):
    """Start and end side by side; and how many vertices of the step there are from the first unusable one on."""
    i = first + wp.tid()
    a = start[i]
    b = end[i]
    path[base + i, 0] = a
    path[base + i, 1] = b
    size = wp.abs(a) + wp.abs(b)
    if not (size[0] + size[1] + size[2] < LARGEST):
        wp.atomic_max(worst, 0, path.shape[0] - base - i)
