"""Detection for step loops: give positions each step, get contacts; everything is prepared once.

A detector keeps the trees of its scene and all arrays (`CpuDetector`), on CUDA also the captured graph of a whole
detection (`CudaDetector`). Positions are copied on the device, contacts stay there. The topology is that of the meshes
given; after a cut make another detector.

The contacts are exactly those of `proximity`, in the same order.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import warp as wp

from tangere.broad_phase.triangles import LARGEST, Surfaces, as_meshes, checked_distance, every_job
from tangere.query.contacts.record import Contacts
from tangere.query.proximity.contact_buffer import ContactBuffer
from tangere.query.proximity.engine import engine_of
from tangere.query.proximity.exclusion_table import Exclude, ExclusionTable
from tangere.query.proximity.feature_trees import FeatureTrees
from tangere.query.proximity.search_plan import SearchPlan
from tangere.runtime import Arrays, InputError, NonCopyable, as_points, thread_count, using_threads, whole
from tangere.shape.mesh import Mesh


class Detector(NonCopyable, instead="make another one of the same meshes, or keep the contacts it found"):
    """The contacts of one mesh with itself, or of several with each other and themselves, step after step.

    Threads may share one, but wait for each other, and arrays are used again: such threads ask for `contacts`.

    Args:
        meshes: the bodies, where they begin.
        distance: features nearer than this are in contact [m].
        exclude: pairs to leave out, besides those that share a vertex, see `Exclusion`; of several meshes a list with
            one for each, or None.
        within, between: whether bodies are compared with themselves, and with each other.
        of: a body, or several, by their numbers: only what has one of them in it is looked for; None means all.
        device: where positions will come from; None means CUDA if present.
        threads: CPU threads; None means all, or TANGERE_THREADS.

    Example:
        >>> import tangere as tg
        >>> from tangere.query.proximity import Detector
        >>> ball = tg.generate.icosphere(subdivisions=2)
        >>> detector = Detector([ball, ball], distance=0.02, within=False, device="cpu")
        >>> for step in range(3):
        ...     moved = ball.vertices + [2.1 - 0.045 * step, 0.0, 0.0]
        ...     near = detector.find([ball.vertices, moved])
        ...     print(len(near.contacts))
        0
        0
        48
    """

    def __init__(
        self,
        meshes: Mesh | Sequence[Mesh],
        *,
        distance: float,
        exclude: Exclude = None,
        within: bool = True,
        between: bool = True,
        of: int | Sequence[int] | None = None,
        device: str | wp.Device | None = None,
        threads: int | None = None,
    ) -> None:
        checked_distance(distance)
        self._surfaces = Surfaces.of(as_meshes(meshes), device)
        self._distance, self._threads = distance, threads
        self._excluded = ExclusionTable.of(self._surfaces, exclude)
        jobs = every_job(len(self._surfaces.meshes))
        jobs = jobs[(within & (jobs[:, 0] == jobs[:, 1])) | (between & (jobs[:, 0] != jobs[:, 1]))]
        self._jobs = jobs if of is None else jobs[np.isin(jobs, _bodies(of, len(self._surfaces.meshes))).any(axis=1)]
        self._positions = wp.clone(self._surfaces.positions)
        self._turn = threading.RLock()
        with using_threads(threads):  # or says what is wrong with that number
            self._order()

    @property
    def device(self) -> wp.Device:
        """Where it works."""
        return self._surfaces.device

    def find(self, positions: Arrays | Sequence[Arrays]) -> ContactBuffer:
        """The contacts with all vertices at `positions` [m]: (n, 3), one body after the other, or a list of such.

        They are valid until the next call: arrays are used again.
        """
        with self._turn:
            taken = self._copy_positions(positions)
            found = self._steps.find(taken, self._threads or thread_count())
        if isinstance(found, ContactBuffer):
            return found
        base = self._surfaces.layout.vertex_base
        body = int(np.searchsorted(base, found, side="right")) - 1
        name = self._surfaces.meshes[body].name
        raise InputError(f"positions of {name!r}: vertex {found - base[body]} is not finite or above {LARGEST:g}")

    def contacts(self, positions: Arrays | Sequence[Arrays]) -> Contacts:
        """The same in main memory."""
        with self._turn:
            return self.find(positions).contacts

    def reorder(self) -> None:
        """Order the trees by the last positions: worth it when bodies have crumpled since they were ordered."""
        with self._turn, using_threads(self._threads):
            host = self._positions.numpy()
            parts = np.split(host, self._surfaces.layout.vertex_base[1:-1])
            meshes = [mesh.replace(vertices=part) for mesh, part in zip(self._surfaces.meshes, parts, strict=True)]
            self._surfaces = Surfaces.of(meshes, self.device)
            self._order()

    def _order(self) -> None:
        """Trees, their boxes, and the searches to be made, for the bodies where they are."""
        plan = SearchPlan.of(self._surfaces, self._jobs, self._distance, FeatureTrees.built)
        self._steps = engine_of(self.device).detector(
            self._surfaces, plan, self._positions, self._distance, self._excluded
        )

    def _copy_positions(self, positions: Arrays | Sequence[Arrays]) -> wp.array:
        """All positions in one array: on CPU the one given, where that is possible; else where searches expect them."""
        kept, device = self._positions, self.device
        if self._steps.reads_in_place and type(positions) is wp.array and positions.device is device:
            if positions.dtype is wp.vec3d and positions.shape == kept.shape and positions.is_contiguous:
                return positions
        base = self._surfaces.layout.vertex_base
        if isinstance(positions, list | tuple) and len(positions) == len(self._surfaces.meshes):
            parts, begins = [as_points(p, f"positions[{k}]", self.device) for k, p in enumerate(positions)], base[:-1]
            sizes = np.diff(base)
        else:
            parts, begins, sizes = [as_points(positions, "positions", self.device)], base[:1], base[-1:]
        for part, begin, size in zip(parts, begins.tolist(), sizes.tolist(), strict=True):
            if len(part) != size:
                raise InputError(f"positions must be {size} points, not {len(part)}")
            self._steps.copy(part, begin)
        return self._positions


def _bodies(of: int | Sequence[int], count: int) -> list[int]:
    """Numbers of bodies, checked."""
    chosen = [of] if isinstance(of, int | np.integer) else list(of)
    for body in chosen:
        if whole(body, "of", 0) >= count:
            raise InputError(f"of: there is no body {body}; there are {count}, counted from 0")
    return chosen
