"""Which features of rigid bodies, each posed, are nearer than a distance and hold them apart?

Question:  of many pairs of bodies at once: which vertices, edges and faces are constraints, and how near is each pair?
Method:    one descent of two OBB trees for each pair, at the poses as they are: nothing is refitted and no mesh is
           copied. What is listed are *constraints*: the points nearest to each other lie within both features, and the
           direction between them in both normal cones, up to a tilt; flat places count as one face.
Sound:     every such pair of features is listed, each once, in canonical order, the same bits for any number of
           threads. `least` is not above the distance of the surfaces, and not more than rounding below it
           (see `tg.distance`), up to the distance asked about. Nothing is cut off: room grows with what is found.
Known as:  contact generation, contact manifolds of meshes; the contact manager of Redon 2002, chapter 5.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from tangere.query.proximity.posed.result import PosedContacts
from tangere.query.proximity.posed.shapes import distinct_meshes, shape_tables
from tangere.query.proximity.posed.traversal import BAD_DISTANCE, BAD_POSE, OVERLAP
from tangere.query.proximity.posed.workspace import PosedEngine, PosedWorkspace
from tangere.runtime import (
    Arrays,
    InputError,
    NonCopyable,
    check_kind,
    choose_device,
    fraction,
    thread_count,
    to_numpy,
    whole,
)
from tangere.shape.mesh import Mesh

#: sin of how far a direction may leave a normal cone: a box that rocks by less keeps its four corners.
TILT = 0.15
#: A smaller tilt would let rounding decide.
_LEAST_TILT = 1e-9
_LARGEST = 2**31 - 1
#: The least number of pairs to have room for.
_LEAST_ROOM = 16


class PosedProximity(NonCopyable, instead="make another one of the same meshes"):
    """Contacts of rigid bodies wherever they are; trees and features are prepared once for each distinct mesh.

    Args:
        meshes: one for each body; bodies may share one. Open ones, sheets and those with non-manifold edges are fine.
        tilt: sin of how far the direction of a contact may leave the normal cones of its features.
        device: where to compute; None means CUDA if present.
        threads: CPU threads; None means all, or TANGERE_THREADS.

    Example:
        >>> import numpy as np, tangere as tg
        >>> box = tg.generate.box((1, 1, 1))
        >>> near = tg.PosedProximity([box, box], device="cpu")
        >>> poses = np.stack([np.eye(4), np.eye(4)])
        >>> poses[1, :3, 3] = 0.2, 0.1, 1.001
        >>> found = near.at(poses, [[1, 0]], distance=0.01)
        >>> len(found), round(float(found.least[0]), 9)
        (4, 0.001)
    """

    def __init__(
        self,
        meshes: Sequence[Mesh],
        *,
        tilt: float = TILT,
        device: str | wp.Device | None = None,
        threads: int | None = None,
    ) -> None:
        self.meshes = tuple(meshes)
        if not self.meshes:
            raise InputError("PosedProximity: there are no meshes")
        for body, mesh in enumerate(self.meshes):
            check_kind(mesh, Mesh, f"PosedProximity: meshes[{body}]")
        self.tilt = fraction(tilt, "tilt")
        self.threads = None if threads is None else whole(threads, "threads", 1)
        self.device = choose_device(device)
        self._engine = _engine_of(self.meshes, self.device)
        self._workspaces: list[PosedWorkspace] = []
        self._choosing = threading.Lock()

    def __repr__(self) -> str:
        return f"PosedProximity({len(self.meshes)} bodies, on {self.device})"

    def find(self, pairs: Arrays, rotation: Arrays, origin: Arrays, distance: Arrays) -> PosedContacts:
        """The contacts of pairs of bodies, x = rotation p + origin being where point p of a body's mesh is.

        Args:
            pairs: numbers of two bodies each, (n, 2) or `wp.vec2i`.
            rotation: of every body, (bodies, 3, 3) or `wp.mat33d`.
            origin: of every body, (bodies, 3) or `wp.vec3d` [m].
            distance: features nearer than this are contacts, one or (n,), not negative [m].
        """
        bodies = len(self.meshes)
        numbers = _pair_rows(pairs)
        count = len(numbers)
        turns, origins = _rows(rotation, "rotation", bodies, (3, 3)), _rows(origin, "origin", bodies, (3,))
        limits = distance if isinstance(distance, float) else _limits(distance, count)
        workspace = self._workspace(count)
        try:
            workspace.write("pairs", numbers, count)
            workspace.write("rotation", turns, bodies)
            workspace.write("origin", origins, bodies)
            workspace.write("limit", limits, count)
            told = workspace.run(count)
            if told.status > OVERLAP:
                raise InputError(_reason(workspace, count, told.status))
            found = PosedContacts(workspace, count, told.contacts)
            workspace.answer = weakref.ref(found)
        finally:
            workspace.busy = False
        return found

    def at(self, poses: Arrays, pairs: Arrays, distance: Arrays) -> PosedContacts:
        """The same for bodies at `poses`, (bodies, 4, 4)."""
        matrices = to_numpy(poses, "poses")
        if matrices.shape != (len(self.meshes), 4, 4):
            raise InputError(f"poses must have shape ({len(self.meshes)}, 4, 4), not {matrices.shape}")
        return self.find(pairs, matrices[:, :3, :3], matrices[:, :3, 3], distance)

    def _workspace(self, count: int) -> PosedWorkspace:
        """One whose answer nobody holds any more, with room for `count` pairs."""
        threads = thread_count() if self.threads is None else self.threads
        with self._choosing:
            for workspace in self._workspaces:
                if workspace.is_free and workspace.room >= count and workspace.threads == threads:
                    workspace.busy = True
                    return workspace
            room = max(_LEAST_ROOM, 1 << (count - 1).bit_length() if count else 0)
            tilt = max(self.tilt, _LEAST_TILT)
            workspace = PosedWorkspace(self._engine, len(self.meshes), room, tilt, threads)
            # Those that are free were too small, or for another number of threads.
            self._workspaces = [each for each in self._workspaces if not each.is_free] + [workspace]
            return workspace


def _engine_of(meshes: Sequence[Mesh], device: wp.Device) -> PosedEngine:
    """The engine of a device, for bodies of these meshes: the one place that asks which kind it is."""
    shapes = shape_tables(meshes, device)
    if device.is_cuda:
        from tangere.query.proximity.posed.cuda.engine import CudaSearch

        return CudaSearch(shapes, device)
    from tangere.query.proximity.posed.cpu.engine import CpuSearch

    return CpuSearch(shapes, distinct_meshes(meshes))


def _pair_rows(pairs: Arrays) -> Any:
    """(n, 2) whole numbers; whether there are such bodies the kernel sees."""
    if isinstance(pairs, wp.array):
        if pairs.dtype is wp.vec2i and pairs.ndim == 1:
            return pairs
        pairs = pairs.numpy()
    numbers = to_numpy(pairs, "pairs", None)
    if numbers.size == 0:
        return np.zeros((0, 2), np.int32)
    if numbers.ndim != 2 or numbers.shape[1] != 2 or numbers.dtype.kind not in "iu":
        raise InputError(f"pairs must be whole numbers of shape (n, 2), not {numbers.dtype} of {numbers.shape}")
    if numbers.dtype != np.int32 and numbers.max() > _LARGEST:  # would become another number
        raise InputError(f"pairs holds {numbers.max()}, which is no number of a body")
    return numbers


def _rows(data: Arrays, name: str, count: int, shape: tuple[int, ...]) -> Any:
    """A row for each body: arrays of Warp's own types as they are."""
    if isinstance(data, wp.array):
        if data.shape == (count,) and data.dtype is (wp.mat33d if len(shape) == 2 else wp.vec3d):
            return data
        data = data.numpy()
    rows = to_numpy(data, name)
    if rows.shape != (count, *shape):
        expected = ", ".join(map(str, (count, *shape)))
        raise InputError(f"{name} must have shape ({expected}), not {rows.shape}")
    return rows


def _limits(distance: Arrays, count: int) -> Any:
    """One distance, or one for each pair; whether they are any the kernel sees."""
    if isinstance(distance, wp.array) and distance.dtype is wp.float64 and distance.shape == (count,):
        return distance
    limits = to_numpy(distance, "distance")
    if limits.shape not in ((), (count,)):
        raise InputError(f"distance must be one number or have shape ({count},), not {limits.shape}")
    return limits


def _reason(workspace: PosedWorkspace, count: int, status: int) -> str:
    """What is wrong with the first pair of this status."""
    row = int(np.argmax(workspace.results.status.numpy()[:count] == status))
    pair = workspace.pairs(count)[row].tolist()
    if status == BAD_DISTANCE:
        return f"distance of pairs[{row}] must be finite and not negative"
    if status == BAD_POSE:
        return f"pairs[{row}]: body {pair[0]} or {pair[1]} is not placed by a finite rotation and origin"
    if pair[0] == pair[1]:
        return f"pairs[{row}] is a body with itself"
    return f"pairs[{row}] is {pair} but there are {len(workspace.queries.rotation)} bodies"
